//! The service: orders in, reports out.

use crate::{
    Config, RunKey,
    clients::{self, Clients},
    contact::{Contact, Moment},
    containment::{self, Hierarchies},
    contents::{ContentError, Contents},
    copies::Copies,
    fences::{Leader, Members},
    fork_server, gpu_reports,
    gpus::{self, Found},
    health,
    host::Plan,
    launcher::{About, Finding, Launcher, Settings, Size, Work},
    load_reports,
    protocol::{self, Control, News, Notice},
    reign::Reign,
    reports::{self, Report, Reports, Told},
    spool::{CONTROL, EXECUTOR_SOCKET, End, RunFolder, RunLog, Spool},
};
use anyhow::Context as _;
use muster_bus::{LedgerClient, Published, SharedBus, Subscription};
use muster_schemas::{
    PartId, RunId, StepId, Timestamp,
    command::QueryAnswer,
    event::StopReason,
    node::{NodeOrder, OrderEnvelope, ShortOrder},
    subjects,
};
use muster_telemetry::{
    metrics::{self, Counter, Histogram, UpDownCounter},
    trace,
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, mpsc},
    time::{Duration, Instant},
};
use tokio::{
    io::unix::AsyncFd,
    sync::{mpsc::UnboundedReceiver, oneshot},
    task::JoinSet,
    time,
};
use tokio_util::sync::CancellationToken;
use tracing::Span;

/// A run that ends within this time is not reported as started: its end says that too, and the log is half as long.
const REPORT_START_AFTER: Duration = Duration::from_millis(5);
/// How soon a shim that is not yet there is tried again.
const UNDELIVERED_RETRY: Duration = Duration::from_millis(20);
/// How long a run that the ledger has forgotten has to end.
const FORGOTTEN_GRACE_SECONDS: u32 = 10;

static RUNS: LazyLock<UpDownCounter<i64>> = LazyLock::new(|| {
    metrics::up_down_counter(
        "muster_executor_runs",
        "Runs and steps on this process's nodes whose end is not in the log.",
    )
});
static LAUNCHES: LazyLock<Counter<u64>> =
    LazyLock::new(|| metrics::counter("muster_executor_launches_total", "Orders to launch a run or step."));
static LAUNCH_SECONDS: LazyLock<Histogram<f64>> = LazyLock::new(|| {
    metrics::duration_seconds("muster_executor_launch_seconds", "From the order to the start or end of its processes.")
});

/// Runs the executor of a node until `shutdown`. Runs then continue under their shims, and the next call with the same
/// spool finds them again. `ready` is signalled once the ledger knows that the node is up.
///
/// # Errors
/// If the configuration is out of range, the spool cannot be used or belongs to another cluster, the requested
/// containment is not available, or the bus is closed.
pub async fn serve(
    bus: SharedBus,
    config: Config,
    ready: oneshot::Sender<()>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let node = config.node.clone();
    let executor = shutdown.run_until_cancelled(Executor::begin(bus, config, ready)).await;
    let Some(executor) = executor else { return Ok(()) };
    let (mut executor, contact) = executor.with_context(|| format!("the executor of node `{node}` cannot start"))?;
    let result = shutdown.run_until_cancelled(executor.work(contact)).await.unwrap_or(Ok(()));
    executor.stop().await;
    result.with_context(|| format!("the executor of node `{node}` failed"))
}

struct Executor {
    config: Config,
    spool_root: PathBuf,
    steps_share_groups: bool,
    orders: Subscription,
    reign: Arc<Reign>,
    notices: tokio::net::UnixDatagram,
    launcher: Option<mpsc::Sender<Work>>,
    launcher_thread: Option<std::thread::JoinHandle<()>>,
    findings: UnboundedReceiver<Finding>,
    fork_server_death: Option<AsyncFd<OwnedFd>>,
    runs: BTreeMap<RunKey, Run>,
    /// The highest run that this node remembers.
    highest_run: Option<RunId>,
    reports: Reports,
    ledger: LedgerClient,
    /// Runs that should not have been suspended, as the ledger is being told.
    unwanted_suspensions: Telling,
    /// Signals on their way to the ledger.
    signals: Telling,
    copies: Copies,
    contents: Arc<Contents>,
    /// Orders whose contents are being fetched.
    fetching: JoinSet<(RunKey, Result<NodeOrder, ContentError>)>,
    clients: Arc<Clients>,
    clients_task: tokio::task::JoinHandle<()>,
    /// The fences of parallel programs that this node leads, and those that it takes part in.
    leader: Arc<Leader>,
    leader_task: tokio::task::JoinHandle<()>,
    /// Tells the ledger about the node's GPUs, unless these are only numbers.
    gpus_task: Option<tokio::task::JoinHandle<()>>,
    members: Arc<Members>,
    /// The checks of the node's health, if the site has some.
    health_task: Option<tokio::task::JoinHandle<()>>,
    /// Tells the load of the node, if that is wanted.
    load_task: Option<tokio::task::JoinHandle<()>>,
    /// Steps whose end is in the log and whose output a client may still want, since when they are done here.
    lingering: BTreeMap<RunKey, Instant>,
    /// Starts to report, in order of time.
    starts: VecDeque<(time::Instant, RunKey)>,
    /// Runs with controls that their shim has not taken.
    undelivered: BTreeSet<RunKey>,
    /// When to deliver them again.
    next_delivery: Option<time::Instant>,
    ready: Option<oneshot::Sender<()>>,
}

/// The executor's knowledge of a run or step.
struct Run {
    about: Option<About>,
    stage: Stage,
    /// Whether the ledger knows that it started.
    told_start: bool,
    /// A report about it is on its way; the next one waits for it.
    telling: bool,
    controls: VecDeque<Control>,
    /// The size that it was last given.
    size: Option<Size>,
    ordered: Instant,
    /// When this executor first knew of it. A run can come to a node again: then its start is reported again.
    known_since: Timestamp,
    span: Span,
}

impl Run {
    /// Whether its tasks meet those of other nodes.
    fn is_parallel(&self) -> bool {
        self.about.is_some_and(|about| about.is_parallel)
    }
}

enum Stage {
    /// The contents that its order names are being fetched: nothing is on the disk, and nothing was started.
    Fetching,
    Launching,
    Running,
    Ended(End),
}

impl Executor {
    async fn begin(bus: SharedBus, config: Config, ready: oneshot::Sender<()>) -> anyhow::Result<(Self, Contact)> {
        config.check()?;
        let ledger = LedgerClient::new(bus.clone());
        let spool = Spool::open(&config.spool_dir)?;
        warn_if_not_passable(spool.root());
        bind_to_cluster(&spool, &ledger).await?;
        let boot_id =
            std::fs::read_to_string("/proc/sys/kernel/random/boot_id").context("the boot id cannot be read")?;
        let gpus = find_gpus(&config, &spool).await?;
        let settings = settings(&config, &spool, boot_id.trim(), gpus.as_ref())?;
        link_rsh(&config, &spool);
        plan_host(&config, &spool).context("the host of the emulated node cannot be planned in the spool")?;
        let notices = protocol::bind(spool.root(), EXECUTOR_SOCKET)?;
        notices.set_nonblocking(true)?;
        let (found, findings) = tokio::sync::mpsc::unbounded_channel();
        let (work, to_do) = mpsc::channel();
        let spool_root = spool.root().to_owned();
        let reign = Reign::continued(&config.node, &spool_root).context("the epoch in the spool cannot be read")?;
        let reign = Arc::new(reign);
        let contact = Contact::new(ledger.clone(), reign.clone(), &config, settings.boot_id.clone());
        let steps_share_groups = settings.hierarchies.has_groups();
        let hierarchies = settings.hierarchies.clone();
        let gpus_task = watch_gpus(&config, &ledger, gpus)?;
        let launcher = Launcher::new(spool, settings, found).context("the launch journal cannot be read")?;
        let highest_run = launcher.highest_run();
        let clients = Arc::new(Clients::default());
        let asked = clients::requests(&bus, &config.node).await?;
        let clients_task = tokio::spawn(clients.clone().serve(asked, spool_root.clone()));
        let leader = Arc::new(Leader::default());
        let fences = bus.serve(&subjects::node_fences(&config.node)).await?;
        let leader_task = tokio::spawn(leader.clone().serve(fences));
        let members = Members::new(bus.clone(), config.node.clone(), spool_root.clone(), leader.clone());
        let health_task = config.site_programs()?.filter(|site| site.health_check.is_some()).map(|site| {
            let every = Duration::from_secs(config.health_check_interval_seconds.into());
            tokio::spawn(health::watch(ledger.clone(), config.node.clone(), site, every))
        });
        let load_task = (config.load_interval_seconds > 0).then(|| {
            let every = Duration::from_secs(config.load_interval_seconds.into());
            let files = load_reports::Files { load: config.load_file.clone(), times: config.stat_file.clone() };
            tokio::spawn(load_reports::tell(ledger.clone(), config.node.clone(), files, hierarchies, every))
        });
        let thread = std::thread::Builder::new().name("launcher".into()).spawn(move || launcher.run(&to_do))?;
        let executor = Self {
            orders: bus.subscribe(&subjects::node_orders(&config.node)).await?,
            reign,
            reports: Reports::new(ledger.clone(), config.node.clone(), spool_root.clone()),
            copies: Copies::new(ledger.clone(), config.copier()),
            contents: Arc::new(Contents::new(ledger.clone(), config.node.clone())),
            ledger,
            unwanted_suspensions: Telling::default(),
            signals: Telling::default(),
            fetching: JoinSet::new(),
            config,
            spool_root,
            steps_share_groups,
            notices: tokio::net::UnixDatagram::from_std(notices)?,
            launcher: Some(work),
            launcher_thread: Some(thread),
            findings,
            fork_server_death: None,
            runs: BTreeMap::new(),
            highest_run,
            clients,
            clients_task,
            leader,
            leader_task,
            gpus_task,
            members: Arc::new(members),
            health_task,
            load_task,
            lingering: BTreeMap::new(),
            starts: VecDeque::new(),
            undelivered: BTreeSet::new(),
            next_delivery: None,
            ready: Some(ready),
        };
        Ok((executor, contact))
    }

    /// Lets the launcher end, and with it the fork server.
    async fn stop(&mut self) {
        self.copies.stop_all();
        self.launcher = None;
        self.clients_task.abort();
        self.leader_task.abort();
        self.gpus_task.iter().for_each(tokio::task::JoinHandle::abort);
        self.health_task.iter().for_each(tokio::task::JoinHandle::abort);
        self.load_task.iter().for_each(tokio::task::JoinHandle::abort);
        if let Some(thread) = self.launcher_thread.take() {
            // It ends within about a second, or some more if a fork server starts; a panic in it has been logged.
            let _ = tokio::task::spawn_blocking(|| thread.join()).await;
        }
        if self.runs.is_empty() {
            Plan::tidy(&self.spool_root);
        }
    }

    async fn work(&mut self, mut contact: Contact) -> anyhow::Result<()> {
        self.take_over_spool().await?;
        let mut buffer = [0; protocol::MAX_MESSAGE_BYTES];
        loop {
            let next_start = self.starts.front().map(|(due, _)| *due);
            tokio::select! {
                order = self.orders.next() => self.ordered(&order.context("the bus is closed")?),
                received = self.notices.recv(&mut buffer) => match received {
                    Ok(length) => self.noticed(&buffer[..length]),
                    Err(error) => tracing::warn!(%error, "a notice of a shim was lost; the next check finds it"),
                },
                finding = self.findings.recv() => self.found(finding.context("the launcher thread has failed")?),
                told = self.reports.next() => self.told(&told),
                Some(fetched) = self.fetching.join_next() => {
                    // A fetch that panicked is ordered again: after a while its launch is unknown here.
                    if let Ok((key, order)) = fetched {
                        self.fetched(key, order);
                    }
                }
                moment = contact.next() => match moment {
                    Moment::Speak => {
                        self.check_runs();
                        self.forget_lingering();
                        self.leader.drop_silent();
                        contact.speak(self.parts_to_tell(), self.highest_run);
                    }
                    Moment::Orders(orders) => self.answered(orders),
                    Moment::Silence => {}
                },
                () = sleep_until(next_start) => self.report_starts(),
                () = sleep_until(self.next_delivery) => self.deliver_all(),
                () = fork_server_died(self.fork_server_death.as_ref()) => self.replace_fork_server(),
            }
        }
    }

    fn ordered(&mut self, order: &Published) {
        match order.message.decode::<OrderEnvelope>() {
            Ok(envelope) if self.reign.obeys(envelope.epoch) => self.obey(envelope.order),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "an order cannot be understood; the next heartbeat brings it again");
            }
        }
    }

    fn answered(&mut self, orders: Vec<NodeOrder>) {
        orders.into_iter().for_each(|order| self.obey(order));
        if let Some(ready) = self.ready.take() {
            // The receiver may be gone.
            let _ = ready.send(());
        }
    }

    fn replace_fork_server(&mut self) {
        tracing::error!(node = self.config.node, "the fork server has died");
        self.fork_server_death = None;
        self.ask(Work::RestartForkServer);
        self.check_runs();
    }

    /// Waits until everything that an earlier executor left is known.
    async fn take_over_spool(&mut self) -> anyhow::Result<()> {
        loop {
            match self.findings.recv().await.context("the launcher thread has failed")? {
                Finding::Ready => return Ok(()),
                finding => self.found(finding),
            }
        }
    }

    fn ask(&self, work: Work) {
        if let Some(launcher) = &self.launcher {
            // If the thread has failed, the findings end, which ends the service.
            let _ = launcher.send(work);
        }
    }

    fn parts_to_tell(&self) -> Vec<PartId> {
        self.runs.keys().filter(|key| !key.is_step()).map(|key| key.part).collect()
    }

    /// Finds shims that died silently, and notices that were lost.
    fn check_runs(&mut self) {
        if self.config.after_suspend_program.is_some() {
            let running = |(key, run): (&RunKey, &Run)| matches!(run.stage, Stage::Running).then_some(*key);
            let running: Vec<RunKey> = self.runs.iter().filter_map(running).collect();
            running.into_iter().for_each(|key| self.tell_unwanted_suspension(key));
        }
        for (key, run) in &self.runs {
            if matches!(run.stage, Stage::Running) && run.is_parallel() {
                self.members.look(*key);
            }
            if matches!(run.stage, Stage::Launching | Stage::Running) {
                self.ask(Work::Check(*key));
            }
        }
    }

    fn obey(&mut self, order: NodeOrder) {
        if let Some((key, about)) = launched_by(&order) {
            return self.launch(key, about, order);
        }
        match order {
            NodeOrder::Launch { .. } | NodeOrder::Hold(_) => {}
            NodeOrder::ByHash(short) => self.fetch(*short),
            NodeOrder::SignalStep { part, step: StepId(0), signal } => {
                self.control(RunKey::whole(part), Control::SignalOwn(signal));
            }
            NodeOrder::SignalStep { part, step, signal } => {
                self.control(RunKey { part, step }, Control::Signal(signal))
            }
            NodeOrder::Signal { part, signal } => {
                // With groups the run's shim reaches the processes of its steps too.
                let steps_too = !self.steps_share_groups;
                for key in self.keys_of(part).into_iter().filter(|key| steps_too || !key.is_step()) {
                    self.control(key, Control::Signal(signal));
                }
            }
            NodeOrder::Suspend { part } => self.control_all(part, Control::Suspend),
            NodeOrder::Resume { part } => self.control_all(part, Control::Resume),
            NodeOrder::SetWalltime { part, walltime_seconds } => {
                self.control(RunKey::whole(part), Control::SetWalltime(walltime_seconds));
            }
            NodeOrder::SetStepWalltime { part, step, walltime_seconds } => {
                self.control(RunKey { part, step }, Control::SetWalltime(walltime_seconds));
            }
            NodeOrder::Stop { part, reason, grace_seconds } => {
                self.copies.stop_run(part.run());
                self.stop_run(part, Control::Stop { reason, grace_seconds })
            }
            NodeOrder::Forget { part } => self.forget_run(part),
            NodeOrder::Copy(order) => self.copies.begin(*order),
            NodeOrder::StopCopy { job, copy } => self.copies.stop(job, copy),
            NodeOrder::Resize { part, cores, memory_bytes } => self.resize(part, Size { cores, memory_bytes }),
            NodeOrder::Tell { part, text } => self.add_note(RunKey::whole(part), &text),
            NodeOrder::StopStep { part, step, grace_seconds } => {
                let stop = Control::Stop { reason: StopReason::Cancelled, grace_seconds };
                self.stop_one(RunKey { part, step }, stop);
            }
        }
    }

    /// A known run was ordered before, and is not launched again.
    fn launch(&mut self, key: RunKey, about: About, order: NodeOrder) {
        if self.is_new(key, about, Stage::Launching) {
            self.ask_to_launch(order);
        }
    }

    /// Completes an order in the background and then launches it.
    fn fetch(&mut self, short: ShortOrder) {
        let Some((key, about)) = launched_by(&short.order) else { return };
        if self.is_new(key, about, Stage::Fetching) {
            let contents = Arc::clone(&self.contents);
            self.fetching.spawn(async move { (key, contents.fill(short).await) });
        }
    }

    fn is_new(&mut self, key: RunKey, about: About, stage: Stage) -> bool {
        if self.runs.contains_key(&key) {
            return false;
        }
        LAUNCHES.add(1, &[]);
        tracing::debug!(job = %about.job, %key, node = self.config.node, "launching");
        self.add(key, Some(about), stage);
        true
    }

    fn ask_to_launch(&self, order: NodeOrder) {
        match order {
            NodeOrder::Launch { order, tasks } => self.ask(Work::Launch(order, tasks)),
            NodeOrder::Hold(order) => self.ask(Work::Hold(order)),
            _ => {}
        }
    }

    /// A launch that was stopped or forgotten meanwhile is dropped.
    fn fetched(&mut self, key: RunKey, order: Result<NodeOrder, ContentError>) {
        let Some(run) = self.runs.get_mut(&key).filter(|run| matches!(run.stage, Stage::Fetching)) else { return };
        match order {
            Ok(order) => {
                run.stage = Stage::Launching;
                self.ask_to_launch(order);
            }
            Err(error) => {
                let node = &self.config.node;
                tracing::warn!(parent: &run.span, %key, node, %error, "a launch is dropped until the ledger orders it again");
                self.drop_unstarted(key);
            }
        }
    }

    /// Nothing is left of it, and it can be ordered again.
    fn drop_unstarted(&mut self, key: RunKey) {
        if self.runs.remove(&key).is_some() {
            RUNS.add(-1, &[]);
            self.undelivered.remove(&key);
        }
    }

    fn is_fetching(&self, key: RunKey) -> bool {
        self.runs.get(&key).is_some_and(|run| matches!(run.stage, Stage::Fetching))
    }

    /// The order is repeated, since nobody acknowledges it.
    fn resize(&mut self, id: PartId, size: Size) {
        let Some(run) = self.runs.get_mut(&RunKey::whole(id)) else { return };
        if matches!(run.stage, Stage::Running) && run.size.as_ref() != Some(&size) {
            run.size = Some(size.clone());
            self.ask(Work::Resize(id, size));
        }
    }

    /// Messages wait in the folder of the run for its shim to write them.
    fn add_note(&mut self, key: RunKey, text: &str) {
        let Some(run) = self.runs.get(&key).filter(|run| !matches!(run.stage, Stage::Ended(_))) else { return };
        match RunFolder::of(&self.spool_root, key).add_note(text) {
            Ok(()) => self.control(key, Control::Notes),
            Err(error) => tracing::warn!(parent: &run.span, %key, %error, "the message to the job cannot be stored"),
        }
    }

    fn keys_of(&self, part: PartId) -> Vec<RunKey> {
        let last = RunKey { part, step: StepId(u32::MAX) };
        self.runs.range(RunKey::whole(part)..=last).map(|(key, _)| *key).collect()
    }

    fn control_all(&mut self, part: PartId, control: Control) {
        for key in self.keys_of(part) {
            self.control(key, control);
        }
    }

    fn stop_run(&mut self, part: PartId, stop: Control) {
        self.stop_one(RunKey::whole(part), stop);
        for key in self.keys_of(part) {
            self.stop_one(key, stop);
        }
    }

    /// A run that is unknown here, or has not begun, is reported as ended, and never started if its launch still
    /// arrives.
    fn stop_one(&mut self, key: RunKey, stop: Control) {
        match self.runs.get_mut(&key) {
            Some(run) if matches!(run.stage, Stage::Fetching) => {
                run.stage = Stage::Launching;
                self.ask(Work::Bury(key));
            }
            Some(_) => {}
            None => {
                self.add(key, None, Stage::Launching);
                self.ask(Work::Bury(key));
            }
        }
        self.control(key, stop);
    }

    /// The ledger no longer needs the run.
    fn forget_run(&mut self, part: PartId) {
        for key in self.keys_of(part) {
            if matches!(self.runs.get(&key), Some(Run { stage: Stage::Ended(_), .. })) {
                self.forget(key);
            } else if self.is_fetching(key) {
                self.drop_unstarted(key);
            } else {
                let stop = Control::Stop { reason: StopReason::NodeLost, grace_seconds: FORGOTTEN_GRACE_SECONDS };
                self.control(key, stop);
            }
        }
    }

    /// Removes all of it, unless a client may still want its output.
    fn forget(&mut self, key: RunKey) {
        let has_output = self.runs.get(&key).and_then(|run| run.about).is_some_and(|about| about.has_output);
        let through = *self.lingering.entry(key).or_insert_with(Instant::now);
        if has_output && !self.clients.is_done(key, &self.spool_root, through) {
            return;
        }
        self.lingering.remove(&key);
        self.clients.forget(key);
        if self.runs.remove(&key).is_some() {
            RUNS.add(-1, &[]);
        }
        self.undelivered.remove(&key);
        self.ask(Work::Forget(key));
    }

    fn forget_lingering(&mut self) {
        for key in self.lingering.keys().copied().collect::<Vec<_>>() {
            self.forget(key);
        }
    }

    fn add(&mut self, key: RunKey, about: Option<About>, stage: Stage) {
        let job = about.map(|about| tracing::field::display(about.job));
        let span = tracing::debug_span!("run", job, run = %key.part, step = %key.step, node = self.config.node);
        let span = trace::in_trace(span, about.map(|about| about.trace).unwrap_or_default());
        RUNS.add(1, &[]);
        let run = Run {
            about: about.map(|about| About { trace: trace::context_of(&span, about.trace), ..about }),
            stage,
            told_start: false,
            telling: false,
            controls: VecDeque::new(),
            size: None,
            ordered: Instant::now(),
            known_since: Timestamp::now(),
            span,
        };
        self.runs.insert(key, run);
        self.highest_run = self.highest_run.max(Some(key.part.run()));
    }

    fn control(&mut self, key: RunKey, control: Control) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        if matches!(run.stage, Stage::Ended(_)) || run.controls.contains(&control) {
            return;
        }
        run.controls.push_back(control);
        self.deliver(key);
    }

    /// Gives the shim the controls that it has not taken yet, in order.
    fn deliver(&mut self, key: RunKey) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let pipe = RunFolder::of(&self.spool_root, key).file(CONTROL);
        while let Some(control) = run.controls.front() {
            if protocol::write_to_pipe(&pipe, control).is_err() {
                self.undelivered.insert(key);
                self.next_delivery.get_or_insert_with(|| time::Instant::now() + UNDELIVERED_RETRY);
                return;
            }
            run.controls.pop_front();
        }
        self.undelivered.remove(&key);
    }

    fn deliver_all(&mut self) {
        self.next_delivery = None;
        for key in self.undelivered.clone() {
            self.deliver(key);
        }
    }

    fn noticed(&mut self, bytes: &[u8]) {
        let Some(Notice { key, news }) = protocol::from_bytes(bytes) else { return };
        match news {
            _ if !self.runs.contains_key(&key) => self.ask(Work::Inspect(key)),
            News::Started => self.started(key),
            News::Output => self.clients.has_news(key),
            News::Fence => self.members.look(key),
            News::SuspensionUnwanted => self.tell_unwanted_suspension(key),
            News::Signalled => self.tell_signals(key),
            News::Ended => match RunFolder::of(&self.spool_root, key).log() {
                Ok(Some(RunLog { end: Some(end), .. })) => self.ended(key, end),
                _ => self.ask(Work::Inspect(key)),
            },
        }
    }

    fn found(&mut self, finding: Finding) {
        match finding {
            Finding::Ready => {}
            // SAFETY: an owned descriptor stays open and the same as long as it is owned.
            Finding::ForkServer(death) => match unsafe { AsyncFd::register(death) } {
                Ok(death) => self.fork_server_death = Some(death),
                Err(error) => tracing::warn!(%error, "the fork server cannot be watched"),
            },
            Finding::Alive { key, about, started } => {
                self.know(key, Some(about));
                if started {
                    self.started(key);
                }
            }
            Finding::Ended { key, about, end } => {
                self.know(key, about);
                self.ended(key, end);
            }
            Finding::Unknown(key) => self.drop_unstarted(key),
        }
    }

    /// Tells the ledger that a run is to continue, if its shim has noted that (OAR-S-04).
    fn tell_unwanted_suspension(&mut self, key: RunKey) {
        let folder = RunFolder::of(&self.spool_root, key);
        let Some(why) = folder.unwanted_suspension(key) else { return };
        let (ledger, node) = (self.ledger.clone(), self.config.node.clone());
        self.unwanted_suspensions.begin(key, reports::tell_unwanted_suspension(ledger, node, folder, key, why));
    }

    /// Tells the ledger of the signals that a shim has noted. One whose notice is lost is told with the end of the run.
    fn tell_signals(&mut self, key: RunKey) {
        let folder = RunFolder::of(&self.spool_root, key);
        let (ledger, node) = (self.ledger.clone(), self.config.node.clone());
        self.signals.begin(key, async move { reports::tell_signals(&ledger, &node, &folder, key).await });
    }

    fn know(&mut self, key: RunKey, about: Option<About>) {
        if !self.runs.contains_key(&key) {
            self.add(key, about, Stage::Launching);
        }
    }

    fn started(&mut self, key: RunKey) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        if !matches!(run.stage, Stage::Launching) {
            return;
        }
        run.stage = Stage::Running;
        LAUNCH_SECONDS.record(run.ordered.elapsed().as_secs_f64(), &[]);
        if run.is_parallel() {
            self.members.look(key);
        }
        if !key.is_step() {
            self.starts.push_back((time::Instant::now() + REPORT_START_AFTER, key));
        }
        self.deliver(key);
    }

    fn ended(&mut self, key: RunKey, end: End) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        match run.stage {
            Stage::Ended(_) => return,
            Stage::Fetching | Stage::Launching => LAUNCH_SECONDS.record(run.ordered.elapsed().as_secs_f64(), &[]),
            Stage::Running => {}
        }
        let job = run.about.map(|about| tracing::field::display(about.job));
        tracing::debug!(parent: &run.span, job, %key, node = self.config.node, cause = ?end.exit.cause, "ended");
        run.stage = Stage::Ended(end);
        run.controls.clear();
        if run.is_parallel() {
            self.members.leave(key);
        }
        self.clients.has_ended(key);
        self.undelivered.remove(&key);
        self.tell(key);
    }

    fn report_starts(&mut self) {
        let now = time::Instant::now();
        while self.starts.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.starts.pop_front() {
                self.tell(key);
            }
        }
    }

    /// Reports to the ledger what it does not know about a run, one report at a time.
    fn tell(&mut self, key: RunKey) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let report = match &run.stage {
            Stage::Ended(end) => Report::Ended(end.clone()),
            Stage::Running if !run.told_start => Report::Started(run.known_since),
            _ => return,
        };
        if !run.telling {
            run.telling = true;
            self.reports.tell(key, run.about, report);
        }
    }

    fn told(&mut self, told: &Told) {
        let Some(run) = self.runs.get_mut(&told.key) else { return };
        run.telling = false;
        match (told.was_end, told.settled) {
            (true, true) => return self.forget(told.key),
            (true, false) => self.ask(Work::SyncResult(told.key)),
            (false, settled) => run.told_start = settled,
        }
        self.tell(told.key);
    }
}

/// Tasks that tell the ledger something about runs, one for each run at a time.
#[derive(Default)]
struct Telling {
    tasks: JoinSet<RunKey>,
    runs: BTreeSet<RunKey>,
}

impl Telling {
    /// Begins to tell, unless that is being done for the run.
    fn begin(&mut self, key: RunKey, tell: impl Future<Output = ()> + Send + 'static) {
        while let Some(told) = self.tasks.try_join_next() {
            if let Ok(told) = told {
                self.runs.remove(&told);
            }
        }
        if self.runs.insert(key) {
            self.tasks.spawn(async move {
                tell.await;
                key
            });
        }
    }
}

/// The launch or hold in an order, if the order is complete.
fn launched_by(order: &NodeOrder) -> Option<(RunKey, About)> {
    match order {
        NodeOrder::Launch { order, tasks } => Some((RunKey::of(order), About::new(order, tasks.as_deref()))),
        NodeOrder::Hold(order) => Some((RunKey::of(order), About::new(order, None))),
        _ => None,
    }
}

/// Waits for ever if there is no such time.
async fn sleep_until(time: Option<time::Instant>) {
    match time {
        Some(time) => time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn fork_server_died(death: Option<&AsyncFd<OwnedFd>>) {
    match death {
        // An error cannot be told from a death, and a restart does no harm.
        Some(death) => drop(death.readable().await),
        None => std::future::pending().await,
    }
}

/// The spool's runs must be this cluster's. Waits for the ledger to name the cluster.
async fn bind_to_cluster(spool: &Spool, ledger: &LedgerClient) -> anyhow::Result<()> {
    let cluster_id = loop {
        match ledger.head().await {
            Ok(QueryAnswer::Head { cluster_id, .. }) => break cluster_id,
            Ok(_) => anyhow::bail!("the ledger gave an answer to another question"),
            Err(error) if error.is_retryable() => tracing::info!(%error, "waiting for the ledger"),
            Err(error) => return Err(error.into()),
        }
    };
    if spool.bind_to_cluster(&uuid::Uuid::from_bytes(cluster_id).to_string())? {
        tracing::warn!(spool = %spool.root().display(), "the spool has changed to another cluster");
    }
    Ok(())
}

/// The GPUs of the node by number; `None` if they are numbers and nothing else.
async fn find_gpus(config: &Config, spool: &Spool) -> anyhow::Result<Option<Found>> {
    let configured = config.configured_gpus()?;
    if configured.is_none() && config.invents_gpus {
        return Ok(None);
    }
    let found = gpus::find(configured).await.context("the GPUs cannot be looked for")?;
    let has_runs = !spool.keys().context("the spool cannot be read")?.is_empty();
    let found = gpus::settled(found, spool.gpus(), has_runs);
    if !found.devices.is_empty() || !spool.gpus().is_empty() {
        spool.set_gpus(&found.devices).context("the numbers of the GPUs cannot be kept in the spool")?;
    }
    Ok(Some(found))
}

fn settings(config: &Config, spool: &Spool, boot_id: &str, found: Option<&Found>) -> anyhow::Result<Settings> {
    let mode = config.own_containment();
    let mut hierarchies = Hierarchies::detect(mode, &containment::instance(&config.node, spool.root()))
        .with_context(|| format!("containment {mode:?} is not available"))?;
    let node = &config.node;
    let gpus = found.map(|found| found.devices.clone());
    for (number, gpu) in (0..).zip(gpus.iter().flatten()) {
        tracing::info!(node, number, %gpu, model = gpu.model, uuid = gpu.uuid, "a GPU of this node");
    }
    if gpus.as_ref().is_some_and(|gpus| !gpus.is_empty())
        && let Err(error) = hierarchies.with_devices(mode)
    {
        tracing::warn!(node, %error, "jobs can open the GPUs of other jobs: only variables name those that are theirs");
    }
    tracing::info!(node = config.node, containment = hierarchies.describe(config.bind_cpus), "executor starts");
    if let Some(manager) = &config.isolation_manager {
        tracing::info!(node, manager = %manager.display(), "a program of the site isolates jobs");
    }
    Ok(Settings {
        boot_id: boot_id.to_owned(),
        hierarchies,
        cpus: if config.bind_cpus { usable_cpus() } else { vec![] },
        cpuset_property: config.cpuset_property.clone(),
        open_files: config.open_files,
        gpus,
        pmix_program: std::env::current_exe().ok(),
        container_runtime: config.container_runtime.clone(),
        site: config.site_programs()?,
        cleaning: config.cleaning(),
        shim_programs: config.shim_program.iter().cloned().chain([fork_server::THIS_PROGRAM.into()]).collect(),
    })
}

/// Looks at the GPUs of the node from now on, and tells the ledger about them.
fn watch_gpus(
    config: &Config,
    ledger: &LedgerClient,
    gpus: Option<Found>,
) -> anyhow::Result<Option<tokio::task::JoinHandle<()>>> {
    let Some(gpus) = gpus else { return Ok(None) };
    let period = Duration::from_secs(config.gpu_check_seconds.into());
    let watch = gpus::Watch::begin(gpus, period).context("the GPUs cannot be looked at")?;
    Ok(Some(tokio::spawn(gpu_reports::tell(ledger.clone(), config.node.clone(), watch))))
}

/// Without the link, launchers of parallel programs reach only this node; nothing else needs it.
fn link_rsh(config: &Config, spool: &Spool) {
    let program = config.shim_program.clone().map_or_else(std::env::current_exe, Ok);
    if let Err(error) = program.and_then(|program| spool.link_rsh(&program)) {
        let node = &config.node;
        tracing::warn!(node, %error, "launchers of MPI programs cannot reach other nodes: there is no muster-rsh");
    }
}

/// Has the fork server make a host for an emulated node, if nodes are emulated here.
fn plan_host(config: &Config, spool: &Spool) -> std::io::Result<()> {
    if config.emulated_nodes.is_empty() {
        return Plan::remove(spool.root());
    }
    let instance = containment::instance(&config.node, spool.root());
    Plan::make(spool.root(), &config.node, &instance, &config.emulated_nodes)
}

/// The CPUs that this process may use, in order.
fn usable_cpus() -> Vec<u32> {
    let Ok(set) = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)) else { return vec![] };
    (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).map(|cpu| cpu as u32).collect()
}

/// Jobs of other users must be able to reach their script.
fn warn_if_not_passable(spool: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let closed = |folder: &&Path| folder.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 == 0);
    if nix::unistd::Uid::effective().is_root()
        && let Some(folder) = spool.ancestors().find(closed)
    {
        tracing::warn!(
            folder = %folder.display(),
            "users cannot pass through this folder to the spool: jobs of users other than root will not start (chmod o+x helps)"
        );
    }
}
