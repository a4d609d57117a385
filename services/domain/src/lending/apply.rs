//! The free cores while suspended runs lend theirs (SL-C-37).

use crate::{runs::Suspension, state::State};
use muster_schemas::{JobId, NodeId, RunId, Sequence, resources::IndexSet};

impl State {
    /// The processes of a run stop or continue, and its cores are lent or taken back.
    pub(crate) fn suspension_changed(&mut self, id: RunId, suspension: Suspension) {
        let had_lent = self.index.lent.remove(&id);
        self.change_run(id, |run| run.suspension = suspension);
        let Some(run) = self.run(id) else { return };
        let (has_lent, nodes): (bool, Vec<NodeId>) = (run.has_lent(), run.nodes().collect());
        if has_lent {
            self.index.lent.insert(id);
        }
        if had_lent || has_lent {
            nodes.into_iter().for_each(|node| self.count_free_cores(node));
        }
    }

    /// The processes of a run are stopped. If it lends its cores, other runs may use them from this record on.
    pub(crate) fn run_suspended(
        &mut self,
        id: RunId,
        lends_cores: bool,
        makes_way_for: Option<JobId>,
        since: Sequence,
    ) {
        let suspension = match makes_way_for {
            Some(for_job) if lends_cores => Suspension::MadeWay { for_job, since },
            _ if lends_cores => Suspension::Lent,
            _ => Suspension::Suspended,
        };
        self.suspension_changed(id, suspension);
        if lends_cores {
            self.note_freed();
        }
    }

    /// A suspended run wants its cores back, as this record says.
    pub(crate) fn run_resuming(&mut self, id: RunId, asked: Sequence) {
        let made_way = self.run(id).is_some_and(|run| matches!(run.suspension, Suspension::MadeWay { .. }));
        let suspension = if made_way { Suspension::Returning(asked) } else { Suspension::Resuming(asked) };
        self.suspension_changed(id, suspension);
    }

    /// Recounts the free cores of a node, and which run has it exclusively.
    fn count_free_cores(&mut self, id: NodeId) {
        let (cores, alone) = self.kept_from_others(id, None);
        let doubled = self.doubled_cores(id);
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.free_cores = IndexSet::first_n(node.spec.cores).difference(&cores);
        node.exclusive = alone;
        if doubled > 0 {
            let fault = format!("node {}: {doubled} cores belong to two runs, and neither lends them", node.spec.name);
            self.require(Err(fault));
        }
    }

    /// A run, or a job with kept resources, has given back a share of a node. Those of its cores are not free that it
    /// had lent to runs that still use them, or for which resuming runs wait.
    pub(crate) fn keep_from_free(&mut self, id: NodeId, from: RunId) {
        if !self.index.lent.contains(&from) && !self.lends_on(id) {
            return;
        }
        let (cores, alone) = self.kept_from_others(id, Some(from));
        if let Some(node) = self.nodes.get_mut(&id) {
            node.free_cores = node.free_cores.difference(&cores);
            node.exclusive = node.exclusive.or(alone);
        }
    }
}
