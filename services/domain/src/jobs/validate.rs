//! Limits on jobs and what they launch.

use crate::{
    copies,
    decide::Access,
    dependencies::validate::dependencies,
    fixed,
    jobs::pulled,
    quotas,
    requests::validate::alternatives,
    sharing, staging,
    validate::{
        MAX_ARGUMENT_BYTES, MAX_ATTRIBUTE_BYTES, MAX_COMPONENTS, MAX_ENVIRONMENT_BYTES, MAX_JOB_BYTES, MAX_LIST,
        MAX_SCRIPT_BYTES, MAX_TASKS, bytes, count, identifier, image, invalid, label, name, no_nul, number, optional,
        path, shown, signal, text,
    },
};
use muster_schemas::{
    address,
    command::Refusal,
    event::OutputFiles,
    job::{ArraySpec, Checkpoint, Component, JobSpec, JobType, Launch, Notification, Program, Sink, is_of_operators},
};
use std::collections::BTreeMap;

/// Everything about a submitted job that can be checked without the state.
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
    optional("group", spec.group.as_ref(), name)?;
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
    hands_off(spec)?;
    place_of(spec)?;
    quotas::validate::of_job(spec)?;
    fixed::validate::of_job(spec)?;
    sharing::validate::of_job(spec)?;
    copies::validate::of_job(&spec.copies)?;
    pulled::job(spec)?;
    staging::validate::of_job(&spec.staging, spec.components.len().max(1))?;
    attributes(&spec.attributes)?;
    dialect(spec.dialect.as_deref())?;
    bytes("scripts, arguments, environment and attributes together", carried_bytes(spec), MAX_JOB_BYTES)
}

/// A job that leaves its nodes alone runs nothing but a script on the first one (OAR-T-50, OAR-T-60).
fn hands_off(spec: &JobSpec) -> Result<(), Refusal> {
    let is_of_nodes = |component: &Component| matches!(component.launch.program, Program::Tasks { .. });
    if spec.types.contains(&JobType::HandsOff) && spec.components.iter().any(is_of_nodes) {
        let name = shown(&spec.name);
        return invalid(format!(
            "types: job `{name}` leaves its nodes alone, and runs tasks on them; give it a script"
        ));
    }
    let leaves_alone = spec.types.contains(&JobType::HandsOff) && spec.components.len() > 1;
    if spec.types.contains(&JobType::LeavesAsleep) && !leaves_alone {
        let name = shown(&spec.name);
        return invalid(format!(
            "types: job `{name}` leaves nodes asleep: its script needs a node of its own, and it leaves the others alone"
        ));
    }
    Ok(())
}

/// A job takes the place of one other at most, and an array of none.
fn place_of(spec: &JobSpec) -> Result<(), Refusal> {
    let places = spec.types.iter().filter(|kind| matches!(kind, JobType::TakesPlaceOf(_))).count();
    if places > 1 || places == 1 && spec.array.is_some() {
        return invalid("types: one job takes the place of one other".to_owned());
    }
    Ok(())
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

pub(crate) fn environment(variables: &BTreeMap<String, String>) -> Result<(), Refusal> {
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

/// The name of a dialect. Whether it exists is checked where the program is assembled.
pub(crate) fn dialect(dialect: Option<&str>) -> Result<(), Refusal> {
    dialect.map_or(Ok(()), |dialect| identifier("dialect", dialect))
}

/// What an operator notes about a job is written by nobody else.
pub(crate) fn attributes_of_operators(access: &Access, attributes: &BTreeMap<String, String>) -> Result<(), Refusal> {
    match attributes.keys().find(|name| is_of_operators(name)) {
        Some(name) => access.require_operator(&format!("set the attribute `{}`", shown(name))),
        None => Ok(()),
    }
}

/// Limits on the number of attributes and on their names.
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

/// Checks the mails that a change names. A change names no programs: those run as the owner, whoever changes the job.
pub(crate) fn mails(mails: &[Notification]) -> Result<(), Refusal> {
    count("mails", mails.len(), MAX_LIST)?;
    mails.iter().try_for_each(|mail| match mail.sink {
        Sink::Mail(_) => notification(mail),
        Sink::Exec(_) => invalid("mails: names a program; a change can name mails only".into()),
    })
}

/// Checks files for output.
pub(crate) fn output(output: &OutputFiles) -> Result<(), Refusal> {
    optional("output.stdout", output.stdout.as_ref(), path)?;
    optional("output.stderr", output.stderr.as_ref(), path)
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
    optional("launch.container", launch.container.as_ref(), image)?;
    if let Some(warning) = launch.warning {
        signal("launch.warning.signal", warning.signal)?;
    }
    let grace = launch.kill_grace_seconds.unwrap_or(0);
    number("launch.kill_grace_seconds", u64::from(grace), 0, 86_400)
}

pub(crate) fn arguments(field: &str, args: &[String]) -> Result<(), Refusal> {
    bytes(field, args.iter().map(|arg| arg.len() + 1).sum(), MAX_ARGUMENT_BYTES)?;
    args.iter().try_for_each(|arg| no_nul(field, arg))
}
