//! How long it takes to explain why a job waits.

use super::{scene::alternatives, site};
use crate::bench::{
    Bench,
    figure::{Figure, quantile},
};
use anyhow::{Context as _, Result, ensure};
use muster_planner::{explain as why, projection::Projection};
use muster_schemas::{JobId, Timestamp};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use site::Site;
use std::time::{Duration, Instant};

/// Jobs that wait.
const JOBS: usize = 10_000;
/// Nodes, all of them busy.
const NODES: usize = 1_000;
/// Distinct requests.
const SHAPES: usize = 1_000;
/// Explanations to measure.
const EXPLANATIONS: usize = 200;
const SEED: u64 = 20_261_120;

/// Explanations as the gateway makes them, for waiting jobs picked at random. The planner has not foreseen their
/// starts, so each explanation searches for one.
///
/// For repeated questions the gateway keeps what its planner knows and advances it by the records since, here those
/// of one submission each time. The first time it builds it from the state.
pub fn explain(bench: &Bench) -> Result<Vec<Figure>> {
    let (nodes, jobs) = (bench.count(NODES) as u32, bench.count(JOBS));
    let mut random = SmallRng::seed_from_u64(SEED);
    let alternatives = alternatives(&mut random, SHAPES, nodes);
    let any_job = |random: &mut SmallRng| site::job(alternatives[random.random_range(0..SHAPES)].clone());
    let mut site = Site::new(nodes, &*super::policies::policy("easy")?)?;
    site.fill(jobs, || any_job(&mut random))?;
    let (mut again, mut first) = (Vec::new(), Vec::new());
    let mut kept = Projection::of(site.projection.state().clone());
    for _ in 0..bench.count(EXPLANATIONS) {
        let records = site.submit(any_job(&mut random))?;
        let waiting = site.waiting();
        let id = waiting[random.random_range(0..waiting.len())];
        let begin = Instant::now();
        records.iter().try_for_each(|record| kept.apply(record).map(drop))?;
        explain_one(&kept, id, site.now)?;
        again.push(begin.elapsed());
        let begin = Instant::now();
        explain_one(&Projection::of(site.projection.state().clone()), id, site.now)?;
        first.push(begin.elapsed());
    }
    let words = format!("{jobs} waiting jobs of {SHAPES} shapes on {nodes} nodes under `easy`");
    Ok([figures(&format!("explanation, {words}"), &mut again), figures(&format!("the first, {words}"), &mut first)]
        .concat())
}

fn figures(measure: &str, times: &mut [Duration]) -> Vec<Figure> {
    let figure = |part: f64| Figure::time(format!("{measure}, p{}", part * 100.0), quantile(times, part), 250.0);
    [0.5, 0.99].map(figure).into()
}

fn explain_one(projection: &Projection, id: JobId, now: Timestamp) -> Result<()> {
    let state = projection.state();
    let job = state.job(id).with_context(|| format!("there is no job {id}"))?;
    let explanation = why::explain(projection.engine(), state, job, now);
    ensure!(explanation.is_some(), "job {id} waits, and was not explained");
    Ok(())
}
