//! The input of a runner and its answer.

use bytes::Bytes;
use muster_schemas::{
    JobId,
    filter::{ActivationParameters, FilterAction, FilterExit, FilterKind, FilterSpec},
    filter_order::ComponentPart,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The largest document that a filter may leave (HPC-J-47).
pub const MAX_DOCUMENT_BYTES: usize = 16 << 20;
/// The most bytes kept of standard output and of standard error, each (HPC-F-63).
pub const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// The most bytes kept of the result file (HPC-F-66): a few lines of `key=value`, each at most 200 characters.
pub const MAX_RESULT_FILE_BYTES: usize = 8 << 10;

/// One call of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The same for every delivery of this call, including those to other runners (HPC-F-85).
    pub invocation_id: String,
    /// The number of this delivery: 1, 2, 3.
    pub attempt: u32,
    /// What the filter judges.
    pub kind: FilterKind,
    /// Whether to judge or to revert.
    pub action: FilterAction,
    /// The filter. A persistent one is identified by its name, which is unique.
    pub filter: FilterSpec,
    /// The longest time it may run, counted from the start of its process or the delivery to a persistent one
    /// (HPC-F-05).
    pub time_limit_seconds: u32,
    /// The job.
    pub job: JobId,
    /// Its description as XML, which the filter finds in `job.xml`; the staging program finds the script of the
    /// component in `script` instead.
    pub document: Bytes,
    /// The same as JSON, for filters that prefer it, in `job.json` next to the XML.
    pub document_json: Option<Bytes>,
    /// Given if and only if the kind is [`FilterKind::Activation`].
    pub parameters: Option<ActivationParameters>,
    /// The component that the call is about; `None` for the whole job (SL-S-21).
    pub component: Option<ComponentPart>,
}

/// The state of a file after the call (HPC-F-64, HPC-F-17).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileAfter {
    /// Its contents are the same.
    Unchanged,
    /// It now has these contents, possibly empty.
    Changed(Bytes),
    /// It is gone.
    Missing,
    /// Something else has its name, or somebody else owns it: this says what.
    NotRegular(String),
    /// It is larger than [`MAX_DOCUMENT_BYTES`]: this is its size.
    TooLarge(u64),
}

/// The kept output of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The beginning.
    pub bytes: Bytes,
    /// Whether there was more, which was dropped.
    pub truncated: bool,
}

impl Captured {
    /// As text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How it ended.
    pub result: FilterExit,
    /// The job's XML afterwards. The domain decides whether it counts.
    pub document: FileAfter,
    /// The job's JSON afterwards, if there was one.
    pub document_json: Option<FileAfter>,
    /// The contents of the result file, or what a persistent filter answered in addition to the code, as `key=value`
    /// lines too (HPC-F-66).
    pub result_lines: Captured,
    /// Standard output; empty for a persistent filter, which writes its answers there.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// From the start of the process, or the delivery, to its end or answer.
    pub duration: Duration,
    /// BLAKE3 of the program's file in hexadecimal digits; `None` if it does not exist or may be executed but not read.
    pub program_hash: Option<String>,
    /// Repeated answers of a persistent filter to earlier calls: they have no effect (HPC-F-86).
    pub surplus: Vec<SurplusAnswer>,
}

/// Another answer of a persistent filter to a call that it has answered before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SurplusAnswer {
    /// The `id` of the call.
    pub id: String,
    /// The code.
    pub code: u8,
}
