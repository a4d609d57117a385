//! The books of a cycle with routes.

use super::{Refusal, books::Books, hours::Hours, order::Candidate};
use crate::{class::ClassId, machine::Holding, model::Demand, queue::Place, routes::Promised};
use muster_schemas::{
    JobId,
    policy::{Turns, routes::Routes},
    resources::Placement,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The progress of a cycle.
pub(super) struct Walk<'t> {
    pub turns: &'t Turns,
    pub routes: &'t Routes,
    pub books: Books,
    pub holds: Vec<Hold>,
    /// A job of this list could not start, so the promise to the first such job is made.
    pub has_first: bool,
    /// The queues in which only the rules of the usual hours kept a job from starting.
    pub shut_by_hours: BTreeSet<String>,
    /// What became of each job, in the order in which they were looked at.
    pub looks: Vec<(Place, JobId, Option<Refusal>)>,
    /// The position of each refused job in that list.
    pub refused_at: HashMap<Place, usize>,
    /// The classes of jobs in their targets. They are given back at the end.
    pub classes: BTreeMap<(ClassId, usize, u32), ClassId>,
}

impl<'t> Walk<'t> {
    /// The other hours of the policy, with the rules of the usual ones.
    pub fn hours(&self) -> Hours<'t> {
        let other = self.turns.other_hours.as_ref().map_or(&[][..], |other| &other.periods);
        Hours { other, rules: self.routes.hours.as_ref() }
    }

    /// A job was refused. One that is looked at again keeps the place of its first look.
    pub fn refused(&mut self, job: &Candidate, refusal: Refusal) {
        match self.refused_at.get(&job.place) {
            Some(at) => self.looks[*at].2 = Some(refusal),
            None => {
                self.refused_at.insert(job.place, self.looks.len());
                self.looks.push((job.place, job.id, Some(refusal)));
            }
        }
    }

    /// A job, or a task of an array, starts.
    pub fn started(&mut self, job: &Candidate, id: JobId) {
        match self.refused_at.remove(&job.place) {
            Some(at) => self.looks[at] = (job.place, id, None),
            None => self.looks.push((job.place, id, None)),
        }
    }
}

/// The resources that are held for a job.
pub(super) struct Hold {
    pub promised: Promised,
    pub demand: Arc<Demand>,
    pub placement: Arc<Placement>,
    pub holding: Holding,
}
