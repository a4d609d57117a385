//! The commands of dialects, each a separate process as users and their tools start them.

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

/// Jobs in a request that submits them.
pub(super) const BULK: usize = 1_000;
/// Distinct names of the waiting jobs.
const NAMES: usize = 97;
/// The most milliseconds for a whole list.
const LIST_MILLISECONDS: f64 = 300.0;
/// The most milliseconds for one job.
const JOB_MILLISECONDS: f64 = 10.0;

/// Lets this many jobs wait, and returns the number of the last one.
pub(super) async fn wait(running: &Running, waiting: usize) -> Result<u64> {
    let mut connection = running.system.connect().await?;
    let jobs: Vec<_> =
        (0..BULK).map(|number| api::command_job(&format!("waiting-{}", number % NAMES), &["/bin/true"])).collect();
    let body = api::submission(jobs)?;
    let mut job = 0;
    for _ in 0..waiting / BULK {
        job = api::submit_body(&mut connection, body.clone()).await?.first().context("no job")?.number;
    }
    Ok(job)
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

    /// How many of these commands can be run one after the other.
    pub(super) async fn rate(&self, mut command: Command, measure: &str, count: usize) -> Result<Figure> {
        command.current_dir(&self.data).stdout(Stdio::null());
        let begin = Instant::now();
        for _ in 0..count {
            ensure!(command.status()?.success(), "{command:?} failed");
            // Lets the program notice an interruption.
            tokio::task::yield_now().await;
        }
        Ok(Figure::rate(measure, count, begin.elapsed(), "commands/s", 500.0))
    }

    /// The time for a list of all waiting jobs.
    pub(super) async fn list(
        &self,
        bench: &Bench,
        name: &str,
        options: &[&str],
        what: &str,
        waiting: usize,
    ) -> Result<Figure> {
        let mut times = self.times(name, options, bench.count(20), waiting).await?;
        let measure = format!("`{name}` with {waiting} waiting jobs, {what}, to a file, p50");
        Ok(Figure::time(measure, quantile(&mut times, 0.5), LIST_MILLISECONDS))
    }

    /// The times for one of the waiting jobs.
    pub(super) async fn single(&self, bench: &Bench, name: &str, options: &[&str], what: &str) -> Result<[Figure; 2]> {
        let mut times = self.times(name, options, bench.count(1_000), 1).await?;
        Ok([("p50", 0.5), ("p99", 0.99)].map(|(which, part)| {
            Figure::time(format!("{what}, {which}"), quantile(&mut times, part), JOB_MILLISECONDS)
        }))
    }

    /// How long each of several calls takes; each must print at least `least` lines.
    pub(super) async fn times(
        &self,
        name: &str,
        arguments: &[&str],
        count: usize,
        least: usize,
    ) -> Result<Vec<Duration>> {
        let listed = self.data.join("listed.txt");
        let mut times = Vec::new();
        for _ in 0..count {
            let mut command = self.command(name, arguments);
            command.stdout(File::create(&listed)?);
            let begin = Instant::now();
            ensure!(command.status()?.success(), "{command:?} failed");
            times.push(begin.elapsed());
            tokio::task::yield_now().await;
        }
        let lines = std::fs::read(&listed)?.iter().filter(|byte| **byte == b'\n').count();
        ensure!(lines >= least, "{name} {arguments:?} listed {lines} lines, not {least}");
        Ok(times)
    }
}
