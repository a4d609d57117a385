//! When a job would start: `--test-only` (SL-S-24, SL-C-10), and which of several clusters would start it first
//! (SL-S-19).

use super::{
    site::{is_operator, now, unreachable},
    submission::{Problem, refused_job},
};
use muster_cli::stderr_line;
use muster_client::{Client, ClientError, Moment as Latest};
use muster_schemas::{
    Timestamp,
    job::JobSpec,
    views::{ErrorCode, Forecast, QueueView},
};
use muster_slurm::{
    attributes::{Attributes, component},
    hostlist,
    messages::{Refusal, Rejection, would_start},
    options::Command,
    queries::Failure,
};

/// Prints when and where a job would start. Nothing is submitted.
pub fn tell(command: Command, client: &mut Client, spec: JobSpec) -> Result<u8, Problem> {
    let has_several = spec.components.len() > 1;
    let forecast = client.forecast(spec.clone()).map_err(|error| match refused_job(command, client, error, &spec) {
        Problem::Refused(Refusal::Rejected(rejection)) => rejected(command, &rejection),
        other => other,
    })?;
    let Some(start) = forecast.start else { return Err(rejected(command, &Rejection::NodeConfiguration)) };
    let partition = Some(forecast.queue.as_str()).filter(|_| !has_several);
    let nodes = hostlist::compress_sorted(&forecast.nodes);
    let line = would_start(command, forecast.job.number, &shown(start), forecast.cores, &nodes, partition);
    stderr_line!("{line}");
    Ok(0)
}

fn shown(start: Timestamp) -> String {
    start.to_jiff().to_zoned(now().time_zone().clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

fn rejected(command: Command, rejection: &Rejection) -> Problem {
    Problem::Failed(Failure { lines: rejection.of_test(command), code: 1 })
}

/// When a job would start on a cluster: `None` if it never would, or the cluster would refuse it.
///
/// # Errors
/// The cluster does not answer.
pub fn start(command: Command, client: &mut Client, spec: JobSpec) -> Result<Option<Timestamp>, Failure> {
    match client.forecast(spec) {
        Ok(Forecast { start, .. }) => Ok(start),
        Err(ClientError::Refused(body)) => {
            stderr_line!("{command}: error: {}", body.message);
            Ok(None)
        }
        Err(error) => Err(unreachable(command.name(), &error)),
    }
}

/// Settles what depends on the system: the partition of each component, from its list the one that starts it first, and
/// the priority of a job with `--nice`, relative to others (SL-C-13).
///
/// # Errors
/// The system does not answer, or a negative `--nice` is not allowed.
pub fn settle(command: Command, client: &mut Client, spec: &mut JobSpec) -> Result<(), Problem> {
    settle_rank(command, client, spec)?;
    for offset in 0..spec.components.len() {
        let own = |spec: &JobSpec, name: &str| Attributes(&spec.attributes).component(offset, name).map(str::to_owned);
        if let Some(list) = own(spec, component::PARTITION) {
            let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
            choose_partition(command, client, spec, offset, &names)?;
        }
        let nice = own(spec, component::NICE).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        if nice != 0 {
            let usual = usual_priority(command, client, spec.components[offset].queue.as_deref())?;
            let priority = spec.components[offset].priority.unwrap_or(usual);
            spec.components[offset].priority = Some(priority.saturating_sub(nice));
        }
    }
    Ok(())
}

/// Only operators may raise a priority (SL-C-36). At submission, a priority by anybody else is ignored silently, as in
/// Slurm, and a negative `--nice` is refused.
fn settle_rank(command: Command, client: &mut Client, spec: &mut JobSpec) -> Result<(), Problem> {
    let is_ranked = spec.components.iter().any(|component| component.priority.is_some());
    let attributes = Attributes(&spec.attributes);
    let mut nices = (0..spec.components.len()).filter_map(|offset| attributes.component(offset, component::NICE));
    let is_ahead = nices.any(|nice| nice.starts_with('-'));
    // Most jobs use neither option, and need no question to the system.
    if !is_ranked && !is_ahead {
        return Ok(());
    }
    if is_operator(client).map_err(|error| Problem::Failed(unreachable(command.name(), &error)))? {
        return Ok(());
    }
    if is_ahead {
        return Err(Refusal::Rejected(Rejection::Nice).into());
    }
    spec.components.iter_mut().for_each(|component| component.priority = None);
    Ok(())
}

/// If no partition starts it, the first one stays, and the submission reports what is wrong.
fn choose_partition(
    command: Command,
    client: &mut Client,
    spec: &mut JobSpec,
    offset: usize,
    names: &[&str],
) -> Result<(), Failure> {
    let mut best: Option<(Timestamp, &str)> = None;
    for name in names {
        let mut tried = spec.clone();
        tried.components[offset].queue = Some((*name).to_owned());
        let start = match client.forecast(tried) {
            Ok(forecast) => forecast.start,
            // A partition that does not exist leads to a refusal, whatever the others could do.
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => {
                spec.components[offset].queue = Some((*name).to_owned());
                return Ok(());
            }
            Err(ClientError::Refused(_)) => None,
            Err(error) => return Err(unreachable(command.name(), &error)),
        };
        if let Some(start) = start.filter(|start| best.is_none_or(|(known, _)| *start < known)) {
            best = Some((start, name));
        }
    }
    if let Some((_, name)) = best {
        spec.components[offset].queue = Some(name.to_owned());
    }
    Ok(())
}

/// The priority of jobs in a partition that do not set one.
fn usual_priority(command: Command, client: &mut Client, partition: Option<&str>) -> Result<i64, Failure> {
    let page = client.queues(Latest::Now).map_err(|error| unreachable(command.name(), &error))?;
    let is_it = |view: &&QueueView| partition.map_or(view.default, |name| view.spec.name == name);
    Ok(page.queues.iter().find(is_it).map_or(0, |view| view.spec.default_job_priority))
}
