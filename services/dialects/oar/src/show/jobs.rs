//! The forms of `oarstat`.

use crate::{
    life::state::State,
    options::date,
    text::{hours, printable},
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write};

/// An event of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in seconds since the epoch.
    pub at: i64,
    /// Its name, such as `WALLTIME`.
    pub name: String,
    /// What happened.
    pub text: String,
}

/// A job as `oarstat` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: u64,
    /// The id of its array.
    pub array: u64,
    /// Its index there, from 1.
    pub index: u64,
    /// Its name; may be empty.
    pub name: String,
    /// Its project; may be empty.
    pub project: String,
    /// Its user.
    pub owner: String,
    /// Its state.
    pub state: State,
    /// Its requests, as `-l` has them.
    pub requests: Vec<String>,
    /// Its types.
    pub types: Vec<String>,
    /// The jobs that must end before.
    pub dependencies: Vec<u64>,
    /// Its resources.
    pub resources: Vec<u32>,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// Its queue.
    pub queue: String,
    /// Its command; empty for a shell.
    pub command: String,
    /// How its command ended, as `wait` tells it.
    pub wait_status: Option<u32>,
    /// Its working directory.
    pub directory: String,
    /// The file of its output.
    pub stdout: String,
    /// The file of its errors.
    pub stderr: String,
    /// Whether it is interactive.
    pub is_interactive: bool,
    /// Its filter.
    pub properties: String,
    /// Whether it is a reservation.
    pub is_reservation: bool,
    /// Its walltime, in seconds.
    pub walltime: i64,
    /// When it was submitted.
    pub submitted: i64,
    /// When it started.
    pub start: Option<i64>,
    /// When it ended.
    pub stop: Option<i64>,
    /// When it is to start.
    pub predicted_start: Option<i64>,
    /// The name of its isolation group.
    pub isolation_group: String,
    /// The command line of its submission, for those who may see it.
    pub initial_request: String,
    /// Its message.
    pub message: String,
    /// The job that it takes the place of; 0 for none.
    pub replaces: u64,
    /// Its events.
    pub events: Vec<Event>,
}

const HEADER: &str = "Job id     Name           User           Submission Date     S Queue\n\
                      ---------- -------------- -------------- ------------------- - ----------\n";

/// The table of jobs.
pub fn table(jobs: &[Job], zone: &TimeZone) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let rows = jobs.iter().map(|job| row(job, &job.id.to_string(), job.state.letter(), zone));
    rows.fold(HEADER.to_owned(), |out, row| out + &row)
}

fn row(job: &Job, id: &str, letter: char, zone: &TimeZone) -> String {
    format!(
        "{} {} {} {} {letter} {}\n",
        cell(id, 10),
        cell(&job.name, 14),
        cell(&job.owner, 14),
        cell(&date::written(job.submitted, zone), 19),
        cell(&job.queue, 10)
    )
}

/// The table of the jobs of arrays: `oarstat --array`.
pub fn array_table(jobs: &[Job], zone: &TimeZone) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "Job id    A. id     A. index  Name       User     Submission Date     S Queue\n\
         --------- --------- --------- ---------- -------- ------------------- - --------\n",
    );
    for job in jobs {
        let _ = writeln!(
            out,
            "{} {} {} {} {} {} {} {}",
            cell(&job.id.to_string(), 9),
            cell(&job.array.to_string(), 9),
            cell(&job.index.to_string(), 9),
            cell(&job.name, 10),
            cell(&job.owner, 8),
            cell(&date::written(job.submitted, zone), 19),
            job.state.letter(),
            cell(&job.queue, 8)
        );
    }
    out
}

/// The table of jobs with one line for each array: `oarstat --compact`. Its number has an `@`, and its state is a dash
/// unless all its jobs have the same.
pub fn compact_table(jobs: &[Job], zone: &TimeZone) -> String {
    let mut arrays: BTreeMap<u64, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        arrays.entry(job.array).or_default().push(job);
    }
    let mut out = if jobs.is_empty() { String::new() } else { HEADER.to_owned() };
    for (array, members) in arrays {
        match members[..] {
            [only] => out += &row(only, &only.id.to_string(), only.state.letter(), zone),
            [first, ..] => {
                let letter = first.state.letter();
                let is_same = members.iter().all(|member| member.state.letter() == letter);
                out += &row(first, &format!("{array}@"), if is_same { letter } else { '-' }, zone);
            }
            [] => {}
        }
    }
    out
}

/// A cell of a width, cut or filled up.
fn cell(text: &str, width: usize) -> String {
    let mut cell: String = text.chars().take(width).map(printable).collect();
    cell.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
    cell
}

/// The states alone: `oarstat -s`.
pub fn states(jobs: &[Job]) -> String {
    jobs.iter().fold(String::new(), |out, job| out + &format!("{}: {}\n", job.id, job.state))
}

/// The raw status of a command, and its parts: code, signal and core dump (OAR-C-09).
pub fn exit_code(wait_status: u32) -> String {
    format!("{wait_status} ({},{},{})", wait_status >> 8, wait_status & 127, wait_status & 128)
}

/// Everything about jobs: `oarstat -f`.
pub fn full(jobs: &[Job], zone: &TimeZone) -> String {
    jobs.iter().fold(String::new(), |out, job| out + &full_job(job, zone))
}

fn full_job(job: &Job, zone: &TimeZone) -> String {
    let ids: Vec<String> = job.resources.iter().map(ToString::to_string).collect();
    let dependencies: Vec<String> = job.dependencies.iter().map(ToString::to_string).collect();
    let moment = |at: i64| date::written(at, zone);
    let prediction = job.predicted_start.map_or_else(|| "no prediction".to_owned(), moment);
    let mut lines = vec![
        ("job_array_id", job.array.to_string()),
        ("job_array_index", job.index.to_string()),
        ("name", job.name.clone()),
        ("project", job.project.clone()),
        ("owner", job.owner.clone()),
        ("state", job.state.to_string()),
        ("wanted_resources", wanted(job)),
        ("types", job.types.join(", ")),
        ("dependencies", dependencies.join(" ")),
        ("assigned_resources", ids.join("+")),
        ("assigned_hostnames", job.nodes.join("+")),
        ("queue", job.queue.clone()),
        ("command", job.command.clone()),
    ];
    lines.extend(job.wait_status.map(|status| ("exit_code", exit_code(status))));
    lines.extend([
        ("launchingDirectory", job.directory.clone()),
        ("stdout_file", job.stdout.clone()),
        ("stderr_file", job.stderr.clone()),
        ("jobType", kind(job).to_owned()),
        ("properties", job.properties.clone()),
        ("reservation", reservation(job).to_owned()),
        ("walltime", hours(job.walltime)),
        ("submissionTime", moment(job.submitted)),
    ]);
    lines.extend(job.start.map(|start| ("startTime", moment(start))));
    lines.extend(job.stop.map(|stop| ("stopTime", moment(stop))));
    lines.extend([
        ("cpuset_name", job.isolation_group.clone()),
        ("initial_request", job.initial_request.clone()),
        ("message", job.message.clone()),
        ("scheduledStart", prediction),
        ("resubmit_job_id", job.replaces.to_string()),
        ("events", String::new()),
    ]);
    let one_line = |text: &str| text.chars().map(printable).collect::<String>();
    let mut out = format!("Job_Id: {}\n", job.id);
    for (name, value) in lines {
        let _ = writeln!(out, "    {name} = {}", one_line(&value));
    }
    for event in &job.events {
        let _ = writeln!(out, "{}> {}:{}", moment(event.at), one_line(&event.name), one_line(&event.text));
    }
    out + "\n"
}

fn wanted(job: &Job) -> String {
    job.requests.iter().fold(String::new(), |out, request| out + &format!("-l \"{request}\" "))
}

const fn kind(job: &Job) -> &'static str {
    if job.is_interactive { "INTERACTIVE" } else { "PASSIVE" }
}

const fn reservation(job: &Job) -> &'static str {
    if job.is_reservation { "Scheduled" } else { "None" }
}

/// The events of jobs: `oarstat -e`.
pub fn events(jobs: &[Job], zone: &TimeZone) -> String {
    let mut out = String::new();
    for job in jobs {
        for event in &job.events {
            let text: String = event.text.chars().map(printable).collect();
            let _ = writeln!(out, "{}> [{}] {}: {text}", date::written(event.at, zone), job.id, event.name);
        }
    }
    out
}

/// The jobs as a document, by id (OAR-C-09).
pub fn document(jobs: &[Job]) -> Value {
    let by_id: BTreeMap<String, Value> = jobs.iter().map(|job| (job.id.to_string(), document_of(job))).collect();
    json!(by_id)
}

fn document_of(job: &Job) -> Value {
    let event =
        |event: &Event| json!({ "date": event.at, "type": event.name, "description": event.text, "job_id": job.id });
    let mut document = json!({
        "Job_Id": job.id,
        "array_id": job.array,
        "array_index": job.index,
        "name": job.name,
        "project": job.project,
        "owner": job.owner,
        "state": job.state.word(),
        "wanted_resources": wanted(job),
        "types": job.types,
        "dependencies": job.dependencies,
        "assigned_resources": job.resources,
        "assigned_network_address": job.nodes,
        "queue": job.queue,
        "command": job.command,
        "exit_code": job.wait_status.map(|status| status >> 8),
        "launchingDirectory": job.directory,
        "stdout_file": job.stdout,
        "stderr_file": job.stderr,
        "jobType": kind(job),
        "properties": job.properties,
        "reservation": reservation(job),
        "walltime": job.walltime,
        "submissionTime": job.submitted,
        "startTime": job.start.unwrap_or(0),
        "stopTime": job.stop.unwrap_or(0),
        "scheduledStart": job.predicted_start,
        "message": job.message,
        "cpuset_name": job.isolation_group,
        "resubmit_job_id": job.replaces,
        "events": job.events.iter().map(event).collect::<Vec<_>>(),
    });
    if let Some(entries) = document.as_object_mut().filter(|_| !job.initial_request.is_empty()) {
        entries.insert("initial_request".to_owned(), json!(job.initial_request));
    }
    document
}
