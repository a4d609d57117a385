//! `scontrol` and `sacctmgr` as shells: each line of the input is a command.

use muster_cli::stderr_line;
use muster_slurm::queries::shell::{Line, read};
use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Carries out the commands of standard input, each with these options, until `exit` or the end of the input. Continues
/// after a failure; the status is the highest of all.
pub fn run(tool: &str, options: Vec<String>, mut carry_out: impl FnMut(&[String]) -> u8) -> u8 {
    let mut options = options;
    let mut last: Vec<String> = Vec::new();
    let mut status = 0;
    loop {
        prompt(tool);
        let mut text = String::new();
        // Locked for one line only: a command may ask a question.
        match std::io::stdin().lock().read_line(&mut text) {
            Ok(1..) => {}
            Ok(0) => return status,
            Err(error) => {
                stderr_line!("{tool}: error: {error}");
                return 1;
            }
        }
        match read(tool, &text) {
            Line::Exit => return status,
            Line::Nothing => continue,
            Line::Mode(option) => {
                options.push(option.to_owned());
                continue;
            }
            Line::Unclosed => {
                stderr_line!("{tool}: error: a quote is not closed");
                status = status.max(1);
                continue;
            }
            Line::Command(words) => last = words,
            Line::Again if last.is_empty() => continue,
            Line::Again => {}
        }
        let words: Vec<String> = options.iter().chain(&last).cloned().collect();
        status = status.max(carry_out(&words));
    }
}

/// Shows whoever sits at a terminal that the next command can come.
fn prompt(tool: &str) {
    if std::io::stdin().is_terminal() {
        let mut out = std::io::stdout();
        let _ = write!(out, "{tool}: ").and_then(|()| out.flush());
    }
}
