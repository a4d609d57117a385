//! The planner's decisions, each checked against the state and what the same plan has already started.

mod checks;
pub(crate) mod elastic;
pub(crate) mod offers;

use crate::{
    copies,
    decide::{Access, Decision, conflict, invalid, not_found},
    fixed,
    jobs::Job,
    lending,
    nodes::{Licence, Node, Queue, Spare},
    quotas::{self, Book},
    reservations,
    sharing::Sharing,
    state::State,
};
use muster_schemas::{
    JobId, NodeId, RunId, Timestamp,
    command::{Refusal, RefusedStart, Reply, Start},
    event::{Event, JobChange, WaitingJob},
    job::WaitReason,
    plan::{
        BackfillPass, ComponentMode, MOST_USERS_OF_CYCLE, PlanChange, PlanCycle, PlanRecord, PlannedSlot,
        PredictedStart, ProposedPlan, QueueLift, RefusedChange, RoutePromise, StartFacts, UserUsage,
    },
    resources::{NodeShare, Placement},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

pub(crate) fn commit(access: &Access, proposed: ProposedPlan, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_planner()?;
    let state = access.state;
    let ProposedPlan { seen, at, left_out, starts, reasons, slots, predictions, reservations, .. } = proposed;
    let ProposedPlan {
        start_facts,
        growths,
        shrinks,
        preemptions,
        reserved,
        pass,
        epoch,
        backfill_pass,
        external,
        is_ordered,
        moves,
        promised,
        lifted,
        units,
        cycle,
        cut_after,
        ..
    } = proposed;
    if seen > state.sequence() {
        return Err(invalid(format!("the plan has seen record {seen}, the last is {}", state.sequence())));
    }
    let mut events = reservations::decide::place_reservations(state, reservations);
    let mut plan = Plan::new(state, now);
    plan.planned_at = plan_time(at, now);
    plan.facts = start_facts.into_iter().map(|facts| (facts.job, facts)).collect();
    (plan.pass, plan.epoch) = (pass, epoch);
    // While scheduling is off nothing starts, whoever plans (PBS-C-03).
    plan.is_past_queues = is_ordered && !state.settings().is_idle;
    plan.moves = moves.into_iter().map(|moved| (moved.job, moved.queue)).collect();
    // `None` means a start.
    let mut refused: Vec<(Option<PlanChange>, RefusedStart)> = Vec::new();
    events.reserve(starts.len() + 1);
    let mut take = |what, job: JobId, follows: Result<Vec<Event>, String>| match follows {
        Ok(follows) => events.extend(follows),
        Err(reason) => refused.push((what, RefusedStart { job, reason })),
    };
    // The next plan can use what is given up here; growth comes before starts (HPC-S-03).
    for shrink in shrinks {
        take(Some(PlanChange::Shrink), shrink.job, plan.shrink(shrink));
    }
    for growth in growths {
        take(Some(PlanChange::Growth), growth.job, plan.grow(growth));
    }
    for Start { job, placement } in reserved {
        take(Some(PlanChange::Keep), job, plan.keep(job, placement));
    }
    let asked = starts.len();
    for Start { job, placement } in starts {
        take(None, job, plan.start(job, placement));
    }
    for preemption in preemptions {
        take(Some(PlanChange::Preemption), preemption.for_job, plan.preempt(preemption));
    }
    let never = fixed::decide::refused(state, &reasons);
    plan.started.extend(never.keys());
    events.extend(never.into_values());
    let passed = backfill_pass.and_then(|pass| plan.passed(pass));
    events.extend(passed.map(|pass| Event::BackfillPassed { pass: Arc::new(pass) }));
    events.extend(lending::making_way::returning(state, seen, &plan.stopping, &plan.started, &plan.gaining));
    let started = asked.saturating_sub(refused.iter().filter(|(what, _)| what.is_none()).count());
    let record = PlanRecord {
        seen,
        at,
        left_out,
        refused: refused.iter().filter(|(what, _)| what.is_none()).map(|(_, start)| start.job).collect(),
        refused_changes: refused
            .iter()
            .filter_map(|(what, start)| Some(RefusedChange { job: start.job, what: (*what)? }))
            .collect(),
        reasons: reasons.into_iter().filter(|waiting| plan.is_news(waiting)).collect(),
        slots: slots.into_iter().filter(|planned| plan.is_new_slot(planned)).collect(),
        predictions: predictions.into_iter().filter(|predicted| plan.is_new_prediction(predicted)).collect(),
        external,
        promised: promised.map(|promised| plan.kept_promises(promised)).filter(|all| *all != state.route_promises()),
        cycle: cycle.map(|cycle| Box::new(noted(state, *cycle, &plan, started as u64))),
        lifted: lifted.map(|lifted| plan.kept_lifts(lifted)).filter(|all| !is_known(state.lifted_hours(), all)),
        units: units.into_iter().filter(|given| plan.started.contains(&given.job)).collect(),
        cut_after,
    };
    let says_nothing =
        refused.is_empty() && record.reasons.is_empty() && record.slots.is_empty() && record.predictions.is_empty();
    let has_usage = record.cycle.as_ref().is_some_and(|cycle| cycle.usage.is_some() || cycle.half_life_began.is_some());
    if !says_nothing || record.promised.is_some() || record.lifted.is_some() || has_usage || !events.is_empty() {
        events.push(Event::Planned { plan: Arc::new(record) });
    }
    Ok(Decision { events, reply: Reply::Planned(refused.into_iter().map(|(_, refused)| refused).collect()) })
}

/// A cycle as the log keeps it.
fn noted(state: &State, cycle: PlanCycle, plan: &Plan, started: u64) -> PlanCycle {
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(MOST_TEXT_BYTES));
        text
    };
    let reasons = cycle.reasons.into_iter().take(MOST_REASONS).map(cut).collect();
    let one = |(user, usage): (Arc<str>, u64)| UserUsage { user: user.to_string(), usage };
    let used = || state.share_use(plan.planned_at).into_iter().take(MOST_USERS_OF_CYCLE).map(one).collect();
    let usage = cycle.usage.is_some().then(used);
    let half_life_began = cycle.half_life_began.and_then(|_| state.half_life_began(plan.planned_at));
    let (number, epoch) = (plan.pass, plan.epoch);
    PlanCycle { number, epoch, started, reasons, usage, half_life_began, policy: cut(cycle.policy), ..cycle }
}

fn is_known(known: &BTreeMap<String, Timestamp>, lifted: &[QueueLift]) -> bool {
    known.len() == lifted.len() && lifted.iter().all(|lift| known.get(&lift.queue) == Some(&lift.until))
}

/// Maximum number of reasons of a cycle.
const MOST_REASONS: usize = 16;
/// Maximum number of bytes of a reason and of a name.
const MOST_TEXT_BYTES: usize = 256;
/// Maximum number of promises that are kept from one cycle to the next: each queue has one.
const MOST_PROMISES: usize = 10_000;

/// A plan may be this much older than its decision.
const MOST_PLAN_AGE_SECONDS: i64 = 60;

/// The time for which a plan is made. Quotas are checked for it, so that a run that is to end before other rules hold does so; but a
/// planner cannot choose any time.
fn plan_time(at: Timestamp, now: Timestamp) -> Timestamp {
    at.clamp(now.plus_seconds(-MOST_PLAN_AGE_SECONDS), now)
}

/// Starts a job because an operator says so: no limit on running jobs and no stopped queue keeps it from that (PBS-C-09).
pub(crate) fn run(access: &Access, job: JobId, placement: Placement, now: Timestamp) -> Result<Decision, Refusal> {
    access.require_operator("start jobs")?;
    let job = access.state.id_meant(job);
    let known = access.state.job(job).or_else(|| job.index.and_then(|_| access.state.job(job.whole())));
    known.ok_or_else(|| not_found(format!("job {job} does not exist")))?;
    let mut plan = Plan { is_ordered: true, is_past_queues: true, ..Plan::new(access.state, now) };
    let events = plan.start(job, placement);
    events.map(Decision::done).map_err(|why| conflict(format!("job {job} cannot be started: {why}")))
}

/// The state, updated with what has been accepted of the plan.
pub(crate) struct Plan<'a> {
    state: &'a State,
    now: Timestamp,
    next_run: RunId,
    next_chain: u64,
    /// The planner's facts about starts, besides their placement.
    facts: BTreeMap<JobId, StartFacts>,
    pass: u64,
    epoch: u64,
    /// No job of this priority or below starts before the verdict on another job (HPC-F-82).
    judged: Option<i64>,
    /// Jobs that start, are judged, grow or shrink by the plan.
    started: BTreeSet<JobId>,
    /// Jobs that running jobs make way for in the plan. They continue to wait.
    gaining: BTreeSet<JobId>,
    /// Runs stopped or suspended by the plan.
    stopping: BTreeSet<RunId>,
    nodes: BTreeMap<NodeId, Node>,
    licences: BTreeMap<String, Licence>,
    queues: BTreeMap<String, Queue>,
    arrays: BTreeMap<u64, u32>,
    /// The queues in which jobs start that wait in others.
    moves: BTreeMap<JobId, String>,
    /// What jobs have got by the plan that share their cores with others.
    sharers: Vec<(RunId, Sharing, NodeShare)>,
    /// Whether an operator orders the start.
    is_ordered: bool,
    /// Whether stopped queues and their limits on running jobs do not count.
    is_past_queues: bool,
    /// The time for which the plan was made.
    planned_at: Timestamp,
    /// The runs and the starts of the plan, once a start needs them; `None` inside if there are no quotas.
    quotas: Option<Option<Book<RunId>>>,
    /// Shares inside planning domains that the plan has given.
    inside: Vec<(RunId, NodeShare)>,
    /// Runs whose kept shares inside domains count as free.
    given_back: BTreeSet<RunId>,
}

impl<'a> Plan<'a> {
    fn new(state: &'a State, now: Timestamp) -> Self {
        Self {
            state,
            now,
            next_run: state.next_run(),
            next_chain: state.next_chain(),
            facts: BTreeMap::new(),
            pass: 0,
            epoch: 0,
            judged: state.judged_priority(),
            started: BTreeSet::new(),
            gaining: BTreeSet::new(),
            stopping: BTreeSet::new(),
            nodes: BTreeMap::new(),
            licences: BTreeMap::new(),
            queues: BTreeMap::new(),
            arrays: BTreeMap::new(),
            moves: BTreeMap::new(),
            sharers: Vec::new(),
            is_ordered: false,
            is_past_queues: false,
            planned_at: now,
            quotas: None,
            inside: Vec::new(),
            given_back: BTreeSet::new(),
        }
    }

    pub(crate) fn state(&self) -> &'a State {
        self.state
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether what is kept under this number counts as free.
    pub(crate) fn is_given_back(&self, run: RunId) -> bool {
        self.given_back.contains(&run)
    }

    /// The shares inside planning domains that the plan has given.
    pub(crate) fn given_inside(&self) -> impl Iterator<Item = (RunId, &NodeShare)> {
        self.inside.iter().map(|(run, share)| (*run, share))
    }

    /// Starts a job: at once, or with an offer if filters judge the start.
    fn start(&mut self, id: JobId, placement: Placement) -> Result<Vec<Event>, String> {
        let job = self.startable(id)?;
        let moved = self.moved(job, id)?;
        let goes_to = moved.as_ref().map(|job| job.lead().queue.to_string());
        let job = moved.as_ref().unwrap_or(job);
        fixed::decide::check_start(job, self.now)?;
        self.may_start(job)?;
        self.check_array(job, id)?;
        if self.is_asked(job) {
            job.check_reserved(&placement)?;
        }
        let lead = placement.shares().next().map(|share| share.node);
        copies::decide::elsewhere(self.state, job, lead).map_or(Ok(()), Err)?;
        self.give_back_kept(job);
        if let Err(why) = self.check_queues(job).and_then(|()| self.check_placement(job, &placement)) {
            self.take_kept_again(job);
            return Err(why);
        }
        if let Err(why) = self.check_quotas(job, &placement) {
            self.take_kept_again(job);
            return Err(why);
        }
        let run = self.run_number(job);
        self.started.insert(id);
        self.take(job, id, run, &placement);
        self.count_for_quotas(job, run, &placement);
        if self.is_asked(job) {
            return Ok(vec![self.offer(job, id, run, placement)]);
        }
        let change = |queue| Arc::new(JobChange { queue: Some(queue), ..JobChange::default() });
        let mut events: Vec<Event> =
            goes_to.map(|queue| Event::JobModified { job: id, change: change(queue) }).into_iter().collect();
        let missing = fixed::decide::missing_nodes(self.state, job, &placement, self.now);
        let missing: Vec<String> = missing.iter().map(|node| self.state.node_name(*node).into_owned()).collect();
        events.extend(fixed::decide::shortened(job, self.now, &missing));
        events.push(Event::RunAllocated { job: id, run, placement: Arc::new(placement) });
        if self.facts.get(&id).is_some_and(|facts| facts.backfill) {
            events.push(Event::RunBackfilled { job: id, run });
        }
        Ok(events)
    }

    /// A job as it starts in the queue to which the plan moves it; `None` if it stays where it is. Filters judge a job where it
    /// waits.
    fn moved(&self, job: &Job, id: JobId) -> Result<Option<Job>, String> {
        let Some(queue) = self.moves.get(&id).filter(|queue| job.queues().any(|own| **own != ***queue)) else {
            return Ok(None);
        };
        if self.is_asked(job) {
            return Err("filters judge its start, so that it starts in the queue in which it waits".into());
        }
        let known = self.state.queue(queue).ok_or_else(|| format!("queue `{queue}` does not exist"))?;
        if known.spec.route.is_some() {
            return Err(format!("queue `{queue}` passes jobs on and starts none"));
        }
        if !known.spec.started && !self.is_past_queues {
            return Err(format!("queue `{queue}` is stopped"));
        }
        let mut moved = job.clone();
        moved.components.iter_mut().for_each(|component| component.queue = queue.as_str().into());
        Ok(Some(moved))
    }

    /// The promises to jobs that still wait after this plan.
    fn kept_promises(&self, promised: Vec<RoutePromise>) -> Vec<RoutePromise> {
        promised.into_iter().filter(|promise| self.waiting(promise.job).is_some()).take(MOST_PROMISES).collect()
    }

    /// The lifted rules of queues that there are.
    fn kept_lifts(&self, lifted: Vec<QueueLift>) -> Vec<QueueLift> {
        let known = lifted.into_iter().filter(|lift| self.state.queue(&lift.queue).is_some());
        known.take(MOST_PROMISES).collect()
    }

    /// The number of a new run; a job with kept resources keeps the number assigned with them.
    fn run_number(&mut self, job: &Job) -> RunId {
        let kept = job.reserved();
        kept.map(|kept| kept.run).unwrap_or_else(|| {
            let run = self.next_run;
            self.next_run = RunId(run.0 + 1);
            run
        })
    }

    /// The job if its gates are open; for a task that has never started, its array.
    fn startable(&self, id: JobId) -> Result<&'a Job, String> {
        if self.started.contains(&id) {
            return Err("the plan starts it twice".into());
        }
        let known = self.state.job(id);
        let job = known.or_else(|| id.index.and_then(|_| self.state.job(id.whole())));
        let job = job.ok_or("it no longer exists")?;
        match (&job.array, id.index) {
            (Some(_), None) => return Err("an array is started by its tasks".into()),
            (Some(array), Some(index)) if !self.state.startable(job, array).contains(index) => {
                return Err("the task does not wait, or is held".into());
            }
            _ => {}
        }
        if !job.is_waiting() {
            return Err("it no longer waits".into());
        }
        let reason = match self.state.gate_reason(job) {
            Some(WaitReason::QueueStopped | WaitReason::PlannerOff) if self.is_past_queues => {
                self.state.reason_behind_queues(job)
            }
            reason => reason,
        };
        reason.map_or(Ok(job), |reason| Err(reason.to_string()))
    }

    fn check_array(&self, job: &Job, id: JobId) -> Result<(), String> {
        if id.index.is_none() {
            return Ok(());
        }
        let whole = if job.array.is_some() { Some(job) } else { self.state.job(id.whole()) };
        let started = self.arrays.get(&id.number).copied().unwrap_or(0);
        match whole.and_then(|whole| whole.array.as_ref()) {
            Some(array) if array.headroom() <= started => Err("array limit reached".into()),
            _ => Ok(()),
        }
    }

    fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name).or_else(|| self.state.queue(name))
    }

    fn check_queues(&self, job: &Job) -> Result<(), String> {
        if self.is_past_queues {
            return Ok(());
        }
        for name in job.queues() {
            let queue = self.queue(name).ok_or_else(|| format!("queue `{name}` does not exist"))?;
            if queue.spec.max_running_jobs.is_some_and(|most| queue.running >= most) {
                return Err(format!("queue `{name}` has reached its limit of running jobs"));
            }
            let of_user = queue.running_of(&job.owner.user);
            if queue.spec.max_running_jobs_per_user.is_some_and(|most| of_user >= most) {
                return Err(format!("user {} has reached the limit of running jobs in queue `{name}`", job.owner.user));
            }
        }
        Ok(())
    }

    /// Refuses a start that would break a quota, so that no planner can (OAR-Q-05). An operator who orders a start may.
    fn check_quotas(&mut self, job: &Job, placement: &Placement) -> Result<(), String> {
        let (state, now, at) = (self.state, self.now, self.planned_at);
        let book = self.quotas.get_or_insert_with(|| quotas::book_of_runs(state, now));
        let Some(book) = book.as_ref().filter(|_| !self.is_ordered) else { return Ok(()) };
        let breach = book.breach(&quotas::parts(state, job, placement), at);
        breach.map_or(Ok(()), |breach| Err(breach.to_string()))
    }

    fn count_for_quotas(&mut self, job: &Job, run: RunId, placement: &Placement) {
        let Some(Some(book)) = &mut self.quotas else { return };
        let parts = quotas::parts(self.state, job, placement);
        let until = quotas::end_of(&parts, self.now);
        book.hold(run, &parts, Timestamp(i64::MIN), until);
    }

    fn take(&mut self, job: &Job, id: JobId, run: RunId, placement: &Placement) {
        for share in placement.shares() {
            if job.domain().is_some() {
                self.inside.push((run, share.clone()));
                continue;
            }
            self.change_node(share.node, |node| node.take(run, share, &Spare::default()));
            self.sharers.extend(Sharing::of(job).map(|sharing| (run, sharing, share.clone())));
        }
        for (component, placed) in job.components.iter().zip(&placement.components) {
            let Some(alternative) = component.shape.alternatives.get(placed.alternative as usize) else { continue };
            for (name, count) in &alternative.licences {
                let known = self.state.licence(name).copied().unwrap_or_default();
                self.licences.entry(name.clone()).or_insert(known).used += count;
            }
        }
        for name in job.queues() {
            if let Some(queue) = self.state.queue(name) {
                self.queues.entry(name.to_string()).or_insert_with(|| queue.clone()).run_began(&job.owner.user);
            }
        }
        if id.index.is_some() {
            *self.arrays.entry(id.number).or_default() += 1;
        }
    }

    /// What others hold of a node, by the state and by the plan, that a job may overlap.
    fn open_to(&self, job: &Job, node: NodeId) -> Spare {
        let mut open = self.state.open_to(job, node);
        let Some(own) = Sharing::of(job).filter(|_| !self.sharers.is_empty()) else { return open };
        let on_node = || self.sharers.iter().filter(|(.., share)| share.node == node);
        for (run, _, share) in on_node().filter(|(_, sharing, _)| own.admits(sharing)) {
            open.cores = open.cores.union(&share.cores);
            open.gpus = open.gpus.union(&share.gpus);
            open.runs.insert(*run);
        }
        for (run, _, share) in on_node().filter(|(_, sharing, _)| !own.admits(sharing)) {
            open.cores = open.cores.difference(&share.cores);
            open.gpus = open.gpus.difference(&share.gpus);
            open.exclusive = open.exclusive.or(share.exclusive.then_some(*run));
        }
        open
    }

    /// After a run has given back a share of a node: what others hold that shared it is not free.
    fn keep_shared(&mut self, node: NodeId, from: RunId) {
        let mut held = self.state.held_by_sharers(node, from);
        for (run, _, share) in self.sharers.iter().filter(|(run, _, share)| share.node == node && *run != from) {
            held.cores = held.cores.union(&share.cores);
            held.gpus = held.gpus.union(&share.gpus);
            held.exclusive = held.exclusive.or(share.exclusive.then_some(*run));
            held.runs.insert(*run);
        }
        self.change_node(node, |node| {
            node.keep(&held);
            Ok(())
        });
    }

    /// Changes a node as seen by the plan. What the change takes and gives back was checked before.
    fn change_node(&mut self, id: NodeId, change: impl FnOnce(&mut Node) -> Result<(), String>) {
        if let Some(node) = self.state.node(id) {
            let _ = change(self.nodes.entry(id).or_insert_with(|| node.clone()));
        }
    }

    /// A job that still waits after this plan; an array as long as any of its tasks do.
    fn waiting(&self, id: JobId) -> Option<&'a Job> {
        self.state.job(id).filter(|job| job.is_waiting() && !self.started.contains(&job.id) && self.has_tasks_left(job))
    }

    /// Whether tasks of an array that have never started still wait. A job that is not an array counts as one task.
    fn has_tasks_left(&self, job: &Job) -> bool {
        let Some(array) = &job.array else { return true };
        let tasks = self.started.range(JobId::task(job.id.number, 0)..=JobId::task(job.id.number, u32::MAX));
        let first_started = tasks.filter(|task| task.index.is_some_and(|index| array.remaining.contains(index)));
        array.remaining.len() > first_started.count() as u64
    }

    /// Whether a reason is for a job that still waits, and differs from the known one.
    fn is_news(&self, waiting: &WaitingJob) -> bool {
        self.waiting(waiting.job).is_some_and(|job| job.planner_reason.as_deref() != Some(&waiting.reason))
    }

    /// Whether what was known about the start of a waiting job is void: it was about a task that starts now.
    fn is_void(&self, job: &Job) -> bool {
        job.array.is_some() && self.arrays.contains_key(&job.id.number)
    }

    fn is_new_slot(&self, planned: &PlannedSlot) -> bool {
        let known = |job: &&Job| job.slot.as_deref().filter(|_| !self.is_void(job)) == planned.slot.as_ref();
        // The promise of a fixed start stays, whatever a planner says.
        let stays = |job: &&Job| job.slot.is_some() && job.fixed_time().is_some();
        self.waiting(planned.job).is_some_and(|job| job.gates_open() && !known(&job) && !stays(&job))
    }

    /// A backfill pass, without jobs that no longer wait; `None` if it is not the next one.
    fn passed(&self, mut pass: BackfillPass) -> Option<BackfillPass> {
        let is_next = pass.number == self.state.backfill_passes().number + 1;
        pass.mode = ComponentMode::of_pass(pass.number);
        pass.jobs.retain(|planned| {
            let job = self.waiting(planned.job).filter(|job| job.gates_open());
            job.is_some_and(|job| job.components.len() == planned.components.len())
        });
        is_next.then_some(pass)
    }

    fn is_new_prediction(&self, predicted: &PredictedStart) -> bool {
        let known = |job: &&Job| job.predicted_start.filter(|_| !self.is_void(job)) == predicted.start;
        let may_be_foreseen = |job: &&Job| job.gates_open() || job.awaits().is_some();
        self.waiting(predicted.job).is_some_and(|job| may_be_foreseen(&job) && !known(&job))
    }
}
