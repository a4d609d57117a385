//! The tasks of a job: what a sweep runs, and which tasks are compatible (HPC-J-22..24).

use crate::{
    codes::{Code, Refusal},
    description::{JobDescription, TaskDescription, values::TaskType},
    run_time::RunTime,
    size::{Size, task_size},
    sweep::Sweep,
};
use std::collections::{BTreeMap, BTreeSet};

/// Everything wrong with the tasks of a job (HPC-J-22..24), each naming its task. Empty if they may run.
pub fn faults(job: &JobDescription, size: Size, run_time: Option<RunTime>) -> Vec<Refusal> {
    let mut faults = Vec::new();
    let mut fault = |text: String| faults.push(Refusal::new(Code::TaskNotValid, text));
    for (index, task) in job.tasks.iter().enumerate() {
        let name = label(index, task);
        task_faults(task, size, run_time).into_iter().for_each(|text| fault(format!("{name}: {text}")));
    }
    together(&job.tasks).into_iter().for_each(&mut fault);
    order(job).into_iter().for_each(fault);
    faults
}

/// The name of a task in messages.
pub(crate) fn label(index: usize, task: &TaskDescription) -> String {
    match task.attributes.name.as_deref() {
        Some(name) if !name.is_empty() => format!("task {} `{name}`", index + 1),
        _ => format!("task {}", index + 1),
    }
}

fn kind(task: &TaskDescription) -> TaskType {
    task.attributes.task_type.unwrap_or_default()
}

/// The errors of a task, alone and within its job (HPC-J-24).
fn task_faults(task: &TaskDescription, size: Size, run_time: Option<RunTime>) -> Vec<String> {
    let mut faults = Vec::new();
    if kind(task) == TaskType::ParametricSweep
        && let Err(refusal) = Sweep::of(task)
    {
        faults.push(refusal.text);
    }
    let (min, _) = task_size(size.unit, task);
    if min > size.max && !matches!(kind(task), TaskType::NodePrep | TaskType::NodeRelease) {
        faults.push(format!("its minimum of {min} is more than the job's maximum of {}", size.max));
    }
    let seconds = |run_time: Option<RunTime>| run_time.and_then(RunTime::seconds);
    if let (Some(own), Some(job)) = (seconds(task.attributes.run_time), seconds(run_time))
        && own > job
    {
        faults.push(format!("its run time of {own} s is more than the job's of {job} s"));
    }
    faults
}

/// Which tasks are incompatible (HPC-J-23).
fn together(tasks: &[TaskDescription]) -> Vec<String> {
    let mut faults = Vec::new();
    let of = |wanted: TaskType| tasks.iter().enumerate().filter(move |(_, task)| kind(task) == wanted);
    for once in [TaskType::NodePrep, TaskType::NodeRelease] {
        faults.extend(
            of(once).skip(1).map(|(index, task)| format!("{}: a job has at most one {once} task", label(index, task))),
        );
    }
    if of(TaskType::Service).next().is_some() {
        let others = of(TaskType::Basic).chain(of(TaskType::ParametricSweep));
        faults.extend(
            others.map(|(index, task)| format!("{}: a Service task allows no {} task", label(index, task), kind(task))),
        );
    }
    if let Some(task) = tasks.first()
        && tasks.iter().all(|task| matches!(kind(task), TaskType::NodePrep | TaskType::NodeRelease))
    {
        let text = format!("{}: a job of NodePrep and NodeRelease tasks only has nothing to run", label(0, task));
        faults.push(text);
    }
    faults
}

/// The errors in the order of tasks and groups of tasks (HPC-J-24).
fn order(job: &JobDescription) -> Vec<String> {
    let mut faults = Vec::new();
    let name = |task: &TaskDescription| task.attributes.name.clone().unwrap_or_default();
    let names: BTreeSet<String> = job.tasks.iter().map(name).filter(|name| !name.is_empty()).collect();
    let mut first: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (index, task) in job.tasks.iter().enumerate() {
        for wanted in task.attributes.depends_on.iter().flat_map(|names| &names.0) {
            if names.contains(wanted) {
                first.entry(name(task)).or_default().insert(wanted.clone());
            } else {
                faults.push(format!("{}: DependsOn names `{wanted}`, which is no task", label(index, task)));
            }
        }
    }
    if let Some(cycle) = cycle(&first) {
        let cycle: Vec<String> = cycle.iter().map(|name| format!("`{name}`")).collect();
        faults.push(format!("tasks wait for each other: {}", cycle.join(" for ")));
    }
    let mut groups: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for dependency in &job.dependencies {
        groups.entry(dependency.child).or_default().insert(dependency.parent);
    }
    if let Some(cycle) = self::cycle(&groups) {
        let cycle: Vec<String> = cycle.iter().map(u32::to_string).collect();
        faults.push(format!("groups of tasks wait for each other: {}", cycle.join(" for ")));
    }
    faults
}

/// A cycle along the edges, if there is one.
fn cycle<K: Ord + Clone>(edges: &BTreeMap<K, BTreeSet<K>>) -> Option<Vec<K>> {
    // Remove nodes that wait for nothing that is left, until no more can be removed.
    let mut waiting: BTreeMap<&K, usize> = edges.iter().map(|(key, first)| (key, first.len())).collect();
    let mut followers: BTreeMap<&K, Vec<&K>> = BTreeMap::new();
    for (key, first) in edges {
        first.iter().for_each(|first| followers.entry(first).or_default().push(key));
    }
    let mut done: Vec<&K> = followers.keys().filter(|key| !edges.contains_key(**key)).copied().collect();
    while let Some(key) = done.pop() {
        for follower in followers.get(key).into_iter().flatten() {
            let Some(left) = waiting.get_mut(*follower) else { continue };
            *left -= 1;
            if *left == 0 {
                waiting.remove(*follower);
                done.push(follower);
            }
        }
    }
    // Each remaining node waits for another one, so a walk from any of them returns to a node that it has passed.
    let mut next = *waiting.keys().next()?;
    let (mut way, mut passed) = (Vec::new(), BTreeMap::new());
    loop {
        let seen = passed.insert(next, way.len());
        way.push(next.clone());
        if let Some(start) = seen {
            return Some(way.split_off(start));
        }
        next = edges.get(next)?.iter().find(|key| waiting.contains_key(key))?;
    }
}
