//! Invariants that hold after every record. For tests and simulations: a violation is a fault of this crate.

mod components;
mod filters;
mod sessions;
mod tasks;

use crate::state::{Job, Node, Phase, State, index::Index, lending::Claim, node::gpu_count};
use muster_schemas::{
    JobId, NodeId, RunId,
    resources::{IndexSet, NodeShare, Placement},
};
use std::collections::{BTreeMap, BTreeSet};

/// Checks everything.
///
/// # Panics
/// If something does not hold, saying what.
pub fn assert_invariants(state: &State) {
    if let Err(violation) = check(state) {
        panic!("after record {}: {violation}", state.sequence());
    }
}

/// Checks everything.
///
/// # Errors
/// The first thing that does not hold.
pub fn check(state: &State) -> Result<(), String> {
    index(state)?;
    let users = Users::of(state);
    state.nodes().try_for_each(|node| self::node(&users, node))?;
    runs_and_jobs(state)?;
    licences(state)?;
    queues(state)?;
    state.jobs().try_for_each(|job| array(state, job))?;
    singletons(state)?;
    planning(state)?;
    filters::check(state)?;
    tasks::check(state)?;
    sessions::check(state)?;
    components::check(state)?;
    shapes(state)
}

fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(violation()) }
}

fn index(state: &State) -> Result<(), String> {
    let expected = Index::of(state);
    ensure(state.index == expected, || format!("the index is {:?}\nbut should be {expected:?}", state.index))
}

/// For each node the shares of it: of runs, of what is kept for jobs that wait, and of what is offered to running ones.
struct Users<'a>(BTreeMap<NodeId, Vec<User<'a>>>);

/// A share of a node.
struct User<'a> {
    run: RunId,
    claim: Claim,
    share: &'a NodeShare,
}

impl<'a> Users<'a> {
    fn of(state: &'a State) -> Self {
        let mut users = Self(BTreeMap::new());
        state.runs().for_each(|run| users.add(run.id, run.claim(), &run.placement));
        for filtering in state.jobs().filter_map(|job| job.filtering.as_deref()) {
            if let Some((run, placement)) = filtering.kept() {
                users.add(run, Claim::Has, placement);
            }
            let chain = filtering.chain.as_ref();
            if let Some(offer) = chain.and_then(|chain| chain.set_aside()).filter(|offer| offer.growth) {
                users.add(offer.run, Claim::Has, &offer.placement);
            }
        }
        users
    }

    fn add(&mut self, run: RunId, claim: Claim, placement: &'a Placement) {
        for share in placement.shares() {
            self.0.entry(share.node).or_default().push(User { run, claim, share });
        }
    }
}

/// Free and used are together what there is, and no part is used twice. Suspended runs may have lent their cores; none is
/// free that one of them waits for (SL-C-37).
fn node(users: &Users, node: &Node) -> Result<(), String> {
    let name = &node.spec.name;
    let mut cores = node.free_cores.clone();
    let mut gpus = node.free_gpus.clone();
    let mut memory = node.free_memory_bytes;
    let mut exclusive = None;
    let users = users.0.get(&node.id).map_or(&[][..], Vec::as_slice);
    let runs: BTreeSet<RunId> = users.iter().map(|user| user.run).collect();
    ensure(runs == node.runs, || format!("node {name} lists runs {:?}, {runs:?} have a share of it", node.runs))?;
    let having = || users.iter().filter(|user| user.claim == Claim::Has);
    for User { run: id, share, .. } in having() {
        ensure(cores.intersection(&share.cores).is_empty(), || {
            format!("node {name}: a core of run {id} is used twice")
        })?;
        cores = cores.union(&share.cores);
        if share.exclusive {
            exclusive = Some(*id);
            ensure(having().count() == 1, || format!("node {name}: run {id} has it for itself and is not alone"))?;
        }
    }
    for User { run: id, share, .. } in users {
        ensure(gpus.intersection(&share.gpus).is_empty(), || format!("node {name}: a GPU of run {id} is used twice"))?;
        gpus = gpus.union(&share.gpus);
        memory += share.memory_bytes;
    }
    let wanting = users.iter().filter_map(|user| match user.claim {
        Claim::Wants(asked) => Some((asked, user.run, user.share)),
        _ => None,
    });
    let mut wanting: Vec<_> = wanting.collect();
    wanting.sort_by_key(|(asked, run, _)| (*asked, *run));
    for (_, id, share) in &wanting {
        ensure(node.free_cores.intersection(&share.cores).is_empty(), || {
            format!("node {name}: a core is free that run {id} waits for")
        })?;
        cores = cores.union(&share.cores);
        if share.exclusive {
            exclusive = exclusive.or(Some(*id));
        }
    }
    ensure(cores == IndexSet::first_n(node.spec.cores), || format!("node {name}: cores are lost: {cores}"))?;
    ensure(gpus == IndexSet::first_n(gpu_count(&node.spec)), || format!("node {name}: GPUs are lost: {gpus}"))?;
    ensure(memory == node.spec.memory_bytes, || format!("node {name}: {memory} bytes of memory"))?;
    ensure(node.exclusive == exclusive, || format!("node {name}: exclusive is {:?}", node.exclusive))
}

/// Each run has one job that has it, and the nodes of its parts know it.
fn runs_and_jobs(state: &State) -> Result<(), String> {
    let of_jobs: BTreeSet<RunId> = state.jobs().filter_map(Job::run).collect();
    let all: BTreeSet<RunId> = state.runs().map(|run| run.id).collect();
    ensure(of_jobs == all, || format!("jobs have the runs {of_jobs:?}, there are {all:?}"))?;
    for run in state.runs() {
        let id = run.id;
        ensure(state.job(run.job).and_then(Job::run) == Some(id), || format!("run {id}: job {} has another", run.job))?;
        ensure(run.parts.len() == run.placement.shares().count(), || format!("run {id}: parts and shares differ"))?;
        ensure(!run.parts.iter().all(|part| part.has_ended()), || format!("run {id}: all parts have ended"))?;
        let known = run.nodes().all(|node| state.node(node).is_some_and(|node| node.runs.contains(&id)));
        ensure(known, || format!("run {id}: a node does not list it"))?;
        ensure(id < state.next_run(), || format!("run {id}: its number would be given again"))?;
    }
    for job in state.jobs() {
        ensure(job.id.number < state.next_job_number(), || format!("job {}: its number would be given again", job.id))?;
        ensure(!job.components.is_empty(), || format!("job {} has no component", job.id))?;
    }
    numbers(state)?;
    let unfinished = state.jobs().filter(|job| job.id.index.is_none() && !job.is_finished()).count() as u64;
    ensure(unfinished == state.unfinished_jobs(), || {
        format!("{unfinished} jobs are not over, {} counted", state.unfinished_jobs())
    })
}

/// No two jobs, components or tasks have the same number, and what tasks have is known as long as one of their array is.
fn numbers(state: &State) -> Result<(), String> {
    for (array, tasks) in &state.numbers.arrays {
        ensure(state.job_with_tasks(*array).next().is_some(), || format!("array {array}: numbers of nothing"))?;
        let after = array + tasks.total();
        ensure(after <= state.next_job_number(), || {
            format!("array {array}: numbers of its tasks would be given again")
        })?;
        let between = state.jobs.range(JobId::job(array + 1)..JobId::job(after)).next();
        ensure(between.is_none(), || format!("array {array}: job {between:?} has a number of its tasks"))?;
    }
    let from = state.task_numbers_from().unwrap_or(u64::MAX);
    for job in state.jobs().filter(|job| job.id.number >= from) {
        let tasks = state.numbered_tasks(job.id.number);
        let is_known = job.id.index.is_none_or(|index| tasks.is_some_and(|tasks| tasks.contains(index)));
        ensure(is_known, || format!("task {} has no number", job.id))?;
        let total = job.array.as_ref().map(|array| array.tasks);
        ensure(total.is_none_or(|total| tasks.map(IndexSet::len) == Some(total)), || {
            format!("array {}: {tasks:?} have numbers", job.id)
        })?;
    }
    Ok(())
}

fn licences(state: &State) -> Result<(), String> {
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    let of_runs = state.runs().filter_map(|run| Some((state.job(run.job)?, &run.placement)));
    for (job, placement) in of_runs.chain(filters::kept(state)) {
        for (component, placed) in job.components.iter().zip(&placement.components) {
            let alternative = component.shape.alternatives.get(placed.alternative as usize);
            for (name, count) in alternative.into_iter().flat_map(|alternative| &alternative.licences) {
                *used.entry(name).or_default() += count;
            }
        }
    }
    for (name, licence) in state.licences() {
        let found = used.remove(name).unwrap_or(0);
        ensure(found == licence.used, || format!("licence {name}: {found} used, {} counted", licence.used))?;
    }
    ensure(used.is_empty(), || format!("licences that do not exist are used: {used:?}"))
}

fn queues(state: &State) -> Result<(), String> {
    for queue in state.queues() {
        let name = &queue.spec.name;
        let inside = |job: &&Job| job.queues().any(|queue| **queue == **name);
        let jobs = state.jobs().filter(inside).filter(|job| job.id.index.is_none() && !job.is_finished()).count();
        ensure(jobs as u64 == queue.jobs, || format!("queue {name}: {jobs} jobs, {} counted", queue.jobs))?;
        let mut by_user: BTreeMap<String, u32> = BTreeMap::new();
        for job in state.jobs().filter(inside).filter(|job| job.run().is_some() || filters::is_kept(job)) {
            *by_user.entry(job.owner.user.clone()).or_default() += 1;
        }
        let running: u32 = by_user.values().sum();
        ensure(running == queue.running, || format!("queue {name}: {running} run, {} counted", queue.running))?;
        ensure(by_user == queue.running_by_user, || format!("queue {name}: {by_user:?} run"))?;
    }
    Ok(())
}

/// Each task of an array is at one place only.
fn array(state: &State, whole: &Job) -> Result<(), String> {
    let Some(array) = &whole.array else { return Ok(()) };
    let id = whole.id;
    let tasks: Vec<&Job> = state.job_with_tasks(id.number).filter(|job| job.id.index.is_some()).collect();
    let running = tasks.iter().filter(|task| task.run().is_some() || filters::is_kept(task)).count();
    let unfinished = tasks.iter().filter(|task| !task.is_finished()).count();
    ensure(running == array.running as usize, || format!("array {id}: {running} run, {} counted", array.running))?;
    ensure(unfinished == array.unfinished as usize, || {
        format!("array {id}: {unfinished} have started and are not over, {} counted", array.unfinished)
    })?;
    let total = array.remaining.len() + u64::from(array.unfinished) + array.finished_tasks();
    ensure(total == array.tasks, || format!("array {id}: {total} of {} tasks", array.tasks))?;
    ensure(array.remaining.contains_all(&array.impossible), || format!("array {id}: impossible tasks have started"))?;
    ensure(array.held.keys().all(|index| array.remaining.contains(*index)), || format!("array {id}: held tasks"))?;
    for task in tasks {
        let index = task.id.index.unwrap_or_default();
        ensure(!array.remaining.contains(index), || format!("task {}: still among those that wait", task.id))?;
        let outcome = task.finished().map(|finished| &finished.outcome);
        ensure(array.task_outcome(index) == outcome, || format!("task {}: the array says otherwise", task.id))?;
    }
    let over = matches!(whole.phase, Phase::Finished(_));
    ensure(!over || array.is_over(), || format!("array {id}: is over before its tasks"))
}

/// Of the jobs that wait for others of their owner and name the oldest does not, and all others do.
fn singletons(state: &State) -> Result<(), String> {
    for job in state.index.singletons.iter().filter_map(|id| state.job(*id)) {
        let first = state.index.namesakes(&job.owner.user, &job.name).next();
        let ahead = u32::from(first.is_some_and(|first| first < job.id.whole()));
        let waiting = job.components.iter().filter_map(|component| component.extras.as_ref());
        let mut waiting = waiting.filter(|extras| extras.waits_for_namesakes());
        ensure(waiting.all(|extras| extras.singletons_ahead == ahead), || {
            format!("job {}: {ahead} namesakes ahead, not so counted", job.id)
        })?;
    }
    Ok(())
}

/// Promises are of jobs that wait, closures are in order, and no node is in two reservations at a time.
fn planning(state: &State) -> Result<(), String> {
    for job in state.jobs().filter(|job| !job.is_waiting() || !job.holds().is_empty()) {
        ensure(job.slot.is_none() && job.predicted_start.is_none(), || format!("job {}: an old promise", job.id))?;
    }
    for (id, planned) in &state.backfill_passes().jobs {
        let job = state.job(*id).filter(|job| job.is_waiting() && job.holds().is_empty());
        let is_whole = job.is_some_and(|job| job.components.len() == planned.len());
        ensure(is_whole, || format!("job {id}: old plans of components"))?;
    }
    for node in state.nodes() {
        let name = &node.spec.name;
        let in_order = node.closures.windows(2).all(|pair| pair[0].until <= pair[1].from);
        ensure(in_order, || format!("node {name}: closures overlap"))?;
        let mut reservations: Vec<_> =
            state.reservations_of(node.id).map(|one| (one.spec.start, one.spec.end)).collect();
        reservations.sort_unstable();
        let apart = reservations.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        ensure(apart, || format!("node {name}: it is in two reservations at a time"))?;
    }
    Ok(())
}

fn shapes(state: &State) -> Result<(), String> {
    let mut uses = BTreeMap::new();
    for component in state.jobs().flat_map(|job| job.components.iter()) {
        *uses.entry(component.shape.id).or_insert(0) += 1;
        let kept = state.shapes().get(component.shape.id);
        ensure(kept == Some(&component.shape), || format!("shape {:?} is not what is kept", component.shape.id))?;
    }
    let counted = state.shapes().uses();
    ensure(uses == counted, || format!("shapes are used {uses:?}, counted {counted:?}"))
}
