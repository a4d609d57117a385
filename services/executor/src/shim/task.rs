//! From a fork of the shim to the program of a task.

use super::{
    binding::{Bound, bind},
    container::{self, Container},
    execution::{Environment, ProgramPath},
    fork::{change_user, groups_of, join},
    management::{self, Management},
    streams::{Stream, Streams},
};
use crate::{
    containment::Entrance,
    host::{Host, Kept},
    signals,
    spool::SpooledOrder,
};
use muster_dialect::Dialect;
use muster_schemas::{job::Program, node::LaunchOrder};
use nix::{
    errno::Errno,
    sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit},
    unistd::{Gid, chdir, fchdir, setsid},
};
use std::{
    collections::BTreeMap,
    ffi::{CString, OsStr},
    fs::File,
    io,
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStrExt, net::UnixStream},
    },
    path::Path,
    rc::Rc,
};

/// Variables with folders, separated by colons, that a task may need although they are in the machine's `/tmp`.
const IN_TEMPORARY: [&str; 7] =
    ["PWD", "MUSTER_TMPDIR", "MUSTER_DATA", "HOME", "PATH", "LD_LIBRARY_PATH", "PYTHONPATH"];

/// The tasks of a launch before they are started.
pub struct Tasks {
    pub each: Vec<Task>,
    pub directory: File,
    pub environment: Environment,
    /// The soft limits that they bring with them.
    pub limits: Vec<(Resource, Option<u64>)>,
    /// The variable for the process id of each of them.
    pub process_id: Option<&'static str>,
    /// The entries of the machine's `/tmp` that they need on an emulated host.
    pub kept: Vec<Kept>,
    /// Their containers, if they run in some.
    pub container: Option<Container>,
}

impl Tasks {
    /// Tasks of an order, with their common variables.
    ///
    /// # Errors
    /// Why one of them cannot be started, for people.
    pub fn of(
        order: &LaunchOrder,
        directory: File,
        variables: &BTreeMap<String, String>,
        each: impl Iterator<Item = Result<Task, String>>,
        dialect: Option<&dyn Dialect>,
    ) -> Result<Self, String> {
        let each = each.collect::<Result<Vec<Task>, _>>()?;
        let programs = each.iter().map(|task| Path::new(OsStr::from_bytes(task.program.path().to_bytes())));
        let folders = IN_TEMPORARY.into_iter().filter_map(|name| variables.get(name)).flat_map(|list| list.split(':'));
        // Scripts call muster, which lies beside this program.
        let own = std::env::current_exe().ok();
        let paths = programs.chain(folders.map(Path::new)).chain(own.as_deref());
        Ok(Self {
            kept: Kept::on_the_way_to(paths),
            each,
            directory,
            environment: Environment::new(variables),
            limits: dialect.map(|dialect| dialect.soft_limits(order)).unwrap_or_default(),
            process_id: dialect.and_then(|dialect| dialect.process_id_variable(order)),
            container: None,
        })
    }

    /// The same in containers.
    pub fn within(mut self, container: Option<Container>) -> Self {
        self.kept.extend(container.iter().flat_map(|container| Kept::on_the_way_to(container.paths())));
        Self { container, ..self }
    }
}

/// A task before it is started.
pub struct Task {
    pub rank: u32,
    pub local_rank: u32,
    pub program: Rc<ProgramPath>,
    pub ends: Ends,
    /// Whether its streams are a terminal, which becomes its own.
    pub has_terminal: bool,
    /// What it is bound to, in a step with its own places.
    pub bound: Bound,
}

/// The ends of a task's standard streams.
pub struct Ends {
    pub stdin: End,
    pub stdout: End,
    /// `None`: the same end as standard output.
    pub stderr: Option<End>,
}

/// The end of one stream.
pub enum End {
    File(Rc<File>),
    /// To or from the client, through a pipe. It is created just before the task: each task inherits, and has to close,
    /// all open pipes, so creating them all in advance would cost the square of their number.
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

/// What connects the tasks of a step to others.
#[derive(Default)]
pub struct Connections {
    /// Their exchange with a client, if they have one.
    pub streams: Option<Streams>,
    /// Their process management, if they are a parallel program.
    pub management: Option<Management>,
}

/// The files that a task inherits.
pub struct Inherited {
    stdin: Rc<File>,
    stdout: Rc<File>,
    stderr: Rc<File>,
    management: Option<UnixStream>,
    /// The number that its connection to the process management has in its program, if not that in the shim.
    management_at: Option<RawFd>,
}

impl Inherited {
    /// The number of its connection to the process management.
    pub fn management(&self) -> Option<RawFd> {
        let management = self.management.as_ref().map(AsRawFd::as_raw_fd);
        management.map(|number| self.management_at.unwrap_or(number))
    }

    /// The same files for a program that passes on only the first descriptors after the standard streams.
    pub fn for_container(self) -> Self {
        Self { management_at: Some(container::MANAGEMENT), ..self }
    }
}

impl Task {
    /// The file of its standard error, if it is one. A terminal is its own: it ends when nobody has it open any more.
    pub fn errors(&self) -> Option<&File> {
        let end = self.ends.stderr.as_ref().unwrap_or(&self.ends.stdout);
        end.file().filter(|_| !self.has_terminal)
    }

    /// Creates the pipes and the connection to the process management; the shim's side of them goes to its connections.
    ///
    /// # Errors
    /// Why they cannot be created, for people.
    pub fn open(&self, Connections { streams, management }: &mut Connections) -> Result<Inherited, String> {
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
        let management = management.as_mut().map(|management| management.connect(self.rank)).transpose();
        let management = management.map_err(|error| format!("task {} cannot be connected: {error}", self.rank))?;
        Ok(Inherited { stdin, stdout, stderr, management, management_at: None })
    }
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
    Host,
    Memory,
}

/// The setup that the tasks of a launch share between their fork and their program.
pub struct Birth<'a> {
    spooled: &'a SpooledOrder,
    entrance: &'a Entrance,
    directory: &'a File,
    host: Option<EmulatedHost<'a>>,
    groups: Vec<Gid>,
    /// The limits that differ from the shim's: the resource, the soft and the hard one.
    limits: Vec<(Resource, u64, u64)>,
    /// The signals that the shim ignores.
    ignored: Vec<i32>,
}

/// The host of an emulated node, as the tasks of a launch find it.
struct EmulatedHost<'a> {
    host: &'a Host,
    kept: &'a [Kept],
    /// The working directory: that of the machine is not the same one there.
    directory: CString,
}

impl<'a> Birth<'a> {
    /// Determines the setup. Limits that tasks bring are capped at what this node allows.
    ///
    /// # Errors
    /// If the kernel does not report the limits of this process.
    pub fn new(
        spooled: &'a SpooledOrder,
        entrance: &'a Entrance,
        directory: &'a File,
        brought: &[(Resource, Option<u64>)],
        host: Option<(&'a Host, &'a [Kept])>,
    ) -> Result<Self, Errno> {
        let mut wanted = BTreeMap::from([(Resource::RLIMIT_NOFILE, Some(spooled.open_files))]);
        wanted.extend(brought.iter().copied());
        let mut limits = Vec::new();
        for (resource, most) in wanted {
            let (soft, hard) = getrlimit(resource)?;
            let most = most.unwrap_or(RLIM_INFINITY).min(hard);
            if most != soft {
                limits.push((resource, most, hard));
            }
        }
        let groups = groups_of(&spooled.identity);
        let directory_there = || CString::new(spooled.order.working_directory.as_str()).map_err(|_| Errno::EINVAL);
        let host =
            host.map(|(host, kept)| Ok(EmulatedHost { host, kept, directory: directory_there()? })).transpose()?;
        let ignored = signals::ignored();
        Ok(Self { spooled, entrance, directory, host, groups, limits, ignored })
    }
}

/// Becomes the task's program, or reports why not and ends.
pub fn become_task(
    birth: &Birth<'_>,
    task: &Task,
    files: &Inherited,
    (program, environment): (&ProgramPath, &mut Environment),
    joined: bool,
    affinity: &[u32],
    failures: &impl AsRawFd,
) -> ! {
    let spooled = birth.spooled;
    // Out of the way of the descriptors that a program expects.
    // SAFETY: the call has no effect on memory.
    let moved = unsafe { libc::fcntl(failures.as_raw_fd(), libc::F_DUPFD_CLOEXEC, container::MANAGEMENT + 1) };
    let failures = if moved < 0 { failures.as_raw_fd() } else { moved };
    let (stage, errno) = match prepare(birth, task, files, joined, affinity) {
        Ok(()) => (Stage::Execute, program.execute(environment)),
        Err(failure) => failure,
    };
    if let (Stage::Execute, Some(_)) = (stage, &spooled.tasks) {
        say_and_end(task, errno);
    }
    let report = Failure { rank: task.rank, stage: stage as u8, errno: errno as i32 }.to_bytes();
    // SAFETY: the buffer has the length given, and _exit leaves the shim's open files to the shim.
    unsafe {
        libc::write(failures, report.as_ptr().cast(), report.len());
        libc::_exit(127)
    }
}

/// A task of a step without a program ends with the error's number, and tells its client (SL-R-23).
fn say_and_end(task: &Task, errno: Errno) -> ! {
    let name = task.program.name().to_string_lossy();
    let text = format!("error: execve(): {name}: {}\n", errno.desc());
    // SAFETY: the buffer has the length given, and _exit leaves the shim's open files to the shim.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(errno as i32)
    }
}

/// Everything before the program. It avoids allocating memory if possible; see [`super::execution`].
fn prepare(
    birth: &Birth<'_>,
    task: &Task,
    files: &Inherited,
    joined: bool,
    affinity: &[u32],
) -> Result<(), (Stage, Errno)> {
    let at = |stage| move |errno| (stage, errno);
    setsid().map_err(at(Stage::Contain))?;
    join(birth.entrance, joined).map_err(at(Stage::Contain))?;
    bind(affinity).map_err(at(Stage::Limits))?;
    task.bound.bind_memory().map_err(at(Stage::Memory))?;
    let host = birth.host.as_ref();
    host.map_or(Ok(()), |here| here.host.enter(here.kept)).map_err(at(Stage::Host))?;
    change_user(&birth.spooled.identity, &birth.groups).map_err(at(Stage::User))?;
    let entered = host.map_or_else(|| fchdir(birth.directory), |here| chdir(here.directory.as_c_str()));
    entered.map_err(at(Stage::Directory))?;
    for (file, number) in [(&files.stdin, 0), (&files.stdout, 1), (&files.stderr, 2)] {
        // SAFETY: the standard streams of the shim are not used in this process any more.
        Errno::result(unsafe { libc::dup2(file.as_raw_fd(), number) }).map_err(at(Stage::Files))?;
    }
    let inherit = |socket| management::inherit(socket, files.management_at);
    files.management.as_ref().map_or(Ok(()), inherit).map_err(at(Stage::Files))?;
    if task.has_terminal {
        // SAFETY: the call has no effect on memory. This process leads its session.
        Errno::result(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) }).map_err(at(Stage::Files))?;
    }
    signals::reset(&birth.ignored).map_err(at(Stage::Files))?;
    task.bound.tell();
    // Last, as they also apply to the rest of this function.
    for (resource, soft, hard) in &birth.limits {
        setrlimit(*resource, *soft, *hard).map_err(at(Stage::Limits))?;
    }
    Ok(())
}

/// Why a task did not become its program, in the form that crosses the pipe.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    rank: u32,
    stage: u8,
    errno: i32,
}

impl Failure {
    /// Bytes of one; a pipe takes this much at once.
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
            stage if stage == Stage::Memory as u8 => "it cannot be bound to its memory domains".to_owned(),
            stage if stage == Stage::Host as u8 => "it cannot enter the host of the emulated node".to_owned(),
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
