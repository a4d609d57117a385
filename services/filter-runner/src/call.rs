//! What is asked of a runner, and what it answers.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf, time::Duration};

/// No document that a filter leaves behind is larger (HPC-J-47).
pub const MAX_DOCUMENT_BYTES: usize = 16 << 20;
/// So much of standard output and of standard error is kept, each (HPC-F-63).
pub const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// So much of the result file is kept (HPC-F-66): some lines of `key=value`, of which the longest may have 200 characters.
pub const MAX_RESULT_FILE_BYTES: usize = 8 << 10;

/// What is judged (HPC-F-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterKind {
    /// Whether a job may enter the queue, and with which properties.
    Submission,
    /// Whether a job may take these resources now.
    Activation,
}

impl FilterKind {
    /// As filters are told it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submission => "submission",
            Self::Activation => "activation",
        }
    }
}

/// What the filter is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Judge.
    Filter,
    /// Take back what it did when it judged (HPC-F-51).
    Revert,
}

impl Action {
    /// As filters are told it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Revert => "revert",
        }
    }
}

/// How a filter is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `PROGRAM JOBXML [PASS INDEX BACKFILL COUNT]`, as Microsoft's are; it cannot be reverted (HPC-F-60, HPC-F-56).
    Exec,
    /// `PROGRAM KIND ACTION JOBXML [PASS INDEX BACKFILL COUNT]` (HPC-F-65).
    Verbs,
    /// `PROGRAM serve` stays and answers one call after the other, each a line of JSON (HPC-F-67).
    Persistent,
}

/// A filter as it is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterDefinition {
    /// Its name, which is shown to people. A persistent filter is known by it: no two have the same.
    pub name: String,
    /// Its program, an absolute path on the runner (HPC-F-72).
    pub path: PathBuf,
    /// How it is called.
    pub form: Form,
}

/// What an activation filter is told beside the job (HPC-F-61, HPC-F-62).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivationParameters {
    /// Passes since this planner started; the first is 1.
    pub pass: u64,
    /// The job's place in the queue of this pass; the first is 1, a growing job's is 0.
    pub index: u64,
    /// Whether this is an attempt to start the job as backfill.
    pub backfill: bool,
    /// Candidate resources, in the job's unit.
    pub count: u64,
    /// Whether the cluster backfills at all.
    pub backfill_enabled: bool,
    /// How often the planner has been restarted.
    pub planner_epoch: u64,
    /// What the job holds now, in its unit; 0 if it is queued.
    pub current_resources: u64,
}

/// One call of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The same for every delivery of this call, also to other runners (HPC-F-85).
    pub invocation_id: String,
    /// Which delivery this is: 1, 2, 3.
    pub attempt: u32,
    /// What is judged.
    pub kind: FilterKind,
    /// To judge or to take back.
    pub action: Action,
    /// Which filter.
    pub filter: FilterDefinition,
    /// It runs so long at most, counted from the start of its process or the delivery to a persistent one (HPC-F-05).
    pub time_limit_seconds: u32,
    /// The job.
    pub job_id: u64,
    /// Its description as XML, which the filter finds in `job.xml`.
    pub document: Bytes,
    /// The same as JSON, for filters that prefer it; they find it in `job.json` beside the XML.
    pub document_json: Option<Bytes>,
    /// Given if and only if the kind is [`FilterKind::Activation`].
    pub parameters: Option<ActivationParameters>,
}

/// How a call ended, before anybody says what that means (HPC-F-10, HPC-F-30).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RawResult {
    /// The program ended with this exit code, or a persistent one answered it.
    Exit(u8),
    /// A signal ended the program (HPC-F-08).
    Signal(u8),
    /// The time limit was over; all that it had started has been ended (HPC-F-06).
    TimedOut,
    /// The program, or the interpreter that its first line names, does not exist on this runner: which (HPC-F-07).
    NotFound(String),
    /// It is there but cannot or must not be run: why (HPC-F-07, HPC-F-73).
    NotRunnable(String),
    /// A persistent filter ended or answered something that is no answer: what. It counts as an undefined exit code (HPC-F-67).
    BadAnswer(String),
}

impl RawResult {
    /// The exit code that is recorded: 128 and the signal for a death by signal, 255 for a bad answer (HPC-F-08). `None` if no
    /// program ended by itself.
    pub const fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Exit(code) => Some(*code),
            Self::Signal(signal) => Some(128_u8.saturating_add(*signal)),
            Self::BadAnswer(_) => Some(255),
            Self::TimedOut | Self::NotFound(_) | Self::NotRunnable(_) => None,
        }
    }
}

impl fmt::Display for RawResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotFound(path) => write!(f, "not found: {path}"),
            Self::NotRunnable(why) => write!(f, "not runnable: {why}"),
            Self::BadAnswer(what) => write!(f, "bad answer: {what}"),
        }
    }
}

/// What has become of a file that a filter was given (HPC-F-64, HPC-F-17).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileAfter {
    /// It holds what it held.
    Unchanged,
    /// It holds this now, which may be nothing.
    Changed(Bytes),
    /// It is gone.
    Missing,
    /// There is something else of this name, or somebody else's file: what.
    NotRegular(String),
    /// It is larger than [`MAX_DOCUMENT_BYTES`]: how large.
    TooLarge(u64),
}

/// What a program wrote, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The beginning.
    pub bytes: Bytes,
    /// Whether there was more, which has been dropped.
    pub truncated: bool,
}

impl Captured {
    /// As text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub result: RawResult,
    /// The job's XML afterwards. Only what the domain does with it tells whether it counts.
    pub document: FileAfter,
    /// The job's JSON afterwards, if there was one.
    pub document_json: Option<FileAfter>,
    /// What was written to the result file, or what a persistent filter answered beside the code, in the same form of
    /// `key=value` lines (HPC-F-66).
    pub result_lines: Captured,
    /// Standard output; nothing for a persistent filter, whose standard output is its answers.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// From the start of the process or the delivery to its end or answer.
    pub duration: Duration,
    /// BLAKE3 of the program's file in hexadecimal digits; `None` if it is not there or may be executed but not read.
    pub program_hash: Option<String>,
}
