//! How the tasks of a step ended, and what `srun` says of it (SL-R-23).

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

/// The exit status of `srun`: the highest of its tasks, 128 and the signal's number for one that a signal ended.
pub fn exit_status(ends: &[TaskEnd]) -> u8 {
    ends.iter().map(|end| end.status.shell_code()).max().unwrap_or(0)
}

/// The lines about tasks that did not end well: one for each node and status, in the order in which they first occur.
pub fn end_lines(ends: &[TaskEnd]) -> Vec<String> {
    let mut merged: Vec<(&str, ExitStatus, IndexSet)> = Vec::new();
    for end in ends.iter().filter(|end| !end.status.is_success()) {
        let known = merged.iter_mut().find(|(node, status, _)| *node == end.node && *status == end.status);
        match known {
            Some((_, _, ranks)) => {
                ranks.insert(end.rank);
            }
            None => merged.push((&end.node, end.status, IndexSet::from_range(end.rank, end.rank))),
        }
    }
    merged.into_iter().map(|(node, status, ranks)| line(node, status, &ranks)).collect()
}

fn line(node: &str, status: ExitStatus, ranks: &IndexSet) -> String {
    let tasks = if ranks.len() == 1 { "task" } else { "tasks" };
    let how = match status {
        ExitStatus::Code(code) => format!("Exited with exit code {code}"),
        ExitStatus::Signal(signal) => describe(signal),
    };
    format!("srun: error: {node}: {tasks} {ranks}: {how}")
}

/// The system's words for a signal.
fn describe(signal: u8) -> String {
    let words = match signal {
        1 => "Hangup",
        2 => "Interrupt",
        3 => "Quit",
        4 => "Illegal instruction",
        5 => "Trace/breakpoint trap",
        6 => "Aborted",
        7 => "Bus error",
        8 => "Floating point exception",
        9 => "Killed",
        10 => "User defined signal 1",
        11 => "Segmentation fault",
        12 => "User defined signal 2",
        13 => "Broken pipe",
        14 => "Alarm clock",
        15 => "Terminated",
        24 => "CPU time limit exceeded",
        25 => "File size limit exceeded",
        number => return format!("Signal {number}"),
    };
    words.to_owned()
}
