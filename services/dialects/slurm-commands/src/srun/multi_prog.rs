//! The file of `--multi-prog` (SL-R-24), read and checked before anything is submitted.

#[cfg(test)]
mod tests;

use super::{Problem, variable};
use crate::{site::os_text, submission::is_of_outer_job};
use muster_slurm::{
    environment::defaults,
    options::{
        Command, CommandLine, Given, parse,
        values::{NodeRange, count},
    },
    queries::Failure,
    steps::{self, RankError, het_groups},
};

/// A file with the program of each rank.
pub struct ProgramFile {
    path: String,
    programs: steps::ProgramFile,
}

/// Reads and checks the file of a step. If nothing else gives the number of tasks, the step gets one task for each rank
/// in the file. `None` without `--multi-prog`, and for errors that are refused later.
///
/// # Errors
/// The file cannot be read, or does not give each task one program.
pub fn settle(line: &mut CommandLine) -> Result<Option<ProgramFile>, Problem> {
    let Some(sizes) = Sizes::of(line, variable) else { return Ok(None) };
    let Some(path) = line.words().first() else { return Ok(None) };
    let file = ProgramFile::read(path)?;
    match sizes {
        Sizes::Tasks(tasks) => drop(file.tasks(Some(tasks))?),
        Sizes::OfNodes => {}
        Sizes::OfFile => {
            let tasks = file.tasks(None)?;
            // After the others: no option that could contradict it was given.
            let sized = parse(Command::Srun, &[format!("--ntasks={tasks}")])?;
            for (group, sized) in line.groups.iter_mut().zip(sized.groups) {
                group.options.extend(sized.options);
            }
        }
    }
    Ok(Some(file))
}

/// What determines the number of tasks of a step with `--multi-prog`.
#[derive(Debug, PartialEq, Eq)]
enum Sizes {
    /// Its options: this many tasks.
    Tasks(u32),
    /// The number of its nodes, known once it has them.
    OfNodes,
    /// The file.
    OfFile,
}

impl Sizes {
    /// `None` if the step has no such file, or several parts, none of which can have one (SL-R-15).
    fn of(line: &CommandLine, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let [_] = line.groups.as_slice() else { return None };
        let components = line.first("het-group").map(het_groups).transpose().ok()?.unwrap_or_default();
        if components.len() > 1 {
            return None;
        }
        let component = components.first().copied().unwrap_or(0);
        let component = variable("SLURM_HET_SIZE").map(|_| component);
        // Variables about sizes are about the job that they belong to.
        let is_other = line.first("jobid").is_some_and(|job| variable("SLURM_JOB_ID").is_some_and(|own| own != job));
        let lookup = |name: &str| variable(name).filter(|_| !is_other || !is_of_outer_job(name));
        let usual = defaults(Command::Srun, component, lookup);
        let text = |name: &str| {
            let of_variable = || usual.iter().find(|given| given.option.name == name).map(Given::text);
            line.first(name).or_else(of_variable)
        };
        text("multi-prog")?;
        // A wrong value is refused when the step is planned.
        Some(match (text("ntasks"), text("ntasks-per-node")) {
            (Some(tasks), _) => count(tasks).map_or(Self::OfNodes, Self::Tasks),
            (None, Some(each)) => tasks_of_nodes(text("nodes"), each).map_or(Self::OfNodes, Self::Tasks),
            (None, None) => Self::OfFile,
        })
    }
}

/// The number of tasks on this number of nodes; `None` if the number of nodes is open.
fn tasks_of_nodes(nodes: Option<&str>, each: &str) -> Option<u32> {
    let nodes = NodeRange::parse(nodes?).filter(|nodes| nodes.max.is_none_or(|max| max == nodes.min))?;
    nodes.min.checked_mul(count(each)?)
}

impl ProgramFile {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or a line names nothing to run.
    pub fn read(path: &str) -> Result<Self, Problem> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| fatal(format!("Unable to open {path}: {}", os_text(&error))))?;
        let programs = steps::ProgramFile::parse(&text).map_err(|error| fatal(format!("{path}: {error}")))?;
        Ok(Self { path: path.to_owned(), programs })
    }

    /// The command of each rank.
    ///
    /// # Errors
    /// See [`settle`]: the number of tasks may have been unknown then.
    pub fn programs(&self, tasks: u32) -> Result<Vec<Vec<String>>, Problem> {
        self.programs.programs(tasks).map_err(|error| self.problem(&error))
    }

    fn tasks(&self, asked: Option<u32>) -> Result<u32, Problem> {
        self.programs.tasks(asked).map_err(|error| self.problem(&error))
    }

    fn problem(&self, error: &RankError) -> Problem {
        let lines = error.lines(&self.path).into_iter().map(|line| format!("{}: error: {line}", Command::Srun));
        Problem::Failed(Failure { lines: lines.collect(), code: 1 })
    }
}

fn fatal(text: String) -> Problem {
    Problem::Failed(Failure::fatal(Command::Srun.name(), text))
}
