//! The command lines of the commands that list and control: `squeue`, `sinfo`, `sacct`, `scancel`, `scontrol`, `sacctmgr`,
//! `sbcast`, `sattach`, `sdiag`.

pub mod change;
pub mod clusters;
pub mod copy;
pub mod getopt;
pub mod nodes;
pub mod reservation;
pub mod sacct;
pub mod sacctmgr;
pub mod scancel;
pub mod scontrol;
pub mod sdiag;
pub mod sinfo;
pub mod squeue;
pub mod update;
pub mod words;

use crate::{job_id::IdExpression, words::State};
use std::{collections::BTreeSet, fmt};

/// What a command says on the error stream when it does nothing, and its exit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The lines.
    pub lines: Vec<String>,
    /// The exit status.
    pub code: u8,
}

impl Failure {
    /// `<command>: error: <text>`, exit status 1.
    pub fn error(command: &str, text: impl fmt::Display) -> Self {
        Self { lines: vec![format!("{command}: error: {text}")], code: 1 }
    }

    /// `<command>: fatal: <text>`, exit status 1.
    pub fn fatal(command: &str, text: impl fmt::Display) -> Self {
        Self { lines: vec![format!("{command}: fatal: {text}")], code: 1 }
    }

    /// The text as it is, exit status 1.
    pub fn plain(text: impl fmt::Display) -> Self {
        Self { lines: vec![text.to_string()], code: 1 }
    }
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<T> {
    /// The command's work.
    Run(T),
    /// `--help`.
    Help,
    /// `--usage`.
    Usage,
    /// `-V`.
    Version,
}

/// What is printed instead of the command's work, if its options say so.
fn printed_only<T>(line: &getopt::Line) -> Option<Request<T>> {
    let requests = [("help", Request::Help), ("usage", Request::Usage), ("version", Request::Version)];
    requests.into_iter().find_map(|(key, request)| line.has(key).then_some(request))
}

/// How many seconds `--iterate` lets pass before the list is shown again; `None` if it is shown once.
///
/// # Errors
/// It is no number above 0.
fn iterate(command: &str, line: &getopt::Line) -> Result<Option<u64>, Failure> {
    let Some(text) = line.value("iterate") else { return Ok(None) };
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Some(seconds)),
        _ => Err(Failure::error(command, format_args!("--iterate={text}"))),
    }
}

/// The commands, what they take beside options, and their options.
static COMMANDS: [(&str, &str, &[getopt::Opt]); 9] = [
    ("sacct", "", sacct::OPTIONS),
    ("sacctmgr", "COMMAND ENTITY [CONDITIONS...]", sacctmgr::OPTIONS),
    ("sattach", "JOB.STEP", copy::SATTACH_OPTIONS),
    ("sbcast", "SOURCE DESTINATION", copy::SBCAST_OPTIONS),
    ("scancel", "[JOB[.STEP]...]", scancel::OPTIONS),
    ("scontrol", "COMMAND [WORDS...]", scontrol::OPTIONS),
    ("sdiag", "", sdiag::OPTIONS),
    ("sinfo", "", sinfo::OPTIONS),
    ("squeue", "", squeue::OPTIONS),
];

/// What a command prints for `--help`; `None` if it is none of these.
pub fn help(command: &str) -> Option<String> {
    let (name, operands, table) = COMMANDS.iter().find(|(name, ..)| *name == command)?;
    Some(getopt::help(name, operands, table))
}

/// What a command prints for `--usage`; `None` if it is none of these.
pub fn usage(command: &str) -> Option<String> {
    let (name, operands, table) = COMMANDS.iter().find(|(name, ..)| *name == command)?;
    Some(getopt::usage(name, operands, table))
}

/// What command lines are read with: the environment, and who reads them when.
pub struct Surroundings<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Login name of the caller.
    pub user: &'a str,
    /// Whether there is a user of that name or number.
    pub knows_user: &'a dyn Fn(&str) -> bool,
    /// Whether the caller is root.
    pub is_root: bool,
    /// The present moment in the caller's zone.
    pub now: jiff::Zoned,
}

/// The words of a list with commas; empty ones do not count.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned)
}

fn set(text: &str) -> BTreeSet<String> {
    words(text).collect()
}

/// The names of nodes in a list.
fn nodes(command: &str, text: &str) -> Result<BTreeSet<String>, Failure> {
    let names = crate::hostlist::expand(text);
    Ok(names
        .map_err(|_| Failure::error(command, format_args!("Invalid node name specified {text}")))?
        .into_iter()
        .collect())
}

/// Refuses names that no node has (SL-C-26).
///
/// # Errors
/// The first such name.
pub fn check_nodes<'a>(
    command: &str,
    wanted: impl IntoIterator<Item = &'a String>,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    match wanted.into_iter().find(|name| !is_known(name)) {
        Some(name) => Err(Failure::error(command, format_args!("Invalid node name {name}"))),
        None => Ok(()),
    }
}

/// The states of a list; a word that is none and the words that are known.
fn states(text: &str) -> Result<Vec<State>, String> {
    words(text).map(|word| State::parse(&word).ok_or(word)).collect()
}

/// All words for states, as messages list them.
fn known_states() -> String {
    State::ALL.map(|(_, long, _)| long).join(",")
}

/// The ids of a list.
fn ids(text: &str, failure: impl Fn(&str) -> Failure) -> Result<Vec<IdExpression>, Failure> {
    crate::job_id::list(text).map_err(|word| failure(&word))
}

/// Whether a word is a keyword, or enough letters of its beginning, in any case.
fn means(word: &str, keyword: &str, least: usize) -> bool {
    word.len() >= least && keyword.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}
