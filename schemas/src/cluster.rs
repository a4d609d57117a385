//! Properties of the cluster as a whole that change by events: queues, licences, users' roles, settings.

mod change;

pub use change::{
    ClusterChange, ClusterSettingsChange, NodeSpecChange, QueueSpecChange, QueueValue, Removed, SettingsValue,
};

use crate::{
    accounts::AccountSettings, energy::EnergySettings, filter::StagingSettings, ids::NodeId, quota::QuotaTable,
    resources::NodeSpec, walltimes::WalltimeIncreases,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueueSpec {
    /// Its name, unique in the cluster.
    pub name: String,
    /// Jobs of a queue with a higher priority are considered first.
    pub priority: i64,
    /// The priority of jobs that name none.
    pub default_job_priority: i64,
    /// Whether jobs can be submitted to it.
    pub enabled: bool,
    /// Whether its jobs are started.
    pub started: bool,
    /// The walltime of jobs that name none.
    pub default_walltime_seconds: Option<u64>,
    /// The maximum walltime of a job.
    pub max_walltime_seconds: Option<u64>,
    /// Only these nodes serve it; empty means all.
    pub nodes: Vec<String>,
    /// Only these users may submit to it; empty means all.
    pub users: Vec<String>,
    /// Maximum number of its running jobs (each array task and each component of a job counts as one).
    pub max_running_jobs: Option<u32>,
    /// Maximum number of its running jobs of one user.
    pub max_running_jobs_per_user: Option<u32>,
    /// Maximum number of its waiting and running jobs (each array task and each component of a job counts as one).
    pub max_jobs: Option<u32>,
    /// Values that the model has no field for and that a dialect wants back unchanged, by `dialect.name`.
    pub attributes: BTreeMap<String, String>,
    /// Where its jobs go, if it starts none itself.
    pub route: Option<Box<Route>>,
    /// What a job of it asks for at least, by the words of [`ASKED`]. A job that does not ask for something at all passes.
    pub least_asked: BTreeMap<String, u64>,
    /// What a job of it asks for at most, in the same way.
    pub most_asked: BTreeMap<String, u64>,
    /// How far owners may lengthen the walltimes of their running jobs; `None` means not at all (OAR-G-16).
    pub walltime_increases: Option<WalltimeIncreases>,
    /// How its running jobs make way for jobs of queues with a higher priority; `None` means not at all.
    pub makes_way: Option<MakesWay>,
}

/// How running jobs of a queue make way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MakesWay {
    /// What happens to them.
    pub by: WayOut,
    /// How much longer than other jobs they have between SIGTERM and SIGKILL, in seconds; 0 to 86,400.
    pub grace_seconds: u32,
}

/// What happens to a running job that makes way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WayOut {
    /// It is put back into the queue if it may be, and otherwise cancelled.
    #[default]
    Requeue,
    /// It is cancelled.
    Cancel,
    /// It is suspended until the other job gives its cores back. It keeps its memory, GPUs and licences. A list of tasks,
    /// and a job inside a planning domain, is put back as with `requeue`.
    Suspend,
}

/// What jobs ask for, as the limits of queues name it: amounts over all nodes, seconds, bytes.
pub const ASKED: [&str; 6] = ["cores", "cpu_seconds", "gpus", "memory_bytes", "nodes", "walltime_seconds"];

/// Where the jobs of a queue go: to the first queue that takes them. If none does now and one can later, they wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Route {
    /// The queues, in the order in which they are asked. One that passes jobs on itself stands for its own destinations.
    pub destinations: Vec<String>,
    /// Whether held jobs, and jobs whose dependencies are not met, are passed on as well.
    pub held_jobs: bool,
    /// Whether jobs are passed on whose begin time has not come.
    pub waiting_jobs: bool,
    /// How long a job may wait for a queue that takes it, in seconds: then it ends. `None` for no limit.
    pub lifetime_seconds: Option<u64>,
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            priority: 0,
            default_job_priority: 0,
            enabled: true,
            started: true,
            default_walltime_seconds: None,
            max_walltime_seconds: None,
            nodes: Vec::new(),
            users: Vec::new(),
            max_running_jobs: None,
            max_running_jobs_per_user: None,
            max_jobs: None,
            attributes: BTreeMap::new(),
            route: None,
            least_asked: BTreeMap::new(),
            most_asked: BTreeMap::new(),
            walltime_increases: None,
            makes_way: None,
        }
    }
}

impl QueueSpec {
    /// Whether jobs start in it.
    pub const fn starts_jobs(&self) -> bool {
        self.started && self.route.is_none()
    }

    /// Whether the queues allow a node to serve both of them.
    pub fn shares_nodes(&self, other: &Self) -> bool {
        self.nodes.is_empty() || other.nodes.is_empty() || self.nodes.iter().any(|name| other.nodes.contains(name))
    }
}

/// Settings of the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSettings {
    /// The cluster's name.
    pub name: String,
    /// The queue of jobs that name none. It must exist.
    pub default_queue: String,
    /// Users who may manage everybody's jobs and nodes.
    pub operators: Vec<String>,
    /// Users who may do everything. `root` and the user that runs the ledger always may.
    pub administrators: Vec<String>,
    /// Minimum time for which a finished job can be listed and depended on; after that it is read from the log.
    pub finished_job_retention_seconds: u64,
    /// A node that has not reported for this long is lost.
    pub node_lost_after_seconds: u32,
    /// A launch that no node has confirmed within this time has failed.
    pub launch_timeout_seconds: u32,
    /// Time from SIGTERM to SIGKILL, in seconds.
    pub kill_grace_seconds: u32,
    /// Memory that is reserved for each core of a request that names none; `None` reserves none.
    pub default_memory_per_core_bytes: Option<u64>,
    /// Whether to cancel jobs whose dependencies can never be met instead of letting them wait.
    pub cancel_never_met: bool,
    /// Maximum number of waiting and running jobs (each array task counts as one).
    pub max_jobs: u64,
    /// Values that the model has no field for and that a dialect wants back unchanged, by `dialect.name`.
    pub attributes: BTreeMap<String, String>,
    /// Whether the planner starts no jobs. Running jobs continue, and jobs can be submitted (PBS-C-03).
    pub is_idle: bool,
    /// A node whose agent asks for its orders is lost when it has not asked for this long (OAR-K-03); `None` means
    /// [`ClusterSettings::AGENT_LOST_AFTER_SECONDS`].
    pub agent_lost_after_seconds: Option<u32>,
    /// Whether an agent with a token for a node that does not exist makes the node (OAR-K-04).
    pub agents_make_nodes: bool,
    /// Nodes that sleep while nothing runs on them; `None` if none does.
    pub energy: Option<EnergySettings>,
    /// Limits on what jobs hold at once, by queue, account, kind and user; `None` limits nothing (OAR-Q-01).
    pub quotas: Option<Box<QuotaTable>>,
    /// Whether the runs inside a planning domain are ended with the job that holds their resources. Otherwise they keep
    /// those until they end.
    pub ends_domain_jobs: bool,
    /// How long a job with a fixed start waits from then on for promised nodes that take no jobs, before it starts without
    /// them (OAR-G-13); `None` means [`ClusterSettings::RESERVED_NODES_WAIT_SECONDS`].
    pub reserved_nodes_wait_seconds: Option<u32>,
    /// Users of whom any number of jobs with a fixed start may wait (OAR-G-15).
    pub unlimited_fixed_starts: Vec<String>,
    /// How long before a fixed start the running jobs end that make way for it (OAR-T-25); `None` means
    /// [`ClusterSettings::MAKE_WAY_AHEAD_SECONDS`].
    pub make_way_ahead_seconds: Option<u32>,
    /// The order in which jobs get nodes, the most important key first (OAR-R-12); empty means by weight. A key is a property of
    /// nodes or one of [`ClusterSettings::NODE_ORDER_WORDS`], with a `-` in front for the other direction. Nodes without the
    /// property come last, equal ones in the order of their numbers.
    pub node_order: Vec<String>,
    /// How long plans keep resources free after the walltime of each job (OAR-Q-05); `None` means not at all. A job that is over
    /// leaves its resources to the next one at once.
    pub guard_seconds: Option<u32>,
}

impl ClusterSettings {
    /// Three times the period of an agent.
    pub const AGENT_LOST_AFTER_SECONDS: u32 = 90;

    /// How long reservations wait for nodes that are gone, unless the site says otherwise.
    pub const RESERVED_NODES_WAIT_SECONDS: u32 = 300;

    /// How long before a fixed start running jobs make way for it, unless the site says otherwise.
    pub const MAKE_WAY_AHEAD_SECONDS: u32 = 60;

    /// The keys of the order of nodes that are no properties: the name; nodes that are awake before those that sleep.
    pub const NODE_ORDER_WORDS: [&str; 2] = ["name", "awake"];

    /// How long a node may be silent before it is lost, in seconds.
    pub fn lost_after_seconds(&self, node: &NodeSpec) -> u32 {
        if node.is_pulled() { self.agent_patience() } else { self.node_lost_after_seconds }
    }

    /// How long an agent may be silent, in seconds.
    pub fn agent_patience(&self) -> u32 {
        self.agent_lost_after_seconds.unwrap_or(Self::AGENT_LOST_AFTER_SECONDS)
    }

    /// How long a job with a fixed start waits for promised nodes that take no jobs, in seconds.
    pub fn reserved_nodes_patience(&self) -> u32 {
        self.reserved_nodes_wait_seconds.unwrap_or(Self::RESERVED_NODES_WAIT_SECONDS)
    }

    /// How long before a fixed start running jobs make way for it, in seconds.
    pub fn make_way_ahead(&self) -> u32 {
        self.make_way_ahead_seconds.unwrap_or(Self::MAKE_WAY_AHEAD_SECONDS)
    }
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            name: "muster".into(),
            default_queue: "default".into(),
            operators: Vec::new(),
            administrators: Vec::new(),
            finished_job_retention_seconds: 3600,
            node_lost_after_seconds: 30,
            launch_timeout_seconds: 60,
            kill_grace_seconds: 10,
            default_memory_per_core_bytes: None,
            cancel_never_met: false,
            max_jobs: 10_000_000,
            attributes: BTreeMap::new(),
            is_idle: false,
            agent_lost_after_seconds: None,
            agents_make_nodes: false,
            energy: None,
            quotas: None,
            ends_domain_jobs: false,
            reserved_nodes_wait_seconds: None,
            unlimited_fixed_starts: Vec::new(),
            make_way_ahead_seconds: None,
            node_order: Vec::new(),
            guard_seconds: None,
        }
    }
}

/// Everything that an administrator configures for the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterConfig {
    /// Settings of the whole cluster.
    pub settings: ClusterSettings,
    /// All queues.
    pub queues: Vec<QueueSpec>,
    /// All nodes.
    pub nodes: Vec<NodeSpec>,
    /// All floating licences, with their total numbers.
    pub licences: BTreeMap<String, u32>,
    /// How the files of jobs are staged.
    pub staging: StagingSettings,
    /// Which checks of accounts and classes are enforced; `None` leaves that unchanged. Accounts and classes themselves
    /// are changed one by one, by [`crate::command::Command::ChangeAccounts`].
    pub accounts: Option<AccountSettings>,
    /// The lowest number for new jobs (SL-I-04); `None` leaves it unchanged.
    pub first_job_number: Option<u64>,
}

/// The ledger's knowledge of a node's readiness.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeCondition {
    /// It has not reported since it was added.
    Unknown,
    /// It reports and serves jobs.
    Up,
    /// It stopped reporting: why it is considered lost.
    Lost(String),
}

/// A node's number and name, for messages to people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeName {
    /// The number.
    pub node: NodeId,
    /// The name.
    pub name: String,
}
