//! How fast jobs run.

use super::{
    Bench,
    figure::{Figure, Target, quantile},
};
use crate::{
    api::{self, PublicEvent},
    http::EventStream,
};
use anyhow::{Context as _, Result, ensure};
use std::{
    fs::OpenOptions,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

/// A job that has not begun within this time never will.
const BEGIN_WITHIN: Duration = Duration::from_secs(10);
/// The trivial command.
pub const TRIVIAL: &str = "/bin/true";
/// Jobs in a request of the throughput benchmark.
const BULK: usize = 1_000;

/// From the submission to the first instruction of the job's process. The process is a shell that writes a line to a
/// FIFO; the time ends when the line is read, so it includes the shell's own start and the reader's wake-up.
pub async fn latency(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 2)?;
    let fifo = running.system.data().join("first-instruction");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    let lines = read_lines(&fifo)?;
    let script = format!("echo begun >'{}'", fifo.display());
    let body = api::submission(vec![api::command_job("latency", &["/bin/sh", "-c", &script])])?;
    let mut connection = running.system.connect().await?;
    let mut times = Vec::new();
    for _ in 0..bench.count(500) {
        let begin = Instant::now();
        api::submit_body(&mut connection, body.clone()).await?;
        let read = lines.recv_timeout(BEGIN_WITHIN).context("the job's process has not begun")?;
        times.push(read.duration_since(begin));
        // Idle means that the previous job has ended and is recorded.
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    running.system.stop()?;
    let measure = |which| format!("submit to first instruction of the job's process, idle, {which}");
    Ok(vec![
        Figure::time(measure("p50"), quantile(&mut times, 0.5), 5.0),
        Figure::time(measure("p99"), quantile(&mut times, 0.99), 15.0),
    ])
}

/// The moments at which lines arrive in a FIFO. It is also opened for writing, so that it never ends.
fn read_lines(fifo: &Path) -> Result<mpsc::Receiver<Instant>> {
    let file = OpenOptions::new().read(true).write(true).open(fifo)?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(file).lines();
        while lines.next().is_some_and(|line| line.is_ok()) && sender.send(Instant::now()).is_ok() {}
    });
    Ok(receiver)
}

/// Trivial jobs from the first submission to the last end, compared with the bare command on one thread per core.
pub async fn throughput(bench: &Bench) -> Result<Vec<Figure>> {
    let jobs = bench.count(10_000).next_multiple_of(BULK);
    let bare = tokio::task::spawn_blocking(move || bare_rate(jobs)).await??;
    let running = bench.start(4, 8)?;
    let mut connection = running.system.connect().await?;
    let path = api::events_from_now(&mut connection, "job.finished").await?;
    let ends = running.system.connect().await?.events(&path).await?;
    let follower = tokio::spawn(wait_for_ends(ends, jobs));
    let specs: Vec<_> = (0..BULK).map(|_| api::command_job("trivial", &[TRIVIAL])).collect();
    let body = api::submission(specs)?;
    let begin = Instant::now();
    for _ in 0..jobs / BULK {
        api::submit_body(&mut connection, body.clone()).await?;
    }
    follower.await??;
    let elapsed = begin.elapsed();
    running.system.stop()?;
    let measure = format!("trivial jobs run to the end, all events durable, {jobs} jobs");
    let rate = Figure::rate(measure, jobs, elapsed, "jobs/s", 1_000.0);
    let share = Figure {
        measure: format!("the same as a part of bare fork, exec and wait ({bare:.0}/s in the same run)"),
        value: rate.value / bare * 100.0,
        unit: "%",
        target: Target::AtLeast(50.0),
    };
    Ok(vec![rate, share])
}

/// Waits until this many jobs have completed.
async fn wait_for_ends(mut ends: EventStream, jobs: usize) -> Result<()> {
    for _ in 0..jobs {
        let data = ends.next().await?.context("the stream of events has ended")?;
        let event: PublicEvent = serde_json::from_slice(&data)?;
        ensure!(event.data["outcome"] == "completed", "job {} ended badly: {}", event.subject, event.data);
    }
    Ok(())
}

/// How many times per second the trivial command can be forked, executed and waited for.
pub fn bare_rate(count: usize) -> Result<f64> {
    let threads = std::thread::available_parallelism()?.get();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let spawners: Vec<_> = (0..threads).map(|_| scope.spawn(move || spawn_many(count / threads))).collect();
        spawners.into_iter().try_for_each(|spawner| spawner.join().expect("a spawner does not panic"))
    })?;
    Ok((count / threads * threads) as f64 / begin.elapsed().as_secs_f64())
}

fn spawn_many(count: usize) -> Result<()> {
    for _ in 0..count {
        let status = Command::new(TRIVIAL).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        ensure!(status.success(), "{TRIVIAL} failed: {status}");
    }
    Ok(())
}
