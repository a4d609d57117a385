//! A work queue in memory. An item stays in the queue until it is acknowledged; a delivery only postpones its next
//! delivery.

use crate::{Message, WorkItem, pause::after, work::Delivery};
use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// A key is remembered this long, as on NATS.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
pub(crate) struct LocalQueue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<u64, Entry>,
    /// When each entry can be delivered next.
    due: BTreeSet<(Instant, u64)>,
    next_id: u64,
    seen: HashSet<String>,
    seen_order: VecDeque<(Instant, String)>,
}

#[derive(Debug)]
struct Entry {
    key: String,
    message: Message,
    deliveries: u64,
    due: Instant,
}

impl State {
    fn move_due(&mut self, id: u64, due: Instant) {
        if let Some(entry) = self.entries.get_mut(&id) {
            self.due.remove(&(entry.due, id));
            self.due.insert((due, id));
            entry.due = due;
        }
    }

    /// Whether the key is new within the window.
    fn note_key(&mut self, key: &str, now: Instant) -> bool {
        while let Some((_, old)) =
            self.seen_order.pop_front_if(|(seen, _)| now.duration_since(*seen) > DUPLICATE_WINDOW)
        {
            self.seen.remove(&old);
        }
        let new = self.seen.insert(key.to_owned());
        if new {
            self.seen_order.push_back((now, key.to_owned()));
        }
        new
    }
}

impl LocalQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing between two changes of the state can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enqueue(&self, key: &str, message: Message) {
        let now = Instant::now();
        let mut state = self.state();
        if !state.note_key(key, now) {
            return;
        }
        let id = state.next_id;
        state.next_id += 1;
        state.entries.insert(id, Entry { key: key.to_owned(), message, deliveries: 0, due: now });
        state.due.insert((now, id));
        drop(state);
        self.changed.notify_waiters();
    }

    /// An item that is due, or when to look again.
    fn take(self: &Arc<Self>, redeliver_after: Duration) -> Result<WorkItem, Option<Instant>> {
        let now = Instant::now();
        let mut state = self.state();
        let Some(&(due, id)) = state.due.first() else { return Err(None) };
        if due > now {
            return Err(Some(due));
        }
        state.move_due(id, after(redeliver_after));
        let Some(entry) = state.entries.get_mut(&id) else { return Err(None) };
        entry.deliveries += 1;
        let item = WorkItem {
            key: entry.key.clone(),
            message: entry.message.clone(),
            deliveries: entry.deliveries,
            delivery: Delivery::Local(LocalDelivery { queue: self.clone(), id, redeliver_after }),
        };
        drop(state);
        // The others have to look again in case this worker does not finish.
        self.changed.notify_waiters();
        Ok(item)
    }
}

#[derive(Debug)]
pub(crate) struct LocalWorker {
    queue: Arc<LocalQueue>,
    redeliver_after: Duration,
}

impl LocalWorker {
    pub(crate) const fn new(queue: Arc<LocalQueue>, redeliver_after: Duration) -> Self {
        Self { queue, redeliver_after }
    }

    pub(crate) async fn next(&mut self) -> Option<WorkItem> {
        loop {
            // Created before looking, so that no change in between is missed.
            let changed = self.queue.changed.notified();
            match self.queue.take(self.redeliver_after) {
                Ok(item) => return Some(item),
                Err(Some(due)) => drop(tokio::time::timeout_at(due, changed).await),
                Err(None) => changed.await,
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct LocalDelivery {
    queue: Arc<LocalQueue>,
    id: u64,
    redeliver_after: Duration,
}

impl LocalDelivery {
    pub(crate) fn ack(self) {
        let mut state = self.queue.state();
        if let Some(entry) = state.entries.remove(&self.id) {
            state.due.remove(&(entry.due, self.id));
        }
    }

    pub(crate) fn retry_after(self, delay: Duration) {
        self.due_in(delay);
    }

    pub(crate) fn in_progress(&self) {
        self.due_in(self.redeliver_after);
    }

    fn due_in(&self, delay: Duration) {
        self.queue.state().move_due(self.id, after(delay));
        self.queue.changed.notify_waiters();
    }
}
