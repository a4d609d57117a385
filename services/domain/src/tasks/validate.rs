//! Limits on lists of tasks.

use crate::{
    jobs::validate::launch,
    validate::{MAX_COUNT, MAX_LIST, MAX_SECONDS, count, invalid, label, number, path, shown},
};
use muster_schemas::{
    command::Refusal,
    job::Program,
    tasks::{TaskKind, TaskList, TaskSpec},
};

/// The greatest number of tasks in a list.
pub const MAX_LISTED_TASKS: usize = 100_000;

/// The greatest number of instances of a sweep.
pub const MAX_SWEEP_STEPS: u32 = 1_000_000;

/// Everything about a list that can be checked without the state. `walltime_seconds` is the job's (HPC-J-20,
/// HPC-J-22..J-24).
pub(crate) fn task_list(list: &TaskList, walltime_seconds: Option<u64>) -> Result<(), Refusal> {
    number("tasks.min", list.min.into(), 1, MAX_COUNT.into())?;
    number("tasks.max", list.max.into(), list.min.into(), MAX_COUNT.into())?;
    count("tasks", list.tasks.len(), MAX_LISTED_TASKS)?;
    for (task, number) in list.tasks.iter().zip(1..) {
        self::task(task, number, list, walltime_seconds)?;
    }
    kinds(list)?;
    order(list)
}

/// How messages refer to a task.
fn called(task: &TaskSpec, number: u32) -> String {
    if task.name.is_empty() { format!("task {number}") } else { format!("task {number} `{}`", shown(&task.name)) }
}

fn task(task: &TaskSpec, at: u32, list: &TaskList, walltime_seconds: Option<u64>) -> Result<(), Refusal> {
    let called = called(task, at);
    let field = |name: &str| format!("{called}: {name}");
    label(&field("name"), &task.name)?;
    number(&field("min"), task.min.into(), 1, MAX_COUNT.into())?;
    number(&field("max"), task.max.into(), task.min.into(), MAX_COUNT.into())?;
    if task.min > list.max {
        return invalid(format!(
            "{called}: min: {} is more than the most that the job may have, {}",
            task.min, list.max
        ));
    }
    if let Some(seconds) = task.run_time_seconds {
        number(&field("run_time_seconds"), seconds, 1, MAX_SECONDS)?;
        if let Some(most) = walltime_seconds.filter(|most| seconds > *most) {
            return invalid(format!("{called}: run_time_seconds: {seconds} is more than the job's own, {most}"));
        }
    }
    launch(&task.launch).map_err(|refusal| Refusal::new(refusal.code, format!("{called}: {}", refusal.message)))?;
    if !matches!(task.launch.program, Program::Tasks { .. }) {
        return invalid(format!("{called}: launch.program: expected a command with its arguments"));
    }
    if let Some(folder) = &task.working_directory {
        path(&field("working_directory"), folder)?;
    }
    count(&field("valid_exit_codes"), task.valid_exit_codes.len(), MAX_LIST)?;
    sweep(task, &called)
}

fn sweep(task: &TaskSpec, called: &str) -> Result<(), Refusal> {
    let TaskKind::Sweep { start, increment, steps } = task.kind else { return Ok(()) };
    number(&format!("{called}: steps"), steps.into(), 1, MAX_SWEEP_STEPS.into())?;
    if increment < 1 {
        return invalid(format!("{called}: increment: is {increment}, expected 1 or more"));
    }
    let last = i64::from(start) + i64::from(increment) * i64::from(steps - 1);
    if i32::try_from(last).is_err() {
        return invalid(format!("{called}: its last value would be {last}, the largest possible is {}", i32::MAX));
    }
    Ok(())
}

/// Which kinds can be combined (HPC-J-22, HPC-J-23).
fn kinds(list: &TaskList) -> Result<(), Refusal> {
    let of_kind = |wanted: fn(TaskKind) -> bool| {
        list.tasks.iter().zip(1..).filter(move |(task, _)| wanted(task.kind)).map(|(task, number)| called(task, number))
    };
    let rules = [
        ("prepares nodes", of_kind(|kind| kind == TaskKind::NodePrep).nth(1)),
        ("releases nodes", of_kind(|kind| kind == TaskKind::NodeRelease).nth(1)),
    ];
    for (what, second) in rules {
        if let Some(second) = second {
            return invalid(format!("{second}: {what}, and another task does so too; one may"));
        }
    }
    let mut services = of_kind(|kind| kind == TaskKind::Service);
    let mut work = of_kind(|kind| matches!(kind, TaskKind::Basic | TaskKind::Sweep { .. }));
    match (services.next(), work.next()) {
        (Some(service), Some(other)) => {
            invalid(format!("{service}: is a service, and {other} is not; a service runs alone"))
        }
        (None, None) if !list.tasks.is_empty() => {
            let first = called(&list.tasks[0], 1);
            invalid(format!("{first}: the job has only tasks that prepare or release nodes, and nothing to run there"))
        }
        (None, None) if !list.until_cancelled => {
            invalid("tasks: none is given, and the job is not to keep its resources without".into())
        }
        _ => Ok(()),
    }
}

/// Tasks wait only for existing tasks that are work, and never in a circle.
fn order(list: &TaskList) -> Result<(), Refusal> {
    let is_work = |task: &TaskSpec| !matches!(task.kind, TaskKind::NodePrep | TaskKind::NodeRelease);
    let mut waits_for: Vec<usize> = Vec::with_capacity(list.tasks.len());
    let mut followers: Vec<Vec<u32>> = vec![Vec::new(); list.tasks.len()];
    for (task, place) in list.tasks.iter().zip(0..) {
        let called = called(task, place + 1);
        count(&format!("{called}: after"), task.after.len(), MAX_LIST)?;
        for before in &task.after {
            match list.tasks.get(*before as usize).filter(|before| is_work(before) && is_work(task)) {
                Some(_) => followers[*before as usize].push(place),
                None => return invalid(format!("{called}: after: it cannot wait for task {}", u64::from(*before) + 1)),
            }
        }
        waits_for.push(task.after.len());
    }
    let mut free: Vec<u32> = (0..).zip(&waits_for).filter(|(_, count)| **count == 0).map(|(place, _)| place).collect();
    let mut passed = 0;
    while let Some(place) = free.pop() {
        passed += 1;
        for follower in &followers[place as usize] {
            waits_for[*follower as usize] -= 1;
            if waits_for[*follower as usize] == 0 {
                free.push(*follower);
            }
        }
    }
    let in_circle = waits_for.iter().position(|count| *count > 0).filter(|_| passed < list.tasks.len());
    in_circle.map_or(Ok(()), |place| {
        let called = called(&list.tasks[place], u32::try_from(place + 1).unwrap_or(u32::MAX));
        invalid(format!("{called}: after: tasks wait for each other in a circle"))
    })
}
