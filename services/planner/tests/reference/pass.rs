//! One plan, computed from nothing.

use super::{
    Found, Holdings, Node, Usage, Window, World,
    limits::Counted,
    order::{Block, blocks, walltime_seconds},
};
use muster_planner::model::{ComponentDemand, Demand, QueuedJob, Slot};
use muster_schemas::{
    JobId, Timestamp,
    policy::{Backfill, BackfillMode, CandidateOrder, Policy},
    resources::Placement,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The decisions of a plan.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub starts: Vec<(JobId, Placement)>,
    /// Promises from now on.
    pub slots: BTreeMap<JobId, Slot>,
    /// Promises for this plan only.
    pub reservations: BTreeMap<JobId, Slot>,
    pub waiting: BTreeMap<JobId, Why>,
}

/// Why a job waits, if only one reason is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    NeverFits,
    NodesUnavailable,
    /// A limit of a queue or of the policy.
    Limit,
    /// Its array runs its maximum of tasks.
    ArrayLimit,
    /// A job ahead of it waits, and it may not overtake that job.
    Behind(JobId),
    /// It has a promise for that time.
    Reserved(Timestamp),
    /// Resources of runs, or of jobs with a promise.
    Resources,
}

/// Plans all jobs of the world.
pub fn pass(world: &World, policy: &Policy, now: Timestamp) -> Outcome {
    let mut pass = Pass {
        world,
        policy,
        now,
        held: world.held_by_runs(now),
        usage: Usage::of(world),
        blocked: BTreeMap::new(),
        is_cut_short: false,
        failed: Vec::new(),
        outcome: Outcome::default(),
    };
    let blocks = blocks(world, policy, now);
    pass.recall(&blocks);
    for block in &blocks {
        match block.backfill.mode {
            BackfillMode::None => pass.without_backfill(&block.jobs),
            BackfillMode::Easy => pass.easy(&block.jobs, &block.backfill),
            BackfillMode::Conservative => pass.conservative(&block.jobs, &block.backfill),
        }
    }
    pass.outcome
}

struct Pass<'w> {
    world: &'w World,
    policy: &'w Policy,
    now: Timestamp,
    held: Holdings<'w>,
    usage: Usage,
    /// Queues whose jobs may not start, with the job that blocks them.
    blocked: BTreeMap<String, JobId>,
    is_cut_short: bool,
    failed: Vec<Arc<Demand>>,
    outcome: Outcome,
}

impl<'w> Pass<'w> {
    /// Jobs one by one; once one does not fit, later jobs get no nodes of its queues.
    fn without_backfill(&mut self, jobs: &[&'w QueuedJob]) {
        for job in jobs {
            match self.start_all(job) {
                Attempt::NoRoom => {
                    self.wait(job, Why::Resources);
                    self.block(job);
                }
                Attempt::Behind => self.pass_block_on(job),
                _ => {}
            }
        }
    }

    /// The first jobs that do not fit get reservations; the others start if they delay none of them.
    fn easy(&mut self, jobs: &[&'w QueuedJob], backfill: &Backfill) {
        let mut depth = backfill.reservations.unwrap_or(1);
        let mut jobs = jobs.iter().copied();
        let mut candidates = Vec::new();
        while depth > 0
            && let Some(job) = jobs.next()
        {
            match self.start_all(job) {
                Attempt::NoRoom => depth -= u32::from(self.reserve(job)),
                Attempt::Behind => self.pass_block_on(job),
                _ => {}
            }
        }
        candidates.extend(jobs);
        if backfill.candidates == CandidateOrder::Sjbf {
            candidates.sort_by_key(|job| walltime_seconds(job).unwrap_or(u64::MAX));
        }
        let mut tries = backfill.look_ahead.unwrap_or(u32::MAX);
        for job in candidates {
            if tries == 0 || backfill.require_walltime && !has_walltime(&job.demand) {
                self.wait(job, Why::Resources);
                continue;
            }
            match self.start_all(job) {
                Attempt::Held | Attempt::Behind => {}
                Attempt::Started | Attempt::Hopeless => tries -= 1,
                Attempt::NoRoom => {
                    tries -= 1;
                    self.wait(job, Why::Resources);
                }
            }
        }
    }

    /// Every waiting job has a promise, kept until it starts.
    fn conservative(&mut self, jobs: &[&'w QueuedJob], backfill: &Backfill) {
        jobs.iter().for_each(|job| self.drop_if_shut_out(job));
        if self.world.capacity_freed {
            jobs.iter().for_each(|job| self.renew(job));
        }
        let mut depth = backfill.reservations.unwrap_or(u32::MAX);
        for job in jobs {
            if depth == 0 {
                break;
            }
            depth -= u32::from(self.outcome.slots.contains_key(&job.id) || self.promise(job));
        }
        jobs.iter().for_each(|job| self.redeem(job));
        jobs.iter().for_each(|job| self.start_further_tasks(job));
    }
}

impl<'w> Pass<'w> {
    /// Starts a job, or as many tasks of an array as the limits allow and fit, unless it may not overtake a
    /// job ahead of it.
    fn start_all(&mut self, job: &'w QueuedJob) -> Attempt {
        if let Some(why) = self.behind(job) {
            self.wait(job, why);
            return Attempt::Behind;
        }
        let Some(tasks) = &job.tasks else { return self.start_one(job, job.id) };
        for (started, index) in (0..).zip(tasks.indices.iter()) {
            if started >= tasks.headroom {
                self.wait(job, Why::ArrayLimit);
                return Attempt::Held;
            }
            match self.start_one(job, JobId::task(job.id.number, index)) {
                Attempt::Started => {}
                other => return other,
            }
        }
        Attempt::Started
    }

    fn start_one(&mut self, job: &'w QueuedJob, id: JobId) -> Attempt {
        self.is_cut_short |= self.outcome.starts.len() >= self.policy.max_starts as usize;
        if self.is_cut_short {
            return Attempt::Held;
        }
        if self.is_held_back(job) {
            self.wait(job, Why::Limit);
            return Attempt::Held;
        }
        // A demand that did not fit is not tried again in the same plan.
        let found = if self.failed.contains(&job.demand) { None } else { self.held.place_now(id, &self.served(job)) };
        let Some(placement) = found else {
            if !has_choice(&job.demand) {
                self.failed.push(job.demand.clone());
            }
            let Some(why) = hopeless(self.world, self.now, &job.demand) else { return Attempt::NoRoom };
            self.wait(job, why);
            return Attempt::Hopeless;
        };
        if self.is_limited_to_less(job, &placement) {
            self.wait(job, Why::Limit);
            return Attempt::Held;
        }
        self.start(job, id, placement);
        Attempt::Started
    }

    fn start(&mut self, job: &QueuedJob, id: JobId, placement: Placement) {
        self.held.hold(id, &job.demand, &placement, self.now, true);
        self.usage.all.push(Counted::new(&job.holder, &job.demand, &placement));
        self.outcome.starts.push((id, placement));
    }

    /// Whether a limit excludes even the minimum of the job.
    fn is_held_back(&self, job: &QueuedJob) -> bool {
        let is_full = self.usage.is_full(self.world, self.policy, &Counted::least(&job.holder, &job.demand));
        is_full || (0..job.demand.components.len()).any(|number| self.has_no_way(job, number))
    }

    /// Whether limits exclude all alternatives of a component.
    fn has_no_way(&self, job: &QueuedJob, number: usize) -> bool {
        let component = &job.demand.components[number];
        let can_serve = |way: &usize| {
            let alternatives = [component.alternatives[*way].clone()].into();
            let only = ComponentDemand { alternatives, ..component.clone() };
            hopeless(
                self.world,
                self.now,
                &Demand { components: vec![only], sharing: None, fixed: None, guard_seconds: 0 },
            )
            .is_none()
        };
        let ways: Vec<usize> = (0..component.alternatives.len()).filter(can_serve).collect();
        has_choice(&job.demand) && !ways.is_empty() && ways.iter().all(|way| self.is_shut(job, number, *way))
    }

    /// Whether a limit excludes an alternative of a component.
    fn is_shut(&self, job: &QueuedJob, number: usize, way: usize) -> bool {
        let more = Counted::in_way(&job.holder, &job.demand, number, way);
        self.usage.is_full(self.world, self.policy, &more)
    }

    /// The demand of a job, without service for the alternatives that limits exclude.
    fn served(&self, job: &QueuedJob) -> Demand {
        let mut demand = Demand::clone(&job.demand);
        if !has_choice(&demand) {
            return demand;
        }
        for (number, component) in demand.components.iter_mut().enumerate() {
            let mut ways = component.alternatives.to_vec();
            for (at, way) in ways.iter_mut().enumerate() {
                if self.is_shut(job, number, at) {
                    way.licences.insert("a licence that there is not".into(), 1);
                }
            }
            component.alternatives = ways.into();
        }
        demand
    }

    /// Whether a limit excludes this placement.
    fn is_limited_to_less(&self, job: &QueuedJob, placement: &Placement) -> bool {
        self.usage.is_full(self.world, self.policy, &Counted::new(&job.holder, &job.demand, placement))
    }

    /// The job that it may not overtake, if there is one.
    fn behind(&self, job: &QueuedJob) -> Option<Why> {
        let mut queues = job.demand.components.iter().map(|component| &*component.queue);
        queues.find_map(|queue| self.blocked.get(queue)).map(|blocker| Why::Behind(*blocker))
    }

    /// From here on no job may have nodes that this one could wait for.
    fn block(&mut self, job: &QueuedJob) {
        let own: BTreeSet<&str> = job.demand.components.iter().map(|component| &*component.queue).collect();
        let own: Vec<_> = self.world.queues.values().filter(|queue| own.contains(queue.name.as_str())).collect();
        for queue in self.world.queues.values() {
            if own.iter().any(|own| own.shares_nodes(queue)) {
                self.blocked.entry(queue.name.clone()).or_insert(job.id);
            }
        }
    }

    /// A job that is behind in one of its queues waits at its place in the others.
    fn pass_block_on(&mut self, job: &QueuedJob) {
        let mut queues = job.demand.components.iter().map(|component| &*component.queue);
        if queues.any(|queue| !self.blocked.contains_key(queue)) {
            self.block(job);
        }
    }

    /// Reserves the job's earliest start, unless a limit excludes that placement.
    fn reserve(&mut self, job: &QueuedJob) -> bool {
        match self.held.earliest(job.id, &self.served(job)) {
            Some(found) if self.is_limited_to_less(job, &found.placement) => {
                self.wait(job, Why::Limit);
                return false;
            }
            Some(Found { start, placement }) => {
                self.held.hold(job.id, &job.demand, &placement, start, false);
                self.outcome.reservations.insert(job.id, Slot { start, placement: Arc::new(placement) });
                self.wait(job, Why::Reserved(start));
            }
            None => {
                self.wait(job, Why::Resources);
                return self.block_unless_reserved(job);
            }
        }
        true
    }

    /// Closes the nodes of a job without a known start to others, unless only its reservation is too short.
    fn block_unless_reserved(&mut self, job: &QueuedJob) -> bool {
        let is_reserved = job.demand.components.iter().any(|component| component.reservation.is_some());
        if !is_reserved {
            self.block(job);
        }
        !is_reserved
    }

    /// Earlier promises that can still be kept, if the policy keeps promises. If two conflict, the
    /// earlier job's is kept.
    fn recall(&mut self, blocks: &[Block<'w>]) {
        for job in self.world.jobs.values() {
            if let Some(slot) = &job.slot {
                self.held.hold(job.id, &job.demand, &slot.placement, slot.start, false);
                self.outcome.slots.insert(job.id, slot.clone());
            }
        }
        for block in blocks {
            let is_kept = block.backfill.mode == BackfillMode::Conservative;
            for job in block.jobs.iter().rev() {
                let broken = self.outcome.slots.get(&job.id).is_some_and(|slot| !is_kept || !self.can_keep(job, slot));
                if broken {
                    self.take_back(job);
                }
            }
        }
    }

    /// Whether the resources of a promise are still free. A promise that is due may have to wait for a run.
    fn can_keep(&self, job: &QueuedJob, slot: &Slot) -> bool {
        let is_open = self.held.are_open(job.id, &job.demand);
        is_open && (slot.start <= self.now || self.held.is_alone_with_own(job.id))
    }

    fn take_back(&mut self, job: &QueuedJob) {
        self.held.remove(job.id);
        self.outcome.slots.remove(&job.id);
    }

    fn give(&mut self, job: &QueuedJob, slot: Slot) {
        self.held.hold(job.id, &job.demand, &slot.placement, slot.start, false);
        self.outcome.slots.insert(job.id, slot);
    }

    /// Withdraws an overdue promise if its nodes no longer serve the job.
    fn drop_if_shut_out(&mut self, job: &QueuedJob) {
        let Some(slot) = self.outcome.slots.get(&job.id).filter(|slot| slot.start < self.now) else { return };
        let mut from_now = Holdings::new(self.world, self.now);
        from_now.hold(job.id, &job.demand, &slot.placement, self.now, false);
        if !from_now.are_open(job.id, &job.demand) {
            self.take_back(job);
        }
    }

    /// Replaces a promise by the earliest start now, if that is earlier.
    fn renew(&mut self, job: &QueuedJob) {
        let Some(old) = self.outcome.slots.get(&job.id).filter(|slot| slot.start > self.now).cloned() else { return };
        self.take_back(job);
        let found = self.held.earliest_before(job.id, &self.served(job), old.start).map(slot_of);
        let better = found.filter(|found| is_better(&job.demand, found, &old));
        self.give(job, better.unwrap_or(old));
    }

    /// Promises a job its earliest start; returns whether it has one.
    fn promise(&mut self, job: &QueuedJob) -> bool {
        if let Some(why) = self.behind(job) {
            self.wait(job, why);
            return false;
        }
        if self.is_held_back(job) {
            self.wait(job, Why::Limit);
            return false;
        }
        if job.tasks.as_ref().is_some_and(|tasks| tasks.headroom == 0) {
            self.wait(job, Why::ArrayLimit);
            return false;
        }
        match self.held.earliest(job.id, &self.served(job)) {
            Some(found) if self.is_limited_to_less(job, &found.placement) => {
                self.wait(job, Why::Limit);
                false
            }
            Some(found) => {
                self.wait(job, Why::Reserved(found.start));
                self.give(job, slot_of(found));
                true
            }
            None => {
                let hopeless = hopeless(self.world, self.now, &job.demand);
                self.wait(job, hopeless.unwrap_or(Why::Resources));
                if hopeless.is_none() {
                    self.block_unless_reserved(job);
                }
                false
            }
        }
    }

    /// Starts a job, or the next task of an array, on its promised resources when its time has come.
    fn redeem(&mut self, job: &'w QueuedJob) {
        let Some(slot) = self.outcome.slots.get(&job.id).filter(|slot| slot.start <= self.now).cloned() else { return };
        self.is_cut_short |= self.outcome.starts.len() >= self.policy.max_starts as usize;
        if self.is_cut_short {
            return;
        }
        let id = match &job.tasks {
            None => job.id,
            Some(tasks) => JobId::task(job.id.number, tasks.indices.first().expect("tasks wait")),
        };
        let has_headroom = job.tasks.as_ref().is_none_or(|tasks| tasks.headroom > 0);
        if !has_headroom || self.is_limited_to_less(job, &slot.placement) {
            // A job that a limit holds when its time comes does not keep others from resources that it cannot use.
            self.take_back(job);
            return self.wait(job, if has_headroom { Why::Limit } else { Why::ArrayLimit });
        }
        self.take_back(job);
        match self.held.made_of_what_is_free(&slot.placement) {
            Some(placement) => self.start(job, id, placement),
            None => self.give(job, slot),
        }
    }

    /// Only the next task of an array has a promise. Others start if they delay nobody.
    fn start_further_tasks(&mut self, job: &'w QueuedJob) {
        let Some(tasks) = &job.tasks else { return };
        for index in tasks.indices.iter().skip(1) {
            let started = self.outcome.starts.iter().filter(|(id, _)| id.whole() == job.id).count();
            let may_start = started < tasks.headroom as usize && self.behind(job).is_none();
            if !may_start || !matches!(self.start_one(job, JobId::task(job.id.number, index)), Attempt::Started) {
                return;
            }
        }
    }

    fn wait(&mut self, job: &QueuedJob, why: Why) {
        self.outcome.waiting.insert(job.id, why);
    }
}

/// Whether a component has several alternatives.
fn has_choice(demand: &Demand) -> bool {
    demand.components.iter().any(|component| component.alternatives.len() > 1)
}

fn slot_of(found: Found) -> Slot {
    Slot { start: found.start, placement: Arc::new(found.placement) }
}

/// Whether an earlier slot is better than another. Among alternatives the one that ends first is wanted.
fn is_better(demand: &Demand, found: &Slot, old: &Slot) -> bool {
    let end = |slot: &Slot| {
        let components = demand.components.iter().zip(&slot.placement.components);
        let ends = components.map(|(component, placed)| {
            Window::of(slot.start, component.alternatives[placed.alternative as usize].walltime_seconds).end
        });
        ends.max()
    };
    let is_choice = demand.components.len() == 1 && demand.components[0].alternatives.len() > 1;
    !is_choice || end(found) <= end(old)
}

/// Why waiting does not help, if it does not: the nodes are too few or too small, or not available.
pub fn hopeless(world: &World, now: Timestamp, demand: &Demand) -> Option<Why> {
    let fits = |is_available: fn(&Node) -> bool| {
        let mut empty = World {
            nodes: world.nodes.clone(),
            licences: world.licences.clone(),
            queues: world.queues.clone(),
            default_memory_per_core_bytes: world.default_memory_per_core_bytes,
            shares_nodes: world.shares_nodes,
            ..World::default()
        };
        for node in empty.nodes.values_mut() {
            node.closures.clear();
            node.is_available = is_available(node);
        }
        let mut anywhere = demand.clone();
        anywhere.components.iter_mut().for_each(|component| component.reservation = None);
        Holdings::new(&empty, now).place_now(JobId::job(0), &anywhere).is_some()
    };
    if !fits(|_| true) {
        Some(Why::NeverFits)
    } else if !fits(|node| node.is_available) {
        Some(Why::NodesUnavailable)
    } else {
        None
    }
}

/// The jobs in the order in which they are looked at.
pub fn order_of(world: &World, policy: &Policy, now: Timestamp) -> Vec<JobId> {
    blocks(world, policy, now).iter().flat_map(|block| &block.jobs).map(|job| job.id).collect()
}

/// The result of an attempt to start a job.
enum Attempt {
    /// It started; for an array, as many tasks as the limits allow and fit.
    Started,
    /// Something other than resources holds it back, and it has been told.
    Held,
    /// A job ahead of it waits, and it has been told.
    Behind,
    /// Waiting does not help, and it has been told.
    Hopeless,
    /// There is no room for it.
    NoRoom,
}

fn has_walltime(demand: &Demand) -> bool {
    let mut alternatives = demand.components.iter().flat_map(|component| component.alternatives.iter());
    alternatives.all(|alternative| alternative.walltime_seconds.is_some())
}
