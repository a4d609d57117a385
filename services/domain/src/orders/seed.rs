//! What is ordered of which part, as far as the state knows it.

use muster_schemas::{PartId, Sequence, StepId, event::StopReason};

/// An order about a part of a run, as far as the state knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderSeed {
    /// See [`NodeOrder::Launch`](muster_schemas::node::NodeOrder::Launch): the node's part of the run, with the job as the record
    /// `submitted_sequence` has it.
    Launch {
        /// The part of the run.
        part: PartId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
    },
    /// Launch the node's part of a step, with what the record `started_sequence` says.
    LaunchStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
        /// The record of the step's start.
        started_sequence: Sequence,
    },
    /// See [`NodeOrder::Hold`](muster_schemas::node::NodeOrder::Hold), with the job as the record `submitted_sequence` has it.
    Hold {
        /// The part of the run.
        part: PartId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
    },
    /// Launch an instance of a task, with the job and its tasks as the record `listed_sequence` has them.
    LaunchTask {
        /// The part of the run.
        part: PartId,
        /// The step that the instance is.
        step: StepId,
        /// The record of the job's tasks.
        listed_sequence: Sequence,
    },
    /// See [`NodeOrder::Resize`](muster_schemas::node::NodeOrder::Resize): to what the run has of the node at that time.
    Resize {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::StopStep`](muster_schemas::node::NodeOrder::StopStep).
    StopStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// From SIGTERM to SIGKILL.
        grace_seconds: u32,
    },
    /// See [`NodeOrder::SignalStep`](muster_schemas::node::NodeOrder::SignalStep).
    SignalStep {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// The signal's number.
        signal: u8,
    },
    /// See [`NodeOrder::Signal`](muster_schemas::node::NodeOrder::Signal).
    Signal {
        /// The part of the run.
        part: PartId,
        /// The signal's number.
        signal: u8,
    },
    /// See [`NodeOrder::Suspend`](muster_schemas::node::NodeOrder::Suspend).
    Suspend {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::Resume`](muster_schemas::node::NodeOrder::Resume).
    Resume {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::Stop`](muster_schemas::node::NodeOrder::Stop).
    Stop {
        /// The part of the run.
        part: PartId,
        /// Why.
        reason: StopReason,
        /// From SIGTERM to SIGKILL.
        grace_seconds: u32,
    },
    /// See [`NodeOrder::SetWalltime`](muster_schemas::node::NodeOrder::SetWalltime).
    SetWalltime {
        /// The part of the run.
        part: PartId,
        /// From its start, in seconds.
        walltime_seconds: Option<u64>,
    },
    /// See [`NodeOrder::Forget`](muster_schemas::node::NodeOrder::Forget).
    Forget {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::Tell`](muster_schemas::node::NodeOrder::Tell): what the record `told_sequence` says.
    Tell {
        /// The part of the run.
        part: PartId,
        /// The record of the message.
        told_sequence: Sequence,
    },
}
