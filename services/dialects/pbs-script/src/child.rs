//! Processes of programs: bounded, in a group of their own, and gone with it.

use crate::source;
use nix::{
    errno::Errno,
    sys::{
        prctl::set_pdeathsig,
        resource::{Resource, getrlimit, setrlimit},
        signal::{Signal, killpg},
        wait::{Id, WaitPidFlag, WaitStatus, waitid},
    },
    unistd::Pid,
};
use std::{
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The search path of programs.
pub const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Open files that a process may have.
const MOST_FILES: u64 = 1024;
/// Bytes of a file that a process may write.
const LARGEST_FILE: u64 = 1 << 30;
/// Between two looks at whether a process has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Where a program runs, and with how much memory.
#[derive(Clone, Copy, Debug)]
pub struct Room<'r> {
    /// Its folder.
    pub folder: &'r Path,
    /// Its time zone.
    pub zone: Option<&'r str>,
    /// Bytes of memory, 0 for any amount.
    pub memory_bytes: u64,
}

/// A running process, the leader of its group. Dropping it kills the group. It also dies with the thread that started
/// it, even if that is killed and drops nothing.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Pid,
    is_reaped: bool,
}

impl Process {
    /// Starts a program without a shell, with a clean environment.
    ///
    /// # Errors
    /// It cannot be started, or this process is root and somebody else can change what it would run.
    pub fn start(
        command: &[String],
        room: Room<'_>,
        (input, output, errors): (Stdio, Stdio, Stdio),
    ) -> Result<Self, String> {
        let Some((program, arguments)) = command.split_first() else { return Err("no command is configured".into()) };
        source::require_guarded_command(room.folder, command)?;
        let mut starter = Command::new(program);
        starter
            .args(arguments)
            .env_clear()
            .env("PATH", USUAL_PATH)
            .env("LC_ALL", "C.UTF-8")
            .envs(room.zone.map(|zone| ("TZ", zone)))
            .current_dir(room.folder)
            .stdin(input)
            .stdout(output)
            .stderr(errors)
            .process_group(0);
        let memory_bytes = room.memory_bytes;
        // SAFETY: these are system calls that allocate no memory and take no lock.
        unsafe { starter.pre_exec(move || Ok(confine(memory_bytes)?)) };
        let child = starter.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let group = Pid::from_raw(i32::try_from(child.id()).map_err(|error| error.to_string())?);
        Ok(Self { child, group, is_reaped: false })
    }

    /// The stream that the process reads.
    pub fn take_input(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// The stream that the process writes.
    pub fn take_output(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// The process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process has ended.
    pub fn is_over(&self) -> bool {
        is_dead(self.group).unwrap_or(true)
    }

    /// Waits for the end of the process for a while, then kills it with its group.
    ///
    /// # Errors
    /// How it ended is not known.
    pub fn end(mut self, grace: Duration) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + grace;
        while !is_dead(self.group)? && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        self.kill()
    }

    /// Kills the group while the number of its leader still belongs to it, then waits for the leader.
    fn kill(&mut self) -> io::Result<ExitStatus> {
        let _ = killpg(self.group, Signal::SIGKILL);
        self.is_reaped = true;
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Once it was waited for, its number can belong to another process.
        if !self.is_reaped {
            let _ = self.kill();
        }
    }
}

/// How a process ended, for people.
pub fn end_text(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("it exited with status {code}"),
            (None, Some(signal)) => format!("it was ended by signal {signal}"),
            (None, None) => "it ended".into(),
        },
        Err(error) => format!("how it ended is not known: {error}"),
    }
}

fn confine(memory_bytes: u64) -> Result<(), Errno> {
    set_pdeathsig(Signal::SIGKILL)?;
    if memory_bytes > 0 {
        limit(Resource::RLIMIT_AS, memory_bytes)?;
    }
    limit(Resource::RLIMIT_CORE, 0)?;
    limit(Resource::RLIMIT_FSIZE, LARGEST_FILE)?;
    limit(Resource::RLIMIT_NOFILE, MOST_FILES)
}

/// Sets a limit, unless a lower one is in force: only root may raise that.
fn limit(resource: Resource, most: u64) -> Result<(), Errno> {
    let (_, hard) = getrlimit(resource)?;
    setrlimit(resource, most.min(hard), most.min(hard))
}

/// Whether a child has ended; it is not waited for.
fn is_dead(process: Pid) -> io::Result<bool> {
    match waitid(Id::Pid(process), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT) {
        Ok(status) => Ok(status != WaitStatus::StillAlive),
        Err(Errno::EINTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
