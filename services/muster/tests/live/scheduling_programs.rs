//! Scheduling programs of PBS sites that plan for a live system.

use crate::{slurm::Site, system::System};

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

/// A cluster of two nodes whose planner is a program.
fn with_program(policy: &str, files: &[(&str, &str)], more: &str) -> System {
    let mut system = System::stopped();
    files.iter().for_each(|(name, text)| system.write(name, text));
    let settings = format!("[planner]\nscheduler_policy = \"{policy}\"\nscheduler_folder = \".\"\n{more}");
    let nodes = "[[nodes]]\nname = \"n[1-2]\"\ncores = 2\nmemory = \"1G\"\n[[queues]]\nname = \"default\"\n\
                 [[queues]]\nname = \"night\"\n";
    system.write("muster.toml", &format!("{nodes}{settings}"));
    system.restart(&["--config", "muster.toml"]);
    system
}

const SEE: &str = r#"sched_main() {
  Server s; Set Que qs; Que q; Set CNode ns; CNode n; Set Job js; Job j;
  s = AllServersLocalHostGet();
  print(ServerMaxRunJobsGet(s));
  print(ServerMaxRunJobsPerUserGet(s));
  print(ServerIntResAvailGet(s, "ncpus"));
  print(ServerSizeResAvailGet(s, "mem"));
  qs = ServerQueuesGet(s);
  foreach(q in qs) {
    if( QueNameGet(q) EQ "night" ) { print(QueMaxRunJobsPerGroupGet(q)); print(QueIntResAvailGet(q, "ncpus")); }
  }
  ns = AllNodesGet();
  foreach(n in ns) { print(CNodeVendorGet(n)); }
  js = ServerJobsGet(s);
  foreach(j in js) { print(JobStringResReqGet(j, "nodes")); print(JobEffectiveGroupNameGet(j)); }
}
"#;

/// PBS-X-09, PBS-X-12: a program sees limits and resources of server and queues as `qmgr` has set them, the nodes that a job asks
/// for and its group, and what its
/// configuration maps to what nodes say of themselves. A configuration with mistakes leaves the old one in force.
#[test]
fn a_program_sees_the_real_server_queues_and_nodes() {
    let system = System::stopped();
    system.write("see.basl", SEE);
    system.write("sched_conf", "# as with -c\n$node * CNodeVendorGet maker\n");
    let folder = system.path("").display().to_string();
    let site = Site::on(
        system,
        &format!(
            "[cluster]\nname = \"alpha\"\ndefault_queue = \"day\"\n[[queues]]\nname = \"day\"\n[[queues]]\nname = \"night\"\n\
             [planner]\nscheduler_policy = \"basl:see.basl\"\nscheduler_folder = \"{folder}\"\n\
             scheduler_config_file = \"sched_conf\"\n"
        ),
    );
    site.ok("qmgr -c 'set server max_running = 4101, max_user_run = 4102, resources_available.ncpus = 4103'");
    site.ok("qmgr -c 'set server resources_available.mem = 4104kb'");
    site.ok("qmgr -c 'set queue night max_group_run = 4105, resources_available.ncpus = 4106'");
    site.ok("qmgr -c 'set node node1 resources_available.maker = acme4107'");
    site.ok("qsub -h -l nodes=2:ppn=3 -- true");
    let group = site.ok("id -gn").trim().to_owned();
    // Anything that happens brings a cycle.
    let cycle = || {
        let job = site.system.submit(&["--hold", "--", "true"]);
        site.system.ok(&["job", "cancel", &job]);
    };
    cycle();
    for seen in ["4101", "4102", "4103", "4104kb", "4105", "4106", "acme4107", "2:ppn=3", group.as_str()] {
        site.system.wait_until(seen, || site.system.log().contains(&format!("scheduling program: {seen}")));
    }
    site.system.write("sched_conf", "$node * CNodeVendorsGet maker\n");
    site.system.signal(nix::sys::signal::Signal::SIGHUP);
    let refused = || site.system.ok(&["events", "--kind", "policy.refused", "--json"]);
    site.system.wait_until("the mistake is on record", || refused().contains("CNodeVendorsGet"));
}

/// What it does is in the file `acts`, a JSON object for each line; it does it once, and writes the answers to `told`.
const ACTS: &str = r#"
import sys, json, os
def say(**message):
    print(json.dumps(message), flush=True)
def ask(**message):
    say(id=1, **message)
    return json.loads(sys.stdin.readline())
json.loads(sys.stdin.readline())
say(t="ready", v=1)
for line in sys.stdin:
    cycle = json.loads(line)
    if cycle["t"] != "cycle": break
    if os.path.exists("acts"):
        with open("acts") as file: acts = [json.loads(line) for line in file]
        os.rename("acts", "acts.done")
        answers = [ask(**act) for act in acts]
        with open("told.new", "w") as file:
            for answer in answers: file.write(("ok" if answer["ok"] else answer["text"]) + "\n")
        os.rename("told.new", "told")
    say(t="end", seq=cycle["seq"])
"#;

/// Has the program do this; its answers.
fn act(system: &System, acts: &[&str]) -> Vec<String> {
    let _ = std::fs::remove_file(system.path("told"));
    system.write("acts.new", &acts.join("\n"));
    std::fs::rename(system.path("acts.new"), system.path("acts")).expect("renamed");
    // Anything that happens brings a cycle.
    let job = system.submit(&["--hold", "--", "true"]);
    system.ok(&["job", "cancel", &job]);
    system.wait_until("the program has acted", || system.path("told").exists());
    system.read("told").lines().map(str::to_owned).collect()
}

/// PBS-X-22, PBS-C-08, PBS-C-11: a program manages jobs of users as a manager of PBS does: real jobs are held, moved, altered,
/// signalled, run again and deleted, each as an event of the planner; what it may not is refused with a reason; every
/// cycle is on record.
#[test]
fn a_program_manages_real_jobs() {
    let system = with_program("external:python3 plan.py", &[("plan.py", ACTS)], "schedule_iteration_seconds = 1\n");
    // Its first cycle is of the moment when it was started, before it has jobs.
    system
        .wait_until("it had its first cycle", || system.ok(&["events", "--kind", "planner.cycled"]).contains("cycle"));
    let trap = ["--", "sh", "-c", "trap 'echo told >&2' USR1; while :; do sleep 0.1; done"];
    let running = system.submit(&trap);
    let waiting = system.submit(&["-n", "1", "--time", "1h", "--", "true"]);
    let doomed = system.submit(&["--", "true"]);
    let acts = [
        format!(r#"{{"t": "run", "job": "{running}", "place": "n2"}}"#),
        format!(r#"{{"t": "hold", "job": "{waiting}", "kinds": "o"}}"#),
        format!(r#"{{"t": "move", "job": "{waiting}", "to": "night"}}"#),
        format!(r#"{{"t": "alter", "job": "{waiting}", "changes": [{{"name": "Priority", "value": "9"}}]}}"#),
        format!(r#"{{"t": "delete", "job": "{doomed}"}}"#),
        format!(r#"{{"t": "rerun", "job": "{waiting}"}}"#),
        r#"{"t": "queue", "queue": "night", "set": "stop"}"#.to_owned(),
    ];
    let acts: Vec<&str> = acts.iter().map(String::as_str).collect();
    let told = act(&system, &acts);
    assert_eq!(told.len(), 7);
    assert!(told.iter().enumerate().all(|(at, told)| (told == "ok") == (at != 5)), "{told:?}");
    assert!(told[5].contains("waits already"), "{told:?}");
    system.wait_for_state(&running, "running");
    system.wait_for_state(&doomed, "finished");
    let shown = system.json(&["job", "show", &waiting, "--json"])["job"].clone();
    assert_eq!((&shown["queue"], &shown["priority"]), (&"night".into(), &9.into()), "{shown}");
    assert_eq!(system.state(&waiting), "held");
    let told = act(&system, &[&format!(r#"{{"t": "signal", "job": "{running}", "signal": "USR1"}}"#)]);
    assert_eq!(told, ["ok"]);
    system.wait_until("the job got the signal", || system.read(&format!("muster-{running}.out")).contains("told"));
    let acts = [
        format!(r#"{{"t": "rerun", "job": "{running}"}}"#),
        format!(r#"{{"t": "release", "job": "{waiting}", "kinds": "o"}}"#),
        format!(r#"{{"t": "run", "job": "{waiting}"}}"#),
    ];
    let acts: Vec<&str> = acts.iter().map(String::as_str).collect();
    // The queue is stopped, and the program starts its job all the same (PBS-C-09).
    assert_eq!(act(&system, &acts), ["ok", "ok", "ok"]);
    system.wait_for_state(&waiting, "finished");
    system.wait_for_state(&running, "queued");
    let events = system.ok(&["events", "--kind", "job.held", "--json"]);
    assert!(events.lines().any(|line| line.contains("held by the scheduling program") && line.contains("planner")));
    let cycles = system.ok(&["events", "--kind", "planner.cycled", "--json"]);
    assert!(cycles.contains("waits already") && cycles.contains("SCH_SCHEDULE_FIRST"), "{cycles}");
    system.ok(&["replay", "--verify"]);
}

const TURNS: &str = "Int TURN;\nTURN = 10;\nsched_main() { TURN++; print(TURN); }\n";

/// PBS-X-07, PBS-C-14: globals of a BaSL program outlive the whole system; on SIGHUP the program is read again, and one with
/// mistakes is refused on record.
#[test]
fn a_basl_program_outlives_restarts_and_is_read_again() {
    let mut system = with_program("basl:turns.basl", &[("turns.basl", TURNS)], "");
    let turns = |system: &System| {
        let cycles = system.ok(&["events", "--kind", "planner.cycled", "--json"]);
        let last = cycles.lines().last().unwrap_or_default().to_owned();
        let event: serde_json::Value = serde_json::from_str(&last).unwrap_or_default();
        event["data"]["cycle"]["globals"].as_str().unwrap_or_default().to_owned()
    };
    system.wait_until("the first cycle is on record", || turns(&system).contains("11"));
    let number = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap_or(0);
    let before = number(&turns(&system));
    system.stop();
    system.restart(&["--config", "muster.toml"]);
    system.wait_until("it goes on", || number(&turns(&system)) > before);
    system.write("turns.basl", "sched_main() { i = 1; }\n");
    system.signal(nix::sys::signal::Signal::SIGHUP);
    let refused = || system.ok(&["events", "--kind", "policy.refused", "--json"]);
    system.wait_until("the mistakes are on record", || refused().contains("turns.basl:1: "));
    system.write("turns.basl", &TURNS.replace("10", "500"));
    system.signal(nix::sys::signal::Signal::SIGHUP);
    system.wait_until("the new program runs", || {
        let job = system.submit(&["--", "true"]);
        system.ok(&["job", "cancel", &job]);
        number(&turns(&system)) > 500
    });
}
