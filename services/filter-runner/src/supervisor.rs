//! The supervisor: a separate process that makes one call at a time.
//!
//! The supervisor is the sub-reaper, so whatever a filter starts descends from it, including processes that left their
//! process group or session or lost their parent. It lives as long as its socket: when the runner closes it or dies,
//! the supervisor ends what it runs and then itself.

mod answer;
mod family;
mod folder;
mod persistent;
mod program;
mod spawn;
mod state;
mod stop;
mod streams;
mod trust;
mod wait;

use crate::{
    call::{Captured, FileAfter},
    protocol::{self, Order, Outcome, Reply},
};
use folder::Folder;
use muster_schemas::filter::FilterExit;
use nix::{
    sys::{
        prctl,
        signal::{SigSet, Signal},
        signalfd::{SfdFlags, SignalFd},
        stat::{Mode, umask},
    },
    unistd::setsid,
};
use program::{Input, Program};
use state::Supervisor;
use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::{fd::FromRawFd as _, unix::net::UnixStream},
    time::{Duration, Instant},
};
use stop::{GRACE, Stop, micros, time_limit};
use trust::Programs;
use wait::{Goal, Wake};

/// The first argument that makes the program a supervisor.
pub const ARGUMENT: &str = "filter-supervisor";
/// How long to wait after SIGKILL before the verdict is sent anyway: the process hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// Turns this process into a supervisor if its arguments say so, and never returns then. A program that runs filters
/// calls it first, before it starts a thread, opens a file or allocates memory.
pub fn supervise_filters_if_asked() {
    let asked = std::env::args_os().nth(1).is_some_and(|first: OsString| first == ARGUMENT);
    if !asked {
        return;
    }
    let status = match Supervisor::new().and_then(Supervisor::serve) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{ARGUMENT} is started by muster's filter-runner, not by people: {error}");
            1
        }
    };
    // SAFETY: the process ends here; nothing is buffered, and no destructor has anything to save.
    unsafe { libc::_exit(status) }
}

impl Supervisor {
    fn new() -> io::Result<Self> {
        // SAFETY: the standard input is this socket, and nothing else uses it.
        let runner = unsafe { UnixStream::from_raw_fd(0) };
        runner.peer_addr()?;
        // The runner's parent may have left files open; filters get none of them.
        // SAFETY: the call has no memory effects; nothing in this process has other files open yet.
        unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
        // Signals meant for the runner's session must not reach it: it ends filters by its own rules.
        let _ = setsid();
        for signal in Signal::iterator() {
            let ignored = spawn::IGNORED_BY_SUPERVISORS.contains(&signal);
            // SAFETY: neither action runs code of this program. Signals that the runner's parent ignored are no longer
            // ignored.
            unsafe { libc::signal(signal as i32, if ignored { libc::SIG_IGN } else { libc::SIG_DFL }) };
        }
        // It may have been started as `/proc/self/exe`, which says nothing in a list of processes.
        let _ = prctl::set_name(c"muster-filters");
        prctl::set_child_subreaper(true)?;
        umask(Mode::from_bits_truncate(0o077));
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        mask.thread_block()?;
        let children = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Self { runner, children, programs: Programs::default(), persistent: None, folder: None, stuck: false })
    }

    fn serve(mut self) -> io::Result<()> {
        while let Some(order) = self.next_order()? {
            let outcome = match &order.lines {
                None => self.run_once(&order),
                Some(lines) => self.ask(&order, lines),
            };
            let reply = match outcome {
                Ok(outcome) => Reply::Done(Box::new(outcome)),
                Err(Stop::Result(result, stderr)) => {
                    Reply::Done(Box::new(self.without_verdict(&order, result, stderr)))
                }
                Err(Stop::Failed(why)) => Reply::Failed(why),
                Err(Stop::RunnerGone) => break,
            };
            if self.runner.write_all(&protocol::to_bytes(&reply)?).is_err() || self.stuck {
                break;
            }
            self.folder = None;
        }
        self.folder = None;
        if let Some(persistent) = self.persistent.take() {
            self.retire(persistent);
        }
        self.runner.shutdown(std::net::Shutdown::Both).ok();
        family::kill(None, None);
        Ok(())
    }

    /// The next order; `None` at the end.
    fn next_order(&mut self) -> io::Result<Option<Order>> {
        if let Some(mut persistent) = self.persistent.take() {
            self.wait(&mut persistent.program, Goal::Order, None);
            self.persistent = Some(persistent);
        }
        match protocol::receive(&mut self.runner) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            other => other,
        }
    }

    fn run_once(&mut self, order: &Order) -> Result<Outcome, Stop> {
        let program_hash = self.programs.vet(&order.program, &order.trusted)?;
        let folder = Folder::make(order)?;
        let mut program = Program::start(order, &folder, Input::Nothing)?;
        let deadline = program.started + time_limit(order);
        let wake = self.wait(&mut program, Goal::Exit, Some(deadline));
        let duration = program.started.elapsed();
        self.end(&mut program, wake != Wake::Reached);
        let result = match wake {
            Wake::RunnerGone => return Err(Stop::RunnerGone),
            Wake::Late => FilterExit::TimedOut,
            Wake::Reached | Wake::Exited => program.result(),
        };
        program.drain();
        let outcome = Outcome {
            result,
            files: folder.files(order),
            result_lines: folder.result_lines(),
            stdout: program.stdout.take(),
            stderr: program.stderr.take(),
            duration_micros: micros(duration),
            program_hash,
            surplus: Vec::new(),
        };
        self.folder = Some(folder);
        Ok(outcome)
    }

    /// Ends everything left of a program. With grace it first gets SIGTERM and time to end by itself (HPC-F-06).
    fn end(&mut self, program: &mut Program, grace: bool) {
        if grace && !program.alone {
            family::signal(libc::SIGTERM);
            self.wait(program, Goal::Alone, Some(Instant::now() + GRACE));
        }
        if !program.alone {
            self.stuck = !family::kill(Some(program), Some(KILL_PATIENCE));
        }
    }

    fn without_verdict(&mut self, order: &Order, result: FilterExit, stderr: Captured) -> Outcome {
        Outcome {
            result,
            files: order.files.iter().map(|_| FileAfter::Unchanged).collect(),
            result_lines: Captured::default(),
            stdout: Captured::default(),
            stderr,
            duration_micros: 0,
            program_hash: self.programs.vet(&order.program, &order.trusted).ok().flatten(),
            surplus: Vec::new(),
        }
    }
}
