//! Which options each verb of `job` has, and what they mean.

use super::Takes;
use crate::description::{
    attributes::{Attribute, TaskAttribute},
    values::UnitType,
};
use std::ops::RangeInclusive;

/// The verbs of `job` (HPC-C-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Makes a job without submitting it.
    New,
    /// Adds a task to a job.
    Add,
    /// Submits a job.
    Submit,
    /// Changes a job.
    Modify,
    /// Shows a job.
    View,
    /// Lists jobs.
    List,
    /// Lists the tasks of a job.
    ListTasks,
    /// Cancels a job.
    Cancel,
    /// Ends a job as finished.
    Finish,
    /// Returns a failed or canceled job to the queue.
    Requeue,
    /// Makes a job like another.
    Clone,
}

/// What an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// An attribute of the job.
    Job(Attribute),
    /// The job's unit and size (HPC-C-05).
    JobSize(UnitType),
    /// A least and optionally a greatest value.
    JobRange(Attribute, Attribute),
    /// Variables of the job.
    JobVariables,
    /// Custom properties of the job.
    Properties,
    /// More nodes that the job may not use.
    Exclude,
    /// Nodes that the job may use again.
    Include,
    /// Allows all nodes again.
    ExcludeNone,
    /// An attribute of the task.
    Task(TaskAttribute),
    /// The task's unit and size.
    TaskSize(UnitType),
    /// The values of a sweep.
    Sweep,
    /// Variables of the task.
    TaskVariables,
    /// Something other than a change of the job.
    Other,
}

impl Meaning {
    /// Whether it sets unit and size, which only one option may do.
    pub(super) const fn is_size(self) -> bool {
        matches!(self, Self::JobSize(_) | Self::TaskSize(_))
    }
}

/// An option of a verb.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) meaning: Meaning,
}

const fn known(name: &'static str, takes: Takes, meaning: Meaning) -> Known {
    Known { name, takes, meaning }
}

const fn job(name: &'static str, attribute: Attribute) -> Known {
    known(name, Takes::MaybeEmpty, Meaning::Job(attribute))
}

const fn job_truth(name: &'static str, attribute: Attribute) -> Known {
    known(name, Takes::Truth, Meaning::Job(attribute))
}

const fn task(name: &'static str, attribute: TaskAttribute) -> Known {
    known(name, Takes::Value, Meaning::Task(attribute))
}

const fn other(name: &'static str) -> Known {
    known(name, Takes::Value, Meaning::Other)
}

const fn switch(name: &'static str) -> Known {
    known(name, Takes::Truth, Meaning::Other)
}

const COMMON: &[Known] = &[other("scheduler"), known("help", Takes::Nothing, Meaning::Other)];

/// Options that change a job. `/holduntil` depends on the time and is left to the caller.
const JOB: &[Known] = &[
    job("askednodes", Attribute::RequestedNodes),
    job("requestednodes", Attribute::RequestedNodes),
    known("corespernode", Takes::Value, Meaning::JobRange(Attribute::MinCoresPerNode, Attribute::MaxCoresPerNode)),
    known("memorypernode", Takes::Value, Meaning::JobRange(Attribute::MinMemory, Attribute::MaxMemory)),
    known("customproperties", Takes::Value, Meaning::Properties),
    known("jobenv", Takes::Value, Meaning::JobVariables),
    job("emailaddress", Attribute::EmailAddress),
    job("estimatedprocessmemory", Attribute::EstimatedProcessMemory),
    job_truth("exclusive", Attribute::IsExclusive),
    job_truth("faildependenttasks", Attribute::FailDependentTasks),
    job_truth("failontaskfailure", Attribute::FailOnTaskFailure),
    job_truth("notifyoncompletion", Attribute::NotifyOnCompletion),
    job_truth("notifyonstart", Attribute::NotifyOnStart),
    job_truth("preemptable", Attribute::Preemptable),
    job_truth("rununtilcanceled", Attribute::RunUntilCanceled),
    job_truth("singlenode", Attribute::SingleNode),
    job("jobname", Attribute::Name),
    job("jobtemplate", Attribute::JobTemplate),
    job("license", Attribute::SoftwareLicense),
    job("nodegroup", Attribute::NodeGroups),
    job("nodegroupop", Attribute::NodeGroupOp),
    known("numcores", Takes::Value, Meaning::JobSize(UnitType::Core)),
    known("numprocessors", Takes::Value, Meaning::JobSize(UnitType::Core)),
    known("numsockets", Takes::Value, Meaning::JobSize(UnitType::Socket)),
    known("numnodes", Takes::Value, Meaning::JobSize(UnitType::Node)),
    job("orderby", Attribute::OrderBy),
    job("parentjobids", Attribute::ParentJobIds),
    job("priority", Attribute::Priority),
    job("projectname", Attribute::Project),
    job("runtime", Attribute::RunTime),
    job("taskexecutionfailureretrylimit", Attribute::TaskExecutionFailureRetryLimit),
    job("validexitcodes", Attribute::JobValidExitCodes),
    known("addexcludednodes", Takes::Value, Meaning::Exclude),
    known("holduntil", Takes::MaybeEmpty, Meaning::Other),
    other("jobfile"),
    other("progress"),
    known("progressmsg", Takes::MaybeEmpty, Meaning::Other),
];

/// Options of `job modify` alone.
const MODIFY: &[Known] = &[
    known("removeexcludednodes", Takes::Value, Meaning::Include),
    known("clearexcludednodes", Takes::Nothing, Meaning::ExcludeNone),
];

/// Options of a task in addition to those of its job.
const TASK: &[Known] = &[
    known("env", Takes::Value, Meaning::TaskVariables),
    task("name", TaskAttribute::Name),
    known("parametric", Takes::Value, Meaning::Sweep),
    known("rerunnable", Takes::Truth, Meaning::Task(TaskAttribute::IsRerunnable)),
    task("requirednodes", TaskAttribute::RequiredNodes),
    task("stderr", TaskAttribute::StdErrFilePath),
    task("stdin", TaskAttribute::StdInFilePath),
    task("stdout", TaskAttribute::StdOutFilePath),
    task("type", TaskAttribute::Type),
    task("workdir", TaskAttribute::WorkDirectory),
];

/// Options of `job add` alone: in `job submit` they apply to the job.
const ADD: &[Known] = &[
    task("depend", TaskAttribute::DependsOn),
    known("exclusive", Takes::Truth, Meaning::Task(TaskAttribute::IsExclusive)),
    known("numcores", Takes::Value, Meaning::TaskSize(UnitType::Core)),
    known("numprocessors", Takes::Value, Meaning::TaskSize(UnitType::Core)),
    known("numsockets", Takes::Value, Meaning::TaskSize(UnitType::Socket)),
    known("numnodes", Takes::Value, Meaning::TaskSize(UnitType::Node)),
    task("runtime", TaskAttribute::RunTime),
    task("validexitcodes", TaskAttribute::ValidExitCodes),
    other("taskfile"),
];

const SUBMIT: &[Known] = &[other("id"), switch("nowait")];
const VIEW: &[Known] = &[switch("history"), switch("xml"), switch("detailed")];
const LIST: &[Known] = &[
    switch("all"),
    other("format"),
    other("jobname"),
    other("jobtemplate"),
    other("project"),
    other("state"),
    other("user"),
];
const LIST_TASKS: &[Known] = &[switch("expanded"), other("format"), other("state")];
const CANCEL: &[Known] = &[switch("force"), switch("graceful"), known("message", Takes::MaybeEmpty, Meaning::Other)];

impl Verb {
    /// Every verb.
    pub const ALL: [Self; 11] = [
        Self::New,
        Self::Add,
        Self::Submit,
        Self::Modify,
        Self::View,
        Self::List,
        Self::ListTasks,
        Self::Cancel,
        Self::Finish,
        Self::Requeue,
        Self::Clone,
    ];

    /// The verb as users type it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Add => "add",
            Self::Submit => "submit",
            Self::Modify => "modify",
            Self::View => "view",
            Self::List => "list",
            Self::ListTasks => "listtasks",
            Self::Cancel => "cancel",
            Self::Finish => "finish",
            Self::Requeue => "requeue",
            Self::Clone => "clone",
        }
    }

    /// The verb of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name().eq_ignore_ascii_case(name))
    }

    /// Its options.
    pub(super) fn options(self) -> Vec<Known> {
        let own: &[&[Known]] = match self {
            Self::New => &[JOB],
            Self::Add => &[TASK, ADD],
            Self::Submit => &[JOB, TASK, SUBMIT],
            Self::Modify => &[JOB, MODIFY],
            Self::View => &[VIEW],
            Self::List => &[LIST],
            Self::ListTasks => &[LIST_TASKS],
            Self::Cancel | Self::Finish => &[CANCEL],
            Self::Requeue | Self::Clone => &[],
        };
        own.iter().chain(&[COMMON]).flat_map(|options| options.iter().copied()).collect()
    }

    /// How many job ids follow it.
    pub(super) const fn ids(self) -> RangeInclusive<usize> {
        match self {
            Self::New | Self::Submit | Self::List => 0..=0,
            Self::Cancel | Self::Finish | Self::Requeue => 1..=usize::MAX,
            Self::Add | Self::Modify | Self::View | Self::ListTasks | Self::Clone => 1..=1,
        }
    }

    /// After how many words the command of a task begins; `None` for verbs without one.
    pub(super) const fn command_after(self) -> Option<usize> {
        match self {
            Self::Submit => Some(0),
            Self::Add => Some(1),
            _ => None,
        }
    }
}
