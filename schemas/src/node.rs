//! Orders from the ledger to a node. Orders follow from events and can arrive twice or late; an executor obeys each
//! once per part of a run and step.

mod short;

pub use short::FillError;

use crate::{
    content::Missing,
    copies::CopyOrder,
    event::{Owner, StopReason, TraceContext},
    ids::{JobId, PartId, RunId, Sequence, StepId},
    job::{Checkpoint, Launch},
    job_token::JobAccess,
    resources::{IndexSet, PropertyValue},
    steps::StepTasks,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

/// An order as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderEnvelope {
    /// The order.
    pub order: NodeOrder,
    /// The epoch of the ledger that sends it, as in records.
    pub epoch: u64,
}

impl From<LaunchOrder> for NodeOrder {
    /// The launch of a part of a run.
    fn from(order: LaunchOrder) -> Self {
        Self::Launch { order: Box::new(order), tasks: None }
    }
}

impl From<NodeOrder> for OrderEnvelope {
    fn from(order: NodeOrder) -> Self {
        Self { order, epoch: 0 }
    }
}

/// An order to one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeOrder {
    /// Start the node's part of a run, or its tasks of a step.
    Launch {
        /// What every launch has.
        order: Box<LaunchOrder>,
        /// What only a step has. The nodes of the order are then those of the step, in order; its program, its files and its
        /// first rank do not count.
        tasks: Option<Box<StepTasks>>,
    },
    /// Send a signal to all processes of the run.
    Signal {
        /// The part of the run.
        part: PartId,
        /// The signal's number.
        signal: u8,
    },
    /// Stop (freeze) all processes of the run; its walltime is paused.
    Suspend {
        /// The part of the run.
        part: PartId,
    },
    /// Let them continue.
    Resume {
        /// The part of the run.
        part: PartId,
    },
    /// End the run: the checkpoint signal if it wants one and is preempted, SIGTERM, then SIGKILL after the grace
    /// period. A run that the node does not know is reported as ended.
    Stop {
        /// The part of the run.
        part: PartId,
        /// Why.
        reason: StopReason,
        /// Time from SIGTERM to SIGKILL, in seconds.
        grace_seconds: u32,
    },
    /// A running job's walltime changed.
    SetWalltime {
        /// The part of the run.
        part: PartId,
        /// From its start, in seconds.
        walltime_seconds: Option<u64>,
    },
    /// The end of the run is in the log: its spool can be removed.
    Forget {
        /// The part of the run.
        part: PartId,
    },
    /// Hold the node's part of a run of tasks, whose program is [`crate::job::Program::None`]: its tasks come as steps.
    /// Since this starts nothing, a part that ended here before may be held again, when the run returns to the node.
    Hold(Box<LaunchOrder>),
    /// The run has this share of the node from now on. Running processes are rebound and get the new limits.
    Resize {
        /// The part of the run.
        part: PartId,
        /// Its cores there.
        cores: IndexSet,
        /// Its memory there; 0 means no limit.
        memory_bytes: u64,
    },
    /// End a step: SIGTERM, then SIGKILL after the grace period. A step that the node does not know is reported as
    /// ended, and is not started if its launch arrives later.
    StopStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// Time from SIGTERM to SIGKILL, in seconds.
        grace_seconds: u32,
    },
    /// Send a signal to all processes of a step.
    SignalStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// The signal's number.
        signal: u8,
    },
    /// Append a line to the standard error of a run's script.
    Tell {
        /// The part of the run.
        part: PartId,
        /// The line, without its end.
        text: String,
    },
    /// A launch with parts named by hash.
    ByHash(Box<ShortOrder>),
    /// Copy files of a job. Repeated until the node reports the result.
    Copy(Box<CopyOrder>),
    /// The job no longer needs the copying with this number.
    StopCopy {
        /// The job or task.
        job: JobId,
        /// The record with which the copying began.
        copy: Sequence,
    },
    /// The step may run this long, counted from its start.
    SetStepWalltime {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// In seconds; `None` means no limit of its own.
        walltime_seconds: Option<u64>,
    },
}

/// An order with parts named by hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortOrder {
    /// The order to launch something, without those parts. Its own variables override those of the environment.
    pub order: NodeOrder,
    /// The missing contents.
    pub missing: Missing,
}

/// Everything a node needs to start its part of a run or of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOrder {
    /// The job.
    pub job: JobId,
    /// The part of the run to start, or the part that the step is in.
    pub part: PartId,
    /// 0 for the launch of the job itself; a later step joins the containment of its run.
    pub step: StepId,
    /// The name of the job.
    pub name: String,
    /// The owner.
    pub owner: Owner,
    /// The account it is charged to, for its environment.
    pub account: Option<String>,
    /// Its queue, for its environment.
    pub queue: String,
    /// The launch. On a node without a task of a script, the containment is created and held, and no process is
    /// started.
    pub launch: Launch,
    /// The submitter's environment, and [`CLUSTER_NAME_VARIABLE`].
    pub environment: BTreeMap<String, String>,
    /// The submitter's working directory.
    pub working_directory: String,
    /// File mode creation mask.
    pub umask: Option<u32>,
    /// All nodes of the run (those of the launched component first, then those of the others), in order of rank. A node
    /// that several components share is listed for each of them.
    pub nodes: Arc<Vec<OrderNode>>,
    /// The index of this order's node in `nodes`.
    pub node_index: u32,
    /// Rank of the first task on this node.
    pub first_rank: u32,
    /// Total number of tasks of the run or step.
    pub total_tasks: u32,
    /// Cores for each task.
    pub cpus_per_task: u32,
    /// Cores that it may use here.
    pub cores: IndexSet,
    /// GPUs that it may use here.
    pub gpus: IndexSet,
    /// Memory that it may use here; 0 means no limit.
    pub memory_bytes: u64,
    /// How long it may run, in seconds; `None` means no limit.
    pub walltime_seconds: Option<u64>,
    /// Checkpoint signal, if it wants one.
    pub checkpoint: Option<Checkpoint>,
    /// Time from SIGTERM to SIGKILL at the end of the walltime, in seconds.
    pub kill_grace_seconds: u32,
    /// The trace of the job.
    pub trace: TraceContext,
    /// How its processes reach a gateway; `None` until the ledger sends the order.
    pub access: Option<JobAccess>,
    /// The dialect of the launch: that of the step's own command, else that of the job.
    pub dialect: Option<String>,
    /// The group of its processes, by name, in which the owner must be on this node; `None` for the owner's first one.
    pub group: Option<String>,
}

/// The variable with the name of the cluster. The ledger adds it to the submitter's environment.
pub const CLUSTER_NAME_VARIABLE: &str = "MUSTER_CLUSTER_NAME";

/// The variable with the number of earlier starts. The ledger adds it for a job that was started before.
pub const RESTART_COUNT_VARIABLE: &str = "MUSTER_RESTART_COUNT";

/// The variable with the own number of a task of an array. The ledger adds it to the task's environment (SL-C-18).
pub const JOB_NUMBER_VARIABLE: &str = "MUSTER_JOB_NUMBER";

/// The variable with the number of the job's cores on each of [`LaunchOrder::nodes`], such as `4x3,2`. The ledger adds
/// it for a script on several nodes (SL-E-03). Executors of earlier versions need not know it.
pub const NODE_CORES_VARIABLE: &str = "MUSTER_NODE_CORES";

/// The value of [`NODE_CORES_VARIABLE`] for nodes on which a job has these numbers of cores.
pub fn node_cores_text(cores: impl IntoIterator<Item = u64>) -> String {
    let mut runs: Vec<(u64, usize)> = Vec::new();
    for cores in cores {
        match runs.last_mut() {
            Some((same, nodes)) if *same == cores => *nodes += 1,
            _ => runs.push((cores, 1)),
        }
    }
    let texts =
        runs.into_iter().map(|(cores, nodes)| if nodes > 1 { format!("{cores}x{nodes}") } else { cores.to_string() });
    texts.collect::<Vec<_>>().join(",")
}

impl LaunchOrder {
    /// The number of the job's cores on each of the nodes; `None` if the ledger does not say. A value that does not fit
    /// the nodes comes from another job, through the submitter's environment.
    pub fn node_cores(&self) -> Option<Vec<u64>> {
        let mut cores: Vec<u64> = Vec::new();
        for run in self.environment.get(NODE_CORES_VARIABLE)?.split(',') {
            let (each, nodes) = run.split_once('x').unwrap_or((run, "1"));
            let nodes = nodes.parse::<usize>().ok().filter(|nodes| *nodes <= self.nodes.len() - cores.len())?;
            cores.resize(cores.len() + nodes, each.parse().ok()?);
        }
        let own = cores.get(self.node_index as usize).copied();
        (cores.len() == self.nodes.len() && own == Some(self.cores.len())).then_some(cores)
    }

    /// The own number of the job, or of the task of an array.
    pub fn number(&self) -> u64 {
        let own = || self.environment.get(JOB_NUMBER_VARIABLE)?.parse().ok();
        self.job.index.and_then(|_| own()).unwrap_or(self.job.number)
    }
}

/// A node as the processes of a run see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderNode {
    /// Its name.
    pub name: String,
    /// Number of tasks there.
    pub tasks: u32,
    /// The component of the job that it serves, from 0.
    pub component: u32,
    /// What it is, for a job that [asks for it](crate::job::JobType::DescribesNodes).
    pub facts: Option<Box<NodeFacts>>,
}

/// A node of a run as a file about it describes it (OAR-J-15).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Its properties.
    pub properties: BTreeMap<String, PropertyValue>,
    /// The cores of the job there.
    pub cores: IndexSet,
    /// The number of all of its cores.
    pub all_cores: u32,
    /// The number of its sockets.
    pub sockets: u32,
    /// The number of cores of the nodes before it in the cluster.
    pub cores_before: u64,
    /// The number of sockets with cores of the nodes before it in the cluster.
    pub sockets_before: u64,
}

/// What a node's executor finds of the node's GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuReport {
    /// How many there are: numbers from this one on are not there.
    pub found: u32,
    /// Those that cannot be used, by number, and why.
    pub faults: BTreeMap<u32, String>,
}

/// A GPU that is out of service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuFault {
    /// Its number on its node, from 0.
    pub gpu: u32,
    /// Why, for people.
    pub why: String,
}

/// A measured load of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeLoad {
    /// The average number of processes that ran or could run, over the last minute, in millionths.
    pub millionths: u64,
    /// When it was measured.
    pub at: Timestamp,
    /// The percentage of its time that the system itself took since the measurement before; `None` if it is not known.
    pub system_percent: Option<u32>,
}

/// The processor time that a run has used on a node so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartUse {
    /// The part of the run.
    #[schema(value_type = u64)]
    pub part: PartId,
    /// In seconds, user and system together.
    pub cpu_seconds: u64,
}

/// A load in millionths, as people write it: with two digits behind the point.
pub fn load_text(millionths: u64) -> String {
    let hundredths = millionths.saturating_add(5_000) / 10_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// A sign of life, sent by each executor at an interval well below `node_lost_after_seconds`. Not an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The node.
    pub node: String,
    /// Changes when the machine boots.
    pub boot_id: String,
    /// Parts of runs for which it has shims or unacknowledged results.
    pub parts: Vec<PartId>,
    /// The highest run number that it remembers, including runs long gone.
    pub highest_run: Option<RunId>,
    /// The moment for which the list of parts is true: the last mark that the node had received when it made the list.
    pub as_of: Option<Mark>,
}

/// A moment in the life of a ledger, which it sends to nodes. A list of parts that a node made after it had received
/// the mark is true for that moment: any part that was ordered or started by then and is not in the list is over or
/// forgotten, because the answer with the mark repeated each order that the node had missed. Newer parts can be running
/// without being in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// When the ledger that sends it started. Marks of other ledgers mean nothing, since their records can differ.
    pub session: Timestamp,
    /// The last record at that moment.
    pub sequence: Sequence,
}

/// The ledger's answer to a report of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Briefing {
    /// The moment of the answer; `None` if the answer only repeats an earlier one.
    pub mark: Option<Mark>,
    /// Orders for the node about the parts that it named and about those that it did not.
    pub orders: Vec<NodeOrder>,
    /// The epoch of the ledger that answers, as in orders.
    pub epoch: u64,
}
