//! When a job would start that is not submitted (SL-C-10, SL-S-24).

use crate::world::{World, component, job_of, node, nodes, owner};
use muster_schemas::{
    JobId, Timestamp,
    command::RefusalCode,
    event::Actor,
    job::{Dependencies, Dependency, DependencyKind, Holds, JobSpec},
    resources::{Alternative, Request, Sharing},
    views::Forecast,
};

/// A job that has whole nodes, one for each component, for so long.
fn whole(components: usize, seconds: u64) -> JobSpec {
    let request = Request { sharing: Sharing::Exclusive, ..Request::default() };
    let asked = Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    let one = component(vec![asked]);
    JobSpec { components: vec![one.clone(); components], ..job_of(one) }
}

fn foresee(world: &World, spec: JobSpec) -> Forecast {
    let Actor::User(ada) = owner("ada") else { panic!("a user") };
    world.foresee(&ada, spec).expect("it would be accepted")
}

fn seconds_from(world: &World, start: Option<Timestamp>) -> Option<i64> {
    start.map(|start| start.micros_since(world.state().time()) / 1_000_000)
}

#[test]
fn nothing_is_submitted_and_the_number_is_the_next_one() {
    let mut world = World::new(nodes(2, 4));
    let before = world.state().clone();
    let told = foresee(&world, whole(2, 60));
    assert_eq!(*world.state(), before);
    assert_eq!((told.job, told.start), (JobId::job(1), Some(world.state().time())));
    assert_eq!((told.nodes, told.cores, told.queue), (vec!["n1".to_owned(), "n2".to_owned()], 2, "default".to_owned()));
    assert_eq!(world.submit(whole(1, 60)), told.job);
}

#[test]
fn a_job_waits_for_what_runs_and_for_who_stands_before_it() {
    let mut world = World::new(nodes(1, 4));
    world.submit(whole(1, 600));
    world.settle();
    let began = world.state().time();
    world.submit(whole(1, 300));
    world.settle();
    let start = foresee(&world, whole(1, 60)).start.expect("it is foreseen");
    assert_eq!(start.micros_since(began) / 1_000_000, 900, "behind the job that runs and the one that waits");
}

#[test]
fn a_begin_time_counts_and_holds_and_dependencies_do_not() {
    let mut world = World::new(nodes(1, 4));
    let other = world.submit(JobSpec { ..whole(1, 60) });
    world.settle();
    let mut spec = whole(1, 60);
    spec.components[0].holds = Holds { user: true, ..Holds::default() };
    let dependency = Dependency { kind: DependencyKind::Failed, job: Some(other), delay_seconds: 0 };
    spec.components[0].dependencies = Dependencies { all_of: vec![vec![dependency]] };
    let told = foresee(&world, spec.clone());
    assert!(seconds_from(&world, told.start).is_some_and(|seconds| (1..=60).contains(&seconds)), "{told:?}");
    let later = world.state().time().plus_seconds(4000);
    spec.components[0].begin = Some(later);
    assert_eq!(foresee(&world, spec).start, Some(later));
}

/// SL-C-10
#[test]
fn what_can_never_start_is_refused_or_not_foreseen() {
    let mut world = World::new(vec![node("n1", 4, 8), node("n2", 4, 8)]);
    let Actor::User(ada) = owner("ada") else { panic!("a user") };
    let refusal = world.foresee(&ada, whole(3, 60)).expect_err("there are two nodes");
    assert_eq!(refusal.code, RefusalCode::Invalid);
    world.drain(&["n1"]);
    assert_eq!(foresee(&world, whole(2, 60)).start, None);
    assert_eq!(foresee(&world, whole(1, 60)).nodes, ["n2"]);
}
