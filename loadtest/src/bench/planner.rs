//! How fast the planner plans, without a system around it: one core, no log.

mod explain;
mod policies;
mod predicate;
mod quotas;
mod scene;
mod site;
mod traces;
mod turns;
mod whatif;

use super::{
    Bench,
    figure::{Figure, Target, quantile},
};
use anyhow::{Context as _, Result};
use muster_planner::Engine;
use muster_schemas::filter::ActivationOrdering;
use policies::policy;
use scene::Scene;
use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

pub use explain::explain;
pub use predicate::predicate;
pub use quotas::quotas;
pub use traces::simulate;
pub use turns::turns;
pub use whatif::whatif;

/// Nodes, waiting jobs and distinct requests of the usual site.
const USUAL: (u32, usize, usize) = (10_000, 100_000, 1_000);
/// The same for a very large one.
const LARGE: (u32, usize, usize) = (100_000, 1_000_000, 1_000);
/// With `conservative`, a pass over more waiting jobs than this takes minutes and is left out of the curve.
const CONSERVATIVE_MOST: usize = 100_000;
/// How often a full pass is made; the median counts.
const ROUNDS: usize = 5;
/// After this long no further pass is made.
const LONG: Duration = Duration::from_secs(5);
/// After how many ends of jobs a pass is measured.
const ENDS: usize = 1_000;
/// The same if each takes long.
const ENDS_WITH_PROMISES: usize = 50;
/// Jobs whose activation filters are being called.
const VERDICTS: usize = 10_000;
/// Distinct requests in the curve: few, and many.
const SHAPES: [usize; 2] = [10, 10_000];

/// Full passes, and passes after the end of one job.
pub fn planner(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (policy, target_ms, ends) in [("easy", 100.0, ENDS), ("conservative", 1_000.0, ENDS_WITH_PROMISES)] {
        let mut scene = settled(policy, scaled(bench, USUAL))?;
        let words = scene.words();
        figures.push(Figure::time(format!("full pass, `{policy}`, {words}"), full_pass(&scene)?, target_ms));
        let mut times = passes_after_ends(&mut scene, bench.count(ends))?;
        for part in [0.5, 0.99] {
            let measure = format!("pass after one job ended, `{policy}`, {words}, p{}", part * 100.0);
            figures.push(Figure::time(measure, quantile(&mut times, part), 5.0));
        }
    }
    let scene = settled("easy", scaled(bench, LARGE))?;
    let measure = format!("full pass, `easy`, {}", scene.words());
    figures.push(Figure::time(measure, full_pass(&scene)?, 2_000.0));
    Ok(figures)
}

/// Passes after the end of one job, compared with those of the same site while many verdicts of activation filters are
/// outstanding: they take turns, so that both find the machine in the same state.
pub fn verdicts(bench: &Bench) -> Result<Vec<Figure>> {
    let size = scaled(bench, USUAL);
    let mut plain = settled("easy", size)?;
    let mut asking = settled("easy", size)?.asking(bench.count(VERDICTS));
    let words = plain.words();
    let mut full = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (scene, times) in [&plain, &asking].into_iter().zip(&mut full) {
            times.push(full_pass(scene)?);
        }
    }
    let mut engines = [relaxed(&plain)?, relaxed(&asking)?];
    plain.plan(&mut engines[0]);
    asking.plan(&mut engines[1]);
    let mut after_end = [Vec::new(), Vec::new()];
    for _ in 0..bench.count(ENDS) {
        for (scene, (engine, times)) in
            [&mut plain, &mut asking].into_iter().zip(engines.iter_mut().zip(&mut after_end))
        {
            times.push(pass_after_end(scene, engine));
        }
    }
    let figure = |kind: &str, times: &mut [Vec<Duration>; 2]| {
        let [without, with] = times.each_mut().map(|times| quantile(times, 0.5).as_secs_f64() * 1e3);
        let measure = format!(
            "{kind}, `easy`, {words}, p50, with {} verdicts outstanding, as a part of that without \
             ({without:.3} ms and {with:.3} ms)",
            bench.count(VERDICTS)
        );
        Figure { measure, value: with / without * 100.0, unit: "%", target: Target::AtMost(105.0) }
    };
    Ok(vec![figure("full pass", &mut full), figure("pass after one job ended", &mut after_end)])
}

/// Holds nobody back, so that a pass has as much to do as without filters.
fn relaxed(scene: &Scene) -> Result<Engine> {
    let mut engine = scene.engine(&scene.policy)?;
    engine.set_ordering(ActivationOrdering::Relaxed);
    Ok(engine)
}

/// The memory of the planner of a very large site. Run it in a separate process, so that nothing else counts.
pub fn memory(bench: &Bench) -> Result<Vec<Figure>> {
    let (nodes, jobs, shapes) = scaled(bench, LARGE);
    let scene = Scene::new(nodes, jobs, shapes);
    let words = scene.words();
    let mut engine = scene.engine(&policy("easy")?)?;
    // The engine has everything now; what made it is not counted.
    let now = scene.now;
    drop(scene);
    engine.pass(now, &BTreeSet::new());
    let value = resident_bytes()? as f64 / f64::from(1 << 30);
    let measure = format!("memory of the planner (resident, the whole process), {words}");
    Ok(vec![Figure { measure, value, unit: "GiB", target: Target::AtMost(4.0) }])
}

/// The time of a full pass over numbers of jobs, nodes and distinct requests, printed as a table.
pub fn curve(bench: &Bench) -> Result<Vec<Figure>> {
    for policy in ["easy", "conservative"] {
        println!("\nfull pass, `{policy}`, ms\n\n| nodes | shapes | 1k jobs | 10k jobs | 100k jobs | 1M jobs |");
        println!("|---|---|---|---|---|---|");
        for nodes in [100, 1_000, 10_000, 100_000] {
            for shapes in SHAPES {
                let mut row = format!("| {nodes} | {shapes} |");
                for jobs in [1_000, 10_000, 100_000, 1_000_000] {
                    if policy == "conservative" && jobs > CONSERVATIVE_MOST {
                        row += " - |";
                        continue;
                    }
                    let scene = settled(policy, (nodes, bench.count(jobs), shapes))?;
                    row += &format!(" {:.1} |", full_pass(&scene)?.as_secs_f64() * 1e3);
                }
                println!("{row}");
            }
        }
    }
    Ok(Vec::new())
}

fn scaled(bench: &Bench, (nodes, jobs, shapes): (u32, usize, usize)) -> (u32, usize, usize) {
    (bench.count(nodes as usize) as u32, bench.count(jobs), shapes)
}

/// A site on which everything has started that can start.
fn settled(name: &str, (nodes, jobs, shapes): (u32, usize, usize)) -> Result<Scene> {
    let mut scene = Scene::new(nodes, jobs, shapes);
    let mut engine = scene.engine(&policy(name)?)?;
    while scene.plan(&mut engine).is_cut_short {}
    scene.policy = policy(name)?;
    Ok(scene)
}

/// A pass of an engine that has no plan and no promises yet.
fn full_pass(scene: &Scene) -> Result<Duration> {
    let mut times = Vec::with_capacity(ROUNDS);
    let first = Instant::now();
    while times.len() < ROUNDS && first.elapsed() < LONG {
        let mut engine = relaxed(scene)?;
        let begin = Instant::now();
        engine.pass(scene.now, &BTreeSet::new());
        times.push(begin.elapsed());
    }
    Ok(quantile(&mut times, 0.5))
}

/// The times of later passes of an engine, each after the end of one job: at most this many, and none begins after [`LONG`].
fn passes_after_ends(scene: &mut Scene, ends: usize) -> Result<Vec<Duration>> {
    let mut engine = scene.engine(&scene.policy)?;
    scene.plan(&mut engine);
    let mut times = Vec::new();
    let first = Instant::now();
    while times.len() < ends && first.elapsed() < LONG {
        times.push(pass_after_end(scene, &mut engine));
    }
    Ok(times)
}

fn pass_after_end(scene: &mut Scene, engine: &mut Engine) -> Duration {
    scene.end_one(engine);
    let begin = Instant::now();
    let plan = engine.pass(scene.now, &BTreeSet::new());
    let time = begin.elapsed();
    scene.follow(engine, &plan);
    time
}

/// The resident memory of this process.
fn resident_bytes() -> Result<u64> {
    let path = "/proc/self/status";
    let text = fs::read_to_string(path).context(path)?;
    let line =
        text.lines().find_map(|line| line.strip_prefix("VmRSS:")).with_context(|| format!("{path}: no VmRSS"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
