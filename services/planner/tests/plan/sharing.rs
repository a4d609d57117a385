//! Jobs that hold the same cores at the same time.

use crate::world::{World, component, node, nodes};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    job::{JobSpec, JobType, WaitReason},
    policy::Policy,
    resources::{Alternative, Count, Level, LevelCount, Request, Sharing},
};

fn peer(same_user: bool, same_name: bool) -> JobType {
    JobType::Timesharing { same_user, same_name }
}

/// A job of all cores of this many nodes for this many seconds.
fn whole(count: u32, seconds: u64, name: &str, kind: Option<JobType>) -> JobSpec {
    let path = vec![
        LevelCount { level: Level::Node, count: Count::exactly(count) },
        LevelCount { level: Level::Core, count: Count::All },
    ];
    of(Request { path, sharing: Sharing::Exclusive, ..Request::default() }, seconds, name, kind)
}

/// A job of this many cores of a node for this many seconds.
fn cores(count: u32, seconds: u64, kind: Option<JobType>) -> JobSpec {
    let path = vec![
        LevelCount { level: Level::Node, count: Count::exactly(1) },
        LevelCount { level: Level::Core, count: Count::exactly(count) },
    ];
    of(Request { path, ..Request::default() }, seconds, "job", kind)
}

fn of(request: Request, seconds: u64, name: &str, kind: Option<JobType>) -> JobSpec {
    let way = Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    JobSpec {
        name: name.into(),
        types: kind.into_iter().collect(),
        components: vec![component(vec![way])],
        working_directory: "/tmp".into(),
        ..JobSpec::default()
    }
}

fn nodes_of(world: &World, job: JobId) -> Vec<String> {
    world.shares(job).into_iter().map(|(node, ..)| node).collect()
}

fn keeping_promises(nodes: Vec<muster_schemas::resources::NodeSpec>) -> World {
    let mut world = World::new(nodes);
    world.set_policy(Policy::built_in("conservative").expect("it is built in"));
    world
}

fn promised(world: &World, job: JobId) -> Option<Timestamp> {
    world.state().job(job).and_then(|job| job.slot.as_ref()).map(|slot| slot.start)
}

/// OAR-G-07: what ends early frees its cores for the next plan, in which others are promised earlier starts.
#[test]
fn what_ends_early_moves_promises_earlier() {
    let mut world = keeping_promises(nodes(1, 4));
    let [first, second, third] = [600, 300, 60].map(|seconds| world.submit(cores(4, seconds, None)));
    assert_eq!(world.settle(), [first]);
    let before = promised(&world, third).expect("it is promised");
    world.end(first);
    assert_eq!(world.settle(), [second]);
    let after = promised(&world, third).expect("it is promised");
    assert!(before.micros_since(after) > 500_000_000, "from {before:?} to {after:?}");
    world.end(second);
    assert_eq!(world.settle(), [third]);
}

/// OAR-T-40, W12: the second and third job start together on the same two nodes, and those of other forms wait for all
/// of them and for each other.
#[test]
fn jobs_with_equal_keys_start_on_the_same_nodes_and_others_wait() {
    let mut world = keeping_promises(nodes(8, 2));
    let plain = world.submit_as("u1", whole(2, 60, "job", None));
    let by_user = [(); 2].map(|()| world.submit_as("toto", whole(2, 60, "job", Some(peer(true, false)))));
    let [first, second] = ["a", "b"].map(|name| world.submit_as("toto", whole(7, 60, name, Some(peer(false, true)))));
    let begin = world.state().time();
    assert_eq!(world.settle(), [plain, by_user[0], by_user[1]]);
    assert_eq!(nodes_of(&world, plain), ["n1", "n2"]);
    for job in by_user {
        assert_eq!(nodes_of(&world, job), ["n3", "n4"]);
    }
    assert_eq!(promised(&world, first), Some(begin.plus_seconds(60)));
    assert_eq!(promised(&world, second), Some(begin.plus_seconds(120)));
}

/// OAR-T-40, OAR-G-04: the shared cores are held until the last of the jobs that share them ends.
#[test]
fn others_wait_for_the_last_of_those_who_share() {
    let mut world = keeping_promises(nodes(1, 4));
    let begin = world.state().time();
    let (short, long) =
        (world.submit(cores(3, 60, Some(peer(true, true)))), world.submit(cores(2, 100, Some(peer(true, true)))));
    let (other, larger) = (world.submit(cores(2, 50, None)), world.submit(cores(3, 50, None)));
    assert_eq!(world.settle(), [short, long]);
    // From the end of the first to that of the second, two cores are free.
    let late = world.state().time().micros_since(begin);
    assert!(promised(&world, other) > Some(begin.plus_seconds(59)), "{:?}", promised(&world, other));
    assert!(promised(&world, other) < Some(begin.plus_seconds(70)), "{:?} {late}", promised(&world, other));
    assert!(promised(&world, larger) > Some(begin.plus_seconds(99)), "{:?}", promised(&world, larger));
    world.end(short);
    assert_eq!(world.settle(), [other]);
    assert_eq!(world.shares(other), [("n1".into(), "2-3".into(), 1)]);
    world.end(other);
    world.end(long);
    assert_eq!(world.settle(), [larger]);
}

/// OAR-T-40: promises share, too, and jobs without the key go around all of them.
#[test]
fn promises_share() {
    for policy in ["conservative", "easy"] {
        let mut world = World::new(nodes(2, 2));
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let busy = world.submit(whole(2, 100, "job", None));
        assert_eq!(world.settle(), [busy]);
        let both = [(); 2].map(|()| world.submit(whole(2, 100, "job", Some(peer(true, false)))));
        assert!(world.settle().is_empty());
        if policy == "conservative" {
            assert!(promised(&world, both[0]).is_some());
            assert_eq!(promised(&world, both[0]), promised(&world, both[1]));
        }
        world.end(busy);
        assert_eq!(world.settle(), both);
    }
}

/// OAR-T-80: a guest uses the place that a host keeps, even if nothing is free; nobody else does, and two guests do not
/// overlap.
#[test]
fn guests_use_the_place_of_their_host() {
    for policy in ["conservative", "easy", "fcfs"] {
        let mut world = World::new(nodes(2, 4));
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let host = world.submit(whole(2, 1000, "job", Some(JobType::Placeholder("w".into()))));
        assert_eq!(world.settle(), [host]);
        let guest = |world: &mut World, label: &str| world.submit(cores(3, 100, Some(JobType::Allowed(label.into()))));
        let guests = [(); 3].map(|()| guest(&mut world, "w"));
        let stranger = guest(&mut world, "x");
        assert_eq!(world.settle(), guests[..2], "{policy}");
        assert_eq!(guests[..2].iter().flat_map(|job| nodes_of(&world, *job)).collect::<Vec<_>>(), ["n1", "n2"]);
        world.end(guests[0]);
        assert_eq!(world.settle(), [guests[2]]);
        world.end(host);
        assert!(world.settle().is_empty(), "the guests are still there");
        world.end(guests[1]);
        assert_eq!(world.settle(), [stranger]);
    }
}

/// OAR-T-80: a guest that waits starts once its host has started.
#[test]
fn a_guest_that_waits_starts_with_its_host() {
    for policy in ["conservative", "easy"] {
        let mut world = World::new(nodes(1, 4));
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let busy = world.submit(cores(2, 500, None));
        let guest = world.submit(cores(3, 100, Some(JobType::Allowed("w".into()))));
        assert_eq!(world.settle(), [busy]);
        world.end(busy);
        assert_eq!(world.settle(), [guest]);
        let host = world.submit(cores(4, 1000, Some(JobType::Placeholder("w".into()))));
        assert_eq!(world.settle(), [host], "{policy}: it may come after its guest");
        assert_eq!(world.shares(host), [("n1".into(), "0-3".into(), 1)]);
    }
}

/// OAR-T-40, OAR-G-10: a job that does not share says why it waits behind those that do, and one that could share does
/// not say that nothing is free.
#[test]
fn reasons_are_true_for_jobs_that_share() {
    let mut world = World::new(nodes(1, 2));
    let share = || Some(peer(true, false));
    let first = world.submit(cores(2, 100, share()));
    assert_eq!(world.settle(), [first]);
    let plain = world.submit(cores(2, 100, None));
    assert!(world.settle().is_empty());
    assert!(matches!(world.reason(plain), Some(WaitReason::Reserved { .. })), "{:?}", world.reason(plain));
    // It would delay the job in front, which needs the cores when the first is over.
    let late = world.submit(cores(2, 200, share()));
    let soon = world.submit(cores(2, 10, share()));
    assert_eq!(world.settle(), [soon]);
    let (engine, state) = (world.engine(), world.state());
    let job = state.job(late).expect("it waits");
    let explained = muster_planner::explain::explain(engine, state, job, state.time()).expect("it waits");
    let text = format!("{explained:?}");
    assert!(text.contains("WouldDelay") || text.contains("Reserved"), "{text}");
}

/// OAR-T-40: a suspended job lends its cores, and those who share with it use them meanwhile and afterwards.
#[test]
fn those_who_share_stay_when_a_suspended_job_continues() {
    let mut world = World::new(vec![node("n1", 4, 8)]);
    let share = || Some(peer(true, false));
    let first = world.submit(cores(3, 1000, share()));
    assert_eq!(world.settle(), [first]);
    world.suspend(first);
    let second = world.submit(cores(2, 1000, share()));
    let stranger = world.submit(cores(2, 1000, None));
    assert_eq!(world.settle(), [second, stranger]);
    world.resume(first);
    world.settle();
    world.end(stranger);
    world.tick();
    assert!(world.state().resuming().next().is_none(), "only the stranger was in its way");
    assert!(world.settle().is_empty());
}

/// OAR-T-40: nobody new joins those who share the cores that a suspended job waits for: they end, and it continues.
#[test]
fn nobody_new_shares_the_cores_that_a_suspended_job_waits_for() {
    let mut world = World::new(vec![node("n1", 4, 8)]);
    let share = || Some(peer(false, false));
    let suspended = world.submit(cores(3, 1000, None));
    assert_eq!(world.settle(), [suspended]);
    world.suspend(suspended);
    let sharer = world.submit(cores(4, 1000, share()));
    assert_eq!(world.settle(), [sharer]);
    let joins = world.submit(cores(4, 1000, share()));
    assert_eq!(world.settle(), [joins], "nobody wants the cores back yet");
    world.resume(suspended);
    let newcomer = world.submit(cores(4, 1000, share()));
    assert!(world.settle().is_empty(), "its cores are awaited");
    world.end(sharer);
    assert!(world.settle().is_empty(), "they still are");
    world.end(joins);
    world.tick();
    assert!(world.state().resuming().next().is_none(), "it has its cores again");
    world.end(suspended);
    assert_eq!(world.settle(), [newcomer]);
}

/// The state's own nodes decide where a queue serves, for jobs that share as for all others.
#[test]
fn a_job_that_shares_stays_on_the_nodes_of_its_queue() {
    let queue = |name: &str, nodes: &[&str]| QueueSpec {
        name: name.into(),
        nodes: nodes.iter().map(|node| (*node).into()).collect(),
        ..QueueSpec::default()
    };
    let queues = vec![queue("default", &["n1"]), queue("other", &["n2"])];
    let mut world = World::configured(ClusterConfig { nodes: nodes(2, 2), queues, ..ClusterConfig::default() });
    let first = world.submit(cores(2, 100, Some(peer(false, false))));
    let mut elsewhere = cores(2, 100, Some(peer(false, false)));
    elsewhere.components[0].queue = Some("other".into());
    let second = world.submit(elsewhere);
    assert_eq!(world.settle(), [first, second]);
    assert_eq!((nodes_of(&world, first), nodes_of(&world, second)), (vec!["n1".to_owned()], vec!["n2".to_owned()]));
}
