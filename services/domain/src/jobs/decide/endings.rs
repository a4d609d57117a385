//! Ends of jobs by command or by time.

use crate::{
    decide::{conflict, one_if},
    jobs::{Job, Phase},
    state::State,
    tasks,
};
use muster_schemas::{
    command::{JobEnding, Refusal},
    event::Event,
    job::Outcome,
    resources::IndexSet,
};

/// The state of a job, for messages.
pub(crate) fn word(state: &State, job: &Job) -> &'static str {
    match &job.phase {
        Phase::Finished(finished) => finished.outcome.word(),
        _ => state.job_state(job).word(),
    }
}

pub(crate) fn tasks_over(array: &Job, indices: IndexSet, outcome: &Outcome) -> Event {
    Event::TasksFinished { job: array.id, indices, outcome: outcome.clone() }
}

/// If a runner is judging this waiting job, it ends only after the verdict, so that the filter's work is known
/// (HPC-F-23, HPC-F-68).
pub(crate) fn judged(job: &Job, outcome: &Outcome) -> Option<Vec<Event>> {
    let filters = job.filters.as_ref().filter(|filters| filters.is_judged() && filters.is_called())?;
    let is_news = filters.ends_after_verdict.as_ref() != Some(outcome);
    Some(one_if(is_news, || Event::JobEndRequested { job: job.id, outcome: outcome.clone() }))
}

pub(crate) fn end_job(state: &State, job: &Job, ending: &JobEnding, outcome: Outcome) -> Result<Vec<Event>, Refusal> {
    match &job.phase {
        Phase::Waiting => Ok(match judged(job, &outcome) {
            Some(later) => later,
            None => vec![Event::JobFinished { job: job.id, outcome }],
        }),
        Phase::Active(run) => state.run(*run).map_or(Ok(Vec::new()), |run| tasks::decide::end_run(job, run, ending)),
        _ => Err(conflict(format!("job {} is over: {}", job.id, word(state, job)))),
    }
}

/// The end of a waiting job, or of all waiting tasks of an array.
pub(crate) fn given_up(job: &Job, outcome: Outcome) -> Event {
    match &job.array {
        Some(array) => Event::TasksFinished { job: job.id, indices: array.remaining.clone(), outcome },
        None => Event::JobFinished { job: job.id, outcome },
    }
}
