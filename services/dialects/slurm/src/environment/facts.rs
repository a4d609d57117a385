//! The facts for the variables of a job, from the system's information.

use super::{BINDING_OPTIONS, ComponentFacts, GPU_OPTIONS, JobFacts};
use crate::{
    attributes::{Attributes, component},
    duration::limit_seconds,
    job_id::component_number,
    show::record::DEFAULT_QOS,
    size::MEGABYTE,
};
use muster_schemas::{
    job::Component,
    resources::{Memory, Per, Request},
    views::{JobDetail, RunView},
};

/// The facts for the variables of a job's commands; `None` if no run is active. The caller must add the owner's
/// numbers.
pub fn of_run(detail: &JobDetail) -> Option<JobFacts> {
    let run = detail.runs.iter().rev().find(|run| run.ended.is_none())?;
    let started = run.started.unwrap_or(run.allocated);
    let start_seconds = started.0.div_euclid(1_000_000);
    let limit =
        limit_seconds(detail.job.walltime_seconds).and_then(|seconds| start_seconds.checked_add_unsigned(seconds));
    let given = |name: &str| detail.spec.environment.get(name).cloned();
    Some(JobFacts {
        components: (0..)
            .zip(&detail.spec.components)
            .map(|(offset, one)| of_component(detail, run, offset, one))
            .collect(),
        cluster: given("SLURM_CLUSTER_NAME").unwrap_or_default(),
        user: detail.job.owner.clone(),
        submit_directory: given("SLURM_SUBMIT_DIR").unwrap_or_else(|| detail.spec.working_directory.clone()),
        submit_host: given("SLURM_SUBMIT_HOST").unwrap_or_default(),
        start_seconds: Some(start_seconds),
        end_seconds: limit,
        restarts: detail.job.runs.saturating_sub(1),
        umask: detail.spec.umask,
        ..JobFacts::default()
    })
}

fn of_component(detail: &JobDetail, run: &RunView, offset: u32, spec: &Component) -> ComponentFacts {
    let attributes = Attributes(&detail.spec.attributes);
    let kept = |name: &str| attributes.component(offset as usize, name);
    let asked = |options: &[(&'static str, &'static str)]| {
        options.iter().filter_map(|(option, name)| Some((*name, kept(option)?.to_owned()))).collect()
    };
    let count = |name: &str| kept(name).and_then(|text| text.parse().ok());
    let request: Option<&Request> = spec.alternatives.first().and_then(|way| way.requests.first());
    let memory = request.and_then(|request| request.memory);
    let megabytes = |per: Per| memory.filter(|memory: &Memory| memory.per == per).map(|memory| memory.bytes / MEGABYTE);
    let nodes = || run.nodes.iter().filter(|node| node.component == offset);
    let asked_tasks: Option<u32> = count(component::NTASKS);
    let overcommit = kept(component::OVERCOMMIT).is_some();
    // The model has a task for each CPU then.
    let tasks = match asked_tasks.filter(|_| overcommit) {
        Some(tasks) => dealt_evenly(u64::from(tasks), nodes().count()),
        None => nodes().map(|node| u64::from(node.tasks)).collect(),
    };
    ComponentFacts {
        number: component_number(detail.job.own_number(), offset),
        name: kept(component::JOB_NAME).unwrap_or(&detail.job.name).to_owned(),
        account: spec.account.clone().unwrap_or_default(),
        partition: spec.queue.clone().unwrap_or_else(|| detail.job.queue.clone()),
        qos: spec.class.clone().unwrap_or_else(|| DEFAULT_QOS.to_owned()),
        nodes: nodes().map(|node| node.node.clone()).collect(),
        cpus: nodes().map(|node| node.cores.len()).collect(),
        tasks,
        asked_tasks,
        cpus_per_task: count(component::CPUS_PER_TASK),
        tasks_per_node: request.and_then(|request| request.tasks_per_node),
        megabytes_per_cpu: megabytes(Per::Core),
        megabytes_per_node: megabytes(Per::Node),
        distribution: kept(component::DISTRIBUTION).map(str::to_owned),
        overcommit,
        dependency: None,
        reservation: spec.reservation.clone(),
        licences: kept(component::LICENSES).map(str::to_owned),
        binding: asked(&BINDING_OPTIONS),
        gpus: asked(&GPU_OPTIONS),
        container: spec.launch.container.clone(),
    }
}

/// The tasks of each node if they are distributed evenly, the first nodes getting one more if needed.
fn dealt_evenly(tasks: u64, nodes: usize) -> Vec<u64> {
    let nodes = nodes as u64;
    (0..nodes).map(|node| tasks / nodes + u64::from(node < tasks % nodes)).collect()
}
