//! The results of `sacctmgr add`, `modify` and `delete`: the changes to request, and the text about them.
//!
//! A QOS is a service class of the core. Accounts without a parent are below `root`, as in Slurm; `root` itself and the
//! QOS `normal` are shown even if nobody made them.

mod add;
mod coordinators;
mod delete;
mod limits;
mod modify;
mod names;
mod site;

pub use limits::{tres, tres_minutes, tres_run_minutes, wall};
pub use site::Proposal;
use site::Site;

use crate::queries::sacctmgr::{Deed, Kind, Sacctmgr};
use muster_schemas::views::AccountsPage;
pub use names::{AdminLevel, ROOT};
use names::{Key, key, names};

/// The changes that a command line would request now. `cluster` is the cluster's name.
pub fn propose(command: &Sacctmgr, page: &AccountsPage, cluster: &str) -> Proposal {
    let site = Site { page, cluster };
    let proposal = match (command.deed, command.kind) {
        (_, Kind::Cluster) => {
            Proposal::refused(" There is one cluster, which is configured by muster; nothing was changed.")
        }
        (
            Deed::Add | Deed::Modify | Deed::Delete,
            Kind::Configuration | Kind::Event | Kind::Runaway | Kind::Statistics | Kind::Transaction | Kind::Tres,
        ) => Proposal::refused(" These are only shown; nothing was changed."),
        (_, Kind::Association) => {
            Proposal::refused(" Associations are added, changed and deleted with their account or user.")
        }
        (_, Kind::Coordinator) => coordinators::change(&site, command),
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
        false => Proposal { changes: Vec::new(), levels: Vec::new(), ..proposal },
    }
}
