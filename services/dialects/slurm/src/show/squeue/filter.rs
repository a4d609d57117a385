//! Which jobs `squeue` lists (SL-C-25).

use crate::{show::record::JobRecord, words::State};
use std::collections::BTreeSet;

/// The states to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum States {
    /// All unfinished ones.
    #[default]
    Unfinished,
    /// All.
    All,
    /// These.
    These(Vec<State>),
}

/// A filter for jobs. All given conditions must match; an empty set is no condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The states.
    pub states: States,
    /// Login names, or numbers, of owners.
    pub users: BTreeSet<String>,
    /// Partitions.
    pub partitions: BTreeSet<String>,
    /// Names of jobs.
    pub names: BTreeSet<String>,
    /// Accounts.
    pub accounts: BTreeSet<String>,
    /// Service classes.
    pub classes: BTreeSet<String>,
    /// The nodes, one of which the job must have.
    pub nodes: BTreeSet<String>,
    /// The reservations.
    pub reservations: BTreeSet<String>,
    /// The licences, one of which the job must ask for.
    pub licences: BTreeSet<String>,
}

impl Filter {
    /// Whether it needs all the details of jobs.
    pub fn is_detailed(&self) -> bool {
        !self.classes.is_empty() || !self.licences.is_empty()
    }

    /// The owner, if there is only one and the login name is given.
    pub fn only_user(&self) -> Option<&str> {
        only(&self.users).filter(|user| user.parse::<u32>().is_err())
    }

    /// The name of the jobs, if there is only one.
    pub fn only_name(&self) -> Option<&str> {
        only(&self.names)
    }

    /// Whether a job is listed.
    pub fn takes(&self, job: &JobRecord) -> bool {
        let is = |wanted: &BTreeSet<String>, value: &str| wanted.is_empty() || wanted.contains(value);
        let state = match &self.states {
            States::Unfinished => !job.state.is_finished(),
            States::All => true,
            States::These(states) => job.state.is_in(states),
        };
        state
            && (is(&self.users, &job.user) || self.users.contains(&job.person.uid.to_string()))
            && is(&self.partitions, &job.partition)
            && is(&self.names, &job.name)
            && is(&self.accounts, job.account.as_deref().unwrap_or_default())
            && is(&self.classes, job.qos())
            && is(&self.reservations, job.reservation.as_deref().unwrap_or_default())
            && (self.nodes.is_empty() || job.nodes.iter().any(|node| self.nodes.contains(node)))
            && (self.licences.is_empty() || self.asks_for_licence(job))
    }

    fn asks_for_licence(&self, job: &JobRecord) -> bool {
        let licences = job.request().licences.as_deref().unwrap_or_default();
        licences.split(',').any(|licence| self.licences.contains(licence.split(':').next().unwrap_or_default()))
    }
}

fn only(set: &BTreeSet<String>) -> Option<&str> {
    if set.len() == 1 { set.first().map(String::as_str) } else { None }
}
