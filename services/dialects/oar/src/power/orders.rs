//! Which nodes are woken and put to sleep, and when.

use super::{may_be_put_to_sleep, may_be_woken};
use crate::{
    planning::gantt::Placement,
    resources::{state::State, table::Table},
    text::decimal,
};
use std::collections::{BTreeMap, BTreeSet};

/// The nodes to wake (OAR-E-03): those of placements that start within the time that waking takes, each once, without
/// those whose wake-up is pending (OAR-E-06).
pub fn to_wake(
    table: &Table,
    planned: &[Placement],
    pending: &BTreeMap<String, Pending>,
    now: i64,
    lead: i64,
) -> Vec<String> {
    let soon = planned.iter().filter(|placement| placement.start <= now.saturating_add(lead));
    let resources = soon.flat_map(|placement| &placement.resources).filter_map(|id| table.resource(*id));
    let asleep =
        resources.filter(|resource| resource.state() == State::Absent && may_be_woken(resource.available_upto()));
    let nodes: BTreeSet<&str> = asleep.map(|resource| resource.node()).collect();
    let wanted = nodes.into_iter().filter(|node| !node.is_empty() && !pending.contains_key(*node));
    wanted.map(str::to_owned).collect()
}

/// A wake-up that was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// When.
    pub ordered_at: i64,
    /// How long the node has to answer.
    pub timeout: i64,
}

impl Pending {
    /// Whether the node did not answer in time: it is suspected, and its jobs are planned elsewhere.
    pub const fn is_overdue(self, now: i64) -> bool {
        now - self.ordered_at > self.timeout
    }
}

/// Nodes that are to sleep although they are being woken (OAR-E-09): the order is kept until the wake-up is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptOrders(BTreeSet<String>);

impl KeptOrders {
    /// Whether a node is sent to sleep now; if not, the order is kept.
    pub fn ask(&mut self, node: &str, pending: &BTreeMap<String, Pending>) -> bool {
        let is_free = !pending.contains_key(node);
        if !is_free {
            self.0.insert(node.to_owned());
        }
        is_free
    }

    /// Whether a node whose wake-up is settled is sent to sleep now.
    pub fn settle(&mut self, node: &str) -> bool {
        self.0.remove(node)
    }
}

/// A node without job.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// Its `available_upto`.
    pub available_upto: i64,
    /// When its last job ended; `None` if it never had one.
    pub last_job_end: Option<i64>,
    /// When it was woken last.
    pub woken_at: Option<i64>,
    /// When its next job starts.
    pub next_start: Option<i64>,
}

/// Whether an idle node that is alive goes to sleep (OAR-E-04, OAR-E-05). Both bounds are inclusive.
pub fn may_sleep(node: Idle, now: i64, idle_time: i64, sleep_time: i64) -> bool {
    let is_long_ago = |moment: Option<i64>| moment.is_none_or(|moment| now - moment >= idle_time);
    may_be_put_to_sleep(node.available_upto)
        && is_long_ago(node.last_job_end)
        && is_long_ago(node.woken_at)
        && node.next_start.is_none_or(|start| start >= now.saturating_add(sleep_time))
}

/// How long nodes have to answer a wake-up, by the number of nodes that are woken together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts(Vec<(u64, i64)>);

impl Default for Timeouts {
    fn default() -> Self {
        Self(vec![(1, 900)])
    }
}

impl Timeouts {
    /// Reads `900`, or `1:500 11:1000 21:2000` for 500 s up to 10 nodes, 1000 s up to 20, and 2000 s beyond.
    ///
    /// # Errors
    /// The first mistake, as a sentence.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some(seconds) = decimal(text.trim()) {
            return Ok(Self(vec![(1, seconds)]));
        }
        let step = |word: &str| {
            let pair = word.split_once(':').and_then(|(count, seconds)| Some((decimal(count)?, decimal(seconds)?)));
            pair.ok_or_else(|| format!("expected COUNT:SECONDS, found '{}'", crate::text::shown(word)))
        };
        let steps: Vec<(u64, i64)> = text.split_whitespace().map(step).collect::<Result<_, _>>()?;
        let is_rising = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        match steps.first() {
            Some((1, _)) if is_rising => Ok(Self(steps)),
            _ => Err("expected steps that begin at 1 and rise, as in 1:500 11:1000".to_owned()),
        }
    }

    /// The seconds for this number of nodes.
    pub fn of(&self, nodes: u64) -> i64 {
        self.0
            .iter()
            .rev()
            .find(|(from, _)| *from <= nodes)
            .or_else(|| self.0.first())
            .map_or(900, |(_, seconds)| *seconds)
    }
}

/// Nodes in groups that one command gets (OAR-E-08).
pub fn batches(nodes: &[String], most: usize) -> Vec<Vec<String>> {
    nodes.chunks(most.max(1)).map(<[String]>::to_vec).collect()
}
