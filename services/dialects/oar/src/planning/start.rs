//! Whether a planned job can start.

use super::gantt::Placement;
use std::collections::BTreeSet;

/// Whether a planned job can start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It starts.
    Ready,
    /// Its start has not come.
    Early,
    /// These resources are not alive, or somebody still holds them. It is planned again.
    Missing(BTreeSet<u32>),
}

/// Whether a planned job leaves Waiting (OAR-G-06): its start has come, and each resource is alive and released.
pub fn readiness(planned: &Placement, is_there: &dyn Fn(u32) -> bool, now: i64) -> Readiness {
    if now < planned.start {
        return Readiness::Early;
    }
    let missing: BTreeSet<u32> = planned.resources.iter().copied().filter(|id| !is_there(*id)).collect();
    if missing.is_empty() { Readiness::Ready } else { Readiness::Missing(missing) }
}

/// The placements that touch a span (OAR-G-18), in order of their starts.
pub fn between(placements: &[Placement], from: i64, to: i64) -> Vec<&Placement> {
    let mut touching: Vec<&Placement> =
        placements.iter().filter(|placement| placement.start < to && from < placement.end).collect();
    touching.sort_by_key(|placement| (placement.start, placement.job));
    touching
}
