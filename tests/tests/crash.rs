//! Every role is killed with SIGKILL at random moments under load, on real processes and a real NATS server. Every
//! acknowledged job runs once, and what the jobs themselves wrote agrees with the log.
//!
//! `MUSTER_CRASH_ROUNDS` is the number of kills, `MUSTER_CRASH_SEED` repeats the choices of a run (the moments depend
//! on the machine).

#[allow(dead_code, reason = "each test of faults needs another part")]
mod cluster;

use cluster::{Cluster, assert_history_verifies, marks, number, text, wait_until_all_finished};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::{
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Submits until told to stop; returns the acknowledged jobs.
fn submit_until(cluster: &Cluster, stop: &AtomicBool) -> Vec<String> {
    let script = format!("echo $MUSTER_JOB_ID $MUSTER_RUN_ID >>{}; sleep 0.05", cluster.markers().display());
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let words = ["submit", "--parsable", "-o", "/dev/null", "--", "sh", "-c", &script];
        // The connection's options come before the words of the command.
        let mut command = Command::new(&cluster.muster);
        command.arg("--data").arg(cluster.folder.path().join("data")).args(words).stdin(Stdio::null());
        let output = command.current_dir(cluster.folder.path()).output().expect("muster can be run");
        match output.status.code() {
            Some(0) => acknowledged.push(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            // Not reachable, or its answer was lost with the gateway: the next attempt comes soon enough.
            Some(5) => {}
            _ => panic!("submitting failed: {}", text(&output)),
        }
    }
    acknowledged
}

/// Kills a role, waits a moment, and starts it again.
fn kill_something(cluster: &Cluster, random: &mut SmallRng) {
    let roles = ["ledger", "planner", "gateway", "notifier", "accounting", "node1", "node2", "node3", "node4", "nats"];
    let role = roles[random.random_range(0..roles.len())];
    println!("killing {role}");
    thread::sleep(Duration::from_millis(random.random_range(0..400)));
    let killed = cluster.control(&["kill"], &[role]);
    assert!(killed.status.success(), "{role} was not there to be killed: {}", text(&killed));
    thread::sleep(Duration::from_millis(random.random_range(0..300)));
    let restarted = cluster.control(&["restart"], &[role]);
    assert!(restarted.status.success(), "{role} does not start again: {}", text(&restarted));
}

/// Whatever is killed, every acknowledged job runs once (M-SYS-3).
#[test]
fn every_acknowledged_job_runs_once_whatever_is_killed() {
    let rounds = number("MUSTER_CRASH_ROUNDS").unwrap_or(20);
    let seed = number("MUSTER_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("repeat the choices with MUSTER_CRASH_SEED={seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let cluster = Arc::new(Cluster::start());
    let stop = Arc::new(AtomicBool::new(false));
    let load = {
        let (cluster, stop) = (Arc::clone(&cluster), Arc::clone(&stop));
        thread::spawn(move || submit_until(&cluster, &stop))
    };
    for _ in 0..rounds {
        kill_something(&cluster, &mut random);
    }
    stop.store(true, Ordering::Relaxed);
    let acknowledged = load.join().expect("the submitting thread");
    let finished = wait_until_all_finished(&cluster);

    let marks = marks(&cluster);
    println!("{} jobs acknowledged, {} in the log, {} ran", acknowledged.len(), finished.len(), marks.len());
    assert!(acknowledged.len() as u64 > rounds, "too little load to tell anything");
    for job in &acknowledged {
        assert_eq!(marks.get(job), Some(&1), "job {job} was acknowledged; how often it ran: see the left side");
        let (_, outcome) = &finished[job];
        assert_eq!(outcome.as_deref(), Some("completed"), "job {job}");
    }
    for (job, times) in &marks {
        assert_eq!(*times, 1, "job {job} ran {times} times");
        assert!(finished.contains_key(job), "job {job} ran and the log does not know it");
    }
    assert_history_verifies(&cluster);
}
