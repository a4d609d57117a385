//! The options of `sbcast` and `sattach` (SL-M-12, SL-M-14).

use super::{
    Failure, Request,
    getopt::{Opt, Takes::*, opt, parse as read},
    printed_only,
};
use crate::{
    job_id::{IdExpression, JobPart, StepName},
    size,
};

pub(super) static SBCAST_OPTIONS: &[Opt] = &[
    opt(Some('C'), "compress", MaybeGlued),
    opt(None, "exclude", Value),
    opt(Some('f'), "force", Nothing),
    opt(Some('F'), "fanout", Value),
    opt(None, "help", Nothing),
    opt(Some('j'), "jobid", Value),
    opt(Some('p'), "preserve", Nothing),
    opt(None, "send-libs", MaybeGlued),
    opt(Some('s'), "size", Value),
    opt(Some('t'), "timeout", Value),
    opt(None, "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// What `sbcast` copies, and where to.
#[derive(Clone, Debug, PartialEq)]
pub struct Sbcast {
    /// The file.
    pub source: String,
    /// Its destination on each node.
    pub destination: String,
    /// Copies to the nodes of this job, component or step; `None` is the surrounding job.
    pub job: Option<IdExpression>,
    /// Overwrites an existing file (`-f`).
    pub force: bool,
    /// Keeps mode and times (`-p`).
    pub preserve: bool,
    /// Prints what it does.
    pub verbosity: usize,
}

/// Reads a command line of `sbcast`, without the command's own name.
///
/// # Errors
/// Invalid options and ids, and any number of names other than two.
pub fn sbcast(arguments: &[impl AsRef<str>]) -> Result<Request<Sbcast>, Failure> {
    const NAME: &str = "sbcast";
    let line = read(NAME, SBCAST_OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let job = match line.value("jobid") {
        None => None,
        Some(text) => {
            let invalid = || Failure::error(NAME, format_args!("Invalid job id specified: {text}"));
            Some(IdExpression::parse(text).ok_or_else(invalid)?)
        }
    };
    if let Some(text) = line.value("size").filter(|text| size::parse_megabytes(text).is_none()) {
        return Err(Failure::error(NAME, format_args!("invalid block size: {text}")));
    }
    let [source, destination] = line.words.as_slice() else {
        let count = line.words.len();
        return Err(Failure::error(NAME, format_args!("Need two file names, have {count} names specified")));
    };
    Ok(Request::Run(Sbcast {
        source: source.clone(),
        destination: destination.clone(),
        job,
        force: line.has("force"),
        preserve: line.has("preserve"),
        verbosity: line.count("verbose"),
    }))
}

pub(super) static SATTACH_OPTIONS: &[Opt] = &[
    opt(None, "error-filter", Value),
    opt(Some('h'), "help", Nothing),
    opt(None, "input-filter", Value),
    opt(Some('l'), "label", Nothing),
    opt(None, "layout", Nothing),
    opt(None, "output-filter", Value),
    opt(None, "pty", Nothing),
    opt(Some('Q'), "quiet", Nothing),
    opt(Some('u'), "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// What `sattach` attaches to.
#[derive(Clone, Debug, PartialEq)]
pub struct Sattach {
    /// The job or component.
    pub job: JobPart,
    /// The step.
    pub step: StepName,
    /// Lines begin with the rank of their task (`-l`).
    pub label: bool,
    /// Only prints where the tasks are.
    pub layout: bool,
    /// Restricts input, output and error each to this task.
    pub filters: [Option<u32>; 3],
}

/// Reads a command line of `sattach`, without the command's own name.
///
/// # Errors
/// Invalid options, and anything but the id of a single step of a single component.
pub fn sattach(arguments: &[impl AsRef<str>]) -> Result<Request<Sattach>, Failure> {
    const NAME: &str = "sattach";
    let line = read(NAME, SATTACH_OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let text = match line.words.as_slice() {
        [] => return Err(Failure::error(NAME, "No job step id specified")),
        [only] if only.contains(',') => {
            return Err(Failure::error(NAME, "Attaching to several components at a time is not supported"));
        }
        [only] => only,
        [..] => return Err(Failure::error(NAME, "Attaching to several steps at a time is not supported")),
    };
    let id = IdExpression::parse(text).filter(|id| !matches!(id.job, JobPart::AllTasks(_)));
    let Some(IdExpression { job, step: Some(step) }) = id else {
        return Err(Failure::error(NAME, format_args!("Invalid job step id: {text}")));
    };
    let filter = |key: &str| match line.value(key) {
        None | Some("all") => Ok(None),
        Some(text) => {
            text.parse().map(Some).map_err(|_| Failure::error(NAME, format_args!("Invalid --{key} specification")))
        }
    };
    Ok(Request::Run(Sattach {
        job,
        step,
        label: line.has("label"),
        layout: line.has("layout"),
        filters: [filter("input-filter")?, filter("output-filter")?, filter("error-filter")?],
    }))
}
