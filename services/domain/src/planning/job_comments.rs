//! The [comments](super::comments) of the jobs of a state.

use super::comments::JobComment;
use crate::{jobs::Job, state::State};
use muster_schemas::{JobId, Timestamp, job::WaitReason};
use std::sync::Arc;

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

    /// The reason that is still shown for a waiting job, and until when, if that is not its present one.
    pub fn comment_of(&self, job: &Job) -> Option<(&WaitReason, Timestamp)> {
        let comment = self.routing.comments.get(&job.id)?;
        let present = job.planner_reason.as_ref().filter(|reason| **reason != comment.shown)?;
        let is_planned = job.is_waiting() && self.routes().is_some() && self.gate_reason(job).is_none();
        (is_planned && !matches!(**present, WaitReason::NotPlannedYet)).then(|| (&*comment.shown, comment.until()))
    }
}
