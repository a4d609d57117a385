//! The planner's engine with the state of a file.

mod preset;
mod site;

pub use preset::Carried;

use crate::{
    code::QUEUE_NOT_EXECUTION,
    moment::Moment,
    nodes,
    resources::Resources,
    state_file::{JobState, NodeState, QueueState, State, StateError, StateFile},
};
use jiff::{Timestamp as Instant, ToSpan, tz::TimeZone};
use muster_pbs_policy::{
    check::Policy as Tables,
    engine::{self, Limits, Range},
    nodes::MonitorConfig,
    past_usage,
    preset::PresetConfig,
    routes,
    usage::Usage,
    values,
};
use muster_planner::{
    Engine,
    model::{ActiveRun, ComponentDemand, Demand, Holder, NodeLoads, QueuedJob},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::QueueSpec,
    command::Start,
    policy::LoadedNode,
    resources::{Alternative, ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement, PropertyValue},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The node that stands for the server: what jobs without nodes run on. Limits of resources are those of the policy, so
/// it has more than enough of everything.
const SERVER: NodeId = NodeId(1);
const PLENTY_OF_CORES: u32 = 2 * 1024 * 1024;
const PLENTY_OF_BYTES: u64 = 1 << 60;
/// Maximum number of jobs.
const MOST_JOBS: usize = 1_000_000;

/// An engine that knows everything, and what the lines of a plan need beside it.
pub struct Scene<'s> {
    pub engine: Engine,
    pub now: Timestamp,
    pub warnings: Vec<String>,
    /// Jobs of queues that hold jobs for others: the index of the queue, the job, and the code.
    pub others: Vec<(usize, JobId, String)>,
    state: &'s StateFile,
    queues: BTreeMap<&'s str, usize>,
    /// The nodes that jobs can have as a whole, by their numbers.
    nodes: BTreeMap<NodeId, &'s str>,
    /// The nodes that jobs which ask for none share, by their numbers, if loads choose among them in this cycle.
    timeshared: Option<BTreeMap<NodeId, &'s str>>,
    zone: TimeZone,
    groups: BTreeMap<&'s str, u32>,
    preset: Option<&'s PresetConfig>,
    /// Jobs that start again, whatever the gates say.
    pub reruns: Vec<JobId>,
    /// The days since the last decay, and when the last of them was over.
    days: (i64, Instant),
}

impl<'s> Scene<'s> {
    /// Tells an engine the state.
    ///
    /// # Errors
    /// If the state makes no sense.
    pub fn new(tables: &'s Tables, state: &'s StateFile) -> Result<Self, StateError> {
        let zone = zone(state)?;
        let now = instant(state.now, &zone, "now")?;
        let queues = queue_numbers(&state.queues)?;
        let range = Range { from: now, until: now.checked_add((24 * 400).hours()).unwrap_or(now), zone: zone.clone() };
        let of_queues: Vec<(String, Limits)> =
            state.queues.iter().map(|queue| (queue.name.clone(), limits_of_queue(queue))).collect();
        let server = &state.server;
        let of_server = limits(
            (server.max_running, server.max_user_run, server.max_group_run),
            &server.resources_available,
            &server.resources_max,
        );
        let last_decay = state.last_decay.map(|moment| instant(moment, &zone, "last_decay")).transpose()?;
        let days = past_usage::days_since(last_decay.unwrap_or(now), now);
        let mut warnings = Vec::new();
        let policy = match &tables.preset {
            None => engine::policy(tables, &of_server, &of_queues, limits_of_loads(state), &range),
            Some(config) => {
                let site = site::site(state, of_server, of_queues, range, &mut warnings);
                routes::policy(config, tables, &site)
            }
        };
        if let Some(fault) = policy.faults().first() {
            return Err(StateError::at("server", format!("the planner cannot follow it: {fault}")));
        }
        let chooses = policy.turns.as_ref().is_some_and(|turns| turns.rules_at(micros(now)).by_load.is_some());
        let engine = Engine::new(Arc::new(policy)).map_err(|error| StateError::at("server", error.to_string()))?;
        let mut scene = Self {
            engine: engine.without_reasons(),
            now: micros(now),
            warnings,
            others: Vec::new(),
            state,
            queues,
            nodes: BTreeMap::new(),
            timeshared: chooses.then(BTreeMap::new),
            zone,
            groups: BTreeMap::new(),
            preset: tables.preset.as_ref(),
            reruns: Vec::new(),
            days,
        };
        scene.tell_queues();
        scene.tell_nodes()?;
        scene.tell_loads();
        scene.tell_jobs()?;
        match scene.preset {
            None => scene.tell_usage(tables, now)?,
            Some(config) => scene.tell_conditions(config)?,
        }
        Ok(scene)
    }

    /// The id of a job in the file.
    pub fn name(&self, job: JobId) -> &'s str {
        let at = usize::try_from(job.number).ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.state.jobs.get(at)).map_or("?", |job| job.id.as_str())
    }

    /// The index of a job's queue.
    pub fn queue_of(&self, job: JobId) -> usize {
        let at = usize::try_from(job.number).ok().and_then(|number| number.checked_sub(1));
        let job = at.and_then(|at| self.state.jobs.get(at));
        job.and_then(|job| self.queues.get(job.queue.as_str())).copied().unwrap_or(usize::MAX)
    }

    /// The name of a job's queue.
    pub fn queue_name(&self, job: JobId) -> &'s str {
        self.state.queues.get(self.queue_of(job)).map_or("", |queue| queue.name.as_str())
    }

    /// The nodes of a start, with a blank in front; nothing for a job that asks for none.
    pub fn shown(&self, start: &Start) -> String {
        let shared = |node: &NodeId| self.timeshared.as_ref()?.get(node);
        let name = |share: &NodeShare| self.nodes.get(&share.node).or_else(|| shared(&share.node)).copied();
        let names: Vec<&str> = start.placement.shares().filter_map(name).collect();
        if names.is_empty() { String::new() } else { format!(" {}", names.join("+")) }
    }

    fn tell_queues(&mut self) {
        for queue in &self.state.queues {
            self.engine.set_queue(&QueueSpec {
                name: queue.name.clone(),
                priority: queue.priority.unwrap_or(0),
                started: queue.started.unwrap_or(false),
                enabled: queue.enabled.unwrap_or(true),
                ..QueueSpec::default()
            });
        }
    }

    fn tell_nodes(&mut self) -> Result<(), StateError> {
        let properties = [(nodes::SERVER.to_owned(), PropertyValue::Flag(true))].into();
        let server = NodeSpec { properties, ..node_spec("server", PLENTY_OF_CORES, PLENTY_OF_BYTES) };
        self.engine.set_node(SERVER, Arc::new(server), true);
        let mut names = BTreeSet::new();
        for (index, node) in self.state.nodes.iter().enumerate() {
            if !names.insert(node.name.as_str()) {
                return Err(StateError::at(format!("nodes[{index}].name"), format!("{} stands twice", node.name)));
            }
            let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX).saturating_add(2));
            // Timeshared nodes are for jobs that ask for none.
            if node.ts {
                if let Some(timeshared) = &mut self.timeshared {
                    timeshared.insert(id, &node.name);
                    self.engine.set_node(id, Arc::new(timeshared_spec(node, index)?), site::is_available(node));
                }
                continue;
            }
            self.engine.set_node(id, Arc::new(spec_of(node, index)?), site::is_available(node));
            self.nodes.insert(id, &node.name);
        }
        Ok(())
    }

    /// The loads of timeshared nodes; others are not chosen by them.
    fn tell_loads(&mut self) {
        let Some(timeshared) = &self.timeshared else { return };
        let load = |name: &str| self.state.nodes.iter().find(|node| node.name == name)?.loadave;
        let known = timeshared.iter().filter_map(|(id, name)| Some((*id, load(name)?.millionths())));
        let millionths = known.collect();
        self.engine.set_loads(NodeLoads { millionths, last: None });
    }

    fn tell_jobs(&mut self) -> Result<(), StateError> {
        let state = self.state;
        if state.jobs.len() > MOST_JOBS {
            return Err(StateError::at("jobs", format!("expected at most {MOST_JOBS}")));
        }
        let mut ids = BTreeSet::new();
        let mut arrival = self.first_arrival()?;
        for (index, job) in state.jobs.iter().enumerate() {
            let place = |field: &str| format!("jobs[{index}].{field}");
            if !ids.insert(job.id.as_str()) {
                return Err(StateError::at(place("id"), format!("{} stands twice", job.id)));
            }
            let queue = self.queues.get(job.queue.as_str()).copied();
            let Some(queue) = queue.and_then(|at| state.queues.get(at)) else {
                return Err(StateError::at(place("queue"), format!("there is no queue {}", job.queue)));
            };
            // The order of the list is that of arrival.
            if let Some(queued) = job.qtime.filter(|_| self.preset.is_none()) {
                let queued = micros(instant(queued, &self.zone, &place("qtime"))?);
                if queued < arrival {
                    let text = "was queued before the job ahead of it in the list, and counts as queued with it";
                    self.warnings.push(format!("job {} {text}", job.id));
                }
                arrival = arrival.max(queued);
            }
            let arrival = self.eligible_since(job, arrival, &place)?;
            let (id, queue) = (JobId::job(index as u64 + 1), self.queue_of_turn(job, queue));
            let told = self.told(job, queue).map_err(|message| StateError::at(place("request"), message))?;
            match job.state {
                State::Q if self.is_rerun(job) => self.start_again(id, told),
                State::Q if is_execution(queue) => self.engine.enqueue(QueuedJob {
                    id,
                    tasks: None,
                    demand: told.demand,
                    holder: told.holder,
                    priority: job.priority.unwrap_or(0),
                    is_list: false,
                    arrival,
                    attributes: Some(told.attributes),
                    slot: None,
                    activation: None,
                }),
                State::Q => {
                    let queue = self.queues.get(job.queue.as_str()).copied().unwrap_or(usize::MAX);
                    self.others.push((queue, id, QUEUE_NOT_EXECUTION.to_owned()));
                }
                State::R | State::E => self.run(id, job, told, &place)?,
                State::T | State::H | State::W => {}
            }
        }
        Ok(())
    }

    /// Jobs without a time were queued with the first one that has one.
    fn first_arrival(&self) -> Result<Timestamp, StateError> {
        let first = self.state.jobs.iter().enumerate().find_map(|(index, job)| Some((index, job.qtime?)));
        match first {
            Some((index, queued)) => Ok(micros(instant(queued, &self.zone, &format!("jobs[{index}].qtime"))?)),
            None => Ok(self.now),
        }
    }

    fn run(
        &mut self,
        id: JobId,
        job: &'s JobState,
        told: Told,
        place: &impl Fn(&str) -> String,
    ) -> Result<(), StateError> {
        let mut shares = Vec::with_capacity(job.nodes.len().max(1));
        for name in &job.nodes {
            let node = self.state.nodes.iter().find(|node| node.name == *name);
            if node.is_none() {
                return Err(StateError::at(place("nodes"), format!("there is no node {name}")));
            }
            let whole = self.nodes.iter().find(|(_, known)| *known == name);
            shares.extend(whole.map(|(node, _)| NodeShare { exclusive: true, ..share(*node, 0) }));
        }
        if shares.is_empty() {
            if told.is_whole {
                self.warnings.push(format!("job {} runs on nodes that are not named: none is taken", job.id));
            }
            shares.push(share(SERVER, u32::try_from(id.number).unwrap_or(0)));
        }
        let started = job.started.map(|started| instant(started, &self.zone, &place("started"))).transpose()?;
        let walltime = told.walltime_seconds.and_then(|seconds| i64::try_from(seconds).ok());
        let end = started.zip(walltime).map(|(started, walltime)| micros(started).plus_seconds(walltime));
        let placement = Placement { components: vec![ComponentPlacement { alternative: 0, shares }] };
        self.engine.begin(ActiveRun {
            job: id,
            demand: told.demand,
            holder: told.holder,
            placement: Arc::new(placement),
            expected_end: end.unwrap_or(Timestamp::MAX),
            attributes: Some(told.attributes),
        });
        Ok(())
    }

    /// A job's request with the defaults of its queue and of the server (PBS-Q-08).
    fn told(&mut self, job: &'s JobState, queue: &'s QueueState) -> Result<Told, String> {
        let request: Resources = job.request.or([&queue.resources_default, &self.state.server.resources_default]);
        let walltime_seconds = request.number("walltime");
        let mut attributes: BTreeMap<String, i64> = BTreeMap::new();
        for (name, value) in request.numbers() {
            let value = i64::try_from(value).map_err(|_| format!("{name}: {value} is too large"))?;
            attributes.insert(engine::attribute(name).to_owned(), value);
        }
        self.add_attributes(job, queue, &mut attributes);
        let whole = self.whole_nodes(&request);
        let requests = match whole.as_deref() {
            None if self.timeshared.is_some() => vec![nodes::timeshared(&request)],
            None => vec![nodes::none()],
            Some(text) => {
                let names = self.nodes.values().copied().collect();
                let (requests, count) = nodes::read(text, &names).map_err(|error| format!("nodes: {error}"))?;
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                attributes.entry(engine::attribute("nodect").to_owned()).or_insert(count);
                requests
            }
        };
        let alternative = Alternative { requests, walltime_seconds, scatter: true, ..Alternative::default() };
        let component = ComponentDemand {
            queue: queue.name.as_str().into(),
            reservation: None,
            deadline: None,
            alternatives: [alternative].into(),
        };
        let next = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let group = *self.groups.entry(job.group.as_deref().unwrap_or_default()).or_insert(next);
        Ok(Told {
            demand: Arc::new(Demand { components: vec![component], sharing: None, fixed: None, guard_seconds: 0 }),
            holder: Arc::new(Holder {
                user: job.user.as_str().into(),
                group,
                account: None,
                charges: Vec::new(),
                marks: None,
            }),
            attributes: Arc::new(attributes),
            walltime_seconds,
            is_whole: whole.is_some(),
        })
    }

    /// Usage after the halvings that are due; all who have jobs are named (PBS-FS-04, PBS-FS-08).
    fn tell_usage(&mut self, tables: &Tables, now: Instant) -> Result<(), StateError> {
        let last_decay = self.state.last_decay.map(|moment| instant(moment, &self.zone, "last_decay")).transpose()?;
        let mut usage = Usage::new(last_decay.unwrap_or(now));
        for (user, used) in &self.state.usage {
            usage.set(user, *used);
        }
        usage.decay(tables.sched_config.half_life_seconds, now);
        let with_jobs = self.state.jobs.iter().map(|job| (job.user.as_str().into(), usage.of(&job.user)));
        let used = usage.users().map(|(user, used)| (user.into(), used));
        let all = used.chain(with_jobs).collect();
        self.engine.set_user_usage(all);
        Ok(())
    }
}

/// A job as the engine takes it.
struct Told {
    demand: Arc<Demand>,
    holder: Arc<Holder>,
    attributes: Arc<BTreeMap<String, i64>>,
    walltime_seconds: Option<u64>,
    /// Whether it gets whole nodes.
    is_whole: bool,
}

fn zone(state: &StateFile) -> Result<TimeZone, StateError> {
    match state.tz.as_deref() {
        None => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name).map_err(|_| StateError::at("tz", format!("there is no time zone {name}"))),
    }
}

fn instant(moment: Moment, zone: &TimeZone, place: &str) -> Result<Instant, StateError> {
    moment.instant(zone).ok_or_else(|| StateError::at(place, "the calendar does not reach so far"))
}

fn micros(instant: Instant) -> Timestamp {
    Timestamp(instant.as_microsecond())
}

fn queue_numbers(queues: &[QueueState]) -> Result<BTreeMap<&str, usize>, StateError> {
    let mut numbers = BTreeMap::new();
    for (index, queue) in queues.iter().enumerate() {
        let place = |field: &str| format!("queues[{index}].{field}");
        if numbers.insert(queue.name.as_str(), index).is_some() {
            return Err(StateError::at(place("name"), format!("{} stands twice", queue.name)));
        }
        let is_known = |kind: &String| begins("execution", kind) || begins("route", kind);
        if let Some(kind) = queue.kind.as_ref().filter(|kind| !is_known(kind)) {
            return Err(StateError::at(place("type"), format!("expected execution or route, found {kind}")));
        }
    }
    Ok(numbers)
}

fn is_execution(queue: &QueueState) -> bool {
    queue.kind.as_deref().is_some_and(|kind| begins("execution", kind))
}

/// Whether a word is a beginning of another one, in any case.
fn begins(whole: &str, word: &str) -> bool {
    !word.is_empty() && whole.starts_with(&word.to_ascii_lowercase())
}

fn limits_of_queue(queue: &QueueState) -> Limits {
    let counts = (queue.max_running, queue.max_user_run, queue.max_group_run);
    limits(counts, &queue.resources_available, &queue.resources_max)
}

fn limits(
    (max_running, max_user_run, max_group_run): (Option<u64>, Option<u64>, Option<u64>),
    available: &Resources,
    max: &Resources,
) -> Limits {
    let numbers = |resources: &Resources| -> BTreeMap<String, u64> {
        resources.numbers().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    let (resources_available, resources_max) = (numbers(available), numbers(max));
    Limits { max_running, max_user_run, max_group_run, resources_available, resources_max, ..Limits::default() }
}

fn spec_of(node: &NodeState, index: usize) -> Result<NodeSpec, StateError> {
    let place = |field: &str| format!("nodes[{index}].{field}");
    let cores = node.ncpus.unwrap_or(1);
    if !(1..=65_536).contains(&cores) {
        return Err(StateError::at(place("ncpus"), format!("expected 1 to 65536, found {cores}")));
    }
    let kilobytes = |text: &String| {
        let size = values::kilobytes(text);
        size.ok_or_else(|| StateError::at(place("physmem"), format!("expected a size such as 4gb, found {text}")))
    };
    let memory = node.physmem.as_ref().map(kilobytes).transpose()?;
    let bytes = memory.map_or(PLENTY_OF_BYTES, |kilobytes| kilobytes.saturating_mul(1024).min(PLENTY_OF_BYTES));
    let flag = |name: &String| (nodes::property(name), PropertyValue::Flag(true));
    let mut properties: BTreeMap<String, PropertyValue> = node.properties.iter().map(flag).collect();
    properties.insert(nodes::PROCESSORS.to_owned(), PropertyValue::Number(cores.into()));
    Ok(NodeSpec { properties, ..node_spec(&node.name, cores, bytes) })
}

/// A timeshared node: as many jobs as its load allows share its processors and its memory.
fn timeshared_spec(node: &NodeState, index: usize) -> Result<NodeSpec, StateError> {
    let spec = spec_of(node, index)?;
    let kilobytes = i64::try_from(spec.memory_bytes / 1024).unwrap_or(i64::MAX);
    let text = |value: &String| PropertyValue::Text(value.clone());
    let mut properties = spec.properties;
    properties.insert(nodes::TIMESHARED.to_owned(), PropertyValue::Flag(true));
    properties.insert(nodes::MEMORY.to_owned(), PropertyValue::Number(kilobytes));
    properties.insert(nodes::named("host"), text(&node.name));
    properties.extend(node.arch.iter().map(|arch| (nodes::named("arch"), text(arch))));
    Ok(NodeSpec { properties, ..node_spec(&node.name, PLENTY_OF_CORES, PLENTY_OF_BYTES) })
}

/// The limits of the loads of timeshared nodes (PBS-L-02).
fn limits_of_loads(state: &StateFile) -> Vec<LoadedNode> {
    let limits = |node: &NodeState| {
        let monitor = MonitorConfig { ideal: node.ideal_load, max: node.max_load };
        engine::timeshared(&node.name, monitor, node.ncpus.unwrap_or(1))
    };
    state.nodes.iter().filter(|node| node.ts).map(limits).collect()
}

fn node_spec(name: &str, cores: u32, memory_bytes: u64) -> NodeSpec {
    NodeSpec { name: name.to_owned(), cores, sockets: 1, memory_bytes, gpus: Vec::new(), properties: BTreeMap::new() }
}

fn share(node: NodeId, core: u32) -> NodeShare {
    NodeShare {
        node,
        cores: IndexSet::from_range(core, core),
        gpus: IndexSet::default(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
    }
}
