//! A task of a list, and its instances.

use muster_schemas::{
    Timestamp,
    event::StopReason,
    job::ExitStatus,
    resources::IndexSet,
    tasks::{TaskKind, TaskSpec},
};
use serde::{Deserialize, Serialize};

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// How often and when it runs.
    pub kind: TaskKind,
    /// The minimum that an instance needs.
    pub min: u32,
    /// The maximum that an instance can use.
    pub max: u32,
    /// The tasks that must have ended before it.
    pub after: Vec<u32>,
    /// Exit codes that mean success; empty means 0 alone.
    pub valid_exit_codes: Vec<(i32, i32)>,
    /// Whether it may run a second time.
    pub rerunnable: bool,
    /// The first instance that has never been started; those put back are in `again`.
    pub next: u32,
    /// Instances that were put back and will run again.
    pub again: IndexSet,
    /// The number that run.
    pub running: u32,
    /// The number that succeeded.
    pub finished: u32,
    /// Instances that failed.
    pub failed: IndexSet,
    /// Whether waiting instances never run, because a task that they wait for has failed.
    pub is_doomed: bool,
    /// A service is not restarted before this time.
    pub not_before: Option<Timestamp>,
}

impl Task {
    pub(crate) fn of(spec: &TaskSpec) -> Self {
        Self {
            kind: spec.kind,
            min: spec.min,
            max: spec.max,
            after: spec.after.clone(),
            valid_exit_codes: spec.valid_exit_codes.clone(),
            rerunnable: spec.rerunnable,
            ..Self::default()
        }
    }

    /// The total number of instances; 0 for tasks that run per node or forever.
    pub const fn instances(&self) -> u32 {
        match self.kind {
            TaskKind::Basic => 1,
            TaskKind::Sweep { steps, .. } => steps,
            TaskKind::NodePrep | TaskKind::NodeRelease | TaskKind::Service => 0,
        }
    }

    /// Whether it runs by itself, rather than for a node.
    pub const fn is_work(&self) -> bool {
        matches!(self.kind, TaskKind::Basic | TaskKind::Sweep { .. } | TaskKind::Service)
    }

    /// The number of instances that wait to start; unlimited for a service.
    pub fn waiting(&self) -> u32 {
        if self.is_doomed {
            return 0;
        }
        match self.kind {
            TaskKind::Service => u32::MAX,
            _ => {
                let put_back = u32::try_from(self.again.len()).unwrap_or(u32::MAX);
                self.instances().saturating_sub(self.next).saturating_add(put_back)
            }
        }
    }

    /// Whether no instance of it runs or ever will.
    pub fn is_over(&self) -> bool {
        self.running == 0 && self.waiting() == 0
    }

    /// The waiting instances, in starting order.
    pub(crate) fn in_line(&self) -> impl Iterator<Item = u32> + '_ {
        let end = if self.kind == TaskKind::Service { u32::MAX } else { self.instances() };
        let (again, next) = if self.is_doomed { (None, end) } else { (Some(&self.again), self.next) };
        again.into_iter().flat_map(IndexSet::iter).chain(next..end)
    }

    pub(crate) fn is_success(&self, status: Option<ExitStatus>) -> bool {
        match (status, self.valid_exit_codes.as_slice()) {
            (Some(status), []) => status.is_success(),
            (Some(ExitStatus::Code(code)), ranges) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&i32::from(code)))
            }
            _ => false,
        }
    }

    pub(crate) fn began(&mut self, instance: u32) {
        self.running = self.running.saturating_add(1);
        self.not_before = None;
        if !self.again.remove(instance) {
            self.next = self.next.max(instance.saturating_add(1));
        }
    }

    /// Whether a stopped instance runs again: not if it must not run twice, unless the job was requeued on request.
    pub(crate) fn runs_again(&self, stopping: Option<StopReason>) -> bool {
        self.rerunnable || stopping == Some(StopReason::Requeued)
    }

    pub(crate) fn put_back(&mut self, instance: u32, may_run_again: bool) {
        if may_run_again {
            self.again.insert(instance);
        } else {
            self.failed.insert(instance);
        }
    }
}
