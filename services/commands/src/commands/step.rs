//! Steps inside running jobs.

mod place;

use super::mpi;
use crate::{
    cli::{ConnectionOptions, StepAttachOptions, StepCommand, StepListOptions, StepName, StepRunOptions},
    exit::{CommandResult, Failure, Status},
    show,
    table::{Table, left, right},
    values::compress_hosts,
};
use jiff::tz::TimeZone;
use muster_cli::{
    stderr_line,
    step::{
        attend::{Attendance, attend, show_output},
        output::{Form, Lines},
    },
    terminal::size,
};
use muster_client::{Client, ClientError, Moment, OutputReader, StepAddress};
use muster_schemas::{
    CommandId, JobId,
    step_io::Content,
    steps::{ProcessManagement, StepGroup, StepInput, StepOutput, StepSpec, StepStreams},
    views::{ErrorCode, StepAnswer, StepDetail, StepEndRequest, StepSignalRequest},
};
use std::collections::BTreeSet;

/// The time that one request waits for cores before it is sent again.
const WAIT_SECONDS: u32 = 60;

/// `muster step`.
pub fn run(connection: &ConnectionOptions, command: StepCommand) -> CommandResult {
    match command {
        StepCommand::Run(options) => run_command(connection, *options),
        StepCommand::List(options) => list(connection, &options),
        StepCommand::Attach(options) => attach(connection, &options),
        StepCommand::Signal { words } => {
            let (signal, StepName { job, step }) = words.signal_and_step().map_err(Failure::usage)?;
            let request = StepSignalRequest { signal, component: None };
            connection.client()?.signal_step(CommandId::new_now(), job, step, &request)?;
            Ok(0)
        }
        StepCommand::End { step: StepName { job, step }, force } => {
            let request = StepEndRequest { component: None, is_forced: force };
            connection.client()?.end_step(CommandId::new_now(), job, step, &request)?;
            Ok(0)
        }
    }
}

/// Runs a command inside a running job, with its input and output here, and returns its status.
pub fn run_command(connection: &ConnectionOptions, options: StepRunOptions) -> CommandResult {
    // A script continues whatever the status of its steps: one that failed to launch during a restart would be missing.
    let mut client = connection.patient_client()?;
    let detail = client.job(options.job, Moment::Now)?;
    let groups = place::groups(&detail, &options)?;
    let size = options.pty.then(|| size().unwrap_or_default());
    let streams = StepStreams {
        stdin: if options.pty {
            StepInput::Nothing
        } else {
            options.input_to.map_or(StepInput::AllTasks, StepInput::Task)
        },
        stdout: if options.pty { StepOutput::Discarded } else { StepOutput::Client },
        stderr: (!options.pty).then_some(StepOutput::Client),
        append_output: false,
        terminal: size,
    };
    let management = mpi::management(&mut client, options.mpi)?;
    let spec = spec(&options, groups, streams, management);
    let StepAnswer { run, step, .. } = launch(&mut client, &options, &spec)?;
    let address = StepAddress { job: options.job, run, step };
    attend(client, address, &spec, &Attendance { has_labels: options.label, ..Attendance::by("muster") })
}

/// Launches a step and stays with it, its input and output here; returns its status.
pub(super) fn attended(mut client: Client, job: JobId, spec: &StepSpec) -> CommandResult {
    let StepAnswer { run, step, .. } = client.launch_step(CommandId::new_now(), job, spec, WAIT_SECONDS)?;
    attend(client, StepAddress { job, run, step }, spec, &Attendance::by("muster"))
}

fn spec(
    options: &StepRunOptions,
    groups: Vec<StepGroup>,
    streams: StepStreams,
    process_management: Option<ProcessManagement>,
) -> StepSpec {
    StepSpec {
        name: options.name.clone().unwrap_or_else(|| options.words[0].clone()),
        groups,
        streams,
        overlaps: options.overlap,
        walltime_seconds: options.time,
        ends_on_failure: options.kill_on_failure,
        process_management,
        ..StepSpec::default()
    }
}

/// The outcome of a command inside a job.
pub struct Said {
    /// The number of bytes on standard output.
    pub bytes: u64,
    /// Its status.
    pub status: u8,
}

/// Runs a command, no MPI program, inside a running job without input, and shows its output. `None` if the job takes no step: it is
/// over, or its tasks divide its cores among themselves.
pub fn show_command(client: &mut Client, options: &StepRunOptions) -> Result<Option<Said>, Failure> {
    let detail = client.job(options.job, Moment::Now)?;
    let Ok(groups) = place::groups(&detail, options) else { return Ok(None) };
    let streams = StepStreams {
        stdin: StepInput::Nothing,
        stdout: StepOutput::Client,
        stderr: Some(StepOutput::Client),
        append_output: false,
        terminal: None,
    };
    let spec = spec(options, groups, streams, None);
    let form = Form::of(None, spec.total_tasks(), false);
    let StepAnswer { run, step, .. } = match client.launch_step(CommandId::new_now(), options.job, &spec, 0) {
        Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::Conflict => return Ok(None),
        answer => answer?,
    };
    let mut lines = Lines::new(form);
    let mut bytes = 0;
    let mut reader = OutputReader::of(StepAddress { job: options.job, run, step });
    loop {
        let has_more = reader.read(client, |frame| {
            if let Content::Output(content) = frame.content {
                bytes += content.len() as u64;
            }
            lines.take(frame);
        })?;
        lines.flush()?;
        if !has_more {
            lines.finish()?;
            return Ok(Some(Said { bytes, status: lines.highest_status() }));
        }
    }
}

fn launch(client: &mut Client, options: &StepRunOptions, spec: &StepSpec) -> Result<StepAnswer, Failure> {
    let mut waits = false;
    loop {
        // The first request does not wait, so that a person is told what the step waits for.
        let seconds = if waits { WAIT_SECONDS } else { 0 };
        match client.launch_step(CommandId::new_now(), options.job, spec, seconds) {
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::Busy && !options.now => {
                if !std::mem::replace(&mut waits, true) {
                    stderr_line!("muster: waiting: {}", refusal.message);
                }
            }
            answer => return Ok(answer?),
        }
    }
}

fn attach(connection: &ConnectionOptions, options: &StepAttachOptions) -> CommandResult {
    let mut client = connection.client()?;
    let StepName { job, step } = options.step;
    let steps = client.steps(job, Moment::Now)?.steps;
    let found = steps.iter().rev().find(|known| known.step == step);
    let missing = || Failure::new(Status::NotFound, format!("job {job} has no step {step}"));
    let found = found.ok_or_else(missing)?;
    let width = options.label.then(|| found.total_tasks.saturating_sub(1).to_string().len());
    let address = StepAddress { job, run: found.run, step };
    let mut lines = Lines::new(Form::of(width, found.total_tasks, false));
    show_output(&mut client, OutputReader::watching(address), &mut lines)?;
    Ok(0)
}

fn list(connection: &ConnectionOptions, options: &StepListOptions) -> CommandResult {
    let mut client = connection.client()?;
    let moment = options.query.moment();
    let page = match options.job {
        Some(job) => client.steps(job, moment)?,
        None => client.running_steps(moment)?,
    };
    if options.query.json {
        show::print_json(&page)?;
    } else {
        show::print_or_say(&table(&page.steps), "no steps")?;
    }
    Ok(0)
}

fn table(steps: &[StepDetail]) -> Table {
    let zone = TimeZone::system();
    let mut table = Table::new([
        left("STEP"),
        left("NAME"),
        left("STATE"),
        left("LAUNCHED"),
        left("ENDED"),
        right("TASKS"),
        right("CORES"),
        left("NODES"),
    ]);
    for step in steps {
        let state = match (&step.ended, step.exit_status) {
            (None, _) if step.is_stopping => "stopping".to_owned(),
            (None, _) => "running".to_owned(),
            (Some(_), Some(status)) if status.is_success() => "completed".to_owned(),
            (Some(_), Some(status)) => status.to_string(),
            (Some(_), None) => "ended".to_owned(),
        };
        let mut seen = BTreeSet::new();
        let names = step.nodes.iter().map(|node| &node.node).filter(|node| seen.insert(*node));
        let names: Vec<String> = names.cloned().collect();
        let cores: u64 = step.nodes.iter().map(|node| node.cores.len()).sum();
        table.push([
            format!("{}.{}", step.job, step.step).into(),
            (&step.name).into(),
            state.into(),
            show::local_time_column(step.launched, &zone).into(),
            step.ended.map(|ended| show::local_time_column(ended, &zone)).unwrap_or_default().into(),
            step.total_tasks.to_string().into(),
            cores.to_string().into(),
            compress_hosts(&names).into(),
        ]);
    }
    table
}
