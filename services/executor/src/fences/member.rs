//! This node's places in the fences of their steps.

use super::Leader;
use crate::{
    RunKey,
    protocol::{self, Control},
    spool::{CONTROL, RunFolder},
};
use muster_bus::{BusError, Message, SharedBus};
use muster_schemas::{
    RunId, StepId,
    content::ContentBytes,
    fence::{FenceAsk, FenceReply, FenceRequest, MAX_PIECE_BYTES},
    subjects,
};
use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{self, Instant};

/// How long the leader may hold a request while somebody is missing.
const WAIT: Duration = Duration::from_secs(20);
/// How much longer the answer may take than that.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause before a request is repeated that was not answered.
const RETRY: Duration = Duration::from_millis(200);
/// How long the leader may not know the step: its launch there may be late, but not so late.
const UNKNOWN: Duration = Duration::from_secs(120);
/// How long the leader is told that a place has left, if it does not answer, and the longest pause between attempts.
const LEAVING: Duration = Duration::from_secs(24 * 3_600);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long the leader may be silent before that is worth a warning.
const SILENT: Duration = Duration::from_secs(60);

/// The steps of this node that are in fences.
#[derive(Debug)]
pub struct Members {
    bus: SharedBus,
    node: String,
    spool: PathBuf,
    leader: Arc<Leader>,
    /// Steps whose fences are being worked on, and whether there was news meanwhile.
    working: Mutex<HashMap<RunKey, bool>>,
}

/// One of this node's places in a step.
struct Place {
    run: RunId,
    step: StepId,
    place: u32,
    /// The names of the step's nodes.
    nodes: Vec<String>,
}

impl Place {
    /// `None` if the step is no longer there.
    fn in_folder(folder: &RunFolder, key: RunKey) -> Option<Self> {
        let order = folder.log().ok()??.order.filter(|order| order.key() == key)?.order;
        let nodes: Vec<String> = order.nodes.iter().map(|node| node.name.clone()).collect();
        Some(Self { run: order.part.run(), step: order.step, place: order.node_index, nodes })
    }
}

impl Members {
    /// No fences yet.
    pub fn new(bus: SharedBus, node: String, spool: PathBuf, leader: Arc<Leader>) -> Self {
        Self { bus, node, spool, leader, working: Mutex::default() }
    }

    /// The tasks of a step may be in a fence.
    pub fn look(self: &Arc<Self>, key: RunKey) {
        {
            let mut working = self.lock();
            if let Some(has_news) = working.get_mut(&key) {
                *has_news = true;
                return;
            }
            working.insert(key, false);
        }
        let members = self.clone();
        tokio::spawn(async move {
            loop {
                members.hold(key).await;
                let mut working = members.lock();
                match working.get_mut(&key) {
                    Some(has_news) if *has_news => *has_news = false,
                    _ => {
                        working.remove(&key);
                        return;
                    }
                }
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunKey, bool>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the tasks contribute to the leader, and the answer to their shim.
    async fn hold(&self, key: RunKey) {
        let folder = RunFolder::of(&self.spool, key);
        let Some(place) = place_of(&folder, key).await else { return };
        if place.place == 0 {
            self.lead(&place, &folder).await;
        }
        while let Some((number, contribution)) = self.waiting(key, &folder).await {
            let Some(answer) = self.meet(&folder, &place, number, &contribution).await else { return };
            let written = {
                let folder = folder.clone();
                let write = move || match folder.has_answered_fence() {
                    // The leader has kept it here.
                    true => Ok(()),
                    false => folder.answer_fence(number, answer.as_deref()),
                };
                tokio::task::spawn_blocking(write).await
            };
            if let Err(error) = written.map_err(io::Error::other).and_then(|written| written) {
                tracing::warn!(%key, node = self.node, %error, "the answer to a fence cannot be kept in the spool");
                return;
            }
        }
        // Also if an earlier life of this process, or the leader, has left the answer.
        if folder.has_answered_fence() {
            protocol::write_to_busy_pipe(&folder.file(CONTROL), &Control::Fence).await;
        }
    }

    /// Leads the fences of a step whose first place is here, in this folder.
    async fn lead(&self, place: &Place, folder: &RunFolder) {
        let (leader, folder, nodes) = (self.leader.clone(), folder.clone(), place.nodes.clone());
        let (run, step) = (place.run, place.step);
        let lead = tokio::task::spawn_blocking(move || leader.lead(run, step, &folder, &nodes)).await;
        if let Err(error) = lead {
            tracing::error!(%run, %step, %error, "the fences of a step cannot be led");
        }
    }

    /// The fence that the tasks are in and that has no answer yet.
    async fn waiting(&self, key: RunKey, folder: &RunFolder) -> Option<(u32, Vec<u8>)> {
        let folder = folder.clone();
        // The folder may have become another run's.
        let look = move || folder.waiting_fence().filter(|_| Place::in_folder(&folder, key).is_some());
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }

    /// What all places have contributed, or why this cannot be; `None` if nobody waits for it any more.
    async fn meet(
        &self,
        folder: &RunFolder,
        place: &Place,
        number: u32,
        contribution: &[u8],
    ) -> Option<Result<Vec<u8>, String>> {
        let mut offset = 0;
        let (mut known, mut heard) = (Instant::now(), Instant::now());
        loop {
            let begin = usize::try_from(offset).map_or(contribution.len(), |offset| offset.min(contribution.len()));
            let bytes: Vec<u8> = contribution[begin..].iter().take(MAX_PIECE_BYTES).copied().collect();
            let is_last = begin + bytes.len() == contribution.len();
            let bytes = ContentBytes(bytes);
            let ask = FenceAsk::Meet { number, offset: begin as u64, bytes, is_last, wait_millis: millis(WAIT) };
            let reply = self.ask(place, ask).await;
            if !matches!(reply, Ok(FenceReply::Unknown)) {
                known = Instant::now();
            } else if known.elapsed() > UNKNOWN {
                return Some(Err("its first node does not know it, or no longer".to_owned()));
            }
            if reply.is_ok() {
                heard = Instant::now();
            } else if heard.elapsed() > SILENT {
                let (run, step, node) = (place.run, place.step, &self.node);
                tracing::warn!(%run, %step, node, "the tasks of a step wait for others, and the node that leads their fences does not answer; may nodes speak on muster.fence on the bus?");
                heard = Instant::now();
            }
            match reply {
                Ok(FenceReply::Received(length)) => offset = length,
                Ok(FenceReply::Met { bytes, length, .. }) => {
                    if let Some(answer) = self.collect(place, number, bytes.0, length).await {
                        return Some(Ok(answer));
                    }
                }
                Ok(FenceReply::Broken(why)) => return Some(Err(why)),
                Ok(FenceReply::NotYet | FenceReply::Unknown | FenceReply::Done) => {}
                Err(error) if error.is_retryable() => self.pause(place, &error).await,
                // The other node has another version of muster: its answers will not change.
                Err(error) => return Some(Err(format!("its first node cannot be asked: {error}"))),
            }
            if !is_alive(folder).await {
                return None;
            }
        }
    }

    /// The rest of an answer that begins with these bytes; `None` if the leader does not give it: the fence is then asked
    /// for again.
    async fn collect(&self, place: &Place, number: u32, begin: Vec<u8>, length: u64) -> Option<Vec<u8>> {
        let mut answer = begin;
        while (answer.len() as u64) < length {
            let offset = answer.len() as u64;
            match self.ask(place, FenceAsk::Collect { number, offset }).await {
                Ok(FenceReply::Met { offset: at, bytes, .. }) if at == offset && !bytes.0.is_empty() => {
                    answer.extend(bytes.0);
                }
                _ => {
                    time::sleep(RETRY).await;
                    return None;
                }
            }
        }
        Some(answer)
    }

    /// The tasks of a step have ended here: who leads its fences need not wait for them.
    pub fn leave(self: &Arc<Self>, key: RunKey) {
        // Its folder is removed as soon as the ledger knows of its end, so it is read at once.
        let Some(place) = Place::in_folder(&RunFolder::of(&self.spool, key), key) else { return };
        let members = self.clone();
        tokio::spawn(async move {
            let (begin, mut pause) = (Instant::now(), RETRY);
            loop {
                let reply = members.ask(&place, FenceAsk::Leave).await;
                let is_over = matches!(reply, Ok(FenceReply::Unknown)) && begin.elapsed() > UNKNOWN;
                if matches!(reply, Ok(FenceReply::Done)) || is_over || begin.elapsed() > LEAVING {
                    return;
                }
                time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }

    async fn ask(&self, place: &Place, ask: FenceAsk) -> Result<FenceReply, BusError> {
        let request = FenceRequest { run: place.run, step: place.step, place: place.place, ask };
        let first = place.nodes.first().map_or("", String::as_str);
        if first == self.node {
            return Ok(self.leader.ask(&subjects::token(&self.node), request).await);
        }
        let subject = subjects::fence(first, &self.node);
        let malformed = |source| BusError::Malformed { subject: subject.clone(), source };
        let message = Message::encode(&request).map_err(malformed)?;
        self.bus.request(&subject, message, WAIT + PATIENCE).await?.decode().map_err(malformed)
    }

    async fn pause(&self, place: &Place, error: &BusError) {
        let (run, step, node) = (place.run, place.step, &self.node);
        tracing::debug!(%run, %step, node, %error, "the node that leads a fence does not answer; it is asked again");
        time::sleep(RETRY).await;
    }
}

async fn place_of(folder: &RunFolder, key: RunKey) -> Option<Place> {
    let folder = folder.clone();
    tokio::task::spawn_blocking(move || Place::in_folder(&folder, key)).await.ok().flatten()
}

/// Whether somebody waits for the answer to a fence.
async fn is_alive(folder: &RunFolder) -> bool {
    let folder = folder.clone();
    tokio::task::spawn_blocking(move || folder.waiting_fence().is_some() && folder.is_held().unwrap_or(false))
        .await
        .unwrap_or(false)
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
