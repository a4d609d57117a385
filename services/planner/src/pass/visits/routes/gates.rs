//! The gates of a target that count what runs: the load of its machine, and fragments.

use super::{
    Refusal,
    books::{InQueue, OnMachine},
    hours::{Barrier, Length},
    order::Candidate,
};
use crate::routes::MachineLoad;
use muster_schemas::{
    Timestamp,
    policy::routes::{LoadBand, Machine, SizeLimits, Target},
    resources::IndexSet,
};
use std::collections::BTreeMap;

/// Whether a job of this size and walltime is refused for good.
pub(super) fn is_beyond(limits: Option<&SizeLimits>, job: &Candidate) -> bool {
    let Some(limits) = limits else { return false };
    let most = if job.size <= limits.small_units { limits.small_seconds } else { limits.large_seconds };
    most.is_some_and(|most| job.walltime_seconds.is_none_or(|seconds| seconds > most))
}

/// Whether a job fits a target when that is empty.
pub(super) fn fits_empty(target: &Target, job: &Candidate) -> bool {
    target.units.is_none_or(|units| job.size <= units) && fits_time(target, job)
}

fn fits_time(target: &Target, job: &Candidate) -> bool {
    let is_short = |most: u64| job.walltime_seconds.is_some_and(|seconds| seconds <= most);
    target.walltime_seconds.is_none_or(is_short)
}

/// The refusal of a barrier of time.
pub(super) const fn refused_by(barrier: Barrier) -> Refusal {
    match barrier {
        Barrier::Limit => Refusal::HourLimit,
        Barrier::Drain(border) => Refusal::Drain(border),
        Barrier::Outage(until) => Refusal::Outage { until },
        Barrier::Border(border) => Refusal::CrossesWindow(border),
    }
}

/// Why the load of a machine lets no job start. The first rule that applies decides.
pub(super) fn load(
    band: Option<&LoadBand>,
    machine: &Machine,
    runs: &OnMachine,
    load: Option<&MachineLoad>,
) -> Option<Refusal> {
    if machine.units.is_some_and(|units| runs.units >= u64::from(units)) {
        return Some(Refusal::NoRoom("nodes"));
    }
    let band = band?;
    if runs.jobs < u64::from(band.min_jobs) {
        return None;
    }
    if let Some(most) = band.max_jobs.filter(|most| runs.jobs >= u64::from(*most)) {
        return Some(Refusal::MachineJobs(most));
    }
    let load = load?;
    // Both sides in millionths of a hundredth of a processor.
    let now = (i128::from(load.millionths) + i128::from(runs.added_processors) * 1_000_000) * 100;
    let at = |percent: u32| i128::from(percent) * i128::from(load.processors) * 1_000_000;
    let is_busy = || {
        let high = band.high_system_percent;
        high.is_some_and(|high| load.system_percent.is_some_and(|percent| percent >= high)).then_some(Refusal::Load)
    };
    let Some(percent) = band.percent else { return is_busy() };
    match () {
        () if now < at(percent.low) => None,
        () if now > at(percent.high) => Some(Refusal::Load),
        () => is_busy().or_else(|| (now >= at(percent.target) && !load.is_idle).then_some(Refusal::Load)),
    }
}

/// The attribute of which the jobs of a machine would ask for more than it has.
pub(super) fn oversold(
    machine: &Machine,
    runs: &OnMachine,
    attributes: Option<&BTreeMap<String, i64>>,
) -> Option<Refusal> {
    let is_too_much = |(name, most): &(&String, &u64)| {
        let asked = attributes.and_then(|all| all.get(*name)).copied().filter(|value| *value > 0).unwrap_or(0);
        let used = runs.asked.get(*name).copied().unwrap_or(0);
        asked > 0 && used + i128::from(asked) > i128::from(**most)
    };
    machine.max_attributes.iter().find(is_too_much).map(|(name, _)| Refusal::Oversold(name.clone()))
}

/// The units of a machine for a job: the lowest run of free ones that is long enough, else the lowest free ones. `None`
/// without numbers, or while a run has units of which nobody knows the numbers.
pub(super) fn numbers(machine: &Machine, runs: &OnMachine, size: u32) -> Option<IndexSet> {
    let units = machine.units.filter(|_| machine.is_numbered && !runs.has_others)?;
    let free = IndexSet::first_n(units).difference(&runs.numbers);
    let of_run = free.ranges().iter().find(|(first, last)| last - first >= size - 1);
    let of_run = of_run.map(|(first, _)| IndexSet::from_range(*first, first + (size - 1)));
    of_run.or_else(|| (free.len() >= u64::from(size)).then(|| free.smallest(size.into())))
}

/// Whether a job would leave only fragments of a queue free.
pub(super) fn is_fragment(target: &Target, runs: &InQueue, job: &Candidate, now: Timestamp) -> bool {
    let (Some(units), Some(most @ 2..)) = (target.units, target.max_running) else { return false };
    let fragment = u64::from(units) / most;
    if fragment < 2 || runs.jobs == 0 {
        return false;
    }
    let is_over_in_time = || {
        let end = Length(job.walltime_seconds).end(now);
        runs.latest.is_some_and(|latest| end < latest)
    };
    if u64::from(units).saturating_sub(runs.units) < fragment {
        return !is_over_in_time();
    }
    u64::from(job.size) < fragment && ((runs.units + fragment / 2) / runs.jobs >= fragment || !is_over_in_time())
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{JobId, policy::routes::LoadPercent};

    fn job(size: u32, walltime: u64) -> Candidate {
        Candidate {
            place: 0,
            id: JobId::job(1),
            owner: (0, "ann".into()),
            arrival: Timestamp(0),
            size,
            walltime_seconds: Some(walltime),
            is_privileged: false,
            waited_long: false,
            is_background: false,
        }
    }

    /// PBS-P-12: each rule of fragments, for a queue of 32 units and 4 jobs: a fragment has 8.
    #[test]
    fn fragments_are_avoided() {
        let target = Target { units: Some(32), max_running: Some(4), ..Target::default() };
        let latest = Some(Timestamp(100_000_000));
        let refuses = |target: &Target, jobs, units, size, walltime| {
            is_fragment(target, &InQueue { jobs, units, latest }, &job(size, walltime), Timestamp(0))
        };
        assert!(!refuses(&target, 0, 0, 1, 1000), "an empty queue takes all");
        assert!(refuses(&target, 2, 28, 2, 100), "fewer free than a fragment: it must be over before");
        assert!(!refuses(&target, 2, 28, 2, 99));
        assert!(!refuses(&target, 2, 16, 8, 1000), "as large as a fragment");
        assert!(refuses(&target, 2, 12, 7, 1), "the average is 8, with 4 added");
        assert!(!refuses(&target, 2, 11, 7, 99), "below it, it must be over before");
        assert!(refuses(&target, 2, 11, 7, 100));
        for target in [
            Target { max_running: Some(1), ..target.clone() },
            Target { max_running: None, ..target.clone() },
            Target { units: None, ..target.clone() },
            Target { units: Some(7), ..target.clone() },
        ] {
            assert!(!refuses(&target, 2, 7, 1, 1000), "{target:?}");
        }
    }

    /// PBS-P-13: the first rule that applies decides.
    #[test]
    fn loads_have_a_band() {
        let percent = Some(LoadPercent { low: 75, target: 90, high: 100 });
        let band = LoadBand { min_jobs: 1, max_jobs: Some(3), percent, high_system_percent: Some(30) };
        let machine = Machine { units: Some(16), ..Machine::default() };
        let found = |jobs, units, load_percent: u64, system, is_idle, added_processors| {
            let runs = OnMachine { jobs, units, added_processors, ..OnMachine::default() };
            let sample = MachineLoad {
                processors: 10,
                millionths: load_percent * 100_000,
                system_percent: Some(system),
                is_idle,
            };
            load(Some(&band), &machine, &runs, Some(&sample))
        };
        let refused = Some(Refusal::Load);
        assert_eq!(found(0, 16, 0, 0, true, 0), Some(Refusal::NoRoom("nodes")));
        assert_eq!(found(0, 0, 500, 99, false, 0), None, "fewer jobs than the least");
        assert_eq!(found(3, 3, 0, 0, true, 0), Some(Refusal::MachineJobs(3)));
        assert_eq!(found(1, 1, 74, 99, false, 0), None);
        assert_eq!(found(1, 1, 101, 0, true, 0), refused);
        assert_eq!(found(1, 1, 100, 0, true, 0), None, "idle processors");
        assert_eq!(found(1, 1, 75, 30, true, 0), refused, "busy with itself");
        assert_eq!(found(1, 1, 89, 29, false, 0), None);
        assert_eq!(found(1, 1, 90, 29, false, 0), refused);
        assert_eq!(found(1, 1, 70, 29, false, 2), refused, "what has started counts");
        let runs = OnMachine { jobs: 1, ..OnMachine::default() };
        assert_eq!(load(Some(&band), &machine, &runs, None), None);
    }

    /// PBS-P-22: memory is never oversold.
    #[test]
    fn memory_is_not_oversold() {
        let machine = Machine { max_attributes: [("memory_kib".to_owned(), 100)].into(), ..Machine::default() };
        let runs = OnMachine { asked: [("memory_kib".to_owned(), 60)].into(), ..OnMachine::default() };
        let asks = |value| oversold(&machine, &runs, Some(&[("memory_kib".to_owned(), value)].into()));
        assert_eq!((asks(40), asks(41), asks(0)), (None, Some(Refusal::Oversold("memory_kib".into())), None));
        assert_eq!(oversold(&machine, &runs, None), None);
    }

    /// PBS-P-18: the lowest run that is long enough, else the lowest free units.
    #[test]
    fn units_have_numbers() {
        let machine = Machine { units: Some(10), is_numbered: true, ..Machine::default() };
        let of = |taken: &str, size| {
            let runs = OnMachine { numbers: taken.parse().expect("numbers"), ..OnMachine::default() };
            numbers(&machine, &runs, size).map(|found| found.to_string())
        };
        assert_eq!(of("2-3", 2).as_deref(), Some("0-1"));
        assert_eq!(of("2-3", 3).as_deref(), Some("4-6"));
        assert_eq!(of("2-3,7", 4).as_deref(), Some("0-1,4-5"));
        assert_eq!(of("2-3,7", 7).as_deref(), Some("0-1,4-6,8-9"));
        assert_eq!(of("2-3,7", 8), None);
        let unknown = OnMachine { has_others: true, ..OnMachine::default() };
        assert_eq!(numbers(&machine, &unknown, 1), None);
        assert_eq!(numbers(&Machine { is_numbered: false, ..machine }, &OnMachine::default(), 1), None);
    }

    /// PBS-P-05: the limit of the size of a job.
    #[test]
    fn small_and_large_jobs_have_their_limits() {
        let limits = SizeLimits { small_units: 4, small_seconds: Some(100), large_seconds: Some(50) };
        let beyond = |size, walltime| is_beyond(Some(&limits), &job(size, walltime));
        assert_eq!([beyond(4, 100), beyond(4, 101), beyond(5, 50), beyond(5, 51)], [false, true, false, true]);
        assert!(!is_beyond(None, &job(99, 99)));
    }
}
