//! The command line of `sreport`.

use super::{
    Failure, Request, Surroundings,
    getopt::{Line, Opt, Takes::*, opt, parse as read},
    means, printed_only, set,
    sshare::style,
};
use crate::{moment, show::columns::ListStyle};
use jiff::{ToSpan, Zoned};
use muster_schemas::time::Timestamp;
use std::collections::BTreeSet;

const NAME: &str = "sreport";

pub(super) static OPTIONS: &[Opt] = &[
    opt(Some('a'), "all_clusters", Nothing),
    opt(Some('M'), "cluster", Value),
    opt(Some('h'), "help", Nothing),
    opt(None, "local", Nothing),
    opt(Some('n'), "noheader", Nothing),
    opt(Some('p'), "parsable", Nothing),
    opt(Some('P'), "parsable2", Nothing),
    opt(Some('Q'), "quiet", Nothing),
    opt(Some('t'), "time", Value),
    opt(Some('T'), "tres", Value),
    opt(None, "usage", Nothing),
    opt(Some('v'), "verbose", Nothing),
    opt(Some('V'), "version", Nothing),
];

/// A report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// What the cluster did.
    Utilization,
    /// What users used in each account.
    AccountsByUser,
    /// In which accounts each user used how much.
    UsersByAccount,
    /// Who used most.
    TopUsers,
    /// What jobs of which sizes used in each account.
    Sizes,
}

/// The kinds of reports and their names, with the least number of letters.
const REPORTS: [(&str, &str, usize, Report); 5] = [
    ("cluster", "Utilization", 1, Report::Utilization),
    ("cluster", "AccountUtilizationByUser", 21, Report::AccountsByUser),
    ("cluster", "UserUtilizationByAccount", 18, Report::UsersByAccount),
    ("user", "TopUsage", 1, Report::TopUsers),
    ("job", "SizesByAccount", 1, Report::Sizes),
];

/// The unit of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Minutes.
    #[default]
    Minutes,
    /// Hours.
    Hours,
    /// Percentage of everything there was.
    Percent,
    /// Seconds and the percentage.
    SecondsPercent,
    /// Minutes and the percentage.
    MinutesPercent,
    /// Hours and the percentage.
    HoursPercent,
}

/// The units, each with the least number of letters.
const UNITS: [(&str, usize, Unit); 7] = [
    ("secper", 6, Unit::SecondsPercent),
    ("minper", 6, Unit::MinutesPercent),
    ("hourper", 6, Unit::HoursPercent),
    ("seconds", 1, Unit::Seconds),
    ("minutes", 1, Unit::Minutes),
    ("hours", 1, Unit::Hours),
    ("percent", 1, Unit::Percent),
];

/// The resources that times are told for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Cores.
    Cpu,
    /// GPUs.
    Gpu,
}

/// What `sreport` reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Sreport {
    /// The report.
    pub report: Report,
    /// From this whole hour.
    pub from: Timestamp,
    /// Up to this whole hour.
    pub to: Timestamp,
    /// The unit of times.
    pub unit: Unit,
    /// The resources, if they are named.
    pub resources: Option<Vec<Resource>>,
    /// Only these accounts; empty means all.
    pub accounts: BTreeSet<String>,
    /// Only these users; empty means all.
    pub users: BTreeSet<String>,
    /// How many users a list of those who used most has.
    pub top: usize,
    /// Whether a user's accounts count together (`Group`).
    pub groups: bool,
    /// The columns.
    pub format: Option<String>,
    /// In columns, or with a separator between the values.
    pub style: ListStyle,
    /// Without the lines above the rows.
    pub no_header: bool,
}

/// Reads a command line, without the command's own name.
///
/// # Errors
/// Unknown reports, conditions, times and units, with Slurm's messages.
pub fn parse(arguments: &[impl AsRef<str>], around: &Surroundings<'_>) -> Result<Request<Sreport>, Failure> {
    let line = read(NAME, OPTIONS, arguments)?;
    if let Some(request) = printed_only(&line) {
        return Ok(request);
    }
    let [kind, name, conditions @ ..] = line.words.as_slice() else {
        return Err(Failure::plain("too few arguments for sreport: a kind (cluster, user, job) and a report"));
    };
    let known = REPORTS.iter().find(|(of, known, least, _)| means(kind, of, 1) && means(name, known, *least));
    let Some((.., report)) = known else {
        return Err(Failure::plain(format_args!("Not valid report {name}, of {kind}: known are {}", reports())));
    };
    let mut command = Sreport {
        report: *report,
        from: Timestamp(0),
        to: Timestamp(0),
        unit: unit(&line)?,
        resources: resources(&line)?,
        accounts: BTreeSet::new(),
        users: BTreeSet::new(),
        top: 10,
        groups: false,
        format: None,
        style: style(&line),
        no_header: line.has("noheader"),
    };
    let (mut from, mut to) = (None, None);
    for word in conditions {
        condition(word, &mut command, &mut from, &mut to, &around.now)?;
    }
    (command.from, command.to) = span(from, to, &around.now);
    Ok(Request::Run(command))
}

fn reports() -> String {
    REPORTS.map(|(kind, name, ..)| format!("{kind} {name}")).join(", ")
}

fn unit(line: &Line) -> Result<Unit, Failure> {
    let Some(text) = line.value("time") else { return Ok(Unit::default()) };
    let known = UNITS.iter().find(|(name, least, _)| means(text, name, *least));
    let unknown = || Failure::error(NAME, format_args!("unknown time format {text}"));
    known.map(|(.., unit)| *unit).ok_or_else(unknown)
}

fn resources(line: &Line) -> Result<Option<Vec<Resource>>, Failure> {
    let Some(list) = line.list("tres") else { return Ok(None) };
    let mut found = Vec::new();
    for name in super::words(&list) {
        match name.to_ascii_lowercase().as_str() {
            "cpu" => found.push(Resource::Cpu),
            "gres/gpu" => found.push(Resource::Gpu),
            "all" => found.extend([Resource::Cpu, Resource::Gpu]),
            _ => {
                let text = format!("{name} is not counted here, only cpu and gres/gpu");
                return Err(Failure::fatal(NAME, format_args!("No valid TRES given: {text}")));
            }
        }
    }
    found.dedup();
    Ok(Some(found))
}

/// `Start=`, `End=`, `Accounts=` and the like; a bare word is a user, as in Slurm.
fn condition(
    word: &str,
    command: &mut Sreport,
    from: &mut Option<Timestamp>,
    to: &mut Option<Timestamp>,
    now: &Zoned,
) -> Result<(), Failure> {
    let unknown = || Failure::plain(format_args!(" Unknown condition: {word}\nUse keyword set to modify value"));
    let time = |text: &str| {
        let invalid = || Failure::error(NAME, format_args!("Invalid time specification (pos=0): {text}"));
        moment::parse_past(text, now).ok_or_else(invalid)
    };
    let Some((key, value)) = word.split_once('=') else {
        match word {
            _ if means(word, "all_clusters", 2) => {}
            _ if means(word, "group", 2) && command.report == Report::TopUsers => command.groups = true,
            _ if means(word, "tree", 4) => {}
            _ => command.users.extend([word.to_owned()]),
        }
        return Ok(());
    };
    let value = value.trim_matches(['"', '\'']);
    match key {
        _ if means(key, "start", 1) => *from = Some(time(value)?),
        _ if means(key, "end", 1) => *to = Some(time(value)?),
        _ if means(key, "format", 1) => command.format = Some(value.to_owned()),
        _ if means(key, "accounts", 2) || means(key, "acct", 4) => command.accounts.extend(set(value)),
        _ if means(key, "users", 1) => command.users.extend(set(value)),
        // There is one cluster.
        _ if means(key, "clusters", 1) => {}
        _ if means(key, "topcount", 1) && command.report == Report::TopUsers => {
            command.top = value.parse().map_err(|_| unknown())?;
        }
        _ => return Err(unknown()),
    }
    Ok(())
}

/// Whole hours: by default yesterday. An end that has not come is that of the present hour, and a report is about an
/// hour at least.
fn span(from: Option<Timestamp>, to: Option<Timestamp>, now: &Zoned) -> (Timestamp, Timestamp) {
    const HOUR: i64 = 3_600_000_000;
    let micros = |zoned: &Zoned| zoned.timestamp().as_microsecond();
    let today = now.start_of_day().unwrap_or_else(|_| now.clone());
    let yesterday = today.checked_sub(1.day()).unwrap_or_else(|_| today.clone());
    let hour = |time: Timestamp| Timestamp(time.0.div_euclid(HOUR).saturating_mul(HOUR));
    let next = hour(Timestamp(micros(now))).0.saturating_add(HOUR);
    let from = hour(from.unwrap_or(Timestamp(micros(&yesterday))));
    let to = hour(to.unwrap_or(Timestamp(micros(&today)))).0.min(next);
    (from, Timestamp(to.max(from.0.saturating_add(HOUR))))
}
