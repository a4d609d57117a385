//! Shared by several tests.

use jiff::tz::TimeZone;
use muster_schemas::{
    cluster::QueueSpec,
    time::Timestamp,
    views::{JobDetail, JobView},
};
use muster_slurm::{
    moment::TimeFormat,
    show::{
        Clock,
        record::{JobRecord, Person, Sources, of_detail, of_view},
    },
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The moment of the tests: 2026-11-20 08:20:00 UTC.
pub const NOW: i64 = 1_795_162_800;

/// The tests read clocks in UTC.
pub fn clock() -> Clock {
    Clock { now: Timestamp::from_unix_seconds(NOW), zone: TimeZone::UTC, format: TimeFormat::Standard }
}

/// A moment before the present one.
pub fn ago(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(NOW - seconds)
}

fn merge(all: &mut Value, members: Value) {
    let (Value::Object(all), Value::Object(more)) = (all, members) else { panic!("objects") };
    all.extend(more);
}

/// A waiting job with these members in addition to those of every job.
pub fn view(members: Value) -> JobView {
    let mut all = json!({
        "id": "7", "name": "foo", "owner": "root", "queue": "debug", "account": "test", "priority": 1000,
        "state": "queued", "reason": null, "holds": {}, "outcome": null, "submitted": ago(60),
        "begin": null, "started": null, "ended": null, "walltime_seconds": 300, "nodes": [], "node_count": 1,
        "tasks": 1, "cores": 1, "components": 1, "run": null, "runs": 0, "array": null
    });
    merge(&mut all, members);
    serde_json::from_value(all).expect("a job")
}

/// A running job that started this many seconds ago on these nodes.
pub fn running(id: &str, seconds: i64, nodes: &[&str], members: Value) -> JobView {
    let mut all = json!({
        "id": id, "state": "running", "started": ago(seconds), "nodes": nodes, "node_count": nodes.len(), "run": 1,
        "runs": 1
    });
    merge(&mut all, members);
    view(all)
}

/// A running component with these members in addition to those of every component.
pub fn component(members: Value) -> Value {
    let mut all = json!({
        "queue": "debug", "account": "test", "class": null, "priority": 1000, "state": "running", "holds": {},
        "outcome": null, "ended": null, "begin": null, "reservation": null, "walltime_seconds": 300, "nodes": [],
        "node_count": 1, "tasks": 1, "cores": 1
    });
    merge(&mut all, members);
    all
}

fn no_queue<'a>(_: &str) -> Option<&'a QueueSpec> {
    None
}

fn person(_: &str) -> Person {
    Person { uid: 0, gid: 0, group: "root".into() }
}

fn group(gid: u32) -> Arc<str> {
    format!("group{gid}").into()
}

/// Sources for what views lack.
pub fn sources() -> Sources<'static> {
    Sources { queue: &no_queue, person: &person, group: &group }
}

/// The lines of jobs.
pub fn records(views: impl IntoIterator<Item = JobView>) -> Vec<JobRecord> {
    views.into_iter().flat_map(|view| of_view(view, &sources())).collect()
}

/// The lines of a job with all its details.
pub fn detailed(job: JobView, spec: Value, runs: Value) -> Vec<JobRecord> {
    let detail: JobDetail =
        serde_json::from_value(json!({ "job": job, "spec": spec, "redacted": false, "runs": runs })).expect("details");
    of_detail(&detail, &sources())
}

/// A run of a job, with a part on each of these nodes for each of these components.
pub fn run(parts: &[(&str, u32, &str, u32)]) -> Value {
    let nodes: Vec<Value> = parts
        .iter()
        .map(|(node, component, cores, tasks)| {
            json!({
                "node": node, "component": component, "cores": cores, "gpus": "", "memory_bytes": 0, "tasks": tasks,
                "exclusive": false, "exit": null
            })
        })
        .collect();
    json!({
        "run": 1, "job": "1", "nodes": nodes, "allocated": ago(6), "started": ago(6), "ended": null, "outcome": null,
        "usage": { "cpu_time_micros": 0, "peak_memory_bytes": 0 }
    })
}

/// Asserts that texts are equal except for blanks at the ends of lines.
pub fn assert_lines(text: &str, wanted: &str) {
    let strip = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(strip(text), strip(wanted), "\n{text}\n--- wanted\n{wanted}");
}
