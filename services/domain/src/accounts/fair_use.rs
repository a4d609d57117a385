//! What the jobs of users in accounts have used, for fair share: past use counts ever less.

use super::spent::factor;
use muster_schemas::{Timestamp, accounts::AssociationKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The use of each association, as it counts at a moment. Nothing is counted unless the settings say how fast it is
/// forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FairUse {
    at: Timestamp,
    pub(super) core_micros: BTreeMap<AssociationKey, u64>,
}

impl FairUse {
    /// The same use as it counts at a later moment.
    pub(super) fn decay(&mut self, now: Timestamp, half_life_seconds: u64) {
        let factor = factor(now.micros_since(self.at), half_life_seconds);
        self.at = self.at.max(now);
        if factor >= 1.0 {
            return;
        }
        self.core_micros.values_mut().for_each(|used| *used = (*used as f64 * factor) as u64);
        self.core_micros.retain(|_, used| *used > 0);
    }

    /// Forgets the use of some associations.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(&AssociationKey) -> bool) {
        self.core_micros.retain(|of, _| !is_forgotten(of));
    }

    pub(super) fn add(&mut self, of: AssociationKey, core_micros: u64) {
        let used = self.core_micros.entry(of).or_default();
        *used = used.saturating_add(core_micros);
    }
}
