//! `muster config ...`: configuration files, which configure the services too.

use crate::{
    cli::{ConfigCommand, ConnectionOptions},
    config,
    elsewhere::only_muster,
    exit::{CommandResult, Failure},
    policies,
};
use muster_cli::stderr_line;
use muster_client::Moment;
use muster_schemas::CommandId;
use std::{
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

/// Checks or applies a configuration file.
pub fn run(connection: &ConnectionOptions, command: &ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Check { policy, file } => check(&named_or_default(file.as_deref()), *policy),
        ConfigCommand::Apply { policy: None, keep, dry_run, yes, file } => {
            let how = Apply { keeps_unnamed: *keep, is_dry_run: *dry_run, asks: !*yes };
            apply(connection, &named_or_default(file.as_deref()), &how)
        }
        ConfigCommand::Reference => {
            print!("{}", config::reference());
            Ok(0)
        }
        ConfigCommand::Show { .. } | ConfigCommand::Apply { policy: Some(_), .. } | ConfigCommand::Policies { .. } => {
            Err(only_muster())
        }
    }
}

fn named_or_default(file: Option<&Path>) -> PathBuf {
    file.map_or_else(|| PathBuf::from(config::DEFAULT_PATH), Path::to_path_buf)
}

fn check(file: &Path, is_policy: bool) -> CommandResult {
    if is_policy || policies::is_policy_file(file) {
        let policy = policies::load_file(&file.display().to_string())?;
        println!("{} is right: the policy `{}`", file.display(), policy.name);
        return Ok(0);
    }
    let loaded = config::load(Some(file))?;
    let cluster = loaded.configuration.cluster.to_config().map_err(Failure::usage)?;
    if loaded.file.describes_cluster() {
        println!("{} is right: {} nodes, {} queues", file.display(), cluster.nodes.len(), cluster.queues.len());
    } else {
        println!("{} is right; it does not describe a cluster", file.display());
    }
    if loaded.configuration.pbs.policy_folder.is_some() {
        config::makes_way_in_vain(&cluster.queues).for_each(|warning| stderr_line!("warning: {warning}"));
    }
    Ok(0)
}

/// How a file is applied.
struct Apply {
    /// Whether everything that the file does not name stays.
    keeps_unnamed: bool,
    /// Whether the difference is only shown.
    is_dry_run: bool,
    /// Whether somebody at a terminal is asked first.
    asks: bool,
}

fn apply(connection: &ConnectionOptions, file: &Path, how: &Apply) -> CommandResult {
    let loaded = config::load(Some(file))?;
    if !loaded.file.describes_cluster() {
        let message = "has none of [cluster], [[queues]], [[nodes]], [licences]: nothing to apply";
        return Err(Failure::in_file(file.display(), message));
    }
    let change = loaded.configuration.cluster.to_change().map_err(Failure::usage)?;
    let mut client = connection.client()?;
    let from = client.config(Moment::Now)?;
    let to = config::outcome(&change, &from, how.keeps_unnamed);
    let differences = config::differences(&from, &to);
    if differences.is_empty() {
        println!("this is in force already");
        return Ok(0);
    }
    for difference in &differences {
        println!("{difference}");
    }
    if how.is_dry_run {
        println!("nothing was changed: this is what `muster config apply` would change");
        return Ok(0);
    }
    let is_at_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if how.asks && is_at_terminal && !confirmed()? {
        return Err(Failure::failed("nothing was changed"));
    }
    let emptied = config::emptied(&from, &to);
    if how.asks && !is_at_terminal && !emptied.is_empty() {
        let lists = emptied.join(", ");
        return Err(Failure::failed(format!(
            "this empties {lists}. Standard input is not a terminal, so give --yes to confirm. Nothing was changed"
        )));
    }
    let answer = client.configure(CommandId::new_now(), &change, how.keeps_unnamed)?;
    println!("applied; in force from sequence {} on", answer.sequence);
    Ok(0)
}

fn confirmed() -> Result<bool, Failure> {
    print!("apply this? [y/N] ");
    std::io::stdout().flush().and_then(|()| std::io::stdin().lines().next().transpose()).map_or_else(
        |error| Err(Failure::failed(format!("cannot ask: {error}"))),
        |answer| Ok(answer.is_some_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes"))),
    )
}
