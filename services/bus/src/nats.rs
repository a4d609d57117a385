//! The bus between processes and machines: NATS, with JetStream for what must be stored.

use crate::{
    Bus, BusError, LogId, LogStream, LogTail, Message, PublicEvent, Published, Request, RequestStream, Subscription,
    message::{ReplyTo, check_pattern},
    pause::Backoff,
    queue::WorkQueue,
    work::{WorkSource, WorkStream},
};
use async_nats::{
    RequestErrorKind,
    client::PublishErrorKind,
    connection::State,
    jetstream::{self, message::PublishMessage},
};
use async_trait::async_trait;
use connection::SERVER_TIMEOUT;
use futures::StreamExt;
use headers::HEADER_BYTES;
use muster_schemas::{
    event::{Commit, Record},
    ids::Sequence,
    subjects,
};
use shared::{Core, is_delivery, unavailable};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

mod config;
pub(crate) mod connection;
mod headers;
mod kept;
mod log;
mod reply;
mod rounds;
mod shared;
mod streams;
mod work;

pub use config::{NatsConfig, StreamLimits};
pub(crate) use reply::NatsReply;
pub use rounds::{NatsRounds, RoundsHealth};
pub(crate) use work::{NatsDelivery, NatsWorker};

/// Servers of one subject share its requests by being in this queue group.
const QUEUE_GROUP: &str = "muster";
/// Nobody serves this subject: the server's answer shows that it has seen everything sent before.
const NOBODY: &str = "muster.nobody";
/// Messages and requests that wait in this process, in addition to those that wait in the NATS client.
const WAITING: usize = 1024;

/// The bus over NATS. It survives restarts of the server, and the loss of everything that the server stored.
#[derive(Debug)]
pub struct NatsBus {
    core: Arc<Core>,
    log: log::LogAppender,
    _stop_tasks: DropGuard,
}

impl NatsBus {
    /// Connects, and waits while the server cannot be reached.
    ///
    /// # Errors
    /// [`BusError::Unusable`] if waiting does not help: the address is malformed, a file cannot be read, or the server
    /// rejects the credentials, has no JetStream or is older than 2.11.
    pub async fn connect(config: NatsConfig) -> Result<Arc<Self>, BusError> {
        let (client, connections) = connection::connect(&config, connection::ping_interval(&config)).await?;
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(SERVER_TIMEOUT);
        let stop = CancellationToken::new();
        let (replies, outgoing) = mpsc::unbounded_channel();
        let streams = kept::Streams::default();
        let heard = client.subscribe(subjects::REIGN).await.map_err(unavailable)?;
        let (count, reigns) = watch::channel(0);
        let core =
            Arc::new(Core { client, jetstream, connections, reigns, streams, replies, config, stop: stop.clone() });
        core.spawn(count_reigns(heard, count));
        core.spawn(reply::send_replies(core.client.clone(), outgoing));
        core.spawn(streams::watch_over(core.clone()));
        Ok(Arc::new(Self { core, log: log::LogAppender::default(), _stop_tasks: stop.drop_guard() }))
    }
}

impl Core {
    /// Runs a task until the bus is dropped.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// The outcome of work that needs an answer from the server, or `None` if the client reconnected meanwhile: the
    /// answer can then be lost.
    async fn unless_reconnected<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut connections = self.connections.clone();
        connections.mark_unchanged();
        tokio::select! {
            biased;
            outcome = work => Some(outcome),
            Ok(()) = connections.changed() => None,
        }
    }

    async fn request(&self, subject: &str, message: Message, timeout: Duration) -> Result<Message, BusError> {
        self.check_connected()?;
        let bytes = message.payload.len();
        let request = async_nats::Request::new()
            .headers(headers::of_trace(&message.trace))
            .payload(message.payload)
            .timeout(Some(timeout));
        let timed_out = || BusError::TimedOut { subject: subject.to_owned() };
        let reply = self.unless_reconnected(self.client.send_request(subject.to_owned(), request)).await;
        match reply.ok_or_else(timed_out)? {
            Ok(reply) => reply::read(subject, reply),
            Err(error) => Err(match error.kind() {
                RequestErrorKind::NoResponders => BusError::NoResponder { subject: subject.to_owned() },
                RequestErrorKind::TimedOut => timed_out(),
                RequestErrorKind::MaxPayloadExceeded => self.too_large(bytes),
                RequestErrorKind::InvalidSubject => BusError::Unusable(format!("`{subject}` is no subject")),
                RequestErrorKind::Other => unavailable(error),
            }),
        }
    }

    /// Passes on what arrives as requests, until nobody takes them any more.
    async fn take_requests(&self, mut subscriber: async_nats::Subscriber) -> RequestStream {
        self.round_trip().await;
        let (sender, requests) = mpsc::channel(WAITING);
        let replies = self.replies.clone();
        self.spawn(async move {
            while let Some(arrived) = next_unless_closed(&mut subscriber, &sender).await {
                let Some(inbox) = &arrived.reply else { continue };
                // The requester chooses where the answer goes. It must not go where only this process may publish.
                if !inbox.starts_with(config::INBOX) {
                    tracing::warn!(subject = %arrived.subject, reply = %inbox, "a request whose answer should go to no inbox is dropped");
                    continue;
                }
                let reply_to = ReplyTo::Nats(NatsReply::new(replies.clone(), inbox.to_string()));
                let (subject, message) = headers::received(arrived);
                drop(sender.send(Request { subject, message, reply_to }).await);
            }
        });
        RequestStream { requests }
    }

    fn too_large(&self, bytes: usize) -> BusError {
        BusError::TooLarge { bytes, limit: self.max_payload_bytes() }
    }

    fn max_payload_bytes(&self) -> usize {
        self.client.max_payload().saturating_sub(HEADER_BYTES)
    }

    /// Waits until the server has seen everything that this client has sent, and until the server is back if it is
    /// away.
    async fn round_trip(&self) {
        let mut backoff = Backoff::patient();
        loop {
            match self.request(NOBODY, Message::default(), SERVER_TIMEOUT).await {
                Err(error @ BusError::Unavailable(_)) => tracing::debug!(%error, "waiting for the NATS server"),
                // A new connection has its subscriptions from its start. A server that does not let this user ask is
                // silent: then the time it was given is enough.
                _ => return,
            }
            backoff.pause().await;
        }
    }

    /// Without a server, messages would wait in the client and arrive when nobody wants them any more.
    fn check_connected(&self) -> Result<(), BusError> {
        match self.client.connection_state() {
            State::Connected => Ok(()),
            _ => Err(BusError::Unavailable("the NATS server is away".to_owned())),
        }
    }

    /// A message that JetStream stores once, however often it is sent within the duplicate window.
    fn kept(&self, key: &str, message: Message) -> PublishMessage {
        PublishMessage::build().headers(headers::of_trace(&message.trace)).payload(message.payload).message_id(key)
    }
}

#[async_trait]
impl Bus for NatsBus {
    async fn request(&self, subject: &str, message: Message, timeout: Duration) -> Result<Message, BusError> {
        self.core.request(subject, message, timeout).await
    }

    async fn serve(&self, pattern: &str) -> Result<RequestStream, BusError> {
        check_pattern(pattern)?;
        let group = QUEUE_GROUP.to_owned();
        let subscriber = self.core.client.queue_subscribe(pattern.to_owned(), group).await.map_err(unavailable)?;
        Ok(self.core.take_requests(subscriber).await)
    }

    async fn serve_all(&self, pattern: &str) -> Result<RequestStream, BusError> {
        check_pattern(pattern)?;
        let subscriber = self.core.client.subscribe(pattern.to_owned()).await.map_err(unavailable)?;
        Ok(self.core.take_requests(subscriber).await)
    }

    async fn publish(&self, subject: &str, message: Message) -> Result<(), BusError> {
        self.core.check_connected()?;
        let bytes = message.payload.len();
        let headers = headers::of_trace(&message.trace);
        let sent = self.core.client.publish_with_headers(subject.to_owned(), headers, message.payload).await;
        sent.map_err(|error| match error.kind() {
            PublishErrorKind::MaxPayloadExceeded => self.core.too_large(bytes),
            _ => unavailable(error),
        })
    }

    async fn subscribe(&self, pattern: &str) -> Result<Subscription, BusError> {
        check_pattern(pattern)?;
        let mut subscriber = self.core.client.subscribe(pattern.to_owned()).await.map_err(unavailable)?;
        self.core.round_trip().await;
        let (sender, messages) = mpsc::channel(WAITING);
        self.core.spawn(async move {
            while let Some(arrived) = next_unless_closed(&mut subscriber, &sender).await {
                if is_delivery(&arrived) {
                    continue;
                }
                let (subject, message) = headers::received(arrived);
                drop(sender.send(Published { subject, message }).await);
            }
        });
        Ok(Subscription { messages })
    }

    async fn log_tail(&self) -> Result<LogTail, BusError> {
        self.log.find_tail(&self.core).await
    }

    async fn claim_log(&self, log: LogId, last: Record) -> Result<(), BusError> {
        self.log.claim(&self.core, log, last).await
    }

    async fn clear_log(&self) -> Result<(), BusError> {
        self.log.clear(&self.core).await
    }

    async fn publish_commit(&self, commit: Arc<Commit>) -> Result<(), BusError> {
        self.log.append(&self.core, commit).await
    }

    async fn follow_log(&self) -> Result<LogStream, BusError> {
        log::follow(self.core.clone()).await
    }

    fn wants_public_events(&self) -> bool {
        true
    }

    async fn public_events_tail(&self) -> Result<Option<(Sequence, Option<LogId>)>, BusError> {
        self.core.public_events_tail().await
    }

    async fn publish_events(&self, events: Vec<PublicEvent>) -> Result<(), BusError> {
        self.core.publish_events(events).await
    }

    async fn enqueue(&self, queue: &WorkQueue, key: &str, message: Message) -> Result<(), BusError> {
        work::enqueue(&self.core, queue, key, message).await
    }

    async fn make_queue(&self, queue: &WorkQueue) -> Result<(), BusError> {
        work::make(&self.core, queue).await
    }

    async fn worker(&self, queue: &WorkQueue) -> Result<WorkStream, BusError> {
        Ok(WorkStream { source: WorkSource::Nats(NatsWorker::new(&self.core, queue.clone())) })
    }

    fn losses(&self) -> watch::Receiver<u64> {
        self.core.streams.losses()
    }

    fn interruptions(&self) -> watch::Receiver<u64> {
        let mut connections = self.core.connections.clone();
        connections.mark_unchanged();
        connections
    }

    fn reigns(&self) -> watch::Receiver<u64> {
        let mut reigns = self.core.reigns.clone();
        reigns.mark_unchanged();
        reigns
    }

    fn max_payload_bytes(&self) -> usize {
        self.core.max_payload_bytes()
    }
}

/// Counts the ledgers that say that they answer from now on.
async fn count_reigns(mut heard: async_nats::Subscriber, count: watch::Sender<u64>) {
    while let Some(arrived) = heard.next().await {
        if !is_delivery(&arrived) {
            count.send_modify(|count| *count += 1);
        }
    }
}

/// The next message, or `None` once nobody wants it any more. Dropping the subscriber ends the subscription.
async fn next_unless_closed<T>(
    subscriber: &mut async_nats::Subscriber,
    sender: &mpsc::Sender<T>,
) -> Option<async_nats::Message> {
    tokio::select! {
        () = sender.closed() => None,
        message = subscriber.next() => message,
    }
}
