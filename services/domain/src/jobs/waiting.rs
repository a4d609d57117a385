//! Why jobs wait: gates, limits, the planner's reason, and otherwise the order. Facts needed for many jobs are computed
//! once for all, so that a list of all waiting jobs takes linear time.

use crate::{jobs::Job, state::State};
use muster_schemas::{JobId, Timestamp, cluster::QueueSpec, job::WaitReason, policy::Policy};
use std::{
    cell::{OnceCell, RefCell},
    cmp::Reverse,
    collections::HashMap,
    rc::Rc,
    sync::Arc,
};

/// The planning order of jobs: priority of the queue, priority of the job, arrival.
type Place = (Reverse<i64>, Reverse<i64>, Timestamp, JobId);

/// Positions in a list of blockers, by queue names.
type BlockersOfQueues = HashMap<Vec<Arc<str>>, Rc<[usize]>>;

/// The first of all waiting jobs, once found. It outlives the state in which it was found: see
/// [`State::wait_reasons_from`].
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderHead(Option<Option<(Place, JobId)>>);

/// The wait reasons of many jobs of a state.
pub struct WaitReasons<'a> {
    state: &'a State,
    /// The first of all waiting jobs.
    head: OnceCell<Option<(Place, JobId)>>,
    blockers: OnceCell<Vec<Blocker<'a>>>,
    /// By the names of a job's queues, the blockers with which it may share nodes, in planning order.
    of_queues: RefCell<BlockersOfQueues>,
}

/// A job that lacks resources which the planner keeps from the jobs after it.
struct Blocker<'a> {
    place: Place,
    job: JobId,
    queues: Vec<&'a QueueSpec>,
}

impl State {
    /// Why a job waits: its closed gates; if they are open, limits, then the planner's reason, then its place in the
    /// order. `None` if it does not wait. For many jobs [`State::wait_reasons`] is faster.
    pub fn wait_reason(&self, job: &Job) -> Option<WaitReason> {
        self.wait_reasons().of(job)
    }

    /// The wait reasons of many jobs.
    pub fn wait_reasons(&self) -> WaitReasons<'_> {
        self.wait_reasons_from(OrderHead::default())
    }

    /// The same, with the head of the order found a moment ago in this state or one shortly before. If that job no
    /// longer waits, the head is found again.
    pub fn wait_reasons_from(&self, known: OrderHead) -> WaitReasons<'_> {
        let still_waits = |head: &Option<(Place, JobId)>| match head {
            Some((place, id)) => self
                .job(*id)
                .is_some_and(|job| job.is_waiting() && job.gates_open() && self.place_in_order(job) == *place),
            None => false,
        };
        let head = known.0.filter(still_waits).map_or_else(OnceCell::new, OnceCell::from);
        WaitReasons { state: self, head, blockers: OnceCell::new(), of_queues: RefCell::default() }
    }

    fn place_in_order(&self, job: &Job) -> Place {
        let lead = job.lead();
        let queue_priority = self.queue(&lead.queue).map_or(0, |queue| queue.spec.priority);
        (Reverse(queue_priority), Reverse(self.priority_of(job)), job.queued, job.id)
    }

    /// Whether jobs are planned in the order of [`Place`].
    fn is_in_order_of_places(&self) -> bool {
        self.policy().order == Policy::default().order
    }

    fn queue_specs(&self, job: &Job) -> Vec<&QueueSpec> {
        job.queues().filter_map(|name| self.queue(name)).map(|queue| &*queue.spec).collect()
    }
}

impl OrderHead {
    /// Finds the head.
    pub fn of(state: &State) -> Self {
        Self(Some(state.wait_reasons().find_head()))
    }
}

impl<'a> WaitReasons<'a> {
    /// The head of the order, if it was found, for a state shortly after this one.
    pub fn into_head(self) -> OrderHead {
        OrderHead(self.head.into_inner())
    }

    /// Why a job waits; see [`State::wait_reason`].
    pub fn of(&self, job: &Job) -> Option<WaitReason> {
        let state = self.state;
        if !job.is_waiting() {
            return None;
        }
        // The job named in the reason may have started since; then the order decides.
        let is_outdated = |reason: &&WaitReason| match reason {
            WaitReason::BehindJob(other) | WaitReason::WouldDelay(other) => {
                state.job(*other).is_none_or(|other| !other.is_waiting())
            }
            // The planner withdrew its reason.
            WaitReason::NotPlannedYet => true,
            _ => false,
        };
        let planned = || job.planner_reason.as_deref().filter(|reason| !is_outdated(reason)).cloned();
        let promised = || job.slot.as_deref().map(|slot| WaitReason::Reserved { start: slot.start });
        let reason = state.gate_reason(job).or_else(|| state.limit_reason(job));
        let reason = reason.or_else(|| state.filters_reason(job)).or_else(planned).or_else(promised);
        let behind = || self.blocker(job).or_else(|| self.first_ahead(job)).map(WaitReason::BehindJob);
        let judged = || state.judged_ahead(job).map(WaitReason::BehindJob);
        Some(reason.or_else(judged).or_else(behind).unwrap_or(WaitReason::NotPlannedYet))
    }

    /// The first job that lacks resources which the planner keeps from this one. The planner gives a reason to each of
    /// those jobs, but not to the possibly very many after them.
    fn blocker(&self, job: &Job) -> Option<JobId> {
        let blockers = self.blockers();
        if blockers.is_empty() {
            return None;
        }
        let own_place = self.state.place_in_order(job);
        // With another policy order it may be behind any of them.
        let is_other_order = !self.state.is_in_order_of_places();
        let is_behind = |blocker: &&Blocker| blocker.job != job.id && (is_other_order || blocker.place < own_place);
        let sharing = self.sharing(job);
        let on_same_nodes = sharing.iter().map(|at| &blockers[*at]).find(is_behind);
        // The missing resource may be licences, which all nodes share.
        on_same_nodes.or_else(|| blockers.iter().find(is_behind)).map(|blocker| blocker.job)
    }

    /// All blockers, in planning order.
    fn blockers(&self) -> &[Blocker<'a>] {
        self.blockers.get_or_init(|| {
            let state = self.state;
            let blocking = state.index.blocking.iter().filter_map(|id| state.job(*id));
            let mut blockers: Vec<Blocker> = blocking
                .map(|job| Blocker { place: state.place_in_order(job), job: job.id, queues: state.queue_specs(job) })
                .collect();
            blockers.sort_unstable_by_key(|blocker| blocker.place);
            blockers
        })
    }

    /// The blockers with which a job may share nodes.
    fn sharing(&self, job: &Job) -> Rc<[usize]> {
        let names: Vec<Arc<str>> = job.queues().cloned().collect();
        if let Some(known) = self.of_queues.borrow().get(&names) {
            return known.clone();
        }
        let own = self.state.queue_specs(job);
        let shares =
            |blocker: &Blocker| blocker.queues.iter().any(|other| own.iter().any(|own| own.shares_nodes(other)));
        let found: Rc<[usize]> =
            self.blockers().iter().enumerate().filter(|(_, blocker)| shares(blocker)).map(|(at, _)| at).collect();
        self.of_queues.borrow_mut().insert(names, found.clone());
        found
    }

    /// The first of all waiting jobs, if it precedes this one in the default planning order.
    fn first_ahead(&self, job: &Job) -> Option<JobId> {
        if !self.state.is_in_order_of_places() {
            return None;
        }
        let (first, id) = (*self.head.get_or_init(|| self.find_head()))?;
        (first < self.state.place_in_order(job)).then_some(id)
    }

    fn find_head(&self) -> Option<(Place, JobId)> {
        let waiting = self.state.index.queued.iter().filter_map(|(_, id)| self.state.job(*id));
        waiting.map(|job| (self.state.place_in_order(job), job.id)).min()
    }
}
