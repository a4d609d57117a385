//! Job templates: defaults, limits, access, and filters (HPC-T-01..11).

mod check;
mod filters;
mod parts;
mod values;
mod xml;

use crate::{
    codes::{Code, Refusal, Warning},
    description::{
        DescriptionError,
        attributes::{Attribute, JobAttributes, check_text},
    },
};
pub(crate) use check::breaches_among;
pub use check::{Breach, breaches};
pub(crate) use filters::check_path;
pub use filters::{Access, AccessEntry, FilterDefinition, Mode, Who, check_filters};
pub use parts::{Limits, Template};
pub use values::{built_in, effective};

/// The template of jobs that name none (HPC-T-01).
pub const DEFAULT: &str = "Default";

impl Template {
    /// A template without items and filters, for everybody.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Reads template XML: `JobTemplate` with a `TemplateItem` for each property. Warnings name what was ignored.
    ///
    /// # Errors
    /// `TemplateXmlNotValid` or the code of a value, with the place. Nothing was made.
    pub fn read(bytes: &[u8]) -> Result<(Self, Vec<Warning>), DescriptionError> {
        xml::read(bytes)
    }

    /// The template as XML. Reading it gives an equal template.
    pub fn write(&self) -> String {
        xml::write(self)
    }

    /// The defaults of the properties.
    pub const fn defaults(&self) -> &JobAttributes {
        &self.defaults
    }

    /// The limits of a property; `None` if the template has no item for it, so that those of `Default` apply
    /// (HPC-T-04).
    pub fn limits(&self, property: Attribute) -> Option<&Limits> {
        self.limits.get(&property)
    }

    /// The properties with an item in the template.
    pub fn properties(&self) -> impl Iterator<Item = Attribute> {
        self.limits.keys().copied()
    }

    /// Sets the item of a property.
    ///
    /// # Errors
    /// A default that the property cannot have; limits that it cannot have (`TemplateNotValid`): a minimum above the
    /// maximum, bounds of a non-number, values with commas; or a default outside the limits. Nothing is changed then.
    pub fn set(&mut self, property: Attribute, default: Option<&str>, limits: Limits) -> Result<(), Refusal> {
        let mut defaults = self.defaults.clone();
        defaults.set(property, default)?;
        self.set_item(property, defaults, limits)
    }

    fn set_item(&mut self, property: Attribute, defaults: JobAttributes, limits: Limits) -> Result<(), Refusal> {
        let limits = limits_of(property, limits)?;
        if let Some(default) = defaults.get(property)
            && let Some(breach) = check::default_breach(&self.name, property, &defaults, &limits)
        {
            let text = format!("the default {default} is outside the limits: {breach}");
            return Err(not_valid(property, &text));
        }
        self.defaults = defaults;
        self.limits.insert(property, limits);
        Ok(())
    }

    /// Removes the item of a property.
    pub fn remove(&mut self, property: Attribute) {
        if self.limits.remove(&property).is_some() {
            // Clearing a value never fails.
            let _ = self.defaults.set(property, None);
        }
    }

    /// Whether this owner may submit with the template.
    ///
    /// # Errors
    /// `TemplateDenied` (HPC-T-08).
    pub fn check_access(&self, user: &str, groups: &[String]) -> Result<(), Refusal> {
        if self.access.allows(user, groups) {
            return Ok(());
        }
        let text = format!("{user} may not submit with the template '{}'", self.name);
        Err(Refusal::new(Code::TemplateDenied, text))
    }
}

fn not_valid(property: Attribute, text: &str) -> Refusal {
    Refusal::new(Code::TemplateNotValid, format!("{}: {text}", property.name()))
}

/// The limits, with values in the form that the property writes.
fn limits_of(property: Attribute, limits: Limits) -> Result<Limits, Refusal> {
    if property == Attribute::JobTemplate {
        return Err(not_valid(property, "a template cannot set the template"));
    }
    if let (Some(min), Some(max)) = (limits.min, limits.max)
        && min > max
    {
        return Err(not_valid(property, &format!("the minimum {min} is above the maximum {max}")));
    }
    if (limits.min.is_some() || limits.max.is_some()) && !check::is_number(property) {
        return Err(not_valid(property, "only numbers and run times have a minimum and a maximum"));
    }
    if !limits.required.is_empty() && !check::is_list(property) {
        return Err(not_valid(property, "only lists have required values"));
    }
    for value in limits.allowed.iter().chain(&limits.required) {
        check_text("a value of a template", value)?;
        if value.contains(',') || value.trim() != value || value.is_empty() {
            return Err(not_valid(property, &format!("`{value}`: expected a value without commas and outer blanks")));
        }
    }
    let written = |value: &String| {
        let mut scratch = JobAttributes::default();
        scratch.set(property, Some(value))?;
        Ok(scratch.get(property).unwrap_or_default())
    };
    let allowed = limits.allowed.iter().map(written).collect::<Result<_, Refusal>>()?;
    let required = limits.required.iter().map(written).collect::<Result<_, Refusal>>()?;
    Ok(Limits { allowed, required, ..limits })
}
