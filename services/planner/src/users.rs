//! The users who have jobs, counted as these come and go.

use std::{collections::BTreeMap, sync::Arc};

/// The users who have a job of some kind, with the number of their jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users(BTreeMap<Arc<str>, u32>);

impl Users {
    /// One more job of a user.
    pub fn add(&mut self, user: &Arc<str>) {
        match self.0.get_mut(user) {
            Some(jobs) => *jobs += 1,
            None => drop(self.0.insert(user.clone(), 1)),
        }
    }

    /// One job less.
    pub fn remove(&mut self, user: &Arc<str>) {
        if let Some(jobs) = self.0.get_mut(user) {
            *jobs -= 1;
            if *jobs == 0 {
                self.0.remove(user);
            }
        }
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|user| &**user)
    }
}
