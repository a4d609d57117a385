//! The situation of a job at its turn: the runs, and the starts and promises of the jobs in front of it.

use super::{Cycle, limit::PassLimit, trace::Refusal};
use crate::{
    engine::Engine,
    machine::{Holding, Window, expected_end},
    model::Demand,
    pass::Plan,
};
use muster_schemas::{JobId, Timestamp, job::WaitReason, resources::Placement};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The promise of a waiting job, for one plan or for good.
#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub job: JobId,
    pub start: Timestamp,
    pub demand: Arc<Demand>,
    pub placement: Arc<Placement>,
}

/// The resources that are left for a job at its turn.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// The starts and promises of the jobs in front are still taken.
    engine: Engine,
    now: Timestamp,
    started: BTreeSet<JobId>,
    /// Promises of this plan only.
    promises: Vec<Promise>,
    blocked: BTreeMap<Arc<str>, JobId>,
}

impl Engine {
    /// The waiting jobs, in the order of the last pass.
    pub(crate) fn order(&self) -> impl Iterator<Item = JobId> + '_ {
        let blocks = self.queue.blocks();
        let places = blocks.into_iter().flat_map(|block| self.queue.sorted(block));
        places.filter_map(|place| Some(self.queue.get(*place)?.id))
    }

    /// The waiting jobs in the order in which a pass of this engine, which has not begun, looks at them, if the last pass
    /// left them in `sorted` order. Under turns, jobs that have none come last.
    pub(crate) fn order_of_looks(&self, now: Timestamp, sorted: Vec<JobId>) -> Vec<JobId> {
        if self.policy.turns.is_none() || self.scheduling.mode.is_some() {
            return sorted;
        }
        let (_, looks) = self.clone().pass_traced(now);
        let (turns, others): (Vec<_>, Vec<_>) =
            looks.iter().partition(|look| look.refusal.as_ref().is_none_or(Refusal::had_turn));
        let looked_at = turns.into_iter().chain(others).map(|look| look.job);
        let waiting = |job: JobId| if self.queue.place_of(job).is_some() { job } else { job.whole() };
        let mut seen = BTreeSet::new();
        looked_at.map(waiting).chain(sorted).filter(|job| seen.insert(*job)).collect()
    }

    /// A pass that reports everything it knows, and the promises for this pass only.
    pub(crate) fn pass_with_promises(&mut self, now: Timestamp) -> (Plan, Vec<Promise>) {
        let nobody = BTreeSet::new();
        self.queue.forget_known_reasons();
        let mut cycle = self.cycle(now, &nobody, PassLimit::Endless, None);
        self.resize_behind(&mut cycle);
        let promises = promises_of(&cycle);
        (self.finish(cycle), promises)
    }

    /// The situation of the job at its turn, if it waits: the jobs in `behind` come after it.
    pub(crate) fn turn_of(&self, job: JobId, behind: impl Iterator<Item = JobId>, now: Timestamp) -> Turn {
        let mut engine = self.clone();
        engine.set_slot(job, None);
        let left_out: BTreeSet<JobId> = behind.chain([job]).collect();
        let mut cycle = engine.cycle(now, &left_out, PassLimit::Endless, None);
        let started = cycle.plan.starts.iter().map(|start| start.job.whole()).collect();
        let promises = promises_of(&cycle);
        let blocked = std::mem::take(&mut cycle.blocked);
        Turn { engine, now, started, promises, blocked }
    }

    /// The machine as if nobody waited: only runs hold anything.
    pub(crate) fn without_promises(&self, now: Timestamp) -> Self {
        let mut engine = self.clone();
        engine.extend_overdue(now);
        let promised: Vec<JobId> =
            engine.queue.entries().filter(|entry| entry.slot.is_some()).map(|entry| entry.id).collect();
        for job in promised {
            engine.set_slot(job, None);
        }
        engine
    }
}

/// The promises for this cycle only. The cycle reports each to its job, in the order in which it takes them.
fn promises_of(cycle: &Cycle) -> Vec<Promise> {
    // Holdings of components in a pass of backfill do not count.
    let of_components: BTreeSet<JobId> =
        cycle.plan.backfill_pass.iter().flat_map(|pass| &pass.jobs).map(|planned| planned.job).collect();
    let told = cycle.plan.reasons.iter().filter_map(|waiting| match waiting.reason {
        WaitReason::Reserved { start } if !of_components.contains(&waiting.job) => Some((waiting.job, start)),
        _ => None,
    });
    let taken = cycle.taken.iter().filter(|(.., holding)| matches!(holding, Holding::Promise { .. }));
    let promises = told.zip(taken).map(|((job, start), (demand, placement, _))| Promise {
        job,
        start,
        demand: demand.clone(),
        placement: placement.clone(),
    });
    promises.collect()
}

impl Turn {
    /// Whether a demand fits now in addition to all holdings and promises.
    pub fn fits(&self, demand: &Demand) -> bool {
        self.engine.fitting(demand, self.now).is_some()
    }

    /// The job in front that lets nobody have the nodes of this demand's queues.
    pub fn blocker(&self, demand: &Demand) -> Option<JobId> {
        crate::limits::queues(demand).find_map(|queue| self.blocked.get(queue)).copied()
    }

    /// The job in front whose promise could not be kept if this demand, which fits but for promises, started now.
    pub fn delayed_by(&self, demand: &Demand) -> Option<JobId> {
        let promises = self.all_promises();
        let mut engine = self.engine.clone();
        for promise in &promises {
            engine.machine.lend(&promise.demand, &promise.placement, Holding::Promise { start: promise.start });
        }
        let placement = engine.fitting(demand, self.now)?;
        let until = expected_end(demand, &placement, self.now);
        let mut engine = self.engine.clone();
        engine.machine.take(demand, &placement, Holding::Run { until });
        let is_delayed = |promise: &&Promise| {
            let until = expected_end(&promise.demand, &promise.placement, promise.start);
            let window = Window { from: promise.start, until };
            engine.machine.overbooks(&promise.demand, &promise.placement, window)
        };
        promises.iter().find(is_delayed).map(|promise| promise.job)
    }

    /// Promises of this plan and earlier ones, by start.
    fn all_promises(&self) -> Vec<Promise> {
        let kept = self.engine.queue.entries().filter(|entry| !self.started.contains(&entry.id));
        let kept = kept.filter_map(|entry| {
            let slot = entry.slot.as_ref()?;
            Some(Promise {
                job: entry.id,
                start: slot.start,
                demand: self.engine.classes.get(entry.class).demand.clone(),
                placement: slot.placement.clone(),
            })
        });
        let mut promises: Vec<Promise> = kept.chain(self.promises.iter().cloned()).collect();
        promises.sort_by_key(|promise| (promise.start, promise.job));
        promises
    }

    /// The moment.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The engine with all of that taken.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }
}
