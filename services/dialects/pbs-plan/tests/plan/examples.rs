//! The worked examples W0 to W4 and W6, literally.

use crate::support::{
    DEDICATED_TIME, RESOURCE_GROUP, SCHED_CONFIG, STRICT_GROUP, config, file, job, lines, order, queue, tables,
};

const NOW: &str = r#""now": "1998-03-10T10:00:00", "tz": "UTC""#;

/// W0: PBS-F-05, PBS-F-06, PBS-F-07, PBS-F-14, PBS-Q-05: the sample in prime and in non-prime time.
#[test]
fn w0_the_sample_in_both_modes() {
    let holidays = include_str!("../../../../../docs/examples/pbs/sched_priv/holidays");
    let tables = tables(&[("sched_config", SCHED_CONFIG), ("holidays", holidays)]);
    let queues = [queue("A", r#""priority": 10,"#), queue("B", r#""priority": 20,"#)];
    let jobs = [
        job("a1", "A", "u1", "", &[("ncpus", "4"), ("cput", "1:00:00")]),
        job("a2", "A", "u2", "", &[("ncpus", "2"), ("cput", "0:10:00")]),
        job("b1", "B", "u1", "", &[("ncpus", "6"), ("cput", "0:30:00")]),
        job("b2", "B", "u3", "", &[("ncpus", "4"), ("cput", "0:20:00")]),
    ];
    let at = |now: &str| {
        let server = r#""server": {"resources_available": {"ncpus": 8}}"#;
        file(&format!(r#""now": "{now}", "tz": "UTC", {server}"#), &queues, &jobs)
    };
    assert_eq!(
        lines(&tables, &at("1998-03-10T10:00:00")),
        "b2 START, b1 SERVER_RESOURCE:ncpus, a2 START, a1 SERVER_RESOURCE:ncpus"
    );
    assert_eq!(
        lines(&tables, &at("1998-03-10T20:00:00")),
        "a2 START, b2 START, b1 SERVER_RESOURCE:ncpus, a1 STRICT_ORDER"
    );
}

/// W1: PBS-S-01, PBS-S-02, PBS-S-03, PBS-S-04, PBS-S-06, PBS-FS-10.
#[test]
fn w1_every_sort() {
    let owners = ["sally", "bob", "ceo", "larry", "manager", "vp", "alice", "sally"];
    let asked = [
        ("2:00:00", "400mb", "1:00:00", "0"),
        ("0:30:00", "100mb", "3:00:00", "50"),
        ("1:00:00", "800mb", "0:30:00", "0"),
        ("0:30:00", "200mb", "2:00:00", "-10"),
        ("4:00:00", "400mb", "6:00:00", "100"),
        ("-", "50mb", "0:45:00", "0"),
        ("1:00:00", "-", "2:00:00", "50"),
        ("0:10:00", "1600mb", "-", "10"),
    ];
    let jobs: Vec<String> = (1..)
        .zip(owners.iter().zip(asked))
        .map(|(number, (owner, (cput, mem, walltime, priority)))| {
            let more = format!(r#""priority": {priority},"#);
            let request = [("cput", cput), ("mem", mem), ("walltime", walltime)];
            job(&format!("J{number}"), "work", owner, &more, &request)
        })
        .collect();
    let state = file(NOW, &[queue("work", "")], &jobs);
    let multi = "multi_sort\nkey: shortest_job_first\nkey: smallest_memory_first\nkey: high_priority_first";
    for (sort, expected) in [
        ("no_sort", "J1 J2 J3 J4 J5 J6 J7 J8"),
        ("shortest_job_first", "J8 J2 J4 J3 J7 J1 J5 J6"),
        ("longest_job_first", "J5 J1 J3 J7 J2 J4 J8 J6"),
        ("smallest_memory_first", "J6 J2 J4 J1 J5 J3 J8 J7"),
        ("largest_memory_first", "J8 J3 J1 J5 J4 J2 J6 J7"),
        ("high_priority_first", "J5 J2 J7 J8 J1 J3 J6 J4"),
        ("low_priority_first", "J4 J1 J3 J6 J8 J2 J7 J5"),
        ("large_walltime_first", "J5 J2 J4 J7 J1 J6 J3 J8"),
        ("short_walltime_first", "J3 J6 J1 J4 J7 J2 J5 J8"),
        ("fair_share", "J3 J6 J5 J4 J1 J8 J2 J7"),
        (multi, "J8 J2 J4 J3 J7 J1 J5 J6"),
    ] {
        let sched_config = format!("unknown_shares: 1\nsort_by: {sort}\n");
        let tables = tables(&[("sched_config", &sched_config), ("resource_group", STRICT_GROUP)]);
        assert_eq!(order(&tables, &state), expected, "{sort}");
    }
}

/// W2: PBS-F-05, PBS-F-06, PBS-F-08, PBS-Q-02.
#[test]
fn w2_queues_take_turns() {
    let queues = [queue("A", r#""priority": 10,"#), queue("B", r#""priority": 30,"#), queue("C", r#""priority": 20,"#)];
    let jobs = ["a1", "b1", "a2", "c1", "c2", "a3"].map(|id| job(id, &id[..1].to_uppercase(), "ann", "", &[]));
    let state = file(&format!(r#"{NOW}, "server": {{"max_running": 4}}"#), &queues, &jobs);
    for (settings, started, refused) in [
        ("by_queue: true", ["b1", "c1", "c2", "a1"], ["a2", "a3"]),
        ("round_robin: true", ["b1", "c1", "a1", "c2"], ["a2", "a3"]),
        ("by_queue: false", ["a1", "b1", "a2", "c1"], ["c2", "a3"]),
        ("by_queue: true\nsort_queues: false", ["a1", "a2", "a3", "b1"], ["c1", "c2"]),
        ("round_robin: true\nsort_queues: false", ["a1", "b1", "c1", "a2"], ["c2", "a3"]),
    ] {
        let started = started.map(|job| format!("{job} START"));
        let refused = refused.map(|job| format!("{job} SERVER_JOB_LIMIT"));
        let expected: Vec<String> = started.into_iter().chain(refused).collect();
        let tables = config(&format!("sort_by: no_sort\n{settings}\n"));
        assert_eq!(lines(&tables, &state), expected.join(", "), "{settings}");
    }
}

/// W3: PBS-F-07, PBS-F-09, PBS-F-10, PBS-Q-05.
#[test]
fn w3_starving_jobs_and_strict_order() {
    let queued = |ago_seconds: i64| format!(r#""qtime": {},"#, 1_000_000_000 - ago_seconds);
    let jobs = [
        job("x1", "work", "ann", &queued(26 * 3600), &[("ncpus", "8"), ("cput", "4:00:00")]),
        job("x2", "work", "ann", &queued(25 * 3600), &[("ncpus", "2"), ("cput", "1:00:00")]),
        job("x3", "work", "ann", &queued(3600), &[("ncpus", "4"), ("cput", "0:30:00")]),
        job("x4", "work", "ann", &queued(60), &[("ncpus", "1"), ("cput", "0:10:00")]),
    ];
    let r1 = r#"{"id": "r1", "queue": "work", "user": "ann", "state": "R", "request": {"ncpus": 4}}"#.to_owned();
    let running: Vec<String> = jobs.iter().cloned().chain([r1]).collect();
    let members = r#""now": 1000000000, "server": {"resources_available": {"ncpus": 8}}"#;
    let with_r1 = file(members, &[queue("work", "")], &running);
    let without = file(members, &[queue("work", "")], &jobs);
    for (settings, running, gone) in [
        ("", "x4 START, x3 RES, x2 START, x1 RES", "x4 START, x3 START, x2 START, x1 RES"),
        ("sort_by: no_sort", "x1 RES, x2 START, x3 RES, x4 START", "x1 START, x2 RES, x3 RES, x4 RES"),
        (
            "strict_fifo: true",
            "x4 START, x3 RES, x2 STRICT_ORDER, x1 STRICT_ORDER",
            "x4 START, x3 START, x2 START, x1 RES",
        ),
        (
            "strict_fifo: true\nsort_by: no_sort",
            "x1 RES, x2 STRICT_ORDER, x3 STRICT_ORDER, x4 STRICT_ORDER",
            "x1 START, x2 RES, x3 STRICT_ORDER, x4 STRICT_ORDER",
        ),
        (
            "help_starving_jobs: true",
            "x1 RES, x4 STARVING_DRAIN, x3 STARVING_DRAIN, x2 STARVING_DRAIN",
            "x1 START, x2 RES, x4 STARVING_DRAIN, x3 STARVING_DRAIN",
        ),
    ] {
        let tables = config(&format!("max_starve: 24:00:00\n{settings}\n"));
        let found = |state: &str| lines(&tables, state).replace("SERVER_RESOURCE:ncpus", "RES");
        assert_eq!(found(&with_r1), running, "{settings}, r1 running");
        assert_eq!(found(&without), gone, "{settings}, r1 gone");
    }
}

/// The jobs of W4.
const FAIR: [(&str, &str, &str); 8] = [
    ("f1", "usr7", "1:00:00"),
    ("f2", "usr3", "0:30:00"),
    ("f3", "usr1", "0:10:00"),
    ("f4", "usr6", "0:20:00"),
    ("f5", "usr3", "0:05:00"),
    ("f6", "zed", "2:00:00"),
    ("f7", "usr8", "0:40:00"),
    ("f8", "usr1", "0:01:00"),
];

fn fair_state(members: &str) -> String {
    let jobs = FAIR.map(|(id, user, cput)| job(id, "work", user, "", &[("cput", cput)]));
    let usage =
        r#""usage": {"usr1": 1000, "usr3": 4000, "usr4": 500, "usr6": 2000, "usr7": 10000, "usr8": 100, "zed": 6000}"#;
    file(&format!("{NOW}, {usage}{members}"), &[queue("work", "")], &jobs)
}

/// W4: PBS-FS-05, PBS-FS-06, PBS-FS-07, PBS-FS-08, PBS-F-13.
#[test]
fn w4_shares_choose_the_next_job() {
    let no_sort = "fair_share: true\nsort_by: no_sort\nunknown_shares: 10\n";
    let sorted = "fair_share: true\nunknown_shares: 10\n";
    let tables = |config: &str| tables(&[("sched_config", config), ("resource_group", RESOURCE_GROUP)]);
    assert_eq!(order(&tables(no_sort), &fair_state("")), "f7 f3 f4 f8 f2 f6 f5 f1");
    let limited = fair_state(r#", "server": {"max_running": 3}"#);
    let started = "f7 START, f3 START, f4 START";
    let refused = ["f8", "f2", "f5", "f6", "f1"].map(|job| format!("{job} SERVER_JOB_LIMIT")).join(", ");
    assert_eq!(lines(&tables(no_sort), &limited), format!("{started}, {refused}"));
    assert_eq!(order(&tables(sorted), &fair_state("")), "f7 f8 f3 f4 f5 f6 f2 f1");
    let later = fair_state(r#", "last_decay": "1998-03-08T10:00:00""#);
    assert_eq!(order(&tables(no_sort), &later), "f7 f3 f4 f2 f6 f8 f1 f5");
}

/// W6: PBS-T-10, PBS-T-11.
#[test]
fn w6_dedicated_time() {
    let tables = tables(&[("sched_config", "sort_by: no_sort\n"), ("dedicated_time", DEDICATED_TIME)]);
    let asked = [
        ("d1", "batch", "7:15:00"),
        ("d2", "batch", "7:15:01"),
        ("d3", "batch", "-"),
        ("d4", "batch", "0:30:00"),
        ("d5", "ded1", "0:10:00"),
        ("d6", "ded1", "3:15:00"),
        ("d7", "ded1", "3:15:01"),
    ];
    let jobs = asked.map(|(id, queue, walltime)| job(id, queue, "ann", "", &[("walltime", walltime)]));
    for (now, expected) in [
        ("1998-05-14T22:00:00", ["START", "X", "X", "START", "D", "D", "D"]),
        ("1998-05-15T05:15:00", ["D", "D", "D", "D", "START", "START", "X"]),
        ("1998-05-15T08:20:00", ["D", "D", "D", "D", "START", "X", "X"]),
        ("1998-05-15T08:30:00", ["START", "START", "X", "START", "D", "D", "D"]),
        ("1998-06-10T23:30:00", ["D", "D", "D", "D", "START", "X", "X"]),
        ("1998-06-11T00:00:00", ["START", "START", "START", "START", "D", "D", "D"]),
    ] {
        let members = format!(r#""now": "{now}", "tz": "Europe/Zurich""#);
        let state = file(&members, &[queue("batch", ""), queue("ded1", "")], &jobs);
        let found = lines(&tables, &state).replace("CROSSES_DEDICATED", "X").replace("DEDICATED_TIME", "D");
        let verdict = |((id, ..), verdict): (&(&str, &str, &str), &&str)| {
            format!("{}{id} {verdict}", if *verdict == "D" { "- " } else { "" })
        };
        let all: Vec<String> = asked.iter().zip(&expected).map(verdict).collect();
        let (later, first): (Vec<_>, Vec<_>) = all.into_iter().partition(|line| line.starts_with('-'));
        let expected: Vec<String> = first.into_iter().chain(later).collect();
        assert_eq!(found, expected.join(", "), "{now}");
    }
}

/// W7: PBS-L-02, PBS-L-03, PBS-L-04, PBS-L-05.
#[test]
fn w7_loads() {
    let nodes = r#""nodes": [
        {"name": "ts1", "ts": true, "state": "free", "ncpus": 4, "loadave": 0.8, "ideal_load": 2, "max_load": 4},
        {"name": "ts2", "ts": true, "state": "free", "ncpus": 2, "loadave": 0.5, "ideal_load": 1, "max_load": 3},
        {"name": "ts3", "ts": true, "state": "free", "ncpus": 4, "loadave": 3.2, "ideal_load": 3, "max_load": 4}]"#;
    let jobs: Vec<String> = [("j1", "1"), ("j2", "1"), ("j3", "1"), ("j4", "1"), ("j5", "2")]
        .map(|(id, cpus)| job(id, "work", "ann", "", &[("ncpus", cpus)]))
        .to_vec();
    let state = |nodes: &str| file(&format!("{NOW}, {nodes}"), &[queue("work", "")], &jobs);
    let least = config("sort_by: no_sort\nload_balancing: true\n");
    let placed = "j1 ts1 START, j2 ts2 START, j3 ts2 START, j4 ts1 START, j5 NO_NODE";
    assert_eq!(lines(&least, &state(nodes)), placed);
    let in_turn = config("sort_by: no_sort\nload_balancing_rr: true\n");
    assert_eq!(
        lines(&in_turn, &state(nodes)),
        "j1 ts1 START, j2 ts2 START, j3 ts1 START, j4 ts2 START, j5 NO_NODE",
        "PBS-L-07"
    );
    // PBS-L-08: without balancing no node is named.
    let none = config("sort_by: no_sort\n");
    assert!(lines(&none, &state(nodes)).starts_with("j1 START, j2 START"));
}

/// PBS-Q-09, PBS-L-08: what a timeshared node must have.
#[test]
fn timeshared_nodes_have_what_jobs_ask_for() {
    let nodes = r#""nodes": [
        {"name": "old", "ts": true, "state": "free", "ncpus": 8, "physmem": "1gb", "arch": "irix", "loadave": 3},
        {"name": "new", "ts": true, "state": "free", "ncpus": 4, "physmem": "4gb", "arch": "linux", "loadave": 0},
        {"name": "unknown", "ts": true, "state": "free", "ncpus": 8, "physmem": "8gb", "arch": "linux"},
        {"name": "down", "ts": true, "state": "down", "ncpus": 8, "physmem": "8gb", "arch": "linux", "loadave": 0}]"#;
    let placed = |request: &[(&str, &str)]| {
        let jobs = [job("j", "work", "ann", "", request)];
        lines(&config("load_balancing: true\n"), &file(&format!("{NOW}, {nodes}"), &[queue("work", "")], &jobs))
    };
    assert_eq!(placed(&[]), "j new START");
    assert_eq!(placed(&[("ncpus", "5")]), "j old START");
    assert_eq!(placed(&[("arch", "irix")]), "j old START");
    assert_eq!(placed(&[("host", "old")]), "j old START");
    assert_eq!(placed(&[("mem", "2gb"), ("ncpus", "4")]), "j new START");
    assert_eq!(
        placed(&[("mem", "5gb")]),
        "j NO_NODE",
        "the load of one with more memory is not known, the other is down"
    );
}
