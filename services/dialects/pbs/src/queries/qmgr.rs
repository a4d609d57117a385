//! The command line of `qmgr`.

use crate::{getopt, refusal::Refusal};

/// A request of `qmgr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagerRequest {
    /// The only commands (`-c`); without them they come from standard input.
    pub commands: Option<String>,
    /// Whether the first command that fails is the last (`-a`).
    pub aborts: bool,
    /// Whether commands are repeated on standard output (`-e`).
    pub echoes: bool,
    /// Whether commands are only read, not carried out (`-n`).
    pub only_checks: bool,
    /// Whether nothing is written on standard error (`-z`).
    pub quiet: bool,
    /// The servers.
    pub servers: Vec<String>,
}

/// Reads a command line.
///
/// # Errors
/// An unknown option, or one without its value.
pub fn qmgr(words: &[String]) -> Result<ManagerRequest, Refusal> {
    let read = getopt::read("ac:enz", words)?;
    Ok(ManagerRequest {
        commands: read.value('c').map(str::to_owned),
        aborts: read.has('a'),
        echoes: read.has('e'),
        only_checks: read.has('n'),
        quiet: read.has('z'),
        servers: read.all_operands(),
    })
}
