//! Running jobs that give up nodes because somebody asked for it.

use crate::support::*;
use muster_domain::orders::{OrderSeed, follow_up, reconcile};
use muster_schemas::{
    JobId, PartId, RunId, StepId,
    command::{Command, JobSelection, RefusalCode, Reply, Start},
    event::{Actor, EndCause, Event, ShrinkReason, StopReason},
    job::{ExitStatus, JobState, Outcome, Program, Usage},
    resources::{IndexSet, Placement},
    steps::{StepGroup, StepPlace, StepProgram, StepSpec},
};

const NODES: [&str; 3] = ["node1", "node2", "node3"];

/// A running job whose script is on the first of three nodes.
fn running() -> (Cluster, JobId, RunId) {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(3, 4));
    let run = cluster.start(id, &NODES, 4);
    (cluster, id, run)
}

fn to(job: JobId, nodes: u32) -> Command {
    Command::ShrinkJob { job, nodes: Some(nodes), keep: Vec::new(), component: None }
}

fn keeping(job: JobId, keep: &[&str]) -> Command {
    Command::ShrinkJob { job, nodes: None, keep: keep.iter().map(ToString::to_string).collect(), component: None }
}

/// A step with a task on each of these nodes.
fn plain(nodes: &[&str]) -> StepSpec {
    let place = |(rank, node): (u32, &&str)| StepPlace {
        node: (*node).into(),
        ranks: IndexSet::from_range(rank, rank),
        cores: None,
    };
    let count = u32::try_from(nodes.len()).expect("few");
    let programs = vec![StepProgram { ranks: IndexSet::first_n(count), argv: vec!["true".into()] }];
    let group = StepGroup { places: (0..).zip(nodes).map(place).collect(), programs, ..StepGroup::default() };
    StepSpec { groups: vec![group], ..StepSpec::default() }
}

fn step(cluster: &mut Cluster, job: JobId, nodes: &[&str]) -> StepId {
    match &cluster.ok(&user("ada"), Command::LaunchStep { job, spec: Box::new(plain(nodes)) })[..] {
        [Event::StepLaunched { step, .. }] => *step,
        events => panic!("{events:?}"),
    }
}

fn killed(cluster: &mut Cluster, run: RunId, node: &str) -> Vec<Event> {
    let mut exit = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
    exit.usage = Usage { cpu_time_micros: 7, ..Usage::default() };
    cluster.ok(&executor(node), Command::NodeEnded { part: PartId::new(run, 0), exit })
}

fn free(cluster: &Cluster, node: &str) -> u64 {
    cluster.state.node_by_name(node).expect("it is there").free_cores.len()
}

fn kept(cluster: &Cluster, run: RunId) -> Vec<String> {
    let run = cluster.state.run(run).expect("it runs");
    run.kept_placement().nodes().map(|node| cluster.state.node_name(node).into_owned()).collect()
}

#[test]
fn a_job_keeps_its_first_nodes_and_the_others_are_free_when_nothing_runs_there_any_more() {
    let (mut cluster, id, run) = running();
    let (here, everywhere) = (step(&mut cluster, id, &["node1"]), step(&mut cluster, id, &NODES));
    let events = cluster.ok(&user("ada"), to(id, 1));
    assert!(
        matches!(&events[..], [
            Event::RunShrinking { reason: ShrinkReason::Asked, removed, .. },
            Event::StepStopping { step, component: None, is_forced: true, .. },
        ] if *step == everywhere && removed.nodes().count() == 2),
        "{events:?}"
    );
    assert_eq!(kept(&cluster, run), ["node1"]);
    let shrinking = cluster.log.iter().rev().find(|record| record.event.kind_verb().1 == "shrinking").expect("it is");
    let orders = follow_up(&cluster.state, shrinking);
    let stopped: Vec<_> = orders.iter().map(|(node, order)| (cluster.state.node_name(*node), order)).collect();
    let stop = |order: &OrderSeed| matches!(order, OrderSeed::Stop { reason: StopReason::PeerEnded, .. });
    assert!(stopped.iter().all(|(_, order)| stop(order)) && stopped.len() == 2, "{stopped:?}");
    // A node that has missed the order gets it again, and no new step is started there.
    let node2 = cluster.node_id("node2");
    assert!(reconcile(&cluster.state, node2, &[PartId::new(run, 0)]).iter().any(stop));
    let refused = Command::LaunchStep { job: id, spec: Box::new(plain(&["node2"])) };
    cluster.refused(&user("ada"), refused, RefusalCode::Invalid, "`node2` is not a node of");
    // Nobody else gets the cores before its processes there have ended.
    assert_eq!(free(&cluster, "node2"), 0);
    let events = killed(&mut cluster, run, "node2");
    assert!(
        matches!(&events[..], [Event::RunPartEnded { .. }, Event::StepPartEnded { .. }, Event::RunShrunk { .. }]),
        "{events:?}"
    );
    assert_eq!((free(&cluster, "node2"), free(&cluster, "node3")), (4, 0));
    let forget = follow_up(&cluster.state, cluster.log.last().expect("a log"));
    assert!(matches!(&forget[..], [(node, OrderSeed::Forget { .. })] if *node == node2), "{forget:?}");
    killed(&mut cluster, run, "node3");
    let run_now = cluster.state.run(run).expect("it goes on");
    assert_eq!((run_now.parts.len(), run_now.giving_up.len()), (1, 0));
    assert!(run_now.steps.contains_key(&here), "a step on nodes that are kept goes on");
    // What was used there counts, and the job ends as its script does.
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    let usage = cluster.state.job(id).and_then(|job| Some(job.last_run.as_ref()?.usage.cpu_time_micros));
    assert_eq!(usage, Some(24), "7 on each node that is gone, 10 on the last");
    cluster.assert_replays();
}

#[test]
fn a_job_keeps_the_nodes_that_are_named() {
    let (mut cluster, id, run) = running();
    let ada = user("ada");
    cluster.refused(&ada, keeping(id, &["node2"]), RefusalCode::Invalid, "cannot give up node1, its first node");
    cluster.refused(&ada, keeping(id, &["node1", "node4"]), RefusalCode::Invalid, "`node4` is not a node of job");
    cluster.ok(&ada, keeping(id, &["node3", "node1"]));
    assert_eq!(kept(&cluster, run), ["node1", "node3"]);
    assert_eq!(cluster.ok(&ada, to(id, 2)), [], "it has two already");
    cluster.ok(&ada, to(id, 1));
    assert_eq!(kept(&cluster, run), ["node1"]);
    cluster.assert_replays();
}

#[test]
fn what_cannot_become_smaller_is_refused_and_stays_as_it_is() {
    let (mut cluster, id, run) = running();
    let ada = user("ada");
    cluster.refused(&ada, to(id, 0), RefusalCode::Invalid, "keeps at least its first node");
    cluster.refused(&ada, to(id, 4), RefusalCode::Conflict, "has 3 nodes and cannot grow to 4");
    cluster.refused(&user("bob"), to(id, 1), RefusalCode::PermissionDenied, "");
    let both = Command::ShrinkJob { job: id, nodes: Some(1), keep: vec!["node1".into()], component: None };
    cluster.refused(&ada, both, RefusalCode::Invalid, "either a number of nodes or their names");
    let waiting = cluster.submit("ada", job(2, 4));
    cluster.refused(&ada, to(waiting, 1), RefusalCode::Conflict, "does not run");
    cluster.ok(&user("oper"), Command::Suspend { jobs: ids(&[id]) });
    cluster.refused(&ada, to(id, 1), RefusalCode::Conflict, "is suspended");
    assert_eq!(kept(&cluster, run), NODES);
    let mut cluster = Cluster::new();
    let (one, _) = cluster.start_on_each(&NODES, 4);
    let state = cluster.state.job_state(cluster.state.job(one).expect("it runs"));
    assert_eq!(state, JobState::Running);
    cluster.refused(&root(), to(one, 1), RefusalCode::Conflict, "");
}

/// A node that is lost while it is given up takes nothing with it.
#[test]
fn a_job_goes_on_if_a_node_is_lost_that_it_gives_up() {
    let (mut cluster, id, run) = running();
    cluster.ok(&user("ada"), to(id, 2));
    let node = cluster.node_id("node3");
    let events =
        cluster.ok(&muster_schemas::event::Actor::Ledger, Command::NodeSilent { node, reason: "silent".into() });
    assert!(matches!(events.last(), Some(Event::RunShrunk { .. })), "{events:?}");
    assert_eq!(cluster.state.run(run).map(|run| (run.stopping, run.parts.len())), Some((None, 2)));
    // A job that ends in the meantime ends as a whole.
    cluster.ok(&user("ada"), to(id, 1));
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    killed(&mut cluster, run, "node2");
    killed(&mut cluster, run, "node1");
    assert_eq!(cluster.outcome(id), Some(Outcome::Cancelled));
    cluster.assert_replays();
}

/// SL-M-07: one component becomes smaller, the others stay as they are; it keeps its first node.
#[test]
fn a_component_gives_up_nodes_and_the_others_keep_theirs() {
    let mut cluster = Cluster::new();
    let (id, run) = running_components(&mut cluster);
    let of = |component, nodes| Command::ShrinkJob { job: id, nodes: Some(nodes), keep: Vec::new(), component };
    let ada = user("ada");
    cluster.refused(&ada, of(None, 1), RefusalCode::Conflict, "it must be said which one");
    cluster.refused(&ada, of(Some(2), 1), RefusalCode::NotFound, "has no component 2");
    cluster.refused(&ada, of(Some(1), 3), RefusalCode::Conflict, "has 2 nodes and cannot grow to 3");
    cluster.refused(&ada, of(Some(0), 0), RefusalCode::Invalid, "keeps at least its first node");
    cluster.ok(&ada, of(Some(1), 1));
    assert_eq!(kept(&cluster, run), ["node1", "node2"]);
    let exit = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
    let part = cluster.part(run, "node3");
    let events = cluster.ok(&executor("node3"), Command::NodeEnded { part, exit });
    assert!(matches!(events.last(), Some(Event::RunShrunk { .. })), "{events:?}");
    assert_eq!(free(&cluster, "node3"), 4);
    assert_eq!(cluster.state.run(run).map(|run| (run.stopping, run.parts.len())), Some((None, 2)));
    cluster.assert_replays();
}

/// SL-I-06: a component that is ended while it gives up a node gives back both at its end, whichever node is last.
#[test]
fn a_component_that_ends_while_it_gives_up_nodes_leaves_nothing_behind() {
    for last in ["node2", "node3"] {
        let mut cluster = Cluster::new();
        let (id, run) = running_components(&mut cluster);
        let smaller = Command::ShrinkJob { job: id, nodes: Some(1), keep: Vec::new(), component: Some(1) };
        cluster.ok(&user("ada"), smaller.clone());
        let only = JobSelection::Component { job: id, component: 1 };
        cluster.ok(&user("ada"), Command::Cancel { jobs: only });
        cluster.refused(&user("ada"), smaller, RefusalCode::Conflict, "is being ended");
        let first = if last == "node2" { "node3" } else { "node2" };
        for node in [first, last] {
            let exit = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
            let part = cluster.part(run, node);
            cluster.ok(&executor(node), Command::NodeEnded { part, exit });
        }
        assert_eq!((free(&cluster, "node2"), free(&cluster, "node3")), (4, 4), "{last} is the last");
        assert_eq!(kept(&cluster, run), ["node1"]);
        cluster.assert_replays();
    }
}

/// A job that runs: its first component on node1, its second on node2 and node3.
fn running_components(cluster: &mut Cluster) -> (JobId, RunId) {
    let mut spec = job(1, 4);
    let mut wide = job(2, 4).components.remove(0);
    wide.launch.program = Program::None;
    spec.components.push(wide);
    let id = cluster.submit("ada", spec);
    (id, start_components(cluster, id, &[&["node1"], &["node2", "node3"]]))
}

/// Starts a job with these nodes for each of its components.
fn start_components(cluster: &mut Cluster, id: JobId, nodes: &[&[&str]]) -> RunId {
    let components = nodes.iter().flat_map(|nodes| cluster.placement(nodes, 4).components).collect();
    let run = cluster.state.next_run();
    let start = Start { job: id, placement: Placement { components } };
    let planned = cluster.run(&Actor::Planner, commit(vec![start]));
    assert!(matches!(&planned, Ok((_, Reply::Planned(refused))) if refused.is_empty()), "{planned:?}");
    for node in nodes.concat() {
        cluster.ok(&executor(node), Command::NodeStarted { part: cluster.part(run, node) });
    }
    run
}
