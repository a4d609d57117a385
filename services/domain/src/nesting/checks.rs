//! Whether a plan may start a job inside a domain.

use super::queries::after;
use crate::{
    jobs::Job,
    nodes::{Node, Spare},
    planning::decide::plan::Plan,
    runs::{Run, walltime::walltime},
};
use muster_schemas::{
    RunId,
    resources::{NodeShare, Placement},
};
use std::borrow::Cow;

impl Plan<'_> {
    /// The node of a share as a job sees it: the node itself or, inside a domain, what the run that holds the share there
    /// leaves of it.
    pub(crate) fn node_for(&self, job: &Job, share: &NodeShare) -> Result<Cow<'_, Node>, String> {
        let node = self.node(share.node).ok_or_else(|| format!("node {} does not exist", share.node))?;
        let Some(domain) = job.domain() else { return Ok(Cow::Borrowed(node)) };
        let (holder, held) = self
            .held_for(&domain, share)
            .ok_or_else(|| format!("node {}: nobody holds these cores for planning domain {domain}", node.spec.name))?;
        if !self.state().is_open_for_jobs(holder) {
            return Err(format!(
                "job {}, which holds resources for planning domain {domain}, does not run",
                holder.job
            ));
        }
        let has_all = held.exclusive || held.cores.len() == u64::from(node.spec.cores);
        if share.exclusive && !has_all {
            return Err(format!("node {}: job {} does not have all of it", node.spec.name, holder.job));
        }
        let mut left = Node {
            free_cores: held.cores.clone(),
            free_gpus: held.gpus.clone(),
            free_memory_bytes: held.memory_bytes,
            exclusive: None,
            runs: Default::default(),
            ..node.clone()
        };
        let own = job.reserved().map(|kept| kept.run);
        for (run, share) in self.inside(holder, held).into_iter().filter(|(run, _)| Some(*run) != own) {
            // A job inside was checked when it started.
            let _ = left.take(run, share, &Spare::default());
        }
        Ok(Cow::Owned(left))
    }

    /// The run that holds a share for a domain, with its own share of that node.
    fn held_for(&self, domain: &str, share: &NodeShare) -> Option<(&Run, &NodeShare)> {
        self.state().runs_for_domain(domain).find_map(|run| {
            let mut own = run.shares_on(share.node);
            own.find(|held| !share.cores.is_empty() && held.cores.contains_all(&share.cores)).map(|held| (run, held))
        })
    }

    /// The shares directly inside one of a run, those that the plan has given among them.
    fn inside(&self, holder: &Run, held: &NodeShare) -> Vec<(RunId, &NodeShare)> {
        let state = self.state();
        let is_within = |share: &NodeShare| share.node == held.node && held.cores.contains_all(&share.cores);
        let users = state.users_inside(held.node);
        let is_direct =
            |run: RunId, share: &NodeShare| state.holder_of(run, share).is_some_and(|by| by.id == holder.id);
        let known =
            users.filter(|(run, share)| !self.is_given_back(*run) && is_within(share) && is_direct(*run, share));
        let given = self.given_inside().filter(|(_, share)| is_within(share));
        known.chain(given).collect()
    }

    /// Whether a job that starts now is over when the runs that hold its resources are (OAR-T-11).
    pub(crate) fn check_domain_end(&self, job: &Job, placement: &Placement) -> Result<(), String> {
        let Some(domain) = job.domain() else { return Ok(()) };
        for (component, placed) in (0..).zip(&placement.components) {
            let seconds = walltime(job, placement, component);
            let until = seconds.map_or(muster_schemas::Timestamp::MAX, |seconds| after(self.now(), seconds));
            for (holder, _) in placed.shares.iter().filter_map(|share| self.held_for(&domain, share)) {
                let end = self.state().latest_end(holder);
                if until > end {
                    return Err(format!("it would run until {until}, and planning domain {domain} there until {end}"));
                }
            }
        }
        Ok(())
    }
}
