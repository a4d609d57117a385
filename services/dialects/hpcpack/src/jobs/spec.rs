//! Makes a job from a description: everything but its tasks and its demand.

use super::{FORMAT_ATTRIBUTE, VARIABLES_ATTRIBUTE, demand, list};
use crate::{
    codes::{Code, Refusal, Warning},
    description::{Format, JobDescription, attributes::JobAttributes},
    hold,
    run_time::RunTime,
    size::Size,
    template::{DEFAULT, Template, effective},
};
use muster_schemas::{
    JobId,
    job::{
        Component, Dependencies, Dependency, DependencyKind, JobSpec, Launch, Notification, Occasion, Program,
        RequeuePolicy, Sink,
    },
    tasks::TaskList,
    time::Timestamp,
};

/// The job as far as it is known at submission. This never fails: the check after the filters finds errors (HPC-J-04).
/// The variables of the description are not in it yet, so that a filter can remove one.
pub fn provisional(description: &JobDescription, format: Format) -> JobSpec {
    let template = Template::new(DEFAULT);
    let values = effective(&description.attributes, &template, &template);
    let size = Size::of(&values, &description.tasks).unwrap_or(Size {
        unit: values.unit_type.unwrap_or_default(),
        min: 1,
        max: 1,
    });
    let mut spec = JobSpec { dialect: Some(crate::NAME.to_owned()), ..JobSpec::default() };
    spec.attributes.insert(FORMAT_ATTRIBUTE.to_owned(), format.word().to_owned());
    take_properties(&mut spec, &values, "");
    let alternatives = demand::alternatives(&values, size).unwrap_or_default();
    spec.components = vec![component(&Component::default(), &values, alternatives)];
    spec
}

/// The template that a description names; `None` is `Default`.
pub fn template_of(description: &JobDescription) -> Option<String> {
    description.attributes.job_template.clone().filter(|name| !name.is_empty())
}

/// When the hold in a description ends; `None` if that time has passed since the job was submitted.
///
/// # Errors
/// `HoldUntilNotValid` and `HoldUntilTooLong` (HPC-H-07).
pub fn hold_of(attributes: &JobAttributes, submitted: Timestamp, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
    let Some(time) = attributes.hold_until else { return Ok(None) };
    hold::check(time, submitted.min(now))?;
    if time <= now {
        return Ok(None);
    }
    hold::check(time, now).map(Some)
}

/// The result: the job, its tasks, and warnings about what has no effect.
pub(super) struct Made {
    pub(super) spec: JobSpec,
    pub(super) tasks: TaskList,
    pub(super) warnings: Vec<Warning>,
}

/// Makes the job of a description. `values` are those in force, `before` is the job as submitted or last checked.
pub(super) fn make(
    description: &JobDescription,
    values: &JobAttributes,
    size: Size,
    before: &JobSpec,
    owner: &str,
) -> Result<Made, Vec<Refusal>> {
    let tasks = list::tasks(description, values, size);
    let alternatives = demand::alternatives(values, size).map_err(|refusal| vec![refusal]);
    let (tasks, alternatives) = match (tasks, alternatives) {
        (Ok(tasks), Ok(alternatives)) => (tasks, alternatives),
        (tasks, alternatives) => {
            return Err(tasks.err().into_iter().chain(alternatives.err()).flatten().collect());
        }
    };
    let mut spec = before.clone();
    take_properties(&mut spec, values, owner);
    take_variables(&mut spec, description);
    spec.requeue = RequeuePolicy {
        // A task may run again unless its description forbids it.
        on_node_lost: !tasks.tasks.is_empty() && tasks.tasks.iter().all(|task| task.rerunnable),
        ..before.requeue.clone()
    };
    let first = before.components.first().cloned().unwrap_or_default();
    spec.components = vec![component(&first, values, alternatives)];
    Ok(Made { spec, tasks, warnings: without_effect(description, values) })
}

fn take_properties(spec: &mut JobSpec, values: &JobAttributes, owner: &str) {
    spec.name = values.name.clone().unwrap_or_default();
    let on: Vec<Occasion> =
        [(values.notify_on_start, Occasion::Started), (values.notify_on_completion, Occasion::Ended)]
            .into_iter()
            .filter_map(|(wanted, occasion)| (wanted == Some(true)).then_some(occasion))
            .collect();
    let address = values.email_address.clone().filter(|address| !address.is_empty());
    let address = address.unwrap_or_else(|| owner.to_owned());
    spec.notifications = match on.is_empty() || address.is_empty() {
        true => Vec::new(),
        false => vec![Notification { on, sink: Sink::Mail(address), spares_cancelled: false }],
    };
}

/// Replaces the variables that an earlier check took from the description.
fn take_variables(spec: &mut JobSpec, description: &JobDescription) {
    if let Some(earlier) = spec.attributes.remove(VARIABLES_ATTRIBUTE) {
        earlier.split(' ').for_each(|name| {
            spec.environment.remove(name);
        });
    }
    if !description.environment.is_empty() {
        let names: Vec<&str> = description.environment.keys().map(String::as_str).collect();
        spec.attributes.insert(VARIABLES_ATTRIBUTE.to_owned(), names.join(" "));
        spec.environment.extend(description.environment.clone());
    }
}

fn component(
    before: &Component,
    values: &JobAttributes,
    alternatives: Vec<muster_schemas::resources::Alternative>,
) -> Component {
    let walltime_seconds = values.run_time.and_then(RunTime::seconds).map(u64::from);
    let alternatives = alternatives.into_iter().map(|mut alternative| {
        alternative.walltime_seconds = walltime_seconds;
        alternative
    });
    Component {
        account: values.project.clone().filter(|project| !project.is_empty()),
        priority: values.priority.map(|priority| i64::from(priority.value())),
        dependencies: parents(values),
        launch: Launch { program: Program::None, ..Launch::default() },
        alternatives: alternatives.collect(),
        ..before.clone()
    }
}

/// All parents must have completed (HPC-J-25).
pub(super) fn parents(values: &JobAttributes) -> Dependencies {
    let ids = values.parent_job_ids.iter().flat_map(|ids| &ids.0);
    let succeeded =
        |id: &u64| vec![Dependency { kind: DependencyKind::Succeeded, job: Some(JobId::job(*id)), delay_seconds: 0 }];
    Dependencies { all_of: ids.map(succeeded).collect() }
}

/// A warning for each property that is kept but has no effect.
fn without_effect(description: &JobDescription, values: &JobAttributes) -> Vec<Warning> {
    let mut names = Vec::new();
    names.extend(values.order_by.is_some().then_some("OrderBy of the job"));
    names.extend(
        values.task_execution_failure_retry_limit.is_some().then_some("TaskExecutionFailureRetryLimit of the job"),
    );
    let any = |is_given: &dyn Fn(&crate::description::attributes::TaskAttributes) -> bool| {
        description.tasks.iter().any(|task| is_given(&task.attributes))
    };
    let of_tasks = [
        ("RequiredNodes of tasks", any(&|task| task.required_nodes.as_ref().is_some_and(|names| !names.0.is_empty()))),
        ("IsExclusive of tasks", any(&|task| task.is_exclusive == Some(true))),
        ("FailJobOnFailure of tasks", any(&|task| task.fail_job_on_failure == Some(true))),
        ("FailJobOnFailureCount of tasks", any(&|task| task.fail_job_on_failure_count.is_some())),
    ];
    names.extend(of_tasks.into_iter().filter_map(|(name, is_given)| is_given.then_some(name)));
    let warn = |name: &str| Warning::new(Code::PropertyWithoutEffect, format!("{name} is kept and has no effect"));
    names.into_iter().map(warn).collect()
}
