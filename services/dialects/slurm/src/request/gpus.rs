//! The GPUs of a component, and what follows from them for its nodes and tasks. Several options about GPUs have to agree, as
//! they have to in Slurm.

use super::Settings;
use crate::{
    messages::{Refusal, Rejection},
    options::values::{self, NodeRange},
};
use muster_schemas::resources::{Gpus, Per};

/// The options that do not go with `--ntasks-per-gpu`, and Slurm's names for their variables.
const APART: [(&str, &str); 3] = [
    ("gpus-per-task", "SLURM_GPUS_PER_TASK"),
    ("gpus-per-socket", "SLURM_GPUS_PER_SOCKET"),
    ("ntasks-per-node", "SLURM_NTASKS_PER_NODE"),
];
/// The options with numbers of GPUs.
const NUMBERS: [&str; 4] = ["gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task"];

/// The size of a component as far as other options say it, to which GPUs add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub nodes: Option<NodeRange>,
    pub tasks: Option<u32>,
    pub tasks_per_node: Option<u32>,
}

/// Whether options about GPUs exclude each other, or name GPUs of several types.
///
/// # Errors
/// They do.
pub fn check(settings: &Settings) -> Result<(), Refusal> {
    if settings.is_set("ntasks-per-gpu")
        && let Some((option, variable)) = APART.into_iter().find(|(option, _)| settings.is_set(option))
    {
        let by_variable = settings.source(option) == Some(super::Source::Environment);
        let what = if by_variable { variable.to_owned() } else { format!("--{option}") };
        return Err(Refusal::NotWithTasksPerGpu(what));
    }
    let several = |option: &&str| settings.text(option).is_some_and(values::names_several_models);
    let gres = settings.value("gres", values::gres).unwrap_or_default();
    let mut models: Vec<_> =
        gres.iter().filter(|one| one.name == "gpu" && one.count > 0).map(|one| &one.model).collect();
    models.dedup();
    if models.len() > 1 || NUMBERS.iter().any(several) {
        return Err(Refusal::Rejected(Rejection::GpuTypes));
    }
    Ok(())
}

/// The GPUs of a component; its numbers get what follows from them.
///
/// # Errors
/// The options do not agree with each other, or with the numbers.
pub(super) fn wanted(settings: &Settings, numbers: &mut Numbers) -> Result<Option<Gpus>, Refusal> {
    check(settings)?;
    let wrong = || Refusal::Rejected(Rejection::Gres);
    *numbers = Counts::of(settings).settle(*numbers).ok_or_else(wrong)?;
    let [of_job, of_node, of_socket, of_task] = NUMBERS.map(|option| number(settings, option));
    let all = [(of_node, Per::Node), (of_task, Per::Task), (of_job, Per::Request), (of_socket, Per::Node)];
    let mut models = all.iter().filter_map(|(gpus, _)| gpus.as_ref()?.1.clone()).collect::<Vec<_>>();
    models.sort_unstable();
    models.dedup();
    if models.len() > 1 {
        return Err(Refusal::Rejected(Rejection::GpuTypes));
    }
    // The narrowest says all: what the others say is in the numbers of nodes and tasks.
    if let Some((count, per)) = all.into_iter().find_map(|(gpus, per)| Some((gpus?.0, per))) {
        return Ok(Some(Gpus { count, per, model: models.pop() }));
    }
    let gres = settings.value("gres", values::gres).unwrap_or_default();
    let on_each = on_each(gres).ok_or_else(wrong)?;
    // As many as the tasks need.
    let tasks = settings.value("ntasks", values::count).zip(settings.value("ntasks-per-gpu", values::count));
    let for_tasks =
        tasks.map(|(tasks, of_each)| Gpus { count: tasks.div_ceil(of_each), per: Per::Request, model: None });
    Ok(on_each.or(for_tasks))
}

/// The number of GPUs of an option, which is not 0, and their model.
fn number(settings: &Settings, option: &str) -> Option<(u32, Option<String>)> {
    settings.value(option, values::gpus).filter(|(count, _)| *count > 0)
}

/// The GPUs on each node in a list of generic resources; `None` if it contains anything else.
pub fn on_each(gres: Vec<values::Gres>) -> Option<Option<Gpus>> {
    let mut gpus: Option<Gpus> = None;
    for one in gres.into_iter().filter(|one| one.count > 0) {
        if one.name != "gpu" {
            return None;
        }
        let count = gpus.as_ref().map_or(0, |gpus| gpus.count).saturating_add(one.count);
        gpus = Some(Gpus { count, per: Per::Node, model: one.model });
    }
    Some(gpus)
}

/// How many GPUs each option asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `--gpus`
    pub job: Option<u32>,
    /// `--gpus-per-node`
    pub node: Option<u32>,
    /// `--gpus-per-socket`
    pub socket: Option<u32>,
    /// `--gpus-per-task`
    pub task: Option<u32>,
}

impl Counts {
    /// Those of these options.
    pub fn of(settings: &Settings) -> Self {
        let [job, node, socket, task] = NUMBERS.map(|option| Some(number(settings, option)?.0));
        Self { job, node, socket, task }
    }

    /// The numbers of nodes and tasks with what follows from these counts; `None` if they do not agree.
    fn settle(self, numbers: Numbers) -> Option<Numbers> {
        let Numbers { mut nodes, mut tasks, mut tasks_per_node } = numbers;
        let wholes = [(self.job, self.node), (self.job, self.socket), (self.job, self.task), (self.node, self.socket)];
        wholes.into_iter().try_for_each(|(all, each)| times(all, each).map(drop))?;
        if let Some(count) = times(self.job, self.node)? {
            let fits = nodes.is_none_or(|NodeRange { min, max }| (min..=max.unwrap_or(min)).contains(&count));
            nodes = fits.then_some(Some(NodeRange { min: count, max: None }))?;
        }
        if let Some(count) = times(self.job, self.task)? {
            tasks = tasks.is_none_or(|tasks| tasks == count).then_some(Some(count))?;
        }
        if let Some(count) = times(self.node, self.task)? {
            tasks_per_node = tasks_per_node.is_none_or(|tasks| tasks == count).then_some(Some(count))?;
        }
        Some(Numbers { nodes, tasks, tasks_per_node })
    }

    /// The tasks of a step for which these numbers of nodes and tasks are given, as far as they follow; `None` if the counts do
    /// not agree with each other or with the numbers.
    pub fn tasks_of_step(self, nodes: Option<NodeRange>, tasks: Option<u32>) -> Option<Option<u32>> {
        self.settle(Numbers { nodes, tasks, tasks_per_node: None }).map(|numbers| numbers.tasks)
    }
}

/// How often one number goes into another, if both are given; `None` if it does not go evenly.
fn times(all: Option<u32>, each: Option<u32>) -> Option<Option<u32>> {
    match (all, each) {
        (Some(all), Some(each)) if each == 0 || all == 0 || all % each != 0 => None,
        (Some(all), Some(each)) => Some(Some(all / each)),
        _ => Some(None),
    }
}
