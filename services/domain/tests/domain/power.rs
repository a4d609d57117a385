//! Nodes that sleep while nothing runs on them (OAR-E-01 to OAR-E-10).

use crate::support::*;
use muster_domain::{notify::items, orders::follow_up};
use muster_schemas::{
    JobId, RunId, Sequence, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, NodeCondition},
    command::{Command, RefusalCode, Start},
    energy::{EnergySettings, KeepAwake, PowerOrder, PowerPhase, PowerRule, PowerWay, WakeTimeout},
    event::{Actor, DeliveryResult, Event, StopReason},
    job::{ExitStatus, JobSpec, JobState, JobType, Occasion, Outcome},
    plan::{PlannedSlot, ProposedPlan, ReservationSpec, ReservedNodes, SlotSpec},
    resources::PropertyValue,
};
use std::sync::Arc;

fn energy() -> EnergySettings {
    EnergySettings {
        sleep_program: vec!["/opt/site/sleep".into()],
        wake_program: vec!["/opt/site/wake".into(), "--quick".into()],
        ..EnergySettings::default()
    }
}

fn with(energy: EnergySettings) -> ClusterConfig {
    ClusterConfig { settings: ClusterSettings { energy: Some(energy), ..config().settings }, ..config() }
}

fn cluster() -> Cluster {
    Cluster::with(with(energy()))
}

fn property(config: &mut ClusterConfig, node: usize, name: &str, value: PropertyValue) {
    config.nodes[node].properties.insert(name.to_owned(), value);
}

fn oper() -> Actor {
    user("oper")
}

/// The orders among events: way and names.
fn ordered(cluster: &Cluster, events: &[Event]) -> Vec<(PowerWay, Vec<String>)> {
    let name =
        |order: &Arc<PowerOrder>| order.nodes.iter().map(|node| cluster.state.node_name(*node).into_owned()).collect();
    let of = |event: &Event| match event {
        Event::PowerOrdered { order } => Some((order.way, name(order))),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn sleep(names: &[&str]) -> Vec<(PowerWay, Vec<String>)> {
    vec![(PowerWay::Sleep, names.iter().map(|name| (*name).to_owned()).collect())]
}

fn wake(names: &[&str]) -> Vec<(PowerWay, Vec<String>)> {
    vec![(PowerWay::Wake, names.iter().map(|name| (*name).to_owned()).collect())]
}

fn phase(cluster: &Cluster, node: &str) -> Option<PowerPhase> {
    cluster.state.power_of(cluster.node_id(node)).map(|power| power.phase)
}

fn silent(cluster: &mut Cluster, node: &str) -> Vec<Event> {
    let node = cluster.node_id(node);
    cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "not heard of".into() })
}

/// The last order, as its notifier reports it.
fn told(cluster: &mut Cluster, result: DeliveryResult) -> Vec<Event> {
    let is_order = |record: &&muster_schemas::event::Record| matches!(record.event, Event::PowerOrdered { .. });
    let of = cluster.log.iter().rev().find(is_order).expect("something was ordered").sequence;
    told_of(cluster, of, result)
}

fn told_of(cluster: &mut Cluster, of: Sequence, result: DeliveryResult) -> Vec<Event> {
    let (job, occasion) = (JobId::job(0), Occasion::Ended);
    cluster.ok(&Actor::Notifier, Command::NotificationDone { job, of, notification: 0, occasion, result })
}

fn failed() -> DeliveryResult {
    DeliveryResult::GivenUp { attempts: 1, error: "exit status: 3: no such node".into() }
}

/// A timer that is due finds something to do, or the ledger would spin.
fn tick(cluster: &mut Cluster) -> Vec<Event> {
    let events = cluster.tick();
    for _ in 0..100 {
        if cluster.state.next_timer().is_none_or(|due| due > cluster.now) {
            return events;
        }
        assert!(!cluster.tick().is_empty(), "the timer is due, and nothing is done");
    }
    panic!("the timer is always due");
}

/// What is ordered when the ledger looks.
fn due(cluster: &mut Cluster) -> Vec<(PowerWay, Vec<String>)> {
    let events = tick(cluster);
    ordered(cluster, &events)
}

/// All nodes sleep.
fn asleep(mut cluster: Cluster) -> Cluster {
    cluster.pass(600);
    let events = tick(&mut cluster);
    assert_eq!(ordered(&cluster, &events), sleep(&["node1", "node2", "node3"]));
    assert_eq!(told(&mut cluster, DeliveryResult::Delivered).len(), 1);
    for node in ["node1", "node2", "node3"] {
        let id = cluster.node_id(node);
        assert_eq!(silent(&mut cluster, node), [Event::NodeAsleep { node: id }], "its silence is no loss");
    }
    cluster
}

fn waits(cluster: &Cluster, run: RunId) -> bool {
    cluster.state.run(run).expect("it holds resources").waits_for_nodes
}

/// OAR-E-04, OAR-E-08: idle nodes are put to sleep by a program, which gets their names; both bounds are inclusive.
#[test]
fn idle_nodes_are_put_to_sleep() {
    let mut cluster = cluster();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.start(id, &["node2"], 1);
    cluster.pass(599);
    assert_eq!(tick(&mut cluster), []);
    let moment = cluster.now.plus_seconds(1);
    assert_eq!(cluster.state.next_timer(), Some(moment));
    cluster.pass(1);
    let events = tick(&mut cluster);
    assert_eq!(ordered(&cluster, &events), sleep(&["node1", "node3"]));
    let item = items(&cluster.state, cluster.log.last().unwrap()).pop().expect("a notifier runs the program");
    let program = item.program.expect("of the site");
    assert_eq!((program.words, program.input.as_str()), (vec!["/opt/site/sleep".to_owned()], "node1\nnode3\n"));
    assert_eq!((item.owner.user.as_str(), program.limit_seconds, item.is_tried_once), ("nobody", 120, true));
    assert_ne!(item.owner.uid, 0, "it never runs as root");
    assert_eq!(phase(&cluster, "node1"), Some(PowerPhase::FallingAsleep));
    silent(&mut cluster, "node1");
    assert_eq!(phase(&cluster, "node1"), Some(PowerPhase::Asleep));
    // The end of the last job counts, not the last order.
    cluster.end(run, "node2", ExitStatus::Code(0));
    cluster.pass(599);
    assert_eq!(due(&mut cluster), []);
    cluster.pass(1);
    let events = tick(&mut cluster);
    assert_eq!(ordered(&cluster, &events), sleep(&["node2"]));
    cluster.assert_replays();
}

/// OAR-E-03, OAR-E-06: a run on nodes that sleep waits for all of them, which are woken once; its walltime and its launch
/// timeout begin then.
#[test]
fn a_run_waits_until_its_nodes_are_awake() {
    let mut cluster = asleep(cluster());
    let id = cluster.submit("ada", job(2, 1));
    let run = cluster.allocate(id, &["node2", "node3"], 1);
    assert!(waits(&cluster, run));
    let allocated = cluster.log.last().unwrap();
    assert_eq!(follow_up(&cluster.state, allocated), [], "nothing is launched yet");
    let events = tick(&mut cluster);
    assert_eq!(ordered(&cluster, &events), wake(&["node2", "node3"]));
    let item = items(&cluster.state, cluster.log.last().unwrap()).pop().unwrap();
    let program = item.program.unwrap();
    assert_eq!((program.words.len(), program.input.as_str()), (2, "node2\nnode3\n"));
    // No second wake-up, however often the ledger looks, and no launch timeout.
    cluster.pass(300);
    assert_eq!(tick(&mut cluster), []);
    told(&mut cluster, DeliveryResult::Delivered);
    cluster.hello("node2", "boot2", &[]);
    assert_eq!(tick(&mut cluster), [], "one node is not enough");
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Launching);
    cluster.pass(200);
    cluster.hello("node3", "boot2", &[]);
    assert_eq!(tick(&mut cluster), [Event::RunAwake { job: id, run }]);
    let orders = follow_up(&cluster.state, cluster.log.last().unwrap());
    assert_eq!(orders.len(), 2, "its launch is ordered: {orders:?}");
    assert_eq!(cluster.state.run(run).unwrap().launch_deadline, cluster.now.plus_seconds(60));
    cluster.assert_replays();
}

/// OAR-E-06: nodes that do not answer in time are lost, and their jobs wait again; nodes that were woken with more others have
/// more time.
#[test]
fn nodes_that_do_not_wake_are_lost() {
    let steps = [(1, 500), (3, 1000)].map(|(nodes, seconds)| WakeTimeout { nodes, seconds });
    let settings = EnergySettings { wake_timeouts: steps.to_vec(), ..energy() };
    let timeouts = [1, 2, 3, 4].map(|nodes| settings.wake_timeout_seconds(nodes));
    assert_eq!((timeouts, energy().wake_timeout_seconds(7)), ([500, 500, 1000, 1000], 900));
    let mut cluster = asleep(Cluster::with(with(settings)));
    let id = cluster.submit("ada", job(2, 1));
    let run = cluster.allocate(id, &["node2", "node3"], 1);
    tick(&mut cluster);
    assert_eq!(told(&mut cluster, DeliveryResult::Delivered).len(), 1);
    cluster.hello("node2", "boot2", &[]);
    cluster.pass(499);
    assert_eq!(tick(&mut cluster), []);
    cluster.pass(1);
    let events = tick(&mut cluster);
    let node = cluster.node_id("node3");
    assert!(
        matches!(&events[..], [Event::NodePowerFailed { node: of, way: PowerWay::Wake, .. },
            Event::RunEnded { run: ended, outcome: Outcome::Requeued, .. }, Event::JobRequeued { .. }, ..]
            if *of == node && *ended == run),
        "{events:?}"
    );
    assert!(matches!(cluster.state.node(node).unwrap().condition, NodeCondition::Lost(_)));
    assert!(cluster.is_waiting(id), "it is planned elsewhere");
    assert_eq!(cluster.refused_on(id, &["node3"], 1), "node node3 is not available");
    // A node that reports after all is like any that was lost.
    cluster.hello("node3", "boot2", &[]);
    assert!(cluster.state.node(node).unwrap().is_available());
    cluster.assert_replays();
}

/// OAR-E-06: while the program of an order has not ended, its nodes have twice the time: other programs may be ahead of it.
#[test]
fn nodes_whose_program_waits_have_more_time() {
    let mut cluster = asleep(Cluster::with(with(energy())));
    let id = cluster.submit("ada", job(1, 1));
    cluster.allocate(id, &["node2"], 1);
    tick(&mut cluster);
    cluster.pass(1799);
    assert_eq!(tick(&mut cluster), []);
    cluster.pass(1);
    let events = tick(&mut cluster);
    assert!(matches!(&events[..], [Event::NodePowerFailed { way: PowerWay::Wake, .. }, ..]), "{events:?}");
    cluster.assert_replays();
}

/// OAR-E-08: a program that fails makes its nodes suspect: those to wake are lost, those to sleep take no jobs.
#[test]
fn a_program_that_fails_makes_its_nodes_suspect() {
    let mut cluster = cluster();
    cluster.pass(600);
    tick(&mut cluster);
    silent(&mut cluster, "node1");
    let first = cluster.log.iter().rev().find(|record| matches!(record.event, Event::PowerOrdered { .. })).unwrap();
    let first = first.sequence;
    let events = told(&mut cluster, failed());
    assert!(matches!(&events[0], Event::PowerTold { order, way: PowerWay::Sleep, error: Some(_) } if *order == first));
    assert_eq!(events.len(), 3, "node1 sleeps as it should: {events:?}");
    let node2 = cluster.state.node_by_name("node2").unwrap();
    assert_eq!(
        node2.drained.as_deref(),
        Some("the program has failed: exit status: 3: no such node"),
        "it reports, and an operator has to look"
    );
    let again = told_of(&mut cluster, first, failed());
    assert!(matches!(again[..], [Event::NotificationDone { .. }]), "a second report says nothing new: {again:?}");
    let id = cluster.submit("ada", job(1, 1));
    cluster.allocate(id, &["node1"], 1);
    tick(&mut cluster);
    let events = told(&mut cluster, failed());
    assert!(events.iter().any(|event| matches!(event, Event::JobRequeued { reason: StopReason::Requeued, .. })));
    assert!(matches!(cluster.state.node_by_name("node1").unwrap().condition, NodeCondition::Lost(_)));
    cluster.assert_replays();
}

/// A node that goes on reporting after its program has ended is put out of service.
#[test]
fn a_node_that_does_not_fall_asleep_is_drained() {
    let mut cluster = cluster();
    cluster.pass(600);
    tick(&mut cluster);
    told(&mut cluster, DeliveryResult::Delivered);
    cluster.pass(900);
    let events = tick(&mut cluster);
    assert_eq!(events.len(), 3, "{events:?}");
    assert!(cluster.state.nodes().all(|node| node.drained.is_some()));
    assert_eq!(phase(&cluster, "node1"), None);
    cluster.assert_replays();
}

/// OAR-E-05: a node that was just woken is not put to sleep again.
#[test]
fn a_node_that_was_just_woken_stays_awake() {
    let mut cluster = asleep(cluster());
    cluster.ok(&oper(), Command::SetPower { nodes: vec!["node1".into()], way: PowerWay::Wake });
    assert_eq!(due(&mut cluster), wake(&["node1"]));
    cluster.pass(100);
    cluster.hello("node1", "boot2", &[]);
    cluster.pass(599);
    assert_eq!(tick(&mut cluster), []);
    cluster.pass(1);
    assert_eq!(due(&mut cluster), sleep(&["node1"]));
}

/// OAR-E-09: an order for a node that is on its way to the other state is kept until that is settled.
#[test]
fn an_order_waits_until_the_one_before_is_settled() {
    let mut cluster = asleep(cluster());
    let set = |way| Command::SetPower { nodes: vec!["node1".into()], way };
    cluster.ok(&oper(), set(PowerWay::Wake));
    tick(&mut cluster);
    cluster.ok(&oper(), set(PowerWay::Sleep));
    assert_eq!(tick(&mut cluster), []);
    assert_eq!(cluster.ok(&oper(), set(PowerWay::Sleep)), [], "it is asked for already");
    cluster.hello("node1", "boot2", &[]);
    assert_eq!(due(&mut cluster), sleep(&["node1"]), "however short it was awake");
    cluster.ok(&oper(), set(PowerWay::Wake));
    assert_eq!(tick(&mut cluster), [], "it still reports");
    silent(&mut cluster, "node1");
    cluster.pass(60);
    assert_eq!(due(&mut cluster), wake(&["node1"]));
    cluster.refused(&user("ada"), set(PowerWay::Wake), RefusalCode::PermissionDenied, "put nodes to sleep");
    cluster.assert_replays();
}

/// OAR-E-07: some idle nodes of a kind stay awake, and others are woken for it.
#[test]
fn some_idle_nodes_are_kept_awake() {
    let mut settings = energy();
    settings.keep_awake =
        vec![KeepAwake { properties: [("gpu".to_owned(), PropertyValue::Flag(true))].into(), nodes: 1 }];
    let mut config = with(settings);
    property(&mut config, 1, "gpu", PropertyValue::Flag(true));
    property(&mut config, 2, "gpu", PropertyValue::Flag(true));
    let mut cluster = Cluster::with(config);
    cluster.pass(600);
    assert_eq!(due(&mut cluster), sleep(&["node1", "node2"]));
    silent(&mut cluster, "node1");
    silent(&mut cluster, "node2");
    cluster.pass(10_000);
    assert_eq!(tick(&mut cluster), [], "node3 stays awake however long it is idle");
    let id = cluster.submit("ada", job(1, 1));
    cluster.start(id, &["node3"], 1);
    assert_eq!(due(&mut cluster), wake(&["node2"]), "another one is woken in its place");
}

/// OAR-E-08: only so many nodes get orders in a period.
#[test]
fn orders_go_to_some_nodes_at_a_time() {
    let settings = EnergySettings { nodes_at_once: 2, pause_seconds: 60, ..energy() };
    let mut cluster = Cluster::with(with(settings));
    cluster.pass(600);
    assert_eq!(due(&mut cluster), sleep(&["node1", "node2"]));
    cluster.pass(59);
    assert_eq!(tick(&mut cluster), []);
    assert_eq!(cluster.state.next_timer(), Some(cluster.now.plus_seconds(1)));
    cluster.pass(1);
    assert_eq!(due(&mut cluster), sleep(&["node3"]));
}

/// OAR-E-01, OAR-E-02: properties say whether a node sleeps and wakes, and until when it can be had.
#[test]
fn properties_say_what_may_be_done_with_a_node() {
    let mut config = with(energy());
    property(&mut config, 0, PowerRule::SLEEPS, PropertyValue::Flag(false));
    property(&mut config, 1, PowerRule::WAKES, PropertyValue::Flag(false));
    property(&mut config, 2, PowerRule::UNTIL, PropertyValue::Number(1_000_000 + 5_000));
    let mut cluster = Cluster::with(config);
    cluster.pass(600);
    assert_eq!(due(&mut cluster), sleep(&["node2", "node3"]));
    silent(&mut cluster, "node2");
    silent(&mut cluster, "node3");
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].walltime_seconds = Some(4_400 + 61);
    let long = cluster.submit("ada", spec.clone());
    assert_eq!(cluster.refused_on(long, &["node2"], 1), "node node2 is not available", "it is never woken");
    let why = cluster.refused_on(long, &["node3"], 1);
    assert!(why.contains("not long enough"), "{why}");
    spec.components[0].alternatives[0].walltime_seconds = Some(4_400);
    let short = cluster.submit("ada", spec);
    cluster.allocate(short, &["node3"], 1);
    let set = |node: &str, way| Command::SetPower { nodes: vec![node.into()], way };
    cluster.refused(&oper(), set("node1", PowerWay::Sleep), RefusalCode::Conflict, "property `sleeps` is no");
    cluster.refused(&oper(), set("node2", PowerWay::Wake), RefusalCode::Conflict, "property `wakes` is no");
}

fn reserve(cluster: &mut Cluster, from: i64, to: i64, nodes: &[&str]) {
    let reservation = ReservationSpec {
        name: "course".into(),
        start: cluster.now.plus_seconds(from),
        end: cluster.now.plus_seconds(to),
        nodes: ReservedNodes::Named(nodes.iter().map(|node| (*node).to_owned()).collect()),
        users: Vec::new(),
        accounts: Vec::new(),
        repeats_after_seconds: 0,
        attributes: Default::default(),
        ..ReservationSpec::default()
    };
    cluster.ok(&oper(), Command::Reserve { reservation: Box::new(reservation) });
}

/// W6 (OAR-E-03): the nodes of a reservation are woken as long before it as waking takes.
#[test]
fn w6_reserved_nodes_are_woken_in_time() {
    let mut cluster = asleep(cluster());
    reserve(&mut cluster, 10_000, 20_000, &["node2", "node3"]);
    cluster.pass(9_399);
    assert_eq!(tick(&mut cluster), []);
    assert_eq!(cluster.state.next_timer(), Some(cluster.now.plus_seconds(1)));
    cluster.pass(1);
    assert_eq!(due(&mut cluster), wake(&["node2", "node3"]));
}

/// A start that a planner has promised on a node.
fn promise(cluster: &mut Cluster, id: JobId, node: &str, start: Timestamp) {
    let slot = Some(SlotSpec { start, placement: Arc::new(cluster.placement(&[node], 1)) });
    let plan = ProposedPlan { slots: vec![PlannedSlot { job: id, slot }], ..ProposedPlan::default() };
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
}

/// W6 (OAR-E-04): with the next start 1,100 s after the end of the last job, a node sleeps after 600 s; with 599 s less it
/// does not.
#[test]
fn w6_a_node_with_something_planned_soon_stays_awake() {
    for (next, sleeps) in [(1_700, true), (1_200, true), (1_199, false)] {
        let mut cluster = cluster();
        let busy = cluster.submit("ada", job(3, 1));
        let run = cluster.start(busy, &["node1", "node2", "node3"], 1);
        for node in ["node1", "node2", "node3"] {
            cluster.end(run, node, ExitStatus::Code(0));
        }
        let id = cluster.submit("bob", job(1, 1));
        let start = cluster.now.plus_seconds(next);
        promise(&mut cluster, id, "node2", start);
        cluster.pass(599);
        assert_eq!(tick(&mut cluster), []);
        cluster.pass(1);
        let names: &[&str] = if sleeps { &["node1", "node2", "node3"] } else { &["node1", "node3"] };
        assert_eq!(due(&mut cluster), sleep(names), "the next start is after {next} s");
        if sleeps {
            // It is woken again in time.
            ["node1", "node2", "node3"].iter().for_each(|node| drop(silent(&mut cluster, node)));
            cluster.now = start.plus_seconds(-600).max(cluster.now.plus_seconds(60));
            assert_eq!(due(&mut cluster), wake(&["node2"]));
        }
        cluster.assert_replays();
    }
}

/// A run that waits for its nodes has started nothing: it is over at once when it is cancelled or requeued.
#[test]
fn a_run_that_waits_for_nodes_ends_at_once() {
    let mut cluster = asleep(cluster());
    let id = cluster.submit("ada", job(1, 1));
    cluster.allocate(id, &["node1"], 1);
    tick(&mut cluster);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 });
    assert!(cluster.is_waiting(id));
    assert!(cluster.state.node_by_name("node1").unwrap().runs.is_empty());
    cluster.allocate(id, &["node1"], 1);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
    // The node wakes nevertheless, and sleeps again later.
    cluster.hello("node1", "boot2", &[]);
    assert_eq!(tick(&mut cluster), []);
    cluster.pass(600);
    assert_eq!(due(&mut cluster), sleep(&["node1"]));
    cluster.assert_replays();
}

/// A job does not wait for ever for a node that an operator takes out of service while it sleeps.
#[test]
fn a_run_on_a_node_that_cannot_be_woken_is_planned_again() {
    let mut cluster = asleep(cluster());
    let id = cluster.submit("ada", job(1, 1));
    cluster.allocate(id, &["node1"], 1);
    cluster.ok(&oper(), Command::DrainNodes { nodes: vec!["node1".into()], reason: "fans".into(), is_down: false });
    let events = tick(&mut cluster);
    assert!(matches!(&events[..], [Event::RunEnded { .. }, Event::JobRequeued { .. }]), "{events:?}");
    assert!(cluster.is_waiting(id));
}

/// Without settings nothing is counted and nothing happens, and what is known is dropped when they are taken away.
#[test]
fn without_programs_no_node_sleeps() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    cluster.run_through(id, 0);
    cluster.pass(100_000);
    cluster.tick();
    assert_eq!((cluster.tick(), cluster.state.next_timer()), (Vec::new(), None));
    let set = Command::SetPower { nodes: vec!["node1".into()], way: PowerWay::Sleep };
    cluster.refused(&oper(), set, RefusalCode::Conflict, "energy.sleep_program: is not set");
    let mut cluster = asleep(self::cluster());
    cluster.ok(&root(), Command::Configure { change: Box::new(config().into()), keep_unnamed: false });
    cluster.pass(100_000);
    assert_eq!(tick(&mut cluster), []);
    cluster.hello("node1", "boot2", &[]);
    assert!(cluster.state.node_by_name("node1").unwrap().is_available());
    cluster.assert_replays();
}

/// OAR-E-07: settings that cannot be used are refused as a whole, with the place of the mistake.
#[test]
fn settings_that_cannot_be_used_are_refused() {
    let mut cluster = cluster();
    let bad: [(EnergySettings, &str); 7] = [
        (
            EnergySettings { sleep_program: vec!["sleep".into()], ..energy() },
            "energy.sleep_program: `sleep` is not a full path",
        ),
        (EnergySettings { account: "root".into(), ..energy() }, "energy.account: is root"),
        (EnergySettings { nodes_at_once: 0, ..energy() }, "energy.nodes_at_once"),
        (EnergySettings { idle_seconds: 0, ..energy() }, "energy.idle_seconds"),
        (EnergySettings { program_timeout_seconds: 0, ..energy() }, "energy.program_timeout_seconds"),
        (
            EnergySettings { wake_timeouts: vec![WakeTimeout { nodes: 2, seconds: 5 }], ..energy() },
            "energy.wake_timeouts[0].nodes: is 2, expected 1",
        ),
        (EnergySettings { keep_awake: vec![KeepAwake::default()], ..energy() }, "energy.keep_awake[0].nodes: is 0"),
    ];
    for (settings, words) in bad {
        let change = Command::Configure { change: Box::new(with(settings).into()), keep_unnamed: true };
        cluster.refused(&root(), change, RefusalCode::Invalid, words);
    }
    assert_eq!(cluster.state.settings().energy, Some(energy()), "the last good ones stay");
}

/// OAR-T-71: a job that leaves nodes asleep wakes the one of its command, and no other; it runs when that one is up.
#[test]
fn a_job_can_leave_the_nodes_asleep_that_it_holds() {
    let mut cluster = asleep(cluster());
    let mut spec = job(1, 1);
    spec.components.extend(job(2, 4).components);
    spec.components[1].launch = muster_schemas::job::Launch::default();
    spec.types = vec![JobType::HandsOff];
    let plain = JobSpec { types: vec![JobType::LeavesAsleep], ..job(1, 1) };
    cluster.refused(&user("ada"), Command::Submit { jobs: vec![plain] }, RefusalCode::Invalid, "leaves nodes asleep");
    spec.types.push(JobType::LeavesAsleep);
    let (id, run) = (cluster.submit("ada", spec), cluster.state.next_run());
    let mut placement = cluster.placement(&["node1"], 1);
    placement.components.extend(cluster.placement(&["node2", "node3"], 4).components);
    cluster.ok(&Actor::Planner, commit(vec![Start { job: id, placement }]));
    assert_eq!(due(&mut cluster), wake(&["node1"]));
    told(&mut cluster, DeliveryResult::Delivered);
    cluster.hello("node1", "boot2", &[]);
    let events = tick(&mut cluster);
    assert!(events.contains(&Event::RunAwake { job: id, run }), "{events:?}");
    let part = cluster.part(run, "node1");
    cluster.ok(&executor("node1"), Command::NodeStarted { part });
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Running);
    cluster.pass(10_000);
    assert_eq!(due(&mut cluster), []);
    let phases = (phase(&cluster, "node2"), phase(&cluster, "node3"));
    assert_eq!(phases, (Some(PowerPhase::Asleep), Some(PowerPhase::Asleep)));
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    cluster.assert_replays();
}
