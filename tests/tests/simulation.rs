//! A few hundred seeds of the simulation with faults. `MUSTER_SIMULATION_SEED` repeats one, `MUSTER_SIMULATION_SEEDS`
//! is the number tried in each part; `muster-loadtest simulation` runs any number.

use muster_tests::simulation::{self, Counts, Kills, Options, Report};
use std::ops::Range;

const SEEDS_PER_PART: u64 = 50;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// The same with filters, which takes longer.
const FILTER_SEEDS_PER_PART: u64 = 25;

/// The seeds of a part; with several parts two processors are busy.
fn seeds(part: u64, count: u64) -> Range<u64> {
    match number("MUSTER_SIMULATION_SEED") {
        Some(seed) => seed..seed + u64::from(part == 0),
        None => {
            let count = number("MUSTER_SIMULATION_SEEDS").unwrap_or(count);
            part * count..(part + 1) * count
        }
    }
}

fn simulate(seeds: Range<u64>, options: Options) -> Report {
    let mut total = Report::default();
    for seed in seeds.clone() {
        let report = simulation::run(seed, options).unwrap_or_else(|failure| panic!("{failure}"));
        total.add(report);
    }
    println!("seeds {seeds:?}: {total:?}");
    total
}

/// Runs the seeds of a part. A simulation in which nothing happens keeps every promise, so enough must have happened.
fn check(part: u64) {
    let seeds = seeds(part, SEEDS_PER_PART);
    let count = seeds.end - seeds.start;
    let total = simulate(seeds, Options::default());
    if count >= SEEDS_PER_PART {
        assert!(total.starts > 100 * count, "too few runs were started: {total:?}");
        assert!(total.crashes > 5 * count, "too little was stopped: {total:?}");
        assert!(total.pauses > count, "too little stood still: {total:?}");
        assert!(total.torn_writes > count / 5, "too few writes were torn: {total:?}");
        assert!(total.instances > 100 * count, "too few instances of tasks ended: {total:?}");
        assert!(total.resizes > 2 * count, "too few jobs grew or shrank: {total:?}");
    }
}

/// Under any faults nothing acknowledged is lost, no run starts twice, and replay equals state (M-SYS-2).
#[test]
fn simulation_keeps_every_promise_under_faults() {
    check(0);
}

#[test]
fn simulation_keeps_every_promise_under_faults_second_part() {
    check(1);
}

#[test]
fn simulation_keeps_every_promise_under_faults_third_part() {
    check(2);
}

#[test]
fn simulation_keeps_every_promise_under_faults_fourth_part() {
    check(3);
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let options = Options { troubled_seconds: 20, ..Options::default() };
    let [one, other] = [0, 1].map(|_| simulation::run(7, options).unwrap_or_else(|failure| panic!("{failure}")));
    assert_eq!(one, other);
}

/// As [`check`], with filters and the runners that call them.
fn check_filters(part: u64) {
    let seeds = seeds(part, FILTER_SEEDS_PER_PART);
    let count = seeds.end - seeds.start;
    let total = simulate(seeds, Options { runners: 3, ..Options::default() });
    if count >= FILTER_SEEDS_PER_PART {
        assert!(total.chains > 30 * count, "too few chains came to their end: {total:?}");
        assert!(total.reverts > 2 * count, "too little was taken back: {total:?}");
        let Kills { of_runners, in_rollback, in_activation, in_submission } = total.kills;
        let kills = [of_runners, in_rollback, in_activation, in_submission];
        assert!(kills.iter().all(|kills| *kills > count), "too few stops hit a chain in some phase: {total:?}");
    }
}

/// Chains of filters under faults: each verdict and each revert is recorded once, in order, whatever stops (HPC-F-51,
/// HPC-F-55, HPC-F-84..F-88) (M-FIL-4).
#[test]
fn filter_chains_keep_every_promise_under_faults() {
    check_filters(0);
}

#[test]
fn filter_chains_keep_every_promise_under_faults_second_part() {
    check_filters(1);
}

/// Jobs with several components under faults: a submission is one record, starts in one record or not at all, and
/// ends as one except for components that are ended alone (SL-P-02, SL-P-07, SL-S-26, SL-M-02, SL-M-10, SL-I-12,
/// SL-I-13) (M-SYS-6).
#[test]
fn jobs_of_several_components_keep_every_promise_under_faults() {
    let seeds = seeds(0, SEEDS_PER_PART);
    let count = seeds.end - seeds.start;
    let total = simulate(seeds, Options { components: true, ..Options::default() });
    if count >= SEEDS_PER_PART {
        assert!(total.attempts > 10 * count, "too few attempts have started: {total:?}");
        assert!(total.shared > count, "too few components shared nodes: {total:?}");
        // Few: most are cancelled before they start, or with their job.
        assert!(total.ended_alone > 0, "no component ended alone: {total:?}");
        assert!(total.requeued > count, "too little was put back into the queue: {total:?}");
        assert!(total.crashes > 5 * count, "too little was stopped: {total:?}");
    }
}

/// A scheduling program that answers late, twice, with nonsense or not at all, and starts jobs that do not exist, that run or
/// are over, breaks no promise: nothing is started twice, and every job comes to its end once the program plans well
/// (PBS-X-23, PBS-X-24).
#[test]
fn a_hostile_scheduling_program_breaks_no_promise() {
    let seeds = seeds(0, FILTER_SEEDS_PER_PART);
    let count = seeds.end - seeds.start;
    let total = simulate(seeds, Options { hostile_script: true, ..Options::default() });
    if count >= FILTER_SEEDS_PER_PART {
        assert!(total.misdeeds > 5 * count, "too little was done wrong: {total:?}");
        assert!(total.starts > 10 * count, "too few runs were started: {total:?}");
        assert!(total.crashes > 5 * count, "too little was stopped: {total:?}");
    }
}

/// Planning domains, quotas, runs that make way, fixed starts, nodes that sleep and an agent that vanishes, under faults: nothing
/// is used twice, nobody starts beyond quotas, no order of power is lost, and every job comes to its end (OAR-G-05, OAR-Q-05,
/// OAR-T-10, OAR-T-21, OAR-G-13, OAR-E-03, OAR-E-06, OAR-K-03, OAR-K-06).
#[test]
fn mechanisms_of_sites_keep_every_promise_under_faults() {
    let seeds = seeds(0, FILTER_SEEDS_PER_PART);
    let count = seeds.end - seeds.start;
    let total = simulate(seeds, Options { nodes: 4, mechanisms: true, ..Options::default() });
    if count >= FILTER_SEEDS_PER_PART {
        let Counts { inside, made_way, fixed, in_quotas, slept, awaited, vanished } = total.mechanisms;
        assert!([made_way, fixed, in_quotas].iter().all(|times| *times > count), "too little happened: {total:?}");
        let rare = [inside, slept, awaited, vanished];
        assert!(rare.iter().all(|times| *times > 0), "something never happened: {total:?}");
        assert!(total.crashes > 5 * count, "too little was stopped: {total:?}");
    }
}
