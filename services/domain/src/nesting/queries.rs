//! Who holds what for whom.

use crate::{jobs::Job, runs::Run, state::State};
use muster_schemas::{NodeId, RunId, Timestamp, domains, resources::NodeShare};
use std::borrow::Cow;

impl Job {
    /// The planning domain that it opens.
    pub fn opens_domain(&self) -> Option<Cow<'_, str>> {
        domains::opened(self.types(), self.id)
    }

    /// The planning domain that it runs in.
    pub fn domain(&self) -> Option<Cow<'_, str>> {
        domains::entered(self.types())
    }
}

impl Run {
    /// Its shares of a node: one for each component there.
    pub(crate) fn shares_on(&self, node: NodeId) -> impl Iterator<Item = &NodeShare> {
        self.parts.positions_on(node).filter_map(|at| self.share_at(at))
    }

    /// Whether it holds a share of a node for runs inside.
    fn holds(&self, share: &NodeShare) -> bool {
        let has_all = |held: &NodeShare| held.cores.contains_all(&share.cores);
        !share.cores.is_empty() && self.shares_on(share.node).any(has_all)
    }
}

impl State {
    /// The run inside which a run has its share of a node; `None` if the node itself gives it.
    pub fn holder_of(&self, run: RunId, share: &NodeShare) -> Option<&Run> {
        if self.index.openers.is_empty() {
            return None;
        }
        let earlier = self.node(share.node)?.runs.range(..run).rev();
        let mut openers = earlier.filter(|id| self.index.openers.contains(id)).filter_map(|id| self.run(*id));
        openers.find(|opener| !opener.has_lent() && opener.holds(share))
    }

    /// The runs that hold resources for a domain, by number.
    pub fn runs_for_domain<'a>(&'a self, domain: &str) -> impl Iterator<Item = &'a Run> + use<'a> {
        let jobs = self.index.domains.opening(domain);
        let mut runs: Vec<&Run> = jobs.filter_map(|job| self.run(self.job(job)?.run()?)).collect();
        runs.sort_unstable_by_key(|run| run.id);
        runs.into_iter()
    }

    /// Whether jobs may start inside a run that opens a domain: it runs, and nobody stops or suspends it (OAR-T-14).
    pub fn is_open_for_jobs(&self, run: &Run) -> bool {
        run.started.is_some() && run.stopping.is_none() && !run.is_suspended()
    }

    /// When a run is over at the latest by its walltimes; [`Timestamp::MAX`] without one. Until it has started, its time
    /// counts from its allocation.
    pub fn latest_end(&self, run: &Run) -> Timestamp {
        let Some(job) = self.job(run.job) else { return Timestamp::MAX };
        let from = run.started.unwrap_or(run.allocated);
        let components = (0..).zip(&run.placement.components);
        let ends = components.map(|(component, _)| {
            let seconds = crate::runs::walltime::walltime(job, &run.placement, component);
            seconds.map_or(Timestamp::MAX, |seconds| after(from, seconds))
        });
        ends.max().unwrap_or(from)
    }
}

/// This many seconds later.
pub(super) fn after(from: Timestamp, seconds: u64) -> Timestamp {
    from.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)).min(Timestamp::MAX)
}
