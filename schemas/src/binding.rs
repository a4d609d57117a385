//! What the tasks of a step are bound to: cores and memory of their node.

use crate::resources::IndexSet;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the tasks of a step are bound to cores and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Binding {
    /// The cores of each task; `None` means its own if the step has exactly enough for all of its tasks there, otherwise
    /// all of the step's.
    pub cores: Option<CoreBinding>,
    /// How tasks are dealt out to the sockets of a node; `None` takes the lowest free cores.
    pub sockets: Option<SocketOrder>,
    /// The most tasks on a socket, 1 or more; `None` sets no limit.
    pub tasks_per_socket: Option<u32>,
    /// Whether a task uses one hardware thread of each processor core only, where several of them are cores of the node.
    pub one_thread: bool,
    /// Where the memory of a task lies; `None` leaves it to the kernel.
    pub memory: Option<MemoryBinding>,
    /// Whether each task tells on its standard error which cores it is bound to.
    pub tells_cores: bool,
    /// Whether each task tells on its standard error which memory it is bound to.
    pub tells_memory: bool,
}

/// The cores that each task may use, among those of the step on its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CoreBinding {
    /// All of them.
    All,
    /// As many as it asked for, which no other task uses as long as there are enough.
    Own,
    /// All on the sockets of its own.
    Sockets,
    /// All on one socket: the first task on the first, the next on the next, then again on the first.
    EachSocket,
    /// These: the list is used from its beginning on every node, and again if there are more tasks. They must be cores of
    /// the job.
    Listed(Vec<IndexSet>),
    /// All on these sockets, in the same way.
    ListedSockets(Vec<IndexSet>),
}

/// How tasks are dealt out to sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SocketOrder {
    /// A socket is filled before the next.
    Block,
    /// Each task goes to the next socket.
    Cyclic,
    /// Each core of a task comes from the next socket.
    FullCyclic,
}

/// The memory that each task uses, by the memory domains (NUMA nodes) of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryBinding {
    /// The domains.
    pub domains: MemoryDomains,
    /// Whether it may use others when these are full.
    #[serde(default)]
    pub is_preference: bool,
}

/// The domains of each task's memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryDomains {
    /// Those of the cores that it is bound to.
    Local,
    /// The one whose number is its index among the tasks on its node.
    Rank,
    /// These: the list is used from its beginning on every node, and again if there are more tasks.
    Listed(Vec<IndexSet>),
}

impl CoreBinding {
    /// Its list of cores or sockets, if it has one.
    pub fn list(&self) -> Option<&[IndexSet]> {
        match self {
            Self::Listed(list) | Self::ListedSockets(list) => Some(list),
            Self::All | Self::Own | Self::Sockets | Self::EachSocket => None,
        }
    }
}

impl MemoryDomains {
    /// Its list, if it has one.
    pub fn list(&self) -> Option<&[IndexSet]> {
        match self {
            Self::Listed(list) => Some(list),
            Self::Local | Self::Rank => None,
        }
    }
}

/// The entry of a list that repeats, for the task with this index on its node; `None` if the list is empty.
pub fn entry<T>(list: &[T], local_rank: u32) -> Option<&T> {
    list.get((local_rank as usize).checked_rem(list.len())?)
}
