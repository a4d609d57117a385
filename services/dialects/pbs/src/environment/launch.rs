//! The part of a job's environment that is known when it is launched, and its node file.

use super::submission::LIMITS;
use crate::{
    chunks::{self, ChunkPlan, HostTasks},
    job_id::{Part, PbsJobId},
    text::decimal,
};
use muster_schemas::node::LaunchOrder;
use nix::sys::resource::Resource;
use std::collections::BTreeMap;

/// The variable with the path of the [`node_file`]. Whoever writes the file sets it.
pub const NODE_FILE: &str = "PBS_NODEFILE";

/// The lines of a node for a node file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostLines {
    /// The node's name.
    name: String,
    /// Its processes, by chunk.
    processes: Vec<u32>,
}

/// The nodes of a launch, each once and in order of rank, with the processes of each chunk there.
fn hosts(order: &LaunchOrder, plan: &ChunkPlan) -> Vec<HostLines> {
    let cores = order.node_cores();
    let of_node = |at: usize| cores.as_ref().and_then(|cores| cores.get(at)).copied();
    let mut nodes: Vec<HostTasks> = Vec::new();
    for (at, node) in order.nodes.iter().enumerate() {
        match nodes.iter_mut().find(|known| known.name == node.name) {
            Some(known) => {
                known.tasks = known.tasks.saturating_add(node.tasks);
                known.cores = known.cores.zip(of_node(at)).map(|(one, other)| one.saturating_add(other));
            }
            None => nodes.push(HostTasks { name: node.name.clone(), tasks: node.tasks, cores: of_node(at) }),
        }
    }
    let processes = plan.on_nodes(&nodes);
    nodes.into_iter().zip(processes).map(|(node, processes)| HostLines { name: node.name, processes }).collect()
}

/// The chunks of a launch, if the job has a plan that agrees with its tasks. A job without one has a process for each
/// task; so has one whose size was changed after its submission.
fn plan(order: &LaunchOrder) -> Option<ChunkPlan> {
    let plan = order.environment.get(chunks::VARIABLE).and_then(|text| ChunkPlan::parse(text))?;
    let tasks: u64 = order.nodes.iter().map(|node| u64::from(node.tasks)).sum();
    (plan.is_packed || plan.tasks() == tasks).then_some(plan)
}

fn all_hosts(order: &LaunchOrder) -> Vec<HostLines> {
    let by_tasks = || {
        let of_node =
            |node: &muster_schemas::node::OrderNode| HostLines { name: node.name.clone(), processes: vec![node.tasks] };
        order.nodes.iter().map(of_node).collect()
    };
    plan(order).map_or_else(by_tasks, |plan| hosts(order, &plan))
}

/// The contents of the file of `PBS_NODEFILE`: the name of a node for each process, chunk by chunk.
pub fn node_file(order: &LaunchOrder) -> String {
    let mut file = String::new();
    for host in all_hosts(order) {
        let lines: u64 = host.processes.iter().map(|count| u64::from(*count)).sum();
        for _ in 0..lines {
            file.push_str(&host.name);
            file.push('\n');
        }
    }
    file
}

/// The variables that are known only now.
pub fn of_launch(order: &LaunchOrder) -> BTreeMap<String, String> {
    let given = |name: &str| order.environment.get(name).cloned();
    let server = given("PBS_SERVER").unwrap_or_default();
    let mut variables = BTreeMap::new();
    let mut set = |name: &str, value: String| {
        variables.insert(name.to_owned(), value);
    };
    set("PBS_JOBID", PbsJobId::of(order.job, false, &server).to_string());
    set("PBS_JOBNAME", order.name.clone());
    set("PBS_QUEUE", order.queue.clone());
    set("PBS_O_QUEUE", given("PBS_O_QUEUE").unwrap_or_else(|| order.queue.clone()));
    set("PBS_O_INITDIR", order.working_directory.clone());
    set("PBS_JOBDIR", order.working_directory.clone());
    set("PBS_NODENUM", order.node_index.to_string());
    set("PBS_VNODENUM", order.node_index.to_string());
    set("PBS_TASKNUM", order.first_rank.saturating_add(1).to_string());
    if let Some(index) = order.job.index {
        let array = PbsJobId { part: Part::Array, ..PbsJobId::of(order.job, true, &server) };
        set("PBS_ARRAYID", index.to_string());
        set("PBS_ARRAY_INDEX", index.to_string());
        set("PBS_ARRAY_ID", array.to_string());
    }
    if let Some(account) = &order.account {
        set("PBS_ACCOUNT", account.clone());
    }
    if let Some(seconds) = order.walltime_seconds {
        set("PBS_WALLTIME", seconds.to_string());
    }
    let hosts = all_hosts(order);
    let processes = hosts.iter().flat_map(|host| &host.processes).map(|count| u64::from(*count)).sum::<u64>();
    let on_first = hosts.first().map_or(0, |host| host.processes.iter().map(|count| u64::from(*count)).sum());
    let plan = plan(order);
    let kind = plan.as_ref().and_then(|plan| plan.kinds.first());
    set("PBS_NUM_NODES", hosts.len().to_string());
    set("PBS_NUM_PPN", kind.map_or(on_first, |kind| u64::from(kind.mpiprocs)).to_string());
    set("PBS_NP", processes.to_string());
    let threads = plan.as_ref().and_then(|plan| plan.threads).or(kind.map(|kind| kind.ncpus));
    let threads = threads.unwrap_or(order.cpus_per_task).to_string();
    set("NCPUS", threads.clone());
    if given("OMP_NUM_THREADS").is_none() {
        set("OMP_NUM_THREADS", threads);
    }
    if given("TMPDIR").is_none() {
        set("TMPDIR", "/tmp".to_owned());
    }
    variables
}

/// The limits of a job's processes. Each replaces the soft limit.
pub fn soft_limits(order: &LaunchOrder) -> Vec<(Resource, Option<u64>)> {
    let Some(text) = order.environment.get(LIMITS) else { return Vec::new() };
    let limit = |entry: &str| {
        let (name, most) = entry.split_once('=')?;
        let resource = match name {
            "fsize" => Resource::RLIMIT_FSIZE,
            "cpu" => Resource::RLIMIT_CPU,
            "as" => Resource::RLIMIT_AS,
            _ => return None,
        };
        Some((resource, Some(decimal(most)?)))
    };
    text.split(',').filter_map(limit).collect()
}
