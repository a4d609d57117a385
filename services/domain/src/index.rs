//! Indexes. All of them follow from the jobs, runs and nodes, and are never stored.

mod rebuild;

use crate::{
    accounts::load::Submitted,
    dependencies::Condition,
    filters::JobFilters,
    jobs::{Job, JobExtras, Phase},
    reservations::Reservation,
};
use muster_schemas::{JobId, NodeId, RunId, Timestamp, event::Owner, filter::FilterKind, job::DependencyKind};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The keys by which a job is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobKeys {
    /// Its place in the queue, if it waits with open gates.
    queued: Option<Timestamp>,
    /// When it is due to be looked at.
    due: Option<Timestamp>,
    /// When it can be forgotten.
    forget_after: Option<Timestamp>,
    /// Whether it waits and a dependency can never be met.
    doomed: bool,
    /// Whether it will be cancelled then.
    given_up: bool,
    /// The jobs that it depends on while it waits.
    targets: Vec<JobId>,
    /// Owner and name, if it is not over and no task of an array.
    pub(crate) namesake: Option<(Arc<Owner>, Arc<str>)>,
    /// Whether it waits for earlier jobs of the same owner and name.
    pub(crate) is_singleton: bool,
    /// Whether it waits for resources that jobs behind it must not take.
    blocking: bool,
    /// Whether a call of a filter is outstanding for it.
    calling: bool,
    /// Its priority, if jobs of that priority and below must not start before the verdict on it.
    judged: Option<i64>,
    /// Whether a chain is under way for it, or something is kept for it.
    kept: bool,
    /// When something of its filters or its hold is due.
    filters_due: Option<Timestamp>,
    /// Whether it is a list of tasks and has a run.
    elastic: bool,
    /// The staging that is due for it, as far as the job itself is concerned, and the extras that name the buffers it
    /// needs for that.
    pub(crate) to_stage: Option<(FilterKind, Option<Arc<JobExtras>>)>,
}

/// The keys under which a running list of tasks is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TaskKeys {
    /// Whether there is something to do for it now.
    pub(crate) is_ready: bool,
    /// If not: when there may be.
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
        let keys = Self { namesake: counts.then(|| (job.owner.clone(), job.name.clone())), ..keys };
        match &job.staging {
            None => keys,
            Some(_) => Self { to_stage: job.staging_due().map(|kind| (kind, job.extras.clone())), ..keys },
        }
    }

    fn with_filters(self, job: &Job, filters: &JobFilters) -> Self {
        let holds_up = filters.chain.as_ref().is_some_and(|chain| chain.holds_up_others());
        // What time does to the job itself waits for the verdict on it.
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

/// The buffers that have to be there before a job is staged in.
fn buffers_used(to_stage: Option<&(FilterKind, Option<Arc<JobExtras>>)>) -> BTreeSet<String> {
    let staged_in = to_stage.filter(|(kind, _)| *kind == FilterKind::StageIn);
    staged_in.and_then(|(_, extras)| extras.as_ref()).map(|extras| extras.buffers_used()).unwrap_or_default()
}

/// Whether a dependency of the waiting job can never be met, for the whole of it or for tasks of an array.
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
    /// A hold until a time is over, or a runner that has a call of the job is silent.
    Filters(JobId),
    /// A running job that is a list of tasks: a service may start again, or tasks make room for the release of nodes.
    Tasks(JobId),
    /// The launch timeout of a run.
    Run(RunId),
}

/// Everything that can be found quickly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// Waiting jobs with open gates, in order of arrival.
    pub(crate) queued: BTreeSet<(Timestamp, JobId)>,
    /// The dues, by time.
    pub(crate) due: BTreeSet<(Timestamp, Due)>,
    /// When which finished job can be forgotten.
    pub(crate) retention: BTreeSet<(Timestamp, JobId)>,
    /// Waiting jobs with a dependency that can never be met.
    pub(crate) doomed: BTreeSet<JobId>,
    /// Those of them that will be cancelled then, whatever the cluster does with others.
    pub(crate) given_up: BTreeSet<JobId>,
    /// Waiting jobs that lack resources which jobs behind them must not take.
    pub(crate) blocking: BTreeSet<JobId>,
    /// Jobs with an outstanding call of a filter.
    pub(crate) calling: BTreeSet<JobId>,
    /// Jobs that have a chain under way, or something kept for them.
    pub(crate) kept: BTreeSet<JobId>,
    /// Jobs of whose priority and below none starts before the verdict on them, by priority.
    pub(crate) judged: BTreeSet<(i64, JobId)>,
    /// Jobs that are lists of tasks and have a run.
    pub(crate) elastic: BTreeSet<JobId>,
    /// The keys of each of them, if it has any.
    pub(crate) task_keys: BTreeMap<JobId, TaskKeys>,
    /// Those for which there is something to do now.
    pub(crate) tasks_ready: BTreeSet<JobId>,
    /// Jobs with staging that is due, as far as they themselves are concerned.
    pub(crate) to_stage: BTreeSet<JobId>,
    /// Those of them that can be staged now: there is a program, and the buffers that they use are there.
    pub(crate) staging_ready: BTreeSet<JobId>,
    /// For each persistent buffer those of them that use it and do not make it.
    pub(crate) buffer_users: BTreeMap<String, BTreeSet<JobId>>,
    /// For each job the waiting jobs that depend on it.
    pub(crate) dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Waiting jobs that wait for earlier ones of the same owner and name.
    pub(crate) singletons: BTreeSet<JobId>,
    /// Those of them that are tasks of arrays, which nobody waits for.
    pub(crate) singleton_tasks: BTreeSet<JobId>,
    /// For each owner and name the jobs that are not over.
    namesakes: BTreeMap<String, BTreeMap<Arc<str>, BTreeSet<JobId>>>,
    /// When which reservation begins, or ends if it has begun.
    pub(crate) reservations_due: BTreeSet<(Timestamp, Arc<str>)>,
    /// For each node the reservations that have it.
    pub(crate) reserved: BTreeMap<NodeId, BTreeSet<Arc<str>>>,
    /// When the first closure of which node is over.
    pub(crate) closures_due: BTreeSet<(Timestamp, NodeId)>,
    /// The number of each node name.
    pub(crate) node_names: BTreeMap<String, NodeId>,
    /// The jobs of each owner.
    pub(crate) owned: BTreeMap<String, BTreeSet<JobId>>,
    /// Suspended runs that have lent their cores, or wait for them.
    pub(crate) lent: BTreeSet<RunId>,
    /// How many jobs wait and run, for whom that is limited.
    pub(crate) submitted: Submitted,
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

    /// The keys of a job changed.
    pub(crate) fn move_job(&mut self, id: JobId, before: JobKeys, after: JobKeys) {
        move_key(&mut self.queued, before.queued, after.queued, id);
        move_key(&mut self.due, before.due, after.due, Due::Job(id));
        move_key(&mut self.due, before.filters_due, after.filters_due, Due::Filters(id));
        move_key(&mut self.judged, before.judged, after.judged, id);
        move_key(&mut self.retention, before.forget_after, after.forget_after, id);
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

    /// The jobs of a user and name that are not over, in order of their ids.
    pub(crate) fn namesakes(&self, user: &str, name: &str) -> impl Iterator<Item = JobId> + '_ {
        self.namesakes.get(user).and_then(|of_user| of_user.get(name)).into_iter().flatten().copied()
    }

    /// How many of them are older than a job, counted from the side on which there are fewer.
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

    /// Moves a list of tasks whose keys changed.
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

    /// The time at which the first closure of a node is over changed.
    pub(crate) fn move_closure(&mut self, id: NodeId, before: Option<Timestamp>, after: Option<Timestamp>) {
        move_key(&mut self.closures_due, before, after, id);
    }

    /// The time at which a run is due changed.
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
