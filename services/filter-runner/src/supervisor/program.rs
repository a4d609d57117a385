//! A filter's process: how it is started, and how it ended.

use super::{
    Stop,
    folder::Folder,
    spawn::{Failure, Plan, Step},
    streams::{Feed, Intake},
};
use crate::{call::Captured, protocol::Order};
use muster_schemas::filter::FilterExit;
use nix::{errno::Errno, fcntl::OFlag, unistd::pipe2};
use std::{fs::File, io, os::fd::OwnedFd, time::Instant};

/// What a program reads on its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing but the end (HPC-F-63).
    Nothing,
    /// Lines over time (HPC-F-67).
    Lines,
}

/// The process for a call, or for the calls of a persistent filter.
#[derive(Debug)]
pub struct Program {
    pub process: i32,
    pub started: Instant,
    /// How it ended, if it has.
    pub ended: Option<FilterExit>,
    /// Whether nothing is left of it and its descendants.
    pub alone: bool,
    pub stdin: Feed,
    pub stdout: Intake,
    pub stderr: Intake,
    /// The other ends of its output pipes. Since they are open here too, it does not wake the supervisor by closing its
    /// own, which most programs do just before they end.
    _outputs: Option<[OwnedFd; 2]>,
}

impl Program {
    /// Starts a program in a folder.
    pub fn start(order: &Order, folder: &Folder, input: Input) -> Result<Self, Stop> {
        let machine = |error: io::Error| Stop::Failed(format!("{} cannot be started: {error}", order.program));
        let (stdin, feed) = match input {
            Input::Nothing => (File::open("/dev/null").map_err(machine)?.into(), None),
            Input::Lines => {
                let (read, write) = pipe(machine)?;
                (read, Some(write))
            }
        };
        let (stdout, their_stdout) = pipe(machine)?;
        let (stderr, their_stderr) = pipe(machine)?;
        let plan = Plan::new(order, folder.path(), [&stdin, &their_stdout, &their_stderr]).map_err(machine)?;
        let started = Instant::now();
        let process = plan.spawn().map_err(|failure| never_ran(order, failure))?;
        let keeps_outputs = input == Input::Nothing;
        Ok(Self {
            process,
            started,
            ended: None,
            alone: false,
            stdin: Feed::new(feed).map_err(machine)?,
            stdout: Intake::new(stdout).map_err(machine)?,
            stderr: Intake::new(stderr).map_err(machine)?,
            _outputs: keeps_outputs.then_some([their_stdout, their_stderr]),
        })
    }

    /// Reads what is left of its output.
    pub fn drain(&mut self) {
        self.stdout.drain();
        self.stderr.drain();
    }

    /// How it ended; if it has not, it is being killed.
    pub fn result(&self) -> FilterExit {
        self.ended.clone().unwrap_or(FilterExit::Signal(libc::SIGKILL as u8))
    }
}

fn pipe(machine: impl Fn(io::Error) -> Stop) -> Result<(OwnedFd, OwnedFd), Stop> {
    pipe2(OFlag::O_CLOEXEC).map_err(|errno| machine(errno.into()))
}

/// Why the program did not run. A fault of the program is an answer, a fault of this machine is not (HPC-F-07).
fn never_ran(order: &Order, Failure { step, errno }: Failure) -> Stop {
    let path = &order.program;
    let machine = |what: String| Stop::Failed(format!("{what}: {}", errno.desc()));
    let not_runnable = |why: &str| Stop::Result(FilterExit::NotRunnable(format!("{path} {why}")), Captured::default());
    match (step, errno) {
        (Step::Fork, _) | (Step::Execute, Errno::EAGAIN | Errno::ENOMEM) => {
            machine(format!("no process can be started for {path}"))
        }
        (Step::Session, _) => machine("the filter cannot have its own session".into()),
        (Step::Account, _) => machine("the filter account cannot be switched to".into()),
        (Step::Folder, _) => machine(format!(
            "the filter account cannot enter the call's folder {}; every folder above it has to let it pass",
            order.folder
        )),
        (Step::Streams, _) => machine("the filter's standard streams cannot be set".into()),
        (Step::Execute, Errno::EACCES) => not_runnable("cannot be executed by the account that filters run under"),
        (Step::Execute, Errno::ENOEXEC) => {
            not_runnable("is in no format that this machine executes; a script begins with `#!`")
        }
        (Step::Execute, Errno::ENOENT) => not_runnable("needs a loader that does not exist"),
        (Step::Execute, errno) => not_runnable(&format!("cannot be executed: {}", errno.desc())),
    }
}
