//! The cluster-wide filters, how filters are called, and job templates.

use crate::{
    decide::{Access, Decision, conflict, invalid, not_found},
    filters::{self, state::DEFAULT_TEMPLATE},
    planning, validate,
};
use muster_schemas::{
    command::Refusal,
    event::Event,
    filter::{FilterSettings, FilterSpec, TemplateSpec},
    scheduling::SchedulingSettings,
};
use std::{collections::BTreeSet, sync::Arc};

/// The greatest number of templates in a cluster.
const MAX_TEMPLATES: usize = 10_000;

/// The greatest number of filters of one kind in a template.
const MAX_FILTERS: usize = 100;

/// The greatest number of users of a template.
const MAX_USERS: usize = 10_000;

/// The greatest size of a template's defaults and limits, in bytes.
const MAX_TEMPLATE_BYTES: usize = 1 << 20;

/// All or nothing: each value that is refused is named, with its range (HPC-C-08, HPC-F-71, HPC-F-72, HPC-H-02).
fn set(access: &Access, settings: FilterSettings) -> Result<Decision, Refusal> {
    access.require_administrator("change filters")?;
    let ranges = [
        ("submission_timeout_seconds", settings.submission_timeout_seconds, 1, 120),
        ("activation_timeout_seconds", settings.activation_timeout_seconds, 1, 120),
        ("retry_interval_seconds", settings.retry_interval_seconds, 1, 3_600),
        ("default_hold_seconds", settings.default_hold_seconds, 60, 604_800),
    ];
    let outside = ranges.into_iter().filter(|(_, value, least, most)| !(least..=most).contains(&value));
    let mut faults: Vec<String> = outside
        .map(|(name, value, least, most)| format!("{name}: {value} is not between {least} and {most}"))
        .collect();
    for (name, filter) in [("submission", &settings.submission), ("activation", &settings.activation)] {
        faults.extend(
            filter.as_ref().and_then(|filter| filters::validate::filter_spec(name, filter).err()).map(|e| e.message),
        );
    }
    if !faults.is_empty() {
        return Err(invalid(faults.join("; ")));
    }
    let old = access.state.filter_settings().clone();
    if *old == settings {
        return Ok(Decision::done(Vec::new()));
    }
    Ok(Decision::done(vec![Event::FilterSettingsSet { old, settings: Arc::new(settings) }]))
}

/// Sets filters and scheduling together: if either is refused, neither changes (HPC-C-08).
pub(crate) fn set_parameters(
    access: &Access,
    filters: Option<Box<FilterSettings>>,
    scheduling: Option<Box<SchedulingSettings>>,
) -> Result<Decision, Refusal> {
    access.require_administrator("change the parameters of the cluster")?;
    let mut events = Vec::new();
    if let Some(filters) = filters {
        events.extend(set(access, *filters)?.events);
    }
    if let Some(scheduling) = scheduling {
        events.extend(planning::decide::set_scheduling(access, *scheduling)?.events);
    }
    Ok(Decision::done(events))
}

/// Creates or changes a template and assigns its revision (HPC-T-09).
pub(crate) fn set_template(access: &Access, template: TemplateSpec) -> Result<Decision, Refusal> {
    access.require_administrator("change job templates")?;
    validate_template(&template)?;
    let state = access.state;
    let old = state.template(&template.name).cloned();
    if old.is_none() && state.templates().len() >= MAX_TEMPLATES {
        return Err(conflict(format!("the cluster takes at most {MAX_TEMPLATES} job templates")));
    }
    let revision = state.filters.template_revisions + 1;
    match old {
        Some(old) if (TemplateSpec { revision: old.revision, ..template.clone() }) == *old => {
            Ok(Decision::done(Vec::new()))
        }
        old => {
            let template = Arc::new(TemplateSpec { revision, ..template });
            Ok(Decision::done(vec![Event::TemplateSet { old, template }]))
        }
    }
}

fn validate_template(template: &TemplateSpec) -> Result<(), Refusal> {
    let name = &template.name;
    validate::name("template.name", name)?;
    if template.text.len() > MAX_TEMPLATE_BYTES {
        let found = template.text.len();
        return Err(invalid(format!("template `{name}`: {found} bytes of text, at most {MAX_TEMPLATE_BYTES}")));
    }
    if template.users.len() > MAX_USERS {
        return Err(invalid(format!("template `{name}`: {} users, at most {MAX_USERS}", template.users.len())));
    }
    template.users.iter().try_for_each(|user| validate::name("template.users", user))?;
    let lists =
        [("submission_filters", &template.submission_filters), ("activation_filters", &template.activation_filters)];
    lists.into_iter().try_for_each(|(list, filters)| validate_filters(&format!("template `{name}`: {list}"), filters))
}

fn validate_filters(list: &str, filters: &[FilterSpec]) -> Result<(), Refusal> {
    if filters.len() > MAX_FILTERS {
        return Err(invalid(format!("{list}: {} filters, at most {MAX_FILTERS}", filters.len())));
    }
    let mut names = BTreeSet::new();
    for filter in filters {
        filters::validate::filter_spec(list, filter)?;
        if !names.insert(&filter.name) {
            return Err(invalid(format!("{list}: filter `{}` is given twice", validate::shown(&filter.name))));
        }
    }
    Ok(())
}

/// Removes a template. Jobs checked with it stay as they are (HPC-T-01, HPC-T-09).
pub(crate) fn remove_template(access: &Access, name: &str) -> Result<Decision, Refusal> {
    access.require_administrator("remove job templates")?;
    if name.eq_ignore_ascii_case(DEFAULT_TEMPLATE) {
        return Err(conflict(format!("[TemplateFixed] template `{DEFAULT_TEMPLATE}` cannot be removed")));
    }
    match access.state.template(name) {
        Some(old) => Ok(Decision::done(vec![Event::TemplateRemoved { old: old.clone() }])),
        None => Err(not_found(format!("[TemplateNotFound] template `{}` does not exist", validate::shown(name)))),
    }
}
