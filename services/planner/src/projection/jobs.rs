//! Jobs and runs of a state as the engine takes them.

use crate::{
    class::Size,
    domains::{self, Opener},
    engine::Engine,
    machine,
    model::{
        Activation, ActiveRun, ComponentCharge, ComponentDemand, Demand, ElasticRun, Holder, QueuedJob, QueuedTasks,
        Slot, YieldingRun,
    },
    resize,
};
use muster_domain::{
    State,
    filters::{Entry, JobFilters},
    jobs::{Component, Job, ProgramKind},
    quotas::{self, Marks},
    requests,
    reservations::Reservation,
    runs::Run,
    sharing::Sharing,
    tasks::Elastic,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    accounts::DEFAULT_CLASS,
    cluster::ClusterSettings,
    command::Start,
    event::Owner,
    filter::{ActivationOrdering, FilterKind},
    plan::{SlotSpec, StartFacts},
    policy::{
        ComponentPriority,
        routes::{BACKGROUND, BASE, INTERACTIVE, JobStanding, SPECIAL},
    },
    resources::{IndexSet, Placement},
};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// A holder is shared by all jobs with the same owner and charge. It is only looked up, never iterated over.
#[derive(Clone, Debug, Default)]
pub(super) struct Holders(HashMap<OwnerAndAccount, Arc<Holder>>);

type OwnerAndAccount = (Arc<Owner>, Option<Arc<str>>, Vec<ComponentCharge>, Option<Arc<Marks>>);

impl Holders {
    fn of(&mut self, state: &State, job: &Job) -> Arc<Holder> {
        let marks = state.settings().quotas.as_ref().and_then(|_| quotas::marks(state, job));
        let key = (job.owner.clone(), job.lead().account.clone(), charges(job), marks);
        let holder = self.0.entry(key).or_insert_with_key(|(owner, account, charges, marks)| {
            let (user, group) = (owner.user.as_str().into(), owner.gid);
            let (account, charges, marks) = (account.clone(), charges.clone(), marks.clone());
            Arc::new(Holder { user, group, account, charges, marks })
        });
        holder.clone()
    }

    /// The job as it waits; `None` if it does not, or one of its own gates is shut. A stopped queue is not one of
    /// these.
    pub(super) fn queued(&mut self, state: &State, job: &Job) -> Option<QueuedJob> {
        let is_open = is_ready(job) && job.components.iter().all(Component::gates_open);
        if is_open { self.after_others(state, job) } else { None }
    }

    /// The job as it waits once what it waits for has happened; `None` if something else keeps it out.
    pub(super) fn after_others(&mut self, state: &State, job: &Job) -> Option<QueuedJob> {
        if !job.is_waiting() || !is_ready(job) || !has_begun_reservations(state, job) {
            return None;
        }
        Some(QueuedJob {
            id: job.id,
            tasks: tasks(state, job)?,
            demand: Arc::new(demand(state, job)),
            holder: self.of(state, job),
            priority: priority(state, job),
            is_list: job.tasks.is_some(),
            arrival: job.queued,
            attributes: attributes(state, job),
            slot: job.slot.as_deref().map(slot),
            activation: activation(state, job).map(Arc::new),
        })
    }

    /// The resources kept for a waiting job, as if it had them: nobody else gets them. They have no known end, unless
    /// its start must not be after a time (HPC-B-14, HPC-B-15).
    pub(super) fn kept(&mut self, state: &State, job: &Job) -> Option<ActiveRun> {
        let filtering = job.filters.as_deref().filter(|_| job.is_waiting())?;
        let (_, placement) = filtering.kept().filter(|(_, placement)| placement.shares().next().is_some())?;
        let offer = filtering.chain.as_ref().and_then(|chain| chain.set_aside());
        let demand = Arc::new(demand(state, job));
        let latest_start = offer.and_then(|offer| offer.latest_start);
        let latest_end = latest_start.map(|start| machine::expected_end(&demand, placement, start));
        Some(ActiveRun {
            job: job.id,
            demand,
            holder: self.of(state, job),
            placement: placement.clone(),
            expected_end: latest_end.unwrap_or(Timestamp::MAX),
            attributes: attributes(state, job),
        })
    }

    /// The run as it holds resources.
    pub(super) fn active(&mut self, state: &State, job: &Job, run: &Run) -> Held {
        let (placement, lends_of) = match run.has_lent() {
            false => (with_offer(job, run), None),
            true => (state.held_placement(run), Some((run.placement.clone(), run.is_resuming()))),
        };
        let (demand, holder) = (Arc::new(demand(state, job)), self.of(state, job));
        let guard = i64::try_from(guard(state)).unwrap_or(i64::MAX);
        let expected_end = expected_end(job, run).plus_seconds(guard).min(Timestamp::MAX);
        let attributes = attributes(state, job);
        let run = ActiveRun { job: run.job, demand, holder, placement, expected_end, attributes };
        Held { run, lends_of }
    }
}

/// A run with its holdings, and all of its resources if it has lent a part of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    run: ActiveRun,
    /// With whether it waits for what it has lent.
    lends_of: Option<(Arc<Placement>, bool)>,
}

impl Held {
    /// Its job.
    pub(super) fn job(&self) -> JobId {
        self.run.job
    }

    /// Tells the engine.
    pub(super) fn begin(self, engine: &mut Engine) {
        match self.lends_of {
            None => engine.begin(self.run),
            Some((has, waits)) => engine.begin_lending(self.run, &has, waits),
        }
    }
}

/// The charges of a job's components, unless all are charged to the same account and no class.
fn charges(job: &Job) -> Vec<ComponentCharge> {
    let lead = &job.lead().account;
    if job.components.iter().all(|component| component.account == *lead && component.class().is_none()) {
        return Vec::new();
    }
    let charge = |component: &Component| ComponentCharge {
        account: component.account.clone(),
        class: component.class().cloned(),
    };
    job.components.iter().map(charge).collect()
}

/// What a run has, with what is set aside for its growth.
fn with_offer(job: &Job, run: &Run) -> Arc<Placement> {
    let chain = job.filters.as_ref().and_then(|filtering| filtering.chain.as_ref());
    match chain.and_then(|chain| chain.set_aside()).filter(|offer| offer.growth) {
        Some(offer) => Arc::new(resize::merged(&run.placement, &offer.placement)),
        None => run.placement.clone(),
    }
}

/// Whether a job is in the queue, its files are staged in, and no gate of its own is shut except that its activation
/// filters are being asked.
fn is_ready(job: &Job) -> bool {
    let filters_open = |filtering: &JobFilters| {
        let is_asked = filtering.chain.as_ref().is_some_and(|chain| chain.spec.kind == FilterKind::Activation);
        filtering.is_open() || filtering.entry == Entry::Entered && filtering.hold.is_none() && is_asked
    };
    job.is_staged_in() && !job.is_copied_ahead() && job.filters.as_deref().is_none_or(filters_open)
}

/// The role of activation filters for a waiting job, if there is any.
fn activation(state: &State, job: &Job) -> Option<Activation> {
    let has_filters = state.has_activation_filters(job);
    let Some(filtering) = job.filters.as_deref() else {
        return has_filters.then(|| Activation { is_filtered: true, ..Activation::default() });
    };
    let chain = filtering.chain.as_deref();
    let is_strict = state.filter_settings().ordering == ActivationOrdering::Strict;
    let is_filtered = has_filters && !filtering.is_granted;
    let activation = Activation {
        is_filtered,
        is_pending: chain.is_some(),
        holds_back: is_strict && chain.is_some_and(|chain| chain.holds_up_others()),
        ask_again: filtering.refusal.as_ref().filter(|_| is_filtered).map(|refusal| refusal.ask_again),
        kept: filtering.reserved.as_ref().filter(|_| chain.is_none()).map(|kept| kept.placement.clone()),
    };
    (activation != Activation::default()).then_some(activation)
}

/// The facts about a start that was not decided by the engine, if the job has activation filters: it has no place in
/// an order, and goes around nobody.
pub fn facts_of(state: &State, start: &Start) -> Option<StartFacts> {
    let job = state.job(start.job).or_else(|| state.job(start.job.whole()))?;
    let unit = job.tasks.as_ref().map_or_else(|| resize::unit_of(&asked(state, job)), |book| book.unit);
    let count = resize::units_in(state, unit, &start.placement).into();
    let facts = StartFacts { job: start.job, index: 0, backfill: false, count, latest_start: None };
    state.has_activation_filters(job).then_some(facts)
}

/// The use that a running job has for more or fewer resources, if it is a list of tasks.
pub(super) fn elastic(state: &State, job: &Job) -> Option<ElasticRun> {
    let (run, book) = (state.run(job.run()?)?, job.tasks.as_deref()?);
    let is_leaving = run.stopping.is_some();
    let size = state.elastic(job.id).or_else(|| is_leaving.then(Elastic::default))?;
    let filtering = job.filters.as_deref();
    let mut busy: BTreeMap<NodeId, u32> = BTreeMap::new();
    for (node, cores) in book.running.values().flat_map(|task| &task.cores) {
        *busy.entry(*node).or_default() += cores;
    }
    let goes_on = run.started.is_some() && !is_leaving && !run.is_suspended() && book.ending.is_none();
    let waits_for_filter = filtering.is_some_and(|filtering| filtering.chain.is_some());
    let is_backfill = filtering.is_some_and(|filtering| filtering.is_backfill);
    Some(ElasticRun {
        job: job.id,
        priority: state.priority_of(job),
        arrival: job.queued,
        allocated: run.allocated,
        size,
        busy,
        barred: book.leaving.iter().chain(&book.unusable).copied().collect(),
        shrinking: book.shrinking.as_ref().map(|(removed, _)| removed.clone()),
        is_leaving,
        may_grow: goes_on && !waits_for_filter && !is_backfill && job.domain().is_none(),
        is_filtered: state.has_activation_filters(job),
        ask_again: filtering.and_then(|filtering| filtering.refusal.as_ref()).map(|refusal| refusal.ask_again),
    })
}

/// How a running job makes way for others, if jobs of all its classes or of its queues do.
pub(super) fn yielding(state: &State, job: &Job) -> Option<YieldingRun> {
    let accounts = state.accounts();
    // A job inside a planning domain would keep the resources from the job that it makes way for.
    let makes_way_above = state.makes_way_above(job);
    let nobody_by_class = accounts.classes().all(|class| class.preempts.is_empty());
    if nobody_by_class && makes_way_above.is_none() || job.opens_domain().is_some() {
        return None;
    }
    let run = state.run(job.run()?)?;
    let class = |component: &Component| component.class().cloned().unwrap_or_else(|| DEFAULT_CLASS.into());
    let mut classes: Vec<Arc<str>> = job.components.iter().map(class).collect();
    classes.sort();
    classes.dedup();
    let gives_cores_only = run.stopping.is_none() && state.is_suspended_if_preempted(job);
    // Before it has started there is nothing to suspend, and after that it has given its cores already.
    let has_something = !gives_cores_only || run.started.is_some() && !run.lends();
    let is_preempted = makes_way_above.is_some() || classes.iter().all(|class| accounts.is_preempted(class));
    (has_something && is_preempted).then(|| YieldingRun {
        job: job.id,
        priority: priority(state, job),
        allocated: run.allocated,
        classes,
        is_leaving: run.stopping.is_some(),
        comes_back: !gives_cores_only && state.comes_back_if_preempted(job),
        gives_cores_only,
        makes_way_above,
    })
}

/// The planning domain that an unfinished job opens. Jobs start inside only while it runs (OAR-T-14).
pub(super) fn opener(state: &State, job: &Job) -> Option<Opener> {
    let domain = job.opens_domain().filter(|_| !job.is_finished() && job.id.index.is_none())?;
    let run = job.run().and_then(|run| state.run(run));
    let is_kept = || job.filters.as_deref().is_some_and(|filters| filters.kept().is_some());
    let is_shut = run.map_or_else(is_kept, |run| !state.is_open_for_jobs(run));
    Some(Opener { key: domains::key(&domain), is_shut })
}

/// A promise as the engine has it.
pub(super) fn slot(spec: &SlotSpec) -> Slot {
    Slot { start: spec.start, placement: spec.placement.clone() }
}

/// The tasks that wait. No array: `Some(None)`. An array none of whose tasks may start: `None`.
#[allow(clippy::option_option, reason = "an array without tasks that may start is not the same as no array")]
fn tasks(state: &State, job: &Job) -> Option<Option<QueuedTasks>> {
    let whole = || state.job(job.id.whole()).and_then(|whole| whole.array.as_ref());
    let (indices, headroom) = match (&job.array, job.id.index) {
        (Some(array), _) => (state.startable(job, array).into_owned(), array.headroom()),
        // A task that was put back into the queue counts towards the limit of its array.
        (None, Some(index)) => (IndexSet::from_range(index, index), whole().map_or(1, |array| array.headroom())),
        (None, None) => return Some(None),
    };
    (!indices.is_empty() && headroom > 0).then_some(Some(QueuedTasks { indices, headroom }))
}

/// The priority of a job with those of its service classes; for several components as the policy says (SL-P-14).
fn priority(state: &State, job: &Job) -> i64 {
    let of = |component: &Component| component.priority.saturating_add(state.accounts().class_priority(component));
    let (first, rest) = (of(job.lead()), &job.components[1..]);
    if rest.is_empty() {
        return first;
    }
    let all = || job.components.iter().map(of);
    match state.policy().backfill.components.priority {
        ComponentPriority::First => first,
        ComponentPriority::Min => all().min().unwrap_or(first),
        ComponentPriority::Max => all().max().unwrap_or(first),
        ComponentPriority::Avg => {
            let sum: i128 = all().map(i128::from).sum();
            i64::try_from(sum.div_euclid(job.components.len() as i128)).unwrap_or(first)
        }
    }
}

fn has_begun_reservations(state: &State, job: &Job) -> bool {
    let is_open = |reservation: &Reservation| reservation.begun || reservation.spec.is_flexible;
    job.reservations().all(|name| state.reservation(name).is_some_and(is_open))
}

/// The request of a job, without the nodes that could not be prepared for it (HPC-J-22).
fn demand(state: &State, job: &Job) -> Demand {
    let mut demand = asked(state, job);
    let names = state.unprepared_nodes(job);
    if !names.is_empty() {
        for component in &mut demand.components {
            component.alternatives = requests::without_nodes(&component.alternatives, &names).into();
        }
    }
    demand.guarded(guard(state))
}

/// How much longer than the jobs their resources are kept free, in seconds.
fn guard(state: &State) -> u64 {
    state.settings().guard_seconds.unwrap_or(0).into()
}

/// The request of a job, in its own words.
fn asked(state: &State, job: &Job) -> Demand {
    let mut demand = bare(job);
    for component in &mut demand.components {
        let queue = state.queue(&component.queue);
        let bounded = queue.map(|queue| requests::bounded(&component.alternatives, &queue.spec));
        if let Some(Cow::Owned(alternatives)) = bounded {
            component.alternatives = alternatives.into();
        }
    }
    if job.domain().is_none() {
        for (asked, component) in demand.components.iter_mut().zip(&job.components) {
            asked.reservation = within(state, job, component);
        }
    }
    demand
}

/// The same without the reservations that it may use beside others.
fn bare(job: &Job) -> Demand {
    let domain = job.domain().map(|domain| domains::key(&domain));
    let component = |component: &Component| ComponentDemand {
        queue: component.queue.clone(),
        reservation: domain.clone().or_else(|| component.reservation().cloned()),
        deadline: component.deadline(),
        alternatives: component.shape.alternatives.clone(),
    };
    Demand {
        components: job.components.iter().map(component).collect(),
        sharing: Sharing::of(job).map(Arc::new),
        fixed: job.fixed_time(),
        guard_seconds: 0,
    }
}

/// The reservation to whose nodes and time a component is bound, or the name for those that it may have beside others: a
/// flexible one that it names, or those that attract it if it names none.
fn within(state: &State, job: &Job, component: &Component) -> Option<Arc<str>> {
    let Some(name) = component.reservation() else {
        let account = component.account.as_deref();
        let attracting = state.reservations().filter(|one| one.attracts(&job.owner.user, account));
        return domains::beside(attracting.map(|one| one.spec.name.as_str()));
    };
    let is_flexible = state.reservation(name).is_some_and(|one| one.spec.is_flexible);
    if is_flexible { domains::beside([&**name].into_iter()) } else { Some(name.clone()) }
}

/// What a job asks for, as limits on attributes, shares and orders use it by name; only under planning by turns, which
/// alone does so: `cores`, `nodes`, `memory_kib`, `walltime_seconds` and `cpu_seconds`, each only if the job names it.
fn attributes(state: &State, job: &Job) -> Option<Arc<BTreeMap<String, i64>>> {
    let turns = state.policy().turns.as_ref()?;
    let mut attributes = asked_by_name(&asked(state, job), state.settings());
    if let Some(routes) = &turns.routes {
        let lead = job.lead();
        let source = routes.sources.iter().find(|source| source.queue == *lead.queue);
        let standing = source.map(|source| source.standing).unwrap_or_default();
        let base = source.map_or(0, |source| source.base);
        for (name, value) in [
            (INTERACTIVE, i64::from(lead.program == ProgramKind::None)),
            (BASE, base),
            (BACKGROUND, i64::from(standing == JobStanding::Background)),
            (SPECIAL, i64::from(standing == JobStanding::Privileged)),
        ] {
            attributes.insert(name.to_owned(), value);
        }
    }
    Some(Arc::new(attributes))
}

/// What a demand asks for by the names that limits and orders by turns use. What it does not name is not there.
pub(crate) fn asked_by_name(demand: &Demand, settings: &ClusterSettings) -> BTreeMap<String, i64> {
    let size = Size::of(demand, settings);
    let ways = || demand.components.iter().filter_map(|component| component.alternatives.first());
    let cpu_seconds = ways().filter_map(|way| way.cpu_seconds).reduce(u64::saturating_add);
    let names_memory = ways().flat_map(|way| &way.requests).any(|request| request.memory.is_some());
    let named = [
        ("cores", Some(size.cores)),
        ("nodes", Some(size.nodes)),
        ("memory_kib", Some(size.memory_bytes / 1024).filter(|_| names_memory)),
        ("walltime_seconds", size.walltime_seconds),
        ("cpu_seconds", cpu_seconds),
    ];
    let number = |(name, value): (&str, Option<u64>)| Some((name.to_owned(), i64::try_from(value?).ok()?));
    named.into_iter().filter_map(number).collect()
}

/// When the last component of a run is over at the latest, by its walltime: counted from its start, or until then from
/// when it got its resources. [`Timestamp::MAX`] if it has none, or is suspended: then its walltime stands still.
pub fn expected_end(job: &Job, run: &Run) -> Timestamp {
    if run.is_suspended() {
        return Timestamp::MAX;
    }
    machine::expected_end(&bare(job), &run.placement, run.started.unwrap_or(run.allocated))
}
