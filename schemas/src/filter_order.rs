//! Items that the ledger puts on the work queue for filter-runners. Each has everything that a runner needs for a call,
//! so that runners need no state.

use crate::{
    event::Owner,
    filter::{ActivationParameters, CallId, FilterForm, FilterSpec, JobDocument, TemplateSpec},
    ids::JobId,
    job::{JobSpec, JobState},
    resources::Alternative,
    tasks::TaskList,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A call to make: the payload of a work item on [`crate::subjects::FILTERS_SUBJECT`], or on
/// [`crate::subjects::CHECKS_SUBJECT`] if no program is started for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterOrder {
    /// The call.
    pub call: CallId,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The job that is judged.
    pub job: DescribedJob,
    /// The work to do.
    pub work: FilterWork,
}

impl FilterOrder {
    /// Whether a program is started for it.
    pub fn starts_program(&self) -> bool {
        matches!(&self.work, FilterWork::Filter { filter, .. } if filter.form != FilterForm::Persistent)
    }

    /// The same for every delivery of this attempt and for no other, so that the work queue drops duplicates.
    pub fn key(&self) -> String {
        format!("{}-{}", self.call, self.attempt)
    }
}

/// The work of a runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterWork {
    /// Call a filter.
    Filter {
        /// The filter.
        filter: FilterSpec,
        /// Its time limit.
        limit_seconds: u32,
        /// Parameters in addition to the job; only for activation.
        parameters: Option<ActivationParameters>,
    },
    /// Check the job against its template, as the last call of a submission chain, and turn its description into the
    /// job to schedule. No program is run.
    Validate {
        /// The existing templates among those named at submission and by filters. The description says which one
        /// applies (HPC-F-18).
        templates: Vec<Arc<TemplateSpec>>,
        /// The template whose defaults and limits apply if the other one has none.
        default_template: Option<Arc<TemplateSpec>>,
        /// The time of the check, which bounds holds.
        now: Timestamp,
    },
}

/// A runner's sign of life. If none comes for some time, the ledger considers the runner gone; it has no other effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerHeartbeat {
    /// Its name, unique among the runners of the cluster.
    pub runner: String,
    /// Whether it waits for calls, so that a queued call is taken at once.
    pub is_free: bool,
    /// The calls that it has claimed and not reported yet.
    pub calls: Vec<CallId>,
}

/// The answer to a runner's heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerBriefing {
    /// The persistent filters that are defined now. Processes of others are retired (HPC-F-67).
    pub persistent: Vec<FilterSpec>,
    /// Its calls that are no longer needed, because their jobs were cancelled (HPC-F-23).
    pub given_up: Vec<CallId>,
}

/// The data of a job from which its descriptions are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedJob {
    /// Its id.
    pub id: JobId,
    /// The owner.
    pub owner: Owner,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Its state: held or queued while it is not running; see `is_entering`.
    pub state: JobState,
    /// Whether submission filters or the check after them are judging it.
    pub is_entering: bool,
    /// The job as submitted or last validated.
    pub spec: Arc<JobSpec>,
    /// Its tasks, if it is a list of tasks.
    pub tasks: Option<Arc<TaskList>>,
    /// The template that it names.
    pub template: Option<String>,
    /// Its description in the form that the filter gets: as received, as left by the last filter that changed it, or
    /// with all defaults. `None` if it never had one; it is then written from `spec`.
    pub document: Option<JobDocument>,
    /// Whether the submitter wrote `document`; otherwise muster or a filter did.
    pub is_as_received: bool,
    /// Its current name, which may have changed since, as may the following fields.
    pub name: String,
    /// Its current priority.
    pub priority: i64,
    /// Its current walltime, in seconds.
    pub walltime_seconds: Option<u64>,
    /// The current request of its first component.
    pub alternatives: Arc<[Alternative]>,
    /// The component that the call is about, if it is not about the whole job. Everything above is then about that
    /// component only, except for the specification of a job that is staged (SL-S-21, SL-B-01).
    pub component: Option<ComponentPart>,
    /// For the check of a job with several components: the descriptions that filters changed, by component.
    pub changed: Vec<(u32, JobDocument)>,
}

/// One of the components of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ComponentPart {
    /// Its index, from 0.
    pub offset: u32,
    /// Number of components of the job.
    pub count: u32,
}

impl DescribedJob {
    /// The job as if it had only this component; `None` if it has no such component.
    pub fn of_component(&self, offset: u32) -> Option<Self> {
        let component = self.spec.components.get(offset as usize)?;
        let count = u32::try_from(self.spec.components.len()).unwrap_or(u32::MAX);
        let first = component.alternatives.first();
        Some(Self {
            spec: Arc::new(JobSpec { components: vec![component.clone()], ..(*self.spec).clone() }),
            priority: component.priority.unwrap_or(self.priority),
            walltime_seconds: first.and_then(|alternative| alternative.walltime_seconds),
            alternatives: component.alternatives.as_slice().into(),
            component: Some(ComponentPart { offset, count }),
            changed: Vec::new(),
            ..self.clone()
        })
    }
}
