//! The decisions of a cycle, and its books.

use super::{limit::PassLimit, now_index::NowIndex, trace::Look};
use crate::{
    class::ClassId,
    engine::Run,
    limits::Uses,
    machine::Holding,
    model::{Demand, Holder, Slot, YieldingRun},
    queue::Place,
    routes::Routed,
    search::{Known, Sweep},
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    command::Start,
    event::WaitingJob,
    job::WaitReason,
    plan::{BackfillPass, ComponentMode, ProposedGrowth, ProposedPreemption, ProposedShrink, StartFacts},
    resources::Placement,
};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// The decisions of a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Jobs that start now, in their order.
    pub starts: Vec<Start>,
    /// Why jobs wait that this cycle has looked at and whose state does not tell. Any other job waits behind another.
    pub reasons: Vec<WaitingJob>,
    /// Promises that were made, changed or taken back. The engine already has them.
    pub slots: Vec<(JobId, Option<Slot>)>,
    /// Whether the cycle ended early because it reached the maximum number of starts, or its time was over.
    pub is_cut_short: bool,
    /// After how many looks at jobs it ended because its time was over; `None` if it was not.
    pub cut_after: Option<u64>,
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
    /// The resources kept for jobs from now on, if they have increased.
    pub reserved: Vec<Start>,
    /// The findings for jobs with several components, if this is a complete pass of backfill. The engine is told once
    /// it has been recorded: see [`crate::Engine::set_backfill_passes`].
    pub backfill_pass: Option<BackfillPass>,
    /// Under turns that have files copied ahead: the jobs that wait only for room, in their order.
    pub short_of_room: Vec<JobId>,
    /// Under turns with routes: the queues in which jobs start, and what the next cycle has to be told.
    pub routed: Routed,
}

/// The books of a cycle. Resources that it takes for starting jobs are given back when it is over: the jobs hold them
/// once the caller reports that they have begun.
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
    /// Arrays whose next task starts on their promise.
    pub redeemed_arrays: Vec<Place>,
    /// What limits count for jobs that start.
    pub counted: Vec<Counted>,
    pub started_of_array: BTreeMap<u64, u32>,
    /// Queues in which an earlier job waits for resources at an unknown time, or lets nobody go around it.
    pub blocked: BTreeMap<Arc<str>, JobId>,
    /// For each class, the earliest start found in this cycle; equal jobs search from there.
    pub hints: HashMap<ClassId, Timestamp>,
    /// The searches that continue for equal jobs.
    pub sweeps: HashMap<ClassId, Sweep>,
    /// The promises before the cycle, of jobs whose promise changed.
    pub old_slots: BTreeMap<JobId, (Place, Option<Slot>)>,
    pub wake: Option<Timestamp>,
    /// Offers to activation filters, and the jobs that they hold back.
    pub offers: Offers,
    /// The original runs of jobs that hold something else, or nothing, for this cycle only.
    pub swapped: Vec<Run>,
    /// When runs end that make way for promises, in this cycle.
    pub cuts: BTreeMap<JobId, Timestamp>,
    /// The runs whose room is not on the machine, because they make way for the job that is looked at.
    pub through: Through,
    /// The treatment of jobs that have several components.
    pub components: Components,
    /// What became of the jobs looked at, if that is wanted.
    pub trace: Option<Vec<Look>>,
    /// Jobs that are not planned because their users have enough jobs ahead of them.
    pub beyond_users_most: HashSet<Place>,
    /// With quotas, the earliest start found in this cycle for the jobs of a class and a user. They are only looked up.
    pub quota_hints: HashMap<(ClassId, Arc<Holder>), Timestamp>,
    /// Jobs that hold a part of quotas for this cycle only.
    pub quota_places: Vec<Place>,
    /// Jobs that could start in more groups of nodes than they want, and until when they wait.
    pub patient: BTreeMap<JobId, Timestamp>,
    /// How long it may last.
    pub limit: PassLimit<'c>,
    /// The places that it has looked at, if there is a limit.
    pub looked: Vec<Place>,
}

/// What limits count for a job that starts.
pub(super) struct Counted {
    pub holder: Arc<Holder>,
    pub demand: Arc<Demand>,
    pub uses: Uses,
    pub attributes: Option<Arc<BTreeMap<String, i64>>>,
}

/// The result of a look at a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It starts; for an array, as many tasks as its limit and the room allow.
    Started,
    /// It does not fit now.
    NoRoom,
    /// A limit or the number of starts holds it; the jobs behind it are next.
    Held,
}

impl Cycle<'_> {
    /// Knowledge about the nodes for a job that starts now; nothing for one that may have what is not free.
    pub fn known(&self, demand: &Demand) -> Option<(Timestamp, Known<'_>)> {
        demand.sharing.is_none().then(|| (self.now, Known::Cores(self.index.cores())))
    }

    pub fn tell(&mut self, job: JobId, reason: WaitReason) {
        self.plan.reasons.push(WaitingJob { job, reason });
    }

    /// Whether the cycle has reached the maximum number of starts.
    pub fn is_full(&mut self, max_starts: u32) -> bool {
        let is_full = self.plan.starts.len() >= max_starts as usize;
        self.plan.is_cut_short |= is_full;
        is_full
    }

    pub fn wake_at(&mut self, at: Timestamp) {
        if at > self.now && self.wake.is_none_or(|wake| at < wake) {
            self.wake = Some(at);
        }
    }
}

/// The runs whose room is not on the machine, because they make way for the job that is looked at.
#[derive(Default)]
pub(super) struct Through {
    /// Runs that make way for the same jobs, with one of them that decides; `None` until they are looked at.
    pub kinds: Option<Vec<(YieldingRun, Vec<JobId>)>>,
    /// Which of these kinds are away.
    pub away: Vec<bool>,
    /// The runs that are away.
    pub jobs: Vec<JobId>,
    /// The same by node.
    pub on_nodes: BTreeMap<NodeId, Vec<JobId>>,
    /// Those that have licences.
    pub with_licences: Vec<JobId>,
}

impl Through {
    /// Whether the room of any run is not on the machine.
    pub fn is_open(&self) -> bool {
        self.away.contains(&true)
    }
}

/// The rule of a cycle for jobs with several components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// No special rule.
    #[default]
    Any,
    /// It starts none of them, and no job goes around them.
    Between,
    /// It is a pass of backfill, which looks at them in this mode.
    Backfill(ComponentMode),
}

/// A cycle's knowledge of jobs with several components.
#[derive(Default)]
pub(super) struct Components {
    pub rule: Rule,
    /// Jobs that were looked at.
    pub seen: BTreeSet<Place>,
    /// The resources that their components have for this cycle only.
    pub taken: Vec<(Arc<Demand>, Arc<Placement>, Holding)>,
    /// Findings about first components of jobs, which hold for all components with the same demand. They are only
    /// looked up, never iterated over.
    pub first_starts: HashMap<Arc<Demand>, FirstStart>,
}

/// The result of a search for a component from a moment on. Within a cycle free resources only shrink, so its start
/// never gets earlier.
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

    /// The moment from which to look for a component that may start from a moment on; `None` if there is no start.
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
    /// Whether anything but resources keeps jobs from starting.
    pub has_gates: bool,
    /// No job of this priority or below starts: the filters of a job with that priority are being asked.
    pub held_back: Option<i64>,
    /// For each place of the queue its number in the order; empty if the starts of this cycle have nothing to report.
    pub ranks: Vec<u32>,
    /// Whether starts go ahead of a waiting job.
    pub goes_around: bool,
    /// When they must be over at the latest, if that is known.
    pub around_until: Option<Timestamp>,
}
