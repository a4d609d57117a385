//! The answers of this dialect to the services' questions: the variables of a batch script (SL-E-02 to E-04, SL-E-08,
//! SL-E-10), the limits of tasks (SL-E-13), texts about the end (SL-C-15, SL-C-30), and the input of filters and
//! staging (SL-S-21, SL-B-03).

use crate::{
    NAME, burst_buffer,
    environment::{self, ArrayFacts, ComponentFacts, JobFacts, of_batch_script, of_gpus, resource, with_pack_names},
    filtered, mail,
    messages::{EndCause, end_note},
};
use jiff::Zoned;
use muster_dialect::{Dialect, Ending, Host, Variables, login};
use muster_schemas::{
    event::StopReason,
    filter_order::DescribedJob,
    job::{JobSpec, Program},
    node::{CLUSTER_NAME_VARIABLE, LaunchOrder, OrderNode, RESTART_COUNT_VARIABLE},
    notify::NotifyItem,
    time::Timestamp,
};
use nix::sys::resource::Resource;
use std::collections::BTreeMap;

/// Slurm as services see it.
#[derive(Clone, Copy, Debug)]
pub struct Slurm;

impl Dialect for Slurm {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Launchers know `srun`.
    fn has_launcher(&self) -> bool {
        true
    }

    /// Those of a batch script; those about the GPUs of its node for a step. The environment already has those known
    /// before the launch.
    fn variables(&self, order: &LaunchOrder, host: &Host<'_>) -> Variables {
        if !is_batch_script(order) {
            return Variables { set: of_gpus(&order.gpus, order.step.0 > 0), remark: None };
        }
        let mut variables = match order.environment.get(environment::LOADS_LOGIN).map(String::as_str) {
            Some("1") => login::variables(order, host),
            _ => Variables::default(),
        };
        let wanted = order.environment.get(environment::PACK_NAMES).map(String::as_str);
        variables.set.extend(with_pack_names(of_batch_script(&facts(order, host.now)), wanted));
        variables.set.extend(of_gpus(&order.gpus, false));
        // Slurm's daemon sets it if it is missing.
        if !order.environment.contains_key("TMPDIR") {
            variables.set.entry("TMPDIR".to_owned()).or_insert_with(|| "/tmp".to_owned());
        }
        variables
    }

    fn process_id_variable(&self, order: &LaunchOrder) -> Option<&'static str> {
        is_batch_script(order).then_some("SLURM_TASK_PID")
    }

    /// Those of the command that launched it.
    fn soft_limits(&self, order: &LaunchOrder) -> Vec<(Resource, Option<u64>)> {
        let known = environment::soft_limits(&order.environment);
        known.into_iter().filter_map(|limit| Some((resource(limit.resource)?, limit.most))).collect()
    }

    fn end_note(&self, order: &LaunchOrder, ending: Ending, at: &Zoned) -> Option<String> {
        let cause = match ending {
            Ending::Walltime | Ending::Ordered(StopReason::Walltime) => EndCause::TimeLimit,
            Ending::Ordered(StopReason::Cancelled | StopReason::CancelledAtOnce) => EndCause::Cancelled,
            Ending::Ordered(StopReason::Requeued) => EndCause::Requeue,
            Ending::Ordered(StopReason::Preempted) => EndCause::Preemption,
            Ending::Ordered(StopReason::NodeLost) => EndCause::NodeFailure,
            Ending::Ordered(_) => return None,
        };
        let node = order.nodes.get(order.node_index as usize)?;
        let at_time = Timestamp(at.timestamp().as_microsecond());
        Some(end_note(&format!("JOB {}", order.number()), &node.name, at_time, at.time_zone(), cause))
    }

    fn mail_subject(&self, item: &NotifyItem) -> Option<String> {
        Some(mail::subject(item))
    }

    fn tells_requests(&self) -> bool {
        true
    }

    /// In the words of `scontrol update`.
    fn request(&self, job: &DescribedJob) -> BTreeMap<String, String> {
        let offset = job.component.map_or(0, |part| part.offset);
        let Some(component) = job.spec.components.first() else { return BTreeMap::new() };
        filtered::told(component, &job.alternatives, &job.spec.attributes, offset)
    }

    fn take_request(
        &self,
        spec: &mut JobSpec,
        offset: u32,
        before: &BTreeMap<String, String>,
        after: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        filtered::change(spec, offset, before, after)
    }

    fn staged_script(&self, spec: &JobSpec, offset: u32) -> Option<String> {
        Some(burst_buffer::staged_script(spec, offset))
    }
}

/// Whether this is the script of the job itself.
fn is_batch_script(order: &LaunchOrder) -> bool {
    order.step.0 == 0 && matches!(order.launch.program, Program::Script { .. })
}

fn facts(order: &LaunchOrder, now: Timestamp) -> JobFacts {
    let given = |name: &str| order.environment.get(name).cloned().unwrap_or_default();
    let last = order.nodes.iter().map(|node| node.component).max().unwrap_or(0);
    let start = now.to_jiff().as_second();
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
        umask: order.umask,
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

/// The facts about a component.
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
    // A ledger of an earlier version says nothing about other nodes: use what the tasks need.
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

/// The tasks of each node if `--overcommit` distributes them, the first nodes getting one more if needed.
fn shared(tasks: u64, nodes: u64) -> Vec<u64> {
    let (each, more) = (tasks.checked_div(nodes).unwrap_or(0), tasks.checked_rem(nodes).unwrap_or(0));
    (0..nodes).map(|node| each + u64::from(node < more)).collect()
}
