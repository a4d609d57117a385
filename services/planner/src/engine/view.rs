//! The machine as jobs see it that share cores with others.

use super::Engine;
use crate::model::Demand;
use muster_domain::sharing::Sharing;
use muster_schemas::{Timestamp, resources::Placement};
use std::sync::Arc;

impl Engine {
    /// Looks while what a job that shares may overlap is not on the lines; for any other job it changes nothing.
    pub(crate) fn viewed<T>(&mut self, sharing: Option<&Arc<Sharing>>, look: impl FnOnce(&mut Self) -> T) -> T {
        let Some(sharing) = sharing else { return look(self) };
        self.machine.open_view(sharing);
        let seen = look(self);
        self.machine.close_view();
        seen
    }

    /// Where a demand fits now.
    pub(crate) fn fitting(&self, demand: &Demand, now: Timestamp) -> Option<Placement> {
        match &demand.sharing {
            None => self.search(now).at(demand, now),
            sharing => self.clone().viewed(sharing.as_ref(), |engine| engine.search(now).at(demand, now)),
        }
    }
}
