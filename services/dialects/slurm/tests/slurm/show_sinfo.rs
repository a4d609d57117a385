//! `sinfo`.

use crate::support::{ago, assert_lines, clock};
use muster_schemas::views::{NodeView, QueueView, ReservationView};
use muster_slurm::{
    show::{
        data::Asker,
        sinfo::{self, Arrangement, NodeRecord, Overview, Partition},
        squeue::Format,
    },
    words::{NodeFacts, NodeState, StateTest},
};
use serde_json::{Value, json};
use std::sync::Arc;

fn node(number: u32, state: &str, cores_used: u32, reason: Value) -> NodeView {
    let name = format!("nid{number:05}");
    let jobs: Vec<&str> = if cores_used > 0 { vec!["1"] } else { Vec::new() };
    serde_json::from_value(json!({
        "spec": { "name": name, "cores": 4, "memory_bytes": 4000u64 << 20, "properties": {"gamma": {"flag": true}} },
        "state": state, "reason": reason, "cores_used": cores_used, "memory_used_bytes": 0, "gpus_used": 0, "jobs": jobs
    }))
    .expect("a node")
}

/// The cluster of the worked example: 3 and 4 drained, 1 partly used, 2 full, 6 declared down.
fn nodes() -> Vec<Arc<NodeRecord>> {
    let record = |number| {
        let view = match number {
            1 => node(1, "up", 2, Value::Null),
            2 => node(2, "up", 4, Value::Null),
            3 | 4 => node(number, "drained", 0, json!("bad disk")),
            number => node(number, "up", 0, Value::Null),
        };
        let facts = NodeFacts { is_declared_down: number == 6, ..NodeFacts::default() };
        let mut record = NodeRecord::of(&view, facts, clock().now);
        if record.reason.is_some() {
            record.reason_user = Some("root".to_owned());
            record.reason_time = Some(ago(300));
        }
        Arc::new(record)
    };
    (1..=12).map(record).collect()
}

fn partitions() -> Vec<Arc<Partition>> {
    let all = json!({ "spec": { "name": "debug", "default_walltime_seconds": 1800 }, "default": true, "queued": 0,
        "held": 0, "running": 0 });
    let some: Vec<String> = (1..=5).map(|number| format!("nid{number:05}")).collect();
    let p2 = json!({ "spec": { "name": "p2", "max_walltime_seconds": 3600, "nodes": some }, "default": false,
        "queued": 0, "held": 0, "running": 0 });
    [all, p2].map(|view| Arc::new(Partition::of(&serde_json::from_value::<QueueView>(view).expect("a queue")))).to_vec()
}

fn list(overview: &Overview) -> String {
    sinfo::list(&partitions(), &nodes(), overview, &clock()).unwrap_or_else(|error| panic!("{error}"))
}

fn format(format: &str) -> Overview {
    Overview { format: Some(Format::Letters(format.to_owned())), no_header: true, ..Overview::default() }
}

/// EX-20, SL-C-28
#[test]
fn nodes_are_listed_by_partition_and_state() {
    assert_lines(&list(&Overview::default()), include_str!("golden/sinfo.txt"));
}

/// EX-20, SL-C-28
#[test]
fn the_summary_counts_nodes_by_use() {
    let overview = Overview { arrangement: Arrangement::Summary, ..Overview::default() };
    assert_lines(&list(&overview), include_str!("golden/sinfo-s.txt"));
}

/// EX-20, SL-C-28
#[test]
fn reasons_are_listed_with_who_gave_them_and_when() {
    let overview = Overview { arrangement: Arrangement::Reasons, ..Overview::default() };
    assert_lines(&list(&overview), include_str!("golden/sinfo-reasons.txt"));
}

/// EX-20, SL-C-28
#[test]
fn nodes_are_listed_one_by_one() {
    let overview =
        Overview { arrangement: Arrangement::Nodes, partitions: ["p2".to_owned()].into(), ..Overview::default() };
    let listed = list(&overview);
    assert_lines(&listed.lines().take(2).collect::<Vec<_>>().join("\n"), include_str!("golden/sinfo-nodes.txt"));
    assert_eq!(listed.lines().count(), 6);
    let long = list(&Overview { is_long: true, ..overview });
    assert_lines(
        &long.lines().skip(1).take(4).collect::<Vec<_>>().join("\n"),
        include_str!("golden/sinfo-nodes-long.txt"),
    );
}

/// EX-20, SL-C-28
#[test]
fn the_long_listing_begins_with_a_date() {
    let long = list(&Overview { is_long: true, ..Overview::default() });
    assert_lines(&long, include_str!("golden/sinfo-long.txt"));
}

/// SL-C-29
#[test]
fn counts_are_given_as_busy_idle_other_and_all() {
    assert_eq!(list(&format("%R %F %C %A")), "debug 2/7/3/12 6/30/12/48 2/7\np2 2/1/2/5 6/6/8/20 2/1\n");
    assert_eq!(list(&format("%D")), "12\n", "a node of several partitions counts once");
}

/// SL-C-28, SL-C-29
#[test]
fn drain_asks_for_nodes_that_are_drained_and_that_drain() {
    let mut nodes = nodes();
    let draining = NodeRecord::of(&node(7, "drained", 1, json!("x")), NodeFacts::default(), clock().now);
    assert_eq!((draining.state.short(), draining.state.long()), ("drng".to_owned(), "draining".to_owned()));
    nodes[6] = Arc::new(draining);
    let with = |word: &str| {
        let states = vec![StateTest::parse(word).expect("a state")];
        let overview = Overview { states, partitions: ["debug".to_owned()].into(), ..format("%t %N") };
        sinfo::list(&partitions(), &nodes, &overview, &clock()).unwrap()
    };
    assert_eq!(with("drain"), "drng nid00007\ndrain nid[00003-00004]\n");
    assert_eq!(with("DRAINED"), "drain nid[00003-00004]\n");
    assert_eq!(with("mix"), "mix nid00001\n");
    assert_eq!(StateTest::parse("nonsense"), None);
}

/// SL-C-28
#[test]
fn nodes_that_do_not_answer_have_a_star() {
    let lost = NodeRecord::of(&node(1, "lost", 0, json!("no heartbeat")), NodeFacts::default(), clock().now);
    assert_eq!((lost.state.short(), lost.state.flags()), ("down*".to_owned(), "DOWN*".to_owned()));
    let new = NodeRecord::of(&node(1, "unknown", 0, Value::Null), NodeFacts::default(), clock().now);
    assert_eq!(new.state.short(), "unk*");
    let reserved = NodeFacts { is_reserved: true, ..NodeFacts::default() };
    assert_eq!(NodeRecord::of(&node(1, "up", 0, Value::Null), reserved, clock().now).state.short(), "resv");
}

/// SL-C-29
#[test]
fn sizes_that_differ_are_the_least_with_a_plus_unless_they_are_to_be_exact() {
    let mut nodes = nodes();
    let mut large = (*nodes[11]).clone();
    large.cpus = 8;
    nodes[11] = Arc::new(large);
    let with = |is_exact| {
        let overview = Overview { is_exact, partitions: ["debug".to_owned()].into(), ..format("%R %c") };
        sinfo::list(&partitions(), &nodes, &overview, &clock()).unwrap()
    };
    assert_eq!(with(false), "debug 4+\n");
    assert_eq!(with(true), "debug 4\ndebug 8\n");
}

/// SL-C-29
#[test]
fn an_unknown_partition_leaves_the_header_alone() {
    let overview = Overview { partitions: ["nope".to_owned()].into(), ..Overview::default() };
    assert_eq!(list(&overview), "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n");
}

/// SL-C-29
#[test]
fn every_letter_is_a_column() {
    for letter in "PaldDtTNcmfGCFnEHuORswz".chars() {
        assert!(!list(&format(&format!("%{letter}"))).is_empty(), "{letter}");
    }
}

/// SL-C-28
#[test]
fn reservations_have_a_list_of_their_own() {
    assert_eq!(sinfo::list_reservations(&[], false, &clock()), "No reservations in the system\n");
    let view: ReservationView = serde_json::from_value(json!({
        "spec": { "name": "r1", "start": ago(60), "end": ago(-540), "nodes": {"named": ["nid00012"]} },
        "nodes": ["nid00012"], "begun": true
    }))
    .expect("a reservation");
    let listed = sinfo::list_reservations(&[view], false, &clock());
    let words: Vec<&str> = listed.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(words, ["r1", "ACTIVE", "2026-11-20T08:19:00", "2026-11-20T08:29:00", "00:10:00", "nid00012"]);
}

/// SL-C-28
#[test]
fn json_tells_nodes_with_their_partitions() {
    let command = ["sinfo", "--json"].map(str::to_owned);
    let asker = Asker { command: &command, user: "ann", group: "staff", cluster: "alpha", release: "22.05.8" };
    let object = sinfo::document(&partitions(), &nodes(), "0.1.0", &asker, clock().now);
    assert_eq!(object["nodes"][2]["state"], json!(["IDLE", "DRAIN"]));
    assert_eq!(object["nodes"][2]["partitions"], json!(["debug", "p2"]));
    assert_eq!(object["nodes"][11]["partitions"], json!(["debug"]));
    assert_eq!((&object["nodes"][0]["cpus"], &object["nodes"][0]["alloc_cpus"]), (&json!(4), &json!(2)));
}

/// SL-A-11, SL-C-28: the overview as data has the fields and types of Slurm's, an element for each line.
#[test]
fn the_overview_as_data_has_the_shape_of_slurms() {
    let command = ["sinfo", "--json"].map(str::to_owned);
    let asker = Asker { command: &command, user: "ann", group: "staff", cluster: "alpha", release: "24.05.1" };
    let told = |arrangement: Arrangement| {
        let overview = Overview { arrangement, ..Overview::default() };
        sinfo::data(&partitions(), &nodes(), &overview, &asker, &clock()).expect("known columns")
    };
    let document = told(Arrangement::Nodes);
    let mut keys: Vec<&str> = document.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["errors", "meta", "sinfo", "warnings"]);
    let lines = document["sinfo"].as_array().expect("a list");
    assert!(lines.iter().all(|line| line["nodes"]["nodes"].as_array().is_some_and(|names| names.len() == 1)));
    assert_eq!(
        lines.len(),
        list(&Overview { arrangement: Arrangement::Nodes, no_header: true, ..Overview::default() }).lines().count()
    );
    let first = &lines[0];
    for number in [
        "/port",
        "/nodes/allocated",
        "/nodes/idle",
        "/nodes/other",
        "/nodes/total",
        "/cpus/allocated",
        "/cpus/idle",
        "/cpus/other",
        "/cpus/total",
        "/cpus/minimum",
        "/cpus/maximum",
        "/cpus/load/minimum",
        "/sockets/maximum",
        "/cores/minimum",
        "/threads/minimum",
        "/disk/minimum",
        "/memory/minimum",
        "/memory/maximum",
        "/memory/allocated",
        "/memory/free/minimum/number",
        "/weight/minimum",
        "/partition/nodes/total",
        "/partition/maximums/time/number",
    ] {
        assert!(first.pointer(number).is_some_and(serde_json::Value::is_number), "{number}: {first}");
    }
    for text in ["/features/total", "/features/active", "/gres/total", "/gres/used", "/cluster", "/partition/name"] {
        assert!(first.pointer(text).is_some_and(serde_json::Value::is_string), "{text}: {first}");
    }
    assert!(first["node"]["state"].as_array().is_some_and(|words| words.iter().all(serde_json::Value::is_string)));
    let all: u64 = told(Arrangement::Summary)["sinfo"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|line| line["nodes"]["total"].as_u64())
        .sum();
    assert!(all >= nodes().len() as u64);
}

/// SL-C-29: cores that jobs still have on a node out of service are not counted twice.
#[test]
fn cores_are_with_jobs_free_or_of_no_use() {
    let counts = |state: &str, used: u32| {
        NodeRecord::of(&node(1, state, used, Value::Null), NodeFacts::default(), clock().now).cpu_counts()
    };
    assert_eq!(counts("up", 1), [1, 3, 0, 4]);
    assert_eq!(counts("drained", 1), [1, 0, 3, 4]);
    assert_eq!(counts("drained", 0), [0, 0, 4, 4]);
}

/// Nodes that sleep are marked as Slurm marks them, and are neither down nor silent.
#[test]
fn nodes_that_sleep_have_their_marks() {
    let record = |phase: &str, state: &str| {
        let mut view = node(1, state, 0, Value::Null);
        view.power = serde_json::from_value(json!({ "phase": phase, "since": "1970-01-01T00:00:00Z", "wakes": true }))
            .expect("a state");
        NodeState::of(&view, NodeFacts::default(), clock().now)
    };
    let asleep = record("asleep", "lost");
    assert_eq!(
        (asleep.short(), asleep.long(), asleep.flags()),
        ("idle~".into(), "idle~".into(), "IDLE+POWERED_DOWN".into())
    );
    assert_eq!(record("waking", "lost").short(), "idle#");
    assert_eq!(record("falling_asleep", "up").short(), "idle%");
    let test = |word: &str| StateTest::parse(word).expect("a word");
    assert!(test("powered_down").takes(asleep) && test("idle").takes(asleep));
    assert!(!test("powering_up").takes(asleep) && !test("down").takes(asleep) && !test("no_respond").takes(asleep));
}
