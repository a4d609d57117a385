//! Options for a job that is there, as a change of the job model.

use super::{
    lower::notifications,
    paths::OutputNames,
    rules::{Caller, Rules},
    settings::{self, Settings},
    sizing,
};
use crate::{
    NAME,
    attributes::{Attributes, key, names, resource_key},
    refusal::Refusal,
    resources::Resource,
    text::{quoted, unquoted},
};
use muster_schemas::{
    event::{JobChange, OutputFiles},
    job::JobSpec,
};
use std::collections::BTreeMap;

/// Options of a job that cannot be changed after its submission: the letter, the attribute that it sets, and what it is about.
const FIXED: [(char, &str, &str); 6] = [
    ('c', names::CHECKPOINT, "checkpoints"),
    ('R', names::REMOVE_FILES, "output files to remove"),
    ('S', names::SHELL, "the shell"),
    ('t', names::ARRAY_INDICES, "the indices of an array"),
    ('u', names::USER_LIST, "the user"),
    ('v', "Variable_List", "variables"),
];

/// What output files depend on.
const OF_OUTPUT: [&str; 4] = [names::OUTPUT_PATH, names::ERROR_PATH, names::JOIN_PATH, names::KEEP_FILES];
/// What mails depend on.
const OF_MAIL: [&str; 2] = [names::MAIL_POINTS, names::MAIL_USERS];

/// A job that is there, and who changes it.
#[derive(Clone, Copy, Debug)]
pub struct Present<'a> {
    /// The job, as it is now.
    pub spec: &'a JobSpec,
    /// Its owner's login name.
    pub owner: &'a str,
    /// The working directory of the command, in which new relative paths begin; absolute.
    pub directory: &'a str,
    /// Whether there is a folder of this absolute path.
    pub is_folder: fn(&str) -> bool,
}

/// A change of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changed {
    /// The change.
    pub change: JobChange,
    /// A sentence for each request without effect, to print on standard error.
    pub warnings: Vec<String>,
}

/// Resources that are computed from others: a new size replaces them.
const COMPUTED: [&str; 3] = ["nodect", "mpiprocs", "ncpus"];

/// The change of a job that these options ask for, by the letters that were given. An attribute that is not named stays as it is.
///
/// # Errors
/// An option that cannot be changed, or a size that cannot be read.
pub fn change(settings: &Settings, letters: &[char], present: &Present<'_>, rules: &Rules) -> Result<Changed, Refusal> {
    let is_given = |letter: &char, name: &str| letters.contains(letter) || settings.given.contains_key(name);
    if let Some((letter, _, what)) = FIXED.iter().find(|(letter, name, _)| is_given(letter, name)) {
        let why = format!("{what} cannot be changed after submission");
        return Err(Refusal::unsupported(&format!("-{letter}"), why));
    }
    let attributes = Attributes(&present.spec.attributes);
    let has_project = attributes.get(names::PROJECT).is_some();
    let mut change = JobChange {
        name: settings.name.clone(),
        account: settings.project.clone().or_else(|| settings.account.clone().filter(|_| !has_project)),
        priority: settings.priority,
        begin: settings.begin,
        requeue_on_node_lost: settings.rerunnable,
        max_running: settings.max_running,
        ..JobChange::default()
    };
    if letters.contains(&'W') {
        refuse_fixed_attributes(settings)?;
        if settings.given.contains_key(names::DEPEND) {
            change.dependencies = Some(settings.dependencies.clone());
        }
    }
    change.attributes.extend(settings.given.iter().map(|(name, text)| (key(name), text.clone())));
    let mut warnings = settings.warnings.clone();
    if OF_MAIL.iter().any(|name| settings.given.contains_key(name)) {
        if present.spec.dialect.as_deref() != Some(NAME) {
            return Err(Refusal::Conflict("the mails of jobs of other commands stay as they are".to_owned()));
        }
        let merged = merged(settings, attributes, present)?;
        change.mails = Some(notifications(&merged, present.owner));
    }
    if OF_OUTPUT.iter().any(|name| settings.given.contains_key(name)) {
        let merged = merged(settings, attributes, present)?;
        change.output = Some(output_files(&merged, present, rules, &mut warnings)?);
        let paths = [(names::OUTPUT_PATH, &merged.output), (names::ERROR_PATH, &merged.error)];
        let known = paths.into_iter().filter(|(name, _)| settings.given.contains_key(name));
        change.attributes.extend(known.filter_map(|(name, path)| Some((key(name), quoted(path.as_deref()?, &[])))));
    }
    if letters.contains(&'l') {
        resize(&mut change, settings, attributes, rules)?;
    }
    Ok(Changed { change, warnings })
}

/// The settings for output and mail: those that are given, else those of the job.
fn merged(settings: &Settings, attributes: Attributes<'_>, present: &Present<'_>) -> Result<Settings, Refusal> {
    let given = |name: &str| settings.given.contains_key(name);
    let kept = |name: &str| attributes.get(name).map(unquoted);
    let mut merged = settings.clone();
    // A relative path that is given now begins here, that of the submission where the job was submitted.
    merged.output = match given(names::OUTPUT_PATH) {
        true => settings.output.as_deref().map(|path| from_here(path, present.directory)),
        false => kept(names::OUTPUT_PATH),
    };
    merged.error = match given(names::ERROR_PATH) {
        true => settings.error.as_deref().map(|path| from_here(path, present.directory)),
        false => kept(names::ERROR_PATH),
    };
    if !given(names::JOIN_PATH) {
        merged.join = kept(names::JOIN_PATH).and_then(|text| settings::join(&text)).unwrap_or_default();
    }
    if !given(names::KEEP_FILES) {
        merged.keep = kept(names::KEEP_FILES).and_then(|text| settings::keep(&text)).unwrap_or_default();
    }
    if !given(names::MAIL_POINTS) {
        merged.mail = kept(names::MAIL_POINTS).and_then(|text| settings::mail_points(&text));
    }
    if !given(names::MAIL_USERS) {
        merged.mail_to = kept(names::MAIL_USERS).map_or(Ok(Vec::new()), |text| settings::addresses("-M", &text))?;
    }
    Ok(merged)
}

/// A path as it is kept: relative ones begin in a folder, unless they name a host or begin with a variable.
fn from_here(path: &str, directory: &str) -> String {
    let names_host = path.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
    match path.starts_with(['/', '$']) || names_host {
        true => path.to_owned(),
        false => format!("{}/{path}", directory.trim_end_matches('/')),
    }
}

/// The output files of the job: their names depend on its submitter, whose facts are in its environment.
fn output_files(
    merged: &Settings,
    present: &Present<'_>,
    rules: &Rules,
    warnings: &mut Vec<String>,
) -> Result<OutputFiles, Refusal> {
    if present.spec.dialect.as_deref() != Some(NAME) {
        return Err(Refusal::Conflict("the output files of jobs of other commands stay as they are".to_owned()));
    }
    let environment = &present.spec.environment;
    if environment.get("PBS_ENVIRONMENT").is_some_and(|kind| kind == "PBS_INTERACTIVE") {
        return Err(Refusal::Conflict("an interactive job has no output files".to_owned()));
    }
    let of = |name: &str| environment.get(name).cloned().unwrap_or_default();
    let directory = Some(of("PBS_O_WORKDIR")).filter(|path| path.starts_with('/'));
    let caller = Caller {
        user: present.owner.to_owned(),
        home: of("PBS_O_HOME"),
        directory: directory.unwrap_or_else(|| present.spec.working_directory.clone()),
        environment: environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        host: of("PBS_O_HOST"),
        is_folder: present.is_folder,
        ..Caller::default()
    };
    let is_array = present.spec.array.is_some();
    let names = OutputNames { caller: &caller, flavour: rules.flavour, server: &rules.server, is_array };
    let files = names.files(merged);
    warnings.extend(files.warnings);
    Ok(OutputFiles { stdout: files.stdout, stderr: files.stderr })
}

fn refuse_fixed_attributes(settings: &Settings) -> Result<(), Refusal> {
    let fixed = [
        names::STAGEIN,
        names::STAGEOUT,
        names::UMASK,
        names::BLOCK,
        names::INTERACTIVE,
        names::SANDBOX,
        names::GROUP_LIST,
    ];
    match fixed.iter().find(|name| settings.given.contains_key(*name)) {
        Some(name) => Err(Refusal::unsupported(&format!("-W {name}"), "it cannot be changed after submission")),
        None => Ok(()),
    }
}

/// A walltime alone is a change that running jobs take too; anything else is a new request.
fn resize(
    change: &mut JobChange,
    settings: &Settings,
    attributes: Attributes<'_>,
    rules: &Rules,
) -> Result<(), Refusal> {
    let mut merged = Settings { resources: requested(attributes), ..settings.clone() };
    merged.take_requests(settings.resources.clone())?;
    merged.check()?;
    let size = sizing::size(&merged, rules)?;
    match settings.resources.iter().all(|request| request.name == "walltime") {
        true => change.walltime_seconds = size.alternative.walltime_seconds,
        false => change.alternatives = Some(vec![size.alternative]),
    }
    let earlier = attributes.resources().map(|(name, _)| (resource_key(name), String::new()));
    let mut resources: BTreeMap<String, String> = earlier.collect();
    resources.extend(size.shown.iter().map(|(name, text)| (resource_key(name), text.clone())));
    resources.retain(|key, text| attributes.0.get(key) != Some(text));
    change.attributes.extend(resources);
    Ok(())
}

/// The requests of a job, without those that were computed from them.
fn requested(attributes: Attributes<'_>) -> Vec<Resource> {
    let has = |name: &str| attributes.resource(name).is_some();
    let is_computed = |name: &str| match name {
        "mem" => has("select"),
        "ncpus" => has("select") || has("nodes") || has("procs"),
        "place" => !has("select"),
        name => COMPUTED.contains(&name),
    };
    let asked = attributes.resources().filter(|(name, _)| !is_computed(name));
    let quote = |text: &str| quoted(text, &[',']);
    asked
        .map(|(name, text)| {
            // The words of these have quotes of their own.
            let value = if name == "select" { text.to_owned() } else { quote(text) };
            Resource { name: name.to_owned(), value }
        })
        .collect()
}
