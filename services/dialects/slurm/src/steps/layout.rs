//! The layout of the tasks of a step (SL-R-09, R-12, R-13, R-17, R-22).

use super::StepError;
use crate::{
    environment::ComponentFacts,
    options::values::{Distribution, NodeRange, count},
    request::Settings,
};

/// A node of a part, and its room for tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Its name.
    pub node: String,
    /// The number of tasks for which it has CPUs.
    pub places: u32,
}

/// The tasks of a part: for each of its nodes the tasks there, numbered from 0 within the part. With `overcommit`
/// (`-O`) a node takes more tasks than it has places. Every node gets at least one task if there are enough.
///
/// # Errors
/// [`StepError::MoreProcessors`] if there are not enough places, or no node.
pub fn distribute(
    distribution: Distribution,
    rooms: &[Room],
    tasks: u32,
    overcommit: bool,
    job: u64,
) -> Result<Vec<Vec<u32>>, StepError> {
    let places: Vec<u32> = match overcommit {
        true => overcommitted(rooms, tasks),
        false => rooms.iter().map(|room| room.places).collect(),
    };
    let total: u64 = places.iter().map(|places| u64::from(*places)).sum();
    if rooms.is_empty() || total < u64::from(tasks) {
        return Err(StepError::MoreProcessors { job });
    }
    Ok(match distribution {
        Distribution::Block | Distribution::Arbitrary => block(&places, tasks),
        Distribution::Cyclic => in_turns(&places, tasks, 1),
        Distribution::Plane(size) => in_turns(&places, tasks, size.max(1)),
    })
}

/// Places for all tasks: those of the nodes if they suffice, else at least an equal share each.
fn overcommitted(rooms: &[Room], tasks: u32) -> Vec<u32> {
    let total: u64 = rooms.iter().map(|room| u64::from(room.places)).sum();
    if total >= u64::from(tasks) {
        return rooms.iter().map(|room| room.places).collect();
    }
    let each = tasks.div_ceil(u32::try_from(rooms.len()).unwrap_or(u32::MAX).max(1));
    rooms.iter().map(|room| room.places.max(each)).collect()
}

/// Fills each node before the next, but leaves one task for each later node.
fn block(places: &[u32], tasks: u32) -> Vec<Vec<u32>> {
    let mut first = 0;
    let mut behind = places.iter().filter(|places| **places > 0).count() as u32;
    let mut nodes = Vec::with_capacity(places.len());
    for places in places {
        behind -= u32::from(*places > 0);
        let left = tasks - first;
        let here = (*places).min(left.saturating_sub(behind).max(1)).min(left);
        nodes.push((first..first + here).collect());
        first += here;
    }
    nodes
}

/// Assigns `size` tasks to each node in turn, as far as it has places.
fn in_turns(places: &[u32], tasks: u32, size: u32) -> Vec<Vec<u32>> {
    let mut nodes: Vec<Vec<u32>> = vec![Vec::new(); places.len()];
    let mut next = 0;
    while next < tasks {
        for (node, places) in nodes.iter_mut().zip(places) {
            let free = places - node.len() as u32;
            let here = size.min(free).min(tasks - next);
            node.extend(next..next + here);
            next += here;
        }
    }
    nodes
}

/// The tasks of a part whose nodes are named for each task (`-m arbitrary`), in the order of the tasks.
///
/// # Errors
/// [`StepError::ForeignNode`] if a node does not belong to it, [`StepError::MoreProcessors`] if a node has fewer places
/// than tasks, except with `overcommit` (`-O`).
pub fn arbitrary(rooms: &[Room], hosts: &[String], overcommit: bool, job: u64) -> Result<Vec<Vec<u32>>, StepError> {
    let mut nodes = vec![Vec::new(); rooms.len()];
    for (task, host) in hosts.iter().enumerate() {
        let place = rooms.iter().position(|room| room.node == *host).ok_or(StepError::ForeignNode { job })?;
        nodes[place].push(u32::try_from(task).unwrap_or(u32::MAX));
    }
    let is_full = |(room, tasks): (&Room, &Vec<u32>)| tasks.len() > room.places as usize;
    if !overcommit && rooms.iter().zip(&nodes).any(is_full) {
        return Err(StepError::MoreProcessors { job });
    }
    Ok(nodes)
}

/// The task with a rank, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its rank in the whole step.
    pub rank: u32,
    /// The part it belongs to.
    pub part: usize,
    /// Its number within the part.
    pub in_part: u32,
    /// The index of its node in [`World::nodes`].
    pub node: usize,
    /// Its number among the step's tasks on that node.
    pub local: u32,
}

/// All tasks of a step, by rank: part after part (SL-R-09).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// The nodes, in the order of the parts, without duplicates.
    pub nodes: Vec<String>,
    /// For each part the indices of its nodes in `nodes`.
    pub part_nodes: Vec<Vec<usize>>,
    /// The tasks.
    pub tasks: Vec<Place>,
}

impl World {
    /// Joins parts: the nodes of each, and the tasks on each node from [`distribute`].
    pub fn join(parts: &[(Vec<String>, Vec<Vec<u32>>)]) -> Self {
        let mut world = Self::default();
        let mut on_node: Vec<u32> = Vec::new();
        for (part, (nodes, layout)) in parts.iter().enumerate() {
            let places: Vec<usize> = nodes.iter().map(|node| world.place_of(node)).collect();
            on_node.resize(world.nodes.len(), 0);
            let pairs =
                places.iter().zip(layout).flat_map(|(place, tasks)| tasks.iter().map(move |task| (*task, *place)));
            let mut pairs: Vec<(u32, usize)> = pairs.collect();
            pairs.sort_unstable();
            for (in_part, node) in pairs {
                let rank = u32::try_from(world.tasks.len()).unwrap_or(u32::MAX);
                world.tasks.push(Place { rank, part, in_part, node, local: on_node[node] });
                on_node[node] += 1;
            }
            world.part_nodes.push(places);
        }
        world
    }

    fn place_of(&mut self, node: &str) -> usize {
        self.nodes.iter().position(|known| known == node).unwrap_or_else(|| {
            self.nodes.push(node.to_owned());
            self.nodes.len() - 1
        })
    }

    /// The number of tasks on each node.
    pub fn tasks_per_node(&self) -> Vec<u64> {
        let mut counts = vec![0; self.nodes.len()];
        for task in &self.tasks {
            counts[task.node] += 1;
        }
        counts
    }
}

/// The number of nodes and tasks of a part: from its options, else those of its component (SL-R-13). With `-N` alone
/// one task per node; with `-n` alone as many nodes as can have a task.
///
/// # Errors
/// [`StepError::MoreNodes`] if the component has fewer nodes than requested.
pub fn step_size(settings: &Settings, component: &ComponentFacts) -> Result<(usize, u32), StepError> {
    let allocated = component.nodes.len();
    let nodes = settings.value("nodes", NodeRange::parse);
    let asked = nodes.map(|nodes| nodes.min as usize);
    if let Some(asked) = asked.filter(|asked| *asked > allocated) {
        return Err(StepError::MoreNodes { allocated, asked });
    }
    // A range takes as many as possible.
    let taken = nodes.map(|nodes| nodes.max.map_or(nodes.min, |max| max) as usize).map(|nodes| nodes.min(allocated));
    let per_node = settings.value("ntasks-per-node", count);
    let tasks = settings.value("ntasks", count);
    let own: u64 = component.tasks.iter().sum();
    let own = u32::try_from(own).unwrap_or(u32::MAX).max(1);
    let times = |nodes: usize, per_node: u32| u32::try_from(nodes).unwrap_or(u32::MAX).saturating_mul(per_node);
    Ok(match (taken, tasks, per_node) {
        (Some(nodes), Some(tasks), _) => (nodes, tasks),
        (Some(nodes), None, per_node) => (nodes, times(nodes, per_node.unwrap_or(1))),
        (None, Some(tasks), _) => (allocated, tasks),
        (None, None, Some(per_node)) => (allocated, times(allocated, per_node)),
        (None, None, None) => (allocated, own),
    })
}

/// The nodes and tasks of a group that shares a plain job with other groups: one of each, unless the group's own
/// options say otherwise; the variables are about the whole job (SL-R-17).
///
/// # Errors
/// See [`step_size`].
pub fn group_size(settings: &Settings, component: &ComponentFacts) -> Result<(usize, u32), StepError> {
    let own = settings.of_command_line();
    if own.is_set("nodes") {
        return step_size(&own, component);
    }
    let tasks = own.value("ntasks", count).or_else(|| own.value("ntasks-per-node", count));
    Ok((1, tasks.unwrap_or(1)))
}

/// The number of nodes that these tasks can use, with a warning if it is smaller (SL-R-22). Only an explicit number of
/// nodes is worth the warning.
pub fn on_fewer_nodes(nodes: usize, tasks: u32) -> (usize, Option<String>) {
    let usable = nodes.min(tasks as usize);
    let warning = || format!("srun: Warning: can't run {tasks} processes on {nodes} nodes, setting nnodes to {usable}");
    (usable, (usable < nodes).then(warning))
}

/// The nodes that a part of a step wants from those that it may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeWish {
    /// The number of nodes.
    pub count: usize,
    /// Must include these (`-w`).
    pub named: Vec<String>,
    /// Must not include these (`-x`).
    pub excluded: Vec<String>,
    /// The index of the first usable node, from 0 (`-r`).
    pub relative: usize,
}

/// Nodes for each part of a step on one component, so that no two parts share any (SL-R-17): the named ones, filled up
/// with the first that are neither taken by an earlier part nor named by another.
///
/// # Errors
/// A named node that the component lacks or that another part names too, or too few nodes.
pub fn pick_nodes(nodes: &[String], wishes: &[NodeWish], job: u64) -> Result<Vec<Vec<String>>, StepError> {
    let mut taken: Vec<&String> = Vec::new();
    for node in wishes.iter().flat_map(|wish| &wish.named) {
        if !nodes.contains(node) {
            return Err(StepError::ForeignNode { job });
        }
        if taken.contains(&node) {
            return Err(StepError::NodeTaken { node: node.clone() });
        }
        taken.push(node);
    }
    let mut picked = Vec::with_capacity(wishes.len());
    for wish in wishes {
        let usable = || nodes.iter().skip(wish.relative).filter(|node| !wish.excluded.contains(node));
        let free: Vec<&String> = usable().filter(|node| !taken.contains(node)).collect();
        let more = wish.count.saturating_sub(wish.named.len());
        if free.len() < more && usable().count() >= wish.count {
            let is_of_others = |node: &&String| taken.contains(node) && !wish.named.contains(node);
            let left_out = nodes.iter().filter(|node| is_of_others(node) || wish.excluded.contains(node));
            return Err(StepError::NodesTaken { asked: wish.count, allocated: nodes.len(), taken: left_out.count() });
        }
        if free.len() < more {
            return Err(StepError::MoreNodes { allocated: usable().count(), asked: wish.count });
        }
        taken.extend(&free[..more]);
        let is_own = |node: &&String| wish.named.contains(node) || free[..more].contains(node);
        picked.push(nodes.iter().filter(is_own).cloned().collect());
    }
    Ok(picked)
}
