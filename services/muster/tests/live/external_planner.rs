//! An external planner in a live system.

use crate::system::System;

/// A system whose planner is this program.
fn system_with(command: &str, settings: &str) -> System {
    let mut system = System::stopped();
    let node = "[[nodes]]\nname = \"n[1-2]\"\ncores = 2\nmemory = \"1G\"\n";
    system.write("muster.toml", &format!("{node}[planner]\ncommand = [\"python3\", \"{command}\"]\n{settings}"));
    system.restart(&["--config", "muster.toml"]);
    system
}

/// Any program can be the planner (M-PLAN-18).
#[test]
fn the_example_of_an_external_planner_runs_jobs() {
    let system = system_with(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/examples/external_planner.py"), "");
    let blocker = system.submit(&["-n", "4", "--", "sleep", "600"]);
    system.wait_for_state(&blocker, "running");
    let long = system.submit(&["-n", "4", "--time", "2h", "--", "true"]);
    let short = system.submit(&["-n", "4", "--time", "1m", "--", "sh", "-c", "echo $MUSTER_NODELIST"]);
    system.wait_until("the reason is told", || system.ok(&["jobs"]).contains("no room on the nodes for it now"));
    system.ok(&["job", "cancel", &blocker]);
    system.ok(&["job", "wait", &long, &short]);
    let started = |job: &str| system.json(&["job", "show", job, "--json"])["job"]["started"].to_string();
    assert!(started(&short) < started(&long), "the shorter job is first");
    assert_eq!(system.read(&format!("muster-{short}.out")), "n1,n2\n".repeat(4), "each of the four tasks");
    let told = system.ok(&["replay", "--verify"]);
    assert!(
        told.contains("0 decisions of the planner made again") && told.contains("of an external planner"),
        "{told}"
    );
}

/// A planner that crashes harms nothing, and the reason is shown (M-PLAN-19).
#[test]
fn a_planner_that_crashes_is_told_to_those_who_wait_and_by_the_doctor() {
    let system = system_with("no-planner.py", "");
    let job = system.submit(&["--", "true"]);
    // Python's name in its message depends on how it was installed.
    let is_told = |text: &str| {
        text.contains("external planner: exited with status 2: ") && text.contains("python3: can't open file")
    };
    system.wait_until("the reason is told", || is_told(&system.ok(&["jobs"])));
    let doctor = system.run(&["doctor", "--config", "muster.toml"]);
    assert!(is_told(&doctor.stdout), "{}", doctor.stdout);
    assert_eq!(system.state(&job), "queued");
    // A working program is found without a restart.
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/examples/external_planner.py");
    system.write("no-planner.py", &std::fs::read_to_string(example).expect("the example"));
    system.ok(&["job", "wait", &job]);
}
