//! Where the standard streams of a step's tasks come from and go to (SL-R-21, SL-R-25).

use super::appends_output;
use crate::{
    options::values,
    output::{StepInput, StepOutput, is_by_node, model_pattern},
    request::Settings,
};
use muster_schemas::steps as model;

/// Where the streams of tasks are connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// On their nodes.
    pub of_tasks: model::StepStreams,
    /// What `srun` itself does with standard output.
    pub stdout: Shown,
    /// What `srun` itself does with standard error.
    pub stderr: Shown,
    /// What `srun` itself reads for them.
    pub stdin: Fed,
}

/// What `srun` does with output that comes to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// It passes all on.
    #[default]
    All,
    /// It passes on what the task of this rank says.
    OneTask(u32),
    /// It writes all to a file, by this pattern.
    File(String),
    /// None comes.
    Nothing,
}

/// What `srun` reads for tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fed {
    /// Its own standard input.
    #[default]
    StandardInput,
    /// A file, by this pattern.
    File(String),
    /// Nothing.
    Nothing,
}

impl Streams {
    /// What the options of a step of so many tasks ask for. With a terminal everything goes through that.
    pub fn of(leader: &Settings, tasks: u32, components: usize, terminal: Option<model::TerminalSize>) -> Self {
        if terminal.is_some() {
            let of_tasks = model::StepStreams {
                stdin: model::StepInput::Nothing,
                stdout: model::StepOutput::Discarded,
                terminal,
                ..model::StepStreams::default()
            };
            return Self { of_tasks, ..Self::default() };
        }
        let (stdout, shown_output) = output(StepOutput::parse(leader.text("output"), tasks));
        let (stderr, shown_error) = match leader.text("error") {
            // A file takes standard error too.
            None if !matches!(shown_output, Shown::All | Shown::OneTask(_)) => (None, shown_output.clone()),
            None => (Some(stdout.clone()), shown_output.clone()),
            Some(text) => {
                let (to, shown) = output(StepOutput::parse(Some(text), tasks));
                (Some(to), shown)
            }
        };
        let (stdin, fed) = input(StepInput::parse(leader.text("input"), tasks));
        let append_output = appends_output(leader.value("open-mode", values::appends), components);
        let of_tasks = model::StepStreams { stdin, stdout, stderr, append_output, terminal: None };
        Self { of_tasks, stdout: shown_output, stderr: shown_error, stdin: fed }
    }

    /// Where `srun` itself has nothing to read, its tasks have not either, and no way between them is needed. A terminal
    /// stays as it is.
    pub fn without_standard_input(self) -> Self {
        if self.stdin != Fed::StandardInput || self.of_tasks.terminal.is_some() {
            return self;
        }
        let of_tasks = model::StepStreams { stdin: model::StepInput::Nothing, ..self.of_tasks };
        Self { of_tasks, stdin: Fed::Nothing, ..self }
    }
}

fn output(wanted: StepOutput) -> (model::StepOutput, Shown) {
    match wanted {
        StepOutput::Srun => (model::StepOutput::Client, Shown::All),
        StepOutput::OneTask(rank) => (model::StepOutput::Client, Shown::OneTask(rank)),
        StepOutput::Nowhere => (model::StepOutput::Discarded, Shown::Nothing),
        StepOutput::Files(pattern) if is_by_node(&pattern) => {
            (model::StepOutput::File(model_pattern(&pattern)), Shown::Nothing)
        }
        StepOutput::Files(pattern) => (model::StepOutput::Client, Shown::File(pattern)),
    }
}

fn input(wanted: StepInput) -> (model::StepInput, Fed) {
    match wanted {
        StepInput::All => (model::StepInput::AllTasks, Fed::StandardInput),
        StepInput::OneTask(rank) => (model::StepInput::Task(rank), Fed::StandardInput),
        StepInput::Nobody => (model::StepInput::Nothing, Fed::Nothing),
        StepInput::Files(pattern) if is_by_node(&pattern) => {
            (model::StepInput::File(model_pattern(&pattern)), Fed::Nothing)
        }
        StepInput::Files(pattern) => (model::StepInput::AllTasks, Fed::File(pattern)),
    }
}
