//! Queries about lists of tasks.

use crate::{
    jobs::Job,
    runs::Run,
    state::State,
    tasks::{Elastic, TaskBook, room},
};
use muster_schemas::{JobId, resources::Placement};

impl State {
    /// The names of the nodes that could not be prepared for a job, which it does not get again (HPC-J-22).
    pub fn unprepared_nodes(&self, job: &Job) -> Vec<String> {
        let unusable = job.tasks.iter().flat_map(|book| &book.unusable);
        unusable.map(|node| self.node_name(*node).into_owned()).collect()
    }

    /// How many more or fewer resources a running list of tasks can use; `None` for other jobs.
    pub fn elastic(&self, job: JobId) -> Option<Elastic> {
        let (job, book, run) = self.task_run(job)?;
        Some(room::elastic(self, job, book, run))
    }

    /// A list of tasks with a run.
    pub(crate) fn task_run(&self, job: JobId) -> Option<(&Job, &TaskBook, &Run)> {
        let job = self.job(job)?;
        Some((job, job.tasks.as_deref()?, self.run(job.run()?)?))
    }

    /// Shares that a running job could give up now without stopping a task, up to this many of its units, starting with
    /// the last. Its minimum is ignored.
    pub fn unused(&self, job: JobId, units: u32) -> Placement {
        self.task_run(job).map(|(_, book, run)| room::unused(self, book, run, units)).unwrap_or_default()
    }
}
