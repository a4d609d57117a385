//! Planning by turns in which jobs start in other queues than those in which they wait: the facts that it needs beside
//! jobs and nodes, what it hands on to the next cycle, and how room in units becomes licences.

use crate::model::{Demand, lead_queue};
use muster_schemas::{
    JobId, Timestamp,
    policy::routes::{Routes, Target},
    resources::{Alternative, IndexSet},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A group, by its number, and a user in it.
pub type Owner = (u32, Arc<str>);

/// Facts about a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// What owners have used so far.
    pub usage: BTreeMap<Owner, u64>,
    /// The groups that have used more than their allocation.
    pub over_allocation: BTreeSet<u32>,
    /// The loads of machines; the load of others is not known.
    pub loads: BTreeMap<String, MachineLoad>,
    /// Since when no job has run in a queue, as far as it is known.
    pub idle_since: BTreeMap<String, Timestamp>,
    /// Until when the rules of the usual hours are lifted for a queue.
    pub lifted: BTreeMap<String, Timestamp>,
    /// Promises that earlier cycles made, in the order in which they were made.
    pub promised: Vec<Promised>,
    /// The units of runs on machines with numbered ones.
    pub numbers: BTreeMap<JobId, IndexSet>,
}

/// The load of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineLoad {
    /// Its processors.
    pub processors: u32,
    /// Its load, in millionths.
    pub millionths: u64,
    /// The percentage of time that its system takes, if it is known.
    pub system_percent: Option<u32>,
    /// Whether processors are idle.
    pub is_idle: bool,
}

/// A promise to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promised {
    /// The job.
    pub job: JobId,
    /// The queue in which it starts.
    pub queue: String,
    /// When it starts at the latest, if runs end by their walltimes.
    pub start: Timestamp,
}

/// The outcome of a cycle beside its starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routed {
    /// The queue in which each job starts, in the order of starts.
    pub targets: Vec<(JobId, String)>,
    /// The promises of this cycle.
    pub promised: Vec<Promised>,
    /// The machine and the numbers of its units that started jobs get, if they have numbers.
    pub numbers: Vec<(JobId, String, IndexSet)>,
    /// What the started jobs charge their owners.
    pub charges: Vec<(Owner, u64)>,
    /// Until when the rules of the usual hours are lifted for queues, including those lifted before.
    pub lifted: BTreeMap<String, Timestamp>,
}

/// The licence that counts the nodes of the cluster.
const NODES: &str = "room of all nodes";

fn of_queue(queue: &str) -> String {
    format!("room of queue {queue}")
}

fn of_machine(machine: &str) -> String {
    format!("room of machine {machine}")
}

/// All room, by the licences that count it.
pub(crate) fn rooms(routes: &Routes) -> Vec<(String, u32)> {
    let queues = routes.targets.iter().filter_map(|target| Some((of_queue(&target.queue), target.units?)));
    let machines = routes.machines.iter().filter_map(|machine| Some((of_machine(&machine.name), machine.units?)));
    let nodes = routes.whole_nodes.map(|nodes| (NODES.to_owned(), nodes));
    queues.chain(machines).chain(nodes).collect()
}

/// The demand of a waiting job of this size that starts in a target.
pub(crate) fn waiting(demand: &Demand, routes: &Routes, target: &Target, size: u32) -> Demand {
    let mut all = rooms_of(routes, target);
    all.extend(routes.whole_nodes.map(|_| NODES.to_owned()));
    counted(demand, &target.queue, &all.into_iter().map(|room| (room, size)).collect::<Vec<_>>())
}

/// The demand of a run of this size, which has so many whole nodes.
pub(crate) fn running(demand: &Demand, routes: &Routes, size: u32, nodes: u32) -> Demand {
    let queue = lead_queue(demand);
    let of_target = routes.target(queue).map_or_else(Vec::new, |target| rooms_of(routes, target));
    let mut all: Vec<(String, u32)> = of_target.into_iter().map(|room| (room, size)).collect();
    all.extend(routes.whole_nodes.filter(|_| nodes > 0).map(|_| (NODES.to_owned(), nodes)));
    counted(demand, queue, &all)
}

fn rooms_of(routes: &Routes, target: &Target) -> Vec<String> {
    let machine = target.machine.as_deref().and_then(|name| routes.machine(name));
    let machine = machine.filter(|machine| machine.units.is_some()).map(|machine| of_machine(&machine.name));
    target.units.map(|_| of_queue(&target.queue)).into_iter().chain(machine).collect()
}

/// A demand for room in a queue. The first component has the room of all.
fn counted(demand: &Demand, queue: &str, rooms: &[(String, u32)]) -> Demand {
    let mut demand = demand.clone();
    for (number, component) in demand.components.iter_mut().enumerate() {
        component.queue = queue.into();
        if number == 0 && !rooms.is_empty() {
            let with_rooms = |alternative: &Alternative| {
                let mut alternative = alternative.clone();
                alternative.licences.extend(rooms.iter().cloned());
                alternative
            };
            component.alternatives = component.alternatives.iter().map(with_rooms).collect();
        }
    }
    demand
}
