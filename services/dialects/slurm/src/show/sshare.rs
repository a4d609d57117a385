//! `sshare`: the shares of accounts and users, and what they have used of them.
//!
//! The factors are those of Slurm's fair tree: at each account those below it are compared by their level, which is
//! their share of it divided by what they used of it, and users get their rank in the tree that is sorted by levels.

use super::{
    Clock,
    cells::put,
    columns::{Field, FormatError, ListStyle},
    sacctmgr::{Association, Listed, associations, list},
};
use crate::accounts::ROOT;
use muster_schemas::{
    usage::{UsageAnswer, UsageRow},
    views::AccountsPage,
};
use std::{cmp::Ordering, collections::BTreeMap};

/// The usual columns.
const USUAL: &str = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare";
/// More of them (`-l`).
const LONG: &str = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,\
    TRESRunMins";

/// A user in an account, or an account as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// Its association.
    pub association: Association,
    /// How many accounts it is below.
    pub depth: usize,
    /// Its share of those at its level, from 0 to 1.
    pub norm_shares: f64,
    /// The core seconds that it used.
    pub raw_usage: u64,
    /// Its part of everything that was used, from 0 to 1.
    pub norm_usage: f64,
    /// Its part of what its account used, from 0 to 1.
    pub effective_usage: f64,
    /// Its share divided by its effective usage; infinite if it used nothing.
    pub level: f64,
    /// A user's rank divided by the number of users, from 0 to 1; `None` for accounts.
    pub factor: Option<f64>,
    /// The minutes that its running jobs may still run, times their cores.
    pub running_minutes: u64,
}

/// What a running job may still use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The account.
    pub account: String,
    /// The user.
    pub user: String,
    /// The partition.
    pub partition: String,
    /// Core minutes up to its time limit.
    pub minutes: u64,
}

/// All shares as a tree: each account, its users, and the accounts below it.
pub fn shares(page: &AccountsPage, cluster: &str, used: &UsageAnswer, running: &[Running]) -> Vec<Share> {
    let rows = associations(page, cluster);
    let parent_of = |account: &str| {
        let known = page.accounts.iter().find(|known| known.name == account);
        known.map(|known| known.parent.as_deref().unwrap_or(ROOT))
    };
    let depth = |account: &str| std::iter::successors(parent_of(account), |above| parent_of(above)).take(64).count();
    let mut all: Vec<Share> = rows
        .into_iter()
        .map(|association| {
            let own = depth(&association.spec.of.account);
            let depth = own + usize::from(association.spec.of.user.is_some());
            Share { association, depth, ..Share::default() }
        })
        .collect();
    let tree = Tree::of(&all);
    add_usage(&mut all, &tree, used, running);
    tree.compare(&mut all);
    all
}

/// Counts for each user in an account what jobs used there, and for each account what it and those below it used.
fn add_usage(all: &mut [Share], tree: &Tree, used: &UsageAnswer, running: &[Running]) {
    let mut places: BTreeMap<(String, String, Option<String>), usize> = BTreeMap::new();
    for (place, share) in all.iter().enumerate() {
        let of = &share.association.spec.of;
        if let Some(user) = &of.user {
            places.insert((of.account.clone(), user.clone(), of.queue.clone()), place);
        }
    }
    let find = |account: &str, user: &str, queue: Option<&str>| {
        let of = |queue: Option<&str>| (account.to_owned(), user.to_owned(), queue.map(str::to_owned));
        places.get(&of(queue)).or_else(|| places.get(&of(None))).copied()
    };
    for row in &used.rows {
        let UsageRow { user: Some(user), account: Some(account), queue, amounts, .. } = row else { continue };
        let seconds = u64::try_from(amounts.used_core_micros / 1_000_000).unwrap_or(u64::MAX);
        if let Some(place) = find(account, user, queue.as_deref()) {
            all[place].raw_usage = all[place].raw_usage.saturating_add(seconds);
        }
    }
    for job in running {
        if let Some(place) = find(&job.account, &job.user, Some(&job.partition)) {
            all[place].running_minutes = all[place].running_minutes.saturating_add(job.minutes);
        }
    }
    // Children stand behind their parents, so sums are complete when they are passed on.
    for place in (0..all.len()).rev() {
        let (usage, minutes) = (all[place].raw_usage, all[place].running_minutes);
        if let Some(parent) = tree.parents[place] {
            all[parent].raw_usage = all[parent].raw_usage.saturating_add(usage);
            all[parent].running_minutes = all[parent].running_minutes.saturating_add(minutes);
        }
    }
}

/// Which rows are below which.
struct Tree {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
}

impl Tree {
    fn of(all: &[Share]) -> Self {
        let accounts: BTreeMap<&str, usize> = all
            .iter()
            .enumerate()
            .filter(|(_, share)| share.association.spec.of.user.is_none())
            .map(|(place, share)| (share.association.spec.of.account.as_str(), place))
            .collect();
        let parent = |share: &Share| {
            let of = &share.association.spec.of;
            let above = if of.user.is_some() { &of.account } else { &share.association.parent };
            accounts.get(above.as_str()).copied()
        };
        let parents: Vec<Option<usize>> = all.iter().map(parent).collect();
        let mut children = vec![Vec::new(); all.len()];
        for (place, parent) in parents.iter().enumerate() {
            parent.iter().for_each(|parent| children[*parent].push(place));
        }
        Self { parents, children }
    }

    fn compare(&self, all: &mut [Share]) {
        let total = all.first().map_or(0, |root| root.raw_usage);
        for place in 0..all.len() {
            all[place].norm_usage = part(all[place].raw_usage, total);
            let Some(parent) = self.parents[place] else { continue };
            let shares = |place: usize| u64::from(all[place].association.spec.shares.max(1));
            let siblings: u64 = self.children[parent].iter().map(|sibling| shares(*sibling)).sum();
            let (norm_shares, effective) =
                (part(shares(place), siblings), part(all[place].raw_usage, all[parent].raw_usage));
            let share = &mut all[place];
            (share.norm_shares, share.effective_usage) = (norm_shares, effective);
            share.level = if effective == 0.0 { f64::INFINITY } else { norm_shares / effective };
        }
        if let Some(root) = all.first_mut() {
            root.effective_usage = 1.0;
        }
        let users = all.iter().filter(|share| share.association.spec.of.user.is_some()).count();
        let mut ranking = Ranking { users, rank: users, left: users };
        if let Some(top) = self.children.first() {
            self.rank(top.clone(), all, &mut ranking, false);
        }
    }

    /// Gives ranks to the users among these and below them. Accounts of the same level are ranked as one.
    fn rank(&self, mut group: Vec<usize>, all: &mut [Share], ranking: &mut Ranking, is_tied: bool) {
        let is_user = |all: &[Share], place: usize| all[place].association.spec.of.user.is_some();
        group.sort_by(|one, other| {
            let by_level = all[*other].level.partial_cmp(&all[*one].level).unwrap_or(Ordering::Equal);
            by_level.then_with(|| is_user(all, *other).cmp(&is_user(all, *one)))
        });
        let mut next = 0;
        let mut last: Option<f64> = None;
        // The first of a group whose account shares its level with the one before has the same rank as that one's last.
        let mut continues = is_tied;
        while let Some(place) = group.get(next).copied() {
            let level = all[place].level;
            let is_same = last == Some(level) || continues;
            continues = false;
            last = Some(level);
            if is_user(all, place) {
                all[place].factor = Some(ranking.next(is_same));
                next += 1;
                continue;
            }
            let end = next + group[next..].iter().take_while(|other| all[**other].level == level).count();
            let below = group[next..end].iter().flat_map(|account| self.children[*account].clone()).collect();
            self.rank(below, all, ranking, is_same);
            next = end;
        }
    }
}

struct Ranking {
    users: usize,
    /// The rank of the last user.
    rank: usize,
    /// How many users have none yet.
    left: usize,
}

impl Ranking {
    /// The factor of the next user; that of the last one if both stand equal.
    fn next(&mut self, is_same: bool) -> f64 {
        if !is_same {
            self.rank = self.left;
        }
        self.left = self.left.saturating_sub(1);
        self.rank as f64 / self.users.max(1) as f64
    }
}

fn part(of: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { of as f64 / whole as f64 }
}

macro_rules! field {
    ($name:literal, $width:literal, $write:expr) => {
        Field { letter: None, names: &[$name], header: $name, width: $width, write: $write, is_detailed: false }
    };
}

impl Listed for Share {
    const FIELDS: &'static [Field<Self>] = &[
        field!("Account", -20, |row, _, out| {
            out.extend(std::iter::repeat_n(' ', row.depth));
            out.push_str(&row.association.spec.of.account);
        }),
        field!("Cluster", 10, |row, _, out| out.push_str(&row.association.cluster)),
        field!("EffectvUsage", 13, |row, _, out| put(format_args!("{:.6}", row.effective_usage), out)),
        field!("FairShare", 10, |row, _, out| {
            row.factor.iter().for_each(|factor| put(format_args!("{factor:.6}"), out));
        }),
        field!("LevelFS", 10, |row, _, out| put(format_args!("{:.6}", row.level), out)),
        field!("ID", 6, |_, _, _| {}),
        field!("NormShares", 11, |row, _, out| put(format_args!("{:.6}", row.norm_shares), out)),
        field!("NormUsage", 11, |row, _, out| put(format_args!("{:.6}", row.norm_usage), out)),
        field!("Partition", 12, |row, _, out| {
            out.push_str(row.association.spec.of.queue.as_deref().unwrap_or_default());
        }),
        field!("RawShares", 10, |row, _, out| {
            if row.association.spec.of.account != ROOT || row.association.spec.of.user.is_some() {
                put(row.association.spec.shares.max(1), out);
            }
        }),
        field!("RawUsage", 11, |row, _, out| put(row.raw_usage, out)),
        field!("User", 10, |row, _, out| {
            out.push_str(row.association.spec.of.user.as_deref().unwrap_or_default());
        }),
        field!("GrpTRESMins", 30, |_, _, _| {}),
        field!("TRESRunMins", 30, |row, _, out| put(format_args!("cpu={}", row.running_minutes), out)),
    ];
    const USUAL: &'static str = USUAL;
}

/// The usual columns, or more of them, with partitions or without.
pub fn usual(is_long: bool, partitions: bool) -> String {
    let usual = if is_long { LONG } else { USUAL };
    if partitions { usual.replacen("User,", "User,Partition,", 1) } else { usual.to_owned() }
}

/// The table of these shares; names of columns may be abbreviated.
///
/// # Errors
/// A column that does not exist.
pub fn sshare(
    rows: &[Share],
    format: &str,
    style: &ListStyle,
    no_header: bool,
    clock: &Clock,
) -> Result<String, FormatError> {
    list(rows, format, style, no_header, clock)
}
