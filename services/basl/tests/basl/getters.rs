//! Getters and their unset values.

use super::support::{Server, in_queue, job, node, printed_on, queue, run};
use muster_basl::{Amount, Amounts, Job, Node, Queue, Snapshot};

fn amounts(list: &[(&str, &str)]) -> Amounts {
    list.iter().map(|(name, amount)| ((*name).to_owned(), Amount::from(*amount))).collect()
}

/// Prints calls on the objects `s`, `q`, `j` and `c`.
fn shown(snapshot: &Snapshot, calls: &str) -> Vec<String> {
    let prints: String = calls.split_inclusive(')').map(|call| format!("print({});\n", call.trim())).collect();
    let text = format!(
        "Que firstQue(Set Que qs) {{ Que q; foreach(q in qs) {{ return(q); }} return(NOQUE); }}\n\
         Job firstJob(Set Job js) {{ Job j; foreach(j in js) {{ return(j); }} return(NOJOB); }}\n\
         CNode firstNode(Set CNode cs) {{ CNode c; foreach(c in cs) {{ return(c); }} return(NOCNODE); }}\n\
         sched_main() {{ Server s; Que q; Job j; CNode c; s = AllServersLocalHostGet();\n\
         q = firstQue(ServerQueuesGet(s)); j = firstJob(ServerJobsGet(s)); c = firstNode(AllNodesGet());\n{prints}}}"
    );
    printed_on(&text, snapshot)
}

const SERVER: &str = r#"ServerInetAddrGet(s) ServerDefQueGet(s) ServerStateGet(s) ServerMaxRunJobsGet(s)
    ServerMaxRunJobsPerUserGet(s) ServerMaxRunJobsPerGroupGet(s) ServerIntResAvailGet(s, "ncpus")
    ServerSizeResAvailGet(s, "mem") ServerStringResAvailGet(s, "arch") ServerIntResAssignGet(s, "ncpus")
    ServerSizeResAssignGet(s, "mem") ServerStringResAssignGet(s, "arch")"#;
const QUE: &str = r#"QueNameGet(q) QueTypeGet(q) QueStateGet(q) QuePriorityGet(q) QueNumJobsGet(q) QueMaxRunJobsGet(q)
    QueMaxRunJobsPerUserGet(q) QueMaxRunJobsPerGroupGet(q) QueIntResAvailGet(q, "ncpus") QueSizeResAvailGet(q, "mem")
    QueStringResAvailGet(q, "arch") QueIntResAssignGet(q, "ncpus") QueSizeResAssignGet(q, "mem")
    QueStringResAssignGet(q, "arch")"#;
const JOB: &str = r#"JobIdGet(j) JobNameGet(j) JobOwnerNameGet(j) JobEffectiveUserNameGet(j) JobEffectiveGroupNameGet(j)
    JobStateGet(j) JobPriorityGet(j) JobRerunFlagGet(j) JobInteractiveFlagGet(j) JobDateTimeCreatedGet(j)
    JobEmailAddrGet(j) JobStageinFilesGet(j) JobStageoutFilesGet(j) JobIntResReqGet(j, "walltime")
    JobSizeResReqGet(j, "mem") JobStringResReqGet(j, "nodes") JobIntResUseGet(j, "cput") JobSizeResUseGet(j, "mem")
    JobStringResUseGet(j, "nodes")"#;
const NODE: &str = r#"CNodeNameGet(c) CNodeOsGet(c) CNodeStateGet(c) CNodeTypeGet(c) CNodePropertiesGet(c) CNodeVendorGet(c)
    CNodeNumCpusGet(c) CNodeMemTotalGet(c, "real") CNodeMemAvailGet(c, "virtual") CNodeLoadAveGet(c) CNodeIdletimeGet(c)"#;
const FURTHER: &str = r#"CNodeCpuPercentIdleGet(c) CNodeCpuPercentSysGet(c) CNodeCpuPercentUserGet(c)
    CNodeCpuPercentGuestGet(c) CNodeNetworkBwGet(c, "x") CNodeDiskSpaceTotalGet(c, "x") CNodeDiskSpaceAvailGet(c, "x")
    CNodeDiskSpaceReservedGet(c, "x") CNodeDiskInBwGet(c, "x") CNodeDiskOutBwGet(c, "x") CNodeSwapSpaceTotalGet(c, "x")
    CNodeSwapSpaceAvailGet(c, "x") CNodeSwapInBwGet(c, "x") CNodeSwapOutBwGet(c, "x") CNodeTapeSpaceTotalGet(c, "x")
    CNodeTapeSpaceAvailGet(c, "x") CNodeTapeInBwGet(c, "x") CNodeTapeOutBwGet(c, "x") CNodeSrfsSpaceTotalGet(c, "x")
    CNodeSrfsSpaceAvailGet(c, "x") CNodeSrfsSpaceReservedGet(c, "x") CNodeSrfsInBwGet(c, "x") CNodeSrfsOutBwGet(c, "x")"#;

/// PBS-X-09: unset values, of objects that lack a value and of no object.
#[test]
fn what_is_unset_has_a_value_that_says_so() {
    let none = Snapshot::default();
    let bare = Snapshot {
        queues: vec![Queue { name: "q1".into(), ..Queue::default() }],
        nodes: vec![Node { name: "n1".into(), ..Node::default() }],
        jobs: vec![Job { id: "1".into(), ..Job::default() }],
        ..Snapshot::default()
    };
    let server = ["null", "null", "2", "0", "0", "0", "-1", "-1b", "null", "-1", "-1b", "null"];
    assert_eq!(shown(&bare, SERVER), server);
    let que = ["-1", "0", "0", "0", "0", "0", "0", "-1", "-1b", "null", "-1", "-1b", "null"];
    assert_eq!(
        shown(&bare, QUE)[1..].to_vec(),
        ["-1", "0", "0", "0", "0", "0", "0", "-1", "-1b", "null", "-1", "-1b", "null"]
    );
    assert_eq!(shown(&none, QUE), [&["null"], &que[..]].concat());
    let job = [
        "null", "null", "null", "null", "-1", "0", "-1", "0", "()", "null", "null", "null", "-1", "-1b", "null", "-1",
        "-1b", "null",
    ];
    assert_eq!(shown(&bare, JOB), [&["1"], &job[..]].concat());
    assert_eq!(shown(&none, JOB), [&["null"], &job[..]].concat());
    let node = ["null", "-2", "6", "null", "null", "-1", "-1b", "-1b", "-1.000000", "-1"];
    assert_eq!(shown(&bare, NODE), [&["n1"], &node[..]].concat());
    assert_eq!(shown(&none, NODE)[3], "-2");
    let further = [
        "-1", "-1", "-1", "-1", "-1", "-1b", "-1b", "-1b", "-1", "-1", "-1b", "-1b", "-1", "-1", "-1b", "-1b", "-1",
        "-1", "-1b", "-1b", "-1b", "-1", "-1",
    ];
    assert_eq!(shown(&bare, FURTHER), further);
    assert_eq!(shown(&none, FURTHER), further);
}

/// PBS-X-09
#[test]
fn getters_give_what_the_snapshot_has() {
    let snapshot = Snapshot {
        server: muster_basl::Server {
            name: Some("db".into()),
            default_queue: Some("fast".into()),
            max_running: Some(9),
            max_user_run: Some(3),
            max_group_run: Some(4),
            resources_available: amounts(&[("ncpus", "64"), ("mem", "2gb"), ("arch", "irix6")]),
            resources_assigned: amounts(&[("ncpus", "8"), ("mem", "1gb"), ("arch", "x")]),
        },
        queues: vec![Queue {
            priority: Some(5),
            max_running: Some(2),
            max_user_run: Some(1),
            max_group_run: Some(6),
            resources_available: amounts(&[("ncpus", "32"), ("mem", "3gb")]),
            ..queue("fast")
        }],
        nodes: vec![Node {
            ts: true,
            ncpus: Some(4),
            physmem: Some("512mb".into()),
            arch: Some("linux".into()),
            idletime: Some(30),
            properties: Some("big,n1b".into()),
            vendor: Some("sgi".into()),
            values: amounts(&[
                ("CNodeMemAvailGet[virtual]", "100mb"),
                ("CNodeDiskInBwGet[x]", "77"),
                ("CNodeCpuPercentSysGet", "12"),
            ]),
            ..node("n1", "free,busy", Some(0.75))
        }],
        jobs: vec![Job {
            name: Some("sim".into()),
            owner: Some("ann@db".into()),
            user: Some("ann".into()),
            group: Some("staff".into()),
            priority: Some(-7),
            rerunnable: Some(true),
            interactive: Some(true),
            ctime: Some(895_226_400),
            mail: Some("ann@x".into()),
            stagein: Some("a@h:b".into()),
            stageout: Some("c@h:d".into()),
            request: amounts(&[("walltime", "1:00:00"), ("mem", "10mb"), ("nodes", "2:big"), ("ncpus", "2")]),
            used: amounts(&[("cput", "90"), ("mem", "1mb")]),
            ..in_queue("fast", job("12.db", "R"))
        }],
        ..Snapshot::default()
    };
    let server = ["db", "fast", "2", "9", "3", "4", "64", "2gb", "irix6", "8", "1gb", "x"];
    assert_eq!(shown(&snapshot, SERVER), server);
    // What the queue does not say is summed up over its running job.
    let que = ["fast", "0", "1", "5", "1", "2", "1", "6", "32", "3gb", "null", "2", "10mb", "null"];
    assert_eq!(shown(&snapshot, QUE), que);
    let job = [
        "12.db",
        "sim",
        "ann@db",
        "ann",
        "staff",
        "4",
        "-7",
        "1",
        "1",
        "(05/15/1998@10:00:00)",
        "ann@x",
        "a@h:b",
        "c@h:d",
        "3600",
        "10mb",
        "2:big",
        "90",
        "1mb",
        "null",
    ];
    assert_eq!(shown(&snapshot, JOB), job);
    let node = ["n1", "linux", "3", "5", "big,n1b", "sgi", "4", "512mb", "100mb", "0.750000", "30"];
    assert_eq!(shown(&snapshot, NODE), node);
    let further = shown(&snapshot, FURTHER);
    assert_eq!((further[1].as_str(), further[8].as_str()), ("12", "77"));
}

/// PBS-X-09: a name that the program computes is found as one that it spells out.
#[test]
fn names_of_resources_can_be_computed() {
    let mut snapshot = Snapshot { jobs: vec![job("1", "Q")], ..Snapshot::default() };
    snapshot.jobs[0].request = amounts(&[("walltime", "60"), ("mem", "5mb")]);
    let text = "sched_main() { Job j; String n; foreach(j in ServerJobsGet(AllServersLocalHostGet())) {
        n = \"wall\" + \"time\"; print(JobIntResReqGet(j, n)); print(JobStringResReqGet(j, \"m\" + \"em\"));
        print(JobSizeResReqGet(j, n + \"x\")); } }";
    assert_eq!(printed_on(text, &snapshot), ["60", "5mb", "-1b"]);
}

/// PBS-X-09: the numbers of nodes, all and those of a query.
#[test]
fn nodes_are_counted_and_reserved() {
    let big = |node: Node| Node { properties: Some("big".into()), ..node };
    let snapshot = Snapshot {
        nodes: vec![
            big(node("n1", "free", None)),
            node("n2", "free", None),
            big(node("n3", "job-exclusive", None)),
            node("n4", "reserve", None),
            node("n5", "down", None),
            node("n6", "offline", None),
        ],
        ..Snapshot::default()
    };
    let text = "Void counts(Server s) { print(ServerNodesNumAvailGet(s)); print(ServerNodesNumAllocGet(s));
          print(ServerNodesNumRsvdGet(s)); print(ServerNodesNumDownGet(s)); }
        sched_main() { Server s; s = AllServersLocalHostGet(); counts(s);
          print(ServerNodesQuery(s, \"nodes=big\")); counts(s);
          ServerNodesQuery(s, \"nodes=2:big\"); print(ServerNodesNumAvailGet(s));
          ServerNodesQuery(s, \"nodes=3:big\"); print(ServerNodesNumAvailGet(s));
          ServerNodesQuery(s, \"nodes\"); print(ServerNodesNumAvailGet(s));
          print(ServerNodesQuery(s, \"cpus=3\")); print(ServerNodesQuery(NOSERVER, \"nodes\"));
          print(ServerNodesReserve(s, \"nodes=2\", 0)); print(ServerNodesRelease(s, 7)); print(ServerNodesRelease(s, 8));
          counts(NOSERVER); }";
    let mut server = Server::default();
    let outcome = run(text, &snapshot, &mut server);
    let lines: Vec<&str> = outcome.printed.lines().collect();
    assert_eq!(outcome.fault, None);
    assert_eq!(
        lines,
        ["2", "1", "1", "2", "1", "1", "1", "0", "0", "0", "-1", "2", "0", "0", "7", "1", "0", "0", "0", "0", "0"]
    );
    assert_eq!(server.reservations, ["nodes=2 0"]);
}

/// PBS-X-09: the node of the server, and the servers.
#[test]
fn local_host_and_all_servers() {
    let text = "sched_main() { Server s; print(AllNodesLocalHostGet()); foreach(s in AllServersGet()) { print(s); }
        print(ServerNodesGet(AllServersLocalHostGet()) EQ AllNodesGet()); }";
    let mut snapshot = Snapshot {
        server: muster_basl::Server { name: Some("db".into()), ..Default::default() },
        other_servers: vec![muster_basl::Server { name: Some("ruby".into()), ..Default::default() }],
        nodes: vec![node("n1", "free", None)],
        ..Snapshot::default()
    };
    assert_eq!(printed_on(text, &snapshot), ["n1", "db", "ruby", "1"]);
    snapshot.nodes.push(node("db", "free", None));
    assert_eq!(printed_on(text, &snapshot)[0], "db");
    snapshot.nodes[1].name = "n2".into();
    assert_eq!(printed_on(text, &snapshot)[0], "NOCNODE");
}

/// The state file of the dry run is a snapshot; what is absent is unset, and what a program cannot ask for is ignored.
#[test]
fn a_state_file_is_a_snapshot() {
    let json = r#"{"now": 895226400, "tz": "UTC",
        "server": {"max_running": 5, "resources_available": {"ncpus": 16, "mem": "2gb"}, "resources_default": {"x": 1}},
        "queues": [{"name": "fast", "type": "execution", "started": true, "priority": 3, "max_user_run": 2}],
        "nodes": [{"name": "n1", "ts": true, "state": "free", "ncpus": 4, "physmem": "1gb", "arch": "linux",
                   "loadave": 0.25, "ideal_load": 3.0, "max_load": 4.5}],
        "jobs": [{"id": "1", "queue": "fast", "user": "ann", "group": "g", "state": "R", "qtime": 895226000, "etime": 1,
                  "priority": 1, "interactive": false, "request": {"ncpus": 2, "walltime": "0:10:00", "x": 1.5},
                  "used": {}, "started": 895226100, "nodes": ["n1"]}],
        "usage": {"ann": 3}, "last_decay": 0}"#;
    let snapshot: Snapshot = serde_json::from_str(json).expect("a state file");
    let again: Snapshot = serde_json::from_str(&serde_json::to_string(&snapshot).expect("JSON")).expect("JSON");
    assert_eq!(again, snapshot);
    assert_eq!(shown(&snapshot, SERVER)[3..], ["5", "0", "0", "16", "2gb", "null", "2", "-1b", "null"]);
    assert_eq!(shown(&snapshot, QUE)[..7], ["fast", "0", "1", "3", "1", "0", "2"]);
    assert_eq!(
        shown(&snapshot, "JobDateTimeCreatedGet(j) JobStringResReqGet(j, \"x\")"),
        ["(05/15/1998@09:53:20)", "1.5"]
    );
    assert_eq!(shown(&snapshot, "CNodeTypeGet(c) CNodeLoadAveGet(c)"), ["5", "0.250000"]);
}
