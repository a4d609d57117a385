//! Offers that activation filters judge, and resources kept for waiting jobs.

use crate::{filters::Kept, fixed, jobs::Job, planning::decide::plan::Plan, state::State};
use muster_schemas::{
    JobId, RunId, Timestamp,
    event::Event,
    filter::{ActivationParameters, ChainSpec, FilterKind, Offer},
    plan::StartFacts,
    policy::BackfillMode,
    resources::Placement,
};
use std::sync::Arc;

impl<'a> Plan<'a> {
    /// Whether no verdict keeps the job from starting: neither an earlier one on itself, nor one on a job of equal or
    /// higher priority, outstanding or not (HPC-F-31, HPC-F-34, HPC-F-82).
    pub(crate) fn may_start(&self, job: &Job) -> Result<(), String> {
        if let Some(blocker) = self.state.blocked_by(job) {
            return Err(format!("the activation filter of job {blocker} keeps it from starting"));
        }
        if self.judged.is_some_and(|priority| job.lead().priority <= priority) {
            return Err("the activation filters of a job ahead of it have not answered yet".into());
        }
        if self.is_asked(job) { self.may_be_asked(job) } else { Ok(()) }
    }

    /// Whether the retry interval has passed (HPC-F-34).
    pub(crate) fn may_be_asked(&self, job: &Job) -> Result<(), String> {
        let refusal = job.filters.as_ref().and_then(|filters| filters.refusal.as_ref());
        match refusal.filter(|refusal| self.now < refusal.ask_again) {
            Some(refusal) => Err(format!("its activation filters are not asked again before {}", refusal.ask_again)),
            None => Ok(()),
        }
    }

    /// Whether filters judge the start of the job.
    pub(crate) fn is_asked(&self, job: &Job) -> bool {
        let is_granted = job.filters.as_ref().is_some_and(|filters| filters.is_granted);
        !is_granted && self.state.has_activation_filters(job)
    }

    /// Offers a start to the filters of a job. The offer is set aside (HPC-F-82).
    pub(crate) fn offer(&mut self, job: &Job, id: JobId, run: RunId, placement: Placement) -> Event {
        let facts = self.facts.get(&id).copied();
        let facts = facts.unwrap_or_else(|| StartFacts {
            job: id,
            index: 0,
            backfill: false,
            count: placement.shares().map(|share| share.cores.len()).sum(),
            latest_start: None,
        });
        let was_reserved = job.reserved().is_some();
        if !was_reserved && !facts.backfill {
            self.hold_up(job);
        }
        let parameters = self.parameters(&facts, 0);
        let latest_start = facts.latest_start;
        let placement = Arc::new(placement);
        let (preempts, claims) = Default::default();
        self.chain(id, job, Offer { run, placement, growth: false, parameters, preempts, claims, latest_start })
    }

    /// No job of equal or lower priority starts before the verdict on this one.
    pub(crate) fn hold_up(&mut self, job: &Job) {
        if self.state.filter_settings().ordering == muster_schemas::filter::ActivationOrdering::Strict {
            self.judged = self.judged.max(Some(job.lead().priority));
        }
    }

    pub(crate) fn parameters(&self, facts: &StartFacts, current: u64) -> ActivationParameters {
        ActivationParameters {
            pass: self.pass,
            index: facts.index,
            backfill: facts.backfill,
            count: facts.count,
            backfill_enabled: backfills(self.state),
            planner_epoch: self.epoch,
            current,
        }
    }

    /// Starts a chain of the activation filters that are configured now (HPC-F-04).
    pub(crate) fn chain(&mut self, id: JobId, job: &Job, offer: Offer) -> Event {
        let kind = FilterKind::Activation;
        let template = job.filters.as_ref().and_then(|filters| filters.template.as_deref());
        let number = self.next_chain;
        self.next_chain += 1;
        let spec = ChainSpec {
            number,
            kind,
            filters: self.state.filters(kind, template),
            limit_seconds: self.state.filter_settings().timeout_seconds(kind),
            offer: Some(offer),
        };
        Event::FilterChainStarted { job: id, chain: Arc::new(spec) }
    }

    /// Keeps more resources, as they become free, for a job whose activation filter reserved some (HPC-F-35).
    pub(crate) fn keep(&mut self, id: JobId, placement: Placement) -> Result<Vec<Event>, String> {
        let job = self.startable(id)?;
        if job.domain().is_some() {
            return Err("jobs inside a planning domain keep nothing".into());
        }
        let Some(kept) = job.reserved().cloned() else { return Err("nothing is kept for it".into()) };
        job.check_reserved(&placement)?;
        self.give_back_kept(job);
        if let Err(why) = self.check_placement(job, &placement) {
            self.take_kept_again(job);
            return Err(why);
        }
        self.take(job, id, kept.run, &placement);
        self.started.insert(id);
        Ok(vec![Event::ResourcesReserved { job: id, run: kept.run, placement: Arc::new(placement) }])
    }

    /// Makes the resources kept for a job count as free for it.
    pub(crate) fn give_back_kept(&mut self, job: &Job) {
        if let Some(Kept { run, placement }) = job.reserved() {
            self.give_back(job, *run, placement);
        }
    }

    /// Takes them again if the job does not start.
    pub(crate) fn take_kept_again(&mut self, job: &Job) {
        if let Some(Kept { run, placement }) = job.reserved() {
            self.take(job, job.id, *run, placement);
        }
    }

    fn give_back(&mut self, job: &Job, run: RunId, placement: &Placement) {
        if job.domain().is_some() {
            self.given_back.insert(run);
            self.inside.retain(|(given, _)| *given != run);
        } else {
            for share in placement.shares() {
                self.change_node(share.node, |node| node.give_back(run, share, false));
                self.keep_shared(share.node, run);
            }
        }
        for (component, placed) in job.components.iter().zip(&placement.components) {
            let Some(alternative) = component.shape.alternatives.get(placed.alternative as usize) else { continue };
            for (name, count) in &alternative.licences {
                let known = self.state.licence(name).copied().unwrap_or_default();
                let licence = self.licences.entry(name.clone()).or_insert(known);
                licence.used = licence.used.saturating_sub(*count);
            }
        }
        for name in job.queues() {
            if let Some(queue) = self.state.queue(name) {
                self.queues.entry(name.to_string()).or_insert_with(|| queue.clone()).run_ended(&job.owner.user);
            }
        }
    }
}

/// Whether the cluster backfills around waiting jobs at all (HPC-F-62).
fn backfills(state: &State) -> bool {
    let by_policy = || state.policy().backfill.mode != BackfillMode::None;
    state.scheduling().look_ahead().map_or_else(by_policy, |jobs| jobs != 0)
}

/// Whether a start that filters have passed is still possible (HPC-F-39).
pub(crate) fn recheck_start(state: &State, job: &Job, offer: &Offer, now: Timestamp) -> Result<(), String> {
    if !job.is_waiting() {
        return Err("it no longer waits".into());
    }
    let hold = job.filters.as_ref().and_then(|filters| filters.hold);
    if let Some((until, _)) = hold {
        return Err(format!("it is held until {until}"));
    }
    if let Some(reason) = state.own_gate_reason(job) {
        return Err(reason.to_string());
    }
    fixed::decide::check_start(job, now)?;
    if !offer.preempts.is_empty() {
        return Ok(());
    }
    let mut plan = Plan::new(state, now);
    plan.give_back(job, offer.run, &offer.placement);
    plan.check_placement(job, &offer.placement)
}

/// Whether a growth that filters have passed is still possible (HPC-F-39).
pub(crate) fn recheck_growth(state: &State, offer: &Offer, now: Timestamp) -> Result<(), String> {
    let run = state.run(offer.run).filter(|run| run.stopping.is_none()).ok_or("it no longer runs")?;
    let job = state.job(run.job).ok_or("it no longer exists")?;
    let mut plan = Plan::new(state, now);
    for share in offer.placement.shares() {
        let keeps_rest = run.share(share.node).is_some();
        plan.change_node(share.node, |node| node.give_back_part(run.id, share, (false, keeps_rest)));
        plan.keep_shared(share.node, run.id);
    }
    plan.check_addition(job, run, &offer.placement)
}
