//! Later changes of jobs and nodes.

use crate::state::{Component, State, TakenOut};
use muster_schemas::{
    JobId, NodeId,
    event::{Actor, Event, FurtherChange, Record},
};
use std::sync::Arc;

impl State {
    /// Applies a record about such a change; other records mean nothing here.
    pub(super) fn altered(&mut self, record: &Record) {
        match &record.event {
            Event::NodeTakenOut { node, reason, is_down } => {
                self.node_drained(*node, Some(reason));
                self.node_taken_out(*node, *is_down, record);
            }
            Event::JobAltered { job, change } => self.job_altered(*job, change),
            _ => {}
        }
    }

    fn node_taken_out(&mut self, node: NodeId, is_down: bool, record: &Record) {
        let by = match &*record.actor {
            Actor::User(owner) => owner.user.as_str(),
            _ => "muster",
        };
        let at = self.time;
        if self.nodes.contains_key(&node) {
            self.altered.nodes.insert(node, TakenOut { by: by.into(), at, is_down });
        }
    }

    fn job_altered(&mut self, id: JobId, change: &FurtherChange) {
        let Some(mut job) = self.jobs.get(&id).map(|job| (**job).clone()) else { return };
        // Taken out and put in again, since a deadline is something that the job is found by.
        job.planner_reason = None;
        for (number, component) in job.components.iter_mut().enumerate() {
            if change.component.is_none_or(|only| only as usize == number) {
                self.alter_component(component, change);
            }
        }
        if let Some(again) = change.requeue_on_node_lost {
            Arc::make_mut(job.extras.get_or_insert_default()).requeue.on_node_lost = again;
        }
        let needs = change.needs_waiting();
        self.change_job(id, |kept| *kept = job);
        if !change.attributes.is_empty() {
            let kept = self.altered.attributes.entry(id.whole()).or_default();
            kept.extend(change.attributes.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        if needs {
            self.void_plans(id);
        }
    }

    fn alter_component(&mut self, component: &mut Component, change: &FurtherChange) {
        if !change.needs_waiting() {
            return;
        }
        let extras = component.extras.get_or_insert_default();
        if let Some(reservation) = &change.reservation {
            let name = Some(reservation.as_str()).filter(|name| !name.is_empty());
            extras.reservation = name.map(|name| self.pools.text.share(name));
        }
        extras.deadline = change.deadline.or(extras.deadline);
    }
}
