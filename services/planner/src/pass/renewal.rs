//! Better promises, after something was freed.

use super::{Cycle, expected_end};
use crate::{
    class::ClassId,
    engine::Engine,
    machine::{Freed, Holding, Window},
    model::Slot,
    queue::{Entry, Place},
    search::Found,
};
use muster_schemas::{NodeId, Timestamp, resources::Placement};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// What was freed may offer to the jobs that wait.
#[derive(Default)]
struct Chances {
    of_classes: HashMap<ClassId, ClassChances>,
    /// The nodes on which something was freed, as of so much freed.
    nodes: HashSet<NodeId>,
    as_of: usize,
}

/// What was freed may offer to the jobs of a class.
#[derive(Default)]
struct ClassChances {
    /// As of so much freed.
    as_of: usize,
    chances: Vec<Chance>,
}

/// Starts that one of the things freed may have made possible.
#[derive(Clone, Copy)]
struct Chance {
    /// Jobs that were last looked at later than this was freed have nothing of it.
    freed: usize,
    starts: Window,
}

impl ClassChances {
    /// No job of the class can start within these times.
    fn rule_out(&mut self, starts: Window) {
        for chance in &mut self.chances {
            if starts.from <= chance.starts.from && chance.starts.from < starts.until {
                chance.starts.from = starts.until;
            }
        }
        self.chances.retain(|chance| chance.starts.from < chance.starts.until);
    }
}

impl Engine {
    /// Looks for better slots in the order of the jobs, for each given all other promises. The old slot is still free when
    /// a job gives it up, so no promise moves to a later time.
    pub(super) fn renew_all(&mut self, cycle: &mut Cycle, sorted: &[Place]) {
        let mut chances = Chances::default();
        for place in sorted {
            let Some(entry) = self.queue.get(*place) else { continue };
            let Some(old) = entry.slot.as_ref().filter(|slot| slot.start > cycle.now) else { continue };
            let is_news = entry.looked_at != Some(self.machine.freed_so_far());
            if !is_news || cycle.left_out.contains(&entry.id) {
                continue;
            }
            let old = old.clone();
            let better = match self.search(cycle.now).has_chances(self.classes.get(entry.class)) {
                true => self.better_by_chance(cycle, &mut chances, *place, &old),
                false => self.better(cycle, *place, &old),
            };
            if let Some(found) = better {
                let slot = Slot { start: found.start, placement: Arc::new(found.placement) };
                self.change_slot(cycle, *place, Some(slot));
            }
            self.note_look(*place);
        }
    }

    /// What is free now cannot make the slot of this job any better.
    pub(super) fn note_look(&mut self, place: Place) {
        let so_far = self.machine.freed_so_far();
        if let Some(entry) = self.queue.get_mut(place) {
            entry.looked_at = Some(so_far);
        }
    }

    /// The best slot by a search from now on.
    fn better(&mut self, cycle: &Cycle, place: Place, old: &Slot) -> Option<Found> {
        let class_id = self.queue.class_at(place)?;
        if !self.search(cycle.now).may_improve(self.classes.get(class_id), old) {
            return None;
        }
        let found = self.with_own_slot(cycle, place, old, Window { from: cycle.now, until: old.start })?;
        let class = self.classes.get(class_id);
        let end = |start, placement: &Placement| expected_end(&class.demand, placement, start);
        let is_better = !class.is_moldable() || end(found.start, &found.placement) <= end(old.start, &old.placement);
        is_better.then_some(found)
    }

    /// The first slot among the starts that something freed may have made possible. Without that there was none before.
    fn better_by_chance(&mut self, cycle: &Cycle, chances: &mut Chances, place: Place, old: &Slot) -> Option<Found> {
        let class_id = self.queue.class_at(place)?;
        self.update_chances(cycle, chances, class_id);
        let mut from = cycle.now;
        while let Some(starts) = self.next_chance(cycle, chances, place, old, from) {
            let found = self.with_own_slot(cycle, place, old, starts);
            let until = found.as_ref().map_or(starts.until, |found| found.start);
            chances.of_classes.entry(class_id).or_default().rule_out(Window { until, ..starts });
            if found.is_some() {
                return found;
            }
            from = starts.until;
        }
        None
    }

    fn update_chances(&self, cycle: &Cycle, chances: &mut Chances, class_id: ClassId) {
        let (_, freed) = self.machine.freed_since(chances.as_of);
        chances.nodes.extend(freed.iter().filter_map(Freed::node));
        chances.as_of = self.machine.freed_so_far();
        let of_class = chances.of_classes.entry(class_id).or_default();
        let (first, freed) = self.machine.freed_since(of_class.as_of);
        let search = self.search(cycle.now);
        let class = self.classes.get(class_id);
        for (number, freed) in (first..).zip(freed) {
            let starts = search.chances(class, freed, cycle.now, None);
            of_class.chances.extend(starts.into_iter().map(|starts| Chance { freed: number, starts }));
        }
        of_class.as_of = self.machine.freed_so_far();
    }

    /// The first starts from a moment on that are better than a job's slot and may be possible.
    fn next_chance(
        &self,
        cycle: &Cycle,
        chances: &Chances,
        place: Place,
        old: &Slot,
        from: Timestamp,
    ) -> Option<Window> {
        let entry = self.queue.get(place)?;
        let first = match entry.looked_at.filter(|looked_at| *looked_at >= self.machine.freed_since(0).0) {
            None => Window { from, until: old.start },
            Some(looked_at) => {
                let of_class = chances.of_classes.get(&entry.class).map_or(&[][..], |known| &known.chances);
                let of_class = of_class.iter().filter(|chance| chance.freed >= looked_at).map(|chance| chance.starts);
                let own = self.own_chances(cycle, chances, entry, old);
                let better = |starts: &Window| starts.from < old.start && starts.until > from;
                of_class.chain(own).filter(better).min_by_key(|starts| starts.from)?
            }
        };
        let starts = Window { from: first.from.max(from), until: first.until.min(old.start) };
        (starts.from < starts.until).then_some(starts)
    }

    /// The starts that something freed on the nodes of a job's own slot may have made possible: there its share stands in
    /// its way only as long as it has it.
    fn own_chances(&self, cycle: &Cycle, chances: &Chances, entry: &Entry, old: &Slot) -> Vec<Window> {
        if !old.placement.shares().any(|share| chances.nodes.contains(&share.node)) {
            return Vec::new();
        }
        let (_, freed) = self.machine.freed_since(entry.looked_at.unwrap_or(0));
        let search = self.search(cycle.now);
        let is_own = |node| old.placement.shares().any(|share| share.node == node);
        let own = freed.iter().filter(|freed| freed.node().is_some_and(is_own));
        own.flat_map(|freed| search.chances(self.classes.get(entry.class), freed, cycle.now, Some(old.start))).collect()
    }

    /// The first slot among these starts, if the job gives its own up.
    fn with_own_slot(&mut self, cycle: &Cycle, place: Place, old: &Slot, starts: Window) -> Option<Found> {
        let class_id = self.queue.class_at(place)?;
        let demand = self.classes.get(class_id).demand.clone();
        let promise = Holding::Promise { start: old.start };
        self.machine.lend(&demand, &old.placement, promise);
        self.refresh_gaps(class_id, cycle.now);
        let found = self.search(cycle.now).earliest(self.classes.get(class_id), starts.from, starts.until);
        self.machine.take(&demand, &old.placement, promise);
        found
    }
}
