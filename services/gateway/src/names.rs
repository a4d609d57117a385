//! What the numbers in records mean.

use muster_domain::State;
use muster_schemas::{
    JobId, NodeId, RunId,
    event::{Event, Record},
    public,
};
use std::collections::HashMap;

/// Names as the state knows them, and as the records themselves tell: a run that is over has left the state.
pub(crate) struct Names<'a> {
    state: &'a State,
    runs: HashMap<RunId, JobId>,
    only_job: Option<JobId>,
}

impl<'a> Names<'a> {
    /// The names in records.
    pub(crate) fn in_records(records: &[Record], state: &'a State) -> Self {
        let allocated = records.iter().filter_map(|record| match &record.event {
            Event::RunAllocated { job, run, .. } => Some((*run, *job)),
            _ => None,
        });
        Self { state, runs: allocated.collect(), only_job: None }
    }

    /// The names in records that are all of one job.
    pub(crate) fn in_records_of(job: JobId, records: &[Record], state: &'a State) -> Self {
        let is_array = state.job(job).is_some_and(|job| job.array.is_some());
        Self { only_job: Some(job).filter(|_| !is_array), ..Self::in_records(records, state) }
    }

    /// The cluster's name.
    pub(crate) fn cluster(&self) -> &str {
        &self.state.settings().name
    }
}

impl public::Names for Names<'_> {
    fn node_name(&self, node: NodeId) -> Option<&str> {
        self.state.node(node).map(|node| node.spec.name.as_str())
    }

    fn job_of_run(&self, run: RunId) -> Option<JobId> {
        self.runs.get(&run).copied().or_else(|| self.state.run(run).map(|run| run.job)).or(self.only_job)
    }
}
