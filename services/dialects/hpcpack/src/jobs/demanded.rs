//! Turns a demand back into attributes, the reverse of [`super::demand`]. A queued job may get a new demand from
//! commands that know nothing of descriptions; descriptions and template limits are about attributes.

use super::{demand, own};
use crate::{
    description::{
        attributes::{Attribute, JobAttributes},
        values::{LicenceCount, Names, NodeGroupOp, SoftwareLicense, UnitType},
    },
    size::Size,
};
use muster_schemas::resources::{
    Alternative, Count, Level, LevelCount, NodeFilter, PropertyValue, Relation, Request, Sharing,
};

/// The attributes that differ, with their values in `now`; `None` is "not specified".
pub(super) fn differences(before: &JobAttributes, now: &JobAttributes) -> Vec<(Attribute, Option<String>)> {
    let is_other = |name: &&Attribute| before.get(**name) != now.get(**name);
    Attribute::ALL.iter().filter(is_other).map(|name| (*name, now.get(*name))).collect()
}

/// The attributes of a demand. Anything without an attribute in this dialect is left out. The size of a job of another
/// dialect is in cores.
pub(super) fn attributes(alternatives: &[Alternative], is_own: bool) -> JobAttributes {
    let mut values = JobAttributes::default();
    let Some(first) = alternatives.first() else { return values };
    let requests: Vec<&Request> = first.requests.iter().collect();
    let Some(request) = requests.first() else { return values };
    let (size, is_on_one_node) = size(&requests, is_own);
    values.unit_type = Some(size.unit);
    size.write_to(&mut values);
    values.single_node = is_on_one_node.then_some(true);
    values.is_exclusive = (request.sharing == Sharing::Exclusive).then_some(true);
    values.requested_nodes = names(&request.nodes);
    values.excluded_nodes = names(&request.excluded_nodes);
    values.estimated_process_memory = request.memory.map(|memory| megabytes(memory.bytes));
    values.software_license = licences(first);
    take_conditions(&mut values, alternatives);
    values
}

/// The size, and whether all of it is on one node.
fn size(requests: &[&Request], is_own: bool) -> (Size, bool) {
    let one_node = LevelCount { level: Level::Node, count: Count::exactly(1) };
    let (units, is_on_one_node) = match requests.first().map(|request| &request.path[..]) {
        Some([units]) if is_own => (Some(units), false),
        Some([node, units]) if is_own && *node == one_node => (Some(units), true),
        _ => (None, false),
    };
    let size = units.and_then(|units| match (&units.level, units.count) {
        (Level::Core, Count::Range { min, max }) => Some(Size { unit: UnitType::Core, min, max }),
        (Level::Socket, Count::Range { min, max }) => Some(Size { unit: UnitType::Socket, min, max }),
        (Level::Node, Count::Range { min, max }) => Some(Size { unit: UnitType::Node, min, max }),
        _ => None,
    });
    match size {
        Some(size) => (size, is_on_one_node),
        None => (own::size(requests), false),
    }
}

fn names(names: &[String]) -> Option<Names> {
    (!names.is_empty()).then(|| Names(names.to_vec()))
}

fn megabytes(bytes: u64) -> u32 {
    u32::try_from(bytes / demand::MEGABYTE).unwrap_or(u32::MAX)
}

fn licences(alternative: &Alternative) -> Option<SoftwareLicense> {
    let counted = |(name, count): (&String, &u32)| (name.clone(), LicenceCount::Exactly(*count));
    let licences: Vec<_> = alternative.licences.iter().map(counted).collect();
    (!licences.is_empty()).then_some(SoftwareLicense(licences))
}

fn take_conditions(values: &mut JobAttributes, alternatives: &[Alternative]) {
    let mut groups: Vec<String> = Vec::new();
    let filters = alternatives.iter().filter_map(|alternative| alternative.requests.first()?.filter.as_ref());
    for condition in filters.flat_map(conditions) {
        match condition {
            NodeFilter::Compare { property, relation, value: PropertyValue::Number(number) } => {
                take_bound(values, property, *relation, *number);
            }
            NodeFilter::Has(name) if !groups.contains(name) => groups.push(name.clone()),
            NodeFilter::Any(all) => {
                groups.extend(all.iter().filter_map(|one| match one {
                    NodeFilter::Has(name) => Some(name.clone()),
                    _ => None,
                }));
                values.node_group_op = Some(NodeGroupOp::Union);
            }
            _ => {}
        }
    }
    if alternatives.len() > 1 {
        values.node_group_op = Some(NodeGroupOp::Uniform);
    }
    values.node_groups = names(&groups);
}

/// The conditions that a node must all fulfil.
fn conditions(filter: &NodeFilter) -> Vec<&NodeFilter> {
    match filter {
        NodeFilter::All(filters) => filters.iter().flat_map(conditions).collect(),
        other => vec![other],
    }
}

fn take_bound(values: &mut JobAttributes, property: &str, relation: Relation, number: i64) {
    let count = u32::try_from(number).ok();
    let memory = u64::try_from(number).ok().map(megabytes);
    match (property, relation) {
        ("cores", Relation::GreaterOrEqual) => values.min_cores_per_node = count,
        ("cores", Relation::LessOrEqual) => values.max_cores_per_node = count,
        ("memory_bytes", Relation::GreaterOrEqual) => values.min_memory = memory,
        ("memory_bytes", Relation::LessOrEqual) => values.max_memory = memory,
        _ => {}
    }
}
