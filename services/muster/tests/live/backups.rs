//! A ledger that is lost, and restored from its backup.

use crate::system::{Output, System};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

/// The source of an event of this type.
fn source_of(system: &System, kind: &str) -> String {
    let events = system.ok(&["events", "--json", "--from", "1"]);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let event = events.into_iter().find(|event| event["type"] == kind);
    event.unwrap_or_else(|| panic!("no {kind}"))["source"].as_str().expect("a source").to_owned()
}

/// The number of a process that a job has written to a file.
fn process_of(system: &System, file: &str) -> String {
    system.wait_until("the job tells its process", || system.read(file).ends_with('\n'));
    format!("/proc/{}", system.read(file).trim())
}

/// Ends a loop of another thread, also if this one panics.
struct Enough<'a>(&'a AtomicBool);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The drill: a backup under submissions, then everything but the nodes is lost. What was acknowledged before the backup
/// is there, a job that runs continues, one that the restored log does not know is ended, and integrations see it.
#[test]
fn a_lost_ledger_is_restored_and_its_jobs_go_on() {
    let mut system = System::start(2);
    let until = |file: &str| format!("echo started >>{file}.began; until [ -e {file} ]; do sleep 0.05; done");
    let lasting = system.submit(&["--", "sh", "-c", &until("lasting")]);
    let short = system.submit(&["--", "sh", "-c", &until("short")]);
    let waiting = system.submit(&["--hold", "--", "true"]);
    system.wait_for_state(&lasting, "running");
    system.wait_for_state(&short, "running");

    let (acknowledged, is_enough) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let submitted = || acknowledged.lock().expect("no test panics with the lock").clone();
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_enough.load(Ordering::Relaxed) {
                let job = system.submit(&["--hold", "--", "true"]);
                acknowledged.lock().expect("no test panics with the lock").push(job);
            }
        });
        let _enough = Enough(&is_enough);
        system.wait_until("jobs are submitted", || submitted().len() > 3);
        let before = submitted();
        let made = system.ok(&["backup", "backups", "--with-key"]);
        assert!(made.starts_with("made backup ") && made.contains("it verifies"), "{made}");
        before
    });

    let unknown = system.submit(&["--", "sh", "-c", "echo $$ >unknown.process; exec sleep 1000"]);
    let process = process_of(&system, "unknown.process");
    system.write("short", "");
    system.ok(&["job", "wait", &short]);
    let old_source = source_of(&system, "muster.cluster.initialised.v1");
    assert_eq!(system.run(&["restore", "backups"]).status, 1, "there is a ledger");

    system.signal(Signal::SIGKILL);
    system.stop();
    std::fs::remove_dir_all(system.path("data/ledger")).expect("it was there");
    for lost in ["data/ledger.key", "data/accounting.books"] {
        // The books are written now and then.
        let _ = std::fs::remove_file(system.path(lost));
    }
    let restored = system.ok(&["restore", "backups"]);
    assert!(restored.starts_with("restored backup "), "{restored}");
    system.restart(&[]);

    for job in before.iter().chain([&lasting, &short, &waiting]) {
        system.ok(&["job", "show", job]);
    }
    assert!(system.ok(&["audit", "verify"]).starts_with("the history verifies"));
    assert_eq!(system.state(&lasting), "running");
    system.wait_until("the job that nobody knows is ended", || !std::path::Path::new(&process).exists());
    system.wait_until("the job that has ended is over", || system.state(&short) != "running");
    system.write("lasting", "");
    system.ok(&["job", "wait", &lasting]);
    assert_eq!(system.read("lasting.began"), "started\n", "it was not started again");
    let Output { status, stdout, .. } = system.run(&["job", "show", &unknown]);
    assert!(status != 0 || !stdout.contains("unknown.process"), "{stdout}");
    system.ok(&["job", "release", &waiting]);
    system.ok(&["job", "wait", &waiting]);

    let told = source_of(&system, "muster.log.restored.v1");
    assert_ne!(told, old_source);
    assert_eq!(
        source_of(&system, "muster.cluster.initialised.v1"),
        old_source,
        "what the backup has stays what it was"
    );
    system.ok(&["backup", "backups", "--keep", "1"]);
    let list = system.json(&["backup", "list", "backups", "--json"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!((&list[0]["has_key"], &list[0]["verified_from"]), (&Value::from(false), &Value::from(1)), "{list}");
}

/// A disk that is full says so, and leaves the backups that there are.
#[test]
fn a_backup_that_does_not_fit_leaves_nothing() {
    let system = System::start(1);
    system.ok(&["backup", "backups"]);
    // As on a full disk: files cannot grow beyond a block.
    let Output { status, stderr, .. } = system.shell("trap '' XFSZ; ulimit -f 1; muster backup backups");
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("there is no new backup, and earlier ones stay as they are"), "{stderr}");
    assert!(stderr.contains("File too large"), "{stderr}");
    let names: Vec<_> = std::fs::read_dir(system.path("backups")).expect("a folder").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(!system.path("data/ledger/backup").exists());
    std::fs::create_dir(system.path("elsewhere")).expect("a folder");
    std::fs::copy(system.path("data/ledger.key"), system.path("elsewhere/ledger.key")).expect("a key");
    system.ok(&["restore", "backups", "--data", "elsewhere"]);
}
