//! How soon jobs with several components start.

use super::{
    Bench, Running,
    figure::{Figure, quantile},
    running::TRIVIAL,
};
use crate::{
    api::{self, PublicEvent},
    http::Connection,
};
use anyhow::{Context as _, Result, ensure};
use muster_schemas::{
    Timestamp,
    job::{JobSpec, Program},
    resources::{Count, Level, LevelCount, Request},
    views::JobView,
};
use std::time::Duration;

/// Emulated nodes, a separate one for each component.
const NODES: u32 = 8;
const COMPONENTS: u32 = 3;

/// Jobs with three components, one after another, on an idle system that starts them in any pass: from just before the
/// request that submits a job to the record that its processes run on all of its nodes.
pub async fn components(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(NODES, 4)?;
    let mut connection = running.system.connect().await?;
    let mut times = Vec::new();
    for _ in 0..bench.count(200).max(1) {
        times.push(one(&mut connection).await?);
    }
    let Running { system, .. } = running;
    system.stop()?;
    let jobs = times.len();
    let measure = |which| format!("a job with {COMPONENTS} components, submit to all started, {jobs} jobs, {which}");
    Ok(vec![
        Figure::time(measure("p50"), quantile(&mut times, 0.5), 15.0),
        Figure::time(measure("p99"), quantile(&mut times, 0.99), 50.0),
    ])
}

fn job() -> JobSpec {
    let path = vec![LevelCount { level: Level::Node, count: Count::exactly(1) }];
    let request = Request { path, ..Request::default() };
    let leader = Program::Tasks { argv: vec![TRIVIAL.to_owned()] };
    let mut job = api::job("components", leader, request.clone());
    for _ in 1..COMPONENTS {
        job.components.extend(api::job("", Program::None, request.clone()).components);
    }
    job
}

async fn one(connection: &mut Connection) -> Result<Duration> {
    let body = api::submission(vec![job()])?;
    let begin = Timestamp::now();
    let job = *api::submit_body(connection, body).await?.first().context("no job")?;
    let view: JobView = connection.get(&format!("/v1/jobs/{job}/wait?timeout_seconds=60")).await?;
    let outcome = view.outcome.context("the job has not ended")?;
    ensure!(outcome.shell_code() == 0, "job {job} ended badly: {outcome}");
    let events: Vec<PublicEvent> = connection.get(&format!("/v1/jobs/{job}/events")).await?;
    let started = events.iter().find(|event| event.kind_verb() == "job.started").context("it has not started")?;
    Ok(Duration::from_micros(u64::try_from(started.time.micros_since(begin))?))
}
