//! The command line of `sshare`.

use super::{
    Failure, Request, Surroundings, data_format,
    getopt::{Line, Opt, Takes::*, alias, opt, parse as read},
    printed_only, set,
};
use crate::show::{columns::ListStyle, data::DataFormat};
use std::collections::BTreeSet;

const NAME: &str = "sshare";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('A'), "accounts", Value),
    opt(Some('a'), "all", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(Some('o'), "format", Value),
    opt(None, "help", Nothing),
    opt(Some('e'), "helpformat", Nothing),
    opt(None, "json", MaybeGlued),
    opt(Some('l'), "long", Nothing),
    opt(Some('n'), "noheader", Nothing),
    alias("noheader", "no_header", Nothing),
    Opt { letter: Some('h'), key: "noheader", name: "no-header", takes: Nothing },
    opt(Some('p'), "parsable", Nothing),
    opt(Some('P'), "parsable2", Nothing),
    opt(Some('m'), "partition", Nothing),
    opt(Some('u'), "users", Value),
    alias("users", "uid", Value),
    opt(None, "usage", Nothing),
    opt(Some('U'), "Users", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
    opt(None, "yaml", MaybeGlued),
];

/// What `sshare` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sshare {
    /// Only these accounts; empty means all.
    pub accounts: BTreeSet<String>,
    /// Only these users; `None` means all.
    pub users: Option<BTreeSet<String>>,
    /// Only users, no accounts (`-U`).
    pub users_only: bool,
    /// The columns of `-o`.
    pub format: Option<String>,
    /// More columns (`-l`).
    pub is_long: bool,
    /// With the partitions of associations (`-m`).
    pub partitions: bool,
    /// In columns, or with a separator between the values.
    pub style: ListStyle,
    /// Without the lines above the columns.
    pub no_header: bool,
    /// As data for programs.
    pub data: Option<DataFormat>,
    /// Lists the names of the columns instead (`-e`).
    pub field_names: bool,
}

/// The layout that `-p` and `-P` ask for.
pub(super) fn style(line: &Line) -> ListStyle {
    match (line.has("parsable2"), line.has("parsable")) {
        (true, _) => ListStyle::Separated { by: "|".to_owned(), ends: false },
        (false, true) => ListStyle::Separated { by: "|".to_owned(), ends: true },
        (false, false) => ListStyle::Columns,
    }
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options and users, with Slurm's messages.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Sshare>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    if let Some(word) = line.words.first() {
        return Err(Failure::error(NAME, format_args!("Unrecognized option: {word}")));
    }
    let named = set(&line.list("users").unwrap_or_default());
    if let Some(unknown) = named.iter().find(|user| !(around.knows_user)(user)) {
        return Err(Failure::error(NAME, format_args!("Invalid user id: {unknown}")));
    }
    let users = match (line.has("all"), named.is_empty()) {
        (true, _) => None,
        (false, true) => Some([around.user.to_owned()].into()),
        (false, false) => Some(named),
    };
    Ok(Request::Run(Sshare {
        accounts: set(&line.list("accounts").unwrap_or_default()),
        users,
        users_only: line.has("Users"),
        format: line.list("format"),
        is_long: line.has("long"),
        partitions: line.has("partition"),
        style: style(&line),
        no_header: line.has("noheader"),
        data: data_format(&line),
        field_names: line.has("helpformat"),
    }))
}
