//! The GPUs of a component, and what follows from them for its nodes and tasks. Several options about GPUs have to agree, as
//! they have to in Slurm.

use super::Settings;
use crate::{
    messages::{Refusal, Rejection},
    options::values::{self, NodeRange},
};
use muster_schemas::resources::{Gpus, Per};
use std::collections::BTreeSet;

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

/// Whether options about GPUs exclude each other, or name GPUs with and without their type beside each other.
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
    let gres = settings.value("gres", values::gres).unwrap_or_default();
    let of_gres: Vec<Option<String>> =
        gres.into_iter().filter(|one| one.name == "gpu" && one.count > 0).map(|one| one.model).collect();
    let of_numbers = || NUMBERS.iter().map(|option| parts(settings, option));
    let mixes = |models: &[Option<String>]| models.iter().any(Option::is_none) && models.iter().any(Option::is_some);
    let models = |parts: Vec<(u32, Option<String>)>| parts.into_iter().map(|(_, model)| model).collect::<Vec<_>>();
    let are_mixed = mixes(&of_gres)
        || of_numbers().any(|parts| mixes(&models(parts)))
        || models_of(settings).len() > 1 && mixes(&models(of_numbers().flatten().collect()));
    if are_mixed { Err(Refusal::Rejected(Rejection::GpuTypes)) } else { Ok(()) }
}

/// The GPUs of a component, those of each model apart; its numbers get what follows from them.
///
/// # Errors
/// The options do not agree with each other, or with the numbers.
pub(super) fn wanted(settings: &Settings, numbers: &mut Numbers) -> Result<Vec<Gpus>, Refusal> {
    check(settings)?;
    let wrong = || Refusal::Rejected(Rejection::Gres);
    let mut all = Vec::new();
    for (model, counts) in Counts::by_model(settings) {
        *numbers = counts.settle(*numbers).ok_or_else(wrong)?;
        let Counts { job, node, socket, task } = counts;
        // The narrowest says all: what the others say is in the numbers of nodes and tasks.
        let narrowest = [(node, Per::Node), (task, Per::Task), (job, Per::Request), (socket, Per::Node)];
        let narrowest = narrowest.into_iter().find_map(|(count, per)| Some((count?, per)));
        all.extend(narrowest.map(|(count, per)| Gpus { count, per, model }));
    }
    if !all.is_empty() {
        return Ok(all);
    }
    let gres = settings.value("gres", values::gres).unwrap_or_default();
    let on_each = on_each(gres).ok_or_else(wrong)?;
    if !on_each.is_empty() {
        return Ok(on_each);
    }
    // As many as the tasks need.
    let tasks = settings.value("ntasks", values::count).zip(settings.value("ntasks-per-gpu", values::count));
    let for_tasks =
        tasks.map(|(tasks, of_each)| Gpus { count: tasks.div_ceil(of_each), per: Per::Request, model: None });
    Ok(for_tasks.into_iter().collect())
}

/// The numbers of GPUs of an option, none of which is 0, and their models.
fn parts(settings: &Settings, option: &str) -> Vec<(u32, Option<String>)> {
    let parts = settings.value(option, values::gpus_by_model).unwrap_or_default();
    parts.into_iter().filter(|(count, _)| *count > 0).collect()
}

/// The models that options with numbers name.
fn models_of(settings: &Settings) -> BTreeSet<String> {
    NUMBERS.iter().flat_map(|option| parts(settings, option)).filter_map(|(_, model)| model).collect()
}

/// The GPUs on each node in a list of generic resources, those of each model apart; `None` if it contains anything else.
pub fn on_each(gres: Vec<values::Gres>) -> Option<Vec<Gpus>> {
    let mut all: Vec<Gpus> = Vec::new();
    for one in gres.into_iter().filter(|one| one.count > 0) {
        if one.name != "gpu" {
            return None;
        }
        match all.iter_mut().find(|gpus| gpus.model == one.model) {
            Some(gpus) => gpus.count = gpus.count.saturating_add(one.count),
            None => all.push(Gpus { count: one.count, per: Per::Node, model: one.model }),
        }
    }
    Some(all)
}

/// The GPUs of a request or a step: the first, and those of further models.
pub fn first_and_more(all: Vec<Gpus>) -> (Option<Gpus>, Vec<Gpus>) {
    let mut all = all.into_iter();
    (all.next(), all.collect())
}

/// How many GPUs each option asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// `--gpus`
    job: Option<u32>,
    /// `--gpus-per-node`
    node: Option<u32>,
    /// `--gpus-per-socket`
    socket: Option<u32>,
    /// `--gpus-per-task`
    task: Option<u32>,
}

impl Counts {
    /// Those of these options for each model that they name. If they name one, those without a type are of it too.
    fn by_model(settings: &Settings) -> Vec<(Option<String>, Self)> {
        let named: Vec<Option<String>> = models_of(settings).into_iter().map(Some).collect();
        let models = if named.is_empty() { vec![None] } else { named };
        let is_alone = models.len() == 1;
        let of_model = |model: &Option<String>| {
            let [job, node, socket, task] = NUMBERS.map(|option| {
                let own = parts(settings, option).into_iter().filter(|(_, of)| is_alone || of == model);
                own.map(|(count, _)| count).reduce(u32::saturating_add)
            });
            Self { job, node, socket, task }
        };
        let counts: Vec<Self> = models.iter().map(of_model).collect();
        models.into_iter().zip(counts).collect()
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
}

/// The tasks of a step that follow from its GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTasks {
    /// In all.
    pub tasks: Option<u32>,
    /// On each node.
    pub per_node: Option<u32>,
}

impl StepTasks {
    /// Those of a step with these options, for which this number of nodes is given; `None` if its GPUs do not agree with each
    /// other or with the numbers of its tasks and nodes.
    pub fn of(settings: &Settings, nodes: Option<NodeRange>) -> Option<Self> {
        let [tasks, per_node] = ["ntasks", "ntasks-per-node"].map(|option| settings.value(option, values::count));
        let mut numbers = Numbers { nodes, tasks, tasks_per_node: per_node };
        for (_, counts) in Counts::by_model(settings) {
            numbers = counts.settle(numbers)?;
        }
        let Numbers { tasks: of_all, tasks_per_node, .. } = numbers;
        Some(Self {
            tasks: of_all.filter(|_| tasks.is_none()),
            per_node: tasks_per_node.filter(|_| per_node.is_none()),
        })
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
