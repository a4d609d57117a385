//! Jobs that hold resources for a command: the common part of `salloc` and of `srun` outside an allocation (SL-S-16,
//! SL-C-21, SL-C-22).

use super::{
    forecast, refusals,
    site::rules,
    submission::{Problem, failed, fit_to_deadlines, lead_back, submit, unanswered, verdict},
};
use muster_cli::{
    interrupts::{Interrupts, is_end},
    lease::Lease,
    stderr_line,
};
use muster_client::{Client, ClientError, Moment};
use muster_names::User;
use muster_schemas::{
    CommandId, JobId,
    command::JobSelection,
    job::{ExitStatus, JobSpec, JobState},
    views::{JobDetail, JobView, JobsRequest, OutcomeWord},
};
use muster_slurm::{
    environment::{JobFacts, of_run},
    messages::{AllocationEvent, Refusal, Rejection},
    moment::Now,
    options::Command,
    queries::Failure,
    request::{Caller, Interactive, Program, Rules, Settings, Submission, lower},
};
use std::time::{Duration, Instant};

/// How long a command with an allocation continues without an answer from the system.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// How long one request waits for a start.
const LONGEST_WAIT_SECONDS: u32 = 60;

/// A request for an allocation.
pub struct Wish<'a> {
    /// The command.
    pub command: Command,
    /// The kind of allocation.
    pub by: Interactive,
    /// The command that it will run.
    pub words: Vec<String>,
    /// The options of each component.
    pub settings: &'a [Settings],
    /// The process that asks.
    pub caller: &'a Caller,
    /// The time of the request.
    pub now: &'a Now,
}

impl Wish<'_> {
    /// The job that holds the allocation, with the site's rules for submissions.
    pub fn job(&self, rules: &Rules) -> Result<JobSpec, Problem> {
        let submission = Submission {
            components: self.settings,
            program: Program::Allocation { by: self.by, words: self.words.clone() },
            caller: self.caller,
            rules,
            now: self.now,
        };
        let mut spec = lower(&submission)?;
        lead_back(&mut spec.environment, self.caller);
        Ok(spec)
    }
}

/// An allocation, which lasts as long as this command shows that it lives.
pub struct Allocation {
    /// Its job.
    pub job: JobId,
    /// Its details.
    pub detail: JobDetail,
    lease: Lease,
}

/// Submits a job that holds resources, and waits until it has them.
pub fn allocate(client: &mut Client, wish: &Wish<'_>, interrupts: &Interrupts) -> Result<Allocation, Problem> {
    let command = wish.command;
    let info = client.info(Moment::Now).map_err(|error| unanswered(command, &error))?;
    let mut spec = wish.job(&rules(&info))?;
    forecast::settle(command, client, &mut spec)?;
    fit_to_deadlines(client, command, wish.settings, &mut spec, wish.now)?;
    let own = [
        ("SLURM_CLUSTER_NAME", &info.cluster),
        ("SLURM_SUBMIT_DIR", &wish.caller.directory),
        ("SLURM_SUBMIT_HOST", &wish.caller.host),
    ];
    spec.environment.extend(own.map(|(name, value)| (name.to_owned(), value.clone())));
    let heterogeneous = spec.components.len() > 1;
    // If the command ended here, nobody would know the number of the job.
    interrupts.put_off();
    let answer = submit(command, client, &mut spec)?;
    let job = *answer.jobs.first().ok_or_else(|| failed(command, "the answer names no job"))?;
    let mut canceller = client.another();
    interrupts.handle(move |signal| {
        if is_end(signal) {
            give_up(command, &mut canceller, job);
        }
    });
    let lease = Lease::of(client.another().with_patience(PATIENCE), job);
    let say = |event: AllocationEvent| {
        let is_quiet = wish.settings.iter().any(|settings| settings.is_set("quiet"));
        if let Some(line) = event.line(command, job.number).filter(|_| !is_quiet) {
            stderr_line!("{line}");
        }
    };
    let lost = |error: ClientError| failed(command, error);
    if answer.is_judged
        && let Some(rejection) = verdict(client, job).map_err(lost)?
    {
        return Err(Refusal::Rejected(rejection).into());
    }
    let seen = client.wait_for_plan(job).map_err(lost)?;
    let waits = matches!(seen.state, JobState::Held | JobState::Queued);
    if let Some(seconds) = at_most_seconds(command, wish.settings).filter(|_| waits) {
        let view = wait_at_most(client, job, seconds).map_err(lost)?;
        if view.outcome.is_none() && view.nodes.is_empty() {
            cancel(client, job).map_err(lost)?;
            return Err(Refusal::Rejected(Rejection::NotImmediately).into());
        }
    }
    // The last two lines come when it has its resources.
    let lines = AllocationEvent::before_command(heterogeneous, waits);
    let (before, after) = lines.split_at(lines.len().saturating_sub(2));
    before.iter().for_each(|event| say(*event));
    let started = client.wait_for_start(job, None).map_err(lost)?;
    if started.outcome.is_some() {
        return Err(never_started(command, &started));
    }
    after.iter().for_each(|event| say(*event));
    let detail = client.job(job, Moment::Now).map_err(lost)?;
    Ok(Allocation { job, detail, lease })
}

/// How long `--immediate`, or `--wait` of `salloc`, lets it wait.
fn at_most_seconds(command: Command, settings: &[Settings]) -> Option<u32> {
    let given = |name: &str| settings.iter().find_map(|settings| settings.text(name));
    let immediate = given("immediate").map(|text| text.parse().unwrap_or(0));
    immediate.or_else(|| given("wait").filter(|_| command == Command::Salloc)?.parse().ok())
}

/// Waits for a job's start, up to a limit.
fn wait_at_most(client: &mut Client, job: JobId, seconds: u32) -> Result<JobView, ClientError> {
    let deadline = Instant::now() + Duration::from_secs(seconds.into());
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
        let view = client.wait_for_start(job, Some((left as u32).min(LONGEST_WAIT_SECONDS)))?;
        if view.outcome.is_some() || !view.nodes.is_empty() || left == 0.0 {
            return Ok(view);
        }
    }
}

fn never_started(command: Command, job: &JobView) -> Problem {
    // The log has the job's end.
    refusals::is_known();
    let is_cancelled = job.outcome.as_ref().is_some_and(|outcome| outcome.outcome == OutcomeWord::Cancelled);
    // An interrupt says the same.
    let line = if command == Command::Salloc || is_cancelled {
        format!("{command}: Job allocation {} has been revoked.", job.own_number())
    } else {
        let why = job.outcome.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{command}: error: Unable to allocate resources: the job is over: {why}")
    };
    Problem::Failed(Failure { lines: vec![line], code: 1 })
}

fn cancel(client: &mut Client, job: JobId) -> Result<(), ClientError> {
    client.cancel(CommandId::new_now(), &JobsRequest { jobs: JobSelection::Ids(vec![job]) }).map(drop)
}

/// The user does not want to wait any longer (SL-C-21).
fn give_up(command: Command, client: &mut Client, job: JobId) -> ! {
    if let Err(error) = cancel(client, job) {
        stderr_line!("{command}: error: job {job} may still wait: {error}");
    }
    stderr_line!("{command}: Job allocation {} has been revoked.", job.number);
    std::process::exit(1)
}

impl Allocation {
    /// The facts for the variables of its commands.
    pub fn facts(&self, caller: &Caller) -> Option<JobFacts> {
        facts(&self.detail).map(|facts| JobFacts { submit_host: caller.host.clone(), ..facts })
    }

    /// Lets it last until somebody ends it.
    pub fn leave(self, client: &mut Client) -> Result<(), ClientError> {
        self.lease.end();
        client.keep_job(CommandId::new_now(), self.job, None).map(drop)
    }

    /// Returns it, with the status of its command (SL-I-12).
    pub fn give_back(self, client: &mut Client, status: ExitStatus) -> Result<(), ClientError> {
        drop(self.lease);
        match client.conclude_job(CommandId::new_now(), self.job, status) {
            // Somebody else has ended it.
            Err(error) if error.is_refusal() => Ok(()),
            answer => answer.map(drop),
        }
    }
}

/// The facts for the variables of a running job's commands; `None` if it does not run.
pub fn facts(detail: &JobDetail) -> Option<JobFacts> {
    let facts = of_run(detail)?;
    let (uid, gid) = User::named(&detail.job.owner).map_or((0, 0), |owner| (owner.uid, owner.gid));
    Some(JobFacts { uid, gid, ..facts })
}
