//! A planner that is slow and plain: it keeps lists of what is held and looks through all of them for each question.
//! What the real planner keeps up to date, this one computes from nothing, so that the two can be compared.

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

/// All that a plan depends on, apart from the policy and the time.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub nodes: BTreeMap<NodeId, Node>,
    pub licences: BTreeMap<String, u32>,
    pub queues: BTreeMap<String, QueueSpec>,
    pub default_memory_per_core_bytes: Option<u64>,
    /// Whether components of a job may share nodes, as the policy says.
    pub shares_nodes: bool,
    pub reservations: BTreeMap<Arc<str>, Reservation>,
    pub runs: BTreeMap<JobId, ActiveRun>,
    pub jobs: BTreeMap<JobId, QueuedJob>,
    /// Whether something came free since the last plan, so that promises may move to earlier times.
    pub capacity_freed: bool,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub spec: Arc<NodeSpec>,
    pub is_available: bool,
    pub closures: Vec<Closure>,
}

impl World {
    /// What the runs hold. One that should be over by now is expected to be so in a second.
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
