//! The variables that muster sets for Slurm's users.

use super::said::{ArrayFacts, BINDING_OPTIONS, ComponentFacts, GPU_OPTIONS, JobFacts};
use crate::{
    hostlist::{compress, compress_counts},
    options::values::Distribution,
    steps::World,
};
use muster_schemas::resources::IndexSet;
use std::collections::BTreeMap;

type Variables = BTreeMap<String, String>;

/// The variables of a component that exist only if their option was given.
const ASKED_FOR: [&str; 8] = [
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_CPUS_PER_TASK",
    "SRUN_CPUS_PER_TASK",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_DISTRIBUTION",
];

/// Whether a variable of a component exists only if its option was given.
pub fn is_asked_for(name: &str) -> bool {
    ASKED_FOR.contains(&name) || BINDING_OPTIONS.iter().chain(&GPU_OPTIONS).any(|(_, variable)| *variable == name)
}

impl ComponentFacts {
    /// The variables that exist once per component (SL-E-03), without suffix.
    fn by_component(&self) -> Vec<(&'static str, String)> {
        let nodes = self.nodes.len().to_string();
        let list = compress(&self.nodes);
        let mut variables = vec![
            ("SLURM_JOB_ID", self.number.to_string()),
            ("SLURM_JOB_NAME", self.name.clone()),
            ("SLURM_JOB_ACCOUNT", self.account.clone()),
            ("SLURM_JOB_PARTITION", self.partition.clone()),
            ("SLURM_JOB_QOS", self.qos.clone()),
            ("SLURM_JOB_NODELIST", list.clone()),
            ("SLURM_NODELIST", list),
            ("SLURM_JOB_NUM_NODES", nodes.clone()),
            ("SLURM_NNODES", nodes.clone()),
            ("SLURM_JOB_NODES", nodes),
            ("SLURM_JOB_CPUS_PER_NODE", compress_counts(&self.cpus)),
            ("SLURM_TASKS_PER_NODE", compress_counts(&self.tasks)),
        ];
        // Without it steps would be refused the job's own number of tasks.
        variables.extend(self.overcommit.then(|| ("SLURM_OVERCOMMIT", "1".to_owned())));
        variables.extend(self.asked_for());
        variables
    }

    /// The variables that exist only if their option was given.
    fn asked_for(&self) -> impl Iterator<Item = (&'static str, String)> {
        let [ntasks, nprocs, cpus_per_task, of_srun, per_node, mem_per_cpu, mem_per_node, distribution] = ASKED_FOR;
        let tasks = self.asked_tasks.map(|tasks| tasks.to_string());
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let size = |size: Option<u64>| size.map(|size| size.to_string());
        let all = [
            (ntasks, tasks.clone()),
            (nprocs, tasks),
            (cpus_per_task, number(self.cpus_per_task)),
            (of_srun, number(self.cpus_per_task)),
            (per_node, number(self.tasks_per_node)),
            (mem_per_cpu, size(self.megabytes_per_cpu)),
            (mem_per_node, size(self.megabytes_per_node)),
            (distribution, self.distribution.clone()),
        ];
        let others = self.binding.iter().chain(&self.gpus).cloned();
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).chain(others)
    }
}

impl JobFacts {
    fn number(&self) -> u64 {
        self.components.first().map_or(0, |leader| leader.number)
    }

    fn is_heterogeneous(&self) -> bool {
        self.components.len() > 1
    }

    /// The variables that every command of the job sees.
    fn common(&self) -> Variables {
        let mut variables = Variables::new();
        put(&mut variables, "SLURM_JOB_ID", self.number());
        put(&mut variables, "SLURM_CLUSTER_NAME", &self.cluster);
        put(&mut variables, "SLURM_SUBMIT_DIR", &self.submit_directory);
        put(&mut variables, "SLURM_SUBMIT_HOST", &self.submit_host);
        if self.is_heterogeneous() {
            put(&mut variables, "SLURM_HET_SIZE", self.components.len());
        }
        variables
    }

    /// The variables with the suffix of their component (SL-E-01); none in a plain job.
    fn suffixed(&self) -> Variables {
        let components = self.components.iter().enumerate().filter(|_| self.is_heterogeneous());
        let of = |(offset, component): (usize, &ComponentFacts)| {
            let named = move |(name, value)| (format!("{name}_HET_GROUP_{offset}"), value);
            component.by_component().into_iter().map(named)
        };
        components.flat_map(of).collect()
    }

    /// The variables of the job as a whole, and of its first component, without suffix.
    fn unsuffixed(&self) -> Variables {
        let mut variables = self.common();
        let Some(leader) = self.components.first() else { return variables };
        variables.extend(leader.by_component().into_iter().map(|(name, value)| (name.to_owned(), value)));
        put(&mut variables, "SLURM_JOBID", self.number());
        put(&mut variables, "SLURM_JOB_USER", &self.user);
        put(&mut variables, "SLURM_JOB_UID", self.uid);
        put(&mut variables, "SLURM_JOB_GID", self.gid);
        let optional = [
            ("SLURM_JOB_START_TIME", self.start_seconds.map(|seconds| seconds.to_string())),
            ("SLURM_JOB_END_TIME", self.end_seconds.map(|seconds| seconds.to_string())),
            ("SLURM_JOB_DEPENDENCY", leader.dependency.clone()),
            ("SLURM_JOB_RESERVATION", leader.reservation.clone()),
            ("SLURM_JOB_LICENSES", leader.licences.clone()),
            ("SLURM_CONTAINER", leader.container.clone()),
            ("SLURM_RESTART_COUNT", Some(self.restarts).filter(|count| *count > 0).map(|count| count.to_string())),
        ];
        variables.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        variables.extend(self.array.iter().flat_map(ArrayFacts::variables));
        variables
    }

    /// The mask for new files, if it is known.
    fn mask(&self) -> Option<(String, String)> {
        self.umask.map(mask)
    }
}

/// The variable with a mask for new files, in four octal digits.
pub fn mask(umask: u32) -> (String, String) {
    ("SLURM_UMASK".to_owned(), format!("{umask:04o}"))
}

impl ArrayFacts {
    fn variables(&self) -> [(String, String); 6] {
        [
            ("SLURM_ARRAY_JOB_ID", self.array),
            ("SLURM_ARRAY_TASK_ID", u64::from(self.index)),
            ("SLURM_ARRAY_TASK_COUNT", self.count),
            ("SLURM_ARRAY_TASK_MIN", u64::from(self.min)),
            ("SLURM_ARRAY_TASK_MAX", u64::from(self.max)),
            ("SLURM_ARRAY_TASK_STEP", u64::from(self.step)),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_string()))
    }
}

fn put(variables: &mut Variables, name: &str, value: impl ToString) {
    variables.insert(name.to_owned(), value.to_string());
}

/// The variables of a batch script (SL-E-03, E-04, E-08, E-10), without `SLURM_TASK_PID`, which only the process itself
/// knows.
pub fn of_batch_script(job: &JobFacts) -> Variables {
    let mut variables = job.unsuffixed();
    variables.extend(job.suffixed());
    let leader = job.components.first();
    put(&mut variables, "SLURM_CPUS_ON_NODE", leader.and_then(|leader| leader.cpus.first()).unwrap_or(&0));
    put(&mut variables, "SLURMD_NODENAME", leader.and_then(|leader| leader.nodes.first()).map_or("", String::as_str));
    for name in ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_PRIO_PROCESS"] {
        put(&mut variables, name, 0);
    }
    variables.extend(job.mask());
    variables
}

/// The variables of the command that `salloc` runs (SL-E-03, E-04).
pub fn of_allocation(job: &JobFacts) -> Variables {
    let mut variables = match job.is_heterogeneous() {
        true => job.common(),
        false => job.unsuffixed(),
    };
    variables.extend(job.suffixed());
    variables.extend(job.mask());
    variables
}

/// The variables about the GPUs on a node: the numbers of those that a job, and the step in it, has there.
pub fn of_gpus(gpus: &IndexSet, is_step: bool) -> Variables {
    let mut variables = Variables::new();
    if gpus.is_empty() {
        return variables;
    }
    let numbers: Vec<String> = gpus.iter().map(|gpu| gpu.to_string()).collect();
    put(&mut variables, if is_step { "SLURM_STEP_GPUS" } else { "SLURM_JOB_GPUS" }, numbers.join(","));
    put(&mut variables, "SLURM_GPUS_ON_NODE", gpus.len());
    variables
}

/// A step: where it runs, and the layout of its tasks.
#[derive(Clone, Debug)]
pub struct StepFacts<'a> {
    /// The job.
    pub job: &'a JobFacts,
    /// The step's number.
    pub step: u32,
    /// Its parts, in the order of their ranks.
    pub parts: Vec<StepPart>,
    /// Its tasks.
    pub world: &'a World,
}

/// The part of a step on one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepPart {
    /// The component's offset.
    pub component: u32,
    /// CPUs for each task, if requested.
    pub cpus_per_task: Option<u32>,
    /// The distribution of tasks, if requested.
    pub distribution: Option<String>,
    /// The CPUs of the part on each of its nodes.
    pub cpus: Vec<u64>,
}

/// The variables of the task with a rank (SL-E-02, E-05 to E-07); none if the step has no such task.
pub fn of_task(step: &StepFacts<'_>, rank: u32) -> Variables {
    let Some(task) = step.world.tasks.get(rank as usize) else { return Variables::new() };
    let job = step.job;
    let part = step.parts.get(task.part);
    let component = part.and_then(|part| job.components.get(part.component as usize));
    let mut variables = job.unsuffixed();
    if let Some(component) = component {
        // Remove those of the first component (SL-E-07).
        variables.retain(|name, _| !is_asked_for(name));
        variables.extend(component.by_component().into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    // The number without suffix is the leader's, on every component (SL-E-02).
    put(&mut variables, "SLURM_JOB_ID", job.number());
    variables.extend(job.suffixed());
    let cpus = step_cpus(step);
    add_world(&mut variables, step, &cpus);
    if let Some(count) = part.and_then(|part| part.cpus_per_task) {
        put(&mut variables, "SLURM_CPUS_PER_TASK", count);
        put(&mut variables, "SRUN_CPUS_PER_TASK", count);
    }
    let distribution = part.and_then(|part| part.distribution.as_deref()).map(Distribution::in_force);
    let usual = || Distribution::default().word().to_owned();
    put(&mut variables, "SLURM_DISTRIBUTION", distribution.unwrap_or_else(usual));
    let on_node: Vec<String> =
        step.world.tasks.iter().filter(|other| other.node == task.node).map(|other| other.rank.to_string()).collect();
    put(&mut variables, "SLURM_PROCID", task.rank);
    put(&mut variables, "SLURM_LOCALID", task.local);
    put(&mut variables, "SLURM_NODEID", task.node);
    put(&mut variables, "SLURM_GTIDS", on_node.join(","));
    put(&mut variables, "SLURM_PRIO_PROCESS", 0);
    put(&mut variables, "SLURM_CPUS_ON_NODE", cpus.get(task.node).copied().unwrap_or(0));
    put(&mut variables, "SLURMD_NODENAME", step.world.nodes.get(task.node).map_or("", String::as_str));
    variables
}

/// The CPUs of the step on each of its nodes.
fn step_cpus(step: &StepFacts<'_>) -> Vec<u64> {
    let mut cpus = vec![0; step.world.nodes.len()];
    for (part, places) in step.parts.iter().zip(&step.world.part_nodes) {
        for (place, count) in places.iter().zip(&part.cpus) {
            cpus[*place] += count;
        }
    }
    cpus
}

/// Adds the variables of the step and, if it spans components, of the single job that it looks like (SL-E-05).
fn add_world(variables: &mut Variables, step: &StepFacts<'_>, cpus: &[u64]) {
    let world = step.world;
    let list = compress(&world.nodes);
    let tasks = world.tasks.len();
    let per_node = compress_counts(&world.tasks_per_node());
    put(variables, "SLURM_STEP_ID", step.step);
    put(variables, "SLURM_STEPID", step.step);
    put(variables, "SLURM_STEP_NODELIST", &list);
    put(variables, "SLURM_STEP_NUM_NODES", world.nodes.len());
    put(variables, "SLURM_STEP_NUM_TASKS", tasks);
    put(variables, "SLURM_STEP_TASKS_PER_NODE", &per_node);
    put(variables, "SLURM_TASKS_PER_NODE", &per_node);
    put(variables, "SLURM_NTASKS", tasks);
    put(variables, "SLURM_NPROCS", tasks);
    put(variables, "SLURM_NNODES", world.nodes.len());
    let first = step.parts.first().map(|part| part.component);
    if step.parts.iter().all(|part| Some(part.component) == first) {
        return;
    }
    put(variables, "SLURM_JOB_NODELIST", &list);
    put(variables, "SLURM_NODELIST", &list);
    put(variables, "SLURM_JOB_NUM_NODES", world.nodes.len());
    put(variables, "SLURM_JOB_NODES", world.nodes.len());
    put(variables, "SLURM_JOB_CPUS_PER_NODE", compress_counts(cpus));
}

/// Adds the old names, `_PACK_GROUP_n` and `SLURM_PACK_SIZE`, for scripts that still read them (SL-E-14), if
/// [`PACK_NAMES`](super::PACK_NAMES) is `1` in the environment of whoever gets the variables.
pub fn with_pack_names(mut variables: Variables, wanted: Option<&str>) -> Variables {
    if wanted != Some("1") {
        return variables;
    }
    let old = variables.iter().filter_map(|(name, value)| match name.split_once("_HET_GROUP_") {
        Some((name, offset)) => Some((format!("{name}_PACK_GROUP_{offset}"), value.clone())),
        None => (name == "SLURM_HET_SIZE").then(|| ("SLURM_PACK_SIZE".to_owned(), value.clone())),
    });
    let old: Vec<(String, String)> = old.collect();
    variables.extend(old);
    variables
}
