//! What a job finds when it starts: its variables and files, and its message.

use crate::{
    resources::{property::is_system, table::Table},
    text::hours,
};
use std::collections::{BTreeMap, BTreeSet};

/// A job that is launched.
#[derive(Clone, Debug, Default)]
pub struct Launched {
    /// Its id.
    pub job: u64,
    /// The id of its array: its own if it is alone.
    pub array: u64,
    /// Its index there, from 1.
    pub index: u64,
    /// Its user.
    pub user: String,
    /// Its name; may be empty.
    pub name: String,
    /// Its project; may be empty.
    pub project: String,
    /// Its working directory.
    pub directory: String,
    /// Its walltime, in seconds.
    pub walltime: i64,
    /// The path of the node file.
    pub node_file: String,
    /// The path of the file of resource properties.
    pub property_file: String,
    /// The path of its output.
    pub stdout: String,
    /// The path of its errors.
    pub stderr: String,
}

/// The variables of a job (OAR-J-13).
pub fn variables(job: &Launched) -> BTreeMap<&'static str, String> {
    let (id, array, index) = (job.job.to_string(), job.array.to_string(), job.index.to_string());
    let mut variables = BTreeMap::from([
        ("OAR_JOBID", id.clone()),
        ("OAR_JOB_ID", id),
        ("OAR_ARRAYID", array.clone()),
        ("OAR_ARRAY_ID", array),
        ("OAR_ARRAYINDEX", index.clone()),
        ("OAR_ARRAY_INDEX", index),
        ("OAR_USER", job.user.clone()),
        ("OAR_JOB_NAME", job.name.clone()),
        ("OAR_PROJECT_NAME", job.project.clone()),
        ("OAR_RESOURCE_PROPERTIES_FILE", job.property_file.clone()),
        ("OAR_STDOUT", job.stdout.clone()),
        ("OAR_STDERR", job.stderr.clone()),
        ("OAR_JOB_WALLTIME", hours(job.walltime)),
        ("OAR_JOB_WALLTIME_SECONDS", job.walltime.to_string()),
    ]);
    let node_files = ["OAR_NODEFILE", "OAR_NODE_FILE", "OAR_FILE_NODES", "OAR_RESOURCE_FILE"];
    variables.extend(node_files.map(|name| (name, job.node_file.clone())));
    let directories = ["OAR_WORKDIR", "OAR_O_WORKDIR", "OAR_WORKING_DIRECTORY"];
    variables.extend(directories.map(|name| (name, job.directory.clone())));
    variables
}

/// The lines of the file of resource properties (OAR-J-15). A quote inside a value is doubled.
pub fn property_file(table: &Table, resources: &BTreeSet<u32>) -> Vec<String> {
    let line = |id: &u32| {
        let values = table.resource(*id)?.values().iter().filter(|(name, _)| !is_system(name));
        Some(property_line(&values.map(|(name, value)| (name.clone(), value.to_string())).collect()))
    };
    resources.iter().filter_map(line).collect()
}

/// A line of that file.
pub fn property_line(values: &BTreeMap<String, String>) -> String {
    values.iter().map(|(name, value)| pair(name, value)).collect::<Vec<_>>().join(", ")
}

fn pair(name: &str, value: &str) -> String {
    format!("{name} = '{}'", value.replace('\'', "''"))
}

/// The name of the isolation group of a job on a node (OAR-X-01).
pub fn isolation_group(user: &str, job: u64) -> String {
    format!("{user}_{job}")
}

/// The kind of a job in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A job with a command.
    Batch,
    /// A shell.
    Interactive,
    /// A reservation.
    Reservation,
}

/// The message of a job (OAR-J-23).
#[derive(Clone, Debug)]
pub struct Message<'m> {
    /// The number of its resources.
    pub resources: usize,
    /// Its walltime, in seconds.
    pub walltime: i64,
    /// Its kind.
    pub form: Form,
    /// Its name; may be empty.
    pub name: &'m str,
    /// Its queue, unless it is the default one.
    pub queue: Option<&'m str>,
    /// Its project; may be empty.
    pub project: &'m str,
    /// Its types.
    pub types: &'m [String],
    /// The karma, or why it waits.
    pub remark: &'m str,
}

/// The text of a message.
pub fn message(message: &Message<'_>) -> String {
    let form = match message.form {
        Form::Batch => 'B',
        Form::Interactive => 'I',
        Form::Reservation => 'R',
    };
    let types = message.types.join("|");
    let given = |key: char, value: &str| if value.is_empty() { String::new() } else { format!(",{key}={value}") };
    format!(
        "R={},W={},J={form}{}{}{}{} ({})",
        message.resources,
        hours(message.walltime),
        given('N', message.name),
        given('Q', message.queue.unwrap_or_default()),
        given('P', message.project),
        given('T', &types),
        message.remark,
    )
}
