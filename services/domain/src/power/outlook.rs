//! Which nodes are to wake and to sleep, and from when on.
//!
//! The same rules tell what is due at a time and when the next thing is due, so that the ledger's timer always finds
//! something to do.

use crate::{nodes::Node, runs::Run, state::State};
use muster_schemas::{
    NodeId, Timestamp,
    cluster::NodeCondition,
    energy::{EnergySettings, KeepAwake, PowerPhase, PowerRule, PowerWay},
    job::JobType,
};
use std::collections::{BTreeMap, BTreeSet};

/// A state, and its settings for nodes that sleep.
pub(crate) struct Outlook<'a> {
    state: &'a State,
    energy: &'a EnergySettings,
    /// When something that is promised begins on a node: the first for each.
    starts: BTreeMap<NodeId, Timestamp>,
}

impl<'a> Outlook<'a> {
    /// `None` if no node may sleep.
    pub(crate) fn of(state: &'a State) -> Option<Self> {
        let energy = state.energy()?;
        let mut starts: BTreeMap<NodeId, Timestamp> = BTreeMap::new();
        let mut add = |node: NodeId, start: Timestamp| {
            let first = starts.entry(node).or_insert(start);
            *first = start.min(*first);
        };
        for reservation in state.reservations().filter(|reservation| !reservation.stays_ahead()) {
            reservation.nodes.iter().for_each(|node| add(*node, reservation.spec.start));
        }
        let promised = state.index.promised.iter().filter_map(|id| state.job(*id));
        for (job, slot) in promised.filter_map(|job| Some((job, job.slot.as_deref()?))) {
            // Only the first component of a job that leaves nodes asleep needs one that is awake.
            let leaves_asleep = job.types().contains(&JobType::LeavesAsleep);
            let concerned = if leaves_asleep { 1 } else { slot.placement.components.len() };
            let shares = slot.placement.components.iter().take(concerned).flat_map(|placed| &placed.shares);
            shares.for_each(|share| add(share.node, slot.start));
        }
        Some(Self { state, energy, starts })
    }

    /// The nodes to order for a way at a time, the most urgent first, as many as there is room for in this period
    /// (OAR-E-08).
    pub(crate) fn due(&self, way: PowerWay, now: Timestamp) -> Vec<NodeId> {
        let EnergySettings { nodes_at_once, pause_seconds, .. } = *self.energy;
        let room = self.state.power.period(way).room(now, nodes_at_once, pause_seconds);
        if self.energy.program(way).is_empty() || room == 0 {
            return Vec::new();
        }
        let mut due = match way {
            PowerWay::Wake => self.wakes().into_iter().filter(|(at, _)| *at <= now).collect::<Vec<_>>(),
            PowerWay::Sleep => {
                self.sleeps().filter(|sleep| sleep.is_due(now)).map(|sleep| (sleep.at, sleep.id)).collect()
            }
        };
        due.sort_unstable();
        let mut nodes: Vec<NodeId> = due.into_iter().map(|(_, node)| node).collect();
        if way == PowerWay::Sleep {
            nodes = self.without_kept_awake(nodes);
        }
        nodes.truncate(room as usize);
        nodes.sort_unstable();
        nodes
    }

    /// When something is next due; it can be in the past.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let EnergySettings { nodes_at_once, pause_seconds, .. } = *self.energy;
        let in_period =
            |way: PowerWay, at: Timestamp| at.max(self.state.power.period(way).reopens(nodes_at_once, pause_seconds));
        let wake = || self.wakes().into_iter().map(|(at, _)| in_period(PowerWay::Wake, at)).min();
        let sleep = || {
            let counts = self.idle_counts(None);
            let free = self.sleeps().filter(|sleep| sleep.is_asked || self.is_spare(sleep.id, &counts));
            // A moment in a later period must still be long enough before what is planned.
            let at = |sleep: Sleep| sleep.moment(in_period(PowerWay::Sleep, sleep.at).max(self.state.time()));
            free.filter_map(at).min()
        };
        let has = |way| !self.energy.program(way).is_empty();
        let wake = has(PowerWay::Wake).then(wake).flatten();
        let sleep = has(PowerWay::Sleep).then(sleep).flatten();
        [wake, sleep].into_iter().flatten().min()
    }

    /// The nodes that are to wake, and from when on (OAR-E-03).
    fn wakes(&self) -> Vec<(Timestamp, NodeId)> {
        let state = self.state;
        let mut wakes: BTreeMap<NodeId, Timestamp> = BTreeMap::new();
        let asked = state.power.asked.iter().filter(|(_, way)| **way == PowerWay::Wake).map(|(node, _)| *node);
        for node in asked.filter_map(|id| state.node(id)) {
            let is_on_its_way = state.power_of(node.id).is_some_and(|power| power.phase != PowerPhase::Asleep);
            if node.condition != NodeCondition::Up && !is_on_its_way {
                wakes.insert(node.id, state.time());
            }
        }
        for node in self.asleep() {
            let waits_for = |run: &Run| state.nodes_to_wake(run).any(|other| other == node.id);
            let waiting = node.runs.iter().filter(|run| state.power.waiting.contains(run));
            let has_run = waiting.filter_map(|run| state.run(*run)).any(waits_for);
            let lead = i64::from(self.energy.wake_up_seconds);
            let start = self.starts.get(&node.id).map(|start| start.plus_seconds(-lead));
            if let Some(at) = has_run.then(|| state.time()).or(start) {
                let first = wakes.entry(node.id).or_insert(at);
                *first = at.min(*first);
            }
        }
        for group in &self.energy.keep_awake {
            let counts = self.coming_to(group);
            let missing = (group.nodes as usize).saturating_sub(counts);
            let more = self.asleep().filter(|node| group.counts(&node.spec) && !wakes.contains_key(&node.id));
            let more: Vec<NodeId> = more.take(missing).map(|node| node.id).collect();
            wakes.extend(more.into_iter().map(|node| (node, state.time())));
        }
        wakes.into_iter().map(|(node, at)| (at, node)).collect()
    }

    /// The nodes that sleep and can be woken for jobs.
    fn asleep(&self) -> impl Iterator<Item = &'a Node> {
        let state = self.state;
        let asleep = state.power.nodes.iter().filter(|(_, power)| power.phase == PowerPhase::Asleep);
        asleep.filter_map(|(id, _)| state.node(*id)).filter(|node| {
            node.drained.is_none() && state.can_wake(node) && PowerRule::of(&node.spec).is_there(state.time())
        })
    }

    /// The nodes that can be put to sleep, and from when to when.
    fn sleeps(&self) -> impl Iterator<Item = Sleep> {
        let idle = self.state.nodes().filter(|node| self.is_idle(node) && PowerRule::of(&node.spec).sleeps);
        let with_files = self.state.nodes_with_files();
        let idle = idle.filter(move |node| !with_files.contains(&node.id));
        idle.map(|node| {
            let is_asked = self.state.power.asked.get(&node.id) == Some(&PowerWay::Sleep);
            let idle_since = self.state.idle_since(node);
            let at = idle_since.plus_seconds(i64::from(self.energy.idle_seconds));
            let start = self.starts.get(&node.id).filter(|_| !is_asked);
            Sleep {
                id: node.id,
                is_asked,
                at: if is_asked { idle_since } else { at },
                // Otherwise it would be woken for the start at once.
                until: start.map(|start| {
                    start.plus_seconds(-i64::from(self.energy.sleep_seconds.max(self.energy.wake_up_seconds)))
                }),
            }
        })
    }

    /// Whether a node takes jobs now and has none.
    fn is_idle(&self, node: &Node) -> bool {
        node.runs.is_empty() && self.state.takes_jobs_now(node)
    }

    /// Of nodes that may sleep, those that are not kept awake (OAR-E-07).
    fn without_kept_awake(&self, nodes: Vec<NodeId>) -> Vec<NodeId> {
        let mut gone = BTreeSet::new();
        let mut counts = self.idle_counts(None);
        let may_sleep = |id: &NodeId| {
            let is_asked = self.state.power.asked.get(id) == Some(&PowerWay::Sleep);
            if !is_asked && !self.is_spare(*id, &counts) {
                return false;
            }
            gone.insert(*id);
            counts = self.idle_counts(Some(&gone));
            true
        };
        if self.energy.keep_awake.is_empty() { nodes } else { nodes.into_iter().filter(may_sleep).collect() }
    }

    /// Whether each group that counts a node has enough idle nodes without it.
    fn is_spare(&self, id: NodeId, counts: &[usize]) -> bool {
        let groups = self.energy.keep_awake.iter().zip(counts);
        let counted =
            |(group, _): &(&KeepAwake, &usize)| self.state.node(id).is_some_and(|node| group.counts(&node.spec));
        groups.filter(counted).all(|(group, count)| *count > group.nodes as usize)
    }

    /// How many idle nodes each group has, without some.
    fn idle_counts(&self, without: Option<&BTreeSet<NodeId>>) -> Vec<usize> {
        let is_there = |node: &&Node| self.is_idle(node) && without.is_none_or(|gone| !gone.contains(&node.id));
        let count =
            |group: &KeepAwake| self.state.nodes().filter(is_there).filter(|node| group.counts(&node.spec)).count();
        self.energy.keep_awake.iter().map(count).collect()
    }

    /// How many nodes of a group are idle, or will be once they have woken.
    fn coming_to(&self, group: &KeepAwake) -> usize {
        let is_waking = |node: &Node| {
            let phase = self.state.power_of(node.id).map(|power| power.phase);
            node.runs.is_empty() && node.drained.is_none() && phase == Some(PowerPhase::Waking)
        };
        let counts = |node: &&Node| group.counts(&node.spec) && (self.is_idle(node) || is_waking(node));
        self.state.nodes().filter(counts).count()
    }
}

/// When a node can be put to sleep (OAR-E-04): both bounds are inclusive.
struct Sleep {
    id: NodeId,
    is_asked: bool,
    at: Timestamp,
    until: Option<Timestamp>,
}

impl Sleep {
    fn is_due(&self, now: Timestamp) -> bool {
        self.at <= now && self.until.is_none_or(|until| now <= until)
    }

    /// A moment, if the node can be put to sleep then.
    fn moment(&self, at: Timestamp) -> Option<Timestamp> {
        self.is_due(at).then_some(at)
    }
}

/// Whether a run waits for a node that nobody can wake for it.
pub(crate) fn is_stuck(state: &State, run: &Run) -> bool {
    let cannot_wake = |node: NodeId| {
        let sleeps = state.power_of(node).is_some_and(|power| power.phase == PowerPhase::Asleep);
        let can = |node: &Node| {
            node.drained.is_none() && state.can_wake(node) && PowerRule::of(&node.spec).is_there(state.time())
        };
        sleeps && !state.node(node).is_some_and(can)
    };
    state.nodes_to_wake(run).any(cannot_wake)
}

impl State {
    /// When nodes that sleep next need the ledger's timer; it can be in the past.
    pub(crate) fn next_power(&self) -> Option<Timestamp> {
        let power = &self.power;
        if power.nodes.is_empty() && power.waiting.is_empty() && self.settings.energy.is_none() {
            return None;
        }
        let mut waiting = power.waiting.iter().filter_map(|run| self.run(*run));
        if waiting.any(|run| self.has_awake_nodes(run) || is_stuck(self, run)) {
            return Some(self.time());
        }
        let on_their_way = power.nodes.values().filter(|node| node.phase != PowerPhase::Asleep);
        let fails = on_their_way.map(|node| node.fails).min();
        [fails, Outlook::of(self).and_then(|outlook| outlook.next())].into_iter().flatten().min()
    }
}
