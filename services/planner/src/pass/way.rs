//! Running jobs make way for jobs with a fixed start, some time before it (OAR-T-25): no more of them than needed, the least important
//! first.
//!
//! A fixed start may be promised what runs hold that make way for it. They keep it until that time before the start. From the
//! promise on, each pass takes them to end then, so that nobody is promised the same, and what they give up can be used until
//! the start. Which ones they are is decided again in each pass: if another run ends early, fewer have to go.

use super::{Cycle, yielding::Wanted};
use crate::{
    engine::{Engine, Run},
    machine::{Holding, Window},
    model::{Demand, Slot},
    queue::Place,
};
use muster_schemas::{JobId, NodeId, Timestamp, plan::ProposedPreemption, resources::NodeShare};
use std::collections::BTreeSet;

/// A run whose time to make way has come is taken to be gone this much later.
const LEAVING_MICROS: i64 = 1_000_000;

/// The nodes of which more is held than exists, and whether that holds for licences.
type Overbooked = (BTreeSet<NodeId>, bool);

impl Engine {
    /// Runs in the way of promised fixed starts end in time, for this pass.
    pub(super) fn clear_ways(&mut self, cycle: &mut Cycle) {
        if self.fixed_jobs == 0 || self.yielding.is_empty() {
            return;
        }
        let entries = self.queue.entries().filter(|entry| self.classes.get(entry.class).demand.fixed.is_some());
        let promised = entries.filter_map(|entry| Some((entry.slot.as_ref()?.start, entry.id)));
        let mut promised: Vec<(Timestamp, JobId)> = promised.collect();
        promised.sort_unstable();
        for (_, job) in promised {
            self.queue.place_of(job).into_iter().for_each(|place| self.clear_way(cycle, place));
        }
    }

    /// The same for the promise to one job. Once it is time, the runs make way.
    pub(super) fn clear_way(&mut self, cycle: &mut Cycle, place: Place) {
        let Some(entry) = self.queue.get(place).filter(|_| !self.yielding.is_empty()) else { return };
        let (id, Some(slot)) = (entry.id, entry.slot.clone()) else { return };
        let demand = self.classes.get(entry.class).demand.clone();
        let (leaving, staying) = self.yielding_to(place, &demand);
        let window = Holding::Promise { start: slot.start }.window(&demand, &slot.placement);
        let window = Window { from: window.from.max(cycle.now), ..window };
        if window.from >= window.until || !self.machine.overbooks(&demand, &slot.placement, window) {
            return;
        }
        let candidates: Vec<JobId> = leaving.iter().chain(&staying).copied().collect();
        let gone = self.least_in_the_way(&demand, &slot, window, &candidates);
        if gone.is_empty() {
            return;
        }
        let at = slot.start.plus_seconds(-i64::from(self.settings.make_way_ahead()));
        let victims: Vec<JobId> = gone.iter().map(|run| run.active().job).filter(|job| staying.contains(job)).collect();
        let until = at.max(cycle.now.plus_micros(LEAVING_MICROS));
        for run in gone {
            self.hold_run(Run { assumed_end: run.assumed_end.min(until), ..run.clone() });
            cycle.swapped.push(run);
        }
        if at > cycle.now {
            return cycle.wake_at(at);
        }
        if !victims.is_empty() {
            self.have_make_way(cycle, place, id, victims);
        }
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
    fn have_make_way(&mut self, cycle: &mut Cycle, place: Place, id: JobId, victims: Vec<JobId>) {
        let Some(entry) = self.queue.get(place) else { return };
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

    /// Where a job with a fixed start fits at its time if runs make way for it, or the quota that it would break; `None` if it
    /// does not fit.
    pub(super) fn room_after_others(
        &mut self,
        cycle: &Cycle,
        place: Place,
        demand: &Demand,
        start: Timestamp,
    ) -> Option<Result<Slot, String>> {
        if self.yielding.is_empty() {
            return None;
        }
        let (leaving, staying) = self.yielding_to(place, demand);
        let wanted = Wanted { demand, ways: None, from: start };
        if let Some(sharing) = &demand.sharing {
            self.machine.open_view(sharing);
        }
        let mut away: Vec<Run> = leaving.into_iter().filter_map(|job| self.set_run_aside(job)).collect();
        if !self.has_room(cycle, wanted) {
            self.victims_for(cycle, wanted, &staying, &mut away);
        }
        let found = self.room(cycle, wanted).map(|placement| self.quota_at(place, demand, &placement, start));
        self.put_back(away);
        self.machine.close_view();
        found
    }
}

/// The licences that a demand may hold.
fn licences(demand: &Demand) -> impl Iterator<Item = &String> {
    let ways = demand.components.iter().flat_map(|component| component.alternatives.iter());
    ways.flat_map(|way| way.licences.keys())
}
