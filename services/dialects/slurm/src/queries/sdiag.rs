//! The command line of `sdiag`.

use super::{
    Failure, Request,
    getopt::{Opt, Takes::*, opt, parse as read},
    printed_only,
};

const NAME: &str = "sdiag";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('a'), "all", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(Some('h'), "help", Nothing),
    opt(Some('r'), "reset", Nothing),
    opt(Some('i'), "sort-by-id", Nothing),
    opt(Some('t'), "sort-by-time", Nothing),
    opt(Some('T'), "sort-by-time2", Nothing),
    opt(None, "usage", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// Reads a command line, without the command's own name.
///
/// # Errors
/// An option that does not exist, and `--reset`: muster counts from the start of its gateway.
pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Request<()>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    if line.has("reset") {
        return Err(Failure::error(NAME, "muster counts from the start of its gateway on; nothing was reset"));
    }
    match line.words.first() {
        Some(word) => Err(Failure::error(NAME, format_args!("unexpected argument: {word}"))),
        None => Ok(Request::Run(())),
    }
}
