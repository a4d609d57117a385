//! Policies as files: TOML, read with all errors in place, and printed again.
//!
//! `docs/reference/policy.md` describes the format. [`Policy::faults`] checks rules beyond the format (no key named
//! twice, no limit that limits nothing), for files and commands alike; this module says where in the file the fault is.

mod print;
mod read;

pub use print::print;
pub use read::{KEYS, VERSION, names_version};

use muster_schemas::policy::Policy;
use std::{fmt, path::Path};

/// The most bytes of a policy file.
pub const MOST_BYTES: usize = 256 * 1024;
/// The most errors of a file that are reported at once.
pub const MOST_ERRORS: usize = 100;

/// A fault in a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFileError {
    /// The name of the file, as given.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The text at that place, cut off at the end of the line or after some 60 characters; empty at the end of the
    /// file.
    pub token: String,
    /// The fault, what was expected, and the nearest known word if one is near.
    pub message: String,
}

impl fmt::Display for PolicyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for PolicyFileError {}

/// Reads a policy from the text of a file. Without a `name` in it, the policy gets the file's name, without folder and
/// extension.
///
/// Returns all errors that were found, in the order of the text, at most [`MOST_ERRORS`].
pub fn parse(text: &str, file_name: &str) -> Result<Policy, Vec<PolicyFileError>> {
    if text.len() > MOST_BYTES {
        let message = format!("expected a policy of at most {MOST_BYTES} bytes, found {} bytes", text.len());
        return Err(vec![error_at(file_name, "", 0..0, message)]);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let stem = Path::new(file_name).file_stem().map_or_else(|| "policy".into(), |stem| stem.to_string_lossy());
    let (policy, mut faults) = read::read(text, &stem);
    if faults.is_empty() {
        return Ok(policy);
    }
    faults.sort_by_key(|fault| fault.span.start);
    faults.truncate(MOST_ERRORS);
    Err(faults.into_iter().map(|fault| error_at(file_name, text, fault.span, fault.message)).collect())
}

/// Reads a policy from the bytes of a file: [`parse`], for input that may not even be text.
pub fn parse_bytes(bytes: &[u8], file_name: &str) -> Result<Policy, Vec<PolicyFileError>> {
    // Input that is too long is not looked at.
    let checked = &bytes[..bytes.len().min(MOST_BYTES + 1)];
    match std::str::from_utf8(checked) {
        Ok(text) => parse(text, file_name),
        Err(_) if bytes.len() > MOST_BYTES => {
            let message = format!("expected a policy of at most {MOST_BYTES} bytes, found more");
            Err(vec![error_at(file_name, "", 0..0, message)])
        }
        Err(error) => {
            let at = error.valid_up_to();
            let before = String::from_utf8_lossy(&checked[..at]);
            let message = format!("expected UTF-8 text, found the byte 0x{:02x}", checked[at]);
            Err(vec![error_at(file_name, &before, at..at, message)])
        }
    }
}

fn error_at(file: &str, text: &str, span: std::ops::Range<usize>, message: String) -> PolicyFileError {
    let start = text.floor_char_boundary(span.start);
    let before = &text[..start];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before[before.rfind('\n').map_or(0, |end| end + 1)..].chars().count() + 1;
    PolicyFileError { file: file.into(), line, column, token: read::token(text, &span), message }
}
