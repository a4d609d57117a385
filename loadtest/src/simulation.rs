//! Runs any number of seeds of the simulation with faults; the tests run a few hundred.

use anyhow::Context as _;
use muster_tests::simulation::{self, Kills, Options, Report};
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
    /// How many simulated seconds have faults
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(i64).range(1..=3600))]
    troubled_seconds: i64,
    /// Nodes of the simulated cluster
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    nodes: u8,
    /// Filter-runners; with none there are no filters
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    runners: u8,
    /// Users mostly submit jobs with several components, and hold, release and end single ones
    #[arg(long)]
    components: bool,
    /// There are planning domains, quotas, runs that make way, fixed starts, nodes that sleep, and a node whose agent vanishes
    #[arg(long)]
    mechanisms: bool,
}

/// Runs the seeds on all processors.
///
/// # Errors
/// The first promise that was broken.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let options = Options {
        nodes: args.nodes.into(),
        troubled_seconds: args.troubled_seconds,
        runners: args.runners.into(),
        components: args.components,
        mechanisms: args.mechanisms,
        ..Options::default()
    };
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
    print!("{}", summary(args.seeds, &total));
    Ok(())
}

/// The totals of all seeds, one line for each.
fn summary(seeds: u64, total: &Report) -> String {
    let Report { steps, jobs, starts, instances, resizes, crashes, torn_writes, records, chains, reverts, .. } = total;
    let Report { attempts, shared, ended_alone, requeued, kills, .. } = total;
    let Kills { of_runners, in_rollback, in_activation, in_submission } = kills;
    let hits = kills.total();
    format!(
        "{seeds} seeds kept every promise\n\
         {steps} steps, {records} records, {jobs} jobs, {starts} starts on nodes\n\
         {instances} instances of tasks, {resizes} times that a job grew or shrank\n\
         {attempts} attempts of jobs with several components, {shared} times that they shared a node, {requeued} times that such a job was put back into the queue, \
         {ended_alone} components that ended alone\n\
         {crashes} stops, {torn_writes} of them with a torn write\n\
         {chains} chains of filters, {reverts} reverts\n\
         {hits} stops hit a chain: {in_submission} in submission, {in_activation} in activation, {in_rollback} in \
         rollback, {of_runners} of a runner with a call\n"
    )
}
