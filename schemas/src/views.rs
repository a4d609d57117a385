//! Shapes of the HTTP API: the public JSON of jobs, runs, nodes and queues. Keys are stable: they are only ever added.

mod accounts;
mod explanation;
mod filtering;
mod forecast;
mod reservations;
mod steps;
mod timetable;

pub use accounts::*;
pub use explanation::*;
pub use filtering::*;
pub use forecast::*;
pub use reservations::*;
pub use steps::{
    ConcludeRequest, KeepRequest, StepDetail, StepEndRequest, StepInputAnswer, StepNodeDetail, StepSignalRequest,
    StepTerminalRequest, StepWalltimeRequest, StepsPage,
};
pub use timetable::*;

use crate::{
    cluster::QueueSpec,
    command::{FaultKind, JobSelection, Refusal, RefusalCode},
    copies::CopyReport,
    energy::{PowerView, PowerWay},
    event::{JobChange, NodeExit, StopReason},
    filter::StagingSettings,
    ids::{JobId, RunId, Sequence, StepId},
    job::{ExitStatus, Holds, JobSpec, JobState, Outcome, Usage, WaitReason},
    node::{GpuFault, NodeLoad},
    plan::NodeClosure,
    policy::PolicySource,
    resources::{IndexSet, NodeSpec},
    time::Timestamp,
    walltimes::WalltimeAsked,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::ToSchema;

/// How a job or a run ended, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWord {
    /// Every process exited with 0.
    Completed,
    /// A process did not exit with 0.
    Failed,
    /// It could not be started.
    LaunchFailed,
    /// Somebody cancelled it.
    Cancelled,
    /// It reached its walltime.
    TimedOut,
    /// It used more memory than it had requested.
    OutOfMemory,
    /// It had to make room for another job.
    Preempted,
    /// One of its nodes was lost.
    NodeLost,
    /// Its deadline passed before it could start.
    DeadlineMissed,
    /// A job that it depends on ended in a way that can never satisfy it.
    DependencyNeverMet,
    /// It was requeued: the run is over, the job is not.
    Requeued,
    /// A filter, a template or a check refused it.
    Refused,
    /// Somebody declared it finished while it ran.
    DeclaredFinished,
}

impl OutcomeWord {
    /// The word, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::LaunchFailed => "launch_failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Preempted => "preempted",
            Self::NodeLost => "node_lost",
            Self::DeadlineMissed => "deadline_missed",
            Self::DependencyNeverMet => "dependency_never_met",
            Self::Requeued => "requeued",
            Self::Refused => "refused",
            Self::DeclaredFinished => "declared_finished",
        }
    }
}

impl From<&Outcome> for OutcomeWord {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed(_) => Self::Failed,
            Outcome::LaunchFailed(_) => Self::LaunchFailed,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::OutOfMemory => Self::OutOfMemory,
            Outcome::Preempted => Self::Preempted,
            Outcome::NodeLost(_) => Self::NodeLost,
            Outcome::DeadlineMissed => Self::DeadlineMissed,
            Outcome::DependencyNeverMet => Self::DependencyNeverMet,
            Outcome::Requeued => Self::Requeued,
            Outcome::Refused(_) => Self::Refused,
            Outcome::DeclaredFinished => Self::DeclaredFinished,
        }
    }
}

impl fmt::Display for OutcomeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How a job or a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeView {
    /// As one word.
    pub outcome: OutcomeWord,
    /// For `failed`, the first status that is not 0, by task rank; for `completed`, 0; otherwise `null`.
    pub exit_status: Option<ExitStatus>,
    /// Details for people: why it could not be launched, which node was lost and how, why it was refused.
    pub detail: Option<String>,
}

impl OutcomeView {
    /// The exit status of a command that waited for the job: that of the job, or 1 if it has none and did not complete.
    pub fn shell_code(&self) -> u8 {
        self.exit_status.map_or(u8::from(self.outcome != OutcomeWord::Completed), ExitStatus::shell_code)
    }
}

impl From<&Outcome> for OutcomeView {
    fn from(outcome: &Outcome) -> Self {
        let exit_status = match outcome {
            Outcome::Completed => Some(ExitStatus::Code(0)),
            Outcome::Failed(status) => Some(*status),
            _ => None,
        };
        let detail = match outcome {
            Outcome::LaunchFailed(why) | Outcome::NodeLost(why) | Outcome::Refused(why) => Some(why.clone()),
            _ => None,
        };
        Self { outcome: outcome.into(), exit_status, detail }
    }
}

impl fmt::Display for OutcomeView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.outcome.word())?;
        match (&self.detail, self.exit_status) {
            (Some(detail), _) => write!(f, " ({detail})"),
            (None, Some(status)) if self.outcome == OutcomeWord::Failed => write!(f, " ({status})"),
            _ => Ok(()),
        }
    }
}

/// Why a job waits, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonWord {
    /// The planner has not considered it yet.
    NotPlannedYet,
    /// It is held.
    Held,
    /// Its begin time has not come.
    BeginTime,
    /// It waits for another job.
    Dependency,
    /// It waits for a job whose end can never satisfy it.
    DependencyNeverMet,
    /// Its queue is not starting jobs.
    QueueStopped,
    /// Its array has reached its limit of running tasks.
    ArrayLimit,
    /// A limit of queue, user, group or account is reached.
    Limit,
    /// Not enough resources are free.
    Resources,
    /// Another job is ahead of it.
    BehindJob,
    /// Nodes that it needs are drained or lost.
    NodesUnavailable,
    /// The cluster as configured can never serve it.
    NeverFits,
    /// An earlier job of the same owner and name has not ended.
    Namesake,
    /// Jobs announced ahead of it have not been submitted yet.
    Announced,
    /// It was promised a start.
    Reserved,
    /// It fits, but would delay another job, which was promised a start.
    WouldDelay,
    /// Its advance reservation no longer exists.
    ReservationGone,
    /// Its advance reservation has not begun.
    ReservationNotBegun,
    /// An external planner gave its own reason.
    ExternalPlanner,
    /// The external planner has failed.
    PlannerFailed,
    /// Its owner has not submitted it yet.
    Configuring,
    /// A filter, or the check after the filters, has not answered yet.
    FilterPending,
    /// An activation filter said "not now".
    ActivationFilter,
    /// The activation filter of another job keeps it from starting.
    BlockedByJob,
    /// It is held until a time.
    HeldUntil,
    /// It is being staged in, or will be.
    StagingIn,
    /// A persistent buffer that it needs does not exist.
    BufferMissing,
    /// Staging in failed, and it is held.
    StagingFailed,
    /// The planner is switched off.
    PlannerOff,
    /// No job runs that holds resources for its planning domain.
    DomainNotOpen,
    /// It could start, but on nodes in more groups than it wants.
    FewGroups,
    /// Its queue starts no jobs, and has not passed it on to another one yet.
    NotPassedOn,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReasonView {
    /// As one word, for programs.
    pub code: ReasonWord,
    /// As a sentence, for people.
    pub text: String,
    /// The job that it waits for, or that is ahead of it.
    pub job: Option<JobId>,
}

impl From<&WaitReason> for ReasonView {
    fn from(reason: &WaitReason) -> Self {
        let (code, job) = match reason {
            WaitReason::NotPlannedYet => (ReasonWord::NotPlannedYet, None),
            WaitReason::Held(_) => (ReasonWord::Held, None),
            WaitReason::BeginTime(_) => (ReasonWord::BeginTime, None),
            WaitReason::Dependency(job) => (ReasonWord::Dependency, Some(*job)),
            WaitReason::DependencyNeverMet(job) => (ReasonWord::DependencyNeverMet, Some(*job)),
            WaitReason::QueueStopped => (ReasonWord::QueueStopped, None),
            WaitReason::PlannerOff => (ReasonWord::PlannerOff, None),
            WaitReason::ArrayLimit => (ReasonWord::ArrayLimit, None),
            WaitReason::Limit(_) => (ReasonWord::Limit, None),
            WaitReason::Resources(_) => (ReasonWord::Resources, None),
            WaitReason::BehindJob(job) => (ReasonWord::BehindJob, Some(*job)),
            WaitReason::NodesUnavailable(_) => (ReasonWord::NodesUnavailable, None),
            WaitReason::NeverFits(_) => (ReasonWord::NeverFits, None),
            WaitReason::Namesake => (ReasonWord::Namesake, None),
            WaitReason::Announced => (ReasonWord::Announced, None),
            WaitReason::Reserved { .. } => (ReasonWord::Reserved, None),
            WaitReason::WouldDelay(job) => (ReasonWord::WouldDelay, Some(*job)),
            WaitReason::ReservationGone(_) => (ReasonWord::ReservationGone, None),
            WaitReason::ReservationNotBegun(_) => (ReasonWord::ReservationNotBegun, None),
            WaitReason::ExternalPlanner(_) => (ReasonWord::ExternalPlanner, None),
            WaitReason::PlannerFailed(_) => (ReasonWord::PlannerFailed, None),
            WaitReason::Configuring => (ReasonWord::Configuring, None),
            WaitReason::FilterPending(_) => (ReasonWord::FilterPending, None),
            WaitReason::ActivationFilter(_) => (ReasonWord::ActivationFilter, None),
            WaitReason::BlockedByJob(job) => (ReasonWord::BlockedByJob, Some(*job)),
            WaitReason::HeldUntil { .. } => (ReasonWord::HeldUntil, None),
            WaitReason::StagingIn(_) => (ReasonWord::StagingIn, None),
            WaitReason::BufferMissing(_) => (ReasonWord::BufferMissing, None),
            WaitReason::StagingFailed(_) => (ReasonWord::StagingFailed, None),
            WaitReason::DomainNotOpen(_) => (ReasonWord::DomainNotOpen, None),
            WaitReason::FewGroups { .. } => (ReasonWord::FewGroups, None),
            WaitReason::NotPassedOn => (ReasonWord::NotPassedOn, None),
            // Only the text says more.
            WaitReason::LeftOut => (ReasonWord::NotPlannedYet, None),
        };
        // Only the owner and operators may see why, for it can name files.
        let text = match reason {
            WaitReason::StagingFailed(_) => WaitReason::STAGING_FAILED.to_owned(),
            reason => reason.to_string(),
        };
        Self { code, text, job }
    }
}

/// A job, an array or a task of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Its own number. The tasks of an array are numbered consecutively from the array's number, in the order of their
    /// indices; in an array older than this numbering, every task has the array's number (SL-C-18).
    #[serde(default)]
    pub number: u64,
    /// Its name, for people.
    pub name: String,
    /// The owner's login name.
    pub owner: String,
    /// Its queue.
    pub queue: String,
    /// The account or project that is charged.
    pub account: Option<String>,
    /// Its service class (QOS).
    pub class: Option<String>,
    /// A higher priority goes first.
    pub priority: i64,
    /// What its service class adds to its priority.
    #[serde(default)]
    pub class_priority: i64,
    /// Its state.
    pub state: JobState,
    /// Why it waits, if it does.
    pub reason: Option<ReasonView>,
    /// Holds that are set.
    pub holds: Holds,
    /// How it ended, if it has.
    pub outcome: Option<OutcomeView>,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Earliest start time.
    pub begin: Option<Timestamp>,
    /// When its latest run started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How long it may run, in seconds.
    pub walltime_seconds: Option<u64>,
    /// The nodes of its latest run, in order of rank; empty while it waits.
    pub nodes: Vec<String>,
    /// Number of nodes; while it waits, the minimum that it asks for.
    pub node_count: u32,
    /// Number of tasks; while it waits, the minimum that it asks for.
    pub tasks: u32,
    /// Number of cores; while it waits, the minimum that it asks for.
    pub cores: u64,
    /// Number of components: 1 for a plain job.
    pub components: u32,
    /// Its latest run.
    pub run: Option<RunId>,
    /// Number of runs so far.
    pub runs: u32,
    /// The advance reservation that it runs in.
    #[serde(default)]
    pub reservation: Option<String>,
    /// The latest start that the planner has promised; for an array, that of its next task.
    #[serde(default)]
    pub slot_start: Option<Timestamp>,
    /// The expected start of a waiting job, if it can be predicted; for an array, that of its next task.
    #[serde(default)]
    pub predicted_start: Option<Timestamp>,
    /// The progress of the tasks, if it is an array.
    pub array: Option<ArrayView>,
    /// How filters, a template or a timed hold affect it; most jobs have none of these.
    #[serde(default)]
    pub filtering: Option<Box<FilteringView>>,
    /// Its size and its tasks, if it is a list of tasks.
    #[serde(default)]
    pub elastic: Option<ElasticView>,
    /// Its components in their order, if it has several.
    #[serde(default)]
    pub by_component: Vec<ComponentView>,
    /// Why its run is being stopped, if it is.
    #[serde(default)]
    pub stopping: Option<StopReason>,
    /// The dialect whose command or description it was submitted with; `None` for muster's own.
    #[serde(default)]
    pub dialect: Option<String>,
    /// Whether processes of it, or of its first component, were sent SIGSTOP, and none SIGCONT since.
    #[serde(default)]
    pub is_stopped: bool,
    /// Whether it is repeated at certain times.
    #[serde(default)]
    pub is_repeated: bool,
    /// How far the copying of its files is, if it has some.
    #[serde(default)]
    pub copies: Option<Box<CopiesView>>,
    /// Whether it is suspended, and continues as soon as its cores are free.
    #[serde(default)]
    pub is_resuming: bool,
    /// An earlier reason that stands in place of the present one for a while, where the policy has it so (PBS-P-15).
    #[serde(default)]
    pub comment: Option<Box<CommentView>>,
}

/// An earlier reason of a waiting job that is still shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommentView {
    /// The reason, as a sentence for people.
    pub text: String,
    /// From then on the present reason is shown.
    pub until: Timestamp,
}

/// How far the copying of a job's files is (PBS-G-08).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CopiesView {
    /// The stage.
    pub stage: CopyWord,
    /// Whether files are copied before it starts.
    #[serde(default)]
    pub has_before: bool,
    /// The node that copies them, or has them.
    #[serde(default)]
    pub node: Option<String>,
    /// How often files could not be copied before a start.
    #[serde(default)]
    pub failures: u32,
    /// The last result.
    #[serde(default)]
    pub last: Option<CopyReport>,
}

/// The stages of the copying of a job's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CopyWord {
    /// Nothing is copied yet.
    Wanted,
    /// They are copied to a node, and a run waits for them.
    Coming,
    /// They are copied to a node ahead of a run.
    Ahead,
    /// They are on the node.
    Here,
    /// They could not be copied; the job waits for some time.
    Failed,
    /// The job is over, and its results are copied from the node.
    Leaving,
    /// Nothing more is copied.
    Over,
}

impl JobView {
    /// Its own number; if the gateway sent none, that of the job or array.
    pub fn own_number(&self) -> u64 {
        self.number.max(self.id.number)
    }

    /// Whether a number belongs to it or to one of its components.
    pub fn has_number(&self, number: u64) -> bool {
        let own = self.own_number();
        number == self.id.number || (own..own + u64::from(self.components)).contains(&number)
    }

    /// Whether its entry into the queue is decided: submission filters and the check after them have accepted or
    /// refused it.
    pub fn is_decided(&self) -> bool {
        let entry = self.filtering.as_ref().map(|filtering| filtering.entry);
        let is_on_its_way =
            matches!(entry, Some(EntryWord::Configuring | EntryWord::Filtering | EntryWord::Validating));
        self.outcome.is_some() || !is_on_its_way
    }
}

/// One component of a job with several, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentView {
    /// Its queue.
    pub queue: String,
    /// The account or project that is charged.
    pub account: Option<String>,
    /// Its service class (QOS).
    pub class: Option<String>,
    /// A higher priority goes first.
    pub priority: i64,
    /// What its service class adds to its priority.
    #[serde(default)]
    pub class_priority: i64,
    /// Its state: a component can end before the others do.
    pub state: JobState,
    /// Holds that are set on it.
    pub holds: Holds,
    /// How it ended, if it ended before the job did.
    pub outcome: Option<OutcomeView>,
    /// When it ended, if it ended before the job did.
    pub ended: Option<Timestamp>,
    /// Earliest start time.
    pub begin: Option<Timestamp>,
    /// The advance reservation that it runs in.
    pub reservation: Option<String>,
    /// How long it may run, in seconds.
    pub walltime_seconds: Option<u64>,
    /// The nodes that it has or had in the latest run, in order of rank; empty while it waits.
    pub nodes: Vec<String>,
    /// Number of nodes in the latest run; while it waits, the minimum that it asks for.
    pub node_count: u32,
    /// Number of tasks, counted the same way.
    pub tasks: u32,
    /// Number of cores, counted the same way.
    pub cores: u64,
    /// The expected start of a waiting component, if it can be predicted. Components of one job can have different
    /// expected starts (SL-P-12).
    #[serde(default)]
    pub expected_start: Option<Timestamp>,
    /// The nodes that it is expected to have then, if a plan names them.
    #[serde(default)]
    pub planned_nodes: Vec<String>,
    /// Whether processes of it were sent SIGSTOP, and none SIGCONT since.
    #[serde(default)]
    pub is_stopped: bool,
}

/// The progress of the tasks of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayView {
    /// Total number of tasks.
    pub total: u64,
    /// Indices of tasks that have not started.
    pub remaining: IndexSet,
    /// Number of tasks that have not started.
    pub waiting: u64,
    /// Number of tasks that have started and not ended.
    pub running: u64,
    /// Number of tasks that have ended, by outcome.
    pub finished: BTreeMap<OutcomeWord, u64>,
    /// Maximum number of tasks that run at a time.
    pub max_running: Option<u32>,
    /// Tasks that ended without ever starting, by outcome.
    #[serde(default)]
    pub never_started: BTreeMap<OutcomeWord, IndexSet>,
    /// Tasks with their own numbers, in the order of those numbers: all tasks, or none if the array is older than this
    /// numbering.
    #[serde(default)]
    pub numbered: IndexSet,
    /// Tasks that have not started and are held individually, grouped by their holds.
    #[serde(default)]
    pub held: Vec<HeldTasksView>,
}

/// Tasks of an array with the same holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldTasksView {
    /// Their indices.
    pub indices: IndexSet,
    /// Their holds.
    pub holds: Holds,
}

/// One attempt to execute a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    /// Its id.
    pub run: RunId,
    /// The job or task that it executes.
    pub job: JobId,
    /// Its nodes.
    pub nodes: Vec<RunNodeView>,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// When its processes were running on all its nodes.
    pub started: Option<Timestamp>,
    /// When its last process ended.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<OutcomeView>,
    /// Its usage on all nodes; 0 until it has ended.
    pub usage: Usage,
    /// Whether the log says that it started ahead of a waiting job.
    #[serde(default)]
    pub backfilled: bool,
}

/// The part of a run on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunNodeView {
    /// The node's name.
    pub node: String,
    /// The component that it serves, from 0.
    pub component: u32,
    /// Its cores.
    pub cores: IndexSet,
    /// Its GPUs.
    pub gpus: IndexSet,
    /// Its memory; 0 means that none is set aside.
    pub memory_bytes: u64,
    /// Number of tasks there.
    pub tasks: u32,
    /// Whether the node serves no other job meanwhile.
    pub exclusive: bool,
    /// How it ended there, if it has.
    pub exit: Option<NodeExit>,
}

/// Everything that is known about a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// The job as shown in lists.
    pub job: JobView,
    /// As submitted, with defaults filled in. Only the owner and operators see script, arguments, environment,
    /// notifications and attributes.
    pub spec: JobSpec,
    /// Whether parts of `spec` were left out.
    pub redacted: bool,
    /// Its runs, oldest first. An array has none; ask for its tasks.
    pub runs: Vec<RunView>,
    /// Its tasks, if it is a list of tasks. Their commands are in its description.
    #[serde(default)]
    pub tasks: Vec<TaskView>,
    /// Cancellations of the job or its components, oldest first. Empty for an array; ask for its tasks.
    #[serde(default)]
    pub cancels: Vec<CancelView>,
    /// The state of each of its dependencies, by component, in the same positions as in `spec`. Empty if it has none.
    #[serde(default)]
    pub dependencies: Vec<Vec<Vec<DependencyWord>>>,
    /// More walltime that its run was granted or still wants (OAR-G-16).
    #[serde(default)]
    pub increase: Option<WalltimeAsked>,
    /// How far the account and the owner of a waiting job are above their targets, in millionths, if the policy compares them
    /// (OAR-Q-12).
    #[serde(default)]
    pub use_share_millionths: Option<i64>,
}

/// The state of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DependencyWord {
    /// It may still be met.
    Unmet,
    /// Its event has happened, but its delay is not over.
    Delayed,
    /// It is met.
    Met,
    /// It can no longer be met.
    Never,
}

/// A user cancelled a job, or a component of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelView {
    /// When.
    pub at: Timestamp,
    /// The run that was stopped; `null` if the job was waiting.
    pub run: Option<RunId>,
    /// Only this component, from 0; `null` means the whole job.
    pub component: Option<u32>,
    /// The user's login name.
    pub user: String,
    /// The user's number.
    pub uid: u32,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobsPage {
    /// In order of their ids.
    pub jobs: Vec<JobView>,
    /// Ask for `after=` this to get the next page; `null` on the last page.
    pub next: Option<JobId>,
    /// The answer shows each job after this record or, on a long page, after a slightly later one.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}

/// Several jobs in detail, for lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDetailsPage {
    /// In order of their ids, without the texts of scripts, environments and notifications. Jobs that do not exist are
    /// left out.
    pub jobs: Vec<JobDetail>,
    /// The steps of these jobs, if requested, in the order of the jobs.
    pub steps: Vec<StepDetail>,
    /// The answer shows the state after this record or a later one.
    pub sequence: Sequence,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// Its specification.
    pub spec: NodeSpec,
    /// Whether it serves jobs.
    pub state: NodeStateWord,
    /// Why it is drained or lost, for people.
    pub reason: Option<String>,
    /// Cores in use by jobs.
    pub cores_used: u32,
    /// Memory in use by jobs.
    pub memory_used_bytes: u64,
    /// GPUs in use by jobs.
    pub gpus_used: u32,
    /// Jobs that have resources on it.
    pub jobs: Vec<JobId>,
    /// Whether an operator took it down; otherwise, if it is out of service, it is drained.
    #[serde(default)]
    pub is_down: bool,
    /// Who took it out of service, if that was recorded.
    #[serde(default)]
    pub taken_out_by: Option<String>,
    /// Since when it has been out of service, if known.
    #[serde(default)]
    pub taken_out: Option<Timestamp>,
    /// Times in which it serves no jobs, in order.
    #[serde(default)]
    pub closures: Vec<NodeClosure>,
    /// Advance reservations that include it, by name.
    #[serde(default)]
    pub reservations: Vec<String>,
    /// Its GPUs that take no new jobs, in order of their numbers.
    #[serde(default)]
    pub gpu_faults: Vec<GpuFault>,
    /// Its last measured load; `None` if none was measured since it reports.
    #[serde(default)]
    pub load: Option<NodeLoad>,
    /// Its power state, if it is not simply awake.
    #[serde(default)]
    pub power: Option<PowerView>,
}

impl NodeView {
    /// The number of its GPUs that new jobs can get.
    pub fn gpus_in_service(&self) -> u64 {
        (self.spec.gpus.len() as u64).saturating_sub(self.gpu_faults.len() as u64)
    }

    /// Which of its GPUs are out of service, and why, for people.
    pub fn gpu_faults_text(&self) -> Option<String> {
        let texts: Vec<String> =
            self.gpu_faults.iter().map(|fault| format!("GPU {}: {}", fault.gpu, fault.why)).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}

/// Whether a node serves jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeStateWord {
    /// It has not reported since it was added.
    Unknown,
    /// It serves jobs.
    Up,
    /// It takes no new jobs.
    Drained,
    /// It has not reported for too long.
    Lost,
}

impl NodeStateWord {
    /// The word, as in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::Drained => "drained",
            Self::Lost => "lost",
        }
    }
}

/// All nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodesPage {
    /// In the order in which they were added.
    pub nodes: Vec<NodeView>,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueView {
    /// Its specification.
    pub spec: QueueSpec,
    /// Whether jobs that name no queue go there.
    pub default: bool,
    /// Jobs that wait for resources; each array task counts as one.
    pub queued: u64,
    /// Jobs with a closed gate; each array task counts as one.
    pub held: u64,
    /// Those of them that nothing else keeps than a time: their begin time, or the end of a hold.
    #[serde(default)]
    pub held_until: u64,
    /// Jobs that have resources.
    pub running: u64,
}

/// All queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueuesPage {
    /// By name.
    pub queues: Vec<QueueView>,
    /// Floating licences, by name.
    pub licences: Vec<LicenceView>,
    /// Persistent buffers, by name.
    #[serde(default)]
    pub buffers: Vec<BufferView>,
    /// How the files of jobs are staged.
    #[serde(default)]
    pub staging: StagingSettings,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}

/// A persistent buffer. Any job that names it can use it (SL-B-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BufferView {
    /// Its name.
    pub name: String,
    /// Login name of the owner of the job that created it.
    pub owner: String,
    /// The job that created it.
    pub job: JobId,
    /// When it was created.
    pub created: Timestamp,
}

/// A floating licence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LicenceView {
    /// Its name.
    pub name: String,
    /// The total number.
    pub total: u32,
    /// The number in use by jobs.
    pub used: u32,
}

/// The identity and state of this system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InfoView {
    /// The gateway's version.
    pub version: String,
    /// The cluster's name.
    pub cluster: String,
    /// Identifies its log uniquely: a UUID. Empty before the first record.
    pub cluster_id: String,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
    /// The last durable record of the ledger; `null` while the ledger does not answer.
    pub head: Option<Sequence>,
    /// The first record that has not been archived; `null` while the ledger does not answer.
    pub first: Option<Sequence>,
    /// Hash of the last durable record, in hex; `null` while the ledger does not answer.
    pub head_hash: Option<String>,
    /// Number of jobs in each state; each array task counts as one.
    pub jobs: BTreeMap<JobState, u64>,
    /// How many of the held ones nothing else keeps than a time: their begin time, or the end of a hold.
    #[serde(default)]
    pub held_until: u64,
    /// Number of nodes in each state.
    pub nodes: BTreeMap<NodeStateWord, u64>,
    /// The caller's login name, as the gateway knows it.
    pub caller: String,
    /// Settings for the commands of dialects from this gateway's configuration, by dialect and name.
    #[serde(default)]
    pub dialects: BTreeMap<String, BTreeMap<String, String>>,
    /// The number that the next job gets.
    #[serde(default)]
    pub next_job_number: u64,
}

/// The settings for the commands of dialects, and for whom they work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DialectsView {
    /// The cluster's name.
    pub cluster: String,
    /// The caller's login name, as the gateway knows it.
    pub caller: String,
    /// The settings from this gateway's configuration, by dialect and name.
    pub dialects: BTreeMap<String, BTreeMap<String, String>>,
    /// The queue of jobs that name none; empty if there is none.
    #[serde(default)]
    pub default_queue: String,
    /// The requests that commands of dialects make for jobs that make none of their own.
    #[serde(default)]
    pub defaults: Vec<RequestDefault>,
}

/// A request that commands of a dialect make for jobs that make none of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestDefault {
    /// The attribute of the configuration that has it, as `DIALECT.resources_default.RESOURCE`.
    pub attribute: String,
    /// The queue of the jobs; `None` for all queues.
    pub queue: Option<String>,
    /// The value that is asked for.
    pub value: String,
}

/// Jobs to submit: all are accepted or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitRequest {
    /// 1 to 100,000 jobs.
    pub jobs: Vec<JobSpec>,
}

/// Which jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsRequest {
    /// The jobs.
    pub jobs: JobSelection,
}

/// Holds to set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// Which holds; `user` if left out.
    #[serde(default = "user_hold")]
    pub holds: Holds,
    /// The reason, for people.
    #[serde(default)]
    pub reason: String,
}

/// Holds to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// Which holds; `user` if left out.
    #[serde(default = "user_hold")]
    pub holds: Holds,
}

fn user_hold() -> Holds {
    Holds { user: true, ..Holds::default() }
}

/// A signal to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// The signal's number, 1 to 64.
    pub signal: u8,
}

/// Jobs to put back into the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequeueRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// Whether to hold them there.
    #[serde(default)]
    pub hold: bool,
    /// Minimum time before they start again, in seconds.
    #[serde(default)]
    pub delay_seconds: u32,
}

/// A change of several jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModifyRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// The change.
    pub change: JobChange,
}

/// A job to start at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunJobRequest {
    /// The names of the nodes to run it on; empty means any.
    pub nodes: Vec<String>,
}

/// Files to copy ahead of the start of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CopyAheadRequest {
    /// The node, where the job then runs; `None` leaves the choice to the ledger.
    pub node: Option<String>,
}

/// A message to running jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TellRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// The message.
    pub text: String,
}

/// A running job gives up nodes and continues on the others. Steps with tasks on them are ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShrinkRequest {
    /// It keeps this many of its first nodes; `null` if `keep` says which.
    pub nodes: Option<u32>,
    /// It keeps the nodes with these names, among them its first; empty if `nodes` says how many.
    pub keep: Vec<String>,
    /// The component that gives them up, from 0; a job with several components needs it.
    pub component: Option<u32>,
}

/// Files of a policy have mistakes, so the policy in force stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyRefusal {
    /// The name of the policy.
    pub name: String,
    /// The files that it was made of.
    pub sources: Vec<PolicySource>,
    /// The mistakes in them, for people. The first 100 are kept.
    pub mistakes: Vec<String>,
}

/// Something about the files of the policy in force is doubtful.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyWarning {
    /// The name of the policy.
    pub name: String,
    /// The warnings, for people. The first 100 are kept.
    pub warnings: Vec<String>,
}

/// A refusal by a program itself (SL-L-10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusalNote {
    /// The request, such as the program's name; 1 to 64 bytes without control characters.
    pub what: String,
    /// The reason, for people; 1 to 1,024 bytes.
    pub why: String,
}

impl RefusalNote {
    /// Maximum length of the request, in bytes.
    pub const MOST_WHAT_BYTES: usize = 64;
    /// Maximum length of the reason, in bytes. The ledger cuts a longer message to this.
    pub const MOST_WHY_BYTES: usize = 1_024;
}

/// Nodes that should take no new jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Their names.
    pub nodes: Vec<String>,
    /// The reason, for people.
    #[serde(default)]
    pub reason: String,
    /// Whether they are down: their runs are stopped, as if they were lost.
    #[serde(default)]
    pub is_down: bool,
}

/// Nodes that should take jobs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeNodesRequest {
    /// Their names.
    pub nodes: Vec<String>,
}

/// Nodes that should sleep or wake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerRequest {
    /// Their names.
    pub nodes: Vec<String>,
    /// The change of power.
    pub way: PowerWay,
}

/// The result of a command, which is on the ledger's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandAnswer {
    /// A query with this as `wait_seq` sees the effect of the command; on this gateway every later query does.
    pub sequence: Sequence,
    /// Submitted jobs, in the order given, or jobs that the command was about.
    pub jobs: Vec<JobId>,
    /// Whether submission filters are judging the submitted jobs, which can still be refused.
    #[serde(default)]
    pub is_judged: bool,
}

/// A step was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepAnswer {
    /// As in [`CommandAnswer`].
    pub sequence: Sequence,
    /// The run that it belongs to.
    pub run: RunId,
    /// The step.
    pub step: StepId,
}

/// Progress of a verification of the log. Each line of the answer has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyProgress {
    /// The last record checked.
    pub to: Sequence,
    /// The last record of the log when the verification began.
    pub head: Sequence,
    /// Whether the end was reached.
    pub complete: bool,
    /// Number of checkpoints so far with valid signature and digest.
    pub checkpoints: u64,
    /// Number of records at the end that no signature covers yet: those of the last second. Only on the last line.
    pub unsigned_records: u64,
    /// The time of the first unsigned record.
    pub unsigned_since: Option<Timestamp>,
    /// The first fault, if there is one. It ends the verification.
    pub fault: Option<String>,
    /// The kind of fault; left out if unknown because the verification could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_kind: Option<FaultKind>,
}

/// Why a request failed. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The kind of error, for programs.
    pub code: ErrorCode,
    /// What was wrong and what was expected, for people.
    pub message: String,
}

/// The kinds of error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// HTTP 400: the request cannot be parsed: not JSON, an unknown key or parameter, a value of the wrong type.
    Malformed,
    /// HTTP 401: the caller is not known: no token, or a wrong one.
    Unauthenticated,
    /// HTTP 403: the caller may not do this.
    PermissionDenied,
    /// HTTP 404: the request names something that does not exist.
    NotFound,
    /// HTTP 409: the request is not possible in the current state.
    Conflict,
    /// HTTP 413: the body is larger than the gateway takes.
    TooLarge,
    /// HTTP 422: the request can be parsed but makes no sense.
    Invalid,
    /// HTTP 429: a limit of the queue or cluster has been reached.
    LimitReached,
    /// HTTP 503: not now; the same request may succeed later. A command may have been executed: repeat it with the same
    /// `Idempotency-Key`.
    Unavailable,
    /// HTTP 507: the ledger cannot write: disk full or broken.
    StorageFailed,
    /// HTTP 409: the resources are in use at the moment; the same request may succeed once they are free.
    Busy,
}

impl ErrorCode {
    /// The HTTP status that goes with it.
    pub const fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthenticated => 401,
            Self::PermissionDenied => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::Invalid => 422,
            Self::LimitReached => 429,
            Self::Unavailable => 503,
            Self::StorageFailed => 507,
            Self::Busy => 409,
        }
    }
}

impl From<RefusalCode> for ErrorCode {
    fn from(code: RefusalCode) -> Self {
        match code {
            RefusalCode::Invalid => Self::Invalid,
            RefusalCode::NotFound => Self::NotFound,
            RefusalCode::PermissionDenied => Self::PermissionDenied,
            RefusalCode::Conflict => Self::Conflict,
            RefusalCode::LimitReached => Self::LimitReached,
            RefusalCode::StorageFailed => Self::StorageFailed,
            RefusalCode::Unavailable => Self::Unavailable,
            RefusalCode::Busy => Self::Busy,
        }
    }
}

impl From<Refusal> for ErrorBody {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.code.into(), message: refusal.message }
    }
}
