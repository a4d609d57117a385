//! Accounts and users, compared by their use of their shares: a fair tree.
//!
//! At each account those below it are compared by their level: their part of its shares divided by their part of what
//! it used. The users are numbered in the tree that is sorted by levels, and their factor is their number divided by
//! how many there are: 1 for the first. Those with equal levels get the same factor, and accounts with equal levels are
//! compared as if they were one.

use crate::accounts::{AccountSpec, AssociationKey, AssociationSpec};
use std::{cmp::Ordering, collections::BTreeMap};

/// The account above all others, which is never made, and its only user.
pub const ROOT: &str = "root";

/// A user in an account, or an account as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Member {
    /// Its association.
    pub of: AssociationKey,
    /// The place of its account, or of the account above it, in the list of all members; `None` for the first.
    pub parent: Option<usize>,
    /// Its shares of that account, at least 1.
    pub shares: u32,
    /// What it used, in core seconds; for an account what those below it used.
    pub used: f64,
    /// Its part of the shares of its level, from 0 to 1.
    pub norm_shares: f64,
    /// Its part of all use, from 0 to 1.
    pub norm_used: f64,
    /// Its part of what its account used, from 0 to 1.
    pub effective_used: f64,
    /// Its part of the shares divided by its part of the use; infinite if it used nothing.
    pub level: f64,
    /// The factor of a user, above 0 up to 1; `None` for accounts.
    pub factor: Option<f64>,
}

/// All accounts and users with their factors, given what each association used itself. The first member is [`ROOT`];
/// each account comes before its users and the accounts below it.
pub fn compare<'a>(
    accounts: impl IntoIterator<Item = &'a AccountSpec>,
    associations: impl IntoIterator<Item = &'a AssociationSpec>,
    used: impl Fn(&AssociationKey) -> f64,
) -> Vec<Member> {
    let mut members = members(accounts, associations);
    members.iter_mut().filter(|member| member.of.user.is_some()).for_each(|member| member.used = used(&member.of));
    for place in (1..members.len()).rev() {
        if let Some(parent) = members[place].parent {
            members[parent].used += members[place].used;
        }
    }
    let tree = Tree::of(&members);
    tree.level(&mut members);
    let users = members.iter().filter(|member| member.of.user.is_some()).count();
    let mut ranking = Ranking { users, rank: users, left: users };
    tree.rank(tree.children[0].clone(), &mut members, &mut ranking, false);
    members
}

fn members<'a>(
    accounts: impl IntoIterator<Item = &'a AccountSpec>,
    associations: impl IntoIterator<Item = &'a AssociationSpec>,
) -> Vec<Member> {
    let mut below: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for account in accounts {
        below.entry(account.parent.as_deref().unwrap_or(ROOT)).or_default().push(&account.name);
    }
    let mut own: BTreeMap<&str, Vec<&AssociationSpec>> = BTreeMap::new();
    for association in associations {
        own.entry(&association.of.account).or_default().push(association);
    }
    let member = |of: AssociationKey, parent: Option<usize>, shares: u32| Member {
        of,
        parent,
        shares: shares.max(1),
        ..Member::default()
    };
    let root = |user: Option<&str>| AssociationKey {
        account: ROOT.to_owned(),
        user: user.map(str::to_owned),
        ..AssociationKey::default()
    };
    let mut members = vec![member(root(None), None, 1), member(root(Some(ROOT)), Some(0), 1)];
    // Accounts to visit, the next one last. Names that are their own ancestors are never reached.
    let mut next: Vec<(&str, usize)> = Vec::new();
    let push = |next: &mut Vec<_>, name: &str, at: usize| {
        next.extend(below.get(name).into_iter().flatten().rev().map(|below| (*below, at)));
    };
    push(&mut next, ROOT, 0);
    while let Some((name, parent)) = next.pop() {
        let of = own.get(name).map_or(&[][..], Vec::as_slice);
        let whole = of.iter().find(|spec| spec.of.user.is_none());
        let key = AssociationKey { account: name.to_owned(), ..AssociationKey::default() };
        let at = members.len();
        members.push(member(key, Some(parent), whole.map_or(1, |spec| spec.shares)));
        let users = of.iter().filter(|spec| spec.of.user.is_some());
        members.extend(users.map(|spec| member(spec.of.clone(), Some(at), spec.shares)));
        push(&mut next, name, at);
    }
    members
}

struct Tree {
    children: Vec<Vec<usize>>,
}

impl Tree {
    fn of(members: &[Member]) -> Self {
        let mut children = vec![Vec::new(); members.len().max(1)];
        for (place, member) in members.iter().enumerate() {
            member.parent.iter().for_each(|parent| children[*parent].push(place));
        }
        Self { children }
    }

    fn level(&self, members: &mut [Member]) {
        let total = members.first().map_or(0.0, |root| root.used);
        let shares_of = |place: &usize| f64::from(members[*place].shares);
        let shares: Vec<f64> = self.children.iter().map(|children| children.iter().map(shares_of).sum()).collect();
        for place in 0..members.len() {
            members[place].norm_used = part(members[place].used, total);
            let Some(parent) = members[place].parent else {
                members[place].effective_used = 1.0;
                continue;
            };
            let norm_shares = part(f64::from(members[place].shares), shares[parent]);
            let effective = part(members[place].used, members[parent].used);
            let member = &mut members[place];
            (member.norm_shares, member.effective_used) = (norm_shares, effective);
            member.level = if effective > 0.0 { norm_shares / effective } else { f64::INFINITY };
        }
    }

    /// Gives factors to the users among these and below them.
    fn rank(&self, mut group: Vec<usize>, members: &mut [Member], ranking: &mut Ranking, is_tied: bool) {
        let is_user = |members: &[Member], place: usize| members[place].of.user.is_some();
        group.sort_by(|one, other| {
            let by_level = members[*other].level.partial_cmp(&members[*one].level).unwrap_or(Ordering::Equal);
            by_level.then_with(|| is_user(members, *other).cmp(&is_user(members, *one)))
        });
        let (mut next, mut last) = (0, None);
        // The first of those below an account that stands equal with the one before it stands equal with that one.
        let mut continues = is_tied;
        while let Some(place) = group.get(next).copied() {
            let level = members[place].level;
            let is_same = last == Some(level) || continues;
            (continues, last) = (false, Some(level));
            if is_user(members, place) {
                members[place].factor = Some(ranking.next(is_same));
                next += 1;
                continue;
            }
            let end = next + group[next..].iter().take_while(|other| members[**other].level == level).count();
            let below = group[next..end].iter().flat_map(|account| self.children[*account].clone()).collect();
            self.rank(below, members, ranking, is_same);
            next = end;
        }
    }
}

struct Ranking {
    users: usize,
    /// The number of the last user.
    rank: usize,
    /// How many users have none yet.
    left: usize,
}

impl Ranking {
    fn next(&mut self, is_same: bool) -> f64 {
        if !is_same {
            self.rank = self.left;
        }
        self.left = self.left.saturating_sub(1);
        self.rank as f64 / self.users.max(1) as f64
    }
}

fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { of / whole } else { 0.0 }
}

/// The factors of users in accounts, by account, user and queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors(BTreeMap<String, BTreeMap<String, BTreeMap<Option<String>, f64>>>);

impl Factors {
    /// Those of these members.
    pub fn of(members: &[Member]) -> Self {
        let mut factors = Self::default();
        for member in members {
            if let (Some(user), Some(factor)) = (&member.of.user, member.factor) {
                let of_account = factors.0.entry(member.of.account.clone()).or_default();
                of_account.entry(user.clone()).or_default().insert(member.of.queue.clone(), factor);
            }
        }
        factors
    }

    /// That of a user in an account: of the association with the queue, or of the one with all queues; 0 without any.
    pub fn get(&self, account: Option<&str>, user: &str, queue: &str) -> f64 {
        let of_user = account.and_then(|account| self.0.get(account)?.get(user));
        let found = of_user.and_then(|queues| {
            let own = queues.iter().find(|(known, _)| known.as_deref() == Some(queue)).map(|(_, factor)| *factor);
            own.or_else(|| queues.get(&None).copied())
        });
        found.unwrap_or(0.0)
    }
}
