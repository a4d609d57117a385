//! The supervisor: a separate process that runs one command or mail program and everything that it starts.
//!
//! The supervisor is the sub-reaper, so all of that descends from it, including processes that left their process group
//! or session or lost their parent. It lives as long as its standard input, on which it gets its order: when the
//! notifier closes it or dies, the supervisor kills what it runs and ends.

use crate::account::Numbers;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{SigSet, Signal, kill, killpg},
        signalfd::{SfdFlags, SignalFd},
        stat::{Mode, umask},
    },
    unistd::{Gid, Pid, Uid, getpgrp, setgroups, setresgid, setresuid, setsid},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _},
    os::{
        fd::{AsFd as _, FromRawFd as _},
        unix::process::CommandExt as _,
    },
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The first argument that makes the program a supervisor.
pub const ARGUMENT: &str = "command-supervisor";
/// How long to wait after SIGKILL: a process may hang in the kernel, or belong to a user that this process may not
/// kill.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// What to run. It is sent on the standard input as one line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub program: String,
    /// Without the program's name.
    pub arguments: Vec<String>,
    /// All of its environment.
    pub environment: Vec<(String, String)>,
    /// What it reads on its standard input.
    pub input: String,
    /// The user to become first; `None` for no change.
    pub account: Option<Numbers>,
    pub limit_seconds: u64,
    /// Whether processes that it leaves running may continue until the limit. Otherwise they are killed at once.
    pub lingers: bool,
}

/// How it ended. It is sent on the standard output as one line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It was not started, for this reason.
    NotStarted(String),
    /// It ended with this status, as the kernel reports it.
    Ended(i32),
    /// It was killed at its limit.
    TimedOut,
}

/// Turns this process into a supervisor if its arguments say so, and never returns then. A program that runs notifiers
/// calls it first, before it starts a thread or opens a file.
pub fn supervise_commands_if_asked() {
    if std::env::args_os().nth(1).is_none_or(|first| first != ARGUMENT) {
        return;
    }
    let status = match supervise() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{ARGUMENT} is started by muster's notifier, not by people: {error}");
            1
        }
    };
    // SAFETY: the process ends here; nothing is buffered, and no destructor has anything to save.
    unsafe { libc::_exit(status) }
}

fn supervise() -> io::Result<()> {
    // SAFETY: the call has no memory effects; nothing in this process has other files open yet.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    // Signals meant for the notifier's session must not reach it.
    let _ = setsid();
    for signal in Signal::iterator() {
        let ignored = signal == Signal::SIGPIPE;
        // SAFETY: neither action runs code of this program. Signals that the notifier's parent ignored are no longer
        // ignored.
        unsafe { libc::signal(signal as i32, if ignored { libc::SIG_IGN } else { libc::SIG_DFL }) };
    }
    let _ = prctl::set_name(c"muster-command");
    prctl::set_child_subreaper(true)?;
    umask(Mode::from_bits_truncate(0o022));
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block()?;
    let children = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    let (order, lifeline) = receive()?;
    Supervisor { order, lifeline, children }.run()
}

/// The order, and the file that closes when the notifier gives it up.
fn receive() -> io::Result<(Order, File)> {
    // SAFETY: the standard input is a pipe from the notifier, and nothing else uses it.
    let mut input = BufReader::new(unsafe { File::from_raw_fd(0) });
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    Ok((serde_json::from_slice(&line)?, input.into_inner()))
}

fn tell(report: &Report) {
    let Ok(mut line) = serde_json::to_vec(report) else { return };
    line.push(b'\n');
    // A reader that does not get it is gone.
    let _ = io::stdout().write_all(&line).and_then(|()| io::stdout().flush());
}

struct Supervisor {
    order: Order,
    lifeline: File,
    /// Becomes readable when a child ends.
    children: SignalFd,
}

/// What a supervisor waits for.
enum Wake {
    ChildEnded,
    Late,
    NotifierGone,
}

impl Supervisor {
    fn run(self) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(self.order.limit_seconds);
        let program = match start(&self.order) {
            Ok(program) => program,
            Err(error) => {
                tell(&Report::NotStarted(error.to_string()));
                return Ok(());
            }
        };
        let mut has_ended = false;
        let report = loop {
            let (status, alone) = reap(program);
            if let Some(status) = status {
                has_ended = true;
                if !self.order.lingers {
                    break Some(Report::Ended(status));
                }
                tell(&Report::Ended(status));
            }
            if alone {
                return Ok(());
            }
            match self.wait(deadline)? {
                Wake::ChildEnded => {}
                Wake::Late => break (!has_ended).then_some(Report::TimedOut),
                Wake::NotifierGone => break None,
            }
        };
        kill_all();
        if let Some(report) = report {
            tell(&report);
        }
        Ok(())
    }

    fn wait(&self, deadline: Instant) -> io::Result<Wake> {
        let events = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut files = [events(self.lifeline.as_fd()), events(self.children.as_fd())];
        let left = deadline.saturating_duration_since(Instant::now()).as_millis().saturating_add(1);
        let timeout = PollTimeout::try_from(i32::try_from(left).unwrap_or(i32::MAX)).unwrap_or(PollTimeout::MAX);
        match poll(&mut files, timeout) {
            Ok(0) => return Ok(Wake::Late),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |file: &PollFd| file.any().unwrap_or(false);
        if is_ready(&files[0]) && (&self.lifeline).read(&mut [0]).is_ok_and(|count| count == 0) {
            return Ok(Wake::NotifierGone);
        }
        while let Ok(Some(_)) = self.children.read_signal() {}
        Ok(if Instant::now() >= deadline { Wake::Late } else { Wake::ChildEnded })
    }
}

/// Starts the program in its own session and returns its process id.
fn start(order: &Order) -> io::Result<i32> {
    // Both of its outputs go to the supervisor's standard error.
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    let mut command = Command::new(&order.program);
    command
        .args(&order.arguments)
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(input(order.input.as_bytes())?)
        .stdout(Stdio::from(output))
        .stderr(Stdio::inherit());
    let account = order.account.clone();
    // SAFETY: this process has one thread, so the child may do everything that the parent may.
    unsafe { command.pre_exec(move || Ok(become_program(account.as_ref())?)) };
    let child = command.spawn()?;
    i32::try_from(child.id()).map_err(io::Error::other)
}

/// An in-memory file, read from its beginning: unlike a pipe it holds any text, and a program may leave it unread.
fn input(text: &[u8]) -> io::Result<File> {
    // SAFETY: the name is a string, and the descriptor that the call makes belongs to nobody else.
    let mut file = unsafe {
        let descriptor = Errno::result(libc::memfd_create(c"input".as_ptr(), libc::MFD_CLOEXEC))?;
        File::from_raw_fd(descriptor)
    };
    file.write_all(text)?;
    file.rewind()?;
    Ok(file)
}

fn become_program(account: Option<&Numbers>) -> Result<(), Errno> {
    setsid()?;
    if let Some(Numbers { uid, gid, groups }) = account {
        let groups: Vec<Gid> = groups.iter().copied().map(Gid::from_raw).collect();
        let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
        setgroups(&groups)?;
        setresgid(gid, gid, gid)?;
        setresuid(uid, uid, uid)?;
    }
    // If the supervisor is killed, the program dies too. A change of user would undo this.
    prctl::set_pdeathsig(Signal::SIGKILL)
}

/// Reaps the children that have ended: the status of `program` if it is among them, and whether none is left.
fn reap(program: i32) -> (Option<i32>, bool) {
    let mut ended = None;
    loop {
        let mut status = 0;
        // SAFETY: the call writes to the status only.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return (ended, false),
            -1 => return (ended, Errno::last() == Errno::ECHILD),
            process if process == program => ended = Some(status),
            _ => {}
        }
    }
}

/// Kills all descendants and waits until they are gone. Children of a killed child become children of this process, so
/// it is enough to kill children, with their groups, until there are none.
fn kill_all() {
    let begun = Instant::now();
    while !reap(0).1 && begun.elapsed() < KILL_PATIENCE {
        for (process, group) in children() {
            if group > Pid::from_raw(1) && group != getpgrp() {
                let _ = killpg(group, Signal::SIGKILL);
            }
            let _ = kill(process, Signal::SIGKILL);
        }
        // A killed process ends within this time, unless it hangs in the kernel.
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// The children of this process, each with its process group.
fn children() -> Vec<(Pid, Pid)> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let of_this = |process: i32| {
        let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
        let (parent, group) = parse_stat(&String::from_utf8_lossy(&stat))?;
        (parent == std::process::id() as i32).then_some((Pid::from_raw(process), Pid::from_raw(group)))
    };
    processes.filter_map(of_this).collect()
}

/// Parent and group of a process. The name in the second field can contain anything, even spaces and brackets; the
/// fields to read begin after its last bracket.
fn parse_stat(stat: &str) -> Option<(i32, i32)> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_and_group_are_found_behind_any_name() {
        assert_eq!(parse_stat("12 (a b) c) S 7 9 12 0"), Some((7, 9)));
        assert_eq!(parse_stat(""), None);
    }
}
