//! Runs that grow, shrink and make way for others.

use crate::{jobs::Job, nodes::Spare, planning::decide::plan::Plan, runs::Run, state::State, tasks};
use muster_schemas::{
    JobId, RunId,
    event::Event,
    filter::Offer,
    plan::{ProposedGrowth, ProposedPreemption, ProposedShrink, StartFacts},
    resources::Placement,
};
use std::{collections::BTreeSet, sync::Arc};

impl<'a> Plan<'a> {
    /// Adds resources to a run: at once, or with an offer if filters judge the growth (HPC-F-33, HPC-S-11).
    pub(crate) fn grow(&mut self, growth: ProposedGrowth) -> Result<Vec<Event>, String> {
        let ProposedGrowth { job: id, added, count, current } = growth;
        let (job, run) = self.unchanged_run(id)?;
        if job.domain().is_some() {
            return Err("jobs inside a planning domain do not grow".into());
        }
        if job.filters.as_ref().is_some_and(|filters| filters.chain.is_some()) {
            return Err("its filters are already being asked or are rolling back".into());
        }
        tasks::decide::growth_problem(self.state, id, &added).map_or(Ok(()), Err)?;
        self.check_addition(job, run, &added)?;
        let is_asked = self.state.has_activation_filters(job);
        if is_asked {
            self.may_be_asked(job)?;
        }
        for share in added.shares() {
            self.change_node(share.node, |node| node.take(run.id, share, &Spare::default()));
        }
        self.started.insert(id);
        let (run, placement) = (run.id, Arc::new(added));
        if !is_asked {
            return Ok(vec![Event::RunGrown { job: id, run, added: placement }]);
        }
        let facts = StartFacts { job: id, index: 0, backfill: false, count, latest_start: None };
        let parameters = self.parameters(&facts, current);
        let (preempts, claims) = Default::default();
        let offer = Offer { run, placement, growth: true, parameters, preempts, claims, latest_start: None };
        Ok(vec![self.chain(id, job, offer)])
    }

    /// A running job and its run, if the plan has not changed them yet.
    fn unchanged_run(&self, id: JobId) -> Result<(&'a Job, &'a Run), String> {
        if self.started.contains(&id) {
            return Err("the plan changes it twice".into());
        }
        let job = self.state.job(id).ok_or("it no longer exists")?;
        let run = job.run().and_then(|run| self.state.run(run)).ok_or("it does not run")?;
        if self.stopping.contains(&run.id) { Err("the plan stops it".into()) } else { Ok((job, run)) }
    }

    /// Makes a run give up resources once no task uses them any longer (HPC-S-08, HPC-S-10, HPC-S-14).
    pub(crate) fn shrink(&mut self, shrink: ProposedShrink) -> Result<Vec<Event>, String> {
        let ProposedShrink { job: id, removed, reason } = shrink;
        self.unchanged_run(id)?;
        let event = tasks::decide::shrink(self.state, id, removed, reason)?;
        self.started.insert(id);
        Ok(vec![event])
    }

    /// Makes running jobs give way to one of higher priority: at once, or once its filters have passed (HPC-S-12,
    /// HPC-S-15).
    pub(crate) fn preempt(&mut self, preemption: ProposedPreemption) -> Result<Vec<Event>, String> {
        let ProposedPreemption { for_job: id, victims, claims, index, count } = preemption;
        if victims.is_empty() || claims.len() != victims.len() {
            return Err("it is not said which jobs make way, and with what".into());
        }
        let job = self.startable(id)?;
        let makes_way =
            |victim: &JobId| self.state.job(*victim).is_some_and(|victim| self.state.makes_way(victim, job));
        if !self.state.scheduling().makes_way_for(job.tasks.is_some()) && !victims.iter().all(makes_way) {
            return Err("jobs do not make way for it here".into());
        }
        self.may_start(job)?;
        if self.gaining.contains(&id) {
            return Err("the plan has others make way for it already".into());
        }
        for (victim, claim) in victims.iter().zip(&claims) {
            tasks::decide::make_way(self.state, *victim, id, claim)?;
        }
        if !self.is_asked(job) {
            self.gaining.insert(id);
            return Ok(make_way(self.state, job, victims.into_iter().zip(claims), &mut self.stopping));
        }
        self.started.insert(id);
        self.hold_up(job);
        let facts = StartFacts { job: id, index, backfill: false, count, latest_start: None };
        let parameters = self.parameters(&facts, 0);
        let run = self.next_run;
        self.next_run = RunId(run.0 + 1);
        let offer = Offer {
            run,
            placement: Arc::default(),
            growth: false,
            parameters,
            preempts: victims,
            claims,
            latest_start: None,
        };
        Ok(vec![self.chain(id, job, offer)])
    }
}

/// Running jobs make way as planned. Those that no longer can are skipped (HPC-S-12).
pub(crate) fn make_way(
    state: &State,
    job: &Job,
    victims: impl Iterator<Item = (JobId, Placement)>,
    stopping: &mut BTreeSet<RunId>,
) -> Vec<Event> {
    let mut events = Vec::new();
    for (victim, claim) in victims {
        let run = state.job(victim).and_then(Job::run);
        if run.is_some_and(|run| stopping.insert(run)) {
            events.extend(tasks::decide::make_way(state, victim, job.id, &claim).unwrap_or_default());
        }
    }
    events
}
