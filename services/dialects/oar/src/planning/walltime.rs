//! Walltimes that change while a job runs (OAR-G-16).

use super::gantt::{Gantt, Placement};

/// Reads the change that `oarwalltime` asks for: `+1:0` for more, `-0:30` for less, `2:0:0` for a new walltime. The
/// result is in seconds, relative to the walltime so far.
///
/// # Errors
/// The first mistake, as a sentence.
pub fn change(text: &str, walltime: i64) -> Result<i64, String> {
    let text = text.trim();
    match text.split_at_checked(1) {
        Some(("+", more)) => crate::request::walltime::seconds(more),
        Some(("-", less)) => crate::request::walltime::seconds(less).map(|less| -less),
        _ => crate::request::walltime::seconds(text).map(|whole| whole - walltime),
    }
}

/// What a change comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The new end.
    pub end: i64,
    /// The seconds that stay pending.
    pub pending: i64,
}

/// The end of a running placement after a change. Less is granted at once, but not below the time already run and never
/// for a container. More is granted up to the next placement on its resources minus the guard, and for a job inside a
/// container up to the end of its window.
///
/// # Errors
/// A container that is to be shortened.
pub fn grant(
    running: &Placement,
    change: i64,
    gantt: &Gantt,
    window_end: Option<i64>,
    now: i64,
) -> Result<Granted, String> {
    let asked = running.end.saturating_add(change);
    if change <= 0 {
        if running.opens.is_some() && change < 0 {
            return Err("the walltime of a container cannot be shortened".to_owned());
        }
        return Ok(Granted { end: asked.max(now), pending: 0 });
    }
    let is_next = |other: &&Placement| {
        other.job != running.job
            && other.domain == running.domain
            && other.start >= running.end
            && !other.resources.is_disjoint(&running.resources)
            && !other.sharing.may_overlap(&running.sharing)
    };
    let next = gantt.placements.iter().filter(is_next).map(|other| other.start - gantt.guard).min();
    let most = next.into_iter().chain(window_end).min().unwrap_or(asked);
    let end = asked.min(most.max(running.end));
    Ok(Granted { end, pending: asked - end })
}
