//! What a cycle sees: server, queues, nodes and jobs as plain data. The names of the fields are those of the state file
//! of PBS-C-16; further fields of such a file are ignored. An absent field is unset.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Amounts by the name of their resource.
pub type Amounts = BTreeMap<String, Amount>;

/// An amount as the batch system writes it: `4`, `250mb`, `1:00:00`, `linux`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// A count, bytes, or seconds.
    Number(i64),
    /// A fraction.
    Fraction(f64),
    /// Anything else.
    Text(String),
}

impl From<i64> for Amount {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Amount {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The batch system at the start of a cycle. The order of the lists is that of the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The server whose planner runs the program; all queues, nodes and jobs belong to it.
    pub server: Server,
    /// Further servers that `AllServersGet` lists behind it.
    pub other_servers: Vec<Server>,
    /// Its queues.
    pub queues: Vec<Queue>,
    /// Its nodes.
    pub nodes: Vec<Node>,
    /// Its jobs.
    pub jobs: Vec<Job>,
    /// The name of the node on which the server runs, if it is not the server's own name.
    pub local_node: Option<String>,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Its host.
    pub name: Option<String>,
    /// The queue of jobs that name none.
    pub default_queue: Option<String>,
    /// Limit of running jobs.
    pub max_running: Option<i64>,
    /// Limit of running jobs of one user.
    pub max_user_run: Option<i64>,
    /// Limit of running jobs of one group.
    pub max_group_run: Option<i64>,
    /// What its jobs can have together.
    pub resources_available: Amounts,
    /// What its running jobs have. An absent amount is summed up over the running jobs.
    pub resources_assigned: Amounts,
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// `execution` or `route`, or their first letters.
    #[serde(rename = "type")]
    pub queue_type: Option<String>,
    /// Whether its jobs may be started.
    pub started: Option<bool>,
    /// Its priority among the queues.
    pub priority: Option<i64>,
    /// Limit of running jobs.
    pub max_running: Option<i64>,
    /// Limit of running jobs of one user.
    pub max_user_run: Option<i64>,
    /// Limit of running jobs of one group.
    pub max_group_run: Option<i64>,
    /// What its jobs can have together.
    pub resources_available: Amounts,
    /// What its running jobs have. An absent amount is summed up over the running jobs.
    pub resources_assigned: Amounts,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether several jobs share it over time.
    pub ts: bool,
    /// `free`, `down`, `offline`, `reserve`, `job-exclusive` or `job-sharing`; several are separated by commas.
    pub state: Option<String>,
    /// CPUs.
    pub ncpus: Option<i64>,
    /// Its memory.
    pub physmem: Option<Amount>,
    /// Its architecture or operating system.
    pub arch: Option<String>,
    /// Load average.
    pub loadave: Option<f64>,
    /// Seconds since the last key was pressed.
    pub idletime: Option<i64>,
    /// Other names, separated by commas.
    pub properties: Option<String>,
    /// Who made it.
    pub vendor: Option<String>,
    /// Values of further functions by their names as in a configuration file, as `CNodeMemTotalGet[real]`. They
    /// replace those of the fields above.
    pub values: Amounts,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: Option<String>,
    /// Who submitted it, as `user@host`.
    pub owner: Option<String>,
    /// The queue in which it is.
    pub queue: Option<String>,
    /// The user under whom it runs.
    pub user: Option<String>,
    /// The group under which it runs.
    pub group: Option<String>,
    /// `T`, `Q`, `H`, `W`, `R` or `E`.
    pub state: String,
    /// Its priority among the user's jobs.
    pub priority: Option<i64>,
    /// Whether it can be run again.
    pub rerunnable: Option<bool>,
    /// Whether it waits for a terminal.
    pub interactive: Option<bool>,
    /// When it was made, in seconds since the start of 1970.
    pub ctime: Option<i64>,
    /// When it was queued, in seconds since the start of 1970. Stands in for `ctime`.
    pub qtime: Option<i64>,
    /// Who gets mail.
    pub mail: Option<String>,
    /// Files that are copied before it starts.
    pub stagein: Option<String>,
    /// Files that are copied after its end.
    pub stageout: Option<String>,
    /// What it asks for.
    pub request: Amounts,
    /// What it has used.
    pub used: Amounts,
}
