//! Commands and queries to the ledger, and its answers.

pub use crate::{
    plan::Start,
    refusal::{Refusal, RefusalCode},
};

use crate::{
    accounts::AccountChange,
    cluster::ClusterChange,
    copies::CopyReport,
    crontab::CronEntry,
    cycle::ProgramCycle,
    energy::PowerWay,
    event::{Actor, Commit, DeliveryResult, Intake, JobChange, NodeExit, TraceContext, Validated},
    filter::{CallId, FilterReport, FilterSettings, JobDocument, TemplateSpec},
    ids::{CommandId, JobId, NodeId, PartId, RunId, Sequence, StepId},
    job::{ExitStatus, Holds, JobSpec, JobState, Occasion},
    job_token::JobToken,
    node::{Briefing, GpuReport, Mark, PartUse},
    plan::{NodeClosure, ProposedPlan, ReservationSpec},
    policy::{Policy, PolicySource},
    resources::{IndexSet, NodeSpec, Placement},
    scheduling::SchedulingSettings,
    steps::{StepSpec, TaskStatus},
    tasks::TaskList,
    time::Timestamp,
    trigger::{TriggerSelection, TriggerSpec},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A command with its sender and the means to recognise a retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnvelope {
    /// A retry has the same id.
    pub id: CommandId,
    /// The sender. The bus subject that the command arrives on must allow this kind of actor.
    pub actor: Actor,
    /// The trace that the command belongs to.
    pub trace: TraceContext,
    /// The command.
    pub command: Command,
}

/// Which jobs a command is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobSelection {
    /// These jobs, arrays or tasks. If one of them does not exist or the actor may not touch it, none is changed.
    Ids(Vec<JobId>),
    /// All that match and that the actor may touch. No match is not an error.
    Matching(JobFilter),
    /// One component of a job: to hold it, to release it, or to end it while the others continue (SL-M-02, SL-M-04).
    Component {
        /// The job.
        job: JobId,
        /// The component's index in the job, from 0.
        component: u32,
    },
    /// These tasks of an array. Those that are over, or to which the command cannot be done, are left out; if it can be done to none
    /// of them, it is refused with the reason of the first.
    Tasks {
        /// The array.
        job: JobId,
        /// The indices of the tasks.
        indices: IndexSet,
    },
}

/// Criteria for jobs; all given ones must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobFilter {
    /// Owner's login name.
    pub user: Option<String>,
    /// Queue.
    pub queue: Option<String>,
    /// Account.
    pub account: Option<String>,
    /// Job name.
    pub name: Option<String>,
    /// One of these states; empty means any but finished.
    pub states: Vec<JobState>,
}

/// A command to the ledger. The domain decides it against the state at that moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a command travels in a box of its own")]
pub enum Command {
    /// Submit jobs: all or none. Users.
    Submit {
        /// 1 to 100,000 jobs.
        jobs: Vec<JobSpec>,
    },
    /// Add holds. Users for `user` on their own jobs, operators for `operator`, administrators for `system`. A running
    /// job continues; the hold applies once it is requeued.
    Hold {
        /// Which jobs.
        jobs: JobSelection,
        /// Which holds.
        holds: Holds,
        /// The reason, for people.
        reason: String,
    },
    /// Remove holds. The permissions are the same.
    Release {
        /// Which jobs.
        jobs: JobSelection,
        /// Which holds.
        holds: Holds,
    },
    /// Change jobs.
    Modify {
        /// Which jobs.
        jobs: JobSelection,
        /// The change.
        change: JobChange,
    },
    /// Cancel jobs: waiting ones end at once, running ones are stopped first.
    Cancel {
        /// Which jobs.
        jobs: JobSelection,
    },
    /// Send a signal to the processes of running jobs.
    Signal {
        /// Which jobs.
        jobs: JobSelection,
        /// The signal's number, 1 to 64.
        signal: u8,
    },
    /// Stop the processes of running jobs. Other jobs may use their cores meanwhile; they keep everything else.
    /// Operators.
    Suspend {
        /// Which jobs.
        jobs: JobSelection,
    },
    /// Resume suspended jobs as soon as their cores are free. Operators.
    Resume {
        /// Which jobs.
        jobs: JobSelection,
    },
    /// Stop running jobs and put them back into the queue; a finished job, within retention, is queued again.
    Requeue {
        /// Which jobs.
        jobs: JobSelection,
        /// Whether to hold them there.
        hold: bool,
        /// Minimum time before they start again, in seconds from now (SL-C-37).
        delay_seconds: u32,
    },
    /// Set the cluster's configuration. Administrators; the ledger itself at start.
    Configure {
        /// The requested configuration.
        change: Box<ClusterChange>,
        /// Whether to keep everything not named. Otherwise unnamed nodes, queues and licences are removed and unnamed
        /// settings take their defaults; the command is refused if an unnamed list of users would become empty.
        keep_unnamed: bool,
    },
    /// Take nodes out of service: they take no new jobs. Operators.
    DrainNodes {
        /// Their names.
        nodes: Vec<String>,
        /// The reason, for people.
        reason: String,
        /// Whether to stop the runs on the nodes, as if the nodes were lost (SL-C-38).
        is_down: bool,
    },
    /// Let drained nodes take jobs again. Operators.
    ResumeNodes {
        /// Their names.
        nodes: Vec<String>,
    },
    /// Set the policy that planners follow. Administrators.
    SetPolicy {
        /// The complete policy.
        policy: Box<Policy>,
    },
    /// Keep nodes for some jobs for a time. Operators.
    Reserve {
        /// The resources to reserve, under a name that is not in use.
        reservation: Box<ReservationSpec>,
    },
    /// Delete a reservation, even one that has begun: jobs running in it continue. Operators.
    RemoveReservation {
        /// Its name.
        name: String,
    },
    /// Set the times in which nodes serve no jobs. Operators.
    SetNodeClosures {
        /// Names of the nodes.
        nodes: Vec<String>,
        /// All closures, the same for each node, in order of time and without overlap. An empty list opens the nodes.
        closures: Vec<NodeClosure>,
    },
    /// The planner's decisions. Each start is checked against the state at this moment; those that no longer fit are
    /// refused individually, the others are kept.
    CommitPlan {
        /// The complete plan.
        plan: Box<ProposedPlan>,
    },
    /// A node's executor announces itself, at its start and after each loss of contact. The answer carries its orders.
    NodeHello {
        /// Changes when the machine boots.
        boot_id: String,
        /// All parts of runs for which it has shims or unacknowledged results.
        parts: Vec<PartId>,
        /// The highest run number that it remembers, including runs long gone: new runs get higher ones.
        highest_run: Option<RunId>,
        /// The moment for which the list of parts is true. Without it, or with a mark of another ledger, nothing
        /// follows from a part's absence.
        as_of: Option<Mark>,
    },
    /// The processes of a run have started on the node.
    NodeStarted {
        /// The part of the run.
        part: PartId,
    },
    /// All processes of a run on the node have ended.
    NodeEnded {
        /// The part of the run.
        part: PartId,
        /// How it ended.
        exit: NodeExit,
    },
    /// All processes of a step on the node have ended.
    NodeStepEnded {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// How the part ended as a whole.
        exit: NodeExit,
        /// How each started task ended.
        statuses: Vec<TaskStatus>,
    },
    /// A node has not reported for too long.
    NodeSilent {
        /// Its number.
        node: NodeId,
        /// Why it is considered lost.
        reason: String,
    },
    /// A notification was delivered or given up.
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
    /// The time of something pending in the state has come: begin times, delays, launch timeouts, retention. The ledger
    /// itself.
    Tick,
    /// A checkpoint record, signed by the ledger. The ledger itself.
    Checkpoint {
        /// The record that the digest and the signature are about: the last or an earlier one.
        of: Sequence,
        /// Digest of the state after that record.
        state_digest: [u8; 32],
        /// The signature.
        signature: crate::event::SignatureBytes,
    },
    /// Records were moved to an archive. The ledger itself.
    Archived {
        /// The first of the range.
        first: Sequence,
        /// The last of the range.
        last: Sequence,
        /// Hash of the last record.
        last_hash: [u8; 32],
        /// The file's name.
        file: String,
    },
    /// Submit a job with a description, a template or its own tasks. Users.
    SubmitDocument {
        /// The job as far as its dialect knows it before the checks; provisional if there is a description.
        spec: Box<JobSpec>,
        /// Additions to its specification.
        intake: Box<Intake>,
    },
    /// Change a job that is still being configured.
    ConfigureJob {
        /// The job.
        job: JobId,
        /// The [`JobDocuments::version`] that the change is based on. The command is refused if the job has changed
        /// since, so that simultaneous changes do not undo each other. `None` replaces the job in any case.
        made_from: Option<Sequence>,
        /// Its full specification from now on.
        spec: Box<JobSpec>,
        /// Additions to its specification from now on.
        intake: Box<Intake>,
    },
    /// Let a job that was being configured, or that failed before it reached the queue, enter the queue.
    EnterJob {
        /// The job.
        job: JobId,
    },
    /// Hold jobs until a time, or clear such a hold (HPC-H-07).
    HoldUntil {
        /// Which jobs.
        jobs: JobSelection,
        /// When the hold ends; `None` clears it.
        until: Option<Timestamp>,
    },
    /// End jobs as [`Command::Cancel`] does, with more options.
    EndJobs {
        /// Which jobs.
        jobs: JobSelection,
        /// How they end.
        ending: JobEnding,
    },
    /// Create or change a job template. Administrators.
    SetTemplate {
        /// Its new content; the ledger counts the revision.
        template: Box<TemplateSpec>,
    },
    /// Remove a job template. Administrators.
    RemoveTemplate {
        /// Its name.
        name: String,
    },
    /// A runner is about to make these calls.
    ClaimCalls {
        /// The calls, each with the number of the offered attempt.
        calls: Vec<(CallId, u32)>,
    },
    /// Report the outcome of calls.
    ReportCalls {
        /// The reports.
        reports: Vec<CallReport>,
        /// Whether there are other runners; the ledger itself fills this in.
        has_others: bool,
    },
    /// Calls are waiting, and no runner is available. The ledger itself.
    RunnersMissing {
        /// Since when.
        since: Timestamp,
    },
    /// A planner starts; the answer carries its epoch.
    PlannerHello,
    /// Launch a step inside a running job, on cores of the job that no other step uses. The job's owner. Refused as
    /// [`RefusalCode::Busy`] if it will fit once other steps have ended.
    LaunchStep {
        /// The job.
        job: JobId,
        /// The complete step; the ledger fills in the places of a group without any.
        spec: Box<StepSpec>,
    },
    /// Send a signal to the processes of a step. The job's owner.
    SignalStep {
        /// The job.
        job: JobId,
        /// The step; 0 is the job's script.
        step: StepId,
        /// Only on the nodes of this component; `None` means all nodes of the step.
        component: Option<u32>,
        /// The signal's number, 1 to 64.
        signal: u8,
    },
    /// End a step that [`Command::LaunchStep`] launched: SIGTERM, then SIGKILL after its grace period. The job's owner.
    EndStep {
        /// The job.
        job: JobId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component, while the others continue; `None` means the whole step (SL-M-15).
        component: Option<u32>,
        /// Whether to skip the grace period.
        is_forced: bool,
    },
    /// End a job that only holds resources for its client, because the client has ended. The job's owner.
    ConcludeJob {
        /// The job.
        job: JobId,
        /// The exit status of the client: the job ends like a script with this status.
        status: ExitStatus,
    },
    /// The client of a job is alive. If it is then silent for twice this time, the job is cancelled. The job's owner.
    KeepJob {
        /// The job.
        job: JobId,
        /// Time in seconds, 10 to 86,400; `None` means that the client no longer has to report.
        seconds: Option<u32>,
    },
    /// Set the cluster-wide filters and how filters are called, and how resources are given to jobs: both or neither.
    /// Administrators.
    SetParameters {
        /// All filter settings; `None` leaves them unchanged.
        filters: Option<Box<FilterSettings>>,
        /// All scheduling settings; `None` leaves them unchanged.
        scheduling: Option<Box<SchedulingSettings>>,
    },
    /// The runners that had claimed these calls no longer have them: the calls are offered to others (SL-B-01). The
    /// ledger itself.
    CallsLost {
        /// The calls.
        calls: Vec<CallId>,
    },
    /// Change accounts, users, associations and service classes: all changes or none. Operators.
    ChangeAccounts {
        /// The changes, in this order.
        changes: Vec<AccountChange>,
    },
    /// Move waiting components to another service class (SL-C-36).
    ChangeClass {
        /// Which jobs.
        jobs: JobSelection,
        /// The class.
        class: String,
    },
    /// Send a message to running jobs (SL-C-33). Users to their own jobs, operators to all.
    TellJobs {
        /// Which jobs.
        jobs: JobSelection,
        /// The message; at most 1,024 bytes.
        text: String,
    },
    /// Change a reservation; jobs running in it continue. Operators.
    ChangeReservation {
        /// The complete reservation, under the name of an existing one.
        reservation: Box<ReservationSpec>,
    },
    /// A program refused a request of the caller before it reached the system. This is recorded like a refusal by the
    /// ledger and changes nothing (SL-L-10). Users.
    NoteRefusal {
        /// The request, such as the program's name; 1 to 64 bytes without control characters.
        what: String,
        /// The reason, for people; 1 to 1,024 bytes.
        why: String,
    },
    /// A node's executor has looked at the node's GPUs. Repeated from time to time.
    NodeGpusChecked {
        /// What it found.
        report: GpuReport,
    },
    /// Let a running job give up nodes and continue on the others. Steps with tasks on them are ended. Users for their own
    /// jobs, operators for all.
    ShrinkJob {
        /// The job or task.
        job: JobId,
        /// It keeps this many of its first nodes; `None` if `keep` says which.
        nodes: Option<u32>,
        /// It keeps the nodes with these names, among them its first; empty if `nodes` says how many.
        keep: Vec<String>,
        /// The component that gives them up; a job with several needs it.
        component: Option<u32>,
    },
    /// Set a trigger, whose program runs as the caller. Everybody for nodes and for their own jobs, operators for all jobs.
    SetTrigger {
        /// What it watches, and what it runs.
        spec: Box<TriggerSpec>,
    },
    /// Clear triggers. Users their own, administrators all.
    ClearTriggers {
        /// Which triggers.
        which: TriggerSelection,
    },
    /// Set the caller's table of repeated jobs in place of the present one, or remove a table: users their own, administrators
    /// those of all.
    SetCrontab {
        /// Its text; empty for none.
        text: String,
        /// Its jobs.
        entries: Vec<CronEntry>,
        /// Whose table is removed; `None` means the caller's.
        user: Option<String>,
    },
    /// Keep the policy in force, and put on record that another one cannot be followed. Administrators.
    RefusePolicy {
        /// Its name.
        name: String,
        /// The files that it was made of.
        sources: Vec<PolicySource>,
        /// The mistakes in them, for people.
        mistakes: Vec<String>,
    },
    /// Copy the files of a waiting job to a node ahead of its start; the job waits on (PBS-G-02). Operators.
    CopyAhead {
        /// The job.
        job: JobId,
        /// The name of the node; `None` leaves the choice to the ledger. The job then runs there.
        node: Option<String>,
    },
    /// Start a waiting job or task at once, whatever its queue and the limits on running jobs say (PBS-C-09). Refused if it
    /// does not fit what is free. Operators.
    RunJob {
        /// The job or task.
        job: JobId,
        /// Where it runs.
        placement: Placement,
    },
    /// A node's executor has copied the files of a job, or has failed to.
    NodeCopied {
        /// The job or task.
        job: JobId,
        /// The record with which the copying began.
        copy: Sequence,
        /// The result.
        report: CopyReport,
    },
    /// A node's executor has measured the load of its node. Repeated at an interval.
    NodeLoadMeasured {
        /// The average number of processes that run or could run, over the last minute, in millionths.
        load_millionths: u64,
        /// The percentage of its time that the system itself took since the measurement before; `None` if it is not known.
        system_percent: Option<u32>,
        /// The processor time that each run on it has used so far, as far as the node can tell.
        used: Vec<PartUse>,
    },
    /// A node that no order reaches comes into the cluster: its agent asks for work. The node itself, if the settings let
    /// agents make their nodes.
    AgentJoins {
        /// The node, under the name of the sender; it gets the property [`NodeSpec::PULL`].
        node: Box<NodeSpec>,
    },
    /// Put nodes to sleep, or wake them, as soon as nothing keeps them from it (OAR-E-09, OAR-E-10). Operators.
    SetPower {
        /// Their names.
        nodes: Vec<String>,
        /// The change of power.
        way: PowerWay,
    },
    /// A cycle of a scheduling program is over; everything that it did was decided before. The planner.
    NoteCycle {
        /// The cycle.
        cycle: Box<ProgramCycle>,
    },
    /// Let another of several ledgers lead. The one that decides this leads no longer once it has answered. Operators.
    HandOver {
        /// The name of the ledger that leads next; any other if it is `None`.
        to: Option<String>,
    },
    /// Give a running step another time limit. The job's owner.
    SetStepWalltime {
        /// The job.
        job: JobId,
        /// The step, which [`Command::LaunchStep`] launched.
        step: StepId,
        /// How long it may run from its start, in seconds; `None` means as long as its job.
        walltime_seconds: Option<u64>,
    },
    /// What the site does right after a suspension has failed on the node: the job is to continue (OAR-S-04).
    SuspensionUnwanted {
        /// The part of the run.
        part: PartId,
        /// Why, for people.
        why: String,
    },
    /// The first part of a run was sent a signal: its node says how many processes that reached (OAR-S-30).
    NodeSignalled {
        /// The part.
        part: PartId,
        /// The signal's number.
        signal: u8,
        /// Whether its time before the end of the run's walltime had come. Otherwise somebody had it sent.
        was_due: bool,
        /// How many processes were there to receive it.
        processes: u32,
    },
    /// Put on record what is doubtful about the files of the policy in force. Administrators.
    WarnOfPolicy {
        /// Its name.
        name: String,
        /// The warnings, for people.
        warnings: Vec<String>,
    },
}

/// How to end jobs (HPC-C-06).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobEnding {
    /// Whether they end as finished instead of cancelled.
    pub is_finished: bool,
    /// Whether to skip the grace period and the tasks that release nodes.
    pub is_forced: bool,
    /// Whether running tasks may finish; no new ones start.
    pub is_graceful: bool,
    /// Whether jobs that are being ended already are over without the nodes that have not said so. Those take no new jobs from
    /// then on. Operators; no other choice goes with it (OAR-S-24).
    pub gives_up: bool,
    /// Shown on the jobs; at most 128 characters.
    pub message: String,
    /// Seconds from SIGTERM to SIGKILL for what runs, at most 86,400; `None` means those of the job or of the cluster. None may be
    /// named beside `is_forced`.
    pub grace_seconds: Option<u32>,
}

/// The outcome of a call, as its runner reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallReport {
    /// The call.
    pub call: CallId,
    /// The attempt.
    pub attempt: u32,
    /// Its outcome.
    pub outcome: CallOutcome,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallOutcome {
    /// A filter was called.
    Called(Box<FilterReport>),
    /// The check after the filters passed the job.
    Validated(Box<Validated>),
    /// The check after the filters refuses the job: the text that the job ends with, which begins with a code in
    /// brackets.
    Refused(String),
}

/// A start of a plan that no longer fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedStart {
    /// The job.
    pub job: JobId,
    /// Why.
    pub reason: String,
}

/// The ledger's answer. The result is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// No record of the command has a higher sequence; a query that waits for this one sees all of them.
    pub sequence: Sequence,
    /// The result.
    pub result: Result<Reply, Refusal>,
}

/// The result of an accepted command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The command was executed; there is nothing to add.
    Done,
    /// Jobs were submitted: the number of each, in the order given.
    Submitted(Vec<JobId>),
    /// The command was executed for these jobs.
    Jobs(Vec<JobId>),
    /// These starts of the plan were refused, each with its reason; the others are kept.
    Planned(Vec<RefusedStart>),
    /// Orders for the node about the runs that it named and about those that it did not.
    NodeOrders(Briefing),
    /// A step was started.
    Step {
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
    },
    /// For each claimed call, whether the runner has it; the others have been made or belong to another runner.
    Claimed(Vec<bool>),
    /// The planner's epoch.
    Epoch(u64),
}

/// The kind of fault that a verification found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// A contradiction: something was altered, removed or added.
    Invalid,
    /// Something can no longer be read.
    Damaged,
    /// No contradiction, but no signature covers the end, or it could not be compared.
    Unproven,
}

/// A query to the ledger over the bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// The end of the log, and its cluster.
    Head,
    /// A page of records, from a sequence on.
    Replay {
        /// The first sequence.
        from: Sequence,
        /// Maximum number of bytes of records (but at least one record); capped by the ledger.
        max_bytes: u32,
    },
    /// The newest state snapshot at or before a sequence, in pages.
    Snapshot {
        /// At or before this; `None` means the newest.
        at_or_before: Option<Sequence>,
        /// The offset of the first byte.
        offset: u64,
    },
    /// A page of the records of a job, oldest first: ask again from after the last one until the page is empty. For an
    /// array this includes the records of its tasks, for a task those of its array.
    JobHistory {
        /// The job, array or task.
        job: JobId,
        /// Only records with at least this sequence.
        from: Sequence,
    },
    /// The last record at or before a point in time.
    SequenceAt {
        /// The point.
        time: Timestamp,
    },
    /// The full specification of a job, with launch and environment, which the state does not keep: as last checked,
    /// else as configured or submitted.
    JobSpec {
        /// The job or array.
        job: JobId,
    },
    /// Verify the log: chain, signatures, digests. This can take long; the answer reports progress.
    Verify {
        /// The first sequence.
        from: Sequence,
        /// Maximum number of records to check in this call.
        max_records: u64,
    },
    /// The documents that describe a job, which the state does not keep.
    JobDocuments {
        /// The job or array.
        job: JobId,
    },
    /// Which record led to each of these, as [`crate::cause`] says (HPC-E-01).
    Causes {
        /// The records.
        of: Vec<Sequence>,
    },
    /// Whether the ledger made this token of a job. The answer does not say whether the run still lasts.
    JobToken(JobToken),
    /// The job or array task that has a number, even if the state has forgotten it. The number of a component means its
    /// job.
    JobOfNumber {
        /// The number.
        number: u64,
        /// From this number on, array tasks have their own numbers; `None` if none has.
        tasks_from: Option<u64>,
    },
    /// A page of the log as another ledger of the same cluster takes it: records, and the answers to their commands.
    Rounds {
        /// The first sequence.
        from: Sequence,
        /// Maximum number of bytes of records (but at least one record); capped by the ledger.
        max_bytes: u32,
    },
}

/// The answers to queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueryAnswer {
    /// The end of the log.
    Head {
        /// The last durable record.
        last: Sequence,
        /// The first record that has not been archived.
        first: Sequence,
        /// Its cluster.
        cluster_id: [u8; 16],
        /// Hash of the last record.
        last_hash: [u8; 32],
        /// What the ledger may write: the [`crate::codec::FEATURE_LEVEL`] of its version of muster.
        feature_level: u32,
    },
    /// Records, contiguous from the requested one; empty if there is none yet.
    Records(Commit),
    /// Part of a snapshot; `total_bytes` 0 means there is none.
    Snapshot {
        /// The snapshot has the state after this record.
        sequence: Sequence,
        /// Its bytes from the offset on.
        part: Vec<u8>,
        /// Total number of bytes.
        total_bytes: u64,
    },
    /// A sequence; 0 if the log begins later.
    Sequence(Sequence),
    /// A job as last checked; if it was not checked, as configured or submitted.
    JobSpec(Box<JobSpec>),
    /// The progress of a verification.
    Verified {
        /// The last record checked.
        to: Sequence,
        /// Whether that is the end of the log.
        complete: bool,
        /// Number of checkpoints with valid signature and digest, in this call.
        checkpoints: u64,
        /// Number of records at the end that no signature covers; known at the end of the log.
        unsigned_records: u64,
        /// The time of the first unsigned record.
        unsigned_since: Option<Timestamp>,
        /// The first fault, if there is one.
        fault: Option<String>,
        /// The kind of fault.
        fault_kind: Option<FaultKind>,
    },
    /// It cannot be answered.
    Refused(Refusal),
    /// The documents that describe a job.
    JobDocuments(Box<JobDocuments>),
    /// The cause of each record, in the order of the query; `None` if it has none.
    Causes(Vec<Option<Sequence>>),
    /// The job with a number; `None` if the number was never given.
    JobOfNumber(Option<JobId>),
    /// Whether the ledger made the token.
    JobToken(bool),
    /// A page of the log in a form that only ledgers know; it has no record if there is none yet.
    Rounds(Vec<u8>),
}

/// The documents that describe a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDocuments {
    /// The record that defines the job, until it is described or checked again.
    pub version: Sequence,
    /// Its last received description, byte for byte (HPC-J-46); `None` if it came without one.
    pub received: Option<JobDocument>,
    /// Its description with all defaults, as last checked (HPC-F-38); `None` if it was not checked.
    pub effective: Option<JobDocument>,
    /// The job's full specification, as [`Query::JobSpec`] returns it.
    pub spec: JobSpec,
    /// Its tasks, if it is a list of tasks.
    pub tasks: Option<TaskList>,
    /// The template that it names.
    pub template: Option<String>,
}
