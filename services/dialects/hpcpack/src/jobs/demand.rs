//! What a job asks the cluster for (HPC-J-13, J-17, J-19).

use crate::{
    codes::{Code, Refusal},
    description::{
        attributes::JobAttributes,
        values::{LicenceCount, Names, NodeGroupOp, UnitType},
    },
    size::Size,
};
use muster_schemas::resources::{
    Alternative, Count, Level, LevelCount, Memory, NodeFilter, Per, PropertyValue, Relation, Request, Sharing,
};
use std::collections::BTreeMap;

/// The largest number of anything that a request can ask for.
pub(super) const MOST_UNITS: u32 = 10_000_000;
/// Bytes in a megabyte, as HPC Pack counts memory.
pub(super) const MEGABYTE: u64 = 1 << 20;

/// The alternatives of the job: one, or with `Uniform` one for each node group in turn (HPC-J-17).
///
/// # Errors
/// `SizeNotValid`: several nodes for a job that must run on one.
pub(super) fn alternatives(values: &JobAttributes, size: Size) -> Result<Vec<Alternative>, Refusal> {
    let request = Request {
        path: path(values, size)?,
        memory: memory(values, size.unit),
        nodes: names(&values.requested_nodes),
        excluded_nodes: names(&values.excluded_nodes),
        sharing: sharing(values, size.unit),
        ..Request::default()
    };
    let conditions = conditions(values);
    let licences = licences(values, size);
    let alternative = |group: Option<NodeFilter>| {
        let mut filters = conditions.clone();
        filters.extend(group);
        let filter = match filters.len() {
            0 | 1 => filters.pop(),
            _ => Some(NodeFilter::All(filters)),
        };
        let request = Request { filter, ..request.clone() };
        Alternative { requests: vec![request], licences: licences.clone(), ..Alternative::default() }
    };
    Ok(groups(values).into_iter().map(alternative).collect())
}

fn names(names: &Option<Names>) -> Vec<String> {
    names.as_ref().map(|names| names.0.clone()).unwrap_or_default()
}

fn path(values: &JobAttributes, size: Size) -> Result<Vec<LevelCount>, Refusal> {
    let level = match size.unit {
        UnitType::Core => Level::Core,
        UnitType::Socket => Level::Socket,
        UnitType::Node => Level::Node,
    };
    let max = size.max.min(MOST_UNITS);
    let units = LevelCount { level, count: Count::Range { min: size.min.min(max), max } };
    if values.single_node != Some(true) {
        return Ok(vec![units]);
    }
    let node = LevelCount { level: Level::Node, count: Count::exactly(1) };
    match size.unit {
        UnitType::Core | UnitType::Socket => Ok(vec![node, units]),
        UnitType::Node if size.min == 1 => Ok(vec![node]),
        UnitType::Node => {
            let text = format!("SingleNode contradicts MinNodes={}", size.min);
            Err(Refusal::new(Code::SizeNotValid, text))
        }
    }
}

/// A job that asks for nodes gets them whole.
fn sharing(values: &JobAttributes, unit: UnitType) -> Sharing {
    match (unit, values.is_exclusive) {
        (UnitType::Node, _) => Sharing::WholeNodes,
        (_, Some(true)) => Sharing::Exclusive,
        _ => Sharing::Shared,
    }
}

/// Assumes one process on each unit.
fn memory(values: &JobAttributes, unit: UnitType) -> Option<Memory> {
    let bytes = u64::from(values.estimated_process_memory.filter(|megabytes| *megabytes > 0)?) * MEGABYTE;
    let per = match unit {
        UnitType::Core => Per::Core,
        UnitType::Socket | UnitType::Node => Per::Node,
    };
    Some(Memory { bytes, per })
}

/// What each node must fulfil, as conditions on properties that every node has.
pub(super) fn conditions(values: &JobAttributes) -> Vec<NodeFilter> {
    let compare = |property: &str, relation: Relation, number: u64| NodeFilter::Compare {
        property: property.to_owned(),
        relation,
        value: PropertyValue::Number(i64::try_from(number).unwrap_or(i64::MAX)),
    };
    let bounds = [
        ("cores", values.min_cores_per_node, values.max_cores_per_node, 1),
        ("memory_bytes", values.min_memory, values.max_memory, MEGABYTE),
    ];
    let mut conditions = Vec::new();
    for (property, least, most, scale) in bounds {
        let least = least.map(|least| compare(property, Relation::GreaterOrEqual, u64::from(least) * scale));
        let most = most.map(|most| compare(property, Relation::LessOrEqual, u64::from(most) * scale));
        conditions.extend(least.into_iter().chain(most));
    }
    conditions
}

/// The node groups of each alternative. A node belongs to a group if it has a property of that name.
pub(super) fn groups(values: &JobAttributes) -> Vec<Option<NodeFilter>> {
    let mut groups: Vec<NodeFilter> = names(&values.node_groups).into_iter().map(NodeFilter::Has).collect();
    if groups.len() < 2 {
        return vec![groups.pop()];
    }
    match values.node_group_op.unwrap_or_default() {
        NodeGroupOp::Intersect => vec![Some(NodeFilter::All(groups))],
        NodeGroupOp::Union => vec![Some(NodeFilter::Any(groups))],
        NodeGroupOp::Uniform => groups.into_iter().map(Some).collect(),
    }
}

/// Licences per core are counted for the greatest size, so that no core of the job ever lacks one.
fn licences(values: &JobAttributes, size: Size) -> BTreeMap<String, u32> {
    let mut licences = BTreeMap::new();
    for (feature, count) in values.software_license.iter().flat_map(|licences| &licences.0) {
        let count = match count {
            LicenceCount::Exactly(count) => *count,
            LicenceCount::PerCore => size.max,
        };
        let sum: &mut u32 = licences.entry(feature.clone()).or_default();
        *sum = sum.saturating_add(count).min(MOST_UNITS);
    }
    licences
}
