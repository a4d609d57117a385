//! The grammar of the command line.

mod agent;
mod backups;
mod columns;
mod filters;
mod ledgers;
mod logs;
mod overview;
mod plans;
mod query;
mod quotas;
mod reservations;
mod simulations;
mod steps;

pub use agent::{AgentCommand, AgentOptions};
pub use backups::{BackupCommand, BackupOptions, RestoreOptions};
pub use columns::{JobColumn, SortKey};
pub use filters::{FilterCommand, FilterTestOptions};
pub use ledgers::{LedgersCommand, LedgersOptions};
pub use logs::LogsOptions;
pub use overview::{ShellOptions, StatusOptions, TopOptions};
pub use plans::{ExplainOptions, PlanOptions, ReplayOptions};
pub use query::QueryOptions;
pub use quotas::QuotaCommand;
pub use reservations::{CloseOptions, ReservationsOptions, ReserveOptions};
pub use simulations::{SimulateOptions, WhatifOptions};
pub use steps::{
    BindOptions, MpiKind, RshOptions, StepAttachOptions, StepCommand, StepListOptions, StepName, StepRunOptions,
};

pub use muster_cli::connection::ConnectionOptions;
pub use muster_hpcpack_commands::HpcpackVerb;

use crate::{
    job_options::JobOptions,
    values::{self, SignalBefore},
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use muster_schemas::{JobId, Timestamp, job::JobState, public::catalogue, views::NodeStateWord};
use std::{collections::BTreeSet, path::PathBuf};

/// muster, a batch scheduler whose whole history is one event log
#[derive(Debug, Parser)]
#[command(
    name = "muster",
    version,
    args_override_self = true,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// How to reach the system.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The grammar of `muster submit` alone, which is built in a fraction of the time: scripts submit by the thousand.
#[derive(Debug, Parser)]
#[command(name = "muster", version, args_override_self = true, max_term_width = 100, subcommand_required = true)]
pub struct SubmitCli {
    #[command(flatten)]
    connection: ConnectionOptions,
    #[command(subcommand)]
    command: SubmitCommand,
}

#[derive(Debug, Subcommand)]
enum SubmitCommand {
    /// Submit a script or a command as a job
    Submit(Box<SubmitOptions>),
}

impl From<SubmitCli> for Cli {
    fn from(cli: SubmitCli) -> Self {
        let SubmitCommand::Submit(options) = cli.command;
        Self { connection: cli.connection, command: Command::Submit(options) }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a whole system in this process, with emulated nodes
    Up(UpOptions),
    /// Run the roles named
    Serve(ServeOptions),
    /// Submit a script or a command as a job
    Submit(Box<SubmitOptions>),
    /// Start a step inside a job and wait for it
    Run(RunOptions),
    /// Run commands inside running jobs with their input and output here, list and end them
    #[command(subcommand)]
    Step(StepCommand),
    /// Run a command on another node of the job that this runs in, as `rsh` does
    #[command(hide = true)]
    Rsh(RshOptions),
    /// How the cluster is doing: its nodes, its queues and their jobs; with ids these jobs
    Status(StatusOptions),
    /// Nodes, queues and jobs, again and again until Ctrl-C
    Top(TopOptions),
    /// List jobs
    #[command(visible_alias = "ps")]
    Jobs(Box<JobsOptions>),
    /// Cancel jobs, as `muster job cancel`
    Cancel(SelectionOptions),
    /// Show what a job wrote
    Logs(LogsOptions),
    /// Open a shell in a running job, or in a new job that ends with the shell
    Shell(Box<ShellOptions>),
    /// Show or change one job, or several
    #[command(subcommand)]
    Job(JobCommand),
    /// List nodes
    Nodes(NodesOptions),
    /// Show or change nodes
    #[command(subcommand)]
    Node(NodeCommand),
    /// Keep nodes for some jobs for a time
    Reserve(ReserveOptions),
    /// Delete a reservation; jobs running in it continue
    Unreserve {
        /// The reservation
        name: String,
    },
    /// List reservations that are not over
    Reservations(ReservationsOptions),
    /// List queues and licences
    Queues(QueryOptions),
    /// List filters, or try one out
    #[command(subcommand)]
    Filter(FilterCommand),
    /// Why a job waits and what would start it now, or how its start came about
    Explain(ExplainOptions),
    /// Show running jobs, reservations and expected starts, as a table or a chart
    Plan(PlanOptions),
    /// Print what happened, as it happens with --follow
    Events(EventsOptions),
    /// What users, accounts and queues asked for and used
    Usage(UsageOptions),
    /// Verify the history, or export it so that others can
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Back up the running ledger of this host, or list its backups
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    Backup(BackupOptions),
    /// Put a backup into a data folder without a ledger
    Restore(RestoreOptions),
    /// Fold the log again and print the digest of the state; repeat the planner's decisions
    Replay(ReplayOptions),
    /// Run the jobs of a trace under a policy in simulated time
    Simulate(SimulateOptions),
    /// What would have happened under another policy: replay the log's own jobs
    Whatif(WhatifOptions),
    /// Show, check or apply the cluster's configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show, check or set quotas: limits on what jobs of queues, accounts, kinds and users hold at once
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// List the ledgers that keep one history, or let another one lead
    #[command(args_conflicts_with_subcommands = true)]
    Ledgers(LedgersOptions),
    /// Say what is wrong with this installation
    Doctor(DoctorOptions),
    /// Run the agent of a node that only reaches a gateway, or make a token for one
    #[command(args_conflicts_with_subcommands = true)]
    Agent(AgentOptions),
    /// HPC Pack: show and change job templates and their filters; `jobtemplate /help` lists the verbs
    Jobtemplate {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// HPC Pack: show and set settings of filters and scheduling: `setparams`, `listparams`, `view`
    Cluscfg {
        /// Its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// Slurm: sbatch, squeue, sinfo, scancel, scontrol, sacct; `muster slurm NAME --help` lists the options
    Slurm {
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// OAR: oarsub, oarstat, oardel, oarnodes, oarnodesetting and others; `muster oar import` writes a configuration from OAR's
    Oar {
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// PBS: qsub, qstat, qdel, qmgr, pbsnodes, tracejob and others; `muster pbs check DIR` checks the policy files of a scheduler, `muster pbs plan DIR --state FILE` plans one cycle under them
    Pbs {
        /// The command and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// PBS: `muster basl check FILE` checks a scheduling program in BaSL
    Basl {
        /// `check` and the file
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORDS")]
        words: Vec<String>,
    },
    /// Make links to the commands of the dialects in a folder: `job`, `jobtemplate`, `cluscfg`, `sbatch`, `squeue`, `qsub`, `oarsub` ...
    InstallCommands {
        /// The folder; made if it is missing.
        dir: PathBuf,
    },
    /// Print the script that makes a shell complete commands, options, jobs, nodes, queues and policies
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// The folder; made if it is missing.
        dir: PathBuf,
    },
    /// Print the version
    Version,
}

/// `muster up`.
#[derive(Debug, Args)]
pub struct UpOptions {
    /// How many nodes to emulate [default: those the cluster has, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub nodes: Option<u32>,
    /// CPUs of each node [default: this host's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub cpus: Option<u32>,
    /// Memory of each node, such as 16G [default: this host's]
    #[arg(long, value_name = "SIZE", value_parser = values::parse_size)]
    pub memory: Option<u64>,
    /// The planner's policy, by name or file [default: the one in force]
    #[arg(long, value_name = "NAME|FILE")]
    pub policy: Option<String>,
    /// The configuration file [default: /etc/muster/muster.toml if it exists]
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// Whether jobs start, whatever was set before: true, t, True, T, 1, false, f, False, F or 0 [default: as it was]
    #[arg(short = 'a', long, value_name = "WORD", value_parser = values::parse_switch)]
    pub scheduling: Option<bool>,
    /// What to do without the log that was there.
    #[command(flatten)]
    pub log: LogOptions,
}

/// What a ledger may do once although the log is not what it was.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LogOptions {
    /// Begin a new log although the key, the spool or the books of an earlier one exist: a new cluster, with job numbers from 1
    #[arg(long)]
    pub new_log: bool,
    /// Continue from the present end of the log, although durable records are missing or the witness cannot be trusted
    #[arg(long)]
    pub accept_log_end: bool,
    /// Lead, as one of several ledgers, on a new and empty stream, if the log ends at this record: what only other ledgers have
    /// is lost
    #[arg(long, value_name = "RECORD")]
    pub lead_new_stream: Option<u64>,
}

/// `muster serve`.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// The roles to run in this process
    #[arg(required = true, value_name = "ROLE")]
    pub roles: Vec<Role>,
    /// The configuration file [default: /etc/muster/muster.toml if it exists]
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// The node that the executor serves [default: this host's name]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Whether jobs start, whatever was set before: true, t, True, T, 1, false, f, False, F or 0 [default: as it was]
    #[arg(short = 'a', long, value_name = "WORD", value_parser = values::parse_switch)]
    pub scheduling: Option<bool>,
    /// What to do without the log that was there.
    #[command(flatten)]
    pub log: LogOptions,
}

/// A role of a process. The variants are in the order in which roles start: the executor waits until the cluster has
/// its node, which somebody adds through the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Role {
    /// The log and the authoritative state.
    Ledger,
    /// The HTTP API.
    Gateway,
    /// Chooses which jobs start where.
    Planner,
    /// Sends mail and runs notification commands.
    Notifier,
    /// Runs the site's filters.
    FilterRunner,
    /// Counts usage.
    Accounting,
    /// Runs the jobs of one node.
    Executor,
}

/// `muster submit`.
#[derive(Debug, Args)]
#[command(
    override_usage = "muster submit [OPTIONS] SCRIPT [ARGS]...\n       muster submit [OPTIONS] -- COMMAND [ARGS]..."
)]
pub struct SubmitOptions {
    /// What the job is.
    #[command(flatten)]
    pub job: JobOptions,
    /// Wait until the job has ended, and exit with its status (128 + the number of a signal)
    #[arg(long)]
    pub wait: bool,
    /// Wait, and show the job's output meanwhile
    #[arg(short = 'f', long, conflicts_with_all = ["no_wait", "parsable", "array"])]
    pub follow: bool,
    /// Do not wait for the verdict of submission filters
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,
    /// Print only the job's number
    #[arg(long)]
    pub parsable: bool,
    /// Print the job that would be submitted, as JSON, and submit nothing
    #[arg(long)]
    pub dry_run: bool,
    /// A script (`-` for standard input) and its arguments, or after `--` a command that runs once for each task
    #[arg(required = true, trailing_var_arg = true, value_name = "SCRIPT|COMMAND")]
    pub words: Vec<String>,
}

/// `muster run`.
#[derive(Debug, Args)]
#[command(override_usage = "muster run [OPTIONS] [--] COMMAND [ARGS]...")]
pub struct RunOptions {
    /// How many tasks [default: as many as the job has]
    #[arg(short = 'n', long, value_name = "N", value_parser = values::parse_positive)]
    pub ntasks: Option<u32>,
    /// On how many of the job's nodes [default: all that the tasks need]
    #[arg(short = 'N', long, value_name = "N", value_parser = values::parse_positive)]
    pub nodes: Option<u32>,
    /// The running job [default: the one that this runs in]
    #[arg(long, value_name = "ID", env = "MUSTER_JOB_ID", hide_env_values = true)]
    pub job: JobId,
    /// Its GPUs.
    #[command(flatten)]
    pub gpus: steps::StepGpuOptions,
    /// Standard output [default: that of the job's output file pattern]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<String>,
    /// Standard error [default: the same file as standard output]
    #[arg(short = 'e', long, value_name = "FILE")]
    pub error: Option<String>,
    /// Standard input [default: /dev/null]
    #[arg(short = 'i', long, value_name = "FILE")]
    pub input: Option<String>,
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
    /// Signal the step before the job's walltime is over
    #[arg(long, value_name = "SIGNAL[@SECONDS]", value_parser = values::parse_signal_before)]
    pub warn: Option<SignalBefore>,
    /// The command and its arguments; it runs once for each task
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub words: Vec<String>,
}

/// Which jobs.
#[derive(Clone, Debug, Default, Args)]
pub struct FilterOptions {
    /// Only jobs of this user
    #[arg(short = 'u', long, value_name = "USER")]
    pub user: Option<String>,
    /// Only jobs in this queue
    #[arg(short = 'q', long, value_name = "QUEUE")]
    pub queue: Option<String>,
    /// Only jobs of this account
    #[arg(short = 'A', long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// Only jobs with this name
    #[arg(short = 'J', long, value_name = "NAME")]
    pub name: Option<String>,
    /// Only jobs in these states: held, queued, launching, running, suspended, finishing, finished
    #[arg(short = 's', long, value_name = "STATES", value_delimiter = ',', value_parser = parse_state)]
    pub state: Vec<JobState>,
}

/// `muster jobs`.
#[derive(Debug, Args)]
pub struct JobsOptions {
    /// Which jobs.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// Finished jobs too, as far as they are kept
    #[arg(short = 'a', long)]
    pub all: bool,
    /// Maximum number of rows
    #[arg(long, value_name = "N", value_parser = values::parse_positive)]
    pub limit: Option<u32>,
    /// These columns, in this order
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "json")]
    pub columns: Vec<JobColumn>,
    /// Order the rows by these columns; the greatest first with a `-` in front, such as `-cpus,name`
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', allow_hyphen_values = true)]
    pub sort: Vec<SortKey>,
    /// When, and in which form.
    #[command(flatten)]
    pub query: QueryOptions,
    /// These jobs, arrays or tasks only
    #[arg(value_name = "ID")]
    pub ids: Vec<JobId>,
}

/// Jobs to act on.
#[derive(Clone, Debug, Args)]
#[group(required = false)]
pub struct SelectionOptions {
    /// Every job that matches the filter instead of jobs by id; without a filter, every job that you may manage
    #[arg(long, conflicts_with = "ids")]
    pub matching: bool,
    /// Which jobs, with --matching.
    #[command(flatten)]
    pub filter: FilterOptions,
    /// Jobs, arrays or tasks, such as 12 or 12_3
    #[arg(value_name = "ID", required_unless_present = "matching")]
    pub ids: Vec<JobId>,
}

/// Which holds.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct HoldKinds {
    /// The operators' hold instead of the user's
    #[arg(long)]
    pub operator: bool,
    /// The administrators' hold instead of the user's
    #[arg(long)]
    pub system: bool,
}

/// `muster job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Show everything known about a job
    Show {
        /// When, and in which form.
        #[command(flatten)]
        query: QueryOptions,
        /// The job, array or task
        id: JobId,
    },
    /// Show what happened to a job
    Events {
        /// Print JSON for programs, one event a line
        #[arg(long)]
        json: bool,
        /// The job, array or task
        id: JobId,
    },
    /// Cancel jobs
    Cancel(SelectionOptions),
    /// Hold jobs until they are released; running jobs continue and are held when they are requeued
    Hold {
        /// Which holds.
        #[command(flatten)]
        kinds: HoldKinds,
        /// Why, for people
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
        /// Which jobs.
        #[command(flatten)]
        jobs: SelectionOptions,
    },
    /// Release held jobs
    Release {
        /// Which holds.
        #[command(flatten)]
        kinds: HoldKinds,
        /// Which jobs.
        #[command(flatten)]
        jobs: SelectionOptions,
    },
    /// Stop the processes of running jobs; their cores are free for others meanwhile
    Suspend(SelectionOptions),
    /// Resume suspended jobs as soon as their cores are free
    Resume(SelectionOptions),
    /// Stop running jobs and put them back into the queue
    Requeue {
        /// Hold them there
        #[arg(long)]
        hold: bool,
        /// Which jobs.
        #[command(flatten)]
        jobs: SelectionOptions,
    },
    /// Send a signal to the processes of running jobs
    Signal {
        /// The signal: a name such as USR1, or a number
        #[arg(value_parser = values::parse_signal)]
        signal: u8,
        /// Which jobs.
        #[command(flatten)]
        jobs: SelectionOptions,
    },
    /// Let a running job give up nodes
    #[command(group(clap::ArgGroup::new("kept").required(true)))]
    Shrink {
        /// It keeps this many of its first nodes
        #[arg(long, value_name = "N", group = "kept")]
        nodes: Option<u32>,
        /// It keeps these nodes, among them its first
        #[arg(long, value_name = "NODES", group = "kept")]
        keep: Option<String>,
        /// The component that gives them up, from 0; for a job with several
        #[arg(long, value_name = "N")]
        component: Option<u32>,
        /// The job
        id: JobId,
    },
    /// Change jobs
    Modify(Box<ModifyOptions>),
    /// Wait until jobs have ended, and exit with the first status that is not 0
    Wait {
        /// The jobs, arrays or tasks
        #[arg(required = true, value_name = "ID")]
        ids: Vec<JobId>,
    },
    /// Verbs of the HPC Pack dialect.
    #[command(flatten)]
    Hpcpack(HpcpackVerb),
}

/// `muster job modify`.
#[derive(Debug, Args)]
pub struct ModifyOptions {
    /// A new name
    #[arg(long, value_name = "NAME")]
    pub set_name: Option<String>,
    /// Another queue
    #[arg(long, value_name = "QUEUE")]
    pub set_queue: Option<String>,
    /// Another account
    #[arg(long, value_name = "ACCOUNT")]
    pub set_account: Option<String>,
    /// Another priority
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Another begin time
    #[arg(long, value_name = "WHEN", value_parser = values::parse_future)]
    pub begin: Option<Timestamp>,
    /// Another walltime, also of running jobs
    #[arg(short = 't', long, value_name = "TIME", value_parser = values::parse_walltime)]
    pub time: Option<u64>,
    /// Maximum number of tasks of the array running at a time
    #[arg(long, value_name = "N", value_parser = values::parse_positive)]
    pub max_running: Option<u32>,
    /// Only this component of the job, from 0
    #[arg(long, value_name = "N")]
    pub component: Option<u32>,
    /// Which jobs.
    #[command(flatten)]
    pub jobs: SelectionOptions,
}

/// `muster nodes`.
#[derive(Debug, Args)]
pub struct NodesOptions {
    /// Only nodes in these states: unknown, up, drained, lost
    #[arg(short = 's', long, value_name = "STATES", value_delimiter = ',', value_parser = parse_node_state)]
    pub state: Vec<NodeStateWord>,
    /// One line for each group of identical nodes
    #[arg(long, conflicts_with = "json")]
    pub summary: bool,
    /// When, and in which form.
    #[command(flatten)]
    pub query: QueryOptions,
    /// These nodes only, such as `node[1-4]`
    #[arg(value_name = "NODES")]
    pub nodes: Option<String>,
}

/// `muster node`.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Show everything known about a node
    Show {
        /// When, and in which form.
        #[command(flatten)]
        query: QueryOptions,
        /// The node
        node: String,
    },
    /// Stop new jobs on nodes; running jobs continue
    Drain {
        /// Why, for people
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
        /// The nodes, such as `node[1-4]`
        nodes: String,
    },
    /// Let drained nodes take jobs again
    Resume {
        /// The nodes, such as `node[1-4]`
        nodes: String,
    },
    /// Put nodes to sleep that have no job, by the site's program
    Sleep {
        /// The nodes, such as `node[1-4]`
        nodes: String,
    },
    /// Wake nodes, by the site's program
    Wake {
        /// The nodes, such as `node[1-4]`
        nodes: String,
    },
    /// Close nodes to jobs for a time known in advance; no job starts that would run into it
    Close(CloseOptions),
    /// Remove all closures of nodes
    Open {
        /// The nodes, such as `node[1-4]`
        nodes: String,
    },
}

/// `muster events`.
#[derive(Debug, Args)]
pub struct EventsOptions {
    /// Begin with the record of this sequence [default: the first, or with --follow the next]
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,
    /// Continue as things happen
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Only events of this job, array or task
    #[arg(long, value_name = "ID")]
    pub job: Option<JobId>,
    /// Only events of this kind, such as `job` or `job.started`
    #[arg(long, value_name = "KIND", help = kinds_help())]
    pub kind: Option<String>,
    /// Print CloudEvents in JSON, one a line
    #[arg(long)]
    pub json: bool,
    /// Only what had happened by this time
    #[arg(long, value_name = "TIME", value_parser = values::parse_at, allow_hyphen_values = true, conflicts_with_all = ["follow", "at_seq"])]
    pub at: Option<Timestamp>,
    /// Only up to the record with this sequence
    #[arg(long, value_name = "N", conflicts_with = "follow")]
    pub at_seq: Option<u64>,
}

/// The columns by which rows of usage can be grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UsageKey {
    /// The window of time.
    Window,
    /// The user.
    User,
    /// The account.
    Account,
    /// The queue.
    Queue,
}

/// `muster usage`.
#[derive(Debug, Args)]
pub struct UsageOptions {
    /// Only windows that end after this time
    #[arg(long, value_name = "TIME", value_parser = values::parse_past, allow_hyphen_values = true)]
    pub from: Option<Timestamp>,
    /// Only windows that begin before this time
    #[arg(long, value_name = "TIME", value_parser = values::parse_past, allow_hyphen_values = true)]
    pub to: Option<Timestamp>,
    /// Only of this user
    #[arg(short = 'u', long, value_name = "USER")]
    pub user: Option<String>,
    /// Only of this account
    #[arg(short = 'A', long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// Only in this queue
    #[arg(short = 'q', long, value_name = "QUEUE")]
    pub queue: Option<String>,
    /// One row for each of these [default: user,account,queue]
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub by: Vec<UsageKey>,
    /// Print comma-separated values
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// When, and in which form.
    #[command(flatten)]
    pub query: QueryOptions,
}

/// `muster audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Check the hash chain, the signatures, and that replaying the log gives the recorded digests
    Verify {
        /// Read the data folder itself, without a running system
        #[arg(long)]
        offline: bool,
        /// The cluster's key from a trusted source; a log begun with another key is another history
        #[arg(long, value_name = "HEX", requires = "offline")]
        public_key: Option<String>,
        /// Print JSON for programs
        #[arg(long)]
        json: bool,
    },
    /// Write a bundle that a third party can verify without muster
    Export {
        /// Begin with the record of this sequence [default: the first]
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// End with the record of this sequence [default: the last]
        #[arg(long, value_name = "N")]
        to: Option<u64>,
        /// The file to write; `-` is standard output
        file: PathBuf,
    },
}

/// `muster config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the cluster's configuration, or with --policy the planner's policy, in the form that `apply` takes
    Show {
        /// The policy that planners follow instead
        #[arg(long)]
        policy: bool,
        /// When, and in which form.
        #[command(flatten)]
        query: QueryOptions,
    },
    /// Read a configuration file or a policy file and say what is wrong with it
    Check {
        /// Treat it as a policy file even if it has no `version`
        #[arg(long)]
        policy: bool,
        /// The file [default: /etc/muster/muster.toml]
        file: Option<PathBuf>,
    },
    /// Apply a configuration file to the cluster, or with --policy a policy file to the planner
    ///
    /// The difference is shown first, and at a terminal you are asked whether to apply it.
    Apply {
        /// Keep everything that the file does not name
        #[arg(long)]
        keep: bool,
        /// Only show what would change
        #[arg(long, conflicts_with = "policy")]
        dry_run: bool,
        /// Do not ask. Without a terminal, lists of users and administrators are emptied only with this option
        #[arg(long, short)]
        yes: bool,
        /// Put this policy in force instead: a built-in one by name, or a file
        #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["keep", "file"])]
        policy: Option<String>,
        /// The file [default: /etc/muster/muster.toml]
        file: Option<PathBuf>,
    },
    /// List the built-in policies, or print one as a policy file
    Policies {
        /// The policy to print
        name: Option<String>,
    },
    /// Print the reference of the configuration file, in Markdown
    Reference,
}

/// `muster doctor`.
#[derive(Debug, Args)]
pub struct DoctorOptions {
    /// The configuration file [default: /etc/muster/muster.toml if it exists]
    #[arg(long, value_name = "FILE", env = "MUSTER_CONFIG", hide_env_values = true)]
    pub config: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
}

/// The help of `events --kind`, with every kind.
fn kinds_help() -> String {
    let kinds: BTreeSet<&str> = catalogue().iter().map(|event| event.kind).collect();
    let kinds: Vec<&str> = kinds.into_iter().collect();
    format!("Only events of this kind ({}), or of this kind and verb, such as `job.started`", kinds.join(", "))
}

fn parse_node_state(text: &str) -> Result<NodeStateWord, String> {
    const STATES: [NodeStateWord; 4] =
        [NodeStateWord::Unknown, NodeStateWord::Up, NodeStateWord::Drained, NodeStateWord::Lost];
    let known = STATES.into_iter().find(|state| state.word() == text);
    known.ok_or_else(|| format!("it is one of {}", STATES.map(NodeStateWord::word).join(", ")))
}

fn parse_state(text: &str) -> Result<JobState, String> {
    const STATES: [JobState; 7] = [
        JobState::Held,
        JobState::Queued,
        JobState::Launching,
        JobState::Running,
        JobState::Suspended,
        JobState::Finishing,
        JobState::Finished,
    ];
    STATES
        .into_iter()
        .find(|state| state.word() == text)
        .ok_or_else(|| format!("it is one of {}", STATES.map(JobState::word).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_grammar_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn words_after_the_script_belong_to_it() {
        let Command::Submit(submit) = parse("muster submit -N 2 job.sh -N 3 --hold").unwrap().command else { panic!() };
        assert_eq!(submit.words, ["job.sh", "-N", "3", "--hold"]);
        assert!(!submit.job.hold);
        let Command::Submit(submit) = parse("muster submit -N 2 -- hostname -f").unwrap().command else { panic!() };
        assert_eq!(submit.words, ["hostname", "-f"]);
    }

    #[test]
    fn times_may_begin_with_a_dash() {
        let Command::Jobs(jobs) = parse("muster jobs --at -10s").unwrap().command else { panic!() };
        assert!(jobs.query.at.is_some());
    }

    /// A kind that no help mentions cannot be found.
    #[test]
    fn the_help_of_events_names_every_kind() {
        let help = kinds_help();
        for event in catalogue() {
            assert!(help.contains(event.kind), "{}: {help}", event.kind);
        }
        let events = Cli::command();
        let events = events.find_subcommand("events").unwrap().clone().render_help().to_string();
        assert!(["filter", "command", "planner"].iter().all(|kind| events.contains(kind)), "{events}");
    }

    #[test]
    fn signals_come_before_what_gets_them_and_a_clear_order_is_taken() {
        for line in ["muster step signal USR1 12.1", "muster step signal 12.1 USR1", "muster step signal 10 12.1"] {
            let Command::Step(StepCommand::Signal { words }) = parse(line).unwrap().command else { panic!() };
            let (signal, step) = words.signal_and_step().unwrap();
            assert_eq!((signal, step.step.0), (10, 1), "{line}");
        }
        for line in ["muster step signal 12.1 13.1", "muster step signal USR1 HUP", "muster step signal 12 USR1"] {
            let Command::Step(StepCommand::Signal { words }) = parse(line).unwrap().command else { panic!() };
            assert!(words.signal_and_step().is_err(), "{line}");
        }
    }

    #[test]
    fn verbs_that_people_type_are_commands() {
        assert!(matches!(parse("muster ps -u anna").unwrap().command, Command::Jobs(_)));
        assert!(matches!(parse("muster cancel 7").unwrap().command, Command::Cancel(_)));
        for line in ["status", "top", "version", "shell 7", "shell -N 1 -t 1h", "jobs -a -s finished"] {
            assert!(parse(&format!("muster {line}")).is_ok(), "{line}");
        }
        assert!(parse("muster cancel").is_err() && parse("muster shell 7 -N 1").is_err());
    }

    #[test]
    fn connection_options_stand_anywhere() {
        for line in ["muster --data /d jobs", "muster jobs --data /d"] {
            assert_eq!(parse(line).unwrap().connection.data, Some("/d".into()));
        }
    }

    #[test]
    fn acting_on_no_job_is_wrong_usage() {
        assert!(parse("muster job cancel").is_err());
        assert!(parse("muster job cancel --matching -u anna").is_ok());
        assert!(parse("muster job cancel --matching 7").is_err());
        assert!(parse("muster job signal USR1 7 8_2").is_ok());
        assert!(parse("muster job wait").is_err());
    }
}
