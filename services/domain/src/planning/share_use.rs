//! What users have used, for the shares of a policy: whole seconds, halved after each half-life (PBS-FS-05, PBS-FS-08).

use muster_schemas::{NodeId, PartId, RunId, Timestamp, policy::UsageRule, shares::LEAST};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The use of users, by ended runs and by what nodes have measured of those that run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareUse {
    /// When the half-life began that has not passed.
    since: Timestamp,
    /// By user, only those above [`LEAST`].
    pub users: BTreeMap<Arc<str>, u64>,
    /// The processor seconds of runs that run which are charged already, by part and node.
    measured: BTreeMap<RunId, BTreeMap<(PartId, NodeId), u64>>,
}

impl ShareUse {
    /// Nobody has used anything, and a half-life begins.
    pub fn since(now: Timestamp) -> Self {
        Self { since: now, ..Self::default() }
    }

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
    /// toward the next halving: so it does not matter how often this is called. Returns whether a half-life has passed.
    pub fn decay(&mut self, half_life_seconds: u64, now: Timestamp) -> bool {
        let (halvings, began) = self.half_life_at(half_life_seconds, now);
        if halvings == 0 {
            return false;
        }
        self.since = began;
        for used in self.users.values_mut() {
            *used = u32::try_from(halvings).ok().and_then(|halvings| used.checked_shr(halvings)).unwrap_or(0);
        }
        self.users.retain(|_, used| *used > LEAST);
        true
    }

    /// How many half-lives have passed since the last halving, and when the present one began.
    pub(super) fn half_life_at(&self, half_life_seconds: u64, now: Timestamp) -> (u64, Timestamp) {
        let elapsed_seconds = u64::try_from(now.micros_since(self.since) / 1_000_000).unwrap_or(0);
        let halvings = elapsed_seconds.checked_div(half_life_seconds).unwrap_or(0);
        let passed_seconds = halvings.saturating_mul(half_life_seconds);
        (halvings, self.since.plus_seconds(i64::try_from(passed_seconds).unwrap_or(i64::MAX)))
    }

    /// The processor seconds of a part of a run on a node that are charged already.
    pub(super) fn charged_for(&self, node: NodeId, part: PartId) -> u64 {
        self.measured.get(&part.run()).and_then(|parts| parts.get(&(part, node)).copied()).unwrap_or(0)
    }

    /// Charges a user for the processor seconds of a part of a run that are not charged yet.
    pub(super) fn charge_until_now(&mut self, user: &str, node: NodeId, part: PartId, cpu_seconds: u64) {
        let known = self.measured.entry(part.run()).or_default().entry((part, node)).or_default();
        let news = cpu_seconds.saturating_sub(*known);
        *known = cpu_seconds.max(*known);
        self.charge(user, news);
    }

    /// A run is over: the processor seconds of it that were charged while it ran.
    pub(super) fn run_over(&mut self, run: RunId) -> u64 {
        let parts = self.measured.remove(&run).unwrap_or_default();
        parts.into_values().fold(0, u64::saturating_add)
    }

    /// Adds to what a user has used, in the unit of the policy.
    pub fn charge(&mut self, user: &str, amount: u64) {
        if let Some(sum) = self.with(user, amount) {
            match self.users.get_mut(user) {
                Some(used) => *used = sum,
                None => drop(self.users.insert(user.into(), sum)),
            }
        }
    }

    /// What a user would have used with this much more; `None` for nothing, which counts as [`LEAST`].
    pub fn with(&self, user: &str, amount: u64) -> Option<u64> {
        let used = self.users.get(user).copied();
        let base = used.or_else(|| (amount > 0).then_some(LEAST))?;
        Some(base.saturating_add(amount))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-FS-08
    #[test]
    fn use_is_halved_as_often_as_half_lives_have_passed_however_often_it_is_looked_at() {
        let users = [("ann".into(), 1000), ("bob".into(), 3)].into();
        let begun = ShareUse { users, ..ShareUse::since(Timestamp(0)) };
        let second = |seconds: i64| Timestamp(seconds * 1_000_000);
        let (mut once, mut often) = (begun.clone(), begun);
        once.decay(100, second(350));
        for at in 0..=350 {
            often.decay(100, second(at));
        }
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
