//! Nodes with the jobs that run on them.

use super::{ended::Failure, site::Site};
use muster_pbs::show::NodeJob;
use muster_schemas::{
    JobId,
    job::JobState,
    views::{JobDetail, NodeView},
};
use std::collections::{BTreeMap, BTreeSet};

/// A node with its jobs.
pub struct NodeWithJobs {
    /// The node.
    pub view: NodeView,
    /// Its jobs, by their first core there.
    pub jobs: Vec<NodeJob>,
}

/// These nodes with their jobs. A job that has ended meanwhile is left out.
pub fn with_jobs(site: &mut Site, views: Vec<NodeView>) -> Result<Vec<NodeWithJobs>, Failure> {
    let ids: BTreeSet<JobId> = views.iter().flat_map(|view| view.jobs.iter().copied()).collect();
    let ids: Vec<JobId> = ids.into_iter().collect();
    let details = if ids.is_empty() { Vec::new() } else { site.client.job_details(&ids, false)?.jobs };
    let mut by_node: BTreeMap<&str, Vec<NodeJob>> = BTreeMap::new();
    for detail in &details {
        add(site, detail, &mut by_node);
    }
    let one = |view: NodeView| {
        let mut jobs = by_node.remove(view.spec.name.as_str()).unwrap_or_default();
        jobs.sort_by_key(|job| job.cores.first());
        NodeWithJobs { view, jobs }
    };
    Ok(views.into_iter().map(one).collect())
}

fn add<'a>(site: &Site, detail: &'a JobDetail, by_node: &mut BTreeMap<&'a str, Vec<NodeJob>>) {
    let Some(run) = detail.runs.iter().rev().find(|run| run.ended.is_none()) else { return };
    let id = site.id_of(detail.job.id, false).to_string();
    for part in &run.nodes {
        let jobs = by_node.entry(part.node.as_str()).or_default();
        match jobs.iter_mut().find(|job| job.id == id) {
            Some(job) => {
                job.cores = job.cores.union(&part.cores);
                job.is_exclusive |= part.exclusive;
            }
            None => jobs.push(NodeJob {
                id: id.clone(),
                cores: part.cores.clone(),
                is_suspended: detail.job.state == JobState::Suspended,
                is_exclusive: part.exclusive,
            }),
        }
    }
}
