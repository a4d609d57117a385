//! When waiting jobs are expected to start: a simulation forward in time by the policy in force, in which every run
//! lasts until its expected end and nothing else arrives.

mod followers;

use crate::{
    engine::Engine,
    machine::expected_end,
    model::{ActiveRun, Follower},
    queue::Place,
};
use followers::Followers;
use muster_schemas::{JobId, Timestamp, command::Start, plan::PredictedStart, resources::Placement};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The extent of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Maximum number of cycles, each at a moment at which runs end or promises begin.
    pub max_cycles: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { max_cycles: 10_000 }
    }
}

impl Effort {
    /// A number of cycles that takes about this many looks at jobs, if `waiting` jobs wait and each cycle looks at all
    /// of them: at least one, and at most the default.
    pub fn of_looks(looks: u32, waiting: usize) -> Self {
        let waiting = u32::try_from(waiting).unwrap_or(u32::MAX).max(1);
        Self { max_cycles: (looks / waiting).clamp(1, Self::default().max_cycles) }
    }
}

/// How much a prediction must differ from the known one to be news: by both of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// In seconds.
    pub seconds: u64,
    /// In percent of the rest of the wait.
    pub percent: u32,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { seconds: 60, percent: 10 }
    }
}

impl Tolerance {
    /// Whether a prediction made at a time is news.
    pub fn is_news(&self, known: Option<Timestamp>, predicted: Option<Timestamp>, at: Timestamp) -> bool {
        let (Some(known), Some(predicted)) = (known, predicted) else { return known != predicted };
        let moved = predicted.micros_since(known).unsigned_abs();
        let left = u64::try_from(predicted.micros_since(at)).unwrap_or(0);
        let percent = u128::from(left) * u128::from(self.percent) / 100;
        moved > self.seconds.saturating_mul(1_000_000) && u128::from(moved) > percent
    }
}

/// When each waiting job is expected to start, by id; for an array, its next task.
///
/// A promised start is the prediction. Jobs that the simulation ends without are not foreseeable: a limit holds them
/// for ever, they fit nowhere, or a run without walltime is in their way. If it reaches its limit, nothing is said
/// about the jobs that it has not reached. The same engine, followers and time give the same predictions.
///
/// Followers enter the queue when what they wait for has happened, as if every job succeeded (OAR-D-06): nothing is kept
/// for them before.
pub fn predict(engine: &Engine, followers: Vec<Follower>, now: Timestamp, effort: Effort) -> Vec<PredictedStart> {
    // A run of the simulation stays in the queue in which its job waits, and routes count room where it starts.
    if engine.has_routes() {
        return Vec::new();
    }
    let mut forward = Forward::of(engine, now).followed_by(followers);
    let waiting = engine.queue.entries().map(|entry| entry.id);
    let waiting: BTreeSet<JobId> = waiting.chain(forward.followers.ids()).collect();
    for entry in engine.queue.entries() {
        if let Some(slot) = &entry.slot {
            forward.starts.insert(entry.id, slot.start.max(now));
        }
    }
    let mut is_complete = false;
    for _ in 0..effort.max_cycles {
        if forward.starts.len() == waiting.len() || !forward.cycle() {
            is_complete = true;
            break;
        }
    }
    let predicted = waiting.into_iter().map(|job| PredictedStart { job, start: forward.starts.get(&job).copied() });
    predicted.filter(|predicted| is_complete || predicted.start.is_some()).collect()
}

/// The simulation.
pub(crate) struct Forward {
    pub(crate) engine: Engine,
    now: Timestamp,
    /// The jobs that wait for others.
    followers: Followers,
    /// The tasks that run of each array that others wait for.
    running_tasks: BTreeMap<JobId, BTreeSet<JobId>>,
    /// The first start of each job or array.
    starts: BTreeMap<JobId, Timestamp>,
    /// The job whose start is watched.
    watch: Option<JobId>,
    /// When and where the watched job has started.
    pub(crate) watched: Option<(Timestamp, Placement)>,
    /// The simulation does not go beyond this moment.
    last: Timestamp,
}

impl Forward {
    /// A simulation that begins with the engine's present state.
    pub(crate) fn of(engine: &Engine, now: Timestamp) -> Self {
        let mut engine = engine.clone().without_reasons().assuming_passes().between_passes();
        engine.open_all_domains();
        // They are as good as gone.
        let leaving: Vec<JobId> = engine.yielding.values().filter(|run| run.is_leaving).map(|run| run.job).collect();
        for job in leaving {
            engine.end(job);
            engine.set_yielding(job, None);
        }
        let (starts, followers) = (BTreeMap::new(), Followers::default());
        let running_tasks = BTreeMap::new();
        Self { engine, now, followers, running_tasks, starts, watch: None, watched: None, last: Timestamp::MAX }
    }

    /// The same with jobs that wait for others.
    fn followed_by(mut self, followers: Vec<Follower>) -> Self {
        self.followers = Followers::of(followers);
        let running: Vec<JobId> = self.engine.ends().map(|(_, job)| job).collect();
        running.into_iter().for_each(|job| self.note_start_of_task(job));
        self
    }

    /// Watches the start of this job from here on.
    pub(crate) fn watch(&mut self, job: JobId) {
        self.watch = Some(job);
    }

    /// Continues up to a time, by no more cycles than are left.
    pub(crate) fn go_to(&mut self, time: Timestamp, cycles_left: &mut u32) {
        self.last = time;
        while self.now < time && *cycles_left > 0 {
            *cycles_left -= 1;
            if !self.cycle() {
                break;
            }
        }
        self.last = Timestamp::MAX;
        self.now = self.now.max(time);
    }

    /// Plans, starts what the plan starts, and moves to the next moment; returns whether there is one.
    pub(crate) fn cycle(&mut self) -> bool {
        self.followers.enter(&mut self.engine, self.now);
        let plan = self.engine.pass(self.now, &BTreeSet::new());
        if !plan.slots.is_empty() {
            self.engine.set_capacity_freed(false);
        }
        let is_cut_short = plan.is_cut_short && !plan.starts.is_empty();
        // Jobs inside start with it (OAR-T-14).
        let opens_domain = plan.starts.iter().any(|start| self.engine.opens_domain(start.job));
        for start in plan.starts {
            self.start(start);
        }
        let make_way: Vec<JobId> = plan.preemptions.into_iter().flat_map(|preemption| preemption.victims).collect();
        if !make_way.is_empty() {
            make_way.into_iter().for_each(|victim| self.end(victim));
            return true;
        }
        let entry = self.followers.next_entry();
        if is_cut_short || opens_domain || entry.is_some_and(|at| at <= self.now) {
            return true;
        }
        let end = self.engine.ends().next().map(|(end, _)| end).filter(|end| *end < Timestamp::MAX);
        let moments = end.into_iter().chain(plan.next_wake).chain(entry);
        let Some(next) = moments.filter(|at| *at > self.now).min() else { return false };
        if next > self.last {
            return false;
        }
        self.now = next;
        let over: Vec<JobId> = self.engine.ends().take_while(|(end, _)| *end <= next).map(|(_, job)| job).collect();
        for job in over {
            self.end(job);
        }
        true
    }

    fn start(&mut self, Start { job, placement }: Start) {
        let Some(place) = self.engine.queue.place_of(job).or_else(|| self.engine.queue.place_of(job.whole())) else {
            return;
        };
        let Some(entry) = self.engine.queue.get(place) else { return };
        let (waiting, holder, attributes) = (entry.id, entry.holder.clone(), entry.attributes.clone());
        let demand = self.engine.classes.get(entry.class).demand.clone();
        self.starts.entry(waiting).or_insert(self.now);
        self.followers.note_start(job, self.now);
        self.note_start_of_task(job);
        if self.watch == Some(waiting) && self.watched.is_none() {
            self.watched = Some((self.now, placement.clone()));
        }
        self.leave(waiting, place, job);
        let expected_end = expected_end(&demand, &placement, self.now);
        let placement = Arc::new(placement);
        self.engine.begin(ActiveRun { job, demand, holder, placement, expected_end, attributes });
    }

    /// A job, or a task of an array, no longer waits.
    fn leave(&mut self, waiting: JobId, place: Place, job: JobId) {
        self.engine.set_slot(waiting, None);
        let tasks = self.engine.queue.get_mut(place).and_then(|entry| entry.tasks.as_mut());
        let tasks_wait = tasks.zip(job.index).is_some_and(|(tasks, index)| {
            tasks.indices.remove(index);
            if tasks.headroom < u32::MAX {
                tasks.headroom = tasks.headroom.saturating_sub(1);
            }
            !tasks.indices.is_empty()
        });
        if !tasks_wait {
            self.engine.dequeue(waiting);
        }
    }

    fn end(&mut self, job: JobId) {
        self.engine.end(job);
        self.engine.set_yielding(job, None);
        self.engine.set_capacity_freed(true);
        let array = job.index.and_then(|_| self.engine.queue.place_of(job.whole()));
        let tasks = array.and_then(|place| self.engine.queue.get_mut(place)?.tasks.as_mut());
        if let Some(tasks) = tasks.filter(|tasks| tasks.headroom < u32::MAX) {
            tasks.headroom += 1;
        }
        self.followers.note_end(job, self.now);
        self.note_end_of_task(job, array.is_some());
    }

    /// A task runs. Only those of arrays that others wait for are noted.
    fn note_start_of_task(&mut self, task: JobId) {
        let whole = task.whole();
        if task != whole && self.followers.await_any(whole) {
            self.running_tasks.entry(whole).or_default().insert(task);
        }
    }

    /// An array has ended once none of its tasks waits or runs.
    fn note_end_of_task(&mut self, task: JobId, others_wait: bool) {
        let whole = task.whole();
        let Some(running) = self.running_tasks.get_mut(&whole) else { return };
        running.remove(&task);
        if running.is_empty() && !others_wait {
            self.followers.note_end(whole, self.now);
        }
    }
}
