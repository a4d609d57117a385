//! When a job that is not submitted would start (SL-C-10, SL-S-24).

use crate::world::{World, component, job_of, node, nodes, owner};
use muster_planner::{forecast::foresee_within, predict::Effort};
use muster_schemas::{
    JobId, Timestamp,
    cluster::ClusterChange,
    command::{Command, JobSelection, RefusalCode},
    event::Actor,
    filter::StagingSettings,
    job::{ComponentStaging, Dependencies, Dependency, DependencyKind, Holds, JobSpec},
    plan::{NodeClosure, Replaced, ReservationSpec, ReservedNodes},
    resources::{Alternative, Request, Sharing},
    views::Forecast,
};

/// A job with whole nodes, one for each component, for this long.
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

/// Staging is assumed to be complete.
#[test]
fn files_to_be_staged_hold_up_no_forecast() {
    let mut world = World::new(nodes(1, 4));
    let staging = StagingSettings { program: Some("/site/stage".into()), ..StagingSettings::default() };
    let change = Box::new(ClusterChange { staging: Some(staging), ..ClusterChange::default() });
    world.command(&Actor::Ledger, Command::Configure { change, keep_unnamed: true }).expect("a good configuration");
    let mut spec = whole(1, 60);
    let files = ComponentStaging { directives: vec!["#DW line".into()], ..ComponentStaging::default() };
    spec.staging = vec![files];
    assert_eq!(foresee(&world, spec).start, Some(world.state().time()));
}

/// A job starts when its reservation begins, also after others that wait for it.
#[test]
fn a_reservation_to_come_is_waited_for() {
    let mut world = World::new(nodes(2, 4));
    let start = world.state().time().plus_seconds(100);
    let reservation = course(&["n2"], start, 10_000);
    world.command(&Actor::Ledger, Command::Reserve { reservation: Box::new(reservation) }).expect("a good one");
    let mut spec = whole(1, 60);
    spec.components[0].reservation = Some("course".into());
    let told = foresee(&world, spec.clone());
    assert_eq!((told.start, told.nodes), (Some(start), vec!["n2".to_owned()]));
    assert_eq!(foresee(&world, whole(1, 60)).start, Some(world.state().time()), "there is another node");
    world.submit(spec.clone());
    assert_eq!(foresee(&world, spec.clone()).start, Some(start.plus_seconds(60)));
    let later = start.plus_seconds(1000);
    spec.components[0].begin = Some(later);
    assert_eq!(foresee(&world, spec).start, Some(later));
}

/// The longer the queue, the fewer cycles the forecast simulates.
#[test]
fn a_forecast_goes_no_further_than_it_may() {
    let mut world = World::new(nodes(1, 4));
    for _ in 0..8 {
        world.submit(whole(1, 60));
    }
    world.settle();
    let Actor::User(ada) = owner("ada") else { panic!("a user") };
    let start = |max_cycles| {
        let now = world.state().time();
        let told = foresee_within(world.projection(), &ada, whole(1, 60), now, Effort { max_cycles });
        told.expect("it would be accepted").start
    };
    assert_eq!(start(5), None);
    assert_eq!(start(20), foresee(&world, whole(1, 60)).start);
    assert!(start(20).is_some());
    let cycles = [0, 1, 5_000, 100_000, 10_000_000].map(|waiting| Effort::of_looks(5_000_000, waiting).max_cycles);
    assert_eq!(cycles, [10_000, 10_000, 1000, 50, 1]);
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

/// SL-C-38: a reservation that attracts jobs has those that it admits, for as long as it lasts; others wait for its end.
#[test]
fn jobs_that_a_reservation_admits_are_attracted_by_it() {
    let mut world = World::new(nodes(1, 4));
    let start = world.state().time();
    let spec = ReservationSpec { attracts: true, ..course(&["n1"], start, 1000) };
    world.command(&Actor::Ledger, Command::Reserve { reservation: Box::new(spec.clone()) }).expect("a good one");
    world.tick();
    let inside = world.submit(whole(1, 60));
    assert_eq!(world.settle(), [inside]);
    world.end(inside);
    let too_long = world.submit(whole(1, 2000));
    assert_eq!(world.settle(), [], "it would outlast it");
    world.command(&Actor::Ledger, Command::Cancel { jobs: JobSelection::Ids(vec![too_long]) }).expect("it waits");
    let other = world.submit_as("bob", whole(1, 60));
    assert_eq!(world.settle(), [], "it admits ada alone");
    // Waiting jobs are looked at again when it changes.
    let shut = ReservationSpec { users: vec!["bob".into()], ..spec };
    world.command(&Actor::Ledger, Command::ChangeReservation { reservation: Box::new(shut) }).expect("a good one");
    assert_eq!(world.settle(), [other]);
    world.end(other);
    let later = world.submit(whole(1, 2000));
    assert_eq!(world.settle(), []);
    world.command(&Actor::Ledger, Command::RemoveReservation { name: "course".into() }).expect("it is there");
    assert_eq!(world.settle(), [later]);
}

/// SL-C-38: jobs of a flexible reservation start before it and outlast it, on its nodes and on others.
#[test]
fn jobs_of_a_flexible_reservation_go_beyond_it() {
    let mut world = World::new(nodes(2, 4));
    let start = world.state().time().plus_seconds(100);
    let spec = ReservationSpec { is_flexible: true, ..course(&["n2"], start, 1000) };
    world.command(&Actor::Ledger, Command::Reserve { reservation: Box::new(spec) }).expect("a good one");
    let of_course = |nodes: usize, seconds: u64| {
        let mut job = whole(nodes, seconds);
        job.components.iter_mut().for_each(|component| component.reservation = Some("course".into()));
        job
    };
    let long = world.submit(of_course(2, 5000));
    assert_eq!(world.settle(), [long]);
    world.end(long);
    assert_eq!(foresee(&world, of_course(2, 60)).start, Some(world.state().time()));
    world.submit_as("bob", whole(2, 600));
    assert_eq!(world.settle(), [], "it would be in the way of the reservation");
}

/// SL-C-38: idle nodes take the place of nodes of a reservation that are drained, and, if it says so, of those that jobs have.
#[test]
fn nodes_of_reservations_are_replaced_by_idle_ones() {
    let mut world = World::new(nodes(4, 4));
    let start = world.state().time();
    let of_course = |world: &World| {
        let reservation = world.state().reservation("course").expect("it is there");
        reservation.nodes.iter().map(|node| world.state().node_name(*node).into_owned()).collect::<Vec<_>>()
    };
    let by_count = ReservedNodes::Count { count: 2, filter: None, queue: None };
    let spec = ReservationSpec { nodes: by_count, replaces: Replaced::Lost, ..course(&[], start, 1000) };
    world.command(&Actor::Ledger, Command::Reserve { reservation: Box::new(spec.clone()) }).expect("a good one");
    world.settle();
    assert_eq!(of_course(&world), ["n1", "n2"]);
    let busy = world.submit_as("bob", whole(1, 600));
    assert_eq!(world.settle(), [busy], "on n3");
    world.drain(&["n1", "n2"]);
    world.settle();
    assert_eq!(of_course(&world), ["n2", "n4"], "there is one idle node");
    world.command(&Actor::Ledger, Command::ResumeNodes { nodes: vec!["n1".into(), "n2".into()] }).expect("they are");
    let spec = ReservationSpec { replaces: Replaced::Used, ..spec };
    world.command(&Actor::Ledger, Command::ChangeReservation { reservation: Box::new(spec) }).expect("a good one");
    world.tick();
    let mut inside = whole(1, 60);
    inside.components[0].reservation = Some("course".into());
    let inside = world.submit(inside);
    assert_eq!(world.settle(), [inside]);
    assert_eq!(of_course(&world), ["n1", "n4"], "the job has n2");
}

/// SL-C-38: the nodes of a reservation that stays ahead have jobs of others for no longer than it is ahead.
#[test]
fn a_reservation_that_stays_ahead_leaves_its_nodes_to_short_jobs() {
    let mut world = World::new(nodes(1, 4));
    let start = world.state().time().plus_seconds(600);
    let spec = ReservationSpec { stays_ahead_seconds: 600, ..course(&["n1"], start, 1000) };
    world.command(&Actor::Ledger, Command::Reserve { reservation: Box::new(spec) }).expect("a good one");
    let short = world.submit_as("bob", whole(1, 500));
    assert_eq!(world.settle(), [short]);
    world.pass(5_000, short);
    world.end(short);
    let short = world.submit_as("bob", whole(1, 600));
    assert_eq!(world.settle(), [short], "the reservation is as far ahead as before");
    world.end(short);
    let long = world.submit_as("bob", whole(1, 601));
    assert_eq!(world.settle(), []);
    world.command(&Actor::Ledger, Command::RemoveReservation { name: "course".into() }).expect("it is there");
    assert_eq!(world.settle(), [long]);
}

/// SL-C-38: a reservation that stays ahead has no end: others do not get its nodes, and its own are free from then on.
#[test]
fn nodes_are_chosen_by_the_time_of_reservations_that_stay_ahead() {
    let mut world = World::new(nodes(4, 4));
    let reserve = |world: &mut World, spec: ReservationSpec| {
        world.command(&Actor::Ledger, Command::Reserve { reservation: Box::new(spec) }).expect("a good one");
    };
    let nodes_of = |world: &World, name: &str| {
        let reservation = world.state().reservation(name).expect("it is there");
        reservation.nodes.iter().map(|node| world.state().node_name(*node).into_owned()).collect::<Vec<_>>()
    };
    let by_count = |count: u32| ReservedNodes::Count { count, filter: None, queue: None };
    let start = world.state().time().plus_seconds(600);
    let spec = ReservationSpec {
        nodes: by_count(1),
        stays_ahead_seconds: 600,
        replaces: Replaced::Lost,
        ..course(&[], start, 60)
    };
    reserve(&mut world, spec);
    let busy = world.submit_as("bob", whole(1, 60));
    world.settle();
    assert_eq!(nodes_of(&world, "course"), ["n1"]);
    world.pass(5_000, busy);
    world.end(busy);
    // Its first end is long ago.
    let soon = world.state().time().plus_seconds(10);
    let other = ReservationSpec { name: "other".into(), nodes: by_count(1), ..course(&[], soon, 60) };
    reserve(&mut world, other);
    assert_eq!(world.settle(), []);
    assert_eq!(nodes_of(&world, "other"), ["n2"], "the first node is not free for it");
    assert_eq!(world.plan().plan.reservations, [], "there is nothing more to choose");
    // A node that closes later is idle now, but not when it is needed.
    let now = world.state().time();
    let fan = NodeClosure { from: now.plus_seconds(50_000), until: now.plus_seconds(60_000), reason: "fan".into() };
    let close = Command::SetNodeClosures { nodes: vec!["n3".into()], closures: vec![fan] };
    world.command(&Actor::Ledger, close).expect("it is there");
    world.drain(&["n1"]);
    world.settle();
    assert_eq!(nodes_of(&world, "course"), ["n4"]);
}

fn course(nodes: &[&str], start: Timestamp, seconds: i64) -> ReservationSpec {
    ReservationSpec {
        name: "course".into(),
        start,
        end: start.plus_seconds(seconds),
        nodes: ReservedNodes::Named(nodes.iter().map(ToString::to_string).collect()),
        users: vec!["ada".into()],
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    }
}
