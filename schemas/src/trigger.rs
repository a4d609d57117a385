//! Triggers: programs that run, as the users who set them, when something happens to a job or to nodes.

use crate::ids::{JobId, Sequence};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a trigger watches, and what it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerSpec {
    /// What it watches.
    pub on: TriggerOn,
    /// Seconds from what happens to the run of the program; -32,000 to 32,000. Below 0 only for a time limit, which is known
    /// before.
    #[serde(default)]
    pub offset_seconds: i32,
    /// The full path of the program, followed by words for it. It gets the job or the nodes as one more word.
    pub program: Vec<String>,
    /// Whether a trigger on nodes stays after it has fired.
    #[serde(default)]
    pub is_permanent: bool,
}

/// What a trigger watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TriggerOn {
    /// The end of a job.
    JobEnds(JobId),
    /// The end of the walltime of a running job.
    WalltimeEnds(JobId),
    /// A turn of nodes.
    Nodes {
        /// The nodes.
        nodes: WatchedNodes,
        /// The turn.
        turn: NodeTurn,
    },
}

impl TriggerOn {
    /// The job that it is about.
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::JobEnds(job) | Self::WalltimeEnds(job) | Self::Nodes { nodes: WatchedNodes::OfJob(job), .. } => {
                Some(*job)
            }
            Self::Nodes { nodes: WatchedNodes::All | WatchedNodes::Named(_), .. } => None,
        }
    }
}

/// The nodes that a trigger watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchedNodes {
    /// All nodes of the cluster.
    All,
    /// Those that a job has.
    OfJob(JobId),
    /// Those with these names.
    Named(Vec<String>),
}

/// What a node becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeTurn {
    /// Lost, or taken down.
    Down,
    /// In service again after it was down.
    Up,
    /// Drained, with no job left.
    Drained,
    /// Without a job, though it could have one.
    Idle,
}

/// A trigger as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggerView {
    /// Its number.
    pub trigger: u32,
    /// The login name of who set it; the program runs as this user.
    pub user: String,
    /// What it watches, and what it runs.
    pub spec: TriggerSpec,
    /// The number of the job that it is about, if it is about one.
    pub job_number: Option<u64>,
}

/// Triggers, by number: those of the caller, and for operators all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggersPage {
    /// The triggers.
    pub triggers: Vec<TriggerView>,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
}

/// Which triggers to clear. All that is given must match, and something must be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TriggerSelection {
    /// The trigger with this number.
    pub trigger: Option<u32>,
    /// Those about this job.
    pub job: Option<JobId>,
    /// Those that this user has set.
    pub user: Option<String>,
}
