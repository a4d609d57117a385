//! The GPUs of a step's tasks: how many it asks for, and which of them each task sees.

use super::StepError;
use crate::{
    options::values,
    request::{Settings, Source, gpus_on_each},
};
use muster_schemas::{
    resources::{Gpus, IndexSet, Per},
    steps::{GpuBinding, StepPlace},
};

/// The most sets of `map_gpu` and `mask_gpu`; no node has so many tasks that each needs one of its own.
const MAX_SETS: usize = 1000;
/// No node has more GPUs.
const MAX_GPU: u32 = 1023;

/// The GPUs that a part asks for. `None` if it does not ask: its tasks then share all that the job has. What variables
/// say of the GPUs of the job, or of its nodes, is about the job, as it is for memory; what they say of each task is
/// about the tasks of its steps too.
pub(super) fn wanted(settings: &Settings, places: &[StepPlace]) -> Vec<Gpus> {
    let of_line = settings.of_command_line();
    let by_task = |settings: &Settings| {
        let per_task = settings.value("gpus-per-task", values::gpus_by_model).map(|gpus| counted(gpus, Per::Task));
        per_task.or_else(|| {
            let tasks_of_each = settings.value("ntasks-per-gpu", values::count)?;
            let most = places.iter().map(|place| place.ranks.len()).max().unwrap_or(1);
            let count = u32::try_from(most.div_ceil(u64::from(tasks_of_each))).unwrap_or(u32::MAX);
            Some(vec![Gpus { count, per: Per::Node, model: None }])
        })
    };
    let by_number = [("gpus", Per::Request), ("gpus-per-node", Per::Node), ("gpus-per-socket", Per::Node)];
    let mut by_number = by_number
        .into_iter()
        .filter_map(|(option, per)| Some(counted(of_line.value(option, values::gpus_by_model)?, per)));
    by_number
        .next()
        .or_else(|| of_line.value("gpus-per-task", values::gpus_by_model).map(|gpus| counted(gpus, Per::Task)))
        .or_else(|| of_gres(&of_line))
        .or_else(|| by_task(&of_line))
        .or_else(|| of_gres(settings))
        .or_else(|| by_task(settings))
        .unwrap_or_default()
}

fn counted(parts: Vec<(u32, Option<String>)>, per: Per) -> Vec<Gpus> {
    let all: Vec<Gpus> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, model)| Gpus { count, per, model }).collect();
    if all.is_empty() { vec![Gpus { count: 0, per, model: None }] } else { all }
}

/// Those of `--gres`, which are none if it names other resources only, or `none`.
fn of_gres(settings: &Settings) -> Option<Vec<Gpus>> {
    let gres = settings.value("gres", values::gres)?;
    let gpus = gres.into_iter().filter(|one| one.name == "gpu").collect();
    let on_each = gpus_on_each(gpus).unwrap_or_default();
    Some(if on_each.is_empty() { vec![Gpus { count: 0, per: Per::Node, model: None }] } else { on_each })
}

/// Which GPUs each task sees: as `--gpu-bind` says; else each its own, if a number for each task, or of tasks for each
/// GPU, is given.
///
/// # Errors
/// [`StepError::GpuBind`].
pub(super) fn binding(settings: &Settings) -> Result<Option<GpuBinding>, StepError> {
    if let Some(text) = settings.text("gpu-bind") {
        let wrong = || StepError::GpuBind(text.to_owned());
        return read(text).ok_or_else(wrong);
    }
    let per_task = settings.value("gpus-per-task", values::gpus_by_model).unwrap_or_default();
    let per_task = match &per_task[..] {
        [(count, _)] if *count > 0 => Some(GpuBinding::PerTask(*count)),
        // Which of several models is where differs from node to node: each task sees all of them.
        _ => None,
    };
    Ok(per_task.or_else(|| settings.value("ntasks-per-gpu", values::count).map(GpuBinding::Shared)))
}

/// `[verbose,|quiet,]TYPE`.
fn read(text: &str) -> Option<Option<GpuBinding>> {
    let kind = ["verbose,", "quiet,", "v,", "q,"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    let (kind, value) = kind.split_once(':').unwrap_or((kind, ""));
    Some(match kind {
        // All GPUs of a node are equally close: the model does not know better.
        "closest" | "none" | "verbose" | "quiet" if value.is_empty() => None,
        "per_task" => Some(GpuBinding::PerTask(values::count(value)?)),
        "single" => Some(GpuBinding::Shared(values::count(value)?)),
        "map_gpu" => Some(GpuBinding::Listed(sets(value, |gpu| {
            let gpu = values::number(gpu).filter(|gpu| *gpu <= MAX_GPU)?;
            Some(IndexSet::from_range(gpu, gpu))
        })?)),
        "mask_gpu" => Some(GpuBinding::Listed(sets(value, of_mask)?)),
        _ => return None,
    })
}

/// Sets separated by commas, each of them possibly repeated: `0*4,1*4`.
fn sets(text: &str, read: impl Fn(&str) -> Option<IndexSet>) -> Option<Vec<IndexSet>> {
    let mut sets = Vec::new();
    for entry in text.split(',') {
        let (set, times) = entry.split_once('*').unwrap_or((entry, "1"));
        let times = values::count(times).map(|times| times as usize).filter(|times| *times <= MAX_SETS - sets.len())?;
        sets.resize(sets.len() + times, read(set)?);
    }
    Some(sets)
}

/// The bits of a hexadecimal number.
fn of_mask(text: &str) -> Option<IndexSet> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let is_short = !digits.is_empty() && digits.len() <= MAX_GPU as usize / 4;
    let digits =
        digits.chars().rev().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>().filter(|_| is_short)?;
    let bits = (0..)
        .zip(digits)
        .flat_map(|(at, digit)| (0..4).filter(move |bit| digit >> bit & 1 == 1).map(move |bit| 4 * at + bit));
    Some(bits.collect())
}

/// Whether an option about GPUs of a step comes from its command line.
pub(super) fn is_asked(settings: &Settings, option: &str) -> bool {
    settings.source(option) == Some(Source::CommandLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binding_is_read_or_refused() {
        let set = |text: &str| text.parse::<IndexSet>().expect("a set");
        let listed = |texts: &[&str]| Some(Some(GpuBinding::Listed(texts.iter().map(|text| set(text)).collect())));
        assert_eq!(read("closest"), Some(None));
        assert_eq!(read("verbose,none"), Some(None));
        assert_eq!(read("verbose,single:2"), Some(Some(GpuBinding::Shared(2))));
        assert_eq!(read("per_task:3"), Some(Some(GpuBinding::PerTask(3))));
        assert_eq!(read("map_gpu:0*2,3"), listed(&["0", "0", "3"]));
        assert_eq!(read("mask_gpu:0x5,a,10"), listed(&["0,2", "1,3", "4"]));
        for wrong in [
            "",
            "single",
            "single:0",
            "per_task:x",
            "map_gpu:",
            "map_gpu:1024",
            "map_gpu:0*1001",
            "mask_gpu:g",
            "close",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
