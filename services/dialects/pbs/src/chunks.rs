//! The chunks of a job: how many processes each has, which a launch must know to write the job's node file. The job model
//! knows tasks only, so this travels in the job's environment.

use crate::text::decimal;
use std::fmt;

/// The variable of a job with its [`ChunkPlan`].
pub const VARIABLE: &str = "MUSTER_PBS_CHUNKS";

/// The most kinds of chunks that a launch reads.
const MOST_KINDS: usize = 10_000;
/// The most chunks of a job, and the most processes: the lines of its node file.
pub const MOST_LINES: u64 = 1_000_000;

/// Equal chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkKind {
    /// Their number.
    pub count: u32,
    /// The processors of each.
    pub ncpus: u32,
    /// The processes of each: its lines in the node file.
    pub mpiprocs: u32,
    /// The tasks of the job model that stand for each, at least 1.
    pub tasks: u32,
}

/// The chunks of a job, in the order of its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkPlan {
    /// The kinds.
    pub kinds: Vec<ChunkKind>,
    /// Whether all are on one host.
    pub is_packed: bool,
    /// `ompthreads` of the first chunk.
    pub threads: Option<u32>,
}

/// A node of a job, in order of rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTasks {
    /// Its name.
    pub name: String,
    /// The tasks of the job model there.
    pub tasks: u32,
    /// The job's cores there, if known.
    pub cores: Option<u64>,
}

impl ChunkPlan {
    /// The number of chunks.
    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|kind| u64::from(kind.count)).sum()
    }

    /// The number of processors.
    pub fn ncpus(&self) -> u64 {
        self.kinds.iter().map(|kind| u64::from(kind.count) * u64::from(kind.ncpus)).sum()
    }

    /// The number of tasks of the job model.
    pub fn tasks(&self) -> u64 {
        self.kinds.iter().map(|kind| u64::from(kind.count) * u64::from(kind.tasks)).sum()
    }

    /// The number of processes.
    pub fn mpiprocs(&self) -> u64 {
        self.kinds.iter().map(|kind| u64::from(kind.count) * u64::from(kind.mpiprocs)).sum()
    }

    /// Reads what [`Display`](fmt::Display) writes; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (text, threads) = match text.split_once('/') {
            None => (text, None),
            Some((text, threads)) => (text, Some(decimal(threads)?)),
        };
        let (text, is_packed) = text.strip_prefix('=').map_or((text, false), |text| (text, true));
        let parts: Vec<&str> = text.split('+').collect();
        if parts.len() > MOST_KINDS {
            return None;
        }
        let kind = |part: &str| {
            let numbers: Vec<u32> = part.split(':').map(decimal).collect::<Option<_>>()?;
            let [count, ncpus, mpiprocs, tasks] = numbers[..] else { return None };
            (count > 0 && tasks > 0).then_some(ChunkKind { count, ncpus, mpiprocs, tasks })
        };
        let plan = Self { kinds: parts.into_iter().map(kind).collect::<Option<_>>()?, is_packed, threads };
        plan.is_bounded().then_some(plan)
    }

    /// Whether it has no more than [`MOST_LINES`] chunks and processes.
    pub fn is_bounded(&self) -> bool {
        self.count() <= MOST_LINES && self.mpiprocs() <= MOST_LINES
    }

    /// The processes of each chunk on each of these nodes: its lines in the node file. Without knowledge of where the
    /// planner put which chunk, nodes are filled in their order with chunks in the order of the request, as far as they
    /// agree with the tasks and cores there.
    pub fn on_nodes(&self, nodes: &[HostTasks]) -> Vec<Vec<u32>> {
        if self.is_packed {
            let all = self.kinds.iter().flat_map(|kind| std::iter::repeat_n(kind.mpiprocs, kind.count as usize));
            return nodes.iter().zip(0..).map(|(_, at)| if at == 0 { all.clone().collect() } else { vec![] }).collect();
        }
        let mut left: Vec<u32> = self.kinds.iter().map(|kind| kind.count).collect();
        nodes.iter().map(|node| self.take_for(node, &mut left)).collect()
    }

    /// The processes of the chunks on a node, which are taken from those that are left.
    fn take_for(&self, node: &HostTasks, left: &mut [u32]) -> Vec<u32> {
        let taken = self.one_kind(node, left).unwrap_or_else(|| self.in_order(node, left));
        let mut processes = Vec::new();
        for (place, count) in taken {
            left[place] -= count;
            processes.extend(std::iter::repeat_n(self.kinds[place].mpiprocs, count as usize));
        }
        processes
    }

    /// Chunks of one kind that are exactly the tasks and cores of the node.
    fn one_kind(&self, node: &HostTasks, left: &[u32]) -> Option<Vec<(usize, u32)>> {
        let fits = |(place, kind): (usize, &ChunkKind)| {
            let count = node.tasks / kind.tasks;
            let is_whole = count > 0 && node.tasks.is_multiple_of(kind.tasks) && count <= left[place];
            let cores = u64::from(count) * u64::from(kind.ncpus);
            (is_whole && node.cores.is_none_or(|known| known == cores)).then_some(vec![(place, count)])
        };
        self.kinds.iter().enumerate().find_map(fits)
    }

    /// Chunks of several kinds, as many of each as the tasks of the node allow.
    fn in_order(&self, node: &HostTasks, left: &[u32]) -> Vec<(usize, u32)> {
        let (mut tasks, mut cores) = (node.tasks, node.cores);
        let mut taken = Vec::new();
        for (place, kind) in self.kinds.iter().enumerate() {
            let by_cores = cores.map_or(u64::MAX, |cores| cores.checked_div(u64::from(kind.ncpus)).unwrap_or(u64::MAX));
            let count = left[place].min(tasks / kind.tasks).min(u32::try_from(by_cores).unwrap_or(u32::MAX));
            if count > 0 {
                tasks -= count * kind.tasks;
                cores = cores.map(|cores| cores - u64::from(count) * u64::from(kind.ncpus));
                taken.push((place, count));
            }
        }
        taken
    }
}

impl fmt::Display for ChunkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_packed { "=" } else { "" })?;
        for (place, ChunkKind { count, ncpus, mpiprocs, tasks }) in self.kinds.iter().enumerate() {
            write!(f, "{}{count}:{ncpus}:{mpiprocs}:{tasks}", if place > 0 { "+" } else { "" })?;
        }
        self.threads.map_or(Ok(()), |threads| write!(f, "/{threads}"))
    }
}
