//! Components of a job on one node (SL-P-07): each has a separate part there, with its own orders, reports and end.

use crate::{
    support::*,
    written::{launch_order, tasks_order},
};
use muster_domain::orders::{OrderSeed, follow_up, reconcile};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, StepId,
    command::{Command, JobSelection, RefusalCode, Reply, Start},
    event::{Actor, EndCause, Event, NodeExit, StopReason},
    job::{ExitStatus, JobSpec, Launch, Outcome},
    policy::Policy,
    resources::{IndexSet, NodeShare, Placement},
    steps::{StepGroup, StepPlace, StepProgram, StepSpec},
};
use std::sync::Arc;

/// A script in the first of two components with one task each; the other holds resources for steps.
fn two(cores: u32) -> JobSpec {
    let mut spec = job(1, cores);
    let mut other = spec.components[0].clone();
    other.launch = Launch::default();
    spec.components.push(other);
    spec
}

/// Each component with two cores of node 1, starting at 0 and at 2.
fn on_one_node(cluster: &Cluster) -> Placement {
    let mut placement = cluster.placement(&["node1"], 2);
    let mut other = placement.components[0].clone();
    other.shares[0].cores = IndexSet::from_range(2, 3);
    placement.components.push(other);
    placement
}

fn planned(cluster: &mut Cluster, job: JobId, placement: Placement) -> RunId {
    let run = cluster.state.next_run();
    let planned = cluster.run(&Actor::Planner, commit(vec![Start { job, placement }]));
    assert!(matches!(&planned, Ok((_, Reply::Planned(refused))) if refused.is_empty()), "{planned:?}");
    run
}

/// A cluster whose policy lets components share nodes.
fn sharing() -> Cluster {
    let mut cluster = Cluster::new();
    let mut policy = Policy::default();
    policy.backfill.components.share_nodes = true;
    cluster.ok(&Actor::Ledger, Command::SetPolicy { policy: Box::new(policy) });
    cluster
}

fn allocated() -> (Cluster, JobId, RunId) {
    let mut cluster = sharing();
    let id = cluster.submit("ada", two(2));
    let placement = on_one_node(&cluster);
    let run = planned(&mut cluster, id, placement);
    (cluster, id, run)
}

fn running() -> (Cluster, JobId, RunId) {
    let (mut cluster, id, run) = allocated();
    for component in [1, 0] {
        cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, component) });
    }
    (cluster, id, run)
}

/// Three components with one core each: the first on a separate node, the others on a shared one.
fn three_running(alone: &str, shared: &str) -> (Cluster, JobId, RunId) {
    let mut cluster = sharing();
    let mut spec = two(1);
    spec.components.push(spec.components[1].clone());
    let id = cluster.submit("ada", spec);
    let mut components = cluster.placement(&[alone], 1).components;
    components.extend(cluster.placement(&[shared], 1).components);
    let mut third = components[1].clone();
    third.shares[0].cores = IndexSet::from_range(1, 1);
    components.push(third);
    let run = planned(&mut cluster, id, Placement { components });
    for (node, component) in [(alone, 0), (shared, 1), (shared, 2)] {
        cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, component) });
    }
    (cluster, id, run)
}

fn ends(cluster: &mut Cluster, part: PartId, status: ExitStatus, cause: EndCause) -> Vec<Event> {
    let exit = exit(status, cause, cluster.now);
    cluster.ok(&executor("node1"), Command::NodeEnded { part, exit })
}

fn kinds(events: &[Event]) -> Vec<(&'static str, &'static str)> {
    events.iter().map(Event::kind_verb).collect()
}

fn follow(cluster: &Cluster, events: &[Event]) -> Vec<OrderSeed> {
    let records = &cluster.log[cluster.log.len() - events.len()..];
    records.iter().flat_map(|record| follow_up(&cluster.state, record)).map(|(_, order)| order).collect()
}

fn used_cores(cluster: &Cluster) -> u64 {
    let node = cluster.state.node_by_name("node1").expect("it is there");
    u64::from(node.spec.cores) - node.free_cores.len()
}

/// A step with one task in each of these components, on node 1.
fn step(components: &[u32]) -> StepSpec {
    let group = |(rank, component): (u32, &u32)| {
        let ranks = IndexSet::from_range(rank, rank);
        StepGroup {
            component: *component,
            places: vec![StepPlace { node: "node1".into(), ranks: ranks.clone(), cores: None }],
            programs: vec![StepProgram { ranks, argv: vec![format!("program{component}")] }],
            ..StepGroup::default()
        }
    };
    StepSpec { groups: (0..).zip(components).map(group).collect(), ..StepSpec::default() }
}

fn launch(cluster: &mut Cluster, job: JobId, spec: StepSpec) -> (StepId, Vec<Event>) {
    let (events, reply) =
        cluster.run(&user("ada"), Command::LaunchStep { job, spec: Box::new(spec) }).expect("it fits");
    let Reply::Step { step, .. } = reply else { panic!("{reply:?}") };
    (step, events)
}

fn step_ends(cluster: &mut Cluster, part: PartId, step: StepId, code: u8) -> Vec<Event> {
    let exit = exit(ExitStatus::Code(code), EndCause::Itself, cluster.now);
    cluster.ok(&executor("node1"), Command::NodeStepEnded { part, step, exit, statuses: Vec::new() })
}

/// SL-P-07, SL-I-13: each part is launched and starts separately; the job runs when both do.
#[test]
fn each_component_is_launched_and_starts_on_its_own() {
    let (mut cluster, id, run) = allocated();
    let parts = [PartId::new(run, 0), PartId::new(run, 1)];
    let record = cluster.log.iter().rev().find(|record| matches!(record.event, Event::RunAllocated { .. }));
    let orders = follow_up(&cluster.state, record.expect("it was given its nodes"));
    let launched = orders.iter().map(|(_, order)| match order {
        OrderSeed::Launch { part, .. } => *part,
        other => panic!("{other:?}"),
    });
    assert_eq!(launched.collect::<Vec<_>>(), parts);
    let node = cluster.node_id("node1");
    let order = |part| launch_order(&cluster.state, part, node, &two(2)).expect("it is to be launched");
    assert_eq!((order(parts[0]).cores, order(parts[1]).cores), (IndexSet::first_n(2), IndexSet::from_range(2, 3)));
    assert_eq!((order(parts[0]).part, order(parts[1]).part), (parts[0], parts[1]));
    // Orders that the node has not received are repeated.
    assert_eq!(reconcile(&cluster.state, node, &parts[..1]).len(), 1);
    assert_eq!(reconcile(&cluster.state, node, &parts), []);

    let events = cluster.ok(&executor("node1"), Command::NodeStarted { part: parts[1] });
    assert_eq!(events, [Event::RunPartStarted { job: id, run, node, component: 1 }]);
    assert!(cluster.ok(&executor("node1"), Command::NodeStarted { part: parts[1] }).is_empty(), "a repeated report");
    let events = cluster.ok(&executor("node1"), Command::NodeStarted { part: parts[0] });
    assert_eq!(events, [Event::RunStarted { job: id, run, node, component: 0 }]);
    cluster.assert_replays();
}

/// A script that is shorter than the launch of the other component has run nevertheless.
#[test]
fn a_short_script_has_run_before_the_other_component_was_there() {
    let (mut cluster, id, run) = allocated();
    let events = ends(&mut cluster, PartId::new(run, 0), ExitStatus::Code(0), EndCause::Itself);
    let expected = [("job", "started"), ("run", "part_ended"), ("job", "stopping")];
    assert_eq!(kinds(&events), expected, "{events:?}");
    assert!(follow(&cluster, &events).contains(&OrderSeed::Stop {
        part: PartId::new(run, 1),
        reason: StopReason::PeerEnded,
        grace_seconds: cluster.state.settings().kill_grace_seconds,
    }));
    ends(&mut cluster, PartId::new(run, 1), ExitStatus::Signal(15), EndCause::Killed);
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    cluster.assert_replays();
}

/// SL-I-12: the end of the first component is the end of the job; its share of the node is free when both are over.
#[test]
fn the_job_ends_when_both_parts_have() {
    let (mut cluster, id, run) = running();
    let events = ends(&mut cluster, PartId::new(run, 0), ExitStatus::Code(3), EndCause::Itself);
    assert_eq!(kinds(&events), [("run", "part_ended"), ("job", "stopping")]);
    assert_eq!(used_cores(&cluster), 4);
    let events = ends(&mut cluster, PartId::new(run, 1), ExitStatus::Signal(15), EndCause::Killed);
    let [Event::RunEnded { last: Some(last), .. }, ..] = &events[..] else { panic!("{events:?}") };
    assert_eq!(last.exit.status, Some(ExitStatus::Signal(15)));
    let forgotten: Vec<OrderSeed> =
        [0, 1].map(|component| OrderSeed::Forget { part: PartId::new(run, component) }).into();
    assert_eq!(follow(&cluster, &events), forgotten);
    assert_eq!((used_cores(&cluster), cluster.outcome(id)), (0, Some(Outcome::Failed(ExitStatus::Code(3)))));
    cluster.assert_replays();
}

/// SL-M-02: a component that ends alone gives back its share of the node, and the other continues there.
#[test]
fn a_component_ends_alone_on_a_node_that_it_shares() {
    let (mut cluster, id, run) = running();
    let jobs = JobSelection::Component { job: id, component: 1 };
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs });
    let orders = follow(&cluster, &events);
    assert!(matches!(orders[..], [OrderSeed::Stop { part, .. }] if part == PartId::new(run, 1)), "{orders:?}");
    let events = ends(&mut cluster, PartId::new(run, 1), ExitStatus::Signal(15), EndCause::Killed);
    assert_eq!(kinds(&events), [("run", "part_ended"), ("job", "component_ended"), ("job", "shrunk")]);
    assert_eq!(follow(&cluster, &events), [OrderSeed::Forget { part: PartId::new(run, 1) }]);
    let node = cluster.state.node_by_name("node1").expect("it is there");
    assert!(node.runs.contains(&run), "the other component is still there");
    assert_eq!(used_cores(&cluster), 2);
    // From now on the node says which part is meant.
    let events = ends(&mut cluster, PartId::new(run, 0), ExitStatus::Code(0), EndCause::Itself);
    assert!(matches!(events[..], [Event::RunEnded { .. }, Event::JobFinished { .. }]), "{events:?}");
    assert_eq!((used_cores(&cluster), cluster.outcome(id)), (0, Some(Outcome::Completed)));
    cluster.assert_replays();
}

/// A lost node takes all parts there with it, and the run is over.
#[test]
fn a_lost_node_takes_both_parts() {
    for how in ["silent", "booted", "forgotten"] {
        let (mut cluster, id, run) = running();
        let node = cluster.node_id("node1");
        let events = match how {
            "silent" => cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "silent".into() }),
            "booted" => cluster.hello("node1", "other", &[]),
            _ => {
                let boot_id = cluster.state.node(node).expect("it is there").boot_id.clone();
                cluster.hello("node1", &boot_id, &[])
            }
        };
        let ended: Vec<&Event> = events.iter().filter(|event| matches!(event, Event::RunEnded { .. })).collect();
        assert!(
            matches!(ended[..], [Event::RunEnded { last: None, outcome: Outcome::NodeLost(_), .. }]),
            "{how}: {events:?}"
        );
        assert!(cluster.state.run(run).is_none() && cluster.outcome(id).is_some(), "{how}");
        assert_eq!(used_cores(&cluster), 0, "{how}");
        cluster.assert_replays();
    }
}

/// A node lost while two of its components are being ended alone takes the rest of their steps with it, and nothing of
/// the component elsewhere.
#[test]
fn a_lost_node_ends_the_steps_of_two_components() {
    let (mut cluster, id, run) = three_running("node2", "node1");
    let (number, _) = launch(&mut cluster, id, step(&[1, 2]));
    for component in [1, 2] {
        cluster.ok(&user("ada"), Command::Cancel { jobs: JobSelection::Component { job: id, component } });
    }
    let node = cluster.node_id("node1");
    let events = cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "silent".into() });
    let over = events.iter().filter(|event| matches!(event, Event::StepEnded { step, .. } if *step == number)).count();
    assert_eq!(over, 1, "{events:?}");
    let known = cluster.state.run(run).expect("the first component goes on");
    assert_eq!((known.steps.len(), known.parts.len(), known.stopping), (0, 1, None));
    cluster.assert_replays();
}

/// A node that forgot one of two parts loses that one; the run is stopped, and over when the other part has ended.
#[test]
fn a_forgotten_part_stops_the_other() {
    let (mut cluster, id, run) = running();
    let boot_id = cluster.state.node_by_name("node1").expect("it is there").boot_id.clone();
    let hello = Command::NodeHello {
        boot_id,
        parts: vec![PartId::new(run, 0)],
        highest_run: None,
        as_of: Some(mark(cluster.state.sequence())),
    };
    let events = cluster.ok(&executor("node1"), hello);
    assert_eq!(kinds(&events), [("run", "part_ended"), ("job", "stopping")]);
    ends(&mut cluster, PartId::new(run, 0), ExitStatus::Signal(15), EndCause::Killed);
    assert!(matches!(cluster.outcome(id), Some(Outcome::NodeLost(_))));
    cluster.assert_replays();
}

/// SL-R-06, SL-R-08: tasks of a step in both components use the cores of their own component, and end one by one.
#[test]
fn a_step_runs_in_both_components_of_a_node() {
    let (mut cluster, id, run) = running();
    let (number, events) = launch(&mut cluster, id, step(&[0, 1]));
    let [Event::StepLaunched { shares, spec, .. }] = &events[..] else { panic!("{events:?}") };
    let cores: Vec<String> = shares.iter().map(|share| share.cores.to_string()).collect();
    assert_eq!(cores, ["0", "2"]);
    let node = cluster.node_id("node1");
    let order = |component| {
        let part = PartId::new(run, component);
        tasks_order(&cluster.state, part, node, number, &two(2), spec).expect("it is to be launched")
    };
    for component in [0, 1] {
        let (order, tasks) = order(component);
        assert_eq!(order.part, PartId::new(run, component));
        assert_eq!(tasks.programs[0].argv, [format!("program{component}")]);
        assert_eq!((order.node_index, order.first_rank), (component, component));
    }
    let launched = |order: &OrderSeed| match order {
        OrderSeed::LaunchStep { part, .. } => *part,
        other => panic!("{other:?}"),
    };
    let orders: Vec<PartId> = follow(&cluster, &events).iter().map(launched).collect();
    assert_eq!(orders, [PartId::new(run, 0), PartId::new(run, 1)]);
    let signal = Command::SignalStep { job: id, step: number, component: Some(1), signal: 10 };
    let events = cluster.ok(&user("ada"), signal);
    let expected = OrderSeed::SignalStep { part: PartId::new(run, 1), step: number, signal: 10 };
    assert_eq!(follow(&cluster, &events), [expected]);
    // The other core of each component is free for another step; there is no third one.
    let (second, _) = launch(&mut cluster, id, step(&[1]));
    let busy = Command::LaunchStep { job: id, spec: Box::new(step(&[1])) };
    cluster.refused(&user("ada"), busy, RefusalCode::Busy, "are free of other steps");
    assert_eq!(
        kinds(&step_ends(&mut cluster, PartId::new(run, 1), second, 0)),
        [("step", "part_ended"), ("step", "ended")]
    );

    let events = step_ends(&mut cluster, PartId::new(run, 1), number, 4);
    assert!(
        matches!(events[..], [Event::StepPartEnded { component: 1, .. }]),
        "the part in component 0 goes on: {events:?}"
    );
    assert!(step_ends(&mut cluster, PartId::new(run, 1), number, 4).is_empty(), "a repeated report");
    let events = step_ends(&mut cluster, PartId::new(run, 0), number, 0);
    let status = Some(ExitStatus::Code(4));
    assert_eq!(events.last(), Some(&Event::StepEnded { job: id, run, step: number, status }));
    cluster.assert_replays();
}

/// SL-M-15: a component that ends takes its tasks of every step with it; those of the other continue.
#[test]
fn a_component_that_ends_alone_ends_its_tasks_on_a_shared_node() {
    let (mut cluster, id, run) = running();
    let (both, _) = launch(&mut cluster, id, step(&[0, 1]));
    let (own, _) = launch(&mut cluster, id, step(&[1]));
    cluster.ok(&user("ada"), Command::Cancel { jobs: JobSelection::Component { job: id, component: 1 } });
    let events = ends(&mut cluster, PartId::new(run, 1), ExitStatus::Signal(15), EndCause::Killed);
    let over: Vec<StepId> = events
        .iter()
        .filter_map(|event| match event {
            Event::StepEnded { step, .. } => Some(*step),
            _ => None,
        })
        .collect();
    assert_eq!(over, [own]);
    let steps = &cluster.state.run(run).expect("it runs").steps;
    let open: Vec<bool> = steps[&both].parts.iter().map(|part| part.exit.is_none()).collect();
    assert_eq!(open, [true, false]);
    let events = step_ends(&mut cluster, PartId::new(run, 0), both, 0);
    assert!(matches!(events[..], [Event::StepPartEnded { .. }, Event::StepEnded { .. }]), "{events:?}");
    cluster.assert_replays();
}

/// A step without places belongs to the first of the components on a node.
#[test]
fn a_plain_step_is_in_the_first_component_of_a_node() {
    let (mut cluster, id, run) = running();
    let start = |tasks| plain_step(id, Some(tasks), None);
    cluster.refused(&user("ada"), start(3), RefusalCode::LimitReached, "room for 1 to 2");
    let events = cluster.ok(&user("ada"), plain_step(id, None, None));
    let Event::StepLaunched { shares, .. } = &events[0] else { panic!("{events:?}") };
    assert_eq!(shares.iter().map(|share| share.tasks).sum::<u32>(), 1, "the tasks of the first component");
    step_ends(&mut cluster, PartId::new(run, 0), StepId(1), 0);
    let events = cluster.ok(&user("ada"), start(2));
    let orders = follow(&cluster, &events);
    assert!(matches!(orders[..], [OrderSeed::LaunchStep { part, .. }] if part == PartId::new(run, 0)), "{orders:?}");
    let events = step_ends(&mut cluster, PartId::new(run, 0), StepId(2), 0);
    assert_eq!(kinds(&events), [("step", "part_ended"), ("step", "ended")]);
    cluster.assert_replays();
}

/// The job gets everything that both components ask for, and no more than the node has.
#[test]
fn a_placement_can_share_some_nodes_and_not_others() {
    let mut cluster = sharing();
    let mut spec = two(1);
    spec.components.push(spec.components[1].clone());
    let id = cluster.submit("ada", spec);
    let share = |node: NodeId, core: u32| NodeShare {
        node,
        cores: IndexSet::from_range(core, core),
        gpus: IndexSet::new(),
        memory_bytes: GIB,
        tasks: 1,
        exclusive: false,
    };
    let (node1, node2) = (cluster.node_id("node1"), cluster.node_id("node2"));
    let mut placement = on_one_node(&cluster);
    placement.components.push(placement.components[0].clone());
    for (placed, share) in placement.components.iter_mut().zip([share(node1, 0), share(node2, 0), share(node1, 1)]) {
        placed.shares = vec![share];
    }
    let run = planned(&mut cluster, id, placement);
    let known = cluster.state.run(run).expect("it has its nodes");
    assert_eq!((known.is_shared(node1), known.is_shared(node2)), (true, false));
    let started = |cluster: &mut Cluster, node: &str, component| {
        kinds(&cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, component) }))
    };
    assert_eq!(started(&mut cluster, "node2", 0), [("run", "part_started")]);
    assert_eq!(started(&mut cluster, "node1", 0), [("run", "part_started")]);
    assert!(started(&mut cluster, "node2", 2).is_empty(), "that component is not there");
    assert_eq!(started(&mut cluster, "node1", 2), [("job", "started")]);
    let gone: Arc<NodeExit> = Arc::new(exit(ExitStatus::Code(0), EndCause::Itself, cluster.now));
    let end = |component| Command::NodeEnded { part: PartId::new(run, component), exit: (*gone).clone() };
    assert_eq!(kinds(&cluster.ok(&executor("node2"), end(0))), [("run", "part_ended")]);
    cluster.assert_replays();
}

/// A part keeps its name when the node is no longer shared; on nodes that never were shared, the name is that of the
/// run.
#[test]
fn a_part_keeps_its_name_when_its_neighbour_has_gone() {
    let (mut cluster, id, run) = three_running("node1", "node2");
    let gone = |component, cluster: &Cluster| Command::NodeEnded {
        part: PartId::new(run, component),
        exit: exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now),
    };
    cluster.ok(&user("ada"), Command::Cancel { jobs: JobSelection::Component { job: id, component: 1 } });
    let end = gone(1, &cluster);
    cluster.ok(&executor("node2"), end);
    let node2 = cluster.node_id("node2");
    assert_eq!(reconcile(&cluster.state, node2, &[PartId::new(run, 2)]), [], "it is known by that name");
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    let stopped = |order: &OrderSeed| match order {
        OrderSeed::Stop { part, .. } => *part,
        other => panic!("{other:?}"),
    };
    let orders: Vec<PartId> = follow(&cluster, &events).iter().map(stopped).collect();
    assert_eq!(orders, [PartId::new(run, 0), PartId::new(run, 2)]);
    let end = gone(2, &cluster);
    assert_eq!(kinds(&cluster.ok(&executor("node2"), end)), [("run", "part_ended")]);
    let end = gone(0, &cluster);
    let events = cluster.ok(&executor("node1"), end);
    let forgotten = [PartId::new(run, 0), PartId::new(run, 2)].map(|part| OrderSeed::Forget { part });
    assert_eq!(follow(&cluster, &events), forgotten);
    cluster.assert_replays();
}
