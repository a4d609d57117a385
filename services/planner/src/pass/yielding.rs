//! Running jobs make way for a waiting one because of their service classes or their queues: no more of them than needed, the least
//! important first.

use super::{Cycle, modes::Ground};
use crate::{
    engine::{Engine, Run},
    limits::Usage,
    model::{Demand, YieldingRun},
    queue::Place,
    search::Search,
};
use muster_schemas::{
    JobId, Timestamp,
    plan::ProposedPreemption,
    resources::{NodeShare, Placement},
};
use std::{cmp::Reverse, collections::BTreeSet};

/// A job's request, and the ways to serve it that limits leave open.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'w> {
    pub demand: &'w Demand,
    pub ways: Option<&'w [Vec<bool>]>,
    /// From when on.
    pub from: Timestamp,
}

/// The facts of a job that decide which runs make way for it.
pub(super) struct ForWhom<'w> {
    /// The service classes whose runs make way for it.
    classes: Vec<&'w str>,
    /// The least priority of its queues.
    priority: Option<i64>,
}

impl ForWhom<'_> {
    /// Whether a run makes way for the job, wherever it waits again.
    pub fn makes_way(&self, run: &YieldingRun) -> bool {
        run.classes.iter().all(|class| self.classes.contains(&&**class))
            || run.makes_way_above.zip(self.priority).is_some_and(|(above, priority)| priority > above)
    }
}

/// How many of the first waiting jobs can have runs make way where all have promises.
const MOST_CLAIMING: usize = 100;

impl Engine {
    /// Where all jobs have promises: each of the first waiting jobs claims the resources of runs that make way for its
    /// class, unless a job ahead of it could use the same. Promises to others are kept: the job must fit beside them.
    pub(super) fn claim_despite_promises(&mut self, cycle: &mut Cycle, sorted: &[Place]) {
        if self.yielding.is_empty() {
            return;
        }
        let started: BTreeSet<JobId> = cycle.plan.starts.iter().map(|start| start.job.whole()).collect();
        let mut ahead: Vec<Ground> = Vec::new();
        for place in sorted {
            let Some(entry) = self.queue.get(*place) else { continue };
            let has_way = cycle.plan.preemptions.iter().any(|one| one.for_job == entry.id);
            if started.contains(&entry.id.whole())
                || !self.may_be_planned(cycle, *place)
                || self.is_hopeless(*place)
                || self.is_asked(*place)
            {
                continue;
            }
            let (demand, slot) = (self.classes.get(entry.class).demand.clone(), entry.slot.clone());
            let ground = self.ground_of(&demand);
            if !has_way && !ahead.iter().any(|other| other.meets(&ground)) {
                // What it was promised is not in its own way.
                self.set_slot_at(*place, None);
                self.claim_by_class(cycle, *place);
                self.set_slot_at(*place, slot);
            }
            ahead.push(ground);
            if ahead.len() == MOST_CLAIMING {
                return;
            }
        }
    }

    /// A job lacks room: claims the resources of runs that make way for its class, unless enough is already on its way.
    /// Returns the placement that it will get, which others may still partly hold, if there is one.
    pub(super) fn claim_by_class(&mut self, cycle: &mut Cycle, place: Place) -> Option<Placement> {
        if self.yielding.is_empty() {
            return None;
        }
        let entry = self.queue.get(place)?;
        let (id, priority) = (entry.id, entry.priority);
        let is_filtered = entry.activation.as_ref().is_some_and(|activation| activation.is_filtered);
        let demand = self.classes.get(entry.class).demand.clone();
        let ways = self.open_ways(place);
        let wanted = Wanted { demand: &demand, ways: ways.as_deref(), from: cycle.now };
        let (leaving, staying) = self.yielding_to(place, &demand);
        // The job ahead would get what others give up.
        if leaving.len() + staying.len() == 0 || self.is_behind_promise(cycle, &demand) {
            return None;
        }
        // A run that the job may share with is not in its way (OAR-T-24).
        if let Some(sharing) = &demand.sharing {
            self.machine.open_view(sharing);
        }
        let mut away: Vec<Run> = leaving.into_iter().filter_map(|job| self.set_run_aside(job)).collect();
        let is_coming = !away.is_empty() && self.has_room(cycle, wanted);
        let victims = if is_coming { Vec::new() } else { self.victims_for(cycle, wanted, &staying, &mut away) };
        // Nobody is stopped for a job that a limit would keep from starting there.
        let found = self.room(cycle, wanted).filter(|found| !self.is_shut_out(cycle, place, found));
        self.put_back(away);
        self.machine.close_view();
        if victims.is_empty() || found.is_none() {
            return found.filter(|_| is_coming);
        }
        if is_filtered && !self.assumes_passes {
            self.hold_back(cycle, priority);
        }
        let claims = victims.iter().filter_map(|job| Some((*self.run(*job)?.placement).clone())).collect();
        let index = self.rank(cycle, place);
        cycle.plan.preemptions.push(ProposedPreemption { for_job: id, victims, claims, index, count: 0 });
        found
    }

    /// The runs that make way for a job: those that leave already, and the others, the least important first and among
    /// these the last started. Those that come back do so only if they stay behind; behind a fixed start all do. For that
    /// no run is suspended, which would keep its memory.
    pub(super) fn yielding_to(&self, place: Place, demand: &Demand) -> (Vec<JobId>, Vec<JobId>) {
        let Some(for_whom) = self.for_whom(place, demand) else { return Default::default() };
        let (leaving, mut staying): (Vec<&YieldingRun>, Vec<&YieldingRun>) =
            self.yielding.values().filter(|run| for_whom.makes_way(run)).partition(|run| run.is_leaving);
        match demand.fixed {
            Some(_) => staying.retain(|run| !run.gives_cores_only),
            None => staying.retain(|run| !run.comes_back || self.stays_behind(place, demand, run.job, run.priority)),
        }
        staying.sort_by_key(|run| (run.priority, Reverse(run.allocated), Reverse(run.job)));
        let ids = |runs: Vec<&YieldingRun>| runs.into_iter().map(|run| run.job).collect();
        (ids(leaving), ids(staying))
    }

    /// The same without runs that would be suspended: those that a promise can count on, because they leave everything.
    pub(super) fn leaving_for(&self, place: Place, demand: &Demand) -> (Vec<JobId>, Vec<JobId>) {
        let (leaving, mut staying) = self.yielding_to(place, demand);
        staying.retain(|job| self.yielding.get(job).is_some_and(|run| !run.gives_cores_only));
        (leaving, staying)
    }

    /// The facts of a job that decide who makes way for it.
    pub(super) fn for_whom(&self, place: Place, demand: &Demand) -> Option<ForWhom<'_>> {
        let classes = self.limits.preempted_by(&self.queue.get(place)?.holder);
        let priority_of = |queue: &str| self.queues.get(queue).map(|queue| queue.priority);
        let priority = demand.components.iter().map(|component| priority_of(&component.queue)).min().flatten();
        Some(ForWhom { classes, priority })
    }

    /// Takes from a run what it gives up if it makes way: everything, or only its cores if it is suspended, which limits
    /// still count. Returns the run as it was.
    pub(super) fn set_run_aside(&mut self, job: JobId) -> Option<Run> {
        let gives_cores_only = self.yielding.get(&job).is_some_and(|run| run.gives_cores_only);
        let run = self.lend_run(job)?;
        if gives_cores_only {
            self.hold_run(run.without_cores());
        }
        Some(run)
    }

    /// Returns to a run what [`Self::set_run_aside`] has taken.
    pub(super) fn bring_back(&mut self, run: &Run) {
        self.lend_run(run.active().job);
        self.hold_run(run.clone());
    }

    /// Where the job fits at its time, in a way that limits leave open.
    pub(super) fn room(&self, cycle: &Cycle, wanted: Wanted<'_>) -> Option<Placement> {
        Search { ways: wanted.ways, ..self.search(cycle.now) }.at(wanted.demand, wanted.from)
    }

    pub(super) fn has_room(&self, cycle: &Cycle, wanted: Wanted<'_>) -> bool {
        self.room(cycle, wanted).is_some()
    }

    /// Whether a limit keeps a job from using a placement.
    fn is_shut_out(&self, cycle: &Cycle, place: Place, placement: &Placement) -> bool {
        let Some(entry) = self.queue.get(place) else { return true };
        let demand = &self.classes.get(entry.class).demand;
        let uses = Usage::of(placement, demand);
        self.limits.reached(&entry.holder, demand, &uses, &self.queues).is_some()
            || self.quota_reached(&entry.holder, demand, &uses, cycle.now).is_some()
    }

    /// The fewest of these runs, from the first on, without which the job fits; none if all are not enough. Those and
    /// the ones before them are set aside.
    pub(super) fn victims_for(
        &mut self,
        cycle: &Cycle,
        wanted: Wanted<'_>,
        runs: &[JobId],
        away: &mut Vec<Run>,
    ) -> Vec<JobId> {
        let set_aside: Vec<Run> = runs.iter().filter_map(|job| self.set_run_aside(*job)).collect();
        away.extend(set_aside.iter().cloned());
        if !self.has_room(cycle, wanted) {
            return Vec::new();
        }
        let enough = self.least_enough(cycle, wanted, &set_aside);
        let mut chosen = self.those_in_the_way(cycle, wanted, &set_aside[..enough]);
        // One chosen early may be unnecessary with those chosen later; the more important ones are spared first.
        for at in (0..chosen.len()).rev() {
            self.bring_back(&chosen[at]);
            if self.has_room(cycle, wanted) {
                chosen.remove(at);
            } else {
                self.set_run_aside(chosen[at].active().job);
            }
        }
        chosen.iter().map(|run| run.active().job).collect()
    }

    /// How many of the first runs must go at least; the others hold their resources afterwards. All are set aside.
    fn least_enough(&mut self, cycle: &Cycle, wanted: Wanted<'_>, runs: &[Run]) -> usize {
        let (mut too_few, mut enough, mut aside) = (0, runs.len(), runs.len());
        while too_few + 1 < enough {
            let tried = too_few + (enough - too_few) / 2;
            self.set_aside_first(runs, &mut aside, tried);
            if self.has_room(cycle, wanted) { enough = tried } else { too_few = tried }
        }
        self.set_aside_first(runs, &mut aside, enough);
        enough
    }

    fn set_aside_first(&mut self, runs: &[Run], aside: &mut usize, wanted: usize) {
        for run in runs.iter().take(wanted).skip(*aside) {
            self.set_run_aside(run.active().job);
        }
        for run in runs.iter().take(*aside).skip(wanted) {
            self.bring_back(run);
        }
        *aside = wanted;
    }

    /// The runs on the nodes that the job would get; the others hold their resources afterwards, unless the job needs
    /// something of them as well, such as licences.
    fn those_in_the_way(&mut self, cycle: &Cycle, wanted: Wanted<'_>, runs: &[Run]) -> Vec<Run> {
        let found = self.room(cycle, wanted);
        let nodes: BTreeSet<_> = found.iter().flat_map(Placement::shares).map(|share: &NodeShare| share.node).collect();
        let is_there = |run: &&Run| run.active().placement.shares().any(|share| nodes.contains(&share.node));
        let (there, elsewhere): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(is_there);
        elsewhere.iter().for_each(|run| self.bring_back(run));
        if self.has_room(cycle, wanted) {
            return there.into_iter().cloned().collect();
        }
        elsewhere.iter().for_each(|run| {
            self.set_run_aside(run.active().job);
        });
        runs.to_vec()
    }
}
