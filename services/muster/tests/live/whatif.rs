//! What-if over the log of a live system.

use crate::system::System;
use serde_json::Value;

/// A system in which job 2 waited for job 1, and job 3 for both, first come first served.
fn a_short_history() -> System {
    let system = System::start(2);
    system.ok(&["config", "apply", "--policy", "fcfs"]);
    let until_told = "while [ ! -e go ]; do sleep 0.05; done";
    system.submit(&["-n", "6", "-t", "60", "--", "sh", "-c", until_told]);
    system.submit(&["-n", "8", "-t", "60", "--", "sleep", "0.1"]);
    system.submit(&["-n", "1", "-t", "1", "--", "sleep", "0.1"]);
    let cancelled = system.submit(&["-n", "8", "--", "true"]);
    system.wait_for_state("1", "running");
    system.ok(&["job", "cancel", &cancelled]);
    system.write("go", "");
    system.ok(&["job", "wait", "1", "2", "3"]);
    system
}

fn jobs_of(list: &Value) -> Vec<&str> {
    let jobs = list.as_array().expect("a list");
    jobs.iter().map(|job| job["job"].as_str().expect("an id")).collect()
}

/// What-if replays a live history under another policy (M-PLAN-17).
#[test]
fn a_live_history_is_replayed_under_another_policy() {
    let system = a_short_history();
    let in_force = system.json(&["whatif", "--policy", "in-force", "--json"]);
    assert_eq!(in_force["jobs"], 3, "{in_force}");
    assert_eq!((&in_force["started_only_before"], &in_force["started_only_after"]), (&0.into(), &0.into()));
    assert_eq!(in_force["notes"]["started_before_cancelled"], 0);
    // The live planner plans after the event, the replay at the same moment.
    assert_eq!(in_force["later"], 0, "{in_force}");

    // Job 3 would end before job 1 could, so it would have gone ahead of job 2.
    let easy = system.json(&["whatif", "--policy", "easy", "--json", "--tolerance", "0", "--svg", "chart.svg"]);
    assert!(jobs_of(&easy["gained"]).contains(&"3"), "{easy}");
    let figures = &easy["users"][0];
    assert_eq!((&figures["before"]["jobs"], &figures["after"]["jobs"]), (&3.into(), &3.into()));
    assert!(figures["after"]["mean_wait"].as_f64() < figures["before"]["mean_wait"].as_f64(), "{easy}");
    assert!(system.read("chart.svg").contains("What if: policy easy"));

    let text = system.ok(&["whatif", "--policy", "easy", "--tolerance", "0"]);
    assert!(text.contains("policy easy: of 3 jobs") && text.contains("jobs that gain most"), "{text}");
    system.write("mine.toml", "version = 1\n[backfill]\nmode = \"conservative\"\n");
    assert!(system.ok(&["whatif", "--policy", "mine.toml"]).starts_with("policy mine: of 3 jobs"));
    let none = system.json(&["whatif", "--policy", "easy", "--json", "--to", "2 hours ago"]);
    assert_eq!(none["jobs"], 0);
    assert_eq!(system.run(&["whatif", "--policy", "esay"]).status, 4);
    assert_eq!(system.run(&["whatif", "--policy", "easy", "--tolerance", "-1"]).status, 2);
}

#[test]
fn without_a_log_there_is_an_error() {
    let system = System::stopped();
    let output = system.run(&["whatif", "--policy", "easy"]);
    assert_eq!((output.status, &*output.stdout), (1, ""));
    assert!(output.stderr.starts_with("muster: "), "{}", output.stderr);
}
