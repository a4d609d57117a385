//! One sentence for people about each event.

use super::{AllocatedNode, EventData, ModifiedJob};
use crate::{
    event::{EndCause, NodeExit, StopReason},
    filter::{CallId, FilterAction},
    ids::JobId,
    job::{Holds, WaitReason},
};
use std::{collections::BTreeSet, fmt};

impl fmt::Display for EventData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClusterInitialised(data) => write!(f, "the log of cluster {} begins", data.cluster_id),
            Self::ClusterSettingsChanged(_) => f.write_str("the cluster's settings changed"),
            Self::QueueSet(data) => write!(f, "queue {} was set", data.queue.name),
            Self::QueueRemoved(data) => write!(f, "queue {} was removed", data.queue),
            Self::LicenceSet(data) if data.total == 0 => write!(f, "licence {} was removed", data.licence),
            Self::LicenceSet(data) => write!(f, "there are {} of licence {}", data.total, data.licence),
            Self::NodeAdded(data) => write!(f, "node {} was added with {} cores", data.node, data.spec.cores),
            Self::NodeChanged(data) => write!(f, "node {} was changed", data.node),
            Self::NodeRemoved(data) => write!(f, "node {} was removed", data.node),
            Self::NodeUp(data) => write!(f, "node {} is up", data.node),
            Self::NodeLost(data) => write!(f, "node {} is lost: {}", data.node, data.reason),
            Self::NodeDrained(data) => write!(f, "node {} is drained{}", data.node, Because(&data.reason)),
            Self::NodeDown(data) => write!(f, "node {} is down{}", data.node, Because(&data.reason)),
            Self::NodeResumed(data) => write!(f, "node {} takes jobs again", data.node),
            Self::JobSubmitted(data) => {
                match &data.array {
                    None => write!(f, "job {}", data.job)?,
                    Some(array) => write!(f, "array {} of {} tasks", data.job, array.indices.len())?,
                }
                write!(f, " ({}) was submitted by {}", data.name, data.owner)?;
                if let Some(queue) = data.components.first().and_then(|component| component.queue.as_ref()) {
                    write!(f, " to queue {queue}")?;
                }
                data.template.as_ref().map_or(Ok(()), |template| write!(f, " with template {template}"))
            }
            Self::JobHeld(data) if data.until.is_some() => write!(f, "job {} is {}", data.job, data.reason),
            Self::JobHeld(data) => {
                let holds = WaitReason::Held(data.holds);
                write!(f, "{} is {holds}{}", Whole(data.job, data.component), Because(&data.reason))
            }
            Self::JobReleased(data) if data.was_timed => write!(f, "job {} is no longer held", data.job),
            Self::JobReleased(data) => {
                let what = Whole(data.job, data.component);
                write!(f, "{what} was released from {}", HoldNames(data.holds))
            }
            Self::JobModified(data) => write!(f, "job {} was changed: {}", data.job, Named(&data.change)),
            Self::JobTold(data) => write!(f, "something was said to job {}", data.job),
            Self::JobEligible(data) => write!(f, "job {} may start from now on", data.job),
            Self::JobAllocated(data) => {
                write!(f, "job {} was given ", data.job)?;
                let mut seen = BTreeSet::new();
                let nodes: Vec<&String> =
                    data.nodes.iter().map(|share| &share.node).filter(|node| seen.insert(*node)).collect();
                for (at, node) in nodes.iter().take(8).enumerate() {
                    write!(f, "{}{node}", if at == 0 { "" } else { ", " })?;
                }
                match nodes.len().saturating_sub(8) {
                    0 => write!(f, " (run {})", data.run),
                    more => write!(f, " and {more} more (run {})", data.run),
                }
            }
            Self::RunPartStarted(data) => write!(f, "{} started on {}", part(data.job, data.component), data.node),
            Self::JobStarted(data) => write!(f, "job {} runs (run {}, {})", data.job, data.run, data.node),
            Self::JobStopping(data) => write!(f, "job {} is being stopped: {}", data.job, stop_text(data.reason)),
            Self::RunPartEnded(data) => {
                write!(f, "{} ended on {}: {}", part(data.job, data.component), data.node, Exit(&data.exit))
            }
            Self::RunEnded(data) => write!(f, "run {} of job {} ended: {}", data.run, data.job, data.outcome),
            Self::JobRequeued(data) => write!(f, "job {} is back in the queue: {}", data.job, stop_text(data.reason)),
            Self::JobFinished(data) => write!(f, "job {} finished: {}", data.job, data.outcome),
            Self::JobSuspended(data) if data.lends_cores => {
                write!(f, "job {} was suspended, and others can have its cores", data.job)
            }
            Self::JobSuspended(data) => write!(f, "job {} was suspended", data.job),
            Self::JobResuming(data) => write!(f, "job {} waits for its cores and then continues", data.job),
            Self::JobResumed(data) => write!(f, "job {} continues", data.job),
            Self::JobSignalled(data) => write!(f, "job {} was sent signal {}", data.job, data.signal),
            Self::StepEnded(data) => {
                write!(f, "step {} of job {} ended", data.step, data.job)?;
                data.exit_status.map_or(Ok(()), |status| write!(f, ": {status}"))
            }
            Self::JobNotified(data) => match data.attempts {
                None => write!(f, "notification {} of job {} was delivered", data.notification, data.job),
                Some(attempts) => write!(
                    f,
                    "notification {} of job {} was given up after {attempts} attempts",
                    data.notification, data.job
                ),
            },
            Self::LogCheckpoint(_) => f.write_str("the ledger signed the state"),
            Self::JobStartRefused(data) => write!(f, "a start of job {} was given up: {}", data.job, data.reason),
            Self::JobTasksFinished(data) => {
                write!(f, "{} tasks of array {} finished: {}", data.indices.len(), data.job, data.outcome)
            }
            Self::ClusterRunNumbersRaised(data) => {
                write!(f, "nodes remember runs up to {}: the next numbers are higher", data.next.0.saturating_sub(1))
            }
            Self::ClusterJobNumbersSet(data) => {
                write!(f, "job numbers begin at {}; each array task has its own", data.first)
            }
            Self::PolicySet(data) => write!(f, "planners follow the policy {}", data.policy.name),
            Self::ReservationSet(data) => {
                let spec = &data.reservation;
                write!(f, "reservation {} was set from {} to {}", spec.name, spec.start, spec.end)
            }
            Self::ReservationPlaced(data) => {
                write!(f, "reservation {} was given {} nodes", data.reservation, data.nodes.len())
            }
            Self::ReservationBegun(data) => write!(f, "reservation {} has begun", data.reservation),
            Self::ReservationRemoved(data) => write!(f, "reservation {} was removed", data.reservation),
            Self::NodeClosuresSet(data) => match data.closures.first() {
                None => write!(f, "node {} no longer has a closure", data.node),
                Some(first) => write!(f, "node {} is closed from {}{}", data.node, first.from, Because(&first.reason)),
            },
            Self::PlanMade(data) => write!(
                f,
                "a plan was made: {} new reasons, {} promises, {} predictions, {} starts refused",
                data.reasons,
                data.slots,
                data.predictions,
                data.refused.len()
            ),
            Self::PlanBackfilled(data) => write!(
                f,
                "backfill pass {}, mode {}: {} jobs with several components wait",
                data.number,
                data.mode.number(),
                data.total
            ),
            Self::JobConfigured(data) => {
                write!(f, "job {} ({}) was changed while being configured", data.job, data.name)
            }
            Self::JobEntered(data) => write!(f, "job {} will enter the queue", data.job),
            Self::JobValidated(data) => match &data.template {
                Some(template) => {
                    write!(f, "job {} passed the checks of template {template}, revision {}", data.job, data.revision)
                }
                None => write!(f, "job {} passed its checks", data.job),
            },
            Self::JobQueued(data) => write!(f, "job {} is in the queue", data.job),
            Self::FilterChainStarted(data) => {
                let names: Vec<&str> = data.filters.iter().map(|filter| filter.spec.name.as_str()).collect();
                let kind = data.filter_kind.word();
                write!(f, "job {}: {kind} chain {} began: {}", data.job, data.chain, names.join(", "))
            }
            Self::FilterInvoked(data) => {
                write!(f, "job {}: {} goes to runner {}", data.job, CallText(&data.call), data.runner)?;
                if data.attempt > 1 { write!(f, ", attempt {}", data.attempt) } else { Ok(()) }
            }
            Self::FilterElsewhere(data) => {
                let call = CallText(&data.call);
                write!(f, "job {}: runner {} cannot make {call}; another runner is tried", data.job, data.runner)
            }
            Self::FilterOfferedAgain(data) => {
                let call = CallText(&data.call);
                write!(f, "job {}: the runner with {call} is silent; attempt {} is offered", data.job, data.attempt)
            }
            Self::JobEndRequested(data) => {
                write!(f, "job {} will end as soon as its filter has answered", data.job)
            }
            Self::FilterVerdict(data) => {
                write!(f, "job {}: {} gave {}", data.job, CallText(&data.call), data.result.exit)?;
                for (at, change) in data.result.changes.iter().take(5).enumerate() {
                    let now = change.new.as_deref().unwrap_or("not specified");
                    write!(f, "{}{} = {now}", if at == 0 { ", having set " } else { ", " }, change.property)?;
                }
                Ok(())
            }
            Self::FilterChainPassed(data) => {
                write!(f, "job {}: {} chain {} passed", data.job, data.filter_kind.word(), data.chain)
            }
            Self::FilterChainFailed(data) => {
                let kind = data.filter_kind.word();
                write!(f, "job {}: {kind} chain {} did not pass{}", data.job, data.chain, Because(&data.message))
            }
            Self::FilterReverted(data) => write!(f, "job {}: {} is done", data.job, CallText(&data.call)),
            Self::FilterRevertFailed(data) => {
                write!(f, "job {}: {} failed: {}", data.job, CallText(&data.call), data.result.exit)
            }
            Self::FilterRevertSkipped(data) => {
                write!(f, "job {}: {} is not made{}", data.job, CallText(&data.call), Because(&data.reason))
            }
            Self::FilterRollbackCompleted(data) => {
                write!(f, "job {}: {} chain {} is rolled back", data.job, data.filter_kind.word(), data.chain)
            }
            Self::FilterLateResult(data) => {
                let (call, runner) = (CallText(&data.call), &data.runner);
                write!(f, "job {}: a late answer of runner {runner} to {call} is ignored: {}", data.job, data.exit)
            }
            Self::FilterNoRunner(data) => {
                write!(f, "{} calls of filters wait and no runner is there since {}", data.calls, data.since)
            }
            Self::JobWarningRaised(data) => write!(f, "job {}: warning {}: {}", data.job, data.code, data.text),
            Self::JobMessage(data) => write!(f, "job {}: {}", data.job, data.text),
            Self::QueueBlocked(data) => {
                write!(f, "job {} keeps jobs of priority {} and below from starting", data.job, data.priority)
            }
            Self::QueueUnblocked(data) => write!(f, "job {} no longer blocks others", data.job),
            Self::ResourcesReserved(data) => {
                write!(f, "{} is kept for job {}", Amount(&data.nodes), data.job)
            }
            Self::ResourcesReleased(data) => write!(f, "the resources kept for job {} are free again", data.job),
            Self::JobBackfilled(data) => write!(f, "job {} started ahead of a waiting job", data.job),
            Self::JobGrown(data) => write!(f, "job {} got {} more", data.job, Amount(&data.nodes)),
            Self::JobGrowRejected(data) => write!(f, "job {} did not get the resources it was offered", data.job),
            Self::JobTasksStopping(data) => {
                let how = if data.is_graceful { "may finish; no new ones start" } else { "are stopped" };
                write!(f, "the tasks of job {} {how}: {}", data.job, stop_text(data.reason))
            }
            Self::JobShrinking(data) => write!(f, "job {} has to give up {}", data.job, Amount(&data.nodes)),
            Self::JobShrunk(data) => write!(f, "job {} gave up {}", data.job, Amount(&data.nodes)),
            Self::TaskStarted(data) => {
                let (job, task, instance) = (data.job, data.task + 1, data.instance + 1);
                write!(f, "task {task}.{instance} of job {job} started as step {}", data.step)
            }
            Self::StepLaunched(data) => {
                let tasks: u64 = data.nodes.iter().map(|node| u64::from(node.tasks)).sum();
                let nodes = data.nodes.iter().map(|node| &node.node).collect::<BTreeSet<_>>().len();
                let (tasks, nodes) = (Counted(tasks, "task"), Counted(nodes as u64, "node"));
                write!(f, "step {} of job {} was launched with {tasks} on {nodes}", data.step, data.job)
            }
            Self::StepSignalled(data) => {
                write!(f, "step {} of job {} was sent signal {}", data.step, data.job, data.signal)
            }
            Self::StepStopping(data) => {
                write!(f, "step {} of job {} is being ended", data.step, data.job)?;
                data.component.map_or(Ok(()), |component| write!(f, " in component {component}"))
            }
            Self::StepPartEnded(data) => {
                let whose = part(data.job, data.component);
                write!(f, "step {} of {whose} ended on {}: {}", data.step, data.node, Exit(&data.exit))
            }
            Self::JobKept(data) => match data.seconds {
                Some(seconds) if data.is_late => {
                    write!(f, "the client of job {} is silent; it has {seconds} s left", data.job)
                }
                Some(seconds) => {
                    write!(f, "the client of job {} reported; its next report is due within {seconds} s", data.job)
                }
                None => write!(f, "the client of job {} no longer has to report", data.job),
            },
            Self::JobComponentStopping(data) => {
                let what = Whole(data.job, Some(data.component));
                write!(f, "{what} is being ended: {}", stop_text(data.reason))
            }
            Self::JobComponentEnded(data) => {
                write!(f, "{} has ended: {}", Whole(data.job, Some(data.component)), data.outcome)
            }
            Self::AccountsChanged(data) => match data.changes.as_slice() {
                [change] => write!(f, "{change}"),
                changes => write!(f, "{} accounts, users, associations and classes were changed", changes.len()),
            },
            Self::AccountsSettingsChanged(_) => f.write_str("the enforcement of accounts and classes was changed"),
            Self::JobClassChanged(data) => {
                write!(f, "{} belongs to class {}", Whole(data.job, data.component), data.class)
            }
            Self::CommandRefused(data) => {
                write!(f, "{} was refused: {}", data.command, data.message)?;
                match data.unrecorded {
                    0 => Ok(()),
                    more => write!(f, " ({more} refusals before it left no record)"),
                }
            }
            Self::ConfigChanged(data) => match (&data.old, &data.new) {
                (None, _) => write!(f, "{} was made", data.what),
                (_, None) => write!(f, "{} was removed", data.what),
                _ => write!(f, "{} was changed", data.what),
            },
            Self::PlannerStarted(data) => write!(f, "planner {} began its work", data.epoch),
            Self::LogArchived(data) => {
                write!(f, "records {} to {} were moved to archive {}", data.first, data.last, data.file)
            }
        }
    }
}

/// Text behind a colon, if there is any.
struct Because<'a>(&'a str);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// `user hold and system hold`.
struct HoldNames(Holds);

impl fmt::Display for HoldNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.0.user, "user"), (self.0.operator, "operator"), (self.0.system, "system")];
        let set: Vec<&str> = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        write!(f, "the {} hold", set.join(" and "))
    }
}

/// A job, or one component of it.
struct Whole(JobId, Option<u32>);

/// A number of things, in the singular if it is one.
struct Counted(u64, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// A component of a job. The first is the job itself, which most have alone.
fn part(job: JobId, component: u32) -> Whole {
    Whole(job, Some(component).filter(|number| *number > 0))
}

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.map_or(Ok(()), |component| write!(f, "component {component} of "))?;
        write!(f, "job {}", self.0)
    }
}

/// A call of a filter.
struct CallText<'a>(&'a CallId);

impl fmt::Display for CallText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.0.action {
            FilterAction::Filter => "call of",
            FilterAction::Revert => "revert by",
        };
        write!(f, "{what} {} filter {}", self.0.kind.word(), self.0.position + 1)
    }
}

/// How many cores on how many nodes.
struct Amount<'a>(&'a [AllocatedNode]);

impl fmt::Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: u64 = self.0.iter().map(|node| node.cores.len()).sum();
        write!(f, "{cores} cores on {} nodes", self.0.len())
    }
}

/// How a part ended.
struct Exit<'a>(&'a NodeExit);

impl fmt::Display for Exit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.cause, self.0.status) {
            (EndCause::Itself | EndCause::Killed, Some(status)) => status.fmt(f),
            (EndCause::Itself, None) => f.write_str("without a process"),
            (EndCause::Killed, None) => f.write_str("killed"),
            (EndCause::Walltime, _) => f.write_str("its walltime was over"),
            (EndCause::OutOfMemory, _) => f.write_str("it used too much memory"),
            (EndCause::LaunchFailed(why), _) => write!(f, "it could not be started: {why}"),
            (EndCause::Lost(why), _) => write!(f, "lost: {why}"),
        }
    }
}

/// Why a run is stopped, for people.
const fn stop_text(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Cancelled => "it was cancelled",
        StopReason::Requeued => "it was requeued",
        StopReason::Preempted => "another job needs its resources",
        StopReason::NodeLost => "one of its nodes was lost",
        StopReason::PeerEnded => "another part of it has ended",
        StopReason::LaunchTimeout => "its launch was not confirmed in time",
        StopReason::TasksEnded => "its tasks have ended",
        StopReason::Finished => "it was declared finished",
        StopReason::Walltime => "its walltime is almost over",
        StopReason::CancelledAtOnce => "it was cancelled without grace",
        StopReason::FinishedAtOnce => "it was declared finished without grace",
        StopReason::Concluded(_) => "its client is done",
    }
}

/// The attributes of a job that have changed.
struct Named<'a>(&'a ModifiedJob);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = self.0;
        let fields = [
            (change.name.is_some(), "name"),
            (change.queue.is_some(), "queue"),
            (change.account.is_some(), "account"),
            (change.priority.is_some(), "priority"),
            (change.begin.is_some(), "begin time"),
            (change.walltime_seconds.is_some(), "walltime"),
            (change.alternatives.is_some(), "request"),
            (change.dependencies.is_some(), "dependencies"),
            (change.max_running.is_some(), "array limit"),
            (change.reservation.is_some(), "reservation"),
            (change.deadline.is_some(), "deadline"),
            (change.requeue_on_node_lost.is_some(), "requeueing after the loss of a node"),
        ];
        let named = fields.iter().filter(|(is_changed, _)| *is_changed).map(|(_, name)| *name);
        let all: Vec<&str> = named.chain(change.attributes.iter().map(String::as_str)).collect();
        f.write_str(&all.join(", "))
    }
}
