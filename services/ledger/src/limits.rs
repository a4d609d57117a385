//! The limits of job templates for changes of jobs, and the check of jobs that no filter judges. Both are written in a
//! dialect, which the decide loop does not know: the program that starts the ledger brings a reader for them. Limits
//! are checked here, between a decision and its records, so that no command of any kind and no two of them together
//! lead a job out of its limits (HPC-T-10). Checks run in parallel to the decide loop.

use muster_domain::State;
use muster_schemas::{
    command::{Refusal, RefusalCode},
    event::{Actor, Event, JobChange, Validated},
    filter::TemplateSpec,
    filter_order::DescribedJob,
    ids::JobId,
    resources::Alternative,
    time::Timestamp,
};
use std::sync::Arc;

/// A job that is being changed, and the templates whose limits it keeps.
#[derive(Clone, Copy, Debug)]
pub struct ChangedJob<'c> {
    /// The requested change.
    pub change: &'c JobChange,
    /// The present request of the component that is changed, or of the first if there are several.
    pub asked: &'c [Alternative],
    /// Whether it is a list of tasks, which only jobs with their own description can be.
    pub is_task_list: bool,
    /// Whether an administrator changes it.
    pub by_administrator: bool,
    /// The template that it was checked against; `None` if that no longer exists.
    pub template: Option<&'c TemplateSpec>,
    /// The template whose limits apply where the first has none.
    pub default_template: Option<&'c TemplateSpec>,
}

/// Reads descriptions of jobs and the limits of templates.
pub trait TemplateLimits: Send + Sync {
    /// Whether it checks jobs that no filter judges; else filter-runners do.
    fn makes_checks(&self) -> bool {
        false
    }

    /// Checks a job that no filter judges against its template and turns it into what is scheduled, as a filter-runner
    /// does for jobs that filters have judged (HPC-J-03).
    ///
    /// # Errors
    /// Why the job is refused, for people; it begins with a code in brackets.
    fn check(
        &self,
        _job: &DescribedJob,
        _templates: &[Arc<TemplateSpec>],
        _default_template: Option<&TemplateSpec>,
        _now: Timestamp,
    ) -> Result<Validated, String> {
        Err("[JobNotValid] nobody here checks jobs".to_owned())
    }

    /// Why the limits do not allow the change; `None` if they do. Deterministic, and never waits.
    fn refusal(&self, changed: &ChangedJob) -> Option<String>;
}

/// For systems whose templates have no limits.
#[derive(Clone, Copy, Debug)]
pub struct NoLimits;

impl TemplateLimits for NoLimits {
    fn refusal(&self, _: &ChangedJob) -> Option<String> {
        None
    }
}

/// Whether all decided changes keep within the limits of templates.
///
/// # Errors
/// A change that does not.
pub(crate) fn check(
    limits: &dyn TemplateLimits,
    state: &State,
    actor: &Actor,
    events: &[Event],
) -> Result<(), Refusal> {
    let by_administrator = state.is_administrator(actor);
    events.iter().try_for_each(|event| match event {
        Event::JobModified { job, change } => check_change(limits, state, *job, change, by_administrator),
        _ => Ok(()),
    })
}

fn check_change(
    limits: &dyn TemplateLimits,
    state: &State,
    id: JobId,
    change: &JobChange,
    by_administrator: bool,
) -> Result<(), Refusal> {
    let Some(job) = state.job(id) else { return Ok(()) };
    // Jobs that never were checked against a template have none to keep to.
    let Some(filtering) = job.filters.as_deref().filter(|filtering| filtering.revision.is_some()) else {
        return Ok(());
    };
    let component = change.component.and_then(|number| job.components.get(number as usize));
    let changed = ChangedJob {
        change,
        asked: &component.unwrap_or_else(|| job.lead()).shape.alternatives,
        is_task_list: job.tasks.is_some(),
        by_administrator,
        template: filtering.template.as_deref().and_then(|name| state.template(name)).map(|template| &**template),
        default_template: state.default_template().map(|template| &**template),
    };
    let refusal = |text: String| Err(Refusal::new(RefusalCode::LimitReached, format!("job {id}: {text}")));
    limits.refusal(&changed).map_or(Ok(()), refusal)
}
