//! Proposals of a planner, the recorded parts of plans, and times in which nodes serve no jobs.

use crate::{
    event::{ShrinkReason, WaitingJob},
    ids::{JobId, NodeId, Sequence},
    job::WaitReason,
    resources::{IndexSet, NodeFilter, Placement},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

/// An advance reservation: nodes that serve only some jobs for a time. A job that names it runs in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReservationSpec {
    /// Its name, unique in the cluster.
    pub name: String,
    /// When it begins: its nodes start no other jobs from then on.
    pub start: Timestamp,
    /// When it ends.
    pub end: Timestamp,
    /// Its nodes.
    pub nodes: ReservedNodes,
    /// Users whose jobs may run in it. If no user and no account is named, all jobs may.
    #[serde(default)]
    pub users: Vec<String>,
    /// Accounts whose jobs may run in it.
    #[serde(default)]
    pub accounts: Vec<String>,
    /// After this many seconds it begins again, each time; 0 means that it does not repeat. At least its own length.
    #[serde(default)]
    pub repeats_after_seconds: u64,
    /// Values that the model has no field for and that a dialect wants back unchanged, by `dialect.name`.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// Whether it may have nodes that other reservations have at the same time. There its jobs start, and theirs do not, unless
    /// they overlap others too.
    #[serde(default)]
    pub overlaps: bool,
    /// Once it has begun, it ends when no job has run in it or waited for it for this many seconds; 0 means that it lasts until
    /// its end.
    #[serde(default)]
    pub ends_after_idle_seconds: u64,
    /// Whether jobs that may use it, and name no reservation, may have its nodes while it lasts, as if they named it.
    #[serde(default)]
    pub attracts: bool,
    /// Whether its jobs may start before it begins, outlast it, and have nodes that it does not have. Its own nodes are kept
    /// for them while it lasts.
    #[serde(default)]
    pub is_flexible: bool,
    /// Which of its nodes others take the place of, as far as idle ones are there; only of one by number.
    #[serde(default)]
    pub replaces: Replaced,
    /// It never begins: its beginning stays this many seconds ahead, so that others use its nodes for no longer than that at
    /// a time; 0 means that it begins at its time.
    #[serde(default)]
    pub stays_ahead_seconds: u64,
    /// Days on which one that repeats each day does not begin, counted from the day of its beginning: bit `n` stands for the
    /// day `n` days later, 0 to 6 but not all, and for each day a week after that.
    #[serde(default)]
    pub skipped_days: u8,
    /// Whether the users that it is for may remove it.
    #[serde(default)]
    pub users_may_remove: bool,
}

/// The nodes of a reservation that others take the place of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replaced {
    /// None: it keeps those that were chosen.
    #[default]
    None,
    /// Those that are lost or drained.
    Lost,
    /// These, and those on which a job runs, so that it has idle ones.
    Used,
}

/// The nodes of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReservedNodes {
    /// These, by name.
    Named(Vec<String>),
    /// A number of nodes, which the planner chooses.
    Count {
        /// Number of nodes, at least one.
        count: u32,
        /// The properties that each must have.
        filter: Option<NodeFilter>,
        /// Only nodes that serve this queue.
        queue: Option<String>,
    },
}

impl Default for ReservedNodes {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

/// A time in which a node serves no jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeClosure {
    /// When it begins: nothing starts there from then on, and nothing is planned to run into it.
    pub from: Timestamp,
    /// When it ends; [`Timestamp::MAX`] if that is not known.
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
    /// The promised number of cores and GPUs of each node; the start decides which ones.
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

/// How a backfill pass considers jobs with several components (SL-P-03).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComponentMode {
    /// Mode 1, in passes with odd numbers: one component after the other, each no earlier than the latest start
    /// recorded for earlier components of the job.
    #[default]
    Singly,
    /// Mode 2, in the passes after those: all of them no earlier than the latest start that the pass before recorded.
    Together,
}

impl ComponentMode {
    /// The mode of the pass with a number. It depends on nothing else, so a replay gives the same.
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
    /// Its nodes then.
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

/// A backfill pass under a policy that starts jobs with several components only in such passes (SL-P-06).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillPass {
    /// Its number, from 1.
    pub number: u64,
    /// The time that it planned for.
    pub at: Timestamp,
    /// How it considered jobs with several components.
    pub mode: ComponentMode,
    /// Jobs that it considered and did not start.
    pub jobs: Vec<PlannedComponents>,
}

/// A job that starts now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The job, or the task of an array (which the start creates).
    pub job: JobId,
    /// The resources of the run.
    pub placement: Placement,
}

/// A waiting job that starts in another queue than the one in which it waits (PBS-P-05).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueMove {
    /// The job, or the task of an array.
    pub job: JobId,
    /// The queue in which it starts.
    pub queue: String,
}

/// A promise of a policy with routes: the queue in which a waiting job starts, and when at the latest (PBS-P-16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RoutePromise {
    /// The job.
    pub job: JobId,
    /// The queue.
    pub queue: String,
    /// The latest start, if runs end by their walltimes.
    pub start: Timestamp,
}

/// Until when the rules of the usual hours are lifted for a queue of a policy with routes (PBS-P-11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueLift {
    /// The queue.
    pub queue: String,
    /// The moment from which they hold again.
    pub until: Timestamp,
}

/// The units of a machine that a run has, by their numbers (PBS-P-18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunUnits {
    /// The job or task.
    pub job: JobId,
    /// The machine.
    pub machine: String,
    /// The numbers, from 0.
    #[schema(value_type = String, example = "0-3,8")]
    pub units: IndexSet,
}

/// A planner's proposal: starts, and facts about waiting jobs that differ from the known ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedPlan {
    /// The last record that the planner had seen.
    pub seen: Sequence,
    /// The time that it planned for.
    pub at: Timestamp,
    /// Jobs that it left out because a start had been refused.
    pub left_out: Vec<JobId>,
    /// Jobs that start now.
    pub starts: Vec<Start>,
    /// Why other jobs wait.
    pub reasons: Vec<WaitingJob>,
    /// Promises to other jobs.
    pub slots: Vec<PlannedSlot>,
    /// When other jobs are expected to start.
    pub predictions: Vec<PredictedStart>,
    /// Nodes for reservations that ask for a number of them and have none yet, by name.
    pub reservations: Vec<(String, Vec<NodeId>)>,
    /// Facts about starts that have any; always for jobs with activation filters.
    pub start_facts: Vec<StartFacts>,
    /// More resources for running jobs.
    pub growths: Vec<ProposedGrowth>,
    /// Resources that running jobs have to give up.
    pub shrinks: Vec<ProposedShrink>,
    /// Running jobs that make way, with the job that they make way for.
    pub preemptions: Vec<ProposedPreemption>,
    /// Resources kept for jobs whose activation filter reserved them, if they are more than before (HPC-F-35).
    pub reserved: Vec<Start>,
    /// The number of the pass of this planner, from 1 (HPC-F-61).
    pub pass: u64,
    /// The number of the planner's start, from 1 (HPC-F-89).
    pub epoch: u64,
    /// Its findings for jobs with several components, if it is a backfill pass that starts those.
    pub backfill_pass: Option<BackfillPass>,
    /// Whether an external planner made it.
    pub external: bool,
    /// Whether stopped queues and limits on their running jobs do not count: a scheduling program knows them, and decides
    /// itself (PBS-C-09).
    pub is_ordered: bool,
    /// The queues in which jobs of `starts` start, if they wait in others.
    pub moves: Vec<QueueMove>,
    /// All promises that the next cycle keeps, if they are not those that are known (PBS-P-17).
    pub promised: Option<Vec<RoutePromise>>,
    /// The cycle that made it, under planning by turns. The ledger fills in its numbers and how many jobs it started.
    pub cycle: Option<Box<PlanCycle>>,
    /// All queues for which the rules of the usual hours are lifted, if they are not those that are known (PBS-P-11).
    pub lifted: Option<Vec<QueueLift>>,
    /// The units of jobs of `starts` on machines whose units have numbers (PBS-P-18).
    pub units: Vec<RunUnits>,
    /// After how many looks at jobs it was cut short because its time was over; `None` if it was not (OAR-G-09).
    pub cut_after: Option<u64>,
}

/// A cycle of planning by turns (PBS-C-11). A cycle that neither starts a job nor has anything new to say leaves only its number:
/// the next one has a higher one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanCycle {
    /// Its number since the planner started, from 1.
    pub number: u64,
    /// The number of the planner's start, from 1.
    pub epoch: u64,
    /// Why it began, in words such as `SCH_SCHEDULE_NEW`.
    pub reasons: Vec<String>,
    /// Whether it was prime time by the policy.
    pub is_prime: bool,
    /// Whether it was dedicated time by the policy.
    pub is_dedicated: bool,
    /// The name of the policy. The last change of the policy ahead of the record has its files.
    pub policy: String,
    /// Number of jobs that it started.
    pub started: u64,
    /// How long planning took, in milliseconds.
    pub milliseconds: u64,
    /// What users have used, as far as the policy counts it, in the order of their names: where the policy says that it is time to
    /// publish it (PBS-FS-09). The ledger fills it in.
    pub usage: Option<Vec<UserUsage>>,
    /// When the present half-life of what users have used began, where another one has begun: it was halved then (PBS-FS-08). The
    /// ledger fills it in.
    pub half_life_began: Option<Timestamp>,
}

/// Maximum number of users in [`PlanCycle::usage`].
pub const MOST_USERS_OF_CYCLE: usize = 10_000;

/// What a user has used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserUsage {
    /// The user.
    pub user: String,
    /// In the unit that the policy charges, at least 1.
    pub usage: u64,
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
    /// The size that it gets, in its unit.
    pub count: u64,
    /// For a start ahead of a waiting job: a start later than this would delay that job (HPC-B-15).
    pub latest_start: Option<Timestamp>,
}

/// More resources for a running job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposedGrowth {
    /// The job.
    pub job: JobId,
    /// The added resources.
    pub added: Placement,
    /// The added size, in its unit.
    pub count: u64,
    /// Its current size, in its unit.
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
    /// The job that they make way for.
    pub for_job: JobId,
    /// The running jobs.
    pub victims: Vec<JobId>,
    /// The resources that each of them has to give up, in the same order: those that a graceful preemption claims. An
    /// immediate one stops the jobs, and they give up everything.
    pub claims: Vec<Placement>,
    /// The gaining job's place in the queue of this pass, from 1.
    pub index: u64,
    /// The size that it could start with then, in its unit.
    pub count: u64,
}

/// The results of a plan besides its starts, which have their own earlier records; and the input of the plan, so that
/// the decision can be repeated and compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlanRecord {
    /// The last record that the planner had seen.
    pub seen: Sequence,
    /// The time that it planned for.
    pub at: Timestamp,
    /// Jobs that it left out because a start had been refused.
    pub left_out: Vec<JobId>,
    /// Jobs whose starts the ledger refused.
    pub refused: Vec<JobId>,
    /// Other parts of the plan that the ledger refused, because the state had changed.
    pub refused_changes: Vec<RefusedChange>,
    /// Why jobs wait, where it changed.
    pub reasons: Vec<WaitingJob>,
    /// Promises to jobs, where they changed.
    pub slots: Vec<PlannedSlot>,
    /// When jobs are expected to start, where it changed.
    pub predictions: Vec<PredictedStart>,
    /// Whether an external planner made it, whose decisions cannot be repeated.
    pub external: bool,
    /// All promises that the next cycle keeps, if they changed (PBS-P-17).
    pub promised: Option<Vec<RoutePromise>>,
    /// The cycle, under planning by turns (PBS-C-11).
    pub cycle: Option<Box<PlanCycle>>,
    /// All queues for which the rules of the usual hours are lifted, if they changed (PBS-P-11).
    pub lifted: Option<Vec<QueueLift>>,
    /// The units of started jobs on machines whose units have numbers (PBS-P-18).
    pub units: Vec<RunUnits>,
    /// After how many looks at jobs it was cut short because its time was over; `None` if it was not (OAR-G-09). The reasons
    /// say which jobs it left out.
    pub cut_after: Option<u64>,
}

/// A request of a plan, other than a start, that the ledger refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct RefusedChange {
    /// The job that it was about; for a preemption, the job that gains.
    pub job: JobId,
    /// The kind of change.
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
    /// Resources are kept for a waiting job (HPC-F-35).
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
