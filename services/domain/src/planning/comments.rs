//! The comments of waiting jobs under a policy with routes: as in the family of schedulers that such policies come from, they
//! change at most every five minutes, unless a job is new or has none (PBS-P-15). The record has every reason at once.

use crate::{jobs::Job, state::State};
use muster_schemas::{JobId, Timestamp, job::WaitReason};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How long a comment stands at least.
const STANDS_SECONDS: i64 = 300;

/// The comment of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobComment {
    shown: Arc<WaitReason>,
    since: Timestamp,
}

impl JobComment {
    fn new(shown: Arc<WaitReason>, since: Timestamp) -> Self {
        Self { shown, since }
    }

    const fn until(&self) -> Timestamp {
        self.since.plus_seconds(STANDS_SECONDS)
    }

    /// What it is when a job gets another reason. `before` is the reason that it had.
    fn after(self, before: &Arc<WaitReason>, reason: &Arc<WaitReason>, now: Timestamp) -> Self {
        if now < self.until() {
            return self;
        }
        if *before == self.shown {
            return Self::new(reason.clone(), now);
        }
        // The reason that came meanwhile was shown as soon as it could be.
        let meanwhile = Self::new(before.clone(), self.until());
        if now < meanwhile.until() { meanwhile } else { Self::new(reason.clone(), now) }
    }
}

impl State {
    /// A job gets another reason from a planner.
    pub(crate) fn note_comment(&mut self, id: JobId, reason: &Arc<WaitReason>, now: Timestamp) {
        if self.routes().is_none() {
            return;
        }
        let Some(job) = self.jobs.get(&id) else { return };
        let comment = match (self.routing.comments.remove(&id), &job.planner_reason) {
            (Some(comment), Some(before)) => comment.after(before, reason, now),
            _ => JobComment::new(reason.clone(), now),
        };
        self.routing.comments.insert(id, comment);
    }

    /// A job starts, or is gone.
    pub(crate) fn forget_comment(&mut self, id: JobId) {
        self.routing.comments.remove(&id);
    }

    /// The reason that commands of PBS show for a waiting job, and until when, if that is not its present one.
    pub fn comment_of(&self, job: &Job) -> Option<(&WaitReason, Timestamp)> {
        let comment = self.routing.comments.get(&job.id)?;
        let present = job.planner_reason.as_ref().filter(|reason| **reason != comment.shown)?;
        let is_planned = job.is_waiting() && self.routes().is_some() && self.gate_reason(job).is_none();
        (is_planned && !matches!(**present, WaitReason::NotPlannedYet)).then(|| (&*comment.shown, comment.until()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PBS-P-15
    #[test]
    fn a_comment_stands_for_five_minutes_and_then_the_newest_reason_is_shown() {
        let reason = |text: &str| Arc::new(WaitReason::Resources(text.to_owned()));
        let [a, b, c] = ["a", "b", "c"].map(reason);
        let second = |seconds: i64| Timestamp(seconds * 1_000_000);
        let first = JobComment::new(a.clone(), second(0));
        assert_eq!(first.clone().after(&a, &b, second(299)), first);
        assert_eq!(first.clone().after(&a, &b, second(300)), JobComment::new(b.clone(), second(300)));
        assert_eq!(
            first.clone().after(&b, &c, second(400)),
            JobComment::new(b.clone(), second(300)),
            "b was shown then"
        );
        assert_eq!(first.after(&b, &c, second(600)), JobComment::new(c, second(600)));
    }
}
