//! The options of `scancel` (SL-C-30 to C-32).

use super::{
    Failure, Request, Surroundings,
    getopt::{Line, Opt, Takes::*, alias, opt, parse as read},
    nodes, printed_only,
};
use crate::{job_id::IdExpression, options::values::signal_number, select::JobFilter, words::State};

const NAME: &str = "scancel";
/// The signal that ends jobs.
const SIGKILL: u8 = 9;

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('A'), "account", Value),
    opt(Some('b'), "batch", Nothing),
    opt(Some('M'), "clusters", Value),
    opt(Some('c'), "cron", Nothing),
    opt(None, "ctld", Nothing),
    opt(Some('f'), "full", Nothing),
    opt(None, "help", Nothing),
    opt(Some('H'), "hurry", Nothing),
    opt(Some('i'), "interactive", Nothing),
    opt(None, "me", Nothing),
    opt(Some('n'), "name", Value),
    alias("name", "jobname", Value),
    opt(Some('w'), "nodelist", Value),
    opt(Some('p'), "partition", Value),
    opt(Some('q'), "qos", Value),
    opt(Some('Q'), "quiet", Nothing),
    opt(Some('R'), "reservation", Value),
    opt(None, "sibling", Value),
    opt(Some('s'), "signal", Value),
    opt(Some('t'), "state", Value),
    opt(None, "usage", Nothing),
    opt(Some('u'), "user", Value),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
    opt(None, "wckey", Value),
];

/// The processes of a job that get a signal (SL-C-30).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// Those of the steps.
    Steps,
    /// The batch script alone (`-b`).
    Script,
    /// The batch script and the steps (`-f`).
    All,
}

/// What `scancel` does.
#[derive(Clone, Debug, PartialEq)]
pub struct Scancel {
    /// These jobs, parts and steps; empty means all that match.
    pub ids: Vec<IdExpression>,
    /// Further conditions.
    pub filter: JobFilter,
    /// The signal to send; `None` ends the jobs.
    pub signal: Option<u8>,
    /// Which processes get the signal.
    pub recipients: Recipients,
    /// Asks before each (`-i`).
    pub interactive: bool,
    /// Without the message about finished jobs (`-Q`).
    pub quiet: bool,
    /// Prints what it does.
    pub verbosity: usize,
    /// Also ends jobs of tables for good (`--cron`).
    pub ends_repeated: bool,
}

impl Scancel {
    /// Whether named jobs are looked up first: with questions, signals and steps. Then a missing job is an error;
    /// otherwise it is not, and filters simply match nothing (SL-C-31).
    pub fn looks_up(&self) -> bool {
        self.interactive
            || self.signal.is_some()
            || self.recipients == Recipients::Script
            || self.ids.iter().any(|id| id.step.is_some())
    }

    /// Whether it affects waiting jobs: signals other than SIGKILL only go to running ones.
    pub fn ends_waiting_jobs(&self) -> bool {
        self.signal.is_none_or(|signal| signal == SIGKILL)
    }

    /// The message for a waiting job, which no signal reaches.
    pub fn still_waits(&self, shown: &str) -> Failure {
        Failure::error(NAME, format_args!("Kill job error on job id {shown}: Job is pending execution"))
    }

    /// The message for a job or step that does not exist or has ended, if jobs are looked up; none with `-Q`.
    pub fn not_there(&self, id: &IdExpression) -> Failure {
        let what = if id.step.is_some() { "job step id" } else { "job id" };
        let said = Failure::error(NAME, format_args!("Kill job error on {what} {id}: Invalid job id specified"));
        Failure { lines: if self.quiet { Vec::new() } else { said.lines }, ..said }
    }
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Invalid options, ids, users, states and signals, and a command line that selects no jobs at all.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Scancel>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let filter = filter(&line, around)?;
    let mut ids = Vec::new();
    for word in &line.words {
        let invalid = |word: &str| Failure::error(NAME, format_args!("Invalid job id {word}"));
        ids.extend(super::ids(word, invalid)?);
    }
    if ids.is_empty() && filter == JobFilter::default() {
        return Err(Failure::error(NAME, "No job identification provided"));
    }
    let given_signal = match line.value("signal") {
        None => None,
        Some(text) => {
            let unknown = || Failure::error(NAME, format_args!("Unknown job signal: {text}"));
            Some(signal_number(text).ok_or_else(unknown)?)
        }
    };
    let is_set =
        |name: &str| (around.variable)(name).is_some_and(|text| !matches!(text.as_str(), "" | "0" | "f" | "false"));
    let with = |key: &str, name: &str| line.has(key) || is_set(name);
    Ok(Request::Run(Scancel {
        ids,
        filter,
        ends_repeated: with("cron", "SCANCEL_CRON"),
        signal: given_signal,
        recipients: match (with("full", "SCANCEL_FULL"), with("batch", "SCANCEL_BATCH")) {
            (true, _) => Recipients::All,
            (false, true) => Recipients::Script,
            (false, false) => Recipients::Steps,
        },
        interactive: with("interactive", "SCANCEL_INTERACTIVE"),
        quiet: line.has("quiet"),
        verbosity: line.count("verbose").max(usize::from(is_set("SCANCEL_VERBOSE"))),
    }))
}

fn filter(line: &Line, around: &Surroundings<'_>) -> Result<JobFilter, Failure> {
    let given = |key: &str, name: &str| {
        line.value(key).map(str::to_owned).or_else(|| (around.variable)(name)).filter(|text| !text.is_empty())
    };
    let user = match given("user", "SCANCEL_USER") {
        _ if line.has("me") => Some(around.user.to_owned()),
        Some(user) if !(around.knows_user)(&user) => {
            return Err(Failure::error(NAME, format_args!("Invalid user name: {user}")));
        }
        user => user,
    };
    let states = match given("state", "SCANCEL_STATE") {
        None => Vec::new(),
        Some(text) => super::words(&text).map(state).collect::<Result<_, _>>()?,
    };
    Ok(JobFilter {
        user,
        partition: given("partition", "SCANCEL_PARTITION"),
        account: given("account", "SCANCEL_ACCOUNT"),
        qos: given("qos", "SCANCEL_QOS"),
        name: given("name", "SCANCEL_NAME"),
        states,
        nodes: nodes(NAME, &given("nodelist", "SCANCEL_NODELIST").unwrap_or_default())?,
        reservation: given("reservation", "SCANCEL_RESERVATION"),
        wckey: given("wckey", "SCANCEL_WCKEY"),
    })
}

/// Only unfinished jobs can be cancelled: other states are refused (SL-C-31).
fn state(word: String) -> Result<State, Failure> {
    let wanted =
        State::parse(&word).filter(|state| matches!(state, State::Pending | State::Running | State::Suspended));
    wanted.ok_or_else(|| Failure {
        lines: vec![
            format!("{NAME}: error: Invalid job state specified: {word}"),
            format!("{NAME}: error: Valid job states are PENDING, RUNNING, and SUSPENDED"),
        ],
        code: 1,
    })
}
