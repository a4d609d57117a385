//! The chunks of `select`.

use super::{
    conditions::{custom, equals},
    size::{Size, both, total},
};
use crate::{
    chunks::{ChunkKind, ChunkPlan},
    refusal::Refusal,
    resources::{Arrangement, Chunk, Exclusion, Place, Resource, Select},
    text::decimal,
    value::Size as Bytes,
};
use muster_schemas::resources::{Count, Gpus, Level, LevelCount, Memory, NodeFilter, Per, Request, Sharing};

/// Requests for the whole job that belong into the chunks of a `select`.
const OF_CHUNKS: [&str; 9] = ["mem", "host", "vnode", "arch", "mpiprocs", "ompthreads", "ngpus", "gpus", "feature"];

/// Refuses requests for the whole job next to a `select`.
pub(super) fn refuse_rivals(requests: &[Resource]) -> Result<(), Refusal> {
    match requests.iter().find(|request| OF_CHUNKS.contains(&request.name.as_str())) {
        Some(rival) => {
            let name = &rival.name;
            Err(Refusal::Conflict(format!("-l {name} cannot be given with -l select: {name} belongs into its chunks")))
        }
        None => Ok(()),
    }
}

/// What one chunk asks for.
struct Ask {
    ncpus: u32,
    mpiprocs: u32,
    threads: Option<u32>,
    memory_bytes: Option<u64>,
    gpus: u32,
    filter: Option<NodeFilter>,
    nodes: Vec<String>,
}

impl Ask {
    fn of(size: &mut Size, chunk: &Chunk) -> Result<Self, Refusal> {
        let mut ask = Self {
            ncpus: number(chunk, "ncpus")?.unwrap_or(1),
            mpiprocs: number(chunk, "mpiprocs")?.unwrap_or(1),
            threads: number(chunk, "ompthreads")?,
            memory_bytes: None,
            gpus: number(chunk, "ngpus")?.or(number(chunk, "gpus")?).unwrap_or(0),
            filter: None,
            nodes: Vec::new(),
        };
        if ask.ncpus == 0 {
            return Err(Refusal::unsupported("ncpus=0", "a chunk has at least one processor"));
        }
        for (name, value) in &chunk.resources {
            match name.as_str() {
                "ncpus" | "mpiprocs" | "ompthreads" | "ngpus" | "gpus" => {}
                "mem" => ask.memory_bytes = Some(bytes(name, value)?),
                "host" | "vnode" => ask.nodes.push(value.clone()),
                "arch" => ask.filter = Some(both(ask.filter.take(), equals(name, value))),
                "vmem" => size.warn("vmem", "virtual memory is not counted; mem is"),
                _ => {
                    let condition = custom(size, name, value)?;
                    ask.filter = Some(both(ask.filter.take(), condition));
                }
            }
        }
        Ok(ask)
    }

    /// The tasks of the model for each chunk on a host of its own, each with the same processors.
    fn tasks_on_own_host(&self) -> u32 {
        if self.mpiprocs > 0 && self.ncpus.is_multiple_of(self.mpiprocs) { self.mpiprocs } else { 1 }
    }
}

fn number(chunk: &Chunk, name: &str) -> Result<Option<u32>, Refusal> {
    let Some(text) = chunk.get(name) else { return Ok(None) };
    let number = decimal::<u32>(text).filter(|number| *number <= 1_000_000);
    number.map(Some).ok_or_else(|| Refusal::value("-l", &format!("{name}={text}"), "expected a number up to 1000000"))
}

pub(super) fn bytes(name: &str, text: &str) -> Result<u64, Refusal> {
    let size = Bytes::parse(text).map(Bytes::bytes);
    size.ok_or_else(|| Refusal::value("-l", &format!("{name}={text}"), "expected a size such as 8gb"))
}

/// Turns chunks into requests.
pub(super) fn place(size: &mut Size, select: &Select, place: &Place) -> Result<(), Refusal> {
    let asks: Vec<Ask> = select.0.iter().map(|chunk| Ask::of(size, chunk)).collect::<Result<_, _>>()?;
    size.plan = ChunkPlan { threads: asks.first().and_then(|ask| ask.threads), ..ChunkPlan::default() };
    let memory = |(chunk, ask): (&Chunk, &Ask)| ask.memory_bytes?.checked_mul(u64::from(chunk.count));
    size.memory_bytes = select.0.iter().zip(&asks).map(memory).try_fold(0u64, |sum, one| sum.checked_add(one?));
    let sharing = match place.exclusion {
        Some(Exclusion::Excl | Exclusion::ExclHost) => Sharing::Exclusive,
        Some(Exclusion::Shared) | None => Sharing::Shared,
    };
    if place.arrangement == Some(Arrangement::Pack) {
        pack(size, select, &asks, place, sharing)?;
    } else {
        let is_separate = matches!(place.arrangement, Some(Arrangement::Scatter | Arrangement::VScatter));
        size.alternative.scatter = is_separate && asks.len() > 1;
        for (chunk, ask) in select.0.iter().zip(asks) {
            spread(size, chunk.count, ask, place, sharing, is_separate || chunk.count == 1)?;
        }
        if place.group.is_some() && select.0.len() > 1 {
            size.warnings.push(
                "warning: place=group holds for each kind of chunk by itself, not for all kinds together".to_owned(),
            );
        }
    }
    Ok(())
}

/// One kind of chunks: each on its own host, or anywhere.
fn spread(
    size: &mut Size,
    count: u32,
    ask: Ask,
    place: &Place,
    sharing: Sharing,
    on_own_host: bool,
) -> Result<(), Refusal> {
    let tasks = if on_own_host { ask.tasks_on_own_host() } else { 1 };
    let per = if on_own_host { Per::Node } else { Per::Task };
    let nodes = on_own_host.then(|| LevelCount { level: Level::Node, count: Count::exactly(count) });
    let kind = ChunkKind { count, ncpus: ask.ncpus, mpiprocs: ask.mpiprocs, tasks };
    let request = Request {
        path: group(place).into_iter().chain(nodes).collect(),
        tasks_per_node: on_own_host.then_some(tasks),
        cpus_per_task: ask.ncpus / tasks,
        memory: ask.memory_bytes.map(|bytes| Memory { bytes, per }),
        gpus: (ask.gpus > 0).then_some(Gpus { count: ask.gpus, per, model: None }),
        filter: ask.filter,
        nodes: ask.nodes,
        sharing,
        ..Request::default()
    };
    size.add(kind, request)
}

/// All chunks on one host: one request.
fn pack(size: &mut Size, select: &Select, asks: &[Ask], place: &Place, sharing: Sharing) -> Result<(), Refusal> {
    let (mut cores, mut tasks, mut gpus) = (0u32, 0u32, 0u32);
    let mut request = Request { sharing, ..Request::default() };
    let each = asks.first().map(|ask| ask.ncpus / ask.tasks_on_own_host());
    let are_alike = asks.iter().all(|ask| Some(ask.ncpus / ask.tasks_on_own_host()) == each);
    let much = || Refusal::value("-l", "place=pack", "the chunks are too many for one host");
    for (chunk, ask) in select.0.iter().zip(asks) {
        let of_tasks = if are_alike { ask.tasks_on_own_host() } else { 1 };
        cores = cores.checked_add(total(chunk.count, ask.ncpus)?).ok_or_else(much)?;
        tasks = tasks.checked_add(total(chunk.count, of_tasks)?).ok_or_else(much)?;
        gpus = gpus.checked_add(total(chunk.count, ask.gpus)?).ok_or_else(much)?;
        if let Some(filter) = &ask.filter {
            request.filter = Some(both(request.filter.take(), filter.clone()));
        }
        request
            .nodes
            .extend(ask.nodes.iter().filter(|node| !request.nodes.contains(node)).cloned().collect::<Vec<_>>());
        let (count, ncpus, mpiprocs) = (chunk.count, ask.ncpus, ask.mpiprocs);
        size.plan.kinds.push(ChunkKind { count, ncpus, mpiprocs, tasks: of_tasks });
    }
    if request.nodes.len() > 1 {
        return Err(Refusal::Conflict("place=pack puts all chunks on one host, and they name several".to_owned()));
    }
    size.plan.is_packed = true;
    request.path = group(place).into_iter().chain([one_node()]).collect();
    (request.tasks, request.cpus_per_task) = match each.filter(|_| are_alike) {
        Some(each) => (Some(tasks), each),
        None => (Some(1), cores),
    };
    request.tasks_per_node = request.tasks;
    request.memory = size.memory_bytes.map(|bytes| Memory { bytes, per: Per::Node });
    request.gpus = (gpus > 0).then_some(Gpus { count: gpus, per: Per::Node, model: None });
    size.alternative.requests.push(request);
    Ok(())
}

fn one_node() -> LevelCount {
    LevelCount { level: Level::Node, count: Count::exactly(1) }
}

fn group(place: &Place) -> Option<LevelCount> {
    let property = place.group.clone()?;
    Some(LevelCount { level: Level::Group(property), count: Count::exactly(1) })
}
