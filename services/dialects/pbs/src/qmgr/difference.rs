//! The request that turns one configuration into another.

use muster_schemas::{
    cluster::{
        ClusterChange, ClusterConfig, ClusterSettings, ClusterSettingsChange, NodeSpecChange, QueueSpecChange, Removed,
        SettingsValue,
    },
    resources::NodeSpec,
};

/// The request; everything that it does not name stays as it is. It names as little as possible, so that it takes back nothing
/// that somebody else changes meanwhile.
pub fn difference(before: &ClusterConfig, after: &ClusterConfig) -> ClusterChange {
    let queues = after.queues.iter().filter_map(|queue| {
        let known = before.queues.iter().find(|known| known.name == queue.name);
        match known {
            Some(known) if known == queue => None,
            Some(known) => Some(QueueSpecChange::between(known, queue)),
            None => Some(QueueSpecChange::from(queue.clone())),
        }
    });
    let queues = queues.collect();
    let nodes = after.nodes.iter().filter_map(|node| {
        let known = before.nodes.iter().find(|known| known.name == node.name);
        match known {
            Some(known) if known == node => None,
            Some(known) => Some(of_node(known, node)),
            None => Some(NodeSpecChange::from(node.clone())),
        }
    });
    let nodes = nodes.collect();
    let settings = of_settings(&before.settings, &after.settings);
    let is_new = |(name, total): &(&String, &u32)| before.licences.get(*name) != Some(*total);
    let licences = after.licences.iter().filter(is_new).map(|(name, total)| (name.clone(), *total)).collect();
    let removed = Removed {
        queues: gone(before.queues.iter().map(|queue| &queue.name), |name| {
            after.queues.iter().any(|one| one.name == name)
        }),
        nodes: gone(before.nodes.iter().map(|node| &node.name), |name| after.nodes.iter().any(|one| one.name == name)),
        licences: gone(before.licences.keys(), |name| after.licences.contains_key(name)),
    };
    ClusterChange { settings, queues, nodes, licences, removed, ..ClusterChange::default() }
}

/// The names that are no longer there.
fn gone<'a>(names: impl Iterator<Item = &'a String>, is_there: impl Fn(&str) -> bool) -> Vec<String> {
    names.filter(|name| !is_there(name)).cloned().collect()
}

/// A value that may be missing, where it is another one.
fn optional<T: PartialEq>(before: Option<T>, after: Option<T>) -> Option<T> {
    let is_same = before == after;
    after.filter(|_| !is_same)
}

fn changed<T: Clone + PartialEq>(before: &T, after: &T) -> Option<T> {
    (before != after).then(|| after.clone())
}

fn of_node(before: &NodeSpec, after: &NodeSpec) -> NodeSpecChange {
    NodeSpecChange {
        name: after.name.clone(),
        cores: changed(&before.cores, &after.cores),
        sockets: changed(&before.sockets, &after.sockets),
        memory_bytes: changed(&before.memory_bytes, &after.memory_bytes),
        gpus: changed(&before.gpus, &after.gpus),
        properties: changed(&before.properties, &after.properties),
    }
}

fn of_settings(before: &ClusterSettings, after: &ClusterSettings) -> ClusterSettingsChange {
    let is_lost = |value: &SettingsValue| value.is_in(before) && !value.is_in(after);
    ClusterSettingsChange {
        name: changed(&before.name, &after.name),
        default_queue: changed(&before.default_queue, &after.default_queue),
        operators: changed(&before.operators, &after.operators),
        administrators: changed(&before.administrators, &after.administrators),
        more_administrators: Vec::new(),
        finished_job_retention_seconds: changed(
            &before.finished_job_retention_seconds,
            &after.finished_job_retention_seconds,
        ),
        node_lost_after_seconds: changed(&before.node_lost_after_seconds, &after.node_lost_after_seconds),
        launch_timeout_seconds: changed(&before.launch_timeout_seconds, &after.launch_timeout_seconds),
        kill_grace_seconds: changed(&before.kill_grace_seconds, &after.kill_grace_seconds),
        default_memory_per_core_bytes: optional(
            before.default_memory_per_core_bytes,
            after.default_memory_per_core_bytes,
        ),
        cancel_never_met: changed(&before.cancel_never_met, &after.cancel_never_met),
        max_jobs: changed(&before.max_jobs, &after.max_jobs),
        attributes: changed(&before.attributes, &after.attributes),
        is_idle: changed(&before.is_idle, &after.is_idle),
        agent_lost_after_seconds: optional(before.agent_lost_after_seconds, after.agent_lost_after_seconds),
        agents_make_nodes: changed(&before.agents_make_nodes, &after.agents_make_nodes),
        energy: after.energy.clone().filter(|_| before.energy != after.energy),
        quotas: None,
        ends_domain_jobs: changed(&before.ends_domain_jobs, &after.ends_domain_jobs),
        reserved_nodes_wait_seconds: optional(before.reserved_nodes_wait_seconds, after.reserved_nodes_wait_seconds),
        unlimited_fixed_starts: changed(&before.unlimited_fixed_starts, &after.unlimited_fixed_starts),
        make_way_ahead_seconds: optional(before.make_way_ahead_seconds, after.make_way_ahead_seconds),
        node_order: changed(&before.node_order, &after.node_order),
        guard_seconds: optional(before.guard_seconds, after.guard_seconds),
        unset: SettingsValue::ALL.into_iter().filter(is_lost).collect(),
    }
}
