//! Jobs with descriptions, templates and filters.

use crate::{Client, ClientError, Moment, query::encode};
use muster_schemas::{
    CommandId, JobId,
    filter::{FilterSettings, TemplateSpec},
    scheduling::SchedulingSettings,
    views::{
        CommandAnswer, ConfigureJobRequest, DescribedJobRequest, DescriptionView, EndRequest, HoldUntilRequest,
        ParametersRequest, TemplatesPage,
    },
};

impl Client {
    /// Submits a job with a description, a template or its own tasks. It is on the ledger's disk when this returns.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_described(
        &mut self,
        id: CommandId,
        request: &DescribedJobRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/described", request)
    }

    /// Changes a job that is still being created.
    ///
    /// # Errors
    /// As [`submit`](Self::submit); with the code `conflict` if the job changed since the change was prepared.
    pub fn configure_job(
        &mut self,
        id: CommandId,
        job: JobId,
        request: &ConfigureJobRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", &format!("/v1/jobs/{job}/described"), request)
    }

    /// Lets a job that was being created, or that was refused, enter the queue.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn enter_job(&mut self, id: CommandId, job: JobId) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", &format!("/v1/jobs/{job}/enter"), &serde_json::json!({}))
    }

    /// Holds jobs until a time, or lifts such a hold.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn hold_until(&mut self, id: CommandId, request: &HoldUntilRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/hold-until", request)
    }

    /// Ends jobs.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn end_jobs(&mut self, id: CommandId, request: &EndRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/end", request)
    }

    /// The description of a job.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn description(&mut self, job: JobId) -> Result<DescriptionView, ClientError> {
        self.get(&format!("/v1/jobs/{job}/description"))
    }

    /// All job templates.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn templates(&mut self, moment: Moment) -> Result<TemplatesPage, ClientError> {
        self.get(&moment.add_to("/v1/templates".to_owned()))
    }

    /// Creates or changes a job template.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_template(&mut self, id: CommandId, template: &TemplateSpec) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", &format!("/v1/templates/{}", encode(&template.name)), template)
    }

    /// Removes a job template.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn remove_template(&mut self, id: CommandId, name: &str) -> Result<CommandAnswer, ClientError> {
        self.command(id, "DELETE", &format!("/v1/templates/{}", encode(name)), &serde_json::json!({}))
    }

    /// The cluster-wide filters, and the settings for calling filters.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn filter_settings(&mut self, moment: Moment) -> Result<FilterSettings, ClientError> {
        self.get(&moment.add_to("/v1/filters".to_owned()))
    }

    /// Sets the cluster-wide filters, and the settings for calling filters.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_filter_settings(
        &mut self,
        id: CommandId,
        settings: &FilterSettings,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", "/v1/filters", settings)
    }

    /// The settings by which jobs get resources.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn scheduling(&mut self, moment: Moment) -> Result<SchedulingSettings, ClientError> {
        self.get(&moment.add_to("/v1/scheduling".to_owned()))
    }

    /// Sets the settings for calling filters and for giving resources to jobs: both or neither.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_parameters(
        &mut self,
        id: CommandId,
        parameters: &ParametersRequest,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", "/v1/parameters", parameters)
    }
}
