//! Jobs that leave their nodes alone, and jobs whose launches describe their nodes.

use crate::{support::*, written::launch_order};
use muster_domain::{
    orders::{OrderSeed, follow_up},
    runs::PartState,
};
use muster_schemas::{
    PartId,
    command::{Command, RefusalCode},
    event::{Actor, EndCause, Event, StopReason},
    job::{ExitStatus, JobSpec, JobType, Outcome},
    node::NodeFacts,
    resources::{IndexSet, PropertyValue},
    steps::{StepGroup, StepPlace, StepProgram, StepSpec},
};

fn hands_off(nodes: u32) -> JobSpec {
    JobSpec { types: vec![JobType::HandsOff], ..job(nodes, 4) }
}

/// OAR-T-50, OAR-T-60: only the first node gets orders; the others may restart or be lost, and are free when the script has ended.
#[test]
fn only_the_first_node_gets_orders_and_the_others_may_restart() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", hands_off(3));
    let run = cluster.allocate(id, &["node2", "node1", "node3"], 4);
    let lead = cluster.node_id("node2");
    let allocated =
        cluster.log.iter().find(|record| matches!(record.event, Event::RunAllocated { .. })).expect("it is");
    let launches = follow_up(&cluster.state, allocated);
    assert!(matches!(launches[..], [(node, OrderSeed::Launch { .. })] if node == lead), "{launches:?}");
    let started = cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(started, [Event::RunStarted { job: id, run, node: lead, component: 0 }]);

    let node = cluster.node_id("node1");
    let events = cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "it reboots".into() });
    assert!(matches!(events[..], [Event::NodeLost { .. }]), "{events:?}");
    let events = cluster.hello("node3", "boot2", &[]);
    assert!(matches!(events[..], [Event::NodeLost { .. }, Event::NodeUp { .. }]), "{events:?}");
    cluster.hello("node1", "boot2", &[]);
    assert_eq!(cluster.outcome(id), None, "the job continues");
    assert!(cluster.state.run(run).expect("it runs").parts.iter().skip(1).all(|part| part.state == PartState::Held));
    let of_others = Command::NodeEnded {
        part: cluster.part(run, "node3"),
        exit: exit(ExitStatus::Code(1), EndCause::Itself, cluster.now),
    };
    assert_eq!(cluster.ok(&executor("node3"), of_others), [], "nothing ran there");
    let ranks = IndexSet::first_n(1);
    let places = vec![StepPlace { node: "node3".into(), ranks: ranks.clone(), cores: None }];
    let programs = vec![StepProgram { ranks, argv: vec!["true".into()] }];
    let spec = StepSpec { groups: vec![StepGroup { places, programs, ..StepGroup::default() }], ..StepSpec::default() };
    let step = Command::LaunchStep { job: id, spec: Box::new(spec) };
    cluster.refused(&user("ada"), step, RefusalCode::Conflict, "starts nothing there");

    let events = cluster.end(run, "node2", ExitStatus::Code(7));
    assert!(matches!(events[0], Event::RunEnded { .. }), "{events:?}");
    assert_eq!(cluster.outcome(id), Some(Outcome::Failed(ExitStatus::Code(7))));
    assert!(cluster.state.nodes().all(|node| node.runs.is_empty() && node.free_cores.len() == 4));
    cluster.assert_replays();
}

/// OAR-T-60: the loss of the first node ends the job, and so does its owner; only that node is told.
#[test]
fn the_first_node_decides() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", hands_off(2));
    let run = cluster.allocate(id, &["node1", "node2"], 4);
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    let node = cluster.node_id("node1");
    cluster.ok(&Actor::Ledger, Command::NodeSilent { node, reason: "no heartbeat".into() });
    assert_eq!(cluster.outcome(id), Some(node_lost("node1: no heartbeat")));
    let other = cluster.submit("ada", hands_off(2));
    let run = cluster.allocate(other, &["node2", "node3"], 4);
    cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[other]) });
    assert_eq!(events, [Event::RunStopping { job: other, run, reason: StopReason::Cancelled, grace_seconds: None }]);
    let stops = follow_up(&cluster.state, cluster.log.last().expect("there is one"));
    assert!(matches!(stops[..], [(to, OrderSeed::Stop { .. })] if to == cluster.node_id("node2")), "{stops:?}");
    cluster.assert_replays();
}

/// OAR-T-50: a job that leaves its nodes alone has no tasks on them.
#[test]
fn nothing_runs_on_nodes_that_are_left_alone() {
    let mut cluster = Cluster::new();
    let mut spec = hands_off(2);
    spec.components[0].launch = tasks();
    let submit = Command::Submit { jobs: vec![spec] };
    cluster.refused(&user("ada"), submit, RefusalCode::Invalid, "leaves its nodes alone");
}

/// OAR-J-15: the launch of a job that asks for it says what its nodes are, and which of their cores it has.
#[test]
fn launches_describe_the_nodes_of_jobs_that_ask() {
    let mut config = config();
    config.nodes[1].sockets = 2;
    config.nodes[2].properties.insert("mem".into(), PropertyValue::Number(64));
    let mut cluster = Cluster::with(config);
    let spec = JobSpec { types: vec![JobType::DescribesNodes], ..job(2, 2) };
    let id = cluster.submit("ada", spec.clone());
    let run = cluster.allocate(id, &["node3", "node1"], 2);
    let order =
        launch_order(&cluster.state, PartId::new(run, 0), cluster.node_id("node3"), &spec).expect("it launches");
    let facts: Vec<Option<&NodeFacts>> = order.nodes.iter().map(|node| node.facts.as_deref()).collect();
    let third = NodeFacts {
        properties: [("mem".to_owned(), PropertyValue::Number(64))].into(),
        cores: "0-1".parse().unwrap(),
        all_cores: 4,
        sockets: 1,
        cores_before: 8,
        sockets_before: 3,
    };
    let first = NodeFacts { properties: Default::default(), cores_before: 0, sockets_before: 0, ..third.clone() };
    assert_eq!(facts, [Some(&third), Some(&first)]);
    let plain = cluster.submit("ada", job(1, 1));
    let run = cluster.allocate(plain, &["node1"], 1);
    let order = launch_order(&cluster.state, PartId::new(run, 0), cluster.node_id("node1"), &job(1, 1));
    assert!(order.expect("it launches").nodes[0].facts.is_none(), "nobody has asked");
}
