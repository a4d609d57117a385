//! Renewals of promises after resources were freed that only a look at the whole cluster finds.

use crate::{
    agreement::assert_agrees_with_reference,
    clusters::Cluster,
    history::{Draft, History, Step},
    requests::node_name,
    twin::replay,
};
use muster_planner::model::{ComponentDemand, Demand, Holder};
use muster_schemas::{
    JobId,
    cluster::QueueSpec,
    policy::{Policy, QueuePolicy},
    resources::{Alternative, Count, Level, LevelCount, NodeSpec, Request},
};
use std::sync::Arc;

/// A queue that is served before the other.
const EASY_QUEUE: &str = "side";

/// This many nodes with one core each.
fn cluster(nodes: usize) -> Cluster {
    let node = |number| NodeSpec {
        name: node_name(number),
        cores: 1,
        sockets: 1,
        memory_bytes: 1,
        gpus: Vec::new(),
        properties: Default::default(),
    };
    let queue = |name: &str, priority| QueueSpec { name: name.into(), priority, ..QueueSpec::default() };
    Cluster {
        nodes: (0..nodes).map(node).collect(),
        queues: vec![queue("main", 0), queue(EASY_QUEUE, 1)],
        licences: 0,
        default_memory_per_core_bytes: None,
    }
}

/// Submits a job to a queue that runs for this percentage of its time.
fn submit(queue: &str, request: Request, walltime_seconds: u64, runs_percent: u32) -> Step {
    let alternative =
        Alternative { requests: vec![request], walltime_seconds: Some(walltime_seconds), ..Alternative::default() };
    let component =
        ComponentDemand { queue: queue.into(), reservation: None, deadline: None, alternatives: [alternative].into() };
    Step::Submit(Draft {
        demand: Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 }),
        holder: Arc::new(Holder { user: "ada".into(), group: 100, account: None, charges: Vec::new(), marks: None }),
        priority: 0,
        array: None,
        runs_percent,
        copies: 1,
    })
}

/// Jobs that run on one node each: their walltimes, and the percentage of it that they run.
fn runs<const N: usize>(runs: [(u64, u32); N]) -> impl Iterator<Item = Step> {
    runs.into_iter().map(|(walltime_seconds, runs_percent)| submit("main", nodes(1), walltime_seconds, runs_percent))
}

fn nodes(count: u32) -> Request {
    Request { path: vec![LevelCount { level: Level::Node, count: Count::exactly(count) }], ..Request::default() }
}

/// The start of a job's slot at the end of the history, in seconds from the beginning.
fn promised_at_the_end(history: &History, job: u64) -> Option<i64> {
    let mut start = None;
    replay(history, |twin, planned| {
        assert_agrees_with_reference(planned, &twin.world);
        start = twin.engine.slot(JobId::job(job)).map(|slot| slot.start.unix_seconds() - 1_000_000);
    });
    start
}

#[test]
fn a_start_that_only_the_own_slot_of_a_later_job_makes_possible_is_found_after_an_equal_job_failed_there() {
    let runs = runs([(280, 100), (280, 100), (250, 100), (300, 100), (500, 2)]);
    // The first is promised the first two nodes at 280, the second the next two at 300.
    let waiting = [(); 2].map(|()| submit("main", nodes(2), 100, 100));
    // The run on the last node ends at 10: the second can have that node and the third at 250, because from 300 on the
    // third is its own; the first cannot.
    let steps = runs.chain(waiting).chain([Step::Pass(10)]).collect();
    let policy = Policy::built_in("conservative").expect("it is built in");
    let history = History { cluster: cluster(5), policy, steps };
    assert_eq!(promised_at_the_end(&history, 6), Some(280));
    assert_eq!(promised_at_the_end(&history, 7), Some(250));
}

#[test]
fn what_the_first_job_of_an_easy_queue_does_not_take_in_the_end_is_found_by_those_who_made_way_for_it() {
    let runs = runs([(30, 100), (30, 10), (30, 10)]);
    // The first two nodes are reserved from 30 to 35 for the job of the queue ahead, so the other is promised the first
    // node, which is its only one, at 35.
    let first_node = Request { excluded_nodes: [1, 2].map(node_name).into(), ..nodes(1) };
    let waiting = [submit(EASY_QUEUE, nodes(2), 5, 100), submit("main", first_node, 20, 100)];
    // The last two nodes become free at 3, and the job ahead starts there.
    let steps = runs.chain(waiting).chain([Step::Pass(3)]).collect();
    let mut policy = Policy::built_in("conservative").expect("it is built in");
    let easy = Policy::built_in("easy").expect("it is built in").backfill;
    policy.queues.insert(EASY_QUEUE.to_owned(), QueuePolicy { order: None, backfill: Some(easy) });
    let history = History { cluster: cluster(3), policy, steps };
    assert_eq!(promised_at_the_end(&history, 5), Some(30));
}

#[test]
fn a_promise_of_the_policy_before_keeps_nobody_from_starting_under_one_that_keeps_none() {
    // The second job is promised both nodes at 60, when the time of the first is over; the first ends at 3.
    let jobs = [submit("main", nodes(2), 60, 5), submit("main", nodes(2), 500, 100)];
    let easy = Policy::built_in("easy").expect("it is built in");
    let steps = jobs.into_iter().chain([Step::Policy(Box::new(easy)), Step::Pass(3)]).collect();
    let policy = Policy::built_in("conservative").expect("it is built in");
    let history = History { cluster: cluster(2), policy, steps };
    let mut runs = 0;
    replay(&history, |twin, planned| {
        assert_agrees_with_reference(planned, &twin.world);
        runs += planned.plan.starts.len();
    });
    assert_eq!(runs, 2);
}
