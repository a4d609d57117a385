//! Phrases in the sentences about events.

use super::allocation::AllocatedNode;
use crate::{
    event::{EndCause, NodeExit, StopReason},
    ids::JobId,
};
use std::fmt;

/// Text after a colon, if there is any.
pub(super) struct Because<'a>(pub &'a str);

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// A job, or one component of it.
pub(super) struct Whole(pub JobId, pub Option<u32>);

impl fmt::Display for Whole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.map_or(Ok(()), |component| write!(f, "component {component} of "))?;
        write!(f, "job {}", self.0)
    }
}

/// A component of a job. The first means the job itself, since most jobs have only one.
pub(super) fn part(job: JobId, component: u32) -> Whole {
    Whole(job, Some(component).filter(|number| *number > 0))
}

/// How many cores on how many nodes.
pub(super) struct Amount<'a>(pub &'a [AllocatedNode]);

impl fmt::Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores: u64 = self.0.iter().map(|node| node.cores.len()).sum();
        write!(f, "{cores} cores on {} nodes", self.0.len())
    }
}

/// How a part ended.
pub(super) struct Exit<'a>(pub &'a NodeExit);

impl fmt::Display for Exit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.cause, self.0.status) {
            (EndCause::Itself | EndCause::Killed, Some(status)) => status.fmt(f),
            (EndCause::Itself, None) => f.write_str("without a process"),
            (EndCause::Killed, None) => f.write_str("killed"),
            (EndCause::Walltime, _) => f.write_str("its walltime was over"),
            (EndCause::OutOfMemory, _) => f.write_str("it used too much memory"),
            (EndCause::LaunchFailed(why), _) => write!(f, "it could not be started: {why}"),
            (EndCause::Lost(why), _) => write!(f, "lost: {why}"),
            (EndCause::Aborted(why), _) => write!(f, "aborted: {why}"),
        }
    }
}

/// Why a run is stopped, for people.
pub(super) const fn stop_text(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Cancelled => "it was cancelled",
        StopReason::Requeued => "it was requeued",
        StopReason::Preempted => "another job needs its resources",
        StopReason::NodeLost => "one of its nodes was lost",
        StopReason::PeerEnded => "another part of it has ended",
        StopReason::LaunchTimeout => "its launch was not confirmed in time",
        StopReason::TasksEnded => "its tasks have ended",
        StopReason::Finished => "it was declared finished",
        StopReason::Walltime => "its walltime is almost over",
        StopReason::CancelledAtOnce => "it was cancelled without grace",
        StopReason::FinishedAtOnce => "it was declared finished without grace",
        StopReason::Concluded(_) => "its client is done",
        StopReason::Repeated => "it waits for the next of its times",
    }
}
