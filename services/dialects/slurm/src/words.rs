//! The words for states of jobs and nodes, for reasons to wait, and for exit codes.

mod nodes;
mod reasons;

pub use nodes::{NodeBase, NodeFacts, NodeState, StateTest};
pub use reasons::{ended_reason, refused_limit, waiting_reason};

use muster_schemas::{
    filter::FilterKind,
    job::{ExitStatus, JobState as CoreState},
    views::{JobView, OutcomeView, OutcomeWord},
};
use std::fmt;

/// Where a job, a component or a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It waits, or is held.
    Pending,
    /// It runs.
    Running,
    /// Its processes are stopped and its processors are free for others.
    Suspended,
    /// It ended with 0.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// It ended with something else.
    Failed,
    /// Its time limit was over.
    Timeout,
    /// A node of it was lost.
    NodeFail,
    /// It had to make room.
    Preempted,
    /// Its nodes could not be booted.
    BootFail,
    /// Its deadline was missed.
    Deadline,
    /// It used too much memory.
    OutOfMemory,
    /// Its nodes are being made ready.
    Configuring,
    /// Its resources are being released.
    Completing,
    /// An attempt that another one followed.
    Requeued,
    /// It was put back into the queue and is held there.
    RequeueHold,
    /// Its size is being changed.
    Resizing,
    /// Another cluster runs it.
    Revoked,
    /// A signal is on its way to it.
    Signaling,
    /// It was put back into the queue and held for a special reason.
    SpecialExit,
    /// Its files are being taken out.
    StageOut,
    /// Its processes are stopped by a signal and keep their processors.
    Stopped,
}

impl State {
    /// All of them, with their long and short words, in the order in which messages list them.
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

    /// The word of lists that have room: `PENDING`.
    pub fn long(self) -> &'static str {
        self.words().0
    }

    /// The word of lists that have none: `PD`.
    pub fn short(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        let (_, long, short) = Self::ALL[self as usize];
        (long, short)
    }

    /// The state of a word, long or short, in any case; `None` if it is none.
    pub fn parse(word: &str) -> Option<Self> {
        let is = |known: &str| known.eq_ignore_ascii_case(word);
        Self::ALL.into_iter().find(|(_, long, short)| is(long) || is(short)).map(|(state, ..)| state)
    }

    /// The state as accounting has it: it knows none between, and clients that go by it know no other words. What is being
    /// started or cleaned up runs, what is held after a run waits.
    pub const fn in_accounting(self) -> Self {
        match self {
            Self::Configuring | Self::Completing => Self::Running,
            Self::RequeueHold | Self::SpecialExit => Self::Pending,
            state => state,
        }
    }

    /// Whether it is over.
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

    /// Whether the list of nodes gives way to the reason.
    pub const fn shows_reason(self) -> bool {
        self.is_pending()
            || matches!(self, Self::Failed | Self::Timeout | Self::OutOfMemory | Self::Deadline | Self::NodeFail)
    }

    /// Where a job of the core stands.
    pub fn of(job: &JobView) -> Self {
        match (&job.outcome, job.state) {
            (Some(_), _) if is_staging_out(job) => Self::StageOut,
            (Some(outcome), _) => Self::ended(outcome.outcome),
            (None, CoreState::Held | CoreState::Queued) if job.runs > 0 && !job.holds.is_empty() => Self::RequeueHold,
            (None, CoreState::Held | CoreState::Queued) => Self::Pending,
            (None, CoreState::Launching) => Self::Configuring,
            (None, CoreState::Running) => Self::Running,
            (None, CoreState::Suspended) => Self::Suspended,
            (None, CoreState::Finishing) => Self::Completing,
            (None, CoreState::Finished) => Self::Completed,
        }
    }

    /// Whether a list of states has it: who asks for jobs that wait means those as well that were put back and are held.
    pub fn is_in(self, wanted: &[Self]) -> bool {
        wanted.contains(&self) || self == Self::RequeueHold && wanted.contains(&Self::Pending)
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

/// Whether the files of a job that is over are being brought out (SL-B-01).
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
    /// The code of what used too much memory: the signal is one that nobody sends.
    pub const OUT_OF_MEMORY: Self = Self { status: 0, signal: 125 };

    /// The code of a process.
    pub const fn of_status(status: ExitStatus) -> Self {
        match status {
            ExitStatus::Code(status) => Self { status, signal: 0 },
            ExitStatus::Signal(signal) => Self { status: 0, signal },
        }
    }

    /// The code of a job that ended so: what could not be started or lost its node counts as status 1, too much memory as
    /// the signal 125.
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
