//! Jobs that want nodes in few groups, and take others once they have waited long enough (SL-C-12).
//!
//! The wait counts from when a job could first have started in more groups. The log keeps that time: it is in the reason
//! why the job waits. A job that could no longer start in any groups, or is not looked at, begins again.

use super::Cycle;
use crate::{engine::Engine, queue::Place, search::Search};
use muster_schemas::{event::WaitingJob, job::WaitReason, resources::Placement};

impl Engine {
    /// Where a job fits that has waited long enough. One that would fit begins to wait, or waits on.
    pub(super) fn place_in_more_groups(&mut self, cycle: &mut Cycle, place: Place) -> Option<Placement> {
        let class = self.classes.get(self.queue.class_at(place)?);
        let patience = class.patience.as_ref().filter(|patience| patience.demand.sharing.is_none())?;
        let ways = self.open_ways(place);
        let search = Search { known: cycle.known(&patience.demand), ways: ways.as_deref(), ..self.search(cycle.now) };
        let placement = search.at(&patience.demand, cycle.now)?;
        let begins = patience.until(cycle.now);
        let tells_reasons = self.tells_reasons;
        let entry = self.queue.get_mut(place)?;
        let until = entry.patient_until.unwrap_or(begins);
        if until <= cycle.now {
            return Some(placement);
        }
        // In simulations no log keeps the time.
        if !tells_reasons {
            entry.patient_until = Some(until);
        }
        cycle.patient.insert(entry.id, until);
        cycle.wake_at(until);
        None
    }

    /// Gives the jobs that wait in this way their reason: it says more than what else was found about them.
    pub(super) fn tell_the_patient(&self, cycle: &mut Cycle) {
        let patient = std::mem::take(&mut cycle.patient);
        if patient.is_empty() || !self.tells_reasons {
            return;
        }
        cycle.plan.reasons.retain(|waiting| !patient.contains_key(&waiting.job));
        let told = patient.into_iter().map(|(job, until)| WaitingJob { job, reason: WaitReason::FewGroups { until } });
        cycle.plan.reasons.extend(told);
    }
}
