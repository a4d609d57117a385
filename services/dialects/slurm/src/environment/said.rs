//! The facts in the variables of jobs and tasks.

/// The facts in the variables of a job.
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
    /// The directory that it was submitted from.
    pub submit_directory: String,
    /// The host that it was submitted on.
    pub submit_host: String,
    /// When it was started, in seconds since 1970.
    pub start_seconds: Option<i64>,
    /// When it ends at the latest, in seconds since 1970.
    pub end_seconds: Option<i64>,
    /// How often it was started before.
    pub restarts: u32,
    /// For an array task.
    pub array: Option<ArrayFacts>,
    /// The mask for new files of its batch script or command, if it is known.
    pub umask: Option<u32>,
}

/// The facts in the variables of an array task (SL-E-10).
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
    /// The distance between indices.
    pub step: u32,
}

/// The facts in the variables of a component.
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
    /// Its nodes, in order.
    pub nodes: Vec<String>,
    /// Its CPUs on each node.
    pub cpus: Vec<u64>,
    /// The number of tasks on each node.
    pub tasks: Vec<u64>,
    /// The number of tasks, if requested.
    pub asked_tasks: Option<u32>,
    /// The CPUs for each task, if requested.
    pub cpus_per_task: Option<u32>,
    /// The tasks on each node, if requested.
    pub tasks_per_node: Option<u32>,
    /// Memory for each CPU in megabytes, if requested.
    pub megabytes_per_cpu: Option<u64>,
    /// Memory on each node in megabytes, if requested.
    pub megabytes_per_node: Option<u64>,
    /// The distribution of tasks, if requested.
    pub distribution: Option<String>,
    /// Whether it has more tasks than CPUs (`--overcommit`).
    pub overcommit: bool,
    /// Its dependencies, if any are left.
    pub dependency: Option<String>,
    /// Its reservation.
    pub reservation: Option<String>,
    /// Its licences.
    pub licences: Option<String>,
    /// Variables with what it asked for about the cores of its tasks, and their values.
    pub binding: Vec<(&'static str, String)>,
    /// Variables with what it asked for about GPUs, and their values.
    pub gpus: Vec<(&'static str, String)>,
    /// The image of its containers, if requested.
    pub container: Option<String>,
}

/// Options about the cores of tasks, and the variables that tell a job that they were given.
pub const BINDING_OPTIONS: [(&str, &str); 4] = [
    ("hint", "SLURM_HINT"),
    ("ntasks-per-core", "SLURM_NTASKS_PER_CORE"),
    ("ntasks-per-socket", "SLURM_NTASKS_PER_SOCKET"),
    ("threads-per-core", "SLURM_THREADS_PER_CORE"),
];

/// Options about GPUs, and the variables that tell a job that they were given.
pub const GPU_OPTIONS: [(&str, &str); 9] = [
    ("gpus", "SLURM_GPUS"),
    ("gpus-per-node", "SLURM_GPUS_PER_NODE"),
    ("gpus-per-task", "SLURM_GPUS_PER_TASK"),
    ("gpus-per-socket", "SLURM_GPUS_PER_SOCKET"),
    ("cpus-per-gpu", "SLURM_CPUS_PER_GPU"),
    ("mem-per-gpu", "SLURM_MEM_PER_GPU"),
    ("ntasks-per-gpu", "SLURM_NTASKS_PER_GPU"),
    ("gpu-bind", "SLURM_GPU_BIND"),
    ("gpu-freq", "SLURM_GPU_FREQ"),
];
