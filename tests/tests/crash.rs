//! Every role is killed with SIGKILL at random moments under load, on real processes and a real NATS server. Every
//! acknowledged job runs once, and what the jobs themselves wrote down agrees with the log.
//!
//! `MUSTER_CRASH_ROUNDS` says how often something is killed, `MUSTER_CRASH_SEED` repeats the choices of a run (the
//! moments are the machine's).

use muster_tests::muster_binary;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Everything that is open when the killing ends is done within this time.
const SETTLES_WITHIN: Duration = Duration::from_secs(120);

/// A cluster of separate processes, ended with the value.
struct Cluster {
    folder: tempfile::TempDir,
    muster: PathBuf,
    port: u16,
}

impl Cluster {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cluster = Self { folder, muster: muster_binary(), port: free_port() };
        let output = cluster.control(&["start"], &["4", "8"]);
        assert!(output.status.success(), "the cluster does not start: {}", text(&output));
        cluster
    }

    fn control(&self, before: &[&str], after: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ops/local-cluster");
        Command::new(script)
            .args(before)
            .arg(self.folder.path())
            .args(after)
            .env("MUSTER_BINARY", &self.muster)
            .env("MUSTER_NATS_PORT", self.port.to_string())
            .output()
            .expect("ops/local-cluster can be run")
    }

    fn muster(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.muster);
        command.args(words).arg("--data").arg(self.folder.path().join("data")).current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    fn markers(&self) -> PathBuf {
        self.folder.path().join("markers")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let output = self.control(&["stop"], &[]);
        if !output.status.success() && !thread::panicking() {
            panic!("the cluster does not stop: {}", text(&output));
        }
        if thread::panicking() {
            for entry in fs::read_dir(self.folder.path().join("log")).into_iter().flatten().flatten() {
                let log = fs::read_to_string(entry.path()).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(15).collect();
                eprintln!("--- {}\n{}", entry.path().display(), tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// Submits until told to stop: the jobs that were acknowledged.
fn submit_until(cluster: &Cluster, stop: &AtomicBool) -> Vec<String> {
    let script = format!("echo $MUSTER_JOB_ID $MUSTER_RUN_ID >>{}; sleep 0.05", cluster.markers().display());
    let mut acknowledged = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let words = ["submit", "--parsable", "-o", "/dev/null", "--", "sh", "-c", &script];
        // The connection's options stand before the words of the command.
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

/// Kills a role, lets it be gone for a moment, and starts it again.
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

/// All jobs that the system knows, by id: state and outcome.
fn jobs(cluster: &Cluster) -> Option<BTreeMap<String, (String, Option<String>)>> {
    let output = cluster.muster(&["jobs", "--all", "--json"]).output().expect("muster can be run");
    if !output.status.success() {
        return None;
    }
    let parsed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let list = parsed["jobs"].as_array().expect("a list of jobs");
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    Some(
        list.iter()
            .filter_map(|job| Some((text(&job["id"])?, (text(&job["state"])?, text(&job["outcome"]["outcome"])))))
            .collect(),
    )
}

fn wait_until_all_finished(cluster: &Cluster) -> BTreeMap<String, (String, Option<String>)> {
    let deadline = Instant::now() + SETTLES_WITHIN;
    loop {
        if let Some(jobs) = jobs(cluster)
            && jobs.values().all(|(state, _)| state == "finished")
        {
            return jobs;
        }
        if Instant::now() > deadline {
            let open: Vec<_> =
                jobs(cluster).unwrap_or_default().into_iter().filter(|(_, (state, _))| state != "finished").collect();
            panic!("not finished {SETTLES_WITHIN:?} after the last kill: {open:?}");
        }
        thread::sleep(Duration::from_millis(100));
    }
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

    let mut marks: BTreeMap<String, u32> = BTreeMap::new();
    for line in fs::read_to_string(cluster.markers()).expect("the jobs' markers").lines() {
        *marks.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
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
    let verify = cluster.muster(&["audit", "verify"]).output().expect("muster can be run");
    assert!(verify.status.success(), "{}", text(&verify));
}
