//! Starts within quotas, now and later (OAR-Q-01, OAR-Q-05).

use super::{Cycle, in_way};
use crate::{
    class::ClassId,
    engine::{Claim, Engine, parts},
    limits::{Usage, Ways},
    machine::expected_end,
    model::{Demand, Holder, Slot},
    queue::Place,
    search::{Found, Search, order_of_ways},
};
use muster_domain::quotas::{Breach, Part};
use muster_schemas::{Timestamp, job::WaitReason};
use std::sync::Arc;

/// How often the search for a place and that for a time within all limits take turns for one job. One that finds none by then has
/// no promise in this cycle.
const MOST_TRIES: u32 = 10_000;

/// The limits of a quota never hold for a job.
pub(super) struct NeverHolds;

impl Engine {
    /// The limit of a quota that a job would break if it started at a time and used this much.
    pub(crate) fn quota_reached(
        &self,
        holder: &Holder,
        demand: &Demand,
        uses: &[Usage],
        at: Timestamp,
    ) -> Option<Breach> {
        if self.quotas.is_empty() {
            return None;
        }
        self.quotas.breach(&parts(holder, demand, uses), at)
    }

    /// Whether a quota keeps the job at a place from starting now with this much; reports that.
    pub(super) fn is_over_quota(&self, cycle: &mut Cycle, place: Place, uses: &[Usage]) -> bool {
        let Some(entry) = self.queue.get(place) else { return true };
        let demand = &self.classes.get(entry.class).demand;
        let Some(breach) = self.quota_reached(&entry.holder, demand, uses, cycle.now) else { return false };
        self.hold_for_quota(cycle, place, &breach);
        true
    }

    /// The same for the least that the job can use in any way.
    pub(super) fn is_over_quota_anyway(&self, cycle: &mut Cycle, place: Place) -> bool {
        if self.quotas.is_empty() {
            return false;
        }
        let Some(class) = self.queue.class_at(place) else { return true };
        self.is_over_quota(cycle, place, &self.classes.get(class).least)
    }

    /// A quota holds the job. Other rules may let it start without any event.
    fn hold_for_quota(&self, cycle: &mut Cycle, place: Place, breach: &Breach) {
        if let Some(change) = self.quotas.next_change(cycle.now) {
            cycle.wake_at(change);
        }
        self.tell(cycle, place, WaitReason::Limit(breach.to_string()));
    }

    /// Shuts the ways to serve a job that a quota keeps from being taken now.
    pub(super) fn shut_over_quota(&self, place: Place, ways: Option<Ways>, now: Timestamp) -> Option<Ways> {
        let mut ways = ways?;
        let Some(entry) = self.queue.get(place).filter(|_| !self.quotas.is_empty()) else { return Some(ways) };
        let class = self.classes.get(entry.class);
        for (number, of_component) in ways.iter_mut().enumerate() {
            for (way, open) in of_component.iter_mut().enumerate() {
                *open &= self.quota_reached(&entry.holder, &class.demand, &in_way(class, number, way), now).is_none();
            }
        }
        Some(ways)
    }

    /// Whether the promise of a job, if it began at a time, would break a quota; its own holding does not count.
    pub(super) fn promise_breach(&mut self, place: Place, at: Timestamp) -> Option<Breach> {
        if self.quotas.is_empty() {
            return None;
        }
        let entry = self.queue.get(place)?;
        let (id, slot) = (entry.id, entry.slot.clone()?);
        let demand = self.classes.get(entry.class).demand.clone();
        let parts = parts(&entry.holder, &demand, &Usage::of(&slot.placement, &demand));
        self.quotas.release(Claim::Promise(id));
        let breach = self.quotas.breach(&parts, at);
        self.count_promise(place);
        breach
    }

    /// Whether a quota keeps a job from starting now on its promised resources; reports that.
    pub(super) fn is_promise_over_quota(&mut self, cycle: &mut Cycle, place: Place) -> bool {
        let Some(breach) = self.promise_breach(place, cycle.now) else { return false };
        self.hold_for_quota(cycle, place, &breach);
        true
    }

    /// The first start of a job around all runs and promises at which all limits of quotas hold. While promises are only made, an
    /// equal job of the same user never fits earlier than the last one did.
    ///
    /// # Errors
    /// Its limits never hold. It is told so, and holds up nobody.
    pub(super) fn first_start_in_quotas(
        &mut self,
        cycle: &mut Cycle,
        place: Place,
        class_id: ClassId,
    ) -> Result<Option<Found>, NeverHolds> {
        let Some(holder) = self.queue.get(place).map(|entry| entry.holder.clone()) else { return Ok(None) };
        let class = self.classes.get(class_id);
        let search = self.search(cycle.now);
        let is_steady = class.demand.sharing.is_none()
            && !class.has_choice()
            && (search.as_pool(&class.demand).is_some() || search.is_monotone(&class.demand));
        let key = (class_id, holder);
        let hint = cycle.quota_hints.get(&key).copied().filter(|_| is_steady);
        if !search.only_grows {
            self.refresh_gaps(class_id, cycle.now);
        }
        let found = self.find_in_quotas(cycle, place, (hint.unwrap_or(cycle.now), Timestamp::MAX));
        match found {
            Ok(found) => {
                if let Some(found) = &found {
                    cycle.quota_hints.insert(key, found.start);
                }
                Ok(found)
            }
            Err(breach) => {
                self.hold_for_quota(cycle, place, &breach);
                Err(NeverHolds)
            }
        }
    }

    /// The first start within these times at which a job has room and all limits of quotas hold; with a choice of ways, that in the
    /// way which is best.
    ///
    /// # Errors
    /// The limit that never holds, if that is why there is no start.
    pub(super) fn find_in_quotas(
        &self,
        cycle: &Cycle,
        place: Place,
        times: (Timestamp, Timestamp),
    ) -> Result<Option<Found>, Breach> {
        let Some(entry) = self.queue.get(place) else { return Ok(None) };
        let class = self.classes.get(entry.class);
        let open = self.open_ways(place);
        if !class.is_moldable() {
            return self.find_in_way(cycle, entry.class, &entry.holder, open.as_deref(), times);
        }
        let (mut best, mut never) = (None, None);
        let ways = class.ways.first().map_or(0, Vec::len);
        let deadline = class.demand.components.first().and_then(|component| component.deadline);
        let is_open = |way: usize| open.as_ref().is_none_or(|open| open[0][way]);
        for way in (0..ways).filter(|way| is_open(*way)) {
            let only = vec![(0..ways).map(|other| other == way).collect()];
            match self.find_in_way(cycle, entry.class, &entry.holder, Some(&only), times) {
                Ok(Some(found)) => {
                    let end = expected_end(&class.demand, &found.placement, found.start);
                    let order = order_of_ways(found.start, end, deadline);
                    if best.as_ref().is_none_or(|(best, _)| order < *best) {
                        best = Some((order, found));
                    }
                }
                Ok(None) => {}
                Err(breach) => never = Some(breach),
            }
        }
        match (best, never) {
            (Some((_, found)), _) => Ok(Some(found)),
            (None, Some(breach)) => Err(breach),
            (None, None) => Ok(None),
        }
    }

    /// The same without what the job's own promise holds of quotas.
    pub(super) fn find_without_own(
        &mut self,
        cycle: &Cycle,
        place: Place,
        times: (Timestamp, Timestamp),
    ) -> Option<Found> {
        let id = self.queue.get(place)?.id;
        self.quotas.release(Claim::Promise(id));
        let found = self.find_in_quotas(cycle, place, times);
        self.count_promise(place);
        found.ok().flatten()
    }

    fn find_in_way(
        &self,
        cycle: &Cycle,
        class_id: ClassId,
        holder: &Holder,
        ways: Option<&[Vec<bool>]>,
        (mut from, bound): (Timestamp, Timestamp),
    ) -> Result<Option<Found>, Breach> {
        let class = self.classes.get(class_id);
        let search = Search { ways, ..self.search(cycle.now) };
        for _ in 0..MOST_TRIES {
            let Some(found) = search.earliest(class, from, bound).filter(|_| from < bound) else { return Ok(None) };
            let parts: Vec<Part> = parts(holder, &class.demand, &Usage::of(&found.placement, &class.demand));
            match self.quotas.first_start(&parts, found.start)? {
                start if start == found.start => return Ok(Some(found)),
                start => from = start,
            }
        }
        Ok(None)
    }

    /// A promise for this cycle only holds its part of quotas until the cycle is over.
    pub(super) fn count_promise_for_now(&mut self, cycle: &mut Cycle, place: Place, found: &Found) {
        if self.quotas.is_empty() {
            return;
        }
        let slot = Slot { start: found.start, placement: Arc::new(found.placement.clone()) };
        self.count_as_promise(place, &slot);
        cycle.quota_places.push(place);
    }

    /// Gives back the parts that are held for this cycle only.
    pub(super) fn forget_promises_for_now(&mut self, cycle: &mut Cycle) {
        cycle.quota_places.drain(..).for_each(|place| self.count_promise(place));
    }
}
