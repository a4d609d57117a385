//! The jobs of a trace in the engine's form.

use super::Machine;
use crate::{
    model::{ComponentDemand, Demand, Holder, QueuedJob},
    projection::asked_by_name,
};
use muster_schemas::{
    JobId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    policy::{LimitPer, OrderKey, Policy},
    resources::{Alternative, Count, Level, LevelCount, Request},
};
use muster_swf::{Headers, TraceJob};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The queue of jobs whose own queue the policy does not name.
const DEFAULT_QUEUE: &str = "default";

/// A time of a trace.
pub(super) fn time_of(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds)
}

/// A job to simulate.
#[derive(Clone, Debug)]
pub struct SimulatedJob {
    /// Its label in the trace.
    pub job_id: i64,
    /// When it is submitted; 0 or more.
    pub submit_seconds: i64,
    /// How long it runs once it has started; at least 1.
    pub runtime_seconds: i64,
    /// The policy's estimate of its run time; never less than the run time.
    pub estimate_seconds: i64,
    /// How many processors it holds; at least 1.
    pub procs: u32,
    /// The request as the engine takes it.
    pub demand: Arc<Demand>,
    /// Its owner.
    pub holder: Arc<Holder>,
    /// Numbers that formulas use by name, if the policy has formulas.
    pub attributes: Option<Arc<BTreeMap<String, i64>>>,
}

impl SimulatedJob {
    pub(super) fn queued(&self, id: JobId) -> QueuedJob {
        QueuedJob {
            id,
            tasks: None,
            demand: self.demand.clone(),
            holder: self.holder.clone(),
            priority: 0,
            is_list: false,
            arrival: Timestamp::from_unix_seconds(self.submit_seconds),
            attributes: self.attributes.clone(),
            slot: None,
            activation: None,
        }
    }
}

/// The input of a simulation: jobs in queue order, and the queues that they are in.
#[derive(Clone, Debug)]
pub struct Workload {
    jobs: Vec<SimulatedJob>,
    queues: Vec<QueueSpec>,
    dropped_for_size: u64,
}

impl Workload {
    /// The jobs of a window of a trace, in its order, for a machine and a policy.
    ///
    /// A job goes into the queue that the policy (or the configuration of the cluster) calls as the trace does: by its
    /// name (header `Queue`), its number or the name of its partition; otherwise into the default queue. On a cluster,
    /// jobs are dropped if all nodes of their queue together cannot serve them.
    pub fn new(window: &[TraceJob], headers: &Headers, machine: &Machine, policy: &Policy) -> Self {
        Self::in_shapes(window, headers, machine, policy, None)
    }

    /// The same, with shapes that a trace does not have: jobs ask for nodes of `cores_of_node` cores. A job whose processors are a
    /// multiple of that asks for that number of nodes with all of these cores, a smaller one for some cores of one node. All others, and
    /// those for more such nodes than the cluster has, ask for processors anywhere.
    pub fn in_shapes(
        window: &[TraceJob],
        headers: &Headers,
        machine: &Machine,
        policy: &Policy,
        cores_of_node: Option<u32>,
    ) -> Self {
        let mut builder = Builder::new(headers, machine, policy);
        builder.shape = cores_of_node.filter(|cores| *cores > 0).map(|cores| NodeShape::new(cores, machine));
        let jobs: Vec<_> = window.iter().filter_map(|job| builder.job(job)).collect();
        let dropped_for_size = (window.len() - jobs.len()) as u64;
        Self { jobs, queues: builder.queues, dropped_for_size }
    }

    /// The jobs, in queue order.
    pub fn jobs(&self) -> &[SimulatedJob] {
        &self.jobs
    }

    /// The queues of the engine.
    pub fn queues(&self) -> &[QueueSpec] {
        &self.queues
    }

    /// Jobs of the window that no nodes of the cluster can serve.
    pub fn dropped_for_size(&self) -> u64 {
        self.dropped_for_size
    }
}

/// Equal values are created once: the engine compares them by address first.
struct Builder<'h> {
    queue_names: BTreeMap<i64, &'h str>,
    partition_names: BTreeMap<i64, &'h str>,
    /// The names that a queue of the trace can have.
    known: BTreeSet<String>,
    default_queue: Arc<str>,
    queues: Vec<QueueSpec>,
    /// How many processors a job of a queue can have; without an entry, all of them.
    capacities: BTreeMap<Arc<str>, u64>,
    queue_of: BTreeMap<(i64, i64), Arc<str>>,
    demands: BTreeMap<(Arc<str>, u32, i64), Arc<Demand>>,
    holders: BTreeMap<(i64, i64), Arc<Holder>>,
    wants_attributes: bool,
    /// The settings of the cluster, under planning by turns: it knows by name what jobs ask for.
    settings_of_turns: Option<ClusterSettings>,
    /// The nodes that jobs ask for, if they do not just ask for processors.
    shape: Option<NodeShape>,
}

/// Nodes of a size.
#[derive(Clone, Copy)]
struct NodeShape {
    cores: u32,
    /// How many nodes of the cluster have that many cores.
    nodes: u32,
}

impl NodeShape {
    fn new(cores: u32, machine: &Machine) -> Self {
        let nodes = match machine {
            Machine::Pool { .. } => 0,
            Machine::Cluster(config) => config.nodes.iter().filter(|node| node.cores >= cores).count(),
        };
        Self { cores, nodes: u32::try_from(nodes).unwrap_or(u32::MAX) }
    }

    /// The counts of nodes and of cores on each; `None` if the processors are no number of nodes.
    fn of(self, procs: u32) -> Option<(u32, u32)> {
        let (nodes, cores) = if procs < self.cores { (1, procs) } else { (procs / self.cores, self.cores) };
        (nodes * cores == procs && nodes <= self.nodes).then_some((nodes, cores))
    }
}

impl<'h> Builder<'h> {
    fn new(headers: &'h Headers, machine: &Machine, policy: &Policy) -> Self {
        let (default_queue, mut queues, capacities) = match machine {
            Machine::Pool { .. } => (DEFAULT_QUEUE.to_owned(), Vec::new(), BTreeMap::new()),
            Machine::Cluster(config) => {
                (config.settings.default_queue.clone(), config.queues.clone(), capacities(config))
            }
        };
        let mut wanted = vec![default_queue.clone()];
        wanted.extend(policy.queues.keys().cloned());
        wanted.extend(policy.limits.iter().filter_map(|limit| limit.queue.clone()));
        let per_queue = || policy.limits.iter().filter(|limit| limit.per == LimitPer::Queue);
        wanted.extend(per_queue().filter_map(|limit| limit.name.clone()));
        let queue_names = names(headers, "Queue");
        if per_queue().any(|limit| limit.name.is_none()) {
            wanted.extend(queue_names.values().map(|name| (*name).to_owned()));
        }
        for name in wanted {
            if !queues.iter().any(|queue| queue.name == name) {
                queues.push(QueueSpec { name, ..QueueSpec::default() });
            }
        }
        Self {
            queue_names,
            partition_names: names(headers, "Partition"),
            known: queues.iter().map(|queue| queue.name.clone()).collect(),
            default_queue: default_queue.into(),
            queues,
            capacities,
            queue_of: BTreeMap::new(),
            demands: BTreeMap::new(),
            holders: BTreeMap::new(),
            wants_attributes: has_formula(policy) || policy.turns.is_some(),
            settings_of_turns: policy.turns.is_some().then(|| match machine {
                Machine::Pool { .. } => ClusterSettings::default(),
                Machine::Cluster(config) => config.settings.clone(),
            }),
            shape: None,
        }
    }

    fn job(&mut self, job: &TraceJob) -> Option<SimulatedJob> {
        let procs = u32::try_from(job.procs).ok()?;
        let queue = self.queue(job);
        if self.capacities.get(&queue).is_some_and(|capacity| job.procs > *capacity) {
            return None;
        }
        let demand = self.demand(queue, procs, job.estimate_seconds);
        let asked = |settings| asked_by_name(&demand, settings);
        let all_of = || {
            let asked = self.settings_of_turns.as_ref().map(asked);
            Arc::new(attributes(job).into_iter().chain(asked.into_iter().flatten()).collect())
        };
        let attributes = self.wants_attributes.then(all_of);
        Some(SimulatedJob {
            job_id: job.id,
            submit_seconds: job.submit_seconds,
            runtime_seconds: job.runtime_seconds,
            estimate_seconds: job.estimate_seconds,
            procs,
            demand,
            holder: self.holder(job),
            attributes,
        })
    }

    fn queue(&mut self, job: &TraceJob) -> Arc<str> {
        if let Some(queue) = self.queue_of.get(&(job.queue, job.partition)) {
            return queue.clone();
        }
        let number = job.queue.to_string();
        let names = [
            self.queue_names.get(&job.queue).copied(),
            Some(number.as_str()),
            self.partition_names.get(&job.partition).copied(),
        ];
        let known = names.into_iter().flatten().find(|name| self.known.contains(*name));
        let queue = known.map_or_else(|| self.default_queue.clone(), Arc::from);
        self.queue_of.insert((job.queue, job.partition), queue.clone());
        queue
    }

    fn demand(&mut self, queue: Arc<str>, procs: u32, estimate_seconds: i64) -> Arc<Demand> {
        let shape = self.shape.and_then(|shape| shape.of(procs));
        let make = |queue: &Arc<str>| {
            let level = |level, count| LevelCount { level, count: Count::exactly(count) };
            let request = match shape {
                Some((nodes, cores)) => {
                    let path = vec![level(Level::Node, nodes), level(Level::Core, cores)];
                    Request { path, ..Request::default() }
                }
                None => Request { tasks: Some(procs), ..Request::default() },
            };
            let alternative = Alternative {
                requests: vec![request],
                walltime_seconds: Some(estimate_seconds.unsigned_abs()),
                ..Alternative::default()
            };
            let component = ComponentDemand {
                queue: queue.clone(),
                reservation: None,
                deadline: None,
                alternatives: [alternative].into(),
            };
            Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 })
        };
        let key = (queue, procs, estimate_seconds);
        self.demands.entry(key).or_insert_with_key(|(queue, ..)| make(queue)).clone()
    }

    fn holder(&mut self, job: &TraceJob) -> Arc<Holder> {
        let make = || {
            // A group that is not known belongs to nobody.
            let group = u32::try_from(job.group).unwrap_or(u32::MAX);
            Arc::new(Holder {
                user: job.user.to_string().into(),
                group,
                account: None,
                charges: Vec::new(),
                marks: None,
            })
        };
        self.holders.entry((job.user, job.group)).or_insert_with(make).clone()
    }
}

/// The numbers of a job that a formula can use.
fn attributes(job: &TraceJob) -> BTreeMap<String, i64> {
    let numbers = [
        ("user", job.user),
        ("group", job.group),
        ("application", job.application),
        ("queue", job.queue),
        ("partition", job.partition),
    ];
    numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
}

fn has_formula(policy: &Policy) -> bool {
    let of_queues = policy.queues.values().filter_map(|queue| queue.order.as_ref()).flatten();
    policy.order.iter().chain(of_queues).any(|key| matches!(key, OrderKey::Formula { .. }))
}

/// The names that headers such as `Queue: 1 short` give to numbers. In `1 - short - for tests` the text after the name
/// is prose.
fn names<'h>(headers: &'h Headers, key: &str) -> BTreeMap<i64, &'h str> {
    let mut names = BTreeMap::new();
    for value in headers.all(key) {
        let digits = value.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = value.split_at(digits);
        let name = rest.trim_start_matches([' ', '\t', '-', ':']).split(" - ").next().unwrap_or_default().trim();
        if let Ok(number) = number.parse()
            && !name.is_empty()
        {
            names.entry(number).or_insert(name);
        }
    }
    names
}

/// How many one-core tasks the nodes of each queue can take together.
fn capacities(config: &ClusterConfig) -> BTreeMap<Arc<str>, u64> {
    let memory_per_core = config.settings.default_memory_per_core_bytes;
    let tasks_of = |cores: u32, memory_bytes: u64| match memory_per_core {
        Some(bytes) if bytes > 0 => u64::from(cores).min(memory_bytes / bytes),
        _ => u64::from(cores),
    };
    let capacity = |queue: &QueueSpec| {
        let serves = |name: &String| queue.nodes.is_empty() || queue.nodes.contains(name);
        config.nodes.iter().filter(|node| serves(&node.name)).map(|node| tasks_of(node.cores, node.memory_bytes)).sum()
    };
    config.queues.iter().map(|queue| (queue.name.as_str().into(), capacity(queue))).collect()
}
