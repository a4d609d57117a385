//! The names by which nodes know the parts of a run, and the ends of its components.

use crate::{
    components::{ComponentOver, SingleEnd},
    jobs::{Job, RunSummary},
    runs::{Part, Run},
    state::State,
};
use muster_schemas::{JobId, NodeId, PartId, RunId, Timestamp, job::Outcome, resources::Placement};

impl State {
    /// The name by which a node knows a part of a run.
    pub fn part_id(&self, run: &Run, part: &Part) -> PartId {
        self.part_id_at(run, part.node, part.component)
    }

    /// The name by which a node knows, or would know, the part of a run for a component.
    pub fn part_id_at(&self, run: &Run, node: NodeId, component: u32) -> PartId {
        if component == 0 {
            return PartId::new(run.id, 0);
        }
        let over = || self.job(run.job).into_iter().flat_map(Job::components_over);
        let is_shared =
            run.parts_on(node).any(|part| part.component != component) || were_there(over(), node, component);
        PartId::new(run.id, if is_shared { component } else { 0 })
    }

    /// The names by which nodes know the parts of a run, for callers that need many.
    pub(crate) fn part_names(&self, run: &Run) -> PartNames {
        let over = self.job(run.job).into_iter().flat_map(Job::components_over);
        PartNames::of(run.id, &run.placement, over)
    }

    /// The same for the last run of a job, which is over.
    pub(crate) fn last_part_names(&self, job: &Job, last: &RunSummary) -> PartNames {
        PartNames::of(last.run, &last.placement, job.components_over())
    }

    /// The name by which a node knew the part of the last run of a job for a component.
    pub fn last_part_id(&self, job: JobId, node: NodeId, component: u32) -> Option<PartId> {
        let job = self.job(job)?;
        let last = job.last_run.as_ref()?;
        Some(part_id_in(last.run, &last.placement, job.components_over(), node, component))
    }

    /// The part of a run that a node knows by this name.
    pub fn part_named(&self, node: NodeId, name: PartId) -> Option<(&Run, &Part)> {
        let run = self.run(name.run())?;
        let part = run.parts_on(node).find(|part| self.part_id(run, part) == name)?;
        Some((run, part))
    }
}

/// The names by which nodes know the parts of a run: see [`part_id_in`].
pub(crate) struct PartNames {
    run: RunId,
    /// All nodes with each component that is or was there, in order; empty for a run of one component.
    components: Vec<(NodeId, u32)>,
}

impl PartNames {
    fn of<'a>(run: RunId, placement: &'a Placement, over: impl Iterator<Item = (u32, &'a ComponentOver)>) -> Self {
        let mut components = Vec::new();
        if placement.components.len() > 1 {
            components.extend(placement.shares_by_component().map(|(component, share)| (share.node, component)));
            for (component, over) in over {
                components.extend(over.placement.shares.iter().map(|share| (share.node, component)));
            }
            components.sort_unstable();
        }
        Self { run, components }
    }

    /// The name of the part on a node for a component.
    pub(crate) fn of_part(&self, node: NodeId, component: u32) -> PartId {
        let first = self.components.partition_point(|(other, _)| *other < node);
        let mut here = self.components[first..].iter().take_while(|(other, _)| *other == node);
        let is_shared = here.any(|(_, other)| *other != component);
        PartId::new(self.run, if is_shared { component } else { 0 })
    }
}

/// Whether another component that has ended alone was on a node.
fn were_there<'a>(over: impl Iterator<Item = (u32, &'a ComponentOver)>, node: NodeId, component: u32) -> bool {
    let mut others = over.filter(|(number, _)| *number != component);
    others.any(|(_, over)| over.placement.shares.iter().any(|share| share.node == node))
}

/// The name of a part includes its component only if components share the node, or did before one of them ended alone.
/// Parts that began under a release in which they never did thus keep their names.
fn part_id_in<'a>(
    run: RunId,
    placement: &'a Placement,
    over: impl Iterator<Item = (u32, &'a ComponentOver)>,
    node: NodeId,
    component: u32,
) -> PartId {
    if component == 0 {
        return PartId::new(run, 0);
    }
    let placed = (0..).zip(&placement.components).chain(over.map(|(number, over)| (number, &over.placement)));
    let mut others = placed.filter(|(number, _)| *number != component);
    let is_shared = others.any(|(_, placed)| placed.shares.iter().any(|share| share.node == node));
    PartId::new(run, if is_shared { component } else { 0 })
}

impl Job {
    /// When and how a component of the last run ended alone, if it did. A component that was being ended when the run
    /// ended has ended with the run.
    pub fn component_ended(&self, component: u32) -> Option<(Timestamp, Outcome)> {
        let end = self.single_end(component)?;
        let last = || self.last_run.as_ref().filter(|_| self.run().is_none()).map(|run| run.ended);
        let at = end.over.as_ref().map(|over| over.at).or_else(last)?;
        Some((at, end.outcome()))
    }

    /// Why a component of the last run was ended alone, if it was.
    pub fn single_end(&self, component: u32) -> Option<&SingleEnd> {
        self.single_ends.as_ref()?.get(&component)
    }

    /// The components of the last run that have ended alone, with their ends.
    pub fn components_over(&self) -> impl Iterator<Item = (u32, &ComponentOver)> {
        let ends = self.single_ends.iter().flat_map(|ends| ends.iter());
        ends.filter_map(|(component, end)| Some((*component, end.over.as_ref()?)))
    }
}
