//! Orders about parts, as far as the state knows them.

use muster_schemas::{JobId, PartId, Sequence, StepId, event::StopReason};

/// An order about a part of a run, as far as the state knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderSeed {
    /// See [`NodeOrder::Launch`](muster_schemas::node::NodeOrder::Launch): launch the node's part of the run; the job
    /// is in the record `submitted_sequence`.
    Launch {
        /// The part of the run.
        part: PartId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
    },
    /// Launch the node's part of a step; the step is in the record `started_sequence`.
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
    /// See [`NodeOrder::Hold`](muster_schemas::node::NodeOrder::Hold); the job is in the record `submitted_sequence`.
    Hold {
        /// The part of the run.
        part: PartId,
        /// The record of the job's submission.
        submitted_sequence: Sequence,
    },
    /// Launch an instance of a task; the job's tasks are in the record `listed_sequence`.
    LaunchTask {
        /// The part of the run.
        part: PartId,
        /// The step of the instance.
        step: StepId,
        /// The record of the job's tasks.
        listed_sequence: Sequence,
    },
    /// See [`NodeOrder::Resize`](muster_schemas::node::NodeOrder::Resize): to the run's share of the node when the
    /// order is made.
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
        /// Seconds from SIGTERM to SIGKILL.
        grace_seconds: u32,
    },
    /// See [`NodeOrder::SetStepWalltime`](muster_schemas::node::NodeOrder::SetStepWalltime).
    SetStepWalltime {
        /// The part of the run.
        part: PartId,
        /// The step.
        step: StepId,
        /// In seconds; `None` means no limit of its own.
        walltime_seconds: Option<u64>,
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
        /// Seconds from SIGTERM to SIGKILL.
        grace_seconds: u32,
    },
    /// See [`NodeOrder::SetWalltime`](muster_schemas::node::NodeOrder::SetWalltime).
    SetWalltime {
        /// The part of the run.
        part: PartId,
        /// Seconds from its start.
        walltime_seconds: Option<u64>,
    },
    /// See [`NodeOrder::Forget`](muster_schemas::node::NodeOrder::Forget).
    Forget {
        /// The part of the run.
        part: PartId,
    },
    /// See [`NodeOrder::Tell`](muster_schemas::node::NodeOrder::Tell); the message is in the record `told_sequence`.
    Tell {
        /// The part of the run.
        part: PartId,
        /// The record of the message.
        told_sequence: Sequence,
    },
    /// See [`NodeOrder::Copy`](muster_schemas::node::NodeOrder::Copy).
    Copy {
        /// The job or task.
        job: JobId,
        /// The record with which the copying began.
        copy: Sequence,
    },
    /// See [`NodeOrder::StopCopy`](muster_schemas::node::NodeOrder::StopCopy).
    StopCopy {
        /// The job or task.
        job: JobId,
        /// The record with which the copying began.
        copy: Sequence,
    },
}
