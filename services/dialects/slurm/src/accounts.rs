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
        (deed, Kind::Cluster) => of_cluster(deed, command, cluster),
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

/// There is one cluster, which keeps its own accounts: it can be neither added nor removed.
fn of_cluster(deed: Deed, command: &Sacctmgr, cluster: &str) -> Proposal {
    let is_name = |word: &str| matches!(word, "name" | "names" | "cluster" | "clusters");
    let named = command.wanted.iter().filter(|(word, _)| is_name(word)).flat_map(|(_, list)| names(list));
    let errors = named.filter(|_| deed == Deed::Add).map(|name| match name == cluster.to_lowercase() {
        true => format!(" This cluster {name} already exists.  Not adding."),
        false => format!(
            " Cluster {name} was not added: accounts belong to one cluster, {cluster}. Clusters that commands can name with \
             -M are in [slurm] clusters of the gateway's configuration."
        ),
    });
    let errors: Vec<String> = errors.collect();
    let other = match deed {
        Deed::Add => " Need name of cluster to add.",
        _ => " There is one cluster, which is configured by muster; nothing was changed.",
    };
    if errors.is_empty() { Proposal::refused(other) } else { Proposal { errors, ..Proposal::default() } }
}
