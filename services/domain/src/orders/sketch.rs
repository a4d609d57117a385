//! The part of an order that the state knows. A sketch needs neither the state nor the log: it is made where the state
//! is at hand, and turned into an order elsewhere. Facts shared by all parts of a run are computed once.

use crate::{
    copies,
    jobs::Job,
    orders::{LaunchSketch, OrderSeed, RunNodes, RunSketch},
    runs::{Run, walltime::walltime_of_part},
    state::State,
    tasks::orders::TaskSketch,
};
use muster_schemas::{NodeId, PartId, RunId, Sequence, StepId, node::NodeOrder, steps::StepShare};
use std::{collections::HashMap, sync::Arc};

/// An order, as far as the state knows it.
#[derive(Clone, Debug)]
pub enum Sketch {
    /// The complete order.
    Ready(NodeOrder),
    /// See [`NodeOrder::Launch`]: [`LaunchSketch::launch_order`] with the job from the record `submitted`.
    Launch {
        /// The part.
        part: LaunchSketch,
        /// All nodes of the run.
        nodes: Arc<RunNodes>,
        /// The record of the job's submission.
        submitted: Sequence,
    },
    /// See [`NodeOrder::Hold`]: [`LaunchSketch::hold_order`] with the job from the record `submitted`.
    Hold {
        /// The part.
        part: LaunchSketch,
        /// All nodes of the run.
        nodes: Arc<RunNodes>,
        /// The record of the job's submission.
        submitted: Sequence,
    },
    /// The node's part of a step, with the job from the record `submitted` and the step from the record `started`.
    Step {
        /// The part of the run.
        part: LaunchSketch,
        /// The part of the step within it.
        step: StepSketch,
        /// The record of the job's submission.
        submitted: Sequence,
        /// The record of the step's start.
        started: Sequence,
    },
    /// An instance of a task: [`TaskSketch::order`] with the job's tasks from the record `listed`.
    Task {
        /// The part of the run.
        part: LaunchSketch,
        /// The instance.
        task: TaskSketch,
        /// The record of the job's tasks.
        listed: Sequence,
    },
    /// See [`NodeOrder::Tell`]; the message is in the record `told`.
    Tell {
        /// The part of the run.
        part: PartId,
        /// The record of the message.
        told: Sequence,
    },
}

/// What the state knows of a step's part on one node: see [`LaunchSketch::tasks_order`].
#[derive(Clone, Debug)]
pub struct StepSketch {
    /// The number of the step.
    pub step: StepId,
    /// Its index among the parts of the step.
    pub at: usize,
    /// Its share of the node.
    pub share: StepShare,
}

/// Makes sketches from one state; what several orders share is computed once.
pub struct Sketches<'a> {
    state: &'a State,
    runs: HashMap<RunId, Option<Arc<RunSketch>>>,
    nodes: HashMap<RunId, Arc<RunNodes>>,
}

impl<'a> Sketches<'a> {
    /// The sketches of a state.
    pub fn new(state: &'a State) -> Self {
        Self { state, runs: HashMap::new(), nodes: HashMap::new() }
    }

    /// The order to a node for a seed; `None` if there is no longer anything to do.
    pub fn sketch(&mut self, node: NodeId, seed: OrderSeed) -> Option<Sketch> {
        Some(match seed {
            OrderSeed::Launch { part, submitted_sequence: submitted } => {
                let (run, part) = self.part(node, part)?;
                Sketch::Launch { part, nodes: self.nodes_of(run), submitted }
            }
            OrderSeed::Hold { part, submitted_sequence: submitted } => {
                let (run, part) = self.part(node, part)?;
                Sketch::Hold { part, nodes: self.nodes_of(run), submitted }
            }
            OrderSeed::LaunchStep { part, step, submitted_sequence: submitted, started_sequence: started } => {
                let (run, part) = self.part(node, part)?;
                let step = self.step(run, &part, node, step)?;
                Sketch::Step { part, step, submitted, started }
            }
            OrderSeed::LaunchTask { part, step, listed_sequence: listed } => {
                let (run, part) = self.part(node, part)?;
                let task = TaskSketch::of(self.state, run, node, step)?;
                Sketch::Task { part, task, listed }
            }
            OrderSeed::Tell { part, told_sequence: told } => Sketch::Tell { part, told },
            seed => Sketch::Ready(ready(self.state, node, seed)?),
        })
    }

    fn part(&mut self, node: NodeId, id: PartId) -> Option<(&'a Run, LaunchSketch)> {
        let state = self.state;
        let (run, part) = state.part_named(node, id)?;
        let of_run = self.runs.entry(run.id).or_insert_with(|| RunSketch::of(state, run).map(Arc::new)).clone()?;
        let job: &Job = state.job(run.job)?;
        let at = run.position_of(node, part.component)?;
        Some((run, LaunchSketch::new(of_run, id, (at, part.component), walltime_of_part(job, run, part))))
    }

    fn nodes_of(&mut self, run: &Run) -> Arc<RunNodes> {
        let state = self.state;
        self.nodes.entry(run.id).or_insert_with(|| Arc::new(RunNodes::of(state, run))).clone()
    }

    fn step(&self, run: &Run, part: &LaunchSketch, node: NodeId, step: StepId) -> Option<StepSketch> {
        let launched = self.state.step(run.id, step)?;
        let at = launched.position(node, part.component())?;
        Some(StepSketch { step, at, share: launched.parts.get(at)?.share.clone() })
    }
}

/// The order for a seed that needs only the state.
fn ready(state: &State, node: NodeId, seed: OrderSeed) -> Option<NodeOrder> {
    Some(match seed {
        OrderSeed::Launch { .. }
        | OrderSeed::LaunchStep { .. }
        | OrderSeed::Hold { .. }
        | OrderSeed::LaunchTask { .. }
        | OrderSeed::Tell { .. } => return None,
        OrderSeed::Resize { part } => {
            let (run, known) = state.part_named(node, part)?;
            let share = run.share_of(node, known.component)?;
            NodeOrder::Resize { part, cores: share.cores.clone(), memory_bytes: share.memory_bytes }
        }
        OrderSeed::StopStep { part, step, grace_seconds } => NodeOrder::StopStep { part, step, grace_seconds },
        OrderSeed::SetStepWalltime { part, step, walltime_seconds } => {
            NodeOrder::SetStepWalltime { part, step, walltime_seconds }
        }
        OrderSeed::SignalStep { part, step, signal } => NodeOrder::SignalStep { part, step, signal },
        OrderSeed::Signal { part, signal } => NodeOrder::Signal { part, signal },
        OrderSeed::Suspend { part } => NodeOrder::Suspend { part },
        OrderSeed::Resume { part } => NodeOrder::Resume { part },
        OrderSeed::Stop { part, reason, grace_seconds } => NodeOrder::Stop { part, reason, grace_seconds },
        OrderSeed::SetWalltime { part, walltime_seconds } => NodeOrder::SetWalltime { part, walltime_seconds },
        OrderSeed::Forget { part } => NodeOrder::Forget { part },
        OrderSeed::Copy { job, copy } => return copies::orders::order(state, job, copy),
        OrderSeed::StopCopy { job, copy } => NodeOrder::StopCopy { job, copy },
    })
}
