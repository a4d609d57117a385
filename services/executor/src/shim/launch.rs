//! From an order to processes.

use crate::{
    containment::{Containment, Entrance},
    environment,
    identity::Identity,
    output,
    spool::{NODE_FILE, RunFolder, SCRIPT, SpooledOrder, TEMPORARY, give, overwrite},
};
use muster_schemas::{job::Program, node::LaunchOrder, time::Timestamp};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, Flock, FlockArg, OFlag, fcntl},
    sched::{CpuSet, sched_setaffinity},
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        signal::{SigSet, SigmaskHow, sigprocmask},
        stat::{Mode, umask},
    },
    unistd::{Gid, Pid, Uid, fchdir, pipe2, setegid, seteuid, setgroups, setresgid, setresuid, setsid},
};
use std::{
    collections::HashMap,
    ffi::CString,
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::{
            ffi::OsStrExt,
            fs::{OpenOptionsExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
    rc::Rc,
};

const DEFAULT_UMASK: u32 = 0o022;
/// Marks an output file with the run that emptied it.
const EMPTIED_BY: &std::ffi::CStr = c"user.muster.run";

/// The processes of a run on this node, just started.
#[derive(Debug)]
pub struct Launched {
    /// What keeps them together; a step's is its run's.
    pub containment: Containment,
    /// The process and rank of each task.
    pub tasks: Vec<(i32, u32)>,
    /// Where tasks tell why they could not become their program. At its end all that could have.
    pub failures: File,
    /// Just before the first was started.
    pub started: Timestamp,
}

/// Starts the tasks of an order that are for this node.
///
/// # Errors
/// Why it cannot be, for people; nothing is left of it.
pub fn launch(spooled: &SpooledOrder, folder: &RunFolder) -> Result<Launched, String> {
    let order = &spooled.order;
    if order.node_index as usize >= order.nodes.len() {
        return Err(format!("the order is for node {} of {}", order.node_index, order.nodes.len()));
    }
    make_job_files(spooled, folder)?;
    umask(Mode::from_bits_truncate(order.umask.unwrap_or(DEFAULT_UMASK) & 0o777));
    let tasks = as_user(&spooled.identity, || prepare(spooled, folder))?;
    let containment = contain(spooled)?;
    start(spooled, containment, tasks)
}

/// The files that the job's processes see: node file, temporary folder, script.
fn make_job_files(spooled: &SpooledOrder, folder: &RunFolder) -> Result<(), String> {
    let make = || -> io::Result<()> {
        overwrite(&folder.file(NODE_FILE), 0o644, environment::node_file(&spooled.order).as_bytes())?;
        // A run before may have shut it.
        fs::set_permissions(folder.file(TEMPORARY), fs::Permissions::from_mode(0o700))?;
        if let Some((text, _)) = script_of(&spooled.order) {
            let script = folder.file(SCRIPT);
            overwrite(&script, 0o700, text.as_bytes())?;
            give(&script, &spooled.identity)?;
        }
        Ok(())
    };
    make().map_err(|error| format!("the run's files cannot be made in {}: {error}", folder.path().display()))
}

/// The script and its arguments, if it is to run on this node: the first of its component.
fn script_of(order: &LaunchOrder) -> Option<(&str, &[String])> {
    let Program::Script { text, args } = &order.launch.program else { return None };
    let own = order.nodes.get(order.node_index as usize)?.component;
    let lead = order.nodes.iter().position(|node| node.component == own)?;
    (lead == order.node_index as usize).then_some((text, args))
}

/// A task before it is started.
struct Task {
    rank: u32,
    local_rank: u32,
    program: Rc<ProgramPath>,
    directory: Rc<File>,
    stdin: Rc<File>,
    stdout: Rc<File>,
    stderr: Rc<File>,
    environment: Rc<Vec<CString>>,
}

struct ProgramPath {
    path: CString,
    argv: Vec<CString>,
}

/// Does something with the rights of a user, as far as files are concerned.
fn as_user<T>(identity: &Identity, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    if !Uid::effective().is_root() {
        return act();
    }
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    let become_user = || {
        setgroups(&groups)?;
        setegid(Gid::from_raw(identity.gid))?;
        seteuid(Uid::from_raw(identity.uid))
    };
    let become_root = || {
        seteuid(Uid::from_raw(0))?;
        setegid(Gid::from_raw(0))
    };
    let result = become_user().map_err(|errno| cannot_become(identity, errno)).and_then(|()| act());
    become_root().map_err(|errno| format!("the shim cannot become root again: {}", errno.desc()))?;
    result
}

fn cannot_become(identity: &Identity, errno: Errno) -> String {
    format!("the shim cannot become user `{}`: {}", identity.user, errno.desc())
}

/// Opens all that the tasks need, as their user.
fn prepare(spooled: &SpooledOrder, folder: &RunFolder) -> Result<Vec<Task>, String> {
    let order = &spooled.order;
    let directory = Rc::new(enter_directory(&order.working_directory)?);
    let variables = environment::common(spooled, folder.path());
    let (program, count) = match (&order.launch.program, script_of(order)) {
        (_, Some((_, args))) => (script_program(&folder.file(SCRIPT), args)?, 1),
        (Program::Tasks { argv }, _) => (
            command_program(argv, variables.get("PATH").map_or("", String::as_str))?,
            order.nodes[order.node_index as usize].tasks,
        ),
        _ => return Ok(vec![]),
    };
    let program = Rc::new(program);
    let environment: Vec<CString> =
        variables.iter().filter_map(|(name, value)| environment::c_variable(name, value)).collect();
    let environment = Rc::new(environment);
    let mut files = Files { order, open: HashMap::new() };
    (0..count)
        .map(|local_rank| {
            let rank = order.first_rank + local_rank;
            let (stdout, stderr) = files.outputs(rank)?;
            Ok(Task {
                rank,
                local_rank,
                program: program.clone(),
                directory: directory.clone(),
                stdin: files.input(rank)?,
                stdout,
                stderr,
                environment: environment.clone(),
            })
        })
        .collect()
}

/// Relative paths of the order are meant from here.
fn enter_directory(path: &str) -> Result<File, String> {
    let failed = |error: io::Error| format!("the working directory `{path}` cannot be entered: {}", plain(&error));
    let directory =
        OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(path).map_err(failed)?;
    fchdir(&directory).map_err(|errno| failed(errno.into()))?;
    Ok(directory)
}

/// What the system says, without the number.
fn plain(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |code| Errno::from_raw(code).desc().to_owned())
}

fn script_program(path: &Path, args: &[String]) -> Result<ProgramPath, String> {
    let path = c_string(path.as_os_str().as_bytes())?;
    let argv = std::iter::once(Ok(path.clone())).chain(args.iter().map(|arg| c_string(arg.as_bytes())));
    Ok(ProgramPath { argv: argv.collect::<Result<_, _>>()?, path })
}

fn command_program(argv: &[String], search: &str) -> Result<ProgramPath, String> {
    let name = argv.first().ok_or("the command is empty")?;
    let path = find_command(name, search)?;
    let argv = argv.iter().map(|arg| c_string(arg.as_bytes())).collect::<Result<_, _>>()?;
    Ok(ProgramPath { path: c_string(path.as_os_str().as_bytes())?, argv })
}

fn c_string(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| "an argument holds a NUL byte".to_owned())
}

/// The file of a command, searched for as a shell would.
fn find_command(name: &str, search: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return Ok(name.into());
    }
    let folders = search.split(':').map(|folder| Path::new(if folder.is_empty() { "." } else { folder }));
    let executable =
        |path: &PathBuf| path.is_file() && nix::unistd::eaccess(path, nix::unistd::AccessFlags::X_OK).is_ok();
    folders
        .map(|folder| folder.join(name))
        .find(executable)
        .ok_or_else(|| format!("command `{name}` not found in PATH ({search})"))
}

/// The files of tasks; one that several tasks write to is opened once.
struct Files<'a> {
    order: &'a LaunchOrder,
    open: HashMap<String, Rc<File>>,
}

impl Files<'_> {
    fn outputs(&mut self, rank: u32) -> Result<(Rc<File>, Rc<File>), String> {
        let launch = &self.order.launch;
        let pattern = launch.stdout.as_deref().unwrap_or(output::default_pattern(self.order.job));
        let stdout = self.output(pattern, rank)?;
        let stderr = match &launch.stderr {
            Some(pattern) => self.output(pattern, rank)?,
            None => stdout.clone(),
        };
        Ok((stdout, stderr))
    }

    fn output(&mut self, pattern: &str, rank: u32) -> Result<Rc<File>, String> {
        let path = self.expand(pattern, rank);
        if let Some(file) = self.open.get(&path) {
            return Ok(file.clone());
        }
        let failed = |error: io::Error| format!("the output file `{path}` cannot be opened: {}", plain(&error));
        let file =
            open_without_waiting(OpenOptions::new().append(true).create(true).mode(0o666), &path).map_err(failed)?;
        self.empty(&file).map_err(failed)?;
        let file = Rc::new(file);
        self.open.insert(path, file.clone());
        Ok(file)
    }

    fn input(&mut self, rank: u32) -> Result<Rc<File>, String> {
        let path =
            self.order.launch.stdin.as_deref().map_or_else(|| "/dev/null".into(), |pattern| self.expand(pattern, rank));
        if let Some(file) = self.open.get(&path).filter(|_| path == "/dev/null") {
            return Ok(file.clone());
        }
        let file = open_without_waiting(OpenOptions::new().read(true), &path)
            .map_err(|error| format!("the input file `{path}` cannot be opened: {}", plain(&error)))?;
        let file = Rc::new(file);
        if path == "/dev/null" {
            self.open.insert(path, file.clone());
        }
        Ok(file)
    }

    fn expand(&self, pattern: &str, rank: u32) -> String {
        output::expand(pattern, self.order, &self.order.nodes[self.order.node_index as usize].name, rank)
    }

    /// Empties a file that the run has just opened. Of several nodes that write to the same file only the first does,
    /// whichever that is: it marks the file. Where files cannot be marked, the run's first node does.
    fn empty(&self, file: &File) -> io::Result<()> {
        let keeps = self.order.launch.append_output || self.order.step.0 != 0 && self.order.launch.stdout.is_none();
        if keeps || !file.metadata()?.is_file() {
            return Ok(());
        }
        if self.order.nodes.iter().filter(|node| node.tasks > 0).count() > 1 {
            let lock = Flock::lock(file.try_clone()?, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
            let mark = format!("{}.{}", self.order.run, self.order.step);
            match has_mark(&lock, &mark) {
                Some(true) => return Ok(()),
                Some(false) => set_mark(&lock, &mark),
                None if self.order.node_index > 0 => return Ok(()),
                None => {}
            }
        }
        file.set_len(0)
    }
}

/// Whether the file has the mark; `None` if it cannot have any.
fn has_mark(file: &File, mark: &str) -> Option<bool> {
    let mut value = [0u8; 64];
    // SAFETY: the name ends with NUL, and the buffer has the length given.
    let length =
        unsafe { libc::fgetxattr(file.as_raw_fd(), EMPTIED_BY.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    match usize::try_from(length) {
        Ok(length) => Some(&value[..length] == mark.as_bytes()),
        Err(_) => (Errno::last() != Errno::ENOTSUP).then_some(false),
    }
}

fn set_mark(file: &File, mark: &str) {
    // SAFETY: the name ends with NUL, and the value has the length given. If it fails, another node empties the file again.
    unsafe { libc::fsetxattr(file.as_raw_fd(), EMPTIED_BY.as_ptr(), mark.as_ptr().cast(), mark.len(), 0) };
}

/// Opens a file that may be a pipe nobody reads, which is an error rather than a wait. The file itself waits.
fn open_without_waiting(options: &mut OpenOptions, path: &str) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    Ok(file)
}

/// The containment of the run; a step joins the one that its run has.
fn contain(spooled: &SpooledOrder) -> Result<Containment, String> {
    let order = &spooled.order;
    if order.step.0 == 0 {
        return Containment::create(&spooled.hierarchies, order.run, order.memory_bytes, &spooled.cpus)
            .map_err(|error| format!("the run cannot be contained: {error}"));
    }
    let containment = Containment::existing(&spooled.hierarchies, order.run);
    if containment.exists() { Ok(containment) } else { Err(format!("run {} is not active on this node", order.run)) }
}

fn start(spooled: &SpooledOrder, containment: Containment, tasks: Vec<Task>) -> Result<Launched, String> {
    let give_up = |containment: &Containment, why: String| {
        if spooled.order.step.0 == 0 {
            containment.end(super::supervise::reap_silently);
        }
        super::supervise::end_children();
        why
    };
    let (failures, failures_of_tasks) =
        pipe2(OFlag::O_CLOEXEC).map_err(|errno| give_up(&containment, format!("no pipe: {}", errno.desc())))?;
    let entrance = containment
        .entrance()
        .map_err(|error| give_up(&containment, format!("the run cannot be contained: {error}")))?;
    let affinity = if containment.needs_affinity() { spooled.cpus.as_slice() } else { &[] };
    let started = Timestamp::now();
    let mut processes = Vec::with_capacity(tasks.len());
    for task in &tasks {
        match fork_into(&entrance) {
            Ok(Forked::Parent(process)) => processes.push((process, task.rank)),
            Ok(Forked::Child { joined }) => become_task(spooled, task, &entrance, joined, affinity, &failures_of_tasks),
            Err(errno) => {
                return Err(give_up(&containment, format!("task {} cannot be started: {}", task.rank, errno.desc())));
            }
        }
    }
    drop(failures_of_tasks);
    Ok(Launched { containment, tasks: processes, failures: failures.into(), started })
}

enum Forked {
    Parent(i32),
    /// `joined` if it is in its group already.
    Child {
        joined: bool,
    },
}

/// Forks; where a group 2 is to be joined, into it: moving a process later makes all others of the host wait.
fn fork_into(entrance: &Entrance) -> Result<Forked, Errno> {
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
fn become_task(
    spooled: &SpooledOrder,
    task: &Task,
    entrance: &Entrance,
    joined: bool,
    affinity: &[u32],
    failures: &impl AsRawFd,
) -> ! {
    let (stage, errno) = match try_become(spooled, task, entrance, joined, affinity) {
        Err(failure) => failure,
        Ok(never) => match never {},
    };
    let report = Failure { rank: task.rank, stage: stage as u8, errno: errno as i32 }.to_bytes();
    // SAFETY: the buffer has the length given, and _exit leaves what the shim has open to the shim.
    unsafe {
        libc::write(failures.as_raw_fd(), report.as_ptr().cast(), report.len());
        libc::_exit(127)
    }
}

enum Never {}

fn try_become(
    spooled: &SpooledOrder,
    task: &Task,
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
    for (file, number) in [(&task.stdin, 0), (&task.stdout, 1), (&task.stderr, 2)] {
        // SAFETY: the standard streams of the shim are not used in this process any more.
        Errno::result(unsafe { libc::dup2(file.as_raw_fd(), number) }).map_err(at(Stage::Files))?;
    }
    reset_signals().map_err(at(Stage::Execute))?;
    let own = environment::of_task(task.rank, task.local_rank);
    let own: Vec<CString> = own.iter().filter_map(|(name, value)| environment::c_variable(name, value)).collect();
    let environment: Vec<_> = task.environment.iter().chain(&own).collect();
    match nix::unistd::execve(&task.program.path, &task.program.argv, &environment) {
        Err(errno) => Err((Stage::Execute, errno)),
        Ok(never) => match never {},
    }
}

fn join(entrance: &Entrance, joined: bool) -> Result<(), Errno> {
    let to_errno = |error: io::Error| error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
    if let Some(group) = entrance.born_in_fd().filter(|_| !joined) {
        fs::write(format!("/proc/self/fd/{group}/cgroup.procs"), "0").map_err(to_errno)?;
    }
    for procs in &entrance.join {
        fs::write(Path::new(std::ffi::OsStr::from_bytes(procs.as_bytes())), "0").map_err(to_errno)?;
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

/// The descriptor for polling.
pub fn failures_fd(failures: &File) -> BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(failures)
}
