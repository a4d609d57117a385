//! The queue between the bus and one reader of the log stream, bounded by records rather than messages, so that a
//! reader that sleeps costs little memory.

use muster_schemas::event::Commit;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Notify;

/// A reader further behind than this loses what it has not read, and reads it from the ledger.
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
    writer_gone: bool,
    reader_gone: bool,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    arrived: Notify,
    abandoned: Notify,
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
    shared: Arc<Shared>,
}

/// A queue for one reader.
pub(crate) fn log_queue() -> (LogWriter, LogStream) {
    let shared = Arc::new(Shared::default());
    (LogWriter { shared: shared.clone() }, LogStream { shared })
}

impl LogWriter {
    /// Appends an item; `false` if the reader is gone.
    pub(crate) fn push(&self, item: LogItem) -> bool {
        let reader_gone = self.shared.with_queue(|queue| {
            if !queue.reader_gone {
                push(queue, item);
            }
            queue.reader_gone
        });
        self.shared.arrived.notify_one();
        !reader_gone
    }

    /// Whether the reader is gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.shared.with_queue(|queue| queue.reader_gone)
    }

    /// Waits until the reader is gone.
    pub(crate) async fn abandoned(&self) {
        while !self.is_abandoned() {
            self.shared.abandoned.notified().await;
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.with_queue(|queue| queue.writer_gone = true);
        self.shared.arrived.notify_one();
    }
}

impl Drop for LogStream {
    fn drop(&mut self) {
        self.shared.with_queue(|queue| *queue = Queue { reader_gone: true, ..Queue::default() });
        self.shared.abandoned.notify_one();
    }
}

impl LogStream {
    /// The next item; `None` when the bus is closed. Cancel safe.
    pub async fn next(&mut self) -> Option<LogItem> {
        loop {
            let (item, closed) = self.shared.with_queue(|queue| (pop(queue), queue.writer_gone));
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

fn push(queue: &mut Queue, item: LogItem) {
    if let LogItem::Commit(commit) = &item {
        queue.records += commit.records.len();
    }
    queue.items.push_back(item);
    if queue.records > MAX_WAITING_RECORDS {
        queue.items.clear();
        queue.records = 0;
        queue.items.push_back(LogItem::Interrupted);
    }
}

fn pop(queue: &mut Queue) -> Option<LogItem> {
    let item = queue.items.pop_front()?;
    if let LogItem::Commit(commit) = &item {
        queue.records -= commit.records.len();
    }
    Some(item)
}
