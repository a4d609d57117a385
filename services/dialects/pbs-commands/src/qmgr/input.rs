//! Commands from standard input.

use crate::ended::print;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _};

/// The most bytes of a command with all its lines.
const MOST_BYTES: usize = 1 << 20;

/// Standard input, command by command. It prompts whoever sits at a terminal.
pub struct Input {
    line: usize,
    is_terminal: bool,
}

impl Input {
    /// The commands of standard input from its first line on.
    pub fn new() -> Self {
        Self { line: 0, is_terminal: io::stdin().is_terminal() }
    }

    /// The next lines that belong together, a backslash at the end of all but the last, with the number of the first;
    /// `None` at the end.
    pub fn next(&mut self) -> io::Result<Option<(usize, String)>> {
        let first = self.line + 1;
        let mut text = String::new();
        loop {
            self.prompt(text.is_empty());
            let line = read_line(MOST_BYTES.saturating_sub(text.len()))?;
            if line.is_empty() {
                if self.is_terminal && text.is_empty() {
                    // The shell's prompt begins a line of its own.
                    print("\n");
                }
                return Ok((!text.is_empty()).then_some((first, text)));
            }
            self.line += 1;
            text.push_str(&line);
            if !line.trim_end_matches(['\n', '\r']).ends_with('\\') {
                return Ok(Some((first, text)));
            }
        }
    }

    fn prompt(&self, is_first: bool) {
        if self.is_terminal {
            let mut out = io::stdout();
            let prompt = if is_first { "Qmgr: " } else { "Qmgr< " };
            let _ = write!(out, "{prompt}").and_then(|()| out.flush());
        }
    }
}

/// A line with its end; empty at the end of the input.
fn read_line(most: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(most as u64 + 1).read_until(b'\n', &mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("a command has at most {MOST_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("a line is not UTF-8 text"))
}
