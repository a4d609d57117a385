//! The terminal of a command: colours, widths, progress.

use crate::table::{Layout, Table};
use muster_schemas::steps::TerminalSize;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::{
    io::{IsTerminal, Write},
    sync::mpsc,
    time::{Duration, Instant},
};

/// The size of the terminal on standard input.
pub fn size() -> Option<TerminalSize> {
    size_of(libc::STDIN_FILENO)
}

/// The size of the terminal on a descriptor of this process, or `None` if it is no terminal. Both numbers are 0 if the
/// terminal does not know its size.
pub fn size_of(descriptor: i32) -> Option<TerminalSize> {
    // SAFETY: all-zero is a valid winsize, and the call writes at most one to the address given.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: see above; the call only reads the file descriptor.
    let asked = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) };
    (asked == 0).then_some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

/// The terminal on standard input in raw mode; restored on drop.
pub struct Raw {
    before: Termios,
}

impl Raw {
    /// `None` if the terminal refuses.
    pub fn enter() -> Option<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(&stdin, SetArg::TCSANOW, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // If the terminal is gone there is nothing to restore.
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &self.before);
    }
}

/// The layout of tables on standard output. Colours and cutting are for terminals only; `NO_COLOR` forbids colours.
pub fn layout() -> Layout {
    let terminal = std::io::stdout().is_terminal();
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    Layout { width: terminal.then(terminal_width).flatten(), colours: terminal && !refused }
}

fn terminal_width() -> Option<usize> {
    size_of(libc::STDOUT_FILENO).map(|size| usize::from(size.columns)).filter(|columns| *columns > 0)
}

/// Prints a table on standard output.
pub fn print_table(table: &Table) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    table.write(layout(), &mut out)?;
    out.flush()
}

/// Shows progress on standard error once the work has taken over a second, if that is a terminal.
pub struct Progress {
    started: Instant,
    last_shown: Option<Instant>,
    enabled: bool,
}

impl Progress {
    /// Shows nothing yet.
    #[expect(clippy::new_without_default, reason = "it depends on the terminal")]
    pub fn new() -> Self {
        Self { started: Instant::now(), last_shown: None, enabled: std::io::stderr().is_terminal() }
    }

    /// Replaces the line shown, at most a few times a second.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        const PATIENCE: Duration = Duration::from_secs(1);
        const INTERVAL: Duration = Duration::from_millis(200);
        let recent = self.last_shown.is_some_and(|shown| shown.elapsed() < INTERVAL);
        if !self.enabled || recent || self.started.elapsed() < PATIENCE {
            return;
        }
        self.last_shown = Some(Instant::now());
        let _ = write!(std::io::stderr(), "\r\x1b[K{}", line());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.last_shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Shows a line, updated every second from the first second on, while something blocks.
pub struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ticker {
    /// Starts it, if standard error is a terminal.
    pub fn start(mut line: impl FnMut(Duration) -> Option<String> + Send + 'static) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let started = Instant::now();
        let show = move || {
            let mut progress = Progress { started, last_shown: None, enabled: true };
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(mpsc::RecvTimeoutError::Timeout) {
                if let Some(line) = line(started.elapsed()) {
                    progress.show(|| line);
                }
            }
        };
        // Without a thread nothing is shown; nothing else changes.
        Self { stop: Some(stop), thread: std::thread::Builder::new().spawn(show).ok() }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // The thread ends at once, or panicked and has said so.
            let _ = thread.join();
        }
    }
}

/// Does something that can take long, and shows how long it has taken.
pub fn waiting<T>(what: &'static str, action: impl FnOnce() -> T) -> T {
    let _ticker = Ticker::start(move |elapsed| Some(format!("{what} ({} s)", elapsed.as_secs())));
    action()
}
