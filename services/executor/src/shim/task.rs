//! From a fork of the shim to the program of a task.

use super::streams::{Stream, Streams};
use crate::{containment::Entrance, environment, identity::Identity, spool::SpooledOrder};
use muster_schemas::{job::Program, node::LaunchOrder};
use nix::{
    errno::Errno,
    sched::{CpuSet, sched_setaffinity},
    sys::{
        resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit},
        signal::{SigSet, SigmaskHow, sigprocmask},
    },
    unistd::{Gid, Pid, Uid, fchdir, setgroups, setresgid, setresuid, setsid},
};
use std::{
    ffi::{CString, OsStr},
    fs::{self, File},
    io,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::Path,
    rc::Rc,
};

/// A task before it is started.
pub struct Task {
    pub rank: u32,
    pub local_rank: u32,
    pub program: Rc<ProgramPath>,
    pub directory: Rc<File>,
    pub ends: Ends,
    pub environment: Rc<Vec<CString>>,
    /// The soft limits that it brings with it.
    pub limits: Rc<Vec<(Resource, Option<u64>)>>,
    /// Whether its streams are a terminal, which is to be its own.
    pub has_terminal: bool,
    /// The CPUs that it is bound to, in a step with places of its own; none if it is not bound.
    pub cpus: Vec<u32>,
}

/// Where the standard streams of a task lead.
pub struct Ends {
    pub stdin: End,
    pub stdout: End,
    /// `None`: where standard output leads.
    pub stderr: Option<End>,
}

/// Where one of them leads.
pub enum End {
    File(Rc<File>),
    /// To or from the client, through a pipe. It is made just before the task is: each task inherits, and has to close,
    /// all that is open then, so pipes made for all of them ahead would cost the square of their number.
    Client,
}

impl End {
    /// The file, if it leads to one.
    pub fn file(&self) -> Option<&File> {
        match self {
            Self::File(file) => Some(file),
            Self::Client => None,
        }
    }
}

/// The standard streams of a task that is being started.
pub struct StandardFiles {
    stdin: Rc<File>,
    stdout: Rc<File>,
    stderr: Rc<File>,
}

impl Task {
    /// Makes the pipes; the client's side of them goes to the streams.
    ///
    /// # Errors
    /// Why they cannot be made, for people.
    pub fn open(&self, streams: &mut Option<Streams>) -> Result<StandardFiles, String> {
        let no_stream = |error: io::Error| format!("the streams of task {} cannot be made: {error}", self.rank);
        let output = |end: &End, stream, streams: &mut Option<Streams>| match (end, streams) {
            (End::File(file), _) => Ok(file.clone()),
            (End::Client, Some(streams)) => streams.source_pipe(self.rank, stream).map(Rc::new).map_err(no_stream),
            (End::Client, None) => Err(no_stream(io::ErrorKind::NotConnected.into())),
        };
        let stdin = match (&self.ends.stdin, streams.as_mut()) {
            (End::File(file), _) => file.clone(),
            (End::Client, Some(streams)) => Rc::new(streams.feed_pipe().map_err(no_stream)?),
            (End::Client, None) => return Err(no_stream(io::ErrorKind::NotConnected.into())),
        };
        let stdout = output(&self.ends.stdout, Stream::Output, streams)?;
        let stderr = match &self.ends.stderr {
            None => stdout.clone(),
            Some(end) => output(end, Stream::Error, streams)?,
        };
        Ok(StandardFiles { stdin, stdout, stderr })
    }
}

/// What a task becomes.
pub struct ProgramPath {
    pub path: CString,
    pub argv: Vec<CString>,
}

/// Where a fork comes back.
pub enum Forked {
    Parent(i32),
    /// `joined` if it is in its group already.
    Child {
        joined: bool,
    },
}

/// Forks; where a group 2 is to be joined, into it: moving a process later makes all others of the host wait.
pub fn fork_into(entrance: &Entrance) -> Result<Forked, Errno> {
    let forked = |process: i64, joined| match process {
        0 => Forked::Child { joined },
        process => Forked::Parent(process as i32),
    };
    if let Some(group) = entrance.born_in_fd() {
        match clone_into(group) {
            Ok(process) => return Ok(forked(process, true)),
            // Sandboxes forbid this call more often than fork.
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EINVAL) => {}
            Err(errno) => return Err(errno),
        }
    }
    // SAFETY: this process has one thread, so the child may do all that the parent may.
    Errno::result(unsafe { libc::fork() }).map(|process| forked(process.into(), false))
}

fn clone_into(group: i32) -> Result<i64, Errno> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    // SAFETY: all zero is a valid value of this plain structure.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.cgroup = group as u64;
    // SAFETY: without CLONE_VM this is a fork; this process has one thread.
    Errno::result(unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) })
}

/// The steps from a fork of the shim to the task's program, in order.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Stage {
    Contain,
    Limits,
    User,
    Directory,
    Files,
    Execute,
}

/// Becomes the task's program. If it cannot, it says so and ends.
pub fn become_task(
    spooled: &SpooledOrder,
    task: &Task,
    files: &StandardFiles,
    entrance: &Entrance,
    joined: bool,
    affinity: &[u32],
    failures: &impl AsRawFd,
) -> ! {
    let (stage, errno) = match try_become(spooled, task, files, entrance, joined, affinity) {
        Err(failure) => failure,
        Ok(never) => match never {},
    };
    if let (Stage::Execute, Some(_)) = (stage, &spooled.tasks) {
        say_and_end(task, errno);
    }
    let report = Failure { rank: task.rank, stage: stage as u8, errno: errno as i32 }.to_bytes();
    // SAFETY: the buffer has the length given, and _exit leaves what the shim has open to the shim.
    unsafe {
        libc::write(failures.as_raw_fd(), report.as_ptr().cast(), report.len());
        libc::_exit(127)
    }
}

/// A task of a step that has no program ends with the number of the error, and says it to its client (SL-R-23).
fn say_and_end(task: &Task, errno: Errno) -> ! {
    let name = task.program.argv.first().map(|name| name.to_string_lossy()).unwrap_or_default();
    let text = format!("error: execve(): {name}: {}\n", errno.desc());
    // SAFETY: the buffer has the length given, and _exit leaves what the shim has open to the shim.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(errno as i32)
    }
}

enum Never {}

fn try_become(
    spooled: &SpooledOrder,
    task: &Task,
    files: &StandardFiles,
    entrance: &Entrance,
    joined: bool,
    affinity: &[u32],
) -> Result<Never, (Stage, Errno)> {
    let at = |stage| move |errno| (stage, errno);
    setsid().map_err(at(Stage::Contain))?;
    join(entrance, joined).map_err(at(Stage::Contain))?;
    // The shim is spared when memory runs out, its tasks are not.
    let _ = fs::write("/proc/self/oom_score_adj", "0");
    limit(spooled.open_files, affinity).map_err(at(Stage::Limits))?;
    change_user(&spooled.identity).map_err(at(Stage::User))?;
    fchdir(&*task.directory).map_err(at(Stage::Directory))?;
    for (file, number) in [(&files.stdin, 0), (&files.stdout, 1), (&files.stderr, 2)] {
        // SAFETY: the standard streams of the shim are not used in this process any more.
        Errno::result(unsafe { libc::dup2(file.as_raw_fd(), number) }).map_err(at(Stage::Files))?;
    }
    if task.has_terminal {
        // SAFETY: the call has no effect on memory. This process leads its session.
        Errno::result(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }).map_err(at(Stage::Files))?;
    }
    reset_signals().map_err(at(Stage::Files))?;
    let own = own_variables(spooled, task);
    let own: Vec<CString> = own.iter().filter_map(|(name, value)| environment::c_variable(name, value)).collect();
    let environment: Vec<_> = task.environment.iter().chain(&own).collect();
    // Last, as they hold for what is left to do here too.
    bring_limits(&task.limits).map_err(at(Stage::Limits))?;
    match nix::unistd::execve(&task.program.path, &task.program.argv, &environment) {
        Err(errno) => Err((Stage::Execute, errno)),
        Ok(never) => match never {},
    }
}

fn own_variables(spooled: &SpooledOrder, task: &Task) -> Vec<(String, String)> {
    match &spooled.tasks {
        Some(tasks) => environment::of_step_task(tasks, task.rank, task.local_rank),
        None => environment::of_plain_task(&spooled.order, task.rank, task.local_rank),
    }
}

fn join(entrance: &Entrance, joined: bool) -> Result<(), Errno> {
    let to_errno = |error: io::Error| error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
    if let Some(group) = entrance.born_in_fd().filter(|_| !joined) {
        fs::write(format!("/proc/self/fd/{group}/cgroup.procs"), "0").map_err(to_errno)?;
    }
    for procs in &entrance.join {
        fs::write(Path::new(OsStr::from_bytes(procs.as_bytes())), "0").map_err(to_errno)?;
    }
    Ok(())
}

fn limit(open_files: u64, affinity: &[u32]) -> Result<(), Errno> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, open_files.min(hard), hard)?;
    if affinity.is_empty() {
        return Ok(());
    }
    let mut cpus = CpuSet::new();
    for cpu in affinity {
        cpus.set(*cpu as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &cpus)
}

/// No limit is higher than what this node allows.
fn bring_limits(limits: &[(Resource, Option<u64>)]) -> Result<(), Errno> {
    for (resource, most) in limits {
        let (_, hard) = getrlimit(*resource)?;
        setrlimit(*resource, most.unwrap_or(RLIM_INFINITY).min(hard), hard)?;
    }
    Ok(())
}

fn change_user(identity: &Identity) -> Result<(), Errno> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}

/// A program expects the signals as after a login: none ignored, none blocked.
fn reset_signals() -> Result<(), Errno> {
    for signal in 1..32 {
        // SAFETY: the default action is no code of this program.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Why a task did not become its program, as it crosses the pipe.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    rank: u32,
    stage: u8,
    errno: i32,
}

impl Failure {
    /// Bytes of one; less than a pipe takes at once.
    pub const BYTES: usize = 9;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.rank.to_le_bytes());
        bytes[4] = self.stage;
        bytes[5..].copy_from_slice(&self.errno.to_le_bytes());
        bytes
    }

    /// The reverse.
    pub fn from_bytes([a, b, c, d, stage, e, f, g, h]: [u8; Self::BYTES]) -> Self {
        Self { rank: u32::from_le_bytes([a, b, c, d]), stage, errno: i32::from_le_bytes([e, f, g, h]) }
    }

    /// For people.
    pub fn describe(self, spooled: &SpooledOrder) -> String {
        let errno = Errno::from_raw(self.errno);
        let what = match self.stage {
            stage if stage == Stage::Contain as u8 => "it cannot join its control groups".to_owned(),
            stage if stage == Stage::Limits as u8 => "its limits or CPUs cannot be set".to_owned(),
            stage if stage == Stage::User as u8 => format!("it cannot become user `{}`", spooled.identity.user),
            stage if stage == Stage::Directory as u8 => {
                format!("it cannot enter the working directory `{}`", spooled.order.working_directory)
            }
            stage if stage == Stage::Files as u8 => "its standard streams cannot be set".to_owned(),
            _ => return self.describe_execute(&spooled.order, errno),
        };
        format!("task {} cannot be started: {what}: {}", self.rank, errno.desc())
    }

    fn describe_execute(self, order: &LaunchOrder, errno: Errno) -> String {
        match &order.launch.program {
            Program::Script { text, .. } => {
                let first = text.lines().next().unwrap_or_default();
                match errno {
                    Errno::ENOEXEC => {
                        "the script cannot be started: its first line names no interpreter (`#!/bin/sh`)".into()
                    }
                    Errno::ENOENT => format!(
                        "the script cannot be started: the interpreter of its first line `{first}` does not exist"
                    ),
                    Errno::EACCES => format!(
                        "the script cannot be started: its interpreter, or the spool that it lies in, is not open to user `{}`",
                        order.owner.user
                    ),
                    errno => format!("the script cannot be started: {}", errno.desc()),
                }
            }
            Program::Tasks { argv } => {
                let name = argv.first().map_or("", String::as_str);
                format!("task {} cannot be started: `{name}`: {}", self.rank, errno.desc())
            }
            Program::None => format!("task {} cannot be started: {}", self.rank, errno.desc()),
        }
    }
}
