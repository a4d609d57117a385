//! Alternatives to which it matters how their nodes lie to each other: in few groups, or one after the other (SL-C-12).
//!
//! Both are served by placing on parts of the nodes: on some groups, or on the nodes of a window that slides along their
//! order. The first part that serves is taken.

use super::{Demand, Scope, bounds, can_serve, place_anywhere, with_named_nodes};
use crate::free::{Free, FreeNode, Undo};
use muster_schemas::{
    NodeId,
    resources::{Alternative, ComponentPlacement, FewGroups, Level, LevelCount, PropertyValue, Request, Sharing},
};
use std::{cmp::Reverse, collections::BTreeMap};

/// Nodes in their order.
type Part<'f, 'a> = Vec<&'f FreeNode<'a>>;

/// Places the requests of an alternative with a layout and takes their resources; `None`, with nothing taken, if they
/// do not fit.
pub(super) fn place_together<'a>(
    free: &mut Free<'a>,
    scope: &Scope,
    number: u32,
    alternative: &Alternative,
    undo: &mut Undo<'a>,
) -> Option<ComponentPlacement> {
    let wish = Wish::new(scope, number, alternative);
    let able: Part = free.nodes().iter().filter(|node| wish.can_use(node)).collect();
    let placed = match &alternative.groups {
        None => wish.place(able),
        Some(few) => wish.place_in_few(&able, few),
    }?;
    placed.shares.iter().for_each(|share| free.take_share(share, undo));
    Some(placed)
}

struct Wish<'w> {
    scope: &'w Scope<'w>,
    number: u32,
    alternative: &'w Alternative,
    /// Each request, and what it demands of a node.
    demands: Vec<(&'w Request, Demand<'w>)>,
    exclusive: bool,
}

impl<'w> Wish<'w> {
    fn new(scope: &'w Scope<'w>, number: u32, alternative: &'w Alternative) -> Self {
        let exclusive = alternative.requests.iter().any(|request| request.sharing != Sharing::Shared);
        let demand = |request| Demand::new(request, scope.default_memory_per_core_bytes, exclusive);
        let demands = alternative.requests.iter().map(|request| (request, demand(request))).collect();
        Self { scope, number, alternative, demands, exclusive }
    }

    /// Whether a node has room for a task of one of the requests.
    fn can_use(&self, node: &FreeNode) -> bool {
        let fits = |(request, demand): &(&Request, Demand)| {
            can_serve(node, self.scope, request, self.exclusive) && demand.max_tasks(node) > 0
        };
        if self.demands.is_empty() { !node.cores.is_empty() } else { self.demands.iter().any(fits) }
    }

    /// On these nodes, one after the other if that is wanted.
    fn place(&self, nodes: Part) -> Option<ComponentPlacement> {
        if self.alternative.contiguous { self.place_in_a_row(&nodes) } else { self.place_on(&nodes) }
    }

    fn place_on(&self, nodes: &[&FreeNode]) -> Option<ComponentPlacement> {
        let mut part = Free::new(nodes.iter().map(|node| (*node).clone()), []);
        place_anywhere(&mut part, self.scope, self.number, self.alternative, &mut Undo::default())
    }

    /// In as few groups as possible, and no more than wanted. Of several groups together only those with most nodes and
    /// those with most free cores are tried, not all combinations.
    fn place_in_few(&self, nodes: &[&FreeNode], few: &FewGroups) -> Option<ComponentPlacement> {
        let mut by_value: BTreeMap<Option<&PropertyValue>, Part> = BTreeMap::new();
        for node in nodes {
            by_value.entry(node.spec.properties.get(&few.property)).or_default().push(node);
        }
        let mut groups: Vec<Part> = by_value.into_values().collect();
        let most = (few.most.max(1) as usize).min(groups.len());
        if let Some(placed) = groups.iter().find_map(|group| self.place(group.clone())) {
            return Some(placed);
        }
        let sizes: [fn(&Part) -> u64; 2] = [nodes_of, cores_of];
        (2..=most).find_map(|count| {
            sizes.iter().find_map(|size| {
                groups.sort_by_key(|group| Reverse(size(group)));
                let mut together: Part = groups[..count].iter().flatten().copied().collect();
                together.sort_unstable_by_key(|node| node.node);
                self.place(together)
            })
        })
    }

    /// On nodes that follow each other.
    fn place_in_a_row(&self, nodes: &[&FreeNode]) -> Option<ComponentPlacement> {
        let position = |node: NodeId| self.scope.order.binary_search(&node).ok();
        let follows = |one: &&FreeNode, next: &&FreeNode| {
            position(one.node).zip(position(next.node)).is_some_and(|(one, next)| one + 1 == next)
        };
        let rows: Vec<&[&FreeNode]> = nodes.chunk_by(follows).collect();
        let (least, most) = self.lengths(nodes.len());
        let has_fixed_nodes = self.demands.iter().all(|(request, _)| counted_nodes(request).is_some());
        if !has_fixed_nodes {
            return rows.into_iter().find_map(|row| self.place_in_growing_window(row, least, most));
        }
        // The most nodes that it can have, as without a layout.
        (least..=most).rev().find_map(|length| {
            rows.iter().flat_map(|row| row.windows(length)).find_map(|window| self.place_on_all(window))
        })
    }

    /// A number of tasks fills as many nodes as it takes: the window grows until they fit, and leaves nodes behind that
    /// they do not need.
    fn place_in_growing_window(&self, row: &[&FreeNode], least: usize, most: usize) -> Option<ComponentPlacement> {
        let (mut from, mut to) = (0, least);
        while to <= row.len() {
            let window = &row[from..to];
            match self.place_on(window) {
                Some(placed) if placed.shares.len() == window.len() => return Some(placed),
                None if window.len() < most => to += 1,
                _ => from += 1,
            }
            to = to.max(from + least);
        }
        None
    }

    /// On these nodes, each of which it needs.
    fn place_on_all(&self, window: &[&FreeNode]) -> Option<ComponentPlacement> {
        self.place_on(window).filter(|placed| placed.shares.len() == window.len())
    }

    /// The least and the most nodes that it can have, at least 1, if there are so many.
    fn lengths(&self, there_are: usize) -> (usize, usize) {
        let of = |(request, _): &(&Request, Demand)| counted_nodes(request).unwrap_or((1, there_are));
        let all = self.demands.iter().map(of);
        let (least, most) = match self.alternative.scatter {
            true => {
                all.fold((0, 0), |sum: (usize, usize), own| (sum.0.saturating_add(own.0), sum.1.saturating_add(own.1)))
            }
            // They may share nodes.
            false => all.fold((0, 0), |sum: (usize, usize), own| (sum.0.max(own.0), sum.1.saturating_add(own.1))),
        };
        (least.max(1), most.max(1).min(there_are))
    }
}

fn nodes_of(part: &Part) -> u64 {
    part.len() as u64
}

fn cores_of(part: &Part) -> u64 {
    part.iter().map(|node| node.cores.len()).sum()
}

/// The least and the most nodes of a request that asks for a number of them.
fn counted_nodes(request: &Request) -> Option<(usize, usize)> {
    let path = with_named_nodes(request);
    let [LevelCount { level: Level::Node, count }, ..] = &path[..] else { return None };
    let (least, most) = bounds(*count, usize::MAX);
    let most = request.tasks.map_or(most, |tasks| most.min(tasks.max(least)));
    Some((least as usize, most as usize))
}
