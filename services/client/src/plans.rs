//! What is planned, why jobs wait, and how good plans were.

use crate::{
    Client, ClientError, Moment,
    query::{Parameters, encode},
};
use muster_schemas::{
    JobId, Timestamp,
    views::{Explanation, PlanAccuracy, Timetable},
};

impl Client {
    /// Why a job waits, or how its start came about.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn explanation(&mut self, job: JobId, moment: Moment) -> Result<Explanation, ClientError> {
        self.get(&moment.add_to(format!("/v1/jobs/{job}/explanation")))
    }

    /// What runs, what is promised and what is foreseen: of a queue only its jobs, and at most so many of those that wait.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn timetable(
        &mut self,
        queue: Option<&str>,
        limit: Option<u32>,
        moment: Moment,
    ) -> Result<Timetable, ClientError> {
        let mut parameters = Parameters::default();
        parameters.optional("queue", queue);
        parameters.optional("limit", limit);
        self.get(&moment.add_to(parameters.path("/v1/plan")))
    }

    /// How well starts were foreseen of jobs that have started since then.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn plan_accuracy(&mut self, since: Timestamp) -> Result<PlanAccuracy, ClientError> {
        self.get(&format!("/v1/plan/accuracy?since={}", encode(&since.to_string())))
    }
}
