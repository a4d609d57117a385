//! Shares inside other runs, which take nothing from the node itself.

use crate::{nodes::Spare, state::State};
use muster_schemas::{RunId, resources::NodeShare};

impl State {
    /// Notes that a run has a share inside another one; whether it is so.
    pub(crate) fn take_inside(&mut self, run: RunId, share: &NodeShare) -> bool {
        let is_inside = self.holder_of(run, share).is_some();
        if let Some(node) = self.nodes.get_mut(&share.node).filter(|_| is_inside) {
            node.runs.insert(run);
        }
        is_inside
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
