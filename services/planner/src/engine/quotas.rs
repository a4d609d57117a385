//! The parts of quotas that runs and promises hold (OAR-Q-05).

use super::{
    Engine, Run,
    claims::{Claim, parts},
};
use crate::{limits::Usage, machine::expected_end, model::Slot, queue::Place, timeline::ALWAYS};
use muster_schemas::quota::QuotaTable;
use std::sync::Arc;

impl Engine {
    /// Sets the quotas, and the number of cores of all nodes, which some of them follow.
    pub fn set_quotas(&mut self, table: Option<&QuotaTable>, cores: u64) {
        let is_known = table.map_or_else(|| self.quotas.is_empty(), |table| **self.quotas.table() == *table);
        if is_known {
            return self.quotas.set_cores(cores);
        }
        self.quotas = muster_domain::quotas::Book::new(Arc::new(table.cloned().unwrap_or_default()), cores);
        let runs: Vec<Run> = self.run_entries().cloned().collect();
        runs.iter().for_each(|run| self.count_run(run));
        let promised = self.queue.entries().filter(|entry| entry.slot.is_some());
        let promised: Vec<Place> = promised.filter_map(|entry| self.queue.place_of(entry.id)).collect();
        promised.into_iter().for_each(|place| self.count_promise(place));
        // Promises may break the rules, or come earlier under them.
        self.slots_in_doubt = true;
        self.machine.frees_anything();
    }

    /// A run holds its part of quotas until its assumed end.
    pub(super) fn count_run(&mut self, run: &Run) {
        if !self.quotas.is_empty() {
            let parts = parts(&run.run.holder, &run.run.demand, &run.usage);
            self.quotas.hold(Claim::Run(run.run.job), &parts, ALWAYS, run.assumed_end);
        }
    }

    /// The promise of the job at a place holds its part of quotas, if there is one.
    pub(crate) fn count_promise(&mut self, place: Place) {
        if self.quotas.is_empty() {
            return;
        }
        let Some(entry) = self.queue.get(place) else { return };
        let (id, slot) = (entry.id, entry.slot.clone());
        match slot {
            Some(slot) => self.count_as_promise(place, &slot),
            None => self.quotas.release(Claim::Promise(id)),
        }
    }

    /// A job holds its part of quotas as if it had this promise.
    pub(crate) fn count_as_promise(&mut self, place: Place, slot: &Slot) {
        if self.quotas.is_empty() {
            return;
        }
        let Some(entry) = self.queue.get(place) else { return };
        let demand = &self.classes.get(entry.class).demand;
        let parts = parts(&entry.holder, demand, &Usage::of(&slot.placement, demand));
        let until = expected_end(demand, &slot.placement, slot.start);
        self.quotas.hold(Claim::Promise(entry.id), &parts, slot.start, until);
    }

    /// Whether a run breaks the limit of a quota together with promises, which were made without it.
    pub(super) fn breaks_quotas(&mut self, run: &Run) -> bool {
        if self.quotas.is_empty() || self.machine.promises() == 0 {
            return false;
        }
        let parts = parts(&run.run.holder, &run.run.demand, &run.usage);
        let Some(from) = self.passed_at else { return true };
        self.quotas.release(Claim::Run(run.run.job));
        // One that was suspended, or is late, lasts for longer than its walltime.
        let breaks = self.quotas.breach_between(&parts, from, run.assumed_end).is_some();
        self.count_run(run);
        breaks
    }
}
