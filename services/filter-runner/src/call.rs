//! What is asked of a runner, and what it answers.

use bytes::Bytes;
use muster_schemas::{
    JobId,
    filter::{ActivationParameters, FilterAction, FilterExit, FilterKind, FilterSpec},
    filter_order::ComponentPart,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// No document that a filter leaves behind is larger (HPC-J-47).
pub const MAX_DOCUMENT_BYTES: usize = 16 << 20;
/// So much of standard output and of standard error is kept, each (HPC-F-63).
pub const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// So much of the result file is kept (HPC-F-66): some lines of `key=value`, of which the longest may have 200 characters.
pub const MAX_RESULT_FILE_BYTES: usize = 8 << 10;

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
    pub action: FilterAction,
    /// Which filter. A persistent one is known by its name: no two have the same.
    pub filter: FilterSpec,
    /// It runs so long at most, counted from the start of its process or the delivery to a persistent one (HPC-F-05).
    pub time_limit_seconds: u32,
    /// The job.
    pub job: JobId,
    /// Its description as XML, which the filter finds in `job.xml`; for the staging program the script of the component, which
    /// it finds in `script`.
    pub document: Bytes,
    /// The same as JSON, for filters that prefer it; they find it in `job.json` beside the XML.
    pub document_json: Option<Bytes>,
    /// Given if and only if the kind is [`FilterKind::Activation`].
    pub parameters: Option<ActivationParameters>,
    /// The component of the job that the call is about, if it is not about the whole job (SL-S-21).
    pub component: Option<ComponentPart>,
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
    pub result: FilterExit,
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
    /// What a persistent filter answered once more to calls before this one: it counts for nothing (HPC-F-86).
    pub surplus: Vec<SurplusAnswer>,
}

/// An answer of a persistent filter to a call that it had answered before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurplusAnswer {
    /// The `id` of the call.
    pub id: String,
    /// The code.
    pub code: u8,
}
