//! Running jobs grow if they have work for it, and shrink if they have not.

use super::{Cycle, modes::Turns};
use crate::{
    engine::Engine,
    limits::{Usage, queues},
    model::{ActiveRun, ElasticRun},
    resize,
};
use muster_schemas::{
    JobId,
    event::ShrinkReason,
    plan::{ProposedGrowth, ProposedShrink},
    scheduling::{Preemption, SchedulingMode},
};

impl Engine {
    /// Runs that can use more or fewer resources, in the order of the queue (HPC-J-05).
    pub(super) fn elastic_in_order(&self) -> Vec<ElasticRun> {
        let mut runs: Vec<ElasticRun> = self.elastic.values().cloned().collect();
        runs.sort_by_key(|run| (std::cmp::Reverse(run.priority), run.arrival, run.job));
        runs
    }

    /// Runs give up what none of their tasks will use, down to their least (HPC-S-10).
    pub(super) fn give_up_idle(&mut self, cycle: &mut Cycle) {
        if !self.scheduling.shrinks() {
            return;
        }
        for run in self.elastic.values() {
            if run.size.idle > 0 && run.size.wanted == 0 && run.may_grow && run.shrinking.is_none() {
                self.propose_shrink(cycle, run, run.size.idle, ShrinkReason::Idle);
            }
        }
    }

    /// Asks a run to give up a number of units, which takes time.
    pub(super) fn propose_shrink(&self, cycle: &mut Cycle, elastic: &ElasticRun, units: u32, reason: ShrinkReason) {
        let Some(run) = self.run(elastic.job) else { return };
        let removed = resize::cut(&self.machine, &run.placement, elastic.size.unit, units, &elastic.busy);
        if removed.shares().next().is_some() {
            cycle.plan.shrinks.push(ProposedShrink { job: elastic.job, removed, reason });
        }
    }

    /// Runs grow in the order of the queue (HPC-S-03). Those that a waiting job may take resources from come later,
    /// once it is known whether that job waits for room. Returns them.
    pub(super) fn grow_in_order(&mut self, cycle: &mut Cycle) -> Vec<JobId> {
        let takes = self.scheduling.preemption() != Preemption::None;
        let highest = if takes { self.highest_waiting(cycle) } else { None };
        let mut late = Vec::new();
        for run in self.elastic_in_order() {
            if run.size.preemptable && highest.is_some_and(|priority| priority > run.priority) {
                late.push(run.job);
            } else {
                self.grow(cycle, &run, run.size.max);
            }
        }
        late
    }

    /// Lets the late runs grow, except those whose gains the first waiting job may take.
    pub(super) fn grow_late(&mut self, cycle: &mut Cycle, turns: &mut Turns) {
        for job in std::mem::take(&mut turns.late_growers) {
            let Some(run) = self.elastic.get(&job).cloned() else { continue };
            let Some(demand) = self.run(job).map(|run| run.demand.clone()) else { continue };
            let ground = self.ground_of(&demand);
            let is_outranked =
                |front: &super::modes::Front| front.priority > run.priority && front.ground.meets(&ground);
            if !turns.fronts.iter().any(is_outranked) {
                self.grow(cycle, &run, run.size.max);
            }
        }
    }

    /// Without a mode: what is left after everything that starts or is promised goes to the runs that can use more, as
    /// if they were at the end of the queue (HPC-S-01).
    pub(super) fn resize_behind(&mut self, cycle: &mut Cycle) {
        if self.scheduling.mode.is_some() || self.elastic.is_empty() {
            return;
        }
        self.give_up_idle(cycle);
        if cycle.plan.is_cut_short {
            return;
        }
        for run in self.elastic_in_order() {
            let is_blocked = |run: &ActiveRun| queues(&run.demand).any(|name| cycle.blocked.contains_key(name));
            let has_way = self.run(run.job).is_some_and(|run| !is_blocked(run));
            if has_way && !self.is_held_back(cycle, run.job, run.priority) {
                self.grow(cycle, &run, run.size.max);
            }
        }
    }

    fn highest_waiting(&self, cycle: &Cycle) -> Option<i64> {
        let waits = |entry: &&crate::queue::Entry| {
            !self.classes.is_hopeless(entry.class) && !cycle.left_out.contains(&entry.id) && !self.is_shut(cycle, entry)
        };
        self.queue.entries().filter(waits).map(|entry| entry.priority).max()
    }

    /// Offers a run as much more as it can use and get, up to a size (HPC-S-09).
    pub(super) fn grow(&mut self, cycle: &mut Cycle, elastic: &ElasticRun, target: u32) {
        let size = &elastic.size;
        let most = size.wanted.min(target.min(size.max).saturating_sub(size.current));
        let asks_later = elastic.ask_again.is_some_and(|at| at > cycle.now);
        if asks_later && most > 0 {
            elastic.ask_again.into_iter().for_each(|at| cycle.wake_at(at));
        }
        let is_able = elastic.may_grow && elastic.shrinking.is_none() && !elastic.is_leaving && !asks_later;
        if most == 0 || !is_able || !self.scheduling.grows() || self.assumes_passes {
            return;
        }
        let got = self.grow_by(cycle, elastic, most);
        if got < most && self.scheduling.grows_by_preemption() && !elastic.is_filtered {
            self.grow_by_preemption(cycle, elastic, most - got);
        }
    }

    fn grow_by(&mut self, cycle: &mut Cycle, elastic: &ElasticRun, most: u32) -> u32 {
        let (Some(run), Some(until)) = (self.run(elastic.job).cloned(), self.assumed_end(elastic.job)) else {
            return 0;
        };
        let unit = elastic.size.unit;
        let search = self.search(cycle.now);
        let Some(added) = search.more(&run.demand, &run.placement, unit, most, until, &elastic.barred) else {
            return 0;
        };
        let (more, held) = (Usage::of_growth(&added), Usage::of(&run.placement, &run.demand));
        if self.limits.reached_by_growth(&run.holder, &run.demand, &more, &held).is_some()
            || self.quota_reached(&run.holder, &run.demand, &more, cycle.now).is_some()
        {
            return 0;
        }
        let count = resize::units(&self.machine, unit, &added);
        self.swap_placement(cycle, elastic.job, resize::merged(&run.placement, &added));
        let growth =
            ProposedGrowth { job: elastic.job, added, count: count.into(), current: elastic.size.current.into() };
        cycle.plan.growths.push(growth);
        count
    }

    /// Makes runs of lower priority give up what they have above their least, for a run that grows (HPC-S-14).
    fn grow_by_preemption(&self, cycle: &mut Cycle, elastic: &ElasticRun, mut missing: u32) {
        let reason = match self.scheduling.preemption() {
            Preemption::None => return,
            Preemption::Graceful => ShrinkReason::Preempted,
            Preemption::Immediate => ShrinkReason::TasksPreempted,
        };
        // First comes what others are already giving up.
        if self.elastic.values().any(|run| run.shrinking.is_some() || run.is_leaving) {
            return;
        }
        let Some(ground) = self.run(elastic.job).map(|run| self.ground_of(&run.demand)) else { return };
        for victim in self.victims(elastic.priority) {
            let spare = victim.size.current.saturating_sub(victim.size.min).min(missing);
            let meets = self.run(victim.job).is_some_and(|run| self.ground_of(&run.demand).meets(&ground));
            if spare > 0 && meets && victim.size.unit == elastic.size.unit {
                self.propose_shrink(cycle, &victim, spare, reason);
                missing -= spare;
            }
        }
    }

    /// Whether the mode is balanced.
    pub(super) fn is_balanced(&self) -> bool {
        self.scheduling.mode == Some(SchedulingMode::Balanced)
    }
}
