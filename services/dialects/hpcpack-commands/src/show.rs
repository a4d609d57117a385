//! `job view`, `job list`, `job listtasks` (HPC-C-07, HPC-J-26).

use super::make;
use muster_cli::{
    connection::ConnectionOptions,
    exit::{CommandResult, Failure},
    show::{local_time, print_fields},
    story::Story,
    table::{Table, left, printable, right},
    terminal,
};
use muster_client::{Client, JobQuery, Moment};
use muster_hpcpack::{
    description::{Format, values::JobState},
    options::JobCommand,
    shown,
};
use muster_schemas::{
    JobId,
    job::JobState as CoreState,
    views::{JobView, ReasonWord},
};
use std::{collections::BTreeMap, io::Write as _};

/// `job view`: shows a job, its history, or its description.
pub(crate) fn view(connection: &ConnectionOptions, job: JobId, command: &JobCommand) -> CommandResult {
    let mut client = connection.client()?;
    if command.is_set("xml") {
        print!("{}", make::exported(&mut client, job, Format::Xml)?);
        return Ok(0);
    }
    if command.is_set("history") {
        return history(&mut client, job);
    }
    let detail = client.job(job, Moment::Now)?;
    let ahead = priority_ahead(&mut client, &detail.job);
    let fields = shown::fields(&detail.job, ahead, local_time);
    let fields: Vec<(&str, Option<String>)> = fields.into_iter().map(|(name, value)| (name, Some(value))).collect();
    print_fields(&fields)?;
    if command.is_set("detailed") && !detail.tasks.is_empty() {
        println!();
        print_tasks(&mut client, job, &detail.tasks, |_| true)?;
    }
    Ok(0)
}

/// The priority of the job ahead of one that waits; `None` if it is no longer known.
fn priority_ahead(client: &mut Client, job: &JobView) -> Option<i64> {
    let reason = job.reason.as_ref().filter(|reason| reason.code == ReasonWord::BehindJob)?;
    client.job(reason.job?, Moment::Now).ok().map(|detail| detail.job.priority)
}

/// Shows every event of the job, in order: sequence, time, event, actor, and details.
fn history(client: &mut Client, job: JobId) -> CommandResult {
    let events = client.job_events(job, Moment::Now)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut story = Story::default();
    for event in events {
        let text = |key: &str| event[key].as_str().unwrap_or_default();
        let name = shown::event_name(text("type"), &event["data"]);
        let (id, time) = (text("id"), text("time"));
        let (actor, (sentence, below)) = (printable(text("actor")), story.tell(&event));
        writeln!(out, "{id:>7}  {time}  {name:<26}  {actor:<14}  {sentence}")?;
        for line in below {
            writeln!(out, "{:9}{line}", "")?;
        }
    }
    out.flush()?;
    Ok(0)
}

/// `job list`: lists the caller's unfinished jobs, unless options say otherwise.
pub(crate) fn list(connection: &ConnectionOptions, command: &JobCommand) -> CommandResult {
    let mut client = connection.client()?;
    let states = wanted_states(command)?;
    let user = match command.other("user") {
        Some(user) => Some(user.to_owned()),
        None if command.is_set("all") => None,
        None => Some(client.info(Moment::Now)?.caller),
    };
    let with_finished = command.is_set("all") || states.iter().any(|state| is_over(*state));
    let mut query = JobQuery { user, name: command.other("jobname").map(str::to_owned), ..JobQuery::default() };
    if with_finished {
        query.states = ALL_STATES.to_vec();
    }
    query.account = command.other("project").map(str::to_owned);
    let template = command.other("jobtemplate");
    let jobs = client.jobs(&query)?.jobs;
    let is_wanted = |job: &&JobView| {
        let named = job.filtering.as_ref().and_then(|filtering| filtering.template.as_deref()).unwrap_or("Default");
        (states.is_empty() || states.contains(&shown::state(job)))
            && template.is_none_or(|template| template.eq_ignore_ascii_case(named))
    };
    let wanted: Vec<&JobView> = jobs.iter().filter(is_wanted).collect();
    let priorities: BTreeMap<JobId, i64> = jobs.iter().map(|job| (job.id, job.priority)).collect();
    print_jobs(&wanted, &priorities, command)?;
    Ok(0)
}

const ALL_STATES: [CoreState; 7] = [
    CoreState::Held,
    CoreState::Queued,
    CoreState::Launching,
    CoreState::Running,
    CoreState::Suspended,
    CoreState::Finishing,
    CoreState::Finished,
];

fn is_over(state: JobState) -> bool {
    matches!(state, JobState::Finished | JobState::Failed | JobState::Canceled)
}

/// The states in `/state`, separated by commas; `all` means every state.
fn wanted_states(command: &JobCommand) -> Result<Vec<JobState>, Failure> {
    let Some(text) = command.other("state") else { return Ok(Vec::new()) };
    let read = |word: &str| {
        let found = JobState::ALL.iter().find(|state| state.name().eq_ignore_ascii_case(word.trim()));
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = JobState::ALL.iter().map(|state| state.name()).collect();
            Failure::usage(format!("/state: `{word}` is none of all, {}", known.join(", ")))
        })
    };
    if text.eq_ignore_ascii_case("all") {
        return Ok(JobState::ALL.to_vec());
    }
    text.split(',').map(read).collect()
}

/// Whether `/format:list` is given instead of a table.
fn is_list(command: &JobCommand) -> Result<bool, Failure> {
    match command.other("format") {
        None => Ok(false),
        Some(format) if format.eq_ignore_ascii_case("table") => Ok(false),
        Some(format) if format.eq_ignore_ascii_case("list") => Ok(true),
        Some(format) => Err(Failure::usage(format!("/format: `{format}` is neither table nor list"))),
    }
}

fn print_jobs(jobs: &[&JobView], priorities: &BTreeMap<JobId, i64>, command: &JobCommand) -> Result<(), Failure> {
    let ahead = |job: &JobView| priorities.get(&job.reason.as_ref()?.job?).copied();
    if is_list(command)? {
        for job in jobs {
            let fields = shown::fields(job, ahead(job), local_time);
            let fields: Vec<(&str, Option<String>)> =
                fields.into_iter().map(|(name, value)| (name, Some(value))).collect();
            print_fields(&fields)?;
            println!();
        }
        return Ok(());
    }
    let mut table = Table::new([
        right("JOB ID"),
        left("OWNER"),
        left("JOB NAME"),
        left("STATE"),
        left("PRIORITY"),
        left("RESOURCES"),
        left("PENDING REASON"),
    ]);
    for job in jobs {
        table.push([
            job.id.to_string().into(),
            (&job.owner).into(),
            (&job.name).into(),
            shown::state(job).name().into(),
            shown::priority(job.priority).into(),
            shown::size(job).into(),
            shown::pending_reason(job, ahead(job)).unwrap_or_default().into(),
        ]);
    }
    if !table.is_empty() {
        terminal::print_table(&table)?;
    }
    println!("{} matching jobs", jobs.len());
    Ok(())
}

/// `job listtasks`: lists the tasks of a job.
pub(crate) fn list_tasks(connection: &ConnectionOptions, job: JobId, command: &JobCommand) -> CommandResult {
    let mut client = connection.client()?;
    let tasks = client.job(job, Moment::Now)?.tasks;
    let state = command.other("state").filter(|state| !state.eq_ignore_ascii_case("all"));
    // A task of many instances is in the states of all of them.
    let is_wanted = |shown: &str| state.is_none_or(|state| shown.to_lowercase().contains(&state.to_lowercase()));
    print_tasks(&mut client, job, &tasks, is_wanted)?;
    Ok(0)
}

fn print_tasks(
    client: &mut Client,
    job: JobId,
    tasks: &[muster_schemas::views::TaskView],
    is_wanted: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    // Other users see the states of the tasks, but not what they run.
    let described = client.description(job).ok().and_then(|description| description.tasks).unwrap_or_default();
    let mut table = Table::new([
        right("TASK ID"),
        left("TASK NAME"),
        left("TYPE"),
        left("STATE"),
        right("UNITS"),
        left("COMMAND LINE"),
    ]);
    for task in tasks {
        let row = shown::task_row(task, described.tasks.get(task.task as usize));
        if is_wanted(&row[3]) {
            table.push(row.map(Into::into));
        }
    }
    if !table.is_empty() {
        terminal::print_table(&table)?;
    }
    Ok(())
}
