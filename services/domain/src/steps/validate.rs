//! Limits on steps.

use crate::{
    jobs::validate::{arguments, attributes, dialect, environment},
    requests::validate::models,
    validate::{
        MAX_COUNT, MAX_JOB_BYTES, MAX_LIST, MAX_MEMORY_BYTES, MAX_NODE_NAMES, bytes, count, image, invalid, label,
        name, number, optional, path, shown, signal, walltime,
    },
};
use muster_schemas::{
    binding::{Binding, CoreBinding},
    command::Refusal,
    resources::{IndexSet, Per},
    steps::{GpuBinding, StepGroup, StepInput, StepOutput, StepSpec, StepStreams},
};
use std::collections::{BTreeMap, BTreeSet};

/// The greatest number of tasks of one step.
const MAX_STEP_TASKS: u64 = 1_000_000;

/// Everything about a step that can be checked without the state.
pub(crate) fn step(spec: &StepSpec) -> Result<(), Refusal> {
    label("name", &spec.name)?;
    working_directory("working_directory", spec.working_directory.as_ref())?;
    spec.environment.as_ref().map_or(Ok(()), environment)?;
    if let Some(umask) = spec.umask {
        number("umask", u64::from(umask), 0, 0o777)?;
    }
    streams(&spec.streams)?;
    let names: BTreeMap<String, String> = spec.variables.keys().map(|name| (name.clone(), String::new())).collect();
    environment(&names)?;
    spec.walltime_seconds.map_or(Ok(()), walltime)?;
    number("kill_grace_seconds", u64::from(spec.kill_grace_seconds.unwrap_or(0)), 0, 86_400)?;
    spec.warning.map_or(Ok(()), |warning| signal("warning.signal", warning.signal))?;
    attributes(&spec.attributes)?;
    dialect(spec.dialect.as_deref())?;
    places(spec)?;
    spec.groups.iter().try_for_each(group)?;
    carried(spec, 1)
}

/// Whether a step is small enough to be launched, with this many copies of each of its groups.
pub(crate) fn carried(spec: &StepSpec, copies: usize) -> Result<(), Refusal> {
    let all = of_groups(spec).saturating_mul(copies).saturating_add(of_step(spec));
    bytes("arguments, environments and attributes together", all, MAX_JOB_BYTES)
}

/// The most entries of a list of cores, sockets or memory domains, and the most ranges of all of them together.
const MAX_LISTED: usize = 4_096;
/// Above the number of every core and socket.
const MAX_CORES: u32 = 65_536;
/// Above the number of every memory domain: the kernel knows no more.
const MAX_DOMAINS: u32 = 1_024;

fn binding(binding: &Binding) -> Result<(), Refusal> {
    if let Some(most) = binding.tasks_per_socket {
        number("binding.tasks_per_socket", u64::from(most), 1, u64::from(MAX_COUNT))?;
    }
    let cores = binding.cores.as_ref().and_then(CoreBinding::list);
    let memory = binding.memory.as_ref().and_then(|memory| memory.domains.list());
    for (field, list, above) in [("binding.cores", cores, MAX_CORES), ("binding.memory.domains", memory, MAX_DOMAINS)] {
        let Some(list) = list else { continue };
        if let Some(last) = list.iter().filter_map(|set| set.ranges().last()).map(|(_, last)| *last).max() {
            number(field, u64::from(last), 0, u64::from(above) - 1)?;
        }
        count(field, list.len(), MAX_LISTED)?;
        let ranges: usize = list.iter().map(|set| set.ranges().len()).sum();
        count(field, ranges, MAX_LISTED)?;
        if list.is_empty() || list.iter().any(IndexSet::is_empty) {
            return invalid(format!("{field}: names nothing to bind a task to"));
        }
    }
    Ok(())
}

fn working_directory(field: &str, folder: Option<&String>) -> Result<(), Refusal> {
    optional(field, folder, path)?;
    match folder.filter(|folder| !folder.starts_with('/')) {
        Some(folder) => invalid(format!("{field}: `{}` does not begin with `/`", shown(folder))),
        None => Ok(()),
    }
}

fn input(field: &str, stdin: &StepInput) -> Result<(), Refusal> {
    if let StepInput::File(file) = stdin { path(field, file) } else { Ok(()) }
}

fn of_step(spec: &StepSpec) -> usize {
    spec.environment.as_ref().map_or(0, text_bytes) + text_bytes(&spec.attributes)
}

fn of_groups(spec: &StepSpec) -> usize {
    let programs = spec.groups.iter().flat_map(|group| &group.programs).flat_map(|program| &program.argv);
    let environments: usize = spec.groups.iter().map(|group| text_bytes(&group.environment)).sum();
    let places: usize = spec.places().map(|(_, place)| place.node.len()).sum();
    let paths = |group: &StepGroup| {
        let file = if let Some(StepInput::File(file)) = &group.stdin { file.len() } else { 0 };
        file + group.working_directory.as_ref().map_or(0, String::len) + group.container.as_ref().map_or(0, String::len)
    };
    let paths: usize = spec.groups.iter().map(paths).sum();
    let lists: usize = spec.groups.iter().map(list_bytes).sum();
    programs.map(String::len).sum::<usize>() + environments + places + paths + lists
}

/// What the lists of a group take in a record: that of cores is repeated for each place.
fn list_bytes(group: &StepGroup) -> usize {
    let bytes = |list: &[IndexSet]| list.iter().map(|set| 8 + 8 * set.ranges().len()).sum::<usize>();
    let binding = group.binding.as_ref();
    let cores = binding.and_then(|binding| binding.cores.as_ref()?.list()).map_or(0, bytes);
    let memory = binding.and_then(|binding| binding.memory.as_ref()?.domains.list()).map_or(0, bytes);
    let gpus = if let Some(GpuBinding::Listed(sets)) = &group.gpu_binding { bytes(sets) } else { 0 };
    cores.saturating_mul(group.places.len() + 1) + memory + gpus
}

fn text_bytes(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(name, value)| name.len() + value.len()).sum()
}

fn streams(streams: &StepStreams) -> Result<(), Refusal> {
    input("streams.stdin.file", &streams.stdin)?;
    for (field, output) in
        [("streams.stdout.file", Some(&streams.stdout)), ("streams.stderr.file", streams.stderr.as_ref())]
    {
        if let Some(StepOutput::File(file)) = output {
            path(field, file)?;
        }
    }
    Ok(())
}

/// Each node occurs once per component, and each rank from 0 at one place.
fn places(spec: &StepSpec) -> Result<(), Refusal> {
    count("groups.places", spec.places().count(), MAX_NODE_NAMES)?;
    let mut nodes = BTreeSet::new();
    let mut ranks = IndexSet::new();
    let mut total = 0;
    for (group, place) in spec.places() {
        if !nodes.insert((group.component, &place.node)) {
            let (component, node) = (group.component, shown(&place.node));
            return invalid(format!("groups.places.node: `{node}` is given twice for component {component}"));
        }
        if place.ranks.is_empty() {
            return invalid(format!("groups.places.ranks: node `{}` has no task", shown(&place.node)));
        }
        total += place.ranks.len();
        ranks = ranks.union(&place.ranks);
    }
    number("tasks", total, 1, MAX_STEP_TASKS)?;
    let expected = IndexSet::first_n(u32::try_from(total).unwrap_or(u32::MAX));
    if ranks != expected {
        return invalid(format!(
            "groups.places.ranks: {total} tasks have the ranks {ranks}, not each of {expected} once"
        ));
    }
    Ok(())
}

fn gpus(group: &StepGroup) -> Result<(), Refusal> {
    models("groups", group.gpus.as_ref(), &group.more_gpus)?;
    for gpus in group.gpus.iter().chain(&group.more_gpus) {
        number("groups.gpus.count", u64::from(gpus.count), 0, u64::from(MAX_COUNT))?;
        optional("groups.gpus.model", gpus.model.as_ref(), name)?;
        if matches!(gpus.per, Per::Core | Per::Gpu) {
            return invalid(
                "groups.gpus.per: GPUs of steps are counted for each node or task, or for the group".into(),
            );
        }
    }
    match &group.gpu_binding {
        Some(GpuBinding::PerTask(count) | GpuBinding::Shared(count)) => {
            number("groups.gpu_binding", u64::from(*count), 1, u64::from(MAX_COUNT))
        }
        Some(GpuBinding::Listed(sets)) => {
            let ranges: usize = sets.iter().map(|set| set.ranges().len()).sum();
            count("groups.gpu_binding.listed", ranges, MAX_LISTED)?;
            number("groups.gpu_binding.listed", sets.len() as u64, 1, MAX_LIST as u64)
        }
        None => Ok(()),
    }
}

fn group(group: &StepGroup) -> Result<(), Refusal> {
    let most = u64::from(MAX_COUNT);
    number("groups.cpus_per_task", u64::from(group.cpus_per_task), 0, most)?;
    number("groups.memory_bytes", group.memory_bytes.unwrap_or(0), 0, MAX_MEMORY_BYTES)?;
    group.binding.as_ref().map_or(Ok(()), binding)?;
    gpus(group)?;
    environment(&group.environment)?;
    working_directory("groups.working_directory", group.working_directory.as_ref())?;
    group.stdin.as_ref().map_or(Ok(()), |stdin| input("groups.stdin.file", stdin))?;
    optional("groups.container", group.container.as_ref(), image)?;
    if group.tasks.is_some() || group.nodes.is_some() {
        return invalid(
            "groups.tasks, groups.nodes: are for the only group of a step, which then has no places".into(),
        );
    }
    for place in &group.places {
        name("groups.places.node", &place.node)?;
        number("groups.places.cores", u64::from(place.cores.unwrap_or(1)), 1, most)?;
    }
    let wanted = group.places.iter().fold(IndexSet::new(), |ranks, place| ranks.union(&place.ranks));
    let mut left = wanted;
    for program in &group.programs {
        if program.argv.first().is_none_or(String::is_empty) {
            return invalid("groups.programs.argv: names no command".into());
        }
        arguments("groups.programs.argv", &program.argv)?;
        if !left.contains_all(&program.ranks) {
            return invalid(format!(
                "groups.programs.ranks: {} are not all ranks of the group that no program before has",
                program.ranks
            ));
        }
        left = left.difference(&program.ranks);
    }
    if left.is_empty() { Ok(()) } else { invalid(format!("groups.programs.ranks: ranks {left} have no program")) }
}
