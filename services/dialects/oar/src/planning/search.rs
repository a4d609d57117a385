//! The first place of a job.

use super::{
    domain::{self, Domain, Window},
    gantt::{Gantt, Placement},
    reason::Reason,
};
use crate::{
    matching::Forest,
    power::{Purpose, is_available},
    resources::table::Table,
};
use std::collections::BTreeSet;

/// One shape of a job: the trees of its groups, and how long it lasts.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its groups.
    pub forest: Forest,
    /// Its walltime, in seconds.
    pub walltime: i64,
}

/// A job that looks for a place. The placement has its attributes; times and resources are filled in.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The job without its place.
    pub placement: Placement,
    /// Its shapes, in the order given.
    pub shapes: Vec<Shape>,
    /// It starts at this time or later.
    pub not_before: i64,
    /// It starts by this time.
    pub latest_start: Option<i64>,
    /// It ends by this time.
    pub latest_end: Option<i64>,
    /// Which states of resources it takes.
    pub purpose: Purpose,
}

/// Says why a placement is over a limit, given all others.
pub type Limits<'l> = dyn Fn(&Placement, &Gantt) -> Result<(), String> + 'l;

/// What a search looks at.
pub struct Scene<'s> {
    /// The resources.
    pub table: &'s Table,
    /// The placements so far.
    pub gantt: &'s Gantt,
    /// The windows of the job's domain; `None` for the root.
    pub windows: Option<&'s [Window]>,
    /// The limits.
    pub limits: &'s Limits<'s>,
    /// Moments at which limits change by themselves.
    pub limit_changes: &'s [i64],
}

/// A place for a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The shape, counted from 0.
    pub shape: usize,
    /// The job with its place.
    pub placement: Placement,
}

impl Scene<'_> {
    /// The place of a job (OAR-G-02, OAR-G-08): of all shapes the one that ends first, each at its earliest start; of
    /// equal ends the first shape given. Shapes without a place are left out.
    ///
    /// # Errors
    /// Why the first shape has no place, if none has.
    pub fn first_end(&self, wish: &Wish) -> Result<Found, Reason> {
        let mut best: Option<Found> = None;
        let mut first_reason = None;
        for shape in 0..wish.shapes.len() {
            match self.earliest(wish, shape) {
                Ok(placement) if best.as_ref().is_none_or(|best| placement.end < best.placement.end) => {
                    best = Some(Found { shape, placement });
                }
                Ok(_) => {}
                Err(reason) => drop(first_reason.get_or_insert(reason)),
            }
        }
        best.ok_or_else(|| first_reason.unwrap_or_else(|| Reason::Dependency("the job has no shape".to_owned())))
    }

    /// The earliest place of one shape. It begins at the first moment allowed, or when something changes for the better.
    fn earliest(&self, wish: &Wish, shape: usize) -> Result<Placement, Reason> {
        self.check_size(wish, shape)?;
        let mut limit = None;
        for start in self.moments(wish) {
            let end = start.saturating_add(wish.shapes[shape].walltime);
            if let Some(latest) = too_late(wish, start, end) {
                return Err(Reason::TooLate { limit: latest });
            }
            match self.at(wish, shape, start) {
                Some(Ok(placement)) => return Ok(placement),
                Some(Err(why)) => limit = Some(why),
                None => {}
            }
        }
        Err(self.never(wish, shape, limit))
    }

    /// The place of a shape at a start, or the limit that it would be over; `None` if resources are missing.
    pub fn at(&self, wish: &Wish, shape: usize, start: i64) -> Option<Result<Placement, String>> {
        let Shape { forest, walltime } = &wish.shapes[shape];
        let end = start.saturating_add(*walltime);
        let candidate = Placement { start, end, ..wish.placement.clone() };
        let blocked = self.gantt.blocked(&candidate);
        let is_free = |id: u32| {
            let resource = self.table.resource(id);
            !blocked.contains(&id)
                && domain::is_given(self.windows, id, start, end)
                && resource.is_some_and(|resource| is_available(resource, wish.purpose, end))
        };
        let groups = forest.find(&is_free).ok()?;
        let placement = Placement { resources: groups.concat().into_iter().collect(), ..candidate };
        Some((self.limits)(&placement, self.gantt).map(|()| placement))
    }

    /// The moments at which a start may become possible, in order.
    fn moments(&self, wish: &Wish) -> BTreeSet<i64> {
        let from = wish.not_before;
        let opened = self.windows.unwrap_or_default().iter().map(|window| window.start);
        let others = opened.chain(self.limit_changes.iter().copied()).filter(|moment| *moment > from);
        self.gantt.releases(from).into_iter().chain(others).chain([from]).collect()
    }

    /// Whether the resources would be enough if nobody else were there.
    fn check_size(&self, wish: &Wish, shape: usize) -> Result<(), Reason> {
        let forest = &wish.shapes[shape].forest;
        forest.find(&|_| true).map_err(Reason::TooLarge)?;
        let Some((windows, container)) = self.windows.zip(inside(&wish.placement.domain)) else { return Ok(()) };
        if windows.is_empty() {
            return Err(Reason::NoContainer { container });
        }
        let is_inside = |id: u32| windows.iter().any(|window| window.resources.contains(&id));
        forest.find(&is_inside).map(drop).map_err(|lack| Reason::ContainerTooSmall { container, lack })
    }

    /// Why no moment helps.
    fn never(&self, wish: &Wish, shape: usize, limit: Option<String>) -> Reason {
        if let Some(limit) = limit {
            return Reason::Limit(limit);
        }
        if let Some(container) = inside(&wish.placement.domain) {
            return Reason::NoRoomInContainer { container };
        }
        // At the last moment nobody is in the way any more: the resources themselves are gone by then.
        let last = self.moments(wish).last().copied().unwrap_or(wish.not_before);
        let Shape { forest, walltime } = &wish.shapes[shape];
        let end = last.saturating_add(*walltime);
        let is_there =
            |id: u32| self.table.resource(id).is_some_and(|resource| is_available(resource, wish.purpose, end));
        match forest.find(&is_there) {
            Err(lack) => Reason::NotLongEnough(lack),
            Ok(_) => Reason::TooLate { limit: end },
        }
    }
}

/// The time that a start would not keep.
fn too_late(wish: &Wish, start: i64, end: i64) -> Option<i64> {
    let start_limit = wish.latest_start.filter(|latest| start > *latest);
    start_limit.or_else(|| wish.latest_end.filter(|latest| end > *latest))
}

fn inside(domain: &Domain) -> Option<String> {
    match domain {
        Domain::Root => None,
        Domain::Inside(key) => Some(key.clone()),
    }
}

impl std::fmt::Debug for Scene<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scene").field("gantt", &self.gantt).field("windows", &self.windows).finish_non_exhaustive()
    }
}
