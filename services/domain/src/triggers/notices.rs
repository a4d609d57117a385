//! What a trigger that has fired makes the notifier run.

use crate::{state::State, triggers::Trigger};
use muster_schemas::{
    JobId, NodeId,
    event::{Event, Record},
    hosts,
    job::{Occasion, Sink},
    notify::NotifyItem,
};

/// What the program gets: the number of the job, or a list of the nodes.
pub(crate) fn argument(state: &State, trigger: &Trigger, nodes: &[NodeId]) -> String {
    match trigger.spec.on.job() {
        Some(job) => state.number_of(job).to_string(),
        None => {
            let mut names: Vec<String> = nodes.iter().map(|node| state.node_name(*node).into_owned()).collect();
            hosts::sort(&mut names);
            hosts::compress_sorted(&names)
        }
    }
}

/// The item for a record by which a trigger has fired.
pub(crate) fn item(state: &State, record: &Record) -> Option<NotifyItem> {
    let Event::TriggerFired { owner, program, argument, job, nodes, .. } = &record.event else { return None };
    let words = program.iter().chain([argument]).map(|word| quoted(word));
    let known = job.and_then(|job| state.job(job));
    Some(NotifyItem {
        job: job.unwrap_or(JobId::job(0)),
        of: record.sequence,
        notification: 0,
        occasion: Occasion::Ended,
        sink: Sink::Exec(format!("exec {}", words.collect::<Vec<_>>().join(" "))),
        time: record.time,
        event: "triggered".into(),
        outcome: known.and_then(|job| Some(job.finished()?.outcome.clone())),
        cluster: state.settings().name.clone(),
        name: known.map(|job| job.name.to_string()).unwrap_or_default(),
        owner: (**owner).clone(),
        queue: known.map(|job| job.lead().queue.to_string()).unwrap_or_default(),
        run: None,
        nodes: nodes.iter().map(|node| state.node_name(*node).into_owned()).collect(),
        submitted: known.map_or(record.time, |job| job.submitted),
        started: None,
        task_outcomes: None,
        output: None,
        dialect: known.and_then(|job| job.dialect.as_deref().map(str::to_owned)),
        is_tried_once: true,
        why: None,
        program: None,
    })
}

/// A word for a shell that stays as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_changes_nothing_in_a_word() {
        assert_eq!(quoted("a b;$(c)"), "'a b;$(c)'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
