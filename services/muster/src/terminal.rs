//! Whether and how we talk to a person: colours, widths, progress.

use crate::table::{Layout, Table};
use muster_commands::terminal::size_of;
use std::{
    io::{IsTerminal, Write},
    sync::mpsc,
    time::{Duration, Instant},
};

/// How standard output wants tables. Colours and cutting are for terminals only; `NO_COLOR` forbids colours.
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

/// Says on standard error how far something has come, once it has taken over a second, if a person is there to read it.
pub struct Progress {
    started: Instant,
    last_shown: Option<Instant>,
    enabled: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new() -> Self {
        Self { started: Instant::now(), last_shown: None, enabled: std::io::stderr().is_terminal() }
    }

    /// Shows the line instead of the one before; at most a few times a second.
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

/// Shows a line that is made anew every second, beginning after one, while something blocks.
pub struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ticker {
    /// Starts it, if a person is there to read it.
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
        // Without a thread nothing is shown, and nothing else is lost.
        Self { stop: Some(stop), thread: std::thread::Builder::new().spawn(show).ok() }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It ends at once, or panicked and has said so.
            let _ = thread.join();
        }
    }
}

/// Does something that can take long, and shows for how long it has.
pub fn waiting<T>(what: &'static str, action: impl FnOnce() -> T) -> T {
    let _ticker = Ticker::start(move |elapsed| Some(format!("{what} ({} s)", elapsed.as_secs())));
    action()
}
