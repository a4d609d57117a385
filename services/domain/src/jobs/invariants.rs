//! Invariants of jobs, arrays, numbers and shapes.

use crate::{
    filters,
    invariants::ensure,
    jobs::{Job, Phase},
    state::State,
};
use muster_schemas::{JobId, resources::IndexSet};
use std::collections::BTreeMap;

/// All numbers of jobs, components and tasks are distinct, and task numbers are known as long as any job of their array
/// is.
pub(crate) fn numbers(state: &State) -> Result<(), String> {
    for (array, tasks) in &state.numbers.arrays {
        ensure(state.job_with_tasks(*array).next().is_some(), || format!("array {array}: numbers of nothing"))?;
        let after = array + tasks.total();
        ensure(after <= state.next_job_number(), || {
            format!("array {array}: numbers of its tasks would be given again")
        })?;
        let between = state.jobs.range(JobId::job(array + 1)..JobId::job(after)).next();
        ensure(between.is_none(), || format!("array {array}: job {between:?} has a number of its tasks"))?;
    }
    let from = state.task_numbers_from().unwrap_or(u64::MAX);
    for job in state.jobs().filter(|job| job.id.number >= from) {
        let tasks = state.numbered_tasks(job.id.number);
        let is_known = job.id.index.is_none_or(|index| tasks.is_some_and(|tasks| tasks.contains(index)));
        ensure(is_known, || format!("task {} has no number", job.id))?;
        let total = job.array.as_ref().map(|array| array.tasks);
        ensure(total.is_none_or(|total| tasks.map(IndexSet::len) == Some(total)), || {
            format!("array {}: {tasks:?} have numbers", job.id)
        })?;
    }
    Ok(())
}

/// Each task of an array is in one place only.
pub(crate) fn array(state: &State, whole: &Job) -> Result<(), String> {
    let Some(array) = &whole.array else { return Ok(()) };
    let id = whole.id;
    let tasks: Vec<&Job> = state.job_with_tasks(id.number).filter(|job| job.id.index.is_some()).collect();
    let running = tasks.iter().filter(|task| task.run().is_some() || filters::invariants::is_kept(task)).count();
    let unfinished = tasks.iter().filter(|task| !task.is_finished()).count();
    ensure(running == array.running as usize, || format!("array {id}: {running} run, {} counted", array.running))?;
    ensure(unfinished == array.unfinished as usize, || {
        format!("array {id}: {unfinished} have started and are not over, {} counted", array.unfinished)
    })?;
    let total = array.remaining.len() + u64::from(array.unfinished) + array.finished_tasks();
    ensure(total == array.tasks, || format!("array {id}: {total} of {} tasks", array.tasks))?;
    ensure(array.remaining.contains_all(&array.impossible), || format!("array {id}: impossible tasks have started"))?;
    ensure(array.held.keys().all(|index| array.remaining.contains(*index)), || format!("array {id}: held tasks"))?;
    for task in tasks {
        let index = task.id.index.unwrap_or_default();
        ensure(!array.remaining.contains(index), || format!("task {}: still among those that wait", task.id))?;
        let outcome = task.finished().map(|finished| &finished.outcome);
        ensure(array.task_outcome(index) == outcome, || format!("task {}: the array says otherwise", task.id))?;
    }
    let over = matches!(whole.phase, Phase::Finished(_));
    ensure(!over || array.is_over(), || format!("array {id}: is over before its tasks"))
}

pub(crate) fn shapes(state: &State) -> Result<(), String> {
    let mut uses = BTreeMap::new();
    for component in state.jobs().flat_map(|job| job.components.iter()) {
        *uses.entry(component.shape.id).or_insert(0) += 1;
        let kept = state.shapes().get(component.shape.id);
        ensure(kept == Some(&component.shape), || format!("shape {:?} is not what is kept", component.shape.id))?;
    }
    let counted = state.shapes().uses();
    ensure(uses == counted, || format!("shapes are used {uses:?}, counted {counted:?}"))
}
