//! Parts of runs and steps on nodes.

use crate::{
    ids::NodeId,
    job::{ExitStatus, Usage},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the part of a run on one node ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeExit {
    /// The status of the part: the first that is not 0 by task rank, else 0. `None` if no process was started.
    pub status: Option<ExitStatus>,
    /// Why it ended.
    pub cause: EndCause,
    /// Its usage there.
    pub usage: Usage,
    /// When its first process started, by the node's clock; `None` if none did.
    pub started: Option<Timestamp>,
    /// When its last process ended, by the node's clock.
    pub ended: Timestamp,
}

/// Why the processes of a run on a node ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// They ended by themselves, or by a signal from the job itself.
    Itself,
    /// The walltime was reached.
    Walltime,
    /// An order killed them, for the reason given in it.
    Killed,
    /// The kernel found that they used too much memory.
    OutOfMemory,
    /// They could not be started: why.
    LaunchFailed(String),
    /// The shim or the node died: how.
    Lost(String),
    /// One of them, a process of a parallel program, ended the program, or was gone when the others waited for it: which
    /// one, and why (SL-W-06).
    Aborted(String),
}

/// A part of a run (one component on one node), and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodePart {
    /// The node.
    pub node: NodeId,
    /// The component's index in the job, from 0.
    pub component: u32,
    /// How it ended there.
    pub exit: NodeExit,
}

/// A number of tasks on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeTasks {
    /// The node.
    pub node: NodeId,
    /// Number of tasks.
    pub tasks: u32,
}
