//! Limits on the command line of `sacctmgr`, and their output.

use super::names;
use crate::{
    duration,
    size::{MEGABYTE, megabytes_of, parse_megabytes, show_megabytes},
};
use muster_schemas::accounts::{Bounds, Budget, ClassSpec, JobBounds, Remaining, UseLimits};
use std::fmt::Write as _;

/// Settings of an association or a class other than limits.
#[derive(Debug, Default)]
pub(super) struct Extras<'s> {
    pub classes: Option<&'s mut Vec<String>>,
    pub default_class: Option<&'s mut Option<String>>,
    pub shares: Option<&'s mut u32>,
    pub priority: Option<&'s mut i64>,
    pub refuses_hopeless: Option<&'s mut bool>,
    pub preempts: Option<&'s mut Vec<String>>,
    /// Whether jobs that make way are cancelled, and whether they are suspended.
    pub preempted: Option<(&'s mut bool, &'s mut bool)>,
    pub grace_seconds: Option<&'s mut u32>,
}

impl<'s> Extras<'s> {
    /// Those of a class, and its limits.
    pub fn of_class(class: &'s mut ClassSpec) -> (&'s mut UseLimits, Self) {
        let ClassSpec {
            limits,
            priority,
            refuses_hopeless,
            preempts,
            cancels_preempted,
            suspends_preempted,
            preemption_grace_seconds,
            ..
        } = class;
        let extras = Self {
            priority: Some(priority),
            refuses_hopeless: Some(refuses_hopeless),
            preempts: Some(preempts),
            preempted: Some((cancels_preempted, suspends_preempted)),
            grace_seconds: Some(preemption_grace_seconds),
            ..Self::default()
        };
        (limits, extras)
    }
}

/// The owner of limits: Slurm's words differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Association,
    Class,
}

type Number = fn(&mut UseLimits) -> &mut Option<u64>;
type Amounts = fn(&mut UseLimits) -> [&mut Option<u64>; 4];

#[derive(Clone, Copy)]
enum Setter {
    Number(Number),
    Megabytes(Number),
    Minutes(Number),
    /// Cores, nodes, GPUs, memory.
    Tres(Amounts),
    Wall,
    /// Minutes of cores, nodes, GPUs.
    TresMinutes,
    /// The same, of what is left to running jobs.
    TresRunMinutes,
    /// The sum of the times of all jobs.
    GroupWall,
}

fn of_bounds(bounds: &mut Bounds) -> [&mut Option<u64>; 4] {
    let Bounds { cores, nodes, gpus, memory_bytes, .. } = bounds;
    [cores, nodes, gpus, memory_bytes]
}

fn of_job(bounds: &mut JobBounds) -> [&mut Option<u64>; 4] {
    let JobBounds { cores, nodes, gpus, memory_bytes, .. } = bounds;
    [cores, nodes, gpus, memory_bytes]
}

/// Names in lower case; the first one is printed.
const LIMITS: [(&[&str], Option<Of>, Setter); 26] = [
    (&["grpjobs"], None, Setter::Number(|limits| &mut limits.together.running_jobs)),
    (&["grpsubmitjobs"], None, Setter::Number(|limits| &mut limits.together.jobs)),
    (&["grptres"], None, Setter::Tres(|limits| of_bounds(&mut limits.together))),
    (&["grptresmins"], None, Setter::TresMinutes),
    (&["grpcpumins"], None, Setter::Minutes(|limits| &mut limits.budget.core_seconds)),
    (&["grptresrunmins"], None, Setter::TresRunMinutes),
    (&["grpcpurunmins"], None, Setter::Minutes(|limits| &mut limits.remaining.core_seconds)),
    (&["grpwall"], None, Setter::GroupWall),
    (&["grpcpus"], None, Setter::Number(|limits| &mut limits.together.cores)),
    (&["grpnodes"], None, Setter::Number(|limits| &mut limits.together.nodes)),
    (&["grpmemory"], None, Setter::Megabytes(|limits| &mut limits.together.memory_bytes)),
    (&["maxjobs", "maxjobsperuser", "maxjobspu"], None, Setter::Number(|limits| &mut limits.each_user.running_jobs)),
    (
        &["maxsubmitjobs", "maxsubmitjobsperuser", "maxsubmitpu", "maxsubmitperuser"],
        None,
        Setter::Number(|limits| &mut limits.each_user.jobs),
    ),
    (&["maxtresperjob", "maxtrespj", "maxtres"], None, Setter::Tres(|limits| of_job(&mut limits.each_job))),
    (&["maxcpusperjob", "maxcpus"], None, Setter::Number(|limits| &mut limits.each_job.cores)),
    (&["maxnodesperjob", "maxnodes"], None, Setter::Number(|limits| &mut limits.each_job.nodes)),
    (&["maxwalldurationperjob", "maxwall"], None, Setter::Wall),
    (&["maxtresperuser", "maxtrespu"], Some(Of::Class), Setter::Tres(|limits| of_bounds(&mut limits.each_user))),
    (&["maxcpusperuser", "maxcpuspu"], Some(Of::Class), Setter::Number(|limits| &mut limits.each_user.cores)),
    (&["maxnodesperuser", "maxnodespu"], Some(Of::Class), Setter::Number(|limits| &mut limits.each_user.nodes)),
    (
        &["maxjobsperaccount", "maxjobsperacct", "maxjobspa"],
        Some(Of::Class),
        Setter::Number(|limits| &mut limits.each_account.running_jobs),
    ),
    (
        &["maxsubmitjobsperaccount", "maxsubmitjobsperacct", "maxsubmitpa"],
        Some(Of::Class),
        Setter::Number(|limits| &mut limits.each_account.jobs),
    ),
    (
        &["maxtresperaccount", "maxtresperacct", "maxtrespa"],
        Some(Of::Class),
        Setter::Tres(|limits| of_bounds(&mut limits.each_account)),
    ),
    (&["maxcpusperaccount"], Some(Of::Class), Setter::Number(|limits| &mut limits.each_account.cores)),
    (&["maxnodesperaccount"], Some(Of::Class), Setter::Number(|limits| &mut limits.each_account.nodes)),
    (&["maxmemperaccount"], Some(Of::Class), Setter::Megabytes(|limits| &mut limits.each_account.memory_bytes)),
];

fn setter(key: &str, of: Of) -> Option<Setter> {
    let fits = |only: &Option<Of>| only.is_none_or(|only| only == of);
    let known = || LIMITS.iter().filter(|(_, only, _)| fits(only));
    let exact = known().find(|(names, ..)| names.contains(&key));
    let begun = || known().find(|(names, ..)| key.len() >= 4 && names.iter().any(|name| name.starts_with(key)));
    exact.or_else(begun).map(|(.., setter)| *setter)
}

/// Sets the value of a pair, which can be a limit or one of the given extras.
///
/// # Errors
/// The message for an invalid value or an unknown key.
pub(super) fn set(
    pair: &(String, String),
    of: Of,
    limits: &mut UseLimits,
    extras: &mut Extras<'_>,
) -> Result<(), String> {
    let (key, value) = (pair.0.trim_end_matches(['+', '-']), pair.1.trim_matches(['"', '\'']));
    if let Some(setter) = setter(key, of) {
        let bad = || format!("sacctmgr: error: Invalid value for {} ({value})", pair.0);
        return match setter {
            Setter::Number(slot) => number(value).map(|number| *slot(limits) = number).ok_or_else(bad),
            Setter::Megabytes(slot) => {
                let size = if value == "-1" { Some(None) } else { parse_megabytes(value).map(Some) };
                size.map(|size| *slot(limits) = size.map(|size| size.saturating_mul(MEGABYTE))).ok_or_else(bad)
            }
            Setter::Minutes(slot) => number(value).map(|minutes| *slot(limits) = minutes.map(seconds)).ok_or_else(bad),
            Setter::TresMinutes => {
                let Budget { core_seconds, node_seconds, gpu_seconds, .. } = &mut limits.budget;
                set_tres_minutes(value, [core_seconds, node_seconds, gpu_seconds]).ok_or_else(bad)
            }
            Setter::TresRunMinutes => {
                let Remaining { core_seconds, node_seconds, gpu_seconds } = &mut limits.remaining;
                set_tres_minutes(value, [core_seconds, node_seconds, gpu_seconds]).ok_or_else(bad)
            }
            Setter::GroupWall => {
                let limit = duration::TimeLimit::parse(value).ok_or_else(bad)?;
                limits.budget.run_seconds = limit.seconds();
                Ok(())
            }
            Setter::Tres(slots) => set_tres(value, slots(limits)).ok_or_else(bad),
            Setter::Wall => {
                let limit = duration::TimeLimit::parse(value).ok_or_else(bad)?;
                limits.each_job.walltime_seconds = limit.seconds();
                Ok(())
            }
        };
    }
    set_extra(pair, key, value, extras)
}

fn set_extra(pair: &(String, String), key: &str, value: &str, extras: &mut Extras<'_>) -> Result<(), String> {
    let unknown = || format!(" Unknown option: {}={}\n Use keyword 'where' to modify condition", pair.0, pair.1);
    let bad = || format!("sacctmgr: error: Invalid value for {} ({value})", pair.0);
    let begins = |name: &str, least: usize| key.len() >= least && name.starts_with(key);
    if begins("qoslevel", 3) {
        let classes = extras.classes.as_mut().ok_or_else(unknown)?;
        change_list(classes, &pair.0, value);
    } else if begins("defaultqos", 8) || key == "defqos" {
        let class = names(value).into_iter().next().filter(|class| class != "-1");
        **extras.default_class.as_mut().ok_or_else(unknown)? = class;
    } else if begins("fairshare", 1) || begins("shares", 1) {
        let shares = match value {
            "parent" | "-1" => 1,
            number => number.parse().map_err(|_| bad())?,
        };
        **extras.shares.as_mut().ok_or_else(unknown)? = shares;
    } else if begins("priority", 3) {
        let priority = if value == "-1" { 0 } else { value.parse().map_err(|_| bad())? };
        **extras.priority.as_mut().ok_or_else(unknown)? = priority;
    } else if key == "preemptmode" {
        let (cancels, suspends) = extras.preempted.as_mut().ok_or_else(unknown)?;
        (**cancels, **suspends) = match value.to_lowercase().as_str() {
            "cancel" => (true, false),
            "suspend" | "suspend,gang" | "gang,suspend" => (false, true),
            "requeue" | "cluster" | "-1" | "" => (false, false),
            _ => {
                let known = "muster knows cancel, requeue, suspend and cluster";
                return Err(format!(" Bad Preempt Mode given: {value}; {known}"));
            }
        };
    } else if begins("gracetime", 3) {
        let seconds = if value == "-1" { 0 } else { value.parse().map_err(|_| bad())? };
        **extras.grace_seconds.as_mut().ok_or_else(unknown)? = seconds;
    } else if begins("preempt", 7) {
        change_list(extras.preempts.as_mut().ok_or_else(unknown)?, &pair.0, value);
    } else if begins("flags", 2) {
        let flag = extras.refuses_hopeless.as_mut().ok_or_else(unknown)?;
        match value.to_lowercase().as_str() {
            "denyonlimit" => **flag = !pair.0.ends_with('-'),
            "-1" | "" => **flag = false,
            _ => return Err(format!(" Unknown QOS flag used in:\n  '{value}'")),
        }
    } else {
        return Err(unknown());
    }
    Ok(())
}

/// Whether a pair adds classes to a list, or removes some.
pub(super) fn changes_classes((key, value): &(String, String)) -> bool {
    let name = key.trim_end_matches(['+', '-']);
    let is_relative = name != key || names(value).iter().any(|class| class.starts_with(['+', '-']));
    name.len() >= 3 && "qoslevel".starts_with(name) && is_relative
}

/// `qos=a,b`, `qos+=a`, `qos-=a`, and signs before single names.
fn change_list(list: &mut Vec<String>, key: &str, value: &str) {
    let of_key = key.chars().last().filter(|sign| ['+', '-'].contains(sign));
    let wanted = names(value);
    let is_changed = of_key.is_some() || wanted.iter().any(|name| name.starts_with(['+', '-']));
    if !is_changed {
        list.clear();
    }
    for name in wanted {
        let sign = name.chars().next().filter(|sign| ['+', '-'].contains(sign)).or(of_key);
        let name = name.trim_start_matches(['+', '-']).to_owned();
        list.retain(|known| *known != name);
        if sign != Some('-') && !name.is_empty() {
            list.push(name);
        }
    }
    list.sort();
}

/// A number; below 0 removes the limit.
#[allow(clippy::option_option, reason = "no number is not the same as no limit")]
fn number(value: &str) -> Option<Option<u64>> {
    let number: i64 = value.parse().ok()?;
    Some(u64::try_from(number).ok())
}

/// `cpu=4,node=2,mem=10G,gres/gpu=1`; -1 removes one.
fn set_tres(value: &str, [cores, nodes, gpus, memory]: [&mut Option<u64>; 4]) -> Option<()> {
    for part in value.split(',').filter(|part| !part.is_empty()) {
        let (name, amount) = part.split_once('=')?;
        match name.to_lowercase().as_str() {
            "cpu" | "1" => *cores = number(amount)?,
            "node" | "4" => *nodes = number(amount)?,
            "gres/gpu" => *gpus = number(amount)?,
            "mem" | "2" if amount == "-1" => *memory = None,
            "mem" | "2" => *memory = Some(parse_megabytes(amount)?.saturating_mul(MEGABYTE)),
            _ => return None,
        }
    }
    Some(())
}

/// `cpu=4,node=2,gres/gpu=1` in minutes; -1 removes one. Memory is not counted over time.
fn set_tres_minutes(value: &str, [cores, nodes, gpus]: [&mut Option<u64>; 3]) -> Option<()> {
    for part in value.split(',').filter(|part| !part.is_empty()) {
        let (name, minutes) = part.split_once('=')?;
        let slot = match name.to_lowercase().as_str() {
            "cpu" | "1" => &mut *cores,
            "node" | "4" => &mut *nodes,
            "gres/gpu" => &mut *gpus,
            _ => return None,
        };
        *slot = number(minutes)?.map(seconds);
    }
    Some(())
}

fn seconds(minutes: u64) -> u64 {
    minutes.saturating_mul(60)
}

/// The minutes of cores, nodes and GPUs as Slurm lists them: `cpu=600,gres/gpu=60`.
pub fn tres_minutes(budget: &Budget) -> String {
    minutes(budget.core_seconds, budget.node_seconds, budget.gpu_seconds)
}

/// The same of what is left to running jobs.
pub fn tres_run_minutes(remaining: &Remaining) -> String {
    minutes(remaining.core_seconds, remaining.node_seconds, remaining.gpu_seconds)
}

fn minutes(cores: Option<u64>, nodes: Option<u64>, gpus: Option<u64>) -> String {
    let minutes = |seconds: Option<u64>| seconds.map(|seconds| seconds / 60);
    tres(minutes(cores), minutes(nodes), minutes(gpus), None)
}

/// Cores, nodes, GPUs and memory as Slurm lists them: `cpu=4,gres/gpu=1,mem=10G,node=2`.
pub fn tres(cores: Option<u64>, nodes: Option<u64>, gpus: Option<u64>, memory_bytes: Option<u64>) -> String {
    let mut text = String::new();
    let memory = memory_bytes.map(|bytes| show_megabytes(megabytes_of(bytes)));
    let parts = [
        ("cpu", cores.map(|cores| cores.to_string())),
        ("gres/gpu", gpus.map(|gpus| gpus.to_string())),
        ("mem", memory),
        ("node", nodes.map(|nodes| nodes.to_string())),
    ];
    for (name, amount) in parts {
        let Some(amount) = amount else { continue };
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{name}={amount}");
    }
    text
}

/// A walltime as lists of limits show it.
pub fn wall(seconds: Option<u64>) -> String {
    seconds.map(duration::long).unwrap_or_default()
}

/// The limits that are set, one per line, with the names padded.
pub(super) fn lines(limits: &UseLimits, of: Of) -> Vec<String> {
    let UseLimits { together, each_user, each_account, each_job, budget, remaining } = limits;
    let count = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let amounts = |bounds: &Bounds| tres(bounds.cores, bounds.nodes, bounds.gpus, bounds.memory_bytes);
    let of_user =
        if of == Of::Class { ["MaxJobsPerUser", "MaxSubmitJobsPerUser"] } else { ["MaxJobs", "MaxSubmitJobs"] };
    let of_job = if of == Of::Class { "MaxTRESPerJob" } else { "MaxTRES" };
    let width = if of == Of::Class { 24 } else { 13 };
    let all = [
        ("GrpJobs", count(together.running_jobs)),
        ("GrpSubmitJobs", count(together.jobs)),
        ("GrpTRES", amounts(together)),
        ("GrpTRESMins", tres_minutes(budget)),
        ("GrpTRESRunMins", tres_run_minutes(remaining)),
        ("GrpWall", wall(budget.run_seconds)),
        (of_user[0], count(each_user.running_jobs)),
        (of_user[1], count(each_user.jobs)),
        ("MaxTRESPerUser", amounts(each_user)),
        ("MaxJobsPerAccount", count(each_account.running_jobs)),
        ("MaxSubmitJobsPerAccount", count(each_account.jobs)),
        ("MaxTRESPerAccount", amounts(each_account)),
        (of_job, tres(each_job.cores, each_job.nodes, each_job.gpus, each_job.memory_bytes)),
        ("MaxWall", wall(each_job.walltime_seconds)),
    ];
    let set = all.into_iter().filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| format!("  {name:<width$} = {value}")).collect()
}
