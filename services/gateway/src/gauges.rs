//! The cluster in numbers, for dashboards and alerts: nodes by state, jobs by queue and state, cores, licences. Each
//! gateway shows the same, so they are available wherever there is one.

use crate::{reader::Reader, views};
use muster_domain::State;
use muster_schemas::{Sequence, job::JobState, views::NodeStateWord};
use muster_telemetry::metrics::{Gauge, KeyValue, gauge};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How often to check for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the numbers of a large cluster are recomputed if anything has changed.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// This many nodes and jobs are counted within a few milliseconds, and may be counted at each check.
const FEW: usize = 10_000;

/// A metric with labels that come and go: a series that disappears is set to zero once.
struct Family {
    gauge: Gauge<i64>,
    labels: &'static [&'static str],
    told: BTreeSet<Vec<String>>,
}

impl Family {
    fn new(name: &'static str, description: &'static str, labels: &'static [&'static str]) -> Self {
        Self { gauge: gauge(name, description), labels, told: BTreeSet::new() }
    }

    fn tell(&mut self, numbers: BTreeMap<Vec<String>, u64>) {
        let now: BTreeSet<_> = numbers.keys().cloned().collect();
        let gone = self.told.difference(&now).map(|values| (values.clone(), 0));
        for (values, number) in gone.chain(numbers) {
            let labels = self.labels.iter().zip(values);
            let labels: Vec<KeyValue> = labels.map(|(label, value)| KeyValue::new(*label, value)).collect();
            self.gauge.record(i64::try_from(number).unwrap_or(i64::MAX), &labels);
        }
        self.told = now;
    }
}

/// The numbers of a state, by the values of their labels.
#[derive(Debug, Default, PartialEq, Eq)]
struct Numbers {
    nodes: BTreeMap<Vec<String>, u64>,
    jobs: BTreeMap<Vec<String>, u64>,
    cores: BTreeMap<Vec<String>, u64>,
    licences: BTreeMap<Vec<String>, u64>,
}

impl Numbers {
    fn of(state: &State) -> Self {
        let mut numbers = Self::default();
        for word in [NodeStateWord::Unknown, NodeStateWord::Up, NodeStateWord::Drained, NodeStateWord::Lost] {
            numbers.nodes.insert(vec![word.word().to_owned()], 0);
        }
        let (mut total, mut up, mut used) = (0, 0, 0);
        for node in state.nodes() {
            let word = views::node_state(node);
            *numbers.nodes.entry(vec![word.word().to_owned()]).or_default() += 1;
            let cores = u64::from(node.spec.cores);
            total += cores;
            used += cores.saturating_sub(node.free_cores.len());
            if word == NodeStateWord::Up {
                up += cores;
            }
        }
        for (what, count) in [("total", total), ("up", up), ("used", used)] {
            numbers.cores.insert(vec![what.to_owned()], count);
        }
        let is_shown = |state: &&JobState| !matches!(state, JobState::Finished);
        for queue in state.queues() {
            for state in JobState::ALL.iter().filter(is_shown) {
                numbers.jobs.insert(vec![queue.spec.name.clone(), state.word().to_owned()], 0);
            }
        }
        for job in state.jobs() {
            let (job_state, tasks) = views::waiting_tasks(state, job);
            if is_shown(&&job_state) {
                let labels = vec![job.lead().queue.to_string(), job_state.word().to_owned()];
                *numbers.jobs.entry(labels).or_default() += tasks;
            }
        }
        for (name, licence) in state.licences() {
            for (what, count) in [("total", licence.total), ("used", licence.used)] {
                numbers.licences.insert(vec![name.to_owned(), what.to_owned()], u64::from(count));
            }
        }
        numbers
    }
}

/// The numbers as they are shown.
pub(crate) struct Gauges(Mutex<Shown>);

struct Shown {
    nodes: Family,
    jobs: Family,
    cores: Family,
    licences: Family,
    /// The last record in the numbers, when they were computed, and from how many nodes and jobs.
    counted: Option<(Sequence, Instant, usize)>,
}

impl Gauges {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Shown {
            nodes: Family::new("muster_nodes", "Nodes by state.", &["state"]),
            jobs: Family::new(
                "muster_jobs",
                "Jobs that are not over, by queue and state; each task of an array is one.",
                &["queue", "state"],
            ),
            cores: Family::new(
                "muster_cores",
                "Cores of all nodes, of nodes that are up, and in use by runs.",
                &["kind"],
            ),
            licences: Family::new(
                "muster_licences",
                "Licences: how many there are, and how many runs have.",
                &["licence", "kind"],
            ),
            counted: None,
        }))
    }

    /// Recomputes the numbers if anything has changed. Those of a large cluster may be some seconds old.
    pub(crate) fn count(&self, reader: &Reader) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sequence = reader.projection().sequence();
        let is_new_enough =
            shown.counted.is_some_and(|(of, at, items)| of == sequence || items > FEW && at.elapsed() < COUNT_EVERY);
        if is_new_enough {
            return;
        }
        let (numbers, items) =
            reader.projection().read(|state| (Numbers::of(state), state.nodes().count() + state.jobs().count()));
        shown.counted = Some((sequence, Instant::now(), items));
        shown.nodes.tell(numbers.nodes);
        shown.jobs.tell(numbers.jobs);
        shown.cores.tell(numbers.cores);
        shown.licences.tell(numbers.licences);
    }

    /// Keeps them up to date for ever, for exporters that do not trigger a count themselves.
    pub(crate) async fn keep(&self, reader: &Reader) {
        loop {
            self.count(reader);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
