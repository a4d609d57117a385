//! `muster config ...`

use crate::{
    cli::{ConfigCommand, ConnectionOptions, QueryOptions},
    config::{self, cluster_to_toml},
    exit::{CommandResult, Failure},
    show,
};
use muster_schemas::CommandId;
use std::path::{Path, PathBuf};

/// Shows, checks or applies the configuration.
pub fn run(connection: &ConnectionOptions, command: &ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Show(query) => show(connection, query),
        ConfigCommand::Check { file } => check(&named_or_default(file.as_deref())),
        ConfigCommand::Apply { keep, file } => apply(connection, &named_or_default(file.as_deref()), *keep),
        ConfigCommand::Reference => {
            print!("{}", config::reference());
            Ok(0)
        }
    }
}

fn named_or_default(file: Option<&Path>) -> PathBuf {
    file.map_or_else(|| PathBuf::from(config::DEFAULT_PATH), Path::to_path_buf)
}

fn show(connection: &ConnectionOptions, query: &QueryOptions) -> CommandResult {
    let cluster = connection.client()?.config(query.moment())?;
    if query.json {
        show::print_json(&cluster)?
    } else {
        print!("{}", cluster_to_toml(&cluster))
    }
    Ok(0)
}

fn check(file: &Path) -> CommandResult {
    let loaded = config::load(Some(file))?;
    let cluster = loaded.configuration.cluster.to_config().map_err(Failure::usage)?;
    if loaded.file.describes_cluster() {
        println!("{} is right: {} nodes, {} queues", file.display(), cluster.nodes.len(), cluster.queues.len());
    } else {
        println!("{} is right; it does not describe a cluster", file.display());
    }
    Ok(0)
}

fn apply(connection: &ConnectionOptions, file: &Path, keep_unnamed: bool) -> CommandResult {
    let loaded = config::load(Some(file))?;
    if !loaded.file.describes_cluster() {
        let message = "has none of [cluster], [[queues]], [[nodes]], [licences]: nothing to apply";
        return Err(Failure::in_file(file.display(), message));
    }
    let cluster = loaded.configuration.cluster.to_config().map_err(Failure::usage)?;
    let answer = connection.client()?.configure(CommandId::new_now(), &cluster, keep_unnamed)?;
    println!("applied; in force from sequence {} on", answer.sequence);
    Ok(0)
}
