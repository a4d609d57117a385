//! Starts of jobs with activation filters: they are offered, and the filters answer later. Facts about them, the jobs
//! that an outstanding answer holds back, and the resources kept for a job.

use super::{Cycle, Verdict, cycle::Offers};
use crate::{
    engine::Engine,
    machine::Window,
    queue::{Entry, Place},
    resize,
};
use muster_schemas::{
    JobId, Timestamp, command::Start, plan::StartFacts, resources::Placement, scheduling::SchedulingMode,
};
use std::{collections::BTreeSet, sync::Arc};

impl Engine {
    /// The state of offers before a cycle.
    pub(super) fn open_offers(&self) -> Offers {
        let gates = &self.queue.gates;
        if self.assumes_passes || gates.jobs == 0 && self.queue_block.is_none() && self.scheduling.mode.is_none() {
            return Offers::default();
        }
        // Jobs whose filters are being asked do not start, so they do not matter here.
        let may_tell = gates.jobs > gates.pending || self.scheduling.mode.is_some();
        Offers {
            has_gates: gates.jobs > 0 || self.queue_block.is_some(),
            held_back: gates.held_back(),
            ranks: if may_tell { self.queue.ranks() } else { Vec::new() },
            ..Offers::default()
        }
    }

    /// Whether a job must not start whatever is free: its filters are being asked or may not be asked again yet,
    /// filters of another job are being asked that holds it back (HPC-F-82), or another job blocks it (HPC-F-31).
    pub(super) fn is_shut(&self, cycle: &Cycle, entry: &Entry) -> bool {
        if !cycle.offers.has_gates {
            return false;
        }
        let asks_later = |at: Timestamp| at > cycle.now;
        let activation = entry.activation.as_ref();
        activation.is_some_and(|activation| activation.is_pending || activation.ask_again.is_some_and(asks_later))
            || self.is_held_back(cycle, entry.id, entry.priority)
    }

    /// Whether the filters of the job at a place are being asked.
    pub(super) fn is_asked(&self, place: Place) -> bool {
        !self.assumes_passes && self.queue.is_pending(place)
    }

    /// Whether the filters of other jobs keep a job of a priority from starting.
    pub(super) fn is_held_back(&self, cycle: &Cycle, id: JobId, own_priority: i64) -> bool {
        let is_blocked = |(job, priority): (JobId, i64)| own_priority <= priority && job != id;
        self.queue_block.is_some_and(is_blocked)
            || cycle.offers.held_back.is_some_and(|priority| own_priority <= priority)
    }

    /// The position of a job in the order of this pass, from 1.
    pub(super) fn rank(&self, cycle: &Cycle, place: Place) -> u64 {
        cycle.offers.ranks.get(place as usize).copied().unwrap_or(0).into()
    }

    /// A job starts: records the facts for its filters, and whom their answer holds back.
    pub(super) fn note_offer(&self, cycle: &mut Cycle, place: Place, id: JobId, placement: &Placement) {
        let Some(entry) = self.queue.get(place).filter(|_| !self.assumes_passes) else { return };
        let activation = entry.activation.as_ref();
        let is_filtered = activation.is_some_and(|activation| activation.is_filtered);
        let goes_around = cycle.offers.goes_around;
        let class = self.classes.get(entry.class);
        // Without a mode a list of tasks is marked as in queued mode, and jobs of other kinds are not (HPC-B-12).
        let is_marked = || match self.scheduling.mode {
            Some(_) => true,
            None => entry.is_list && self.is_behind_promise(cycle, &class.demand),
        };
        let is_told = is_filtered || goes_around && is_marked();
        if !is_told {
            return;
        }
        let walltime = class.size.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let until = cycle.offers.around_until.filter(|_| goes_around).zip(walltime);
        let count = resize::units(&self.machine, resize::unit_of(&class.demand), placement);
        let facts = StartFacts {
            job: id,
            index: self.rank(cycle, place),
            backfill: goes_around,
            count: count.into(),
            latest_start: until.map(|(until, walltime)| until.plus_seconds(-walltime)),
        };
        let has_kept = activation.is_some_and(|activation| activation.kept.is_some());
        let priority = entry.priority;
        cycle.plan.facts.push(facts);
        if is_filtered && !goes_around && !has_kept {
            self.hold_back(cycle, priority);
        }
    }

    /// Filters of a job of this priority are about to be asked.
    pub(super) fn hold_back(&self, cycle: &mut Cycle, priority: i64) {
        if self.is_strict {
            cycle.offers.has_gates = true;
            cycle.offers.held_back = cycle.offers.held_back.max(Some(priority));
        }
    }

    /// The resources kept for the job at a place.
    pub(super) fn kept(&self, place: Place) -> Option<Arc<Placement>> {
        if self.queue.gates.kept == 0 {
            return None;
        }
        self.queue.get(place)?.activation.as_ref()?.kept.clone()
    }

    /// Offers jobs the resources that are kept for them, before all others: they take them from nobody, and jobs ahead
    /// of them may be waiting for just that (HPC-F-82).
    pub(super) fn ask_on_kept(&mut self, cycle: &mut Cycle) {
        if self.queue.gates.kept == 0 {
            return;
        }
        for block in self.queue.blocks() {
            let sorted = self.queue.take_sorted(block);
            for place in &sorted {
                if self.kept(*place).is_some() && self.may_be_planned(cycle, *place) {
                    self.start(cycle, *place);
                }
            }
            self.queue.restore(block, sorted);
        }
    }

    /// Starts a job on its kept resources, in queued mode with as much more as it can use.
    pub(super) fn start_on_kept(&mut self, cycle: &mut Cycle, place: Place, kept: &Arc<Placement>) -> Verdict {
        let Some(entry) = self.queue.get(place) else { return Verdict::Held };
        let id = entry.id;
        let demand = self.classes.get(entry.class).demand.clone();
        let until = super::expected_end(&demand, kept, cycle.now);
        let serve =
            |node| self.machine.node(node).is_some_and(|node| node.serves(Window { from: cycle.now, until }, None));
        if demand.components.iter().all(|one| one.reservation.is_none())
            && !kept.shares().all(|share| serve(share.node))
        {
            return Verdict::Held;
        }
        let placement = self.extended(cycle, place, kept, until).unwrap_or_else(|| Placement::clone(kept));
        if let Some(run) = self.lend_run(id) {
            cycle.swapped.push(run);
        }
        self.take_start(cycle, place, id, placement);
        Verdict::Started
    }

    /// Keeps more for a job, in queued mode (HPC-F-35).
    pub(super) fn keep_more(&mut self, cycle: &mut Cycle, place: Place, kept: &Placement) {
        let Some(id) = self.queue.get(place).map(|entry| entry.id) else { return };
        let Some(placement) = self.extended(cycle, place, kept, Timestamp::MAX) else { return };
        self.swap_placement(cycle, id, placement.clone());
        cycle.plan.reserved.push(Start { job: id, placement });
    }

    /// The kept resources with what can be added to them, if that is more.
    fn extended(&self, cycle: &Cycle, place: Place, kept: &Placement, until: Timestamp) -> Option<Placement> {
        if self.scheduling.mode != Some(SchedulingMode::Queued) {
            return None;
        }
        let demand = &self.classes.get(self.queue.class_at(place)?).demand;
        let unit = resize::unit_of(demand);
        let most = resize::greatest(demand, kept.components.first()?.alternative)?;
        let missing = most.saturating_sub(resize::units(&self.machine, unit, kept));
        let added = self.search(cycle.now).more(demand, kept, unit, missing, until, &BTreeSet::new())?;
        Some(resize::merged(kept, &added))
    }

    /// Replaces a run's holdings for the rest of this cycle.
    pub(super) fn swap_placement(&mut self, cycle: &mut Cycle, job: JobId, placement: Placement) {
        let Some(run) = self.lend_run(job) else { return };
        let nodes: Vec<_> = run.nodes().chain(placement.shares().map(|share| share.node)).collect();
        self.hold_run(run.on(placement));
        cycle.swapped.push(run);
        cycle.index.update(&self.machine, nodes.into_iter(), cycle.now);
    }
}
