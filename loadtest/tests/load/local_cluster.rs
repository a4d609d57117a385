//! The same work with every role in a separate process, on a real NATS server with one user for each role.

use crate::common;
use std::{
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// A cluster of `ops/local-cluster`, which is stopped when dropped.
struct Cluster {
    folder: tempfile::TempDir,
    port: u16,
}

impl Cluster {
    fn start(nodes: &str, cpus: &str) -> Self {
        let cluster = Self { folder: tempfile::tempdir().expect("a temporary folder"), port: free_port() };
        let (success, text) = cluster.script("start", &[nodes, cpus]);
        assert!(success, "{text}\n{}", cluster.logs());
        cluster
    }

    fn script(&self, command: &str, arguments: &[&str]) -> (bool, String) {
        let mut script = Command::new(common::repository().join("ops/local-cluster"));
        script.arg(command).arg(self.folder.path()).args(arguments);
        script.env("MUSTER_BINARY", common::muster()).env("MUSTER_NATS_PORT", self.port.to_string());
        common::run(script)
    }

    fn muster(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(common::muster());
        command.arg("--data").arg(self.data()).args(arguments);
        common::run(command)
    }

    /// F20: passwords, logs and the traffic of NATS are closed to others.
    fn keeps_its_files_to_itself(&self) {
        for name in ["etc", "log", "run", "nats"] {
            let mode = std::fs::metadata(self.folder.path().join(name)).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{name}: {mode:o}");
        }
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("log").join(name)).unwrap_or_default()
    }

    fn logs(&self) -> String {
        let Ok(entries) = std::fs::read_dir(self.folder.path().join("log")) else { return String::new() };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.map(|name| format!("== {name}\n{}\n", self.log(&name))).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let (success, text) = self.script("stop", &[]);
        if !success && !std::thread::panicking() {
            panic!("{text}\n{}", self.logs());
        }
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface has a free port");
    listener.local_addr().expect("it is bound").port()
}

fn text_of(path: &Path) -> &str {
    path.to_str().expect("temporary folders have names in UTF-8")
}

/// Polls for as long as a busy machine may need.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Separate processes for all roles give the same results (M-SYS-1).
#[test]
fn every_role_in_a_process_of_its_own_gives_the_same_results() {
    let cluster = Cluster::start("4", "60");
    cluster.keeps_its_files_to_itself();
    let arguments = ["--jobs", "60", "--speedup", "20000", "--verify", "--overhead-seconds", "10"];
    let (data, muster) = (cluster.data(), common::muster());
    let place = ["--data", text_of(&data), "--muster", text_of(&muster)];
    let (success, text) = common::replay(&[&arguments[..], &place[..]].concat());
    assert!(success, "{text}\n{}", cluster.logs());
    assert!(text.contains("processes: each of 60 was started once"), "{text}");

    // By now the notifier has waited for its first item for as long as the replay took.
    let note = cluster.folder.path().join("note");
    let notify = format!("exec:echo $MUSTER_JOB_ID >>{}", note.display());
    let (success, job) =
        cluster.muster(&["submit", "--parsable", "-o", "/dev/null", "--notify", &notify, "--", "/bin/true"]);
    assert!(success, "{job}\n{}", cluster.logs());
    wait_until("both notifications are delivered", || {
        std::fs::read_to_string(&note).is_ok_and(|text| text.lines().filter(|line| *line == job.trim()).count() >= 2)
    });

    let (success, text) = cluster.script("status", &[]);
    assert!(success && !text.contains("stopped"), "{text}");
    let violations: Vec<_> =
        cluster.log("nats.log").lines().filter(|line| line.contains("Violation")).map(str::to_owned).collect();
    assert!(violations.is_empty(), "roles want more than the NATS configuration allows them:\n{violations:#?}");
}

#[test]
fn a_killed_ledger_comes_back_with_everything_acknowledged() {
    let cluster = Cluster::start("1", "2");
    let (success, job) = cluster.muster(&["submit", "--parsable", "-o", "/dev/null", "--", "/bin/true"]);
    assert!(success, "{job}\n{}", cluster.logs());
    let (success, text) = cluster.script("kill", &["ledger"]);
    assert!(success, "{text}");
    let (success, text) = cluster.script("restart", &["ledger"]);
    assert!(success, "{text}");
    let (success, text) = cluster.muster(&["job", "wait", job.trim()]);
    assert!(success, "{text}\n{}", cluster.logs());
}
