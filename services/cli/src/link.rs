//! Programs that were called through the link of a dialect's command.

use crate::{connection::ConnectionOptions, stderr_line};
use std::path::Path;

/// A command line that was given through a link.
pub struct Linked {
    /// The command.
    pub tool: &'static str,
    /// Its words.
    pub words: Vec<String>,
    /// The instance that the environment names.
    pub connection: ConnectionOptions,
}

/// The command line of this process, if it was called by the name of one of these commands; `None` if it was not. The
/// error is the exit status for words that are no text, which are reported.
pub fn called_as(tools: impl IntoIterator<Item = &'static str>) -> Option<Result<Linked, u8>> {
    let path = std::env::args_os().next()?;
    let name = Path::new(&path).file_name()?.to_str()?;
    let tool = tools.into_iter().find(|tool| *tool == name)?;
    let mut words = Vec::new();
    for word in std::env::args_os().skip(1) {
        match word.into_string() {
            Ok(word) => words.push(word),
            Err(word) => {
                stderr_line!("{tool}: error: {} is not UTF-8 text", word.to_string_lossy());
                return Some(Err(1));
            }
        }
    }
    Some(Ok(Linked { tool, words, connection: of_environment() }))
}

/// The instance that the environment names.
fn of_environment() -> ConnectionOptions {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let text = |name| variable(name).and_then(|value| value.into_string().ok());
    ConnectionOptions {
        data: variable("MUSTER_DATA").map(Into::into),
        server: text("MUSTER_SERVER"),
        token: text("MUSTER_TOKEN"),
        ca: variable("MUSTER_CA").map(Into::into),
        clear_token: text("MUSTER_CLEAR_TOKEN").is_some_and(|word| is_true(&word)),
        on_failure: None,
    }
}

/// Whether the value of a variable does not mean no, as clap reads it.
fn is_true(word: &str) -> bool {
    !["0", "f", "false", "n", "no", "off"].iter().any(|no| word.eq_ignore_ascii_case(no))
}
