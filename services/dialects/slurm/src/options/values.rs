//! The kinds of option values, and their meaning.

mod binding;
mod numbers;
mod resources;
mod signals;

pub use binding::{CpuBind, MemBind, socket_order};
pub use numbers::{count, number};
pub use resources::{Gres, gpus, gpus_by_model, gres, licences};
pub use signals::{SignalAhead, signal_name, signal_number};

use crate::{duration, duration::TimeLimit, hostlist, moment, size};
use muster_schemas::{
    job::{ArraySpec, Occasion},
    resources::IndexSet,
};

/// The kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number, 1 or more.
    Count,
    /// A whole number, 0 or more.
    Number,
    /// A time limit (SL-C-03).
    Time,
    /// A point in time (SL-C-04).
    Moment,
    /// An amount of memory (SL-C-05).
    Megabytes,
    /// `MIN[-MAX]`.
    NodeRange,
    /// A list of nodes (SL-C-05).
    Hosts,
    /// Array indices with a limit (SL-C-17).
    Array,
    /// Dependencies (SL-C-19).
    Dependency,
    /// A signal before the end (SL-C-13).
    SignalAhead,
    /// Occasions for mail (SL-C-15).
    MailTypes,
    /// Features (SL-C-12).
    Constraint,
    /// The distribution of tasks (SL-R-12).
    Distribution,
    /// The argument of `--exclusive`.
    Exclusive,
    /// GPUs, `[TYPE:]N`.
    Gpus,
    /// Generic resources, `NAME[:TYPE][:N]`.
    Gres,
    /// Licences, `NAME[:N]`.
    Licences,
    /// A nice value.
    Nice,
    /// A priority or `TOP`.
    Priority,
    /// `append` or `truncate`.
    OpenMode,
    /// `yes` or `no`.
    YesNo,
    /// `N[@TIME]`.
    Switches,
    /// How a program uses the parts of a CPU.
    Hint,
    /// What tasks are bound to, or `help`.
    CpuBind,
    /// The memory that tasks are bound to, or `help`.
    MemBind,
    /// What to profile, separated by commas.
    Profile,
    /// A value of an option that a site adds.
    OfSite,
}

impl Kind {
    /// Whether a text is a value of this kind. Relative times are counted from `now`.
    pub fn accepts(self, text: &str, now: &moment::Now) -> bool {
        match self {
            Self::Text => true,
            Self::Count => count(text).is_some(),
            Self::Number => number(text).is_some(),
            Self::Time => TimeLimit::parse(text).is_some(),
            Self::Moment => moment::parse(text, now).is_some(),
            Self::Megabytes => size::parse_megabytes(text).is_some(),
            Self::NodeRange => NodeRange::parse(text).is_some(),
            Self::Hosts => !text.is_empty(),
            Self::Array => !text.is_empty(),
            Self::Dependency => !text.is_empty(),
            Self::SignalAhead => SignalAhead::parse(text).is_some(),
            Self::MailTypes => mail_types(text).is_some(),
            Self::Constraint => !text.is_empty(),
            Self::Distribution => Distribution::parse(text).is_some(),
            Self::Exclusive => Exclusive::parse(text).is_some(),
            Self::Gpus => gpus(text).is_some(),
            Self::Gres => gres(text).is_some(),
            Self::Licences => !text.is_empty(),
            Self::Nice => nice(text).is_some(),
            Self::Priority => priority(text).is_some(),
            Self::OpenMode => appends(text).is_some(),
            Self::YesNo => matches!(text.to_ascii_lowercase().as_str(), "yes" | "no"),
            Self::Switches => switches(text).is_some(),
            Self::Hint => is_one_of(text, &["compute_bound", "memory_bound", "multithread", "nomultithread", "help"]),
            Self::CpuBind => is_one_of(text, &["help"]) || CpuBind::parse(text).is_some(),
            Self::MemBind => is_one_of(text, &["help"]) || MemBind::parse(text).is_some(),
            Self::OfSite => is_of_site(text),
            Self::Profile => text.split(',').all(|kind| is_one_of(kind, &PROFILES)),
        }
    }
}

/// What Slurm's plug-ins profile.
const PROFILES: [&str; 7] = ["all", "none", "energy", "task", "filesystem", "lustre", "network"];

fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// The value of `--nodes`: `MIN[-MAX]`, where `k` and `m` stand for thousands and millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRange {
    /// The least number, 1 or more.
    pub min: u32,
    /// The greatest number, if a range was given.
    pub max: Option<u32>,
}

impl NodeRange {
    /// Reads it; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let scaled = |text: &str| {
            let (digits, factor) = match text.as_bytes().last()?.to_ascii_lowercase() {
                b'k' => (&text[..text.len() - 1], 1024),
                b'm' => (&text[..text.len() - 1], 1024 * 1024),
                _ => (text, 1),
            };
            count(digits)?.checked_mul(factor)
        };
        match text.split_once('-') {
            None => Some(Self { min: scaled(text)?, max: None }),
            Some((min, max)) => {
                let (min, max) = (scaled(min)?, scaled(max)?);
                (min <= max).then_some(Self { min, max: Some(max) })
            }
        }
    }
}

/// How tasks are distributed over the nodes of a component (SL-R-12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Each node is filled before the next.
    #[default]
    Block,
    /// One task to each node in turn.
    Cyclic,
    /// This many tasks to each node in turn.
    Plane(u32),
    /// In the order of a file or node list.
    Arbitrary,
}

impl Distribution {
    /// Reads it. The parts after `:` are about sockets, see [`socket_order`], and cores. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let (levels, packing) = lower.split_once(',').unwrap_or((&lower, "pack"));
        let mut levels = levels.split(':');
        let nodes = levels.next()?;
        let inner = |level: &str| matches!(level, "*" | "block" | "cyclic" | "fcyclic");
        if !matches!(packing, "pack" | "nopack") || !levels.clone().all(inner) || levels.count() > 2 {
            return None;
        }
        match nodes {
            "*" | "block" => Some(Self::Block),
            "cyclic" => Some(Self::Cyclic),
            "arbitrary" => Some(Self::Arbitrary),
            nodes => nodes.strip_prefix("plane=").and_then(count).map(Self::Plane),
        }
    }

    /// As `sacct` and `scontrol show step` print it.
    pub const fn layout(self) -> &'static str {
        match self {
            Self::Block => "Block",
            Self::Cyclic => "Cyclic",
            Self::Plane(_) => "Plane",
            Self::Arbitrary => "Arbitrary",
        }
    }

    /// A distribution as it is in force: each `*` is the usual word of its level.
    pub fn in_force(text: &str) -> String {
        let (levels, packing) = text.split_once(',').map_or((text, None), |(levels, packing)| (levels, Some(packing)));
        let level = |(place, level): (usize, &str)| match (level, place) {
            ("*", 0) => Self::default().word().to_owned(),
            ("*", _) => "cyclic".to_owned(),
            (level, _) => level.to_owned(),
        };
        let levels: Vec<String> = levels.split(':').enumerate().map(level).collect();
        let packing = packing.map(|packing| format!(",{packing}")).unwrap_or_default();
        levels.join(":") + &packing
    }

    /// The word for it in `SLURM_DISTRIBUTION`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Cyclic => "cyclic",
            Self::Plane(_) => "plane",
            Self::Arbitrary => "arbitrary",
        }
    }
}

/// The argument of `--exclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusive {
    /// No other job on the nodes.
    Nodes,
    /// Only jobs of the same user.
    User,
    /// Only jobs of the same security label.
    Label,
    /// No other job in the same part of the network.
    Topology,
}

impl Exclusive {
    /// Reads it; the empty text is [`Exclusive::Nodes`]; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "" | "exclusive" => Some(Self::Nodes),
            "user" => Some(Self::User),
            "mcs" => Some(Self::Label),
            "topo" => Some(Self::Topology),
            _ => None,
        }
    }
}

/// The types of [`mail_types`] that are more than occasions of the job model.
const MAIL_TYPES: [&str; 13] = [
    "NONE",
    "BEGIN",
    "END",
    "FAIL",
    "REQUEUE",
    "INVALID_DEPEND",
    "STAGE_OUT",
    "TIME_LIMIT",
    "TIME_LIMIT_90",
    "TIME_LIMIT_80",
    "TIME_LIMIT_50",
    "ARRAY_TASKS",
    "ALL",
];

/// The occasions in `--mail-type` that the job model has (SL-C-15); `None` if a type is unknown.
pub fn mail_types(text: &str) -> Option<Vec<Occasion>> {
    let types: Vec<String> = text.split(',').map(str::to_ascii_uppercase).collect();
    if !types.iter().all(|word| MAIL_TYPES.contains(&word.as_str())) {
        return None;
    }
    let names = |word: &str| types.iter().any(|name| name == word);
    if names("NONE") {
        return Some(Vec::new());
    }
    let occasions = [
        ("BEGIN", Occasion::Started),
        ("END", Occasion::Ended),
        ("FAIL", Occasion::Failed),
        ("REQUEUE", Occasion::Requeued),
        ("TIME_LIMIT", Occasion::WalltimeOver),
        ("ARRAY_TASKS", Occasion::EachTask),
    ];
    // `ALL` means all but these two, as in Slurm.
    let of_all = |occasion: Occasion| !matches!(occasion, Occasion::WalltimeOver | Occasion::EachTask);
    let chosen = occasions.iter().filter(|(word, occasion)| names(word) || names("ALL") && of_all(*occasion));
    Some(chosen.map(|(_, occasion)| *occasion).collect())
}

/// The tasks of an array (SL-C-17): `1-5%2`, `0,6,16-32`, `0-15:4`; `None` for anything else, such as `5-1`, or if an
/// index is `size_limit` (`MaxArraySize`) or more.
pub fn array(text: &str, size_limit: u32) -> Option<ArraySpec> {
    let (indices, max_running) = match text.split_once('%') {
        None => (text, None),
        Some((indices, limit)) => (indices, Some(number(limit)?)),
    };
    // Check this before building the set: its numbers must be small.
    let numbers_fit =
        indices.split([',', '-', ':']).all(|part| number(part).is_some_and(|number| number <= size_limit));
    if !numbers_fit {
        return None;
    }
    let indices: IndexSet = indices.parse().ok()?;
    let last = indices.ranges().last()?.1;
    (last < size_limit).then_some(ArraySpec { indices, max_running: max_running.filter(|limit| *limit > 0) })
}

/// The number of `--nice`, 100 if none is given.
pub fn nice(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(100);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let magnitude = i64::from(number(digits)?);
    let limit = i64::from(i32::MAX) - 3;
    (magnitude <= limit).then_some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// The number of `--priority`; `TOP` is the greatest number.
pub fn priority(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("top") {
        return Some(i64::from(u32::MAX - 1));
    }
    number(text).filter(|number| *number < u32::MAX).map(i64::from)
}

/// Whether `--open-mode` is `append`, not `truncate`; one letter is enough.
pub fn appends(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase() {
        mode if !mode.is_empty() && "append".starts_with(&mode) => Some(true),
        mode if !mode.is_empty() && "truncate".starts_with(&mode) => Some(false),
        _ => None,
    }
}

/// `N[@TIME]` of `--switches`: the number, and how many seconds to wait for so few.
pub fn switches(text: &str) -> Option<(u32, Option<u64>)> {
    match text.split_once('@') {
        None => Some((number(text)?, None)),
        Some((count, time)) => Some((number(count)?, Some(duration::parse_seconds(time)?))),
    }
}

/// The names in a file of `--nodefile`, as a comma-separated list: blanks, commas and line ends separate them, and `#`
/// begins a comment. `None` if there are none, or they cannot be read.
pub fn hosts_of_file(text: &str) -> Option<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words: Vec<&str> = lines.flat_map(str::split_ascii_whitespace).map(|word| word.trim_matches(',')).collect();
    let list = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(",");
    hosts(&list).map(|_| list)
}

/// The longest value of an option that a site adds, in bytes.
pub const MAX_SITE_VALUE_BYTES: usize = 1_024;

/// Whether a text can be a value of an option that a site adds.
pub fn is_of_site(text: &str) -> bool {
    (1..=MAX_SITE_VALUE_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Node names without duplicates; `None` if the list is empty or cannot be read.
pub fn hosts(text: &str) -> Option<Vec<String>> {
    let mut names = hostlist::expand(text).ok().filter(|names| !names.is_empty())?;
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Some(names)
}
