//! The nodes that the components of a job get.

use crate::{
    MINUTE, backfill_passes, on, pass, places, reason, reference_cluster, some, together,
    world::{World, node, queue},
};
use muster_schemas::{
    Timestamp,
    cluster::QueueSpec,
    command::Command,
    event::Actor,
    job::{JobSpec, WaitReason},
    plan::{ReservationSpec, ReservedNodes},
    policy::Policy,
};
use std::collections::BTreeSet;

fn names(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("n{number:02}")).collect()
}

/// Nodes with one core, and queues with some of them.
fn cluster(nodes: u32, queues: &[(&str, Vec<String>)]) -> World {
    let nodes = names(1..=nodes).iter().map(|name| node(name, 1, 0)).collect();
    let queue_of = |(name, nodes): &(&str, Vec<String>)| QueueSpec { nodes: nodes.clone(), ..queue(name) };
    let mut queues: Vec<QueueSpec> = queues.iter().map(queue_of).collect();
    queues.push(queue("default"));
    let mut world = World::new(&Policy::default(), nodes, queues);
    world.wait(1);
    world
}

fn all(parts: &[(u32, &str)]) -> JobSpec {
    together(parts.iter().map(|(nodes, queue)| some(*nodes, queue, 10)))
}

/// SL-P-08
#[test]
fn the_first_component_leaves_the_second_its_nodes() {
    let mut world = cluster(10, &[("p1", names(1..=10)), ("p2", names(1..=5))]);
    let job = world.submit(all(&[(5, "p1"), (5, "p2")]));
    assert_eq!(pass(&mut world).0, [job]);
    assert_eq!(places(&world, job), [names(6..=10), names(1..=5)]);
}

/// SL-P-08: if the order alone does not work, nodes are assigned by search.
#[test]
fn nodes_are_dealt_out_where_first_fit_does_not_do() {
    let mut world = cluster(3, &[("a", names([1, 3])), ("b", names([1, 2])), ("c", names([2]))]);
    let job = world.submit(all(&[(1, "a"), (1, "b"), (1, "c")]));
    assert_eq!(pass(&mut world).0, [job]);
    assert_eq!(places(&world, job), [names([3]), names([1]), names([2])]);
}

/// SL-P-08: even if the free nodes allow only one assignment.
#[test]
fn nodes_are_dealt_out_of_what_is_free() {
    let mut world = cluster(4, &[("a", names([1, 3])), ("b", names([1, 2, 4])), ("taken", names([2, 4]))]);
    let taken = world.submit(some(2, "taken", 10));
    assert_eq!(pass(&mut world).0, [taken]);
    // `b` only has node 1, which `a` would take first.
    let job = world.submit(all(&[(1, "a"), (1, "b")]));
    assert_eq!(pass(&mut world).0, [job]);
    assert_eq!(places(&world, job), [names([3]), names([1])]);
}

/// SL-P-08: a node without room for an equal part of the tasks is not assigned to them.
#[test]
fn nodes_are_dealt_out_that_have_room_for_their_part_of_the_tasks() {
    let nodes = (1..=6).map(|number| node(&format!("n{number:02}"), if number > 2 { 3 } else { 2 }, 0)).collect();
    let of = |name: &str, numbers: [u32; 4]| QueueSpec { nodes: names(numbers), ..queue(name) };
    let queues = vec![queue("default"), of("a", [1, 2, 3, 4]), of("b", [3, 4, 5, 6])];
    let mut world = World::new(&Policy::default(), nodes, queues);
    world.wait(1);
    // Five tasks have no room on the nodes 1 and 2, which are left to `a` if `b` has its first ones.
    let mut five = some(2, "a", 10);
    five.components[0].alternatives[0].requests[0].tasks = Some(5);
    let job = world.submit(together([some(2, "b", 10), five]));
    assert_eq!(pass(&mut world).0, [job]);
    assert_eq!(places(&world, job), [names([5, 6]), names([3, 4])]);
}

/// SL-P-08, SL-P-09: nodes of a reservation are assigned among the components that name it.
#[test]
fn nodes_of_a_reservation_are_dealt_out_too() {
    let mut world = cluster(3, &[("a", names([1, 3])), ("b", names([1, 2])), ("c", names([2]))]);
    let zero = world.now;
    let reservation = ReservationSpec {
        name: "course".into(),
        start: zero.plus_seconds(1),
        end: zero.plus_seconds(1000 * MINUTE),
        nodes: ReservedNodes::Named(names(1..=3)),
        users: vec!["ada".into()],
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    };
    world.must(&Actor::Ledger, Command::Reserve { reservation: Box::new(reservation) });
    world.now = zero.plus_seconds(2);
    world.must(&Actor::Ledger, Command::Tick);
    let mut named = all(&[(1, "a"), (1, "b"), (1, "c")]);
    for component in &mut named.components {
        component.reservation = Some("course".into());
    }
    let named = world.submit(named);
    assert_eq!(pass(&mut world).0, [named]);
    assert_eq!(places(&world, named), [names([3]), names([1]), names([2])]);
}

/// SL-C-38: on nodes that two reservations have, the jobs of the one that overlaps others start, and those of the other wait.
#[test]
fn a_reservation_that_overlaps_others_has_their_nodes_for_itself() {
    let mut world = cluster(2, &[("all", names([1, 2]))]);
    let zero = world.now;
    let course = ReservationSpec {
        name: "course".into(),
        start: zero.plus_seconds(1),
        end: zero.plus_seconds(1000 * MINUTE),
        nodes: ReservedNodes::Named(names(1..=2)),
        users: vec!["ada".into()],
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    };
    let repair = ReservationSpec {
        name: "repair".into(),
        nodes: ReservedNodes::Named(names([1])),
        overlaps: true,
        ..course.clone()
    };
    for reservation in [course, repair] {
        world.must(&Actor::Ledger, Command::Reserve { reservation: Box::new(reservation) });
    }
    world.now = zero.plus_seconds(2);
    world.must(&Actor::Ledger, Command::Tick);
    let job = |name: &str| {
        let mut job = all(&[(1, "all")]);
        job.components[0].reservation = Some(name.to_owned());
        job
    };
    let (first, inside) = (world.submit(job("course")), world.submit(job("repair")));
    assert_eq!(pass(&mut world).0, [first, inside]);
    assert_eq!((places(&world, first), places(&world, inside)), (vec![names([2])], vec![names([1])]));
    world.end(inside);
    let second = world.submit(job("course"));
    assert_eq!(pass(&mut world).0, [], "the node is free, and kept");
    world.must(&Actor::Ledger, Command::RemoveReservation { name: "repair".into() });
    assert_eq!(pass(&mut world).0, [second]);
}

/// SL-P-08: a job that no assignment helps waits for resources, and is told so: they are kept for it.
#[test]
fn who_is_helped_by_no_choice_waits_for_resources() {
    let mut world = cluster(3, &[("a", names([1, 2, 3])), ("b", names([1, 2])), ("one", names([1]))]);
    let taken = world.submit(some(1, "one", 10));
    assert_eq!(pass(&mut world).0, [taken]);
    let waits = world.submit(all(&[(2, "a"), (1, "b")]));
    assert_eq!(pass(&mut world).0, []);
    assert!(matches!(reason(&world, waits), Some(WaitReason::Reserved { .. })));
    world.end(taken);
    assert_eq!(pass(&mut world).0, [waits]);
}

/// SL-P-07: whatever room a node has, it gets no second component of a job that fits elsewhere.
#[test]
fn components_are_on_different_nodes() {
    let mut world = reference_cluster(&backfill_passes());
    let job =
        world.submit(together([crate::world::tasks(1, 600), crate::world::tasks(1, 600), crate::world::tasks(2, 600)]));
    assert_eq!(pass(&mut world).0, [job]);
    let places = places(&world, job);
    assert_eq!(places.iter().flatten().collect::<BTreeSet<_>>().len(), 3, "{places:?}");
}

/// SL-P-09
#[test]
fn a_reservation_attracts_no_job_that_does_not_name_it() {
    let mut world = reference_cluster(&backfill_passes());
    let zero = world.now;
    let reservation = ReservationSpec {
        name: "course".into(),
        start: zero.plus_seconds(1),
        end: zero.plus_seconds(1000 * MINUTE),
        nodes: ReservedNodes::Named((1..=11).map(|number| format!("nid{number:05}")).collect()),
        users: vec!["ada".into()],
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    };
    world.must(&Actor::Ledger, Command::Reserve { reservation: Box::new(reservation) });
    world.now = zero.plus_seconds(2);
    let now: Timestamp = world.now;
    world.must(&Actor::Ledger, Command::Tick);
    let elsewhere = world.submit(together([some(1, "default", 10), some(1, "default", 10)]));
    assert_eq!(pass(&mut world).0, [], "only one node is outside the reservation, which its user may use");
    assert!(!matches!(reason(&world, elsewhere), Some(WaitReason::ReservationNotBegun(_))));
    let mut named = together([on(1, 10), on(2, 10)]);
    for component in &mut named.components {
        component.reservation = Some("course".into());
    }
    let named = world.submit(named);
    world.now = now.plus_seconds(30);
    assert_eq!(pass(&mut world).0, [named]);
    assert_eq!(places(&world, named), [["nid00001"], ["nid00002"]]);
}
