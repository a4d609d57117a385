//! Walltimes of running jobs that grow.

use crate::support::*;
use muster_schemas::{
    JobId, RunId, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::{Command, RefusalCode},
    event::{Actor, Event, JobChange},
    job::{ExitStatus, JobSpec},
    plan::{PlannedSlot, ProposedPlan, SlotSpec},
    walltimes::{WalltimeIncrease, WalltimeIncreases},
};
use std::sync::Arc;

fn lasting(nodes: u32, cores: u32, seconds: u64) -> JobSpec {
    let mut spec = job(nodes, cores);
    spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
    spec
}

/// A cluster whose default queue lets owners do this.
fn cluster(rule: WalltimeIncreases) -> Cluster {
    let with_rule = QueueSpec { walltime_increases: Some(rule), ..queue("default") };
    Cluster::with(ClusterConfig { queues: vec![with_rule, queue("other")], ..config() })
}

fn generous() -> WalltimeIncreases {
    WalltimeIncreases { max_seconds: 100_000, ..WalltimeIncreases::default() }
}

fn more(seconds: u64) -> WalltimeIncrease {
    WalltimeIncrease { seconds, ..WalltimeIncrease::default() }
}

fn asks(job: JobId, increase: WalltimeIncrease) -> Command {
    Command::Modify { jobs: ids(&[job]), change: JobChange { increase: Some(increase), ..JobChange::default() } }
}

fn walltime(cluster: &Cluster, job: JobId) -> u64 {
    cluster.state.job(job).and_then(|job| job.lead().shape.alternatives[0].walltime_seconds).expect("it has one")
}

/// What a run was granted, and what is pending.
fn asked(cluster: &Cluster, run: RunId) -> (u64, u64) {
    cluster.state.walltime_asked(run).map_or((0, 0), |asked| (asked.granted_seconds, asked.pending.seconds))
}

/// A plan promises a job the node from a time on, or takes the promise back.
fn promise(cluster: &mut Cluster, job: JobId, start: Option<Timestamp>) {
    let placement = Arc::new(cluster.placement(&["node1"], 2));
    let slots = vec![PlannedSlot { job, slot: start.map(|start| SlotSpec { start, placement }) }];
    let plan = ProposedPlan { seen: cluster.state.sequence(), at: cluster.now, slots, ..ProposedPlan::default() };
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
}

/// OAR-G-16: what delays nobody is granted at once; the rest stays pending, and is granted when nobody waits for it any more.
#[test]
fn an_increase_waits_until_it_delays_nobody() {
    let mut cluster = cluster(generous());
    let long = cluster.submit("ada", lasting(1, 2, 1000));
    let run = cluster.start(long, &["node1"], 2);
    let end = cluster.now.plus_seconds(1000);
    let waits = cluster.submit("bob", lasting(1, 4, 100));
    // No plan has looked at the other job.
    cluster.ok(&user("ada"), asks(long, more(600)));
    assert_eq!((walltime(&cluster, long), asked(&cluster, run)), (1000, (0, 600)));
    promise(&mut cluster, waits, Some(end.plus_seconds(250)));
    cluster.pass(2);
    assert!(cluster.state.next_timer().is_some_and(|timer| timer <= cluster.now));
    let events = cluster.tick();
    assert!(matches!(&events[..], [Event::JobModified { .. }]), "{events:?}");
    let granted = walltime(&cluster, long) - 1000;
    assert!((240..=250).contains(&granted), "up to the promised start: {granted}");
    assert_eq!(asked(&cluster, run), (granted, 600 - granted));
    assert!(cluster.tick().is_empty(), "nothing has changed");
    cluster.ok(&user("bob"), Command::Cancel { jobs: ids(&[waits]) });
    cluster.pass(2);
    cluster.tick();
    assert_eq!((walltime(&cluster, long), asked(&cluster, run)), (1600, (600, 0)));
    // Nobody waits: at once. Nothing is left to be withdrawn.
    cluster.ok(&user("ada"), asks(long, more(100)));
    assert_eq!((walltime(&cluster, long), asked(&cluster, run)), (1700, (700, 0)));
    assert!(cluster.ok(&user("ada"), asks(long, more(0))).is_empty());
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(cluster.state.walltime_asked(run), None, "what it wanted ends with the run");
    cluster.assert_replays();
}

/// OAR-G-16: whole or not at all; delaying others; withdrawn.
#[test]
fn an_increase_is_granted_as_it_is_asked_for() {
    let rule = WalltimeIncreases { may_delay: vec!["ada".into()], ..generous() };
    let mut cluster = cluster(rule);
    let (long, waits) = (cluster.submit("ada", lasting(1, 2, 1000)), cluster.submit("bob", lasting(1, 4, 100)));
    let run = cluster.start(long, &["node1"], 2);
    let end = cluster.now.plus_seconds(1000);
    promise(&mut cluster, waits, Some(end.plus_seconds(250)));
    cluster.ok(&user("ada"), asks(long, WalltimeIncrease { is_whole: true, ..more(600) }));
    cluster.pass(2);
    cluster.tick();
    assert_eq!((walltime(&cluster, long), asked(&cluster, run)), (1000, (0, 600)), "not a part of it");
    cluster.ok(&user("ada"), asks(long, more(0)));
    assert_eq!(asked(&cluster, run), (0, 0));
    cluster.ok(&user("ada"), asks(long, WalltimeIncrease { may_delay: true, ..more(600) }));
    assert_eq!(walltime(&cluster, long), 1600);
    let closed = muster_schemas::plan::NodeClosure {
        from: cluster.now.plus_seconds(1650),
        until: Timestamp::MAX,
        reason: String::new(),
    };
    let nodes = vec!["node1".to_owned()];
    cluster.ok(&root(), Command::SetNodeClosures { nodes, closures: vec![closed] });
    cluster.ok(&user("ada"), asks(long, WalltimeIncrease { may_delay: true, ..more(600) }));
    assert!((1600..1660).contains(&walltime(&cluster, long)), "a closed node is no job that waits");
    cluster.assert_replays();
}

/// OAR-G-16: only near the end of the job, and in steps, unless it is forced.
#[test]
fn an_increase_comes_near_the_end_and_in_steps() {
    let rule = WalltimeIncreases { apply_seconds: 100, step_seconds: 60, may_force: vec!["*".into()], ..generous() };
    let mut cluster = cluster(rule);
    let id = cluster.submit("ada", lasting(1, 2, 1000));
    let run = cluster.start(id, &["node1"], 2);
    cluster.ok(&user("ada"), asks(id, more(150)));
    cluster.pass(800);
    assert!(cluster.tick().is_empty(), "its end is far");
    assert_eq!(asked(&cluster, run), (0, 150));
    cluster.pass(100);
    cluster.tick();
    assert_eq!((walltime(&cluster, id), asked(&cluster, run)), (1060, (60, 90)));
    cluster.tick();
    assert_eq!(walltime(&cluster, id), 1060, "its end is far again");
    cluster.ok(&user("ada"), asks(id, WalltimeIncrease { is_forced: true, ..more(150) }));
    assert_eq!((walltime(&cluster, id), asked(&cluster, run)), (1210, (210, 0)));
    cluster.assert_replays();
}

/// OAR-G-16: off unless the queue allows it; up to the most, for jobs that are long enough, for users who may. Operators may.
#[test]
fn a_queue_says_who_gets_how_much_more() {
    let mut plain = Cluster::new();
    let id = plain.submit("ada", lasting(1, 2, 1000));
    plain.refused(&user("ada"), asks(id, more(1)), RefusalCode::Conflict, "does not run");
    let run = plain.start(id, &["node1"], 2);
    plain.refused(&user("ada"), asks(id, more(1)), RefusalCode::PermissionDenied, "only operators");
    plain.refused(&user("bob"), asks(id, more(1)), RefusalCode::PermissionDenied, "belongs to ada");
    plain.ok(&user("oper"), asks(id, more(500)));
    assert_eq!((walltime(&plain, id), asked(&plain, run)), (1500, (500, 0)));
    let both = JobChange { increase: Some(more(1)), priority: Some(1), ..JobChange::default() };
    let both = Command::Modify { jobs: ids(&[id]), change: both };
    plain.refused(&user("oper"), both, RefusalCode::Invalid, "without other changes");

    let rule = WalltimeIncreases { max_seconds: 600, min_walltime_seconds: 900, ..WalltimeIncreases::default() };
    let mut cluster = cluster(rule);
    let (long, short) = (cluster.submit("ada", lasting(1, 1, 1000)), cluster.submit("ada", lasting(1, 1, 800)));
    cluster.start(long, &["node1"], 1);
    cluster.start(short, &["node2"], 1);
    cluster.refused(&user("ada"), asks(short, more(1)), RefusalCode::LimitReached, "900 seconds or more");
    cluster.refused(&user("ada"), asks(long, more(601)), RefusalCode::LimitReached, "at most 600");
    cluster.ok(&user("ada"), asks(long, more(400)));
    cluster.refused(&user("ada"), asks(long, more(201)), RefusalCode::LimitReached, "has 400 more already");
    let forced = WalltimeIncrease { is_forced: true, ..more(1) };
    cluster.refused(&user("ada"), asks(long, forced), RefusalCode::PermissionDenied, "may not force it");
    let delaying = WalltimeIncrease { may_delay: true, ..more(1) };
    cluster.refused(&user("ada"), asks(long, delaying), RefusalCode::PermissionDenied, "may not delay other jobs");
    cluster.assert_replays();
}
