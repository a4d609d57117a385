//! The lines of a job, its attempts and its steps.

use super::{JobFlag, Row};
use crate::{
    job_id::StepName,
    show::{
        record::{JobRecord, Sources, of_detail},
        step::StepRecord,
    },
    size::Units,
    words::{ExitCode, State, ended_reason},
};
use muster_schemas::{
    event::EndCause,
    job::{Program, Usage},
    views::{CancelView, JobDetail, OutcomeView, OutcomeWord, RunNodeView, RunView},
};
use std::sync::Arc;

/// Information that a job's details lack.
pub struct Beside<'s, 'q> {
    /// Information that views of jobs lack.
    pub sources: &'s Sources<'q>,
    /// The name of the cluster.
    pub cluster: Arc<str>,
    /// The steps started by `srun`, in all components.
    pub steps: Vec<StepRecord>,
}

/// The lines of a job: for each component its latest attempt with its steps, including the batch script, and if
/// `with_earlier` is set the earlier attempts (`sacct -D`).
pub fn rows(detail: &JobDetail, beside: &Beside<'_, '_>, with_earlier: bool) -> Vec<Row> {
    let records = of_detail(detail, beside.sources);
    let latest = detail.job.run.and_then(|run| detail.runs.iter().find(|known| known.run == run));
    // A requeued job has no attempt until it starts again: the last one is over.
    let waits = records.first().is_some_and(|record| record.state.is_pending());
    let latest = latest.filter(|run| !waits && !was_put_back(run));
    let mut rows = Vec::new();
    for mut record in records {
        // Accounting shows how it ended even while its files are being staged out.
        if let (State::StageOut, Some(outcome)) = (record.state, &detail.job.outcome) {
            record.state = State::ended(outcome.outcome);
        }
        if latest.is_none() {
            record.started = None;
            record.nodes.clear();
        }
        let offset = record.het.as_ref().map_or(0, |het| het.offset as usize);
        let is_latest = |run: &RunView| latest.is_some_and(|latest| latest.run == run.run);
        let earlier = detail.runs.iter().filter(|run| with_earlier && !is_latest(run));
        for run in earlier {
            let attempt = attempt(&record, run);
            rows.extend(lines(attempt, Some(run), detail, offset, beside, &[]));
        }
        let of_component = |step: &&StepRecord| step.job == record.number;
        let steps: Vec<StepRecord> = beside.steps.iter().filter(of_component).cloned().collect();
        rows.extend(lines(record, latest, detail, offset, beside, &steps));
    }
    rows
}

fn was_put_back(run: &RunView) -> bool {
    run.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeWord::Requeued)
}

/// The lines of an attempt, its batch script, and these steps.
fn lines(
    record: JobRecord,
    run: Option<&RunView>,
    detail: &JobDetail,
    offset: usize,
    beside: &Beside<'_, '_>,
    steps: &[StepRecord],
) -> Vec<Row> {
    let usage = run.map(|run| own_usage(run, detail, offset)).unwrap_or_default();
    let cancelled_by = canceller(detail, run, offset).filter(|_| record.state == State::Cancelled);
    let batch = batch(&record, detail, offset, usage);
    let derived_exit = steps.iter().map(|step| step.exit).max_by_key(|exit| (exit.status, exit.signal));
    let failed_node = run.and_then(lost_node);
    let flags = JobFlag::of(run);
    let job = Arc::new(record);
    let row = |step: Option<StepRecord>, usage| Row {
        job: Arc::clone(&job),
        step,
        usage,
        derived_exit: derived_exit.unwrap_or_default(),
        cancelled_by,
        cluster: Arc::clone(&beside.cluster),
        failed_node: failed_node.clone(),
        flags: flags.clone(),
        association: None,
        units: Units::default(),
    };
    let of_step = |step: StepRecord| {
        let usage = step.usage;
        row(Some(step), usage)
    };
    let steps = batch.into_iter().chain(steps.iter().cloned()).map(of_step);
    [row(None, usage)].into_iter().chain(steps).collect()
}

/// The node whose loss ended a run.
fn lost_node(run: &RunView) -> Option<String> {
    let is_lost = |node: &&RunNodeView| matches!(node.exit.as_ref().map(|exit| &exit.cause), Some(EndCause::Lost(_)));
    run.outcome.as_ref().filter(|outcome| outcome.outcome == OutcomeWord::NodeLost)?;
    run.nodes.iter().find(is_lost).map(|node| node.node.clone())
}

/// The usage of a component in a run, as far as its nodes have reported.
fn own_usage(run: &RunView, detail: &JobDetail, offset: usize) -> Usage {
    if detail.spec.components.len() < 2 {
        return run.usage;
    }
    let own = run.nodes.iter().filter(|node| node.component as usize == offset);
    own.filter_map(|node| node.exit.as_ref()).map(|exit| exit.usage).fold(Usage::default(), Usage::plus)
}

/// The number of the user who cancelled a component, alone or with the others: in a run, or in the job before it had
/// one (SL-A-06).
fn canceller(detail: &JobDetail, run: Option<&RunView>, offset: usize) -> Option<u32> {
    let is_of_run = |cancel: &&CancelView| cancel.run.is_none_or(|stopped| run.is_some_and(|run| run.run == stopped));
    let of_run = || detail.cancels.iter().filter(is_of_run);
    let is_alone = |cancel: &&CancelView| cancel.component.is_some_and(|component| component as usize == offset);
    let alone = of_run().find(is_alone);
    alone.or_else(|| of_run().find(|cancel| cancel.component.is_none())).map(|cancel| cancel.uid)
}

/// The script as a step of component 0: one task on its first node.
fn batch(record: &JobRecord, detail: &JobDetail, offset: usize, usage: Usage) -> Option<StepRecord> {
    let lead = detail.spec.components.first()?;
    let is_script = matches!(lead.launch.program, Program::Script { .. });
    if offset > 0 || !is_script || record.started.is_none() {
        return None;
    }
    let mut step = StepRecord::of_job(record, StepName::Batch, "batch");
    step.nodes.truncate(1);
    step.tasks = 1;
    step.usage = usage;
    if matches!(step.state, State::Cancelled | State::Timeout) {
        // In these cases SIGTERM ends the script.
        step.exit = ExitCode { status: 0, signal: 15 };
        step.state = State::Cancelled;
    }
    Some(step)
}

/// The line of an attempt that was followed by another.
fn attempt(record: &JobRecord, run: &RunView) -> JobRecord {
    let mut attempt = record.clone();
    attempt.started = run.started;
    attempt.ended = run.ended;
    let offset = record.het.as_ref().map_or(0, |het| het.offset);
    let parts = || run.nodes.iter().filter(|node| node.component == offset);
    attempt.nodes = parts().map(|node| node.node.clone()).collect();
    attempt.node_count = u32::try_from(attempt.nodes.len()).unwrap_or(u32::MAX);
    attempt.cpus = parts().map(|node| node.cores.len()).sum();
    attempt.gpus = parts().map(|node| node.gpus.len()).sum();
    attempt.tasks = parts().map(|node| node.tasks).sum();
    if let Some(outcome) = &run.outcome {
        set_outcome(&mut attempt, outcome);
    }
    attempt
}

fn set_outcome(attempt: &mut JobRecord, outcome: &OutcomeView) {
    attempt.state = State::ended(outcome.outcome);
    attempt.exit = ExitCode::of(outcome);
    attempt.reason = ended_reason(outcome);
}
