//! A whole pass over the waiting jobs (OAR-G-01).

use super::{
    domain::{Domain, Domains, Window},
    gantt::{Gantt, Placement},
    reason::Reason,
    search::{Found, Limits, Scene, Wish},
};
use crate::resources::table::Table;
use std::collections::BTreeMap;

/// The outcome of a pass for one job.
pub type Outcome = Result<Found, Reason>;

/// What a pass knows, and what it has placed so far.
pub struct Pass<'p> {
    /// The time.
    pub now: i64,
    /// The resources.
    pub table: &'p Table,
    /// The placements: at the beginning those that run or are accepted.
    pub gantt: Gantt,
    /// The limits.
    pub limits: &'p Limits<'p>,
    /// Moments at which limits change by themselves.
    pub limit_changes: &'p [i64],
}

impl Pass<'_> {
    /// Places the jobs in their order (OAR-G-04): each takes the first place that is left, so none delays an earlier one.
    /// Jobs inside a container follow it, wherever they are in the order. Every job gets a place or a reason (OAR-G-10),
    /// in the order given.
    pub fn run(&mut self, wishes: &[Wish]) -> Vec<Outcome> {
        self.run_while(wishes, &mut || true)
    }

    /// The same as long as a condition holds (OAR-G-09); jobs that are left then have that as their reason.
    pub fn run_while(&mut self, wishes: &[Wish], goes_on: &mut dyn FnMut() -> bool) -> Vec<Outcome> {
        let mut domains = self.running_domains();
        let mut outcomes: BTreeMap<usize, Outcome> = BTreeMap::new();
        let mut left: Vec<usize> = (0..wishes.len()).collect();
        while let Some(place) = next(&left, wishes, &domains) {
            let index = left.remove(place);
            let outcome = if goes_on() { self.place(&wishes[index], &domains) } else { Err(Reason::OutOfTime) };
            if let Ok(found) = &outcome {
                open(&mut domains, &found.placement, self.now);
                self.gantt.placements.push(found.placement.clone());
            }
            outcomes.insert(index, outcome);
        }
        outcomes.into_values().collect()
    }

    fn running_domains(&self) -> Domains {
        let mut domains = Domains::default();
        self.gantt.placements.iter().for_each(|placement| open(&mut domains, placement, self.now));
        domains
    }

    fn place(&self, wish: &Wish, domains: &Domains) -> Outcome {
        let scene = Scene {
            table: self.table,
            gantt: &self.gantt,
            windows: domains.windows(&wish.placement.domain),
            limits: self.limits,
            limit_changes: self.limit_changes,
        };
        scene.first_end(wish)
    }
}

/// The first job that does not wait for a container behind it in the order; else the first of all.
fn next(left: &[usize], wishes: &[Wish], domains: &Domains) -> Option<usize> {
    let is_coming = |key: &str| left.iter().any(|other| wishes[*other].placement.opens.as_deref() == Some(key));
    let is_ready = |index: usize| match &wishes[index].placement.domain {
        Domain::Root => true,
        domain @ Domain::Inside(key) => {
            domains.windows(domain).is_some_and(|windows| !windows.is_empty()) || !is_coming(key)
        }
    };
    let first_ready = left.iter().position(|index| is_ready(*index));
    first_ready.or_else(|| (!left.is_empty()).then_some(0))
}

fn open(domains: &mut Domains, placement: &Placement, now: i64) {
    let Placement { start, end, ref resources, .. } = *placement;
    if let Some(key) = &placement.opens {
        domains.open(key, Window { start, end, resources: resources.clone() }, now);
    }
}

impl std::fmt::Debug for Pass<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("now", &self.now).field("gantt", &self.gantt).finish_non_exhaustive()
    }
}
