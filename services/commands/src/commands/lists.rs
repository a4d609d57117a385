//! `muster jobs`, `nodes`, `node`, `queues`.

use super::reservations;
use crate::{
    cells,
    cli::{ConnectionOptions, JobsOptions, NodeCommand, NodesOptions, QueryOptions},
    exit::{CommandResult, Failure, Status},
    job_table, show,
    table::{Table, left, right},
    terminal::{self, waiting},
    values::{compress_hosts, format_duration, format_size, parse_hosts},
};
use muster_client::{Client, JobQuery};
use muster_schemas::{
    CommandId, Timestamp,
    energy::PowerWay,
    job::JobState,
    node::load_text,
    resources::PropertyValue,
    views::{DrainRequest, NodeView, NodesPage, PowerRequest, QueueView, QueuesPage, ResumeNodesRequest},
};
use std::collections::BTreeSet;

const ALL_STATES: [JobState; 7] = [
    JobState::Held,
    JobState::Queued,
    JobState::Launching,
    JobState::Running,
    JobState::Suspended,
    JobState::Finishing,
    JobState::Finished,
];

/// Lists jobs.
pub fn jobs(connection: &ConnectionOptions, options: JobsOptions) -> CommandResult {
    let filter = options.filter;
    // Named states are listed whether or not finished jobs are included.
    let states = if options.all && filter.state.is_empty() { ALL_STATES.to_vec() } else { filter.state };
    let query = JobQuery {
        moment: options.query.moment(),
        ids: options.ids,
        user: filter.user,
        queue: filter.queue,
        account: filter.account,
        name: filter.name,
        states,
        limit: options.limit,
        after: None,
    };
    let mut client = connection.client()?;
    // With a limit one page is enough; without one every page is read.
    let mut page =
        waiting("reading jobs", || if query.limit.is_some() { client.jobs_page(&query) } else { client.jobs(&query) })?;
    let past = options.query.at.or(options.query.at_seq.map(|_| page.time));
    let now = past.unwrap_or_else(Timestamp::now);
    job_table::sort(&mut page.jobs, &options.sort, now);
    if options.query.json {
        show::print_json(&page)?;
        return Ok(0);
    }
    let table = match &options.columns[..] {
        [] => job_table::jobs_table(&page.jobs, now),
        columns => job_table::chosen_table(&page.jobs, now, columns),
    };
    show::print_or_say(&table, "no jobs")?;
    Ok(0)
}

/// Lists nodes.
pub fn nodes(connection: &ConnectionOptions, options: &NodesOptions) -> CommandResult {
    let wanted: Option<BTreeSet<String>> = match &options.nodes {
        None => None,
        Some(list) => Some(parse_hosts(list).map_err(Failure::usage)?.into_iter().collect()),
    };
    let mut client = connection.client()?;
    let mut page = waiting("reading nodes", || client.nodes(options.query.moment()))?;
    if let Some(wanted) = wanted {
        page.nodes.retain(|node| wanted.contains(&node.spec.name));
        let found: BTreeSet<&String> = page.nodes.iter().map(|node| &node.spec.name).collect();
        if let Some(missing) = wanted.iter().find(|name| !found.contains(name)) {
            return Err(Failure::new(Status::NotFound, format!("there is no node `{missing}`")));
        }
    }
    if !options.state.is_empty() {
        page.nodes.retain(|node| options.state.contains(&node.state));
    }
    if options.query.json {
        show::print_json(&page)?;
    } else if options.summary {
        show::print_or_say(&nodes_summary(&page.nodes), "no nodes")?;
    } else {
        show::print_or_say(&nodes_table(&page), "no nodes")?;
    }
    Ok(0)
}

/// One row for all nodes with the same state, size and properties, in the order of the first of them.
fn nodes_summary(nodes: &[NodeView]) -> Table {
    let mut table = Table::new([
        right("NODES"),
        left("STATE"),
        right("CPUS"),
        right("MEMORY"),
        right("GPUS"),
        right("JOBS"),
        left("LIST"),
        left("PROPERTIES"),
    ]);
    let alike = |one: &NodeView, other: &NodeView| {
        let size = |node: &NodeView| (node.state, node.spec.cores, node.spec.memory_bytes, node.gpus_in_service());
        let phase = |node: &NodeView| node.power.map(|power| power.phase);
        size(one) == size(other) && phase(one) == phase(other) && one.spec.properties == other.spec.properties
    };
    let mut groups: Vec<Vec<&NodeView>> = Vec::new();
    for node in nodes {
        match groups.iter_mut().find(|group| alike(group[0], node)) {
            Some(group) => group.push(node),
            None => groups.push(vec![node]),
        }
    }
    for group in groups {
        let sum = |of: &dyn Fn(&NodeView) -> u64| group.iter().fold(0, |sum: u64, node| sum.saturating_add(of(node)));
        let memory = (sum(&|node| node.memory_used_bytes), sum(&|node| node.spec.memory_bytes));
        let gpus = (sum(&|node| node.gpus_used.into()), sum(&NodeView::gpus_in_service));
        let jobs: BTreeSet<_> = group.iter().flat_map(|node| &node.jobs).collect();
        let names: Vec<String> = group.iter().map(|node| node.spec.name.clone()).collect();
        table.push([
            group.len().to_string().into(),
            cells::node_cell(group[0]),
            format!("{}/{}", sum(&|node| node.cores_used.into()), sum(&|node| node.spec.cores.into())).into(),
            format!("{}/{}", format_size(memory.0), format_size(memory.1)).into(),
            if gpus == (0, 0) { "".into() } else { format!("{}/{}", gpus.0, gpus.1).into() },
            jobs.len().to_string().into(),
            compress_hosts(&names).into(),
            properties_text(group[0]).into(),
        ]);
    }
    table
}

fn nodes_table(page: &NodesPage) -> Table {
    let mut table = Table::new([
        left("NODE"),
        left("STATE"),
        right("CPUS"),
        right("MEMORY"),
        right("GPUS"),
        right("JOBS"),
        left("PROPERTIES"),
        left("REASON"),
        left("CLOSED"),
        left("RESERVED"),
    ]);
    for node in &page.nodes {
        let gpus = match node.spec.gpus.len() {
            0 => String::new(),
            _ => format!("{}/{}", node.gpus_used, node.gpus_in_service()),
        };
        table.push([
            (&node.spec.name).into(),
            cells::node_cell(node),
            format!("{}/{}", node.cores_used, node.spec.cores).into(),
            format!("{}/{}", format_size(node.memory_used_bytes), format_size(node.spec.memory_bytes)).into(),
            gpus.into(),
            node.jobs.len().to_string().into(),
            properties_text(node).into(),
            node.reason.clone().or_else(|| node.gpu_faults_text()).unwrap_or_default().into(),
            reservations::closures_text(&node.closures).into(),
            node.reservations.join(",").into(),
        ]);
    }
    table
}

fn properties_text(node: &NodeView) -> String {
    let texts: Vec<String> = node
        .spec
        .properties
        .iter()
        .map(|(name, value)| match value {
            PropertyValue::Flag(true) => name.clone(),
            PropertyValue::Flag(false) => format!("!{name}"),
            PropertyValue::Number(number) => format!("{name}={number}"),
            PropertyValue::Text(text) => format!("{name}={text}"),
        })
        .collect();
    texts.join(",")
}

/// Shows or changes nodes.
pub fn node(connection: &ConnectionOptions, command: NodeCommand) -> CommandResult {
    let mut client = connection.client()?;
    match command {
        NodeCommand::Show { query, node } => {
            let view = client.node(&node, query.moment())?;
            if query.json { show::print_json(&view)? } else { print_node(&view)? }
        }
        NodeCommand::Drain { reason, nodes } => {
            let nodes = parse_hosts(&nodes).map_err(Failure::usage)?;
            client.drain(CommandId::new_now(), &DrainRequest { nodes, reason, is_down: false })?;
        }
        NodeCommand::Resume { nodes } => {
            let nodes = parse_hosts(&nodes).map_err(Failure::usage)?;
            client.resume_nodes(CommandId::new_now(), &ResumeNodesRequest { nodes })?;
        }
        NodeCommand::Sleep { nodes } => set_power(&mut client, &nodes, PowerWay::Sleep)?,
        NodeCommand::Wake { nodes } => set_power(&mut client, &nodes, PowerWay::Wake)?,
        NodeCommand::Close(options) => return reservations::close(connection, options),
        NodeCommand::Open { nodes } => return reservations::open(connection, &nodes),
    }
    Ok(0)
}

fn set_power(client: &mut Client, nodes: &str, way: PowerWay) -> Result<(), Failure> {
    let nodes = parse_hosts(nodes).map_err(Failure::usage)?;
    client.set_power(CommandId::new_now(), &PowerRequest { nodes, way })?;
    Ok(())
}

fn print_node(node: &NodeView) -> std::io::Result<()> {
    let memory = (format_size(node.memory_used_bytes), format_size(node.spec.memory_bytes));
    let jobs: Vec<String> = node.jobs.iter().map(ToString::to_string).collect();
    show::print_fields(&[
        ("Node", Some(node.spec.name.clone())),
        ("State", Some(node.state.word().to_owned())),
        ("Power", node.power.map(|power| format!("{} since {}", power.phase, power.since))),
        ("Reason", node.reason.clone()),
        ("CPUs", Some(format!("{} of {} in use, {} sockets", node.cores_used, node.spec.cores, node.spec.sockets))),
        ("Load", node.load.map(|load| load_text(load.millionths))),
        ("Memory", Some(format!("{} of {} in use", memory.0, memory.1))),
        (
            "GPUs",
            (!node.spec.gpus.is_empty()).then(|| {
                format!("{} of {} in use: {}", node.gpus_used, node.spec.gpus.len(), node.spec.gpus.join(" "))
            }),
        ),
        ("Out of service", node.gpu_faults_text()),
        ("Properties", Some(properties_text(node)).filter(|text| !text.is_empty())),
        ("Closed", Some(reservations::closures_text(&node.closures)).filter(|text| !text.is_empty())),
        ("Reserved", Some(node.reservations.join(" ")).filter(|text| !text.is_empty())),
        ("Jobs", Some(jobs.join(" ")).filter(|text| !text.is_empty())),
    ])
}

/// Lists queues and licences.
pub fn queues(connection: &ConnectionOptions, options: &QueryOptions) -> CommandResult {
    let mut client = connection.client()?;
    let page = waiting("reading queues", || client.queues(options.moment()))?;
    if options.json {
        show::print_json(&page)?;
        return Ok(0);
    }
    terminal::print_table(&queues_table(&page))?;
    if !page.licences.is_empty() {
        println!();
        let mut table = Table::new([left("LICENCE"), right("USED"), right("TOTAL")]);
        for licence in &page.licences {
            table.push([(&licence.name).into(), licence.used.to_string().into(), licence.total.to_string().into()]);
        }
        terminal::print_table(&table)?;
    }
    Ok(0)
}

/// The table of queues.
pub fn queues_table(page: &QueuesPage) -> Table {
    let mut table = Table::new([
        left("QUEUE"),
        left("STATE"),
        right("PRIORITY"),
        right("RUNNING"),
        right("QUEUED"),
        right("HELD"),
        right("WALLTIME"),
        left("NODES"),
        left("USERS"),
    ]);
    for queue in &page.queues {
        let walltime =
            queue.spec.max_walltime_seconds.map(|seconds| format_duration(i64::try_from(seconds).unwrap_or(i64::MAX)));
        table.push([
            format!("{}{}", queue.spec.name, if queue.default { "*" } else { "" }).into(),
            queue_state(queue).into(),
            queue.spec.priority.to_string().into(),
            queue.running.to_string().into(),
            queue.queued.to_string().into(),
            queue.held.to_string().into(),
            walltime.unwrap_or_default().into(),
            compress_hosts(&queue.spec.nodes).into(),
            queue.spec.users.join(",").into(),
        ]);
    }
    table
}

fn queue_state(queue: &QueueView) -> &'static str {
    match (queue.spec.enabled, queue.spec.started) {
        (true, true) => "open",
        (true, false) => "stopped",
        (false, true) => "closed",
        (false, false) => "closed, stopped",
    }
}
