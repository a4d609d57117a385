//! A long history, made by the commands that would lead to it.

use crate::api;
use anyhow::{Result, bail};
use muster_schemas::{
    JobId, NodeId, PartId, RunId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::{Command, Reply, Start},
    event::{Actor, EndCause, NodeExit, Owner},
    job::{ExitStatus, Usage},
    plan::ProposedPlan,
    resources::{ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement},
};
use std::collections::BTreeMap;

/// Jobs that are submitted, started and ended together; the node has this many cores.
const BULK: u64 = 1_000;
/// The node that runs everything. It has no executor: its reports are part of the workload.
const NODE: &str = "generated";
/// The records of a job from its submission to its end.
pub const EVENTS_PER_JOB: u64 = 5;

/// Commands that may be sent at the same time. The next batch must wait until all of these are answered.
pub type Batch = Vec<(Actor, Command)>;

/// Commands for a new log: a cluster of one node, jobs that run to their end, and jobs that wait. Both numbers are
/// rounded up to whole bulks.
pub fn batches(ended_jobs: u64, waiting_jobs: u64) -> impl Iterator<Item = Batch> {
    let ended_bulks = ended_jobs.div_ceil(BULK);
    let lives = (0..ended_bulks).flat_map(|bulk| {
        let numbers = bulk * BULK + 1..=(bulk + 1) * BULK;
        [
            vec![submit()],
            vec![start(numbers.clone())],
            numbers.clone().map(started).collect(),
            numbers.map(ended).collect::<Batch>(),
        ]
    });
    let waits = (0..waiting_jobs.div_ceil(BULK)).map(|_| vec![submit()]);
    [vec![configure()], vec![hello()]].into_iter().chain(lives).chain(waits)
}

/// Checks that everything a command of this workload asked for was done.
///
/// # Errors
/// If starts were refused: later commands would have no effect.
pub fn check(reply: &Reply) -> Result<()> {
    match reply {
        Reply::Planned(refused) if !refused.is_empty() => {
            bail!("a start of the workload was refused: {}", refused[0].reason)
        }
        _ => Ok(()),
    }
}

fn configure() -> (Actor, Command) {
    let settings = ClusterSettings {
        // The node sends no signs of life.
        node_lost_after_seconds: 1_000_000,
        launch_timeout_seconds: 1_000_000,
        // The history spans weeks: ended jobs are no longer among the live ones.
        finished_job_retention_seconds: 1,
        ..ClusterSettings::default()
    };
    let queue = QueueSpec { name: settings.default_queue.clone(), ..QueueSpec::default() };
    let node = NodeSpec {
        name: NODE.to_owned(),
        cores: BULK as u32,
        sockets: 1,
        memory_bytes: 1 << 40,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    };
    let config = ClusterConfig {
        settings,
        queues: vec![queue],
        nodes: vec![node],
        licences: BTreeMap::new(),
        ..ClusterConfig::default()
    };
    (root(), Command::Configure { change: Box::new(config.into()), keep_unnamed: true })
}

fn hello() -> (Actor, Command) {
    (
        executor(),
        Command::NodeHello { boot_id: "generated".to_owned(), parts: Vec::new(), highest_run: None, as_of: None },
    )
}

fn submit() -> (Actor, Command) {
    let jobs = (0..BULK).map(|number| api::command_job(&format!("job-{number}"), &["/bin/true"])).collect();
    (root(), Command::Submit { jobs })
}

fn start(numbers: impl Iterator<Item = u64>) -> (Actor, Command) {
    let start = |(core, number): (u32, u64)| Start {
        job: JobId::job(number),
        placement: Placement {
            components: vec![ComponentPlacement {
                alternative: 0,
                shares: vec![NodeShare {
                    // The first node of a log.
                    node: NodeId(0),
                    cores: IndexSet::from_range(core, core),
                    gpus: IndexSet::default(),
                    memory_bytes: 0,
                    tasks: 1,
                    exclusive: false,
                }],
            }],
        },
    };
    let starts = (0..).zip(numbers).map(start).collect();
    let plan = ProposedPlan { starts, ..ProposedPlan::default() };
    (Actor::Planner, Command::CommitPlan { plan: Box::new(plan) })
}

/// Runs have the numbers of their jobs: every job has one.
fn started(number: u64) -> (Actor, Command) {
    (executor(), Command::NodeStarted { part: PartId::new(RunId(number), 0) })
}

fn ended(number: u64) -> (Actor, Command) {
    let exit = NodeExit {
        status: Some(ExitStatus::Code(0)),
        cause: EndCause::Itself,
        usage: Usage { cpu_time_micros: 900, peak_memory_bytes: 1 << 20, ..Usage::default() },
        started: None,
        ended: Timestamp::now(),
    };
    (executor(), Command::NodeEnded { part: PartId::new(RunId(number), 0), exit })
}

fn root() -> Actor {
    Actor::User(Owner { user: "root".to_owned(), uid: 0, gid: 0 })
}

fn executor() -> Actor {
    Actor::Executor(NODE.to_owned())
}
