//! The state's knowledge of filters: templates and settings, and for each job that they concern its chain, what is
//! set aside or kept for it, and until when it is held.

use muster_schemas::{
    JobId, RunId, Sequence, Timestamp,
    event::HoldBy,
    filter::{CallId, ChainSpec, ChainVerdict, FilterSettings, JobWarning, Offer, TemplateSpec},
    job::Outcome,
    resources::{Alternative, Placement},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// So long after its time limit a call without an answer is offered to others (HPC-F-85).
const SIGN_OF_LIFE_SECONDS: i64 = 10;

/// The template of jobs that name none. It is there, without anything in it, before anybody made it (HPC-T-01).
pub const DEFAULT_TEMPLATE: &str = "Default";

/// The part that concerns all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilterState {
    /// The cluster-wide filters, and how filters are called.
    pub(crate) settings: Arc<FilterSettings>,
    /// Templates by their names in lower case.
    pub(crate) templates: BTreeMap<String, Arc<TemplateSpec>>,
    /// How often templates were made or changed; revisions are taken from it.
    pub(crate) template_revisions: u64,
    /// The number of the last chain.
    pub(crate) last_chain: u64,
    /// Hashes of programs, as runners last found them, by path.
    pub(crate) program_hashes: BTreeMap<String, String>,
    /// How many planners have begun their work.
    pub(crate) planner_epoch: u64,
    /// Jobs that keep others of their priority and below from starting, with that priority.
    pub(crate) blocks: BTreeMap<JobId, i64>,
    /// Since when runners are known to be missing.
    pub(crate) runners_missing: Option<Timestamp>,
}

/// How filters, a template or a timed hold affect a job. Most jobs have none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFilters {
    /// The template that it names, as it was written.
    pub template: Option<Arc<str>>,
    /// The revision of the template that it was checked against, if it was.
    pub revision: Option<u64>,
    /// How far it is on its way into the queue.
    pub entry: Entry,
    /// The record that has its specification as it was submitted; `None` if [`crate::jobs::Job::submitted_sequence`] is it.
    pub original: Option<Sequence>,
    /// The record that has its description as it was received, if it has one.
    pub received: Option<Sequence>,
    /// The record that has its description with all defaults, if it was checked.
    pub validated: Option<Sequence>,
    /// The chain that is under way: calls are outstanding, or it is being rolled back.
    pub chain: Option<Box<Chain>>,
    /// Until when it is held, and by whom.
    pub hold: Option<(Timestamp, HoldBy)>,
    /// The last activation chain that did not pass.
    pub refusal: Option<Refusal>,
    /// The resources that its activation filter had kept for it.
    pub reserved: Option<Kept>,
    /// Its activation filters have passed and running jobs make way for it: it starts without being asked again.
    pub is_granted: bool,
    /// The chain that granted it so, which is rolled back if it does not start after all.
    pub granted_by: Option<Box<Chain>>,
    /// Whether its run went around a job that waited.
    pub is_backfill: bool,
    /// Warnings that people should see.
    pub warnings: Vec<JobWarning>,
    /// A message about it, from a filter or from the person who cancelled it.
    pub message: Option<String>,
    /// It ends so as soon as the verdict that is outstanding is there (HPC-F-23, HPC-F-68).
    pub ends_after_verdict: Option<Outcome>,
}

/// How far a job is on its way into the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// Its owner is still making it.
    Configuring,
    /// Submission filters judge it.
    Filtering,
    /// The check behind the filters judges it.
    Validating,
    /// It is in the queue, or has been.
    #[default]
    Entered,
    /// It was refused on the way.
    Refused,
}

/// A chain that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The chain as it was when it began.
    pub spec: Arc<ChainSpec>,
    /// The record of its beginning.
    pub started: Sequence,
    /// The call that is outstanding, if one is.
    pub call: Option<OutstandingCall>,
    /// The filters that have passed, in order: for each its position and what it was given and gave back.
    pub passed: Vec<Passed>,
    /// If it did not pass: how it ended. Then `passed` has what is still to be rolled back.
    pub failure: Option<ChainVerdict>,
    /// The offered resources are no longer there, so that the job cannot start by this chain (HPC-F-39).
    pub is_withdrawn: bool,
    /// Whether what is offered was kept for the job before, so that the chain holds up no other job (HPC-F-82).
    pub was_reserved: bool,
    /// The job as its filters are told: as it was when the chain began, so that a revert is told the same (HPC-F-53).
    pub told: Told,
}

/// The facts that filters are told about a job that may change while they are called.
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
    /// Its place in the chain.
    pub position: u32,
    /// The record of its verdict if it changed the description: what it gave back is there. Else it gave back what it was
    /// given, which is what the nearest one before gave back.
    pub changed: Option<Sequence>,
    /// The template that a changed description names, if it names one (HPC-F-18).
    pub template: Option<Arc<str>>,
}

/// A call that is outstanding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutstandingCall {
    /// Which.
    pub id: CallId,
    /// Since when.
    pub since: Timestamp,
    /// The record that offered it last.
    pub offered: Sequence,
    /// The attempt that it is offered as, or was handed out as, from 1.
    pub attempt: u32,
    /// The runner that has it, and since when; `None` while it waits for a runner.
    pub claimed: Option<(Arc<str>, Timestamp)>,
    /// The runner that does not have the program, and since when others are asked.
    pub absent_on: Option<(Arc<str>, Timestamp)>,
}

/// An activation chain that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// When.
    pub at: Timestamp,
    /// The meaning of the answer.
    pub verdict: ChainVerdict,
    /// The name of the filter that ended it.
    pub filter: Arc<str>,
    /// Not before then are the filters asked again.
    pub ask_again: Timestamp,
}

/// Resources that are kept for a job that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The number that its run will have.
    pub run: RunId,
    /// What.
    pub placement: Arc<Placement>,
}

impl JobFilters {
    /// Whether nothing of it keeps the job from being planned: it is in the queue, no activation chain is under way, it is not
    /// held until a time, and its filters may be asked again.
    pub fn is_open(&self) -> bool {
        self.entry == Entry::Entered && self.chain.is_none() && self.hold.is_none()
    }

    /// Resources set aside or kept for it: the candidates of an activation chain for a start, or those that its
    /// filter reserved.
    pub fn kept(&self) -> Option<(RunId, &Arc<Placement>)> {
        let offered = self.chain.as_ref().and_then(|chain| chain.set_aside());
        let offered = offered.filter(|offer| !offer.growth && offer.preempts.is_empty());
        let offered = offered.map(|offer| (offer.run, &offer.placement));
        offered.or_else(|| self.reserved.as_ref().map(|kept| (kept.run, &kept.placement)))
    }

    /// Whether a chain is under way, or one granted a start, or something is kept.
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

    /// The job is over. Filters that still have to undo their work are called all the same, and one that a runner is
    /// asking now when it has answered.
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

    /// The call that is outstanding.
    pub fn call(&self) -> Option<&OutstandingCall> {
        self.chain.as_ref()?.call.as_ref()
    }

    /// Whether an answer that judges is outstanding.
    pub fn is_judged(&self) -> bool {
        self.chain.as_ref().is_some_and(|chain| chain.call.is_some() && chain.failure.is_none())
    }

    /// When something of it is due: the end of the hold of a job that waits, or the silence of a runner.
    pub(crate) fn due(&self, is_waiting: bool) -> Option<Timestamp> {
        let hold = self.hold.filter(|_| is_waiting).map(|(until, _)| until);
        hold.into_iter().chain(self.chain.as_ref().and_then(|chain| chain.silent_at())).min()
    }

    /// Whether a runner has a call of it now, so that nothing else is done with its chain before the answer.
    pub fn is_called(&self) -> bool {
        self.call().is_some_and(|call| call.claimed.is_some())
    }
}

impl Chain {
    /// The offer that it has set aside: while it judges, and nobody withdrew it.
    pub fn set_aside(&self) -> Option<&Offer> {
        self.spec.offer.as_ref().filter(|_| self.failure.is_none() && !self.is_withdrawn)
    }

    /// Whether its verdict keeps jobs of equal and lower priority from starting in strict ordering: it judges the start of
    /// a job, not as backfill, and not on what is reserved for the job already (HPC-F-82).
    pub fn holds_up_others(&self) -> bool {
        let starts = |offer: &Offer| !offer.growth && !offer.parameters.backfill;
        self.failure.is_none() && !self.was_reserved && self.spec.offer.as_ref().is_some_and(starts)
    }

    /// When the runner that has the call is taken to be lost: it has been silent for the time limit and ten seconds
    /// (HPC-F-85).
    pub(crate) fn silent_at(&self) -> Option<Timestamp> {
        let (_, since) = self.call.as_ref()?.claimed.as_ref()?;
        Some(since.plus_seconds(i64::from(self.spec.limit_seconds) + SIGN_OF_LIFE_SECONDS))
    }

    /// The position of the validation, one behind the last filter.
    pub fn end(&self) -> u32 {
        u32::try_from(self.spec.filters.len()).unwrap_or(u32::MAX)
    }
}
