//! What a policy with routes carries from one cycle to the next: its promises, and what owners have used (PBS-P-09, PBS-P-17).

use muster_schemas::{Timestamp, plan::RoutePromise};
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
}

impl Routing {
    /// Once for each whole day a part of all use is left. Fractions are dropped each day, and the rest of the time counts
    /// toward the next one.
    pub(super) fn decay(&mut self, left_millionths: Option<u32>, now: Timestamp) {
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
