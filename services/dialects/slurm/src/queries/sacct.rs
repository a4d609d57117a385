//! The options of `sacct` (SL-A-04, SL-A-07, SL-A-09).

use super::{
    Failure, Request, Surroundings, data_format,
    getopt::{Line, Opt, Takes::*, alias, opt, parse as read},
    ids, nodes, printed_only, set, states,
};
use crate::{
    duration::TimeLimit,
    job_id::IdExpression,
    moment,
    show::{
        columns::ListStyle,
        data::DataFormat,
        sacct::{BRIEF_FORMAT, DEFAULT_FORMAT, FIELDS, JobFlag, LONG_FORMAT, Report, Wanted},
    },
    size::Units,
};
use muster_schemas::time::Timestamp;
use std::collections::BTreeSet;

const NAME: &str = "sacct";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('A'), "accounts", Value),
    opt(Some('L'), "allclusters", Nothing),
    opt(Some('X'), "allocations", Nothing),
    Opt { letter: Some('t'), key: "allocations", name: "total", takes: Nothing },
    opt(Some('a'), "allusers", Nothing),
    opt(None, "array", Nothing),
    opt(Some('B'), "batch-script", Nothing),
    opt(Some('b'), "brief", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(Some('c'), "completion", Nothing),
    opt(Some('C'), "constraints", Value),
    opt(None, "delimiter", Value),
    opt(Some('D'), "duplicates", Nothing),
    opt(Some('E'), "endtime", Value),
    opt(None, "env-vars", Nothing),
    opt(None, "expand-patterns", Nothing),
    opt(None, "federation", Nothing),
    opt(Some('f'), "file", Value),
    opt(Some('F'), "flags", Value),
    opt(Some('o'), "format", Value),
    alias("format", "fields", Value),
    opt(Some('g'), "group", Value),
    alias("group", "gid", Value),
    opt(Some('e'), "helpformat", Nothing),
    alias("helpformat", "help-fields", Nothing),
    opt(Some('h'), "help", Nothing),
    opt(Some('j'), "jobs", Value),
    opt(None, "json", MaybeGlued),
    opt(None, "yaml", MaybeGlued),
    opt(None, "local", Nothing),
    opt(Some('l'), "long", Nothing),
    opt(None, "name", Value),
    opt(Some('I'), "ncpus", Value),
    opt(None, "noconvert", Nothing),
    opt(Some('N'), "nodelist", Value),
    opt(Some('n'), "noheader", Nothing),
    opt(Some('i'), "nnodes", Value),
    opt(Some('p'), "parsable", Nothing),
    opt(Some('P'), "parsable2", Nothing),
    opt(Some('r'), "partition", Value),
    opt(Some('q'), "qos", Value),
    opt(Some('R'), "reason", Value),
    opt(Some('S'), "starttime", Value),
    opt(Some('s'), "state", Value),
    opt(Some('k'), "timelimit-min", Value),
    opt(Some('K'), "timelimit-max", Value),
    opt(Some('T'), "truncate", Nothing),
    opt(Some('u'), "user", Value),
    alias("user", "uid", Value),
    opt(None, "units", Value),
    opt(None, "usage", Nothing),
    opt(None, "use-local-uid", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
    opt(Some('W'), "wckeys", Value),
    opt(None, "whole-hetjob", MaybeGlued),
    alias("whole-hetjob", "whole-pack", MaybeGlued),
    opt(Some('x'), "associations", Value),
];

/// Earlier names of columns, which scripts still use, each with the present one.
const RENAMED: [(&str, &str); 3] =
    [("Reserved", "Planned"), ("ResvCPU", "PlannedCPU"), ("ResvCPURAW", "PlannedCPURAW")];

/// What `sacct` lists.
#[derive(Clone, Debug)]
pub struct Sacct {
    /// Only these jobs, parts and steps; empty means all.
    pub ids: Vec<IdExpression>,
    /// Which lines to list.
    pub wanted: Wanted,
    /// How to list them.
    pub report: Report,
    /// Whether all components are listed if one is named; `None` lists all if the leader is named (SL-A-04).
    pub whole_hetjob: Option<bool>,
    /// Lists all attempts of a job, not just the last (`-D`).
    pub duplicates: bool,
    /// Lists everybody's jobs.
    pub all_users: bool,
    /// As data for programs.
    pub data: Option<DataFormat>,
    /// Lists the names of the columns instead (`-e`).
    pub field_names: bool,
    /// Shows what jobs were submitted with instead.
    pub submitted: Option<Submitted>,
}

/// What `sacct` shows of a job's submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// The batch script (`--batch-script`).
    Script,
    /// The environment (`--env-vars`).
    Environment,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options, ids, states, columns, times and nodes, with Slurm's messages.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Sacct>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    if !line.words.is_empty() {
        return Err(Failure::plain(format_args!("Unknown arguments: {}", line.words.join(" "))));
    }
    let named = match line.list("jobs") {
        None => Vec::new(),
        Some(text) => ids(&text, |word| Failure::fatal(NAME, format_args!("Bad job/step specified: {word}")))?,
    };
    let whole_hetjob = match line.value("whole-hetjob") {
        None => None,
        Some("" | "yes") => Some(true),
        Some("no") => Some(false),
        Some(other) => return Err(Failure::fatal(NAME, format_args!("Invalid --whole-hetjob value: {other}"))),
    };
    // With a list of jobs, it includes other users' jobs that the caller may see.
    let of_nodes = line.has("nodelist");
    let all_users = line.has("allusers") || line.has("user") || of_nodes || !named.is_empty() || around.is_root;
    Ok(Request::Run(Sacct {
        wanted: wanted(&line, around, named.is_empty(), all_users)?,
        report: report(&line, around)?,
        ids: named,
        whole_hetjob,
        duplicates: line.has("duplicates"),
        all_users,
        data: data_format(&line),
        field_names: line.has("helpformat"),
        submitted: submitted(&line)?,
    }))
}

fn wanted(line: &Line, around: &Surroundings<'_>, is_any_job: bool, all_users: bool) -> Result<Wanted, Failure> {
    let list = |key: &str| set(&line.list(key).unwrap_or_default());
    let states = states(&line.list("state").unwrap_or_default())
        .map_err(|word| Failure::fatal(NAME, format_args!("unrecognized job state value '{word}'")))?;
    let users = list("user");
    if let Some(unknown) = users.iter().find(|user| !(around.knows_user)(user)) {
        return Err(Failure::fatal(NAME, format_args!("Invalid user id: {unknown}")));
    }
    let start = time(line, "starttime", around)?;
    let from = match (start, is_any_job) {
        (Some(time), _) => Some(time),
        (None, false) => None,
        (None, true) if !states.is_empty() => Some(Timestamp(around.now.timestamp().as_microsecond())),
        (None, true) => moment::parse_past("today", &around.now),
    };
    // A state without an end of the time is that at its start.
    let to = time(line, "endtime", around)?.or(start.filter(|_| !states.is_empty()));
    if from > to && to.is_some() {
        let shown = |moment: Option<Timestamp>| {
            moment.map_or_else(String::new, |moment| moment::show(moment, around.now.time_zone()))
        };
        let text = format!("Start time ({}) requested is after end time ({}).", shown(from), shown(to));
        return Err(Failure::error(NAME, text));
    }
    Ok(Wanted {
        states,
        users: if users.is_empty() && !all_users { [around.user.to_owned()].into() } else { users },
        accounts: list("accounts"),
        partitions: list("partition"),
        classes: list("qos"),
        names: list("name"),
        nodes: nodes(NAME, &line.list("nodelist").unwrap_or_default())?,
        from,
        to,
        jobs_only: line.has("allocations"),
        groups: list("group"),
        wckeys: list("wckeys"),
        flags: flags(line)?,
        associations: associations(line)?,
        node_counts: range(line, "nnodes")?,
        cpu_counts: range(line, "ncpus")?,
        limit_seconds: limits(line)?,
        features: list("constraints"),
        reasons: list("reason"),
        truncates: line.has("truncate"),
    })
}

/// How jobs were handled. `None` stands for any way, as in Slurm.
fn flags(line: &Line) -> Result<BTreeSet<JobFlag>, Failure> {
    let list = line.list("flags").unwrap_or_default();
    let words = list.split(',').filter(|word| !word.is_empty() && !word.eq_ignore_ascii_case("none"));
    let invalid = |word| Failure::error(NAME, format_args!("str_2_job_flags: Invalid job flag {word}"));
    words.map(|word| JobFlag::parse(word).ok_or_else(|| invalid(word))).collect()
}

/// The numbers of associations.
fn associations(line: &Line) -> Result<BTreeSet<u32>, Failure> {
    let list = line.list("associations").unwrap_or_default();
    let words = list.split(',').filter(|word| !word.is_empty());
    let invalid = |word| Failure::error(NAME, format_args!("Invalid association id: {word}"));
    words.map(|word| word.parse().map_err(|_| invalid(word))).collect()
}

fn submitted(line: &Line) -> Result<Option<Submitted>, Failure> {
    let (shown, what) = match (line.has("batch-script"), line.has("env-vars")) {
        (false, false) => return Ok(None),
        (true, true) => {
            return Err(Failure::fatal(NAME, "Options --batch-script and --env-vars are mutually exclusive"));
        }
        (true, false) => (Submitted::Script, "job scripts"),
        (false, true) => (Submitted::Environment, "job environment"),
    };
    match line.has("jobs") {
        true => Ok(Some(shown)),
        false => Err(Failure::fatal(
            NAME,
            format_args!("When requesting {what} you must also request specific jobs with the '-j' option."),
        )),
    }
}

/// `N` or `N-M`.
fn range(line: &Line, key: &str) -> Result<Option<(u64, u64)>, Failure> {
    let Some(text) = line.value(key) else { return Ok(None) };
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let range = least.parse().ok().zip(most.parse().ok()).filter(|(least, most)| least <= most);
    range.map(Some).ok_or_else(|| Failure::error(NAME, format_args!("Invalid --{key} specification: {text}")))
}

/// The time limits, in seconds: with `--timelimit-min` alone exactly this one, with both options those between them.
fn limits(line: &Line) -> Result<Option<(u64, u64)>, Failure> {
    let limit = |key: &str| match line.value(key) {
        None => Ok(None),
        Some(text) => match TimeLimit::parse(text) {
            Some(limit) => Ok(Some(limit.seconds().unwrap_or(u64::MAX))),
            None => Err(Failure::error(NAME, format_args!("Invalid --{key} specification: {text}"))),
        },
    };
    match (limit("timelimit-min")?, limit("timelimit-max")?) {
        (Some(least), Some(most)) => Ok(Some((least, most))),
        (Some(only), None) => Ok(Some((only, only))),
        (None, Some(_)) => Err(Failure::error(NAME, "--timelimit-max needs --timelimit-min")),
        (None, None) => Ok(None),
    }
}

fn time(line: &Line, key: &str, around: &Surroundings<'_>) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = line.value(key) else { return Ok(None) };
    let invalid = || Failure::error(NAME, format_args!("Invalid time specification (pos=0): {text}"));
    moment::parse_past(text, &around.now).map(Some).ok_or_else(invalid)
}

/// A column with its full name: the beginning of a name is enough.
fn whole_name(part: &str) -> Result<String, Failure> {
    let (name, width) = part.split_at(part.find('%').unwrap_or(part.len()));
    let begins = |header: &str| header.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let is = |header: &str| header.eq_ignore_ascii_case(name);
    if let Some((_, now)) = RENAMED.iter().find(|(before, _)| is(before)) {
        return Ok(format!("{now}{width}"));
    }
    let headers = || FIELDS.iter().map(|field| field.header);
    if is("all") || headers().any(is) {
        return Ok(part.to_owned());
    }
    let header = headers().find(|header| !name.is_empty() && begins(header));
    let header = header.ok_or_else(|| Failure::error(NAME, format_args!("Invalid field requested: \"{name}\"")))?;
    Ok(format!("{header}{width}"))
}

fn report(line: &Line, around: &Surroundings<'_>) -> Result<Report, Failure> {
    let format = match line.list("format") {
        Some(format) => format,
        None if line.has("long") => LONG_FORMAT.to_owned(),
        None if line.has("brief") => BRIEF_FORMAT.to_owned(),
        None => (around.variable)("SACCT_FORMAT").unwrap_or_else(|| DEFAULT_FORMAT.to_owned()),
    };
    let units = match line.value("units") {
        Some(text) => {
            // Slurm reads the first letter.
            let unit = text.get(..1).and_then(Units::parse);
            unit.ok_or_else(|| Failure::fatal(NAME, "Invalid unit type"))?
        }
        None if line.has("noconvert") => Units::Measured,
        None => Units::Largest,
    };
    let parts = format.split(',').map(str::trim).filter(|part| !part.is_empty());
    let format = parts.map(whole_name).collect::<Result<Vec<_>, _>>()?.join(",");
    let by = line.value("delimiter").unwrap_or("|").to_owned();
    let style = match (line.has("parsable2"), line.has("parsable")) {
        (true, _) => ListStyle::Separated { by, ends: false },
        (false, true) => ListStyle::Separated { by, ends: true },
        (false, false) if line.has("delimiter") => ListStyle::Separated { by, ends: true },
        (false, false) => ListStyle::Columns,
    };
    Ok(Report { format, style, no_header: line.has("noheader"), units })
}
