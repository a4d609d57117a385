//! Signals to a command that goes on while something else runs.

use nix::sys::signal::{SigSet, Signal};
use std::{
    os::unix::process::CommandExt as _,
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

/// The signals that are not left to the system.
const WATCHED: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGWINCH,
];

type Handler = Box<dyn FnMut(Signal) + Send>;

/// What is done with signals. One thread takes them all, so that they interrupt nothing.
#[derive(Clone)]
pub struct Interrupts {
    now: Arc<Mutex<Now>>,
}

#[derive(Default)]
struct Now {
    handler: Option<Handler>,
    /// A signal that asked this command to end while there was no handler.
    missed: Option<Signal>,
}

impl Interrupts {
    /// Signals end the command until something else is said. It is for the beginning of a command: threads that are there
    /// before would take signals themselves.
    pub fn watch() -> Self {
        let interrupts = Self { now: Arc::default() };
        let signals: SigSet = WATCHED.into_iter().collect();
        if signals.thread_block().is_ok() {
            let taken = interrupts.clone();
            thread::spawn(move || {
                while let Ok(signal) = signals.wait() {
                    taken.take(signal);
                }
            });
        }
        interrupts.end_the_command();
        interrupts
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, signal: Signal) {
        let mut now = self.now();
        match &mut now.handler {
            Some(handler) => handler(signal),
            None if is_end(signal) => now.missed = Some(signal),
            None => {}
        }
    }

    /// From now on this is done with each signal, also with one that came while they were put off.
    pub fn handle(&self, mut handler: impl FnMut(Signal) + Send + 'static) {
        let mut now = self.now();
        if let Some(signal) = now.missed.take() {
            handler(signal);
        }
        now.handler = Some(Box::new(handler));
    }

    /// A signal that asks for it ends the command, which leaves nothing behind.
    pub fn end_the_command(&self) {
        self.handle(|signal| {
            if is_end(signal) {
                process::exit(1);
            }
        });
    }

    /// Signals wait for the next handler.
    pub fn put_off(&self) {
        self.now().handler = None;
    }
}

/// A program that is started meanwhile gets its signals itself. It would inherit that they are blocked.
pub fn leave_to(program: &mut process::Command) {
    let unblock = || Ok(SigSet::empty().thread_set_mask()?);
    // SAFETY: between fork and exec one system call is made, and nothing else.
    unsafe { program.pre_exec(unblock) };
}

/// Whether a signal asks a command to end.
pub const fn is_end(signal: Signal) -> bool {
    matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)
}
