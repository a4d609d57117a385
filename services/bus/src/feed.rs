use crate::{BusError, LedgerClient, LogItem, LogStream, SharedBus};
use muster_schemas::{
    command::{Query, QueryAnswer},
    event::{Commit, Event, Record},
    ids::{CommandId, Sequence},
    time::Timestamp,
};
use std::{sync::Arc, time::Duration};

/// After this long without a commit, the ledger is asked whether there really was none.
const QUIET: Duration = Duration::from_secs(5);
/// Bytes of records in one page of a repair.
const PAGE_BYTES: usize = 4 << 20;
/// The pause before the ledger is asked again after it failed to answer.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// The log from a sequence on: every record once, in order, without gaps, for ever.
///
/// It reads the past from the ledger and new records from the bus. Records that the bus loses it reads from the ledger.
/// If an older log was put in the place of the one that it reads, its reader has seen what is gone: it is told.
#[derive(Debug)]
pub struct Feed {
    ledger: LedgerClient,
    page_bytes: u32,
    live: LogStream,
    next: Sequence,
    /// The last record that was handed out.
    last: Option<Mark>,
    /// Whether the log may be another than the one that was read so far.
    doubtful: bool,
    /// A live commit that cannot be handed out before the records that precede it.
    ahead: Option<Arc<Commit>>,
    /// Whether the ledger may have records that the bus has not brought.
    behind: bool,
}

/// Distinguishes a record from others that have or had its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    sequence: Sequence,
    time: Timestamp,
    command: CommandId,
}

impl Mark {
    const fn of(record: &Record) -> Self {
        Self { sequence: record.sequence, time: record.time, command: record.command }
    }
}

impl Feed {
    /// Begins at a sequence (0 and 1 both mean the beginning). The ledger need not be available yet.
    ///
    /// # Errors
    /// The bus is not available.
    pub async fn open(bus: SharedBus, from: Sequence) -> Result<Self, BusError> {
        let live = bus.follow_log().await?;
        let page_bytes = u32::try_from(PAGE_BYTES.min(bus.max_payload_bytes() / 2)).unwrap_or(u32::MAX);
        let next = from.max(Sequence(1));
        Ok(Self {
            ledger: LedgerClient::new(bus),
            page_bytes,
            live,
            next,
            last: None,
            doubtful: false,
            ahead: None,
            behind: true,
        })
    }

    /// The sequence of the record that comes next.
    pub const fn position(&self) -> Sequence {
        self.next
    }

    /// Continues at a later sequence, leaving out what lies between.
    pub(crate) fn skip_to(&mut self, sequence: Sequence) {
        self.next = self.next.max(sequence);
        self.last = None;
    }

    /// The next records, at least one. Waits while there are none. Cancel safe.
    ///
    /// # Errors
    /// [`BusError::Refused`] if the ledger cannot give the records, for example because they were archived; this is
    /// final. [`BusError::Unusable`] if the log no longer holds what was handed out, because an older one was restored;
    /// this is final too. [`BusError::Closed`] if the bus is closed. It waits until any other failure is over.
    pub async fn next(&mut self) -> Result<Arc<Commit>, BusError> {
        loop {
            if let Some(commit) = self.take_live() {
                return Ok(self.hand_out(commit));
            }
            if self.doubtful {
                self.compare().await?;
            }
            if self.behind {
                match self.repair().await? {
                    Some(commit) => return Ok(self.hand_out(commit)),
                    None => continue,
                }
            }
            self.wait().await?;
        }
    }

    fn hand_out(&mut self, commit: Arc<Commit>) -> Arc<Commit> {
        self.next = commit.last().next();
        self.last = commit.records.last().map(Mark::of);
        commit
    }

    /// The next records if the bus has brought them.
    fn take_live(&mut self) -> Option<Arc<Commit>> {
        loop {
            let commit = match self.ahead.take() {
                Some(commit) => commit,
                None => match self.live.try_next()? {
                    LogItem::Commit(commit) => commit,
                    LogItem::Interrupted => {
                        self.interrupted();
                        continue;
                    }
                },
            };
            self.doubtful |= self.contradicts(&commit);
            if self.doubtful || commit.first() > self.next {
                self.ahead = Some(commit);
                self.behind = true;
                return None;
            }
            if let Some(commit) = from_sequence(commit, self.next) {
                self.behind = false;
                return Some(commit);
            }
        }
    }

    /// Commits may have been lost, and the log may have been replaced meanwhile.
    fn interrupted(&mut self) {
        self.behind = true;
        self.doubtful = self.last.is_some();
    }

    /// Whether a live commit may belong to another log than what was handed out: it has another record of that number, or
    /// says that an earlier number is given again. A writer repeats the last record when it begins.
    fn contradicts(&self, commit: &Commit) -> bool {
        let Some(last) = self.last else { return false };
        let known = commit.records.iter().take_while(|record| record.sequence <= last.sequence);
        known.into_iter().any(|record| match record.event {
            Event::LogRestored { .. } => Mark::of(record) != last,
            _ => record.sequence == last.sequence && Mark::of(record) != last,
        })
    }

    /// Asks the ledger whether the log still has the last record that was handed out.
    async fn compare(&mut self) -> Result<(), BusError> {
        let Some(last) = self.last else {
            self.doubtful = false;
            return Ok(());
        };
        match self.ledger.query(&Query::Replay { from: last.sequence, max_bytes: 1 }).await {
            Ok(QueryAnswer::Records(commit)) if commit.records.first().map(Mark::of) == Some(last) => {
                self.doubtful = false;
                // What the bus has brought is asked for again.
                self.ahead = None;
                self.behind = true;
            }
            Ok(_) => {
                return Err(BusError::Unusable(format!(
                    "the log no longer has record {} as this service read it: an older log was restored. Restart this service",
                    last.sequence
                )));
            }
            // It was archived since, and nobody can tell.
            Err(BusError::Refused(_)) => {
                self.doubtful = false;
                self.last = None;
            }
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "waiting for the ledger to compare the log with what was read");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The next page of records from the ledger; `None` if there is nothing left to repair, or not yet.
    async fn repair(&mut self) -> Result<Option<Arc<Commit>>, BusError> {
        let query = Query::Replay { from: self.next, max_bytes: self.page_bytes };
        match self.ledger.query(&query).await {
            Ok(QueryAnswer::Records(commit)) if commit.records.is_empty() => {
                // The bus may have brought records that this ledger does not know yet: then ask again.
                self.behind = self.ahead.is_some();
                if self.behind {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Ok(None)
            }
            Ok(QueryAnswer::Records(commit)) if commit.first() == self.next => Ok(Some(Arc::new(commit))),
            Ok(_) => {
                tracing::error!(wanted = %self.next, "the ledger's replay does not begin where it was asked to");
                tokio::time::sleep(RETRY_PAUSE).await;
                Ok(None)
            }
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, next = %self.next, "waiting for the ledger to repair the event feed");
                tokio::time::sleep(RETRY_PAUSE).await;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until the bus brings something, and asks the ledger if it brings nothing for too long.
    async fn wait(&mut self) -> Result<(), BusError> {
        match tokio::time::timeout(QUIET, self.live.next()).await {
            Ok(Some(LogItem::Commit(commit))) => self.ahead = Some(commit),
            Ok(Some(LogItem::Interrupted)) => self.interrupted(),
            Ok(None) => return Err(BusError::Closed),
            Err(_) => self.look_at_head().await,
        }
        Ok(())
    }

    /// Looks whether the ledger has more than what was handed out, or less, as far as it can be asked.
    async fn look_at_head(&mut self) {
        if let Ok(QueryAnswer::Head { last, .. }) = self.ledger.query(&Query::Head).await {
            self.behind = last >= self.next;
            self.doubtful = self.last.is_some_and(|handed_out| last < handed_out.sequence);
        }
    }
}

/// The part of a commit from a sequence on; `None` if there is none.
pub(crate) fn from_sequence(commit: Arc<Commit>, next: Sequence) -> Option<Arc<Commit>> {
    if commit.records.is_empty() || commit.last() < next {
        return None;
    }
    if commit.first() >= next {
        return Some(commit);
    }
    let known = commit.records.partition_point(|record| record.sequence < next);
    Some(Arc::new(Commit { records: commit.records[known..].to_vec() }))
}
