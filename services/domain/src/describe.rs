//! Events in words, for people.

use crate::state::State;
use muster_schemas::{
    JobId, NodeId, RunId,
    event::{Actor, DeliveryResult, EndCause, Event, JobChange, NodeExit, Record, StopReason},
    job::{Holds, JobSpec, Outcome, Program},
    resources::Placement,
};

/// What a record says, as one sentence without its time. Names that the record does not have itself come from a state
/// near it, before or after; if that does not know them either, numbers stand for them.
pub fn describe(record: &Record, state: &State) -> String {
    let names = Names { state };
    match &record.event {
        Event::ClusterInitialised { cluster_id, .. } => format!("cluster {cluster_id} was founded"),
        Event::SettingsChanged { .. } => format!("{} changed the cluster's settings", actor(&record.actor)),
        Event::QueueSet { queue } => format!("queue {} was set by {}", queue.name, actor(&record.actor)),
        Event::QueueRemoved { name } => format!("queue {name} was removed by {}", actor(&record.actor)),
        Event::LicenceSet { name, total: 0 } => format!("licence {name} was removed by {}", actor(&record.actor)),
        Event::LicenceSet { name, total } => {
            format!("{} of licence {name} exist, says {}", total, actor(&record.actor))
        }
        Event::NodeAdded { spec, .. } => {
            format!("node {} was added, with {}", spec.name, counted(u64::from(spec.cores), "core"))
        }
        Event::NodeChanged { spec, .. } => {
            format!("node {} was changed, it has {}", spec.name, counted(u64::from(spec.cores), "core"))
        }
        Event::NodeRemoved { node } => format!("node {} was removed", names.node(*node)),
        Event::NodeUp { node, .. } => format!("node {} is up", names.node(*node)),
        Event::NodeLost { node, reason } => format!("node {} is lost: {reason}", names.node(*node)),
        Event::NodeDrained { node, reason } => {
            format!("node {} was drained by {}: {reason}", names.node(*node), actor(&record.actor))
        }
        Event::NodeResumed { node } => {
            format!("node {} takes jobs again, by {}", names.node(*node), actor(&record.actor))
        }
        Event::JobSubmitted { job, owner, spec } => submitted(*job, &owner.user, spec),
        Event::JobHeld { job, holds, reason } => {
            let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            format!("job {job} was held ({}) by {}{why}", hold_names(*holds), actor(&record.actor))
        }
        Event::JobReleased { job, holds } => {
            format!("job {job} was released ({}) by {}", hold_names(*holds), actor(&record.actor))
        }
        Event::JobModified { job, change } => {
            format!("job {job} was changed by {}: {}", actor(&record.actor), change_names(change))
        }
        Event::JobEligible { job } => format!("the time that job {job} waited for has come"),
        Event::JobsWaiting { reasons } => match reasons.as_slice() {
            [only] => format!("job {} waits: {}", only.job, only.reason),
            reasons => format!("{} wait for new reasons", counted(reasons.len() as u64, "job")),
        },
        Event::RunAllocated { job, run, placement } => {
            format!("job {job} got {} (run {run})", names.placement(placement))
        }
        Event::RunNodeStarted { run, node } => {
            format!("{} started on {} (run {run})", names.job_of(*run), names.node(*node))
        }
        Event::RunStarted { job, run, .. } => match state.run(*run) {
            Some(known) => format!("job {job} started on {} (run {run})", names.placement(&known.placement)),
            None => format!("job {job} started (run {run})"),
        },
        Event::RunStopping { job, run, reason } => {
            format!("job {job} is being stopped: {} (run {run})", stop_reason(*reason, &record.actor))
        }
        Event::RunNodeEnded { run, node, exit } => {
            format!("{} ended on {}: {} (run {run})", names.job_of(*run), names.node(*node), exit_words(exit))
        }
        Event::RunEnded { job, run, outcome, .. } => {
            format!("run {run} of job {job} ended: {}", outcome_words(outcome))
        }
        Event::JobRequeued { job, reason } => {
            format!("job {job} is back in the queue: {}", stop_reason(*reason, &record.actor))
        }
        Event::JobFinished { job, outcome } => format!("job {job} is over: {}", outcome_words(outcome)),
        Event::TasksFinished { job, indices, outcome } => {
            format!("tasks {indices} of array {job} are over before they started: {}", outcome_words(outcome))
        }
        Event::JobSuspended { job, .. } => format!("job {job} was suspended by {}", actor(&record.actor)),
        Event::JobResumed { job, .. } => format!("job {job} goes on, by {}", actor(&record.actor)),
        Event::JobSignalled { job, signal, .. } => {
            format!("signal {signal} was sent to job {job} by {}", actor(&record.actor))
        }
        Event::StepStarted { job, step, tasks, .. } => {
            let total = tasks.iter().map(|part| u64::from(part.tasks)).sum();
            let nodes: Vec<String> = tasks.iter().map(|part| names.node(part.node)).collect();
            format!("step {step} of job {job} was started: {} on {}", counted(total, "task"), nodes.join(","))
        }
        Event::StepNodeEnded { run, step, node, exit } => {
            format!("step {step} of {} ended on {}: {}", names.job_of(*run), names.node(*node), exit_words(exit))
        }
        Event::StepEnded { job, step, status, .. } => match status {
            Some(status) => format!("step {step} of job {job} ended: {status}"),
            None => format!("step {step} of job {job} ended without having run"),
        },
        Event::NotificationDone { job, result, of, .. } => match result {
            DeliveryResult::Delivered => format!("a notification of job {job} about record {of} was delivered"),
            DeliveryResult::GivenUp { attempts, error } => {
                let tries = counted(u64::from(*attempts), "attempt");
                format!("a notification of job {job} about record {of} was given up after {tries}: {error}")
            }
        },
        Event::Checkpoint { of, .. } => format!("the log up to record {of} was signed"),
        Event::StartRefused { job, reason } => format!("a start of job {job} was refused: {reason}"),
        Event::RunNumbersRaised { next } => {
            format!(
                "{} remembers runs that the log does not have: the next run gets number {next}",
                actor(&record.actor)
            )
        }
        Event::RangeArchived { first, last, file, .. } => format!("records {first} to {last} were archived in {file}"),
    }
}

struct Names<'a> {
    state: &'a State,
}

impl Names<'_> {
    fn node(&self, node: NodeId) -> String {
        self.state.node_name(node).into_owned()
    }

    fn placement(&self, placement: &Placement) -> String {
        let nodes: Vec<String> = placement.shares().map(|share| self.node(share.node)).collect();
        nodes.join(",")
    }

    fn job_of(&self, run: RunId) -> String {
        self.state.run(run).map_or_else(|| "its job".into(), |run| format!("job {}", run.job))
    }
}

fn actor(actor: &Actor) -> String {
    match actor {
        Actor::User(owner) => owner.user.clone(),
        Actor::Planner => "the planner".into(),
        Actor::Executor(node) => format!("node {node}"),
        Actor::Notifier => "a notifier".into(),
        Actor::Ledger => "muster".into(),
    }
}

fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn submitted(job: JobId, user: &str, spec: &JobSpec) -> String {
    let queue = spec.components.first().and_then(|component| component.queue.as_deref()).unwrap_or("?");
    let kind = match (&spec.array, spec.components.as_slice()) {
        (Some(array), _) => format!(", an array of {}", counted(array.indices.len(), "task")),
        (None, [_, _, ..]) => format!(", with {} components", spec.components.len()),
        (None, [only]) if matches!(only.launch.program, Program::None) => ", which only holds resources".into(),
        _ => String::new(),
    };
    format!("{user} submitted job {job} `{}` to queue {queue}{kind}", spec.name)
}

fn hold_names(holds: Holds) -> String {
    let names = [(holds.user, "user"), (holds.operator, "operator"), (holds.system, "system")];
    let set: Vec<&str> = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    set.join(", ")
}

fn change_names(change: &JobChange) -> String {
    let text = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
    let parts = [
        text("name", &change.name),
        text("queue", &change.queue),
        text("account", &change.account),
        change.priority.map(|priority| format!("priority {priority}")),
        change.begin.map(|begin| format!("not before {begin}")),
        change.walltime_seconds.map(|seconds| format!("walltime {seconds} s")),
        change.alternatives.as_ref().map(|_| "another request".to_owned()),
        change.dependencies.as_ref().map(|_| "other dependencies".to_owned()),
        change.max_running.map(|most| format!("at most {most} tasks at a time")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn stop_reason(reason: StopReason, by: &Actor) -> String {
    match reason {
        StopReason::Cancelled => format!("cancelled by {}", actor(by)),
        StopReason::Requeued if matches!(by, Actor::User(_)) => format!("requeued by {}", actor(by)),
        StopReason::Requeued => "requeued".into(),
        StopReason::Preempted => "another job needs the resources".into(),
        StopReason::NodeLost => "one of its nodes was lost".into(),
        StopReason::PeerEnded => "another part of it ended for all".into(),
        StopReason::LaunchTimeout => "its launch was not confirmed in time".into(),
    }
}

fn exit_words(exit: &NodeExit) -> String {
    let status = || exit.status.map_or_else(|| "nothing had been started".to_owned(), |status| status.to_string());
    match &exit.cause {
        EndCause::Itself => status(),
        EndCause::Walltime => "its walltime was over".into(),
        EndCause::Killed => format!("killed, {}", status()),
        EndCause::OutOfMemory => "out of memory".into(),
        EndCause::LaunchFailed(why) => format!("could not be started: {why}"),
        EndCause::Lost(why) => format!("lost: {why}"),
    }
}

/// How a job or run ended, in words.
pub fn outcome_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed".into(),
        Outcome::Failed(status) => format!("failed, {status}"),
        Outcome::LaunchFailed(why) => format!("could not be started: {why}"),
        Outcome::Cancelled => "cancelled".into(),
        Outcome::TimedOut => "its walltime was over".into(),
        Outcome::OutOfMemory => "out of memory".into(),
        Outcome::Preempted => "had to make room for another job".into(),
        Outcome::NodeLost => "one of its nodes was lost".into(),
        Outcome::DeadlineMissed => "its deadline passed before it could start".into(),
        Outcome::DependencyNeverMet => "a job that it depends on can never satisfy it".into(),
        Outcome::Requeued => "requeued".into(),
    }
}
