//! What a notification says.

use muster_dialect::Dialects;
use muster_schemas::{
    Timestamp,
    job::{ExitStatus, Outcome},
    notify::NotifyItem,
};
use std::fmt::Write as _;

/// One line: `[muster] job 12 (simulate) completed`, or the subject that users of the job's dialect know.
pub(crate) fn subject(item: &NotifyItem, dialects: Dialects) -> String {
    let words = dialects.named(item.dialect.as_deref()).and_then(|dialect| dialect.mail_subject(item));
    let words = words.unwrap_or_else(|| match is_of_cluster(item) {
        true => format!("[{}] {}", item.cluster, event_words(item)),
        false => format!("[{}] job {} ({}) {}", item.cluster, item.job, item.name, event_words(item)),
    });
    words.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// What happened and to which job, one fact a line.
pub(crate) fn body(item: &NotifyItem) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<10} {value}");
        }
    };
    if is_of_cluster(item) {
        line("Event", &event_words(item));
        line("Reason", item.why.as_deref().unwrap_or_default());
        line("Time", &time(Some(item.time)));
        line("Cluster", &item.cluster);
        return text;
    }
    line("Job", &format!("{} ({})", item.job, item.name));
    line("Event", &event_words(item));
    line("Reason", item.why.as_deref().unwrap_or_default());
    line("Time", &time(Some(item.time)));
    line("Owner", &item.owner.user);
    line("Queue", &item.queue);
    line("Submitted", &time(Some(item.submitted)));
    line("Started", &time(item.started));
    line("Run time", &run_time(item));
    line("Exit", &exit(item));
    line("Output", item.output.as_deref().unwrap_or_default());
    line("Nodes", &item.nodes.join(","));
    line("Cluster", &item.cluster);
    text
}

/// Whether it is about no job.
fn is_of_cluster(item: &NotifyItem) -> bool {
    item.job.number == 0
}

/// How it ended, in words, or one word for any other event.
fn event_words(item: &NotifyItem) -> String {
    match &item.outcome {
        Some(Outcome::Failed(status)) => format!("failed with {status}"),
        Some(Outcome::LaunchFailed(why)) => format!("could not be started: {why}"),
        _ => item.event.replace('_', " "),
    }
}

/// How long a finished job ran, as `[D-]HH:MM:SS`.
fn run_time(item: &NotifyItem) -> String {
    let (Some(started), Some(_)) = (item.started, &item.outcome) else { return String::new() };
    let seconds = u64::try_from(item.time.micros_since(started)).unwrap_or(0) / 1_000_000;
    let (days, seconds) = (seconds / 86_400, seconds % 86_400);
    let days = if days > 0 { format!("{days}-") } else { String::new() };
    format!("{days}{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// The exit status of a job whose processes ended by themselves.
fn exit(item: &NotifyItem) -> String {
    match &item.outcome {
        Some(Outcome::Completed) if item.task_outcomes.is_none() => ExitStatus::Code(0).to_string(),
        Some(Outcome::Failed(status)) => status.to_string(),
        _ => String::new(),
    }
}

fn time(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{
        JobId, Sequence,
        event::Owner,
        job::{Occasion, Sink},
    };

    /// PBS-X-24: a mail about no job names none.
    #[test]
    fn a_mail_about_the_cluster_names_no_job() {
        let item = NotifyItem {
            job: JobId::job(0),
            of: Sequence(7),
            notification: 0,
            occasion: Occasion::Failed,
            sink: Sink::Mail("ann".into()),
            time: Timestamp(0),
            event: "scheduling_switched_off".into(),
            outcome: None,
            cluster: "alpha".into(),
            name: String::new(),
            owner: Owner { user: "ann".into(), uid: 1, gid: 1 },
            queue: String::new(),
            run: None,
            nodes: Vec::new(),
            submitted: Timestamp(0),
            started: None,
            task_outcomes: None,
            output: None,
            dialect: None,
            is_tried_once: false,
            why: Some("body failed too often in a row".into()),
            program: None,
        };
        assert_eq!(subject(&item, Dialects::NONE), "[alpha] scheduling switched off");
        let body = body(&item);
        assert!(body.starts_with("Event      scheduling switched off\nReason     body failed too often in a row\n"));
        assert!(!body.contains("Job") && !body.contains("Owner"), "{body}");
    }
}
