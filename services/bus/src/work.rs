//! Work queues: each item to one worker, again and again until it is acknowledged.

use crate::{
    BusError, Message,
    local::{LocalDelivery, LocalWorker},
    nats::{NatsDelivery, NatsWorker},
};
use muster_schemas::subjects;
use std::{borrow::Cow, time::Duration};

/// A work queue. All who use it name it with the same values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkQueue {
    /// Its name: that of a JetStream stream on NATS.
    pub name: Cow<'static, str>,
    /// The subject of its items.
    pub subject: Cow<'static, str>,
    /// An item that was not acknowledged for so long after its delivery is delivered again.
    pub redeliver_after: Duration,
}

impl WorkQueue {
    /// Notifications to deliver.
    pub const NOTIFY: Self = Self {
        name: Cow::Borrowed(subjects::NOTIFY_STREAM),
        subject: Cow::Borrowed(subjects::NOTIFY_SUBJECT),
        redeliver_after: Duration::from_secs(30),
    };

    /// Calls of filters for which a program is started. A runner acknowledges an item when its claim of the call is answered: from then on
    /// the ledger watches over the call.
    pub const FILTERS: Self = Self {
        name: Cow::Borrowed(subjects::FILTERS_STREAM),
        subject: Cow::Borrowed(subjects::FILTERS_SUBJECT),
        redeliver_after: Duration::from_secs(5),
    };

    /// Calls for which none is started, of persistent filters and of the checks behind the filters; acknowledged as those of
    /// [`WorkQueue::FILTERS`].
    pub const CHECKS: Self = Self {
        name: Cow::Borrowed(subjects::CHECKS_STREAM),
        subject: Cow::Borrowed(subjects::CHECKS_SUBJECT),
        redeliver_after: Duration::from_secs(5),
    };
}

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

/// An item of work. One that is dropped without an acknowledgement is delivered again when its time is over.
#[derive(Debug)]
pub struct WorkItem {
    /// What it was enqueued under; the same in every delivery.
    pub key: String,
    /// What there is to do.
    pub message: Message,
    /// How often it was delivered, this time included.
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

    /// The work takes longer: the time until redelivery begins anew.
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
