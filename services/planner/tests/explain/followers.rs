//! The predicted starts of jobs that wait for others.

use crate::world::{World, node, queue, tasks, user};
use muster_planner::predict::{Effort, predict};
use muster_schemas::{
    JobId,
    command::{Command, JobSelection},
    event::Actor,
    job::{ArraySpec, Dependencies, Dependency, DependencyKind, JobSpec, WaitReason},
    plan::{PredictedStart, ProposedPlan},
    policy::Policy,
    resources::IndexSet,
};

fn on(kind: DependencyKind, job: JobId, delay_seconds: u32) -> Dependency {
    Dependency { kind, job: Some(job), delay_seconds }
}

fn after(mut spec: JobSpec, all_of: Vec<Vec<Dependency>>) -> JobSpec {
    spec.components[0].dependencies = Dependencies { all_of };
    spec
}

/// A node with 4 cores, on which all wait for their turn.
fn world() -> World {
    World::new(&Policy::built_in("easy").expect("there is one"), vec![node("n1", 4, 0)], vec![queue("default")])
}

fn foreseen(world: &World) -> Vec<PredictedStart> {
    predict(world.projection.engine(), world.projection.followers(), world.now, Effort::default())
}

/// Seconds from now to the predicted start.
fn start(world: &World, job: JobId) -> Option<i64> {
    let told = foreseen(world).into_iter().find(|one| one.job == job).expect("something is said of it");
    told.start.map(|start| start.micros_since(world.now) / 1_000_000)
}

/// The planner's predictions reach the ledger.
fn commit(world: &mut World) {
    let plan = ProposedPlan {
        seen: world.state().sequence(),
        at: world.now,
        predictions: foreseen(world),
        ..ProposedPlan::default()
    };
    world.must(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
}

/// OAR-D-06: a job starts at the predicted end of the one that it waits for, or later; so does one behind that. Nothing is said
/// of a job whose predecessor has no predicted end, and the reason is told.
#[test]
fn dependents_start_after_the_predicted_end() {
    let mut world = world();
    let first = world.run(tasks(4, 1_000));
    let waiting = world.submit(tasks(4, 500));
    let ended = |job| vec![vec![on(DependencyKind::Succeeded, job, 0)]];
    let second = world.submit(after(tasks(2, 300), ended(first)));
    let third = world.submit(after(tasks(4, 60), ended(second)));
    let delayed = world.submit(after(tasks(1, 60), vec![vec![on(DependencyKind::Ended, third, 200)]]));
    let begun = world.submit(after(tasks(1, 60), vec![vec![on(DependencyKind::Started, second, 0)]]));
    let endless = {
        let mut spec = tasks(1, 60);
        spec.components[0].alternatives[0].walltime_seconds = None;
        world.submit(after(spec, ended(third)))
    };
    let never = world.submit(after(tasks(1, 60), ended(endless)));
    world.settle();
    let all = [waiting, second, third, delayed, begun, never].map(|job| start(&world, job));
    // The job of 500 s is ahead of all that enter the queue at second 1,000.
    assert_eq!(all, [Some(1_000), Some(1_500), Some(1_800), Some(2_060), Some(1_500), None]);
    commit(&mut world);
    let known = |world: &World, job| world.job(job).predicted_start;
    assert_eq!(known(&world, third), Some(world.now.plus_seconds(1_800)));
    assert_eq!(known(&world, never), None);
    assert_eq!(world.state().wait_reason(world.job(never)), Some(WaitReason::Dependency(endless)));
    // It ends early: everything moves.
    world.wait(100);
    world.end(first);
    world.settle();
    assert_eq!([second, third].map(|job| start(&world, job)), [Some(500), Some(800)]);
    // A condition that can no longer be met has no prediction: the known ones are withdrawn.
    world.must(&user("ada"), Command::Cancel { jobs: JobSelection::Ids(vec![second]) });
    commit(&mut world);
    assert_eq!([third, delayed].map(|job| known(&world, job)), [None, None]);
    assert_eq!(world.state().wait_reason(world.job(third)), Some(WaitReason::DependencyNeverMet(second)));
    // Nothing more is made of it then.
    let followers = world.projection.followers();
    assert!(followers.iter().all(|follower| follower.job.id != third));
    assert!(followers.iter().any(|follower| follower.job.id == delayed), "its own condition can be met");
}

/// OAR-D-06: a job enters once, at the last of the moments that are known for its groups, however often these become known.
#[test]
fn a_job_behind_several_enters_once() {
    let mut world = world();
    let [first, second] = [100, 200].map(|seconds| world.run(tasks(2, seconds)));
    let on_both = |kind| vec![vec![on(kind, first, 0), on(kind, second, 0)], vec![on(kind, second, 300)]];
    let many: Vec<JobId> = (0..50).map(|_| world.submit(after(tasks(1, 10), on_both(DependencyKind::Ended)))).collect();
    world.settle();
    let starts: Vec<Option<i64>> = many.iter().map(|job| start(&world, *job)).collect();
    let expected: Vec<Option<i64>> = (0..50).map(|at| Some(500 + at / 4 * 10)).collect();
    assert_eq!(starts, expected);
}

/// OAR-D-06: one of several is enough, all groups count, and so does a time before which the job does not start.
#[test]
fn groups_and_times_count() {
    let mut world = world();
    let [short, long] = [tasks(1, 100), tasks(1, 900)].map(|spec| world.run(spec));
    let kind = DependencyKind::NotFailed;
    let either = world.submit(after(tasks(1, 10), vec![vec![on(kind, short, 0), on(kind, long, 0)]]));
    let both = world.submit(after(tasks(1, 10), vec![vec![on(kind, short, 0)], vec![on(kind, long, 0)]]));
    let mut late = after(tasks(1, 10), vec![vec![on(kind, short, 0)]]);
    late.components[0].begin = Some(world.now.plus_seconds(2_000));
    let late = world.submit(late);
    let held = {
        let mut spec = after(tasks(1, 10), vec![vec![on(kind, short, 0)]]);
        spec.components[0].holds.user = true;
        world.submit(spec)
    };
    world.settle();
    assert_eq!([either, both, late].map(|job| start(&world, job)), [Some(100), Some(900), Some(2_000)]);
    assert!(foreseen(&world).iter().all(|one| one.job != held), "somebody has to release it");
}

/// OAR-D-06: an array has ended when its last task has.
#[test]
fn the_end_of_an_array_is_that_of_its_last_task() {
    let mut world = world();
    let indices = IndexSet::first_n(5);
    let array = world.submit(JobSpec { array: Some(ArraySpec { indices, max_running: None }), ..tasks(2, 100) });
    let next = world.submit(after(tasks(1, 10), vec![vec![on(DependencyKind::Ended, array, 0)]]));
    world.settle();
    assert_eq!(start(&world, next), Some(300), "two tasks at a time");
    world.wait(100);
    for task in [0, 1] {
        world.end(JobId { index: Some(task), ..array });
    }
    world.settle();
    assert_eq!(start(&world, next), Some(200), "two run, and one waits");
    world.wait(100);
    for task in [2, 3] {
        world.end(JobId { index: Some(task), ..array });
    }
    world.settle();
    assert_eq!(start(&world, next), Some(100), "the last one runs");
}
