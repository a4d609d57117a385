//! Runs of lists of tasks that grow, shrink and make way for others.

use crate::{lists::*, support::*, written::hold_order};
use muster_domain::{
    orders::{OrderSeed, follow_up, reconcile},
    tasks::Elastic,
};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, StepId,
    command::{Command, JobSelection, RefusalCode, RefusedStart, Reply, Start},
    event::{Actor, EndCause, Event, JobChange, NodeExit, ShrinkReason, StopReason},
    job::{ExitStatus, JobState, Outcome},
    plan::{ProposedPlan, ProposedPreemption, StartFacts},
    resources::Placement,
    scheduling::{Preemption, SchedulingSettings},
    tasks::{SizeUnit, TaskKind, TaskList, TaskSpec},
};

const OK: ExitStatus = ExitStatus::Code(0);

fn orders_of_last(cluster: &Cluster, is: fn(&Event) -> bool) -> Vec<(NodeId, OrderSeed)> {
    let record = cluster.log.iter().rev().find(|record| is(&record.event)).expect("it has happened");
    follow_up(&cluster.state, record)
}

fn held(cluster: &Cluster, run: RunId) -> Vec<(NodeId, u64)> {
    cluster.state.run(run).unwrap().placement.shares().map(|share| (share.node, share.cores.len())).collect()
}

fn wanted_and_idle(cluster: &Cluster, job: JobId) -> (u32, u32) {
    let Elastic { wanted, idle, .. } = cluster.state.elastic(job).unwrap();
    (wanted, idle)
}

/// HPC-S-09, HPC-S-10
#[test]
fn a_run_wants_what_its_tasks_can_use_and_can_spare_what_they_never_will() {
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(2, 6, vec![sweep(5)]), &["node1"], 2);
    let elastic = cluster.state.elastic(job).unwrap();
    let expected = Elastic { unit: SizeUnit::Core, min: 2, max: 6, current: 2, wanted: 3, idle: 0, preemptable: true };
    assert_eq!(elastic, expected);
    for step in 1..=3 {
        cluster.end_step(run, StepId(step), OK);
    }
    assert_eq!(wanted_and_idle(&cluster, job), (0, 0), "two of them run");
    cluster.end_step(run, StepId(4), OK);
    assert_eq!(wanted_and_idle(&cluster, job), (0, 0), "its least is two");
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(1, 6, vec![basic(), basic(), behind(&[0])]), &["node1"], 4);
    assert_eq!(wanted_and_idle(&cluster, job), (0, 1), "the third will need a core");
    cluster.end_step(run, StepId(2), OK);
    assert_eq!(wanted_and_idle(&cluster, job), (0, 2));
    let unused = cluster.state.unused(job, 2);
    assert_eq!(unused.components[0].shares[0].cores.to_string(), "2-3", "its highest cores");
}

/// HPC-J-13, HPC-S-09: a changed request of a queued list of tasks sets the size at which it runs and grows.
#[test]
fn the_size_of_a_list_of_tasks_is_what_it_was_last_changed_to_ask_for() {
    let mut cluster = Cluster::new();
    let job = cluster.submit_list(&list(1, 2, vec![sweep(40)]));
    let change_to = |cluster: &mut Cluster, size: TaskList| {
        let alternatives = spec_of(&size).components[0].alternatives.clone();
        let change = JobChange { alternatives: Some(alternatives), ..JobChange::default() };
        let jobs = JobSelection::Ids(vec![job]);
        cluster.ok(&user("ada"), Command::Modify { jobs, change });
        let book = cluster.state.job(job).and_then(|job| job.tasks.as_deref()).expect("a list of tasks");
        assert_eq!((book.unit, book.min, book.max), (size.unit, size.min, size.max));
    };
    change_to(&mut cluster, TaskList { unit: SizeUnit::Node, ..list(2, 3, Vec::new()) });
    change_to(&mut cluster, TaskList { unit: SizeUnit::Socket, ..list(1, 3, Vec::new()) });
    change_to(&mut cluster, list(2, 7, Vec::new()));
    cluster.start(job, &["node1"], 2);
    cluster.settle();
    let Elastic { unit, min, max, wanted, .. } = cluster.state.elastic(job).unwrap();
    assert_eq!((unit, min, max, wanted), (SizeUnit::Core, 2, 7, 5));
    cluster.assert_replays();
}

/// HPC-S-09
#[test]
fn a_run_grows_on_its_node_and_to_others() {
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(1, 6, vec![sweep(9)]), &["node1"], 2);
    let (node1, node2) = (cluster.node_id("node1"), cluster.node_id("node2"));
    let events = cluster.grow(job, cluster.placement(&["node1"], 1)).unwrap();
    assert_eq!(begun(&events).len(), 1, "at once: the node is there");
    let grown = |event: &Event| matches!(event, Event::RunGrown { .. });
    assert_eq!(orders_of_last(&cluster, grown), [(node1, OrderSeed::Resize { part: PartId::new(run, 0) })]);
    let events = cluster.grow(job, cluster.placement(&["node2"], 2)).unwrap();
    assert!(begun(&events).is_empty(), "the part has not started");
    let submitted_sequence = cluster.state.job(job).unwrap().submitted_sequence;
    let hold = OrderSeed::Hold { part: PartId::new(run, 0), submitted_sequence };
    assert_eq!(orders_of_last(&cluster, grown), [(node2, hold)]);
    assert_eq!(reconcile(&cluster.state, node2, &[]), [hold], "repeated until it has started");
    cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(begun(&cluster.settle()).len(), 2);
    assert_eq!(held(&cluster, run), [(node1, 3), (node2, 2)]);
    assert!(
        reconcile(&cluster.state, node1, &[PartId::new(run, 0)])
            .contains(&OrderSeed::Resize { part: PartId::new(run, 0) }),
        "nobody confirms it"
    );
    let problem = cluster.grow(job, cluster.placement(&["node3"], 2)).unwrap_err();
    assert!(problem.contains('6'), "{problem}");
    cluster.assert_replays();
}

/// HPC-J-11
#[test]
fn the_walltime_of_a_run_counts_from_its_start_on_nodes_that_join_later_too() {
    let mut cluster = Cluster::new();
    let list = list(1, 4, vec![sweep(9)]);
    let mut spec = spec_of(&list);
    spec.components[0].alternatives[0].walltime_seconds = Some(100);
    let job = cluster.submit_list_as("ada", spec.clone(), &list);
    let run = cluster.start(job, &["node1"], 1);
    cluster.settle();
    cluster.pass(30);
    cluster.grow(job, cluster.placement(&["node2"], 2)).unwrap();
    let walltime_on = |cluster: &Cluster, node: &str| {
        hold_order(&cluster.state, PartId::new(run, 0), cluster.node_id(node), &spec).unwrap().walltime_seconds
    };
    assert_eq!((walltime_on(&cluster, "node1"), walltime_on(&cluster, "node2")), (Some(100), Some(70)));
    let change = JobChange { walltime_seconds: Some(50), ..JobChange::default() };
    cluster.ok(&root(), Command::Modify { jobs: ids(&[job]), change });
    let orders = orders_of_last(&cluster, |event| matches!(event, Event::JobModified { .. }));
    let set = |seconds| OrderSeed::SetWalltime { part: PartId::new(run, 0), walltime_seconds: Some(seconds) };
    assert_eq!(orders, [(cluster.node_id("node1"), set(50)), (cluster.node_id("node2"), set(20))]);
}

/// HPC-J-22
#[test]
fn a_node_that_joins_by_growth_is_prepared() {
    let mut cluster = Cluster::new();
    let tasks = vec![task(TaskKind::NodePrep), sweep(9)];
    let (job, run, _) = cluster.start_list(&list(1, 4, tasks), &["node1"], 1);
    cluster.end_step(run, StepId(1), OK);
    cluster.grow(job, cluster.placement(&["node2"], 2)).unwrap();
    cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    let events = cluster.settle();
    assert_eq!(tasks_begun(&events), [0]);
    assert_eq!(tasks_begun(&cluster.end_step(run, begun(&events)[0].step, OK)), [1, 1]);
}

/// HPC-S-10
#[test]
fn a_run_gives_up_what_it_does_not_use_and_can_come_back() {
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(1, 8, vec![sweep(3)]), &["node1", "node2"], 2);
    let (node1, node2) = (cluster.node_id("node1"), cluster.node_id("node2"));
    let whole = cluster.part_of("node2", &[0, 1]);
    cluster.end_step(run, StepId(3), OK);
    let events = cluster.shrink(job, whole, ShrinkReason::Idle).unwrap();
    assert!(matches!(&events[..], [Event::RunShrinking { .. }, Event::RunShrunk { .. }]), "{events:?}");
    assert_eq!(held(&cluster, run), [(node1, 2)]);
    assert_eq!(cluster.state.node(node2).unwrap().free_cores.len(), 4);
    let stop = OrderSeed::Stop { part: PartId::new(run, 0), reason: StopReason::PeerEnded, grace_seconds: 0 };
    assert_eq!(orders_of_last(&cluster, |event| matches!(event, Event::RunShrunk { .. })), [(node2, stop)]);
    let too_early = cluster.grow(job, cluster.placement(&["node2"], 1)).unwrap_err();
    assert!(too_early.contains("has not ended"), "{too_early}");
    let end = NodeExit { status: None, started: None, ..exit(OK, EndCause::Itself, cluster.now) };
    let events = cluster.ok(&executor("node2"), Command::NodeEnded { part: PartId::new(run, 0), exit: end });
    assert!(matches!(&events[..], [Event::RunPartEnded { .. }]), "the run goes on: {events:?}");
    cluster.grow(job, cluster.placement(&["node2"], 1)).unwrap();
    cluster.ok(&executor("node2"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(held(&cluster, run), [(node1, 2), (node2, 1)]);
    cluster.assert_replays();
}

/// HPC-S-10
#[test]
fn no_task_starts_on_what_is_to_be_given_up_and_those_that_run_may_end() {
    let mut cluster = Cluster::new();
    let (job, run, events) = cluster.start_list(&list(1, 4, vec![sweep(9)]), &["node1"], 4);
    assert_eq!(begun(&events).len(), 4);
    let two = cluster.part_of("node1", &[2, 3]);
    let events = cluster.shrink(job, two.clone(), ShrinkReason::Rebalanced).unwrap();
    assert!(matches!(&events[..], [Event::RunShrinking { .. }]));
    assert_eq!(cluster.state.elastic(job).unwrap().current, 2);
    assert!(cluster.shrink(job, two, ShrinkReason::Rebalanced).is_err(), "one after the other");
    assert!(begun(&cluster.end_step(run, StepId(1), OK)).is_empty());
    let events = cluster.end_step(run, StepId(2), OK);
    assert!(events.iter().any(|event| matches!(event, Event::RunShrunk { .. })));
    assert_eq!(begun(&cluster.end_step(run, StepId(3), OK)).len(), 1, "it goes on with what is left");
    let all_but_none = cluster.part_of("node1", &[0, 1]);
    assert!(cluster.shrink(job, all_but_none, ShrinkReason::Idle).unwrap_err().contains("least"));
    let resize = orders_of_last(&cluster, |event| matches!(event, Event::RunShrunk { .. }));
    assert_eq!(resize, [(cluster.node_id("node1"), OrderSeed::Resize { part: PartId::new(run, 0) })]);
    cluster.assert_replays();
}

/// HPC-S-08, HPC-S-14: if tasks may be stopped, everything above the minimum of a run, and nothing else, goes to others
/// at once.
#[test]
fn tasks_are_stopped_for_the_share_of_others_above_the_least_of_their_job() {
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(2, 4, vec![sweep(9)]), &["node1"], 4);
    let three = cluster.part_of("node1", &[1, 2, 3]);
    assert!(cluster.shrink(job, three, ShrinkReason::TasksRebalanced).unwrap_err().contains("least"));
    let two = cluster.part_of("node1", &[2, 3]);
    cluster.shrink(job, two.clone(), ShrinkReason::TasksRebalanced).unwrap();
    assert_eq!(cluster.state.rebalanced(), Some(cluster.now));
    let node = cluster.node_id("node1");
    let stop = |step| (node, OrderSeed::StopStep { part: PartId::new(run, 0), step: StepId(step), grace_seconds: 10 });
    let shrinking = |event: &Event| matches!(event, Event::RunShrinking { .. });
    assert_eq!(orders_of_last(&cluster, shrinking), [stop(3), stop(4)]);
    for step in [3, 4] {
        let killed = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
        cluster.end_step_with(run, StepId(step), killed);
    }
    assert_eq!(held(&cluster, run), [(node, 2)]);
    assert_eq!(begun(&cluster.end_step(run, StepId(1), OK))[0].instance.instance, 2, "nothing of it is lost");
    let mut cluster = Cluster::new();
    let firm = TaskList { preemptable: false, ..list(2, 4, vec![sweep(9)]) };
    let (job, ..) = cluster.start_list(&firm, &["node1"], 4);
    assert!(cluster.shrink(job, two, ShrinkReason::TasksRebalanced).is_err(), "it makes way for nobody");
    cluster.assert_replays();
}

/// HPC-S-14
#[test]
fn preempted_tasks_are_stopped_and_run_again_unless_they_must_not() {
    let mut cluster = Cluster::new();
    let once = TaskSpec { rerunnable: false, ..basic() };
    let (job, run, _) = cluster.start_list(&list(1, 4, vec![basic(), sweep(1), once]), &["node1"], 3);
    let one = cluster.part_of("node1", &[1, 2]);
    cluster.shrink(job, one, ShrinkReason::TasksPreempted).unwrap();
    let node = cluster.node_id("node1");
    let stop = |step| (node, OrderSeed::StopStep { part: PartId::new(run, 0), step: StepId(step), grace_seconds: 10 });
    assert_eq!(
        orders_of_last(&cluster, |event| matches!(event, Event::RunShrinking { .. })),
        [stop(2), stop(3)],
        "those that started last"
    );
    let killed = |cluster: &Cluster| exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
    cluster.end_step_with(run, StepId(2), killed(&cluster));
    let events = cluster.end_step_with(run, StepId(3), killed(&cluster));
    assert!(events.iter().any(|event| matches!(event, Event::RunShrunk { .. })), "{events:?}");
    let events = cluster.end_step(run, StepId(1), OK);
    assert_eq!(tasks_begun(&events), [1], "the sweep again, the other has failed");
    cluster.end_step(run, StepId(4), OK);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Failed(ExitStatus::Signal(15))));
    cluster.assert_replays();
}

/// A job of higher priority asks for resources of a list of tasks on node1.
fn preempted(settings: SchedulingSettings, list: &TaskList, claim: &[u32]) -> (Cluster, JobId, RunId, JobId) {
    let mut cluster = Cluster::new();
    cluster.in_queued_mode(settings);
    let (victim, run, _) = cluster.start_list(list, &["node1"], 4);
    let gains = cluster.submit("eve", job(1, 2));
    assert_eq!(claimed(&mut cluster, victim, gains, claim), [], "it is accepted");
    cluster.settle();
    (cluster, victim, run, gains)
}

/// A job that gets a higher priority asks for resources of a run on node1. Returns what is refused.
fn claimed(cluster: &mut Cluster, victim: JobId, gains: JobId, claim: &[u32]) -> Vec<RefusedStart> {
    let higher = JobChange { priority: Some(10), ..JobChange::default() };
    cluster.ok(&root(), Command::Modify { jobs: JobSelection::Ids(vec![gains]), change: higher });
    cluster.pass(5);
    let claims: Vec<Placement> = vec![cluster.part_of("node1", claim)];
    let preemption = ProposedPreemption { for_job: gains, victims: vec![victim], claims, index: 1, count: 2 };
    let plan = ProposedPlan { preemptions: vec![preemption], ..ProposedPlan::default() };
    match cluster.run(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }) {
        Ok((_, Reply::Planned(refused))) => refused,
        other => panic!("plan: {other:?}"),
    }
}

/// HPC-S-01, HPC-S-12: without a mode, lists of tasks make way for lists of tasks only.
#[test]
fn without_a_mode_lists_make_way_for_lists_alone() {
    for is_list in [true, false] {
        let mut cluster = Cluster::new();
        let (victim, run, _) = cluster.start_list(&list(2, 4, vec![sweep(6)]), &["node1"], 4);
        let gains = match is_list {
            true => cluster.submit_list(&list(1, 2, vec![sweep(2)])),
            false => cluster.submit("eve", job(1, 2)),
        };
        let refused: Vec<String> =
            claimed(&mut cluster, victim, gains, &[2, 3]).into_iter().map(|refused| refused.reason).collect();
        let expected: &[&str] = if is_list { &[] } else { &["jobs do not make way for it here"] };
        assert_eq!(refused, expected);
        cluster.settle();
        for step in [1, 2] {
            cluster.end_step(run, StepId(step), OK);
        }
        let kept = if is_list { 2 } else { 4 };
        assert_eq!(held(&cluster, run), [(cluster.node_id("node1"), kept)]);
    }
}

/// HPC-S-12, HPC-S-13, HPC-J-05
#[test]
fn graceful_preemption_below_the_least_lets_tasks_end_and_requeues() {
    let list = list(3, 4, vec![sweep(6), task(TaskKind::NodeRelease)]);
    let (mut cluster, victim, run, _) = preempted(SchedulingSettings::default(), &list, &[2, 3]);
    let before = cluster.state.job(victim).unwrap().submitted;
    assert_eq!(cluster.state.job_state(cluster.state.job(victim).unwrap()), JobState::Finishing);
    for step in 1..=3 {
        assert!(begun(&cluster.end_step(run, StepId(step), OK)).is_empty(), "nothing new starts");
    }
    let events = cluster.end_step(run, StepId(4), OK);
    assert_eq!(tasks_begun(&events), [1], "its node is released");
    cluster.end_step(run, begun(&events)[0].step, OK);
    cluster.end_parts(run);
    assert_eq!(cluster.waiting().first(), Some(&victim), "first among its equals");
    let job = cluster.state.job(victim).unwrap();
    assert_eq!(job.submitted, before);
    assert_eq!(job.last_run.as_ref().unwrap().outcome, Outcome::Preempted);
    let again = cluster.start(victim, &["node2"], 4);
    let events = cluster.settle();
    assert_eq!(begun(&events).iter().map(|began| began.instance.instance).collect::<Vec<_>>(), [4, 5]);
    assert!(cluster.state.run(again).is_some());
    cluster.assert_replays();
}

/// HPC-S-12
#[test]
fn graceful_preemption_above_the_least_shrinks() {
    let list = list(2, 4, vec![sweep(6)]);
    let (mut cluster, victim, run, _) = preempted(SchedulingSettings::default(), &list, &[2, 3]);
    cluster.end_step(run, StepId(1), OK);
    cluster.end_step(run, StepId(2), OK);
    assert_eq!(held(&cluster, run), [(cluster.node_id("node1"), 2)]);
    assert_eq!(cluster.state.job_state(cluster.state.job(victim).unwrap()), JobState::Running);
    assert_eq!(begun(&cluster.end_step(run, StepId(3), OK)).len(), 1);
}

/// HPC-S-12, HPC-S-13
#[test]
fn immediate_preemption_stops_without_release_and_requeues() {
    let settings = SchedulingSettings { preemption: Some(Preemption::Immediate), ..SchedulingSettings::default() };
    let list = list(1, 4, vec![sweep(6), task(TaskKind::NodeRelease)]);
    let (mut cluster, victim, run, _) = preempted(settings, &list, &[2, 3]);
    let stop = OrderSeed::Stop { part: PartId::new(run, 0), reason: StopReason::Preempted, grace_seconds: 10 };
    assert_eq!(reconcile(&cluster.state, cluster.node_id("node1"), &[PartId::new(run, 0)]), [stop]);
    cluster.end_parts(run);
    let run = cluster.start(victim, &["node2"], 4);
    let events = cluster.settle();
    assert_eq!(begun(&events).iter().map(|began| began.instance.instance).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(cluster.state.run(run).is_some());
    cluster.assert_replays();
}

/// HPC-S-13, HPC-S-12: a node may report the ends of tasks before the end of its part of the run.
#[test]
fn tasks_that_were_stopped_with_their_run_have_not_failed() {
    let settings = SchedulingSettings { preemption: Some(Preemption::Immediate), ..SchedulingSettings::default() };
    let list =
        TaskList { fail_on_task_failure: true, fail_dependents: true, ..list(1, 4, vec![sweep(6), behind(&[0])]) };
    let (mut cluster, victim, run, _) = preempted(settings, &list, &[2, 3]);
    cluster.end_step(run, StepId(1), OK);
    for step in 2..=4 {
        let killed = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
        cluster.end_step_with(run, StepId(step), killed);
    }
    cluster.end_parts(run);
    assert!(cluster.is_waiting(victim));
    let book = cluster.state.job(victim).and_then(|job| job.tasks.as_deref()).expect("a list of tasks");
    assert_eq!((book.tasks[0].finished, book.tasks[0].failed.len(), &book.failure), (1, 0, &None));
    let again = cluster.start(victim, &["node2"], 4);
    let events = cluster.settle();
    assert_eq!(begun(&events).iter().map(|began| began.instance.instance).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for step in 1..=6 {
        cluster.end_step(again, StepId(step), OK);
    }
    cluster.end_parts(again);
    assert_eq!(cluster.outcome(victim), Some(Outcome::Completed));
    cluster.assert_replays();
}

/// HPC-J-22, HPC-S-13: a preparation that was stopped with its run says nothing about the node.
#[test]
fn a_preparation_that_was_stopped_with_its_run_has_not_failed() {
    let settings = SchedulingSettings { preemption: Some(Preemption::Immediate), ..SchedulingSettings::default() };
    let (mut cluster, victim, run, _) =
        preempted(settings, &list(1, 4, vec![task(TaskKind::NodePrep), basic()]), &[2, 3]);
    let killed = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
    cluster.end_step_with(run, StepId(1), killed);
    cluster.end_parts(run);
    assert!(cluster.is_waiting(victim), "its only node was being prepared");
    let book = cluster.state.job(victim).and_then(|job| job.tasks.as_deref()).expect("a list of tasks");
    assert_eq!((book.unusable.len(), &book.failure), (0, &None));
}

/// HPC-S-14
#[test]
fn immediate_preemption_of_tasks_stops_only_those_on_what_is_claimed() {
    let settings = SchedulingSettings {
        preemption: Some(Preemption::Immediate),
        task_preemption: Some(true),
        ..SchedulingSettings::default()
    };
    let (mut cluster, victim, run, _) = preempted(settings, &list(1, 4, vec![sweep(6)]), &[2, 3]);
    for step in [3, 4] {
        let killed = exit(ExitStatus::Signal(15), EndCause::Killed, cluster.now);
        cluster.end_step_with(run, StepId(step), killed);
    }
    assert_eq!(held(&cluster, run), [(cluster.node_id("node1"), 2)]);
    assert_eq!(cluster.state.job_state(cluster.state.job(victim).unwrap()), JobState::Running);
    let events = cluster.end_step(run, StepId(1), OK);
    assert_eq!(begun(&events)[0].instance.instance, 2, "what was stopped runs again first");
}

/// HPC-B-12
#[test]
fn a_backfilled_job_keeps_its_walltime_while_it_runs() {
    let mut cluster = Cluster::new();
    let list = list(1, 4, vec![sweep(6)]);
    let mut spec = spec_of(&list);
    spec.components[0].alternatives[0].walltime_seconds = Some(600);
    let job = cluster.submit_list_as("ada", spec, &list);
    let start = Start { job, placement: cluster.placement(&["node1"], 1) };
    let facts = StartFacts { job, index: 2, backfill: true, count: 1, latest_start: None };
    let plan = ProposedPlan { starts: vec![start], start_facts: vec![facts], ..ProposedPlan::default() };
    let run = cluster.state.next_run();
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    cluster.settle();
    let change = JobChange { walltime_seconds: Some(60), ..JobChange::default() };
    let modify = Command::Modify { jobs: ids(&[job]), change };
    cluster.refused(&root(), modify, RefusalCode::Conflict, "[BackfillRunTimeFixed]");
    assert_eq!(cluster.state.elastic(job).unwrap().wanted, 0);
    let problem = cluster.grow(job, cluster.placement(&["node1"], 1)).unwrap_err();
    assert!(problem.contains("does not grow"), "{problem}");
}

#[test]
fn a_list_that_waits_can_get_another_size() {
    let mut cluster = Cluster::new();
    let job = cluster.submit_list(&list(1, 2, vec![sweep(6)]));
    let alternatives = Some(spec_of(&list(2, 3, vec![])).components[0].alternatives.clone());
    let change = JobChange { alternatives, ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[job]), change });
    let tasks = cluster.state.job(job).unwrap().tasks.clone().unwrap();
    assert_eq!((tasks.min, tasks.max), (2, 3));
}

/// HPC-T-10
#[test]
fn the_priority_of_a_running_job_can_be_changed() {
    let mut cluster = Cluster::new();
    let (job, _, _) = cluster.start_list(&list(1, 2, vec![sweep(6)]), &["node1"], 2);
    let change = JobChange { priority: Some(3000), ..JobChange::default() };
    cluster.ok(&root(), Command::Modify { jobs: ids(&[job]), change });
    assert_eq!(cluster.state.job(job).unwrap().lead().priority, 3000);
}
