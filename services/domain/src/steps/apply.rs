//! Steps, and jobs that end with their clients.

use crate::{
    state::State,
    steps::{AtOnce, KeptJob, PartProgress, Step, StepProgress},
    unapplied::no_arm,
};
use muster_schemas::{
    JobId, NodeId, RunId, StepId,
    event::{Event, NodeExit, Record},
    steps::StepShare,
};

impl State {
    pub(crate) fn step_started(&mut self, run: RunId, step: StepId, parts: impl Iterator<Item = PartProgress>) {
        let started_sequence = self.sequence;
        self.change_run(run, |run| {
            run.next_step = run.next_step.max(StepId(step.0.saturating_add(1)));
            run.steps.insert(step, StepProgress { started_sequence, parts: parts.collect() });
        });
    }

    pub(crate) fn step_part_ended(&mut self, run: RunId, step: StepId, node: NodeId, component: u32, exit: &NodeExit) {
        self.change_run(run, |run| run.end_step_part(step, node, component, exit));
    }

    /// Applies a record about clients.
    pub(crate) fn clients_changed(&mut self, record: &Record) {
        match &record.event {
            Event::StepLaunched { run, step, spec, shares, .. } => {
                let part = |share: &StepShare| PartProgress {
                    node: share.node,
                    component: share.component,
                    tasks: share.tasks,
                    exit: None,
                };
                self.step_started(*run, *step, shares.iter().map(part));
                let launched = Step::of(spec, shares, self.time);
                if self.runs.contains_key(run) {
                    self.clients.steps.entry(*run).or_default().insert(*step, launched);
                }
            }
            Event::StepStopping { run, step, component, is_forced, .. } => {
                self.step_stopping(*run, *step, *component, AtOnce::of(*is_forced));
            }
            Event::StepWalltimeSet { run, step, walltime_seconds, .. } => {
                self.step_walltime_set(*run, *step, *walltime_seconds);
            }
            Event::JobKept { job, seconds, is_late } => self.job_kept(*job, *seconds, *is_late),
            event => no_arm(event),
        }
    }

    fn step_stopping(&mut self, run: RunId, step: StepId, component: Option<u32>, at_once: AtOnce) {
        let Some(launched) = self.clients.steps.get_mut(&run).and_then(|steps| steps.get_mut(&step)) else {
            return;
        };
        for part in launched.parts.iter_mut() {
            if component.is_none_or(|component| component == part.share.component) {
                part.stopping = part.stopping.max(Some(at_once));
            }
        }
    }

    fn step_walltime_set(&mut self, run: RunId, step: StepId, walltime_seconds: Option<u64>) {
        if let Some(launched) = self.clients.steps.get_mut(&run).and_then(|steps| steps.get_mut(&step)) {
            launched.walltime_seconds = walltime_seconds;
            launched.walltime_changed = true;
        }
    }

    fn job_kept(&mut self, job: JobId, seconds: Option<u32>, is_late: bool) {
        let until = |seconds| self.time.plus_seconds(i64::from(seconds));
        match seconds.filter(|_| self.jobs.contains_key(&job)) {
            Some(seconds) => self.clients.kept.insert(job, KeptJob { until: until(seconds), seconds, is_late }),
            None => self.clients.kept.remove(&job),
        };
    }

    /// A step has ended, or is no longer known.
    pub(crate) fn forget_step(&mut self, run: RunId, step: StepId) {
        if let Some(steps) = self.clients.steps.get_mut(&run) {
            steps.remove(&step);
            if steps.is_empty() {
                self.clients.steps.remove(&run);
            }
        }
    }
}
