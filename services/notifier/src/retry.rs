//! When a failed delivery is tried again.

use serde::Deserialize;
use std::time::Duration;

/// When a failed delivery is tried again: after growing pauses, up to a number of attempts and an age.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryConfig {
    /// The pause after the first failure, in seconds, more than 0; each later one is twice as long.
    pub first_pause_seconds: f64,
    /// The longest pause, in seconds.
    pub longest_pause_seconds: f64,
    /// The most attempts, at least 1.
    pub max_attempts: u64,
    /// The greatest age of the event for another attempt, in seconds.
    pub max_age_seconds: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { first_pause_seconds: 5.0, longest_pause_seconds: 3600.0, max_attempts: 30, max_age_seconds: 86_400 }
    }
}

/// The pause varies by this fraction in both directions, so that deliveries that failed together spread out.
const JITTER: f64 = 0.25;

impl RetryConfig {
    /// The pause before the next attempt; `None` if there is none. `chance` is from 0 to 1.
    pub(crate) fn pause(&self, attempts: u64, age: Duration, chance: f64) -> Option<Duration> {
        if attempts >= self.max_attempts || age >= Duration::from_secs(self.max_age_seconds) {
            return None;
        }
        let doublings = i32::try_from(attempts.saturating_sub(1).min(64)).unwrap_or(64);
        let pause = (self.first_pause_seconds * 2f64.powi(doublings)).min(self.longest_pause_seconds);
        let seconds = pause * (1.0 + JITTER * (2.0 * chance - 1.0));
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> RetryConfig {
        RetryConfig { first_pause_seconds: 2.0, longest_pause_seconds: 60.0, max_attempts: 10, max_age_seconds: 1000 }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<_> = (1..9).map(|attempts| config().pause(attempts, Duration::ZERO, 0.5)).collect();
        let expected = [2, 4, 8, 16, 32, 60, 60, 60].map(|seconds| Some(Duration::from_secs(seconds)));
        assert_eq!(pauses, expected);
    }

    #[test]
    fn chance_moves_a_pause_by_a_quarter_at_most() {
        assert_eq!(config().pause(2, Duration::ZERO, 0.0), Some(Duration::from_secs(3)));
        assert_eq!(config().pause(2, Duration::ZERO, 1.0), Some(Duration::from_secs(5)));
    }

    #[test]
    fn it_ends_by_attempts_and_by_age() {
        assert_eq!(config().pause(10, Duration::ZERO, 0.5), None);
        assert_eq!(config().pause(1, Duration::from_secs(1000), 0.5), None);
        assert!(config().pause(9, Duration::from_secs(999), 0.5).is_some());
    }

    #[test]
    fn absurd_settings_do_not_panic() {
        let config = RetryConfig { first_pause_seconds: f64::NAN, longest_pause_seconds: f64::INFINITY, ..config() };
        assert!(config.pause(3, Duration::ZERO, 0.5).is_some());
        let config = RetryConfig { first_pause_seconds: -1.0, max_attempts: u64::MAX, ..config };
        assert!(config.pause(u64::MAX - 1, Duration::ZERO, 0.5).is_some());
    }
}
