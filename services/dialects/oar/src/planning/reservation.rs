//! Jobs with a fixed start.

use super::{
    gantt::Placement,
    reason::Reason,
    search::{Scene, Wish},
};
use std::collections::BTreeSet;

/// The answer to a reservation (OAR-G-11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It has its place.
    Ok(Placement),
    /// It has none; the same demand could run later, if ever.
    Ko {
        /// The obstacle at that time.
        why: String,
        /// When it could run, or why never.
        later: Result<i64, Reason>,
    },
}

/// Places a reservation at its start. Only the first shape counts.
pub fn answer(scene: &Scene<'_>, wish: &Wish, start: i64) -> Answer {
    let why = match scene.at(wish, 0, start) {
        Some(Ok(placement)) => return Answer::Ok(placement),
        Some(Err(limit)) => limit,
        None => "the resources are not free at that time".to_owned(),
    };
    let first = Wish { shapes: wish.shapes.iter().take(1).cloned().collect(), ..wish.clone() };
    Answer::Ko { why, later: scene.first_end(&first).map(|found| found.placement.start) }
}

/// What to do with an accepted reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its time has not come, or its resources are not there.
    Wait,
    /// Start it on these resources for this walltime.
    Start {
        /// The resources that are alive.
        resources: BTreeSet<u32>,
        /// Up to the end that was accepted (OAR-G-14).
        walltime: i64,
    },
    /// Its window has passed.
    Error,
}

/// The next step with an accepted reservation (OAR-G-13): from its start it waits that long for resources that are not
/// alive, then starts on those that are; without any it waits on.
pub fn step(accepted: &Placement, is_alive: &dyn Fn(u32) -> bool, patience: i64, now: i64) -> Step {
    let alive: BTreeSet<u32> = accepted.resources.iter().copied().filter(|id| is_alive(*id)).collect();
    let is_whole = alive.len() == accepted.resources.len();
    if now >= accepted.end {
        return Step::Error;
    }
    if now < accepted.start || alive.is_empty() || (!is_whole && now < accepted.start + patience) {
        return Step::Wait;
    }
    Step::Start { resources: alive, walltime: accepted.end - now }
}
