//! The size of a job while it is worked out.

use crate::{
    chunks::{ChunkKind, ChunkPlan},
    refusal::Refusal,
};
use muster_schemas::resources::{Alternative, NodeFilter, Request, Sharing};
use std::{collections::BTreeMap, fmt};

/// The most tasks and processors of a job.
const MOST: u32 = 10_000_000;

/// Limits of a job's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::submit) struct Limits {
    /// `file`: the largest file that a process writes, in bytes.
    pub file_bytes: Option<u64>,
    /// `pcput`: the processor time of each process, in seconds.
    pub cpu_seconds: Option<u64>,
    /// `pvmem`: the address space of each process, in bytes.
    pub address_bytes: Option<u64>,
}

impl Limits {
    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [("fsize", self.file_bytes), ("cpu", self.cpu_seconds), ("as", self.address_bytes)];
        let given = all.into_iter().filter_map(|(name, most)| Some(format!("{name}={}", most?)));
        f.write_str(&given.collect::<Vec<_>>().join(","))
    }
}

/// The size of a job.
#[derive(Clone, Debug, Default)]
pub(in crate::submit) struct Size {
    /// The request over the resource tree.
    pub alternative: Alternative,
    /// The chunks behind it.
    pub plan: ChunkPlan,
    /// Limits of its processes.
    pub limits: Limits,
    /// The service class.
    pub class: Option<String>,
    /// The advance reservation.
    pub reservation: Option<String>,
    /// The memory of all chunks, if each says.
    pub memory_bytes: Option<u64>,
    /// The resources as `Resource_List` shows them.
    pub shown: BTreeMap<String, String>,
    /// A sentence for each request without effect.
    pub warnings: Vec<String>,
}

impl Size {
    /// Shows a resource.
    pub fn show(&mut self, name: &str, value: String) {
        self.shown.insert(name.to_owned(), value);
    }

    /// Says that a request has no effect.
    pub fn warn(&mut self, what: &str, why: &str) {
        self.tell(&format!("{what} has no effect here: {why}"));
    }

    /// Adds a warning, once.
    pub fn tell(&mut self, what: &str) {
        let warning = format!("warning: {what}");
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Adds equal chunks with their request. The request's tasks are filled in: `tasks_each` for each chunk.
    ///
    /// # Errors
    /// More tasks or processors than can be counted.
    pub fn add(&mut self, kind: ChunkKind, request: Request) -> Result<(), Refusal> {
        let tasks = total(kind.count, kind.tasks)?;
        total(tasks, request.cpus_per_task)?;
        total(kind.count, kind.mpiprocs)?;
        self.plan.kinds.push(kind);
        self.alternative.requests.push(Request { tasks: Some(tasks), ..request });
        Ok(())
    }

    /// Keeps other jobs from the nodes.
    pub fn make_exclusive(&mut self) {
        for request in &mut self.alternative.requests {
            if request.sharing == Sharing::Shared {
                request.sharing = Sharing::Exclusive;
            }
        }
    }

    /// Adds a condition for all nodes.
    pub fn require(&mut self, condition: &NodeFilter) {
        for request in &mut self.alternative.requests {
            request.filter = Some(both(request.filter.take(), condition.clone()));
        }
    }

    /// Shows what servers of the family compute.
    pub fn show_totals(&mut self) {
        let (ncpus, mpiprocs, chunks) = (self.plan.ncpus(), self.plan.mpiprocs(), self.plan.count());
        self.show("ncpus", ncpus.to_string());
        self.show("nodect", chunks.to_string());
        if mpiprocs != chunks {
            self.show("mpiprocs", mpiprocs.to_string());
        }
        if let Some(bytes) = self.memory_bytes.filter(|_| !self.shown.contains_key("mem")) {
            self.show("mem", shown_bytes(bytes));
        }
        if self.shown.contains_key("select") && !self.shown.contains_key("place") {
            self.show("place", "free".to_owned());
        }
    }
}

/// A size in the largest unit that gives a whole number.
fn shown_bytes(bytes: u64) -> String {
    let units = [(40, "tb"), (30, "gb"), (20, "mb"), (10, "kb")];
    let whole = units.into_iter().find(|(shift, _)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    whole.map_or_else(|| format!("{bytes}b"), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// A product that is a number of tasks, processors or processes.
pub(super) fn total(count: u32, each: u32) -> Result<u32, Refusal> {
    let product = count.checked_mul(each).filter(|product| *product <= MOST);
    product.ok_or_else(|| Refusal::value("-l", &format!("{count} times {each}"), format!("at most {MOST} are taken")))
}

/// Both conditions.
pub(super) fn both(one: Option<NodeFilter>, other: NodeFilter) -> NodeFilter {
    match one {
        None => other,
        Some(NodeFilter::All(mut all)) => {
            all.push(other);
            NodeFilter::All(all)
        }
        Some(one) => NodeFilter::All(vec![one, other]),
    }
}
