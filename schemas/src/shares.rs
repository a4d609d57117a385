//! Shares of the machine: a tree of groups and users, their exact parts, and the choice of the next job by parts and
//! usage.

use crate::fraction::Fraction;
use serde::{Deserialize, Serialize};
use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BinaryHeap},
    sync::Arc,
};
use utoipa::ToSchema;

/// The usage of a user who has not used anything.
pub const LEAST: u64 = 1;

/// The name of the whole machine.
pub const ROOT: &str = "root";

/// The name of the group of all users who are not in the tree.
pub const UNKNOWN: &str = "unknown";

/// The shares of a user who is not in the tree.
const SHARES_OF_UNKNOWN_USER: u32 = 1;

/// Where fair share compares users.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// By their own parts and usage.
    #[default]
    Users,
    /// By those of the groups where their paths from the root part.
    Groups,
}

/// A group or a user in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its number where the tree was written down; `None` for the root, the group of unknown users, and these users.
    pub number: Option<i64>,
    /// The index of its parent, which is lower than its own; the root is its own parent.
    pub parent: usize,
    /// Its shares of what the parent has.
    pub shares: u32,
    /// Its part of the machine.
    pub part: Arc<Fraction>,
    /// Its distance from the root.
    pub depth: u32,
}

impl Member {
    /// A member whose part and depth are not known yet.
    pub fn new(name: &str, number: Option<i64>, parent: usize, shares: u32) -> Self {
        Self { name: name.to_owned(), number, parent, shares, part: Arc::default(), depth: 0 }
    }
}

/// The tree of groups and users with their parts of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The root, the group of unknown users, then all others, each behind its parent.
    members: Vec<Member>,
    /// The indices of all members but the root and the group of unknown users.
    by_name: BTreeMap<String, usize>,
}

impl Shares {
    /// The index of the root.
    pub const ROOT: usize = 0;

    /// The index of the group of unknown users.
    pub const UNKNOWN: usize = 1;

    /// The root and the group of unknown users.
    pub fn new(unknown_shares: u32) -> Self {
        let mut shares = Self { members: Vec::new(), by_name: BTreeMap::new() };
        shares.members.push(Member::new(ROOT, None, Self::ROOT, 0));
        shares.members.push(Member { depth: 1, ..Member::new(UNKNOWN, None, Self::ROOT, unknown_shares) });
        shares.divide();
        shares
    }

    /// The root, the group of unknown users, then all others, each behind its parent.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The member that a user is. The names `root` and `unknown` belong to no user: jobs of users who are called so are
    /// those of unknown users.
    pub fn find(&self, user: &str) -> Option<&Member> {
        self.index_of(user).map(|index| &self.members[index])
    }

    /// The index of the member that a user is.
    pub fn index_of(&self, user: &str) -> Option<usize> {
        self.by_name.get(user).copied()
    }

    /// The tree with those of these users who are not in it as members of the group of unknown users, with one share
    /// each.
    #[must_use]
    pub fn with_users<'u>(&self, users: impl IntoIterator<Item = &'u str>) -> Self {
        let mut shares = self.clone();
        for user in users {
            if shares.index_of(user).is_none() {
                shares.add(Member::new(user, None, Self::UNKNOWN, SHARES_OF_UNKNOWN_USER));
            }
        }
        shares.divide();
        shares
    }

    /// The indices of a member's children, in their order.
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.members.len()];
        for (index, member) in self.members.iter().enumerate().skip(1) {
            children[member.parent].push(index);
        }
        children
    }

    /// Adds a member below one that is there. [`Shares::divide`] computes the parts afterwards.
    pub fn add(&mut self, member: Member) {
        let depth = self.members.get(member.parent).map_or(1, |parent| parent.depth + 1);
        let member = Member { depth, ..member };
        self.by_name.insert(member.name.clone(), self.members.len());
        self.members.push(member);
    }

    /// Computes all parts: the shares of a member, divided by those of all children of its parent, times the part of the
    /// parent.
    pub fn divide(&mut self) {
        let mut sums = vec![0u64; self.members.len()];
        for member in self.members.iter().skip(1) {
            sums[member.parent] += u64::from(member.shares);
        }
        self.members[Self::ROOT].part = Fraction::one().into();
        for index in 1..self.members.len() {
            let Member { parent, shares, .. } = self.members[index];
            self.members[index].part = self.members[parent].part.times(u64::from(shares), sums[parent]).into();
        }
    }
}

/// How the users stand in a cycle: their parts, and their usage with what the jobs started in this cycle ask for.
#[derive(Clone, Debug)]
pub struct Standing {
    compare: Compare,
    shares: Arc<Shares>,
    /// The usage of each member itself, by its index.
    own: Vec<u64>,
    /// The usage of each member and all below it, by its index. It is one, plus what each user has above one: so a group
    /// is not charged for its size.
    below: Vec<u64>,
}

impl Standing {
    /// How users stand at the start of a cycle. All who have a job in the server are named, so that unknown users divide
    /// their part among those who are there. The usage of users who are not named is [`LEAST`].
    pub fn new<'u>(
        compare: Compare,
        shares: &Shares,
        usage: impl IntoIterator<Item = (&'u str, u64)>,
        with_jobs: impl IntoIterator<Item = &'u str>,
    ) -> Self {
        let usage: Vec<(&str, u64)> = usage.into_iter().filter(|(_, usage)| *usage > LEAST).collect();
        let shares = shares.with_users(usage.iter().map(|(user, _)| *user).chain(with_jobs));
        Self::within(compare, Arc::new(shares), usage)
    }

    /// The same in a tree that has all who are to be named. If users are compared by their own parts, only the usage of those
    /// matters who have jobs that wait.
    pub fn within<'u>(compare: Compare, shares: Arc<Shares>, usage: impl IntoIterator<Item = (&'u str, u64)>) -> Self {
        let members = shares.members().len();
        let mut standing = Self { compare, shares, own: vec![LEAST; members], below: vec![LEAST; members] };
        for (user, usage) in usage {
            standing.started(user, usage.saturating_sub(LEAST));
        }
        standing
    }

    /// The tree with the users that are seen.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The usage of a user, including the jobs that have started in this cycle.
    pub fn usage_now(&self, user: &str) -> u64 {
        self.shares.index_of(user).map_or(LEAST, |index| self.own[index])
    }

    /// A job of a user has started that requests this much.
    pub fn started(&mut self, user: &str, charge: u64) {
        let Some(mut index) = self.shares.index_of(user) else { return };
        self.own[index] = self.own[index].saturating_add(charge);
        loop {
            self.below[index] = self.below[index].saturating_add(charge);
            if index == Shares::ROOT {
                return;
            }
            index = self.shares.members()[index].parent;
        }
    }

    /// A member with waiting jobs as it stands at this moment.
    fn candidate(&self, member: usize, place: usize) -> Candidate {
        Candidate { part: self.shares.members()[member].part.clone(), usage: self.own[member], place, member }
    }

    /// Descends from the root, at each member to the child that stands best of those with waiting jobs: so two jobs are
    /// compared where the paths to their owners part. Between equal children the first job below them
    /// decides.
    fn first_in_tree(&self, mut owners: Vec<(usize, usize)>) -> Option<usize> {
        let mut at = Shares::ROOT;
        while owners.len() > 1 {
            let mut branches: BTreeMap<usize, usize> = BTreeMap::new();
            for (place, member) in &owners {
                let first = branches.entry(self.branch(at, *member)).or_insert(*place);
                *first = (*first).min(*place);
            }
            let best = branches.into_iter().min_by(|left, right| {
                let standing = |(branch, place)| (branch, self.usage_of_branch(at, branch), place);
                self.by_value(standing(*left), standing(*right))
            });
            let (best, _) = best?;
            owners.retain(|(_, member)| self.branch(at, *member) == best);
            at = best;
        }
        owners.first().map(|(_, member)| *member)
    }

    /// The child of a member through which the path to a member below it leads; the member itself if it is the end.
    fn branch(&self, at: usize, mut below: usize) -> usize {
        let members = self.shares.members();
        while below != at && members[below].parent != at && below != Shares::ROOT {
            below = members[below].parent;
        }
        below
    }

    /// The usage of a branch. A member that is a group and a user stands for itself by its own usage.
    fn usage_of_branch(&self, at: usize, branch: usize) -> u64 {
        if branch == at { self.own[branch] } else { self.below[branch] }
    }

    /// Compares members, each with a usage and the place of its first job: the larger part / usage is less, then the
    /// earlier job. A part of 0 is last.
    fn by_value(&self, left: (usize, u64, usize), right: (usize, u64, usize)) -> Ordering {
        let by_value = self.part(right.0).compare_times(left.1, self.part(left.0), right.1);
        by_value.then(left.2.cmp(&right.2))
    }

    fn part(&self, index: usize) -> &Fraction {
        &self.shares.members()[index].part
    }
}

/// The jobs of a queue or pool that have not been looked at in this cycle, each with its place in an order.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// The place of the first job of each member of the tree, and last that of users outside the tree, whose jobs come
    /// last.
    firsts: Vec<Option<usize>>,
    /// For each place the next one of the same owner.
    next: Vec<Option<usize>>,
    /// The members by value, as they stood when they were put there; used if users are compared by their own parts.
    /// Usage only grows in a cycle: so a member that stands worse by now is put back when its turn comes.
    heap: BinaryHeap<Reverse<Candidate>>,
}

/// An owner with the place of his first job.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    part: Arc<Fraction>,
    usage: u64,
    place: usize,
    member: usize,
}

impl Ord for Candidate {
    /// The larger part / usage is less, then the earlier job. A part of 0 is last.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_value = other.part.compare_times(self.usage, &self.part, other.usage);
        by_value.then(self.place.cmp(&other.place)).then(self.member.cmp(&other.member))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Waiting {
    /// Jobs with these owners, in their order.
    pub fn new<'a>(standing: &Standing, owners: impl IntoIterator<Item = &'a str>) -> Self {
        let members: Vec<_> = owners.into_iter().map(|owner| standing.shares.index_of(owner)).collect();
        Self::of_members(standing, &members)
    }

    /// The same with the members of the tree that the owners are; `None` for those outside the tree.
    pub fn of_members(standing: &Standing, owners: &[Option<usize>]) -> Self {
        let outside = standing.shares.members().len();
        let mut waiting =
            Self { firsts: vec![None; outside + 1], next: vec![None; owners.len()], heap: BinaryHeap::new() };
        for (place, owner) in owners.iter().enumerate().rev() {
            let first = &mut waiting.firsts[owner.unwrap_or(outside)];
            waiting.next[place] = first.replace(place);
        }
        if standing.compare == Compare::Users {
            let candidates: Vec<_> =
                waiting.first_jobs().map(|(place, member)| Reverse(standing.candidate(member, place))).collect();
            waiting.heap = candidates.into();
        }
        waiting
    }

    /// Takes the next job: the first one of the owner who stands best, among equal ones the first in the order. The
    /// result is its place in the order.
    pub fn next(&mut self, standing: &Standing) -> Option<usize> {
        self.next_of(standing, |_| true)
    }

    /// The same, but jobs at places that are not wanted are dropped on the way.
    pub fn next_of(&mut self, standing: &Standing, mut is_wanted: impl FnMut(usize) -> bool) -> Option<usize> {
        loop {
            let member = match standing.compare {
                Compare::Users => self.first_in_heap(standing),
                Compare::Groups => standing.first_in_tree(self.first_jobs().collect()),
            };
            let first = match member {
                Some(member) => &mut self.firsts[member],
                None => self.firsts.last_mut()?,
            };
            let found = first.take();
            let mut place = found;
            while let Some(at) = place.filter(|at| !is_wanted(*at)) {
                place = self.next[at];
            }
            // Between equal owners the places of their jobs decide, so an owner whose job was dropped is compared again.
            let is_first = place == found;
            *first = if is_first { self.next[place?] } else { place };
            if let (Some(member), Some(next), Compare::Users) = (member, *first, standing.compare) {
                self.heap.push(Reverse(standing.candidate(member, next)));
            }
            if is_first {
                return place;
            }
        }
    }

    /// The place of the first job of each member that has one, and the member.
    fn first_jobs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let members = self.firsts.len().saturating_sub(1);
        self.firsts[..members].iter().enumerate().filter_map(|(member, place)| Some(((*place)?, member)))
    }

    fn first_in_heap(&mut self, standing: &Standing) -> Option<usize> {
        while let Some(Reverse(first)) = self.heap.pop() {
            let usage = standing.own[first.member];
            if usage == first.usage {
                return Some(first.member);
            }
            self.heap.push(Reverse(Candidate { usage, ..first }));
        }
        None
    }
}
