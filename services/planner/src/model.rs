//! The planner's view: waiting jobs, runs that hold resources, and closures and reservations of nodes.

use muster_domain::{State, dependencies::Awaited, fixed::FixedTime, quotas::Marks, sharing::Sharing, tasks::Elastic};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    resources::{Alternative, IndexSet, Placement, Request},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The request of a job, with everything that decides where it fits and how long it lasts. Jobs with equal demands fit
/// at the same places, so they share one search.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Demand {
    /// For each component of the job, at least one. They start together or not at all.
    pub components: Vec<ComponentDemand>,
    /// The jobs with which it shares cores and GPUs, if it does; it has one component then.
    pub sharing: Option<Arc<Sharing>>,
    /// Its time, if its start is fixed; it has one component with one way then.
    pub fixed: Option<FixedTime>,
    /// How much longer than the job its resources are kept free: the walltimes and deadlines here include it (OAR-Q-05).
    pub guard_seconds: u64,
}

impl Demand {
    /// The same demand, whose resources are kept free for longer than the job lasts.
    #[must_use]
    pub fn guarded(mut self, seconds: u64) -> Self {
        self.guard_seconds = seconds;
        if seconds == 0 {
            return self;
        }
        let later = |at: Timestamp| at.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)).min(Timestamp::MAX);
        let longer = |way: &Alternative| Alternative {
            walltime_seconds: way.walltime_seconds.map(|walltime| walltime.saturating_add(seconds)),
            ..way.clone()
        };
        for component in &mut self.components {
            component.deadline = component.deadline.map(later);
            component.alternatives = component.alternatives.iter().map(longer).collect();
        }
        self
    }

    /// How long a job itself may last if its resources are kept free for this time.
    pub fn own_seconds(&self, kept_seconds: u64) -> u64 {
        kept_seconds.saturating_sub(self.guard_seconds)
    }

    /// The same demand, on these nodes.
    pub(crate) fn on_nodes(&self, on: &[String]) -> Self {
        let mut demand = self.clone();
        for component in &mut demand.components {
            let mut alternatives = component.alternatives.to_vec();
            for alternative in &mut alternatives {
                if alternative.requests.is_empty() {
                    alternative.requests.push(Request::default());
                }
                for request in &mut alternative.requests {
                    request.nodes = on.to_vec();
                }
            }
            component.alternatives = alternatives.into();
        }
        demand
    }
}

/// The request of a component of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentDemand {
    /// Its queue, which can have its own nodes.
    pub queue: Arc<str>,
    /// The advance reservation that it runs in.
    pub reservation: Option<Arc<str>>,
    /// When it has to be over, if it has a deadline.
    pub deadline: Option<Timestamp>,
    /// Ways to serve it, at least one.
    pub alternatives: Arc<[Alternative]>,
}

/// A job that waits for nothing but its turn, limits and resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedJob {
    /// The job, or the array whose tasks wait.
    pub id: JobId,
    /// For an array its tasks that may start.
    pub tasks: Option<QueuedTasks>,
    /// Its request; each task has the same.
    pub demand: Arc<Demand>,
    /// Its owner and account.
    pub holder: Arc<Holder>,
    /// Higher goes first, if the order asks for it.
    pub priority: i64,
    /// Whether it is a list of tasks, for which other lists make way even without a scheduling mode.
    pub is_list: bool,
    /// When it was put into the queue.
    pub arrival: Timestamp,
    /// Numbers that formulas, limits and shares can use by name, in addition to those that every job has.
    pub attributes: Option<Arc<BTreeMap<String, i64>>>,
    /// Its promise from a planner that keeps promises (backfill `conservative`); for an array, that of its next task.
    pub slot: Option<Slot>,
    /// The effect of activation filters on it, if there is any.
    pub activation: Option<Arc<Activation>>,
}

/// A job that waits for others, and enters the queue after them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follower {
    /// The job, as it enters the queue.
    pub job: QueuedJob,
    /// What it waits for: of each group one thing. It never enters if a group is empty.
    pub awaits: Vec<Vec<Awaited>>,
}

/// The effect of activation filters on a waiting job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activation {
    /// Its filters are asked before it starts: it has some, and they have not passed yet.
    pub is_filtered: bool,
    /// Its filters are being asked, or asked to undo their work: it does not start until they have answered (HPC-F-84).
    pub is_pending: bool,
    /// Until they have answered, no other job of its priority or below starts (HPC-F-82).
    pub holds_back: bool,
    /// They are not asked again before this time (HPC-F-34).
    pub ask_again: Option<Timestamp>,
    /// The resources kept for it, which the engine treats as a run of it: it starts on these or more (HPC-F-35).
    pub kept: Option<Arc<Placement>>,
}

/// A run of a job that can use more or fewer resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElasticRun {
    /// The job.
    pub job: JobId,
    /// Its priority.
    pub priority: i64,
    /// When it was put into the queue.
    pub arrival: Timestamp,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// Its holdings, and those that it could use.
    pub size: Elastic,
    /// How many cores its tasks use on its nodes.
    pub busy: BTreeMap<NodeId, u32>,
    /// Nodes where it gets nothing: its preparation failed there, or it gave the node up and has not left it yet.
    pub barred: BTreeSet<NodeId>,
    /// The resources that it gives up as its tasks end.
    pub shrinking: Option<Arc<Placement>>,
    /// It is being stopped: all its resources will be free.
    pub is_leaving: bool,
    /// It may grow: it has started and continues, not as backfill, and waits for no filter (HPC-B-12).
    pub may_grow: bool,
    /// Its filters are asked before it grows (HPC-S-11).
    pub is_filtered: bool,
    /// They are not asked again before this time (HPC-F-34).
    pub ask_again: Option<Timestamp>,
}

/// A run of a job that makes way for jobs of some service classes, or of queues with a higher priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YieldingRun {
    /// The job.
    pub job: JobId,
    /// Its priority.
    pub priority: i64,
    /// When it got its resources.
    pub allocated: Timestamp,
    /// The classes of its components.
    pub classes: Vec<Arc<str>>,
    /// It is being stopped: all its resources will be free.
    pub is_leaving: bool,
    /// It waits again after it has made way.
    pub comes_back: bool,
    /// It is suspended when it makes way: it gives its cores, and keeps everything else.
    pub gives_cores_only: bool,
    /// It makes way for jobs of queues with a higher priority than this.
    pub makes_way_above: Option<i64>,
}

/// The waiting tasks of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedTasks {
    /// Tasks that may start by their own gates; at least one.
    pub indices: IndexSet,
    /// How many more may run now.
    pub headroom: u32,
}

/// The user and group that the limits of a policy count a job for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The owner's login name.
    pub user: Arc<str>,
    /// The owner's primary group, by number.
    pub group: u32,
    /// The account that is charged.
    pub account: Option<Arc<str>>,
    /// The charge of each component; empty if all are charged to the account and no class.
    pub charges: Vec<ComponentCharge>,
    /// What sets the job apart for quotas, if anything does.
    pub marks: Option<Arc<Marks>>,
}

/// The accounts that a component is charged to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentCharge {
    /// The account.
    pub account: Option<Arc<str>>,
    /// The service class.
    pub class: Option<Arc<str>>,
}

/// A promise: resources from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When it begins.
    pub start: Timestamp,
    /// The place. It fixes how many cores and GPUs of each node are promised; which ones is decided at the start.
    pub placement: Arc<Placement>,
}

/// A run that holds resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveRun {
    /// The job, or the task of an array.
    pub job: JobId,
    /// Its request.
    pub demand: Arc<Demand>,
    /// Its owner and account.
    pub holder: Arc<Holder>,
    /// Where it is.
    pub placement: Arc<Placement>,
    /// When its last component is over at the latest, by its walltime; [`Timestamp::MAX`] if it has none.
    pub expected_end: Timestamp,
    /// The numbers that limits count by name.
    pub attributes: Option<Arc<BTreeMap<String, i64>>>,
}

/// Nodes that are kept for some jobs for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its name, which the jobs that run in it give.
    pub name: Arc<str>,
    /// From then on the nodes serve no other job.
    pub start: Timestamp,
    /// Until then.
    pub end: Timestamp,
    /// The nodes.
    pub nodes: Vec<NodeId>,
    /// Whether it has them for itself where other reservations have them too.
    pub overlaps: bool,
    /// Whether jobs that name no reservation may have its nodes, if it admits them.
    pub attracts: bool,
    /// Whether its jobs may start before it, outlast it and have other nodes too.
    pub is_flexible: bool,
}

/// A time in which a node serves no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Closure {
    /// From then on.
    pub from: Timestamp,
    /// Until then; [`Timestamp::MAX`] if it is not known.
    pub until: Timestamp,
}

/// The queue of the component whose number is the job's.
pub(crate) fn lead_queue(demand: &Demand) -> &str {
    demand.components.first().map_or("", |component| &component.queue)
}

/// The known loads of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLoads {
    /// The loads that are known, in millionths, with the cores of runs that no measured load shows yet.
    pub millionths: BTreeMap<NodeId, u64>,
    /// The node that was chosen last.
    pub last: Option<NodeId>,
}

impl NodeLoads {
    /// What a policy that chooses nodes by their load goes by; nothing under other policies.
    pub fn of(state: &State) -> Self {
        Self { millionths: state.settled_loads(), last: state.last_chosen_by_load() }
    }
}
