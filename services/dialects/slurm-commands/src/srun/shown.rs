//! Passes the output and ends of tasks to their destinations (SL-R-14, SL-R-23, SL-R-25).

use super::interrupted::Tasks;
use crate::site::os_text;
use muster_cli::step::output::{Form, Lines, Sink};
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
    collections::{BTreeMap, btree_map::Entry},
    fs::{File, OpenOptions},
    io,
};

/// Shows the output of tasks.
pub struct Shown {
    /// One for each pair of destinations in use.
    lines: Vec<Lines>,
    /// The index in `lines` for each rank.
    of_rank: Vec<usize>,
    nodes: Vec<String>,
    ends: BTreeMap<u32, TaskEnd>,
    tasks: Tasks,
}

/// Where output of a task goes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Own,
    File(String),
    Nowhere,
}

impl Shown {
    /// Sets up the output by the options of the parts of a step.
    pub fn of(plan: &StepPlan, streams: &Streams, named: &Facts, tasks: Tasks) -> Result<Self, String> {
        let nodes = nodes_of_ranks(plan);
        let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let has_terminal = streams.of_tasks.terminal.is_some();
        let width = label(0, count).len() - 2;
        let mut files = Files { opened: BTreeMap::new(), appends: streams.of_tasks.append_output };
        let mut known: BTreeMap<([Way; 2], Option<usize>), usize> = BTreeMap::new();
        let (mut lines, mut of_rank) = (Vec::new(), Vec::with_capacity(nodes.len()));
        for (task, node) in plan.world.tasks.iter().zip(&nodes) {
            let settings = &plan.parts[task.part].settings;
            let facts = || Facts {
                node: node.clone(),
                node_rank: u32::try_from(task.node).unwrap_or(u32::MAX),
                task: task.rank,
                ..named.clone()
            };
            let ways = streams.shown[task.part].each_ref().map(|shown| way(shown, task.rank, facts));
            let width = Some(width).filter(|_| settings.is_set("label") && !has_terminal);
            let place = match known.entry((ways, width)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let form = Form::of(width, count, has_terminal || settings.is_set("unbuffered"));
                    let [output, errors] = &new.key().0;
                    let (output, errors) = (files.sink(output, io::stdout())?, files.sink(errors, io::stderr())?);
                    lines.push(Lines::into(form, output, errors));
                    *new.insert(lines.len() - 1)
                }
            };
            of_rank.push(place);
        }
        Ok(Self { lines, of_rank, nodes, ends: BTreeMap::new(), tasks })
    }

    /// Takes one frame.
    pub fn take(&mut self, frame: Frame<'_>) {
        if let Content::Ended(status) = frame.content {
            self.add_end(frame.rank, status);
            self.tasks.has_ended(frame.rank);
        }
        if let Some(place) = self.of_rank.get(frame.rank as usize) {
            self.lines[*place].take(frame);
        }
    }

    fn add_end(&mut self, rank: u32, status: ExitStatus) {
        let node = self.nodes.get(rank as usize).cloned().unwrap_or_default();
        self.ends.entry(rank).or_insert(TaskEnd { node, rank, status });
    }

    /// Adds the ends of tasks that did not report them.
    pub fn add_ends<'a>(&mut self, statuses: impl IntoIterator<Item = &'a TaskStatus>) {
        for TaskStatus { ranks, status } in statuses {
            ranks.iter().for_each(|rank| self.add_end(rank, *status));
        }
    }

    /// Shows what has arrived.
    pub fn flush(&mut self) -> io::Result<()> {
        self.lines.iter_mut().try_for_each(Lines::flush)
    }

    /// Shows the rest.
    pub fn finish(&mut self) -> io::Result<()> {
        self.lines.iter_mut().try_for_each(Lines::finish)
    }

    /// The ends of tasks, by rank.
    pub fn ends(&self) -> Vec<TaskEnd> {
        self.ends.values().cloned().collect()
    }
}

fn way(shown: &steps::Shown, rank: u32, facts: impl Fn() -> Facts) -> Way {
    match shown {
        steps::Shown::OneTask(only) if *only != rank => Way::Nowhere,
        steps::Shown::All | steps::Shown::OneTask(_) => Way::Own,
        steps::Shown::File(pattern) => Way::File(output::expand(pattern, &facts())),
        steps::Shown::Nothing => Way::Nowhere,
    }
}

/// The files written here, each opened once.
struct Files {
    opened: BTreeMap<String, File>,
    appends: bool,
}

impl Files {
    fn sink(&mut self, way: &Way, own: impl io::Write + 'static) -> Result<Sink, String> {
        let path = match way {
            Way::Own => return Ok(Box::new(own)),
            Way::Nowhere => return Ok(Box::new(io::sink())),
            Way::File(path) => path,
        };
        if !self.opened.contains_key(path) {
            self.opened.insert(path.clone(), open(path, self.appends)?);
        }
        let another = self.opened[path].try_clone();
        another.map(|file| Box::new(file) as Sink).map_err(|error| not_opened(path, &error))
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
    emptied.map_err(|error| not_opened(path, &error))
}

fn not_opened(path: &str, error: &io::Error) -> String {
    format!("Could not open stdout file {path}: {}", os_text(error))
}
