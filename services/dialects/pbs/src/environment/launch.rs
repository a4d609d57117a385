//! The part of a job's environment that is known when it is launched, and its node file.

use super::submission::LIMITS;
use crate::{
    chunks::{self, ChunkPlan, HostTasks},
    job_id::{Part, PbsJobId},
    text::decimal,
};
use muster_schemas::{node::LaunchOrder, views::RunNodeView};
use nix::sys::resource::Resource;
use std::collections::BTreeMap;

/// The variable with the path of the [`node_file`]. Whoever writes the file sets it.
pub const NODE_FILE: &str = "PBS_NODEFILE";

/// The variable of a shell in a job with the nodes of the job: the shell itself is launched on one of them only.
pub const HOSTS: &str = "MUSTER_PBS_HOSTS";

/// The longest text of [`HOSTS`], in bytes: half of what one variable can have.
const MOST_HOSTS_BYTES: usize = 64 << 10;

/// The lines of a node for a node file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HostLines {
    /// The node's name.
    name: String,
    /// Its processes, by chunk.
    processes: Vec<u32>,
}

/// The nodes, each once and in order of rank.
fn merged(parts: impl IntoIterator<Item = HostTasks>) -> Vec<HostTasks> {
    let mut nodes: Vec<HostTasks> = Vec::new();
    for part in parts {
        match nodes.iter_mut().find(|known| known.name == part.name) {
            Some(known) => {
                known.tasks = known.tasks.saturating_add(part.tasks);
                known.cores = known.cores.zip(part.cores).map(|(one, other)| one.saturating_add(other));
            }
            None => nodes.push(part),
        }
    }
    nodes
}

/// The nodes with the processes of each chunk there, if there is a plan; else with a process for each task. A job whose
/// size was changed after its submission has tasks that its plan does not know.
fn with_processes(parts: Vec<HostTasks>, plan: Option<&ChunkPlan>) -> Vec<HostLines> {
    let lines = |(name, processes)| HostLines { name, processes };
    match plan {
        Some(plan) => {
            let nodes = merged(parts);
            let processes = plan.on_nodes(&nodes);
            nodes.into_iter().map(|node| node.name).zip(processes).map(lines).collect()
        }
        None => parts.into_iter().map(|part| lines((part.name, vec![part.tasks]))).collect(),
    }
}

/// The nodes of a launch.
fn parts(order: &LaunchOrder) -> Vec<HostTasks> {
    let cores = order.node_cores();
    let of_node = |at: usize| cores.as_ref().and_then(|cores| cores.get(at)).copied();
    let nodes = order.nodes.iter().enumerate();
    nodes.map(|(at, node)| HostTasks { name: node.name.clone(), tasks: node.tasks, cores: of_node(at) }).collect()
}

/// The chunks of a job, if its plan agrees with its tasks.
fn plan(environment: &BTreeMap<String, String>, tasks: u64) -> Option<ChunkPlan> {
    let plan = environment.get(chunks::VARIABLE).and_then(|text| ChunkPlan::parse(text))?;
    (plan.is_packed || plan.tasks() == tasks).then_some(plan)
}

/// The chunks of the job of a launch.
fn plan_of(order: &LaunchOrder) -> Option<ChunkPlan> {
    match order.environment.get(HOSTS) {
        Some(_) => order.environment.get(chunks::VARIABLE).and_then(|text| ChunkPlan::parse(text)),
        None => plan(&order.environment, order.nodes.iter().map(|node| u64::from(node.tasks)).sum()),
    }
}

fn all_hosts(order: &LaunchOrder) -> Vec<HostLines> {
    let named = order.environment.get(HOSTS).and_then(|text| read_hosts(text));
    named.unwrap_or_else(|| with_processes(parts(order), plan_of(order).as_ref()))
}

/// The value of [`HOSTS`] for a job that runs on these nodes with this environment; `None` if it is too long for a
/// variable.
pub fn hosts(run: &[RunNodeView], environment: &BTreeMap<String, String>) -> Option<String> {
    let part =
        |node: &RunNodeView| HostTasks { name: node.node.clone(), tasks: node.tasks, cores: Some(node.cores.len()) };
    let plan = plan(environment, run.iter().map(|node| u64::from(node.tasks)).sum());
    let one = |host: HostLines| {
        let processes: Vec<String> = host.processes.iter().map(ToString::to_string).collect();
        format!("{}/{}", host.name, processes.join(","))
    };
    let all = with_processes(run.iter().map(part).collect(), plan.as_ref());
    let text = all.into_iter().map(one).collect::<Vec<_>>().join(" ");
    (text.len() <= MOST_HOSTS_BYTES).then_some(text)
}

/// Reads what [`hosts`] writes; `None` for anything else. Names of nodes have neither blanks nor slashes.
fn read_hosts(text: &str) -> Option<Vec<HostLines>> {
    if text.len() > MOST_HOSTS_BYTES {
        return None;
    }
    let mut lines = 0u64;
    let mut one = |entry: &str| {
        let (name, processes) = entry.split_once('/')?;
        let processes =
            processes.split(',').filter(|count| !count.is_empty()).map(decimal).collect::<Option<Vec<u32>>>()?;
        lines = processes.iter().fold(lines, |sum, count| sum.saturating_add(u64::from(*count)));
        (!name.is_empty() && lines <= chunks::MOST_LINES).then(|| HostLines { name: name.to_owned(), processes })
    };
    text.split(' ').map(&mut one).collect()
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
    if let Some(account) = given("PBS_ACCOUNT").or_else(|| order.account.clone()) {
        set("PBS_ACCOUNT", account);
    }
    if let Some(seconds) = order.walltime_seconds {
        set("PBS_WALLTIME", seconds.to_string());
    }
    let hosts = all_hosts(order);
    let processes = hosts.iter().flat_map(|host| &host.processes).map(|count| u64::from(*count)).sum::<u64>();
    let on_first = hosts.first().map_or(0, |host| host.processes.iter().map(|count| u64::from(*count)).sum());
    let plan = plan_of(order);
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
