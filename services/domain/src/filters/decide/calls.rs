//! Requests and reports of runners: claims, answers, silence.

use crate::{
    decide::{Access, Decision, invalid},
    filters::{
        Chain, JobFilters, OutstandingCall, chain,
        decide::verdicts::{self, Batch},
        verdict::Answer,
    },
    jobs::Job,
    state::State,
};
use muster_schemas::{
    JobId, Timestamp,
    command::{CallOutcome, CallReport, Refusal, Reply},
    event::Event,
    filter::{CallId, FilterAction, FilterExit, FilterReport},
};
use std::{collections::BTreeSet, sync::Arc};

/// The greatest number of calls in a command.
const MAX_CALLS: usize = 100_000;

/// How often a call is handed out at most (HPC-F-85).
const MAX_ATTEMPTS: u32 = 3;

/// How long others are asked for a program that one runner does not have (HPC-F-91).
const OTHERS_ASKED_SECONDS: i64 = 10;

/// The job and chain of an outstanding call.
fn outstanding<'a>(
    state: &'a State,
    call: &CallId,
) -> Option<(&'a Job, &'a JobFilters, &'a Chain, &'a OutstandingCall)> {
    let job = state.job(call.job)?;
    let filters = job.filters.as_deref()?;
    let chain = filters.chain.as_deref()?;
    let outstanding = chain.call.as_ref().filter(|outstanding| outstanding.id == *call)?;
    Some((job, filters, chain, outstanding))
}

/// A runner is about to make calls: it gets those that no other runner has (HPC-F-84).
pub(crate) fn claim(access: &Access, calls: &[(CallId, u32)], now: Timestamp) -> Result<Decision, Refusal> {
    let runner = access.require_runner()?;
    require_number(calls.len())?;
    let mut events = Vec::new();
    let mut taken = BTreeSet::new();
    let mut claimed = Vec::with_capacity(calls.len());
    for (call, attempt) in calls {
        let is_free = outstanding(access.state, call)
            .is_some_and(|(.., outstanding)| may_claim(outstanding, runner, *attempt, now));
        let is_own = is_free && taken.insert(*call);
        claimed.push(is_own);
        if is_own {
            events.push(Event::FilterInvoked { call: *call, attempt: *attempt, runner: runner.to_owned() });
        }
    }
    Ok(Decision { events, reply: Reply::Claimed(claimed) })
}

fn require_number(calls: usize) -> Result<(), Refusal> {
    if calls > MAX_CALLS {
        return Err(invalid(format!("{calls} calls named, at most {MAX_CALLS} can be in one command")));
    }
    Ok(())
}

fn may_claim(call: &OutstandingCall, runner: &str, attempt: u32, now: Timestamp) -> bool {
    let has_no_program = call
        .absent_on
        .as_ref()
        .is_some_and(|(absent_on, since)| **absent_on == *runner && now < since.plus_seconds(OTHERS_ASKED_SECONDS));
    call.claimed.is_none() && call.attempt == attempt && !has_no_program
}

/// The outcomes of calls. The first answer of any attempt counts; later ones change nothing (HPC-F-86).
pub(crate) fn report(
    access: &Access,
    reports: Vec<CallReport>,
    has_others: bool,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let runner = access.require_caller()?;
    require_number(reports.len())?;
    let mut batch = Batch::new(access.state, now);
    let mut answered = BTreeSet::new();
    let mut events = Vec::new();
    for CallReport { call, attempt, outcome } in reports {
        let known = outstanding(access.state, &call).filter(|_| !answered.contains(&call));
        let Some((job, filters, chain, outstanding)) = known else {
            events.push(late(call, attempt, runner, &outcome));
            continue;
        };
        require_kind(chain, &call, &outcome)?;
        answered.insert(call);
        // Another runner means another attempt, and attempts are limited.
        let may_go_on = outstanding.absent_on.is_none() && outstanding.attempt < MAX_ATTEMPTS;
        if has_others && may_go_on && is_absent(&outcome) {
            events.push(Event::FilterElsewhere { call, runner: runner.to_owned() });
            continue;
        }
        events.extend(answer(&mut batch, job, filters, chain, call, outcome));
    }
    Ok(Decision::done(events))
}

fn late(call: CallId, attempt: u32, runner: &str, outcome: &CallOutcome) -> Event {
    let exit = match outcome {
        CallOutcome::Called(report) => report.exit.clone(),
        CallOutcome::Validated(_) => FilterExit::Code(0),
        CallOutcome::Refused(_) => FilterExit::Code(1),
    };
    Event::FilterLateResult { call, attempt, runner: runner.to_owned(), exit }
}

fn is_absent(outcome: &CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Called(report) if report.exit.is_absent())
}

/// Whether the answer has the kind that the call expects.
fn require_kind(chain: &Chain, call: &CallId, outcome: &CallOutcome) -> Result<(), Refusal> {
    let is_validation = call.position >= chain.end();
    let is_called = matches!(outcome, CallOutcome::Called(_));
    match (is_validation, is_called) {
        (true, true) => Err(invalid(format!("call {call}: the check of a job cannot be answered as a filter is"))),
        (false, false) => Err(invalid(format!("call {call}: a filter cannot be answered as the check of a job is"))),
        _ => Ok(()),
    }
}

/// The effect of the first answer to a call.
fn answer(
    batch: &mut Batch,
    job: &Job,
    filters: &JobFilters,
    chain: &Chain,
    call: CallId,
    outcome: CallOutcome,
) -> Vec<Event> {
    match outcome {
        CallOutcome::Called(report) if call.action == FilterAction::Revert => reverted(job.id, chain, call, *report),
        CallOutcome::Called(report) => verdicts::called(batch, job, filters, chain, call, *report),
        CallOutcome::Validated(validated) => verdicts::validated(batch, job, filters, chain, *validated),
        CallOutcome::Refused(text) => verdicts::refused(job, filters, chain, text),
    }
}

/// A filter was asked to undo its work. Whatever the result, the next one is asked (HPC-F-54).
fn reverted(job: JobId, chain: &Chain, call: CallId, report: FilterReport) -> Vec<Event> {
    let report = Arc::new(report);
    let filter = chain.spec.filters.get(call.position as usize);
    let answer =
        filter.map(|filter| Answer { filter: &filter.spec, limit_seconds: chain.spec.limit_seconds, report: &report });
    let warning = answer.and_then(|answer| answer.revert_warning());
    let mut events = vec![match warning {
        None => Event::FilterReverted { call, report: report.clone() },
        Some(_) => Event::FilterRevertFailed { call, report: report.clone() },
    }];
    events.extend(chain::warned(job, report.warnings.clone().into_iter().chain(warning).collect()));
    let left: Vec<u32> = chain.passed.iter().map(|passed| passed.position).collect();
    let left = left.split_last().map_or(&[][..], |(_, left)| left);
    events.extend(chain::go_on_with_rollback(job, &chain.spec, left));
    events
}

/// A runner has a call and has been silent too long: the call is offered to others, or given up after the last attempt
/// (HPC-F-85).
pub(crate) fn silent(state: &State, id: JobId, now: Timestamp) -> Vec<Event> {
    let chain = state.job(id).and_then(|job| job.filters.as_deref()?.chain.as_deref());
    let Some(chain) = chain.filter(|chain| chain.silent_at().is_some_and(|time| time <= now)) else {
        return Vec::new();
    };
    chain.call.as_ref().map_or_else(Vec::new, |call| offered_again(state, &call.id, now))
}

/// Calls that their runners no longer have.
pub(crate) fn lost(access: &Access, calls: &[CallId], now: Timestamp) -> Result<Decision, Refusal> {
    access.require_ledger()?;
    require_number(calls.len())?;
    let state = access.state;
    let claimed = |call: &&CallId| outstanding(state, call).is_some_and(|(.., call)| call.claimed.is_some());
    let calls: BTreeSet<&CallId> = calls.iter().filter(claimed).collect();
    Ok(Decision::done(calls.into_iter().flat_map(|call| offered_again(state, call, now)).collect()))
}

/// Offers an outstanding call to others, or gives it up after the last attempt.
fn offered_again(state: &State, call: &CallId, now: Timestamp) -> Vec<Event> {
    let Some((job, filters, chain, call)) = outstanding(state, call) else { return Vec::new() };
    if call.attempt < MAX_ATTEMPTS {
        return vec![Event::FilterOfferedAgain { call: call.id, attempt: call.attempt + 1 }];
    }
    let outcome = if call.id.position >= chain.end() {
        let text = "[SubmissionFilterRunnerLost] the check of the job's description got no answer from a runner";
        CallOutcome::Refused(text.to_owned())
    } else {
        CallOutcome::Called(Box::new(FilterReport::runner_lost()))
    };
    answer(&mut Batch::new(state, now), job, filters, chain, call.id, outcome)
}

/// Calls wait and there is no runner (HPC-F-87). Recorded once, until a runner takes a call.
pub(crate) fn runners_missing(access: &Access, since: Timestamp) -> Result<Decision, Refusal> {
    access.require_ledger()?;
    let calls = access.state.outstanding_calls().count() as u64;
    let is_news = calls > 0 && access.state.filters.runners_missing.is_none();
    Ok(Decision::done(if is_news { vec![Event::FilterRunnersMissing { since, calls }] } else { Vec::new() }))
}
