//! The children of a process, and their ends.

use crate::containment::processes;
use muster_schemas::job::{ExitStatus, Usage};
use nix::errno::Errno;
use std::time::{Duration, Instant};

/// Collects dead children and ignores their results.
pub fn reap_silently() {
    while matches!(wait_for_child(), Wait::Dead { .. }) {}
}

/// Ends all descendants of this process.
pub fn end_children() {
    end_children_and(None, reap_silently);
}

/// As above; `collect` receives the dead. Returns whether all have ended, at the deadline at the latest.
pub fn end_children_and(deadline: Option<Instant>, mut collect: impl FnMut()) -> bool {
    let mut pause = Duration::from_micros(200);
    loop {
        collect();
        if !has_children() {
            return true;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return false;
        }
        processes::stop_descendants();
        processes::signal_all(&processes::descendants_of_this(), libc::SIGKILL);
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(250));
    }
}

fn has_children() -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::All, look) != Err(Errno::ECHILD)
}

pub enum Wait {
    Dead { process: i32, status: ExitStatus, usage: Usage },
    NoneIsDead,
}

pub fn wait_for_child() -> Wait {
    let mut status = 0;
    // SAFETY: all zero is a valid value of this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to variables of the right types.
    let process = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
    if process <= 0 {
        return Wait::NoneIsDead;
    }
    let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let usage = Usage {
        cpu_time_micros: micros(usage.ru_utime) + micros(usage.ru_stime),
        peak_memory_bytes: usage.ru_maxrss as u64 * 1024,
        system_time_micros: micros(usage.ru_stime),
    };
    let status = if libc::WIFSIGNALED(status) {
        ExitStatus::Signal(libc::WTERMSIG(status) as u8)
    } else {
        ExitStatus::Code(libc::WEXITSTATUS(status) as u8)
    };
    Wait::Dead { process, status, usage }
}
