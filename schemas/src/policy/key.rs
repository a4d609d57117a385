//! The keys of an order.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A key of an order. Walltime is what the job asks for; processors are its cores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrderKey {
    /// Jobs of the queue with the higher priority first.
    QueuePriority,
    /// The higher priority first.
    Priority,
    /// First come first served.
    Fcfs,
    /// Shortest processing time: the least walltime first.
    Spt,
    /// Smallest area: the least walltime times processors first.
    Saf,
    /// The least `log10(walltime) * processors + 870 * log10(age)` first, where the age is the submit time less that of
    /// the first job, at least 1.
    F1,
    /// The least `-(wait / walltime)^3 * processors` first.
    Wfp3,
    /// The least `-wait / (log2(max(2, processors)) * walltime)` first.
    Unicep,
    /// The value of a formula of the site.
    Formula {
        /// Its text; `docs/reference/policy.md` has the language.
        text: String,
        /// The greatest value first instead of the least.
        descending: bool,
    },
    /// The greatest part of the machine first that the owner has by the shares of the policy's turns; usage has no
    /// influence. Without turns all are equal.
    Share,
    /// The least use of owner and account above their targets first, as `use_share` of the policy says. Without it all are
    /// equal (OAR-Q-12).
    UseShare,
}
