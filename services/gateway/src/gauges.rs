//! The cluster in numbers, for dashboards and alerts: nodes by state, jobs by queue and state, cores, licences. Each gateway shows
//! the same, so that they can be had wherever there is one.

use crate::{reader::Reader, views};
use muster_domain::State;
use muster_schemas::{Sequence, job::JobState, views::NodeStateWord};
use muster_telemetry::metrics::{Gauge, KeyValue, gauge};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// How often the numbers are made, if anything has changed.
const COUNT_EVERY: Duration = Duration::from_secs(10);

/// A metric with labels that come and go: what is no more is told once more as nothing.
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

/// Keeps the numbers up to date, for ever.
pub(crate) async fn keep(reader: &Reader) {
    let mut nodes = Family::new("muster_nodes", "Nodes by state.", &["state"]);
    let mut jobs = Family::new(
        "muster_jobs",
        "Jobs that are not over, by queue and state; each task of an array is one.",
        &["queue", "state"],
    );
    let mut cores =
        Family::new("muster_cores", "Cores: of all nodes, of those that are up, and those that runs have.", &["kind"]);
    let mut licences =
        Family::new("muster_licences", "Licences: how many there are, and how many runs have.", &["licence", "kind"]);
    let mut counted = None::<Sequence>;
    loop {
        let sequence = reader.projection().sequence();
        if counted != Some(sequence) {
            counted = Some(sequence);
            let numbers = reader.projection().read(Numbers::of);
            nodes.tell(numbers.nodes);
            jobs.tell(numbers.jobs);
            cores.tell(numbers.cores);
            licences.tell(numbers.licences);
        }
        tokio::time::sleep(COUNT_EVERY).await;
    }
}
