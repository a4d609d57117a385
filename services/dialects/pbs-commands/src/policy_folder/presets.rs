//! Presets in force: what they have to know of a cluster, and which of their options have no effect.

use jiff::Timestamp;
use muster_pbs_policy::{
    check::Policy as Tables,
    engine::{Limits, Range},
    outages::short_name,
    preset::PresetConfig,
    routes::{self, Host, Site},
};
use muster_schemas::{
    cluster::ClusterConfig,
    policy::{
        Policy,
        routes::{JobStanding, Source},
    },
    resources::{NodeSpec, PropertyValue},
};

/// The property of a node with the number of nodes that it declares (PBS-P-18).
const NODE_COUNT: &str = "node_count";

/// A cluster as a site. Each node is a host.
pub(super) fn site(
    config: &ClusterConfig,
    server: Limits,
    mut queues: Vec<(String, Limits)>,
    now: Timestamp,
    range: Range,
) -> Site {
    // These limits of queues have fields of their own.
    for (name, limits) in &mut queues {
        let Some(queue) = config.queues.iter().find(|queue| queue.name == *name) else { continue };
        limits.max_running = limits.max_running.or(queue.max_running_jobs.map(u64::from));
        limits.resources_max.extend(queue.max_walltime_seconds.map(|most| ("walltime".to_owned(), most)));
    }
    let host = |node: &NodeSpec| {
        let memory_kilobytes = Some(node.memory_bytes / 1024);
        let nodes = match node.properties.get(NODE_COUNT) {
            Some(PropertyValue::Number(count)) => u32::try_from(*count).ok().filter(|count| *count > 0),
            _ => None,
        };
        (short_name(&node.name), Host { processors: node.cores, nodes, memory_kilobytes })
    };
    Site {
        server,
        queues,
        hosts: config.nodes.iter().map(host).collect(),
        whole_nodes: u32::try_from(config.nodes.len()).ok().filter(|nodes| *nodes > 0),
        outages: Default::default(),
        over_allocation: Vec::new(),
        now,
        range,
    }
}

/// The policy of a preset for a site.
pub(super) fn policy(preset: &PresetConfig, tables: &Tables, site: &Site) -> Policy {
    let mut policy = routes::policy(preset, tables, site);
    if preset.test_only {
        policy.starts_nothing = Some("the policy files of PBS say TEST_ONLY".to_owned());
    }
    if let Some(routes) = policy.turns.as_mut().and_then(|turns| turns.routes.as_mut()) {
        // A job that runs again waits in the queue in which it has run.
        let targets = routes.targets.iter().filter(|target| !target.in_place);
        let is_source = |queue: &str| routes.sources.iter().any(|source| source.queue == queue);
        let again: Vec<Source> = targets
            .filter(|target| !is_source(&target.queue))
            .map(|target| Source { queue: target.queue.clone(), standing: JobStanding::Normal, base: 100 })
            .collect();
        routes.sources.extend(again);
    }
    policy
}

/// The options without effect on a live system (PBS-P-23).
pub(super) fn lost_live(config: &PresetConfig) -> Vec<String> {
    let dump = config.sorted_job_dumpfile.as_ref();
    dump.map(|_| "config: SORTED_JOB_DUMPFILE: has no effect: no file is written".to_owned()).into_iter().collect()
}
