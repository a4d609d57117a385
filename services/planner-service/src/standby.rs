//! When a planner that stands by takes over.
//!
//! The planner that started last leads; the log says which one that is. Those that stand by follow the log too, and so know
//! when a plan is due. If the log then shows nothing of the leading planner for a while, one of them takes over, and the
//! other learns of that from the log. Two that lead for a moment do no harm: the ledger judges each of their plans.

use std::time::{Duration, Instant};

/// The factor by which the patience grows at most, while taking over did not help.
const MOST_PATIENCE: u32 = 16;

/// What a planner that stands by knows of the one that leads.
#[derive(Debug)]
pub(crate) struct Standby {
    patience: Duration,
    /// How many times the patience it waits: a plan that the ledger refuses again and again makes two planners take over from
    /// each other, and nothing is won by doing so often.
    times: u32,
    /// Since when a plan is due of which the log shows nothing.
    due_since: Option<Instant>,
    is_leading: bool,
}

impl Standby {
    /// A planner that leads.
    pub(crate) fn leading(patience: Duration) -> Self {
        Self { patience, times: 1, due_since: None, is_leading: true }
    }

    pub(crate) fn is_leading(&self) -> bool {
        self.is_leading
    }

    /// Another planner has started later.
    pub(crate) fn give_way(&mut self) {
        (self.is_leading, self.due_since) = (false, None);
    }

    /// This planner takes over.
    pub(crate) fn take_over(&mut self) {
        (self.is_leading, self.due_since) = (true, None);
        self.times = (self.times * 2).min(MOST_PATIENCE);
    }

    /// The log shows something that a planner did.
    pub(crate) fn note_sign(&mut self) {
        (self.times, self.due_since) = (1, None);
    }

    /// A plan is due now. Returns whether one has been due for too long.
    pub(crate) fn is_overdue(&mut self, now: Instant) -> bool {
        let since = *self.due_since.get_or_insert(now);
        now.saturating_duration_since(since) >= self.patience * self.times
    }

    /// A plan would do nothing: none is due.
    pub(crate) fn note_nothing_due(&mut self) {
        self.due_since = None;
    }

    /// When the plan that is due becomes overdue.
    pub(crate) fn overdue_at(&self) -> Option<Instant> {
        self.due_since.map(|since| since + self.patience * self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    /// M-PLAN-26: what is due counts from the last thing that a planner did.
    #[test]
    fn a_planner_takes_over_once_a_plan_is_overdue() {
        let (mut standby, begin) = (Standby::leading(PATIENCE), Instant::now());
        standby.give_way();
        assert!(!standby.is_leading() && standby.overdue_at().is_none());
        assert!(!standby.is_overdue(begin) && !standby.is_overdue(begin + PATIENCE - Duration::from_millis(1)));
        assert_eq!(standby.overdue_at(), Some(begin + PATIENCE));
        standby.note_sign();
        assert!(!standby.is_overdue(begin + PATIENCE), "the leading planner did something");
        assert!(standby.is_overdue(begin + PATIENCE * 2));
        standby.take_over();
        assert!(standby.is_leading() && standby.overdue_at().is_none());
    }

    /// M-PLAN-26: planners that only take over from each other do so ever less often, until a plan is taken.
    #[test]
    fn patience_grows_while_taking_over_does_not_help() {
        let (mut standby, mut now) = (Standby::leading(PATIENCE), Instant::now());
        let mut waited = Vec::new();
        for _ in 0..6 {
            standby.take_over();
            standby.give_way();
            assert!(!standby.is_overdue(now));
            let overdue = standby.overdue_at().unwrap();
            waited.push((overdue - now).as_secs());
            now = overdue;
            assert!(standby.is_overdue(now));
        }
        assert_eq!(waited, [6, 12, 24, 48, 48, 48]);
        standby.note_sign();
        assert!(!standby.is_overdue(now) && standby.is_overdue(now + PATIENCE));
    }
}
