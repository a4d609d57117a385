//! Many nodes: submissions together with their signs of life, and a launch on all of them. The ledger runs in this
//! process with its own bus, so only its work is measured; the nodes are emulated.

use super::{
    Bench,
    figure::{Figure, Target, quantile},
};
use crate::api;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use futures::{StreamExt as _, stream};
use muster_bus::{LedgerClient, LocalBus, SharedBus, Subscription};
use muster_ledger::limits::NoLimits;
use muster_schemas::{
    NodeId, PartId, RunId,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::{Command, Reply, Start},
    content::Missing,
    event::{Actor, Owner, TraceContext},
    job::Program,
    node::{Heartbeat, NodeOrder, OrderEnvelope},
    plan::ProposedPlan,
    resources::{ComponentPlacement, Count, IndexSet, Level, LevelCount, NodeShare, NodeSpec, Placement, Request},
};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Nodes that report.
const REPORTING: usize = 100_000;
/// Each reports once in this time, as executors do.
const HEARTBEAT: Duration = Duration::from_secs(3);
/// How long they report, and how long they do not.
const TURN: Duration = Duration::from_secs(12);
/// The most reports in flight.
const AT_A_TIME: usize = 4096;
/// Nodes that a job is launched on.
const WIDE: usize = 10_000;
/// From one measured submission to the next.
const SUBMIT_EVERY: Duration = Duration::from_millis(5);

/// A ledger with nodes that are up.
struct Site {
    bus: SharedBus,
    client: LedgerClient,
    nodes: usize,
    ledger: JoinHandle<Result<()>>,
    shutdown: CancellationToken,
    _folder: tempfile::TempDir,
}

impl Site {
    async fn start(bench: &Bench, nodes: usize) -> Result<Self> {
        let folder = bench.folder()?;
        let bus: SharedBus = LocalBus::new();
        let config = muster_ledger::Config { data_dir: folder.path().to_owned(), ..muster_ledger::Config::default() };
        let (ready, is_ready) = oneshot::channel();
        let shutdown = CancellationToken::new();
        let mut ledger =
            tokio::spawn(muster_ledger::serve(bus.clone(), config, Arc::new(NoLimits), ready, shutdown.clone()));
        if is_ready.await.is_err() {
            (&mut ledger).await??;
            bail!("the ledger ended before it was ready");
        }
        let client = LedgerClient::new(bus.clone());
        let site = Self { bus, client, nodes, ledger, shutdown, _folder: folder };
        site.ask(root(), Command::Configure { change: Box::new(cluster(nodes).into()), keep_unnamed: true }).await?;
        let greetings = stream::iter(0..nodes).map(|number| site.ask(executor(number), hello()));
        let answers: Vec<_> = greetings.buffer_unordered(AT_A_TIME / 2).collect().await;
        answers.into_iter().collect::<Result<Vec<Reply>>>()?;
        Ok(site)
    }

    async fn ask(&self, actor: Actor, command: Command) -> Result<Reply> {
        let answer = self.client.command(actor, TraceContext::default(), command).await?;
        answer.result.map_err(|refusal| anyhow!("refused: {refusal}"))
    }

    /// Fetches what an order names, as a node does.
    async fn fetch(&self, number: usize, named: Missing) -> Result<()> {
        for hash in named.hashes() {
            self.client.content(&name(number), hash).await?;
        }
        Ok(())
    }

    /// How long submissions take, one after another, until `is_over`.
    async fn submissions(&self, is_over: &AtomicBool) -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let command = Command::Submit { jobs: vec![api::command_job("beside", &["/bin/true"])] };
            let asked = Instant::now();
            self.ask(root(), command).await?;
            times.push(asked.elapsed());
            tokio::time::sleep(SUBMIT_EVERY).await;
        }
        Ok(times)
    }

    async fn stop(self) -> Result<()> {
        self.shutdown.cancel();
        self.ledger.await?
    }
}

fn root() -> Actor {
    Actor::User(Owner { user: "root".to_owned(), uid: 0, gid: 0 })
}

fn name(number: usize) -> String {
    format!("n{number}")
}

fn executor(number: usize) -> Actor {
    Actor::Executor(name(number))
}

fn hello() -> Command {
    Command::NodeHello { boot_id: "boot".to_owned(), parts: Vec::new(), highest_run: None, as_of: None }
}

fn cluster(nodes: usize) -> ClusterConfig {
    let settings = ClusterSettings {
        // Only the benchmark of signs of life sends any.
        node_lost_after_seconds: 80_000,
        launch_timeout_seconds: 80_000,
        ..ClusterSettings::default()
    };
    let queue = QueueSpec { name: settings.default_queue.clone(), ..QueueSpec::default() };
    let node = |number| NodeSpec {
        name: name(number),
        cores: 1,
        sockets: 1,
        memory_bytes: 1 << 30,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    };
    ClusterConfig { settings, queues: vec![queue], nodes: (0..nodes).map(node).collect(), ..ClusterConfig::default() }
}

/// Signs of life of 100,000 nodes, each every 3 s, together with submissions.
pub async fn heartbeats(bench: &Bench) -> Result<Vec<Figure>> {
    let nodes = bench.count(REPORTING);
    let site = Site::start(bench, nodes).await?;
    let mut alone = beside(&site, tokio::time::sleep(TURN)).await?;
    let (answered, lost) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    let mut with = beside(&site, report(&site, &answered, &lost)).await?;
    let elapsed = began.elapsed();
    let answered = answered.into_inner() as usize;
    let of = format!("{nodes} nodes, each every {} s", HEARTBEAT.as_secs());
    let wanted = nodes as f64 / HEARTBEAT.as_secs_f64();
    site.stop().await?;
    Ok(vec![
        Figure::rate(format!("signs of life answered, {of}"), answered, elapsed, "1/s", wanted * 0.9),
        Figure {
            measure: "those without an answer".into(),
            value: lost.into_inner() as f64,
            unit: "",
            target: Target::AtMost(0.0),
        },
        told("submission beside none, p50", quantile(&mut alone, 0.5)),
        told("submission beside them, p50", quantile(&mut with, 0.5)),
        told("submission beside none, p99", quantile(&mut alone, 0.99)),
        told("submission beside them, p99", quantile(&mut with, 0.99)),
    ])
}

fn told(measure: &str, time: Duration) -> Figure {
    Figure { measure: measure.to_owned(), value: time.as_secs_f64() * 1e3, unit: "ms", target: Target::None }
}

/// How long submissions take while something else runs.
async fn beside(site: &Site, other: impl Future<Output = ()>) -> Result<Vec<Duration>> {
    let is_over = AtomicBool::new(false);
    let work = async {
        other.await;
        is_over.store(true, Ordering::Relaxed);
    };
    let (times, ()) = tokio::join!(site.submissions(&is_over), work);
    times
}

/// Has all nodes report evenly for one turn.
async fn report(site: &Site, answered: &AtomicU64, lost: &AtomicU64) {
    let rounds = (TURN.as_secs_f64() / HEARTBEAT.as_secs_f64()).round() as usize;
    let total = rounds * site.nodes;
    let began = Instant::now();
    let reports = stream::iter(0..total).then(|at| async move {
        let due = TURN.mul_f64(at as f64 / total as f64);
        let early = due.saturating_sub(began.elapsed());
        // A timer ticks once a millisecond.
        if early > Duration::from_millis(1) {
            tokio::time::sleep(early).await;
        }
        at % site.nodes
    });
    let sent = reports.for_each_concurrent(AT_A_TIME, |number| async move {
        let heartbeat = Heartbeat {
            node: name(number),
            boot_id: "boot".to_owned(),
            parts: Vec::new(),
            highest_run: None,
            as_of: None,
        };
        let count = match site.client.heartbeat(&heartbeat).await {
            Ok(_) => answered,
            Err(_) => lost,
        };
        count.fetch_add(1, Ordering::Relaxed);
    });
    sent.await;
}

/// A job on 10,000 nodes: from the planner's decision to the order at the last node, and to the record that it has
/// started everywhere.
pub async fn wide_launch(bench: &Bench) -> Result<Vec<Figure>> {
    let nodes = bench.count(WIDE);
    let site = Site::start(bench, nodes).await?;
    let path = vec![LevelCount { level: Level::Node, count: Count::exactly(nodes as u32) }];
    let program = Program::Tasks { argv: vec!["/bin/true".to_owned()] };
    let mut job = api::job("wide", program, Request { path, ..Request::default() });
    // Users bring some kilobytes of environment.
    job.environment.extend((0..100).map(|at| (format!("VARIABLE_{at}"), "x".repeat(60))));
    let Reply::Submitted(ids) = site.ask(root(), Command::Submit { jobs: vec![job] }).await? else {
        bail!("another answer than that of a submission");
    };
    let orders = site.bus.subscribe("muster.node.*.order").await?;
    let placement =
        Placement { components: vec![ComponentPlacement { alternative: 0, shares: (0..nodes).map(share).collect() }] };
    let plan = ProposedPlan { starts: vec![Start { job: ids[0], placement }], ..ProposedPlan::default() };
    let began = Instant::now();
    let [ordered, complete, started] = [0; 3].map(AtomicU64::new);
    let launch = async {
        let planned = site.ask(Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }).await?;
        ensure!(planned == Reply::Planned(Vec::new()), "the start was refused: {planned:?}");
        let (part, named) = launched(orders, nodes).await?;
        ordered.store(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        let fetches = stream::iter(0..nodes).map(|number| site.fetch(number, named));
        let fetched: Vec<_> = fetches.buffer_unordered(AT_A_TIME / 2).collect().await;
        fetched.into_iter().collect::<Result<Vec<()>>>()?;
        complete.store(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        let starts = stream::iter(0..nodes).map(|number| site.ask(executor(number), Command::NodeStarted { part }));
        let answers: Vec<_> = starts.buffer_unordered(AT_A_TIME / 2).collect().await;
        answers.into_iter().collect::<Result<Vec<Reply>>>()?;
        started.store(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        anyhow::Ok(())
    };
    let result = Arc::new(std::sync::Mutex::new(None));
    let note = Arc::clone(&result);
    let mut times = beside(&site, async move {
        let outcome = launch.await;
        *note.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(outcome);
    })
    .await?;
    result.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take().context("it was launched")??;
    let of = |time: &AtomicU64| Duration::from_micros(time.load(Ordering::Relaxed));
    let figures = vec![
        told(&format!("launch on {nodes} nodes, to the order at the last"), of(&ordered)),
        told("the same, to all that the last one names by its hash", of(&complete)),
        told("the same, to the record that it runs on all", of(&started)),
        told("submission meanwhile, longest", quantile(&mut times, 1.0)),
    ];
    site.stop().await?;
    Ok(figures)
}

fn share(node: usize) -> NodeShare {
    NodeShare {
        node: NodeId(node as u32),
        cores: IndexSet::first_n(1),
        gpus: IndexSet::default(),
        memory_bytes: 0,
        tasks: 1,
        exclusive: false,
    }
}

/// Waits until each node has its order; returns the part that they name and what they name by hash, which is the same
/// on each.
async fn launched(mut orders: Subscription, nodes: usize) -> Result<(PartId, Missing)> {
    let (mut part, mut named) = (PartId::new(RunId(0), 0), Missing::default());
    for _ in 0..nodes {
        let order = orders.next().await.context("the bus is closed")?;
        // All orders name the same: reading each would be measured too.
        if part.run() == RunId(0) {
            let (order, missing) = match order.message.decode::<OrderEnvelope>()?.order {
                NodeOrder::ByHash(short) => (short.order, short.missing),
                order => (order, Missing::default()),
            };
            (part, named) = (order.launch().context("another order than to launch")?.part, missing);
        }
    }
    Ok((part, named))
}
