//! The cores and GPUs of a node that jobs hold which share them.

use crate::{jobs::Job, lending::claims::Claim, nodes::Spare, sharing::Sharing, state::State};
use muster_schemas::{JobId, NodeId, RunId};

impl State {
    /// Whether two jobs may hold the same cores.
    pub(crate) fn may_overlap(&self, one: JobId, other: JobId) -> bool {
        let sharing = |id: JobId| self.job(id).or_else(|| self.job(id.whole())).and_then(Sharing::of);
        sharing(one).is_some_and(|one| sharing(other).is_some_and(|other| one.admits(&other)))
    }

    /// Whether jobs that share may hold anything at all.
    fn has_sharers(&self) -> bool {
        !self.index.sharing.is_empty() || !self.index.kept.is_empty()
    }

    /// What other jobs hold of a node that a job may overlap, and nobody that it may not.
    pub(crate) fn open_to(&self, job: &Job, node: NodeId) -> Spare {
        let mut open = Spare::default();
        let Some(own) = Sharing::of(job).filter(|_| self.has_sharers()) else { return open };
        let mut closed = Spare::default();
        for user in self.users(node).filter(|user| user.job != job.id) {
            let admits = self.job(user.job).and_then(Sharing::of).is_some_and(|other| own.admits(&other));
            let held = if admits { &mut open } else { &mut closed };
            held.gpus = held.gpus.union(&user.share.gpus);
            held.runs.insert(user.run);
            if user.claim != Claim::Lends {
                held.cores = held.cores.union(&user.share.cores);
                held.exclusive = held.exclusive.or(user.share.exclusive.then_some(user.run));
            }
        }
        open.exclusive = closed.exclusive;
        open.cores = open.cores.difference(&closed.cores);
        open.gpus = open.gpus.difference(&closed.gpus);
        open
    }

    /// What jobs that share hold of a node, without `but`.
    pub(crate) fn held_by_sharers(&self, node: NodeId, but: RunId) -> Spare {
        let mut held = Spare::default();
        if !self.has_sharers() {
            return held;
        }
        for user in self.users(node).filter(|user| user.run != but) {
            if self.job(user.job).and_then(Sharing::of).is_none() {
                continue;
            }
            held.runs.insert(user.run);
            held.gpus = held.gpus.union(&user.share.gpus);
            if user.claim != Claim::Lends {
                held.cores = held.cores.union(&user.share.cores);
                held.exclusive = held.exclusive.or(user.share.exclusive.then_some(user.run));
            }
        }
        held
    }

    /// A run has given back a share of a node: what others hold that shared it is not free.
    pub(crate) fn keep_shared(&mut self, id: NodeId, from: RunId) {
        let held = self.held_by_sharers(id, from);
        if let Some(node) = self.nodes.get_mut(&id) {
            node.keep(&held);
        }
    }
}
