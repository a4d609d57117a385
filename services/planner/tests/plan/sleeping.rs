//! Nodes that sleep (OAR-E-02, OAR-E-03).

use crate::world::{World, nodes};
use muster_planner::projection::Projection;
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::Command,
    energy::{EnergySettings, PowerPhase, PowerRule},
    event::Actor,
    job::JobSpec,
    policy::{Backfill, BackfillMode, Policy},
    resources::{Alternative, Count, Level, LevelCount, PropertyValue, Request, Sharing},
};

/// Four nodes, of which some can be had until a time.
fn config(until: Option<Timestamp>, some: &[&str]) -> ClusterConfig {
    let energy = EnergySettings {
        sleep_program: vec!["/opt/sleep".into()],
        wake_program: vec!["/opt/wake".into()],
        ..EnergySettings::default()
    };
    let mut nodes = nodes(4, 4);
    for node in nodes.iter_mut().filter(|node| some.contains(&node.name.as_str())) {
        let seconds = until.map(|until| PropertyValue::Number(until.unix_seconds()));
        node.properties.extend(seconds.map(|seconds| (PowerRule::UNTIL.to_owned(), seconds)));
    }
    ClusterConfig {
        settings: ClusterSettings { energy: Some(energy), ..ClusterSettings::default() },
        queues: vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }],
        nodes,
        ..ClusterConfig::default()
    }
}

/// A job that has this many nodes to itself for this many seconds.
fn job(nodes: u32, seconds: u64) -> JobSpec {
    let path = vec![LevelCount { level: Level::Node, count: Count::exactly(nodes) }];
    let request = Request { path, sharing: Sharing::Exclusive, ..Request::default() };
    let alternative =
        Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() };
    crate::world::job_of(crate::world::component(vec![alternative]))
}

fn conservative() -> Policy {
    let backfill = Backfill { mode: BackfillMode::Conservative, ..Backfill::default() };
    Policy { backfill, ..Policy::default() }
}

fn node(world: &World, name: &str) -> NodeId {
    world.state().node_by_name(name).expect("it exists").id
}

/// Idle nodes are put to sleep and fall silent.
fn fall_asleep(world: &mut World, names: &[&str], job: JobId) {
    world.pass(600, job);
    world.tick();
    for name in names {
        let node = node(world, name);
        let phase = |world: &World| world.state().power_of(node).map(|power| power.phase);
        assert_eq!(phase(world), Some(PowerPhase::FallingAsleep), "{name}");
        world.command(&Actor::Ledger, Command::NodeSilent { node, reason: "silent".into() }).expect("noted");
        assert_eq!(phase(world), Some(PowerPhase::Asleep), "{name}");
    }
}

fn names(world: &World, id: JobId) -> Vec<String> {
    let job = world.state().job(id).expect("it is known");
    let placed = match job.run() {
        Some(run) => world.state().run(run).expect("it runs").placement.clone(),
        None => job.slot.as_ref().expect("it is planned").placement.clone(),
    };
    placed.nodes().map(|node| world.state().node_name(node).into_owned()).collect()
}

/// W6, its first half: sleeping nodes are planned up to their date and woken, and the job waits for all of them; a longer
/// job is planned on the others.
#[test]
fn w6_jobs_are_planned_on_sleeping_nodes_up_to_their_date() {
    let mut world = World::configured(config(None, &[]));
    world.set_policy(conservative());
    let busy = world.submit(job(2, 10_000));
    assert_eq!((world.settle(), names(&world, busy)), (vec![busy], vec!["n1".to_owned(), "n2".to_owned()]));
    world.report_start(busy);
    fall_asleep(&mut world, &["n3", "n4"], busy);
    let run = world.state().job(busy).and_then(|job| job.run()).expect("it runs");
    let end = world.state().run(run).unwrap().started.unwrap().plus_seconds(10_000);
    let zero = end.plus_seconds(-4_000);
    let wait = zero.micros_since(world.state().time()) / 1_000_000;
    world.pass(wait, busy);
    world.configure(config(Some(world.state().time().plus_seconds(5_001)), &["n3", "n4"]));
    let long = world.submit(job(2, 5_001));
    assert_eq!(world.settle(), [], "n3 and n4 go away too early");
    assert_eq!(names(&world, long), ["n1", "n2"]);
    assert_eq!(world.state().job(long).unwrap().slot.as_ref().unwrap().start, end);
    let short = world.submit(job(2, 3_000));
    assert_eq!(world.settle(), [short]);
    assert_eq!(names(&world, short), ["n3", "n4"]);
    world.tick();
    let phase = |world: &World, name: &str| world.state().power_of(node(world, name)).map(|power| power.phase);
    assert_eq!((phase(&world, "n3"), phase(&world, "n4")), (Some(PowerPhase::Waking), Some(PowerPhase::Waking)));
    let waits = |world: &World| {
        let run = world.state().job(short).and_then(|job| job.run()).expect("it has nodes");
        world.state().run(run).unwrap().waits_for_nodes
    };
    for name in ["n3", "n4"] {
        assert!(waits(&world), "it waits for {name}");
        let hello = Command::NodeHello { boot_id: "two".into(), parts: Vec::new(), highest_run: None, as_of: None };
        world.command(&Actor::Executor(name.into()), hello).expect("it is known");
        world.tick();
    }
    assert!(!waits(&world));
}

/// Nodes that are awake go first, whatever their numbers; nodes that sleep serve when the others are full.
#[test]
fn nodes_that_are_awake_go_first() {
    let mut world = World::configured(config(None, &[]));
    let busy = world.submit(job(4, 100_000));
    assert_eq!(world.settle(), [busy]);
    let other = world.submit(job(3, 100));
    world.end(busy);
    assert_eq!(world.settle(), [other]);
    assert_eq!(names(&world, other), ["n1", "n2", "n3"]);
    fall_asleep(&mut world, &["n4"], other);
    world.end(other);
    let next = world.submit(job(1, 100));
    assert_eq!((world.settle(), names(&world, next)), (vec![next], vec!["n1".to_owned()]));
    world.report_start(next);
    // n2 and n3 fall asleep too; n1 becomes free.
    fall_asleep(&mut world, &["n2", "n3"], next);
    let second = world.submit(job(1, 100));
    assert_eq!((world.settle(), names(&world, second)), (vec![second], vec!["n2".to_owned()]));
    world.end(next);
    let third = world.submit(job(1, 100));
    assert_eq!((world.settle(), names(&world, third)), (vec![third], vec!["n1".to_owned()]));
    let all = world.submit(job(2, 100));
    assert_eq!((world.settle(), names(&world, all)), (vec![all], vec!["n3".to_owned(), "n4".to_owned()]));
}

/// A node that may not be woken, or that is out of service, is no place while it sleeps.
#[test]
fn nodes_that_cannot_be_woken_are_no_place() {
    let mut world = World::configured(config(None, &[]));
    let busy = world.submit(job(1, 100_000));
    assert_eq!(world.settle(), [busy]);
    fall_asleep(&mut world, &["n2", "n3", "n4"], busy);
    let mut without = config(None, &[]);
    without.nodes[1].properties.insert(PowerRule::WAKES.to_owned(), PropertyValue::Flag(false));
    world.configure(without.clone());
    world.drain(&["n3"]);
    let job_on = world.submit(job(1, 100));
    assert_eq!((world.settle(), names(&world, job_on)), (vec![job_on], vec!["n4".to_owned()]));
    let waiting = world.submit(job(1, 100));
    assert_eq!(world.settle(), []);
    // Without a program nothing is woken.
    without.settings.energy = Some(EnergySettings::default());
    world.configure(without.clone());
    without.nodes[1].properties.clear();
    world.configure(without);
    assert_eq!(world.settle(), []);
    world.configure(config(None, &[]));
    assert_eq!((world.settle(), names(&world, waiting)), (vec![waiting], vec!["n2".to_owned()]));
    let anew = Projection::of(world.state().clone());
    assert_eq!(anew.waiting(), world.projection().waiting());
}
