//! Resources set aside while filters judge a start or growth, and resources kept for waiting jobs.

use crate::{filters::Kept, state::State};
use muster_schemas::{
    JobId, RunId,
    filter::{ChainSpec, Offer},
    resources::Placement,
};
use std::sync::Arc;

impl State {
    /// Sets aside the offer of a chain. Resources already kept for the job are part of it.
    pub(crate) fn set_aside(&mut self, id: JobId, chain: &ChainSpec) {
        let Some(offer) = &chain.offer else { return };
        self.next_run = self.next_run.max(offer.run.0.saturating_add(1));
        if offer.growth {
            offer.placement.shares().for_each(|share| self.take_share(id, offer.run, share));
        } else if offer.preempts.is_empty() {
            self.give_back_reserved(id);
            self.take_kept(id, offer.run, &offer.placement);
        }
    }

    /// Takes the offer that a chain of the job has set aside.
    fn offer_of(&self, id: JobId) -> Option<Offer> {
        let chain = self.job(id)?.filters.as_ref()?.chain.as_ref()?;
        chain.set_aside().cloned()
    }

    /// Frees the resources that a chain of the job has set aside. The caller ends or withdraws the chain.
    pub(crate) fn give_back_offer(&mut self, id: JobId) {
        let Some(offer) = self.offer_of(id) else { return };
        if offer.growth {
            self.give_back_addition(offer.run, &offer.placement);
        } else if offer.preempts.is_empty() {
            self.give_back_kept(id, offer.run, &offer.placement);
        }
        self.note_freed();
    }

    /// Takes the resources kept for the job again, after a chain held them as part of a larger offer.
    pub(crate) fn take_reserved_again(&mut self, id: JobId) {
        let Some(offer) = self.offer_of(id) else { return };
        if offer.growth || !offer.preempts.is_empty() {
            return;
        }
        if let Some(Kept { run, placement }) = self.reserved(id) {
            self.take_kept(id, run, &placement);
        }
    }

    pub(crate) fn resources_reserved(&mut self, id: JobId, run: RunId, placement: &Arc<Placement>) {
        self.next_run = self.next_run.max(run.0.saturating_add(1));
        self.give_back_reserved(id);
        self.take_kept(id, run, placement);
        self.change_filters(id, |filters| filters.reserved = Some(Kept { run, placement: placement.clone() }));
    }

    pub(crate) fn resources_released(&mut self, id: JobId) {
        let is_start = self.offer_of(id).is_some_and(|offer| !offer.growth && offer.preempts.is_empty());
        if is_start {
            self.give_back_offer(id);
        } else {
            self.give_back_reserved(id);
        }
        self.change_filters(id, |filters| {
            filters.reserved = None;
            if let Some(chain) = filters.chain.as_mut().filter(|_| is_start) {
                chain.is_withdrawn = true;
            }
        });
        self.note_freed();
    }

    /// A run is over: resources offered to it can no longer be added.
    pub(crate) fn withdraw_growth(&mut self, id: JobId) {
        if self.offer_of(id).is_none_or(|offer| !offer.growth) {
            return;
        }
        self.give_back_offer(id);
        self.change_filters(id, |filters| {
            if let Some(chain) = &mut filters.chain {
                chain.is_withdrawn = true;
            }
        });
    }

    /// A run begins: it replaces the resources kept for the job, and the verdict of its filters no longer matters.
    pub(crate) fn run_takes_over(&mut self, id: JobId) {
        if self.job(id).is_none_or(|job| job.filters.is_none()) {
            return;
        }
        self.give_back_reserved(id);
        self.change_filters(id, |filters| {
            filters.reserved = None;
            filters.refusal = None;
            filters.hold = None;
            filters.is_granted = false;
            filters.granted_by = None;
            filters.is_backfill = false;
        });
    }

    fn reserved(&self, id: JobId) -> Option<Kept> {
        self.job(id)?.reserved().cloned()
    }

    fn give_back_reserved(&mut self, id: JobId) {
        if let Some(Kept { run, placement }) = self.reserved(id) {
            self.give_back_kept(id, run, &placement);
        }
    }

    fn take_kept(&mut self, id: JobId, run: RunId, placement: &Placement) {
        placement.shares().for_each(|share| self.take_share(id, run, share));
        self.use_licences(id, placement, u32::saturating_add);
        self.count_run(id, true);
    }

    fn give_back_kept(&mut self, id: JobId, run: RunId, placement: &Placement) {
        placement.shares().for_each(|share| self.give_back_share(run, share, false));
        self.use_licences(id, placement, u32::saturating_sub);
        self.count_run(id, false);
    }

    fn give_back_addition(&mut self, run: RunId, addition: &Placement) {
        for share in addition.shares() {
            let keeps_rest = self.run(run).is_some_and(|run| run.share(share.node).is_some());
            self.give_back_part(run, share, (false, keeps_rest));
        }
    }
}
