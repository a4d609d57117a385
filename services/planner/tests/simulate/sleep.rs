//! Nodes that sleep in a simulation.

use super::common::{built_in, job, starts};
use muster_planner::{
    energy::SleepPolicy,
    simulate::{Machine, Simulation, Workload, simulate_with_sleep},
};
use muster_schemas::{
    cluster::{ClusterConfig, QueueSpec},
    energy::NodeWatts,
    resources::NodeSpec,
};
use muster_swf::{Headers, TraceJob};
use proptest::prelude::*;
use std::sync::Arc;

/// A cluster of this many nodes with one core each.
fn machine(nodes: u32) -> Machine {
    let node = |number| NodeSpec {
        name: format!("n{number}"),
        cores: 1,
        sockets: 1,
        memory_bytes: 1 << 30,
        gpus: Vec::new(),
        properties: Default::default(),
    };
    let queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    let nodes = (0..nodes).map(node).collect();
    Machine::Cluster(Box::new(ClusterConfig { nodes, queues, ..ClusterConfig::default() }))
}

fn run(jobs: &[TraceJob], nodes: u32, sleep: Option<SleepPolicy>) -> Simulation {
    let (machine, policy) = (machine(nodes), Arc::new(built_in("easy")));
    let workload = Workload::new(jobs, &Headers::default(), &machine, &policy);
    simulate_with_sleep(&machine, &workload, &policy, sleep, &mut |_| {}).expect("it can be simulated")
}

fn after(idle_seconds: u32, wake_up_seconds: u32) -> Option<SleepPolicy> {
    let watts = NodeWatts { busy: 300, idle: 100, asleep: 10, waking: 150 };
    Some(SleepPolicy { idle_seconds: Some(idle_seconds), wake_up_seconds, watts })
}

/// OAR-E-03, OAR-E-04: a job begins when the last of its nodes is awake; energy counts each second of each node once.
#[test]
fn jobs_wait_for_nodes_that_sleep_and_energy_is_counted() {
    let jobs = [job(1, 0, 50, 50, 1), job(2, 1_000, 100, 100, 1), job(3, 1_010, 10, 10, 2)];
    let simulation = run(&jobs, 2, after(100, 60));
    // The second job wakes a node; the third has that one awake and wakes the other.
    assert_eq!(starts(&simulation), [0, 1_060, 1_220]);
    let energy = simulation.energy.expect("nodes sleep");
    let sleeping = energy.sleeping;
    assert_eq!((sleeping.busy_seconds, sleeping.idle_seconds), (50 + 170 + 10, 2 * 100));
    assert_eq!((sleeping.waking_seconds, sleeping.asleep_seconds, sleeping.wakes), (4 * 60, 790 + 1_000, 2));
    assert_eq!(sleeping.joules, 230 * 300 + 200 * 100 + 1_790 * 10 + 240 * 150);
    assert_eq!((energy.always_awake.busy_seconds, energy.always_awake.idle_seconds), (230, 2_230));
    assert!(sleeping.kilowatt_hours() < energy.always_awake.kilowatt_hours());
}

/// A node that is being woken for one job is not awake for the next one either.
#[test]
fn a_node_that_wakes_keeps_every_job_waiting() {
    let machine = |cores| {
        let Machine::Cluster(mut config) = machine(1) else { panic!("it has nodes") };
        config.nodes[0].cores = cores;
        Machine::Cluster(config)
    };
    let (machine, policy) = (machine(2), Arc::new(built_in("easy")));
    let jobs = [job(1, 0, 10, 10, 1), job(2, 500, 10, 10, 1), job(3, 520, 10, 10, 1)];
    let workload = Workload::new(&jobs, &Headers::default(), &machine, &policy);
    let simulation = simulate_with_sleep(&machine, &workload, &policy, after(100, 60), &mut |_| {}).expect("it can");
    assert_eq!(starts(&simulation), [0, 560, 560]);
}

#[test]
fn a_simulation_without_sleep_tells_no_energy() {
    let jobs = [job(1, 0, 50, 50, 1)];
    let simulation = run(&jobs, 1, None);
    assert_eq!((simulation.energy, starts(&simulation)), (None, vec![0]));
}

proptest! {
    /// Every second of every node counts once, and the same input gives the same result.
    #[test]
    fn each_second_of_a_node_counts_once(
        jobs in prop::collection::vec((0_i64..2_000, 1_i64..200, 1_u64..4), 1..30),
        (idle_seconds, wake_up_seconds) in (0_u32..300, 0_u32..100),
    ) {
        let mut jobs: Vec<TraceJob> =
            (1..).zip(jobs).map(|(id, (submit, runs, procs))| job(id, submit, runs, runs, procs)).collect();
        jobs.sort_by_key(|job| job.submit_seconds);
        let simulation = run(&jobs, 4, after(idle_seconds, wake_up_seconds));
        prop_assert_eq!(&simulation, &run(&jobs, 4, after(idle_seconds, wake_up_seconds)));
        let (first, last) = simulation.span().expect("every job ends");
        let energy = simulation.energy.expect("nodes sleep");
        for one in [energy.sleeping, energy.always_awake] {
            let sum = one.busy_seconds + one.idle_seconds + one.asleep_seconds + one.waking_seconds;
            prop_assert_eq!(i64::try_from(sum).unwrap(), 4 * (last - first));
        }
    }
}
