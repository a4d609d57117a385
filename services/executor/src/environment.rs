//! The environment of a job's processes.

use crate::{containment::MARKER, gpus::View, identity::Identity, spool::SpooledOrder};
use muster_schemas::{
    job::Program,
    job_token::JobAccess,
    node::LaunchOrder,
    resources::IndexSet,
    steps::{StepTasks, TaskVariable},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The variables that all tasks of a launch on this node share: the submitter's, overridden by the dialect's `added`,
/// overridden by muster's own.
pub fn common(spooled: &SpooledOrder, run_folder: &Path, added: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let order = &spooled.order;
    let mut variables = order.environment.clone();
    forget_management(&mut variables);
    add_login_defaults(&mut variables, &spooled.identity);
    variables.extend(added);
    let file = |name: &str| run_folder.join(name).to_string_lossy().into_owned();
    let node = &order.nodes[order.node_index as usize];
    let mut seen = BTreeSet::new();
    let names = order.nodes.iter().map(|node| node.name.as_str());
    let names: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    let mut set = |name: &str, value: String| {
        variables.insert(name.to_owned(), value);
    };
    set("PWD", order.working_directory.clone());
    set(MARKER, spooled.marker());
    set("MUSTER_JOB_ID", order.job.to_string());
    set("MUSTER_RUN_ID", order.part.run().to_string());
    set("MUSTER_STEP_ID", order.step.to_string());
    set("MUSTER_JOB_NAME", order.name.clone());
    set("MUSTER_QUEUE", order.queue.clone());
    set("MUSTER_NODELIST", names.join(","));
    set("MUSTER_NODEFILE", file(crate::spool::NODE_FILE));
    set("MUSTER_TMPDIR", file(crate::spool::TEMPORARY));
    set("MUSTER_NNODES", names.len().to_string());
    set("MUSTER_NODE_RANK", index_of_node(order).to_string());
    set("MUSTER_NODE_NAME", node.name.clone());
    set("MUSTER_COMPONENT", node.component.to_string());
    set("MUSTER_NTASKS", order.total_tasks.to_string());
    set("MUSTER_CPUS_PER_TASK", order.cpus_per_task.to_string());
    set("MUSTER_CPUS", order.cores.to_string());
    set("MUSTER_SUBMIT_DIR", order.working_directory.clone());
    if let Some(account) = &order.account {
        set("MUSTER_ACCOUNT", account.clone());
    }
    if let Some(index) = order.job.index {
        set("MUSTER_ARRAY_ID", order.job.number.to_string());
        set("MUSTER_ARRAY_INDEX", index.to_string());
    }
    for (name, value) in gpus_of(spooled, &order.gpus) {
        set(&name, value);
    }
    if let Some(parent) = order.trace.to_traceparent() {
        set("TRACEPARENT", parent);
    }
    if let Some(access) = &order.access {
        add_access(&mut variables, access);
    }
    variables
}

/// The variables of processes that have these GPUs of those that the launch has.
fn gpus_of(spooled: &SpooledOrder, gpus: &IndexSet) -> Vec<(String, String)> {
    let of_job = spooled.tasks.as_ref().map_or(&spooled.order.gpus, |tasks| &tasks.gpus_of_job);
    let is_constrained = spooled.hierarchies.constrains_devices() && !spooled.gpus.is_empty();
    View { devices: &spooled.gpus, of_job, is_constrained }.variables(gpus)
}

/// The variables of a task that sees only some of its step's GPUs.
pub fn gpus_of_task(spooled: &SpooledOrder, local_rank: u32) -> Vec<(String, OwnValue)> {
    let binding = spooled.tasks.as_ref().and_then(|tasks| tasks.gpu_binding.as_ref());
    let seen = binding.map(|binding| gpus_of(spooled, &binding.of_task(local_rank, &spooled.order.gpus)));
    seen.into_iter().flatten().map(|(name, value)| (name, OwnValue::Text(value))).collect()
}

/// The variables of a task about its own connection to the process management (SL-W-04).
pub const OF_MANAGEMENT: [&str; 4] = ["PMI_FD", "PMI_RANK", "PMI_SIZE", "PMI_JOBID"];

/// The submitter may be a task of a parallel program: its connection is not its job's, nor what led it to the server.
fn forget_management(variables: &mut BTreeMap<String, String>) {
    if variables.contains_key(OF_MANAGEMENT[0]) {
        OF_MANAGEMENT.iter().for_each(|name| drop(variables.remove(*name)));
    }
    if variables.contains_key("PMIX_NAMESPACE") {
        variables.retain(|name, _| !name.starts_with("PMIX_"));
        ["OMPI_MCA_ess", "OMPI_MCA_schizo"].iter().for_each(|name| drop(variables.remove(*name)));
    }
}

/// Where launchers of parallel programs look for the nodes of a job, and for the program that reaches them: Open MPI 4
/// (`OMPI_`), Open MPI 5 (`PRTE_`), MPICH and its relatives (`HYDRA_`). `nodes` is the variable with the file of nodes. What
/// the submitter has set stays (SL-W-07).
pub fn add_launcher(variables: &mut BTreeMap<String, String>, rsh: &Path, nodes: &str) {
    let rsh = rsh.to_string_lossy().into_owned();
    let nodes = variables.get(nodes).cloned().unwrap_or_default();
    let mut add = |values: &[(&str, &str)]| {
        // What belongs together is set together.
        if !values.iter().any(|(name, _)| variables.contains_key(*name)) {
            variables.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        }
    };
    add(&[("OMPI_MCA_plm_rsh_agent", &rsh)]);
    add(&[("OMPI_MCA_orte_default_hostfile", &nodes)]);
    add(&[("PRTE_MCA_plm_ssh_agent", &rsh)]);
    add(&[("PRTE_MCA_prte_default_hostfile", &nodes)]);
    add(&[("HYDRA_LAUNCHER", "rsh"), ("HYDRA_LAUNCHER_EXEC", &rsh)]);
    add(&[("HYDRA_HOST_FILE", &nodes)]);
}

/// The data folder of an instance on this host.
const DATA: &str = "MUSTER_DATA";
/// The gateway's socket in it, where the kernel identifies callers and no token is needed.
const SOCKET: &str = "muster.sock";
/// The address of a gateway.
const SERVER: &str = "MUSTER_SERVER";
/// The token for it.
const TOKEN: &str = "MUSTER_TOKEN";

/// If the gateway is called over TCP, the job shows its own token there: the submitter's is in no log and on no node.
fn add_access(variables: &mut BTreeMap<String, String>, access: &JobAccess) {
    let has_gateway = || variables.get(DATA).is_some_and(|data| Path::new(data).join(SOCKET).exists());
    let has_server = variables.get(SERVER).is_some_and(|server| !server.is_empty());
    if let Some(server) = access.server.as_ref().filter(|_| has_server || !has_gateway()) {
        variables.insert(SERVER.to_owned(), server.clone());
    }
    if variables.get(SERVER).is_some_and(|server| !server.is_empty()) {
        variables.insert(TOKEN.to_owned(), access.token.to_string());
    }
}

/// The variable with the rank of a task.
pub const MUSTER_TASK_RANK: &str = "MUSTER_TASK_RANK";
/// The variable with the rank of a task among those on its node.
pub const MUSTER_LOCAL_RANK: &str = "MUSTER_LOCAL_RANK";

/// The variables that differ for each task.
fn of_task(rank: u32, local_rank: u32) -> [(String, OwnValue); 2] {
    [(MUSTER_TASK_RANK, rank), (MUSTER_LOCAL_RANK, local_rank)]
        .map(|(name, value)| (name.to_owned(), OwnValue::Text(value.to_string())))
}

/// The value of a variable that differs for each task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnValue {
    /// Known before the task is started.
    Text(String),
    /// The id of the task's process, known once that exists.
    ProcessId,
}

/// Variables that differ by task, for a launch without its own places. `process_id` names the variable for its
/// process id.
pub fn of_plain_task(rank: u32, local_rank: u32, process_id: Option<&str>) -> Vec<(String, OwnValue)> {
    of_task(rank, local_rank).into_iter().chain(process_id.map(|name| (name.to_owned(), OwnValue::ProcessId))).collect()
}

/// Variables that a step with its own places sets for all of its tasks on this node.
pub fn of_step(order: &LaunchOrder, tasks: &StepTasks) -> Vec<(String, String)> {
    let wanted = tasks.variables.iter();
    wanted.filter_map(|(name, variable)| Some((name.clone(), alike_on_node(order, tasks, *variable)?))).collect()
}

/// `None` for values that differ from task to task.
fn alike_on_node(order: &LaunchOrder, tasks: &StepTasks, variable: TaskVariable) -> Option<String> {
    Some(match variable {
        TaskVariable::Rank | TaskVariable::LocalRank | TaskVariable::ProcessId => return None,
        TaskVariable::NodeIndex => index_of_node(order).to_string(),
        TaskVariable::NodeName => order.nodes[order.node_index as usize].name.clone(),
        TaskVariable::TasksOnNode => tasks.ranks.len().to_string(),
        TaskVariable::RanksOnNode => tasks.ranks.iter().map(|rank| rank.to_string()).collect::<Vec<_>>().join(","),
        TaskVariable::CoresOnNode => order.cores.len().to_string(),
        TaskVariable::Cores => order.cores.to_string(),
        TaskVariable::StepsBefore => order.step.0.saturating_sub(1).to_string(),
    })
}

/// The index of this node, counting a node that several components share once.
fn index_of_node(order: &LaunchOrder) -> usize {
    let here = &order.nodes[order.node_index as usize].name;
    let before = order.nodes.iter().map(|node| &node.name).take_while(|name| *name != here);
    before.collect::<BTreeSet<_>>().len()
}

/// Variables that differ by task, for a step with its own places, including those that the step sets for this task
/// alone.
pub fn of_step_task(tasks: &StepTasks, rank: u32, local_rank: u32) -> Vec<(String, OwnValue)> {
    let value = |variable: TaskVariable| match variable {
        TaskVariable::Rank => Some(OwnValue::Text(rank.to_string())),
        TaskVariable::LocalRank => Some(OwnValue::Text(local_rank.to_string())),
        TaskVariable::ProcessId => Some(OwnValue::ProcessId),
        _ => None,
    };
    let wanted = tasks.variables.iter().filter_map(|(name, variable)| Some((name.clone(), value(*variable)?)));
    of_task(rank, local_rank).into_iter().chain(wanted).collect()
}

/// Where programs are searched by default.
pub const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that a login would set and a job can hardly do without.
fn add_login_defaults(variables: &mut BTreeMap<String, String>, identity: &Identity) {
    for (name, value) in [
        ("PATH", USUAL_PATH),
        ("HOME", &identity.home),
        ("SHELL", &identity.shell),
        ("USER", &identity.user),
        ("LOGNAME", &identity.user),
    ] {
        variables.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// The node file: a line for each task, in order of rank. A script that holds nodes without tasks gets a line for each
/// node.
pub fn node_file(order: &LaunchOrder) -> String {
    let mut text = String::new();
    for node in order.nodes.iter() {
        let lines = if matches!(order.launch.program, Program::Tasks { .. }) { node.tasks } else { node.tasks.max(1) };
        for _ in 0..lines {
            text.push_str(&node.name);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{order, spooled};
    use muster_schemas::{JobId, RunId, job_token::JobToken, node::OrderNode};

    /// SL-P-07
    #[test]
    fn a_node_that_components_share_counts_once() {
        let node = |name: &str, component| OrderNode { name: name.into(), tasks: 1, component, facts: None };
        let mut order = order(7);
        order.nodes = vec![node("n1", 0), node("n2", 0), node("n1", 1), node("n3", 1)].into();
        let index = |at| {
            let order = LaunchOrder { node_index: at, ..order.clone() };
            alike_on_node(&order, &StepTasks::default(), TaskVariable::NodeIndex)
        };
        assert_eq!([0, 1, 2, 3].map(|at| index(at).unwrap()), ["0", "1", "0", "2"]);
    }

    /// D6: the submitter's token is replaced, and a job that calls no gateway over TCP has no token.
    #[test]
    fn a_job_that_calls_over_tcp_has_a_token_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap();
        let token = JobToken { job: JobId::job(7), run: RunId(7), proof: [1; 32] };
        let given = |environment: &[(&str, &str)], server: Option<&str>| {
            let mut order = order(7);
            order.environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
            order.access = Some(JobAccess { token, server: server.map(str::to_owned) });
            let variables = common(&spooled(order), Path::new("/spool/runs/7"), BTreeMap::new());
            [SERVER, TOKEN].map(|name| variables.get(name).cloned().unwrap_or_default())
        };
        let (own, public) = (token.to_string(), "https://head:7457");
        assert_eq!(given(&[(DATA, data)], None), ["", ""]);
        assert_eq!(given(&[(SERVER, "http://h:1"), (TOKEN, "secret")], None), ["http://h:1", own.as_str()]);
        assert_eq!(given(&[(SERVER, "http://h:1")], Some(public)), [public, own.as_str()]);
        assert_eq!(given(&[(DATA, data)], Some(public)), [public, own.as_str()], "there is no gateway on this node");
        std::fs::write(folder.path().join(SOCKET), "").unwrap();
        assert_eq!(given(&[(DATA, data)], Some(public)), ["", ""], "there is one, which knows its callers");
    }

    #[test]
    fn muster_variables_win_over_the_submitters() {
        let mut order = order(7);
        order.environment.insert("MUSTER_JOB_ID".into(), "999".into());
        order.environment.insert("HOME".into(), "/elsewhere".into());
        order.job = JobId::task(12, 3);
        order.account = Some("physics".into());
        order.gpus = IndexSet::from_range(0, 1);
        let spooled = spooled(order);
        let variables = common(&spooled, Path::new("/spool/runs/7"), BTreeMap::new());
        for (name, value) in [
            ("MUSTER_JOB_ID", "12_3"),
            ("MUSTER_RUN_ID", "7"),
            ("MUSTER_ARRAY_ID", "12"),
            ("MUSTER_ARRAY_INDEX", "3"),
            ("MUSTER_ACCOUNT", "physics"),
            ("MUSTER_GPUS", "0,1"),
            ("MUSTER_NODEFILE", "/spool/runs/7/nodes"),
            ("HOME", "/elsewhere"),
        ] {
            assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn the_node_file_has_a_line_for_each_task() {
        let mut order = order(7);
        let node = |name: &str, tasks| OrderNode { name: name.into(), tasks, component: 0, facts: None };
        order.nodes = vec![node("n1", 2), node("n2", 1)].into();
        assert_eq!(node_file(&order), "n1\nn1\nn2\n");
    }
}
