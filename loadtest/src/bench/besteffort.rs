//! A job that takes the place of a best-effort job.

use super::{
    Bench,
    commands::Links,
    figure::{Figure, quantile},
};
use crate::{
    api::{self, PublicEvent},
    http::EventStream,
};
use anyhow::{Context as _, Result, bail, ensure};
use muster_schemas::{
    JobId,
    job::{JobSpec, JobType, Program},
    resources::{Count, Level, LevelCount, Request, Sharing},
};
use std::{
    process::Stdio,
    time::{Duration, Instant},
};

/// Nodes.
const NODES: usize = 100;
/// How often the best-effort job makes way.
const ROUNDS: usize = 20;
/// The longest wait for a start: far longer than any figure that is of use.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Its service class, and that of the others.
const CLASSES: [&str; 2] = ["besteffort", "regular"];

/// From the submission of a job that wants all nodes to its start, while a best-effort job has them. That one ends as soon as it
/// gets the signal, so nothing is taken off for its own end.
pub async fn besteffort(bench: &Bench) -> Result<Vec<Figure>> {
    let nodes = u32::try_from(bench.count(NODES))?;
    let running = bench.start(nodes, 1)?;
    let links = Links::make(&running)?;
    for words in [&["-i", "add", "qos", CLASSES[0]][..], &["-i", "add", "qos", CLASSES[1], "preempt=besteffort"]] {
        let mut add = links.command("sacctmgr", words);
        ensure!(add.stdout(Stdio::null()).status()?.success(), "{add:?} failed");
    }
    let mut connection = running.system.connect().await?;
    let path = api::events_from_now(&mut connection, "job.started").await?;
    let mut starts = running.system.connect().await?.events(&path).await?;
    let mut weak = on_all(nodes, CLASSES[0], &["/bin/sleep", "100000"]);
    weak.types = vec![JobType::BestEffort { requeue: true }];
    // It waits again behind those that it makes way for.
    weak.components.iter_mut().for_each(|component| component.priority = Some(-1));
    let weak = api::submit(&mut connection, vec![weak]).await?;
    let weak = *weak.first().context("no job")?;
    wait_for_start(&mut starts, weak).await?;
    let body = api::submission(vec![on_all(nodes, CLASSES[1], &["/bin/true"])])?;
    let mut times = Vec::new();
    for _ in 0..bench.count(ROUNDS) {
        let begin = Instant::now();
        let strong = *api::submit_body(&mut connection, body.clone()).await?.first().context("no job")?;
        wait_for_start(&mut starts, strong).await?;
        times.push(begin.elapsed());
        // The other one has ended by itself.
        wait_for_start(&mut starts, weak).await?;
    }
    running.system.stop()?;
    let measure = |which| format!("best-effort job on {nodes} nodes ended, and another one started there, {which}");
    Ok(vec![
        Figure::time(measure("p50"), quantile(&mut times, 0.5), 50.0),
        Figure::time(measure("p99"), quantile(&mut times, 0.99), 50.0),
    ])
}

/// A job of a class with one task on each node.
fn on_all(nodes: u32, class: &str, argv: &[&str]) -> JobSpec {
    let program = Program::Tasks { argv: argv.iter().map(|word| (*word).to_owned()).collect() };
    let path = vec![LevelCount { level: Level::Node, count: Count::exactly(nodes) }];
    let request = Request { path, sharing: Sharing::WholeNodes, ..Request::default() };
    let mut job = api::job("on-all", program, request);
    for component in &mut job.components {
        component.class = Some(class.to_owned());
    }
    job
}

async fn wait_for_start(starts: &mut EventStream, job: JobId) -> Result<()> {
    let started = async {
        while let Some(data) = starts.next().await? {
            let event: PublicEvent = serde_json::from_slice(&data).context("an event that is none")?;
            if event.job() == Some(job) {
                return Ok(());
            }
        }
        bail!("the stream of events has ended")
    };
    let late = || format!("job {job} did not start within {} s", LONGEST_WAIT.as_secs());
    tokio::time::timeout(LONGEST_WAIT, started).await.with_context(late)?
}
