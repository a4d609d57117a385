//! A cluster's configuration as text: the part of a configuration file that belongs to the cluster.

use crate::{energy_toml, values};
use muster_schemas::{
    accounts::AccountSettings,
    cluster::{ClusterConfig, ClusterSettings, MakesWay, QueueSpec, Route, WayOut},
    filter::StagingSettings,
    resources::{NodeSpec, PropertyValue},
    walltimes::WalltimeIncreases,
};
use std::{collections::BTreeMap, fmt::Write as _};

/// The rules about accounts and classes that a file can enforce, by their names there.
pub const ENFORCED: [&str; 4] = ["associations", "limits", "classes", "safe"];

/// A cluster's configuration in the form of the configuration file. Adjacent nodes of one kind become one entry.
pub fn cluster_to_toml(config: &ClusterConfig) -> String {
    let mut text = String::from("[cluster]\n");
    write_settings(&mut text, &config.settings);
    write_optional(&mut text, "first_job_number", config.first_job_number);
    for queue in &config.queues {
        text.push_str("\n[[queues]]\n");
        write_queue(&mut text, queue);
    }
    let mut nodes = &config.nodes[..];
    while let Some(first) = nodes.first() {
        let alike =
            nodes.iter().take_while(|node| NodeSpec { name: first.name.clone(), ..(*node).clone() } == *first).count();
        let names: Vec<&str> = nodes[..alike].iter().map(|node| node.name.as_str()).collect();
        write_node(&mut text, &values::compress_hosts(&names), first);
        nodes = &nodes[alike..];
    }
    if !config.licences.is_empty() {
        text.push_str("\n[licences]\n");
        for (name, total) in &config.licences {
            let _ = writeln!(text, "{} = {total}", quote(name));
        }
    }
    write_staging(&mut text, &config.staging);
    if let Some(energy) = &config.settings.energy {
        energy_toml::write(&mut text, energy);
    }
    if let Some(accounts) = config.accounts.as_ref().filter(|accounts| **accounts != AccountSettings::default()) {
        write_accounts(&mut text, accounts);
    }
    text
}

fn write_staging(text: &mut String, staging: &StagingSettings) {
    let StagingSettings {
        program,
        stage_in_timeout_seconds,
        stage_out_timeout_seconds,
        copy_retry_seconds,
        copy_limit_bytes,
        copy_failures_before_hold,
    } = staging;
    if *staging == StagingSettings::default() {
        return;
    }
    let _ = writeln!(text, "\n[staging]");
    if let Some(program) = program {
        let _ = writeln!(text, "program = {}", quote(program));
    }
    let _ = writeln!(text, "stage_in_timeout_seconds = {stage_in_timeout_seconds}");
    let _ = writeln!(text, "stage_out_timeout_seconds = {stage_out_timeout_seconds}");
    let of_copies = [
        ("copy_retry_seconds", u64::from(*copy_retry_seconds)),
        ("copy_limit_bytes", *copy_limit_bytes),
        ("copy_failures_before_hold", u64::from(*copy_failures_before_hold)),
    ];
    for (key, value) in of_copies.into_iter().filter(|(_, value)| *value > 0) {
        let _ = writeln!(text, "{key} = {value}");
    }
}

fn write_accounts(text: &mut String, settings: &AccountSettings) {
    let AccountSettings { associations, limits, classes, refuses_hopeless, queue_classes, usage_half_life_seconds } =
        settings;
    let set = ENFORCED.into_iter().zip([*associations, *limits, *classes, *refuses_hopeless]);
    let enforced: Vec<String> = set.filter(|(_, is_set)| *is_set).map(|(word, _)| word.to_owned()).collect();
    let classes: Vec<String> =
        queue_classes.iter().map(|(queue, class)| format!("{} = {}", quote(queue), quote(class))).collect();
    let _ = writeln!(text, "\n[accounts]\nenforce = {}", quote_all(&enforced));
    if !classes.is_empty() {
        let _ = writeln!(text, "queue_classes = {{ {} }}", classes.join(", "));
    }
    if *usage_half_life_seconds > 0 {
        let _ = writeln!(text, "usage_half_life_seconds = {usage_half_life_seconds}");
    }
}

/// Text as a TOML string, which is also valid as a quoted key.
fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn quote_all(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", quoted.join(", "))
}

fn write_settings(text: &mut String, settings: &ClusterSettings) {
    let ClusterSettings {
        name,
        default_queue,
        operators,
        administrators,
        finished_job_retention_seconds,
        node_lost_after_seconds,
        launch_timeout_seconds,
        kill_grace_seconds,
        default_memory_per_core_bytes,
        cancel_never_met,
        max_jobs,
        attributes,
        is_idle,
        agent_lost_after_seconds,
        agents_make_nodes,
        energy: _,
        // They have a file of their own.
        quotas: _,
        ends_domain_jobs,
        reserved_nodes_wait_seconds,
        unlimited_fixed_starts,
        make_way_ahead_seconds,
        node_order,
        guard_seconds,
    } = settings;
    let _ = writeln!(text, "name = {}", quote(name));
    let _ = writeln!(text, "default_queue = {}", quote(default_queue));
    let _ = writeln!(text, "operators = {}", quote_all(operators));
    let _ = writeln!(text, "administrators = {}", quote_all(administrators));
    let _ = writeln!(text, "finished_job_retention_seconds = {finished_job_retention_seconds}");
    let _ = writeln!(text, "node_lost_after_seconds = {node_lost_after_seconds}");
    let _ = writeln!(text, "launch_timeout_seconds = {launch_timeout_seconds}");
    let _ = writeln!(text, "kill_grace_seconds = {kill_grace_seconds}");
    write_optional(text, "default_memory_per_core_bytes", *default_memory_per_core_bytes);
    let _ = writeln!(text, "cancel_never_met = {cancel_never_met}");
    let _ = writeln!(text, "max_jobs = {max_jobs}");
    write_attributes(text, attributes);
    if *is_idle {
        let _ = writeln!(text, "is_idle = true");
    }
    write_optional(text, "agent_lost_after_seconds", agent_lost_after_seconds.map(u64::from));
    write_optional(text, "reserved_nodes_wait_seconds", reserved_nodes_wait_seconds.map(u64::from));
    write_optional(text, "make_way_ahead_seconds", make_way_ahead_seconds.map(u64::from));
    write_optional(text, "guard_seconds", guard_seconds.map(u64::from));
    if !node_order.is_empty() {
        let _ = writeln!(text, "node_order = {}", quote_all(node_order));
    }
    if !unlimited_fixed_starts.is_empty() {
        let _ = writeln!(text, "unlimited_fixed_starts = {}", quote_all(unlimited_fixed_starts));
    }
    if *agents_make_nodes {
        let _ = writeln!(text, "agents_make_nodes = true");
    }
    if *ends_domain_jobs {
        let _ = writeln!(text, "ends_domain_jobs = true");
    }
}

fn write_attributes(text: &mut String, attributes: &BTreeMap<String, String>) {
    if !attributes.is_empty() {
        let pair = |(name, value): (&String, &String)| format!("{} = {}", quote(name), quote(value));
        let pairs: Vec<String> = attributes.iter().map(pair).collect();
        let _ = writeln!(text, "attributes = {{ {} }}", pairs.join(", "));
    }
}

fn write_queue(text: &mut String, queue: &QueueSpec) {
    let QueueSpec {
        name,
        priority,
        default_job_priority,
        enabled,
        started,
        default_walltime_seconds,
        max_walltime_seconds,
        nodes,
        users,
        max_running_jobs,
        max_running_jobs_per_user,
        max_jobs,
        attributes,
        route,
        least_asked,
        most_asked,
        walltime_increases,
        makes_way,
    } = queue;
    let _ = writeln!(text, "name = {}", quote(name));
    let _ = writeln!(text, "priority = {priority}");
    let _ = writeln!(text, "default_job_priority = {default_job_priority}");
    let _ = writeln!(text, "enabled = {enabled}");
    let _ = writeln!(text, "started = {started}");
    write_optional(text, "default_walltime_seconds", *default_walltime_seconds);
    write_optional(text, "max_walltime_seconds", *max_walltime_seconds);
    if !nodes.is_empty() {
        let _ = writeln!(text, "nodes = [{}]", quote(&values::compress_hosts(nodes)));
    }
    if !users.is_empty() {
        let _ = writeln!(text, "users = {}", quote_all(users));
    }
    write_optional(text, "max_running_jobs", max_running_jobs.map(u64::from));
    write_optional(text, "max_running_jobs_per_user", max_running_jobs_per_user.map(u64::from));
    write_optional(text, "max_jobs", max_jobs.map(u64::from));
    write_attributes(text, attributes);
    if let Some(route) = route {
        write_route(text, route);
    }
    if let Some(rule) = walltime_increases {
        write_increases(text, rule);
    }
    if let Some(MakesWay { by, grace_seconds }) = makes_way {
        let by = match by {
            WayOut::Requeue => "requeue",
            WayOut::Cancel => "cancel",
            WayOut::Suspend => "suspend",
        };
        let _ = writeln!(text, "makes_way = {{ by = \"{by}\", grace_seconds = {grace_seconds} }}");
    }
    for (key, limits) in [("least_asked", least_asked), ("most_asked", most_asked)] {
        if !limits.is_empty() {
            let pairs: Vec<String> = limits.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let _ = writeln!(text, "{key} = {{ {} }}", pairs.join(", "));
        }
    }
}

fn write_route(text: &mut String, route: &Route) {
    let Route { destinations, held_jobs, waiting_jobs, lifetime_seconds } = route;
    let mut pairs = vec![format!("destinations = {}", quote_all(destinations))];
    for (key, is_so) in [("held_jobs", held_jobs), ("waiting_jobs", waiting_jobs)] {
        pairs.extend(is_so.then(|| format!("{key} = true")));
    }
    pairs.extend(lifetime_seconds.map(|seconds| format!("lifetime_seconds = {seconds}")));
    let _ = writeln!(text, "route = {{ {} }}", pairs.join(", "));
}

fn write_increases(text: &mut String, rule: &WalltimeIncreases) {
    let WalltimeIncreases { max_seconds, min_walltime_seconds, apply_seconds, step_seconds, may_force, may_delay } =
        rule;
    let seconds = [
        ("max_seconds", max_seconds),
        ("min_walltime_seconds", min_walltime_seconds),
        ("apply_seconds", apply_seconds),
        ("step_seconds", step_seconds),
    ];
    let mut pairs: Vec<String> = seconds.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let lists = [("may_force", may_force), ("may_delay", may_delay)];
    let named = lists.iter().filter(|(_, users)| !users.is_empty());
    pairs.extend(named.map(|(key, users)| format!("{key} = {}", quote_all(users))));
    let _ = writeln!(text, "walltime_increases = {{ {} }}", pairs.join(", "));
}

fn write_optional(text: &mut String, key: &str, value: Option<u64>) {
    if let Some(value) = value {
        let _ = writeln!(text, "{key} = {value}");
    }
}

fn write_node(text: &mut String, names: &str, node: &NodeSpec) {
    let NodeSpec { name: _, cores, sockets, memory_bytes, gpus, properties } = node;
    let exact = values::parse_size(&values::format_size(*memory_bytes)) == Ok(*memory_bytes);
    let memory = if exact { quote(&values::format_size(*memory_bytes)) } else { memory_bytes.to_string() };
    let _ =
        write!(text, "\n[[nodes]]\nname = {}\ncores = {cores}\nsockets = {sockets}\nmemory = {memory}\n", quote(names));
    if !gpus.is_empty() {
        let _ = writeln!(text, "gpus = {}", quote_all(gpus));
    }
    if !properties.is_empty() {
        let property = |(name, value): (&String, &PropertyValue)| match value {
            PropertyValue::Flag(flag) => format!("{} = {flag}", quote(name)),
            PropertyValue::Number(number) => format!("{} = {number}", quote(name)),
            PropertyValue::Text(value) => format!("{} = {}", quote(name), quote(value)),
        };
        let properties: Vec<String> = properties.iter().map(property).collect();
        let _ = writeln!(text, "properties = {{ {} }}", properties.join(", "));
    }
}
