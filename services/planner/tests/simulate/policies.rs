//! Policy files: a file equal to a built-in policy gives the same bytes, and SWF fields reach orders,
//! queues and limits.

use super::{
    common::{built_in, csv, job, run, run_trace, starts},
    worked_example::example,
};
use muster_planner::{
    policy_file,
    simulate::{Machine, Workload, simulate},
};
use muster_schemas::{
    cluster::{ClusterConfig, QueueSpec},
    policy::{BUILT_IN_POLICIES, Charge, FairShare, OrderKey, Policy, ShareTable, TurnRules, Turns, UsageRule, Visit},
    resources::{Count, NodeSpec},
};
use muster_swf::{Headers, Trace, TraceJob};
use std::{collections::BTreeMap, sync::Arc};

fn policy(text: &str) -> Policy {
    policy_file::parse(text, "test.toml").unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn headers(text: &str) -> Headers {
    Trace::read(text.as_bytes(), "headers", Some(1)).expect("the size is given").headers
}

/// A policy file equal to a built-in policy gives the same bytes (M-SIM-4).
#[test]
fn a_file_that_says_what_a_built_in_policy_says_gives_the_same_bytes() {
    let files = [
        ("fcfs", "version = 1\norder = [\"fcfs\"]\n[backfill]\nmode = \"none\"\n"),
        ("easy", "version = 1\norder = [\"fcfs\"]\n[backfill]\nmode = \"easy\"\n"),
        ("easy", "version = 1\norder = [{ formula = \"submit\" }]\n[backfill]\nmode = \"easy\"\nreservations = 1\n"),
        ("conservative", "version = 1\n[backfill]\nmode = \"conservative\"\n"),
        ("spt", "version = 1\norder = [{ formula = \"walltime\" }]\n[backfill]\nmode = \"easy\"\n"),
        ("saf", "version = 1\norder = [{ formula = \"walltime * procs\" }]\n[backfill]\nmode = \"easy\"\n"),
        (
            "wfp3",
            "version = 1\norder = [{ formula = \"-(wait / walltime)^3 * procs\" }]\n[backfill]\nmode = \"easy\"\n",
        ),
    ];
    for (name, text) in files {
        let found = run_trace(&example(), &policy(text));
        assert_eq!(csv(&found), csv(&run_trace(&example(), &built_in(name))), "{text}");
    }
    for name in BUILT_IN_POLICIES {
        let printed = policy_file::print(&built_in(name));
        let found = run_trace(&example(), &policy(&printed));
        assert_eq!(csv(&found), csv(&run_trace(&example(), &built_in(name))), "{printed}");
    }
}

/// PBS-P-01: under planning by turns, orders know by name what the jobs of a trace ask for.
#[test]
fn turns_know_what_jobs_ask_for() {
    let rules = TurnRules { visit: Visit::Pool, ..TurnRules::default() };
    let of = |text: &str| Policy {
        order: vec![OrderKey::Formula { text: text.to_owned(), descending: false }],
        turns: Some(Box::new(Turns { rules: rules.clone(), ..Turns::default() })),
        ..Policy::default()
    };
    let jobs = [job(1, 0, 10, 100, 2), job(2, 1, 10, 300, 1), job(3, 2, 10, 50, 2)];
    let starts_by = |text: &str| starts(&run(&jobs, &headers(""), 2, &of(text)));
    assert_eq!(starts_by("attribute(\"walltime_seconds\")"), [0, 20, 10]);
    assert_eq!(starts_by("attribute(\"cores\")"), [0, 10, 20]);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    for name in BUILT_IN_POLICIES {
        assert_eq!(csv(&run_trace(&example(), &built_in(name))), csv(&run_trace(&example(), &built_in(name))));
    }
}

#[test]
fn a_formula_uses_the_fields_of_the_trace() {
    let fields = |id, user, group, application, queue, partition| TraceJob {
        user,
        group,
        application,
        queue,
        partition,
        ..job(id, 0, 10, 10, 1)
    };
    // Each field puts another job first.
    let jobs = [fields(1, 5, 5, 5, 5, 5), fields(2, 4, 9, 9, 9, 9), fields(3, 9, 4, 9, 9, 9), fields(4, 9, 9, 4, 9, 9)];
    for (formula, first) in
        [("user", 1), ("group", 2), ("application", 3), ("-queue", 1), ("attribute(\"partition\")", 0)]
    {
        let policy = policy(&format!("version = 1\norder = [{{ formula = '{formula}' }}]\n"));
        let found = starts(&run(&jobs, &Headers::default(), 1, &policy));
        assert_eq!(found[first], 0, "{formula}: {found:?}");
    }
}

/// Two queues of a trace, by number, by name and by partition.
fn two_queues() -> [TraceJob; 4] {
    let of_queue = |id, queue, estimate| TraceJob { queue, partition: queue, ..job(id, 0, estimate, estimate, 1) };
    [of_queue(1, 1, 30), of_queue(2, 1, 10), of_queue(3, 2, 30), of_queue(4, 2, 10)]
}

#[test]
fn a_queue_has_a_policy_of_its_own_by_name_by_number_or_by_partition() {
    let own_order =
        |name: &str| policy(&format!("version = 1\norder = [\"fcfs\"]\n[queue.{name}]\norder = [\"spt\"]\n"));
    let plain = starts(&run(&two_queues(), &Headers::default(), 1, &own_order("nobody")));
    assert_eq!(plain, [0, 30, 40, 70]);
    let expected = |found: &[i64]| found[3] < found[2] && found[0] < found[1];
    let named = headers("; Queue: 1 long\n; Queue: 2 - short - for tests\n; Partition: 2 debug\n");
    for (name, headers) in [("2", &Headers::default()), ("short", &named), ("debug", &named)] {
        let found = starts(&run(&two_queues(), headers, 1, &own_order(name)));
        assert!(expected(&found), "{name}: {found:?}");
    }
}

#[test]
fn limits_count_the_users_and_queues_of_the_trace() {
    let of_user = |id, user| TraceJob { user, ..job(id, 0, 10, 10, 1) };
    let jobs = [of_user(1, 1), of_user(2, 1), of_user(3, 2)];
    let one_each = policy("version = 1\n[[limit]]\nper = \"user\"\nmax_running_jobs = 1\n");
    assert_eq!(starts(&run(&jobs, &Headers::default(), 3, &one_each)), [0, 10, 0]);
    let per_queue = policy("version = 1\n[[limit]]\nper = \"queue\"\nmax_cores = 1\n");
    let named = headers("; Queue: 1 long\n; Queue: 2 short\n");
    assert_eq!(starts(&run(&two_queues(), &named, 4, &per_queue)), [0, 30, 0, 30]);
}

#[test]
fn jobs_that_a_policy_never_lets_start_are_told() {
    let small = policy("version = 1\n[[limit]]\nper = \"user\"\nmax_cores = 2\n");
    let jobs = [job(17, 0, 10, 10, 1), job(18, 0, 10, 10, 3)];
    let simulation = run(&jobs, &Headers::default(), 4, &small);
    let summary = simulation.summary(Default::default());
    assert_eq!((summary.jobs, summary.never_started), (2, 1));
    let stuck = simulation.first_stuck.as_ref().expect("job 18 never starts");
    assert_eq!(stuck.job_id, 18);
    assert!(stuck.reason.as_ref().is_some_and(|reason| reason.contains("limit")), "{stuck:?}");
    assert_eq!(csv(&simulation).lines().count(), 2);
}

fn node(name: &str, cores: u32) -> NodeSpec {
    NodeSpec {
        name: name.into(),
        cores,
        sockets: 1,
        memory_bytes: 1 << 30,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    }
}

#[test]
fn on_a_cluster_jobs_run_on_nodes_and_in_its_queues() {
    let nodes = vec![node("n1", 2), node("n2", 2), node("n3", 4)];
    let queue = |name: &str, nodes: &[&str]| QueueSpec {
        name: name.into(),
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        ..QueueSpec::default()
    };
    let queues = vec![queue("default", &[]), queue("short", &["n1"])];
    let machine = Machine::Cluster(Box::new(ClusterConfig { nodes, queues, ..ClusterConfig::default() }));
    assert_eq!(machine.procs(), 8);
    let named = headers("; Queue: 2 short\n");
    let short = |id, procs| TraceJob { queue: 2, ..job(id, 0, 10, 10, procs) };
    // Job 2 fits the cluster but not the one node of its queue; job 3 has to wait for that node, job 4 does not.
    let jobs = [short(1, 2), short(2, 3), short(3, 1), job(4, 1, 10, 10, 6)];
    let policy = Arc::new(built_in("easy"));
    let workload = Workload::new(&jobs, &named, &machine, &policy);
    assert_eq!(workload.dropped_for_size(), 1);
    let simulation = simulate(&machine, &workload, &policy, &mut |_| {}).expect("it can be simulated");
    assert_eq!(starts(&simulation), [0, 10, 1]);
}

/// With the size of nodes, jobs have the shapes that a user would give them: whole nodes, or cores of one node.
#[test]
fn jobs_ask_for_whole_nodes_or_for_cores_of_one() {
    let nodes = vec![node("n1", 4), node("n2", 4), node("n3", 2)];
    let queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    let machine = Machine::Cluster(Box::new(ClusterConfig { nodes, queues, ..ClusterConfig::default() }));
    let policy = Arc::new(built_in("easy"));
    // Three cores of one node, twice; then two whole nodes; then six and twelve processors, which are no number of nodes.
    let jobs =
        [job(1, 0, 10, 10, 3), job(2, 0, 10, 10, 3), job(3, 1, 10, 10, 8), job(4, 30, 10, 10, 6), job(5, 30, 5, 5, 10)];
    let simulated = |nodes_of| {
        let workload = Workload::in_shapes(&jobs, &Headers::default(), &machine, &policy, nodes_of);
        let levels = |at: usize| {
            let request = &workload.jobs()[at].demand.components[0].alternatives[0].requests[0];
            request.path.iter().map(|level| level.count).collect::<Vec<_>>()
        };
        let paths: Vec<_> = (0..jobs.len()).map(levels).collect();
        let simulation = simulate(&machine, &workload, &policy, &mut |_| {}).expect("it can be simulated");
        (paths, starts(&simulation))
    };
    let counts = |counts: [u32; 2]| counts.map(Count::exactly).to_vec();
    let (paths, shaped) = simulated(Some(4));
    assert_eq!(paths, [counts([1, 3]), counts([1, 3]), counts([2, 4]), vec![], vec![]]);
    assert_eq!(shaped, [0, 0, 10, 30, 40]);
    assert!(simulated(None).0.iter().all(Vec::is_empty));
}

#[test]
fn a_pool_can_be_larger_than_any_node() {
    let most = Machine::MAX_POOL_PROCS;
    let jobs = [job(1, 0, 5, 5, 1_000_000), job(2, 0, 5, 5, u64::from(most - 1_000_000)), job(3, 0, 5, 5, 1)];
    for name in ["fcfs", "easy", "conservative"] {
        assert_eq!(starts(&run(&jobs, &Headers::default(), most, &built_in(name))), [0, 0, 5], "{name}");
    }
}

#[test]
fn a_pool_that_cannot_be_counted_is_told() {
    let policy = Arc::new(built_in("easy"));
    for procs in [0, Machine::MAX_POOL_PROCS + 1, u32::MAX] {
        let machine = Machine::Pool { procs };
        let workload = Workload::new(&[], &Headers::default(), &machine, &policy);
        let error = simulate(&machine, &workload, &policy, &mut |_| {}).expect_err("there is no such pool");
        assert!(error.to_string().contains(&procs.to_string()), "{error}");
    }
}

#[test]
fn walltimes_of_a_century_and_of_a_thousand_are_simulated() {
    let century = 3_155_760_000;
    let jobs = [job(1, 0, 1, century, 1), job(2, 0, 1, 10 * century, 1), job(3, 0, century, century, 1)];
    for name in BUILT_IN_POLICIES {
        let found = starts(&run(&jobs, &Headers::default(), 1, &built_in(name)));
        assert!(found.iter().all(|start| *start <= century + 1), "{name}: {found:?}");
    }
}

#[test]
fn times_beyond_what_can_be_counted_are_told() {
    let machine = Machine::Pool { procs: 1 };
    let policy = Arc::new(built_in("easy"));
    for odd in [job(7, i64::MAX, 1, 1, 1), job(7, 0, i64::MAX, i64::MAX, 1), job(7, 1, i64::MAX / 2, i64::MAX, 1)] {
        let workload = Workload::new(&[odd], &Headers::default(), &machine, &policy);
        let error = simulate(&machine, &workload, &policy, &mut |_| {}).expect_err("it is too late");
        assert!(error.to_string().starts_with("job 7: time "), "{error}");
    }
    let guess = job(7, 0, 1, i64::MAX, 1);
    assert_eq!(starts(&run(&[guess], &Headers::default(), 1, &policy)), [0]);
}

/// Turns in order of arrival, in which the users who have used least come first.
fn fair_turns(charge: Charge, half_life_seconds: u64) -> Policy {
    let rules = TurnRules { visit: Visit::Pool, fair_share: Some(FairShare::default()), ..TurnRules::default() };
    let usage = Some(UsageRule { charge, half_life_seconds, sync_seconds: 0 });
    let shares = Some(ShareTable { unknown_shares: 10, ..ShareTable::default() });
    let turns = Turns { rules, usage, shares, ..Turns::default() };
    Policy { name: "fair".into(), turns: Some(Box::new(turns)), ..Policy::default() }
}

fn of_user(user: i64, job: TraceJob) -> TraceJob {
    TraceJob { user, ..job }
}

/// PBS-FS-05, PBS-FS-08: what the users of a trace have used decides whose job is next, and half-lives count.
#[test]
fn users_who_have_used_less_come_first_in_a_simulation() {
    let jobs = [
        of_user(1, job(1, 0, 100, 100, 4)),
        of_user(3, job(2, 1, 900, 900, 4)),
        of_user(1, job(3, 10, 10, 10, 4)),
        of_user(2, job(4, 11, 10, 10, 4)),
    ];
    let headers = headers("; MaxProcs: 4\n");
    let starts = |half_life| starts(&run(&jobs, &headers, 4, &fair_turns(Charge::CpuSeconds, half_life)));
    assert_eq!(starts(0), [0, 100, 1010, 1000], "user 1 has used 400 seconds, user 2 nothing");
    assert_eq!(starts(100), [0, 100, 1000, 1010], "nothing is left of them");
}

/// PBS-FS-12: a charge of cores times time counts while a job runs, one of processor time at its end.
#[test]
fn cores_times_time_are_charged_while_jobs_run_in_a_simulation() {
    let jobs = [
        of_user(1, job(1, 0, 1000, 1000, 4)),
        of_user(3, job(2, 0, 100, 100, 4)),
        of_user(1, job(3, 10, 10, 10, 4)),
        of_user(2, job(4, 11, 10, 10, 4)),
    ];
    let headers = headers("; MaxProcs: 8\n");
    let starts = |charge| starts(&run(&jobs, &headers, 8, &fair_turns(charge, 0)));
    assert_eq!(starts(Charge::CoreSeconds), [0, 0, 110, 100]);
    assert_eq!(starts(Charge::CpuSeconds), [0, 0, 100, 110]);
}
