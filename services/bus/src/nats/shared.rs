//! What the bus and its tasks share.

use super::{config::NatsConfig, kept::Streams, reply::Outgoing};
use crate::BusError;
use async_nats::{Client, jetstream};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// What the bus and its tasks share.
#[derive(Debug)]
pub(super) struct Core {
    pub client: Client,
    pub jetstream: jetstream::Context,
    /// Counts connections: it changes when the client loses the server and finds it again.
    pub connections: watch::Receiver<u64>,
    /// Counts how often a ledger has said that it answers from now on.
    pub reigns: watch::Receiver<u64>,
    pub streams: Streams,
    pub replies: mpsc::UnboundedSender<Outgoing>,
    pub config: NatsConfig,
    pub stop: CancellationToken,
}

/// An error of the client library that a retry may cure.
pub(super) fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

/// Whether JetStream delivers this message and nobody published it: a worker of a queue can have its items delivered to
/// any subject. Subscribers must not see such a message.
pub(super) fn is_delivery(arrived: &async_nats::Message) -> bool {
    let delivered = arrived.reply.as_ref().is_some_and(|reply| reply.starts_with("$JS."));
    if delivered {
        tracing::warn!(subject = %arrived.subject, "an item of a queue was delivered to where it does not belong");
    }
    delivered
}
