//! The command line of `scrontab`.

use super::{
    Failure, Request, Surroundings,
    getopt::{Opt, Takes::*, opt, parse as read},
    printed_only,
};

const NAME: &str = "scrontab";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('e'), "edit", Nothing),
    opt(Some('l'), "list", Nothing),
    opt(Some('r'), "remove", Nothing),
    opt(Some('u'), "user", Value),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
    opt(None, "help", Nothing),
    opt(None, "usage", Nothing),
];

/// What `scrontab` does with a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Lets an editor change it.
    Edit,
    /// Prints it.
    List,
    /// Removes it.
    Remove,
    /// Sets it from a file, or from standard input: `-`.
    Set(String),
}

/// A command line of `scrontab`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scrontab {
    /// What it does.
    pub deed: Deed,
    /// Whose table it is, by name or number; `None` means the caller's.
    pub user: Option<String>,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options, more than one file, a user who does not exist.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Scrontab>, Failure> {
    // A single dash is a file, not an option.
    let (dashes, words): (Vec<&str>, Vec<&str>) =
        arguments.iter().map(AsRef::as_ref).partition(|word: &&str| *word == "-");
    let line = read(NAME, OPTIONS, &words)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let files: Vec<&str> = dashes.into_iter().chain(line.words.iter().map(String::as_str)).collect();
    let deed = match (line.has("list"), line.has("remove"), &files[..]) {
        (true, false, []) => Deed::List,
        (false, true, []) => Deed::Remove,
        (false, false, []) => Deed::Edit,
        (false, false, [file]) if !line.has("edit") => Deed::Set((*file).to_owned()),
        _ => return Err(Failure::error(NAME, "only one of -e, -l, -r and a file can be given")),
    };
    let user = line.value("user").map(str::to_owned);
    match user.as_ref().filter(|user| !(around.knows_user)(user)) {
        Some(unknown) => Err(Failure::fatal(NAME, format_args!("Could not find user {unknown}"))),
        None => Ok(Request::Run(Scrontab { deed, user })),
    }
}
