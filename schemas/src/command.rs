//! Commands and queries to the ledger, and its answers.

pub use crate::{
    plan::Start,
    refusal::{Refusal, RefusalCode},
};

use crate::{
    accounts::AccountChange,
    cluster::ClusterChange,
    event::{Actor, Commit, DeliveryResult, Intake, JobChange, NodeExit, TraceContext, Validated},
    filter::{CallId, FilterReport, FilterSettings, JobDocument, TemplateSpec},
    ids::{CommandId, JobId, NodeId, PartId, RunId, Sequence, StepId},
    job::{ExitStatus, Holds, JobSpec, JobState, Occasion},
    job_token::JobToken,
    node::{Briefing, Mark},
    plan::{NodeClosure, ProposedPlan, ReservationSpec},
    policy::Policy,
    scheduling::SchedulingSettings,
    steps::{StepSpec, TaskStatus},
    tasks::TaskList,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A command with its sender and the means to recognise a retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEnvelope {
    /// A retry has the same.
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
    /// These jobs, arrays or tasks. If one of them does not exist or may not be touched, none is.
    Ids(Vec<JobId>),
    /// All that match and that the actor may touch; none is an answer, not an error.
    Matching(JobFilter),
    /// One component of a job: to hold it, to release it, or to end it while the others continue (SL-M-02, SL-M-04).
    Component {
        /// The job.
        job: JobId,
        /// Which of its components, from 0.
        component: u32,
    },
}

/// Which jobs. All that is given must match.
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

/// A command to the ledger. Each is decided by the domain against the state at that moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "a command travels in a box of its own")]
pub enum Command {
    /// Submit jobs, all or none. Users.
    Submit {
        /// 1 to 100,000 jobs.
        jobs: Vec<JobSpec>,
    },
    /// Add holds. Users for `user` on their own jobs, operators for `operator`, administrators for `system`. A
    /// running job continues; the hold counts when it is put back.
    Hold {
        /// Which jobs.
        jobs: JobSelection,
        /// Which holds.
        holds: Holds,
        /// Why, for people.
        reason: String,
    },
    /// Take holds away; the same permissions.
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
        /// What.
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
        /// Its number, 1 to 64.
        signal: u8,
    },
    /// Stop the processes of running jobs. Their cores are free for others meanwhile, everything else stays theirs.
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
    /// Stop running jobs and put them back into the queue; a finished one, within retention, is queued again.
    Requeue {
        /// Which jobs.
        jobs: JobSelection,
        /// Hold them there.
        hold: bool,
        /// They do not start again before this many seconds from now have passed (SL-C-37).
        delay_seconds: u32,
    },
    /// Make the cluster's configuration this. Administrators; the ledger itself at start.
    Configure {
        /// The requested configuration.
        change: Box<ClusterChange>,
        /// Keep everything that is not named. Otherwise nodes, queues and licences that are not named are removed,
        /// and settings take their defaults; lists of users that would become empty unnamed are refused.
        keep_unnamed: bool,
    },
    /// Let nodes take no new jobs. Operators.
    DrainNodes {
        /// Their names.
        nodes: Vec<String>,
        /// Why, for people.
        reason: String,
        /// Runs on the nodes are stopped, as if the nodes were lost (SL-C-38).
        is_down: bool,
    },
    /// Let drained nodes take jobs again. Operators.
    ResumeNodes {
        /// Their names.
        nodes: Vec<String>,
    },
    /// Make this the policy that planners follow. Administrators.
    SetPolicy {
        /// All of it.
        policy: Box<Policy>,
    },
    /// Keep nodes for some jobs for a time. Operators.
    Reserve {
        /// The resources to reserve, under a name that is not in use.
        reservation: Box<ReservationSpec>,
    },
    /// Delete a reservation, also one that has begun: jobs running in it continue. Operators.
    RemoveReservation {
        /// Its name.
        name: String,
    },
    /// Make these the times in which nodes serve no jobs. Operators.
    SetNodeClosures {
        /// Names of the nodes.
        nodes: Vec<String>,
        /// All of them, the same for each node, in order of time and without overlap. None opens the nodes.
        closures: Vec<NodeClosure>,
    },
    /// The planner's decisions. Each start is checked against the state at this moment; those that no longer fit are
    /// refused singly, the others are kept.
    CommitPlan {
        /// All of them.
        plan: Box<ProposedPlan>,
    },
    /// A node's executor reports for duty, at its start and after each loss of contact. The answer carries what it has to do.
    NodeHello {
        /// Changes when the machine boots.
        boot_id: String,
        /// All parts of runs that it has shims or unacknowledged results of.
        parts: Vec<PartId>,
        /// The highest run number that it remembers, also of runs long gone: new runs get higher ones.
        highest_run: Option<RunId>,
        /// For which moment the list of parts is true. Without it, or with one that another ledger gave, nothing follows from
        /// what is not on the list.
        as_of: Option<Mark>,
    },
    /// The processes of a run have started on the node.
    NodeStarted {
        /// The part of the run.
        part: PartId,
    },
    /// All processes of a run are gone from the node.
    NodeEnded {
        /// The part of the run.
        part: PartId,
        /// How.
        exit: NodeExit,
    },
    /// All processes of a step are gone from the node.
    NodeStepEnded {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// How, taken together.
        exit: NodeExit,
        /// How each task ended; tasks that were not started are not among them.
        statuses: Vec<TaskStatus>,
    },
    /// A node has not reported for too long.
    NodeSilent {
        /// Its number.
        node: NodeId,
        /// Why it is thought lost.
        reason: String,
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
    /// Time has come to what the state waits for: begin times, delays, launch timeouts, retention. The ledger itself.
    Tick,
    /// A checkpoint record, signed by the ledger. The ledger itself.
    Checkpoint {
        /// The record that the digest and the signature are of; the last or an earlier one.
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
        /// The job as far as its dialect could tell before the checks; provisional if there is a description.
        spec: Box<JobSpec>,
        /// Additions to its specification.
        intake: Box<Intake>,
    },
    /// Change a job that is still being made.
    ConfigureJob {
        /// The job.
        job: JobId,
        /// The [`JobDocuments::version`] that the change was made of: refused if the job has become another since, so that
        /// of two who change it at once neither undoes what the other did. `None` replaces whatever it is.
        made_from: Option<Sequence>,
        /// All of it from now on.
        spec: Box<JobSpec>,
        /// Additions to its specification from now on.
        intake: Box<Intake>,
    },
    /// Let a job that was being made, or that failed before it was in the queue, enter the queue.
    EnterJob {
        /// The job.
        job: JobId,
    },
    /// Hold jobs until a time, or not any longer (HPC-H-07).
    HoldUntil {
        /// Which jobs.
        jobs: JobSelection,
        /// Until when; `None` clears the hold.
        until: Option<Timestamp>,
    },
    /// End jobs as [`Command::Cancel`] does, with more to say about it.
    EndJobs {
        /// Which jobs.
        jobs: JobSelection,
        /// How.
        ending: JobEnding,
    },
    /// Make or change a job template. Administrators.
    SetTemplate {
        /// Its new content; the revision is counted by the ledger.
        template: Box<TemplateSpec>,
    },
    /// Remove a job template. Administrators.
    RemoveTemplate {
        /// Its name.
        name: String,
    },
    /// A runner is about to make these calls.
    ClaimCalls {
        /// The calls, each with the attempt that it was offered as.
        calls: Vec<(CallId, u32)>,
    },
    /// Report the outcome of calls.
    ReportCalls {
        /// The reports.
        reports: Vec<CallReport>,
        /// Whether other runners are there; the ledger itself fills this in.
        has_others: bool,
    },
    /// Calls wait and no runner is there. The ledger itself.
    RunnersMissing {
        /// Since when.
        since: Timestamp,
    },
    /// A planner begins its work; the answer carries its epoch.
    PlannerHello,
    /// Launch a step inside a running job, on cores of it that no other step uses. The job's owner. Refused as
    /// [`RefusalCode::Busy`] if it fits as soon as other steps have ended.
    LaunchStep {
        /// The job.
        job: JobId,
        /// All of it; the places of a group that has none are filled in.
        spec: Box<StepSpec>,
    },
    /// Send a signal to the processes of a step. The job's owner.
    SignalStep {
        /// The job.
        job: JobId,
        /// The step; 0 is the job's script.
        step: StepId,
        /// Only on the nodes of this component; `None` means on all of the step's.
        component: Option<u32>,
        /// Its number, 1 to 64.
        signal: u8,
    },
    /// End a step that [`Command::LaunchStep`] launched: SIGTERM, after its grace SIGKILL. The job's owner.
    EndStep {
        /// The job.
        job: JobId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component, the others continue; `None` means all of it (SL-M-15).
        component: Option<u32>,
        /// Without grace.
        is_forced: bool,
    },
    /// End a job that only holds resources for its client, because the client is done. The job's owner.
    ConcludeJob {
        /// The job.
        job: JobId,
        /// The exit status of the client: the job ends as a script with this status.
        status: ExitStatus,
    },
    /// The client of a job lives. If it is silent for this long from now on, and for as long again, the job is
    /// cancelled. The job's owner.
    KeepJob {
        /// The job.
        job: JobId,
        /// 10 to 86,400; `None` means that it no longer has to report.
        seconds: Option<u32>,
    },
    /// Make these the cluster-wide filters and the way filters are called, and this the way resources are given to jobs: both or
    /// neither. Administrators.
    SetParameters {
        /// All settings for calls of filters; `None` leaves them as they are.
        filters: Option<Box<FilterSettings>>,
        /// All settings for giving resources to jobs; `None` leaves them as they are.
        scheduling: Option<Box<SchedulingSettings>>,
    },
    /// The runners that had claimed these calls no longer have them: they are offered to others (SL-B-01). The ledger
    /// itself.
    CallsLost {
        /// Which.
        calls: Vec<CallId>,
    },
    /// Change accounts, users, associations and service classes: all of it or nothing. Operators.
    ChangeAccounts {
        /// In this order.
        changes: Vec<AccountChange>,
    },
    /// Put components that wait into another service class (SL-C-36).
    ChangeClass {
        /// Which jobs.
        jobs: JobSelection,
        /// The class.
        class: String,
    },
    /// Say something to running jobs (SL-C-33). Users to their own jobs, operators to all.
    TellJobs {
        /// Which jobs.
        jobs: JobSelection,
        /// What; at most 1,024 bytes.
        text: String,
    },
    /// Change a reservation; jobs running in it continue. Operators.
    ChangeReservation {
        /// All of it, under the name of one that there is.
        reservation: Box<ReservationSpec>,
    },
    /// A program refused what the caller asked of it, before it asked anything of the system: that leaves a record as what
    /// the ledger refuses does, and changes nothing (SL-L-10). Users.
    NoteRefusal {
        /// The request, such as the program's name; 1 to 64 bytes without control characters.
        what: String,
        /// Why it is not done, for people; 1 to 1,024 bytes.
        why: String,
    },
}

/// How jobs are to end (HPC-C-06).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobEnding {
    /// They end as finished instead of cancelled.
    pub is_finished: bool,
    /// Without grace and without tasks that release nodes.
    pub is_forced: bool,
    /// Tasks that run may end by themselves; no new ones start.
    pub is_graceful: bool,
    /// Shown on the jobs; at most 128 characters.
    pub message: String,
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
    /// The check behind the filters passed the job.
    Validated(Box<Validated>),
    /// The check behind the filters refuses the job: the text that it ends with, which begins with a code in brackets.
    Refused(String),
}

/// A start of a plan that no longer fitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedStart {
    /// The job.
    pub job: JobId,
    /// Why.
    pub reason: String,
}

/// The ledger's answer. It means: on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Every record that the command led to has a sequence up to this; a query that waits for it sees all of them.
    pub sequence: Sequence,
    /// The result.
    pub result: Result<Reply, Refusal>,
}

/// The result of an accepted command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// It is done, and there is nothing to add.
    Done,
    /// Jobs were submitted: the number of each, in the order given.
    Submitted(Vec<JobId>),
    /// It is done for these jobs.
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
    /// Whether each call that was claimed is the runner's; the others have been made or are with somebody else.
    Claimed(Vec<bool>),
    /// The planner's epoch.
    Epoch(u64),
}

/// The kind of fault that a verification found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Something contradicts: it was altered, removed or added.
    Invalid,
    /// Something can no longer be read.
    Damaged,
    /// Nothing contradicts, but no signature covers the end, or it could not be compared.
    Unproven,
}

/// A query to the ledger over the bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// Where the log ends, and whose it is.
    Head,
    /// Records from a sequence on, as many as fit in a page.
    Replay {
        /// The first wanted.
        from: Sequence,
        /// Maximum number of bytes of records (but at least one record); capped by the ledger.
        max_bytes: u32,
    },
    /// The newest state snapshot at or before a sequence, in pages.
    Snapshot {
        /// At or before this; `None` means the newest.
        at_or_before: Option<Sequence>,
        /// From this byte on.
        offset: u64,
    },
    /// The records of a job, oldest first, as many as fit in a page: ask again from behind the last until none comes.
    /// For an array those of its tasks too; for a task also those of its array.
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
    /// All of a job, with launch and environment, which the state does not keep: as it was checked last, else as it was
    /// configured or submitted.
    JobSpec {
        /// The job or array.
        job: JobId,
    },
    /// Verify the log: chain, signatures, digests. Long; the answer reports progress.
    Verify {
        /// From this sequence on.
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
        /// Those asked about.
        of: Vec<Sequence>,
    },
    /// Whether this is the token of a job that the ledger made. It does not say whether the run lasts.
    JobToken(JobToken),
    /// Which job or task of an array a number means, also of those that the state has forgotten: the number of a component
    /// means its job.
    JobOfNumber {
        /// The number.
        number: u64,
        /// Tasks of arrays from this number on have their own numbers; `None` if none has.
        tasks_from: Option<u64>,
    },
}

/// The answers to queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueryAnswer {
    /// Where the log ends.
    Head {
        /// The last durable record.
        last: Sequence,
        /// The first record that has not been archived.
        first: Sequence,
        /// Its cluster.
        cluster_id: [u8; 16],
        /// Hash of the last record.
        last_hash: [u8; 32],
        /// What the ledger may write: [`crate::codec::FEATURE_LEVEL`] of its muster.
        feature_level: u32,
    },
    /// Records, contiguous from the one asked for; empty if there is none yet.
    Records(Commit),
    /// Part of a snapshot; `total_bytes` 0 means there is none.
    Snapshot {
        /// The state is as after this record.
        sequence: Sequence,
        /// Its bytes from the offset on.
        part: Vec<u8>,
        /// How many bytes it has in all.
        total_bytes: u64,
    },
    /// A sequence; 0 if the log begins later.
    Sequence(Sequence),
    /// A job as it was checked last; as it was configured or submitted if it was not.
    JobSpec(Box<JobSpec>),
    /// How far verification came.
    Verified {
        /// The last record checked.
        to: Sequence,
        /// Whether that is the end of the log.
        complete: bool,
        /// Checkpoints whose signature and digest hold, in this call.
        checkpoints: u64,
        /// How many records at the end no signature covers; told with the end of the log.
        unsigned_records: u64,
        /// The time of the first of them.
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
    /// The cause of each record that was asked about, in the same order; `None` where something began.
    Causes(Vec<Option<Sequence>>),
    /// The job with a number; `None` if the number was never given.
    JobOfNumber(Option<JobId>),
    /// Whether the ledger made the token.
    JobToken(bool),
}

/// The documents that describe a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobDocuments {
    /// The record that defines the job, until it is described or checked again.
    pub version: Sequence,
    /// Its description as it was received last, byte for byte (HPC-J-46); `None` if it came without one.
    pub received: Option<JobDocument>,
    /// Its description with all defaults, as it was checked last (HPC-F-38); `None` if it was not checked.
    pub effective: Option<JobDocument>,
    /// All of the job, as [`Query::JobSpec`] answers it.
    pub spec: JobSpec,
    /// Its tasks, if it is a list of them.
    pub tasks: Option<TaskList>,
    /// The template that it names.
    pub template: Option<String>,
}
