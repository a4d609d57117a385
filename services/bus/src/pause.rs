use std::time::Duration;
use tokio::time::Instant;

/// The moment after this duration; a moment that nobody lives to see if the duration is too long to add.
pub(crate) fn after(duration: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    Instant::now() + duration.min(CENTURY)
}

/// Pauses between attempts: each twice as long as the one before, up to a limit.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// For faults that others repair: soon again at first, then rarely enough not to flood a log with warnings.
    pub(crate) const fn patient() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// How long the next pause is.
    pub(crate) const fn next_pause(&self) -> Duration {
        self.next
    }

    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next).await;
        self.next = (self.next * 2).min(self.longest);
    }
}
