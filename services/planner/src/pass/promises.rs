//! Backfill mode `conservative`: every waiting job is promised a start, and the promise is kept.

use super::{Cycle, Verdict, quotas::NeverHolds};
use crate::{
    class::ClassId,
    engine::Engine,
    machine::Holding,
    model::{Demand, Slot},
    queue::Place,
    search::{Found, Search},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    job::WaitReason,
    policy::{Backfill, BackfillMode},
    resources::{ComponentPlacement, NodeShare, Placement},
};
use std::collections::BTreeMap;

impl Engine {
    /// Keeps promises: renews them if something became free, makes new ones, starts the jobs whose time has come, and
    /// lets further tasks of arrays start before promises.
    pub(super) fn keep_promises(&mut self, cycle: &mut Cycle, sorted: &[Place], backfill: Backfill) {
        for place in sorted {
            self.drop_if_shut_out(cycle, *place);
        }
        if self.capacity_freed {
            self.renew_all(cycle, sorted);
            self.look_at_all(cycle);
        }
        cycle.hints.clear();
        cycle.sweeps.clear();
        let mut promises_left = backfill.reservations.unwrap_or(u32::MAX);
        for place in sorted {
            if promises_left == 0 || !cycle.may_look(*place) {
                break;
            }
            if self.make(cycle, *place) {
                promises_left -= 1;
            }
        }
        self.look_at_all(cycle);
        for place in sorted {
            self.redeem(cycle, *place);
        }
        for place in sorted {
            self.start_further_tasks(cycle, *place);
        }
        self.claim_despite_promises(cycle, sorted);
    }

    /// Takes back promises that cannot be kept because a node, a licence or time on them was lost, or that the policy
    /// does not keep because another one made them. A policy that keeps promises makes them again, in order, together
    /// with those of jobs that have none.
    pub(super) fn drop_broken_promises(&mut self, cycle: &mut Cycle) {
        // Promises behind a run that makes way count on its end, and who makes way is decided again in each pass.
        let is_in_doubt = std::mem::take(&mut self.slots_in_doubt) || !self.yielding.is_empty();
        if self.machine.promises() == 0 || !(is_in_doubt || self.has_late_promises(cycle)) {
            return;
        }
        for block in self.queue.blocks() {
            let is_kept =
                self.scheduling.mode.is_none() && self.queue.backfill(block).mode == BackfillMode::Conservative;
            let sorted = self.queue.take_sorted(block);
            // The last ones first: if two hold the same, the earlier job keeps it.
            for place in sorted.iter().rev() {
                let Some(entry) = self.queue.get(*place) else { continue };
                let Some(slot) = &entry.slot else { continue };
                let demand = &self.classes.get(entry.class).demand;
                if demand.fixed.is_some() {
                    continue;
                }
                let start = slot.start.max(cycle.now);
                if !is_kept
                    || !self.machine.keeps(demand, &slot.placement, slot.start, cycle.now)
                    || self.promise_breach(*place, start).is_some()
                {
                    self.change_slot(cycle, *place, None);
                }
            }
            self.queue.restore(block, sorted);
        }
    }

    /// Whether a job waits for an overrunning run: what it is promised moves on with time, and into what others are promised.
    fn has_late_promises(&self, cycle: &Cycle) -> bool {
        self.machine.first_promise().is_some_and(|start| start < cycle.now)
    }

    /// Takes back the promise of a job that has waited too long for an overrunning run: its nodes no longer serve the
    /// job.
    fn drop_if_shut_out(&mut self, cycle: &mut Cycle, place: Place) {
        let Some(entry) = self.queue.get(place) else { return };
        let Some(slot) = entry.slot.as_ref().filter(|slot| slot.start < cycle.now) else { return };
        let demand = &self.classes.get(entry.class).demand;
        if !self.machine.serves(demand, &slot.placement, cycle.now) {
            self.change_slot(cycle, place, None);
        }
    }

    /// Promises a job without a slot the earliest one; returns whether it did.
    fn make(&mut self, cycle: &mut Cycle, place: Place) -> bool {
        if self.queue.get(place).is_none_or(|entry| entry.slot.is_some()) {
            return self.queue.get(place).is_some();
        }
        if self.kept(place).is_some() {
            self.look_at_all(cycle);
            return self.may_be_planned(cycle, place) && self.start(cycle, place) == Verdict::Started;
        }
        if !self.may_be_planned(cycle, place) || !self.has_headroom(cycle, place) || self.is_limited(cycle, place) {
            return false;
        }
        let Some(class_id) = self.queue.class_at(place) else { return false };
        self.look_through(cycle, place);
        if let Some(made) = self.make_first(cycle, place, class_id) {
            return made;
        }
        // Nobody makes way for it after all.
        self.look_at_all(cycle);
        self.make_first(cycle, place, class_id).unwrap_or(false)
    }

    /// Promises a job its first start on the machine as it is. Returns whether it did; `None` if runs would make way for that,
    /// and cannot.
    fn make_first(&mut self, cycle: &mut Cycle, place: Place, class_id: ClassId) -> Option<bool> {
        let sharing = self.classes.get(class_id).demand.sharing.clone();
        let found = match self.quotas.is_empty() {
            true => self.first_start(cycle, place, class_id),
            false => {
                let in_quotas = |engine: &mut Self| engine.first_start_in_quotas(cycle, place, class_id);
                match self.viewed(sharing.as_ref(), in_quotas) {
                    Ok(found) => found,
                    Err(NeverHolds) => return Some(false),
                }
            }
        };
        match found {
            // The job could not start, and would only keep others from the promised resources.
            Some(found) if self.is_limited_to_less(cycle, place, &self.usage_at(place, &found.placement)) => {
                Some(false)
            }
            Some(found) => {
                let is_promised = self.promise_slot(cycle, place, found);
                if is_promised {
                    self.note_look(cycle, place);
                }
                is_promised.then_some(true)
            }
            None => {
                if !self.is_hopeless(place) {
                    self.tell_no_start(cycle, place);
                }
                Some(false)
            }
        }
    }

    /// The first start of a job around all promises. While promises are only made, an equal job never fits earlier than
    /// the last one did.
    fn first_start(&mut self, cycle: &mut Cycle, place: Place, class_id: ClassId) -> Option<Found> {
        let is_pool = self.search(cycle.now).as_pool(&self.classes.get(class_id).demand).is_some();
        let is_monotone = self.search(cycle.now).is_monotone(&self.classes.get(class_id).demand);
        let is_shared = self.classes.get(class_id).demand.sharing.is_some();
        if is_pool || !is_monotone || is_shared || self.classes.get(class_id).is_moldable() {
            return self.first_start_of_any(cycle, place, class_id, is_pool);
        }
        if !cycle.sweeps.contains_key(&class_id)
            && let Some(placement) = self.place_class_now(cycle, class_id, None)
        {
            return Some(Found { start: cycle.now, placement });
        }
        self.refresh_gaps(class_id, cycle.now);
        let search = self.search(cycle.now);
        let class = self.classes.get(class_id);
        if !cycle.sweeps.contains_key(&class_id) {
            cycle.sweeps.insert(class_id, search.sweep(class, cycle.now)?);
        }
        search.next_of(class, cycle.sweeps.get_mut(&class_id)?, Timestamp::MAX)
    }

    fn first_start_of_any(
        &mut self,
        cycle: &mut Cycle,
        place: Place,
        class_id: ClassId,
        is_pool: bool,
    ) -> Option<Found> {
        let from = cycle.hints.get(&class_id).copied().unwrap_or(cycle.now);
        let ways = self.open_ways(place);
        let sharing = self.classes.get(class_id).demand.sharing.clone();
        let found = self.viewed(sharing.as_ref(), |engine| {
            engine.refresh_gaps(class_id, cycle.now);
            let search = Search { ways: ways.as_deref(), ..engine.search(cycle.now) };
            search.earliest(engine.classes.get(class_id), from, Timestamp::MAX)
        })?;
        if is_pool {
            cycle.hints.insert(class_id, found.start);
        }
        Some(found)
    }

    pub(super) fn change_slot(&mut self, cycle: &mut Cycle, place: Place, slot: Option<Slot>) {
        let Some(entry) = self.queue.get(place) else { return };
        let id = entry.id;
        let old = entry.slot.clone();
        let changed_now: Vec<NodeId> =
            old.iter().chain(&slot).filter(|slot| slot.start <= cycle.now).flat_map(nodes).collect();
        cycle.old_slots.entry(id).or_insert((place, old));
        self.set_slot_at(place, slot);
        cycle.index.update(&self.machine, changed_now.into_iter(), cycle.now);
    }

    /// Starts a job whose time has come on its promised resources. It keeps waiting if a run exceeds its walltime on
    /// them.
    fn redeem(&mut self, cycle: &mut Cycle, place: Place) {
        let Some(entry) = self.queue.get(place) else { return };
        let Some(slot) = entry.slot.clone() else { return };
        if slot.start > cycle.now {
            return cycle.wake_at(slot.start);
        }
        let task = entry.tasks.as_ref().and_then(|tasks| tasks.indices.first());
        let id = task.map_or(entry.id, |index| JobId::task(entry.id.number, index));
        // A job ahead that waits for resources at an unknown time does not affect earlier promises to others.
        if cycle.left_out.contains(&id.whole())
            || self.is_shut(cycle, entry)
            || !self.queues_start(place)
            || cycle.is_full(self.policy.max_starts)
        {
            return;
        }
        let usage = self.usage_at(place, &slot.placement);
        if !self.has_headroom(cycle, place)
            || self.is_limited_to_less(cycle, place, &usage)
            || self.is_promise_over_quota(cycle, place)
        {
            // If kept, the promise would block resources that the job cannot use, and then those that follow.
            return self.change_slot(cycle, place, None);
        }
        let Some(class_id) = self.queue.class_at(place) else { return };
        let demand = self.classes.get(class_id).demand.clone();
        let promise = Holding::Promise { start: slot.start };
        self.machine.lend(&demand, &slot.placement, promise);
        let redeemed =
            self.viewed(demand.sharing.as_ref(), |engine| engine.redeemed(&demand, &slot.placement, cycle.now));
        let Some(placement) = redeemed else {
            self.machine.take(&demand, &slot.placement, promise);
            return;
        };
        self.take_start(cycle, place, id, placement);
        if task.is_some() {
            cycle.redeemed_arrays.push(place);
        }
        cycle.given_up.push((demand, slot.placement, promise));
    }

    /// The same amounts on the same nodes, from what is free now.
    pub(super) fn redeemed(&self, demand: &Demand, promised: &Placement, now: Timestamp) -> Option<Placement> {
        if !self.machine.has_licences(demand, promised, now) {
            return None;
        }
        // Components of a job may share a node.
        let may_share = promised.components.len() > 1;
        let mut redeemed: BTreeMap<NodeId, Vec<NodeShare>> = BTreeMap::new();
        let mut share_of = |promised: &NodeShare| {
            let own = redeemed.get(&promised.node).map_or(&[][..], Vec::as_slice);
            let share = self.machine.node(promised.node)?.redeem(promised, own, now)?;
            if may_share {
                redeemed.entry(share.node).or_default().push(share.clone());
            }
            Some(share)
        };
        let component = |placed: &ComponentPlacement| {
            let shares = placed.shares.iter().map(&mut share_of).collect::<Option<_>>()?;
            Some(ComponentPlacement { alternative: placed.alternative, shares })
        };
        let components = promised.components.iter().map(component).collect::<Option<_>>()?;
        Some(Placement { components })
    }

    pub(super) fn has_headroom(&self, cycle: &Cycle, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return false };
        let started = cycle.started_of_array.get(&entry.id.number).copied().unwrap_or(0);
        entry.tasks.as_ref().is_none_or(|tasks| tasks.headroom > started)
    }

    /// Only the next task of an array has a promise. Further ones start if they fit around all promises.
    fn start_further_tasks(&mut self, cycle: &mut Cycle, place: Place) {
        let Some(entry) = self.queue.get(place) else { return };
        let Some(tasks) = entry.tasks.clone() else { return };
        let id = entry.id;
        if self.is_full(cycle) || !self.may_be_planned(cycle, place) {
            return;
        }
        for index in tasks.indices.iter().skip(1) {
            if !self.has_headroom(cycle, place) {
                return;
            }
            if self.start_one(cycle, place, JobId::task(id.number, index)) != Verdict::Started {
                return;
            }
        }
    }
}

fn nodes(slot: &Slot) -> impl Iterator<Item = NodeId> + '_ {
    slot.placement.shares().map(|share| share.node)
}

impl Engine {
    /// Records why a job waits, if reasons are wanted.
    pub(super) fn tell(&self, cycle: &mut Cycle, place: Place, reason: WaitReason) {
        if self.tells_reasons
            && let Some(entry) = self.queue.get(place)
        {
            cycle.tell(entry.id, reason);
        }
    }
}
