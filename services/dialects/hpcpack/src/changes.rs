//! Which changes of a submission filter's file are accepted (HPC-F-11..17).

use crate::{
    codes::{Code, Warning},
    description::{
        self, DescriptionError, Format, JobDescription, TaskDescription, Terms,
        attributes::{Attribute, TaskAttribute},
        document::{Document, EXPANDED_PRIORITY, Givens, OLD_MAXIMUM, OLD_MINIMUM, RUNTIME_SECONDS},
        values::SystemAttribute,
    },
    priority::Priority,
    run_time::RunTime,
};
use std::collections::{BTreeMap, BTreeSet};

/// Further changes of tasks are counted but not listed.
const MOST_LISTED: usize = 20;

/// A property that a filter set, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The attribute; for terms and variables `ExtendedTerms/NAME` and so on.
    pub attribute: String,
    /// The value before; `None` if it was not specified.
    pub old: Option<String>,
    /// The value now; `None` if it is no longer specified, so that the template's default applies (HPC-F-13).
    pub new: Option<String>,
}

/// The accepted part of a filter's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The resulting description: job-level properties of the output, tasks of the input.
    pub description: JobDescription,
    /// What changed; empty if the filter changed nothing (HPC-F-12).
    pub differences: Vec<Difference>,
    /// What was ignored (HPC-F-15, F-16).
    pub warnings: Vec<Warning>,
}

/// Why nothing of a filter's output can be accepted: the job fails with `SubmissionFilterBadOutput` (HPC-F-17).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOutput {
    /// The file is gone.
    #[error("the file is gone")]
    Missing,
    /// Something other than a regular file is in its place.
    #[error("it is no longer a regular file")]
    NotRegularFile,
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file cannot be read as a description.
    #[error("{0}")]
    NotValid(DescriptionError),
    /// The filter's input cannot be read, so nothing can be compared with it.
    #[error("what the filter was given cannot be read: {0}")]
    InputNotValid(DescriptionError),
}

/// Compares the file left by a filter that answered 1 with the bytes it was given (HPC-F-12..17). An accepted
/// `HoldUntil` must still keep the bounds of HPC-H-07.
///
/// # Errors
/// See [`BadOutput`].
pub fn judge(format: Format, input: &[u8], output: &[u8]) -> Result<Taken, BadOutput> {
    if output.is_empty() {
        return Err(BadOutput::Empty);
    }
    let before = description::read(format, input).map_err(BadOutput::InputNotValid)?;
    let mut after = description::read(format, output).map_err(BadOutput::NotValid)?;
    let mut warnings = std::mem::take(&mut after.warnings);
    warnings.extend(read_only_changes(&before.attributes, &after.attributes));
    warnings.extend(task_changes(&before, &after));
    settle_pairs(&before.attributes, &mut after.attributes);
    let (before, _) = before.into_description().map_err(BadOutput::InputNotValid)?;
    let (after, _) = after.into_description().map_err(BadOutput::NotValid)?;
    let differences = differences(&before, &after);
    let description = JobDescription { dependencies: before.dependencies, tasks: before.tasks, ..after };
    Ok(Taken { description, differences, warnings })
}

/// The warning for a filter that answered 0 but changed its file (HPC-F-11).
pub fn unannounced(input: &[u8], output: &[u8]) -> Option<Warning> {
    let text = "the filter changed the file and answered 0: its changes were not taken";
    (input != output).then(|| Warning::new(Code::FilterFileChangesIgnored, text))
}

/// Warns that changes of what only the system sets are ignored (HPC-F-16).
fn read_only_changes(before: &Givens, after: &Givens) -> Option<Warning> {
    let names = SystemAttribute::ALL.iter().map(|attribute| attribute.name());
    let changed: Vec<&str> = names.filter(|name| text(before, name) != text(after, name)).collect();
    let text = format!("changes of read-only properties were not taken: {}", changed.join(", "));
    (!changed.is_empty()).then(|| Warning::new(Code::ReadOnlyChangesIgnored, text))
}

/// If one of two names of the same property changed, that one counts; if both did, they must agree (HPC-F-14). A
/// removed name does not contradict one that was set.
fn settle_pairs(before: &Givens, after: &mut Givens) {
    let priority = |_: &str, text: &str| Priority::parse(text).ok().map(|priority| i64::from(priority.value()));
    settle(before, after, [Attribute::Priority.name(), EXPANDED_PRIORITY], priority);
    let run_time = |name: &str, text: &str| {
        let read = if name == RUNTIME_SECONDS { RunTime::parse_seconds } else { RunTime::parse };
        read(text).ok().map(|run_time| run_time.seconds().map_or(0, i64::from))
    };
    settle(before, after, [Attribute::RunTime.name(), RUNTIME_SECONDS], run_time);
    let number = |_: &str, text: &str| text.trim().parse().ok();
    let unit = Attribute::UnitType.name();
    let same_unit = text(before, unit).map(str::to_lowercase) == text(after, unit).map(str::to_lowercase);
    for (new_name, old_name) in [(Attribute::MinCores.name(), OLD_MINIMUM), (Attribute::MaxCores.name(), OLD_MAXIMUM)] {
        settle(before, after, [new_name, old_name], number);
        // The old names make the unit Core, unless the filter says otherwise.
        if same_unit && after.contains_key(old_name) && !before.contains_key(old_name) {
            after.remove(unit);
        }
    }
}

fn text<'g>(givens: &'g Givens, name: &str) -> Option<&'g str> {
    givens.get(name).map(|given| given.text.as_str())
}

fn settle(before: &Givens, after: &mut Givens, names: [&str; 2], meaning: impl Fn(&str, &str) -> Option<i64>) {
    let changed = |name: &str| match (text(before, name), text(after, name)) {
        (Some(old), Some(new)) => {
            old != new && (meaning(name, old) != meaning(name, new) || meaning(name, new).is_none())
        }
        (old, new) => old != new,
    };
    match names.map(changed) {
        [true, false] => after.remove(names[1]),
        [false, true] => after.remove(names[0]),
        _ => None,
    };
}

/// The job-level differences, attributes first.
fn differences(before: &JobDescription, after: &JobDescription) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut compare = |attribute: &str, old: Option<String>, new: Option<String>| {
        if old != new {
            differences.push(Difference { attribute: attribute.to_owned(), old, new });
        }
    };
    for name in Attribute::ALL {
        match name {
            // Its text is in minutes, rounded up.
            Attribute::RunTime => {
                let shown = |run_time: Option<RunTime>| run_time.map(in_seconds);
                compare(name.name(), shown(before.attributes.run_time), shown(after.attributes.run_time));
            }
            _ => compare(name.name(), before.attributes.get(*name), after.attributes.get(*name)),
        }
    }
    let sets = [
        ("ExtendedTerms", terms(&before.extended_terms), terms(&after.extended_terms)),
        ("CustomProperties", terms(&before.custom_properties), terms(&after.custom_properties)),
        ("Request", variables(&before.request), variables(&after.request)),
        ("EnvironmentVariables", variables(&before.environment), variables(&after.environment)),
    ];
    for (element, old, new) in sets {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let name = new.get(key).or_else(|| old.get(key)).map_or("", |(name, _)| name);
            let value = |set: &BTreeMap<String, (&str, &str)>| set.get(key).map(|(_, value)| (*value).to_owned());
            compare(&format!("{element}/{name}"), value(&old), value(&new));
        }
    }
    differences
}

/// A run time as differences show it: whole minutes as `RunTime` writes them, others in seconds.
fn in_seconds(run_time: RunTime) -> String {
    match run_time.seconds() {
        Some(seconds) if run_time != run_time.in_minutes() => format!("{seconds} s"),
        _ => run_time.to_string(),
    }
}

fn terms(terms: &Terms) -> BTreeMap<String, (&str, &str)> {
    terms.iter().map(|(name, value)| (name.to_lowercase(), (name, value))).collect()
}

fn variables(variables: &BTreeMap<String, String>) -> BTreeMap<String, (&str, &str)> {
    variables.iter().map(|(name, value)| (name.clone(), (name.as_str(), value.as_str()))).collect()
}

/// Warns that changes of tasks are ignored (HPC-F-15).
fn task_changes(before: &Document, after: &Document) -> Option<Warning> {
    let mut changes = Vec::new();
    if before.tasks != after.tasks {
        if is_reordered(&before.tasks, &after.tasks) {
            changes.push("the tasks are in another order".to_owned());
        } else {
            changes.extend(changed_tasks(&before.tasks, &after.tasks));
        }
    }
    if before.dependencies != after.dependencies {
        changes.push("Dependencies".to_owned());
    }
    if changes.is_empty() {
        return None;
    }
    let more = changes.len().saturating_sub(MOST_LISTED);
    changes.truncate(MOST_LISTED);
    if more > 0 {
        changes.push(format!("{more} more"));
    }
    let text = format!("changes of tasks were not taken: {}", changes.join("; "));
    Some(Warning::new(Code::TaskChangesIgnored, text))
}

fn is_reordered(before: &[TaskDescription], after: &[TaskDescription]) -> bool {
    let sorted = |tasks: &[TaskDescription]| {
        let mut shown: Vec<String> = tasks.iter().map(|task| format!("{task:?}")).collect();
        shown.sort_unstable();
        shown
    };
    before.len() == after.len() && sorted(before) == sorted(after)
}

fn changed_tasks(before: &[TaskDescription], after: &[TaskDescription]) -> Vec<String> {
    let pairs = before.iter().zip(after).enumerate().filter(|(_, (old, new))| old != new);
    let mut changes: Vec<String> = pairs
        .map(|(index, (old, new))| format!("task {}: {}", index + 1, changed_parts(old, new).join(", ")))
        .collect();
    let counted = |count: usize| format!("{count} task{}", if count == 1 { "" } else { "s" });
    match (before.len(), after.len()) {
        (old, new) if old < new => changes.push(format!("{} added", counted(new - old))),
        (old, new) if old > new => changes.push(format!("{} removed", counted(old - new))),
        _ => {}
    }
    changes
}

fn changed_parts(old: &TaskDescription, new: &TaskDescription) -> Vec<&'static str> {
    let different = |name: &&TaskAttribute| old.attributes.get(**name) != new.attributes.get(**name);
    let mut parts: Vec<&str> = TaskAttribute::ALL.iter().filter(different).map(|name| name.name()).collect();
    let others = [
        ("ExtendedTerms", old.extended_terms != new.extended_terms),
        ("CustomProperties", old.custom_properties != new.custom_properties),
        ("EnvironmentVariables", old.environment != new.environment),
        (RUNTIME_SECONDS, parts.is_empty() && old.attributes.run_time != new.attributes.run_time),
    ];
    parts.extend(others.iter().filter(|(_, changed)| *changed).map(|(name, _)| *name));
    parts
}
