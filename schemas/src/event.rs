//! Everything that can have happened.
//!
//! Variants are only ever appended: their place is their number in the log. Fields are appended too, and mean "as before" where
//! they are zero ([`crate::codec`]); a golden log of every released shape is read by a test.

use crate::{
    accounts::{AccountChange, AccountSettings},
    cluster::{ClusterSettings, QueueSpec},
    command::RefusalCode,
    filter::{
        CallId, ChainSpec, ChainVerdict, FilterKind, FilterReport, FilterSettings, JobDocument, JobWarning,
        StagingSettings, TemplateSpec,
    },
    ids::{CommandId, JobId, NodeId, RunId, Sequence, StepId},
    job::{ExitStatus, Holds, JobSpec, Launch, Occasion, Outcome, Usage, WaitReason},
    plan::{BackfillPass, NodeClosure, PlanRecord, ReservationSpec},
    policy::Policy,
    resources::{IndexSet, NodeSpec, Placement},
    scheduling::SchedulingSettings,
    steps::{GroupTerms, StepShare, StepSpec, TaskStatus},
    tasks::{TaskInstance, TaskList},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The owner of a job: its submitter, whom its processes belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct Owner {
    /// The login name.
    pub user: String,
    /// The user number on the submitting host.
    pub uid: u32,
    /// The primary group's number there.
    pub gid: u32,
}

/// The actor who asked for a change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A person or a program of theirs, through a gateway.
    User(Owner),
    /// The planner.
    Planner,
    /// The executor of the node named.
    Executor(String),
    /// A notifier.
    Notifier,
    /// The ledger itself: timers, liveness, checkpoints.
    Ledger,
    /// The filter-runner of this name.
    Runner(String),
}

/// How the part of a run on one node came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeExit {
    /// The status that counts: the first that is not 0 by task rank, else 0. `None` if no process was started.
    pub status: Option<ExitStatus>,
    /// Why it ended, if not by itself.
    pub cause: EndCause,
    /// Its usage there.
    pub usage: Usage,
    /// When its first process started, by the node's clock; `None` if none did.
    pub started: Option<Timestamp>,
    /// When its last process was gone, by the node's clock.
    pub ended: Timestamp,
}

/// Why the processes of a run on a node ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// By themselves, or by a signal of the job's own.
    Itself,
    /// The walltime was over.
    Walltime,
    /// An order to kill it, for the reason given in the order.
    Killed,
    /// The kernel found that it used too much memory.
    OutOfMemory,
    /// It could not be started: why.
    LaunchFailed(String),
    /// The shim or the node died under it.
    Lost(String),
}

/// Why a run is being stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Somebody cancelled the job.
    Cancelled,
    /// Somebody put the job back into the queue.
    Requeued,
    /// Another job needs the resources.
    Preempted,
    /// One of its nodes was lost.
    NodeLost,
    /// Another part of the same run failed to start, or ended it for all.
    PeerEnded,
    /// No node confirmed the launch in time.
    LaunchTimeout,
    /// The last of its tasks has ended, or the first that failed ends the job.
    TasksEnded,
    /// Somebody declared the job finished.
    Finished,
    /// Its walltime is almost over: only as much is left as tasks that release nodes may take (HPC-J-12).
    Walltime,
    /// As cancelled, without grace (HPC-C-06).
    CancelledAtOnce,
    /// As declared finished, without grace.
    FinishedAtOnce,
    /// The client that it held resources for is done, with this status.
    Concluded(ExitStatus),
}

/// A change to a job that waits (or, for some fields, runs). `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobChange {
    /// A new name.
    pub name: Option<String>,
    /// Another queue.
    pub queue: Option<String>,
    /// Another account.
    pub account: Option<String>,
    /// Another priority.
    pub priority: Option<i64>,
    /// Another begin time; one in the past means none.
    pub begin: Option<Timestamp>,
    /// Another walltime for every alternative; also of a running job.
    pub walltime_seconds: Option<u64>,
    /// Other alternatives; only of a waiting job.
    pub alternatives: Option<Vec<crate::resources::Alternative>>,
    /// Other dependencies; only of a waiting job.
    pub dependencies: Option<crate::job::Dependencies>,
    /// Maximum number of tasks of the array running at a time.
    pub max_running: Option<u32>,
    /// Only this component; `None` means all.
    pub component: Option<u32>,
}

/// Changes of a job in addition to those of [`JobChange`], whose shape is in the log. `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FurtherChange {
    /// Another reservation, empty for none; only of a waiting job.
    pub reservation: Option<String>,
    /// Another deadline; only of a waiting job.
    pub deadline: Option<Timestamp>,
    /// Whether muster may start the job a second time after a node was lost; also of a running job.
    pub requeue_on_node_lost: Option<bool>,
    /// Other attributes of the job, by their names, an empty one for none; also of a running job.
    pub attributes: std::collections::BTreeMap<String, String>,
    /// Only this component, as far as components have it for themselves; `None` means all.
    pub component: Option<u32>,
}

impl FurtherChange {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        *self == Self { component: self.component, ..Self::default() }
    }

    /// Whether it is of what only a waiting job can change.
    pub const fn needs_waiting(&self) -> bool {
        self.reservation.is_some() || self.deadline.is_some()
    }
}

/// The result of a delivery attempt of a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryResult {
    /// The mail server took it, or the command exited with 0.
    Delivered,
    /// It was given up after this many attempts: the last error.
    GivenUp {
        /// How often it was tried.
        attempts: u32,
        /// The error of the last attempt.
        error: String,
    },
}

/// Everything that can have happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The log begins: the first record of every log.
    ClusterInitialised {
        /// Tells this log from every other.
        cluster_id: uuid_bytes::UuidBytes,
        /// The public key that checkpoints are signed with (Ed25519, 32 bytes).
        public_key: [u8; 32],
    },
    /// The settings of the cluster changed to these.
    SettingsChanged {
        /// All of them, also those that stay.
        settings: Arc<ClusterSettings>,
    },
    /// A queue was added or changed.
    QueueSet {
        /// As it is from now on.
        queue: Arc<QueueSpec>,
    },
    /// A queue was removed; no job is in it.
    QueueRemoved {
        /// Its name.
        name: String,
    },
    /// The number of a floating licence changed; 0 removes it.
    LicenceSet {
        /// Its name.
        name: String,
        /// How many there are.
        total: u32,
    },
    /// A node was added.
    NodeAdded {
        /// Its number.
        node: NodeId,
        /// Its specification.
        spec: Arc<NodeSpec>,
    },
    /// The specification of a node changed; its name stays.
    NodeChanged {
        /// Its number.
        node: NodeId,
        /// Its specification from now on.
        spec: Arc<NodeSpec>,
    },
    /// A node was removed; nothing runs on it.
    NodeRemoved {
        /// Its number.
        node: NodeId,
    },
    /// A node's executor reported for the first time, or again after the node was lost.
    NodeUp {
        /// Its number.
        node: NodeId,
        /// Changes when the machine boots: runs of an earlier boot are gone.
        boot_id: String,
    },
    /// A node has not reported for too long, or its executor said that it cannot continue.
    NodeLost {
        /// Its number.
        node: NodeId,
        /// Why it is thought lost.
        reason: String,
    },
    /// A drained node takes jobs again.
    NodeResumed {
        /// Its number.
        node: NodeId,
    },
    /// A job was accepted.
    JobSubmitted {
        /// Its number; for an array the number of the whole.
        job: JobId,
        /// Whose it is.
        owner: Arc<Owner>,
        /// All of it, with defaults filled in.
        spec: Arc<JobSpec>,
    },
    /// Holds were added.
    JobHeld {
        /// The job, array or task.
        job: JobId,
        /// Those added.
        holds: Holds,
        /// Why, for people.
        reason: String,
    },
    /// Holds were removed.
    JobReleased {
        /// The job, array or task.
        job: JobId,
        /// The removed holds.
        holds: Holds,
    },
    /// The job was changed.
    JobModified {
        /// The job.
        job: JobId,
        /// The change.
        change: Arc<JobChange>,
    },
    /// A gate that opens by time has opened: begin time or dependency delay.
    JobEligible {
        /// The job.
        job: JobId,
    },
    /// The planner's reasons for jobs that wait, where they changed. [`Event::Planned`] has taken its place.
    JobsWaiting {
        /// For each job its reason.
        reasons: Arc<Vec<WaitingJob>>,
    },
    /// The job, or the task of an array, has its resources. Its launch is ordered.
    RunAllocated {
        /// The job; for an array the task, which comes into being with this.
        job: JobId,
        /// The run.
        run: RunId,
        /// Where.
        placement: Arc<Placement>,
    },
    /// The processes of a run have started on one node, and on others they have not yet. Where components share the node
    /// [`Event::RunPartStarted`] says it.
    RunNodeStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
    },
    /// The processes of a run have started on its last node: the job runs.
    RunStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node that was the last to start. For one that components share [`Event::RunPartStarted`] said so
        /// before.
        node: NodeId,
    },
    /// A run is being stopped: its nodes are ordered to end it.
    RunStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
    },
    /// The part of a run on one node has ended, others continue. Where components share the node
    /// [`Event::RunPartEnded`] says it.
    RunNodeEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
        /// How.
        exit: NodeExit,
    },
    /// The last part of a run has ended; its resources are free.
    RunEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The part that ended last, which is the only one of which no end was told; `None` if its node was lost.
        last: Option<NodePart>,
        /// How the run came to its end.
        outcome: Outcome,
        /// Its usage on all nodes.
        usage: Usage,
    },
    /// The job is back in the queue after a run.
    JobRequeued {
        /// The job.
        job: JobId,
        /// Why.
        reason: StopReason,
    },
    /// The job is over.
    JobFinished {
        /// The job, or task; for an array when its last task is over.
        job: JobId,
        /// How.
        outcome: Outcome,
    },
    /// A suspension was asked for; the nodes are ordered to stop the processes.
    JobSuspended {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    },
    /// The job continues after a suspension. If its cores were lent, it has them again.
    JobResumed {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    },
    /// A signal was sent to the processes of a job.
    JobSignalled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The signal's number.
        signal: u8,
    },
    /// A step was started from inside a run.
    StepStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Its launch.
        launch: Arc<Launch>,
        /// For each node of the step the number of tasks there, in order of rank.
        tasks: Vec<NodeTasks>,
    },
    /// The part of a step on one node has ended.
    StepNodeEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node.
        node: NodeId,
        /// How.
        exit: NodeExit,
    },
    /// The last part of a step has ended.
    StepEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The status that counts: the first that is not 0, else 0.
        status: Option<ExitStatus>,
    },
    /// A notification came to its end.
    NotificationDone {
        /// The job.
        job: JobId,
        /// The event that it is about.
        of: Sequence,
        /// Which of the job's notifications, from 0.
        notification: u32,
        /// The occasion of the notification.
        occasion: Occasion,
        /// The result.
        result: DeliveryResult,
    },
    /// The log up to a record and the state after it, signed by the ledger. The digest of a large state is computed
    /// aside while the log continues, so the signed record is an earlier one than the last.
    Checkpoint {
        /// The record that was signed.
        of: Sequence,
        /// BLAKE3 digest of the state after that record.
        state_digest: [u8; 32],
        /// Ed25519 signature over the text described in `docs/audit.md`.
        signature: SignatureBytes,
    },
    /// The planner gave up on a start that it had asked for: the state had moved on. Kept for audit only.
    StartRefused {
        /// The job.
        job: JobId,
        /// Why.
        reason: String,
    },
    /// Records up to and including this sequence were moved to an archive file.
    RangeArchived {
        /// The first of the range.
        first: Sequence,
        /// The last of the range.
        last: Sequence,
        /// BLAKE3 hash of the last record of the range.
        last_hash: [u8; 32],
        /// The file's name in the archive folder.
        file: String,
    },
    /// Tasks of an array are over without ever having started: cancelled, or impossible.
    TasksFinished {
        /// The array.
        job: JobId,
        /// The indices of the tasks.
        indices: IndexSet,
        /// How.
        outcome: Outcome,
    },
    /// A node remembers run numbers that this log has not given: the log is a restored one. The numbers below `next` are
    /// passed over, because nodes never start a run that they remember.
    RunNumbersRaised {
        /// The next run gets at least this number.
        next: RunId,
    },
    /// The policy that planners follow from now on.
    PolicySet {
        /// All of it.
        policy: Arc<Policy>,
    },
    /// An advance reservation was made, or changed.
    ReservationSet {
        /// As it is from now on.
        reservation: Arc<ReservationSpec>,
    },
    /// The planner chose the nodes of a reservation by count.
    ReservationPlaced {
        /// Its name.
        name: String,
        /// The nodes.
        nodes: Vec<NodeId>,
    },
    /// A reservation was removed, or is over.
    ReservationRemoved {
        /// Its name.
        name: String,
    },
    /// The times in which a node serves no jobs are these from now on.
    NodeClosuresSet {
        /// Its number.
        node: NodeId,
        /// In order of time, without overlap.
        closures: Vec<NodeClosure>,
    },
    /// The results of a plan in addition to its starts, whose records are ahead of this one, and the input that it
    /// was made from.
    Planned {
        /// All of it.
        plan: Arc<PlanRecord>,
    },
    /// The start of a reservation has come: its jobs may start.
    ReservationBegun {
        /// Its name.
        name: String,
    },
    /// As [`Event::JobSubmitted`], for a job with a description, a template or its own tasks. With a description its
    /// specification is provisional until [`Event::JobValidated`].
    JobReceived {
        /// Its number.
        job: JobId,
        /// Whose it is.
        owner: Arc<Owner>,
        /// All of it, with defaults filled in.
        spec: Arc<JobSpec>,
        /// Additions to its specification.
        intake: Arc<Intake>,
    },
    /// A job that is not yet in the queue was changed while being configured.
    JobConfigured {
        /// The job.
        job: JobId,
        /// All of it from now on.
        spec: Arc<JobSpec>,
        /// Additions to its specification from now on.
        intake: Arc<Intake>,
    },
    /// A job that was being configured, or that had failed before it was in the queue, will enter the queue.
    JobEntered {
        /// The job.
        job: JobId,
    },
    /// All checks of a job with a description are passed: it is in the queue as this says (HPC-T-09).
    JobValidated {
        /// The job.
        job: JobId,
        /// The input and the result of the check.
        validated: Arc<Validated>,
    },
    /// A chain of filters began.
    FilterChainStarted {
        /// The job.
        job: JobId,
        /// The chain, as it is until it is over.
        chain: Arc<ChainSpec>,
    },
    /// A call was handed to a runner.
    FilterInvoked {
        /// The call.
        call: CallId,
        /// How often it has been handed out, this time included.
        attempt: u32,
        /// To whom.
        runner: String,
    },
    /// The runner does not have the program: the call is put to another one (HPC-F-91).
    FilterElsewhere {
        /// The call.
        call: CallId,
        /// The runner that does not have it.
        runner: String,
    },
    /// The verdict of a filter.
    FilterVerdict {
        /// The call.
        call: CallId,
        /// Its outcome.
        report: Arc<FilterReport>,
    },
    /// All filters of a chain have passed.
    FilterChainPassed {
        /// The job.
        job: JobId,
        /// The kind of filter.
        kind: FilterKind,
        /// The chain.
        chain: u64,
    },
    /// A chain is over without having passed. Filters that had passed are called for revert from here on.
    FilterChainFailed {
        /// The job.
        job: JobId,
        /// The kind of filter.
        kind: FilterKind,
        /// The chain.
        chain: u64,
        /// The meaning of the outcome.
        verdict: ChainVerdict,
        /// The place of the filter that ended it; one behind the last if it was a check after the chain, or the job was
        /// cancelled or could not be started.
        position: u32,
        /// Why, for people.
        message: String,
    },
    /// A filter took back what it had done.
    FilterReverted {
        /// The call.
        call: CallId,
        /// Its outcome.
        report: Arc<FilterReport>,
    },
    /// A filter did not undo its work. It is not asked again (HPC-F-54).
    FilterRevertFailed {
        /// The call.
        call: CallId,
        /// Its outcome.
        report: Arc<FilterReport>,
    },
    /// A filter cannot be asked to undo its work (HPC-F-56).
    FilterRevertSkipped {
        /// The call that is not made.
        call: CallId,
        /// Why.
        reason: String,
    },
    /// Everything that had passed in a chain has been asked to take it back.
    FilterRollbackCompleted {
        /// The job.
        job: JobId,
        /// The kind of filter.
        kind: FilterKind,
        /// The chain.
        chain: u64,
    },
    /// An answer came that nobody waits for any longer. It changes nothing (HPC-F-86).
    FilterLateResult {
        /// The call.
        call: CallId,
        /// The attempt that it answers.
        attempt: u32,
        /// Whose it is.
        runner: String,
        /// How that attempt ended.
        exit: crate::filter::FilterExit,
    },
    /// Calls wait and no runner is there (HPC-F-87).
    FilterRunnersMissing {
        /// Since when.
        since: Timestamp,
        /// How many calls wait.
        calls: u64,
    },
    /// The job is held until a time; it replaces an earlier such hold.
    JobHeldUntil {
        /// The job.
        job: JobId,
        /// Until when.
        until: Timestamp,
        /// Whose hold it is.
        by: HoldBy,
    },
    /// A timed hold of the job has ended.
    JobHoldEnded {
        /// The job.
        job: JobId,
        /// Whether the time has come; else somebody cleared it.
        is_over: bool,
    },
    /// Something that people should know of a job.
    JobWarned {
        /// The job.
        job: JobId,
        /// What.
        warning: Arc<JobWarning>,
    },
    /// A filter wants this shown on the job.
    JobMessage {
        /// The job.
        job: JobId,
        /// The text; at most 200 characters.
        text: String,
    },
    /// Jobs of this priority and below do not start, because an activation filter said so (HPC-F-31).
    QueueBlocked {
        /// The job whose filter said so.
        job: JobId,
        /// Its priority.
        priority: i64,
    },
    /// A job no longer blocks others (HPC-F-32).
    QueueUnblocked {
        /// The job that did.
        job: JobId,
    },
    /// Resources are kept for a job that waits (HPC-F-35). They replace those that were kept for it before.
    ResourcesReserved {
        /// The job.
        job: JobId,
        /// The number that its run will have.
        run: RunId,
        /// All that is kept.
        placement: Arc<Placement>,
    },
    /// Resources are no longer kept for a job.
    ResourcesReleased {
        /// The job.
        job: JobId,
        /// The number that its run would have had.
        run: RunId,
    },
    /// A run starts ahead of a waiting job (HPC-B-12).
    RunBackfilled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    },
    /// A run got more resources.
    RunGrown {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The added resources.
        added: Arc<Placement>,
    },
    /// A run has to give up resources: its tasks get no more room there from here on. They are given up when no task
    /// of it uses them any longer.
    RunShrinking {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The resources to give up.
        removed: Arc<Placement>,
        /// Why.
        reason: ShrinkReason,
    },
    /// A run gave up resources: they are free.
    RunShrunk {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The resources that it gave up.
        removed: Arc<Placement>,
    },
    /// A task of a run was started, as a step of it.
    TaskStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Which task.
        instance: TaskInstance,
        /// For each node the number of cores it has there, in order of rank.
        cores: Vec<NodeTasks>,
    },
    /// The cluster-wide filters, or how filters are called, changed.
    FilterSettingsSet {
        /// As it was.
        old: Arc<FilterSettings>,
        /// All of it from now on.
        settings: Arc<FilterSettings>,
    },
    /// How resources are given to jobs changed.
    SchedulingSet {
        /// As it was.
        old: Arc<SchedulingSettings>,
        /// All of it from now on.
        settings: Arc<SchedulingSettings>,
    },
    /// A job template was made or changed.
    TemplateSet {
        /// As it was; `None` if it is new.
        old: Option<Arc<TemplateSpec>>,
        /// As it is from now on.
        template: Arc<TemplateSpec>,
    },
    /// A job template was removed.
    TemplateRemoved {
        /// As it was.
        old: Arc<TemplateSpec>,
    },
    /// A planner began its work.
    PlannerStarted {
        /// How many have, this one included.
        epoch: u64,
    },
    /// A job that was checked is in the queue.
    JobQueued {
        /// The job.
        job: JobId,
    },
    /// A running job did not get the resources that it was offered (HPC-F-33).
    GrowthRejected {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    },
    /// A runner that has a call has been silent for too long: the call is offered to all again (HPC-F-85).
    FilterOfferedAgain {
        /// The call.
        call: CallId,
        /// The attempt that it is offered as from here on.
        attempt: u32,
    },
    /// The job will end as soon as the outstanding answer of a filter for it is there (HPC-F-23, HPC-F-68).
    JobEndRequested {
        /// The job.
        job: JobId,
        /// How it will end.
        outcome: Outcome,
    },
    /// A run of tasks is ending: from here on only tasks that release nodes start. When none is left the run is
    /// stopped.
    TasksStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Why.
        reason: StopReason,
        /// Whether tasks that run may end by themselves; else they are stopped.
        is_graceful: bool,
    },
    /// A step was launched inside a run.
    StepLaunched {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// All of it.
        spec: Arc<StepSpec>,
        /// Its share of each of its nodes, in the order of its places.
        shares: Vec<StepShare>,
    },
    /// A signal was sent to the processes of a step.
    StepSignalled {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component.
        component: Option<u32>,
        /// The signal's number.
        signal: u8,
    },
    /// A step, or the part of it in one component, is being ended.
    StepStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component.
        component: Option<u32>,
        /// Without grace.
        is_forced: bool,
    },
    /// The tasks of a step on one node have ended. Where components share the node [`Event::StepPartEnded`] says it.
    StepTasksEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node.
        node: NodeId,
        /// How, taken together.
        exit: NodeExit,
        /// How each task ended; tasks that were not started are not among them.
        statuses: Vec<TaskStatus>,
    },
    /// The client of a job has to report from now on.
    JobKept {
        /// The job.
        job: JobId,
        /// Seconds from now; `None` means that it no longer has to report.
        seconds: Option<u32>,
        /// It did not report in time, and has as long again, since the report may have found no listener. Then the
        /// job is cancelled.
        is_late: bool,
    },
    /// Holds were added to one component of a job (SL-M-04).
    ComponentHeld {
        /// The job.
        job: JobId,
        /// Which of its components, from 0.
        component: u32,
        /// Those added.
        holds: Holds,
        /// Why, for people.
        reason: String,
    },
    /// Holds of one component of a job were removed (SL-M-04).
    ComponentReleased {
        /// The job.
        job: JobId,
        /// Which of its components, from 0.
        component: u32,
        /// The removed holds.
        holds: Holds,
    },
    /// One component of a running job is being ended: its nodes are ordered to end it, the others continue (SL-M-02).
    ComponentStopping {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Which of its components; never the first, with which the job ends.
        component: u32,
        /// Why.
        reason: StopReason,
    },
    /// The last part of a component that was being ended has ended. [`Event::RunShrunk`], which follows, frees its resources.
    ComponentEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// Which of its components.
        component: u32,
        /// How it came to its end.
        outcome: Outcome,
        /// Its usage on its nodes.
        usage: Usage,
    },
    /// How the files of jobs are staged changed.
    StagingSet {
        /// As it was.
        old: Arc<StagingSettings>,
        /// All of it from now on.
        settings: Arc<StagingSettings>,
    },
    /// The planner made a pass of backfill that starts jobs with several components. Its starts are ahead of this record, and
    /// [`Event::Planned`], with what else the pass came to, is behind it.
    BackfillPassed {
        /// Its findings for those that did not start.
        pass: Arc<BackfillPass>,
    },
    /// Accounts, users, associations or service classes changed.
    AccountsChanged {
        /// In this order.
        changes: Arc<Vec<AccountChange>>,
    },
    /// The enforcement of accounts and classes changed.
    AccountSettingsChanged {
        /// All of it, also what stays.
        settings: Arc<AccountSettings>,
    },
    /// A waiting job, or one component of it, belongs to another service class.
    ClassChanged {
        /// The job.
        job: JobId,
        /// Only this component; `None` means all.
        component: Option<u32>,
        /// The class from now on.
        class: String,
    },
    /// A command of a user about jobs was refused; the actor is the user. Nothing else changed (SL-L-10).
    CommandRefused {
        /// The request, as one word.
        command: String,
        /// The kind of refusal.
        code: RefusalCode,
        /// Why, for people; at most 1,024 bytes.
        message: String,
        /// Number of refusals of the same user before this one that left no record, because there were too many in a
        /// short time.
        unrecorded: u64,
    },
    /// A node takes no new jobs: the actor of the record, an operator, took it out of service (SL-C-38).
    NodeTakenOut {
        /// Its number.
        node: NodeId,
        /// The operator's reason.
        reason: String,
        /// It is down: its runs are stopped, as if the node were lost. Otherwise its runs continue.
        is_down: bool,
    },
    /// A job was changed otherwise than [`Event::JobModified`] can say (SL-C-36).
    JobAltered {
        /// The job.
        job: JobId,
        /// The change.
        change: Arc<FurtherChange>,
    },
    /// A message to a running job from the actor of the record (SL-C-33): it is written after the output of its
    /// script on standard error.
    JobTold {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The message.
        text: String,
    },
    /// How jobs are numbered from here on: the next gets at least the number `first`, and an array takes a number for each of
    /// its tasks, in the order of their indices, the first of which is the array's own (SL-C-18, SL-I-04). Before the first
    /// such event of a log an array takes one number.
    JobNumbersSet {
        /// No job from here on has a lower number.
        first: u64,
    },
    /// The processes of a component have started on a node that components of the job share (SL-P-07), where
    /// [`Event::RunNodeStarted`] would not say which part it is. If with it the job runs, [`Event::RunStarted`] follows.
    RunPartStarted {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
        /// The component.
        component: u32,
    },
    /// The part of a component on a node that components of the job share has ended, others continue (SL-P-07).
    RunPartEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The node.
        node: NodeId,
        /// The component.
        component: u32,
        /// How.
        exit: NodeExit,
    },
    /// The tasks of a step in a component have ended on a node that components of the job share (SL-P-07).
    StepPartEnded {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node.
        node: NodeId,
        /// The component.
        component: u32,
        /// How, taken together.
        exit: NodeExit,
        /// How each task ended; tasks that were not started are not among them.
        statuses: Vec<TaskStatus>,
    },
    /// Groups of a step have settings that override those of [`Event::StepLaunched`], which is right before it
    /// (SL-O-01, SL-O-07).
    StepTermsSet {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The settings of each of its groups.
        groups: Vec<GroupTerms>,
    },
    /// Others can have the cores of a suspended run until it continues. It keeps everything else (SL-C-37).
    RunCoresLent {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    },
    /// A suspended job will continue as soon as nobody else has its cores; nobody new gets them.
    /// [`Event::JobResumed`] says when it does (SL-C-37).
    JobResuming {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
    },
}

/// Additions to a job's specification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Intake {
    /// The template that it names.
    pub template: Option<String>,
    /// Its description as it was received (HPC-J-46).
    pub document: Option<JobDocument>,
    /// Its tasks, if it is a list of them.
    pub tasks: Option<TaskList>,
    /// Not before this time, by its owner.
    pub hold_until: Option<Timestamp>,
    /// It is still being made, and waits for [`Event::JobEntered`] (HPC-C-04).
    pub is_configuring: bool,
    /// Parts of the description that were left out or not understood.
    pub warnings: Vec<JobWarning>,
}

/// The outcome of the checks of a job with a description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Validated {
    /// The template that it was checked with.
    pub template: Option<String>,
    /// The revision of that template.
    pub revision: u64,
    /// All of the job from now on.
    pub spec: JobSpec,
    /// Its tasks, if it is a list of them.
    pub tasks: Option<TaskList>,
    /// Its description with all defaults (HPC-F-38).
    pub document: Option<JobDocument>,
    /// Not before this time.
    pub hold_until: Option<Timestamp>,
    /// Warnings that people should see.
    pub warnings: Vec<JobWarning>,
}

/// The one that holds a job until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldBy {
    /// Its owner.
    User,
    /// An operator or administrator.
    Administrator,
    /// An activation filter.
    Filter,
}

/// Why a run gives up resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShrinkReason {
    /// It has no work for them (HPC-S-10).
    Idle,
    /// Others get a share of them (HPC-S-08).
    Rebalanced,
    /// A job of higher priority claims them, when its tasks there have ended (HPC-S-12).
    Preempted,
    /// As that, and its tasks there are stopped (HPC-S-14).
    TasksPreempted,
    /// Others get a share of them, and its tasks there are stopped (HPC-S-08, HPC-S-14).
    TasksRebalanced,
}

impl ShrinkReason {
    /// Whether tasks are stopped for it, rather than let end by themselves.
    pub const fn stops_tasks(self) -> bool {
        matches!(self, Self::TasksPreempted | Self::TasksRebalanced)
    }

    /// Whether it is that shares are levelled.
    pub const fn is_rebalancing(self) -> bool {
        matches!(self, Self::Rebalanced | Self::TasksRebalanced)
    }
}

/// A job that waits, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WaitingJob {
    /// The job or array.
    pub job: JobId,
    /// Why.
    pub reason: WaitReason,
}

/// The part of a run on one node, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodePart {
    /// The node.
    pub node: NodeId,
    /// How it ended there.
    pub exit: NodeExit,
}

/// A number of tasks on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeTasks {
    /// The node.
    pub node: NodeId,
    /// How many.
    pub tasks: u32,
}

/// A signature: 64 bytes, which serde's arrays do not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureBytes {
    /// The first half.
    pub r: [u8; 32],
    /// The second half.
    pub s: [u8; 32],
}

/// The id of a cluster.
pub mod uuid_bytes {
    use serde::{Deserialize, Serialize};
    use utoipa::ToSchema;

    /// 16 bytes that tell one log from every other.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
    #[serde(transparent)]
    pub struct UuidBytes(pub [u8; 16]);

    impl std::fmt::Display for UuidBytes {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            uuid::Uuid::from_bytes(self.0).fmt(f)
        }
    }
}

impl Event {
    /// Kind and verb of the public event, as in `muster.events.KIND.VERB.ID`.
    pub const fn kind_verb(&self) -> (&'static str, &'static str) {
        match self {
            Self::ClusterInitialised { .. } => ("cluster", "initialised"),
            Self::SettingsChanged { .. } => ("cluster", "settings_changed"),
            Self::QueueSet { .. } => ("queue", "set"),
            Self::QueueRemoved { .. } => ("queue", "removed"),
            Self::LicenceSet { .. } => ("licence", "set"),
            Self::NodeAdded { .. } => ("node", "added"),
            Self::NodeChanged { .. } => ("node", "changed"),
            Self::NodeRemoved { .. } => ("node", "removed"),
            Self::NodeUp { .. } => ("node", "up"),
            Self::NodeLost { .. } => ("node", "lost"),
            Self::NodeResumed { .. } => ("node", "resumed"),
            Self::JobSubmitted { .. } => ("job", "submitted"),
            Self::JobHeld { .. } => ("job", "held"),
            Self::JobReleased { .. } => ("job", "released"),
            Self::JobModified { .. } => ("job", "modified"),
            Self::JobEligible { .. } => ("job", "eligible"),
            Self::JobsWaiting { .. } => ("plan", "waiting"),
            Self::RunAllocated { .. } => ("job", "allocated"),
            Self::RunNodeStarted { .. } => ("run", "node_started"),
            Self::RunStarted { .. } => ("job", "started"),
            Self::RunStopping { .. } => ("job", "stopping"),
            Self::RunNodeEnded { .. } => ("run", "node_ended"),
            Self::RunEnded { .. } => ("run", "ended"),
            Self::JobRequeued { .. } => ("job", "requeued"),
            Self::JobFinished { .. } => ("job", "finished"),
            Self::JobSuspended { .. } => ("job", "suspended"),
            Self::JobResumed { .. } => ("job", "resumed"),
            Self::JobSignalled { .. } => ("job", "signalled"),
            Self::StepStarted { .. } => ("step", "started"),
            Self::StepNodeEnded { .. } => ("step", "node_ended"),
            Self::StepEnded { .. } => ("step", "ended"),
            Self::NotificationDone { .. } => ("job", "notified"),
            Self::Checkpoint { .. } => ("log", "checkpoint"),
            Self::StartRefused { .. } => ("job", "start_refused"),
            Self::RangeArchived { .. } => ("log", "archived"),
            Self::TasksFinished { .. } => ("job", "tasks_finished"),
            Self::RunNumbersRaised { .. } => ("cluster", "run_numbers_raised"),
            Self::PolicySet { .. } => ("policy", "set"),
            Self::ReservationSet { .. } => ("reservation", "set"),
            Self::ReservationPlaced { .. } => ("reservation", "placed"),
            Self::ReservationRemoved { .. } => ("reservation", "removed"),
            Self::NodeClosuresSet { .. } => ("node", "closures_set"),
            Self::Planned { .. } => ("plan", "made"),
            Self::ReservationBegun { .. } => ("reservation", "begun"),
            Self::JobReceived { .. } => ("job", "submitted"),
            Self::JobConfigured { .. } => ("job", "configured"),
            Self::JobEntered { .. } => ("job", "entered"),
            Self::JobValidated { .. } => ("job", "validated"),
            Self::FilterChainStarted { .. } => ("filter", "chain_started"),
            Self::FilterInvoked { .. } => ("filter", "invoked"),
            Self::FilterElsewhere { .. } => ("filter", "elsewhere"),
            Self::FilterVerdict { .. } => ("filter", "verdict"),
            Self::FilterChainPassed { .. } => ("filter", "chain_passed"),
            Self::FilterChainFailed { .. } => ("filter", "chain_failed"),
            Self::FilterReverted { .. } => ("filter", "reverted"),
            Self::FilterRevertFailed { .. } => ("filter", "revert_failed"),
            Self::FilterRevertSkipped { .. } => ("filter", "revert_skipped"),
            Self::FilterRollbackCompleted { .. } => ("filter", "rollback_completed"),
            Self::FilterLateResult { .. } => ("filter", "late_result"),
            Self::FilterRunnersMissing { .. } => ("filter", "no_runner"),
            Self::JobHeldUntil { .. } => ("job", "held"),
            Self::JobHoldEnded { .. } => ("job", "released"),
            Self::JobWarned { .. } => ("job", "warning"),
            Self::JobMessage { .. } => ("job", "message"),
            Self::QueueBlocked { .. } => ("queue", "blocked"),
            Self::QueueUnblocked { .. } => ("queue", "unblocked"),
            Self::ResourcesReserved { .. } => ("resources", "reserved"),
            Self::ResourcesReleased { .. } => ("resources", "released"),
            Self::RunBackfilled { .. } => ("job", "backfilled"),
            Self::RunGrown { .. } => ("job", "grown"),
            Self::RunShrinking { .. } => ("job", "shrinking"),
            Self::RunShrunk { .. } => ("job", "shrunk"),
            Self::TaskStarted { .. } => ("task", "started"),
            Self::FilterSettingsSet { .. } => ("config", "changed"),
            Self::SchedulingSet { .. } => ("config", "changed"),
            Self::TemplateSet { .. } | Self::TemplateRemoved { .. } => ("config", "changed"),
            Self::PlannerStarted { .. } => ("planner", "started"),
            Self::JobQueued { .. } => ("job", "queued"),
            Self::GrowthRejected { .. } => ("job", "grow_rejected"),
            Self::FilterOfferedAgain { .. } => ("filter", "offered_again"),
            Self::JobEndRequested { .. } => ("job", "end_requested"),
            Self::TasksStopping { .. } => ("job", "tasks_stopping"),
            Self::StepLaunched { .. } => ("step", "launched"),
            Self::StepSignalled { .. } => ("step", "signalled"),
            Self::StepStopping { .. } => ("step", "stopping"),
            Self::StepTasksEnded { .. } => ("step", "tasks_ended"),
            Self::RunPartStarted { .. } => ("run", "part_started"),
            Self::RunPartEnded { .. } => ("run", "part_ended"),
            Self::StepPartEnded { .. } => ("step", "part_ended"),
            Self::JobKept { .. } => ("job", "kept"),
            Self::ComponentHeld { .. } => ("job", "held"),
            Self::ComponentReleased { .. } => ("job", "released"),
            Self::ComponentStopping { .. } => ("job", "component_stopping"),
            Self::ComponentEnded { .. } => ("job", "component_ended"),
            Self::StagingSet { .. } => ("config", "changed"),
            Self::BackfillPassed { .. } => ("plan", "backfilled"),
            Self::AccountsChanged { .. } => ("accounts", "changed"),
            Self::AccountSettingsChanged { .. } => ("accounts", "settings_changed"),
            Self::ClassChanged { .. } => ("job", "class_changed"),
            Self::CommandRefused { .. } => ("command", "refused"),
            Self::NodeTakenOut { is_down: false, .. } => ("node", "drained"),
            Self::NodeTakenOut { .. } => ("node", "down"),
            Self::JobAltered { .. } => ("job", "altered"),
            Self::JobTold { .. } => ("job", "told"),
            Self::JobNumbersSet { .. } => ("cluster", "job_numbers_set"),
            Self::StepTermsSet { .. } => ("step", "terms_set"),
            Self::RunCoresLent { .. } => ("job", "cores_lent"),
            Self::JobResuming { .. } => ("job", "resuming"),
        }
    }

    /// The job that the event names itself. Events that name only a run belong to that run's job; who has the state
    /// can look it up.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::JobSubmitted { job, .. }
            | Self::JobHeld { job, .. }
            | Self::JobReleased { job, .. }
            | Self::JobModified { job, .. }
            | Self::JobEligible { job }
            | Self::RunAllocated { job, .. }
            | Self::RunStarted { job, .. }
            | Self::RunStopping { job, .. }
            | Self::RunEnded { job, .. }
            | Self::JobRequeued { job, .. }
            | Self::JobFinished { job, .. }
            | Self::JobSuspended { job, .. }
            | Self::JobResumed { job, .. }
            | Self::JobSignalled { job, .. }
            | Self::StepStarted { job, .. }
            | Self::StepEnded { job, .. }
            | Self::NotificationDone { job, .. }
            | Self::StartRefused { job, .. }
            | Self::TasksFinished { job, .. }
            | Self::JobReceived { job, .. }
            | Self::JobConfigured { job, .. }
            | Self::JobEntered { job }
            | Self::JobValidated { job, .. }
            | Self::FilterChainStarted { job, .. }
            | Self::FilterChainPassed { job, .. }
            | Self::FilterChainFailed { job, .. }
            | Self::FilterRollbackCompleted { job, .. }
            | Self::JobHeldUntil { job, .. }
            | Self::JobHoldEnded { job, .. }
            | Self::JobWarned { job, .. }
            | Self::JobMessage { job, .. }
            | Self::QueueBlocked { job, .. }
            | Self::QueueUnblocked { job }
            | Self::ResourcesReserved { job, .. }
            | Self::ResourcesReleased { job, .. }
            | Self::RunBackfilled { job, .. }
            | Self::RunGrown { job, .. }
            | Self::RunShrinking { job, .. }
            | Self::RunShrunk { job, .. }
            | Self::TaskStarted { job, .. }
            | Self::JobQueued { job }
            | Self::GrowthRejected { job, .. }
            | Self::JobEndRequested { job, .. }
            | Self::TasksStopping { job, .. }
            | Self::StepLaunched { job, .. }
            | Self::StepSignalled { job, .. }
            | Self::StepStopping { job, .. }
            | Self::JobKept { job, .. }
            | Self::ComponentHeld { job, .. }
            | Self::ComponentReleased { job, .. }
            | Self::ComponentStopping { job, .. }
            | Self::ComponentEnded { job, .. }
            | Self::ClassChanged { job, .. }
            | Self::JobAltered { job, .. }
            | Self::JobTold { job, .. }
            | Self::StepTermsSet { job, .. }
            | Self::RunCoresLent { job, .. }
            | Self::JobResuming { job, .. }
            | Self::RunNodeStarted { job, .. }
            | Self::RunNodeEnded { job, .. }
            | Self::StepNodeEnded { job, .. }
            | Self::StepTasksEnded { job, .. }
            | Self::RunPartStarted { job, .. }
            | Self::RunPartEnded { job, .. }
            | Self::StepPartEnded { job, .. } => Some(*job),
            Self::FilterInvoked { call, .. }
            | Self::FilterOfferedAgain { call, .. }
            | Self::FilterElsewhere { call, .. }
            | Self::FilterVerdict { call, .. }
            | Self::FilterReverted { call, .. }
            | Self::FilterRevertFailed { call, .. }
            | Self::FilterRevertSkipped { call, .. }
            | Self::FilterLateResult { call, .. } => Some(call.job),
            _ => None,
        }
    }

    /// The run that the event names.
    pub const fn run(&self) -> Option<RunId> {
        match self {
            Self::RunAllocated { run, .. }
            | Self::RunNodeStarted { run, .. }
            | Self::RunStarted { run, .. }
            | Self::RunStopping { run, .. }
            | Self::RunNodeEnded { run, .. }
            | Self::RunEnded { run, .. }
            | Self::JobSuspended { run, .. }
            | Self::JobResumed { run, .. }
            | Self::JobSignalled { run, .. }
            | Self::StepStarted { run, .. }
            | Self::StepNodeEnded { run, .. }
            | Self::StepEnded { run, .. }
            | Self::RunBackfilled { run, .. }
            | Self::RunGrown { run, .. }
            | Self::RunShrinking { run, .. }
            | Self::RunShrunk { run, .. }
            | Self::TaskStarted { run, .. }
            | Self::GrowthRejected { run, .. }
            | Self::TasksStopping { run, .. }
            | Self::StepLaunched { run, .. }
            | Self::StepSignalled { run, .. }
            | Self::StepStopping { run, .. }
            | Self::StepTasksEnded { run, .. }
            | Self::RunPartStarted { run, .. }
            | Self::RunPartEnded { run, .. }
            | Self::StepPartEnded { run, .. }
            | Self::ComponentStopping { run, .. }
            | Self::ComponentEnded { run, .. }
            | Self::JobTold { run, .. }
            | Self::StepTermsSet { run, .. }
            | Self::RunCoresLent { run, .. }
            | Self::JobResuming { run, .. } => Some(*run),
            _ => None,
        }
    }
}

/// W3C trace context: which trace and span caused this. All zero means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The span that is the parent of what follows.
    pub span_id: [u8; 8],
    /// W3C flags; bit 0 means sampled.
    pub flags: u8,
}

impl TraceContext {
    /// Whether there is a context.
    pub fn is_some(&self) -> bool {
        self.trace_id != [0; 16]
    }

    /// The W3C `traceparent` header, if there is a context.
    pub fn to_traceparent(&self) -> Option<String> {
        use std::fmt::Write as _;
        if !self.is_some() {
            return None;
        }
        let mut text = String::with_capacity(55);
        text.push_str("00-");
        for byte in self.trace_id {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('-');
        for byte in self.span_id {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = write!(text, "-{:02x}", self.flags);
        Some(text)
    }

    /// Reads a W3C `traceparent` header; anything else is no context.
    pub fn from_traceparent(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version.len() != 2 || version == "ff" || flags.len() != 2 {
            return None;
        }
        let mut context = Self { flags: u8::from_str_radix(flags, 16).ok()?, ..Self::default() };
        from_hex(trace, &mut context.trace_id)?;
        from_hex(span, &mut context.span_id)?;
        context.is_some().then_some(context)
    }
}

fn from_hex(text: &str, bytes: &mut [u8]) -> Option<()> {
    if text.len() != bytes.len() * 2 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(())
}

/// One entry of the log, without the hash of the entry before (which is in front of its bytes on disk).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its place in the log.
    pub sequence: Sequence,
    /// When the ledger decided it; never earlier than the record before.
    pub time: Timestamp,
    /// The actor.
    pub actor: Arc<Actor>,
    /// The command that it follows from.
    pub command: CommandId,
    /// The trace that it belongs to.
    pub trace: TraceContext,
    /// The event.
    pub event: Event,
}

/// The records of one group commit: the unit that the event stream carries. Their sequences are contiguous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// At least one.
    pub records: Vec<Record>,
}

impl Commit {
    /// The first sequence, or 0 if there is none.
    pub fn first(&self) -> Sequence {
        self.records.first().map_or(Sequence(0), |record| record.sequence)
    }

    /// The last sequence, or 0 if there is none.
    pub fn last(&self) -> Sequence {
        self.records.last().map_or(Sequence(0), |record| record.sequence)
    }
}
