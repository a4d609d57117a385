//! The subject of mail about jobs (SL-C-15).

use crate::{
    duration,
    words::{ExitCode, State},
};
use muster_schemas::{
    Timestamp,
    job::{Occasion, Outcome},
    notify::NotifyItem,
    views::OutcomeView,
};

/// The subject of a mail: `Slurm Job_id=93 Name=bash Began, Queued time 00:00:01`. For an array it is about the whole,
/// for an array task it has the index.
pub fn subject(item: &NotifyItem) -> String {
    let (number, name, verb) = (item.job.number, &item.name, verb(item));
    match (&item.task_outcomes, item.job.index) {
        (Some(outcomes), _) => {
            format!("Slurm Array Summary Job_id={number}_* ({number}) Name={name} {verb}{}", summary(item, outcomes))
        }
        (None, Some(_)) => {
            format!("Slurm Array Task Job_id={} ({number}) Name={name} {verb}{}{}", item.job, time(item), end(item))
        }
        (None, None) => format!("Slurm Job_id={number} Name={name} {verb}{}{}", time(item), end(item)),
    }
}

/// The event, also as the `SLURM_JOB_MAIL_TYPE` of mail programs.
pub fn verb(item: &NotifyItem) -> &'static str {
    match (item.occasion, &item.outcome) {
        (_, Some(Outcome::DependencyNeverMet)) => "Invalid dependency",
        (Occasion::Started, _) => "Began",
        (Occasion::Ended, _) => "Ended",
        (Occasion::Failed, _) => "Failed",
        (Occasion::Requeued, _) => "Requeued",
        (Occasion::WalltimeOver, _) => "Reached time limit",
        // Slurm has no mail about these.
        (Occasion::Suspended, _) if item.event == "resumed" => "Resumed",
        (Occasion::Suspended, _) => "Suspended",
        (Occasion::Held, _) if item.event == "released" => "Released",
        (Occasion::EndAsked, _) => "Cancelling",
        (Occasion::Held | Occasion::EachTask, _) => "Held",
    }
}

fn time(item: &NotifyItem) -> String {
    let Some(started) = item.started else { return String::new() };
    let seconds = |from: Timestamp, to: Timestamp| u64::try_from(to.micros_since(from)).unwrap_or(0) / 1_000_000;
    match item.occasion {
        Occasion::Started => format!(", Queued time {}", duration::long(seconds(item.submitted, started))),
        Occasion::Ended | Occasion::Failed | Occasion::Requeued | Occasion::WalltimeOver => {
            format!(", Run time {}", duration::long(seconds(started, item.time)))
        }
        _ => String::new(),
    }
}

/// The state and the exit status; a job that a signal ended has none.
fn end(item: &NotifyItem) -> String {
    let Some(outcome) = &item.outcome else { return String::new() };
    let (state, exit) = words(outcome);
    match exit.signal {
        0 => format!(", {state}, ExitCode {}", exit.status),
        _ => format!(", {state}"),
    }
}

fn words(outcome: &Outcome) -> (State, ExitCode) {
    let view = OutcomeView::from(outcome);
    (State::ended(view.outcome), ExitCode::of(&view))
}

/// How the tasks of an array ended, with the range of exit statuses, or the greatest signal.
fn summary(item: &NotifyItem, outcomes: &[Outcome]) -> String {
    if item.outcome.is_none() {
        return String::new();
    }
    let ends = || outcomes.iter().map(words);
    let signal = ends().map(|(_, exit)| exit.signal).max().unwrap_or(0);
    if signal > 0 {
        return format!(", Mixed, MaxSignal [{signal}]");
    }
    let statuses = || ends().map(|(_, exit)| exit.status);
    let (least, greatest) = (statuses().min().unwrap_or(0), statuses().max().unwrap_or(0));
    match (least, greatest, item.outcome.as_ref().map(words)) {
        (0, 1.., _) => format!(", Mixed, ExitCode [{least}-{greatest}]"),
        (_, _, Some((state, _))) => format!(", {state}, ExitCode [{least}-{greatest}]"),
        (_, _, None) => String::new(),
    }
}
