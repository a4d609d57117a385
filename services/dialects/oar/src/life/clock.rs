//! The clock of a running job. It stands still while the job is suspended or being resumed (OAR-S-06).

/// A job that was started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// When it started.
    pub start: i64,
    /// Its walltime, in seconds.
    pub walltime: i64,
    /// How long before the limit the checkpoint's signal is sent; 0 for no checkpoint.
    pub checkpoint: i64,
    /// The spans in which it was suspended or being resumed; the last one may have no end.
    pub suspended: Vec<(i64, Option<i64>)>,
}

impl Clock {
    /// The seconds that it was suspended until a moment.
    pub fn suspended_until(&self, now: i64) -> i64 {
        self.suspended.iter().map(|(from, to)| (to.unwrap_or(now).min(now) - from).max(0)).sum()
    }

    /// The limit, as far as is known at a moment (OAR-S-23).
    pub fn limit(&self, now: i64) -> i64 {
        self.start + self.walltime + self.suspended_until(now)
    }

    /// Whether the walltime is over. At exactly the limit the job may still end by itself.
    pub fn is_over(&self, now: i64) -> bool {
        !self.is_suspended() && now > self.limit(now)
    }

    /// When the checkpoint's signal is sent (OAR-S-30, OAR-S-33): at the start at the earliest.
    pub fn signal_at(&self, now: i64) -> Option<i64> {
        let at = self.limit(now) - self.checkpoint;
        (self.checkpoint > 0).then(|| at.max(self.start))
    }

    /// Whether the signal is due. It is sent once.
    pub fn is_signal_due(&self, was_sent: bool, now: i64) -> bool {
        !was_sent && !self.is_suspended() && self.signal_at(now).is_some_and(|at| at <= now)
    }

    fn is_suspended(&self) -> bool {
        self.suspended.last().is_some_and(|(_, end)| end.is_none())
    }
}
