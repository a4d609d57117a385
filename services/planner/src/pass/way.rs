//! Running jobs make way for promised starts (OAR-T-21): no more of them than needed, the least important first.
//!
//! A job may be promised what runs hold that make way for it. They keep it until the start, or some time before it if that is
//! fixed (OAR-T-25). From the promise on, each pass takes them to end then, so that nobody is promised the same, and what they
//! give up can be used until the start. Which ones they are is decided again in each pass: if another run ends early, fewer
//! have to go.

use super::{Cycle, yielding::Wanted};
use crate::{
    engine::{Engine, Run},
    machine::{Holding, Window},
    model::{Demand, Slot},
    queue::Place,
};
use muster_schemas::{JobId, NodeId, Timestamp, plan::ProposedPreemption, resources::NodeShare};
use std::collections::{BTreeSet, HashSet};

/// A run whose time to make way has come is taken to be gone this much later.
const LEAVING_MICROS: i64 = 1_000_000;

/// The nodes of which more is held than exists, and whether that holds for licences.
type Overbooked = (BTreeSet<NodeId>, bool);

impl Engine {
    /// Runs in the way of promised starts end in time, for this pass.
    pub(super) fn clear_ways(&mut self, cycle: &mut Cycle) {
        if self.yielding.is_empty() || self.machine.promises() == 0 {
            return;
        }
        let runs = self.yielding.keys().filter_map(|job| self.run(*job));
        let nodes: HashSet<NodeId> =
            runs.clone().flat_map(|run| run.placement.shares()).map(|share| share.node).collect();
        let has_licences = runs.into_iter().any(|run| licences(&run.demand).next().is_some());
        let is_near = |slot: &Slot| has_licences || slot.placement.shares().any(|share| nodes.contains(&share.node));
        let promised = self.queue.entries().filter_map(|entry| Some((entry.slot.as_ref()?, entry.id)));
        let promised = promised.filter(|(slot, _)| is_near(slot)).map(|(slot, id)| (slot.start, id));
        let mut promised: Vec<(Timestamp, JobId)> = promised.collect();
        promised.sort_unstable();
        for (_, job) in promised {
            self.queue.place_of(job).into_iter().for_each(|place| self.clear_way(cycle, place));
        }
    }

    /// The same for the promise to one job. Once it is time, the runs make way.
    pub(super) fn clear_way(&mut self, cycle: &mut Cycle, place: Place) {
        let Some(slot) = self.queue.get(place).and_then(|entry| entry.slot.clone()) else { return };
        let Some(mut victims) = self.clear_way_of(cycle, place, &slot) else { return };
        // Some make way for jobs in front already.
        victims.retain(|victim| !cycle.plan.preemptions.iter().any(|one| one.victims.contains(victim)));
        let is_fixed = self.is_fixed(place);
        let at = slot.start.plus_seconds(if is_fixed { -i64::from(self.settings.make_way_ahead()) } else { 0 });
        if at > cycle.now {
            return cycle.wake_at(at);
        }
        if !victims.is_empty() && (is_fixed || self.starts_without(cycle, place, &slot)) {
            self.have_make_way(cycle, place, victims);
        }
    }

    /// Runs in the way of a promise on the machine end in time, for this pass. Returns those that are not leaving yet, if any
    /// runs are in its way.
    pub(super) fn clear_way_of(&mut self, cycle: &mut Cycle, place: Place, slot: &Slot) -> Option<Vec<JobId>> {
        if self.yielding.is_empty() {
            return None;
        }
        let demand = self.classes.get(self.queue.class_at(place)?).demand.clone();
        let window = Holding::Promise { start: slot.start }.window(&demand, &slot.placement);
        let window = Window { from: window.from.max(cycle.now), ..window };
        if window.from >= window.until || !self.machine.overbooks(&demand, &slot.placement, window) {
            return None;
        }
        let (leaving, staying) = self.leaving_for(place, &demand);
        let candidates: Vec<JobId> = leaving.iter().chain(&staying).copied().collect();
        let gone = self.least_in_the_way(&demand, slot, window, &candidates);
        if gone.is_empty() {
            return None;
        }
        let ahead = demand.fixed.map_or(0, |_| i64::from(self.settings.make_way_ahead()));
        let until = slot.start.plus_seconds(-ahead).max(cycle.now.plus_micros(LEAVING_MICROS));
        let victims = gone.iter().map(|run| run.active().job).filter(|job| staying.contains(job)).collect();
        for run in gone {
            let id = run.active().job;
            let known = cycle.cuts.get(&id).or(self.cuts.get(&id)).copied();
            if known.is_none_or(|known| until < known) {
                // Behind the promise there is more room than before.
                let holding = Holding::Run { until: run.assumed_end };
                self.machine.frees(&run.active().demand, &run.active().placement, holding);
            }
            cycle.cuts.insert(id, until);
            self.hold_run(Run { assumed_end: run.assumed_end.min(until), ..run.clone() });
            cycle.swapped.push(run);
        }
        Some(victims)
    }

    /// Whether a job whose time has come starts on its promised resources once the runs in its way have left.
    fn starts_without(&mut self, cycle: &mut Cycle, place: Place, slot: &Slot) -> bool {
        let Some(class) = self.queue.class_at(place) else { return false };
        let demand = self.classes.get(class).demand.clone();
        let window = Holding::Promise { start: slot.start }.window(&demand, &slot.placement);
        let window = Window { from: cycle.now.plus_micros(LEAVING_MICROS), ..window };
        self.machine.serves(&demand, &slot.placement, cycle.now)
            && (window.from >= window.until || !self.machine.overbooks(&demand, &slot.placement, window))
            && self.has_headroom(cycle, place)
            && !self.is_limited_to_less(cycle, place, &self.usage_at(place, &slot.placement))
            && !self.is_promise_over_quota(cycle, place)
    }

    /// The fewest runs that must go for a promise to be kept, the more important ones spared first. These are set aside.
    fn least_in_the_way(&mut self, demand: &Demand, slot: &Slot, window: Window, candidates: &[JobId]) -> Vec<Run> {
        let nodes: BTreeSet<NodeId> = slot.placement.shares().map(|share| share.node).collect();
        let licences: BTreeSet<&String> = licences(demand).collect();
        let is_there = |share: &NodeShare| nodes.contains(&share.node);
        let is_in_the_way = |job: &&JobId| {
            let lasts = self.assumed_end(**job).is_some_and(|end| end > window.from);
            let run = self.run(**job).filter(|_| lasts);
            run.is_some_and(|run| {
                run.placement.shares().any(is_there) || self::licences(&run.demand).any(|name| licences.contains(name))
            })
        };
        let candidates: Vec<JobId> = candidates.iter().filter(is_in_the_way).copied().collect();
        let mut aside: Vec<Run> = candidates.into_iter().filter_map(|job| self.set_run_aside(job)).collect();
        // Others may be in the way as well, who do not make way.
        let rest = self.overbooked(demand, slot, window);
        for at in (0..aside.len()).rev() {
            self.bring_back(&aside[at]);
            if self.overbooked(demand, slot, window) == rest {
                aside.remove(at);
            } else {
                self.set_run_aside(aside[at].active().job);
            }
        }
        aside
    }

    fn overbooked(&self, demand: &Demand, slot: &Slot, window: Window) -> Overbooked {
        let nodes = slot.placement.shares().map(|share| share.node);
        let nodes = nodes.filter(|node| self.machine.overbooks_node(*node, window)).collect();
        (nodes, self.machine.overbooks_licences(demand, &slot.placement, window))
    }

    /// Runs make way for a job, unless something else keeps it from starting.
    fn have_make_way(&mut self, cycle: &mut Cycle, place: Place, victims: Vec<JobId>) {
        let Some(entry) = self.queue.get(place) else { return };
        let id = entry.id;
        if self.policy.starts_nothing.is_some()
            || cycle.left_out.contains(&id)
            || self.is_asked(place)
            || self.is_shut(cycle, entry)
            || !self.queues_start(place)
        {
            return;
        }
        let (priority, activation) = (entry.priority, entry.activation.as_ref());
        if activation.is_some_and(|activation| activation.is_filtered) && !self.assumes_passes {
            self.hold_back(cycle, priority);
        }
        let claims = victims.iter().filter_map(|job| Some((*self.run(*job)?.placement).clone())).collect();
        let index = self.rank(cycle, place);
        cycle.plan.preemptions.push(ProposedPreemption { for_job: id, victims, claims, index, count: 0 });
    }

    /// Where a job fits at a time in these ways if the fewest runs make way for it, or the quota that it would break; `None` if
    /// it does not fit.
    pub(super) fn room_after_others(
        &mut self,
        cycle: &Cycle,
        place: Place,
        wanted: Wanted<'_>,
    ) -> Option<Result<Slot, String>> {
        if self.yielding.is_empty() {
            return None;
        }
        let demand = wanted.demand;
        let (leaving, staying) = self.leaving_for(place, demand);
        if let Some(sharing) = &demand.sharing {
            self.machine.open_view(sharing);
        }
        let mut away: Vec<Run> = leaving.into_iter().filter_map(|job| self.set_run_aside(job)).collect();
        if !self.has_room(cycle, wanted) {
            self.victims_for(cycle, wanted, &staying, &mut away);
        }
        let found = self.room(cycle, wanted).map(|placement| self.quota_at(place, demand, &placement, wanted.from));
        self.put_back(away);
        self.machine.close_view();
        found
    }
}

/// The licences that a demand may hold.
pub(super) fn licences(demand: &Demand) -> impl Iterator<Item = &String> {
    let ways = demand.components.iter().flat_map(|component| component.alternatives.iter());
    ways.flat_map(|way| way.licences.keys())
}
