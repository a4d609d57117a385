//! Usage of users and its decay (PBS-FS-05, PBS-FS-08).

use crate::sched_config::Charge;
use jiff::{SignedDuration, Timestamp};
pub use muster_schemas::shares::LEAST;
use std::collections::BTreeMap;

/// The usage of all users and when it was last halved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// By user, only those above [`LEAST`].
    by_user: BTreeMap<String, u64>,
    last_decay: Timestamp,
}

/// Halvings that came due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decay {
    /// How often usage was halved.
    pub halvings: u64,
    /// When the last halving was due. The next one is a half life later.
    pub at: Timestamp,
}

impl Usage {
    /// No usage; the first half life begins at this time.
    pub fn new(start: Timestamp) -> Self {
        Self { by_user: BTreeMap::new(), last_decay: start }
    }

    /// The usage of a user, in the unit that is charged, from [`LEAST`].
    pub fn of(&self, user: &str) -> u64 {
        self.by_user.get(user).copied().unwrap_or(LEAST)
    }

    /// When usage was last halved.
    pub fn last_decay(&self) -> Timestamp {
        self.last_decay
    }

    /// Sets the usage of a user, such as that of a snapshot.
    pub fn set(&mut self, user: &str, usage: u64) {
        if usage > LEAST {
            self.by_user.insert(user.to_owned(), usage);
        } else {
            self.by_user.remove(user);
        }
    }

    /// Charges a user.
    pub fn charge(&mut self, user: &str, amount: u64) {
        self.set(user, self.of(user).saturating_add(amount));
    }

    /// The users with more usage than [`LEAST`], each with it.
    pub fn users(&self) -> impl Iterator<Item = (&str, u64)> {
        self.by_user.iter().map(|(user, usage)| (user.as_str(), *usage))
    }

    /// Halves all usage once for each whole half life since the last decay. Fractions are dropped, and the rest of the
    /// time counts toward the next halving, so it does not matter how often this is called. `None` if no half life has
    /// passed. A half life of 0 seconds never passes.
    pub fn decay(&mut self, half_life_seconds: u64, now: Timestamp) -> Option<Decay> {
        let elapsed = u64::try_from(now.duration_since(self.last_decay).as_secs()).ok()?;
        let halvings = elapsed.checked_div(half_life_seconds).filter(|halvings| *halvings > 0)?;
        let passed = i64::try_from(halvings * half_life_seconds).ok()?;
        self.last_decay = self.last_decay.checked_add(SignedDuration::from_secs(passed)).ok()?;
        for usage in self.by_user.values_mut() {
            *usage = u32::try_from(halvings).ok().and_then(|halvings| usage.checked_shr(halvings)).unwrap_or_default();
        }
        self.by_user.retain(|_, usage| *usage > LEAST);
        Some(Decay { halvings, at: self.last_decay })
    }
}

/// What a job is charged, of what it used or of what it requests (PBS-FS-05, PBS-FS-06, PBS-FS-12). Time that is unset
/// is 0, and unset CPUs are one.
pub fn charge(of: Charge, cput_seconds: Option<u64>, cpus: Option<u32>, walltime_seconds: Option<u64>) -> u64 {
    match of {
        Charge::CpuTime => cput_seconds.unwrap_or_default(),
        Charge::CpusTimesWalltime => walltime_seconds.unwrap_or_default().saturating_mul(u64::from(cpus.unwrap_or(1))),
    }
}
