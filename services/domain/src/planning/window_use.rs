//! What jobs of each queue used and asked for, by slices of time (OAR-Q-12).

use crate::{jobs::Job, runs::Run};
use muster_schemas::{
    Timestamp,
    policy::{UseShare, UseSums, slices},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// The most slices of a run that are counted.
const MOST_SLICES: usize = 10_000;

/// The use of ended runs by queue, and by the begin of the slice in seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WindowUse {
    pub(super) queues: BTreeMap<Arc<str>, BTreeMap<i64, UseSums>>,
}

impl WindowUse {
    pub(super) fn count(&mut self, rule: &UseShare, job: &Job, run: &Run, now: Timestamp) {
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
pub(super) fn first_slice(rule: &UseShare, now: Timestamp) -> i64 {
    now.unix_seconds().saturating_sub(i64::try_from(rule.window_seconds).unwrap_or(i64::MAX))
}
