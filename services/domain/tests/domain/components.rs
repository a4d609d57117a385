//! Single components of a job: holds, and the end of one while the others continue.

use crate::support::*;
use muster_domain::orders::{OrderSeed, follow_up, reconcile};
use muster_schemas::{
    JobId, PartId, RunId, StepId,
    cluster::ClusterConfig,
    command::{Command, JobEnding, JobSelection, RefusalCode, Reply, Start},
    event::{EndCause, Event, JobChange, StopReason},
    job::{ExitStatus, Holds, JobSpec, Launch, Outcome, WaitReason},
    resources::{IndexSet, Placement},
    steps::{StepGroup, StepPlace, StepProgram, StepSpec},
};

const NODES: [&str; 3] = ["node1", "node2", "node3"];

/// A script in the first of three components; the others only hold resources.
fn three() -> JobSpec {
    let mut spec = job(1, 2);
    let mut other = spec.components[0].clone();
    other.launch = Launch::default();
    spec.components.extend([other.clone(), other]);
    spec
}

fn only(job: JobId, component: u32) -> JobSelection {
    JobSelection::Component { job, component }
}

fn hold(jobs: JobSelection) -> Command {
    Command::Hold { jobs, holds: USER, reason: String::new() }
}

const USER: Holds = Holds { user: true, operator: false, system: false };

fn cancel(jobs: JobSelection) -> Command {
    Command::Cancel { jobs }
}

fn launching(cluster: &mut Cluster, id: JobId) -> RunId {
    let components = NODES.iter().flat_map(|node| cluster.placement(&[node], 2).components).collect();
    let run = cluster.state.next_run();
    let start = Start { job: id, placement: Placement { components } };
    let planned = cluster.run(&muster_schemas::event::Actor::Planner, commit(vec![start]));
    assert!(matches!(&planned, Ok((_, Reply::Planned(refused))) if refused.is_empty()), "{planned:?}");
    run
}

fn started(cluster: &mut Cluster, id: JobId) -> RunId {
    let run = launching(cluster, id);
    for node in NODES {
        cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, 0) });
    }
    run
}

/// A running job with three components, each with two cores on a separate node.
fn running() -> (Cluster, JobId, RunId) {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", three());
    let run = started(&mut cluster, id);
    (cluster, id, run)
}

fn killed(cluster: &mut Cluster, run: RunId, node: &str) -> Vec<Event> {
    let exit = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
    cluster.ok(&executor(node), Command::NodeEnded { part: PartId::new(run, 0), exit })
}

fn orders(cluster: &Cluster) -> Vec<(String, OrderSeed)> {
    let last = cluster.log.last().expect("a cluster has a log");
    let named = |(node, seed)| (cluster.state.node_name(node).into_owned(), seed);
    follow_up(&cluster.state, last).into_iter().map(named).collect()
}

/// SL-M-04, SL-M-11
#[test]
fn a_hold_of_one_component_keeps_the_whole_job_from_starting() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", three());
    cluster.ok(&user("ada"), hold(only(id, 1)));
    let holds = |cluster: &Cluster| -> Vec<bool> {
        let job = cluster.state.job(id).expect("it waits");
        job.components.iter().map(|component| component.holds.user).collect()
    };
    assert_eq!(holds(&cluster), [false, true, false]);
    assert!(!cluster.is_waiting(id));
    let job = cluster.state.job(id).expect("it waits");
    assert_eq!(cluster.state.wait_reason(job), Some(WaitReason::Held(USER)));
    // Repeating a hold changes nothing.
    assert_eq!(cluster.ok(&user("ada"), hold(only(id, 1))), []);
    cluster.ok(&user("ada"), hold(only(id, 2)));
    cluster.ok(&user("ada"), Command::Release { jobs: only(id, 1), holds: USER });
    assert_eq!(holds(&cluster), [false, false, true]);
    assert_eq!(cluster.ok(&user("ada"), Command::Release { jobs: only(id, 1), holds: USER }), [], "nor is this");
    assert!(!cluster.is_waiting(id));
    // A hold or release of the whole job applies to all components.
    cluster.ok(&user("ada"), hold(ids(&[id])));
    assert_eq!(holds(&cluster), [true, true, true]);
    cluster.ok(&user("ada"), Command::Release { jobs: ids(&[id]), holds: USER });
    assert_eq!(holds(&cluster), [false, false, false]);
    assert!(cluster.is_waiting(id));
    cluster.assert_replays();
}

/// SL-M-04
#[test]
fn holds_of_components_need_the_same_rights_and_a_component_that_is_there() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", three());
    let operator = Holds { operator: true, ..Holds::default() };
    cluster.refused(&user("bob"), hold(only(id, 1)), RefusalCode::PermissionDenied, "");
    let command = Command::Hold { jobs: only(id, 1), holds: operator, reason: String::new() };
    cluster.refused(&user("ada"), command.clone(), RefusalCode::PermissionDenied, "operator");
    cluster.ok(&user("oper"), command);
    cluster.refused(&user("ada"), hold(only(id, 3)), RefusalCode::NotFound, "has 3, counted from 0");
    // The component of a job with only one is the job.
    let plain = cluster.submit("ada", job(1, 1));
    assert!(matches!(cluster.ok(&user("ada"), hold(only(plain, 0)))[..], [Event::JobHeld { .. }]));
    cluster.assert_replays();
}

/// SL-M-03, SL-M-09
#[test]
fn what_is_only_done_to_whole_jobs_is_refused_for_a_component() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", three());
    let alone = "a single component cannot be ended";
    cluster.refused(&user("ada"), cancel(only(id, 1)), RefusalCode::Conflict, alone);
    let other = cluster.submit("ada", three());
    launching(&mut cluster, other);
    cluster.refused(&user("ada"), cancel(only(other, 1)), RefusalCode::Conflict, alone);
    started(&mut cluster, id);
    cluster.refused(&user("ada"), cancel(only(id, 0)), RefusalCode::Invalid, "ends with its first component");
    let whole = "as a whole";
    cluster.refused(&user("oper"), Command::Suspend { jobs: only(id, 1) }, RefusalCode::Conflict, whole);
    cluster.refused(&user("oper"), Command::Resume { jobs: only(id, 1) }, RefusalCode::Conflict, whole);
    cluster.refused(&user("ada"), Command::Signal { jobs: only(id, 1), signal: 10 }, RefusalCode::Conflict, whole);
    let requeue = Command::Requeue { jobs: only(id, 1), hold: false, delay_seconds: 0 };
    cluster.refused(&user("ada"), requeue, RefusalCode::Conflict, whole);
}

/// SL-M-02: EX-04 in the core.
#[test]
fn a_component_ends_alone_and_its_node_is_free_while_the_others_go_on() {
    let (mut cluster, id, run) = running();
    let events = cluster.ok(&user("ada"), cancel(only(id, 1)));
    let reason = StopReason::Cancelled;
    assert_eq!(events, [Event::ComponentStopping { job: id, run, component: 1, reason }]);
    let grace_seconds = cluster.state.settings().kill_grace_seconds;
    let stop = OrderSeed::Stop { part: PartId::new(run, 0), reason, grace_seconds };
    assert_eq!(orders(&cluster), [("node2".to_owned(), stop)]);
    // A node that missed the order gets it again; the others do not.
    assert_eq!(reconcile(&cluster.state, cluster.node_id("node2"), &[PartId::new(run, 0)]), [stop]);
    assert_eq!(reconcile(&cluster.state, cluster.node_id("node1"), &[PartId::new(run, 0)]), []);
    assert_eq!(cluster.ok(&user("ada"), cancel(only(id, 1))), []);

    cluster.pass(3);
    let events = killed(&mut cluster, run, "node2");
    assert!(
        matches!(events[..], [Event::RunPartEnded { .. }, Event::ComponentEnded { .. }, Event::RunShrunk { .. }]),
        "{events:?}"
    );
    assert_eq!(orders(&cluster), [("node2".to_owned(), OrderSeed::Forget { part: PartId::new(run, 0) })]);
    let node = cluster.state.node_by_name("node2").expect("it is there");
    assert_eq!((node.free_cores.len(), node.runs.len()), (4, 0));
    let job = cluster.state.job(id).expect("it runs");
    assert_eq!(job.component_ended(1), Some((cluster.now, Outcome::Cancelled)));
    let over = job.single_end(1).and_then(|end| end.over.as_ref()).expect("it is over");
    assert_eq!(over.placement.shares.len(), 1);
    assert_eq!(job.run(), Some(run));
    cluster.refused(&user("ada"), cancel(only(id, 1)), RefusalCode::Conflict, "is over");
    // Another job can use what it left.
    let other = cluster.submit("bob", job_of_a_node());
    cluster.start(other, &["node2"], 4);

    cluster.pass(5);
    cluster.end(run, "node3", ExitStatus::Code(0));
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    // The usage of all components, including the one that ended earlier.
    let last = cluster.state.job(id).and_then(|job| job.last_run.as_ref()).expect("it ran");
    assert_eq!(last.usage.cpu_time_micros, 30);
    cluster.assert_replays();
}

fn job_of_a_node() -> JobSpec {
    job(1, 4)
}

/// A task of a step, in a component.
fn group(component: u32, rank: u32, node: &str) -> StepGroup {
    let ranks = IndexSet::from_range(rank, rank);
    StepGroup {
        component,
        places: vec![StepPlace { node: node.into(), ranks: ranks.clone(), cores: None }],
        programs: vec![StepProgram { ranks, argv: vec!["true".into()] }],
        ..StepGroup::default()
    }
}

/// SL-M-15
#[test]
fn steps_lose_their_tasks_in_the_component_and_go_on_in_the_others() {
    let (mut cluster, id, run) = running();
    let spec = StepSpec { groups: vec![group(0, 0, "node1"), group(1, 1, "node2")], ..StepSpec::default() };
    cluster.ok(&user("ada"), Command::LaunchStep { job: id, spec: Box::new(spec) });
    let alone = StepSpec { groups: vec![group(1, 0, "node2")], ..StepSpec::default() };
    let launch_alone = Command::LaunchStep { job: id, spec: Box::new(alone) };
    cluster.ok(&user("ada"), launch_alone.clone());
    cluster.ok(&user("ada"), cancel(only(id, 1)));
    cluster.refused(&user("ada"), launch_alone, RefusalCode::Conflict, "was ended; the others continue");
    let events = killed(&mut cluster, run, "node2");
    let ended = |event: &&Event| matches!(event, Event::StepEnded { .. });
    let steps: Vec<&Event> = events.iter().filter(ended).collect();
    assert!(matches!(steps[..], [Event::StepEnded { step: StepId(2), .. }]), "{events:?}");
    let open = cluster.state.run(run).expect("it runs").steps[&StepId(1)].parts.iter().map(|part| part.exit.is_none());
    assert_eq!(open.collect::<Vec<_>>(), [true, false]);
    // A late report of a task there has no effect.
    let exit = exit(ExitStatus::Signal(9), EndCause::Killed, cluster.now);
    let late =
        Command::NodeStepEnded { part: PartId::new(run, 0), step: StepId(1), exit: exit.clone(), statuses: Vec::new() };
    assert_eq!(cluster.ok(&executor("node2"), late.clone()), []);
    let events = cluster.ok(&executor("node1"), late);
    assert!(matches!(events.last(), Some(Event::StepEnded { step: StepId(1), .. })), "{events:?}");
    cluster.assert_replays();
}

/// SL-M-10
#[test]
fn a_requeued_job_has_all_its_components_again() {
    let (mut cluster, id, run) = running();
    cluster.ok(&user("ada"), cancel(only(id, 2)));
    killed(&mut cluster, run, "node3");
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 });
    killed(&mut cluster, run, "node2");
    killed(&mut cluster, run, "node1");
    let job = cluster.state.job(id).expect("it waits");
    assert!(job.is_waiting() && job.single_end(2).is_none());
    let second = started(&mut cluster, id);
    assert_eq!(cluster.state.run(second).expect("it runs").parts.len(), 3);
    assert_eq!(cluster.state.job(id).expect("it runs").attempts, 2);
    cluster.assert_replays();
}

/// SL-M-02: the end of a component does not affect the outcome of the job, even if the job ends meanwhile.
#[test]
fn a_job_that_ends_while_a_component_is_being_ended_ends_as_its_script_does() {
    let (mut cluster, id, run) = running();
    cluster.ok(&user("ada"), cancel(only(id, 1)));
    cluster.end(run, "node1", ExitStatus::Code(0));
    killed(&mut cluster, run, "node3");
    killed(&mut cluster, run, "node2");
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    let job = cluster.state.job(id).expect("it is remembered");
    assert_eq!(job.component_ended(1), Some((cluster.now, Outcome::Cancelled)));
    cluster.assert_replays();
}

/// A component whose processes have ended keeps its nodes for steps, until it is ended on request.
#[test]
fn a_component_that_does_nothing_any_more_gives_its_node_back_at_once() {
    let (mut cluster, id, run) = running();
    cluster.end(run, "node2", ExitStatus::Code(0));
    assert_eq!(cluster.state.node_by_name("node2").expect("it is there").free_cores.len(), 2);
    cluster.ok(&user("ada"), cancel(only(id, 1)));
    assert_eq!(cluster.state.node_by_name("node2").expect("it is there").free_cores.len(), 4);
    assert_eq!(orders(&cluster), [("node2".to_owned(), OrderSeed::Forget { part: PartId::new(run, 0) })]);
    cluster.assert_replays();
}

/// SL-M-02: the loss of a node of a component that is being ended does not end the job.
#[test]
fn a_node_that_is_lost_under_a_component_that_ends_takes_nothing_else_with_it() {
    let (mut cluster, id, run) = running();
    cluster.ok(&user("ada"), cancel(only(id, 1)));
    let node = cluster.node_id("node2");
    let silent = Command::NodeSilent { node, reason: "silent".into() };
    let events = cluster.ok(&muster_schemas::event::Actor::Ledger, silent);
    assert!(events.iter().any(|event| matches!(event, Event::ComponentEnded { .. })), "{events:?}");
    assert!(cluster.state.run(run).is_some_and(|run| run.stopping.is_none()));
    assert_eq!(cluster.outcome(id), None);
    cluster.assert_replays();
}

/// A component can be ended without grace, and as finished, like a job.
#[test]
fn a_component_can_be_ended_at_once_and_as_finished() {
    let (mut cluster, id, run) = running();
    let end = |is_finished, is_forced| Command::EndJobs {
        jobs: only(id, 1),
        ending: JobEnding { is_finished, is_forced, ..JobEnding::default() },
    };
    cluster.ok(&user("ada"), end(false, false));
    cluster.ok(&user("ada"), end(true, true));
    let stop = OrderSeed::Stop { part: PartId::new(run, 0), reason: StopReason::FinishedAtOnce, grace_seconds: 0 };
    assert_eq!(orders(&cluster), [("node2".to_owned(), stop)]);
    // Nothing is faster than at once.
    assert_eq!(cluster.ok(&user("ada"), end(false, false)), []);
    killed(&mut cluster, run, "node2");
    let job = cluster.state.job(id).expect("it runs");
    assert_eq!(job.component_ended(1), Some((cluster.now, Outcome::DeclaredFinished)));
}

/// SL-C-36: the walltime of a component is checked against its own queue and its own previous value, not those of the
/// others.
#[test]
fn the_walltime_of_a_component_is_a_matter_of_its_own() {
    let mut short = queue("other");
    short.max_walltime_seconds = Some(3600);
    let mut cluster = Cluster::with(ClusterConfig { queues: vec![queue("default"), short], ..config() });
    let mut spec = job(1, 2);
    spec.components.push(spec.components[0].clone());
    spec.components[0].queue = Some("other".into());
    for (component, seconds) in spec.components.iter_mut().zip([600, 7200]) {
        component.alternatives[0].walltime_seconds = Some(seconds);
    }
    let id = cluster.submit("ada", spec);
    let to = |jobs, seconds| Command::Modify {
        jobs,
        change: JobChange { walltime_seconds: Some(seconds), ..JobChange::default() },
    };
    cluster.ok(&user("ada"), to(only(id, 1), 10_800));
    cluster.refused(&user("ada"), to(only(id, 0), 10_800), RefusalCode::LimitReached, "queue `other`");
    let components = NODES[..2].iter().flat_map(|node| cluster.placement(&[node], 2).components).collect();
    let run = cluster.state.next_run();
    let start = Start { job: id, placement: Placement { components } };
    cluster.ok(&muster_schemas::event::Actor::Planner, commit(vec![start]));
    NODES[..2]
        .iter()
        .for_each(|node| drop(cluster.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, 0) })));
    cluster.ok(&user("ada"), to(only(id, 1), 1800));
    cluster.refused(&user("ada"), to(only(id, 0), 1800), RefusalCode::PermissionDenied, "lengthen");
    cluster.assert_replays();
}

#[test]
fn a_signal_stops_one_component_or_all() {
    let (mut cluster, id, run) = running();
    let stopped = |cluster: &Cluster| cluster.state.run(run).expect("it runs").stopped.to_string();
    let (ada, step) = (user("ada"), StepId(1));
    let groups = NODES.iter().zip(0..).map(|(node, number)| group(number, number, node)).collect();
    let spec = Box::new(StepSpec { groups, ..StepSpec::default() });
    cluster.ok(&ada, Command::LaunchStep { job: id, spec });
    cluster.ok(&ada, Command::SignalStep { job: id, step, component: Some(2), signal: 19 });
    assert_eq!(stopped(&cluster), "2");
    cluster.ok(&ada, Command::Signal { jobs: ids(&[id]), signal: 19 });
    assert_eq!(stopped(&cluster), "0-2");
    cluster.ok(&ada, Command::SignalStep { job: id, step, component: Some(1), signal: 18 });
    assert_eq!(stopped(&cluster), "0,2");
}
