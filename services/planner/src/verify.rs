//! Repeated decisions: at each plan of the log the planner plans again, from the state that was seen then, and its
//! decisions are compared with the recorded ones.
//!
//! The log says for every plan what it was made from: the last record seen, the time, and the jobs left out. A plan's
//! content that the ledger already knew is not recorded, so only recorded reasons, promises and predictions are
//! compared. An external planner does not run again: its plans say that they come from one.

mod compare;

pub use compare::{Difference, What};

use crate::{
    PassLimit,
    predict::{Effort, predict},
    projection::{Planned, Projection},
};
use compare::Decision;
use muster_domain::State;
use muster_schemas::{
    JobId, Sequence, codec,
    event::{Event, Record},
    plan::PlanRecord,
    policy::Policy,
};
use serde::Serialize;
use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// The number of records kept for a plan that may have been made from the state before them.
const MAX_PENDING: usize = 100_000;
/// A record that was the last one for this long was planned after, whether or not there was a plan to record.
const PLANNED_WITHIN_MICROS: i64 = 1_000_000;

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Plans that were repeated.
    pub decisions: u64,
    /// Plans that came out as recorded.
    pub equal: u64,
    /// Plans that did not.
    pub differing: u64,
    /// Plans of an external planner. They are not repeated.
    pub external: u64,
    /// Plans made from a state that was not kept: before the first record read, or too many records earlier.
    pub out_of_reach: u64,
    /// The first differences.
    pub differences: Vec<Difference>,
    /// BLAKE3 over all repeated decisions: the same for the same log on any machine, in hexadecimal.
    pub digest: String,
    /// The last record read.
    pub last: Sequence,
}

/// Reads a log and repeats its decisions.
#[derive(Debug)]
pub struct Verifier {
    projection: Projection,
    /// Records that the projection does not have yet, because a plan may have been made before them.
    pending: VecDeque<Record>,
    /// Replaces the policies of the log.
    against: Option<Arc<Policy>>,
    most_differences: usize,
    /// Jobs that another policy would have started elsewhere or at another time, and that were already counted.
    told: BTreeSet<JobId>,
    hasher: blake3::Hasher,
    verdict: Verdict,
}

impl Verifier {
    /// Starts from a state. Only this many differences are kept; all are counted.
    pub fn new(state: State, most_differences: usize) -> Self {
        let last = state.sequence();
        Self {
            projection: Projection::of(state),
            pending: VecDeque::new(),
            against: None,
            most_differences,
            told: BTreeSet::new(),
            hasher: blake3::Hasher::new(),
            verdict: Verdict { last, ..Verdict::default() },
        }
    }

    /// The same under a different policy from those of the log: what it would have decided in the same states. Promises
    /// and predictions of one policy say nothing about another, so only starts are compared.
    #[must_use]
    pub fn against(mut self, policy: Arc<Policy>) -> Self {
        let mut state = self.projection.state().clone();
        let (sequence, time) = (state.sequence(), state.time());
        // A policy takes nothing of nodes.
        let _ = state.apply(&Record {
            sequence,
            time,
            actor: Arc::new(muster_schemas::event::Actor::Ledger),
            command: muster_schemas::CommandId::derived(&[b"against"]),
            trace: muster_schemas::event::TraceContext::default(),
            event: Event::PolicySet { policy: policy.clone() },
            epoch: 0,
        });
        self.projection = Projection::of(state);
        self.against = Some(policy);
        self
    }

    /// Reads the next record.
    pub fn read(&mut self, record: &Record) {
        self.verdict.last = record.sequence;
        if let Event::Planned { plan } = &record.event {
            self.decide(record, plan);
        }
        let mut record = record.clone();
        if let (Event::PolicySet { policy }, Some(other)) = (&mut record.event, &self.against) {
            *policy = other.clone();
        }
        self.pending.push_back(record);
        if self.pending.len() > MAX_PENDING
            && let Some(oldest) = self.pending.front()
        {
            self.go_on_to(oldest.sequence);
        }
    }

    /// The result.
    pub fn finish(mut self) -> Verdict {
        self.go_on_to(Sequence(u64::MAX));
        Verdict { digest: self.hasher.finalize().to_hex().to_string(), ..self.verdict }
    }

    fn decide(&mut self, record: &Record, plan: &PlanRecord) {
        if plan.external {
            self.verdict.external += 1;
            return;
        }
        if plan.seen < self.projection.state().sequence() {
            self.verdict.out_of_reach += 1;
            return;
        }
        self.go_on_to(plan.seen);
        let recorded = Decision::recorded(record, plan, &self.pending);
        if recorded.is_prediction() && self.against.is_some() {
            return;
        }
        let again = if recorded.is_prediction() { self.predict(plan) } else { self.plan(plan) };
        self.verdict.decisions += 1;
        let differences = recorded.compare(&again, self.projection.state(), self.against.is_some());
        self.hash(record.sequence, &again);
        self.count(differences);
    }

    /// Brings the projection up to a record. Between two plans of the log the planner can have made some that did
    /// nothing, or were held back, and are not in it: what another policy would have started then is a difference too.
    fn go_on_to(&mut self, last: Sequence) {
        while let Some(next) = self.pending.pop_front_if(|next| next.sequence <= last) {
            // The ledger has accepted it.
            let is_due = self.projection.apply(&next).unwrap_or(true);
            let following = self.pending.front().filter(|following| following.sequence <= last);
            let until = following.map(|following| following.time.micros_since(next.time));
            let was_planned = until.map_or(last == Sequence(u64::MAX), |micros| micros >= PLANNED_WITHIN_MICROS);
            if self.against.is_some() && is_due && was_planned {
                let silent = Decision::silent(next.sequence, next.time);
                let again = Decision::planned(self.projection.plan(next.time, &BTreeSet::new()).plan);
                let differences = silent.compare(&again, self.projection.state(), true);
                self.verdict.decisions += 1;
                self.count(differences);
            }
        }
    }

    /// Counts a decision by its differences. What another policy would start repeatedly is counted once.
    fn count(&mut self, mut differences: Vec<Difference>) {
        if self.against.is_some() {
            differences.retain(|difference| difference.job.is_none_or(|job| self.told.insert(job)));
        }
        if differences.is_empty() {
            self.verdict.equal += 1;
        } else {
            self.verdict.differing += 1;
            let room = self.most_differences.saturating_sub(self.verdict.differences.len());
            self.verdict.differences.extend(differences.into_iter().take(room));
        }
    }

    fn plan(&mut self, plan: &PlanRecord) -> Decision {
        let limit = plan.cut_after.map_or(PassLimit::Endless, PassLimit::Looks);
        let left_out = plan.left_out.iter().copied().collect();
        let Planned { plan, .. } = self.projection.plan_within(plan.at, &left_out, limit);
        Decision::planned(plan)
    }

    fn predict(&self, plan: &PlanRecord) -> Decision {
        Decision::predicted(predict(self.projection.engine(), self.projection.followers(), plan.at, Effort::default()))
    }

    fn hash(&mut self, sequence: Sequence, decision: &Decision) {
        self.hasher.update(&sequence.0.to_le_bytes());
        // A plan that the ledger accepted is small enough to be encoded.
        if let Ok(bytes) = codec::encode(decision.content()) {
            self.hasher.update(&bytes);
        }
    }
}
