//! Which notifications follow from a record.

use crate::state::{Job, State};
use muster_schemas::{
    RunId, Timestamp,
    event::{Event, Record},
    job::{Notification, Occasion, Outcome},
    notify::NotifyItem,
    resources::Placement,
};
use std::sync::Arc;

/// The notifications that follow from a record, which the state already includes. The same record and state always give
/// the same items, so that they can be made again after a crash.
///
/// An array tells of itself as a whole, not of each task: that it ended, was held or released.
pub fn items(state: &State, record: &Record) -> Vec<NotifyItem> {
    let Some(happened) = Happened::of(&record.event) else { return Vec::new() };
    let Some(job) = record.event.job().and_then(|id| state.job(id)) else { return Vec::new() };
    if job.id.index.is_some() {
        return Vec::new();
    }
    let wanted = (0..).zip(job.notifications()).filter_map(|(number, notification)| {
        happened.wanted_by(notification).map(|occasion| (number, occasion, notification))
    });
    wanted
        .map(|(number, occasion, notification)| {
            let run = RunFacts::of(state, job, &record.event);
            NotifyItem {
                job: job.id,
                of: record.sequence,
                notification: number,
                occasion,
                sink: notification.sink.clone(),
                time: record.time,
                event: happened.word.to_owned(),
                outcome: happened.outcome.cloned(),
                cluster: state.settings().name.clone(),
                name: job.name.to_string(),
                owner: (*job.owner).clone(),
                queue: job.lead().queue.to_string(),
                run: run.as_ref().map(|run| run.id),
                nodes: run.as_ref().map(|run| run.node_names(state)).unwrap_or_default(),
                submitted: job.submitted,
                started: run.and_then(|run| run.started),
            }
        })
        .collect()
}

/// What a record tells that a notification can be about.
struct Happened<'r> {
    occasion: Occasion,
    word: &'r str,
    outcome: Option<&'r Outcome>,
}

impl<'r> Happened<'r> {
    fn of(event: &'r Event) -> Option<Self> {
        let (occasion, word) = match event {
            Event::RunStarted { .. } => (Occasion::Started, "started"),
            Event::JobRequeued { .. } => (Occasion::Requeued, "requeued"),
            Event::JobSuspended { .. } => (Occasion::Suspended, "suspended"),
            Event::JobResumed { .. } => (Occasion::Suspended, "resumed"),
            Event::JobHeld { .. } | Event::ComponentHeld { .. } => (Occasion::Held, "held"),
            Event::JobReleased { .. } | Event::ComponentReleased { .. } => (Occasion::Held, "released"),
            Event::JobFinished { outcome, .. } => {
                return Some(Self { occasion: Occasion::Ended, word: outcome.word(), outcome: Some(outcome) });
            }
            _ => return None,
        };
        Some(Self { occasion, word, outcome: None })
    }

    /// On which of its occasions the notification wants to tell this; a bad end is told as that if it is asked for.
    fn wanted_by(&self, notification: &Notification) -> Option<Occasion> {
        let on: &[Occasion] =
            if notification.on.is_empty() { &[Occasion::Started, Occasion::Ended] } else { &notification.on };
        let failed = self.outcome.is_some_and(|outcome| !outcome.is_success());
        if failed && on.contains(&Occasion::Failed) {
            return Some(Occasion::Failed);
        }
        on.contains(&self.occasion).then_some(self.occasion)
    }
}

/// The run that a job has, or had last.
struct RunFacts {
    id: RunId,
    placement: Arc<Placement>,
    started: Option<Timestamp>,
}

impl RunFacts {
    fn of(state: &State, job: &Job, event: &Event) -> Option<Self> {
        let current = event.run().or(job.run()).and_then(|run| state.run(run));
        let current = current.map(|run| Self { id: run.id, placement: run.placement.clone(), started: run.started });
        current.or_else(|| {
            let last = job.last_run.as_ref()?;
            Some(Self { id: last.run, placement: last.placement.clone(), started: last.started })
        })
    }

    fn node_names(&self, state: &State) -> Vec<String> {
        self.placement.shares().map(|share| state.node_name(share.node).into_owned()).collect()
    }
}
