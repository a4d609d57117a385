//! The messages of a command, word for word, and its exit status (SL-C-02, SL-C-08, SL-C-09).

mod progress;

use crate::{getopt::Wrong, options::Command};
pub use progress::{AllocationEvent, EndCause, end_note, submitted, told, wait_status, would_start};

/// Why a command line or script is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An option does not fit the table of options.
    Option(Wrong),
    /// The option does not take this value.
    BadValue(&'static str),
    /// Two or three of the memory options together.
    MemoryOptionsClash,
    /// `--core-spec` and `--thread-spec` together.
    SpecialisedCoresClash {
        /// Whether variables set them.
        by_variables: bool,
    },
    /// An option, or a variable, that does not go with `--ntasks-per-gpu`.
    NotWithTasksPerGpu(String),
    /// A word in a script's option lines that is not an option (SL-C-07).
    InvalidDirective(String),
    /// An option in a script's `#PBS` or `#BSUB` lines that Slurm does not translate (SL-C-16).
    ForeignOption(Wrong),
    /// A word in such lines that is not an option.
    ForeignWord(String),
    /// A value in such lines that cannot be translated, in Slurm's words.
    ForeignValue(String),
    /// An unclosed quote in a script's option lines.
    UnmatchedQuote {
        /// The line, from 1.
        line: usize,
        /// The quote.
        quote: char,
    },
    /// The file of `--nodefile` cannot be read, or has no node names.
    NodeFile,
    /// The script cannot be read (SL-C-06).
    CannotOpenScript(String),
    /// The script is empty.
    EmptyScript,
    /// The script is blank.
    BlankScript,
    /// The script's first line does not name an interpreter.
    NotAScript,
    /// The script has a NUL byte.
    NulInScript,
    /// The script is not UTF-8 text.
    ScriptNotText,
    /// The script has DOS line ends.
    DosLineBreaks,
    /// A script together with `--wrap` (SL-C-08).
    ArgumentsWithWrap,
    /// `--deadline` is before `--begin` (SL-C-13).
    DeadlineBeforeBegin,
    /// `srun` without a program (SL-R-04).
    NoCommand,
    /// The job was refused as a whole.
    Rejected(Rejection),
}

/// Why a job is refused as a whole, at submission (SL-C-09, SL-L-04, SL-L-07).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// No partition of this name.
    Partition(String),
    /// No such reservation, or it is not for this user.
    Reservation,
    /// A feature that no node has, or a constraint that cannot be read.
    Feature,
    /// Unknown licences, or more than exist.
    Licence,
    /// Licences on the component at this offset, which is not the first (SL-S-14).
    LicenceNotOnLeader(u32),
    /// A generic resource that no node has.
    Gres,
    /// GPUs with and without their type in one request.
    GpuTypes,
    /// A node that does not exist.
    NodeName,
    /// More than the nodes have.
    NodeConfiguration,
    /// More memory than the nodes have.
    Memory,
    /// A dependency that cannot be read, or on a job that never existed (SL-C-20).
    Dependency,
    /// Invalid indices, or an array with several components (SL-S-13).
    Array,
    /// Not for this user.
    Permission,
    /// An account that does not exist.
    Account,
    /// A QOS that does not exist.
    Qos,
    /// A limit, with its reason word if it is known (SL-L-04).
    Policy(Option<String>),
    /// A negative nice value, which only operators may use (SL-C-36).
    Nice,
    /// A time limit that the partition never gives, or that exceeds the time until the deadline.
    TimeLimit,
    /// `--time-min` exceeds `--time`, or the time until the deadline.
    TimeMin,
    /// More nodes than the partition has.
    NodeCount,
    /// More CPUs than the partition has.
    CpuCount,
    /// `--immediate` without room, or with several components (SL-S-18).
    NotImmediately,
    /// `--no-allocate` with several components (SL-S-17).
    NoAllocate,
    /// The message of a submission filter, after the component's offset if the job has several (SL-S-12).
    Filter(String),
    /// Any other reason, in these words.
    Other(String),
}

impl Rejection {
    /// The text after `Batch job submission failed: `.
    pub fn text(&self) -> String {
        let text = match self {
            Self::Partition(_) => "Invalid partition name specified",
            Self::Reservation => "Requested reservation is invalid",
            Self::Feature => "Invalid feature specification",
            Self::Licence | Self::LicenceNotOnLeader(_) => "Invalid license specification",
            Self::Gres => "Invalid generic resource (gres) specification",
            Self::GpuTypes => "Invalid GRES specification (with and without type identification)",
            Self::NodeName => "Invalid node name specified",
            Self::NodeConfiguration | Self::Memory => "Requested node configuration is not available",
            Self::Dependency => "Job dependency problem",
            Self::Array => "Invalid job array specification",
            Self::Permission => "Access/permission denied",
            Self::Account => "Invalid account or account/partition combination specified",
            Self::Qos => "Invalid qos specification",
            Self::Policy(_) => "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
            Self::Nice => "Invalid --nice value",
            Self::TimeLimit => "Requested time limit is invalid (missing or exceeds some limit)",
            Self::TimeMin => "Invalid time-min specification (exceeds job's time or other limits)",
            Self::NodeCount => "Node count specification invalid",
            Self::CpuCount => "More processors requested than permitted",
            Self::NotImmediately => "Job can not start immediately",
            Self::NoAllocate => "The no-allocate option does not support heterogeneous jobs",
            Self::Filter(_) => "Job rejected by a submission filter",
            Self::Other(text) => text,
        };
        text.to_owned()
    }

    /// The output of `--test-only` for a job that would be refused (SL-C-10).
    pub fn of_test(&self, command: Command) -> Vec<String> {
        let preamble = self.preamble().map(|text| format!("{command}: error: {text}"));
        preamble.into_iter().chain([format!("allocation failure: {}", self.text())]).collect()
    }

    /// The line before it.
    fn preamble(&self) -> Option<String> {
        match self {
            Self::Partition(name) => Some(format!("invalid partition specified: {name}")),
            Self::LicenceNotOnLeader(offset) => Some(format!("{offset}: license request allowed only on leader job")),
            Self::Memory => Some("Memory specification can not be satisfied".to_owned()),
            Self::Policy(word) => word.clone(),
            Self::Filter(text) => Some(text.clone()),
            _ => None,
        }
    }
}

impl Refusal {
    /// Whether it is for an option by a name that Slurm does not know: the site may.
    pub fn is_unknown_option(&self) -> bool {
        matches!(self, Self::Option(Wrong::UnknownOption(_)))
    }
}

impl From<Wrong> for Refusal {
    fn from(wrong: Wrong) -> Self {
        Self::Option(wrong)
    }
}

impl Refusal {
    /// The lines for standard error.
    pub fn lines(&self, command: Command) -> Vec<String> {
        let error = |text: &str| format!("{command}: error: {text}");
        match self {
            Self::Option(wrong) => wrong.lines(command.name()),
            Self::BadValue(name) => vec![error(&format!("Invalid --{name} specification"))],
            Self::MemoryOptionsClash => {
                vec![format!("{command}: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")]
            }
            // This is how Slurm spells the second option, and scripts look for it.
            Self::SpecialisedCoresClash { by_variables: false } => {
                vec![format!("{command}: fatal: -S/--core-spec and --thred-spec options are mutually exclusive")]
            }
            Self::SpecialisedCoresClash { by_variables: true } => vec![format!(
                "{command}: fatal: Both --core-spec and --thread-spec set using environment variables. Those options are mutually exclusive."
            )],
            Self::NotWithTasksPerGpu(what) => vec![format!(
                "{command}: fatal: {what} is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"
            )],
            Self::InvalidDirective(word) => vec![error(&format!("Invalid directive found in batch script: {word}"))],
            Self::ForeignOption(wrong) => {
                let told = wrong.lines(command.name()).into_iter().take(1);
                told.chain([error("Unrecognized command line parameter ?")]).collect()
            }
            Self::ForeignWord(word) => vec![error(&format!("Invalid argument: {word}"))],
            Self::ForeignValue(text) => vec![error(text)],
            Self::UnmatchedQuote { line, quote } => {
                vec![format!("{command}: fatal: line {line} of the batch script: unmatched `{quote}`")]
            }
            Self::NodeFile => vec![error("Invalid --nodefile node file")],
            Self::CannotOpenScript(path) => vec![error(&format!("Unable to open file {path}"))],
            Self::EmptyScript => vec![error("Batch script is empty!")],
            Self::BlankScript => vec![error("Batch script contains only whitespace!")],
            Self::NotAScript => vec![
                error("This does not look like a batch script.  The first"),
                error("line must start with #! followed by the path to an interpreter."),
                error("For instance: #!/bin/sh"),
            ],
            Self::NulInScript => vec![
                error("The Slurm controller does not allow scripts that"),
                error("contain a NULL character '\\0'."),
            ],
            Self::ScriptNotText => vec![error("Batch script is not UTF-8 text")],
            Self::DosLineBreaks => vec![
                error("Batch script contains DOS line breaks (\\r\\n)"),
                error("instead of expected UNIX line breaks (\\n)."),
            ],
            Self::ArgumentsWithWrap => vec![error("Script arguments not permitted with --wrap option")],
            Self::DeadlineBeforeBegin => vec![error("Incompatible begin and deadline time specification")],
            Self::NoCommand => vec![format!("{command}: fatal: No command given to execute.")],
            Self::Rejected(rejection) => {
                let preamble = rejection.preamble().map(|text| error(&text));
                let failed = match rejection {
                    Rejection::NotImmediately => submission_failed(Command::Salloc),
                    _ => submission_failed(command),
                };
                let text = error(&format!("{failed}: {}", rejection.text()));
                preamble.into_iter().chain([text]).collect()
            }
        }
    }

    /// The exit status, without `SLURM_EXIT_ERROR`.
    const fn status(&self) -> u8 {
        match self {
            Self::Option(_) | Self::BadValue(_) | Self::InvalidDirective(_) | Self::NodeFile => 255,
            _ => 1,
        }
    }

    /// The exit status, unless variables choose another (SL-E-11).
    pub const fn exit_status(&self, chosen: ExitStatuses) -> u8 {
        let chosen = match self {
            Self::Rejected(Rejection::NotImmediately) => chosen.immediate,
            _ => chosen.error,
        };
        match chosen {
            Some(status) => status,
            None => self.status(),
        }
    }
}

/// The exit statuses that the environment chooses for errors (SL-E-11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitStatuses {
    /// `SLURM_EXIT_ERROR`: for every error.
    pub error: Option<u8>,
    /// `SLURM_EXIT_IMMEDIATE`: for `--immediate` when there is no room.
    pub immediate: Option<u8>,
}

impl ExitStatuses {
    /// The values of the variables. Anything but a number from 1 to 255 is ignored.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let status = |name: &str| lookup(name)?.parse().ok().filter(|status| *status > 0);
        Self { error: status("SLURM_EXIT_ERROR"), immediate: status("SLURM_EXIT_IMMEDIATE") }
    }
}

/// The text of a command before the reason of a rejection (SL-C-09, SL-C-21, SL-C-22).
pub const fn submission_failed(command: Command) -> &'static str {
    match command {
        Command::Sbatch => "Batch job submission failed",
        Command::Salloc => "Job submit/allocate failed",
        Command::Srun => "Unable to allocate resources",
    }
}
