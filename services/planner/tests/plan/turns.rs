//! Planning by turns in a cluster.

use crate::world::{World, nodes, tasks};
use muster_schemas::{
    JobId,
    cluster::{ClusterConfig, QueueSpec},
    command::Command,
    event::Actor,
    job::{JobSpec, WaitReason},
    policy::{
        ByLoad, Limit, LimitPer, LoadTable, LoadedNode, OnRefusal, OrderKey, OtherHours, Period, Policy, Starving,
        TurnRules, Turns, Visit, Windows,
    },
};

fn policy(rules: TurnRules) -> Policy {
    by(Turns { rules, ..Turns::default() })
}

fn by(turns: Turns) -> Policy {
    Policy { name: "turns".into(), order: Vec::new(), turns: Some(Box::new(turns)), ..Policy::default() }
}

fn cluster(policy: Policy) -> World {
    let queue = |name: &str, priority| QueueSpec { name: name.into(), priority, ..QueueSpec::default() };
    let queues = vec![queue("default", 0), queue("high", 9), queue("own", 0)];
    let mut world = World::configured(ClusterConfig { nodes: nodes(1, 4), queues, ..ClusterConfig::default() });
    world.set_policy(policy);
    world
}

fn in_queue(queue: &str, mut spec: JobSpec) -> JobSpec {
    spec.components[0].queue = Some(queue.into());
    spec
}

fn walltime(seconds: u64, mut spec: JobSpec) -> JobSpec {
    spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
    spec
}

/// PBS-F-05: whatever fits starts past a job that does not, and no promise is made.
#[test]
fn jobs_that_fit_start_past_one_that_does_not() {
    let mut world = cluster(policy(TurnRules::default()));
    let first = world.submit(tasks(3));
    let large = world.submit(tasks(4));
    let small = world.submit(tasks(1));
    let urgent = world.submit(in_queue("high", tasks(1)));
    assert_eq!(world.settle(), [urgent, first]);
    assert_eq!(world.reason(large), Some(WaitReason::Resources("cores".into())));
    world.end(urgent);
    assert_eq!(world.settle(), [small]);
    assert!(world.state().jobs().all(|job| job.slot.is_none()));
}

/// PBS-F-07: the jobs behind a refused one wait for it.
#[test]
fn a_refused_job_blocks_those_behind_it() {
    let rules = TurnRules { on_refusal: OnRefusal::BlocksQueue, ..TurnRules::default() };
    let mut world = cluster(policy(rules.clone()));
    let large = world.submit(tasks(3));
    world.settle();
    let waiting = world.submit(tasks(2));
    let behind = world.submit(tasks(1));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(behind), Some(WaitReason::BehindJob(waiting)));
    let other = world.submit(in_queue("own", tasks(1)));
    assert_eq!(world.settle(), [other], "another queue is not blocked");
    world.end(other);
    world.set_policy(policy(TurnRules { on_refusal: OnRefusal::BlocksAll, visit: Visit::Pool, ..rules }));
    let other = world.submit(in_queue("own", tasks(1)));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(other), Some(WaitReason::BehindJob(waiting)));
    world.end(large);
    assert_eq!(world.settle(), [waiting, behind, other]);
}

/// PBS-Q-12: jobs of a queue that the policy leaves out wait for another policy, not for the queue, which is started.
#[test]
fn jobs_of_queues_that_are_left_out_are_told_so() {
    let turns = Turns { ignored_queues: vec!["own".into()], ..Turns::default() };
    let mut world = cluster(by(turns));
    let job = world.submit(in_queue("own", tasks(1)));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(job), Some(WaitReason::Resources("a policy that plans its queue".into())));
    world.set_policy(policy(TurnRules::default()));
    assert_eq!(world.settle(), [job]);
}

/// PBS-F-10: a starving job goes first, and nothing starts until it does.
#[test]
fn a_starving_job_goes_first_and_keeps_the_rest_waiting() {
    let starving = Some(Starving { after_seconds: 60, only_for_resources: false });
    let mut world = cluster(policy(TurnRules { starving, ..TurnRules::default() }));
    let first = world.submit(tasks(2));
    world.settle();
    let large = world.submit(tasks(4));
    world.pass(100, first);
    let small = world.submit(in_queue("high", tasks(1)));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(small), Some(WaitReason::BehindJob(large)));
    world.end(first);
    assert_eq!(world.settle(), [large]);
}

/// PBS-Q-05, PBS-Q-07: what running jobs asked for counts, also after the cycle in which they started.
#[test]
fn what_jobs_ask_for_is_limited_by_name() {
    let limit = Limit { max_attributes: [("cores".to_owned(), 3)].into(), ..Limit::default() };
    let of_user = Limit { per: LimitPer::User, max_running_jobs: Some(2), ..Limit::default() };
    let mut world = cluster(Policy { limits: vec![limit, of_user], ..policy(TurnRules::default()) });
    let first = world.submit(tasks(2));
    assert_eq!(world.settle(), [first]);
    let two = world.submit(tasks(2));
    let one = world.submit(tasks(1));
    assert_eq!(world.settle(), [one]);
    assert_eq!(world.reason(two), Some(WaitReason::Limit("2 running jobs of ada".into())));
    world.end(one);
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(two), Some(WaitReason::Limit("3 cores".into())));
    world.end(first);
    assert_eq!(world.settle(), [two]);
}

/// PBS-Q-07: a job that an operator has started counts for limits like any other.
#[test]
fn starts_by_hand_count() {
    let of_user = Limit { per: LimitPer::User, max_running_jobs: Some(1), ..Limit::default() };
    let mut world = cluster(Policy { limits: vec![of_user], ..policy(TurnRules::default()) });
    let (first, second) = (world.submit(tasks(1)), world.submit(tasks(1)));
    let starts = world.plan().plan.starts;
    assert_eq!(starts.iter().map(|start| start.job).collect::<Vec<_>>(), [first]);
    let run = Command::RunJob { job: second, placement: starts[0].placement.clone() };
    world.command(&Actor::Ledger, run).expect("it fits");
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(first), Some(WaitReason::Limit("1 running jobs of ada".into())));
    world.end(second);
    assert_eq!(world.settle(), [first]);
}

/// PBS-F-14, PBS-T-08: order and rules change with the hours, and the planner plans again at that moment.
#[test]
fn other_hours_have_another_order() {
    let mut world = cluster(Policy::default());
    let now = world.state().time();
    let (from, until) = (now.plus_seconds(1000), now.plus_seconds(2000));
    let shortest = vec![OrderKey::Spt];
    let other_hours =
        Some(OtherHours { periods: vec![Period { from, until }], order: shortest, rules: TurnRules::default() });
    world.set_policy(by(Turns { other_hours, ..Turns::default() }));
    let first = world.submit(tasks(4));
    world.settle();
    let long = world.submit(walltime(500, tasks(4)));
    let short = world.submit(walltime(100, tasks(4)));
    world.settle();
    assert_eq!(world.plan().next_wake, Some(from));
    world.pass(1000, first);
    world.end(first);
    assert_eq!(world.plan().next_wake, Some(until));
    assert_eq!(world.settle(), [short]);
    world.pass(2000, short);
    let shorter = world.submit(walltime(50, tasks(4)));
    world.end(short);
    assert_eq!(world.settle(), [long], "the order of arrival holds again");
    assert!(world.reason(shorter).is_some());
}

/// PBS-T-10, PBS-T-11, PBS-T-12: in a window only its queues are served, and nobody starts who may run past its border.
#[test]
fn windows_belong_to_their_queues() {
    let mut world = cluster(Policy::default());
    let now = world.state().time();
    let (from, until) = (now.plus_seconds(1000), now.plus_seconds(2000));
    let windows = Some(Windows { queue_prefix: "ow".into(), periods: vec![Period { from, until }] });
    world.set_policy(by(Turns { windows, ..Turns::default() }));
    let runs_on = world.submit(walltime(900, tasks(1)));
    let crosses = world.submit(walltime(5000, tasks(1)));
    let of_window = world.submit(in_queue("own", walltime(100, tasks(1))));
    assert_eq!(world.settle(), [runs_on]);
    assert_eq!(world.plan().next_wake, Some(from));
    assert!(matches!(world.reason(crosses), Some(WaitReason::Resources(_))));
    assert!(matches!(world.reason(of_window), Some(WaitReason::Resources(_))));
    world.pass(1000, runs_on);
    assert_eq!(world.settle(), [of_window]);
    assert_eq!(world.plan().next_wake, Some(until));
    world.pass(1000, runs_on);
    assert_eq!(world.settle(), [crosses]);
    assert!(world.state().job(runs_on).is_some_and(|job| job.run().is_some()), "it is left alone");
}

fn loads(settle_seconds: u64) -> Turns {
    let node = |name: &str| LoadedNode { name: name.into(), ideal_millionths: 2_000_000, max_millionths: 3_000_000 };
    Turns {
        rules: TurnRules { by_load: Some(ByLoad::Least), ..TurnRules::default() },
        loads: Some(Box::new(LoadTable { nodes: vec![node("n1"), node("n2")], settle_seconds })),
        ..Turns::default()
    }
}

fn by_load(settle_seconds: u64, measured: &[(&str, u64)]) -> World {
    let queues = vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }];
    let mut world = World::configured(ClusterConfig { nodes: nodes(3, 4), queues, ..ClusterConfig::default() });
    world.set_policy(by(loads(settle_seconds)));
    measured.iter().for_each(|(node, tenths)| measure(&mut world, node, *tenths));
    world
}

fn measure(world: &mut World, node: &str, tenths: u64) {
    let command =
        Command::NodeLoadMeasured { load_millionths: tenths * 100_000, system_percent: None, used: Vec::new() };
    world.command(&Actor::Executor(node.into()), command).unwrap();
}

fn node_of(world: &World, job: JobId) -> String {
    world.shares(job).into_iter().map(|(node, ..)| node).collect()
}

/// PBS-L-03, PBS-L-04: the least loaded node takes the job, whatever is free on others; jobs with names of nodes, or for
/// several, are placed as ever.
#[test]
fn the_load_chooses_the_node() {
    let mut world = by_load(0, &[("n1", 15), ("n2", 5), ("n3", 0)]);
    let first = world.submit(tasks(1));
    assert_eq!(world.settle(), [first]);
    assert_eq!(node_of(&world, first), "n2");
    let mut named = tasks(1);
    named.components[0].alternatives[0].requests[0].nodes = vec!["n3".into()];
    let named = world.submit(named);
    assert_eq!(world.settle(), [named]);
    assert_eq!(node_of(&world, named), "n3");
}

/// PBS-L-08: a node whose load is not known is not chosen; a load that is measured starts a waiting job.
#[test]
fn a_job_waits_for_a_node_with_a_low_load() {
    let mut world = by_load(0, &[("n1", 21)]);
    let job = world.submit(tasks(1));
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(job), Some(WaitReason::Resources("a node with a low load and room for it".into())));
    measure(&mut world, "n2", 20);
    assert_eq!(world.settle(), [job]);
    assert_eq!(node_of(&world, job), "n2");
}

/// PBS-L-05: a start counts until a load is measured so much later.
#[test]
fn a_start_counts_until_the_load_shows_it() {
    let mut world = by_load(60, &[("n1", 0), ("n2", 5)]);
    let first = world.submit(tasks(2));
    assert_eq!(world.settle(), [first]);
    assert_eq!(node_of(&world, first), "n1");
    world.report_start(first);
    let second = world.submit(tasks(1));
    assert_eq!(world.settle(), [second]);
    assert_eq!(node_of(&world, second), "n2", "n1 counts 2 cores more than its load");
    world.report_start(second);
    world.pass(61, first);
    measure(&mut world, "n1", 0);
    measure(&mut world, "n2", 5);
    let third = world.submit(tasks(1));
    assert_eq!(world.settle(), [third]);
    assert_eq!(node_of(&world, third), "n1");
}

/// PBS-L-07: the turn stays with the cluster over cycles.
#[test]
fn nodes_are_chosen_in_turn_over_cycles() {
    let mut world = by_load(0, &[("n1", 0), ("n2", 0)]);
    let mut turns = loads(0);
    turns.rules.by_load = Some(ByLoad::InTurn);
    world.set_policy(by(turns));
    let chosen: Vec<String> = (0..3)
        .map(|_| {
            let job = world.submit(tasks(1));
            assert_eq!(world.settle(), [job]);
            node_of(&world, job)
        })
        .collect();
    assert_eq!(chosen, ["n1", "n2", "n1"]);
}
