//! Promises as if the runs that make way for a job were not there (OAR-T-21): no later job gets what they leave, and delays the
//! job with it (OAR-G-04).
//!
//! While such a job is looked at, the room of these runs is not on the machine. Jobs that follow each other mostly have the
//! same runs make way for them, so the room is rarely taken away and given back. A place in the room of a run is looked for
//! again with the runs in their places: one where nobody makes way goes first, then one for which the fewest make way.

use super::{Cycle, yielding::Wanted};
use crate::{
    class::ClassId,
    engine::Engine,
    machine::Holding,
    model::{Demand, Slot, YieldingRun},
    queue::Place,
    search::{Found, Search},
};
use muster_schemas::{JobId, NodeId, Timestamp, resources::Placement};
use std::{collections::BTreeMap, sync::Arc};

/// The facts of a run that decide for whom it makes way.
type KindKey = (Vec<Arc<str>>, Option<i64>, Option<(Arc<str>, i64)>);

impl Engine {
    /// Takes the room of exactly the runs away that make way for a job. Returns whether the machine has changed.
    pub(super) fn look_through(&mut self, cycle: &mut Cycle, place: Place) -> bool {
        if self.yielding.is_empty() {
            return false;
        }
        let Some(class) = self.queue.class_at(place) else { return false };
        let demand = self.classes.get(class).demand.clone();
        let kinds = cycle.through.kinds.take().unwrap_or_else(|| self.kinds_of_yielding());
        let is_away = self.for_whom(place, &demand).map_or_else(Vec::new, |for_whom| {
            let makes_way = |(run, _): &(YieldingRun, Vec<JobId>)| {
                let stays_behind =
                    run.is_leaving || !run.comes_back || self.stays_behind(place, &demand, run.job, run.priority);
                for_whom.makes_way(run) && stays_behind
            };
            kinds.iter().map(makes_way).collect()
        });
        let has_changed = is_away != cycle.through.away && (is_away.contains(&true) || cycle.through.is_open());
        if has_changed {
            self.look_at_all(cycle);
            let jobs = kinds.iter().zip(&is_away).filter(|(_, away)| **away).flat_map(|((_, jobs), _)| jobs);
            jobs.for_each(|job| self.take_away(cycle, *job));
            cycle.through.away = is_away;
            self.forget_searches(cycle);
        }
        cycle.through.kinds = Some(kinds);
        has_changed
    }

    /// Puts all runs back into their places.
    pub(super) fn look_at_all(&mut self, cycle: &mut Cycle) {
        if !cycle.through.is_open() {
            return;
        }
        cycle.through.away.clear();
        std::mem::take(&mut cycle.through.jobs).into_iter().for_each(|job| self.give_room(job));
        let nodes = std::mem::take(&mut cycle.through.on_nodes);
        cycle.index.update(&self.machine, nodes.into_keys(), cycle.now);
        cycle.through.with_licences.clear();
        self.forget_searches(cycle);
    }

    fn take_away(&mut self, cycle: &mut Cycle, job: JobId) {
        self.take_room(job);
        cycle.through.jobs.push(job);
        let Some(run) = self.run(job) else { return };
        let nodes: Vec<NodeId> = run.placement.shares().map(|share| share.node).collect();
        if super::way::licences(&run.demand).next().is_some() {
            cycle.through.with_licences.push(job);
        }
        nodes.iter().for_each(|node| cycle.through.on_nodes.entry(*node).or_default().push(job));
        cycle.index.update(&self.machine, nodes.into_iter(), cycle.now);
    }

    /// Searches of this cycle say nothing about a machine with other runs.
    fn forget_searches(&self, cycle: &mut Cycle) {
        cycle.sweeps.clear();
        cycle.hints.clear();
        cycle.quota_hints.clear();
    }

    /// The runs that leave everything if they make way, those for the same jobs together.
    fn kinds_of_yielding(&self) -> Vec<(YieldingRun, Vec<JobId>)> {
        let mut kinds: BTreeMap<(KindKey, bool), (YieldingRun, Vec<JobId>)> = BTreeMap::new();
        for run in self.yielding.values().filter(|run| !run.gives_cores_only) {
            let Some(active) = self.run(run.job) else { continue };
            let queue = active.demand.components.first().map(|component| component.queue.clone());
            let waits_again = queue.filter(|_| run.comes_back).map(|queue| (queue, run.priority));
            let key = ((run.classes.clone(), run.makes_way_above, waits_again), run.is_leaving);
            kinds.entry(key).or_insert_with(|| (run.clone(), Vec::new())).1.push(run.job);
        }
        kinds.into_values().collect()
    }

    /// Promises a job this start and place, or another place at the same time if runs are in the way there: they make way
    /// then. Whether it has a promise now; otherwise it has the one that it had before.
    pub(super) fn promise_slot(&mut self, cycle: &mut Cycle, place: Place, found: Found) -> bool {
        let before = self.queue.get(place).and_then(|entry| entry.slot.clone());
        let (start, placement) = (found.start, Arc::new(found.placement));
        self.change_slot(cycle, place, Some(Slot { start, placement: placement.clone() }));
        if !cycle.through.is_open() || !self.has_runs_in_its_way(cycle, place) {
            return true;
        }
        let so_far = self.machine.freed_so_far();
        self.change_slot(cycle, place, None);
        self.machine.take_back_freed(so_far);
        let Some(slot) = self.slot_beside(cycle, place, start, &placement) else {
            self.change_slot(cycle, place, before);
            return false;
        };
        self.change_slot(cycle, place, Some(slot));
        self.clear_way(cycle, place);
        self.forget_searches(cycle);
        true
    }

    /// Whether runs whose room is away are in the way of the promise to a job.
    fn has_runs_in_its_way(&mut self, cycle: &Cycle, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return false };
        let Some(slot) = entry.slot.clone() else { return false };
        let demand = self.classes.get(entry.class).demand.clone();
        let nodes = slot.placement.shares().filter_map(|share| cycle.through.on_nodes.get(&share.node)).flatten();
        let has_licences = super::way::licences(&demand).next().is_some();
        let with_licences = cycle.through.with_licences.iter().filter(|_| has_licences);
        let lasts = |job: &&JobId| self.assumed_end(**job).is_some_and(|end| end > slot.start);
        let mut near: Vec<JobId> = nodes.chain(with_licences).filter(lasts).copied().collect();
        if near.is_empty() {
            return false;
        }
        near.sort_unstable();
        near.dedup();
        let window = Holding::Promise { start: slot.start }.window(&demand, &slot.placement);
        near.iter().for_each(|job| self.give_room(*job));
        let is_overbooked = self.machine.overbooks(&demand, &slot.placement, window);
        near.iter().for_each(|job| self.take_room(*job));
        is_overbooked
    }

    /// With all runs in their places: where a job fits at a time, in the ways of a placement, so that nobody has to make way, or
    /// as few as possible.
    fn slot_beside(&mut self, cycle: &mut Cycle, place: Place, start: Timestamp, like: &Placement) -> Option<Slot> {
        self.look_at_all(cycle);
        let class = self.queue.class_at(place)?;
        let demand = self.classes.get(class).demand.clone();
        let ways = ways_of(&demand, like);
        let wanted = Wanted { demand: &demand, ways: Some(&ways), from: start };
        let spared = self.viewed(demand.sharing.as_ref(), |engine| engine.room(cycle, wanted));
        let spared = spared.and_then(|placement| self.quota_at(place, &demand, &placement, start).ok());
        spared.or_else(|| self.room_after_others(cycle, place, wanted)?.ok())
    }

    /// The first start of a job before a time if runs make way for it, and where; `None` if it has none, or already now.
    pub(super) fn earlier_through(
        &mut self,
        cycle: &mut Cycle,
        place: Place,
        class_id: ClassId,
        before: Timestamp,
    ) -> Option<Slot> {
        self.look_through(cycle, place);
        if !cycle.through.is_open() {
            return None;
        }
        let sharing = self.classes.get(class_id).demand.sharing.clone();
        let ways = self.open_ways(place);
        let found = self.viewed(sharing.as_ref(), |engine| {
            engine.refresh_gaps(class_id, cycle.now);
            if !engine.quotas.is_empty() {
                return engine.find_in_quotas(cycle, place, (cycle.now, before)).ok().flatten();
            }
            let search = Search { ways: ways.as_deref(), ..engine.search(cycle.now) };
            search.earliest(engine.classes.get(class_id), cycle.now, before)
        });
        self.look_at_all(cycle);
        let found = found.filter(|found| found.start > cycle.now && found.start < before)?;
        self.slot_beside(cycle, place, found.start, &found.placement)
    }
}

/// Only the ways in which a placement serves the components of a job.
fn ways_of(demand: &Demand, placement: &Placement) -> Vec<Vec<bool>> {
    let components = demand.components.iter().zip(&placement.components);
    let of_component = components.map(|(component, placed)| {
        let numbers = 0..component.alternatives.len();
        numbers.map(|number| u32::try_from(number).is_ok_and(|number| number == placed.alternative)).collect()
    });
    of_component.collect()
}
