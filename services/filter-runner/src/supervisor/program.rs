//! A filter's process: how it is started, and how it ended.

use super::{
    Stop,
    folder::Folder,
    streams::{Feed, Intake},
};
use crate::{
    account::Account,
    call::{Captured, RawResult},
    protocol::Order,
};
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, OFlag, fcntl},
    sys::{
        prctl,
        signal::{SigSet, SigmaskHow, Signal, sigprocmask},
    },
    unistd::{ForkResult, Gid, Uid, chdir, execve, fork, pipe2, setgroups, setresgid, setresuid, setsid},
};
use std::{
    ffi::CString,
    fs::File,
    io::{self, Read as _},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    time::Instant,
};

/// What a program reads from its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The end at once (HPC-F-63).
    Nothing,
    /// Lines that come in time (HPC-F-67).
    Lines,
}

/// A process that was started for a call, or for the calls of a persistent filter.
#[derive(Debug)]
pub struct Program {
    pub process: i32,
    pub started: Instant,
    /// How it ended, once it has.
    pub ended: Option<RawResult>,
    /// Whether nothing is left of it and of what it started.
    pub alone: bool,
    pub stdin: Feed,
    pub stdout: Intake,
    pub stderr: Intake,
    /// Where it tells why it could not become the program.
    failure: File,
}

/// What becomes of a fork: prepared before, so that after the fork nothing can fail but system calls.
struct Plan<'a> {
    path: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    folder: CString,
    account: Option<&'a Account>,
    streams: [OwnedFd; 3],
}

/// The steps from a fork to the program, in order.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Step {
    Session,
    Account,
    Folder,
    Streams,
    Execute,
}

/// Bytes of a failure: its step and its error number.
const FAILURE_BYTES: usize = 5;

impl Program {
    /// Starts a program in a folder. That it can be executed shows later, in [`Self::result`].
    pub fn start(order: &Order, folder: &Folder, input: Input) -> Result<Self, Stop> {
        Self::try_start(order, folder, input)
            .map_err(|error| Stop::Failed(format!("{} cannot be started: {error}", order.program)))
    }

    fn try_start(order: &Order, folder: &Folder, input: Input) -> io::Result<Self> {
        let (stdin, feed) = match input {
            Input::Nothing => (File::open("/dev/null")?.into(), None),
            Input::Lines => pipe2(OFlag::O_CLOEXEC).map(|(read, write)| (read, Some(write)))?,
        };
        let (stdout, their_stdout) = pipe2(OFlag::O_CLOEXEC)?;
        let (stderr, their_stderr) = pipe2(OFlag::O_CLOEXEC)?;
        let (failure, their_failure) = pipe2(OFlag::O_CLOEXEC)?;
        let plan = Plan::of(order, folder, [stdin, their_stdout, their_stderr])?;
        let started = Instant::now();
        // SAFETY: this process has one thread, so the child may do all that the parent may.
        let process = match unsafe { fork() }? {
            ForkResult::Child => become_program(&plan, &their_failure),
            ForkResult::Parent { child } => child.as_raw(),
        };
        fcntl(&failure, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Self {
            process,
            started,
            ended: None,
            alone: false,
            stdin: Feed::new(feed)?,
            stdout: Intake::new(stdout)?,
            stderr: Intake::new(stderr)?,
            failure: failure.into(),
        })
    }

    /// Takes in what is left in its output.
    pub fn drain(&mut self) {
        self.stdout.drain();
        self.stderr.drain();
    }

    /// How it ended, once it has.
    pub fn result(&mut self, order: &Order) -> Result<RawResult, Stop> {
        let mut failure = [0; FAILURE_BYTES];
        let result = self.ended.clone().unwrap_or(RawResult::Signal(Signal::SIGKILL as u8));
        match self.failure.read_exact(&mut failure) {
            Ok(()) => Err(never_ran(order, failure)),
            Err(_) => Ok(result),
        }
    }
}

impl<'a> Plan<'a> {
    fn of(order: &'a Order, folder: &Folder, streams: [OwnedFd; 3]) -> io::Result<Self> {
        let path = CString::new(order.program.as_str())?;
        let arguments = order.arguments.iter().map(|argument| Ok(CString::new(argument.as_str())?));
        let variable = |(name, value): &(String, String)| Ok(CString::new(format!("{name}={value}"))?);
        Ok(Self {
            arguments: std::iter::once(Ok(path.clone())).chain(arguments).collect::<io::Result<_>>()?,
            path,
            environment: order.environment.iter().map(variable).collect::<io::Result<_>>()?,
            folder: CString::new(folder.path().as_os_str().as_bytes())?,
            account: order.account.as_ref(),
            streams,
        })
    }
}

/// Becomes the program. If it cannot, it says so and ends.
fn become_program(plan: &Plan, failure: &impl AsRawFd) -> ! {
    let Err((step, errno)) = try_become(plan);
    let mut bytes = [step as u8; FAILURE_BYTES];
    bytes[1..].copy_from_slice(&(errno as i32).to_le_bytes());
    // SAFETY: the buffer has the length given, and _exit leaves what the supervisor has open to the supervisor.
    unsafe {
        libc::write(failure.as_raw_fd(), bytes.as_ptr().cast(), bytes.len());
        libc::_exit(127)
    }
}

fn try_become(plan: &Plan) -> Result<std::convert::Infallible, (Step, Errno)> {
    let at = |step| move |errno| (step, errno);
    setsid().map_err(at(Step::Session))?;
    if let Some(account) = plan.account {
        switch_to(account).map_err(at(Step::Account))?;
    }
    // Should the supervisor be killed, its filter does not go on unwatched. Changing the user would undo this.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(at(Step::Session))?;
    chdir(plan.folder.as_c_str()).map_err(at(Step::Folder))?;
    for (stream, number) in plan.streams.iter().zip(0..) {
        // SAFETY: the standard streams of the supervisor are not used in this process any more.
        Errno::result(unsafe { libc::dup2(stream.as_raw_fd(), number) }).map_err(at(Step::Streams))?;
    }
    reset_signals().map_err(at(Step::Execute))?;
    execve(&plan.path, &plan.arguments, &plan.environment).map_err(at(Step::Execute))
}

fn switch_to(account: &Account) -> Result<(), Errno> {
    let groups: Vec<Gid> = account.groups.iter().copied().map(Gid::from_raw).collect();
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    setgroups(&groups)?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)
}

/// A program expects the signals as after a login: none ignored, none blocked.
fn reset_signals() -> Result<(), Errno> {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGPIPE] {
        // SAFETY: the default action is no code of this program.
        unsafe { libc::signal(signal as i32, libc::SIG_DFL) };
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Why the program did not run. What lies in the program is an answer, what lies in this machine is not (HPC-F-07).
fn never_ran(order: &Order, failure: [u8; FAILURE_BYTES]) -> Stop {
    let [step, a, b, c, d] = failure;
    let errno = Errno::from_raw(i32::from_le_bytes([a, b, c, d]));
    let path = &order.program;
    let machine = |what: String| Stop::Failed(format!("{what}: {}", errno.desc()));
    let not_runnable = |why: &str| Stop::Result(RawResult::NotRunnable(format!("{path} {why}")), Captured::default());
    match step {
        step if step == Step::Session as u8 => machine("the filter cannot have a session of its own".into()),
        step if step == Step::Account as u8 => machine("the filter account cannot be switched to".into()),
        step if step == Step::Folder as u8 => machine(format!(
            "the filter account cannot enter the call's folder {}; every folder above it has to let it pass",
            order.folder
        )),
        step if step == Step::Streams as u8 => machine("the filter's standard streams cannot be set".into()),
        _ => match errno {
            Errno::EACCES => not_runnable("cannot be executed by the account that filters run under"),
            Errno::ENOEXEC => not_runnable("is in no format that this machine executes; a script begins with `#!`"),
            Errno::ENOENT => not_runnable("needs a loader that does not exist"),
            Errno::EAGAIN | Errno::ENOMEM => machine(format!("{path} cannot be started")),
            errno => not_runnable(&format!("cannot be executed: {}", errno.desc())),
        },
    }
}
