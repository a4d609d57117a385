//! The file of `--multi-prog` (SL-R-24), which is read and checked before anything is submitted.

#[cfg(test)]
mod tests;

use super::{COMMAND, Problem, variable};
use crate::commands::slurm::submission::is_of_outer_job;
use muster_slurm::{
    environment::defaults,
    options::{
        CommandLine, Given, parse,
        values::{NodeRange, count, number},
    },
    queries::Failure,
    steps::{self, het_groups},
};

/// A file that gives each rank its program.
pub struct ProgramFile {
    path: String,
    /// Its lines, where each that is continued has become one.
    text: String,
}

/// Reads and checks the file of a step. If nothing else says how many tasks the step has, it is given as many as the file has
/// ranks for. `None` without `--multi-prog`, and for what is refused with it later.
///
/// # Errors
/// The file cannot be read, or does not give each task one program.
pub fn settle(line: &mut CommandLine) -> Result<Option<ProgramFile>, Problem> {
    let Some(sizes) = Sizes::of(line, variable) else { return Ok(None) };
    let Some(path) = line.words().first() else { return Ok(None) };
    let file = ProgramFile::read(path)?;
    match sizes {
        Sizes::Tasks(tasks) => drop(file.check(Some(tasks))?),
        Sizes::OfNodes => {}
        Sizes::OfFile => {
            let tasks = file.check(None)?;
            // Behind the others: an option that could say something else was not given.
            let sized = parse(COMMAND, &[format!("--ntasks={tasks}")])?;
            for (group, sized) in line.groups.iter_mut().zip(sized.groups) {
                group.options.extend(sized.options);
            }
        }
    }
    Ok(Some(file))
}

/// What says how many tasks a step of `--multi-prog` has.
#[derive(Debug, PartialEq, Eq)]
enum Sizes {
    /// Its options: so many.
    Tasks(u32),
    /// The number of its nodes, which is known when it has them.
    OfNodes,
    /// The file.
    OfFile,
}

impl Sizes {
    /// `None` if the step has no such file, or several parts, of which none can have one (SL-R-15).
    fn of(line: &CommandLine, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let [_] = line.groups.as_slice() else { return None };
        let components = line.first("het-group").map(het_groups).transpose().ok()?.unwrap_or_default();
        if components.len() > 1 {
            return None;
        }
        let component = components.first().copied().unwrap_or(0);
        let component = variable("SLURM_HET_SIZE").map(|_| component);
        // What the variables say of sizes is about the job that they belong to.
        let is_other = line.first("jobid").is_some_and(|job| variable("SLURM_JOB_ID").is_some_and(|own| own != job));
        let lookup = |name: &str| variable(name).filter(|_| !is_other || !is_of_outer_job(name));
        let usual = defaults(COMMAND, component, lookup);
        let text = |name: &str| {
            let of_variable = || usual.iter().find(|given| given.option.name == name).map(Given::text);
            line.first(name).or_else(of_variable)
        };
        text("multi-prog")?;
        // A value that is wrong is refused where the step is planned.
        Some(match (text("ntasks"), text("ntasks-per-node")) {
            (Some(tasks), _) => count(tasks).map_or(Self::OfNodes, Self::Tasks),
            (None, Some(each)) => tasks_of_nodes(text("nodes"), each).map_or(Self::OfNodes, Self::Tasks),
            (None, None) => Self::OfFile,
        })
    }
}

/// So many tasks are on so many nodes; `None` if the number of nodes is open.
fn tasks_of_nodes(nodes: Option<&str>, each: &str) -> Option<u32> {
    let nodes = NodeRange::parse(nodes?).filter(|nodes| nodes.max.is_none_or(|max| max == nodes.min))?;
    nodes.min.checked_mul(count(each)?)
}

impl ProgramFile {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or a line says nothing that could be run.
    pub fn read(path: &str) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(path).map_err(|error| fatal(format!("Unable to open {path}: {error}")))?;
        let file = Self { path: path.to_owned(), text: joined(&text) };
        // No task needs a line yet: this is about the lines only.
        file.programs_of(0)?;
        Ok(file)
    }

    /// The command of each rank.
    ///
    /// # Errors
    /// As [`settle`]: how many tasks there are can have been unknown then.
    pub fn programs(&self, tasks: u32) -> Result<Vec<Vec<String>>, Problem> {
        self.check(Some(tasks))?;
        self.programs_of(tasks)
    }

    fn programs_of(&self, tasks: u32) -> Result<Vec<Vec<String>>, Problem> {
        steps::programs(&self.text, tasks).map_err(|error| fatal(format!("{}: {error}", self.path)))
    }

    fn check(&self, asked: Option<u32>) -> Result<u32, Problem> {
        tasks_of(&self.text, asked).map_err(|fault| Problem::Failed(fault.failure(&self.path)))
    }
}

fn fatal(text: String) -> Problem {
    Problem::Failed(Failure::fatal(COMMAND.name(), text))
}

/// The text with each line that ends in a backslash and the next one as one. Empty lines make up for it, so that the numbers
/// of the others stay.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut continued = 0;
    for line in text.lines() {
        match line.strip_suffix('\\') {
            Some(begin) => {
                joined.push_str(begin);
                continued += 1;
            }
            None => {
                joined.push_str(line);
                joined.extend(std::iter::repeat_n('\n', continued + 1));
                continued = 0;
            }
        }
    }
    joined
}

/// Why a file does not say what each task runs.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// A rank that the step does not have.
    Beyond { line: usize, rank: u32 },
    /// A rank that has a program already.
    Duplicate { line: usize, rank: u32 },
    /// A rank without any.
    NoRecord { rank: u32 },
}

impl Fault {
    /// In the words of Slurm.
    fn failure(&self, path: &str) -> Failure {
        let of_line =
            |why: String, line: &usize| vec![why, format!("Line {line} of configuration file {path} invalid")];
        let lines = match self {
            Self::Beyond { line, rank } => of_line(format!("Invalid task id, {rank} >= ntasks"), line),
            Self::Duplicate { line, rank } => of_line(format!("Duplicate record for task {rank}"), line),
            Self::NoRecord { rank } => {
                vec![format!("Configuration file {path} invalid, no record for task id {rank}")]
            }
        };
        Failure { lines: lines.into_iter().map(|line| format!("{COMMAND}: error: {line}")).collect(), code: 1 }
    }
}

/// The number of tasks: what was asked for, else one more than the highest rank. As in Slurm `*` stands for those that there
/// are by then, so that it belongs into the last line.
fn tasks_of(text: &str, asked: Option<u32>) -> Result<u32, Fault> {
    let mut tasks = asked.unwrap_or(1);
    let mut known: Vec<(u32, u32)> = Vec::new();
    for (line, record) in (1..).zip(text.lines()).filter(|(_, record)| !record.starts_with('#')) {
        let Some(ranks) = record.split_ascii_whitespace().next() else { continue };
        if ranks == "*" {
            known.push((0, tasks.saturating_sub(1)));
            continue;
        }
        for (first, last) in ranges(ranks) {
            if last >= tasks {
                if asked.is_some() {
                    return Err(Fault::Beyond { line, rank: last });
                }
                tasks = last.saturating_add(1);
            }
            if let Some(rank) = first_in(&known, first, last) {
                return Err(Fault::Duplicate { line, rank });
            }
            known.push((first, last));
        }
    }
    first_missing(known, tasks).map_or(Ok(tasks), |rank| Err(Fault::NoRecord { rank }))
}

/// The ranks of a line. What are none was refused when the file was read.
fn ranges(text: &str) -> impl Iterator<Item = (u32, u32)> {
    text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        number(first).zip(number(last)).filter(|(first, last)| first <= last)
    })
}

/// The first rank of a range that is in one of the others.
fn first_in(known: &[(u32, u32)], first: u32, last: u32) -> Option<u32> {
    let common = known.iter().map(|(low, high)| (first.max(*low), last.min(*high)));
    common.filter(|(low, high)| low <= high).map(|(low, _)| low).min()
}

/// The first rank of a step that is in none of the ranges.
fn first_missing(mut known: Vec<(u32, u32)>, tasks: u32) -> Option<u32> {
    known.sort_unstable();
    let mut next = 0;
    for (first, last) in known {
        if first > next {
            break;
        }
        next = next.max(last.saturating_add(1));
    }
    (next < tasks).then_some(next)
}
