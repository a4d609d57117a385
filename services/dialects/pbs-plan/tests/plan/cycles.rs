//! Rules of a cycle that the worked examples leave out.

use crate::support::{DEDICATED_TIME, config, dry, file, job, lines, queue, tables};

const NOW: &str = r#""now": "1998-03-10T10:00:00", "tz": "UTC""#;

/// PBS-Q-01, PBS-Q-12, PBS-C-15: only queued jobs are looked at; queues that are not looked at come last, by queue and arrival.
#[test]
fn queues_that_are_not_looked_at_come_last() {
    let queues = [
        r#"{"name": "route", "type": "Route", "started": true}"#.to_owned(),
        r#"{"name": "stopped", "type": "Execution", "started": false}"#.to_owned(),
        queue("left", ""),
        queue("work", ""),
    ];
    let names = [("j1", "left"), ("j2", "stopped"), ("j3", "work"), ("j4", "route"), ("j5", "stopped")];
    let mut jobs: Vec<String> = names.iter().map(|(id, queue)| job(id, queue, "ann", "", &[])).collect();
    for (number, state) in (6..).zip(["H", "T", "W", "R", "E"]) {
        let other = job(&format!("j{number}"), "work", "ann", "", &[]);
        jobs.push(other.replace(r#""state": "Q""#, &format!(r#""state": "{state}""#)));
    }
    assert_eq!(
        lines(&config("ignore_queue: left\n"), &file(NOW, &queues, &jobs)),
        "j3 START, - j4 QUEUE_NOT_EXECUTION, - j2 QUEUE_NOT_STARTED, - j5 QUEUE_NOT_STARTED, - j1 QUEUE_IGNORED"
    );
}

/// PBS-Q-02, PBS-Q-03, PBS-Q-07: limits of the server before those of the queue, of all jobs before those of users and
/// groups; jobs that start count.
#[test]
fn limits_are_tested_in_their_order() {
    let person = |id: &str, user: &str, group: &str| {
        job(id, "work", user, &format!(r#""group": "{group}","#), &[("ncpus", "1")])
    };
    let jobs = [
        person("j1", "ann", "g"),
        person("j2", "ann", "g"),
        person("j3", "bob", "g"),
        person("j4", "cat", "g"),
        person("j5", "dan", "h"),
        person("j6", "eve", "h"),
    ];
    let tables = config("sort_by: no_sort\n");
    let plan = |server: &str, more: &str| {
        let members = format!(r#"{NOW}, "server": {{{server}}}"#);
        lines(&tables, &file(&members, &[queue("work", more)], &jobs))
    };
    assert_eq!(
        plan(r#""max_user_run": 1, "max_group_run": 2"#, r#""max_running": 3,"#),
        "j1 START, j2 SERVER_USER_LIMIT, j3 START, j4 SERVER_GROUP_LIMIT, j5 START, j6 QUEUE_JOB_LIMIT"
    );
    assert_eq!(
        plan(r#""max_running": 4"#, r#""max_user_run": 1, "max_group_run": 2,"#),
        "j1 START, j2 QUEUE_USER_LIMIT, j3 START, j4 QUEUE_GROUP_LIMIT, j5 START, j6 START"
    );
    let refused = |code: &str| (1..=6).map(|number| format!("j{number} {code}")).collect::<Vec<_>>().join(", ");
    assert_eq!(plan("", r#""max_running": 0,"#), refused("QUEUE_JOB_LIMIT"));
    assert_eq!(plan(r#""max_running": 0"#, r#""max_running": 0,"#), refused("SERVER_JOB_LIMIT"));
}

/// PBS-Q-03: a job that fails all tests is told the first; without the cause of that one the next, to the last.
#[test]
fn each_test_comes_ahead_of_the_next() {
    let plan = |from: usize| {
        // The cause of each test, as long as it is there.
        let with = |test: usize, text: &str| if test >= from { text.to_owned() } else { String::new() };
        let server = [
            with(0, r#""max_running": 1,"#),
            with(1, r#""max_user_run": 0,"#),
            with(2, r#""max_group_run": 0,"#),
            r#""resources_available": {"ncpus": 4, "mem": "1gb"}"#.to_owned(),
        ];
        let limits = [
            with(3, r#""max_running": 0,"#),
            with(4, r#""max_user_run": 0,"#),
            with(5, r#""max_group_run": 0,"#),
            with(9, r#""resources_available": {"mem": "1mb"},"#),
        ];
        let members = format!(
            r#"{NOW}, "server": {{{}}}, "nodes": [{{"name": "n1", "ncpus": 4, "state": "free"}}]"#,
            server.concat()
        );
        let walltime = if from <= 6 { "200:00:00" } else { "0:01:00" };
        let (nodes, nodect) = if from <= 8 { ("1", "1") } else { ("-", "-") };
        let request = [("ncpus", "2"), ("mem", "100mb"), ("walltime", walltime), ("nodes", nodes), ("nodect", nodect)];
        let jobs = [
            job(
                "r1",
                "other",
                "eve",
                r#""group": "h", "qtime": "1998-03-01T09:00:00", "nodes": ["n1"],"#,
                &[("ncpus", "4")],
            )
            .replace(r#""state": "Q""#, r#""state": "R""#),
            job(
                "s",
                "other",
                "dan",
                r#""group": "i", "qtime": "1998-03-01T10:00:00","#,
                &[("ncpus", "4"), ("walltime", "0:01:00")],
            ),
            job("x", "work", "ann", r#""group": "g", "qtime": "1998-03-10T09:00:00","#, &request),
        ];
        let starving = if from <= 7 { "help_starving_jobs: true\n" } else { "" };
        let sched_config = format!("sort_by: no_sort\nby_queue: false\n{starving}");
        let tables =
            tables(&[("sched_config", &sched_config), ("dedicated_time", "03/11/1998 10:00 03/12/1998 10:00\n")]);
        let lines = lines(&tables, &file(&members, &[queue("work", &limits.concat()), queue("other", "")], &jobs));
        let of_it = lines.split(", ").find(|line| line.starts_with("x ")).map(str::to_owned);
        of_it.unwrap_or_else(|| panic!("{lines}"))
    };
    let codes = [
        "SERVER_JOB_LIMIT",
        "SERVER_USER_LIMIT",
        "SERVER_GROUP_LIMIT",
        "QUEUE_JOB_LIMIT",
        "QUEUE_USER_LIMIT",
        "QUEUE_GROUP_LIMIT",
        "CROSSES_DEDICATED",
        "STARVING_DRAIN",
        "NO_NODES",
        "QUEUE_RESOURCE:mem",
        "SERVER_RESOURCE:ncpus",
    ];
    for (from, code) in codes.iter().enumerate() {
        assert_eq!(plan(from), format!("x {code}"), "without the first {from} causes");
    }
}

/// PBS-Q-04, PBS-Q-05, PBS-Q-06: what is available, its stand-in, queue before server, jobs that ask for nothing, other
/// resources.
#[test]
fn resources_of_queue_and_server() {
    let jobs = [
        job("j1", "work", "ann", "", &[("mem", "600mb"), ("ncpus", "3")]),
        job("j2", "work", "ann", "", &[("mem", "600mb")]),
        job("j3", "work", "ann", "", &[("ncpus", "2")]),
        job("j4", "work", "ann", "", &[]),
        job("j5", "work", "ann", "", &[("tapes", "2"), ("ncpus", "5")]),
    ];
    let state =
        |server: &str, more: &str| file(&format!(r#"{NOW}, "server": {{{server}}}"#), &[queue("work", more)], &jobs);
    let own = r#""resources_available": {"mem": "1gb"}, "resources_max": {"mem": "1mb"},"#;
    let of_server = r#""resources_max": {"ncpus": 4, "tapes": 1, "mem": "1gb"}"#;
    let plan = |settings: &str| lines(&config(&format!("sort_by: no_sort\n{settings}")), &state(of_server, own));
    assert_eq!(
        plan(""),
        "j1 START, j2 QUEUE_RESOURCE:mem, j3 SERVER_RESOURCE:ncpus, j4 START, j5 SERVER_RESOURCE:ncpus"
    );
    assert_eq!(
        plan("muster_resources_max: per_job\n"),
        "j1 START, j2 QUEUE_RESOURCE:mem, j3 START, j4 START, j5 SERVER_RESOURCE:ncpus"
    );
    assert_eq!(
        plan("muster_check_resources: tapes\n"),
        "j1 START, j2 START, j3 START, j4 START, j5 SERVER_RESOURCE:tapes"
    );
}

/// PBS-Q-08: defaults of the queue, then of the server.
#[test]
fn defaults_count_as_requests() {
    let jobs = [job("j1", "work", "ann", "", &[]), job("j2", "work", "ann", "", &[("ncpus", "1")])];
    let members =
        format!(r#"{NOW}, "server": {{"resources_default": {{"ncpus": 9}}, "resources_available": {{"ncpus": 4}}}}"#);
    let plan = |more: &str| lines(&config(""), &file(&members, &[queue("work", more)], &jobs));
    assert_eq!(plan(""), "j1 SERVER_RESOURCE:ncpus, j2 START");
    assert_eq!(plan(r#""resources_default": {"ncpus": 3},"#), "j1 START, j2 START");
}

/// PBS-Q-10, PBS-Q-11: whole nodes, and requests that can never be met.
#[test]
fn whole_nodes() {
    let nodes = r#""nodes": [
        {"name": "n1", "ncpus": 2}, {"name": "n2", "ncpus": 4, "properties": ["fast"]},
        {"name": "n3", "ncpus": 4, "properties": ["fast"]}, {"name": "n4", "state": "down"}, {"name": "ts1", "ts": true}]"#;
    let asked = ["1:fast", "n2", "2", "n4", "5", "1:slow", "1:ppn=4", "n1"];
    let mut jobs: Vec<String> = (1..)
        .zip(asked)
        .map(|(number, nodes)| job(&format!("j{number}"), "work", "ann", "", &[("nodes", nodes)]))
        .collect();
    jobs.push(job("j9", "work", "ann", "", &[("ncpus", "64")]));
    let running =
        r#"{"id": "r1", "queue": "work", "user": "ann", "state": "R", "nodes": ["n3"], "request": {"nodes": "1"}}"#;
    jobs.push(running.into());
    let state = file(&format!("{NOW}, {nodes}"), &[queue("work", "")], &jobs);
    assert_eq!(
        lines(&config("sort_by: no_sort\n"), &state),
        "j1 n2 START, j2 NO_NODES, j3 NO_NODES, j4 NO_NODES, j5 NEVER_RUNNABLE, j6 NEVER_RUNNABLE, j7 NO_NODES, \
         j8 n1 START, j9 START"
    );
}

/// PBS-F-09, PBS-F-10, PBS-Q-11: not before the time is over; a job that can never run does not starve.
#[test]
fn who_starves() {
    let queued = |ago: i64| format!(r#""qtime": {},"#, 1_000_000_000 - ago);
    let jobs = [
        job("j1", "work", "ann", &queued(200), &[("nodes", "99")]),
        job("j2", "work", "ann", &queued(100), &[("ncpus", "9")]),
        job("j3", "work", "ann", &queued(10), &[("ncpus", "1")]),
    ];
    let state =
        file(r#""now": 1000000000, "server": {"resources_available": {"ncpus": 4}}"#, &[queue("work", "")], &jobs);
    let plan = |most: &str| {
        let text = format!("sort_by: no_sort\nhelp_starving_jobs: true\nmax_starve: {most}\n");
        lines(&config(&text), &state)
    };
    assert_eq!(plan("100"), "j1 NEVER_RUNNABLE, j2 SERVER_RESOURCE:ncpus, j3 START");
    assert_eq!(plan("99"), "j2 SERVER_RESOURCE:ncpus, j1 STARVING_DRAIN, j3 STARVING_DRAIN");
}

/// PBS-F-10, PBS-F-11: a starving job that a limit refuses drains the system, unless only resources count.
#[test]
fn starving_jobs_that_a_limit_refuses() {
    let jobs = [
        job("j1", "work", "ann", r#""qtime": 100,"#, &[]),
        job("j2", "work", "bob", r#""qtime": 999999990,"#, &[]),
        r#"{"id": "r1", "queue": "work", "user": "ann", "state": "R"}"#.to_owned(),
    ];
    let state = file(r#""now": 1000000000, "server": {"max_user_run": 1}"#, &[queue("work", "")], &jobs[..]);
    let plan = |more: &str| lines(&config(&format!("help_starving_jobs: true\n{more}")), &state);
    assert_eq!(plan(""), "j1 SERVER_USER_LIMIT, j2 STARVING_DRAIN");
    assert_eq!(plan("muster_starving_blocks: resources\n"), "j1 SERVER_USER_LIMIT, j2 START");
}

/// PBS-F-07: in queue modes a refusal blocks its queue, in a pool all; by arrival the server's order holds, and the
/// blocked jobs are told at once.
#[test]
fn strict_order_blocks_the_queue_or_the_pool() {
    let queues = [queue("A", ""), queue("B", r#""priority": 5,"#)];
    let jobs = [
        job("a1", "A", "ann", "", &[("ncpus", "2"), ("cput", "3")]),
        job("b1", "B", "ann", "", &[("ncpus", "9"), ("cput", "2")]),
        job("a2", "A", "ann", "", &[("ncpus", "1"), ("cput", "4")]),
        job("b2", "B", "ann", "", &[("ncpus", "1"), ("cput", "1")]),
        job("b3", "B", "ann", "", &[("ncpus", "1"), ("cput", "5")]),
    ];
    let members = format!(r#"{NOW}, "server": {{"resources_available": {{"ncpus": 8}}}}"#);
    let state = file(&members, &queues, &jobs);
    let plan = |more: &str| {
        let text = format!("strict_fifo: true\n{more}");
        lines(&config(&text), &state).replace("SERVER_RESOURCE:ncpus", "RES").replace("STRICT_ORDER", "STRICT")
    };
    assert_eq!(plan(""), "b2 START, b1 RES, b3 STRICT, a1 START, a2 START");
    assert_eq!(plan("round_robin: true\n"), "b2 START, a1 START, b1 RES, b3 STRICT, a2 START");
    assert_eq!(plan("by_queue: false\n"), "b2 START, b1 RES, a1 STRICT, a2 STRICT, b3 STRICT");
    let by_arrival = "muster_strict_order: arrival\n";
    assert_eq!(plan(by_arrival), "a1 START, b1 RES, b2 STRICT, b3 STRICT, a2 START");
    assert_eq!(plan(&format!("{by_arrival}by_queue: false\n")), "a1 START, b1 RES, a2 STRICT, b2 STRICT, b3 STRICT");
}

/// PBS-FS-06, PBS-FS-11, PBS-FS-12: groups are compared where paths part, and walltime times CPUs can be charged.
#[test]
fn shares_of_groups_and_other_charges() {
    let group = "g 1 root 10\nh 2 root 10\na 10 g 10\nb 11 g 10\nc 12 h 10\nd 13 h 10\n";
    let asked = [("ncpus", "2"), ("walltime", "100")];
    let jobs = ["a", "b", "c", "d"].map(|user| job(&format!("{user}1"), "work", user, "", &asked));
    let members = format!(r#"{NOW}, "usage": {{"a": 1000, "c": 100, "d": 300}}"#);
    let state = file(&members, &[queue("work", "")], &jobs);
    let plan = |more: &str| {
        let text = format!("fair_share: true\nsort_by: no_sort\n{more}");
        crate::support::order(&tables(&[("sched_config", &text), ("resource_group", group)]), &state)
    };
    assert_eq!(plan(""), "b1 c1 d1 a1");
    assert_eq!(plan("muster_fair_share_model: tree\n"), "c1 d1 b1 a1");
    let second = job("b2", "work", "b", "", &asked);
    let jobs: Vec<String> = jobs.iter().cloned().chain([second]).collect();
    let state = file(&members, &[queue("work", "")], &jobs);
    let plan = |more: &str| {
        let text = format!("fair_share: true\nsort_by: no_sort\n{more}");
        crate::support::order(&tables(&[("sched_config", &text), ("resource_group", group)]), &state)
    };
    assert_eq!(plan(""), "b1 b2 c1 d1 a1");
    assert_eq!(plan("muster_fair_share_charge: ncpus*walltime\n"), "b1 c1 b2 d1 a1");
}

/// PBS-C-15: what the plan does not follow is said by the option's name, and only where it is set.
#[test]
fn options_without_effect_are_told() {
    let state = file(NOW, &[queue("work", "")], &[]);
    assert_eq!(dry(&config(""), &state).warnings, Vec::<String>::new());
    let warnings = dry(&config("load_balancing: true\nmuster_prestage: 3\n"), &state).warnings;
    let named: Vec<&str> = warnings.iter().filter_map(|warning| warning.split(' ').nth(1)).collect();
    assert_eq!(named, ["muster_prestage"]);
}

/// The list is the order of arrival; a job that says otherwise is warned of.
#[test]
fn the_list_is_the_order_of_arrival() {
    let jobs = [
        job("j1", "work", "ann", r#""qtime": 500,"#, &[]),
        job("j2", "work", "ann", r#""qtime": 400,"#, &[]),
        job("j3", "work", "ann", "", &[]),
    ];
    let dry = dry(&config("sort_by: no_sort\n"), &file(r#""now": 1000"#, &[queue("work", "")], &jobs));
    assert_eq!(dry.lines, ["1 START j1", "2 START j2", "3 START j3"]);
    assert_eq!(dry.warnings.len(), 1, "{:?}", dry.warnings);
}

/// PBS-F-08: queues of the same priority come in the order of their creation, whatever their names.
#[test]
fn equal_queues_come_as_they_were_created() {
    let queues = ["second", "first", "third"].map(|name| queue(name, ""));
    let jobs = [("j1", "first"), ("j2", "third"), ("j3", "second")].map(|(id, queue)| job(id, queue, "ann", "", &[]));
    assert_eq!(lines(&config(""), &file(NOW, &queues, &jobs)), "j3 START, j1 START, j2 START");
}

/// PBS-F-09: jobs in dedicated queues never starve.
#[test]
fn dedicated_queues_never_starve() {
    let jobs = [
        job("d1", "ded1", "ann", r#""qtime": "1998-05-01T00:00:00","#, &[("ncpus", "9"), ("walltime", "0:10:00")]),
        job("d2", "ded1", "ann", r#""qtime": "1998-05-15T05:59:00","#, &[("ncpus", "1"), ("walltime", "0:10:00")]),
    ];
    let members = r#""now": "1998-05-15T06:00:00", "tz": "UTC", "server": {"resources_available": {"ncpus": 4}}"#;
    let tables =
        tables(&[("sched_config", "sort_by: no_sort\nhelp_starving_jobs: true\n"), ("dedicated_time", DEDICATED_TIME)]);
    assert_eq!(lines(&tables, &file(members, &[queue("ded1", "")], &jobs)), "d1 SERVER_RESOURCE:ncpus, d2 START");
}

/// PBS-F-10: starving jobs go ahead of queues and sorts, by time and then number; when none is left planning continues.
#[test]
fn planning_goes_on_behind_starving_jobs() {
    let queued = |ago: i64| format!(r#""qtime": {},"#, 1_000_000_000 - ago);
    let of = |id, queue, ago, cput| job(id, queue, "ann", &queued(ago), &[("ncpus", "1"), ("cput", cput)]);
    let jobs = [
        of("late", "work", 200, "9"),
        of("short", "work", 200, "1"),
        of("high", "high", 10, "5"),
        of("new", "work", 5, "2"),
    ];
    let queues = [queue("work", ""), queue("high", r#""priority": 9,"#)];
    let text = "help_starving_jobs: true\nmax_starve: 100\n";
    let state = file(r#""now": 1000000000, "server": {"resources_available": {"ncpus": 8}}"#, &queues, &jobs);
    assert_eq!(lines(&config(text), &state), "late START, short START, high START, new START");
}

/// PBS-F-11: nor does one that a window refuses drain the system.
#[test]
fn starving_jobs_that_a_window_refuses() {
    let jobs = [
        job("j1", "work", "ann", r#""qtime": "1998-03-01T10:00:00","#, &[("walltime", "200:00:00")]),
        job("j2", "work", "bob", r#""qtime": "1998-03-10T09:59:30","#, &[("walltime", "0:01:00")]),
    ];
    let plan = |more: &str| {
        let text = format!("help_starving_jobs: true\nmax_starve: 100\n{more}");
        let tables = tables(&[("sched_config", &text), ("dedicated_time", "03/11/1998 10:00 03/12/1998 10:00\n")]);
        lines(&tables, &file(NOW, &[queue("work", "")], &jobs))
    };
    assert_eq!(plan(""), "j1 CROSSES_DEDICATED, j2 STARVING_DRAIN");
    assert_eq!(plan("muster_starving_blocks: resources\n"), "j1 CROSSES_DEDICATED, j2 START");
}

/// PBS-Q-04: nodect is tested by default. PBS-Q-10: by a default every job is placed on whole nodes.
#[test]
fn nodes_are_counted_and_given_by_default() {
    let jobs = [job("j1", "work", "ann", "", &[("nodect", "3")]), job("j2", "work", "ann", "", &[("nodect", "2")])];
    let state = file(&format!(r#"{NOW}, "server": {{"resources_max": {{"nodect": 4}}}}"#), &[queue("work", "")], &jobs);
    assert_eq!(lines(&config("sort_by: no_sort\n"), &state), "j1 START, j2 SERVER_RESOURCE:nodect");
    let jobs = ["j1", "j2", "j3"].map(|id| job(id, "work", "ann", "", &[]));
    let members = format!(
        r#"{NOW}, "server": {{"resources_default": {{"nodes": "1", "nodect": 1}}}}, "nodes": [{{"name": "n1"}}, {{"name": "n2"}}]"#
    );
    assert_eq!(
        lines(&config(""), &file(&members, &[queue("work", "")], &jobs)),
        "j1 n1 START, j2 n2 START, j3 NO_NODES"
    );
}
