//! Signals to a command while something else runs.

use nix::sys::signal::{SigSet, Signal};
use std::{
    os::unix::process::CommandExt as _,
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

/// The signals that the command handles itself.
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

/// How signals are handled. One thread takes them all, so that they interrupt nothing.
#[derive(Clone)]
pub struct Interrupts {
    now: Arc<Mutex<Now>>,
}

#[derive(Default)]
struct Now {
    handler: Option<Handler>,
    /// A signal to end that came while there was no handler.
    missed: Option<Signal>,
}

impl Interrupts {
    /// Starts handling signals; until something else is set, they end the command. Call it at the beginning of a
    /// command: threads that exist earlier would take signals themselves.
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

    /// Sets the handler for signals, including one that came while they were put off.
    pub fn handle(&self, mut handler: impl FnMut(Signal) + Send + 'static) {
        let mut now = self.now();
        if let Some(signal) = now.missed.take() {
            handler(signal);
        }
        now.handler = Some(Box::new(handler));
    }

    /// Lets signals end the command, which leaves nothing behind.
    pub fn end_the_command(&self) {
        self.handle(|signal| {
            if is_end(signal) {
                process::exit(1);
            }
        });
    }

    /// Makes signals wait for the next handler.
    pub fn put_off(&self) {
        self.now().handler = None;
    }
}

/// Lets a program started meanwhile get its signals itself. Otherwise it would inherit that they are blocked.
pub fn leave_to(program: &mut process::Command) {
    let unblock = || Ok(SigSet::empty().thread_set_mask()?);
    // SAFETY: between fork and exec this makes one system call, and nothing else.
    unsafe { program.pre_exec(unblock) };
}

/// Whether a signal asks a command to end.
pub const fn is_end(signal: Signal) -> bool {
    matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)
}
