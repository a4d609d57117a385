//! The queue between the bus and one reader of the log stream, bounded by records rather than by messages, so that a
//! reader that sleeps costs little memory.

use muster_schemas::event::Commit;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, Weak},
};
use tokio::sync::Notify;

/// A reader that is further behind than this loses what it has not read, and reads it from the ledger.
const MAX_WAITING_RECORDS: usize = 32_768;

/// What a reader of the log stream sees.
#[derive(Clone, Debug, PartialEq)]
pub enum LogItem {
    /// A commit, or a part of one.
    Commit(Arc<Commit>),
    /// Commits may have been lost here.
    Interrupted,
}

#[derive(Debug, Default)]
struct Queue {
    items: VecDeque<LogItem>,
    records: usize,
    closed: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
}

impl Shared {
    fn with_queue<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        // A queue is consistent between any two statements that can panic, so a poisoned lock does no harm.
        change(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The commits that are appended to the log stream, for one reader.
#[derive(Debug)]
pub struct LogStream {
    shared: Arc<Shared>,
}

/// The end of the queue that the bus writes to.
#[derive(Debug)]
pub(crate) struct LogWriter {
    shared: Weak<Shared>,
}

/// A queue for one reader.
pub(crate) fn log_queue() -> (LogWriter, LogStream) {
    let shared = Arc::new(Shared::default());
    (LogWriter { shared: Arc::downgrade(&shared) }, LogStream { shared })
}

impl LogWriter {
    /// Appends an item; `false` if the reader has gone.
    pub(crate) fn push(&self, item: LogItem) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        shared.with_queue(|queue| {
            if let LogItem::Commit(commit) = &item {
                queue.records += commit.records.len();
            }
            queue.items.push_back(item);
            if queue.records > MAX_WAITING_RECORDS {
                queue.items.clear();
                queue.records = 0;
                queue.items.push_back(LogItem::Interrupted);
            }
        });
        shared.arrived.notify_one();
        true
    }

    /// Whether the reader has gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.strong_count() == 0
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.with_queue(|queue| queue.closed = true);
            shared.arrived.notify_one();
        }
    }
}

impl LogStream {
    /// The next item; `None` when the bus is closed. Cancel safe.
    pub async fn next(&mut self) -> Option<LogItem> {
        loop {
            let (item, closed) = self.shared.with_queue(|queue| (pop(queue), queue.closed));
            if item.is_some() || closed {
                return item;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// The next item if there is one already.
    pub fn try_next(&mut self) -> Option<LogItem> {
        self.shared.with_queue(pop)
    }
}

fn pop(queue: &mut Queue) -> Option<LogItem> {
    let item = queue.items.pop_front()?;
    if let LogItem::Commit(commit) = &item {
        queue.records -= commit.records.len();
    }
    Some(item)
}
