//! Sizes of jobs that can have more or fewer resources: counted, merged, and cut.

use crate::{machine::Machine, model::Demand};
use muster_domain::State;
use muster_schemas::{
    NodeId,
    resources::{
        Alternative, ComponentPlacement, Count, IndexSet, Level, LevelCount, NodeShare, NodeSpec, Placement, Request,
    },
    tasks::SizeUnit,
};
use std::{cmp::Reverse, collections::BTreeMap};

/// The unit of a job's size, as far as its demand tells: the innermost level that it asks for a number of.
pub(crate) fn unit_of(demand: &Demand) -> SizeUnit {
    let requests = demand.components.first().and_then(|component| component.alternatives.first());
    let path = requests.and_then(|alternative| alternative.requests.first()).map_or(&[][..], |request| &request.path);
    let counted = path.iter().rev().find(|step| matches!(step.count, Count::Range { .. }));
    match counted.map(|step| &step.level) {
        Some(Level::Node) => SizeUnit::Node,
        Some(Level::Socket) => SizeUnit::Socket,
        _ => SizeUnit::Core,
    }
}

/// The level of a unit.
pub(crate) const fn level_of(unit: SizeUnit) -> Level {
    match unit {
        SizeUnit::Core => Level::Core,
        SizeUnit::Socket => Level::Socket,
        SizeUnit::Node => Level::Node,
    }
}

/// How many units a placement is.
pub(crate) fn units(machine: &Machine, unit: SizeUnit, placement: &Placement) -> u32 {
    placement.shares().fold(0, |sum, share| sum.saturating_add(units_of(machine, unit, share)))
}

/// The same, on the nodes of a state.
pub(crate) fn units_in(state: &State, unit: SizeUnit, placement: &Placement) -> u32 {
    let socket = |node| state.node(node).map_or(1, |node| socket_cores(&node.spec));
    placement.shares().fold(0, |sum, share| sum.saturating_add(count(unit, share, socket)))
}

fn units_of(machine: &Machine, unit: SizeUnit, share: &NodeShare) -> u32 {
    count(unit, share, |node| cores_per_socket(machine, node))
}

fn count(unit: SizeUnit, share: &NodeShare, cores_per_socket: impl FnOnce(NodeId) -> u32) -> u32 {
    let cores = u32::try_from(share.cores.len()).unwrap_or(u32::MAX);
    match unit {
        SizeUnit::Core => cores,
        SizeUnit::Socket => cores / cores_per_socket(share.node),
        SizeUnit::Node => 1,
    }
}

fn cores_per_socket(machine: &Machine, node: NodeId) -> u32 {
    machine.node(node).map_or(1, |node| socket_cores(&node.spec))
}

fn socket_cores(spec: &NodeSpec) -> u32 {
    (spec.cores / spec.sockets.max(1)).max(1)
}

/// The demand with every range at its least; `None` if it has none.
pub(crate) fn least(demand: &Demand) -> Option<Demand> {
    let mut least = demand.clone();
    let mut has_range = false;
    for component in &mut least.components {
        let mut alternatives: Vec<Alternative> = component.alternatives.to_vec();
        let requests = alternatives.iter_mut().flat_map(|alternative| &mut alternative.requests);
        for step in requests.flat_map(|request| &mut request.path) {
            if let Count::Range { min, max } = step.count
                && min < max
            {
                step.count = Count::exactly(min);
                has_range = true;
            }
        }
        component.alternatives = alternatives.into();
    }
    has_range.then_some(least)
}

/// The maximum number of units that a demand asks for, if it is a number.
pub(crate) fn greatest(demand: &Demand, alternative: u32) -> Option<u32> {
    let [component] = &demand.components[..] else { return None };
    let [request] = &component.alternatives.get(alternative as usize)?.requests[..] else { return None };
    request.path.iter().rev().find_map(|step| match step.count {
        Count::Range { max, .. } => Some(max),
        Count::All | Count::Best | Count::BestHalf => None,
    })
}

/// The nodes on which a run can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// On any node.
    Anywhere,
    /// On nodes where it has nothing yet.
    OtherNodes,
    /// On nodes where it has something.
    OwnNodes,
}

/// A request for up to this many more units of the same kind, and where they can be. `None` if a demand of this form
/// cannot grow.
pub(crate) fn wider(alternative: &Alternative, unit: SizeUnit, most: u32) -> Option<(Alternative, Reach)> {
    let [request] = &alternative.requests[..] else { return None };
    let more = LevelCount { level: level_of(unit), count: Count::Range { min: 1, max: most } };
    let (path, reach) = match &request.path[..] {
        [step, inner @ ..] if step.level == more.level => {
            let reach = if unit == SizeUnit::Node { Reach::OtherNodes } else { Reach::Anywhere };
            ([&[more], inner].concat(), reach)
        }
        // Everything is on one node, so additions are there too.
        [LevelCount { level: Level::Node, count }, step] if *count == Count::exactly(1) && step.level == more.level => {
            (vec![more], Reach::OwnNodes)
        }
        _ => return None,
    };
    let by_amount = |per| reach == Reach::OtherNodes || per == muster_schemas::resources::Per::Core;
    // Amounts for the whole request are already held.
    let memory = request.memory.map(|memory| if by_amount(memory.per) { memory } else { no_memory() });
    let gpus = request.gpus.clone().filter(|gpus| by_amount(gpus.per));
    let mut more_gpus = request.more_gpus.clone();
    more_gpus.retain(|gpus| by_amount(gpus.per));
    let request = Request { path, tasks: None, memory, gpus, more_gpus, ..request.clone() };
    Some((Alternative { requests: vec![request], ..Alternative::default() }, reach))
}

const fn no_memory() -> muster_schemas::resources::Memory {
    muster_schemas::resources::Memory { bytes: 0, per: muster_schemas::resources::Per::Core }
}

/// Both placements in one.
pub(crate) fn merged(base: &Placement, added: &Placement) -> Placement {
    let mut all = base.clone();
    for (component, more) in all.components.iter_mut().zip(&added.components) {
        for share in &more.shares {
            match component.shares.iter_mut().find(|known| known.node == share.node) {
                Some(known) => {
                    known.cores = known.cores.union(&share.cores);
                    known.gpus = known.gpus.union(&share.gpus);
                    known.memory_bytes += share.memory_bytes;
                }
                None => component.shares.push(share.clone()),
            }
        }
    }
    all
}

/// The rest of a placement without a part of it.
pub(crate) fn without(base: &Placement, removed: &Placement) -> Placement {
    let mut rest = base.clone();
    for (component, less) in rest.components.iter_mut().zip(&removed.components) {
        for share in &less.shares {
            if let Some(known) = component.shares.iter_mut().find(|known| known.node == share.node) {
                known.cores = known.cores.difference(&share.cores);
                known.gpus = known.gpus.difference(&share.gpus);
                known.memory_bytes = known.memory_bytes.saturating_sub(share.memory_bytes);
            }
        }
        component.shares.retain(|share| !share.cores.is_empty());
    }
    rest
}

/// A number of units of a placement, unused ones first: nodes without tasks, then the rest of other nodes, each
/// starting with the last.
pub(crate) fn cut(
    machine: &Machine,
    placement: &Placement,
    unit: SizeUnit,
    count: u32,
    busy: &BTreeMap<NodeId, u32>,
) -> Placement {
    let shares: Vec<(usize, &NodeShare)> = placement
        .components
        .iter()
        .enumerate()
        .flat_map(|(at, component)| component.shares.iter().map(move |share| (at, share)))
        .collect();
    let used = |share: &NodeShare| busy.get(&share.node).copied().unwrap_or(0);
    let unused_units = |share: &NodeShare| {
        let cores = u32::try_from(share.cores.len()).unwrap_or(u32::MAX).saturating_sub(used(share));
        match unit {
            SizeUnit::Core => cores,
            SizeUnit::Socket => cores / cores_per_socket(machine, share.node),
            SizeUnit::Node => u32::from(used(share) == 0),
        }
    };
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| (used(shares[*at].1) > 0, Reverse(*at)));
    let mut taken = vec![0; shares.len()];
    let mut left = count;
    for at in &order {
        taken[*at] = unused_units(shares[*at].1).min(left);
        left -= taken[*at];
    }
    for at in &order {
        let more = units_of(machine, unit, shares[*at].1).saturating_sub(taken[*at]).min(left);
        taken[*at] += more;
        left -= more;
    }
    let empty = |component: &ComponentPlacement| ComponentPlacement { shares: Vec::new(), ..component.clone() };
    let mut removed = Placement { components: placement.components.iter().map(empty).collect() };
    for ((component, share), units) in shares.into_iter().zip(taken).filter(|(_, units)| *units > 0) {
        removed.components[component].shares.push(part_of(machine, unit, share, units));
    }
    removed
}

/// This many units of a share, the last ones.
fn part_of(machine: &Machine, unit: SizeUnit, share: &NodeShare, units: u32) -> NodeShare {
    let cores = match unit {
        SizeUnit::Core => u64::from(units),
        SizeUnit::Socket => u64::from(units) * u64::from(cores_per_socket(machine, share.node)),
        SizeUnit::Node => share.cores.len(),
    };
    let kept = share.cores.len().saturating_sub(cores);
    if kept == 0 {
        return share.clone();
    }
    let memory_bytes = u128::from(share.memory_bytes) * u128::from(cores) / u128::from(share.cores.len());
    NodeShare {
        node: share.node,
        cores: share.cores.difference(&share.cores.smallest(kept)),
        gpus: IndexSet::new(),
        memory_bytes: u64::try_from(memory_bytes).unwrap_or(0),
        tasks: 0,
        exclusive: false,
    }
}
