//! Shapes that the HTTP API shows and takes: the public JSON of jobs, runs, nodes and queues. Keys are stable: they
//! are only ever added.

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
    ConcludeRequest, KeepRequest, StepDetail, StepEndRequest, StepInputAnswer, StepLaunchRequest, StepNodeDetail,
    StepSignalRequest, StepTerminalRequest, StepsPage,
};
pub use timetable::*;

use crate::{
    cluster::QueueSpec,
    command::{FaultKind, JobSelection, Refusal, RefusalCode},
    event::{FurtherChange, JobChange, NodeExit, StopReason},
    filter::StagingSettings,
    ids::{JobId, RunId, Sequence, StepId},
    job::{ExitStatus, Holds, JobSpec, JobState, Launch, Outcome, Usage, WaitReason},
    plan::NodeClosure,
    resources::{IndexSet, NodeSpec},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::ToSchema;

/// How a job or a run came to its end, as one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeWord {
    /// Every process exited with 0.
    Completed,
    /// A process did not.
    Failed,
    /// It could not be started.
    LaunchFailed,
    /// Somebody cancelled it.
    Cancelled,
    /// Its walltime was over.
    TimedOut,
    /// It used more memory than it had asked for.
    OutOfMemory,
    /// It had to make room for another job.
    Preempted,
    /// One of its nodes was lost.
    NodeLost,
    /// Its deadline passed before it could start.
    DeadlineMissed,
    /// A job that it depends on ended in a way that can never satisfy it.
    DependencyNeverMet,
    /// It was put back into the queue: the run is over, the job is not.
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

/// How a job or a run came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeView {
    /// As one word.
    pub outcome: OutcomeWord,
    /// The first status that is not 0, by task rank; only of `failed`, and 0 of `completed`.
    pub exit_status: Option<ExitStatus>,
    /// Details for people: why it could not be launched, which node was lost and how, why it was refused.
    pub detail: Option<String>,
}

impl OutcomeView {
    /// The exit status of a command that waited for the job: that of the job, 1 if it has none and did not complete.
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
    /// The planner has not looked at it yet.
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
    /// As many tasks of its array run as may.
    ArrayLimit,
    /// A limit of queue, user, group or account is reached.
    Limit,
    /// Not enough is free.
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
    /// The external planner does not work.
    PlannerFailed,
    /// Its owner has not submitted it yet.
    Configuring,
    /// An answer of a filter, or of the check behind the filters, is outstanding.
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
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReasonView {
    /// As one word, for programs.
    pub code: ReasonWord,
    /// As a sentence, for people.
    pub text: String,
    /// The job that it waits for or that is ahead of it.
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
        };
        Self { code, text: reason.to_string(), job }
    }
}

/// A job, an array or a task of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobView {
    /// Its id.
    pub id: JobId,
    /// Its own number. Tasks of an array have one each, counted on from that of the array in the order of their indices; a
    /// task of an array that is older than such numbers has that of the array (SL-C-18).
    #[serde(default)]
    pub number: u64,
    /// Its name, for people.
    pub name: String,
    /// Login name of whose it is.
    pub owner: String,
    /// Its queue.
    pub queue: String,
    /// The account or project that is charged.
    pub account: Option<String>,
    /// Its service class (QOS).
    pub class: Option<String>,
    /// Higher goes first.
    pub priority: i64,
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
    /// It does not start before this.
    pub begin: Option<Timestamp>,
    /// When its latest run started.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The longest that it may run.
    pub walltime_seconds: Option<u64>,
    /// The nodes of its latest run, in order of rank; empty while it waits.
    pub nodes: Vec<String>,
    /// How many nodes it has, or while it waits the least that it asks for.
    pub node_count: u32,
    /// How many tasks it has, or while it waits the least that it asks for.
    pub tasks: u32,
    /// How many cores it has, or while it waits the least that it asks for.
    pub cores: u64,
    /// How many components it has: 1 for a plain job.
    pub components: u32,
    /// Its latest run.
    pub run: Option<RunId>,
    /// How many runs it has had.
    pub runs: u32,
    /// The advance reservation that it runs in.
    #[serde(default)]
    pub reservation: Option<String>,
    /// When it starts at the latest, if the planner has promised it; of an array its next task.
    #[serde(default)]
    pub slot_start: Option<Timestamp>,
    /// When it is thought to start, if it waits and that can be foreseen; of an array its next task.
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
}

impl JobView {
    /// Its own number; of a gateway that tells none, that of the job or array.
    pub fn own_number(&self) -> u64 {
        self.number.max(self.id.number)
    }

    /// Whether a number means it, or a component of it.
    pub fn has_number(&self, number: u64) -> bool {
        let own = self.own_number();
        number == self.id.number || (own..own + u64::from(self.components)).contains(&number)
    }

    /// Whether nobody has to wait any longer to know whether it is in the queue: submission filters and the check behind them
    /// have let it in or refused it.
    pub fn is_decided(&self) -> bool {
        let entry = self.filtering.as_ref().map(|filtering| filtering.entry);
        let is_on_its_way =
            matches!(entry, Some(EntryWord::Configuring | EntryWord::Filtering | EntryWord::Validating));
        self.outcome.is_some() || !is_on_its_way
    }
}

/// One component of a job that has several, with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ComponentView {
    /// Its queue.
    pub queue: String,
    /// The account or project that is charged.
    pub account: Option<String>,
    /// Its service class (QOS).
    pub class: Option<String>,
    /// Higher goes first.
    pub priority: i64,
    /// Its state: a component can end before the others do.
    pub state: JobState,
    /// Holds that are set on it.
    pub holds: Holds,
    /// How it ended, if it ended before the job did.
    pub outcome: Option<OutcomeView>,
    /// When, if it did.
    pub ended: Option<Timestamp>,
    /// It does not start before this.
    pub begin: Option<Timestamp>,
    /// The advance reservation that it runs in.
    pub reservation: Option<String>,
    /// The longest that it may run.
    pub walltime_seconds: Option<u64>,
    /// The nodes that it has or had in the latest run, in order of rank; empty while it waits.
    pub nodes: Vec<String>,
    /// How many nodes it has or had, or while it waits the least that it asks for.
    pub node_count: u32,
    /// How many tasks, in the same way.
    pub tasks: u32,
    /// How many cores, in the same way.
    pub cores: u64,
    /// When it is thought to start, if it waits and that can be foreseen: components of one job can be foreseen at different
    /// times (SL-P-12).
    #[serde(default)]
    pub expected_start: Option<Timestamp>,
    /// The nodes that it is thought to have then, as far as a plan says so.
    #[serde(default)]
    pub planned_nodes: Vec<String>,
}

/// The progress of the tasks of an array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArrayView {
    /// How many tasks it has in all.
    pub total: u64,
    /// The indices that have not started.
    pub remaining: IndexSet,
    /// How many have not started.
    pub waiting: u64,
    /// How many have started and not ended.
    pub running: u64,
    /// How many have ended, by outcome.
    pub finished: BTreeMap<OutcomeWord, u64>,
    /// Maximum number that run at a time.
    pub max_running: Option<u32>,
    /// The tasks that are over without ever having started, by how they ended.
    #[serde(default)]
    pub never_started: BTreeMap<OutcomeWord, IndexSet>,
    /// All tasks that have their own numbers, in the order of these: all that it has, or none if it is older than
    /// such numbers.
    #[serde(default)]
    pub numbered: IndexSet,
    /// The tasks that have not started and are held singly, together by their holds.
    #[serde(default)]
    pub held: Vec<HeldTasksView>,
}

/// Tasks of an array that are held in the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldTasksView {
    /// Which.
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
    /// Where it is or was.
    pub nodes: Vec<RunNodeView>,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// When its processes ran on all its nodes.
    pub started: Option<Timestamp>,
    /// When the last of them was gone.
    pub ended: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<OutcomeView>,
    /// Its usage on all nodes; 0 until it has ended.
    pub usage: Usage,
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
    /// How many tasks run there.
    pub tasks: u32,
    /// Whether the node serves no other job meanwhile.
    pub exclusive: bool,
    /// How it ended there, if it has.
    pub exit: Option<NodeExit>,
}

/// All that is known of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDetail {
    /// The job as in lists.
    pub job: JobView,
    /// As it was submitted, defaults filled in. Others than the owner and operators do not see script, arguments,
    /// environment, notifications and attributes.
    pub spec: JobSpec,
    /// Whether parts of `spec` were left out.
    pub redacted: bool,
    /// Its runs, oldest first. An array has none; ask for its tasks.
    pub runs: Vec<RunView>,
    /// Its tasks, if it is a list of them. Their commands are in its description.
    #[serde(default)]
    pub tasks: Vec<TaskView>,
    /// Who cancelled it or a component of it, oldest first. Empty for an array; ask for its tasks.
    #[serde(default)]
    pub cancels: Vec<CancelView>,
    /// The state of each of its dependencies, by component, in the places that they have in `spec`. Empty if it has
    /// none.
    #[serde(default)]
    pub dependencies: Vec<Vec<Vec<DependencyWord>>>,
}

/// The state of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DependencyWord {
    /// It may still be met.
    Unmet,
    /// Its event has happened, and its delay lasts.
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
    /// The run that was stopped; `null` if the job waited.
    pub run: Option<RunId>,
    /// Only this component, from 0; `null` means the whole job.
    pub component: Option<u32>,
    /// The login name of the user who did.
    pub user: String,
    /// The number of that user.
    pub uid: u32,
}

/// A page of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobsPage {
    /// In order of their ids.
    pub jobs: Vec<JobView>,
    /// Ask for `after=` this to get the next page; `null` on the last.
    pub next: Option<JobId>,
    /// Each job is as after this record, or on a long page as after one shortly behind it.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}

/// Several jobs with what lists show of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDetailsPage {
    /// In order of their ids, without the texts of scripts, environments and notifications. Jobs that there are none of
    /// are left out.
    pub jobs: Vec<JobDetail>,
    /// The steps of these jobs, if they were asked for, in the order of the jobs.
    pub steps: Vec<StepDetail>,
    /// The state is at least as after this record.
    pub sequence: Sequence,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// Its specification.
    pub spec: NodeSpec,
    /// Whether it serves.
    pub state: NodeStateWord,
    /// Why it is drained or lost, for people.
    pub reason: Option<String>,
    /// Cores that jobs have.
    pub cores_used: u32,
    /// Memory that jobs have.
    pub memory_used_bytes: u64,
    /// GPUs that jobs have.
    pub gpus_used: u32,
    /// Jobs that have resources of it.
    pub jobs: Vec<JobId>,
    /// An operator took it down; else it is drained, if it is out of service.
    #[serde(default)]
    pub is_down: bool,
    /// Who took it out of service, if that was recorded.
    #[serde(default)]
    pub taken_out_by: Option<String>,
    /// Since when it is out of service, as far as it is known.
    #[serde(default)]
    pub taken_out: Option<Timestamp>,
    /// Times in which it serves no jobs, in their order.
    #[serde(default)]
    pub closures: Vec<NodeClosure>,
    /// Advance reservations that have it, by name.
    #[serde(default)]
    pub reservations: Vec<String>,
}

/// Whether a node serves.
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
    /// The state is as after this record.
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
    /// Jobs that wait for resources; tasks of arrays are counted singly.
    pub queued: u64,
    /// Jobs with a gate shut; tasks of arrays are counted singly.
    pub held: u64,
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
    /// The state is as after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}

/// A persistent buffer, which every job can use that names it (SL-B-02).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BufferView {
    /// Its name.
    pub name: String,
    /// Login name of whose job made it.
    pub owner: String,
    /// The job that made it.
    pub job: JobId,
    /// When.
    pub created: Timestamp,
}

/// A floating licence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LicenceView {
    /// Its name.
    pub name: String,
    /// How many there are.
    pub total: u32,
    /// How many jobs have.
    pub used: u32,
}

/// The identity and state of this system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InfoView {
    /// The gateway's version.
    pub version: String,
    /// The cluster's name.
    pub cluster: String,
    /// Tells its log from every other: a UUID. Empty before the first record.
    pub cluster_id: String,
    /// The state is as after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
    /// The last durable record of the ledger; `null` while the ledger does not answer.
    pub head: Option<Sequence>,
    /// The first record that has not been archived; `null` while the ledger does not answer.
    pub first: Option<Sequence>,
    /// Hash of the last durable record, in hex; `null` while the ledger does not answer.
    pub head_hash: Option<String>,
    /// How many jobs are in each state; tasks of arrays are counted singly.
    pub jobs: BTreeMap<JobState, u64>,
    /// How many nodes are in each state.
    pub nodes: BTreeMap<NodeStateWord, u64>,
    /// The login name that the gateway takes the caller for.
    pub caller: String,
    /// Settings that commands of dialects go by, as this gateway's configuration has them: by dialect and name.
    #[serde(default)]
    pub dialects: BTreeMap<String, BTreeMap<String, String>>,
    /// The number that the next job gets.
    #[serde(default)]
    pub next_job_number: u64,
}

/// Jobs to submit: all are accepted, or none.
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
    /// Which.
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
    /// Why, for people.
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
    /// Hold them there.
    #[serde(default)]
    pub hold: bool,
    /// They do not start again before this many seconds have passed.
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
    #[serde(default)]
    pub change: JobChange,
    /// Further changes.
    #[serde(default)]
    pub further: FurtherChange,
}

/// A message to running jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TellRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// What.
    pub text: String,
}

/// A refusal by a program itself (SL-L-10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RefusalNote {
    /// The request, such as the program's name; 1 to 64 bytes without control characters.
    pub what: String,
    /// Why it is not done, for people; 1 to 1,024 bytes.
    pub why: String,
}

impl RefusalNote {
    /// Bytes of what was asked for, at most.
    pub const MOST_WHAT_BYTES: usize = 64;
    /// Bytes of why it is not done, at most: of a longer message the ledger records as much.
    pub const MOST_WHY_BYTES: usize = 1_024;
}

/// Nodes that should take no new jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainRequest {
    /// Their names.
    pub nodes: Vec<String>,
    /// Why, for people.
    #[serde(default)]
    pub reason: String,
    /// They are down: what runs on them is stopped, as if they were lost.
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

/// A step to start inside a running job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StepRequest {
    /// Its launch; its program must be `tasks`.
    pub launch: Launch,
    /// How many tasks; left out, as many as the job has.
    #[serde(default)]
    pub tasks: Option<u32>,
    /// On how many of the job's nodes; left out, all that the tasks need.
    #[serde(default)]
    pub nodes: Option<u32>,
}

/// The result of a command. It is on the ledger's disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandAnswer {
    /// Queries that name it as `wait_seq` see what the command did; on this gateway every later query does.
    pub sequence: Sequence,
    /// Jobs submitted, in the order given, or jobs that the command was about.
    pub jobs: Vec<JobId>,
    /// Whether submission filters judge what was submitted: it can still be refused.
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

/// The state of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    /// The run that it belongs to.
    pub run: RunId,
    /// The step.
    pub step: StepId,
    /// Whether all its processes are gone.
    pub ended: bool,
    /// The first status that is not 0, else 0; `null` while it runs, and if no process of it could be started.
    pub exit_status: Option<ExitStatus>,
    /// Why it ended where it did not end by itself, node by node, for people.
    pub detail: Option<String>,
}

/// How far the verification of the log has come. One is sent per line of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VerifyProgress {
    /// The last record checked.
    pub to: Sequence,
    /// The last record of the log when the verification began.
    pub head: Sequence,
    /// Whether the end was reached.
    pub complete: bool,
    /// Checkpoints so far whose signature and digest hold.
    pub checkpoints: u64,
    /// How many records at the end no signature covers yet: those of the last second. Told with the last line.
    pub unsigned_records: u64,
    /// The time of the first of them.
    pub unsigned_since: Option<Timestamp>,
    /// The first fault, if there is one. It ends the verification.
    pub fault: Option<String>,
    /// The kind of fault; left out if it is not known, because the verification could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_kind: Option<FaultKind>,
}

/// Why a request was not done. Nothing changed.
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
    /// HTTP 400: it cannot be read: not JSON, an unknown key or parameter, a value of the wrong type.
    Malformed,
    /// HTTP 401: the caller is not known: no token, or a wrong one.
    Unauthenticated,
    /// HTTP 403: the caller may not do this.
    PermissionDenied,
    /// HTTP 404: it names something that does not exist.
    NotFound,
    /// HTTP 409: it is not possible in the present state.
    Conflict,
    /// HTTP 413: the body is larger than the gateway takes.
    TooLarge,
    /// HTTP 422: it can be read, and makes no sense.
    Invalid,
    /// HTTP 429: a limit of the queue or cluster has been reached.
    LimitReached,
    /// HTTP 503: not now; the same request may succeed later. A command may have been done: repeat it with the same
    /// `Idempotency-Key`.
    Unavailable,
    /// HTTP 507: the ledger cannot write: disk full or broken.
    StorageFailed,
    /// HTTP 409: others use the resources at the moment; the same request may succeed as soon as they have ended.
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
