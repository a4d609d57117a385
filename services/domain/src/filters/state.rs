//! The state of filters: templates and settings, and for each affected job its chain, the resources set aside or kept
//! for it, and its timed hold.

use muster_schemas::{
    JobId, RunId, Sequence, Timestamp,
    event::HoldBy,
    filter::{CallId, ChainSpec, ChainVerdict, FilterSettings, JobWarning, Offer, TemplateSpec},
    job::Outcome,
    resources::{Alternative, Placement},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// How long after its time limit an unanswered call is offered to others (HPC-F-85).
const SIGN_OF_LIFE_SECONDS: i64 = 10;

/// The template of jobs that name none. It always exists; it is empty until somebody sets it (HPC-T-01).
pub const DEFAULT_TEMPLATE: &str = "Default";

/// The part that concerns all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilterState {
    /// The cluster-wide filters, and how filters are called.
    pub(crate) settings: Arc<FilterSettings>,
    /// Templates by their names in lower case.
    pub(crate) templates: BTreeMap<String, Arc<TemplateSpec>>,
    /// How often templates were created or changed; the source of revisions.
    pub(crate) template_revisions: u64,
    /// The number of the last chain.
    pub(crate) last_chain: u64,
    /// Hashes of programs by path, as runners last found them.
    pub(crate) program_hashes: BTreeMap<String, String>,
    /// How many planners have started work.
    pub(crate) planner_epoch: u64,
    /// Jobs that keep others of a priority and below from starting, with that priority.
    pub(crate) blocks: BTreeMap<JobId, i64>,
    /// Since when runners are known to be missing.
    pub(crate) runners_missing: Option<Timestamp>,
}

/// How filters, a template or a timed hold affect a job. Most jobs have none of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFilters {
    /// The template that it names, as written.
    pub template: Option<Arc<str>>,
    /// The revision of the template that it was checked against, if it was.
    pub revision: Option<u64>,
    /// How far it has come on its way into the queue.
    pub entry: Entry,
    /// The record with its specification as submitted; `None` if that is [`crate::jobs::Job::submitted_sequence`].
    pub original: Option<Sequence>,
    /// The record with its description as received, if it has one.
    pub received: Option<Sequence>,
    /// The record with its description including all defaults, if it was checked.
    pub validated: Option<Sequence>,
    /// The current chain: it has an outstanding call, or is being rolled back.
    pub chain: Option<Box<Chain>>,
    /// Until when it is held, and by whom.
    pub hold: Option<(Timestamp, HoldBy)>,
    /// The last activation chain that did not pass.
    pub refusal: Option<Refusal>,
    /// The resources kept for it by its activation filter.
    pub reserved: Option<Kept>,
    /// Whether its activation filters have passed and running jobs make way for it: it starts without another call.
    pub is_granted: bool,
    /// The chain that granted this, which is rolled back if the job does not start after all.
    pub granted_by: Option<Box<Chain>>,
    /// Whether its run was backfilled around a waiting job.
    pub is_backfill: bool,
    /// Warnings for people.
    pub warnings: Vec<JobWarning>,
    /// A message about it, from a filter or from the person who cancelled it.
    pub message: Option<String>,
    /// How it ends as soon as the outstanding verdict arrives (HPC-F-23, HPC-F-68).
    pub ends_after_verdict: Option<Outcome>,
}

/// How far a job has come on its way into the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// Its owner is still configuring it.
    Configuring,
    /// Submission filters judge it.
    Filtering,
    /// The check after the filters judges it.
    Validating,
    /// It is in the queue, or has been.
    #[default]
    Entered,
    /// It was refused on the way.
    Refused,
}

/// A chain in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The chain as it was when it began.
    pub spec: Arc<ChainSpec>,
    /// The record of its start.
    pub started: Sequence,
    /// The outstanding call, if any.
    pub call: Option<OutstandingCall>,
    /// The filters that have passed, in order: the position of each, and what it changed.
    pub passed: Vec<Passed>,
    /// How it ended, if it did not pass. `passed` then has what is still to be rolled back.
    pub failure: Option<ChainVerdict>,
    /// Whether the offered resources are gone, so that the job cannot start by this chain (HPC-F-39).
    pub is_withdrawn: bool,
    /// Whether the offer was kept for the job before, so that the chain holds up no other job (HPC-F-82).
    pub was_reserved: bool,
    /// The job as shown to its filters: as it was when the chain began, so that a revert sees the same (HPC-F-53).
    pub told: Told,
}

/// The facts shown to filters that may change during the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Its name.
    pub name: Arc<str>,
    /// Its priority.
    pub priority: i64,
    /// Its walltime, in seconds.
    pub walltime_seconds: Option<u64>,
    /// The request of its first component.
    pub alternatives: Arc<[Alternative]>,
}

/// A filter that has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Its position in the chain.
    pub position: u32,
    /// The record of its verdict, with what it returned, if it changed the description. Otherwise it returned what it
    /// was given, by the nearest filter before it that made a change.
    pub changed: Option<Sequence>,
    /// The template that a changed description names, if any (HPC-F-18).
    pub template: Option<Arc<str>>,
}

/// An outstanding call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutstandingCall {
    /// Its id.
    pub id: CallId,
    /// Since when it is outstanding.
    pub since: Timestamp,
    /// The record of the last offer.
    pub offered: Sequence,
    /// The number of the attempt that is offered or was handed out, from 1.
    pub attempt: u32,
    /// The runner that has it, and since when; `None` while it waits for a runner.
    pub claimed: Option<(Arc<str>, Timestamp)>,
    /// The runner that does not have the program, and since when others are asked.
    pub absent_on: Option<(Arc<str>, Timestamp)>,
}

/// An activation chain that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// When it ended.
    pub at: Timestamp,
    /// The meaning of the answer.
    pub verdict: ChainVerdict,
    /// The name of the filter that ended it.
    pub filter: Arc<str>,
    /// The filters are not asked again before this time.
    pub ask_again: Timestamp,
}

/// Resources kept for a waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The number that its run will have.
    pub run: RunId,
    /// The resources.
    pub placement: Arc<Placement>,
}

impl JobFilters {
    /// Whether none of this prevents planning of the job: it is in the queue, no chain of filters is in progress, and it has
    /// no timed hold.
    pub fn is_open(&self) -> bool {
        self.entry == Entry::Entered && self.chain.is_none() && self.hold.is_none()
    }

    /// Resources set aside or kept for it: the offer of an activation chain for a start, or what its filter reserved.
    pub fn kept(&self) -> Option<(RunId, &Arc<Placement>)> {
        let offered = self.chain.as_ref().and_then(|chain| chain.set_aside());
        let offered = offered.filter(|offer| !offer.growth && offer.preempts.is_empty());
        let offered = offered.map(|offer| (offer.run, &offer.placement));
        offered.or_else(|| self.reserved.as_ref().map(|kept| (kept.run, &kept.placement)))
    }

    /// Whether a chain is in progress or granted a start, or something is kept.
    pub(crate) fn has_claims(&self) -> bool {
        self.chain.is_some() || self.reserved.is_some() || self.granted_by.is_some()
    }

    /// The part that belongs to a separately judged task of an array.
    pub(crate) fn of_task(&self) -> Self {
        Self {
            template: self.template.clone(),
            revision: self.revision,
            original: self.original,
            received: self.received,
            validated: self.validated,
            ..Self::default()
        }
    }

    /// The job is over. Filters that still have to undo their work are called nevertheless; a filter that is being
    /// called undoes its work after the answer.
    pub(crate) fn end(&mut self, outcome: &Outcome) {
        if self.entry != Entry::Entered {
            self.entry = Entry::Refused;
        }
        if self.chain.as_ref().is_some_and(|chain| chain.spec.filters.is_empty()) {
            self.chain = None;
        }
        self.hold = None;
        self.refusal = None;
        self.ends_after_verdict = self.is_judged().then(|| outcome.clone());
    }

    /// The outstanding call.
    pub fn call(&self) -> Option<&OutstandingCall> {
        self.chain.as_ref()?.call.as_ref()
    }

    /// Whether a verdict is outstanding.
    pub fn is_judged(&self) -> bool {
        self.chain.as_ref().is_some_and(|chain| chain.call.is_some() && chain.failure.is_none())
    }

    /// When something is due: the end of the hold of a waiting job, or the silence of a runner.
    pub(crate) fn due(&self, is_waiting: bool) -> Option<Timestamp> {
        let hold = self.hold.filter(|_| is_waiting).map(|(until, _)| until);
        hold.into_iter().chain(self.chain.as_ref().and_then(|chain| chain.silent_at())).min()
    }

    /// Whether a runner has a call now, so that nothing else happens to the chain before the answer.
    pub fn is_called(&self) -> bool {
        self.call().is_some_and(|call| call.claimed.is_some())
    }
}

impl Chain {
    /// The offer that it has set aside: while it judges, unless withdrawn.
    pub fn set_aside(&self) -> Option<&Offer> {
        self.spec.offer.as_ref().filter(|_| self.failure.is_none() && !self.is_withdrawn)
    }

    /// Whether its verdict keeps jobs of equal and lower priority from starting with strict ordering: it judges a
    /// start, not as backfill, and not on resources already reserved for the job (HPC-F-82).
    pub fn holds_up_others(&self) -> bool {
        let starts = |offer: &Offer| !offer.growth && !offer.parameters.backfill;
        self.failure.is_none() && !self.was_reserved && self.spec.offer.as_ref().is_some_and(starts)
    }

    /// When the runner that has the call is considered lost: it has been silent for the time limit and ten seconds
    /// (HPC-F-85).
    pub(crate) fn silent_at(&self) -> Option<Timestamp> {
        let (_, since) = self.call.as_ref()?.claimed.as_ref()?;
        Some(since.plus_seconds(i64::from(self.spec.limit_seconds) + SIGN_OF_LIFE_SECONDS))
    }

    /// The position of the validation, one past the last filter.
    pub fn end(&self) -> u32 {
        u32::try_from(self.spec.filters.len()).unwrap_or(u32::MAX)
    }
}
