//! `sacct --json` (SL-A-11).

use super::Row;
use crate::show::squeue;
use serde_json::{Value, json};

/// Jobs with their steps as an object with `meta`, `jobs` and `errors`; in the rows, a step follows its job.
pub fn json(version: &str, rows: &[Row]) -> Value {
    let mut jobs: Vec<Value> = Vec::new();
    for row in rows {
        match (&row.step, jobs.last_mut().and_then(|job| job["steps"].as_array_mut())) {
            (Some(_), Some(steps)) => steps.push(step(row)),
            (Some(_), None) => {}
            (None, _) => {
                let mut job = squeue::job_json(&row.job);
                job["steps"] = json!([]);
                job["cluster"] = json!(row.cluster.as_ref());
                jobs.push(job);
            }
        }
    }
    json!({
        "meta": { "plugin": { "type": "muster", "name": "sacct" }, "slurm": { "release": version } },
        "jobs": jobs,
        "errors": [],
    })
}

fn step(row: &Row) -> Value {
    let Some(step) = &row.step else { return Value::Null };
    let seconds = |time: Option<muster_schemas::time::Timestamp>| time.map_or(0, |time| time.unix_seconds());
    json!({
        "step": { "id": row.shown_id(), "name": step.name },
        "state": step.state.long(),
        "exit_code": { "return_code": step.exit.status, "signal": step.exit.signal },
        "nodes": crate::hostlist::compress_sorted(&step.nodes),
        "tasks": { "count": step.tasks },
        "time": { "start": seconds(step.started), "end": seconds(step.ended) },
    })
}
