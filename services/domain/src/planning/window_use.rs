//! What jobs of each queue used and asked for, by slices of time (OAR-Q-12).

use crate::{jobs::Job, runs::Run, state::State};
use muster_schemas::{
    JobId, Timestamp,
    policy::{UseShare, UseSums, slices},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The most slices of a run that are counted.
const MOST_SLICES: usize = 10_000;

/// The use of ended runs by queue, and by the begin of the slice in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WindowUse {
    queues: BTreeMap<Arc<str>, BTreeMap<i64, UseSums>>,
}

impl WindowUse {
    fn count(&mut self, rule: &UseShare, job: &Job, run: &Run, now: Timestamp) {
        let Some(started) = run.started else { return };
        // A slice in which the window begins does not count.
        let counted_from = Timestamp::from_unix_seconds(first_slice(rule, now));
        let user: Arc<str> = job.owner.user.as_str().into();
        for (component, placed) in job.components.iter().zip(&run.placement.components) {
            let cores: u64 = placed.shares.iter().map(|share| share.cores.len()).sum();
            let way = component.shape.alternatives.get(placed.alternative as usize);
            let asked = way.and_then(|way| way.walltime_seconds).and_then(|seconds| i64::try_from(seconds).ok());
            // Beyond one more window nothing counts together with the use.
            let last = now.plus_seconds(i64::try_from(rule.window_seconds).unwrap_or(i64::MAX));
            let asked_until = asked.map_or(now, |seconds| started.plus_seconds(seconds).min(last));
            let of_queue = self.queues.entry(component.queue.clone()).or_default();
            let mut add = |until: Timestamp, is_use: bool| {
                let begin = started.max(counted_from);
                for (slice, seconds) in slices(begin, until, rule.slice_seconds).take(MOST_SLICES) {
                    let amount = cores.saturating_mul(seconds);
                    let (used, asked) = if is_use { (amount, 0) } else { (0, amount) };
                    of_queue.entry(slice).or_default().add(&user, component.account.as_ref(), used, asked);
                }
            };
            add(now, true);
            add(asked_until, false);
        }
        self.forget(rule, now);
    }

    /// Slices that no window reaches any more are dropped.
    fn forget(&mut self, rule: &UseShare, now: Timestamp) {
        let from = first_slice(rule, now);
        self.queues.values_mut().for_each(|slices| slices.retain(|slice, _| *slice >= from));
        self.queues.retain(|_, slices| !slices.is_empty());
    }
}

/// The first second at which a slice may begin to count.
fn first_slice(rule: &UseShare, now: Timestamp) -> i64 {
    now.unix_seconds().saturating_sub(i64::try_from(rule.window_seconds).unwrap_or(i64::MAX))
}

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
}
