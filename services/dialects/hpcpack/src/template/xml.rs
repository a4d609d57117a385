//! Template XML: HPC Pack's `JobTemplate` with `TemplateItem`s, and muster's own elements for access and filters.

use super::{AccessEntry, FilterDefinition, Limits, Mode, Template, Who, check_filters, filters::Access};
use crate::{
    codes::{Code, Refusal, Warning, Warnings},
    description::{
        DescriptionError, NAMESPACE, VERSION,
        attributes::{Attribute, JobAttributes},
        values::Value as _,
        xml_write::Writer,
    },
    priority::Priority,
    run_time::RunTime,
    xml::{self, elements, name},
};
use roxmltree::Node;

/// The names of the priority and the run time in HPC Pack's templates.
const EXPANDED_PRIORITY: &str = "ExpandedPriority";
const RUNTIME_SECONDS: &str = "RuntimeSeconds";
/// HPC Pack's name for the allowed values, and the name in its documentation.
const VALUE_RANGE: [&str; 2] = ["ValueRange", "ValidValues"];

pub(super) fn read(bytes: &[u8]) -> Result<(Template, Vec<Warning>), DescriptionError> {
    let of_template = |mut error: DescriptionError| {
        error.code = Code::TemplateXmlNotValid;
        error
    };
    let text = xml::decode(bytes).map_err(of_template)?;
    let tree = xml::parse(&text).map_err(of_template)?;
    let mut reader = Reader { tree: &tree, warnings: Warnings::default() };
    let template = reader.template(tree.root_element())?;
    Ok((template, reader.warnings.finish()))
}

struct Reader<'t, 'i> {
    tree: &'t roxmltree::Document<'i>,
    warnings: Warnings,
}

impl Reader<'_, '_> {
    fn at(&self, node: Node<'_, '_>, refusal: Refusal) -> DescriptionError {
        let at = self.tree.text_pos_at(node.range().start);
        let place = crate::description::Place { line: at.row as usize, column: at.col as usize };
        DescriptionError::from(refusal).at(Some(place))
    }

    fn wrong(&self, node: Node<'_, '_>, text: impl Into<String>) -> DescriptionError {
        self.at(node, Refusal::new(Code::TemplateXmlNotValid, text))
    }

    fn ignored(&mut self, what: String) {
        self.warnings.push(Code::UnknownJobTerm, format!("{what} was ignored"));
    }

    fn template(&mut self, root: Node<'_, '_>) -> Result<Template, DescriptionError> {
        if name(root) != "JobTemplate" {
            return Err(self.wrong(root, format!("expected the element JobTemplate, found {}", name(root))));
        }
        let template_name = attribute(root, "Name").unwrap_or_default().trim();
        if template_name.is_empty() {
            return Err(self.wrong(root, "expected a Name of the template"));
        }
        let mut template = Template::new(template_name);
        template.description = attribute(root, "Description").unwrap_or_default().to_owned();
        for child in elements(root) {
            match name(child) {
                "TemplateItem" => self.item(child, &mut template)?,
                "Access" => template.access = self.access(child)?,
                "SubmissionFilters" => template.submission_filters = self.filters(child)?,
                "ActivationFilters" => template.activation_filters = self.filters(child)?,
                other => self.ignored(format!("unknown element `{other}` in JobTemplate")),
            }
        }
        Ok(template)
    }

    fn item(&mut self, node: Node<'_, '_>, template: &mut Template) -> Result<(), DescriptionError> {
        let property = attribute(node, "PropertyName").unwrap_or_default();
        let in_seconds = property.eq_ignore_ascii_case(RUNTIME_SECONDS);
        let known = match property {
            _ if in_seconds => Some(Attribute::RunTime),
            _ if property.eq_ignore_ascii_case(EXPANDED_PRIORITY) => Some(Attribute::Priority),
            _ => Attribute::named(property),
        };
        let Some(known) = known else {
            if property.is_empty() {
                return Err(self.wrong(node, "expected a PropertyName"));
            }
            self.ignored(format!("unknown property `{property}`"));
            return Ok(());
        };
        if template.limits(known).is_some() {
            return Err(self.wrong(node, format!("{property} has two items")));
        }
        let (defaults, limits) =
            read_item(node, known, in_seconds, template.defaults()).map_err(|refusal| self.at(node, refusal))?;
        template.set_item(known, defaults, limits).map_err(|refusal| self.at(node, refusal))
    }

    fn access(&mut self, node: Node<'_, '_>) -> Result<Access, DescriptionError> {
        let mut entries = Vec::new();
        for child in elements(node) {
            let is_allowed = match name(child) {
                "Allow" => true,
                "Deny" => false,
                other => return Err(self.wrong(child, format!("expected Allow or Deny, found {other}"))),
            };
            let who = match (attribute(child, "User"), attribute(child, "Group"), attribute(child, "Everyone")) {
                (Some(user), None, None) => Who::User(user.to_owned()),
                (None, Some(group), None) => Who::Group(group.to_owned()),
                (None, None, Some("true")) => Who::Everyone,
                _ => return Err(self.wrong(child, "expected one of User, Group and Everyone=\"true\"")),
            };
            entries.push(AccessEntry { is_allowed, who });
        }
        Ok(Access(entries))
    }

    fn filters(&mut self, node: Node<'_, '_>) -> Result<Vec<FilterDefinition>, DescriptionError> {
        let mut filters = Vec::new();
        for child in elements(node) {
            if name(child) != "Filter" {
                return Err(self.wrong(child, format!("expected Filter, found {}", name(child))));
            }
            filters.push(read_filter(child).map_err(|refusal| self.at(child, refusal))?);
        }
        check_filters(&filters).map_err(|refusal| self.at(node, refusal))?;
        Ok(filters)
    }
}

/// The value of an attribute; its name ignores case.
fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let found = node.attributes().find(|attribute| attribute.name().eq_ignore_ascii_case(name));
    found.map(|attribute| attribute.value())
}

fn given<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    attribute(node, name).map(str::trim).filter(|value| !value.is_empty())
}

fn read_item(
    node: Node<'_, '_>,
    property: Attribute,
    in_seconds: bool,
    defaults: &JobAttributes,
) -> Result<(JobAttributes, Limits), Refusal> {
    let mut defaults = defaults.clone();
    match attribute(node, "Default").filter(|default| !default.is_empty()) {
        Some(default) if in_seconds => defaults.run_time = Some(RunTime::parse_seconds(default)?),
        default => defaults.set(property, default)?,
    }
    let values = |name: &str| given(node, name).map(list).unwrap_or_default();
    let mut limits = Limits {
        min: bound(node, "MinVal", property, in_seconds)?,
        max: bound(node, "MaxVal", property, in_seconds)?,
        allowed: VALUE_RANGE.iter().flat_map(|name| values(name)).collect(),
        required: values("RequiredValues"),
    };
    // Old templates list the allowed bands; the highest is the limit.
    let is_old = attribute(node, "PropertyName").is_some_and(|name| name.eq_ignore_ascii_case("Priority"));
    if is_old && limits.max.is_none() && !limits.allowed.is_empty() {
        let bands = std::mem::take(&mut limits.allowed);
        let bands: Vec<Priority> = bands.iter().map(|band| Priority::parse(band)).collect::<Result<_, _>>()?;
        limits.max = bands.iter().max().map(|priority| priority.value().into());
    }
    Ok((defaults, limits))
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn bound(node: Node<'_, '_>, name: &str, property: Attribute, in_seconds: bool) -> Result<Option<i64>, Refusal> {
    let Some(text) = given(node, name) else { return Ok(None) };
    match property {
        Attribute::Priority => Priority::parse(text).map(|priority| Some(priority.value().into())),
        Attribute::RunTime if text.eq_ignore_ascii_case("infinite") => Ok(None),
        Attribute::RunTime if !in_seconds => RunTime::parse(text).map(|run_time| run_time.seconds().map(i64::from)),
        _ => text
            .parse()
            .map(Some)
            .map_err(|_| Refusal::new(Code::TemplateXmlNotValid, format!("{name}=`{text}`: expected a whole number"))),
    }
}

fn read_filter(node: Node<'_, '_>) -> Result<FilterDefinition, Refusal> {
    let text = |name: &str| attribute(node, name).unwrap_or_default();
    let mut filter = FilterDefinition::new(text("Name"), text("Path"))?;
    let not_valid = |name: &str, refusal: Refusal| {
        Refusal::new(Code::FilterNotValid, format!("filter '{}': {name}: {}", text("Name"), refusal.text))
    };
    if let Some(mode) = attribute(node, "Mode") {
        filter.mode = Mode::read(mode).map_err(|refusal| not_valid("Mode", refusal))?;
    }
    if let Some(reverts) = attribute(node, "RevertOnUnknown") {
        filter.reverts_on_unknown = bool::read(reverts).map_err(|refusal| not_valid("RevertOnUnknown", refusal))?;
    }
    Ok(filter)
}

pub(super) fn write(template: &Template) -> String {
    let mut writer = Writer::new();
    let head = [
        ("Name", template.name.clone()),
        ("Description", template.description.clone()),
        ("Version", VERSION.to_owned()),
        ("xmlns", NAMESPACE.to_owned()),
    ];
    writer.open("JobTemplate", &head);
    for (property, limits) in &template.limits {
        writer.empty("TemplateItem", &item_attributes(*property, limits, &template.defaults));
    }
    writer.open("Access", &[]);
    for AccessEntry { is_allowed, who } in &template.access.0 {
        let who = match who {
            Who::Everyone => ("Everyone", "true".to_owned()),
            Who::User(name) => ("User", name.clone()),
            Who::Group(name) => ("Group", name.clone()),
        };
        writer.empty(if *is_allowed { "Allow" } else { "Deny" }, &[who]);
    }
    writer.close();
    for (element, filters) in
        [("SubmissionFilters", &template.submission_filters), ("ActivationFilters", &template.activation_filters)]
    {
        writer.open(element, &[]);
        for filter in filters {
            let attributes = [
                ("Name", filter.name.clone()),
                ("Path", filter.path.clone()),
                ("Mode", filter.mode.name().to_lowercase()),
                ("RevertOnUnknown", filter.reverts_on_unknown.to_string()),
            ];
            writer.empty("Filter", &attributes);
        }
        writer.close();
    }
    writer.finish()
}

/// The attributes of an item, in HPC Pack's terms: priorities as values, run times in seconds.
fn item_attributes(property: Attribute, limits: &Limits, defaults: &JobAttributes) -> Vec<(&'static str, String)> {
    let (name, default) = match property {
        Attribute::Priority => (EXPANDED_PRIORITY, defaults.priority.map(|priority| priority.value().to_string())),
        Attribute::RunTime => {
            let seconds =
                |run_time: RunTime| run_time.seconds().map_or("Infinite".to_owned(), |seconds| seconds.to_string());
            (RUNTIME_SECONDS, defaults.run_time.map(seconds))
        }
        _ => (property.name(), defaults.get(property)),
    };
    let mut attributes = vec![("PropertyName", name.to_owned())];
    attributes.extend(default.map(|default| ("Default", default)));
    attributes.extend(limits.min.map(|min| ("MinVal", min.to_string())));
    attributes.extend(limits.max.map(|max| ("MaxVal", max.to_string())));
    for (name, values) in [(VALUE_RANGE[0], &limits.allowed), ("RequiredValues", &limits.required)] {
        if !values.is_empty() {
            attributes.push((name, values.join(",")));
        }
    }
    attributes
}
