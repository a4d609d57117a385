//! Requests whose path ends at nodes: a number of tasks, and each node takes what it can.

use super::{Demand, Part, bounds, scope::of_found};
use crate::free::FreeNode;
use muster_schemas::resources::{Count, Request};
use std::cmp::Reverse;

/// As many tasks on each node as fit, until all are placed: the fewest nodes in the order of their numbers.
pub(super) fn on_any_nodes<'f, 'a>(
    demand: &Demand,
    tasks: Option<u32>,
    nodes: &[&'f FreeNode<'a>],
) -> Option<Vec<Part<'f, 'a>>> {
    let mut left = tasks.unwrap_or(1).max(1);
    let mut parts = Vec::new();
    for node in nodes {
        let here = demand.max_tasks(node).min(left);
        if here > 0 {
            parts.push(part(demand, node, here));
            left -= here;
        }
        if left == 0 {
            return Some(parts);
        }
    }
    None
}

/// The same on no more and no fewer nodes than the request allows.
pub(super) fn within<'f, 'a>(
    demand: &Demand,
    request: &Request,
    nodes: &[&'f FreeNode<'a>],
) -> Option<Vec<Part<'f, 'a>>> {
    let (least, most) = (request.least_nodes.unwrap_or(1), request.most_nodes.unwrap_or(u32::MAX));
    let is_allowed = |parts: &Vec<Part>| (least as usize..=most as usize).contains(&parts.len());
    let fewest = on_any_nodes(demand, request.tasks, nodes);
    match fewest {
        Some(parts) if is_allowed(&parts) => Some(parts),
        Some(parts) if parts.len() < least as usize => {
            on_nodes(demand, Count::exactly(least), Some(request.tasks.unwrap_or(1)), nodes)
        }
        Some(_) => {
            // The nodes with most room, which are the fewest that there can be.
            let mut widest = nodes.to_vec();
            widest.sort_by_key(|node| Reverse(demand.max_tasks(node)));
            let mut parts = on_any_nodes(demand, request.tasks, &widest).filter(is_allowed)?;
            parts.sort_by_key(|part| part.node.node);
            Some(parts)
        }
        None => None,
    }
}

/// As many nodes as are wanted and possible, each with at least one task, as even as possible.
pub(super) fn on_nodes<'f, 'a>(
    demand: &Demand,
    count: Count,
    tasks: Option<u32>,
    nodes: &[&'f FreeNode<'a>],
) -> Option<Vec<Part<'f, 'a>>> {
    let (least, most) = bounds(count, nodes.len());
    // More nodes than tasks only if they are asked for; those beyond the tasks are held without one.
    let most = tasks.map_or(most, |tasks| most.min(tasks.max(least)));
    let able: Vec<_> = nodes.iter().map(|node| (*node, demand.max_tasks(node))).filter(|(_, room)| *room > 0).collect();
    let wanted = of_found(count, (most as usize).min(able.len()));
    if wanted < least as usize {
        return None;
    }
    let Some(tasks) = tasks else {
        return Some(able.iter().take(wanted).map(|(node, _)| part(demand, node, 1)).collect());
    };
    let chosen = choose(able, wanted, tasks)?;
    let rooms: Vec<u32> = chosen.iter().map(|(_, room)| *room).collect();
    let dealt = deal_evenly(tasks.max(1), &rooms)?;
    Some(chosen.iter().zip(dealt).map(|((node, _), tasks)| part(demand, node, tasks)).collect())
}

/// The first nodes, as many as wanted, or those with most room if the first ones have too little.
fn choose<'f, 'a>(
    mut able: Vec<(&'f FreeNode<'a>, u32)>,
    wanted: usize,
    tasks: u32,
) -> Option<Vec<(&'f FreeNode<'a>, u32)>> {
    let room = |nodes: &[(&FreeNode, u32)]| nodes.iter().map(|(_, room)| u64::from(*room)).sum::<u64>();
    if room(&able[..wanted]) < u64::from(tasks) {
        able.sort_by_key(|(_, room)| Reverse(*room));
        if room(&able[..wanted]) < u64::from(tasks) {
            return None;
        }
        able[..wanted].sort_by_key(|(node, _)| node.node);
    }
    able.truncate(wanted);
    Some(able)
}

fn part<'f, 'a>(demand: &Demand, node: &'f FreeNode<'a>, tasks: u32) -> Part<'f, 'a> {
    let cores = node.cores.smallest(u64::from(tasks.max(1)) * u64::from(demand.cpus_per_task));
    Part { node, cores, gpus: 0, tasks }
}

/// Deals tasks out to places with limited room, as evenly as possible, earlier places first; `None` if there is too
/// little room.
pub(super) fn deal_evenly(tasks: u32, rooms: &[u32]) -> Option<Vec<u32>> {
    let mut dealt = vec![0; rooms.len()];
    let mut left = tasks;
    while left > 0 {
        let open: Vec<usize> = (0..rooms.len()).filter(|at| dealt[*at] < rooms[*at]).collect();
        if open.is_empty() {
            return None;
        }
        let each = (left / open.len() as u32).max(1);
        for at in open {
            let here = each.min(rooms[at] - dealt[at]).min(left);
            dealt[at] += here;
            left -= here;
        }
    }
    Some(dealt)
}

/// How many of the tasks the place with this number gets, if there are `places` of them.
pub(super) fn portion(tasks: u32, places: u32, number: u32) -> u32 {
    tasks / places + u32::from(number < tasks % places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_dealt_out_evenly_within_the_room_there_is() {
        assert_eq!(deal_evenly(8, &[8, 8]), Some(vec![4, 4]));
        assert_eq!(deal_evenly(8, &[2, 8]), Some(vec![2, 6]));
        assert_eq!(deal_evenly(7, &[4, 4, 4]), Some(vec![3, 2, 2]));
        assert_eq!(deal_evenly(2, &[4, 4, 4]), Some(vec![1, 1, 0]));
        assert_eq!(deal_evenly(9, &[4, 4]), None);
        assert_eq!((0..3).map(|number| portion(8, 3, number)).collect::<Vec<_>>(), [3, 3, 2]);
    }
}
