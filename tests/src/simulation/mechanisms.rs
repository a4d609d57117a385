//! Mechanisms of sites that share a cluster closely: planning domains, quotas, runs that make way, fixed starts, jobs that share
//! cores, nodes that sleep, and a node whose agent asks for its orders and vanishes.

use super::{ledger::StoredRecord, node};
use muster_domain::State;
use muster_schemas::{
    JobId, RunId, Sequence,
    cluster::{ClusterChange, ClusterConfig, ClusterSettingsChange, MakesWay, QueueSpec, WayOut},
    command::{Command, JobSelection},
    energy::{EnergySettings, PowerWay, WakeTimeout},
    event::{Event, Record, StopReason},
    job::{Component, JobSpec, JobType},
    node::NodeOrder,
    quota::{QuotaAmount, QuotaRule, QuotaSet, QuotaTable},
    resources::{Alternative, Count, Level, LevelCount, NodeFilter, NodeSpec, PropertyValue, Request},
};
use rand::{Rng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of them in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs that began inside a planning domain.
    pub inside: u64,
    /// Runs that made way.
    pub made_way: u64,
    /// Jobs with a fixed start that have started.
    pub fixed: u64,
    /// Runs that began while quotas were in force.
    pub in_quotas: u64,
    /// Times that a node fell asleep.
    pub slept: u64,
    /// Runs that waited for nodes to wake.
    pub awaited: u64,
    /// Times that the node of an agent was lost.
    pub vanished: u64,
}

impl Counts {
    /// Adds those of another simulation.
    pub fn add(&mut self, other: Self) {
        self.inside += other.inside;
        self.made_way += other.made_way;
        self.fixed += other.fixed;
        self.in_quotas += other.in_quotas;
        self.slept += other.slept;
        self.awaited += other.awaited;
        self.vanished += other.vanished;
    }

    /// Takes a record, with the state before it.
    pub(super) fn see(&mut self, record: &Record, state: &State) {
        match &record.event {
            Event::RunAllocated { job, .. } => {
                let of = state.job(*job).or_else(|| state.job(job.whole()));
                self.inside += u64::from(of.is_some_and(|job| job.domain().is_some()));
                self.fixed += u64::from(of.is_some_and(|job| job.fixed_time().is_some()));
                self.in_quotas += u64::from(state.settings().quotas.is_some());
            }
            Event::RunStopping { reason: StopReason::Preempted, .. } => self.made_way += 1,
            Event::NodeAsleep { .. } => self.slept += 1,
            Event::RunAwake { .. } => self.awaited += 1,
            Event::NodeLost { node, .. } => {
                self.vanished += u64::from(state.node(*node).is_some_and(|node| node.spec.is_pulled()));
            }
            _ => {}
        }
    }
}

/// The machine room, and the agent's post box.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// The newest record whose order has been seen.
    pub(super) seen: Sequence,
    /// Orders for a node that waits until its agent asks.
    pub(super) waiting: BTreeMap<usize, Vec<NodeOrder>>,
}

/// The nodes whose agent asks for its orders: the last one.
pub(super) fn is_pulled(number: usize, nodes: usize) -> bool {
    number + 1 == nodes
}

/// The configuration of a cluster with all of that.
pub(super) fn configured(mut config: ClusterConfig) -> ClusterConfig {
    let last = config.nodes.len().saturating_sub(1);
    if let Some(far) = config.nodes.get_mut(last) {
        far.properties.insert(NodeSpec::PULL.to_owned(), PropertyValue::Flag(true));
    }
    let queue = |name: &str, priority, by| QueueSpec {
        name: name.into(),
        priority,
        makes_way: Some(MakesWay { by, grace_seconds: 2 }),
        ..QueueSpec::default()
    };
    for spec in &mut config.queues {
        spec.priority = 10;
    }
    config.queues.extend([queue("spare", 5, WayOut::Requeue), queue("rest", 1, WayOut::Cancel)]);
    config.settings.agent_lost_after_seconds = Some(25);
    config.settings.guard_seconds = Some(2);
    config.settings.energy = Some(EnergySettings {
        sleep_program: vec!["/sleep".into()],
        wake_program: vec!["/wake".into()],
        idle_seconds: 4,
        sleep_seconds: 3,
        wake_up_seconds: 2,
        wake_timeouts: vec![WakeTimeout { nodes: 1, seconds: 25 }],
        sleep_timeout_seconds: 15,
        program_timeout_seconds: 10,
        nodes_at_once: 2,
        pause_seconds: 3,
        ..EnergySettings::default()
    });
    config
}

/// A command of a user; `plain` is an ordinary job.
pub(super) fn command(random: &mut SmallRng, state: &State, plain: JobSpec) -> Command {
    match random.random_range(0..12) {
        0 => quotas(random, false),
        1 => {
            let names = vec![node::name(random.random_range(0..4))];
            let way = if random.random_bool(0.5) { PowerWay::Sleep } else { PowerWay::Wake };
            Command::SetPower { nodes: names, way }
        }
        2 => {
            let jobs: Vec<JobId> = state.jobs().filter(|job| job.opens_domain().is_some()).map(|job| job.id).collect();
            let job = if jobs.is_empty() { JobId::job(1) } else { jobs[random.random_range(0..jobs.len())] };
            Command::Cancel { jobs: JobSelection::Ids(vec![job]) }
        }
        _ => Command::Submit { jobs: vec![job(random, state, plain)] },
    }
}

/// A job with one component that uses some of the mechanisms.
fn job(random: &mut SmallRng, state: &State, plain: JobSpec) -> JobSpec {
    let mut spec = JobSpec { array: None, ..plain };
    spec.components.truncate(1);
    let Some(component) = spec.components.first_mut() else { return spec };
    let open: Vec<JobId> = state
        .jobs()
        .filter(|job| !job.is_finished() && job.id.index.is_none() && job.opens_domain().is_some())
        .map(|job| job.id)
        .collect();
    match random.random_range(0..10) {
        0 | 1 => {
            // It holds nodes for others, for a while.
            component.alternatives = vec![whole(random.random_range(1..3), random.random_range(20..60))];
            spec.types.push(match random.random_bool(0.8) {
                true => JobType::Container,
                false => JobType::OpensDomain("name".into()),
            });
        }
        2..=4 if !open.is_empty() => {
            let of = open[random.random_range(0..open.len())];
            spec.types.push(if random.random_range(0..8) == 0 {
                JobType::InDomain("name".into())
            } else {
                JobType::Inner(of)
            });
            if random.random_range(0..6) == 0 {
                spec.types.push(JobType::Container);
            }
        }
        5 => {
            component.begin = Some(state.time().plus_seconds(random.random_range(2..30)));
            component.alternatives.truncate(1);
            spec.types.push(JobType::FixedStart);
        }
        6 => {
            let (same_user, same_name) = (random.random_bool(0.5), random.random_bool(0.5));
            spec.types.push(JobType::Timesharing { same_user, same_name });
        }
        7 => {
            let request = Request { filter: Some(NodeFilter::Has(NodeSpec::PULL.into())), ..Request::default() };
            component.alternatives[0].requests = vec![request];
            component.launch.program =
                muster_schemas::job::Program::Script { text: "#!/bin/sh\n".into(), args: Vec::new() };
        }
        _ => make_way(random, component),
    }
    spec
}

/// A job of a queue whose runs make way.
fn make_way(random: &mut SmallRng, component: &mut Component) {
    let name = if random.random_bool(0.7) { "spare" } else { "rest" };
    component.queue = Some(name.into());
    component.alternatives = vec![whole(random.random_range(1..3), random.random_range(30..200))];
}

fn whole(nodes: u32, seconds: u64) -> Alternative {
    let path = vec![
        LevelCount { level: Level::Node, count: Count::exactly(nodes) },
        LevelCount { level: Level::Core, count: Count::exactly(4) },
    ];
    let request = Request { path, ..Request::default() };
    Alternative { requests: vec![request], walltime_seconds: Some(seconds), ..Alternative::default() }
}

/// Other quotas, or none.
pub(super) fn quotas(random: &mut SmallRng, are_none: bool) -> Command {
    let rule = |user: &str, cores: Option<u64>, jobs: Option<u64>| {
        let [queue, account, kind] = ["*"; 3].map(str::to_owned);
        let [cores, jobs] = [cores, jobs].map(|most| most.map(QuotaAmount::Fixed));
        QuotaRule { queue, account, kind, user: user.into(), cores, jobs, core_seconds: None }
    };
    let mut table = QuotaTable::default();
    if !are_none && random.random_bool(0.7) {
        let cores = Some(random.random_range(2..10));
        let jobs = random.random_bool(0.5).then(|| random.random_range(1..4));
        let rules = vec![rule("/", cores, jobs), rule("user1", Some(4), None)];
        table.sets.push(QuotaSet { name: "always".into(), rules });
    }
    let settings = ClusterSettingsChange { quotas: Some(Box::new(table)), ..ClusterSettingsChange::default() };
    let change = Box::new(ClusterChange { settings, ..ClusterChange::default() });
    Command::Configure { change, keep_unnamed: true }
}

/// Checks after every round that no core is used twice but as the domain says, and nobody starts beyond quotas.
pub(super) fn check(records: &[StoredRecord], state: &State) -> Result<(), String> {
    muster_domain::invariants::check(state)?;
    let started: BTreeSet<RunId> = records
        .iter()
        .filter_map(|stored| match &stored.record.event {
            Event::RunAllocated { run, .. } => Some(*run),
            _ => None,
        })
        .collect();
    let has_changed = records.iter().any(|stored| matches!(stored.record.event, Event::SettingsChanged { .. }));
    let Some(table) = state.settings().quotas.as_ref().filter(|_| !has_changed && !started.is_empty()) else {
        return Ok(());
    };
    let users: BTreeSet<&str> =
        state.runs().filter(|run| started.contains(&run.id)).filter_map(|run| owner(state, run.job)).collect();
    for user in users {
        let rules = &table.sets[table.set_at(state.time())].rules;
        let rule = rules.iter().find(|rule| rule.user == user).or(rules.first());
        let Some(rule) = rule else { continue };
        let own = state.runs().filter(|run| owner(state, run.job) == Some(user));
        let (mut cores, mut jobs) = (0_u64, 0_u64);
        for run in own {
            cores += run.placement.shares().map(|share| share.cores.len()).sum::<u64>();
            jobs += 1;
        }
        for (held, limit) in [(cores, rule.cores), (jobs, rule.jobs)] {
            let most = limit.map_or(u64::MAX, |limit| limit.in_cluster(0));
            if held > most {
                return Err(format!("{user} holds {held} of {most} after {started:?} by `{rule}`"));
            }
        }
    }
    Ok(())
}

/// The owner of a job that quotas count.
fn owner(state: &State, job: JobId) -> Option<&str> {
    let job = state.job(job)?;
    let makes_way = job.components.iter().any(|component| ["spare", "rest"].contains(&&*component.queue));
    let is_counted = job.opens_domain().is_none() && !makes_way && job.components.len() == 1;
    is_counted.then_some(job.owner.user.as_str())
}
