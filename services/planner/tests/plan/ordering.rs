//! Which jobs start and which wait, and why.

use crate::world::{World, component, job, job_of, nodes, owner, tasks};
use muster_schemas::{
    JobId,
    cluster::{ClusterConfig, QueueSpec},
    command::{Command, JobSelection},
    event::{Actor, JobChange},
    job::{ArraySpec, Component, Dependencies, Dependency, DependencyKind, Holds, JobSpec, WaitReason},
    policy::Policy,
    resources::{Alternative, IndexSet, Request},
};
use std::{collections::BTreeSet, sync::Arc};

fn queue(name: &str) -> QueueSpec {
    QueueSpec { name: name.into(), ..QueueSpec::default() }
}

fn world_of(queues: Vec<QueueSpec>) -> World {
    let mut config = ClusterConfig { nodes: nodes(2, 2), queues, ..ClusterConfig::default() };
    config.settings.default_queue = config.queues[0].name.clone();
    World::configured(config)
}

fn in_queue(spec: JobSpec, queue: &str) -> JobSpec {
    let components = spec.components.into_iter();
    let components = components.map(|component| Component { queue: Some(queue.into()), ..component }).collect();
    JobSpec { components, ..spec }
}

fn with_priority(spec: JobSpec, priority: i64) -> JobSpec {
    let components = spec.components.into_iter();
    let components = components.map(|component| Component { priority: Some(priority), ..component }).collect();
    JobSpec { components, ..spec }
}

fn resources(what: &str) -> Option<WaitReason> {
    Some(WaitReason::Resources(what.into()))
}

#[test]
fn nobody_overtakes_a_job_that_waits_for_resources() {
    let mut world = World::new(nodes(2, 2));
    let running = world.submit(tasks(3));
    let large = world.submit(tasks(4));
    let small = world.submit(tasks(1));
    assert_eq!(world.settle(), [running]);
    assert_eq!(world.reason(large), resources("cores"));
    assert_eq!(world.reason(small), Some(WaitReason::BehindJob(large)));
    world.end(running);
    assert_eq!(world.settle(), [large]);
    assert_eq!(world.reason(small), resources("cores"));
    world.end(large);
    assert_eq!(world.settle(), [small]);
}

/// OAR-G-03: queues by priority, and in a queue who came first.
#[test]
fn priorities_of_queues_then_of_jobs_then_arrival() {
    let mut world = world_of(vec![queue("low"), QueueSpec { priority: 10, ..queue("high") }]);
    let blocker = world.submit(tasks(4));
    world.settle();
    let first = world.submit(tasks(4));
    let second = world.submit(tasks(4));
    let urgent = world.submit(with_priority(tasks(4), 5));
    let high = world.submit(in_queue(tasks(4), "high"));
    world.end(blocker);
    let mut started = Vec::new();
    while let [job] = world.settle()[..] {
        started.push(job);
        world.end(job);
    }
    assert_eq!(started, [high, urgent, first, second]);
}

#[test]
fn a_change_of_priority_changes_the_order() {
    let mut world = World::new(nodes(1, 1));
    let running = world.submit(tasks(1));
    world.settle();
    let first = world.submit(tasks(1));
    let second = world.submit(tasks(1));
    world.settle();
    let change = JobChange { priority: Some(7), ..JobChange::default() };
    let modify = Command::Modify { jobs: JobSelection::Ids(vec![second]), change };
    world.command(&Actor::Ledger, modify).expect("changed");
    world.end(running);
    assert_eq!(world.settle(), [second]);
    assert_eq!(world.reason(first), resources("cores"));
}

#[test]
fn queues_with_nodes_of_their_own_do_not_hold_each_other_up() {
    let on = |name: &str, node: &str| QueueSpec { nodes: vec![node.into()], ..queue(name) };
    let mut world = world_of(vec![on("a", "n1"), on("b", "n2"), queue("everywhere")]);
    let running = world.submit(in_queue(tasks(1), "a"));
    let blocked = world.submit(in_queue(tasks(2), "a"));
    let behind = world.submit(in_queue(tasks(1), "everywhere"));
    let free = world.submit(in_queue(tasks(2), "b"));
    assert_eq!(world.settle(), [running, free]);
    assert_eq!(world.reason(blocked), resources("cores"));
    assert_eq!(world.reason(behind), Some(WaitReason::BehindJob(blocked)));
}

#[test]
fn a_job_of_two_queues_that_is_behind_in_one_holds_up_the_other() {
    let on = |name: &str, node: &str| QueueSpec { nodes: vec![node.into()], ..queue(name) };
    let mut world = world_of(vec![on("a", "n1"), on("b", "n2")]);
    world.set_policy(Policy::built_in("fcfs").unwrap());
    let running = world.submit(in_queue(tasks(1), "a"));
    let blocked = world.submit(in_queue(tasks(2), "a"));
    let parts = ["b", "a"].map(|queue| in_queue(tasks(1), queue).components.remove(0));
    let both = world.submit(JobSpec { components: parts.to_vec(), ..tasks(1) });
    let last = world.submit(in_queue(tasks(1), "b"));
    assert_eq!(world.settle(), [running]);
    assert_eq!(world.reason(both), Some(WaitReason::BehindJob(blocked)));
    assert_eq!(world.reason(last), Some(WaitReason::BehindJob(both)));
}

#[test]
fn limits_of_a_queue_hold_its_jobs_and_no_others() {
    let limited = QueueSpec { max_running_jobs: Some(1), ..queue("limited") };
    let mut world = world_of(vec![limited, queue("other")]);
    let first = world.submit(tasks(1));
    let second = world.submit(tasks(1));
    let other = world.submit(in_queue(tasks(1), "other"));
    assert_eq!(world.settle(), [first, other]);
    assert_eq!(world.reason(second), Some(WaitReason::Limit("1 running jobs in queue limited".into())));
    world.end(first);
    assert_eq!(world.settle(), [second]);
}

#[test]
fn a_limit_of_users_lets_other_users_go_on() {
    let mut world = world_of(vec![QueueSpec { max_running_jobs_per_user: Some(1), ..queue("default") }]);
    let first = world.submit_as("ada", tasks(1));
    let second = world.submit_as("ada", tasks(1));
    let other = world.submit_as("bob", tasks(1));
    assert_eq!(world.settle(), [first, other]);
    assert_eq!(world.reason(second), Some(WaitReason::Limit("1 running jobs of ada in queue default".into())));
}

#[test]
fn a_limit_of_its_second_queue_holds_a_job_and_not_those_behind_it() {
    let mut world = world_of(vec![queue("default"), QueueSpec { max_running_jobs: Some(1), ..queue("limited") }]);
    let running = world.submit(in_queue(tasks(1), "limited"));
    let parts = ["default", "limited"].map(|queue| in_queue(tasks(1), queue).components.remove(0));
    let both = world.submit(JobSpec { components: parts.to_vec(), ..tasks(1) });
    let behind = world.submit(tasks(1));
    assert_eq!(world.settle(), [running, behind]);
    assert_eq!(world.reason(both), Some(WaitReason::Limit("1 running jobs in queue limited".into())));
}

#[test]
fn a_stopped_queue_starts_nothing_and_blocks_nobody() {
    let mut world = world_of(vec![QueueSpec { started: false, ..queue("stopped") }, queue("other")]);
    let waiting = world.submit(tasks(1));
    let other = world.submit(in_queue(tasks(1), "other"));
    assert_eq!(world.settle(), [other]);
    assert_eq!(world.reason(waiting), Some(WaitReason::QueueStopped));
}

#[test]
fn a_job_that_can_never_fit_blocks_nobody() {
    let mut world = World::new(nodes(2, 4));
    let large = world.submit(tasks(8));
    let small = world.submit(tasks(1));
    world.configure(ClusterConfig { nodes: nodes(2, 2), queues: vec![queue("default")], ..ClusterConfig::default() });
    assert_eq!(world.settle(), [small]);
    assert!(matches!(world.reason(large), Some(WaitReason::NeverFits(_))), "{:?}", world.reason(large));
    world.configure(ClusterConfig { nodes: nodes(4, 2), queues: vec![queue("default")], ..ClusterConfig::default() });
    for name in ["n3", "n4"] {
        let hello = Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
        world.command(&Actor::Executor(name.into()), hello).expect("heard");
    }
    world.end(small);
    assert_eq!(world.settle(), [large]);
}

#[test]
fn a_job_that_needs_nodes_which_are_away_blocks_nobody() {
    let mut world = World::new(nodes(2, 2));
    world.drain(&["n2"]);
    let large = world.submit(tasks(4));
    let small = world.submit(tasks(1));
    assert_eq!(world.settle(), [small]);
    assert_eq!(world.reason(large), Some(WaitReason::NodesUnavailable("n2".into())));
    world.command(&Actor::Ledger, Command::ResumeNodes { nodes: vec!["n2".into()] }).expect("resumed");
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(large), resources("cores"));
}

#[test]
fn a_job_that_knows_that_nothing_can_serve_it_is_not_told_again() {
    let mut world = World::new(nodes(2, 2));
    world.drain(&["n2"]);
    let large = world.submit(tasks(4));
    assert_eq!(world.settle(), []);
    let (mut engine, now) = (world.engine().clone(), world.state().time());
    let is_told = |engine: &mut muster_planner::Engine| {
        let plan = engine.pass(now, &BTreeSet::new());
        plan.reasons.iter().any(|waiting| waiting.job == large)
    };
    assert!(!is_told(&mut engine));
    engine.set_queue(&queue("other"));
    assert!(!is_told(&mut engine), "places in the order are computed anew");
    engine.set_known_reason(large, Some(Arc::new(WaitReason::QueueStopped)));
    assert!(is_told(&mut engine), "it was told something else meanwhile");
    world.drain(&["n1"]);
    assert_eq!(world.settle(), []);
    assert_eq!(world.reason(large), Some(WaitReason::NodesUnavailable("n1,n2".into())), "the reason is another one");
}

fn array(indices: u32, max_running: Option<u32>) -> JobSpec {
    let indices = IndexSet::from_range(0, indices - 1);
    JobSpec { array: Some(ArraySpec { indices, max_running }), ..tasks(1) }
}

#[test]
fn one_array_gives_many_starts() {
    let mut world = World::new(nodes(2, 2));
    let whole = world.submit(array(6, None));
    let task = |index| JobId::task(whole.number, index);
    assert_eq!(world.settle(), [task(0), task(1), task(2), task(3)]);
    assert_eq!(world.reason(whole), resources("cores"));
    world.end(task(2));
    assert_eq!(world.settle(), [task(4)]);
}

#[test]
fn an_array_runs_as_many_tasks_as_it_may_and_lets_others_pass() {
    let mut world = World::new(nodes(2, 2));
    let whole = world.submit(array(6, Some(2)));
    let other = world.submit(tasks(1));
    assert_eq!(world.settle(), [JobId::task(1, 0), JobId::task(1, 1), other]);
    assert_eq!(world.reason(whole), Some(WaitReason::ArrayLimit));
    world.end(JobId::task(1, 0));
    assert_eq!(world.settle(), [JobId::task(1, 2)]);
}

#[test]
fn tasks_that_were_put_back_count_towards_the_limit_of_their_array() {
    let mut world = World::new(nodes(2, 2));
    let whole = world.submit(array(6, Some(2)));
    assert_eq!(world.settle(), [JobId::task(1, 0), JobId::task(1, 1)]);
    let requeue = Command::Requeue { jobs: JobSelection::Ids(vec![whole]), hold: false, delay_seconds: 0 };
    world.command(&Actor::Ledger, requeue).expect("requeued");
    let runs: Vec<_> = world.state().runs().map(|run| run.id).collect();
    runs.into_iter().for_each(|run| world.end_run(run));
    assert_eq!(world.settle().len(), 2);
}

#[test]
fn held_jobs_and_dependants_are_passed_and_come_in_when_their_gates_open() {
    let mut world = World::new(nodes(2, 2));
    let first = world.submit(tasks(1));
    let dependency = Dependency { kind: DependencyKind::Succeeded, job: Some(first), delay_seconds: 0 };
    let mut dependent = tasks(1);
    dependent.components[0].dependencies = Dependencies { all_of: vec![vec![dependency]] };
    let dependent = world.submit(dependent);
    let mut held = tasks(1);
    held.components[0].holds = Holds { user: true, ..Holds::default() };
    let held = world.submit(held);
    assert_eq!(world.settle(), [first]);
    world.end(first);
    assert_eq!(world.settle(), [dependent]);
    let release =
        Command::Release { jobs: JobSelection::Ids(vec![held]), holds: Holds { user: true, ..Holds::default() } };
    world.command(&owner("ada"), release).expect("released");
    assert_eq!(world.settle(), [held]);
}

#[test]
fn namesakes_go_one_after_the_other() {
    let mut world = World::new(nodes(2, 2));
    let singleton = || {
        let dependency = Dependency { kind: DependencyKind::Singleton, job: None, delay_seconds: 0 };
        let mut spec = JobSpec { name: "same".into(), ..tasks(1) };
        spec.components[0].dependencies = Dependencies { all_of: vec![vec![dependency]] };
        spec
    };
    let jobs = [world.submit(singleton()), world.submit(singleton()), world.submit(singleton())];
    for job in jobs {
        assert_eq!(world.settle(), [job]);
        world.end(job);
    }
}

#[test]
fn a_cycle_stops_at_the_most_starts_and_says_so() {
    let mut world = World::new(nodes(2, 2));
    world.submit(array(3, None));
    world.submit(tasks(1));
    world.set_policy(Policy { max_starts: 2, ..Policy::default() });
    let cut = world.plan();
    assert_eq!((cut.plan.starts.len(), cut.is_cut_short), (2, true));
    world.set_policy(Policy { max_starts: 100, ..Policy::default() });
    let whole = world.plan();
    assert_eq!((whole.plan.starts.len(), whole.is_cut_short), (4, false));
}

#[test]
fn a_job_that_is_left_out_blocks_nobody() {
    let mut world = World::new(nodes(1, 2));
    let first = world.submit(tasks(2));
    let second = world.submit(tasks(1));
    let left_out = BTreeSet::from([first]);
    let starts: Vec<JobId> = world.plan_without(&left_out).plan.starts.iter().map(|start| start.job).collect();
    assert_eq!(starts, [second]);
}

#[test]
fn a_queue_of_many_jobs_behind_one_is_not_walked() {
    let mut world = World::new(nodes(1, 2));
    world.submit(tasks(1));
    world.settle();
    let blocked = world.submit(tasks(2));
    let spec = job_of(component(vec![Alternative { requests: vec![Request::default()], ..Alternative::default() }]));
    let jobs = vec![spec; 1000];
    world.command(&owner("ada"), Command::Submit { jobs }).expect("accepted");
    let made = world.plan().plan;
    assert_eq!(made.starts, []);
    let told: Vec<JobId> = made.reasons.iter().map(|waiting| waiting.job).collect();
    assert_eq!(told, [blocked], "those behind are told of by the state, not one by one");
    world.settle();
    let last = JobId::job(world.state().next_job_number() - 1);
    assert_eq!(world.reason(last), Some(WaitReason::BehindJob(blocked)));
}

#[test]
fn a_default_job_takes_one_core() {
    let mut world = World::new(nodes(1, 2));
    let job = world.submit(job(Request::default()));
    world.settle();
    assert_eq!(world.shares(job), [("n1".to_owned(), "0".to_owned(), 1)]);
}
