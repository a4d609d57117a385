//! Why a job waits: the gate or the shortage that holds it, what is in front of it, its promise, and the smallest
//! change of its request with which it would start at once.
//!
//! Everything shown was planned by the [`Engine`] that plans in production, on a copy: an explanation changes nothing,
//! and shows what the next plan does.

mod changes;
mod outlook;
mod start;

pub use start::{explain_start, told_from};

use crate::{
    class::Size,
    engine::Engine,
    limits::Uses,
    model::{Demand, NodeLoads, QueuedJob},
    pass::{crossed, turn::Turn},
};
use muster_domain::{State, jobs::Job};
use muster_schemas::{
    JobId, Timestamp,
    job::WaitReason,
    views::{PromiseView, WaitExplanation},
};
use outlook::Outlook;
pub(crate) use outlook::nodes_of;

/// Why a job of the state waits, if it does; for an array, why its next task does.
///
/// The engine must be in step with the state. This explains the plan that it would make at `now`.
pub fn explain(engine: &Engine, state: &State, job: &Job, now: Timestamp) -> Option<WaitExplanation> {
    if !job.is_waiting() {
        return None;
    }
    let mut engine = engine.clone();
    engine.set_capacity_freed(state.capacity_freed());
    engine.set_spent(|counter| state.spent(counter, now));
    engine.count_elapsed(now);
    engine.set_user_usage(state.share_use(now));
    engine.set_loads(NodeLoads::of(state));
    engine.set_window_use(state.window_use(now));
    let gate = state.gate_reason(job);
    let Some(waiting) = engine.waiting_job(job.id) else { return Some(gated(state, job, gate)) };
    let outlook = Outlook::of(&engine, waiting, now);
    let reason = gate.or_else(|| outlook.reason()).unwrap_or(WaitReason::NotPlannedYet);
    let starts_now = outlook.starts;
    let expected = (!starts_now).then(|| outlook.expected_start(job)).flatten();
    Some(WaitExplanation {
        reason: (&reason).into(),
        starts_now,
        fits_alone: Some(outlook.fits_alone),
        ahead: Some(outlook.ahead.len() as u64),
        first_ahead: outlook.first_ahead(state),
        limits: outlook.limits(),
        promise: outlook.promise(state),
        expected_start: if starts_now { Some(now) } else { expected },
        changes: if starts_now { Vec::new() } else { changes::that_help(&outlook, state, job) },
    })
}

/// A job held by a gate of its own has no place in the order.
fn gated(state: &State, job: &Job, gate: Option<WaitReason>) -> WaitExplanation {
    let reason = gate.or_else(|| state.wait_reason(job)).unwrap_or(WaitReason::NotPlannedYet);
    let promise = job.slot.as_deref().map(|slot| PromiseView {
        start: slot.start,
        end: None,
        nodes: nodes_of(state, &slot.placement),
    });
    WaitExplanation {
        expected_start: job.predicted_start.or(match reason {
            WaitReason::BeginTime(begin) => Some(begin),
            _ => None,
        }),
        reason: (&reason).into(),
        starts_now: false,
        fits_alone: None,
        ahead: None,
        first_ahead: Vec::new(),
        limits: Vec::new(),
        promise,
        changes: Vec::new(),
    }
}

impl Turn {
    /// The limit that keeps a job from starting with this demand.
    fn limit(&self, job: &QueuedJob, demand: &Demand) -> Option<String> {
        let engine = self.engine();
        let more = engine.least_of(demand);
        let of_quota = || engine.quota_reached(&job.holder, demand, &more, self.now()).map(|breach| breach.to_string());
        engine.limits.reached(&job.holder, demand, &more, &engine.queues).or_else(of_quota)
    }
}

impl Engine {
    /// A waiting job as the engine was told about it.
    pub(crate) fn waiting_job(&self, id: JobId) -> Option<QueuedJob> {
        let entry = self.queue.get(self.queue.place_of(id)?)?;
        Some(QueuedJob {
            id,
            tasks: entry.tasks.clone(),
            demand: self.classes.get(entry.class).demand.clone(),
            holder: entry.holder.clone(),
            priority: entry.priority,
            is_list: entry.is_list,
            arrival: entry.arrival,
            attributes: entry.attributes.clone(),
            slot: entry.slot.clone(),
            activation: entry.activation.clone(),
        })
    }

    /// Whether a job with this demand may run past the border of a window if it starts at a time.
    fn crosses_window(&self, demand: &Demand, now: Timestamp) -> bool {
        let Some(turns) = self.policy.turns.as_deref() else { return false };
        crossed(turns, Size::of(demand, &self.settings).walltime_seconds, now).is_some()
    }

    fn least_of(&self, demand: &Demand) -> Uses {
        crate::class::least(demand, &self.settings)
    }

    fn hopeless_job(&mut self, id: JobId) -> Option<WaitReason> {
        self.hopeless(self.queue.place_of(id)?)
    }
}
