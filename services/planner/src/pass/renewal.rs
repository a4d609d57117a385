//! Better promises, after something was freed.

use super::Cycle;
use crate::{
    class::ClassId,
    engine::Engine,
    machine::{Freed, Gap, Holding, Window, expected_end},
    model::Slot,
    queue::{Entry, Place},
    search::{Found, Search},
    timeline::ALWAYS,
};
use muster_schemas::{NodeId, Timestamp, resources::Placement};
use std::collections::HashMap;

/// What the freed holdings may offer to waiting jobs.
#[derive(Default)]
struct Chances {
    of_classes: HashMap<ClassId, ClassChances>,
    /// The gaps that include something freed.
    offers: Vec<Offer>,
    /// For each node, when its freed holdings were held.
    on_nodes: HashMap<NodeId, Vec<Window>>,
    /// When the freed holdings of any node may have been held, if anything may have been freed.
    on_any_node: Option<Window>,
    /// The number of freed holdings at that time.
    as_of: usize,
    /// The first of them that count.
    first: usize,
}

/// A gap that includes something freed: a new start is possible only with a part of that.
struct Offer {
    gap: Gap,
    freed: Window,
}

impl Offer {
    /// An offer that may help with anything.
    const ANYTHING: Self = {
        let gap = Gap { from: ALWAYS, until: Timestamp::MAX, node: 0, cores: u32::MAX, is_whole: true };
        Self { gap, freed: ALL_TIME }
    };
}

const ALL_TIME: Window = Window { from: ALWAYS, until: Timestamp::MAX };

/// The starts that freed holdings may have made possible for the jobs of a class.
#[derive(Default)]
struct ClassChances {
    /// The number of offers at that time.
    as_of: usize,
    /// Starts for all jobs, including those whose own slot does not help.
    starts: Starts,
    /// The same with those ruled out since for jobs whose own slot does not help.
    offered: Starts,
}

/// Times within which a job may start: ascending; they neither touch nor overlap.
#[derive(Default)]
struct Starts(Vec<Window>);

impl Starts {
    fn add(&mut self, mut starts: Window) {
        let first = self.0.partition_point(|known| known.until < starts.from);
        let last = self.0.partition_point(|known| known.from <= starts.until);
        if let [one, .., other] | [one @ other] = &self.0[first..last] {
            starts = Window { from: starts.from.min(one.from), until: starts.until.max(other.until) };
        }
        self.0.splice(first..last, [starts]);
    }

    /// Rules out starts within these times.
    fn rule_out(&mut self, starts: Window) {
        let first = self.0.partition_point(|known| known.until <= starts.from);
        let last = self.0.partition_point(|known| known.from < starts.until);
        let cut: Vec<Window> = self.0.drain(first..last).collect();
        let before = cut.first().map(|one| Window { from: one.from, until: starts.from });
        let after = cut.last().map(|one| Window { from: starts.until, until: one.until });
        let rest = before.into_iter().chain(after).filter(|rest| rest.from < rest.until);
        self.0.splice(first..first, rest);
    }

    /// The remainder after a moment of the first window that reaches beyond it.
    fn after(&self, from: Timestamp) -> Option<Window> {
        let at = self.0.partition_point(|known| known.until <= from);
        self.0.get(at).map(|known| Window { from: known.from.max(from), ..*known })
    }
}

impl Engine {
    /// Looks for better slots in the order of the jobs, each given all other promises. The old slot is still free when
    /// a job gives it up, so no promise moves to a later time.
    pub(super) fn renew_all(&mut self, cycle: &mut Cycle, sorted: &[Place]) {
        let looked_at = sorted.iter().filter_map(|place| self.queue.get(*place)?.looked_at);
        let first = looked_at.min().unwrap_or(0);
        let mut chances = Chances { as_of: first, first, ..Chances::default() };
        for place in sorted {
            let Some(entry) = self.queue.get(*place) else { continue };
            let Some(old) = entry.slot.as_ref().filter(|slot| slot.start > cycle.now) else { continue };
            // Whether it is news does not count: that is not in the state, from which a pass is repeated.
            if !cycle.may_look(*place) {
                return;
            }
            if cycle.left_out.contains(&entry.id) {
                continue;
            }
            let (old, class_id) = (old.clone(), entry.class);
            if self.look_through(cycle, *place) {
                // They are those of other runs.
                chances = Chances { as_of: chances.first, first: chances.first, ..Chances::default() };
            }
            self.forget_look_if_in_vain(cycle, *place);
            let looked_at = self.queue.get(*place).and_then(|entry| entry.looked_at);
            if looked_at == Some(self.machine.freed_so_far()) {
                continue;
            }
            let class = self.classes.get(class_id);
            let is_by_gaps =
                self.quotas.is_empty() && class.demand.sharing.is_none() && self.search(cycle.now).goes_by_gaps(class);
            let better = match is_by_gaps {
                true => self.better_by_chance(cycle, &mut chances, *place, &old),
                false => self.better(cycle, *place, &old),
            };
            if let Some(found) = better {
                self.promise_slot(cycle, *place, found);
            }
            self.note_look(cycle, *place);
        }
    }

    /// The present free resources cannot improve the slot of this job, with the room of these runs away.
    pub(super) fn note_look(&mut self, cycle: &Cycle, place: Place) {
        let so_far = self.machine.freed_so_far();
        if let Some(entry) = self.queue.get_mut(place) {
            (entry.looked_at, entry.looked_past_runs) = (Some(so_far), cycle.through.is_open());
        }
    }

    /// Forgets that a job was looked at if an earlier start may be possible although nothing was freed since: if runs make way
    /// for it, or did then, because others may now, and if it may fit where less is free, as one of all cores does: time
    /// takes away what is promised soon.
    fn forget_look_if_in_vain(&mut self, cycle: &Cycle, place: Place) {
        let Some(class_id) = self.queue.class_at(place) else { return };
        let is_monotone = self.search(cycle.now).is_monotone(&self.classes.get(class_id).demand);
        if let Some(entry) = self.queue.get_mut(place)
            && (entry.looked_past_runs || cycle.through.is_open() || !is_monotone)
        {
            entry.looked_at = None;
        }
    }

    /// The best slot by a search from now on.
    fn better(&mut self, cycle: &Cycle, place: Place, old: &Slot) -> Option<Found> {
        let class_id = self.queue.class_at(place)?;
        let class = self.classes.get(class_id);
        // What a quota gives back may be anywhere.
        let is_plain = self.quotas.is_empty() && class.demand.sharing.is_none();
        if is_plain && !self.search(cycle.now).may_improve(class, old) {
            return None;
        }
        let found = self.with_own_slot(cycle, place, old, Window { from: cycle.now, until: old.start })?;
        let class = self.classes.get(class_id);
        let end = |start, placement: &Placement| expected_end(&class.demand, placement, start);
        let is_better = !class.is_moldable() || end(found.start, &found.placement) <= end(old.start, &old.placement);
        is_better.then_some(found)
    }

    /// The first slot among the starts that freed holdings may have made possible. There was none before.
    fn better_by_chance(&mut self, cycle: &Cycle, chances: &mut Chances, place: Place, old: &Slot) -> Option<Found> {
        let class_id = self.queue.class_at(place)?;
        self.update_chances(cycle, chances, class_id);
        let mut from = cycle.now;
        while let Some(starts) = self.next_chance(cycle, chances, place, old, from) {
            let found = self.with_own_slot(cycle, place, old, starts);
            let until = found.as_ref().map_or(starts.until, |found| found.start);
            chances.of_classes.entry(class_id).or_default().starts.rule_out(Window { until, ..starts });
            if found.is_some() {
                return found;
            }
            from = starts.until;
        }
        None
    }

    /// Adds holdings freed since.
    fn update_offers(&mut self, cycle: &Cycle, chances: &mut Chances) {
        let (_, freed) = self.machine.freed_since(chances.as_of);
        if freed.is_empty() {
            return;
        }
        self.machine.refresh_gaps(None, cycle.now);
        let (_, freed) = self.machine.freed_since(chances.as_of);
        for freed in freed {
            match freed {
                Freed::Anything => {
                    chances.offers.push(Offer::ANYTHING);
                    chances.on_any_node = Some(ALL_TIME);
                }
                Freed::Node { node, window } => {
                    chances.on_nodes.entry(*node).or_default().push(*window);
                    let gaps = self.machine.gaps(None).zip(self.machine.index_of(*node));
                    let gaps = gaps.map_or(&[][..], |(gaps, at)| gaps.of_node(at));
                    let touched = gaps.iter().filter(|gap| window.overlaps(gap.from, gap.until));
                    chances.offers.extend(touched.map(|gap| Offer { gap: *gap, freed: *window }));
                }
            }
        }
        chances.as_of = self.machine.freed_so_far();
    }

    fn update_chances(&mut self, cycle: &Cycle, chances: &mut Chances, class_id: ClassId) {
        self.update_offers(cycle, chances);
        let of_class = chances.of_classes.entry(class_id).or_default();
        let Some(wanted) = self.search(cycle.now).wanted(self.classes.get(class_id)) else { return };
        for offer in &chances.offers[of_class.as_of..] {
            let Some(starts) = wanted.starts_in(&offer.gap) else { continue };
            let from = offer.freed.from.plus_micros(1_i64.saturating_sub(wanted.micros()));
            let starts =
                Window { from: starts.from.max(from).max(cycle.now), until: starts.until.min(offer.freed.until) };
            if starts.from < starts.until {
                of_class.starts.add(starts);
                of_class.offered.add(starts);
            }
        }
        of_class.as_of = chances.offers.len();
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
            Some(_) => {
                let of_class = chances.of_classes.get(&entry.class);
                let for_all = of_class.and_then(|known| known.starts.after(from));
                let beside_own = of_class.and_then(|known| self.beside_own(cycle, known, entry, old, from));
                let own = self.own_chances(cycle, chances, entry, old);
                let better = |starts: &Window| starts.from < old.start && starts.until > from;
                for_all.into_iter().chain(beside_own).chain(own).filter(better).min_by_key(|starts| starts.from)?
            }
        };
        let starts = Window { from: first.from.max(from), until: first.until.min(old.start) };
        (starts.from < starts.until).then_some(starts)
    }

    /// The first starts from a moment on that freed holdings may have made possible together with what a job's own slot
    /// holds on other nodes: that others of its class cannot start then says nothing about it.
    fn beside_own(
        &self,
        cycle: &Cycle,
        of_class: &ClassChances,
        entry: &Entry,
        old: &Slot,
        from: Timestamp,
    ) -> Option<Window> {
        let with_own = self.search(cycle.now).first_start_with_own(self.classes.get(entry.class), old)?;
        of_class.offered.after(from.max(with_own))
    }

    /// The starts that holdings freed on the nodes of a job's own slot may have made possible.
    fn own_chances(&self, cycle: &Cycle, chances: &Chances, entry: &Entry, old: &Slot) -> Vec<Window> {
        let search = self.search(cycle.now);
        let class = self.classes.get(entry.class);
        let of_node = |node| {
            let freed = chances.on_nodes.get(&node).into_iter().flatten().chain(&chances.on_any_node);
            freed.map(move |freed| (node, *freed))
        };
        let freed = old.placement.shares().flat_map(|share| of_node(share.node));
        freed.filter_map(|(node, freed)| search.own_chances(class, node, freed, old.start)).collect()
    }

    /// The first slot among these starts, if the job gives up its own.
    fn with_own_slot(&mut self, cycle: &Cycle, place: Place, old: &Slot, starts: Window) -> Option<Found> {
        let class_id = self.queue.class_at(place)?;
        let demand = self.classes.get(class_id).demand.clone();
        let promise = Holding::Promise { start: old.start };
        self.machine.lend(&demand, &old.placement, promise);
        let ways = self.open_ways(place);
        let found = self.viewed(demand.sharing.as_ref(), |engine| {
            engine.refresh_gaps(class_id, cycle.now);
            if !engine.quotas.is_empty() {
                return engine.find_without_own(cycle, place, (starts.from, starts.until));
            }
            let search = Search { ways: ways.as_deref(), ..engine.search(cycle.now) };
            search.earliest(engine.classes.get(class_id), starts.from, starts.until)
        });
        self.machine.take(&demand, &old.placement, promise);
        found
    }
}
