//! The answers of this dialect to the services' questions.

use crate::NAME;
use muster_dialect::Dialect;
use muster_schemas::node::LaunchOrder;
use std::{collections::BTreeSet, iter::repeat_n};

/// The variable with the cores of a task on each of its nodes: `NODE:CORES,...`.
const CORES: &str = "MUSTER_TASK_CORES";
/// The most lines of a file of nodes. No task has so many cores.
const MOST_LINES: usize = 1 << 16;

/// HPC Pack as services see it: its jobs are launched and reported like muster's own, and their descriptions contain
/// all that filters get.
#[derive(Clone, Copy, Debug)]
pub struct HpcPack;

impl Dialect for HpcPack {
    fn name(&self) -> &'static str {
        NAME
    }

    /// A line for each core of the task, for launchers of parallel programs. The owner of a step can set the variable to
    /// anything: names that are not of the order's nodes are left out.
    fn node_file(&self, order: &LaunchOrder) -> Option<(&'static str, String)> {
        let cores = order.environment.get(CORES).filter(|_| order.step.0 > 0)?;
        let known: BTreeSet<&str> = order.nodes.iter().map(|node| node.name.as_str()).collect();
        let nodes = cores.split(',').filter_map(|node| node.rsplit_once(':'));
        let nodes = nodes.filter(|(node, _)| known.contains(node));
        let lines = nodes.flat_map(|(node, cores)| repeat_n(node, cores.parse().unwrap_or(0)));
        Some(("MUSTER_TASK_NODEFILE", lines.take(MOST_LINES).map(|node| format!("{node}\n")).collect()))
    }
}
