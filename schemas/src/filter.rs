//! Filters: a site's own programs that judge whether a job may enter the queue (submission) and whether it may take
//! certain resources now (activation); their chains, and the outcomes of their calls.

use crate::{
    ids::{JobId, RunId},
    resources::Placement,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};
use utoipa::ToSchema;

/// The kind of filter (HPC-F-01).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterKind {
    /// Whether a job may enter the queue, and with which properties.
    Submission,
    /// Whether a job may take these resources now.
    Activation,
    /// Not a judgement: files of a component are staged in before the job may start (SL-B-01).
    StageIn,
    /// Not a judgement: files of a component are staged out after the end of the job.
    StageOut,
}

impl FilterKind {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Submission => "submission",
            Self::Activation => "activation",
            Self::StageIn => "stage_in",
            Self::StageOut => "stage_out",
        }
    }

    /// Whether it is a call of the staging program, which judges and reverts nothing.
    pub const fn is_staging(self) -> bool {
        matches!(self, Self::StageIn | Self::StageOut)
    }
}

/// The action that a filter is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterAction {
    /// Judge.
    Filter,
    /// Undo what it did when it judged (HPC-F-51).
    Revert,
}

impl FilterAction {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Revert => "revert",
        }
    }
}

/// How a filter is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterForm {
    /// `PROGRAM JOBXML [PASS INDEX BACKFILL COUNT]`; it cannot be reverted (HPC-F-56, HPC-F-60).
    Exec,
    /// `PROGRAM KIND ACTION JOBXML [PASS INDEX BACKFILL COUNT]` (HPC-F-65).
    Verbs,
    /// `PROGRAM serve` keeps running and answers one call after another, each a line of JSON (HPC-F-67).
    Persistent,
}

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
    /// Its name, shown to people.
    pub name: String,
    /// Its program: an absolute path on the runners (HPC-F-72).
    pub path: String,
    /// How it is called.
    pub form: FilterForm,
    /// Whether it is also reverted if the result of its own call is unknown: it timed out, or its runner was lost
    /// (HPC-F-58).
    #[serde(default)]
    pub revert_on_unknown: bool,
}

/// Rules for starts while the verdict on a queued job is outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivationOrdering {
    /// No job of equal or lower priority (HPC-F-82).
    #[default]
    Strict,
    /// Any job, on resources that are not set aside (HPC-F-83).
    Relaxed,
}

/// The cluster-wide filters, and how filters are called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FilterSettings {
    /// The submission filter of all jobs, called last (HPC-F-02, HPC-F-03).
    pub submission: Option<FilterSpec>,
    /// The activation filter of all jobs, called last.
    pub activation: Option<FilterSpec>,
    /// Time limit of a call of a submission filter, in seconds, 1 to 120 (HPC-F-05).
    pub submission_timeout_seconds: u32,
    /// Time limit of a call of an activation filter, in seconds, 1 to 120 (HPC-F-05).
    pub activation_timeout_seconds: u32,
    /// After a verdict that did not pass, the filters of a job are not asked again for this time, in seconds, 1 to
    /// 3,600 (HPC-F-34).
    pub retry_interval_seconds: u32,
    /// Which jobs may start while a verdict is outstanding.
    pub ordering: ActivationOrdering,
    /// How long a filter holds a job if it names no time, in seconds, 60 to 604,800 (HPC-H-02).
    pub default_hold_seconds: u32,
}

impl Default for FilterSettings {
    fn default() -> Self {
        Self {
            submission: None,
            activation: None,
            submission_timeout_seconds: 15,
            activation_timeout_seconds: 15,
            retry_interval_seconds: 10,
            ordering: ActivationOrdering::Strict,
            default_hold_seconds: 900,
        }
    }
}

impl FilterSettings {
    /// The time limit of the calls of filters of a kind, in seconds.
    pub const fn timeout_seconds(&self, kind: FilterKind) -> u32 {
        match kind {
            FilterKind::Submission => self.submission_timeout_seconds,
            _ => self.activation_timeout_seconds,
        }
    }

    /// The cluster-wide filter of a kind.
    pub const fn cluster_wide(&self, kind: FilterKind) -> Option<&FilterSpec> {
        match kind {
            FilterKind::Submission => self.submission.as_ref(),
            FilterKind::Activation => self.activation.as_ref(),
            FilterKind::StageIn | FilterKind::StageOut => None,
        }
    }
}

/// How the files of jobs are staged (SL-B-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StagingSettings {
    /// The site's program, an absolute path on the runners; `None` means that nothing is staged.
    pub program: Option<String>,
    /// Time limit for staging in one component, in seconds, 1 to 604,800.
    pub stage_in_timeout_seconds: u32,
    /// Time limit for staging out one component, in seconds, 1 to 604,800.
    pub stage_out_timeout_seconds: u32,
    /// How long a job waits whose files could not be copied to its node, in seconds, at most 604,800; 0 means 1,800
    /// (PBS-G-03).
    pub copy_retry_seconds: u32,
    /// The greatest size of the files that are copied for a job in one direction, in bytes; 0 means no limit.
    pub copy_limit_bytes: u64,
    /// After this many failures to copy the files of a job it is held; 0 means never (PBS-G-04).
    pub copy_failures_before_hold: u32,
}

impl StagingSettings {
    /// How long a job waits whose files could not be copied, in seconds.
    pub fn copy_retry_seconds(&self) -> u32 {
        if self.copy_retry_seconds == 0 { 1_800 } else { self.copy_retry_seconds }
    }
}

impl Default for StagingSettings {
    fn default() -> Self {
        Self {
            program: None,
            stage_in_timeout_seconds: 86_400,
            stage_out_timeout_seconds: 86_400,
            copy_retry_seconds: 0,
            copy_limit_bytes: 0,
            copy_failures_before_hold: 0,
        }
    }
}

/// A job template: defaults and limits for the jobs that name it, its permitted users, and its filters (HPC-T-02).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateSpec {
    /// Its name, unique in the cluster; names ignore case.
    pub name: String,
    /// The ledger increments it with each change (HPC-T-09).
    #[serde(default)]
    pub revision: u64,
    /// Users who may submit with it; empty means all (HPC-T-08).
    #[serde(default)]
    pub users: Vec<String>,
    /// Its submission filters, in the order in which they are called.
    #[serde(default)]
    pub submission_filters: Vec<FilterSpec>,
    /// Its activation filters, in the order in which they are called.
    #[serde(default)]
    pub activation_filters: Vec<FilterSpec>,
    /// Defaults and limits, as its dialect writes them; only the dialect reads them.
    #[serde(default)]
    pub text: String,
}

impl TemplateSpec {
    /// Its filters of a kind.
    pub fn filters(&self, kind: FilterKind) -> &[FilterSpec] {
        match kind {
            FilterKind::Submission => &self.submission_filters,
            FilterKind::Activation => &self.activation_filters,
            FilterKind::StageIn | FilterKind::StageOut => &[],
        }
    }
}

/// A description of a job as written, byte for byte (HPC-J-46).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDocument {
    /// Its format: `xml` or `json`.
    pub format: String,
    /// Whether the bytes are compressed (gzip).
    pub is_compressed: bool,
    /// The bytes; in JSON as base64.
    #[schema(value_type = String, content_encoding = "base64")]
    #[serde(with = "base64_in_text")]
    pub bytes: Arc<[u8]>,
}

/// Bytes: unchanged when stored, base64 in JSON.
mod base64_in_text {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de::Error as _};
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return serializer.serialize_str(&STANDARD.encode(bytes));
        }
        bytes.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
        if !deserializer.is_human_readable() {
            return Arc::deserialize(deserializer);
        }
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Arc::from).map_err(|error| D::Error::custom(format!("expected base64: {error}")))
    }
}

impl fmt::Debug for JobDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "JobDocument({}, {} bytes{})",
            self.format,
            self.bytes.len(),
            if self.is_compressed { ", compressed" } else { "" }
        )
    }
}

impl JobDocument {
    /// An XML document that is not compressed.
    pub fn xml(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { format: "xml".into(), is_compressed: false, bytes: bytes.into() }
    }
}

/// The id of one call of a chain. It is the same for every delivery of the call, and no other call ever has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub struct CallId {
    /// The job.
    pub job: JobId,
    /// The kind of chain.
    pub kind: FilterKind,
    /// The number of the chain, unique in the cluster.
    pub chain: u64,
    /// The index of the filter in the chain, from 0; one past the last filter is the validation.
    pub position: u32,
    /// Whether to judge or to undo.
    pub action: FilterAction,
}

/// As filters see it: `MUSTER_INVOCATION_ID`.
impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}-{}", self.job, self.kind.word(), self.chain, self.position, self.action.word())
    }
}

/// Facts that activation filters get in addition to the job (HPC-F-61, HPC-F-62).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActivationParameters {
    /// Passes since this planner started; the first is 1.
    pub pass: u64,
    /// The job's place in the queue of this pass; the first is 1, a growing job's is 0.
    pub index: u64,
    /// Whether this is an attempt to start the job as backfill.
    pub backfill: bool,
    /// Candidate resources, in the job's unit; for growth, the number to add.
    pub count: u64,
    /// Whether the cluster backfills at all.
    pub backfill_enabled: bool,
    /// How often the planner has been restarted.
    pub planner_epoch: u64,
    /// The current size of the job, in its unit; 0 if it is queued.
    pub current: u64,
}

/// Resources offered to a job while its activation chain judges them. They are set aside meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    /// For a start, the number that the run will have; for growth, the run that grows.
    pub run: RunId,
    /// The candidates; for growth, the addition.
    pub placement: Arc<Placement>,
    /// Whether a running job would grow by them.
    pub growth: bool,
    /// The parameters of the filters.
    pub parameters: ActivationParameters,
    /// Running jobs that make way once all filters have passed (HPC-S-15). If there are any, nothing is set aside: the
    /// job may start as soon as there is room, without asking its filters again.
    pub preempts: Vec<JobId>,
    /// The resources that each of them has to give up, in the same order.
    pub claims: Vec<Placement>,
    /// For a start ahead of a waiting job: a start later than this would delay that job (HPC-B-15).
    pub latest_start: Option<Timestamp>,
}

/// A filter of a chain as it was when the chain began (HPC-F-04).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainFilter {
    /// The filter.
    pub spec: FilterSpec,
    /// BLAKE3 of its program in hex, as a runner last found it; `None` before its first call.
    pub program_hash: Option<String>,
    /// The component of the job that it is asked about, from 0; `None` means the whole job.
    pub component: Option<u32>,
}

/// A chain as it was when it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainSpec {
    /// Its number, unique in the cluster.
    pub number: u64,
    /// The kind of filter.
    pub kind: FilterKind,
    /// Its filters, in the order in which they are called.
    pub filters: Vec<ChainFilter>,
    /// The time limit of each call, in seconds.
    pub limit_seconds: u32,
    /// The offer that an activation chain judges.
    pub offer: Option<Offer>,
}

/// How a call ended, without interpretation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterExit {
    /// The program ended with this exit code.
    Code(u8),
    /// This signal ended the program; counts as exit code 128 + signal (HPC-F-08).
    Signal(u8),
    /// It reached its time limit (HPC-F-06).
    TimedOut,
    /// The program, or its interpreter, does not exist: which (HPC-F-07).
    NotFound(String),
    /// The program cannot be run: why (HPC-F-07).
    NotRunnable(String),
    /// A persistent filter ended or gave an unreadable answer: details. Counts as exit code 255.
    BadAnswer(String),
    /// No runner answered in any attempt (HPC-F-85).
    RunnerLost,
}

impl FilterExit {
    /// The exit code that is recorded; `None` if no program ended by itself.
    pub const fn code(&self) -> Option<u8> {
        match self {
            Self::Code(code) => Some(*code),
            Self::Signal(signal) => Some(128_u8.saturating_add(*signal)),
            Self::BadAnswer(_) => Some(255),
            Self::TimedOut | Self::NotFound(_) | Self::NotRunnable(_) | Self::RunnerLost => None,
        }
    }

    /// Whether the filter may have done part of its work (HPC-F-58).
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::TimedOut | Self::RunnerLost)
    }

    /// Whether the runner does not have the program or cannot run it (HPC-F-91).
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::NotFound(_) | Self::NotRunnable(_))
    }
}

impl fmt::Display for FilterExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotFound(path) => write!(f, "not found: {path}"),
            Self::NotRunnable(why) => write!(f, "not runnable: {why}"),
            Self::BadAnswer(what) => write!(f, "bad answer: {what}"),
            Self::RunnerLost => f.write_str("no answer from a runner"),
        }
    }
}

/// A property that a filter set, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PropertyChange {
    /// The property.
    pub property: String,
    /// The old value; `None` if it was not specified.
    pub old: Option<String>,
    /// The new value; `None` if it is no longer specified.
    pub new: Option<String>,
}

/// A warning about a job, for people. It stops nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct JobWarning {
    /// The kind, such as `TaskChangesIgnored`.
    pub code: String,
    /// The text, for people.
    pub text: String,
}

/// Until when a filter wants a job held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FilterHold {
    /// Until this time.
    At(Timestamp),
    /// This many seconds from the verdict on.
    Seconds(i64),
}

/// The file as a submission filter left it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAfter {
    /// Unchanged.
    #[default]
    Unchanged,
    /// Changed: the description that is passed on and its differences, which are accepted if the filter answers 1.
    Changed {
        /// The description.
        document: JobDocument,
        /// The differences; may be empty.
        changes: Vec<PropertyChange>,
        /// The template that the description names now, if it names one.
        template: Option<String>,
    },
    /// Not acceptable: why (HPC-F-17).
    Bad(String),
}

/// The outcome of a call of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FilterReport {
    /// How it ended.
    pub exit: FilterExit,
    /// Time from the start of the process or the delivery to its end or answer.
    pub duration_micros: u64,
    /// BLAKE3 of the program's file in hex; `None` if it is not there or cannot be read.
    pub program_hash: Option<String>,
    /// BLAKE3 of the description that it was given, in hex.
    pub input_hash: String,
    /// The file as the filter left it; only for submission filters that judge.
    pub file: FileAfter,
    /// The text that it wants shown on the job.
    pub message: Option<String>,
    /// Until when it wants the job held.
    pub hold_until: Option<FilterHold>,
    /// Parts that were left out or not understood.
    pub warnings: Vec<JobWarning>,
    /// The beginning of its standard output, as text.
    pub stdout: String,
    /// The beginning of its standard error, as text.
    pub stderr: String,
    /// Whether it wrote more than was kept.
    pub is_output_cut: bool,
}

impl FilterReport {
    /// The report on a call that no runner answered.
    pub fn runner_lost() -> Self {
        Self {
            exit: FilterExit::RunnerLost,
            duration_micros: 0,
            program_hash: None,
            input_hash: String::new(),
            file: FileAfter::Unchanged,
            message: None,
            hold_until: None,
            warnings: Vec::new(),
            stdout: String::new(),
            stderr: String::new(),
            is_output_cut: false,
        }
    }
}

/// How an activation chain, or a submission chain, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChainVerdict {
    /// All passed.
    Pass,
    /// The job stays queued, and no job of equal or lower priority starts (activation verdict 1).
    Block,
    /// The job stays queued, and the candidates are kept for it (2, and anything that counts as 2).
    Reserve,
    /// The job is held (3).
    Hold,
    /// The job fails.
    Fail,
    /// Not now: the candidates go to other jobs; nothing else happens (growth, backfill).
    NotNow,
}
