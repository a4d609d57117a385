//! Two planners on real processes and a real NATS server: one leads, the other one stands by.

#[allow(dead_code, reason = "each test of faults needs another part")]
mod cluster;

use cluster::{Cluster, assert_history_verifies, marks, text, wait_until_all_finished};
use std::{
    collections::BTreeMap,
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

/// A scheduling program that starts all waiting jobs, and that which it started first a second time. Behind its first start it
/// stands still as long as there is a gate.
const PROGRAM: &str = r#"
import sys, json, os
def say(**message):
    print(json.dumps(message), flush=True)
def ask(**message):
    say(id=1, **message)
    return json.loads(sys.stdin.readline())
def note(name, text):
    with open(name + ".new", "w") as file: file.write(text)
    os.rename(name + ".new", name)
json.loads(sys.stdin.readline())
say(t="ready", v=1)
for line in sys.stdin:
    cycle = json.loads(line)
    if cycle["t"] != "cycle": break
    for job in [job["id"] for job in ask(t="stat", what="selstat")["data"]]:
        if not ask(t="run", job=job)["ok"]: continue
        if not os.path.exists("first"):
            note("first", job)
            open("gate").read()
    if os.path.exists("first") and not os.path.exists("again"):
        with open("first") as file: again = ask(t="run", job=file.read())
        note("again", "started" if again["ok"] else again["code"])
    say(t="end", seq=cycle["seq"])
"#;

/// PBS-X-23, PBS-X-24: the planner is killed in the middle of a cycle of a scheduling program. What the program had started is not
/// started again, although it asks for it, and nothing else is lost.
#[test]
fn a_planner_killed_within_a_cycle_of_a_program_starts_nothing_twice_and_loses_nothing() {
    const JOBS: usize = 6;
    let cluster = Cluster::start_with(&[], &["2", "4"]);
    let folder = cluster.folder.path().join("sched_priv");
    fs::create_dir(&folder).expect("there is room");
    fs::write(folder.join("plan.py"), PROGRAM).expect("there is room");
    nix::unistd::mkfifo(&folder.join("gate"), nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR)
        .expect("a pipe");
    let file = cluster.folder.path().join("etc/planner.toml");
    let settings = fs::read_to_string(&file).expect("the planner's configuration");
    let program = format!(
        "{settings}\n[planner]\nscheduler_policy = \"external:python3 plan.py\"\nscheduler_folder = \"{}\"\n",
        folder.display()
    );
    control(&cluster, "kill", "planner");
    fs::write(&file, program).expect("there is room");
    for key in 0..JOBS {
        let mark = format!("echo {key} >> {}", cluster.markers().display());
        let output = cluster.muster(&["submit", "--", "sh", "-c", &mark]).output().expect("muster can be run");
        assert!(output.status.success(), "{}", text(&output));
    }
    control(&cluster, "restart", "planner");
    wait_for_file(&folder.join("first"));
    control(&cluster, "kill", "planner");
    assert_eq!(begun(&cluster), 1, "the program stood still behind its first start");
    fs::remove_file(folder.join("gate")).expect("the pipe is there");
    fs::write(folder.join("gate"), "").expect("there is room");
    control(&cluster, "restart", "planner");
    wait_until_all_finished(&cluster);
    wait_for_file(&folder.join("again"));
    assert_ne!(fs::read_to_string(folder.join("again")).expect("written"), "started");
    let once: BTreeMap<String, u32> = (0..JOBS).map(|key| (key.to_string(), 1)).collect();
    assert_eq!(marks(&cluster), once);
    assert_history_verifies(&cluster);
    cluster.stop();
}

fn wait_for_file(file: &std::path::Path) {
    let deadline = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < deadline, "waited in vain for {}", file.display());
        thread::sleep(Duration::from_millis(50));
    }
}

/// How many runs have begun.
fn begun(cluster: &Cluster) -> usize {
    let output = cluster.muster(&["events", "--kind", "job.allocated", "--json"]).output().expect("muster can be run");
    assert!(output.status.success(), "{}", text(&output));
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("job.allocated")).count()
}
