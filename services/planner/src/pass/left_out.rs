//! The jobs to which a pass does not come, because its time is over (OAR-G-09).

use super::{Cycle, PassLimit};
use crate::{engine::Engine, queue::Place};
use muster_schemas::{JobId, job::WaitReason};
use std::collections::{BTreeSet, HashSet};

/// How many looks at jobs go by between two questions whether to continue.
const LOOKS_AT_ONCE: u64 = 16;
/// How many jobs a pass at most says that it has left out.
const MOST_LEFT_OUT: usize = 10_000;

impl Cycle<'_> {
    /// Whether there is time for a look at the job at a place. Once there is none, the cycle is cut short.
    pub fn may_look(&mut self, place: Place) -> bool {
        if self.plan.cut_after.is_some() {
            return false;
        }
        let looks = self.looked.len() as u64;
        let goes_on = match &self.limit {
            PassLimit::Endless => return true,
            PassLimit::While(goes_on) => !looks.is_multiple_of(LOOKS_AT_ONCE) || goes_on(),
            PassLimit::Looks(most) => looks < *most,
        };
        if goes_on {
            self.looked.push(place);
        } else {
            (self.plan.cut_after, self.plan.is_cut_short) = (Some(looks), true);
        }
        goes_on
    }
}

impl Engine {
    /// A cycle that was cut short by its limit tells the jobs that it did not come to; those that an earlier one left out, and
    /// this one did not, are not left out any longer.
    pub(super) fn tell_who_is_left_out(&self, cycle: &mut Cycle) {
        if cycle.plan.cut_after.is_none() || !self.tells_reasons {
            return;
        }
        let looked: HashSet<Place> = cycle.looked.iter().copied().collect();
        let told = cycle.plan.reasons.iter().map(|waiting| waiting.job);
        let started = cycle.plan.starts.iter().map(|start| start.job.whole());
        let is_done: BTreeSet<JobId> = told.chain(started).collect();
        let mut news: Vec<(JobId, WaitReason)> = Vec::new();
        for entry in self.queue.entries().filter(|entry| !is_done.contains(&entry.id) && entry.slot.is_none()) {
            let is_known = entry.known_reason.as_deref() == Some(&WaitReason::LeftOut);
            let is_looked_at = self.queue.place_of(entry.id).is_none_or(|place| looked.contains(&place));
            match is_looked_at || cycle.left_out.contains(&entry.id) {
                true if is_known => news.push((entry.id, WaitReason::NotPlannedYet)),
                false if !is_known => news.push((entry.id, WaitReason::LeftOut)),
                _ => {}
            }
        }
        news.sort_unstable();
        for (job, reason) in news.into_iter().take(MOST_LEFT_OUT) {
            cycle.tell(job, reason);
        }
    }
}
