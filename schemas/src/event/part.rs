//! Parts of runs and steps on nodes.

use crate::{
    ids::NodeId,
    job::{ExitStatus, Usage},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the part of a run on one node came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeExit {
    /// The status that counts: the first that is not 0 by task rank, else 0. `None` if no process was started.
    pub status: Option<ExitStatus>,
    /// Why it ended, if not by itself.
    pub cause: EndCause,
    /// Its usage there.
    pub usage: Usage,
    /// When its first process started, by the node's clock; `None` if none did.
    pub started: Option<Timestamp>,
    /// When its last process was gone, by the node's clock.
    pub ended: Timestamp,
}

/// Why the processes of a run on a node ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// By themselves, or by a signal of the job's own.
    Itself,
    /// The walltime was over.
    Walltime,
    /// An order to kill it, for the reason given in the order.
    Killed,
    /// The kernel found that it used too much memory.
    OutOfMemory,
    /// It could not be started: why.
    LaunchFailed(String),
    /// The shim or the node died under it.
    Lost(String),
}

/// The part of a run on one node for one component, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodePart {
    /// The node.
    pub node: NodeId,
    /// Which component of the job, from 0.
    pub component: u32,
    /// How it ended there.
    pub exit: NodeExit,
}

/// A number of tasks on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeTasks {
    /// The node.
    pub node: NodeId,
    /// How many.
    pub tasks: u32,
}
