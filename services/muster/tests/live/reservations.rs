//! Reservations and closures on a live system, through the commands that people type.

use crate::system::System;

/// Waits until the reason for which a job waits has one of these codes.
fn await_reason(system: &System, job: &str, wanted: &[&str]) {
    system.wait_until(&format!("job {job} waits for one of {wanted:?}"), || {
        let shown = system.json(&["job", "show", "--json", job]);
        shown["job"]["reason"]["code"].as_str().is_some_and(|code| wanted.contains(&code))
    });
}

/// A reservation keeps its nodes for its jobs (M-PLAN-20).
#[test]
fn a_reservation_keeps_its_nodes_for_its_jobs() {
    let mut system = System::stopped();
    system.restart(&["--nodes", "2", "--cpus", "4", "--memory", "4G", "--policy", "easy"]);
    // Longer than the time until the start: on node1 it would run into the reservation.
    system.ok(&["reserve", "course", "--start", "+5s", "--duration", "1h", "--nodes", "node1"]);
    let listed = system.ok(&["reservations"]);
    assert!(listed.contains("course") && listed.contains("planned") && listed.contains("node1"), "{listed}");
    let other = system.submit(&["-t", "10m", "-w", "node1", "--", "true"]);
    let inside = system.submit(&["-t", "1m", "--reservation", "course", "--", "true"]);
    await_reason(&system, &inside, &["reservation_not_begun"]);
    await_reason(&system, &other, &["reserved", "resources", "nodes_unavailable", "would_delay"]);
    system.ok(&["job", "wait", &inside]);
    let ran = system.json(&["job", "show", "--json", &inside]);
    assert_eq!(ran["job"]["nodes"][0], "node1");
    assert!(system.ok(&["reservations"]).contains("active"));
    assert_eq!(system.state(&other), "queued", "the node is kept although it is free");
    assert!(system.ok(&["nodes"]).contains("course"));
    system.ok(&["unreserve", "course"]);
    system.ok(&["job", "wait", &other]);
    let late = system.run(&["submit", "--reservation", "course", "--", "true"]);
    assert_eq!((late.status, late.stderr.contains("`course` does not exist")), (4, true), "{}", late.stderr);
}

/// The planner chooses the nodes of a reservation by count (M-PLAN-21).
#[test]
fn the_planner_chooses_the_nodes_of_a_reservation_by_count() {
    let system = System::start(2);
    system.ok(&["reserve", "pair", "--start", "now", "--duration", "1h", "--count", "2"]);
    let inside = system.submit(&["-t", "1m", "--reservation", "pair", "-N", "2", "--", "true"]);
    system.ok(&["job", "wait", &inside]);
    let page = system.json(&["reservations", "--json"]);
    assert_eq!(page["reservations"][0]["nodes"].as_array().map(Vec::len), Some(2));
    let refused = system.run(&["reserve", "more", "--start", "now", "--duration", "1h", "--nodes", "node2"]);
    assert!(refused.status == 1 && refused.stderr.contains("belongs to reservation `pair`"), "{}", refused.stderr);
}

/// A closed node runs nothing until it is opened (M-PLAN-22).
#[test]
fn a_closed_node_runs_nothing_until_it_is_opened() {
    let system = System::start(1);
    system.ok(&["node", "close", "node1", "--from", "now", "--reason", "fan"]);
    let shown = system.ok(&["node", "show", "node1"]);
    assert!(shown.contains("further notice (fan)"), "{shown}");
    let job = system.submit(&["--", "true"]);
    await_reason(&system, &job, &["reserved", "resources", "nodes_unavailable"]);
    system.ok(&["node", "open", "node1"]);
    system.ok(&["job", "wait", &job]);
}

/// D16: times are in the reader's zone, in columns and in sentences.
#[test]
fn sentences_of_events_have_local_times() {
    let system = System::start(1);
    system.ok(&["reserve", "--start", "2099-01-02 22:00", "--duration", "1h", "--nodes", "node1", "course"]);
    let told = |command: &str| system.shell(&format!("TZ=Asia/Tokyo muster {command}")).stdout;
    let sentence = "from 2099-01-03 07:00:00 JST to 2099-01-03 08:00:00 JST";
    let events = told("events --kind reservation");
    assert!(events.contains(sentence), "{events}");
    let job = system.submit(&["--begin", "2099-01-02 22:00", "--", "true"]);
    system.ok(&["job", "hold", &job]);
    for events in [told("events"), told(&format!("job events {job}"))] {
        let is_utc = |word: &str| word.ends_with('Z') && word.contains('T') && word.contains(':');
        assert!(!events.split_whitespace().any(is_utc), "{events}");
    }
}
