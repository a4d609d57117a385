//! Searches that continue in time, from one moment at which a demand may fit to the next.

use super::{Found, Known, Search, Sweep, plain::Plain};
use crate::{class::Class, model::Demand};
use muster_schemas::Timestamp;

impl Search<'_> {
    /// A search for the first start of jobs of a class that have a plain request and no choice, from a moment on. It
    /// can be continued as long as nothing is freed.
    pub fn sweep(&self, class: &Class, from: Timestamp) -> Option<Sweep> {
        Sweep::start(self, &Plain::of(self, &class.demand, None)?, from)
    }

    /// The first start, before `bound`, that such a search reaches.
    pub fn next_of(&self, class: &Class, sweep: &mut Sweep, bound: Timestamp) -> Option<Found> {
        self.go_on(&class.demand, None, &Plain::of(self, &class.demand, None)?, sweep, bound)
    }

    pub(super) fn go_on(
        &self,
        demand: &Demand,
        choice: Option<u32>,
        plain: &Plain,
        sweep: &mut Sweep,
        bound: Timestamp,
    ) -> Option<Found> {
        while sweep.find(self, plain, bound) {
            let start = sweep.moment();
            let search = Search { known: Some((start, Known::Looks(sweep.looks()))), ..*self };
            if let Some(placement) = search.with_choice(demand, start, choice) {
                return Some(Found { start, placement });
            }
            if !sweep.pass_on(self, plain) {
                return None;
            }
        }
        None
    }

    /// The first start, before `bound`, at which all components fit, out of the moments at which each alone may fit.
    pub(super) fn earliest_together(
        &self,
        demand: &Demand,
        plains: &[Plain],
        mut sweeps: Vec<Sweep>,
        bound: Timestamp,
    ) -> Option<Found> {
        loop {
            let start = self.meet(plains, &mut sweeps, bound)?;
            if let Some(placement) = self.with_choice(demand, start, None) {
                return Some(Found { start, placement });
            }
            let changes = sweeps.iter().zip(plains).filter_map(|(sweep, plain)| sweep.next_change(self, plain));
            let next = changes.min()?;
            sweeps.iter_mut().zip(plains).for_each(|(sweep, plain)| sweep.go_to(self, plain, next));
        }
    }

    /// Advances to the first moment at which each component by itself may fit.
    fn meet(&self, plains: &[Plain], sweeps: &mut [Sweep], bound: Timestamp) -> Option<Timestamp> {
        let mut start = sweeps.iter().map(Sweep::moment).max()?;
        loop {
            for (sweep, plain) in sweeps.iter_mut().zip(plains) {
                sweep.go_to(self, plain, start);
                if !sweep.find(self, plain, bound) {
                    return None;
                }
            }
            let last = sweeps.iter().map(Sweep::moment).max()?;
            if last == start {
                return Some(start);
            }
            start = last;
        }
    }
}
