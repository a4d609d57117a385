//! Filters and their chains.

use super::{
    allocation::{AllocatedNode, allocated},
    declare::public_events,
    names::Names,
    words::Because,
};
use crate::{
    filter::{
        ActivationParameters, CallId, ChainFilter, ChainSpec, ChainVerdict, FileAfter, FilterAction, FilterExit,
        FilterKind, FilterReport, PropertyChange,
    },
    ids::JobId,
    time::Timestamp,
};
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

public_events! { FilterData
    /// A chain of filters started.
    "filter" "chain_started" FilterChainStarted about job {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
        /// Its filters, in the order in which they are called.
        filters: Vec<ChainFilter>,
        /// The time limit of each call, in seconds.
        limit_seconds: u32,
        /// The parameters of activation filters.
        parameters: Option<ActivationParameters>,
        /// The candidate resources, which are set aside.
        nodes: Vec<AllocatedNode>,
    }
    says |data, f| {
        let names: Vec<&str> = data.filters.iter().map(|filter| filter.spec.name.as_str()).collect();
        let kind = data.filter_kind.word();
        write!(f, "job {}: {kind} chain {} began: {}", data.job, data.chain, names.join(", "))
    };

    /// A call of a filter was handed to a runner.
    "filter" "invoked" FilterInvoked about job {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The value of `MUSTER_INVOCATION_ID` for the filter.
        invocation: String,
        /// Number of times that it has been handed out, including this one.
        attempt: u32,
        /// The runner's name.
        runner: String,
    }
    says |data, f| {
        write!(f, "job {}: {} goes to runner {}", data.job, CallText(&data.call), data.runner)?;
        if data.attempt > 1 { write!(f, ", attempt {}", data.attempt) } else { Ok(()) }
    };

    /// A runner does not have the program of a filter: the call goes to another one.
    "filter" "elsewhere" FilterElsewhere about job {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The runner without the program.
        runner: String,
    }
    says |data, f| {
        let call = CallText(&data.call);
        write!(f, "job {}: runner {} cannot make {call}; another runner is tried", data.job, data.runner)
    };

    /// The runner of a call was silent for too long: the call is offered to all runners again.
    "filter" "offered_again" FilterOfferedAgain about job {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The number of the new attempt.
        attempt: u32,
    }
    says |data, f| {
        let call = CallText(&data.call);
        write!(f, "job {}: the runner with {call} is silent; attempt {} is offered", data.job, data.attempt)
    };

    /// The verdict of a filter.
    "filter" "verdict" FilterVerdict about job {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// Its outcome.
        #[serde(flatten)]
        result: FilterResult,
    }
    says |data, f| {
        write!(f, "job {}: {} gave {}", data.job, CallText(&data.call), data.result.exit)?;
        for (at, change) in data.result.changes.iter().take(5).enumerate() {
            let now = change.new.as_deref().unwrap_or("not specified");
            write!(f, "{}{} = {now}", if at == 0 { ", having set " } else { ", " }, change.property)?;
        }
        Ok(())
    };

    /// All filters of a chain have passed.
    "filter" "chain_passed" FilterChainPassed about job {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
    }
    says |data, f| {
        write!(f, "job {}: {} chain {} passed", data.job, data.filter_kind.word(), data.chain)
    };

    /// A chain ended without passing.
    "filter" "chain_failed" FilterChainFailed about job {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
        /// The meaning of the outcome.
        verdict: ChainVerdict,
        /// The index of the filter that ended it, from 0; one past the last if no filter did.
        position: u32,
        /// The reason, for people; empty for staging, where only the owner and operators may see it.
        message: String,
    }
    says |data, f| {
        let kind = data.filter_kind.word();
        write!(f, "job {}: {kind} chain {} did not pass{}", data.job, data.chain, Because(&data.message))
    };

    /// A filter undid its work.
    "filter" "reverted" FilterReverted about job {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// Its outcome.
        #[serde(flatten)]
        result: FilterResult,
    }
    says |data, f| write!(f, "job {}: {} is done", data.job, CallText(&data.call));

    /// A filter did not undo its work. It is not asked again.
    "filter" "revert_failed" FilterRevertFailed about job {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// Its outcome.
        #[serde(flatten)]
        result: FilterResult,
    }
    says |data, f| {
        write!(f, "job {}: {} failed: {}", data.job, CallText(&data.call), data.result.exit)
    };

    /// A filter cannot be asked to undo its work.
    "filter" "revert_skipped" FilterRevertSkipped about job {
        /// The job.
        job: JobId,
        /// The call that is not made.
        call: CallId,
        /// Why.
        reason: String,
    }
    says |data, f| {
        write!(f, "job {}: {} is not made{}", data.job, CallText(&data.call), Because(&data.reason))
    };

    /// All filters of a chain that had passed have been asked to undo their work.
    "filter" "rollback_completed" FilterRollbackCompleted about job {
        /// The job.
        job: JobId,
        /// The kind of filter.
        filter_kind: FilterKind,
        /// The number of the chain.
        chain: u64,
    }
    says |data, f| {
        write!(f, "job {}: {} chain {} is rolled back", data.job, data.filter_kind.word(), data.chain)
    };

    /// A filter's answer came too late. It changes nothing.
    "filter" "late_result" FilterLateResult about job {
        /// The job.
        job: JobId,
        /// The call.
        call: CallId,
        /// The attempt that it answers.
        attempt: u32,
        /// The runner that gave it.
        runner: String,
        /// How that attempt ended.
        exit: FilterExit,
    }
    says |data, f| {
        let (call, runner) = (CallText(&data.call), &data.runner);
        write!(f, "job {}: a late answer of runner {runner} to {call} is ignored: {}", data.job, data.exit)
    };

    /// Calls of filters are waiting, and no runner is available.
    "filter" "no_runner" FilterNoRunner about cluster {
        /// Since when.
        since: Timestamp,
        /// Number of waiting calls.
        calls: u64,
    }
    says |data, f| {
        write!(f, "{} calls of filters wait and no runner is there since {}", data.calls, data.since)
    };
}

/// The outcome of a call of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FilterResult {
    /// How it ended.
    pub exit: FilterExit,
    /// The exit code that is recorded; `null` if no program ended by itself.
    pub exit_code: Option<u8>,
    /// Time from the start of the process or the delivery to its end or answer.
    pub duration_micros: u64,
    /// BLAKE3 of the program, in hex.
    pub program_hash: Option<String>,
    /// BLAKE3 of the description that it was given, in hex.
    pub input_hash: String,
    /// Its changes of the description, as far as they are acceptable.
    pub changes: Vec<PropertyChange>,
    /// The text that it wants shown on the job.
    pub message: Option<String>,
    /// Its standard output, the first 64 KiB.
    pub stdout: String,
    /// Its standard error, the first 64 KiB.
    pub stderr: String,
    /// Whether it wrote more than that to either (HPC-F-63).
    pub is_output_cut: bool,
}

impl FilterResult {
    /// The outcome of a call without what is private to the owner of its job: a staging program names files.
    pub(super) fn public(call: &CallId, report: &FilterReport) -> Self {
        let result = Self::from(report);
        match call.kind.is_staging() {
            true => Self { message: None, stdout: String::new(), stderr: String::new(), ..result },
            false => result,
        }
    }
}

impl From<&FilterReport> for FilterResult {
    fn from(report: &FilterReport) -> Self {
        let changes = match &report.file {
            FileAfter::Changed { changes, .. } => changes.clone(),
            FileAfter::Unchanged | FileAfter::Bad(_) => Vec::new(),
        };
        Self {
            exit: report.exit.clone(),
            exit_code: report.exit.code(),
            duration_micros: report.duration_micros,
            program_hash: report.program_hash.clone(),
            input_hash: report.input_hash.clone(),
            changes,
            message: report.message.clone(),
            stdout: report.stdout.clone(),
            stderr: report.stderr.clone(),
            is_output_cut: report.is_output_cut,
        }
    }
}

pub(super) fn chain_started(job: JobId, chain: &ChainSpec, names: &dyn Names) -> FilterChainStarted {
    FilterChainStarted {
        job,
        filter_kind: chain.kind,
        chain: chain.number,
        filters: chain.filters.clone(),
        limit_seconds: chain.limit_seconds,
        parameters: chain.offer.as_ref().map(|offer| offer.parameters),
        nodes: chain.offer.as_ref().map(|offer| allocated(&offer.placement, names)).unwrap_or_default(),
    }
}

/// A call of a filter.
struct CallText<'a>(&'a CallId);

impl fmt::Display for CallText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.0.action {
            FilterAction::Filter => "call of",
            FilterAction::Revert => "revert by",
        };
        write!(f, "{what} {} filter {}", self.0.kind.word(), self.0.position + 1)
    }
}
