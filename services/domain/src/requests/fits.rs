//! Whether the cluster as configured can ever serve a request, whatever runs and whichever nodes are up.

use crate::{
    requests::{self, Minimum},
    state::State,
    validate,
};
use muster_schemas::{
    NodeId,
    cluster::{ClusterSettings, QueueSpec},
    resources::{Alternative, Count, Level, LevelCount, NodeFilter, NodeSpec, Per, Request, Sharing, size_texts},
};
use std::collections::{BTreeMap, BTreeSet};

/// The start of each refusal of a job that can never run, before the reason.
pub(crate) const NEVER: &str = "the job can never run: ";

/// Why the nodes of the queue can never serve any alternative; `None` if they can, as far as is easy to see.
pub(crate) fn never_fits(state: &State, queue: &QueueSpec, alternatives: &[Alternative]) -> Option<String> {
    let mut first = None;
    for alternative in &*requests::bounded(alternatives, queue) {
        match alternative_never_fits(state, queue, alternative) {
            None => return None,
            Some(why) => first = first.or(Some(why)),
        }
    }
    first
}

fn alternative_never_fits(state: &State, queue: &QueueSpec, alternative: &Alternative) -> Option<String> {
    for (name, wanted) in &alternative.licences {
        let total = state.licence(name).map_or(0, |licence| licence.total);
        if total < *wanted {
            return Some(format!("it asks for {wanted} of licence `{name}`, the cluster has {total}"));
        }
    }
    let too_much = alternative.requests.iter().find_map(|request| request_never_fits(state, queue, request));
    too_much.or_else(|| too_many_scattered(state, queue, alternative))
}

/// Why requests that need separate nodes can never be served: together they need more nodes than there are.
fn too_many_scattered(state: &State, queue: &QueueSpec, alternative: &Alternative) -> Option<String> {
    let serves = |spec: &NodeSpec| {
        (queue.nodes.is_empty() || queue.nodes.contains(&spec.name))
            && alternative.requests.iter().any(|request| requests::node_serves(spec, request))
    };
    let wanted = requests::minimum_of_all(alternative, state.settings()).nodes;
    let found = state.nodes().filter(|node| serves(&node.spec)).count() as u64;
    let is_too_much = alternative.scatter && wanted > found;
    is_too_much.then(|| format!("it asks for {wanted} nodes, {found} match in queue `{}`", queue.name))
}

fn request_never_fits(state: &State, queue: &QueueSpec, request: &Request) -> Option<String> {
    if let Some(unknown) = request.nodes.iter().find(|name| state.node_by_name(name).is_none()) {
        return Some(format!("it asks for node `{}`, which does not exist", validate::shown(unknown)));
    }
    if let Some(group) = unknown_group(state, request) {
        return Some(format!("it asks for level `{group}`, which no node has as a property"));
    }
    let of_queue = |spec: &&NodeSpec| queue.nodes.is_empty() || queue.nodes.contains(&spec.name);
    let all: Vec<&NodeSpec> = state.nodes().map(|node| &*node.spec).filter(of_queue).collect();
    let nodes: Vec<&NodeSpec> = all.iter().copied().filter(|spec| requests::node_serves(spec, request)).collect();
    too_much(&all, &nodes, queue, request, state.settings())
}

/// How many of a queue's nodes satisfy each wish: ` (of its 4 nodes 2 are named, 0 have GPUs)`. Wishes that all nodes
/// satisfy are left out; empty if there is no other.
fn left_by_wishes(all: &[&NodeSpec], request: &Request) -> String {
    let count = |wish: &dyn Fn(&NodeSpec) -> bool| all.iter().filter(|node| wish(node)).count();
    let mut left: Vec<(usize, String)> = Vec::new();
    if !request.nodes.is_empty() {
        left.push((count(&|node| request.nodes.contains(&node.name)), "are named".into()));
    }
    if !request.excluded_nodes.is_empty() {
        left.push((count(&|node| !request.excluded_nodes.contains(&node.name)), "are not excluded".into()));
    }
    let conjuncts = match &request.filter {
        Some(NodeFilter::All(filters)) => filters.as_slice(),
        Some(filter) => std::slice::from_ref(filter),
        None => &[],
    };
    for filter in conjuncts {
        let text = validate::shown(&filter.to_string());
        left.push((count(&|node| requests::matches(node, filter)), format!("match `{text}`")));
    }
    for gpus in request.all_gpus() {
        let model = gpus.model.as_deref();
        let of = model.map(|model| format!(" of model `{}`", validate::shown(model))).unwrap_or_default();
        left.push((count(&|node| requests::model_count(node, model) > 0), format!("have GPUs{of}")));
    }
    left.retain(|(nodes, _)| *nodes < all.len());
    let texts: Vec<String> = left.into_iter().map(|(nodes, what)| format!("{nodes} {what}")).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!(" (of its {} nodes {})", all.len(), texts.join(", ")),
    }
}

fn unknown_group<'a>(state: &State, request: &'a Request) -> Option<&'a str> {
    request.path.iter().find_map(|part| match &part.level {
        Level::Group(group) if !state.nodes().any(|node| node.spec.properties.contains_key(group)) => {
            Some(group.as_str())
        }
        _ => None,
    })
}

fn too_much(
    all: &[&NodeSpec],
    nodes: &[&NodeSpec],
    queue: &QueueSpec,
    request: &Request,
    settings: &ClusterSettings,
) -> Option<String> {
    let Minimum { nodes: wanted, cores, gpus, memory_bytes, .. } = requests::minimum(request, settings);
    let which = if request.filter.is_some() || !request.nodes.is_empty() { "that match " } else { "" };
    let name = &queue.name;
    let has = |what: &str, wanted: u64, found: u64| {
        (wanted > found)
            .then(|| format!("it asks for {wanted} {what}, the nodes {which}of queue `{name}` have {found}"))
    };
    let has_memory = |what: &str, wanted: u64, found: u64| {
        let (wanted_text, found_text) = size_texts(wanted, found);
        let nodes = format!("the nodes {which}of queue `{name}` have {found_text}");
        (wanted > found).then(|| format!("it asks for {wanted_text} of memory{what}, {nodes}"))
    };
    let models: Vec<Option<&str>> = request.all_gpus().map(|gpus| gpus.model.as_deref()).collect();
    let gpus_of = |node: &NodeSpec| match &models[..] {
        [] => u64::from(requests::model_count(node, None)),
        models => models.iter().map(|model| u64::from(requests::model_count(node, *model))).sum(),
    };
    let total = |of: &dyn Fn(&NodeSpec) -> u64| nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(of(node)));
    if wanted > nodes.len() as u64 {
        let matching = if nodes.len() == 1 { "1 matches".into() } else { format!("{} match", nodes.len()) };
        let s = if wanted == 1 { "" } else { "s" };
        let left = left_by_wishes(all, request);
        return Some(format!("it asks for {wanted} node{s}, {matching} in queue `{}`{left}", queue.name));
    }
    let (sockets, sockets_of_one) = sockets(request);
    let has_sockets = |node: &NodeSpec| u64::from(node.sockets.max(1));
    // A request for sockets is refused in terms of sockets: its author did not mention cores.
    has("sockets", sockets, total(&has_sockets))
        .or_else(|| has("sockets on one node", sockets_of_one, largest(nodes, &has_sockets)))
        .or_else(|| has("cores", cores, total(&|node| u64::from(node.cores))))
        .or_else(|| has("GPUs", gpus, total(&gpus_of)))
        .or_else(|| too_few_of_a_model(request, &total).and_then(|(what, wanted, found)| has(&what, wanted, found)))
        .or_else(|| has_memory("", memory_bytes, total(&|node| node.memory_bytes)))
        .or_else(|| {
            let most = largest(nodes, &|node| u64::from(node.cores));
            has("cores for a task on one node", u64::from(request.cpus_per_task), most)
        })
        .or_else(|| has_memory(" on one node", memory_of_one(request), largest(nodes, &|node| node.memory_bytes)))
        .or_else(|| has("GPUs on one node", gpus_of_one(request), largest(nodes, &gpus_of)))
        .or_else(|| too_many_tasks(nodes, queue, request, wanted))
}

/// The minimum number of sockets of a request, in total and on one node (HPC-J-16).
fn sockets(request: &Request) -> (u64, u64) {
    let Some(at) = request.path.iter().position(|part| part.level == Level::Socket) else { return (0, 0) };
    let (above, part) = (&request.path[..at], &request.path[at]);
    let least = requests::least(part.count);
    let total = above.iter().fold(least, |product, part| product.saturating_mul(requests::least(part.count)));
    let is_by_node = above.iter().any(|part| part.level == Level::Node);
    (total, if is_by_node { least } else { 0 })
}

/// Why a request's tasks do not fit on the nodes that it may use; `None` if they do, as far as is easy to see.
fn too_many_tasks(nodes: &[&NodeSpec], queue: &QueueSpec, request: &Request, fewest: u64) -> Option<String> {
    let most_nodes = match request.path.as_slice() {
        [] => nodes.len().min(request.most_nodes.map_or(usize::MAX, |most| most as usize)),
        [LevelCount { level: Level::Node, count: Count::Range { max, .. } }] => nodes.len().min(*max as usize),
        // Only a placement shows the number of nodes for levels below nodes or groups above them.
        _ => return None,
    };
    let tasks = request.tasks.map_or(fewest, u64::from);
    // Usually the first nodes have room, and no sorting is needed.
    let mut left = tasks;
    for node in nodes.iter().take(most_nodes) {
        left = left.saturating_sub(room(node, request, true));
        if left == 0 {
            return None;
        }
    }
    let most_tasks = |with_memory: bool| {
        let mut rooms: Vec<u64> = nodes.iter().map(|node| room(node, request, with_memory)).collect();
        rooms.sort_unstable_by(|one, other| other.cmp(one));
        rooms.into_iter().take(most_nodes).fold(0, u64::saturating_add)
    };
    let found = most_tasks(true);
    if tasks <= found {
        return None;
    }
    let why = if tasks <= most_tasks(false) { " with the memory that they ask for" } else { "" };
    let (name, s) = (&queue.name, if most_nodes == 1 { "" } else { "s" });
    Some(format!(
        "it asks for {tasks} tasks on {most_nodes} node{s}, the nodes of queue `{name}` have room for {found}{why}"
    ))
}

/// How many tasks of a request a node can ever hold.
fn room(node: &NodeSpec, request: &Request, with_memory: bool) -> u64 {
    let cores_of_one = u64::from(request.cpus_per_task.max(1));
    let of_cores = u64::from(node.cores) / cores_of_one;
    let bytes_of_one = request.memory.filter(|_| with_memory).map_or(0, |memory| match memory.per {
        Per::Task => memory.bytes,
        Per::Core => memory.bytes.saturating_mul(cores_of_one),
        Per::Node | Per::Gpu | Per::Request => 0,
    });
    let of_memory = node.memory_bytes.checked_div(bytes_of_one).unwrap_or(u64::MAX);
    of_cores.min(of_memory).min(request.tasks_per_node.map_or(u64::MAX, u64::from))
}

/// The minimum memory on each node of a request.
fn memory_of_one(request: &Request) -> u64 {
    let Some(memory) = request.memory else { return 0 };
    match memory.per {
        Per::Node | Per::Task => memory.bytes,
        Per::Core => memory.bytes.saturating_mul(u64::from(request.cpus_per_task)),
        Per::Gpu | Per::Request => 0,
    }
}

/// The minimum number of GPUs on each node of a request.
fn gpus_of_one(request: &Request) -> u64 {
    let each = request.all_gpus().filter(|gpus| matches!(gpus.per, Per::Node | Per::Task));
    each.map(|gpus| u64::from(gpus.count)).sum()
}

/// The sum of something over all nodes of a request.
type Total<'t> = &'t dyn Fn(&dyn Fn(&NodeSpec) -> u64) -> u64;

/// A model of GPUs of which a request asks for more than all of its nodes have: its text, the number and that of the nodes.
/// Only one of several models: one alone is compared as GPUs.
fn too_few_of_a_model(request: &Request, total: Total<'_>) -> Option<(String, u64, u64)> {
    let mut several = request.all_gpus().filter(|_| !request.more_gpus.is_empty());
    several.find_map(|gpus| {
        let model = gpus.model.as_deref();
        let (wanted, found) = (u64::from(gpus.count), total(&|node| u64::from(requests::model_count(node, model))));
        (wanted > found)
            .then(|| (format!("GPUs of model `{}`", validate::shown(model.unwrap_or_default())), wanted, found))
    })
}

/// The refusal of a job that names nodes or groups of nodes that do not exist; `None` if all exist (HPC-J-18).
/// Independent of size: even a job that other nodes could serve meant something else.
pub(crate) fn unknown_name(state: &State, alternatives: &[Alternative]) -> Option<String> {
    alternatives.iter().flat_map(|alternative| &alternative.requests).find_map(|request| {
        let mut nodes = request.nodes.iter().chain(&request.excluded_nodes);
        if let Some(unknown) = nodes.find(|name| state.node_by_name(name).is_none()) {
            return Some(format!("[NodeNotFound] there is no node `{}`", validate::shown(unknown)));
        }
        let unknown = request.filter.as_ref().and_then(|filter| empty_group(state, filter))?;
        Some(format!("[NodeGroupNotFound] there is no node group `{}`", validate::shown(unknown)))
    })
}

/// A required property that no node has.
fn empty_group<'a>(state: &State, filter: &'a NodeFilter) -> Option<&'a str> {
    match filter {
        NodeFilter::Has(name) => {
            let is_known = state.nodes().any(|node| requests::matches(&node.spec, filter));
            (!is_known).then_some(name)
        }
        NodeFilter::All(filters) | NodeFilter::Any(filters) => {
            filters.iter().find_map(|filter| empty_group(state, filter))
        }
        NodeFilter::Compare { .. } | NodeFilter::Not(_) => None,
    }
}

/// Why exclusions are the only reason that the job can never run; `None` if it could not run without them either, or
/// can run with them (HPC-J-18).
pub(crate) fn too_many_excluded(state: &State, queue: &QueueSpec, alternatives: &[Alternative]) -> Option<String> {
    let why = never_fits(state, queue, alternatives)?;
    let mut with_all = alternatives.to_vec();
    let requests = with_all.iter_mut().flat_map(|alternative| &mut alternative.requests);
    requests.for_each(|request| request.excluded_nodes.clear());
    match never_fits(state, queue, &with_all) {
        Some(_) => None,
        None => Some(format!("[TooManyNodesExcluded] with the nodes that it excludes {NEVER}{why}")),
    }
}

/// The request of a component, and its queue.
pub(crate) struct Wish<'a> {
    pub(crate) queue: &'a QueueSpec,
    pub(crate) alternatives: &'a [Alternative],
}

/// At most this many kinds of component are compared with each other; more are only checked together.
const MAX_KINDS: usize = 32;

/// Why components that each fit alone can never run at the same time; `None` if they can, as far as is easy to see.
/// They share licences, and no two are placed on the same node unless the policy permits it (SL-P-07).
pub(crate) fn never_fit_together(state: &State, wishes: &[Wish]) -> Option<String> {
    too_many_licences(state, wishes).or_else(|| too_many_nodes(state, wishes))
}

fn too_many_licences(state: &State, wishes: &[Wish]) -> Option<String> {
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for alternatives in wishes.iter().map(|wish| wish.alternatives) {
        let Some((first, others)) = alternatives.split_first() else { continue };
        for (name, count) in &first.licences {
            let least = others.iter().map(|other| other.licences.get(name).copied().unwrap_or(0)).min();
            *wanted.entry(name).or_default() += u64::from(least.map_or(*count, |least| least.min(*count)));
        }
    }
    wanted.into_iter().find_map(|(name, wanted)| {
        let total = state.licence(name).map_or(0, |licence| licence.total);
        (u64::from(total) < wanted)
            .then(|| format!("its components ask for {wanted} of licence `{name}` together, the cluster has {total}"))
    })
}

/// The number of nodes that components need.
#[derive(Clone, Copy, Default)]
struct Needed {
    /// The sum over components that do not share nodes.
    alone: u64,
    /// The maximum over components that share nodes.
    shared: u64,
}

impl Needed {
    fn and(self, other: Self) -> Self {
        Self { alone: self.alone.saturating_add(other.alone), shared: self.shared.max(other.shared) }
    }

    fn nodes(self) -> u64 {
        self.alone.saturating_add(self.shared)
    }
}

/// Why components that only the same nodes can serve do not find enough of them.
fn too_many_nodes(state: &State, wishes: &[Wish]) -> Option<String> {
    let share_nodes = state.policy().backfill.components.share_nodes;
    let mut kinds: BTreeMap<(&str, &[Alternative]), Needed> = BTreeMap::new();
    for wish in wishes {
        let fewest = fewest_nodes(state.settings(), wish.alternatives);
        let is_shared = share_nodes && wish.alternatives.iter().any(can_share);
        let needed = if is_shared { Needed { alone: 0, shared: fewest } } else { Needed { alone: fewest, shared: 0 } };
        let of_kind = kinds.entry((&wish.queue.name, wish.alternatives)).or_default();
        *of_kind = of_kind.and(needed);
    }
    let served = |(name, alternatives): &(&str, &[Alternative])| -> BTreeSet<NodeId> {
        let queue = state.queue(name);
        let serves = |spec: &NodeSpec| {
            queue.is_some_and(|queue| queue.spec.nodes.is_empty() || queue.spec.nodes.contains(&spec.name))
                && alternatives.iter().flat_map(|one| &one.requests).any(|one| requests::node_serves(spec, one))
        };
        state.nodes().filter(|node| serves(&node.spec)).map(|node| node.id).collect()
    };
    let kinds: Vec<(BTreeSet<NodeId>, Needed)> = kinds.iter().map(|(kind, needed)| (served(kind), *needed)).collect();
    let all: BTreeSet<NodeId> = kinds.iter().flat_map(|(nodes, _)| nodes).copied().collect();
    let compared = if kinds.len() <= MAX_KINDS { kinds.as_slice() } else { &[] };
    compared.iter().map(|(nodes, _)| nodes).chain([&all]).find_map(|nodes| {
        let inside = kinds.iter().filter(|(others, _)| others.is_subset(nodes));
        let needed = inside.fold(Needed::default(), |sum, (_, needed)| sum.and(*needed));
        let (wanted, found) = (needed.nodes(), nodes.len());
        let each = if share_nodes { "" } else { " each its own," };
        (wanted > found as u64)
            .then(|| format!("its components ask for {wanted} nodes together,{each} and {found} can serve them"))
    })
}

/// Whether others can use the rest of the nodes of an alternative.
fn can_share(alternative: &Alternative) -> bool {
    alternative.requests.iter().all(|request| request.sharing == Sharing::Shared)
}

fn fewest_nodes(settings: &ClusterSettings, alternatives: &[Alternative]) -> u64 {
    let nodes = |alternative: &Alternative| requests::minimum_of_all(alternative, settings).nodes.max(1);
    alternatives.iter().map(nodes).min().unwrap_or(1)
}

fn largest(nodes: &[&NodeSpec], of: &dyn Fn(&NodeSpec) -> u64) -> u64 {
    nodes.iter().map(|node| of(node)).max().unwrap_or(0)
}
