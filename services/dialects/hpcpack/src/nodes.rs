//! Which nodes a job may use (HPC-J-17, HPC-J-18).

use crate::{
    codes::{Code, Refusal},
    description::{
        attributes::JobAttributes,
        values::{Names, NodeGroupOp},
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// Names of nodes.
pub type NodeNames = BTreeSet<String>;

/// The nodes and node groups of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Every node.
    pub nodes: NodeNames,
    /// The nodes of each group.
    pub groups: BTreeMap<String, NodeNames>,
}

/// The sets of nodes that a job may use, each on its own: the first that suffices is taken. There is more than one only
/// with `Uniform`.
///
/// # Errors
/// `NodeNotFound` or `NodeGroupNotFound`, naming what does not exist (HPC-J-18).
pub fn eligible(attributes: &JobAttributes, cluster: &Cluster) -> Result<Vec<NodeNames>, Refusal> {
    let names = |names: &Option<Names>| names.as_ref().map(|names| names.0.clone()).unwrap_or_default();
    let (requested, excluded) = (names(&attributes.requested_nodes), names(&attributes.excluded_nodes));
    if let Some(missing) = requested.iter().chain(&excluded).find(|name| !cluster.nodes.contains(*name)) {
        return Err(Refusal::new(Code::NodeNotFound, format!("there is no node `{missing}`")));
    }
    let groups = names(&attributes.node_groups);
    let groups = groups.iter().map(|name| {
        let nodes = cluster.groups.get(name);
        nodes.ok_or_else(|| Refusal::new(Code::NodeGroupNotFound, format!("there is no node group `{name}`")))
    });
    let groups: Vec<&NodeNames> = groups.collect::<Result<_, _>>()?;
    let mut sets = combine(attributes.node_group_op.unwrap_or_default(), &groups, &cluster.nodes);
    for set in &mut sets {
        set.retain(|node| (requested.is_empty() || requested.contains(node)) && !excluded.contains(node));
    }
    Ok(sets)
}

/// The sets that the groups give; without groups, all nodes.
fn combine(op: NodeGroupOp, groups: &[&NodeNames], all: &NodeNames) -> Vec<NodeNames> {
    let Some((first, others)) = groups.split_first() else { return vec![all.clone()] };
    match op {
        NodeGroupOp::Intersect => {
            let in_all = |node: &&String| others.iter().all(|group| group.contains(*node));
            vec![first.iter().filter(in_all).cloned().collect()]
        }
        NodeGroupOp::Union => vec![groups.iter().flat_map(|group| group.iter().cloned()).collect()],
        NodeGroupOp::Uniform => groups.iter().map(|group| (*group).clone()).collect(),
    }
}

/// How many units the best of the sets has.
pub fn most_units(sets: &[NodeNames], units_of: impl Fn(&str) -> u32) -> u32 {
    let units = sets.iter().map(|set| set.iter().fold(0u32, |sum, node| sum.saturating_add(units_of(node))));
    units.max().unwrap_or_default()
}

/// Whether the exclusions leave a job its minimum (HPC-J-18).
///
/// # Errors
/// `TooManyNodesExcluded` if it could be had without them, and cannot with them.
pub fn check_excluded(
    attributes: &JobAttributes,
    cluster: &Cluster,
    min: u32,
    units_of: impl Fn(&str) -> u32,
) -> Result<(), Refusal> {
    let without = JobAttributes { excluded_nodes: None, ..attributes.clone() };
    let left = most_units(&eligible(attributes, cluster)?, &units_of);
    if left >= min || most_units(&eligible(&without, cluster)?, &units_of) < min {
        return Ok(());
    }
    let text = format!("the nodes excluded leave {left}, and the job needs {min}");
    Err(Refusal::new(Code::TooManyNodesExcluded, text))
}
