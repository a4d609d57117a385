//! Statistics of the scheduler since this gateway started.

use crate::metrics::planner_cycles;
use muster_domain::State;
use muster_schemas::{
    JobId, Timestamp,
    event::{Event, Record},
    job::{JobState, Outcome},
    plan::ComponentMode,
    views::{BackfillPassView, OutcomeView, Statistics},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counts.
#[derive(Debug)]
pub(crate) struct Counts(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    statistics: Statistics,
    /// Starts of the plan that is being read. Whether it was a backfill pass is known only after them.
    starts: Vec<JobId>,
}

impl Counts {
    pub(crate) fn new(since: Timestamp) -> Self {
        let statistics = Statistics { since, ..Statistics::default() };
        Self(Mutex::new(Counted { statistics, ..Counted::default() }))
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes records that follow all earlier ones. `components` gives the number of components of a job that has
    /// several.
    pub(crate) fn count(&self, records: &[Record], components: impl Fn(JobId) -> u64) {
        let mut counted = self.counted();
        for record in records {
            count(&mut counted, record, &components);
        }
    }

    /// The present statistics.
    pub(crate) fn told(&self, state: &State) -> Statistics {
        let counted = self.counted().statistics.clone();
        let jobs = crate::views::job_counts(state);
        let of = |wanted: &[JobState]| wanted.iter().filter_map(|state| jobs.get(state)).sum();
        Statistics {
            waiting: of(&[JobState::Held, JobState::Queued]),
            active: of(&[JobState::Launching, JobState::Running, JobState::Suspended, JobState::Finishing]),
            cycles: planner_cycles(),
            backfill_pass: backfill_pass(state),
            ..counted
        }
    }
}

fn backfill_pass(state: &State) -> Option<BackfillPassView> {
    let passes = state.backfill_passes();
    let mode = ComponentMode::of_pass(passes.number);
    (passes.number > 0).then_some(BackfillPassView { number: passes.number, at: passes.at, mode })
}

/// Counts a record; whether records of its kind count.
fn count(counted: &mut Counted, record: &Record, components: impl Fn(JobId) -> u64) -> bool {
    let Counted { statistics, starts } = counted;
    match &record.event {
        Event::JobSubmitted { .. } => statistics.submitted += 1,
        Event::RunAllocated { job, .. } => {
            statistics.started += 1;
            starts.push(*job);
        }
        Event::RunBackfilled { job, .. } => {
            // It is counted here, and not again with its pass.
            starts.pop_if(|start| start == job);
            statistics.backfilled += 1;
            statistics.backfilled_components += components(*job);
        }
        // Other starts of the cycle need not be ahead of anybody.
        Event::BackfillPassed { .. } => {
            for components in starts.drain(..).map(components).filter(|components| *components > 0) {
                statistics.backfilled += 1;
                statistics.backfilled_components += components;
            }
        }
        Event::JobFinished { outcome, .. } => ended(statistics, outcome, 1),
        Event::TasksFinished { indices, outcome, .. } => ended(statistics, outcome, indices.len()),
        Event::Planned { plan } => {
            starts.clear();
            statistics.plans += 1;
            statistics.last_plan = Some(plan.at);
            statistics.last_plan_jobs = plan.reasons.len() as u64;
        }
        _ => return false,
    }
    true
}

fn ended(counted: &mut Statistics, outcome: &Outcome, jobs: u64) {
    *counted.ended.entry(OutcomeView::from(outcome).outcome).or_default() += jobs;
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{event::Concern, testing::assert_handles};

    #[test]
    fn the_statistics_count_what_the_table_of_events_says() {
        assert_handles(Concern::Statistics, |record| count(&mut Counted::default(), record, |_| 1));
    }
}
