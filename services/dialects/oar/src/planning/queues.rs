//! The queues of a site (OAR-Q-13).

use super::dependency::Policy;
use crate::text::{is_name, shown};
use std::collections::BTreeMap;

/// The greatest number of queues.
const MOST: usize = 1000;

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Queues with a higher priority go first.
    pub priority: i64,
    /// Whether its jobs are planned.
    pub is_enabled: bool,
    /// Whether its jobs keep quotas.
    pub has_quotas: bool,
    /// When required jobs let its jobs start; `None` for the usual one.
    pub dependencies: Option<Policy>,
}

impl Queue {
    /// When required jobs let its jobs start: `always` in queues with quotas, else `strict` (OAR-D-02, OAR-D-03).
    pub fn dependency_policy(self) -> Policy {
        let usual = if self.has_quotas { Policy::Always } else { Policy::Strict };
        self.dependencies.unwrap_or(usual)
    }
}

/// All queues, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues(BTreeMap<String, Queue>);

impl Queues {
    /// Adds a queue.
    ///
    /// # Errors
    /// A name that cannot be one or exists, or too many queues, as a sentence.
    pub fn add(&mut self, name: &str, queue: Queue) -> Result<(), String> {
        if !is_name(name) {
            return Err(format!("'{}' cannot be the name of a queue", shown(name)));
        }
        if self.0.len() >= MOST {
            return Err(format!("at most {MOST} queues are kept"));
        }
        if self.0.contains_key(name) {
            return Err(format!("the queue {name} exists"));
        }
        self.0.insert(name.to_owned(), queue);
        Ok(())
    }

    /// Removes a queue.
    ///
    /// # Errors
    /// A queue that does not exist, or that has jobs, as a sentence.
    pub fn remove(&mut self, name: &str, has_jobs: bool) -> Result<(), String> {
        self.get(name)?;
        if has_jobs {
            return Err(format!("the queue {name} has jobs"));
        }
        self.0.remove(name);
        Ok(())
    }

    /// Enables or disables a queue. A disabled one keeps its jobs and plans none.
    ///
    /// # Errors
    /// A queue that does not exist, as a sentence.
    pub fn enable(&mut self, name: &str, is_enabled: bool) -> Result<(), String> {
        self.get(name)?;
        self.0.entry(name.to_owned()).and_modify(|queue| queue.is_enabled = is_enabled);
        Ok(())
    }

    /// Disables all queues, as a failed script of the server does (OAR-J-19).
    pub fn disable_all(&mut self) {
        self.0.values_mut().for_each(|queue| queue.is_enabled = false);
    }

    /// A queue.
    ///
    /// # Errors
    /// A queue that does not exist, as a sentence.
    pub fn get(&self, name: &str) -> Result<Queue, String> {
        self.0.get(name).copied().ok_or_else(|| format!("no queue is called '{}'", shown(name)))
    }

    /// The queues that are planned, in the order in which they are.
    pub fn planned(&self) -> Vec<&str> {
        let mut enabled: Vec<(&String, &Queue)> = self.0.iter().filter(|(_, queue)| queue.is_enabled).collect();
        enabled.sort_by_key(|(name, queue)| (-queue.priority, *name));
        enabled.into_iter().map(|(name, _)| name.as_str()).collect()
    }
}
