//! How the tasks of a step ended, and the messages of `srun` about it (SL-R-23).

use crate::words::signal_text;
use muster_schemas::{job::ExitStatus, resources::IndexSet};

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEnd {
    /// Its node.
    pub node: String,
    /// Its rank.
    pub rank: u32,
    /// How it ended.
    pub status: ExitStatus,
}

/// How a step ended: like the task with the highest status. The exit status of `srun` is that of a shell.
pub fn exit_status(ends: &[TaskEnd]) -> ExitStatus {
    worst(ends.iter().map(|end| end.status))
}

/// The highest of several statuses, where a signal counts as 128 plus its number; success if there are none.
pub fn worst(statuses: impl IntoIterator<Item = ExitStatus>) -> ExitStatus {
    let by_height = |status: &ExitStatus| (status.shell_code(), matches!(status, ExitStatus::Signal(_)));
    statuses.into_iter().max_by_key(by_height).unwrap_or(ExitStatus::Code(0))
}

/// The lines about unsuccessful tasks: one for each node and status, in order of appearance. On the nodes in
/// `out_of_memory` the kernel killed them.
pub fn end_lines(ends: &[TaskEnd], out_of_memory: &[&str]) -> Vec<String> {
    let mut merged: Vec<(&str, String, IndexSet)> = Vec::new();
    for end in ends.iter().filter(|end| !end.status.is_success()) {
        let how = how(end, out_of_memory);
        let known = merged.iter_mut().find(|(node, other, _)| *node == end.node && *other == how);
        match known {
            Some((_, _, ranks)) => {
                ranks.insert(end.rank);
            }
            None => merged.push((&end.node, how, IndexSet::from_range(end.rank, end.rank))),
        }
    }
    merged.into_iter().map(|(node, how, ranks)| line(node, &how, &ranks)).collect()
}

/// The standard error of a step's tasks if some of them used too much memory on a node. `step` is `7.0`. The kernel's
/// kills are not counted: each killed task counts once, and so does one that passes on the status of a killed child.
pub fn out_of_memory_line(step: &str, node: &str, ends: &[TaskEnd]) -> String {
    let events = ends.iter().filter(|end| end.node == node && was_killed(end)).count().max(1);
    let word = if events == 1 { "event" } else { "events" };
    let what = format!("Detected {events} oom_kill {word} in StepId={step}.");
    format!("slurmstepd: error: {what} Some of the step tasks have been OOM Killed.")
}

/// By SIGKILL, or with a shell's status for a command killed by it.
fn was_killed(end: &TaskEnd) -> bool {
    end.status.shell_code() == ExitStatus::Signal(9).shell_code()
}

fn line(node: &str, how: &str, ranks: &IndexSet) -> String {
    let tasks = if ranks.len() == 1 { "task" } else { "tasks" };
    format!("srun: error: {node}: {tasks} {ranks}: {how}")
}

fn how(end: &TaskEnd, out_of_memory: &[&str]) -> String {
    if was_killed(end) && out_of_memory.contains(&end.node.as_str()) {
        return "Out Of Memory".to_owned();
    }
    match end.status {
        ExitStatus::Code(code) => format!("Exited with exit code {code}"),
        ExitStatus::Signal(signal) => signal_text(signal),
    }
}
