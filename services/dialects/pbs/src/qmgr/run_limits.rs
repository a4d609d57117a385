//! `max_run`: limits on the running jobs of all, of each user, group and project, and of single ones. Those of groups, of projects
//! and of single users are kept as attributes, which only policies of PBS follow.

use super::{
    command::Change,
    object::Setting,
    problem::Problem,
    values::{Limits, change_limits},
};
use muster_schemas::cluster::QueueSpec;
use std::collections::BTreeMap;

/// The attributes of a server or a queue.
type Attributes = BTreeMap<String, String>;

const ALL: &str = "pbs.max_running";
const EACH_USER: &str = "pbs.max_user_run";
const EACH_GROUP: &str = "pbs.max_group_run";
/// The beginning of the names of attributes for single users.
const OF_USER: &str = "pbs.max_run.u:";
/// The same for single groups.
const OF_GROUP: &str = "pbs.max_run.g:";
/// The same for projects: single ones, and each one under its own word.
const OF_PROJECT: &str = "pbs.max_run.p:";

/// The limits of single users and groups and of projects, as a setting.
pub(super) fn settings(attributes: &Attributes) -> Option<Setting> {
    let users = kept(attributes, OF_USER).into_iter().map(|(user, most)| format!("[u:{user}={most}]"));
    let groups = kept(attributes, OF_GROUP).into_iter().map(|(group, most)| format!("[g:{group}={most}]"));
    let projects = kept(attributes, OF_PROJECT).into_iter().map(|(project, most)| format!("[p:{project}={most}]"));
    let all: Vec<String> = users.chain(groups).chain(projects).collect();
    (!all.is_empty()).then(|| Setting::list("max_run", all))
}

/// The numbers that are kept under names with this beginning.
fn kept(attributes: &Attributes, beginning: &str) -> BTreeMap<String, u32> {
    let one = |(name, value): (&String, &String)| Some((name.strip_prefix(beginning)?.to_owned(), value.parse().ok()?));
    attributes.iter().filter_map(one).collect()
}

fn number(attributes: &Attributes, name: &str) -> Option<u32> {
    attributes.get(name)?.parse().ok()
}

fn keep(attributes: &mut Attributes, name: &str, most: Option<u32>) {
    match most {
        Some(most) => drop(attributes.insert(name.to_owned(), most.to_string())),
        None => drop(attributes.remove(name)),
    }
}

fn keep_others(attributes: &mut Attributes, limits: &Limits) {
    keep(attributes, EACH_GROUP, limits.each_group);
    for (beginning, all) in [(OF_USER, &limits.users), (OF_GROUP, &limits.groups), (OF_PROJECT, &limits.projects)] {
        attributes.retain(|name, _| !name.starts_with(beginning));
        attributes.extend(all.iter().map(|(name, most)| (format!("{beginning}{name}"), most.to_string())));
    }
}

/// Changes `max_run` of a queue.
pub(super) fn set_of_queue(queue: &mut QueueSpec, change: &Change) -> Result<(), Problem> {
    let present = Limits {
        all: queue.max_running_jobs,
        each_user: queue.max_running_jobs_per_user,
        each_group: number(&queue.attributes, EACH_GROUP),
        users: kept(&queue.attributes, OF_USER),
        groups: kept(&queue.attributes, OF_GROUP),
        projects: kept(&queue.attributes, OF_PROJECT),
    };
    let limits = change_limits(present, change)?;
    (queue.max_running_jobs, queue.max_running_jobs_per_user) = (limits.all, limits.each_user);
    keep_others(&mut queue.attributes, &limits);
    Ok(())
}

/// Takes `max_run` of a queue away.
pub(super) fn unset_of_queue(queue: &mut QueueSpec) {
    (queue.max_running_jobs, queue.max_running_jobs_per_user) = (None, None);
    keep_others(&mut queue.attributes, &Limits::default());
}

/// Changes `max_run` of the server.
pub(super) fn set_of_server(attributes: &mut Attributes, change: &Change) -> Result<(), Problem> {
    let present = Limits {
        all: number(attributes, ALL),
        each_user: number(attributes, EACH_USER),
        each_group: number(attributes, EACH_GROUP),
        users: kept(attributes, OF_USER),
        groups: kept(attributes, OF_GROUP),
        projects: kept(attributes, OF_PROJECT),
    };
    keep_all(attributes, &change_limits(present, change)?);
    Ok(())
}

/// Takes `max_run` of the server away.
pub(super) fn unset_of_server(attributes: &mut Attributes) {
    keep_all(attributes, &Limits::default());
}

fn keep_all(attributes: &mut Attributes, limits: &Limits) {
    keep(attributes, ALL, limits.all);
    keep(attributes, EACH_USER, limits.each_user);
    keep_others(attributes, limits);
}
