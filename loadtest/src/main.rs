//! Load on a real system: replays of real traces, and the benchmarks of `docs/performance.md`.

mod api;
mod bench;
mod http;
mod replay;
mod simulation;
mod swarm;
mod system;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
#[command(name = "muster-loadtest", about, version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Submit the jobs of a trace at their real, compressed moments; every job is a real process.
    Replay(replay::Args),
    /// Run any number of seeds of the simulation with faults.
    Simulation(simulation::Args),
    /// Thousands of nodes without processes on a real bus.
    Swarm(swarm::Args),
    /// Measure, and compare with the targets.
    Bench(bench::Args),
}

/// The same allocator as the program under test, so that both fold the log at the same speed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        let outcome = runtime.block_on(async {
            tokio::select! {
                outcome = run(cli.command) => outcome,
                // If dropped half-way, the work stops the systems that it started.
                interrupted = interruption() => interrupted.and_then(|()| bail!("interrupted")),
            }
        });
        // A computing thread has nothing to clean up, and would otherwise run to its end.
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("muster-loadtest: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Replay(args) => replay::run(args).await,
        Command::Simulation(args) => tokio::task::spawn_blocking(move || simulation::run(&args)).await?,
        Command::Swarm(args) => swarm::run(args).await,
        Command::Bench(args) => bench::run(args).await,
    }
}

/// Returns when somebody asks this program to end.
async fn interruption() -> Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of this program that a page shows: lines of its blocks, and code in its text such as
    /// `muster-loadtest ...` or, in its tables, `bench ...`.
    fn commands(page: &str) -> Vec<String> {
        let mut commands = Vec::new();
        let mut is_block = false;
        for line in page.lines() {
            if line.starts_with("```") {
                is_block = !is_block;
            } else if is_block {
                let typed = line.split(" #").next().unwrap_or_default().trim();
                commands.extend(typed.strip_prefix("muster-loadtest ").map(str::to_owned));
            } else {
                let quoted = line.split('`').skip(1).step_by(2);
                let typed = |quoted: &str| match quoted.strip_prefix("muster-loadtest ") {
                    Some(typed) => Some(typed.to_owned()),
                    None => quoted.starts_with("bench ").then(|| quoted.to_owned()),
                };
                commands.extend(quoted.filter_map(typed));
            }
        }
        commands
    }

    #[test]
    fn the_chapter_on_performance_names_commands_that_there_are() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance.md");
        let page = std::fs::read_to_string(page).expect("a chapter");
        let commands = commands(&page);
        assert!(commands.len() > 40, "{commands:?}");
        for command in commands {
            let words = ["muster-loadtest"].into_iter().chain(command.split_whitespace());
            if let Err(error) = Cli::try_parse_from(words) {
                panic!("docs/performance.md: `{command}`: {error}");
            }
        }
    }
}
