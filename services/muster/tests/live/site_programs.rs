//! Programs of the site on nodes: prolog, epilog and the check of a node's health.

use crate::system::System;
use std::{fs, os::unix::fs::PermissionsExt as _};

/// A stopped system whose folder is open to the account of the programs.
fn stopped() -> System {
    let system = System::stopped();
    fs::set_permissions(system.path(""), fs::Permissions::from_mode(0o777)).expect("its own folder");
    system
}

/// Writes a program; its lines can name the folder of the system as `$F`.
fn program(system: &System, name: &str, lines: &str) -> String {
    system.write(name, &format!("#!/bin/sh\nF={}\n{lines}\n", system.path("").display()));
    fs::set_permissions(system.path(name), fs::Permissions::from_mode(0o755)).expect("its own file");
    system.path(name).display().to_string()
}

/// Starts it with these lines in the section of executors.
fn start(system: &mut System, nodes: &str, executor: &str) {
    system.write("site.toml", &format!("[executor]\n{executor}\n"));
    let config = system.path("site.toml").display().to_string();
    system.restart(&["--nodes", nodes, "--cpus", "2", "--memory", "1G", "--config", &config]);
}

fn drained(system: &System, node: &str) -> String {
    let shown = system.json(&["node", "show", node, "--json"]);
    shown["reason"].as_str().or(shown["node"]["reason"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_prolog_runs_before_the_first_process_of_a_job_and_an_epilog_after_the_last() {
    let mut system = stopped();
    let line = "echo \"$(basename $0) $MUSTER_JOB_ID $MUSTER_JOB_OWNER $(id -u)\" >> $F/log";
    let (prolog, epilog) = (program(&system, "prolog", line), program(&system, "epilog", line));
    system.write("log", "");
    fs::set_permissions(system.path("log"), fs::Permissions::from_mode(0o666)).expect("its own file");
    start(&mut system, "1", &format!("prolog = \"{prolog}\"\nepilog = \"{epilog}\""));
    let job = system.submit(&["-n", "2", "-o", "out", "--", "sh", "-c", "cat log; echo task >> log"]);
    system.wait_for_state(&job, "finished");
    let root = nix::unistd::Uid::effective();
    let (user, account) = match root.is_root() {
        true => ("root".to_owned(), 65_534),
        false => (nix::unistd::User::from_uid(root).unwrap().unwrap().name, root.as_raw()),
    };
    let of = |name: &str| format!("{name} {job} {user} {account}");
    let log = system.read("log");
    assert_eq!(log.lines().collect::<Vec<_>>(), [&of("prolog"), "task", "task", &of("epilog")]);
    assert!(system.read("out").starts_with(&of("prolog")));
    // A step is not the beginning of a job.
    let job = system.submit(&["--", "sleep", "600"]);
    system.wait_for_state(&job, "running");
    system.ok(&["step", "run", "--overlap", "-n", "1", &job, "--", "true"]);
    system.ok(&["cancel", &job]);
    system.wait_for_state(&job, "finished");
    let log = system.read("log");
    let of_second: Vec<&str> = log.lines().skip(4).collect();
    assert_eq!(of_second, [format!("prolog {job} {user} {account}"), format!("epilog {job} {user} {account}")]);
}

#[test]
fn a_prolog_that_fails_drains_its_node_and_the_job_goes_elsewhere() {
    let mut system = stopped();
    let prolog =
        program(&system, "prolog", "test $MUSTER_NODE_NAME != node1 || { echo no scratch; echo more; exit 3; }");
    start(&mut system, "2", &format!("prolog = \"{prolog}\""));
    let job = system.submit(&["--requeue", "-o", "out", "--", "sh", "-c", "echo on $MUSTER_NODE_NAME"]);
    system.wait_for_state(&job, "finished");
    assert_eq!(system.read("out"), "on node2\n");
    let why = drained(&system, "node1");
    assert!(why.ends_with("failed (exit status: 3): no scratch"), "{why}");
    let detail = system.json(&["job", "show", &job, "--json"]);
    assert_eq!(
        detail["runs"].as_array().map(Vec::len),
        Some(2),
        "one run failed, and the node got no second: {detail}"
    );
    assert_eq!(drained(&system, "node2"), "");
    // A job that may not be requeued ends, and says why.
    system.ok(&["node", "resume", "node1"]);
    let job = system.submit(&["-w", "node1", "--", "true"]);
    system.wait_for_state(&job, "finished");
    let outcome = system.json(&["job", "show", &job, "--json"])["job"]["outcome"].clone();
    assert_eq!(outcome["outcome"], "node_lost");
    assert!(outcome["detail"].as_str().is_some_and(|detail| detail.contains("no scratch")), "{outcome}");
}

/// A node that cannot write down what it starts would end job after job.
#[test]
fn a_node_without_its_spool_is_drained_and_the_job_goes_elsewhere() {
    let mut system = stopped();
    start(&mut system, "2", "");
    fs::remove_dir_all(system.path("data/spool/node1")).expect("the node has made it");
    let job = system.submit(&["--requeue", "-o", "out", "--", "sh", "-c", "echo on $MUSTER_NODE_NAME"]);
    system.wait_for_state(&job, "finished");
    assert_eq!(system.read("out"), "on node2\n");
    let why = drained(&system, "node1");
    assert!(why.starts_with("the node's spool: the order cannot be written: "), "{why}");
}

#[test]
fn an_epilog_that_fails_drains_its_node() {
    let mut system = stopped();
    let epilog = program(&system, "epilog", "echo 'scratch is full' >&2; exit 1");
    start(&mut system, "1", &format!("epilog = \"{epilog}\""));
    let job = system.submit(&["--", "true"]);
    system.wait_for_state(&job, "finished");
    assert_eq!(system.json(&["job", "show", &job, "--json"])["job"]["outcome"]["outcome"], "completed");
    let why = drained(&system, "node1");
    assert!(why.starts_with("epilog ") && why.ends_with(": scratch is full"), "the node is drained first: {why}");
}

#[test]
fn a_node_that_is_not_healthy_is_drained() {
    let mut system = stopped();
    let check =
        program(&system, "check", "test ! -e $F/sick.$MUSTER_NODE_NAME || { cat $F/sick.$MUSTER_NODE_NAME; exit 1; }");
    start(&mut system, "2", &format!("health_check_program = \"{check}\"\nhealth_check_interval_seconds = 1"));
    system.write("sick.node2", "fan 3 has stopped\nand more\n");
    system.wait_until("the node is drained", || drained(&system, "node2").ends_with("fan 3 has stopped"));
    assert_eq!(drained(&system, "node1"), "");
    let job = system.submit(&["-n", "1", "-o", "out", "--", "sh", "-c", "echo on $MUSTER_NODE_NAME"]);
    system.wait_for_state(&job, "finished");
    assert_eq!(system.read("out"), "on node1\n");
}
