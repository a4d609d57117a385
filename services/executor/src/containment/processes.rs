//! Processes found by walking `/proc`.
//!
//! A process number that was just read is used for a signal without a further check: the kernel gives numbers out in
//! turn, and would have to start as many processes as there are numbers in between.

use nix::{
    sched::{CpuSet, sched_setaffinity},
    unistd::Pid,
};
use std::{collections::HashMap, fs};

/// Sends a signal to each; returns how many took it.
pub fn signal_all(processes: &[i32], signal: i32) -> usize {
    // SAFETY: kill has no memory effects. The numbers are above 1: never a group, never everybody.
    let takes = |process: &&i32| unsafe { libc::kill(**process, signal) } == 0;
    processes.iter().filter(takes).count()
}

/// Binds each, with all its threads, to these CPUs, ignoring those that end meanwhile.
pub fn bind_all(processes: &[i32], cpus: &[u32]) {
    let mut set = CpuSet::new();
    if cpus.iter().any(|cpu| set.set(*cpu as usize).is_err()) {
        return;
    }
    for process in processes {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
        for thread in threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()) {
            let _ = sched_setaffinity(Pid::from_raw(thread), &set);
        }
    }
}

/// All living descendants of this process.
pub fn descendants_of_this() -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (process, parent) in all().filter_map(|process| Some((process, living_parent(process)?))) {
        children.entry(parent).or_default().push(process);
    }
    let mut descendants = children.remove(&(std::process::id() as i32)).unwrap_or_default();
    let mut next = 0;
    while let Some(process) = descendants.get(next) {
        descendants.extend(children.remove(process).unwrap_or_default());
        next += 1;
    }
    descendants
}

/// Stops all descendants of this process, including those started meanwhile.
pub fn stop_descendants() {
    let mut stopped = 0;
    loop {
        let processes = descendants_of_this();
        signal_all(&processes, libc::SIGSTOP);
        // A stopped process starts no other: once the number is stable, all are stopped.
        if processes.len() == stopped {
            return;
        }
        stopped = processes.len();
    }
}

/// All processes whose environment had all of these variables (`NAME=VALUE`) at their start.
pub fn marked(variables: &[String]) -> Vec<i32> {
    let own = std::process::id() as i32;
    let is_marked = |process: &i32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let has = |variable: &String| environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes());
        *process != own && variables.iter().all(has)
    };
    all().filter(is_marked).collect()
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(|process| *process > 1)
}

/// The parent of a process that is not a zombie.
fn living_parent(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    parse_stat(&stat)
}

/// The name in the second field can hold anything, even spaces and brackets; the other fields follow its last bracket.
fn parse_stat(stat: &str) -> Option<i32> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        assert_eq!(parse_stat("12 (a b) c) S 7 12 12 0"), Some(7));
        assert_eq!(parse_stat("12 (x) Z 7 12 12 0"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn children_are_descendants() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(descendants_of_this().contains(&(child.id() as i32)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants_of_this().contains(&(child.id() as i32)));
    }
}
