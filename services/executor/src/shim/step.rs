//! The tasks of a step with its own places, before they are started.

use super::{
    binding::Bound,
    container::Container,
    execution::ProgramPath,
    files::Files,
    programs::{added_by, command_elsewhere, command_program, enter_directory},
    streams::{self, Streams},
    task::{End, Ends, Task, Tasks},
};
use crate::{
    environment,
    spool::{RunFolder, SpooledOrder},
};
use muster_dialect::Dialect;
use muster_schemas::steps::{StepInput, StepOutput, StepStreams, StepTasks, TerminalSize};
use std::{collections::BTreeMap, fs::File, io, rc::Rc};

/// Opens everything that the tasks need, as their user. Connections to their client are made when they start.
pub fn prepare(
    spooled: &SpooledOrder,
    tasks: &StepTasks,
    folder: &RunFolder,
    streams: &mut Option<Streams>,
    dialect: Option<&dyn Dialect>,
) -> Result<Tasks, String> {
    let order = &spooled.order;
    let directory = enter_directory(&order.working_directory)?;
    let mut variables = environment::common(spooled, folder.path(), added_by(dialect, spooled, folder));
    variables.retain(|name, _| !tasks.variables.contains_key(name));
    variables.extend(environment::of_step(order, tasks));
    let search = variables.get("PATH").map_or("", String::as_str).to_owned();
    let mut files = Files::of_step(order, &tasks.streams);
    let container = Container::open(spooled, folder)?;
    let mut programs = Programs { tasks, search, in_container: container.is_some(), found: BTreeMap::new() };
    let ranks: Vec<u32> = tasks.ranks.iter().collect();
    let each = ranks.into_iter().zip(0..).map(|(rank, local_rank)| {
        let terminal = terminal_of(&tasks.streams, rank, streams)?;
        Ok(Task {
            rank,
            local_rank,
            program: programs.of(rank)?,
            has_terminal: terminal.is_some(),
            ends: match terminal {
                Some(ends) => ends,
                None => ends(&tasks.streams, rank, &mut files, streams.is_some())?,
            },
            bound: Bound::of(spooled, tasks, rank, local_rank),
        })
    });
    Ok(Tasks::of(order, directory, &variables, each, dialect)?.within(container))
}

/// Commands, each searched for once.
struct Programs<'a> {
    tasks: &'a StepTasks,
    search: String,
    /// Whether commands are looked up in a container instead.
    in_container: bool,
    found: BTreeMap<Vec<String>, Rc<ProgramPath>>,
}

impl Programs<'_> {
    /// The program of a rank. If it is not found, the launch does not fail: its task reports that, and ends (SL-R-23).
    fn of(&mut self, rank: u32) -> Result<Rc<ProgramPath>, String> {
        let argv = self.tasks.argv(rank);
        if let Some(found) = self.found.get(argv) {
            return Ok(found.clone());
        }
        let program = match command_program(argv, &self.search) {
            Ok(program) if !self.in_container => program,
            _ => command_elsewhere(argv)?,
        };
        let program = Rc::new(program);
        self.found.insert(argv.to_vec(), program.clone());
        Ok(program)
    }
}

/// The streams of a task that has a terminal; `None` if it has none.
fn terminal_of(wanted: &StepStreams, rank: u32, streams: &mut Option<Streams>) -> Result<Option<Ends>, String> {
    let (Some(size), 0, Some(streams)) = (wanted.terminal, rank, streams) else { return Ok(None) };
    let terminal = terminal(streams, rank, size);
    let terminal = Rc::new(terminal.map_err(|error| format!("the terminal of task {rank} cannot be made: {error}"))?);
    Ok(Some(Ends { stdin: End::File(terminal.clone()), stdout: End::File(terminal), stderr: None }))
}

fn ends(wanted: &StepStreams, rank: u32, files: &mut Files<'_>, has_client: bool) -> Result<Ends, String> {
    let stdin = match &wanted.stdin {
        StepInput::File(pattern) => End::File(files.input_from(pattern, rank)?),
        _ if has_client && wanted.feeds(rank) => End::Client,
        _ => End::File(files.input_from("/dev/null", rank)?),
    };
    let mut output = |wanted: &StepOutput| match wanted {
        StepOutput::File(pattern) => files.output_to(pattern, rank).map(End::File),
        StepOutput::Client if has_client => Ok(End::Client),
        StepOutput::Discarded | StepOutput::Client => files.output_to("/dev/null", rank).map(End::File),
    };
    let stdout = output(&wanted.stdout)?;
    let stderr = wanted.stderr.as_ref().map(output).transpose()?;
    Ok(Ends { stdin, stdout, stderr })
}

/// The task's side of a terminal.
fn terminal(streams: &mut Streams, rank: u32, size: TerminalSize) -> io::Result<File> {
    use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
    let pair = nix::pty::openpty(None, None)?;
    let (ours, theirs) = (File::from(pair.master), File::from(pair.slave));
    for file in [&ours, &theirs] {
        fcntl(file, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    streams::set_size(&ours, size);
    streams.add_terminal(ours, rank)?;
    Ok(theirs)
}
