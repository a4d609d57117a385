//! Quotas: limits on the cores, jobs and core-time that jobs of a queue, an account, a kind and a user hold at once, which may
//! change with the time of the week and for single spans (OAR-Q-01).

mod calendar;
mod periods;

pub use periods::{QuotaPeriod, QuotaSpan, WEEK_SECONDS, ZoneOffset};

pub use crate::accounts::NO_ACCOUNT;

use crate::policy::PolicySource;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A field of a rule: all jobs together.
pub const ALL_TOGETHER: &str = "*";
/// A field of a rule: the jobs of each value, with a counter of their own.
pub const EACH: &str = "/";
/// Units of a part of all cores.
const BILLIONTHS: u128 = 1_000_000_000;

/// The rules of all times. Without any set of rules nothing is limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaTable {
    /// The file that it was made of, if it was made of one.
    pub source: Option<PolicySource>,
    /// The kinds of jobs that rules can name; others are not counted by kind. At most 100.
    pub kinds: Vec<String>,
    /// The sets of rules, at most 100 with 10,000 rules in all.
    pub sets: Vec<QuotaSet>,
    /// The week, in order and without gap. Empty: the first set holds all week.
    pub week: Vec<QuotaPeriod>,
    /// Single spans, which go before the week; of several at a time the first one counts. At most 1,000.
    pub spans: Vec<QuotaSpan>,
    /// The offsets of local time, in order; the first one also holds before it. Empty: the week is that of UTC. At most 1,000.
    pub zone: Vec<ZoneOffset>,
}

/// Rules that hold at the same times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaSet {
    /// Its name, for people; may be empty.
    pub name: String,
    /// The rules. At most one of them applies to a job (OAR-Q-04).
    pub rules: Vec<QuotaRule>,
}

/// Limits on what the jobs of a queue, an account, a kind and a user hold at once. Each field is a name, `*` for all together or `/`
/// for each value alone; the kind is not `/` (OAR-Q-03).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuotaRule {
    /// The queue.
    pub queue: String,
    /// The account that is charged; `default` for jobs that name none.
    pub account: String,
    /// One of the kinds of the table.
    pub kind: String,
    /// The user.
    pub user: String,
    /// The most cores; `None` is no limit.
    pub cores: Option<QuotaAmount>,
    /// The most jobs. Each task of an array and each component counts as one.
    pub jobs: Option<QuotaAmount>,
    /// The greatest sum of cores times walltime, in core-seconds.
    pub core_seconds: Option<QuotaAmount>,
}

/// An amount, which may follow the size of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuotaAmount {
    /// This much.
    Fixed(u64),
    /// This many billionths of the number of cores of all nodes; what is left of a whole one is cut.
    BillionthsOfCores(u64),
}

impl QuotaAmount {
    /// The amount in a cluster with this many cores.
    pub fn in_cluster(self, cores: u64) -> u64 {
        match self {
            Self::Fixed(amount) => amount,
            Self::BillionthsOfCores(part) => {
                u64::try_from(u128::from(part) * u128::from(cores) / BILLIONTHS).unwrap_or(u64::MAX)
            }
        }
    }
}

impl QuotaTable {
    /// Whether it limits nothing at any time.
    pub fn is_empty(&self) -> bool {
        self.sets.iter().all(|set| set.rules.is_empty())
    }
}

impl QuotaRule {
    /// Whose jobs it is about: queue, account, kind and user.
    pub fn fields(&self) -> [&str; 4] {
        [&self.queue, &self.account, &self.kind, &self.user]
    }
}

impl fmt::Display for QuotaRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fields().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_all_cores_is_cut_to_a_whole_number() {
        let part = QuotaAmount::BillionthsOfCores(345_000_000);
        assert_eq!([part.in_cluster(100), part.in_cluster(10), part.in_cluster(0)], [34, 3, 0]);
        assert_eq!(QuotaAmount::Fixed(7).in_cluster(1), 7);
        assert_eq!(QuotaAmount::BillionthsOfCores(u64::MAX).in_cluster(u64::MAX), u64::MAX);
    }
}
