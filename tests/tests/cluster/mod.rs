//! A cluster of real processes for tests with faults, and what its log says about its jobs.

use muster_tests::muster_binary;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Everything that is unfinished when the kills end is done within this time.
const SETTLES_WITHIN: Duration = Duration::from_secs(120);

/// A cluster of separate processes, which end when this is dropped.
pub struct Cluster {
    pub folder: tempfile::TempDir,
    pub muster: PathBuf,
    /// Where its NATS server listens.
    pub port: u16,
}

impl Cluster {
    pub fn start() -> Self {
        Self::start_with(&[], &["4", "8"])
    }

    /// Starts it with these options, and nodes and their CPUs.
    pub fn start_with(options: &[&str], nodes: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cluster = Self { folder, muster: muster_binary(), port: free_port() };
        let output = cluster.control(&["start"], &[options, nodes].concat());
        assert!(output.status.success(), "the cluster does not start: {}", text(&output));
        cluster
    }

    pub fn control(&self, before: &[&str], after: &[&str]) -> Output {
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

    pub fn muster(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.muster);
        let data = self.folder.path().join("data");
        // Behind `--` the option is a word of the job's command.
        command.args(words).arg("--data").arg(&data).env("MUSTER_DATA", &data).current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    /// Sends a signal, such as `-STOP`, to a role.
    pub fn signal(&self, role: &str, signal: &str) {
        let file = self.folder.path().join("run").join(format!("{role}.pid"));
        let pid = fs::read_to_string(&file).expect("the role was started");
        let sent = Command::new("kill").args([signal, pid.trim()]).output().expect("kill can be run");
        assert!(sent.status.success(), "{role} was not there: {}", text(&sent));
    }

    /// Stops it, as at its end.
    pub fn stop(&self) {
        let output = self.control(&["stop"], &[]);
        assert!(output.status.success(), "the cluster does not stop: {}", text(&output));
    }

    /// Ids and names of all jobs.
    pub fn names_of_jobs(&self) -> Vec<(String, String)> {
        let output = self.muster(&["jobs", "--all", "--json"]).output().expect("muster can be run");
        assert!(output.status.success(), "{}", text(&output));
        let parsed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let list = parsed["jobs"].as_array().expect("a list of jobs");
        list.iter().map(|job| (text(&job["id"]), text(&job["name"]))).collect()
    }

    pub fn markers(&self) -> PathBuf {
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

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}

pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")))
}

/// All known jobs, by id: state and outcome.
pub fn jobs(cluster: &Cluster) -> Option<BTreeMap<String, (String, Option<String>)>> {
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

pub fn wait_until_all_finished(cluster: &Cluster) -> BTreeMap<String, (String, Option<String>)> {
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

/// How often each key has run, by the first word of each line that the jobs wrote.
pub fn marks(cluster: &Cluster) -> BTreeMap<String, u32> {
    let mut marks: BTreeMap<String, u32> = BTreeMap::new();
    for line in fs::read_to_string(cluster.markers()).expect("the jobs' markers").lines() {
        *marks.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    marks
}

/// The last record of the log in a folder, and its hash; `None` if the log cannot be read at this moment.
pub fn end_of_log(cluster: &Cluster, folder: &str) -> Option<String> {
    let data = cluster.folder.path().join(folder);
    let mut export = Command::new(&cluster.muster);
    export.args(["audit", "export", "-", "--data"]).arg(data).stdin(Stdio::null());
    let export = export.output().expect("muster can be run");
    let lines = String::from_utf8(export.stdout).ok().filter(|_| export.status.success())?;
    let end = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(format!("{} {}", line["sequence"].as_u64()?, line["hash"].as_str()?))
    };
    lines.lines().rev().find_map(end)
}

/// Verifies the log in a folder of a stopped cluster.
pub fn assert_log_verifies(cluster: &Cluster, folder: &str) {
    let data = cluster.folder.path().join(folder);
    let mut verify = Command::new(&cluster.muster);
    verify.args(["audit", "verify", "--offline", "--data"]).arg(data).stdin(Stdio::null());
    let verify = verify.output().expect("muster can be run");
    assert!(verify.status.success(), "{folder}: {}", text(&verify));
}

pub fn assert_history_verifies(cluster: &Cluster) {
    let verify = cluster.muster(&["audit", "verify"]).output().expect("muster can be run");
    assert!(verify.status.success(), "{}", text(&verify));
}
