//! What a policy with routes carries from one cycle to the next: its promises, and what owners have used (PBS-P-09, PBS-P-17).

use crate::state::State;
use muster_schemas::{
    JobId, Timestamp,
    plan::RoutePromise,
    policy::routes::{Owners, Routes},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

const DAY_SECONDS: i64 = 86_400;
const ONE: u128 = 1_000_000;
/// After so many days nothing is left of any use, unless all of it is.
const MOST_DAYS: i64 = 100_000;

/// What the next cycle has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Routing {
    promised: Vec<RoutePromise>,
    /// What owners, each a user in a group, have used.
    used: BTreeMap<(u32, Arc<str>), u64>,
    /// When the day began that is not over.
    since: Timestamp,
}

impl Routing {
    /// Once for each whole day a part of all use is left. Fractions are dropped each day, and the rest of the time counts
    /// toward the next one.
    fn decay(&mut self, left_millionths: Option<u32>, now: Timestamp) {
        let days = (now.micros_since(self.since) / 1_000_000 / DAY_SECONDS).clamp(0, MOST_DAYS);
        if days == 0 {
            return;
        }
        self.since = if self.used.is_empty() { now } else { self.since.plus_seconds(days * DAY_SECONDS) };
        let Some(left) = left_millionths.map(u128::from).filter(|left| *left < ONE) else { return };
        for used in self.used.values_mut() {
            for _ in 0..days {
                if *used == 0 {
                    break;
                }
                *used = u64::try_from(u128::from(*used) * left / ONE).unwrap_or(u64::MAX);
            }
        }
        self.used.retain(|_, used| *used > 0);
    }
}

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
        let mut routing = Routing { promised: Vec::new(), ..self.routing.clone() };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-P-09: once a day a part of the use is left, however often that is looked at.
    #[test]
    fn a_part_of_the_use_is_left_after_each_day() {
        let begun = Routing {
            used: [((100, Arc::from("ann")), 100), ((100, Arc::from("bob")), 1)].into(),
            ..Routing::default()
        };
        let hours = |hours: i64| Timestamp(hours * 3_600_000_000);
        let (mut once, mut often) = (begun.clone(), begun.clone());
        once.decay(Some(750_000), hours(50));
        (0..=50).for_each(|at| often.decay(Some(750_000), hours(at)));
        assert_eq!(once, often);
        assert_eq!(once.used.into_values().collect::<Vec<_>>(), [56], "75, then 56; and nothing of 1");
        let mut all = begun;
        all.decay(None, hours(500));
        assert_eq!(all.used.len(), 2);
    }
}
