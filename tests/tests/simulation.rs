//! Some hundred seeds of the simulation with faults. `MUSTER_SIMULATION_SEED` repeats one, `MUSTER_SIMULATION_SEEDS` says
//! how many are tried; `muster-loadtest simulation` runs any number.

use muster_tests::simulation::{self, Options};

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

#[test]
fn simulation_keeps_every_promise_under_faults() {
    let seeds = match number("MUSTER_SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MUSTER_SIMULATION_SEEDS").unwrap_or(200),
    };
    let mut total = simulation::Report::default();
    for seed in seeds.clone() {
        match simulation::run(seed, Options::default()) {
            Ok(report) => {
                total.steps += report.steps;
                total.jobs += report.jobs;
                total.starts += report.starts;
                total.crashes += report.crashes;
                total.torn_writes += report.torn_writes;
            }
            Err(failure) => panic!("{failure}"),
        }
    }
    println!("{} seeds: {total:?}", seeds.end - seeds.start);
    // A simulation in which nothing happens keeps every promise.
    if seeds.end - seeds.start > 50 {
        assert!(total.starts > 1000 && total.crashes > 500 && total.torn_writes > 20, "too little happened: {total:?}");
    }
}
