//! Whether and how we talk to a person: colours, widths, progress.

use crate::table::{Layout, Table};
use std::{
    io::{IsTerminal, Write},
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
    // SAFETY: all-zero is a valid winsize, and the call writes at most one to the address given.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: see above; the file descriptor is only asked.
    let asked = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    (asked == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
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
        eprint!("\r\x1b[K{}", line());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.last_shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
