//! Codes of refusals, failures and warnings, and their messages (HPC-E-10).

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident,)*) => {
        /// Why a job was refused, failed, stopped or warned. The name of a code is part of its messages and of events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $code,)* }

        impl Code {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$code,)*];

            /// The code as messages and events show it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => stringify!($code),)* }
            }
        }
    };
}

codes! {
    /// A priority that cannot be read or is outside 0..4000 (HPC-J-06).
    PriorityNotValid,
    /// `Priority` and `ExpandedPriority` denote different bands (HPC-J-09).
    PriorityConflict,
    /// A run time that cannot be read, or zero (HPC-J-10).
    RunTimeNotValid,
    /// A running job reached its run time (HPC-J-11).
    RunTimeExpired,
    /// A size that makes no sense by itself (HPC-J-16, HPC-J-20).
    SizeNotValid,
    /// A minimum that the eligible part of the cluster does not have (HPC-J-16).
    ClusterTooSmall,
    /// A name that no node has (HPC-J-18).
    NodeNotFound,
    /// A name that no node group has (HPC-J-18).
    NodeGroupNotFound,
    /// Too many nodes are excluded to meet the minimum (HPC-J-18).
    TooManyNodesExcluded,
    /// The tasks of a job contradict each other, or one is not valid (HPC-J-22..24).
    TaskNotValid,
    /// A text longer than its limit (HPC-J-27).
    ValueTooLong,
    /// A job description that cannot be read (HPC-J-41, J-42, J-47).
    JobXmlNotValid,
    /// A template XML that cannot be read.
    TemplateXmlNotValid,
    /// A template whose parts contradict each other.
    TemplateNotValid,
    /// The template `Default` cannot be deleted (HPC-T-01).
    TemplateFixed,
    /// A filter definition that makes no sense, such as a relative path (HPC-F-72).
    FilterNotValid,
    /// A value below the template's minimum (HPC-T-05).
    TemplateValueTooSmall,
    /// A value above the template's maximum (HPC-T-05).
    TemplateValueTooLarge,
    /// A value that the template does not allow (HPC-T-05).
    TemplateValueInvalid,
    /// A value that the template requires is missing in a list (HPC-T-05).
    TemplateRequiredValueMissing,
    /// The owner may not submit with the template (HPC-T-08).
    TemplateDenied,
    /// No template has this name (HPC-T-08).
    TemplateNotFound,
    /// A submission filter refused the job (HPC-F-10).
    SubmissionFilterFailed,
    /// A submission filter took too long (HPC-F-10).
    SubmissionFilterTimedOut,
    /// The program of a submission filter does not exist (HPC-F-10).
    SubmissionFilterNotFound,
    /// The program of a submission filter is there but cannot be run (HPC-F-10).
    SubmissionFilterNotRunnable,
    /// A submission filter left a job description that cannot be accepted (HPC-F-17).
    SubmissionFilterBadOutput,
    /// No runner answered for a submission filter (HPC-F-85).
    SubmissionFilterRunnerLost,
    /// An activation filter failed the job (HPC-F-30).
    FailedByActivationFilter,
    /// A hold that is not in the future, or cannot be read (HPC-H-07).
    HoldUntilNotValid,
    /// A hold more than one year ahead (HPC-H-07).
    HoldUntilTooLong,
    /// A hold of a job that is running or has ended (HPC-H-07).
    HoldWrongState,
    /// The run time of a running backfilled job cannot be changed (HPC-B-12).
    BackfillRunTimeFixed,
    /// The job gave its resources to one of higher priority (HPC-S-13).
    Preempted,
    /// Warning: a size in another unit than the job's is ignored (HPC-J-14).
    UnusedSizeAttribute,
    /// Warning: an unknown attribute or element was ignored (HPC-J-45).
    UnknownJobTerm,
    /// Warning: a property is kept with the job but has no effect here.
    PropertyWithoutEffect,
    /// Warning: a term or variable without name or value was dropped (HPC-J-43).
    IncompleteTerm,
    /// Warning: a filter changed the file but said that it did not (HPC-F-11).
    FilterFileChangesIgnored,
    /// Warning: changes of tasks by a filter were ignored (HPC-F-15).
    TaskChangesIgnored,
    /// Warning: changes of system attributes by a filter were ignored (HPC-F-16).
    ReadOnlyChangesIgnored,
    /// Warning: an exit code without a meaning (HPC-F-30, F-33).
    UndefinedFilterExitCode,
    /// Warning: an activation filter took too long (HPC-F-30, F-33).
    ActivationFilterTimedOut,
    /// Warning: the program of an activation filter does not exist or cannot be run (HPC-F-30, F-33).
    ActivationFilterNotFound,
    /// Warning: no runner answered for an activation filter (HPC-F-85).
    ActivationFilterRunnerLost,
    /// Warning: a filter could not be reverted (HPC-F-54).
    RevertFailed,
    /// Warning: a line of a filter's result file was ignored (HPC-F-66).
    ResultFileNotValid,
    /// Warning: a filter's program does not exist here; it may exist on the runners (HPC-F-72).
    FilterProgramMissing,
}

impl Code {
    /// The message of a refusal or failure: `[Code] text` (HPC-E-10).
    pub fn message(self, text: impl fmt::Display) -> String {
        format!("[{self}] {text}")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that a person should know but that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its kind.
    pub code: Code,
    /// What happened, without the code.
    pub text: String,
}

impl Warning {
    /// A warning of this kind.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.text)
    }
}

/// Warnings in order, each once. The first are kept; beyond that they are only counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    kept: Vec<Warning>,
    more: usize,
}

impl Warnings {
    /// The most warnings that are kept.
    const MOST: usize = 100;

    pub(crate) fn push(&mut self, code: Code, text: impl Into<String>) {
        let warning = Warning::new(code, text);
        if self.kept.contains(&warning) {
            return;
        }
        if self.kept.len() < Self::MOST {
            self.kept.push(warning);
        } else {
            self.more += 1;
        }
    }

    /// The kept warnings, and one with the number of the others.
    pub(crate) fn finish(mut self) -> Vec<Warning> {
        if let Some(last) = self.kept.last().filter(|_| self.more > 0) {
            let text = format!("{} more warnings of this and other kinds", self.more);
            self.kept.push(Warning::new(last.code, text));
        }
        self.kept
    }
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[{code}] {text}")]
pub struct Refusal {
    /// Its kind.
    pub code: Code,
    /// The error, without the code.
    pub text: String,
}

impl Refusal {
    /// A refusal of this kind.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}
