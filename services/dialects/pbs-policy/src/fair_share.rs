//! The choice of the next job by shares and usage (PBS-FS-06, PBS-FS-07, PBS-FS-11).

use crate::{
    fraction::Fraction,
    sched_config::FairShareModel,
    shares::Shares,
    usage::{LEAST, Usage},
};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, VecDeque},
};

/// How the users stand in a cycle: their parts, and their usage with what the jobs started in this cycle ask for.
#[derive(Clone, Debug)]
pub struct Standing {
    model: FairShareModel,
    shares: Shares,
    /// The usage of each member itself, by its index.
    own: Vec<u64>,
    /// The usage of each member and all below it, by its index. It is one, plus what each user has above one: so a group
    /// is not charged for its size.
    below: Vec<u64>,
}

impl Standing {
    /// How users stand at the start of a cycle. All who have a job in the server are named, so that unknown users divide
    /// their part among those who are there (PBS-FS-04).
    pub fn new<'u>(
        model: FairShareModel,
        shares: &Shares,
        usage: &'u Usage,
        with_jobs: impl IntoIterator<Item = &'u str>,
    ) -> Self {
        let seen = usage.users().map(|(user, _)| user);
        let shares = shares.with_users(seen.chain(with_jobs));
        let members = shares.members().len();
        let mut standing = Self { model, shares, own: vec![LEAST; members], below: vec![LEAST; members] };
        for (user, usage) in usage.users() {
            standing.started(user, usage - LEAST);
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

    /// A job of a user has started that requests this much (PBS-FS-06).
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

    /// Compares two users; the first of them to be served is less. Users outside the tree come last.
    pub fn compare(&self, left: &str, right: &str) -> Ordering {
        match (self.shares.index_of(left), self.shares.index_of(right)) {
            (Some(left), Some(right)) => self.compare_members(left, right),
            (left, right) => left.is_none().cmp(&right.is_none()),
        }
    }

    fn compare_members(&self, left: usize, right: usize) -> Ordering {
        if left == right {
            return Ordering::Equal;
        }
        match self.model {
            FairShareModel::Leaf => self.compare_values((left, self.own[left]), (right, self.own[right])),
            FairShareModel::Tree => {
                let (left, right) = self.where_paths_part(left, right);
                self.compare_values(left, right)
            }
        }
    }

    /// Compares part / usage, the larger one first. A part of 0 is last.
    fn compare_values(&self, (left, left_usage): (usize, u64), (right, right_usage): (usize, u64)) -> Ordering {
        self.part(right).compare_times(left_usage, self.part(left), right_usage)
    }

    fn part(&self, index: usize) -> &Fraction {
        &self.shares.members()[index].part
    }

    /// The two ancestors at which the paths to two members part, each with its usage. If one member is above the other,
    /// its own usage stands for it.
    fn where_paths_part(&self, left: usize, right: usize) -> ((usize, u64), (usize, u64)) {
        let members = self.shares.members();
        let (mut at_left, mut at_right) = (left, right);
        loop {
            let depths = (members[at_left].depth, members[at_right].depth);
            let (next_left, next_right) = match depths.0.cmp(&depths.1) {
                Ordering::Less => (at_left, members[at_right].parent),
                Ordering::Greater => (members[at_left].parent, at_right),
                Ordering::Equal => (members[at_left].parent, members[at_right].parent),
            };
            if next_left == next_right {
                let usage = |at: usize, is_above: bool| if is_above { self.own[at] } else { self.below[at] };
                return (
                    (at_left, usage(at_left, at_left == next_left)),
                    (at_right, usage(at_right, at_right == next_right)),
                );
            }
            (at_left, at_right) = (next_left, next_right);
        }
    }
}

/// The jobs of a queue or pool that have not been looked at in this cycle.
#[derive(Clone, Debug, Default)]
pub struct Waiting<'a> {
    /// The places of each owner's jobs, in the order of the sort.
    by_owner: BTreeMap<&'a str, VecDeque<usize>>,
}

impl<'a> Waiting<'a> {
    /// Jobs with these owners, in the order of the sort.
    pub fn new(owners: impl IntoIterator<Item = &'a str>) -> Self {
        let mut by_owner: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
        for (place, owner) in owners.into_iter().enumerate() {
            by_owner.entry(owner).or_default().push_back(place);
        }
        Self { by_owner }
    }

    /// Takes the next job: the first one of the owner who stands best, among equal ones the first in the order of the
    /// sort (PBS-FS-07). The result is its place in that order.
    pub fn next(&mut self, standing: &Standing) -> Option<usize> {
        let firsts = self.by_owner.iter().filter_map(|(owner, places)| Some((*owner, *places.front()?)));
        let (owner, place) =
            firsts.min_by(|left, right| standing.compare(left.0, right.0).then(left.1.cmp(&right.1)))?;
        let places = self.by_owner.get_mut(owner)?;
        places.pop_front();
        if places.is_empty() {
            self.by_owner.remove(owner);
        }
        Some(place)
    }
}
