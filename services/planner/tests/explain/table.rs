//! The plan as a table and as a chart.

use crate::world::{World, node, queue, tasks, user};
use muster_planner::{
    chart::{self, BarKind},
    timetable::{Part, gantt, timetable},
};
use muster_schemas::{
    command::Command,
    event::Actor,
    plan::{NodeClosure, ReservationSpec, ReservedNodes},
    policy::Policy,
    views::Timetable,
};

fn table(world: &World, part: &Part) -> Timetable {
    timetable(world.projection.engine(), world.state(), world.now, part)
}

fn busy() -> World {
    let policy = Policy::built_in("conservative").expect("it is built in");
    let queues = vec![queue("default"), queue("fast")];
    let mut world = World::new(&policy, vec![node("n1", 4, 0), node("n2", 4, 0)], queues);
    world.run(tasks(8, 600));
    world.run(tasks(4, 300));
    let mut fast = tasks(8, 300);
    fast.components[0].queue = Some("fast".into());
    world.run(fast);
    world
}

#[test]
fn runs_and_promises_are_in_the_table_in_order() {
    let world = busy();
    let table = table(&world, &Part::default());
    assert_eq!(table.policy, "conservative");
    assert_eq!(table.running.len(), 1);
    assert_eq!(table.running[0].expected_end, Some(world.now.plus_seconds(600)));
    let waiting: Vec<_> = table.waiting.iter().map(|wait| (wait.place, wait.job.number, wait.promised_start)).collect();
    let after = |seconds| Some(world.now.plus_seconds(seconds));
    assert_eq!(waiting, [(1, 2, after(600)), (2, 3, after(900))]);
    assert_eq!(table.waiting[1].expected_start, after(900));
    assert_eq!(table.waiting[0].nodes.iter().map(|node| node.cores).sum::<u64>(), 4);
}

#[test]
fn a_part_keeps_places_and_counts_what_it_leaves_out() {
    let world = busy();
    let fast = table(&world, &Part { queue: Some("fast".into()), limit: None });
    assert_eq!(fast.waiting.iter().map(|wait| wait.place).collect::<Vec<_>>(), [2]);
    assert!(fast.running.is_empty());
    let first = table(&world, &Part { queue: None, limit: Some(1) });
    assert_eq!((first.waiting.len(), first.more_waiting), (1, 1));
}

#[test]
fn closures_and_reservations_are_in_table_and_chart() {
    let mut world = busy();
    let closure = NodeClosure {
        from: world.now.plus_seconds(5000),
        until: world.now.plus_seconds(6000),
        reason: "new fans".into(),
    };
    world.must(&Actor::Ledger, Command::SetNodeClosures { nodes: vec!["n2".into()], closures: vec![closure] });
    let reservation = ReservationSpec {
        name: "course".into(),
        start: world.now.plus_seconds(7000),
        end: world.now.plus_seconds(8000),
        nodes: ReservedNodes::Named(vec!["n1".into()]),
        users: Vec::new(),
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    };
    world.must(&Actor::Ledger, Command::Reserve { reservation: Box::new(reservation) });
    world.settle();
    let table = table(&world, &Part::default());
    assert_eq!((table.closures.len(), table.closures[0].node.as_str()), (1, "n2"));
    assert_eq!(
        (table.reservations[0].name.as_str(), &table.reservations[0].nodes[..]),
        ("course", &["n1".to_owned()][..])
    );
    let chart = gantt(&table, &["n1".into(), "n2".into()]);
    let kinds = |row: usize| chart.rows[row].bars.iter().map(|bar| bar.kind).collect::<Vec<_>>();
    assert!(kinds(0).contains(&BarKind::Reservation) && kinds(0).contains(&BarKind::Run), "{chart:?}");
    assert!(kinds(1).contains(&BarKind::Closure) && kinds(1).contains(&BarKind::Slot), "{chart:?}");
    assert_eq!((chart.from, chart.until), (world.now, world.now.plus_seconds(8000)));
    let svg = chart::gantt(&chart);
    roxmltree::Document::parse(&svg).expect("well-formed");
    assert!(svg.contains("new fans") && svg.contains("course"));
}

#[test]
fn an_empty_cluster_has_an_empty_table() {
    let world = World::new(&Policy::default(), Vec::new(), vec![queue("default")]);
    let table = table(&world, &Part::default());
    assert!(table.running.is_empty() && table.waiting.is_empty());
    let chart = gantt(&table, &[]);
    assert!(chart.until > chart.from);
    assert!(matches!(user("ada"), Actor::User(_)));
}
