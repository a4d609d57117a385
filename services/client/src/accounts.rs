//! Accounts, users, associations and service classes.

use crate::{Client, ClientError, Moment};
use muster_schemas::{
    CommandId,
    accounts::AccountChange,
    views::{AccountsPage, AccountsRequest, ClassRequest, CommandAnswer},
};

impl Client {
    /// All accounts, users, associations and service classes, and which limits are enforced.
    ///
    /// # Errors
    /// The request was refused or not answered.
    pub fn accounts(&mut self, moment: Moment) -> Result<AccountsPage, ClientError> {
        self.get(&moment.add_to("/v1/accounts".to_owned()))
    }

    /// Changes accounts, users, associations and service classes, all or nothing.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn change_accounts(
        &mut self,
        id: CommandId,
        changes: Vec<AccountChange>,
    ) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/accounts/actions/change", &AccountsRequest { changes })
    }

    /// Moves waiting components into another service class.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn change_class(&mut self, id: CommandId, request: &ClassRequest) -> Result<CommandAnswer, ClientError> {
        self.command(id, "POST", "/v1/jobs/actions/change-class", request)
    }
}
