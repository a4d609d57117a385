//! The request of a component, as listings show it.

use crate::size;
use muster_schemas::{resources::FewGroups, time::Timestamp};

/// What a component asked for, and other facts from its submission.
#[derive(Clone, Debug, Default)]
pub struct RequestRecord {
    /// The least number of nodes.
    pub min_nodes: u32,
    /// The greatest number of nodes.
    pub max_nodes: u32,
    /// Processors for each task.
    pub cpus_per_task: u32,
    /// The least number of processors on each node, if given.
    pub min_cpus: u32,
    /// Tasks on each node, if given.
    pub tasks_per_node: u32,
    /// The least memory.
    pub memory: Option<MinMemory>,
    /// The least disk for temporary files, in megabytes.
    pub tmp_megabytes: u64,
    /// Features that nodes must have.
    pub features: Option<String>,
    /// Licences: `ansys:2,matlab:1`.
    pub licences: Option<String>,
    /// The conditions on other jobs: `afterok:49(unfulfilled)`.
    pub dependency: Option<String>,
    /// Generic resources.
    pub gres: Option<String>,
    /// The service class that was asked for.
    pub qos: Option<String>,
    /// The path of an OCI container bundle.
    pub container: Option<String>,
    /// Options about GPUs, by the name in listings.
    pub tres: Vec<(&'static str, String)>,
    /// Nodes that must be among its nodes.
    pub required_nodes: Vec<String>,
    /// Nodes that must not be among them.
    pub excluded_nodes: Vec<String>,
    /// Whether others may use its nodes: `OK`, `NO`, `YES`.
    pub oversubscribe: &'static str,
    /// Whether its nodes must be neighbours.
    pub is_contiguous: bool,
    /// On how few switches they are to be, and how long it waits for that.
    pub switches: Option<FewGroups>,
    /// How much its priority was lowered.
    pub nice: i64,
    /// The shortest acceptable time limit, in seconds.
    pub time_min_seconds: Option<u64>,
    /// When it must have ended.
    pub deadline: Option<Timestamp>,
    /// Whether it may be requeued.
    pub is_requeued: bool,
    /// Whether it is a batch job.
    pub is_batch: bool,
    /// The script or command, with its arguments.
    pub command: Option<String>,
    /// The submitter's working directory.
    pub work_dir: String,
    /// Whether it asks to boot its nodes first, which has no effect (SL-O-09).
    pub is_reboot: bool,
    /// Whether it has output files of its own: those of `salloc` and `srun` send output to their client.
    pub has_files: bool,
    /// Where standard output goes.
    pub stdout: String,
    /// Where standard error goes.
    pub stderr: String,
    /// Where standard input comes from.
    pub stdin: String,
    /// Its owner's comment.
    pub comment: Option<String>,
    /// An administrator's comment.
    pub admin_comment: Option<String>,
    /// Any further text.
    pub extra: Option<String>,
    /// A key for accounting.
    pub wckey: Option<String>,
    /// A network.
    pub network: Option<String>,
    /// Burst-buffer directives, one per line.
    pub burst_buffer: Option<String>,
    /// The occasions for mail.
    pub mail_type: Option<String>,
    /// The recipient of mail.
    pub mail_user: Option<String>,
    /// The host that it was submitted on.
    pub submit_host: Option<String>,
    /// The session that it was submitted in.
    pub submit_session: Option<String>,
    /// The whole command line.
    pub submit_line: Option<String>,
}

/// The least memory of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinMemory {
    /// Megabytes for each processor.
    PerCpu(u64),
    /// Megabytes on each node.
    PerNode(u64),
}

impl MinMemory {
    /// The amount: `40M`.
    pub fn text(self) -> String {
        let (Self::PerCpu(megabytes) | Self::PerNode(megabytes)) = self;
        size::show_megabytes(megabytes)
    }
}
