//! Proposals of a planner and the parts of them that are kept, and closures that keep nodes from jobs for a time.

use crate::{
    event::{ShrinkReason, WaitingJob},
    ids::{JobId, NodeId, Sequence},
    job::WaitReason,
    resources::{NodeFilter, Placement},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// An advance reservation: nodes that serve only some jobs for a time. A job runs in it by giving its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservationSpec {
    /// Its name, unique in the cluster.
    pub name: String,
    /// From then on its nodes start no other jobs.
    pub start: Timestamp,
    /// Until then.
    pub end: Timestamp,
    /// Which nodes.
    pub nodes: ReservedNodes,
    /// Users whose jobs may run in it. If no user and no account is named, everybody's may.
    #[serde(default)]
    pub users: Vec<String>,
    /// Accounts whose jobs may run in it.
    #[serde(default)]
    pub accounts: Vec<String>,
}

/// The nodes of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReservedNodes {
    /// These, by name.
    Named(Vec<String>),
    /// A number of nodes, which the planner chooses.
    Count {
        /// How many, at least one.
        count: u32,
        /// The properties that each must have.
        filter: Option<NodeFilter>,
        /// Only nodes that serve this queue.
        queue: Option<String>,
    },
}

/// A time in which a node serves no jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeClosure {
    /// From then on nothing starts there, and nothing is planned to run into it.
    pub from: Timestamp,
    /// Until then; [`Timestamp::MAX`] if the end is not known.
    pub until: Timestamp,
    /// The reason, for people.
    #[serde(default)]
    pub reason: String,
}

/// A promise to a waiting job: resources from a time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SlotSpec {
    /// When it begins.
    pub start: Timestamp,
    /// Where. How many cores and GPUs of each node are promised; which of them is decided at the start.
    pub placement: Arc<Placement>,
}

/// The promise of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedSlot {
    /// The job; for an array, this is about its next task.
    pub job: JobId,
    /// The promise; `None` takes it back.
    pub slot: Option<SlotSpec>,
}

/// When a waiting job is expected to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PredictedStart {
    /// The job; for an array, this is about its next task.
    pub job: JobId,
    /// When; `None` if it cannot be predicted.
    pub start: Option<Timestamp>,
}

/// How a pass of backfill looks at jobs with several components (SL-P-03).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComponentMode {
    /// Mode 1, in passes with odd numbers: one component after the other, each no earlier than the latest start
    /// recorded for those of the job before it.
    #[default]
    Singly,
    /// Mode 2, in the passes after those: all of them no earlier than the latest start that the pass before recorded.
    Together,
}

impl ComponentMode {
    /// The mode of the pass with a number: it depends on nothing else, so a replay comes to the same.
    pub const fn of_pass(number: u64) -> Self {
        if number % 2 == 1 { Self::Singly } else { Self::Together }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Singly => 1,
            Self::Together => 2,
        }
    }
}

/// When and where a component is expected to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedComponent {
    /// When; `None` if that is not known, or further ahead than the policy looks.
    pub start: Option<Timestamp>,
    /// The nodes that it has then.
    pub nodes: Vec<NodeId>,
}

/// The findings of a backfill pass for a job with several components that does not start in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlannedComponents {
    /// The job.
    pub job: JobId,
    /// Why it waits.
    pub reason: WaitReason,
    /// Each of its components, in their order.
    pub components: Vec<PlannedComponent>,
}

impl PlannedComponents {
    /// The latest start of its components; `None` if one has none.
    pub fn latest_start(&self) -> Option<Timestamp> {
        let starts: Option<Vec<Timestamp>> = self.components.iter().map(|component| component.start).collect();
        starts?.into_iter().max()
    }
}

/// A pass of backfill under a policy that starts jobs with several components in such passes only (SL-P-06).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillPass {
    /// Its number, from 1.
    pub number: u64,
    /// The time that it planned for.
    pub at: Timestamp,
    /// How it looked at jobs with several components.
    pub mode: ComponentMode,
    /// Those that it looked at and did not start.
    pub jobs: Vec<PlannedComponents>,
}

/// A job that starts now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The job, or the task of an array (which comes into being with this).
    pub job: JobId,
    /// Where.
    pub placement: Placement,
}

/// A planner's proposal: starts, and facts about waiting jobs, where they differ from what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedPlan {
    /// The last record that the planner had seen.
    pub seen: Sequence,
    /// The time that it planned for.
    pub at: Timestamp,
    /// Jobs that it left out because a start of theirs had been refused.
    pub left_out: Vec<JobId>,
    /// Jobs that start now.
    pub starts: Vec<Start>,
    /// Why others wait.
    pub reasons: Vec<WaitingJob>,
    /// Promises to others.
    pub slots: Vec<PlannedSlot>,
    /// When others are expected to start.
    pub predictions: Vec<PredictedStart>,
    /// Nodes for reservations by count that have none yet, by name.
    pub reservations: Vec<(String, Vec<NodeId>)>,
    /// Facts about those of the starts that have any; always for jobs with activation filters.
    pub start_facts: Vec<StartFacts>,
    /// More resources for jobs that run.
    pub growths: Vec<ProposedGrowth>,
    /// Resources that running jobs have to give up.
    pub shrinks: Vec<ProposedShrink>,
    /// Running jobs that make way, with the job that they make way for.
    pub preemptions: Vec<ProposedPreemption>,
    /// Resources kept for jobs whose activation filter reserved them, where they are more than before (HPC-F-35).
    pub reserved: Vec<Start>,
    /// Which pass of this planner it is, from 1 (HPC-F-61).
    pub pass: u64,
    /// Which start of a planner it is, from 1 (HPC-F-89).
    pub epoch: u64,
    /// Its findings for jobs with several components, if it is a pass of backfill that starts those.
    pub backfill_pass: Option<BackfillPass>,
    /// Whether an external planner made it.
    pub external: bool,
}

/// Facts about a start in addition to its placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFacts {
    /// The job.
    pub job: JobId,
    /// Its place in the queue of this pass, from 1.
    pub index: u64,
    /// Whether it starts ahead of a waiting job.
    pub backfill: bool,
    /// How many of its unit it gets.
    pub count: u64,
    /// For a start that goes around a job: it would delay that job if it started later than this (HPC-B-15).
    pub latest_start: Option<Timestamp>,
}

/// More resources for a job that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedGrowth {
    /// The job.
    pub job: JobId,
    /// The added resources.
    pub added: Placement,
    /// How many of its unit that is.
    pub count: u64,
    /// How many of its unit it has.
    pub current: u64,
}

/// Resources that a running job has to give up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedShrink {
    /// The job.
    pub job: JobId,
    /// The resources that it gives up.
    pub removed: Placement,
    /// Why.
    pub reason: ShrinkReason,
}

/// Running jobs that make way for another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedPreemption {
    /// For whom.
    pub for_job: JobId,
    /// The running jobs.
    pub victims: Vec<JobId>,
    /// The resources that each of them has to give up, in their order: those that a graceful preemption claims. An
    /// immediate one stops them, and they give up everything.
    pub claims: Vec<Placement>,
    /// The place in the queue of this pass of the job that gains, from 1.
    pub index: u64,
    /// How many of its unit it could start with then.
    pub count: u64,
}

/// The results of a plan in addition to its starts, which have records of their own ahead of this one; and the input
/// of the plan, so that the decision can be repeated and compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanRecord {
    /// The last record that the planner had seen.
    pub seen: Sequence,
    /// The time that it planned for.
    pub at: Timestamp,
    /// Jobs that it left out because a start of theirs had been refused.
    pub left_out: Vec<JobId>,
    /// Jobs whose starts the ledger refused.
    pub refused: Vec<JobId>,
    /// Other parts of the plan that the ledger refused: the state had moved on.
    pub refused_changes: Vec<RefusedChange>,
    /// Why jobs wait, where it changed.
    pub reasons: Vec<WaitingJob>,
    /// Promises to jobs, where they changed.
    pub slots: Vec<PlannedSlot>,
    /// When jobs are expected to start, where it changed.
    pub predictions: Vec<PredictedStart>,
    /// Whether an external planner made it, whose decisions cannot be made again.
    pub external: bool,
}

/// A request of a plan, other than a start, that the ledger refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct RefusedChange {
    /// The job that it was about; of a preemption the one that gains.
    pub job: JobId,
    /// What.
    pub what: PlanChange,
}

/// A request of a plan other than a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanChange {
    /// A run gets more (HPC-S-09).
    Growth,
    /// A run gives something up (HPC-S-08, HPC-S-10, HPC-S-14).
    Shrink,
    /// Something is kept for a waiting job (HPC-F-35).
    Keep,
    /// Runs make way for a waiting job (HPC-S-12).
    Preemption,
}

impl PlanChange {
    /// As a word for people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::Shrink => "shrinking",
            Self::Keep => "reservation by a filter",
            Self::Preemption => "preemption",
        }
    }
}
