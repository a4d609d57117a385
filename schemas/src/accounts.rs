//! Accounts and service classes: who may use the cluster on whose account, in which classes, and how much at a time.
//!
//! An account can have a parent; an association is a user in an account, or an account as a whole, in one queue or in
//! all. A service class (QOS) belongs to a component. Each of them can have limits. Those of the association, of the
//! component's class and of the queue's class all apply (SL-L-02), but a limit of a class replaces the association's
//! limit of the same kind.

use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use utoipa::ToSchema;

/// The account under which quotas and shares of use count jobs that name none.
pub const NO_ACCOUNT: &str = "default";

/// The class of components that name none, if there is a class of this name.
pub const DEFAULT_CLASS: &str = "normal";

/// Which checks of accounts and classes are enforced. By default none are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AccountSettings {
    /// Whether only users with an association may submit, on its account.
    pub associations: bool,
    /// Whether limits are enforced.
    pub limits: bool,
    /// Whether only classes are accepted that exist and that the association may use.
    pub classes: bool,
    /// Whether a job that could never start under the limits is refused at submission; otherwise it waits (SL-L-05).
    pub refuses_hopeless: bool,
    /// Classes of queues, by queue: they apply to each component in the queue, in addition to its own class.
    pub queue_classes: BTreeMap<String, String>,
    /// After how long what jobs used counts half for fair share; 0 means that it is not counted.
    pub usage_half_life_seconds: u64,
}

/// An account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AccountSpec {
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The organisation that it belongs to.
    pub organisation: String,
    /// The account that it is part of: the parent's limits on all jobs together apply to both.
    pub parent: Option<String>,
    /// The users who manage it and the accounts below it: who is in them, with which limits, and the jobs on them.
    pub coordinators: Vec<String>,
}

/// A user of the accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserSpec {
    /// The login name.
    pub name: String,
    /// The account of components that name none.
    pub default_account: String,
}

/// The account and user that an association links.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AssociationKey {
    /// The account.
    pub account: String,
    /// The user; `None` means the account as a whole.
    pub user: Option<String>,
    /// Its queue; `None` means all queues without their own association.
    pub queue: Option<String>,
}

impl fmt::Display for AssociationKey {
    /// `account`, `account/user` or `account/user/queue`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.account)?;
        self.user.iter().chain(&self.queue).try_for_each(|part| write!(f, "/{part}"))
    }
}

/// A user in an account, or an account as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AssociationSpec {
    /// The account and user that it links.
    pub of: AssociationKey,
    /// Limits of its jobs. Limits for each user or each job that are not set here come from the account and its
    /// parents.
    pub limits: UseLimits,
    /// The classes that may be used; empty means those of the account or its parents, and all classes if they name
    /// none.
    pub classes: Vec<String>,
    /// The class of components that name none; `None` means that of the account or its parents.
    pub default_class: Option<String>,
    /// Its share of its account, for fair-share orders. Only stored and shown.
    pub shares: u32,
}

/// A service class (QOS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClassSpec {
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// Added to the priority of its jobs.
    pub priority: i64,
    /// Limits of its jobs.
    pub limits: UseLimits,
    /// Whether a job that could never start under its limits is refused even if the settings let such jobs wait.
    pub refuses_hopeless: bool,
    /// The classes whose running jobs make way for jobs of this class. Components without a class count as `normal`.
    pub preempts: Vec<String>,
    /// Whether a job of this class that makes way is cancelled; otherwise it is put back into the queue if it may be.
    pub cancels_preempted: bool,
    /// How much longer than other jobs a job of this class that makes way has between SIGTERM and SIGKILL, in seconds; 0 to
    /// 86,400.
    pub preemption_grace_seconds: u32,
    /// Whether a running job of this class that makes way is suspended until the other gives its cores back. It keeps its
    /// memory, GPUs and licences. A list of tasks, and a job inside a planning domain, ends as if this were not set.
    pub suspends_preempted: bool,
}

/// Limits of jobs. Each component counts as one job, and so does each task of an array (SL-L-01).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UseLimits {
    /// Limits of all jobs together.
    pub together: Bounds,
    /// Limits of the jobs of each user.
    pub each_user: Bounds,
    /// Limits of the jobs of each account; only for classes.
    pub each_account: Bounds,
    /// Limits of each job.
    pub each_job: JobBounds,
    /// What all jobs together may use up over time.
    pub budget: Budget,
    /// What running jobs together may still use until the end of their walltimes.
    pub remaining: Remaining,
}

/// Limits of several jobs together; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Maximum number of running jobs.
    pub running_jobs: Option<u64>,
    /// Maximum number of waiting and running jobs.
    pub jobs: Option<u64>,
    /// Maximum number of cores.
    pub cores: Option<u64>,
    /// Maximum number of nodes; a node counts once for each job on it.
    pub nodes: Option<u64>,
    /// Maximum number of GPUs.
    pub gpus: Option<u64>,
    /// Maximum amount of memory.
    pub memory_bytes: Option<u64>,
}

/// Limits of what jobs use up over time; `None` means no limit. A job starts only if all of its walltime fits in, in
/// addition to what ended jobs used and to the whole walltime of those that run. What ended jobs used counts ever less
/// if use for fair share does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Maximum number of cores, each times the seconds for which it is held.
    pub core_seconds: Option<u64>,
    /// The same for nodes; a node counts once for each job on it.
    pub node_seconds: Option<u64>,
    /// The same for GPUs.
    pub gpu_seconds: Option<u64>,
    /// Maximum sum of the times for which jobs run.
    pub run_seconds: Option<u64>,
}

/// Maximum of what running jobs can still use, each until the end of its walltime; `None` means no limit. A job starts
/// only if all of its walltime fits in, and one without a walltime does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Remaining {
    /// The number of cores, each times the seconds that are left.
    pub core_seconds: Option<u64>,
    /// The same for nodes; a node counts once for each job on it.
    pub node_seconds: Option<u64>,
    /// The same for GPUs.
    pub gpu_seconds: Option<u64>,
}

/// Limits of one job; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobBounds {
    /// Maximum number of cores.
    pub cores: Option<u64>,
    /// Maximum number of nodes.
    pub nodes: Option<u64>,
    /// Maximum number of GPUs.
    pub gpus: Option<u64>,
    /// Maximum amount of memory.
    pub memory_bytes: Option<u64>,
    /// Maximum walltime, which jobs that name none get.
    pub walltime_seconds: Option<u64>,
}

/// A change of one item, from its old to its new state. It is refused if the item has changed meanwhile, so that
/// simultaneous changes do not undo each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "they are few, and stand in lists")]
pub enum AccountChange {
    /// A change of an account.
    Account {
        /// Its old state; `None` adds it.
        before: Option<AccountSpec>,
        /// Its new state; `None` removes it.
        after: Option<AccountSpec>,
    },
    /// A change of a user.
    User {
        /// The old state of the user; `None` adds one.
        before: Option<UserSpec>,
        /// The new state of the user; `None` removes one.
        after: Option<UserSpec>,
    },
    /// A change of an association.
    Association {
        /// Its old state; `None` adds it.
        before: Option<AssociationSpec>,
        /// Its new state; `None` removes it.
        after: Option<AssociationSpec>,
    },
    /// A change of a service class.
    Class {
        /// Its old state; `None` adds it.
        before: Option<ClassSpec>,
        /// Its new state; `None` removes it.
        after: Option<ClassSpec>,
    },
    /// What ended jobs of an association used, for fair share and for its budget, is forgotten; for an account as a whole
    /// that of all associations in it and in the accounts below.
    AssociationUse {
        /// The association.
        of: AssociationKey,
    },
    /// What ended jobs used of the budget of a service class is forgotten.
    ClassUse {
        /// The name of the class.
        name: String,
    },
}

impl fmt::Display for AccountChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, name, is_new, is_left) = match self {
            Self::Account { before, after } => {
                let name = after.as_ref().or(before.as_ref()).map(|spec| spec.name.clone());
                ("account", name, before.is_none(), after.is_some())
            }
            Self::User { before, after } => {
                let name = after.as_ref().or(before.as_ref()).map(|spec| spec.name.clone());
                ("user", name, before.is_none(), after.is_some())
            }
            Self::Association { before, after } => {
                let name = after.as_ref().or(before.as_ref()).map(|spec| spec.of.to_string());
                ("association", name, before.is_none(), after.is_some())
            }
            Self::Class { before, after } => {
                let name = after.as_ref().or(before.as_ref()).map(|spec| spec.name.clone());
                ("class", name, before.is_none(), after.is_some())
            }
            Self::AssociationUse { of } => return write!(f, "past use of association {of} was forgotten"),
            Self::ClassUse { name } => return write!(f, "past use of class {name} was forgotten"),
        };
        let verb = match (is_new, is_left) {
            (true, _) => "added",
            (false, true) => "changed",
            (false, false) => "removed",
        };
        write!(f, "{what} {} was {verb}", name.unwrap_or_default())
    }
}
