//! The choice of a node by its load (PBS-L-03 to PBS-L-08).

use super::{
    Cycle, Refusal, Visits,
    balance::{Balance, Balanced},
};
use crate::{class::Class, engine::Engine, model::NodeLoads, queue::Place};
use muster_schemas::{
    NodeId,
    policy::{Turns, routes::Routes},
    resources::{Placement, Request, Sharing},
};
use std::collections::HashMap;

/// The attribute of jobs with the cores that they ask for.
const CORES: &str = "cores";

impl Engine {
    /// Sets the loads of nodes. Under a policy that chooses by load nodes with unknown loads are never chosen.
    pub fn set_loads(&mut self, loads: NodeLoads) {
        self.loads = loads;
    }

    /// Whether the policy chooses nodes by their load at some time, or starts nothing on busy machines.
    pub fn chooses_by_load(&self) -> bool {
        let waits_for_load = |routes: &Routes| {
            routes.load.is_some_and(|band| band.percent.is_some() || band.high_system_percent.is_some())
        };
        self.policy
            .turns
            .as_deref()
            .is_some_and(|turns| turns.loads.is_some() || turns.routes.as_deref().is_some_and(waits_for_load))
    }

    /// The nodes among which the rules of this cycle choose by load; `None` if they do not.
    pub(super) fn balance(&self, cycle: &Cycle, turns: &Turns) -> Option<Balance> {
        let rule = turns.rules_at(cycle.now).by_load?;
        let table = turns.loads.as_deref().filter(|table| !table.nodes.is_empty())?;
        let ids: HashMap<&str, NodeId> = self
            .loads
            .millionths
            .keys()
            .filter_map(|id| Some((self.machine.node(*id)?.spec.name.as_str(), *id)))
            .collect();
        let nodes = table.nodes.iter().filter_map(|listed| {
            let id = *ids.get(listed.name.as_str())?;
            let (ideal, max) = (listed.ideal_millionths, listed.max_millionths);
            Some(Balanced { id, name: listed.name.clone(), load: *self.loads.millionths.get(&id)?, ideal, max })
        });
        let nodes: Vec<Balanced> = nodes.collect();
        let last = self.loads.last.and_then(|last| nodes.iter().position(|node| node.id == last));
        Some(Balance { rule, nodes, last })
    }

    /// The cores that a job asks for by name, otherwise those that it takes.
    pub(super) fn cores_asked(&self, place: Place) -> u64 {
        let Some(entry) = self.queue.get(place) else { return 0 };
        let asked = entry.attributes.as_ref().and_then(|all| u64::try_from(*all.get(CORES)?).ok());
        asked.unwrap_or_else(|| self.classes.get(entry.class).size.cores)
    }

    /// Where a job starts: on the node that its load chooses if the rules say so and the job names no number of nodes,
    /// otherwise wherever it fits.
    pub(super) fn place_in_turn(
        &mut self,
        cycle: &mut Cycle,
        visits: &mut Visits,
        place: Place,
    ) -> Result<Placement, Refusal> {
        let class_id = self.queue.class_at(place);
        let class = class_id.map(|id| self.classes.get(id));
        match (&visits.balance, class) {
            (Some(balance), Some(class)) if goes_by_load(class) => {
                let choices = balance.choices(self.cores_asked(place));
                let found = choices.into_iter().find_map(|at| {
                    let demand = class.demand.on_nodes(std::slice::from_ref(&balance.nodes[at].name));
                    self.search(cycle.now).at(&demand, cycle.now)
                });
                found.ok_or(Refusal::NoNodeByLoad)
            }
            _ => self.place_now(cycle, place).ok_or(()).map_err(|()| {
                let lacks = class_id.map_or(super::SOME_RESOURCES, |class| self.lacks(cycle, visits, class));
                Refusal::NoRoom(lacks)
            }),
        }
    }
}

/// Whether the load of nodes chooses for jobs of a class: they fit on one node, whichever that is, and leave the rest of it
/// to others.
fn goes_by_load(class: &Class) -> bool {
    let [component] = &class.demand.components[..] else { return false };
    let requests = match &component.alternatives[..] {
        [] => return true,
        [alternative] => &alternative.requests[..],
        _ => return false,
    };
    let is_open = |request: &Request| request.nodes.is_empty() && request.sharing == Sharing::Shared;
    class.size.nodes == 1 && requests.iter().all(is_open)
}
