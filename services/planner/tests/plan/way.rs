//! Running jobs that make way for promised starts, fixed or not.

use crate::world::{World, component, nodes};
use muster_planner::predict::{Effort, predict};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, MakesWay, QueueSpec, WayOut},
    job::{JobSpec, JobType, RequeuePolicy, WaitReason},
    policy::Policy,
    resources::{Alternative, Request},
};

const POLICIES: [&str; 3] = ["fcfs", "easy", "conservative"];

/// Two nodes of four cores, the queue `default`, and below it `low`, and `spare`, whose jobs make way.
fn world(policy: &str, by: WayOut, ahead_seconds: Option<u32>) -> World {
    let queue =
        |name: &str, priority, makes_way| QueueSpec { name: name.into(), priority, makes_way, ..QueueSpec::default() };
    let way = MakesWay { by, grace_seconds: 0 };
    let mut world = World::configured(ClusterConfig {
        settings: ClusterSettings { make_way_ahead_seconds: ahead_seconds, ..ClusterSettings::default() },
        nodes: nodes(2, 4),
        queues: vec![queue("default", 2, None), queue("low", 1, None), queue("spare", 1, Some(way))],
        ..ClusterConfig::default()
    });
    world.set_policy(Policy::built_in(policy).expect("it is built in"));
    world
}

fn lasting(queue: &str, cores: u32, seconds: u64) -> JobSpec {
    let request = Request { tasks: Some(cores), ..Request::default() };
    let way = Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    let mut component = component(vec![way]);
    component.queue = Some(queue.into());
    let requeue = RequeuePolicy { on_node_lost: true, max_runs: 5, ..RequeuePolicy::default() };
    JobSpec { components: vec![component], working_directory: "/tmp".into(), requeue, ..JobSpec::default() }
}

fn from(start: Timestamp, cores: u32, seconds: u64) -> JobSpec {
    let mut spec = lasting("default", cores, seconds);
    spec.types = vec![JobType::FixedStart];
    spec.components[0].begin = Some(start);
    spec
}

fn started(world: &mut World, spec: JobSpec) -> JobId {
    let job = world.submit(spec);
    assert_eq!(world.settle(), [job]);
    job
}

fn promised(world: &World, job: JobId) -> Option<Timestamp> {
    world.state().job(job).and_then(|job| job.slot.as_ref()).map(|slot| slot.start)
}

fn pass_to(world: &mut World, moment: Timestamp, job: JobId) {
    world.pass(moment.micros_since(world.state().time()) / 1_000_000, job);
}

fn make_way(world: &mut World) -> Vec<(JobId, Vec<JobId>)> {
    world.plan().plan.preemptions.into_iter().map(|one| (one.for_job, one.victims)).collect()
}

/// OAR-T-25: a fixed start is promised what a run holds that makes way. The run keeps it until the time that the site says, then
/// that run and no other is ended, and what it leaves is used until the start.
#[test]
fn runs_make_way_some_time_before_a_fixed_start() {
    for policy in POLICIES {
        for (ahead, seconds) in [(None, 60), (Some(300), 300), (Some(20), 20)] {
            let mut world = world(policy, WayOut::Requeue, ahead);
            let stays = started(&mut world, lasting("spare", 4, 100_000));
            let goes = started(&mut world, lasting("spare", 4, 100_000));
            let start = world.state().time().plus_seconds(1000);
            let fixed = world.submit(from(start, 4, 100));
            assert_eq!(world.settle(), []);
            assert_eq!(promised(&world, fixed), Some(start), "{policy}");
            let planned = world.plan();
            assert!(planned.plan.preemptions.is_empty(), "{policy}: it is too early");
            let at = start.plus_seconds(-seconds);
            assert_eq!(planned.next_wake, Some(at), "{policy}");
            pass_to(&mut world, at.plus_seconds(-1), fixed);
            assert_eq!(make_way(&mut world), [], "{policy}");
            world.pass(1, fixed);
            assert_eq!(make_way(&mut world), [(fixed, vec![goes])], "{policy}");
            assert_eq!(world.settle(), []);
            assert_eq!(make_way(&mut world), [], "{policy}: it is on its way");
            world.end(goes);
            assert_eq!(world.settle(), [], "{policy}: it would not be over by then");
            if seconds > 100 {
                let short = world.submit(lasting("default", 4, 100));
                assert_eq!(world.settle(), [short], "{policy}: it is over by then");
                world.end(short);
            }
            pass_to(&mut world, start, fixed);
            assert_eq!(world.settle(), [fixed], "{policy}");
            let runs = |job| world.state().job(job).expect("known").run().is_some();
            assert!(runs(stays) && !runs(goes), "{policy}");
            world.end(fixed);
            assert_eq!(world.settle(), [goes], "{policy}: it runs again");
        }
    }
}

/// OAR-T-25: nobody makes way if another run has ended meanwhile, and the room that a fixed start was promised is promised to
/// nobody else.
#[test]
fn no_run_makes_way_for_a_fixed_start_without_need() {
    for policy in POLICIES {
        let mut world = world(policy, WayOut::Cancel, None);
        let runs = [(); 4].map(|()| started(&mut world, lasting("spare", 2, 100_000)));
        let start = world.state().time().plus_seconds(1000);
        let fixed = world.submit(from(start, 4, 100));
        let second = world.submit_as("bob", from(start.plus_seconds(50), 4, 100));
        let third = world.submit_as("eve", from(start.plus_seconds(50), 2, 100));
        world.settle();
        assert_eq!(promised(&world, fixed), Some(start), "{policy}");
        assert_eq!(promised(&world, second), Some(start.plus_seconds(50)), "{policy}");
        assert_eq!(promised(&world, third), None, "{policy}: all is promised");
        world.end(runs[3]);
        world.end(runs[2]);
        world.settle();
        pass_to(&mut world, start.plus_seconds(-60), fixed);
        assert_eq!(make_way(&mut world), [], "{policy}: there is room for the first one");
        world.pass(50, fixed);
        assert_eq!(make_way(&mut world), [(second, vec![runs[1], runs[0]])], "{policy}");
    }
}

/// OAR-T-25: what runs hold that make way for nobody, or that would be suspended and keep their memory, is not promised.
#[test]
fn a_fixed_start_takes_nothing_of_runs_that_stay() {
    for policy in POLICIES {
        for (queue, by) in [("default", WayOut::Cancel), ("spare", WayOut::Suspend)] {
            let mut world = world(policy, by, None);
            let run = started(&mut world, lasting(queue, 8, 5_000));
            world.report_start(run);
            let start = world.state().time().plus_seconds(1000);
            let fixed = world.submit(from(start, 4, 100));
            world.settle();
            assert!(world.state().job(fixed).is_some_and(|job| job.is_finished()), "{policy} {queue}: it is refused");
            assert_eq!(make_way(&mut world), [], "{policy} {queue}");
        }
    }
}

/// OAR-T-25: promises that others have already are kept, and runs end in time for the fixed start beside them.
#[test]
fn earlier_promises_stay_beside_a_fixed_start() {
    let mut world = world("conservative", WayOut::Requeue, None);
    started(&mut world, lasting("default", 4, 900));
    let spare = started(&mut world, lasting("spare", 4, 2_000));
    let waiting = world.submit(lasting("low", 4, 5_000));
    assert_eq!(world.settle(), []);
    let before = promised(&world, waiting).expect("it is promised the end of the first");
    let now = world.state().time();
    let refused = world.submit(from(now.plus_seconds(1_000), 8, 100));
    let fixed = world.submit(from(now.plus_seconds(1_000), 4, 100));
    assert_eq!(world.settle(), []);
    assert!(world.state().job(refused).is_some_and(|job| job.is_finished()), "it would break the promise");
    assert_eq!(promised(&world, fixed), Some(now.plus_seconds(1_000)));
    pass_to(&mut world, now.plus_seconds(940), fixed);
    assert_eq!(make_way(&mut world), [(fixed, vec![spare])]);
    assert_eq!(promised(&world, waiting), Some(before));
}

/// The start that a waiting job has been told: a promise to keep, or one of the last plan.
fn told(world: &World, job: JobId) -> Option<Timestamp> {
    let reserved = match world.reason(job) {
        Some(WaitReason::Reserved { start }) => Some(start),
        _ => None,
    };
    promised(world, job).or(reserved)
}

fn predicted(world: &World, job: JobId) -> Option<Timestamp> {
    let predicted = predict(world.engine(), Vec::new(), world.state().time(), Effort::default());
    predicted.iter().find(|predicted| predicted.job == job).and_then(|predicted| predicted.start)
}

/// OAR-T-21: a job is promised what runs hold that make way for it, from the end of those that stay. At that time the run
/// in its way ends, and no earlier.
#[test]
fn promises_see_through_runs_that_make_way() {
    for policy in ["easy", "conservative"] {
        let mut world = world(policy, WayOut::Requeue, None);
        let stays = started(&mut world, lasting("default", 4, 1_000));
        let goes = started(&mut world, lasting("spare", 4, 100_000));
        let end =
            world.state().run(world.state().job(stays).unwrap().run().unwrap()).unwrap().allocated.plus_seconds(1_000);
        let wide = world.submit(lasting("default", 8, 100));
        assert_eq!(world.settle(), []);
        let start = told(&world, wide).expect("it is told");
        assert!(start.micros_since(end).abs() < 30_000_000, "{policy}: {start} is not the end of the other, {end}");
        assert_eq!(predicted(&world, wide), Some(start), "{policy}");
        assert_eq!(make_way(&mut world), [], "{policy}: it is too early");
        pass_to(&mut world, end, wide);
        world.end(stays);
        assert_eq!(make_way(&mut world), [(wide, vec![goes])], "{policy}");
        assert_eq!(world.settle(), []);
        assert_eq!(make_way(&mut world), [], "{policy}: it is on its way");
        world.end(goes);
        assert_eq!(world.settle(), [wide], "{policy}");
        world.end(wide);
        assert_eq!(world.settle(), [goes], "{policy}: it runs again");
    }
}

/// OAR-G-04, OAR-T-21: a later job gets no hole that delays a job for which runs will make way, and the run that makes way
/// gets none of it either.
#[test]
fn no_later_job_delays_one_for_which_runs_will_make_way() {
    for policy in ["easy", "conservative"] {
        let way = MakesWay { by: WayOut::Requeue, grace_seconds: 0 };
        let queue = |name: &str, priority, makes_way| QueueSpec {
            name: name.into(),
            priority,
            makes_way,
            ..QueueSpec::default()
        };
        let mut world = World::configured(ClusterConfig {
            nodes: nodes(3, 4),
            queues: vec![queue("default", 2, None), queue("spare", 1, Some(way))],
            ..ClusterConfig::default()
        });
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        started(&mut world, lasting("default", 4, 1_000));
        started(&mut world, lasting("spare", 4, 100_000));
        let wide = world.submit(lasting("default", 12, 100));
        let long = world.submit(lasting("default", 4, 5_000));
        let other = world.submit(lasting("spare", 4, 5_000));
        assert_eq!(world.settle(), [], "{policy}: both would delay the first");
        let start = told(&world, wide).expect("it is told");
        assert!(start <= world.state().time().plus_seconds(1_000), "{policy}");
        let short = world.submit(lasting("default", 4, 500));
        assert_eq!(world.settle(), [short], "{policy}: it is over by then");
        assert_eq!(told(&world, wide), Some(start), "{policy}");
        if policy == "conservative" {
            let after = start.plus_seconds(100);
            assert_eq!(promised(&world, long), Some(after));
            assert!(promised(&world, other).is_some_and(|start| start >= after), "it makes way, and comes after");
        }
    }
}

/// OAR-T-24, OAR-T-27: among places at the same time one goes first where nobody has to make way, then the one for which the
/// fewest have to.
#[test]
fn promises_spare_runs_where_others_are_enough() {
    let mut world = world("conservative", WayOut::Requeue, None);
    let spare = started(&mut world, lasting("spare", 4, 100_000));
    let other = started(&mut world, lasting("default", 4, 1_000));
    let end =
        world.state().run(world.state().job(other).unwrap().run().unwrap()).unwrap().allocated.plus_seconds(1_000);
    let first = world.submit(lasting("low", 4, 100));
    assert_eq!(make_way(&mut world), [], "a job of the same priority: nobody makes way");
    assert_eq!(world.settle(), []);
    assert!(promised(&world, first).is_some_and(|start| start >= end));
    let now = world.submit(lasting("default", 2, 100));
    assert_eq!(make_way(&mut world), [(now, vec![spare])]);
    assert_eq!(world.settle(), []);
    assert!(promised(&world, now).is_some_and(|start| start <= world.state().time()), "as soon as it has left");
    world.end(spare);
    assert_eq!(world.settle(), [now], "the other one is too large now");
}

/// W5 (OAR-T-21, OAR-T-22): a best-effort job holds all cores; one of another queue comes at 300 and is promised its
/// start at once; the best-effort job is predicted to start again at its end.
#[test]
fn w5_best_effort_makes_way_and_is_predicted_behind() {
    for policy in ["easy", "conservative"] {
        let way = MakesWay { by: WayOut::Requeue, grace_seconds: 0 };
        let queue = |name: &str, priority, makes_way| QueueSpec {
            name: name.into(),
            priority,
            makes_way,
            ..QueueSpec::default()
        };
        let mut world = World::configured(ClusterConfig {
            nodes: nodes(4, 4),
            queues: vec![queue("default", 2, None), queue("besteffort", 1, Some(way))],
            ..ClusterConfig::default()
        });
        world.set_policy(Policy::built_in(policy).expect("it is built in"));
        let weak = started(&mut world, lasting("besteffort", 16, 3_600));
        world.pass(300, weak);
        let firm = world.submit(lasting("default", 4, 60));
        let arrived = world.state().time();
        assert_eq!(make_way(&mut world), [(firm, vec![weak])], "{policy}");
        assert_eq!(world.settle(), []);
        let start = told(&world, firm).expect("it is told");
        assert_eq!(start, arrived, "{policy}: now, not when the other would have ended");
        assert_eq!(predicted(&world, firm), Some(world.state().time()), "{policy}: as soon as it has left");
        world.end(weak);
        assert_eq!(world.settle(), [firm], "{policy}");
        let began = world.state().run(world.state().job(firm).unwrap().run().unwrap()).unwrap().allocated;
        let again = predicted(&world, weak).expect("it is foreseen");
        let late = again.micros_since(began.plus_seconds(60)).abs();
        assert!(late < 10_000_000, "{policy}: at the end of the other, by what a few commands take here");
    }
}
