//! `muster status` and `muster top`: the state of the cluster.

use super::lists::{self, queues_table};
use crate::{
    cli::{ConnectionOptions, FilterOptions, JobsOptions, StatusOptions, TopOptions},
    exit::{CommandResult, Failure},
    job_table, show,
    terminal::{self, waiting},
    values::format_size,
};
use muster_cli::terminal::size_of;
use muster_client::{Client, JobQuery, Moment};
use muster_schemas::{
    Sequence, Timestamp,
    job::JobState,
    views::{NodesPage, QueuesPage},
};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

/// `muster top` asks for this many jobs at most: no terminal has more lines.
const MOST_JOBS: u32 = 500;
/// The height assumed for a terminal of unknown size.
const USUAL_ROWS: usize = 24;
/// Moves the cursor to the first place and clears everything after it.
const CLEAR: &str = "\x1b[H\x1b[J";

/// The cluster in numbers.
#[derive(Serialize)]
struct Overview {
    cluster: String,
    /// The number of nodes in each state.
    nodes: BTreeMap<&'static str, usize>,
    cores_used: u64,
    cores: u64,
    memory_used_bytes: u64,
    memory_bytes: u64,
    gpus_used: u64,
    gpus: u64,
    running: u64,
    queued: u64,
    held: u64,
    sequence: Sequence,
    time: Timestamp,
}

impl Overview {
    /// Lost nodes have nothing that jobs could use.
    fn of(cluster: String, nodes: &NodesPage, queues: &QueuesPage) -> Self {
        let mut states = BTreeMap::new();
        for node in &nodes.nodes {
            *states.entry(node.state.word()).or_default() += 1;
        }
        let sum = |of: &dyn Fn(&muster_schemas::views::NodeView) -> u64| {
            nodes.nodes.iter().fold(0, |sum: u64, node| sum.saturating_add(of(node)))
        };
        Self {
            cluster,
            nodes: states,
            cores_used: sum(&|node| node.cores_used.into()),
            cores: sum(&|node| node.spec.cores.into()),
            memory_used_bytes: sum(&|node| node.memory_used_bytes),
            memory_bytes: sum(&|node| node.spec.memory_bytes),
            gpus_used: sum(&|node| node.gpus_used.into()),
            gpus: sum(&|node| node.gpus_in_service()),
            running: queues.queues.iter().map(|queue| queue.running).sum(),
            queued: queues.queues.iter().map(|queue| queue.queued).sum(),
            held: queues.queues.iter().map(|queue| queue.held).sum(),
            sequence: queues.sequence,
            time: queues.time,
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let states: Vec<String> = self.nodes.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let nodes = if states.is_empty() { "none".to_owned() } else { states.join(", ") };
        let memory = (format_size(self.memory_used_bytes), format_size(self.memory_bytes));
        let mut lines = vec![
            ("Cluster", self.cluster.clone()),
            ("Nodes", nodes),
            ("CPUs", format!("{} of {} in use", self.cores_used, self.cores)),
            ("Memory", format!("{} of {} in use", memory.0, memory.1)),
        ];
        if self.gpus > 0 || self.gpus_used > 0 {
            lines.push(("GPUs", format!("{} of {} in use", self.gpus_used, self.gpus)));
        }
        lines.push(("Jobs", format!("{} running, {} queued, {} held", self.running, self.queued, self.held)));
        lines
    }
}

/// Prints the state of the cluster, or of some jobs.
pub fn status(connection: &ConnectionOptions, options: StatusOptions) -> CommandResult {
    if !options.ids.is_empty() {
        let StatusOptions { query, ids } = options;
        let jobs = JobsOptions {
            filter: FilterOptions::default(),
            all: true,
            limit: None,
            columns: Vec::new(),
            sort: Vec::new(),
            query,
            ids,
        };
        return lists::jobs(connection, jobs);
    }
    let mut client = connection.client()?;
    let (overview, queues) = waiting("reading", || look(&mut client, options.query.moment()))?;
    if options.query.json {
        show::print_json(&overview)?;
        return Ok(0);
    }
    let lines = overview.lines();
    show::print_fields(&lines.into_iter().map(|(name, text)| (name, Some(text))).collect::<Vec<_>>())?;
    println!();
    terminal::print_table(&queues_table(&queues))?;
    Ok(0)
}

fn look(client: &mut Client, moment: Moment) -> Result<(Overview, QueuesPage), Failure> {
    let cluster = client.info(moment)?.cluster;
    let nodes = client.nodes(moment)?;
    let queues = client.queues(moment)?;
    Ok((Overview::of(cluster, &nodes, &queues), queues))
}

/// Shows nodes, queues and jobs until it is interrupted, or once if the output is not a terminal.
pub fn top(connection: &ConnectionOptions, options: &TopOptions) -> CommandResult {
    let mut client = connection.client()?;
    let watches = std::io::stdout().is_terminal() && !options.once;
    loop {
        let page = page(&mut client)?;
        let mut out = std::io::stdout().lock();
        if !watches {
            out.write_all(page.join("\n").as_bytes())?;
            writeln!(out)?;
            return Ok(0);
        }
        let rows = size_of(libc::STDOUT_FILENO).map_or(USUAL_ROWS, |size| usize::from(size.rows));
        // A line break after the last line would scroll the first one away.
        let shown = page.len().min(rows.saturating_sub(1));
        out.write_all(format!("{CLEAR}{}\n", page[..shown].join("\n")).as_bytes())?;
        out.flush()?;
        drop(out);
        std::thread::sleep(Duration::from_secs(options.interval.into()));
    }
}

/// The whole page, with the jobs that have resources first.
fn page(client: &mut Client) -> Result<Vec<String>, Failure> {
    let (overview, queues) = look(client, Moment::Now)?;
    let of_states =
        |states: &[JobState]| JobQuery { states: states.to_vec(), limit: Some(MOST_JOBS), ..JobQuery::default() };
    let active = [JobState::Launching, JobState::Running, JobState::Suspended, JobState::Finishing];
    let mut jobs = client.jobs_page(&of_states(&active))?.jobs;
    jobs.extend(client.jobs_page(&of_states(&[JobState::Queued, JobState::Held]))?.jobs);
    let now = Timestamp::now();
    let lines = overview.lines();
    let mut text = Vec::new();
    writeln!(text, "{}", show::local_time(now))?;
    for (name, line) in lines {
        writeln!(text, "{name:<8} {line}")?;
    }
    for table in [queues_table(&queues), job_table::jobs_table(&jobs, now)] {
        writeln!(text)?;
        table.write(terminal::layout(), &mut text)?;
    }
    Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}
