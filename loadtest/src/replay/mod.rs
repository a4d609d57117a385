//! Replay of a real trace against a running system: every job is a real process that lives for its scaled run time.

mod history;
mod schedule;
mod verify;

use crate::{
    api,
    http::{Connection, Endpoint},
    system::{self, System},
};
use anyhow::{Context as _, Result, bail, ensure};
use history::History;
use muster_schemas::{JobId, job::JobSpec};
use muster_swf::Trace;
use schedule::{Replayed, Schedule};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// Nodes of a system that the replay starts itself.
const NODES: u32 = 4;

/// Submit the jobs of a trace at their real, compressed moments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The trace: Standard Workload Format, plain or gzip-compressed.
    trace: PathBuf,
    /// How many jobs to submit, in queue order.
    #[arg(long, default_value_t = 500)]
    jobs: usize,
    /// How many jobs at the beginning to leave out.
    #[arg(long, default_value_t = 0)]
    skip: usize,
    /// How many seconds of the trace pass in one second here: submit and run times are divided by it.
    #[arg(long, default_value_t = 20_000.0, value_parser = speedup)]
    speedup: f64,
    /// Processors of the machine, if the trace's header is not to be believed.
    #[arg(long)]
    procs: Option<u64>,
    /// At the end check that every job ran once and for its time, that the usage is what the trace implies, and that
    /// the log is whole.
    #[arg(long)]
    verify: bool,
    /// By how much the time that a run is charged may differ from the life of its process, on average over all jobs:
    /// launching, reaping and writing down both moments take time.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25)]
    overhead_seconds: f64,
    /// Give up when nothing has happened for this long beyond the longest job.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    patience_seconds: u64,
    /// Replay on the system of this data folder, which runs already, instead of on one of our own.
    #[arg(long, conflicts_with = "server")]
    data: Option<PathBuf>,
    /// Replay on the system of this gateway (`http://HOST:PORT`), which runs already.
    #[arg(long)]
    server: Option<String>,
    /// The token for that gateway.
    #[arg(long, env = "MUSTER_TOKEN", requires = "server")]
    token: Option<String>,
    /// The muster binary: for a system of our own and for `audit verify`.
    #[arg(long)]
    muster: Option<PathBuf>,
}

fn speedup(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "must be a number".to_owned())?;
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err("must be above 0".to_owned()) }
}

/// The system for the replay.
enum Target {
    /// One that we started, on a temporary folder.
    Own { system: System, _folder: tempfile::TempDir },
    /// One that was running before.
    Running { endpoint: Endpoint, asked_with: Vec<String> },
}

impl Target {
    fn endpoint(&self) -> Endpoint {
        match self {
            Self::Own { system, .. } => system.endpoint(),
            Self::Running { endpoint, .. } => endpoint.clone(),
        }
    }

    /// `muster audit verify` on this system.
    fn audit_command(&self, muster: &Path) -> std::process::Command {
        match self {
            Self::Own { system, .. } => system.command(&["audit", "verify"]),
            Self::Running { asked_with, .. } => {
                let mut command = std::process::Command::new(muster);
                command.args(["audit", "verify"]).args(asked_with);
                command
            }
        }
    }
}

/// Runs the replay and prints the result.
///
/// # Errors
/// If it could not run to its end, or the result differs from what the trace implies.
pub async fn run(args: Args) -> Result<()> {
    let trace = Trace::open(&args.trace, args.procs)?;
    let work = tempfile::tempdir()?;
    let markers = work.path().join("markers");
    let schedule = Schedule::new(trace.window(args.skip, args.jobs), args.speedup, &markers);
    ensure!(!schedule.jobs.is_empty(), "{} has no jobs there", args.trace.display());
    announce(&args, &trace, &schedule);

    let muster = system::find_muster(args.muster.clone());
    let target = start(&args, &muster, trace.machine_procs).await?;
    let mut connection = Connection::open(&target.endpoint()).await?;
    let path = api::events_from_now(&mut connection, history::KINDS).await?;
    let events = Connection::open(&target.endpoint()).await?.events(&path).await?;

    let patience = Duration::from_secs(args.patience_seconds) + schedule.longest_life();
    let expected = schedule.jobs.len();
    let follower = tokio::spawn(async move { History::follow(events, expected, patience).await });
    let (ids, lateness) = submit_all(&mut connection, &schedule).await?;
    let history = follower.await??;

    println!(
        "replayed: {} jobs in {:.1} s, submitted at most {} ms after their moment",
        ids.len(),
        history.span_seconds(),
        lateness.as_millis()
    );
    if args.verify {
        let findings = verify::Findings {
            replayed: &schedule.jobs,
            ids: &ids,
            history: &history,
            markers: &markers,
            overhead_allowed: Duration::from_secs_f64(args.overhead_seconds),
        };
        findings.check(&mut connection).await?;
        verify_audit(target.audit_command(&muster))?;
        println!("verified");
    }
    match target {
        Target::Own { system, .. } => system.stop(),
        Target::Running { .. } => Ok(()),
    }
}

fn announce(args: &Args, trace: &Trace, schedule: &Schedule) {
    let dropped = match trace.dropped.total() {
        0 => "no line dropped".to_owned(),
        total => format!("{total} lines dropped: {:?}", trace.dropped),
    };
    println!(
        "trace: {}, {} processors, {} jobs accepted, {dropped}",
        args.trace.display(),
        trace.machine_procs,
        trace.jobs.len(),
    );
    println!(
        "window: {} jobs after the first {}, submitted over {:.1} s, longest life {:.1} s, {:.1} core-seconds in all",
        schedule.jobs.len(),
        args.skip,
        schedule.span().as_secs_f64(),
        schedule.longest_life().as_secs_f64(),
        schedule.core_seconds()
    );
}

async fn start(args: &Args, muster: &Path, machine_procs: u64) -> Result<Target> {
    if let Some(data) = &args.data {
        let asked_with = vec!["--data".to_owned(), data.display().to_string()];
        return Ok(Target::Running { endpoint: Endpoint::Socket(data.join("muster.sock")), asked_with });
    }
    if let Some(server) = &args.server {
        let authority = server.strip_prefix("http://").context("--server must begin with http://")?;
        let endpoint =
            Endpoint::Tcp { authority: authority.trim_end_matches('/').to_owned(), token: args.token.clone() };
        return Ok(Target::Running { endpoint, asked_with: vec!["--server".to_owned(), server.clone()] });
    }
    let folder = tempfile::tempdir()?;
    let cpus = u32::try_from(machine_procs.div_ceil(NODES.into()))?;
    let options = system::Options { muster: muster.to_owned(), nodes: NODES, cpus, config: None };
    let system = System::start(&options, folder.path())?;
    api::deal_out_cores(&mut system.connect().await?, machine_procs).await?;
    Ok(Target::Own { system, _folder: folder })
}

/// Submits every job at its moment; jobs that are due together go in one request. Returns their numbers in the order of
/// the schedule, and the largest delay.
async fn submit_all(connection: &mut Connection, schedule: &Schedule) -> Result<(Vec<JobId>, Duration)> {
    let begin = Instant::now();
    let mut ids = Vec::with_capacity(schedule.jobs.len());
    let mut lateness = Duration::ZERO;
    let mut waiting = schedule.jobs.as_slice();
    while let Some(next) = waiting.first() {
        tokio::time::sleep_until(begin + next.at).await;
        let due = waiting.iter().take_while(|job| begin + job.at <= Instant::now()).count().max(1);
        let (now, later) = waiting.split_at(due);
        let specs: Vec<JobSpec> = now.iter().map(Replayed::spec).collect();
        ids.extend(api::submit(connection, specs).await?);
        lateness = lateness.max(begin.elapsed().saturating_sub(next.at));
        waiting = later;
    }
    Ok((ids, lateness))
}

fn verify_audit(mut command: std::process::Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "the audit does not verify:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    print!("audit: {}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}
