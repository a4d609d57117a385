//! Submission into domains, and the end of a domain.

use crate::{
    decide::{conflict, invalid, not_found},
    jobs::{
        Job,
        decide::endings::{given_up, judged},
    },
    runs::Run,
    state::State,
    validate,
};
use muster_schemas::{
    JobId,
    command::Refusal,
    domains,
    event::{Event, StopReason},
    job::{JobSpec, JobType, Outcome},
};

/// Checks the domains of a job that is submitted. The number of a job that opens a domain with a name becomes that name.
pub(crate) fn complete(state: &State, spec: &mut JobSpec) -> Result<(), Refusal> {
    let opens = |kind: &&JobType| matches!(kind, JobType::Container | JobType::OpensDomain(_));
    let enters = |kind: &&JobType| matches!(kind, JobType::Inner(_) | JobType::InDomain(_));
    if spec.types.iter().filter(opens).count() > 1 || spec.types.iter().filter(enters).count() > 1 {
        return Err(invalid("types: a job opens at most one planning domain and runs in at most one"));
    }
    if spec.types.iter().any(|kind| opens(&kind)) && spec.array.is_some() {
        return Err(invalid("types: an array opens no planning domain"));
    }
    // One could end alone, and what is inside would be left on free resources.
    if spec.types.iter().any(|kind| opens(&kind)) && spec.components.len() > 1 {
        return Err(invalid("types: a job that opens a planning domain has one component"));
    }
    for kind in &mut spec.types {
        match kind {
            JobType::OpensDomain(name) => require_name(name)?,
            JobType::InDomain(name) => {
                require_name(name)?;
                if state.index.domains.opening(name).next().is_none() {
                    let name = validate::shown(name);
                    return Err(not_found(format!("planning domain `{name}` does not exist: no job opens it")));
                }
            }
            JobType::Inner(number) => *kind = domains::entering(&domain_of(state, *number)?),
            _ => {}
        }
    }
    let (opened, entered) = (spec.types.iter().find(opens), spec.types.iter().find(enters));
    if let (Some(JobType::OpensDomain(opened)), Some(JobType::InDomain(entered))) = (opened, entered)
        && opened == entered
    {
        return Err(invalid(format!("types: a job cannot run in `{}`, which it opens", validate::shown(opened))));
    }
    if entered.is_some() && spec.components.iter().any(|component| component.reservation.is_some()) {
        return Err(invalid("reservation: a job inside a planning domain runs in no reservation"));
    }
    Ok(())
}

/// A name of a domain is never a number: those are of jobs.
fn require_name(name: &str) -> Result<(), Refusal> {
    validate::identifier("types: the name of a planning domain", name)?;
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(format!("types: `{name}` is the number of a job, the name of a planning domain is none")));
    }
    Ok(())
}

/// The domain that a job with this number opens (OAR-T-15).
fn domain_of(state: &State, number: JobId) -> Result<String, Refusal> {
    let job = state.job(number);
    let job = job.ok_or_else(|| not_found(format!("job {number} does not exist, or ended too long ago")))?;
    let opens = job.opens_domain().map(|name| name.into_owned());
    let domain = opens.ok_or_else(|| conflict(format!("job {number} opens no planning domain")))?;
    match state.index.domains.opening(&domain).next() {
        Some(_) => Ok(domain),
        None => Err(conflict(format!("job {number} is over, and with it planning domain {domain}"))),
    }
}

impl State {
    /// Jobs that have to end because no job holds resources for their domain any more: those that wait inside (OAR-T-15) and, if
    /// the settings say so, those that run there (OAR-T-16).
    pub(crate) fn left_by_domains(&self) -> impl Iterator<Item = Left<'_>> {
        self.index.domains.inside().flat_map(move |(domain, jobs)| {
            let is_over = self.index.domains.opening(domain).next().is_none();
            let has_run = self.runs_for_domain(domain).next().is_some();
            let ends_runs = self.settings().ends_domain_jobs && !has_run;
            let left = move |id: JobId| {
                let job = self.job(id)?;
                let run = job.run().and_then(|run| self.run(run));
                match run {
                    None if is_over && job.is_waiting() => Some(Left::Waiting(job)),
                    Some(run) if ends_runs && run.stopping.is_none() => Some(Left::Running(run)),
                    _ => None,
                }
            };
            // Most domains are open, and have many jobs.
            let jobs = (is_over || ends_runs).then_some(jobs);
            jobs.into_iter().flatten().filter_map(left).collect::<Vec<_>>()
        })
    }
}

/// A job whose domain is over.
pub(crate) enum Left<'a> {
    Waiting(&'a Job),
    Running(&'a Run),
}

/// Ends what is left by domains.
pub(crate) fn due(state: &State, at_most: usize) -> Vec<Event> {
    let end = |left| match left {
        Left::Running(run) => {
            vec![Event::RunStopping { job: run.job, run: run.id, reason: StopReason::Cancelled, grace_seconds: None }]
        }
        Left::Waiting(job) => {
            let domain = job.domain().unwrap_or_default();
            let outcome = Outcome::LaunchFailed(format!("planning domain {domain} is over: no job opens it any more"));
            judged(job, &outcome).unwrap_or_else(|| vec![given_up(job, outcome)])
        }
    };
    state.left_by_domains().take(at_most).flat_map(end).collect()
}
