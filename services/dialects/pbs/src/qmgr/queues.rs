//! The attributes of queues.

use super::{
    command::{Change, ObjectKind},
    limits,
    object::{Object, Setting},
    problem::Problem,
    routes, run_limits,
    values::{
        Limits, boolean, change_limits, change_list, change_users, count, entries, given, integer, key, seconds,
        show_boolean,
    },
};
use crate::{flavour::Flavour, show::of_queue, value::show_seconds};
use muster_schemas::{cluster::QueueSpec, views::QueueView};

/// Why a list of users cannot be without effect.
const LIST_COUNTS: &str = "a list of users always counts; unset acl_users admits everybody";
const NO_SETTING: &str = "queues have no such setting here";
/// Attributes that the system sets.
const READ_ONLY: [&str; 5] = ["total_jobs", "state_count", "hasnodes", "mtime", "resources_assigned"];

/// A queue as `print` shows it.
pub fn queue(spec: &QueueSpec, flavour: Flavour) -> Object {
    Object { kind: ObjectKind::Queue, name: spec.name.clone(), settings: settings(spec, flavour) }
}

/// A queue as `list` shows it.
pub fn listed_queue(view: &QueueView, flavour: Flavour) -> Object {
    Object::listed(ObjectKind::Queue, &of_queue(view, flavour), settings(&view.spec, flavour))
}

fn settings(spec: &QueueSpec, flavour: Flavour) -> Vec<Setting> {
    let mut all = vec![Setting::new("queue_type", if spec.route.is_some() { "Route" } else { "Execution" })];
    if spec.priority != 0 {
        all.push(Setting::new("Priority", spec.priority.to_string()));
    }
    if spec.default_job_priority != 0 {
        all.push(Setting::new("default_job_priority", spec.default_job_priority.to_string()));
    }
    all.extend(spec.max_jobs.map(|most| match flavour {
        Flavour::PbsPro => Setting::new("max_queued", format!("[o:PBS_ALL={most}]")),
        Flavour::Torque => Setting::new("max_queuable", most.to_string()),
    }));
    if !spec.users.is_empty() {
        all.push(Setting::list("acl_users", spec.users.clone()));
        all.push(Setting::new("acl_user_enable", "True"));
    }
    if !spec.nodes.is_empty() {
        all.push(Setting::list("acl_hosts", spec.nodes.clone()));
        all.push(Setting::new("acl_host_enable", "False"));
    }
    let walltimes =
        [("resources_max", spec.max_walltime_seconds), ("resources_default", spec.default_walltime_seconds)];
    for (attribute, limit) in walltimes {
        all.extend(limit.map(|limit| Setting::of_resource(attribute, "walltime", show_seconds(limit))));
    }
    // Ahead of the others: to set it is to unset those.
    all.extend(run_limits::settings(&spec.attributes));
    let limits = [("max_running", spec.max_running_jobs), ("max_user_run", spec.max_running_jobs_per_user)];
    for (attribute, limit) in limits {
        all.extend(limit.map(|limit| Setting::new(attribute, limit.to_string())));
    }
    all.extend(routes::settings(spec));
    all.extend(limits::settings(&spec.attributes));
    all.push(Setting::new("enabled", show_boolean(spec.enabled)));
    all.push(Setting::new("started", show_boolean(spec.started)));
    all
}

/// Sets an attribute.
pub(super) fn set(queue: &mut QueueSpec, change: &Change) -> Result<(), Problem> {
    match key(change).as_str() {
        "queue_type" => routes::set_type(queue, change)?,
        "priority" => queue.priority = integer(change, queue.priority)?,
        "default_job_priority" => queue.default_job_priority = integer(change, queue.default_job_priority)?,
        "enabled" => queue.enabled = boolean(change)?,
        "started" => queue.started = boolean(change)?,
        "max_running" => queue.max_running_jobs = Some(count(change, queue.max_running_jobs)?),
        "max_user_run" => queue.max_running_jobs_per_user = Some(count(change, queue.max_running_jobs_per_user)?),
        "max_queuable" => queue.max_jobs = Some(count(change, queue.max_jobs)?),
        "max_run" => run_limits::set_of_queue(queue, change)?,
        "max_queued" => {
            let limits = change_limits(Limits { all: queue.max_jobs, ..Limits::default() }, change)?;
            if !limits.is_of_all() {
                return Err(Problem::unsupported("only the jobs of all users together are limited"));
            }
            queue.max_jobs = limits.all;
        }
        "resources_max.walltime" => queue.max_walltime_seconds = Some(seconds(change)?),
        "resources_default.walltime" => queue.default_walltime_seconds = Some(seconds(change)?),
        "acl_users" => change_users(&mut queue.users, change)?,
        "acl_user_enable" if !boolean(change)? && !queue.users.is_empty() => {
            return Err(Problem::unsupported(LIST_COUNTS));
        }
        "acl_user_enable" => {}
        "acl_hosts" => change_nodes(&mut queue.nodes, change)?,
        "acl_host_enable" if boolean(change)? => {
            return Err(Problem::unsupported(
                "jobs are accepted from every host; acl_hosts names the nodes of a queue",
            ));
        }
        "acl_host_enable" => {}
        other => {
            if !routes::set(queue, change)? && !limits::set(&mut queue.attributes, change)? {
                return Err(unknown(other));
            }
        }
    }
    Ok(())
}

/// Takes an attribute away.
pub(super) fn unset(queue: &mut QueueSpec, change: &Change) -> Result<(), Problem> {
    match key(change).as_str() {
        "priority" => queue.priority = 0,
        "default_job_priority" => queue.default_job_priority = 0,
        "enabled" => queue.enabled = false,
        "started" => queue.started = false,
        "max_running" => queue.max_running_jobs = None,
        "max_user_run" => queue.max_running_jobs_per_user = None,
        "max_run" => run_limits::unset_of_queue(queue),
        "max_queuable" | "max_queued" => queue.max_jobs = None,
        "resources_max.walltime" => queue.max_walltime_seconds = None,
        "resources_max" => {
            queue.max_walltime_seconds = None;
            routes::unset(queue, change);
            limits::unset(&mut queue.attributes, change);
        }
        "resources_default.walltime" => queue.default_walltime_seconds = None,
        limits::DEFAULTS => {
            queue.default_walltime_seconds = None;
            limits::unset(&mut queue.attributes, change);
        }
        "acl_users" => queue.users.clear(),
        "acl_user_enable" if !queue.users.is_empty() => {
            return Err(Problem::unsupported(LIST_COUNTS));
        }
        "acl_hosts" => queue.nodes.clear(),
        "acl_user_enable" | "acl_host_enable" => {}
        "queue_type" => return Err(Problem::unsupported("every queue has one; set it to Execution or Route")),
        _ if routes::unset(queue, change) => {}
        _ if limits::unset(&mut queue.attributes, change) => {}
        other => return Err(unknown(other)),
    }
    Ok(())
}

fn unknown(key: &str) -> Problem {
    let attribute = key.split('.').next().unwrap_or_default();
    match attribute {
        _ if READ_ONLY.contains(&attribute) => Problem("cannot be set: the system does".to_owned()),
        limits::DEFAULTS => Problem("names no resource: write resources_default.mem".to_owned()),
        "resources_min" => Problem("names no resource: write resources_min.ncpus".to_owned()),
        "alt_router" => Problem::unsupported("jobs go to the first destination that takes them"),
        "acl_groups" | "acl_group_enable" => Problem::unsupported("queues admit users, not groups"),
        _ => Problem::unsupported(NO_SETTING),
    }
}

/// Changes the nodes that serve a queue. TORQUE's documentation writes them between plus signs.
fn change_nodes(nodes: &mut Vec<String>, change: &Change) -> Result<(), Problem> {
    let (operation, value) = given(change)?;
    let names = entries(value).flat_map(|entry| entry.split('+')).filter(|name| !name.is_empty());
    change_list(nodes, operation, names.map(str::to_owned).collect());
    Ok(())
}
