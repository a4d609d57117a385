//! A slow and plain planner: it keeps lists of what is held and searches all of them for each question. Everything that
//! the real planner keeps up to date, this one computes again each time, so that the two can be compared.

mod holdings;
mod limits;
mod order;
mod pass;
mod search;

pub use holdings::{Holding, Holdings, Window};
pub use limits::{Counted, Usage};
pub use pass::{Outcome, Why, hopeless, order_of, pass};
pub use search::Found;

use muster_planner::model::{ActiveRun, Closure, QueuedJob, Reservation};
use muster_schemas::{JobId, NodeId, Timestamp, cluster::QueueSpec, resources::NodeSpec};
use std::{collections::BTreeMap, sync::Arc};

/// Everything that a plan depends on, except the policy and the time.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub nodes: BTreeMap<NodeId, Node>,
    pub licences: BTreeMap<String, u32>,
    pub queues: BTreeMap<String, QueueSpec>,
    pub default_memory_per_core_bytes: Option<u64>,
    /// Whether the policy lets components of a job share nodes.
    pub shares_nodes: bool,
    pub reservations: BTreeMap<Arc<str>, Reservation>,
    pub runs: BTreeMap<JobId, ActiveRun>,
    pub jobs: BTreeMap<JobId, QueuedJob>,
    /// Whether capacity was freed since the last plan, so that promises may move to earlier times.
    pub capacity_freed: bool,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub spec: Arc<NodeSpec>,
    pub is_available: bool,
    pub closures: Vec<Closure>,
}

impl World {
    /// Resources of the runs. An overdue run is expected to end in a second.
    pub fn held_by_runs(&self, now: Timestamp) -> Holdings<'_> {
        let mut holdings = Holdings::new(self, now);
        for run in self.runs.values() {
            let end = if run.expected_end > now { run.expected_end } else { now.plus_seconds(1) };
            for (demand, placed) in run.demand.components.iter().zip(&run.placement.components) {
                let window = Window { start: Timestamp::MIN, end };
                holdings.add(Holding::new(run.job, demand, placed.clone(), window, true));
            }
        }
        holdings
    }
}
