//! Jobs that wait for others.

use crate::support::*;
use muster_domain::state::looks::counted;
use muster_schemas::{
    CommandId, JobId,
    cluster::ClusterSettings,
    command::{Command, RefusalCode},
    event::{EndCause, Event, JobChange, NodeExit},
    job::{Dependencies, Dependency, DependencyKind, ExitStatus, JobSpec, JobType, Outcome, RequeuePolicy, WaitReason},
    resources::IndexSet,
};
use std::collections::BTreeSet;

fn on(kind: DependencyKind, job: JobId) -> Dependency {
    Dependency { kind, job: Some(job), delay_seconds: 0 }
}

fn bare(kind: DependencyKind) -> Dependency {
    Dependency { kind, job: None, delay_seconds: 0 }
}

fn reason(cluster: &Cluster, job: JobId) -> Option<WaitReason> {
    cluster.state.wait_reason(cluster.state.job(job).unwrap())
}

/// Every kind of dependency is met by the event it names (M-DOM-6).
#[test]
fn each_kind_is_met_by_what_it_says() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    let kinds = [
        DependencyKind::Started,
        DependencyKind::Running,
        DependencyKind::Ended,
        DependencyKind::Succeeded,
        DependencyKind::Failed,
    ];
    let [started, running, ended, succeeded, failed] = kinds.map(|kind| cluster.submit("ada", after(kind, first)));
    assert_eq!(cluster.waiting(), [first]);
    assert_eq!(reason(&cluster, ended), Some(WaitReason::Dependency(first)));
    let run = cluster.start(first, &["node1"], 1);
    assert_eq!(cluster.waiting(), [started, running]);
    cluster.end(run, "node1", ExitStatus::Code(0));
    assert_eq!(cluster.waiting(), [started, ended, succeeded]);
    assert_eq!(reason(&cluster, running), Some(WaitReason::DependencyNeverMet(first)));
    assert_eq!(reason(&cluster, failed), Some(WaitReason::DependencyNeverMet(first)));
    cluster.assert_replays();
}

/// OAR-D-04: the exit status of a program keeps a dependent waiting; an end that something else brought lets it start, as a success
/// does.
#[test]
fn an_end_that_is_no_failure_of_the_program_lets_dependents_start() {
    let mut cluster = Cluster::new();
    let targets: Vec<JobId> = (0..4).map(|_| cluster.submit("ada", job(1, 1))).collect();
    let waiting: Vec<JobId> =
        targets.iter().map(|target| cluster.submit("ada", after(DependencyKind::NotFailed, *target))).collect();
    cluster.run_through(targets[0], 0);
    cluster.run_through(targets[1], 3);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&targets[2..3]) });
    assert_eq!(cluster.waiting(), [targets[3], waiting[0], waiting[2]]);
    assert_eq!(reason(&cluster, waiting[1]), Some(WaitReason::DependencyNeverMet(targets[1])));
    let run = cluster.start(targets[3], &["node1"], 1);
    assert!(!cluster.is_waiting(waiting[3]), "it runs");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&targets[3..]) });
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert!(cluster.is_waiting(waiting[3]), "somebody ended it");
    cluster.assert_replays();
}

/// OAR-D-05, W10: what runs again by itself does so under its number, so that its dependents wait for that run, also those
/// that any end would let start.
#[test]
fn dependents_wait_for_the_run_that_takes_the_place_of_another() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.requeue.on_exit_codes = vec![99];
    let first = cluster.submit("ada", spec);
    let strict = cluster.submit("ada", after(DependencyKind::Succeeded, first));
    let always = cluster.submit("ada", after(DependencyKind::Ended, first));
    cluster.run_through(first, 99);
    assert_eq!(cluster.waiting(), [first]);
    assert_eq!(reason(&cluster, strict), Some(WaitReason::Dependency(first)));
    cluster.run_through(first, 0);
    assert_eq!(cluster.waiting(), [strict, always]);
}

/// OAR-D-02, OAR-D-03, OAR-D-05, OAR-T-31, W10: exit code 99 after an hour brings another run, which its dependents wait for; after
/// 60 s it is the end, and `always` starts where `strict` waits for good.
#[test]
fn the_worked_example_of_exit_code_99() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.requeue = RequeuePolicy { on_exit_codes: vec![99], exit_codes_after_seconds: 60, ..RequeuePolicy::default() };
    let run_for = |cluster: &mut Cluster, id: JobId, seconds: i64, code: u8| {
        let run = cluster.start(id, &["node1"], 1);
        let (started, part) = (cluster.now, cluster.part(run, "node1"));
        cluster.pass(seconds);
        let ended = exit(ExitStatus::Code(code), EndCause::Itself, cluster.now);
        let exit = NodeExit { started: Some(started), ..ended };
        cluster.ok(&executor("node1"), Command::NodeEnded { part, exit });
    };
    let first = cluster.submit("ada", spec.clone());
    let strict = cluster.submit("ada", after(DependencyKind::Succeeded, first));
    let always = cluster.submit("ada", after(DependencyKind::Ended, first));
    run_for(&mut cluster, first, 3_600, 99);
    assert_eq!(cluster.waiting(), [first], "both wait for the run to come");
    run_for(&mut cluster, first, 10, 0);
    assert_eq!(cluster.waiting(), [strict, always]);
    for id in [strict, always] {
        cluster.run_through(id, 0);
    }
    let short = cluster.submit("ada", spec);
    let strict = cluster.submit("ada", after(DependencyKind::Succeeded, short));
    let always = cluster.submit("ada", after(DependencyKind::Ended, short));
    run_for(&mut cluster, short, 60, 99);
    assert_eq!(cluster.waiting(), [always]);
    assert_eq!(reason(&cluster, strict), Some(WaitReason::DependencyNeverMet(short)));
    cluster.assert_replays();
}

/// OAR-D-05: jobs that wait for one that has ended wait for the one that somebody submits in its place, from the same step on.
#[test]
fn dependents_follow_a_job_that_is_submitted_again() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    let strict = cluster.submit("ada", after(DependencyKind::Succeeded, first));
    let other = cluster.submit("bob", after(DependencyKind::Failed, first));
    let in_place = |of: JobId| JobSpec { types: vec![JobType::TakesPlaceOf(of)], ..job(1, 1) };
    let submit = |of: JobId| Command::Submit { jobs: vec![in_place(of)] };
    cluster.refused(&user("ada"), submit(first), RefusalCode::Conflict, "has not ended");
    cluster.run_through(first, 3);
    assert_eq!(cluster.waiting(), [other]);
    assert_eq!(reason(&cluster, strict), Some(WaitReason::DependencyNeverMet(first)));
    cluster.refused(&user("bob"), submit(first), RefusalCode::PermissionDenied, "");
    let known = cluster.log.len();
    let second = cluster.submit("ada", in_place(first));
    let commands: BTreeSet<CommandId> = cluster.log[known..].iter().map(|record| record.command).collect();
    assert_eq!(commands.len(), 1, "one step");
    assert_eq!(cluster.waiting(), [second], "nobody starts in between");
    for id in [strict, other] {
        assert_eq!(reason(&cluster, id), Some(WaitReason::Dependency(second)));
    }
    let third = cluster.submit("ada", in_place(first));
    assert_eq!(reason(&cluster, strict), Some(WaitReason::Dependency(second)), "the place is taken");
    cluster.run_through(third, 0);
    cluster.run_through(second, 0);
    assert_eq!(cluster.waiting(), [strict]);
    assert_eq!(reason(&cluster, other), Some(WaitReason::DependencyNeverMet(second)));
    cluster.assert_replays();
}

#[test]
fn a_dependency_on_a_job_that_is_over_is_judged_at_once() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    cluster.run_through(first, 1);
    let failed = cluster.submit("ada", after(DependencyKind::Failed, first));
    let succeeded = cluster.submit("ada", after(DependencyKind::Succeeded, first));
    assert_eq!(cluster.waiting(), [failed]);
    // The job can still succeed after it was requeued.
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[first]), hold: false, delay_seconds: 0 });
    assert_eq!(reason(&cluster, succeeded), Some(WaitReason::Dependency(first)));
    cluster.run_through(first, 0);
    assert!(cluster.is_waiting(succeeded));
}

#[test]
fn a_job_that_is_queued_anew_sees_what_happened_meanwhile() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    let second = cluster.submit("ada", after(DependencyKind::Succeeded, first));
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[second]) });
    cluster.run_through(first, 0);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[second]), hold: false, delay_seconds: 0 });
    assert!(cluster.is_waiting(second));
    cluster.assert_replays();
}

#[test]
fn of_a_group_one_condition_is_enough_and_every_group_counts() {
    let mut cluster = Cluster::new();
    let (one, two) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    let kind = DependencyKind::Succeeded;
    let either = cluster.submit("ada", depending(vec![vec![on(kind, one), on(kind, two)]]));
    let both = cluster.submit("ada", depending(vec![vec![on(kind, one)], vec![on(kind, two)]]));
    cluster.run_through(one, 1);
    assert_eq!(reason(&cluster, either), Some(WaitReason::Dependency(two)), "the other can still meet it");
    assert_eq!(reason(&cluster, both), Some(WaitReason::DependencyNeverMet(one)));
    cluster.run_through(two, 0);
    assert_eq!(cluster.waiting(), [either]);
}

#[test]
fn a_delay_runs_from_the_moment_it_happened() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    let delayed = Dependency { delay_seconds: 10, ..on(DependencyKind::Ended, first) };
    let id = cluster.submit("ada", depending(vec![vec![delayed.clone()]]));
    cluster.run_through(first, 0);
    let until = cluster.now.plus_seconds(10);
    assert_eq!(reason(&cluster, id), Some(WaitReason::BeginTime(until)));
    assert_eq!(cluster.state.next_timer(), Some(until));
    cluster.pass(4);
    let second = cluster.submit("ada", depending(vec![vec![delayed]]));
    cluster.pass(6);
    cluster.tick();
    assert_eq!(cluster.waiting(), [id, second]);
}

#[test]
fn impossible_jobs_are_cancelled_if_the_site_wants_it() {
    let settings = ClusterSettings { cancel_never_met: true, ..ClusterSettings::default() };
    let mut cluster = Cluster::with(muster_schemas::cluster::ClusterConfig { settings, ..config() });
    let first = cluster.submit("ada", job(1, 1));
    let second = cluster.submit("ada", after(DependencyKind::Succeeded, first));
    let third = cluster.submit("ada", after(DependencyKind::Succeeded, second));
    let fourth = cluster.submit("ada", after(DependencyKind::Ended, third));
    cluster.run_through(first, 1);
    while cluster.state.next_timer().is_some_and(|time| time <= cluster.now) {
        assert!(!cluster.tick().is_empty(), "a timer that is due leads to something");
    }
    assert_eq!(cluster.outcome(second), Some(Outcome::DependencyNeverMet));
    assert_eq!(cluster.outcome(third), Some(Outcome::DependencyNeverMet));
    assert!(cluster.is_waiting(fourth));
}

/// SL-C-19: a job that is set so is cancelled, others continue to wait; of an array, the tasks that can never start are
/// cancelled.
#[test]
fn a_job_that_gives_up_is_cancelled_when_its_dependency_can_never_be_met() {
    let mut cluster = Cluster::new();
    let gives_up = |spec: JobSpec| JobSpec { cancelled_if_never_met: true, ..spec };
    let first = cluster.submit("ada", job(1, 1));
    let waits = cluster.submit("ada", after(DependencyKind::Succeeded, first));
    let ends = cluster.submit("ada", gives_up(after(DependencyKind::Succeeded, first)));
    let met = cluster.submit("ada", gives_up(after(DependencyKind::Failed, first)));
    let tasks =
        JobSpec { array: array(IndexSet::from_range(0, 1), None).array, ..after(DependencyKind::Succeeded, first) };
    let tasks = cluster.submit("ada", gives_up(tasks));
    assert!(cluster.state.next_timer().is_none_or(|time| time > cluster.now));
    cluster.run_through(first, 1);
    while cluster.state.next_timer().is_some_and(|time| time <= cluster.now) {
        assert!(!cluster.tick().is_empty(), "a timer that is due leads to something");
    }
    assert_eq!(cluster.outcome(ends), Some(Outcome::DependencyNeverMet));
    assert_eq!(cluster.outcome(tasks), Some(Outcome::DependencyNeverMet));
    assert_eq!(reason(&cluster, waits), Some(WaitReason::DependencyNeverMet(first)));
    assert!(cluster.is_waiting(met));
    cluster.assert_replays();
}

#[test]
fn singletons_run_one_after_the_other() {
    let mut cluster = Cluster::new();
    let named = |name: &str| muster_schemas::job::JobSpec {
        name: name.into(),
        ..depending(vec![vec![bare(DependencyKind::Singleton)]])
    };
    let plain = cluster.submit("ada", muster_schemas::job::JobSpec { name: "x".into(), ..job(1, 1) });
    let one = cluster.submit("ada", named("x"));
    let two = cluster.submit("ada", named("x"));
    let other_name = cluster.submit("ada", named("y"));
    let other_user = cluster.submit("bob", named("x"));
    assert_eq!(cluster.waiting(), [plain, other_name, other_user]);
    cluster.run_through(plain, 1);
    assert!(cluster.is_waiting(one) && !cluster.is_waiting(two));
    let rename = JobChange { name: Some("z".into()), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[one]), change: rename });
    assert!(cluster.is_waiting(two), "the one ahead has another name now");
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[plain]), hold: false, delay_seconds: 0 });
    assert!(!cluster.is_waiting(two), "the first is back");
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[plain]) });
    assert!(cluster.is_waiting(two));
    cluster.assert_replays();
}

/// However many wait for each other, each arrival or end only causes a check of those at the head of the line.
#[test]
fn a_long_line_of_singletons_costs_little() {
    let mut cluster = Cluster::new();
    let jobs = vec![depending(vec![vec![bare(DependencyKind::Singleton)]]); 2_000];
    let all: Vec<JobId> = (1..=2_000).map(JobId::job).collect();
    let backwards: Vec<JobId> = all[1_001..].iter().rev().copied().collect();
    let ((), looks) = counted(|| {
        cluster.ok(&user("ada"), Command::Submit { jobs });
        assert_eq!(cluster.waiting(), [JobId::job(1)]);
        cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&all[..1_000]) });
        assert_eq!(cluster.waiting(), [all[1_000]]);
        cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&backwards) });
        assert_eq!(cluster.waiting(), [all[1_000]]);
    });
    assert!(looks < 100 * 2_000, "{looks} looks: each of them is looked at whenever one of them ends");
    cluster.assert_replays();
}

/// A requeued task can wait for earlier jobs too; its own array is not one of them.
#[test]
fn a_task_can_wait_for_earlier_jobs_of_its_name() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    let tasks = cluster.submit("ada", array(IndexSet::from_range(0, 1), None));
    let task = JobId::task(tasks.number, 0);
    cluster.run_through(task, 1);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[task]), hold: false, delay_seconds: 0 });
    let dependencies = Some(Dependencies { all_of: vec![vec![bare(DependencyKind::Singleton)]] });
    let change = |change| Command::Modify { jobs: ids(&[task]), change };
    let rename = JobChange { name: Some("script".into()), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[first]), change: rename.clone() });
    cluster.ok(&user("ada"), change(JobChange { dependencies, ..JobChange::default() }));
    assert!(cluster.is_waiting(task), "its array is not ahead of it");
    cluster.ok(&user("ada"), change(rename));
    assert!(!cluster.is_waiting(task));
    cluster.assert_replays();
    cluster.run_through(first, 0);
    assert!(cluster.is_waiting(task));
    cluster.assert_replays();
}

#[test]
fn a_job_can_be_put_before_others() {
    let mut cluster = Cluster::new();
    let behind = cluster.submit("ada", job(1, 1));
    let first = cluster.submit("ada", after(DependencyKind::BeforeSucceeded, behind));
    assert_eq!(cluster.waiting(), [first], "it never holds the job that has it");
    cluster.run_through(first, 0);
    assert_eq!(cluster.waiting(), [behind]);
    let before = |job| Command::Submit { jobs: vec![after(DependencyKind::BeforeStarted, job)] };
    cluster.refused(&user("bob"), before(behind), RefusalCode::PermissionDenied, "belongs to ada");
    cluster.start(behind, &["node1"], 1);
    cluster.refused(&user("ada"), before(behind), RefusalCode::Conflict, "no longer waits");
    cluster.assert_replays();
}

#[test]
fn a_job_can_wait_for_a_number_of_others_that_put_themselves_before_it() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", depending(vec![vec![bare(DependencyKind::Count(2))]]));
    let befores: Vec<JobId> = (0..3).map(|_| cluster.submit("ada", after(DependencyKind::BeforeEnded, id))).collect();
    assert!(!cluster.is_waiting(id));
    cluster.run_through(befores[0], 0);
    assert!(!cluster.is_waiting(id));
    cluster.run_through(befores[1], 1);
    assert!(cluster.is_waiting(id), "two are enough");
}

#[test]
fn tasks_wait_for_the_task_of_the_same_index() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", array(IndexSet::from_range(0, 2), None));
    let mut spec = after(DependencyKind::SameIndexSucceeded, first);
    spec.array = array(IndexSet::from_range(0, 3), None).array;
    let second = cluster.submit("ada", spec);
    assert_eq!(reason(&cluster, second), Some(WaitReason::Dependency(first)));
    cluster.run_through(JobId::task(1, 1), 0);
    let indices = |cluster: &Cluster| {
        let waiting = cluster.state.waiting().find(|waiting| waiting.job.id == second);
        waiting.and_then(|waiting| waiting.indices.map(|indices| indices.to_string())).unwrap_or_default()
    };
    assert_eq!(indices(&cluster), "1");
    cluster.run_through(JobId::task(1, 0), 1);
    cluster.run_through(JobId::task(1, 2), 0);
    assert_eq!(indices(&cluster), "1-2");
    cluster.run_through(JobId::task(second.number, 1), 0);
    cluster.run_through(JobId::task(second.number, 2), 0);
    assert_eq!(reason(&cluster, second), Some(WaitReason::DependencyNeverMet(first)));
    let settings = ClusterSettings { cancel_never_met: true, ..ClusterSettings::default() };
    let change = Box::new(muster_schemas::cluster::ClusterConfig { settings, ..config() }.into());
    cluster.ok(&root(), Command::Configure { change, keep_unnamed: false });
    let events = cluster.tick();
    assert!(
        matches!(events.as_slice(), [Event::TasksFinished { indices, .. }, Event::JobFinished { .. }] if indices.to_string() == "0,3"),
        "{events:?}"
    );
    assert_eq!(cluster.outcome(second), Some(Outcome::DependencyNeverMet));
    cluster.assert_replays();
}

/// SL-C-19: `aftercorr` if one of the two is not an array.
#[test]
fn what_has_no_task_of_the_same_index_waits_for_the_whole() {
    let mut cluster = Cluster::new();
    let plain = cluster.submit("ada", job(1, 1));
    let whole = cluster.submit("ada", array(IndexSet::from_range(0, 1), None));
    let mut by_task = after(DependencyKind::SameIndexSucceeded, plain);
    by_task.array = array(IndexSet::from_range(0, 1), None).array;
    let behind_plain =
        [after(DependencyKind::SameIndexSucceeded, plain), by_task].map(|spec| cluster.submit("ada", spec));
    let behind_array = cluster.submit("ada", after(DependencyKind::SameIndexSucceeded, whole));
    assert_eq!(cluster.waiting(), [plain, whole]);
    cluster.run_through(plain, 0);
    assert_eq!(cluster.waiting(), [whole, behind_plain[0], behind_plain[1]]);
    cluster.run_through(JobId::task(whole.number, 0), 0);
    assert_eq!(reason(&cluster, behind_array), Some(WaitReason::Dependency(whole)));
    cluster.run_through(JobId::task(whole.number, 1), 0);
    assert!(cluster.is_waiting(behind_array));
    cluster.assert_replays();
}

#[test]
fn dependencies_on_arrays_and_tasks() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(IndexSet::from_range(1, 2), None));
    let started = cluster.submit("ada", after(DependencyKind::Started, whole));
    let ended = cluster.submit("ada", after(DependencyKind::Ended, whole));
    let task = cluster.submit("ada", after(DependencyKind::Failed, JobId::task(1, 2)));
    cluster.run_through(JobId::task(1, 1), 0);
    assert_eq!(cluster.waiting(), [whole]);
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[JobId::task(1, 2)]) });
    assert_eq!(cluster.waiting(), [started, ended, task]);
    let no_task = Command::Submit { jobs: vec![after(DependencyKind::Ended, JobId::task(1, 9))] };
    cluster.refused(&user("ada"), no_task, RefusalCode::NotFound, "job 1_9");
}

/// OAR-D-07: no job waits for itself.
#[test]
fn dependencies_can_be_replaced() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    let id = cluster.submit("ada", after(DependencyKind::Ended, first));
    let own = Dependencies { all_of: vec![vec![on(DependencyKind::Ended, id)]] };
    let change = |dependencies| Command::Modify {
        jobs: ids(&[id]),
        change: JobChange { dependencies: Some(dependencies), ..JobChange::default() },
    };
    cluster.refused(&user("ada"), change(own), RefusalCode::Invalid, "on itself");
    cluster.ok(&user("ada"), change(Dependencies::default()));
    assert!(cluster.is_waiting(id));
}

/// OAR-D-07: nor for one that is not known.
#[test]
fn what_is_no_dependency_is_refused() {
    let mut cluster = Cluster::new();
    let submit = |all_of| Command::Submit { jobs: vec![depending(all_of)] };
    let ada = user("ada");
    cluster.refused(&ada, submit(vec![vec![on(DependencyKind::Ended, JobId::job(5))]]), RefusalCode::NotFound, "job 5");
    cluster.refused(&ada, submit(vec![vec![]]), RefusalCode::Invalid, "no condition");
    cluster.refused(&ada, submit(vec![vec![bare(DependencyKind::Ended)]]), RefusalCode::Invalid, "names no job");
}

/// SL-C-19: the number of a component stands for the whole job.
#[test]
fn a_dependency_on_a_component_is_one_on_its_job() {
    let mut cluster = Cluster::new();
    let mut several = job(1, 1);
    several.components.push(several.components[0].clone());
    let first = cluster.submit("ada", several);
    let number = JobId::job(first.number + 1);
    let id = cluster.submit("ada", after(DependencyKind::Succeeded, number));
    let target = |cluster: &Cluster| {
        let job = cluster.state.job(id).expect("it waits");
        let extras = job.components[0].extras.as_ref().expect("it has a dependency");
        extras.conditions().next().and_then(|condition| condition.dependency.job)
    };
    assert_eq!(target(&cluster), Some(first));
    assert!(!cluster.is_waiting(id));
    let plain = cluster.submit("ada", job(1, 1));
    let on =
        |job| Dependencies { all_of: vec![vec![Dependency { kind: DependencyKind::Ended, job, delay_seconds: 0 }]] };
    let change = |job| JobChange { dependencies: Some(on(Some(job))), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change: change(number) });
    assert_eq!(target(&cluster), Some(first));
    let own = Command::Modify { jobs: ids(&[first]), change: change(number) };
    cluster.refused(&user("ada"), own, RefusalCode::Invalid, "cannot depend on itself");
    // No component has the number after the last job's.
    let unknown = Command::Modify { jobs: ids(&[id]), change: change(JobId::job(plain.number + 1)) };
    cluster.refused(&user("ada"), unknown, RefusalCode::NotFound, "does not exist");
}
