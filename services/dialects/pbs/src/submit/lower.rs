//! Turns the options of a submission into a job of the model.

use super::{
    paths::OutputNames,
    rules::{Caller, Rules},
    settings::{MailPoints, Settings},
    sizing::{self, Size},
};
use crate::{
    NAME,
    attributes::{key, names, resource_key},
    environment::{self, Submitted},
    refusal::Refusal,
    staging::StagedFile,
};
use jiff::Zoned;
use muster_schemas::{
    copies::FileCopies,
    job::{self as model, Component, Holds, JobSpec, Launch, Notification, Occasion, RequeuePolicy, Sink},
    time::Timestamp,
};
use std::collections::BTreeMap;

/// The shell of a script that names none, if that of its owner is unknown.
const DEFAULT_SHELL: &str = "/bin/sh";
/// The mask for new files of a job that names none, as servers of the family have it.
const DEFAULT_UMASK: u32 = 0o077;
/// The name of a job without a script file.
const NAMELESS: &str = "STDIN";

/// What a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A script.
    Script {
        /// Its text.
        text: String,
        /// Its path as given; `None` if it was read from standard input.
        path: Option<String>,
    },
    /// A command with its arguments, after `--`.
    Command(Vec<String>),
    /// Nothing: an interactive job (`-I`) is an allocation in which a shell is started.
    Shell,
}

/// A job to submit, and what its command does afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Submission {
    /// The job.
    pub spec: JobSpec,
    /// Whether the command waits for the job to end, and ends with its status (`-W block=true`).
    pub block: bool,
    /// Whether the command waits for the job to start, and starts a shell in it (`-I`).
    pub interactive: bool,
    /// Whether the command prints no job identifier (`-z`).
    pub silent: bool,
    /// A sentence for each request without effect, to print on standard error.
    pub warnings: Vec<String>,
}

/// Makes the job to submit. `now` is the time of submission.
///
/// # Errors
/// Why the job is refused as a whole.
pub fn lower(
    settings: &Settings,
    program: &Program,
    caller: &Caller,
    rules: &Rules,
    now: &Zoned,
) -> Result<Submission, Refusal> {
    refuse_others(settings, caller, rules)?;
    let size = sizing::size(settings, rules)?;
    let mut warnings = settings.warnings.clone();
    warnings.extend(size.warnings.iter().cloned());
    let names =
        OutputNames { caller, flavour: rules.flavour, server: &rules.server, is_array: settings.array.is_some() };
    let files = names.files(settings);
    warnings.extend(files.warnings.iter().cloned());
    let mut launch = launch(settings, program, caller);
    if !settings.interactive {
        (launch.stdout, launch.stderr) = (files.stdout, files.stderr);
    }
    let submitted = Submitted {
        caller,
        rules,
        variables: &settings.variables,
        all_variables: settings.all_variables,
        is_interactive: settings.interactive,
        queue: settings.queue.as_deref(),
        account: settings.account.as_deref().filter(|_| settings.project.is_some()),
        chunks: size.plan.to_string(),
        limits: if size.limits.is_empty() { None } else { Some(size.limits.to_string()) },
    };
    let environment = environment::of_submission(&submitted, &mut warnings);
    let spec = JobSpec {
        name: settings.name.clone().unwrap_or_else(|| default_name(program)),
        array: settings.array.clone(),
        working_directory: directory(settings, caller),
        environment,
        umask: Some(settings.umask.unwrap_or(DEFAULT_UMASK)),
        notifications: notifications(settings, &caller.user),
        requeue: RequeuePolicy { on_node_lost: settings.rerunnable.unwrap_or(true), ..RequeuePolicy::default() },
        attributes: attributes(settings, &size, caller, rules),
        dialect: Some(NAME.to_owned()),
        copies: copies(settings),
        cancelled_if_never_met: true,
        group: settings.group.clone(),
        components: vec![component(settings, size, launch, now)],
        ..JobSpec::default()
    };
    let Settings { block, interactive, silent, .. } = *settings;
    Ok(Submission { spec, block, interactive, silent, warnings })
}

/// A job belongs to its submitter and to this server: another one is refused, not ignored.
fn refuse_others(settings: &Settings, caller: &Caller, rules: &Rules) -> Result<(), Refusal> {
    if let Some(user) = settings.user.as_ref().filter(|user| **user != caller.user) {
        return Err(Refusal::unsupported(&format!("-u {user}"), "jobs are submitted for their submitter only"));
    }
    if let Some(group) = settings.group.as_ref().filter(|group| !caller.groups.contains(group)) {
        let why = format!("user {} is not in this group", caller.user);
        return Err(Refusal::value("-W group_list", group, why));
    }
    if let Some(server) = settings.server.as_ref().filter(|server| !rules.is_server(server)) {
        let why = format!("jobs are submitted to {} only", rules.server);
        return Err(Refusal::unsupported(&format!("-q @{server}"), why));
    }
    Ok(())
}

fn component(settings: &Settings, size: Size, launch: Launch, now: &Zoned) -> Component {
    let is_ahead = |begin: &Timestamp| begin.0 > now.timestamp().as_microsecond();
    Component {
        queue: settings.queue.clone(),
        account: settings.charged_account().cloned(),
        class: size.class,
        priority: settings.priority,
        begin: settings.begin.filter(is_ahead),
        dependencies: settings.dependencies.clone(),
        holds: Holds { user: settings.hold, ..Holds::default() },
        reservation: size.reservation,
        launch,
        alternatives: vec![size.alternative],
        ..Component::default()
    }
}

/// The shell of a job: that of the submission, else its owner's.
fn shell<'a>(settings: &'a Settings, caller: &'a Caller) -> &'a str {
    let shell = settings.shell.as_deref().or(Some(caller.shell.as_str()).filter(|shell| shell.starts_with('/')));
    shell.unwrap_or(DEFAULT_SHELL)
}

/// The program at the terminal of an interactive job: the command, else a login shell.
pub fn shell_words(settings: &Settings, program: &Program, caller: &Caller) -> Vec<String> {
    match program {
        Program::Command(words) => words.clone(),
        Program::Script { .. } | Program::Shell => vec![shell(settings, caller).to_owned(), "-l".to_owned()],
    }
}

fn launch(settings: &Settings, program: &Program, caller: &Caller) -> Launch {
    let shell = shell(settings, caller);
    let program = match program {
        Program::Shell => model::Program::None,
        _ if settings.interactive => model::Program::None,
        // The family's servers hand the script to the shell by name, so a first line with an interpreter counts.
        Program::Script { text, .. } if text.starts_with("#!") => script(text.clone(), settings.arguments.clone()),
        Program::Script { text, .. } => script(format!("#!{shell}\n{text}"), settings.arguments.clone()),
        Program::Command(words) => script("#!/bin/sh\nexec \"$@\"\n".to_owned(), words.clone()),
    };
    Launch { program, kill_grace_seconds: settings.kill_delay_seconds, ..Launch::default() }
}

fn script(text: String, args: Vec<String>) -> model::Program {
    model::Program::Script { text, args }
}

/// The name of the script's file, else `STDIN`.
fn default_name(program: &Program) -> String {
    let Program::Script { path: Some(path), .. } = program else { return NAMELESS.to_owned() };
    let name = path.rsplit('/').next().unwrap_or_default();
    let printable = |c: char| if c.is_whitespace() || c.is_control() { '_' } else { c };
    let name: String = name.chars().map(printable).take(236).collect();
    if name.is_empty() { NAMELESS.to_owned() } else { name }
}

/// Where the job's processes start: the home folder, unless an option says otherwise.
fn directory(settings: &Settings, caller: &Caller) -> String {
    match &settings.directory {
        Some(path) => caller.absolute(path),
        None if caller.home.starts_with('/') => caller.home.clone(),
        None => caller.directory.clone(),
    }
}

/// Mail is sent if its occasions are named.
pub(super) fn notifications(settings: &Settings, owner: &str) -> Vec<Notification> {
    let Some(MailPoints { abort, begin, end, each_task }) = settings.mail else { return Vec::new() };
    let points = [(begin, Occasion::Started), (end, Occasion::Ended), (abort, Occasion::Failed)];
    let mut on: Vec<Occasion> = points.into_iter().filter(|(is_on, _)| *is_on).map(|(_, point)| point).collect();
    if on.is_empty() {
        return Vec::new();
    }
    on.extend(each_task.then_some(Occasion::EachTask));
    let owner = [owner.to_owned()];
    let to = if settings.mail_to.is_empty() { &owner[..] } else { &settings.mail_to[..] };
    let sink = |address: &String| Sink::Mail(address.clone());
    to.iter().map(|address| Notification { on: on.clone(), sink: sink(address), spares_cancelled: false }).collect()
}

/// The files that the node of the job copies (PBS-G-01).
fn copies(settings: &Settings) -> FileCopies {
    FileCopies {
        before: settings.stagein.iter().map(StagedFile::copy).collect(),
        after: settings.stageout.iter().map(StagedFile::copy).collect(),
    }
}

/// What was asked for, under the names by which it is shown.
fn attributes(settings: &Settings, size: &Size, caller: &Caller, rules: &Rules) -> BTreeMap<String, String> {
    let given = settings.given.iter().map(|(name, text)| (key(name), text.clone()));
    let resources = size.shown.iter().map(|(name, text)| (resource_key(name), text.clone()));
    let of_caller = [
        (names::SUBMIT_ARGUMENTS, &caller.arguments),
        (names::SUBMIT_HOST, &caller.host),
        (names::SERVER, &rules.server),
    ];
    let of_caller = of_caller.into_iter().filter(|(_, text)| !text.is_empty());
    given.chain(resources).chain(of_caller.map(|(name, text)| (key(name), text.clone()))).collect()
}
