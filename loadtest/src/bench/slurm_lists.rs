//! How lists of users' jobs affect the planner.

use super::{
    Bench, Running,
    commands::BULK,
    elsewhere,
    figure::{Figure, Target, quantile},
    filters,
    running::TRIVIAL,
    slurm::WAITING,
};
use crate::{api, http::Connection, system::System};
use anyhow::{Context as _, Result, ensure};
use muster_schemas::{
    JobId,
    job::Program,
    resources::{Count, Level, LevelCount, Request},
};
use std::{
    fs::{self, File, Permissions},
    io::Read as _,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, sync::watch, task::JoinSet};

/// The emulated nodes, and the cores of each.
const NODES: u32 = 4;
const CORES: u32 = 64;
/// Requests of `squeue -u` per second, and the connections that they use.
const LISTS_PER_SECOND: u32 = 1_000;
const LISTING_CONNECTIONS: u32 = 40;
/// The user who lists the jobs, and how many jobs that user has.
const LISTING_USER: &str = "nobody";
const LISTED_JOBS: usize = 10;
/// Jobs that start while others list, in each of the rounds with and without lists, and how many per second.
const STARTS: usize = 300;
const STARTS_PER_SECOND: u32 = 100;
const ROUNDS: usize = 20;

/// Has the planner log how long each plan took.
const CONFIG: &str =
    "[telemetry]\nlog_filter = \"warn,muster_planner_service::cycle_time=debug\"\nlog_format = \"json\"\n";

/// How lists of users' jobs affect the planner's cycles and the start of other jobs: the requests of `squeue -u`, 1,000
/// per second, while jobs start one after another. They use kept connections, because as many processes would
/// themselves be the load. The result is the median of the p99s of many rounds, as one stall of the machine would
/// decide the p99 of all rounds together.
pub async fn lists(bench: &Bench) -> Result<Vec<Figure>> {
    let running = bench.start_with(NODES, CORES, CONFIG)?;
    let system = &running.system;
    let others = bench.count(WAITING).next_multiple_of(BULK);
    let running_job = submit_waiting(system, others).await?;
    submit_as_listing_user(&running)?;
    let callers = elsewhere()?;
    let starts = bench.count(STARTS);
    let mut passing = api::command_job("passing", &[TRIVIAL]);
    passing.components[0].priority = Some(1);
    let mut cycles = Cycles::of(system)?;
    let (mut without, mut with, mut lists) = (Rounds::default(), Rounds::default(), Vec::new());
    let mut listed_for = Duration::ZERO;
    for _ in 0..ROUNDS {
        cycles.since_last()?;
        without.add(filters::starts(system, &passing, starts, STARTS_PER_SECOND).await?, cycles.since_last()?);
        let load = Lists::begin(system, callers);
        let begin = Instant::now();
        with.add(filters::starts(system, &passing, starts, STARTS_PER_SECOND).await?, cycles.since_last()?);
        listed_for += begin.elapsed();
        lists.extend(load.end().await?);
    }
    end(system, running_job).await?;
    running.system.stop()?;
    let share = |what: &str, with: Duration, without: Duration, target| {
        let millis = [with, without].map(|time| time.as_secs_f64() * 1e3);
        let measure = format!(
            "{what} while jobs of a user are listed, p99, as a part of that without lists ({:.3} ms and {:.3} ms)",
            millis[0], millis[1]
        );
        Figure { measure, value: millis[0] / millis[1] * 100.0, unit: "%", target }
    };
    let cycle = format!("{} and {} cycles of the planner", with.cycles, without.cycles);
    let what = format!("lists of {LISTED_JOBS} jobs among {others}, none failed");
    Ok(vec![
        share(
            &cycle,
            quantile(&mut with.cycle_p99s, 0.5),
            quantile(&mut without.cycle_p99s, 0.5),
            Target::AtMost(105.0),
        ),
        share(
            "submit to start",
            quantile(&mut with.start_p99s, 0.5),
            quantile(&mut without.start_p99s, 0.5),
            Target::None,
        ),
        Figure::rate(what.clone(), lists.len(), listed_for, "lists/s", f64::from(LISTS_PER_SECOND) * 0.99),
        Figure { target: Target::None, ..Figure::time(format!("{what}, p99"), quantile(&mut lists, 0.99), 0.0) },
    ])
}

/// The p99 of each of several rounds.
#[derive(Default)]
struct Rounds {
    start_p99s: Vec<Duration>,
    cycle_p99s: Vec<Duration>,
    cycles: usize,
}

impl Rounds {
    fn add(&mut self, mut starts: Vec<Duration>, mut cycles: Vec<Duration>) {
        self.cycles += cycles.len();
        self.start_p99s.push(quantile(&mut starts, 0.99));
        self.cycle_p99s.push(quantile(&mut cycles, 0.99));
    }
}

/// The planner's cycles, from the system's log.
struct Cycles {
    log: File,
}

impl Cycles {
    fn of(system: &System) -> Result<Self> {
        Ok(Self { log: File::open(system.log())? })
    }

    /// How long each cycle took since the last call.
    fn since_last(&mut self) -> Result<Vec<Duration>> {
        let mut news = String::new();
        self.log.read_to_string(&mut news)?;
        let micros = news.lines().filter_map(|line| {
            // The last line may be incomplete, and is left out then.
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            line.get("micros")?.as_u64()
        });
        Ok(micros.map(Duration::from_micros).collect())
    }
}

/// Submits jobs of the caller that are not listed and wait for all nodes, one of which is in use: each cycle of the
/// planner considers this queue. Returns the job that uses the node.
async fn submit_waiting(system: &System, count: usize) -> Result<JobId> {
    let mut connection = system.connect().await?;
    let running = vec![api::command_job("running", &["/bin/sleep", "3600"])];
    let running = api::submit(&mut connection, running).await?.first().copied().context("no job")?;
    let path = vec![
        LevelCount { level: Level::Node, count: Count::exactly(NODES) },
        LevelCount { level: Level::Core, count: Count::exactly(CORES) },
    ];
    let program = Program::Tasks { argv: vec![TRIVIAL.to_owned()] };
    let job = api::job("waiting", program, Request { path, ..Request::default() });
    let body = api::submission(vec![job; BULK])?;
    for _ in 0..count / BULK {
        api::submit_body(&mut connection, body.clone()).await?;
    }
    Ok(running)
}

/// Ends a job that would outlive the system.
async fn end(system: &System, job: JobId) -> Result<()> {
    let mut connection = system.connect().await?;
    let cancel = serde_json::json!({ "jobs": { "ids": [job] } });
    connection.post("/v1/jobs/actions/cancel", serde_json::to_vec(&cancel)?.into()).await?;
    connection.get_bytes(&format!("/v1/jobs/{job}/wait?timeout_seconds=60")).await?;
    Ok(())
}

/// Submits the jobs to list as their owner.
fn submit_as_listing_user(running: &Running) -> Result<()> {
    let user = nix::unistd::User::from_name(LISTING_USER)?.context("there is no user `nobody`")?;
    // Only its owner can enter the folder, or perhaps that of the program.
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

/// Requests lists repeatedly until it is ended.
struct Lists {
    callers: JoinSet<Result<Vec<Duration>>>,
    stop: watch::Sender<bool>,
}

impl Lists {
    fn begin(system: &System, runtime: &Handle) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut callers = JoinSet::new();
        let begin = tokio::time::Instant::now();
        for number in 0..LISTING_CONNECTIONS {
            let (endpoint, stopped) = (system.endpoint(), stopped.clone());
            // Spread out, as users do not all ask at the same moment.
            let first = begin + Duration::from_secs(1) * number / LISTS_PER_SECOND;
            let every = Duration::from_secs(1) * LISTING_CONNECTIONS / LISTS_PER_SECOND;
            let call = async move {
                let mut connection = Connection::open(&endpoint).await?;
                let mut due = tokio::time::interval_at(first, every);
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
            };
            callers.spawn_on(call, runtime);
        }
        Self { callers, stop }
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
