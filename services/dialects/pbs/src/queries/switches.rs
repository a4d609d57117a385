//! `qenable`, `qdisable`, `qstart` and `qstop`.

use super::operands::Destination;
use crate::{
    getopt,
    refusal::{Refusal, shown},
};

/// The most destinations of a command.
const MOST: usize = 10_000;

/// A switch of a queue and where it is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Whether jobs can be submitted to it.
    Enabled(bool),
    /// Whether its jobs are started.
    Started(bool),
}

impl Switch {
    /// What the command of this name sets; `None` for other commands.
    pub fn of(tool: &str) -> Option<Self> {
        match tool {
            "qenable" => Some(Self::Enabled(true)),
            "qdisable" => Some(Self::Enabled(false)),
            "qstart" => Some(Self::Started(true)),
            "qstop" => Some(Self::Started(false)),
            _ => None,
        }
    }
}

/// Reads a command line: the queues. A word that is no destination stands for itself as an error, since it does not keep
/// the others from being switched.
///
/// # Errors
/// An option, or no destination.
pub fn switched(words: &[String]) -> Result<Vec<Result<Destination, String>>, Refusal> {
    let words = getopt::read("", words)?.all_operands();
    if words.is_empty() {
        return Err(Refusal::Operands("the name of a queue is missing".to_owned()));
    }
    if words.len() > MOST {
        return Err(Refusal::Operands(format!("at most {MOST} destinations are taken")));
    }
    let one =
        |word: &String| Destination::parse(word).map_err(|_| format!("illegally formed destination: {}", shown(word)));
    Ok(words.iter().map(one).collect())
}
