//! The options of `sbatch`, `salloc` and `srun`, with everything about each of them.

use super::{
    Argument::{self, Flag, Optional, Required},
    Command,
    values::Kind::{self, *},
};
use std::fmt;

/// A set of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commands(u8);

impl Commands {
    /// Whether the command is one of them.
    pub const fn contains(self, command: Command) -> bool {
        self.0 & (1 << command as u8) != 0
    }
}

const B: Commands = Commands(1 << Command::Sbatch as u8);
const A: Commands = Commands(1 << Command::Salloc as u8);
const R: Commands = Commands(1 << Command::Srun as u8);
const BA: Commands = Commands(B.0 | A.0);
const AR: Commands = Commands(A.0 | R.0);
const BR: Commands = Commands(B.0 | R.0);
const BAR: Commands = Commands(B.0 | A.0 | R.0);
/// All commands.
pub(super) const ALL_COMMANDS: Commands = BAR;

/// Where the value of an option goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Into the job model, as a whole.
    Model,
    /// Into an attribute of the component, because the model has no place for it or keeps less (SL-O-09); it may affect
    /// the model too.
    Kept,
    /// Nowhere: it is for the command itself.
    Client,
    /// Into a variable of the tasks and an attribute of the component: the site has added it (SL-S-22).
    Site,
}

/// The section of the help text for an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// The program, and when it runs.
    Run,
    /// Where it runs.
    Constraint,
    /// How much of nodes it has for itself.
    Consumable,
    /// GPUs and other generic resources.
    Gres,
    /// How the tasks of a step run.
    Step,
    /// What the site has added.
    Site,
    /// Everything else.
    Other,
    /// Help and version.
    Help,
}

impl Heading {
    /// The headings in the order of the help text.
    pub const ALL: [Self; 8] =
        [Self::Run, Self::Constraint, Self::Consumable, Self::Gres, Self::Step, Self::Site, Self::Other, Self::Help];
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Run => "Parallel run options:",
            Self::Constraint => "Constraint options:",
            Self::Consumable => "Consumable resources related options:",
            Self::Gres => "GPU and generic resource options:",
            Self::Step => "Step options:",
            Self::Site => "Options of this site:",
            Self::Other => "Other options:",
            Self::Help => "Help options:",
        })
    }
}

/// An option of at least one command.
#[derive(Debug)]
pub struct OptionSpec {
    /// Its long name, without the dashes.
    pub name: &'static str,
    /// Its letter.
    pub short: Option<char>,
    /// Its value.
    pub argument: Argument,
    /// The commands that have it.
    pub commands: Commands,
    /// Whether a value given for one component also applies to later ones until it is given again (SL-O-01); if not, it
    /// returns to its default in each component (SL-O-02).
    pub carried: bool,
    /// Where its value goes.
    pub place: Place,
    /// Variables with its default (SL-E-11). `_X` stands for `SBATCH_X`, `SALLOC_X` or `SLURM_X`, depending on the
    /// command; every command reads `*X`; any other name is read by the command that it begins with, or by `srun` if
    /// there is none.
    pub variables: &'static [&'static str],
    /// Where the help text shows it.
    pub heading: Heading,
    /// The name of its value in the help text.
    pub value_name: &'static str,
    /// What it does, in a few words.
    pub help: &'static str,
}

impl OptionSpec {
    /// The names of the variables with a command's default; the first one that is set counts.
    pub fn variables_of(&self, command: Command) -> impl Iterator<Item = String> {
        self.variables.iter().filter_map(move |name| match name.split_at(1) {
            ("_", suffix) => Some(format!("{}{suffix}", command.variable_prefix())),
            ("*", name) => Some(name.to_owned()),
            _ if name.starts_with("SBATCH_") => (command == Command::Sbatch).then(|| (*name).to_owned()),
            _ if name.starts_with("SALLOC_") => (command == Command::Salloc).then(|| (*name).to_owned()),
            _ => (command == Command::Srun).then(|| (*name).to_owned()),
        })
    }

    /// The kind of its value; `None` if it takes none.
    pub const fn kind(&self) -> Option<Kind> {
        match self.argument {
            Flag => None,
            Required(kind) | Optional(kind) => Some(kind),
        }
    }
}

/// The option of a command with this long name; an old name is not found.
pub fn find(command: Command, name: &str) -> Option<&'static OptionSpec> {
    OPTIONS.iter().find(|option| option.name == name && option.commands.contains(command))
}

/// Old and alternative names of options, each with the current name.
pub const ALIASES: &[(&str, &str)] = &[
    ("cluster", "clusters"),
    ("pack-group", "het-group"),
    ("share", "oversubscribe"),
    ("tasks-per-node", "ntasks-per-node"),
    ("workdir", "chdir"),
];

macro_rules! options {
    ($($name:literal $short:tt $argument:expr, $commands:ident $carried:tt $place:ident $heading:ident
       [$($variable:literal)*] $value_name:literal $help:literal;)*) => {
        /// Every option of `sbatch`, `salloc` and `srun`, by name. An option that differs between commands has an entry
        /// for each.
        pub const OPTIONS: &[OptionSpec] = &[$(OptionSpec {
            name: $name,
            short: options!(@short $short),
            argument: $argument,
            commands: $commands,
            carried: options!(@carried $carried),
            place: Place::$place,
            variables: &[$($variable),*],
            heading: Heading::$heading,
            value_name: $value_name,
            help: $help,
        },)*];
    };
    (@short _) => { None };
    (@short $letter:literal) => { Some($letter) };
    (@carried +) => { true };
    (@carried -) => { false };
}

options! {
    "accel-bind" _ Required(Text), R - Kept Gres [] "TYPE" "bind tasks to accelerators and interfaces";
    "account" 'A' Required(Text), BAR + Model Run ["_ACCOUNT"] "NAME" "account that is charged";
    "acctg-freq" _ Required(Text), BAR + Kept Run ["_ACCTG_FREQ"] "TYPE=SECONDS" "accounting sampling interval";
    "array" 'a' Required(Array), BAR - Model Run ["SBATCH_ARRAY_INX"] "INDICES" "job array index values";
    "batch" _ Required(Text), B - Kept Constraint ["SBATCH_BATCH"] "LIST" "features the batch host must have";
    "bb" _ Required(Text), BAR - Kept Run ["SBATCH_BB" "SALLOC_BB" "SLURM_BB"] "SPEC" "burst buffer specification";
    "bbf" _ Required(Text), BAR - Client Run ["SBATCH_BBF" "SALLOC_BBF" "SLURM_BBF"] "FILE" "file of burst buffer directives";
    "bcast" _ Optional(Text), R - Kept Step ["SLURM_BCAST"] "PATH" "copy the program to the nodes first";
    "begin" 'b' Required(Moment), BAR + Model Run [] "TIME" "not before this time";
    "bell" _ Flag, A - Client Other ["SALLOC_BELL"] "" "ring the bell when the job starts";
    "chdir" 'D' Required(Text), BAR + Model Run ["SLURM_WORKING_DIR"] "DIR" "working directory";
    "cluster-constraint" _ Required(Text), BAR + Kept Constraint ["_CLUSTER_CONSTRAINT"] "LIST" "features the cluster must have";
    "clusters" 'M' Required(Text), BAR + Kept Run ["_CLUSTERS" "*SLURM_CLUSTERS"] "NAMES" "clusters to submit to";
    "comment" _ Required(Text), BAR + Kept Run ["SLURM_COMMENT"] "TEXT" "any comment";
    "compress" _ Optional(Text), R - Kept Step ["SLURM_COMPRESS"] "LIBRARY" "compress what --bcast copies";
    "constraint" 'C' Required(Constraint), BAR - Kept Constraint ["_CONSTRAINT"] "LIST" "features the nodes must have";
    "container" _ Required(Text), BAR - Model Other ["_CONTAINER"] "PATH" "OCI container bundle";
    "container-id" _ Required(Text), BAR - Kept Other ["_CONTAINER_ID"] "ID" "OCI container id";
    "contiguous" _ Flag, BAR - Kept Constraint [] "" "nodes that follow each other";
    "core-spec" 'S' Required(Number), BAR - Kept Constraint ["_CORE_SPEC"] "CORES" "cores left to the system";
    "cores-per-socket" _ Required(Text), BAR - Kept Constraint [] "CORES" "nodes with this many cores per socket";
    "cpu-bind" _ Required(CpuBind), AR - Kept Step ["SLURM_CPU_BIND"] "TYPE" "bind tasks to CPUs";
    "cpu-freq" _ Required(Text), BAR - Kept Run ["SLURM_CPU_FREQ_REQ"] "MIN[-MAX]" "CPU frequency and governor";
    "cpus-per-gpu" _ Required(Count), BAR - Kept Gres ["_CPUS_PER_GPU"] "N" "CPUs for each GPU";
    "cpus-per-task" 'c' Required(Count), BAR - Kept Run ["SRUN_CPUS_PER_TASK" "SLURM_CPUS_PER_TASK"] "N" "CPUs for each task";
    "deadline" _ Required(Moment), BAR + Model Run ["_DEADLINE"] "TIME" "remove the job if it cannot end by then";
    "debugger-test" _ Flag, R - Kept Other ["SLURM_DEBUGGER_TEST"] "" "tasks stop at their start";
    "delay-boot" _ Required(Time), BAR + Kept Run ["_DELAY_BOOT"] "MINUTES" "delay the boot of nodes";
    "dependency" 'd' Required(Dependency), BAR + Kept Run ["SLURM_DEPENDENCY"] "TYPE:ID" "wait for other jobs";
    "disable-status" 'X' Flag, R - Kept Step ["SLURM_DISABLE_STATUS"] "" "one interrupt goes to the tasks";
    "distribution" 'm' Required(Distribution), BAR + Kept Run ["_DISTRIBUTION"] "TYPE" "how tasks go to nodes: block, cyclic, plane=N, arbitrary";
    "epilog" _ Required(Text), R + Kept Step ["SLURM_EPILOG"] "PROGRAM" "run here after the step";
    "error" 'e' Required(Text), BR + Model Run ["SBATCH_ERROR" "SRUN_ERROR" "SLURM_STDERRMODE"] "FILE" "where standard error goes";
    "exact" _ Flag, R - Kept Step ["SLURM_EXACT"] "" "the step takes only what it asks for";
    "exclude" 'x' Required(Hosts), BAR + Model Constraint ["_EXCLUDE"] "NODES" "never these nodes";
    "exclusive" _ Optional(Exclusive), BAR - Kept Consumable ["_EXCLUSIVE"] "user|mcs" "no other job on the nodes";
    "export" _ Required(Text), BAR + Kept Run ["SBATCH_EXPORT" "SALLOC_EXPORT" "SLURM_EXPORT_ENV"] "NAMES|ALL|NONE|NIL" "variables the job gets";
    "export-file" _ Required(Text), B + Client Run ["SBATCH_EXPORT_FILE"] "FILE" "file of variables the job gets";
    "extra" _ Required(Text), BAR - Kept Run [] "TEXT" "any further text";
    "extra-node-info" 'B' Required(Text), BAR - Kept Constraint [] "S[:C[:T]]" "sockets, cores and threads";
    "get-user-env" _ Optional(Text), BA + Kept Run ["SBATCH_GET_USER_ENV"] "MODE" "take the login environment";
    "gid" _ Required(Text), BAR + Kept Other [] "GROUP" "group of the job (administrators)";
    "gpu-bind" _ Required(Text), BAR - Kept Gres ["_GPU_BIND"] "TYPE" "bind tasks to GPUs";
    "gpu-freq" _ Required(Text), BAR - Kept Gres ["_GPU_FREQ"] "TYPE" "GPU frequency";
    "gpus" 'G' Required(Gpus), BAR - Kept Gres ["_GPUS"] "[TYPE:]N" "GPUs of the whole job";
    "gpus-per-node" _ Required(Gpus), BAR - Kept Gres ["_GPUS_PER_NODE"] "[TYPE:]N" "GPUs on each node";
    "gpus-per-socket" _ Required(Gpus), BAR - Kept Gres ["_GPUS_PER_SOCKET"] "[TYPE:]N" "GPUs on each socket";
    "gpus-per-task" _ Required(Gpus), BAR - Kept Gres ["_GPUS_PER_TASK"] "[TYPE:]N" "GPUs for each task";
    "gres" _ Required(Gres), BAR - Kept Gres ["_GRES"] "NAME[[:TYPE]:N]" "generic resources on each node";
    "gres-flags" _ Required(Text), BAR - Kept Gres ["_GRES_FLAGS"] "LIST" "how generic resources are given";
    "help" 'h' Flag, BAR - Client Help [] "" "show this help message";
    "het-group" _ Required(Text), R - Client Step [] "OFFSETS" "components that run the step";
    "hint" _ Required(Hint), BAR - Kept Constraint ["_HINT"] "TYPE" "how the program uses memory and threads";
    "hold" 'H' Flag, BAR + Model Run [] "" "hold the job until it is released";
    "ignore-pbs" _ Flag, B + Client Run ["SBATCH_IGNORE_PBS"] "" "do not read #PBS lines";
    "immediate" 'I' Optional(Number), AR + Client Run ["_IMMEDIATE"] "SECONDS" "fail if it cannot start at once";
    "input" 'i' Required(Text), BR + Model Run ["SBATCH_INPUT" "SRUN_INPUT" "SLURM_STDINMODE"] "FILE" "where standard input comes from";
    "interactive" _ Flag, R - Kept Step [] "" "an interactive step";
    "job-name" 'J' Required(Text), BAR + Kept Run ["_JOB_NAME"] "NAME" "name of the job";
    "jobid" _ Required(Text), R - Client Step ["SLURM_JOB_ID"] "ID" "run under this job";
    "kill-command" 'K' Optional(Text), A - Client Run ["SALLOC_KILL_CMD"] "SIGNAL" "signal the command when the job ends";
    "kill-on-bad-exit" 'K' Optional(Number), R + Kept Step ["SLURM_KILL_BAD_EXIT"] "0|1" "a failed task ends the step";
    "kill-on-invalid-dep" _ Required(YesNo), BA - Kept Run ["SBATCH_KILL_INVALID_DEP"] "yes|no" "cancel the job if its dependency can never be met";
    "label" 'l' Flag, R + Kept Step ["SLURM_LABELIO"] "" "put the task's rank before each line";
    "licenses" 'L' Required(Licences), BAR - Kept Run [] "NAME[:N]" "licences the job needs";
    "mail-type" _ Required(MailTypes), BAR - Kept Run [] "TYPES" "occasions for mail: BEGIN, END, FAIL, ALL ...";
    "mail-user" _ Required(Text), BAR - Kept Run [] "USER" "who gets the mail";
    "mcs-label" _ Required(Text), BAR + Kept Run [] "LABEL" "security label";
    "mem" _ Required(Megabytes), BAR + Model Constraint ["_MEM_PER_NODE"] "SIZE" "memory on each node";
    "mem-bind" _ Required(MemBind), BAR - Kept Step ["_MEM_BIND"] "TYPE" "bind memory to domains";
    "mem-per-cpu" _ Required(Megabytes), BAR - Model Consumable ["_MEM_PER_CPU"] "SIZE" "memory for each CPU";
    "mem-per-gpu" _ Required(Megabytes), BAR - Kept Gres ["_MEM_PER_GPU"] "SIZE" "memory for each GPU";
    "mincpus" _ Required(Count), BAR - Kept Constraint [] "N" "minimum number of CPUs per node";
    "mpi" _ Required(Text), R - Kept Step ["SLURM_MPI_TYPE"] "TYPE" "kind of MPI";
    "msg-timeout" _ Required(Number), R + Kept Step ["SLURM_MSG_TIMEOUT"] "SECONDS" "time allowed for a message";
    "multi-prog" _ Flag, R - Kept Step ["SLURM_MULTI_PROG"] "" "the program is a file of ranks and programs";
    "network" _ Required(Text), BAR - Kept Other ["_NETWORK"] "TYPE" "network of the job";
    "nice" _ Optional(Nice), BAR + Kept Run [] "N" "lower the priority by this much";
    "no-allocate" 'Z' Flag, R + Kept Other ["SLURM_NO_ALLOCATE"] "" "run without an allocation (administrators)";
    "no-bell" _ Flag, A - Client Other ["SALLOC_NO_BELL"] "" "no bell when the job starts";
    "no-kill" 'k' Optional(Text), BAR + Kept Run ["_NO_KILL"] "off" "do not end the job when a node fails";
    "no-requeue" _ Flag, B + Kept Run ["SBATCH_NO_REQUEUE"] "" "never put the job back into the queue";
    "no-shell" _ Flag, A - Client Other ["SALLOC_NO_SHELL"] "" "leave the allocation without a command";
    "nodefile" 'F' Required(Text), BAR - Client Constraint [] "FILE" "file of node names";
    "nodelist" 'w' Required(Hosts), BAR - Model Constraint [] "NODES" "these nodes";
    "nodes" 'N' Required(NodeRange), BAR - Kept Run ["SLURM_JOB_NUM_NODES" "SLURM_NNODES"] "MIN[-MAX]" "nodes the job runs on";
    "ntasks" 'n' Required(Count), BAR - Kept Run ["SLURM_NTASKS" "SLURM_NPROCS"] "N" "tasks to run";
    "ntasks-per-core" _ Required(Count), BAR - Kept Constraint ["SLURM_NTASKS_PER_CORE"] "N" "tasks on each core";
    "ntasks-per-gpu" _ Required(Count), BAR - Kept Gres ["_NTASKS_PER_GPU"] "N" "tasks for each GPU";
    "ntasks-per-node" _ Required(Count), BAR - Model Constraint ["SLURM_NTASKS_PER_NODE"] "N" "tasks on each node";
    "ntasks-per-socket" _ Required(Count), BAR - Kept Constraint ["SLURM_NTASKS_PER_SOCKET"] "N" "tasks on each socket";
    "open-mode" _ Required(OpenMode), B - Model Run ["SBATCH_OPEN_MODE"] "append|truncate" "how output files are opened";
    "open-mode" _ Required(OpenMode), R + Kept Step ["SLURM_OPEN_MODE"] "append|truncate" "how output files are opened";
    "output" 'o' Required(Text), BR + Model Run ["SBATCH_OUTPUT" "SRUN_OUTPUT" "SLURM_STDOUTMODE"] "FILE" "where standard output goes";
    "overcommit" 'O' Flag, BAR - Kept Run ["_OVERCOMMIT"] "" "more tasks than CPUs";
    "overlap" _ Flag, R - Kept Step ["SLURM_OVERLAP"] "" "the step shares CPUs with other steps";
    "oversubscribe" 's' Flag, BAR - Kept Consumable ["SBATCH_OVERSUBSCRIBE" "SALLOC_OVERSUBSCRIBE"] "" "share the nodes with other jobs";
    "parsable" _ Flag, B + Client Other ["SBATCH_PARSABLE"] "" "print only the job number";
    "partition" 'p' Required(Text), BAR - Kept Run ["_PARTITION"] "NAMES" "partition the job runs in";
    "power" _ Required(Text), BAR - Kept Run ["_POWER"] "FLAGS" "power management";
    "prefer" _ Required(Constraint), BAR - Kept Constraint ["_PREFER"] "LIST" "features wished for";
    "preserve-env" 'E' Flag, R - Kept Step ["SLURM_PRESERVE_ENV"] "" "keep the variables for tasks and nodes";
    "priority" _ Required(Priority), BAR + Model Run ["_PRIORITY"] "N" "priority of the job";
    "profile" _ Required(Profile), BAR + Kept Run ["_PROFILE"] "TYPES" "what is profiled";
    "prolog" _ Required(Text), R + Kept Step ["SLURM_PROLOG"] "PROGRAM" "run here before the step";
    "propagate" _ Optional(Text), BR + Kept Run ["SBATCH_PROPAGATE" "SLURM_PROPAGATE"] "LIMITS" "resource limits the job gets";
    "pty" _ Optional(Text), R + Kept Step ["SLURM_PTY"] "FD" "run task 0 in a terminal";
    "qos" 'q' Required(Text), BAR + Model Run ["_QOS"] "NAME" "quality of service";
    "quiet" 'Q' Flag, BAR + Client Run [] "" "say nothing but errors";
    "quit-on-interrupt" _ Flag, R + Kept Step ["SLURM_QUIT_ON_INTERRUPT"] "" "one interrupt ends the step";
    "reboot" _ Flag, BAR + Kept Run ["_REBOOT"] "" "boot the nodes first";
    "relative" 'r' Required(Number), R - Kept Step ["SLURM_RELATIVE"] "N" "the step begins at this node of the job";
    "requeue" _ Flag, B + Model Run ["SBATCH_REQUEUE"] "" "put the job back into the queue if need be";
    "reservation" _ Required(Text), BAR + Kept Run ["_RESERVATION"] "NAMES" "reservation the job runs in";
    "resv-ports" _ Optional(Number), BAR - Kept Step ["SLURM_RESV_PORTS"] "N" "reserve communication ports";
    "segment" _ Required(Count), BAR - Kept Constraint ["_SEGMENT_SIZE"] "N" "nodes of a segment";
    "send-libs" _ Optional(Text), R - Kept Step ["SLURM_SEND_LIBS"] "yes|no" "copy the program's libraries too";
    "signal" _ Required(SignalAhead), BAR + Kept Run ["_SIGNAL"] "[R|B:]SIGNAL[@SECONDS]" "signal ahead of the time limit";
    "slurmd-debug" _ Required(Text), R + Kept Step ["SLURMD_DEBUG"] "LEVEL" "debug level on the nodes";
    "sockets-per-node" _ Required(Text), BAR - Kept Constraint [] "N" "nodes with this many sockets";
    "spread-job" _ Flag, BAR - Kept Run ["_SPREAD_JOB"] "" "spread the job over many nodes";
    "stepmgr" _ Flag, BA - Kept Other [] "" "steps are managed on the nodes";
    "switches" _ Required(Switches), BAR - Kept Constraint ["SBATCH_REQ_SWITCH" "SALLOC_REQ_SWITCH" "SLURM_REQ_SWITCH"] "N[@TIME]" "maximum number of switches";
    "task-epilog" _ Required(Text), R + Kept Step ["SLURM_TASK_EPILOG"] "PROGRAM" "run on the node after each task";
    "task-prolog" _ Required(Text), R + Kept Step ["SLURM_TASK_PROLOG"] "PROGRAM" "run on the node before each task";
    "test-only" _ Flag, BR + Client Run ["SLURM_TEST_ONLY"] "" "show when the job would start; submit nothing";
    "thread-spec" _ Required(Number), BAR - Kept Constraint ["_THREAD_SPEC"] "THREADS" "threads left to the system";
    "threads" 'T' Required(Count), R - Kept Step ["SLURM_THREADS"] "N" "threads of the command itself";
    "threads-per-core" _ Required(Count), BAR - Kept Constraint ["_THREADS_PER_CORE"] "N" "nodes with this many threads per core";
    "time" 't' Required(Time), BAR + Model Run ["_TIMELIMIT"] "TIME" "time limit";
    "time-min" _ Required(Time), BAR + Kept Run ["_TIME_MIN"] "TIME" "least time limit";
    "tmp" _ Required(Megabytes), BAR - Kept Constraint [] "SIZE" "temporary disk space on each node";
    "tres-bind" _ Required(Text), BAR - Kept Gres ["_TRES_BIND"] "LIST" "bind tasks to resources";
    "tres-per-task" _ Required(Text), BAR - Kept Gres ["_TRES_PER_TASK"] "LIST" "resources for each task";
    "uid" _ Required(Text), BAR + Kept Other [] "USER" "user of the job (administrators)";
    "unbuffered" 'u' Flag, R + Kept Step ["SLURM_UNBUFFEREDIO"] "" "do not gather output into lines";
    "usage" 'u' Flag, BA - Client Help [] "" "show a short help message";
    "usage" _ Flag, R - Client Help [] "" "show a short help message";
    "use-min-nodes" _ Flag, BAR - Kept Run ["_USE_MIN_NODES"] "" "prefer the smaller number of nodes";
    "verbose" 'v' Flag, BAR + Client Run [] "" "say more; repeat it for still more";
    "version" 'V' Flag, BAR - Client Help [] "" "show the version";
    "wait" 'W' Flag, B + Client Run ["SBATCH_WAIT"] "" "return when the job has ended";
    "wait" 'W' Required(Number), A + Client Run ["SALLOC_WAIT"] "SECONDS" "maximum time to wait for the allocation";
    "wait" 'W' Required(Number), R + Kept Step ["SLURM_WAIT"] "SECONDS" "end the step this long after its first task";
    "wait-all-nodes" _ Required(Number), BA + Kept Run ["_WAIT_ALL_NODES"] "0|1" "begin when all nodes are up";
    "wckey" _ Required(Text), BAR + Kept Run ["_WCKEY"] "KEY" "workload characterization key";
    "wrap" _ Required(Text), B - Client Run [] "COMMAND" "wrap a command into a script";
    "x11" _ Optional(Text), AR - Kept Step ["SLURM_X11"] "batch|first|last|all" "forward X11";
}
