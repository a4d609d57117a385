//! Plans, the reasons why jobs wait, and the accuracy of plans.

use crate::{
    Client, ClientError, Moment,
    query::{Parameters, encode},
};
use muster_schemas::{
    CommandId, JobId, Timestamp,
    job::JobSpec,
    views::{Explanation, Forecast, ForecastRequest, PlanAccuracy, Statistics, Timetable},
};

impl Client {
    /// Why a job waits, or how its start came about.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn explanation(&mut self, job: JobId, moment: Moment) -> Result<Explanation, ClientError> {
        self.get(&moment.add_to(format!("/v1/jobs/{job}/explanation")))
    }

    /// Runs, promises and predictions; optionally for one queue only, and with at most this many waiting jobs.
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

    /// When and where a job would start if it were submitted now.
    ///
    /// # Errors
    /// It would be refused, or there was no answer.
    pub fn forecast(&mut self, job: JobSpec) -> Result<Forecast, ClientError> {
        let json = serde_json::to_vec(&ForecastRequest { job });
        let json = json.map_err(|error| ClientError::Protocol(error.to_string()))?;
        // This is a question, not a command: that the job would be refused is an answer.
        crate::parse(&self.repeat(CommandId::new_now(), "POST", "/v1/jobs/forecast", &json)?)
    }

    /// How the scheduler has performed since the gateway started.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn statistics(&mut self) -> Result<Statistics, ClientError> {
        self.get("/v1/statistics")
    }

    /// How well the starts of jobs that have started since then were foreseen.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn plan_accuracy(&mut self, since: Timestamp) -> Result<PlanAccuracy, ClientError> {
        self.get(&format!("/v1/plan/accuracy?since={}", encode(&since.to_string())))
    }
}
