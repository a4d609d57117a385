//! Commands that stay with a step until it ends.

use super::{
    input::Input,
    output::{Form, Lines},
};
use crate::{exit::Failure, interrupts::Interrupts, stderr_line};
use muster_client::{Client, OutputReader, StepAddress};
use muster_schemas::{
    job::ExitStatus,
    steps::{StepInput, StepSpec},
};

/// How a command stays with a step.
#[derive(Clone, Copy)]
pub struct Attendance<'a> {
    /// The name of the command, for messages.
    pub tool: &'a str,
    /// Whether each line of output begins with the rank of its task.
    pub has_labels: bool,
    /// The signals of this process, if something handles them already.
    pub interrupts: Option<&'a Interrupts>,
}

impl<'a> Attendance<'a> {
    /// A command that shows output as it is.
    pub const fn by(tool: &'a str) -> Self {
        Self { tool, has_labels: false, interrupts: None }
    }
}

/// Passes input and output on until the step ends, and returns its status.
///
/// # Errors
/// The system did not answer, or the output cannot be written.
pub fn attend(mut client: Client, address: StepAddress, spec: &StepSpec, how: &Attendance<'_>) -> Result<u8, Failure> {
    let tool = how.tool;
    let StepAddress { job, run, step } = address;
    let has_terminal = spec.streams.terminal.is_some();
    let width = how.has_labels.then(|| (spec.total_tasks() - 1).to_string().len());
    let has_input = has_terminal || spec.streams.stdin != StepInput::Nothing;
    let input = has_input.then(|| Input::start(client.another(), address, has_terminal, how.interrupts));
    let mut lines = Lines::new(Form::of(width, spec.total_tasks(), has_terminal));
    let reader_of = if has_terminal { OutputReader::at_terminal } else { OutputReader::of };
    let shown = show_output(&mut client, reader_of(address), &mut lines);
    drop(input);
    shown?;
    let has_all = lines.ended_tasks() == spec.total_tasks();
    if has_all && lines.highest_status() == 0 {
        return Ok(0);
    }
    let view = client.wait_for_step(job, run, step)?;
    if has_all {
        // The ends of tasks do not say which of them is the reason for the others.
        if let Some((part, why)) = view.aborted() {
            stderr_line!("{tool}: step {step} of job {job} on {}: {why}", part.node);
        }
        for (part, why) in view.not_started() {
            stderr_line!("{tool}: step {step} of job {job} on {}: {why}", part.node);
        }
        return Ok(lines.highest_status());
    }
    // Some tasks did not start, or were lost: the log has the reason.
    if let Some(why) = view.why() {
        stderr_line!("{tool}: step {step} of job {job}: {why}");
    }
    let status = view.exit_status.map_or(1, ExitStatus::shell_code);
    Ok(status.max(lines.highest_status()).max(1))
}

/// Shows the output of a step until it ends.
///
/// # Errors
/// The system did not answer, or the output cannot be written.
pub fn show_output(client: &mut Client, mut reader: OutputReader, lines: &mut Lines) -> Result<(), Failure> {
    loop {
        let has_more = reader.read(client, |frame| lines.take(frame))?;
        lines.flush()?;
        if !has_more {
            return Ok(lines.finish()?);
        }
    }
}
