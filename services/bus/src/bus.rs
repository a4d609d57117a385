use crate::{
    BusError, LogId, LogStream, Message, RequestStream, Subscription, message::PublicEvent, queue::WorkQueue,
    work::WorkStream,
};
use async_trait::async_trait;
use muster_schemas::{
    event::{Commit, Record},
    ids::Sequence,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// A bus that services share.
pub type SharedBus = Arc<dyn Bus>;

/// The end of the log stream.
#[derive(Clone, Debug, PartialEq)]
pub enum LogTail {
    /// The stream is empty.
    Empty,
    /// The stream ends with something that does not belong to a log; the text says what is wrong with it.
    Rubbish(String),
    /// The stream ends with a record.
    Record {
        /// The log that the record belongs to.
        log: LogId,
        /// Whether this process appended it.
        is_own: bool,
        /// Its sequence.
        last: Sequence,
        /// The record; `None` if it is larger than a message may be.
        record: Option<Box<Record>>,
    },
}

impl LogTail {
    /// The last record's sequence, if there is a record.
    pub const fn sequence(&self) -> Option<Sequence> {
        match self {
            Self::Record { last, .. } => Some(*last),
            Self::Empty | Self::Rubbish(_) => None,
        }
    }
}

/// The connection between services. Any task may make any call at any time; no call holds a lock while it waits.
#[async_trait]
pub trait Bus: Send + Sync + std::fmt::Debug + 'static {
    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// [`BusError::NoResponder`] at once if nobody serves the subject; [`BusError::TimedOut`] if no reply arrives in
    /// time or the server dropped the request; [`BusError::TooLarge`]; [`BusError::Unavailable`].
    async fn request(&self, subject: &str, message: Message, timeout: Duration) -> Result<Message, BusError>;

    /// Serves the subjects of a pattern (`*` for one token, a final `>` for one or more). If several servers match a
    /// subject, each request goes to one of them. Once this returns, requests reach the server.
    ///
    /// # Errors
    /// The pattern is malformed; the bus is not available.
    async fn serve(&self, pattern: &str) -> Result<RequestStream, BusError>;

    /// Serves like [`serve`](Self::serve), but shares no request with other servers: between processes each of them gets
    /// all, and the requester takes the first reply. It is for servers of which one alone may reply: one that hangs then
    /// keeps no request from its successor.
    ///
    /// # Errors
    /// As [`serve`](Self::serve).
    async fn serve_all(&self, pattern: &str) -> Result<RequestStream, BusError>;

    /// Publishes to the current subscribers; nothing is kept.
    ///
    /// # Errors
    /// The message is too large; the bus is not available.
    async fn publish(&self, subject: &str, message: Message) -> Result<(), BusError>;

    /// Subscribes to the subjects of a pattern. Once this returns, published messages reach the subscription.
    ///
    /// # Errors
    /// The pattern is malformed; the bus is not available.
    async fn subscribe(&self, pattern: &str) -> Result<Subscription, BusError>;

    /// The end of the log stream. Creates the stream if there is none.
    ///
    /// # Errors
    /// The bus is not available.
    async fn log_tail(&self) -> Result<LogTail, BusError>;

    /// Becomes the writer of the log stream: appends `last`, which is the record that the stream ends with or, in an
    /// empty stream, the record before its first one, after the end that the last call of [`log_tail`](Self::log_tail)
    /// found. From then on every append of an earlier writer fails.
    ///
    /// # Errors
    /// [`BusError::Fenced`] if the stream no longer ends there; the bus is not available.
    async fn claim_log(&self, log: LogId, last: Record) -> Result<(), BusError>;

    /// Empties the log stream; the ledger has its records.
    ///
    /// # Errors
    /// The bus is not available.
    async fn clear_log(&self) -> Result<(), BusError>;

    /// Appends a commit to the log stream. Records that the stream already holds are left out; records between the end
    /// of the stream and the commit may be missing, and readers get them from the ledger. Only one writer can be
    /// active.
    ///
    /// # Errors
    /// [`BusError::Fenced`] if the stream does not end where this writer's last append, or its last call of
    /// [`log_tail`](Self::log_tail), left it. After any error call `log_tail` and continue from there.
    async fn publish_commit(&self, commit: Arc<Commit>) -> Result<(), BusError>;

    /// Commits that are appended to the log stream from now on, in order. Commits can be lost (a slow reader, a lost
    /// store); [`Feed`](crate::Feed) is the reader that repairs this.
    ///
    /// # Errors
    /// The bus is not available.
    async fn follow_log(&self) -> Result<LogStream, BusError>;

    /// Whether anybody can see public events; if not, they need not be made.
    fn wants_public_events(&self) -> bool;

    /// The record that the last public event describes, and the log that it belongs to (see [`PublicEvent::log`]), as
    /// far as the bus keeps events; `None` if it holds none.
    ///
    /// # Errors
    /// The bus is not available.
    async fn public_events_tail(&self) -> Result<Option<(Sequence, Option<LogId>)>, BusError>;

    /// Publishes lifecycle events for integrations in this order and returns once the bus has them all. An event that
    /// was already published within the last minutes is dropped.
    ///
    /// # Errors
    /// The bus is not available; some of the events may have been published.
    async fn publish_events(&self, events: Vec<PublicEvent>) -> Result<(), BusError>;

    /// Puts an item into a work queue. An item whose key was enqueued within the last minutes is dropped.
    ///
    /// # Errors
    /// The message is too large; the bus is not available.
    async fn enqueue(&self, queue: &WorkQueue, key: &str, message: Message) -> Result<(), BusError>;

    /// Creates a work queue, so that workers find it. Producers create it; workers may not.
    ///
    /// # Errors
    /// The bus is not available.
    async fn make_queue(&self, queue: &WorkQueue) -> Result<(), BusError>;

    /// Works on a queue: each item goes to one worker, and is delivered again if it was not acknowledged in time. Waits
    /// until somebody creates the queue.
    ///
    /// # Errors
    /// The bus is not available.
    async fn worker(&self, queue: &WorkQueue) -> Result<WorkStream, BusError>;

    /// Counts how often the bus was found to have lost its store. When this changes, services put their unfinished work
    /// back into the bus.
    fn losses(&self) -> watch::Receiver<u64>;

    /// Counts how often this process lost the bus and found it again: others may have acted meanwhile.
    fn interruptions(&self) -> watch::Receiver<u64>;

    /// Counts how often a ledger has said, on [`subjects::REIGN`](muster_schemas::subjects::REIGN), that it answers from
    /// now on. What was asked before may have gone to one that is gone.
    fn reigns(&self) -> watch::Receiver<u64>;

    /// The largest payload that the bus carries, in bytes.
    fn max_payload_bytes(&self) -> usize;
}
