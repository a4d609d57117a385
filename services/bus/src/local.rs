//! The bus inside one process. It passes messages and commits on without copying them.

use crate::{
    Bus, BusError, LogId, LogItem, LogStream, LogTail, Message, PublicEvent, Published, Request, RequestStream,
    Subscription,
    log_stream::{LogWriter, log_queue},
    message::{ReplyTo, check_pattern},
    queue::WorkQueue,
    subject,
    work::{WorkSource, WorkStream},
};
use async_trait::async_trait;
use muster_schemas::{
    event::{Commit, Record},
    ids::Sequence,
    subjects,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{mpsc, oneshot, watch};

mod queue;
use queue::LocalQueue;
pub(crate) use queue::{LocalDelivery, LocalWorker};

/// Requests that wait at a server; any more wait at their sender.
const WAITING_REQUESTS: usize = 65_536;
/// Messages that wait at a subscriber; any more are lost to it, as on NATS.
const WAITING_MESSAGES: usize = 65_536;
/// The limit of a message, the same for all buses: what works in one process does not fail on NATS by far.
const MAX_PAYLOAD_BYTES: usize = 64 << 20;

/// The bus inside one process.
#[derive(Debug)]
pub struct LocalBus {
    servers: RwLock<Routes<mpsc::Sender<Request>>>,
    subscribers: RwLock<Routes<mpsc::Sender<Published>>>,
    turn: AtomicUsize,
    log: Mutex<Log>,
    queues: Mutex<HashMap<String, Arc<LocalQueue>>>,
    losses: watch::Sender<u64>,
    reigns: watch::Sender<u64>,
}

/// Routes by subject. Most subjects are plain, and found at once however many there are.
#[derive(Debug)]
struct Routes<T> {
    plain: HashMap<String, Vec<T>>,
    patterns: Vec<(String, T)>,
}

impl<T> Default for Routes<T> {
    fn default() -> Self {
        Self { plain: HashMap::new(), patterns: Vec::new() }
    }
}

impl<T> Routes<mpsc::Sender<T>> {
    /// Adds a route, and drops those whose receiver is gone.
    fn add(&mut self, pattern: &str, sender: mpsc::Sender<T>) {
        self.patterns.retain(|(_, sender)| !sender.is_closed());
        self.plain.retain(|_, senders| {
            senders.retain(|sender| !sender.is_closed());
            !senders.is_empty()
        });
        if subject::is_pattern(pattern) {
            self.patterns.push((pattern.to_owned(), sender));
        } else {
            self.plain.entry(pattern.to_owned()).or_default().push(sender);
        }
    }

    fn matching<'a>(&'a self, subject: &'a str) -> impl Iterator<Item = &'a mpsc::Sender<T>> {
        let plain = self.plain.get(subject).into_iter().flatten();
        let patterns = self.patterns.iter().filter(|(pattern, _)| subject::matches(pattern, subject));
        plain.chain(patterns.map(|(_, sender)| sender)).filter(|sender| !sender.is_closed())
    }

    fn any_overlapping(&self, pattern: &str) -> bool {
        let live = |sender: &mpsc::Sender<T>| !sender.is_closed();
        self.plain.iter().any(|(plain, senders)| subject::matches(pattern, plain) && senders.iter().any(live))
            || self.patterns.iter().any(|(other, sender)| subject::overlap(pattern, other) && live(sender))
    }
}

#[derive(Debug, Default)]
struct Log {
    id: LogId,
    /// The last commit.
    tail: Option<Arc<Commit>>,
    readers: Vec<LogWriter>,
}

impl Default for LocalBus {
    fn default() -> Self {
        Self {
            servers: RwLock::default(),
            subscribers: RwLock::default(),
            turn: AtomicUsize::new(0),
            log: Mutex::default(),
            queues: Mutex::default(),
            losses: watch::Sender::new(0),
            reigns: watch::Sender::new(0),
        }
    }
}

impl LocalBus {
    /// A bus that nobody uses yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// One of the servers of a subject, in turn.
    fn server(&self, subject: &str) -> Option<mpsc::Sender<Request>> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let count = servers.matching(subject).count();
        let chosen = if count > 1 { self.turn.fetch_add(1, Ordering::Relaxed) % count } else { 0 };
        servers.matching(subject).nth(chosen).cloned()
    }

    fn deliver(&self, subject: &str, message: &Message) {
        let subscribers = self.subscribers.read().unwrap_or_else(PoisonError::into_inner);
        for subscriber in subscribers.matching(subject) {
            let published = Published { subject: subject.to_owned(), message: message.clone() };
            if let Err(mpsc::error::TrySendError::Full(_)) = subscriber.try_send(published) {
                tracing::warn!(subject, "a subscriber is too slow and loses a message");
            }
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        // Every change to the log's state is complete before anything can panic.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, queue: &WorkQueue) -> Arc<LocalQueue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        match queues.get(queue.name.as_ref()) {
            Some(queue) => queue.clone(),
            None => queues.entry(queue.name.clone().into_owned()).or_default().clone(),
        }
    }
}

fn check_size(message: &Message) -> Result<(), BusError> {
    match message.payload.len() {
        bytes if bytes > MAX_PAYLOAD_BYTES => Err(BusError::TooLarge { bytes, limit: MAX_PAYLOAD_BYTES }),
        _ => Ok(()),
    }
}

#[async_trait]
impl Bus for LocalBus {
    async fn request(&self, subject: &str, message: Message, timeout: Duration) -> Result<Message, BusError> {
        check_size(&message)?;
        let no_responder = || BusError::NoResponder { subject: subject.to_owned() };
        let timed_out = || BusError::TimedOut { subject: subject.to_owned() };
        let server = self.server(subject).ok_or_else(no_responder)?;
        let (reply_to, reply) = oneshot::channel();
        let request = Request { subject: subject.to_owned(), message, reply_to: ReplyTo::Local(reply_to) };
        let exchange = async {
            server.send(request).await.map_err(|_| no_responder())?;
            reply.await.map_err(|_| timed_out())
        };
        tokio::time::timeout(timeout, exchange).await.map_err(|_| timed_out())?
    }

    async fn serve(&self, pattern: &str) -> Result<RequestStream, BusError> {
        check_pattern(pattern)?;
        let (sender, requests) = mpsc::channel(WAITING_REQUESTS);
        self.servers.write().unwrap_or_else(PoisonError::into_inner).add(pattern, sender);
        Ok(RequestStream { requests })
    }

    async fn serve_all(&self, pattern: &str) -> Result<RequestStream, BusError> {
        // Within one process none hangs and lives.
        self.serve(pattern).await
    }

    async fn publish(&self, subject: &str, message: Message) -> Result<(), BusError> {
        check_size(&message)?;
        if subject == subjects::REIGN {
            self.reigns.send_modify(|count| *count += 1);
        }
        self.deliver(subject, &message);
        Ok(())
    }

    async fn subscribe(&self, pattern: &str) -> Result<Subscription, BusError> {
        check_pattern(pattern)?;
        let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
        self.subscribers.write().unwrap_or_else(PoisonError::into_inner).add(pattern, sender);
        Ok(Subscription { messages })
    }

    async fn log_tail(&self) -> Result<LogTail, BusError> {
        let log = self.log();
        Ok(match log.tail.as_ref().and_then(|commit| commit.records.last()) {
            None => LogTail::Empty,
            // Everybody who shares this bus is in this process.
            Some(record) => LogTail::Record {
                log: log.id,
                is_own: true,
                last: record.sequence,
                record: Some(Box::new(record.clone())),
            },
        })
    }

    async fn claim_log(&self, id: LogId, last: Record) -> Result<(), BusError> {
        let mut log = self.log();
        log.id = id;
        log.tail.get_or_insert_with(|| Arc::new(Commit { records: vec![last] }));
        Ok(())
    }

    async fn clear_log(&self) -> Result<(), BusError> {
        self.log().tail = None;
        Ok(())
    }

    async fn publish_commit(&self, commit: Arc<Commit>) -> Result<(), BusError> {
        let mut log = self.log();
        let next = log.tail.as_ref().map_or(Sequence(0), |commit| commit.last().next());
        let Some(commit) = crate::feed::from_sequence(commit, next) else { return Ok(()) };
        log.tail = Some(commit.clone());
        log.readers.retain(|reader| reader.push(LogItem::Commit(commit.clone())));
        Ok(())
    }

    async fn follow_log(&self) -> Result<LogStream, BusError> {
        let (writer, stream) = log_queue();
        let mut log = self.log();
        log.readers.retain(|reader| !reader.is_abandoned());
        log.readers.push(writer);
        Ok(stream)
    }

    fn wants_public_events(&self) -> bool {
        self.subscribers.read().unwrap_or_else(PoisonError::into_inner).any_overlapping(subjects::EVENTS_SUBJECTS)
    }

    async fn public_events_tail(&self) -> Result<Option<(Sequence, Option<LogId>)>, BusError> {
        Ok(self.log().tail.as_ref().map(|commit| (commit.last(), None)))
    }

    async fn publish_events(&self, events: Vec<PublicEvent>) -> Result<(), BusError> {
        for event in events {
            self.deliver(&event.subject, &event.message);
        }
        Ok(())
    }

    async fn enqueue(&self, queue: &WorkQueue, key: &str, message: Message) -> Result<(), BusError> {
        check_size(&message)?;
        self.queue(queue).enqueue(key, message);
        Ok(())
    }

    async fn make_queue(&self, queue: &WorkQueue) -> Result<(), BusError> {
        self.queue(queue);
        Ok(())
    }

    async fn worker(&self, queue: &WorkQueue) -> Result<WorkStream, BusError> {
        let worker = LocalWorker::new(self.queue(queue), queue.redeliver_after);
        Ok(WorkStream { source: WorkSource::Local(worker) })
    }

    fn losses(&self) -> watch::Receiver<u64> {
        self.losses.subscribe()
    }

    fn interruptions(&self) -> watch::Receiver<u64> {
        // Nothing interrupts a bus within one process: the count never changes, and neither does that of losses.
        self.losses.subscribe()
    }

    fn reigns(&self) -> watch::Receiver<u64> {
        self.reigns.subscribe()
    }

    fn max_payload_bytes(&self) -> usize {
        MAX_PAYLOAD_BYTES
    }
}
