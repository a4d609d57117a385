//! Jobs with a fixed start.

use crate::support::*;
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings},
    command::{Command, RefusalCode, Start},
    event::{Actor, Event, JobChange, WaitingJob},
    job::{JobSpec, JobState, JobType, Outcome, WaitReason},
    plan::{PlannedSlot, ProposedPlan, SlotSpec},
    resources::IndexSet,
};
use std::sync::Arc;

/// A job that starts this many seconds from now and runs for that many.
fn reserved(cluster: &Cluster, after: i64, seconds: u64) -> JobSpec {
    let mut spec = JobSpec { types: vec![JobType::FixedStart], ..job(1, 2) };
    spec.components[0].begin = Some(cluster.now.plus_seconds(after));
    spec.components[0].alternatives[0].walltime_seconds = Some(seconds);
    spec
}

fn commits(cluster: &mut Cluster, plan: ProposedPlan) -> Vec<Event> {
    let plan = ProposedPlan { seen: cluster.state.sequence(), at: cluster.now, ..plan };
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) })
}

fn promise(cluster: &mut Cluster, job: JobId, start: Option<Timestamp>) {
    let placement = Arc::new(cluster.placement(&["node1"], 2));
    let slot = start.map(|start| SlotSpec { start, placement });
    commits(cluster, ProposedPlan { slots: vec![PlannedSlot { job, slot }], ..ProposedPlan::default() });
}

fn slot(cluster: &Cluster, job: JobId) -> Option<Timestamp> {
    cluster.state.job(job).and_then(|job| job.slot.as_ref()).map(|slot| slot.start)
}

fn starts(cluster: &mut Cluster, job: JobId) -> Vec<Event> {
    let start = Start { job, placement: cluster.placement(&["node1"], 2) };
    commits(cluster, ProposedPlan { starts: vec![start], ..ProposedPlan::default() })
}

/// OAR-G-11, OAR-G-13: it is planned at once, starts when its time has come, and no plan takes its promise back.
#[test]
fn a_promised_start_stays() {
    let mut cluster = Cluster::new();
    let spec = reserved(&cluster, 100, 60);
    let id = cluster.submit("ada", spec);
    let start = cluster.now.plus_seconds(100);
    assert!(cluster.is_waiting(id), "it does not wait for its begin time to be planned");
    promise(&mut cluster, id, Some(start));
    assert_eq!(slot(&cluster, id), Some(start));
    assert_eq!(cluster.state.wait_reason(cluster.state.job(id).unwrap()), Some(WaitReason::Reserved { start }));
    promise(&mut cluster, id, None);
    promise(&mut cluster, id, Some(start.plus_seconds(1)));
    assert_eq!(slot(&cluster, id), Some(start), "whatever a planner says");
    assert!(starts(&mut cluster, id).iter().all(|event| !matches!(event, Event::RunAllocated { .. })), "too early");
    cluster.pass(100);
    let events = starts(&mut cluster, id);
    assert!(matches!(&events[..], [Event::RunAllocated { .. }, ..]), "{events:?}");
    cluster.assert_replays();
}

/// OAR-G-11: a job that cannot be promised its start ends, and says why.
#[test]
fn a_start_that_cannot_be_promised_is_refused() {
    let mut cluster = Cluster::new();
    let spec = reserved(&cluster, 100, 60);
    let (id, promised) = (cluster.submit("ada", spec.clone()), cluster.submit("ada", spec));
    let plain = cluster.submit("ada", job(1, 1));
    let start = cluster.now.plus_seconds(100);
    promise(&mut cluster, promised, Some(start));
    let told = |job| WaitingJob { job, reason: WaitReason::NeverFits("no room; it could start later".into()) };
    let reasons = vec![told(id), told(id), told(promised), told(plain)];
    commits(&mut cluster, ProposedPlan { reasons, ..ProposedPlan::default() });
    let why = "[NotAvailable] no room; it could start later";
    assert_eq!(cluster.outcome(id), Some(Outcome::Refused(why.into())));
    assert!(cluster.is_waiting(promised) && cluster.is_waiting(plain), "only what was promised nothing is over");
    cluster.assert_replays();
}

/// OAR-G-13, OAR-G-14: a late start keeps its end; a start that never came is an error once its time has passed.
#[test]
fn a_late_start_is_shorter_and_a_missed_one_is_over() {
    let mut cluster = Cluster::new();
    let spec = reserved(&cluster, 100, 60);
    let (late, missed) = (cluster.submit("ada", spec.clone()), cluster.submit("ada", spec));
    let start = cluster.now.plus_seconds(100);
    promise(&mut cluster, late, Some(start));
    promise(&mut cluster, missed, Some(start));
    cluster.pass(start.plus_seconds(21).micros_since(cluster.now) / 1_000_000);
    let events = starts(&mut cluster, late);
    let [Event::JobModified { change, .. }, Event::RunAllocated { .. }, ..] = &events[..] else { panic!("{events:?}") };
    let left = change.walltime_seconds.expect("it is shorter");
    assert!((35..=39).contains(&left), "{left}");
    cluster.pass(40);
    cluster.tick();
    assert_eq!(cluster.outcome(missed), Some(Outcome::DeadlineMissed));
    assert_eq!(cluster.state.job_state(cluster.state.job(late).unwrap()), JobState::Launching);
    cluster.assert_replays();
}

/// OAR-G-13: once it has waited long enough, it starts without the promised nodes that take no jobs, and with no fewer.
#[test]
fn a_promise_is_kept_without_the_nodes_that_are_gone() {
    let mut cluster = Cluster::new();
    let mut spec = reserved(&cluster, 100, 1000);
    spec.components[0].alternatives[0].requests[0].path[0].count = muster_schemas::resources::Count::exactly(3);
    let id = cluster.submit("ada", spec);
    let start = cluster.now.plus_seconds(100);
    let placement = Arc::new(cluster.placement(&["node1", "node2", "node3"], 2));
    let slots = vec![PlannedSlot { job: id, slot: Some(SlotSpec { start, placement }) }];
    commits(&mut cluster, ProposedPlan { slots, ..ProposedPlan::default() });
    let nodes = vec!["node3".to_owned()];
    cluster.ok(&user("oper"), Command::DrainNodes { nodes, reason: "broken".into(), is_down: false });
    cluster.pass(start.plus_seconds(290).micros_since(cluster.now) / 1_000_000);
    assert!(cluster.refused_on(id, &["node1", "node2"], 2).contains("2 nodes are given"), "it waits for the third");
    cluster.pass(20);
    assert!(cluster.refused_on(id, &["node1"], 2).contains("1 nodes are given"), "the second is there");
    assert!(cluster.refused_on(id, &["node1", "node2"], 1).contains("are given"), "it was promised two cores each");
    let rest = Start { job: id, placement: cluster.placement(&["node1", "node2"], 2) };
    let events = commits(&mut cluster, ProposedPlan { starts: vec![rest], ..ProposedPlan::default() });
    let [Event::JobModified { change, .. }, Event::RunAllocated { .. }, ..] = &events[..] else { panic!("{events:?}") };
    assert_eq!(change.attributes.get("muster.missing_nodes").map(String::as_str), Some("node3"));
    assert!(change.walltime_seconds.is_some_and(|left| left <= 700), "its end stays: {change:?}");
    cluster.assert_replays();
}

/// OAR-G-11
#[test]
fn what_has_no_time_of_its_own_is_refused_and_a_promised_time_cannot_be_changed() {
    let mut cluster = Cluster::new();
    let good = reserved(&cluster, 100, 60);
    let mut refused = |change: &dyn Fn(&mut JobSpec), why: &str| {
        let mut spec = good.clone();
        change(&mut spec);
        cluster.refused(&user("ada"), Command::Submit { jobs: vec![spec] }, RefusalCode::Invalid, why);
    };
    refused(&|spec| spec.components[0].begin = None, "no begin time");
    refused(&|spec| spec.components[0].alternatives[0].walltime_seconds = None, "no walltime");
    refused(&|spec| spec.components[0].alternatives.clear(), "not one request");
    refused(&|spec| spec.components.push(spec.components[0].clone()), "not one component");
    refused(&|spec| spec.array = array(IndexSet::first_n(2), None).array, "it is an array");
    let id = cluster.submit("ada", good);
    let change = JobChange { walltime_seconds: Some(6000), ..JobChange::default() };
    let modify = Command::Modify { jobs: ids(&[id]), change };
    cluster.refused(&user("ada"), modify, RefusalCode::Conflict, "has a fixed start");
}

/// OAR-G-15: a user has few jobs that wait for a fixed start; one that is over, and another user's, do not count; listed users are free.
#[test]
fn few_fixed_starts_wait_for_one_user() {
    let mut cluster = Cluster::new();
    let spec = reserved(&cluster, 100, 60);
    let first = cluster.submit("ada", spec.clone());
    cluster.submit("ada", spec.clone());
    let third = Command::Submit { jobs: vec![spec.clone()] };
    cluster.refused(&user("ada"), third, RefusalCode::LimitReached, "2 jobs of user ada");
    cluster.submit("bob", spec.clone());
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[first]) });
    cluster.submit("ada", spec);
    let free = ClusterSettings { unlimited_fixed_starts: vec!["ada".into()], ..config().settings };
    let mut cluster = Cluster::with(ClusterConfig { settings: free, ..config() });
    let spec = reserved(&cluster, 100, 60);
    for _ in 0..5 {
        cluster.submit("ada", spec.clone());
    }
}
