//! The orders that nodes get.

use crate::{
    support::*,
    written::{launch_order, tasks_order},
};
use muster_domain::orders::{OrderSeed, follow_up, reconcile};
use muster_schemas::{
    NodeId, PartId, RunId, Sequence, StepId,
    command::Command,
    event::{Event, JobChange, StopReason},
    job::{ExitStatus, JobSpec, Program},
};

/// The orders that follow from the last record; if that is a plan, from the start before it.
fn last(cluster: &Cluster) -> Vec<(NodeId, OrderSeed)> {
    let last = cluster.log.iter().rfind(|record| !matches!(record.event, Event::Planned { .. }));
    follow_up(&cluster.state, last.unwrap())
}

fn submitted(cluster: &Cluster, at: Sequence) -> JobSpec {
    match &cluster.log[at.0 as usize - 1].event {
        Event::JobSubmitted { spec, .. } => (**spec).clone(),
        other => panic!("{other:?}"),
    }
}

/// OAR-X-07: all nodes of a run are told to prepare it at once, none after another.
#[test]
fn a_launch_goes_to_every_node() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 2));
    let run = cluster.allocate(id, &["node3", "node1"], 2);
    let orders = last(&cluster);
    let submitted_sequence = cluster.state.job(id).unwrap().submitted_sequence;
    let launch = OrderSeed::Launch { part: PartId::new(run, 0), submitted_sequence };
    let (node3, node1) = (cluster.node_id("node3"), cluster.node_id("node1"));
    assert_eq!(orders, [(node3, launch), (node1, launch)]);
    let spec = submitted(&cluster, submitted_sequence);
    let lead = launch_order(&cluster.state, PartId::new(run, 0), node3, &spec).unwrap();
    assert!(matches!(lead.launch.program, Program::Script { .. }));
    assert_eq!((lead.node_index, lead.first_rank, lead.total_tasks), (0, 0, 2));
    assert_eq!(lead.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["node3", "node1"]);
    let other = launch_order(&cluster.state, PartId::new(run, 0), node1, &spec).unwrap();
    assert_eq!(other.launch.program, Program::None, "the script runs once");
    assert_eq!((other.node_index, other.first_rank), (1, 1));
    assert!(launch_order(&cluster.state, PartId::new(run, 0), cluster.node_id("node2"), &spec).is_none());
}

#[test]
fn tasks_run_on_every_node() {
    let mut cluster = Cluster::new();
    let mut spec = job(2, 2);
    spec.components[0].launch = tasks();
    let id = cluster.submit("ada", spec);
    let run = cluster.allocate(id, &["node1", "node2"], 2);
    let spec = submitted(&cluster, cluster.state.job(id).unwrap().submitted_sequence);
    let order = launch_order(&cluster.state, PartId::new(run, 0), cluster.node_id("node2"), &spec).unwrap();
    assert!(matches!(order.launch.program, Program::Tasks { .. }));
}

#[test]
fn what_is_done_to_a_run_is_ordered() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.start(id, &["node2"], 1);
    let node = cluster.node_id("node2");
    cluster.ok(&user("ada"), Command::Signal { jobs: ids(&[id]), signal: 10 });
    assert_eq!(last(&cluster), [(node, OrderSeed::Signal { part: PartId::new(run, 0), signal: 10 })]);
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(&[id]) });
    assert_eq!(last(&cluster), [(node, OrderSeed::Suspend { part: PartId::new(run, 0) })]);
    cluster.ok(&user("oper"), Command::Resume { jobs: ids(&[id]) });
    assert_eq!(last(&cluster), [(node, OrderSeed::Resume { part: PartId::new(run, 0) })]);
    let change = JobChange { walltime_seconds: Some(9), ..JobChange::default() };
    cluster.ok(&user("oper"), Command::Modify { jobs: ids(&[id]), change });
    assert_eq!(
        last(&cluster),
        [(node, OrderSeed::SetWalltime { part: PartId::new(run, 0), walltime_seconds: Some(9) })]
    );
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    let stop = OrderSeed::Stop { part: PartId::new(run, 0), reason: StopReason::Cancelled, grace_seconds: 10 };
    assert_eq!(last(&cluster), [(node, stop)]);
    cluster.end(run, "node2", ExitStatus::Signal(15));
    let forget: Vec<_> = cluster.log.iter().flat_map(|record| follow_up(&cluster.state, record)).collect();
    assert_eq!(forget, [(node, OrderSeed::Forget { part: PartId::new(run, 0) })], "all else is over by now");
}

#[test]
fn a_node_is_told_again_what_it_missed() {
    let mut cluster = Cluster::new();
    let (one, two) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    let launching = cluster.allocate(one, &["node1"], 1);
    let running = cluster.start(two, &["node1"], 1);
    let node = cluster.node_id("node1");
    let submitted_sequence = cluster.state.job(one).unwrap().submitted_sequence;
    let launch = OrderSeed::Launch { part: PartId::new(launching, 0), submitted_sequence };
    assert_eq!(reconcile(&cluster.state, node, &[PartId::new(running, 0)]), [launch]);
    assert_eq!(reconcile(&cluster.state, node, &[PartId::new(running, 0), PartId::new(launching, 0)]), []);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[two]) });
    let stop = |run, reason| OrderSeed::Stop { part: PartId::new(run, 0), reason, grace_seconds: 10 };
    assert_eq!(
        reconcile(&cluster.state, node, &[PartId::new(running, 0), PartId::new(launching, 0)]),
        [stop(running, StopReason::Cancelled)]
    );
    let unknown = RunId(99);
    let orders = reconcile(&cluster.state, node, &[PartId::new(launching, 0), PartId::new(unknown, 0)]);
    assert_eq!(orders, [stop(running, StopReason::Cancelled), stop(unknown, StopReason::NodeLost)]);
}

#[test]
fn a_suspension_is_told_again() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let run = cluster.start(id, &["node1"], 1);
    let node = cluster.node_id("node1");
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(&[id]) });
    assert_eq!(
        reconcile(&cluster.state, node, &[PartId::new(run, 0)]),
        [OrderSeed::Suspend { part: PartId::new(run, 0) }]
    );
    cluster.ok(&user("oper"), Command::Resume { jobs: ids(&[id]) });
    assert_eq!(
        reconcile(&cluster.state, node, &[PartId::new(run, 0)]),
        [OrderSeed::Resume { part: PartId::new(run, 0) }]
    );
}

#[test]
fn a_step_goes_to_its_nodes() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(3, 1));
    let run = cluster.start(id, &["node1", "node2", "node3"], 1);
    cluster.ok(&user("ada"), plain_step(id, Some(2), None));
    let orders = last(&cluster);
    assert_eq!(orders.iter().map(|(node, _)| node.0).collect::<Vec<_>>(), [0, 1]);
    let OrderSeed::LaunchStep { step, submitted_sequence, started_sequence, .. } = orders[1].1 else {
        panic!("{orders:?}");
    };
    assert_eq!((step, started_sequence), (StepId(1), cluster.state.sequence()));
    let spec = submitted(&cluster, submitted_sequence);
    let Some(Event::StepLaunched { spec: launched, .. }) = cluster.log.last().map(|record| &record.event) else {
        panic!("{:?}", cluster.log.last())
    };
    let part = PartId::new(run, 0);
    let (order, _) = tasks_order(&cluster.state, part, NodeId(1), step, &spec, launched).unwrap();
    assert_eq!((order.step, order.first_rank, order.total_tasks), (StepId(1), 1, 2));
    assert!(reconcile(&cluster.state, NodeId(1), &[PartId::new(run, 0)]).contains(&orders[1].1));
    assert!(reconcile(&cluster.state, NodeId(2), &[PartId::new(run, 0)]).is_empty());
}
