//! What tasks say and how they end, on its way to where it was asked for (SL-R-14, SL-R-23, SL-R-25).

use super::interrupted::Tasks;
use crate::{
    slurm::site::os_text,
    step::output::{Form, Lines, Sink},
};
use muster_schemas::{
    job::ExitStatus,
    step_io::{Content, Frame},
    steps::TaskStatus,
};
use muster_slurm::{
    output::{self, Facts},
    steps::{self, StepPlan, Streams, TaskEnd, label, nodes_of_ranks},
};
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io,
};

/// Shows what tasks say.
pub struct Shown {
    lines: Lines,
    /// Only what the task of this rank says on standard output and on standard error.
    only: [Option<u32>; 2],
    nodes: Vec<String>,
    ends: BTreeMap<u32, TaskEnd>,
    tasks: Tasks,
}

impl Shown {
    /// By the options of a step.
    pub fn of(plan: &StepPlan, streams: &Streams, named: &Facts, tasks: Tasks) -> Result<Self, String> {
        let nodes = nodes_of_ranks(plan);
        let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let has_terminal = streams.of_tasks.terminal.is_some();
        let is_labelled = plan.leader().is_set("label") && !has_terminal;
        let width = is_labelled.then(|| label(0, count).len() - 2);
        let form = Form::of(width, count, has_terminal || plan.leader().is_set("unbuffered"));
        let appends = streams.of_tasks.append_output;
        let file = |shown: &steps::Shown| match shown {
            steps::Shown::File(pattern) => open(&output::expand(pattern, named), appends).map(Some),
            _ => Ok(None),
        };
        let stdout = file(&streams.stdout)?;
        let stderr = match &stdout {
            // One file for both is opened once.
            Some(file) if streams.stdout == streams.stderr => file.try_clone().ok(),
            _ => file(&streams.stderr)?,
        };
        let sink = |file: Option<File>, own: Sink| file.map_or(own, |file| Box::new(file));
        let lines = Lines::into(form, sink(stdout, Box::new(io::stdout())), sink(stderr, Box::new(io::stderr())));
        let only = [&streams.stdout, &streams.stderr].map(|shown| match shown {
            steps::Shown::OneTask(rank) => Some(*rank),
            _ => None,
        });
        Ok(Self { lines, only, nodes, ends: BTreeMap::new(), tasks })
    }

    /// Takes what has come.
    pub fn take(&mut self, frame: Frame<'_>) {
        let only = match frame.content {
            Content::Output(_) => self.only[0],
            Content::Error(_) => self.only[1],
            Content::Ended(status) => {
                self.add_end(frame.rank, status);
                self.tasks.has_ended(frame.rank);
                None
            }
        };
        if only.is_none_or(|rank| rank == frame.rank) {
            self.lines.take(frame);
        }
    }

    fn add_end(&mut self, rank: u32, status: ExitStatus) {
        let node = self.nodes.get(rank as usize).cloned().unwrap_or_default();
        self.ends.entry(rank).or_insert(TaskEnd { node, rank, status });
    }

    /// How tasks ended that have not said so themselves.
    pub fn add_ends<'a>(&mut self, statuses: impl IntoIterator<Item = &'a TaskStatus>) {
        for TaskStatus { ranks, status } in statuses {
            ranks.iter().for_each(|rank| self.add_end(rank, *status));
        }
    }

    /// Shows what there is.
    pub fn flush(&mut self) -> io::Result<()> {
        self.lines.flush()
    }

    /// Shows what is left.
    pub fn finish(&mut self) -> io::Result<()> {
        self.lines.finish()
    }

    /// How tasks ended, by rank.
    pub fn ends(&self) -> Vec<TaskEnd> {
        self.ends.values().cloned().collect()
    }
}

fn open(path: &str, appends: bool) -> Result<File, String> {
    let mut options = OpenOptions::new();
    // Two streams may write to it.
    let opened = options.create(true).append(true).open(path);
    let emptied = opened.and_then(|file| {
        if !appends && file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    });
    emptied.map_err(|error| format!("Could not open stdout file {path}: {}", os_text(&error)))
}
