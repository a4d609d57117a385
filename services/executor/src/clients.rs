//! Requests of the clients of steps to this node: output from any offset, input at any offset. All of it is in the
//! spool, so nothing is lost or doubled when this process or a client restarts.

use crate::{
    RunKey,
    protocol::{self, Control},
    spool::{CONTROL, INPUT, INPUT_END, INPUT_TAKEN, OUTPUT, RunFolder},
};
use muster_bus::{Message, Request, RequestStream, SharedBus};
use muster_schemas::{
    step_io::{AT_END, IoAsk, IoReply, IoRequest, MAX_READ_BYTES},
    subjects,
};
use std::{
    collections::{BTreeMap, HashMap},
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, Semaphore},
    time,
};

/// The number of requests worked on at a time.
const MAX_AT_ONCE: usize = 512;
/// The number of readers of one step that wait at a time.
const MAX_READERS: usize = 64;
/// The longest wait for output.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How far input may be ahead of the task that has read most of it.
const MAX_INPUT_AHEAD: u64 = 4 << 20;
/// How far input may be ahead of the task that has read least of it.
const MAX_INPUT_KEPT: u64 = 1 << 30;
/// The shim is told of acknowledged output once it is this much more than it knows: enough to let it continue and free
/// disk space that nobody needs.
const TOLD_BYTES: u64 = 1 << 20;
/// How long after the end of a step, and after the client last asked, its output is kept for a client that has not
/// acknowledged all of it.
pub const LINGER: Duration = Duration::from_secs(60);

/// The clients of the steps of a node.
#[derive(Debug, Default)]
pub struct Clients {
    steps: Mutex<BTreeMap<RunKey, Arc<Step>>>,
}

/// The clients of one step.
#[derive(Debug)]
struct Step {
    folder: RunFolder,
    /// Wakes requests that wait for output.
    news: Notify,
    state: Mutex<StepState>,
    /// Held while input is added.
    input: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct StepState {
    /// Whether the output is complete.
    has_ended: bool,
    acknowledged: u64,
    /// How much of that the shim knows.
    told: u64,
    /// The latest request of each reader.
    readers: HashMap<u64, u64>,
    requests: u64,
    heard: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clients {
    /// Answers clients until the bus is closed. It runs alongside the executor.
    pub async fn serve(self: Arc<Self>, mut requests: RequestStream, spool: PathBuf) {
        let room = Arc::new(Semaphore::new(MAX_AT_ONCE));
        while let Some(request) = requests.next().await {
            let Ok(turn) = room.clone().acquire_owned().await else { return };
            let (clients, spool) = (self.clone(), spool.clone());
            tokio::spawn(async move {
                clients.answer(request, &spool).await;
                drop(turn);
            });
        }
    }

    /// There is more output of a step.
    pub fn has_news(&self, key: RunKey) {
        if let Some(step) = lock(&self.steps).get(&key) {
            step.news.notify_waiters();
        }
    }

    /// The output of a step is complete.
    pub fn has_ended(&self, key: RunKey) {
        if let Some(step) = lock(&self.steps).get(&key) {
            lock(&step.state).has_ended = true;
            step.news.notify_waiters();
        }
    }

    /// Whether the output of a step that has ended is no longer needed: a client has all of it, or none has asked for a
    /// long time.
    pub fn is_done(&self, key: RunKey, spool: &Path, ended: Instant) -> bool {
        let length = RunFolder::of(spool, key).file(OUTPUT).metadata().map_or(0, |file| file.len());
        if length == 0 {
            return true;
        }
        let step = lock(&self.steps).get(&key).cloned();
        let Some(step) = step else { return ended.elapsed() >= LINGER };
        let state = lock(&step.state);
        state.acknowledged >= length || state.heard.max(ended).elapsed() >= LINGER
    }

    /// The step is gone.
    pub fn forget(&self, key: RunKey) {
        if let Some(step) = lock(&self.steps).remove(&key) {
            step.news.notify_waiters();
        }
    }

    async fn answer(&self, request: Request, spool: &Path) {
        let reply = match request.message.decode::<IoRequest>() {
            Ok(asked) => self.reply(&request, asked, spool).await,
            Err(error) => {
                tracing::warn!(subject = request.subject, %error, "a client's request cannot be understood");
                return;
            }
        };
        match Message::encode(&reply) {
            Ok(message) => request.reply(message),
            Err(error) => tracing::error!(%error, "a client cannot be answered"),
        }
    }

    async fn reply(&self, request: &Request, asked: IoRequest, spool: &Path) -> IoReply {
        let key = RunKey { part: asked.part, step: asked.step };
        let Some(step) = self.step(key, spool).await else { return IoReply::Unknown };
        lock(&step.state).heard = Instant::now();
        let failed = |error: io::Error| {
            tracing::warn!(%key, subject = request.subject, %error, "the streams of a step cannot be used");
            IoReply::Unknown
        };
        match asked.ask {
            IoAsk::Read { reader, from, acknowledged, max_bytes, wait_millis } => {
                step.acknowledge(acknowledged);
                let wait = Duration::from_millis(wait_millis.into()).min(LONGEST_WAIT);
                step.read(reader, from, max_bytes.min(MAX_READ_BYTES), wait).await.unwrap_or_else(failed)
            }
            IoAsk::Write { offset, bytes, is_last } => step.write(offset, bytes, is_last).await.unwrap_or_else(failed),
            IoAsk::Resize(size) => {
                step.tell_shim(Control::Resize(size));
                IoReply::Done
            }
        }
    }

    /// A step whose folder is in the spool. It reads the folder only once, so it registers the step first: news that
    /// arrives meanwhile reaches it, and an earlier end is in the log.
    async fn step(&self, key: RunKey, spool: &Path) -> Option<Arc<Step>> {
        if let Some(step) = lock(&self.steps).get(&key) {
            return Some(step.clone());
        }
        let folder = RunFolder::of(spool, key);
        let has_folder = folder.path().exists();
        if !has_folder {
            return None;
        }
        let step = lock(&self.steps).entry(key).or_insert_with(|| Arc::new(Step::in_folder(folder))).clone();
        let folder = step.folder.clone();
        let look = move || Some((folder.log().ok()??, folder.released()));
        let Some((log, released)) = tokio::task::spawn_blocking(look).await.ok().flatten() else {
            // The folder is gone, or not complete yet. A request waiting here for news of a step that is gone would
            // wait for ever.
            self.forget(key);
            return None;
        };
        let mut state = lock(&step.state);
        state.has_ended |= log.end.is_some();
        state.acknowledged = state.acknowledged.max(released);
        drop(state);
        Some(step)
    }
}

impl Step {
    fn in_folder(folder: RunFolder) -> Self {
        Self {
            folder,
            news: Notify::new(),
            state: Mutex::new(StepState {
                has_ended: false,
                acknowledged: 0,
                told: 0,
                readers: HashMap::new(),
                requests: 0,
                heard: Instant::now(),
            }),
            input: tokio::sync::Mutex::default(),
        }
    }

    /// Lets the shim continue reading. If it cannot be told now, the next request tries again.
    fn acknowledge(&self, acknowledged: Option<u64>) {
        // A client that begins at the end has read nothing yet.
        let Some(acknowledged) = acknowledged.filter(|offset| *offset != AT_END) else { return };
        let is_news = {
            let mut state = lock(&self.state);
            state.acknowledged = state.acknowledged.max(acknowledged);
            acknowledged.saturating_sub(state.told) >= TOLD_BYTES && !state.has_ended
        };
        if !is_news {
            return;
        }
        // Nobody can have more than there is, whatever the client says.
        let acknowledged = acknowledged.min(self.folder.file(OUTPUT).metadata().map_or(0, |file| file.len()));
        if self.tell_shim(Control::Acknowledged(acknowledged)) {
            let mut state = lock(&self.state);
            state.told = state.told.max(acknowledged);
        }
    }

    /// Tells the shim; returns whether it took the message.
    fn tell_shim(&self, control: Control) -> bool {
        let told = protocol::write_to_pipe(&self.folder.file(CONTROL), &control);
        if let Err(error) = &told {
            tracing::debug!(folder = %self.folder.path().display(), %error, "a shim does not listen");
        }
        told.is_ok()
    }

    /// Output from an offset on, as soon as there is some.
    async fn read(&self, reader: u64, from: u64, max_bytes: u32, wait: Duration) -> io::Result<IoReply> {
        let deadline = time::Instant::now() + wait;
        let Some(own) = self.begin_reading(reader) else { return Ok(nothing(from)) };
        let mut from = from;
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let (has_ended, is_last_request) = {
                let state = lock(&self.state);
                (state.has_ended, state.readers.get(&reader) == Some(&own))
            };
            let (begin, bytes, length) = self.output(from, max_bytes).await?;
            from = begin;
            let is_last = has_ended && begin + bytes.len() as u64 >= length;
            if !bytes.is_empty() || is_last || !is_last_request {
                return Ok(IoReply::Output { from, bytes, is_last });
            }
            if time::timeout_at(deadline, news).await.is_err() {
                return Ok(nothing(from));
            }
        }
    }

    /// Makes this the reader's latest request: an earlier one need not wait any more.
    fn begin_reading(&self, reader: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        if state.readers.len() >= MAX_READERS && !state.readers.contains_key(&reader) {
            let oldest = state.readers.iter().min_by_key(|(_, request)| **request).map(|(reader, _)| *reader)?;
            state.readers.remove(&oldest);
        }
        state.requests += 1;
        let own = state.requests;
        state.readers.insert(reader, own);
        drop(state);
        self.news.notify_waiters();
        Some(own)
    }

    /// The offset from which output can still be read, that output, and the length of the file.
    async fn output(&self, from: u64, max_bytes: u32) -> io::Result<(u64, Vec<u8>, u64)> {
        let folder = self.folder.clone();
        let read = move || {
            let file = match File::open(folder.file(OUTPUT)) {
                Ok(file) => file,
                // The shim has not created it yet, or all of it has been read and removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let begin = if from == AT_END { 0 } else { from };
                    return Ok((begin, Vec::new(), begin));
                }
                Err(error) => return Err(error),
            };
            let length = file.metadata()?.len();
            let mut begin = if from == AT_END { length } else { from.max(folder.released()) };
            loop {
                let wanted = length.saturating_sub(begin).min(max_bytes.into());
                let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(0)];
                file.read_exact_at(&mut bytes, begin)?;
                // Output is marked as released before it leaves the disk: these bytes may have been zeros.
                match folder.released() {
                    released if released > begin => begin = released,
                    _ => return Ok((begin, bytes, length)),
                }
            }
        };
        tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
    }

    /// Adds the new part of the input, if there is room for it.
    async fn write(&self, offset: u64, bytes: Vec<u8>, is_last: bool) -> io::Result<IoReply> {
        let _turn = self.input.lock().await;
        if lock(&self.state).has_ended {
            // Nobody reads input any more.
            return Ok(IoReply::Input(offset + bytes.len() as u64));
        }
        let folder = self.folder.clone();
        let length = tokio::task::spawn_blocking(move || add_input(&folder, offset, &bytes, is_last)).await;
        let length = length.map_err(io::Error::other)??;
        // A shim that is not there yet looks for input when it starts.
        protocol::write_to_busy_pipe(&self.folder.file(CONTROL), &Control::Input).await;
        Ok(IoReply::Input(length))
    }
}

fn nothing(from: u64) -> IoReply {
    IoReply::Output { from, bytes: Vec::new(), is_last: false }
}

/// Adds input that begins at or before the present end. Returns the new length.
fn add_input(folder: &RunFolder, offset: u64, bytes: &[u8], is_last: bool) -> io::Result<u64> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(folder.file(INPUT))?;
    let length = file.metadata()?.len();
    let known = length.checked_sub(offset).and_then(|known| usize::try_from(known).ok());
    // Input before it is missing, or all of it is known.
    let Some(new) = known.and_then(|known| bytes.get(known..)) else { return Ok(length) };
    if !new.is_empty() && !has_room(folder, length) {
        return Ok(length);
    }
    file.write_all(new).inspect_err(|_| drop(file.set_len(length)))?;
    if is_last {
        OpenOptions::new().create(true).append(true).mode(0o600).open(folder.file(INPUT_END))?;
    }
    Ok(length + new.len() as u64)
}

fn has_room(folder: &RunFolder, length: u64) -> bool {
    let taken = std::fs::read(folder.file(INPUT_TAKEN)).unwrap_or_default();
    let number = |at: usize| {
        taken.get(at..at + 8).and_then(|word| word.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
    };
    let (fastest, slowest) = (number(0), number(8));
    length.saturating_sub(fastest) < MAX_INPUT_AHEAD && length.saturating_sub(slowest) < MAX_INPUT_KEPT
}

/// The requests of clients of steps on a node.
///
/// # Errors
/// The bus is not available.
pub async fn requests(bus: &SharedBus, node: &str) -> Result<RequestStream, muster_bus::BusError> {
    bus.serve(&subjects::node_io(node)).await
}
