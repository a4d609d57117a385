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

/// Requests for the whole job that do not go with `nodes`.
const RIVALS: [&str; 3] = ["host", "vnode", "mpiprocs"];

/// Turns the entries of `nodes` into requests, each with nodes of its own.
pub(super) fn place(size: &mut Size, spec: &NodesSpec, requests: &[Resource], rules: &Rules) -> Result<(), Refusal> {
    if let Some(rival) = requests.iter().find(|request| RIVALS.contains(&request.name.as_str())) {
        return Err(Refusal::Conflict(format!("-l {} and -l nodes cannot be given together", rival.name)));
    }
    let of_all = requests.iter().find(|request| request.name == "mem").map(|mem| bytes("mem", &mem.plain()));
    let share = of_all.transpose()?.map(|bytes| bytes.div_ceil(spec.count().max(1)));
    size.alternative.scatter = spec.entries.len() > 1;
    for entry in &spec.entries {
        add(size, entry, spec.exclusion, share, rules)?;
    }
    Ok(())
}

fn add(
    size: &mut Size,
    entry: &Entry,
    exclusion: Option<Exclusion>,
    share: Option<u64>,
    rules: &Rules,
) -> Result<(), Refusal> {
    let (count, ppn) = (entry.count(), entry.ppn.unwrap_or(1));
    let mut filter: Option<NodeFilter> = None;
    let mut nodes = Vec::new();
    match &entry.head {
        Head::Name(name) if rules.names_node(name) => nodes.push(name.clone()),
        Head::Name(property) => filter = Some(NodeFilter::Has(property.clone())),
        Head::Count(_) => {}
    }
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
