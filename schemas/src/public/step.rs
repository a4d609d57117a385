//! Steps and tasks inside runs.

use super::{
    declare::public_events,
    names::{Names, node_name},
    words::{Exit, part},
};
use crate::{
    event::NodeExit,
    ids::{JobId, RunId, StepId},
    job::ExitStatus,
    resources::IndexSet,
    steps::{StepShare, TaskStatus},
};
use serde::Serialize;
use std::{collections::BTreeSet, fmt};
use utoipa::ToSchema;

public_events! { StepData
    /// A step was launched inside a job.
    "step" "launched" StepLaunched about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Its name, for people.
        name: String,
        /// Its share of each of its nodes, in their order.
        nodes: Vec<StepPart>,
        /// How long it may run, in seconds; `null` means as long as its job.
        walltime_seconds: Option<u64>,
    }
    says |data, f| {
        let tasks: u64 = data.nodes.iter().map(|node| u64::from(node.tasks)).sum();
        let nodes = data.nodes.iter().map(|node| &node.node).collect::<BTreeSet<_>>().len();
        let (tasks, nodes) = (Counted(tasks, "task"), Counted(nodes as u64, "node"));
        write!(f, "step {} of job {} was launched with {tasks} on {nodes}", data.step, data.job)
    };

    /// A signal was sent to the processes of a step.
    "step" "signalled" StepSignalled about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component, if one is given.
        component: Option<u32>,
        /// The signal's number.
        signal: u8,
    }
    says |data, f| {
        write!(f, "step {} of job {} was sent signal {}", data.step, data.job, data.signal)
    };

    /// A running step got another time limit.
    "step" "walltime_set" StepWalltimeSet about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// How long it may run from its start, in seconds; `null` means as long as its job.
        walltime_seconds: Option<u64>,
    }
    says |data, f| match data.walltime_seconds {
        Some(seconds) => write!(f, "step {} of job {} may run for {seconds} s", data.step, data.job),
        None => write!(f, "step {} of job {} may run as long as its job", data.step, data.job),
    };

    /// A step, or the part of it in one component, is being ended.
    "step" "stopping" StepStopping about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// Only on the nodes of this component, if one is given.
        component: Option<u32>,
        /// Whether to skip the grace period.
        is_forced: bool,
    }
    says |data, f| {
        write!(f, "step {} of job {} is being ended", data.step, data.job)?;
        data.component.map_or(Ok(()), |component| write!(f, " in component {component}"))
    };

    /// A part of a step (one component on one node) has ended.
    "step" "part_ended" StepPartEnded about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The node's name.
        node: String,
        /// The component, from 0.
        component: u32,
        /// How the part ended as a whole.
        exit: NodeExit,
        /// How each task ended; tasks with the same status are grouped.
        statuses: Vec<TaskStatus>,
    }
    says |data, f| {
        let whose = part(data.job, data.component);
        write!(f, "step {} of {whose} ended on {}: {}", data.step, data.node, Exit(&data.exit))
    };

    /// A step has ended on its last node.
    "step" "ended" StepEnded about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The first status that is not 0, else 0; `null` if no process could be started.
        exit_status: Option<ExitStatus>,
    }
    says |data, f| {
        write!(f, "step {} of job {} ended", data.step, data.job)?;
        data.exit_status.map_or(Ok(()), |status| write!(f, ": {status}"))
    };

    /// A task of a running job was started as a step.
    "task" "started" TaskStarted about job {
        /// The job.
        job: JobId,
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
        /// The index of the task in the job's list, from 0.
        task: u32,
        /// The index of the instance, from 0.
        instance: u32,
        /// Its nodes, with the number of its cores on each.
        nodes: Vec<StepNode>,
    }
    says |data, f| {
        let (job, task, instance) = (data.job, data.task + 1, data.instance + 1);
        write!(f, "task {task}.{instance} of job {job} started as step {}", data.step)
    };
}

/// A number of tasks of a step on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct StepNode {
    /// The node's name.
    pub node: String,
    /// Number of tasks.
    pub tasks: u32,
}

/// A step's share of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct StepPart {
    /// The node's name.
    pub node: String,
    /// The component of the job that it serves, from 0.
    pub component: u32,
    /// Number of tasks there.
    pub tasks: u32,
    /// The cores that they may use.
    pub cores: IndexSet,
    /// The cores of each task, in order of ranks, if the step binds them; a shorter list is used again from its
    /// beginning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<IndexSet>,
    /// The GPUs that no other step may use meanwhile; `null` means all of the job's there.
    pub gpus: Option<IndexSet>,
}

pub(super) fn step_part(share: &StepShare, names: &dyn Names) -> StepPart {
    StepPart {
        node: node_name(names, share.node).into_owned(),
        component: share.component,
        tasks: share.tasks,
        cores: share.cores.clone(),
        bound: share.bound.clone(),
        gpus: share.gpus.clone(),
    }
}

/// A number of things, in the singular for 1.
struct Counted(u64, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}
