//! Promises, charges, lifted rules and units of a policy with routes, in a state (PBS-P-09, PBS-P-11, PBS-P-17, PBS-P-18).

use super::routing::Decay;
use crate::state::State;
use muster_schemas::{
    JobId, Timestamp,
    plan::{QueueLift, RoutePromise, RunUnits},
    policy::{Policy, routes::Routes},
    resources::IndexSet,
};
use std::{collections::BTreeMap, sync::Arc};

/// The routes of a policy.
fn routes_of(policy: &Policy) -> Option<&Routes> {
    policy.turns.as_ref()?.routes.as_deref()
}

impl State {
    pub(super) fn routes(&self) -> Option<&Routes> {
        routes_of(self.planning.policy.as_deref()?)
    }

    /// Whether rules of hours end early for idle queues: only then anybody has to know since when they are idle.
    fn ends_early(&self) -> bool {
        self.routes().and_then(|routes| routes.hours.as_ref()).is_some_and(|hours| hours.early_end.is_some())
    }

    /// The promises that the last cycle under routes has made, in their order.
    pub fn route_promises(&self) -> &[RoutePromise] {
        &self.routing.promised
    }

    /// What owners have used at a moment, as the policy in force counts it.
    pub fn owner_use(&self, now: Timestamp) -> BTreeMap<(u32, Arc<str>), u64> {
        let Some(routes) = self.routes().filter(|routes| routes.owners.is_some()) else { return BTreeMap::new() };
        let mut routing = self.routing.clone();
        routing.decay(Decay::of(routes), now);
        routing.used
    }

    /// Since when no job has run in a queue, as far as the policy in force has to know it; those in which jobs run are there too.
    pub fn queues_idle_since(&self) -> &BTreeMap<String, Timestamp> {
        &self.routing.idle_since
    }

    /// Until when the rules of the usual hours are lifted for queues.
    pub fn lifted_hours(&self) -> &BTreeMap<String, Timestamp> {
        &self.routing.lifted
    }

    /// The units of runs on machines whose units have numbers.
    pub fn run_units(&self) -> &BTreeMap<JobId, IndexSet> {
        &self.routing.units
    }

    pub(crate) fn routes_promised(&mut self, promised: &[RoutePromise]) {
        self.routing.promised = promised.to_vec();
    }

    pub(crate) fn hours_lifted(&mut self, lifted: &[QueueLift]) {
        self.routing.lifted = lifted.iter().map(|lift| (lift.queue.clone(), lift.until)).collect();
    }

    /// Jobs that have started got these units. Their runs give them back.
    pub(crate) fn units_given(&mut self, given: &[RunUnits]) {
        for RunUnits { job, units, .. } in given {
            if self.jobs.get(job).is_some_and(|job| job.run().is_some()) {
                self.routing.units.insert(*job, units.clone());
            }
        }
    }

    /// A run is over: its queue may be idle from now on.
    pub(crate) fn route_run_ended(&mut self, id: JobId, now: Timestamp) {
        self.routing.units.remove(&id);
        if !self.ends_early() {
            return;
        }
        let Some(queue) = self.jobs.get(&id).map(|job| job.lead().queue.to_string()) else { return };
        if let Some(since) = self.routing.idle_since.get_mut(&queue) {
            *since = now;
        }
    }

    /// Another policy comes into force: if it leaves other parts of the use of owners, the days that have passed count as the one
    /// before says; nothing is lost on those under one that counts no use.
    pub(crate) fn settle_owner_use(&mut self, next: &Policy, now: Timestamp) {
        let policy = self.planning.policy.clone();
        let counting = policy.as_deref().and_then(routes_of).filter(|routes| routes.owners.is_some());
        let before = counting.map(Decay::of).unwrap_or_default();
        if before != routes_of(next).map(Decay::of).unwrap_or_default() {
            self.routing.decay(before, now);
        }
    }

    /// Another policy keeps no promises of this one, and knows of each of its queues since when it is idle.
    pub(crate) fn routes_changed(&mut self, now: Timestamp) {
        self.routing.comments.clear();
        let targets = self.routes().into_iter().flat_map(|routes| &routes.targets);
        let mut queues: Vec<String> = targets.map(|target| target.queue.clone()).collect();
        self.routing.promised.retain(|promise| queues.contains(&promise.queue));
        if !self.ends_early() {
            queues.clear();
        }
        self.routing.idle_since.retain(|queue, _| queues.contains(queue));
        self.routing.lifted.retain(|queue, _| queues.contains(queue));
        for queue in queues {
            self.routing.idle_since.entry(queue).or_insert(now);
        }
    }

    /// A job starts: its owner is charged.
    pub(crate) fn charge_owner(&mut self, id: JobId, now: Timestamp) {
        let Some(policy) = self.planning.policy.clone() else { return };
        let Some(routes) = routes_of(&policy) else { return };
        let Some(rule) = routes.owners else { return };
        let Some(job) = self.jobs.get(&id) else { return };
        let walltimes = job.components.iter().filter_map(|component| component.shape.alternatives.first());
        let walltime_seconds = walltimes.filter_map(|alternative| alternative.walltime_seconds).max();
        let owner = (job.owner.gid, self.pools.text.share(job.owner.user.as_str()));
        self.routing.decay(Decay::of(routes), now);
        let used = self.routing.used.entry(owner).or_default();
        *used = used.saturating_add(rule.charge_of(walltime_seconds));
    }
}
