//! The job model that every dialect translates to.
//!
//! ```text
//! Job         = owner, name, environment, notifications, array, 1..n components
//! Component   = queue, account, priority, gates, launch, 1..n alternatives
//! Alternative = requests over the resource tree + walltime + licences
//! ```

use crate::{
    copies::FileCopies,
    ids::JobId,
    resources::{Alternative, IndexSet},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::ToSchema;

/// Whether only operators set an attribute of this name: it says what they note about a job.
pub fn is_of_operators(attribute: &str) -> bool {
    attribute.rsplit('.').next() == Some("admin-comment")
}

/// A submission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobSpec {
    /// Its name, for people; at most 1,024 bytes. Empty means the script's file name, or `job`.
    pub name: String,
    /// One for a plain job. Several start together or not at all.
    pub components: Vec<Component>,
    /// Makes it an array: one task for each index, each like a separate job.
    pub array: Option<ArraySpec>,
    /// The submitter's working directory.
    pub working_directory: String,
    /// The environment of the job's processes, before muster's own variables are added.
    pub environment: BTreeMap<String, String>,
    /// File mode creation mask of the job's processes.
    pub umask: Option<u32>,
    /// Notifications to send, with their occasions.
    pub notifications: Vec<Notification>,
    /// Asks the job to save its state before it is stopped.
    pub checkpoint: Option<Checkpoint>,
    /// When muster may restart the job on its own.
    pub requeue: RequeuePolicy,
    /// Kinds of job with special rules.
    pub types: Vec<JobType>,
    /// Values that the model has no field for and that a dialect wants back unchanged, by `dialect.name`.
    pub attributes: BTreeMap<String, String>,
    /// The dialect whose command or description it was submitted with; `None` for muster's own. It never changes. A service
    /// that does not know the name treats the job as one of muster's own.
    pub dialect: Option<String>,
    /// What to stage in for components before the job starts, and to stage out after it ends (SL-B-01). Only shown if
    /// the cluster has no staging program.
    pub staging: Vec<ComponentStaging>,
    /// Whether the job is cancelled as soon as a dependency can never be met; for an array, only the tasks concerned
    /// (SL-C-19).
    pub cancelled_if_never_met: bool,
    /// Files that its node copies before it starts and after it has ended (PBS-G-01); for an array, those of each task.
    pub copies: FileCopies,
    /// The kinds of job that quotas count it as, in the order in which their rules are tried; at most 100.
    pub kinds: Vec<String>,
    /// Whether quotas do not hold it back. It counts for others. Only operators may set this (OAR-Q-09).
    pub exceeds_quotas: bool,
    /// The group of its processes, by name; `None` for the first one of its owner. Each node requires that the owner is in it
    /// there.
    pub group: Option<String>,
}

/// A part of a job with its own launch and request. Everything that decides when and where it runs is kept by
/// component (SL-S-02); the rest is kept by job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Component {
    /// The queue (partition, pool); `None` means the cluster's default queue. The ledger fills it in.
    pub queue: Option<String>,
    /// The account or project that is charged; `None` means the owner's own.
    pub account: Option<String>,
    /// The service class (QOS).
    pub class: Option<String>,
    /// A higher priority goes first. `None` means the queue's default.
    pub priority: Option<i64>,
    /// Earliest start time.
    pub begin: Option<Timestamp>,
    /// The job is not started if it could not end by this time.
    pub deadline: Option<Timestamp>,
    /// Conditions for its start.
    pub dependencies: Dependencies,
    /// Holds set at submission.
    pub holds: Holds,
    /// The name of the reservation it runs in.
    pub reservation: Option<String>,
    /// Its launch.
    pub launch: Launch,
    /// Acceptable requests, in the order in which they are tried. Empty means one default alternative.
    pub alternatives: Vec<Alternative>,
}

/// The tasks of an array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// One task for each index; 1 to 10,000,000 tasks.
    pub indices: IndexSet,
    /// Maximum number of tasks that run at a time.
    #[serde(default)]
    pub max_running: Option<u32>,
}

/// The launch of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Launch {
    /// The program.
    pub program: Program,
    /// Standard output: a path with the patterns `%j %J %a %A %x %N %t %u`; `None` means `muster-%j.out`
    /// (`muster-%A_%a.out` for a task of an array) in the working directory.
    pub stdout: Option<String>,
    /// Standard error; `None` means the same as standard output.
    pub stderr: Option<String>,
    /// Standard input; `None` means `/dev/null`.
    pub stdin: Option<String>,
    /// Whether to append to existing output files instead of truncating them.
    pub append_output: bool,
    /// Signal sent this long before the walltime ends: to a script only, since it knows what it has started, otherwise
    /// to all processes.
    pub warning: Option<WarningSignal>,
    /// Time from SIGTERM to SIGKILL, in seconds; `None` means the cluster's setting.
    pub kill_grace_seconds: Option<u32>,
    /// The image of the container that each of its processes runs in: the absolute path of an OCI bundle or of an image
    /// file, or a name that the nodes' container runtime understands; at most 4,096 bytes, and it does not begin with
    /// `-`. `None`: no container.
    pub container: Option<String>,
    /// Files that are brought to its folder on a node whose agent asks for its orders (OAR-K-07); elsewhere they have no
    /// effect.
    pub stage_in: Option<StageIn>,
}

/// An archive that a gateway keeps for a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StageIn {
    /// The BLAKE3 hash of its bytes, in 64 hexadecimal digits.
    pub sum: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Whether it is compressed by gzip; otherwise it is a plain archive of tar.
    pub is_gzip: bool,
}

/// The image of a container as its nodes understand it: a path that begins with `.` is one of the folder of the caller.
/// Other words are left alone, because they can be names.
pub fn image_from(folder: &str, image: &str) -> String {
    match image.split('/').next() {
        Some("." | "..") => {
            let image = image.strip_prefix("./").unwrap_or(image);
            format!("{}/{image}", folder.trim_end_matches('/'))
        }
        _ => image.to_owned(),
    }
}

/// The program of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// Nothing: the component only holds resources, for steps that are started from another component.
    #[default]
    None,
    /// A script that runs once, on the lead node.
    Script {
        /// The text. The first line names the interpreter (`#!`).
        text: String,
        /// Its arguments, without its own name.
        args: Vec<String>,
    },
    /// A command that runs once for each task, on the task's node.
    Tasks {
        /// The command and its arguments.
        argv: Vec<String>,
    },
}

/// A signal before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WarningSignal {
    /// The signal's number, 1 to 64.
    pub signal: u8,
    /// Time before the end, in seconds.
    pub seconds_before_end: u32,
}

/// Conditions for the start of a component. The groups can be met in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dependencies {
    /// Each group is met when one of its conditions is; all groups must be met.
    pub all_of: Vec<Vec<Dependency>>,
}

/// One condition on another job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// The event to wait for.
    pub kind: DependencyKind,
    /// The other job or array; not used for [`DependencyKind::Singleton`] and [`DependencyKind::Count`].
    #[serde(default)]
    pub job: Option<JobId>,
    /// Delay after the event, in seconds.
    #[serde(default)]
    pub delay_seconds: u32,
}

/// The event of another job that a dependency waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DependencyKind {
    /// It has started, or ended without ever starting (`after`).
    Started,
    /// It has ended, with any outcome (`afterany`).
    Ended,
    /// It has ended successfully (`afterok`).
    Succeeded,
    /// It has ended unsuccessfully (`afternotok`).
    Failed,
    /// The task of the other array with the same index has ended successfully (`aftercorr`).
    SameIndexSucceeded,
    /// No earlier job of the same owner and name is waiting or running (`singleton`).
    Singleton,
    /// The other job may start only after this one has started. Submission turns this into a condition of the other job
    /// and keeps it here for display; it never delays this job.
    BeforeStarted,
    /// As above, `beforeany`.
    BeforeEnded,
    /// As above, `beforeok`.
    BeforeSucceeded,
    /// As above, `beforenotok`.
    BeforeFailed,
    /// This many `Before...` dependencies that other jobs have on this one must be met.
    Count(u32),
    /// It is running now.
    Running,
    /// It has ended, and not because its program failed: it ended successfully, or something else ended it or kept it from
    /// running (OAR-D-04).
    NotFailed,
}

/// Holds that keep a job from starting until somebody releases them. Several can be set at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Holds {
    /// Set and released by the owner.
    pub user: bool,
    /// Set and released by an operator.
    pub operator: bool,
    /// Set by muster or an administrator, released by an administrator.
    pub system: bool,
}

impl Holds {
    /// Whether none is set.
    pub const fn is_empty(self) -> bool {
        !self.user && !self.operator && !self.system
    }

    /// The holds that are set in either.
    pub const fn union(self, other: Self) -> Self {
        Self {
            user: self.user || other.user,
            operator: self.operator || other.operator,
            system: self.system || other.system,
        }
    }

    /// The holds that are set here and not in the other.
    pub const fn without(self, other: Self) -> Self {
        Self {
            user: self.user && !other.user,
            operator: self.operator && !other.operator,
            system: self.system && !other.system,
        }
    }
}

/// A notification: its receiver and its occasions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Notification {
    /// The occasions; empty means start and end.
    #[serde(default)]
    pub on: Vec<Occasion>,
    /// Where to send it.
    pub sink: Sink,
    /// Whether a cancellation is reported as an end instead of a failure.
    #[serde(default)]
    pub spares_cancelled: bool,
}

/// An occasion for a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Occasion {
    /// A run has started.
    Started,
    /// The job has ended, with any outcome.
    Ended,
    /// The job has ended unsuccessfully.
    Failed,
    /// The job was put back into the queue.
    Requeued,
    /// The job was suspended or continues.
    Suspended,
    /// The job was held or released.
    Held,
    /// The job has reached its walltime and is being ended.
    WalltimeOver,
    /// Not an occasion: notify about each task of an array instead of the array as a whole.
    EachTask,
    /// Somebody has asked for the end of the job.
    EndAsked,
}

/// Where a notification goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sink {
    /// Mail to this address.
    Mail(String),
    /// A command, run by the shell as the job's owner.
    Exec(String),
}

/// Asks the job to save its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The signal's number, 1 to 64.
    pub signal: u8,
    /// Time before the end of the walltime, in seconds. The signal is also sent before a preemption.
    pub seconds_before_end: u32,
}

/// When muster may restart a job on its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequeuePolicy {
    /// After a node was lost.
    pub on_node_lost: bool,
    /// After one of these exit codes.
    pub on_exit_codes: Vec<i32>,
    /// Maximum number of runs in total. Runs that made way for another job do not end it.
    pub max_runs: u32,
    /// An exit code only counts if the run lasted longer than this, in seconds (OAR-T-31).
    pub exit_codes_after_seconds: u32,
    /// After a run that a node was lost for, or kept from starting, before a process of the job had begun, if the job has had no
    /// more runs than this (OAR-J-20).
    pub unbegun_runs: u32,
}

impl Default for RequeuePolicy {
    fn default() -> Self {
        Self {
            on_node_lost: false,
            on_exit_codes: Vec::new(),
            max_runs: 10,
            exit_codes_after_seconds: 0,
            unbegun_runs: 0,
        }
    }
}

/// A kind of job with special rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobType {
    /// May be stopped whenever another job needs its resources. It is requeued if `requeue`, otherwise cancelled.
    BestEffort {
        /// Whether to requeue it instead of cancelling it.
        requeue: bool,
    },
    /// Opens a planning domain that is called like its number: other jobs run on its resources.
    Container,
    /// Runs inside the planning domain of this job.
    Inner(JobId),
    /// May share its resources with other timesharing jobs of the same keys.
    Timesharing {
        /// Only with jobs of the same user.
        same_user: bool,
        /// Only with jobs of the same name.
        same_name: bool,
    },
    /// Keeps a place for jobs that hold the label.
    Placeholder(String),
    /// May overlap placeholders of the label.
    Allowed(String),
    /// Holds resources and starts nothing.
    Noop,
    /// Starts on this front host instead of on its nodes.
    FrontHost(String),
    /// Starts at its begin time. The first plan after its submission promises it resources from then on, or it ends
    /// without ever running. A late start makes it shorter: it ends when it was to end.
    FixedStart,
    /// Opens the planning domain with this name. Several jobs can: the domain has the resources of all of them.
    OpensDomain(String),
    /// Runs inside the planning domain with this name.
    InDomain(String),
    /// Its launches describe its nodes, for a file about them.
    DescribesNodes,
    /// Leaves its nodes alone: only the first one gets orders, which runs the script. The others are held, may restart, and can
    /// be lost without an effect on the job.
    HandsOff,
    /// It leaves nodes asleep that it does not use itself (OAR-T-71). Only together with `HandsOff`, for jobs
    /// of several components.
    LeavesAsleep,
    /// Takes the place of this job of the same owner, which has ended: jobs that wait for that one wait for it instead, from its
    /// submission on (OAR-D-05).
    TakesPlaceOf(JobId),
}

/// The staging of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ComponentStaging {
    /// The component's index, from 0; each may appear only once.
    pub component: u32,
    /// The instructions, in the language of the staging program; 1 to 1,000 lines.
    pub directives: Vec<String>,
    /// Persistent buffers to create at stage-in (SL-B-02).
    pub creates: Vec<String>,
    /// Persistent buffers that must exist.
    pub uses: Vec<String>,
    /// Persistent buffers to remove at stage-in.
    pub destroys: Vec<String>,
}

impl ComponentStaging {
    /// The same for everybody: directives name files of the owner.
    #[must_use]
    pub fn without_directives(&self) -> Self {
        Self { directives: Vec::new(), ..self.clone() }
    }
}

/// How a process or a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitStatus {
    /// It exited with this code, 0 to 255.
    Code(u8),
    /// This signal ended it.
    Signal(u8),
}

impl ExitStatus {
    /// Whether it exited with 0.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }

    /// The code that a shell would show: 128 + the signal's number for a signal.
    pub const fn shell_code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// How a job, or one of its runs, ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every process exited with 0.
    Completed,
    /// A process did not exit with 0: the first such status, by task rank.
    Failed(ExitStatus),
    /// It could not be started: why.
    LaunchFailed(String),
    /// Somebody cancelled it.
    Cancelled,
    /// It reached its walltime.
    TimedOut,
    /// It used more memory than it had requested.
    OutOfMemory,
    /// It had to make room for another job.
    Preempted,
    /// One of its nodes, or the processes there, were lost: which, and how.
    NodeLost(String),
    /// Its deadline passed before it could start.
    DeadlineMissed,
    /// A job that it depends on ended in a way that can never satisfy it.
    DependencyNeverMet,
    /// It was requeued on request: the run is over, the job is not.
    Requeued,
    /// A filter, a template or a check refused it: the code in brackets, and why (HPC-J-04).
    Refused(String),
    /// Somebody declared it finished while it ran.
    DeclaredFinished,
}

impl Outcome {
    /// The word for it in tables, filters and JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::LaunchFailed(_) => "launch_failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::OutOfMemory => "out_of_memory",
            Self::Preempted => "preempted",
            Self::NodeLost(_) => "node_lost",
            Self::DeadlineMissed => "deadline_missed",
            Self::DependencyNeverMet => "dependency_never_met",
            Self::Requeued => "requeued",
            Self::Refused(_) => "refused",
            Self::DeclaredFinished => "declared_finished",
        }
    }

    /// Whether jobs that depend on its success may continue.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Completed | Self::DeclaredFinished)
    }
}

/// The usage of a run on a node, or on all its nodes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Processor time, user and system, in microseconds.
    pub cpu_time_micros: u64,
    /// Peak resident memory; for several nodes, the sum of their peaks.
    pub peak_memory_bytes: u64,
    /// The part of the processor time that the kernel used, in microseconds; 0 where it is not measured apart.
    #[serde(default)]
    pub system_time_micros: u64,
}

impl Usage {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_time_micros: self.cpu_time_micros.saturating_add(other.cpu_time_micros),
            peak_memory_bytes: self.peak_memory_bytes.saturating_add(other.peak_memory_bytes),
            system_time_micros: self.system_time_micros.saturating_add(other.system_time_micros),
        }
    }

    /// The part of the processor time that programs used themselves, in microseconds.
    pub fn user_time_micros(self) -> u64 {
        self.cpu_time_micros.saturating_sub(self.system_time_micros)
    }
}

/// The state of a job, as one word. A task of an array and the array itself have one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// A gate is closed: a hold, a dependency, a begin time, a stopped queue.
    Held,
    /// All gates are open; it waits for resources.
    Queued,
    /// It has its resources; its processes are being started.
    Launching,
    /// Its processes run.
    Running,
    /// Its processes are stopped.
    Suspended,
    /// It is being stopped or cleaned up.
    Finishing,
    /// It is over.
    Finished,
}

impl JobState {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 7] =
        [Self::Held, Self::Queued, Self::Launching, Self::Running, Self::Suspended, Self::Finishing, Self::Finished];

    /// The word for it in tables, filters and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Queued => "queued",
            Self::Launching => "launching",
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Finishing => "finishing",
            Self::Finished => "finished",
        }
    }
}

/// Who set a timed hold.
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

/// Why a waiting job has not been started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// The planner has not considered it yet.
    NotPlannedYet,
    /// The owner, an operator or the system holds it.
    Held(Holds),
    /// Its begin time has not come.
    BeginTime(Timestamp),
    /// It waits for this job.
    Dependency(JobId),
    /// It waits for a job whose end can never satisfy it.
    DependencyNeverMet(JobId),
    /// Its queue is not starting jobs.
    QueueStopped,
    /// Its array has reached its limit of running tasks.
    ArrayLimit,
    /// A limit of the queue, user, group or account is reached: which one.
    Limit(String),
    /// Not enough resources are free: which ones.
    Resources(String),
    /// It would fit, but this job is ahead of it in the queue.
    BehindJob(JobId),
    /// Nodes that it needs are drained or lost.
    NodesUnavailable(String),
    /// The cluster as configured can never serve it: why.
    NeverFits(String),
    /// An earlier job of the same owner and name has not ended.
    Namesake,
    /// Jobs announced ahead of it have not been submitted yet.
    Announced,
    /// It was promised a start.
    Reserved {
        /// The latest start.
        start: Timestamp,
    },
    /// It fits now, but would delay this job, which was promised a start.
    WouldDelay(JobId),
    /// Its advance reservation no longer exists.
    ReservationGone(String),
    /// Its advance reservation has not begun.
    ReservationNotBegun(String),
    /// The reason that an external planner gave.
    ExternalPlanner(String),
    /// The external planner has failed, and nothing starts until it works again: what happened.
    PlannerFailed(String),
    /// Its owner has not submitted it yet.
    Configuring,
    /// A filter, or the check after the filters, has not answered yet: which one.
    FilterPending(String),
    /// An activation filter said "not now": which one.
    ActivationFilter(String),
    /// The activation filter of this job keeps all jobs of its priority and below from starting.
    BlockedByJob(JobId),
    /// It is held until a time.
    HeldUntil {
        /// When the hold ends.
        until: Timestamp,
        /// Who set the hold.
        by: HoldBy,
    },
    /// A component is being staged in, or will be: which one (SL-B-08).
    StagingIn(u32),
    /// It needs a persistent buffer that does not exist (SL-B-02).
    BufferMissing(String),
    /// Staging in failed, and the job is held: why staging failed.
    StagingFailed(String),
    /// The planner is switched off (PBS-C-03).
    PlannerOff,
    /// No job runs that holds resources for its planning domain: which domain.
    DomainNotOpen(String),
    /// It could start, but on nodes in more groups than it wants (SL-C-12).
    FewGroups {
        /// From then on it takes them.
        until: Timestamp,
    },
    /// Its queue starts no jobs, and has not passed it on to another one yet.
    NotPassedOn,
    /// The last pass of the planner came to its time limit before it came to this job (OAR-G-09).
    LeftOut,
}

impl WaitReason {
    /// That staging in failed, without the reason.
    pub const STAGING_FAILED: &str = "staging in failed";
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPlannedYet => f.write_str("not looked at by the planner yet"),
            Self::Held(holds) => {
                let names = [(holds.user, "user"), (holds.operator, "operator"), (holds.system, "system")];
                let set: Vec<&str> = names.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
                write!(f, "held by {}", set.join(" and "))
            }
            Self::BeginTime(time) => write!(f, "not before {time}"),
            Self::Dependency(job) => write!(f, "waits for job {job}"),
            Self::DependencyNeverMet(job) => write!(f, "waits for job {job}, which can no longer satisfy it"),
            Self::QueueStopped => f.write_str("its queue is stopped"),
            Self::PlannerOff => f.write_str("the planner is switched off"),
            Self::ArrayLimit => f.write_str("array limit reached"),
            Self::Limit(limit) => write!(f, "limit reached: {limit}"),
            Self::Resources(what) => write!(f, "not enough free: {what}"),
            Self::BehindJob(job) => write!(f, "job {job} is ahead of it"),
            Self::NodesUnavailable(which) => write!(f, "nodes not available: {which}"),
            Self::NeverFits(why) => write!(f, "never fits: {why}"),
            Self::Namesake => f.write_str("an earlier job of the same owner and name has not ended"),
            Self::Announced => f.write_str("jobs announced ahead of it have not been submitted yet"),
            Self::Reserved { start } => write!(f, "has a reservation from {start}"),
            Self::WouldDelay(job) => write!(f, "it fits now but would delay job {job}, which has a reservation"),
            Self::ReservationGone(name) => write!(f, "its reservation `{name}` no longer exists"),
            Self::ReservationNotBegun(name) => write!(f, "its reservation `{name}` has not begun"),
            Self::ExternalPlanner(text) => f.write_str(text),
            Self::PlannerFailed(what) => write!(f, "external planner: {what}"),
            Self::Configuring => f.write_str("its owner has not submitted it yet"),
            Self::FilterPending(filter) => write!(f, "waits for {filter} to answer"),
            Self::ActivationFilter(filter) => write!(f, "activation filter '{filter}' said not now"),
            Self::BlockedByJob(job) => write!(f, "the activation filter of job {job} keeps it from starting"),
            Self::HeldUntil { until, by } => {
                let whom = match by {
                    HoldBy::User => "its owner",
                    HoldBy::Administrator => "an administrator",
                    HoldBy::Filter => "an activation filter",
                };
                write!(f, "held until {until} by {whom}")
            }
            Self::StagingIn(component) => write!(f, "component {component} is being staged in"),
            Self::BufferMissing(name) => write!(f, "the persistent buffer `{name}` does not exist"),
            Self::StagingFailed(why) => write!(f, "{}: {why}", Self::STAGING_FAILED),
            Self::DomainNotOpen(name) => write!(f, "no job runs that holds resources for planning domain {name}"),
            Self::FewGroups { until } => write!(f, "waits until {until} for nodes that are closer together"),
            Self::LeftOut => {
                f.write_str("the last pass of the planner came to its time limit before it came to this job")
            }
            Self::NotPassedOn => f.write_str("its queue has not passed it on to another one yet"),
        }
    }
}
