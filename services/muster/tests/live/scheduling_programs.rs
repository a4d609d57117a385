//! Scheduling programs of PBS sites that plan for a live system.

use crate::system::System;

const BODY: &str = r#"
incr cycle
foreach job [lreverse [pbsselstat]] {
    set id [lindex $job 0]
    set result [pbsrunjob $id n2]
    puts "cycle $cycle: $id -> $result, errno $pbs_errno"
}
"#;

/// A Tcl program starts real jobs, the latest first, on the node that it names (PBS-X-14, PBS-X-19, PBS-C-02).
#[test]
fn a_tcl_program_starts_real_jobs() {
    if !["/usr/bin/tclsh", "/usr/local/bin/tclsh"].iter().any(|path| std::path::Path::new(path).exists()) {
        return muster_surroundings::skipped("tclsh is not installed");
    }
    let mut system = System::stopped();
    system.write("body.tcl", BODY);
    let settings = "[planner]\nscheduler_policy = \"tcl:body.tcl\"\nscheduler_folder = \".\"\n";
    let nodes = "[[nodes]]\nname = \"n[1-2]\"\ncores = 2\nmemory = \"1G\"\n";
    system.write("muster.toml", &format!("{nodes}{settings}"));
    system.restart(&["--config", "muster.toml"]);
    let blocker = system.submit(&["-n", "2", "--", "sleep", "600"]);
    system.wait_for_state(&blocker, "running");
    let script = ["-n", "2", "--", "sh", "-c", "echo $MUSTER_NODELIST"];
    let (first, second) = (system.submit(&script), system.submit(&script));
    system
        .wait_until("the reason is told", || system.ok(&["jobs"]).contains("the scheduling program did not start it"));
    system.ok(&["job", "cancel", &blocker]);
    system.ok(&["job", "wait", &first, &second]);
    let started = |job: &str| system.json(&["job", "show", job, "--json"])["job"]["started"].to_string();
    assert!(started(&second) < started(&first), "the later job is first");
    assert_eq!(system.read(&format!("muster-{first}.out")), "n2\n".repeat(2));
    let printed = system.read("sched_out");
    assert!(printed.contains(&format!(": {blocker} -> 0, errno 0\n")), "{printed}");
    assert!(printed.contains(&format!(": {second} -> -1, errno 15044\n")), "{printed}");
    let told = system.ok(&["replay", "--verify"]);
    assert!(told.contains("of an external planner"), "{told}");
}
