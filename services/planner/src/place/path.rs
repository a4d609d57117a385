//! Requests whose path goes inside nodes: a number of sockets, cores or GPUs inside each outer part.

use super::{Demand, Part, bounds, scope::of_found, tasks::deal_evenly};
use crate::free::FreeNode;
use muster_schemas::resources::{Count, IndexSet, Level, LevelCount};

/// The inner path in each of as many nodes as are wanted and possible.
pub(super) fn on_nodes<'f, 'a>(
    demand: &Demand,
    count: Count,
    inner: &[LevelCount],
    tasks: Option<u32>,
    nodes: &[&'f FreeNode<'a>],
) -> Option<Vec<Part<'f, 'a>>> {
    let (least, most) = bounds(count, nodes.len());
    let mut parts = Vec::new();
    for node in nodes {
        if parts.len() == most as usize {
            break;
        }
        let taken = take_inside(demand, inner, node, &demand.usable_cores(node));
        if let Some(taken) = taken.filter(|taken| has_cores_for_a_task(demand, tasks, taken)) {
            parts.push(Part { node, cores: taken.cores, gpus: taken.gpus, tasks: 0 });
        }
    }
    parts.truncate(of_found(count, parts.len()));
    if parts.len() < least as usize {
        return None;
    }
    with_tasks(demand, tasks, parts)
}

/// A number of sockets, cores or GPUs on any nodes that have them.
pub(super) fn across_nodes<'f, 'a>(
    demand: &Demand,
    count: Count,
    path: &[LevelCount],
    tasks: Option<u32>,
    nodes: &[&'f FreeNode<'a>],
) -> Option<Vec<Part<'f, 'a>>> {
    let (step, inner) = path.split_first()?;
    let there_are: u64 = nodes.iter().map(|node| u64::from(number_of(&step.level, node))).sum();
    let (least, most) = bounds(count, usize::try_from(there_are).unwrap_or(usize::MAX));
    let up_to = |most: u32| {
        let mut parts = Vec::new();
        let mut units = 0;
        for node in nodes {
            if units == most {
                break;
            }
            let cores = demand.usable_cores(node);
            let taken = take_units(demand, &step.level, (1, most - units), inner, node, &cores);
            if let Some(taken) = taken.filter(|taken| has_cores_for_a_task(demand, tasks, taken)) {
                units += taken.units;
                parts.push(Part { node, cores: taken.cores, gpus: taken.gpus, tasks: 0 });
            }
        }
        (parts, units)
    };
    let (mut parts, mut units) = up_to(most);
    if count == Count::BestHalf {
        (parts, units) = up_to(of_found(count, units));
    }
    if units < least {
        return None;
    }
    with_tasks(demand, tasks, parts)
}

/// What was taken from a node.
struct Taken {
    units: u32,
    cores: IndexSet,
    gpus: u32,
}

/// Whether a part is enough for the one task that it gets if no number of tasks is given.
fn has_cores_for_a_task(demand: &Demand, tasks: Option<u32>, taken: &Taken) -> bool {
    tasks.is_some() || taken.cores.len() >= u64::from(demand.cpus_per_task)
}

/// The path inside a region of a node: its free cores there.
fn take_inside(demand: &Demand, path: &[LevelCount], node: &FreeNode, region: &IndexSet) -> Option<Taken> {
    let Some((step, inner)) = path.split_first() else {
        // Nothing says how many cores: take those of one task.
        let cores = region.smallest(u64::from(demand.cpus_per_task));
        let enough = cores.len() == u64::from(demand.cpus_per_task);
        return enough.then_some(Taken { units: 1, cores, gpus: 0 });
    };
    let counts = bounds(step.count, number_of(&step.level, node) as usize);
    let taken = take_units(demand, &step.level, counts, inner, node, region)?;
    match of_found(step.count, taken.units) {
        0 => None,
        units if units == taken.units => Some(taken),
        units => take_units(demand, &step.level, (units, units), inner, node, region),
    }
}

/// From `least` to `most` of a level of the region.
fn take_units(
    demand: &Demand,
    level: &Level,
    (least, most): (u32, u32),
    inner: &[LevelCount],
    node: &FreeNode,
    region: &IndexSet,
) -> Option<Taken> {
    let taken = match level {
        Level::Core => {
            let cores = region.smallest(u64::from(most));
            Taken { units: u32::try_from(cores.len()).ok()?, cores, gpus: 0 }
        }
        Level::Gpu => {
            let units = u32::try_from(demand.matching_gpus(node).len()).unwrap_or(u32::MAX).min(most);
            let beside = take_inside(demand, inner, node, region)?;
            Taken { units, cores: beside.cores, gpus: units }
        }
        Level::Socket => take_sockets(demand, most, inner, node, region),
        // Nodes and groups are not inside a node.
        Level::Node | Level::Group(_) => return None,
    };
    (taken.units >= least).then_some(taken)
}

/// As many sockets as can serve the inner path, or are entirely free if there is none.
fn take_sockets(demand: &Demand, most: u32, inner: &[LevelCount], node: &FreeNode, region: &IndexSet) -> Taken {
    let mut all = Taken { units: 0, cores: IndexSet::new(), gpus: 0 };
    for socket in sockets(node) {
        if all.units == most {
            break;
        }
        let free = region.intersection(&socket);
        let taken = if inner.is_empty() {
            (free == socket).then_some(Taken { units: 1, cores: free, gpus: 0 })
        } else {
            take_inside(demand, inner, node, &free)
        };
        if let Some(taken) = taken {
            all.units += 1;
            all.cores = all.cores.union(&taken.cores);
            all.gpus += taken.gpus;
        }
    }
    all
}

/// The cores of each socket: equal, consecutive parts, the first ones larger by one if the division leaves a remainder.
fn sockets(node: &FreeNode) -> impl Iterator<Item = IndexSet> {
    let (cores, sockets) = (node.spec.cores, node.spec.sockets.max(1));
    let first_of = move |socket: u32| cores / sockets * socket + (cores % sockets).min(socket);
    (0..sockets)
        .map(move |socket| (first_of(socket), first_of(socket + 1)))
        .filter(|(first, end)| first < end)
        .map(|(first, end)| IndexSet::from_range(first, end - 1))
}

/// How many of a level a node has in total, free or not.
fn number_of(level: &Level, node: &FreeNode) -> u32 {
    match level {
        Level::Core => node.spec.cores,
        Level::Socket => node.spec.sockets.max(1),
        Level::Gpu => u32::try_from(node.spec.gpus.len()).unwrap_or(u32::MAX),
        Level::Node | Level::Group(_) => 0,
    }
}

/// Deals the tasks out over the cores; one task for each node if no number is given.
fn with_tasks<'f, 'a>(demand: &Demand, tasks: Option<u32>, mut parts: Vec<Part<'f, 'a>>) -> Option<Vec<Part<'f, 'a>>> {
    let Some(tasks) = tasks else {
        parts.iter_mut().for_each(|part| part.tasks = 1);
        return Some(parts);
    };
    let most = demand.tasks_per_node.unwrap_or(u32::MAX);
    let room = |part: &Part| (part.cores.len() / u64::from(demand.cpus_per_task)).min(u64::from(most)) as u32;
    let rooms: Vec<u32> = parts.iter().map(room).collect();
    for (part, tasks) in parts.iter_mut().zip(deal_evenly(tasks.max(1), &rooms)?) {
        part.tasks = tasks;
    }
    Some(parts)
}
