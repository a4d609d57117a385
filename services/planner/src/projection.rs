//! A planner's knowledge of a cluster: the state that the log leads to, and an engine that learns of changes.

mod alone;
mod jobs;
mod order;
mod reserve;
mod routing;

pub(crate) use jobs::asked_by_name;
pub use jobs::{expected_end, facts_of};
pub(crate) use order::heavier;

use crate::{
    PolicyError,
    engine::Engine,
    model::{ActiveRun, Closure, ElasticRun, Follower, NodeLoads, QueuedJob, Reservation},
    pass::{PassLimit, Plan},
};
use jobs::{Held, Holders};
use muster_domain::{
    State,
    copies::CopyStage,
    jobs::Job,
    nodes::{Node, Violation},
};
use muster_schemas::{
    JobId, NodeId, RunId, Timestamp,
    cluster::{ClusterSettings, QueueSpec},
    command::Start,
    energy::PowerRule,
    event::{Event, PlanEffect, Record, WaitingJob},
    job::WaitReason,
    plan::{PlannedSlot, ProposedPlan, SlotSpec},
    policy::Policy,
};
use order::Ranks;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The state of a cluster and an engine that plans for it, in step.
#[derive(Clone, Debug)]
pub struct Projection {
    state: State,
    engine: Engine,
    holders: Holders,
    /// How many jobs wait with open gates, as far as it was followed job by job.
    eligible: usize,
    /// Jobs whose last reason is that they wait for resources at their place in the order.
    blocked: BTreeSet<JobId>,
    /// Jobs that the last plan promised something, which may not have been accepted.
    proposed: Vec<JobId>,
    /// The ranks of nodes in the order of the site, if it has one.
    ranks: Ranks,
}

/// A plan in the form in which the ledger is asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// The new plan.
    pub plan: ProposedPlan,
    /// Whether it ended early because it has as many starts as it may, or its time was over.
    pub is_cut_short: bool,
    /// When the next plan is worth making even if nothing happens.
    pub next_wake: Option<Timestamp>,
    /// Jobs whose files are to be copied ahead of their start.
    pub staged_ahead: Vec<JobId>,
}

/// What a record can change of what the engine was told.
struct Touched {
    jobs: Vec<(JobId, bool, Option<QueuedJob>)>,
    /// The resources kept for jobs.
    kept: Vec<(JobId, Option<ActiveRun>)>,
    /// The job that the event is about.
    named: Option<JobId>,
    runs: Vec<(RunId, Option<Held>)>,
    /// The number of an array, and how many more of its tasks might run.
    array: Option<(u64, u32)>,
}

impl Projection {
    /// The projection of a state. It plans by the policy in force there.
    pub fn of(state: State) -> Self {
        let engine = engine_for(state.policy());
        let mut projection = Self {
            engine,
            state,
            holders: Holders::default(),
            eligible: 0,
            blocked: BTreeSet::new(),
            proposed: Vec::new(),
            ranks: Ranks::new(),
        };
        projection.tell_all();
        projection
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The engine, which is in step with the state.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// How many jobs wait that may be planned; an array counts as one.
    pub fn waiting(&self) -> usize {
        self.engine.waiting_jobs()
    }

    /// The jobs that wait for others, as they enter the queue after them. Those that never enter it are there only as long as a
    /// start is predicted for them, which has to be withdrawn.
    pub fn followers(&self) -> Vec<Follower> {
        let mut holders = Holders::default();
        let follower = |job: &Job| {
            let awaits = job.awaits()?;
            if job.predicted_start.is_none() && awaits.iter().any(Vec::is_empty) {
                return None;
            }
            Some(Follower { job: holders.after_others(&self.state, job)?, awaits })
        };
        self.state.jobs_after_others().filter_map(follower).collect()
    }

    /// Applies a record. Whether it can let something start that could not start before, or make a reason untrue.
    ///
    /// # Errors
    /// As [`State::apply`].
    pub fn apply(&mut self, record: &Record) -> Result<bool, Violation> {
        let event = &record.event;
        let touched = self.touched(event);
        let rules = matches!(event, Event::SettingsChanged { .. }).then(|| self.state.settings().clone());
        self.state.apply(record)?;
        let effect = event.plan_effect();
        if effect == PlanEffect::Rules || rules.is_some_and(|before| is_other_rule(&before, self.state.settings())) {
            *self = Self::of(std::mem::take(&mut self.state));
            return Ok(true);
        }
        self.tell_cluster(event);
        if let Event::NodeAdded { .. } | Event::NodeChanged { .. } | Event::NodeRemoved { .. } = event {
            self.tell_quotas();
        }
        self.tell_filters(event);
        let has_other_size = self.tell_touched(touched);
        // Few records open or close gates of jobs that they do not name: earlier namesakes, `Before...` dependencies.
        let names_change = matches!(event, Event::JobModified { change, .. } if change.name.is_some());
        if names_change || self.eligible != self.state.eligible_jobs() || effect == PlanEffect::Gates {
            self.tell_jobs();
        }
        let is_of_choice = matches!(event, Event::NodeLoadMeasured { .. }) && self.engine.chooses_by_load();
        Ok(effect.can_change_plan() || has_other_size || is_of_choice || self.replaces_nodes(event))
    }

    /// Plans for a time. Jobs are left out if a start of theirs was refused and nothing has changed since.
    ///
    /// The same state, time and jobs left out give the same plan, whatever was planned before.
    pub fn plan(&mut self, now: Timestamp, left_out: &BTreeSet<JobId>) -> Planned {
        self.plan_within(now, left_out, PassLimit::Endless)
    }

    /// The same with a limit on the time of the pass (OAR-G-09).
    pub fn plan_within<'l>(&mut self, now: Timestamp, left_out: &'l BTreeSet<JobId>, limit: PassLimit<'l>) -> Planned {
        self.move_reservations(now);
        self.settle_promises();
        self.engine.set_capacity_freed(self.state.capacity_freed());
        if self.engine.uses_fair_share() {
            self.engine.set_fair_factors(self.state.fair_factors(now));
        }
        if self.engine.uses_window() {
            self.engine.set_window_use(self.state.window_use(now));
        }
        self.engine.set_spent(|counter| self.state.spent(counter, now));
        self.engine.set_user_usage(self.state.share_use(now));
        self.engine.set_loads(NodeLoads::of(&self.state));
        if let Some(conditions) = routing::conditions(&self.state, now) {
            self.engine.set_conditions(conditions);
        }
        self.engine.set_backfill_passes(self.state.backfill_passes().clone());
        let passed = self.engine.pass_within(now, left_out, limit);
        let Plan { starts, reasons, slots, is_cut_short, cut_after, next_wake, facts, .. } = passed;
        let Plan { growths, shrinks, preemptions, reserved, backfill_pass, routed, short_of_room, .. } = passed;
        let staged_ahead = self.staged_ahead(&short_of_room);
        self.proposed = slots.iter().map(|(job, _)| *job).collect();
        let reservations = self.placed_reservations(now);
        let mut reasons = reasons;
        if !is_cut_short {
            reasons.extend(self.outdated_reasons(&starts, &reasons, backfill_pass.is_some()));
        }
        reasons.retain(|waiting| self.is_news(waiting));
        let planned = |(job, slot): (JobId, Option<crate::model::Slot>)| PlannedSlot {
            job,
            slot: slot.map(|slot| SlotSpec { start: slot.start, placement: slot.placement }),
        };
        let plan = ProposedPlan {
            seen: self.state.sequence(),
            at: now,
            left_out: left_out.iter().copied().collect(),
            starts,
            reasons,
            slots: slots.into_iter().map(planned).collect(),
            reservations,
            start_facts: facts,
            growths,
            shrinks,
            preemptions,
            reserved,
            backfill_pass,
            cut_after,
            ..ProposedPlan::default()
        };
        let plan = routing::with_routed(&self.state, routed, plan);
        Planned { plan, is_cut_short, next_wake, staged_ahead }
    }

    /// The jobs whose files are copied ahead now: of the first jobs that wait only for room and have files to copy, as many as
    /// the policy says, those whose files are not there (PBS-G-07). Files on their way count.
    fn staged_ahead(&self, short_of_room: &[JobId]) -> Vec<JobId> {
        let most = self.state.policy().turns.as_ref().map_or(0, |turns| turns.staged_ahead as usize);
        if most == 0 || short_of_room.is_empty() {
            return Vec::new();
        }
        let on_their_way = self.state.jobs().filter(|job| job.is_copied_ahead()).count();
        let with_files = short_of_room
            .iter()
            .filter_map(|id| self.state.job(*id))
            .filter(|job| job.array.is_none() && job.has_files_to_come());
        let first = with_files.take(most.saturating_sub(on_their_way));
        let is_wanted = |job: &&Job| job.copies.as_ref().is_none_or(|copies| copies.stage == CopyStage::Wanted);
        first.filter(is_wanted).map(|job| job.id).collect()
    }

    /// Whether the state does not know a reason yet.
    fn is_news(&self, waiting: &WaitingJob) -> bool {
        self.state.job(waiting.job).is_some_and(|job| job.planner_reason.as_deref() != Some(&waiting.reason))
    }

    /// Jobs with a reason of the head of the order that are no longer there: the order tells why they wait. For jobs
    /// with several components that a pass of backfill has looked at, only the next pass tells. Those that no pass
    /// looks at wait for one, whichever cycle it is.
    fn outdated_reasons(&self, starts: &[Start], told: &[WaitingJob], is_backfill_pass: bool) -> Vec<WaitingJob> {
        // Under turns a reason stands until another one is told: whoever has a turn is told why not.
        if self.blocked.is_empty() || self.state.policy().turns.is_some() {
            return Vec::new();
        }
        let started = starts.iter().map(|start| start.job);
        let known: BTreeSet<JobId> = told.iter().map(|waiting| waiting.job).chain(started).collect();
        let passed = &self.state.backfill_passes().jobs;
        let waits_for_pass = |job: &JobId| {
            let job = self.state.job(*job).filter(|job| job.components.len() > 1);
            job.is_some_and(|job| matches!(job.planner_reason.as_deref(), Some(WaitReason::Resources(_))))
        };
        let stands = |job: &JobId| match is_backfill_pass {
            true => !passed.contains_key(job) && waits_for_pass(job),
            false => passed.contains_key(job),
        };
        let outdated = self.blocked.iter().filter(|job| !known.contains(job) && !stands(job));
        outdated.map(|job| WaitingJob { job: *job, reason: WaitReason::NotPlannedYet }).collect()
    }

    /// Drops promises that the ledger did not accept.
    fn settle_promises(&mut self) {
        for id in std::mem::take(&mut self.proposed) {
            let slot = self.state.job(id).and_then(|job| job.slot.as_deref()).map(jobs::slot);
            if self.engine.slot(id) != slot {
                self.engine.set_slot(id, slot);
            }
        }
    }

    /// Tells the engine all of the state.
    fn tell_all(&mut self) {
        self.ranks = order::ranks(&self.state);
        let settings = self.state.settings();
        self.engine.set_default_memory_per_core_bytes(settings.default_memory_per_core_bytes);
        self.engine.set_fixed_starts(settings);
        self.engine.set_accounts(Arc::new(self.state.accounts().clone()));
        self.tell_quotas();
        self.tell_queues();
        for (name, licence) in self.state.licences() {
            self.engine.set_licence(name, licence.total);
        }
        for node in self.state.nodes() {
            tell_node(&mut self.engine, &self.state, node, &self.ranks);
            self.engine.set_closures(node.id, closures(node));
        }
        let reservations: Vec<Arc<str>> =
            self.state.reservations().map(|reservation| reservation.spec.name.as_str().into()).collect();
        reservations.iter().for_each(|name| self.set_reservation(name));
        self.engine.set_scheduling(self.state.scheduling().clone(), self.state.rebalanced());
        self.engine.set_ordering(self.state.filter_settings().ordering);
        self.engine.set_queue_block(self.state.queue_block());
        for job in self.state.jobs() {
            self.engine.set_opener(job.id, jobs::opener(&self.state, job));
        }
        for run in self.state.runs() {
            if let Some(job) = self.state.job(run.job) {
                self.holders.active(&self.state, job, run).begin(&mut self.engine);
                self.engine.set_elastic(job.id, jobs::elastic(&self.state, job));
                self.engine.set_yielding(job.id, jobs::yielding(&self.state, job));
            }
        }
        for job in self.state.jobs() {
            if let Some(kept) = self.holders.kept(&self.state, job) {
                self.engine.begin(kept);
            }
        }
        self.tell_jobs();
    }

    /// Tells the engine the quotas. Some follow the number of cores of all nodes.
    fn tell_quotas(&mut self) {
        let table = self.state.settings().quotas.as_deref();
        let cores = if table.is_some() { muster_domain::quotas::all_cores(&self.state) } else { 0 };
        self.engine.set_quotas(table, cores);
    }

    /// Tells the engine about all queues. None is started while the planner is switched off, and those that pass jobs on
    /// never are.
    fn tell_queues(&mut self) {
        let is_idle = self.state.settings().is_idle;
        for queue in self.state.queues() {
            match is_idle || queue.spec.route.is_some() {
                true => self.engine.set_queue(&QueueSpec { started: false, ..(*queue.spec).clone() }),
                false => self.engine.set_queue(&queue.spec),
            }
        }
    }

    /// Tells the engine whom filters keep from starting.
    fn tell_filters(&mut self, event: &Event) {
        match event {
            Event::FilterSettingsSet { settings, .. } => self.engine.set_ordering(settings.ordering),
            Event::RunShrinking { .. } => {
                self.engine.set_scheduling(self.state.scheduling().clone(), self.state.rebalanced());
            }
            _ => {}
        }
        // Few events change it, but of many kinds: a job that blocks others ends in many ways.
        if self.engine.queue_block.is_some() || matches!(event, Event::QueueBlocked { .. }) {
            self.engine.set_queue_block(self.state.queue_block());
        }
    }

    /// Tells the engine about all waiting jobs again.
    fn tell_jobs(&mut self) {
        self.blocked.clear();
        let known: Vec<JobId> = self.engine.queue.entries().map(|entry| entry.id).collect();
        for id in known {
            if self.state.job(id).is_none_or(|job| self.holders.queued(&self.state, job).is_none()) {
                self.engine.dequeue(id);
            }
        }
        for job in self.state.jobs() {
            if let Some(queued) = self.holders.queued(&self.state, job) {
                self.engine.enqueue(queued);
                self.engine.set_known_reason(job.id, job.planner_reason.clone());
                if is_blocked(job.planner_reason.as_deref()) {
                    self.blocked.insert(job.id);
                }
            }
        }
        self.eligible = self.state.eligible_jobs();
    }

    /// Tells the engine what an event changes of the cluster itself; whether it can change anything of it.
    fn tell_cluster(&mut self, event: &Event) -> bool {
        match event {
            // Nothing is known of it yet that planners go by.
            Event::ClusterInitialised { .. } => {}
            Event::SettingsChanged { settings } => {
                self.engine.set_default_memory_per_core_bytes(settings.default_memory_per_core_bytes);
                self.engine.set_fixed_starts(settings);
                self.tell_queues();
                self.tell_sleepers();
            }
            Event::QueueSet { .. } => {
                self.tell_queues();
                self.tell_yielding();
            }
            Event::QueueRemoved { name } => self.engine.remove_queue(name),
            Event::LicenceSet { name, total } => self.engine.set_licence(name, *total),
            Event::NodeRemoved { node } => {
                self.engine.remove_node(*node);
                self.tell_node(*node);
            }
            Event::NodeAdded { node, .. } | Event::NodeChanged { node, .. } => {
                self.tell_node(*node);
                // Its properties can say when it goes away.
                let closures = self.state.node(*node).map_or_else(Vec::new, closures);
                self.engine.set_closures(*node, closures);
            }
            Event::NodeUp { node, .. }
            | Event::NodeLost { node, .. }
            | Event::NodeTakenOut { node, .. }
            | Event::NodeGpusChecked { node, .. }
            | Event::NodeAsleep { node }
            | Event::NodePowerFailed { node, .. }
            | Event::NodeResumed { node } => self.tell_node(*node),
            Event::PowerOrdered { order } => order.nodes.iter().for_each(|node| self.tell_node(*node)),
            Event::NodeClosuresSet { node, .. } => {
                let closures = self.state.node(*node).map_or_else(Vec::new, closures);
                self.engine.set_closures(*node, closures);
            }
            Event::ReservationSet { reservation } => self.tell_reservation(&reservation.name),
            Event::ReservationPlaced { name, .. } | Event::ReservationRemoved { name } => self.tell_reservation(name),
            _ => return false,
        }
        true
    }

    fn tell_node(&mut self, id: NodeId) {
        let before = std::mem::replace(&mut self.ranks, order::ranks(&self.state));
        let moved = order::moved(&before, &self.ranks).into_iter().filter(|other| *other != id);
        for id in moved.chain([id]) {
            if let Some(node) = self.state.node(id) {
                tell_node(&mut self.engine, &self.state, node, &self.ranks);
            }
        }
    }

    /// Tells the engine about the nodes that sleep: whether they can be woken depends on the settings.
    fn tell_sleepers(&mut self) {
        let asleep = self.state.nodes().filter(|node| self.state.power_of(node.id).is_some());
        for id in asleep.map(|node| node.id).collect::<Vec<_>>() {
            self.tell_node(id);
        }
    }

    /// Tells the engine about a reservation. Those that attract jobs, or do not bind them, change for which nodes jobs ask.
    fn tell_reservation(&mut self, name: &str) {
        let is_told = |one: &Reservation| one.attracts || one.is_flexible;
        let before = self.engine.reservations.get(name).is_some_and(is_told);
        self.set_reservation(name);
        let after = self.engine.reservations.get(name).is_some_and(is_told);
        if before || after {
            self.tell_jobs();
        }
    }

    fn set_reservation(&mut self, name: &str) {
        self.set_reservation_at(name, self.state.time());
    }

    /// Tells the engine about a reservation as it stands at a time.
    fn set_reservation_at(&mut self, name: &str, now: Timestamp) {
        match self.state.reservation(name).filter(|reservation| !reservation.nodes.is_empty()) {
            Some(reservation) => {
                let (start, end) = reservation.period(now);
                self.engine.set_reservation(Reservation {
                    name: name.into(),
                    start,
                    end,
                    nodes: reservation.nodes.iter().copied().collect(),
                    overlaps: reservation.spec.overlaps,
                    attracts: reservation.spec.attracts,
                    is_flexible: reservation.spec.is_flexible,
                })
            }
            None => self.engine.remove_reservation(name),
        }
    }

    /// Reservations that stay ahead begin later than at the time of the plan before.
    fn move_reservations(&mut self, now: Timestamp) {
        let ahead = self.state.reservations().filter(|reservation| reservation.stays_ahead());
        for name in ahead.map(|reservation| reservation.spec.name.clone()).collect::<Vec<_>>() {
            self.set_reservation_at(&name, now);
        }
    }

    /// Whether reservations are to have other nodes since a node was lost, drained, or given to a job.
    fn replaces_nodes(&self, event: &Event) -> bool {
        matches!(event, Event::NodeLost { .. } | Event::NodeTakenOut { .. } | Event::RunAllocated { .. })
            && self.state.replaces_nodes()
    }

    /// What an event can change, as far as it can be told from the event, with what it was before.
    fn touched(&mut self, event: &Event) -> Touched {
        let run = event.run().or_else(|| event.job().and_then(|job| self.state.job(job)?.run()));
        let named = event.job();
        let mut ids: Vec<JobId> = named.into_iter().collect();
        ids.extend(named.filter(|job| job.index.is_some()).map(JobId::whole));
        if let Event::Planned { plan } = event {
            ids.extend(plan.reasons.iter().map(|waiting| waiting.job));
            ids.extend(plan.slots.iter().map(|planned| planned.job));
        }
        for at in 0..ids.len() {
            ids.extend(self.state.dependents(ids[at]));
        }
        ids.sort_unstable();
        ids.dedup();
        let kept = ids.iter().map(|id| (*id, self.kept(*id))).collect();
        let jobs = ids.into_iter().map(|id| (id, self.is_eligible(id), self.queued(id))).collect();
        // The holdings of runs that wait to resume depend on what others do.
        let mut runs: BTreeSet<RunId> = self.state.resuming().map(|run| run.id).collect();
        runs.extend(run);
        let runs = runs.into_iter().map(|run| (run, self.active(run))).collect();
        let array = named.and_then(|job| Some((job.number, self.headroom(job.number)?)));
        Touched { jobs, kept, runs, named, array }
    }

    /// How many more tasks of an array may run; `None` if it is no array.
    fn headroom(&self, number: u64) -> Option<u32> {
        Some(self.state.job(JobId::job(number))?.array.as_ref()?.headroom())
    }

    fn is_eligible(&self, id: JobId) -> bool {
        self.state.job(id).is_some_and(|job| job.is_waiting() && job.gates_open())
    }

    fn queued(&mut self, id: JobId) -> Option<QueuedJob> {
        self.holders.queued(&self.state, self.state.job(id)?)
    }

    fn active(&mut self, id: RunId) -> Option<Held> {
        let run = self.state.run(id)?;
        Some(self.holders.active(&self.state, self.state.job(run.job)?, run))
    }

    fn kept(&mut self, id: JobId) -> Option<ActiveRun> {
        self.holders.kept(&self.state, self.state.job(id)?)
    }

    /// Tells the engine which running jobs make way for others.
    fn tell_yielding(&mut self) {
        for job in self.state.runs().filter_map(|run| self.state.job(run.job)) {
            self.engine.set_yielding(job.id, jobs::yielding(&self.state, job));
        }
    }

    /// Tells the engine how a running job can use more or fewer resources; returns whether that changed.
    fn tell_elastic(&mut self, id: JobId) -> bool {
        self.engine.set_yielding(id, self.state.job(id).and_then(|job| jobs::yielding(&self.state, job)));
        let elastic = self.state.job(id).and_then(|job| jobs::elastic(&self.state, job));
        // Which cores its tasks use changes all the time, and opens nothing.
        let shown = |run: Option<&ElasticRun>| run.map(|run| ElasticRun { busy: BTreeMap::new(), ..run.clone() });
        let is_other = shown(self.engine.elastic(id)) != shown(elastic.as_ref());
        if is_other || elastic.is_some() {
            self.engine.set_elastic(id, elastic);
        }
        is_other
    }

    /// Tells the engine what a record touched; returns whether a running job can use other resources than before.
    fn tell_touched(&mut self, touched: Touched) -> bool {
        for (id, was_eligible, before) in touched.jobs {
            self.eligible = self.eligible + usize::from(self.is_eligible(id)) - usize::from(was_eligible);
            let after = self.queued(id);
            let waits = after.is_some();
            self.tell_job(id, before, after);
            self.note_reason(id, waits);
        }
        if let Some((number, headroom)) = touched.array
            && self.headroom(number).is_some_and(|now| now != headroom)
        {
            self.tell_tasks(number);
        }
        for (id, before) in touched.kept {
            let after = self.kept(id);
            match after {
                Some(kept) if before.as_ref() != Some(&kept) => self.engine.begin(kept),
                None if before.is_some() => self.engine.end(id),
                _ => {}
            }
        }
        if let Some(id) = touched.named {
            self.engine.set_opener(id, self.state.job(id).and_then(|job| jobs::opener(&self.state, job)));
        }
        let mut begun = Vec::new();
        for (id, before) in touched.runs {
            let after = self.active(id);
            if before == after {
                continue;
            }
            // A core can go from one run to another, so it is given back before it is taken.
            if let Some(run) = before {
                self.engine.end(run.job());
            }
            begun.extend(after);
        }
        begun.into_iter().for_each(|run| run.begin(&mut self.engine));
        touched.named.is_some_and(|job| self.tell_elastic(job))
    }

    /// Tells the engine the known reason why a job waits.
    fn note_reason(&mut self, id: JobId, waits: bool) {
        let reason = self.state.job(id).and_then(|job| job.planner_reason.clone());
        if waits && is_blocked(reason.as_deref()) {
            self.blocked.insert(id);
        } else {
            self.blocked.remove(&id);
        }
        self.engine.set_known_reason(id, reason);
    }

    /// Tells the engine again about the tasks of an array that were put back into the queue.
    fn tell_tasks(&mut self, number: u64) {
        let tasks: Vec<JobId> =
            self.state.job_with_tasks(number).filter(|job| job.id.index.is_some()).map(|job| job.id).collect();
        for id in tasks {
            let task = self.queued(id);
            let waits = task.is_some();
            match task {
                Some(task) => self.engine.enqueue(task),
                None => self.engine.dequeue(id),
            }
            self.note_reason(id, waits);
        }
    }

    fn tell_job(&mut self, id: JobId, before: Option<QueuedJob>, after: Option<QueuedJob>) {
        match (before, after) {
            (_, None) => self.engine.dequeue(id),
            (Some(before), Some(after)) => {
                let slot = after.slot.clone();
                if (QueuedJob { slot: slot.clone(), ..before }) != after {
                    self.engine.enqueue(after);
                } else if self.engine.slot(id) != slot {
                    self.engine.set_slot(id, slot);
                }
            }
            (None, Some(after)) => self.engine.enqueue(after),
        }
    }
}

/// An engine for a policy. One that cannot be followed, which the ledger puts into no log, counts as the plain one.
fn engine_for(policy: &Arc<Policy>) -> Engine {
    let plain = |_: PolicyError| Engine::new(Arc::default()).expect("the plain policy has no formula");
    Engine::new(policy.clone()).unwrap_or_else(plain)
}

fn tell_node(engine: &mut Engine, state: &State, node: &Node, ranks: &Ranks) {
    engine.set_node(node.id, order::placed(state, node, ranks), state.takes_jobs(node));
    engine.set_faulty_gpus(node.id, node.faulty_gpus());
}

/// The times in which a node serves no job, and the end of its time if it has one (OAR-E-02).
fn closures(node: &Node) -> Vec<Closure> {
    let set = node.closures.iter().map(|closure| Closure { from: closure.from, until: closure.until });
    let gone = PowerRule::of(&node.spec).until.map(|from| Closure { from, until: Timestamp::MAX });
    set.chain(gone).collect()
}

/// Whether settings that are in every demand or on every node have changed.
fn is_other_rule(before: &ClusterSettings, after: &ClusterSettings) -> bool {
    let rules =
        |settings: &ClusterSettings| (settings.quotas.clone(), settings.guard_seconds, settings.node_order.clone());
    rules(before) != rules(after)
}

/// Whether a reason holds at the head of the order only.
fn is_blocked(reason: Option<&WaitReason>) -> bool {
    matches!(
        reason,
        Some(
            WaitReason::Resources(_)
                | WaitReason::Reserved { .. }
                | WaitReason::FewGroups { .. }
                | WaitReason::BehindJob(_)
                | WaitReason::ExternalPlanner(_)
                | WaitReason::PlannerFailed(_)
                | WaitReason::LeftOut
        )
    )
}

/// Nodes for a reservation, by its name.
type Placed = (String, Vec<NodeId>);

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::testing::samples;

    /// Whatever changes the cluster itself is told to the engine.
    #[test]
    fn the_engine_is_told_of_what_changes_the_cluster() {
        for record in samples() {
            let is_told = Projection::of(State::default()).tell_cluster(&record.event);
            match record.event.plan_effect() {
                PlanEffect::Cluster => assert!(is_told, "{:?}", record.event),
                // Its gates may be those of something in the cluster.
                PlanEffect::Gates => {}
                PlanEffect::Never | PlanEffect::Jobs | PlanEffect::Rules => assert!(!is_told, "{:?}", record.event),
            }
        }
    }
}
