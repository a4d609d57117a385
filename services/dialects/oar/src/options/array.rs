//! Arrays: `--array` and `--array-param-file` (OAR-C-06).

use crate::{
    refusal::{Code, Refusal},
    text::decimal,
};

/// The greatest number of jobs of an array.
pub const MOST_JOBS: usize = 100_000;
/// The longest line of a file of parameters, in bytes.
const LONGEST_LINE: usize = 65_536;

/// Reads the value of `--array`.
///
/// # Errors
/// A value that is no number from 1 to [`MOST_JOBS`] (exit 6).
pub fn size(text: &str) -> Result<usize, Refusal> {
    let size = decimal::<usize>(text).filter(|size| (1..=MOST_JOBS).contains(size));
    let why = format!("expected a number of jobs from 1 to {MOST_JOBS}");
    size.ok_or_else(|| Refusal::option(Code::ArraySize, "--array", why))
}

/// The arguments of each job of a file of parameters: the lines that are not blank after `#` comments are taken out. A
/// line with `""` alone is a job without argument.
///
/// # Errors
/// A file without jobs (exit 6), or one that is too long (exit 12).
pub fn parameters(text: &str) -> Result<Vec<String>, Refusal> {
    let mut jobs = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let place = format!("--array-param-file, line {number}");
        if line.len() > LONGEST_LINE || line.contains('\0') {
            let why = format!("expected at most {LONGEST_LINE} bytes without NUL");
            return Err(Refusal::option(Code::Script, &place, why));
        }
        match without_comment(line).trim() {
            "" => {}
            "\"\"" => jobs.push(String::new()),
            arguments => jobs.push(arguments.to_owned()),
        }
        if jobs.len() > MOST_JOBS {
            return Err(Refusal::option(Code::ArraySize, &place, format!("an array has at most {MOST_JOBS} jobs")));
        }
    }
    if jobs.is_empty() {
        return Err(Refusal::option(Code::ArraySize, "--array-param-file", "the file has no parameters"));
    }
    Ok(jobs)
}

/// The line up to a `#` outside quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, character) in line.char_indices() {
        match (quote, character) {
            (Some(open), character) if open == character => quote = None,
            (None, '"' | '\'') => quote = Some(character),
            (None, '#') => return &line[..at],
            _ => {}
        }
    }
    line
}

/// The command of a job with its arguments.
pub fn command(command: &str, arguments: &str) -> String {
    if arguments.is_empty() { command.to_owned() } else { format!("{command} {arguments}") }
}
