//! A cluster of thousands of nodes on one machine: executors without processes speak the real protocol on a real NATS
//! server with a real ledger, planner and gateway, each a process of its own. What the services cost, how long orders
//! take, and when silent nodes are found are measured.

mod moments;
mod node;

use crate::{
    bench::figure::{Figure, Target, quantile},
    http::{Connection, EventStream},
    system::{self, System},
};
use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use moments::{Moment, Moments};
use muster_bus::{LedgerClient, NatsBus, NatsConfig, SharedBus, testing::NatsServer};
use node::Node;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Connections of the nodes to the NATS server: thousands of connections would measure its memory.
const CONNECTIONS: usize = 8;
/// From one submission to the next.
const SUBMIT_EVERY: Duration = Duration::from_millis(100);
/// After the last submission the jobs have this long to end.
const REST: Duration = Duration::from_secs(30);

/// How large, and how long.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Nodes, each with one core.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    nodes: u64,
    /// Jobs of one core that are submitted each second; 0 to 100,000.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(..=100_000))]
    jobs_per_second: u64,
    /// How long jobs are submitted, in seconds.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// How long each job runs, in milliseconds.
    #[arg(long, default_value_t = 2_000)]
    job_milliseconds: u64,
    /// Nodes that fall silent afterwards.
    #[arg(long, default_value_t = 10)]
    silent: u64,
    /// From one sign of life of a node to the next, in seconds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=300))]
    heartbeat_interval_seconds: u64,
    /// A node that says nothing for this long is lost, in seconds.
    #[arg(long, default_value_t = 10)]
    node_lost_after_seconds: u64,
    /// The muster binary under test; a release build, if the figures are to mean something.
    #[arg(long)]
    muster: Option<PathBuf>,
    /// Where the data folder is made.
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
}

/// Runs the swarm and prints what was measured.
///
/// # Errors
/// A service does not start, or does not do what it is asked.
pub async fn run(args: Args) -> Result<()> {
    crate::bench::raise_open_files()?;
    let muster = system::find_muster(args.muster.clone());
    let folder = tempfile::tempdir_in(&args.scratch)?;
    let server = NatsServer::start();
    let services = Services::start(&muster, folder.path(), &server, &args)?;
    let swarm = Swarm::start(&server, &args).await?;
    let mut connection = services.gateway.connect().await?;
    let (figures, times) = (swarm.load(&services, &args).await?, swarm.times());
    let mut figures: Vec<Figure> = figures.into_iter().chain(times?).collect();
    if args.silent > 0 {
        figures.extend(swarm.fall_silent(&mut connection, &services, &args).await?);
    }
    for figure in figures {
        println!("{figure}");
    }
    swarm.stop().await;
    services.stop()
}

/// The services under test.
struct Services {
    ledger: System,
    planner: System,
    gateway: System,
    nats: u32,
}

impl Services {
    fn start(muster: &Path, folder: &Path, server: &NatsServer, args: &Args) -> Result<Self> {
        let config = folder.join("muster.toml");
        let text = format!(
            "[bus]\nurl = \"{}\"\n[cluster]\nnode_lost_after_seconds = {}\n\
             [[nodes]]\nname = \"n[0-{}]\"\ncores = 1\nmemory = \"1G\"\n",
            server.url(),
            args.node_lost_after_seconds,
            args.nodes - 1
        );
        std::fs::write(&config, text)?;
        let data = folder.join("data");
        let role = |role| System::serve(muster, &[role], &config, &data.join(role));
        Ok(Self {
            ledger: role("ledger")?,
            planner: role("planner")?,
            gateway: role("gateway")?,
            nats: server.pid().context("the NATS server does not run")?,
        })
    }

    /// What each process has used of a processor so far.
    fn processor_times(&self) -> Result<[(&'static str, Duration); 4]> {
        let of = |name, pid| Ok::<_, anyhow::Error>((name, processor_time(pid)?));
        Ok([
            of("ledger", self.ledger.pid())?,
            of("planner", self.planner.pid())?,
            of("gateway", self.gateway.pid())?,
            of("nats-server", self.nats)?,
        ])
    }

    fn stop(self) -> Result<()> {
        self.gateway.stop()?;
        self.planner.stop()?;
        self.ledger.stop()
    }
}

/// What a process has used of processors, from `/proc/PID/stat`.
fn processor_time(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("the process has no name")?;
    let ticks = |index| fields.split_whitespace().nth(index).and_then(|field| field.parse::<u64>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("the process has no times")?;
    let ticks_per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.context("no clock ticks")?;
    Ok(Duration::from_secs_f64((user + system) as f64 / ticks_per_second as f64))
}

/// The nodes.
struct Swarm {
    nodes: JoinSet<Result<()>>,
    moments: Arc<Moments>,
    heartbeats: Arc<AtomicU64>,
    shutdown: CancellationToken,
    silence: CancellationToken,
}

impl Swarm {
    /// Starts the nodes; returns when the ledger has greeted all of them.
    async fn start(server: &NatsServer, args: &Args) -> Result<Self> {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let config = NatsConfig { url: server.url(), ..NatsConfig::default() };
            let bus: SharedBus = NatsBus::connect(config).await?;
            clients.push((LedgerClient::new(bus.clone()), bus));
        }
        let mut swarm = Self {
            nodes: JoinSet::new(),
            moments: Arc::default(),
            heartbeats: Arc::default(),
            shutdown: CancellationToken::new(),
            silence: CancellationToken::new(),
        };
        let began = Instant::now();
        let (greeted, mut all_greeted) = tokio::sync::mpsc::channel::<()>(1);
        for number in 0..args.nodes {
            let (client, bus) = &clients[number as usize % clients.len()];
            let silence = if number < args.silent { swarm.silence.clone() } else { CancellationToken::new() };
            let node = Node {
                name: format!("n{number}"),
                client: client.clone(),
                bus: bus.clone(),
                interval: Duration::from_secs(args.heartbeat_interval_seconds),
                first: Duration::from_secs(args.heartbeat_interval_seconds).mul_f64(number as f64 / args.nodes as f64),
                runs_for: Duration::from_millis(args.job_milliseconds),
                moments: swarm.moments.clone(),
                heartbeats: swarm.heartbeats.clone(),
                silence,
            };
            swarm.nodes.spawn(swarm.shutdown.clone().run_until_cancelled_owned(node.run(greeted.clone())).map_ended());
        }
        drop(greeted);
        // Each node keeps its end until it was greeted.
        while all_greeted.recv().await.is_some() {}
        println!("{} nodes were greeted in {:.1} s", args.nodes, began.elapsed().as_secs_f64());
        Ok(swarm)
    }

    /// Submits jobs at the wanted rate and waits until they are over.
    async fn load(&self, services: &Services, args: &Args) -> Result<Vec<Figure>> {
        let per_request = (args.jobs_per_second as f64 * SUBMIT_EVERY.as_secs_f64()).round() as usize;
        let requests = Duration::from_secs(args.seconds).as_millis() / SUBMIT_EVERY.as_millis();
        let job = crate::api::command_job("swarm", &["/bin/true"]);
        let body = crate::api::submission(vec![job; per_request.max(1)])?;
        let mut connection = services.gateway.connect().await?;
        let mut clock = tokio::time::interval(SUBMIT_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut submitted, before) = (0, services.processor_times()?);
        let (began, heard) = (Instant::now(), self.heartbeats.load(Ordering::Relaxed));
        for _ in 0..requests {
            clock.tick().await;
            if per_request > 0 {
                submitted += self.submit(&mut connection, body.clone()).await?;
            }
        }
        let (elapsed, after) = (began.elapsed(), services.processor_times()?);
        let heard = self.heartbeats.load(Ordering::Relaxed) - heard;
        self.wait_for_ends(submitted).await?;
        let mut figures = vec![
            Figure::rate("jobs submitted", submitted, elapsed, "jobs/s", args.jobs_per_second as f64 * 0.99),
            Figure {
                measure: format!("signs of life answered, {} nodes", args.nodes),
                value: heard as f64 / elapsed.as_secs_f64(),
                unit: "1/s",
                target: Target::AtLeast(args.nodes as f64 / args.heartbeat_interval_seconds as f64 * 0.95),
            },
        ];
        figures.extend(before.into_iter().zip(after).map(|((name, before), (_, after))| Figure {
            measure: format!("processor of the {name}"),
            value: (after.saturating_sub(before)).as_secs_f64() / elapsed.as_secs_f64(),
            unit: "cores",
            target: if name == "ledger" { Target::AtMost(1.0) } else { Target::None },
        }));
        Ok(figures)
    }

    async fn submit(&self, connection: &mut Connection, body: Bytes) -> Result<usize> {
        let asked = Instant::now();
        let jobs = crate::api::submit_body(connection, body).await?;
        self.moments.submitted(&jobs, asked);
        Ok(jobs.len())
    }

    /// Waits until the ledger has recorded the end of each job.
    async fn wait_for_ends(&self, submitted: usize) -> Result<()> {
        let began = Instant::now();
        loop {
            let over = self.moments.lock().values().filter(|moment| moment.is_over).count();
            if over >= submitted {
                return Ok(());
            }
            ensure!(began.elapsed() < REST, "{over} of {submitted} jobs are over {} s later", REST.as_secs());
            tokio::time::sleep(SUBMIT_EVERY).await;
        }
    }

    /// From the submission of each job to the order at its node.
    fn times(&self) -> Result<Vec<Figure>> {
        let moments = self.moments.lock();
        let time = |moment: &Moment| moment.ordered.zip(moment.submitted).map(|(ordered, asked)| ordered - asked);
        let mut times: Vec<Duration> = moments.values().filter_map(time).collect();
        ensure!(times.len() == moments.len(), "{} of {} jobs were ordered", times.len(), moments.len());
        let figure = |name: &str, part, times: &mut Vec<Duration>| {
            Figure::time(format!("request to submit to the order at the node, {name}"), quantile(times, part), 50.0)
        };
        Ok(vec![figure("p50", 0.5, &mut times), figure("p99", 0.99, &mut times)])
    }

    /// Some nodes say nothing more: how long until the ledger records each as lost, and that it is no other.
    async fn fall_silent(&self, connection: &mut Connection, services: &Services, args: &Args) -> Result<Vec<Figure>> {
        let path = crate::api::events_from_now(connection, "node.lost").await?;
        let mut events = services.gateway.connect().await?.events(&path).await?;
        self.silence.cancel();
        let began = Instant::now();
        let patience = Duration::from_secs(2 * args.node_lost_after_seconds + args.heartbeat_interval_seconds);
        let mut times = Vec::new();
        for _ in 0..args.silent {
            let name = tokio::time::timeout(patience, lost_node(&mut events)).await;
            let name = name.with_context(|| format!("{} silent nodes were found", times.len()))??;
            let number = name.strip_prefix('n').and_then(|number| number.parse::<u64>().ok());
            ensure!(number.is_some_and(|number| number < args.silent), "{name} was not silent and is lost");
            times.push(began.elapsed());
        }
        let most = (args.node_lost_after_seconds + args.heartbeat_interval_seconds) as f64 * 1e3;
        Ok(vec![Figure::time("silence of nodes to the record of the last as lost", quantile(&mut times, 1.0), most)])
    }

    async fn stop(mut self) {
        self.shutdown.cancel();
        while self.nodes.join_next().await.is_some() {}
    }
}

/// The next node that is recorded as lost.
async fn lost_node(events: &mut EventStream) -> Result<String> {
    let Some(data) = events.next().await? else { bail!("the stream of events has ended") };
    let event: crate::api::PublicEvent = serde_json::from_slice(&data)?;
    Ok(event.subject)
}

/// A node that was stopped has not failed.
trait MapEnded {
    fn map_ended(self) -> impl Future<Output = Result<()>> + Send;
}

impl<F: Future<Output = Option<Result<()>>> + Send> MapEnded for F {
    async fn map_ended(self) -> Result<()> {
        self.await.unwrap_or(Ok(()))
    }
}
