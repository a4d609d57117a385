//! Options for a job that is there, as a change of the job model.

use super::{rules::Rules, settings::Settings, sizing};
use crate::{
    attributes::{Attributes, key, names, resource_key},
    refusal::Refusal,
    resources::Resource,
};
use muster_schemas::event::JobChange;
use std::collections::BTreeMap;

/// Options of a job that cannot be changed after its submission, each with what they are about.
const FIXED: [(char, &str); 10] = [
    ('c', "checkpoints"),
    ('e', "output files"),
    ('j', "output files"),
    ('k', "output files"),
    ('m', "mail"),
    ('M', "mail"),
    ('o', "output files"),
    ('R', "output files"),
    ('S', "the shell"),
    ('v', "variables"),
];

/// Resources that are computed from others: a new size replaces them.
const COMPUTED: [&str; 3] = ["nodect", "mpiprocs", "ncpus"];

/// The change of a job that these options ask for, by the letters that were given. `attributes` are those of the job:
/// requests that are not named stay.
///
/// # Errors
/// An option that cannot be changed, or a size that cannot be read.
pub fn change(
    settings: &Settings,
    letters: &[char],
    attributes: Attributes<'_>,
    rules: &Rules,
) -> Result<JobChange, Refusal> {
    if let Some((letter, what)) = FIXED.iter().find(|(letter, _)| letters.contains(letter)) {
        let why = format!("{what} cannot be changed after submission");
        return Err(Refusal::unsupported(&format!("-{letter}"), why));
    }
    let given = |letter: char| letters.contains(&letter);
    let has_project = attributes.get(names::PROJECT).is_some();
    let mut change = JobChange {
        name: settings.name.clone(),
        account: settings.project.clone().or_else(|| settings.account.clone().filter(|_| !has_project)),
        priority: settings.priority,
        begin: settings.begin,
        requeue_on_node_lost: settings.rerunnable,
        max_running: settings.max_running,
        ..JobChange::default()
    };
    if given('W') {
        refuse_fixed_attributes(settings)?;
        if settings.given.contains_key(names::DEPEND) {
            change.dependencies = Some(settings.dependencies.clone());
        }
    }
    change.attributes.extend(settings.given.iter().map(|(name, text)| (key(name), text.clone())));
    if given('l') {
        resize(&mut change, settings, attributes, rules)?;
    }
    Ok(change)
}

fn refuse_fixed_attributes(settings: &Settings) -> Result<(), Refusal> {
    let fixed = [names::STAGEIN, names::STAGEOUT, names::UMASK, names::BLOCK, names::INTERACTIVE, names::SANDBOX];
    match fixed.iter().find(|name| settings.given.contains_key(*name)) {
        Some(name) => Err(Refusal::unsupported(&format!("-W {name}"), "it cannot be changed after submission")),
        None => Ok(()),
    }
}

/// A walltime alone is a change that running jobs take too; anything else is a new request.
fn resize(
    change: &mut JobChange,
    settings: &Settings,
    attributes: Attributes<'_>,
    rules: &Rules,
) -> Result<(), Refusal> {
    let mut merged = Settings { resources: requested(attributes), ..settings.clone() };
    merged.take_requests(settings.resources.clone())?;
    merged.check()?;
    let size = sizing::size(&merged, rules)?;
    match settings.resources.iter().all(|request| request.name == "walltime") {
        true => change.walltime_seconds = size.alternative.walltime_seconds,
        false => change.alternatives = Some(vec![size.alternative]),
    }
    let earlier = attributes.resources().map(|(name, _)| (resource_key(name), String::new()));
    let mut resources: BTreeMap<String, String> = earlier.collect();
    resources.extend(size.shown.iter().map(|(name, text)| (resource_key(name), text.clone())));
    resources.retain(|key, text| attributes.0.get(key) != Some(text));
    change.attributes.extend(resources);
    Ok(())
}

/// The requests of a job, without those that were computed from them.
fn requested(attributes: Attributes<'_>) -> Vec<Resource> {
    let has = |name: &str| attributes.resource(name).is_some();
    let is_computed = |name: &str| match name {
        "mem" => has("select"),
        "ncpus" => has("select") || has("nodes") || has("procs"),
        "place" => !has("select"),
        name => COMPUTED.contains(&name),
    };
    let asked = attributes.resources().filter(|(name, _)| !is_computed(name));
    let quote = |text: &str| crate::text::quoted(text, &[',']);
    asked
        .map(|(name, text)| {
            // The words of these have quotes of their own.
            let value = if name == "select" { text.to_owned() } else { quote(text) };
            Resource { name: name.to_owned(), value }
        })
        .collect()
}
