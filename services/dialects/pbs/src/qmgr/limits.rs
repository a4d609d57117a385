//! Limits of the server and of queues that only a policy of PBS follows, and the defaults of requests, kept as attributes of the
//! cluster's configuration (PBS-Q-02, PBS-Q-05, PBS-Q-08).

use super::{
    command::Change,
    object::Setting,
    problem::Problem,
    values::{assigned, bytes, count, key, seconds},
};
use crate::{
    refusal::shown,
    resources::{NodesSpec, Place, Select},
    text::is_name,
    value::{Size, parse_seconds},
};
use muster_schemas::cluster::ClusterConfig;
use std::collections::{BTreeMap, BTreeSet};

/// The beginning of the names of attributes that are kept for this dialect.
const OURS: &str = "pbs.";
/// The attribute that numbers queues in the order of their creation.
const CREATED: &str = "pbs.created";
/// Limits on running jobs.
const COUNTS: [&str; 3] = ["max_running", "max_user_run", "max_group_run"];
/// Limits of resources: what there is, and what stands in for it; and the requests of jobs that make none of their own.
const OF_RESOURCES: [&str; 3] = ["resources_available", "resources_max", DEFAULTS];
/// Limits on running jobs of single users, groups and projects.
const MAX_RUN: &str = "max_run";
/// The attribute with the requests of jobs that make none of their own.
pub const DEFAULTS: &str = "resources_default";
/// The most resources with limits of the server or of one queue.
const MOST_RESOURCES: usize = 64;

/// The attributes of a server or a queue.
type Attributes = BTreeMap<String, String>;

/// The limits that are kept, as settings.
pub(super) fn settings(attributes: &Attributes) -> impl Iterator<Item = Setting> {
    limits_of(attributes).filter(|(name, ..)| *name != MAX_RUN).map(|(name, resource, value)| match resource {
        Some(resource) => Setting::of_resource(name, resource, value),
        None => Setting::new(name, value),
    })
}

/// The limits that are kept: the name, the resource if it is a limit of one, and the value.
pub fn limits_of(attributes: &Attributes) -> impl Iterator<Item = (&str, Option<&str>, &str)> {
    attributes.iter().filter(|(name, _)| *name != CREATED).filter_map(|(name, value)| {
        let name = name.strip_prefix(OURS)?;
        let (name, resource) = name.split_once('.').map_or((name, None), |(name, resource)| (name, Some(resource)));
        Some((name, resource, value.as_str()))
    })
}

/// The limits of the server and of queues that another configuration has and this one has not, or not so: their names. Only policies of
/// PBS follow them.
pub fn new_limits(before: &ClusterConfig, after: &ClusterConfig) -> BTreeSet<String> {
    let none = Attributes::new();
    let of_queues = after.queues.iter().map(|queue| {
        let known = before.queues.iter().find(|known| known.name == queue.name);
        (known.map_or(&none, |known| &known.attributes), &queue.attributes)
    });
    let all = [(&before.settings.attributes, &after.settings.attributes)].into_iter().chain(of_queues);
    let new = all.flat_map(|(before, after)| after.iter().filter(|(name, value)| before.get(*name) != Some(value)));
    let name = |key: &str| {
        let key = key.strip_prefix(OURS)?;
        match key.split_once('.') {
            None => COUNTS.contains(&key).then(|| key.to_owned()),
            Some((MAX_RUN, _)) => Some(MAX_RUN.to_owned()),
            Some((DEFAULTS, _)) => None,
            Some((name, _)) => OF_RESOURCES.contains(&name).then(|| key.to_owned()),
        }
    };
    new.filter_map(|(key, _)| name(key)).collect()
}

/// Sets a limit, if the attribute is one. Whether it is.
pub(super) fn set(attributes: &mut Attributes, change: &Change) -> Result<bool, Problem> {
    let key = key(change);
    let name = format!("{OURS}{key}");
    let value = match limit(&key) {
        None => return Ok(false),
        Some(None) => {
            let present = attributes.get(&name).and_then(|text| text.parse().ok());
            count(change, present)?.to_string()
        }
        Some(Some(resource)) => {
            let kept = attributes.keys().filter(|known| known.starts_with(OURS)).count();
            if kept >= MOST_RESOURCES && !attributes.contains_key(&name) {
                return Err(Problem(format!("at most {MOST_RESOURCES} limits are kept")));
            }
            of_resource(change, resource, key.starts_with(DEFAULTS))?
        }
    };
    attributes.insert(name, value);
    Ok(true)
}

/// Takes a limit away, or those of all resources. Whether the attribute is one.
pub(super) fn unset(attributes: &mut Attributes, change: &Change) -> bool {
    let key = key(change);
    if OF_RESOURCES.contains(&key.as_str()) {
        let of_it = format!("{OURS}{key}.");
        attributes.retain(|name, _| !name.starts_with(&of_it));
        return true;
    }
    let is_limit = limit(&key).is_some();
    if is_limit {
        attributes.remove(&format!("{OURS}{key}"));
    }
    is_limit
}

/// Whether this is a limit, and of which resource.
fn limit(key: &str) -> Option<Option<&str>> {
    match key.split_once('.') {
        None => COUNTS.contains(&key).then_some(None),
        Some((name, resource)) => OF_RESOURCES.contains(&name).then_some(Some(resource)),
    }
}

/// The value of a resource as it is written, if it can be read.
fn of_resource(change: &Change, resource: &str, is_default: bool) -> Result<String, Problem> {
    if !is_name(resource) {
        return Err(Problem(format!("`{}` is not the name of a resource", shown(resource))));
    }
    match resource {
        "nodes" | "select" | "place" if is_default => {
            let value = assigned(change)?;
            let read = match resource {
                "nodes" => NodesSpec::parse(value).map(drop),
                "select" => Select::parse(value).map(drop),
                _ => Place::parse(value).map(drop),
            };
            read.map_err(|refusal| Problem(refusal.to_string()))?;
        }
        "cput" | "pcput" | "walltime" => drop(seconds(change)?),
        "mem" | "vmem" | "pmem" | "pvmem" | "file" => drop(bytes(change)?),
        _ => return Ok(count(change, None)?.to_string()),
    }
    Ok(assigned(change)?.to_owned())
}

/// The amount of a resource that is kept: seconds, kilobytes rounded down, or a number.
pub fn amount(resource: &str, value: &str) -> Option<u64> {
    match resource {
        "cput" | "pcput" | "walltime" => parse_seconds(value),
        "mem" | "vmem" | "pmem" | "pvmem" | "file" => Size::parse(value).map(|size| size.bytes() / 1024),
        _ => value.parse().ok(),
    }
}

/// Gives a new queue its number in the order of creation.
pub(super) fn number<'q>(attributes: &mut Attributes, others: impl Iterator<Item = &'q Attributes>) {
    let last = others.map(created).max().unwrap_or(0);
    attributes.insert(CREATED.to_owned(), last.saturating_add(1).to_string());
}

/// The number of a queue in the order of creation; 0 for one that `qmgr` has not created.
pub fn created(attributes: &Attributes) -> u64 {
    attributes.get(CREATED).and_then(|text| text.parse().ok()).unwrap_or(0)
}
