use crate::{BusError, Feed, LedgerClient, SharedBus};
use muster_domain::State;
use muster_schemas::{
    command::{Query, QueryAnswer},
    event::Commit,
    ids::Sequence,
};
use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Records that are applied before readers get their turn.
const RECORDS_AT_A_TIME: usize = 512;
/// The pause before the ledger is asked again after a failure.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The state of the cluster, kept up to date by a task of its own. Clones share it; the last one to be dropped ends the
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
}

impl Projection {
    /// Reads the newest snapshot and the records since, up to the end that the log has at this moment, and goes on from
    /// there. Waits for the ledger for as long as it is not there.
    ///
    /// # Errors
    /// The bus cannot be used, or the ledger has neither the records nor a snapshot that includes them.
    pub async fn open(bus: SharedBus) -> Result<Self, BusError> {
        let ledger = LedgerClient::new(bus.clone());
        let state = load_snapshot(&ledger, None).await?;
        let head = find_head(&ledger).await?;
        let feed = Feed::open(bus, state.sequence().next()).await?;
        let applied = watch::Sender::new(state.sequence());
        let shared = Arc::new(Shared { state: RwLock::new(state), applied });
        let stop = CancellationToken::new();
        let mut follower = Follower { shared: shared.clone(), ledger, feed };
        while follower.feed.position() <= head {
            follower.advance().await?;
        }
        tokio::spawn(stop.clone().run_until_cancelled_owned(follower.follow()));
        Ok(Self { shared, _stop: Arc::new(stop.drop_guard()) })
    }

    /// Looks at the state. Nothing is applied meanwhile, so look shortly, and do not wait for anything.
    pub fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last record that the state includes.
    pub fn sequence(&self) -> Sequence {
        *self.shared.applied.borrow()
    }

    /// Waits until the state includes a record. With the sequence of an [`Answer`](muster_schemas::command::Answer)
    /// the state shows everything that the answer tells of.
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

    /// Tells each change: the last record that the state includes.
    pub fn changes(&self) -> watch::Receiver<Sequence> {
        self.shared.applied.subscribe()
    }
}

/// What keeps a projection up to date.
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
                Err(error @ BusError::Unusable(_)) => {
                    tracing::info!(%error, "a view of the cluster is no longer kept up to date");
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
            Ok(commit) => self.shared.apply(&commit),
            Err(BusError::Refused(refusal)) => {
                let state = load_snapshot(&self.ledger, None).await?;
                if state.sequence() < self.feed.position() {
                    return Err(BusError::Refused(refusal));
                }
                self.feed.skip_to(state.sequence().next());
                self.shared.replace(state);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Shared {
    fn apply(&self, commit: &Commit) {
        for records in commit.records.chunks(RECORDS_AT_A_TIME) {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            for record in records {
                state.apply(record);
            }
        }
        self.applied.send_replace(commit.last());
    }

    fn replace(&self, state: State) {
        let sequence = state.sequence();
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.applied.send_replace(sequence);
    }
}

/// The state of the ledger's newest snapshot at or before a sequence (`None` for the newest of all); the empty state if
/// there is none. Waits for the ledger for as long as it is not there.
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

/// The end of the log at this moment.
async fn find_head(ledger: &LedgerClient) -> Result<Sequence, BusError> {
    loop {
        match ledger.query(&Query::Head).await {
            Ok(QueryAnswer::Head { last, .. }) => return Ok(last),
            Ok(_) => tracing::error!("the ledger's answer does not tell where the log ends"),
            Err(error) if error.is_retryable() => tracing::warn!(%error, "waiting for the ledger"),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
