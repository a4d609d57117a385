//! Work queues on JetStream.

use super::{Core, headers, streams, unavailable};
use crate::{BusError, Message, WorkItem, WorkQueue, pause::Backoff, work::Delivery};
use async_nats::{
    header::NATS_MESSAGE_ID,
    jetstream::{
        self, AckKind,
        consumer::{Consumer, pull},
        context::PublishErrorKind,
    },
};
use futures::StreamExt;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// How long the server holds a request for an item before the worker repeats it.
const PULL_EXPIRES: Duration = Duration::from_secs(30);

pub(super) async fn make(core: &Core, queue: &WorkQueue) -> Result<(), BusError> {
    core.check_connected()?;
    core.ensure(&streams::queue_stream(&core.config, queue)).await
}

pub(super) async fn enqueue(core: &Core, queue: &WorkQueue, key: &str, message: Message) -> Result<(), BusError> {
    let bytes = message.payload.len();
    core.check_connected()?;
    core.ensure(&streams::queue_stream(&core.config, queue)).await?;
    let sent = core.jetstream.send_publish(queue.subject.to_string(), core.kept(key, message)).await;
    let sent = sent.map_err(|error| match error.kind() {
        PublishErrorKind::MaxPayloadExceeded => core.too_large(bytes),
        _ => unavailable(error),
    })?;
    core.acknowledged(&queue.name, sent.into_future()).await.map(drop)
}

/// A worker. It asks the server for an item only when its user does, so that no item waits here while its time until
/// redelivery runs.
#[derive(Debug)]
pub(crate) struct NatsWorker {
    wishes: mpsc::Sender<()>,
    items: mpsc::Receiver<WorkItem>,
    wished: bool,
}

impl NatsWorker {
    pub(super) fn new(core: &Arc<Core>, queue: WorkQueue) -> Self {
        let (wishes, wished) = mpsc::channel(1);
        let (sender, items) = mpsc::channel(1);
        core.spawn(fetch_items(core.clone(), queue, wished, sender));
        Self { wishes, items, wished: false }
    }

    pub(crate) async fn next(&mut self) -> Option<WorkItem> {
        if !self.wished {
            self.wishes.send(()).await.ok()?;
            self.wished = true;
        }
        let item = self.items.recv().await;
        self.wished = false;
        item
    }
}

async fn fetch_items(core: Arc<Core>, queue: WorkQueue, mut wishes: mpsc::Receiver<()>, items: mpsc::Sender<WorkItem>) {
    let mut consumer = None;
    while wishes.recv().await.is_some() {
        let item = tokio::select! {
            () = items.closed() => return,
            item = fetch_item(&core, &queue, &mut consumer) => item,
        };
        drop(items.send(item).await);
    }
}

/// The next item, however long it takes.
async fn fetch_item(core: &Core, queue: &WorkQueue, consumer: &mut Option<Consumer<pull::Config>>) -> WorkItem {
    let mut backoff = Backoff::patient();
    loop {
        match core.unless_reconnected(try_fetch(core, queue, consumer)).await {
            Some(Ok(Some(item))) => return item,
            Some(Ok(None)) => {}
            None => *consumer = None,
            Some(Err(error)) => {
                tracing::warn!(queue = %queue.name, %error, "waiting for the work queue");
                *consumer = None;
                backoff.pause().await;
            }
        }
    }
}

async fn try_fetch(
    core: &Core,
    queue: &WorkQueue,
    consumer: &mut Option<Consumer<pull::Config>>,
) -> Result<Option<WorkItem>, BusError> {
    let consumer = match consumer {
        Some(consumer) => consumer,
        None => consumer.insert(open_consumer(core, queue).await?),
    };
    // No heartbeats: a batch of async-nats 0.51 that has seen one is not woken by the next item.
    let batch = consumer.fetch().max_messages(1).expires(PULL_EXPIRES).messages();
    let arrived = batch.await.map_err(unavailable)?.next().await;
    arrived.transpose().map_err(unavailable).map(|message| message.map(item))
}

/// The consumer that the producers of the queue have made.
async fn open_consumer(core: &Core, queue: &WorkQueue) -> Result<Consumer<pull::Config>, BusError> {
    let name = queue.name.to_string();
    core.jetstream.get_consumer_from_stream(streams::WORKERS, name).await.map_err(unavailable)
}

fn item(arrived: jetstream::Message) -> WorkItem {
    let deliveries = arrived.info().map_or(1, |info| u64::try_from(info.delivered).unwrap_or(1));
    let (message, acker) = arrived.split();
    let key = message.headers.as_ref().and_then(|headers| headers.get(NATS_MESSAGE_ID));
    let key = key.map(ToString::to_string).unwrap_or_default();
    let (_, message) = headers::received(message);
    WorkItem { key, message, deliveries, delivery: Delivery::Nats(Box::new(NatsDelivery { acker })) }
}

/// The server's side of a delivered item.
pub(crate) struct NatsDelivery {
    acker: jetstream::message::Acker,
}

impl std::fmt::Debug for NatsDelivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NatsDelivery").finish_non_exhaustive()
    }
}

impl NatsDelivery {
    pub(crate) async fn ack(self) -> Result<(), BusError> {
        self.acker.double_ack().await.map_err(unavailable)
    }

    pub(crate) async fn retry_after(self, delay: Duration) -> Result<(), BusError> {
        self.acker.double_ack_with(AckKind::Nak(Some(delay))).await.map_err(unavailable)
    }

    pub(crate) async fn in_progress(&self) -> Result<(), BusError> {
        self.acker.ack_with(AckKind::Progress).await.map_err(unavailable)
    }
}
