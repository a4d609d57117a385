//! Planning by turns in which jobs wait in some queues and start in others, with room counted in units.
//!
//! Every waiting job has a size in units. A queue in which jobs start, and a machine, can have so many units; what is
//! free of them is known for all times to come, as for licences.

use super::period::Period;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Where waiting jobs start, in which order they are looked at, and the gates in front of each queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Routes {
    /// The queues whose jobs are looked at together, as one list.
    pub sources: Vec<Source>,
    /// The queues in which jobs start. A job of the list tries them in their order; the first whose gates all open
    /// takes it. Queues whose own jobs are planned in place follow after the list, each by itself.
    pub targets: Vec<Target>,
    /// The machines that targets name.
    pub machines: Vec<Machine>,
    /// The number of nodes of the cluster, if jobs get whole nodes: a unit is a node, and runs of all queues count.
    pub whole_nodes: Option<u32>,
    /// The size of a job: the largest part, rounded up; at least 1.
    pub size: Vec<SizePart>,
    /// Jobs that are refused for good.
    pub size_limits: Option<SizeLimits>,
    /// Jobs that waited long.
    pub long_wait: Option<LongWait>,
    /// Privileged jobs, then those that waited long, are looked at ahead of all others.
    pub ranks_first: bool,
    /// The owners of other jobs take turns, those first who used less.
    pub owners: Option<Owners>,
    /// What jobs may use of the usual hours: all times but the other hours of the policy.
    pub hours: Option<HourRules>,
    /// How far the load of machines may go.
    pub load: Option<LoadBand>,
    /// Keeps small jobs from leaving only fragments of a queue free.
    pub avoids_fragments: bool,
    /// Groups that have used up their allocation start nothing but privileged jobs.
    pub enforces_allocations: bool,
    /// Promises to jobs that cannot start.
    pub reservations: Reservations,
    /// The groups that have used more than their allocation, by their numbers, in their order (PBS-P-03).
    pub over_allocation: Vec<u32>,
}

/// A queue whose jobs start in other queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    /// The queue.
    pub queue: String,
    /// The standing of its jobs.
    pub standing: JobStanding,
    /// What orders know of its jobs as the attribute [`BASE`].
    pub base: i64,
}

/// The attribute of jobs with what their owner has used, as [`Owners`] counts it. It follows the owner's use as long as a job waits.
pub const PAST_USAGE: &str = "past_usage";
/// The attribute of jobs that is not 0 if somebody waits for them at a terminal.
pub const INTERACTIVE: &str = "interactive";
/// The attribute of jobs with the base of their priority.
pub const BASE: &str = "queue_base";
/// The attribute of jobs that is not 0 if they are [`JobStanding::Background`].
pub const BACKGROUND: &str = "is_background";
/// The attribute of jobs that is not 0 if they are [`JobStanding::Privileged`].
pub const SPECIAL: &str = "is_special";

/// The standing of a job among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobStanding {
    /// As most.
    #[default]
    Normal,
    /// It passes the limits of sizes and of hours, and is promised a start.
    Privileged,
    /// It is promised nothing for waiting long.
    Background,
}

/// A queue in which jobs start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Target {
    /// The queue.
    pub queue: String,
    /// Only its own jobs start in it, after the list; otherwise the jobs of the list do.
    pub in_place: bool,
    /// Its units; `None` means no limit.
    pub units: Option<u32>,
    /// The longest walltime of a job in it, in seconds; `None` means no limit.
    pub walltime_seconds: Option<u64>,
    /// The most jobs that run in it, as far as it is known: fragments depend on it.
    pub max_running: Option<u64>,
    /// The machine on which its jobs run, by its name.
    pub machine: Option<String>,
    /// Its jobs start in outages of its machine only; those of others only outside.
    pub in_outages: bool,
    /// The hours in which its jobs start.
    pub hours: TargetHours,
}

/// The hours in which the jobs of a queue start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetHours {
    /// All.
    #[default]
    All,
    /// All but the other hours of the policy.
    Usual,
    /// The other hours of the policy.
    Other,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its units; `None` means that only those of queues count.
    pub units: Option<u32>,
    /// Its units have numbers, from 0, and each job gets some of its own.
    pub is_numbered: bool,
    /// Maximum sums of what its jobs ask for by name.
    pub max_attributes: BTreeMap<String, u64>,
    /// Its outages, in their order, neither overlapping nor touching.
    pub outages: Vec<Period>,
    /// Its outages are not known: nothing starts on it.
    pub is_in_doubt: bool,
}

/// A part of the size of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SizePart {
    /// The attribute of the job; one that it does not have is 0.
    pub attribute: String,
    /// How much of it a unit has, at least 1.
    pub per_unit: u64,
}

/// Walltimes above which a job is refused for good, by its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SizeLimits {
    /// The largest small job, in units.
    pub small_units: u32,
    /// The limit of small jobs, in seconds; `None` means no limit.
    pub small_seconds: Option<u64>,
    /// The limit of large jobs, in seconds; `None` means no limit.
    pub large_seconds: Option<u64>,
}

/// When a job counts as one that waited long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LongWait {
    /// After more than this many seconds, if nobody waits for it at a terminal; `None` means never.
    pub after_seconds: Option<u64>,
    /// After more than its walltime and this many seconds in the usual hours, if somebody does (its attribute
    /// `interactive` is not 0); `None` means never.
    pub interactive_after_seconds: Option<u64>,
    /// Those of this walltime or more go ahead of the others, in seconds.
    pub long_seconds: u64,
}

/// How owners take turns. An owner is a user in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Owners {
    /// The longest walltime of a short job, in seconds.
    pub short_seconds: u64,
    /// What a short job charges its owner.
    pub short_charge: u64,
    /// What any other job charges its owner.
    pub charge: u64,
    /// The part of an owner's use that is left after a day, in millionths; `None` means all (PBS-P-09).
    pub left_after_day_millionths: Option<u32>,
    /// The same for owners in groups that have used more than their allocation; `None` means no other part.
    pub over_left_after_day_millionths: Option<u32>,
    /// Their use is only counted, for orders that ask for [`PAST_USAGE`]: owners take no turns.
    pub only_counts: bool,
}

/// What jobs may use of the usual hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HourRules {
    /// The most of a job's time that lies in them, in seconds; `None` means no limit.
    pub limit_seconds: Option<u64>,
    /// Jobs up to this many units have the next limit in place of that; 0 for none.
    pub small_units: u32,
    /// The limit of those, in seconds; `None` means no limit.
    pub small_limit_seconds: Option<u64>,
    /// No job that starts in them runs on into the other hours, unless a run of its queue does.
    pub drains: bool,
    /// These rules end early for a queue that is idle.
    pub early_end: Option<EarlyEnd>,
}

/// When the rules of the usual hours end early for a queue: the other hours are near, the queue is idle, and only these
/// rules keep a job from starting in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EarlyEnd {
    /// The other hours begin within this many seconds.
    pub within_seconds: u64,
    /// No job has run in the queue for more than this many seconds.
    pub idle_seconds: u64,
}

/// How far the load of machines may go, in percent of their processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoadBand {
    /// With fewer jobs the load does not matter.
    pub min_jobs: u32,
    /// The most jobs of a machine; `None` means no limit.
    pub max_jobs: Option<u32>,
    /// The band of loads; `None` if the load does not matter.
    pub percent: Option<LoadPercent>,
    /// From this percentage of system time on a machine starts nothing; `None` means no limit.
    pub high_system_percent: Option<u32>,
}

/// A band of loads, in percent of the processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoadPercent {
    /// Below this a machine starts jobs.
    pub low: u32,
    /// Below this it does unless it is busy with itself.
    pub target: u32,
    /// Above this it starts nothing.
    pub high: u32,
}

/// Promises to jobs that cannot start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reservations {
    /// None.
    #[default]
    None,
    /// They are kept until their jobs start or no longer wait, and move only to earlier times.
    Kept,
    /// They are made again in each cycle.
    Renewed,
}

impl Routes {
    /// The size of a job, by its attributes: at least 1.
    pub fn size_of(&self, attributes: Option<&BTreeMap<String, i64>>) -> u32 {
        let units = self.size.iter().map(|part| {
            let asked = attributes.and_then(|all| u64::try_from(*all.get(&part.attribute)?).ok()).unwrap_or(0);
            asked.div_ceil(part.per_unit.max(1))
        });
        u32::try_from(units.max().unwrap_or(1).max(1)).unwrap_or(u32::MAX)
    }

    /// The machine with a name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.name == name)
    }

    /// The target that a queue is.
    pub fn target(&self, queue: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.queue == queue)
    }
}

impl Owners {
    /// What a job charges its owner. One without a walltime counts as long.
    pub fn charge_of(&self, walltime_seconds: Option<u64>) -> u64 {
        let is_short = walltime_seconds.is_some_and(|seconds| seconds <= self.short_seconds);
        if is_short { self.short_charge } else { self.charge }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_the_largest_part_rounded_up() {
        let part = |attribute: &str, per_unit| SizePart { attribute: attribute.into(), per_unit };
        let routes = Routes { size: vec![part("cores", 2), part("memory_kib", 100)], ..Routes::default() };
        let size = |cores, memory| {
            routes.size_of(Some(&[("cores".to_owned(), cores), ("memory_kib".to_owned(), memory)].into()))
        };
        assert_eq!([size(4, 200), size(5, 200), size(4, 201), size(0, 0), size(-3, -1)], [2, 3, 3, 1, 1]);
        assert_eq!(size(i64::MAX, 0), u32::MAX);
        assert_eq!(routes.size_of(None), 1);
    }
}
