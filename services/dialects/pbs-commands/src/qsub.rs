//! `qsub`.

mod interactive;
mod rejection;

use super::{
    ended::{Ended, Failure, print},
    site::{self, Site, variable},
};
use muster_cli::{caller, connection::ConnectionOptions, foreign, stderr_line, verdict::wait_until_decided};
use muster_client::{ClientError, JobQuery};
use muster_names::{User, group_name};
use muster_pbs::{
    script,
    submit::{self, Caller, Program, Reading, Settings, Submission},
};
use muster_schemas::{
    CommandId, JobId,
    views::{JobView, OutcomeView},
};
use nix::unistd::Uid;
use rejection::rejection;
use std::io::Read as _;

/// The greatest script.
const MAX_SCRIPT_BYTES: u64 = 16 << 20;
/// The greatest index of an array.
const ARRAY_LIMIT: u32 = 1_000_001;

/// Runs a command line of `qsub`.
pub fn run(site: &mut Site, connection: &ConnectionOptions, words: &[String]) -> Ended {
    let line = submit::line(words).map_err(|refusal| {
        let usage = if refusal.is_about_usage() { submit::USAGE } else { "" };
        let failure = Failure::from(refusal);
        Failure { text: format!("{}\n{usage}", failure.text).trim_end().to_owned(), ..failure }
    })?;
    let program = program(line.operands.first(), line.rest.clone(), line.has('I'))?;
    let text = match &program {
        Program::Script { text, .. } => Some(text.as_str()),
        Program::Command(_) | Program::Shell => None,
    };
    let defaults = submit::defaults(variable)?;
    let prefix = variable(script::PREFIX_VARIABLE);
    let prefix = script::prefix(line.value('C'), prefix.as_deref());
    let now = site.now();
    let reading = Reading { now: &now, flavour: site.flavour, array_limit: ARRAY_LIMIT };
    let settings = Settings::read(&defaults, text, prefix, &line.options, &reading)?;
    let requests = site.default_requests(settings.queue.as_deref());
    let settings = settings.over(requests)?;
    let process = caller::Caller::this_process(connection).map_err(|failure| Failure::new(failure.to_string()))?;
    let caller = caller_of(process.environment, process.directory, words, settings.group.is_some());
    let rules = site.rules(&settings)?;
    let mut submission = submit::lower(&settings, &program, &caller, &rules, &now)?;
    for (name, value) in process.instance {
        submission.spec.environment.entry(name.to_owned()).or_insert(value);
    }
    let foreign = text.map(|text| foreign::warnings(text, prefix.unwrap_or(script::PREFIX))).unwrap_or_default();
    foreign.iter().for_each(|(line, warning)| stderr_line!("qsub: line {line}: {warning}"));
    submission.warnings.iter().for_each(|warning| stderr_line!("qsub: {warning}"));
    if submission.interactive {
        let words = submit::shell_words(&settings, &program, &caller);
        return interactive::run(site, submission, words);
    }
    send(site, submission)
}

fn send(site: &mut Site, submission: Submission) -> Ended {
    let is_array = submission.spec.array.is_some();
    let answer = site.client.submit(CommandId::new_now(), &[submission.spec])?;
    let job = *answer.jobs.first().ok_or_else(|| Failure::new("the answer names no job"))?;
    if answer.is_judged {
        let view = wait_until_decided(&mut site.client, job)?;
        if let Some(why) = rejection(&view) {
            return Err(Failure { text: format!("{why} {}", site.id_of(job, is_array)), status: 188 });
        }
    }
    if !submission.silent {
        print(&format!("{}\n", site.id_of(job, is_array)));
    }
    if submission.block { Ok(wait(site, job)?) } else { Ok(0) }
}

/// Waits for the end of a job, and returns its exit status; of an array the greatest.
fn wait(site: &mut Site, job: JobId) -> Result<u8, ClientError> {
    let view = site.client.wait_for_job(job)?;
    if view.array.is_none() {
        return Ok(status_of(&view));
    }
    let tasks = site.client.jobs(&JobQuery { ids: vec![job], ..JobQuery::default() })?.jobs;
    Ok(tasks.iter().filter(|task| task.id.index.is_some()).map(status_of).max().unwrap_or(0))
}

fn status_of(view: &JobView) -> u8 {
    view.outcome.as_ref().map_or(1, OutcomeView::shell_code)
}

/// The program to run: a command after `--`, the script with a name, or that of standard input.
fn program(operand: Option<&String>, command: Option<Vec<String>>, is_interactive: bool) -> Result<Program, Failure> {
    if let Some(command) = command.filter(|command| !command.is_empty()) {
        return Ok(Program::Command(command));
    }
    let (bytes, path) = match operand.filter(|name| *name != "-") {
        None if is_interactive => return Ok(Program::Shell),
        None => {
            (read(std::io::stdin().lock()).map_err(|error| Failure::new(format!("standard input: {error}")))?, None)
        }
        Some(path) => {
            let file = std::fs::File::open(path).and_then(read);
            (file.map_err(|error| Failure::new(format!("script file: {path}: {error}")))?, Some(path.clone()))
        }
    };
    Ok(Program::Script { text: script::check(&bytes)?.to_owned(), path })
}

fn read(source: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_SCRIPT_BYTES {
        true => Err(std::io::Error::other("a script has at most 16 MiB")),
        false => Ok(bytes),
    }
}

/// The process that submits. The names of its groups are only looked up if a job asks for one.
fn caller_of(environment: Vec<(String, String)>, directory: String, words: &[String], asks_for_group: bool) -> Caller {
    let user = User::numbered(Uid::effective().as_raw());
    let (home, shell) = user.as_ref().map(|user| (user.home.clone(), user.shell.clone())).unwrap_or_default();
    let groups = user.as_ref().filter(|_| asks_for_group).and_then(|user| user.groups().ok()).unwrap_or_default();
    Caller {
        user: site::user_name(),
        groups: groups.into_iter().filter_map(group_name).collect(),
        home,
        shell,
        directory,
        environment,
        host: site::host(),
        arguments: words.join(" "),
        is_folder: |path| std::path::Path::new(path).is_dir(),
    }
}
