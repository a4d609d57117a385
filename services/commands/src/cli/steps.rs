//! The grammar of steps inside running jobs.

use super::QueryOptions;
use crate::values::{self, GpuCount};
use clap::{Args, Subcommand, ValueEnum};
use muster_schemas::{
    JobId, StepId,
    binding::{Binding, CoreBinding, MemoryBinding, SocketOrder},
    resources::{Gpus, Per},
    steps::{GpuBinding, ProcessManagement},
};
use std::str::FromStr;

/// `muster step`.
#[derive(Debug, Subcommand)]
pub enum StepCommand {
    /// Run a command inside a running job, with its input and output here
    Run(Box<StepRunOptions>),
    /// List the steps of a job, or of all running jobs
    List(StepListOptions),
    /// Show the output of a running step, in addition to its own client
    Attach(StepAttachOptions),
    /// Send a signal to the processes of a step
    #[command(override_usage = "muster step signal [OPTIONS] SIGNAL STEP")]
    Signal {
        /// The signal and the step.
        #[command(flatten)]
        words: StepSignalWords,
    },
    /// End a step: SIGTERM, after its grace SIGKILL
    End {
        /// The step, such as `12.1`
        step: StepName,
        /// Without grace
        #[arg(long)]
        force: bool,
    },
}

/// A step as people name it: the job, a dot and the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepName {
    /// The job.
    pub job: JobId,
    /// The number.
    pub step: StepId,
}

impl FromStr for StepName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('.').and_then(|(job, step)| Some((job.parse().ok()?, step.parse().ok()?)));
        let (job, step) = parts.ok_or_else(|| format!("`{text}` is not a step such as 12.1"))?;
        Ok(Self { job, step: StepId(step) })
    }
}

/// A signal and the step that gets it, in the order of `kill` and `muster job signal`. The other order works too: a
/// step has a dot and a signal has none.
#[derive(Debug, Args)]
pub struct StepSignalWords {
    /// The signal: a name such as USR1, or a number
    #[arg(value_name = "SIGNAL")]
    first: String,
    /// The step, such as `12.1`
    #[arg(value_name = "STEP")]
    second: String,
}

impl StepSignalWords {
    /// The number of the signal, and the step.
    ///
    /// # Errors
    /// One of them is invalid; the message is for people.
    pub fn signal_and_step(&self) -> Result<(u8, StepName), String> {
        let (signal, step) = match self.first.contains('.') {
            true => (&self.second, &self.first),
            false => (&self.first, &self.second),
        };
        Ok((values::parse_signal(signal)?, step.parse()?))
    }
}

/// `muster step run`.
#[derive(Debug, Args)]
#[command(override_usage = "muster step run [OPTIONS] JOB -- COMMAND [ARGS]...")]
pub struct StepRunOptions {
    /// How many tasks [default: one for each core, or for each node with -N]
    #[arg(short = 'n', long, value_name = "N", value_parser = values::parse_positive)]
    pub ntasks: Option<u32>,
    /// On how many of the job's nodes [default: as few as the tasks need, filled one after the other]
    #[arg(short = 'N', long, value_name = "N", value_parser = values::parse_positive)]
    pub nodes: Option<u32>,
    /// Cores for each task
    #[arg(short = 'c', long, value_name = "N", value_parser = values::parse_positive, default_value = "1")]
    pub cpus_per_task: u32,
    /// Its GPUs.
    #[command(flatten)]
    pub gpus: StepGpuOptions,
    /// Begin each line with the rank of its task
    #[arg(short = 'l', long)]
    pub label: bool,
    /// Give standard input to this task only [default: to all]
    #[arg(short = 'i', long, value_name = "RANK")]
    pub input_to: Option<u32>,
    /// Give the first task a terminal
    #[arg(long, conflicts_with_all = ["label", "input_to"])]
    pub pty: bool,
    /// Share cores with other steps
    #[arg(long)]
    pub overlap: bool,
    /// The first task that fails ends the others
    #[arg(short = 'K', long)]
    pub kill_on_failure: bool,
    /// How the tasks find each other if they are an MPI program: PMI-1 and PMI-2, as MPICH is built for; PMIx, as Open MPI is
    /// built for; or not at all [default: SLURM_MPI_TYPE, else mpi_default of the site]
    #[arg(long, value_name = "KIND", value_enum)]
    pub mpi: Option<MpiKind>,
    /// What the tasks are bound to.
    #[command(flatten)]
    pub bind: BindOptions,
    /// Run in containers of this image: the path of an OCI bundle or of an image file, or a name that the runtime of the nodes
    /// knows [default: no container]
    #[arg(long, value_name = "IMAGE", value_parser = values::parse_image)]
    pub container: Option<String>,
    /// Fail if the cores are not free now, instead of waiting for them
    #[arg(long)]
    pub now: bool,
    /// How long it may run: `30m`, `1:30:00`; a number alone is minutes
    #[arg(short = 't', long, value_name = "TIME", value_parser = values::parse_walltime)]
    pub time: Option<u64>,
    /// Its name, for people [default: the command]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The running job
    pub job: JobId,
    /// The command and its arguments; it runs once for each task
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub words: Vec<String>,
}

/// What the tasks of a step are bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct BindOptions {
    /// The cores of each task: all of the step's, its own, those on the sockets of its own, a socket for each in turn, or the
    /// numbers of the cores on its node [default: its own if the step has just enough]
    #[arg(
        long = "bind-cores",
        value_name = "all|own|sockets|each-socket|CORES:CORES...",
        value_parser = values::parse_core_binding,
        help_heading = "Binding"
    )]
    pub cores: Option<CoreBinding>,
    /// How the tasks are dealt out to the sockets of a node [default: the lowest free cores]
    #[arg(long, value_name = "ORDER", value_enum, help_heading = "Binding")]
    pub socket_order: Option<SocketOrderKind>,
    /// The most tasks on a socket
    #[arg(long, value_name = "N", value_parser = values::parse_positive, help_heading = "Binding")]
    pub tasks_per_socket: Option<u32>,
    /// One hardware thread of each processor core
    #[arg(long, help_heading = "Binding")]
    pub one_thread: bool,
    /// The memory of each task: of its cores, of the domain with its number on the node, or of these domains
    #[arg(
        long = "bind-memory",
        value_name = "local|rank|DOMAINS:DOMAINS...",
        value_parser = values::parse_memory_binding,
        help_heading = "Binding"
    )]
    pub memory: Option<MemoryBinding>,
    /// Each task tells what it is bound to
    #[arg(long, help_heading = "Binding")]
    pub show_binding: bool,
}

/// How tasks are dealt out to sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SocketOrderKind {
    /// A socket is filled before the next
    Block,
    /// Each task goes to the next socket
    Cyclic,
    /// Each core of a task comes from the next socket
    FullCyclic,
}

impl From<SocketOrderKind> for SocketOrder {
    fn from(kind: SocketOrderKind) -> Self {
        match kind {
            SocketOrderKind::Block => Self::Block,
            SocketOrderKind::Cyclic => Self::Cyclic,
            SocketOrderKind::FullCyclic => Self::FullCyclic,
        }
    }
}

impl BindOptions {
    /// The binding; `None` if nothing is asked for.
    pub fn binding(&self) -> Option<Binding> {
        let Self { cores, socket_order, tasks_per_socket, one_thread, memory, show_binding } = self.clone();
        let binding = Binding {
            cores,
            sockets: socket_order.map(SocketOrder::from),
            tasks_per_socket,
            one_thread,
            tells_cores: show_binding,
            tells_memory: show_binding && memory.is_some(),
            memory,
        };
        (binding != Binding::default()).then_some(binding)
    }
}

/// The GPUs of a step.
#[derive(Clone, Debug, Default, Args)]
pub struct StepGpuOptions {
    /// GPUs that no other step has meanwhile: `2`, `MODEL:2`, or `0` [default: all GPUs of the job, shared with other steps]
    #[arg(long, value_name = "[MODEL:]N", value_parser = parse_step_gpus, conflicts_with = "gpus_per_task")]
    pub gpus: Option<GpuCount>,
    /// GPUs for each task, which no other task sees
    #[arg(long, value_name = "[MODEL:]N", value_parser = values::parse_gpus)]
    pub gpus_per_task: Option<GpuCount>,
}

impl StepGpuOptions {
    /// The GPUs that the step has alone; those for the whole step are for each component of the job that it is in.
    pub fn wanted(&self) -> Option<Gpus> {
        let of_step = self.gpus.as_ref().map(|gpus| (gpus, Per::Request));
        let (gpus, per) = of_step.or_else(|| Some((self.gpus_per_task.as_ref()?, Per::Task)))?;
        Some(Gpus { count: gpus.count, per, model: gpus.model.clone() })
    }

    /// Which of them each task sees.
    pub fn binding(&self) -> Option<GpuBinding> {
        self.gpus_per_task.as_ref().map(|gpus| GpuBinding::PerTask(gpus.count))
    }
}

/// As [`values::parse_gpus`], but a step can do without any: `0`.
fn parse_step_gpus(text: &str) -> Result<GpuCount, String> {
    if text == "0" { Ok(GpuCount { count: 0, model: None }) } else { values::parse_gpus(text) }
}

/// The kinds of support for MPI programs (SL-W-03).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MpiKind {
    /// None
    None,
    /// PMI-1 and PMI-2
    Pmi2,
    /// PMIx
    Pmix,
}

impl From<MpiKind> for Option<ProcessManagement> {
    fn from(kind: MpiKind) -> Self {
        match kind {
            MpiKind::None => None,
            MpiKind::Pmi2 => Some(ProcessManagement::Pmi),
            MpiKind::Pmix => Some(ProcessManagement::Pmix),
        }
    }
}

/// `muster rsh`, with the options of `rsh` and `ssh` that launchers give.
#[derive(Debug, Args)]
pub struct RshOptions {
    /// No standard input
    #[arg(short = 'n')]
    pub no_input: bool,
    /// The user: only the job's
    #[arg(short = 'l', value_name = "USER")]
    pub user: Option<String>,
    /// Accepted, since launchers give it to `ssh`: no windows, no terminal, be quiet
    #[arg(short = 'x', short_aliases = ['T', 'q'], action = clap::ArgAction::Count)]
    pub ignored: u8,
    /// The job that this runs in
    #[arg(long, value_name = "ID", env = "MUSTER_JOB_ID", hide = true)]
    pub job: Option<JobId>,
    /// The node, one of the job's
    pub host: String,
    /// The command, as a line for a shell
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub words: Vec<String>,
}

/// `muster step list`.
#[derive(Debug, Args)]
pub struct StepListOptions {
    /// A job, finished or not [default: all running jobs]
    pub job: Option<JobId>,
    /// When, and how it is shown.
    #[command(flatten)]
    pub query: QueryOptions,
}

/// `muster step attach`.
#[derive(Debug, Args)]
pub struct StepAttachOptions {
    /// The step, such as `12.1`
    pub step: StepName,
    /// Begin each line with the rank of its task
    #[arg(short = 'l', long)]
    pub label: bool,
}
