//! The planner's knowledge is kept between questions, which changes no answer.

use super::system::{System, array, ids, job, node};
use muster_client::{Client, Moment};
use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::Command,
    event::Actor,
    job::{Holds, JobSpec},
    policy::{Backfill, BackfillMode, ComponentStart, Components, Policy},
    resources::{Alternative, Request, Sharing},
    views::{DrainRequest, Explanation, HoldRequest, ReleaseRequest, Timetable},
};
use std::collections::BTreeSet;

/// A job with this many cores.
fn sized(cores: u32, walltime_seconds: u64) -> JobSpec {
    let mut spec = job("sized");
    let request = Request { tasks: Some(cores), ..Request::default() };
    let walltime_seconds = Some(walltime_seconds);
    spec.components[0].alternatives =
        vec![Alternative { requests: vec![request], walltime_seconds, ..Alternative::default() }];
    spec
}

/// Plans once and lets the ledger commit the plan, as the planner does.
fn plan(system: &System) {
    let commit = system.client().records(Sequence(1), 1 << 24).unwrap();
    let mut state = muster_domain::State::new();
    commit.records.iter().for_each(|record| state.apply(record).unwrap());
    let mut projection = muster_planner::projection::Projection::of(state);
    let planned = projection.plan(Timestamp::now(), &BTreeSet::new());
    system.command(Actor::Planner, Command::CommitPlan { plan: Box::new(planned.plan) });
}

/// All explanations and the timetable, for a future moment, so that they do not depend on the clock.
fn answers(client: &mut Client, jobs: &[JobId], at: Timestamp) -> (Vec<Explanation>, Timetable) {
    let explanations = jobs.iter().map(|job| client.explanation(*job, Moment::Time(at)).unwrap()).collect();
    (explanations, client.timetable(None, None, Moment::Time(at)).unwrap())
}

/// Keeping the planner's knowledge between questions changes no answer (M-GATE-5).
#[test]
fn what_is_kept_explains_as_what_is_made_anew() {
    let system = System::start();
    let at = Timestamp::now().plus_seconds(3_600);
    let mut client = system.client();
    ["node1", "node2"].iter().for_each(|node| system.hello(node));
    let mut jobs = Vec::new();
    let changes: [fn(&System, &[JobId]); 8] = [
        |system, _| plan(system),
        |system, jobs| {
            let holds = Holds { user: true, ..Holds::default() };
            let request = HoldRequest { jobs: ids(&jobs[1..3]).jobs, holds, reason: String::new() };
            system.client().hold(CommandId::new_now(), &request).unwrap();
        },
        |system, jobs| {
            let holds = Holds { user: true, ..Holds::default() };
            let request = ReleaseRequest { jobs: ids(&jobs[1..2]).jobs, holds };
            system.client().release(CommandId::new_now(), &request).unwrap();
        },
        |system, jobs| {
            system.client().cancel(CommandId::new_now(), &ids(&jobs[3..4])).unwrap();
        },
        |system, _| {
            let policy = Policy::built_in("conservative").unwrap();
            system.client().set_policy(CommandId::new_now(), &policy).unwrap();
        },
        |system, _| plan(system),
        |system, _| {
            let request = DrainRequest { nodes: vec!["node2".into()], reason: String::new(), is_down: false };
            system.client().drain(CommandId::new_now(), &request).unwrap();
        },
        |system, _| {
            let nodes = vec![node("node1"), node("node2")];
            let queues = ["default", "night"].map(|name| QueueSpec { name: name.into(), ..QueueSpec::default() });
            let config = ClusterConfig { nodes, queues: queues.into(), ..ClusterConfig::default() };
            system.client().configure(CommandId::new_now(), &config.into(), true).unwrap();
        },
    ];
    for (number, change) in (1..).zip(changes) {
        let specs = vec![sized(8, 600 * number), sized(3, 60 * number), sized(1, 7_200), array("sweep", "1-5")];
        jobs.extend(client.submit(CommandId::new_now(), &specs).unwrap().jobs);
        change(&system, &jobs);
        let (gateway, mut other) = system.other_gateway();
        assert_eq!(answers(&mut client, &jobs, at), answers(&mut other, &jobs, at), "after change {number}");
        system.stop(Some(gateway));
    }
}

/// SL-P-12, SL-P-06, EX-14: each component with the start and the nodes that the last pass found for it.
#[test]
fn components_show_their_own_expected_starts() {
    let system = System::start();
    ["node1", "node2"].iter().for_each(|node| system.hello(node));
    let mut client = system.client();
    let components = Components { start: ComponentStart::BackfillPass, ..Components::default() };
    let backfill = Backfill { mode: BackfillMode::Easy, components, ..Backfill::default() };
    let policy = Policy { backfill, ..Policy::default() };
    client.set_policy(CommandId::new_now(), &policy).unwrap();
    let on = |name: &str| {
        let mut spec = sized(1, 600);
        spec.components[0].alternatives[0].requests[0].nodes = vec![name.into()];
        spec.components[0].alternatives[0].requests[0].sharing = Sharing::WholeNodes;
        spec
    };
    let taken = client.submit(CommandId::new_now(), &[on("node2")]).unwrap().jobs[0];
    plan(&system);
    let mut several = on("node1");
    several.components.extend(on("node2").components);
    let job = client.submit(CommandId::new_now(), &[several]).unwrap().jobs[0];
    plan(&system);
    let shown = |client: &mut Client| client.job(job, Moment::Now).unwrap().job.by_component;
    let [first, second] = &shown(&mut client)[..] else { panic!("two components") };
    assert_eq!((&first.planned_nodes[..], &second.planned_nodes[..]), (&["node1".into()][..], &["node2".into()][..]));
    let run = client.job(taken, Moment::Now).unwrap().runs[0].allocated;
    let (one, other) = (first.expected_start.unwrap(), second.expected_start.unwrap());
    assert!(one < run.plus_seconds(60) && other == run.plus_seconds(600), "{one} and {other}, taken since {run}");
    let predicted = client.job(taken, Moment::Now).unwrap().job.by_component;
    assert!(predicted.is_empty(), "it has one component");
}
