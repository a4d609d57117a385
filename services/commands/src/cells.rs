//! What tables show of jobs and nodes.

use crate::{
    show::with_local_times,
    table::{Cell, Style},
};
use jiff::tz::TimeZone;
use muster_schemas::{
    Timestamp,
    job::JobState,
    views::{ArrayView, JobView, NodeStateWord, NodeView, OutcomeWord},
};

/// A job's state, or its outcome once it has ended.
pub fn state_cell(job: &JobView) -> Cell {
    if let Some(outcome) = &job.outcome {
        let style = match outcome.outcome {
            OutcomeWord::Completed => Style::Good,
            OutcomeWord::Cancelled | OutcomeWord::Requeued | OutcomeWord::Preempted => Style::Dim,
            _ => Style::Bad,
        };
        return Cell::styled(outcome.outcome.word(), style);
    }
    let style = match job.state {
        JobState::Running => Style::Good,
        JobState::Held | JobState::Suspended => Style::Warning,
        JobState::Finished => Style::Dim,
        JobState::Queued | JobState::Launching | JobState::Finishing => Style::Plain,
    };
    Cell::styled(job.state.word(), style)
}

/// A node's state.
fn node_state_cell(state: NodeStateWord) -> Cell {
    let style = match state {
        NodeStateWord::Up => Style::Good,
        NodeStateWord::Drained => Style::Warning,
        NodeStateWord::Lost => Style::Bad,
        NodeStateWord::Unknown => Style::Dim,
    };
    Cell::styled(state.word(), style)
}

/// A node's state, or its power state if it is not simply awake.
pub fn node_cell(node: &NodeView) -> Cell {
    match node.power {
        Some(power) if node.state != NodeStateWord::Drained => Cell::styled(power.phase.to_string(), Style::Dim),
        _ => node_state_cell(node.state),
    }
}

/// An id as people read it. For an array it includes the tasks that have not started: `12_[4-9%2]`.
pub fn job_id_text(job: &JobView) -> String {
    match &job.array {
        Some(array) if !array.remaining.is_empty() => {
            let limit = array.max_running.map(|limit| format!("%{limit}")).unwrap_or_default();
            format!("{}_[{}{limit}]", job.id, array.remaining)
        }
        _ => job.id.to_string(),
    }
}

/// The states of an array's tasks: `2 running, 5 completed, 1 failed`.
pub fn array_text(array: &ArrayView) -> String {
    let counts = [(array.waiting, "waiting"), (array.running, "running")];
    let counts = counts.into_iter().chain(array.finished.iter().map(|(outcome, count)| (*count, outcome.word())));
    let texts: Vec<String> =
        counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    texts.join(", ")
}

/// How long a job has run, to the nearest second; `None` before its first run.
pub fn elapsed_seconds(job: &JobView, now: Timestamp) -> Option<i64> {
    let started = job.started.filter(|_| job.array.is_none())?;
    let until = job.ended.unwrap_or(now);
    Some((until.micros_since(started).max(0) + 500_000) / 1_000_000)
}

/// Why a job waits, or another remark about it.
pub fn remark(job: &JobView) -> String {
    let array = job.array.as_ref().filter(|array| array.waiting < array.total).map(array_text);
    let reason = job.reason.as_ref().map(|reason| with_local_times(&reason.text, &TimeZone::system()));
    let message = job.filtering.as_ref().and_then(|filtering| filtering.message.clone());
    let ended = job.outcome.as_ref().and_then(|outcome| match (&outcome.detail, outcome.exit_status) {
        (Some(detail), _) => Some(detail.clone()),
        (None, Some(status)) if !status.is_success() => Some(status.to_string()),
        _ => None,
    });
    let stopped = job.is_stopped.then(|| "stopped by a signal".to_owned());
    let parts: Vec<String> = [array, reason, stopped, ended, message].into_iter().flatten().collect();
    parts.join("; ")
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use muster_schemas::{JobId, job::Holds};

    pub fn job(number: u64) -> JobView {
        JobView {
            id: JobId::job(number),
            number,
            name: "relax".into(),
            owner: "anna".into(),
            queue: "default".into(),
            account: None,
            class: None,
            priority: 0,
            class_priority: 0,
            state: JobState::Queued,
            reason: None,
            holds: Holds::default(),
            outcome: None,
            submitted: Timestamp::from_unix_seconds(0),
            begin: None,
            started: None,
            ended: None,
            walltime_seconds: None,
            nodes: Vec::new(),
            node_count: 2,
            tasks: 2,
            cores: 8,
            components: 1,
            run: None,
            runs: 0,
            reservation: None,
            slot_start: None,
            stopping: None,
            predicted_start: None,
            array: None,
            filtering: None,
            elastic: None,
            by_component: Vec::new(),
            dialect: None,
            is_stopped: false,
            is_repeated: false,
            copies: None,
            is_resuming: false,
            comment: None,
        }
    }

    #[test]
    fn run_times_are_rounded_to_the_nearest_second() {
        for (micros, seconds) in [(1_995_000, 2), (2_004_000, 2), (499_999, 0), (500_000, 1), (-5_000_000, 0)] {
            let job = JobView { started: Some(Timestamp(7)), ended: Some(Timestamp(7 + micros)), ..job(1) };
            assert_eq!(elapsed_seconds(&job, Timestamp(0)), Some(seconds), "{micros} \u{b5}s");
        }
    }
}
