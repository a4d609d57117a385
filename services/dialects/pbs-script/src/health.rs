//! When a program that failed may be started again (PBS-X-24).

/// The longest pause between two starts, in seconds.
const LONGEST_PAUSE_SECONDS: i64 = 60;
/// Failures in a row after which nobody tries again.
pub const MOST_FAILURES: u32 = 5;

/// Failures of a program, and the pause after the last one. Time is in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    failures: u32,
    resting_until: Option<i64>,
}

impl Health {
    /// It worked.
    pub const fn recover(&mut self) {
        *self = Self { failures: 0, resting_until: None };
    }

    /// It failed. The pause before the next start is 1 second, twice as long after each further failure, and at most a
    /// minute.
    pub fn fail(&mut self, now: i64) {
        let pause = (1_i64 << self.failures.min(30)).min(LONGEST_PAUSE_SECONDS);
        self.failures = self.failures.saturating_add(1);
        self.resting_until = Some(now.saturating_add(pause));
    }

    /// Failures since it last worked.
    pub const fn failures(self) -> u32 {
        self.failures
    }

    /// When it may be started again; `None` for at once.
    pub const fn resting_until(self) -> Option<i64> {
        self.resting_until
    }

    /// Whether it failed too often for another try.
    pub const fn is_hopeless(self) -> bool {
        self.failures >= MOST_FAILURES
    }
}
