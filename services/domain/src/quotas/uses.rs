//! What the jobs of a state hold, as quotas count it.

use super::{Book, Marks, Part, Subject};
use crate::{
    jobs::{Component, Job},
    runs::Run,
    state::State,
};
use muster_schemas::{RunId, Timestamp, resources::Placement};
use std::sync::Arc;

/// What sets a job apart for quotas, if anything does.
pub fn marks(state: &State, job: &Job) -> Option<Arc<Marks>> {
    let accounts = state.accounts();
    let makes_way = |component: &Component| component.class().is_some_and(|class| accounts.is_preempted(class));
    let marks = Marks {
        kinds: job.kinds().to_vec(),
        is_unlimited: job.exceeds_quotas(),
        is_uncounted: job.opens_domain().is_some(),
        is_apart: job.components.iter().all(makes_way),
    };
    (marks != Marks::default()).then(|| Arc::new(marks))
}

/// The cores of all nodes of the cluster.
pub fn all_cores(state: &State) -> u64 {
    state.nodes().map(|node| u64::from(node.spec.cores)).sum()
}

/// The components of a job with what a placement gives them.
pub(crate) fn parts(state: &State, job: &Job, placement: &Placement) -> Vec<Part> {
    let marks = marks(state, job);
    let components = job.components.iter().zip(&placement.components);
    let part = |(component, placed): (&Component, &muster_schemas::resources::ComponentPlacement)| Part {
        subject: Subject {
            queue: component.queue.clone(),
            account: component.account.clone(),
            user: job.owner.user.as_str().into(),
            marks: marks.clone(),
        },
        // A component that has ended while others continue holds nothing.
        jobs: u64::from(!placed.shares.is_empty()),
        cores: placed.shares.iter().map(|share| share.cores.len()).sum(),
        walltime_seconds: walltime(component, placed.alternative).unwrap_or(u64::MAX),
    };
    components.map(part).collect()
}

fn walltime(component: &Component, alternative: u32) -> Option<u64> {
    component.shape.alternatives.get(alternative as usize)?.walltime_seconds
}

/// A book with all runs of a state, which last until their walltimes are over; `None` if there are no quotas.
pub(crate) fn book_of_runs(state: &State, now: Timestamp) -> Option<Book<RunId>> {
    let table = state.settings().quotas.as_deref()?;
    let mut book = Book::new(Arc::new(table.clone()), all_cores(state));
    for run in state.runs() {
        let Some(job) = state.job(run.job) else { continue };
        let parts = parts(state, job, &run.placement);
        book.hold(run.id, &parts, Timestamp(i64::MIN), expected_end(run, &parts, now));
    }
    Some(book)
}

/// One that has exceeded its walltime ends at any moment, but is still there. The walltime of one that is suspended stands still.
fn expected_end(run: &Run, parts: &[Part], now: Timestamp) -> Timestamp {
    match run.is_suspended() {
        true => Timestamp::MAX,
        false => end_of(parts, run.started.unwrap_or(run.allocated)).max(now.plus_micros(1)),
    }
}

/// When the last component of a job is over at the latest that starts at a time.
pub(crate) fn end_of(parts: &[Part], start: Timestamp) -> Timestamp {
    let longest = parts.iter().map(|part| part.walltime_seconds).max().and_then(|seconds| i64::try_from(seconds).ok());
    longest.map_or(Timestamp::MAX, |seconds| start.plus_seconds(seconds).min(Timestamp::MAX))
}
