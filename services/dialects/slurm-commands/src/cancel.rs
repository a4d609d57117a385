//! `scancel` (SL-C-30 to C-32, SL-M-01 to M-05, SL-M-17).

use super::{
    Ended,
    refusals::{self, tell},
    site::Site,
    wanted,
};
use muster_cli::stderr_line;
use muster_client::{ClientError, Moment};
use muster_schemas::{
    CommandId, JobId, StepId,
    command::{JobEnding, JobSelection},
    resources::IndexSet,
    views::{EndRequest, ErrorCode, JobsRequest, SignalRequest, StepEndRequest, StepSignalRequest},
};
use muster_slurm::{
    job_id::{IdExpression, JobPart, StepName},
    queries::{
        Failure,
        scancel::{Recipients, Scancel, parse},
        words::{question, question_of_step},
    },
    select::{Action, Chosen, Target, choose, left_of, listed, matching},
    show::record::{ArrayTasks, JobRecord},
};
use std::{
    collections::HashMap,
    io::{BufRead as _, Write as _},
};

/// The signal that ends a job (SL-C-30).
const SIGKILL: u8 = 9;
/// The batch script, as a step of the core.
const SCRIPT: StepId = StepId(0);

/// Runs a command line of `scancel`. It continues after a failure.
pub fn run(site: &mut Site, words: &[String]) -> Ended {
    let request = parse(words, &site.surroundings())?;
    let Some(command) = wanted(site, request) else { return Ok(0) };
    if command.ids.is_empty() {
        return by_filter(site, &command);
    }
    let mut status = 0;
    for id in &command.ids {
        refusals::is_new();
        status = status.max(by_id(site, &command, id).unwrap_or_else(|failure| tell(&failure)));
    }
    Ok(status)
}

fn by_filter(site: &mut Site, command: &Scancel) -> Ended {
    // A number can name a user as well; only this host knows whose number it is.
    let user = command.filter.user.as_deref().filter(|user| user.parse::<u32>().is_err());
    // The name is not sent either: a component can have a name of its own (SL-M-17).
    let views = site.current(user, None, false)?;
    let records = as_seen(command, site.records(views, command.filter.needs_details())?);
    let targets = matching(&command.filter, &records, site.parameters()?.whole_hetjob);
    if targets.is_empty() {
        tell_of_no_match(command);
    }
    act(site, command, &targets, &records)
}

fn tell_of_no_match(command: &Scancel) {
    if command.verbosity > 0 {
        stderr_line!("{}", command.filter.nothing_matches());
    }
}

/// A cancelled job counts as ended, unless a signal shall end it sooner.
fn as_seen(command: &Scancel, records: Vec<JobRecord>) -> Vec<JobRecord> {
    if command.signal.is_some() {
        return records;
    }
    records.into_iter().map(JobRecord::over_if_cancelled).collect()
}

fn by_id(site: &mut Site, command: &Scancel, id: &IdExpression) -> Ended {
    let views = site.named(std::slice::from_ref(id))?;
    let records = as_seen(command, site.records(views, command.filter.needs_details())?);
    let whole_hetjob = site.parameters()?.whole_hetjob;
    let chosen = match left_of(&id.job, &command.filter, &records, whole_hetjob) {
        Some(none) if none.is_empty() => {
            tell_of_no_match(command);
            return Ok(0);
        }
        Some(left) => Chosen::Targets(left),
        None => choose(Action::Cancel, &id.job, &records, whole_hetjob)?,
    };
    let targets = match chosen {
        Chosen::Targets(targets) => targets,
        Chosen::Nothing(_) if command.looks_up() => return Err(command.not_there(id)),
        Chosen::Nothing(text) => {
            if command.verbosity > 0 && !command.quiet {
                stderr_line!("scancel: error: {text}");
            }
            return Ok(0);
        }
    };
    match id.step {
        Some(step @ StepName::Number(number)) => {
            let record = listed(&id.job, &records).into_iter().next();
            if command.interactive && !record.is_none_or(|record| confirms(&question_of_step(&record, step))) {
                return Ok(0);
            }
            end_step(site, command, id, &targets, number).map(|()| 0)
        }
        // The batch script stands for the job.
        _ => act(site, command, &targets, &records),
    }
}

fn end_step(
    site: &mut Site,
    command: &Scancel,
    id: &IdExpression,
    targets: &[Target],
    number: u32,
) -> Result<(), Failure> {
    if command.verbosity > 0 {
        stderr_line!("{}", command.announcement(&id.job.to_string(), id.step));
    }
    // Steps count from 1 in the core, where 0 is the batch script.
    let step = StepId(number.saturating_add(1));
    for Target { job, component } in targets.iter().copied() {
        let id = CommandId::new_now();
        let done = match command.signal {
            None => site.client.end_step(id, job, step, &StepEndRequest { component, is_forced: false }),
            Some(signal) => site.client.signal_step(id, job, step, &StepSignalRequest { signal, component }),
        };
        done.map_err(|error| refused(site, job.to_string(), &error))?;
    }
    Ok(())
}

/// The lines of jobs by number: whoever cancels all of many jobs does not look through all lines for each.
struct Lines<'a> {
    all: &'a [JobRecord],
    by_number: HashMap<u64, Vec<&'a JobRecord>>,
}

impl<'a> Lines<'a> {
    fn of(all: &'a [JobRecord]) -> Self {
        let mut by_number: HashMap<u64, Vec<&JobRecord>> = HashMap::new();
        for record in all {
            by_number.entry(target_number(record)).or_default().push(record);
        }
        Self { all, by_number }
    }

    /// The lines of a job, of an array and its tasks, or of all components.
    fn of_job(&self, number: u64) -> &[&'a JobRecord] {
        self.by_number.get(&number).map_or(&[], Vec::as_slice)
    }
}

/// The number that targets name the job of a line by.
fn target_number(record: &JobRecord) -> u64 {
    record.het.as_ref().map_or_else(|| record.array_number(), |het| het.leader)
}

/// Acts on jobs, and continues after a failure.
fn act(site: &mut Site, command: &Scancel, targets: &[Target], records: &[JobRecord]) -> Ended {
    let mut status = 0;
    let lines = Lines::of(records);
    for target in targets.iter().copied() {
        refusals::is_new();
        let record = line_of(target, &lines);
        let record = record.as_ref();
        let shown = record.map_or_else(|| target.job.to_string(), |record| record.shown_id().to_string());
        if command.interactive && !record.is_none_or(|record| confirms(&question(record))) {
            continue;
        }
        if command.verbosity > 0 {
            // An array is named by its number, whichever of its tasks still wait (SL-C-31).
            let is_array = target.job.index.is_none() && record.is_some_and(|record| record.array.is_some());
            let named = if is_array { &target.job.to_string() } else { &shown };
            stderr_line!("{}", command.announcement(named, None));
        }
        let is_repeated = record.is_some_and(|record| record.is_repeated);
        if is_repeated && command.signal.is_none() && !command.ends_repeated {
            let text = "Cannot cancel scrontab jobs without --cron flag.";
            status = tell(&Failure::error("scancel", format_args!("Kill job error on job id {shown}: {text}")));
            continue;
        }
        let waits = waits(target, record, &lines);
        if waits && !command.ends_waiting_jobs() {
            status = tell(&command.still_waits(&shown));
            continue;
        }
        match carry_out(site, command, target, waits) {
            Ok(Reached::System) => {}
            Ok(Reached::Nobody) if manages(site, target, &lines)? => {}
            Ok(Reached::Nobody) => status = tell(&denied(&shown)),
            // It has ended meanwhile.
            Err(error) if matches!(error.code(), Some(ErrorCode::Conflict | ErrorCode::NotFound)) => {
                if command.verbosity > 0 && !command.quiet {
                    let text = "Job/step already completing or completed";
                    stderr_line!("scancel: error: Kill job error on job id {shown}: {text}");
                }
            }
            Err(error) if error.code().is_none() => return Err(site.failure(&error)),
            Err(error) => status = tell(&refused(site, shown, &error)),
        }
    }
    Ok(status)
}

/// Whether no part of it runs. The line of an array describes its waiting tasks, while others can run.
fn waits(target: Target, own: Option<&JobRecord>, lines: &Lines<'_>) -> bool {
    let mut of_array = lines.of_job(target.job.number).iter().filter(|record| record.array.is_some());
    let Some(index) = target.job.index else {
        return own.is_some_and(|record| record.state.is_pending()) && !of_array.any(|record| record.state.is_placed());
    };
    let is_rest = |record: &JobRecord| match record.array.as_ref().map(|array| &array.tasks) {
        Some(ArrayTasks::Waiting(waiting)) => waiting.contains(index),
        Some(ArrayTasks::One(known)) => *known == index,
        None => false,
    };
    of_array.any(|record| record.state.is_pending() && is_rest(record))
}

/// The line of the target; for a task that shares a line with others, its part of that line.
fn line_of(target: Target, lines: &Lines<'_>) -> Option<JobRecord> {
    let known = lines.of_job(target.job.number).iter().find(|record| is_of(target, record));
    let known = known.map(|record| (*record).clone());
    known.or_else(|| {
        let indices = target.job.index.map(|index| IndexSet::from_range(index, index))?;
        let task = JobPart::Tasks { array: target.job.number, indices, max_running: None };
        listed(&task, lines.all).into_iter().next()
    })
}

fn is_of(target: Target, record: &JobRecord) -> bool {
    match (&record.het, target.component) {
        (Some(het), component) => het.leader == target.job.number && het.offset == component.unwrap_or(0),
        (None, _) => {
            let index = match record.array.as_ref().map(|array| &array.tasks) {
                Some(ArrayTasks::One(index)) => Some(*index),
                Some(ArrayTasks::Waiting(_)) | None => None,
            };
            record.array_number() == target.job.number && index == target.job.index
        }
    }
}

/// Who handled the request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// The system, which checks permissions.
    System,
    /// Nobody was there to get the signal, so nobody has checked the sender.
    Nobody,
}

/// Whether the caller may act on the target.
fn manages(site: &mut Site, target: Target, lines: &Lines<'_>) -> Result<bool, Failure> {
    let caller = site.caller()?;
    let of_others = lines.of_job(target.job.number).iter().any(|record| record.user != caller);
    Ok(!of_others || site.is_operator()?)
}

fn carry_out(site: &mut Site, command: &Scancel, target: Target, waits: bool) -> Result<Reached, ClientError> {
    let id = CommandId::new_now();
    let jobs = match target.component {
        Some(component) => JobSelection::Component { job: target.job, component },
        None => JobSelection::Ids(vec![target.job]),
    };
    match (command.signal, target.component) {
        (None, _) => site.client.cancel(id, &JobsRequest { jobs })?,
        // A job without its steps is empty, so it is ended.
        (Some(SIGKILL), _) if waits || command.recipients == Recipients::Steps => {
            let ending = JobEnding { is_forced: true, ..JobEnding::default() };
            site.client.end_jobs(id, &EndRequest { jobs, ending })?
        }
        (Some(signal), component) if command.recipients == Recipients::Steps => {
            return signal_steps(site, target.job, &StepSignalRequest { signal, component });
        }
        // The script runs in the first component.
        (Some(_), Some(component)) if command.recipients == Recipients::Script && component > 0 => {
            return Ok(Reached::Nobody);
        }
        (Some(signal), _) if command.recipients == Recipients::Script => {
            let request = StepSignalRequest { signal, component: None };
            site.client.signal_step(id, target.job, SCRIPT, &request)?
        }
        (Some(signal), Some(component)) => {
            return signal_steps(site, target.job, &StepSignalRequest { signal, component: Some(component) });
        }
        (Some(signal), None) => site.client.signal(id, &SignalRequest { jobs, signal })?,
    };
    Ok(Reached::System)
}

fn signal_steps(site: &mut Site, job: JobId, request: &StepSignalRequest) -> Result<Reached, ClientError> {
    let steps = running(site, job)?;
    for step in steps.iter().copied() {
        site.client.signal_step(CommandId::new_now(), job, step, request)?;
    }
    Ok(if steps.is_empty() { Reached::Nobody } else { Reached::System })
}

fn running(site: &mut Site, job: JobId) -> Result<Vec<StepId>, ClientError> {
    let steps = site.client.steps(job, Moment::Now)?.steps;
    Ok(steps.into_iter().filter(|step| step.ended.is_none()).map(|step| step.step).collect())
}

fn denied(shown: &str) -> Failure {
    Failure::error("scancel", format_args!("Kill job error on job id {shown}: Access/permission denied"))
}

fn refused(site: &Site, shown: String, error: &ClientError) -> Failure {
    match error.code() {
        None => site.failure(error),
        Some(ErrorCode::PermissionDenied) => denied(&shown),
        Some(_) => Failure::error("scancel", format_args!("Kill job error on job id {shown}: {error}")),
    }
}

fn confirms(question: &str) -> bool {
    let mut out = std::io::stdout();
    let _ = out.write_all(question.as_bytes()).and_then(|()| out.flush());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).is_ok_and(|_| answer.trim_start().starts_with(['y', 'Y']))
}
