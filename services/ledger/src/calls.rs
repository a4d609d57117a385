//! Calls of filters: the state says which are outstanding, the log has the facts that filters are told, the work
//! queues have the work.

use crate::{
    descriptions::{described, job_spec},
    log::{Log, LogError},
};
use muster_domain::{
    State,
    filters::calls::{self, CallSeed, DocumentSeed},
};
use muster_schemas::{
    event::{Event, Intake, Record, TraceContext},
    filter::{FileAfter, FilterKind, JobDocument},
    filter_order::{DescribedJob, FilterOrder},
    ids::{JobId, Sequence},
};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// How often it is looked for calls that nobody takes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A call that nobody took for so long, although a runner waits for calls, is not in the queue any more.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// A call to be put into a queue.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    /// The part that is completed from the log.
    pub(crate) seed: CallSeed,
    /// Its key in the queue; another one each time that the call is offered.
    pub(crate) key: String,
    /// The trace of its job.
    pub(crate) trace: TraceContext,
}

/// Which calls were put into the queues, and when. A ledger that starts puts all in that wait for a runner.
#[derive(Debug)]
pub(crate) struct Offers {
    made: HashMap<JobId, Made>,
    next_look: Instant,
    /// How often the bus had lost its queues when it was last looked.
    losses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Made {
    /// The record that offered the call.
    by: Sequence,
    at: Instant,
    times: u32,
}

impl Offers {
    /// Nothing was offered yet.
    pub(crate) fn new(now: Instant) -> Self {
        Self { made: HashMap::new(), next_look: now, losses: 0 }
    }

    /// When [`Offers::overdue`] is next worth a call.
    pub(crate) fn next_look(&self) -> Instant {
        self.next_look
    }

    /// The offer of a job's outstanding call, if it has one that waits for a runner.
    pub(crate) fn offer(&mut self, state: &State, job: JobId, now: Instant) -> Option<Offer> {
        let of = state.job(job)?;
        let call = of.filters.as_ref()?.chain.as_ref()?.call.as_ref()?;
        let seed = calls::call_seed(state, job)?;
        let times = match self.made.get(&job) {
            Some(made) if made.by == call.offered => made.times + 1,
            _ => 0,
        };
        self.made.insert(job, Made { by: call.offered, at: now, times });
        let mut key = format!("{}-{}-{}", seed.call, seed.attempt, call.offered);
        if times > 0 {
            key = format!("{key}-again-{}-{times}", state.sequence());
        }
        Some(Offer { seed, key, trace: of.trace })
    }

    /// Jobs whose calls wait for a runner and are in no queue: they were never put in, or the queue has lost them.
    pub(crate) fn overdue(&mut self, state: &State, is_runner_free: bool, losses: u64, now: Instant) -> Vec<JobId> {
        self.next_look = now + LOOK_EVERY;
        if losses != self.losses {
            self.losses = losses;
            self.made.clear();
        }
        let waiting: HashMap<JobId, Sequence> =
            state.unclaimed_calls().map(|call| (call.id.job, call.offered)).collect();
        self.made.retain(|job, made| waiting.get(job) == Some(&made.by));
        let is_overdue = |job: &JobId| match self.made.get(job) {
            None => true,
            Some(made) => is_runner_free && now.saturating_duration_since(made.at) >= LOST_AFTER,
        };
        let mut overdue: Vec<JobId> = waiting.into_keys().filter(is_overdue).collect();
        overdue.sort_unstable();
        overdue
    }

    /// The offer could not be handed on; it is made again at the next look.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.made.remove(&job);
    }
}

/// The job of which a record makes a call outstanding, or offers it again.
pub(crate) fn offered(state: &State, record: &Record) -> Option<JobId> {
    calls::offered(state, record)
}

/// Completes a call with everything that a runner needs for it.
///
/// # Errors
/// A record that it takes cannot be read.
pub(crate) fn complete(seed: CallSeed, log: &Log) -> Result<FilterOrder, LogError> {
    let spec = job_spec(log, seed.spec)?;
    let tasks = match seed.tasks {
        Some(sequence) => described(log, sequence)?.1,
        None => None,
    };
    let document = document(log, seed.document)?;
    let part = seed.component.filter(|_| seed.call.kind == FilterKind::Submission);
    let job = DescribedJob {
        id: seed.call.job,
        owner: (*seed.owner).clone(),
        submitted: seed.submitted,
        state: seed.state,
        is_entering: seed.is_entering,
        spec,
        tasks,
        template: seed.template,
        is_as_received: matches!(seed.document, DocumentSeed::Received(_)),
        document,
        name: seed.name,
        priority: seed.priority,
        walltime_seconds: seed.walltime_seconds,
        alternatives: seed.alternatives,
        component: seed.component,
        changed: changed_components(log, seed.changed)?,
    };
    let job = match part.and_then(|part| job.of_component(part.offset)) {
        Some(of_component) => of_component,
        None => job,
    };
    Ok(FilterOrder { call: seed.call, attempt: seed.attempt, job, work: seed.work })
}

/// The descriptions of single components as filters left them.
fn changed_components(log: &Log, seeds: Vec<(u32, Sequence)>) -> Result<Vec<(u32, JobDocument)>, LogError> {
    let mut found = Vec::with_capacity(seeds.len());
    for (component, sequence) in seeds {
        found.extend(document(log, DocumentSeed::Changed(sequence))?.map(|document| (component, document)));
    }
    Ok(found)
}

/// The description that a filter gets.
fn document(log: &Log, seed: DocumentSeed) -> Result<Option<JobDocument>, LogError> {
    let (sequence, found) = match seed {
        DocumentSeed::None => return Ok(None),
        DocumentSeed::Received(at) => (at, received(log.record(at)?)),
        DocumentSeed::Changed(at) => (at, changed(log.record(at)?)),
        DocumentSeed::Validated(at) => (at, validated(log.record(at)?)),
    };
    found.ok_or_else(|| LogError::DamagedRecord { sequence, detail: "it should have the description of a job".into() })
}

fn received(record: Option<Record>) -> Option<Option<JobDocument>> {
    match record?.event {
        Event::JobSubmitted { intake: Some(intake), .. } | Event::JobConfigured { intake, .. } => {
            let Intake { document, .. } = Arc::unwrap_or_clone(intake);
            Some(document)
        }
        _ => None,
    }
}

fn changed(record: Option<Record>) -> Option<Option<JobDocument>> {
    match record?.event {
        Event::FilterVerdict { report, .. } => match Arc::unwrap_or_clone(report).file {
            FileAfter::Changed { document, .. } => Some(Some(document)),
            FileAfter::Unchanged | FileAfter::Bad(_) => None,
        },
        _ => None,
    }
}

fn validated(record: Option<Record>) -> Option<Option<JobDocument>> {
    match record?.event {
        Event::JobValidated { validated, .. } => Some(Arc::unwrap_or_clone(validated).document),
        _ => None,
    }
}
