//! Counting what jobs used and asked for in the windows of a policy (OAR-Q-12).

use super::window_use::{WindowUse, first_slice};
use crate::{jobs::Job, runs::Run, state::State};
use muster_schemas::{
    JobId, Timestamp,
    policy::{UseShare, UseSums},
};
use std::{collections::BTreeMap, sync::Arc};

impl State {
    pub(super) fn use_share(&self) -> Option<&UseShare> {
        self.planning.policy.as_ref()?.use_share.as_deref()
    }

    /// Counts a run that ends now.
    pub(crate) fn count_window_use(&mut self, id: JobId, run: &Run, now: Timestamp) {
        let Some(policy) = self.planning.policy.clone() else { return };
        let (Some(rule), Some(job)) = (policy.use_share.as_deref(), self.jobs.get(&id)) else { return };
        self.window_use.count(rule, job, run, now);
    }

    /// Another policy is in force: use is counted from the beginning if its slices have another length, and not at all without a rule.
    pub(crate) fn window_rule_changed(&mut self, old: Option<u64>) {
        if self.use_share().map(|rule| rule.slice_seconds) != old {
            self.window_use = WindowUse::default();
        }
    }

    /// What jobs of each queue used and asked for in the window before a moment; nothing if the policy does not say so.
    pub fn window_use(&self, now: Timestamp) -> BTreeMap<Arc<str>, UseSums> {
        let Some(rule) = self.use_share() else { return BTreeMap::new() };
        let (from, until) = (first_slice(rule, now), now.unix_seconds());
        let sums = |slices: &BTreeMap<i64, UseSums>| {
            let mut all = UseSums::default();
            slices.range(from..until.max(from)).for_each(|(_, slice)| all.merge(slice));
            all
        };
        self.window_use.queues.iter().map(|(queue, slices)| (queue.clone(), sums(slices))).collect()
    }

    /// How far the account and the owner of a waiting job are above their targets, if the policy compares them (OAR-Q-12).
    pub fn use_share_of(&self, job: &Job, now: Timestamp) -> Option<f64> {
        let rule = self.use_share().filter(|_| job.is_waiting())?;
        let (account, user) = (job.lead().account.as_deref(), job.owner.user.as_str());
        let (from, until) = (first_slice(rule, now), now.unix_seconds());
        let mut all = UseSums::default();
        let slices = self.window_use.queues.get(&job.lead().queue).into_iter();
        let slices = slices.flat_map(|slices| slices.range(from..until.max(from)));
        slices.for_each(|(_, slice)| all.merge(&slice.of(account, user)));
        Some(all.value(rule, account, user))
    }
}
