//! Invariants of nodes, queues and licences.

use crate::{
    filters,
    invariants::ensure,
    jobs::Job,
    lending::claims::Claim,
    nodes::{Node, state::gpu_count},
    state::State,
};
use muster_schemas::{
    JobId, NodeId, RunId,
    resources::{IndexSet, NodeShare, Placement},
};
use std::collections::{BTreeMap, BTreeSet};

/// The shares of each node: of runs, of resources kept for waiting jobs, and of offers to running ones.
pub(crate) struct Users<'a>(BTreeMap<NodeId, Vec<User<'a>>>);

/// A share of a node.
struct User<'a> {
    job: JobId,
    run: RunId,
    claim: Claim,
    share: &'a NodeShare,
    /// Whether it lies inside another run, which has it of the node.
    is_inside: bool,
}

impl<'a> Users<'a> {
    pub(crate) fn of(state: &'a State) -> Self {
        let mut users = Self(BTreeMap::new());
        state.runs().for_each(|run| users.add(state, (run.job, run.id), run.claim(), &run.placement));
        for (job, filters) in state.jobs().filter_map(|job| Some((job.id, job.filters.as_deref()?))) {
            if let Some((run, placement)) = filters.kept() {
                users.add(state, (job, run), Claim::Has, placement);
            }
            let chain = filters.chain.as_ref();
            if let Some(offer) = chain.and_then(|chain| chain.set_aside()).filter(|offer| offer.growth) {
                users.add(state, (job, offer.run), Claim::Has, &offer.placement);
            }
        }
        users
    }

    fn add(&mut self, state: &State, (job, run): (JobId, RunId), claim: Claim, placement: &'a Placement) {
        for share in placement.shares() {
            let is_inside = state.holder_of(run, share).is_some();
            self.0.entry(share.node).or_default().push(User { job, run, claim, share, is_inside });
        }
    }
}

/// Free and used resources add up, and nothing is used twice. Suspended runs may have lent their cores; a core that one
/// of them waits for is not free (SL-C-37). Jobs that share may have the same ones (OAR-G-05).
pub(crate) fn node(state: &State, users: &Users, node: &Node) -> Result<(), String> {
    let name = &node.spec.name;
    let mut cores = node.free_cores.clone();
    let mut gpus = node.free_gpus.clone();
    let mut memory = node.free_memory_bytes;
    let mut exclusive: BTreeSet<RunId> = BTreeSet::new();
    let users = users.0.get(&node.id).map_or(&[][..], Vec::as_slice);
    let runs: BTreeSet<RunId> = users.iter().map(|user| user.run).collect();
    ensure(runs == node.runs, || format!("node {name} lists runs {:?}, {runs:?} have a share of it", node.runs))?;
    let users: Vec<&User> = users.iter().filter(|user| !user.is_inside).collect();
    let having = || users.iter().filter(|user| user.claim == Claim::Has);
    let strangers = |job: JobId, run: RunId| {
        let others = users.iter().filter(move |user| user.run != run);
        others.filter(move |user| !state.may_overlap(job, user.job))
    };
    let free = cores.clone();
    for User { job, run: id, share, .. } in having() {
        let of_others = strangers(*job, *id).filter(|user| user.claim == Claim::Has);
        let of_others = of_others.fold(free.clone(), |all, user| all.union(&user.share.cores));
        ensure(of_others.intersection(&share.cores).is_empty(), || {
            format!("node {name}: a core of run {id} is used twice")
        })?;
        cores = cores.union(&share.cores);
        if share.exclusive {
            exclusive.insert(*id);
            let is_alone = !strangers(*job, *id).any(|user| user.claim == Claim::Has);
            ensure(is_alone, || format!("node {name}: run {id} has it for itself and is not alone"))?;
        }
    }
    for User { job, run: id, share, .. } in &users {
        let of_others = strangers(*job, *id).fold(node.free_gpus.clone(), |all, user| all.union(&user.share.gpus));
        ensure(of_others.intersection(&share.gpus).is_empty(), || {
            format!("node {name}: a GPU of run {id} is used twice")
        })?;
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
        if share.exclusive && exclusive.is_empty() {
            exclusive.insert(*id);
        }
    }
    ensure(cores == IndexSet::first_n(node.spec.cores), || format!("node {name}: cores are lost: {cores}"))?;
    ensure(gpus == IndexSet::first_n(gpu_count(&node.spec)), || format!("node {name}: GPUs are lost: {gpus}"))?;
    ensure(memory == node.spec.memory_bytes, || format!("node {name}: {memory} bytes of memory"))?;
    let is_one_of_them = node.exclusive.map_or(exclusive.is_empty(), |run| exclusive.contains(&run));
    ensure(is_one_of_them, || format!("node {name}: exclusive is {:?}", node.exclusive))
}

pub(crate) fn licences(state: &State) -> Result<(), String> {
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    let of_runs = state.runs().filter_map(|run| Some((state.job(run.job)?, &run.placement)));
    for (job, placement) in of_runs.chain(filters::invariants::kept(state)) {
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

pub(crate) fn queues(state: &State) -> Result<(), String> {
    for queue in state.queues() {
        let name = &queue.spec.name;
        let inside = |job: &&Job| job.queues().any(|queue| **queue == **name);
        let jobs = state.jobs().filter(inside).filter(|job| job.id.index.is_none() && !job.is_finished()).count();
        ensure(jobs as u64 == queue.jobs, || format!("queue {name}: {jobs} jobs, {} counted", queue.jobs))?;
        let mut by_user: BTreeMap<String, u32> = BTreeMap::new();
        for job in state.jobs().filter(inside).filter(|job| job.run().is_some() || filters::invariants::is_kept(job)) {
            *by_user.entry(job.owner.user.clone()).or_default() += 1;
        }
        let running: u32 = by_user.values().sum();
        ensure(running == queue.running, || format!("queue {name}: {running} run, {} counted", queue.running))?;
        ensure(by_user == queue.running_by_user, || format!("queue {name}: {by_user:?} run"))?;
    }
    Ok(())
}
