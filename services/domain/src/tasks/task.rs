//! A task of a job: what it is like, and what has become of its instances.

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
    /// Instances from this on have not been started; those put back are in `again`.
    pub next: u32,
    /// Instances that were put back and will run again.
    pub again: IndexSet,
    /// How many run.
    pub running: u32,
    /// How many ended well.
    pub finished: u32,
    /// Instances that ended otherwise.
    pub failed: IndexSet,
    /// Those that wait never run, because a task that they wait for has failed.
    pub is_doomed: bool,
    /// A service is not started again before.
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

    /// How many instances run in all; 0 for tasks that run by node or for ever.
    pub const fn instances(&self) -> u32 {
        match self.kind {
            TaskKind::Basic => 1,
            TaskKind::Sweep { steps, .. } => steps,
            TaskKind::NodePrep | TaskKind::NodeRelease | TaskKind::Service => 0,
        }
    }

    /// Whether it runs by itself, rather than for the sake of a node.
    pub const fn is_work(&self) -> bool {
        matches!(self.kind, TaskKind::Basic | TaskKind::Sweep { .. } | TaskKind::Service)
    }

    /// How many instances wait to be started; of a service there is no end.
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

    /// The instances that wait, in the order in which they are started.
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

    /// Whether an instance that was stopped for a reason is run again: not if it must not run twice, unless somebody asked for
    /// all of its job to.
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
