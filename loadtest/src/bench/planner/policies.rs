//! The policies under which the planner is measured.

use anyhow::{Context as _, Result};
use muster_schemas::policy::{Compare, FairShare, MOST_STARTS, Policy, Share, ShareTable, TurnRules, Turns, UsageRule};
use std::{collections::BTreeSet, sync::Arc};

/// Groups in tables of shares.
pub const GROUPS: usize = 10;
/// After this long, as the usual `half_life` of `sched_config` says, use is halved.
const HALF_LIFE_SECONDS: u64 = 86_400;

/// A policy that needs no file.
pub fn policy(name: &str) -> Result<Arc<Policy>> {
    Policy::built_in(name).map(Arc::new).with_context(|| format!("no policy {name}"))
}

/// Fifo as `sched_config` has it for `fair_share: true` and nothing else: users in groups, in the order of their numbers.
pub fn with_fair_share(users: &BTreeSet<i64>) -> Policy {
    let group = |number: usize| Share { name: format!("group{number}"), parent: 0, shares: 10 };
    let user = |(at, number): (usize, &i64)| Share {
        name: number.to_string(),
        parent: (at % GROUPS + 2) as u32,
        shares: 1 + at as u32 % 5,
    };
    let members = (0..GROUPS).map(group).chain(users.iter().enumerate().map(user)).collect();
    let turns = Turns {
        rules: fair_share(),
        shares: Some(ShareTable { unknown_shares: 10, members }),
        usage: Some(UsageRule { half_life_seconds: HALF_LIFE_SECONDS, ..UsageRule::default() }),
        ..Turns::default()
    };
    Policy { name: "fifo".into(), max_starts: MOST_STARTS, turns: Some(Box::new(turns)), ..Policy::default() }
}

/// Shares and usage choose the next job.
pub fn fair_share() -> TurnRules {
    let fair_share = FairShare { compare: Compare::default(), charge: "cpu_seconds".into(), times: None };
    TurnRules { fair_share: Some(fair_share), ..TurnRules::default() }
}
