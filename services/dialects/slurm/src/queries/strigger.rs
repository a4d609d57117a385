//! The command line of `strigger`.

use super::{
    Failure, Request, Surroundings,
    getopt::{Line, Opt, Takes::*, alias, opt, parse as read},
    printed_only,
};
use muster_schemas::trigger::NodeTurn;

const NAME: &str = "strigger";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('a'), "primary_slurmctld_failure", Nothing),
    opt(Some('A'), "primary_slurmctld_resumed_operation", Nothing),
    opt(Some('b'), "primary_slurmctld_resumed_control", Nothing),
    opt(Some('B'), "backup_slurmctld_failure", Nothing),
    opt(Some('c'), "backup_slurmctld_resumed_operation", Nothing),
    opt(Some('C'), "backup_slurmctld_assumed_control", Nothing),
    opt(Some('d'), "down", Nothing),
    opt(Some('D'), "drained", Nothing),
    opt(Some('e'), "primary_slurmctld_acct_buffer_full", Nothing),
    opt(Some('f'), "fini", Nothing),
    opt(Some('F'), "fail", Nothing),
    opt(Some('g'), "primary_slurmdbd_failure", Nothing),
    opt(Some('G'), "primary_slurmdbd_resumed_operation", Nothing),
    opt(Some('h'), "primary_database_failure", Nothing),
    opt(Some('H'), "primary_database_resumed_operation", Nothing),
    opt(Some('i'), "id", Value),
    opt(Some('I'), "idle", Nothing),
    opt(Some('j'), "jobid", Value),
    opt(Some('M'), "clusters", Value),
    alias("clusters", "cluster", Value),
    opt(Some('n'), "node", MaybeGlued),
    opt(Some('N'), "noheader", Nothing),
    opt(Some('o'), "offset", Value),
    opt(Some('p'), "program", Value),
    opt(Some('Q'), "quiet", Nothing),
    opt(Some('r'), "reconfig", Nothing),
    opt(Some('t'), "time", Nothing),
    opt(Some('u'), "up", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
    opt(None, "block_err", Nothing),
    opt(None, "burst_buffer", Nothing),
    opt(None, "clear", Nothing),
    opt(None, "flags", Value),
    opt(None, "front_end", Nothing),
    opt(None, "get", Nothing),
    opt(None, "help", Nothing),
    opt(None, "set", Nothing),
    opt(None, "usage", Nothing),
    opt(None, "user", Value),
];

/// What muster's log does not tell: its parts are not those of Slurm, and its nodes are not failing.
const UNKNOWN: [&str; 15] = [
    "primary_slurmctld_failure",
    "primary_slurmctld_resumed_operation",
    "primary_slurmctld_resumed_control",
    "backup_slurmctld_failure",
    "backup_slurmctld_resumed_operation",
    "backup_slurmctld_assumed_control",
    "primary_slurmctld_acct_buffer_full",
    "primary_slurmdbd_failure",
    "primary_slurmdbd_resumed_operation",
    "primary_database_failure",
    "primary_database_resumed_operation",
    "fail",
    "block_err",
    "burst_buffer",
    "front_end",
];
/// The greatest offset, in seconds.
const MAX_OFFSET_SECONDS: i32 = 32_000;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A job ends (`--fini`).
    Fini,
    /// A job reaches its time limit (`--time`).
    Time,
    /// Nodes turn (`--down`, `--up`, `--drained`, `--idle`).
    Node(NodeTurn),
}

impl Happening {
    const ALL: [(&'static str, Self); 6] = [
        ("fini", Self::Fini),
        ("time", Self::Time),
        ("down", Self::Node(NodeTurn::Down)),
        ("up", Self::Node(NodeTurn::Up)),
        ("drained", Self::Node(NodeTurn::Drained)),
        ("idle", Self::Node(NodeTurn::Idle)),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }
}

/// Which triggers, by the options of `--get` and `--clear`. All that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// The trigger with this number.
    pub id: Option<u32>,
    /// Those about this job.
    pub job: Option<u64>,
    /// Those of this user, by name or number.
    pub user: Option<String>,
    /// Those that watch nodes.
    pub of_nodes: bool,
    /// Those for one of these happenings; empty means all.
    pub on: Vec<Happening>,
}

/// A trigger to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// What it waits for.
    pub on: Happening,
    /// The job.
    pub job: Option<u64>,
    /// The nodes; empty means all.
    pub nodes: Vec<String>,
    /// Seconds from what happens to the program.
    pub offset_seconds: i32,
    /// The program and its words.
    pub program: Vec<String>,
    /// Whether it stays after it has fired (`--flags=PERM`).
    pub is_permanent: bool,
}

/// What `strigger` does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Sets a trigger.
    Set(Wish),
    /// Lists triggers.
    Get {
        /// Which.
        which: Which,
        /// Without the line above the columns.
        no_header: bool,
    },
    /// Clears triggers.
    Clear(Which),
}

/// A command line of `strigger`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strigger {
    /// What it does.
    pub deed: Deed,
    /// Says what was done.
    pub is_verbose: bool,
    /// Says nothing of triggers that are not there.
    pub is_quiet: bool,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options and values, with Slurm's messages; an event that muster does not know.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Strigger>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let wrong = |text: &str| Err(Failure::error(NAME, text));
    let modes = ["set", "get", "clear"].into_iter().filter(|mode| line.has(mode)).collect::<Vec<_>>();
    let [mode] = modes[..] else {
        return wrong("You must use exactly one of the following options: --set, --get or --clear");
    };
    let deed = match mode {
        "set" => Deed::Set(wish(&line)?),
        "get" => Deed::Get { which: which(&line, around)?, no_header: line.has("noheader") },
        _ => {
            let which = which(&line, around)?;
            if which.id.is_none() && which.job.is_none() && which.user.is_none() {
                return wrong("You must specify a --id, --jobid, or --user to clear");
            }
            Deed::Clear(which)
        }
    };
    Ok(Request::Run(Strigger { deed, is_verbose: line.has("verbose"), is_quiet: line.has("quiet") }))
}

fn job(line: &Line) -> Result<Option<u64>, Failure> {
    let Some(text) = line.value("jobid") else { return Ok(None) };
    let invalid = || Failure::error(NAME, format_args!("Invalid jobid {text}"));
    text.parse().ok().filter(|number| *number > 0).map(Some).ok_or_else(invalid)
}

fn happenings(line: &Line) -> Vec<Happening> {
    Happening::ALL.into_iter().filter(|(word, _)| line.has(word)).map(|(_, on)| on).collect()
}

fn which(line: &Line, around: &Surroundings<'_>) -> Result<Which, Failure> {
    let user = line.value("user").map(str::to_owned);
    if let Some(unknown) = user.as_ref().filter(|user| !(around.knows_user)(user)) {
        return Err(Failure::error(NAME, format_args!("Invalid user {unknown}")));
    }
    let id = line
        .value("id")
        .map(|text| text.parse().map_err(|_| Failure::error(NAME, format_args!("Invalid trigger id {text}"))));
    Ok(Which { id: id.transpose()?, job: job(line)?, user, of_nodes: line.has("node"), on: happenings(line) })
}

fn wish(line: &Line) -> Result<Wish, Failure> {
    let wrong = |text: &str| Err(Failure::error(NAME, text));
    if let Some(unknown) = UNKNOWN.iter().find(|option| line.has(option)) {
        return Err(Failure::error(NAME, format_args!("--{unknown} never happens in muster; no trigger was set")));
    }
    if line.has("reconfig") {
        return wrong("--reconfig is not supported: `muster events` tells of changes; no trigger was set");
    }
    let on = match happenings(line)[..] {
        [on] => on,
        [] => return wrong("You must specify a trigger (--down, --up, --drained, --idle, --time or --fini)"),
        _ => return wrong("A trigger of muster waits for one event: set a trigger for each"),
    };
    let job = job(line)?;
    if matches!(on, Happening::Fini | Happening::Time) && job.is_none() {
        return wrong("You must specify a --jobid value");
    }
    let nodes = match line.value("node") {
        Some(_) if job.is_some() => return wrong("--node and --jobid cannot be used together"),
        None | Some("" | "*") => Vec::new(),
        Some(list) => {
            crate::hostlist::expand(list).map_err(|_| Failure::error(NAME, format_args!("Invalid node name {list}")))?
        }
    };
    let Some(text) = line.value("program") else { return wrong("You must specify a --program value") };
    if !text.starts_with('/') {
        return wrong("The --program value must start with \"/\"");
    }
    Ok(Wish {
        on,
        job,
        nodes,
        offset_seconds: offset(line)?,
        program: text.split_whitespace().map(str::to_owned).collect(),
        is_permanent: is_permanent(line)?,
    })
}

fn offset(line: &Line) -> Result<i32, Failure> {
    let seconds = line.value("offset").map_or(Ok(0), str::parse::<i32>);
    let range = -MAX_OFFSET_SECONDS..=MAX_OFFSET_SECONDS;
    let invalid = || Failure::error(NAME, "The --offset parameter must be between +/-32000");
    seconds.ok().filter(|seconds| range.contains(seconds)).ok_or_else(invalid)
}

fn is_permanent(line: &Line) -> Result<bool, Failure> {
    match line.value("flags") {
        None => Ok(false),
        Some(flags) if flags.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("perm")) => Ok(true),
        Some(flags) => Err(Failure::error(NAME, format_args!("Invalid flags {flags}"))),
    }
}
