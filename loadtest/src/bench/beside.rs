//! How long a submission takes while other clients ask for much, or mean harm. Nodes are drained, so that only
//! acceptance is measured; turns without and with the others alternate, because the speed of a machine varies over
//! time.

use super::{
    Bench, Running, elsewhere,
    figure::{Figure, Target, quantile},
};
use crate::{
    api,
    http::{Connection, Endpoint},
    system::System,
};
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    task::JoinSet,
};

/// Jobs that wait while lists are read.
const WAITING: usize = 100_000;
/// Jobs in a request that submits them.
const BULK: usize = 1_000;
/// Clients that read lists.
const READERS: usize = 10;
/// The time in which each reads one list.
const READ_EVERY: Duration = Duration::from_secs(1);
/// Connections that mean harm.
const HOSTILE: usize = 1_000;
/// Turns without the others, and the same number with them.
const TURNS: usize = 20;
/// Submissions of a turn, one after another.
const SUBMISSIONS: usize = 400;
/// The time from one submission to the next.
const SUBMIT_EVERY: Duration = Duration::from_millis(10);
/// When a closed hostile connection is opened again.
const OPEN_AGAIN: Duration = Duration::from_millis(100);

/// Submissions while ten readers list 100,000 jobs.
pub async fn lists(bench: &Bench) -> Result<Vec<Figure>> {
    let running = start(bench).await?;
    let waiting = bench.count(WAITING).next_multiple_of(BULK);
    let jobs: Vec<_> = (0..BULK).map(|number| api::command_job(&format!("waiting-{number}"), &["/bin/true"])).collect();
    let body = api::submission(jobs)?;
    let mut connection = running.system.connect().await?;
    for _ in 0..waiting / BULK {
        api::submit_body(&mut connection, body.clone()).await?;
    }
    let (go, read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (mut readers, elsewhere) = (JoinSet::new(), elsewhere()?);
    for reader in 0..READERS {
        // The readers do not all ask at the same moment.
        let first = READ_EVERY * reader as u32 / READERS as u32;
        readers.spawn_on(read_lists(running.system.endpoint(), first, go.clone(), read.clone()), elsewhere);
    }
    let (mut alone, mut beside, elapsed) = turns(bench, &running.system, &go).await?;
    readers.abort_all();
    let with = format!("beside {READERS} readers of {waiting} jobs each second");
    let mut figures = told("submission, durable, one each 10 ms", &with, &mut alone, &mut beside);
    let rate = read.load(Ordering::Relaxed) as f64 / elapsed.as_secs_f64();
    let measure = format!("those lists of {waiting} jobs");
    figures.push(Figure { measure, value: rate, unit: "lists/s", target: Target::None });
    running.system.stop()?;
    Ok(figures)
}

async fn read_lists(endpoint: Endpoint, first: Duration, go: Arc<AtomicBool>, read: Arc<AtomicU64>) -> Result<()> {
    let mut connection = Connection::open(&endpoint).await?;
    tokio::time::sleep(first).await;
    let mut clock = tokio::time::interval(READ_EVERY);
    loop {
        clock.tick().await;
        if go.load(Ordering::Relaxed) {
            connection.read_through("/v1/jobs/all").await?;
            read.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Submissions with 1,000 hostile connections: heads that never end, and bodies of 60 MB that never come.
pub async fn hostile(bench: &Bench) -> Result<Vec<Figure>> {
    let running = start(bench).await?;
    let go = Arc::new(AtomicBool::new(false));
    let Endpoint::Socket(socket) = running.system.endpoint() else { bail!("the gateway has no socket") };
    let count = bench.count(HOSTILE);
    let mut hostile = JoinSet::new();
    for number in 0..count {
        hostile.spawn(harm(socket.clone(), number % 2 == 0, go.clone()));
    }
    let (mut alone, mut beside, _) = turns(bench, &running.system, &go).await?;
    hostile.abort_all();
    let with = format!("beside {count} hostile connections");
    let figures = told("submission, durable, one each 10 ms", &with, &mut alone, &mut beside);
    running.system.stop()?;
    Ok(figures)
}

/// Holds a connection open that sends half of a request.
async fn harm(socket: PathBuf, with_body: bool, go: Arc<AtomicBool>) {
    let begin: &[u8] = match with_body {
        true => b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\ncontent-length: 60000000\r\n\r\n{\"jobs\":[",
        false => b"GET /v1/jobs HTTP/1.1\r\nhost: x\r\nx-",
    };
    loop {
        tokio::time::sleep(OPEN_AGAIN).await;
        if !go.load(Ordering::Relaxed) {
            continue;
        }
        let Ok(mut connection) = UnixStream::connect(&socket).await else { continue };
        if connection.write_all(begin).await.is_err() {
            continue;
        }
        let mut answer = [0; 4096];
        while go.load(Ordering::Relaxed) {
            match tokio::time::timeout(OPEN_AGAIN, connection.read(&mut answer)).await {
                Ok(Ok(1..)) | Err(_) => {}
                Ok(_) => break,
            }
        }
    }
}

async fn start(bench: &Bench) -> Result<Running> {
    let running = bench.start(1, 1)?;
    api::drain_all_nodes(&mut running.system.connect().await?, 1).await?;
    Ok(running)
}

/// How long submissions took, by turn, without and with the others, and how long the others were active.
async fn turns(bench: &Bench, system: &System, go: &AtomicBool) -> Result<(Turns, Turns, Duration)> {
    let body = api::submission(vec![api::command_job("single", &["/bin/true"])])?;
    let count = bench.count(SUBMISSIONS);
    let (mut alone, mut beside, mut elapsed) = (Vec::new(), Vec::new(), Duration::ZERO);
    // The first requests take longer.
    submit(system, count / 4, &body).await?;
    for _ in 0..TURNS {
        alone.push(submit(system, count, &body).await?);
        go.store(true, Ordering::Relaxed);
        let begin = Instant::now();
        // Let the others begin before measuring.
        tokio::time::sleep(READ_EVERY).await;
        beside.push(submit(system, count, &body).await?);
        go.store(false, Ordering::Relaxed);
        elapsed += begin.elapsed();
        tokio::time::sleep(READ_EVERY).await;
    }
    Ok((alone, beside, elapsed))
}

/// The times of submissions, by turn.
type Turns = Vec<Vec<Duration>>;

/// Submits jobs one by one, each at its time.
async fn submit(system: &System, count: usize, body: &Bytes) -> Result<Vec<Duration>> {
    let mut connection = system.connect().await?;
    let mut clock = tokio::time::interval(SUBMIT_EVERY);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        clock.tick().await;
        let begin = Instant::now();
        connection.post("/v1/jobs", body.clone()).await.context("a submission failed")?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

fn told(what: &str, with: &str, alone: &mut Turns, beside: &mut Turns) -> Vec<Figure> {
    let value = |time: Duration| time.as_secs_f64() * 1e3;
    let figure = |measure: String, value, unit, target| Figure { measure, value, unit, target };
    let more = |beside: &mut [Duration], alone: &mut [Duration]| {
        value(quantile(beside, 0.99)) / value(quantile(alone, 0.99)) * 100.0 - 100.0
    };
    let mut by_turn: Vec<f64> =
        beside.iter_mut().zip(alone.iter_mut()).map(|(with, without)| more(with, without)).collect();
    by_turn.sort_unstable_by(f64::total_cmp);
    let (mut alone, mut beside) = (alone.concat(), beside.concat());
    let mut figures = Vec::new();
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        for (times, how) in [(&mut alone, "alone"), (&mut beside, with)] {
            let time = value(quantile(times, part));
            figures.push(figure(format!("{what}, {how}, {name}"), time, "ms", Target::None));
        }
    }
    let measure = format!("{what}, {with}: p99, more than alone");
    figures.push(figure(measure.clone(), more(&mut beside, &mut alone), "%", Target::AtMost(10.0)));
    // One slow moment of the machine decides the figure of all turns, but not the middle ones of them.
    for (name, quarter) in [("first quartile", 1), ("median", 2), ("third quartile", 3)] {
        let at = by_turn[(by_turn.len() - 1) * quarter / 4];
        figures.push(figure(format!("{measure}, {name} of the turns"), at, "%", Target::None));
    }
    figures
}
