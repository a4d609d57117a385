//! The command line of `sdiag`.

use super::{
    Failure, Request, data_format,
    getopt::{Opt, Takes::*, opt, parse as read},
    printed_only,
};
use crate::show::data::DataFormat;

const NAME: &str = "sdiag";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('a'), "all", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(Some('h'), "help", Nothing),
    opt(None, "json", MaybeGlued),
    opt(Some('r'), "reset", Nothing),
    opt(Some('i'), "sort-by-id", Nothing),
    opt(Some('t'), "sort-by-time", Nothing),
    opt(Some('T'), "sort-by-time2", Nothing),
    opt(None, "usage", Nothing),
    opt(Some('V'), "version", Nothing),
    opt(None, "yaml", MaybeGlued),
];

/// Reads a command line, without the command's own name. The result is the format of data for programs, if one is asked for.
///
/// # Errors
/// An option that does not exist, and `--reset`: muster counts from the start of its gateway.
pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Request<Option<DataFormat>>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    if line.has("reset") {
        return Err(Failure::error(NAME, "muster counts from the start of its gateway on; nothing was reset"));
    }
    match line.words.first() {
        Some(word) => Err(Failure::error(NAME, format_args!("unexpected argument: {word}"))),
        None => Ok(Request::Run(data_format(&line))),
    }
}
