//! The verbs of `job` (HPC-C-01).

use super::{change, connection as reach, make, show, wrong};
use muster_cli::{
    connection::ConnectionOptions,
    exit::{CommandResult, Failure},
};
use muster_hpcpack::options::{self, JobCommand, OptionError, Verb};
use muster_schemas::{
    CommandId, JobId,
    command::{JobEnding, JobSelection},
    views::{EndRequest, RequeueRequest},
};

/// Runs a command line of `job`; its first word is the verb.
pub fn run(connection: &ConnectionOptions, words: &[String]) -> CommandResult {
    let Some((verb, arguments)) = words.split_first() else { return Err(Failure::usage(usage())) };
    if ["/?", "/help", "--help", "-h", "help"].iter().any(|help| help.eq_ignore_ascii_case(verb)) {
        println!("{}", usage());
        return Ok(0);
    }
    let verb = Verb::named(verb).ok_or_else(|| {
        wrong(&[OptionError::Usage(format!("`{}` is no verb of job\n{}", muster_cli::table::printable(verb), usage()))])
    })?;
    let command = options::job(verb, arguments).map_err(|errors| wrong(&errors))?;
    if command.others.contains_key("help") {
        println!("job {verb}: its options are\n{}", verb.help());
        return Ok(0);
    }
    let connection = &reach(connection, command.other("scheduler"));
    let id = || command.ids.first().copied().map(JobId::job).ok_or_else(|| Failure::usage("expected a job id"));
    match verb {
        Verb::New => make::new(connection, &command),
        Verb::Add => make::add(connection, id()?, &command),
        Verb::Submit => make::submit(connection, &command),
        Verb::Clone => make::clone(connection, id()?),
        Verb::Modify => change::modify(connection, id()?, &command),
        Verb::View => show::view(connection, id()?, &command),
        Verb::List => show::list(connection, &command),
        Verb::ListTasks => show::list_tasks(connection, id()?, &command),
        Verb::Cancel => end(connection, &command, false),
        Verb::Finish => end(connection, &command, true),
        Verb::Requeue => requeue(connection, &command),
    }
}

fn usage() -> String {
    let verbs: Vec<&str> = Verb::ALL.iter().map(|verb| verb.name()).collect();
    format!("usage: job {} ...; `job VERB /help` lists the options of a verb", verbs.join("|"))
}

fn ids(command: &JobCommand) -> JobSelection {
    JobSelection::Ids(command.ids.iter().copied().map(JobId::job).collect())
}

/// `job cancel` and `job finish` (HPC-C-06).
fn end(connection: &ConnectionOptions, command: &JobCommand, is_finished: bool) -> CommandResult {
    let ending = JobEnding {
        is_finished,
        is_forced: command.is_set("force"),
        is_graceful: command.is_set("graceful"),
        gives_up: false,
        grace_seconds: None,
        message: command.other("message").unwrap_or_default().to_owned(),
    };
    let request = EndRequest { jobs: ids(command), ending };
    connection.client()?.end_jobs(CommandId::new_now(), &request)?;
    Ok(0)
}

fn requeue(connection: &ConnectionOptions, command: &JobCommand) -> CommandResult {
    let request = RequeueRequest { jobs: ids(command), hold: false, delay_seconds: 0 };
    connection.client()?.requeue(CommandId::new_now(), &request)?;
    Ok(0)
}
