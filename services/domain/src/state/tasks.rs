//! Jobs that are a list of tasks: what each task is like, what has become of it, and what room the job has for more.

use muster_schemas::{
    JobId, NodeId, Sequence, StepId, Timestamp,
    event::ShrinkReason,
    resources::Placement,
    scheduling::SchedulingSettings,
    tasks::{SizeUnit, TaskInstance, TaskKind},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The tasks of a job and how they stand. What they launch stays in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBook {
    /// The record that has the list.
    pub listed: Sequence,
    /// What sizes count.
    pub unit: SizeUnit,
    /// The least that the job runs on.
    pub min: u32,
    /// The greatest that it grows to.
    pub max: u32,
    /// Whether it keeps its resources when no task is left.
    pub until_cancelled: bool,
    /// Whether the first failed task stops it.
    pub fail_on_task_failure: bool,
    /// Whether tasks that wait for one that failed fail.
    pub fail_dependents: bool,
    /// Whether a job of higher priority may take its resources.
    pub preemptable: bool,
    /// The tasks, in their order.
    pub tasks: Vec<Task>,
    /// Instances that run, by the step that each is.
    pub running: BTreeMap<StepId, RunningTask>,
    /// Nodes of the run whose preparation has ended well.
    pub prepared: BTreeSet<NodeId>,
    /// What it is to give up when no task uses it any more, and why.
    pub shrinking: Option<(Arc<Placement>, ShrinkReason)>,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// How often and when it runs.
    pub kind: TaskKind,
    /// The least that an instance of it needs.
    pub min: u32,
    /// The greatest that an instance of it can use.
    pub max: u32,
    /// The tasks that must have ended before.
    pub after: Vec<u32>,
    /// Exit codes with which it has ended well; empty means 0 alone.
    pub valid_exit_codes: Vec<(i32, i32)>,
    /// Whether it may run a second time.
    pub rerunnable: bool,
    /// Instances that have not been started, the first at `next`; those put back are in `again`.
    pub next: u32,
    /// Instances that were put back and are to run again.
    pub again: BTreeSet<u32>,
    /// Instances that ended well.
    pub finished: u32,
    /// Instances that ended otherwise.
    pub failed: u32,
    /// Instances that never ran and never will.
    pub cancelled: u32,
}

/// An instance of a task that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTask {
    /// Which.
    pub instance: TaskInstance,
    /// How many cores it has on each of its nodes.
    pub cores: Vec<(NodeId, u32)>,
}

/// What a running job could do with more resources, and without some of those that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elastic {
    /// What sizes count.
    pub unit: SizeUnit,
    /// The least that the job runs on.
    pub min: u32,
    /// The greatest that it grows to.
    pub max: u32,
    /// What it holds, without what it is to give up.
    pub current: u32,
    /// How many more units its queued tasks can use now: they fit nowhere in what it holds (HPC-S-09).
    pub wanted: u32,
    /// How many units no task of it uses or will use: it can give them up, and keeps its least (HPC-S-10).
    pub idle: u32,
    /// Whether a job of higher priority may take its resources.
    pub preemptable: bool,
}

impl super::State {
    /// How resources are given to jobs.
    pub fn scheduling(&self) -> &Arc<SchedulingSettings> {
        &self.scheduling
    }

    /// When a run was last asked to give up resources so that others get a share of them (HPC-S-08).
    pub fn rebalanced(&self) -> Option<Timestamp> {
        self.rebalanced
    }

    /// What a running job that is a list of tasks could do with more or fewer resources; `None` for others.
    pub fn elastic(&self, _job: JobId) -> Option<Elastic> {
        None
    }
}
