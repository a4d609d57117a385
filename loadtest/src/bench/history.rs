//! How fast a long history can be folded, restarted from, and queried.

use super::{
    Bench,
    figure::{Figure, quantile},
    workload::{self, Batch, EVENTS_PER_JOB},
};
use crate::http::Connection;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use muster_bus::{LedgerClient, LocalBus, SharedBus};
use muster_domain::{State, decide};
use muster_ledger::limits::NoLimits;
use muster_schemas::{
    CommandId, Timestamp, codec,
    event::{Record, TraceContext},
};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// Records in the history.
const EVENTS: usize = 1_000_000;
/// Jobs that wait at its end.
const LIVE_JOBS: usize = 100_000;
/// The seed of the moments asked about.
const SEED: u64 = 20_261_120;
/// How often the fold and the restart are measured; the median counts.
const ROUNDS: usize = 5;

/// Decoding and folding, on one core.
pub fn fold(bench: &Bench) -> Result<Vec<Figure>> {
    let (ended, waiting) = shape(bench);
    let log = encoded_log(ended, waiting)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let mut state = State::new();
        for bytes in &log {
            state.apply(&codec::decode::<Record>(bytes)?)?;
        }
        times.push(begin.elapsed());
        ensure!(state.sequence().0 == log.len() as u64, "the fold stopped at {}", state.sequence());
    }
    let bytes: usize = log.iter().map(Vec::len).sum();
    let measure = format!("decode and fold, one core, {} events of {} bytes", log.len(), bytes / log.len());
    Ok(vec![Figure::rate(measure, log.len(), quantile(&mut times, 0.5), "events/s", 1_000_000.0)])
}

/// From the start of `muster up` on an old folder until it is ready.
pub async fn restart(bench: &Bench) -> Result<Vec<Figure>> {
    let folder = bench.folder()?;
    let events = write_history(bench, folder.path()).await?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let system = bench.start_on(folder.path(), 1, 1, None)?;
        times.push(system.started_in());
        system.stop()?;
    }
    let measure = format!("`muster up` on {events} events and {} live jobs, until ready", bench.count(LIVE_JOBS));
    Ok(vec![Figure::time(measure, quantile(&mut times, 0.5), 2_000.0)])
}

/// Queries of jobs at random past moments.
pub async fn past_query(bench: &Bench) -> Result<Vec<Figure>> {
    let folder = bench.folder()?;
    let events = write_history(bench, folder.path()).await?;
    let system = bench.start_on(folder.path(), 1, 1, None)?;
    let mut connection = system.connect().await?;
    let mut random = SmallRng::seed_from_u64(SEED);
    let mut times = Vec::new();
    for _ in 0..bench.count(200) {
        times.push(ask_about(&mut connection, random.random_range(1..=events)).await?);
    }
    system.stop()?;
    let measure = |which| format!("query at a past moment of {events} events, {which}");
    Ok(vec![
        Figure::time(measure("p50"), quantile(&mut times, 0.5), 250.0),
        Figure::time(measure("p99"), quantile(&mut times, 0.99), 250.0),
    ])
}

async fn ask_about(connection: &mut Connection, sequence: u64) -> Result<Duration> {
    let begin = Instant::now();
    connection.get_bytes(&format!("/v1/jobs?limit=20&at_seq={sequence}")).await?;
    Ok(begin.elapsed())
}

/// The number of jobs that run to their end, and of jobs that wait.
fn shape(bench: &Bench) -> (u64, u64) {
    let waiting = bench.count(LIVE_JOBS) as u64;
    let ended = (bench.count(EVENTS) as u64).saturating_sub(waiting) / EVENTS_PER_JOB;
    (ended, waiting)
}

/// The payloads of a whole log, made by the domain alone.
fn encoded_log(ended: u64, waiting: u64) -> Result<Vec<Vec<u8>>> {
    let mut state = State::new();
    let mut log = Vec::new();
    for (actor, command) in workload::batches(ended, waiting).flatten() {
        let now = Timestamp::now();
        let decision = decide(&state, &actor, &command, now).map_err(|refusal| anyhow!("refused: {refusal}"))?;
        workload::check(&decision.reply)?;
        let (actor, command) = (Arc::new(actor), CommandId::new_now());
        for event in decision.events {
            let sequence = state.sequence().next();
            let record = Record {
                sequence,
                time: now,
                actor: actor.clone(),
                command,
                trace: TraceContext::default(),
                event,
                epoch: 0,
            };
            state.apply(&record)?;
            log.push(codec::encode(&record)?);
        }
    }
    Ok(log)
}

/// Has a real ledger write the history into the data folder of a later `muster up`; returns the number of records.
async fn write_history(bench: &Bench, data: &Path) -> Result<u64> {
    let (ended, waiting) = shape(bench);
    let bus: SharedBus = LocalBus::new();
    let config = muster_ledger::Config { data_dir: data.to_owned(), ..muster_ledger::Config::default() };
    let (ready, is_ready) = oneshot::channel();
    let shutdown = CancellationToken::new();
    let mut ledger =
        tokio::spawn(muster_ledger::serve(bus.clone(), config, Arc::new(NoLimits), ready, shutdown.clone()));
    if is_ready.await.is_err() {
        (&mut ledger).await??;
        bail!("the ledger ended before it was ready");
    }
    let client = LedgerClient::new(bus);
    let mut last = 0;
    for batch in workload::batches(ended, waiting) {
        last = ask_all(&client, batch).await?;
    }
    shutdown.cancel();
    ledger.await??;
    Ok(last)
}

async fn ask_all(client: &LedgerClient, batch: Batch) -> Result<u64> {
    let mut asked = JoinSet::new();
    for (actor, command) in batch {
        let client = client.clone();
        asked.spawn(async move { client.command(actor, TraceContext::default(), command).await });
    }
    let mut last = 0;
    while let Some(answer) = asked.join_next().await {
        let answer = answer?.context("the ledger did not answer")?;
        workload::check(&answer.result.map_err(|refusal| anyhow!("refused: {refusal}"))?)?;
        last = last.max(answer.sequence.0);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_has_the_jobs_that_were_asked_for() {
        let log = encoded_log(1_000, 2_000).unwrap();
        let mut state = State::new();
        for bytes in &log {
            state.apply(&codec::decode(bytes).unwrap()).unwrap();
        }
        assert_eq!(state.waiting().count(), 2_000);
        // All jobs were submitted, and 1,000 of them have ended.
        let of_jobs = 1_000 * EVENTS_PER_JOB + 2_000;
        let of_cluster = log.len() as u64 - of_jobs;
        assert!((1..20).contains(&of_cluster), "{of_cluster} records beside those of the jobs");
    }
}
