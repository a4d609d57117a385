//! Work queues: each item goes to one worker, repeatedly until it is acknowledged.

use crate::{
    BusError, Message,
    local::{LocalDelivery, LocalWorker},
    nats::{NatsDelivery, NatsWorker},
};
use std::time::Duration;

/// The items of a queue that this worker gets. Dropping it ends the work; items that it has not handed out go to
/// others.
#[derive(Debug)]
pub struct WorkStream {
    pub(crate) source: WorkSource,
}

#[derive(Debug)]
pub(crate) enum WorkSource {
    Local(LocalWorker),
    Nats(NatsWorker),
}

impl WorkStream {
    /// The next item; `None` when the bus is closed. Cancel safe.
    pub async fn next(&mut self) -> Option<WorkItem> {
        match &mut self.source {
            WorkSource::Local(worker) => worker.next().await,
            WorkSource::Nats(worker) => worker.next().await,
        }
    }
}

/// An item of work. If it is dropped without an acknowledgement, it is delivered again when its time is over.
#[derive(Debug)]
pub struct WorkItem {
    /// The key it was enqueued under; the same in every delivery.
    pub key: String,
    /// The work to do.
    pub message: Message,
    /// How often it was delivered, including this time.
    pub deliveries: u64,
    pub(crate) delivery: Delivery,
}

#[derive(Debug)]
pub(crate) enum Delivery {
    Local(LocalDelivery),
    Nats(Box<NatsDelivery>),
}

impl WorkItem {
    /// The work is done: the item leaves the queue.
    ///
    /// # Errors
    /// The bus is not available: the item will be delivered again.
    pub async fn ack(self) -> Result<(), BusError> {
        match self.delivery {
            Delivery::Local(delivery) => delivery.ack(),
            Delivery::Nats(delivery) => return delivery.ack().await,
        }
        Ok(())
    }

    /// The work failed: deliver the item again after this time.
    ///
    /// # Errors
    /// The bus is not available: the item will be delivered again when its time is over.
    pub async fn retry_after(self, delay: Duration) -> Result<(), BusError> {
        match self.delivery {
            Delivery::Local(delivery) => delivery.retry_after(delay),
            Delivery::Nats(delivery) => return delivery.retry_after(delay).await,
        }
        Ok(())
    }

    /// The work takes longer: the time until redelivery starts again.
    ///
    /// # Errors
    /// The bus is not available.
    pub async fn in_progress(&self) -> Result<(), BusError> {
        match &self.delivery {
            Delivery::Local(delivery) => delivery.in_progress(),
            Delivery::Nats(delivery) => return delivery.in_progress().await,
        }
        Ok(())
    }
}
