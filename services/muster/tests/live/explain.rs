//! Explanations, the plan and the replay of decisions, in a live system.

use crate::system::System;
use serde_json::Value;

/// Two nodes of four CPUs under a policy.
fn system_under(policy: &str) -> System {
    let mut system = System::stopped();
    system.restart(&["--nodes", "2", "--cpus", "4", "--memory", "4G", "--policy", policy]);
    system
}

fn explained(system: &System, job: &str) -> Value {
    system.json(&["explain", "--json", job])
}

fn reason(system: &System, job: &str) -> String {
    explained(system, job)["waiting"]["reason"]["code"].as_str().unwrap_or_default().to_owned()
}

/// A system in which each of these waits, in this order: for room for its walltime, behind that one, and
/// on its own gates.
struct Busy {
    system: System,
    runs: String,
    reserved: String,
    delaying: String,
    held: String,
    dependent: String,
    later: String,
}

fn busy() -> Busy {
    let system = system_under("easy");
    let runs = system.submit(&["-n", "6", "--time", "10:00", "--", "sleep", "600"]);
    system.wait_for_state(&runs, "running");
    let reserved = system.submit(&["-n", "8", "--time", "10:00", "--", "true"]);
    let delaying = system.submit(&["-n", "1", "--time", "1:00:00", "--", "sleep", "600"]);
    let held = system.submit(&["--hold", "--", "true"]);
    let dependent = system.submit(&["--after", &format!("ended:{reserved}"), "--", "true"]);
    let later = system.submit(&["--begin", "now+2h", "--", "true"]);
    system.wait_until("the plan is made", || reason(&system, &reserved) == "reserved");
    Busy { system, runs, reserved, delaying, held, dependent, later }
}

/// The cause of each wait is named in a live system (M-PLAN-14).
#[test]
fn what_holds_each_job_is_named() {
    let Busy { system, runs, reserved, delaying, held, dependent, later } = busy();
    for (job, code) in [
        (&reserved, "reserved"),
        (&delaying, "would_delay"),
        (&held, "held"),
        (&dependent, "dependency"),
        (&later, "begin_time"),
    ] {
        assert_eq!(reason(&system, job), code, "{}", explained(&system, job));
    }
    let text = system.ok(&["explain", &delaying]);
    for part in [
        &format!("Job {delaying} waits\n") as &str,
        &format!("job {reserved}: reserved from "),
        "Without others   it would start now",
        &format!("instead of 1 h: muster job modify --time 9:00 {delaying}\n"),
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    let text = system.ok(&["explain", &runs]);
    assert!(text.starts_with(&format!("Job {runs} is running\n")) && text.contains("was submitted by"), "{text}");
    assert_eq!(system.run(&["explain", "999"]).status, 4);
}

/// A limit, a gate or a shortage is named with a remedy, and the suggested change starts the job (M-PLAN-13).
#[test]
fn a_suggested_change_starts_the_job_and_the_past_still_tells_why_it_waited() {
    let Busy { system, delaying, reserved, .. } = busy();
    let explanation = explained(&system, &delaying);
    let sequence = explanation["sequence"].to_string();
    let change = &explanation["waiting"]["changes"][0];
    assert_eq!((&change["kind"], &change["change"]["walltime_seconds"]), (&"walltime".into(), &540.into()), "{change}");
    system.ok(&["job", "modify", "--time", "9:00", &delaying]);
    system.wait_for_state(&delaying, "running");
    let start = &explained(&system, &delaying)["start"];
    assert!(start["because"].to_string().contains("was changed"), "{start}");
    assert!(start["reasons"].as_array().is_some_and(|reasons| !reasons.is_empty()), "{start}");
    let past = system.json(&["explain", "--json", "--at-seq", &sequence, &delaying]);
    assert_eq!(past["waiting"]["reason"]["code"], "would_delay");
    assert_eq!(past["waiting"]["reason"]["job"].to_string().trim_matches('"'), reserved);
}

#[test]
fn the_plan_is_a_table_json_and_a_chart() {
    let Busy { system, runs, reserved, .. } = busy();
    let plan = system.json(&["plan", "--json"]);
    assert_eq!(plan["policy"], "easy");
    assert_eq!(plan["running"][0]["job"].to_string().trim_matches('"'), runs);
    assert_eq!(plan["waiting"][0]["job"].to_string().trim_matches('"'), reserved);
    assert_eq!(plan["waiting"][0]["promised_start"], plan["running"][0]["expected_end"]);
    let table = system.ok(&["plan"]);
    assert!(table.contains("under policy easy") && table.contains("Waiting, in order"), "{table}");
    assert_eq!(system.json(&["plan", "--json", "--limit", "1"])["more_waiting"], 1);
    system.ok(&["plan", "--svg", "plan.svg"]);
    let svg = system.read("plan.svg");
    assert!(svg.starts_with("<svg ") && svg.contains("class=\"run\"") && svg.contains("class=\"slot\""), "{svg}");
    assert_eq!(system.run(&["plan", "--queue", "nosuch"]).status, 4);
}

/// Repeating decisions from the log gives the same decisions (M-PLAN-15).
#[test]
fn a_busy_history_verifies_and_tells_how_good_its_promises_were() {
    let system = system_under("conservative");
    let first = system.submit(&["-n", "8", "--time", "10:00", "--", "sleep", "600"]);
    system.wait_for_state(&first, "running");
    let waiting: Vec<String> = ["8", "3", "5", "1", "8"]
        .iter()
        .map(|tasks| system.submit(&["-n", tasks, "--time", "2:00", "--", "true"]))
        .collect();
    system.submit(&["--array", "1-6", "-n", "2", "--time", "1:00", "--", "true"]);
    system.wait_until("all are promised a start", || waiting.iter().all(|job| reason(&system, job) == "reserved"));
    system.ok(&["job", "cancel", &first]);
    for job in &waiting {
        system.ok(&["job", "wait", job]);
    }
    let verified = system.json(&["replay", "--verify", "--json"]);
    let decisions = &verified["decisions"];
    assert_eq!(decisions["differing"], 0, "{decisions}");
    assert!(decisions["equal"].as_u64().is_some_and(|equal| equal > 5), "{decisions}");
    let again = system.json(&["replay", "--verify", "--json", "--at-seq", &decisions["last"].to_string()]);
    assert_eq!(again["decisions"]["digest"], decisions["digest"]);
    let against = system.ok(&["replay", "--against", "fcfs"]);
    assert!(against.contains("decisions of the planner made again"), "{against}");
    let accuracy = system.json(&["plan", "--accuracy", "--since", "1h", "--json"]);
    assert!(accuracy["first"]["count"].as_u64().is_some_and(|count| count >= 5), "{accuracy}");
    assert_eq!(accuracy["first"]["kept_share"], 1.0, "{accuracy}");
    assert!(system.ok(&["plan", "--accuracy"]).contains("NO LATER"));
}
