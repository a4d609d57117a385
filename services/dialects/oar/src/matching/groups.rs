//! Groups that are taken together, on different resources (OAR-R-08, OAR-R-09).

use super::tree::Tree;
use crate::{
    order::Order,
    predicate::Predicate,
    request::demand::{Count, Group, Step},
    resources::{
        property::NODE,
        state::State,
        table::{Resource, Table},
    },
};
use std::{collections::BTreeSet, fmt};

/// The greatest number of attempts to take one group. Beyond it a request counts as one that does not fit.
const MOST_ATTEMPTS: usize = 5_000;

/// Why a request does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The group that does not fit, counted from 0; `None` if each fits alone but not all together.
    pub group: Option<usize>,
    /// The first level of its path.
    pub level: String,
    /// The number of its items that are asked for.
    pub asked: Count,
    /// The number of items that match the filter.
    pub exist: usize,
    /// The number of those that are free, and fit the levels below.
    pub fitting: usize,
}

impl Lack {
    /// The level as people call it.
    pub fn level_for_people(&self) -> &str {
        if self.level == NODE { "nodes" } else { &self.level }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { asked, exist, fitting, .. } = self;
        let level = self.level_for_people();
        if self.group.is_none() {
            return f.write_str("each group fits alone, but not all of them on different resources");
        }
        write!(f, "{level}: {asked} asked, {exist} match, {fitting} of them fit")
    }
}

/// The trees of the groups of an alternative.
#[derive(Clone, Debug)]
pub struct Forest {
    groups: Vec<(Vec<Step>, Tree)>,
    /// For each group, the first one that is equal to it.
    first_equal: Vec<usize>,
}

impl Forest {
    /// The trees of groups over the resources that are not dead, each under its whole filter. The filters of the job and of
    /// the site are added to those of the groups.
    pub fn new(groups: &[Group], table: &Table, order: &Order, job: &Predicate, site: &Predicate) -> Self {
        let ranked = order.rank(table.resources().filter(|resource| resource.state() != State::Dead));
        let tree = |group: &Group| {
            let filter = group.whole_filter(job, site);
            let matching: Vec<&Resource> =
                ranked.iter().copied().filter(|resource| filter.matches(resource.values())).collect();
            (group.path.clone(), Tree::new(&group.path, &matching))
        };
        let first = |group: &Group| groups.iter().position(|other| other == group).unwrap_or_default();
        Self { groups: groups.iter().map(tree).collect(), first_equal: groups.iter().map(first).collect() }
    }

    /// The first resources that fit all groups, in the order of the groups. `is_free` says which may be taken. Groups are
    /// chosen in the order given, else in the first other order that works.
    ///
    /// # Errors
    /// Why they do not fit.
    pub fn find(&self, is_free: &dyn Fn(u32) -> bool) -> Result<Vec<Vec<u32>>, Lack> {
        let mut search = Search { forest: self, is_free, attempts: 0, chosen: vec![None; self.groups.len()] };
        if search.choose(&BTreeSet::new()) {
            return Ok(search.chosen.into_iter().flatten().collect());
        }
        Err(self.lack(is_free))
    }

    fn lack(&self, is_free: &dyn Fn(u32) -> bool) -> Lack {
        let alone = self.groups.iter().position(|(path, tree)| tree.take(path, is_free).is_none());
        let (path, tree) = &self.groups[alone.unwrap_or_default()];
        Lack {
            group: alone,
            level: path[0].level.clone(),
            asked: path[0].count,
            exist: tree.size(),
            fitting: tree.fitting(path, is_free),
        }
    }
}

struct Search<'s> {
    forest: &'s Forest,
    is_free: &'s dyn Fn(u32) -> bool,
    attempts: usize,
    chosen: Vec<Option<Vec<u32>>>,
}

impl Search<'_> {
    /// Chooses the groups that are left, without the resources that are taken.
    fn choose(&mut self, taken: &BTreeSet<u32>) -> bool {
        let left: Vec<usize> = (0..self.chosen.len()).filter(|place| self.chosen[*place].is_none()).collect();
        if left.is_empty() {
            return true;
        }
        // Taking more resources never makes a group fit that does not fit without: all that are left must fit.
        let Some(choices) = left.iter().map(|place| self.attempt(*place, taken)).collect::<Option<Vec<_>>>() else {
            return false;
        };
        let mut tried = BTreeSet::new();
        for (place, resources) in left.into_iter().zip(choices) {
            // Equal groups are interchangeable.
            if !tried.insert(self.forest.first_equal[place]) {
                continue;
            }
            let with: BTreeSet<u32> = taken.iter().chain(&resources).copied().collect();
            self.chosen[place] = Some(resources);
            if self.choose(&with) {
                return true;
            }
            self.chosen[place] = None;
        }
        false
    }

    fn attempt(&mut self, place: usize, taken: &BTreeSet<u32>) -> Option<Vec<u32>> {
        self.attempts += 1;
        if self.attempts > MOST_ATTEMPTS {
            return None;
        }
        let (path, tree) = &self.forest.groups[place];
        let is_free = self.is_free;
        tree.take(path, &|id| is_free(id) && !taken.contains(&id))
    }
}
