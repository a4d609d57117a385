//! Items that the ledger puts on the work queue for filter-runners: everything that a runner needs for a call, so
//! that it needs no state.

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
    /// Which attempt it is, from 1.
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

    /// The same for every delivery of this attempt and for no other, so that the work queue drops doubles.
    pub fn key(&self) -> String {
        format!("{}-{}", self.call, self.attempt)
    }
}

/// The work of a runner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterWork {
    /// Call a filter.
    Filter {
        /// Which.
        filter: FilterSpec,
        /// Its time limit.
        limit_seconds: u32,
        /// Parameters in addition to the job; only for activation.
        parameters: Option<ActivationParameters>,
    },
    /// Check the job against its template, as the last call of a submission chain, and make of its description what is
    /// scheduled. No program is run.
    Validate {
        /// Those of the templates named for it that exist: the one named at submission, and those that filters named.
        /// The description says which of them counts (HPC-F-18).
        templates: Vec<Arc<TemplateSpec>>,
        /// The template whose defaults and limits apply where the other has none.
        default_template: Option<Arc<TemplateSpec>>,
        /// The time of the check, which bounds holds.
        now: Timestamp,
    },
}

/// A runner's sign of life. Without one for some time the ledger takes the runner for gone; nothing else follows from
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerHeartbeat {
    /// Its name, unique among the runners of the cluster.
    pub runner: String,
    /// Whether it waits for calls, so that one that is in the queue is taken at once.
    pub is_free: bool,
    /// The calls that it has claimed and not reported yet.
    pub calls: Vec<CallId>,
}

/// The answer to a runner's heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerBriefing {
    /// The persistent filters that are defined now. Processes of others are retired (HPC-F-67).
    pub persistent: Vec<FilterSpec>,
    /// Those of its calls that nobody waits for any longer, as their jobs were cancelled (HPC-F-23).
    pub given_up: Vec<CallId>,
}

/// A job as descriptions of it are written from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribedJob {
    /// Its id.
    pub id: JobId,
    /// The owner.
    pub owner: Owner,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// Where it stands: held or queued while it is not running; see `is_entering`.
    pub state: JobState,
    /// Whether submission filters or the check behind them judge it.
    pub is_entering: bool,
    /// The job as it was submitted or validated last.
    pub spec: Arc<JobSpec>,
    /// Its tasks, if it is a list of tasks.
    pub tasks: Option<Arc<TaskList>>,
    /// The template that it names.
    pub template: Option<String>,
    /// Its description in the form that the filter gets: as it was received, as the last filter that changed it left
    /// it, or with all defaults. `None` if it never had one: then it is written from `spec`.
    pub document: Option<JobDocument>,
    /// Whether `document` is what a submitter wrote; else it was written by muster or a filter.
    pub is_as_received: bool,
    /// Attributes that may have changed since: its present name.
    pub name: String,
    /// Its priority now.
    pub priority: i64,
    /// Its walltime now.
    pub walltime_seconds: Option<u64>,
    /// The present request of its first component.
    pub alternatives: Arc<[Alternative]>,
    /// The one component that the call is about, if it is not about the whole job: then all of the above is about that
    /// one alone, but for the specification of a job that is staged (SL-S-21, SL-B-01).
    pub component: Option<ComponentPart>,
    /// For the check of a job with several components: the descriptions that filters changed, by component.
    pub changed: Vec<(u32, JobDocument)>,
}

/// One of the components of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ComponentPart {
    /// Which, from 0.
    pub offset: u32,
    /// How many the job has.
    pub count: u32,
}

impl DescribedJob {
    /// The job as if it had nothing but this component; `None` if it does not have it.
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
