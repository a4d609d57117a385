//! Some hundred seeds of the simulation of several ledgers. `MUSTER_SIMULATION_SEED` repeats one.

use muster_tests::replication::{self, BrokenPromise, Failure, Options, Report, Sabotage};
use std::ops::Range;

const SEEDS_PER_PART: u64 = 60;

fn seeds(part: u64, count: u64) -> Range<u64> {
    match std::env::var("MUSTER_SIMULATION_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => part * count..(part + 1) * count,
    }
}

fn simulate(seeds: Range<u64>, options: Options) -> Report {
    let mut total = Report::default();
    for seed in seeds.clone() {
        total.add(replication::run(seed, options).unwrap_or_else(|failure| panic!("{failure}")));
    }
    println!("seeds {seeds:?}: {total:?}");
    total
}

/// A simulation in which nothing happens keeps every rule, so enough must have happened.
fn check(part: u64) {
    let total = simulate(seeds(part, SEEDS_PER_PART), Options::default());
    if std::env::var_os("MUSTER_SIMULATION_SEED").is_some() {
        return;
    }
    assert!(total.acknowledged > 10 * SEEDS_PER_PART, "too little was acknowledged: {total:?}");
    assert!(total.reigns > 2 * SEEDS_PER_PART, "too few ledgers led: {total:?}");
    assert!(total.handed_over > SEEDS_PER_PART, "too few ledgers handed over: {total:?}");
    assert!(total.crashes > SEEDS_PER_PART && total.pauses > SEEDS_PER_PART, "too little stopped: {total:?}");
    assert!(total.elections > SEEDS_PER_PART / 4, "too few elections: {total:?}");
    assert!(
        total.unknown > SEEDS_PER_PART && total.reads > SEEDS_PER_PART,
        "too little was unknown or read: {total:?}"
    );
    assert!(total.restored > 0 && total.pages > 0, "nothing was made up from other ledgers: {total:?}");
    assert_eq!(total.alarms, 0);
}

/// Several ledgers keep one history under faults: nothing acknowledged is lost or contradicted, whoever
/// leads (M-SYS-8).
#[test]
fn several_ledgers_keep_one_history() {
    check(0);
}

#[test]
fn several_ledgers_keep_one_history_second_part() {
    check(1);
}

#[test]
fn several_ledgers_keep_one_history_third_part() {
    check(2);
}

#[test]
fn several_ledgers_keep_one_history_fourth_part() {
    check(3);
}

/// A stream that loses acknowledged records stops the ledgers with an alarm; none of them goes on as if nothing were
/// (M-SYS-8).
#[test]
fn a_stream_that_breaks_its_promises_stops_the_ledgers() {
    for broken in [BrokenPromise::LosesItsEnd, BrokenPromise::IsEmptied, BrokenPromise::GoesAnotherWay] {
        let options = Options { broken: Some(broken), ..Options::default() };
        let total = simulate(seeds(0, 20), options);
        assert!(total.alarms > 0, "{broken:?} is never noticed: {total:?}");
    }
}

/// The checks notice when a rule is not kept (M-SYS-8).
#[test]
fn broken_rules_are_noticed() {
    let all = [Sabotage::NoFence, Sabotage::AnswersEarly, Sabotage::ReadsInsteadOfRetries, Sabotage::LateClock];
    for sabotage in all {
        let options = Options { sabotage: Some(sabotage), ..Options::default() };
        let found: Option<Failure> = (0..40).find_map(|seed| replication::run(seed, options).err());
        let failure = found.unwrap_or_else(|| panic!("nobody notices {sabotage:?}"));
        println!("{sabotage:?}: {failure}");
    }
}
