//! Plans with the numbers of real nodes, in place of those of the nodes of planning domains.

use super::Plan;
use crate::engine::Engine;

impl Engine {
    /// A plan with the numbers of real nodes.
    pub(super) fn real_plan(&self, mut plan: Plan) -> Plan {
        if !self.has_domains() {
            return plan;
        }
        for start in plan.starts.iter_mut().chain(&mut plan.reserved) {
            self.make_real(&mut start.placement);
        }
        for slot in plan.slots.iter_mut().filter_map(|(_, slot)| slot.as_mut()) {
            slot.placement = self.real_placement(&slot.placement);
        }
        plan.growths.iter_mut().for_each(|growth| self.make_real(&mut growth.added));
        plan.shrinks.iter_mut().for_each(|shrink| self.make_real(&mut shrink.removed));
        plan.preemptions.iter_mut().flat_map(|one| &mut one.claims).for_each(|claim| self.make_real(claim));
        let planned = plan.backfill_pass.iter_mut().flat_map(|pass| &mut pass.jobs).flat_map(|job| &mut job.components);
        planned.flat_map(|component| &mut component.nodes).for_each(|node| *node = self.real_node(*node));
        plan
    }
}
