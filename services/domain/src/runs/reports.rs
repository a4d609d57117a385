//! Which reports about a run a node can make.

use crate::{decide::conflict, jobs::Job, nodes::Node, runs::Run, state::State};
use muster_schemas::{PartId, command::Refusal, job::Usage};

/// Refuses a report about a run that lasts and has, and had, no part on the node that reports, or about one that there has not been
/// yet (OAR-J-07): no honest node can know of it. A run that has given up nodes may have had this one.
pub(crate) fn require_own(state: &State, node: &Node, id: PartId) -> Result<(), Refusal> {
    let is_own = |run: &Run| {
        let job = state.job(run.job);
        let over = job.into_iter().flat_map(Job::components_over);
        let mut over = over.flat_map(|(_, over)| &over.placement.shares);
        run.parts_on(node.id).next().is_some()
            || job.is_none_or(|job| job.tasks.is_some())
            || run.left_usage != Usage::default()
            || over.any(|share| share.node == node.id)
    };
    if state.run(id.run()).map_or(id.run() < state.next_run(), is_own) {
        return Ok(());
    }
    Err(conflict(format!("node {} reports about run {}, of which it has no part", node.spec.name, id.run())))
}
