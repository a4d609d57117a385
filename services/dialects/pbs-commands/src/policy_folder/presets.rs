//! Presets in force: what they have to know of a cluster, and what of them only a dry run has.

use muster_pbs_policy::{
    check::Policy as Tables,
    engine::{Limits, Range},
    outages::short_name,
    preset::{Enforced, PresetConfig, RestartAction},
    routes::{self, Host, Site},
};
use muster_schemas::{
    cluster::ClusterConfig,
    policy::{
        Policy,
        routes::{JobStanding, Source},
    },
    resources::NodeSpec,
};

/// The policy of a preset for a cluster. Each node is a host.
pub(super) fn policy(
    preset: &PresetConfig,
    tables: &Tables,
    config: &ClusterConfig,
    server: Limits,
    mut queues: Vec<(String, Limits)>,
    range: Range,
) -> Policy {
    // These limits of queues have fields of their own.
    for (name, limits) in &mut queues {
        let Some(queue) = config.queues.iter().find(|queue| queue.name == *name) else { continue };
        limits.max_running = limits.max_running.or(queue.max_running_jobs.map(u64::from));
        limits.resources_max.extend(queue.max_walltime_seconds.map(|most| ("walltime".to_owned(), most)));
    }
    let host = |node: &NodeSpec| {
        let memory_kilobytes = Some(node.memory_bytes / 1024);
        (short_name(&node.name), Host { processors: node.cores, nodes: None, memory_kilobytes })
    };
    let site = Site {
        server,
        queues,
        hosts: config.nodes.iter().map(host).collect(),
        whole_nodes: u32::try_from(config.nodes.len()).ok().filter(|nodes| *nodes > 0),
        outages: Default::default(),
        range,
    };
    let mut policy = routes::policy(preset, tables, &site);
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

/// The options that a live system does not follow (PBS-P-23): those that would start jobs which are not to start, so that
/// the files are refused, and those without effect.
pub(super) fn lost_live(config: &PresetConfig) -> (Vec<String>, Vec<String>) {
    let told = |(option, is_set, why): (&str, bool, &str)| is_set.then(|| format!("config: {option}: {why}"));
    let refused = [
        (
            "ENFORCE_DEDICATED_TIME",
            config.enforce_dedicated_time != Enforced::Never,
            "outages are planned for in dry runs only: set it to False, and close nodes with `muster node close`",
        ),
        (
            "ENFORCE_ALLOCATION",
            config.enforce_allocation != Enforced::Never,
            "allocations are read in dry runs only: set it to False, and limit accounts",
        ),
        ("TEST_ONLY", config.test_only, "a policy in force starts jobs: use `muster pbs plan`"),
    ];
    let lost = [
        ("NP_DRAIN_BACKTIME", config.nonprime_drain_backtime > 0, "has no effect: prime time does not end early"),
        ("HIGH_SYSTIME", config.high_system_time_percent > 0, "has no effect: system time is not measured"),
        (
            "SCHED_RESTART_ACTION",
            config.restart_action != RestartAction::None,
            "has no effect: jobs that wait in a batch queue are looked at with the others",
        ),
        ("SORTED_JOB_DUMPFILE", config.sorted_job_dumpfile.is_some(), "has no effect: no file is written"),
    ];
    (refused.into_iter().filter_map(told).collect(), lost.into_iter().filter_map(told).collect())
}
