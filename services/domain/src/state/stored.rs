//! What a state has at its core, as it is stored.

use super::{ClusterIdentity, Core, Job, Licence, Node, Queue, Run, State, names::PastNames, shape::Shapes};
use muster_schemas::{JobId, NodeId, RunId, Sequence, Timestamp, cluster::ClusterSettings};
use serde::{Serialize, Serializer};
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// [`Core`] with the numbers that a living state does not keep up to date. Field by field it is what is read as a core.
#[derive(Serialize)]
pub(crate) struct StoredCore<'a> {
    sequence: Sequence,
    time: Timestamp,
    cluster: &'a Option<ClusterIdentity>,
    settings: &'a ClusterSettings,
    archived: Sequence,
    queues: &'a BTreeMap<Arc<str>, Queue>,
    licences: &'a BTreeMap<String, Licence>,
    nodes: &'a BTreeMap<NodeId, Node>,
    next_node: u32,
    past_names: &'a PastNames,
    shapes: &'a Shapes,
    jobs: StoredJobs<'a>,
    next_job: u64,
    unfinished_jobs: u64,
    runs: &'a BTreeMap<RunId, Box<Run>>,
    next_run: u64,
}

struct StoredJobs<'a> {
    jobs: &'a BTreeMap<JobId, Box<Job>>,
    /// How many namesakes must end before which waiting job.
    ahead: BTreeMap<JobId, u32>,
}

impl Serialize for StoredJobs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.jobs.iter().map(|(id, job)| (id, self.stored(job))))
    }
}

impl StoredJobs<'_> {
    fn stored<'a>(&self, job: &'a Job) -> Cow<'a, Job> {
        let Some(ahead) = self.ahead.get(&job.id) else { return Cow::Borrowed(job) };
        let mut job = job.clone();
        job.count_singletons_ahead(*ahead);
        Cow::Owned(job)
    }
}

impl State {
    /// The core as it is stored.
    pub(crate) fn stored_core(&self) -> StoredCore<'_> {
        let Core {
            sequence,
            time,
            cluster,
            settings,
            archived,
            queues,
            licences,
            nodes,
            next_node,
            past_names,
            shapes,
            jobs,
            next_job,
            unfinished_jobs,
            runs,
            next_run,
        } = &self.core;
        StoredCore {
            sequence: *sequence,
            time: *time,
            cluster,
            settings,
            archived: *archived,
            queues,
            licences,
            nodes,
            next_node: *next_node,
            past_names,
            shapes,
            jobs: StoredJobs { jobs, ahead: self.singletons_ahead() },
            next_job: *next_job,
            unfinished_jobs: *unfinished_jobs,
            runs,
            next_run: *next_run,
        }
    }

    /// How many namesakes must end before each job that waits for them.
    fn singletons_ahead(&self) -> BTreeMap<JobId, u32> {
        let waiting = || self.index.singletons.iter().filter_map(|id| self.job(*id));
        let mut names: Vec<(&str, &str)> = waiting().map(|job| (job.owner.user.as_str(), &*job.name)).collect();
        names.sort_unstable();
        names.dedup();
        let lines = names.into_iter().map(|(user, name)| (0..).zip(self.index.namesakes(user, name)));
        let jobs = lines.flatten().map(|(ahead, id)| (id, ahead)).filter(|(id, _)| self.index.singletons.contains(id));
        let tasks = self.index.singleton_tasks.iter().filter_map(|id| self.job(*id));
        let tasks =
            tasks.map(|task| (task.id, self.index.namesakes_ahead(&task.owner.user, &task.name, task.id.whole())));
        jobs.chain(tasks).collect()
    }

    /// The other way round, after a state was read.
    pub(crate) fn forget_singletons_ahead(&mut self) {
        for id in &self.index.singletons {
            if let Some(job) = self.core.jobs.get_mut(id) {
                job.count_singletons_ahead(1);
            }
        }
    }
}
