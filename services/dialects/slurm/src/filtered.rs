//! What submission filters get about a component in addition to its description, and may change (SL-S-21): its
//! partition, QOS, reservation, memory, features, nodes and tasks, in the words and values of `scontrol update`. Options that
//! the site has added are told, and cannot be changed (SL-S-22).

use crate::{
    attributes::{self, Attributes, component as names},
    options::site,
    queries::{
        change::{sizes, written},
        update::{Change, Pair},
    },
    show::record::{MinMemory, constraint, min_memory},
};
use muster_schemas::{
    job::{Component, JobSpec},
    resources::{Alternative, Count, Level, Request},
};
use std::collections::{BTreeMap, BTreeSet};

/// Values of a component, by name.
pub type Terms = BTreeMap<String, String>;

/// The names, as in `scontrol update`.
const KEYS: [&str; 10] = [
    "Partition",
    "QOS",
    "ReservationName",
    "Features",
    "NumNodes",
    "NumTasks",
    "CPUsPerTask",
    "MinMemoryNode",
    "MinMemoryCPU",
    "Gres",
];

/// The words before the name of an option of the site.
const SITE_OPTION: &str = "SiteOption.";

/// The request of a component. `alternatives` is its current request, `attributes` those of its job, `offset` is its
/// own. Only what was requested is listed, but every component has a partition.
pub fn told(
    component: &Component,
    alternatives: &[Alternative],
    attributes: &BTreeMap<String, String>,
    offset: u32,
) -> Terms {
    let kept = |name: &str| Attributes(attributes).component(offset as usize, name).map(str::to_owned);
    let requests = alternatives.first().map_or(&[][..], |alternative| &alternative.requests);
    let first = requests.first();
    let memory = first.and_then(min_memory);
    let per_cpu = matches!(memory, Some(MinMemory::PerCpu(_)));
    let value = |key: &str| match key {
        "Partition" => kept(names::PARTITION).or_else(|| component.queue.clone()),
        "QOS" => component.class.clone(),
        "ReservationName" => kept(names::RESERVATION).or_else(|| component.reservation.clone()),
        "Features" => {
            kept(names::CONSTRAINT).or_else(|| first.and_then(|request| constraint(request.filter.as_ref()?)))
        }
        "NumNodes" => kept(names::NODES).or_else(|| nodes(requests)),
        "NumTasks" => kept(names::NTASKS).or_else(|| tasks(requests)),
        "CPUsPerTask" => kept(names::CPUS_PER_TASK).or_else(|| {
            let cpus = first.map(|request| request.cpus_per_task).filter(|cpus| *cpus > 1);
            cpus.map(|cpus| cpus.to_string())
        }),
        "MinMemoryNode" => memory.filter(|_| !per_cpu).map(MinMemory::text),
        "MinMemoryCPU" => memory.filter(|_| per_cpu).map(MinMemory::text),
        "Gres" => kept(names::GRES),
        _ => None,
    };
    let given = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), value(key)?)));
    // Attributes are the user's: not all that look so are of such an option.
    let of_site = Attributes(attributes).site_options(offset as usize).filter(|(name, _)| site::is_name(name));
    let of_site = of_site.map(|(name, value)| (format!("{SITE_OPTION}{name}"), value.to_owned()));
    given.chain(of_site).filter(|(_, text)| !text.is_empty() && !text.chars().any(char::is_control)).collect()
}

/// The least and greatest number of nodes requested.
fn nodes(requests: &[Request]) -> Option<String> {
    let counts = requests.iter().map(|request| {
        let level = request.path.iter().find(|part| part.level == Level::Node)?;
        match level.count {
            Count::Range { min, max } => Some((min, max)),
            Count::All | Count::Best | Count::BestHalf => None,
        }
    });
    let counts: Vec<(u32, u32)> = counts.collect::<Option<_>>()?;
    let sum = |of: fn(&(u32, u32)) -> u32| counts.iter().map(of).fold(0, u32::saturating_add);
    let (min, max) = (sum(|count| count.0), sum(|count| count.1));
    let text = if max > min { format!("{min}-{max}") } else { min.to_string() };
    (min > 0).then_some(text)
}

fn tasks(requests: &[Request]) -> Option<String> {
    let counts: Vec<u32> = requests.iter().map(|request| request.tasks).collect::<Option<_>>()?;
    let sum = counts.into_iter().fold(0, u32::saturating_add);
    (sum > 0).then(|| sum.to_string())
}

/// Applies a filter's changes to the component at an offset: `before` is what the filter was told, `after` what it
/// left.
///
/// # Errors
/// An unknown name, or an invalid value, as text for people. Nothing is changed then.
pub fn change(spec: &mut JobSpec, offset: u32, before: &Terms, after: &Terms) -> Result<(), String> {
    let is_of_slurm = spec.dialect.as_deref() == Some(crate::NAME);
    let JobSpec { components, attributes, .. } = spec;
    let Some(component) = components.get_mut(offset as usize) else {
        return Err(format!("there is no component {offset}"));
    };
    let mut shown: Vec<(&str, String)> = Vec::new();
    let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in all.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
        let value = after.get(name).map(|value| value.trim()).unwrap_or_default();
        let known = KEYS.iter().find(|key| key.eq_ignore_ascii_case(name));
        let key = *known.ok_or_else(|| format!("Request: `{name}` is none of {}", KEYS.join(", ")))?;
        let taken = set(component, key, value, &mut shown);
        taken.ok_or_else(|| format!("Request: {key} cannot be `{value}` here"))?;
    }
    for (name, value) in shown.into_iter().filter(|_| is_of_slurm) {
        let key = attributes::component_key(offset as usize, name);
        if value.is_empty() {
            attributes.remove(&key)
        } else {
            attributes.insert(key, value)
        };
    }
    Ok(())
}

/// Sets the value of a name, or removes it if the value is empty; `None` if the value is invalid.
fn set(component: &mut Component, key: &'static str, value: &str, shown: &mut Vec<(&str, String)>) -> Option<()> {
    let first_of = |text: &str| text.split(',').next().filter(|name| !name.is_empty()).map(str::to_owned);
    let list = || if value.contains(',') { value.to_owned() } else { String::new() };
    match key {
        "Partition" => {
            component.queue = first_of(value);
            shown.push((names::PARTITION, list()));
        }
        "ReservationName" => {
            component.reservation = first_of(value);
            shown.push((names::RESERVATION, list()));
        }
        "QOS" => component.class = first_of(value),
        _ => return set_size(component, key, value, shown),
    }
    Some(())
}

fn set_size(component: &mut Component, key: &'static str, value: &str, shown: &mut Vec<(&str, String)>) -> Option<()> {
    if component.alternatives.is_empty() {
        component.alternatives.push(Alternative::default());
    }
    let asked = &mut component.alternatives;
    let is_in_parts = asked.iter().any(|alternative| alternative.scatter);
    let requests = asked.iter_mut().flat_map(|alternative| &mut alternative.requests);
    let pair = Pair { key, change: Change::Set, value: value.to_owned() };
    match (key, value.is_empty()) {
        // Only one of the two is told; setting the other replaces it.
        ("MinMemoryNode" | "MinMemoryCPU", true) => {
            let per_cpu = key == "MinMemoryCPU";
            let is_own = |request: &Request| matches!(min_memory(request), Some(MinMemory::PerCpu(_))) == per_cpu;
            requests.filter(|request| is_own(request)).for_each(|request| request.memory = None);
        }
        // Dividing nodes and tasks among parts with different features takes a new submission.
        ("NumNodes" | "NumTasks", true) if is_in_parts => return None,
        ("NumNodes", true) => requests.for_each(|request| request.path.retain(|part| part.level != Level::Node)),
        ("NumTasks", true) => requests.for_each(|request| request.tasks = None),
        ("CPUsPerTask", true) => requests.for_each(|request| request.cpus_per_task = 1),
        ("Gres", true) => requests.for_each(|request| {
            request.gpus = None;
            request.more_gpus.clear();
        }),
        _ => sizes(&pair, asked)?,
    }
    shown.extend(written(&pair, asked));
    Some(())
}
