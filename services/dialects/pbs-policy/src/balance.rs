//! The choice of a timeshared node by its load (PBS-L-03 to PBS-L-05).

use crate::{nodes::Loads, values::Decimal};

/// A timeshared node as the choice sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Whether the node is free and has what the job asks for (PBS-Q-09).
    pub is_fit: bool,
    /// Its load, with the CPUs of jobs that have started and are not in the sample; `None` if it is unknown.
    pub load: Option<Decimal>,
    /// Its limits.
    pub loads: Loads,
}

impl Candidate {
    /// The load with a job of this many CPUs; `None` if the node cannot be chosen.
    fn projected(&self, cpus: u32) -> Option<Decimal> {
        self.load.filter(|_| self.is_fit).map(|load| load.plus(Decimal::whole(cpus)))
    }
}

/// The node for a job that asks for this many CPUs, one if it asks for none: the least loaded of those that stay within
/// their ideal load, else of those that stay within their maximum. Of equal nodes the first one is taken. `None` if
/// there is no such node: `NO_NODE`.
pub fn place(nodes: &[Candidate], cpus: Option<u32>) -> Option<usize> {
    let cpus = cpus.unwrap_or(1);
    let projected = |node: &Candidate| node.projected(cpus);
    let within = |limit: fn(&Loads) -> Decimal| {
        let candidates = nodes.iter().enumerate().filter_map(|(place, node)| Some((projected(node)?, place, node)));
        let fitting = candidates.filter(move |(load, _, node)| *load <= limit(&node.loads));
        fitting.map(|(load, place, _)| (load, place)).min().map(|(_, place)| place)
    };
    within(|loads| loads.ideal).or_else(|| within(|loads| loads.max))
}
