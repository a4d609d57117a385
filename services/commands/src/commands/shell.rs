//! `muster shell`: a terminal in a running job, or in a job that lasts as long as the terminal.

use super::step;
use crate::{
    cli::{BindOptions, ConnectionOptions, MpiKind, ShellOptions, StepRunOptions},
    exit::{CommandResult, Failure},
    terminal::Ticker,
};
use muster_cli::{caller::Caller, held::HeldJob, stderr_line};
use muster_client::Client;
use muster_schemas::{CommandId, JobId, job::Program};
use std::io::IsTerminal as _;

/// Opens a shell, and returns its status.
pub fn shell(connection: &ConnectionOptions, options: ShellOptions) -> CommandResult {
    let ShellOptions { id, words, job } = options;
    let words = if words.is_empty() { vec![own_shell()] } else { words };
    if let Some(id) = id {
        return inside(connection, id, words, job.container);
    }
    let container = job.container.clone();
    let mut client = connection.client()?;
    let spec = job.into_spec(Program::None, "shell", &Caller::this_process(connection)?);
    let answer = client.submit(CommandId::new_now(), &[spec])?;
    let id = *answer.jobs.first().ok_or_else(|| Failure::failed("the answer names no job"))?;
    let held = HeldJob::of(&client, id);
    let opened = wait_for_start(&mut client, id).and_then(|()| inside(connection, id, words, container));
    held.give_back(&mut client, opened.as_ref().ok().copied(), "muster");
    opened
}

fn own_shell() -> String {
    std::env::var("SHELL").ok().filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned())
}

fn inside(connection: &ConnectionOptions, job: JobId, words: Vec<String>, container: Option<String>) -> CommandResult {
    let step = StepRunOptions {
        mpi: Some(MpiKind::None),
        bind: BindOptions::default(),
        container,
        ntasks: Some(1),
        nodes: None,
        cpus_per_task: 1,
        gpus: Default::default(),
        label: false,
        input_to: None,
        // In a script it is an ordinary command.
        pty: std::io::stdin().is_terminal(),
        overlap: true,
        kill_on_failure: false,
        now: false,
        time: None,
        name: None,
        job,
        words,
    };
    step::run_command(connection, step)
}

fn wait_for_start(client: &mut Client, job: JobId) -> Result<(), Failure> {
    stderr_line!("muster: submitted job {job}");
    let ticker = Ticker::start(move |elapsed| Some(format!("job {job} waits ({} s)", elapsed.as_secs())));
    let view = client.wait_for_start(job, None)?;
    drop(ticker);
    match view.outcome {
        None => Ok(()),
        Some(outcome) => Err(Failure::failed(format!("job {job} never ran: {outcome}"))),
    }
}
