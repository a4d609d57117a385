//! Fair share by what users and accounts used and asked for in the last days, against targets (OAR-Q-12).

use crate::Timestamp;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

/// The account under which use counts of jobs that name none.
use crate::accounts::NO_ACCOUNT;

/// How far the use of users and accounts is above their targets. Queues are compared each by itself.
///
/// With the sums of a queue over the slices that begin in the window before the moment, a job's value is
/// `account * (P/U - tp) + user * (Pu/U - tu) + asked * (Au/A - tu)`: U and A are what all jobs used and asked for, P is what those of
/// its account used, Pu and Au what those of its owner used and asked for, tp and tu the targets. The least value goes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UseShare {
    /// How long use counts, in seconds, 1 to 3,155,760,000.
    pub window_seconds: u64,
    /// The length of a slice of time, in seconds, 3,600 to 31,557,600. Slices begin at multiples of it since 1970 UTC.
    pub slice_seconds: u64,
    /// The coefficient of the account's part of the use, in percent; at most 1,000,000, as the others.
    pub account_percent: u32,
    /// That of the user's part of the use.
    pub user_percent: u32,
    /// That of the user's part of what was asked for.
    pub asked_percent: u32,
    /// The parts that accounts should have, in percent, at most 100; 0 for others.
    pub account_targets: BTreeMap<String, u32>,
    /// The parts that users should have.
    pub user_targets: BTreeMap<String, u32>,
    /// Number of the first jobs of a user that are planned in each queue in a cycle; 0 plans all.
    pub most_jobs_per_user: u32,
}

impl Default for UseShare {
    fn default() -> Self {
        Self {
            window_seconds: 2_592_000,
            slice_seconds: 86_400,
            account_percent: 0,
            user_percent: 200,
            asked_percent: 100,
            account_targets: BTreeMap::new(),
            user_targets: BTreeMap::new(),
            most_jobs_per_user: 30,
        }
    }
}

/// What jobs of a queue used and asked for, in core-seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseSums {
    /// All jobs.
    pub used: u64,
    /// All jobs.
    pub asked: u64,
    /// By account.
    pub used_by_accounts: BTreeMap<Arc<str>, u64>,
    /// By user.
    pub used_by_users: BTreeMap<Arc<str>, u64>,
    /// By user.
    pub asked_by_users: BTreeMap<Arc<str>, u64>,
}

impl UseSums {
    /// A job of a user and an account used and asked for this much.
    pub fn add(&mut self, user: &Arc<str>, account: Option<&Arc<str>>, used: u64, asked: u64) {
        let account = account.cloned().unwrap_or_else(|| NO_ACCOUNT.into());
        self.used = self.used.saturating_add(used);
        self.asked = self.asked.saturating_add(asked);
        add(&mut self.used_by_accounts, account, used);
        add(&mut self.used_by_users, user.clone(), used);
        add(&mut self.asked_by_users, user.clone(), asked);
    }

    /// Another slice counts as well.
    pub fn merge(&mut self, other: &Self) {
        self.used = self.used.saturating_add(other.used);
        self.asked = self.asked.saturating_add(other.asked);
        other.used_by_accounts.iter().for_each(|(of, used)| add(&mut self.used_by_accounts, of.clone(), *used));
        other.used_by_users.iter().for_each(|(of, used)| add(&mut self.used_by_users, of.clone(), *used));
        other.asked_by_users.iter().for_each(|(of, asked)| add(&mut self.asked_by_users, of.clone(), *asked));
    }

    /// The sums that matter to a job of this account and owner.
    #[must_use]
    pub fn of(&self, account: Option<&str>, user: &str) -> Self {
        let account = account.unwrap_or(NO_ACCOUNT);
        let only = |sums: &BTreeMap<Arc<str>, u64>, of: &str| {
            sums.get_key_value(of).map(|(of, sum)| (of.clone(), *sum)).into_iter().collect()
        };
        Self {
            used: self.used,
            asked: self.asked,
            used_by_accounts: only(&self.used_by_accounts, account),
            used_by_users: only(&self.used_by_users, user),
            asked_by_users: only(&self.asked_by_users, user),
        }
    }

    /// How far a job's account and owner are above their targets (OAR-Q-12). Empty sums count as 1.
    pub fn value(&self, rule: &UseShare, account: Option<&str>, user: &str) -> f64 {
        let account = account.unwrap_or(NO_ACCOUNT);
        let share = |sums: &BTreeMap<Arc<str>, u64>, of: &str, all: u64| {
            sums.get(of).copied().unwrap_or(0) as f64 / all.max(1) as f64
        };
        let target =
            |targets: &BTreeMap<String, u32>, of: &str| f64::from(targets.get(of).copied().unwrap_or(0)) / 100.0;
        let (of_account, of_user) = (target(&rule.account_targets, account), target(&rule.user_targets, user));
        let percent = |coefficient: u32, above: f64| f64::from(coefficient) / 100.0 * above;
        percent(rule.account_percent, share(&self.used_by_accounts, account, self.used) - of_account)
            + percent(rule.user_percent, share(&self.used_by_users, user, self.used) - of_user)
            + percent(rule.asked_percent, share(&self.asked_by_users, user, self.asked) - of_user)
    }
}

fn add(sums: &mut BTreeMap<Arc<str>, u64>, of: Arc<str>, amount: u64) {
    if amount > 0 {
        let sum = sums.entry(of).or_default();
        *sum = sum.saturating_add(amount);
    }
}

/// The parts of a span by slices: the begin of each slice in seconds since 1970, and how many seconds of the span are in it.
pub fn slices(begin: Timestamp, end: Timestamp, slice_seconds: u64) -> impl Iterator<Item = (i64, u64)> {
    let length = i64::try_from(slice_seconds.max(1)).unwrap_or(i64::MAX);
    let (mut at, end) = (begin.unix_seconds(), end.unix_seconds());
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let slice = at.div_euclid(length) * length;
        let until = slice.saturating_add(length).min(end);
        let part = (slice, until.abs_diff(at));
        at = until;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W11, OAR-Q-12
    #[test]
    fn the_use_of_users_is_compared_with_their_targets() {
        let mut sums = UseSums::default();
        for (user, used, asked) in [("ann", 600, 800), ("bob", 400, 1200)] {
            sums.add(&user.into(), None, used, asked);
        }
        let user_targets = [("ann".to_owned(), 20), ("bob".to_owned(), 60)].into();
        let rule = UseShare { user_targets, ..UseShare::default() };
        let shown = |user| format!("{:.3}", sums.value(&rule, None, user));
        assert_eq!(["ann", "bob", "carl"].map(shown), ["1.000", "-0.400", "0.000"]);
        let of_job = |user| format!("{:.3}", sums.of(None, user).value(&rule, None, user));
        assert_eq!(["ann", "bob", "carl"].map(of_job), ["1.000", "-0.400", "0.000"]);
        let account_targets = [("bio".to_owned(), 50)].into();
        let of_accounts = UseShare { account_percent: 100, user_percent: 0, asked_percent: 0, account_targets, ..rule };
        sums.add(&"ann".into(), Some(&"bio".into()), 1000, 0);
        assert_eq!(sums.value(&of_accounts, Some("bio"), "ann"), 0.0);
        assert_eq!(sums.value(&of_accounts, None, "bob"), 0.5, "jobs without an account count together");
        assert_eq!(UseSums::default().value(&of_accounts, Some("bio"), "ann"), -0.5, "empty sums count as 1");
    }

    /// OAR-A-01: the slices of W3.
    #[test]
    fn a_span_is_cut_into_slices() {
        let at = Timestamp::from_unix_seconds;
        let cut = |begin, end| slices(at(begin), at(end), 86_400).collect::<Vec<_>>();
        assert_eq!(cut(1_000_000, 1_150_000), [(950_400, 36_800), (1_036_800, 86_400), (1_123_200, 26_800)]);
        assert_eq!(cut(86_400, 172_800), [(86_400, 86_400)]);
        assert_eq!(cut(5, 5), []);
    }
}
