//! Indexes. All are derived from the jobs, runs and nodes, and never stored.

mod rebuild;

use crate::{
    accounts::load::Submitted,
    dependencies::Condition,
    filters::JobFilters,
    jobs::{Job, JobExtras, Phase},
    nesting::index::{DomainKeys, Domains},
    reservations::Reservation,
};
use muster_schemas::{JobId, NodeId, RunId, Timestamp, event::Owner, filter::FilterKind, job::DependencyKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The keys of a job in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobKeys {
    /// Its place in the queue, if it waits with open gates.
    queued: Option<Timestamp>,
    /// When it is due.
    due: Option<Timestamp>,
    /// When it can be forgotten.
    forget_after: Option<Timestamp>,
    /// Whether it waits and a dependency can never be met.
    doomed: bool,
    /// Whether it will be cancelled for that.
    given_up: bool,
    /// The jobs that it depends on while it waits.
    targets: Vec<JobId>,
    /// Owner and name, if it is not over and not a task of an array.
    pub(crate) namesake: Option<(Arc<Owner>, Arc<str>)>,
    /// Whether it waits for earlier jobs of the same owner and name.
    pub(crate) is_singleton: bool,
    /// Whether it waits for resources that jobs after it must not take.
    blocking: bool,
    /// Whether a call of a filter is outstanding for it.
    calling: bool,
    /// Its priority, if jobs of that priority and below must not start before its verdict.
    judged: Option<i64>,
    /// Whether a chain is in progress or something is kept for it.
    kept: bool,
    /// When its filters or its hold are due.
    filters_due: Option<Timestamp>,
    /// Whether it is a list of tasks and has a run.
    elastic: bool,
    /// The node that copies files for it.
    copying: Option<NodeId>,
    /// Whether a planner has promised it a start.
    promised: bool,
    /// The staging that the job itself is ready for, with the extras that name the buffers it needs.
    pub(crate) to_stage: Option<(FilterKind, Option<Arc<JobExtras>>)>,
    /// The domain that it opens and the one that it runs in.
    domains: DomainKeys,
    /// Its first queue, if it waits there as a whole.
    waits_in: Option<(Arc<str>, Timestamp)>,
}

/// The keys of a running list of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskKeys {
    /// Whether there is work to do now.
    pub(crate) is_ready: bool,
    /// If not, when there may be.
    pub(crate) due: Option<Timestamp>,
}

impl JobKeys {
    pub(crate) fn of(job: &Job) -> Self {
        let plain = Self::without_filters(job);
        let keys = match &job.filters {
            None => plain,
            Some(filters) => plain.with_filters(job, filters),
        };
        let counts = job.id.index.is_none() && !job.is_finished();
        let copying = job.copying().map(|(node, ..)| node);
        let namesake = counts.then(|| (job.owner.clone(), job.name.clone()));
        let is_whole = job.id.index.is_none() && job.is_waiting();
        let waits_in = is_whole.then(|| (job.lead().queue.clone(), job.queued));
        let promised = job.slot.is_some();
        let keys = Self { namesake, copying, domains: DomainKeys::of(job), promised, waits_in, ..keys };
        match &job.staging {
            None => keys,
            Some(_) => Self { to_stage: job.staging_due().map(|kind| (kind, job.extras.clone())), ..keys },
        }
    }

    fn with_filters(self, job: &Job, filters: &JobFilters) -> Self {
        let holds_up = filters.chain.as_ref().is_some_and(|chain| chain.holds_up_others());
        // While it is judged, time has no other effect on the job.
        let is_judged = filters.is_judged();
        Self {
            due: self.due.filter(|_| !is_judged),
            doomed: self.doomed && !is_judged,
            given_up: self.given_up && !is_judged,
            calling: filters.call().is_some(),
            kept: filters.has_claims(),
            judged: holds_up.then(|| job.lead().priority),
            filters_due: filters.due(job.is_waiting()),
            ..self
        }
    }

    fn without_filters(job: &Job) -> Self {
        if let Phase::Finished(finished) = &job.phase {
            return Self { forget_after: Some(finished.forget_after), ..Self::default() };
        }
        if !job.is_waiting() {
            let elastic = job.tasks.is_some() && matches!(job.phase, Phase::Active(_));
            return Self { elastic, ..Self::default() };
        }
        let queued = job.gates_open().then_some(job.queued);
        let blocking = queued.is_some() && job.blocks_others();
        if job.components.iter().all(|component| component.extras.is_none()) {
            return Self { queued, blocking, ..Self::default() };
        }
        Self {
            queued,
            due: job.due(),
            forget_after: None,
            doomed: is_doomed(job),
            given_up: is_doomed(job) && job.is_cancelled_if_never_met(),
            targets: targets(job),
            is_singleton: job.is_singleton(),
            blocking,
            ..Self::default()
        }
    }
}

/// The buffers that must exist before a job is staged in.
fn buffers_used(to_stage: Option<&(FilterKind, Option<Arc<JobExtras>>)>) -> BTreeSet<String> {
    let staged_in = to_stage.filter(|(kind, _)| *kind == FilterKind::StageIn);
    staged_in.and_then(|(_, extras)| extras.as_ref()).map(|extras| extras.buffers_used()).unwrap_or_default()
}

/// Whether a dependency of the waiting job, or of some tasks of an array, can never be met.
fn is_doomed(job: &Job) -> bool {
    job.never_met().is_some() || job.array.as_ref().is_some_and(|array| !array.impossible.is_empty())
}

fn conditions(job: &Job) -> impl Iterator<Item = &Condition> {
    job.components.iter().filter_map(|component| component.extras.as_ref()).flat_map(|extras| extras.conditions())
}

fn targets(job: &Job) -> Vec<JobId> {
    let watched = conditions(job).filter(|condition| {
        !matches!(
            condition.dependency.kind,
            DependencyKind::BeforeStarted
                | DependencyKind::BeforeEnded
                | DependencyKind::BeforeSucceeded
                | DependencyKind::BeforeFailed
        )
    });
    let mut targets: Vec<JobId> = watched.filter_map(|condition| condition.dependency.job).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Something that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A waiting job: begin time, dependency delay or deadline.
    Job(JobId),
    /// The end of a timed hold, or the silence of a runner that has a call of the job.
    Filters(JobId),
    /// A running list of tasks: a service may restart, or tasks make room for the release of nodes.
    Tasks(JobId),
    /// The launch timeout of a run.
    Run(RunId),
}

/// All indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Waiting jobs with open gates, in order of arrival.
    pub(crate) queued: BTreeSet<(Timestamp, JobId)>,
    /// Due items, by time.
    pub(crate) due: BTreeSet<(Timestamp, Due)>,
    /// When finished jobs can be forgotten.
    pub(crate) retention: BTreeSet<(Timestamp, JobId)>,
    /// Waiting jobs with a dependency that can never be met.
    pub(crate) doomed: BTreeSet<JobId>,
    /// Those that will be cancelled for it, whatever the settings say about others.
    pub(crate) given_up: BTreeSet<JobId>,
    /// Waiting jobs that lack resources that jobs after them must not take.
    pub(crate) blocking: BTreeSet<JobId>,
    /// Jobs with an outstanding call of a filter.
    pub(crate) calling: BTreeSet<JobId>,
    /// Jobs with a chain in progress or kept resources.
    pub(crate) kept: BTreeSet<JobId>,
    /// Jobs that hold up others of their priority and below until their verdict, by priority.
    pub(crate) judged: BTreeSet<(i64, JobId)>,
    /// Jobs with a list of tasks and a run.
    pub(crate) elastic: BTreeSet<JobId>,
    /// Their keys, if any.
    pub(crate) task_keys: BTreeMap<JobId, TaskKeys>,
    /// Those with work to do now.
    pub(crate) tasks_ready: BTreeSet<JobId>,
    /// Jobs that are themselves ready for staging.
    pub(crate) to_stage: BTreeSet<JobId>,
    /// Those that can be staged now: there is a program, and the buffers they use exist.
    pub(crate) staging_ready: BTreeSet<JobId>,
    /// For each persistent buffer, the jobs ready for staging that use it and do not create it.
    pub(crate) buffer_users: BTreeMap<String, BTreeSet<JobId>>,
    /// For each job, the waiting jobs that depend on it.
    pub(crate) dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Jobs that wait for earlier ones of the same owner and name.
    pub(crate) singletons: BTreeSet<JobId>,
    /// Those that are tasks of arrays; no job waits for them.
    pub(crate) singleton_tasks: BTreeSet<JobId>,
    /// The unfinished jobs of each owner and name.
    namesakes: BTreeMap<String, BTreeMap<Arc<str>, BTreeSet<JobId>>>,
    /// When each reservation begins, or ends if it has begun.
    pub(crate) reservations_due: BTreeSet<(Timestamp, Arc<str>)>,
    /// The reservations of each node.
    pub(crate) reserved: BTreeMap<NodeId, BTreeSet<Arc<str>>>,
    /// When the first closure of each node ends.
    pub(crate) closures_due: BTreeSet<(Timestamp, NodeId)>,
    /// The jobs that each node copies files for.
    pub(crate) copying: BTreeMap<NodeId, BTreeSet<JobId>>,
    /// The jobs that a planner has promised a start.
    pub(crate) promised: BTreeSet<JobId>,
    /// The number of each node name.
    pub(crate) node_names: BTreeMap<String, NodeId>,
    /// The jobs of each owner.
    pub(crate) owned: BTreeMap<String, BTreeSet<JobId>>,
    /// Suspended runs that have lent their cores, or wait to have them back.
    pub(crate) lent: BTreeSet<RunId>,
    /// Runs of jobs that share their cores with others.
    pub(crate) sharing: BTreeSet<RunId>,
    /// Counts of waiting and running jobs, where these are limited.
    pub(crate) submitted: Submitted,
    /// The jobs of each planning domain.
    pub(crate) domains: Domains,
    /// The runs of jobs that open domains.
    pub(crate) openers: BTreeSet<RunId>,
    /// The queues that pass jobs on, with the jobs that wait in each and since when.
    pub(crate) passing: BTreeMap<Arc<str>, BTreeSet<(Timestamp, JobId)>>,
}

impl Index {
    pub(crate) fn add_job(&mut self, job: &Job) {
        self.move_job(job.id, JobKeys::default(), JobKeys::of(job));
        match self.owned.get_mut(&job.owner.user) {
            Some(jobs) => drop(jobs.insert(job.id)),
            None => drop(self.owned.insert(job.owner.user.clone(), BTreeSet::from([job.id]))),
        }
    }

    pub(crate) fn remove_job(&mut self, job: &Job) {
        self.move_job(job.id, JobKeys::of(job), JobKeys::default());
        remove_member(&mut self.owned, &job.owner.user, job.id);
    }

    /// Updates the keys of a job.
    pub(crate) fn move_job(&mut self, id: JobId, before: JobKeys, after: JobKeys) {
        move_key(&mut self.queued, before.queued, after.queued, id);
        move_key(&mut self.due, before.due, after.due, Due::Job(id));
        move_key(&mut self.due, before.filters_due, after.filters_due, Due::Filters(id));
        move_key(&mut self.judged, before.judged, after.judged, id);
        move_key(&mut self.retention, before.forget_after, after.forget_after, id);
        self.domains.move_job(id, before.domains, after.domains);
        if before.doomed != after.doomed {
            if after.doomed {
                self.doomed.insert(id)
            } else {
                self.doomed.remove(&id)
            };
        }
        if before.given_up != after.given_up {
            if after.given_up {
                self.given_up.insert(id)
            } else {
                self.given_up.remove(&id)
            };
        }
        if before.blocking != after.blocking {
            if after.blocking {
                self.blocking.insert(id)
            } else {
                self.blocking.remove(&id)
            };
        }
        if before.calling != after.calling {
            if after.calling {
                self.calling.insert(id)
            } else {
                self.calling.remove(&id)
            };
        }
        if before.elastic != after.elastic {
            if after.elastic {
                self.elastic.insert(id)
            } else {
                self.elastic.remove(&id)
            };
        }
        if before.to_stage != after.to_stage {
            buffers_used(before.to_stage.as_ref()).into_iter().for_each(|name| {
                remove_member(&mut self.buffer_users, &name, id);
            });
            buffers_used(after.to_stage.as_ref()).into_iter().for_each(|name| {
                self.buffer_users.entry(name).or_default().insert(id);
            });
            if after.to_stage.is_some() {
                self.to_stage.insert(id);
            } else {
                self.to_stage.remove(&id);
                self.staging_ready.remove(&id);
            }
        }
        if before.kept != after.kept {
            if after.kept {
                self.kept.insert(id)
            } else {
                self.kept.remove(&id)
            };
        }
        if before.copying != after.copying {
            before.copying.iter().for_each(|node| remove_member(&mut self.copying, node, id));
            after.copying.iter().for_each(|node| {
                self.copying.entry(*node).or_default().insert(id);
            });
        }
        if before.promised != after.promised {
            if after.promised {
                self.promised.insert(id)
            } else {
                self.promised.remove(&id)
            };
        }
        if before.targets != after.targets {
            before.targets.into_iter().for_each(|target| remove_member(&mut self.dependents, &target, id));
            after.targets.into_iter().for_each(|target| {
                self.dependents.entry(target).or_default().insert(id);
            });
        }
        if before.is_singleton != after.is_singleton {
            let tasks = id.index.is_some().then_some(&mut self.singleton_tasks);
            for set in [&mut self.singletons].into_iter().chain(tasks) {
                if after.is_singleton {
                    set.insert(id)
                } else {
                    set.remove(&id)
                };
            }
        }
        if !self.passing.is_empty() && before.waits_in != after.waits_in {
            if let Some((queue, since)) = before.waits_in
                && let Some(jobs) = self.passing.get_mut(&queue)
            {
                jobs.remove(&(since, id));
            }
            if let Some((queue, since)) = after.waits_in
                && let Some(jobs) = self.passing.get_mut(&queue)
            {
                jobs.insert((since, id));
            }
        }
        if before.namesake != after.namesake {
            if let Some((owner, name)) = before.namesake {
                self.remove_namesake(&owner.user, &name, id);
            }
            if let Some((owner, name)) = after.namesake {
                self.add_namesake(&owner.user, name, id);
            }
        }
    }

    fn add_namesake(&mut self, user: &str, name: Arc<str>, id: JobId) {
        let of_user = match self.namesakes.get_mut(user) {
            Some(of_user) => of_user,
            None => self.namesakes.entry(user.to_owned()).or_default(),
        };
        of_user.entry(name).or_default().insert(id);
    }

    fn remove_namesake(&mut self, user: &str, name: &Arc<str>, id: JobId) {
        let Some(of_user) = self.namesakes.get_mut(user) else { return };
        remove_member(of_user, name, id);
        if of_user.is_empty() {
            self.namesakes.remove(user);
        }
    }

    /// The unfinished jobs of a user and name, by id.
    pub(crate) fn namesakes(&self, user: &str, name: &str) -> impl Iterator<Item = JobId> + '_ {
        self.namesakes.get(user).and_then(|of_user| of_user.get(name)).into_iter().flatten().copied()
    }

    /// How many of them are older than a job; counts from the end with fewer of them.
    pub(crate) fn namesakes_ahead(&self, user: &str, name: &str, id: JobId) -> u32 {
        let Some(all) = self.namesakes.get(user).and_then(|of_user| of_user.get(name)) else { return 0 };
        let (mut ahead, mut behind) = (all.range(..id), all.range(id..));
        let mut count = 0;
        let count = loop {
            match (ahead.next(), behind.next()) {
                (None, _) => break count,
                (_, None) => break all.len() - count,
                _ => count += 1,
            }
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Updates the keys of a list of tasks.
    pub(crate) fn move_tasks(&mut self, id: JobId, after: TaskKeys) {
        let before = self.task_keys.get(&id).copied().unwrap_or_default();
        move_key(&mut self.due, before.due, after.due, Due::Tasks(id));
        if after.is_ready {
            self.tasks_ready.insert(id);
        } else {
            self.tasks_ready.remove(&id);
        }
        if after == TaskKeys::default() {
            self.task_keys.remove(&id);
        } else {
            self.task_keys.insert(id, after);
        }
    }

    pub(crate) fn add_reservation(&mut self, name: &Arc<str>, reservation: &Reservation) {
        self.reservations_due.insert((reservation.due(), name.clone()));
        for node in &reservation.nodes {
            self.reserved.entry(*node).or_default().insert(name.clone());
        }
    }

    pub(crate) fn remove_reservation(&mut self, name: &Arc<str>, reservation: &Reservation) {
        self.reservations_due.remove(&(reservation.due(), name.clone()));
        for node in &reservation.nodes {
            if let Some(names) = self.reserved.get_mut(node) {
                names.remove(name);
                if names.is_empty() {
                    self.reserved.remove(node);
                }
            }
        }
    }

    /// Updates the time at which the first closure of a node ends.
    pub(crate) fn move_closure(&mut self, id: NodeId, before: Option<Timestamp>, after: Option<Timestamp>) {
        move_key(&mut self.closures_due, before, after, id);
    }

    /// Updates the time at which a run is due.
    pub(crate) fn move_run(&mut self, id: RunId, before: Option<Timestamp>, after: Option<Timestamp>) {
        move_key(&mut self.due, before, after, Due::Run(id));
    }
}

fn move_key<K: Ord + Copy, T: Ord + Copy>(set: &mut BTreeSet<(K, T)>, before: Option<K>, after: Option<K>, id: T) {
    if before == after {
        return;
    }
    if let Some(key) = before {
        set.remove(&(key, id));
    }
    if let Some(key) = after {
        set.insert((key, id));
    }
}

fn remove_member<K: Ord>(sets: &mut BTreeMap<K, BTreeSet<JobId>>, key: &K, member: JobId) {
    if let Some(members) = sets.get_mut(key) {
        members.remove(&member);
        if members.is_empty() {
            sets.remove(key);
        }
    }
}
