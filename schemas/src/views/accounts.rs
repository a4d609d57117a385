//! Accounts, users, associations and service classes.

use crate::{
    accounts::{AccountChange, AccountSettings, AccountSpec, AssociationKey, AssociationSpec, ClassSpec, UserSpec},
    command::JobSelection,
    ids::Sequence,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// All accounts, users, associations and service classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountsPage {
    /// Which checks are enforced.
    pub settings: AccountSettings,
    /// By name.
    pub accounts: Vec<AccountSpec>,
    /// By name.
    pub users: Vec<UserSpec>,
    /// By account, user and queue.
    pub associations: Vec<AssociationSpec>,
    /// By name.
    pub classes: Vec<ClassSpec>,
    /// What each association has used, as it counts for fair share; nothing if it is not counted.
    #[serde(default)]
    pub used: Vec<AssociationUse>,
    /// The answer shows the state after this record.
    pub sequence: Sequence,
    /// The time of that record.
    pub time: Timestamp,
}

/// What an association has used, as it counts at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssociationUse {
    /// The association.
    pub of: AssociationKey,
    /// Core seconds.
    pub core_seconds: u64,
}

/// Changes of accounts, users, associations and service classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountsRequest {
    /// The changes, in this order; all are made or none.
    pub changes: Vec<AccountChange>,
}

/// A new service class for waiting components.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassRequest {
    /// Which jobs.
    pub jobs: JobSelection,
    /// The class.
    pub class: String,
}
