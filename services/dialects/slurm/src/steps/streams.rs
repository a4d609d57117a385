//! The sources and destinations of the standard streams of a step's tasks (SL-R-21, SL-R-25).

use super::appends_output;
use crate::{
    options::values,
    output::{StepInput, StepOutput, is_by_node, model_pattern},
    request::Settings,
};
use muster_schemas::{resources::IndexSet, steps as model};

/// How the streams of tasks are connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// On the nodes.
    pub of_tasks: model::StepStreams,
    /// How `srun` itself handles the standard output and standard error of each part.
    pub shown: Vec<[Shown; 2]>,
    /// The input of each part.
    pub inputs: Vec<Input>,
}

/// The input of a part's tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// How it reaches them.
    pub of_tasks: model::StepInput,
    /// What `srun` itself reads for them.
    pub fed: Fed,
}

/// How `srun` handles output that reaches it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// It passes on everything.
    #[default]
    All,
    /// It passes on the output of the task with this rank.
    OneTask(u32),
    /// It writes everything to a file, or the output of each task to a separate one, with this pattern.
    File(String),
    /// Nothing.
    Nothing,
}

/// What `srun` reads for tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fed {
    /// Its own standard input.
    #[default]
    StandardInput,
    /// A file with this pattern.
    File(String),
    /// Nothing.
    Nothing,
}

impl Streams {
    /// The streams for the options of a step's parts, with this many tasks. With a terminal everything goes through it.
    pub fn of(parts: &[&Settings], tasks: u32, components: usize, terminal: Option<model::TerminalSize>) -> Self {
        if terminal.is_some() {
            let of_tasks = model::StepStreams {
                stdin: model::StepInput::Nothing,
                stdout: model::StepOutput::Discarded,
                terminal,
                ..model::StepStreams::default()
            };
            let inputs = vec![Input::default(); parts.len()];
            return Self { of_tasks, shown: vec![<[Shown; 2]>::default(); parts.len()], inputs };
        }
        let leader = parts[0];
        let wanted: Vec<[StepOutput; 2]> = parts.iter().map(|part| outputs(part, tasks)).collect();
        let input_of = |part: &&Settings| input(StepInput::parse(part.text("input"), tasks));
        let inputs: Vec<Input> = parts.iter().map(input_of).collect();
        let stdin = inputs[0].of_tasks.clone();
        let append_output = appends_output(leader.value("open-mode", values::appends), components);
        let are_alike = wanted.iter().all(|part| *part == wanted[0]);
        let [stdout, stderr] = match &wanted[0] {
            // Nodes handle all parts the same way: they send everything to `srun`, which passes each part on (SL-O-01).
            _ if !are_alike => [model::StepOutput::Client, model::StepOutput::Client].map(Some),
            // One file for both keeps the output in order.
            [stdout @ (StepOutput::Files(_) | StepOutput::Nowhere), stderr] if stdout == stderr => {
                [Some(on_nodes(stdout)), None]
            }
            of_all => of_all.each_ref().map(|wanted| Some(on_nodes(wanted))),
        };
        let shown = wanted.into_iter().map(|part| part.map(|wanted| by_srun(wanted, are_alike))).collect();
        let stdout = stdout.unwrap_or_default();
        let of_tasks = model::StepStreams { stdin, stdout, stderr, append_output, terminal: None };
        Self { of_tasks, shown, inputs }
    }

    /// If `srun` itself has no input, its tasks have none either, and need no connection to it. A terminal stays as it
    /// is.
    pub fn without_standard_input(self) -> Self {
        if self.of_tasks.terminal.is_some() {
            return self;
        }
        let inputs = self.inputs.into_iter().map(|input| match input.fed {
            Fed::StandardInput => Input { of_tasks: model::StepInput::Nothing, fed: Fed::Nothing },
            _ => input,
        });
        let inputs: Vec<Input> = inputs.collect();
        let stdin = inputs.first().map(|input| input.of_tasks.clone()).unwrap_or_default();
        Self { of_tasks: model::StepStreams { stdin, ..self.of_tasks }, inputs, ..self }
    }

    /// The sources that `srun` reads for tasks, each with the parts that get it; `None` means all parts.
    pub fn sources(&self) -> Vec<(&Fed, Option<IndexSet>)> {
        let mut sources: Vec<(&Fed, Vec<u32>)> = Vec::new();
        for (part, input) in (0..).zip(&self.inputs) {
            match sources.iter_mut().find(|(fed, _)| *fed == &input.fed) {
                Some((_, parts)) => parts.push(part),
                None => sources.push((&input.fed, vec![part])),
            }
        }
        let are_alike = sources.len() == 1;
        let read = sources.into_iter().filter(|(fed, _)| **fed != Fed::Nothing);
        read.map(|(fed, parts)| (fed, (!are_alike).then(|| parts.into_iter().collect()))).collect()
    }
}

/// The destinations of a part's standard output and standard error. Errors go with output if nothing else is given.
fn outputs(part: &Settings, tasks: u32) -> [StepOutput; 2] {
    let stdout = StepOutput::parse(part.text("output"), tasks);
    let stderr = part.text("error").map_or_else(|| stdout.clone(), |text| StepOutput::parse(Some(text), tasks));
    [stdout, stderr]
}

/// How the nodes handle output that is the same for all parts.
fn on_nodes(wanted: &StepOutput) -> model::StepOutput {
    match wanted {
        StepOutput::Nowhere => model::StepOutput::Discarded,
        StepOutput::Files(pattern) if is_by_node(pattern) => model::StepOutput::File(model_pattern(pattern)),
        StepOutput::Srun | StepOutput::OneTask(_) | StepOutput::Files(_) => model::StepOutput::Client,
    }
}

/// How `srun` handles output that reaches it; if it is the same for all parts, the nodes write their own files.
fn by_srun(wanted: StepOutput, are_alike: bool) -> Shown {
    match wanted {
        StepOutput::Srun => Shown::All,
        StepOutput::OneTask(rank) => Shown::OneTask(rank),
        StepOutput::Nowhere => Shown::Nothing,
        StepOutput::Files(pattern) if are_alike && is_by_node(&pattern) => Shown::Nothing,
        StepOutput::Files(pattern) => Shown::File(pattern),
    }
}

fn input(wanted: StepInput) -> Input {
    let (of_tasks, fed) = match wanted {
        StepInput::All => (model::StepInput::AllTasks, Fed::StandardInput),
        StepInput::OneTask(rank) => (model::StepInput::Task(rank), Fed::StandardInput),
        StepInput::Nobody => (model::StepInput::Nothing, Fed::Nothing),
        StepInput::Files(pattern) if is_by_node(&pattern) => {
            (model::StepInput::File(model_pattern(&pattern)), Fed::Nothing)
        }
        StepInput::Files(pattern) => (model::StepInput::AllTasks, Fed::File(pattern)),
    };
    Input { of_tasks, fed }
}
