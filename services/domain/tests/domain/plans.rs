//! Plans: each start is checked against the state and the starts before it.

use crate::support::*;
use muster_schemas::{
    JobId,
    cluster::{ClusterChange, ClusterSettingsChange, QueueSpec, QueueSpecChange},
    command::{Command, RefusalCode, RefusedStart, Reply, Start},
    cycle::{ProgramCycle, RefusedAction},
    event::{Actor, Event, JobChange, WaitingJob},
    job::{Holds, WaitReason},
    plan::ProposedPlan,
    policy::Policy,
    resources::{ComponentPlacement, IndexSet, Placement, Sharing},
};

/// The reasons for which the starts of one plan are refused.
fn plan(cluster: &mut Cluster, starts: Vec<Start>) -> Vec<RefusedStart> {
    match cluster.run(&Actor::Planner, commit(starts)) {
        Ok((_, Reply::Planned(refused))) => refused,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_refused(cluster: &mut Cluster, job: JobId, placement: Placement, words: &str) {
    let refused = plan(cluster, vec![Start { job, placement }]);
    assert!(refused.len() == 1 && refused[0].reason.contains(words), "`{words}` expected: {refused:?}");
}

/// The planner is a client with a separate role; no other client plans (PBS-C-08).
#[test]
fn only_the_planner_plans() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let command = cluster.start_command(id, &["node1"], 1);
    cluster.refused(&root(), command, RefusalCode::PermissionDenied, "only the planner");
}

/// PBS-C-08: a scheduling program may do with jobs and switches of queues what a manager may do, and nothing else.
#[test]
fn the_planner_manages_jobs_and_switches_queues() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let holds = Holds { system: true, ..Holds::default() };
    cluster.ok(&Actor::Planner, Command::Hold { jobs: ids(&[id]), holds, reason: "test".into() });
    assert_eq!(cluster.state.job(id).unwrap().holds(), holds);
    cluster.ok(&Actor::Planner, Command::Release { jobs: ids(&[id]), holds });
    let change = JobChange { queue: Some("other".into()), priority: Some(3), ..JobChange::default() };
    cluster.ok(&Actor::Planner, Command::Modify { jobs: ids(&[id]), change });
    assert_eq!(&*cluster.state.job(id).unwrap().lead().queue, "other");
    let stop = |name: &str| {
        let queue = QueueSpecChange { name: name.into(), started: Some(false), ..QueueSpecChange::default() };
        ClusterChange { queues: vec![queue], ..ClusterChange::default() }
    };
    let configure = |change: ClusterChange| Command::Configure { change: Box::new(change), keep_unnamed: true };
    cluster.ok(&Actor::Planner, configure(stop("other")));
    assert!(!cluster.state.queue("other").unwrap().spec.started);
    let mut is_refused = |command| {
        cluster.refused(&Actor::Planner, command, RefusalCode::PermissionDenied, "the planner plans, manages jobs");
    };
    is_refused(configure(stop("new")));
    let mut larger = stop("other");
    larger.queues[0].max_jobs = Some(5);
    is_refused(configure(larger));
    let settings = ClusterSettingsChange { operators: Some(vec!["eve".into()]), ..ClusterSettingsChange::default() };
    is_refused(configure(ClusterChange { settings, ..ClusterChange::default() }));
    is_refused(Command::SetPolicy { policy: Box::default() });
    is_refused(Command::DrainNodes { nodes: vec!["node1".into()], reason: String::new(), is_down: false });
    // Its starts can be told to be past stopped queues (PBS-C-09), and not past scheduling that is off (PBS-C-03).
    let placement = cluster.placement(&["node1"], 1);
    let starts = vec![Start { job: id, placement }];
    assert!(plan(&mut cluster, starts.clone())[0].reason.contains("queue is stopped"));
    let ordered = ProposedPlan { starts, is_ordered: true, ..ProposedPlan::default() };
    let ordered = Command::CommitPlan { plan: Box::new(ordered) };
    let idle = |is_idle| {
        let settings = ClusterSettingsChange { is_idle: Some(is_idle), ..ClusterSettingsChange::default() };
        configure(ClusterChange { settings, ..ClusterChange::default() })
    };
    cluster.ok(&Actor::Planner, idle(true));
    let Ok((_, Reply::Planned(refused))) = cluster.run(&Actor::Planner, ordered.clone()) else { panic!("planned") };
    assert_eq!(refused.len(), 1);
    cluster.ok(&Actor::Planner, idle(false));
    let events = cluster.ok(&Actor::Planner, ordered);
    assert!(events.iter().any(|event| matches!(event, Event::RunAllocated { job, .. } if *job == id)), "{events:?}");
    cluster.assert_replays();
}

/// PBS-C-11: a cycle of a program is on record with the next number and bounded texts, and only the planner tells it.
#[test]
fn cycles_of_programs_are_numbered_and_bounded() {
    let mut cluster = Cluster::new();
    let cycle = || ProgramCycle {
        number: 77,
        program: "basl:".to_owned() + &"x".repeat(5_000),
        refusals: vec![RefusedAction { reason: "é".repeat(2_000), ..RefusedAction::default() }; 500],
        globals: Some("x".repeat(100_000)),
        ..ProgramCycle::default()
    };
    let note = || Command::NoteCycle { cycle: Box::new(cycle()) };
    cluster.refused(&root(), note(), RefusalCode::PermissionDenied, "only the planner");
    for number in 1..=2 {
        cluster.ok(&Actor::Planner, note());
        let known = cluster.state.program_cycle().expect("a cycle");
        assert_eq!((known.number, known.refusals.len(), &known.globals), (number, 100, &None));
        assert!(known.program.len() <= 1_024 && known.refusals.iter().all(|refusal| refusal.reason.len() <= 1_024));
    }
    cluster.assert_replays();
}

/// PBS-T-05: warnings about the files of a policy are on record, bounded, and only an administrator tells them.
#[test]
fn warnings_about_a_policy_are_on_record() {
    let mut cluster = Cluster::new();
    let warn = |warnings: Vec<String>| Command::WarnOfPolicy { name: "day".into(), warnings };
    cluster.refused(&user("ada"), warn(vec!["old".into()]), RefusalCode::PermissionDenied, "warn of a policy");
    cluster.refused(&root(), warn(Vec::new()), RefusalCode::Invalid, "at least one");
    let events = cluster.ok(&root(), warn(vec!["é".repeat(400); 103]));
    let [Event::PolicyWarned { name, warnings }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((name.as_str(), warnings.len(), warnings[0].len()), ("day", 101, 500));
    assert_eq!(warnings[100], "3 more");
    cluster.assert_replays();
}

#[test]
fn starts_of_one_plan_see_each_other() {
    let mut cluster = Cluster::new();
    let jobs: Vec<JobId> = (0..3).map(|_| cluster.submit("ada", job(1, 2))).collect();
    let placement = cluster.placement(&["node1"], 2);
    let starts = jobs.iter().map(|job| Start { job: *job, placement: placement.clone() }).collect();
    let refused = plan(&mut cluster, starts);
    assert_eq!(refused.len(), 2, "one place is given once");
    let rest = Start { job: jobs[1], placement: cluster.placement(&["node1"], 2) };
    assert_eq!(plan(&mut cluster, vec![rest.clone(), rest]).len(), 1, "and one job started once");
    cluster.assert_replays();
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(2, 2));
    let good = cluster.placement(&["node1", "node2"], 2);
    let change = |change: &dyn Fn(&mut ComponentPlacement)| {
        let mut placement = good.clone();
        change(&mut placement.components[0]);
        placement
    };
    let mut check = |placement, words| assert_refused(&mut cluster, id, placement, words);
    check(Placement::default(), "0 components are placed, the job has 1");
    check(change(&|placed| drop(placed.shares.pop())), "1 nodes are given");
    check(change(&|placed| placed.shares[0].cores = IndexSet::first_n(1)), "3 cores are given");
    check(change(&|placed| placed.shares[0].cores = IndexSet::from_range(3, 4)), "does not have these cores");
    check(change(&|placed| placed.shares[0].gpus = IndexSet::first_n(1)), "does not have these GPUs");
    check(change(&|placed| placed.shares[0].memory_bytes = 9 * GIB), "does not have this memory");
    check(change(&|placed| placed.shares[0].node.0 = 99), "does not exist");
    check(change(&|placed| placed.shares[1] = placed.shares[0].clone()), "placed twice");
    check(change(&|placed| placed.alternative = 1), "alternative");
    check(change(&|placed| placed.shares[0].tasks = 0), "tasks are given");
    cluster
        .ok(&user("oper"), Command::DrainNodes { nodes: vec!["node1".into()], reason: "fan".into(), is_down: false });
    assert_refused(&mut cluster, id, good.clone(), "node1 is not available");
    cluster.ok(&user("oper"), Command::ResumeNodes { nodes: vec!["node1".into()] });
    cluster.ok(&user("ada"), Command::Cancel { jobs: ids(&[id]) });
    assert_refused(&mut cluster, id, good, "no longer waits");
}

/// SL-P-07
#[test]
fn components_share_nodes_only_exactly_and_if_the_policy_lets_them() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.components.push(job(1, 1).components.remove(0));
    let id = cluster.submit("ada", spec);
    let part = |cores| cluster.placement(&["node1"], cores).components.remove(0);
    let (mut first, mut second) = (part(1), part(2));
    first.shares[0].memory_bytes = GIB;
    (second.shares[0].cores, second.shares[0].memory_bytes) = (IndexSet::from_range(1, 2), GIB);
    let with = |change: &dyn Fn(&mut ComponentPlacement)| {
        let mut second = second.clone();
        change(&mut second);
        Placement { components: vec![first.clone(), second] }
    };
    let good = with(&|_| {});
    assert_refused(&mut cluster, id, good.clone(), "the policy lets none share it");
    let mut policy = Policy::default();
    policy.backfill.components.share_nodes = true;
    cluster.ok(&Actor::Ledger, Command::SetPolicy { policy: Box::new(policy) });
    let mut check = |placement, words| assert_refused(&mut cluster, id, placement, words);
    check(with(&|placed| placed.shares[0].cores = IndexSet::first_n(2)), "have the same cores");
    check(with(&|placed| placed.shares[0].exclusive = true), "one of them wants for itself");
    check(with(&|placed| placed.shares[0].memory_bytes = 8 * GIB), "does not have this memory free");
    check(with(&|placed| placed.shares.push(placed.shares[0].clone())), "twice on the same node");
    assert!(plan(&mut cluster, vec![Start { job: id, placement: good }]).is_empty());
}

#[test]
fn a_shut_gate_is_the_reason() {
    let mut cluster = Cluster::new();
    let id = cluster.submit("ada", job(1, 1));
    let holds = muster_schemas::job::Holds { user: true, ..Default::default() };
    cluster.ok(&user("ada"), Command::Hold { jobs: ids(&[id]), holds, reason: String::new() });
    let placement = cluster.placement(&["node1"], 1);
    assert_refused(&mut cluster, id, placement, "held by user");
}

#[test]
fn exclusive_nodes_serve_one_job() {
    let mut cluster = Cluster::new();
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].requests[0].sharing = Sharing::Exclusive;
    let (alone, alone_too, shared) =
        (cluster.submit("ada", spec.clone()), cluster.submit("ada", spec), cluster.submit("ada", job(1, 1)));
    let mut placement = cluster.placement(&["node1"], 1);
    assert_refused(&mut cluster, alone, placement.clone(), "for itself");
    placement.components[0].shares[0].exclusive = true;
    assert!(plan(&mut cluster, vec![Start { job: alone, placement }]).is_empty());
    let on_node1 = cluster.placement(&["node1"], 1);
    assert_refused(&mut cluster, shared, on_node1, "exclusively");
    cluster.start(shared, &["node2"], 1);
    let mut on_node2 = cluster.placement(&["node2"], 1);
    on_node2.components[0].shares[0].exclusive = true;
    assert_refused(&mut cluster, alone_too, on_node2, "not empty");
}

#[test]
fn licences_and_queue_limits() {
    let mut config = config();
    config.queues[1] = QueueSpec {
        max_running_jobs: Some(2),
        max_running_jobs_per_user: Some(1),
        nodes: vec!["node3".into()],
        ..queue("other")
    };
    let mut cluster = Cluster::with(config);
    let mut spec = job(1, 1);
    spec.components[0].alternatives[0].licences = [("ansys".to_owned(), 2)].into();
    let (first, second) = (cluster.submit("ada", spec.clone()), cluster.submit("ada", spec));
    cluster.start(first, &["node1"], 1);
    let placement = cluster.placement(&["node1"], 1);
    assert_refused(&mut cluster, second, placement, "1 of licence `ansys` are free");
    let mut spec = job(1, 1);
    spec.components[0].queue = Some("other".into());
    let jobs = ["ada", "ada", "bob", "cy"].map(|name| cluster.submit(name, spec.clone()));
    let elsewhere = cluster.placement(&["node1"], 1);
    assert_refused(&mut cluster, jobs[0], elsewhere, "does not serve queue `other`");
    cluster.start(jobs[0], &["node3"], 1);
    let placement = cluster.placement(&["node3"], 1);
    assert_refused(&mut cluster, jobs[1], placement, "user ada has reached");
    cluster.start(jobs[2], &["node3"], 1);
    let placement = cluster.placement(&["node3"], 1);
    assert_refused(&mut cluster, jobs[3], placement, "queue `other` has reached its limit");
}

#[test]
fn only_news_is_recorded_of_reasons() {
    let mut cluster = Cluster::new();
    let (id, started) = (cluster.submit("ada", job(1, 1)), cluster.submit("ada", job(1, 1)));
    cluster.start(started, &["node1"], 1);
    let why = |job, what: &str| WaitingJob { job, reason: WaitReason::Resources(what.into()) };
    let reasons = |reasons: Vec<WaitingJob>| Command::CommitPlan {
        plan: Box::new(ProposedPlan { reasons, ..ProposedPlan::default() }),
    };
    let events =
        cluster.ok(&Actor::Planner, reasons(vec![why(id, "cores"), why(started, "cores"), why(JobId::job(9), "x")]));
    assert!(matches!(events.as_slice(), [Event::Planned { plan }] if plan.reasons.len() == 1), "{events:?}");
    let job = cluster.state.job(id).unwrap();
    assert_eq!(cluster.state.wait_reason(job), Some(WaitReason::Resources("cores".into())));
    assert!(cluster.ok(&Actor::Planner, reasons(vec![why(id, "cores")])).is_empty());
    assert_eq!(cluster.ok(&Actor::Planner, reasons(vec![why(id, "nodes")])).len(), 1);
    cluster.assert_replays();
}
