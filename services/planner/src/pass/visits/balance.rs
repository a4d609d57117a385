//! The order in which nodes are chosen by their load (PBS-L-03 to PBS-L-07).

use muster_schemas::{NodeId, policy::ByLoad, resources::Placement};

/// A core in millionths of a load.
const CORE: u64 = 1_000_000;

/// The nodes among which a cycle chooses by load, in the order of the policy.
#[derive(Debug)]
pub(super) struct Balance {
    pub(super) rule: ByLoad,
    pub(super) nodes: Vec<Balanced>,
    /// The place of the node that was chosen last.
    pub(super) last: Option<usize>,
}

/// A node with a known load.
#[derive(Debug)]
pub(super) struct Balanced {
    pub(super) id: NodeId,
    pub(super) name: String,
    pub(super) load: u64,
    pub(super) ideal: u64,
    pub(super) max: u64,
}

impl Balance {
    /// The places of the nodes that may take a job with this many cores, the first choice first.
    pub(super) fn choices(&self, cores: u64) -> Vec<usize> {
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
