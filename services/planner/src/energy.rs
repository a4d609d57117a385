//! What a cluster would have used under another sleep policy, from the runs of a log or of a simulation.
//!
//! Each node is looked at by itself. It is busy while it has a run. In a gap between runs it stays awake for the idle time,
//! then falls asleep, and wakes when the next run needs it: that run would have waited.

use muster_schemas::{
    NodeId, Timestamp,
    energy::NodeWatts,
    event::{Event, Record},
    resources::Placement,
};
use serde::Serialize;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A sleep policy to estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepPolicy {
    /// A node sleeps after it has been idle for this long; `None` if it never does.
    pub idle_seconds: Option<u32>,
    /// How long it takes to wake, and to fall asleep.
    pub wake_up_seconds: u32,
    /// What nodes use.
    pub watts: NodeWatts,
}

/// What all nodes together would have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// Node-seconds with runs.
    pub busy_seconds: u64,
    /// Node-seconds awake without runs.
    pub idle_seconds: u64,
    /// Node-seconds asleep.
    pub asleep_seconds: u64,
    /// Node-seconds of falling asleep and waking.
    pub waking_seconds: u64,
    /// In joules, which are watt-seconds.
    pub joules: u64,
    /// How often a node would have been woken for a run, which would have waited.
    pub wakes: u64,
}

/// When nodes had runs.
#[derive(Clone, Debug, Default)]
pub struct Occupation {
    /// The changes of the number of runs of each node.
    changes: BTreeMap<NodeId, Vec<(Timestamp, i64)>>,
    running: BTreeMap<u64, (Arc<Placement>, Timestamp)>,
    nodes: BTreeSet<NodeId>,
    span: Option<(Timestamp, Timestamp)>,
    watts: Option<NodeWatts>,
}

impl Occupation {
    /// The next record of a log. Runs that give up or get nodes count as long as they last on those that they began with.
    pub fn add(&mut self, record: &Record) {
        let (first, _) = self.span.unwrap_or((record.time, record.time));
        self.span = Some((first, record.time));
        match &record.event {
            Event::SettingsChanged { settings } => {
                self.watts = settings.energy.as_ref().and_then(|energy| energy.watts).or(self.watts);
            }
            Event::NodeAdded { node, .. } => drop(self.nodes.insert(*node)),
            Event::RunAllocated { run, placement, .. } => {
                self.running.insert(run.0, (placement.clone(), record.time));
            }
            Event::RunEnded { run, .. } => {
                if let Some((placement, since)) = self.running.remove(&run.0) {
                    self.count(&placement, since, record.time);
                }
            }
            _ => {}
        }
    }

    /// These nodes, without any run so far.
    pub fn of_nodes(nodes: impl Iterator<Item = NodeId>) -> Self {
        Self { nodes: nodes.collect(), ..Self::default() }
    }

    /// Sets from when to when the nodes are looked at.
    pub fn set_span(&mut self, first: Timestamp, last: Timestamp) {
        self.span = Some((first, last));
    }

    /// A run had a node for a time.
    pub fn count_on(&mut self, node: NodeId, from: Timestamp, to: Timestamp) {
        self.nodes.insert(node);
        self.changes.entry(node).or_default().extend([(from, 1), (to, -1)]);
    }

    /// What nodes use, as the settings last said.
    pub fn watts(&self) -> Option<NodeWatts> {
        self.watts
    }

    /// A run had these nodes for a time.
    pub fn count(&mut self, placement: &Placement, from: Timestamp, to: Timestamp) {
        let nodes: BTreeSet<NodeId> = placement.nodes().collect();
        nodes.into_iter().for_each(|node| self.count_on(node, from, to));
    }

    /// The estimate for a policy, from the first record to the last. Runs that have not ended last until then.
    pub fn estimate(&self, policy: &SleepPolicy) -> Estimate {
        let mut whole = self.clone();
        let Some((first, last)) = self.span else { return Estimate::default() };
        for (placement, since) in std::mem::take(&mut whole.running).into_values() {
            whole.count(&placement, since, last);
        }
        let mut estimate = Estimate::default();
        for node in &whole.nodes {
            let mut changes = whole.changes.remove(node).unwrap_or_default();
            changes.sort_unstable();
            let (mut runs, mut since) = (0, first);
            for (at, change) in changes {
                let seconds = seconds_between(since, at);
                if runs > 0 {
                    estimate.busy_seconds += seconds;
                } else {
                    estimate.add_gap(seconds, policy, true);
                }
                (runs, since) = (runs + change, at.max(since));
            }
            estimate.add_gap(seconds_between(since, last), policy, false);
        }
        let NodeWatts { busy, idle, asleep, waking } = policy.watts;
        let used = [
            (estimate.busy_seconds, busy),
            (estimate.idle_seconds, idle),
            (estimate.asleep_seconds, asleep),
            (estimate.waking_seconds, waking),
        ];
        estimate.joules = used.iter().map(|(seconds, watts)| seconds.saturating_mul(u64::from(*watts))).sum();
        estimate
    }
}

impl Estimate {
    /// The energy in kilowatt-hours.
    pub fn kilowatt_hours(&self) -> f64 {
        self.joules as f64 / 3_600_000.0
    }

    /// A time without run, after which a run begins or the log ends.
    fn add_gap(&mut self, seconds: u64, policy: &SleepPolicy, is_ended_by_run: bool) {
        let awake = policy.idle_seconds.map_or(u64::MAX, u64::from).min(seconds);
        self.idle_seconds += awake;
        let rest = seconds - awake;
        if rest == 0 {
            return;
        }
        let moves = if is_ended_by_run { 2 } else { 1 };
        let waking = (u64::from(policy.wake_up_seconds) * moves).min(rest);
        self.waking_seconds += waking;
        self.asleep_seconds += rest - waking;
        self.wakes += u64::from(is_ended_by_run);
    }
}

fn seconds_between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.micros_since(from) / 1_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_schemas::resources::{ComponentPlacement, IndexSet, NodeShare};

    fn on(nodes: &[u32]) -> Placement {
        let share = |node: &u32| NodeShare {
            node: NodeId(*node),
            cores: IndexSet::first_n(1),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            tasks: 1,
            exclusive: false,
        };
        Placement { components: vec![ComponentPlacement { alternative: 0, shares: nodes.iter().map(share).collect() }] }
    }

    fn policy(idle_seconds: Option<u32>) -> SleepPolicy {
        let watts = NodeWatts { busy: 300, idle: 100, asleep: 10, waking: 150 };
        SleepPolicy { idle_seconds, wake_up_seconds: 60, watts }
    }

    /// Two nodes over 10,000 s: one is busy from 0 to 1,000 and from 5,000 to 6,000, the other never.
    fn occupation() -> Occupation {
        let at = Timestamp::from_unix_seconds;
        let mut occupation = Occupation { span: Some((at(0), at(10_000))), ..Occupation::default() };
        occupation.nodes.insert(NodeId(2));
        occupation.count(&on(&[1]), at(0), at(1_000));
        // Two runs at a time are one time.
        occupation.count(&on(&[1, 1]), at(500), at(800));
        occupation.count(&on(&[1]), at(5_000), at(6_000));
        occupation
    }

    /// Each second of a node is counted once.
    #[test]
    fn nodes_that_never_sleep_are_busy_or_idle() {
        let estimate = occupation().estimate(&policy(None));
        assert_eq!((estimate.busy_seconds, estimate.idle_seconds, estimate.asleep_seconds), (2_000, 18_000, 0));
        assert_eq!((estimate.joules, estimate.wakes), (2_000 * 300 + 18_000 * 100, 0));
    }

    /// A gap is idle, then asleep, and ends with a wake-up if a run ends it.
    #[test]
    fn gaps_longer_than_the_idle_time_are_slept_through() {
        let estimate = occupation().estimate(&policy(Some(600)));
        // Gaps of 4,000 s (woken), 4,000 s and 10,000 s.
        assert_eq!((estimate.busy_seconds, estimate.idle_seconds), (2_000, 3 * 600));
        assert_eq!((estimate.waking_seconds, estimate.wakes), (2 * 60 + 60 + 60, 1));
        assert_eq!(estimate.asleep_seconds, 3_400 - 120 + 3_400 - 60 + 9_400 - 60);
        let sum = estimate.busy_seconds + estimate.idle_seconds + estimate.asleep_seconds + estimate.waking_seconds;
        assert_eq!(sum, 20_000);
        assert!(estimate.joules < occupation().estimate(&policy(None)).joules);
        let never = occupation().estimate(&policy(Some(10_001)));
        assert_eq!(never, occupation().estimate(&policy(None)));
    }
}
