//! The cores of suspended jobs serve others, which give them back when the suspended jobs resume (SL-C-37).

use crate::world::{GIB, World, job, job_of, node, nodes, owner, tasks, with_property};
use muster_schemas::{
    JobId,
    command::Command,
    event::Actor,
    job::{Component, JobSpec, JobState, WaitReason},
    policy::{Limit, LimitPer, Policy},
    resources::{
        Alternative, Count, Level, LevelCount, Memory, NodeFilter, Per, PropertyValue, Relation, Request, Sharing,
    },
};

fn standing(world: &World, job: JobId) -> JobState {
    world.state().job_state(world.state().job(job).expect("it is known"))
}

/// This many tasks for this many seconds.
fn lasting(count: u32, seconds: u64) -> JobSpec {
    let alternative = Alternative {
        requests: vec![Request { tasks: Some(count), ..Request::default() }],
        walltime_seconds: Some(seconds),
        ..Alternative::default()
    };
    job_of(Component { alternatives: vec![alternative], ..crate::world::component(Vec::new()) })
}

/// OAR-S-03, OAR-S-05: cores of a suspended job serve others, and it continues when none of them is in use any more.
#[test]
fn a_job_starts_on_the_cores_of_a_suspended_one_which_waits_for_them() {
    let mut world = World::new(nodes(1, 4));
    let long = world.submit(tasks(4));
    let urgent = world.submit(tasks(2));
    assert_eq!(world.settle(), [long]);
    world.suspend(long);
    assert_eq!(world.settle(), [urgent]);
    assert_eq!(world.shares(urgent), [("n1".into(), "0-1".into(), 2)]);
    let beside = world.submit(tasks(2));
    assert_eq!(world.settle(), [beside]);

    world.resume(long);
    let late = world.submit(tasks(1));
    assert!(world.settle().is_empty());
    world.end(urgent);
    assert!(world.settle().is_empty(), "half of the cores are kept for the job that goes on");
    assert!(matches!(world.reason(late), Some(WaitReason::Resources(_))), "{:?}", world.reason(late));
    world.end(beside);
    assert!(world.settle().is_empty(), "nobody jumps in before it is told to go on");
    world.tick();
    assert_eq!(standing(&world, long), JobState::Running);
    assert!(world.settle().is_empty());
    world.end(long);
    assert_eq!(world.settle(), [late]);
}

/// OAR-S-02, OAR-S-03, OAR-S-05, W8: while a job on half of the cluster is suspended, another one gets its cores, and the first continues when
/// that has ended, not when somebody asks for it.
#[test]
fn the_worked_example_of_a_suspension() {
    let switched = |(number, switch): (u32, &str)| with_property(node(&format!("n{number}"), 4, 8), "switch", switch);
    let mut world = World::new([(1, "s1"), (2, "s1"), (3, "s2"), (4, "s2")].map(switched).to_vec());
    let first = world.submit(lasting(8, 1_000));
    assert_eq!(world.settle(), [first]);
    let of = |world: &World, job| world.shares(job).into_iter().map(|(node, ..)| node).collect::<Vec<_>>();
    assert_eq!(of(&world, first), ["n1", "n2"]);
    world.suspend(first);
    let (relation, value) = (Relation::Equal, PropertyValue::Text("s1".into()));
    let filter = Some(NodeFilter::Compare { property: "switch".into(), relation, value });
    let cores = LevelCount { level: Level::Core, count: Count::exactly(8) };
    let alternative = Alternative {
        requests: vec![Request { path: vec![cores], filter, ..Request::default() }],
        walltime_seconds: Some(200),
        ..Alternative::default()
    };
    let second =
        world.submit(job_of(Component { alternatives: vec![alternative], ..crate::world::component(Vec::new()) }));
    assert_eq!(world.settle(), [second]);
    assert_eq!(of(&world, second), ["n1", "n2"]);
    world.report_start(second);
    world.pass(90, second);
    world.resume(first);
    assert!(world.settle().is_empty());
    assert_eq!(standing(&world, first), JobState::Suspended, "it is resuming");
    world.pass(110, second);
    world.end(second);
    world.tick();
    assert_eq!(standing(&world, first), JobState::Running);
}

/// OAR-S-05: what is not lent stays held.
#[test]
fn what_a_suspended_job_does_not_lend_is_not_given_to_others() {
    let mut world = World::new(vec![node("n1", 4, 8)]);
    let of = |gibibytes| {
        let memory = Some(Memory { bytes: gibibytes * GIB, per: Per::Node });
        job(Request { tasks: Some(1), memory, ..Request::default() })
    };
    let large = world.submit(of(6));
    world.settle();
    world.suspend(large);
    let (small, too_large) = (world.submit(of(2)), world.submit(of(3)));
    assert_eq!(world.settle(), [small]);
    world.end(large);
    assert_eq!(world.settle(), [too_large]);
}

/// A node on which a suspended job has memory cannot be given exclusively to another job.
#[test]
fn whole_nodes_are_shared_while_their_job_is_suspended() {
    let mut world = World::new(nodes(1, 4));
    let alone = |sharing| job(Request { tasks: Some(1), sharing, ..Request::default() });
    let first = world.submit(alone(Sharing::WholeNodes));
    assert_eq!(world.settle(), [first]);
    world.suspend(first);
    let (shared, second) = (world.submit(tasks(4)), world.submit(alone(Sharing::Exclusive)));
    assert_eq!(world.settle(), [shared]);
    world.resume(first);
    let late = world.submit(tasks(1));
    world.end(shared);
    assert!(world.settle().is_empty());
    world.tick();
    assert_eq!(standing(&world, first), JobState::Running);
    assert!(world.settle().is_empty());
    world.end(first);
    assert_eq!(world.settle(), [second]);
    world.end(second);
    assert_eq!(world.settle(), [late]);
}

/// For limits a suspended job keeps its resources: it will resume.
#[test]
fn a_suspended_job_counts_against_limits() {
    let mut world = World::new(nodes(2, 4));
    let limit = Limit { per: LimitPer::User, name: None, max_cores: Some(4), ..Limit::default() };
    world.set_policy(Policy { limits: vec![limit], ..Policy::default() });
    let first = world.submit(tasks(3));
    world.settle();
    world.suspend(first);
    let (second, third) = (world.submit(tasks(2)), world.submit(tasks(1)));
    assert_eq!(world.settle(), [third], "{:?}", world.reason(second));
    world.end(first);
    assert_eq!(world.settle(), [second]);
}

/// Cores that a promise counts on go to the resuming job; the promise is renewed, and nothing is refused.
#[test]
fn promises_give_way_to_a_job_that_goes_on() {
    let mut world = World::new(nodes(1, 4));
    world.set_policy(Policy::built_in("conservative").expect("it is built in"));
    let long = world.submit(lasting(4, 1000));
    world.settle();
    world.suspend(long);
    let borrows = world.submit(lasting(4, 50));
    assert_eq!(world.settle(), [borrows]);
    let next = world.submit(lasting(2, 50));
    assert!(world.settle().is_empty());
    let promised = |world: &World| world.state().job(next).and_then(|job| job.slot.as_ref()).map(|slot| slot.start);
    let first = promised(&world).expect("it is promised the end of the job ahead");
    world.resume(long);
    assert!(world.settle().is_empty());
    world.end(borrows);
    world.tick();
    assert!(world.settle().is_empty());
    assert!(promised(&world).is_some_and(|start| start > first), "{:?} {first}", promised(&world));
    world.end(long);
    assert_eq!(world.settle(), [next]);
}

/// A run that resumes at once has its cores in the engine too, and gives them back.
#[test]
fn a_job_that_goes_on_at_once_takes_its_cores_from_nobody() {
    let mut world = World::new(nodes(1, 4));
    let first = world.submit(tasks(2));
    world.settle();
    world.suspend(first);
    world.resume(first);
    assert_eq!(standing(&world, first), JobState::Running);
    let (second, third) = (world.submit(tasks(2)), world.submit(tasks(1)));
    assert_eq!(world.settle(), [second]);
    assert_eq!(world.shares(second), [("n1".into(), "2-3".into(), 2)]);
    world
        .command(&owner("ada"), Command::Cancel { jobs: muster_schemas::command::JobSelection::Ids(vec![third]) })
        .expect("it waits");
    let tick = world.command(&Actor::Ledger, Command::Tick);
    assert!(tick.is_ok() && world.settle().is_empty());
}
