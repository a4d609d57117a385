//! Promises to jobs that cannot start: what they need is held on the machine, from the first moment on at which runs will
//! have left it.

use super::{
    Refusal,
    order::Candidate,
    walk::{Hold, Walk},
};
use crate::{
    class::ClassId,
    engine::Engine,
    machine::Holding,
    model::Demand,
    pass::Cycle,
    routes::Promised,
    search::{Found, serves_kind},
};
use muster_schemas::{
    JobId, Timestamp,
    job::WaitReason,
    policy::routes::Reservations,
    resources::{ComponentPlacement, Placement},
};
use std::sync::Arc;

/// How many times a search for a start continues from hours to room and back.
const MOST_TRIES: usize = 256;

impl Engine {
    /// Holds what earlier cycles have promised, before anybody else gets it. A promise moves only to an earlier time.
    pub(super) fn keep_promised(&mut self, cycle: &mut Cycle, walk: &mut Walk, jobs: &[Candidate]) {
        if walk.routes.reservations != Reservations::Kept {
            return;
        }
        for promised in self.conditions.promised.clone() {
            let job = jobs.iter().find(|job| job.id == promised.job);
            let at = walk.routes.targets.iter().position(|target| target.queue == promised.queue);
            let (Some(job), Some(at)) = (job, at) else { continue };
            let is_taken = |hold: &Hold| hold.promised.job == job.id || hold.promised.queue == promised.queue;
            if walk.holds.iter().any(is_taken) || !self.takes(&walk.routes.targets[at], job) {
                continue;
            }
            let Some((class, found)) = self.first_start_in(cycle, walk, job, at) else { continue };
            let start = promised.start.min(found.start);
            let hold = self.hold_of(walk, class, Promised { start, ..promised }, found);
            self.take_hold(cycle, walk, hold);
        }
    }

    /// Promises a job that cannot start its first start in any queue that holds nothing for another one, if it is the
    /// first such job, or one that is promised a start anyway.
    pub(super) fn promise(
        &mut self,
        cycle: &mut Cycle,
        walk: &mut Walk,
        job: &Candidate,
        targets: &[usize],
        refusal: &Refusal,
    ) {
        let is_wanted = walk.routes.reservations != Reservations::None && (!walk.has_first || job.is_ranked());
        if !is_wanted || job.is_background || matches!(refusal, Refusal::TooLarge | Refusal::OverAllocation) {
            return;
        }
        let mut best: Option<(usize, ClassId, Found)> = None;
        let mut is_late = false;
        for at in targets {
            let target = &walk.routes.targets[*at];
            if !self.takes(target, job) {
                continue;
            }
            if walk.holds.iter().any(|hold| hold.promised.queue == target.queue) {
                is_late = true;
                continue;
            }
            let Some((class, found)) = self.first_start_in(cycle, walk, job, *at) else { continue };
            if best.as_ref().is_none_or(|(.., known)| found.start < known.start) {
                best = Some((*at, class, found));
            }
        }
        let Some((at, class, found)) = best else {
            // It is the first, and others were faster.
            walk.has_first |= is_late;
            return;
        };
        // There is room now, so it waits for something else, and holds up nobody.
        if found.start <= cycle.now {
            return;
        }
        walk.has_first = true;
        let queue = walk.routes.targets[at].queue.clone();
        let promised = Promised { job: job.id, queue, start: found.start };
        let hold = self.hold_of(walk, class, promised, found);
        self.take_hold(cycle, walk, hold);
    }

    /// The first moment from now on at which runs leave a job enough room in a target, and hours and outages let it
    /// start.
    fn first_start_in(
        &mut self,
        cycle: &Cycle,
        walk: &mut Walk,
        job: &Candidate,
        at: usize,
    ) -> Option<(ClassId, Found)> {
        let class_id = self.class_in(walk, job, at)?;
        if !self.search(cycle.now).only_grows {
            self.refresh_gaps(class_id, cycle.now);
        }
        let clock = self.clock(cycle, walk, job, &walk.routes.targets[at]);
        let class = self.classes.get(class_id);
        let mut from = cycle.now;
        for _ in 0..MOST_TRIES {
            from = clock.open_from(from)?;
            let found = self.search(cycle.now).earliest(class, from, Timestamp::MAX)?;
            if clock.barrier(found.start).is_none() {
                return Some((class_id, found));
            }
            from = found.start;
        }
        None
    }

    fn hold_of(&self, walk: &Walk, class: ClassId, promised: Promised, found: Found) -> Hold {
        let demand = self.classes.get(class).demand.clone();
        let placement = match self.is_any_node(walk, &demand) {
            true => without_nodes(&found.placement),
            false => found.placement,
        };
        Hold { promised, demand, placement: Arc::new(placement), holding: Holding::Promise { start: found.start } }
    }

    /// Whether all nodes of the cluster are the same to a demand, so that only their number counts.
    fn is_any_node(&self, walk: &Walk, demand: &Demand) -> bool {
        let Some(nodes) = walk.routes.whole_nodes else { return false };
        demand.components.iter().all(|component| {
            let queue_nodes = self.queues.get(&component.queue).map_or(&[][..], |queue| &queue.nodes);
            component.alternatives.iter().all(|alternative| {
                let serves = |node: &&crate::machine::MachineNode| {
                    node.is_real() && node.is_available && serves_kind(node, queue_nodes, alternative)
                };
                self.machine.nodes().iter().filter(serves).count() == nodes as usize
            })
        })
    }

    /// Takes what is held for a job.
    pub(super) fn take_hold(&mut self, cycle: &mut Cycle, walk: &mut Walk, hold: Hold) {
        self.machine.take(&hold.demand, &hold.placement, hold.holding);
        cycle.taken.push((hold.demand.clone(), hold.placement.clone(), hold.holding));
        self.look_at_nodes_again(cycle, &hold);
        cycle.wake_at(hold.promised.start);
        if self.tells_reasons {
            cycle.tell(hold.promised.job, WaitReason::Reserved { start: hold.promised.start });
        }
        walk.holds.push(hold);
    }

    /// Gives up what is held for a job at its turn.
    pub(super) fn set_hold_aside(&mut self, cycle: &mut Cycle, walk: &mut Walk, job: JobId) -> Option<Hold> {
        let at = walk.holds.iter().position(|hold| hold.promised.job == job)?;
        let hold = walk.holds.remove(at);
        self.machine.lend(&hold.demand, &hold.placement, hold.holding);
        cycle.taken.retain(|(_, placement, _)| !Arc::ptr_eq(placement, &hold.placement));
        cycle.plan.reasons.retain(|told| told.job != job);
        self.look_at_nodes_again(cycle, &hold);
        Some(hold)
    }

    fn look_at_nodes_again(&self, cycle: &mut Cycle, hold: &Hold) {
        cycle.index.update(&self.machine, hold.placement.shares().map(|share| share.node), cycle.now);
    }

    /// Why a job of a class does not fit now: for lack of room, or because others are promised what it needs.
    pub(super) fn no_room(&mut self, cycle: &mut Cycle, walk: &Walk, class: ClassId) -> Refusal {
        let Some(first) = walk.holds.first() else { return Refusal::NoRoom("nodes") };
        let job = first.promised.job;
        for hold in &walk.holds {
            self.machine.lend(&hold.demand, &hold.placement, hold.holding);
        }
        let demand = self.classes.get(class).demand.clone();
        let fits = self.search(cycle.now).at(&demand, cycle.now).is_some();
        for hold in &walk.holds {
            self.machine.take(&hold.demand, &hold.placement, hold.holding);
        }
        if fits {
            Refusal::Reserved(self.holder_in_way(walk, &demand).unwrap_or(job))
        } else {
            Refusal::NoRoom("nodes")
        }
    }

    /// The first job with a promise in the same queue.
    fn holder_in_way(&self, walk: &Walk, demand: &Demand) -> Option<JobId> {
        let queue = crate::model::lead_queue(demand);
        walk.holds.iter().find(|hold| hold.promised.queue == queue).map(|hold| hold.promised.job)
    }
}

/// A placement that holds room, and no nodes.
fn without_nodes(placement: &Placement) -> Placement {
    let without = |component: &ComponentPlacement| ComponentPlacement { shares: Vec::new(), ..component.clone() };
    Placement { components: placement.components.iter().map(without).collect() }
}
