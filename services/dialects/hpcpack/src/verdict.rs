//! What the result of a filter call means (HPC-F-10, F-30, F-33, F-37), and what is said about it (HPC-E-10).

use crate::{
    changes::BadOutput,
    codes::{Code, Refusal, Warning},
};
use std::fmt;

/// How one call of a filter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// It exited with this code.
    Exited(u8),
    /// It was ended by this signal, 1..127: any other exit code (HPC-F-08).
    Signaled(u8),
    /// It was still running at its time limit (HPC-F-06), whatever it exited with afterwards.
    TimedOut,
    /// Its program, or the interpreter of it, does not exist (HPC-F-07).
    NotFound,
    /// Its program is there and cannot be run (HPC-F-07).
    NotRunnable,
    /// No runner gave an answer in any of the attempts (HPC-F-85).
    RunnerLost,
}

impl CallResult {
    /// The exit code as it is recorded: 128 + signal for a death by signal (HPC-F-08).
    pub const fn exit_code(self) -> Option<u8> {
        match self {
            Self::Exited(code) => Some(code),
            Self::Signaled(signal) => Some(128u8.saturating_add(signal)),
            Self::TimedOut | Self::NotFound | Self::NotRunnable | Self::RunnerLost => None,
        }
    }

    /// Whether a filter that answered so may have done half its work, so that `revert-on-unknown` has it reverted
    /// (HPC-F-58).
    pub const fn is_unknown(self) -> bool {
        matches!(self, Self::TimedOut | Self::RunnerLost)
    }
}

impl fmt::Display for CallResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signaled(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotFound => f.write_str("not found"),
            Self::NotRunnable => f.write_str("not runnable"),
            Self::RunnerLost => f.write_str("runner lost"),
        }
    }
}

/// What happens after a submission filter (HPC-F-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionAction {
    /// The job goes on as it was (HPC-F-11).
    Pass,
    /// The job goes on with what the filter changed (HPC-F-12..17); it fails with `SubmissionFilterBadOutput` if that
    /// cannot be taken.
    TakeChanges,
    /// The job fails with this code, and the filters that passed before are reverted.
    Fail(Code),
}

/// What a submission filter's result means (HPC-F-10).
pub const fn submission(result: CallResult) -> SubmissionAction {
    match result {
        CallResult::Exited(0) => SubmissionAction::Pass,
        CallResult::Exited(1) => SubmissionAction::TakeChanges,
        CallResult::Exited(_) | CallResult::Signaled(_) => SubmissionAction::Fail(Code::SubmissionFilterFailed),
        CallResult::TimedOut => SubmissionAction::Fail(Code::SubmissionFilterTimedOut),
        CallResult::NotFound => SubmissionAction::Fail(Code::SubmissionFilterNotFound),
        CallResult::NotRunnable => SubmissionAction::Fail(Code::SubmissionFilterNotRunnable),
        CallResult::RunnerLost => SubmissionAction::Fail(Code::SubmissionFilterRunnerLost),
    }
}

/// For what resources were offered to an activation filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To start a queued job (HPC-F-30).
    Start,
    /// To start a queued job in a backfill window (HPC-F-37).
    Backfill,
    /// To let a running job grow (HPC-F-33).
    Growth,
}

/// What happens after an activation filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivationAction {
    /// The job starts on the candidates, or grows by them.
    Pass,
    /// The job stays queued; no job of equal or lower priority value starts (HPC-F-31).
    Block,
    /// The job stays queued and the candidates are kept for it (HPC-F-35).
    Reserve,
    /// The job is held (HPC-H-03, H-04).
    Hold,
    /// The job fails with `FailedByActivationFilter`.
    Fail,
    /// Not now: the job stays as it is and the candidates go to others in the same pass (HPC-F-33, F-37).
    NotNow,
}

/// What an activation filter's result means for this attempt, and the code of the warning that is shown for it
/// (HPC-F-30, F-33, F-37).
pub const fn activation(attempt: Attempt, result: CallResult) -> (ActivationAction, Option<Code>) {
    let (action, warning) = match result {
        CallResult::Exited(0) => (ActivationAction::Pass, None),
        CallResult::Exited(1) => (ActivationAction::Block, None),
        CallResult::Exited(2) => (ActivationAction::Reserve, None),
        CallResult::Exited(3) => (ActivationAction::Hold, None),
        CallResult::Exited(4) => (ActivationAction::Fail, None),
        CallResult::Exited(_) | CallResult::Signaled(_) => {
            (ActivationAction::Reserve, Some(Code::UndefinedFilterExitCode))
        }
        CallResult::TimedOut => (ActivationAction::Reserve, Some(Code::ActivationFilterTimedOut)),
        CallResult::NotFound | CallResult::NotRunnable => {
            (ActivationAction::Reserve, Some(Code::ActivationFilterNotFound))
        }
        CallResult::RunnerLost => (ActivationAction::Reserve, Some(Code::ActivationFilterRunnerLost)),
    };
    match (attempt, action) {
        (Attempt::Start, _) | (_, ActivationAction::Pass) => (action, warning),
        (_, ActivationAction::Block) => (ActivationAction::NotNow, warning),
        (Attempt::Backfill, ActivationAction::Reserve) => (ActivationAction::NotNow, warning),
        (Attempt::Backfill, _) => (action, warning),
        // To a running job only "pass" and "not now" can be said; the rest has no meaning for it.
        (Attempt::Growth, _) => (
            ActivationAction::NotNow,
            match warning {
                None => Some(Code::UndefinedFilterExitCode),
                Some(_) => warning,
            },
        ),
    }
}

/// A call of a filter, for messages about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'c> {
    /// The filter's name.
    pub name: &'c str,
    /// Its program.
    pub path: &'c str,
    /// The time limit, in seconds.
    pub limit_seconds: u32,
    /// How the call ended.
    pub result: CallResult,
    /// Why the program cannot be run, where the result is `NotRunnable`.
    pub reason: &'c str,
}

impl Call<'_> {
    /// What happened, behind the name of the filter (HPC-E-10).
    fn outcome(&self) -> String {
        match self.result {
            CallResult::Exited(_) | CallResult::Signaled(_) => {
                format!("failed the job (exit code {})", self.result.exit_code().unwrap_or_default())
            }
            CallResult::TimedOut => format!("timed out after {} s", self.limit_seconds),
            CallResult::NotFound => format!("was not found: {}", self.path),
            CallResult::NotRunnable => format!("cannot be run: {}", self.reason),
            CallResult::RunnerLost => "got no answer from a runner".to_owned(),
        }
    }

    /// Why the job fails at this submission filter; `None` if the result does not fail it (HPC-F-10, HPC-E-10).
    pub fn submission_failure(&self) -> Option<Refusal> {
        match submission(self.result) {
            SubmissionAction::Fail(code) => {
                Some(Refusal::new(code, format!("submission filter '{}' {}", self.name, self.outcome())))
            }
            SubmissionAction::Pass | SubmissionAction::TakeChanges => None,
        }
    }

    /// Why the job fails at a submission filter whose changes cannot be taken (HPC-F-17, HPC-E-10).
    pub fn bad_output(&self, reason: &BadOutput) -> Refusal {
        let text = format!("submission filter '{}' gave an invalid job description: {reason}", self.name);
        Refusal::new(Code::SubmissionFilterBadOutput, text)
    }

    /// Why the job fails at this activation filter; `None` if the result does not fail it (HPC-F-30, HPC-E-10).
    pub fn activation_failure(&self, attempt: Attempt) -> Option<Refusal> {
        let text = format!("the job was failed by activation filter '{}'", self.name);
        let fails = activation(attempt, self.result).0 == ActivationAction::Fail;
        fails.then(|| Refusal::new(Code::FailedByActivationFilter, text))
    }

    /// The warning that this activation filter's result leaves on the job, if any (HPC-F-30, F-33).
    pub fn activation_warning(&self, attempt: Attempt) -> Option<Warning> {
        let (_, code) = activation(attempt, self.result);
        let outcome = match self.result {
            CallResult::Exited(_) | CallResult::Signaled(_) => {
                let of = if attempt == Attempt::Growth { "a growing job" } else { "a queued job" };
                let code = self.result.exit_code().unwrap_or_default();
                format!("answered with exit code {code}, which has no meaning for {of}")
            }
            _ => self.outcome(),
        };
        code.map(|code| Warning::new(code, format!("activation filter '{}' {outcome}", self.name)))
    }

    /// The warning for a revert that did not succeed; `None` if it exited with 0 (HPC-F-54).
    pub fn revert_warning(&self) -> Option<Warning> {
        let outcome = match self.result {
            CallResult::Exited(0) => return None,
            CallResult::Exited(_) | CallResult::Signaled(_) => self.result.to_string(),
            _ => self.outcome(),
        };
        Some(Warning::new(Code::RevertFailed, format!("filter '{}' could not be reverted: {outcome}", self.name)))
    }
}
