//! Turns a submission of OAR into jobs of the model.

use super::{cluster::Cluster, demand};
use muster_oar::{
    NAME,
    dialect::{self, INDEX, JOB_NAME, NAMELESS, PROJECT},
    options::{
        anterior::{Anterior, Policy},
        array,
        getopt::{Name, Words},
        notify::{self, Tag},
        output,
        submission::{Array, Submission},
        types::{Kind, Nodes},
    },
    predicate::Predicate,
    refusal::{Code, Refusal},
    request::demand::Alternative as Shape,
};
use muster_schemas::{
    JobId, Timestamp, domains,
    job::{
        Checkpoint, Component, Dependencies, Dependency, DependencyKind, Holds, JobSpec, JobType, Launch, Notification,
        Occasion, Program, RequeuePolicy, Sink,
    },
    resources::{Alternative, Count, Level, LevelCount, Request},
};
use std::collections::BTreeMap;

/// The exit code after which an idempotent job runs again (OAR-T-30).
const AGAIN: i32 = 99;
/// After runs that lasted at most this long, in seconds, that code is one like any other (OAR-T-31).
const LEAST_RUN_SECONDS: u32 = 60;
/// So often a job runs again after nodes have kept it from starting (OAR-J-20).
const FAILED_PREPARATIONS: u32 = 3;
/// The shell of a user without one.
const DEFAULT_SHELL: &str = "/bin/sh";
/// The shells that take `-l`.
const LOGIN_SHELLS: [&str; 6] = ["bash", "dash", "ksh", "sh", "zsh", "ash"];
/// Variables that a job gets from its submitter. The login shell that runs its command may set others.
const INHERITED: [&str; 8] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER"];
/// The class whose jobs make way (OAR-T-20).
pub const BESTEFFORT_CLASS: &str = "besteffort";
/// The priority of best-effort jobs: others of their queue go first, also those that were submitted later (OAR-G-03). Otherwise
/// one that waits again would be ahead of the job that it is to make way for, and keep its place.
const BESTEFFORT_PRIORITY: i64 = -1_000_000;

/// The keys of attributes.
pub mod keys {
    /// The index of a job in its array.
    pub const INDEX: &str = "oar.array_index";
    /// The command.
    pub const COMMAND: &str = "oar.command";
    /// The filter of `-p`.
    pub const PROPERTIES: &str = "oar.properties";
    /// The values of all `-t`, one in a line.
    pub const TYPES: &str = "oar.types";
    /// The values of all `-l`, one in a line.
    pub const REQUESTS: &str = "oar.requests";
    /// The command line of the submission.
    pub const REQUEST: &str = "oar.initial_request";
    /// Whether the job is a shell.
    pub const INTERACTIVE: &str = "oar.interactive";
    /// The start of a reservation, in seconds since the epoch.
    pub const RESERVATION: &str = "oar.reservation";
    /// The job that it takes the place of.
    pub const REPLACES: &str = "oar.resubmit_job_id";
}

/// The user who submits, and the place of the submission.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The login shell; may be empty.
    pub shell: String,
    /// The working directory.
    pub directory: String,
    /// The environment.
    pub environment: Vec<(String, String)>,
    /// The file mode creation mask.
    pub umask: u32,
}

/// What a submission is made of, in addition to its settings.
#[derive(Debug)]
pub struct Context<'c> {
    /// The cluster.
    pub cluster: &'c Cluster,
    /// The filter of the site for its resources.
    pub site_filter: Predicate,
    /// The user who submits.
    pub caller: &'c Caller,
    /// Whether jobs of a class make way for others.
    pub has_besteffort_class: bool,
    /// The command line for people.
    pub request: String,
    /// The arguments of each job, of an array with a file of parameters.
    pub parameters: Vec<String>,
    /// The time, in seconds since the epoch.
    pub now: i64,
    /// Which end of a job lets those start that depend on it, unless the submission says so.
    pub after: Policy,
    /// The host that the queue of the job names for its type; `None` if it names none.
    pub front: Option<Front>,
    /// The licences of the cluster, with their total numbers.
    pub licences: BTreeMap<String, u32>,
}

/// The host on which commands of the type `deploy` or `cosystem` run (`DEPLOY_HOSTNAME`, `COSYSTEM_HOSTNAME`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Its name.
    pub host: String,
    /// The queue that it serves; `None` is that of the job.
    pub queue: Option<String>,
}

/// The jobs to submit together. Those of an array get consecutive ids.
///
/// # Errors
/// Why the submission is refused as a whole.
pub fn lower(
    submission: &Submission,
    context: &Context<'_>,
    warnings: &mut Vec<String>,
) -> Result<Vec<JobSpec>, Refusal> {
    refuse_unsupported(submission, context, warnings)?;
    let front = front(submission, context, warnings)?;
    let mut held = component(submission, context)?;
    let components = match front {
        Some(front) => vec![at_front(&mut held, front), held],
        None => vec![held],
    };
    let mut environment = environment(submission, context.caller);
    environment.extend(front.map(|_| (dialect::FRONT.to_owned(), "1".to_owned())));
    let first = JobSpec {
        name: if submission.name.is_empty() { NAMELESS.to_owned() } else { submission.name.clone() },
        working_directory: directory(submission, context.caller),
        environment,
        umask: Some(context.caller.umask),
        notifications: submission
            .notify
            .as_ref()
            .map(|one| notifications(one, &submission.name, warnings))
            .unwrap_or_default(),
        checkpoint: checkpoint(submission),
        requeue: requeue(submission),
        types: types(submission),
        kinds: submission.types.iter().map(|one| one.name.clone()).collect(),
        exceeds_quotas: submission.is(|kind| *kind == Kind::NoQuotas),
        attributes: attributes(submission, context),
        dialect: Some(NAME.to_owned()),
        components,
        ..JobSpec::default()
    };
    let (command, shell) = (submission.command.clone().unwrap_or_default(), context.caller.shell.as_str());
    let commands: Vec<String> = match submission.array {
        Array::Single => vec![command],
        Array::Equal(size) => vec![command; size],
        Array::Parameters(_) => {
            context.parameters.iter().map(|arguments| array::command(&command, arguments)).collect()
        }
    };
    Ok((1..).zip(commands).map(|(index, command)| one(&first, index, command, shell)).collect())
}

/// When a passive job runs again by itself: if nodes have kept it from starting, unless it leaves its nodes alone (OAR-J-20), and
/// after this exit code of an idempotent job that has run for long enough (OAR-T-30, OAR-T-31).
fn requeue(submission: &Submission) -> RequeuePolicy {
    if submission.is_interactive || submission.reservation.is_some() {
        return RequeuePolicy::default();
    }
    let leaves_nodes_alone = submission.is(|kind| matches!(kind, Kind::Deploy(_) | Kind::Cosystem(_)));
    let unbegun_runs = if leaves_nodes_alone { 0 } else { FAILED_PREPARATIONS };
    if !submission.is(|kind| *kind == Kind::Idempotent) {
        return RequeuePolicy { unbegun_runs, ..RequeuePolicy::default() };
    }
    RequeuePolicy {
        unbegun_runs,
        on_exit_codes: vec![AGAIN],
        exit_codes_after_seconds: LEAST_RUN_SECONDS,
        // However often it saves its state and continues.
        max_runs: u32::MAX,
        ..RequeuePolicy::default()
    }
}

/// The job of an index.
fn one(first: &JobSpec, index: usize, command: String, shell: &str) -> JobSpec {
    let mut job = first.clone();
    if !command.is_empty() {
        job.attributes.insert(keys::COMMAND.to_owned(), command.clone());
        if let Some(component) = job.components.first_mut() {
            component.launch.program = program(&command, shell);
        }
    }
    if index > 1 {
        job.environment.insert(INDEX.to_owned(), index.to_string());
        job.attributes.insert(keys::INDEX.to_owned(), index.to_string());
    }
    job
}

/// The user's login shell runs the command (OAR-J-05).
fn program(command: &str, shell: &str) -> Program {
    let words = shell_words(shell).into_iter().chain(["-c".to_owned(), command.to_owned()]);
    Program::Script { text: "#!/bin/sh\nexec \"$@\"\n".to_owned(), args: words.collect() }
}

/// A login shell.
pub fn shell_words(shell: &str) -> Vec<String> {
    let shell = if shell.starts_with('/') { shell } else { DEFAULT_SHELL };
    let takes_login = shell.rsplit('/').next().is_some_and(|name| LOGIN_SHELLS.contains(&name));
    [shell.to_owned()].into_iter().chain(takes_login.then(|| "-l".to_owned())).collect()
}

/// What the planner and the nodes do not do is refused by name; what only has no effect is told.
fn refuse_unsupported(
    submission: &Submission,
    context: &Context<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), Refusal> {
    for one in &submission.types {
        let why = match &one.kind {
            Kind::Postpone(_) | Kind::Deadline(_) | Kind::Expire(_) if submission.reservation.is_some() => {
                "a reservation has a start and an end of its own"
            }
            _ if sharing(&one.kind).is_some()
                && submission.types.iter().filter_map(|one| sharing(&one.kind)).count() > 1 =>
            {
                "a job has one of timesharing, placeholder and allowed"
            }
            kind if sharing(kind).is_some() => continue,
            Kind::DesktopComputing
            | Kind::Idempotent
            | Kind::Noop(Nodes::Alive)
            | Kind::Deploy(Nodes::Alive)
            | Kind::Cosystem(Nodes::Alive)
            | Kind::Postpone(_)
            | Kind::Deadline(_)
            | Kind::Container(_)
            | Kind::Inner(_)
            | Kind::NoQuotas
            | Kind::Site => {
                continue;
            }
            Kind::BestEffort if context.has_besteffort_class => continue,
            Kind::BestEffort => {
                "it needs a service class 'besteffort' that another class preempts; an operator makes it: `sacctmgr add qos \
                 besteffort`, `sacctmgr add qos normal preempt=besteffort`"
            }
            Kind::Expire(_) if walltime(submission).is_some() => continue,
            Kind::Expire(_) => "the shapes of the job have different walltimes; give deadline=",
            Kind::Token(name, _) if context.licences.contains_key(name) => continue,
            Kind::Token(..) => "a token is a licence of the cluster, and there is none of this name",
            kind if is_standby(kind) && context.front.is_some() => continue,
            Kind::Deploy(Nodes::Standby) | Kind::Cosystem(Nodes::Standby) => {
                "its command needs a host apart from nodes that sleep, and the queue names none"
            }
            Kind::Noop(Nodes::Standby) => "nodes that sleep are woken for the job that gets them",
            Kind::Permissive => "jobs are planned on nodes that take jobs",
            _ => "jobs of this type are not planned here",
        };
        return Err(Refusal::option(Code::Rule, &format!("-t {}", one.text), format!("is not supported: {why}")));
    }
    if submission.reservation.is_some() && (submission.is_held || !submission.dependencies.is_empty()) {
        return Err(Refusal::option(
            Code::Reservation,
            "-r",
            "goes neither with --hold nor with -a: nobody could promise the start",
        ));
    }
    let is_pulled = submission.is(|kind| *kind == Kind::DesktopComputing);
    if submission.stage_in.is_some() && !is_pulled {
        return Err(Refusal::option(Code::Usage, "--stagein", "is for jobs of the type desktop_computing"));
    }
    if submission.keys.is_some() {
        warnings.push("keys have no effect here: nodes of a job are reached by muster's own commands".to_owned());
    }
    Ok(())
}

/// Whether a job leaves nodes asleep: its command runs elsewhere (OAR-T-71).
fn is_standby(kind: &Kind) -> bool {
    matches!(kind, Kind::Deploy(Nodes::Standby) | Kind::Cosystem(Nodes::Standby))
}

/// The host on which the command runs apart from its nodes (OAR-T-50, OAR-T-60): one that is a node of the cluster. What holds
/// its resources in a special way has them all in one piece, and runs on its first node.
fn front<'c>(
    submission: &Submission,
    context: &'c Context<'_>,
    warnings: &mut Vec<String>,
) -> Result<Option<&'c Front>, Refusal> {
    let Some(front) = &context.front else { return Ok(None) };
    let is_node = context.cluster.nodes.iter().any(|node| node.name == front.host);
    let is_special = |kind: &Kind| sharing(kind).is_some() || matches!(kind, Kind::Container(_) | Kind::Inner(_));
    let why = match () {
        () if !is_node => format!("{} is no node of the cluster", front.host),
        () if submission.reservation.is_some() => "a reservation holds nothing beside its nodes".to_owned(),
        () if submission.is(is_special) => "a job that shares its resources holds nothing beside them".to_owned(),
        () if submission.array != Array::Single => "the jobs of an array hold nothing beside their nodes".to_owned(),
        () if walltime(submission).is_none() => {
            let text = format!("its shapes have different walltimes, and its command runs on {}", front.host);
            return Err(Refusal::option(Code::Rule, "-l", text));
        }
        () => return Ok(Some(front)),
    };
    if submission.is(is_standby) {
        let text = format!("is not supported: its command needs a host apart from nodes that sleep, and {why}");
        return Err(Refusal::option(Code::Rule, "-t standby", text));
    }
    warnings.push(format!("the command runs on the first node of the job: {why}"));
    Ok(None)
}

/// The part of a job that runs its command, with one core of the front host; the other part only holds nodes from now on.
fn at_front(held: &mut Component, front: &Front) -> Component {
    let walltime_seconds = held.alternatives.first().and_then(|shape| shape.walltime_seconds);
    let core = LevelCount { level: Level::Core, count: Count::exactly(1) };
    let request = Request { path: vec![core], nodes: vec![front.host.clone()], ..Request::default() };
    let alternative = Alternative { requests: vec![request], walltime_seconds, ..Alternative::default() };
    let held_alone = Component {
        queue: held.queue.clone(),
        account: held.account.clone(),
        class: held.class.clone(),
        priority: held.priority,
        alternatives: std::mem::take(&mut held.alternatives),
        ..Component::default()
    };
    let queue = front.queue.clone().or_else(|| held.queue.clone());
    let whole = std::mem::replace(held, held_alone);
    Component { queue, alternatives: vec![alternative], ..whole }
}

fn component(submission: &Submission, context: &Context<'_>) -> Result<Component, Refusal> {
    let from = |seconds: i64| Timestamp(seconds.saturating_mul(1_000_000));
    let fixed = submission.reservation.map(|times| times.start);
    let (mut begin, mut deadline) = (None, None);
    for one in &submission.types {
        match one.kind {
            Kind::Postpone(start) => begin = Some(start),
            Kind::Deadline(end) => deadline = Some(deadline.map_or(end, |known: i64| known.min(end))),
            // A job that starts by then ends by the end of its walltime after it.
            Kind::Expire(start) => {
                let end = start.saturating_add(walltime(submission).unwrap_or(0));
                deadline = Some(deadline.map_or(end, |known| known.min(end)));
            }
            _ => {}
        }
    }
    let after = |one: &Anterior| Dependency {
        kind: kind(one.policy.unwrap_or(context.after)),
        job: Some(JobId::job(one.job)),
        delay_seconds: 0,
    };
    let is_besteffort = submission.is(|kind| *kind == Kind::BestEffort);
    Ok(Component {
        queue: submission.queue.clone(),
        account: Some(submission.project.clone()).filter(|project| !project.is_empty()),
        class: is_besteffort.then(|| BESTEFFORT_CLASS.to_owned()),
        priority: is_besteffort.then_some(BESTEFFORT_PRIORITY),
        begin: fixed.or_else(|| begin.filter(|begin| *begin > context.now)).map(from),
        deadline: deadline.map(from),
        dependencies: Dependencies { all_of: submission.dependencies.iter().map(|one| vec![after(one)]).collect() },
        holds: Holds { user: submission.is_held, ..Holds::default() },
        launch: launch(submission),
        alternatives: alternatives(submission, context)?,
        ..Component::default()
    })
}

const fn kind(policy: Policy) -> DependencyKind {
    match policy {
        Policy::Strict => DependencyKind::Succeeded,
        Policy::Always => DependencyKind::Ended,
        Policy::ErrorPasses => DependencyKind::NotFailed,
    }
}

/// The walltime of all shapes, if they have the same.
fn walltime(submission: &Submission) -> Option<i64> {
    let mut walltimes = submission.alternatives.iter().map(|shape| shape.walltime);
    let first = walltimes.next()?;
    walltimes.all(|other| other == first).then_some(first)
}

/// The shapes that the cluster can serve at all, ignoring jobs and states; others are skipped (OAR-R-15, OAR-G-08).
fn alternatives(submission: &Submission, context: &Context<'_>) -> Result<Vec<Alternative>, Refusal> {
    use muster_oar::{matching::Forest, order::Order};
    let table = &context.cluster.table;
    let serve = |shape: &Shape| {
        let forest = Forest::new(&shape.groups, table, &Order::default(), &submission.filter, &context.site_filter);
        let lack = forest.find(&|_| true).err();
        lack.map_or(Ok(()), |lack| Err(Refusal::option(Code::Resources, "-l", format!("not enough resources: {lack}"))))
    };
    let shares = submission.is(|kind| sharing(kind).is_some());
    let mut kept = Vec::new();
    let mut first_lack = None;
    // Only the first shape of a reservation is looked at (OAR-G-11).
    let looked_at = if submission.reservation.is_some() { 1 } else { usize::MAX };
    for shape in submission.alternatives.iter().take(looked_at) {
        let filters = (&submission.filter, &context.site_filter);
        let lowered = demand::alternative(shape, filters, shares, context.cluster)
            .and_then(|lowered| serve(shape).map(|()| lowered));
        match lowered {
            Ok(shape) => kept.push(shape),
            Err(refusal) if refusal.code == Code::Resources && !refusal.message.contains("not supported") => {
                first_lack.get_or_insert(refusal);
            }
            Err(refusal) => return Err(refusal),
        }
    }
    let tokens = submission.types.iter().filter_map(|one| match &one.kind {
        Kind::Token(name, count) => Some((name.clone(), *count)),
        _ => None,
    });
    let licences: BTreeMap<String, u32> = tokens.collect();
    kept.iter_mut().for_each(|shape| shape.licences.clone_from(&licences));
    match (kept.is_empty(), first_lack) {
        (true, Some(lack)) => Err(lack),
        _ => Ok(kept),
    }
}

fn launch(submission: &Submission) -> Launch {
    let mut launch = Launch { append_output: true, ..Launch::default() };
    if submission.command.is_some() {
        launch.stdout = Some(file(output::Stream::Output, submission.stdout.as_deref(), &submission.name));
        launch.stderr = Some(file(output::Stream::Errors, submission.stderr.as_deref(), &submission.name));
    }
    launch
}

/// The pattern for a file: the id of the job is known later (OAR-J-16).
fn file(stream: output::Stream, own: Option<&str>, name: &str) -> String {
    const ID: &str = "\u{1}";
    let name = name.replace('/', "_");
    let filled = match own {
        Some(own) => output::filled(&own.replace("%jobid%", ID), 0, &name),
        None if name.is_empty() => default_name(stream, ID),
        None => default_name(stream, &format!("{name}.{ID}")),
    };
    filled.replace('%', "%%").replace(ID, "%J")
}

fn default_name(stream: output::Stream, middle: &str) -> String {
    let word = if stream == output::Stream::Output { "stdout" } else { "stderr" };
    format!("OAR.{middle}.{word}")
}

fn directory(submission: &Submission, caller: &Caller) -> String {
    match submission.directory.as_deref() {
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("{}/{path}", caller.directory.trim_end_matches('/')),
        None => caller.directory.clone(),
    }
}

fn environment(submission: &Submission, caller: &Caller) -> BTreeMap<String, String> {
    let inherited = caller.environment.iter().filter(|(name, _)| INHERITED.contains(&name.as_str())).cloned();
    let mut environment: BTreeMap<String, String> = inherited.collect();
    for (name, value) in [(JOB_NAME, &submission.name), (PROJECT, &submission.project)] {
        if !value.is_empty() {
            environment.insert(name.to_owned(), value.clone());
        }
    }
    environment
}

fn checkpoint(submission: &Submission) -> Option<Checkpoint> {
    let seconds_before_end = u32::try_from(submission.checkpoint).ok().filter(|seconds| *seconds > 0)?;
    Some(Checkpoint { signal: u8::try_from(submission.signal).ok()?, seconds_before_end })
}

/// With whom a job shares its resources (OAR-T-40, OAR-T-80).
fn sharing(kind: &Kind) -> Option<JobType> {
    match kind {
        Kind::TimeSharing(form) => Some(JobType::Timesharing { same_user: form.by_user, same_name: form.by_name }),
        Kind::Placeholder(label) => Some(JobType::Placeholder(label.clone())),
        Kind::Allowed(label) => Some(JobType::Allowed(label.clone())),
        _ => None,
    }
}

fn types(submission: &Submission) -> Vec<JobType> {
    let requeue = submission.is(|kind| *kind == Kind::Idempotent);
    let kind = |one: &muster_oar::options::types::Type| match &one.kind {
        Kind::BestEffort => Some(JobType::BestEffort { requeue }),
        Kind::Noop(_) => Some(JobType::Noop),
        Kind::Deploy(_) | Kind::Cosystem(_) => Some(JobType::HandsOff),
        Kind::Container(name) => Some(domains::opening(name.as_deref())),
        Kind::Inner(container) => Some(domains::entering(container)),
        _ => sharing(&one.kind),
    };
    let fixed = submission.reservation.map(|_| JobType::FixedStart);
    let asleep = submission.is(is_standby).then_some(JobType::LeavesAsleep);
    submission.types.iter().filter_map(kind).chain(asleep).chain(fixed).chain([JobType::DescribesNodes]).collect()
}

fn attributes(submission: &Submission, context: &Context<'_>) -> BTreeMap<String, String> {
    let lines = |texts: Vec<String>| texts.join("\n");
    let all = [
        (
            keys::PROPERTIES,
            if submission.filter == Predicate::ALWAYS { String::new() } else { submission.filter.to_string() },
        ),
        (keys::TYPES, lines(submission.types.iter().map(|one| one.text.clone()).collect())),
        (keys::REQUESTS, lines(submission.alternatives.iter().map(ToString::to_string).collect())),
        (keys::REQUEST, context.request.clone()),
        (keys::INTERACTIVE, if submission.is_interactive { "1".to_owned() } else { String::new() }),
        (keys::RESERVATION, submission.reservation.map(|times| times.asked.to_string()).unwrap_or_default()),
    ];
    let given = all.into_iter().filter(|(_, text)| !text.is_empty());
    given.map(|(key, text)| (key.to_owned(), text)).collect()
}

/// The command line of a submission for people. A private key is left out (OAR-X-10).
pub fn request_of(words: &Words) -> String {
    let option = |given: &muster_oar::options::getopt::Given| match given.name {
        Name::ImportJobKeyInline => format!("{}=...", given.name.long()),
        name if given.value.is_empty() => name.long(),
        name => format!("{} {}", name.long(), given.value),
    };
    let words: Vec<String> = words.options.iter().map(option).chain(words.operands.iter().cloned()).collect();
    words.join(" ")
}

/// Mails and programs, with the occasions for their tags (OAR-N-01, OAR-N-04).
fn notifications(wanted: &notify::Notification, name: &str, warnings: &mut Vec<String>) -> Vec<Notification> {
    let has = |tag: Tag| wanted.tags.contains(&tag);
    let mut on = vec![Occasion::EachTask];
    for (is_on, occasion) in [
        (has(Tag::Running), Occasion::Started),
        (has(Tag::End) || has(Tag::Error), Occasion::Ended),
        (has(Tag::Suspended) || has(Tag::Resuming), Occasion::Suspended),
    ] {
        on.extend(is_on.then_some(occasion));
    }
    // A notification of its own: it is told of the wish in addition to the end.
    let info = has(Tag::Info).then(|| vec![Occasion::EachTask, Occasion::EndAsked]);
    let occasions: Vec<Vec<Occasion>> = Some(on).filter(|on| on.len() > 1).into_iter().chain(info).collect();
    let each = |sink: Sink| {
        let one = |on: &Vec<Occasion>| Notification { on: on.clone(), sink: sink.clone(), spares_cancelled: false };
        occasions.iter().map(one).collect::<Vec<_>>()
    };
    match &wanted.sink {
        notify::Sink::Mail(addresses) => {
            if has(Tag::End) != has(Tag::Error) || has(Tag::Suspended) != has(Tag::Resuming) {
                warnings.push("mails about END come with those about ERROR, and SUSPENDED with RESUMING".to_owned());
            }
            addresses.iter().flat_map(|address| each(Sink::Mail(address.clone()))).collect()
        }
        notify::Sink::Exec { path, arguments } => each(Sink::Exec(line(path, arguments, name, wanted))),
    }
}

/// The line of a shell that calls a program with the words of OAR (OAR-N-03), for the tags that are wanted.
fn line(path: &str, arguments: &[String], name: &str, wanted: &notify::Notification) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let own: String = arguments.iter().map(|argument| format!(" {}", quoted(argument))).collect();
    let tags: Vec<&str> = wanted.tags.iter().map(|tag| tag.word()).collect();
    format!(
        "case \"$MUSTER_EVENT\" in started) t=RUNNING;; completed|failed|declared_finished) t=END;; suspend*) \
         t=SUSPENDED;; resum*|continu*) t=RESUMING;; \
         end_asked) t=INFO;; *) t=ERROR;; esac\ncase \"$t\" in {}) exec {}{own} \
         \"$MUSTER_JOB_ID\" {} \"$t\" \"${{MUSTER_REASON:-$MUSTER_EVENT}}\";; esac\n",
        tags.join("|"),
        quoted(path),
        quoted(name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::fixture;
    use jiff::tz::TimeZone;
    use muster_oar::{
        options::{getopt, submission, types::Reading},
        request::site::Site,
    };

    fn lowered(line: &[&str], has_besteffort_class: bool) -> Result<(Vec<JobSpec>, Vec<String>), Refusal> {
        lowered_with(line, has_besteffort_class, None)
    }

    /// The jobs without what all of them have.
    fn lowered_with(
        line: &[&str],
        has_besteffort_class: bool,
        front: Option<Front>,
    ) -> Result<(Vec<JobSpec>, Vec<String>), Refusal> {
        let cluster = fixture();
        let words = getopt::read(line)?;
        let reading = Reading { now: 1_000_000, zone: &TimeZone::UTC, site_types: &[] };
        let submission = submission::read(&words, &Site::of(&cluster.table), reading)?;
        let caller = Caller {
            shell: "/bin/bash".into(),
            directory: "/home/ann".into(),
            environment: vec![("PATH".into(), "/bin".into()), ("SECRET".into(), "x".into())],
            umask: 0o22,
        };
        let context = Context {
            cluster: &cluster,
            site_filter: Predicate::ALWAYS,
            caller: &caller,
            has_besteffort_class,
            request: request_of(&words),
            parameters: vec!["a b".into(), String::new()],
            now: 1_000_000,
            after: Policy::Strict,
            front,
            licences: [("matlab".to_owned(), 3)].into(),
        };
        let mut warnings = Vec::new();
        let mut jobs = lower(&submission, &context, &mut warnings)?;
        for job in &mut jobs {
            assert_eq!(job.types.pop(), Some(JobType::DescribesNodes));
        }
        Ok((jobs, warnings))
    }

    fn job(line: &[&str]) -> JobSpec {
        lowered(line, true).expect("it is accepted").0.remove(0)
    }

    /// OAR-J-05, OAR-J-16, OAR-S-30, OAR-D-01, OAR-S-01, OAR-T-30, OAR-T-31
    #[test]
    fn options_become_parts_of_the_job() {
        let spec = job(&[
            "-n",
            "my run",
            "-l",
            "nodes=2,walltime=1",
            "-l",
            "core=3",
            "-a",
            "5",
            "--checkpoint",
            "60",
            "--project",
            "bio",
            "--hold",
            "-t",
            "idempotent",
            "-O",
            "100%.%jobid%.%jobname%",
            "./run",
            "x",
        ]);
        let part = &spec.components[0];
        assert_eq!(
            (part.launch.stdout.as_deref(), part.launch.stderr.as_deref()),
            (Some("100%%.%J.my run"), Some("OAR.my run.%J.stderr"))
        );
        assert!(part.launch.append_output && part.holds.user);
        assert_eq!(part.account.as_deref(), Some("bio"));
        assert_eq!(part.dependencies.all_of[0][0].kind, DependencyKind::Succeeded);
        assert_eq!((spec.kinds, spec.exceeds_quotas), (vec!["idempotent".to_owned()], false));
        assert_eq!(
            part.alternatives.iter().map(|one| one.walltime_seconds).collect::<Vec<_>>(),
            [Some(3600), Some(7200)]
        );
        assert_eq!(spec.checkpoint, Some(Checkpoint { signal: 12, seconds_before_end: 60 }));
        assert_eq!((&spec.requeue.on_exit_codes[..], spec.requeue.exit_codes_after_seconds), (&[99][..], 60));
        assert_eq!((spec.requeue.unbegun_runs, spec.requeue.on_node_lost), (3, false));
        let Program::Script { args, .. } = &part.launch.program else { panic!("it has a script") };
        assert_eq!(args[..], ["/bin/bash", "-l", "-c", "./run x"]);
        assert_eq!(spec.environment.get("PATH").map(String::as_str), Some("/bin"));
        assert!(!spec.environment.contains_key("SECRET"), "only what a login would have too");
        assert_eq!(spec.dialect.as_deref(), Some("oar"));
        let plain = job(&["true"]);
        assert_eq!(plain.components[0].launch.stdout.as_deref(), Some("OAR.%J.stdout"));
    }

    /// OAR-D-02, OAR-D-03, OAR-D-04: each dependency says which end counts, else the queue does.
    #[test]
    fn dependencies_say_which_end_counts() {
        let line = ["-a", "5", "-a", "6:strict", "-a", "7:always", "-a", "8:error-passes", "true"];
        let spec = job(&line);
        let kinds = spec.components[0].dependencies.all_of.iter().map(|group| group[0].kind).collect::<Vec<_>>();
        use DependencyKind::{Ended, NotFailed, Succeeded};
        assert_eq!(kinds, [Succeeded, Succeeded, Ended, NotFailed]);
    }

    /// OAR-C-06
    #[test]
    fn arrays_are_separate_jobs() {
        let (jobs, _) = lowered(&["--array", "3", "true"], false).expect("it is accepted");
        let index = |job: &JobSpec| job.environment.get(INDEX).cloned();
        assert_eq!(jobs.iter().map(index).collect::<Vec<_>>(), [None, Some("2".into()), Some("3".into())]);
        let (jobs, _) = lowered(&["--array-param-file", "f", "./run"], false).expect("it is accepted");
        let command = |job: &JobSpec| job.attributes[keys::COMMAND].clone();
        assert_eq!(jobs.iter().map(command).collect::<Vec<_>>(), ["./run a b", "./run"]);
    }

    /// OAR-T-01, OAR-T-20, OAR-T-40, OAR-T-80, OAR-G-17: types that jobs cannot have here are refused by name.
    #[test]
    fn types_are_honoured_or_refused_by_name() {
        for kind in ["deploy=standby", "cosystem=standby", "noop=standby", "token:abaqus=1", "state=permissive"] {
            let refusal = lowered(&["-t", kind, "true"], true).expect_err("it is refused");
            assert_eq!(refusal.code, Code::Rule);
            assert!(refusal.to_string().starts_with(&format!("-t {kind}: is not supported: ")), "{refusal}");
        }
        let refusal = lowered(&["-t", "besteffort", "true"], false).expect_err("no class makes way");
        assert!(refusal.to_string().contains("needs a service class 'besteffort'"), "{refusal}");
        let spec = job(&["-t", "besteffort", "-t", "idempotent", "true"]);
        assert_eq!(spec.types, [JobType::BestEffort { requeue: true }]);
        assert_eq!(spec.components[0].class.as_deref(), Some("besteffort"));
        let form = |same_user, same_name| vec![JobType::Timesharing { same_user, same_name }];
        for (kind, types) in [
            ("timesharing=user,*", form(true, false)),
            ("timesharing=name,*", form(false, true)),
            ("timesharing=*,*", form(false, false)),
            ("placeholder=w", vec![JobType::Placeholder("w".into())]),
            ("allow=w", vec![JobType::Allowed("w".into())]),
        ] {
            assert_eq!(job(&["-t", kind, "true"]).types, types);
        }
        let both = ["-t", "timesharing=*,*", "-t", "allowed=w", "true"];
        let refusal = lowered(&both, true).expect_err("a job shares in one way").to_string();
        assert!(refusal.contains("a job has one of timesharing, placeholder and allowed"), "{refusal}");
        let noop = job(&["-t", "noop"]);
        assert_eq!((noop.types, noop.components[0].launch.program.clone()), (vec![JobType::Noop], Program::None));
        let late = job(&["-t", "postpone=1970-01-13 00:00:00", "-t", "deadline=1970-01-14 00:00:00", "true"]);
        let part = &late.components[0];
        assert_eq!(
            (part.begin, part.deadline),
            (Some(Timestamp(1_036_800_000_000)), Some(Timestamp(1_123_200_000_000)))
        );
    }

    /// OAR-T-85: tokens are licences of the cluster.
    #[test]
    fn tokens_are_licences() {
        let spec = job(&["-t", "token:matlab=2", "-l", "nodes=1", "-l", "core=2", "true"]);
        let licences = spec.components[0].alternatives.iter().map(|way| way.licences.get("matlab").copied());
        assert_eq!(licences.collect::<Vec<_>>(), [Some(2), Some(2)]);
    }

    /// OAR-T-50, OAR-T-60, OAR-T-71: the command runs on the first node that the job holds, or has a core of the host that is named for it;
    /// nothing is done on the others.
    #[test]
    fn commands_run_on_a_host_apart() {
        let alone = job(&["-t", "deploy", "-l", "nodes=2", "true"]);
        assert_eq!((&alone.types[..], alone.components.len()), (&[JobType::HandsOff][..], 1));
        let at = |host: &str| Some(Front { host: host.into(), queue: Some("front".into()) });
        let line = ["-t", "cosystem", "-q", "default", "-a", "5", "-l", "nodes=2,walltime=1"];
        let (jobs, warnings) = lowered_with(&[&line[..], &["true"]].concat(), true, at("n4")).expect("n4 is a node");
        let [host, held] = &jobs[0].components[..] else { panic!("it has two parts: {:?}", jobs[0].components) };
        assert_eq!((&jobs[0].types[..], warnings), (&[JobType::HandsOff][..], Vec::<String>::new()));
        assert_eq!((host.queue.as_deref(), held.queue.as_deref()), (Some("front"), Some("default")));
        assert!(matches!(host.launch.program, Program::Script { .. }) && held.launch.program == Program::None);
        assert_eq!((host.dependencies.all_of.len(), held.dependencies.all_of.len()), (1, 0));
        assert_eq!(host.alternatives[0].requests[0].nodes, ["n4"]);
        let walltimes = [host, held].map(|part| part.alternatives[0].walltime_seconds);
        assert_eq!(walltimes, [Some(3600), Some(3600)]);
        assert!(jobs[0].environment.contains_key(dialect::FRONT));
        let line = ["-t", "cosystem=standby", "-l", "nodes=2,walltime=1", "true"];
        let (jobs, _) = lowered_with(&line, true, at("n4")).expect("its command runs elsewhere");
        assert_eq!(jobs[0].types, [JobType::HandsOff, JobType::LeavesAsleep]);
        let array = [&["--array", "2"], &line[..]].concat();
        let refusal = lowered_with(&array, true, at("n4")).expect_err("it has no host").to_string();
        assert!(refusal.contains("needs a host apart"), "{refusal}");
        let first_node = |more: &[&str], front| {
            let line = [&["-t", "deploy", "-l", "nodes=1"], more].concat();
            let (jobs, warnings) = lowered_with(&[&line[..], &["true"]].concat(), true, front).expect("it is accepted");
            assert_eq!((jobs[0].components.len(), warnings.len()), (1, 1), "{warnings:?}");
        };
        first_node(&[], at("elsewhere"));
        first_node(&["-t", "container"], at("n4"));
        first_node(&["-r", "1970-01-13 00:00:00"], at("n4"));
        first_node(&["--array", "2"], at("n4"));
        let two = ["-t", "deploy", "-l", "nodes=1,walltime=1", "-l", "nodes=2,walltime=2", "true"];
        let refusal = lowered_with(&two, true, at("n4")).expect_err("it has two walltimes").to_string();
        assert!(refusal.contains("different walltimes"), "{refusal}");
    }

    /// OAR-N-04, OAR-N-06: somebody's wish to delete the job is told by a notification of its own, with the reason.
    #[test]
    fn wishes_are_told() {
        let spec = job(&["--notify", "[INFO,ERROR]exec:/bin/echo", "true"]);
        let on: Vec<&[Occasion]> = spec.notifications.iter().map(|one| &one.on[..]).collect();
        assert_eq!(on, [&[Occasion::EachTask, Occasion::Ended][..], &[Occasion::EachTask, Occasion::EndAsked]]);
        let Sink::Exec(line) = &spec.notifications[1].sink else { panic!("it is a program") };
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", line]).env("MUSTER_EVENT", "end_asked").env("MUSTER_JOB_ID", "7");
        command.env("MUSTER_REASON", "ann asked for its end");
        let said = String::from_utf8(command.output().expect("there is a shell").stdout).expect("text");
        assert_eq!(said, "7  INFO ann asked for its end\n");
    }

    /// OAR-K-05: such a job is for nodes whose agent asks, and for those alone; files go only there.
    #[test]
    fn jobs_of_desktops_are_for_nodes_whose_agent_asks() {
        let cluster = {
            let pulled = [("pull", muster_schemas::resources::PropertyValue::Flag(true))];
            let views =
                [crate::cluster::testing::node("near", 4, 1, &[]), crate::cluster::testing::node("far", 4, 1, &pulled)];
            crate::cluster::Cluster::of(&views)
        };
        let lowered = |line: &[&str]| {
            let words = getopt::read(line)?;
            let reading = Reading { now: 1_000_000, zone: &TimeZone::UTC, site_types: &[] };
            let mut submission = submission::read(&words, &Site::of(&cluster.table), reading)?;
            let rules = muster_oar::options::rules::SiteRules { queues: vec!["default".into()], ..Default::default() };
            let user =
                muster_oar::options::rules::Caller { user: "ann".into(), groups: Vec::new(), waiting_reservations: 0 };
            let site_filter = muster_oar::options::rules::apply(&mut submission, &user, &rules, &|_| None)?;
            let caller = Caller::default();
            let context = Context {
                cluster: &cluster,
                site_filter,
                caller: &caller,
                has_besteffort_class: true,
                request: String::new(),
                parameters: Vec::new(),
                after: Policy::Strict,
                now: 1_000_000,
                front: None,
                licences: BTreeMap::new(),
            };
            lower(&submission, &context, &mut Vec::new())
        };
        let asks = |jobs: &[JobSpec]| jobs[0].components[0].alternatives[0].requests[0].asks_for_pull();
        assert!(asks(&lowered(&["-t", "desktop_computing", "true"]).expect("far serves it")));
        assert!(!asks(&lowered(&["true"]).expect("near serves it")));
        let never = lowered(&["-t", "desktop_computing", "-l", "nodes=2", "true"]).expect_err("only far is one");
        assert_eq!(never.code, Code::Resources);
        assert_eq!(lowered(&["-l", "nodes=2", "true"]).expect_err("only near is one").code, Code::Resources);
        let away = lowered(&["-s", "/tmp", "true"]).expect_err("no files go to near");
        assert!(away.to_string().contains("for jobs of the type desktop_computing"), "{away}");
        let shell = lowered(&["-I", "-t", "desktop_computing"]).expect_err("there is no way to it");
        assert_eq!(shell.code.exit_status(), 17);
    }

    /// OAR-G-17: a job that must start by a time ends by its walltime after that.
    #[test]
    fn a_job_that_expires_has_a_deadline_that_follows_from_its_walltime() {
        let deadline = |line: &[&str]| job(line).components[0].deadline;
        let expire = ["-t", "expire=1970-01-13 00:00:00", "-l", "nodes=1,walltime=1"];
        assert_eq!(deadline(&[&expire[..], &["true"]].concat()), Some(Timestamp(1_040_400_000_000)));
        let earlier = ["-t", "deadline=1970-01-13 00:30:00", "true"];
        assert_eq!(deadline(&[&expire[..], &earlier].concat()), Some(Timestamp(1_038_600_000_000)));
        let two = [&expire[..], &["-l", "nodes=2,walltime=2", "true"]].concat();
        let refusal = lowered(&two, true).expect_err("it has two walltimes").to_string();
        assert!(refusal.contains("different walltimes"), "{refusal}");
    }

    /// OAR-G-03: best effort comes last.
    #[test]
    fn best_effort_comes_last() {
        let priority = |line: &[&str]| lowered(line, true).expect("a job").0[0].components[0].priority;
        assert_eq!(priority(&["-t", "besteffort", "true"]), Some(BESTEFFORT_PRIORITY));
        assert_eq!(priority(&["true"]), None);
    }

    /// OAR-T-31: the exit code of a shell or a reservation makes nothing run again.
    #[test]
    fn shells_and_reservations_do_not_run_again() {
        for line in [&["-I", "-t", "idempotent"][..], &["-r", "1970-01-13 00:00:00", "-t", "idempotent", "true"]] {
            assert_eq!(job(line).requeue, RequeuePolicy::default(), "{line:?}");
        }
    }

    /// OAR-G-11, OAR-G-12, OAR-T-41: a reservation has a fixed start and one shape.
    #[test]
    fn reservations_have_a_fixed_start_and_one_shape() {
        let line =
            ["-r", "1970-01-13 00:00:00", "-l", "nodes=1,walltime=1", "-l", "nodes=2", "-t", "timesharing=user,*"];
        let spec = job(&[&line[..], &["true"]].concat());
        let form = JobType::Timesharing { same_user: true, same_name: false };
        assert_eq!(spec.types, [form, JobType::FixedStart]);
        let part = &spec.components[0];
        assert_eq!((part.begin, part.deadline), (Some(Timestamp(1_036_800_000_000)), None));
        assert_eq!(part.alternatives.iter().map(|way| way.walltime_seconds).collect::<Vec<_>>(), [Some(3600)]);
        let both = ["-r", "1970-01-13 00:00:00", "-t", "deadline=1970-01-14 00:00:00", "true"];
        let refusal = lowered(&both, true).expect_err("a reservation has its own end").to_string();
        assert!(refusal.contains("a reservation has a start and an end of its own"), "{refusal}");
    }

    /// OAR-T-10, OAR-T-17: a container opens a planning domain, with a name or its id; an inner job runs in one.
    #[test]
    fn containers_open_domains() {
        let kinds = |line: &[&str]| job(line).types;
        assert_eq!(kinds(&["-t", "container", "true"]), [JobType::Container]);
        assert_eq!(kinds(&["-t", "container=course", "true"]), [JobType::OpensDomain("course".into())]);
        assert_eq!(kinds(&["-t", "inner=42", "true"]), [JobType::Inner(JobId::job(42))]);
        let both = kinds(&["-t", "container", "-t", "inner=course", "true"]);
        assert_eq!(both, [JobType::Container, JobType::InDomain("course".into())]);
    }

    /// OAR-R-15, OAR-G-08, W2
    #[test]
    fn shapes_that_never_fit_are_skipped() {
        assert_eq!(job(&["-l", "nodes=5", "-l", "nodes=2", "true"]).components[0].alternatives.len(), 1);
        let refusal = lowered(&["-l", "nodes=5", "true"], false).expect_err("it never fits");
        assert_eq!(refusal.to_string(), "-l: not enough resources: nodes: 5 asked, 4 match, 4 of them fit (job id -5)");
    }

    /// OAR-X-10
    #[test]
    fn private_keys_are_nowhere_in_the_job() {
        let (jobs, warnings) =
            lowered(&["--import-job-key-inline", "SECRETKEY", "true"], false).expect("it is accepted");
        assert!(!format!("{jobs:?}").contains("SECRETKEY"));
        assert!(warnings[0].starts_with("keys have no effect here"));
    }

    /// OAR-N-03, OAR-N-05, W9: the words of an exec notification reach the program as they are.
    #[test]
    fn programs_are_told_with_the_words_of_the_original() {
        let spec = job(&["-n", "my 'run", "--notify", "[END,RUNNING]exec:/bin/echo --site lyon", "true"]);
        let Sink::Exec(line) = &spec.notifications[0].sink else { panic!("it is a program") };
        let said = |event: &str| {
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", line]).env("MUSTER_EVENT", event).env("MUSTER_JOB_ID", "4242");
            String::from_utf8(command.output().expect("there is a shell").stdout).expect("text")
        };
        assert_eq!(said("completed"), "--site lyon 4242 my 'run END completed\n");
        assert_eq!(said("started"), "--site lyon 4242 my 'run RUNNING started\n");
        assert_eq!(said("cancelled"), "", "ERROR is not wanted");
        assert_eq!(said("resuming"), "", "RESUMING is not wanted");
    }

    /// W9, OAR-N-03, OAR-N-04, OAR-N-06: each word is an argument of its own, also an empty name; the comment is one line.
    #[test]
    fn w9_each_word_is_an_argument() {
        use std::os::unix::fs::PermissionsExt as _;
        let hook = std::env::temp_dir().join(format!("muster-hook-{}", std::process::id()));
        std::fs::write(&hook, "#!/bin/sh\nfor word; do echo \"<$word>\"; done\n").expect("a file");
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).expect("its own file");
        let wish = format!("exec:{} --site lyon", hook.display());
        let said = |name: &[&str], event: &str, why: Option<&str>| {
            let spec = job(&[name, &["--notify", &wish, "true"]].concat());
            let Sink::Exec(line) = &spec.notifications[0].sink else { panic!("it is a program") };
            let mut command = std::process::Command::new("/bin/sh");
            command.args(["-c", line]).env("MUSTER_EVENT", event).env("MUSTER_JOB_ID", "4242");
            command.envs(why.map(|why| ("MUSTER_REASON", why)));
            String::from_utf8(command.output().expect("there is a shell").stdout).expect("text")
        };
        let all = |words: &[&str]| words.iter().map(|word| format!("<{word}>\n")).collect::<String>();
        let named = ["-n", "my run"];
        let expected = ["--site", "lyon", "4242", "my run", "END", "all went well"];
        assert_eq!(said(&named, "completed", Some("all went well")), all(&expected));
        let expected = ["--site", "lyon", "4242", "", "RESUMING", "resuming"];
        assert_eq!(said(&[], "resuming", None), all(&expected));
        std::fs::remove_file(hook).expect("it was there");
    }
}
