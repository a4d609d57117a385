//! An advance reservation.

use muster_schemas::{
    JobId, NodeId, RunId, Timestamp,
    plan::{ReservationSpec, ReservedNodes},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};

/// An advance reservation that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// Its specification.
    pub spec: Arc<ReservationSpec>,
    /// Its nodes; empty until a planner has chosen them.
    pub nodes: BTreeSet<NodeId>,
    /// Whether its beginning has been recorded.
    pub begun: bool,
    /// The runs in it of jobs that do not name it, if it ends when it is idle.
    pub(crate) runs: BTreeSet<RunId>,
    /// Since when it has neither runs nor jobs, at most; as far as it ends for that.
    pub(crate) idle_since: Timestamp,
    /// The unfinished jobs that name it, if it ends when it is idle.
    pub(crate) jobs: BTreeSet<JobId>,
}

impl Reservation {
    /// Whether its nodes are kept at this time.
    pub fn is_active(&self, now: Timestamp) -> bool {
        let (start, end) = self.period(now);
        start <= now && now < end
    }

    /// Its beginning and end, as they stand at a time: one that stays ahead is always to come, and has no end.
    pub fn period(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        match self.spec.stays_ahead_seconds {
            0 => (self.spec.start, self.spec.end),
            seconds => (now.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX)), Timestamp::MAX),
        }
    }

    /// Whether it stays ahead: it never begins.
    pub fn stays_ahead(&self) -> bool {
        self.spec.stays_ahead_seconds > 0
    }

    /// Whether a job of this user and account may run in it.
    pub fn admits(&self, user: &str, account: Option<&str>) -> bool {
        let spec = &self.spec;
        (spec.users.is_empty() && spec.accounts.is_empty())
            || spec.users.iter().any(|allowed| allowed == user)
            || account.is_some_and(|account| spec.accounts.iter().any(|allowed| allowed == account))
    }

    /// Whether a job of this user and account that names no reservation may have its nodes.
    pub fn attracts(&self, user: &str, account: Option<&str>) -> bool {
        self.spec.attracts && self.admits(user, account)
    }

    /// Whether a planner has yet to choose its nodes.
    pub fn is_unplaced(&self) -> bool {
        self.nodes.is_empty() && matches!(self.spec.nodes, ReservedNodes::Count { .. })
    }

    /// Whether it ends when no job has run in it or waited for it for a time.
    pub(crate) fn ends_when_idle(&self) -> bool {
        self.spec.ends_after_idle_seconds > 0
    }

    /// When it ends because it is idle, if it has begun, it ends for that and no job runs in it or waits for it.
    pub(crate) fn idle_until(&self) -> Option<Timestamp> {
        let seconds = i64::try_from(self.spec.ends_after_idle_seconds).unwrap_or(i64::MAX);
        let is_idle = self.begun && self.ends_when_idle() && self.is_idle();
        is_idle.then(|| self.idle_since.plus_seconds(seconds))
    }

    /// Whether no job runs in it or waits for it, as far as that is counted.
    pub(crate) fn is_idle(&self) -> bool {
        self.runs.is_empty() && self.jobs.is_empty()
    }

    /// When it is next due: at its start, then at its end.
    pub(crate) fn due(&self) -> Timestamp {
        match self.begun {
            false if self.stays_ahead() => Timestamp::MAX,
            true => self.idle_until().map_or(self.spec.end, |until| until.min(self.spec.end)),
            false => self.spec.start,
        }
    }
}

/// The time in which a reservation has its nodes for itself: for one that stays ahead it has no end.
pub(crate) fn taken(spec: &ReservationSpec) -> (Timestamp, Timestamp) {
    (spec.start, if spec.stays_ahead_seconds > 0 { Timestamp::MAX } else { spec.end })
}

/// Whether a reservation cannot have a node of another one, as the other one stands: they overlap in time, and this one was
/// not told to. One that stays ahead has its nodes at each time of one that repeats, however far apart they are now.
pub fn clash(spec: &ReservationSpec, other: &ReservationSpec) -> bool {
    let ((start, end), (other_start, other_end)) = (taken(spec), taken(other));
    let is_endless = |one: &ReservationSpec, two: &ReservationSpec| {
        one.stays_ahead_seconds > 0 && two.repeats_after_seconds > 0 && !other.overlaps
    };
    let is_in_time = other_start < end && start < other_end;
    !spec.overlaps && (is_in_time || is_endless(spec, other) || is_endless(other, spec))
}
