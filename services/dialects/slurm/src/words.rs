//! The words for states of jobs and nodes, for reasons to wait, and for exit codes.

mod nodes;
mod reasons;
mod signals;

pub use nodes::{NodeBase, NodeFacts, NodeState, StateTest};
pub use reasons::{ended_reason, refused_limit, waiting_reason};
pub use signals::signal_text;

use muster_schemas::{
    filter::FilterKind,
    job::{ExitStatus, JobState as CoreState},
    views::{JobView, OutcomeView, OutcomeWord},
};
use std::fmt;

/// The state of a job, a component or a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It waits, or is held.
    Pending,
    /// It runs.
    Running,
    /// Its processes are stopped and its processors are free for others.
    Suspended,
    /// It ended with status 0.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// It ended with another status or a signal.
    Failed,
    /// It reached its time limit.
    Timeout,
    /// One of its nodes was lost.
    NodeFail,
    /// It had to make room.
    Preempted,
    /// Its nodes could not be booted.
    BootFail,
    /// Its deadline was missed.
    Deadline,
    /// It used too much memory.
    OutOfMemory,
    /// Its nodes are being prepared.
    Configuring,
    /// Its resources are being released.
    Completing,
    /// An attempt that was followed by another.
    Requeued,
    /// It was requeued and is held.
    RequeueHold,
    /// Its size is being changed.
    Resizing,
    /// Another cluster runs it.
    Revoked,
    /// A signal is on its way to it.
    Signaling,
    /// It was requeued and held for a special reason.
    SpecialExit,
    /// Its files are being staged out.
    StageOut,
    /// A signal stopped its processes, which keep their processors.
    Stopped,
}

impl State {
    /// All of them, with their long and short words, in the order of messages.
    pub const ALL: [(Self, &'static str, &'static str); 22] = [
        (Self::Pending, "PENDING", "PD"),
        (Self::Running, "RUNNING", "R"),
        (Self::Suspended, "SUSPENDED", "S"),
        (Self::Completed, "COMPLETED", "CD"),
        (Self::Cancelled, "CANCELLED", "CA"),
        (Self::Failed, "FAILED", "F"),
        (Self::Timeout, "TIMEOUT", "TO"),
        (Self::NodeFail, "NODE_FAIL", "NF"),
        (Self::Preempted, "PREEMPTED", "PR"),
        (Self::BootFail, "BOOT_FAIL", "BF"),
        (Self::Deadline, "DEADLINE", "DL"),
        (Self::OutOfMemory, "OUT_OF_MEMORY", "OOM"),
        (Self::Configuring, "CONFIGURING", "CF"),
        (Self::Completing, "COMPLETING", "CG"),
        (Self::Requeued, "REQUEUED", "RQ"),
        (Self::RequeueHold, "REQUEUE_HOLD", "RH"),
        (Self::Resizing, "RESIZING", "RS"),
        (Self::Revoked, "REVOKED", "RV"),
        (Self::Signaling, "SIGNALING", "SI"),
        (Self::SpecialExit, "SPECIAL_EXIT", "SE"),
        (Self::StageOut, "STAGE_OUT", "SO"),
        (Self::Stopped, "STOPPED", "ST"),
    ];

    /// The long word: `PENDING`.
    pub fn long(self) -> &'static str {
        self.words().0
    }

    /// The short word: `PD`.
    pub fn short(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        let (_, long, short) = Self::ALL[self as usize];
        (long, short)
    }

    /// The state for a word, long or short, in any case; `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(word);
        Self::ALL.into_iter().find(|(_, long, short)| is(long) || is(short)).map(|(state, ..)| state)
    }

    /// The state in accounting, which has no intermediate states; its clients know no other words. A job that is
    /// starting, stopped or completing is running, one held after a run is pending.
    pub const fn in_accounting(self) -> Self {
        match self {
            Self::Configuring | Self::Completing | Self::Stopped => Self::Running,
            Self::RequeueHold | Self::SpecialExit => Self::Pending,
            state => state,
        }
    }

    /// Whether it has ended.
    pub const fn is_finished(self) -> bool {
        matches!(
            self,
            Self::Completed
                | Self::Cancelled
                | Self::Failed
                | Self::Timeout
                | Self::NodeFail
                | Self::Preempted
                | Self::BootFail
                | Self::Deadline
                | Self::OutOfMemory
                | Self::Requeued
                | Self::Revoked
        )
    }

    /// Whether it waits for its start.
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::Pending | Self::RequeueHold | Self::SpecialExit)
    }

    /// Whether it holds nodes.
    pub const fn is_placed(self) -> bool {
        !self.is_pending() && !self.is_finished()
    }

    /// Whether the reason replaces the list of nodes.
    pub const fn shows_reason(self) -> bool {
        self.is_pending()
            || matches!(self, Self::Failed | Self::Timeout | Self::OutOfMemory | Self::Deadline | Self::NodeFail)
    }

    /// The state of a job of the core.
    pub fn of(job: &JobView) -> Self {
        match (&job.outcome, job.state) {
            (Some(_), _) if is_staging_out(job) => Self::StageOut,
            (Some(outcome), _) => Self::ended(outcome.outcome),
            (None, CoreState::Held | CoreState::Queued) if job.runs > 0 && !job.holds.is_empty() => Self::RequeueHold,
            (None, CoreState::Held | CoreState::Queued) => Self::Pending,
            (None, CoreState::Launching) => Self::Configuring,
            (None, CoreState::Running) if job.is_stopped => Self::Stopped,
            (None, CoreState::Running) => Self::Running,
            (None, CoreState::Suspended) => Self::Suspended,
            (None, CoreState::Finishing) => Self::Completing,
            (None, CoreState::Finished) => Self::Completed,
        }
    }

    /// Whether a list of states includes it: waiting jobs include requeued ones that are held, running ones those that
    /// were stopped.
    pub fn is_in(self, wanted: &[Self]) -> bool {
        let means = match self {
            Self::RequeueHold | Self::SpecialExit => Self::Pending,
            Self::Stopped => Self::Running,
            state => state,
        };
        wanted.contains(&self) || wanted.contains(&means)
    }

    /// The state that a job, or an attempt of it, ended in.
    pub const fn ended(outcome: OutcomeWord) -> Self {
        match outcome {
            OutcomeWord::Completed | OutcomeWord::DeclaredFinished => Self::Completed,
            OutcomeWord::Failed | OutcomeWord::LaunchFailed | OutcomeWord::Refused => Self::Failed,
            OutcomeWord::Cancelled | OutcomeWord::DependencyNeverMet => Self::Cancelled,
            OutcomeWord::TimedOut => Self::Timeout,
            OutcomeWord::OutOfMemory => Self::OutOfMemory,
            OutcomeWord::Preempted => Self::Preempted,
            OutcomeWord::NodeLost => Self::NodeFail,
            OutcomeWord::DeadlineMissed => Self::Deadline,
            OutcomeWord::Requeued => Self::Requeued,
        }
    }
}

/// Whether the files of an ended job are being staged out (SL-B-01).
fn is_staging_out(job: &JobView) -> bool {
    let chain = job.filtering.as_ref().and_then(|filtering| filtering.chain.as_ref());
    chain.is_some_and(|chain| chain.kind == FilterKind::StageOut)
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.long())
    }
}

/// How a job, a component or a step ended, written `<status>:<signal>` (SL-A-09).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExitCode {
    /// The exit status, 0 to 255.
    pub status: u8,
    /// The signal that ended it; 0 for none.
    pub signal: u8,
}

impl ExitCode {
    /// The code for too much memory: no real signal has this number.
    pub const OUT_OF_MEMORY: Self = Self { status: 0, signal: 125 };

    /// The code of a process.
    pub const fn of_status(status: ExitStatus) -> Self {
        match status {
            ExitStatus::Code(status) => Self { status, signal: 0 },
            ExitStatus::Signal(signal) => Self { status: 0, signal },
        }
    }

    /// The code of a job with this outcome: a job that could not start or lost its node has status 1, one with too much
    /// memory has the signal 125.
    pub fn of(outcome: &OutcomeView) -> Self {
        match (outcome.exit_status, outcome.outcome) {
            (Some(status), _) => Self::of_status(status),
            (None, OutcomeWord::LaunchFailed | OutcomeWord::NodeLost | OutcomeWord::Refused) => {
                Self { status: 1, signal: 0 }
            }
            (None, OutcomeWord::OutOfMemory) => Self::OUT_OF_MEMORY,
            (None, _) => Self::default(),
        }
    }
}

impl fmt::Display for ExitCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.status, self.signal)
    }
}
