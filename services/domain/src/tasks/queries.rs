//! What can be asked of a state about lists of tasks.

use crate::{
    jobs::Job,
    runs::Run,
    state::State,
    tasks::{Elastic, TaskBook, room},
};
use muster_schemas::{JobId, resources::Placement};

impl State {
    /// The names of the nodes that could not be prepared for a job, and that it does not get again (HPC-J-22).
    pub fn unprepared_nodes(&self, job: &Job) -> Vec<String> {
        let unusable = job.tasks.iter().flat_map(|book| &book.unusable);
        unusable.map(|node| self.node_name(*node).into_owned()).collect()
    }

    /// The use that a running list of tasks has for more or fewer resources; `None` for other jobs.
    pub fn elastic(&self, job: JobId) -> Option<Elastic> {
        let (job, book, run) = self.task_run(job)?;
        Some(room::elastic(self, job, book, run))
    }

    /// A job that is a list of tasks and has a run.
    pub(crate) fn task_run(&self, job: JobId) -> Option<(&Job, &TaskBook, &Run)> {
        let job = self.job(job)?;
        Some((job, job.tasks.as_deref()?, self.run(job.run()?)?))
    }

    /// Shares that a running job could give up now, up to this many of its units, without stopping a task: the last
    /// that it got first. Its minimum is not taken into account.
    pub fn unused(&self, job: JobId, units: u32) -> Placement {
        self.task_run(job).map(|(_, book, run)| room::unused(self, book, run, units)).unwrap_or_default()
    }
}
