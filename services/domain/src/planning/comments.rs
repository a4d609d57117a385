//! The comments of waiting jobs under a policy with routes: as in the family of schedulers that such policies come from, they
//! change at most every five minutes, unless a job is new or has none (PBS-P-15). The record has every reason at once.

use muster_schemas::{Timestamp, job::WaitReason};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How long a comment stands at least.
const STANDS_SECONDS: i64 = 300;

/// The comment of a waiting job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobComment {
    /// The reason that is shown.
    pub(super) shown: Arc<WaitReason>,
    since: Timestamp,
}

impl JobComment {
    pub(super) fn new(shown: Arc<WaitReason>, since: Timestamp) -> Self {
        Self { shown, since }
    }

    pub(super) const fn until(&self) -> Timestamp {
        self.since.plus_seconds(STANDS_SECONDS)
    }

    /// What it is when a job gets another reason. `before` is the reason that it had.
    pub(super) fn after(self, before: &Arc<WaitReason>, reason: &Arc<WaitReason>, now: Timestamp) -> Self {
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
