//! `sshare`: the shares of accounts and users, and what they have used of them.
//!
//! The factors are those of the policy's formulas, as Slurm's fair tree has them.

use super::{
    Clock,
    cells::put,
    columns::{Field, FormatError, ListStyle},
    data::number,
    sacctmgr::{Listed, association_id, list},
};
use crate::accounts::tres_minutes;
use muster_schemas::{
    accounts::AssociationKey,
    fair_tree::{Member, compare},
    usage::{UsageAnswer, UsageRow},
    views::AccountsPage,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The usual columns.
const USUAL: &str = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare";
/// More of them (`-l`).
const LONG: &str = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,\
    TRESRunMins";

/// A user in an account, or an account as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// The cluster.
    pub cluster: String,
    /// How many accounts it is below.
    pub depth: usize,
    /// Its share and its use.
    pub member: Member,
    /// The minutes that its running jobs may still run, times their cores.
    pub running_minutes: u64,
    /// What its jobs together may use up over time: `cpu=90`.
    pub group_minutes: String,
    /// The account above an account; empty for the first one.
    pub parent: String,
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

/// What associations have used, in core seconds: as it counts for the policy, or all of it if nothing counts.
pub fn used(page: &AccountsPage, answer: Option<&UsageAnswer>) -> BTreeMap<AssociationKey, u64> {
    let mut used = BTreeMap::new();
    for known in &page.used {
        used.insert(known.of.clone(), known.core_seconds);
    }
    for row in answer.map_or(&[][..], |answer| answer.rows.as_slice()) {
        let UsageRow { user: Some(user), account: Some(account), queue, amounts, .. } = row else { continue };
        let seconds = u64::try_from(amounts.used_core_micros / 1_000_000).unwrap_or(u64::MAX);
        if let Some(of) = association(page, account, user, queue.as_deref()) {
            let sum: &mut u64 = used.entry(of).or_default();
            *sum = sum.saturating_add(seconds);
        }
    }
    used
}

/// The association that counts for a user's jobs in an account and a partition.
fn association(page: &AccountsPage, account: &str, user: &str, queue: Option<&str>) -> Option<AssociationKey> {
    let of = |queue: Option<&str>| AssociationKey {
        account: account.to_owned(),
        user: Some(user.to_owned()),
        queue: queue.map(str::to_owned),
    };
    let is_known = |key: &AssociationKey| page.associations.iter().any(|known| known.of == *key);
    [of(queue), of(None)].into_iter().find(is_known)
}

/// All shares as a tree: each account, its users, and the accounts below it.
pub fn shares(
    page: &AccountsPage,
    cluster: &str,
    used: &BTreeMap<AssociationKey, u64>,
    running: &[Running],
) -> Vec<Share> {
    let of = |key: &AssociationKey| used.get(key).copied().unwrap_or(0) as f64;
    let members = compare(&page.accounts, &page.associations, of);
    let mut all: Vec<Share> = Vec::with_capacity(members.len());
    for member in members {
        let depth = member.parent.map_or(0, |parent| all[parent].depth + 1);
        let limited = page.associations.iter().find(|known| known.of == member.of);
        let group_minutes = limited.map_or_else(String::new, |known| tres_minutes(&known.limits.budget));
        let parent = member.parent.map_or_else(String::new, |parent| all[parent].member.of.account.clone());
        all.push(Share { cluster: cluster.to_owned(), depth, member, running_minutes: 0, group_minutes, parent });
    }
    for job in running {
        let Some(of) = association(page, &job.account, &job.user, Some(&job.partition)) else { continue };
        let mut place = all.iter().position(|share| share.member.of == of);
        while let Some(at) = place {
            all[at].running_minutes = all[at].running_minutes.saturating_add(job.minutes);
            place = all[at].member.parent;
        }
    }
    all
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
            out.push_str(&row.member.of.account);
        }),
        field!("Cluster", 10, |row, _, out| out.push_str(&row.cluster)),
        field!("EffectvUsage", 13, |row, _, out| put(format_args!("{:.6}", row.member.effective_used), out)),
        field!("FairShare", 10, |row, _, out| {
            row.member.factor.iter().for_each(|factor| put(format_args!("{factor:.6}"), out));
        }),
        field!("LevelFS", 10, |row, _, out| put(format_args!("{:.6}", row.member.level), out)),
        field!("ID", 6, |row, _, out| put(association_id(&row.member.of), out)),
        field!("NormShares", 11, |row, _, out| put(format_args!("{:.6}", row.member.norm_shares), out)),
        field!("NormUsage", 11, |row, _, out| put(format_args!("{:.6}", row.member.norm_used), out)),
        field!("Partition", 12, |row, _, out| {
            out.push_str(row.member.of.queue.as_deref().unwrap_or_default());
        }),
        field!("RawShares", 10, |row, _, out| {
            if row.member.parent.is_some() {
                put(row.member.shares, out);
            }
        }),
        field!("RawUsage", 11, |row, _, out| put(format_args!("{:.0}", row.member.used), out)),
        field!("User", 10, |row, _, out| {
            out.push_str(row.member.of.user.as_deref().unwrap_or_default());
        }),
        field!("GrpTRESMins", 30, |row, _, out| out.push_str(&row.group_minutes)),
        field!("TRESRunMins", 30, |row, _, out| put(format_args!("cpu={}", row.running_minutes), out)),
    ];
    const USUAL: &'static str = USUAL;
}

/// The usual columns, or more of them, with partitions or without.
pub fn usual(is_long: bool, partitions: bool) -> String {
    let usual = if is_long { LONG } else { USUAL };
    if partitions { usual.replacen("User,", "User,Partition,", 1) } else { usual.to_owned() }
}

/// The same for programs, in the shape of Slurm's `data_parser`, with the sum of all shares.
pub fn data(rows: &[Share], total: u64) -> Value {
    json!({ "shares": rows.iter().map(of_share).collect::<Vec<_>>(), "total_shares": total })
}

fn of_share(row: &Share) -> Value {
    let (of, member) = (&row.member.of, &row.member);
    let real = |value: Option<f64>| {
        let known = value.filter(|value| value.is_finite());
        json!({ "set": known.is_some(), "infinite": value == Some(f64::INFINITY), "number": known.unwrap_or(0.0) })
    };
    let kept = member.parent.map(|_| u64::from(member.shares));
    json!({
        "id": association_id(of),
        "cluster": row.cluster,
        "name": of.user.as_ref().unwrap_or(&of.account),
        "parent": if of.user.is_some() { of.account.as_str() } else { row.parent.as_str() },
        "partition": of.queue.as_deref().unwrap_or_default(),
        "shares_normalized": real(Some(member.norm_shares)),
        "shares": number(kept),
        "tres": {
            "run_seconds": [{ "name": "cpu", "value": number(Some(row.running_minutes.saturating_mul(60))) }],
            "group_minutes": [],
            "usage": [{ "name": "cpu", "value": member.used }],
        },
        "effective_usage": real(Some(member.effective_used)),
        "usage_normalized": real(Some(member.norm_used)),
        // Whole core seconds, as in the table.
        "usage": format!("{:.0}", member.used).parse::<u64>().unwrap_or(0),
        "fairshare": { "factor": real(member.factor), "level": real(Some(member.level)) },
        "type": if of.user.is_some() { ["USER"] } else { ["ASSOCIATION"] },
    })
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
