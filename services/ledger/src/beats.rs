//! Heartbeats, kept apart from commands: the time of a node's report is noted on arrival, whatever the decide loop does
//! meanwhile, and the report waits for its answer in a separate inbox, where each node has one place. So even very many
//! nodes take no place from a command.

use crate::work::ReplyTo;
use muster_bus::{Message, SharedBus};
use muster_schemas::{
    command::Query,
    node::{Briefing, Heartbeat},
    subjects,
};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::time::MissedTickBehavior;

/// The most nodes whose reports are kept. Names are only checked later; no real cluster has more nodes.
const MAX_NODES: usize = 1 << 20;
/// How often the bus is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the bus may take to carry a question and its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A report that waits for its answer.
pub(crate) type Waiting = (Heartbeat, ReplyTo<Briefing>);

/// Reports of nodes that the decide loop has not yet seen.
pub(crate) struct Beats {
    inner: Mutex<Inner>,
}

struct Inner {
    /// When nodes last reported, by name.
    heard: HashMap<String, Instant>,
    waiting: HashMap<String, Waiting>,
    /// The names of the waiting nodes, in the order of their reports.
    order: VecDeque<String>,
    /// When the bus was last known to deliver messages; `None` if nobody checks it.
    bus_carried: Option<Instant>,
}

impl Beats {
    /// No reports, on a bus that nobody checks.
    pub(crate) fn new() -> Self {
        let (heard, waiting, order) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self { inner: Mutex::new(Inner { heard, waiting, order, bus_carried: None }) }
    }

    /// A node reports. An earlier report of it that still waits gets no answer, since the node no longer waits for one.
    /// Returns whether nothing was waiting before, so that the loop must be told.
    pub(crate) fn arrive(&self, beat: Heartbeat, reply: ReplyTo<Briefing>, now: Instant) -> bool {
        let mut inner = self.inner();
        let name = beat.node.clone();
        if inner.heard.len() >= MAX_NODES || inner.waiting.len() >= MAX_NODES {
            return false;
        }
        let was_empty = inner.waiting.is_empty();
        inner.heard.insert(name.clone(), now);
        if inner.waiting.insert(name.clone(), (beat, reply)).is_none() {
            inner.order.push_back(name);
        }
        was_empty
    }

    /// The next reports to answer, no more than `at_most`.
    pub(crate) fn take(&self, at_most: usize) -> Vec<Waiting> {
        let mut inner = self.inner();
        let count = at_most.min(inner.order.len());
        let names: Vec<String> = inner.order.drain(..count).collect();
        names.iter().filter_map(|name| inner.waiting.remove(name)).collect()
    }

    /// Whether a report waits for its answer.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.inner().waiting.is_empty()
    }

    /// When nodes reported since the last call.
    pub(crate) fn take_heard(&self) -> HashMap<String, Instant> {
        std::mem::take(&mut self.inner().heard)
    }

    /// When the bus was last known to deliver messages; `None` if nobody checks it.
    pub(crate) fn bus_carried(&self) -> Option<Instant> {
        self.inner().bus_carried
    }

    pub(crate) fn note_bus(&self, at: Instant) {
        self.inner().bus_carried = Some(at);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the bus for ever: the ledger asks itself over it.
pub(crate) async fn look_after_bus(bus: SharedBus, beats: &Beats) {
    let question = match Message::encode(&Query::Head) {
        Ok(question) => question,
        Err(error) => return tracing::error!(%error, "the bus cannot be looked after"),
    };
    beats.note_bus(Instant::now());
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let asked = Instant::now();
        match bus.request(subjects::HEAD, question.clone(), ANSWER_WITHIN).await {
            Ok(_) => beats.note_bus(asked),
            Err(error) => {
                tracing::debug!(%error, "the bus delivers nothing; the silence of nodes does not count")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::RunId;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    fn beat(node: &str, highest: u64) -> Heartbeat {
        let highest_run = Some(RunId(highest));
        Heartbeat { node: node.into(), boot_id: "boot".into(), parts: Vec::new(), highest_run, as_of: None }
    }

    #[test]
    fn each_node_has_one_place_and_its_last_report_counts() {
        let (beats, now) = (Beats::new(), Instant::now());
        let answers = Arc::new(AtomicU32::new(0));
        let reply = || -> ReplyTo<Briefing> {
            let answers = Arc::clone(&answers);
            Box::new(move |_| {
                answers.fetch_add(1, Ordering::Relaxed);
            })
        };
        assert!(beats.arrive(beat("n1", 1), reply(), now));
        assert!(!beats.arrive(beat("n2", 1), reply(), now), "the loop has been woken");
        assert!(!beats.arrive(beat("n1", 2), reply(), now + LOOK_EVERY));
        let heard = beats.take_heard();
        assert_eq!((heard["n1"], heard["n2"]), (now + LOOK_EVERY, now));
        assert!(beats.take_heard().is_empty());
        let [(first, answer)] = <[Waiting; 1]>::try_from(beats.take(1)).ok().expect("one report");
        assert_eq!(first, beat("n1", 2));
        answer(Briefing::default());
        assert!(beats.is_waiting());
        assert_eq!(beats.take(10).len(), 1);
        assert!(!beats.is_waiting());
        assert_eq!(answers.load(Ordering::Relaxed), 1);
        assert!(beats.arrive(beat("n1", 3), reply(), now), "the loop has to be woken again");
    }
}
