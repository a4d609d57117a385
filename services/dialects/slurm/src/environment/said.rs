//! What the variables of jobs and tasks say.

/// What the variables of a job say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFacts {
    /// Its components, at least one; the first is the leader.
    pub components: Vec<ComponentFacts>,
    /// The cluster's name.
    pub cluster: String,
    /// Its user's name.
    pub user: String,
    /// Its user's number.
    pub uid: u32,
    /// Its user's group number.
    pub gid: u32,
    /// Where it was submitted: the directory.
    pub submit_directory: String,
    /// Where it was submitted: the host.
    pub submit_host: String,
    /// When it was started, in seconds since 1970.
    pub start_seconds: Option<i64>,
    /// When it is over at the latest, in seconds since 1970.
    pub end_seconds: Option<i64>,
    /// How often it was started before.
    pub restarts: u32,
    /// Of a task of an array.
    pub array: Option<ArrayFacts>,
}

/// What the variables of a task of an array say (SL-E-10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayFacts {
    /// The number of the array.
    pub array: u64,
    /// The task's index.
    pub index: u32,
    /// How many tasks the array has.
    pub count: u64,
    /// The smallest index.
    pub min: u32,
    /// The greatest index.
    pub max: u32,
    /// From one index to the next.
    pub step: u32,
}

/// What the variables of a component say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentFacts {
    /// Its own job number.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Its account.
    pub account: String,
    /// Its partition.
    pub partition: String,
    /// Its QOS.
    pub qos: String,
    /// Its nodes, in their order.
    pub nodes: Vec<String>,
    /// The CPUs it has on each node.
    pub cpus: Vec<u64>,
    /// The tasks for each node.
    pub tasks: Vec<u64>,
    /// The number of tasks, if it was asked for.
    pub asked_tasks: Option<u32>,
    /// The CPUs for each task, if asked for.
    pub cpus_per_task: Option<u32>,
    /// The tasks on each node, if asked for.
    pub tasks_per_node: Option<u32>,
    /// Memory for each CPU in megabytes, if asked for.
    pub megabytes_per_cpu: Option<u64>,
    /// Memory on each node in megabytes, if asked for.
    pub megabytes_per_node: Option<u64>,
    /// The distribution of tasks, if asked for.
    pub distribution: Option<String>,
    /// Whether it has more tasks than CPUs (`--overcommit`).
    pub overcommit: bool,
    /// Its dependencies, if any are left.
    pub dependency: Option<String>,
    /// Its reservation.
    pub reservation: Option<String>,
    /// Its licences.
    pub licences: Option<String>,
}
