//! The nodes of OpenPBS and TORQUE (PBS-Q-10).

use super::{
    chunks::bytes,
    size::{Size, both},
};
use crate::{
    chunks::ChunkKind,
    refusal::Refusal,
    resources::{Entry, Exclusion, Head, NodesSpec, Resource},
    submit::rules::Rules,
};
use muster_schemas::resources::{Count, Gpus, Level, LevelCount, Memory, NodeFilter, Per, Request, Sharing};

/// The most different requests of a job.
const MOST_REQUESTS: usize = 1_000;

/// Requests for the whole job that do not go with `nodes`.
const RIVALS: [&str; 3] = ["host", "vnode", "mpiprocs"];

/// Turns the entries of `nodes` into requests, each with nodes of its own.
pub(super) fn place(size: &mut Size, spec: &NodesSpec, requests: &[Resource], rules: &Rules) -> Result<(), Refusal> {
    if let Some(rival) = requests.iter().find(|request| RIVALS.contains(&request.name.as_str())) {
        return Err(Refusal::Conflict(format!("-l {} and -l nodes cannot be given together", rival.name)));
    }
    let of_all = requests.iter().find(|request| request.name == "mem").map(|mem| bytes("mem", &mem.plain()));
    let share = of_all.transpose()?.map(|bytes| bytes.div_ceil(spec.count().max(1)));
    let mut left = &spec.entries[..];
    while let Some((first, rest)) = left.split_first() {
        // Nodes by name that are asked for alike are one request.
        let are_named = |entry: &&Entry| name_of(entry, rules).is_some() && are_alike(first, entry);
        let alike = if name_of(first, rules).is_some() { rest.iter().take_while(are_named).count() } else { 0 };
        add(size, &left[..=alike], spec.exclusion, share, rules)?;
        left = &left[alike + 1..];
    }
    size.alternative.scatter = size.alternative.requests.len() > 1;
    match size.alternative.requests.len() > MOST_REQUESTS {
        true => Err(Refusal::value("-l", "nodes", format!("at most {MOST_REQUESTS} different entries are taken"))),
        false => Ok(()),
    }
}

/// The name of the node that an entry asks for.
fn name_of<'e>(entry: &'e Entry, rules: &Rules) -> Option<&'e str> {
    match &entry.head {
        Head::Name(name) => Some(name.as_str()).filter(|name| rules.names_node(name)),
        Head::Count(_) => None,
    }
}

/// Whether two entries ask for the same, but for the nodes.
fn are_alike(one: &Entry, other: &Entry) -> bool {
    let of = |entry: &Entry| Entry { head: Head::Count(1), ..entry.clone() };
    of(one) == of(other)
}

/// Adds equal entries: one, or several nodes by name.
fn add(
    size: &mut Size,
    entries: &[Entry],
    exclusion: Option<Exclusion>,
    share: Option<u64>,
    rules: &Rules,
) -> Result<(), Refusal> {
    let Some(entry) = entries.first() else { return Ok(()) };
    let ppn = entry.ppn.unwrap_or(1);
    let nodes: Vec<String> = entries.iter().filter_map(|entry| name_of(entry, rules)).map(str::to_owned).collect();
    let count = if nodes.is_empty() { entry.count() } else { u32::try_from(nodes.len()).unwrap_or(u32::MAX) };
    let mut filter: Option<NodeFilter> = match &entry.head {
        Head::Name(property) if nodes.is_empty() => Some(NodeFilter::Has(property.clone())),
        _ => None,
    };
    for property in &entry.properties {
        filter = Some(both(filter, NodeFilter::Has(property.clone())));
    }
    let memory = entry.mem.as_ref().map(|text| bytes("mem", text)).transpose()?.or(share);
    let sharing = match exclusion {
        Some(Exclusion::Shared) => Sharing::Shared,
        Some(_) => Sharing::Exclusive,
        // Without a number of processors the job gets the nodes.
        None if entry.ppn.is_none() && rules.nodes_are_whole => Sharing::WholeNodes,
        None => Sharing::Shared,
    };
    let request = Request {
        path: vec![LevelCount { level: Level::Node, count: Count::exactly(count) }],
        tasks_per_node: Some(ppn),
        memory: memory.map(|bytes| Memory { bytes, per: Per::Node }),
        gpus: entry.gpus.map(|count| Gpus { count, per: Per::Node, model: None }),
        filter,
        nodes,
        sharing,
        ..Request::default()
    };
    size.add(ChunkKind { count, ncpus: ppn, mpiprocs: ppn, tasks: ppn }, request)
}
