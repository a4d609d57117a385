//! Turns the tasks of a description into tasks of a job (HPC-J-20..22, J-24).

use super::demand::MOST_UNITS;
use crate::{
    codes::{Code, Refusal},
    description::{
        JobDescription, TaskDescription,
        attributes::JobAttributes,
        values::{TaskType, UnitType},
    },
    run_time::RunTime,
    size::{Size, task_size},
    sweep::Sweep,
    tasks::label,
};
use muster_schemas::{
    job::{Launch, Program},
    tasks::{SizeUnit, TaskKind, TaskList, TaskSpec},
};
use std::collections::{BTreeMap, BTreeSet};

/// The program that runs command lines.
const SHELL: &str = "/bin/sh";

/// The tasks, in order.
///
/// # Errors
/// `TaskNotValid`, naming each task that cannot run.
pub(super) fn tasks(
    description: &JobDescription,
    values: &JobAttributes,
    size: Size,
) -> Result<TaskList, Vec<Refusal>> {
    let first = Order::of(description);
    let made = description.tasks.iter().enumerate().map(|(index, task)| {
        let made = task_of(task, values, size, first.before(index, task));
        made.map_err(|refusal| Refusal::new(refusal.code, format!("{}: {}", label(index, task), refusal.text)))
    });
    let (made, wrong): (Vec<_>, Vec<_>) = made.partition(Result::is_ok);
    let mut wrong: Vec<Refusal> = wrong.into_iter().filter_map(Result::err).collect();
    let until_cancelled = values.run_until_canceled == Some(true);
    if description.tasks.is_empty() && !until_cancelled {
        wrong.push(Refusal::new(Code::TaskNotValid, "the job has no task, and nothing to run"));
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let max = size.max.min(MOST_UNITS);
    Ok(TaskList {
        unit: match size.unit {
            UnitType::Core => SizeUnit::Core,
            UnitType::Socket => SizeUnit::Socket,
            UnitType::Node => SizeUnit::Node,
        },
        min: size.min.min(max),
        max,
        tasks: made.into_iter().filter_map(Result::ok).collect(),
        until_cancelled,
        fail_on_task_failure: values.fail_on_task_failure == Some(true),
        fail_dependents: values.fail_dependent_tasks == Some(true),
        preemptable: values.preemptable.unwrap_or(true),
    })
}

fn task_of(task: &TaskDescription, values: &JobAttributes, size: Size, after: Vec<u32>) -> Result<TaskSpec, Refusal> {
    let attributes = &task.attributes;
    let kind = match attributes.task_type.unwrap_or_default() {
        TaskType::Basic => TaskKind::Basic,
        TaskType::ParametricSweep => {
            let sweep = Sweep::of(task)?;
            TaskKind::Sweep { start: sweep.start(), increment: sweep.increment(), steps: sweep.steps() }
        }
        TaskType::NodePrep => TaskKind::NodePrep,
        TaskType::NodeRelease => TaskKind::NodeRelease,
        TaskType::Service => TaskKind::Service,
    };
    let (min, max) = match kind {
        // These run once on a node, whatever its size.
        TaskKind::NodePrep | TaskKind::NodeRelease => (1, 1),
        _ => task_size(size.unit, task),
    };
    let codes = attributes.valid_exit_codes.as_ref().or(values.job_valid_exit_codes.as_ref());
    Ok(TaskSpec {
        name: attributes.name.clone().unwrap_or_default(),
        kind,
        min,
        // Not capped at the job's current maximum: that can be raised while it waits.
        max: max.min(MOST_UNITS).max(min),
        run_time_seconds: attributes.run_time.and_then(RunTime::seconds).map(u64::from),
        after,
        launch: launch(task)?,
        environment: task.environment.clone(),
        working_directory: attributes.work_directory.clone().filter(|path| !path.is_empty()),
        valid_exit_codes: codes.map(|codes| codes.0.clone()).unwrap_or_default(),
        rerunnable: attributes.is_rerunnable.unwrap_or(true),
    })
}

fn launch(task: &TaskDescription) -> Result<Launch, Refusal> {
    let attributes = &task.attributes;
    let line = attributes.command_line.as_deref().filter(|line| !line.trim().is_empty());
    let line = line.ok_or_else(|| Refusal::new(Code::TaskNotValid, "it has no CommandLine"))?;
    let path = |path: &Option<String>| path.clone().filter(|path| !path.is_empty());
    Ok(Launch {
        program: Program::Tasks { argv: vec![SHELL.to_owned(), "-c".to_owned(), line.to_owned()] },
        stdout: path(&attributes.std_out_file_path),
        stderr: path(&attributes.std_err_file_path),
        stdin: path(&attributes.std_in_file_path),
        ..Launch::default()
    })
}

/// Which tasks wait for which.
struct Order<'d> {
    by_name: BTreeMap<&'d str, Vec<u32>>,
    by_group: BTreeMap<u32, Vec<u32>>,
    /// The groups before each group.
    parents: BTreeMap<u32, BTreeSet<u32>>,
}

impl<'d> Order<'d> {
    fn of(description: &'d JobDescription) -> Self {
        let mut order = Self { by_name: BTreeMap::new(), by_group: BTreeMap::new(), parents: BTreeMap::new() };
        for (index, task) in (0..).zip(&description.tasks) {
            if let Some(name) = task.attributes.name.as_deref().filter(|name| !name.is_empty()) {
                order.by_name.entry(name).or_default().push(index);
            }
            if let Some(group) = task.attributes.group_id {
                order.by_group.entry(group).or_default().push(index);
            }
        }
        for dependency in &description.dependencies {
            order.parents.entry(dependency.child).or_default().insert(dependency.parent);
        }
        order
    }

    /// The tasks that must have ended before a task, by index.
    fn before(&self, index: usize, task: &TaskDescription) -> Vec<u32> {
        let named = task.attributes.depends_on.iter().flat_map(|names| &names.0);
        let named = named.filter_map(|name| self.by_name.get(name.as_str())).flatten();
        let groups = task.attributes.group_id.and_then(|group| self.parents.get(&group));
        let grouped = groups.into_iter().flatten().filter_map(|group| self.by_group.get(group)).flatten();
        let before: BTreeSet<u32> = named.chain(grouped).copied().collect();
        before.into_iter().filter(|other| *other as usize != index).collect()
    }
}
