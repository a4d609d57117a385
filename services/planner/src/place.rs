//! Finds a place for a request: plain first fit over the nodes, those of less weight first, then in order of their
//! numbers.
//!
//! A request whose path ends at nodes or groups of nodes (or is empty) is served by tasks: each node takes as many
//! tasks as its free cores, memory and GPUs allow. A path that goes inside nodes (sockets, cores, GPUs) is served by
//! the units that it counts, and the tasks are dealt out over those.

mod alternative;
mod apart;
mod enough;
mod layout;
mod part;
mod path;
mod scope;
mod share;
mod tasks;

use crate::free::{Free, FreeNode, Undo};
pub use alternative::place_alternative;
use apart::deal_to_requests;
pub use apart::{EachNode, Wanted, deal, of_others};
pub(crate) use enough::Enough;
use muster_schemas::{
    ids::NodeId,
    resources::{Alternative, ComponentPlacement, Count, Level, LevelCount, NodeShare, Request, Sharing},
};
use part::Part;
pub use scope::Scope;
use scope::{bounds, can_serve, of_found, with_named_nodes};
use share::Demand;
use std::{borrow::Cow, collections::BTreeMap};

/// Places the requests of an alternative on any nodes and takes their resources; `None`, with nothing taken, if they do not
/// fit.
fn place_anywhere<'a>(
    free: &mut Free<'a>,
    scope: &Scope,
    number: u32,
    alternative: &Alternative,
    undo: &mut Undo<'a>,
) -> Option<ComponentPlacement> {
    let mut own_undo = Undo::default();
    let default_request = [Request::default()];
    let requests = if alternative.requests.is_empty() { &default_request[..] } else { &alternative.requests[..] };
    let exclusive = requests.iter().any(|request| request.sharing != Sharing::Shared);
    let mut shares: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut placement = ComponentPlacement { alternative: number, shares: Vec::new() };
    // First fit is good enough for requests that cannot be dealt nodes first.
    let dealt = if alternative.scatter { deal_to_requests(free, scope, requests) } else { None };
    for (own, request) in requests.iter().enumerate() {
        let mut barred = Cow::Borrowed(scope.taken_nodes);
        if alternative.scatter {
            barred.to_mut().extend(shares.keys().copied().chain(of_others(dealt.as_deref().unwrap_or_default(), own)));
        }
        let scope = &Scope { taken_nodes: &barred, ..*scope };
        let Some(placed) = place_request(free, scope, request, exclusive) else {
            free.undo(own_undo);
            return None;
        };
        for share in placed {
            free.take_share(&share, &mut own_undo);
            match shares.get(&share.node) {
                Some(at) => join(&mut placement.shares[*at], share),
                None => {
                    shares.insert(share.node, placement.shares.len());
                    placement.shares.push(share);
                }
            }
        }
    }
    if alternative.scatter {
        placement.shares.sort_by_key(|share| share.node);
    }
    undo.append(own_undo);
    Some(placement)
}

/// Two requests of a component on one node become one share.
fn join(share: &mut NodeShare, other: NodeShare) {
    share.cores = share.cores.union(&other.cores);
    share.gpus = share.gpus.union(&other.gpus);
    share.memory_bytes += other.memory_bytes;
    share.tasks += other.tasks;
    share.exclusive |= other.exclusive;
}

/// Shares that serve the request, in order of rank. If one request of an alternative wants exclusive nodes, the others
/// do not share theirs either.
fn place_request(free: &Free, scope: &Scope, request: &Request, exclusive: bool) -> Option<Vec<NodeShare>> {
    let demand = Demand::new(request, scope.default_memory_per_core_bytes, exclusive);
    let mut candidates: Vec<&FreeNode> =
        free.nodes().iter().filter(|node| can_serve(node, scope, request, exclusive)).collect();
    let is_weighted = is_weighted(&candidates);
    if is_weighted {
        candidates.sort_by_cached_key(|node| node.spec.weight());
    }
    demand.prefer(&mut candidates);
    let path = with_named_nodes(request);
    let mut parts = match &path[..] {
        [] => tasks::within(&demand, request, &candidates)?,
        path => place_path(&demand, path, request.tasks, &candidates)?,
    };
    if is_weighted {
        // Weights decide which nodes, not which tasks are where.
        parts.sort_by_key(|part| part.node.node);
    }
    demand.shares(parts)
}

/// Whether some of these nodes are to be taken before others.
fn is_weighted(nodes: &[&FreeNode]) -> bool {
    nodes.windows(2).any(|pair| pair[0].spec.weight() != pair[1].spec.weight())
}

/// Parts that serve a path with this many tasks.
fn place_path<'f, 'a>(
    demand: &Demand,
    path: &[LevelCount],
    tasks: Option<u32>,
    nodes: &[&'f FreeNode<'a>],
) -> Option<Vec<Part<'f, 'a>>> {
    match path {
        [LevelCount { level: Level::Group(property), count }, inner @ ..] => {
            place_groups(demand, property, *count, inner, tasks, nodes)
        }
        [] => tasks::on_any_nodes(demand, tasks, nodes),
        [LevelCount { level: Level::Node, count }] => tasks::on_nodes(demand, *count, tasks, nodes),
        [LevelCount { level: Level::Node, count }, inner @ ..] => path::on_nodes(demand, *count, inner, tasks, nodes),
        [LevelCount { count, .. }, ..] => path::across_nodes(demand, *count, path, tasks, nodes),
    }
}

/// Places the inner path in each of as many groups as possible.
fn place_groups<'f, 'a>(
    demand: &Demand,
    property: &str,
    count: Count,
    inner: &[LevelCount],
    tasks: Option<u32>,
    nodes: &[&'f FreeNode<'a>],
) -> Option<Vec<Part<'f, 'a>>> {
    let mut by_value: BTreeMap<_, (usize, Vec<&'f FreeNode<'a>>)> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(value) = node.spec.properties.get(property) {
            by_value.entry(value).or_insert_with(|| (at, Vec::new())).1.push(node);
        }
    }
    let mut groups: Vec<(usize, Vec<&'f FreeNode<'a>>)> = by_value.into_values().collect();
    if is_weighted(nodes) {
        // A group ranks by its best node (OAR-R-12).
        groups.sort_by_key(|(first, _)| *first);
    }
    let (least, most) = bounds(count, groups.len());
    let serve = |wanted: u32| {
        let mut parts = Vec::new();
        let mut served = 0;
        for (_, group) in &groups {
            if served == wanted {
                break;
            }
            let group_tasks = tasks.map(|tasks| tasks::portion(tasks, wanted, served));
            if let Some(placed) = place_path(demand, inner, group_tasks, group) {
                parts.extend(placed);
                served += 1;
            }
        }
        (parts, served)
    };
    if count == Count::BestHalf {
        let half = of_found(count, serve(most).1);
        return (half > 0).then(|| serve(half)).filter(|(_, served)| *served == half).map(|(parts, _)| parts);
    }
    // Without a number of tasks each group is served separately, so one pass finds as many as possible. A given number
    // is divided by the number of groups, which has to be tried.
    let attempts = if tasks.is_some() { (least..=most).rev().collect() } else { vec![most] };
    for wanted in attempts {
        let (parts, served) = serve(wanted);
        if served >= if tasks.is_some() { wanted } else { least } {
            return Some(parts);
        }
    }
    None
}
