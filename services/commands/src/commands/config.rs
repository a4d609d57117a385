//! `muster config ...`: the configuration in force, and policies.

use crate::{
    cli::{ConfigCommand, ConnectionOptions, QueryOptions},
    cluster_toml::cluster_to_toml,
    exit::{CommandResult, Failure},
    policies, programs, show,
};
use muster_cli::stderr_line;
use muster_client::{Client, Moment};
use muster_planner::policy_file;
use muster_schemas::{CommandId, policy::Policy};

/// Shows the configuration, or puts a policy in force.
pub fn run(connection: &ConnectionOptions, command: &ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Show { policy: false, query } => show(connection, query),
        ConfigCommand::Show { policy: true, query } => show_policy(connection, query),
        ConfigCommand::Apply { policy: Some(policy), .. } => apply_policy(connection, policy),
        ConfigCommand::Policies { name } => list_policies(name.as_deref()),
        // Configuration files configure the services too.
        ConfigCommand::Check { .. } | ConfigCommand::Apply { policy: None, .. } | ConfigCommand::Reference => {
            programs::become_services()
        }
    }
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

/// Warns about queues that the policy names and the cluster does not have: they may be added later, or misspelt.
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
