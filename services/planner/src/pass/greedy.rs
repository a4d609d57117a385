//! Backfill modes `none` and `easy`: each cycle plans from scratch, and at most the first waiting jobs get a promise.

use super::{Cycle, Verdict, components::Ruled, inside::no_room};
use crate::{
    class::ClassId,
    domains::{domain_of, open_in},
    engine::Engine,
    limits::{Usage, queues},
    machine::Holding,
    model::{Demand, Slot},
    queue::Place,
    search::{Found, Search},
};
use muster_schemas::{
    Timestamp,
    job::WaitReason,
    policy::{Backfill, BackfillMode, CandidateOrder},
    resources::Placement,
};
use std::sync::Arc;

impl Engine {
    /// Jobs in order until the maximum number has been promised resources; then candidates that delay none of those.
    pub(super) fn greedy(&mut self, cycle: &mut Cycle, sorted: &[Place], backfill: Backfill) {
        let mut promises_left = match backfill.mode {
            BackfillMode::None => 0,
            _ => backfill.reservations.unwrap_or(1),
        };
        let may_pass = backfill.mode != BackfillMode::None;
        let mut tries_left = backfill.look_ahead.unwrap_or(u32::MAX);
        let has_limits = self.limits.has_any(&self.queues);
        for (number, place) in sorted.iter().enumerate() {
            if cycle.plan.is_cut_short || self.is_all_blocked(cycle) || !cycle.may_look(*place) {
                return;
            }
            if may_pass && promises_left == 0 {
                return self.backfill(cycle, &sorted[number..], backfill, tries_left);
            }
            if self.is_asked(*place) {
                continue;
            }
            if self.is_ruled(cycle, *place) {
                if tries_left == 0 && cycle.components.is_pass() {
                    continue;
                }
                match self.rule(cycle, *place, backfill.mode) {
                    Ruled::Placed => promises_left -= 1,
                    Ruled::Tried => tries_left -= 1,
                    Ruled::Left | Ruled::Started => {}
                }
                continue;
            }
            // While all nodes are drained this applies to all jobs, and only a limit would be worth reporting.
            if !has_limits && self.is_hopeless_now(cycle, *place) {
                continue;
            }
            self.pass_block_on(cycle, *place);
            if !self.may_be_planned(cycle, *place) || self.start(cycle, *place) != Verdict::NoRoom {
                continue;
            }
            if self.is_hopeless(*place) {
                continue;
            }
            let as_list = self.claim_as_list(cycle, *place);
            let by_class = if as_list.is_some() { None } else { self.claim_by_class(cycle, *place) };
            if promises_left > 0 {
                let taken_before = cycle.taken.len();
                promises_left -= u32::from(self.promise_for_now(cycle, *place, by_class));
                if let Some(claimed) = as_list {
                    self.keep_idle(cycle, *place, &claimed, taken_before);
                }
            } else {
                self.block(cycle, *place);
                self.tell_shortage(cycle, *place);
            }
        }
    }

    /// Whether a job that is not behind another can neither start nor get a promise, because no node has anything free
    /// and the job can never be served.
    fn is_hopeless_now(&self, cycle: &Cycle, place: Place) -> bool {
        cycle.index.is_empty()
            && cycle.plan.starts.is_empty()
            && cycle.blocked.is_empty()
            && self.is_hopeless(place)
            && self.kept(place).is_none()
    }

    /// A job that is behind in one of its queues waits at its place in the others: no later job may go around it there.
    pub(super) fn pass_block_on(&self, cycle: &mut Cycle, place: Place) {
        let Some(blocker) = self.blocker(cycle, place) else { return };
        let Some(entry) = self.queue.get(place) else { return };
        let demand = &self.classes.get(entry.class).demand;
        let is_in_others = queues(demand).any(|queue| !cycle.blocked.contains_key(queue));
        if is_in_others && !cycle.left_out.contains(&entry.id) && self.queues_start(place) {
            self.block(cycle, place);
            self.tell(cycle, place, WaitReason::BehindJob(blocker));
        }
    }

    /// Whether the job exists, is not left out, its queues start jobs and no earlier job holds them up.
    pub(super) fn may_be_planned(&self, cycle: &Cycle, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return false };
        !cycle.left_out.contains(&entry.id)
            && !cycle.beyond_users_most.contains(&place)
            && !self.is_shut(cycle, entry)
            && self.blocker(cycle, place).is_none()
            && self.queues_start(place)
    }

    /// Nobody knows when a job can start, so no later job may have its nodes; but a job whose reservation ends too soon
    /// holds up nobody. Returns whether it waits for resources.
    pub(super) fn tell_no_start(&self, cycle: &mut Cycle, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return false };
        let demand = &self.classes.get(entry.class).demand;
        let bound = demand.components.iter().filter_map(|component| component.reservation.as_ref());
        let reservation = bound.into_iter().find(|name| open_in(name).is_none());
        match reservation {
            Some(name) if domain_of(name).is_some() && !self.is_endless(name) => {
                self.tell(cycle, place, no_room(name));
                false
            }
            Some(name) if domain_of(name).is_none() => {
                let reason = format!("it does not fit into reservation {name} before that ends");
                self.tell(cycle, place, WaitReason::Resources(reason));
                false
            }
            _ => {
                self.block(cycle, place);
                self.tell_shortage(cycle, place);
                true
            }
        }
    }

    pub(super) fn queues_start(&self, place: Place) -> bool {
        self.queue.class_at(place).is_some_and(|class| self.queues_of_class_start(class))
    }

    pub(super) fn queues_of_class_start(&self, class: ClassId) -> bool {
        queues(&self.classes.get(class).demand).all(|name| self.queues.get(name).is_none_or(|queue| queue.started))
    }

    /// Whether nothing is free for any job.
    pub(super) fn is_full(&self, cycle: &Cycle) -> bool {
        cycle.index.is_empty() && !self.machine.is_shared()
    }

    fn is_all_blocked(&self, cycle: &Cycle) -> bool {
        !cycle.blocked.is_empty() && cycle.blocked.len() >= self.queues.len()
    }

    /// Promises a job its earliest start for this cycle, unless a limit holds it. If nobody knows that start, no later
    /// job may have its nodes. If runs make way for it, that is at once on what it has claimed, or as soon as the other
    /// runs have left it enough. Returns whether it waits for resources, and not for a limit.
    fn promise_for_now(&mut self, cycle: &mut Cycle, place: Place, claimed: Option<Placement>) -> bool {
        let Some(class_id) = self.queue.class_at(place) else { return false };
        let demand = self.classes.get(class_id).demand.clone();
        let ways = self.open_ways(place);
        if let Some(placement) = claimed {
            let found = Found { start: cycle.now, placement };
            return self.keep_for_now(cycle, place, &demand, found);
        }
        let found = self.viewed(demand.sharing.as_ref(), |engine| {
            if !engine.search(cycle.now).only_grows {
                engine.refresh_gaps(class_id, cycle.now);
            }
            if !engine.quotas.is_empty() {
                return engine.first_start_in_quotas(cycle, place, class_id);
            }
            let class = engine.classes.get(class_id);
            let known = cycle.known(&class.demand);
            let search = Search { known, ways: ways.as_deref(), ..engine.search(cycle.now) };
            Ok(search.earliest(class, cycle.now, Timestamp::MAX))
        });
        let Ok(found) = found else { return false };
        let before = found.as_ref().map_or(Timestamp::MAX, |found| found.start);
        let through = self.earlier_through(cycle, place, class_id, before);
        let through = through.map(|slot| Found { start: slot.start, placement: Placement::clone(&slot.placement) });
        let Some(found) = through.or(found) else { return self.tell_no_start(cycle, place) };
        if self.is_limited_to_less(cycle, place, &Usage::of(&found.placement, &demand)) {
            return false;
        }
        self.keep_for_now(cycle, place, &demand, found)
    }

    /// Promises a job a start for this cycle. Runs in its way end in time.
    fn keep_for_now(&mut self, cycle: &mut Cycle, place: Place, demand: &Arc<Demand>, found: Found) -> bool {
        self.count_promise_for_now(cycle, place, &found);
        let holding = Holding::Promise { start: found.start };
        let placement = Arc::new(found.placement);
        self.machine.take(demand, &placement, holding);
        self.clear_way_of(cycle, place, &Slot { start: found.start, placement: placement.clone() });
        if found.start <= cycle.now {
            // It waits for its other tasks, or as a moldable job for a way that ends sooner: its promised resources are
            // not free.
            cycle.index.update(&self.machine, placement.shares().map(|share| share.node), cycle.now);
        }
        cycle.taken.push((demand.clone(), placement, holding));
        cycle.wake_at(found.start);
        let known = self.queue.get(place).and_then(|entry| entry.known_reason.as_deref());
        let reason = match known {
            // Runs leave for it. How long they take is no news.
            Some(WaitReason::Reserved { start }) if found.start == cycle.now && *start <= cycle.now => {
                WaitReason::Reserved { start: *start }
            }
            _ => WaitReason::Reserved { start: found.start },
        };
        self.tell(cycle, place, reason);
        true
    }

    /// Starts candidates that fit around the promises.
    fn backfill(&mut self, cycle: &mut Cycle, rest: &[Place], backfill: Backfill, tries_left: u32) {
        cycle.offers.goes_around = true;
        let tries_left = self.try_candidates(cycle, rest, backfill, tries_left);
        self.rule_rest(cycle, rest, backfill.mode, tries_left);
        cycle.offers.goes_around = false;
    }

    /// Tries candidates in their order; returns how many more may be tried.
    fn try_candidates(&mut self, cycle: &mut Cycle, rest: &[Place], backfill: Backfill, mut tries_left: u32) -> u32 {
        let by_walltime;
        let candidates = match backfill.candidates {
            CandidateOrder::QueueOrder => rest,
            CandidateOrder::Sjbf => {
                by_walltime = self.by_walltime(rest);
                &by_walltime
            }
        };
        for place in candidates {
            if tries_left == 0 || cycle.plan.is_cut_short || self.is_full(cycle) || self.is_all_blocked(cycle) {
                return tries_left;
            }
            if !cycle.may_look(*place) {
                return tries_left;
            }
            if self.is_ruled(cycle, *place) {
                if self.rule(cycle, *place, backfill.mode) != Ruled::Left {
                    tries_left -= 1;
                }
                continue;
            }
            // Most candidates equal one that did not fit, and then the job needs no look.
            if backfill.look_ahead.is_none() && self.is_known_to_fail(cycle, *place) {
                if cycle.failed_classes == self.classes.len() {
                    return tries_left;
                }
                continue;
            }
            if !self.may_be_planned(cycle, *place) || backfill.require_walltime && !self.has_walltime(*place) {
                continue;
            }
            if self.start(cycle, *place) != Verdict::Held {
                tries_left -= 1;
            }
        }
        tries_left
    }

    /// Whether the place has no job, or one that is known not to fit now, by its class and the free resources.
    fn is_known_to_fail(&mut self, cycle: &mut Cycle, place: Place) -> bool {
        let Some(class) = self.queue.class_at(place).filter(|_| !self.is_asked(place)) else { return true };
        if self.kept(place).is_some() {
            return false;
        }
        if self.classes.has_failed(class, self.passes) {
            return true;
        }
        let fails = !cycle.index.may_fit(self.classes.get(class));
        if fails {
            self.classes.fails(class, self.passes);
            cycle.failed_classes += 1;
        }
        fails
    }

    fn by_walltime(&self, places: &[Place]) -> Vec<Place> {
        let mut sorted: Vec<Place> = places.iter().copied().filter(|place| self.queue.get(*place).is_some()).collect();
        sorted.sort_by_key(|place| {
            let entry = self.queue.get(*place);
            entry.and_then(|entry| self.classes.get(entry.class).size.walltime_seconds).unwrap_or(u64::MAX)
        });
        sorted
    }

    pub(super) fn has_walltime(&self, place: Place) -> bool {
        let Some(entry) = self.queue.get(place) else { return false };
        let components = &self.classes.get(entry.class).demand.components;
        let mut alternatives = components.iter().flat_map(|component| component.alternatives.iter());
        alternatives.all(|alternative| alternative.walltime_seconds.is_some())
    }
}
