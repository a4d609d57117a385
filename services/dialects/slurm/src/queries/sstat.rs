//! The command lines of `sstat` and `seff`.

use super::{
    Failure, Request,
    getopt::{Opt, Takes::*, alias, opt, parse as read},
    ids, printed_only,
    sshare::style,
};
use crate::{
    job_id::IdExpression,
    show::{columns::ListStyle, sstat},
};

const NAME: &str = "sstat";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('a'), "allsteps", Nothing),
    opt(Some('o'), "format", Value),
    alias("format", "fields", Value),
    opt(Some('h'), "help", Nothing),
    opt(Some('e'), "helpformat", Nothing),
    opt(Some('j'), "jobs", Value),
    opt(None, "noconvert", Nothing),
    opt(Some('n'), "noheader", Nothing),
    opt(Some('p'), "parsable", Nothing),
    opt(Some('P'), "parsable2", Nothing),
    opt(Some('i'), "pidformat", Nothing),
    opt(None, "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// What `sstat` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sstat {
    /// The jobs and steps, at least one.
    pub ids: Vec<IdExpression>,
    /// All running steps of a job instead of the first one (`-a`).
    pub all_steps: bool,
    /// The columns.
    pub format: String,
    /// In columns, or with a separator between the values.
    pub style: ListStyle,
    /// Without the lines above the columns.
    pub no_header: bool,
    /// Lists the names of the columns instead (`-e`).
    pub field_names: bool,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options, ids and columns, and no jobs, with Slurm's messages.
pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Request<Sstat>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    // Jobs may also be named without the option.
    let named: Vec<String> = line.list("jobs").into_iter().chain(line.words.iter().cloned()).collect();
    let field_names = line.has("helpformat");
    let ids = ids(&named.join(","), |word| Failure::fatal(NAME, format_args!("Bad job/step specified: {word}")))?;
    if ids.is_empty() && !field_names {
        return Err(Failure::error(NAME, "You didn't give me any jobs to stat."));
    }
    let usual = if line.has("pidformat") { sstat::PIDS } else { sstat::USUAL };
    let format = line.list("format").unwrap_or_else(|| usual.to_owned());
    Ok(Request::Run(Sstat {
        ids,
        all_steps: line.has("allsteps"),
        format,
        style: style(&line),
        no_header: line.has("noheader"),
        field_names,
    }))
}

pub(super) static SEFF_OPTIONS: &[Opt] = &[
    opt(Some('d'), "debug", Nothing),
    opt(Some('h'), "help", Nothing),
    opt(None, "usage", Nothing),
    opt(Some('V'), "version", Nothing),
    Opt { letter: Some('v'), key: "version", name: "Version", takes: Nothing },
];

/// The job of `seff JOB`.
///
/// # Errors
/// None or several jobs, and what is no job.
pub fn seff(arguments: &[impl AsRef<str>]) -> Result<Request<IdExpression>, Failure> {
    let line = read("seff", SEFF_OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let [only] = line.words.as_slice() else { return Ok(Request::Usage) };
    let found = ids(only, |word| Failure::error("seff", format_args!("Invalid job id: {word}")))?;
    match <[IdExpression; 1]>::try_from(found) {
        Ok([job]) => Ok(Request::Run(job)),
        Err(_) => Err(Failure::error("seff", format_args!("Invalid job id: {only}"))),
    }
}
