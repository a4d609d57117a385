//! Shares inside other runs, which take nothing from the node itself, with a check each time that nothing inside is used
//! twice.

use crate::{nodes::Spare, runs::Run, state::State};
use muster_schemas::{
    RunId,
    resources::{IndexSet, NodeShare},
};

/// The resources of a node that runs have.
#[derive(Default)]
struct Sum {
    cores: IndexSet,
    gpus: IndexSet,
    memory_bytes: u64,
}

impl Sum {
    fn of<'a>(shares: impl Iterator<Item = &'a NodeShare>) -> Self {
        shares.fold(Self::default(), |sum, share| Self {
            cores: sum.cores.union(&share.cores),
            gpus: sum.gpus.union(&share.gpus),
            memory_bytes: sum.memory_bytes.saturating_add(share.memory_bytes),
        })
    }
}

impl State {
    /// A run takes a share inside another one; whether it does.
    pub(crate) fn take_inside(&mut self, run: RunId, share: &NodeShare) -> bool {
        let Some(holder) = self.holder_of(run, share) else { return false };
        let free = self.check_free_inside(holder, run, share);
        self.require(free);
        if let Some(node) = self.nodes.get_mut(&share.node) {
            node.runs.insert(run);
        }
        true
    }

    /// A share inside a run takes nothing that another run inside has, and no more than there is (OAR-G-05).
    ///
    /// # Errors
    /// What others have, or what the holder has not.
    fn check_free_inside(&self, holder: &Run, run: RunId, share: &NodeShare) -> Result<(), String> {
        let Some(node) = self.node(share.node) else { return Ok(()) };
        let (name, holder_id) = (&node.spec.name, holder.id);
        let others = node.runs.iter().filter(|other| **other != run).filter_map(|other| self.run(*other));
        let others = others.flat_map(|other| other.shares_on(share.node).map(move |share| (other.id, share)));
        let is_inside = |(other, share): &(RunId, &NodeShare)| {
            self.holder_of(*other, share).is_some_and(|holder| holder.id == holder_id)
        };
        let inside: Vec<&NodeShare> = others.filter(is_inside).map(|(_, share)| share).collect();
        let held = Sum::of(holder.shares_on(share.node));
        let used = Sum::of(inside.iter().copied());
        let takes = |what: &str, missing: u64| {
            Err(format!(
                "node {name}: run {run} takes {what} inside run {holder_id}, of which {missing} are not free there"
            ))
        };
        let left = |taken: &IndexSet, held: &IndexSet, used: &IndexSet| {
            taken.difference(held).union(&taken.intersection(used)).len()
        };
        let cores = left(&share.cores, &held.cores, &used.cores);
        let gpus = left(&share.gpus, &held.gpus, &used.gpus);
        let memory = share.memory_bytes.saturating_sub(held.memory_bytes.saturating_sub(used.memory_bytes));
        if cores > 0 {
            return takes(&format!("cores {}", share.cores), cores);
        }
        if gpus > 0 {
            return takes(&format!("GPUs {}", share.gpus), gpus);
        }
        if memory > 0 {
            return takes(&format!("{} bytes of memory", share.memory_bytes), memory);
        }
        if inside.iter().any(|other| other.exclusive || share.exclusive) {
            return Err(format!(
                "node {name}: run {run} is not alone inside run {holder_id}, where one has it exclusively"
            ));
        }
        Ok(())
    }

    /// Notes that a run has given back a share, or part of one, inside another run; whether it is so.
    pub(crate) fn give_back_inside(&mut self, run: RunId, share: &NodeShare, keeps_rest: bool) -> bool {
        let is_inside = self.holder_of(run, share).is_some();
        if let Some(node) = self.nodes.get_mut(&share.node).filter(|_| is_inside && !keeps_rest) {
            node.runs.remove(&run);
        }
        is_inside
    }

    /// A run that opened a domain is gone and has given back a share. The runs inside have theirs of the node itself from
    /// now on, unless they lie inside another run.
    pub(crate) fn leave_inner_runs(&mut self, gone: RunId, share: &NodeShare) {
        if !self.index.openers.contains(&gone) {
            return;
        }
        let users = self.users(share.node).filter(|user| user.run > gone);
        let inside = users.filter(|user| !user.share.cores.is_empty() && share.cores.contains_all(&user.share.cores));
        let left: Vec<(RunId, NodeShare)> = inside.map(|user| (user.run, user.share.clone())).collect();
        for (run, share) in left {
            let taken = self.nodes.get_mut(&share.node).map(|node| node.take(run, &share, &Spare::default()));
            self.require(taken.unwrap_or(Ok(())));
        }
    }
}
