//! The descendants of a supervisor: everything that its filter has started.
//!
//! A process id read a moment ago is used for a signal without another check: the kernel assigns ids in turn, and would
//! have to start as many processes as there are ids in between.

use super::program::Program;
use muster_schemas::filter::FilterExit;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

/// Reaps the children that have ended, and notes the status of `program` if it is among them. Returns whether none is
/// left.
pub fn reap(mut program: Option<&mut Program>) -> bool {
    let alone = loop {
        let mut status = 0;
        // SAFETY: the call writes to the status only.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => break false,
            -1 => break std::io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD),
            process => {
                if let Some(program) = program.as_deref_mut().filter(|program| program.process == process) {
                    program.ended = Some(result_of(status));
                }
            }
        }
    };
    if let Some(program) = program {
        program.alone = alone;
    }
    alone
}

fn result_of(status: i32) -> FilterExit {
    if libc::WIFSIGNALED(status) {
        FilterExit::Signal(libc::WTERMSIG(status) as u8)
    } else {
        FilterExit::Code(libc::WEXITSTATUS(status) as u8)
    }
}

/// Sends a signal to every descendant, by process group, so that it also reaches processes started meanwhile. The
/// groups contain nothing else, as every filter starts in its own session, which groups cannot cross.
pub fn signal(signal: i32) {
    for group in groups() {
        // SAFETY: kill has no memory effects. The numbers are above 1: never everybody, never this process's own group.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Kills all descendants and waits until they are gone or the time is over. Returns whether they are gone.
pub fn kill(mut program: Option<&mut Program>, patience: Option<Duration>) -> bool {
    let begun = Instant::now();
    while !reap(program.as_deref_mut()) {
        if patience.is_some_and(|patience| begun.elapsed() > patience) {
            return false;
        }
        signal(libc::SIGKILL);
        // A killed process ends within this time, unless it hangs in the kernel.
        std::thread::sleep(Duration::from_micros(500));
    }
    true
}

/// The process groups of all living descendants of this process.
fn groups() -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<(i32, i32)>> = BTreeMap::new();
    for (process, (parent, group)) in processes().filter_map(|process| Some((process, living(process)?))) {
        children.entry(parent).or_default().push((process, group));
    }
    let mut descendants = children.remove(&(std::process::id() as i32)).unwrap_or_default();
    let mut next = 0;
    while let Some((process, _)) = descendants.get(next) {
        descendants.extend(children.remove(process).unwrap_or_default());
        next += 1;
    }
    // Group 0 belongs to another namespace.
    descendants.into_iter().map(|(_, group)| group).filter(|group| *group > 1).collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(|process| *process > 1)
}

/// Parent and group of a process that is not a zombie.
fn living(process: i32) -> Option<(i32, i32)> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&stat))
}

/// The name in the second field can contain anything, even spaces and brackets; the fields to read begin after its last
/// bracket.
fn parse_stat(stat: &str) -> Option<(i32, i32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (!matches!(state, "Z" | "X")).then_some((parent, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_group_are_found_behind_any_name() {
        assert_eq!(parse_stat("12 (a b) c) S 7 9 12 0"), Some((7, 9)));
        assert_eq!(parse_stat("12 (x) Z 7 9 12 0"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn a_status_is_an_exit_code_or_a_signal() {
        assert_eq!(result_of(255 << 8), FilterExit::Code(255));
        assert_eq!(result_of(libc::SIGSEGV | 0x80), FilterExit::Signal(11));
        assert_eq!(result_of(libc::SIGRTMAX()), FilterExit::Signal(64));
    }
}
