//! What a policy with routes carries from one cycle to the next: its promises, what owners have used, since when queues
//! are idle and how long their rules are lifted, and the units of runs (PBS-P-09, PBS-P-11, PBS-P-17, PBS-P-18).

use super::comments::JobComment;
use muster_schemas::{JobId, Timestamp, plan::RoutePromise, policy::routes::Routes, resources::IndexSet};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

const DAY_SECONDS: i64 = 86_400;
const ONE: u128 = 1_000_000;
/// After so many days nothing is left of any use, unless all of it is.
const MOST_DAYS: i64 = 100_000;

/// What the next cycle has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Routing {
    pub(super) promised: Vec<RoutePromise>,
    /// What owners, each a user in a group, have used.
    pub(super) used: BTreeMap<(u32, Arc<str>), u64>,
    /// When the day began that is not over.
    since: Timestamp,
    /// When the last run of a queue ended, or the policy came into force; for policies whose rules of hours end early only.
    pub(super) idle_since: BTreeMap<String, Timestamp>,
    /// Until when the rules of the usual hours are lifted for a queue.
    pub(super) lifted: BTreeMap<String, Timestamp>,
    /// The units of runs on machines whose units have numbers.
    pub(super) units: BTreeMap<JobId, IndexSet>,
    /// The comments of waiting jobs.
    pub(super) comments: BTreeMap<JobId, JobComment>,
}

/// The parts of the use of owners that are left after a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Decay<'p> {
    left_millionths: Option<u32>,
    over_left_millionths: Option<u32>,
    /// The groups to which the second part applies.
    over_allocation: &'p [u32],
}

impl<'p> Decay<'p> {
    pub(super) fn of(routes: &'p Routes) -> Self {
        let owners = routes.owners.unwrap_or_default();
        Self {
            left_millionths: owners.left_after_day_millionths,
            over_left_millionths: owners.over_left_after_day_millionths,
            over_allocation: &routes.over_allocation,
        }
    }

    /// In millionths; [`ONE`] means all.
    fn left(&self, group: u32) -> u128 {
        let over = self.over_left_millionths.filter(|_| self.over_allocation.contains(&group));
        over.or(self.left_millionths).map_or(ONE, u128::from).min(ONE)
    }
}

impl Routing {
    /// Once for each whole day a part of all use is left. Fractions are dropped each day, and the rest of the time counts
    /// toward the next one.
    pub(super) fn decay(&mut self, decay: Decay<'_>, now: Timestamp) {
        let days = (now.micros_since(self.since) / 1_000_000 / DAY_SECONDS).clamp(0, MOST_DAYS);
        if days == 0 {
            return;
        }
        self.since = if self.used.is_empty() { now } else { self.since.plus_seconds(days * DAY_SECONDS) };
        for ((group, _), used) in &mut self.used {
            let left = decay.left(*group);
            for _ in 0..if left < ONE { days } else { 0 } {
                if *used == 0 {
                    break;
                }
                *used = u64::try_from(u128::from(*used) * left / ONE).unwrap_or(u64::MAX);
            }
        }
        self.used.retain(|_, used| *used > 0);
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
        let most = Decay { left_millionths: Some(750_000), ..Decay::default() };
        once.decay(most, hours(50));
        (0..=50).for_each(|at| often.decay(most, hours(at)));
        assert_eq!(once, often);
        assert_eq!(once.used.into_values().collect::<Vec<_>>(), [56], "75, then 56; and nothing of 1");
        let mut all = begun.clone();
        all.decay(Decay::default(), hours(500));
        assert_eq!(all.used.len(), 2);
        let mut over = begun;
        over.used.insert((101, Arc::from("cat")), 100);
        over.decay(Decay { over_left_millionths: Some(950_000), over_allocation: &[101], ..most }, hours(24));
        assert_eq!(
            over.used.into_values().collect::<Vec<_>>(),
            [75, 95],
            "more is left of a group above its allocation"
        );
    }
}
