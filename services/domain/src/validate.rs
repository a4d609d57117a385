//! Limits on values, from any sender. Each refusal names the field, what was given and the limit.

use muster_schemas::{
    address,
    command::{Refusal, RefusalCode},
    job::{
        ArraySpec, Checkpoint, Component, Dependencies, Dependency, DependencyKind, JobSpec, Launch, Notification,
        Program, Sink,
    },
    resources::{Alternative, Count, IndexSet, Level, NodeFilter, NodeSpec, Request},
};
use std::collections::BTreeMap;

mod planning;
mod staging;
mod steps;
mod tasks;

pub(crate) use planning::{closures, document, filter_spec, policy, reservation};
pub(crate) use staging::staging_settings;
pub(crate) use steps::step;
pub(crate) use tasks::task_list;

/// Bytes of a name of anything.
pub const MAX_NAME_BYTES: usize = 1_024;
/// Bytes of free text, such as a reason.
pub const MAX_TEXT_BYTES: usize = 16 << 10;
/// Bytes of a path.
pub const MAX_PATH_BYTES: usize = 4_096;
/// Jobs of one submission.
pub const MAX_JOBS: usize = 100_000;
/// Components of one job.
pub const MAX_COMPONENTS: usize = 1_000;
/// Tasks of one array.
pub const MAX_TASKS: u64 = 10_000_000;
/// Bytes of a script.
pub const MAX_SCRIPT_BYTES: usize = 4 << 20;
/// Bytes of all that a job carries: its submission is one record, and has to fit into one message of the bus (8 MB).
pub const MAX_JOB_BYTES: usize = 6 << 20;
/// Bytes of all arguments of a command.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;
/// Bytes of an environment, names and values.
pub const MAX_ENVIRONMENT_BYTES: usize = 1 << 20;
/// Bytes of all attributes of a job, names and values.
pub const MAX_ATTRIBUTE_BYTES: usize = 1 << 20;
/// Alternatives of one component, requests of one alternative, levels of one path, notifications of one job and such.
pub const MAX_LIST: usize = 1_000;
/// Nodes that a request names.
pub const MAX_NODE_NAMES: usize = 100_000;
/// Conditions in the dependencies of one component.
pub const MAX_DEPENDENCIES: usize = 10_000;
/// Any count of nodes, tasks, cores and such.
pub const MAX_COUNT: u32 = 10_000_000;
/// The longest walltime: a hundred years.
pub const MAX_SECONDS: u64 = 100 * 366 * 86_400;
/// The most memory of a request: an exbibyte.
pub const MAX_MEMORY_BYTES: u64 = 1 << 60;
/// How deep the filter of a request may nest.
pub const MAX_FILTER_DEPTH: usize = 50;
/// Cores of one node.
pub const MAX_NODE_CORES: u32 = 65_536;

fn invalid<T>(message: String) -> Result<T, Refusal> {
    Err(Refusal::new(RefusalCode::Invalid, message))
}

/// A value as it can stand in a message: cut and without control characters.
pub(crate) fn shown(value: &str) -> String {
    let shown: String = value.chars().take(80).map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect();
    if value.chars().nth(80).is_some() { shown + "..." } else { shown }
}

fn bytes(field: &str, found: usize, most: usize) -> Result<(), Refusal> {
    if found > most { invalid(format!("{field}: {found} bytes, at most {most} are allowed")) } else { Ok(()) }
}

fn count(field: &str, found: usize, most: usize) -> Result<(), Refusal> {
    if found > most { invalid(format!("{field}: {found} given, at most {most} are allowed")) } else { Ok(()) }
}

fn number(field: &str, found: u64, least: u64, most: u64) -> Result<(), Refusal> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        invalid(format!("{field}: {found} is not between {least} and {most}"))
    }
}

fn no_nul(field: &str, value: &str) -> Result<(), Refusal> {
    match value.find('\0') {
        Some(at) => invalid(format!("{field}: has a NUL byte at position {at}")),
        None => Ok(()),
    }
}

/// Text for people.
pub(crate) fn text(field: &str, value: &str) -> Result<(), Refusal> {
    bytes(field, value.len(), MAX_TEXT_BYTES)?;
    no_nul(field, value)
}

/// A name: no control characters, not too long. It may be empty.
pub(crate) fn label(field: &str, value: &str) -> Result<(), Refusal> {
    bytes(field, value.len(), MAX_NAME_BYTES)?;
    match value.chars().find(|char| char.is_control()) {
        Some(char) => invalid(format!("{field}: `{}` has the control character U+{:04X}", shown(value), char as u32)),
        None => Ok(()),
    }
}

/// A name that something is known by: as a label, and not empty.
pub(crate) fn name(field: &str, value: &str) -> Result<(), Refusal> {
    if value.is_empty() {
        return invalid(format!("{field}: is empty"));
    }
    label(field, value)
}

/// A name that stands in lists on command lines: as a name, without blanks, commas and slashes.
pub(crate) fn identifier(field: &str, value: &str) -> Result<(), Refusal> {
    name(field, value)?;
    match value.chars().find(|char| char.is_whitespace() || matches!(char, ',' | '/')) {
        Some(char) => invalid(format!("{field}: `{}` has the character `{char}`", shown(value))),
        None => Ok(()),
    }
}

/// The number of a signal.
pub(crate) fn signal(field: &str, value: u8) -> Result<(), Refusal> {
    number(field, u64::from(value), 1, 64)
}

fn path(field: &str, value: &str) -> Result<(), Refusal> {
    bytes(field, value.len(), MAX_PATH_BYTES)?;
    no_nul(field, value)
}

fn optional<T: ?Sized, S: AsRef<T>>(
    field: &str,
    value: Option<&S>,
    check: impl FnOnce(&str, &T) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    value.map_or(Ok(()), |value| check(field, value.as_ref()))
}

/// All of a submitted job that can be judged without the state.
pub(crate) fn job(spec: &JobSpec) -> Result<(), Refusal> {
    label("name", &spec.name)?;
    count("components", spec.components.len(), MAX_COMPONENTS)?;
    for component in &spec.components {
        self::component(component)?;
    }
    if let Some(array) = &spec.array {
        self::array(array, spec.components.len())?;
    }
    path("working_directory", &spec.working_directory)?;
    if !spec.working_directory.is_empty() && !spec.working_directory.starts_with('/') {
        return invalid(format!("working_directory: `{}` does not begin with `/`", shown(&spec.working_directory)));
    }
    environment(&spec.environment)?;
    if let Some(umask) = spec.umask {
        number("umask", u64::from(umask), 0, 0o777)?;
    }
    count("notifications", spec.notifications.len(), MAX_LIST)?;
    for notification in &spec.notifications {
        self::notification(notification)?;
    }
    if let Some(checkpoint) = &spec.checkpoint {
        self::checkpoint(checkpoint)?;
    }
    count("requeue.on_exit_codes", spec.requeue.on_exit_codes.len(), 256)?;
    count("types", spec.types.len(), MAX_LIST)?;
    staging::job_types(&spec.types, spec.components.len().max(1))?;
    attributes(&spec.attributes)?;
    dialect(spec.dialect.as_deref())?;
    bytes("scripts, arguments, environment and attributes together", carried_bytes(spec), MAX_JOB_BYTES)
}

fn carried_bytes(spec: &JobSpec) -> usize {
    let texts = |texts: &[String]| texts.iter().map(String::len).sum::<usize>();
    let programs = spec.components.iter().map(|component| match &component.launch.program {
        Program::None => 0,
        Program::Script { text, args } => text.len() + texts(args),
        Program::Tasks { argv } => texts(argv),
    });
    let pairs = spec.environment.iter().chain(&spec.attributes).map(|(name, value)| name.len() + value.len());
    programs.chain(pairs).sum()
}

fn array(array: &ArraySpec, components: usize) -> Result<(), Refusal> {
    number("array.indices", array.indices.len(), 1, MAX_TASKS)?;
    if array.max_running == Some(0) {
        return invalid("array.max_running: is 0, no task could ever run".into());
    }
    if components > 1 {
        return invalid(format!("array: a job with {components} components cannot be an array"));
    }
    Ok(())
}

fn environment(variables: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let total = variables.iter().map(|(name, value)| name.len() + value.len() + 2).sum();
    bytes("environment", total, MAX_ENVIRONMENT_BYTES)?;
    for (name, value) in variables {
        if name.is_empty() {
            return invalid("environment: a variable has no name".into());
        }
        if name.contains('=') {
            return invalid(format!("environment: the name `{}` has the character `=`", shown(name)));
        }
        no_nul("environment: a name", name)?;
        no_nul("environment: a value", value)?;
    }
    Ok(())
}

/// The name of a dialect. Which there are is known where the program is put together.
pub(crate) fn dialect(dialect: Option<&str>) -> Result<(), Refusal> {
    dialect.map_or(Ok(()), |dialect| identifier("dialect", dialect))
}

/// Whether attributes are not too many, and their names are names.
pub(crate) fn attributes(attributes: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let total = attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
    bytes("attributes", total, MAX_ATTRIBUTE_BYTES)?;
    attributes.keys().try_for_each(|key| name("attributes: a name", key))
}

fn notification(notification: &Notification) -> Result<(), Refusal> {
    match &notification.sink {
        Sink::Mail(address) => {
            let wrong = |why| format!("notifications.sink.mail: the address `{}` {why}", shown(address));
            address::check(address).or_else(|why| invalid(wrong(why)))
        }
        Sink::Exec(command) if command.is_empty() => invalid("notifications.sink.exec: is empty".into()),
        Sink::Exec(command) => text("notifications.sink.exec", command),
    }
}

fn checkpoint(checkpoint: &Checkpoint) -> Result<(), Refusal> {
    signal("checkpoint.signal", checkpoint.signal)
}

fn component(component: &Component) -> Result<(), Refusal> {
    optional("queue", component.queue.as_ref(), name)?;
    optional("account", component.account.as_ref(), name)?;
    optional("class", component.class.as_ref(), name)?;
    optional("reservation", component.reservation.as_ref(), name)?;
    dependencies(&component.dependencies)?;
    launch(&component.launch)?;
    alternatives(&component.alternatives)
}

/// The dependencies of a component.
pub(crate) fn dependencies(dependencies: &Dependencies) -> Result<(), Refusal> {
    let total = dependencies.all_of.iter().map(Vec::len).sum();
    count("dependencies", total, MAX_DEPENDENCIES)?;
    count("dependencies", dependencies.all_of.len(), MAX_DEPENDENCIES)?;
    if dependencies.all_of.iter().any(Vec::is_empty) {
        return invalid("dependencies: a group has no condition, so it could never be met".into());
    }
    dependencies.all_of.iter().flatten().try_for_each(dependency)
}

fn dependency(dependency: &Dependency) -> Result<(), Refusal> {
    let needs_job = !matches!(dependency.kind, DependencyKind::Singleton | DependencyKind::Count(_));
    match dependency.job {
        None if needs_job => invalid("dependencies: a condition names no job".into()),
        Some(job) if !needs_job => invalid(format!("dependencies: singleton and count take no job, {job} is given")),
        _ => number("dependencies.delay_seconds", u64::from(dependency.delay_seconds), 0, MAX_SECONDS),
    }
}

/// Checks the launch of a component or step.
pub(crate) fn launch(launch: &Launch) -> Result<(), Refusal> {
    match &launch.program {
        Program::None => {}
        Program::Script { text, args } => {
            bytes("launch.program.script.text", text.len(), MAX_SCRIPT_BYTES)?;
            no_nul("launch.program.script.text", text)?;
            if !text.starts_with("#!") {
                return invalid("launch.program.script.text: the first line does not name an interpreter (#!)".into());
            }
            arguments("launch.program.script.args", args)?;
        }
        Program::Tasks { argv } => {
            if argv.first().is_none_or(String::is_empty) {
                return invalid("launch.program.tasks.argv: names no command".into());
            }
            arguments("launch.program.tasks.argv", argv)?;
        }
    }
    optional("launch.stdout", launch.stdout.as_ref(), path)?;
    optional("launch.stderr", launch.stderr.as_ref(), path)?;
    optional("launch.stdin", launch.stdin.as_ref(), path)?;
    if let Some(warning) = launch.warning {
        signal("launch.warning.signal", warning.signal)?;
    }
    let grace = launch.kill_grace_seconds.unwrap_or(0);
    number("launch.kill_grace_seconds", u64::from(grace), 0, 86_400)
}

fn arguments(field: &str, args: &[String]) -> Result<(), Refusal> {
    bytes(field, args.iter().map(|arg| arg.len() + 1).sum(), MAX_ARGUMENT_BYTES)?;
    args.iter().try_for_each(|arg| no_nul(field, arg))
}

/// The alternatives of a component.
pub(crate) fn alternatives(alternatives: &[Alternative]) -> Result<(), Refusal> {
    count("alternatives", alternatives.len(), MAX_LIST)?;
    alternatives.iter().try_for_each(alternative)
}

fn alternative(alternative: &Alternative) -> Result<(), Refusal> {
    if let Some(seconds) = alternative.walltime_seconds {
        walltime(seconds)?;
    }
    count("licences", alternative.licences.len(), MAX_LIST)?;
    for (licence, wanted) in &alternative.licences {
        name("licences: a name", licence)?;
        number("licences: a number", u64::from(*wanted), 1, u64::from(MAX_COUNT))?;
    }
    count("requests", alternative.requests.len(), MAX_LIST)?;
    alternative.requests.iter().try_for_each(request)
}

/// A walltime in seconds.
pub(crate) fn walltime(seconds: u64) -> Result<(), Refusal> {
    number("walltime_seconds", seconds, 1, MAX_SECONDS)
}

fn request(request: &Request) -> Result<(), Refusal> {
    let most = u64::from(MAX_COUNT);
    count("request.path", request.path.len(), 16)?;
    for part in &request.path {
        if let Level::Group(group) = &part.level {
            name("request.path: a group", group)?;
        }
        if let Count::Range { min, max } = part.count {
            number("request.path: a least number", u64::from(min), 1, most)?;
            number("request.path: a largest number", u64::from(max), u64::from(min), most)?;
        }
    }
    descending(request)?;
    number("request.tasks", u64::from(request.tasks.unwrap_or(1)), 1, most)?;
    number("request.tasks_per_node", u64::from(request.tasks_per_node.unwrap_or(1)), 1, most)?;
    number("request.cpus_per_task", u64::from(request.cpus_per_task), 1, most)?;
    if let Some(memory) = request.memory {
        number("request.memory.bytes", memory.bytes, 0, MAX_MEMORY_BYTES)?;
    }
    if let Some(gpus) = &request.gpus {
        number("request.gpus.count", u64::from(gpus.count), 0, most)?;
        optional("request.gpus.model", gpus.model.as_ref(), name)?;
    }
    count("request.nodes", request.nodes.len(), MAX_NODE_NAMES)?;
    count("request.excluded_nodes", request.excluded_nodes.len(), MAX_NODE_NAMES)?;
    request.filter.as_ref().map_or(Ok(()), |filter| self::filter(filter, 0))
}

/// A path goes down the tree: groups, then nodes, then what nodes have.
fn descending(request: &Request) -> Result<(), Refusal> {
    let depth = |level: &Level| match level {
        Level::Group(_) => 0,
        Level::Node => 1,
        Level::Socket => 2,
        Level::Core | Level::Gpu => 3,
    };
    let down = request.path.windows(2).all(|pair| {
        let (above, below) = (depth(&pair[0].level), depth(&pair[1].level));
        above < below || (above == 0 && below == 0)
    });
    if down { Ok(()) } else { invalid("request.path: does not go down from groups to nodes, sockets and cores".into()) }
}

fn filter(filter: &NodeFilter, depth: usize) -> Result<(), Refusal> {
    if depth > MAX_FILTER_DEPTH {
        return invalid(format!("request.filter: nests deeper than {MAX_FILTER_DEPTH}"));
    }
    match filter {
        NodeFilter::Has(property) => name("request.filter: a property", property),
        NodeFilter::Compare { property, .. } => name("request.filter: a property", property),
        NodeFilter::All(filters) | NodeFilter::Any(filters) => {
            count("request.filter", filters.len(), MAX_LIST)?;
            filters.iter().try_for_each(|filter| self::filter(filter, depth + 1))
        }
        NodeFilter::Not(filter) => self::filter(filter, depth + 1),
    }
}

/// A node's specification.
pub(crate) fn node(spec: &NodeSpec) -> Result<(), Refusal> {
    identifier("node.name", &spec.name)?;
    number(&format!("node `{}`: cores", spec.name), u64::from(spec.cores), 1, u64::from(MAX_NODE_CORES))?;
    number(&format!("node `{}`: sockets", spec.name), u64::from(spec.sockets), 1, u64::from(spec.cores))?;
    number(&format!("node `{}`: memory_bytes", spec.name), spec.memory_bytes, 0, MAX_MEMORY_BYTES)?;
    count(&format!("node `{}`: gpus", spec.name), spec.gpus.len(), 1_024)?;
    count(&format!("node `{}`: properties", spec.name), spec.properties.len(), MAX_LIST)?;
    spec.gpus.iter().try_for_each(|model| name("node.gpus: a model", model))?;
    spec.properties.keys().try_for_each(|property| name("node.properties: a name", property))
}

/// A placement's set of numbers that a node has `total` of.
pub(crate) fn within(indices: &IndexSet, total: u32) -> bool {
    indices.ranges().last().is_none_or(|(_, last)| *last < total)
}
