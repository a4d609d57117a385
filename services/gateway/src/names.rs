//! What the numbers in records mean.

use muster_domain::State;
use muster_schemas::{
    JobId, NodeId, RunId,
    event::{Event, Record},
    public,
};
use std::collections::HashMap;

/// The jobs of runs, also of such that are over and have left the state.
#[derive(Debug, Default)]
pub(crate) struct Runs(HashMap<RunId, JobId>);

impl Runs {
    /// The runs that the state knows.
    pub(crate) fn of(state: &State) -> Self {
        Self(state.runs().map(|run| (run.id, run.job)).collect())
    }

    /// The runs that begin in records.
    pub(crate) fn in_records(records: &[Record]) -> Self {
        let mut runs = Self::default();
        runs.learn(records);
        runs
    }

    /// Takes in the runs that begin in records.
    pub(crate) fn learn(&mut self, records: &[Record]) {
        self.0.extend(records.iter().filter_map(|record| match &record.event {
            Event::RunAllocated { job, run, .. } => Some((*run, *job)),
            _ => None,
        }));
    }

    /// Drops the runs that end in records: nothing behind them names these.
    pub(crate) fn forget(&mut self, records: &[Record]) {
        for record in records {
            if let Event::RunEnded { run, .. } = &record.event {
                self.0.remove(run);
            }
        }
    }
}

/// Names as state and records know them.
pub(crate) struct Names<'a> {
    state: &'a State,
    runs: &'a Runs,
    only_job: Option<JobId>,
}

impl<'a> Names<'a> {
    /// Names of nodes as in the state, jobs of runs as in both.
    pub(crate) const fn new(state: &'a State, runs: &'a Runs) -> Self {
        Self { state, runs, only_job: None }
    }

    /// The same for records that are all of one job: unless it is an array, a run that nobody knows is one of its.
    pub(crate) fn of_job(self, job: JobId) -> Self {
        let is_array = self.state.job(job).is_some_and(|job| job.array.is_some());
        Self { only_job: Some(job).filter(|_| !is_array), ..self }
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
        let known = self.runs.0.get(&run).copied();
        known.or_else(|| self.state.run(run).map(|run| run.job)).or(self.only_job)
    }
}
