//! Holdings of the engine when the machine or a job's state changes under them.

use super::{Claim, Engine, Run, run::JustLeft};
use crate::{
    limits::Usage,
    machine::{Holding, expected_end},
    model::ActiveRun,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    resources::{IndexSet, Placement},
};
use std::{collections::BTreeMap, sync::Arc};

impl Engine {
    /// Counts how much of the walltimes of runs is over, if anything limits what is left to them. A run whose end is not
    /// known, such as a suspended one, has all of it left.
    pub(crate) fn count_elapsed(&mut self, now: Timestamp) {
        if !self.limits.limits_rest() {
            return;
        }
        self.limits.reset_elapsed();
        for Run { run, usage, .. } in self.runs.values() {
            let walltimes = usage.iter().map(|usage| usage.walltime_seconds);
            let longest = walltimes.max().filter(|longest| *longest != u64::MAX && run.expected_end < Timestamp::MAX);
            let Some(longest) = longest else { continue };
            let kept = u64::try_from(run.expected_end.micros_since(now)).unwrap_or(0).div_ceil(1_000_000);
            let left = run.demand.own_seconds(kept);
            self.limits.elapse(&run.holder, &run.demand, usage, longest.saturating_sub(left));
        }
    }

    /// Takes a run's holdings away, for this cycle only; see [`Engine::hold_run`].
    pub(crate) fn lend_run(&mut self, job: JobId) -> Option<Run> {
        let known = self.remove_run(job)?;
        let Run { run, assumed_end, usage } = &known;
        self.ends.remove(&(*assumed_end, job));
        self.machine.lend(&run.demand, &run.placement, Holding::Run { until: *assumed_end });
        self.limits.end(&run.holder, &run.demand, usage, run.attributes.as_deref());
        Some(known)
    }

    /// Returns a run's holdings, after [`Engine::lend_run`] in this cycle.
    pub(crate) fn hold_run(&mut self, known: Run) {
        let Run { run, assumed_end, usage } = &known;
        self.machine.take(&run.demand, &run.placement, Holding::Run { until: *assumed_end });
        self.limits.begin(&run.holder, &run.demand, usage, run.attributes.as_deref());
        self.ends.insert((*assumed_end, run.job));
        self.insert_run(known);
    }

    /// Takes the room of a run off the machine, for this cycle only; limits and quotas still count it. Nothing else may be done
    /// with the run before [`Engine::give_room`].
    pub(crate) fn take_room(&mut self, job: JobId) {
        let Some(Run { run, assumed_end, .. }) = self.runs.get(&job) else { return };
        self.ends.remove(&(*assumed_end, job));
        self.machine.lend(&run.demand, &run.placement, Holding::Run { until: *assumed_end });
    }

    /// Puts the room of a run back on the machine, after [`Engine::take_room`] in this cycle.
    pub(crate) fn give_room(&mut self, job: JobId) {
        let Some(Run { run, assumed_end, .. }) = self.runs.get(&job) else { return };
        self.machine.take(&run.demand, &run.placement, Holding::Run { until: *assumed_end });
        self.ends.insert((*assumed_end, job));
    }

    /// Adds a run to those that are known.
    pub(super) fn insert_run(&mut self, run: Run) {
        self.count_run(&run);
        self.runs.insert(run.run.job, run);
    }

    /// Takes a run out of those that are known.
    pub(super) fn remove_run(&mut self, job: JobId) -> Option<Run> {
        let run = self.runs.remove(&job)?;
        self.quotas.release(Claim::Run(job));
        Some(run)
    }

    pub(super) fn run_entries(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    /// When a run is assumed to end.
    pub(crate) fn assumed_end(&self, job: JobId) -> Option<Timestamp> {
        self.runs.get(&job).map(|run| run.assumed_end)
    }

    /// If its run holds the promise of a job that has just left the queue, nothing was freed.
    pub(super) fn note_redeemed(&mut self, run: &ActiveRun) {
        let Some(JustLeft { job, slot, freed }) = self.just_left.take() else { return };
        let until = expected_end(&run.demand, &slot.placement, slot.start);
        let is_redeemed = job == run.job && until <= run.expected_end && holds_all_of(&run.placement, &slot.placement);
        if is_redeemed && freed.end == self.machine.freed_so_far() {
            self.machine.take_back_freed(freed.start);
        }
    }

    /// Puts holdings back on the line of a node whose specification changed.
    pub(super) fn hold_again(&mut self, is_changed: impl Fn(NodeId) -> bool) {
        for run in self.runs.values() {
            let holding = Holding::Run { until: run.assumed_end };
            self.machine.take_nodes(&run.run.demand, &run.run.placement, holding, &is_changed);
        }
        for entry in self.queue.entries() {
            if let Some(slot) = &entry.slot {
                let demand = &self.classes.get(entry.class).demand;
                let holding = Holding::Promise { start: slot.start };
                self.machine.take_nodes(demand, &slot.placement, holding, &is_changed);
            }
        }
    }

    pub(super) fn hold_licence_again(&mut self, name: &str) {
        for run in self.runs.values() {
            let holding = Holding::Run { until: run.assumed_end };
            self.machine.take_licence(&run.run.demand, &run.run.placement, holding, name);
        }
        for entry in self.queue.entries() {
            if let Some(slot) = &entry.slot {
                let demand = &self.classes.get(entry.class).demand;
                self.machine.take_licence(demand, &slot.placement, Holding::Promise { start: slot.start }, name);
            }
        }
    }
}

impl Run {
    /// The run.
    pub fn active(&self) -> &ActiveRun {
        &self.run
    }

    /// The same run while it is suspended: it keeps everything but its cores, and nobody knows for how long.
    pub fn without_cores(&self) -> Self {
        let mut placement = (*self.run.placement).clone();
        for share in placement.components.iter_mut().flat_map(|placed| &mut placed.shares) {
            (share.cores, share.exclusive) = (IndexSet::new(), false);
        }
        let run = ActiveRun { placement: Arc::new(placement), expected_end: Timestamp::MAX, ..self.run.clone() };
        Self { run, usage: self.usage.clone(), assumed_end: Timestamp::MAX }
    }

    /// The same run elsewhere.
    pub fn on(&self, placement: Placement) -> Self {
        let usage = Usage::of(&placement, &self.run.demand);
        Self {
            run: ActiveRun { placement: Arc::new(placement), ..self.run.clone() },
            usage,
            assumed_end: self.assumed_end,
        }
    }
}

/// Whether a placement has at least as much of each node as another.
fn holds_all_of(held: &Placement, promised: &Placement) -> bool {
    let held = amounts(held);
    amounts(promised).iter().all(|(node, promised)| {
        held.get(node).is_some_and(|held| {
            held.cores >= promised.cores
                && held.gpus >= promised.gpus
                && held.memory_bytes >= promised.memory_bytes
                && (held.exclusive || !promised.exclusive)
        })
    })
}

/// The holdings of all components together on a node.
#[derive(Default)]
struct Amounts {
    cores: u64,
    gpus: u64,
    memory_bytes: u64,
    exclusive: bool,
}

fn amounts(placement: &Placement) -> BTreeMap<NodeId, Amounts> {
    let mut of_nodes: BTreeMap<NodeId, Amounts> = BTreeMap::new();
    for share in placement.shares() {
        let amounts = of_nodes.entry(share.node).or_default();
        amounts.cores += share.cores.len();
        amounts.gpus += share.gpus.len();
        amounts.memory_bytes = amounts.memory_bytes.saturating_add(share.memory_bytes);
        amounts.exclusive |= share.exclusive;
    }
    of_nodes
}
