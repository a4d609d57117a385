//! What records do to the power states of nodes.

use crate::{
    power::{NodePower, Power},
    state::State,
    unapplied::no_arm,
};
use muster_schemas::{
    NodeId, RunId, Timestamp,
    cluster::{ClusterSettings, NodeCondition},
    energy::{PowerOrder, PowerPhase, PowerWay},
    event::{Event, Record},
};

impl State {
    /// Applies a record about nodes that sleep.
    pub(crate) fn power_changed(&mut self, record: &Record) {
        match &record.event {
            Event::PowerAsked { way, nodes } => self.power.asked.extend(nodes.iter().map(|node| (*node, *way))),
            Event::PowerOrdered { order } => self.power_ordered(order),
            Event::PowerTold { order, .. } => self.power.program_ended(*order),
            Event::NodeAsleep { node } => self.node_asleep(*node),
            Event::NodePowerFailed { node, way, reason } => self.power_failed(*node, *way, reason),
            Event::RunAwake { run, .. } => self.run_awake(*run),
            event => no_arm(event),
        }
    }

    fn power_ordered(&mut self, order: &PowerOrder) {
        let (now, sequence) = (self.time, self.sequence);
        let seconds = self.energy().map_or(0, |energy| energy.pause_seconds);
        let count = u32::try_from(order.nodes.len()).unwrap_or(u32::MAX);
        let phase = match order.way {
            PowerWay::Sleep => PowerPhase::FallingAsleep,
            PowerWay::Wake => PowerPhase::Waking,
        };
        let power = &mut self.power;
        for node in &order.nodes {
            power.nodes.insert(*node, NodePower::ordered(phase, now, order.until));
            power.asked.remove(node);
        }
        power.orders.insert(sequence, (order.way, order.nodes.clone()));
        let period = match order.way {
            PowerWay::Sleep => &mut power.sleeps,
            PowerWay::Wake => &mut power.wakes,
        };
        period.count(now, count, seconds);
    }

    fn node_asleep(&mut self, id: NodeId) {
        let now = self.time;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.condition = NodeCondition::Lost("asleep".to_owned());
        node.condition_since = now;
        self.forget_load(id);
        self.power.nodes.insert(id, NodePower::asleep(now));
    }

    /// A node that did not wake is lost; one that did not fall asleep is out of service until an operator has looked.
    fn power_failed(&mut self, id: NodeId, way: PowerWay, reason: &str) {
        self.power.nodes.remove(&id);
        self.power.asked.remove(&id);
        match way {
            PowerWay::Wake => self.node_lost(id, reason, self.time),
            PowerWay::Sleep => self.node_drained(id, Some(&reason.to_owned())),
        }
    }

    fn run_awake(&mut self, id: RunId) {
        let (since, timeout) = (self.sequence, self.settings.launch_timeout_seconds);
        let deadline = self.time.plus_seconds(i64::from(timeout));
        self.power.waiting.remove(&id);
        self.change_run(id, |run| {
            run.waits_for_nodes = false;
            run.launch_deadline = deadline;
            run.parts.iter_mut().for_each(|part| part.since = since);
        });
    }

    /// A node reports: whatever it was ordered, it is awake.
    pub(crate) fn node_awake(&mut self, id: NodeId) {
        self.power.nodes.remove(&id);
        if self.power.asked.get(&id) == Some(&PowerWay::Wake) {
            self.power.asked.remove(&id);
        }
        self.note_idle(id, self.time);
    }

    /// Notes that a node has no run, or has one, as far as this matters to anybody.
    pub(crate) fn note_idle(&mut self, id: NodeId, now: Timestamp) {
        if self.settings.energy.is_none() {
            return;
        }
        match self.nodes.get(&id) {
            Some(node) if node.runs.is_empty() => {
                self.power.idle.insert(id, now);
            }
            _ => {
                self.power.idle.remove(&id);
            }
        }
    }

    /// Nodes may sleep from here on, or no longer: how long they have been idle is counted from here.
    pub(crate) fn energy_changed(&mut self, before: &ClusterSettings) {
        match (&before.energy, &self.settings.energy) {
            (None, Some(_)) => {
                let now = self.time;
                let idle = self.nodes.values().filter(|node| node.runs.is_empty()).map(|node| (node.id, now));
                self.power.idle = idle.collect();
            }
            (Some(_), None) => {
                let Power { idle, asked, sleeps, wakes, .. } = &mut self.power;
                idle.clear();
                asked.clear();
                (*sleeps, *wakes) = Default::default();
            }
            _ => {}
        }
    }

    /// A node was removed.
    pub(crate) fn forget_power(&mut self, id: NodeId) {
        self.power.nodes.remove(&id);
        self.power.idle.remove(&id);
        self.power.asked.remove(&id);
    }
}
