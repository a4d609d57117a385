//! Planning by turns with routes for a state: what a cycle has to know beside jobs and nodes, and what it leaves.

use crate::routes::{Conditions, MachineLoad, Promised, Routed};
use muster_domain::{State, nodes::Node};
use muster_schemas::{
    Timestamp,
    plan::{ProposedPlan, QueueLift, QueueMove, RoutePromise, RunUnits},
    policy::routes::{Reservations, Routes},
};

fn routes(state: &State) -> Option<&Routes> {
    state.policy().turns.as_deref()?.routes.as_deref()
}

/// The facts of a cycle; `None` if the policy has no routes.
pub(super) fn conditions(state: &State, now: Timestamp) -> Option<Conditions> {
    let routes = routes(state)?;
    let load = |node: &Node| {
        let name = machine_of(&node.spec.name);
        let load = MachineLoad {
            processors: node.spec.cores,
            millionths: state.node_load(node.id)?.millionths,
            system_percent: state.node_load(node.id)?.system_percent,
            is_idle: !node.free_cores.is_empty(),
        };
        routes.machine(&name).is_some().then_some((name, load))
    };
    let promised =
        |promise: &RoutePromise| Promised { job: promise.job, queue: promise.queue.clone(), start: promise.start };
    Some(Conditions {
        usage: state.owner_use(now),
        loads: state.nodes().filter_map(load).collect(),
        promised: state.route_promises().iter().map(promised).collect(),
        over_allocation: routes.over_allocation.iter().copied().collect(),
        idle_since: state.queues_idle_since().clone(),
        lifted: state.lifted_hours().clone(),
        numbers: state.run_units().clone(),
    })
}

/// The name of the machine that a node is: without its domain, in lower case.
fn machine_of(node: &str) -> String {
    node.split('.').next().unwrap_or_default().to_lowercase()
}

/// The plan with what a cycle under routes leaves: the moves of jobs that start and their units, and the promises and lifted
/// rules that the next cycle keeps, if they are others.
pub(super) fn with_routed(state: &State, routed: Routed, plan: ProposedPlan) -> ProposedPlan {
    let Some(routes) = routes(state) else { return plan };
    let waits_in = |job| state.job(job).or_else(|| state.job(job.whole())).map(|job| job.lead().queue.clone());
    let is_move = |(job, queue): &(muster_schemas::JobId, String)| waits_in(*job).is_none_or(|own| *own != **queue);
    let moves = routed.targets.into_iter().filter(is_move).map(|(job, queue)| QueueMove { job, queue }).collect();
    let keeps = routes.reservations == Reservations::Kept;
    let promises = routed.promised.into_iter().filter(|_| keeps);
    let promised: Vec<RoutePromise> =
        promises.map(|Promised { job, queue, start }| RoutePromise { job, queue, start }).collect();
    let is_lifted_anew = routed.lifted != *state.lifted_hours();
    let lifted = routed.lifted.into_iter().map(|(queue, until)| QueueLift { queue, until });
    let units = routed.numbers.into_iter().map(|(job, machine, units)| RunUnits { job, machine, units });
    ProposedPlan {
        moves,
        promised: Some(promised).filter(|promised| *promised != state.route_promises()),
        lifted: is_lifted_anew.then(|| lifted.collect()),
        units: units.collect(),
        ..plan
    }
}
