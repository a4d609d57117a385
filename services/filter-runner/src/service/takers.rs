//! Takes items from a queue, as many as the runner can work on.

use super::{
    Service,
    claim::{Claim, Room},
};
use muster_bus::{WorkItem, WorkStream};
use muster_schemas::{
    filter::FilterForm,
    filter_order::{FilterOrder, FilterWork},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// When a call is offered again that this runner has no room for or may not make.
const GIVE_BACK_FOR: Duration = Duration::from_millis(500);

/// Takes items one by one.
pub(super) struct Taker {
    pub(super) service: Arc<Service>,
    pub(super) items: WorkStream,
    pub(super) claims: mpsc::Sender<Claim>,
    /// Whether a program is started for each item, which takes a slot.
    pub(super) starts_programs: bool,
}

impl Taker {
    pub(super) async fn run(mut self) {
        loop {
            // Do not take items that would only wait here: another runner may have a slot.
            let slot = if self.starts_programs { permit(&self.service.slots).await } else { None };
            let Some(item) = self.next().await else { return };
            let claim = match item.message.decode::<FilterOrder>() {
                Ok(order) => self.claim(item, order, slot).await,
                Err(error) => {
                    tracing::error!(key = item.key, %error, "dropping a call that cannot be read");
                    acknowledge(item).await;
                    None
                }
            };
            if let Some(claim) = claim
                && self.claims.send(claim).await.is_err()
            {
                return;
            }
        }
    }

    async fn next(&mut self) -> Option<WorkItem> {
        let _waits = self.starts_programs.then(|| Waits::begin(&self.service.waiting));
        self.items.next().await
    }

    /// The claim to make; `None` if the item was given back.
    async fn claim(&self, item: WorkItem, order: FilterOrder, slot: Option<OwnedSemaphorePermit>) -> Option<Claim> {
        if self.service.calls.has(order.call) {
            // The same call came twice. If the claim fails, this one comes again.
            return None;
        }
        if self.service.calls.is_absent(order.call) {
            give_back(item).await;
            return None;
        }
        match self.room(&order.work, slot).await {
            Some(room) => Some(Claim { item, order, room }),
            None => {
                give_back(item).await;
                None
            }
        }
    }

    async fn room(&self, work: &FilterWork, slot: Option<OwnedSemaphorePermit>) -> Option<Room> {
        match work {
            FilterWork::Validate { .. } => permit(&self.service.checks).await.map(Room::Slot),
            FilterWork::Filter { filter, .. } if filter.form == FilterForm::Persistent => {
                self.service.lanes.enter(&filter.name).await.map(Room::Lane)
            }
            FilterWork::Filter { .. } => slot.map(Room::Slot),
        }
    }
}

/// Counts a waiting taker until it is dropped.
struct Waits<'c>(&'c AtomicUsize);

impl<'c> Waits<'c> {
    fn begin(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn permit(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).acquire_owned().await.ok()
}

async fn give_back(item: WorkItem) {
    if let Err(error) = item.retry_after(GIVE_BACK_FOR).await {
        tracing::debug!(%error, "a call comes again by itself");
    }
}

/// Takes an item out of the queue.
pub(super) async fn acknowledge(item: WorkItem) {
    let key = item.key.clone();
    if let Err(error) = item.ack().await {
        tracing::debug!(key, %error, "a call that is claimed comes once more");
    }
}
