//! What a batch script sees of where it runs (SL-E-02 to E-04, SL-E-08, SL-E-10).

use muster_cli::stderr_line;
use muster_executor::after_login;
use muster_schemas::{
    job::Program,
    node::{CLUSTER_NAME_VARIABLE, LaunchOrder, OrderNode, RESTART_COUNT_VARIABLE},
};
use muster_slurm::environment::{self, ArrayFacts, ComponentFacts, JobFacts, of_batch_script};
use muster_slurm_commands::resource;
use nix::sys::resource::Resource;
use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

/// A login may take so long. Nodes have a minute to confirm a launch, if the site does not say otherwise.
const LOGIN_SECONDS: u32 = 40;

/// The variables of a batch script that `sbatch` submitted, known only now that it is launched; none for anything else.
/// What was known before is in the environment already.
pub fn variables(order: &LaunchOrder) -> BTreeMap<String, String> {
    if !is_of_sbatch(order) {
        return BTreeMap::new();
    }
    let mut variables = match order.environment.get(environment::LOADS_LOGIN).map(String::as_str) {
        Some("1") => login_variables(order),
        _ => BTreeMap::new(),
    };
    variables.extend(of_batch_script(&facts(order)));
    // Slurm's daemon sets it where there is none.
    if !order.environment.contains_key("TMPDIR") {
        variables.entry("TMPDIR".to_owned()).or_insert_with(|| "/tmp".to_owned());
    }
    variables
}

/// The variables that the user of a job has after a login on this node, but for those that the job has already. Without an
/// answer in time the job runs with what it has.
fn login_variables(order: &LaunchOrder) -> BTreeMap<String, String> {
    let print = format!("printf '{}\\0'; env -0", environment::LOGIN_MARK);
    let said = after_login(&order.owner.user, &print, LOGIN_SECONDS);
    let known = said.and_then(|said| environment::parse_login(&said).ok_or("it did not come to its end".to_owned()));
    match known {
        Ok(known) => known.into_iter().filter(|(name, _)| !order.environment.contains_key(name)).collect(),
        Err(why) => {
            stderr_line!("job {}: the environment of a login of {} is not loaded: {why}", order.job, order.owner.user);
            BTreeMap::new()
        }
    }
}

/// The variable that has the process id of a batch script that `sbatch` submitted (SL-E-08).
pub fn process_id_variable(order: &LaunchOrder) -> Option<&'static str> {
    is_of_sbatch(order).then_some("SLURM_TASK_PID")
}

/// The soft limits of what Slurm's commands launch: those of the command (SL-E-13).
pub fn soft_limits(order: &LaunchOrder) -> Vec<(Resource, Option<u64>)> {
    if !is_of_slurm(order) {
        return Vec::new();
    }
    let known = environment::soft_limits(&order.environment);
    known.into_iter().filter_map(|limit| Some((resource(limit.resource)?, limit.most))).collect()
}

/// Whether a command of Slurm has submitted or launched it.
pub(super) fn is_of_slurm(order: &LaunchOrder) -> bool {
    order.dialect.as_deref() == Some(muster_slurm::NAME)
}

fn is_of_sbatch(order: &LaunchOrder) -> bool {
    let is_script = order.step.0 == 0 && matches!(order.launch.program, Program::Script { .. });
    is_script && is_of_slurm(order)
}

fn facts(order: &LaunchOrder) -> JobFacts {
    let given = |name: &str| order.environment.get(name).cloned().unwrap_or_default();
    let last = order.nodes.iter().map(|node| node.component).max().unwrap_or(0);
    let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let start = i64::try_from(start).unwrap_or(i64::MAX);
    JobFacts {
        components: (0..=last).map(|offset| component(order, offset, last > 0)).collect(),
        cluster: given(CLUSTER_NAME_VARIABLE),
        user: order.owner.user.clone(),
        uid: order.owner.uid,
        gid: order.owner.gid,
        submit_directory: given("SLURM_SUBMIT_DIR"),
        submit_host: given("SLURM_SUBMIT_HOST"),
        start_seconds: Some(start),
        end_seconds: order.walltime_seconds.map(|seconds| start.saturating_add_unsigned(seconds)),
        restarts: given(RESTART_COUNT_VARIABLE).parse().unwrap_or(0),
        array: order.job.index.map(|index| array(order, index)),
    }
}

fn array(order: &LaunchOrder, index: u32) -> ArrayFacts {
    let number = |name: &str| order.environment.get(name).and_then(|text| text.parse().ok());
    ArrayFacts {
        array: order.job.number,
        index,
        count: number("SLURM_ARRAY_TASK_COUNT").unwrap_or(1),
        min: number("SLURM_ARRAY_TASK_MIN").map_or(index, |min| u32::try_from(min).unwrap_or(index)),
        max: number("SLURM_ARRAY_TASK_MAX").map_or(index, |max| u32::try_from(max).unwrap_or(index)),
        step: number("SLURM_ARRAY_TASK_STEP").map_or(1, |step| u32::try_from(step).unwrap_or(1)),
    }
}

/// What is known of a component.
fn component(order: &LaunchOrder, offset: u32, is_one_of_several: bool) -> ComponentFacts {
    let suffixed = |name: &str| match is_one_of_several {
        true => format!("{name}_HET_GROUP_{offset}"),
        false => name.to_owned(),
    };
    let given = |name: &str| order.environment.get(&suffixed(name)).cloned();
    let per_task = given("SLURM_CPUS_PER_TASK").and_then(|text| text.parse().ok()).unwrap_or(1);
    let nodes = order.nodes.iter().zip(0..).filter(|(node, _)| node.component == offset);
    let asked =
        given("SLURM_NTASKS").and_then(|text| text.parse().ok()).filter(|_| given("SLURM_OVERCOMMIT").is_some());
    let tasks = match asked {
        Some(tasks) => shared(tasks, nodes.clone().count() as u64),
        None => nodes.clone().map(|(node, _)| u64::from(node.tasks)).collect(),
    };
    // A ledger of an earlier version tells nothing of other nodes: there it is what the tasks need.
    let cores = order.node_cores();
    let cpus = |(node, index): (&OrderNode, u32)| match &cores {
        Some(cores) => cores.get(index as usize).copied().unwrap_or(0),
        None if index == order.node_index => order.cores.len(),
        None => u64::from(node.tasks) * per_task,
    };
    ComponentFacts {
        number: order.number() + u64::from(offset),
        name: order.name.clone(),
        account: given("SLURM_JOB_ACCOUNT").or(order.account.clone()).unwrap_or_default(),
        partition: given("SLURM_JOB_PARTITION").unwrap_or_else(|| order.queue.clone()),
        qos: given("SLURM_JOB_QOS").unwrap_or_else(|| "normal".to_owned()),
        nodes: nodes.clone().map(|(node, _)| node.name.clone()).collect(),
        cpus: nodes.map(cpus).collect(),
        tasks,
        ..ComponentFacts::default()
    }
}

/// So many tasks on so many nodes, the first of which take one more if need be: what `--overcommit` makes of them.
fn shared(tasks: u64, nodes: u64) -> Vec<u64> {
    let (each, more) = (tasks.checked_div(nodes).unwrap_or(0), tasks.checked_rem(nodes).unwrap_or(0));
    (0..nodes).map(|node| each + u64::from(node < more)).collect()
}
