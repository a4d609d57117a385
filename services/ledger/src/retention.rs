//! How long answers are remembered.

use rocksdb::{CompactionDecision, Options};

/// Minimum time for which answers to commands are kept; compaction drops older ones.
#[derive(Clone, Copy, Debug)]
pub struct Commands {
    /// In seconds; never less than a day.
    seconds: u64,
}

impl Commands {
    /// The minimum promised to clients: 24 hours.
    pub const LEAST_SECONDS: u64 = 86_400;

    /// Keeps answers for `seconds`, but at least for [`Commands::LEAST_SECONDS`].
    pub fn seconds(seconds: u64) -> Self {
        Self { seconds: seconds.max(Self::LEAST_SECONDS) }
    }

    pub(crate) fn install(self, options: &mut Options) {
        let keep_micros = i64::try_from(self.seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        options.set_compaction_filter("forget-answers", move |_level, _key, value| {
            let now = muster_schemas::time::Timestamp::now().0;
            if is_older(value, now.saturating_sub(keep_micros)) {
                CompactionDecision::Remove
            } else {
                CompactionDecision::Keep
            }
        });
        // Files that nothing else compacts are checked once in this time.
        options.set_periodic_compaction_seconds(self.seconds);
    }
}

/// Whether a stored answer is older than a time in microseconds. An unreadable one is kept.
fn is_older(value: &[u8], than: i64) -> bool {
    value.first_chunk().is_some_and(|time| i64::from_be_bytes(*time) < than)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_older_goes() {
        let answer = |time: i64| [&time.to_be_bytes()[..], b"answer"].concat();
        assert!(is_older(&answer(9), 10));
        assert!(!is_older(&answer(10), 10));
        assert!(!is_older(b"short", 10));
        assert!(Commands::seconds(1).seconds >= 86_400);
    }
}
