//! The users among whom planning by turns shares the machine, and what they have used.
//!
//! Users outside the table of shares divide the part of unknown users among those of them who are there. The tree with these
//! is kept until another one comes or the last job of one is gone: to divide it again takes far longer than a cycle.

use crate::queue::{Place, Queue};
use muster_schemas::{
    policy::{Compare, Turns},
    shares::{Shares, Standing, Waiting},
};
use std::{collections::BTreeMap, sync::Arc};

/// The tree of shares, and the use of users.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharers {
    /// Nothing is counted without planning by turns.
    trees: Option<Trees>,
    /// What users have used.
    usage: BTreeMap<Arc<str>, u64>,
}

#[derive(Clone, Debug)]
struct Trees {
    /// The groups and users of the table.
    table: Arc<Shares>,
    /// The users outside it, each as often as a job of his or his use names him.
    strangers: BTreeMap<Arc<str>, u32>,
    /// The tree with those; `None` once they are others.
    seen: Option<Arc<Shares>>,
}

impl Trees {
    fn add(&mut self, user: &Arc<str>) {
        if self.table.index_of(user).is_some() {
            return;
        }
        match self.strangers.get_mut(user) {
            Some(times) => *times += 1,
            None => {
                self.strangers.insert(user.clone(), 1);
                self.seen = None;
            }
        }
    }

    fn remove(&mut self, user: &str) {
        let Some(times) = self.strangers.get_mut(user) else { return };
        *times -= 1;
        if *times == 0 {
            self.strangers.remove(user);
            self.seen = None;
        }
    }
}

impl Sharers {
    /// Those of a policy; nobody has a job, and nothing is used.
    pub fn new(turns: Option<&Turns>) -> Self {
        let table = |turns: &Turns| turns.shares.as_ref().map_or_else(|| Shares::new(0), |table| table.tree());
        let trees = turns.map(|turns| Trees { table: table(turns).into(), strangers: BTreeMap::new(), seen: None });
        Self { trees, usage: BTreeMap::new() }
    }

    /// One more job of a user waits or runs.
    pub fn add_job(&mut self, user: &Arc<str>) {
        if let Some(trees) = &mut self.trees {
            trees.add(user);
        }
    }

    /// One job less.
    pub fn remove_job(&mut self, user: &str) {
        if let Some(trees) = &mut self.trees {
            trees.remove(user);
        }
    }

    /// What all users have used, in the place of what was known.
    pub fn set_usage(&mut self, usage: BTreeMap<Arc<str>, u64>) {
        let before = std::mem::replace(&mut self.usage, usage);
        let Some(trees) = &mut self.trees else { return };
        // Those who are named before and after are named all the time, so the tree stands.
        self.usage.keys().for_each(|user| trees.add(user));
        before.keys().for_each(|user| trees.remove(user));
    }

    /// What one user has used; `None` if he is not named any more.
    pub fn set_usage_of(&mut self, user: &Arc<str>, used: Option<u64>) {
        let before = match used {
            Some(used) => self.usage.insert(user.clone(), used),
            None => self.usage.remove(user),
        };
        match (before, used) {
            (None, Some(_)) => self.add_job(user),
            (Some(_), None) => self.remove_job(user),
            _ => {}
        }
    }

    /// What each user has used.
    #[cfg(test)]
    pub fn usage(&self) -> &BTreeMap<Arc<str>, u64> {
        &self.usage
    }

    /// The tree with all users who have a job or were named.
    pub fn tree(&mut self) -> Arc<Shares> {
        let Some(Trees { table, strangers, seen }) = &mut self.trees else { return Shares::new(0).into() };
        let with_strangers = || match strangers.is_empty() {
            true => table.clone(),
            false => table.with_users(strangers.keys().map(|user| &**user)).into(),
        };
        seen.get_or_insert_with(with_strangers).clone()
    }

    /// How users stand, and for each list of jobs the choice of the next one.
    pub fn standing(&mut self, compare: Compare, lists: &[Vec<Place>], queue: &Queue) -> (Standing, Vec<Waiting>) {
        let tree = self.tree();
        let names = queue.owner_names();
        let mut members: Vec<Option<Option<usize>>> = vec![None; names.len()];
        let mut member = |place: &Place| {
            let number = queue.owner_at(*place) as usize;
            *members[number].get_or_insert_with(|| tree.index_of(&names[number]))
        };
        let owners: Vec<Vec<_>> = lists.iter().map(|places| places.iter().map(&mut member).collect()).collect();
        let standing = match compare {
            Compare::Users => {
                let seen = names.iter().zip(&members).filter(|(_, member)| member.is_some());
                let usage = seen.filter_map(|(user, _)| Some((&**user, *self.usage.get(user)?)));
                Standing::within(compare, tree.clone(), usage)
            }
            Compare::Groups => {
                Standing::within(compare, tree.clone(), self.usage.iter().map(|(user, used)| (&**user, *used)))
            }
        };
        let waiting = owners.iter().map(|owners| Waiting::of_members(&standing, owners)).collect();
        (standing, waiting)
    }
}
