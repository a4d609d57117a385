//! Where freed holdings may improve a promise.

use super::{Search, plain::Plain};
use crate::{
    class::Class,
    machine::{Wanted, Window},
    model::{ComponentDemand, Slot},
};
use muster_schemas::{NodeId, Timestamp};

impl Search<'_> {
    /// Whether a job with a slot may find a better one, as far as can be told while it still has it. On a pool a better
    /// slot ends within the old one or before, and the old one belongs to the job, so only the time before it has to be
    /// free.
    pub fn may_improve(&self, class: &Class, slot: &Slot) -> bool {
        self.as_pool(&class.demand).is_none_or(|(cores, micros)| {
            let line = &self.machine.nodes()[0].line;
            line.earliest_cores(cores, micros, self.now, slot.start, slot.start).is_some()
        })
    }

    /// Whether the gaps alone tell where the jobs of a class may start. A job that gives up licences may start where
    /// others of its class cannot.
    pub fn goes_by_gaps(&self, class: &Class) -> bool {
        let mut components = class.demand.components.iter();
        let is_more = |component: &ComponentDemand| {
            component.reservation.is_some() || component.alternatives.iter().any(|one| !one.licences.is_empty())
        };
        !components.any(is_more) && self.as_pool(&class.demand).is_none() && self.wanted(class).is_some()
    }

    /// The gaps in which a job of a class can be served, if it has one plain request.
    pub fn wanted(&self, class: &Class) -> Option<Wanted> {
        Some(Plain::of(self, &class.demand, None)?.wanted())
    }

    /// The starts that holdings freed on a node of a job's own slot may have made possible, going by cores: its own
    /// share is in the way only while it holds it, and the time after the start of the slot belongs to it.
    pub fn own_chances(&self, class: &Class, node: NodeId, freed: Window, own: Timestamp) -> Option<Window> {
        let plain = Plain::of(self, &class.demand, None)?;
        let micros = plain.walltime_micros();
        let cores = i32::try_from(plain.enough.least_cores()).unwrap_or(i32::MAX);
        let from = self.now.max(freed.from.plus_micros(1_i64.saturating_sub(micros)));
        let from = self.machine.node(node)?.line.earliest_cores(cores, micros, from, freed.until, own)?;
        Some(Window { from, until: freed.until })
    }

    /// The first moment from which a node of a job's own slot may serve it because the slot is its own, together with
    /// other nodes; `None` if a single node serves it.
    pub fn first_start_with_own(&self, class: &Class, slot: &Slot) -> Option<Timestamp> {
        if Plain::of(self, &class.demand, None)?.enough.is_for_one_node() {
            return None;
        }
        let slot_begins = Window { from: slot.start, until: slot.start };
        let nodes = slot.placement.shares().map(|share| share.node);
        let starts = nodes.filter_map(|node| self.own_chances(class, node, slot_begins, slot.start));
        starts.map(|starts| starts.from).min()
    }
}
