//! Running jobs make way for a waiting one of higher priority: no more of them than needed, the least important first.

use super::{Cycle, modes::Turns};
use crate::{
    engine::{Engine, Run},
    machine::{Holding, Window, expected_end},
    model::{Demand, ElasticRun},
    queue::Place,
    resize,
};
use muster_schemas::{
    JobId, Timestamp,
    event::ShrinkReason,
    plan::ProposedPreemption,
    resources::{Alternative, ComponentPlacement, NodeShare, Placement},
    scheduling::Preemption,
};
use std::{cmp::Reverse, sync::Arc};

/// The demand on a run to give up all or a part.
struct Claim {
    victim: ElasticRun,
    /// The units that it must give up.
    units: u32,
}

impl Engine {
    /// Runs that a job of a priority may take resources from, in that order: lowest priority first, and within a
    /// priority the last started first (HPC-S-12).
    pub(super) fn victims(&self, priority: i64) -> Vec<ElasticRun> {
        let runs = self.elastic.values();
        let mut victims: Vec<ElasticRun> = runs
            .filter(|run| run.size.preemptable && run.priority < priority && !run.is_leaving && run.shrinking.is_none())
            .cloned()
            .collect();
        victims.sort_by_key(|run| (run.priority, Reverse(run.allocated), Reverse(run.job)));
        victims
    }

    /// A job lacks room: claims resources of runs with lower priority, unless enough is already on its way. Returns the
    /// least placement that it will get, which others may still partly hold, if there is one.
    pub(super) fn claim(&mut self, cycle: &mut Cycle, turns: &mut Turns, place: Place) -> Option<Placement> {
        let entry = self.queue.get(place)?;
        let (id, class, priority) = (entry.id, entry.class, entry.priority);
        let is_filtered = entry.activation.as_ref().is_some_and(|activation| activation.is_filtered);
        if !self.scheduling.makes_way_for(entry.is_list) || self.elastic.is_empty() || self.assumes_passes {
            return None;
        }
        let demand = self.least_demand(turns, class);
        let mut away = self.set_leaving_aside();
        let is_coming = !away.is_empty() && self.fits(cycle, &demand);
        let claims = if is_coming { Vec::new() } else { self.choose(cycle, &demand, place, &mut away) };
        let found = self.search(cycle.now).at(&demand, cycle.now);
        self.put_back(away);
        if claims.is_empty() {
            return found.filter(|_| is_coming);
        }
        if is_filtered {
            self.hold_back(cycle, priority);
        }
        let count = found.as_ref().map_or(0, |placement| self.units(&demand, placement));
        self.propose_claims(cycle, (id, self.rank(cycle, place)), claims, is_filtered, count);
        Some(found.unwrap_or_default())
    }

    /// Without a mode: a list of tasks lacks room that no job ahead of it waits for, and claims it from other lists.
    /// Returns its future placement, as [`Self::claim`] does.
    pub(super) fn claim_as_list(&mut self, cycle: &mut Cycle, place: Place) -> Option<Placement> {
        let entry = self.queue.get(place).filter(|entry| entry.is_list && !self.elastic.is_empty())?;
        // The job ahead would get what others give up.
        if self.is_behind_promise(cycle, &self.classes.get(entry.class).demand) {
            return None;
        }
        self.claim(cycle, &mut Turns::default(), place)
    }

    /// Whether a job with a promise of this cycle could use the same as a demand.
    pub(super) fn is_behind_promise(&self, cycle: &Cycle, demand: &Demand) -> bool {
        let taken = cycle.taken.iter().chain(&cycle.components.taken);
        let mut promised = taken.filter(|(.., holding)| matches!(holding, Holding::Promise { .. })).peekable();
        if promised.peek().is_none() {
            return false;
        }
        let ground = self.ground_of(demand);
        promised.any(|(demand, ..)| self.ground_of(demand).meets(&ground))
    }

    /// Closes the free part of a list's future placement to jobs that would go around it: otherwise they would take it
    /// whenever others give something up. This lasts only until its promise begins, the first one since resources were
    /// taken.
    pub(super) fn keep_idle(&mut self, cycle: &mut Cycle, place: Place, claimed: &Placement, taken_before: usize) {
        let Some((_, _, Holding::Promise { start })) = cycle.taken.get(taken_before) else { return };
        let Some(class) = self.queue.class_at(place) else { return };
        let demand = &self.classes.get(class).demand;
        let until = expected_end(demand, claimed, cycle.now).min(*start);
        let idle = self.idle_part(claimed, cycle.now);
        // Others may still hold the licences.
        let demand = Arc::new(without_licences(demand));
        let (idle, holding) = (Arc::new(idle), Holding::Run { until });
        self.machine.take(&demand, &idle, holding);
        cycle.index.update(&self.machine, idle.shares().map(|share| share.node), cycle.now);
        cycle.taken.push((demand, idle, holding));
    }

    /// The part of a placement that nobody holds now.
    fn idle_part(&self, placement: &Placement, now: Timestamp) -> Placement {
        let window = Window { from: now, until: now.plus_micros(1) };
        let idle = |share: &NodeShare| {
            let free = self.machine.node(share.node)?.free_in(window, now, false)?;
            let cores = share.cores.intersection(&free.cores);
            (!cores.is_empty()).then(|| NodeShare {
                node: share.node,
                cores,
                gpus: share.gpus.intersection(&free.gpus),
                memory_bytes: share.memory_bytes.min(free.memory_bytes),
                tasks: 0,
                exclusive: false,
            })
        };
        let of_component = |placed: &ComponentPlacement| ComponentPlacement {
            shares: placed.shares.iter().filter_map(idle).collect(),
            ..placed.clone()
        };
        Placement { components: placement.components.iter().map(of_component).collect() }
    }

    fn units(&self, demand: &Demand, placement: &Placement) -> u64 {
        resize::units(&self.machine, resize::unit_of(demand), placement).into()
    }

    fn fits(&self, cycle: &Cycle, demand: &Demand) -> bool {
        self.search(cycle.now).at(demand, cycle.now).is_some()
    }

    /// Returns the holdings of runs that were set aside, in parts or as a whole.
    pub(super) fn put_back(&mut self, away: Vec<Run>) {
        for run in away.into_iter().rev() {
            self.lend_run(run.active().job);
            self.hold_run(run);
        }
    }

    /// Takes from runs what they are already giving up, and in balanced mode what is shared again before anybody is
    /// stopped. Returns the original runs.
    fn set_leaving_aside(&mut self) -> Vec<Run> {
        let mut away = Vec::new();
        for elastic in self.elastic.values().cloned().collect::<Vec<_>>() {
            let Some(run) = self.run(elastic.job) else { continue };
            let spare = elastic.size.current.saturating_sub(elastic.size.min);
            let rest = match &elastic.shrinking {
                _ if elastic.is_leaving => None,
                Some(removed) => Some(resize::without(&run.placement, removed)),
                None if self.is_balanced() && spare > 0 => {
                    let removed = resize::cut(&self.machine, &run.placement, elastic.size.unit, spare, &elastic.busy);
                    Some(resize::without(&run.placement, &removed))
                }
                None => continue,
            };
            away.extend(self.shrink_for_now(elastic.job, rest));
        }
        away
    }

    fn shrink_for_now(&mut self, job: JobId, rest: Option<Placement>) -> Option<Run> {
        let run = self.lend_run(job)?;
        if let Some(rest) = rest {
            self.hold_run(run.on(rest));
        }
        Some(run)
    }

    /// Runs that make way for a waiting job.
    fn victims_of(&self, place: Place, demand: &Demand) -> Vec<ElasticRun> {
        let Some(priority) = self.queue.get(place).map(|entry| entry.priority) else { return Vec::new() };
        let mut victims = self.victims(priority);
        victims.retain(|victim| self.stays_behind(place, demand, victim.job, victim.priority));
        victims
    }

    /// Whether a running job of this priority would wait behind the one at a place. One that would be ahead of it again,
    /// because the queue is not ordered by priority, does not make way: the two would take the place from each other for
    /// ever.
    pub(super) fn stays_behind(&self, place: Place, demand: &Demand, running: JobId, priority: i64) -> bool {
        let queue_of = |demand: &Demand| demand.components.first().map(|component| component.queue.clone());
        let queue = self.run(running).and_then(|run| queue_of(&run.demand));
        queue_of(demand)
            .zip(queue)
            .is_some_and(|(own, queue)| self.queue.would_stand_behind(place, &own, (&queue, priority), &self.queues))
    }

    /// The fewest runs that must make way; of the last of them only as much as needed. Empty if all are not enough.
    fn choose(&mut self, cycle: &Cycle, demand: &Demand, place: Place, away: &mut Vec<Run>) -> Vec<Claim> {
        let mut chosen: Vec<(ElasticRun, Run)> = Vec::new();
        let mut is_enough = false;
        for victim in self.victims_of(place, demand) {
            let Some(run) = self.lend_run(victim.job) else { continue };
            chosen.push((victim, run.clone()));
            away.push(run);
            is_enough = self.fits(cycle, demand);
            if is_enough {
                break;
            }
        }
        if !is_enough {
            return Vec::new();
        }
        // A run chosen early may be unnecessary with those chosen later; the more important ones are spared first.
        for at in (0..chosen.len()).rev() {
            self.hold_run(chosen[at].1.clone());
            if self.fits(cycle, demand) {
                chosen.remove(at);
            } else {
                self.lend_run(chosen[at].0.job);
            }
        }
        let mut claims: Vec<Claim> =
            chosen.iter().map(|(victim, _)| Claim { units: victim.size.current, victim: victim.clone() }).collect();
        if let Some((claim, (_, run))) = claims.last_mut().zip(chosen.last()) {
            claim.units = self.least_claim(cycle, demand, &claim.victim, run);
            let removed = self.part(&claim.victim, &run.active().placement, claim.units);
            let rest = resize::without(&run.active().placement, &removed);
            if rest.shares().next().is_some() {
                self.hold_run(run.on(rest));
            }
        }
        claims
    }

    /// The fewest units that a run, which is set aside as a whole, must give up for the demand to fit.
    fn least_claim(&mut self, cycle: &Cycle, demand: &Demand, victim: &ElasticRun, run: &Run) -> u32 {
        let (mut too_few, mut enough) = (0, victim.size.current);
        while too_few + 1 < enough {
            let tried = too_few + (enough - too_few) / 2;
            let removed = self.part(victim, &run.active().placement, tried);
            self.hold_run(run.on(resize::without(&run.active().placement, &removed)));
            let fits = self.fits(cycle, demand);
            self.lend_run(victim.job);
            if fits { enough = tried } else { too_few = tried }
        }
        enough
    }

    fn part(&self, victim: &ElasticRun, placement: &Placement, units: u32) -> Placement {
        resize::cut(&self.machine, placement, victim.size.unit, units, &victim.busy)
    }

    /// Stops the runs, or lets them shrink by as many tasks as needed, if that is wanted and they keep their least.
    /// Nobody is stopped before the filters of the job that gains have passed (HPC-S-15).
    fn propose_claims(
        &self,
        cycle: &mut Cycle,
        (job, index): (JobId, u64),
        claims: Vec<Claim>,
        is_filtered: bool,
        count: u64,
    ) {
        let is_immediate = self.scheduling.preemption() == Preemption::Immediate;
        let by_task = is_immediate && self.scheduling.task_preemption == Some(true) && !is_filtered;
        let (mut victims, mut parts) = (Vec::new(), Vec::new());
        for Claim { victim, units } in claims {
            if by_task && victim.size.current.saturating_sub(units) >= victim.size.min {
                self.propose_shrink(cycle, &victim, units, ShrinkReason::TasksPreempted);
                continue;
            }
            let placement = self.run(victim.job).map(|run| run.placement.clone()).unwrap_or_default();
            victims.push(victim.job);
            parts.push(self.part(&victim, &placement, units));
        }
        if !victims.is_empty() {
            cycle.plan.preemptions.push(ProposedPreemption { for_job: job, victims, claims: parts, index, count });
        }
    }
}

/// The same demand without licences.
fn without_licences(demand: &Demand) -> Demand {
    let mut demand = demand.clone();
    for component in &mut demand.components {
        let bare = |alternative: &Alternative| Alternative { licences: Default::default(), ..alternative.clone() };
        component.alternatives = component.alternatives.iter().map(bare).collect();
    }
    demand
}
