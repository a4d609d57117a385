//! Limits on nodes.

use crate::validate::{MAX_LIST, MAX_MEMORY_BYTES, MAX_NODE_CORES, count, identifier, name, number};
use muster_schemas::{
    command::Refusal,
    resources::{IndexSet, NodeSpec},
};

/// A node's specification.
pub(crate) fn node(spec: &NodeSpec) -> Result<(), Refusal> {
    identifier("node.name", &spec.name)?;
    number(&format!("node `{}`: cores", spec.name), u64::from(spec.cores), 1, u64::from(MAX_NODE_CORES))?;
    number(&format!("node `{}`: sockets", spec.name), u64::from(spec.sockets), 1, u64::from(spec.cores))?;
    number(&format!("node `{}`: memory_bytes", spec.name), spec.memory_bytes, 0, MAX_MEMORY_BYTES)?;
    count(&format!("node `{}`: gpus", spec.name), spec.gpus.len(), 1_024)?;
    count(&format!("node `{}`: properties", spec.name), spec.properties.len(), MAX_LIST)?;
    spec.gpus.iter().try_for_each(|model| name("node.gpus: a model", model))?;
    spec.properties.keys().try_for_each(|property| name("node.properties: a name", property))
}

/// Whether a placement's set of numbers is within `total`.
pub(crate) fn within(indices: &IndexSet, total: u32) -> bool {
    indices.ranges().last().is_none_or(|(_, last)| *last < total)
}
