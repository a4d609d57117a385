//! Checks values against the limits of templates (HPC-T-04..07, HPC-T-10).

use super::{Limits, Template};
use crate::{
    codes::Code,
    description::attributes::{Attribute, JobAttributes},
    priority::Priority,
    run_time::RunTime,
    size::{self, Size},
};
use std::fmt;

/// A value outside the limits of a template (HPC-T-05).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// One of the codes `TemplateValue...` and `TemplateRequiredValueMissing`.
    pub code: Code,
    /// The template with the limit.
    pub template: String,
    /// The property.
    pub property: Attribute,
    /// Its value.
    pub value: String,
    /// The allowed values.
    pub limit: String,
}

impl fmt::Display for Breach {
    /// The message (HPC-E-10).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, template, property, value, limit } = self;
        write!(f, "[{code}] template '{template}': {} = {value}, allowed {limit}", property.name())
    }
}

/// Whether the property is a number or a run time and so has a least and a greatest value.
pub(super) fn is_number(property: Attribute) -> bool {
    size::unit_of(property).is_some()
        || matches!(
            property,
            Attribute::Priority
                | Attribute::RunTime
                | Attribute::MinCoresPerNode
                | Attribute::MaxCoresPerNode
                | Attribute::MinMemory
                | Attribute::MaxMemory
                | Attribute::EstimatedProcessMemory
                | Attribute::TaskExecutionFailureRetryLimit
        )
}

/// Whether the property is a comma-separated list.
pub(super) const fn is_list(property: Attribute) -> bool {
    matches!(
        property,
        Attribute::NodeGroups
            | Attribute::RequestedNodes
            | Attribute::ExcludedNodes
            | Attribute::SoftwareLicense
            | Attribute::OrderBy
            | Attribute::JobValidExitCodes
            | Attribute::ParentJobIds
    )
}

/// Every breach of the limits, by property: those of the template, or of `Default` for properties without an item in it
/// (HPC-T-04). `values` are those in force (HPC-T-03, T-07) and `size` is the size they give.
pub fn breaches(values: &JobAttributes, size: Size, template: &Template, default_template: &Template) -> Vec<Breach> {
    let mut values = values.clone();
    size.write_to(&mut values);
    // Sizes in other units are ignored (HPC-J-14).
    let takes_part = |property: &Attribute| size::unit_of(*property).is_none_or(|unit| unit == size.unit);
    let properties: Vec<Attribute> = Attribute::ALL.iter().copied().filter(takes_part).collect();
    breaches_among(&properties, &values, template, default_template)
}

/// Only the breaches of these properties.
pub(crate) fn breaches_among(
    properties: &[Attribute],
    values: &JobAttributes,
    template: &Template,
    default_template: &Template,
) -> Vec<Breach> {
    let check = |property: &Attribute| match in_force(*property, template, default_template) {
        Some((name, limits)) => of_property(name, *property, values, limits),
        None => Vec::new(),
    };
    properties.iter().flat_map(check).collect()
}

/// Whether a default is outside the limits of its own item.
pub(super) fn default_breach(
    template: &str,
    property: Attribute,
    defaults: &JobAttributes,
    limits: &Limits,
) -> Option<Breach> {
    of_property(template, property, defaults, limits).into_iter().next()
}

/// The limits of a property, and the template that they come from.
fn in_force<'t>(
    property: Attribute,
    template: &'t Template,
    default_template: &'t Template,
) -> Option<(&'t str, &'t Limits)> {
    [template, default_template].into_iter().find_map(|from| Some((from.name.as_str(), from.limits(property)?)))
}

fn of_property(template: &str, property: Attribute, values: &JobAttributes, limits: &Limits) -> Vec<Breach> {
    let shown = match (property, values.get(property)) {
        (Attribute::RunTime, None) => "none".to_owned(),
        (Attribute::RunTime, Some(_)) => values.run_time.map(show_run_time).unwrap_or_default(),
        (_, value) => value.unwrap_or_default(),
    };
    let breach = |code: Code, value: &str, limit: String| Breach {
        code,
        template: template.to_owned(),
        property,
        value: value.to_owned(),
        limit,
    };
    let mut breaches = Vec::new();
    if let Some(number) = number(property, values) {
        if let Some(min) = limits.min.filter(|min| number.is_some_and(|number| number < *min)) {
            breaches.push(breach(Code::TemplateValueTooSmall, &shown, format!("at least {}", show(property, min))));
        }
        if let Some(max) = limits.max.filter(|max| number.is_none_or(|number| number > *max)) {
            breaches.push(breach(Code::TemplateValueTooLarge, &shown, format!("at most {}", show(property, max))));
        }
    }
    let items = items(property, values);
    let is_among = |item: &str, among: &[String]| among.iter().any(|value| value.eq_ignore_ascii_case(item));
    if !limits.allowed.is_empty() {
        let wrong = items.iter().filter(|item| !is_among(item, &limits.allowed));
        breaches.extend(wrong.map(|item| breach(Code::TemplateValueInvalid, item, limits.allowed.join(", "))));
    }
    let missing = limits.required.iter().filter(|required| !is_among(required, &items));
    let missing = missing.map(|required| {
        breach(Code::TemplateRequiredValueMissing, &shown, format!("only with {required} among its values"))
    });
    breaches.extend(missing);
    breaches
}

/// The property as a number: `Some(None)` is larger than any number (HPC-T-06). `None` if it has no number.
fn number(property: Attribute, values: &JobAttributes) -> Option<Option<i64>> {
    match property {
        Attribute::Priority => values.priority.map(|priority| Some(priority.value().into())),
        Attribute::RunTime => Some(values.run_time.and_then(RunTime::seconds).map(i64::from)),
        _ if is_number(property) => values.get(property)?.parse().ok().map(Some),
        _ => None,
    }
}

/// A bound as messages show it.
fn show(property: Attribute, bound: i64) -> String {
    match property {
        Attribute::Priority => Priority::new(bound).map_or_else(|| bound.to_string(), |priority| priority.to_string()),
        Attribute::RunTime => {
            let run_time = u64::try_from(bound).ok().and_then(RunTime::from_seconds);
            run_time.map_or_else(|| format!("{bound} s"), show_run_time)
        }
        _ => bound.to_string(),
    }
}

fn show_run_time(run_time: RunTime) -> String {
    match run_time.seconds() {
        Some(seconds) if run_time != run_time.in_minutes() => format!("{seconds} s"),
        _ => run_time.to_string(),
    }
}

/// The values to compare with the allowed ones: the items of a list, otherwise the value; a text that is not given is
/// empty.
fn items(property: Attribute, values: &JobAttributes) -> Vec<String> {
    let value = values.get(property);
    if is_list(property) {
        let value = value.unwrap_or_default();
        return value.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect();
    }
    let is_text = matches!(property, Attribute::Name | Attribute::Project | Attribute::EmailAddress);
    value.or_else(|| is_text.then(String::new)).into_iter().collect()
}
