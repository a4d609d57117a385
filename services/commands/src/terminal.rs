//! The terminal that a command is used at.

use muster_schemas::steps::TerminalSize;
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

/// The size of the terminal that is standard input.
pub fn size() -> Option<TerminalSize> {
    size_of(libc::STDIN_FILENO)
}

/// The size of the terminal that a descriptor of this process leads to, if it is one. Nobody may have said how large it is:
/// then both numbers are 0.
pub fn size_of(descriptor: i32) -> Option<TerminalSize> {
    // SAFETY: all-zero is a valid winsize, and the call writes at most one to the address given.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: see above; the file descriptor is only asked.
    let asked = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) };
    (asked == 0).then_some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

/// The terminal that is standard input, passing on every key as it is; it is put back at the end of this value.
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
        // If the terminal has gone there is nothing to put back.
        let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &self.before);
    }
}
