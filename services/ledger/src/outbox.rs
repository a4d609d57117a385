//! Messages from the ledger to the bus, sent once they are on disk: commits to the log stream, public events,
//! notifications to deliver, calls of filters, orders to nodes. None of them ever holds up the decide loop: a reader
//! that falls behind continues from the log.

use crate::{
    calls::{self, Offer},
    causes::CausesInLog,
    checks::Checks,
    descriptions,
    dispatch::{self, Desk, Letters, OrderWriter},
    fence::{Fence, Guard, patiently},
    log::{Head, LogError},
    names::Names,
    storage::Storage,
};
use muster_bus::{BusError, Message, PublicEvent, SharedBus, WorkQueue};
use muster_schemas::{
    codec,
    command::Refusal,
    event::{Commit, TraceContext, uuid_bytes::UuidBytes},
    filter_order::FilterOrder,
    ids::Sequence,
    job::Program,
    node::{NodeOrder, OrderEnvelope},
    notify::NotifyItem,
    output, public, subjects,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Commits that wait for a slow bus; later ones are read from the log.
const WAITING_COMMITS: usize = 256;
/// Calls of filters that wait for a slow bus; the decide loop offers later ones again.
const WAITING_CALLS: usize = 4096;
/// The number of calls put into the queues at a time.
const CALLS_AT_A_TIME: usize = 64;
/// Bytes of records that are read from the log and published together.
const PAGE_BYTES: usize = 512 << 10;
/// How often to look at the end of the log when the decide loop is silent.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The first pause after an error of the bus.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The decide loop's end of everything that it publishes.
pub(crate) struct Outlets {
    head: watch::Sender<Head>,
    commits: Vec<mpsc::Sender<Arc<Commit>>>,
    notices: watch::Sender<()>,
    calls: mpsc::Sender<Offer>,
    /// Takes orders to nodes.
    pub(crate) orders: Desk,
    losses: watch::Receiver<u64>,
    fence: Fence,
}

impl Outlets {
    /// Why nothing may be answered now; `None` if it may.
    pub(crate) fn objection(&self) -> Option<Refusal> {
        self.fence.objection()
    }

    /// The log is on disk up to here.
    pub(crate) fn durable(&self, head: Head) {
        self.head.send_if_modified(|known| std::mem::replace(known, head) != head);
    }

    /// Publishes records that are on disk.
    pub(crate) fn committed(&self, commit: &Arc<Commit>, notices: bool) {
        for commits in &self.commits {
            // A commit that does not fit is read from the log later.
            let _ = commits.try_send(Arc::clone(commit));
        }
        if notices {
            self.notices.send_replace(());
        }
    }

    /// Offers a call of a filter; returns whether it was taken.
    pub(crate) fn call(&self, offer: Offer) -> bool {
        self.calls.try_send(offer).is_ok()
    }

    /// How often the bus has lost its store.
    pub(crate) fn losses(&self) -> u64 {
        *self.losses.borrow()
    }
}

/// The other end, read by the tasks of the outbox.
pub(crate) struct Inlets {
    /// The end of the log that is on disk.
    pub(crate) head: watch::Receiver<Head>,
    for_stream: mpsc::Receiver<Arc<Commit>>,
    for_events: mpsc::Receiver<Arc<Commit>>,
    notices: watch::Receiver<()>,
    calls: mpsc::Receiver<Offer>,
}

impl Inlets {
    /// Takes what has arrived, without the tasks of the outbox.
    pub(crate) fn drain(&mut self, commits: &mut Vec<Arc<Commit>>, calls: &mut Vec<Offer>) {
        commits.extend(std::iter::from_fn(|| self.for_stream.try_recv().ok()));
        calls.extend(std::iter::from_fn(|| self.calls.try_recv().ok()));
        while self.for_events.try_recv().is_ok() {}
    }
}

/// Both ends, for a log that ends at `head` and a bus that counts its losses. Messages for the order writer are
/// separate.
pub(crate) fn channels(head: Head, losses: watch::Receiver<u64>, fence: Fence) -> (Outlets, Inlets, Letters) {
    let (head_sender, head) = watch::channel(head);
    let (stream_sender, for_stream) = mpsc::channel(WAITING_COMMITS);
    let (events_sender, for_events) = mpsc::channel(WAITING_COMMITS);
    let (notices_sender, notices) = watch::channel(());
    let (calls_sender, calls) = mpsc::channel(WAITING_CALLS);
    let (desk, orders) = dispatch::desk();
    let outlets = Outlets {
        head: head_sender,
        commits: vec![stream_sender, events_sender],
        notices: notices_sender,
        calls: calls_sender,
        orders: desk,
        losses,
        fence,
    };
    (outlets, Inlets { head, for_stream, for_events, notices, calls }, orders)
}

/// Why the outbox cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Starts the tasks of the outbox; they end with `shutdown`, or once the decide loop has ended and everything is
/// published.
///
/// # Errors
/// If there is no thread for the order writer.
pub(crate) fn start(
    bus: &SharedBus,
    storage: &Arc<Storage>,
    inlets: Inlets,
    (checks, orders, keys): (Checks, OrderWriter, Keys),
    stream: (Guard, Sequence),
    events: (Sequence, Names),
    shutdown: &CancellationToken,
) -> std::io::Result<tokio_util::task::TaskTracker> {
    let tasks = tokio_util::task::TaskTracker::new();
    let source = |commits, after: Sequence| Source {
        storage: Arc::clone(storage),
        head: inlets.head.clone(),
        commits,
        next: after.next(),
    };
    let (guard, stream_end) = stream;
    let (after, names) = events;
    tasks.spawn(write_orders(Arc::clone(bus), orders, shutdown.clone())?);
    let stream = publish_commits(Arc::clone(bus), source(inlets.for_stream, stream_end), guard);
    let events = publish_events(Arc::clone(bus), source(inlets.for_events, after), names);
    let notices = enqueue_notices(Arc::clone(bus), Arc::clone(storage), inlets.notices, keys.clone());
    let calls = enqueue_calls(Arc::clone(bus), Arc::clone(storage), inlets.calls, checks, keys);
    tasks.spawn(until(shutdown.clone(), stream));
    tasks.spawn(until(shutdown.clone(), events));
    tasks.spawn(until(shutdown.clone(), notices));
    tasks.spawn(until(shutdown.clone(), calls));
    tasks.close();
    Ok(tasks)
}

/// Keys of items in work queues. They have numbers that are given again after a restore, while the queue still drops
/// items with the keys of those that were lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    end: String,
}

impl Keys {
    /// The keys of a log that was restored as told.
    pub(crate) fn of(restored: Option<(Sequence, UuidBytes)>) -> Self {
        Self { end: restored.map(|(_, log_id)| format!("@{log_id}")).unwrap_or_default() }
    }

    fn key(&self, key: &str) -> String {
        format!("{key}{}", self.end)
    }
}

async fn until(shutdown: CancellationToken, task: impl Future<Output = ()>) {
    shutdown.run_until_cancelled(task).await;
}

/// The last record whose public event the bus has, for a log that ends at `head` and was restored as told.
pub(crate) async fn events_end(
    bus: &SharedBus,
    storage: &Storage,
    head: Sequence,
    restored: Option<(Sequence, UuidBytes)>,
) -> Result<Sequence, OutboxError> {
    if !bus.wants_public_events() {
        return Ok(head);
    }
    let tail = patiently("finding the end of the public events", || bus.public_events_tail()).await?;
    let last = match (tail, restored) {
        (None, _) => storage.log()?.published()?,
        // The bus has events of records that the restore took away: they continue with the one that says so.
        (Some((_, log)), Some((first, log_id))) if log != Some(log_id.0) => Sequence(first.0.saturating_sub(1)),
        (Some((last, _)), _) => last,
    };
    Ok(last.min(head))
}

/// Consecutive commits without gaps: from the decide loop, or from the log if they were missed there.
struct Source {
    storage: Arc<Storage>,
    head: watch::Receiver<Head>,
    commits: mpsc::Receiver<Arc<Commit>>,
    next: Sequence,
}

impl Source {
    /// The next commit; `None` once the decide loop has ended and everything is read. It can include records before
    /// `next`.
    async fn next(&mut self) -> Option<Arc<Commit>> {
        loop {
            match tokio::time::timeout(LOOK_EVERY, self.commits.recv()).await {
                Ok(Some(commit)) if commit.last() < self.next => continue,
                Ok(Some(commit)) if commit.first() <= self.next => {
                    self.next = commit.last().next();
                    return Some(commit);
                }
                Ok(None) if self.head.borrow().sequence < self.next => return None,
                Err(_) if self.head.borrow().sequence < self.next => continue,
                _ => {}
            }
            if let Some(commit) = self.read().await {
                return Some(commit);
            }
        }
    }

    async fn read(&mut self) -> Option<Arc<Commit>> {
        let (storage, next) = (Arc::clone(&self.storage), self.next);
        let page = tokio::task::spawn_blocking(move || storage.log()?.page(next, PAGE_BYTES)).await;
        match page {
            Ok(Ok(commit)) if !commit.records.is_empty() => {
                self.next = commit.last().next();
                Some(Arc::new(commit))
            }
            Ok(Ok(_)) => None,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the log cannot be read to publish it");
                tokio::time::sleep(LONGEST_PAUSE).await;
                None
            }
            Err(_) => None,
        }
    }

    /// Continues after this record, wherever it was.
    fn go_on_after(&mut self, sequence: Sequence) {
        self.next = sequence.next();
    }
}

/// Appends to the log stream, as long as this ledger is its writer.
async fn publish_commits(bus: SharedBus, mut source: Source, mut guard: Guard) {
    loop {
        let commit = tokio::select! {
            biased;
            () = guard.alarm() => None,
            commit = source.next() => match commit {
                Some(commit) => Some(commit),
                None => return,
            },
        };
        let before = match commit {
            None => Sequence(source.next.0.saturating_sub(1)),
            Some(commit) => match bus.publish_commit(Arc::clone(&commit)).await {
                Ok(()) => continue,
                Err(error) if !error.is_retryable() => {
                    tracing::error!(%error, first = %commit.first(), "records cannot be published; readers get them from the log");
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, first = %commit.first(), "publishing the log; trying again");
                    tokio::time::sleep(FIRST_PAUSE).await;
                    Sequence(commit.first().0.saturating_sub(1))
                }
            },
        };
        match guard.settle(before).await {
            Some(end) => source.go_on_after(end),
            None => return,
        }
    }
}

async fn publish_events(bus: SharedBus, mut source: Source, mut names: Names) {
    let mut causes = CausesInLog::default();
    let mut noted = tokio::time::Instant::now();
    while let Some(commit) = source.next().await {
        let wanted = bus.wants_public_events();
        let mut events = Vec::new();
        for record in &commit.records {
            names.learn(record);
            if wanted {
                let cause = causes.of(record, &source.storage).unwrap_or_else(|error| {
                    tracing::error!(%error, record = %record.sequence, "what led to a record cannot be read");
                    None
                });
                let event = public::cloud_event(record, cause, &names);
                let public::PublicEvent { bus_subject, json } = event;
                let message = Message::new(json).with_trace(record.trace);
                let log = names.restored_log();
                events.push(PublicEvent { sequence: record.sequence, log, subject: bus_subject, message });
            }
        }
        if !wanted {
            continue;
        }
        let publish = || bus.publish_events(events.clone());
        if let Err(error) = patiently("publishing events", publish).await {
            tracing::error!(%error, first = %commit.first(), "public events cannot be published and are left out");
        }
        if noted.elapsed() > LOOK_EVERY {
            noted = tokio::time::Instant::now();
            let _ = source.storage.log().and_then(|log| log.set_published(commit.last()));
        }
    }
}

/// Puts every pending notification into the work queue once, and all of them again when the bus has lost its store.
async fn enqueue_notices(bus: SharedBus, storage: Arc<Storage>, mut added: watch::Receiver<()>, keys: Keys) {
    const AT_A_TIME: usize = 256;
    for queue in [WorkQueue::NOTIFY, WorkQueue::FILTERS, WorkQueue::CHECKS] {
        if let Err(error) = patiently("making a work queue", || bus.make_queue(&queue)).await {
            tracing::error!(%error, queue = %queue.name, "a work queue cannot be made");
        }
    }
    let mut losses = bus.losses();
    let mut behind = (Sequence(0), 0);
    loop {
        let notices = storage.log().and_then(|log| log.notices(behind, AT_A_TIME)).unwrap_or_default();
        let is_last = notices.len() < AT_A_TIME;
        for notice in notices {
            behind = (notice.of, notice.number);
            let trace = trace_of(&storage, notice.of);
            if let Err(error) = enqueue(&bus, &storage, &notice.payload, trace, &keys).await {
                tracing::error!(%error, record = %notice.of, "a notification cannot be delivered");
            }
        }
        if !is_last {
            continue;
        }
        tokio::select! {
            changed = added.changed() => if changed.is_err() { return },
            changed = losses.changed() => {
                if changed.is_err() {
                    return;
                }
                behind = (Sequence(0), 0);
            }
        }
    }
}

/// The trace that a record belongs to; none if it has been archived.
fn trace_of(storage: &Storage, sequence: Sequence) -> TraceContext {
    let record = storage.log().and_then(|log| log.record(sequence));
    record.ok().flatten().map(|record| record.trace).unwrap_or_default()
}

async fn enqueue(
    bus: &SharedBus,
    storage: &Storage,
    payload: &[u8],
    trace: TraceContext,
    keys: &Keys,
) -> Result<(), BusError> {
    let unusable = |error: codec::CodecError| BusError::Unusable(error.to_string());
    let mut item: NotifyItem = codec::decode(payload).map_err(unusable)?;
    item.output = output_of(storage, &item);
    let message = Message::encode(&item).map_err(unusable)?.with_trace(trace);
    let (queue, key) = (WorkQueue::NOTIFY, keys.key(&item.key()));
    patiently("queueing a notification", || bus.enqueue(&queue, &key, message.clone())).await
}

/// The standard output of a finished job; if it has several components, that of the first.
fn output_of(storage: &Storage, item: &NotifyItem) -> Option<String> {
    if item.outcome.is_none() || item.run.is_none() {
        return None;
    }
    // Archived or unreadable output paths are left out: the mail is sent in any case.
    let spec = storage.log().and_then(|log| descriptions::documents(&log, item.job.whole())).ok()??.spec;
    let launch = &spec.components.first()?.launch;
    if matches!(launch.program, Program::None) {
        return None;
    }
    let altered = item.output.as_deref();
    let pattern = altered.or(launch.stdout.as_deref()).unwrap_or(output::default_pattern(item.job));
    let file = output::expand(pattern, |symbol| output::of_job(symbol, item.job, &item.name, &item.owner.user));
    Some(if file.starts_with('/') { file } else { format!("{}/{file}", spec.working_directory.trim_end_matches('/')) })
}

/// Puts calls into their queues, and has those that need no runner checked here. If one gets lost here, the decide loop
/// offers it again.
async fn enqueue_calls(
    bus: SharedBus,
    storage: Arc<Storage>,
    mut offers: mpsc::Receiver<Offer>,
    checks: Checks,
    keys: Keys,
) {
    let mut arrived = Vec::new();
    while offers.recv_many(&mut arrived, CALLS_AT_A_TIME).await > 0 {
        let offers = checks.take(std::mem::take(&mut arrived));
        let storage = Arc::clone(&storage);
        let read = move || offers.into_iter().filter_map(|offer| item_of(&storage, offer)).collect::<Vec<_>>();
        let items = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        let mut sending = tokio::task::JoinSet::new();
        for (queue, key, message) in items {
            let (bus, key) = (Arc::clone(&bus), keys.key(&key));
            sending.spawn(async move {
                let sent = patiently("queueing a call", || bus.enqueue(&queue, &key, message.clone())).await;
                if let Err(error) = sent {
                    tracing::error!(%error, key, "a call of a filter cannot be handed out");
                }
            });
        }
        sending.join_all().await;
    }
}

/// The queue, key and item of a call.
fn item_of(storage: &Storage, offer: Offer) -> Option<(WorkQueue, String, Message)> {
    let Offer { seed, key, trace } = offer;
    let order = storage.log().and_then(|log| calls::complete(seed, &log));
    let encoded = order.map_err(|error| error.to_string()).and_then(|order: FilterOrder| {
        let queue = if order.starts_program() { WorkQueue::FILTERS } else { WorkQueue::CHECKS };
        Message::encode(&order).map(|message| (queue, message)).map_err(|error| error.to_string())
    });
    match encoded {
        Ok((queue, message)) => Some((queue, key, message.with_trace(trace))),
        Err(error) => {
            tracing::error!(error, key, "a call of a filter cannot be made up");
            None
        }
    }
}

/// Starts the order writer on a separate thread, because it reads the log; the returned task ends with it.
fn write_orders(
    bus: SharedBus,
    writer: OrderWriter,
    shutdown: CancellationToken,
) -> std::io::Result<impl Future<Output = ()>> {
    let (ended, end) = oneshot::channel::<()>();
    let runtime = tokio::runtime::Handle::current();
    let epoch = writer.epoch();
    std::thread::Builder::new().name("muster-orders".into()).spawn(move || {
        writer.run(|node, order| {
            runtime.block_on(shutdown.run_until_cancelled(send_order(&bus, node, order, epoch))).is_some()
        });
        drop(ended);
    })?;
    Ok(async move {
        let _ = end.await;
    })
}

async fn send_order(bus: &SharedBus, node: &str, order: NodeOrder, epoch: u64) {
    let message = match Message::encode(&OrderEnvelope { order, epoch }) {
        Ok(message) => message,
        Err(error) => return tracing::error!(%error, node, "an order cannot be sent"),
    };
    if let Err(error) = bus.publish(&subjects::node_orders(node), message).await {
        tracing::debug!(%error, node, "an order was lost; the node's heartbeat will bring it up");
    }
}
