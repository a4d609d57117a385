//! Events for many subscribers: each is made once and shared. A slow subscriber reads from the log instead, and holds
//! up nobody.

use crate::{
    budgets::{Admission, Following, PastPart},
    error::ApiError,
    metrics::event_subscribers,
    reader::Reader,
    statistics::Counts,
};
use axum::body::Bytes;
use futures::Stream;
use muster_bus::{Feed, SharedBus};
use muster_domain::State;
use muster_schemas::{
    JobId, Sequence,
    cause::{Causes, Remembered},
    event::{Commit, Record},
    public::{cloud_event, cloud_event_for_owner, type_name},
};
use muster_telemetry::metrics::UpDownCounter;
use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt::Write as _,
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Bytes of events that are kept for subscribers who are slightly behind.
const RING_BYTES: usize = 8 << 20;
/// The most bytes that a subscriber gets at a time; from the log, the most bytes of records, which are several times as
/// large as events.
const PIECE_BYTES: u32 = 64 << 10;
/// Records turned into events at a time: nothing is applied to the state meanwhile.
const BATCH_RECORDS: usize = 256;
/// A comment is sent after this long without an event, so that both ends notice a dead connection.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The pause before the feed is opened again.
const REOPEN_PAUSE: Duration = Duration::from_millis(500);
/// The pause before the ledger is asked again about records that it does not know yet.
const LEDGER_PAUSE: Duration = Duration::from_millis(20);
/// How long the projection may take to know the names in a commit.
const NAMES_TIMEOUT: Duration = Duration::from_secs(5);

/// Which events a subscriber wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only events of this job; for an array including those of its tasks, for a task including those of its array.
    /// Reasons for waiting belong to the plan, not to a job.
    pub(crate) job: Option<JobId>,
    /// Only of these kinds (`job`) or kinds and verbs (`job.started`); empty means all.
    pub(crate) kinds: Vec<String>,
}

impl Filter {
    fn takes_all(&self) -> bool {
        self.job.is_none() && self.kinds.is_empty()
    }

    fn takes_kind_of(&self, frame: &Frame) -> bool {
        self.kinds.is_empty()
            || self.kinds.iter().any(|wanted| match wanted.split_once('.') {
                None => wanted == frame.kind,
                Some((kind, verb)) => kind == frame.kind && verb == frame.verb,
            })
    }

    fn takes_job_of(&self, frame: &Frame) -> bool {
        let is_of = |wanted: JobId, job: JobId| {
            job == wanted || job == wanted.whole() || (wanted.index.is_none() && job.number == wanted.number)
        };
        self.job.is_none_or(|wanted| frame.job.is_some_and(|job| is_of(wanted, job)))
    }
}

/// An event as it is sent, and what subscribers select by.
#[derive(Debug)]
struct Frame {
    sequence: Sequence,
    kind: &'static str,
    verb: &'static str,
    job: Option<JobId>,
    bytes: Range<usize>,
}

/// The events of a commit, ready to be sent.
#[derive(Debug)]
struct Batch {
    frames: Vec<Frame>,
    bytes: Bytes,
}

impl Batch {
    /// The events of records, in order, with the cause of each.
    fn of(records: &[Record], causes: &[Option<Sequence>], state: &State) -> Self {
        let mut text = String::with_capacity(records.len() * 512);
        let mut frames = Vec::with_capacity(records.len());
        for (record, cause) in records.iter().zip(causes) {
            let start = text.len();
            let (kind, verb) = record.event.kind_verb();
            let json = cloud_event(record, *cause, state).json;
            // Writing to memory cannot fail.
            let _ = write!(text, "id: {}\nevent: {}\ndata: {json}\n\n", record.sequence, type_name(kind, verb));
            let job = record.event.job();
            frames.push(Frame { sequence: record.sequence, kind, verb, job, bytes: start..text.len() });
        }
        Self { frames, bytes: text.into() }
    }

    /// The same, holding a part of a budget until all of its pieces are sent.
    fn keeping(self, part: PastPart) -> Self {
        Self { bytes: Bytes::from_owner(Kept { bytes: self.bytes, _part: part }), ..self }
    }

    fn last(&self) -> Sequence {
        self.frames.last().map_or(Sequence(0), |frame| frame.sequence)
    }

    /// The events from a sequence on that a filter accepts, in as few pieces as possible.
    fn pieces(&self, from: Sequence, filter: &Filter) -> Vec<Bytes> {
        let known = self.frames.partition_point(|frame| frame.sequence < from);
        let frames = &self.frames[known..];
        if filter.takes_all() {
            let start = frames.first().map_or(self.bytes.len(), |frame| frame.bytes.start);
            return vec![self.bytes.slice(start..)];
        }
        let wanted = frames.iter().filter(|frame| filter.takes_kind_of(frame) && filter.takes_job_of(frame));
        wanted.map(|frame| self.bytes.slice(frame.bytes.clone())).collect()
    }
}

/// Bytes that hold a part of a budget as long as they exist.
struct Kept {
    bytes: Bytes,
    _part: PastPart,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The newest events, without gaps.
#[derive(Debug, Default)]
struct Ring {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, batch: Batch) {
        self.bytes += batch.bytes.len();
        self.batches.push_back(Arc::new(batch));
        while self.bytes > RING_BYTES
            && self.batches.len() > 1
            && let Some(oldest) = self.batches.pop_front()
        {
            self.bytes -= oldest.bytes.len();
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    /// The batches from a sequence on, up to a size; `None` if the ring begins later or ends earlier.
    fn from(&self, position: Sequence) -> Option<Vec<Arc<Batch>>> {
        let first = self.batches.front()?.frames.first()?.sequence;
        if position < first || self.batches.back()?.last() < position {
            return None;
        }
        let start = self.batches.partition_point(|batch| batch.last() < position);
        let mut bytes = 0;
        let fitting = self.batches.range(start..).take_while(|batch| {
            let fits = bytes < PIECE_BYTES as usize;
            bytes += batch.bytes.len();
            fits
        });
        Some(fitting.cloned().collect())
    }
}

/// The stream of events and its subscribers.
#[derive(Debug)]
pub(crate) struct Live {
    ring: Mutex<Ring>,
    /// The last event that can be read here or in the log.
    head: watch::Sender<Sequence>,
    subscribers: AtomicUsize,
    subscribers_metric: UpDownCounter<i64>,
}

impl Live {
    pub(crate) fn new(head: Sequence) -> Self {
        Self {
            ring: Mutex::default(),
            head: watch::Sender::new(head),
            subscribers: AtomicUsize::new(0),
            subscribers_metric: event_subscribers(),
        }
    }

    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes new records of the log on to the subscribers, for ever.
    pub(crate) async fn pump(&self, bus: SharedBus, reader: Arc<Reader>, counts: &Counts) {
        loop {
            let from = self.head.borrow().next();
            let failure = match Feed::open(bus.clone(), from).await {
                Ok(feed) => self.pump_feed(feed, &reader, counts).await,
                Err(error) => error,
            };
            tracing::warn!(error = %failure, "the event feed broke, it is opened again");
            tokio::time::sleep(REOPEN_PAUSE).await;
        }
    }

    /// Waits until records up to this one have arrived here too.
    pub(crate) async fn wait_for(&self, sequence: Sequence) {
        let mut head = self.head.subscribe();
        // The sender lives as long as this does.
        let _ = tokio::time::timeout(NAMES_TIMEOUT, head.wait_for(|head| *head >= sequence)).await;
    }

    async fn pump_feed(&self, mut feed: Feed, reader: &Reader, counts: &Counts) -> muster_bus::BusError {
        let mut causes = Causes::default();
        loop {
            let commit = match feed.next().await {
                Ok(commit) => commit,
                Err(error) => return error,
            };
            counts.count(&commit.records, |job| reader.projection().read(|state| components(state, job)));
            if self.subscribers.load(Ordering::Acquire) == 0 {
                self.ring().clear();
                causes = Causes::default();
            } else {
                self.offer(&commit, reader, &mut causes).await;
            }
            self.head.send_replace(commit.last());
        }
    }

    async fn offer(&self, commit: &Commit, reader: &Reader, causes: &mut Causes) {
        // The names in a commit can be new with it.
        if let Err(error) = reader.projection().wait_for(commit.last(), NAMES_TIMEOUT).await {
            tracing::warn!(%error, "events are sent without all names");
        }
        let causes = match causes_of_next(&commit.records, causes, reader).await {
            Ok(causes) => causes,
            Err(error) => {
                // Subscribers read them from the log, as after every gap.
                tracing::warn!(error = %error.0.message, "what led to new events is not known");
                return self.ring().clear();
            }
        };
        for (records, causes) in commit.records.chunks(BATCH_RECORDS).zip(causes.chunks(BATCH_RECORDS)) {
            let batch = reader.projection().read(|state| Batch::of(records, causes, state));
            self.ring().push(batch);
        }
    }
}

/// The number of components of a job, if it has several.
fn components(state: &State, job: JobId) -> u64 {
    let several = state.job(job).map(|job| job.components.len()).filter(|count| *count > 1);
    several.map_or(0, |count| count as u64)
}

/// The cause of each record that follows those seen by `causes`. The ledger is asked only about records whose jobs have
/// had none since somebody subscribed.
async fn causes_of_next(
    records: &[Record],
    causes: &mut Causes,
    reader: &Reader,
) -> Result<Vec<Option<Sequence>>, ApiError> {
    let mut unknown = Vec::new();
    let mut known: Vec<Option<Sequence>> = Vec::with_capacity(records.len());
    for (place, record) in records.iter().enumerate() {
        let cause = causes.of(record, &Remembered);
        if cause.is_err() {
            unknown.push(place);
        }
        known.push(cause.unwrap_or_default());
    }
    let asked = reader.causes(unknown.iter().map(|place| records[*place].sequence)).await?;
    for (place, cause) in unknown.into_iter().zip(asked) {
        known[place] = cause;
    }
    Ok(known)
}

/// A subscriber.
struct Subscriber {
    live: Arc<Live>,
    reader: Arc<Reader>,
    filter: Filter,
    /// The next event to send to it.
    position: Sequence,
    /// It is told once it has received everything up to here, which had happened when it subscribed.
    caught_up_at: Option<Sequence>,
    head: watch::Receiver<Sequence>,
    ready: VecDeque<Bytes>,
    ended: bool,
    shutdown: CancellationToken,
    /// The owner of the budget for its parts of the past.
    admission: Arc<Admission>,
    _following: Following,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.live.subscribers.fetch_sub(1, Ordering::AcqRel);
        self.live.subscribers_metric.add(-1, &[]);
    }
}

/// The events from a sequence on, as server-sent events. The stream ends when the gateway stops or the log cannot be
/// read.
pub(crate) fn subscribe(
    live: Arc<Live>,
    reader: Arc<Reader>,
    filter: Filter,
    from: Sequence,
    known: Sequence,
    (admission, following): (Arc<Admission>, Following),
    shutdown: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    live.subscribers.fetch_add(1, Ordering::AcqRel);
    live.subscribers_metric.add(1, &[]);
    let subscriber = Subscriber {
        head: live.head.subscribe(),
        live,
        reader,
        filter,
        position: from,
        caught_up_at: Some(known),
        ready: VecDeque::from([Bytes::from(format!(": from {from}\n\n"))]),
        ended: false,
        shutdown,
        admission,
        _following: following,
    };
    futures::stream::unfold(subscriber, |mut subscriber| async move {
        let piece = subscriber.next().await?;
        Some((Ok(piece), subscriber))
    })
}

impl Subscriber {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.ended {
                return None;
            }
            if self.take_from_ring() {
                continue;
            }
            let head = *self.head.borrow_and_update();
            if self.position <= head {
                self.take_from_log(head).await;
            } else if self.caught_up_at.is_some_and(|known| self.position > known) {
                self.caught_up_at = None;
                self.ready.push_back(Bytes::from_static(b": caught up\n\n"));
            } else {
                self.wait().await;
            }
        }
    }

    fn take_from_ring(&mut self) -> bool {
        let Some(batches) = self.live.ring().from(self.position) else { return false };
        for batch in &batches {
            self.take(batch);
        }
        true
    }

    fn take(&mut self, batch: &Batch) {
        let pieces = batch.pieces(self.position, &self.filter);
        self.ready.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
        self.position = batch.last().next();
    }

    /// Reads events that are not in the ring, up to `head` at least.
    async fn take_from_log(&mut self, head: Sequence) {
        // Events that it has not received can delay its turn for long.
        let turn = tokio::select! {
            turn = self.admission.past_part() => turn,
            () = self.shutdown.cancelled() => return self.ended = true,
            () = tokio::time::sleep(HEARTBEAT) => return self.ready.push_back(Bytes::from_static(b":\n\n")),
        };
        let read = match (turn, self.filter.job) {
            (Ok(turn), Some(job)) => self.take_history(job, head, turn).await,
            (Ok(turn), None) => self.take_records(turn).await,
            (Err(error), _) => Err(error),
        };
        if let Err(error) = read {
            self.end_with(&error);
        }
    }

    async fn take_records(&mut self, turn: PastPart) -> Result<(), ApiError> {
        let records = self.reader.replay(self.position, PIECE_BYTES).await?;
        if records.is_empty() {
            drop(turn);
            // The ledger is behind the bus; it will know soon.
            tokio::time::sleep(LEDGER_PAUSE).await;
            return Ok(());
        }
        let causes = self.reader.causes(records.iter().map(|record| record.sequence)).await?;
        let batch = self.batch(&records, &causes, turn);
        self.take(&batch);
        Ok(())
    }

    /// The ledger finds the records of a job faster than a scan of the log would.
    async fn take_history(&mut self, job: JobId, head: Sequence, turn: PastPart) -> Result<(), ApiError> {
        let records = self.reader.history_page(job, self.position).await?;
        let Some(last) = records.last().map(|record| record.sequence) else {
            self.position = head.next();
            return Ok(());
        };
        let causes = self.reader.causes(records.iter().map(|record| record.sequence)).await?;
        let batch = self.batch(&records, &causes, turn);
        let kinds = Filter { job: None, kinds: self.filter.kinds.clone() };
        let pieces = batch.pieces(self.position, &kinds);
        self.ready.extend(pieces.into_iter().filter(|piece| !piece.is_empty()));
        self.position = last.next();
        Ok(())
    }

    fn batch(&self, records: &[Record], causes: &[Option<Sequence>], turn: PastPart) -> Batch {
        let batch = self.reader.projection().read(|state| Batch::of(records, causes, state));
        let part = self.admission.count_past_part(turn, batch.bytes.len() as u64);
        batch.keeping(part)
    }

    fn end_with(&mut self, error: &ApiError) {
        let json = serde_json::to_string(&error.0).unwrap_or_default();
        self.ready.push_back(Bytes::from(format!("event: error\ndata: {json}\n\n")));
        self.ended = true;
    }

    async fn wait(&mut self) {
        tokio::select! {
            changed = self.head.changed() => self.ended = changed.is_err(),
            () = self.shutdown.cancelled() => self.ended = true,
            () = tokio::time::sleep(HEARTBEAT) => self.ready.push_back(Bytes::from_static(b":\n\n")),
        }
    }
}

/// The records of a job, with the cause of each, as a JSON list of CloudEvents: those for its owner, or those for everybody.
pub(crate) fn json_list(records: &[Record], causes: &[Option<Sequence>], state: &State, is_for_owner: bool) -> String {
    let make = if is_for_owner { cloud_event_for_owner } else { cloud_event };
    let event = |(record, cause): (&Record, &Option<Sequence>)| make(record, *cause, state).json;
    let events: Vec<String> = records.iter().zip(causes).map(event).collect();
    format!("[{}]", events.join(","))
}
