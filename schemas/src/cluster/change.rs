//! The part of the configuration that a file or a request names, and how the rest is filled in.

use super::{ClusterConfig, ClusterSettings, MakesWay, QueueSpec, Route};
use crate::{
    accounts::AccountSettings,
    energy::EnergySettings,
    filter::StagingSettings,
    quota::QuotaTable,
    resources::{NodeSpec, PropertyValue},
    walltimes::WalltimeIncreases,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A requested configuration. Anything that it does not name either stays ([`ClusterChange::onto`] the configuration in
/// force) or takes its default (onto [`ClusterConfig::default`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterChange {
    /// Settings of the whole cluster.
    pub settings: ClusterSettingsChange,
    /// Queues, by their names.
    pub queues: Vec<QueueSpecChange>,
    /// Nodes, by their names.
    pub nodes: Vec<NodeSpecChange>,
    /// Floating licences, with their total numbers.
    pub licences: BTreeMap<String, u32>,
    /// How the files of jobs are staged.
    pub staging: Option<StagingSettings>,
    /// Which checks of accounts and classes are enforced; it always stays unchanged if it is not named.
    pub accounts: Option<AccountSettings>,
    /// The lowest number for new jobs (SL-I-04); it always stays unchanged if it is not named.
    pub first_job_number: Option<u64>,
    /// Things that are removed before the rest applies. Everything else stays, also if somebody else changes it meanwhile.
    pub removed: Removed,
}

/// Things that a configuration loses, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Removed {
    /// Queues.
    pub queues: Vec<String>,
    /// Nodes.
    pub nodes: Vec<String>,
    /// Licences.
    pub licences: Vec<String>,
}

/// The named part of [`ClusterSettings`], which explains the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is one of ClusterSettings")]
pub struct ClusterSettingsChange {
    pub name: Option<String>,
    pub default_queue: Option<String>,
    pub operators: Option<Vec<String>>,
    pub administrators: Option<Vec<String>>,
    /// Users who become administrators in addition to those in `administrators` or, if it is not named, the existing
    /// ones.
    pub more_administrators: Vec<String>,
    pub finished_job_retention_seconds: Option<u64>,
    pub node_lost_after_seconds: Option<u32>,
    pub launch_timeout_seconds: Option<u32>,
    pub kill_grace_seconds: Option<u32>,
    pub default_memory_per_core_bytes: Option<u64>,
    pub cancel_never_met: Option<bool>,
    pub max_jobs: Option<u64>,
    pub attributes: Option<BTreeMap<String, String>>,
    pub is_idle: Option<bool>,
    pub agent_lost_after_seconds: Option<u32>,
    pub agents_make_nodes: Option<bool>,
    pub energy: Option<EnergySettings>,
    /// An empty table removes all quotas. They always stay unchanged if they are not named.
    pub quotas: Option<Box<QuotaTable>>,
    pub ends_domain_jobs: Option<bool>,
    pub reserved_nodes_wait_seconds: Option<u32>,
    pub unlimited_fixed_starts: Option<Vec<String>>,
    pub make_way_ahead_seconds: Option<u32>,
    pub node_order: Option<Vec<String>>,
    pub guard_seconds: Option<u32>,
    /// The values that they lose, before the named ones apply. Nothing else can take a value away and keep the rest.
    pub unset: Vec<SettingsValue>,
}

/// The values that the settings can be without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is a field of ClusterSettings")]
pub enum SettingsValue {
    DefaultMemoryPerCoreBytes,
    AgentLostAfterSeconds,
    ReservedNodesWaitSeconds,
    MakeWayAheadSeconds,
    GuardSeconds,
}

impl SettingsValue {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::DefaultMemoryPerCoreBytes,
        Self::AgentLostAfterSeconds,
        Self::ReservedNodesWaitSeconds,
        Self::MakeWayAheadSeconds,
        Self::GuardSeconds,
    ];

    /// Whether the settings have it.
    pub fn is_in(self, settings: &ClusterSettings) -> bool {
        match self {
            Self::DefaultMemoryPerCoreBytes => settings.default_memory_per_core_bytes.is_some(),
            Self::AgentLostAfterSeconds => settings.agent_lost_after_seconds.is_some(),
            Self::ReservedNodesWaitSeconds => settings.reserved_nodes_wait_seconds.is_some(),
            Self::MakeWayAheadSeconds => settings.make_way_ahead_seconds.is_some(),
            Self::GuardSeconds => settings.guard_seconds.is_some(),
        }
    }

    fn unset(self, settings: &mut ClusterSettings) {
        match self {
            Self::DefaultMemoryPerCoreBytes => settings.default_memory_per_core_bytes = None,
            Self::AgentLostAfterSeconds => settings.agent_lost_after_seconds = None,
            Self::ReservedNodesWaitSeconds => settings.reserved_nodes_wait_seconds = None,
            Self::MakeWayAheadSeconds => settings.make_way_ahead_seconds = None,
            Self::GuardSeconds => settings.guard_seconds = None,
        }
    }
}

/// The named part of a [`QueueSpec`], which explains the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is one of QueueSpec")]
pub struct QueueSpecChange {
    /// Its name; a queue that does not exist is created.
    pub name: String,
    pub priority: Option<i64>,
    pub default_job_priority: Option<i64>,
    pub enabled: Option<bool>,
    pub started: Option<bool>,
    pub default_walltime_seconds: Option<u64>,
    pub max_walltime_seconds: Option<u64>,
    pub nodes: Option<Vec<String>>,
    pub users: Option<Vec<String>>,
    pub max_running_jobs: Option<u32>,
    pub max_running_jobs_per_user: Option<u32>,
    pub max_jobs: Option<u32>,
    pub attributes: Option<BTreeMap<String, String>>,
    pub route: Option<Box<Route>>,
    pub least_asked: Option<BTreeMap<String, u64>>,
    pub most_asked: Option<BTreeMap<String, u64>>,
    pub walltime_increases: Option<WalltimeIncreases>,
    pub makes_way: Option<MakesWay>,
    /// The values that it loses, before the named ones apply. Nothing else can take a value away and keep the rest.
    pub unset: Vec<QueueValue>,
}

/// The values that a queue can be without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is a field of QueueSpec")]
pub enum QueueValue {
    DefaultWalltimeSeconds,
    MaxWalltimeSeconds,
    MaxRunningJobs,
    MaxRunningJobsPerUser,
    MaxJobs,
    Route,
    WalltimeIncreases,
    MakesWay,
}

impl QueueValue {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::DefaultWalltimeSeconds,
        Self::MaxWalltimeSeconds,
        Self::MaxRunningJobs,
        Self::MaxRunningJobsPerUser,
        Self::MaxJobs,
        Self::Route,
        Self::WalltimeIncreases,
        Self::MakesWay,
    ];

    fn is_in(self, queue: &QueueSpec) -> bool {
        match self {
            Self::DefaultWalltimeSeconds => queue.default_walltime_seconds.is_some(),
            Self::MaxWalltimeSeconds => queue.max_walltime_seconds.is_some(),
            Self::MaxRunningJobs => queue.max_running_jobs.is_some(),
            Self::MaxRunningJobsPerUser => queue.max_running_jobs_per_user.is_some(),
            Self::MaxJobs => queue.max_jobs.is_some(),
            Self::Route => queue.route.is_some(),
            Self::WalltimeIncreases => queue.walltime_increases.is_some(),
            Self::MakesWay => queue.makes_way.is_some(),
        }
    }

    fn unset(self, queue: &mut QueueSpec) {
        match self {
            Self::DefaultWalltimeSeconds => queue.default_walltime_seconds = None,
            Self::MaxWalltimeSeconds => queue.max_walltime_seconds = None,
            Self::MaxRunningJobs => queue.max_running_jobs = None,
            Self::MaxRunningJobsPerUser => queue.max_running_jobs_per_user = None,
            Self::MaxJobs => queue.max_jobs = None,
            Self::Route => queue.route = None,
            Self::WalltimeIncreases => queue.walltime_increases = None,
            Self::MakesWay => queue.makes_way = None,
        }
    }
}

/// The named part of a [`NodeSpec`], which explains the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is one of NodeSpec")]
pub struct NodeSpecChange {
    /// Its name; a node that does not exist is created, and needs cores and memory.
    pub name: String,
    pub cores: Option<u32>,
    pub sockets: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub gpus: Option<Vec<String>>,
    pub properties: Option<BTreeMap<String, PropertyValue>>,
}

impl ClusterChange {
    /// The result of applying this to another configuration.
    pub fn onto(&self, base: ClusterConfig) -> ClusterConfig {
        let ClusterConfig { settings, mut queues, mut nodes, mut licences, staging, accounts, first_job_number } = base;
        queues.retain(|queue| !self.removed.queues.contains(&queue.name));
        nodes.retain(|node| !self.removed.nodes.contains(&node.name));
        licences.retain(|name, _| !self.removed.licences.contains(name));
        let known_queues = places(queues.iter().map(|queue| &queue.name));
        for change in &self.queues {
            let known = known_queues.get(&change.name).map(|place| queues[*place].clone());
            let queue = change.onto(known.unwrap_or_default());
            put(&mut queues, known_queues.get(&change.name), queue);
        }
        let known_nodes = places(nodes.iter().map(|node| &node.name));
        for change in &self.nodes {
            let known = known_nodes.get(&change.name).map(|place| nodes[*place].clone());
            let node = change.onto(known.unwrap_or_else(new_node));
            put(&mut nodes, known_nodes.get(&change.name), node);
        }
        licences.extend(self.licences.iter().map(|(name, total)| (name.clone(), *total)));
        ClusterConfig {
            settings: self.settings.onto(settings),
            queues,
            nodes,
            licences,
            staging: self.staging.clone().unwrap_or(staging),
            accounts: self.accounts.clone().or(accounts),
            first_job_number: self.first_job_number.or(first_job_number),
        }
    }
}

/// The properties of a new node if none are named: it has no cores, so it is refused.
fn new_node() -> NodeSpec {
    NodeSpec {
        name: String::new(),
        cores: 0,
        sockets: 1,
        memory_bytes: 0,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    }
}

fn places<'a>(names: impl Iterator<Item = &'a String>) -> BTreeMap<String, usize> {
    names.enumerate().map(|(place, name)| (name.clone(), place)).collect()
}

fn put<T>(all: &mut Vec<T>, place: Option<&usize>, one: T) {
    match place {
        Some(place) => all[*place] = one,
        None => all.push(one),
    }
}

impl ClusterSettingsChange {
    fn onto(&self, mut base: ClusterSettings) -> ClusterSettings {
        self.unset.iter().for_each(|value| value.unset(&mut base));
        let named = self.clone();
        let mut administrators = named.administrators.unwrap_or(base.administrators);
        for user in named.more_administrators {
            if !administrators.contains(&user) {
                administrators.push(user);
            }
        }
        ClusterSettings {
            name: named.name.unwrap_or(base.name),
            default_queue: named.default_queue.unwrap_or(base.default_queue),
            operators: named.operators.unwrap_or(base.operators),
            administrators,
            finished_job_retention_seconds: named
                .finished_job_retention_seconds
                .unwrap_or(base.finished_job_retention_seconds),
            node_lost_after_seconds: named.node_lost_after_seconds.unwrap_or(base.node_lost_after_seconds),
            launch_timeout_seconds: named.launch_timeout_seconds.unwrap_or(base.launch_timeout_seconds),
            kill_grace_seconds: named.kill_grace_seconds.unwrap_or(base.kill_grace_seconds),
            default_memory_per_core_bytes: named.default_memory_per_core_bytes.or(base.default_memory_per_core_bytes),
            cancel_never_met: named.cancel_never_met.unwrap_or(base.cancel_never_met),
            max_jobs: named.max_jobs.unwrap_or(base.max_jobs),
            attributes: named.attributes.unwrap_or(base.attributes),
            is_idle: named.is_idle.unwrap_or(base.is_idle),
            agent_lost_after_seconds: named.agent_lost_after_seconds.or(base.agent_lost_after_seconds),
            agents_make_nodes: named.agents_make_nodes.unwrap_or(base.agents_make_nodes),
            energy: named.energy.or(base.energy),
            quotas: named.quotas.or(base.quotas).filter(|table| !table.sets.is_empty()),
            ends_domain_jobs: named.ends_domain_jobs.unwrap_or(base.ends_domain_jobs),
            reserved_nodes_wait_seconds: named.reserved_nodes_wait_seconds.or(base.reserved_nodes_wait_seconds),
            unlimited_fixed_starts: named.unlimited_fixed_starts.unwrap_or(base.unlimited_fixed_starts),
            make_way_ahead_seconds: named.make_way_ahead_seconds.or(base.make_way_ahead_seconds),
            node_order: named.node_order.unwrap_or(base.node_order),
            guard_seconds: named.guard_seconds.or(base.guard_seconds),
        }
    }
}

impl QueueSpecChange {
    /// What makes a queue into another one: it names what differs, and what the queue loses.
    pub fn between(before: &QueueSpec, after: &QueueSpec) -> Self {
        fn keep<T: PartialEq>(value: &mut Option<T>, before: Option<T>) {
            if *value == before {
                *value = None;
            }
        }
        let (mut change, before) = (Self::from(after.clone()), before.clone());
        let is_lost = |value: &QueueValue| value.is_in(&before) && !value.is_in(after);
        change.unset = QueueValue::ALL.into_iter().filter(is_lost).collect();
        let before = Self::from(before);
        keep(&mut change.priority, before.priority);
        keep(&mut change.default_job_priority, before.default_job_priority);
        keep(&mut change.enabled, before.enabled);
        keep(&mut change.started, before.started);
        keep(&mut change.default_walltime_seconds, before.default_walltime_seconds);
        keep(&mut change.max_walltime_seconds, before.max_walltime_seconds);
        keep(&mut change.nodes, before.nodes);
        keep(&mut change.users, before.users);
        keep(&mut change.max_running_jobs, before.max_running_jobs);
        keep(&mut change.max_running_jobs_per_user, before.max_running_jobs_per_user);
        keep(&mut change.max_jobs, before.max_jobs);
        keep(&mut change.attributes, before.attributes);
        keep(&mut change.route, before.route);
        keep(&mut change.least_asked, before.least_asked);
        keep(&mut change.most_asked, before.most_asked);
        keep(&mut change.walltime_increases, before.walltime_increases);
        keep(&mut change.makes_way, before.makes_way);
        change
    }

    fn onto(&self, mut base: QueueSpec) -> QueueSpec {
        let named = self.clone();
        named.unset.iter().for_each(|value| value.unset(&mut base));
        QueueSpec {
            name: named.name,
            priority: named.priority.unwrap_or(base.priority),
            default_job_priority: named.default_job_priority.unwrap_or(base.default_job_priority),
            enabled: named.enabled.unwrap_or(base.enabled),
            started: named.started.unwrap_or(base.started),
            default_walltime_seconds: named.default_walltime_seconds.or(base.default_walltime_seconds),
            max_walltime_seconds: named.max_walltime_seconds.or(base.max_walltime_seconds),
            nodes: named.nodes.unwrap_or(base.nodes),
            users: named.users.unwrap_or(base.users),
            max_running_jobs: named.max_running_jobs.or(base.max_running_jobs),
            max_running_jobs_per_user: named.max_running_jobs_per_user.or(base.max_running_jobs_per_user),
            max_jobs: named.max_jobs.or(base.max_jobs),
            attributes: named.attributes.unwrap_or(base.attributes),
            route: named.route.or(base.route),
            least_asked: named.least_asked.unwrap_or(base.least_asked),
            most_asked: named.most_asked.unwrap_or(base.most_asked),
            walltime_increases: named.walltime_increases.or(base.walltime_increases),
            makes_way: named.makes_way.or(base.makes_way),
        }
    }
}

impl NodeSpecChange {
    fn onto(&self, base: NodeSpec) -> NodeSpec {
        let named = self.clone();
        NodeSpec {
            name: named.name,
            cores: named.cores.unwrap_or(base.cores),
            sockets: named.sockets.unwrap_or(base.sockets),
            memory_bytes: named.memory_bytes.unwrap_or(base.memory_bytes),
            gpus: named.gpus.unwrap_or(base.gpus),
            properties: named.properties.unwrap_or(base.properties),
        }
    }
}

/// Everything is named, except fields that are `None`.
impl From<ClusterConfig> for ClusterChange {
    fn from(config: ClusterConfig) -> Self {
        let ClusterConfig { settings, queues, nodes, licences, staging, accounts, first_job_number } = config;
        Self {
            settings: settings.into(),
            queues: queues.into_iter().map(QueueSpecChange::from).collect(),
            nodes: nodes.into_iter().map(NodeSpecChange::from).collect(),
            licences,
            staging: Some(staging),
            accounts,
            first_job_number,
            removed: Removed::default(),
        }
    }
}

impl From<ClusterSettings> for ClusterSettingsChange {
    fn from(settings: ClusterSettings) -> Self {
        Self {
            name: Some(settings.name),
            default_queue: Some(settings.default_queue),
            operators: Some(settings.operators),
            administrators: Some(settings.administrators),
            more_administrators: Vec::new(),
            finished_job_retention_seconds: Some(settings.finished_job_retention_seconds),
            node_lost_after_seconds: Some(settings.node_lost_after_seconds),
            launch_timeout_seconds: Some(settings.launch_timeout_seconds),
            kill_grace_seconds: Some(settings.kill_grace_seconds),
            default_memory_per_core_bytes: settings.default_memory_per_core_bytes,
            cancel_never_met: Some(settings.cancel_never_met),
            max_jobs: Some(settings.max_jobs),
            attributes: Some(settings.attributes),
            is_idle: Some(settings.is_idle),
            agent_lost_after_seconds: settings.agent_lost_after_seconds,
            agents_make_nodes: Some(settings.agents_make_nodes),
            energy: settings.energy,
            quotas: settings.quotas,
            ends_domain_jobs: Some(settings.ends_domain_jobs),
            reserved_nodes_wait_seconds: settings.reserved_nodes_wait_seconds,
            unlimited_fixed_starts: Some(settings.unlimited_fixed_starts),
            make_way_ahead_seconds: settings.make_way_ahead_seconds,
            node_order: Some(settings.node_order),
            guard_seconds: settings.guard_seconds,
            unset: Vec::new(),
        }
    }
}

impl From<QueueSpec> for QueueSpecChange {
    fn from(queue: QueueSpec) -> Self {
        Self {
            name: queue.name,
            priority: Some(queue.priority),
            default_job_priority: Some(queue.default_job_priority),
            enabled: Some(queue.enabled),
            started: Some(queue.started),
            default_walltime_seconds: queue.default_walltime_seconds,
            max_walltime_seconds: queue.max_walltime_seconds,
            nodes: Some(queue.nodes),
            users: Some(queue.users),
            max_running_jobs: queue.max_running_jobs,
            max_running_jobs_per_user: queue.max_running_jobs_per_user,
            max_jobs: queue.max_jobs,
            attributes: Some(queue.attributes),
            route: queue.route,
            least_asked: Some(queue.least_asked),
            most_asked: Some(queue.most_asked),
            walltime_increases: queue.walltime_increases,
            makes_way: queue.makes_way,
            unset: Vec::new(),
        }
    }
}

impl From<NodeSpec> for NodeSpecChange {
    fn from(node: NodeSpec) -> Self {
        let NodeSpec { name, cores, sockets, memory_bytes, gpus, properties } = node;
        Self {
            name,
            cores: Some(cores),
            sockets: Some(sockets),
            memory_bytes: Some(memory_bytes),
            gpus: Some(gpus),
            properties: Some(properties),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SL-C-38: a queue loses the values that a change takes away, and the rest of the configuration stays.
    #[test]
    fn a_change_takes_values_away() {
        let optional = r#"{ "name": "low", "priority": 3, "default_walltime_seconds": 60, "max_walltime_seconds": 90,
            "max_running_jobs": 1, "max_running_jobs_per_user": 1, "max_jobs": 1, "makes_way": { "by": "cancel" } }"#;
        let full: QueueSpec = serde_json::from_str(optional).expect("a queue");
        let full =
            QueueSpec { route: Some(Box::default()), walltime_increases: Some(WalltimeIncreases::default()), ..full };
        let base = ClusterConfig {
            queues: vec![full.clone(), QueueSpec { name: "other".into(), ..full }],
            ..ClusterConfig::default()
        };
        let text = r#"{ "queues": [{ "name": "low", "max_walltime_seconds": 30, "unset": ["default_walltime_seconds",
            "max_walltime_seconds", "max_running_jobs", "max_running_jobs_per_user", "max_jobs", "route", "walltime_increases",
            "makes_way"] }] }"#;
        let change: ClusterChange = serde_json::from_str(text).expect("a change");
        let after = change.onto(base.clone());
        let plain =
            QueueSpec { name: "low".into(), priority: 3, max_walltime_seconds: Some(30), ..QueueSpec::default() };
        assert_eq!(after.queues[0], plain);
        assert_eq!(after.queues[1], base.queues[1]);
        let settings = ClusterSettings {
            default_memory_per_core_bytes: Some(1),
            agent_lost_after_seconds: Some(1),
            reserved_nodes_wait_seconds: Some(1),
            make_way_ahead_seconds: Some(1),
            guard_seconds: Some(1),
            ..ClusterSettings::default()
        };
        let change =
            ClusterSettingsChange { unset: SettingsValue::ALL.to_vec(), guard_seconds: Some(7), ..Default::default() };
        let after = change.onto(settings.clone());
        assert_eq!(after, ClusterSettings { guard_seconds: Some(7), ..ClusterSettings::default() });
        assert!(SettingsValue::ALL.iter().all(|value| value.is_in(&settings)));
    }
}
