//! The worked examples W8 to W11, literally, and reservations.

use crate::support::{dry, file, job, lines, order, preset, queue};
use muster_pbs_plan::Dry;
use muster_pbs_policy::{check::Policy, preset::Preset};

/// Tuesday 2026-03-10, 20:00 UTC, in seconds since 1970.
const EVENING: i64 = 1_773_172_800;
const HOUR: i64 = 3600;

fn running(id: &str, queue: &str, started: i64, request: &[(&str, &str)], nodes: &[String]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| format!("\"{node}\"")).collect();
    let more = format!(r#""started": {started}, "nodes": [{}],"#, nodes.join(", "));
    job(id, queue, "run", &more, request).replace("\"state\": \"Q\"", "\"state\": \"R\"")
}

/// The state of W8 at a time, with these waiting jobs.
fn w8(now: i64, waiting: &[&str], more: &str) -> String {
    let names: Vec<String> = (1..=16).map(|number| format!("n{number}")).collect();
    let nodes: Vec<String> = names.iter().map(|name| format!(r#"{{"name": "{name}"}}"#)).collect();
    let all = [
        ("b1", "12", "4:00:00", ""),
        ("b2", "4", "1:30:00", ""),
        ("b3", "4", "3:00:00", ""),
        ("i1", "2", "0:20:00", r#""interactive": true,"#),
        ("b0", "14", "1:00:00", ""),
    ];
    let mut jobs = vec![
        running("r1", "batch", EVENING, &[("nodes", "8"), ("walltime", "2:00:00")], &names[..8]),
        running("r2", "batch", EVENING, &[("nodes", "4"), ("walltime", "0:30:00")], &names[8..12]),
    ];
    for (id, nodes, walltime, more) in all {
        let request = [("nodes", nodes), ("walltime", walltime)];
        if waiting.contains(&id) {
            jobs.push(job(id, "submit", "ann", more, &request));
        } else if id == "b2" && now > EVENING {
            jobs.push(running("b2", "batch", EVENING, &request, &names[12..]));
        }
    }
    let members = format!(r#""now": {now}, "tz": "UTC", "nodes": [{}]{more}"#, nodes.join(", "));
    file(&members, &[queue("submit", ""), queue("batch", "")], &jobs)
}

fn sp(more: &str) -> Policy {
    let text = "SUBMIT_QUEUE submit\nBATCH_QUEUES batch\nENFORCE_PRIME_TIME true\nPRIME_TIME_START 8:00:00\n\
                PRIME_TIME_END 18:00:00\n";
    preset(Preset::IbmSp, &format!("{text}{more}"))
}

/// Which job is promised what, in hours after the first cycle.
fn reserved(dry: &Dry) -> Vec<(&str, f64)> {
    let hours = |at: &i64| (at - EVENING) as f64 / HOUR as f64;
    dry.reservations.iter().map(|(job, _, at)| (job.as_str(), hours(at))).collect()
}

/// W8: PBS-P-16, PBS-P-19, PBS-P-20: whole nodes, and a reservation that is worked out afresh in each cycle.
#[test]
fn w8_whole_nodes_and_a_dynamic_reservation() {
    let state = w8(EVENING, &["b1", "b2", "b3", "i1"], "");
    let four = "n13+n14+n15+n16 -> batch";
    assert_eq!(lines(&sp(""), &state), format!("b1 NO_NODES, b3 RESERVED, b2 START {four}, i1 NO_NODES"));
}
