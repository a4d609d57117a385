//! The descendants of a supervisor: all that its filter has started.
//!
//! A number that was read a moment ago is used for a signal without a further check: the kernel gives numbers out in turn, and
//! would have to start as many processes as there are numbers in between.

use super::program::Program;
use muster_schemas::filter::FilterExit;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::{Duration, Instant},
};

/// Takes leave of the children that have ended, and notes how `program` did if it is among them. Whether no child is left.
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

/// Sends a signal to every descendant. Whole process groups get it: that reaches also what is started meanwhile. They hold
/// nobody else, as every filter begins with a session of its own, which groups cannot reach across.
pub fn signal(signal: i32) {
    for group in groups() {
        // SAFETY: kill has no memory effects. The numbers are above 1: never everybody, never this process's own group.
        unsafe { libc::kill(-group, signal) };
    }
}

/// Kills all descendants and waits until they are gone, at most for the time given. Whether they are.
pub fn kill(mut program: Option<&mut Program>, patience: Option<Duration>) -> bool {
    let begun = Instant::now();
    while !reap(program.as_deref_mut()) {
        if patience.is_some_and(|patience| begun.elapsed() > patience) {
            return false;
        }
        signal(libc::SIGKILL);
        // What is killed ends within this time, unless it hangs in the kernel.
        std::thread::sleep(Duration::from_micros(500));
    }
    true
}

/// The process groups of all descendants of this process that are not dead.
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
    // A group of number 0 belongs to another namespace.
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

/// The name in the second field can hold anything, also spaces and brackets; what counts begins after its last bracket.
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
