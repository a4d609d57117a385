//! `scontrol update` and `create`: lists of `Key=value` (SL-C-36, SL-C-38).

use super::Failure;
use crate::{duration, job_id::IdExpression, size};

/// How a value changes the existing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `=`: replaces it.
    Set,
    /// `+=`: is added to it.
    Add,
    /// `-=`: is removed from it.
    Subtract,
}

/// A pair of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The key, in full.
    pub key: &'static str,
    /// How it changes the value.
    pub change: Change,
    /// The value, as written.
    pub value: String,
}

/// The thing to update, create or delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Jobs or parts of them.
    Jobs(Vec<IdExpression>),
    /// Nodes, by name.
    Nodes(Vec<String>),
    /// A partition.
    Partition(String),
    /// A reservation; a new one without a name gets one.
    Reservation(Option<String>),
    /// A step.
    Step(IdExpression),
}

/// A change of something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The thing to change.
    pub subject: Subject,
    /// The changes, in the order written.
    pub pairs: Vec<Pair>,
}

impl Update {
    /// The value that a key is set to; the last one counts.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.pairs.iter().rev().find(|pair| pair.key == key).map(|pair| pair.value.as_str())
    }
}

const JOB_KEYS: [&str; 38] = [
    "Account",
    "AdminComment",
    "ArrayTaskThrottle",
    "Comment",
    "Contiguous",
    "CPUsPerTask",
    "Deadline",
    "Dependency",
    "EligibleTime",
    "EndTime",
    "ExcNodeList",
    "Extra",
    "Features",
    "Gres",
    "Hold",
    "JobName",
    "Licenses",
    "MinMemoryCPU",
    "MinMemoryNode",
    "MinTmpDiskNode",
    "Name",
    "Nice",
    "NumCPUs",
    "NumNodes",
    "NumTasks",
    "OverSubscribe",
    "Partition",
    "Priority",
    "QOS",
    "ReqNodeList",
    "Requeue",
    "ReservationName",
    "Shared",
    "StartTime",
    "Switches",
    "TimeLimit",
    "TimeMin",
    "WCKey",
];
const NODE_KEYS: [&str; 12] = [
    "ActiveFeatures",
    "AvailableFeatures",
    "Comment",
    "CpuBind",
    "Extra",
    "Features",
    "Gres",
    "NodeAddr",
    "NodeHostName",
    "Reason",
    "State",
    "Weight",
];
const PARTITION_KEYS: [&str; 39] = [
    "AllocNodes",
    "AllowAccounts",
    "AllowGroups",
    "AllowQos",
    "Alternate",
    "CpuBind",
    "Default",
    "DefaultTime",
    "DefMemPerCPU",
    "DefMemPerNode",
    "DenyAccounts",
    "DenyQos",
    "DisableRootJobs",
    "ExclusiveUser",
    "GraceTime",
    "Hidden",
    "JobDefaults",
    "LLN",
    "MaxCPUsPerNode",
    "MaxCPUsPerSocket",
    "MaxMemPerCPU",
    "MaxMemPerNode",
    "MaxNodes",
    "MaxTime",
    "MinNodes",
    "Nodes",
    "OverSubscribe",
    "OverTimeLimit",
    "PowerDownOnIdle",
    "PreemptMode",
    "PriorityJobFactor",
    "PriorityTier",
    "QoS",
    "ReqResv",
    "RootOnly",
    "SelectTypeParameters",
    "State",
    "Topology",
    "TRESBillingWeights",
];
const RESERVATION_KEYS: [&str; 15] = [
    "Accounts",
    "BurstBuffer",
    "CoreCnt",
    "Duration",
    "EndTime",
    "Features",
    "Flags",
    "Groups",
    "Licenses",
    "NodeCnt",
    "Nodes",
    "PartitionName",
    "StartTime",
    "TRES",
    "Users",
];
const STEP_KEYS: [&str; 1] = ["TimeLimit"];

/// The keys that name the subject, with the fewest letters that abbreviate each. Earlier ones take precedence: a
/// partition can also be a value of a job.
const SUBJECTS: [(&str, usize); 5] =
    [("JobId", 3), ("StepId", 4), ("NodeName", 4), ("ReservationName", 3), ("PartitionName", 4)];

/// Old or short names of keys.
const OLD_KEYS: [(&str, &str); 10] = [
    ("Feature", "Features"),
    ("MinCPUs", "NumCPUs"),
    ("MinMemory", "MinMemoryNode"),
    ("MinNodes", "NumNodes"),
    ("NodeCount", "NodeCnt"),
    ("NodeList", "ReqNodeList"),
    ("ReqCPUs", "NumCPUs"),
    ("ReqNodes", "NumNodes"),
    ("ReqProcs", "NumCPUs"),
    ("Procs", "NumCPUs"),
];

/// Reads the words after `update`.
///
/// # Errors
/// No subject, an unknown key (SL-C-36), or a value that does not fit its key.
pub fn update(words: &[String]) -> Result<Update, Failure> {
    read(words, false)
}

/// Reads the words after `create`.
///
/// # Errors
/// See [`update`]; anything other than a reservation or a partition.
pub fn create(words: &[String]) -> Result<Update, Failure> {
    let entity = |word: &String| {
        let key = word.split_once('=').map_or(word.as_str(), |(key, _)| key);
        ["NodeName", "PartitionName", "ReservationName"].into_iter().find(|name| super::means(key, name, 3))
    };
    match words.iter().find_map(entity) {
        Some("ReservationName") if super::means(&words[0], "ReservationName", 3) => read(&words[1..], true),
        Some("ReservationName") => read(words, true),
        Some("PartitionName") => match words {
            [word, name, rest @ ..] if !word.contains('=') && !name.contains('=') => {
                let named = [format!("PartitionName={name}")];
                read(&[&named, rest].concat(), false)
            }
            words => read(words, false),
        },
        Some(other) => Err(Failure::error(
            "scontrol",
            format_args!("muster creates reservations and partitions, no {other}; change its configuration"),
        )),
        None => {
            let first = words.first().map_or("", String::as_str);
            Err(Failure::error("scontrol", format_args!("Invalid creation entity: {first}")))
        }
    }
}

fn read(words: &[String], is_new: bool) -> Result<Update, Failure> {
    let pairs: Vec<(&str, Change, &str)> = words.iter().map(|word| split(word)).collect::<Result<_, _>>()?;
    let leading = SUBJECTS.iter().find_map(|(name, least)| {
        let place = pairs.iter().position(|(key, ..)| super::means(key, name, *least))?;
        Some((*name, place))
    });
    let value = |place: usize| pairs[place].2;
    let (subject, keys): (Subject, &'static [&'static str]) = match leading {
        Some(("JobId", place)) => (Subject::Jobs(ids(value(place))?), &JOB_KEYS),
        Some(("StepId", place)) => (Subject::Step(step(value(place))?), &STEP_KEYS),
        Some(("NodeName", place)) => (Subject::Nodes(node_names(value(place))?), &NODE_KEYS),
        Some(("ReservationName", place)) => (Subject::Reservation(Some(value(place).to_owned())), &RESERVATION_KEYS),
        Some((_, place)) if !is_new => (Subject::Partition(value(place).to_owned()), &PARTITION_KEYS),
        Some(_) | None if is_new => (Subject::Reservation(None), &RESERVATION_KEYS),
        Some(_) | None => return Err(no_subject()),
    };
    // A reservation without a name can still use nodes of a partition.
    let leading = leading.map(|(_, place)| place).filter(|_| subject != Subject::Reservation(None));
    let mut update = Update { subject, pairs: Vec::new() };
    for (place, (key, change, value)) in pairs.into_iter().enumerate() {
        if Some(place) == leading {
            continue;
        }
        let known = find(key, keys).ok_or_else(|| unknown(key, change, value))?;
        check(known, value)?;
        update.pairs.push(Pair { key: known, change, value: value.to_owned() });
    }
    Ok(update)
}

fn split(word: &str) -> Result<(&str, Change, &str), Failure> {
    let Some((key, value)) = word.split_once('=') else { return Err(unknown(word, Change::Set, "")) };
    Ok(match (key.strip_suffix('+'), key.strip_suffix('-')) {
        (Some(key), _) => (key, Change::Add, value),
        (_, Some(key)) => (key, Change::Subtract, value),
        (None, None) => (key, Change::Set, value),
    })
}

/// The key for a name in any case, for an old name, or for an unambiguous beginning.
fn find(key: &str, keys: &'static [&'static str]) -> Option<&'static str> {
    let exact = |name: &str| keys.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
    let old = || OLD_KEYS.iter().find(|(old, _)| old.eq_ignore_ascii_case(key)).and_then(|(_, name)| exact(name));
    exact(key).or_else(old).or_else(|| {
        let begins = |known: &&&str| {
            key.len() >= 3 && known.get(..key.len()).is_some_and(|start| start.eq_ignore_ascii_case(key))
        };
        let mut fitting = keys.iter().filter(begins);
        fitting.next().filter(|_| fitting.next().is_none()).copied()
    })
}

fn unknown(key: &str, change: Change, value: &str) -> Failure {
    let sign = match change {
        Change::Set => "",
        Change::Add => "+",
        Change::Subtract => "-",
    };
    let pair = if value.is_empty() { key.to_owned() } else { format!("{key}{sign}={value}") };
    Failure {
        lines: vec![format!("Update of this parameter is not supported: {pair}"), "Request aborted".to_owned()],
        code: 1,
    }
}

fn no_subject() -> Failure {
    Failure {
        lines: vec![
            "No valid entity in update command".to_owned(),
            "Input line must include \"NodeName\", \"JobId\", \"StepId\", \"PartitionName\" or \"ReservationName\""
                .to_owned(),
        ],
        code: 1,
    }
}

fn ids(text: &str) -> Result<Vec<IdExpression>, Failure> {
    let invalid = |word: &str| Failure::plain(format_args!("Invalid job id specified for job {word}"));
    let ids = super::ids(text, invalid)?;
    if ids.is_empty() { Err(invalid(text)) } else { Ok(ids) }
}

fn step(text: &str) -> Result<IdExpression, Failure> {
    let invalid = || Failure::plain(format_args!("Invalid StepID specified: {text}"));
    IdExpression::parse(text).filter(|id| id.step.is_some()).ok_or_else(invalid)
}

fn node_names(text: &str) -> Result<Vec<String>, Failure> {
    let invalid = || Failure::plain("slurm_update error: Invalid node name specified");
    crate::hostlist::expand(text).ok().filter(|names| !names.is_empty()).ok_or_else(invalid)
}

/// Refuses invalid numbers, times and sizes before anything is changed.
fn check(key: &str, value: &str) -> Result<(), Failure> {
    let is_limit = |text: &str| duration::TimeLimit::parse(text).is_some();
    let fits = match key {
        "DefaultTime" if value.eq_ignore_ascii_case("none") => true,
        "TimeLimit" | "TimeMin" | "MaxTime" | "DefaultTime" => is_limit(value.trim_start_matches(['+', '-'])),
        "Nice" => value.is_empty() || value.parse::<i64>().is_ok(),
        "Priority" => value.parse::<u32>().is_ok(),
        "NumCPUs" | "NumTasks" | "CPUsPerTask" | "ArrayTaskThrottle" | "PriorityTier" => value.parse::<u32>().is_ok(),
        "MinMemoryCPU" | "MinMemoryNode" | "MinTmpDiskNode" => size::parse_megabytes(value).is_some(),
        _ => true,
    };
    match fits {
        true => Ok(()),
        false => {
            Err(Failure { lines: vec![format!("Invalid {key} value: {value}"), "Request aborted".to_owned()], code: 1 })
        }
    }
}
