use crate::{BusError, LogId, nats::NatsReply};
use bytes::Bytes;
use muster_schemas::{codec, event::TraceContext, ids::Sequence};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::{mpsc, oneshot};

/// A payload and the trace that it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The content; inside the system mostly the bytes of [`muster_schemas::codec`].
    pub payload: Bytes,
    /// The trace, as W3C `traceparent` header on NATS.
    pub trace: TraceContext,
}

impl Message {
    /// A message of these bytes that belongs to no trace.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), trace: TraceContext::default() }
    }

    /// The same message as part of a trace.
    pub fn with_trace(self, trace: TraceContext) -> Self {
        Self { trace, ..self }
    }

    /// A message whose payload is the value, encoded.
    ///
    /// # Errors
    /// The value is too large to be encoded.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, codec::CodecError> {
        codec::encode(value).map(Self::new)
    }

    /// The value that the payload encodes.
    ///
    /// # Errors
    /// The payload is damaged, or encodes something else.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, codec::CodecError> {
        codec::decode(&self.payload)
    }
}

/// A message with the subject that it was published on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Where it was published.
    pub subject: String,
    /// What was published.
    pub message: Message,
}

/// A request that waits for a reply. If it is dropped without one, its sender is told and may ask again.
#[derive(Debug)]
pub struct Request {
    /// The subject that it was sent to.
    pub subject: String,
    /// The question.
    pub message: Message,
    pub(crate) reply_to: ReplyTo,
}

/// Where a reply goes.
#[derive(Debug)]
pub(crate) enum ReplyTo {
    /// To a task of this process.
    Local(oneshot::Sender<Message>),
    /// Over NATS.
    Nats(NatsReply),
}

impl Request {
    /// Answers. It never waits; a reply to a sender who is gone is lost.
    pub fn reply(self, message: Message) {
        match self.reply_to {
            ReplyTo::Local(sender) => drop(sender.send(message)),
            ReplyTo::Nats(reply) => reply.send(message),
        }
    }

    /// Whether nobody is known to wait for the reply any more. Work that changes nothing can then be skipped.
    pub fn is_abandoned(&self) -> bool {
        match &self.reply_to {
            ReplyTo::Local(sender) => sender.is_closed(),
            ReplyTo::Nats(_) => false,
        }
    }
}

/// The requests that arrive for one server. Dropping it ends the service.
#[derive(Debug)]
pub struct RequestStream {
    pub(crate) requests: mpsc::Receiver<Request>,
}

impl RequestStream {
    /// The next request; `None` when the bus is closed. Cancel safe.
    pub async fn next(&mut self) -> Option<Request> {
        self.requests.recv().await
    }

    /// The next request if one has already arrived.
    pub fn try_next(&mut self) -> Option<Request> {
        self.requests.try_recv().ok()
    }

    /// The next request, for a thread outside the async runtime.
    pub fn blocking_next(&mut self) -> Option<Request> {
        self.requests.blocking_recv()
    }

    /// Waits for at least one request and appends those that have arrived, at most `limit`; 0 when the bus is closed.
    /// Cancel safe.
    pub async fn next_many(&mut self, requests: &mut Vec<Request>, limit: usize) -> usize {
        self.requests.recv_many(requests, limit).await
    }
}

/// The messages published on the subjects subscribed to. Dropping it ends the subscription. A subscriber that is too
/// slow loses messages.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) messages: mpsc::Receiver<Published>,
}

impl Subscription {
    /// The next message; `None` when the bus is closed. Cancel safe.
    pub async fn next(&mut self) -> Option<Published> {
        self.messages.recv().await
    }

    /// The next message if one has already arrived.
    pub fn try_next(&mut self) -> Option<Published> {
        self.messages.try_recv().ok()
    }
}

/// A pattern that can be served or subscribed to.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), BusError> {
    match crate::subject::fault(pattern) {
        None => Ok(()),
        Some(fault) => Err(BusError::Unusable(format!("`{pattern}` is no subject pattern: {fault}"))),
    }
}

/// A lifecycle event for integrations.
#[derive(Clone, Debug)]
pub struct PublicEvent {
    /// The record that it describes.
    pub sequence: Sequence,
    /// The id that the log got when it was restored; `None` if it never was. Numbers of records are given again after a
    /// restore: both together are the key by which duplicates are dropped.
    pub log: Option<LogId>,
    /// Where it is published, below `muster.events`.
    pub subject: String,
    /// A CloudEvent in JSON.
    pub message: Message,
}
