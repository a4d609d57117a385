//! An array is over when its last task is.

use crate::state::State;
use muster_schemas::{JobId, event::Event, job::Outcome, resources::IndexSet};
use std::collections::BTreeMap;

/// The tasks of one array that a decision ends.
#[derive(Default)]
struct Ending {
    unstarted: u64,
    started: u32,
    parts: Vec<(IndexSet, Outcome)>,
}

/// Adds the end of each array whose last tasks the decision ends.
pub(crate) fn finish(state: &State, events: &mut Vec<Event>) {
    let mut endings: BTreeMap<u64, Ending> = BTreeMap::new();
    for event in events.iter() {
        match event {
            Event::JobFinished { job: JobId { number, index: Some(index) }, outcome } => {
                let ending = endings.entry(*number).or_default();
                ending.started += 1;
                ending.parts.push((IndexSet::from_range(*index, *index), outcome.clone()));
            }
            Event::TasksFinished { job, indices, outcome } => {
                let ending = endings.entry(job.number).or_default();
                ending.unstarted += indices.len();
                ending.parts.push((indices.clone(), outcome.clone()));
            }
            _ => {}
        }
    }
    for (number, ending) in endings {
        let id = JobId::job(number);
        let Some(array) = state.job(id).and_then(|job| job.array.as_ref()) else { continue };
        if array.remaining.len() == ending.unstarted && array.unfinished == ending.started {
            events.push(Event::JobFinished { job: id, outcome: array.outcome_with(&ending.parts) });
        }
    }
}
