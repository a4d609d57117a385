//! How the start of a run came about, told from the log.

use muster_domain::State;
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, Timestamp,
    event::{Event, Record},
    public::summary,
    views::{Occurrence, PastReason, ReasonView, RunView, StartExplanation},
};
use std::collections::BTreeSet;

/// The number of events before the decision that are told.
const OCCURRENCES: usize = 3;
/// The number of reasons that are told.
const REASONS: usize = 20;

/// How a run came about.
///
/// `state` is as before the first of the `records`, which include at least the record of the plan that decided the
/// start.
pub fn explain_start(mut state: State, records: &[Record], run: &RunView) -> StartExplanation {
    let mut story = Story { job: run.job, because: Vec::new(), reasons: Vec::new() };
    let is_allocation =
        |record: &&Record| matches!(&record.event, Event::RunAllocated { run: id, .. } if *id == run.run);
    let allocation = records.iter().find(is_allocation);
    let nodes: BTreeSet<NodeId> = match allocation.map(|record| &record.event) {
        Some(Event::RunAllocated { placement, .. }) => placement.shares().map(|share| share.node).collect(),
        _ => BTreeSet::new(),
    };
    let plan = allocation.and_then(|allocation| {
        let same = |record: &&Record| record.command == allocation.command && record.sequence > allocation.sequence;
        records.iter().filter(same).find_map(|record| match &record.event {
            Event::Planned { plan } => Some(plan),
            _ => None,
        })
    });
    let seen = plan.map(|plan| plan.seen);
    let reasons_from = state.sequence().next();
    story.look(&state, state.time());
    let before = records.iter().take_while(|record| allocation.is_none_or(|end| record.sequence < end.sequence));
    for record in before {
        let was_seen = seen.is_none_or(|seen| record.sequence <= seen);
        if was_seen && gives_way(&record.event, run.job, &nodes, &state) == Some(true) {
            story.happened(record, &state);
        }
        // The ledger has accepted it.
        let _ = state.apply(record);
        if can_change_reason(&record.event, run.job) {
            story.look(&state, record.time);
        }
    }
    let job = state.job(run.job).or_else(|| state.job(run.job.whole()));
    let queued = job.map_or(run.allocated, |job| job.queued);
    StartExplanation {
        run: run.run,
        sequence: allocation.map_or_else(|| state.sequence(), |record| record.sequence),
        allocated: run.allocated,
        queued,
        waited_seconds: run.allocated.micros_since(queued).max(0) / 1_000_000,
        nodes: run.nodes.clone(),
        seen,
        promised_start: job.and_then(|job| job.slot.as_ref()).map(|slot| slot.start),
        expected_start: job.and_then(|job| job.predicted_start),
        because: story.because,
        reasons: story.reasons,
        reasons_from,
    }
}

struct Story {
    job: JobId,
    because: Vec<Occurrence>,
    reasons: Vec<PastReason>,
}

impl Story {
    fn look(&mut self, state: &State, since: Timestamp) {
        let job = state.job(self.job).or_else(|| state.job(self.job.whole()));
        let Some(reason) = job.and_then(|job| state.wait_reason(job)) else { return };
        let reason = ReasonView::from(&reason);
        if self.reasons.last().is_none_or(|last| last.reason != reason) {
            self.reasons.push(PastReason { since, reason });
            if self.reasons.len() > REASONS {
                self.reasons.remove(0);
            }
        }
    }

    fn happened(&mut self, record: &Record, state: &State) {
        let text = summary(record, state);
        self.because.push(Occurrence { sequence: record.sequence, time: record.time, text });
        if self.because.len() > OCCURRENCES {
            self.because.remove(0);
        }
    }
}

/// Whether an event gives room on one of the nodes, or opens the way of the job itself; `None` for kinds of events that never do.
fn gives_way(event: &Event, job: JobId, nodes: &BTreeSet<NodeId>, before: &State) -> Option<bool> {
    let is_own = |id: &JobId| *id == job || *id == job.whole();
    let had_room = |run: &RunId| {
        before.run(*run).is_some_and(|run| run.placement.shares().any(|share| nodes.contains(&share.node)))
    };
    Some(match event {
        Event::RunEnded { run, .. } => had_room(run),
        Event::JobSuspended { run, lends_cores, .. } => *lends_cores && had_room(run),
        Event::RunShrunk { removed, .. } => removed.shares().any(|share| nodes.contains(&share.node)),
        Event::NodeUp { node, .. }
        | Event::NodeGpusChecked { node, .. }
        | Event::NodeResumed { node }
        | Event::NodeAdded { node, .. }
        | Event::NodeChanged { node, .. }
        | Event::NodeClosuresSet { node, .. } => nodes.contains(node),
        Event::JobSubmitted { job: id, intake, .. } => intake.is_none() && is_own(id),
        Event::JobReleased { job: id, .. }
        | Event::ComponentReleased { job: id, .. }
        | Event::JobModified { job: id, .. }
        | Event::JobRequeued { job: id, .. }
        | Event::CopyingEnded { job: id, .. }
        | Event::JobEligible { job: id } => is_own(id),
        Event::QueueSet { .. }
        | Event::LicenceSet { .. }
        | Event::PolicySet { .. }
        | Event::ReservationRemoved { .. }
        | Event::ReservationBegun { .. } => true,
        _ => return None,
    })
}

/// Whether an event can change the reason why the job waits, or reveal that it did.
fn can_change_reason(event: &Event, job: JobId) -> bool {
    match event {
        Event::Planned { .. } | Event::RunEnded { .. } | Event::JobFinished { .. } | Event::QueueSet { .. } => true,
        other => other.job().is_some_and(|id| id == job || id == job.whole()),
    }
}

/// The record from which the story of a start is told: for a job that waited long, only its last part.
pub fn told_from(submitted: Sequence, allocated: Sequence) -> Sequence {
    Sequence(submitted.0.max(allocated.0.saturating_sub(RECORDS_TOLD)))
}

/// The number of records before a start that its story covers.
const RECORDS_TOLD: u64 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn a_job_may_have_started_because_of_what_the_table_of_events_says() {
        let (job, nodes, before) = (JobId::job(1), BTreeSet::new(), State::default());
        assert_handles(Concern::Starts, |record| gives_way(&record.event, job, &nodes, &before).is_some());
    }
}
