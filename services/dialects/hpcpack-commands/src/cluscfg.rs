//! `cluscfg setparams`, `listparams` and `view` (HPC-C-08, C-09).

use super::connection as reach;
use muster_cli::{
    connection::ConnectionOptions,
    exit::{CommandResult, Failure},
    show::print_fields,
    stderr_line,
    table::{Table, left},
    terminal,
};
use muster_client::{Client, Moment};
use muster_hpcpack::{
    core_settings::{acts_for, no_effect_because, to_filters, to_scheduling, with_core},
    options::Takes,
    settings::Settings,
};
use muster_schemas::{CommandId, job::JobState, views::ParametersRequest};

/// Shown while no mode is set.
const NO_MODE: &str = "(not set: the policy decides; jobs with tasks grow, shrink and make way as in Queued)";

const USAGE: &str = "usage: cluscfg setparams NAME=VALUE ... | listparams | view";

/// Runs a command line of `cluscfg`.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> CommandResult {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let known = [("scheduler", Takes::Value), ("help", Takes::Nothing)];
    let Some(command) = super::read(&words, &known, USAGE)? else { return Ok(0) };
    let connection = &reach(connection, command.options.get("scheduler").map(String::as_str));
    let Some((verb, arguments)) = command.words.split_first() else { return Err(Failure::usage(USAGE)) };
    match (verb.to_lowercase().as_str(), arguments) {
        ("setparams", [_, ..]) => set(connection, arguments),
        ("listparams", []) => list(connection),
        ("view", []) => view(connection),
        _ => Err(Failure::usage(USAGE)),
    }
}

/// The settings in force.
fn current(client: &mut Client) -> Result<Settings, Failure> {
    Ok(with_core(&client.filter_settings(Moment::Now)?, &client.scheduling(Moment::Now)?))
}

/// Sets all that are named, or none.
fn set(connection: &ConnectionOptions, assignments: &[&str]) -> CommandResult {
    let mut client = connection.client()?;
    let (filters, scheduling) = (client.filter_settings(Moment::Now)?, client.scheduling(Moment::Now)?);
    let before = with_core(&filters, &scheduling);
    let after = before.with(assignments).map_err(|bad| {
        let lines: Vec<String> = bad.iter().map(ToString::to_string).collect();
        let told = format!("nothing was changed:\n{}", lines.join("\n"));
        if bad.iter().any(|bad| bad.is_usage) { Failure::usage(told) } else { Failure::failed(told) }
    })?;
    for (before, after) in [
        (&before.submission_filter_program, &after.submission_filter_program),
        (&before.activation_filter_program, &after.activation_filter_program),
    ] {
        after.iter().filter(|_| before != after).for_each(|program| super::warn_if_missing(program));
    }
    let names: Vec<&str> =
        assignments.iter().map(|assignment| assignment.split_once('=').map_or("", |(name, _)| name)).collect();
    let parameters = ParametersRequest {
        filters: to_filters(&after, &filters),
        scheduling: to_scheduling(&after, &names, &scheduling),
    };
    client.set_parameters(CommandId::new_now(), &parameters)?;
    for name in names {
        if let Some(why) = no_effect_because(name, &parameters.scheduling) {
            stderr_line!("warning: {name} has no effect: {why}");
        }
    }
    Ok(0)
}

fn list(connection: &ConnectionOptions) -> CommandResult {
    let mut client = connection.client()?;
    let settings = current(&mut client)?;
    let scheduling = client.scheduling(Moment::Now)?;
    let mut table = Table::new([left("NAME"), left("VALUE"), left("DEFAULT"), left("RANGE")]);
    for row in settings.list() {
        let value = match (no_effect_because(row.name, &scheduling), acts_for(row.name, &scheduling)) {
            _ if row.name == "SchedulingMode" && scheduling.mode.is_none() => NO_MODE.to_owned(),
            (Some(why), _) => format!("{} (no effect: {why})", row.value),
            (None, Some(whom)) => format!("{} ({whom})", row.value),
            (None, None) => row.value,
        };
        table.push([row.name.to_owned(), value, row.default, row.range.to_owned()].map(Into::into));
    }
    terminal::print_table(&table)?;
    Ok(0)
}

fn view(connection: &ConnectionOptions) -> CommandResult {
    let mut client = connection.client()?;
    let info = client.info(Moment::Now)?;
    let count = |number: u64| Some(number.to_string());
    let nodes = client.nodes(Moment::Now)?.nodes;
    let cores: u64 = nodes.iter().map(|node| u64::from(node.spec.cores)).sum();
    let used: u64 = nodes.iter().map(|node| u64::from(node.cores_used)).sum();
    let jobs = |state| info.jobs.get(&state).copied().unwrap_or(0);
    print_fields(&[
        ("Cluster Name", Some(info.cluster.clone())),
        ("Cluster Version", Some(info.version.clone())),
        ("Total Nodes", count(nodes.len() as u64)),
        ("Total Cores", count(cores)),
        ("Cores in Use", count(used)),
        ("Queued Jobs", count(jobs(JobState::Queued) + jobs(JobState::Held))),
        ("Running Jobs", count(jobs(JobState::Launching) + jobs(JobState::Running) + jobs(JobState::Suspended))),
        ("Finished Jobs", count(jobs(JobState::Finished))),
    ])?;
    Ok(0)
}
