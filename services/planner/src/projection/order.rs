//! The order in which jobs get nodes: by weight, or as the site says (OAR-R-12).

use muster_domain::{State, nodes::Node};
use muster_schemas::{
    NodeId,
    resources::{NodeSpec, PropertyValue},
};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The ranks of nodes in the order of the site; empty if it has none.
pub(super) type Ranks = BTreeMap<NodeId, i64>;

/// The value of a node for a key. Nodes that have none come last in both directions.
#[derive(Clone, PartialEq, Eq)]
enum Value<'n> {
    Property(&'n PropertyValue),
    Name(&'n str),
    IsAsleep(bool),
    Nothing,
}

/// The ranks of all nodes. Nodes that are equal by all keys have the same one.
pub(super) fn ranks(state: &State) -> Ranks {
    let keys = &state.settings().node_order;
    if keys.is_empty() {
        return Ranks::new();
    }
    let keys: Vec<(&str, bool)> = keys.iter().map(|key| direction(key)).collect();
    let compare = |one: &[Value], other: &[Value]| {
        let pairs = one.iter().zip(other).zip(&keys);
        pairs.map(|((one, other), (_, is_descending))| compared(one, other, *is_descending)).find(|order| order.is_ne())
    };
    let valued = state.nodes().map(|node| (node.id, keys.iter().map(|(key, _)| value(state, node, key)).collect()));
    let mut sorted: Vec<(NodeId, Vec<Value>)> = valued.collect();
    sorted.sort_by(|(id, one), (other_id, other)| compare(one, other).unwrap_or_else(|| id.cmp(other_id)));
    let mut rank = 0;
    let mut ranks = Ranks::new();
    for (at, (id, own)) in sorted.iter().enumerate() {
        let is_equal = at > 0 && compare(&sorted[at - 1].1, own).is_none();
        rank += i64::from(!is_equal);
        ranks.insert(*id, rank);
    }
    ranks
}

/// A key, and whether larger values go first.
fn direction(key: &str) -> (&str, bool) {
    key.strip_prefix('-').map_or((key, false), |key| (key, true))
}

fn value<'n>(state: &State, node: &'n Node, key: &str) -> Value<'n> {
    match key {
        "name" => Value::Name(&node.spec.name),
        "awake" => Value::IsAsleep(state.power_of(node.id).is_some()),
        property => node.spec.properties.get(property).map_or(Value::Nothing, Value::Property),
    }
}

fn compared(one: &Value, other: &Value, is_descending: bool) -> Ordering {
    let order = match (one, other) {
        (Value::Property(one), Value::Property(other)) => one.cmp(other),
        (Value::Name(one), Value::Name(other)) => one.cmp(other),
        (Value::IsAsleep(one), Value::IsAsleep(other)) => one.cmp(other),
        (one, other) => return (*one == Value::Nothing).cmp(&(*other == Value::Nothing)),
    };
    if is_descending { order.reverse() } else { order }
}

/// The nodes whose rank is not the same in both.
pub(super) fn moved(before: &Ranks, after: &Ranks) -> Vec<NodeId> {
    let all: BTreeSet<NodeId> = before.keys().chain(after.keys()).copied().collect();
    all.into_iter().filter(|id| before.get(id) != after.get(id)).collect()
}

/// A node as the engine places jobs on it: its weight is its rank if there is one. Otherwise one that sleeps weighs more than
/// any that is awake, so that jobs get those first.
pub(super) fn placed(state: &State, node: &Node, ranks: &Ranks) -> Arc<NodeSpec> {
    match ranks.get(&node.id) {
        Some(rank) => with_weight(&node.spec, *rank),
        None if state.power_of(node.id).is_some() => heavier(&node.spec),
        None => node.spec.clone(),
    }
}

/// A node that sleeps weighs more than any that is awake, so that jobs get those first.
pub(crate) fn heavier(spec: &NodeSpec) -> Arc<NodeSpec> {
    const ASLEEP: i64 = 1 << 40;
    with_weight(spec, spec.weight().saturating_add(ASLEEP))
}

fn with_weight(spec: &NodeSpec, weight: i64) -> Arc<NodeSpec> {
    let mut spec = spec.clone();
    spec.properties.insert(NodeSpec::WEIGHT.to_owned(), PropertyValue::Number(weight));
    Arc::new(spec)
}
