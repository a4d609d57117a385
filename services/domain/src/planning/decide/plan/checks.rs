//! Whether a placement is possible: the nodes are suitable and free, and the amounts are sufficient.

use crate::{
    fixed,
    jobs::{Component, Job},
    nodes::{self, Licence, Node, Spare, state::gpu_count},
    planning::decide::plan::Plan,
    requests,
    reservations::Reservation,
    runs::Run,
    state::State,
    tasks,
};
use muster_schemas::{
    NodeId, RunId, Timestamp,
    energy::PowerRule,
    resources::{Alternative, ComponentPlacement, IndexSet, NodeShare, Placement, Sharing},
};
use std::collections::{BTreeMap, BTreeSet};

impl Plan<'_> {
    pub(crate) fn check_placement(&self, job: &Job, placement: &Placement) -> Result<(), String> {
        if placement.components.len() != job.components.len() {
            let (placed, wanted) = (placement.components.len(), job.components.len());
            return Err(format!("{placed} components are placed, the job has {wanted}"));
        }
        self.check_nodes(job, placement)?;
        self.check_domain_end(job, placement)?;
        tasks::decide::unusable_problem(self.state, job, placement).map_or(Ok(()), Err)?;
        let is_rest = !fixed::decide::missing_nodes(self.state, job, placement, self.now).is_empty();
        let mut licences: BTreeMap<&str, u64> = BTreeMap::new();
        for (component, placed) in job.components.iter().zip(&placement.components) {
            let alternative = component.shape.alternatives.get(placed.alternative as usize);
            let alternative = alternative.ok_or("the alternative does not exist")?;
            self.check_component((job, component), alternative, placed, None)?;
            if !is_rest {
                check_amounts(self.state, alternative, placed)?;
                check_row(self.state, alternative, placed)?;
            }
            self.check_reservations(job, component, placed)?;
            for (name, count) in &alternative.licences {
                *licences.entry(name).or_default() += u64::from(*count);
            }
        }
        self.check_licences(&licences)
    }

    /// Whether each node has at most one component, or several that can share it.
    fn check_nodes(&self, job: &Job, placement: &Placement) -> Result<(), String> {
        let mut shares: Vec<(u32, &NodeShare)> = placement.shares_by_component().collect();
        shares.sort_by_key(|(component, share)| (share.node, *component));
        let mut on_nodes = shares.chunk_by(|(_, one), (_, other)| one.node == other.node);
        on_nodes.try_for_each(|shares| if shares.len() > 1 { self.check_shared_node(job, shares) } else { Ok(()) })
    }

    /// Whether components can share a node: the policy permits it, each is there once, none needs the node exclusively
    /// or has what another has, and together they need no more than is free (SL-P-07).
    fn check_shared_node(&self, job: &Job, shares: &[(u32, &NodeShare)]) -> Result<(), String> {
        let Some((_, first)) = shares.first() else { return Ok(()) };
        let name = self.state.node_name(first.node);
        if shares.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("a component is placed twice on the same node, {name}"));
        }
        if !self.state.policy().backfill.components.share_nodes {
            return Err(format!(
                "two components are placed on the same node, {name}, and the policy lets none share it"
            ));
        }
        let mut all = (*first).clone();
        for (_, share) in &shares[1..] {
            join(&mut all, share).map_err(|problem| format!("components on node {name} {problem}"))?;
        }
        if all.exclusive {
            return Err(format!("components share node {name}, which one of them wants for itself"));
        }
        if all.memory_bytes > self.node_for(job, &all)?.free_memory_bytes {
            return Err(format!("node {name} does not have this memory free"));
        }
        Ok(())
    }

    /// A node as seen by the plan.
    pub(crate) fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(&id).or_else(|| self.state.node(id))
    }

    fn check_licences(&self, wanted: &BTreeMap<&str, u64>) -> Result<(), String> {
        for (name, count) in wanted {
            let free = self.licences.get(*name).or_else(|| self.state.licence(name)).map_or(0, Licence::free);
            if u64::from(free) < *count {
                return Err(format!("{free} of licence `{name}` are free, {count} are needed"));
            }
        }
        Ok(())
    }

    /// Whether this can be added to a run.
    pub(crate) fn check_addition(&self, job: &Job, run: &Run, added: &Placement) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        if added.shares().next().is_none() || !added.shares().all(|share| seen.insert(share.node)) {
            return Err("nothing is added, or one node twice".into());
        }
        let is_like = |(new, old): (&ComponentPlacement, &ComponentPlacement)| new.alternative == old.alternative;
        let are_like = added.components.iter().zip(&run.placement.components).all(is_like);
        if added.components.len() != run.placement.components.len() || !are_like {
            return Err("the addition does not belong to the running alternative".into());
        }
        for (component, placed) in job.components.iter().zip(&added.components) {
            let alternative = component.shape.alternatives.get(placed.alternative as usize);
            let alternative = alternative.ok_or("the alternative does not exist")?;
            self.check_component((job, component), alternative, placed, Some(run.id))?;
            self.check_reservations(job, component, placed)?;
        }
        Ok(())
    }

    /// `own` is the run that grows, if it already has shares of the nodes.
    fn check_component(
        &self,
        (job, component): (&Job, &Component),
        alternative: &Alternative,
        placed: &ComponentPlacement,
        own: Option<RunId>,
    ) -> Result<(), String> {
        let queue = self.state.queue(&component.queue).ok_or("its queue does not exist")?;
        for share in &placed.shares {
            let node = self.node_for(job, share)?;
            let name = &node.spec.name;
            if !queue.spec.nodes.is_empty() && !queue.spec.nodes.contains(name) {
                return Err(format!("node {name} does not serve queue `{}`", component.queue));
            }
            if !alternative.requests.iter().any(|request| requests::node_serves(&node.spec, request)) {
                return Err(format!("node {name} is not of the kind that the job asks for"));
            }
            if let Some(closure) = node.closure_at(self.now) {
                let because = if closure.reason.is_empty() { String::new() } else { format!(": {}", closure.reason) };
                return Err(format!("node {name} is closed until {}{because}", closure.until));
            }
            check_share(self.state, &node, share, own, &self.open_to(job, node.id))?;
            check_stay(&node, alternative, self.now)?;
        }
        Ok(())
    }

    /// Whether the placement of a component is within the reservation that it names, if that is not flexible, and avoids all
    /// others, unless that one overlaps them or they attract the job.
    fn check_reservations(&self, job: &Job, component: &Component, placed: &ComponentPlacement) -> Result<(), String> {
        if job.domain().is_some() {
            // The job that holds the resources of a domain was checked when it started.
            return Ok(());
        }
        let own = component.reservation();
        if let Some(name) = own {
            let reservation =
                self.state.reservation(name).ok_or_else(|| format!("reservation `{name}` does not exist"))?;
            let is_strict = !reservation.spec.is_flexible;
            if is_strict && !reservation.is_active(self.now) {
                return Err(format!("reservation `{name}` has not begun, or is over"));
            }
            if !reservation.admits(&job.owner.user, component.account.as_deref()) {
                return Err(format!("user {} may not use reservation `{name}`", job.owner.user));
            }
            let is_outside = |share: &&NodeShare| !reservation.nodes.contains(&share.node);
            if let Some(outside) = placed.shares.iter().find(is_outside).filter(|_| is_strict) {
                let node = self.state.node_name(outside.node);
                return Err(format!("node {node} is not one of reservation `{name}`"));
            }
        }
        let is_own = |one: &Reservation| own.is_some_and(|own| **own == *one.spec.name);
        let may_have = |one: &Reservation| match own {
            Some(_) => is_own(one),
            None => one.attracts(&job.owner.user, component.account.as_deref()),
        };
        for share in &placed.shares {
            let active: Vec<&Reservation> =
                self.state.reservations_of(share.node).filter(|one| one.is_active(self.now)).collect();
            if active.iter().any(|one| may_have(one) && one.spec.overlaps) {
                continue;
            }
            if let Some(other) = active.into_iter().find(|one| !may_have(one)) {
                let (node, name) = (self.state.node_name(share.node), &other.spec.name);
                return Err(format!("node {node} is kept for reservation `{name}`"));
            }
        }
        Ok(())
    }
}

/// Adds a component's share of a node to the shares of others; the error says why it cannot be added.
fn join(all: &mut NodeShare, share: &NodeShare) -> Result<(), &'static str> {
    if !all.cores.intersection(&share.cores).is_empty() {
        return Err("have the same cores");
    }
    if !all.gpus.intersection(&share.gpus).is_empty() {
        return Err("have the same GPUs");
    }
    all.cores = all.cores.union(&share.cores);
    all.gpus = all.gpus.union(&share.gpus);
    all.memory_bytes = all.memory_bytes.saturating_add(share.memory_bytes);
    all.exclusive |= share.exclusive;
    Ok(())
}

/// Whether a share is free on its node, or `open` to the job.
fn check_share(state: &State, node: &Node, share: &NodeShare, own: Option<RunId>, open: &Spare) -> Result<(), String> {
    let name = &node.spec.name;
    let is_other = |run: &RunId| Some(*run) != own && !open.runs.contains(run);
    let lacks = |free: &IndexSet, open: &IndexSet, wanted: &IndexSet| {
        !free.contains_all(wanted) && !free.union(open).contains_all(wanted)
    };
    let gets = |gpu: u32| share.gpus.contains(gpu);
    // A run that grows cannot wait for a node to wake.
    let takes_jobs = if own.is_some() { state.takes_jobs_now(node) } else { state.takes_jobs(node) };
    let problem = if !takes_jobs {
        "is not available"
    } else if open.exclusive.is_some() || node.exclusive.as_ref().is_some_and(is_other) {
        "is used exclusively by another job"
    } else if share.exclusive && node.runs.iter().any(is_other) {
        "is not empty, and the job wants it for itself"
    } else if !nodes::validate::within(&share.cores, node.spec.cores)
        || lacks(&node.free_cores, &open.cores, &share.cores)
    {
        "does not have these cores free"
    } else if !nodes::validate::within(&share.gpus, gpu_count(&node.spec))
        || lacks(&node.free_gpus, &open.gpus, &share.gpus)
    {
        "does not have these GPUs free"
    } else if let Some(fault) = node.gpu_faults.iter().find(|fault| gets(fault.gpu)) {
        return Err(format!("node {name}: GPU {} is out of service: {}", fault.gpu, fault.why));
    } else if share.memory_bytes > node.free_memory_bytes {
        "does not have this memory free"
    } else if share.cores.is_empty() {
        "gives no core"
    } else {
        return Ok(());
    };
    Err(format!("node {name} {problem}"))
}

/// Whether a node stays long enough (OAR-E-02). A plan is a little older than its check.
fn check_stay(node: &Node, alternative: &Alternative, now: Timestamp) -> Result<(), String> {
    const PLAN_AGE_SECONDS: i64 = 60;
    let Some(until) = PowerRule::of(&node.spec).until else { return Ok(()) };
    let walltime = alternative.walltime_seconds.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
    let end = walltime.map_or(Timestamp::MAX, |seconds| now.plus_seconds(seconds.saturating_sub(PLAN_AGE_SECONDS)));
    if now < until && end <= until {
        return Ok(());
    }
    Err(format!("node {} can be had until {until}, which is not long enough", node.spec.name))
}

/// Whether the nodes of a placement follow each other, if the alternative wants that (SL-C-12). In how few groups they are
/// is up to the planner, which stops insisting after a time.
fn check_row(state: &State, alternative: &Alternative, placed: &ComponentPlacement) -> Result<(), String> {
    let nodes: BTreeSet<NodeId> = placed.shares.iter().map(|share| share.node).collect();
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { return Ok(()) };
    let between = || state.nodes().filter(|node| (*first..=*last).contains(&node.id)).count();
    if alternative.contiguous && between() > nodes.len() {
        return Err("the job wants nodes that follow each other, and there are others between them".into());
    }
    Ok(())
}

/// Whether a placement is sufficient for an alternative.
fn check_amounts(state: &State, alternative: &Alternative, placed: &ComponentPlacement) -> Result<(), String> {
    let is_exclusive = alternative.requests.iter().any(|request| request.sharing != Sharing::Shared);
    if is_exclusive && placed.shares.iter().any(|share| !share.exclusive) {
        return Err("the job wants its nodes for itself, the placement does not give them so".into());
    }
    let least = requests::minimum_of_all(alternative, state.settings());
    let sum =
        |of: &dyn Fn(&NodeShare) -> u64| placed.shares.iter().fold(0, |sum: u64, share| sum.saturating_add(of(share)));
    let enough = [
        ("nodes", placed.shares.len() as u64, least.nodes),
        ("tasks", sum(&|share| u64::from(share.tasks)), least.tasks),
        ("cores", sum(&|share| share.cores.len()), least.cores),
        ("GPUs", sum(&|share| share.gpus.len()), least.gpus),
        ("bytes of memory", sum(&|share| share.memory_bytes), least.memory_bytes),
    ];
    match enough.iter().find(|(_, given, wanted)| given < wanted) {
        Some((what, given, wanted)) => Err(format!("{given} {what} are given, the job asks for {wanted}")),
        None => Ok(()),
    }
}
