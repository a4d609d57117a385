//! Waits for a program's output and end, a deadline and the runner, all at once.

use super::{Supervisor, family, program::Program};
use std::{
    os::fd::{AsRawFd, RawFd},
    time::Instant,
};

/// The event to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The program has ended.
    Exit,
    /// It has written a line.
    Line,
    /// The runner has sent something, or is gone.
    Order,
    /// The program has ended; the runner is not asked.
    Leave,
    /// Nothing is left of the program; the runner is not asked.
    Alone,
}

/// The reason for waking up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The goal.
    Reached,
    /// The program ended without a line.
    Exited,
    /// The deadline.
    Late,
    /// The runner is gone, or no longer wants the result.
    RunnerGone,
}

/// Indices in the array of [`Supervisor::wait`].
const CHILDREN: usize = 0;
const RUNNER: usize = 1;
const STDOUT: usize = 2;
const STDERR: usize = 3;
const STDIN: usize = 4;

impl Supervisor {
    /// Waits until the goal is reached or cannot be, handling the program's streams and ended children meanwhile.
    pub fn wait(&mut self, program: &mut Program, goal: Goal, deadline: Option<Instant>) -> Wake {
        let asks_runner = matches!(goal, Goal::Exit | Goal::Line | Goal::Order);
        loop {
            if let Some(wake) = reached(program, goal) {
                return wake;
            }
            let Some(timeout) = milliseconds_until(deadline) else { return Wake::Late };
            let mut polled = [
                entry(Some(&self.children), libc::POLLIN),
                entry(Some(&self.runner).filter(|_| asks_runner), libc::POLLIN),
                entry(program.stdout.pipe.as_ref(), libc::POLLIN),
                entry(program.stderr.pipe.as_ref(), libc::POLLIN),
                entry(program.stdin.waits_for(), libc::POLLOUT),
            ];
            // SAFETY: the array lives through the call, which writes to it only. An interrupted call leaves no results.
            unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout) };
            let ready = polled.map(|entry| entry.revents != 0);
            if ready[STDOUT] {
                program.stdout.pump();
            }
            if ready[STDERR] {
                program.stderr.pump();
            }
            if ready[STDIN] {
                program.stdin.pump();
            }
            if ready[CHILDREN] {
                while let Ok(Some(_)) = self.children.read_signal() {}
                family::reap(Some(program));
            }
            if ready[RUNNER] {
                return if goal == Goal::Order { Wake::Reached } else { Wake::RunnerGone };
            }
        }
    }
}

fn reached(program: &mut Program, goal: Goal) -> Option<Wake> {
    let ended = program.ended.is_some();
    match goal {
        Goal::Exit | Goal::Leave => ended.then_some(Wake::Reached),
        Goal::Alone => program.alone.then_some(Wake::Reached),
        Goal::Order => None,
        Goal::Line => {
            if ended {
                program.stdout.drain();
            }
            let has_line = program.stdout.has_line();
            has_line.then_some(Wake::Reached).or_else(|| ended.then_some(Wake::Exited))
        }
    }
}

/// `poll` ignores an entry without a file.
fn entry(file: Option<&impl AsRawFd>, events: i16) -> libc::pollfd {
    let fd: RawFd = file.map_or(-1, AsRawFd::as_raw_fd);
    libc::pollfd { fd, events, revents: 0 }
}

/// `None` if the deadline has passed; −1 waits for ever.
fn milliseconds_until(deadline: Option<Instant>) -> Option<i32> {
    let Some(deadline) = deadline else { return Some(-1) };
    let left = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
    // Rounded up, so that the last millisecond is not spent in a busy loop.
    Some(i32::try_from(left.as_millis()).unwrap_or(i32::MAX - 1) + 1)
}
