//! Descriptions of jobs, templates and filters, and jobs that are lists of tasks.

use crate::{
    command::{JobEnding, JobSelection},
    event::{HoldBy, Intake},
    filter::{ChainVerdict, FilterAction, FilterKind, FilterSettings, JobDocument, JobWarning, TemplateSpec},
    ids::Sequence,
    job::JobSpec,
    resources::Alternative,
    scheduling::SchedulingSettings,
    tasks::{SizeUnit, TaskKind, TaskList},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How far a job is on its way into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryWord {
    /// Its owner is still making it.
    Configuring,
    /// Submission filters judge it.
    Filtering,
    /// The check behind the filters judges it.
    Validating,
    /// It is in the queue, or has been.
    Entered,
    /// It was refused on the way.
    Refused,
}

/// How filters, a template or a timed hold affect a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilteringView {
    /// The template that it names.
    pub template: Option<String>,
    /// The revision of the template that it was checked against, if it was.
    pub template_revision: Option<u64>,
    /// How far it is on its way into the queue.
    pub entry: EntryWord,
    /// Until when it is held.
    pub hold_until: Option<Timestamp>,
    /// Whose hold that is.
    pub hold_by: Option<HoldBy>,
    /// Whether its run went around a job that waited.
    pub is_backfill: bool,
    /// A message about it, from a filter or from the person who ended it.
    pub message: Option<String>,
    /// Warnings that people should see.
    pub warnings: Vec<JobWarning>,
    /// The chain of filters that is under way.
    pub chain: Option<ChainView>,
    /// The last activation chain that did not pass.
    pub refusal: Option<RefusalView>,
    /// Nodes that have something kept for it while it waits.
    pub kept_nodes: Vec<String>,
}

/// A chain of filters that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainView {
    /// Its number among the chains of the cluster.
    pub number: u64,
    /// The kind of filter.
    pub kind: FilterKind,
    /// The names of its filters, in the order in which they are called.
    pub filters: Vec<String>,
    /// The place of the filter whose answer is outstanding, from 0; one behind the last is the check behind them.
    pub position: Option<u32>,
    /// The action that the filter is called for.
    pub action: Option<FilterAction>,
    /// Which attempt that call is, from 1.
    pub attempt: Option<u32>,
    /// The runner that has that call.
    pub runner: Option<String>,
    /// How it ended, if it did not pass: filters that had passed are being rolled back.
    pub failure: Option<ChainVerdict>,
}

/// An activation chain that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusalView {
    /// When.
    pub at: Timestamp,
    /// The meaning of the outcome.
    pub verdict: ChainVerdict,
    /// The filter that ended it.
    pub filter: String,
    /// Not before then are the filters asked again.
    pub ask_again: Timestamp,
}

/// The possible and present size of a list of tasks, and the states of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ElasticView {
    /// The unit that sizes count.
    pub unit: SizeUnit,
    /// The least that it runs on.
    pub min: u32,
    /// The greatest that it grows to.
    pub max: u32,
    /// Its present holdings; 0 while it waits.
    pub current: u32,
    /// Running jobs grow by preemption, as is set, but it does not: it has activation filters.
    #[serde(default)]
    pub filters_bar_preemption: bool,
    /// Instances of its tasks. Of tasks that run by node or for ever only those that have started are counted.
    pub instances: InstancesView,
}

/// The states of instances of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstancesView {
    /// Waiting.
    pub queued: u64,
    /// Running.
    pub running: u64,
    /// Ended well.
    pub finished: u64,
    /// Ended otherwise.
    pub failed: u64,
    /// Never ran and never will.
    pub cancelled: u64,
}

/// A task of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Its place in the list, from 0.
    pub task: u32,
    /// How often and when it runs.
    pub kind: TaskKind,
    /// The least that an instance of it needs, in the job's unit.
    pub min: u32,
    /// The greatest that an instance of it can use.
    pub max: u32,
    /// The tasks that must have ended before, by their places, from 0.
    pub after: Vec<u32>,
    /// The states of its instances.
    pub instances: InstancesView,
}

/// The description of a job. Only its owner and operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DescriptionView {
    /// The record that defines the job: it changes whenever the job is described or checked again.
    pub version: Sequence,
    /// Its description as it was received last, byte for byte; `null` if it came without one.
    pub received: Option<JobDocument>,
    /// Its description with all defaults, as it was checked last; `null` if it was not checked.
    pub effective: Option<JobDocument>,
    /// All of the job, defaults filled in.
    pub spec: JobSpec,
    /// Its tasks, if it is a list of them.
    pub tasks: Option<TaskList>,
    /// The template that it names.
    pub template: Option<String>,
    /// The request of its first component at that moment: a queued job can be given another demand.
    pub alternatives: Vec<Alternative>,
}

/// A job with a description, a template or its own tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DescribedJobRequest {
    /// The job as far as it can be told before the checks; provisional if there is a description.
    pub spec: JobSpec,
    /// Additions to its specification.
    pub intake: Intake,
}

/// All of a job that is still being made, from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureJobRequest {
    /// The `version` of the description that this was made from. If the job has changed since, the change is refused
    /// with `conflict`, and can be repeated from the present version. Without it, the job is replaced whatever it is.
    #[serde(default)]
    pub made_from: Option<Sequence>,
    /// The job as far as it can be told before the checks; provisional if there is a description.
    pub spec: JobSpec,
    /// Additions to its specification.
    pub intake: Intake,
}

/// How filters are called and how resources are given to jobs, to be set at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParametersRequest {
    /// The cluster-wide filters, and how filters are called.
    pub filters: FilterSettings,
    /// How resources are given to jobs.
    pub scheduling: SchedulingSettings,
}

/// Jobs to hold until a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldUntilRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// Until when; `null` clears the hold.
    pub until: Option<Timestamp>,
}

/// Jobs to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// How.
    #[serde(default)]
    pub ending: JobEnding,
}

/// All templates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TemplatesPage {
    /// By name. The default template is among them only if it was ever changed.
    pub templates: Vec<TemplateSpec>,
    /// The state is as after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}
