//! Jobs that may hold the same cores and GPUs of a node at the same time (OAR-T-40, OAR-T-80).
//!
//! Peers with equal keys overlap each other. A host keeps a place that only guests with its label overlap; neither two
//! hosts nor two guests overlap. Cores and GPUs are shared, and the exclusive use of a node. Memory and licences are not:
//! what each job asks for is its own.

mod held;
pub(crate) mod validate;

use crate::jobs::Job;
use muster_schemas::job::JobType;
use std::sync::Arc;

/// What a job shares its cores and GPUs with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sharing {
    /// Jobs with the same key.
    Peers {
        /// The owner, if only jobs of one owner share.
        user: Option<Arc<str>>,
        /// The name, if only jobs of one name share.
        name: Option<Arc<str>>,
    },
    /// Guests with this label, which use its place.
    Host(Arc<str>),
    /// Hosts with this label, whose place it may use.
    Guest(Arc<str>),
}

impl Sharing {
    /// What a job shares with; `None` if nobody else may have its cores.
    pub fn of(job: &Job) -> Option<Self> {
        job.types().iter().find_map(|kind| match kind {
            JobType::Timesharing { same_user, same_name } => Some(Self::Peers {
                user: same_user.then(|| job.owner.user.as_str().into()),
                name: same_name.then(|| job.name.clone()),
            }),
            JobType::Placeholder(label) => Some(Self::Host(label.as_str().into())),
            JobType::Allowed(label) => Some(Self::Guest(label.as_str().into())),
            _ => None,
        })
    }

    /// Whether jobs that share with these may overlap.
    pub fn admits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Peers { .. }, Self::Peers { .. }) => self == other,
            (Self::Host(label), Self::Guest(own)) | (Self::Guest(label), Self::Host(own)) => label == own,
            _ => false,
        }
    }
}
