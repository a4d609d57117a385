//! `muster logs`: what a job wrote.
//!
//! While the job runs, a step inside it reads the file where the job writes it: on its first node, as its owner. The
//! output of the step comes through the gateway like that of any other step. So only those who may manage the job can
//! read it, no service reads files for users, and no shared file system is needed. After the job nothing of it runs
//! that could read, so the file is looked for on this host, with the rights of the caller.

use super::step::{self, Said};
use crate::{
    cli::{BindOptions, ConnectionOptions, LogsOptions, MpiKind, StepRunOptions},
    exit::{CommandResult, Failure, Status},
    output_files::{self, Stream},
};
use muster_cli::stderr_line;
use muster_client::{Client, Moment};
use muster_schemas::{JobId, job::JobState, views::JobDetail};
use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom},
};

/// The longest time between the end of a job's steps and the end of the job.
const END_SECONDS: u32 = 10;

/// Shows what a job wrote.
pub fn logs(connection: &ConnectionOptions, options: &LogsOptions) -> CommandResult {
    let mut client = connection.client()?;
    let mut detail = readable(&mut client, options.job)?;
    if options.path {
        println!("{}", file_of(&detail, options)?);
        return Ok(0);
    }
    if options.follow && is_waiting(&detail) {
        client.wait_for_start(options.job, None)?;
        detail = readable(&mut client, options.job)?;
    }
    let path = file_of(&detail, options)?;
    let Some(said) = inside(&mut client, &detail, options, &path)? else {
        return on_this_host(&detail, &path, From::Lines(options.lines));
    };
    // The job ends its steps shortly before it ends itself. If it keeps running, somebody ended this step alone.
    if !options.follow || client.wait_for_end(options.job, END_SECONDS)?.outcome.is_none() {
        return Ok(said.status);
    }
    let detail = readable(&mut client, options.job)?;
    // The end of the job also ended this step, which may have missed the last output.
    let is_shown = options.lines.is_none() && on_this_host(&detail, &path, From::Byte(said.bytes)).is_ok();
    if !is_shown {
        stderr_line!("muster: job {} has ended; its last lines may be missing here", options.job);
    }
    Ok(0)
}

/// The job, if the caller may read its output.
fn readable(client: &mut Client, job: JobId) -> Result<JobDetail, Failure> {
    let detail = client.job(job, Moment::Now)?;
    if detail.redacted {
        let text = format!("only {} and operators may read what job {job} wrote", detail.job.owner);
        return Err(Failure::new(Status::NoPermission, text));
    }
    if let Some(array) = &detail.job.array {
        let tasks = array.total;
        return Err(Failure::usage(format!("job {job} is an array of {tasks} tasks: name one, such as {job}_0")));
    }
    Ok(detail)
}

fn is_waiting(detail: &JobDetail) -> bool {
    matches!(detail.job.state, JobState::Held | JobState::Queued | JobState::Launching)
}

fn file_of(detail: &JobDetail, options: &LogsOptions) -> Result<String, Failure> {
    let errors = || output_files::path(detail, Stream::Errors).filter(|_| options.stderr);
    let path = errors().or_else(|| output_files::path(detail, Stream::Output));
    path.ok_or_else(|| Failure::failed(format!("job {} starts no program that could write", detail.job.id)))
}

/// Reads inside the running job; `None` if nothing can run inside it.
fn inside(client: &mut Client, detail: &JobDetail, options: &LogsOptions, path: &str) -> Result<Option<Said>, Failure> {
    if detail.job.state != JobState::Running {
        return Ok(None);
    }
    let lines = options.lines.map_or_else(|| "+1".to_owned(), |lines| lines.to_string());
    let follow = options.follow.then_some("-f");
    let words = ["tail", "-n", &lines].into_iter().chain(follow).chain(["--", path]);
    let step = StepRunOptions {
        mpi: Some(MpiKind::None),
        bind: BindOptions::default(),
        container: None,
        ntasks: Some(1),
        nodes: None,
        cpus_per_task: 1,
        gpus: Default::default(),
        label: false,
        input_to: None,
        pty: false,
        overlap: true,
        kill_on_failure: false,
        now: true,
        time: None,
        name: Some("logs".to_owned()),
        job: options.job,
        words: words.map(str::to_owned).collect(),
    };
    step::show_command(client, &step)
}

/// The place in a file from which it is shown.
#[derive(Clone, Copy)]
enum From {
    Byte(u64),
    /// This many lines before its end; the whole file without a number.
    Lines(Option<u32>),
}

fn on_this_host(detail: &JobDetail, path: &str, from: From) -> CommandResult {
    if is_waiting(detail) {
        return Err(Failure::failed(format!(
            "job {} has not written anything: it is {}",
            detail.job.id,
            detail.job.state.word()
        )));
    }
    let nodes = detail.job.nodes.first().map(|node| format!(" on {node}")).unwrap_or_default();
    let cannot = |error: io::Error| {
        let status = if error.kind() == io::ErrorKind::NotFound { Status::NotFound } else { Status::Failed };
        let id = detail.job.id;
        Failure::new(status, format!("job {id} wrote to {path}{nodes}, which cannot be read on this host: {error}"))
    };
    let mut file = File::open(path).map_err(cannot)?;
    match from {
        From::Byte(at) => drop(file.seek(SeekFrom::Start(at)).map_err(cannot)?),
        From::Lines(None) => {}
        From::Lines(Some(lines)) => skip_to_last(&mut file, lines.into()).map_err(cannot)?,
    }
    io::copy(&mut file, &mut io::stdout().lock())?;
    Ok(0)
}

/// Moves to the beginning of the last lines of a file.
fn skip_to_last(file: &mut File, lines: u64) -> io::Result<()> {
    let mut starts = std::collections::VecDeque::from([0_u64]);
    let mut at = 0;
    let mut reader = BufReader::new(&mut *file);
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            break;
        }
        for (place, _) in buffer.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            starts.push_back(at + place as u64 + 1);
            // One more than wanted: the last line may be followed by an empty one.
            if starts.len() as u64 > lines + 1 {
                starts.pop_front();
            }
        }
        let read = buffer.len();
        at += read as u64;
        reader.consume(read);
    }
    if starts.back() != Some(&at) && starts.len() as u64 > lines {
        starts.pop_front();
    }
    file.seek(SeekFrom::Start(starts.front().copied().unwrap_or(0))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    #[test]
    fn the_last_lines_of_a_file_are_found() {
        for (text, lines, last) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\nb\nc", 1, "c"),
            ("a\n", 5, "a\n"),
            ("", 3, ""),
            ("\n\n", 1, "\n"),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.rewind().unwrap();
            skip_to_last(&mut file, lines).unwrap();
            let mut shown = String::new();
            file.read_to_string(&mut shown).unwrap();
            assert_eq!(shown, last, "{text:?}, {lines}");
        }
    }
}
