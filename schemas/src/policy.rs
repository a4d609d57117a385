//! A site's rules for its planner: the stages of its pipeline as plain data.
//!
//! A policy is written as a file (`docs/reference/policy.md`), checked, and put in force by an event, so that the
//! history shows which policy led to which decision.

mod check;
mod components;
pub mod formula;
mod key;
mod log_classes;
pub mod order;
mod period;
pub mod routes;
mod turns;
mod use_share;
pub mod words;

pub use crate::shares::Compare;
pub use components::{ComponentPriority, ComponentStart, Components};
pub use turns::{
    ByLoad, Charge, FairShare, LoadTable, LoadedNode, OnRefusal, OtherHours, Share, ShareTable, Starving, TurnRules,
    Turns, UsageRule, Visit, Windows,
};

pub use use_share::{UseShare, UseSums, slices};

pub use key::OrderKey;
pub use log_classes::{LogClass, LogFilter};
pub use period::Period;

pub use check::{
    MOST_FORMULA_BYTES, MOST_LIMITS, MOST_NAME_BYTES, MOST_ORDER_KEYS, MOST_STARTS, PolicyFault, queue_place,
};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How waiting jobs are ordered, held back, placed and promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Its name, for people; at most 1,024 bytes.
    pub name: String,
    /// Which job is considered first: the first key that differs decides; equal jobs keep their order of arrival.
    pub order: Vec<OrderKey>,
    /// Whether and how jobs start ahead of one that waits for resources.
    pub backfill: Backfill,
    /// Limits on simultaneous use, in addition to the limits of the queues themselves.
    pub limits: Vec<Limit>,
    /// Queues with their own order or backfill, by name.
    pub queues: BTreeMap<String, QueuePolicy>,
    /// Maximum number of starts in one cycle, 1 to 100,000; the rest start in the next.
    pub max_starts: u32,
    /// Planning by turns, in place of backfilling and of the policies of queues; `None` means that jobs are planned with
    /// promises, as `backfill` says.
    pub turns: Option<Box<Turns>>,
    /// Why nothing starts under it; `None` if jobs start. At most 200 bytes.
    pub starts_nothing: Option<String>,
    /// The files that it was made of, at most 64; none if it was written as a policy.
    pub sources: Vec<PolicySource>,
    /// What the order `use_share` compares; `None` counts nothing.
    pub use_share: Option<Box<UseShare>>,
}

/// A file that a policy was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySource {
    /// Its name, at most 1,024 bytes.
    pub name: String,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: String,
}

impl Default for Policy {
    /// By priority of the queue, priority of the job, arrival. A job starts ahead of one that waits for resources if it
    /// does not delay it.
    fn default() -> Self {
        Self {
            name: "easy".into(),
            order: vec![OrderKey::QueuePriority, OrderKey::Priority, OrderKey::Fcfs],
            backfill: Backfill { mode: BackfillMode::Easy, ..Backfill::default() },
            limits: Vec::new(),
            queues: BTreeMap::new(),
            max_starts: 1000,
            turns: None,
            starts_nothing: None,
            sources: Vec::new(),
            use_share: None,
        }
    }
}

/// Names of the policies that need no file.
pub const BUILT_IN_POLICIES: [&str; 8] = ["fcfs", "easy", "conservative", "spt", "saf", "f1", "wfp3", "unicep"];

impl Policy {
    /// A policy that needs no file: `fcfs`, `easy`, `conservative`, and the orders `spt`, `saf`, `f1`, `wfp3` and
    /// `unicep`, which backfill as `easy` does.
    pub fn built_in(name: &str) -> Option<Self> {
        let easy = Backfill { mode: BackfillMode::Easy, ..Backfill::default() };
        let conservative = Backfill { mode: BackfillMode::Conservative, ..Backfill::default() };
        let (key, backfill) = match name {
            "fcfs" => (None, Backfill::default()),
            "easy" => (None, easy),
            "conservative" => (None, conservative),
            "spt" => (Some(OrderKey::Spt), easy),
            "saf" => (Some(OrderKey::Saf), easy),
            "f1" => (Some(OrderKey::F1), easy),
            "wfp3" => (Some(OrderKey::Wfp3), easy),
            "unicep" => (Some(OrderKey::Unicep), easy),
            _ => return None,
        };
        let order = key.map_or_else(|| Self::default().order, |key| vec![key]);
        Some(Self { name: name.into(), order, backfill, ..Self::default() })
    }
}

/// A queue's own rules. Its jobs are planned separately, in the order of the queues' priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QueuePolicy {
    /// Its order; `None` means that of the policy.
    pub order: Option<Vec<OrderKey>>,
    /// Its backfill; `None` means that of the policy.
    pub backfill: Option<Backfill>,
}

/// Whether and how jobs start ahead of one that waits for resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Backfill {
    /// The promises to waiting jobs.
    pub mode: BackfillMode,
    /// Maximum number of waiting jobs with a reservation at a time. `None` means one under `easy` and all under
    /// `conservative`.
    pub reservations: Option<u32>,
    /// The order in which candidates are tried.
    pub candidates: CandidateOrder,
    /// Maximum number of candidates that are tried in a cycle; `None` tries all.
    pub look_ahead: Option<u32>,
    /// Only jobs that name a walltime start ahead of others.
    pub require_walltime: bool,
    /// When jobs with several components start, in any queue. Only the policy's own backfill sets this.
    pub components: Components,
}

/// The promises to jobs that wait for resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackfillMode {
    /// No job starts ahead of another.
    #[default]
    None,
    /// The first waiting jobs have reservations, computed again in each cycle; others start if they delay none of them.
    Easy,
    /// Every waiting job has a reservation, kept until it starts; it never moves to a later time.
    Conservative,
}

/// The order in which backfill candidates are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CandidateOrder {
    /// In queue order.
    #[default]
    QueueOrder,
    /// Shortest job first: by ascending walltime, ties in queue order.
    Sjbf,
}

/// A limit on simultaneous use by a set of running jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limit {
    /// Whose jobs are counted together.
    pub per: LimitPer,
    /// Only for the user, group, account or queue of this name; `None` means for each.
    pub name: Option<String>,
    /// Only jobs of this queue are counted and held back; `None` means all queues.
    pub queue: Option<String>,
    /// Maximum number of running jobs; each array task and each component of a job counts as one.
    pub max_running_jobs: Option<u64>,
    /// Maximum number of nodes; a node counts once for each job on it.
    pub max_nodes: Option<u64>,
    /// Maximum number of cores.
    pub max_cores: Option<u64>,
    /// Maximum number of GPUs.
    pub max_gpus: Option<u64>,
    /// Maximum sums of numeric attributes by name, as jobs ask for them. A job without the attribute adds nothing, and is
    /// not held back.
    pub max_attributes: BTreeMap<String, u64>,
    /// Maxima of numeric attributes of one job. A job without the attribute is not held back.
    pub max_attributes_of_job: BTreeMap<String, u64>,
}

impl Default for Limit {
    fn default() -> Self {
        Self {
            per: LimitPer::All,
            name: None,
            queue: None,
            max_running_jobs: None,
            max_nodes: None,
            max_cores: None,
            max_gpus: None,
            max_attributes: BTreeMap::new(),
            max_attributes_of_job: BTreeMap::new(),
        }
    }
}

/// Whose jobs a limit counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitPer {
    /// All jobs.
    All,
    /// Those of each user.
    User,
    /// Those of each primary group of their owners.
    Group,
    /// Those of each account; jobs without one are not counted.
    Account,
    /// Those of each queue.
    Queue,
}
