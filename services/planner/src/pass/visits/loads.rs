//! The choice of a node by its load (PBS-L-03 to PBS-L-08).

use super::{Cycle, Refusal, Visits};
use crate::{class::Class, engine::Engine, model::NodeLoads, queue::Place};
use muster_schemas::{
    NodeId,
    policy::{ByLoad, Turns},
    resources::{Placement, Request, Sharing},
};
use std::collections::HashMap;

/// The attribute of jobs with the cores that they ask for.
const CORES: &str = "cores";
/// A core in millionths of a load.
const CORE: u64 = 1_000_000;

/// The nodes among which a cycle chooses by load, in the order of the policy.
#[derive(Debug)]
pub(super) struct Balance {
    rule: ByLoad,
    nodes: Vec<Balanced>,
    /// The place of the node that was chosen last.
    last: Option<usize>,
}

/// A node with a known load.
#[derive(Debug)]
struct Balanced {
    id: NodeId,
    name: String,
    load: u64,
    ideal: u64,
    max: u64,
}

impl Balance {
    /// The places of the nodes that may take a job with this many cores, the first choice first.
    fn choices(&self, cores: u64) -> Vec<usize> {
        let projected = |at: usize| self.nodes[at].load.saturating_add(cores.saturating_mul(CORE));
        let start = self.last.filter(|_| self.rule != ByLoad::Least).map_or(0, |last| last + 1);
        let in_turn = (start..self.nodes.len()).chain(0..start.min(self.nodes.len()));
        let open: Vec<usize> = in_turn.filter(|at| projected(*at) <= self.nodes[*at].max).collect();
        if self.rule == ByLoad::InTurn {
            return open;
        }
        let (mut ideal, mut rest): (Vec<usize>, Vec<usize>) =
            open.into_iter().partition(|at| projected(*at) <= self.nodes[*at].ideal);
        if self.rule == ByLoad::Least {
            [&mut ideal, &mut rest].into_iter().for_each(|class| class.sort_by_key(|at| (projected(*at), *at)));
        }
        ideal.append(&mut rest);
        ideal
    }

    /// What starts counts for the rest of the cycle: the cores that were asked for if they are on one node.
    pub(super) fn started(&mut self, placement: &Placement, asked: u64) {
        let is_on_one = placement.shares().count() == 1;
        for share in placement.shares() {
            let cores = if is_on_one { asked } else { share.cores.len() };
            if let Some(at) = self.nodes.iter().position(|node| node.id == share.node) {
                let node = &mut self.nodes[at];
                node.load = node.load.saturating_add(cores.saturating_mul(CORE));
                self.last = Some(at);
            }
        }
    }
}

impl Engine {
    /// Sets the loads of nodes. Under a policy that chooses by load nodes with unknown loads are never chosen.
    pub fn set_loads(&mut self, loads: NodeLoads) {
        self.loads = loads;
    }

    /// Whether the policy chooses nodes by their load at some time.
    pub fn chooses_by_load(&self) -> bool {
        self.policy.turns.as_deref().is_some_and(|turns| turns.loads.is_some())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(rule: ByLoad, nodes: &[(u64, u64, u64)], last: Option<usize>) -> Balance {
        let node = |(id, (load, ideal, max)): (u32, &(u64, u64, u64))| Balanced {
            id: NodeId(id),
            name: format!("n{id}"),
            load: load * 100_000,
            ideal: ideal * 100_000,
            max: max * 100_000,
        };
        Balance { rule, nodes: (0..).zip(nodes).map(node).collect(), last }
    }

    /// W7: PBS-L-03, PBS-L-04, PBS-L-05. Loads are in tenths.
    #[test]
    fn a_job_is_placed_on_the_least_loaded_node_of_the_best_class() {
        let mut balance = balance(ByLoad::Least, &[(8, 20, 40), (5, 10, 30), (32, 30, 40)], None);
        let placed = [1, 1, 1, 1, 2].map(|cores| {
            let first = balance.choices(cores).first().copied();
            if let Some(at) = first {
                balance.nodes[at].load += cores * CORE;
            }
            first
        });
        assert_eq!(placed, [Some(0), Some(1), Some(1), Some(0), None]);
    }

    /// PBS-L-04: limits are included, and of equal nodes the first one is taken.
    #[test]
    fn limits_are_included_and_ties_go_by_order() {
        let first =
            |nodes: &[(u64, u64, u64)], cores| balance(ByLoad::Least, nodes, None).choices(cores).first().copied();
        assert_eq!(first(&[(10, 20, 20), (10, 20, 20)], 1), Some(0));
        assert_eq!(first(&[(11, 20, 20), (10, 20, 20)], 1), Some(1));
        assert_eq!(first(&[(11, 20, 20)], 1), None);
        assert_eq!(first(&[(15, 20, 20)], 1), None);
        assert_eq!(first(&[], 1), None);
    }

    /// PBS-L-07
    #[test]
    fn nodes_take_turns() {
        let nodes = [(0, 10, 20), (10, 10, 20), (5, 10, 20), (20, 20, 20)];
        let order = |rule, last| balance(rule, &nodes, last).choices(1);
        assert_eq!(order(ByLoad::InTurn, None), [0, 1, 2]);
        assert_eq!(order(ByLoad::InTurn, Some(0)), [1, 2, 0], "the first within its maximum behind the last one");
        assert_eq!(order(ByLoad::InTurn, Some(3)), [0, 1, 2]);
        assert_eq!(
            order(ByLoad::LeastInTurn, Some(0)),
            [0, 1, 2],
            "the load decides the class, the turn where it begins"
        );
        assert_eq!(order(ByLoad::LeastInTurn, Some(1)), [0, 2, 1]);
        assert_eq!(order(ByLoad::Least, Some(1)), [0, 2, 1]);
    }
}
