//! `muster up` and `muster serve`: running roles in this process.

mod cluster;
mod group;
mod pbs_policy;
mod quotas;

use crate::{
    cli::{ConnectionOptions, LogOptions, Role, ServeOptions, UpOptions},
    config::{self, Loaded},
    connection::SOCKET,
    descriptions::SiteDescriptions,
    dialects::DIALECTS,
    exit::{CommandResult, Failure, Status},
    policies, programs,
};
use anyhow::{Context as _, ensure};
use group::{Group, on_own_thread};
use muster_bus::{LocalBus, NatsBus, NatsRounds, SharedBus};
use muster_cli::stderr_line;
use muster_filter_runner::RunnerConfig;
use muster_ledger::{Replication, room};
use muster_pbs_commands::{FLAVOUR, KEPT_RESOURCES, NODES_ARE_WHOLE, SERVER};
use muster_schemas::Sequence;
use muster_slurm_commands::{
    ACCOUNTING_STORAGE_TYPE, BURST_BUFFER_DIRECTIVES, BURST_BUFFER_TYPE, CLUSTERS, MPI_DEFAULT, SCHEDULER_PARAMETERS,
    SITE_OPTIONS, VERSION,
};
use std::{
    io::Write as _,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Enough for a small cluster, and few enough for a small footprint. The ledger's decide loop has its own thread.
const WORKER_THREADS: usize = 2;

/// The accounting's books in the data folder.
const BOOKS: &str = "accounting.books";
/// The file in a spool that names its cluster.
const SPOOL_IDENTITY: &str = "cluster";

/// Runs a whole system with emulated nodes until it is told to stop.
pub fn up(connection: &ConnectionOptions, options: &UpOptions) -> CommandResult {
    // Before the log is opened.
    speak_when_libraries_give_up();
    let mut loaded = config::load(options.config.as_deref())?;
    let policy = options.policy.as_deref().map(policies::load).transpose()?;
    let data_dir = connection.data_dir()?;
    make_data_dir(&data_dir)?;
    heed_log_options(&mut loaded, options.log);
    let nodes = cluster::Emulated::plan(&data_dir, &loaded, options)?;
    let first_start = cluster::is_first_start(&data_dir);
    let describes_cluster = loaded.file.describes_cluster();
    if first_start {
        let mut wanted = loaded.configuration.cluster.to_config().map_err(Failure::usage)?;
        nodes.add_missing(&mut wanted);
        loaded.configuration.ledger.cluster = Some(cluster::with_own_user(wanted.into()));
    } else if describes_cluster {
        let wanted = loaded.configuration.cluster.to_change().map_err(Failure::usage)?;
        loaded.configuration.ledger.cluster = Some(cluster::with_own_user(wanted));
    }
    switch_scheduling(&mut loaded, options.scheduling);
    let identity = identity("muster", None, &loaded);
    in_runtime(&identity, &data_dir, loaded, false, async |host, bus| {
        host.start(Role::Ledger, bus).await?;
        host.start(Role::Gateway, bus).await?;
        if !first_start {
            cluster::configure_missing_nodes(&host.socket(), nodes.clone()).await?;
        }
        if let Some(policy) = policy {
            cluster::set_policy(&host.socket(), policy).await?;
        }
        // Before the planner: if the log is a restored one, the run numbers of the nodes must be known before the first
        // job starts.
        host.start_emulated(bus, &nodes).await?;
        // Whoever tries muster as root need not create an account first: a filter that is called reports
        // that it is missing.
        host.loaded.configuration.filter_runner.may_lack_programs = true;
        for role in [Role::Planner, Role::Notifier, Role::FilterRunner, Role::Accounting] {
            host.start(role, bus).await?;
        }
        Ok(format!("{}, data in {}", nodes.text(), host.data_dir.display()))
    })
}

/// Runs the named roles until it is told to stop.
pub fn serve(connection: &ConnectionOptions, options: &ServeOptions) -> CommandResult {
    let mut loaded = config::load(options.config.as_deref())?;
    let data_dir = connection.data_dir()?;
    make_data_dir(&data_dir)?;
    heed_log_options(&mut loaded, options.log);
    let mut roles = options.roles.clone();
    roles.sort();
    roles.dedup();
    let is_self_sufficient = roles.contains(&Role::Ledger) && roles.len() > 1;
    let is_on_nats = loaded.file.names("bus", "url");
    if !is_on_nats && !is_self_sufficient {
        return Err(Failure::usage(
            "without `url` in [bus] the roles cannot reach each other from separate processes: name all of them, \
             or use `muster up`",
        ));
    }
    if let Some(node) = &options.node {
        loaded.configuration.executor.node.clone_from(node);
    }
    if loaded.file.describes_cluster() {
        let wanted = loaded.configuration.cluster.to_change().map_err(Failure::usage)?;
        loaded.configuration.ledger.cluster = Some(cluster::with_own_user(wanted));
    }
    if options.scheduling.is_some() && !roles.contains(&Role::Ledger) {
        return Err(Failure::usage("--scheduling is for the role ledger"));
    }
    switch_scheduling(&mut loaded, options.scheduling);
    let names: Vec<&str> = roles.iter().map(|role| role_name(*role)).collect();
    let service = if let [only] = names[..] { format!("muster-{only}") } else { "muster".to_owned() };
    let node = roles.contains(&Role::Executor).then(|| loaded.configuration.executor.node.clone());
    let identity = identity(&service, node, &loaded);
    in_runtime(&identity, &data_dir, loaded, is_on_nats, async |host, bus| {
        for role in &roles {
            host.start(*role, bus).await?;
        }
        Ok(names.join(", "))
    })
}

fn heed_log_options(loaded: &mut Loaded, options: LogOptions) {
    let ledger = &mut loaded.configuration.ledger;
    (ledger.new_log, ledger.accept_log_end) = (options.new_log, options.accept_log_end);
    ledger.promoted = options.lead_new_stream.map(Sequence);
}

/// Has the ledger switch scheduling on or off as it starts, which is a change of the configuration like any other. Without a word
/// it is as it was (PBS-C-05).
fn switch_scheduling(loaded: &mut Loaded, is_on: Option<bool>) {
    if let Some(is_on) = is_on {
        loaded.configuration.ledger.cluster.get_or_insert_default().settings.is_idle = Some(!is_on);
    }
}

/// The identity of this process for telemetry.
fn identity(service: &str, node: Option<String>, loaded: &Loaded) -> muster_telemetry::Identity {
    let configuration = &loaded.configuration;
    let of_file = || configuration.cluster.name().map(str::to_owned);
    let cluster = configuration.telemetry.cluster.clone().or_else(of_file);
    muster_telemetry::Identity { service: service.to_owned(), cluster, node }
}

/// The name of a role, as on the command line.
const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Ledger => "ledger",
        Role::Planner => "planner",
        Role::Executor => "executor",
        Role::Notifier => "notifier",
        Role::FilterRunner => "filter-runner",
        Role::Accounting => "accounting",
        Role::Gateway => "gateway",
    }
}

/// Users of the host reach the socket in the folder, and their jobs reach the spool: everybody may pass through, nobody
/// may list.
fn make_data_dir(data_dir: &Path) -> Result<(), Failure> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o711).create(data_dir);
    made.map_err(|error| Failure::failed(format!("cannot make the data folder {}: {error}", data_dir.display())))
}

/// Starts roles, reports that they are ready, and runs them until it is told to stop. `start` returns the
/// text to report.
fn in_runtime(
    identity: &muster_telemetry::Identity,
    data_dir: &Path,
    loaded: Loaded,
    is_on_nats: bool,
    start: impl AsyncFnOnce(&mut Host, &SharedBus) -> anyhow::Result<String>,
) -> CommandResult {
    speak_when_libraries_give_up();
    let telemetry = muster_telemetry::init(identity, &loaded.configuration.telemetry)?;
    raise_open_files();
    // Tokio panics if it gets no thread, or too few of them.
    room::threads(WORKER_THREADS + 1).map_err(Failure::failed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .thread_name("muster-worker")
        .enable_all()
        .build()?;
    let host = Host {
        is_on_nats,
        loaded,
        telemetry,
        group: Group::default(),
        data_dir: data_dir.to_owned(),
        pbs_policy: None,
        program: muster_planner_service::Reload::default(),
        quotas: None,
    };
    let result = runtime.block_on(host.run(start));
    // Blocking work (a slow disk, a resolver) must not keep the process from ending.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result?;
    Ok(0)
}

/// RocksDB, which is C++, ends the process if it gets no memory or no thread; this prints what to do.
pub(crate) fn speak_when_libraries_give_up() {
    unsafe extern "C" {
        /// `std::set_terminate`
        #[link_name = "_ZSt13set_terminatePFvvE"]
        fn set_terminate(handler: extern "C" fn()) -> *const libc::c_void;
    }
    extern "C" fn told() {
        stderr_line!(
            "muster: the storage got no memory or no thread and cannot continue; look at the limits of address space \
             (`ulimit -v`) and of processes (`ulimit -u`)"
        );
        // SAFETY: the process ends here; destructors of libraries would meet an unknown state.
        unsafe { libc::_exit(Status::Failed as i32) }
    }
    // SAFETY: the C++ runtime, which RocksDB is linked with, takes a function without arguments that does not return.
    unsafe { set_terminate(told) };
}

/// Whether the parent of this process set the signal to be ignored.
fn is_ignored(number: libc::c_int) -> bool {
    // SAFETY: the call may overwrite an action of zeros, and without a new action it changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(number, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// Subscribers, RocksDB's files and shims need more open files than the usual 1,024.
fn raise_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::warn!(%error, "cannot raise the number of open files");
    }
}

/// The process: its configuration, and the roles that run in it.
struct Host {
    loaded: Loaded,
    telemetry: muster_telemetry::Guard,
    group: Group,
    data_dir: PathBuf,
    is_on_nats: bool,
    pbs_policy: Option<pbs_policy::Follower>,
    /// Has the planner's scheduling program read again.
    program: muster_planner_service::Reload,
    quotas: Option<quotas::Follower>,
}

/// The signals that stop a service.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Host {
    fn socket(&self) -> PathBuf {
        self.loaded.configuration.gateway.socket.clone().unwrap_or_else(|| self.data_dir.join(SOCKET))
    }

    /// Starts a role and waits until it is ready.
    async fn start(&mut self, role: Role, bus: &SharedBus) -> anyhow::Result<()> {
        let configuration = &self.loaded.configuration;
        let bus = bus.clone();
        match role {
            Role::Ledger => {
                let config = muster_ledger::Config {
                    data_dir: self.data_dir.clone(),
                    traces: self.traces(),
                    ..configuration.ledger.clone()
                };
                let descriptions = Arc::new(SiteDescriptions { dialects: DIALECTS });
                match config.replication {
                    Replication::Alone => {
                        let serve = |ready, stop| muster_ledger::serve(bus, config, descriptions, ready, stop);
                        self.group.start_ledger(serve).await
                    }
                    Replication::Stream => {
                        ensure!(
                            self.is_on_nats,
                            "`ledger.replication` is `stream`, which needs three NATS servers: name them in `bus.url`, or leave it at `alone`"
                        );
                        let rounds = NatsRounds::connect(&configuration.bus).await.context("the stream of rounds")?;
                        let serve = |ready, stop| {
                            muster_ledger::serve_member(bus, config, descriptions, Box::new(rounds), ready, stop)
                        };
                        self.group.start_ledger(serve).await
                    }
                }
            }
            Role::Planner => {
                let (mut config, reload) = (configuration.planner.clone(), self.program.clone());
                let names = [Some(configuration.pbs.server.as_str()), configuration.cluster.name()];
                if let Some(name) = names.into_iter().flatten().find(|name| !name.is_empty()) {
                    config.server_name = name.to_owned();
                }
                // A pass over 100,000 waiting jobs takes milliseconds.
                let serve = |ready, stop| {
                    on_own_thread("muster-planner", async {
                        muster_planner_service::serve(bus, config, reload, ready, stop).await
                    })
                };
                self.group.start("planner", serve).await
            }
            Role::Executor => {
                let mut config = self.executor();
                if !self.loaded.file.names("executor", "spool_dir") {
                    config.spool_dir = self.spool_of(&config.node);
                }
                self.group.start("executor", |ready, stop| muster_executor::serve(bus, config, ready, stop)).await
            }
            Role::Notifier => {
                let config = configuration.notifier.clone();
                self.group
                    .start("notifier", |ready, stop| muster_notifier::serve(bus, config, DIALECTS, ready, stop))
                    .await
            }
            Role::FilterRunner => {
                let config = self.filter_runner();
                let descriptions = Arc::new(SiteDescriptions { dialects: DIALECTS });
                let serve = |ready, stop| muster_filter_runner::serve(bus, config, descriptions, ready, stop);
                self.group.start("filter-runner", serve).await
            }
            Role::Accounting => {
                let mut config = configuration.accounting.clone();
                config.snapshot_file.get_or_insert_with(|| self.data_dir.join(BOOKS));
                self.group.start("accounting", |ready, stop| muster_accounting::serve(bus, config, ready, stop)).await
            }
            Role::Gateway => {
                let pbs = [
                    (FLAVOUR.to_owned(), configuration.pbs.flavour.word().to_owned()),
                    (SERVER.to_owned(), configuration.pbs.server.clone()),
                    (NODES_ARE_WHOLE.to_owned(), configuration.pbs.nodes_are_whole.to_string()),
                    (KEPT_RESOURCES.to_owned(), configuration.pbs.kept_resources.join(" ")),
                ];
                let pbs = pbs.into();
                let slurm = &configuration.slurm;
                let settings = [
                    (SCHEDULER_PARAMETERS, slurm.scheduler_parameters.clone()),
                    (BURST_BUFFER_DIRECTIVES, slurm.burst_buffer_directives.join(",")),
                    (BURST_BUFFER_TYPE, slurm.burst_buffer_type.word().to_owned()),
                    (CLUSTERS, slurm.clusters.join("\n")),
                    (MPI_DEFAULT, slurm.mpi_default.clone()),
                    (SITE_OPTIONS, slurm.site_options.join("\n")),
                ];
                let shown = [
                    (ACCOUNTING_STORAGE_TYPE, slurm.accounting_storage_type.clone()),
                    (VERSION, slurm.version.clone()),
                ];
                let shown = shown.into_iter().filter(|(_, value)| !value.is_empty());
                let settings = settings.into_iter().chain(shown);
                let slurm = settings.map(|(name, value)| (name.to_owned(), value)).collect();
                let agents_folder = configuration.gateway.agents_folder.clone();
                let config = muster_gateway::Config {
                    agents_folder: Some(agents_folder.unwrap_or_else(|| self.data_dir.join("agents"))),
                    unpacker: self.unpacker(),
                    socket: Some(self.socket()),
                    dialects: [("pbs".to_owned(), pbs), ("slurm".to_owned(), slurm)].into(),
                    ..configuration.gateway.clone()
                };
                self.group.start("gateway", |ready, stop| muster_gateway::serve(bus, config, ready, stop)).await?;
                if let Some(folder) = self.loaded.configuration.pbs.policy_folder.clone() {
                    let preset = self.loaded.configuration.pbs.preset.map(config::PbsPreset::preset);
                    let account = self.loaded.configuration.executor.site_program_account.clone();
                    self.pbs_policy = Some(pbs_policy::Follower::start(&self.socket(), folder, preset, account)?);
                }
                if let Some(file) = self.loaded.configuration.quotas.file.clone() {
                    self.quotas = Some(quotas::Follower::start(&self.socket(), file)?);
                }
                Ok(())
            }
        }
    }

    /// Archives of agents are unpacked by the small program, as the owners of jobs.
    fn unpacker(&self) -> Option<(PathBuf, String)> {
        let program = self.executor().shim_program.or_else(|| std::env::current_exe().ok())?;
        Some((program, muster_archive::UNPACK.to_owned()))
    }

    /// Shims are started from the small program if it is installed near this one, since their tasks are forks of them.
    fn executor(&self) -> muster_executor::Config {
        let mut config = self.loaded.configuration.executor.clone();
        config.shim_program = config.shim_program.or_else(|| programs::muster_with(&std::env::current_exe().ok()?));
        config
    }

    /// Commands that filters call find the instance of this process.
    fn filter_runner(&self) -> RunnerConfig {
        let mut config = self.loaded.configuration.filter_runner.clone();
        if config.scheduler.is_empty() {
            config.scheduler = self.data_dir.display().to_string();
        }
        config
    }

    /// Files of a cluster that remain on this host: the books, and the identities in spools.
    fn traces(&self) -> Vec<PathBuf> {
        let configuration = &self.loaded.configuration;
        let books = configuration.accounting.snapshot_file.clone().unwrap_or_else(|| self.data_dir.join(BOOKS));
        let spools = std::fs::read_dir(self.data_dir.join(cluster::SPOOLS)).into_iter().flatten().flatten();
        std::iter::once(books).chain(spools.map(|spool| spool.path().join(SPOOL_IDENTITY))).collect()
    }

    fn spool_of(&self, node: &str) -> PathBuf {
        self.data_dir.join(cluster::SPOOLS).join(node)
    }

    /// Starts one executor for each emulated node and waits until all are ready.
    async fn start_emulated(&mut self, bus: &SharedBus, nodes: &cluster::Emulated) -> anyhow::Result<()> {
        let mut waiting = Vec::new();
        // A single node is this host.
        let names: Vec<String> = nodes.names().map(str::to_owned).collect();
        let is_this_host = names.len() == 1;
        let emulated = if is_this_host { Vec::new() } else { names };
        // Emulated nodes share the host's cores, and may declare more than it has.
        let bind_cpus = is_this_host && self.loaded.file.names("executor", "bind_cpus") && self.executor().bind_cpus;
        for node in nodes.names() {
            let config = muster_executor::Config {
                node: node.to_owned(),
                spool_dir: self.spool_of(node),
                bind_cpus,
                // As for cores, unless the configuration says which ones there are.
                invents_gpus: true,
                emulated_nodes: emulated.clone(),
                ..self.executor()
            };
            let bus = bus.clone();
            let started = self
                .group
                .spawn(format!("executor of {node}"), |ready, stop| muster_executor::serve(bus, config, ready, stop));
            waiting.push(started);
        }
        for started in waiting {
            self.group.wait_until_ready(started).await?;
        }
        Ok(())
    }

    /// Starts roles, and stops everything in order on SIGTERM or SIGINT, or when a role fails. SIGHUP reads the
    /// configuration again. Without a configuration file SIGHUP is the hang-up of a terminal and stops the roles,
    /// unless they were started to outlive it, as by `nohup`.
    async fn run(
        mut self,
        start: impl AsyncFnOnce(&mut Self, &SharedBus) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let mut stop =
            StopSignals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
        let ignores_hangup = is_ignored(libc::SIGHUP);
        let mut hangup = signal(SignalKind::hangup())?;
        let bus = tokio::select! {
            bus = self.bus() => bus?,
            () = stop.received() => return Ok(()),
        };
        let started = tokio::select! {
            started = start(&mut self, &bus) => started.map(Some),
            () = stop.received() => Ok(None),
        };
        let failure = match started {
            Err(error) => Some(error),
            Ok(None) => None,
            Ok(Some(what)) => {
                // Perhaps nobody reads it.
                let _ = writeln!(std::io::stdout(), "muster is ready: {what}");
                loop {
                    tokio::select! {
                        () = stop.received() => break None,
                        _ = hangup.recv() => match self.loaded.path.clone() {
                            Some(path) => self.reload(&path, &bus).await,
                            None if ignores_hangup => {}
                            None => {
                                tracing::info!("SIGHUP, and there is no configuration file to read again: it ends");
                                break None;
                            }
                        },
                        failure = self.group.failure() => break Some(failure),
                    }
                }
            }
        };
        let stopped = self.group.stop().await;
        failure.map_or(stopped, Err)
    }

    /// NATS if the configuration names it, else the bus in this process.
    async fn bus(&self) -> anyhow::Result<SharedBus> {
        if !self.is_on_nats {
            return Ok(LocalBus::new());
        }
        let bus = NatsBus::connect(self.loaded.configuration.bus.clone());
        Ok(bus.await.context("the bus cannot be used")?)
    }

    /// Reads the configuration again: changes that can take effect at once do so, the cluster's part becomes a command,
    /// and the rest is reported.
    async fn reload(&mut self, path: &Path, bus: &SharedBus) {
        if let Some(follower) = &self.pbs_policy {
            follower.reload();
        }
        self.program.ask();
        if let Some(follower) = &self.quotas {
            follower.reload();
        }
        let loaded = match config::load(Some(path)) {
            Ok(loaded) => loaded,
            Err(failure) => {
                tracing::error!(
                    error = failure.message,
                    "the configuration has an error and is not used; nothing changed"
                );
                return;
            }
        };
        let filter = &loaded.configuration.telemetry.log_filter;
        if let Err(error) = self.telemetry.set_log_filter(filter) {
            tracing::error!(%error, "the log filter is unchanged");
        }
        let differing = loaded.file.process_keys_that_differ(&self.loaded.file);
        let needs_restart: Vec<String> = differing.into_iter().filter(|key| key != "telemetry.log_filter").collect();
        if !needs_restart.is_empty() {
            tracing::warn!(keys = needs_restart.join(", "), "these changed keys take effect at the next start");
        }
        if loaded.file.describes_cluster() && self.group.has_ledger() {
            match cluster::reconfigure(bus, &loaded).await {
                Ok(sequence) => tracing::info!(%sequence, "the cluster's configuration was applied"),
                Err(error) => {
                    tracing::error!(error = format!("{error:#}"), "the cluster's configuration was not applied")
                }
            }
        }
        self.loaded.file = loaded.file;
        self.loaded.configuration.telemetry = loaded.configuration.telemetry;
    }
}
