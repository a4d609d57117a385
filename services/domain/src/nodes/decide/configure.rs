//! The configuration of the cluster: the events that turn it into a wanted one.

use crate::{
    accounts,
    decide::{Access, Decision, conflict, invalid, not_found},
    jobs,
    nodes::{self, Node, state::gpu_count},
    power, quotas, staging,
    state::State,
    validate, walltimes,
};
use muster_schemas::{
    NodeId,
    cluster::{ASKED, ClusterChange, ClusterConfig, ClusterSettings, QueueSpec, Removed, Route},
    command::Refusal,
    event::Event,
    resources::{IndexSet, NodeSpec},
};
use std::{collections::BTreeSet, sync::Arc};

/// The greatest number of nodes and of queues in a cluster.
const MAX_NODES: usize = 1_000_000;

const MAX_QUEUES: usize = 10_000;

/// Beyond any realistic count, and far below the greatest possible number.
const MAX_FIRST_JOB_NUMBER: u64 = 1 << 40;

pub(crate) fn configure(access: &Access, change: &ClusterChange, keep_unnamed: bool) -> Result<Decision, Refusal> {
    access.require_administrator("change the configuration")?;
    let state = access.state;
    require_known(state, &change.removed)?;
    let config = if keep_unnamed {
        change.onto(state.configuration())
    } else {
        refuse_emptied_lists(state, change)?;
        with_quotas(state, change, change.onto(ClusterConfig::default()))
    };
    let config = with_default_queue(state, config);
    validate_config(&config)?;
    let mut events = Vec::new();
    queues(state, &config, &mut events)?;
    if *state.settings() != config.settings {
        events.push(Event::SettingsChanged { settings: Arc::new(config.settings.clone()) });
    }
    if let Some(settings) = config.accounts.as_ref().filter(|settings| *settings != state.accounts().settings()) {
        events.push(Event::AccountSettingsChanged { settings: Arc::new(settings.clone()) });
    }
    let first = config.first_job_number.filter(|first| *first != state.first_job_number());
    events.extend(first.map(|first| Event::JobNumbersSet { first }));
    licences(state, &config, &mut events);
    staging(state, &config, &mut events)?;
    nodes(state, &config, &mut events)?;
    remove_nodes(state, &config, &mut events)?;
    remove_queues(state, &config, &mut events)?;
    Ok(Decision::done(events))
}

/// Whether everything that is to be removed exists: else somebody else removed it, or its name is wrong.
fn require_known(state: &State, removed: &Removed) -> Result<(), Refusal> {
    let unknown = |kind: &str, name: &String| not_found(format!("{kind} `{}` does not exist", validate::shown(name)));
    let queue = removed.queues.iter().find(|name| state.queue(name).is_none());
    let node = removed.nodes.iter().find(|name| state.node_by_name(name).is_none());
    let licence = removed.licences.iter().find(|name| state.licence(name).is_none());
    let first = queue.map(|name| unknown("queue", name)).or_else(|| node.map(|name| unknown("node", name)));
    first.or_else(|| licence.map(|name| unknown("licence", name))).map_or(Ok(()), Err)
}

/// Quotas have their own file: a configuration that does not name them leaves them as they are.
fn with_quotas(state: &State, change: &ClusterChange, mut config: ClusterConfig) -> ClusterConfig {
    if change.settings.quotas.is_none() {
        config.settings.quotas.clone_from(&state.settings().quotas);
    }
    config
}

/// Requires a change that takes rights away from all users, or opens a queue to all, to be explicit: a list that is
/// merely missing was more likely forgotten.
fn refuse_emptied_lists(state: &State, change: &ClusterChange) -> Result<(), Refusal> {
    let (settings, wished) = (state.settings(), &change.settings);
    require_named("administrators", &settings.administrators, wished.administrators.as_deref())?;
    require_named("operators", &settings.operators, wished.operators.as_deref())?;
    for queue in &change.queues {
        let users = state.queue(&queue.name).map_or(&[][..], |known| &known.spec.users);
        require_named(&format!("queue `{}`: users", queue.name), users, queue.users.as_deref())?;
    }
    Ok(())
}

fn require_named(what: &str, users: &[String], named: Option<&[String]>) -> Result<(), Refusal> {
    if named.is_some() || users.is_empty() {
        return Ok(());
    }
    let users = users.join(", ");
    Err(invalid(format!("{what}: not named, and the cluster has {users}: name them, or an empty list to remove them")))
}

/// The default queue may be left out: it stays as it is, and a cluster without any queue gets a plain one.
fn with_default_queue(state: &State, mut config: ClusterConfig) -> ClusterConfig {
    let name = &config.settings.default_queue;
    if config.queues.iter().any(|queue| queue.name == *name) {
        return config;
    }
    let known = state.queue(name).map(|known| (*known.spec).clone());
    let plain = || (state.queues().len() == 0).then(|| QueueSpec { name: name.clone(), ..QueueSpec::default() });
    let queue = known.or_else(plain);
    config.queues.extend(queue);
    config
}

fn validate_config(config: &ClusterConfig) -> Result<(), Refusal> {
    validate_settings(&config.settings)?;
    if config.first_job_number.is_some_and(|first| first == 0 || first > MAX_FIRST_JOB_NUMBER) {
        return Err(invalid(format!("first_job_number: must be from 1 to {MAX_FIRST_JOB_NUMBER}")));
    }
    if config.nodes.len() > MAX_NODES || config.queues.len() > MAX_QUEUES {
        return Err(invalid(format!("at most {MAX_NODES} nodes and {MAX_QUEUES} queues are possible")));
    }
    config.nodes.iter().try_for_each(nodes::validate::node)?;
    let nodes = unique("node", config.nodes.iter().map(|node| node.name.as_str()))?;
    let queues = unique("queue", config.queues.iter().map(|queue| queue.name.as_str()))?;
    staging::validate::staging_settings(&config.staging)?;
    for licence in config.licences.keys() {
        validate::identifier("licence", licence)?;
    }
    for queue in &config.queues {
        validate_queue(queue)?;
        if let Some(unknown) = queue.nodes.iter().find(|name| !nodes.contains(name.as_str())) {
            let shown = validate::shown(unknown);
            return Err(invalid(format!("queue `{}`: node `{shown}` does not exist", queue.name)));
        }
    }
    let default = config.settings.default_queue.as_str();
    if !queues.contains(default) {
        return Err(invalid(format!("default_queue: queue `{}` does not exist", validate::shown(default))));
    }
    let knows_queue = |name: &str| queues.contains(name);
    config.accounts.as_ref().map_or(Ok(()), |settings| accounts::validate::validate_settings(settings, knows_queue))
}

/// The most keys of an order of nodes.
const MOST_ORDER_KEYS: usize = 16;

/// The keys of an order of nodes, each once.
fn node_order(keys: &[String]) -> Result<(), Refusal> {
    if keys.len() > MOST_ORDER_KEYS {
        return Err(invalid(format!("node_order: {} keys, {MOST_ORDER_KEYS} are the most", keys.len())));
    }
    let mut seen = BTreeSet::new();
    for key in keys {
        let name = key.strip_prefix('-').unwrap_or(key);
        validate::identifier("node_order", name)?;
        if !seen.insert(name) {
            return Err(invalid(format!("node_order: `{}` is named twice", validate::shown(name))));
        }
    }
    Ok(())
}

fn validate_settings(settings: &ClusterSettings) -> Result<(), Refusal> {
    validate::label("name", &settings.name)?;
    jobs::validate::attributes(&settings.attributes)?;
    settings.quotas.as_deref().map_or(Ok(()), quotas::validate::table)?;
    for user in settings.operators.iter().chain(&settings.administrators) {
        validate::name("operators and administrators", user)?;
    }
    for user in &settings.unlimited_fixed_starts {
        validate::name("unlimited_fixed_starts", user)?;
    }
    settings.energy.as_ref().map_or(Ok(()), power::validate::energy)?;
    node_order(&settings.node_order)?;
    let at_least_one = [
        ("node_lost_after_seconds", settings.node_lost_after_seconds),
        ("launch_timeout_seconds", settings.launch_timeout_seconds),
        ("agent_lost_after_seconds", settings.agent_patience()),
    ];
    match at_least_one.iter().find(|(_, value)| *value == 0) {
        Some((name, _)) => Err(invalid(format!("{name}: is 0, at least 1 is needed"))),
        None => Ok(()),
    }
}

fn validate_queue(queue: &QueueSpec) -> Result<(), Refusal> {
    validate::identifier("queue", &queue.name)?;
    jobs::validate::attributes(&queue.attributes)?;
    queue.default_walltime_seconds.map_or(Ok(()), validate::walltime)?;
    queue.max_walltime_seconds.map_or(Ok(()), validate::walltime)?;
    queue.route.as_deref().map_or(Ok(()), |route| validate_route(&queue.name, route))?;
    validate_asked(queue)?;
    queue.walltime_increases.as_ref().map_or(Ok(()), walltimes::validate::increases)?;
    if let Some(way) = &queue.makes_way {
        validate::number("queue.makes_way.grace_seconds", u64::from(way.grace_seconds), 0, 86_400)?;
    }
    match (queue.default_walltime_seconds, queue.max_walltime_seconds) {
        (Some(default), Some(longest)) if default > longest => Err(invalid(format!(
            "queue `{}`: default_walltime_seconds {default} is more than max_walltime_seconds {longest}",
            queue.name
        ))),
        _ => Ok(()),
    }
}

/// The greatest number of queues to which one passes jobs on.
const MOST_DESTINATIONS: usize = 256;

fn validate_route(name: &str, route: &Route) -> Result<(), Refusal> {
    if route.destinations.len() > MOST_DESTINATIONS {
        return Err(invalid(format!("queue `{name}`: it can pass jobs on to at most {MOST_DESTINATIONS} queues")));
    }
    route.destinations.iter().try_for_each(|destination| validate::identifier("destination", destination))?;
    unique("destination", route.destinations.iter().map(String::as_str))?;
    route.lifetime_seconds.map_or(Ok(()), validate::walltime)
}

fn validate_asked(queue: &QueueSpec) -> Result<(), Refusal> {
    let names = queue.least_asked.keys().chain(queue.most_asked.keys());
    if let Some(unknown) = names.into_iter().find(|name| !ASKED.contains(&name.as_str())) {
        let shown = validate::shown(unknown);
        return Err(invalid(format!("queue `{}`: `{shown}` is none of {}", queue.name, ASKED.join(", "))));
    }
    let is_empty = |(name, least): &(&String, &u64)| queue.most_asked.get(*name).is_some_and(|most| most < *least);
    match queue.least_asked.iter().find(is_empty) {
        Some((name, least)) => {
            Err(invalid(format!("queue `{}`: {name}: no job asks for {least} at least and less at most", queue.name)))
        }
        None => Ok(()),
    }
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<BTreeSet<&'a str>, Refusal> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(invalid(format!("{what} `{}` is given twice", validate::shown(name))));
        }
    }
    Ok(seen)
}

fn queues(state: &State, config: &ClusterConfig, events: &mut Vec<Event>) -> Result<(), Refusal> {
    for queue in &config.queues {
        let known = state.queue(&queue.name);
        let is_other_kind = known.is_some_and(|known| known.spec.route.is_some() != queue.route.is_some());
        if let Some(known) = known.filter(|known| is_other_kind && known.jobs > 0) {
            let jobs = known.jobs;
            return Err(conflict(format!(
                "queue `{}`: {jobs} jobs are in it, so it stays as it is: it starts them or passes them on",
                queue.name
            )));
        }
        if known.is_none_or(|known| *known.spec != *queue) {
            events.push(Event::QueueSet { queue: Arc::new(queue.clone()) });
        }
    }
    Ok(())
}

fn licences(state: &State, config: &ClusterConfig, events: &mut Vec<Event>) {
    for (name, total) in &config.licences {
        if state.licence(name).map_or(0, |licence| licence.total) != *total {
            events.push(Event::LicenceSet { name: name.clone(), total: *total });
        }
    }
    let unnamed = state.licences().filter(|(name, licence)| licence.total > 0 && !config.licences.contains_key(*name));
    events.extend(unnamed.map(|(name, _)| Event::LicenceSet { name: name.to_owned(), total: 0 }));
}

/// The program is not removed while there is something that only it can stage out.
fn staging(state: &State, config: &ClusterConfig, events: &mut Vec<Event>) -> Result<(), Refusal> {
    let (old, settings) = (state.staging_settings(), &config.staging);
    if **old == *settings {
        return Ok(());
    }
    let is_removed = old.program.is_some() && settings.program.is_none();
    if let Some(job) = state.jobs().find(|job| is_removed && job.has_to_be_staged_out()) {
        let id = job.id;
        return Err(conflict(format!("staging.program: cannot be removed: job {id} still has files to stage out")));
    }
    events.push(Event::StagingSet { old: old.clone(), settings: Arc::new(settings.clone()) });
    Ok(())
}

fn nodes(state: &State, config: &ClusterConfig, events: &mut Vec<Event>) -> Result<(), Refusal> {
    let mut next = state.next_node;
    for spec in &config.nodes {
        match state.node_by_name(&spec.name) {
            Some(known) if *known.spec == *spec => {}
            Some(known) => {
                require_room_for_runs(state, known, spec)?;
                events.push(Event::NodeChanged { node: known.id, spec: Arc::new(spec.clone()) });
            }
            None => {
                events.push(Event::NodeAdded { node: NodeId(next), spec: Arc::new(spec.clone()) });
                next += 1;
            }
        }
    }
    Ok(())
}

/// The resources of a node that runs use must still exist after a change.
fn require_room_for_runs(state: &State, node: &Node, spec: &NodeSpec) -> Result<(), Refusal> {
    let used_cores = IndexSet::first_n(node.spec.cores).difference(&node.free_cores);
    let used_cores = used_cores.union(&state.lent_cores(node.id));
    let used_gpus = IndexSet::first_n(gpu_count(&node.spec)).difference(&node.free_gpus);
    let used_memory = node.spec.memory_bytes.saturating_sub(node.free_memory_bytes);
    let fits = nodes::validate::within(&used_cores, spec.cores)
        && nodes::validate::within(&used_gpus, gpu_count(spec))
        && used_memory <= spec.memory_bytes;
    if fits {
        return Ok(());
    }
    let whose = state.user_of(node).map_or_else(|| "a job that starts".to_owned(), |job| format!("job {job}"));
    Err(conflict(format!("node `{}` cannot become smaller than what runs on it uses: {whose}", spec.name)))
}

fn remove_nodes(state: &State, config: &ClusterConfig, events: &mut Vec<Event>) -> Result<(), Refusal> {
    let named: BTreeSet<&str> = config.nodes.iter().map(|node| node.name.as_str()).collect();
    // Agents bring their nodes themselves.
    let is_own = |node: &Node| config.settings.agents_make_nodes && node.spec.is_pulled();
    let unnamed = state.nodes().filter(|node| !named.contains(node.spec.name.as_str()));
    for node in unnamed.filter(|node| !is_own(node)) {
        if let Some(job) = state.user_of(node) {
            return Err(conflict(format!("node `{}` cannot be removed: job {job} runs on it", node.spec.name)));
        }
        if let Some(job) = state.job_with_files_on(node.id) {
            let why = format!("files of job {job} are there or on their way");
            return Err(conflict(format!("node `{}` cannot be removed: {why}", node.spec.name)));
        }
        if let Some(reservation) = state.reservations_of(node.id).next() {
            let (node, name) = (&node.spec.name, &reservation.spec.name);
            return Err(conflict(format!("node `{node}` cannot be removed: it belongs to reservation `{name}`")));
        }
        events.push(Event::NodeRemoved { node: node.id });
    }
    Ok(())
}

fn remove_queues(state: &State, config: &ClusterConfig, events: &mut Vec<Event>) -> Result<(), Refusal> {
    let named: BTreeSet<&str> = config.queues.iter().map(|queue| queue.name.as_str()).collect();
    for queue in state.queues().filter(|queue| !named.contains(queue.spec.name.as_str())) {
        if queue.jobs > 0 {
            return Err(conflict(format!(
                "queue `{}` cannot be removed: {} jobs are in it",
                queue.spec.name, queue.jobs
            )));
        }
        events.push(Event::QueueRemoved { name: queue.spec.name.clone() });
    }
    Ok(())
}
