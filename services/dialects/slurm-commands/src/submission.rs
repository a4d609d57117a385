//! The common part of the commands that submit jobs: `sbatch`, `salloc` and `srun`.

#[cfg(test)]
mod tests;

use super::{
    limits::own_limits,
    refusals,
    site::{away, group_name, host, site_options, unreachable, user_name, variable, version_line, was_refused},
};
use muster_cli::{caller, connection::ConnectionOptions, stderr_line, verdict::wait_until_decided};
use muster_client::{Client, ClientError, Moment};
use muster_schemas::{
    CommandId, JobId,
    job::{Component, Dependency, DependencyKind, JobSpec},
    resources::Alternative,
    time::Timestamp,
    views::{CommandAnswer, ErrorBody, ErrorCode, QueueView},
};
use muster_slurm::{
    attributes::{Attributes, component},
    environment, features,
    messages::{ExitStatuses, Refusal, Rejection},
    moment::Now,
    options::{Command, CommandLine, SiteOptions, help, site, usage},
    queries::Failure,
    request::{Caller, Names, Settings, limits_until_deadline, listing, seconds_until, warnings},
    words::refused_limit,
};
use nix::unistd::{Gid, Uid};
use std::{collections::BTreeMap, time::Duration};

/// Why nothing was submitted or started.
pub enum Problem {
    /// For a reason that Slurm has words for.
    Refused(Refusal),
    /// For another reason.
    Failed(Failure),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Problem {
    /// The message and exit status of the command.
    pub fn failure(self, command: Command) -> Failure {
        let chosen = ExitStatuses::from_variables(variable);
        if let Self::Refused(Refusal::Rejected(Rejection::Filter(_))) = self {
            // The log has that job.
            refusals::is_known();
        }
        match self {
            Self::Refused(refusal) => Failure { lines: refusal.lines(command), code: refusal.exit_status(chosen) },
            // The exit status that the caller chose for every error (SL-E-11).
            Self::Failed(failure) if failure.code == 1 => Failure { code: chosen.error.unwrap_or(1), ..failure },
            Self::Failed(failure) => failure,
        }
    }
}

/// Reports any other error.
pub fn failed(command: Command, text: impl std::fmt::Display) -> Problem {
    Problem::Failed(Failure::error(command.name(), text))
}

/// The text that a command line asks to print instead of doing anything.
pub fn printed_only(command: Command, connection: &ConnectionOptions, line: &CommandLine) -> Option<String> {
    let wanted = ["help", "usage", "version"].into_iter().find(|option| line.gives(option))?;
    Some(match wanted {
        "help" => help(command, known_options(connection)),
        "usage" => usage(command, known_options(connection)),
        _ => version_line(connection.patient_client().ok()),
    })
}

/// The options that the site adds, if it can be asked at once.
fn known_options(connection: &ConnectionOptions) -> SiteOptions {
    let client = connection.patient_client().ok();
    let info = client.and_then(|client| client.waiting(Duration::ZERO).info(Moment::Now).ok());
    info.map(|info| site_options(&info)).unwrap_or_default()
}

/// Reads options. One that Slurm does not have may be one of the site, which is only asked then (SL-S-22).
///
/// # Errors
/// The options are refused, or the site does not answer.
pub fn with_site_options<T>(
    command: Command,
    connection: &ConnectionOptions,
    read: impl Fn(SiteOptions) -> Result<T, Refusal>,
) -> Result<T, Problem> {
    match read(SiteOptions::default()) {
        Err(refusal) if refusal.is_unknown_option() => {
            let mut client = connection.patient_client().map_err(|error| failed(command, error))?;
            let info = client.info(Moment::Now).map_err(|error| unanswered(command, &error))?;
            Ok(read(site_options(&info))?)
        }
        read => Ok(read?),
    }
}

/// Prints the options before anything is done.
pub fn tell(command: Command, line: &CommandLine, settings: &[Settings]) {
    let verbosity = line.verbosity().max(environment::verbosity(command, variable));
    for settings in settings {
        if verbosity > 0 {
            listing(command, settings, verbosity).iter().for_each(|line| stderr_line!("{line}"));
        }
        warnings(command, settings).iter().for_each(|warning| stderr_line!("{warning}"));
    }
}

/// This process, with the variable by which commands inside the job find the same instance.
pub fn caller(command: Command, connection: &ConnectionOptions, words: &[String]) -> Result<Caller, Problem> {
    let process = caller::Caller::this_process(connection).map_err(|error| failed(command, error))?;
    let mut environment = process.environment;
    environment.retain(|(name, _)| !NOT_INHERITED.contains(&name.as_str()));
    for (name, value) in process.instance {
        environment.retain(|(known, _)| known != name);
        environment.push((name.to_owned(), value));
    }
    let line: Vec<&str> = std::iter::once(command.name()).chain(words.iter().map(String::as_str)).collect();
    Ok(Caller {
        names: Names { user: user_name, group: group_name },
        uid: Uid::effective().as_raw(),
        gid: Gid::effective().as_raw(),
        directory: process.directory,
        environment,
        // In octal digits, like `SLURM_UMASK` (SL-E-11).
        umask: variable("SLURM_UMASK").and_then(|text| u32::from_str_radix(&text, 8).ok()).unwrap_or(process.umask)
            & 0o777,
        host: host(),
        session: nix::unistd::getsid(None).map_or(0, |session| session.as_raw().unsigned_abs()),
        submit_line: line.join(" "),
    })
}

/// The text of a `--nodefile`, if it can be read.
pub fn text_of(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The variables by which commands find an instance. Its secret is not among them.
const LEADING: [&str; 2] = ["MUSTER_DATA", "MUSTER_SERVER"];
/// Further variables needed to reach one.
const REACHING: [&str; 2] = ["MUSTER_CA", "MUSTER_CLEAR_TOKEN"];

/// Lets commands inside a job or step find the instance of their submitter, whatever `--export` leaves of its
/// environment: Slurm's daemon gives `SLURM_CONF` to each of them (SL-E-13). If the environment names another instance,
/// that one counts.
pub fn lead_back(environment: &mut BTreeMap<String, String>, caller: &Caller) {
    let is_leading = |(name, value): &&(String, String)| {
        LEADING.iter().chain(&REACHING).any(|known| known == name) && !value.is_empty()
    };
    let own: BTreeMap<String, String> = caller.environment.iter().filter(is_leading).cloned().collect();
    let named = |name: &&str| environment.get(*name).filter(|value| !value.is_empty());
    let is_another = |name: &&str| named(name).is_some_and(|value| own.get(*name) != Some(value));
    // The address of a gateway would override a named folder.
    if !LEADING.iter().any(is_another) {
        environment.extend(own);
    }
}

/// The submitter's secret, and the variable of the submitting job.
const NOT_INHERITED: [&str; 2] = ["MUSTER_TOKEN", "MUSTER_JOB_ID"];

/// Adds the soft limits of this process, for what it submits or launches (SL-E-13).
pub fn carry_limits(caller: &mut Caller) {
    caller.environment.retain(|(name, _)| !name.starts_with(environment::LIMIT_VARIABLE));
    caller.environment.extend(own_limits());
}

/// Removes the variables of the job inside which a new one is submitted.
pub fn forget_outer_job(caller: &mut Caller) {
    caller.environment.retain(|(name, _)| !is_of_outer_job(name));
}

/// Whether a variable describes the job inside which a command is called, so that it would be wrong in another one.
pub fn is_of_outer_job(name: &str) -> bool {
    site::is_variable(name)
        || [
            "SLURM_JOB",
            "SLURM_STEP",
            "SLURM_ARRAY_",
            "SLURM_HET_",
            "SLURM_PACK_",
            "SLURM_NTASKS",
            "SLURM_TASKS_PER_NODE",
        ]
        .iter()
        .any(|start| name.starts_with(start))
        || ["_HET_GROUP_", "_PACK_GROUP_"].iter().any(|part| name.contains(part))
        || matches!(
            name,
            "SLURM_NPROCS" | "SLURM_CPUS_PER_TASK" | "SRUN_CPUS_PER_TASK" | "SLURM_NNODES" | "SLURM_NODELIST"
        )
}

/// The verdict of the submission filters on a job: nothing if it is in the queue, else why they refused it (SL-S-12,
/// SL-S-21).
pub fn verdict(client: &mut Client, job: JobId) -> Result<Option<Rejection>, ClientError> {
    let view = wait_until_decided(client, job)?;
    if !was_refused(&view) {
        return Ok(None);
    }
    let said = view.filtering.and_then(|filtering| filtering.message);
    let detail = view.outcome.and_then(|outcome| outcome.detail);
    Ok(Some(Rejection::Filter(said.or(detail).unwrap_or_else(|| "the job was refused".to_owned()))))
}

/// Gives a job with a deadline but no time limit the default of its partition, or the time left until the deadline if
/// that is less; the later it starts, the less (SL-C-13). The same goes for a job without any time limit in a
/// reservation, which must end before the reservation does.
///
/// # Errors
/// The system does not answer.
pub fn fit_to_deadlines(
    client: &mut Client,
    command: Command,
    settings: &[Settings],
    spec: &mut JobSpec,
    now: &Now,
) -> Result<(), Problem> {
    if spec.components.iter().all(|component| component.deadline.is_none() && component.reservation.is_none()) {
        return Ok(());
    }
    let lost = |error: ClientError| unanswered(command, &error);
    let queues = client.queues(Moment::Now).map_err(lost)?.queues;
    let reservations = match spec.components.iter().any(|component| component.reservation.is_some()) {
        true => client.reservations(Moment::Now).map_err(lost)?.reservations,
        false => Vec::new(),
    };
    for (component, settings) in spec.components.iter_mut().zip(settings) {
        let is_its =
            |queue: &&QueueView| component.queue.as_ref().map_or(queue.default, |name| *name == queue.spec.name);
        let queue = queues.iter().find(is_its).map(|queue| &queue.spec);
        let usual = queue.and_then(|queue| queue.default_walltime_seconds.or(queue.max_walltime_seconds));
        let has_limit = usual.is_some() || component.alternatives.iter().any(|one| one.walltime_seconds.is_some());
        let reservation =
            reservations.iter().map(|one| &one.spec).find(|one| component.reservation.as_ref() == Some(&one.name));
        let (opens, closes) = match (component.deadline, reservation) {
            (Some(deadline), _) => (None, deadline),
            (None, Some(reservation)) if !has_limit && !reservation.is_flexible => {
                (Some(reservation.start), reservation.end)
            }
            (None, _) => continue,
        };
        let until = |moment: Option<Timestamp>| moment.and_then(|moment| seconds_until(moment, now)).unwrap_or(0);
        let ahead = until(component.begin).max(until(opens));
        let Some(room) = seconds_until(closes, now).and_then(|room| room.checked_sub(ahead)) else { continue };
        let may_be_less = !settings.is_set("time") || settings.is_set("time-min");
        let limited = |alternative: &Alternative| {
            let limit = alternative.walltime_seconds.or(usual).unwrap_or(room);
            let limits = match may_be_less && limit >= room {
                true => limits_until_deadline(settings, room),
                false => vec![limit],
            };
            let with = |limit| Alternative { walltime_seconds: Some(limit), ..alternative.clone() };
            limits.into_iter().map(with).collect::<Vec<_>>()
        };
        component.alternatives = component.alternatives.iter().flat_map(limited).collect();
        component.deadline = Some(closes);
    }
    Ok(())
}

/// Submits a job. An unknown job among its dependencies has ended: a job that only waits for its start or end need not
/// wait, and only its outcome is lost (SL-C-20).
pub fn submit(command: Command, client: &mut Client, spec: &mut JobSpec) -> Result<CommandAnswer, Problem> {
    loop {
        let refused = match client.submit(CommandId::new_now(), std::slice::from_ref(spec)) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let is_met = unknown_job(&refused).is_some_and(|job| end_of_unknown_job_is_met(spec, &job));
        if !is_met {
            return Err(refused_job(command, client, refused, spec));
        }
    }
}

/// The system does not answer: nothing was submitted.
pub fn unanswered(command: Command, error: &ClientError) -> Problem {
    if !error.may_pass() {
        return Problem::Failed(unreachable(command.name(), error));
    }
    refusals::is_known();
    Problem::Refused(Refusal::Rejected(Rejection::Other(away(error))))
}

/// The job that a refusal calls unknown.
fn unknown_job(refused: &ClientError) -> Option<String> {
    let ClientError::Refused(ErrorBody { code: ErrorCode::NotFound, message }) = refused else { return None };
    let (_, behind) = message.split_once("job ")?;
    Some(behind.split_once(" does not exist")?.0.to_owned())
}

/// Removes conditions on the start or end of this job, together with their alternatives. Returns whether there were
/// any.
fn end_of_unknown_job_is_met(spec: &mut JobSpec, unknown: &str) -> bool {
    let is_met = |dependency: &Dependency| {
        matches!(dependency.kind, DependencyKind::Started | DependencyKind::Ended)
            && dependency.job.is_some_and(|job| job.to_string() == unknown)
    };
    let mut was_found = false;
    for component in &mut spec.components {
        let groups = &mut component.dependencies.all_of;
        let before = groups.len();
        groups.retain(|group| !group.iter().any(is_met));
        was_found |= groups.len() < before;
    }
    was_found
}

/// A refusal of the system in Slurm's words (SL-C-09).
pub fn refused(command: Command, error: ClientError, spec: &JobSpec) -> Problem {
    let ClientError::Refused(ErrorBody { code, message }) = error else { return unanswered(command, &error) };
    if code == ErrorCode::Unavailable {
        return unanswered(command, &ClientError::Refused(ErrorBody { code, message }));
    }
    let says = |text: &str| message.contains(text);
    // The message names the queue: any component can have named it.
    let partition = || message.split('`').nth(1).unwrap_or_default().to_owned();
    Problem::Refused(Refusal::Rejected(match code {
        ErrorCode::NotFound if says("account: ") => Rejection::Account,
        ErrorCode::NotFound | ErrorCode::PermissionDenied if says("class: ") => Rejection::Qos,
        ErrorCode::NotFound if says("queue `") => Rejection::Partition(partition()),
        ErrorCode::NotFound | ErrorCode::PermissionDenied if says("reservation `") => Rejection::Reservation,
        ErrorCode::NotFound | ErrorCode::Conflict if says("job ") => Rejection::Dependency,
        ErrorCode::PermissionDenied => Rejection::Permission,
        ErrorCode::LimitReached if says("walltime_seconds") => Rejection::TimeLimit,
        ErrorCode::LimitReached if says("nodes: ") && says(" than queue `") => Rejection::NodeCount,
        ErrorCode::LimitReached => Rejection::Policy(refused_limit(&message).map(str::to_owned)),
        ErrorCode::Invalid if says("licence") => Rejection::Licence,
        ErrorCode::Invalid if says("array") => Rejection::Array,
        ErrorCode::Invalid if says("dependenc") => Rejection::Dependency,
        ErrorCode::Invalid if says("memory") => Rejection::Memory,
        ErrorCode::Invalid if says("walltime_seconds") => Rejection::TimeLimit,
        ErrorCode::Invalid if says("asks for node `") || says("excludes node `") => Rejection::NodeName,
        ErrorCode::Invalid if says("request.path") && says("is not between") => Rejection::CpuCount,
        // More than the partition has, not just more than its matching nodes have.
        ErrorCode::Invalid if says("cores, the nodes of queue `") => Rejection::CpuCount,
        ErrorCode::Invalid if says(" in queue `") && spec.components.iter().all(takes_any_node) => Rejection::NodeCount,
        ErrorCode::Invalid if says("can never run") => Rejection::NodeConfiguration,
        _ => Rejection::Other(message),
    }))
}

/// Whether a component could run on any nodes, if there were enough.
fn takes_any_node(component: &Component) -> bool {
    let mut requests = component.alternatives.iter().flat_map(|way| &way.requests);
    requests.all(|request| {
        request.filter.is_none()
            && request.nodes.is_empty()
            && request.excluded_nodes.is_empty()
            && request.gpus.is_none()
    })
}

/// Like [`refused`], but if a constraint names a feature that no node has, that is the reason (SL-C-09).
pub fn refused_job(command: Command, client: &mut Client, error: ClientError, spec: &JobSpec) -> Problem {
    let problem = refused(command, error, spec);
    let is_size = matches!(&problem, Problem::Refused(Refusal::Rejected(Rejection::NodeConfiguration)));
    if is_size && names_unknown_feature(client, spec) { Refusal::Rejected(Rejection::Feature).into() } else { problem }
}

fn names_unknown_feature(client: &mut Client, spec: &JobSpec) -> bool {
    let attributes = Attributes(&spec.attributes);
    let constraints =
        (0..spec.components.len()).filter_map(|offset| attributes.component(offset, component::CONSTRAINT));
    let named: Vec<String> = constraints.flat_map(features::names).collect();
    if named.is_empty() {
        return false;
    }
    // Without an answer the job gets the benefit of the doubt.
    let Ok(page) = client.nodes(Moment::Now) else { return false };
    let is_known = |name: &String| page.nodes.iter().any(|node| node.spec.properties.contains_key(name));
    !named.iter().all(is_known)
}
