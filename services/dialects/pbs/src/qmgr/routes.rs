//! Queues that pass jobs on, and what jobs of a queue may ask for.

use super::{
    command::{Change, Operation},
    object::Setting,
    problem::Problem,
    values::{boolean, bytes, change_list, count, entries, given, key, seconds, show_boolean},
};
use crate::{refusal::shown, show::exact_size, text::is_name, value::show_seconds};
use muster_schemas::cluster::{QueueSpec, Route};

/// The attributes of queues that pass jobs on.
const OF_ROUTES: [&str; 4] = ["route_destinations", "route_held_jobs", "route_waiting_jobs", "route_lifetime"];
/// The attribute of such queues that is only kept.
pub(super) const RETRY: &str = "route_retry_time";
/// Where it is kept.
const KEPT_RETRY: &str = "pbs.route_retry_time";
/// Resources by their names, with the words of the limits of queues.
const RESOURCES: [(&str, &str); 5] =
    [("cput", "cpu_seconds"), ("mem", "memory_bytes"), ("ncpus", "cores"), ("ngpus", "gpus"), ("nodect", "nodes")];
const WALLTIME: &str = "walltime_seconds";

/// The limits of a queue on what its jobs ask for, each with its resource: those of `resources_min` or `resources_max`.
pub fn limits<'q>(spec: &'q QueueSpec, attribute: &str) -> impl Iterator<Item = (&'static str, String)> + 'q {
    let kept = if attribute == "resources_min" { &spec.least_asked } else { &spec.most_asked };
    let all = RESOURCES.into_iter().chain([("walltime", WALLTIME)]);
    all.filter_map(move |(resource, word)| kept.get(word).map(|value| (resource, show(resource, *value))))
}

fn show(resource: &str, value: u64) -> String {
    match resource {
        "cput" | "walltime" => show_seconds(value),
        "mem" => exact_size(value),
        _ => value.to_string(),
    }
}

/// What a queue passes on, and its limits, as settings.
pub(super) fn settings(spec: &QueueSpec) -> Vec<Setting> {
    let mut all = Vec::new();
    if let Some(route) = &spec.route {
        if !route.destinations.is_empty() {
            all.push(Setting::list("route_destinations", route.destinations.clone()));
        }
        for (name, is_so) in [("route_held_jobs", route.held_jobs), ("route_waiting_jobs", route.waiting_jobs)] {
            all.extend(is_so.then(|| Setting::new(name, show_boolean(is_so))));
        }
        all.extend(route.lifetime_seconds.map(|seconds| Setting::new("route_lifetime", seconds.to_string())));
    }
    for attribute in ["resources_min", "resources_max"] {
        all.extend(limits(spec, attribute).map(|(resource, value)| Setting::of_resource(attribute, resource, value)));
    }
    all
}

/// `execution` or `route`, perhaps abbreviated.
pub(super) fn set_type(queue: &mut QueueSpec, change: &Change) -> Result<(), Problem> {
    let (operation, value) = given(change)?;
    let lower = value.trim().to_ascii_lowercase();
    match operation {
        Operation::Assign if !lower.is_empty() && "execution".starts_with(&lower) => {
            queue.route = None;
            queue.attributes.remove(KEPT_RETRY);
        }
        Operation::Assign if !lower.is_empty() && "route".starts_with(&lower) => {
            queue.route.get_or_insert_default();
        }
        _ => return Err(Problem(format!("illegal value `{}`: expected Execution or Route", shown(value)))),
    }
    Ok(())
}

/// Sets an attribute of a route or a limit on what jobs ask for. Whether it is one.
pub(super) fn set(queue: &mut QueueSpec, change: &Change) -> Result<bool, Problem> {
    let key = key(change);
    if set_limit(queue, change, &key)? {
        return Ok(true);
    }
    if key != RETRY && !OF_ROUTES.contains(&key.as_str()) {
        return Ok(false);
    }
    let Some(route) = queue.route.as_deref_mut() else {
        return Err(Problem::unsupported("only queues of queue_type Route pass jobs on"));
    };
    match key.as_str() {
        "route_destinations" => destinations(route, change)?,
        "route_held_jobs" => route.held_jobs = boolean(change)?,
        "route_waiting_jobs" => route.waiting_jobs = boolean(change)?,
        "route_lifetime" => route.lifetime_seconds = Some(seconds(change)?).filter(|seconds| *seconds > 0),
        _ => {
            queue.attributes.insert(KEPT_RETRY.to_owned(), seconds(change)?.to_string());
        }
    }
    Ok(true)
}

fn destinations(route: &mut Route, change: &Change) -> Result<(), Problem> {
    let (operation, value) = given(change)?;
    let one = |entry: &str| match entry.split_once('@') {
        Some(_) => Err(Problem(format!("`{}`: jobs go to queues of this server only; write its name", shown(entry)))),
        None if !is_name(entry) => Err(Problem(format!("`{}` is not the name of a queue", shown(entry)))),
        None => Ok(entry.to_owned()),
    };
    let named = entries(value).map(one).collect::<Result<Vec<_>, _>>()?;
    change_list(&mut route.destinations, operation, named);
    Ok(())
}

/// Sets a limit on what jobs ask for. Whether the attribute is one.
fn set_limit(queue: &mut QueueSpec, change: &Change, key: &str) -> Result<bool, Problem> {
    let Some((attribute, resource)) = key.split_once('.') else { return Ok(false) };
    let word = match attribute {
        "resources_min" if resource == "walltime" => Some(WALLTIME),
        "resources_min" | "resources_max" => word_of(resource),
        _ => return Ok(false),
    };
    let Some(word) = word else {
        let known = "queues have lower limits of cput, mem, ncpus, ngpus, nodect and walltime";
        return if attribute == "resources_min" { Err(Problem::unsupported(known)) } else { Ok(false) };
    };
    let kept = if attribute == "resources_min" { &mut queue.least_asked } else { &mut queue.most_asked };
    let value = match resource {
        "cput" | "walltime" => seconds(change)?,
        "mem" => bytes(change)?,
        _ => count(change, kept.get(word).and_then(|known| u32::try_from(*known).ok()))?.into(),
    };
    kept.insert(word.to_owned(), value);
    // Where limits were kept that only policies followed.
    queue.attributes.remove(&format!("pbs.{key}"));
    Ok(true)
}

fn word_of(resource: &str) -> Option<&'static str> {
    RESOURCES.iter().find(|(known, _)| *known == resource).map(|(_, word)| *word)
}

/// Takes an attribute away. Whether it is one of these, and nothing else is kept under its name.
pub(super) fn unset(queue: &mut QueueSpec, change: &Change) -> bool {
    let key = key(change);
    match key.as_str() {
        "resources_min" => queue.least_asked.clear(),
        "resources_max" => {
            queue.most_asked.clear();
            return false;
        }
        RETRY => drop(queue.attributes.remove(KEPT_RETRY)),
        _ => {
            if let Some((attribute, resource)) = key.split_once('.') {
                let word = if resource == "walltime" { Some(WALLTIME) } else { word_of(resource) };
                let kept = match attribute {
                    "resources_min" => &mut queue.least_asked,
                    "resources_max" => &mut queue.most_asked,
                    _ => return false,
                };
                let was_kept = word.is_some_and(|word| kept.remove(word).is_some());
                return was_kept || attribute == "resources_min";
            }
            let Some(route) = queue.route.as_deref_mut() else { return OF_ROUTES.contains(&key.as_str()) };
            match key.as_str() {
                "route_destinations" => route.destinations.clear(),
                "route_held_jobs" => route.held_jobs = false,
                "route_waiting_jobs" => route.waiting_jobs = false,
                "route_lifetime" => route.lifetime_seconds = None,
                _ => return false,
            }
        }
    }
    true
}
