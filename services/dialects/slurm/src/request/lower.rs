//! Turns the options of the components into a job of the model.

use super::{Settings, sizing, times};
use crate::{
    attributes::{self, component, component_key, job, job_key, site_option_key},
    burst_buffer, environment, features,
    job_id::dependencies,
    messages::{Refusal, Rejection},
    moment::{self, Now},
    options::{Command, Place, values},
    output, site_variables,
};
use muster_schemas::{
    job::{
        self as model, ArraySpec, Component, ComponentStaging, Dependencies, Holds, JobSpec, Launch, Notification,
        RequeuePolicy, Sink, WarningSignal,
    },
    time::Timestamp,
};
use std::collections::BTreeMap;

/// What to submit.
#[derive(Clone, Debug)]
pub struct Submission<'a> {
    /// The options of each component, at least one.
    pub components: &'a [Settings],
    /// What to run.
    pub program: Program,
    /// The submitting process.
    pub caller: &'a Caller,
    /// The site's rules.
    pub rules: &'a Rules,
    /// The time of submission, in the submitter's time zone.
    pub now: &'a Now,
}

/// What a job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A batch script, on the first node of the first component (SL-S-09).
    Batch {
        /// Its text.
        text: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its source.
        source: ScriptSource,
    },
    /// Nothing: the job is an allocation for steps.
    Allocation {
        /// The command that holds it.
        by: Interactive,
        /// The command that runs next to it, or the program of the step; may be empty.
        words: Vec<String>,
    },
}

/// The source of a batch script (SL-C-06).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptSource {
    /// A file, by its absolute path.
    File(String),
    /// The command of `--wrap`.
    Wrapped,
    /// Standard input.
    StandardInput,
}

/// A command that gets an allocation and keeps running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interactive {
    /// `salloc`.
    Salloc,
    /// `salloc --no-shell`.
    SallocWithoutShell,
    /// `srun` outside an allocation.
    Srun,
}

/// What a job takes from the process that submits it.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// Finds the names of its user and group.
    pub names: Names,
    /// The number of its user.
    pub uid: u32,
    /// The number of its user's group.
    pub gid: u32,
    /// Its working directory, absolute.
    pub directory: String,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Its file mode creation mask.
    pub umask: u32,
    /// The host that it runs on.
    pub host: String,
    /// Its session there.
    pub session: u32,
    /// Its whole command line.
    pub submit_line: String,
}

/// Finds the name of a user and of a group by number. A lookup can take several files or a question to a server, and
/// hardly any job needs it.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The name of a user.
    pub user: fn(u32) -> String,
    /// The name of a group.
    pub group: fn(u32) -> String,
}

impl Default for Names {
    /// Uses numbers instead of names.
    fn default() -> Self {
        let number = |number: u32| number.to_string();
        Self { user: number, group: number }
    }
}

/// The site's rules for submissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `MaxArraySize`: indices must be below it.
    pub array_size_limit: u32,
    /// `JobRequeue`: whether jobs may be requeued if they do not say.
    pub requeue: bool,
    /// Words of staging directives; empty without a burst-buffer plugin (SL-B-01, SL-B-07).
    pub directive_words: Vec<String>,
    /// Whether directives can mention persistent buffers (SL-B-02).
    pub persistent_buffers: bool,
    /// The longest wait for few switches, and that of jobs that do not say, in seconds (SL-C-12).
    pub most_switch_wait_seconds: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            array_size_limit: 1001,
            requeue: true,
            directive_words: Vec::new(),
            persistent_buffers: true,
            most_switch_wait_seconds: features::SWITCH_WAIT_SECONDS,
        }
    }
}

/// Makes the job to submit.
///
/// # Errors
/// Why the job is refused as a whole; nothing of it is submitted (SL-S-11).
pub fn lower(submission: &Submission<'_>) -> Result<JobSpec, Refusal> {
    let Some(leader) = submission.components.first() else {
        return Err(Refusal::Rejected(Rejection::Other("a job has at least one component".to_owned())));
    };
    let command = submission.command();
    let array = array(submission, leader)?;
    refuse_for_several(submission)?;
    refuse_other_owners(submission)?;
    let name = leader.text("job-name").map_or_else(|| submission.default_name(), str::to_owned);
    let mut attributes = job_attributes(submission, command);
    let mut components = Vec::with_capacity(submission.components.len());
    for (offset, settings) in submission.components.iter().enumerate() {
        components.push(submission.component(offset, settings)?);
        add_attributes(&mut attributes, offset, settings, &name);
    }
    exclude_named_nodes(&mut components);
    let staging = staged(&mut attributes, submission);
    Ok(JobSpec {
        name,
        components,
        array,
        working_directory: directory(submission.caller, leader),
        environment: environment_of(submission),
        umask: Some(submission.caller.umask),
        notifications: notifications(submission.caller, leader),
        requeue: RequeuePolicy { on_node_lost: requeues(leader, submission.rules), ..RequeuePolicy::default() },
        attributes,
        dialect: Some(crate::NAME.to_owned()),
        staging,
        cancelled_if_never_met: leader.text("kill-on-invalid-dep").is_some_and(|word| word.eq_ignore_ascii_case("yes")),
        ..JobSpec::default()
    })
}

/// The part of the submitter's environment that the job gets, and what options of the site say.
fn environment_of(submission: &Submission<'_>) -> BTreeMap<String, String> {
    let text = |option| submission.components.first().and_then(|leader| leader.text(option));
    let mut environment = environment::of_job(text("export"), &submission.caller.environment);
    environment::propagate(&mut environment, text("propagate"));
    environment.extend(site_variables::of_job(submission.components));
    environment
}

fn array(submission: &Submission<'_>, leader: &Settings) -> Result<Option<ArraySpec>, Refusal> {
    let refused = Refusal::Rejected(Rejection::Array);
    if submission.components.iter().skip(1).any(|settings| settings.is_set("array")) {
        return Err(refused);
    }
    let Some(text) = leader.text("array") else { return Ok(None) };
    let several = submission.components.len() > 1;
    let is_batch = matches!(submission.program, Program::Batch { .. });
    let spec = values::array(text, submission.rules.array_size_limit).filter(|_| is_batch && !several);
    spec.map(Some).ok_or(refused)
}

/// Refuses what only plain jobs can have (SL-S-17, SL-S-18).
fn refuse_for_several(submission: &Submission<'_>) -> Result<(), Refusal> {
    if submission.components.len() == 1 {
        return Ok(());
    }
    let any = |name| submission.components.iter().any(|settings| settings.is_set(name));
    if any("no-allocate") {
        return Err(Refusal::Rejected(Rejection::NoAllocate));
    }
    if any("immediate") {
        return Err(Refusal::Rejected(Rejection::NotImmediately));
    }
    Ok(())
}

/// A job belongs to its submitter: another user or group is refused, not ignored (SL-C-13).
fn refuse_other_owners(submission: &Submission<'_>) -> Result<(), Refusal> {
    let Caller { names, uid, gid, .. } = submission.caller;
    for (option, name_of, number) in [("uid", names.user, *uid), ("gid", names.group, *gid)] {
        let is_other = |text: &str| text != number.to_string() && text != name_of(number);
        if submission.components.iter().any(|settings| settings.text(option).is_some_and(is_other)) {
            let text = format!("--{option}: jobs are submitted for their submitter's own user and group only");
            return Err(Refusal::Rejected(Rejection::Other(text)));
        }
    }
    Ok(())
}

impl Submission<'_> {
    fn command(&self) -> Command {
        match &self.program {
            Program::Batch { .. } => Command::Sbatch,
            Program::Allocation { by: Interactive::Srun, .. } => Command::Srun,
            Program::Allocation { .. } => Command::Salloc,
        }
    }

    /// The job's name if none is given (SL-C-08, SL-C-21, SL-C-22).
    fn default_name(&self) -> String {
        match &self.program {
            Program::Batch { source: ScriptSource::File(path), .. } => base_name(path).to_owned(),
            Program::Batch { source: ScriptSource::Wrapped, .. } => "wrap".to_owned(),
            Program::Batch { source: ScriptSource::StandardInput, .. } => "sbatch".to_owned(),
            Program::Allocation { by: Interactive::Salloc, .. } => "interactive".to_owned(),
            Program::Allocation { by: Interactive::SallocWithoutShell, .. } => "no-shell".to_owned(),
            Program::Allocation { by: Interactive::Srun, words } => {
                words.first().map_or("", |word| base_name(word)).to_owned()
            }
        }
    }

    fn component(&self, offset: usize, settings: &Settings) -> Result<Component, Refusal> {
        let moment = |name| settings.value(name, |text| moment::parse(text, self.now));
        let priority = settings.value("priority", values::priority);
        Ok(Component {
            queue: first_of_list(settings.text("partition")),
            account: settings.text("account").map(str::to_owned),
            class: settings.text("qos").map(str::to_owned),
            // A priority of 0 is a hold.
            priority: priority.filter(|priority| *priority > 0),
            begin: moment("begin").filter(|begin| self.is_ahead(*begin)),
            deadline: moment("deadline"),
            dependencies: component_dependencies(settings)?,
            holds: Holds { user: settings.is_set("hold") || priority == Some(0), ..Holds::default() },
            reservation: first_of_list(settings.text("reservation")),
            launch: self.launch(offset, settings),
            alternatives: sizing::alternatives(
                settings,
                offset,
                times::walltime_seconds(settings, self.now)?,
                self.rules.most_switch_wait_seconds,
            )?,
        })
    }

    fn is_ahead(&self, moment: Timestamp) -> bool {
        moment.0 > self.now.timestamp().as_microsecond()
    }

    fn launch(&self, offset: usize, settings: &Settings) -> Launch {
        let container = settings
            .text("container")
            .filter(|image| !image.is_empty())
            .map(|image| model::image_from(&self.caller.directory, image));
        let Program::Batch { text, args, .. } = &self.program else { return Launch { container, ..Launch::default() } };
        let is_array = settings.is_set("array");
        let path = |option| settings.text(option).map(output::batch_pattern);
        let program = match offset {
            0 => model::Program::Script { text: text.clone(), args: args.clone() },
            _ => model::Program::None,
        };
        Launch {
            program,
            stdout: Some(path("output").unwrap_or_else(|| output::default_pattern(is_array).to_owned())),
            stderr: path("error"),
            stdin: path("input"),
            append_output: settings.value("open-mode", values::appends).unwrap_or(false),
            warning: settings
                .value("signal", values::SignalAhead::parse)
                .filter(|ahead| ahead.batch_script)
                .map(|ahead| WarningSignal { signal: ahead.signal, seconds_before_end: ahead.seconds_before_end }),
            kill_grace_seconds: None,
            container,
            stage_in: None,
        }
    }
}

fn component_dependencies(settings: &Settings) -> Result<Dependencies, Refusal> {
    match settings.text("dependency").filter(|text| !text.is_empty()) {
        None => Ok(Dependencies::default()),
        Some(text) => dependencies(text).ok_or(Refusal::Rejected(Rejection::Dependency)),
    }
}

/// Keeps nodes that one component names from the others (SL-S-23).
fn exclude_named_nodes(components: &mut [Component]) {
    let named: Vec<Vec<String>> = components
        .iter()
        .map(|component| component.alternatives.first().into_iter().flat_map(|way| &way.requests))
        .map(|requests| requests.flat_map(|request| request.nodes.iter().cloned()).collect())
        .collect();
    for (offset, component) in components.iter_mut().enumerate() {
        let others = named.iter().enumerate().filter(|(other, _)| *other != offset).flat_map(|(_, nodes)| nodes);
        let foreign: Vec<&String> = others.filter(|node| !named[offset].contains(node)).collect();
        for request in component.alternatives.iter_mut().flat_map(|way| &mut way.requests) {
            for node in &foreign {
                if !request.excluded_nodes.contains(node) {
                    request.excluded_nodes.push((*node).clone());
                }
            }
        }
    }
}

fn first_of_list(text: Option<&str>) -> Option<String> {
    text.and_then(|text| text.split(',').next()).filter(|name| !name.is_empty()).map(str::to_owned)
}

fn directory(caller: &Caller, leader: &Settings) -> String {
    match leader.text("chdir").filter(|path| !path.is_empty()) {
        None => caller.directory.clone(),
        Some(path) if path.starts_with('/') => path.to_owned(),
        Some(path) => format!("{}/{path}", caller.directory.trim_end_matches('/')),
    }
}

/// Mail is for the leader only (SL-M-06).
fn notifications(caller: &Caller, leader: &Settings) -> Vec<Notification> {
    let on = leader.value("mail-type", values::mail_types).unwrap_or_default();
    if on.is_empty() {
        return Vec::new();
    }
    let named = leader.text("mail-user").filter(|user| !user.is_empty());
    let to = named.map_or_else(|| (caller.names.user)(caller.uid), str::to_owned);
    let sink = |address: &str| Sink::Mail(address.to_owned());
    let addresses = to.split(',').map(str::trim).filter(|address| !address.is_empty());
    addresses.map(|address| Notification { on: on.clone(), sink: sink(address), spares_cancelled: true }).collect()
}

fn requeues(leader: &Settings, rules: &Rules) -> bool {
    match (leader.is_set("requeue"), leader.is_set("no-requeue")) {
        (true, _) => true,
        (false, true) => false,
        (false, false) => rules.requeue,
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn job_attributes(submission: &Submission<'_>, command: Command) -> BTreeMap<String, String> {
    let caller = submission.caller;
    let shown = match &submission.program {
        Program::Batch { source: ScriptSource::File(path), args, .. } => {
            let words: Vec<&str> = std::iter::once(path).chain(args).map(String::as_str).collect();
            words.join(" ")
        }
        Program::Batch { .. } => String::new(),
        Program::Allocation { words, .. } => words.join(" "),
    };
    let session = if caller.session == 0 { String::new() } else { caller.session.to_string() };
    let pairs = [
        (job::KIND, command.name().to_owned()),
        (job::COMMAND, shown),
        (job::SUBMIT_LINE, caller.submit_line.clone()),
        (job::SUBMIT_HOST, caller.host.clone()),
        (job::SUBMIT_SESSION, session),
        (job::GID, caller.gid.to_string()),
    ];
    pairs.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (job_key(name), text)).collect()
}

/// Adds what the model has no place for.
fn add_attributes(attributes: &mut BTreeMap<String, String>, offset: usize, settings: &Settings, job_name: &str) {
    let is_list = |text: &str| text.contains(',');
    for (option, text) in settings.iter().filter(|(option, _)| option.place == Place::Site) {
        let value = if text.is_empty() { attributes::SET } else { text };
        attributes.insert(site_option_key(offset, option.name), value.to_owned());
    }
    for (option, text) in settings.iter().filter(|(option, _)| option.place == Place::Kept) {
        let kept = match option.name {
            component::JOB_NAME => text != job_name,
            component::PARTITION | component::RESERVATION => is_list(text),
            component::LICENSES | component::MAIL_TYPE | component::MAIL_USER => offset == 0,
            component::DEPENDENCY => text.to_ascii_lowercase().contains("afterburstbuffer"),
            _ => true,
        };
        let value = match option.name {
            component::NICE => values::nice(text).map_or_else(|| text.to_owned(), |nice| nice.to_string()),
            _ if text.is_empty() => attributes::SET.to_owned(),
            _ => text.to_owned(),
        };
        if kept {
            attributes.insert(component_key(offset, option.name), value);
        }
    }
}

/// What to stage for each component: the directives of its part of the script, else those of its `--bb` (SL-B-01,
/// SL-B-08). They are kept with the words by which the script is rebuilt for display (SL-B-05).
fn staged(attributes: &mut BTreeMap<String, String>, submission: &Submission<'_>) -> Vec<ComponentStaging> {
    let rules = submission.rules;
    if rules.directive_words.is_empty() {
        return Vec::new();
    }
    let words: Vec<&str> = rules.directive_words.iter().map(String::as_str).collect();
    let scripts = match &submission.program {
        Program::Batch { text, .. } => burst_buffer::scripts(text, &words, submission.components.len()),
        Program::Allocation { .. } => Vec::new(),
    };
    let mut scripts = scripts.into_iter();
    let mut staged = Vec::new();
    for (offset, settings) in submission.components.iter().enumerate() {
        let of_script = scripts.next().map(|script| script.directives).filter(|directives| !directives.is_empty());
        let given = || settings.text(component::BURST_BUFFER).unwrap_or_default().lines().map(str::to_owned).collect();
        let directives: Vec<String> = of_script.unwrap_or_else(given);
        if !directives.is_empty() {
            attributes.insert(component_key(offset, component::BURST_BUFFER), directives.join("\n"));
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            staged.push(burst_buffer::staging(offset, directives, rules.persistent_buffers));
        }
    }
    if !staged.is_empty() {
        attributes.insert(job_key(job::DIRECTIVE_WORDS), words.join(","));
    }
    staged
}
