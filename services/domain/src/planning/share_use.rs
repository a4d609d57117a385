//! What users have used, for the shares of a policy: whole seconds, halved after each half-life (PBS-FS-05, PBS-FS-08).

use crate::{jobs::Job, runs::Run, state::State};
use muster_schemas::{
    JobId, Timestamp,
    job::Usage,
    policy::{Charge, UsageRule},
    resources::ComponentPlacement,
    shares::LEAST,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The use of users by ended runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShareUse {
    /// When the half-life began that has not passed.
    since: Timestamp,
    /// By user, only those above [`LEAST`].
    users: BTreeMap<Arc<str>, u64>,
}

impl ShareUse {
    /// The rule changed: what was used until now counts as the old one says, and a half-life begins.
    pub(super) fn rule_changed(&mut self, old: Option<UsageRule>, new: Option<UsageRule>, now: Timestamp) {
        if old.map(|rule| rule.half_life_seconds) == new.map(|rule| rule.half_life_seconds) {
            return;
        }
        if let Some(old) = old {
            self.decay(old.half_life_seconds, now);
        }
        self.since = now;
    }

    /// Halves all use once for each whole half-life that has passed. Fractions are dropped, and the rest of the time counts
    /// toward the next halving: so it does not matter how often this is called.
    fn decay(&mut self, half_life_seconds: u64, now: Timestamp) {
        let elapsed_seconds = u64::try_from(now.micros_since(self.since) / 1_000_000).unwrap_or(0);
        let Some(halvings) = elapsed_seconds.checked_div(half_life_seconds).filter(|halvings| *halvings > 0) else {
            return;
        };
        let passed_seconds = halvings.saturating_mul(half_life_seconds);
        self.since = self.since.plus_seconds(i64::try_from(passed_seconds).unwrap_or(i64::MAX));
        for used in self.users.values_mut() {
            *used = u32::try_from(halvings).ok().and_then(|halvings| used.checked_shr(halvings)).unwrap_or(0);
        }
        self.users.retain(|_, used| *used > LEAST);
    }

    fn charge(&mut self, user: &str, amount: u64) {
        if amount == 0 {
            return;
        }
        match self.users.get_mut(user) {
            Some(used) => *used = used.saturating_add(amount),
            None => drop(self.users.insert(user.into(), LEAST.saturating_add(amount))),
        }
    }
}

/// What a run is charged that lasts until a moment. Its present size counts for all of its time; components that ended alone
/// count until then, with what they had.
fn charged(rule: UsageRule, job: &Job, run: &Run, usage: Option<&Usage>, until: Timestamp) -> u64 {
    match rule.charge {
        Charge::CpuSeconds => usage.map_or(0, |usage| usage.cpu_time_micros / 1_000_000),
        Charge::CoreSeconds => {
            let Some(started) = run.started else { return 0 };
            let used = |placed: &ComponentPlacement, until: Timestamp| {
                let cores: u64 = placed.shares.iter().map(|share| share.cores.len()).sum();
                cores.saturating_mul(u64::try_from(until.micros_since(started)).unwrap_or(0))
            };
            let over: BTreeMap<u32, (&ComponentPlacement, Timestamp)> =
                job.components_over().map(|(number, over)| (number, (&over.placement, over.at))).collect();
            let parts = (0..).zip(&run.placement.components).map(|(number, placed)| match over.get(&number) {
                Some((placed, at)) => used(placed, *at),
                None => used(placed, until),
            });
            parts.fold(0, u64::saturating_add) / 1_000_000
        }
    }
}

impl State {
    fn usage_rule(&self) -> Option<UsageRule> {
        self.planning.policy.as_ref()?.turns.as_ref()?.usage
    }

    /// Charges the owner of a run that ends now.
    pub(crate) fn count_share_use(&mut self, id: JobId, run: &Run, usage: &Usage, now: Timestamp) {
        let Some(rule) = self.usage_rule() else { return };
        let Some(job) = self.jobs.get(&id) else { return };
        let amount = charged(rule, job, run, Some(usage), now);
        self.share_use.decay(rule.half_life_seconds, now);
        self.share_use.charge(&job.owner.user, amount);
    }

    /// What users have used at a moment, as the policy in force counts it; those that are not there have used nothing.
    pub fn share_use(&self, now: Timestamp) -> BTreeMap<Arc<str>, u64> {
        let Some(rule) = self.usage_rule() else { return BTreeMap::new() };
        let mut share_use = self.share_use.clone();
        share_use.decay(rule.half_life_seconds, now);
        if rule.charge == Charge::CoreSeconds {
            for run in self.runs.values() {
                let Some(job) = self.jobs.get(&run.job) else { continue };
                share_use.charge(&job.owner.user, charged(rule, job, run, None, now));
            }
        }
        share_use.users
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-FS-08
    #[test]
    fn use_is_halved_as_often_as_half_lives_have_passed_however_often_it_is_looked_at() {
        let begun = ShareUse { since: Timestamp(0), users: [("ann".into(), 1000), ("bob".into(), 3)].into() };
        let second = |seconds: i64| Timestamp(seconds * 1_000_000);
        let (mut once, mut often) = (begun.clone(), begun);
        once.decay(100, second(350));
        (0..=350).for_each(|at| often.decay(100, second(at)));
        assert_eq!(once, often);
        assert_eq!(once.users.iter().map(|(user, used)| (&**user, *used)).collect::<Vec<_>>(), [("ann", 125)]);
        assert_eq!(once.since, second(300));
        once.decay(0, second(1_000_000));
        assert_eq!(once, often, "a half-life of nothing keeps all");
    }

    /// PBS-FS-05
    #[test]
    fn a_charge_counts_from_the_least_use() {
        let mut share_use = ShareUse::default();
        share_use.charge("ann", 0);
        assert!(share_use.users.is_empty());
        share_use.charge("ann", 5);
        share_use.charge("ann", u64::MAX);
        share_use.charge("bob", 5);
        assert_eq!(share_use.users.get("ann"), Some(&u64::MAX));
        assert_eq!(share_use.users.get("bob"), Some(&6));
    }
}
