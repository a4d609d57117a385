//! Jobs that make way for others.

use super::gantt::{Placement, Standing};
use crate::resources::table::Table;
use std::collections::BTreeMap;

/// The best-effort jobs that must end for a placement to start: those that hold one of its resources and cannot share it
/// (OAR-T-21, OAR-T-24). No other job ends.
pub fn victims(placement: &Placement, running: &[Placement]) -> Vec<u64> {
    if placement.standing == Standing::BestEffort {
        return Vec::new();
    }
    let is_in_the_way = |other: &&Placement| {
        other.standing == Standing::BestEffort
            && !other.resources.is_disjoint(&placement.resources)
            && !other.sharing.may_overlap(&placement.sharing)
    };
    running.iter().filter(is_in_the_way).map(|other| other.job).collect()
}

/// What to do with a best-effort job that has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send the signal of its checkpoint.
    Signal,
    /// Wait: its time for the checkpoint is not over.
    Wait,
    /// End it.
    End,
}

/// The next step with a best-effort job that has to end (OAR-T-23). A job with a checkpoint has more than that many
/// seconds after its signal.
pub fn ending(checkpoint: i64, signalled_at: Option<i64>, now: i64) -> Step {
    match signalled_at {
        _ if checkpoint <= 0 => Step::End,
        None => Step::Signal,
        Some(at) if now - at > checkpoint => Step::End,
        Some(_) => Step::Wait,
    }
}

/// What a running job becomes if an administrator turns it into best effort, or back (OAR-T-26).
///
/// # Errors
/// The exit status of `oardel`: 1 without the right, 5 for a job that does not run.
pub const fn turned(standing: Standing, is_running: bool, is_administrator: bool) -> Result<Standing, u8> {
    match (is_administrator, is_running, standing) {
        (false, ..) => Err(1),
        (true, false, _) => Err(5),
        (true, true, Standing::Firm) => Ok(Standing::BestEffort),
        (true, true, Standing::BestEffort) => Ok(Standing::Firm),
    }
}

/// From when on best-effort jobs end for a reservation on their resources (OAR-T-25).
pub fn end_before_reservation(start: i64, guard: i64, kill_ahead: i64) -> i64 {
    start - guard.max(kill_ahead)
}

/// What a running best-effort job adds to the priority number of each resource (OAR-T-27), so that idle nodes are tried
/// first: for each level the same amount for all resources that have a value of it in common with the job. A
/// timesharing job adds ten times as much.
pub fn avoidance(table: &Table, placement: &Placement, levels: &[String]) -> BTreeMap<u32, i64> {
    let factor = if placement.sharing.key.is_some() { 10 } else { 1 };
    let mut added = BTreeMap::new();
    for (place, level) in (1..).zip(levels) {
        let own = |id: &u32| table.resource(*id).and_then(|resource| resource.value(level));
        let values: Vec<_> = placement.resources.iter().filter_map(own).collect();
        let touched =
            table.resources().filter(|resource| resource.value(level).is_some_and(|value| values.contains(&value)));
        for resource in touched {
            *added.entry(resource.id()).or_default() += 2 * place * factor;
        }
    }
    added
}
