//! The order in which waiting jobs are looked at: priority of the queue, priority of the job, arrival.
//!
//! Jobs wait in lanes, one for each queue and owner, so that a limit or a blocked job shuts a whole lane without a look at
//! the jobs in it. The lanes are kept up to date record by record, because a hundred thousand waiting jobs cannot be
//! sorted for each cycle.

use muster_domain::{State, state::Job};
use muster_schemas::{
    JobId, Timestamp,
    event::{Event, Owner, Record},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, btree_set},
    sync::Arc,
};

/// The place of a job in its lane: priority, arrival, number.
type Place = (Reverse<i64>, Timestamp, JobId);
/// The queue and the owner.
type Lane = (Arc<str>, Arc<Owner>);

/// The waiting jobs whose own gates are open, in lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    lanes: BTreeMap<Lane, BTreeSet<Place>>,
    jobs: usize,
}

impl Order {
    /// The order of all jobs that wait in this state.
    pub fn of(state: &State) -> Self {
        let mut order = Self::default();
        for job in state.jobs() {
            order.insert(position(job));
        }
        order
    }

    /// How many jobs are in it; an array counts as one.
    pub fn len(&self) -> usize {
        self.jobs
    }

    /// Whether no job is in it.
    pub fn is_empty(&self) -> bool {
        self.jobs == 0
    }

    /// Applies a record to the state and follows it.
    pub fn apply(&mut self, state: &mut State, record: &Record) {
        let touched = touched(state, &record.event);
        let before: Vec<_> = touched.iter().map(|id| state.job(*id).and_then(position)).collect();
        state.apply(record);
        for (id, before) in touched.into_iter().zip(before) {
            let after = state.job(id).and_then(position);
            if before != after {
                self.remove(before);
                self.insert(after);
            }
        }
        // Few records open or shut the gates of jobs that nothing named: earlier namesakes, `Before...` dependencies.
        if self.jobs != state.eligible_jobs() {
            *self = Self::of(state);
        }
    }

    /// Walks the jobs in order, lane by lane as they come.
    pub(crate) fn walk<'o>(&'o self, state: &'o State) -> Walk<'o> {
        let mut walk = Walk { state, lanes: Vec::with_capacity(self.lanes.len()), heads: BinaryHeap::new() };
        for ((queue, _), places) in &self.lanes {
            let priority = state.queue(queue).map_or(0, |queue| queue.spec.priority);
            walk.lanes.push((Reverse(priority), places.iter()));
            walk.next_of(walk.lanes.len() - 1);
        }
        walk
    }

    fn insert(&mut self, position: Option<(Lane, Place)>) {
        if let Some((lane, place)) = position {
            self.jobs += usize::from(self.lanes.entry(lane).or_default().insert(place));
        }
    }

    fn remove(&mut self, position: Option<(Lane, Place)>) {
        let Some((lane, place)) = position else { return };
        if let Some(places) = self.lanes.get_mut(&lane) {
            self.jobs -= usize::from(places.remove(&place));
            if places.is_empty() {
                self.lanes.remove(&lane);
            }
        }
    }
}

/// Where a job belongs; `None` if it does not wait or a gate of its own is shut.
fn position(job: &Job) -> Option<(Lane, Place)> {
    let waits = job.is_waiting() && job.gates_open();
    let lead = job.lead();
    waits.then(|| ((lead.queue.clone(), job.owner.clone()), (Reverse(lead.priority), job.queued, job.id)))
}

/// The jobs whose position a record can change, as far as it can be told from the record.
fn touched(state: &State, event: &Event) -> Vec<JobId> {
    let named = event.job().or_else(|| event.run().and_then(|run| state.run(run)).map(|run| run.job));
    let Some(job) = named else { return Vec::new() };
    let mut touched = vec![job];
    if job.index.is_some() {
        touched.push(job.whole());
    }
    for at in 0..touched.len() {
        touched.extend(state.dependents(touched[at]));
    }
    touched.sort_unstable();
    touched.dedup();
    touched
}

/// The jobs in order. The lane of the job that was handed out last goes on only if [`Walk::go_on`] is called.
pub(crate) struct Walk<'o> {
    state: &'o State,
    lanes: Vec<(Reverse<i64>, btree_set::Iter<'o, Place>)>,
    heads: BinaryHeap<Reverse<(Reverse<i64>, &'o Place, usize)>>,
}

/// Which lane a job came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneNumber(usize);

impl<'o> Walk<'o> {
    /// The first job of all lanes that are not shut.
    pub(crate) fn next(&mut self) -> Option<(LaneNumber, &'o Job)> {
        loop {
            let Reverse((_, (_, _, id), lane)) = self.heads.pop()?;
            match self.state.job(*id) {
                Some(job) => return Some((LaneNumber(lane), job)),
                None => self.next_of(lane),
            }
        }
    }

    /// Goes on with the next job of the lane.
    pub(crate) fn go_on(&mut self, LaneNumber(lane): LaneNumber) {
        self.next_of(lane);
    }

    fn next_of(&mut self, lane: usize) {
        let (priority, places) = &mut self.lanes[lane];
        if let Some(place) = places.next() {
            self.heads.push(Reverse((*priority, place, lane)));
        }
    }
}
