//! Three planners agree: the engine that was told everything step by step, one that is told the outcome at once (in any
//! order), and the slow one of this folder.

use crate::{
    clusters::{ALL_MODES, Cluster},
    history::{Draft, History, Kind, Step, cases, histories},
    reference::{self, Outcome, World},
    twin::{Planned, engine_of, replay},
};
use muster_planner::{
    Engine,
    model::{ComponentDemand, Demand, Holder, Slot},
    pass::Plan,
};
use muster_schemas::{
    JobId, Timestamp,
    cluster::QueueSpec,
    job::WaitReason,
    policy::{Backfill, BackfillMode, OrderKey, Policy},
    resources::{Alternative, Count, Level, LevelCount, Memory, NodeSpec, Per, Placement, Request, Sharing},
};
use proptest::{prelude::*, sample::Index, strategy::ValueTree, test_runner::TestRunner};
use std::{collections::BTreeSet, sync::Arc};

/// A promise without the numbers of cores and GPUs, which are only decided at the start.
type Promised = (JobId, Timestamp, Vec<(u32, Vec<(u32, u64, u64, u64, u32, bool)>)>);

fn promised(id: JobId, slot: &Slot) -> Promised {
    let components = slot.placement.components.iter().map(|component| {
        let shares = component.shares.iter().map(|share| {
            let (cores, gpus) = (share.cores.len(), share.gpus.len());
            (share.node.0, cores, gpus, share.memory_bytes, share.tasks, share.exclusive)
        });
        (component.alternative, shares.collect())
    });
    (id, slot.start, components.collect())
}

fn plan_of(mut engine: Engine, now: Timestamp) -> Plan {
    engine.pass(now, &BTreeSet::new())
}

/// The same, with everything told in reverse order.
fn reversed_engine_of(world: &World, policy: &Arc<Policy>) -> Engine {
    let mut engine = Engine::new(policy.clone()).expect("a policy that can be followed");
    world.jobs.values().rev().for_each(|job| engine.enqueue(job.clone()));
    world.runs.values().rev().for_each(|run| engine.begin(run.clone()));
    world.reservations.values().rev().for_each(|reservation| engine.set_reservation(reservation.clone()));
    world.queues.values().rev().for_each(|queue| engine.set_queue(queue));
    world.licences.iter().rev().for_each(|(name, total)| engine.set_licence(name, *total));
    for (id, node) in world.nodes.iter().rev() {
        engine.set_node(*id, node.spec.clone(), node.is_available);
        engine.set_closures(*id, node.closures.clone());
    }
    engine.set_default_memory_per_core_bytes(world.default_memory_per_core_bytes);
    engine.set_capacity_freed(world.capacity_freed);
    engine
}

pub fn assert_agrees_with_reference(planned: &Planned, after: &World) {
    let Outcome { starts, slots, waiting, .. } = reference::pass(planned.world, planned.policy, planned.now);
    let found: Vec<(JobId, Placement)> =
        planned.plan.starts.iter().map(|start| (start.job, start.placement.clone())).collect();
    assert_eq!(found, starts, "starts at {}", planned.now.unix_seconds() - 1_000_000);
    let found: Vec<Promised> =
        after.jobs.values().filter_map(|job| Some(promised(job.id, job.slot.as_ref()?))).collect();
    let wanted: Vec<Promised> = slots.iter().map(|(id, slot)| promised(*id, slot)).collect();
    assert_eq!(found, wanted, "promises at {}", planned.now.unix_seconds() - 1_000_000);
    let reserved = |reason: &WaitReason| matches!(reason, WaitReason::Reserved { .. });
    for reason in planned.plan.reasons.iter().filter(|waiting| reserved(&waiting.reason)) {
        let WaitReason::Reserved { start } = reason.reason else { continue };
        assert_eq!(
            waiting.get(&reason.job),
            Some(&reference::Why::Reserved(start)),
            "of job {}: {:#?}",
            reason.job,
            planned.plan
        );
    }
}

proptest! {
    #![proptest_config(cases())]

    /// No job overtakes a waiting one (M-PLAN-10).
    #[test]
    fn agrees_with_the_reference_without_backfill(
        history in histories(Kind { modes: &[BackfillMode::None], loses_capacity: false, overruns: false }),
    ) {
        replay(&history, |twin, planned| assert_agrees_with_reference(planned, &twin.world));
    }

    /// The first waiting jobs have reservations (M-PLAN-8).
    #[test]
    fn agrees_with_the_reference_under_easy(
        history in histories(Kind { modes: &[BackfillMode::Easy], loses_capacity: false, overruns: false }),
    ) {
        replay(&history, |twin, planned| assert_agrees_with_reference(planned, &twin.world));
    }

    /// Every waiting job has a reservation (M-PLAN-9): in its turn, the earliest start beside what runs and what is promised to
    /// those before it (OAR-G-01, OAR-G-02).
    #[test]
    fn agrees_with_the_reference_under_conservative(
        history in histories(Kind { modes: &[BackfillMode::Conservative], loses_capacity: false, overruns: false }),
    ) {
        replay(&history, |twin, planned| assert_agrees_with_reference(planned, &twin.world));
    }

    /// Nodes, licences and time on them are lost.
    #[test]
    fn agrees_with_the_reference_whatever_is_lost(
        history in histories(Kind { modes: ALL_MODES, loses_capacity: true, overruns: false }),
    ) {
        replay(&history, |twin, planned| assert_agrees_with_reference(planned, &twin.world));
    }

    /// Runs last longer than they said.
    #[test]
    fn agrees_with_the_reference_when_runs_are_overdue(
        history in histories(Kind { modes: &[BackfillMode::None, BackfillMode::Easy], loses_capacity: true, overruns: true }),
    ) {
        replay(&history, |twin, planned| assert_agrees_with_reference(planned, &twin.world));
    }
}

proptest! {
    #![proptest_config(cases())]

    /// Same input, same plan, byte for byte; in whatever order the input was told, and whether it was told step by
    /// step (M-PLAN-7).
    #[test]
    fn an_engine_that_was_told_step_by_step_plans_as_one_that_is_told_all_at_once(
        history in histories(Kind { modes: ALL_MODES, loses_capacity: true, overruns: false }),
    ) {
        replay(&history, |_, planned| assert_agrees_with_fresh_engines(planned));
    }

    /// The same while runs last longer than they said. (A promise blocked by such a run is looked at when something
    /// else is lost, so under `conservative` two engines may differ.)
    #[test]
    fn overdue_runs_do_not_make_engines_differ(
        history in histories(Kind { modes: &[BackfillMode::None, BackfillMode::Easy], loses_capacity: true, overruns: true }),
    ) {
        replay(&history, |_, planned| assert_agrees_with_fresh_engines(planned));
    }
}

fn assert_agrees_with_fresh_engines(planned: &Planned) {
    let policy = Arc::new(planned.policy.clone());
    let bytes = |plan: &Plan| format!("{plan:?}");
    let found = bytes(planned.plan);
    let at_once = plan_of(engine_of(planned.world, &policy), planned.now);
    assert_eq!(found, bytes(&at_once), "told at once");
    let reversed = plan_of(reversed_engine_of(planned.world, &policy), planned.now);
    assert_eq!(found, bytes(&reversed), "told in reverse order");
}

/// A component with two alternatives may want to wait, and start after all when others have taken the better one: that
/// an equal job did not start says nothing about the next.
#[test]
fn an_equal_job_with_a_choice_is_looked_at_again() {
    let node = |number: usize, cores, sockets| NodeSpec {
        name: format!("n{number}"),
        cores,
        sockets,
        memory_bytes: 2,
        gpus: Vec::new(),
        properties: Default::default(),
    };
    let nodes = (0..9).map(|number| match number {
        1 => NodeSpec { memory_bytes: 5, ..node(1, 1, 1) },
        3 => node(3, 3, 2),
        5 => node(5, 2, 2),
        other => node(other, 1, 1),
    });
    let queue = |name: &str, nodes: &[&str]| QueueSpec {
        name: name.into(),
        nodes: nodes.iter().map(|name| (*name).into()).collect(),
        ..QueueSpec::default()
    };
    let backfill = Backfill { mode: BackfillMode::Easy, reservations: Some(2), ..Backfill::default() };
    let policy = Policy { order: vec![OrderKey::Priority, OrderKey::Saf], backfill, ..Policy::default() };
    let way = |request: Request, seconds| Alternative {
        requests: vec![request],
        walltime_seconds: seconds,
        ..Alternative::default()
    };
    let in_queue = |queue: &str, ways: Vec<Alternative>| ComponentDemand {
        queue: queue.into(),
        reservation: None,
        deadline: None,
        alternatives: ways.into(),
    };
    let count = |level, min, max| LevelCount { level, count: Count::Range { min, max } };
    let sockets = Request { path: vec![count(Level::Node, 2, 3), count(Level::Socket, 1, 1)], ..Request::default() };
    let alone = Request { sharing: Sharing::Exclusive, ..Request::default() };
    let holder = Arc::new(Holder { user: "ada".into(), group: 100, account: None, charges: Vec::new(), marks: None });
    let submit = |components, copies| {
        let demand = Arc::new(Demand { components, sharing: None, fixed: None, guard_seconds: 0 });
        Step::Submit(Draft {
            demand,
            holder: holder.clone(),
            priority: 0,
            array: None,
            runs_percent: if copies == 1 { 1 } else { 100 },
            copies,
        })
    };
    let choice = vec![
        in_queue("main", vec![way(sockets, Some(1))]),
        in_queue("main", vec![way(Request::default(), None), way(alone, Some(2))]),
    ];
    let memory = Some(Memory { bytes: 3, per: Per::Node });
    let large = Alternative {
        requests: vec![Request { memory, ..Request::default() }, Request::default()],
        walltime_seconds: Some(2),
        ..Alternative::default()
    };
    let other = vec![in_queue("night", vec![way(Request::default(), Some(1))]), in_queue("main", vec![large])];
    let mut first = any::<Index>().new_tree(&mut TestRunner::deterministic()).expect("any will do");
    while first.simplify() {}
    let steps = vec![submit(choice, 8), Step::Pass(1), Step::EndRun(first.current()), submit(other, 1), Step::Pass(2)];
    let queues = vec![queue("main", &[]), queue("side", &["n0", "n1"]), queue("night", &["n2"])];
    let cluster = Cluster { nodes: nodes.collect(), queues, licences: 2, default_memory_per_core_bytes: None };
    replay(&History { cluster, policy, steps }, |twin, planned| assert_agrees_with_reference(planned, &twin.world));
}
