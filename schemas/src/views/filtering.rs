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

/// The progress of a job into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntryWord {
    /// Its owner is still configuring it.
    Configuring,
    /// Submission filters judge it.
    Filtering,
    /// The check after the filters judges it.
    Validating,
    /// It is in the queue, or has been.
    Entered,
    /// It was refused before it reached the queue.
    Refused,
}

/// How filters, a template or a timed hold affect a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilteringView {
    /// The template that it names.
    pub template: Option<String>,
    /// The revision of the template that it was checked against, if any.
    pub template_revision: Option<u64>,
    /// Its progress into the queue.
    pub entry: EntryWord,
    /// When its timed hold ends.
    pub hold_until: Option<Timestamp>,
    /// Who set that hold.
    pub hold_by: Option<HoldBy>,
    /// Whether its run started ahead of a waiting job.
    pub is_backfill: bool,
    /// A message about it, from a filter or from the person who ended it.
    pub message: Option<String>,
    /// Warnings for people.
    pub warnings: Vec<JobWarning>,
    /// The chain of filters in progress.
    pub chain: Option<ChainView>,
    /// The last activation chain that did not pass.
    pub refusal: Option<RefusalView>,
    /// Nodes with resources set aside for it while it waits.
    pub kept_nodes: Vec<String>,
}

/// A chain of filters in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainView {
    /// Its number, unique in the cluster.
    pub number: u64,
    /// The kind of filter.
    pub kind: FilterKind,
    /// The names of its filters, in the order in which they are called.
    pub filters: Vec<String>,
    /// The index of the filter whose answer is outstanding, from 0; one past the last is the check after the filters.
    pub position: Option<u32>,
    /// The action that the filter is called for.
    pub action: Option<FilterAction>,
    /// The number of the attempt, from 1.
    pub attempt: Option<u32>,
    /// The runner that has the call.
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
    /// The filters are not asked again before this time.
    pub ask_again: Timestamp,
}

/// The possible and current size of a list of tasks, and the states of its tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ElasticView {
    /// The unit that sizes count.
    pub unit: SizeUnit,
    /// Its minimum size.
    pub min: u32,
    /// Its maximum size.
    pub max: u32,
    /// Its current size; 0 while it waits.
    pub current: u32,
    /// Whether its activation filters keep it from growing by preemption, although the settings allow that.
    #[serde(default)]
    pub filters_bar_preemption: bool,
    /// Instances of its tasks. For tasks that run per node or forever, only started instances are counted.
    pub instances: InstancesView,
}

/// The states of instances of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstancesView {
    /// Waiting.
    pub queued: u64,
    /// Running.
    pub running: u64,
    /// Ended successfully.
    pub finished: u64,
    /// Ended unsuccessfully.
    pub failed: u64,
    /// Never ran and never will.
    pub cancelled: u64,
}

/// A task of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskView {
    /// Its index in the list, from 0.
    pub task: u32,
    /// How often and when it runs.
    pub kind: TaskKind,
    /// The minimum size of an instance, in the job's unit.
    pub min: u32,
    /// The maximum size of an instance.
    pub max: u32,
    /// The tasks that must end first, by index from 0.
    pub after: Vec<u32>,
    /// The states of its instances.
    pub instances: InstancesView,
}

/// The description of a job. Only its owner and operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DescriptionView {
    /// The record that defines the job: it changes whenever the job is described or checked again.
    pub version: Sequence,
    /// Its last received description, byte for byte; `null` if it came without one.
    pub received: Option<JobDocument>,
    /// Its description with all defaults, as last checked; `null` if it was not checked.
    pub effective: Option<JobDocument>,
    /// The job's full specification, with defaults filled in.
    pub spec: JobSpec,
    /// Its tasks, if it is a list of tasks.
    pub tasks: Option<TaskList>,
    /// The template that it names.
    pub template: Option<String>,
    /// The request of its first component at that moment; it can change while the job is queued.
    pub alternatives: Vec<Alternative>,
}

/// A job with a description, a template or its own tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DescribedJobRequest {
    /// The job as far as it is known before the checks; provisional if there is a description.
    pub spec: JobSpec,
    /// Additions to its specification.
    pub intake: Intake,
}

/// The new definition of a job that is still being configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureJobRequest {
    /// The `version` of the description that this is based on. If the job has changed since, the request is refused
    /// with `conflict` and can be repeated from the current version. Without it, the job is replaced in any case.
    #[serde(default)]
    pub made_from: Option<Sequence>,
    /// The job as far as it is known before the checks; provisional if there is a description.
    pub spec: JobSpec,
    /// Additions to its specification.
    pub intake: Intake,
}

/// How filters are called and how resources are given to jobs, to be set together.
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
    /// When the hold ends; `null` clears it.
    pub until: Option<Timestamp>,
}

/// Jobs to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// How they end.
    #[serde(default)]
    pub ending: JobEnding,
}

/// All templates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TemplatesPage {
    /// By name. The default template is included only if it was ever changed.
    pub templates: Vec<TemplateSpec>,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}
