//! Activation filters of running jobs that could grow.

use super::support::*;
use crate::{
    lists::{basic, list},
    support::*,
};
use muster_schemas::{
    JobId, PartId,
    command::{CallOutcome, Command},
    event::{Actor, Event, Intake},
    filter::{FilterExit, FilterSettings},
    job::{JobSpec, Launch, WaitReason},
    plan::{ProposedGrowth, ProposedPlan},
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
};

/// A list of ten tasks of one core each, on two to four cores.
fn tasks_of(cluster: &mut Cluster, template: &str) -> JobId {
    let mut spec: JobSpec = cores(2, 4, 2000);
    spec.components[0].launch = Launch::default();
    let tasks = list(2, 4, vec![basic(); 10]);
    let intake = Intake { template: Some(template.into()), tasks: Some(tasks), ..Intake::default() };
    cluster.intake(spec, intake).0
}

/// Two nodes with two cores each: J1 runs on node1, J2 waits, node2 is free.
fn growing() -> (Cluster, JobId, JobId) {
    let mut cluster = cluster(2, 2);
    cluster.set_template("t", &[], &[filter("A")]);
    let j1 = tasks_of(&mut cluster, "t");
    cluster.offer_cores(j1, 2);
    cluster.answer(j1, code(0));
    let run = cluster.run_of(j1).expect("it has its resources");
    cluster.ok(&executor("node1"), Command::NodeStarted { part: PartId::new(run, 0) });
    cluster.tick();
    let j2 = cluster.submit("ada", cores(2, 2, 2000));
    (cluster, j1, j2)
}

fn addition(cluster: &Cluster) -> Placement {
    let node = cluster.state.node_by_name("node2").expect("it is there");
    let share = NodeShare {
        node: node.id,
        cores: node.free_cores.clone(),
        gpus: IndexSet::new(),
        memory_bytes: 0,
        tasks: 2,
        exclusive: false,
    };
    Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] }
}

fn grow(cluster: &mut Cluster, job: JobId) -> Vec<Event> {
    let growth = ProposedGrowth { job, added: addition(cluster), count: 2, current: 2 };
    let plan = ProposedPlan { growths: vec![growth], pass: 7, epoch: 1, ..ProposedPlan::default() };
    cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) })
}

/// X-6 (HPC-F-33, F-61, S-11)
#[test]
fn verdict_0_lets_the_job_grow() {
    let (mut cluster, j1, j2) = growing();
    assert_eq!(words(&grow(&mut cluster, j1)), ["filter.chain_started", "plan.made"]);
    assert_eq!(cluster.asked(j1).as_deref(), Some("A filter 7 0 false 2"));
    let seed = cluster.seed(j1).expect("it is outstanding");
    assert_eq!(seed.state, muster_schemas::job::JobState::Running);
    assert!(cluster.refused_start(j2, 2).contains("are given"), "nothing is free meanwhile");
    let events = cluster.answer(j1, code(0));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_passed", "job.grown"]);
    assert_eq!(cluster.running_on(j1), 4);
    cluster.assert_replays();
}

/// X-6 (HPC-F-33, F-34)
#[test]
fn every_other_verdict_leaves_the_job_as_it_is_and_others_get_the_resources() {
    for exit in [
        FilterExit::Code(1),
        FilterExit::Code(2),
        FilterExit::Code(3),
        FilterExit::Code(4),
        FilterExit::Code(5),
        FilterExit::TimedOut,
        FilterExit::NotFound("/opt/filters/A".into()),
    ] {
        let (mut cluster, j1, j2) = growing();
        grow(&mut cluster, j1);
        let events = cluster.answer(j1, ended(exit.clone()));
        assert!(words(&events).contains(&"job.grow_rejected".into()), "{events:?}");
        assert_eq!(cluster.running_on(j1), 2, "{exit}");
        assert_eq!(cluster.warnings(j1).len(), usize::from(exit != FilterExit::Code(1)), "{exit}");
        assert_eq!(cluster.state.queue_block(), None);
        cluster.offer_cores(j2, 2);
        assert_eq!(cluster.running_on(j2), 2, "{exit}");
        cluster.assert_replays();
    }
}

/// X-6 (HPC-F-34)
#[test]
fn the_next_offer_is_ten_seconds_later_at_the_earliest() {
    let (mut cluster, j1, _) = growing();
    grow(&mut cluster, j1);
    cluster.answer(j1, code(1));
    cluster.pass(9);
    assert!(!words(&grow(&mut cluster, j1)).contains(&"filter.chain_started".into()));
    cluster.pass(1);
    assert!(words(&grow(&mut cluster, j1)).contains(&"filter.chain_started".into()));
}

/// HPC-F-34: the interval is a setting, not always ten seconds.
#[test]
fn the_next_offer_waits_for_the_interval_that_is_set() {
    let (mut cluster, j1, _) = growing();
    let settings =
        FilterSettings { retry_interval_seconds: 30, ..FilterSettings::clone(cluster.state.filter_settings()) };
    cluster.ok(&root(), Command::SetParameters { filters: Some(Box::new(settings)), scheduling: None });
    grow(&mut cluster, j1);
    cluster.answer(j1, code(1));
    cluster.pass(29);
    assert!(!words(&grow(&mut cluster, j1)).contains(&"filter.chain_started".into()));
    cluster.pass(1);
    assert!(words(&grow(&mut cluster, j1)).contains(&"filter.chain_started".into()));
}

/// HPC-F-39
#[test]
fn a_run_that_ends_during_the_call_leaves_nothing_set_aside() {
    let (mut cluster, j1, j2) = growing();
    grow(&mut cluster, j1);
    let run = cluster.run_of(j1).expect("it runs");
    let call = cluster.claim("r1", j1);
    cluster.hello("node1", "boot2", &[]);
    assert!(cluster.state.run(run).is_none());
    cluster.offer_cores(j2, 2);
    let events = cluster.report("r1", call, CallOutcome::Called(Box::new(code(0))));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_failed"]);
    assert_eq!(cluster.asked(j1).as_deref(), Some("A revert 7 0 false 2"));
    cluster.answer(j1, code(0));
    cluster.assert_replays();
}

/// HPC-S-15
#[test]
fn jobs_make_way_only_after_the_verdict() {
    use muster_schemas::{plan::ProposedPreemption, scheduling::*};
    let (mut cluster, j1, _) = growing();
    let settings = SchedulingSettings {
        mode: Some(SchedulingMode::Queued),
        preemption: Some(Preemption::Immediate),
        ..SchedulingSettings::default()
    };
    cluster.ok(&root(), Command::SetParameters { filters: None, scheduling: Some(Box::new(settings)) });
    let high = cluster.queue("t", cores(4, 4, 3000));
    let propose = |cluster: &mut Cluster| {
        let preemption = ProposedPreemption {
            for_job: high,
            victims: vec![j1],
            claims: vec![Placement::default()],
            index: 1,
            count: 4,
        };
        let plan = ProposedPlan { preemptions: vec![preemption], pass: 8, epoch: 1, ..ProposedPlan::default() };
        cluster.ok(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) })
    };
    assert_eq!(words(&propose(&mut cluster))[0], "filter.chain_started");
    assert_eq!(cluster.asked(high).as_deref(), Some("A filter 8 1 false 4"));
    cluster.answer(high, code(2));
    assert_eq!(cluster.running_on(j1), 2, "a filter that says no costs nobody anything");
    assert_eq!(cluster.reason(high), Some(WaitReason::ActivationFilter("A".into())));
    cluster.pass(10);
    propose(&mut cluster);
    let events = cluster.answer(high, code(0));
    assert_eq!(words(&events), ["filter.verdict", "filter.chain_passed", "job.stopping"]);
    let events = cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[high]) });
    assert_eq!(words(&events), ["job.finished", "filter.chain_failed"]);
    assert_eq!(cluster.asked(high).as_deref(), Some("A revert 8 1 false 4"), "it did not start after all");
    cluster.answer(high, code(0));
    cluster.assert_replays();
}
