//! What `pbsnodes` reads and prints.

use crate::support::{NOW, ago, golden, words};
use jiff::tz::TimeZone;
use muster_pbs::{
    flavour::Flavour::{self, PbsPro, Torque},
    queries::{NodesAction, NodesFormat, NodesRequest, is_in_state, pbsnodes},
    show::{Header, NodeJob, NodeTable, Status, dsv, json, node_line, node_state, node_table, node_text, of_node, xml},
};
use muster_schemas::{resources::IndexSet, views::NodeView};
use serde_json::{Value, json};

fn request(line: &str, flavour: Flavour) -> Result<NodesRequest, String> {
    pbsnodes(&words(line), flavour).map_err(|refusal| refusal.to_string())
}

fn read(line: &str, flavour: Flavour) -> NodesRequest {
    request(line, flavour).unwrap_or_else(|wrong| panic!("{line}: {wrong}"))
}

#[test]
fn pbsnodes_shows_lists_and_marks() {
    assert_eq!(read("-a", PbsPro), NodesRequest::default());
    assert_eq!(read("-av", PbsPro), NodesRequest::default());
    assert_eq!(read("", Torque), NodesRequest::default());
    assert_eq!(read("-v n1 n2", PbsPro).nodes, ["n1", "n2"]);
    assert_eq!(read("-a -F json", PbsPro).format, NodesFormat::Json);
    assert_eq!(read("-a -F dsv -D ';'", PbsPro).format, NodesFormat::Dsv(";".into()));
    assert_eq!(read("-x n1", Torque).format, NodesFormat::Xml);
    let table = read("-aSjL", PbsPro);
    assert!(table.summary && table.jobs && table.long);
    assert_eq!(read("-l", PbsPro).action, NodesAction::ListMarked);
    let listed = read("-ln free n1", Torque);
    assert_eq!(
        (listed.state.as_deref(), listed.nodes.as_slice(), listed.notes),
        (Some("free"), &["n1".into()][..], true)
    );
    let offline = read("-o -C 'bad disk' n1 n2", PbsPro);
    assert_eq!((offline.action, offline.comment.as_deref()), (NodesAction::Offline, Some("bad disk")));
    assert_eq!(read("-c n1", Torque).action, NodesAction::Clear);
    assert_eq!(
        (read("-r -N n n1", Torque).action, read("-N n n1", Torque).comment),
        (NodesAction::Clear, Some("".into()))
    );
    assert_eq!(read("-N note n1", Torque).action, NodesAction::Comment);
    assert_eq!(read("-o -- -x", PbsPro).nodes, ["-x"], "after -- every word is a name");
}

#[test]
fn what_pbsnodes_cannot_do_is_refused_by_name() {
    for (line, text) in [
        ("", "options or the names of nodes are missing"),
        ("-S", "the name of a node is missing"),
        ("-o", "the name of a node is missing"),
        ("-o -r n1", "conflicting options."),
        ("-l -C text", "conflicting options."),
        ("-a -F yaml", "illegal -F value: `yaml`: expected default, dsv or json"),
        ("-a -D x", "-D goes with -F dsv"),
        ("-a -S -F json", "-S goes with lists of nodes as text and with -F dsv"),
        ("-n n1", "-n requires -l"),
        ("-d n1", "-d is not supported: nodes are taken out of service one by one, with -o"),
        ("-p n1", "-p is not supported: `qmgr -c \"delete node NAME\"` removes a node"),
        ("-Z", "invalid option -- 'Z'"),
        ("-o ''", "the name of a node has 1 to 1024 bytes"),
    ] {
        assert_eq!(request(line, PbsPro), Err(text.to_owned()), "{line}");
    }
    let long = "x".repeat(1_025);
    assert!(request(&format!("-o -C {long} n1"), PbsPro).unwrap_err().contains("expected at most 1024 bytes"));
    assert!(pbsnodes(&["-C".into(), "a\nb".into(), "n1".into()], PbsPro).is_err());
}

fn node(members: Value) -> NodeView {
    let mut all = json!({
        "spec": { "name": "n1", "cores": 4, "memory_bytes": 8_589_934_592u64 }, "state": "up", "reason": null,
        "cores_used": 0, "memory_used_bytes": 0, "gpus_used": 0, "jobs": []
    });
    let (Value::Object(all_members), Value::Object(more)) = (&mut all, members) else { panic!("objects") };
    all_members.extend(more);
    serde_json::from_value(all).expect("a node")
}

fn job(id: &str, cores: &str) -> NodeJob {
    let cores: IndexSet = cores.parse().expect("cores");
    NodeJob { id: id.to_owned(), cores, is_suspended: false, is_exclusive: false }
}

/// A busy one with GPUs and properties, and one out of service.
fn nodes() -> Vec<(NodeView, Vec<NodeJob>)> {
    let busy = node(json!({
        "spec": {
            "name": "n1", "cores": 4, "memory_bytes": 8_589_934_592u64, "gpus": ["a100", "a100"],
            "properties": { "fast": { "flag": true }, "switch": { "text": "s1" } }
        },
        "cores_used": 4, "memory_used_bytes": 1_073_741_824u64, "gpus_used": 1
    }));
    let out = node(json!({
        "spec": { "name": "a-node-with-a-long-name", "cores": 2, "memory_bytes": 1_000_000u64 }, "state": "drained",
        "reason": "bad disk\u{1b}[2J", "taken_out": ago(60)
    }));
    let suspended = NodeJob { is_suspended: true, ..job("8.pbs1", "3") };
    vec![(busy, vec![job("7.pbs1", "0-2"), suspended]), (out, Vec::new())]
}

#[test]
fn nodes_have_the_states_of_the_family() {
    for (members, jobs, pro, torque) in [
        (json!({}), vec![], "free", "free"),
        (json!({ "cores_used": 3 }), vec![], "free", "free"),
        (json!({ "cores_used": 4 }), vec![], "job-busy", "job-exclusive"),
        (
            json!({ "cores_used": 1 }),
            vec![NodeJob { is_exclusive: true, ..job("1", "0") }],
            "job-exclusive",
            "job-exclusive",
        ),
        (json!({ "state": "unknown" }), vec![], "state-unknown,down", "down"),
        (json!({ "state": "lost" }), vec![], "down", "down"),
        (json!({ "state": "drained" }), vec![], "offline", "offline"),
        (json!({ "state": "drained", "cores_used": 4 }), vec![], "offline,job-busy", "offline,job-exclusive"),
        (json!({ "state": "drained", "is_down": true }), vec![], "down,offline", "down,offline"),
    ] {
        let view = node(members);
        assert_eq!(node_state(&view, &jobs, PbsPro), pro);
        assert_eq!(node_state(&view, &jobs, Torque), torque);
    }
    assert!(is_in_state("down,offline", None) && !is_in_state("job-busy", None));
    assert!(is_in_state("job-busy", Some("active")) && is_in_state("job-busy", Some("up")));
    assert!(!is_in_state("offline", Some("free")) && is_in_state("offline", Some("all")));
}

fn statuses(flavour: Flavour) -> Vec<Status> {
    nodes().iter().map(|(view, jobs)| of_node(view, jobs, flavour)).collect()
}

#[test]
fn nodes_are_shown_in_all_forms() {
    let zone = TimeZone::UTC;
    for flavour in [PbsPro, Torque] {
        golden(&format!("{flavour}-nodes.txt"), &node_text(&statuses(flavour), &zone));
    }
    golden("pbspro-nodes-dsv.txt", &dsv(&statuses(PbsPro), &zone, "|"));
    golden("torque-nodes.xml", &xml(&statuses(Torque)));
    let header = Header { now: ago(0), version: "2026.1", server: "pbs1" };
    let text = json(&statuses(PbsPro), &zone, &header);
    let parsed: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(parsed["timestamp"], NOW);
    assert_eq!(parsed["nodes"]["n1"]["jobs"], json!(["7.pbs1", "8.pbs1"]), "each job once");
    assert_eq!(parsed["nodes"]["a-node-with-a-long-name"]["last_state_change_time"], NOW - 60);
    golden("pbspro-nodes.json", &text);
}

#[test]
fn nodes_are_listed_in_a_line_each() {
    let nodes = nodes();
    let rows: Vec<_> = nodes.iter().map(|(view, jobs)| (view, jobs.clone())).collect();
    golden("pbspro-nodes-S.txt", &node_table(&rows, &NodeTable::default()));
    golden("pbspro-nodes-Sj.txt", &node_table(&rows, &NodeTable { jobs: true, ..NodeTable::default() }));
    golden("pbspro-nodes-SL.txt", &node_table(&rows, &NodeTable { long: true, ..NodeTable::default() }));
    let line = node_table(&rows[..1], &NodeTable { jobs: true, long: false, delimiter: Some("|") });
    let expected = "vnode=n1|state=job-busy|njobs=2|run=1|susp=1|mem(f/t)=7gb/8gb|ncpus(f/t)=0/4|nmics(f/t)=0/0|\
                    ngpus(f/t)=1/2|jobs=7.pbs1,8.pbs1\n";
    assert_eq!(line, expected);
    assert_eq!(node_line("n1", "offline", Some("why"), PbsPro), "n1                   offline why\n");
    let torque = "n1                   offline                    why\n";
    assert_eq!(node_line("n1", "offline", Some("why"), Torque), torque);
    assert_eq!(node_line("n1", "down", None, Torque), "n1                   down\n");
}
