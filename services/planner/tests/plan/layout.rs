//! Nodes that follow each other, and nodes in few groups (SL-C-12).

use crate::world::{World, component, job, job_of, node, nodes, owner, tasks, with_property};
use muster_schemas::{
    JobId, Timestamp,
    event::Actor,
    job::{JobSpec, WaitReason},
    policy::Policy,
    resources::{Alternative, Count, FewGroups, Level, LevelCount, NodeSpec, Request, Sharing},
    views::ReasonWord,
};
use proptest::prelude::*;

fn on_nodes(count: u32) -> Request {
    let path = vec![LevelCount { level: Level::Node, count: Count::exactly(count) }];
    Request { path, tasks: Some(count), sharing: Sharing::Exclusive, ..Request::default() }
}

fn in_a_row(request: Request) -> JobSpec {
    job_of(component(vec![Alternative { requests: vec![request], contiguous: true, ..Alternative::default() }]))
}

/// A job of whole nodes on this many switches or fewer, which waits a minute for that.
fn on_switches(count: u32, most: u32) -> JobSpec {
    let groups = Some(FewGroups { property: "switch".into(), most, wait_seconds: 60 });
    let requests = vec![on_nodes(count)];
    let walltime_seconds = Some(600);
    job_of(component(vec![Alternative { requests, groups, walltime_seconds, ..Alternative::default() }]))
}

/// Occupies these nodes; returns the jobs.
fn fill(world: &mut World, names: &[&str]) -> Vec<JobId> {
    let whole = |name: &&str| Request { nodes: vec![(*name).to_owned()], ..on_nodes(1) };
    let jobs: Vec<JobId> = names.iter().map(|name| world.submit(job(whole(name)))).collect();
    world.settle();
    jobs
}

fn names(world: &World, job: JobId) -> Vec<String> {
    world.shares(job).into_iter().map(|(name, ..)| name).collect()
}

/// Three nodes on each of two switches.
fn switches() -> Vec<NodeSpec> {
    let on = |number: u32| if number <= 3 { "s1" } else { "s2" };
    (1..=6).map(|number| with_property(node(&format!("n{number}"), 4, 8), "switch", on(number))).collect()
}

fn patient_until(world: &World, job: JobId) -> Timestamp {
    match world.reason(job) {
        Some(WaitReason::FewGroups { until }) => until,
        other => panic!("{other:?}"),
    }
}

/// SL-C-12: `--contiguous`
#[test]
fn nodes_in_a_row_have_no_other_between_them() {
    let mut world = World::new(nodes(6, 4));
    fill(&mut world, &["n2"]);
    let two = world.submit(in_a_row(on_nodes(2)));
    assert_eq!(world.settle(), [two]);
    assert_eq!(names(&world, two), ["n3", "n4"]);
    let three = world.submit(in_a_row(on_nodes(3)));
    assert_eq!(world.settle(), [], "three are free, and not in a row");
    assert_eq!(world.reason(three), Some(WaitReason::Resources("nodes that lie together".into())));
    world.end(two);
    assert_eq!(world.settle(), [three]);
    assert_eq!(names(&world, three), ["n3", "n4", "n5"]);
}

/// SL-C-12: a drained node is between others, too.
#[test]
fn a_node_out_of_service_interrupts_a_row() {
    let mut world = World::new(nodes(5, 4));
    world.drain(&["n2"]);
    let three = world.submit(in_a_row(on_nodes(3)));
    assert_eq!(world.settle(), [three]);
    assert_eq!(names(&world, three), ["n3", "n4", "n5"]);
    let four = world.submit(in_a_row(on_nodes(4)));
    world.settle();
    assert_eq!(world.reason(four), Some(WaitReason::NodesUnavailable("n2".into())));
}

/// SL-C-12
#[test]
fn tasks_in_a_row_fill_node_after_node() {
    let mut world = World::new(nodes(6, 4));
    fill(&mut world, &["n2"]);
    let few = world.submit(tasks(2));
    assert_eq!(world.settle(), [few]);
    let request = Request { tasks: Some(9), ..Request::default() };
    let row = world.submit(in_a_row(request));
    assert_eq!(world.settle(), [row]);
    let expected = [("n3", 4), ("n4", 4), ("n5", 1)].map(|(name, tasks)| (name.to_owned(), tasks));
    let shares: Vec<(String, u32)> = world.shares(row).into_iter().map(|(name, _, tasks)| (name, tasks)).collect();
    assert_eq!(shares, expected);
}

/// SL-C-12: `--switches`
#[test]
fn a_group_with_room_is_preferred_to_the_first_nodes() {
    let mut world = World::new(switches());
    fill(&mut world, &["n1"]);
    let three = world.submit(on_switches(3, 1));
    assert_eq!(world.settle(), [three]);
    assert_eq!(names(&world, three), ["n4", "n5", "n6"]);
}

/// SL-C-12: `--switches=1@60`: the time counts from when the job could have started elsewhere, and is in the log.
#[test]
fn a_job_waits_for_few_groups_for_its_time_and_then_takes_more() {
    let mut world = World::new(switches());
    let filled = fill(&mut world, &["n1", "n2", "n4", "n5"]);
    let job = world.submit(on_switches(3, 1));
    assert_eq!(world.settle(), [], "only two nodes are free");
    assert!(!matches!(world.reason(job), Some(WaitReason::FewGroups { .. })), "{:?}", world.reason(job));
    world.end(filled[0]);
    let could = world.state().time();
    assert_eq!(world.settle(), []);
    let until = patient_until(&world, job);
    assert_eq!(until.micros_since(could) / 1_000_000, 60);
    let planned = world.plan();
    assert_eq!(planned.next_wake, Some(until));
    assert_eq!(planned.plan.reasons, [], "nothing is news");
    world.pass(30, filled[1]);
    assert_eq!(world.settle(), []);
    assert_eq!(patient_until(&world, job), until);
    world.pass(30, filled[1]);
    assert_eq!(world.settle(), [job]);
    assert_eq!(names(&world, job), ["n1", "n3", "n6"]);
}

/// SL-C-12
#[test]
fn a_job_that_no_group_can_serve_waits_for_its_time_only() {
    let mut world = World::new(switches());
    let filler = fill(&mut world, &["n6"])[0];
    let job = world.submit(on_switches(4, 1));
    assert_eq!(world.settle(), []);
    patient_until(&world, job);
    world.pass(61, filler);
    assert_eq!(world.settle(), [job]);
    let two = world.submit(on_switches(4, 2));
    world.end(job);
    assert_eq!(world.settle(), [two], "on two it fits at once");
}

/// SL-C-12: nodes without the property are one group.
#[test]
fn without_switches_all_nodes_are_together() {
    let mut world = World::new(nodes(3, 4));
    let job = world.submit(on_switches(3, 1));
    assert_eq!(world.settle(), [job]);
}

/// SL-C-12: planning that promises starts knows the end of the wait, and simulations come to an end.
#[test]
fn promises_and_forecasts_count_with_the_end_of_the_wait() {
    for policy in ["conservative", "easy"] {
        let mut world = World::new(switches());
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let long = |name: &str| {
            let request = Request { nodes: vec![name.into()], ..on_nodes(1) };
            let walltime_seconds = Some(5000);
            job_of(component(vec![Alternative { requests: vec![request], walltime_seconds, ..Alternative::default() }]))
        };
        let jobs = ["n1", "n4"].map(|name| world.submit(long(name)));
        assert_eq!(world.settle(), jobs);
        let now = world.state().time();
        let Actor::User(ada) = owner("ada") else { panic!("a user") };
        let start = world.foresee(&ada, on_switches(3, 1)).expect("accepted").start.expect("it is foreseen");
        assert_eq!(start.micros_since(now) / 1_000_000, 60, "{policy}");
        let waiting = world.submit(on_switches(3, 1));
        assert_eq!(world.settle(), []);
        let explained = muster_planner::explain::explain(
            world.engine(),
            world.state(),
            world.state().job(waiting).expect("it is known"),
            world.state().time(),
        );
        let code = explained.expect("it waits").reason.code;
        assert!(matches!(code, ReasonWord::FewGroups | ReasonWord::Reserved), "{policy}: {code:?}");
        world.pass(62, jobs[0]);
        assert_eq!(world.settle(), [waiting], "{policy}");
    }
}

proptest! {
    /// SL-C-12: nodes in a row are found exactly if there are some.
    #[test]
    fn a_row_is_found_exactly_if_there_is_one(
        busy in prop::collection::btree_set(1_u32..9, 0..8),
        weights in prop::collection::vec(1_i64..3, 8),
        wanted in 1_u32..5,
    ) {
        let mut all = nodes(8, 2);
        for (node, weight) in all.iter_mut().zip(weights) {
            node.properties.insert("weight".into(), muster_schemas::resources::PropertyValue::Number(weight));
        }
        let mut world = World::new(all);
        let filled: Vec<String> = busy.iter().map(|number| format!("n{number}")).collect();
        fill(&mut world, &filled.iter().map(String::as_str).collect::<Vec<_>>());
        let row = world.submit(in_a_row(on_nodes(wanted)));
        let is_free = |first: u32| (first..first + wanted).all(|number| number <= 8 && !busy.contains(&number));
        let expected = (1..9).find(|first| is_free(*first));
        prop_assert_eq!(world.settle().len(), usize::from(expected.is_some()));
        if let Some(first) = expected {
            let row_names: Vec<String> = (first..first + wanted).map(|number| format!("n{number}")).collect();
            prop_assert_eq!(names(&world, row), row_names);
        }
    }
}
