//! Shared by several tests: submissions from a line of text.

use jiff::{Zoned, tz::TimeZone};
use muster_pbs::{
    flavour::Flavour,
    refusal::Refusal,
    script,
    show::Sources,
    submit::{self, Caller, Program, Reading, Rules, Settings, Submission},
};
use muster_schemas::{
    resources::{Alternative, Request},
    time::Timestamp,
    views::{JobDetail, JobView},
};
use serde_json::{Value, json};

/// A Friday morning in Zurich.
pub fn now() -> Zoned {
    "2026-11-20T10:00:00[Europe/Zurich]".parse().unwrap()
}

/// A submitter.
pub fn caller() -> Caller {
    let variables =
        [("HOME", "/home/ann"), ("PATH", "/bin:/opt/bin"), ("LANG", "C.UTF-8"), ("LOGNAME", "ann"), ("X", "1")];
    Caller {
        user: "ann".into(),
        groups: vec!["staff".into(), "phys".into()],
        home: "/home/ann".into(),
        shell: "/bin/bash".into(),
        directory: "/data/run 1".into(),
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        host: "login1.example.org".into(),
        arguments: "-N test job.sh".into(),
        is_folder: |path| path == "/data/run 1/logs",
    }
}

pub fn rules() -> Rules {
    Rules { server: "pbs1".into(), ..Rules::default() }
}

pub fn torque() -> Rules {
    Rules { flavour: Flavour::Torque, ..rules() }
}

/// The words of a line, as a shell splits them.
pub fn words(line: &str) -> Vec<String> {
    script::words(line, 0).unwrap()
}

/// The options of `qsub LINE` with a script.
pub fn settings_of(line: &str, text: &str, rules: &Rules) -> Result<Settings, Refusal> {
    let line = submit::line(&words(line))?;
    let prefix = script::prefix(line.value('C'), None);
    let now = now();
    let reading = Reading { now: &now, flavour: rules.flavour, array_limit: 10_001 };
    Settings::read(&[], Some(text), prefix, &line.options, &reading)
}

/// The job of `qsub LINE job.sh` with a script, under some rules.
pub fn submission_of(line: &str, text: &str, rules: &Rules) -> Result<Submission, Refusal> {
    let settings = settings_of(line, text, rules)?;
    let program = Program::Script { text: text.to_owned(), path: Some("jobs/job.sh".into()) };
    submit::lower(&settings, &program, &caller(), rules, &now())
}

pub fn submission(line: &str) -> Result<Submission, Refusal> {
    submission_of(line, "#!/bin/sh\ntrue\n", &rules())
}

/// The message of a refusal.
pub fn refused(line: &str) -> String {
    match submission(line) {
        Ok(accepted) => panic!("{line} is accepted: {accepted:?}"),
        Err(refusal) => refusal.to_string(),
    }
}

pub fn alternative(line: &str) -> Alternative {
    let submission = submission(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
    submission.spec.components.into_iter().next().unwrap().alternatives.into_iter().next().unwrap()
}

/// The only request of a line.
pub fn request(line: &str) -> Request {
    let mut requests = alternative(line).requests;
    assert_eq!(requests.len(), 1, "{line}: {requests:?}");
    requests.pop().unwrap()
}

/// 2026-11-20 08:20:00 UTC.
pub const NOW: i64 = 1_795_162_800;

/// A moment before the present one.
pub fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(NOW - seconds)
}

pub fn sources(flavour: Flavour) -> Sources<'static> {
    static ZONE: TimeZone = TimeZone::UTC;
    Sources { server: "pbs1.example.org", flavour, now: ago(0), zone: &ZONE }
}

fn merge(all: &mut Value, members: Value) {
    let (Value::Object(all), Value::Object(more)) = (all, members) else { panic!("objects") };
    all.extend(more);
}

/// A waiting job with these members in addition to those of every job.
pub fn view(members: Value) -> JobView {
    let mut all = json!({
        "id": "7", "name": "test", "owner": "ann", "queue": "batch", "account": null, "priority": 0,
        "state": "queued", "reason": null, "holds": {}, "outcome": null, "submitted": ago(60),
        "begin": null, "started": null, "ended": null, "walltime_seconds": 3600, "nodes": [], "node_count": 1,
        "tasks": 1, "cores": 1, "components": 1, "run": null, "runs": 0, "array": null
    });
    merge(&mut all, members);
    serde_json::from_value(all).expect("a job")
}

/// A running job.
pub fn running(id: &str, seconds: i64, nodes: &[&str]) -> JobView {
    view(json!({
        "id": id, "state": "running", "started": ago(seconds), "nodes": nodes, "node_count": nodes.len(), "run": 1,
        "runs": 1, "cores": 2 * nodes.len()
    }))
}

/// A job of `qsub LINE` with all its details, on nodes with two cores each.
pub fn detail(job: JobView, line: &str) -> JobDetail {
    let spec = submission(line).expect("a job").spec;
    let node = |name: &String| {
        json!({
            "node": name, "component": 0, "cores": "0-1", "gpus": "", "memory_bytes": 1_073_741_824u64, "tasks": 1,
            "exclusive": false, "exit": null
        })
    };
    let usage = json!({ "cpu_time_micros": 65_000_000u64, "peak_memory_bytes": 5_000_000u64 });
    let runs: Vec<Value> = job
        .started
        .iter()
        .map(|started| {
            json!({
                "run": 1, "job": job.id, "nodes": job.nodes.iter().map(node).collect::<Vec<_>>(),
                "allocated": started, "started": started, "ended": job.ended, "outcome": null, "usage": usage
            })
        })
        .collect();
    serde_json::from_value(json!({ "job": job, "spec": spec, "redacted": false, "runs": runs })).expect("details")
}

/// Compares a text with that of a golden file; `MUSTER_BLESS=1` writes it.
pub fn golden(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pbs/golden").join(name);
    if std::env::var_os("MUSTER_BLESS").is_some() {
        std::fs::write(&path, text).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text == expected, "{name} differs; it is:\n{text}\nexpected:\n{expected}");
}
