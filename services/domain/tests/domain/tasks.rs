//! Lists of tasks: what starts when, and how the job ends.

use crate::{lists::*, support::*, written::task_order};
use muster_domain::{
    State,
    orders::{OrderSeed, follow_up, reconcile},
};
use muster_schemas::{
    PartId, StepId,
    command::{Command, RefusalCode},
    event::{EndCause, Event, NodeExit, StopReason},
    job::{ExitStatus, Outcome, Program},
    tasks::{SizeUnit, TaskInstance, TaskKind, TaskList, TaskSpec},
};

const OK: ExitStatus = ExitStatus::Code(0);

fn steps(events: &[Event]) -> Vec<u32> {
    begun(events).iter().map(|began| began.step.0).collect()
}

fn stops(events: &[Event]) -> Vec<StopReason> {
    let of = |event: &Event| match event {
        Event::RunStopping { reason, .. } => Some(*reason),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

/// HPC-J-21, HPC-J-22
#[test]
fn tasks_run_as_far_as_there_is_room_and_the_last_one_ends_the_job() {
    let mut cluster = Cluster::new();
    let (job, run, events) = cluster.start_list(&list(1, 2, vec![basic(), basic(), basic()]), &["node1"], 2);
    assert_eq!(tasks_begun(&events), [0, 1], "there is room for two");
    let events = cluster.end_step(run, StepId(1), OK);
    assert_eq!(tasks_begun(&events), [2]);
    assert!(stops(&cluster.end_step(run, StepId(2), OK)).is_empty());
    assert_eq!(stops(&cluster.end_step(run, StepId(3), OK)), [StopReason::TasksEnded]);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Completed));
    cluster.assert_replays();
}

/// HPC-J-22
#[test]
fn a_sweep_of_a_million_is_kept_as_small_as_one_of_two() {
    let mut cluster = Cluster::new();
    let (job, run, events) = cluster.start_list(&list(1, 4, vec![sweep(1_000_000)]), &["node1"], 4);
    let instances: Vec<u32> = begun(&events).iter().map(|began| began.instance.instance).collect();
    assert_eq!(instances, [0, 1, 2, 3]);
    for step in 1..=100 {
        cluster.end_step(run, StepId(step), if step % 10 == 0 { ExitStatus::Code(1) } else { OK });
    }
    let task = &cluster.state.job(job).unwrap().tasks.as_ref().unwrap().tasks[0];
    assert_eq!((task.finished, task.failed.len(), task.running, task.waiting()), (90, 10, 4, 1_000_000 - 104));
    let bytes = cluster.state.to_snapshot_bytes().unwrap().len();
    assert!(bytes < 10_000, "{bytes} bytes for the state");
    cluster.assert_replays();
}

/// HPC-J-22
#[test]
fn a_sweep_fills_its_value_into_command_and_files() {
    let mut cluster = Cluster::new();
    let mut swept = task(TaskKind::Sweep { start: 7, increment: 5, steps: 2 });
    let program = |words: &[&str]| Program::Tasks { argv: words.iter().map(|word| (*word).to_owned()).collect() };
    swept.launch.program = program(&["run", "-n*", "in***.dat", "*/*"]);
    swept.launch.stdout = Some("out**".into());
    swept.environment.insert("A".into(), "task's*".into());
    swept.working_directory = Some("/work/*".into());
    swept.run_time_seconds = Some(60);
    let list = list(1, 4, vec![swept]);
    let mut spec = spec_of(&list);
    spec.environment = [("A".to_owned(), "job's".to_owned()), ("B".to_owned(), "job's".to_owned())].into();
    let job = cluster.submit_list_as("ada", spec.clone(), &list);
    let run = cluster.start(job, &["node1"], 2);
    cluster.settle();
    let node = cluster.node_id("node1");
    let order = task_order(&cluster.state, PartId::new(run, 0), node, StepId(2), &spec, &list).unwrap();
    assert_eq!(order.launch.program, program(&["run", "-n12", "in012.dat", "12/12"]));
    assert_eq!(order.launch.stdout.as_deref(), Some("out12"));
    assert_eq!(order.working_directory, "/work/12");
    assert_eq!((order.step, order.total_tasks, order.walltime_seconds), (StepId(2), 1, Some(60)));
    let variable = |name: &str| order.environment.get(name).map(String::as_str);
    assert_eq!((variable("A"), variable("B")), (Some("task's*"), Some("job's")));
    assert_eq!((variable("MUSTER_TASK_NUMBER"), variable("MUSTER_TASK_INSTANCE")), (Some("1"), Some("12")));
    assert_eq!(variable("MUSTER_TASK_CORES"), Some("node1:1"));
}

#[test]
fn tasks_wait_for_those_that_they_come_after() {
    let mut cluster = Cluster::new();
    let tasks = vec![sweep(2), basic(), behind(&[0, 1])];
    let (_, run, events) = cluster.start_list(&list(1, 4, tasks), &["node1"], 4);
    assert_eq!(tasks_begun(&events), [0, 0, 1]);
    assert!(begun(&cluster.end_step(run, StepId(1), OK)).is_empty());
    assert!(begun(&cluster.end_step(run, StepId(3), OK)).is_empty());
    let events = cluster.end_step(run, StepId(2), ExitStatus::Code(1));
    assert_eq!(tasks_begun(&events), [2], "in whatever way they ended");
}

#[test]
fn tasks_that_wait_for_one_that_failed_fail_if_the_job_wants_it_so() {
    let mut cluster = Cluster::new();
    let tasks = vec![basic(), behind(&[0]), behind(&[1]), basic()];
    let list = TaskList { fail_dependents: true, ..list(1, 1, tasks) };
    let (job, run, events) = cluster.start_list(&list, &["node1"], 1);
    assert_eq!(tasks_begun(&events), [0]);
    let events = cluster.end_step(run, StepId(1), ExitStatus::Code(9));
    assert_eq!(tasks_begun(&events), [3], "the two that depend on it never run");
    assert_eq!(stops(&cluster.end_step(run, StepId(2), OK)), [StopReason::TasksEnded]);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Failed(ExitStatus::Code(9))));
    cluster.assert_replays();
}

/// HPC-J-21
#[test]
fn the_first_failed_task_ends_the_job_only_if_it_wants_it_so() {
    for fail_on_task_failure in [true, false] {
        let mut cluster = Cluster::new();
        let list = TaskList { fail_on_task_failure, ..list(1, 1, vec![basic(), basic()]) };
        let (job, run, _) = cluster.start_list(&list, &["node1"], 1);
        let events = cluster.end_step(run, StepId(1), ExitStatus::Code(3));
        assert_eq!(tasks_begun(&events), if fail_on_task_failure { vec![] } else { vec![1] });
        if !fail_on_task_failure {
            cluster.end_step(run, StepId(2), OK);
        }
        cluster.end_parts(run);
        assert_eq!(cluster.outcome(job), Some(Outcome::Failed(ExitStatus::Code(3))));
        cluster.assert_replays();
    }
}

#[test]
fn exit_codes_that_are_valid_are_no_failure() {
    let mut cluster = Cluster::new();
    let lenient = TaskSpec { valid_exit_codes: vec![(3, 5), (9, 9)], ..basic() };
    let (job, run, _) = cluster.start_list(&list(1, 3, vec![lenient.clone(), lenient]), &["node1"], 2);
    cluster.end_step(run, StepId(1), ExitStatus::Code(4));
    cluster.end_step(run, StepId(2), ExitStatus::Code(9));
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Completed));
}

#[test]
fn a_task_that_cannot_be_launched_says_why() {
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(1, 1, vec![basic()]), &["node1"], 1);
    let mut exit = exit(OK, EndCause::LaunchFailed("no such file".into()), cluster.now);
    exit.status = None;
    cluster.end_step_with(run, StepId(1), exit);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::LaunchFailed("task 1: no such file".into())));
}

/// HPC-J-22
#[test]
fn a_node_is_prepared_before_and_released_after_all_other_tasks_there() {
    let mut cluster = Cluster::new();
    let tasks = vec![task(TaskKind::NodeRelease), basic(), task(TaskKind::NodePrep), basic(), basic()];
    let (job, run, events) = cluster.start_list(&list(1, 4, tasks), &["node1", "node2"], 2);
    assert_eq!(tasks_begun(&events), [2, 2], "on both nodes");
    let events = cluster.end_step(run, StepId(1), OK);
    let node1 = cluster.node_id("node1");
    assert_eq!(tasks_begun(&events), [1, 3]);
    assert!(begun(&events).iter().all(|began| began.cores == [(node1, 1)]), "the other node is not prepared");
    assert_eq!(tasks_begun(&cluster.end_step(run, StepId(2), OK)), [4]);
    for step in [3, 4] {
        assert!(begun(&cluster.end_step(run, StepId(step), OK)).is_empty());
    }
    let events = cluster.end_step(run, StepId(5), OK);
    assert_eq!(tasks_begun(&events), [0, 0], "the last task has ended: both nodes are released");
    assert!(cluster.end_step(run, StepId(6), OK).iter().all(|event| !matches!(event, Event::RunStopping { .. })));
    assert_eq!(stops(&cluster.end_step(run, StepId(7), ExitStatus::Code(1))), [StopReason::TasksEnded]);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Completed), "a release that fails fails nothing");
    cluster.assert_replays();
}

/// HPC-J-22
#[test]
fn a_node_that_cannot_be_prepared_does_not_join() {
    let mut cluster = Cluster::new();
    let tasks = vec![task(TaskKind::NodePrep), basic(), basic(), basic()];
    let (job, run, _) = cluster.start_list(&list(1, 4, tasks.clone()), &["node1", "node2"], 2);
    let events = cluster.end_step(run, StepId(1), ExitStatus::Code(1));
    assert!(begun(&events).is_empty());
    let (node1, node2) = (cluster.node_id("node1"), cluster.node_id("node2"));
    assert_eq!(cluster.state.run(run).unwrap().nodes().collect::<Vec<_>>(), [node2], "it is given back: {events:?}");
    assert_eq!(cluster.state.node(node1).unwrap().free_cores.len(), 4);
    let told = cluster.state.job(job).unwrap().filters.as_ref().map(|filtering| filtering.warnings.clone());
    assert!(told.is_some_and(|told| told.len() == 1 && told[0].text.contains("node1")), "the job is told");
    assert_eq!(cluster.state.job(job).unwrap().tasks.as_ref().unwrap().tasks[0].failed.len(), 1);
    let events = cluster.end_step(run, StepId(2), OK);
    assert_eq!(begun(&events).iter().map(|began| began.cores[0].0).collect::<Vec<_>>(), [node2, node2]);
    let end = NodeExit { status: None, started: None, ..exit(OK, EndCause::Itself, cluster.now) };
    cluster.ok(&executor("node1"), Command::NodeEnded { part: PartId::new(run, 0), exit: end });
    let again = cluster.grow(job, cluster.placement(&["node1"], 1)).unwrap_err();
    assert!(again.contains("node1 could not be prepared"), "{again}");
    cluster.assert_replays();
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(1, 4, tasks), &["node1"], 2);
    cluster.end_step(run, StepId(1), ExitStatus::Code(7));
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Failed(ExitStatus::Code(7))), "none joined");
    cluster.assert_replays();
}

/// HPC-J-22, HPC-S-13: a job that cannot continue without the nodes that could not be prepared waits for others, and
/// does not get them again until it is requeued on request.
#[test]
fn a_job_that_is_left_too_little_waits_for_other_nodes() {
    let mut cluster = Cluster::new();
    let wide = TaskSpec { min: 4, max: 4, ..basic() };
    let list = list(4, 4, vec![task(TaskKind::NodePrep), wide]);
    let (job, run, _) = cluster.start_list(&list, &["node1", "node2"], 2);
    cluster.end_step(run, StepId(2), ExitStatus::Code(1));
    assert_eq!(stops(&cluster.end_step(run, StepId(1), OK)), [StopReason::Preempted]);
    cluster.end_parts(run);
    assert!(cluster.is_waiting(job));
    let refused = cluster.refused_on(job, &["node2"], 4);
    assert!(refused.contains("node2 could not be prepared"), "{refused}");
    let run = cluster.start(job, &["node3"], 4);
    cluster.settle();
    cluster.end_step(run, StepId(1), OK);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[job]), hold: false, delay_seconds: 0 });
    cluster.end_parts(run);
    cluster.start(job, &["node2"], 4);
    cluster.assert_replays();
}

/// HPC-J-22: a job that can never run without the nodes that could not be prepared for it does not wait forever.
#[test]
fn a_job_that_too_few_nodes_could_be_prepared_for_has_failed() {
    let mut cluster = Cluster::new();
    let wide = TaskSpec { min: 10, max: 10, ..basic() };
    let list = list(10, 12, vec![task(TaskKind::NodePrep), wide]);
    let (job, run, _) = cluster.start_list(&list, &["node1", "node2", "node3"], 4);
    cluster.end_step(run, StepId(2), ExitStatus::Code(1));
    cluster.end_step(run, StepId(1), OK);
    assert_eq!(stops(&cluster.end_step(run, StepId(3), OK)), [StopReason::Preempted]);
    cluster.end_parts(run);
    let Some(Outcome::LaunchFailed(why)) = cluster.outcome(job) else { panic!("it waits for nodes that never come") };
    assert!(why.starts_with("node2 could not be prepared for it"), "{why}");
    cluster.assert_replays();
}

/// HPC-J-22
#[test]
fn a_service_runs_on_all_and_is_started_again_but_not_without_a_pause() {
    let mut cluster = Cluster::new();
    let (_, run, events) = cluster.start_list(&list(2, 2, vec![task(TaskKind::Service)]), &["node1"], 2);
    assert_eq!(tasks_begun(&events), [0, 0]);
    assert!(begun(&cluster.end_step(run, StepId(1), OK)).is_empty(), "it has just been started");
    assert_eq!(cluster.state.next_timer(), Some(cluster.now.plus_seconds(1)));
    cluster.pass(1);
    assert_eq!(steps(&cluster.settle()), [3]);
    cluster.pass(60);
    let events = cluster.end_step(run, StepId(2), ExitStatus::Code(1));
    assert_eq!(steps(&events), [4], "at once, and it has not failed");
    assert!(stops(&events).is_empty());
    cluster.assert_replays();
}

/// HPC-J-20
#[test]
fn a_job_until_cancelled_keeps_its_resources_without_tasks() {
    let mut cluster = Cluster::new();
    let list = TaskList { until_cancelled: true, ..list(1, 2, vec![basic()]) };
    let (job, run, _) = cluster.start_list(&list, &["node1"], 2);
    assert!(stops(&cluster.end_step(run, StepId(1), OK)).is_empty());
    assert_eq!(cluster.state.elastic(job).unwrap().idle, 0);
    assert_eq!(cluster.state.next_timer(), None);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[job]) });
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Cancelled));
}

/// HPC-J-12
#[test]
fn tasks_make_room_for_the_release_of_nodes_within_the_walltime() {
    let mut cluster = Cluster::new();
    let list = list(1, 2, vec![task(TaskKind::NodeRelease), basic()]);
    let mut spec = spec_of(&list);
    spec.components[0].alternatives[0].walltime_seconds = Some(100);
    let job = cluster.submit_list_as("ada", spec.clone(), &list);
    let run = cluster.start(job, &["node1"], 2);
    cluster.settle();
    assert_eq!(cluster.state.next_timer(), Some(cluster.now.plus_seconds(90)), "10 s are for the release");
    cluster.pass(90);
    let events = cluster.settle();
    assert!(matches!(&events[..], [Event::TasksStopping { reason: StopReason::Walltime, .. }]), "{events:?}");
    let orders = follow_up(&cluster.state, cluster.log.last().unwrap());
    let node = cluster.node_id("node1");
    assert_eq!(orders, [(node, OrderSeed::StopStep { part: PartId::new(run, 0), step: StepId(1), grace_seconds: 5 })]);
    let events = cluster.end_step(run, StepId(1), ExitStatus::Signal(15));
    assert_eq!(tasks_begun(&events), [0]);
    let order = task_order(&cluster.state, PartId::new(run, 0), node, StepId(2), &spec, &list).unwrap();
    assert_eq!(order.walltime_seconds, Some(10), "the release is limited");
    cluster.end_step(run, StepId(2), OK);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::TimedOut));
    cluster.assert_replays();
}

#[test]
fn tasks_get_whole_nodes_sockets_or_cores_as_their_job_counts() {
    let mut nodes = config();
    nodes.nodes.iter_mut().for_each(|node| node.sockets = 2);
    let wide = |min, max| TaskSpec { min, max, ..basic() };
    let sizes = |unit, tasks: Vec<TaskSpec>| {
        let mut cluster = Cluster::with(nodes.clone());
        let list = TaskList { unit, min: 1, max: 12, tasks, ..TaskList::default() };
        let (_, _, events) = cluster.start_list(&list, &["node1", "node2"], 4);
        let of = |began: &Began| began.cores.iter().map(|(_, cores)| *cores).collect::<Vec<_>>();
        begun(&events).iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(sizes(SizeUnit::Node, vec![basic(), basic(), basic()]), [[4], [4]]);
    assert_eq!(sizes(SizeUnit::Node, vec![wide(2, 2)]), [[4, 4]]);
    assert_eq!(sizes(SizeUnit::Socket, vec![basic(), wide(2, 2)]), [vec![2], vec![4]]);
    assert_eq!(sizes(SizeUnit::Core, vec![wide(3, 3), wide(3, 3), wide(2, 2)]), [vec![3], vec![3], vec![1, 1]]);
    assert_eq!(sizes(SizeUnit::Core, vec![wide(1, 8)]), [[4, 4]], "as much as it can use");
    assert_eq!(sizes(SizeUnit::Core, vec![wide(1, 8), wide(1, 8)]), [[4], [4]], "shared with those that wait");
    assert_eq!(sizes(SizeUnit::Core, vec![wide(6, 6), wide(6, 6), basic()]), [[4, 2]], "in order");
    assert_eq!(sizes(SizeUnit::Core, vec![wide(9, 9), basic()]), [[1]], "one that needs growth holds up nobody");
}

/// HPC-C-06
#[test]
fn a_run_of_tasks_ends_with_release_unless_it_is_forced() {
    use muster_schemas::command::JobEnding;
    let end = |ending: JobEnding| {
        let mut cluster = Cluster::new();
        let (job, run, _) = cluster.start_list(&list(1, 2, vec![task(TaskKind::NodeRelease), basic()]), &["node1"], 1);
        cluster.ok(&user("ada"), Command::EndJobs { jobs: ids(&[job]), ending });
        cluster.settle();
        (cluster, job, run)
    };
    let (mut cluster, job, run) = end(JobEnding::default());
    let seeds = reconcile(&cluster.state, cluster.node_id("node1"), &[PartId::new(run, 0)]);
    assert_eq!(
        seeds,
        [OrderSeed::StopStep { part: PartId::new(run, 0), step: StepId(1), grace_seconds: 10 }],
        "repeated until it has ended"
    );
    assert_eq!(tasks_begun(&cluster.end_step(run, StepId(1), ExitStatus::Signal(15))), [0]);
    assert_eq!(stops(&cluster.end_step(run, StepId(2), OK)), [StopReason::Cancelled]);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Cancelled));

    let (mut cluster, job, run) = end(JobEnding { is_finished: true, is_graceful: true, ..JobEnding::default() });
    let seeds = reconcile(&cluster.state, cluster.node_id("node1"), &[PartId::new(run, 0)]);
    assert!(matches!(&seeds[..], [OrderSeed::LaunchTask { .. }]), "it may end by itself: {seeds:?}");
    assert_eq!(tasks_begun(&cluster.end_step(run, StepId(1), OK)), [0]);
    cluster.end_step(run, StepId(2), OK);
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::DeclaredFinished));

    let (mut cluster, job, run) = end(JobEnding { is_forced: true, ..JobEnding::default() });
    let seeds = reconcile(&cluster.state, cluster.node_id("node1"), &[PartId::new(run, 0)]);
    assert_eq!(
        seeds,
        [OrderSeed::Stop { part: PartId::new(run, 0), reason: StopReason::CancelledAtOnce, grace_seconds: 0 }]
    );
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Cancelled));
    cluster.assert_replays();
}

/// HPC-C-06
#[test]
fn no_task_starts_after_a_graceful_end_and_a_second_end_is_stricter() {
    use muster_schemas::command::JobEnding;
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(1, 2, vec![sweep(9)]), &["node1"], 2);
    let graceful = JobEnding { is_graceful: true, ..JobEnding::default() };
    let end = |ending: &JobEnding| Command::EndJobs { jobs: ids(&[job]), ending: ending.clone() };
    cluster.ok(&user("ada"), end(&graceful));
    assert!(begun(&cluster.end_step(run, StepId(1), OK)).is_empty());
    assert!(cluster.ok(&user("ada"), end(&graceful)).iter().all(|event| !matches!(event, Event::TasksStopping { .. })));
    let events = cluster.ok(&user("ada"), end(&JobEnding::default()));
    assert_eq!(stops(&events), [StopReason::Cancelled], "what still runs is stopped");
    let plain = cluster.submit("ada", job_of_one_core());
    cluster.start(plain, &["node2"], 1);
    let refused = Command::EndJobs { jobs: ids(&[plain]), ending: graceful.clone() };
    cluster.refused(&user("ada"), refused, RefusalCode::Conflict, "not a list of tasks");
}

fn job_of_one_core() -> muster_schemas::job::JobSpec {
    crate::support::job(1, 1)
}

/// HPC-S-13
#[test]
fn a_requeued_list_runs_again_what_has_not_ended_well() {
    let mut cluster = Cluster::new();
    let (job, run, _) = cluster.start_list(&list(1, 2, vec![sweep(4)]), &["node1"], 2);
    cluster.end_step(run, StepId(1), OK);
    cluster.end_step(run, StepId(2), ExitStatus::Code(1));
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[job]), hold: false, delay_seconds: 0 });
    cluster.end_parts(run);
    assert!(cluster.is_waiting(job));
    let run = cluster.start(job, &["node2"], 4);
    let events = cluster.settle();
    let instances: Vec<TaskInstance> = begun(&events).iter().map(|began| began.instance).collect();
    assert_eq!(instances.iter().map(|instance| instance.instance).collect::<Vec<_>>(), [1, 2, 3]);
    for began in begun(&events) {
        cluster.end_step(run, began.step, OK);
    }
    cluster.end_parts(run);
    assert_eq!(cluster.outcome(job), Some(Outcome::Completed), "what failed was asked to run again");
    let again = Command::Requeue { jobs: ids(&[job]), hold: false, delay_seconds: 0 };
    cluster.refused(&user("ada"), again, RefusalCode::Conflict, "all of its tasks have run");
    cluster.assert_replays();
}

/// HPC-J-22, HPC-J-23, HPC-J-24
#[test]
fn lists_that_make_no_sense_are_refused_with_the_task_named() {
    let mut cluster = Cluster::new();
    let named = |name: &str, task: TaskSpec| TaskSpec { name: name.into(), ..task };
    let (prep, release, service) = (task(TaskKind::NodePrep), task(TaskKind::NodeRelease), task(TaskKind::Service));
    let cases = [
        (list(1, 1, vec![]), "none is given"),
        (list(2, 1, vec![basic()]), "tasks.max"),
        (list(1, 1, vec![named("p", prep.clone()), release]), "task 1 `p`: the job has only"),
        (list(1, 1, vec![prep.clone(), named("q", prep), basic()]), "task 2 `q`"),
        (list(1, 1, vec![basic(), named("s", service)]), "task 2 `s`: is a service"),
        (list(1, 2, vec![named("big", TaskSpec { min: 3, max: 3, ..basic() })]), "task 1 `big`: min: 3"),
        (list(1, 1, vec![named("a", behind(&[7]))]), "task 1 `a`: after: it cannot wait for task 8"),
        (list(1, 1, vec![basic(), behind(&[2]), named("c", behind(&[1]))]), "in a circle"),
        (list(1, 1, vec![sweep(1_000_001)]), "steps"),
        (list(1, 1, vec![task(TaskKind::Sweep { start: 0, increment: 0, steps: 2 })]), "increment"),
        (list(1, 1, vec![task(TaskKind::Sweep { start: i32::MAX, increment: 1, steps: 2 })]), "last value"),
    ];
    for (tasks, words) in cases {
        let intake = muster_schemas::event::Intake { tasks: Some(tasks), ..Default::default() };
        let spec = Box::new(spec_of(&list(1, 2, Vec::new())));
        let command = Command::SubmitDocument { spec, intake: Box::new(intake) };
        cluster.refused(&user("ada"), command, RefusalCode::Invalid, words);
    }
    let long = TaskSpec { run_time_seconds: Some(61), ..basic() };
    let list = list(1, 1, vec![long]);
    let mut spec = spec_of(&list);
    spec.components[0].alternatives[0].walltime_seconds = Some(60);
    let intake = muster_schemas::event::Intake { tasks: Some(list), ..Default::default() };
    let command = Command::SubmitDocument { spec: Box::new(spec), intake: Box::new(intake) };
    cluster.refused(&user("ada"), command, RefusalCode::Invalid, "more than the job's own, 60");
    assert_eq!(State::from_snapshot_bytes(&cluster.state.to_snapshot_bytes().unwrap()).unwrap(), cluster.state);
}
