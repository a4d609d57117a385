//! The benchmarks of `docs/performance.md`, one for each row of its table.

mod agents;
mod bed;
mod beside;
mod besteffort;
mod commands;
mod fanout;
pub mod figure;
mod filters;
mod history;
mod machine;
mod memory;
mod mpi;
mod nodes;
mod oar;
mod pbs;
mod planner;
mod running;
mod slurm;
mod slurm_components;
mod slurm_lists;
mod steps;
mod submission;
mod workload;

use crate::system;
use anyhow::{Context as _, Result};
use bed::{Bench, Running, elsewhere};
use clap::{Subcommand, ValueEnum};
use figure::Figure;
use std::{fmt::Write as _, path::PathBuf, sync::Arc};

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
    /// What the machine itself can do: every other row is told beside it.
    Machine,
    /// Durable independent submissions, 1,000 per request.
    SubmitBulk,
    /// Durable single submissions over 64 connections.
    SubmitSingle,
    /// An array of 100,000 tasks.
    Array,
    /// A submission while ten readers list 100,000 jobs each second.
    SubmitLists,
    /// A submission with 1,000 hostile connections.
    SubmitHostile,
    /// `muster submit` as a command, one after the other.
    CliSubmit,
    /// From the submission to the first instruction of the job's process, on an idle system.
    Latency,
    /// Trivial jobs run to their end, compared with bare fork, exec and wait of the same command.
    Throughput,
    /// `srun -n 1000` of a trivial task in an allocation, compared with the same tasks as a job.
    Steps,
    /// MPI programs started by `srun`, compared with the launchers of their libraries; fences of 1,024 tasks.
    Mpi,
    /// `qsub` one after the other, `qstat` with 100,000 waiting jobs.
    PbsCommands,
    /// `oarsub` one after the other and with arrays, `oarstat` with 10,000 waiting jobs.
    OarCommands,
    /// Filters of OAR's requests over 100,000 resources.
    OarPredicate,
    /// A job that takes the place of a best-effort job on 100 nodes.
    Besteffort,
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
    /// Submissions together with the signs of life of 100,000 nodes.
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
    /// Cycles of the planner by turns, as under a policy of PBS.
    PlannerTurns,
    /// Passes of the planner under quotas with a weekly calendar, with 10,000 waiting jobs.
    PlannerQuotas,
    /// Memory of the planner of a very large site.
    PlannerMemory,
    /// Explanations of why a job waits, with 10,000 waiting.
    Explain,
    /// `muster whatif` over a log of 1,000,000 jobs.
    Whatif,
    /// Simulation of the traces in the folder `--traces`.
    Simulate,
    /// A no-op program as submission filter, compared with bare fork, exec and wait.
    FilterProgram,
    /// A persistent submission filter.
    FilterPersistent,
    /// Four filter-runners against one.
    FilterScaling,
    /// Jobs without filters while filters of others hang.
    FilterHung,
    /// 10,000 agents that ask one gateway for their orders every 30 s.
    Agents,
}

/// Runs what was asked for and prints its figures.
///
/// # Errors
/// If a benchmark could not run. A missed target is a figure, not an error.
pub async fn run(args: Args) -> Result<()> {
    raise_open_files()?;
    let Args { muster, scratch, traces, scale, .. } = args;
    let bench = Arc::new(Bench { muster: system::find_muster(muster), scratch, traces, scale });
    let rows: Vec<Row> = match &args.which {
        Which::One(Row::Machine) => vec![Row::Machine],
        Which::One(row) => vec![Row::Machine, *row],
        Which::All => Row::value_variants().to_vec(),
    };
    let mut table = String::from("| measure | target | here | | made by |\n|---|---|---|---|---|\n");
    for row in rows {
        let command = format!("muster-loadtest bench {}", name_of(row));
        for figure in measure(&bench, row).await.with_context(|| command.clone())? {
            println!("{figure}\n    made by `{command}`");
            writeln!(table, "{} `{command}` |", figure.table_cells())?;
        }
    }
    if matches!(args.which, Which::All) {
        println!("\n{table}");
    }
    Ok(())
}

/// Measures one row of the table.
async fn measure(bench: &Arc<Bench>, row: Row) -> Result<Vec<Figure>> {
    match row {
        Row::Machine => bench.compute(machine::machine).await,
        Row::SubmitBulk => submission::bulk(bench).await,
        Row::SubmitSingle => submission::single(bench).await,
        Row::Array => submission::array(bench).await,
        Row::SubmitLists => beside::lists(bench).await,
        Row::SubmitHostile => beside::hostile(bench).await,
        Row::CliSubmit => submission::command_line(bench).await,
        Row::Latency => running::latency(bench).await,
        Row::Throughput => running::throughput(bench).await,
        Row::Steps => steps::steps(bench).await,
        Row::Mpi => mpi::mpi(bench).await,
        Row::PbsCommands => pbs::commands(bench).await,
        Row::OarCommands => oar::commands(bench).await,
        Row::OarPredicate => bench.compute(planner::predicate).await,
        Row::Besteffort => besteffort::besteffort(bench).await,
        Row::SlurmCommands => slurm::commands(bench).await,
        Row::SlurmComponents => slurm_components::components(bench).await,
        Row::SlurmLists => slurm_lists::lists(bench).await,
        Row::Fold => bench.compute(history::fold).await,
        Row::Restart => history::restart(bench).await,
        Row::PastQuery => history::past_query(bench).await,
        Row::Fanout => fanout::fanout(bench).await,
        Row::Heartbeats => nodes::heartbeats(bench).await,
        Row::WideLaunch => nodes::wide_launch(bench).await,
        Row::Memory => memory::memory(bench).await,
        Row::Planner => bench.compute(planner::planner).await,
        Row::PlannerCurve => bench.compute(planner::curve).await,
        Row::PlannerVerdicts => bench.compute(planner::verdicts).await,
        Row::PlannerTurns => bench.compute(planner::turns).await,
        Row::PlannerQuotas => bench.compute(planner::quotas).await,
        Row::PlannerMemory => bench.compute(planner::memory).await,
        Row::Explain => bench.compute(planner::explain).await,
        Row::Whatif => bench.compute(planner::whatif).await,
        Row::Simulate => bench.compute(planner::simulate).await,
        Row::FilterProgram => filters::program(bench).await,
        Row::FilterPersistent => filters::persistent(bench).await,
        Row::FilterScaling => filters::scaling(bench).await,
        Row::FilterHung => filters::hung(bench).await,
        Row::Agents => agents::agents(bench).await,
    }
}

fn name_of(row: Row) -> String {
    row.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Thousands of connections need as many open files; the started systems inherit the limit.
///
/// # Errors
/// The limit cannot be read or raised.
pub fn raise_open_files() -> Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    Ok(())
}
