//! The commands of the Slurm dialect, each a process of its own as people and their tools start them. Nodes are drained, so
//! that nothing but the commands is measured.

use super::{
    Bench, Running,
    figure::{Figure, Target, quantile},
    filters,
};
use crate::{api, system::System};
use anyhow::{Context as _, Result, ensure};
use muster_schemas::job::Holds;
use std::{
    fs::{self, File, Permissions},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tokio::{sync::watch, task::JoinSet};

/// Jobs that wait while `squeue` is measured.
const WAITING: usize = 100_000;
/// Jobs in a request that submits them.
const BULK: usize = 1_000;
/// Who waits, beside the one who asks.
const NAMES: usize = 97;
/// Requests of `squeue -u` in a second, and the connections that they come over.
const LISTS_PER_SECOND: u32 = 1_000;
const LISTING_CONNECTIONS: u32 = 40;
/// Who lists the own jobs, and how many these are.
const LISTING_USER: &str = "nobody";
const LISTED_JOBS: usize = 10;
/// Jobs that start while others list, in each of the rounds with and without lists.
const STARTS: usize = 2_500;
const ROUNDS: usize = 6;

/// `sbatch` one after the other; `squeue` of all and of one job with many that wait.
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

/// What lists of users' jobs do to the start of others: what `squeue -u` asks for, 1,000 times a second, while jobs start
/// one after the other. The requests come over kept connections: as many processes would be the load themselves.
pub async fn lists(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start(4, 64)?;
    let system = &running.system;
    let others = bench.count(WAITING).next_multiple_of(BULK);
    submit_held(system, others).await?;
    submit_as_listing_user(&running)?;
    let starts = bench.count(STARTS);
    let (mut without, mut with, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    let mut listed_for = Duration::ZERO;
    for _ in 0..ROUNDS {
        without.push(quantile(&mut filters::starts(system, starts).await?, 0.99));
        let load = Lists::begin(system).await?;
        let begin = Instant::now();
        with.push(quantile(&mut filters::starts(system, starts).await?, 0.99));
        listed_for += begin.elapsed();
        lists.extend(load.end().await?);
    }
    running.system.stop()?;
    let [without, with] = [&mut without, &mut with].map(|p99s| quantile(p99s, 0.5));
    let measure = format!(
        "submit to start while jobs of a user are listed, p99, as a part of that without lists ({:.1} ms and {:.1} ms)",
        with.as_secs_f64() * 1e3,
        without.as_secs_f64() * 1e3
    );
    let value = with.as_secs_f64() / without.as_secs_f64() * 100.0;
    let what = format!("lists of {LISTED_JOBS} jobs among {others}, none failed");
    Ok(vec![
        Figure { measure, value, unit: "%", target: Target::AtMost(105.0) },
        Figure::rate(what.clone(), lists.len(), listed_for, "lists/s", f64::from(LISTS_PER_SECOND) * 0.99),
        Figure::time(format!("{what}, p99"), quantile(&mut lists, 0.99), 10.0),
    ])
}

/// Jobs of the caller that are not listed and do not start.
async fn submit_held(system: &System, count: usize) -> Result<()> {
    let mut connection = system.connect().await?;
    let mut job = api::command_job("held", &["/bin/true"]);
    job.components[0].holds = Holds { user: true, ..Holds::default() };
    let body = api::submission(vec![job; BULK])?;
    for _ in 0..count / BULK {
        api::submit_body(&mut connection, body.clone()).await?;
    }
    Ok(())
}

/// The jobs that are listed, submitted by their owner.
fn submit_as_listing_user(running: &Running) -> Result<()> {
    let user = nix::unistd::User::from_name(LISTING_USER)?.context("there is no user `nobody`")?;
    // The folder is made for its owner alone, and the program may be in one that is.
    let data = running.system.data();
    fs::set_permissions(data, Permissions::from_mode(0o755))?;
    let program = data.join("muster");
    fs::copy(running.system.program(), &program)?;
    for _ in 0..LISTED_JOBS {
        let mut command = Command::new(&program);
        command.args(["slurm", "sbatch", "-H", "-o", "/dev/null", "--wrap", "true"]).env("MUSTER_DATA", data);
        command.env_remove("MUSTER_SERVER").stdin(Stdio::null());
        command.uid(user.uid.as_raw()).gid(user.gid.as_raw()).current_dir("/").stdout(Stdio::null());
        ensure!(command.status()?.success(), "{command:?} failed as {LISTING_USER}; this benchmark is for root");
    }
    Ok(())
}

/// Lists that are asked for again and again until it is ended.
struct Lists {
    callers: JoinSet<Result<Vec<Duration>>>,
    stop: watch::Sender<bool>,
}

impl Lists {
    async fn begin(system: &System) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let mut callers = JoinSet::new();
        for _ in 0..LISTING_CONNECTIONS {
            let mut connection = system.connect().await?;
            let stopped = stopped.clone();
            let mut due = tokio::time::interval(Duration::from_secs(1) * LISTING_CONNECTIONS / LISTS_PER_SECOND);
            callers.spawn(async move {
                let path = format!("/v1/jobs/all?user={LISTING_USER}");
                let mut times = Vec::new();
                while !*stopped.borrow() {
                    due.tick().await;
                    let begin = Instant::now();
                    let list = connection.get_bytes(&path).await?;
                    times.push(begin.elapsed());
                    ensure!(list.len() > 40 * LISTED_JOBS, "{path} answered with {} bytes only", list.len());
                }
                Ok(times)
            });
        }
        Ok(Self { callers, stop })
    }

    /// How long each list took.
    async fn end(mut self) -> Result<Vec<Duration>> {
        self.stop.send_replace(true);
        let mut times = Vec::new();
        while let Some(caller) = self.callers.join_next().await {
            times.extend(caller??);
        }
        Ok(times)
    }
}

/// The links by which the program is the commands.
pub(super) struct Links {
    folder: PathBuf,
    data: PathBuf,
}

impl Links {
    pub(super) fn make(running: &Running) -> Result<Self> {
        let data = running.system.data().to_owned();
        let folder = data.join("commands");
        let mut install = running.system.command(&["install-commands"]);
        let status = install.arg(&folder).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "{install:?} failed");
        Ok(Self { folder, data })
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
            // So that an interruption is heard.
            tokio::task::yield_now().await;
        }
        let measure = "`sbatch --wrap true`, one after the other";
        Ok(Figure::rate(measure, count, begin.elapsed(), "commands/s", 500.0))
    }

    /// How long each of several calls takes; there must be `least` lines.
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
