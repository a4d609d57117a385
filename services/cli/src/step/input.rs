//! What this process reads, for the tasks of a step.

use crate::stderr_line;
use crate::terminal;
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
    /// Passes on what is read until there is no more, on threads of their own: they end with this process. With a terminal
    /// on both sides its keys go to the step as they are, and its size follows this one's.
    pub fn start(client: Client, address: StepAddress, has_terminal: bool) -> Self {
        let raw = (has_terminal && io::stdin().is_terminal()).then(terminal::Raw::enter).flatten();
        let signals = watched_signals();
        // The threads below have this mask too, so that the signals come to the one that waits for them.
        if signals.thread_block().is_ok() {
            let signalled = client.another();
            thread::spawn(move || obey_signals(signalled, address, &signals));
        }
        thread::spawn(move || pass_on(client, address, None, standard_input()));
        Self { _raw: raw }
    }
}

fn watched_signals() -> SigSet {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGWINCH] {
        signals.add(signal);
    }
    signals
}

/// The first interrupt asks the step to end, the next ends it at once; the command goes on to the last words of the step.
fn obey_signals(mut client: Client, address: StepAddress, signals: &SigSet) {
    let mut is_forced = false;
    while let Ok(signal) = signals.wait() {
        let done = if signal == Signal::SIGWINCH {
            terminal::size().map_or(Ok(()), |size| client.resize_terminal(address, size))
        } else {
            let request = StepEndRequest { component: None, is_forced: std::mem::replace(&mut is_forced, true) };
            client.end_step(CommandId::new_now(), address.job, address.step, &request).map(drop)
        };
        if let Err(error) = done {
            stderr_line!("muster: {error}");
        }
    }
}

/// What this process reads, without a buffer of its own. Without any it is empty.
pub fn standard_input() -> Box<dyn io::Read + Send> {
    match io::stdin().as_fd().try_clone_to_owned().map(File::from) {
        Ok(stdin) if stdin.is_terminal() => Box::new(Terminal(stdin)),
        Ok(stdin) => Box::new(stdin),
        Err(_) => Box::new(io::empty()),
    }
}

/// A terminal that this process reads from only while it is in the foreground there. Reading in the background would stop the
/// whole command (`srun ... &`).
struct Terminal(File);

/// After this time a command in the background looks whether it is in the foreground now.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Terminal {
    fn is_in_background(&self) -> bool {
        nix::unistd::tcgetpgrp(&self.0).is_ok_and(|group| group != nix::unistd::getpgrp())
    }
}

impl io::Read for Terminal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Where the signal is blocked, reading in the background is an error instead.
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

/// Whether there will never be anything to read, as in batch scripts.
pub fn is_null_device() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let of_stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    of_stdin
        .and_then(|stdin| Ok(stdin.rdev() != 0 && stdin.rdev() == std::fs::metadata("/dev/null")?.rdev()))
        .unwrap_or(false)
}

/// Passes on what is read to the tasks of a step, or only to those of some of its groups, to its end. A step that has ended
/// takes no more, which ends this too.
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
