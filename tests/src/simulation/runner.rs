//! Models of filter-runners: they claim offered calls, make them for a while, and report; or stop in the middle and
//! have forgotten everything afterwards.

use muster_schemas::{
    CommandId, Timestamp,
    command::{Answer, CallOutcome, CallReport, Command, Reply},
    event::Validated,
    filter::{
        CallId, FileAfter, FilterAction, FilterExit, FilterHold, FilterKind, FilterReport, JobDocument, PropertyChange,
    },
    filter_order::{DescribedJob, FilterOrder, FilterWork},
};
use rand::{Rng, rngs::SmallRng};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

#[derive(Debug)]
pub(super) struct RunnerHost {
    is_up: bool,
    /// Unanswered claims.
    claims: BTreeMap<CommandId, Arc<FilterOrder>>,
    /// Calls that are being made.
    calls: BTreeSet<(CallId, u32)>,
}

/// An answered claim.
pub(super) struct Claim {
    pub(super) order: Arc<FilterOrder>,
    /// Whether the call is the runner's to make.
    pub(super) is_mine: bool,
}

/// The name of a runner.
pub(super) fn name(number: usize) -> String {
    format!("runner{}", number + 1)
}

impl RunnerHost {
    pub(super) fn new() -> Self {
        Self { is_up: true, claims: BTreeMap::new(), calls: BTreeSet::new() }
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    pub(super) fn is_idle(&self) -> bool {
        self.claims.is_empty() && self.calls.is_empty()
    }

    pub(super) fn stops(&mut self) {
        *self = Self { is_up: false, ..Self::new() };
    }

    pub(super) fn starts(&mut self) {
        self.is_up = true;
    }

    /// The claim of an offered call, unless it has the call already.
    pub(super) fn offered(&mut self, order: Arc<FilterOrder>, id: CommandId) -> Option<Command> {
        let attempt = (order.call, order.attempt);
        let is_claimed = self.claims.values().any(|claimed| (claimed.call, claimed.attempt) == attempt);
        if !self.is_up || is_claimed || self.calls.contains(&attempt) {
            return None;
        }
        self.claims.insert(id, order);
        Some(Command::ClaimCalls { calls: vec![attempt] })
    }

    /// The result of the claim that this answers.
    pub(super) fn answered(&mut self, id: CommandId, answer: &Answer) -> Option<Claim> {
        let order = self.claims.remove(&id)?;
        let is_mine = matches!(&answer.result, Ok(Reply::Claimed(mine)) if mine.first() == Some(&true));
        if is_mine {
            self.calls.insert((order.call, order.attempt));
        }
        Some(Claim { order, is_mine })
    }

    /// The report on a call that ends now; `None` if the runner has stopped meanwhile.
    pub(super) fn ends(&mut self, order: &FilterOrder, outcome: CallOutcome, has_others: bool) -> Option<Command> {
        let (call, attempt) = (order.call, order.attempt);
        self.calls
            .remove(&(call, attempt))
            .then(|| Command::ReportCalls { reports: vec![CallReport { call, attempt, outcome }], has_others })
    }
}

/// The outcome of a call, at random; without faults every filter passes.
pub(super) fn outcome(random: &mut SmallRng, order: &FilterOrder, troubled: bool, now: Timestamp) -> CallOutcome {
    match order.work {
        FilterWork::Validate { .. } => validation(random, &order.job, troubled, now),
        FilterWork::Filter { .. } => CallOutcome::Called(Box::new(report(random, order.call, troubled, now))),
    }
}

/// The check accepts the job as it was submitted.
fn validation(random: &mut SmallRng, job: &DescribedJob, troubled: bool, now: Timestamp) -> CallOutcome {
    if troubled && random.random_range(0..6) == 0 {
        return CallOutcome::Refused("[TemplateValueTooLarge] template 'small': RunTime = 2:0, allowed 1:0".into());
    }
    let hold = troubled && random.random_range(0..10) == 0;
    CallOutcome::Validated(Box::new(Validated {
        template: Some("small".into()),
        revision: 1,
        spec: (*job.spec).clone(),
        tasks: job.tasks.as_deref().cloned(),
        document: Some(JobDocument::xml(*b"<Job/>")),
        hold_until: hold.then(|| now.plus_seconds(90)),
        ..Validated::default()
    }))
}

fn report(random: &mut SmallRng, call: CallId, troubled: bool, now: Timestamp) -> FilterReport {
    let exit = if troubled { exit(random, call) } else { FilterExit::Code(0) };
    let file = if call.kind == FilterKind::Submission && exit == FilterExit::Code(1) {
        FileAfter::Changed {
            document: JobDocument::xml(format!("<Job Name=\"{}\"/>", random.random_range(0..100)).into_bytes()),
            changes: vec![PropertyChange { property: "Priority".into(), old: None, new: Some("Lowest".into()) }],
            template: None,
        }
    } else {
        FileAfter::Unchanged
    };
    let hold_until = match random.random_range(0..3) {
        0 => None,
        1 => Some(FilterHold::Seconds(random.random_range(-5..100))),
        _ => Some(FilterHold::At(now.plus_seconds(random.random_range(-5..100)))),
    };
    FilterReport { exit, file, hold_until, duration_micros: 1_000, ..FilterReport::runner_lost() }
}

fn exit(random: &mut SmallRng, call: CallId) -> FilterExit {
    let refusals: u8 = match (call.action, call.kind) {
        (FilterAction::Revert, _) => 1,
        (FilterAction::Filter, FilterKind::Submission) => 2,
        (FilterAction::Filter, FilterKind::Activation) => 5,
        (FilterAction::Filter, FilterKind::StageIn | FilterKind::StageOut) => 1,
    };
    match random.random_range(0..34) {
        0 => FilterExit::TimedOut,
        1 => FilterExit::NotFound("/no/such/filter".into()),
        2 => FilterExit::Signal(9),
        3..=7 => FilterExit::Code(random.random_range(1..=refusals)),
        _ => FilterExit::Code(0),
    }
}
