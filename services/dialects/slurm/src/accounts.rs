//! What `sacctmgr add`, `modify` and `delete` come to: which changes are asked of the system, and what is said of them.
//!
//! A QOS is a service class of the core. Accounts that have no parent are below `root`, as Slurm has it; `root` itself and
//! the QOS `normal` are shown also where nobody made them.

mod add;
mod delete;
mod limits;
mod modify;
mod names;
mod site;

pub use limits::{tres, wall};
pub use site::Proposal;
use site::Site;

use crate::queries::sacctmgr::{Deed, Kind, Sacctmgr};
use muster_schemas::views::AccountsPage;
pub use names::ROOT;
use names::{Key, key, names};

/// What the system is asked to add, change or remove for a command line, as it stands now. `cluster` is its name.
pub fn propose(command: &Sacctmgr, page: &AccountsPage, cluster: &str) -> Proposal {
    let site = Site { page, cluster };
    let proposal = match (command.deed, command.kind) {
        (_, Kind::Cluster) => {
            Proposal::refused(" There is one cluster, which is configured by muster; nothing was changed.")
        }
        (_, Kind::Association) => {
            Proposal::refused(" Associations are added, changed and deleted with their account or user.")
        }
        (Deed::Add, Kind::Account) => add::accounts(&site, command),
        (Deed::Add, Kind::User) => add::users(&site, command),
        (Deed::Add, Kind::Qos) => add::classes(&site, command),
        (Deed::Modify, Kind::Account) => modify::accounts(&site, command),
        (Deed::Modify, Kind::User) => modify::users(&site, command),
        (Deed::Modify, Kind::Qos) => modify::classes(&site, command),
        (Deed::Delete, Kind::Account) => delete::accounts(&site, command),
        (Deed::Delete, Kind::User) => delete::users(&site, command),
        (Deed::Delete, Kind::Qos) => delete::classes(&site, command),
        (Deed::Show, _) => Proposal::default(),
    };
    match proposal.errors.is_empty() {
        true => proposal,
        false => Proposal { changes: Vec::new(), ..proposal },
    }
}
