//! Steps, and jobs that end with their clients.

use crate::state::{AtOnce, KeptJob, LaunchedStep, State, StepPart};
use muster_schemas::{
    JobId, RunId, StepId,
    event::{Event, Record},
    steps::StepShare,
};

impl State {
    /// Applies a record about clients; other records mean nothing here.
    pub(super) fn sessions_changed(&mut self, record: &Record) {
        match &record.event {
            Event::StepLaunched { run, step, spec, shares, .. } => {
                let part = |share: &StepShare| StepPart {
                    node: share.node,
                    component: share.component,
                    tasks: share.tasks,
                    exit: None,
                };
                self.step_started(*run, *step, shares.iter().map(part));
                let launched = LaunchedStep::of(spec, shares, self.time);
                if self.runs.contains_key(run) {
                    self.sessions.launched.entry(*run).or_default().insert(*step, launched);
                }
            }
            Event::StepStopping { run, step, component, is_forced, .. } => {
                self.step_stopping(*run, *step, *component, AtOnce::of(*is_forced));
            }
            Event::JobKept { job, seconds, is_late } => self.job_kept(*job, *seconds, *is_late),
            _ => {}
        }
    }

    fn step_stopping(&mut self, run: RunId, step: StepId, component: Option<u32>, at_once: AtOnce) {
        let Some(launched) = self.sessions.launched.get_mut(&run).and_then(|steps| steps.get_mut(&step)) else {
            return;
        };
        for part in launched.parts.iter_mut() {
            if component.is_none_or(|component| component == part.share.component) {
                part.stopping = part.stopping.max(Some(at_once));
            }
        }
    }

    fn job_kept(&mut self, job: JobId, seconds: Option<u32>, is_late: bool) {
        let until = |seconds| self.time.plus_seconds(i64::from(seconds));
        match seconds.filter(|_| self.jobs.contains_key(&job)) {
            Some(seconds) => self.sessions.kept.insert(job, KeptJob { until: until(seconds), seconds, is_late }),
            None => self.sessions.kept.remove(&job),
        };
    }

    /// The step has ended, or is no longer known.
    pub(super) fn forget_step(&mut self, run: RunId, step: StepId) {
        if let Some(steps) = self.sessions.launched.get_mut(&run) {
            steps.remove(&step);
            if steps.is_empty() {
                self.sessions.launched.remove(&run);
            }
        }
    }
}
