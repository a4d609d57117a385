//! How fast jobs are accepted. Nodes are drained, so that only acceptance is measured; every answer means "on disk".

use super::{
    Bench,
    figure::{Figure, quantile},
};
use crate::{api, http::Connection, system::System};
use anyhow::{Result, ensure};
use bytes::Bytes;
use muster_schemas::{job::ArraySpec, resources::IndexSet};
use std::time::{Duration, Instant};

/// Jobs in a bulk request.
const BULK: usize = 1_000;
/// Connections that send bulk requests.
const BULK_CONNECTIONS: usize = 4;
/// Connections that send single jobs.
const SINGLE_CONNECTIONS: usize = 64;
/// Tasks of the array.
const ARRAY_TASKS: u32 = 100_000;

/// Durable independent submissions in bulk.
pub async fn bulk(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    drain(&running.system).await?;
    let requests = bench.count(300).next_multiple_of(BULK_CONNECTIONS);
    let jobs: Vec<_> = (0..BULK).map(|number| api::command_job(&format!("bulk-{number}"), &["/bin/true"])).collect();
    let elapsed = post_all(&running.system, BULK_CONNECTIONS, requests, api::submission(jobs)?).await?;
    let measure = format!("durable independent submissions, {BULK} per request, {BULK_CONNECTIONS} connections");
    running.system.stop()?;
    Ok(vec![Figure::rate(measure, requests * BULK, elapsed, "jobs/s", 50_000.0)])
}

/// Durable single submissions.
pub async fn single(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    drain(&running.system).await?;
    let requests = bench.count(100_000).next_multiple_of(SINGLE_CONNECTIONS);
    let body = api::submission(vec![api::command_job("single", &["/bin/true"])])?;
    let elapsed = post_all(&running.system, SINGLE_CONNECTIONS, requests, body).await?;
    running.system.stop()?;
    let measure = format!("durable single submissions, {SINGLE_CONNECTIONS} connections");
    Ok(vec![Figure::rate(measure, requests, elapsed, "jobs/s", 10_000.0)])
}

/// An array, from the request to the answer.
pub async fn array(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    drain(&running.system).await?;
    let mut job = api::command_job("array", &["/bin/true"]);
    job.array = Some(ArraySpec { indices: IndexSet::from_range(0, ARRAY_TASKS - 1), max_running: None });
    let body = api::submission(vec![job])?;
    let mut connection = running.system.connect().await?;
    let mut times = Vec::new();
    for _ in 0..bench.count(100) {
        let begin = Instant::now();
        api::submit_body(&mut connection, body.clone()).await?;
        times.push(begin.elapsed());
    }
    running.system.stop()?;
    let measure = |which| format!("array of {ARRAY_TASKS} tasks accepted, durable, {which}");
    Ok(vec![
        Figure::time(measure("p50"), quantile(&mut times, 0.5), 10.0),
        Figure::time(measure("p99"), quantile(&mut times, 0.99), 10.0),
    ])
}

/// The command, repeatedly.
pub async fn command_line(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    drain(&running.system).await?;
    let commands = bench.count(2_000);
    let mut command = running.system.command(&["submit", "--parsable"]);
    command.args(["--", "/bin/true"]).stdout(std::process::Stdio::null());
    let begin = Instant::now();
    for _ in 0..commands {
        ensure!(command.status()?.success(), "{command:?} failed");
        // Lets the program notice an interruption.
        tokio::task::yield_now().await;
    }
    let elapsed = begin.elapsed();
    running.system.stop()?;
    Ok(vec![Figure::rate("`muster submit` as a command, one after the other", commands, elapsed, "commands/s", 500.0)])
}

async fn drain(system: &System) -> Result<()> {
    api::drain_all_nodes(&mut system.connect().await?, 1).await
}

/// Posts the same body many times, shared among connections, and returns how long all of it took.
async fn post_all(system: &System, connections: usize, requests: usize, body: Bytes) -> Result<Duration> {
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(system.connect().await?);
    }
    let begin = Instant::now();
    let mut senders = tokio::task::JoinSet::new();
    for connection in opened {
        senders.spawn(post_some(connection, requests / connections, body.clone()));
    }
    while let Some(sender) = senders.join_next().await {
        sender??;
    }
    Ok(begin.elapsed())
}

async fn post_some(mut connection: Connection, requests: usize, body: Bytes) -> Result<()> {
    for _ in 0..requests {
        connection.post("/v1/jobs", body.clone()).await?;
    }
    Ok(())
}
