//! The attributes of the server: settings of the cluster.

use super::{
    command::{Change, ObjectKind},
    limits,
    object::{Object, Setting},
    problem::Problem,
    run_limits,
    scheduling::{self, name_of_iteration},
    values::{
        Limits, assigned, boolean, bytes, change_limits, change_users, count, key, seconds, short_seconds, show_boolean,
    },
};
use crate::{
    flavour::Flavour,
    refusal::shown,
    show::{ServerFacts, exact_size, of_server},
    text::is_name,
    value::show_seconds,
};
use muster_schemas::cluster::{ClusterConfig, ClusterSettings};

/// Attributes that have one value here, with it; setting them to it changes nothing.
const FIXED: [(&str, &str, &str); 5] = [
    ("query_other_jobs", "True", "everybody sees the list of jobs"),
    ("job_history_enable", "True", "the log keeps all jobs"),
    ("resources_default.ncpus", "1", "a job that asks for no cores gets one"),
    ("default_chunk.ncpus", "1", "a chunk that asks for no cores gets one"),
    ("resv_enable", "True", "advance reservations are always possible"),
];
/// Attributes that every server of the family has and this one does not need, with the reason: setting them is no mistake, and
/// changes nothing.
const NEEDLESS: [(&str, &str); 17] = [
    ("log_events", "the log has everything"),
    ("mailer", "[notifier] says how mail is sent"),
    ("mail_from", "[notifier] says from whom mail comes"),
    ("flatuid", "a user is the same one on all nodes"),
    ("eligible_time_enable", "a job's waiting time is always known"),
    ("max_array_size", "max_queued limits jobs, with the tasks of arrays"),
    ("node_fail_requeue", "launch_timeout and node_check_rate say when a node is lost"),
    ("pbs_license_min", "no licence is needed"),
    ("pbs_license_max", "no licence is needed"),
    ("pbs_license_linger_time", "no licence is needed"),
    ("max_concurrent_provision", "nodes are not provisioned"),
    ("max_job_sequence_id", "numbers of jobs never begin again"),
    ("next_job_number", "numbers of jobs never begin again"),
    ("tcp_timeout", "the services find lost connections themselves"),
    ("job_stat_rate", "nodes report by themselves"),
    ("poll_jobs", "nodes report by themselves"),
    ("mom_job_sync", "nodes and the log are always compared"),
];
/// Resources that nodes have: what there is of them in all is no number of licences.
const OF_NODES: [&str; 7] = ["ncpus", "mem", "nodes", "nodect", "procct", "ngpus", "vmem"];
/// Attributes that the system sets.
const READ_ONLY: [&str; 7] =
    ["server_state", "server_host", "server_name", "total_jobs", "state_count", "pbs_version", "resources_assigned"];

/// The server as `print` shows it.
pub fn server(config: &ClusterConfig, name: &str, flavour: Flavour) -> Object {
    Object { kind: ObjectKind::Server, name: name.to_owned(), settings: settings(config, flavour) }
}

/// The server as `list` shows it.
pub fn listed_server(config: &ClusterConfig, facts: &ServerFacts<'_>, flavour: Flavour) -> Object {
    Object::listed(ObjectKind::Server, &of_server(facts, flavour), settings(config, flavour))
}

fn settings(config: &ClusterConfig, flavour: Flavour) -> Vec<Setting> {
    let (set, usual) = (&config.settings, ClusterSettings::default());
    let scheduling = Setting::new("scheduling", show_boolean(!set.is_idle));
    let mut all = vec![scheduling, Setting::new("default_queue", set.default_queue.clone())];
    let everywhere = |users: &[String]| users.iter().map(|user| format!("{user}@*")).collect::<Vec<_>>();
    for (attribute, users) in [("managers", &set.administrators), ("operators", &set.operators)] {
        if !users.is_empty() {
            all.push(Setting::list(attribute, everywhere(users)));
        }
    }
    let mut unless_usual = |is_usual: bool, attribute: &str, value: String| {
        if !is_usual {
            all.push(Setting::new(attribute, value));
        }
    };
    let (kept, is_usual) = (
        set.finished_job_retention_seconds,
        set.finished_job_retention_seconds == usual.finished_job_retention_seconds,
    );
    match flavour {
        Flavour::PbsPro => unless_usual(is_usual, "job_history_duration", show_seconds(kept)),
        Flavour::Torque => unless_usual(is_usual, "keep_completed", kept.to_string()),
    }
    let is_usual = set.max_jobs == usual.max_jobs;
    match flavour {
        Flavour::PbsPro => unless_usual(is_usual, "max_queued", format!("[o:PBS_ALL={}]", set.max_jobs)),
        Flavour::Torque => unless_usual(is_usual, "max_queuable", set.max_jobs.to_string()),
    }
    let is_usual = set.kill_grace_seconds == usual.kill_grace_seconds;
    unless_usual(is_usual, "kill_delay", set.kill_grace_seconds.to_string());
    let is_usual = set.node_lost_after_seconds == usual.node_lost_after_seconds;
    unless_usual(is_usual, "node_check_rate", set.node_lost_after_seconds.to_string());
    let is_usual = set.launch_timeout_seconds == usual.launch_timeout_seconds;
    unless_usual(is_usual, "launch_timeout", set.launch_timeout_seconds.to_string());
    let is_usual = set.cancel_never_met == usual.cancel_never_met;
    unless_usual(is_usual, "cancel_never_met", show_boolean(set.cancel_never_met).to_owned());
    let memory = set.default_memory_per_core_bytes;
    unless_usual(memory.is_none(), "default_memory_per_core", memory.map(exact_size).unwrap_or_default());
    // Ahead of the others: to set it is to unset those.
    all.extend(run_limits::settings(&set.attributes));
    all.extend(limits::settings(&set.attributes).map(|setting| match setting.attribute.as_str() {
        "schedule_iteration" => Setting { attribute: name_of_iteration(flavour).to_owned(), ..setting },
        _ => setting,
    }));
    for (name, total) in &config.licences {
        all.push(Setting::of_resource("resources_available", name, total.to_string()));
    }
    all
}

/// Sets an attribute.
pub(super) fn set(config: &mut ClusterConfig, change: &Change) -> Result<(), Problem> {
    let settings = &mut config.settings;
    match key(change).as_str() {
        "default_queue" => settings.default_queue = assigned(change)?.to_owned(),
        "managers" => change_users(&mut settings.administrators, change)?,
        "operators" => change_users(&mut settings.operators, change)?,
        "job_history_duration" | "keep_completed" => settings.finished_job_retention_seconds = seconds(change)?,
        "kill_delay" => settings.kill_grace_seconds = short_seconds(change)?,
        "node_check_rate" => settings.node_lost_after_seconds = short_seconds(change)?,
        "launch_timeout" => settings.launch_timeout_seconds = short_seconds(change)?,
        "cancel_never_met" => settings.cancel_never_met = boolean(change)?,
        "scheduling" => settings.is_idle = !boolean(change)?,
        "default_memory_per_core" => settings.default_memory_per_core_bytes = Some(bytes(change)?),
        "max_run" => run_limits::set_of_server(&mut settings.attributes, change)?,
        "max_queuable" => settings.max_jobs = count(change, u32::try_from(settings.max_jobs).ok())?.into(),
        "max_queued" => {
            let limits = change_limits(Limits::default(), change)?;
            let all = limits.all.filter(|_| limits.is_of_all());
            let why = "only the jobs of all users together are limited: [o:PBS_ALL=N]";
            settings.max_jobs = all.ok_or_else(|| Problem::unsupported(why))?.into();
        }
        key => return set_other(config, key, change),
    }
    Ok(())
}

/// A licence, or an attribute with one value.
fn set_other(config: &mut ClusterConfig, key: &str, change: &Change) -> Result<(), Problem> {
    if scheduling::set(&mut config.settings.attributes, change)? {
        return Ok(());
    }
    if is_limit(change) && limits::set(&mut config.settings.attributes, change)? {
        return Ok(());
    }
    if let Some(name) = licence(change)? {
        let present = config.licences.get(name).copied();
        let total = count(change, present)?;
        config.licences.insert(name.to_owned(), total);
        return Ok(());
    }
    let Some((_, value, why)) = FIXED.iter().find(|(known, ..)| *known == key) else { return Err(unknown(key)) };
    let is_it = match *value {
        "True" => boolean(change)?,
        value => assigned(change)? == value,
    };
    if is_it { Ok(()) } else { Err(Problem(format!("can only be {value}: {why}"))) }
}

/// Whether it is a limit that only a policy follows. `resources_available.NAME` is one for what nodes have, and a number
/// of licences otherwise.
fn is_limit(change: &Change) -> bool {
    let attribute = change.attribute.to_ascii_lowercase();
    let resource = change.resource.as_deref().unwrap_or_default().to_ascii_lowercase();
    match attribute.as_str() {
        "max_running" | "max_user_run" | "max_group_run" | "resources_max" => true,
        "resources_available" => OF_NODES.contains(&resource.as_str()),
        // The default of processors is always the same.
        limits::DEFAULTS => resource != "ncpus",
        _ => false,
    }
}

/// The licence that `resources_available.NAME` of the server is.
fn licence(change: &Change) -> Result<Option<&str>, Problem> {
    let Some(name) = change.resource.as_deref() else { return Ok(None) };
    if !change.attribute.eq_ignore_ascii_case("resources_available") {
        return Ok(None);
    }
    match is_name(name) {
        true => Ok(Some(name)),
        false => Err(Problem(format!("`{}` is not the name of a resource", shown(name)))),
    }
}

/// Why an attribute changes nothing, if it is one that this server does not need.
pub(super) fn needless(change: &Change) -> Option<&'static str> {
    let key = key(change);
    NEEDLESS.iter().find(|(known, _)| *known == key).map(|(_, why)| *why)
}

/// Takes an attribute away: it gets its usual value.
pub(super) fn unset(config: &mut ClusterConfig, change: &Change) -> Result<(), Problem> {
    let (settings, usual) = (&mut config.settings, ClusterSettings::default());
    match key(change).as_str() {
        "default_queue" => return Err(Problem::unsupported("jobs that name no queue need one")),
        "managers" => settings.administrators.clear(),
        "operators" => settings.operators.clear(),
        "job_history_duration" | "keep_completed" => {
            settings.finished_job_retention_seconds = usual.finished_job_retention_seconds;
        }
        "kill_delay" => settings.kill_grace_seconds = usual.kill_grace_seconds,
        "node_check_rate" => settings.node_lost_after_seconds = usual.node_lost_after_seconds,
        "launch_timeout" => settings.launch_timeout_seconds = usual.launch_timeout_seconds,
        "cancel_never_met" => settings.cancel_never_met = usual.cancel_never_met,
        "scheduling" => settings.is_idle = usual.is_idle,
        "default_memory_per_core" => settings.default_memory_per_core_bytes = None,
        "max_queuable" | "max_queued" => settings.max_jobs = usual.max_jobs,
        "max_run" => run_limits::unset_of_server(&mut settings.attributes),
        _ if scheduling::unset(&mut settings.attributes, change) => {}
        _ if is_limit(change) => drop(limits::unset(&mut settings.attributes, change)),
        key => match licence(change)? {
            Some(name) => {
                let why = || Problem("there are no such licences".to_owned());
                config.licences.remove(name).map(drop).ok_or_else(why)?;
            }
            None => match FIXED.iter().find(|(known, ..)| *known == key) {
                Some((_, value, why)) => return Err(Problem(format!("can only be {value}: {why}"))),
                None => return Err(unknown(key)),
            },
        },
    }
    Ok(())
}

fn unknown(key: &str) -> Problem {
    let attribute = key.split('.').next().unwrap_or_default();
    match attribute {
        _ if READ_ONLY.contains(&attribute) => Problem("cannot be set: the system does".to_owned()),
        "comment" => Problem::unsupported("the server has no comment here"),
        "resources_max" | limits::DEFAULTS => Problem(format!("names no resource: write {attribute}.mem")),
        _ if attribute.starts_with("acl_") => Problem::unsupported("users are admitted by queue"),
        _ => Problem::unsupported("the server has no such setting here"),
    }
}
