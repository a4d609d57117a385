//! The time that records carry: the system's clock, except that it never goes back.

use muster_schemas::time::Timestamp;
use std::time::{Duration, Instant};

/// A jump back by less than this causes no warning: clock discipline makes such jumps.
const WORTH_A_WARNING: Duration = Duration::from_secs(1);

/// Gives the time of each round of decisions.
///
/// When the system's clock jumps back, this one advances at half speed until the other has caught up: timers still
/// become due, and a jump forth and back does not leave it ahead for ever.
#[derive(Debug)]
pub struct Clock {
    source: Source,
    latest: Timestamp,
    read_at: Instant,
    behind: bool,
}

/// The source of a clock.
#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    /// A time set by hand: the wall time, and the corresponding monotonic time.
    Set(Timestamp, Instant),
}

impl Clock {
    /// A clock that never shows less than `latest`, the time of the last record.
    pub fn new(latest: Timestamp) -> Self {
        Self { source: Source::System, latest, read_at: Instant::now(), behind: false }
    }

    /// A clock that stays at `now` until it is set, and the monotonic time that belongs to it.
    pub fn stepped(latest: Timestamp, now: Timestamp, monotonic: Instant) -> Self {
        Self { source: Source::Set(now, monotonic), latest, read_at: monotonic, behind: false }
    }

    /// Sets a stepped clock forward. A clock that follows the system's is left alone.
    pub fn set(&mut self, now: Timestamp) {
        if let Source::Set(before, monotonic) = self.source {
            let elapsed = Duration::from_micros(u64::try_from(now.micros_since(before)).unwrap_or(0));
            self.source = Source::Set(now, monotonic + elapsed);
        }
    }

    /// The time now.
    pub fn now(&mut self) -> Timestamp {
        let wall = match self.source {
            Source::System => Timestamp::now(),
            Source::Set(wall, _) => wall,
        };
        self.at(wall, self.monotonic())
    }

    /// The monotonic time now, for intervals.
    pub fn monotonic(&self) -> Instant {
        match self.source {
            Source::System => Instant::now(),
            Source::Set(_, monotonic) => monotonic,
        }
    }

    /// The time when the system's clock shows `system` and its monotonic clock `monotonic`.
    fn at(&mut self, system: Timestamp, monotonic: Instant) -> Timestamp {
        let elapsed = monotonic.saturating_duration_since(self.read_at);
        self.read_at = monotonic;
        self.warn_of_jump(system);
        let half_speed = self.latest.0.saturating_add(i64::try_from(elapsed.as_micros() / 2).unwrap_or(i64::MAX));
        self.latest = if system >= self.latest { system } else { Timestamp(half_speed) };
        self.latest
    }

    fn warn_of_jump(&mut self, system: Timestamp) {
        let behind_micros = self.latest.micros_since(system);
        let is_behind = behind_micros > WORTH_A_WARNING.as_micros() as i64;
        if is_behind && !self.behind {
            let seconds = behind_micros / 1_000_000;
            tracing::warn!(
                seconds,
                "the system's clock is behind the last record; advancing at half speed until it catches up"
            );
        }
        self.behind = is_behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that jumps back does not turn time back (M-LOG-11).
    #[test]
    fn it_never_goes_back_and_is_caught_up_with() {
        let start = Instant::now();
        let mut clock = Clock::new(Timestamp::from_unix_seconds(10_000));
        clock.read_at = start;
        let mut at = |system: i64, seconds: u64| {
            clock.at(Timestamp::from_unix_seconds(system), start + Duration::from_secs(seconds)).unix_seconds()
        };
        assert_eq!(at(10_100, 100), 10_100);
        assert_eq!(at(6_500, 100), 10_100, "an hour back: it stands");
        assert_eq!(at(6_520, 120), 10_110, "and advances at half speed");
        assert_eq!(at(13_720, 7_320), 13_720, "until the system's clock has caught up");
        assert_eq!(at(13_721, 7_321), 13_721);
    }
}
