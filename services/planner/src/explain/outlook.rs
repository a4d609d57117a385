//! A waiting job as the plan of a moment treats it.

use crate::{
    engine::{Engine, parts},
    machine::expected_end,
    model::QueuedJob,
    pass::{
        Plan,
        turn::{Promise, Turn},
    },
    predict::{Effort, predict},
};
use muster_domain::{State, jobs::Job};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    job::WaitReason,
    resources::Placement,
    views::{JobAhead, NodePromise, PromiseView, ReasonView},
};
use std::collections::BTreeMap;

/// The number of jobs in front that are named.
const NAMED_AHEAD: usize = 5;
/// With this many waiting jobs the future is simulated for one cycle, with fewer for proportionally more.
const FORESEEN_JOBS: u32 = 20_000;

/// A waiting job as the plan of a moment treats it.
pub(super) struct Outlook<'e> {
    /// Before the plan.
    pub engine: &'e Engine,
    pub now: Timestamp,
    pub job: QueuedJob,
    pub plan: Plan,
    /// After the plan.
    pub planned: Engine,
    /// Promises for this plan only.
    pub promises: Vec<Promise>,
    pub starts: bool,
    /// Waiting jobs in front, in order.
    pub ahead: Vec<JobId>,
    /// The situation at its turn.
    pub turn: Turn,
    /// The engine as if nobody else waited.
    pub alone: Engine,
    pub fits_alone: bool,
}

impl<'e> Outlook<'e> {
    pub fn of(engine: &'e Engine, job: QueuedJob, now: Timestamp) -> Self {
        let mut planned = engine.clone();
        let (plan, promises) = planned.pass_with_promises(now);
        let order = engine.order_of_looks(now, planned.order().collect());
        let place = order.iter().position(|other| *other == job.id).unwrap_or(order.len());
        let behind = order.iter().skip(place + 1).copied();
        let turn = engine.turn_of(job.id, behind, now);
        let alone = engine.without_promises(now);
        let fits_alone = alone.fitting(&job.demand, now).is_some();
        let starts = plan.starts.iter().any(|start| start.job == job.id || start.job.whole() == job.id);
        Self {
            engine,
            now,
            plan,
            planned,
            promises,
            starts,
            ahead: order[..place].to_vec(),
            turn,
            alone,
            fits_alone,
            job,
        }
    }

    /// What the plan says about the job, or what follows from it.
    pub fn reason(&self) -> Option<WaitReason> {
        if self.starts {
            return None;
        }
        let told = self.plan.reasons.iter().find(|waiting| waiting.job == self.job.id);
        if let Some(told) = told {
            return Some(told.reason.clone());
        }
        if let Some(slot) = self.planned.slot(self.job.id) {
            return Some(WaitReason::Reserved { start: slot.start });
        }
        let demand = &*self.job.demand;
        if let Some(limit) = self.turn.limit(&self.job, demand) {
            return Some(WaitReason::Limit(limit));
        }
        if let Some(hopeless) = self.planned.clone().hopeless_job(self.job.id) {
            return Some(hopeless);
        }
        if let Some(blocker) = self.turn.blocker(demand) {
            return Some(WaitReason::BehindJob(blocker));
        }
        if !self.fits_alone {
            return Some(WaitReason::Resources(self.alone.shortage(demand, self.now).into()));
        }
        let delayed = || self.turn.delayed_by(demand).map(WaitReason::WouldDelay);
        let behind = || self.ahead.first().copied().map(WaitReason::BehindJob);
        delayed().or_else(behind)
    }

    pub fn first_ahead(&self, state: &State) -> Vec<JobAhead> {
        let named = &self.ahead[..self.ahead.len().min(NAMED_AHEAD)];
        let told: BTreeMap<JobId, &WaitReason> =
            self.plan.reasons.iter().map(|waiting| (waiting.job, &waiting.reason)).collect();
        let ahead = |id: &JobId| {
            let from_state = || state.wait_reason(state.job(*id)?);
            let reason = told.get(id).map(|reason| (*reason).clone()).or_else(from_state);
            JobAhead {
                job: *id,
                reason: reason.as_ref().map(ReasonView::from),
                promised_start: self.promised_start(*id),
            }
        };
        named.iter().map(ahead).collect()
    }

    fn promised_start(&self, job: JobId) -> Option<Timestamp> {
        let of_this_plan = || self.promises.iter().find(|promise| promise.job == job).map(|promise| promise.start);
        self.planned.slot(job).map(|slot| slot.start).or_else(of_this_plan)
    }

    pub fn limits(&self) -> Vec<muster_schemas::views::LimitView> {
        let more = self.planned.least_of(&self.job.demand);
        let mut limits = self.engine.limits.applying(&self.job.holder, &self.job.demand, &more, &self.engine.queues);
        let parts = parts(&self.job.holder, &self.job.demand, &more);
        limits.extend(self.engine.quotas.applying(&parts, self.now));
        limits
    }

    pub fn promise(&self, state: &State) -> Option<PromiseView> {
        let view = |start: Timestamp, placement: &Placement| {
            let guard = i64::try_from(self.job.demand.guard_seconds).unwrap_or(i64::MAX);
            let end = expected_end(&self.job.demand, placement, start);
            let end = (end < Timestamp::MAX).then(|| end.plus_seconds(-guard));
            Some(PromiseView { start, end, nodes: nodes_of(state, placement) })
        };
        if let Some(slot) = self.planned.slot(self.job.id) {
            return view(slot.start, &slot.placement);
        }
        let promise = self.promises.iter().find(|promise| promise.job == self.job.id)?;
        view(promise.start, &self.planned.real_placement(&promise.placement))
    }

    pub fn expected_start(&self, job: &Job) -> Option<Timestamp> {
        let predicted = job.predicted_start.filter(|start| *start > self.now);
        self.promised_start(self.job.id).or(predicted).or_else(|| {
            // The planner foresees starts by itself; here only as far as it takes little time.
            let effort = Effort::of_looks(FORESEEN_JOBS, self.engine.waiting_jobs());
            let foreseen = predict(self.engine, Vec::new(), self.now, effort);
            foreseen.into_iter().find(|foreseen| foreseen.job == self.job.id)?.start
        })
    }
}

/// The holdings of a placement on each node, each node once, in the order in which it names them.
pub(crate) fn nodes_of(state: &State, placement: &Placement) -> Vec<NodePromise> {
    let mut known: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut nodes: Vec<NodePromise> = Vec::new();
    for share in placement.shares() {
        let at = *known.entry(share.node).or_insert_with(|| {
            let node = state.node_name(share.node).into_owned();
            nodes.push(NodePromise { node, cores: 0, gpus: 0, memory_bytes: 0, exclusive: false });
            nodes.len() - 1
        });
        let node = &mut nodes[at];
        node.cores += share.cores.len();
        node.gpus += share.gpus.len();
        node.memory_bytes = node.memory_bytes.saturating_add(share.memory_bytes);
        node.exclusive |= share.exclusive;
    }
    nodes
}
