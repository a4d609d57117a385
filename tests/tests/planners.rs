//! Two planners on real processes and a real NATS server: one leads, the other one stands by.

#[allow(dead_code, reason = "each test of faults needs another part")]
mod cluster;

use cluster::{Cluster, assert_history_verifies, text};
use std::{
    fs, thread,
    time::{Duration, Instant},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does something with a process of the cluster: `kill` or `restart`.
fn control(cluster: &Cluster, what: &str, process: &str) {
    let output = cluster.control(&[what], &[process]);
    assert!(output.status.success(), "{}", text(&output));
}

/// Submits a job, and waits until it has run.
fn run_a_job(cluster: &Cluster) {
    let output = cluster.muster(&["submit", "--wait", "--", "true"]).output().expect("muster can be run");
    assert!(output.status.success(), "{}", text(&output));
}

/// How many times planners have taken the lead.
fn starts(cluster: &Cluster) -> usize {
    let output =
        cluster.muster(&["events", "--kind", "planner.started", "--json"]).output().expect("muster can be run");
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("planner.started")).count()
}

/// Waits until planners have taken the lead this many times.
fn wait_for_starts(cluster: &Cluster, count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while starts(cluster) < count {
        assert!(Instant::now() < deadline, "waited in vain until a planner has taken the lead {count} times");
        thread::sleep(Duration::from_millis(50));
    }
}

/// M-PLAN-26: jobs start although the planner that leads is gone, or stands still. One that comes back stands by.
#[test]
fn a_planner_that_is_gone_or_stands_still_is_replaced() {
    let cluster = Cluster::start_with(&[], &["1", "4"]);
    run_a_job(&cluster);
    let etc = cluster.folder.path().join("etc");
    fs::copy(etc.join("planner.toml"), etc.join("planner2.toml")).expect("copied");
    control(&cluster, "restart", "planner2");
    wait_for_starts(&cluster, 2);
    run_a_job(&cluster);

    control(&cluster, "kill", "planner2");
    run_a_job(&cluster);
    assert_eq!(starts(&cluster), 3, "the first one leads again");

    control(&cluster, "restart", "planner2");
    wait_for_starts(&cluster, 4);
    run_a_job(&cluster);
    cluster.signal("planner2", "-STOP");
    run_a_job(&cluster);
    assert_eq!(starts(&cluster), 5, "the first one did not wait for it");
    cluster.signal("planner2", "-CONT");
    for _ in 0..5 {
        run_a_job(&cluster);
    }
    assert_eq!(starts(&cluster), 5, "the one that came back stands by");
    assert_history_verifies(&cluster);
    cluster.stop();
}
