//! The fences that this node leads: those of all steps whose first place it is.

use super::meeting::{Meeting, Met, Piece, piece};
use crate::spool::RunFolder;
use muster_bus::{Message, Request, RequestStream};
use muster_schemas::{
    RunId, StepId,
    content::ContentBytes,
    fence::{FenceAsk, FenceReply, FenceRequest},
    subjects,
};
use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::{sync::Notify, time};

/// The longest wait for others in one request.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The most that the fences of all steps keep in memory, in bytes.
const MAX_KEPT_BYTES: usize = 1 << 30;
/// How long the fences of a step are kept after the last sign of life, if not all of its places have said that they are
/// done. While the step runs here, each heartbeat is one.
const KEPT_SILENT: Duration = Duration::from_secs(3_600);
/// The pause before an answer is kept again that the disk did not take.
const DISK_RETRY: Duration = Duration::from_millis(500);

/// The fences that a node leads.
#[derive(Debug, Default)]
pub struct Leader {
    /// By run and step. Only this node's own orders add to them: nobody else is believed.
    steps: Mutex<HashMap<(RunId, StepId), Arc<Led>>>,
    /// Wakes requests about a step that was not known.
    added: Notify,
}

/// The fences of a step.
#[derive(Debug)]
struct Led {
    /// Wakes who waits: somebody has come, or left.
    news: Notify,
    state: Mutex<LedState>,
    /// The folder of this node's own part of the step.
    folder: RunFolder,
    /// Held while something is kept in it.
    keeping: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct LedState {
    meeting: Meeting,
    heard: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of a step that asks, and the name of its node as a token of a subject.
#[derive(Clone, Copy)]
struct Asker<'a> {
    node: &'a str,
    place: u32,
}

impl Leader {
    /// Answers other nodes until the bus is closed.
    pub async fn serve(self: Arc<Self>, mut requests: RequestStream) {
        while let Some(request) = requests.next().await {
            let leader = self.clone();
            tokio::spawn(async move { leader.answer(request).await });
        }
    }

    async fn answer(&self, request: Request) {
        let asked = match request.message.decode::<FenceRequest>() {
            Ok(asked) => asked,
            Err(error) => {
                tracing::warn!(subject = request.subject, %error, "a request about a fence cannot be understood");
                return;
            }
        };
        // The bus lets each node ask in its own name alone.
        let from = request.subject.rsplit('.').next().unwrap_or_default().to_owned();
        match Message::encode(&self.ask(&from, asked).await) {
            Ok(message) => request.reply(message),
            Err(error) => tracing::error!(%error, "a request about a fence cannot be answered"),
        }
    }

    /// This node leads the fences of a step with places on these nodes; `folder` is that of its own part. What is there of
    /// an earlier life of this process is continued.
    pub fn lead(&self, run: RunId, step: StepId, folder: &RunFolder, nodes: &[String]) {
        if let Some(led) = lock(&self.steps).get(&(run, step)) {
            lock(&led.state).heard = Instant::now();
            return;
        }
        let mut meeting = Meeting::new(nodes.to_vec());
        meeting.continue_after(folder.last_fence(), folder.left_fences());
        let state = Mutex::new(LedState { meeting, heard: Instant::now() });
        let led = Led { news: Notify::new(), state, folder: folder.clone(), keeping: tokio::sync::Mutex::default() };
        lock(&self.steps).entry((run, step)).or_insert_with(|| Arc::new(led));
        self.added.notify_waiters();
    }

    /// Answers a place on the node with this name, as a token of a subject.
    pub async fn ask(&self, from: &str, asked: FenceRequest) -> FenceReply {
        let (key, asker) = ((asked.run, asked.step), Asker { node: from, place: asked.place });
        let wait_millis = if let FenceAsk::Meet { wait_millis, .. } = asked.ask { wait_millis } else { 0 };
        let deadline = time::Instant::now() + Duration::from_millis(wait_millis.into()).min(LONGEST_WAIT);
        let Some(led) = self.known(key, deadline).await else { return FenceReply::Unknown };
        if !is_at(&lock(&led.state).meeting, asker) {
            return FenceReply::Broken(format!("place {} of the step is not on this node", asker.place));
        }
        match asked.ask {
            FenceAsk::Meet { number, offset, bytes, is_last, .. } => {
                let piece = Piece { offset, bytes: &bytes.0, is_last };
                self.meet(&led, asker, number, piece, deadline).await
            }
            FenceAsk::Collect { number, offset } => {
                let answer = lock(&led.state).meeting.answer(number);
                answer.map_or(FenceReply::NotYet, |answer| met(&answer, offset))
            }
            FenceAsk::Leave => {
                self.leave(key, &led, asker.place).await;
                FenceReply::Done
            }
        }
    }

    async fn known(&self, key: (RunId, StepId), deadline: time::Instant) -> Option<Arc<Led>> {
        loop {
            let added = self.added.notified();
            tokio::pin!(added);
            added.as_mut().enable();
            if let Some(led) = lock(&self.steps).get(&key) {
                return Some(led.clone());
            }
            time::timeout_at(deadline, added).await.ok()?;
        }
    }

    async fn meet(
        &self,
        led: &Led,
        asker: Asker<'_>,
        number: u32,
        piece: Piece<'_>,
        deadline: time::Instant,
    ) -> FenceReply {
        let has_room = self.kept_bytes() + piece.bytes.len() <= MAX_KEPT_BYTES;
        let mut now = {
            let mut state = lock(&led.state);
            state.heard = Instant::now();
            if !has_room {
                state.meeting.break_up("the fences of all steps take too much memory on its first node".to_owned());
            }
            state.meeting.meet(asker.place, number, piece)
        };
        loop {
            match now {
                Met::Received(length) => return FenceReply::Received(length),
                Met::Waits => {}
                Met::Keep(number, answer) => {
                    keep(led, number, &answer).await;
                    now = lock(&led.state).meeting.look(number);
                    if matches!(now, Met::Keep(..)) && time::Instant::now() >= deadline {
                        return FenceReply::NotYet;
                    }
                    continue;
                }
                Met::All(answer) => return met(&answer, 0),
                Met::Broken(why) => {
                    led.news.notify_waiters();
                    return FenceReply::Broken(why);
                }
            }
            let news = led.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            // Again, since somebody may have come before this waited for news.
            now = lock(&led.state).meeting.look(number);
            if now == Met::Waits && time::timeout_at(deadline, news).await.is_err() {
                return FenceReply::NotYet;
            }
        }
    }

    async fn leave(&self, key: (RunId, StepId), led: &Led, place: u32) {
        let folder = led.folder.clone();
        {
            let _turn = led.keeping.lock().await;
            // Without it, the place is waited for after a restart, until its node tells again.
            let kept = tokio::task::spawn_blocking(move || folder.leave_fences(place)).await;
            tracing::debug!(?kept, place, "a place has left the fences of its step");
        }
        let is_over = {
            let mut state = lock(&led.state);
            state.meeting.leave(place);
            state.meeting.is_over()
        };
        led.news.notify_waiters();
        if is_over {
            lock(&self.steps).remove(&key);
        }
    }

    fn kept_bytes(&self) -> usize {
        lock(&self.steps).values().map(|led| lock(&led.state).meeting.bytes()).sum()
    }

    /// Forgets steps of which nobody has asked for a long time.
    pub fn drop_silent(&self) {
        lock(&self.steps).retain(|_, led| lock(&led.state).heard.elapsed() < KEPT_SILENT);
    }
}

/// Keeps the answer to a fence where a restart of this process finds it, and lets everybody have it. If this node's own
/// part is over, no restart finds anything: then it is given as it is.
async fn keep(led: &Led, number: u32, answer: &Arc<[u8]>) {
    let _turn = led.keeping.lock().await;
    if lock(&led.state).meeting.answer(number).is_some() {
        return;
    }
    let (folder, bytes) = (led.folder.clone(), answer.clone());
    let write = move || folder.answer_fence(number, Ok(&bytes));
    match tokio::task::spawn_blocking(write).await.map_err(io::Error::other).and_then(|written| written) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(number, %error, "the answer to a fence cannot be kept in the spool; it is tried again");
            time::sleep(DISK_RETRY).await;
        }
        _ => {
            lock(&led.state).meeting.kept(number);
            led.news.notify_waiters();
        }
    }
}

/// Whether a place is where it says that it is.
fn is_at(meeting: &Meeting, asker: Asker<'_>) -> bool {
    meeting.node(asker.place).is_some_and(|node| subjects::token(node) == asker.node)
}

fn met(answer: &[u8], offset: u64) -> FenceReply {
    FenceReply::Met { offset, bytes: ContentBytes(piece(answer, offset)), length: answer.len() as u64 }
}
