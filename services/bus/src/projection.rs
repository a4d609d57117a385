use crate::{BusError, Feed, LedgerClient, SharedBus};
use muster_domain::{State, nodes::Violation};
use muster_schemas::{
    command::{Query, QueryAnswer},
    event::Commit,
    ids::Sequence,
};
use parking_lot::RwLock;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Records applied before readers get their turn.
const RECORDS_AT_A_TIME: usize = 512;
/// The pause before the ledger is asked again after a failure.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The state of the cluster, kept up to date by a task of its own. Clones share it; dropping the last one ends the
/// task.
#[derive(Clone, Debug)]
pub struct Projection {
    shared: Arc<Shared>,
    _stop: Arc<DropGuard>,
}

#[derive(Debug)]
struct Shared {
    state: RwLock<State>,
    applied: watch::Sender<Sequence>,
    /// Why the state stays as it is, once it does.
    broken: watch::Sender<Option<BusError>>,
}

impl Projection {
    /// Reads the newest snapshot and the records since, up to the current end of the log, and follows the log from
    /// there. Waits while the ledger is away.
    ///
    /// # Errors
    /// The bus cannot be used, or the ledger has neither the records nor a snapshot that includes them.
    pub async fn open(bus: SharedBus) -> Result<Self, BusError> {
        let ledger = LedgerClient::new(bus.clone());
        let state = load_snapshot(&ledger, None).await?;
        let head = find_head(&ledger).await?;
        let feed = Feed::open(bus, state.sequence().next()).await?;
        let applied = watch::Sender::new(state.sequence());
        let shared = Arc::new(Shared { state: RwLock::new(state), applied, broken: watch::Sender::default() });
        let stop = CancellationToken::new();
        let mut follower = Follower { shared: shared.clone(), ledger, feed };
        while follower.feed.position() <= head {
            follower.advance().await?;
        }
        tokio::spawn(stop.clone().run_until_cancelled_owned(follower.follow()));
        Ok(Self { shared, _stop: Arc::new(stop.drop_guard()) })
    }

    /// Looks at the state. Nothing is applied meanwhile, so be quick and do not wait for anything. It never waits for a
    /// [long look](Self::read_long), not even behind a change that waits for one.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.read_recursive())
    }

    /// Looks at the state for up to a millisecond, on a thread that may wait: pending changes come first.
    pub fn read_long<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.read())
    }

    /// The last record that the state includes.
    pub fn sequence(&self) -> Sequence {
        *self.shared.applied.borrow()
    }

    /// Waits until the state includes a record. With the sequence of an [`Answer`](muster_schemas::command::Answer),
    /// the state then shows everything that the answer reports.
    ///
    /// # Errors
    /// [`BusError::TimedOut`] if it does not within this time.
    pub async fn wait_for(&self, sequence: Sequence, timeout: Duration) -> Result<(), BusError> {
        let mut applied = self.changes();
        let reached = applied.wait_for(|applied| *applied >= sequence);
        match tokio::time::timeout(timeout, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(BusError::TimedOut { subject: muster_schemas::subjects::LOG_SUBJECT.to_owned() }),
        }
    }

    /// Resolves when the state cannot be kept up to date any more, with the reason. It then stays as it is: whoever shows it
    /// has to begin again.
    pub async fn broken(&self) -> BusError {
        let mut broken = self.shared.broken.subscribe();
        // The sender lives as long as this.
        let error = broken.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
        error.unwrap_or(BusError::Closed)
    }

    /// Announces each change: the last record that the state includes.
    pub fn changes(&self) -> watch::Receiver<Sequence> {
        self.shared.applied.subscribe()
    }
}

/// The task that keeps a projection up to date.
struct Follower {
    shared: Arc<Shared>,
    ledger: LedgerClient,
    feed: Feed,
}

impl Follower {
    async fn follow(mut self) {
        loop {
            match self.advance().await {
                Ok(()) => {}
                Err(BusError::Closed) => return,
                Err(error @ BusError::Unusable(_)) => {
                    self.shared.broken.send_replace(Some(error));
                    return;
                }
                Err(error) => {
                    tracing::error!(%error, "a view of the cluster cannot be kept up to date");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    /// Applies the next records. If they were archived meanwhile, jumps to a snapshot that includes them.
    async fn advance(&mut self) -> Result<(), BusError> {
        match self.feed.next().await {
            Ok(commit) => {
                let last = commit.last();
                if let Some(Err(violation)) = self.shared.change(move |shared| shared.apply(&commit)).await {
                    return Err(BusError::Unusable(violation.to_string()));
                }
                self.shared.applied.send_replace(last);
            }
            Err(BusError::Refused(refusal)) => {
                let state = load_snapshot(&self.ledger, None).await?;
                let sequence = state.sequence();
                if sequence < self.feed.position() {
                    return Err(BusError::Refused(refusal));
                }
                self.feed.skip_to(sequence.next());
                self.shared.change(move |shared| *shared.state.write() = state).await;
                self.shared.applied.send_replace(sequence);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Shared {
    /// Changes the state: here if nobody looks at it, else on a thread that may wait for those who do. `None` if the runtime
    /// ends: it takes no more work, and nobody reads this state any more.
    async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        change: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        if !self.state.is_locked() {
            return Some(change(self));
        }
        let shared = self.clone();
        match tokio::task::spawn_blocking(move || change(&shared)).await {
            Ok(changed) => Some(changed),
            Err(error) => {
                if let Ok(panic) = error.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
                None
            }
        }
    }

    fn apply(&self, commit: &Commit) -> Result<(), Violation> {
        for records in commit.records.chunks(RECORDS_AT_A_TIME) {
            let mut state = self.state.write();
            records.iter().try_for_each(|record| state.apply(record))?;
        }
        Ok(())
    }
}

/// The state of the ledger's newest snapshot at or before a sequence (`None` for the newest of all); the empty state if
/// there is none. Waits while the ledger is away.
///
/// # Errors
/// The bus cannot be used.
pub async fn load_snapshot(ledger: &LedgerClient, at_or_before: Option<Sequence>) -> Result<State, BusError> {
    loop {
        match read_snapshot(ledger, at_or_before).await {
            Ok(Some(bytes)) => {
                let state = tokio::task::spawn_blocking(move || State::from_snapshot_bytes(&bytes)).await;
                match state
                    .map_err(|error| error.to_string())
                    .and_then(|state| state.map_err(|error| error.to_string()))
                {
                    Ok(state) => return Ok(state),
                    Err(error) => tracing::error!(error, "the ledger's snapshot cannot be read; reading it again"),
                }
            }
            Ok(None) => return Ok(State::new()),
            Err(error) if error.is_retryable() => tracing::warn!(%error, "waiting for the ledger's snapshot"),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// The bytes of a snapshot, page by page.
async fn read_snapshot(ledger: &LedgerClient, at_or_before: Option<Sequence>) -> Result<Option<Vec<u8>>, BusError> {
    let mut bytes = Vec::new();
    let mut wanted = at_or_before;
    loop {
        let query = Query::Snapshot { at_or_before: wanted, offset: bytes.len() as u64 };
        let QueryAnswer::Snapshot { sequence, part, total_bytes } = ledger.query(&query).await? else {
            return Err(BusError::Unavailable("the ledger's answer is no snapshot".to_owned()));
        };
        let is_first = bytes.is_empty();
        if is_first && total_bytes == 0 {
            return Ok(None);
        }
        if part.is_empty() || !(is_first || wanted == Some(sequence)) {
            return Err(BusError::Unavailable("the ledger's snapshot went while it was read".to_owned()));
        }
        wanted = Some(sequence);
        bytes.extend_from_slice(&part);
        if bytes.len() as u64 >= total_bytes {
            return Ok(Some(bytes));
        }
    }
}

/// The current end of the log.
async fn find_head(ledger: &LedgerClient) -> Result<Sequence, BusError> {
    loop {
        match ledger.query(&Query::Head).await {
            Ok(QueryAnswer::Head { last, .. }) => return Ok(last),
            Ok(_) => tracing::error!("the ledger's answer does not say where the log ends"),
            Err(error) if error.is_retryable() => tracing::warn!(%error, "waiting for the ledger"),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{sync::mpsc, time::Instant};

    const DEADLINE: Duration = Duration::from_secs(20);

    /// A short look never waits for a list, not even behind a change that waits for that list; and a waiting change
    /// blocks no thread of the runtime, which has only one here.
    #[tokio::test(flavor = "current_thread")]
    async fn a_short_look_passes_a_change_that_waits_for_a_long_one() {
        let shared = Arc::new(Shared {
            state: RwLock::new(State::new()),
            applied: watch::Sender::default(),
            broken: watch::Sender::default(),
        });
        let projection = Projection { shared: shared.clone(), _stop: Arc::new(CancellationToken::new().drop_guard()) };
        let ((looking, is_looking), (release, is_released)) = (mpsc::channel(), mpsc::channel::<()>());
        let long = std::thread::spawn({
            let projection = projection.clone();
            move || {
                projection.read_long(|_| {
                    looking.send(()).unwrap();
                    is_released.recv_timeout(DEADLINE).is_ok()
                })
            }
        });
        is_looking.recv_timeout(DEADLINE).unwrap();
        let (changed, mut is_changed) = tokio::sync::oneshot::channel();
        let change = tokio::spawn({
            let shared = shared.clone();
            async move {
                shared.change(|shared| drop(shared.state.write())).await;
                changed.send(()).unwrap();
            }
        });
        let end = Instant::now() + DEADLINE;
        while shared.state.try_read().is_some() {
            assert!(Instant::now() < end, "the change waits for the look");
            tokio::task::yield_now().await;
        }
        assert_eq!(projection.read(State::sequence), Sequence::default());
        assert!(is_changed.try_recv().is_err());
        release.send(()).unwrap();
        change.await.unwrap();
        assert!(long.join().unwrap(), "it was released in time");
    }
}
