//! Replies over NATS.

use super::headers::{self, HEADER_BYTES};
use crate::{BusError, Message};
use async_nats::Client;
use tokio::sync::mpsc;

/// The reply to a request that its server dropped.
const DROPPED: &str = "dropped";
/// The reply that replaces one larger than the server takes.
const TOO_LARGE: &str = "too large";

/// A reply on its way out; `None` if its request was dropped.
#[derive(Debug)]
pub(super) struct Outgoing {
    inbox: String,
    reply: Option<Message>,
}

/// The place for the reply to one request. If it is dropped, the requester is told.
#[derive(Debug)]
pub(crate) struct NatsReply {
    replies: mpsc::UnboundedSender<Outgoing>,
    inbox: Option<String>,
}

impl NatsReply {
    pub(super) const fn new(replies: mpsc::UnboundedSender<Outgoing>, inbox: String) -> Self {
        Self { replies, inbox: Some(inbox) }
    }

    pub(crate) fn send(mut self, message: Message) {
        self.hand_over(Some(message));
    }

    fn hand_over(&mut self, reply: Option<Message>) {
        if let Some(inbox) = self.inbox.take() {
            drop(self.replies.send(Outgoing { inbox, reply }));
        }
    }
}

impl Drop for NatsReply {
    fn drop(&mut self) {
        self.hand_over(None);
    }
}

/// Sends replies, so that servers of requests need not wait for the network.
pub(super) async fn send_replies(client: Client, mut outgoing: mpsc::UnboundedReceiver<Outgoing>) {
    while let Some(Outgoing { inbox, reply }) = outgoing.recv().await {
        let bytes = reply.as_ref().map_or(0, |message| message.payload.len());
        let sent = match reply {
            None => send_failure(&client, inbox, DROPPED).await,
            Some(_) if bytes + HEADER_BYTES > client.max_payload() => {
                tracing::error!(bytes, limit = client.max_payload(), "a reply is larger than the NATS server takes");
                send_failure(&client, inbox, TOO_LARGE).await
            }
            Some(message) => {
                client.publish_with_headers(inbox, headers::of_trace(&message.trace), message.payload).await
            }
        };
        if let Err(error) = sent {
            tracing::warn!(%error, "a reply could not be sent");
        }
    }
}

async fn send_failure(client: &Client, inbox: String, why: &str) -> Result<(), async_nats::PublishError> {
    let mut headers = async_nats::HeaderMap::new();
    headers.insert(headers::NO_REPLY, why);
    client.publish_with_headers(inbox, headers, bytes::Bytes::new()).await
}

/// Reads the reply to a request.
pub(super) fn read(subject: &str, arrived: async_nats::Message) -> Result<Message, BusError> {
    let failure = arrived.headers.as_ref().and_then(|headers| headers.get(headers::NO_REPLY));
    match failure.map(async_nats::HeaderValue::as_str) {
        None => Ok(headers::received(arrived).1),
        Some(TOO_LARGE) => {
            Err(BusError::Unusable(format!("the reply on `{subject}` is larger than the NATS server takes")))
        }
        Some(_) => Err(BusError::TimedOut { subject: subject.to_owned() }),
    }
}
