//! Triggers.

use crate::{Client, ClientError, Moment};
use muster_schemas::{
    CommandId,
    trigger::{TriggerSelection, TriggerSpec, TriggersPage},
    views::CommandAnswer,
};

impl Client {
    /// The caller's triggers; for operators all.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn triggers(&mut self, moment: Moment) -> Result<TriggersPage, ClientError> {
        self.get(&moment.add_to("/v1/triggers".to_owned()))
    }

    /// Sets a trigger.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn set_trigger(&mut self, id: CommandId, trigger: &TriggerSpec) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/triggers", trigger)
    }

    /// Clears triggers.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn clear_triggers(&mut self, id: CommandId, which: &TriggerSelection) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/triggers/actions/clear", which)
    }
}
