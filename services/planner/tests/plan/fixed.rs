//! Jobs with a fixed start.

use crate::world::{World, component, node, nodes};
use muster_schemas::{
    JobId, Timestamp,
    job::{JobSpec, JobType, Outcome},
    policy::Policy,
    resources::{Alternative, Request},
};

const POLICIES: [&str; 3] = ["fcfs", "easy", "conservative"];

/// A job of this many cores for this many seconds.
fn lasting(cores: u32, seconds: u64) -> JobSpec {
    let request = Request { tasks: Some(cores), ..Request::default() };
    let way = Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    JobSpec { components: vec![component(vec![way])], working_directory: "/tmp".into(), ..JobSpec::default() }
}

/// The same, from a time on.
fn from(start: Timestamp, cores: u32, seconds: u64, kind: Option<JobType>) -> JobSpec {
    let mut spec = lasting(cores, seconds);
    spec.types = [JobType::FixedStart].into_iter().chain(kind).collect();
    spec.components[0].begin = Some(start);
    spec
}

fn world(policy: &str, cores: u32) -> World {
    let mut world = World::new(nodes(1, cores));
    world.set_policy(Policy::built_in(policy).expect("it is built in"));
    world
}

fn promised(world: &World, job: JobId) -> Option<Timestamp> {
    world.state().job(job).and_then(|job| job.slot.as_ref()).map(|slot| slot.start)
}

fn outcome(world: &World, job: JobId) -> String {
    match &world.state().job(job).expect("it is known").phase {
        muster_domain::jobs::Phase::Finished(finished) => match &finished.outcome {
            Outcome::Refused(why) => why.clone(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

/// OAR-G-11, OAR-G-13: whatever the policy, the first plan promises the start, nobody is planned into it, and the job starts
/// then and not before, although it was submitted last.
#[test]
fn a_fixed_start_is_promised_and_kept() {
    for policy in POLICIES {
        let mut world = world(policy, 4);
        let start = world.state().time().plus_seconds(1000);
        let reserved = world.submit(from(start, 4, 100, None));
        assert!(world.settle().is_empty(), "{policy}: it does not start before its time");
        assert_eq!(promised(&world, reserved), Some(start), "{policy}");
        let (long, short) = (world.submit(lasting(2, 2000)), world.submit(lasting(2, 500)));
        // Nobody goes around the first one of a queue without backfill.
        let started = if policy == "fcfs" { vec![] } else { vec![short] };
        assert_eq!(world.settle(), started, "{policy}: the long one would be in its way");
        if let [short] = started[..] {
            world.end(short);
        }
        world.pass(start.micros_since(world.state().time()) / 1_000_000 + 1, long);
        assert_eq!(world.settle(), [reserved], "{policy}");
        world.end(reserved);
        assert!(world.settle().contains(&long), "{policy}");
    }
}

/// OAR-G-11: what has no room at its time is refused, and told when it could run.
#[test]
fn a_start_without_room_is_refused_with_a_time_that_would_do() {
    for policy in POLICIES {
        let mut world = world(policy, 4);
        let now = world.state().time();
        let start = now.plus_seconds(1000);
        let first = world.submit(from(start, 3, 100, None));
        let second = world.submit(from(start.plus_seconds(50), 2, 100, None));
        let beside = world.submit_as("bob", from(start.plus_seconds(50), 1, 100, None));
        world.settle();
        assert_eq!((promised(&world, first), promised(&world, second)), (Some(start), None), "{policy}");
        assert_eq!(promised(&world, beside), Some(start.plus_seconds(50)), "{policy}");
        let could = start.plus_seconds(100);
        let why = format!("[NotAvailable] no room at {}; it could start at {could}", start.plus_seconds(50));
        assert_eq!(outcome(&world, second), why, "{policy}");
        let again = world.submit(from(could, 2, 100, None));
        world.settle();
        assert_eq!(promised(&world, again), Some(could), "{policy}: it was true");
    }
}

/// OAR-G-13, OAR-G-14: the promise stays while its node is lost, and the job starts late and shorter once the node is back.
#[test]
fn a_promise_outlives_the_loss_of_its_node() {
    for policy in POLICIES {
        let mut world = World::new(vec![node("n1", 4, 8)]);
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let start = world.state().time().plus_seconds(100);
        let reserved = world.submit(from(start, 4, 1000, None));
        world.settle();
        world.drain(&["n1"]);
        world.settle();
        assert_eq!(promised(&world, reserved), Some(start), "{policy}");
        world.pass(200, reserved);
        assert!(world.settle().is_empty(), "{policy}: its node takes no job");
        let resume = muster_schemas::command::Command::ResumeNodes { nodes: vec!["n1".into()] };
        world.command(&muster_schemas::event::Actor::Ledger, resume).expect("it is drained");
        assert_eq!(world.settle(), [reserved], "{policy}");
        let run = world.state().job(reserved).and_then(|job| job.run()).and_then(|run| world.state().run(run));
        let end = muster_planner::projection::expected_end(world.state().job(reserved).unwrap(), run.unwrap());
        assert!(end <= start.plus_seconds(1001), "{policy}: {end} is not the promised end");
    }
}

/// OAR-G-13: after 300 seconds it starts on the promised nodes that are there, and keeps its end.
#[test]
fn a_promise_is_kept_on_the_nodes_that_are_there() {
    for policy in POLICIES {
        let mut world = World::new(vec![node("n1", 4, 8), node("n2", 4, 8)]);
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let start = world.state().time().plus_seconds(100);
        let reserved = world.submit(from(start, 8, 1000, None));
        world.settle();
        world.drain(&["n1"]);
        world.pass(200, reserved);
        assert!(world.settle().is_empty(), "{policy}: it waits for its node");
        let wake = world.plan().next_wake.expect("it is to look again");
        assert_eq!(wake, start.plus_seconds(300), "{policy}");
        world.pass(wake.micros_since(world.state().time()) / 1_000_000 + 1, reserved);
        assert_eq!(world.settle(), [reserved], "{policy}");
        assert_eq!(world.shares(reserved).len(), 1, "{policy}");
        let run = world.state().job(reserved).and_then(|job| job.run()).and_then(|run| world.state().run(run));
        let end = muster_planner::projection::expected_end(world.state().job(reserved).unwrap(), run.unwrap());
        assert!(end <= start.plus_seconds(1001), "{policy}: {end} is not the promised end");
        // What is left is used again.
        let next = world.submit(lasting(4, 100));
        world.end(reserved);
        assert_eq!(world.settle(), [next], "{policy}");
    }
}

/// OAR-T-41: a reservation may share; later jobs of the same user run inside it.
#[test]
fn later_jobs_run_inside_a_reservation_that_shares() {
    for policy in POLICIES {
        let share = || Some(JobType::Timesharing { same_user: true, same_name: false });
        let mut world = world(policy, 4);
        let start = world.state().time().plus_seconds(10);
        let reserved = world.submit(from(start, 4, 1000, share()));
        world.settle();
        world.pass(10, reserved);
        assert_eq!(world.settle(), [reserved], "{policy}");
        let later = world.submit(JobSpec { types: share().into_iter().collect(), ..lasting(4, 100) });
        let stranger = world.submit(lasting(1, 10));
        assert_eq!(world.settle(), [later], "{policy}");
        let overlapping = world.submit(from(start.plus_seconds(500), 4, 100, share()));
        world.settle();
        assert_eq!(promised(&world, overlapping), Some(start.plus_seconds(500)), "{policy}");
        assert!(world.state().job(stranger).expect("known").is_waiting(), "{policy}");
    }
}
