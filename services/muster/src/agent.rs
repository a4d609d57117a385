//! `muster agent`: the agent of a node that only reaches a gateway (OAR-K). It is part of the small program, so that a node
//! needs that one file.

use anyhow::Context as _;
use muster_agent::{Config, Relay};
use muster_bus::{LocalBus, SharedBus};
use muster_cli::{
    connection::ConnectionOptions,
    exit::{CommandResult, Failure, Status},
};
use muster_commands::cli::AgentOptions;
use std::{
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};
use tokio_util::sync::CancellationToken;

/// Enough for one node.
const WORKER_THREADS: usize = 2;
/// How often it is looked whether the gateway has refused the agent.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The largest token file.
const MAX_TOKEN_BYTES: usize = 4_096;

/// Runs the agent until it is told to quit and its jobs have ended.
pub fn run(connection: &ConnectionOptions, options: &AgentOptions) -> CommandResult {
    let executor = executor(options)?;
    let config = config(connection, options, &executor)?;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o711).create(&config.folder);
    made.map_err(|error| Failure::failed(format!("cannot make {}: {error}", config.folder.display())))?;
    let log = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::INFO);
    // Nobody else sets one in this process.
    let _ = log.with_target(false).try_init();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build()?;
    let result = runtime.block_on(work(config, executor, options.period));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

fn executor(options: &AgentOptions) -> Result<muster_executor::Config, Failure> {
    let folder = folder(options)?;
    let mut config = muster_executor::Config {
        spool_dir: folder.join("spool"),
        heartbeat_seconds: options.period,
        // Its jobs may be few among other things that the host does.
        bind_cpus: false,
        gpus: Some(Vec::new()),
        container_runtime: muster_executor::runtimes::RuntimeChoice::Off,
        ..muster_executor::Config::default()
    };
    if let Some(node) = &options.node {
        config.node.clone_from(node);
    }
    config.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(config)
}

fn folder(options: &AgentOptions) -> Result<PathBuf, Failure> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let usual = || named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")));
    let folder = options.folder.clone().or_else(|| Some(usual()?.join("muster-agent")));
    let folder = folder.ok_or_else(|| Failure::usage("no folder: give --folder, or set HOME"))?;
    std::path::absolute(folder).map_err(|error| Failure::usage(format!("--folder: {error}")))
}

fn config(
    connection: &ConnectionOptions,
    options: &AgentOptions,
    executor: &muster_executor::Config,
) -> Result<Config, Failure> {
    if connection.server.is_none() {
        return Err(Failure::usage("an agent needs the address of a gateway: --server https://head:7457"));
    }
    let mut connection = connection.clone();
    if let Some(file) = &options.token_file {
        connection.token = Some(token_of(file)?);
    }
    if connection.token.is_none() {
        return Err(Failure::usage("an agent needs a token: MUSTER_TOKEN, or --token-file (see `muster agent token`)"));
    }
    let cpus = || std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
    Ok(Config {
        server: connection.endpoint()?,
        node: executor.node.clone(),
        folder: folder(options)?,
        cores: options.cpus.unwrap_or_else(cpus),
        memory_bytes: options.memory.unwrap_or_else(host_memory),
        keep: Duration::from_secs(options.keep.into()),
        max_archive_bytes: options.max_archive,
    })
}

fn token_of(file: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::usage(format!("--token-file {}: {why}", file.display()));
    let facts = file.metadata().map_err(|error| failed(error.to_string()))?;
    if facts.permissions().mode() & 0o077 != 0 {
        return Err(failed("others can read it: its mode must be 0600".to_owned()));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let token = text.trim();
    let is_token =
        !token.is_empty() && token.len() <= MAX_TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_token { Ok(token.to_owned()) } else { Err(failed("it does not hold a token".to_owned())) }
}

/// The memory of this host in bytes; 0 if it cannot be found out.
fn host_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() << 10
}

/// The signals that make an agent quit.
struct Quit {
    signals: [Signal; 3],
}

impl Quit {
    fn new() -> std::io::Result<Self> {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let [terminate, interrupt, hangup] = kinds.map(signal);
        Ok(Self { signals: [terminate?, interrupt?, hangup?] })
    }

    async fn next(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

async fn work(config: Config, executor: muster_executor::Config, period: u32) -> CommandResult {
    let mut quit = Quit::new()?;
    let bus: SharedBus = LocalBus::new();
    let (node, server) = (config.node.clone(), config.server.to_string());
    let relay = Relay::start(bus.clone(), config).await?;
    let (ready, is_ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let mut serving = tokio::spawn(muster_executor::serve(bus, executor, ready, stop.clone()));
    let started = tokio::select! {
        _ = is_ready => {
            writeln!(std::io::stdout(), "muster agent is ready: node {node} asks {server} every {period} s")?;
            Ok(true)
        }
        why = refused(&relay) => Err(Failure::new(Status::NoPermission, format!("{server} refuses this agent: {why}"))),
        () = quit.next() => Ok(false),
        ended = &mut serving => return ended.context("the agent failed")?.map(|()| 1).map_err(Failure::from),
    };
    if matches!(started, Ok(true)) {
        tokio::select! {
            ended = &mut serving => return ended.context("the agent failed")?.map(|()| 1).map_err(Failure::from),
            () = quit.next() => {}
        }
        finish(&relay, &mut quit).await;
    }
    stop.cancel();
    let ended = serving.await.context("the agent failed")?;
    started.and_then(|_| Ok(ended.map(|()| 0)?))
}

/// The first signal lets the jobs finish, the second ends them, and the third does not wait for their end (OAR-K-10).
async fn finish(relay: &Relay, quit: &mut Quit) {
    tracing::info!("this agent takes no new job, and waits for those that it has; a second signal ends them");
    tokio::select! {
        () = async { relay.leave().await; relay.idle().await } => return,
        () = quit.next() => {}
    }
    tracing::info!("the jobs here are ended");
    tokio::select! {
        () = async { relay.end_jobs().await; relay.idle().await } => {}
        () = quit.next() => {}
    }
}

/// Waits until the gateway has refused an agent that it has never accepted.
async fn refused(relay: &Relay) -> String {
    loop {
        if let Some(why) = relay.refusal() {
            return why;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
