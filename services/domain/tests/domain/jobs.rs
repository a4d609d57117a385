//! Submission, holds, changes, cancelling, times.

use crate::support::*;
use muster_domain::state::looks::counted;
use muster_schemas::{
    JobId, PartId, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::{Command, JobFilter, JobSelection, RefusalCode, Reply},
    event::{Actor, Event, JobChange, StopReason},
    job::{Component, DependencyKind, ExitStatus, Holds, JobState, Outcome, WaitReason},
    resources::Alternative,
};

const USER_HOLD: Holds = Holds { user: true, operator: false, system: false };
const OPERATOR_HOLD: Holds = Holds { user: false, operator: true, system: false };
const SYSTEM_HOLD: Holds = Holds { user: false, operator: false, system: true };

#[test]
fn a_job_from_submission_to_the_end() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 2));
    assert_eq!(id, JobId::job(1));
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Queued);
    let run = cluster.allocate(id, &["node1"], 2);
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Launching);
    assert_eq!(cluster.state.node_by_name("node1").unwrap().free_cores.len(), 2);
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Running);
    let events = cluster.end(run, "node1", ExitStatus::Code(0));
    assert!(matches!(events.as_slice(), [Event::RunEnded { .. }, Event::JobFinished { .. }]), "{events:?}");
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    assert_eq!(cluster.state.node_by_name("node1").unwrap().free_cores.len(), 4);
    assert_eq!(cluster.state.unfinished_jobs(), 0);
    cluster.assert_replays();
}

#[test]
fn submission_fills_in_defaults() {
    let mut config = config();
    config.queues[0] =
        QueueSpec { default_job_priority: 7, default_walltime_seconds: Some(60), ..config.queues[0].clone() };
    let mut cluster = Cluster::with(config);
    let events = cluster.ok(&user("ada"), Command::Submit { jobs: vec![Default::default()] });
    let [Event::JobSubmitted { spec, owner, .. }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((owner.user.as_str(), spec.name.as_str()), ("ada", "job"));
    let [component] = spec.components.as_slice() else { panic!("one component") };
    assert_eq!((component.queue.as_deref(), component.priority), (Some("default"), Some(7)));
    assert_eq!(component.alternatives[0].walltime_seconds, Some(60));
    assert_eq!(component.alternatives[0].requests.len(), 1);
}

#[test]
fn jobs_of_a_user_are_found_in_their_order() {
    let mut cluster = Cluster::new();
    let ids: Vec<JobId> = ["ada", "bob", "ada"].into_iter().map(|user| cluster.submit(user, job(1, 1))).collect();
    let of = |cluster: &Cluster, user: &str| cluster.state.jobs_of(user).map(|job| job.id).collect::<Vec<_>>();
    assert_eq!((of(&cluster, "ada"), of(&cluster, "bob")), (vec![ids[0], ids[2]], vec![ids[1]]));
    assert_eq!(of(&cluster, "eve"), []);
    cluster.assert_replays();
}

/// Job numbers are positive, increasing, never reused (HPC-J-01).
#[test]
fn components_reserve_consecutive_numbers() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.components = vec![spec.components[0].clone(), spec.components[0].clone(), spec.components[0].clone()];
    assert_eq!(cluster.submit("ada", spec), JobId::job(1));
    assert_eq!(cluster.submit("ada", job(1, 1)), JobId::job(4));
}

#[test]
fn all_jobs_of_a_submission_or_none() {
    let mut cluster = Cluster::new();
    let jobs = vec![job(1, 1), job(1, 1), job(99, 1)];
    cluster.refused(&user("ada"), Command::Submit { jobs }, RefusalCode::Invalid, "job 3 of the submission");
    assert_eq!(cluster.state.jobs().len(), 0);
    let (_, reply) = cluster.run(&user("ada"), Command::Submit { jobs: vec![job(1, 1); 3] }).unwrap();
    assert_eq!(reply, Reply::Submitted(vec![JobId::job(1), JobId::job(2), JobId::job(3)]));
}

/// A job that can never fit is refused at submission (M-DOM-5).
#[test]
fn what_can_never_fit_is_refused() {
    let mut cluster = Cluster::new();
    let ada = user("ada");
    let submit = |spec| Command::Submit { jobs: vec![spec] };
    cluster.refused(&ada, submit(job(4, 1)), RefusalCode::Invalid, "asks for 4 nodes, 3 match");
    cluster.refused(&ada, submit(job(3, 5)), RefusalCode::Invalid, "asks for 15 cores");
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].requests[0].nodes = vec!["node9".into()];
    cluster.refused(&ada, submit(spec), RefusalCode::Invalid, "node `node9`, which does not exist");
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].licences = [("ansys".to_owned(), 4)].into();
    cluster.refused(&ada, submit(spec), RefusalCode::Invalid, "4 of licence `ansys`");
    let mut spec = job(1, 1);
    spec.components[0].queue = Some("nowhere".into());
    cluster.refused(&ada, submit(spec), RefusalCode::NotFound, "queue `nowhere`");
}

#[test]
fn queues_limit_who_and_how_many() {
    let mut config = config();
    config.queues[0].max_jobs = Some(2);
    config.queues[1] = QueueSpec { users: vec!["bob".into()], max_walltime_seconds: Some(100), ..queue("other") };
    let mut cluster = Cluster::with(config);
    cluster.submit("ada", job(1, 1));
    let two = Command::Submit { jobs: vec![job(1, 1); 2] };
    cluster.refused(&user("ada"), two, RefusalCode::LimitReached, "at most 2 jobs");
    let mut spec = job(1, 1);
    spec.components[0].queue = Some("other".into());
    let command = |spec: &muster_schemas::job::JobSpec| Command::Submit { jobs: vec![spec.clone()] };
    cluster.refused(&user("ada"), command(&spec), RefusalCode::PermissionDenied, "may not submit");
    spec.components[0].alternatives[0].walltime_seconds = Some(101);
    cluster.refused(&user("bob"), command(&spec), RefusalCode::LimitReached, "more than queue `other` allows");
    spec.components[0].alternatives[0].walltime_seconds = None;
    let id = cluster.submit("bob", spec);
    let shape = &cluster.state.job(id).unwrap().lead().shape;
    assert_eq!(shape.alternatives[0].walltime_seconds, Some(100), "the queue's limit is the default");
}

#[test]
fn equal_requests_share_one_shape() {
    let mut cluster = Cluster::new();
    let (one, two, other) =
        (cluster.submit("ada", job(1, 1)), cluster.submit("bob", job(1, 1)), cluster.submit("ada", job(2, 1)));
    let shape = |id| cluster.state.job(id).unwrap().lead().shape.clone();
    assert!(std::sync::Arc::ptr_eq(&shape(one), &shape(two)));
    assert_ne!(shape(one).id, shape(other).id);
    assert_eq!(cluster.state.shapes().len(), 2);
}

#[test]
fn holds_keep_a_job_from_starting() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let hold = |holds| Command::Hold { jobs: ids(&[id]), holds, reason: "a reason".into() };
    let release = |holds| Command::Release { jobs: ids(&[id]), holds };
    cluster.refused(&user("bob"), hold(USER_HOLD), RefusalCode::PermissionDenied, "belongs to ada");
    cluster.refused(&user("ada"), hold(OPERATOR_HOLD), RefusalCode::PermissionDenied, "operators");
    cluster.refused(&user("oper"), hold(SYSTEM_HOLD), RefusalCode::PermissionDenied, "administrators");
    cluster.refused(&user("ada"), hold(Holds::default()), RefusalCode::Invalid, "none is named");
    assert_eq!(cluster.ok(&user("ada"), hold(USER_HOLD)).len(), 1);
    assert_eq!(cluster.ok(&user("ada"), hold(USER_HOLD)).len(), 0, "it is held already");
    cluster.ok(&user("oper"), hold(OPERATOR_HOLD));
    assert!(!cluster.is_waiting(id));
    let job = cluster.state.job(id).unwrap();
    assert_eq!(cluster.state.wait_reason(job), Some(WaitReason::Held(USER_HOLD.union(OPERATOR_HOLD))));
    assert_eq!(cluster.state.job_state(job), JobState::Held);
    cluster.ok(&user("ada"), release(USER_HOLD));
    assert!(!cluster.is_waiting(id));
    cluster.refused(&user("ada"), release(OPERATOR_HOLD), RefusalCode::PermissionDenied, "operators");
    cluster.ok(&root(), release(OPERATOR_HOLD));
    assert!(cluster.is_waiting(id));
    cluster.assert_replays();
}

/// SL-C-37
#[test]
fn a_hold_of_a_job_that_runs_counts_when_it_is_put_back() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let hold = Command::Hold { jobs: ids(&[id]), holds: USER_HOLD, reason: String::new() };
    let release = Command::Release { jobs: ids(&[id]), holds: USER_HOLD };
    let run = cluster.start(id, &["node1"], 1);
    cluster.refused(&user("ada"), release.clone(), RefusalCode::Conflict, "does not wait, it is running");
    assert_eq!(cluster.ok(&user("ada"), hold.clone()).len(), 1);
    assert_eq!(cluster.state.job_state(cluster.state.job(id).unwrap()), JobState::Running);
    cluster.ok(&user("ada"), release.clone());
    cluster.ok(&user("ada"), hold.clone());
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: false, delay_seconds: 0 });
    cluster.end(run, "node1", ExitStatus::Code(3));
    assert!(!cluster.is_waiting(id));
    assert_eq!(cluster.state.wait_reason(cluster.state.job(id).unwrap()), Some(WaitReason::Held(USER_HOLD)));
    cluster.ok(&user("ada"), release.clone());
    assert!(cluster.is_waiting(id));
    let run = cluster.start(id, &["node1"], 2);
    cluster.end(run, "node1", ExitStatus::Code(3));
    for command in [hold, release] {
        cluster.refused(&user("ada"), command, RefusalCode::Conflict, "it is failed");
    }
    cluster.assert_replays();
}

#[test]
fn begin_times_open_by_a_tick() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    let begin = cluster.now.plus_seconds(10);
    spec.components[0].begin = Some(begin);
    let id = cluster.submit("ada", spec);
    assert_eq!(cluster.state.next_timer(), Some(begin));
    assert_eq!(cluster.state.wait_reason(cluster.state.job(id).unwrap()), Some(WaitReason::BeginTime(begin)));
    cluster.pass(9);
    assert!(cluster.tick().is_empty());
    cluster.pass(1);
    assert_eq!(cluster.tick(), [Event::JobEligible { job: id }]);
    assert!(cluster.is_waiting(id));
    assert_eq!(cluster.state.next_timer(), None);
}

#[test]
fn a_job_whose_deadline_passes_is_given_up() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.components[0].deadline = Some(cluster.now.plus_seconds(10));
    let (late, in_time) = (cluster.submit("ada", spec.clone()), cluster.submit("ada", spec));
    cluster.start(in_time, &["node1"], 1);
    cluster.pass(10);
    cluster.tick();
    assert_eq!(cluster.outcome(late), Some(Outcome::DeadlineMissed));
    assert_eq!(cluster.outcome(in_time), None, "it had started");
    // A job that could no longer end in time does not wait for the deadline itself.
    let mut long = job(1, 1);
    long.components[0].deadline = Some(cluster.now.plus_seconds(10));
    long.components[0].alternatives[0].walltime_seconds = Some(4);
    let long = cluster.submit("ada", long);
    cluster.pass(6);
    assert_eq!((cluster.tick(), cluster.outcome(long)), (Vec::new(), None), "it could still start now");
    cluster.now = cluster.state.next_timer().expect("it is looked at again");
    cluster.tick();
    assert_eq!(cluster.outcome(long), Some(Outcome::DeadlineMissed));
    let mut past = job(1, 1);
    past.components[0].deadline = Some(cluster.now);
    cluster.refused(&user("ada"), Command::Submit { jobs: vec![past] }, RefusalCode::Invalid, "deadline");
}

#[test]
fn cancelling_ends_a_waiting_job_at_once_and_stops_a_running_one() {
    let mut cluster = Cluster::new();
    let (waits, runs) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    let run = cluster.start(runs, &["node1"], 1);
    let cancel = Command::Cancel { jobs: ids(&[waits, runs, waits]) };
    cluster.refused(&user("bob"), cancel.clone(), RefusalCode::PermissionDenied, "belongs to ada");
    let events = cluster.ok(&user("ada"), cancel.clone());
    let reason = StopReason::Cancelled;
    assert_eq!(
        events,
        [
            Event::JobFinished { job: waits, outcome: Outcome::Cancelled },
            Event::RunStopping { job: runs, run, reason, grace_seconds: None }
        ]
    );
    assert_eq!(cluster.state.job_state(cluster.state.job(runs).unwrap()), JobState::Finishing);
    cluster.refused(&user("ada"), cancel, RefusalCode::Conflict, "is over: cancelled");
    assert!(cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[runs]) }).is_empty(), "it is being cancelled");
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert_eq!(cluster.outcome(runs), Some(Outcome::Cancelled));
}

/// Of jobs named by id, all are changed or none (M-DOM-3).
#[test]
fn named_jobs_all_or_none() {
    let mut cluster = Cluster::new();
    let (mine, other) = (cluster.submit("ada", job(1, 1)), cluster.submit("bob", job(1, 1)));
    let cancel = |named: &[JobId]| Command::Cancel { jobs: ids(named) };
    cluster.refused(&user("ada"), cancel(&[mine, other]), RefusalCode::PermissionDenied, "belongs to bob");
    cluster.refused(&user("ada"), cancel(&[mine, JobId::job(77)]), RefusalCode::NotFound, "job 77");
    assert!(cluster.is_waiting(mine));
}

#[test]
fn matched_jobs_are_those_that_the_actor_may_touch() {
    let mut cluster = Cluster::new();
    let (mine, _other) = (cluster.submit("ada", job(1, 1)), cluster.submit("bob", job(1, 1)));
    let all = || Command::Cancel { jobs: JobSelection::Matching(JobFilter::default()) };
    let (_, reply) = cluster.run(&user("ada"), all()).unwrap();
    assert_eq!(reply, Reply::Jobs(vec![mine]));
    let (_, reply) = cluster.run(&user("ada"), all()).unwrap();
    assert_eq!(reply, Reply::Jobs(vec![]), "nothing is left, and that is no error");
    let filter = JobFilter { user: Some("bob".into()), states: vec![JobState::Running], ..JobFilter::default() };
    let (events, _) = cluster.run(&root(), Command::Cancel { jobs: JobSelection::Matching(filter) }).unwrap();
    assert!(events.is_empty(), "bob's job does not run");
}

#[test]
fn jobs_of_one_user_are_matched_without_a_look_at_those_of_others() {
    let mut cluster = Cluster::new();
    cluster.ok(&user("bob"), Command::Submit { jobs: vec![job(1, 1); 20_000] });
    let mine = cluster.submit("ada", job(1, 1));
    let matching = |user: Option<&str>| {
        let filter = JobFilter { user: user.map(Into::into), ..JobFilter::default() };
        Command::Hold { jobs: JobSelection::Matching(filter), holds: USER_HOLD, reason: String::new() }
    };
    for (actor, command) in [(user("ada"), matching(None)), (user("oper"), matching(Some("ada")))] {
        let decide = || muster_domain::decide(&cluster.state, &actor, &command, cluster.now).unwrap();
        let (decision, looks) = counted(decide);
        assert_eq!(decision.reply, Reply::Jobs(vec![mine]));
        assert!(looks < 20, "{looks} looks at jobs for one");
    }
    let of_bob = muster_domain::decide(&cluster.state, &user("ada"), &matching(Some("bob")), cluster.now).unwrap();
    assert_eq!(of_bob.reply, Reply::Jobs(vec![]));
}

/// Jobs are kept in order of arrival, across restarts and replays (PBS-C-10).
#[test]
fn waiting_jobs_are_in_order_of_arrival() {
    let mut cluster = Cluster::new();
    let first = cluster.submit("ada", job(1, 1));
    cluster.pass(1);
    let second = cluster.submit("ada", job(1, 1));
    let run = cluster.start(first, &["node1"], 1);
    cluster.pass(1);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[first]), hold: false, delay_seconds: 0 });
    cluster.end(run, "node1", ExitStatus::Signal(15));
    assert_eq!(cluster.waiting(), [second, first], "a requeued job arrives anew");
    // Those of the same moment by their numbers, and priorities play no part.
    let mut urgent = job(1, 1);
    urgent.components[0].priority = Some(1_000);
    let both = cluster.ok(&user("bob"), Command::Submit { jobs: vec![job(1, 1), urgent] });
    let both: Vec<JobId> = both.iter().filter_map(Event::job).collect();
    let [third, fourth] = both[..] else { panic!("two jobs, found {both:?}") };
    let (early, later) = (cluster.state.job(third).unwrap().queued, cluster.state.job(fourth).unwrap().queued);
    assert_eq!((early, third < fourth), (later, true), "they came at the same moment");
    let all = [second, first, third, fourth];
    assert_eq!(cluster.waiting(), all);
    cluster.pass(1);
    let hold = Command::Hold { jobs: ids(&[second]), holds: USER_HOLD, reason: String::new() };
    cluster.ok(&user("ada"), hold);
    cluster.ok(&user("ada"), Command::Release { jobs: ids(&[second]), holds: USER_HOLD });
    assert_eq!(cluster.waiting(), all, "a hold costs nobody his place");
    let bytes = cluster.state.to_snapshot_bytes().unwrap();
    cluster.state = muster_domain::State::from_snapshot_bytes(&bytes).unwrap();
    assert_eq!(cluster.waiting(), all, "as before the restart");
    cluster.assert_replays();
}

#[test]
fn a_stopped_queue_starts_nothing() {
    let mut config = config();
    config.queues[0].started = false;
    let mut cluster = Cluster::with(config.clone());
    let id = cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.waiting(), []);
    assert_eq!(cluster.state.wait_reason(cluster.state.job(id).unwrap()), Some(WaitReason::QueueStopped));
    config.queues[0].started = true;
    cluster.ok(&root(), Command::Configure { change: Box::new(config.into()), keep_unnamed: false });
    assert_eq!(cluster.waiting(), [id]);
}

#[test]
fn changes_to_a_waiting_job() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let later = cluster.now.plus_seconds(100);
    let change = JobChange {
        name: Some("other name".into()),
        queue: Some("other".into()),
        account: Some("physics".into()),
        priority: Some(-3),
        begin: Some(later),
        walltime_seconds: Some(77),
        ..JobChange::default()
    };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change });
    let job = cluster.state.job(id).unwrap();
    assert_eq!(&*job.name, "other name");
    let component = job.lead();
    assert_eq!((&*component.queue, component.account.as_deref(), component.priority), ("other", Some("physics"), -3));
    assert_eq!(component.shape.alternatives[0].walltime_seconds, Some(77));
    assert_eq!(cluster.state.queue("default").unwrap().jobs, 0);
    assert_eq!(cluster.state.queue("other").unwrap().jobs, 1);
    assert_eq!(cluster.state.next_timer(), Some(later));
    let now = JobChange { begin: Some(Timestamp(0)), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change: now });
    assert!(cluster.is_waiting(id));
    cluster.assert_replays();
}

/// A job with a component for each of these queues, without a walltime.
fn in_queues(queues: &[&str]) -> muster_schemas::job::JobSpec {
    let part = |queue: &&str| Component { queue: Some((*queue).to_owned()), ..job(1, 1).components.remove(0) };
    muster_schemas::job::JobSpec { components: queues.iter().map(part).collect(), ..Default::default() }
}

/// Queue `default` without a walltime, queue `other` with these.
fn with_walltimes(default: Option<u64>, max: Option<u64>) -> Cluster {
    let other = QueueSpec { default_walltime_seconds: default, max_walltime_seconds: max, ..queue("other") };
    Cluster::with(ClusterConfig { queues: vec![queue("default"), other], ..config() })
}

fn walltimes(cluster: &Cluster, id: JobId) -> Vec<Option<u64>> {
    let job = cluster.state.job(id).unwrap();
    job.components.iter().map(|component| component.shape.alternatives[0].walltime_seconds).collect()
}

#[test]
fn a_job_without_a_walltime_gets_that_of_the_queue_it_is_put_into() {
    let mut cluster = with_walltimes(None, Some(3600));
    let id = cluster.submit("ada", in_queues(&["default"]));
    let to_other = |id| Command::Modify {
        jobs: ids(&[id]),
        change: JobChange { queue: Some("other".into()), ..JobChange::default() },
    };
    assert_eq!(cluster.ok(&user("ada"), to_other(id)).len(), 1);
    assert_eq!(walltimes(&cluster, id), [Some(3600)]);
    // If there are several components, only those without a walltime.
    let mut several = in_queues(&["default", "default", "other"]);
    several.components[1].alternatives[0].walltime_seconds = Some(60);
    let several = cluster.submit("ada", several);
    cluster.ok(&user("ada"), to_other(several));
    assert_eq!(walltimes(&cluster, several), [Some(3600), Some(60), Some(3600)]);
    let queues: Vec<_> = cluster.state.job(several).unwrap().queues().map(|name| name.to_string()).collect();
    assert_eq!(queues, ["other"]);
    // A walltime changed together with the queue counts, not the previous one.
    let mut long = in_queues(&["default"]);
    long.components[0].alternatives[0].walltime_seconds = Some(7200);
    let long = cluster.submit("ada", long);
    cluster.refused(&user("ada"), to_other(long), RefusalCode::LimitReached, "more than queue `other` allows");
    let change = JobChange { queue: Some("other".into()), walltime_seconds: Some(90), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[long]), change });
    assert_eq!(walltimes(&cluster, long), [Some(90)]);
    cluster.assert_replays();
}

#[test]
fn each_component_that_is_changed_has_the_defaults_of_its_own_queue() {
    let mut cluster = with_walltimes(Some(7200), None);
    let mut queues = cluster.state.queues().map(|queue| queue.spec.as_ref().clone()).collect::<Vec<_>>();
    queues.push(QueueSpec { max_walltime_seconds: Some(3600), ..queue("short") });
    let change = Box::new(ClusterConfig { queues, ..config() }.into());
    cluster.ok(&root(), Command::Configure { change, keep_unnamed: true });
    let id = cluster.submit("ada", in_queues(&["other", "short", "default"]));
    assert_eq!(walltimes(&cluster, id), [Some(7200), Some(3600), None]);
    let alternatives = Some(vec![job(1, 2).components[0].alternatives[0].clone()]);
    let change = JobChange { alternatives, name: Some("wider".into()), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change });
    assert_eq!(walltimes(&cluster, id), [Some(7200), Some(3600), None]);
    let changed = cluster.state.job(id).unwrap();
    assert_eq!(&*changed.name, "wider");
    let wider = &job(1, 2).components[0].alternatives[0].requests;
    assert!(changed.components.iter().all(|component| component.shape.alternatives[0].requests == *wider));
    cluster.assert_replays();
}

#[test]
fn changes_that_are_refused() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let modify = |change| Command::Modify { jobs: ids(&[id]), change };
    let ada = user("ada");
    cluster.refused(&ada, modify(JobChange::default()), RefusalCode::Invalid, "nothing");
    let queue = JobChange { queue: Some("nowhere".into()), ..JobChange::default() };
    cluster.refused(&ada, modify(queue), RefusalCode::NotFound, "nowhere");
    let component = JobChange { component: Some(1), priority: Some(1), ..JobChange::default() };
    cluster.refused(&ada, modify(component), RefusalCode::Invalid, "component");
    let limit = JobChange { max_running: Some(1), ..JobChange::default() };
    cluster.refused(&ada, modify(limit), RefusalCode::Conflict, "not an array");
    let alternatives = vec![job(9, 1).components[0].alternatives[0].clone()];
    let too_large = JobChange { alternatives: Some(alternatives), ..JobChange::default() };
    cluster.refused(&ada, modify(too_large), RefusalCode::Invalid, "can never run");
    cluster.start(id, &["node1"], 1);
    let account = JobChange { account: Some("late".into()), ..JobChange::default() };
    cluster.refused(
        &ada,
        modify(account),
        RefusalCode::Conflict,
        "only its name, walltime, priority, mails, attributes",
    );
}

/// SL-C-36: the name of a job does not affect where it runs.
#[test]
fn a_running_job_gets_another_name() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    cluster.start(id, &["node1"], 1);
    let name = JobChange { name: Some("late".into()), ..JobChange::default() };
    cluster.ok(&user("ada"), Command::Modify { jobs: ids(&[id]), change: name });
    assert_eq!(&*cluster.state.job(id).unwrap().name, "late");
    cluster.assert_replays();
}

#[test]
fn only_operators_lengthen_the_walltime_of_a_running_job() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].walltime_seconds = Some(100);
    let id = cluster.submit("ada", spec);
    cluster.start(id, &["node1"], 1);
    let walltime = |seconds| Command::Modify {
        jobs: ids(&[id]),
        change: JobChange { walltime_seconds: Some(seconds), ..JobChange::default() },
    };
    cluster.refused(&user("ada"), walltime(101), RefusalCode::PermissionDenied, "lengthen");
    cluster.ok(&user("ada"), walltime(50));
    cluster.ok(&user("oper"), walltime(500));
    let shape = &cluster.state.job(id).unwrap().lead().shape;
    assert_eq!(shape.alternatives[0].walltime_seconds, Some(500));
}

/// SL-M-07: the queue of a component limits the walltime of that component.
#[test]
fn the_walltime_of_a_component_is_held_against_its_own_queue() {
    let mut config = config();
    config.queues[1] = QueueSpec { max_walltime_seconds: Some(100), ..queue("other") };
    let mut cluster = Cluster::with(config);
    let mut spec = job(1, 1);
    spec.components.push(spec.components[0].clone());
    spec.components[0].queue = Some("other".into());
    spec.components[0].alternatives[0].walltime_seconds = Some(50);
    let id = cluster.submit("ada", spec);
    let walltime = |component| Command::Modify {
        jobs: ids(&[id]),
        change: JobChange { walltime_seconds: Some(500), component: Some(component), ..JobChange::default() },
    };
    cluster.ok(&user("ada"), walltime(1));
    cluster.refused(&user("ada"), walltime(0), RefusalCode::LimitReached, "walltime_seconds");
}

#[test]
fn a_finished_job_is_forgotten_after_its_retention() {
    let mut cluster = Cluster::with(ClusterConfig {
        settings: muster_schemas::cluster::ClusterSettings { finished_job_retention_seconds: 60, ..Default::default() },
        ..config()
    });
    let (old, kept) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[old, kept]) });
    // A job that depends on it keeps it in the state.
    let waits = cluster.submit("ada", after(DependencyKind::Failed, kept));
    cluster.ok(&user("ada"), Command::Hold { jobs: ids(&[waits]), holds: USER_HOLD, reason: String::new() });
    cluster.pass(61);
    cluster.submit("ada", job(1, 1));
    assert!(cluster.state.job(old).is_none());
    assert!(cluster.state.job(kept).is_some());
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[waits]) });
    cluster.pass(61);
    cluster.submit("ada", job(1, 1));
    assert!(cluster.state.job(kept).is_none());
    cluster.refused(&user("ada"), Command::Cancel { jobs: ids(&[old]) }, RefusalCode::NotFound, "ended too long ago");
    cluster.assert_replays();
}

#[test]
fn a_finished_job_can_be_queued_anew() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    cluster.run_through(id, 1);
    cluster.ok(&user("ada"), Command::Requeue { jobs: ids(&[id]), hold: true, delay_seconds: 0 });
    let job = cluster.state.job(id).unwrap();
    assert_eq!((job.attempts, cluster.state.job_state(job)), (1, JobState::Held));
    cluster.ok(&user("ada"), Command::Release { jobs: ids(&[id]), holds: USER_HOLD });
    cluster.run_through(id, 0);
    assert_eq!(cluster.outcome(id), Some(Outcome::Completed));
    assert_eq!(cluster.state.job(id).unwrap().attempts, 2);
    cluster.assert_replays();
}

#[test]
fn only_users_have_jobs() {
    let mut cluster = Cluster::new();
    for actor in [Actor::Ledger, Actor::Notifier, executor("node1")] {
        let command = Command::Submit { jobs: vec![job(1, 1)] };
        cluster.refused(&actor, command, RefusalCode::PermissionDenied, "only users");
    }
    // A scheduling program manages jobs, and submits none.
    let command = Command::Submit { jobs: vec![job(1, 1)] };
    cluster.refused(&Actor::Planner, command, RefusalCode::PermissionDenied, "the planner plans, manages jobs");
}

/// Gates are kept per component; a job is eligible when all its components are (SL-S-02).
#[test]
fn every_component_has_gates_of_its_own() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    let held = Component { holds: USER_HOLD, ..spec.components[0].clone() };
    spec.components.push(held);
    spec.components[0].alternatives = vec![Alternative::default()];
    let id = cluster.submit("ada", spec);
    assert!(!cluster.is_waiting(id));
    cluster.ok(&user("ada"), Command::Release { jobs: ids(&[id]), holds: USER_HOLD });
    assert!(cluster.is_waiting(id));
}

/// SL-S-02: a later component waits for its begin time, and so does the job, with that reason.
#[test]
fn a_job_waits_for_the_begin_of_a_later_component() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    let begin = cluster.now.plus_seconds(60);
    spec.components.push(Component { begin: Some(begin), ..spec.components[0].clone() });
    let id = cluster.submit("ada", spec);
    assert!(!cluster.is_waiting(id));
    let waiting = cluster.state.job(id).expect("it waits");
    assert_eq!(cluster.state.wait_reason(waiting), Some(WaitReason::BeginTime(begin)));
    cluster.pass(60);
    cluster.tick();
    assert!(cluster.is_waiting(id));
}
