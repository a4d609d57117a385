//! The planner's memory between passes: the machine with its lines, waiting jobs, runs, and promises.
//!
//! It learns of changes step by step, so that a pass never rebuilds anything. An engine that learned the same in
//! another order, or was built from the outcome, makes the same plans.

mod claims;
mod domains;
mod held;
mod inner_nodes;
mod quotas;
mod run;
mod view;

pub(crate) use claims::{Claim, parts};
pub(crate) use run::Run;

use crate::{
    PolicyError,
    class::{ClassId, Classes},
    domains::asked,
    limits::{Limits, Usage, Uses},
    machine::{Holding, Machine, Window},
    model::{ActiveRun, Closure, ElasticRun, NodeLoads, QueuedJob, Reservation, Slot, YieldingRun, lead_queue},
    queue::{Facts, Place, Queue},
    routes::{self, Conditions},
    search::Search,
    sharers::Sharers,
    timeline::ALWAYS,
};
use inner_nodes::Domains;
use muster_domain::{
    accounts::{Accounts, Counter, Spending},
    planning::BackfillPasses,
    quotas::Book,
    sharing::Sharing,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    cluster::{ClusterSettings, QueueSpec},
    fair_tree::Factors,
    filter::ActivationOrdering,
    job::WaitReason,
    policy::{ComponentStart, Components, Policy, UseSums, routes::Routes},
    resources::{IndexSet, NodeShare, NodeSpec, Placement},
    scheduling::SchedulingSettings,
};
use run::JustLeft;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// A run that has exceeded its walltime is assumed to end this much later.
const OVERRUN_SECONDS: i64 = 1;

/// Plans, and remembers what it was told.
#[derive(Clone, Debug)]
pub struct Engine {
    pub(crate) policy: Arc<Policy>,
    pub(crate) machine: Machine,
    pub(crate) queues: BTreeMap<Arc<str>, QueueSpec>,
    pub(crate) settings: ClusterSettings,
    pub(crate) classes: Classes,
    pub(crate) queue: Queue,
    pub(crate) limits: Limits,
    pub(crate) reservations: BTreeMap<Arc<str>, Reservation>,
    /// The bounds of closures and reservations, at which nodes open or close without an event.
    pub(crate) bounds: BTreeSet<(Timestamp, Bound)>,
    /// The number of passes so far.
    pub(crate) passes: u64,
    /// When the last one was.
    pub(crate) passed_at: Option<Timestamp>,
    /// The generation of the machine for which hopeless classes are known.
    pub(crate) judged_generation: u64,
    pub(crate) capacity_freed: bool,
    pub(crate) slots_in_doubt: bool,
    just_left: Option<JustLeft>,
    pub(crate) tells_reasons: bool,
    runs: HashMap<JobId, Run>,
    /// Assumed ends of runs that end.
    ends: BTreeSet<(Timestamp, JobId)>,
    pub(crate) scheduling: Arc<SchedulingSettings>,
    /// When shares were last rebalanced.
    pub(crate) rebalanced: Option<Timestamp>,
    /// Runs that can use more or fewer resources.
    pub(crate) elastic: BTreeMap<JobId, ElasticRun>,
    pub(crate) yielding: BTreeMap<JobId, YieldingRun>,
    /// The run that began last.
    last_begun: Option<JobId>,
    /// When runs were taken to end that make way for promises, in the last pass.
    pub(crate) cuts: BTreeMap<JobId, Timestamp>,
    /// Whether a job whose filters are being asked holds back others of its priority and below.
    pub(crate) is_strict: bool,
    /// The job that keeps others of this priority and below from starting.
    pub(crate) queue_block: Option<(JobId, i64)>,
    /// Whether all filters count as passing at once.
    pub(crate) assumes_passes: bool,
    /// When jobs with several components start and whether those share nodes, how many of those wait, and what backfill
    /// passes found for them.
    pub(crate) components: Components,
    pub(crate) jobs_with_components: usize,
    /// How many jobs with a fixed start wait.
    pub(crate) fixed_jobs: usize,
    pub(crate) backfill_passes: Arc<BackfillPasses>,
    /// Those among whom planning by turns shares the machine.
    pub(crate) sharers: Sharers,
    /// The facts of planning by turns with routes.
    pub(crate) conditions: Conditions,
    /// The loads of nodes, for rules that choose by them.
    pub(crate) loads: NodeLoads,
    /// The parts of quotas that runs and promises hold.
    pub(crate) quotas: Book<Claim>,
    /// Planning domains.
    pub(crate) domains: Domains,
}

/// The owner of a bound.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    Closure(NodeId),
    Reservation(Arc<str>),
}

impl Engine {
    /// An engine without nodes and jobs.
    ///
    /// # Errors
    /// If a formula of the policy cannot be read.
    pub fn new(policy: Arc<Policy>) -> Result<Self, PolicyError> {
        let routes = policy.turns.as_deref().and_then(|turns| turns.routes.as_deref());
        let rooms = routes.map_or_else(Vec::new, routes::rooms);
        let mut engine = Self {
            queue: Queue::new(&policy)?,
            limits: Limits::new(policy.limits.clone()),
            components: policy.backfill.components,
            sharers: Sharers::new(policy.turns.as_deref()),
            jobs_with_components: 0,
            fixed_jobs: 0,
            backfill_passes: Arc::default(),
            policy,
            machine: Machine::default(),
            queues: BTreeMap::new(),
            settings: ClusterSettings::default(),
            classes: Classes::default(),
            reservations: BTreeMap::new(),
            bounds: BTreeSet::new(),
            passes: 0,
            passed_at: None,
            judged_generation: 0,
            capacity_freed: false,
            slots_in_doubt: false,
            just_left: None,
            tells_reasons: true,
            runs: HashMap::new(),
            ends: BTreeSet::new(),
            scheduling: Arc::default(),
            rebalanced: None,
            elastic: BTreeMap::new(),
            yielding: BTreeMap::new(),
            last_begun: None,
            cuts: BTreeMap::new(),
            is_strict: true,
            queue_block: None,
            assumes_passes: false,
            conditions: Conditions::default(),
            loads: NodeLoads::default(),
            quotas: Book::default(),
            domains: Domains::default(),
        };
        for (room, units) in rooms {
            engine.machine.set_licence(&room, units);
        }
        Ok(engine)
    }

    /// The same, but all activation filters pass at once, including those being asked.
    #[must_use]
    pub fn assuming_passes(mut self) -> Self {
        self.assumes_passes = true;
        self
    }

    /// The same, but jobs with several components start as soon as they fit, not only in the next backfill pass, whose
    /// result thus becomes predictable.
    #[must_use]
    pub(crate) fn between_passes(mut self) -> Self {
        if self.has_backfill() {
            self.components.start = ComponentStart::AnyPass;
        }
        self
    }

    /// Sets how jobs get resources, and when shares were last rebalanced.
    pub fn set_scheduling(&mut self, settings: Arc<SchedulingSettings>, rebalanced: Option<Timestamp>) {
        self.slots_in_doubt |= settings.mode != self.scheduling.mode;
        (self.scheduling, self.rebalanced) = (settings, rebalanced);
    }

    /// Sets what may start while activation filters are asked.
    pub fn set_ordering(&mut self, ordering: ActivationOrdering) {
        self.is_strict = ordering == ActivationOrdering::Strict;
    }

    /// Sets the job that keeps others of a priority and below from starting.
    pub fn set_queue_block(&mut self, block: Option<(JobId, i64)>) {
        self.queue_block = block;
    }

    /// Sets what earlier backfill passes found, for jobs with several components that start only in such passes.
    pub fn set_backfill_passes(&mut self, passes: Arc<BackfillPasses>) {
        self.backfill_passes = passes;
    }

    /// Sets whether and how a run can use more or fewer resources.
    pub fn set_elastic(&mut self, job: JobId, run: Option<ElasticRun>) {
        match run {
            Some(run) => self.elastic.insert(job, run),
            None => self.elastic.remove(&job),
        };
    }

    /// Sets whether a run makes way for jobs of some classes.
    pub fn set_yielding(&mut self, job: JobId, run: Option<YieldingRun>) {
        let Some(run) = run else {
            self.yielding.remove(&job);
            return;
        };
        // A run that begins makes no earlier start possible.
        let is_news = self.yielding.get(&job) != Some(&run) && self.last_begun != Some(job);
        self.yielding.insert(job, run);
        if is_news {
            self.machine.frees_anything();
        }
    }

    /// How a run can use more or fewer resources.
    pub fn elastic(&self, job: JobId) -> Option<&ElasticRun> {
        self.elastic.get(&job)
    }

    /// The same, but passes do not say why jobs wait, which takes time.
    #[must_use]
    pub fn without_reasons(mut self) -> Self {
        self.tells_reasons = false;
        self
    }

    /// The policy in force.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// How many jobs wait; an array counts as one.
    pub fn waiting_jobs(&self) -> usize {
        self.queue.len()
    }

    /// The time from which orders count the age of jobs.
    pub fn set_epoch(&mut self, epoch: Timestamp) {
        self.queue.epoch = epoch;
    }

    /// Whether the order of jobs depends on what accounts and users have used.
    pub fn uses_fair_share(&self) -> bool {
        self.queue.uses_fair_share()
    }

    /// Sets the factors of users in accounts that orders use from now on.
    pub fn set_fair_factors(&mut self, factors: Factors) {
        self.queue.fair_factors = factors;
    }

    /// Whether the order of jobs depends on what users and accounts used in a window of time.
    pub fn uses_window(&self) -> bool {
        self.queue.uses_window()
    }

    /// Sets what users and accounts used and asked for in each queue in that window.
    pub fn set_window_use(&mut self, sums: BTreeMap<Arc<str>, UseSums>) {
        self.queue.window_use = sums;
    }

    /// Sets what users have used so far, in the unit that the shares of planning by turns charge. Users who have jobs that
    /// are not told here, such as held ones, are named too, if with nothing: users outside the table of shares divide
    /// their part among those who are named or have jobs here.
    pub fn set_user_usage(&mut self, usage: BTreeMap<Arc<str>, u64>) {
        self.sharers.set_usage(usage);
    }

    /// Sets the facts that planning by turns with routes needs.
    pub fn set_conditions(&mut self, conditions: Conditions) {
        self.queue.owner_use.clone_from(&conditions.usage);
        self.conditions = conditions;
    }

    /// Whether jobs start in other queues than those in which they wait.
    pub fn has_routes(&self) -> bool {
        self.routes().is_some()
    }

    /// The routes of the policy.
    fn routes(&self) -> Option<&Routes> {
        self.policy.turns.as_deref()?.routes.as_deref()
    }

    /// A run with the room that it has in its queue and on its machine.
    fn counted(&self, mut run: ActiveRun) -> ActiveRun {
        let Some(routes) = self.routes() else { return run };
        let is_whole =
            |share: &&NodeShare| share.exclusive && self.machine.node(share.node).is_some_and(|node| node.is_available);
        let nodes = u32::try_from(run.placement.shares().filter(is_whole).count()).unwrap_or(u32::MAX);
        let size = routes.size_of(run.attributes.as_deref());
        run.demand = Arc::new(routes::running(&run.demand, routes, size, nodes));
        run
    }

    /// Sets how long a job with a fixed start waits for promised nodes that take no jobs (OAR-G-13), and how long before it
    /// runs make way for it (OAR-T-25).
    pub fn set_fixed_starts(&mut self, settings: &ClusterSettings) {
        self.settings.reserved_nodes_wait_seconds = settings.reserved_nodes_wait_seconds;
        self.settings.make_way_ahead_seconds = settings.make_way_ahead_seconds;
    }

    /// Memory for each core of requests that name none, in bytes.
    pub fn set_default_memory_per_core_bytes(&mut self, bytes: Option<u64>) {
        if self.settings.default_memory_per_core_bytes != bytes {
            self.settings.default_memory_per_core_bytes = bytes;
            self.machine.frees_anything();
            self.machine.generation += 1;
            self.classes.measure(&self.settings);
            self.requeue_all();
        }
    }

    /// Adds or changes a node. It takes jobs if it is available: it reports and is not drained.
    pub fn set_node(&mut self, id: NodeId, spec: Arc<NodeSpec>, is_available: bool) {
        let known = self.machine.node(id);
        let changes_spec = known.is_none_or(|node| node.spec != spec);
        if changes_spec {
            self.slots_in_doubt |= known.is_some();
            let is_new = known.is_none();
            self.machine.set_node(id, spec, false);
            self.hold_again(|share_node| share_node == id);
            if is_new {
                let of_node = self.reservations.values().filter(|reservation| reservation.nodes.contains(&id));
                of_node.for_each(|reservation| self.machine.reserve_node(id, reservation));
            }
        }
        let is_other = self.machine.set_available(id, is_available);
        self.slots_in_doubt |= is_other && !is_available;
        if changes_spec || is_other {
            self.reopen_domains_on(id);
        }
    }

    /// Sets the GPUs of a node that no job gets. Runs that have them keep them.
    pub fn set_faulty_gpus(&mut self, id: NodeId, faulty: IndexSet) {
        if self.machine.set_faulty_gpus(id, &faulty) {
            self.slots_in_doubt = true;
            self.hold_again(|share_node| share_node == id);
            self.reopen_domains_on(id);
        }
    }

    /// Adds a node whose cores are all alike: jobs get a number of them and no particular ones.
    pub fn set_pool(&mut self, id: NodeId, spec: Arc<NodeSpec>) {
        self.machine.set_node(id, spec, true);
    }

    /// Removes a node.
    pub fn remove_node(&mut self, id: NodeId) {
        self.set_closures(id, Vec::new());
        self.machine.remove_node(id);
        self.slots_in_doubt = true;
    }

    /// Sets the times in which a node serves no job, replacing earlier ones.
    pub fn set_closures(&mut self, id: NodeId, closures: Vec<Closure>) {
        self.bounds.retain(|(_, bound)| *bound != Bound::Closure(id));
        for closure in &closures {
            self.bounds.extend([(closure.from, Bound::Closure(id)), (closure.until, Bound::Closure(id))]);
        }
        self.slots_in_doubt |= !closures.is_empty();
        self.machine.set_closures(id, closures);
        self.reopen_domains_on(id);
    }

    /// Sets the number of a floating licence; 0 if it is gone.
    pub fn set_licence(&mut self, name: &str, total: u32) {
        let is_new = self.machine.licences().all(|(known, _)| known != name);
        self.slots_in_doubt |= !is_new;
        self.machine.set_licence(name, total);
        if is_new {
            self.hold_licence_again(name);
        }
    }

    /// Sets the accounts and service classes whose limits apply. No run and no job may be known yet.
    pub fn set_accounts(&mut self, accounts: Arc<Accounts>) {
        self.limits.set_accounts(accounts);
    }

    /// Tells what ended jobs have used of the budgets of accounts and classes, as it counts when the plan is made.
    pub fn set_spent(&mut self, spent: impl Fn(&Counter) -> Spending) {
        self.limits.set_spent(spent);
    }

    /// Adds or changes a queue.
    pub fn set_queue(&mut self, queue: &QueueSpec) {
        let known = self.queues.insert(queue.name.as_str().into(), queue.clone());
        let changes_nodes = known.as_ref().is_some_and(|known| known.nodes != queue.nodes);
        if changes_nodes {
            self.machine.frees_anything();
            self.machine.generation += 1;
            self.slots_in_doubt = true;
        }
        if known.is_none_or(|known| known.priority != queue.priority) {
            self.requeue_all();
        }
    }

    /// Removes a queue.
    pub fn remove_queue(&mut self, name: &str) {
        self.queues.remove(name);
    }

    /// Adds or changes an advance reservation.
    pub fn set_reservation(&mut self, reservation: Reservation) {
        self.remove_reservation(&reservation.name.clone());
        for at in [reservation.start, reservation.end] {
            self.bounds.insert((at, Bound::Reservation(reservation.name.clone())));
        }
        self.machine.set_reservation(&reservation);
        self.reservations.insert(reservation.name.clone(), reservation);
        self.slots_in_doubt = true;
    }

    /// Removes an advance reservation.
    pub fn remove_reservation(&mut self, name: &str) {
        if self.reservations.remove(name).is_some() {
            self.slots_in_doubt = true;
            self.bounds.retain(|(_, bound)| !matches!(bound, Bound::Reservation(known) if **known == *name));
            self.machine.remove_reservation(name);
        }
    }

    /// Whether something became free since promises were last renewed, so that a policy that keeps promises looks for
    /// better ones.
    pub fn set_capacity_freed(&mut self, capacity_freed: bool) {
        self.capacity_freed = capacity_freed;
    }

    /// A job starts to wait. One with the same id is replaced.
    pub fn enqueue(&mut self, mut job: QueuedJob) {
        // It is not yet known whether a promise from elsewhere can be kept.
        self.slots_in_doubt |= job.slot.is_some() && job.slot != self.slot(job.id);
        self.dequeue(job.id);
        self.domains.waiting += usize::from(asked(&job.demand).is_some());
        job.slot = job.slot.map(|slot| self.inner_slot(&job.demand, slot));
        let class = self.classes.take(&job.demand, &self.settings);
        if let Some(slot) = &job.slot {
            self.slots_in_doubt = true;
            self.machine.take(&job.demand, &slot.placement, Holding::Promise { start: slot.start });
        }
        self.limits.prepare(&job.holder, &job.demand);
        self.sharers.add_job(&job.holder.user);
        let demand = job.demand.clone();
        self.jobs_with_components += usize::from(demand.components.len() > 1);
        self.fixed_jobs += usize::from(demand.fixed.is_some());
        let facts = Facts { size: self.classes.get(class).size, queue: lead_queue(&demand) };
        let id = job.id;
        self.queue.insert(job, class, &facts, &self.queues);
        self.queue.place_of(id).into_iter().for_each(|place| self.count_promise(place));
    }

    /// A job no longer waits.
    pub fn dequeue(&mut self, id: JobId) {
        let Some(entry) = self.queue.remove(id) else { return };
        self.quotas.release(Claim::Promise(id));
        self.sharers.remove_job(&entry.holder.user);
        let demand = &self.classes.get(entry.class).demand;
        self.jobs_with_components -= usize::from(demand.components.len() > 1);
        self.fixed_jobs -= usize::from(demand.fixed.is_some());
        self.domains.waiting -= usize::from(asked(demand).is_some());
        if let Some(slot) = &entry.slot {
            let demand = &self.classes.get(entry.class).demand;
            let before = self.machine.freed_so_far();
            self.machine.give_back(demand, &slot.placement, Holding::Promise { start: slot.start });
            let freed = before..self.machine.freed_so_far();
            self.just_left = Some(JustLeft { job: id, slot: slot.clone(), freed });
        }
        self.classes.give_back(entry.class);
    }

    /// Sets the known reason why a job waits, so that a pass does not report again what may concern all jobs of a site:
    /// that nothing can ever serve it. [`Self::enqueue`] forgets it.
    pub fn set_known_reason(&mut self, id: JobId, reason: Option<Arc<WaitReason>>) {
        self.queue.set_known_reason(id, reason);
    }

    /// Replaces or removes the promise of a waiting job.
    pub fn set_slot(&mut self, id: JobId, slot: Option<Slot>) {
        if let Some(place) = self.queue.place_of(id) {
            let demand = self.queue.get(place).map(|entry| self.classes.get(entry.class).demand.clone());
            let slot = slot.map(|slot| demand.map_or(slot.clone(), |demand| self.inner_slot(&demand, slot)));
            // It may have been found broken before.
            self.slots_in_doubt |= slot.is_some();
            self.set_slot_at(place, slot);
        }
    }

    pub(crate) fn set_slot_at(&mut self, place: Place, slot: Option<Slot>) {
        let Some(entry) = self.queue.get_mut(place) else { return };
        let demand = &self.classes.get(entry.class).demand;
        if let Some(old) = &entry.slot {
            self.machine.give_back(demand, &old.placement, Holding::Promise { start: old.start });
        }
        if let Some(new) = &slot {
            self.machine.take(demand, &new.placement, Holding::Promise { start: new.start });
        }
        entry.slot = slot;
        self.count_promise(place);
    }

    /// The promise of a waiting job.
    pub fn slot(&self, id: JobId) -> Option<Slot> {
        let slot = self.queue.get(self.queue.place_of(id)?)?.slot.as_ref()?;
        Some(Slot { start: slot.start, placement: self.real_placement(&slot.placement) })
    }

    /// A run holds resources from now on, and no longer waits.
    pub fn begin(&mut self, run: ActiveRun) {
        let run = self.counted(run);
        let usage = Usage::of(&run.placement, &run.demand);
        self.hold_using(run, usage);
    }

    /// The same for a run that has lent a part of `has`, all of which limits still count. `waits` says whether it waits for
    /// that part, to continue.
    pub fn begin_lending(&mut self, run: ActiveRun, has: &Placement, waits: bool) {
        let run = self.counted(run);
        let usage = Usage::of(has, &run.demand);
        let job = run.job;
        self.hold_using(run, usage);
        if let Some(known) = self.runs.get(&job).filter(|_| waits) {
            self.machine.await_cores(&known.run, has);
        }
    }

    fn hold_using(&mut self, run: ActiveRun, usage: Uses) {
        self.end(run.job);
        self.last_begun = Some(run.job);
        let run = self.inner_run(run);
        self.note_redeemed(&run);
        let assumed_end = run.expected_end;
        self.machine.take(&run.demand, &run.placement, Holding::Run { until: assumed_end });
        if matches!(run.demand.sharing.as_deref(), Some(Sharing::Host(_))) {
            // It opens a place for guests.
            self.machine.frees_anything();
        }
        self.slots_in_doubt |= self.is_in_the_way(&run, assumed_end);
        self.limits.begin(&run.holder, &run.demand, &usage, run.attributes.as_deref());
        self.ends.insert((assumed_end, run.job));
        self.sharers.add_job(&run.holder.user);
        let job = run.job;
        let run = Run { run, assumed_end, usage };
        self.insert_run(run.clone());
        self.slots_in_doubt |= self.breaks_quotas(&run);
        self.open_domain(job);
    }

    /// A run has ended.
    pub fn end(&mut self, job: JobId) {
        let opens = self.opens_domain(job);
        self.close_domain(job);
        let Some(Run { run, assumed_end, usage }) = self.remove_run(job) else { return };
        self.ends.remove(&(assumed_end, job));
        self.sharers.remove_job(&run.holder.user);
        self.machine.await_none(&run);
        self.machine.give_back(&run.demand, &run.placement, Holding::Run { until: assumed_end });
        if opens {
            self.keep_cores_of_others(&run.placement);
        }
        self.limits.end(&run.holder, &run.demand, &usage, run.attributes.as_deref());
    }

    /// A job starts in this pass: until the pass is over, its end counts among those of the runs.
    pub(crate) fn note_start(&mut self, run: ActiveRun, usage: Uses) {
        let assumed_end = run.expected_end;
        self.ends.insert((assumed_end, run.job));
        self.sharers.add_job(&run.holder.user);
        self.insert_run(Run { run, assumed_end, usage });
    }

    /// The pass in which a job starts is over.
    pub(crate) fn forget_start(&mut self, job: JobId) {
        if let Some(run) = self.remove_run(job) {
            self.ends.remove(&(run.assumed_end, job));
            self.sharers.remove_job(&run.run.holder.user);
        }
    }

    /// A run that holds resources.
    pub fn run(&self, job: JobId) -> Option<&ActiveRun> {
        self.runs.get(&job).map(|run| &run.run)
    }

    /// The assumed ends of all runs, ascending, each with its job.
    pub fn ends(&self) -> impl Iterator<Item = (Timestamp, JobId)> + '_ {
        self.ends.iter().copied()
    }

    /// Whether a run that lasts until then holds resources promised to others.
    fn is_in_the_way(&self, run: &ActiveRun, until: Timestamp) -> bool {
        self.machine.promises() > 0
            && self.machine.overbooks(&run.demand, &run.placement, Window { from: ALWAYS, until })
    }

    /// Runs that have exceeded their walltime keep their resources a little longer.
    pub(crate) fn extend_overdue(&mut self, now: Timestamp) {
        while let Some((assumed_end, job)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.remove(&(assumed_end, job));
            let Some(mut known) = self.remove_run(job) else { continue };
            self.machine.lend(&known.run.demand, &known.run.placement, Holding::Run { until: assumed_end });
            // Counted from the expected end, so that it does not matter when this was last looked at.
            let over = now.micros_since(known.run.expected_end) / (OVERRUN_SECONDS * 1_000_000);
            known.assumed_end = known.run.expected_end.plus_seconds((over + 1) * OVERRUN_SECONDS);
            self.machine.take(&known.run.demand, &known.run.placement, Holding::Run { until: known.assumed_end });
            self.slots_in_doubt |= self.is_in_the_way(&known.run, known.assumed_end);
            self.ends.insert((known.assumed_end, job));
            self.insert_run(known.clone());
            self.slots_in_doubt |= self.breaks_quotas(&known);
        }
    }

    pub(crate) fn search(&self, now: Timestamp) -> Search<'_> {
        let is_quiet = !self.bounds.iter().any(|(at, _)| *at > now && *at < Timestamp::MAX);
        Search {
            machine: &self.machine,
            queues: &self.queues,
            default_memory_per_core_bytes: self.settings.default_memory_per_core_bytes,
            shares_nodes: self.components.share_nodes,
            now,
            only_grows: is_quiet && self.machine.promises() == 0,
            ends: &self.ends,
            runs: &self.runs,
            known: None,
            ways: None,
        }
    }

    /// Makes searches for a class that continue in time fast.
    pub(crate) fn refresh_gaps(&mut self, class: ClassId, now: Timestamp) {
        let demand = &self.classes.get(class).demand;
        if self.search(now).as_pool(demand).is_some() {
            return;
        }
        for component in &demand.components {
            self.machine.refresh_gaps(component.reservation.as_ref(), now);
        }
    }

    /// Computes every job's place again.
    fn requeue_all(&mut self) {
        let mut jobs: Vec<(QueuedJob, Option<Arc<WaitReason>>)> = Vec::with_capacity(self.queue.len());
        for entry in self.queue.entries() {
            let job = QueuedJob {
                id: entry.id,
                tasks: entry.tasks.clone(),
                demand: self.classes.get(entry.class).demand.clone(),
                holder: entry.holder.clone(),
                priority: entry.priority,
                is_list: entry.is_list,
                arrival: entry.arrival,
                attributes: entry.attributes.clone(),
                slot: entry.slot.clone(),
                activation: entry.activation.clone(),
            };
            jobs.push((job, entry.known_reason.clone()));
        }
        for (job, known_reason) in jobs {
            let id = job.id;
            self.enqueue(job);
            self.set_known_reason(id, known_reason);
        }
    }
}
