//! What records do to triggers.

use crate::{
    jobs::Job,
    state::State,
    triggers::{Trigger, queries::is_as},
    unapplied::no_arm,
};
use muster_schemas::{
    JobId, NodeId, Timestamp,
    event::{Event, Owner, Record},
    trigger::{NodeTurn, TriggerOn, TriggerSpec},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

impl State {
    /// Applies a record about triggers.
    pub(crate) fn triggers_changed(&mut self, record: &Record) {
        match &record.event {
            Event::TriggerSet { trigger, owner, spec } => self.trigger_set(*trigger, owner, spec),
            Event::TriggersCleared { triggers } => triggers.iter().for_each(|trigger| {
                self.triggers.all.remove(trigger);
            }),
            Event::TriggerFired { trigger, nodes, .. } => self.trigger_fired(*trigger, nodes),
            event => no_arm(event),
        }
    }

    fn trigger_set(&mut self, number: u32, owner: &Arc<Owner>, spec: &Arc<TriggerSpec>) {
        let mut trigger = Trigger {
            owner: owner.clone(),
            spec: spec.clone(),
            ended: None,
            known: BTreeSet::new(),
            turned: BTreeMap::new(),
        };
        if let TriggerOn::Nodes { turn, .. } = &spec.on {
            let watched = self.nodes.values().filter(|node| trigger.watches(self, node));
            let known = watched.filter(|node| is_as(self, node, *turn)).map(|node| node.id).collect();
            trigger.known = known;
            if *turn == NodeTurn::Idle {
                // How long they have been idle is counted from here.
                trigger.turned = trigger.known.iter().map(|node| (*node, self.time)).collect();
            }
        }
        self.triggers.highest = self.triggers.highest.max(number);
        self.triggers.all.insert(number, trigger);
    }

    /// A trigger on a job fires once, since the job ends; one on nodes stays if it is permanent.
    fn trigger_fired(&mut self, number: u32, nodes: &[NodeId]) {
        let job = self.triggers.all.get(&number).and_then(|trigger| trigger.spec.on.job());
        let is_over = job.is_some_and(|job| self.job(job).is_none_or(Job::is_finished));
        let Some(trigger) = self.triggers.all.get_mut(&number) else { return };
        if trigger.spec.is_permanent && !is_over && matches!(trigger.spec.on, TriggerOn::Nodes { .. }) {
            trigger.turned.retain(|node, _| !nodes.contains(node));
        } else {
            self.triggers.all.remove(&number);
        }
    }

    /// Marks in the triggers what a record that is applied has hit.
    pub(crate) fn hit_triggers(&mut self, record: &Record) {
        if self.triggers.all.is_empty() {
            return;
        }
        let mut triggers = std::mem::take(&mut self.triggers);
        for node in self.touched_nodes(&record.event) {
            triggers.all.values_mut().for_each(|trigger| self.hit_by_node(trigger, node));
        }
        if let Some(job) = record.event.job() {
            triggers.all.retain(|_, trigger| self.outlives(trigger, job));
        }
        self.triggers = triggers;
    }

    /// The nodes that may have turned with a record.
    fn touched_nodes(&self, event: &Event) -> Vec<NodeId> {
        match event {
            Event::NodeUp { node, .. }
            | Event::NodeLost { node, .. }
            | Event::NodeResumed { node }
            | Event::NodeTakenOut { node, .. }
            | Event::NodeRemoved { node } => vec![*node],
            Event::RunAllocated { placement, .. } => placement.nodes().collect(),
            Event::RunShrunk { removed: placement, .. } | Event::RunGrown { added: placement, .. } => {
                placement.nodes().collect()
            }
            Event::RunEnded { job, run, .. } => {
                let last = self.job(*job).and_then(|job| job.last_run.as_ref()).filter(|last| last.run == *run);
                last.map(|last| last.placement.nodes().collect()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn hit_by_node(&self, trigger: &mut Trigger, id: NodeId) {
        let TriggerOn::Nodes { turn, .. } = trigger.spec.on else { return };
        let Some(node) = self.node(id) else {
            trigger.known.remove(&id);
            trigger.turned.remove(&id);
            return;
        };
        let (is, was) = (is_as(self, node, turn), trigger.known.contains(&id));
        match (is, was) {
            (true, false) if trigger.watches(self, node) => trigger.known.insert(id),
            (false, true) => trigger.known.remove(&id),
            _ => return,
        };
        match turn {
            NodeTurn::Up if !is => drop(trigger.turned.insert(id, self.time)),
            NodeTurn::Down | NodeTurn::Drained | NodeTurn::Idle if is => drop(trigger.turned.insert(id, self.time)),
            // It has to stay idle.
            NodeTurn::Idle => drop(trigger.turned.remove(&id)),
            _ => {}
        }
    }

    /// Whether a trigger has something to wait for after a record about a job.
    fn outlives(&self, trigger: &mut Trigger, job: JobId) -> bool {
        let Some(own) = trigger.spec.on.job().filter(|own| *own == job || *own == job.whole()) else { return true };
        if self.job(own).is_some_and(|job| !job.is_finished()) {
            return true;
        }
        match &trigger.spec.on {
            TriggerOn::JobEnds(_) => {
                let now: Timestamp = self.time;
                trigger.ended.get_or_insert(now);
                true
            }
            TriggerOn::WalltimeEnds(_) => false,
            // What its nodes have turned into is still told.
            TriggerOn::Nodes { .. } => !trigger.turned.is_empty(),
        }
    }
}
