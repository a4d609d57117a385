//! Single components of jobs: held, released, and ended while the others continue.

use crate::{
    components::{ComponentOver, SingleEnd},
    state::State,
    unapplied::no_arm,
};
use muster_schemas::{
    JobId,
    event::{Event, Record},
    job::{Holds, Usage},
};

impl State {
    /// Applies a record about one component.
    pub(crate) fn component_changed(&mut self, record: &Record) {
        match &record.event {
            Event::ComponentHeld { job, component, holds, .. } => {
                self.component_holds_changed(*job, *component, |now_held| now_held.union(*holds));
            }
            Event::ComponentReleased { job, component, holds } => {
                self.component_holds_changed(*job, *component, |now_held| now_held.without(*holds));
            }
            Event::ComponentStopping { job, component, reason, .. } => self.change_job(*job, |job| {
                let ends = job.single_ends.get_or_insert_default();
                ends.entry(*component).or_insert(SingleEnd { reason: *reason, over: None }).reason = *reason;
            }),
            Event::ComponentEnded { job, component, usage, .. } => self.component_ended(*job, *component, *usage),
            event => no_arm(event),
        }
    }

    fn component_holds_changed(&mut self, id: JobId, component: u32, change: impl Fn(Holds) -> Holds) {
        self.change_job(id, |job| {
            if let Some(component) = job.components.get_mut(component as usize) {
                component.holds = change(component.holds);
                job.planner_reason = None;
            }
        });
        if self.job(id).is_some_and(|job| !job.holds().is_empty()) {
            self.void_plans(id);
        }
    }

    /// Remembers the placement; the next record gives the resources back.
    fn component_ended(&mut self, id: JobId, component: u32, usage: Usage) {
        let run = self.job(id).and_then(|job| self.run(job.run()?));
        let placement = run.and_then(|run| run.placement.components.get(component as usize)).cloned();
        let Some(placement) = placement else { return };
        let over = ComponentOver { at: self.time, placement, usage };
        self.change_job(id, |job| {
            if let Some(end) = job.single_ends.as_mut().and_then(|ends| ends.get_mut(&component)) {
                end.over = Some(over);
            }
        });
    }
}
