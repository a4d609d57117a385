//! Traces in memory, and simulations of them.

use muster_planner::simulate::{Machine, Simulation, Workload, simulate};
use muster_schemas::policy::Policy;
use muster_swf::{Headers, Trace, TraceJob};
use std::sync::Arc;

pub fn built_in(name: &str) -> Policy {
    Policy::built_in(name).unwrap_or_else(|| panic!("{name} is built in"))
}

/// The whole trace on a pool of the size that it names.
pub fn run_trace(trace: &Trace, policy: &Policy) -> Simulation {
    run(&trace.jobs, &trace.headers, trace.machine_procs as u32, policy)
}

/// Jobs on a pool.
pub fn run(jobs: &[TraceJob], headers: &Headers, procs: u32, policy: &Policy) -> Simulation {
    let machine = Machine::Pool { procs };
    let workload = Workload::new(jobs, headers, &machine, policy);
    simulate(&machine, &workload, &Arc::new(policy.clone()), &mut |_| {}).expect("it can be simulated")
}

/// The start times of the jobs; all of them start.
pub fn starts(simulation: &Simulation) -> Vec<i64> {
    simulation.jobs.iter().map(|job| job.start_seconds.expect("every job starts")).collect()
}

pub fn csv(simulation: &Simulation) -> String {
    let mut bytes = Vec::new();
    simulation.write_csv(&mut bytes).expect("memory takes everything");
    String::from_utf8(bytes).expect("the rows are text")
}

/// A job without user and program.
pub fn job(id: i64, submit_seconds: i64, runtime_seconds: i64, estimate_seconds: i64, procs: u64) -> TraceJob {
    TraceJob {
        id,
        submit_seconds,
        runtime_seconds,
        estimate_seconds,
        procs,
        user: -1,
        group: -1,
        application: -1,
        queue: -1,
        partition: -1,
    }
}
