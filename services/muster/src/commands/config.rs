//! `muster config ...`

use crate::{
    cli::{ConfigCommand, ConnectionOptions, QueryOptions},
    config::{self, cluster_to_toml},
    exit::{CommandResult, Failure},
    policies, show,
};
use muster_cli::stderr_line;
use muster_client::{Client, Moment};
use muster_planner::policy_file;
use muster_schemas::{CommandId, policy::Policy};
use std::{
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

/// Shows, checks or applies the configuration.
pub fn run(connection: &ConnectionOptions, command: &ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Show { policy: false, query } => show(connection, query),
        ConfigCommand::Show { policy: true, query } => show_policy(connection, query),
        ConfigCommand::Check { policy, file } => check(&named_or_default(file.as_deref()), *policy),
        ConfigCommand::Apply { policy: Some(policy), .. } => apply_policy(connection, policy),
        ConfigCommand::Apply { keep, dry_run, yes, file, .. } => {
            let how = Apply { keeps_unnamed: *keep, is_dry_run: *dry_run, asks: !*yes };
            apply(connection, &named_or_default(file.as_deref()), &how)
        }
        ConfigCommand::Policies { name } => list_policies(name.as_deref()),
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

fn show_policy(connection: &ConnectionOptions, query: &QueryOptions) -> CommandResult {
    let policy = connection.client()?.policy(query.moment())?;
    if query.json {
        show::print_json(&policy)?
    } else {
        print!("{}", policy_file::print(&policy))
    }
    Ok(0)
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
    Ok(0)
}

/// How a file is applied.
struct Apply {
    /// Whether what the file does not name stays.
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

fn apply_policy(connection: &ConnectionOptions, name_or_file: &str) -> CommandResult {
    let policy = policies::load(name_or_file)?;
    let mut client = connection.client()?;
    let changes = policies::changes(&client.policy(Moment::Now)?, &policy);
    if changes.is_empty() {
        println!("the policy `{}` is in force already", policy.name);
        return Ok(0);
    }
    let answer = client.set_policy(CommandId::new_now(), &policy)?;
    println!("applied; in force from sequence {} on", answer.sequence);
    for change in changes {
        println!("  {change}");
    }
    note_unknown_queues(&mut client, &policy)?;
    Ok(0)
}

/// Says which queues the policy names and the cluster does not have. They may come later, or be misspelt.
fn note_unknown_queues(client: &mut Client, policy: &Policy) -> Result<(), Failure> {
    let cluster = client.config(Moment::Now)?;
    for name in policies::queues_of(policy) {
        if !cluster.queues.iter().any(|queue| queue.name == name) {
            stderr_line!("muster: the policy names the queue `{name}`, which the cluster does not have");
        }
    }
    Ok(())
}

fn list_policies(name: Option<&str>) -> CommandResult {
    match name {
        None => {
            for (name, meaning) in policies::BUILT_IN {
                println!("{name:<14}{meaning}");
            }
        }
        Some(name) => print!("{}", policy_file::print(&policies::built_in(name)?)),
    }
    Ok(0)
}
