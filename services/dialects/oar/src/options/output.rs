//! The files for the output of a job (OAR-J-16).

use crate::refusal::{Code, Refusal};

/// The longest name of a file, in bytes.
const LONGEST: usize = 4096;

/// A stream of a job's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// The standard output.
    Output,
    /// The errors.
    Errors,
}

/// Checks the value of `-O` or `-E`: letters, digits, `_ . / - % \` and blanks.
///
/// # Errors
/// Another character, or a name that is too long or empty (-12, -13).
pub fn check(stream: Stream, name: &str) -> Result<(), Refusal> {
    let (code, option) = match stream {
        Stream::Output => (Code::Output, "-O"),
        Stream::Errors => (Code::Errors, "-E"),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-%\\ ".contains(&byte);
    if name.trim().is_empty() || name.len() > LONGEST || !name.bytes().all(is_plain) {
        let why = format!("expected a file name of letters, digits, _ . / - % \\ and blanks, at most {LONGEST} bytes");
        return Err(Refusal::option(code, option, why));
    }
    Ok(())
}

/// The text with `%jobid%` and `%jobname%` filled in. Words inside the id or the name are not filled in.
pub fn filled(text: &str, job: u64, name: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix("%jobid%") {
            filled.push_str(&job.to_string());
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("%jobname%") {
            filled.push_str(name);
            rest = behind;
        } else {
            filled.push('%');
            rest = &rest[1..];
        }
    }
    filled + rest
}
