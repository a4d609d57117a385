//! Jobs with a fixed start (OAR-G-11, OAR-G-13): promised before all others or refused, and kept by every policy.

use super::{Cycle, yielding::Wanted};
use crate::{
    domains::{asked, domain_of},
    engine::Engine,
    limits::Usage,
    machine::Holding,
    model::{Demand, Slot},
    queue::Place,
};
use muster_domain::fixed::FixedTime;
use muster_schemas::{
    JobId, Timestamp,
    job::WaitReason,
    resources::{Alternative, Placement},
};
use std::sync::Arc;

impl Engine {
    /// Whether the start of the job at a place is fixed.
    pub(super) fn is_fixed(&self, place: Place) -> bool {
        self.fixed_jobs > 0 && self.fixed_time(place).is_some()
    }

    fn fixed_time(&self, place: Place) -> Option<FixedTime> {
        self.queue.class_at(place).and_then(|class| self.classes.get(class).demand.fixed)
    }

    /// Places without those of jobs whose start is fixed; `None` if there are no such jobs.
    pub(super) fn without_fixed(&self, sorted: &[Place]) -> Option<Vec<Place>> {
        let others = || sorted.iter().copied().filter(|place| !self.is_fixed(*place)).collect();
        (self.fixed_jobs > 0).then(others)
    }

    /// Promises or refuses what the jobs with fixed starts ask for, in the order of their submission, and starts those
    /// whose time has come.
    pub(super) fn keep_fixed(&mut self, cycle: &mut Cycle) {
        if self.fixed_jobs == 0 {
            return;
        }
        let entries = self.queue.entries().filter(|entry| self.classes.get(entry.class).demand.fixed.is_some());
        let mut fixed: Vec<JobId> = entries.map(|entry| entry.id).collect();
        fixed.retain(|job| !cycle.left_out.contains(job));
        fixed.sort_unstable();
        for place in fixed.into_iter().filter_map(|job| self.queue.place_of(job)).collect::<Vec<_>>() {
            let is_promised = self.queue.get(place).is_some_and(|entry| entry.slot.is_some());
            if !is_promised {
                self.promise_fixed(cycle, place);
            }
            self.start_fixed(cycle, place);
        }
    }

    fn promise_fixed(&mut self, cycle: &mut Cycle, place: Place) {
        let (Some(class), Some(time)) = (self.queue.class_at(place), self.fixed_time(place)) else { return };
        let demand = self.classes.get(class).demand.clone();
        let start = time.start.max(cycle.now);
        let wanted = lasting(&demand, time.seconds_left(cycle.now));
        let found = self.viewed(demand.sharing.as_ref(), |engine| engine.search(cycle.now).at(&wanted, start));
        let quota = found.as_ref().map(|placement| self.quota_at(place, &wanted, placement, start));
        let asked = Wanted { demand: &wanted, ways: None, from: start };
        let refusal = match quota.or_else(|| self.room_after_others(cycle, place, asked)) {
            Some(Ok(slot)) => {
                self.change_slot(cycle, place, Some(slot));
                return self.clear_way(cycle, place);
            }
            Some(Err(breach)) => breach,
            None => self.shut_domain(&demand).unwrap_or_else(|| format!("no room at {start}")),
        };
        let later = self.viewed(demand.sharing.as_ref(), |engine| {
            engine.refresh_gaps(class, cycle.now);
            match engine.quotas.is_empty() {
                true => engine.search(cycle.now).earliest_start(&demand, start, Timestamp::MAX),
                false => engine.find_in_quotas(cycle, place, (start, Timestamp::MAX)).ok().flatten(),
            }
        });
        let when =
            later.map_or("it could never start".to_owned(), |found| format!("it could start at {}", found.start));
        if let Some(entry) = self.queue.get(place) {
            // The ledger ends the job for this reason, so it is told even if nobody wants reasons.
            cycle.tell(entry.id, WaitReason::NeverFits(format!("{refusal}; {when}")));
        }
    }

    /// That the planning domain of a job holds nothing yet, if that is so: nobody knows what it will hold.
    fn shut_domain(&self, demand: &Demand) -> Option<String> {
        let key = asked(demand)?;
        let is_open = self.nodes_in(key).any(|(.., is_open)| is_open);
        (!is_open).then(|| format!("planning domain {} holds nothing yet", domain_of(key).unwrap_or_default()))
    }

    /// A promise of a placement from a time on, or the quota that it would break.
    pub(super) fn quota_at(
        &self,
        place: Place,
        wanted: &Demand,
        placement: &Placement,
        start: Timestamp,
    ) -> Result<Slot, String> {
        let holder = self.queue.get(place).map(|entry| &entry.holder);
        let breach = holder.and_then(|holder| self.quota_reached(holder, wanted, &Usage::of(placement, wanted), start));
        let slot = || Slot { start, placement: Arc::new(placement.clone()) };
        breach.map_or_else(|| Ok(slot()), |breach| Err(breach.to_string()))
    }

    /// Starts the job on its promised nodes once all of them take jobs and the resources are free. If some do not, it starts
    /// on the others after a while (OAR-G-13).
    fn start_fixed(&mut self, cycle: &mut Cycle, place: Place) {
        let Some(entry) = self.queue.get(place) else { return };
        let (id, Some(slot)) = (entry.id, entry.slot.clone()) else { return };
        if slot.start > cycle.now {
            return cycle.wake_at(slot.start);
        }
        let Some(there) = self.there(cycle, &slot) else { return };
        if self.policy.starts_nothing.is_some()
            || self.is_shut(cycle, entry)
            || !self.queues_start(place)
            || cycle.is_full(self.policy.max_starts)
            || self.is_limited_to_less(cycle, place, &self.usage_at(place, &slot.placement))
            || self.is_promise_over_quota(cycle, place)
        {
            return;
        }
        let Some(class) = self.queue.class_at(place) else { return };
        let demand = self.classes.get(class).demand.clone();
        if asked(&demand).is_some() && !self.machine.serves(&demand, &there, cycle.now) {
            // Its planning domain no longer has what it was promised.
            return;
        }
        let promise = Holding::Promise { start: slot.start };
        self.machine.lend(&demand, &slot.placement, promise);
        let redeemed = self.viewed(demand.sharing.as_ref(), |engine| engine.redeemed(&demand, &there, cycle.now));
        match redeemed {
            Some(placement) => {
                let left = self.fixed_time(place).map(|time| time.seconds_left(cycle.now));
                let lasting = left.map_or_else(|| demand.clone(), |seconds| Arc::new(lasting(&demand, seconds)));
                self.take_start_as(cycle, place, id, lasting, placement);
                cycle.given_up.push((demand, slot.placement, promise));
            }
            None => self.machine.take(&demand, &slot.placement, promise),
        }
    }

    /// The promised nodes on which a job may start now: all of them, or those that take jobs once it has waited long enough
    /// for the others. `None` while it waits.
    fn there(&self, cycle: &mut Cycle, slot: &Slot) -> Option<Placement> {
        let is_available = |node| self.machine.node(node).is_some_and(|node| node.is_available);
        let mut there = Placement::clone(&slot.placement);
        if there.shares().all(|share| is_available(share.node)) {
            return Some(there);
        }
        let patience = i64::from(self.settings.reserved_nodes_patience());
        let late = slot.start.plus_seconds(patience);
        if cycle.now < late {
            cycle.wake_at(late);
            return None;
        }
        // Each component needs a node: one without any is not started at all.
        there.components.iter_mut().for_each(|placed| placed.shares.retain(|share| is_available(share.node)));
        there.components.iter().all(|placed| !placed.shares.is_empty()).then_some(there)
    }
}

/// The demand for as long as this.
fn lasting(demand: &Demand, seconds: u64) -> Demand {
    let mut demand = demand.clone();
    let seconds = seconds.saturating_add(demand.guard_seconds);
    for component in &mut demand.components {
        let shorter = |way: &Alternative| Alternative { walltime_seconds: Some(seconds), ..way.clone() };
        component.alternatives = component.alternatives.iter().map(shorter).collect();
    }
    demand
}
