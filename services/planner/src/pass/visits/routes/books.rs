//! The sums of runs that gates count: of each queue, and of each machine.

use crate::{engine::Engine, model::lead_queue};
use muster_schemas::{Timestamp, policy::routes::Routes, resources::IndexSet};
use std::collections::BTreeMap;

/// The runs of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct InQueue {
    pub jobs: u64,
    pub units: u64,
    /// When the last of them is over.
    pub latest: Option<Timestamp>,
}

/// The runs of a machine.
#[derive(Clone, Debug, Default)]
pub(super) struct OnMachine {
    pub jobs: u64,
    pub units: u64,
    /// The processors of those that started in this cycle.
    pub added_processors: u64,
    pub asked: BTreeMap<String, i128>,
    /// The numbers of the units that they have.
    pub numbers: IndexSet,
    /// Some of them have units without numbers.
    pub has_others: bool,
}

/// A run as the sums count it.
pub(super) struct Counted<'c> {
    pub queue: &'c str,
    pub size: u32,
    pub end: Timestamp,
    pub attributes: Option<&'c BTreeMap<String, i64>>,
    pub numbers: Option<&'c IndexSet>,
    pub is_new: bool,
}

/// All sums.
#[derive(Clone, Debug, Default)]
pub(super) struct Books {
    queues: BTreeMap<String, InQueue>,
    machines: BTreeMap<String, OnMachine>,
}

impl Books {
    /// The sums of all runs.
    pub fn of(engine: &Engine, routes: &Routes) -> Self {
        let mut books = Self::default();
        for (end, job) in engine.ends() {
            let Some(run) = engine.run(job) else { continue };
            let attributes = run.attributes.as_deref();
            let queue = lead_queue(&run.demand);
            let (size, numbers) = (routes.size_of(attributes), engine.conditions.numbers.get(&job));
            books.count(routes, &Counted { queue, size, end, attributes, numbers, is_new: false });
        }
        books
    }

    /// One more run.
    pub fn count(&mut self, routes: &Routes, run: &Counted<'_>) {
        let queue = self.queues.entry(run.queue.to_owned()).or_default();
        queue.jobs += 1;
        queue.units += u64::from(run.size);
        queue.latest = queue.latest.max(Some(run.end));
        let Some(name) = routes.target(run.queue).and_then(|target| target.machine.as_deref()) else { return };
        let machine = self.machines.entry(name.to_owned()).or_default();
        machine.jobs += 1;
        machine.units += u64::from(run.size);
        machine.added_processors += if run.is_new { processors(run.attributes) } else { 0 };
        match run.numbers {
            Some(numbers) => machine.numbers = machine.numbers.union(numbers),
            None => machine.has_others = true,
        }
        for (attribute, value) in run.attributes.into_iter().flatten().filter(|(_, value)| **value > 0) {
            *machine.asked.entry(attribute.clone()).or_default() += i128::from(*value);
        }
    }

    pub fn queue(&self, name: &str) -> InQueue {
        self.queues.get(name).cloned().unwrap_or_default()
    }

    pub fn machine(&self, name: &str) -> OnMachine {
        self.machines.get(name).cloned().unwrap_or_default()
    }
}

/// The processors that a job asks for, one if it asks for none.
pub(super) fn processors(attributes: Option<&BTreeMap<String, i64>>) -> u64 {
    let asked = attributes.and_then(|all| u64::try_from(*all.get("cores")?).ok());
    asked.filter(|asked| *asked > 0).unwrap_or(1)
}
