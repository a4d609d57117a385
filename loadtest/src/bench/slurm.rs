//! The commands of the Slurm dialect, each a separate process as users and their tools start them. Nodes are drained,
//! so that only the commands are measured.

use super::{
    Bench, Running,
    figure::{Figure, quantile},
};
use crate::api;
use anyhow::{Context as _, Result, ensure};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Jobs that wait while `squeue` is measured.
pub(super) const WAITING: usize = 100_000;
/// Jobs in a request that submits them.
pub(super) const BULK: usize = 1_000;
/// Distinct names of the waiting jobs.
const NAMES: usize = 97;

/// `sbatch` repeatedly; `squeue` of all jobs and of one job, with many waiting.
pub async fn commands(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(1, 1)?;
    api::drain_all_nodes(&mut running.system.connect().await?, 1).await?;
    let links = Links::make(&running)?;
    let mut figures = vec![links.sbatch(bench.count(2_000)).await?];
    let waiting = bench.count(WAITING).next_multiple_of(BULK);
    let mut connection = running.system.connect().await?;
    let jobs: Vec<_> =
        (0..BULK).map(|number| api::command_job(&format!("waiting-{}", number % NAMES), &["/bin/true"])).collect();
    let body = api::submission(jobs)?;
    let mut job = 0;
    for _ in 0..waiting / BULK {
        job = api::submit_body(&mut connection, body.clone()).await?.first().context("no job")?.number;
    }
    let own = ["-h", "-o", "%i|%j|%T|%u|%a|%Q|%r|%V"];
    for (what, options) in [("whole list", &[][..]), ("whole list in a format of one's own", &own[..])] {
        let mut times = links.squeue(options, bench.count(20), waiting).await?;
        let measure = format!("`squeue` with {waiting} waiting jobs, {what}, to a file, p50");
        figures.push(Figure::time(measure, quantile(&mut times, 0.5), 300.0));
    }
    let mut times = links.squeue(&["-h", "-j", &job.to_string()], bench.count(1_000), 1).await?;
    let measure = |which| format!("`squeue -j ID` with {waiting} waiting jobs, {which}");
    figures.push(Figure::time(measure("p50"), quantile(&mut times, 0.5), 10.0));
    figures.push(Figure::time(measure("p99"), quantile(&mut times, 0.99), 10.0));
    running.system.stop()?;
    Ok(figures)
}

/// The links to the program of the commands, and a copy of that program, as an installation has it. The file that the linker has
/// left is another matter: written through a mapping, it lies in the page cache in pieces of 4 KiB, and a command that has to
/// bring in hundreds of them takes a sixth longer.
pub(super) struct Links {
    folder: PathBuf,
    data: PathBuf,
}

impl Links {
    pub(super) fn make(running: &Running) -> Result<Self> {
        let data = running.system.data().to_owned();
        let folder = data.join("commands");
        std::fs::create_dir_all(&folder)?;
        let program = folder.join("muster");
        std::fs::copy(running.system.program(), &program).context("the program cannot be copied")?;
        let mut install = Command::new(&program);
        let status = install.arg("install-commands").arg(&folder).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "{install:?} failed");
        Ok(Self { folder, data })
    }

    /// The data folder of the system that the commands talk to.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    pub(super) fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.folder.join(name));
        command.args(arguments).env("MUSTER_DATA", &self.data).env_remove("MUSTER_SERVER").stdin(Stdio::null());
        command
    }

    async fn sbatch(&self, count: usize) -> Result<Figure> {
        let mut command = self.command("sbatch", &["--wrap", "true"]);
        command.current_dir(&self.data).stdout(Stdio::null());
        let begin = Instant::now();
        for _ in 0..count {
            ensure!(command.status()?.success(), "{command:?} failed");
            // Lets the program notice an interruption.
            tokio::task::yield_now().await;
        }
        let measure = "`sbatch --wrap true`, one after the other";
        Ok(Figure::rate(measure, count, begin.elapsed(), "commands/s", 500.0))
    }

    /// How long each of several calls takes; each must print at least `least` lines.
    async fn squeue(&self, arguments: &[&str], count: usize, least: usize) -> Result<Vec<Duration>> {
        let listed = self.data.join("squeue.txt");
        let mut times = Vec::new();
        for _ in 0..count {
            let mut command = self.command("squeue", arguments);
            command.stdout(File::create(&listed)?);
            let begin = Instant::now();
            ensure!(command.status()?.success(), "{command:?} failed");
            times.push(begin.elapsed());
            tokio::task::yield_now().await;
        }
        let lines = std::fs::read(&listed)?.iter().filter(|byte| **byte == b'\n').count();
        ensure!(lines >= least, "squeue {arguments:?} listed {lines} lines, not {least}");
        Ok(times)
    }
}
