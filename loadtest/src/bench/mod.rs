//! The benchmarks of `docs/performance.md`: one for each row of its table.

mod beside;
mod fanout;
mod figure;
mod filters;
mod history;
mod memory;
mod nodes;
mod planner;
mod running;
mod slurm;
mod slurm_components;
mod slurm_lists;
mod steps;
mod submission;
mod workload;

use crate::system::{self, Options, System};
use anyhow::{Context as _, Result};
use clap::{Subcommand, ValueEnum};
use figure::Figure;
use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::runtime::{Builder, Handle};

/// Which benchmark, and on what.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    which: Which,
    /// The muster binary under test; a release build, if the figures are to mean something.
    #[arg(long, global = true)]
    muster: Option<PathBuf>,
    /// Where data folders are made: the disk under it is the one that is measured.
    #[arg(long, global = true, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
    /// The folder with the traces that are simulated.
    #[arg(long, global = true, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// How much load, as a part of the usual: for a quick look.
    #[arg(long, global = true, default_value_t = 1.0)]
    scale: f64,
}

#[derive(Subcommand, Clone, Copy, Debug)]
enum Which {
    /// One of them.
    #[command(flatten)]
    One(Row),
    /// All of them, one after the other, as a table.
    All,
}

/// A row of the table.
#[derive(Subcommand, ValueEnum, Clone, Copy, Debug)]
enum Row {
    /// Durable independent submissions, 1,000 per request.
    SubmitBulk,
    /// Durable single submissions over 64 connections.
    SubmitSingle,
    /// An array of 100,000 tasks.
    Array,
    /// A submission beside ten readers of 100,000 jobs each second.
    SubmitLists,
    /// A submission beside 1,000 hostile connections.
    SubmitHostile,
    /// `muster submit` as a command, one after the other.
    CliSubmit,
    /// From the submission to the first instruction of the job's process, on an idle system.
    Latency,
    /// Trivial jobs run to the end, beside bare fork, exec and wait of the same command.
    Throughput,
    /// `srun -n 1000` of a trivial task in an allocation, beside the same tasks as a job.
    Steps,
    /// `sbatch` one after the other, `squeue` with 100,000 waiting jobs.
    SlurmCommands,
    /// From the submission of a job with three components to the start of all of them, on an idle system.
    SlurmComponents,
    /// Cycles of the planner while users list their jobs 1,000 times a second.
    SlurmLists,
    /// Decode and fold of a log.
    Fold,
    /// Restart with 1,000,000 events and 100,000 live jobs.
    Restart,
    /// Queries at a past moment of 1,000,000 events.
    PastQuery,
    /// From an event to its 1,000 subscribers, over HTTP and over NATS.
    Fanout,
    /// Submissions beside the signs of life of 100,000 nodes.
    Heartbeats,
    /// A job on 10,000 nodes, from the planner's decision to its start on all.
    WideLaunch,
    /// Memory of an idle system and of waiting jobs.
    Memory,
    /// Full passes of the planner, and passes after one job has ended.
    Planner,
    /// Full passes of the planner over numbers of jobs, nodes and distinct requests, as a table.
    PlannerCurve,
    /// Passes of the planner while filters of many jobs are asked.
    PlannerVerdicts,
    /// Memory of the planner of a very large site.
    PlannerMemory,
    /// Explanations of why a job waits, of 10,000 that do.
    Explain,
    /// `muster whatif` over a log of 1,000,000 jobs.
    Whatif,
    /// Simulation of the traces in the folder `--traces`.
    Simulate,
    /// A no-op program as submission filter, beside bare fork, exec and wait.
    FilterProgram,
    /// A persistent submission filter.
    FilterPersistent,
    /// Four filter-runners against one.
    FilterScaling,
    /// Jobs without filters while filters of others hang.
    FilterHung,
}

/// What the benchmarks share.
struct Bench {
    muster: PathBuf,
    scratch: PathBuf,
    traces: Option<PathBuf>,
    scale: f64,
}

/// A running system and the folder that goes away with it.
struct Running {
    system: System,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn folder(&self) -> Result<tempfile::TempDir> {
        tempfile::tempdir_in(&self.scratch).with_context(|| format!("no folder in {}", self.scratch.display()))
    }

    /// A fresh system.
    fn start(&self, nodes: u32, cpus: u32) -> Result<Running> {
        let folder = self.folder()?;
        let system = self.start_on(folder.path(), nodes, cpus, None)?;
        Ok(Running { system, _folder: folder })
    }

    /// A fresh system with settings of its own.
    fn start_with(&self, nodes: u32, cpus: u32, config: &str) -> Result<Running> {
        let folder = self.folder()?;
        let file = folder.path().join("muster.toml");
        fs::write(&file, config)?;
        let system = self.start_on(folder.path(), nodes, cpus, Some(file))?;
        Ok(Running { system, _folder: folder })
    }

    fn start_on(&self, data: &Path, nodes: u32, cpus: u32, config: Option<PathBuf>) -> Result<System> {
        System::start(&Options { muster: self.muster.clone(), nodes, cpus, config }, data)
    }

    /// A number of things to do, scaled; at least one.
    fn count(&self, usual: usize) -> usize {
        ((usual as f64 * self.scale) as usize).max(1)
    }

    /// Measures what is nothing but computation. On a thread for such work, so that this program hears meanwhile when it
    /// is to end.
    async fn compute(self: &Arc<Self>, measure: fn(&Self) -> Result<Vec<Figure>>) -> Result<Vec<Figure>> {
        let bench = self.clone();
        tokio::task::spawn_blocking(move || measure(&bench)).await?
    }

    async fn run(self: &Arc<Self>, row: Row) -> Result<Vec<Figure>> {
        match row {
            Row::SubmitBulk => submission::bulk(self).await,
            Row::SubmitSingle => submission::single(self).await,
            Row::Array => submission::array(self).await,
            Row::SubmitLists => beside::lists(self).await,
            Row::SubmitHostile => beside::hostile(self).await,
            Row::CliSubmit => submission::command_line(self).await,
            Row::Latency => running::latency(self).await,
            Row::Throughput => running::throughput(self).await,
            Row::Steps => steps::steps(self).await,
            Row::SlurmCommands => slurm::commands(self).await,
            Row::SlurmComponents => slurm_components::components(self).await,
            Row::SlurmLists => slurm_lists::lists(self).await,
            Row::Fold => self.compute(history::fold).await,
            Row::Restart => history::restart(self).await,
            Row::PastQuery => history::past_query(self).await,
            Row::Fanout => fanout::fanout(self).await,
            Row::Heartbeats => nodes::heartbeats(self).await,
            Row::WideLaunch => nodes::wide_launch(self).await,
            Row::Memory => memory::memory(self).await,
            Row::Planner => self.compute(planner::planner).await,
            Row::PlannerCurve => self.compute(planner::curve).await,
            Row::PlannerVerdicts => self.compute(planner::verdicts).await,
            Row::PlannerMemory => self.compute(planner::memory).await,
            Row::Explain => self.compute(planner::explain).await,
            Row::Whatif => self.compute(planner::whatif).await,
            Row::Simulate => self.compute(planner::simulate).await,
            Row::FilterProgram => filters::program(self).await,
            Row::FilterPersistent => filters::persistent(self).await,
            Row::FilterScaling => filters::scaling(self).await,
            Row::FilterHung => filters::hung(self).await,
        }
    }
}

/// Runs what was asked for and prints its figures.
///
/// # Errors
/// If a benchmark could not be run. A missed target is a figure, not an error.
pub async fn run(args: Args) -> Result<()> {
    raise_open_files()?;
    let Args { muster, scratch, traces, scale, .. } = args;
    let bench = Arc::new(Bench { muster: system::find_muster(muster), scratch, traces, scale });
    let rows: &[Row] = match &args.which {
        Which::One(row) => std::slice::from_ref(row),
        Which::All => Row::value_variants(),
    };
    let mut table = String::from("| measure | target | here | | made by |\n|---|---|---|---|---|\n");
    for row in rows {
        let command = format!("muster-loadtest bench {}", name_of(*row));
        for figure in bench.run(*row).await.with_context(|| command.clone())? {
            println!("{figure}\n    made by `{command}`");
            writeln!(table, "{} `{command}` |", figure.table_cells())?;
        }
    }
    if matches!(args.which, Which::All) {
        println!("\n{table}");
    }
    Ok(())
}

fn name_of(row: Row) -> String {
    row.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Thousands of connections need as many open files; the systems started inherit the limit.
fn raise_open_files() -> Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(())
}

/// A thread for those who would be on other machines. Here they share the processors with what is measured, and must not
/// take one from it whenever they have something to do.
/// It lives as long as this program, as a runtime cannot be dropped amid the work of another.
fn elsewhere() -> Result<&'static Handle> {
    let give_way = || {
        let usual = libc::sched_param { sched_priority: 0 };
        // SAFETY: the call reads `usual` and nothing else; 0 is this thread. If it is refused, a figure is only worse.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const usual) };
    };
    let runtime = Builder::new_multi_thread().worker_threads(1).on_thread_start(give_way).enable_all().build()?;
    Ok(Box::leak(Box::new(runtime)).handle())
}
