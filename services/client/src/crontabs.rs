//! Tables of jobs that are repeated at certain times.

use crate::{Client, ClientError, Moment, query::encode};
use muster_schemas::{
    CommandId,
    crontab::{CrontabRequest, CrontabView},
    views::CommandAnswer,
};

impl Client {
    /// The table of a user.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn crontab(&mut self, user: &str, moment: Moment) -> Result<CrontabView, ClientError> {
        self.get(&moment.add_to(format!("/v1/crontabs/{}", encode(user))))
    }

    /// Sets the caller's table.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_crontab(&mut self, id: CommandId, table: &CrontabRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "PUT", "/v1/crontab", table)
    }
}
