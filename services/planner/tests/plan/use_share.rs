//! The order of jobs by what users and accounts used and asked for (OAR-Q-12).

use crate::world::{World, component, job_of, nodes};
use muster_schemas::{
    JobId,
    job::JobSpec,
    policy::{OrderKey, Policy, UseShare},
    resources::{Alternative, Request},
};

fn cores(count: u32, walltime_seconds: u64) -> JobSpec {
    let request = Request { tasks: Some(count), ..Request::default() };
    let walltime_seconds = Some(walltime_seconds);
    job_of(component(vec![Alternative { requests: vec![request], walltime_seconds, ..Alternative::default() }]))
}

/// A node of four cores whose policy orders jobs by use.
fn world(rule: UseShare) -> World {
    let mut world = World::new(nodes(1, 4));
    let order = vec![OrderKey::UseShare];
    world.set_policy(Policy { order, use_share: Some(Box::new(rule)), ..Policy::built_in("easy").unwrap() });
    world
}

/// A job of a user runs for some time.
fn run(world: &mut World, user: &str, count: u32, walltime_seconds: u64, seconds: i64) {
    let job = world.submit_as(user, cores(count, walltime_seconds));
    assert_eq!(world.settle(), [job]);
    world.report_start(job);
    world.pass(seconds, job);
    world.end(job);
}

/// Jobs that start one after the other, each ending before the next.
fn order(world: &mut World) -> Vec<JobId> {
    let mut order = Vec::new();
    while let [job] = world.settle()[..] {
        order.push(job);
        world.end(job);
    }
    order
}

/// OAR-Q-12, OAR-G-03: who used and asked for less than his part goes first, and among equals the first job.
#[test]
fn the_least_use_above_its_target_goes_first() {
    let user_targets = [("ann".to_owned(), 20), ("bob".to_owned(), 60)].into();
    let mut world = world(UseShare { user_targets, ..UseShare::default() });
    // As in W11: ann used 600 and asked for 800, bob 400 and 1200.
    run(&mut world, "ann", 2, 400, 300);
    run(&mut world, "bob", 2, 600, 200);
    let sums = world.state().window_use(world.state().time());
    let sums = &sums["default"];
    assert_eq!((sums.asked, sums.asked_by_users["ann"]), (2000, 800));
    let blocker = world.submit_as("dora", cores(4, 10));
    assert_eq!(world.settle(), [blocker]);
    let submitted = ["ann", "carl", "bob", "carl", "ann"].map(|user| world.submit_as(user, cores(4, 10)));
    let [ann, carl, bob, other_carl, other_ann] = submitted;
    // A job that waits shows the value that the order compares. Runs last a little longer than told, as each command takes a second.
    let shown = |job: JobId| {
        let share = world.state().use_share_of(world.state().job(job).expect("it waits"), world.state().time());
        share.expect("the order compares it")
    };
    for (job, expected) in [(ann, 1.0), (bob, -0.4), (carl, 0.0)] {
        assert!((shown(job) - expected).abs() < 0.01, "{job}: {}", shown(job));
    }
    world.end(blocker);
    // What they use meanwhile counts, too, but is little.
    assert_eq!(order(&mut world), [bob, carl, other_carl, ann, other_ann]);
}

/// OAR-Q-12: only the first jobs of a user are planned in a cycle; the others of the queue are not held up by that.
#[test]
fn only_the_first_jobs_of_a_user_are_planned_in_a_cycle() {
    let mut world = world(UseShare { most_jobs_per_user: 2, ..UseShare::default() });
    let of_ann = [(); 3].map(|()| world.submit_as("ann", cores(1, 10)));
    let of_bob = world.submit_as("bob", cores(1, 10));
    let plan = world.plan().plan;
    let started: Vec<JobId> = plan.starts.iter().map(|start| start.job).collect();
    assert_eq!(started, [of_ann[0], of_ann[1], of_bob]);
}

/// OAR-Q-12: use that is older than the window does not count.
#[test]
fn old_use_is_forgotten() {
    let rule = UseShare { window_seconds: 3600, slice_seconds: 3600, ..UseShare::default() };
    let mut world = world(rule);
    run(&mut world, "ann", 2, 400, 300);
    let sum = |world: &World| {
        let now = world.state().time();
        world.state().window_use(now).get("default").map_or(0, |sums| sums.used)
    };
    assert!(sum(&world) > 0);
    let waits = world.submit_as("ann", JobSpec { name: "later".into(), ..cores(4, 10) });
    world.pass(7200, waits);
    assert_eq!(sum(&world), 0);
}
