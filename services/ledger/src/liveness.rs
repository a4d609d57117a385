//! Which nodes have reported lately. This is not history: a ledger that starts gives every node a full interval.

use crate::beats::Beats;
use muster_domain::{State, nodes::Node};
use muster_schemas::{agent::LEAVING, cluster::NodeCondition, ids::NodeId, resources::NodeSpec};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// How often the ledger looks for silent nodes.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// A check that is later than this was kept from running: the ledger or the whole machine stalled, and with it the
/// nodes' reports.
const STOOD_STILL: Duration = Duration::from_secs(5);
/// A bus that has not delivered the ledger's question to itself for this long is away, and so are the reports of nodes.
const BUS_AWAY: Duration = Duration::from_secs(4);

/// When each node last reported.
#[derive(Debug)]
pub(crate) struct Liveness {
    heard: HashMap<NodeId, Instant>,
    /// No silence counts from before this moment.
    since: Instant,
    next_check: Instant,
}

impl Liveness {
    /// Every node counts as having reported just now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { heard: HashMap::new(), since: now, next_check: now + CHECK_EVERY }
    }

    /// A node has sent a command.
    pub(crate) fn heard(&mut self, node: NodeId, now: Instant) {
        self.heard.insert(node, now);
    }

    /// When [`Liveness::silent`] is next worth a call.
    pub(crate) fn next_check(&self) -> Instant {
        self.next_check
    }

    /// The nodes that are up according to the log and have been silent for too long, each with a reason for people. No
    /// silence counts while the bus is away.
    pub(crate) fn silent(&mut self, state: &State, beats: &Beats, now: Instant) -> Vec<(NodeId, String)> {
        if now < self.next_check {
            return Vec::new();
        }
        for (name, at) in beats.take_heard() {
            if let Some(node) = state.node_by_name(&name) {
                let last = self.heard.entry(node.id).or_insert(at);
                *last = at.max(*last);
            }
        }
        let stood_still = now.saturating_duration_since(self.next_check) > STOOD_STILL;
        let carried = beats.bus_carried().unwrap_or(now);
        if stood_still || now.saturating_duration_since(carried) > BUS_AWAY {
            self.since = now;
        }
        self.next_check = now + CHECK_EVERY;
        let patience = |spec: &NodeSpec| Duration::from_secs(state.settings().lost_after_seconds(spec).into());
        let since = self.since;
        let last_heard = |node: NodeId| self.heard.get(&node).copied().unwrap_or(since).max(since);
        // An agent that was told to quit is expected to be silent once its jobs have ended (OAR-K-10).
        let has_left = |node: &Node| node.drained.as_deref() == Some(LEAVING) && node.runs.is_empty();
        let up = state.nodes().filter(|node| node.condition == NodeCondition::Up && !has_left(node));
        up.filter_map(|node| {
            let silence = now.saturating_duration_since(last_heard(node.id));
            let reason = || format!("not heard of for {} seconds", silence.as_secs());
            (silence > patience(&node.spec)).then(|| (node.id, reason()))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::{
        event::{Actor, Event, Record, TraceContext},
        ids::{CommandId, Sequence},
        node::Heartbeat,
        time::Timestamp,
    };
    use std::{collections::BTreeMap, sync::Arc};

    const SECOND: Duration = Duration::from_secs(1);

    /// A state with a node that is up, which is lost after 30 seconds.
    fn state() -> State {
        let spec = NodeSpec {
            name: "n1".into(),
            cores: 1,
            sockets: 1,
            memory_bytes: 0,
            gpus: Vec::new(),
            properties: BTreeMap::new(),
        };
        let events = [
            Event::NodeAdded { node: NodeId(0), spec: Arc::new(spec) },
            Event::NodeUp { node: NodeId(0), boot_id: "boot".into() },
        ];
        let mut state = State::new();
        for (sequence, event) in (1..).zip(events) {
            let (actor, command) = (Arc::new(Actor::Ledger), CommandId::derived(&[]));
            let (sequence, time) = (Sequence(sequence), Timestamp(0));
            let trace = TraceContext::default();
            state.apply(&Record { sequence, time, actor, command, trace, event, epoch: 0 }).unwrap();
        }
        state
    }

    fn reports(beats: &Beats, at: Instant) {
        let (node, boot_id) = ("n1".to_owned(), "boot".to_owned());
        let beat = Heartbeat { node, boot_id, parts: Vec::new(), highest_run: None, as_of: None };
        beats.arrive(beat, Box::new(drop), at);
    }

    /// OAR-K-03: a node whose agent asks for its orders has the time of three periods.
    #[test]
    fn agents_have_more_time() {
        let (begin, beats) = (Instant::now(), Beats::new());
        let mut liveness = Liveness::new(begin);
        let mut state = state();
        let properties =
            BTreeMap::from([(NodeSpec::PULL.to_owned(), muster_schemas::resources::PropertyValue::Flag(true))]);
        let node = state.node_by_name("n1").expect("it was added");
        let spec = NodeSpec { properties, ..(*node.spec).clone() };
        let event = Event::NodeChanged { node: NodeId(0), spec: Arc::new(spec) };
        let (actor, command) = (Arc::new(Actor::Ledger), CommandId::derived(&[]));
        let trace = TraceContext::default();
        state
            .apply(&Record { sequence: Sequence(3), time: Timestamp(0), actor, command, trace, event, epoch: 0 })
            .unwrap();
        reports(&beats, begin);
        let mut silent = |second: u32| !liveness.silent(&state, &beats, begin + SECOND * second).is_empty();
        assert_eq!((1..=200).find(|second| silent(*second)), Some(91));
    }

    /// Looks each second; returns the first second, if any, after which a node is silent.
    fn first_silence(liveness: &mut Liveness, beats: &Beats, from: Instant, seconds: u32) -> Option<u32> {
        let state = state();
        (1..=seconds).find(|second| !liveness.silent(&state, beats, from + SECOND * *second).is_empty())
    }

    #[test]
    fn a_node_is_silent_when_its_last_report_is_too_old() {
        let (begin, beats) = (Instant::now(), Beats::new());
        let mut liveness = Liveness::new(begin);
        reports(&beats, begin + 5 * SECOND);
        assert_eq!(first_silence(&mut liveness, &beats, begin, 60), Some(36));
    }

    /// Nothing arrives over a bus that is away: only silence since its return counts.
    #[test]
    fn silence_does_not_count_while_the_bus_is_away() {
        let (begin, beats) = (Instant::now(), Beats::new());
        let mut liveness = Liveness::new(begin);
        beats.note_bus(begin);
        assert_eq!(first_silence(&mut liveness, &beats, begin, 300), None);
        let back = begin + 300 * SECOND;
        beats.note_bus(back + 60 * SECOND);
        assert_eq!(first_silence(&mut liveness, &beats, back, 60), Some(31));
    }

    /// Reports that arrive while the decide loop stalls count from their arrival.
    #[test]
    fn a_stall_of_the_loop_makes_nobody_silent() {
        let (begin, beats) = (Instant::now(), Beats::new());
        let mut liveness = Liveness::new(begin);
        let state = state();
        assert!(liveness.silent(&state, &beats, begin + SECOND).is_empty());
        reports(&beats, begin + 34 * SECOND);
        assert!(liveness.silent(&state, &beats, begin + 35 * SECOND).is_empty());
        assert_eq!(first_silence(&mut liveness, &beats, begin + 35 * SECOND, 60), Some(31));
    }
}
