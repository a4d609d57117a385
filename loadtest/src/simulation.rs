//! Any number of seeds of the simulation with faults, of which the tests run some hundred.

use anyhow::Context as _;
use muster_tests::simulation::{self, Options, Report};
use std::{sync::Mutex, thread};

/// Options of `muster-loadtest simulation`.
#[derive(clap::Args)]
pub struct Args {
    /// How many seeds
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// For so many simulated seconds there are faults
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(i64).range(1..=3600))]
    troubled_seconds: i64,
    /// Nodes of the simulated cluster
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    nodes: u8,
}

/// Runs the seeds on all processors.
///
/// # Errors
/// The first promise that was broken.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let options = Options { nodes: args.nodes.into(), troubled_seconds: args.troubled_seconds, ..Options::default() };
    let next = Mutex::new((args.from, Report::default()));
    let end = args.from.saturating_add(args.seeds);
    let work = || -> anyhow::Result<()> {
        loop {
            let seed = {
                let mut next = next.lock().map_err(|_| anyhow::anyhow!("another seed failed"))?;
                if next.0 >= end {
                    return Ok(());
                }
                next.0 += 1;
                next.0 - 1
            };
            let report = simulation::run(seed, options).context("a promise was broken")?;
            next.lock().map_err(|_| anyhow::anyhow!("another seed failed"))?.1.add(report);
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a simulation panicked"))?)
    })?;
    let total = next.lock().map_err(|_| anyhow::anyhow!("a simulation panicked"))?.1;
    println!("{} seeds kept every promise: {total:?}", args.seeds);
    Ok(())
}
