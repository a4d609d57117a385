//! Changes of a queued or running job in the form of descriptions (HPC-F-22, HPC-T-10).

use crate::codes::{Code, Refusal};
use muster_schemas::{
    event::{JobChange, Validated},
    job::JobSpec,
    tasks::{SizeUnit, TaskList},
};

/// The change that makes a job match its changed description. `before` and `after` are the results of checking the
/// description, unchanged and changed.
///
/// # Errors
/// `JobXmlNotValid`, naming what can no longer change once a job is in the queue.
pub fn change_of(before: &Validated, after: &Validated) -> Result<JobChange, Refusal> {
    let (old, new) = (&before.spec, &after.spec);
    let first = |spec: &JobSpec| spec.components.first().cloned().unwrap_or_default();
    let (old_part, new_part) = (first(old), first(new));
    let walltime = |spec: &JobSpec| {
        spec.components.first().and_then(|part| part.alternatives.first()).and_then(|one| one.walltime_seconds)
    };
    let fixed = [
        ("the environment", old.environment != new.environment),
        ("the notifications", old.notifications != new.notifications),
        ("the tasks, or properties that go with them", without_size(&before.tasks) != without_size(&after.tasks)),
        ("the template", before.template != after.template),
    ];
    let mut fixed: Vec<&str> = fixed.iter().filter(|(_, changed)| *changed).map(|(name, _)| *name).collect();
    if walltime(old).is_some() && walltime(new).is_none() {
        fixed.push("the run time to Infinite");
    }
    if old_part.account.is_some() && new_part.account.is_none() {
        fixed.push("the project to none");
    }
    if !fixed.is_empty() {
        let text = format!("cannot be changed after submission: {}", fixed.join(", "));
        return Err(Refusal::new(Code::JobXmlNotValid, text));
    }
    let mut asked = new_part.alternatives.clone();
    asked.iter_mut().for_each(|one| one.walltime_seconds = walltime(old));
    let is_new_demand = {
        let mut known = old_part.alternatives.clone();
        known.iter_mut().for_each(|one| one.walltime_seconds = walltime(old));
        known != asked
    };
    let changed = |is_changed: bool| is_changed.then_some(());
    Ok(JobChange {
        name: changed(old.name != new.name).map(|()| new.name.clone()),
        account: changed(old_part.account != new_part.account).and(new_part.account),
        priority: changed(old_part.priority != new_part.priority).and(new_part.priority),
        walltime_seconds: changed(walltime(old) != walltime(new)).and(walltime(new)),
        alternatives: is_new_demand.then(|| {
            let mut asked = asked;
            asked.iter_mut().for_each(|one| one.walltime_seconds = walltime(new));
            asked
        }),
        dependencies: changed(old_part.dependencies != new_part.dependencies).map(|()| new_part.dependencies),
        ..JobChange::default()
    })
}

/// The tasks without the size of the job, which belongs to the demand.
fn without_size(tasks: &Option<TaskList>) -> Option<TaskList> {
    let mut tasks = tasks.clone()?;
    (tasks.unit, tasks.min, tasks.max) = (SizeUnit::Core, 0, 0);
    tasks.tasks.iter_mut().for_each(|task| task.max = task.min);
    Some(tasks)
}
