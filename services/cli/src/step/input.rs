//! Standard input of this process, for the tasks of a step.

use crate::{
    interrupts::{Interrupts, is_end},
    stderr_line, terminal,
};
use muster_client::{Client, StepAddress};
use muster_schemas::{CommandId, resources::IndexSet, views::StepEndRequest};
use nix::sys::signal::{SigSet, Signal};
use std::{
    fs::File,
    io::{self, IsTerminal as _},
    os::fd::AsFd as _,
    thread,
    time::Duration,
};

/// Standard input on its way to a step, and the terminal as it was before.
pub struct Input {
    _raw: Option<terminal::Raw>,
}

impl Input {
    /// Forwards standard input until it ends, on separate threads that end with this process. If both sides have a
    /// terminal, keys go to the step as they are, and the step's terminal follows the size of this one. `interrupts` are
    /// the signals of this process, if something handles them already.
    pub fn start(client: Client, address: StepAddress, has_terminal: bool, interrupts: Option<&Interrupts>) -> Self {
        let raw = (has_terminal && io::stdin().is_terminal()).then(terminal::Raw::enter).flatten();
        let mut signalled = Signalled { client: client.another(), address, is_forced: false };
        match interrupts {
            Some(interrupts) => interrupts.handle(move |signal| signalled.obey(signal)),
            None => {
                let signals = watched_signals();
                // The threads below inherit this mask, so only the thread that waits for signals gets them.
                if signals.thread_block().is_ok() {
                    thread::spawn(move || {
                        while let Ok(signal) = signals.wait() {
                            signalled.obey(signal);
                        }
                    });
                }
            }
        }
        thread::spawn(move || pass_on(client, address, None, standard_input()));
        Self { _raw: raw }
    }
}

fn watched_signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGWINCH].into_iter().collect()
}

/// A step that signals to this process are about.
struct Signalled {
    client: Client,
    address: StepAddress,
    is_forced: bool,
}

impl Signalled {
    /// The first interrupt asks the step to end, the next ends it at once; the command still waits for the step's last
    /// output.
    fn obey(&mut self, signal: Signal) {
        let Self { client, address, is_forced } = self;
        let done = match signal {
            Signal::SIGWINCH => terminal::size().map_or(Ok(()), |size| client.resize_terminal(*address, size)),
            signal if is_end(signal) => {
                let request = StepEndRequest { component: None, is_forced: std::mem::replace(is_forced, true) };
                client.end_step(CommandId::new_now(), address.job, address.step, &request).map(drop)
            }
            _ => Ok(()),
        };
        if let Err(error) = done {
            stderr_line!("muster: {error}");
        }
    }
}

/// Standard input of this process, unbuffered; empty if it is closed.
pub fn standard_input() -> Box<dyn io::Read + Send> {
    match io::stdin().as_fd().try_clone_to_owned().map(File::from) {
        Ok(stdin) if stdin.is_terminal() => Box::new(Terminal(stdin)),
        Ok(stdin) => Box::new(stdin),
        Err(_) => Box::new(io::empty()),
    }
}

/// A terminal that is only read while this process is in the foreground. Reading in the background would stop the whole
/// command (`srun ... &`).
struct Terminal(File);

/// How often a command in the background checks whether it is in the foreground.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Terminal {
    fn is_in_background(&self) -> bool {
        nix::unistd::tcgetpgrp(&self.0).is_ok_and(|group| group != nix::unistd::getpgrp())
    }
}

impl io::Read for Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // With the signal blocked, reading in the background is an error instead.
        let mut stops = SigSet::empty();
        stops.add(Signal::SIGTTIN);
        stops.thread_block()?;
        loop {
            match self.0.read(buffer) {
                Err(error) if error.raw_os_error() == Some(libc::EIO) && self.is_in_background() => {
                    thread::sleep(LOOK_AGAIN);
                }
                done => return done,
            }
        }
    }
}

/// Whether there will never be any input, as in batch scripts.
pub fn is_null_device() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let of_stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    of_stdin
        .and_then(|stdin| Ok(stdin.rdev() != 0 && stdin.rdev() == std::fs::metadata("/dev/null")?.rdev()))
        .unwrap_or(false)
}

/// Forwards input to the tasks of a step, or only to those of some of its groups, until it ends. This stops when the
/// step has ended, since it takes no more input.
pub fn pass_on(mut client: Client, address: StepAddress, groups: Option<IndexSet>, mut source: impl io::Read) {
    let mut buffer = vec![0; 64 << 10];
    let mut offset = 0;
    loop {
        let length = match source.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        match client.say(address, groups.as_ref(), offset, &buffer[..length], length == 0) {
            Ok(said) if length > 0 => offset = said,
            _ => return,
        }
    }
}
