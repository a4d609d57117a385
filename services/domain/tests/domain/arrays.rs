//! Arrays: stored once, a task becomes a job when it starts.

use crate::support::*;
use muster_schemas::{
    JobId,
    cluster::QueueSpec,
    command::{Command, JobEnding, JobSelection, RefusalCode, Reply},
    event::{Event, JobChange},
    job::{DependencyKind, ExitStatus, Holds, JobState, Outcome, WaitReason},
    resources::IndexSet,
};

const USER_HOLD: Holds = Holds { user: true, operator: false, system: false };

fn startable(cluster: &Cluster, number: u64) -> String {
    let id = JobId::job(number);
    let waiting = cluster.state.waiting().find(|waiting| waiting.job.id == id);
    waiting.and_then(|waiting| waiting.indices.map(|indices| indices.to_string())).unwrap_or_default()
}

#[test]
fn an_array_is_over_when_its_last_task_is() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::from_range(5, 7), None));
    assert_eq!(startable(&cluster, 1), "5-7");
    assert_eq!(cluster.state.jobs().len(), 1);
    cluster.run_through(JobId::task(1, 6), 0);
    assert_eq!(startable(&cluster, 1), "5,7");
    cluster.run_through(JobId::task(1, 7), 3);
    let run = cluster.start(JobId::task(1, 5), &["node2"], 1);
    assert_eq!(cluster.state.job_state(cluster.state.job(whole).unwrap()), JobState::Running);
    assert_eq!(cluster.outcome(whole), None);
    let events = cluster.end(run, "node2", ExitStatus::Code(0));
    assert!(matches!(events.last(), Some(Event::JobFinished { job, .. }) if *job == whole), "{events:?}");
    assert_eq!(cluster.outcome(whole), Some(Outcome::Failed(ExitStatus::Code(3))));
    cluster.assert_replays();
}

#[test]
fn a_limit_on_running_tasks() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::first_n(10), Some(2)));
    let run = cluster.start(JobId::task(1, 0), &["node1"], 1);
    cluster.start(JobId::task(1, 1), &["node1"], 1);
    let reason = cluster.state.wait_reason(cluster.state.job(whole).unwrap());
    assert_eq!(reason, Some(WaitReason::ArrayLimit));
    let third = cluster.start_command(JobId::task(1, 2), &["node1"], 1);
    let (events, _) = cluster.run(&muster_schemas::event::Actor::Planner, third.clone()).unwrap();
    assert!(
        matches!(events.as_slice(), [Event::Planned { plan }] if plan.refused == [JobId::task(1, 2)]),
        "{events:?}"
    );
    cluster.end(run, "node1", ExitStatus::Code(0));
    let events = cluster.ok(&muster_schemas::event::Actor::Planner, third);
    assert!(matches!(events.as_slice(), [Event::RunAllocated { .. }, Event::Planned { .. }]), "{events:?}");
    let change = JobChange { max_running: Some(3), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[whole]), change });
    cluster.start(JobId::task(1, 3), &["node1"], 1);
    cluster.assert_replays();
}

#[test]
fn cancelling_an_array_drops_what_waits_and_stops_what_runs() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::first_n(100_000), None));
    let run = cluster.start(JobId::task(1, 0), &["node1"], 1);
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[whole]) });
    assert!(matches!(events.as_slice(), [Event::TasksFinished { .. }, Event::RunStopping { .. }]), "{events:?}");
    assert_eq!(cluster.outcome(whole), None);
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert_eq!(cluster.outcome(whole), Some(Outcome::Cancelled));
    assert_eq!(cluster.state.job(whole).unwrap().array.as_ref().unwrap().finished_tasks(), 100_000);
    let again = Command::Cancel { jobs: ids(&[whole]) };
    cluster.refused(&user("ada"), again, RefusalCode::Conflict, "no tasks that wait");
}

#[test]
fn an_array_that_waits_is_cancelled_at_once() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::first_n(5), None));
    let both = Command::Cancel { jobs: ids(&[JobId::task(1, 3), whole]) };
    cluster.ok(&user("ada"), both);
    assert_eq!(cluster.outcome(whole), Some(Outcome::Cancelled));
}

#[test]
fn single_tasks_are_held_released_and_cancelled() {
    let mut cluster = Cluster::new();
    cluster.submit("ada", array(IndexSet::first_n(4), None));
    let task = JobId::task(1, 2);
    let hold = Command::Hold { jobs: ids(&[task]), holds: USER_HOLD, reason: String::new() };
    cluster.ok(&user("ada"), hold);
    assert_eq!(startable(&cluster, 1), "0-1,3");
    let start = cluster.start_command(task, &["node1"], 1);
    let events = cluster.ok(&muster_schemas::event::Actor::Planner, start);
    assert!(matches!(events.as_slice(), [Event::Planned { plan }] if plan.refused == [task]), "it is held: {events:?}");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[JobId::task(1, 0)]) });
    assert_eq!(startable(&cluster, 1), "1,3");
    cluster.ok(&user("ada"), Command::Release { jobs: ids(&[JobId::job(1)]), holds: USER_HOLD });
    assert_eq!(startable(&cluster, 1), "1-3", "the whole stands for all its tasks");
    let cancelled = Command::Cancel { jobs: ids(&[JobId::task(1, 0)]) };
    cluster.refused(&user("ada"), cancelled, RefusalCode::Conflict, "is over: cancelled");
    let unknown = Command::Cancel { jobs: ids(&[JobId::task(1, 4)]) };
    cluster.refused(&user("ada"), unknown, RefusalCode::NotFound, "no task 4");
    cluster.assert_replays();
}

#[test]
fn a_task_can_be_requeued_and_then_waits_by_itself() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::first_n(1), None));
    let task = JobId::task(1, 0);
    cluster.run_through(task, 1);
    assert_eq!(cluster.outcome(whole), Some(Outcome::Failed(ExitStatus::Code(1))));
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[task]), hold: false, delay_seconds: 0 });
    assert_eq!(cluster.waiting(), [task]);
    assert_eq!(cluster.outcome(whole), None);
    cluster.run_through(task, 0);
    assert_eq!(cluster.outcome(whole), Some(Outcome::Completed));
    cluster.assert_replays();
}

#[test]
fn a_signal_to_an_array_reaches_the_tasks_that_run() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::first_n(3), None));
    let signal = Command::Signal { jobs: ids(&[whole]), signal: 10 };
    cluster.refused(&user("ada"), signal.clone(), RefusalCode::Conflict, "does not run");
    let run = cluster.start(JobId::task(1, 1), &["node1"], 1);
    assert_eq!(cluster.ok(&user("ada"), signal), [Event::JobSignalled { job: JobId::task(1, 1), run, signal: 10 }]);
}

/// SL-C-37: it leaves its array, which stays held.
#[test]
fn a_task_of_an_array_that_is_held_as_a_whole_is_released_alone() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", array(IndexSet::from_range(1, 3), None));
    let task = JobId::task(id.number, 2);
    let hold = |job| Command::Hold { jobs: ids(&[job]), holds: USER_HOLD, reason: String::new() };
    let release = |job| Command::Release { jobs: ids(&[job]), holds: USER_HOLD };
    cluster.ok(&user("ada"), hold(id));
    cluster.ok(&user("ada"), hold(task));
    let events = cluster.ok(&user("ada"), release(task));
    assert!(
        matches!(&events[..], [Event::JobModified { .. }, Event::JobReleased { job, holds: USER_HOLD }] if *job == task),
        "{events:?}"
    );
    assert_eq!(startable(&cluster, 1), "");
    assert!(cluster.waiting().contains(&task) && !cluster.waiting().contains(&id), "{:?}", cluster.waiting());
    cluster.run_through(task, 0);
    cluster.ok(&user("ada"), release(id));
    assert_eq!(startable(&cluster, 1), "1,3");
    cluster.assert_replays();
}

fn modify(job: JobId, change: JobChange) -> Command {
    Command::Modify { jobs: ids(&[job]), change }
}

/// SL-C-17: a task that has not started and is changed alone waits by itself, for what its array waits for, and counts
/// as one of its tasks.
#[test]
fn a_task_that_has_not_started_is_changed_alone() {
    let mut cluster = Cluster::new();
    let mut spec = array(IndexSet::from_range(1, 3), Some(1));
    spec.components[0].begin = Some(cluster.now.plus_seconds(60));
    let whole = cluster.submit("ada", spec);
    let task = JobId::task(whole.number, 2);
    let change = JobChange { walltime_seconds: Some(77), priority: Some(9), ..JobChange::default() };
    let events = cluster.ok(&user("ada"), modify(task, change.clone()));
    assert!(matches!(&events[..], [Event::JobModified { job, .. }] if *job == task), "{events:?}");
    let walltime =
        |cluster: &Cluster, job| cluster.state.job(job).map(|job| job.lead().shape.alternatives[0].walltime_seconds);
    assert_eq!((walltime(&cluster, task), walltime(&cluster, whole)), (Some(Some(77)), Some(None)));
    assert_eq!(cluster.state.job(task).map(|job| (job.lead().priority, job.attempts)), Some((9, 0)));
    assert!(!cluster.is_waiting(task), "it waits for the same time as the array");
    cluster.pass(61);
    cluster.tick();
    assert!(cluster.is_waiting(task));
    assert_eq!(startable(&cluster, 1), "1,3");
    let run = cluster.start(task, &["node1"], 1);
    assert_eq!(cluster.state.job(whole).and_then(|job| job.array.as_ref()).map(|array| array.headroom()), Some(0));
    cluster.end(run, "node1", ExitStatus::Code(0));
    cluster.run_through(JobId::task(1, 1), 0);
    cluster.run_through(JobId::task(1, 3), 4);
    assert_eq!(cluster.outcome(whole), Some(Outcome::Failed(ExitStatus::Code(4))));
    cluster.assert_replays();
}

/// What belongs to all tasks is not changed for one, and nothing is changed by a refusal.
#[test]
fn what_belongs_to_an_array_is_not_changed_for_one_task() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::from_range(1, 3), None));
    let task = JobId::task(whole.number, 1);
    let priority = JobChange { priority: Some(3), ..JobChange::default() };
    for change in [
        JobChange { max_running: Some(1), ..priority.clone() },
        JobChange { attributes: [("a".to_owned(), "b".to_owned())].into(), ..priority.clone() },
    ] {
        cluster.refused(&user("ada"), modify(task, change), RefusalCode::Conflict, "belong to all tasks");
    }
    let mut later = array(IndexSet::from_range(1, 2), None);
    later.components[0].dependencies =
        after(DependencyKind::SameIndexSucceeded, whole).components[0].dependencies.clone();
    let later = cluster.submit("ada", later);
    let waits = modify(JobId::task(later.number, 1), priority.clone());
    cluster.refused(&user("ada"), waits, RefusalCode::Conflict, "has dependencies: change the whole array");
    cluster.refused(&user("bob"), modify(task, priority.clone()), RefusalCode::PermissionDenied, "");
    assert_eq!(cluster.state.job(task), None);
    cluster.run_through(task, 0);
    cluster.refused(&user("ada"), modify(task, priority.clone()), RefusalCode::Conflict, "is over");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[whole]) });
    cluster.assert_replays();
}

/// A task that waits by itself is cancelled with its array, and its array is over when it is.
#[test]
fn a_task_set_apart_ends_with_its_array() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::from_range(1, 2), None));
    let task = JobId::task(whole.number, 2);
    cluster.ok(&user("ada"), modify(task, JobChange { priority: Some(3), ..JobChange::default() }));
    cluster.run_through(JobId::task(1, 1), 0);
    assert_eq!(cluster.outcome(whole), None);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[task]) });
    assert_eq!(cluster.outcome(whole), Some(Outcome::Cancelled));
    cluster.assert_replays();
}

/// Each task that waits by itself takes as much room as a job, so there are not many of them.
#[test]
fn a_thousand_tasks_of_an_array_wait_by_themselves_at_most() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::from_range(1, 2_000), None));
    let tasks = |first, last| (first..=last).map(|index| JobId::task(whole.number, index)).collect::<Vec<_>>();
    let change = JobChange { priority: Some(3), ..JobChange::default() };
    let modify = |first, last| Command::Modify { jobs: ids(&tasks(first, last)), change: change.clone() };
    cluster.refused(&user("ada"), modify(1, 1_001), RefusalCode::LimitReached, "1000 tasks of array 1");
    cluster.ok(&user("ada"), modify(1, 600));
    cluster.refused(&user("ada"), modify(601, 1_001), RefusalCode::LimitReached, "change the whole array");
    cluster.ok(&user("ada"), modify(601, 1_000));
    // Those that wait by themselves can be changed again, and the array as a whole.
    cluster.ok(&user("ada"), modify(1, 1_000));
    cluster.assert_replays();
}

/// A task that waits by itself is counted by no queue, so it cannot go where jobs are counted. What belongs to all tasks
/// still does.
#[test]
fn a_task_set_apart_stays_a_task_of_its_array() {
    let mut config = config();
    config.queues.push(QueueSpec { max_jobs: Some(5), ..queue("few") });
    let mut cluster = Cluster::with(config);
    let whole = cluster.submit("ada", array(IndexSet::from_range(1, 2), None));
    let task = JobId::task(whole.number, 2);
    let to_few = JobChange { queue: Some("few".into()), ..JobChange::default() };
    cluster.refused(&user("ada"), modify(task, to_few.clone()), RefusalCode::Conflict, "queue `few` limits its jobs");
    cluster.ok(&user("ada"), modify(task, JobChange { priority: Some(3), ..JobChange::default() }));
    cluster.refused(&user("ada"), modify(task, to_few.clone()), RefusalCode::Conflict, "queue `few` limits its jobs");
    let attributes = JobChange { attributes: [("a".to_owned(), "b".to_owned())].into(), ..JobChange::default() };
    cluster.refused(&user("ada"), modify(task, attributes), RefusalCode::Conflict, "belong to all tasks");
    cluster.ok(&user("ada"), modify(whole, to_few));
    cluster.assert_replays();
}

/// SL-L-01: each task of an array counts towards what a queue and the cluster take, until it is over.
#[test]
fn tasks_count_singly_towards_what_a_queue_takes() {
    let mut config = config();
    config.queues[0].max_jobs = Some(5);
    config.queues.push(queue("wide"));
    config.settings.max_jobs = 8;
    let mut cluster = Cluster::with(config);
    let submit = |spec| Command::Submit { jobs: vec![spec] };
    let full = |cluster: &mut Cluster, spec| {
        cluster.refused(&user("ada"), submit(spec), RefusalCode::LimitReached, "takes at most 5 jobs");
    };
    full(&mut cluster, array(IndexSet::first_n(6), None));
    let whole = cluster.submit("ada", array(IndexSet::first_n(4), None));
    full(&mut cluster, array(IndexSet::first_n(2), None));
    cluster.submit("ada", job(1, 1));
    full(&mut cluster, job(1, 1));
    // One that runs still counts, and one that is over does not.
    let run = cluster.start(JobId::task(whole.number, 0), &["node1"], 1);
    full(&mut cluster, job(1, 1));
    cluster.end(run, "node1", ExitStatus::Code(0));
    let single = cluster.submit("ada", job(1, 1));
    full(&mut cluster, job(1, 1));
    for index in 1..4 {
        cluster.run_through(JobId::task(whole.number, index), 0);
    }
    cluster.run_through(single, 0);
    let again = cluster.submit("ada", array(IndexSet::first_n(4), None));
    // Moved to another queue, they leave room.
    let other = JobChange { queue: Some("wide".into()), ..JobChange::default() };
    cluster.ok(&user("ada"), modify(again, other));
    let last = cluster.submit("ada", array(IndexSet::first_n(3), None));
    cluster.refused(&user("ada"), submit(job(1, 1)), RefusalCode::LimitReached, "the cluster takes at most 8 jobs");
    let back = JobChange { queue: Some("default".into()), ..JobChange::default() };
    cluster.refused(&user("ada"), modify(again, back), RefusalCode::LimitReached, "takes at most 5 jobs");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[last]) });
    cluster.submit("ada", array(IndexSet::first_n(3), None));
    cluster.assert_replays();
}

/// A range of tasks is ended past those that are over; if none of them can be, it is refused.
#[test]
fn a_range_of_tasks_ends_past_those_that_are_over() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::from_range(0, 9), None));
    cluster.run_through(JobId::task(whole.number, 2), 0);
    let run = cluster.start(JobId::task(whole.number, 3), &["node1"], 1);
    let end = |first, last| Command::EndJobs {
        jobs: JobSelection::Tasks { job: whole, indices: IndexSet::from_range(first, last) },
        ending: JobEnding::default(),
    };
    cluster.refused(&user("bob"), end(2, 5), RefusalCode::PermissionDenied, "");
    let (events, reply) = cluster.run(&user("ada"), end(2, 5)).unwrap();
    let ended = |event: &Event| matches!(event, Event::TasksFinished { .. });
    assert_eq!(events.iter().filter(|event| ended(event)).count(), 1, "one event for all of them: {events:?}");
    let tasks = [3, 4, 5].map(|index| JobId::task(whole.number, index));
    assert!(matches!(&reply, Reply::Jobs(done) if **done == tasks), "{reply:?}");
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert_eq!(startable(&cluster, whole.number), "0-1,6-9");
    cluster.refused(&user("ada"), end(2, 5), RefusalCode::Conflict, "is over");
    cluster.ok(&user("ada"), end(8, 20));
    cluster.refused(&user("ada"), end(15, 20), RefusalCode::NotFound, "has no task 15");
    // Some are held, and changed; none of them runs.
    let tasks = |first, last| JobSelection::Tasks { job: whole, indices: IndexSet::from_range(first, last) };
    cluster.refused(&user("ada"), Command::Signal { jobs: tasks(0, 1), signal: 10 }, RefusalCode::Conflict, "");
    let holds = Holds { user: true, ..Holds::default() };
    let held = cluster.ok(&user("ada"), Command::Hold { jobs: tasks(0, 5), holds, reason: String::new() });
    assert_eq!(held.iter().filter(|event| matches!(event, Event::JobHeld { .. })).count(), 2, "{held:?}");
    let change = |change| Command::Modify { jobs: tasks(6, 7), change };
    let of_all = JobChange { max_running: Some(1), ..JobChange::default() };
    cluster.refused(&user("ada"), change(of_all), RefusalCode::Conflict, "belong to all tasks");
    let changed = cluster.ok(&user("ada"), change(JobChange { priority: Some(3), ..JobChange::default() }));
    assert_eq!(changed.len(), 2, "{changed:?}");
    let single = cluster.submit("ada", job(1, 1));
    let of_single = JobSelection::Tasks { job: single, indices: IndexSet::from_range(0, 1) };
    let command = Command::EndJobs { jobs: of_single, ending: JobEnding::default() };
    cluster.refused(&user("ada"), command, RefusalCode::NotFound, "there is no array");
    cluster.assert_replays();
}
