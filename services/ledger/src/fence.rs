//! Which ledger may answer. Several ledgers can be on one bus, for example with a copy of the data folder or after an
//! old head returns. Only the one that writes the log stream may: it marks what it appends, and the server refuses an
//! append that does not follow the stream's end. A ledger in doubt answers nothing until it knows; one that lost its
//! place ends.

use crate::{
    log::{Identity, LogError},
    replication::Lease,
    storage::Storage,
};
use muster_bus::{BusError, LogTail, Message, SharedBus, Subscription};
use muster_schemas::{
    command::{Query, QueryAnswer, Refusal, RefusalCode},
    event::Record,
    ids::Sequence,
    subjects,
};
use std::{future::pending, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// How long another ledger that still answers, or is silent, gets to end before this one starts.
const OTHERS_END_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait for an answer to the question whether another ledger is there.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The pause before a retry; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Why this ledger must not run on this bus.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FenceError {
    /// Another ledger answers.
    #[error(
        "another ledger answers on this bus, of the {whose} and with records up to {last}. One bus has one ledger: stop \
         the other one, or give this one its own bus. Nothing was changed"
    )]
    AnotherAnswers {
        /// The cluster that it serves.
        whose: String,
        /// The last record of the other.
        last: Sequence,
    },
    /// Another ledger has become the writer of the log stream.
    #[error(
        "another ledger writes the stream {} now, so this one has stopped to answer. One bus has one ledger: find out \
         which data folder is the right one, and stop the ledger of the other. What this one acknowledged last may be \
         missing in the other's history",
        subjects::LOG_STREAM
    )]
    AnotherWrites,
    /// The bus has records that the log does not: the log lost its end.
    #[error(
        "the bus holds records up to {stream}, but the log ends at {log}: the log was put back to an earlier state. \
         Restore its newest state, or delete the stream {} to continue from here",
        subjects::LOG_STREAM
    )]
    LogIsBehind {
        /// The last record that the bus holds.
        stream: Sequence,
        /// The last record of the log.
        log: Sequence,
    },
    /// The bus has a record that differs from the log's.
    #[error(
        "record {record} on the bus is another than in this log: a ledger with a copy of this data folder has continued another \
         way. Find out which data folder is the right one; to continue with this one, delete the stream {}",
        subjects::LOG_STREAM
    )]
    AnotherHistory {
        /// The record.
        record: Sequence,
    },
    /// The folder of the log or the newest file in it was taken away, or another folder is in its place.
    #[error(
        "the folder {} or its newest log was removed or replaced while the ledger was writing to it, so this ledger has stopped answering. What it \
         acknowledged since then is not on disk: find out who removed it, and restore it, from a backup if need be",
        folder.display()
    )]
    FolderGone {
        /// The folder.
        folder: PathBuf,
    },
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The log cannot be read.
    #[error("the log cannot be read: {0}")]
    Log(#[source] Arc<LogError>),
}

impl From<LogError> for FenceError {
    fn from(error: LogError) -> Self {
        Self::Log(Arc::new(error))
    }
}

/// Whether this ledger is the writer of the log stream.
#[derive(Clone, Debug)]
enum Standing {
    /// It is.
    Writer,
    /// It was, and something has happened since.
    Doubt,
    /// It is not.
    Lost(FenceError),
}

/// Whether this ledger may answer. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    standing: watch::Sender<Standing>,
    /// Of one that leads other ledgers.
    lease: Option<Lease>,
    /// What orders carry.
    epoch: u64,
}

impl Fence {
    /// For a ledger that cannot have a rival, or that has just become the writer.
    pub(crate) fn of_the_writer() -> Self {
        Self { standing: watch::Sender::new(Standing::Writer), lease: None, epoch: 0 }
    }

    /// For a ledger whose orders carry an epoch; `lease` is that of one that leads other ledgers.
    pub(crate) fn of_epoch(epoch: u64, lease: Option<Lease>) -> Self {
        Self { lease, epoch, ..Self::of_the_writer() }
    }

    /// The epoch that orders carry.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether this ledger leads others.
    pub(crate) fn is_of_several(&self) -> bool {
        self.lease.is_some()
    }

    /// Why nothing may be answered now; `None` if it may.
    pub(crate) fn objection(&self) -> Option<Refusal> {
        let message = match &*self.standing.borrow() {
            Standing::Writer if self.lease.as_ref().is_none_or(|lease| lease.holds(std::time::Instant::now())) => {
                return None;
            }
            Standing::Writer => "the ledger makes sure that it still leads; try again".to_owned(),
            Standing::Doubt => "the ledger makes sure that it is the only one on this bus; try again".to_owned(),
            Standing::Lost(error) => error.to_string(),
        };
        Some(Refusal::new(RefusalCode::Unavailable, message))
    }

    /// Resolves when this ledger must end.
    pub(crate) async fn lost(&self) -> FenceError {
        let mut standing = self.standing.subscribe();
        loop {
            if let Standing::Lost(error) = &*standing.borrow_and_update() {
                return error.clone();
            }
            if standing.changed().await.is_err() {
                // The sender lives as long as this.
                pending::<()>().await;
            }
        }
    }

    /// Ends this ledger, for this reason; the first one stays.
    pub(crate) fn lose(&self, error: FenceError) {
        self.set(Standing::Lost(error));
    }

    fn set(&self, standing: Standing) {
        self.standing.send_if_modified(|known| {
            let may_change = !matches!(known, Standing::Lost(_));
            if may_change {
                if let Standing::Lost(error) = &standing {
                    tracing::error!(%error, "this ledger ends");
                }
                *known = standing;
            }
            may_change
        });
    }
}

/// A ledger's right to write the log stream, and to answer.
pub(crate) struct Guard {
    bus: SharedBus,
    storage: Arc<Storage>,
    identity: Identity,
    fence: Fence,
    /// Ledgers that claim the stream publish their token here.
    claims: Subscription,
    token: Message,
    interruptions: watch::Receiver<u64>,
}

impl Guard {
    /// Becomes the writer of the log stream for a log that ends at `head`. Returns the record that the stream ends
    /// with: publishing continues after it. An empty stream, or one with nothing of this log, begins after `head`:
    /// readers get earlier records from the ledger.
    /// What it does and answers then stands under `fence`.
    pub(crate) async fn enter(
        bus: &SharedBus,
        storage: &Arc<Storage>,
        head: Sequence,
        fence: Fence,
    ) -> Result<(Self, Sequence), FenceError> {
        let identity = storage.identity()?;
        if fence.lease.is_none() {
            // One of several may still be connected; it leads no longer.
            nobody_else_answers(bus, &identity).await?;
        }
        let guard = Self {
            bus: Arc::clone(bus),
            storage: Arc::clone(storage),
            identity,
            fence,
            claims: patiently("listening for other ledgers", || bus.subscribe(subjects::LOG_CLAIMED)).await?,
            token: Message::new(uuid::Uuid::new_v4().into_bytes().to_vec()),
            interruptions: bus.interruptions(),
        };
        loop {
            let tail = patiently("finding the end of the log stream", || bus.log_tail()).await?;
            let end = guard.agreed_end(tail, head).await?;
            match guard.claim(end).await {
                Ok(()) => return Ok((guard, end)),
                Err(error) => guard.wait_after(error).await?,
            }
        }
    }

    /// Resolves when another ledger may have become the writer.
    pub(crate) async fn alarm(&mut self) {
        loop {
            tokio::select! {
                claim = self.claims.next() => match claim {
                    Some(claim) if claim.message.payload == self.token.payload => continue,
                    Some(_) => return,
                    // The bus is closed: nothing more will come.
                    None => pending().await,
                },
                changed = self.interruptions.changed() => match changed {
                    Ok(()) => return,
                    Err(_) => pending().await,
                },
            }
        }
    }

    /// Makes sure that this ledger still is the writer: returns the record that the stream ends with, or `None` if this
    /// ledger has to end. Nothing is answered until then. A stream that was lost, or holds no log, begins again after
    /// `before`.
    pub(crate) async fn settle(&mut self, before: Sequence) -> Option<Sequence> {
        self.fence.set(Standing::Doubt);
        let mut pause = FIRST_PAUSE;
        let settled = loop {
            match self.try_settle(before).await {
                Err(FenceError::Bus(error)) if error.is_retryable() => {
                    tracing::debug!(%error, "making sure that no other ledger writes the log stream");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                settled => break settled,
            }
        };
        match settled {
            Ok(end) => {
                self.fence.set(Standing::Writer);
                Some(end)
            }
            Err(error) => {
                self.fence.lose(error);
                None
            }
        }
    }

    async fn try_settle(&self, before: Sequence) -> Result<Sequence, FenceError> {
        match self.bus.log_tail().await? {
            LogTail::Record { log, is_own: true, last, .. } if log == self.identity.cluster_id.0 => Ok(last),
            LogTail::Record { .. } => Err(FenceError::AnotherWrites),
            LogTail::Empty => self.claim(before).await.map(|()| before),
            LogTail::Rubbish(why) => {
                self.clear(&why).await?;
                self.claim(before).await.map(|()| before)
            }
        }
    }

    /// The end of the stream, in agreement with the log. A stream with foreign content, or of a cluster whose ledger is
    /// gone, is emptied: the ledger has the history, the stream only distributes it.
    async fn agreed_end(&self, tail: LogTail, head: Sequence) -> Result<Sequence, FenceError> {
        match tail {
            LogTail::Empty => Ok(head),
            LogTail::Rubbish(why) => {
                self.clear(&why).await?;
                Ok(head)
            }
            LogTail::Record { log, .. } if log != self.identity.cluster_id.0 => {
                let other = uuid::Uuid::from_bytes(log);
                self.clear(&format!("it is the log of another cluster, {other}, whose ledger does not answer")).await?;
                Ok(head)
            }
            LogTail::Record { last, .. } if last > head => Err(FenceError::LogIsBehind { stream: last, log: head }),
            LogTail::Record { last, record, .. } => match (record, self.record(last).await?) {
                (Some(there), Some(here)) if *there != here => Err(FenceError::AnotherHistory { record: last }),
                (_, Some(_)) => Ok(last),
                // It was archived since: the stream continues after the head.
                (_, None) => Ok(head),
            },
        }
    }

    async fn clear(&self, why: &str) -> Result<(), BusError> {
        tracing::warn!(
            "the stream {} cannot be continued: {why}. It is emptied; nothing is lost, because the ledger has the log",
            subjects::LOG_STREAM
        );
        patiently("emptying the log stream", || self.bus.clear_log()).await
    }

    async fn claim(&self, end: Sequence) -> Result<(), FenceError> {
        let Some(record) = self.record(end).await? else {
            return Err(LogError::Closed.into());
        };
        self.bus.claim_log(self.identity.cluster_id.0, record).await?;
        self.bus.publish(subjects::LOG_CLAIMED, self.token.clone()).await?;
        Ok(())
    }

    async fn record(&self, sequence: Sequence) -> Result<Option<Record>, FenceError> {
        let storage = Arc::clone(&self.storage);
        let read = tokio::task::spawn_blocking(move || storage.log()?.record(sequence)).await;
        Ok(read.unwrap_or(Err(LogError::Closed))?)
    }

    async fn wait_after(&self, error: FenceError) -> Result<(), FenceError> {
        match error {
            FenceError::Bus(error) if error.is_retryable() => {
                tracing::debug!(%error, "claiming the log stream");
                sleep(FIRST_PAUSE).await;
                Ok(())
            }
            error => Err(error),
        }
    }
}

/// Waits a while for another ledger to end. A silent one does not keep this one from starting: it is fenced off.
pub(crate) async fn nobody_else_answers(bus: &SharedBus, identity: &Identity) -> Result<(), FenceError> {
    let question = Message::encode(&Query::Head)
        .map_err(|source| BusError::Malformed { subject: subjects::HEAD.to_owned(), source })?;
    let mut patience_ends = None;
    loop {
        let answer = bus.request(subjects::HEAD, question.clone(), ANSWER_WITHIN).await;
        let other = match answer {
            Err(BusError::NoResponder { .. }) => return Ok(()),
            Err(BusError::TimedOut { .. }) => None,
            Err(error) if error.is_retryable() => {
                tracing::debug!(%error, "asking whether another ledger is there");
                sleep(FIRST_PAUSE * 10).await;
                continue;
            }
            Err(error) => return Err(error.into()),
            Ok(answer) => answer.decode::<QueryAnswer>().ok(),
        };
        if Instant::now() < *patience_ends.get_or_insert_with(|| Instant::now() + OTHERS_END_WITHIN) {
            sleep(FIRST_PAUSE * 10).await;
            continue;
        }
        let Some(QueryAnswer::Head { last, cluster_id, .. }) = other else {
            tracing::warn!("another ledger is connected to this bus and does not answer; this one takes its place");
            return Ok(());
        };
        let whose = match cluster_id == identity.cluster_id.0 {
            true => "same cluster".to_owned(),
            false => format!("cluster {}", uuid::Uuid::from_bytes(cluster_id)),
        };
        return Err(FenceError::AnotherAnswers { whose, last });
    }
}

/// Retries until it succeeds, or fails in a way that no retry helps.
pub(crate) async fn patiently<T, F>(what: &str, attempt: impl Fn() -> F) -> Result<T, BusError>
where
    F: Future<Output = Result<T, BusError>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        match attempt().await {
            Err(error) if error.is_retryable() => tracing::debug!(%error, what, "trying again"),
            result => return result,
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
