//! How fast whole traces are simulated.

use super::policies::{policy, with_fair_share};
use crate::bench::{Bench, figure::Figure};
use anyhow::{Context as _, Result, ensure};
use muster_planner::simulate::{self, Machine, Workload};
use muster_swf::Trace;
use std::{fs, path::PathBuf, sync::Arc, time::Instant};

/// Jobs per second of `simulate`, for each trace in a folder: `easy`, `conservative`, and fifo with fair share, on one core,
/// without reading it.
pub fn simulate(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for path in traces(bench)? {
        let trace = Trace::open(&path, None)?;
        let trace_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let jobs = bench.count(trace.jobs.len());
        let machine = Machine::Pool { procs: u32::try_from(trace.machine_procs)? };
        let users = trace.jobs.iter().map(|job| job.user).collect();
        let policies = [
            ("`easy`", policy("easy")?, 200_000.0),
            ("`conservative`", policy("conservative")?, 20_000.0),
            ("fifo with fair share", Arc::new(with_fair_share(&users)), 150_000.0),
        ];
        for (name, policy, target) in policies {
            let workload = Workload::new(trace.window(0, jobs), &trace.headers, &machine, &policy);
            let begin = Instant::now();
            simulate::simulate(&machine, &workload, &policy, &mut |_| {})?;
            let measure = format!("simulation with {name}, {trace_name}, {jobs} jobs");
            figures.push(Figure::rate(measure, jobs, begin.elapsed(), "jobs/s", target));
        }
    }
    Ok(figures)
}

fn traces(bench: &Bench) -> Result<Vec<PathBuf>> {
    let folder = bench.traces.as_deref().context("name the folder with the traces: --traces DIR")?;
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.to_string_lossy().contains(".swf"));
    paths.sort();
    ensure!(!paths.is_empty(), "no trace (.swf, .swf.gz) in {}", folder.display());
    Ok(paths)
}
