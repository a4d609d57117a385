//! Patterns for the names of output files.

use crate::ids::JobId;

/// The pattern of standard output when the job names none.
pub fn default_pattern(job: JobId) -> &'static str {
    if job.index.is_some() { "muster-%A_%a.out" } else { "muster-%j.out" }
}

/// A width in a pattern has no effect beyond this.
const WIDEST: usize = 10;

/// Fills in a pattern: `%x` becomes the meaning of the letter, or stays if the letter has none. A width, as in `%5j`,
/// pads a number with zeros.
pub fn expand(pattern: &str, meaning: impl Fn(char) -> Option<String>) -> String {
    let mut path = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        path.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let symbol = after[digits..].chars().next();
        let end = at + 1 + digits + symbol.map_or(0, char::len_utf8);
        match symbol.and_then(&meaning) {
            Some(text) if digits > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                let width = after[..digits].parse().map_or(WIDEST, |width: usize| width.min(WIDEST));
                path.push_str(&format!("{text:0>width$}"));
            }
            Some(text) => path.push_str(&text),
            None => path.push_str(&rest[at..end]),
        }
        rest = &rest[end..];
    }
    path.push_str(rest);
    path
}

/// The meaning of a pattern letter that is the same for all tasks of a job: `%j` job, `%A` number of the job or array,
/// `%a` index in it, `%b` its last digit, `%x` name, `%u` user, `%%` a per cent sign.
pub fn of_job(symbol: char, job: JobId, name: &str, user: &str) -> Option<String> {
    let index = job.index.unwrap_or(0);
    Some(match symbol {
        'j' => job.to_string(),
        'A' => job.number.to_string(),
        'a' => index.to_string(),
        'b' => (index % 10).to_string(),
        'x' => as_file_name(name),
        'u' => as_file_name(user),
        '%' => "%".to_owned(),
        _ => return None,
    })
}

/// A name chosen by a user, as a file name: it must not lead into another folder.
pub fn as_file_name(name: &str) -> String {
    name.replace('/', "_")
}
