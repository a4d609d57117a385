//! Which filter-runners have reported lately, and their briefings. This is not history: a ledger that starts has yet to
//! hear from every runner.

use muster_domain::{State, filters::OutstandingCall};
use muster_schemas::{
    Timestamp,
    filter::{CallId, FilterAction, FilterForm, FilterKind, FilterSpec},
    filter_order::{RunnerBriefing, RunnerHeartbeat},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// A runner that has not been heard of for this long is gone; it reports every 3 s.
const GONE_AFTER: Duration = Duration::from_secs(10);
/// How often the ledger looks for lost calls of the staging program.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A call of the staging program that no runner has reported for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(20);
/// Calls that still wait this long after the last runner has gone are worth an alert (HPC-F-87).
const MISSED_AFTER: Duration = Duration::from_secs(60);

/// The runners of the cluster.
#[derive(Debug)]
pub(crate) struct Runners {
    heard: BTreeMap<String, Heard>,
    /// When a runner last reported; initially, when this ledger began to listen.
    last_heard: (Instant, Timestamp),
    /// Whether the alert of this absence was given.
    is_told: bool,
    /// When a runner last reported this call, or when it was first looked for.
    in_hand: BTreeMap<CallId, Instant>,
    /// When to look next for lost calls.
    next_look: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Instant,
    is_free: bool,
}

impl Runners {
    /// No runner known yet.
    pub(crate) fn new(now: Instant, time: Timestamp) -> Self {
        Self {
            heard: BTreeMap::new(),
            last_heard: (now, time),
            is_told: false,
            in_hand: BTreeMap::new(),
            next_look: now,
        }
    }

    /// A runner reports.
    pub(crate) fn beat(&mut self, heartbeat: &RunnerHeartbeat, now: Instant, time: Timestamp) {
        self.heard.insert(heartbeat.runner.clone(), Heard { at: now, is_free: heartbeat.is_free });
        for call in heartbeat.calls.iter().filter(|call| call.kind.is_staging()) {
            self.in_hand.insert(*call, now);
        }
        self.note(now, time);
    }

    /// A runner claims or reports calls, which also shows that it is alive.
    pub(crate) fn acted(&mut self, runner: &str, now: Instant, time: Timestamp) {
        match self.heard.get_mut(runner) {
            Some(heard) => heard.at = now,
            None => drop(self.heard.insert(runner.to_owned(), Heard { at: now, is_free: false })),
        }
        self.note(now, time);
    }

    fn note(&mut self, now: Instant, time: Timestamp) {
        self.last_heard = (now, time);
        self.is_told = false;
    }

    /// Whether a runner other than this one is there (HPC-F-91).
    pub(crate) fn has_others(&self, than: &str, now: Instant) -> bool {
        self.there(now).any(|(name, _)| name != than)
    }

    /// Whether a runner waits for calls, so that a queued call is taken at once.
    pub(crate) fn is_one_free(&self, now: Instant) -> bool {
        self.there(now).any(|(_, heard)| heard.is_free)
    }

    fn there(&self, now: Instant) -> impl Iterator<Item = (&str, &Heard)> {
        let is_there = move |heard: &Heard| now.saturating_duration_since(heard.at) < GONE_AFTER;
        self.heard.iter().filter(move |(_, heard)| is_there(heard)).map(|(name, heard)| (name.as_str(), heard))
    }

    /// Calls of the staging program that a runner has claimed and no runner has reported for too long: the runner has
    /// ended or was restarted. Such calls may take hours, so this does not wait for their time limit.
    pub(crate) fn lost_calls(&mut self, state: &State, now: Instant) -> Vec<CallId> {
        if now < self.next_look || state.staging_settings().program.is_none() {
            return Vec::new();
        }
        self.next_look = now + LOOK_EVERY;
        let is_claimed = |call: &&OutstandingCall| call.id.kind.is_staging() && call.claimed.is_some();
        let claimed: BTreeMap<CallId, Instant> = state
            .outstanding_calls()
            .filter(is_claimed)
            .map(|call| (call.id, self.in_hand.get(&call.id).copied().unwrap_or(now)))
            .collect();
        self.in_hand = claimed;
        let is_lost = |since: &Instant| now.saturating_duration_since(*since) >= LOST_AFTER;
        let lost: Vec<CallId> =
            self.in_hand.iter().filter(|(_, since)| is_lost(since)).map(|(call, _)| *call).collect();
        self.in_hand.retain(|call, _| !lost.contains(call));
        lost
    }

    /// Since when calls have waited while no runner was there, if that is long enough for an alert; once for each
    /// absence.
    pub(crate) fn missing(&mut self, state: &State, now: Instant, time: Timestamp) -> Option<Timestamp> {
        let (heard_at, heard_time) = self.last_heard;
        if self.is_told || now.saturating_duration_since(heard_at) < MISSED_AFTER {
            return None;
        }
        self.heard.clear();
        let since = state.outstanding_calls().map(|call| call.since).min()?.max(heard_time);
        let is_long = time.micros_since(since) >= i64::try_from(MISSED_AFTER.as_micros()).unwrap_or(i64::MAX);
        self.is_told = is_long;
        is_long.then_some(since)
    }
}

/// The briefing for a runner that has these calls in hand.
pub(crate) fn briefing(state: &State, calls: &[CallId]) -> RunnerBriefing {
    let settings = state.filter_settings();
    let of_templates =
        state.templates().flat_map(|template| template.submission_filters.iter().chain(&template.activation_filters));
    let all = settings.submission.iter().chain(&settings.activation).chain(of_templates);
    let persistent: Vec<FilterSpec> = all.filter(|filter| filter.form == FilterForm::Persistent).cloned().collect();
    let given_up = calls.iter().copied().filter(|call| is_given_up(state, *call)).collect();
    RunnerBriefing { persistent, given_up }
}

/// Whether the result of a call no longer matters, because its job will end or its chain is over. A call that another
/// runner has answered is not ended: its answer is recorded as late (HPC-F-86).
fn is_given_up(state: &State, call: CallId) -> bool {
    let Some(job) = state.job(call.job) else { return true };
    let Some(filtering) = &job.filters else { return true };
    let Some(chain) = &filtering.chain else { return job.is_finished() };
    if chain.spec.number != call.chain || call.action == FilterAction::Revert {
        return false;
    }
    if chain.call.as_ref().is_none_or(|outstanding| outstanding.id != call) {
        return chain.failure.is_some();
    }
    // A cancel ends the call of a submission filter (HPC-F-23), and stage-in. It waits for that of an activation filter
    // (HPC-F-68).
    let is_ended = matches!(call.kind, FilterKind::Submission | FilterKind::StageIn);
    is_ended && filtering.ends_after_verdict.is_some()
}
