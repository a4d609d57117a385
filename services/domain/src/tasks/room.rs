//! Where a run has room for more tasks, and what it does not need.

use crate::{
    jobs::Job,
    runs::Run,
    state::State,
    tasks::{Elastic, Task, TaskBook, state::count},
};
use muster_schemas::{
    NodeId,
    event::NodeTasks,
    resources::{ComponentPlacement, IndexSet, NodeShare, Placement},
    tasks::{SizeUnit, TaskKind},
};

/// The part of a run where tasks can start.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    nodes: Vec<NodeRoom>,
}

/// A node of it.
#[derive(Clone, Copy, Debug)]
struct NodeRoom {
    node: NodeId,
    /// Units without a task.
    free: u32,
    /// Cores per unit.
    grain: u32,
}

/// The number of cores per unit, and of units for a number of cores.
#[derive(Clone, Copy)]
struct Measure {
    unit: SizeUnit,
    grain: u32,
}

impl Measure {
    fn of(state: &State, unit: SizeUnit, share: &NodeShare) -> Self {
        let grain = match unit {
            SizeUnit::Core => 1,
            SizeUnit::Socket => cores_per_socket(state, share.node),
            SizeUnit::Node => count(&share.cores),
        };
        Self { unit, grain: grain.max(1) }
    }

    fn units(self, cores: u32) -> u32 {
        match self.unit {
            SizeUnit::Node => u32::from(cores >= self.grain),
            _ => cores / self.grain,
        }
    }
}

fn cores_per_socket(state: &State, node: NodeId) -> u32 {
    state.node(node).map_or(1, |node| node.spec.cores / node.spec.sockets.max(1)).max(1)
}

/// The size of a placement in units. A part of a node does not count as a node.
pub(crate) fn units(state: &State, unit: SizeUnit, placement: &Placement) -> u32 {
    let of_share = |share: &NodeShare| Measure::of(state, unit, share).units(count(&share.cores));
    placement.shares().filter(|share| !share.cores.is_empty()).map(of_share).fold(0, u32::saturating_add)
}

impl Room {
    /// The room on all nodes of a run that are ready for tasks: started, prepared, and not to be given up.
    pub(crate) fn of(state: &State, book: &TaskBook, run: &Run) -> Self {
        let has_prep = book.of_kind(TaskKind::NodePrep).is_some();
        let shares = run.placement.shares().zip(&run.parts);
        let nodes = shares.filter_map(|(share, part)| {
            let node = share.node;
            let is_up = part.is_up() && (!has_prep || book.prepared.contains(&node));
            (is_up && !book.unusable.contains(&node)).then(|| {
                let measure = Measure::of(state, book.unit, share);
                let free = free_cores(book, share);
                NodeRoom { node, free: measure.units(free), grain: measure.grain }
            })
        });
        Self { nodes: nodes.filter(|room| room.free > 0).collect() }
    }

    /// Units without a task.
    pub(crate) fn free(&self) -> u32 {
        self.nodes.iter().fold(0, |sum: u32, room| sum.saturating_add(room.free))
    }

    /// Takes this many units, on one node if they fit there; `None` if there are too few.
    pub(crate) fn take(&mut self, units: u32) -> Option<Vec<NodeTasks>> {
        if units == 0 || self.free() < units {
            return None;
        }
        let whole = self.nodes.iter().position(|room| room.free >= units);
        let mut left = units;
        let mut taken = Vec::new();
        for room in self.nodes.iter_mut().skip(whole.unwrap_or(0)) {
            let here = room.free.min(left);
            if here > 0 {
                room.free -= here;
                left -= here;
                taken.push(NodeTasks { node: room.node, tasks: here.saturating_mul(room.grain) });
            }
            if left == 0 {
                break;
            }
        }
        self.nodes.retain(|room| room.free > 0);
        Some(taken)
    }
}

/// Cores of a share that no task has and that will not be given up.
fn free_cores(book: &TaskBook, share: &NodeShare) -> u32 {
    let used = book.used.get(&share.node).copied().unwrap_or(0);
    count(&share.cores).saturating_sub(book.given_up(share.node)).saturating_sub(used)
}

/// How many units a run keeps after giving up what it has to. Unusable nodes do not count.
pub(crate) fn kept_units(state: &State, book: &TaskBook, run: &Run) -> u32 {
    let usable = run.placement.shares().filter(|share| !book.unusable.contains(&share.node));
    let of_share = |share: &NodeShare| {
        let kept = count(&share.cores).saturating_sub(book.given_up(share.node));
        Measure::of(state, book.unit, share).units(kept)
    };
    usable.map(of_share).fold(0, u32::saturating_add)
}

pub(crate) fn elastic(state: &State, job: &Job, book: &TaskBook, run: &Run) -> Elastic {
    let current = kept_units(state, book, run);
    let fixed = Elastic {
        unit: book.unit,
        min: book.min,
        max: book.max,
        current,
        wanted: 0,
        idle: 0,
        preemptable: book.preemptable && book.ending.is_none() && run.stopping.is_none(),
    };
    let goes_on = run.started.is_some() && run.stopping.is_none() && !run.is_suspended() && book.ending.is_none();
    // What it has to give up comes first.
    if !goes_on || book.shrinking.is_some() {
        return fixed;
    }
    let free = Room::of(state, book, run).free().saturating_add(coming_units(state, book, run));
    let demand = |tasks: &mut dyn Iterator<Item = &Task>| {
        tasks.fold(0, |sum: u32, task| sum.saturating_add(task.waiting().saturating_mul(task.max)))
    };
    let work = || book.tasks.iter().filter(|task| task.is_work());
    let now = demand(&mut work().filter(|task| book.is_ready(task)));
    let ever = demand(&mut work());
    let is_backfill = job.filters.as_ref().is_some_and(|filters| filters.is_backfill);
    let is_failing = book.fail_on_task_failure && book.failure.is_some();
    let may_grow = !is_backfill && !is_failing;
    Elastic {
        wanted: if may_grow { now.saturating_sub(free).min(book.max.saturating_sub(current)) } else { 0 },
        idle: if book.until_cancelled {
            0
        } else {
            free.saturating_sub(ever).min(current.saturating_sub(book.min)).min(spare_units(state, book, run))
        },
        ..fixed
    }
}

/// Units of nodes that are not yet ready for tasks, but will be.
fn coming_units(state: &State, book: &TaskBook, run: &Run) -> u32 {
    let has_prep = book.of_kind(TaskKind::NodePrep).is_some();
    let coming = run.placement.shares().zip(&run.parts).filter(|(share, part)| {
        let is_up = part.is_up() && (!has_prep || book.prepared.contains(&share.node));
        !is_up && !book.unusable.contains(&share.node)
    });
    let of_share = |(share, _): (&NodeShare, _)| {
        let kept = count(&share.cores).saturating_sub(book.given_up(share.node));
        Measure::of(state, book.unit, share).units(kept)
    };
    coming.map(of_share).fold(0, u32::saturating_add)
}

/// The usable shares, with the number of units that could be given up without stopping a task. Unusable nodes are kept,
/// so that a node is not taken for another.
fn spare<'a>(
    state: &'a State,
    book: &'a TaskBook,
    run: &'a Run,
) -> impl Iterator<Item = (&'a NodeShare, Measure, u32)> {
    let usable = run.placement.shares().filter(|share| !book.unusable.contains(&share.node));
    usable.map(move |share| {
        let measure = Measure::of(state, book.unit, share);
        (share, measure, measure.units(free_cores(book, share)))
    })
}

fn spare_units(state: &State, book: &TaskBook, run: &Run) -> u32 {
    spare(state, book, run).fold(0, |sum: u32, (_, _, units)| sum.saturating_add(units))
}

pub(crate) fn unused(state: &State, book: &TaskBook, run: &Run, units: u32) -> Placement {
    let mut left = units;
    let mut shares = Vec::new();
    let all: Vec<_> = spare(state, book, run).collect();
    for (share, measure, units) in all.into_iter().rev() {
        let here = units.min(left);
        if here > 0 {
            left -= here;
            shares.push(part_of(share, here.saturating_mul(measure.grain), book));
        }
    }
    shares.reverse();
    let alternative = run.placement.components.first().map_or(0, |placed| placed.alternative);
    Placement { components: vec![ComponentPlacement { alternative, shares }] }
}

/// This many cores of a share, the highest ones, with the same fraction of its memory; the whole share if these are all
/// its cores. What will already be given up is left out.
fn part_of(share: &NodeShare, cores: u32, book: &TaskBook) -> NodeShare {
    let all = count(&share.cores);
    if cores >= all {
        return share.clone();
    }
    let gone = book.shrinking.iter().flat_map(|(removed, _)| removed.shares()).filter(|gone| gone.node == share.node);
    let staying = gone.fold(share.cores.clone(), |cores, gone| cores.difference(&gone.cores));
    let kept = staying.smallest(u64::from(count(&staying).saturating_sub(cores)));
    NodeShare {
        cores: staying.difference(&kept),
        gpus: IndexSet::new(),
        memory_bytes: share.memory_bytes / u64::from(all.max(1)) * u64::from(cores),
        ..share.clone()
    }
}
