//! The notifications that follow from a record.

use crate::{copies, jobs::Job, planning, power, state::State, triggers};
use muster_schemas::{
    JobId, RunId, Timestamp,
    event::{Actor, Event, Record, StopReason},
    job::{Notification, Occasion, Outcome},
    notify::NotifyItem,
    resources::Placement,
};
use std::sync::Arc;

/// The notifications that follow from a record, which the state already includes. The same record and state always give
/// the same items, so that they can be derived again after a crash.
///
/// An array is reported as a whole: that its first task started, that it ended, was held or released. Only a
/// notification that asks for [`Occasion::EachTask`] reports each task instead.
pub fn items(state: &State, record: &Record) -> Vec<NotifyItem> {
    if copies::notices::is_told(&record.event) {
        return copies::notices::items(state, record);
    }
    if power::notices::is_told(&record.event) {
        return power::notices::item(state, record).into_iter().collect();
    }
    if planning::notices::is_told(&record.event) {
        return planning::notices::items(state, record);
    }
    let Some(happened) = Happened::of(record) else {
        return triggers::notices::item(state, record).into_iter().collect();
    };
    let Some(job) = state.job(happened.job) else { return Vec::new() };
    let never_ran = job.run().is_none() && job.last_run.is_none();
    let wanted = (0..).zip(job.notifications()).filter_map(|(number, notification)| {
        let happened = if happened.is_asked_alone(notification, never_ran) { happened.asked()? } else { happened };
        let told_of = happened.told_of(state, job, notification)?;
        Some((number, happened, happened.wanted_by(notification)?, told_of, notification))
    });
    wanted
        .map(|(number, happened, occasion, job, notification)| {
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
                task_outcomes: job.array.as_ref().map(|array| array.outcomes.keys().cloned().collect()),
                output: state.altered_output(job.id).and_then(|output| output.stdout.clone()),
                dialect: job.dialect.as_deref().map(str::to_owned),
                is_tried_once: false,
                why: happened.reason(),
                program: None,
            }
        })
        .collect()
}

/// What happened in a record that a notification can be about.
#[derive(Clone, Copy)]
struct Happened<'r> {
    job: JobId,
    occasion: Occasion,
    word: &'r str,
    outcome: Option<&'r Outcome>,
    /// The user whose wish it was that the job ends.
    asker: Option<&'r str>,
}

impl<'r> Happened<'r> {
    fn of(record: &'r Record) -> Option<Self> {
        let event = &record.event;
        let asker = match &*record.actor {
            Actor::User(owner) => Some(owner.user.as_str()),
            _ => None,
        };
        let (occasion, word) = match event {
            Event::RunStarted { .. } => (Occasion::Started, "started"),
            Event::JobRequeued { .. } => (Occasion::Requeued, "requeued"),
            Event::JobSuspended { was_resuming: false, .. } => (Occasion::Suspended, "suspended"),
            Event::JobResuming { .. } => (Occasion::Suspended, "resuming"),
            // One that had to wait for its cores was told when that was asked for (OAR-N-04).
            Event::JobResumed { .. } if !matches!(*record.actor, Actor::Ledger | Actor::Planner) => {
                (Occasion::Suspended, "resumed")
            }
            Event::JobHeld { .. } | Event::ComponentHeld { .. } => (Occasion::Held, "held"),
            Event::JobReleased { .. } | Event::ComponentReleased { .. } => (Occasion::Held, "released"),
            Event::JobFinished { job, outcome } => {
                let asker = asker.filter(|_| *outcome == Outcome::Cancelled);
                let (occasion, word) = (Occasion::Ended, outcome.word());
                return Some(Self { job: *job, occasion, word, outcome: Some(outcome), asker });
            }
            Event::RunStopping { job, reason: StopReason::Cancelled | StopReason::CancelledAtOnce, .. } => {
                let happened = Self { job: *job, occasion: Occasion::Ended, word: "", outcome: None, asker };
                return happened.asked();
            }
            Event::RunEnded { outcome: Outcome::TimedOut, .. } => (Occasion::WalltimeOver, "walltime_over"),
            _ => return None,
        };
        Some(Self { job: event.job()?, occasion, word, outcome: None, asker: None })
    }

    /// The same as the wish of a user that the job ends; `None` if nobody has asked for it.
    fn asked(self) -> Option<Self> {
        self.asker.map(|_| Self { occasion: Occasion::EndAsked, word: "end_asked", outcome: None, ..self })
    }

    /// Whose wish it is told about.
    fn reason(&self) -> Option<String> {
        let asker = self.asker.filter(|_| self.occasion == Occasion::EndAsked);
        asker.map(|user| format!("{user} asked for its end"))
    }

    /// Whether a notification is told of the wish instead of the end: it asks for wishes and for no ends, and the job ends at once
    /// because it never ran.
    fn is_asked_alone(&self, notification: &Notification, never_ran: bool) -> bool {
        let on = |occasion| notification.on.contains(&occasion);
        let is_end = self.occasion == Occasion::Ended && never_ran;
        is_end && on(Occasion::EndAsked) && !on(Occasion::Ended) && !on(Occasion::Failed)
    }

    /// The job to report: for a task, its array if this task started first, unless each task is asked for.
    fn told_of<'s>(&self, state: &'s State, job: &'s Job, notification: &Notification) -> Option<&'s Job> {
        let each_task = notification.on.contains(&Occasion::EachTask);
        if job.id.index.is_none() {
            let ends_as_array = job.array.is_some() && self.occasion == Occasion::Ended;
            return (!each_task || !ends_as_array).then_some(job);
        }
        if each_task {
            return Some(job);
        }
        let whole = state.job(job.id.whole())?;
        (self.occasion == Occasion::Started && is_first_start(state, whole, job)).then_some(whole)
    }

    /// The occasion of the notification that this matches, if any; a failure is reported as such if it asks for
    /// failures.
    fn wanted_by(&self, notification: &Notification) -> Option<Occasion> {
        let on: &[Occasion] =
            if notification.on.is_empty() { &[Occasion::Started, Occasion::Ended] } else { &notification.on };
        let failed = self.outcome.is_some_and(|outcome| is_failure(outcome, notification));
        if failed && on.contains(&Occasion::Failed) {
            return Some(Occasion::Failed);
        }
        on.contains(&self.occasion).then_some(self.occasion)
    }
}

/// Whether no other task of the array has started yet.
fn is_first_start(state: &State, whole: &Job, task: &Job) -> bool {
    let has_started = |other: &Job| {
        let run = other.run().and_then(|run| state.run(run));
        other.id.index.is_some() && other.id != task.id && run.is_some_and(|run| run.started.is_some())
    };
    let is_over = whole.array.as_ref().is_some_and(|array| array.finished_tasks() > 0);
    task.last_run.is_none() && !is_over && !state.job_with_tasks(task.id.number).any(has_started)
}

/// Whether an end is reported as a failure.
fn is_failure(outcome: &Outcome, notification: &Notification) -> bool {
    let is_spared = notification.spares_cancelled && *outcome == Outcome::Cancelled;
    !outcome.is_success() && !is_spared
}

/// The current or last run of a job.
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
        self.placement.nodes().map(|node| state.node_name(node).into_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{
        event::{Concern, Owner},
        testing::assert_handles,
    };

    /// The samples, altered where only some events of their kind cause a notification.
    #[test]
    fn people_are_notified_of_what_the_table_of_events_says() {
        assert_handles(Concern::Notices, |record| {
            let mut event = record.event.clone();
            match &mut event {
                Event::JobSuspended { was_resuming, .. } => *was_resuming = false,
                Event::RunEnded { outcome, .. } => *outcome = Outcome::TimedOut,
                Event::RunStopping { reason, .. } => *reason = StopReason::Cancelled,
                Event::ProgramCycled { cycle } => Arc::make_mut(cycle).gave_up = true,
                _ => {}
            }
            let ada = Owner { user: "ada".into(), uid: 1000, gid: 1000 };
            let by_user = Record { event: event.clone(), actor: Actor::User(ada).into(), ..record.clone() };
            let is_of_job = Happened::of(&by_user).is_some() || copies::notices::is_told(&event);
            let is_of_cluster = power::notices::is_told(&event) || planning::notices::is_told(&event);
            is_of_job || is_of_cluster || triggers::notices::item(&State::default(), record).is_some()
        });
    }
}
