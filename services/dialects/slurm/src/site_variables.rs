//! The variables with the values of options that a site adds (SL-S-22), for tasks and submission filters.

use crate::{
    options::{
        Place,
        site::{is_variable, variable},
    },
    request::Settings,
};
use std::collections::BTreeMap;

/// What follows the name of a variable for a component of several.
const SUFFIX: &str = "_HET_GROUP_";
/// The value of a flag's variable.
const SET: &str = "1";

/// The variables of the options of a component, or of a part of a step.
pub fn variables(settings: &Settings) -> impl Iterator<Item = (String, String)> {
    let of_site = settings.iter().filter(|(option, _)| option.place == Place::Site);
    of_site.map(|(option, text)| (variable(option.name), if text.is_empty() { SET } else { text }.to_owned()))
}

/// The variables of a job: those of its first component, and if it has several those of each with its number (SL-E-01).
pub fn of_job(components: &[Settings]) -> BTreeMap<String, String> {
    let suffixed = components.iter().enumerate().filter(|_| components.len() > 1).flat_map(|(offset, settings)| {
        variables(settings).map(move |(name, value)| (format!("{name}{SUFFIX}{offset}"), value))
    });
    components.first().into_iter().flat_map(variables).chain(suffixed).collect()
}

/// What a part of a step on this component inherits: instead of the variables of the first component those of its own.
pub fn of_component(component: u32, inherited: &[(String, String)]) -> Vec<(String, String)> {
    let suffix = format!("{SUFFIX}{component}");
    let own = inherited.iter().filter(|(name, _)| is_variable(name)).filter_map(|(name, value)| {
        let plain = name.strip_suffix(&suffix)?;
        Some((plain.to_owned(), value.clone()))
    });
    let others = inherited.iter().filter(|(name, _)| !is_variable(name) || name.contains(SUFFIX));
    others.cloned().chain(own).collect()
}
