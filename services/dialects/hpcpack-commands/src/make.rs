//! Making and submitting jobs: `job new`, `add`, `submit`, `clone` (HPC-C-03..05).

use super::wrong;
use muster_cli::{
    caller::Caller,
    connection::ConnectionOptions,
    exit::{CommandResult, Failure, Status},
    stderr_line,
    table::printable,
    verdict::wait_until_decided,
};
use muster_client::{Client, ClientError, Moment};
use muster_hpcpack::{
    description::{DescriptionError, Format, JobDescription, MOST_BYTES, SystemValues},
    hold,
    jobs::{self, MOST_STORED_BYTES, pack, provisional, readable, template_of, unpack},
    options::{JobCommand, OptionError},
    shown,
};
use muster_schemas::{
    CommandId, JobId, Timestamp,
    event::Intake,
    filter::{JobDocument, JobWarning},
    filter_order::DescribedJob,
    job::JobSpec,
    views::{ConfigureJobRequest, DescribedJobRequest, DescriptionView, EntryWord, ErrorCode, JobView},
};
use std::{io::Read as _, sync::Arc};

/// A description on its way to the gateway.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) description: JobDescription,
    format: Format,
    /// The bytes as received, until something is changed.
    bytes: Option<Vec<u8>>,
    warnings: Vec<JobWarning>,
}

impl Draft {
    /// An empty description.
    fn new() -> Self {
        Self { description: JobDescription::default(), format: Format::Xml, bytes: None, warnings: Vec::new() }
    }

    /// The description in a file; `-` is standard input. Errors name their place (HPC-J-47).
    pub(super) fn read(path: &str) -> Result<Self, Failure> {
        let bytes = read_file(path)?;
        let (format, description, warnings) = readable(&bytes).map_err(|error| in_file(path, &error))?;
        for JobWarning { code, text } in &warnings {
            stderr_line!("{path}: warning: [{code}] {text}");
        }
        Ok(Self { description, format, bytes: Some(bytes), warnings })
    }

    /// The current description of a job, without what only the system sets.
    pub(super) fn of_document(document: &JobDocument) -> Result<Self, Failure> {
        let (format, bytes) = unpack(document).map_err(refused)?;
        let (description, _) = JobDescription::read_as(format, &bytes).map_err(refused)?;
        Ok(Self { description, format, bytes: Some(bytes), warnings: Vec::new() })
    }

    /// Applies the edits of a command line; after any edit the received bytes no longer apply.
    pub(super) fn edit(&mut self, command: &JobCommand, now: Timestamp) -> Result<(), Failure> {
        for edit in &command.edits {
            edit.apply(&mut self.description).map_err(refused)?;
        }
        let hold = command.other("holduntil").map(|text| hold::parse(text, now)).transpose().map_err(refused)?;
        if let Some(until) = hold {
            self.description.attributes.hold_until = until;
        }
        if let Some(task) = &command.task {
            self.description.tasks.push(task.clone());
        }
        if !command.edits.is_empty() || hold.is_some() || command.task.is_some() {
            self.bytes = None;
        }
        Ok(())
    }

    fn document(&self) -> Result<JobDocument, Failure> {
        let document = match &self.bytes {
            Some(bytes) => pack(self.format, bytes),
            None => pack(self.format, self.description.write_as(self.format, &SystemValues::default()).as_bytes()),
        };
        if document.bytes.len() > MOST_STORED_BYTES {
            let (is, most) = (document.bytes.len(), MOST_STORED_BYTES);
            return Err(Failure::failed(format!(
                "[JobXmlNotValid] the description takes {is} bytes even when it is compressed, and at most {most} can be \
                 kept, whatever it has uncompressed (up to {} MiB); no job was created",
                MOST_BYTES >> 20
            )));
        }
        Ok(document)
    }

    /// The request that submits it.
    pub(super) fn request(
        &self,
        connection: &ConnectionOptions,
        is_configuring: bool,
    ) -> Result<DescribedJobRequest, Failure> {
        let caller = Caller::this_process(connection)?;
        let spec = JobSpec {
            working_directory: caller.directory,
            umask: Some(caller.umask),
            environment: caller.instance.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            ..provisional(&self.description, self.format)
        };
        let intake = Intake {
            template: template_of(&self.description),
            document: Some(self.document()?),
            is_configuring,
            warnings: self.warnings.clone(),
            ..Intake::default()
        };
        Ok(DescribedJobRequest { spec, intake })
    }
}

/// Reports a refusal of this dialect.
pub(super) fn refused(refusal: impl std::fmt::Display) -> Failure {
    Failure::failed(refusal.to_string())
}

fn in_file(path: &str, error: &DescriptionError) -> Failure {
    match error.place {
        Some(place) => {
            let message = format!("[{}] {}", error.code, error.text);
            Failure::at(Status::Failed, format!("{path}:{}:{}", place.line, place.column), message)
        }
        None => Failure::failed(format!("{path}: {error}")),
    }
}

/// A file, or standard input for `-`, but at most one byte more than a description may have.
pub fn read_file(path: &str) -> Result<Vec<u8>, Failure> {
    let most = MOST_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = match path {
        "-" => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.map_err(|error| Failure::failed(format!("{path}: {error}")))?;
    Ok(bytes)
}

/// The draft described by `/jobfile` and the options of a command line.
fn draft(command: &JobCommand) -> Result<Draft, Failure> {
    let mut draft = command.other("jobfile").map_or_else(|| Ok(Draft::new()), Draft::read)?;
    draft.edit(command, Timestamp::now())?;
    Ok(draft)
}

fn only_job(jobs: &[JobId]) -> Result<JobId, Failure> {
    jobs.first().copied().ok_or_else(|| Failure::failed("the answer names no job"))
}

/// `job new`: a job that no filter sees before it is submitted.
pub(super) fn new(connection: &ConnectionOptions, command: &JobCommand) -> CommandResult {
    let request = draft(command)?.request(connection, true)?;
    let answer = connection.client()?.submit_described(CommandId::new_now(), &request)?;
    println!("Created job, ID: {}", only_job(&answer.jobs)?);
    Ok(0)
}

/// `job clone`: makes a job like another, not submitted yet.
pub(super) fn clone(connection: &ConnectionOptions, job: JobId) -> CommandResult {
    let mut client = connection.client()?;
    let text = exported(&mut client, job, Format::Xml)?;
    let (format, description, warnings) = readable(text.as_bytes()).map_err(refused)?;
    let draft = Draft { description, format, bytes: Some(text.into_bytes()), warnings };
    let answer = client.submit_described(CommandId::new_now(), &draft.request(connection, true)?)?;
    println!("Job cloned, ID: {}", only_job(&answer.jobs)?);
    Ok(0)
}

/// `job add`: adds one task, or those of a file, to a job that is still being made.
pub(super) fn add(connection: &ConnectionOptions, job: JobId, command: &JobCommand) -> CommandResult {
    let tasks = command.other("taskfile").map_or_else(|| Ok(Vec::new()), read_tasks)?;
    let changed = remake(connection, &mut connection.client()?, job, |draft| {
        draft.edit(command, Timestamp::now())?;
        if !tasks.is_empty() {
            draft.description.tasks.extend(tasks.iter().cloned());
            draft.bytes = None;
        }
        Ok(())
    })?;
    println!("Task {job}.{} added", changed.description.tasks.len());
    Ok(0)
}

/// Changes the description of a job that is still being made and returns the new one. If somebody else changes it at
/// the same time, the change is repeated on their result, so that both are kept.
pub(super) fn remake(
    connection: &ConnectionOptions,
    client: &mut Client,
    job: JobId,
    change: impl Fn(&mut Draft) -> Result<(), Failure>,
) -> Result<Draft, Failure> {
    let mut tried = None;
    loop {
        require_configuring(client, job)?;
        let view = client.description(job)?;
        if let Some((version, refusal)) = tried
            && version == view.version
        {
            // Nobody changed it: the refusal has another reason.
            return Err(ClientError::into(refusal));
        }
        let document = view.received.ok_or_else(|| Failure::failed(format!("job {job} has no description")))?;
        let mut draft = Draft::of_document(&document)?;
        change(&mut draft)?;
        let DescribedJobRequest { spec, intake } = draft.request(connection, true)?;
        let request = ConfigureJobRequest { made_from: Some(view.version), spec, intake };
        match client.configure_job(CommandId::new_now(), job, &request) {
            Ok(_) => return Ok(draft),
            Err(refusal) if refusal.code() == Some(ErrorCode::Conflict) => tried = Some((view.version, refusal)),
            Err(error) => return Err(error.into()),
        }
    }
}

pub(super) fn require_configuring(client: &mut Client, job: JobId) -> Result<(), Failure> {
    let view = client.job(job, Moment::Now)?.job;
    if view.filtering.as_ref().is_some_and(|filtering| filtering.entry == EntryWord::Configuring) {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "job {job} is {}, and tasks can be added while it is Configuring",
        shown::state(&view)
    )))
}

/// The tasks of a job file, or of a file that is one `Task`.
fn read_tasks(path: &str) -> Result<Vec<muster_hpcpack::description::TaskDescription>, Failure> {
    let bytes = read_file(path)?;
    let whole = readable(&bytes);
    let tasks = match (whole, std::str::from_utf8(&bytes)) {
        (Ok((_, description, _)), _) => description.tasks,
        (Err(error), Ok(text)) => {
            let body = text.trim_start_matches('\u{feff}').trim_start();
            let body = body.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")).map_or(body, |(_, body)| body);
            if !body.trim_start().starts_with("<Task") {
                return Err(in_file(path, &error));
            }
            let wrapped = format!("<Job><Tasks>{body}</Tasks></Job>");
            readable(wrapped.as_bytes()).map_err(|error| in_file(path, &error))?.1.tasks
        }
        (Err(error), Err(_)) => return Err(in_file(path, &error)),
    };
    match tasks.is_empty() {
        true => Err(Failure::failed(format!("{path}: it has no task"))),
        false => Ok(tasks),
    }
}

/// `job submit`: submits a job from a file, from options, or one that is being made.
pub(super) fn submit(connection: &ConnectionOptions, command: &JobCommand) -> CommandResult {
    let mut client = connection.client()?;
    let job = match command.other("id") {
        Some(id) => {
            let job = parse_job(id)?;
            client.enter_job(CommandId::new_now(), job)?;
            job
        }
        None => {
            let request = draft(command)?.request(connection, false)?;
            only_job(&client.submit_described(CommandId::new_now(), &request)?.jobs)?
        }
    };
    println!("Job has been submitted. ID: {job}.");
    if command.is_set("nowait") {
        return Ok(0);
    }
    let view = wait_until_decided(&mut client, job)?;
    match shown::error(&view).filter(|_| view.outcome.as_ref().is_some_and(|outcome| outcome.detail.is_some())) {
        Some(error) => Err(Failure::failed(format!("job {job}: {error}{}", below(shown::message(&view))))),
        None => Ok(0),
    }
}

/// A filter's message for the user who submitted, on a separate line (HPC-F-66).
fn below(message: Option<&str>) -> String {
    message.map_or_else(String::new, |message| format!("\n{}", printable(message)))
}

pub(super) fn parse_job(text: &str) -> Result<JobId, Failure> {
    let wrong_id = || wrong(&[OptionError::Usage(format!("`{text}` is no job id"))]);
    text.parse::<u64>().ok().filter(|number| *number > 0).map(JobId::job).ok_or_else(wrong_id)
}

/// The description of a job in a form that can be submitted again (HPC-J-48).
pub(super) fn exported(client: &mut Client, job: JobId, format: Format) -> Result<String, Failure> {
    let view = client.job(job, Moment::Now)?.job;
    let description = client.description(job)?;
    jobs::exported(&described(&view, description), shown::state(&view), format, Timestamp::now()).map_err(refused)
}

/// The input for a job's description. Before the job is checked, that is what was received.
pub(super) fn described(view: &JobView, description: DescriptionView) -> DescribedJob {
    let DescriptionView { version: _, received, effective, spec, tasks, template, alternatives } = description;
    let is_entering = effective.is_none() && received.is_some();
    DescribedJob {
        id: view.id,
        owner: muster_schemas::event::Owner { user: view.owner.clone(), uid: 0, gid: 0 },
        submitted: view.submitted,
        state: view.state,
        is_entering,
        spec: Arc::new(spec),
        tasks: tasks.map(Arc::new),
        template,
        is_as_received: is_entering,
        document: effective.or(received),
        name: view.name.clone(),
        priority: view.priority,
        walltime_seconds: view.walltime_seconds,
        alternatives: alternatives.into(),
        component: None,
        changed: Vec::new(),
    }
}
