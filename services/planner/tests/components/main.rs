//! Jobs with several components: the passes that start them, the nodes they get, and that none waits for ever.

mod order;
mod passes;
mod place;
mod properties;
mod share;
#[path = "../explain/world.rs"]
#[allow(dead_code, reason = "shared with the tests of explanations")]
mod world;

use muster_planner::projection::Planned;
use muster_schemas::{
    JobId, Timestamp,
    command::{Command, Reply},
    event::{Actor, Event},
    job::{Component, JobSpec, WaitReason},
    plan::BackfillPass,
    policy::{Backfill, BackfillMode, ComponentStart, Components, Policy},
    resources::{Count, Level, LevelCount, Request, Sharing},
};
use std::{collections::BTreeSet, sync::Arc};
use world::{World, job, node, queue};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// Slurm's behaviour: backfill for all jobs, and jobs with several components only in its passes.
fn backfill_passes() -> Policy {
    let components = Components { start: ComponentStart::BackfillPass, ..Components::default() };
    let backfill = Backfill { mode: BackfillMode::Easy, reservations: Some(500), components, ..Backfill::default() };
    Policy { name: "slurm".into(), backfill, ..Policy::default() }
}

/// The reference cluster: twelve nodes of four cores, one partition of all of them and one of the first five.
fn reference_cluster(policy: &Policy) -> World {
    let nodes = (1..=12).map(|number| node(&format!("nid{number:05}"), 4, 0)).collect();
    let mut p2 = queue("p2");
    p2.nodes = (1..=5).map(|number| format!("nid{number:05}")).collect();
    let mut world = World::new(policy, nodes, vec![queue("default"), p2]);
    // The test itself looks at every plan.
    world.wait(1);
    world
}

/// A whole node by its name, for this many minutes.
fn on(number: u32, minutes: i64) -> JobSpec {
    let nodes = vec![format!("nid{number:05}")];
    let request = Request { nodes, sharing: Sharing::WholeNodes, ..Request::default() };
    job(request, u64::try_from(minutes * MINUTE).unwrap())
}

/// This many whole nodes of a queue, for this many minutes.
fn some(nodes: u32, queue: &str, minutes: i64) -> JobSpec {
    let path = vec![LevelCount { level: Level::Node, count: Count::exactly(nodes) }];
    let request = Request { path, sharing: Sharing::WholeNodes, ..Request::default() };
    let mut spec = job(request, u64::try_from(minutes * MINUTE).unwrap());
    spec.components[0].queue = Some(queue.into());
    spec
}

/// One job of all these parts.
fn together(parts: impl IntoIterator<Item = JobSpec>) -> JobSpec {
    let mut parts = parts.into_iter();
    let mut spec = parts.next().expect("there is one");
    let rest: Vec<Component> = parts.flat_map(|part| part.components).collect();
    spec.components.extend(rest);
    spec
}

/// Plans once and commits the plan; returns the started jobs, and when to plan next.
fn pass(world: &mut World) -> (Vec<JobId>, Option<Timestamp>) {
    let Planned { plan, next_wake, .. } = world.projection.plan(world.now, &BTreeSet::new());
    let starts = plan.starts.iter().map(|start| start.job).collect();
    let reply = world.must(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
    assert_eq!(reply, Reply::Planned(Vec::new()), "a start was refused");
    muster_domain::invariants::assert_invariants(world.state());
    (starts, next_wake)
}

/// The passes of backfill in the log.
fn passes(world: &World) -> Vec<Arc<BackfillPass>> {
    let passes = world.records.iter().filter_map(|record| match &record.event {
        Event::BackfillPassed { pass } => Some(pass.clone()),
        _ => None,
    });
    passes.collect()
}

/// The starts that the last pass expects for the components of a job, in seconds after a moment.
fn expected(world: &World, job: JobId, since: Timestamp) -> Vec<Option<i64>> {
    let planned = world.state().backfill_passes().jobs.get(&job);
    let seconds = |at: Timestamp| at.micros_since(since) / 1_000_000;
    planned.into_iter().flatten().map(|component| component.start.map(seconds)).collect()
}

/// Why a job waits.
fn reason(world: &World, job: JobId) -> Option<WaitReason> {
    world.state().wait_reason(world.job(job))
}

/// The names of the nodes of each component of a running job.
fn places(world: &World, job: JobId) -> Vec<Vec<String>> {
    let run = world.state().run(world.job(job).run().expect("it runs")).expect("it is known");
    let names = |placed: &muster_schemas::resources::ComponentPlacement| {
        placed.shares.iter().map(|share| world.state().node_name(share.node).into_owned()).collect()
    };
    run.placement.components.iter().map(names).collect()
}
