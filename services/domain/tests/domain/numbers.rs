//! Numbers of jobs: the first one, and those of tasks of arrays (SL-C-18, SL-I-04).

use crate::support::*;
use muster_domain::State;
use muster_schemas::{
    JobId, PartId,
    cluster::{ClusterConfig, ClusterSettings},
    command::{Command, RefusalCode, Reply},
    event::{Actor, Event, Owner},
    job::{DependencyKind, JobSpec, Outcome},
    node::JOB_NUMBER_VARIABLE,
    resources::IndexSet,
};
use std::sync::Arc;

fn numbers(cluster: &Cluster, ids: &[JobId]) -> Vec<u64> {
    ids.iter().map(|id| cluster.state.number_of(*id)).collect()
}

fn indices(text: &str) -> IndexSet {
    text.parse().expect("a set")
}

#[test]
fn each_task_of_an_array_has_a_number_of_its_own() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(indices("2,4-6"), None));
    let next = cluster.submit("ada", job(1, 1));
    assert_eq!((whole, next), (JobId::job(1), JobId::job(5)));
    let tasks: Vec<JobId> = [2, 4, 5, 6].map(|index| JobId::task(1, index)).into();
    assert_eq!(numbers(&cluster, &tasks), [1, 2, 3, 4]);
    // The first number is that of the array, just as a plain job's number is its own.
    let meant: Vec<JobId> = (1..=6).map(|number| cluster.state.id_meant(JobId::job(number))).collect();
    assert_eq!(meant, [whole, tasks[1], tasks[2], tasks[3], next, JobId::job(6)]);
    assert_eq!(cluster.state.job_of_number(3), Some(tasks[2]));
    assert_eq!(cluster.state.job_of_number(6), None);
    // A task has its number before it starts, while it runs and afterwards.
    let run = cluster.start(tasks[2], &["node1"], 1);
    assert_eq!((cluster.state.number_of(tasks[2]), cluster.state.id_meant(JobId::job(3))), (3, tasks[2]));
    cluster.end(run, "node1", muster_schemas::job::ExitStatus::Code(0));
    assert_eq!(cluster.state.number_of(tasks[2]), 3);
    cluster.assert_replays();
}

#[test]
fn a_task_is_acted_on_by_its_number() {
    let mut cluster = Cluster::new();
    let whole = cluster.submit("ada", array(indices("1-4"), None));
    let second = JobId::job(2);
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[second, JobId::task(1, 2)]) });
    let cancelled = Event::TasksFinished { job: whole, indices: indices("2"), outcome: Outcome::Cancelled };
    assert_eq!(events, [cancelled]);
    let (_, reply) = cluster.run(&user("ada"), Command::Cancel { jobs: ids(&[JobId::job(3)]) }).expect("it waits");
    assert_eq!(reply, Reply::Jobs(vec![JobId::task(1, 3)]));
    let dependent = cluster.submit("ada", after(DependencyKind::Succeeded, JobId::job(4)));
    let on = cluster.state.job(dependent).and_then(|job| job.lead().extras.as_ref()?.dependencies[0][0].dependency.job);
    assert_eq!(on, Some(JobId::task(1, 4)));
    cluster.run_through(JobId::task(1, 1), 0);
    assert!(!cluster.is_waiting(dependent));
    cluster.run_through(JobId::task(1, 4), 0);
    assert!(cluster.is_waiting(dependent));
    // The number of the array means all of it.
    cluster.refused(&user("ada"), Command::Cancel { jobs: ids(&[whole]) }, RefusalCode::Conflict, "job 1");
    cluster.assert_replays();
}

#[test]
fn what_is_launched_is_told_its_number() {
    let mut cluster = Cluster::new();
    let spec = array(indices("7-9"), None);
    cluster.submit("ada", spec.clone());
    let environment = |cluster: &Cluster, run, spec: &JobSpec| {
        let order = crate::written::launch_order(&cluster.state, run, cluster.node_id("node1"), spec);
        let order = order.expect("it was allocated");
        (order.number(), order.environment.get(JOB_NUMBER_VARIABLE).cloned())
    };
    let run = cluster.allocate(JobId::task(1, 9), &["node1"], 1);
    assert_eq!(environment(&cluster, PartId::new(run, 0), &spec), (3, Some("3".to_owned())));
    let plain = cluster.submit("ada", job(1, 1));
    let run = cluster.allocate(plain, &["node1"], 1);
    assert_eq!(environment(&cluster, PartId::new(run, 0), &job(1, 1)), (4, None));
}

/// A log of an earlier release has an array that took one number: it keeps that, and the next array takes a number per
/// task.
#[test]
fn an_array_of_an_older_log_keeps_its_one_number() {
    let mut cluster = Cluster::new();
    let owner = Arc::new(Owner { user: "ada".into(), uid: 1, gid: 1 });
    let submitted = |number: u64, spec: JobSpec| Event::JobSubmitted {
        job: JobId::job(number),
        owner: owner.clone(),
        spec: Arc::new(spec),
        intake: None,
    };
    let complete = |spec: JobSpec| JobSpec { name: "old".into(), ..spec };
    cluster.append(
        &user("ada"),
        vec![submitted(1, complete(array(indices("1-5"), None))), submitted(2, complete(job(1, 1)))],
    );
    assert_eq!(cluster.state.next_job_number(), 3);
    let old = JobId::task(1, 4);
    assert_eq!((cluster.state.number_of(old), cluster.state.id_meant(JobId::job(2))), (1, JobId::job(2)));
    let (events, _) = cluster
        .run(&user("ada"), Command::Submit { jobs: vec![array(indices("0-2"), None), job(1, 1)] })
        .expect("valid");
    assert_eq!(events[0], Event::JobNumbersSet { first: 1 });
    assert!(matches!(events[1], Event::JobSubmitted { job, .. } if job == JobId::job(3)), "{events:?}");
    assert!(matches!(events[2], Event::JobSubmitted { job, .. } if job == JobId::job(6)), "{events:?}");
    assert_eq!((cluster.state.number_of(old), cluster.state.number_of(JobId::task(3, 2))), (1, 5));
    // This is recorded once.
    let (events, _) =
        cluster.run(&user("ada"), Command::Submit { jobs: vec![array(indices("0"), None)] }).expect("valid");
    assert!(matches!(events[..], [Event::JobSubmitted { .. }]), "{events:?}");
    cluster.assert_replays();
}

#[test]
fn the_numbers_of_tasks_are_known_as_long_as_one_of_them_is() {
    let mut config = config();
    config.settings = ClusterSettings { finished_job_retention_seconds: 60, ..config.settings };
    let mut cluster = Cluster::with(config);
    cluster.submit("ada", array(indices("1-2"), None));
    cluster.run_through(JobId::task(1, 1), 0);
    cluster.run_through(JobId::task(1, 2), 0);
    cluster.pass(50);
    // A job that another depends on is not forgotten.
    let waits = cluster.submit("ada", {
        let mut spec = after(DependencyKind::Failed, JobId::task(1, 2));
        spec.components[0].holds.user = true;
        spec
    });
    cluster.pass(20);
    cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.state.id_meant(JobId::job(2)), JobId::task(1, 2));
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[waits]) });
    cluster.pass(200);
    cluster.submit("ada", job(1, 1));
    assert_eq!(cluster.state.id_meant(JobId::job(2)), JobId::job(2));
    cluster.assert_replays();
}

/// SL-I-04: numbers continue from the one that is set, and never go back.
#[test]
fn the_first_number_can_be_set() {
    let mut config = config();
    config.first_job_number = Some(67_767);
    let mut cluster = Cluster::with(config.clone());
    assert_eq!(cluster.submit("ada", job(1, 1)), JobId::job(67_767));
    assert_eq!(cluster.submit("ada", array(indices("0-9"), None)), JobId::job(67_768));
    assert_eq!(cluster.submit("ada", job(1, 1)), JobId::job(67_778));
    let configure = |first| Command::Configure {
        change: Box::new(ClusterConfig { first_job_number: first, ..config.clone() }.into()),
        keep_unnamed: false,
    };
    assert_eq!(cluster.ok(&Actor::Ledger, configure(Some(67_767))), []);
    assert_eq!(cluster.ok(&Actor::Ledger, configure(None)), []);
    assert_eq!(cluster.ok(&Actor::Ledger, configure(Some(5))), [Event::JobNumbersSet { first: 5 }]);
    assert_eq!((cluster.state.first_job_number(), cluster.state.next_job_number()), (5, 67_779));
    cluster.refused(&Actor::Ledger, configure(Some(0)), RefusalCode::Invalid, "first_job_number");
    cluster.refused(&Actor::Ledger, configure(Some(u64::MAX)), RefusalCode::Invalid, "first_job_number");
    cluster.assert_replays();
    assert_eq!(State::new().first_job_number(), 1);
}
