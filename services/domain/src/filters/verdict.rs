//! The meaning of a filter's answer (HPC-F-10, HPC-F-30, HPC-F-33, HPC-F-37), and its message (HPC-E-10).

use muster_schemas::filter::{
    ChainSpec, ChainVerdict, FileAfter, FilterExit, FilterKind, FilterReport, FilterSpec, JobWarning,
};

/// The purpose for which resources are offered to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To start a queued job (HPC-F-30).
    Start,
    /// To start a queued job around a waiting one (HPC-F-37).
    Backfill,
    /// To let a running job grow (HPC-F-33).
    Growth,
}

impl Attempt {
    /// The offer of a chain; [`Attempt::Start`] if it has none.
    pub fn of(chain: &ChainSpec) -> Self {
        match &chain.offer {
            Some(offer) if offer.growth => Self::Growth,
            Some(offer) if offer.parameters.backfill => Self::Backfill,
            _ => Self::Start,
        }
    }
}

/// The meaning of an activation filter's answer for an attempt, and the code of the warning it causes (HPC-F-30,
/// HPC-F-33, HPC-F-37).
pub const fn activation(attempt: Attempt, exit: &FilterExit) -> (ChainVerdict, Option<&'static str>) {
    let (verdict, warning) = match exit {
        FilterExit::Code(0) => (ChainVerdict::Pass, None),
        FilterExit::Code(1) => (ChainVerdict::Block, None),
        FilterExit::Code(2) => (ChainVerdict::Reserve, None),
        FilterExit::Code(3) => (ChainVerdict::Hold, None),
        FilterExit::Code(4) => (ChainVerdict::Fail, None),
        FilterExit::Code(_) | FilterExit::Signal(_) | FilterExit::BadAnswer(_) => {
            (ChainVerdict::Reserve, Some("UndefinedFilterExitCode"))
        }
        FilterExit::TimedOut => (ChainVerdict::Reserve, Some("ActivationFilterTimedOut")),
        FilterExit::NotFound(_) | FilterExit::NotRunnable(_) => {
            (ChainVerdict::Reserve, Some("ActivationFilterNotFound"))
        }
        FilterExit::RunnerLost => (ChainVerdict::Reserve, Some("ActivationFilterRunnerLost")),
    };
    match (attempt, verdict) {
        (Attempt::Start, _) | (_, ChainVerdict::Pass) => (verdict, warning),
        (_, ChainVerdict::Block) => (ChainVerdict::NotNow, warning),
        (Attempt::Backfill, ChainVerdict::Reserve) => (ChainVerdict::NotNow, warning),
        (Attempt::Backfill, _) => (verdict, warning),
        // For a running job only "pass" and "not now" have a meaning.
        (Attempt::Growth, _) => (
            ChainVerdict::NotNow,
            match warning {
                None => Some("UndefinedFilterExitCode"),
                Some(_) => warning,
            },
        ),
    }
}

/// An answer of a filter, to be put into words.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The filter.
    pub filter: &'a FilterSpec,
    /// The time limit of the call, in seconds.
    pub limit_seconds: u32,
    /// The outcome of the call.
    pub report: &'a FilterReport,
}

impl Answer<'_> {
    /// What happened; follows the name of the filter (HPC-E-10).
    fn outcome(&self) -> String {
        match &self.report.exit {
            FilterExit::Code(_) | FilterExit::Signal(_) => {
                format!("failed the job (exit code {})", self.report.exit.code().unwrap_or_default())
            }
            FilterExit::BadAnswer(what) => format!("failed the job (exit code 255): {what}"),
            FilterExit::TimedOut => format!("timed out after {} s", self.limit_seconds),
            FilterExit::NotFound(path) => format!("was not found: {path}"),
            FilterExit::NotRunnable(why) => format!("cannot be run: {why}"),
            FilterExit::RunnerLost => "got no answer from a runner".to_owned(),
        }
    }

    /// The text, starting with a code in brackets, with which this submission filter refuses the job; `None` if it
    /// passed (HPC-F-10, HPC-F-17, HPC-E-10).
    pub fn submission_failure(&self) -> Option<String> {
        let code = match (&self.report.exit, &self.report.file) {
            (FilterExit::Code(0), _) => return None,
            (FilterExit::Code(1), FileAfter::Bad(why)) => {
                let name = &self.filter.name;
                return Some(format!(
                    "[SubmissionFilterBadOutput] submission filter '{name}' gave an invalid job description: {why}"
                ));
            }
            (FilterExit::Code(1), _) => return None,
            (FilterExit::Code(_) | FilterExit::Signal(_) | FilterExit::BadAnswer(_), _) => "SubmissionFilterFailed",
            (FilterExit::TimedOut, _) => "SubmissionFilterTimedOut",
            (FilterExit::NotFound(_), _) => "SubmissionFilterNotFound",
            (FilterExit::NotRunnable(_), _) => "SubmissionFilterNotRunnable",
            (FilterExit::RunnerLost, _) => "SubmissionFilterRunnerLost",
        };
        Some(format!("[{code}] submission filter '{}' {}", self.filter.name, self.outcome()))
    }

    /// The text with which this activation filter refuses the job (HPC-F-30, HPC-E-10).
    pub fn activation_failure(&self) -> String {
        format!("[FailedByActivationFilter] the job was failed by activation filter '{}'", self.filter.name)
    }

    /// The meaning of an activation filter's answer, for people.
    pub fn activation_message(&self) -> String {
        let name = &self.filter.name;
        match &self.report.exit {
            FilterExit::Code(_) | FilterExit::Signal(_) | FilterExit::BadAnswer(_) => {
                format!("activation filter '{name}' answered with exit code {}", self.report.exit.code().unwrap_or(255))
            }
            _ => format!("activation filter '{name}' {}", self.outcome()),
        }
    }

    /// The warning that this activation filter's answer leaves on the job, if any (HPC-F-30, HPC-F-33).
    pub fn activation_warning(&self, attempt: Attempt) -> Option<JobWarning> {
        let (_, code) = activation(attempt, &self.report.exit);
        let of = if attempt == Attempt::Growth { "a growing job" } else { "a queued job" };
        let text = match &self.report.exit {
            FilterExit::Code(_) | FilterExit::Signal(_) => {
                format!("{}, which has no meaning for {of}", self.activation_message())
            }
            FilterExit::BadAnswer(what) => format!("{}: {what}", self.activation_message()),
            _ => self.activation_message(),
        };
        code.map(|code| JobWarning { code: code.to_owned(), text })
    }

    /// The warning about a failed revert; `None` if it exited with 0 (HPC-F-54).
    pub fn revert_warning(&self) -> Option<JobWarning> {
        let outcome = match &self.report.exit {
            FilterExit::Code(0) => return None,
            exit @ (FilterExit::Code(_) | FilterExit::Signal(_) | FilterExit::BadAnswer(_)) => exit.to_string(),
            _ => self.outcome(),
        };
        let text = format!("filter '{}' could not be reverted: {outcome}", self.filter.name);
        Some(JobWarning { code: "RevertFailed".to_owned(), text })
    }

    /// Why the staging program failed; `None` if it exited with 0. Its own message comes first.
    pub fn staging_failure(&self) -> Option<String> {
        let outcome = match &self.report.exit {
            FilterExit::Code(0) => return None,
            exit @ (FilterExit::Code(_) | FilterExit::Signal(_) | FilterExit::BadAnswer(_)) => exit.to_string(),
            _ => self.outcome(),
        };
        let said = self.report.message.as_ref().map(|text| format!("{text}; ")).unwrap_or_default();
        Some(format!("{said}the staging program for {}: {outcome}", self.filter.name))
    }

    /// Whether the filter passed, so that the chain continues after it.
    pub fn passes(&self, kind: FilterKind) -> bool {
        match kind {
            FilterKind::Submission => self.submission_failure().is_none(),
            FilterKind::Activation | FilterKind::StageIn => matches!(self.report.exit, FilterExit::Code(0)),
            FilterKind::StageOut => true,
        }
    }

    /// Whether the filter's work is rolled back if the chain does not pass: it passed, or it may have done half its
    /// work and wants that reverted (HPC-F-51, HPC-F-58).
    pub fn is_rolled_back(&self, kind: FilterKind) -> bool {
        self.passes(kind) || self.filter.revert_on_unknown && self.report.exit.is_unknown()
    }

    /// Whether it changed the description: it answered 1, and there is a difference (HPC-F-12).
    pub fn changes(&self) -> bool {
        let is_different = matches!(&self.report.file, FileAfter::Changed { changes, .. } if !changes.is_empty());
        matches!(self.report.exit, FilterExit::Code(1)) && is_different
    }
}
