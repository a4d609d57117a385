//! Shell completion: the shell runs this program at each TAB, which asks the system for jobs, queues and nodes.

use crate::{cli::Cli, grammar::grammar, policies::BUILT_IN};
use clap::{Arg, Command, Parser as _};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _},
    env::Shells,
};
use muster_cli::exit::{CommandResult, Failure};
use muster_client::{Client, ClientError, JobQuery, Moment};
use std::{ffi::OsStr, time::Duration};

/// The variable by which a shell asks. Other programs may set the usual `COMPLETE` for theirs.
const VARIABLE: &str = "MUSTER_COMPLETE";
/// Nobody chooses among more.
const MOST_JOBS: u32 = 200;
/// Nobody who presses TAB waits longer for a gateway that is away.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers a shell that asks for completions, and then ends the process.
pub fn answer_if_asked() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    // Without `HOME` the C library would be asked for the home folder, which a static program may not
    // do. Shells set it.
    if std::env::var_os("HOME").is_some_and(|home| !home.is_empty()) {
        CompleteEnv::with_factory(|| with_candidates(grammar())).var(VARIABLE).complete();
    }
    std::process::exit(0)
}

/// Prints what a shell must run to use this program for completion.
pub fn registration(shell: clap_complete::Shell) -> CommandResult {
    let shells = Shells::builtins();
    let known = shells.completer(&shell.to_string());
    let known = known.ok_or_else(|| Failure::failed(format!("there are no completions for {shell}")))?;
    let mut text = Vec::new();
    known.write_registration(VARIABLE, "muster", "muster", "muster", &mut text)?;
    std::io::Write::write_all(&mut std::io::stdout().lock(), &text)?;
    Ok(0)
}

/// The grammar with candidates for the values of arguments, chosen by their value names.
fn with_candidates(command: Command) -> Command {
    command.mut_args(with_candidates_of).mut_subcommands(with_candidates)
}

fn with_candidates_of(argument: Arg) -> Arg {
    let name = argument.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
    match name.as_deref() {
        Some("ID" | "JOB" | "JOB[_TASK]") => argument.add(ArgValueCandidates::new(|| asked(jobs))),
        Some("STEP") => argument.add(ArgValueCandidates::new(|| asked(steps))),
        Some("QUEUE") => argument.add(ArgValueCandidates::new(|| asked(queues))),
        Some("NODE" | "NODES") => argument.add(ArgValueCandidates::new(|| asked(nodes))),
        Some("LEDGER") => argument.add(ArgValueCandidates::new(|| asked(ledgers))),
        Some("NAME|FILE") => argument.add(ArgValueCompleter::new(policies_and_files)),
        _ => argument,
    }
}

/// The answer of the system; empty if it cannot be reached.
fn asked(ask: fn(&mut Client) -> Result<Vec<CompletionCandidate>, ClientError>) -> Vec<CompletionCandidate> {
    // The options of the line are unknown here; those in the environment are known.
    let connection = Cli::try_parse_from(["muster", "status"]).ok().map(|cli| cli.connection);
    let client = connection.and_then(|connection| connection.client().ok());
    client.and_then(|client| ask(&mut client.with_patience(PATIENCE)).ok()).unwrap_or_default()
}

fn candidate(value: impl ToString, help: String) -> CompletionCandidate {
    CompletionCandidate::new(value.to_string()).help(Some(help.into()))
}

fn jobs(client: &mut Client) -> Result<Vec<CompletionCandidate>, ClientError> {
    let page = client.jobs_page(&JobQuery { limit: Some(MOST_JOBS), ..JobQuery::default() })?;
    Ok(page.jobs.iter().map(|job| candidate(job.id, format!("{}, {}", job.name, job.state.word()))).collect())
}

fn steps(client: &mut Client) -> Result<Vec<CompletionCandidate>, ClientError> {
    let page = client.running_steps(Moment::Now)?;
    Ok(page.steps.iter().map(|step| candidate(format!("{}.{}", step.job, step.step), step.name.clone())).collect())
}

fn queues(client: &mut Client) -> Result<Vec<CompletionCandidate>, ClientError> {
    let page = client.queues(Moment::Now)?;
    let help = |running: u64, queued: u64| format!("{running} running, {queued} queued");
    Ok(page.queues.iter().map(|queue| candidate(&queue.spec.name, help(queue.running, queue.queued))).collect())
}

fn nodes(client: &mut Client) -> Result<Vec<CompletionCandidate>, ClientError> {
    let page = client.nodes(Moment::Now)?;
    Ok(page.nodes.iter().map(|node| candidate(&node.spec.name, node.state.word().to_owned())).collect())
}

fn ledgers(client: &mut Client) -> Result<Vec<CompletionCandidate>, ClientError> {
    let page = client.ledgers()?;
    Ok(page.ledgers.iter().map(|ledger| candidate(&ledger.name, ledger.role.word().to_owned())).collect())
}

fn policies_and_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let policies = BUILT_IN.iter().map(|(name, _)| *name).filter(|name| name.starts_with(&*typed));
    policies.map(CompletionCandidate::new).chain(PathCompleter::file().complete(current)).collect()
}
