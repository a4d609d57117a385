//! The events that follow from the answer of a filter, or of the check after the filters.

use crate::{
    filters::{
        Chain, JobFilters,
        chain::{self, Failure, warned},
        decide::{entry, holds},
        verdict::{Answer, Attempt, activation},
    },
    jobs::{Job, decide::endings},
    planning::decide::plan::{elastic, offers},
    staging::{self, decide::Made},
    state::State,
};
use muster_schemas::{
    JobId, RunId, Timestamp,
    event::{Event, HoldBy, Validated},
    filter::{CallId, ChainVerdict, FilterExit, FilterKind, FilterReport, Offer},
    job::{JobSpec, Outcome},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The answers of one command, each decided with the results of those before it.
pub(crate) struct Batch<'a> {
    state: &'a State,
    now: Timestamp,
    /// Jobs that keep others from starting.
    blocks: BTreeMap<JobId, i64>,
    /// Runs that are now being stopped.
    stopping: BTreeSet<RunId>,
    /// Persistent buffers that now exist.
    made: Made,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(state: &'a State, now: Timestamp) -> Self {
        let (blocks, made) = (state.filters.blocks.clone(), Made::default());
        Self { state, now, blocks, stopping: BTreeSet::new(), made }
    }

    /// The job whose verdict keeps this one from starting (HPC-F-31).
    fn blocker(&self, job: &Job) -> Option<JobId> {
        let top = self.blocks.iter().max_by_key(|(id, priority)| (**priority, std::cmp::Reverse(**id)))?;
        (*top.0 != job.id && job.lead().priority <= *top.1).then_some(*top.0)
    }
}

/// A filter has answered a call to judge.
pub(crate) fn called(
    batch: &mut Batch,
    job: &Job,
    filters: &JobFilters,
    chain: &Chain,
    call: CallId,
    report: FilterReport,
) -> Vec<Event> {
    let report = Arc::new(report);
    let Some(filter) = chain.spec.filters.get(call.position as usize) else { return Vec::new() };
    let answer = Answer { filter: &filter.spec, limit_seconds: chain.spec.limit_seconds, report: &report };
    let is_staged_in = chain.spec.kind == FilterKind::StageIn && report.exit == FilterExit::Code(0);
    let overtaken = is_staged_in.then(|| batch.made.staged_in(batch.state, job, call.position)).flatten();
    let mut events = vec![match overtaken {
        None => Event::FilterVerdict { call, report: report.clone() },
        // What it did to the buffers must not be recorded.
        Some(_) => too_late(chain, call, report.exit.clone()),
    }];
    let attempt = Attempt::of(&chain.spec);
    let warning = match chain.spec.kind {
        FilterKind::Activation => answer.activation_warning(attempt),
        FilterKind::Submission | FilterKind::StageIn | FilterKind::StageOut => None,
    };
    // A staging program names files of the owner: its verdict is the only record of its message and warnings.
    if !chain.spec.kind.is_staging() {
        events.extend(warned(job.id, report.warnings.clone().into_iter().chain(warning).collect()));
        let message = chain::message(job, &chain.spec, call.position, &report);
        events.extend(message.map(|text| Event::JobMessage { job: job.id, text }));
    }
    let last = answer.is_rolled_back(chain.spec.kind).then_some(call.position);
    if let Some(outcome) = &filters.ends_after_verdict {
        events.extend(ended(job, chain, last, outcome.clone()));
        return events;
    }
    if let Some(why) = overtaken {
        events.extend(staging::decide::failed(job, chain.spec.number, call.position, &why));
        return events;
    }
    events.extend(match chain.spec.kind {
        FilterKind::Submission => submission(batch, job, filters, chain, call, &answer),
        FilterKind::Activation => Activation { job, filters, chain, call, answer, attempt, last }.verdict(batch),
        FilterKind::StageIn | FilterKind::StageOut => staging::decide::verdict(job, chain, call, &answer),
    });
    events
}

/// An answer that does not count.
fn too_late(chain: &Chain, call: CallId, exit: FilterExit) -> Event {
    let outstanding = chain.call.as_ref();
    let claimed = outstanding.and_then(|outstanding| outstanding.claimed.as_ref());
    let runner = claimed.map(|(runner, _)| runner.to_string()).unwrap_or_default();
    let attempt = outstanding.map_or(1, |outstanding| outstanding.attempt);
    Event::FilterLateResult { call, attempt, runner, exit }
}

/// The job ends as requested while its filters judged it, whatever their answer (HPC-F-23, HPC-F-68).
fn ended(job: &Job, chain: &Chain, last: Option<u32>, outcome: Outcome) -> Vec<Event> {
    let message = format!("the job was ended while it was judged: {}", outcome.word());
    let failure = Failure { verdict: ChainVerdict::NotNow, position: chain.end(), message };
    let follows = if job.is_finished() { Vec::new() } else { vec![endings::given_up(job, outcome)] };
    chain::fail(job.id, chain, last, failure, follows)
}

fn submission(
    batch: &Batch,
    job: &Job,
    filters: &JobFilters,
    chain: &Chain,
    call: CallId,
    answer: &Answer,
) -> Vec<Event> {
    if let Some(text) = answer.submission_failure() {
        let text = format!("{}{text}", chain::whose(job, &chain.spec, call.position));
        let last = answer.is_rolled_back(FilterKind::Submission).then_some(call.position);
        let failure = Failure { verdict: ChainVerdict::Fail, position: call.position, message: text.clone() };
        return chain::fail(job.id, chain, last, failure, vec![endings::given_up(job, Outcome::Refused(text))]);
    }
    let is_checked = answer.changes() || chain::needs_validation(filters, &chain.passed);
    if call.position + 1 < chain.end() || is_checked {
        return Vec::new();
    }
    match entry::check_unchanged(batch.state, job) {
        Ok(()) => vec![passed(job, chain), Event::JobQueued { job: job.id }],
        Err(text) => refused_with(job, chain, Some(call.position), text),
    }
}

fn passed(job: &Job, chain: &Chain) -> Event {
    Event::FilterChainPassed { job: job.id, kind: chain.spec.kind, chain: chain.spec.number }
}

/// The check after the filters refuses the job: all filters are rolled back (HPC-F-57).
pub(crate) fn refused(job: &Job, filters: &JobFilters, chain: &Chain, text: String) -> Vec<Event> {
    match &filters.ends_after_verdict {
        Some(outcome) => ended(job, chain, None, outcome.clone()),
        None => refused_with(job, chain, None, text),
    }
}

fn refused_with(job: &Job, chain: &Chain, last: Option<u32>, text: String) -> Vec<Event> {
    let failure = Failure { verdict: ChainVerdict::Fail, position: chain.end(), message: text.clone() };
    chain::fail(job.id, chain, last, failure, vec![endings::given_up(job, Outcome::Refused(text))])
}

/// The check after the filters passed the job; the part that needs the state follows (HPC-T-07, HPC-T-08).
pub(crate) fn validated(
    batch: &Batch,
    job: &Job,
    filters: &JobFilters,
    chain: &Chain,
    validated: Validated,
) -> Vec<Event> {
    if let Some(outcome) = &filters.ends_after_verdict {
        return ended(job, chain, None, outcome.clone());
    }
    let Validated { spec, .. } = validated;
    let named = (validated.template.as_deref(), validated.tasks.as_ref());
    let spec = match entry::check(batch.state, job, named, spec, batch.now) {
        Ok(spec) => spec,
        Err(text) => return refused_with(job, chain, None, text),
    };
    let warnings = validated.warnings.clone();
    // Filters cannot change the dialect of a job.
    let spec = JobSpec { dialect: job.dialect.as_deref().map(str::to_owned), ..spec };
    let validated = Arc::new(Validated { spec, ..validated });
    let mut events = Vec::new();
    if !chain.spec.filters.is_empty() {
        events.push(passed(job, chain));
    }
    events.push(Event::JobValidated { job: job.id, validated });
    events.extend(warned(job.id, warnings));
    events.push(Event::JobQueued { job: job.id });
    events
}

/// The answer of an activation filter.
struct Activation<'a> {
    job: &'a Job,
    filters: &'a JobFilters,
    chain: &'a Chain,
    call: CallId,
    answer: Answer<'a>,
    attempt: Attempt,
    /// The filter itself, if it is rolled back with those before it when the chain does not pass.
    last: Option<u32>,
}

impl Activation<'_> {
    fn verdict(self, batch: &mut Batch) -> Vec<Event> {
        let Some(offer) = &self.chain.spec.offer else { return Vec::new() };
        match activation(self.attempt, &self.answer.report.exit).0 {
            ChainVerdict::Pass if self.call.position + 1 < self.chain.end() => Vec::new(),
            ChainVerdict::Pass => self.passed(batch, offer),
            verdict => {
                let follows = self.refused(batch, verdict, offer);
                let message = self.answer.activation_message();
                let failure = Failure { verdict, position: self.call.position, message };
                chain::fail(self.job.id, self.chain, self.last, failure, follows)
            }
        }
    }

    /// All have passed: the job starts, grows, or others make way for it. If that is no longer possible, the filters'
    /// work is undone, and the job is offered again (HPC-F-39).
    fn passed(&self, batch: &mut Batch, offer: &Offer) -> Vec<Event> {
        let (job, run) = (self.job.id, offer.run);
        let mut follows = self.unblocked(batch);
        if let Err(why) = self.can_start(batch, offer) {
            if offer.growth {
                follows.push(Event::GrowthRejected { job, run });
            }
            let failure = Failure { verdict: ChainVerdict::NotNow, position: self.chain.end(), message: why };
            return chain::fail(job, self.chain, self.last, failure, follows);
        }
        let mut events = vec![passed(self.job, self.chain)];
        events.append(&mut follows);
        if offer.growth {
            events.push(Event::RunGrown { job, run, added: offer.placement.clone() });
        } else if !offer.preempts.is_empty() {
            let claims = offer.preempts.iter().copied().zip(offer.claims.iter().cloned());
            events.extend(elastic::make_way(batch.state, self.job, claims, &mut batch.stopping));
        } else {
            events.push(Event::RunAllocated { job, run, placement: offer.placement.clone() });
            if offer.parameters.backfill {
                events.push(Event::RunBackfilled { job, run });
            }
        }
        events
    }

    fn can_start(&self, batch: &Batch, offer: &Offer) -> Result<(), String> {
        if self.chain.is_withdrawn {
            return Err("the offered resources are no longer there".into());
        }
        if offer.growth {
            return offers::recheck_growth(batch.state, offer, batch.now);
        }
        if offer.latest_start.is_some_and(|latest| latest < batch.now) {
            return Err("the job would no longer end in time".into());
        }
        if let Some(blocker) = batch.blocker(self.job) {
            return Err(format!("the activation filter of job {blocker} keeps it from starting"));
        }
        offers::recheck_start(batch.state, self.job, offer, batch.now)
    }

    /// The consequences if the filters did not pass.
    fn refused(&self, batch: &mut Batch, verdict: ChainVerdict, offer: &Offer) -> Vec<Event> {
        let job = self.job.id;
        if offer.growth {
            return vec![Event::GrowthRejected { job, run: offer.run }];
        }
        let mut events = self.unblocked(batch);
        let is_held = self.filters.hold.is_some() || !self.job.holds().is_empty();
        match verdict {
            ChainVerdict::Block if !is_held => events.extend(self.blocked(batch)),
            ChainVerdict::Reserve if !is_held && offer.preempts.is_empty() && !self.chain.is_withdrawn => {
                events.push(Event::ResourcesReserved { job, run: offer.run, placement: offer.placement.clone() });
                return events;
            }
            ChainVerdict::Hold => events.push(self.held(batch)),
            ChainVerdict::Fail => {
                events.push(endings::given_up(self.job, Outcome::Refused(self.answer.activation_failure())));
            }
            _ => {}
        }
        let is_not_now = matches!(verdict, ChainVerdict::NotNow | ChainVerdict::Reserve) && !is_held;
        if let Some(kept) = self.filters.reserved.as_ref().filter(|_| !is_not_now) {
            events.push(Event::ResourcesReleased { job, run: kept.run });
        }
        events
    }

    fn held(&self, batch: &Batch) -> Event {
        let default = batch.state.filter_settings().default_hold_seconds;
        let known = self.filters.hold.map(|(until, _)| until);
        let until = holds::after_verdict(self.answer.report.hold_until, known, default, batch.now);
        Event::JobHeldUntil { job: self.job.id, until, by: HoldBy::Filter }
    }

    fn blocked(&self, batch: &mut Batch) -> Option<Event> {
        let (job, priority) = (self.job.id, self.job.lead().priority);
        let known = batch.blocks.insert(job, priority);
        (known != Some(priority)).then_some(Event::QueueBlocked { job, priority })
    }

    /// A blocker with a verdict other than 1 no longer blocks (HPC-F-32).
    fn unblocked(&self, batch: &mut Batch) -> Vec<Event> {
        let job = self.job.id;
        let stays = self.attempt == Attempt::Growth || self.answer.report.exit == FilterExit::Code(1);
        let was_blocked = !stays && batch.blocks.remove(&job).is_some();
        if was_blocked { vec![Event::QueueUnblocked { job }] } else { Vec::new() }
    }
}
