//! Where one job can start at a moment, whatever its queue, the limits and the order say.

use super::{
    Projection, closures,
    jobs::{Holders, opener},
    tell_node,
};
use crate::{
    engine::Engine,
    model::{QueuedTasks, Reservation},
};
use muster_domain::nodes::Node;
use muster_schemas::{
    JobId, Timestamp,
    cluster::QueueSpec,
    policy::Policy,
    resources::{IndexSet, Placement},
};
use std::{collections::BTreeSet, sync::Arc};

impl Projection {
    /// The placement of a waiting job or task on what is free at a time; with `on`, on these nodes (PBS-C-09).
    ///
    /// # Errors
    /// Why it cannot start then, for people.
    pub fn place_alone(&self, id: JobId, on: &[String], now: Timestamp) -> Result<Placement, String> {
        let state = &self.state;
        let job = state.job(id).or_else(|| state.job(id.whole())).ok_or_else(|| format!("job {id} does not exist"))?;
        if job.array.is_some() && id.index.is_none() {
            return Err("an array is started by its tasks".to_owned());
        }
        if let Some(unknown) = on.iter().find(|name| state.node_by_name(name).is_none()) {
            return Err(format!("node `{unknown}` does not exist"));
        }
        let mut holders = Holders::default();
        let gate = || state.gate_reason(job).map_or_else(|| "it does not wait".to_owned(), |reason| reason.to_string());
        let mut queued = holders.queued(state, job).ok_or_else(gate)?;
        let mut engine = self.bare_engine(&mut holders)?;
        queued.slot = None;
        queued.tasks = id
            .index
            .filter(|_| job.array.is_some())
            .map(|index| QueuedTasks { indices: IndexSet::from_range(index, index), headroom: 1 });
        if !on.is_empty() {
            queued.demand = Arc::new(queued.demand.on_nodes(on));
        }
        engine.enqueue(queued);
        let plan = engine.pass(now, &BTreeSet::new());
        let start = plan.starts.into_iter().find(|start| start.job == id);
        let why =
            || plan.reasons.first().map_or_else(|| "it does not fit".to_owned(), |waiting| waiting.reason.to_string());
        start.map(|start| start.placement).ok_or_else(why)
    }

    /// An engine that knows what is free, and no job that waits, no limit and no stopped queue.
    fn bare_engine(&self, holders: &mut Holders) -> Result<Engine, String> {
        let state = &self.state;
        let mut engine = Engine::new(Arc::new(Policy::default())).map_err(|error| error.to_string())?;
        engine.set_default_memory_per_core_bytes(state.settings().default_memory_per_core_bytes);
        engine.set_fixed_starts(state.settings());
        for queue in state.queues() {
            let limits = QueueSpec { max_running_jobs: None, max_running_jobs_per_user: None, ..(*queue.spec).clone() };
            engine.set_queue(&QueueSpec { started: true, ..limits });
        }
        for (name, licence) in state.licences() {
            engine.set_licence(name, licence.total);
        }
        for node in state.nodes() {
            let node: &Node = node;
            tell_node(&mut engine, state, node, &self.ranks);
            engine.set_closures(node.id, closures(node));
        }
        for reservation in state.reservations().filter(|reservation| !reservation.nodes.is_empty()) {
            let (start, end) = reservation.period(state.time());
            engine.set_reservation(Reservation {
                name: reservation.spec.name.as_str().into(),
                start,
                end,
                nodes: reservation.nodes.iter().copied().collect(),
                overlaps: reservation.spec.overlaps,
                attracts: reservation.spec.attracts,
                is_flexible: reservation.spec.is_flexible,
            });
        }
        for job in state.jobs() {
            engine.set_opener(job.id, opener(state, job));
        }
        for run in state.runs() {
            if let Some(job) = state.job(run.job) {
                holders.active(state, job, run).begin(&mut engine);
            }
        }
        for kept in state.jobs().filter_map(|job| holders.kept(state, job)) {
            engine.begin(kept);
        }
        Ok(engine)
    }
}
