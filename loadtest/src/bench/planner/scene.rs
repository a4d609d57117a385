//! A site with a partly busy cluster and a long queue, made from a seed.

use anyhow::Result;
use muster_planner::{
    Engine,
    model::{Activation, ActiveRun, ComponentDemand, Demand, Holder, QueuedJob},
    pass::Plan,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::QueueSpec,
    policy::Policy,
    quota::QuotaTable,
    resources::{
        Alternative, ComponentPlacement, Count, IndexSet, Level, LevelCount, Memory, NodeShare, NodeSpec, Per,
        Placement, PropertyValue, Request,
    },
};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const CORES: u32 = 64;
/// Cores of each node of a site of OAR, and how many nodes are below a switch.
const TREE_CORES: u32 = 32;
const TREE_NODES: u32 = 40;
/// The property of the upper level of such a site.
const SWITCH: &str = "switch";
const GIB: u64 = 1 << 30;
const QUEUE: &str = "main";
/// Users who submit.
const USERS: usize = 200;
/// How long the jobs with called filters have waited: longer than all others.
const WAITED_SECONDS: i64 = 10_000_000;
/// The longest walltime.
const DAY_SECONDS: u64 = 86_400;
const SEED: u64 = 20_261_120;

/// A site: its nodes, and what runs and waits.
pub struct Scene {
    pub now: Timestamp,
    pub policy: Arc<Policy>,
    nodes: u32,
    /// Cores of each node.
    cores: u32,
    /// Nodes of each group, if there are groups.
    nodes_of_group: Option<u32>,
    shapes: usize,
    jobs: BTreeMap<JobId, QueuedJob>,
    runs: BTreeMap<JobId, ActiveRun>,
    /// The runs that have not begun: their jobs wait for the verdicts of activation filters.
    asked: BTreeSet<JobId>,
    random: SmallRng,
    queues: Vec<QueueSpec>,
    /// Whether jobs have attributes, which planning by turns uses.
    has_attributes: bool,
    /// The quotas of the site.
    pub quotas: Option<Arc<QuotaTable>>,
}

impl Scene {
    /// Nodes of 64 cores, with about three quarters of the cores in use, and waiting jobs with at most `shapes`
    /// distinct requests.
    pub fn new(nodes: u32, jobs: usize, shapes: usize) -> Self {
        Self::in_queues((nodes, CORES, None), jobs, shapes, vec![QUEUE.to_owned()], false)
    }

    /// A site of OAR: nodes of 32 cores below switches, and jobs of three shapes each, whose levels are switches, nodes, sockets
    /// and cores.
    pub fn of_tree(nodes: u32, jobs: usize, shapes: usize) -> Self {
        let size = (nodes, TREE_CORES, Some(TREE_NODES));
        Self::in_queues(size, jobs, shapes, vec![QUEUE.to_owned()], false)
    }

    /// The same site for planning by turns: its distinct requests are in this many queues of different priorities.
    pub fn by_turns(nodes: u32, jobs: usize, shapes: usize, queues: usize) -> Self {
        Self::in_queues((nodes, CORES, None), jobs, shapes, (0..queues).map(turn_queue).collect(), true)
    }

    fn in_queues(
        (nodes, cores, nodes_of_group): (u32, u32, Option<u32>),
        jobs: usize,
        shapes: usize,
        queues: Vec<String>,
        has_attributes: bool,
    ) -> Self {
        let queue = |(number, name)| QueueSpec { name, priority: number as i64 % 10, ..QueueSpec::default() };
        let mut scene = Self {
            now: Timestamp::from_unix_seconds(1_800_000_000),
            policy: Arc::default(),
            nodes,
            cores,
            nodes_of_group,
            shapes,
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            asked: BTreeSet::new(),
            random: SmallRng::seed_from_u64(SEED),
            queues: queues.into_iter().enumerate().map(queue).collect(),
            has_attributes,
            quotas: None,
        };
        let holders: Vec<Arc<Holder>> = (0..USERS).map(holder).collect();
        scene.fill_nodes(&holders);
        let demands = scene.demands();
        for number in 0..jobs {
            let arrival = scene.now.plus_seconds(number as i64 - jobs as i64);
            let (demand, holder) = (scene.one_of(&demands).clone(), scene.one_of(&holders).clone());
            let id = scene.next_id(number);
            let attributes = scene.attributes(&demand);
            scene.jobs.insert(id, QueuedJob { attributes, ..queued(id, demand, holder, arrival) });
        }
        scene
    }

    /// The same site, but some of its runs are offers: their resources are taken, and their filters are being called.
    pub fn asking(mut self, offers: usize) -> Self {
        self.asked = self.runs.keys().copied().take(offers).collect();
        self
    }

    /// The site as text.
    pub fn words(&self) -> String {
        let Self { nodes, cores, shapes, .. } = self;
        let (jobs, runs) = (self.jobs.len(), self.runs.len());
        let tree = if self.nodes_of_group.is_some() { " in a tree of four levels" } else { "" };
        let ways = if self.nodes_of_group.is_some() { " with three ways each" } else { "" };
        format!("{nodes} nodes x {cores} cores{tree} with {runs} runs, {jobs} waiting jobs of {shapes} shapes{ways}")
    }

    /// An engine that knows the whole site.
    pub fn engine(&self, policy: &Arc<Policy>) -> Result<Engine> {
        let mut engine = Engine::new(policy.clone())?;
        for number in 0..self.nodes {
            engine.set_node(NodeId(number), Arc::new(self.node(number)), true);
        }
        self.queues.iter().for_each(|queue| engine.set_queue(queue));
        engine.set_quotas(self.quotas.as_deref(), u64::from(self.nodes) * u64::from(self.cores));
        self.runs.values().for_each(|run| engine.begin(run.clone()));
        for run in self.asked.iter().filter_map(|job| self.runs.get(job)) {
            let job = queued(run.job, run.demand.clone(), run.holder.clone(), self.now.plus_seconds(-WAITED_SECONDS));
            let activation = Activation { is_filtered: true, is_pending: true, ..Activation::default() };
            engine.enqueue(QueuedJob { activation: Some(Arc::new(activation)), ..job });
        }
        self.jobs.values().for_each(|job| engine.enqueue(job.clone()));
        Ok(engine)
    }

    /// Plans, and starts what the plan starts.
    pub fn plan(&mut self, engine: &mut Engine) -> Plan {
        let plan = engine.pass(self.now, &BTreeSet::new());
        self.follow(engine, &plan);
        plan
    }

    /// Starts what a plan starts.
    pub fn follow(&mut self, engine: &mut Engine, plan: &Plan) {
        engine.set_capacity_freed(false);
        if self.has_attributes {
            // As the planner's service does once the log has them.
            for waiting in &plan.reasons {
                engine.set_known_reason(waiting.job, Some(Arc::new(waiting.reason.clone())));
            }
        }
        for start in &plan.starts {
            engine.dequeue(start.job);
            let Some(job) = self.jobs.remove(&start.job) else { continue };
            let placement = Arc::new(start.placement.clone());
            let way = placement.components.first().map_or(0, |component| component.alternative);
            let expected_end = self.now.plus_seconds(walltime_of_way(&job.demand, way) as i64);
            self.begin(
                engine,
                ActiveRun {
                    job: job.id,
                    demand: job.demand,
                    holder: job.holder,
                    placement,
                    expected_end,
                    attributes: job.attributes,
                },
            );
        }
    }

    /// What planning by turns knows of a request, with processor time as long as its cores could give.
    fn attributes(&self, demand: &Demand) -> Option<Arc<BTreeMap<String, i64>>> {
        let request = demand.components[0].alternatives[0].requests.first()?;
        let (cores, seconds) = (i64::from(request.tasks?), walltime_seconds(demand) as i64);
        let memory_kib = cores * (GIB / 1024) as i64;
        let named = [
            ("cores", cores),
            ("memory_kib", memory_kib),
            ("walltime_seconds", seconds),
            ("cpu_seconds", cores * seconds),
        ];
        self.has_attributes.then(|| Arc::new(named.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    /// One second passes, and one run ends.
    pub fn end_one(&mut self, engine: &mut Engine) {
        self.now = self.now.plus_seconds(1);
        let at = self.random.random_range(0..self.runs.len().max(1));
        if let Some(job) = self.runs.keys().nth(at).copied() {
            self.runs.remove(&job);
            engine.end(job);
            if self.asked.remove(&job) {
                engine.dequeue(job);
            }
            engine.set_capacity_freed(true);
        }
    }

    fn begin(&mut self, engine: &mut Engine, run: ActiveRun) {
        engine.begin(run.clone());
        self.runs.insert(run.job, run);
    }

    /// Adds runs that each use a part of a node, until the node is about three quarters full.
    fn fill_nodes(&mut self, holders: &[Arc<Holder>]) {
        for node in (0..self.nodes).map(NodeId) {
            let mut used = 0;
            let wanted = self.random.random_range(self.cores / 2..=self.cores);
            while used < wanted {
                let cores = self.random.random_range(1..=32).min(self.cores - used);
                let seconds = self.random.random_range(60..=DAY_SECONDS);
                let demand = Arc::new(demand(on_nodes(1, cores, seconds), &self.queues[0].name));
                let attributes = self.attributes(&demand);
                let share = NodeShare {
                    node,
                    cores: IndexSet::from_range(used, used + cores - 1),
                    gpus: IndexSet::default(),
                    memory_bytes: u64::from(cores) * GIB,
                    tasks: cores,
                    exclusive: false,
                };
                let component = ComponentPlacement { alternative: 0, shares: vec![share] };
                let job = self.next_id(0);
                let run = ActiveRun {
                    job,
                    demand,
                    holder: self.one_of(holders).clone(),
                    placement: Arc::new(Placement { components: vec![component] }),
                    expected_end: self.now.plus_seconds(seconds as i64),
                    attributes,
                };
                self.runs.insert(job, run);
                used += cores;
            }
        }
    }

    fn demands(&mut self) -> Vec<Arc<Demand>> {
        if let Some(nodes_of_group) = self.nodes_of_group {
            let most = nodes_of_group.min(self.nodes);
            let ways = (0..self.shapes).map(|_| ways_in_tree(&mut self.random, most));
            return ways.collect::<Vec<_>>().into_iter().map(|ways| Arc::new(demand_of(ways, QUEUE))).collect();
        }
        let alternatives = alternatives(&mut self.random, self.shapes, self.nodes);
        let queues = self.queues.iter().cycle();
        alternatives.into_iter().zip(queues).map(|(way, queue)| Arc::new(demand(way, &queue.name))).collect()
    }

    fn node(&self, number: u32) -> NodeSpec {
        let mut node = NodeSpec { cores: self.cores, ..node(number) };
        if let Some(nodes) = self.nodes_of_group {
            let switch = PropertyValue::Text(format!("s{}", number / nodes));
            node.properties.insert(SWITCH.to_owned(), switch);
        }
        node
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.random.random_range(0..all.len())]
    }

    /// The runs are older than the waiting jobs.
    fn next_id(&self, waiting: usize) -> JobId {
        JobId::job((self.runs.len() + waiting) as u64 + 1)
    }
}

/// A waiting job.
pub fn queued(id: JobId, demand: Arc<Demand>, holder: Arc<Holder>, arrival: Timestamp) -> QueuedJob {
    QueuedJob {
        id,
        tasks: None,
        demand,
        holder,
        priority: 0,
        is_list: false,
        arrival,
        attributes: None,
        slot: None,
        activation: None,
    }
}

/// A user.
pub fn holder(number: usize) -> Arc<Holder> {
    Arc::new(Holder {
        user: format!("user{number}").into(),
        group: number as u32 % 10,
        account: None,
        charges: Vec::new(),
        marks: None,
    })
}

/// A node of 64 cores.
pub fn node(number: u32) -> NodeSpec {
    NodeSpec {
        name: format!("node{number}"),
        cores: CORES,
        sockets: 2,
        memory_bytes: 256 * GIB,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    }
}

/// Distinct requests: three in five for a part of a node, the others for several nodes.
pub fn alternatives(random: &mut SmallRng, count: usize, nodes: u32) -> Vec<Alternative> {
    let mut alternatives = BTreeSet::new();
    while alternatives.len() < count {
        let seconds = 60 * random.random_range(1..=DAY_SECONDS / 60);
        let (wanted, cores) = match random.random_range(0..5) {
            0..3 => (1, random.random_range(1..=CORES)),
            _ => (random.random_range(2..=16), random.random_range(8..=CORES)),
        };
        alternatives.insert(on_nodes(wanted.min(nodes), cores, seconds));
    }
    alternatives.into_iter().collect()
}

/// A request for nodes with this many cores on each.
fn on_nodes(nodes: u32, cores: u32, walltime_seconds: u64) -> Alternative {
    let request = Request {
        path: vec![LevelCount { level: Level::Node, count: Count::exactly(nodes) }],
        tasks: Some(nodes * cores),
        tasks_per_node: Some(cores),
        memory: Some(Memory { bytes: GIB, per: Per::Core }),
        ..Request::default()
    };
    Alternative { requests: vec![request], walltime_seconds: Some(walltime_seconds), ..Alternative::default() }
}

/// The name of a queue of a site for planning by turns.
pub fn turn_queue(number: usize) -> String {
    format!("queue{number:03}")
}

/// Three ways to run a job: nodes below one switch with some cores of one socket each, twice as many nodes anywhere for half
/// the time, and half as many with whole sockets.
fn ways_in_tree(random: &mut SmallRng, most_nodes: u32) -> Vec<Alternative> {
    let seconds = 60 * random.random_range(4..=DAY_SECONDS / 60);
    let nodes = random.random_range(1..=8).min(most_nodes);
    let cores = random.random_range(1..=TREE_CORES / 2);
    let level = |level, count| LevelCount { level, count: Count::exactly(count) };
    let way = |path, walltime_seconds| {
        let request = Request { path, ..Request::default() };
        Alternative { requests: vec![request], walltime_seconds: Some(walltime_seconds), ..Alternative::default() }
    };
    let part = |nodes| vec![level(Level::Node, nodes), level(Level::Socket, 1), level(Level::Core, cores)];
    let below_one = [level(Level::Group(SWITCH.to_owned()), 1)].into_iter().chain(part(nodes)).collect();
    let whole = vec![level(Level::Node, nodes.div_ceil(2)), level(Level::Socket, 2)];
    vec![way(below_one, seconds), way(part((2 * nodes).min(most_nodes)), seconds / 2), way(whole, seconds * 3 / 4)]
}

fn demand(alternative: Alternative, queue: &str) -> Demand {
    demand_of(vec![alternative], queue)
}

fn demand_of(ways: Vec<Alternative>, queue: &str) -> Demand {
    let component =
        ComponentDemand { queue: queue.into(), reservation: None, deadline: None, alternatives: ways.into() };
    Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 }
}

fn walltime_seconds(demand: &Demand) -> u64 {
    walltime_of_way(demand, 0)
}

fn walltime_of_way(demand: &Demand, way: u32) -> u64 {
    demand.components[0].alternatives[way as usize].walltime_seconds.unwrap_or(DAY_SECONDS)
}
