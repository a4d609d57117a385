//! When triggers are due, and what they watch.

use crate::{jobs::Job, nodes::Node, runs::walltime::walltime, state::State, triggers::Trigger};
use muster_schemas::{
    JobId, Timestamp,
    cluster::NodeCondition,
    trigger::{NodeTurn, TriggerOn, WatchedNodes},
};

/// How long nodes are gathered that turn one after the other: what takes down several nodes takes some time to be noticed.
const GATHER_SECONDS: i32 = 2;

impl Trigger {
    /// When it has to fire, as far as that is known.
    pub(crate) fn due(&self, state: &State) -> Option<Timestamp> {
        let later = |from: Timestamp, seconds: i32| from.plus_seconds(i64::from(seconds));
        let offset = self.spec.offset_seconds;
        match &self.spec.on {
            TriggerOn::JobEnds(_) => self.ended.map(|ended| later(ended, offset.max(0))),
            TriggerOn::WalltimeEnds(job) => walltime_ends(state, *job).map(|end| later(end, offset)),
            TriggerOn::Nodes { .. } => self.turned.values().min().map(|first| later(*first, self.wait_seconds())),
        }
    }

    /// How long after a node has turned the trigger fires.
    pub(crate) fn wait_seconds(&self) -> i32 {
        self.spec.offset_seconds.max(GATHER_SECONDS)
    }

    /// Whether it watches a node.
    pub(crate) fn watches(&self, state: &State, node: &Node) -> bool {
        let TriggerOn::Nodes { nodes, .. } = &self.spec.on else { return false };
        match nodes {
            WatchedNodes::All => true,
            WatchedNodes::OfJob(job) => runs_on(state, *job, node),
            WatchedNodes::Named(names) => names.contains(&node.spec.name),
        }
    }
}

fn runs_on(state: &State, job: JobId, node: &Node) -> bool {
    let run = state.job(job).and_then(Job::run).and_then(|run| state.run(run));
    run.is_some_and(|run| run.part(node.id).is_some())
}

/// When the walltime of a running job is over, unless it is suspended until then.
fn walltime_ends(state: &State, job: JobId) -> Option<Timestamp> {
    let job = state.job(job)?;
    let run = state.run(job.run()?).filter(|run| run.stopping.is_none() && !run.is_suspended())?;
    let seconds = walltime(job, &run.placement, 0)?;
    Some(run.started?.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)))
}

/// Whether a node is as it is after a turn; for [`NodeTurn::Up`], as it is before.
pub(crate) fn is_as(state: &State, node: &Node, turn: NodeTurn) -> bool {
    let is_down =
        matches!(node.condition, NodeCondition::Lost(_)) || state.taken_out(node.id).is_some_and(|taken| taken.is_down);
    match turn {
        NodeTurn::Down | NodeTurn::Up => is_down,
        NodeTurn::Drained => node.drained.is_some() && !is_down && node.runs.is_empty(),
        NodeTurn::Idle => node.condition == NodeCondition::Up && node.drained.is_none() && node.runs.is_empty(),
    }
}

impl State {
    /// The triggers, by number.
    pub fn triggers(&self) -> impl Iterator<Item = (u32, &Trigger)> {
        self.triggers.all.iter().map(|(number, trigger)| (*number, trigger))
    }

    /// When the next trigger has to fire.
    pub(crate) fn next_trigger(&self) -> Option<Timestamp> {
        self.triggers.all.values().filter_map(|trigger| trigger.due(self)).min()
    }
}
