//! How fast the tasks of a step run, compared with those of a job.

use super::{
    Bench, Running,
    commands::Links,
    figure::{Figure, Target, quantile},
    running::TRIVIAL,
};
use crate::{
    api::{self, PublicEvent},
    http::Connection,
};
use anyhow::{Context as _, Result, ensure};
use muster_schemas::{
    JobId,
    job::Program,
    resources::{Count, Level, LevelCount, Request},
    views::JobView,
};
use std::time::Duration;

const NODES: u32 = 4;
const TASKS: u32 = 1_000;

/// `srun -n 1000` of a trivial task on the four emulated nodes of a job, compared with the same tasks as a separate
/// job: from the record that orders them to the record of their end. `srun` gets the streams of the step's tasks.
pub async fn steps(bench: &Bench) -> Result<Vec<Figure>> {
    let each = TASKS / NODES;
    let running = bench.start(NODES, each)?;
    let links = Links::make(&running)?;
    let mut connection = running.system.connect().await?;
    let (mut bare, mut step) = (Vec::new(), Vec::new());
    for _ in 0..bench.count(10) {
        bare.push(of_job(&mut connection, each).await?);
        step.push(of_step(&links, &mut connection, each).await?);
    }
    let Running { system, .. } = running;
    system.stop()?;
    let rate = |times: &mut [Duration]| f64::from(TASKS) / quantile(times, 0.5).as_secs_f64();
    let (bare, step) = (rate(&mut bare), rate(&mut step));
    let bare_rate = Figure {
        measure: format!("{TASKS} trivial tasks of a job on {NODES} emulated nodes, median"),
        value: bare,
        unit: "tasks/s",
        target: Target::AtLeast(1_000.0),
    };
    let share = Figure {
        measure: format!("the same by `srun -n {TASKS}` in an allocation, as a part of that ({step:.0} tasks/s)"),
        value: step / bare * 100.0,
        unit: "%",
        target: Target::AtLeast(90.0),
    };
    Ok(vec![bare_rate, share])
}

fn on_all_nodes(each: u32) -> Request {
    let path = vec![
        LevelCount { level: Level::Node, count: Count::exactly(NODES) },
        LevelCount { level: Level::Core, count: Count::exactly(each) },
    ];
    Request { path, tasks: Some(TASKS), tasks_per_node: Some(each), ..Request::default() }
}

async fn of_job(connection: &mut Connection, each: u32) -> Result<Duration> {
    let program = Program::Tasks { argv: vec![TRIVIAL.to_owned()] };
    let job = api::submit(connection, vec![api::job("bare", program, on_all_nodes(each))]).await?[0];
    wait(connection, job).await?;
    between(connection, job, "job.allocated", "run.ended").await
}

async fn of_step(links: &Links, connection: &mut Connection, each: u32) -> Result<Duration> {
    let job = api::submit(connection, vec![api::job("holder", Program::None, on_all_nodes(each))]).await?[0];
    started(connection, job).await?;
    let (id, tasks, nodes) = (job.to_string(), TASKS.to_string(), NODES.to_string());
    let mut srun = links.command("srun", &["--jobid", &id, "-N", &nodes, "-n", &tasks, TRIVIAL]);
    // Its tasks get its variables; the tasks of the other job have just these.
    srun.env_clear().envs(api::environment()).env("MUSTER_DATA", links.data());
    let status = tokio::task::spawn_blocking(move || srun.status()).await??;
    ensure!(status.success(), "srun in job {job} ended badly: {status}");
    let time = between(connection, job, "step.launched", "step.ended").await?;
    let done = serde_json::json!({ "status": { "code": 0 } });
    connection.post(&format!("/v1/jobs/{job}/conclude"), serde_json::to_vec(&done)?.into()).await?;
    wait(connection, job).await?;
    Ok(time)
}

/// Waits until a job has its nodes.
async fn started(connection: &mut Connection, job: JobId) -> Result<()> {
    loop {
        let page: muster_schemas::views::JobsPage = connection.get(&format!("/v1/jobs?id={job}")).await?;
        if page.jobs.first().is_some_and(|view| view.started.is_some()) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn wait(connection: &mut Connection, job: JobId) -> Result<()> {
    let view: JobView = connection.get(&format!("/v1/jobs/{job}/wait?timeout_seconds=60")).await?;
    let outcome = view.outcome.context("the job has not ended")?;
    ensure!(outcome.shell_code() == 0, "job {job} ended badly: {outcome}");
    Ok(())
}

/// The time between two records of a job.
async fn between(connection: &mut Connection, job: JobId, from: &str, to: &str) -> Result<Duration> {
    let events: Vec<PublicEvent> = connection.get(&format!("/v1/jobs/{job}/events")).await?;
    let time = |kind: &str| events.iter().find(|event| event.kind_verb() == kind).map(|event| event.time);
    let (from, to) = time(from).zip(time(to)).with_context(|| format!("job {job} has no {from} or no {to}"))?;
    Ok(Duration::from_micros(u64::try_from(to.micros_since(from))?))
}
