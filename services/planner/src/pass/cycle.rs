//! What a cycle decides, and what it knows meanwhile.

use super::now_index::NowIndex;
use crate::{
    class::ClassId,
    engine::Run,
    limits::Uses,
    machine::Holding,
    model::{Demand, Holder, Slot},
    queue::Place,
    search::Sweep,
};
use muster_schemas::{
    JobId, Timestamp,
    command::Start,
    event::WaitingJob,
    job::WaitReason,
    plan::{BackfillPass, ComponentMode, ProposedGrowth, ProposedPreemption, ProposedShrink, StartFacts},
    resources::Placement,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// The decisions of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Jobs that start now, in their order.
    pub starts: Vec<Start>,
    /// Why those jobs wait that were looked at and about which the state itself does not tell. A job that is not among
    /// them waits behind another.
    pub reasons: Vec<WaitingJob>,
    /// Promises that were made, changed or taken back. The engine has them already.
    pub slots: Vec<(JobId, Option<Slot>)>,
    /// Whether the cycle ended early because it has as many starts as it may.
    pub is_cut_short: bool,
    /// When the next cycle is due even if nothing happens.
    pub next_wake: Option<Timestamp>,
    /// Facts about the starts of jobs with activation filters, and in a mode about those that go around others.
    pub facts: Vec<StartFacts>,
    /// More resources for runs.
    pub growths: Vec<ProposedGrowth>,
    /// The resources that runs have to give up.
    pub shrinks: Vec<ProposedShrink>,
    /// Runs that make way.
    pub preemptions: Vec<ProposedPreemption>,
    /// The resources kept for jobs from now on, where they are more than before.
    pub reserved: Vec<Start>,
    /// What it found for jobs with several components, if it is a whole pass of backfill that starts those. The engine is told of it
    /// when it has been made: see [`crate::Engine::set_backfill_passes`].
    pub backfill_pass: Option<BackfillPass>,
}

/// What a cycle has come to so far. What it takes for the jobs that it starts is given back when it is over: they hold it
/// when the caller says that they have begun.
pub(super) struct Cycle<'c> {
    pub now: Timestamp,
    pub left_out: &'c BTreeSet<JobId>,
    pub plan: Plan,
    /// The number of holdings freed before.
    pub freed_so_far: usize,
    pub index: NowIndex,
    /// How many classes were found not to fit now.
    pub failed_classes: usize,
    /// Taken for this cycle only.
    pub taken: Vec<(Arc<Demand>, Arc<Placement>, Holding)>,
    /// Given up for this cycle only: promises of jobs that start.
    pub given_up: Vec<(Arc<Demand>, Arc<Placement>, Holding)>,
    /// Arrays whose next task starts on what they were promised.
    pub redeemed_arrays: Vec<Place>,
    pub usage: Vec<(Arc<Holder>, Arc<Demand>, Uses)>,
    pub started_of_array: BTreeMap<u64, u32>,
    /// Queues in which an earlier job waits for resources that nobody knows the time of, or that nobody may go around.
    pub blocked: BTreeMap<Arc<str>, JobId>,
    /// From when on equal jobs can fit, of those that were promised something in this cycle.
    pub hints: HashMap<ClassId, Timestamp>,
    /// The searches that continue for equal jobs.
    pub sweeps: HashMap<ClassId, Sweep>,
    /// The promises that were there before the cycle, of those that changed.
    pub old_slots: BTreeMap<JobId, (Place, Option<Slot>)>,
    pub wake: Option<Timestamp>,
    /// Offers to activation filters, and the jobs that they hold back.
    pub offers: Offers,
    /// Runs that hold something else, or nothing, for this cycle only: as they were.
    pub swapped: Vec<Run>,
    /// The treatment of jobs that have several components.
    pub components: Components,
}

/// What came of a look at a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It starts; for an array, as many tasks as its limit and the room allow.
    Started,
    /// It does not fit now.
    NoRoom,
    /// A limit or the number of starts holds it; those behind it are next.
    Held,
}

impl Cycle<'_> {
    pub fn tell(&mut self, job: JobId, reason: WaitReason) {
        self.plan.reasons.push(WaitingJob { job, reason });
    }

    /// Whether the cycle has as many starts as it may.
    pub fn is_full(&mut self, max_starts: u32) -> bool {
        self.plan.is_cut_short |= self.plan.starts.len() >= max_starts as usize;
        self.plan.is_cut_short
    }

    pub fn wake_at(&mut self, at: Timestamp) {
        if at > self.now && self.wake.is_none_or(|wake| at < wake) {
            self.wake = Some(at);
        }
    }
}

/// The rule of a cycle for jobs with several components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// Nothing else than with others.
    #[default]
    Any,
    /// It starts none of them, and no job goes around them.
    Between,
    /// It is a pass of backfill that looks at them in a mode.
    Backfill(ComponentMode),
}

/// A cycle's knowledge of jobs with several components.
#[derive(Default)]
pub(super) struct Components {
    pub rule: Rule,
    /// Those that were looked at.
    pub seen: BTreeSet<Place>,
    /// The resources that their components have for this cycle only.
    pub taken: Vec<(Arc<Demand>, Arc<Placement>, Holding)>,
    /// Findings about first components of jobs, which count for all components with the same demand. They are only
    /// looked up, never walked.
    pub first_starts: HashMap<Arc<Demand>, FirstStart>,
}

/// A component was looked for from a moment on. Within a cycle there is only ever less, so it never starts earlier later.
#[derive(Clone, Copy)]
pub(super) struct FirstStart {
    pub from: Timestamp,
    /// `None` if it cannot start at all.
    pub start: Option<Timestamp>,
}

impl Components {
    /// Whether the cycle is a pass of backfill for jobs with several components.
    pub fn is_pass(&self) -> bool {
        matches!(self.rule, Rule::Backfill(_))
    }

    /// From when on to look for a component that may start from a moment on; `None` if there is no start.
    pub fn look_from(&self, demand: &Arc<Demand>, from: Timestamp) -> Option<Timestamp> {
        match self.first_starts.get(demand).filter(|known| known.from <= from) {
            Some(known) => Some(from.max(known.start?)),
            None => Some(from),
        }
    }
}

/// A cycle's knowledge of offers.
#[derive(Default)]
pub(super) struct Offers {
    /// Whether anything but resources keeps jobs from being started.
    pub has_gates: bool,
    /// No job of this priority or below starts: the filters of one of that priority are asked.
    pub held_back: Option<i64>,
    /// For each place of the queue its number in the order; empty if no start of this cycle has anything to tell.
    pub ranks: Vec<u32>,
    /// Whether starts go ahead of a waiting job.
    pub goes_around: bool,
    /// When they must be over at the latest, if that is known.
    pub around_until: Option<Timestamp>,
}
