//! Walltimes of running jobs that grow (OAR-G-16).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// More walltime for a running job. It is granted as far as it delays nobody; the rest stays pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WalltimeIncrease {
    /// How much more, in seconds; 0 for nothing, which withdraws what is pending.
    pub seconds: u64,
    /// Whether it is granted as a whole or not at all.
    pub is_whole: bool,
    /// Whether it may delay jobs that wait. Reservations are never delayed.
    pub may_delay: bool,
    /// Whether it is granted without waiting for the end of the job to come near, and not in steps.
    pub is_forced: bool,
}

/// What a run was granted, and what it still wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WalltimeAsked {
    /// The seconds that it was granted so far.
    pub granted_seconds: u64,
    /// The pending increase; 0 seconds if there is none.
    pub pending: WalltimeIncrease,
}

/// How far owners may lengthen the walltimes of their running jobs in a queue. Operators may without limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WalltimeIncreases {
    /// The most seconds that a run is granted altogether; 0 for none.
    pub max_seconds: u64,
    /// Jobs with a shorter walltime get nothing.
    pub min_walltime_seconds: u64,
    /// Nothing is granted earlier before the end of the job; 0 for no such limit.
    pub apply_seconds: u64,
    /// The most seconds that are granted at a time; 0 for no such limit.
    pub step_seconds: u64,
    /// Users whose requests need not keep to `apply_seconds` and `step_seconds`; `*` means all.
    pub may_force: Vec<String>,
    /// Users whose requests may delay jobs that wait; `*` means all.
    pub may_delay: Vec<String>,
}

impl WalltimeIncreases {
    /// Whether a list of users has this one.
    pub fn lists(users: &[String], user: &str) -> bool {
        users.iter().any(|listed| listed == "*" || listed == user)
    }
}
