//! The command line of `sprio`.

use super::{
    Failure, Request, Surroundings,
    getopt::{Opt, Takes::*, alias, opt, parse as read},
    ids, printed_only, set,
};
use crate::job_id::IdExpression;
use std::collections::BTreeSet;

const NAME: &str = "sprio";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('M'), "clusters", Value),
    alias("clusters", "cluster", Value),
    opt(Some('o'), "format", Value),
    opt(None, "help", Nothing),
    opt(Some('j'), "jobs", MaybeGlued),
    opt(Some('l'), "long", Nothing),
    opt(Some('h'), "noheader", Nothing),
    opt(Some('n'), "norm", Nothing),
    opt(Some('p'), "partition", Value),
    opt(Some('u'), "user", Value),
    alias("user", "users", Value),
    opt(None, "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
    opt(Some('w'), "weights", Nothing),
];

/// What `sprio` shows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sprio {
    /// Only these jobs; empty means all.
    pub ids: Vec<IdExpression>,
    /// Only jobs of these users; empty means everybody's.
    pub users: BTreeSet<String>,
    /// Only jobs in these partitions; empty means all.
    pub partitions: BTreeSet<String>,
    /// The columns of `-o`.
    pub format: Option<String>,
    /// All columns (`-l`).
    pub is_long: bool,
    /// Factors instead of their part of the priority (`-n`).
    pub is_normalized: bool,
    /// The weights of the factors instead of jobs (`-w`).
    pub weights: bool,
    /// Without the line above the columns (`-h`).
    pub no_header: bool,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options, ids and users, with Slurm's messages.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Sprio>, Failure> {
    // `-j` alone means all jobs, and its value may be the next word.
    let words = joined(arguments);
    let line = read(NAME, OPTIONS, &words)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    if let Some(word) = line.words.first() {
        return Err(Failure::error(NAME, format_args!("Unrecognized option: {word}")));
    }
    let list = |key: &str| set(&line.list(key).unwrap_or_default());
    let users = list("user");
    if let Some(unknown) = users.iter().find(|user| !(around.knows_user)(user)) {
        return Err(Failure::error(NAME, format_args!("Invalid user: {unknown}")));
    }
    let named = line.list("jobs").unwrap_or_default();
    Ok(Request::Run(Sprio {
        ids: ids(&named, |word| Failure::error(NAME, format_args!("Invalid job id: {word}")))?,
        users,
        partitions: list("partition"),
        format: line.value("format").map(str::to_owned),
        is_long: line.has("long"),
        is_normalized: line.has("norm"),
        weights: line.has("weights"),
        no_header: line.has("noheader"),
    }))
}

/// The words, with a list of jobs glued to the `-j` before it.
fn joined(arguments: &[impl AsRef<str>]) -> Vec<String> {
    let mut words: Vec<String> = Vec::with_capacity(arguments.len());
    for argument in arguments.iter().map(AsRef::as_ref) {
        match words.last_mut() {
            Some(last) if last == "-j" && argument.starts_with(|c: char| c.is_ascii_digit()) => {
                last.push_str(argument);
            }
            _ => words.push(argument.to_owned()),
        }
    }
    words
}
