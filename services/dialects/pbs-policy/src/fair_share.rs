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

    /// The first to be served of these owners, each with the place of his first job: the one who stands best, among equal
    /// ones the one whose job is first. Owners outside the tree come last.
    fn first(&self, owners: impl Iterator<Item = (usize, Option<usize>)> + Clone) -> Option<usize> {
        let members = owners.clone().filter_map(|(place, member)| Some((place, member?)));
        let first = match self.model {
            FairShareModel::Leaf => members
                .min_by(|left, right| {
                    let (left, right) = ((left.1, self.own[left.1], left.0), (right.1, self.own[right.1], right.0));
                    self.compare(left, right)
                })
                .map(|(place, _)| place),
            FairShareModel::Tree => self.first_in_tree(members.collect()),
        };
        first.or_else(|| owners.map(|(place, _)| place).min())
    }

    /// Descends from the root, at each member to the child that stands best of those with waiting jobs: so two jobs are
    /// compared where the paths to their owners part (PBS-FS-11). Between equal children the first job below them
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
                self.compare(standing(*left), standing(*right))
            });
            let (best, _) = best?;
            owners.retain(|(_, member)| self.branch(at, *member) == best);
            at = best;
        }
        owners.first().map(|(place, _)| *place)
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
    /// earlier job. A part of 0 is last (PBS-FS-07).
    fn compare(&self, left: (usize, u64, usize), right: (usize, u64, usize)) -> Ordering {
        let by_value = self.part(right.0).compare_times(left.1, self.part(left.0), right.1);
        by_value.then(left.2.cmp(&right.2))
    }

    fn part(&self, index: usize) -> &Fraction {
        &self.shares.members()[index].part
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
        let members = firsts.clone().map(|(owner, place)| (place, standing.shares.index_of(owner)));
        let place = standing.first(members)?;
        let (owner, _) = firsts.clone().find(|(_, first)| *first == place)?;
        let places = self.by_owner.get_mut(owner)?;
        places.pop_front();
        if places.is_empty() {
            self.by_owner.remove(owner);
        }
        Some(place)
    }
}
