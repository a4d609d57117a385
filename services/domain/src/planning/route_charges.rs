//! Promises and charges of a policy with routes, in a state (PBS-P-09, PBS-P-17).

use crate::state::State;
use muster_schemas::{
    JobId, Timestamp,
    plan::RoutePromise,
    policy::routes::{Owners, Routes},
};
use std::{collections::BTreeMap, sync::Arc};

impl State {
    fn routes(&self) -> Option<&Routes> {
        self.planning.policy.as_ref()?.turns.as_ref()?.routes.as_deref()
    }

    fn owners_rule(&self) -> Option<Owners> {
        self.routes()?.owners
    }

    /// The promises that the last cycle under routes has made, in their order.
    pub fn route_promises(&self) -> &[RoutePromise] {
        &self.routing.promised
    }

    /// What owners have used at a moment, as the policy in force counts it.
    pub fn owner_use(&self, now: Timestamp) -> BTreeMap<(u32, Arc<str>), u64> {
        let Some(rule) = self.owners_rule() else { return BTreeMap::new() };
        let mut routing = self.routing.clone();
        routing.decay(rule.left_after_day_millionths, now);
        routing.used
    }

    pub(crate) fn routes_promised(&mut self, promised: &[RoutePromise]) {
        self.routing.promised = promised.to_vec();
    }

    /// Another policy keeps no promises of this one.
    pub(crate) fn routes_changed(&mut self) {
        let queues: Vec<&str> =
            self.routes().into_iter().flat_map(|routes| &routes.targets).map(|target| target.queue.as_str()).collect();
        let kept = self.routing.promised.iter().filter(|promise| queues.contains(&promise.queue.as_str()));
        self.routing.promised = kept.cloned().collect();
    }

    /// A job starts: its owner is charged.
    pub(crate) fn charge_owner(&mut self, id: JobId, now: Timestamp) {
        let Some(rule) = self.owners_rule() else { return };
        let Some(job) = self.jobs.get(&id) else { return };
        let walltimes = job.components.iter().filter_map(|component| component.shape.alternatives.first());
        let walltime_seconds = walltimes.filter_map(|alternative| alternative.walltime_seconds).max();
        let owner = (job.owner.gid, self.pools.text.share(job.owner.user.as_str()));
        self.routing.decay(rule.left_after_day_millionths, now);
        let used = self.routing.used.entry(owner).or_default();
        *used = used.saturating_add(rule.charge_of(walltime_seconds));
    }
}
