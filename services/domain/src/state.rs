//! The sum of the history at one point of the log. Everything here can be read; only [`State::apply`] changes it.

pub mod accounts;
pub mod altered;
pub mod array;
pub mod by_node;
pub mod components;
pub mod filtering;
pub(crate) mod index;
pub mod job;
pub(crate) mod lending;
pub mod looks;
mod names;
pub mod node;
pub(crate) mod numbers;
pub mod planning;
pub(crate) mod pool;
pub(crate) mod room;
pub mod run;
pub mod sessions;
pub mod shape;
pub mod staging;
pub(crate) mod task;
pub mod tasks;

pub use accounts::{Accounts, Amount, Charge, Counter, Rule, Rules, Whose, Within};
pub use altered::TakenOut;
pub use array::ArrayState;
pub use by_node::{ByNode, OnNode};
pub use components::{ComponentOver, SingleEnd};
pub use filtering::{Chain, Entry, Filtering, Kept, OutstandingCall, Passed, Refusal, Told};
pub use job::{Component, Condition, ConditionStatus, Finished, Job, JobExtras, Phase, ProgramKind, RunSummary};
pub use node::{Licence, Node, Queue};
pub use planning::{BackfillPasses, Reservation};
pub use run::{Part, PartState, Run, Step, StepPart, Suspension};
pub use sessions::{AtOnce, KeptJob, LaunchedPart, LaunchedStep};
pub use shape::{Shape, ShapeId, Shapes};
pub use staging::{Buffer, JobStaging, Stage};
pub use task::Task;
pub use tasks::{Elastic, Ending, RunningTask, TaskBook};

use altered::Altered;
use filtering::FilterState;
use index::Index;
use muster_schemas::{
    JobId, NodeId, RunId, Sequence, Timestamp,
    cluster::{ClusterConfig, ClusterSettings},
    event::{Actor, Owner},
    job::{JobState, WaitReason},
    policy::Policy,
    public,
    resources::IndexSet,
    scheduling::SchedulingSettings,
};
use names::PastNames;
use numbers::Numbers;
use planning::Planning;
use pool::Pool;
use serde::{Deserialize, Serialize};
use sessions::Sessions;
use staging::Staging;
use std::{borrow::Cow, collections::BTreeMap, ops::Bound, sync::Arc};

/// The cluster after some record of its log. It is stored as it is, but for what is derived from it: new fields go before the
/// index, each of them nothing until it is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub(crate) sequence: Sequence,
    pub(crate) time: Timestamp,
    pub(crate) cluster: Option<ClusterIdentity>,
    pub(crate) settings: Arc<ClusterSettings>,
    pub(crate) archived: Sequence,
    pub(crate) queues: BTreeMap<Arc<str>, Queue>,
    pub(crate) licences: BTreeMap<String, Licence>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) next_node: u32,
    pub(crate) past_names: PastNames,
    pub(crate) shapes: Shapes,
    pub(crate) jobs: BTreeMap<JobId, Box<Job>>,
    pub(crate) next_job: u64,
    pub(crate) unfinished_jobs: u64,
    pub(crate) runs: BTreeMap<RunId, Box<Run>>,
    pub(crate) next_run: u64,
    pub(crate) planning: Planning,
    pub(crate) filters: FilterState,
    pub(crate) scheduling: Arc<SchedulingSettings>,
    pub(crate) rebalanced: Option<Timestamp>,
    pub(crate) sessions: Sessions,
    pub(crate) staging: Staging,
    pub(crate) passes: Arc<BackfillPasses>,
    pub(crate) accounts: Accounts,
    pub(crate) altered: Altered,
    pub(crate) numbers: Numbers,
    #[serde(skip)]
    pub(crate) index: Index,
    #[serde(skip)]
    pub(crate) pools: Pools,
}

/// Whose log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterIdentity {
    /// Tells this log from every other.
    pub cluster_id: [u8; 16],
    /// The key that checkpoints are signed with.
    pub public_key: [u8; 32],
}

/// Shared copies of what jobs have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pools {
    pub(crate) text: Pool<str>,
    pub(crate) owners: Pool<Owner>,
    pub(crate) reasons: Pool<WaitReason>,
}

/// A job that only waits for resources.
#[derive(Clone, Debug)]
pub struct Waiting<'a> {
    /// The job, or the array whose tasks wait.
    pub job: &'a Job,
    /// For an array the tasks that may start, at least one; its limit on running tasks
    /// ([`ArrayState::headroom`]) is not in it.
    pub indices: Option<Cow<'a, IndexSet>>,
}

impl State {
    /// The state before the first record.
    pub fn new() -> Self {
        Self::default()
    }

    /// The last record that it includes.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The time of that record.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// Whose log it is; `None` before the first record.
    pub fn cluster(&self) -> Option<&ClusterIdentity> {
        self.cluster.as_ref()
    }

    /// Whether the actor may do everything: `root`, the administrators of the settings, the ledger itself.
    pub fn is_administrator(&self, actor: &Actor) -> bool {
        match actor {
            Actor::Ledger => true,
            Actor::User(owner) => owner.uid == 0 || self.settings().administrators.contains(&owner.user),
            _ => false,
        }
    }

    /// The settings of the cluster.
    pub fn settings(&self) -> &ClusterSettings {
        &self.settings
    }

    /// The configuration that is in force.
    pub fn configuration(&self) -> ClusterConfig {
        ClusterConfig {
            settings: self.settings().clone(),
            queues: self.queues().map(|queue| (*queue.spec).clone()).collect(),
            nodes: self.nodes().map(|node| (*node.spec).clone()).collect(),
            licences: self.licences().map(|(name, licence)| (name.to_owned(), licence.total)).collect(),
            staging: (**self.staging_settings()).clone(),
            accounts: Some(self.accounts().settings().clone()),
            first_job_number: Some(self.first_job_number()),
        }
    }

    /// Records up to and including this were moved to archive files.
    pub fn archived(&self) -> Sequence {
        self.archived
    }

    /// All queues, by name.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = &Queue> {
        self.queues.values()
    }

    /// A queue.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name)
    }

    /// All floating licences, by name.
    pub fn licences(&self) -> impl ExactSizeIterator<Item = (&str, &Licence)> {
        self.licences.iter().map(|(name, licence)| (name.as_str(), licence))
    }

    /// A floating licence.
    pub fn licence(&self, name: &str) -> Option<&Licence> {
        self.licences.get(name)
    }

    /// All nodes, by number.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node> {
        self.nodes.values()
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id)
    }

    /// The node of this name.
    pub fn node_by_name(&self, name: &str) -> Option<&Node> {
        self.index.node_names.get(name).and_then(|id| self.node(*id))
    }

    /// The name of a node, also of one that has been removed, or its number as text if there has never been one.
    pub fn node_name(&self, id: NodeId) -> Cow<'_, str> {
        public::node_name(self, id)
    }

    /// The policy that planners follow.
    pub fn policy(&self) -> &Arc<Policy> {
        self.planning.policy()
    }

    /// The passes of backfill that start jobs with several components.
    pub fn backfill_passes(&self) -> &Arc<BackfillPasses> {
        &self.passes
    }

    /// Accounts, associations and service classes, and what of them is enforced.
    pub fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// The priority of a job with that of its service class.
    pub fn priority_of(&self, job: &Job) -> i64 {
        let lead = job.lead();
        lead.priority.saturating_add(self.accounts.class_priority(lead))
    }

    /// All advance reservations that are not over, by name.
    pub fn reservations(&self) -> impl ExactSizeIterator<Item = &Reservation> {
        self.planning.reservations.values()
    }

    /// An advance reservation that is not over.
    pub fn reservation(&self, name: &str) -> Option<&Reservation> {
        self.planning.reservations.get(name)
    }

    /// The reservations that have a node, by name.
    pub fn reservations_of(&self, node: NodeId) -> impl Iterator<Item = &Reservation> {
        let names = self.index.reserved.get(&node).into_iter().flatten();
        names.filter_map(|name| self.reservation(name))
    }

    /// Whether something has become free that the last plan which changed a promise could not see, so that promises may
    /// move to earlier times. Nothing is counted before the first policy is set: no promise is made until then.
    pub fn capacity_freed(&self) -> bool {
        self.planning.freed > self.planning.promised_after
    }

    /// All jobs that the state still knows, by id: jobs, arrays, and tasks that have been started at least once.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = &Job> {
        self.jobs.values().inspect(|_| looks::note()).map(Box::as_ref)
    }

    /// The jobs with larger ids than this one, in order of their ids; all of them without one.
    pub fn jobs_after(&self, after: Option<JobId>) -> impl Iterator<Item = &Job> {
        self.jobs.range((after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)).map(|(_, job)| {
            looks::note();
            &**job
        })
    }

    /// The same of the jobs of a user, found without a look at those of others.
    pub fn jobs_of_after<'a>(&'a self, user: &str, after: Option<JobId>) -> impl Iterator<Item = &'a Job> + use<'a> {
        let behind = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let owned = self.index.owned.get(user).into_iter();
        owned.flat_map(move |ids| ids.range::<JobId, _>(behind)).filter_map(|id| self.job(*id))
    }

    /// The jobs of a user, in order of their ids, found without a look at those of others.
    pub fn jobs_of<'a>(&'a self, user: &str) -> impl Iterator<Item = &'a Job> + use<'a> {
        self.index.owned.get(user).into_iter().flatten().filter_map(|id| self.job(*id))
    }

    /// A job, an array, or a task that has been started at least once.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        looks::note();
        self.jobs.get(&id).map(Box::as_ref)
    }

    /// The names of the nodes that could not be prepared for a job, and that it does not get again (HPC-J-22).
    pub fn unprepared_nodes(&self, job: &Job) -> Vec<String> {
        let unusable = job.tasks.iter().flat_map(|book| &book.unusable);
        unusable.map(|node| self.node_name(*node).into_owned()).collect()
    }

    /// The job one of whose components has this number: components have consecutive numbers from the job's own on.
    pub fn job_of_component(&self, number: u64) -> Option<&Job> {
        let (_, before) = self.jobs.range(..=JobId::job(number)).next_back()?;
        let job = self.job(before.id.whole())?;
        (number - job.id.number < job.components.len() as u64).then_some(job)
    }

    /// An array together with its tasks that have been started at least once, by index; a plain job alone.
    pub fn job_with_tasks(&self, number: u64) -> impl Iterator<Item = &Job> {
        let range = JobId::job(number)..=JobId::task(number, u32::MAX);
        self.jobs.range(range).map(|(_, job)| job.as_ref())
    }

    /// How many jobs are not over; an array counts as one.
    pub fn unfinished_jobs(&self) -> u64 {
        self.unfinished_jobs
    }

    /// The number that the next run gets.
    pub fn next_run(&self) -> RunId {
        RunId(self.next_run.max(1))
    }

    /// All runs that hold resources, by number.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = &Run> {
        self.runs.values().map(Box::as_ref)
    }

    /// A run that holds resources.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.get(&id).map(Box::as_ref)
    }

    /// The shapes in use.
    pub fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// The jobs that only wait for resources, in order of arrival (time queued, then number): their gates are open, the
    /// queues of all their components are started and the reservations that they name have begun. Arrays come as one entry each.
    pub fn waiting(&self) -> impl Iterator<Item = Waiting<'_>> {
        // Mostly every queue is started, and then no job need be asked for its own.
        let all_started = self.queues().all(|queue| queue.spec.started);
        self.index.queued.iter().filter_map(move |(_, id)| {
            let job = self.job(*id).filter(|job| all_started || self.queues_started(job))?;
            if self.reservation_reason(job).is_some() {
                return None;
            }
            let indices = job.array.as_ref().map(|array| self.startable(job, array));
            let startable = indices.as_ref().is_none_or(|indices| !indices.is_empty());
            startable.then_some(Waiting { job, indices })
        })
    }

    /// Whether the queues of all components of a job start jobs.
    pub(crate) fn queues_started(&self, job: &Job) -> bool {
        job.queues().all(|name| self.queue(name).is_some_and(|queue| queue.spec.started))
    }

    /// How many jobs wait with open gates; arrays count once. Jobs of stopped queues and of
    /// reservations that have not begun are among them.
    pub fn eligible_jobs(&self) -> usize {
        self.index.queued.len()
    }

    /// The jobs that wait and depend on this one, by id.
    pub fn dependents(&self, id: JobId) -> impl Iterator<Item = JobId> {
        self.index.dependents.get(&id).into_iter().flatten().copied()
    }

    /// The state of a job. An array of which a task runs is running; otherwise it has the state of its waiting tasks.
    pub fn job_state(&self, job: &Job) -> JobState {
        match &job.phase {
            Phase::Finished(_) => JobState::Finished,
            Phase::Settling => JobState::Finishing,
            Phase::Active(_) if job.tasks.as_ref().is_some_and(|tasks| tasks.ending.is_some()) => JobState::Finishing,
            Phase::Active(run) => self.run(*run).map_or(JobState::Finishing, run_state),
            Phase::Waiting if job.array.as_ref().is_some_and(|array| array.running > 0) => JobState::Running,
            Phase::Waiting if self.gate_reason(job).is_some() => JobState::Held,
            Phase::Waiting => JobState::Queued,
        }
    }

    /// When [`muster_schemas::command::Command::Tick`] is next worth deciding; it can be in the past. `None` if
    /// nothing waits for a time.
    pub fn next_timer(&self) -> Option<Timestamp> {
        let tasks_ready = !self.index.tasks_ready.is_empty();
        let goes_on = self.ready_to_go_on().next().is_some() || self.kept_in_the_way().next().is_some();
        if tasks_ready || goes_on || self.has_staging_now() || !self.impossible_jobs().is_empty() {
            return Some(self.time());
        }
        let reservation = self.index.reservations_due.first().map(|(time, _)| *time);
        let closure = self.index.closures_due.first().map(|(time, _)| *time);
        let kept = self.sessions.kept.values().map(|kept| kept.until).min();
        self.index.due.first().map(|(time, _)| *time).into_iter().chain(reservation).chain(closure).chain(kept).min()
    }
}

fn run_state(run: &Run) -> JobState {
    match run {
        Run { stopping: Some(_), .. } => JobState::Finishing,
        Run { started: None, .. } => JobState::Launching,
        run if run.is_suspended() => JobState::Suspended,
        _ => JobState::Running,
    }
}
