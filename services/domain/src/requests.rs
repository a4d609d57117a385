//! The minimum of a request, and the nodes that can serve it. The planner places jobs by the same rules by which a
//! placement is checked.

pub(crate) mod fits;
mod pulled;
pub(crate) mod validate;

use crate::nodes::state::gpu_count;
use muster_schemas::{
    cluster::{ClusterSettings, QueueSpec},
    resources::{Alternative, Count, Gpus, Level, NodeFilter, NodeSpec, Per, PropertyValue, Relation, Request},
};
use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap};

/// The least that can serve a request, summed over all its nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Minimum {
    /// Nodes.
    pub nodes: u64,
    /// Tasks.
    pub tasks: u64,
    /// Cores.
    pub cores: u64,
    /// GPUs.
    pub gpus: u64,
    /// Memory.
    pub memory_bytes: u64,
}

/// The least that can serve a request. Products that overflow are saturated.
pub fn minimum(request: &Request, settings: &ClusterSettings) -> Minimum {
    let path = path_minimum(request);
    let tasks = request.tasks.map_or(path.nodes, u64::from);
    let per_node = request.tasks_per_node.map_or(u64::MAX, u64::from).max(1);
    let least_nodes = request.least_nodes.filter(|_| request.path.is_empty()).map_or(0, u64::from);
    let nodes = path.nodes.max(tasks.div_ceil(per_node)).max(least_nodes);
    let cores = path.cores.max(tasks.saturating_mul(u64::from(request.cpus_per_task.max(1)))).max(nodes);
    let of_model = |gpus: &Gpus| u64::from(gpus.count).saturating_mul(times(gpus.per, nodes, tasks, cores, 1));
    let wanted_gpus = request.all_gpus().map(of_model).fold(0, u64::saturating_add);
    let gpus = path.gpus.max(wanted_gpus);
    let memory_bytes = match request.memory {
        Some(memory) => memory.bytes.saturating_mul(times(memory.per, nodes, tasks, cores, gpus)),
        None => settings.default_memory_per_core_bytes.unwrap_or(0).saturating_mul(cores),
    };
    Minimum { nodes, tasks, cores, gpus, memory_bytes }
}

/// The alternatives of a job in a queue: those that do not say on how many nodes they are served follow its limits for that,
/// as far as they are not served within these anyway.
pub fn bounded<'a>(alternatives: &'a [Alternative], queue: &QueueSpec) -> Cow<'a, [Alternative]> {
    let bound = |of: &BTreeMap<String, u64>| Some(u32::try_from(*of.get("nodes")?).unwrap_or(u32::MAX));
    let (least, most) = (bound(&queue.least_asked).filter(|least| *least > 1), bound(&queue.most_asked));
    if least.is_none() && most.is_none() {
        return Cow::Borrowed(alternatives);
    }
    let mut bounded = alternatives.to_vec();
    for alternative in &mut bounded {
        if alternative.requests.is_empty() {
            alternative.requests.push(Request::default());
        }
        // Several requests are on nodes of their own, or share them: their sum is not known before they are placed.
        let [request] = &mut alternative.requests[..] else { continue };
        if request.path.is_empty() {
            let tasks = request.tasks.unwrap_or(1);
            (request.least_nodes, request.most_nodes) = (least, most.filter(|most| *most < tasks));
        }
    }
    Cow::Owned(bounded)
}

/// The least that can serve an alternative, over all its nodes. Its requests may share nodes unless each has separate
/// nodes, but they never share cores, GPUs or memory.
pub fn minimum_of_all(alternative: &Alternative, settings: &ClusterSettings) -> Minimum {
    let mut least = Minimum::default();
    for request in &alternative.requests {
        let Minimum { nodes, tasks, cores, gpus, memory_bytes } = minimum(request, settings);
        least.nodes = if alternative.scatter { least.nodes.saturating_add(nodes) } else { least.nodes.max(nodes) };
        least.tasks = least.tasks.saturating_add(tasks);
        least.cores = least.cores.saturating_add(cores);
        least.gpus = least.gpus.saturating_add(gpus);
        least.memory_bytes = least.memory_bytes.saturating_add(memory_bytes);
    }
    least
}

/// What an alternative asks for, by the words of limits of queues ([`muster_schemas::cluster::ASKED`]): only what it asks for
/// at all.
pub(crate) fn asked(
    alternative: &Alternative,
    settings: &ClusterSettings,
) -> impl Iterator<Item = (&'static str, u64)> {
    let least = minimum_of_all(alternative, settings);
    let names_memory = alternative.requests.iter().any(|request| request.memory.is_some());
    let all = [
        ("cores", Some(least.cores)),
        ("cpu_seconds", alternative.cpu_seconds),
        ("gpus", Some(least.gpus).filter(|gpus| *gpus > 0)),
        ("memory_bytes", Some(least.memory_bytes).filter(|_| names_memory)),
        ("nodes", Some(least.nodes)),
        ("walltime_seconds", alternative.walltime_seconds),
    ];
    all.into_iter().filter_map(|(what, asked)| Some((what, asked?)))
}

fn times(per: Per, nodes: u64, tasks: u64, cores: u64, gpus: u64) -> u64 {
    match per {
        Per::Node => nodes,
        Per::Task => tasks,
        Per::Core => cores,
        Per::Gpu => gpus,
        Per::Request => 1,
    }
}

struct PathMinimum {
    nodes: u64,
    cores: u64,
    gpus: u64,
}

/// The minimum of the path alone: the counts of its levels multiplied from the root down.
fn path_minimum(request: &Request) -> PathMinimum {
    let mut product: u64 = 1;
    let mut minimum = PathMinimum { nodes: 1, cores: 1, gpus: 0 };
    for part in &request.path {
        product = product.saturating_mul(least(part.count));
        match part.level {
            Level::Group(_) | Level::Node => {
                minimum.nodes = product;
                minimum.cores = product;
            }
            Level::Socket | Level::Core => minimum.cores = product,
            Level::Gpu => minimum.gpus = product,
        }
    }
    minimum
}

/// The minimum of a count.
pub fn least(count: Count) -> u64 {
    match count {
        Count::Range { min, .. } => u64::from(min),
        Count::All | Count::Best | Count::BestHalf => 1,
    }
}

/// Whether a node is suitable for a request: its properties match, it is not excluded, and if nodes are named, it is
/// one of them. Nodes whose agent asks for its orders serve requests for those, and no others (OAR-K-05). Free resources are
/// not considered.
pub fn node_serves(node: &NodeSpec, request: &Request) -> bool {
    node.is_pulled() == request.asks_for_pull()
        && (request.nodes.is_empty() || request.nodes.contains(&node.name))
        && !request.excluded_nodes.contains(&node.name)
        && request.filter.as_ref().is_none_or(|filter| matches(node, filter))
        && has_models(node, request)
}

/// Whether a node has GPUs of the models of a request: of all of them if each node gives some of each, else of any.
fn has_models(node: &NodeSpec, request: &Request) -> bool {
    let has = |gpus: &Gpus| model_count(node, gpus.model.as_deref()) > 0;
    let is_anywhere = |gpus: &&Gpus| matches!(gpus.per, Per::Request | Per::Gpu);
    let mut anywhere = request.all_gpus().filter(is_anywhere).peekable();
    let serves_any = anywhere.peek().is_none() || anywhere.any(has);
    serves_any && request.all_gpus().filter(|gpus| !is_anywhere(gpus)).all(has)
}

/// Whether a GPU of a node has this model; true if no model is named.
pub(crate) fn is_of_model(node: &NodeSpec, gpu: u32, model: Option<&str>) -> bool {
    model.is_none_or(|model| node.gpus.get(gpu as usize).is_some_and(|own| own == model))
}

/// The number of GPUs of a model on a node; of all models if none is named.
pub fn model_count(node: &NodeSpec, model: Option<&str>) -> u32 {
    match model {
        None => gpu_count(node),
        Some(model) => node.gpus.iter().filter(|gpu| *gpu == model).fold(0, |count, _| count + 1),
    }
}

/// Whether a node's properties match a filter. Facts about every node can be compared like properties: `name`, `cores`,
/// `sockets`, `gpus` and `memory_bytes`, unless the node has a property of that name.
pub fn matches(node: &NodeSpec, filter: &NodeFilter) -> bool {
    match filter {
        NodeFilter::Has(name) => node.properties.get(name).is_some_and(is_set),
        NodeFilter::Compare { property, relation, value } => match node.properties.get(property) {
            Some(found) => compare(found, *relation, value),
            None => built_in(node, property).is_some_and(|found| compare(&found, *relation, value)),
        },
        NodeFilter::All(filters) => filters.iter().all(|filter| matches(node, filter)),
        NodeFilter::Any(filters) => filters.iter().any(|filter| matches(node, filter)),
        NodeFilter::Not(filter) => !matches(node, filter),
    }
}

/// A fact about every node, as a property.
fn built_in(node: &NodeSpec, property: &str) -> Option<PropertyValue> {
    let number = |number: u64| PropertyValue::Number(i64::try_from(number).unwrap_or(i64::MAX));
    match property {
        "name" => Some(PropertyValue::Text(node.name.clone())),
        "cores" => Some(number(node.cores.into())),
        "sockets" => Some(number(node.sockets.into())),
        "gpus" => Some(number(gpu_count(node).into())),
        "memory_bytes" => Some(number(node.memory_bytes)),
        _ => None,
    }
}

fn is_set(value: &PropertyValue) -> bool {
    match value {
        PropertyValue::Flag(flag) => *flag,
        PropertyValue::Number(number) => *number != 0,
        PropertyValue::Text(text) => !text.is_empty(),
    }
}

/// Values of different types are never equal and have no order.
fn compare(found: &PropertyValue, relation: Relation, wanted: &PropertyValue) -> bool {
    let ordering = match (found, wanted) {
        (PropertyValue::Flag(one), PropertyValue::Flag(other)) => Some(one.cmp(other)),
        (PropertyValue::Number(one), PropertyValue::Number(other)) => Some(one.cmp(other)),
        (PropertyValue::Text(one), PropertyValue::Text(other)) => Some(one.cmp(other)),
        _ => None,
    };
    match relation {
        Relation::Equal => ordering == Some(Ordering::Equal),
        Relation::NotEqual => ordering != Some(Ordering::Equal),
        Relation::Less => ordering == Some(Ordering::Less),
        Relation::LessOrEqual => ordering.is_some_and(Ordering::is_le),
        Relation::Greater => ordering == Some(Ordering::Greater),
        Relation::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
    }
}

/// The same alternatives with these nodes excluded.
pub fn without_nodes(alternatives: &[Alternative], names: &[String]) -> Vec<Alternative> {
    let mut alternatives = alternatives.to_vec();
    let requests = alternatives.iter_mut().flat_map(|alternative| &mut alternative.requests);
    requests.for_each(|request| request.excluded_nodes.extend(names.iter().cloned()));
    alternatives
}
