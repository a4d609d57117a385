//! An executor on a bus of its own, with a ledger that only takes notes.
#![allow(dead_code, missing_docs, reason = "each test program uses a part")]

pub use muster_bus::testing::until;
use muster_bus::{LocalBus, Message, SharedBus};
use muster_executor::{
    Config, ContainmentMode, RunKey,
    containment::Hierarchies,
    protocol,
    spool::{RunFolder, Spool},
};
use muster_schemas::{
    JobId, PartId, RunId, Sequence, StepId,
    command::{Answer, Command, CommandEnvelope, QueryAnswer, Refusal, RefusalCode, Reply},
    content::{ContentAnswer, ContentBytes, ContentHash, ContentRequest},
    event::{NodeExit, Owner, StopReason, TraceContext},
    job::{ExitStatus, Launch, Program},
    node::{Briefing, Heartbeat, LaunchOrder, NodeOrder, OrderEnvelope, OrderNode},
    resources::IndexSet,
    subjects,
};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub const NODE: &str = "n1";
/// The size of the parts in which contents are sent, in bytes.
pub const PART_BYTES: usize = 1000;
const DEADLINE: Duration = Duration::from_secs(30);

/// All ways of containment.
pub const MODES: [ContainmentMode; 3] = [ContainmentMode::Cgroup2, ContainmentMode::Cgroup1, ContainmentMode::Process];

/// The ways of containment that this host has; the process tree is always one. A test of its own, in `runs`, tells which
/// are missing.
pub fn modes() -> Vec<ContainmentMode> {
    let is_there = |mode: &ContainmentMode| Hierarchies::detect(*mode, "probe").map(|found| found.leave()).is_ok();
    MODES.into_iter().filter(is_there).collect()
}

/// The program that shims are started from.
pub fn shim_program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().unwrap().parent().unwrap().join("examples/muster-shim");
    assert!(program.exists(), "{} is missing: build the examples of muster-executor", program.display());
    program
}

#[derive(Default)]
pub struct Notes {
    pub commands: Vec<CommandEnvelope>,
    /// The answer to the next greeting or heartbeat.
    pub orders: Vec<NodeOrder>,
    /// The epoch of the answers to greetings and heartbeats.
    pub epoch: u64,
    /// Whether commands stay without an answer.
    pub silent: bool,
    /// How many heartbeats came.
    pub heartbeats: u64,
    /// The contents that can be fetched; others are refused, or not answered.
    pub contents: BTreeMap<ContentHash, Vec<u8>>,
    pub silent_about_contents: bool,
    /// The fetched contents, with the first byte of each request.
    pub asked: Vec<(ContentHash, u64)>,
}

pub struct Node {
    pub bus: SharedBus,
    pub folder: PathBuf,
    _temporary: Option<tempfile::TempDir>,
    pub notes: Arc<Mutex<Notes>>,
    pub config: Config,
    executor: Option<(JoinHandle<anyhow::Result<()>>, CancellationToken)>,
}

impl Node {
    pub async fn start(containment: ContainmentMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::start_with(containment, folder.path().to_owned(), Some(folder)).await
    }

    /// Starts on a spool that outlives it.
    pub async fn start_in(folder: &Path) -> Self {
        Self::start_with(ContainmentMode::Auto, folder.to_owned(), None).await
    }

    async fn start_with(containment: ContainmentMode, folder: PathBuf, temporary: Option<tempfile::TempDir>) -> Self {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let work = folder.join("work");
        fs::create_dir_all(&work).unwrap();
        fs::set_permissions(&work, fs::Permissions::from_mode(0o777)).unwrap();
        let bus: SharedBus = LocalBus::new();
        let notes = Arc::new(Mutex::new(Notes::default()));
        serve_ledger(&bus, &notes).await;
        let config = Config {
            node: NODE.into(),
            spool_dir: folder.join("spool"),
            heartbeat_seconds: 1,
            containment,
            shim_program: Some(shim_program()),
            ..Config::default()
        };
        let mut node = Self { bus, folder, _temporary: temporary, notes, config, executor: None };
        node.start_executor().await;
        node
    }

    pub async fn start_executor(&mut self) {
        let (ready, is_ready) = oneshot::channel();
        let shutdown = CancellationToken::new();
        let service = muster_executor::serve(self.bus.clone(), self.config.clone(), ready, shutdown.clone());
        let mut task = tokio::spawn(service);
        tokio::select! {
            ready = is_ready => ready.expect("the executor is ready"),
            ended = &mut task => panic!("the executor ended: {ended:?}"),
        }
        self.executor = Some((task, shutdown));
    }

    /// Stops it in an orderly way.
    pub async fn stop_executor(&mut self) {
        let (task, shutdown) = self.executor.take().unwrap();
        shutdown.cancel();
        task.await.unwrap().unwrap();
    }

    /// A file or folder that jobs work in.
    pub fn work(&self, name: &str) -> PathBuf {
        self.folder.join("work").join(name)
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work(name)).unwrap_or_default()
    }

    pub async fn order(&self, order: NodeOrder) {
        self.order_in(0, order).await;
    }

    /// An order of a ledger of this epoch.
    pub async fn order_in(&self, epoch: u64, order: NodeOrder) {
        let message = Message::encode(&OrderEnvelope { order, epoch }).unwrap();
        self.bus.publish(&subjects::node_orders(NODE), message).await.unwrap();
    }

    pub async fn launch(&self, order: LaunchOrder) {
        self.order(order.into()).await;
    }

    pub async fn stop(&self, run: u64, reason: StopReason, grace_seconds: u32) {
        self.order(NodeOrder::Stop { part: PartId::new(RunId(run), 0), reason, grace_seconds }).await;
    }

    pub async fn run(&self, order: LaunchOrder) -> NodeExit {
        let run = order.part.run().0;
        self.launch(order).await;
        self.ended(run).await
    }

    pub async fn ended(&self, run: u64) -> NodeExit {
        self.told(&format!("the end of run {run}"), |command| match command {
            Command::NodeEnded { part, exit } if part.run().0 == run => Some(exit.clone()),
            _ => None,
        })
        .await
    }

    pub async fn started(&self, run: u64) {
        self.told(&format!("the start of run {run}"), |command| match command {
            Command::NodeStarted { part } if part.run().0 == run => Some(()),
            _ => None,
        })
        .await;
    }

    /// Waits until the ledger has received a matching command.
    pub async fn told<T>(&self, what: &str, pick: impl Fn(&Command) -> Option<T>) -> T {
        until(what, || self.notes.lock().unwrap().commands.iter().find_map(|envelope| pick(&envelope.command))).await
    }

    /// How often the end of a run was reported, without retries of one command.
    pub fn ends_told(&self, run: u64) -> usize {
        let notes = self.notes.lock().unwrap();
        let ends = notes
            .commands
            .iter()
            .filter(|envelope| matches!(&envelope.command, Command::NodeEnded { part, .. } if part.run().0 == run));
        ends.map(|envelope| envelope.id).collect::<std::collections::BTreeSet<_>>().len()
    }

    pub async fn text(&self, name: &str) -> String {
        until(&format!("text in {name}"), || Some(self.read(name)).filter(|text| text.ends_with('\n'))).await
    }

    /// An order for a script that runs in the work folder.
    pub fn script(&self, run: u64, text: &str) -> LaunchOrder {
        self.program(run, Program::Script { text: format!("#!/bin/sh\n{text}\n"), args: vec![] })
    }

    pub fn tasks(&self, run: u64, argv: &[&str]) -> LaunchOrder {
        self.program(run, Program::Tasks { argv: argv.iter().map(|arg| (*arg).into()).collect() })
    }

    fn program(&self, run: u64, program: Program) -> LaunchOrder {
        LaunchOrder {
            job: JobId::job(run),
            part: PartId::new(RunId(run), 0),
            step: StepId(0),
            name: "test".into(),
            owner: this_user(),
            account: None,
            queue: "default".into(),
            launch: Launch { program, stdout: Some("out-%j".into()), ..Launch::default() },
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            working_directory: self.work("").to_str().unwrap().into(),
            umask: None,
            nodes: vec![OrderNode { name: NODE.into(), tasks: 1, component: 0, facts: None }].into(),
            node_index: 0,
            first_rank: 0,
            total_tasks: 1,
            cpus_per_task: 1,
            cores: IndexSet::from_range(0, 0),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            walltime_seconds: None,
            checkpoint: None,
            kill_grace_seconds: 1,
            trace: TraceContext::default(),
            access: None,
            group: None,
            dialect: None,
        }
    }

    pub fn spool(&self) -> &Path {
        &self.config.spool_dir
    }

    /// Whether the result of a run is in the spool.
    pub fn has_result(&self, run: u64) -> bool {
        let folder = RunFolder::of(self.spool(), RunKey::whole(PartId::new(RunId(run), 0)));
        folder.log().unwrap().is_some_and(|log| log.end.is_some())
    }

    /// The processes of a run, by the mark in their environment.
    pub fn processes_of(&self, run: u64) -> Vec<i32> {
        let nodes = format!("{}/runs/{run}/nodes", self.spool().display());
        muster_executor::containment::processes::marked(&[format!("MUSTER_NODEFILE={nodes}")])
    }

    pub async fn spool_is_empty(&self) {
        until("an empty spool", || fs::read_dir(self.spool().join("runs")).unwrap().next().is_none().then_some(()))
            .await;
    }
}

impl Drop for Node {
    /// Processes left by a failed test are killed too.
    fn drop(&mut self) {
        if let Some((_, shutdown)) = self.executor.take() {
            shutdown.cancel();
        }
        for entry in fs::read_dir(self.spool().join("runs")).into_iter().flatten().flatten() {
            let run =
                entry.file_name().to_string_lossy().split('.').next().and_then(|run| run.parse().ok()).unwrap_or(0);
            muster_executor::containment::processes::signal_all(&self.processes_of(run), libc::SIGKILL);
            // A shim that only holds resources has no process that could be found.
            let stop = protocol::Control::Stop { reason: StopReason::NodeLost, grace_seconds: 0 };
            drop(protocol::write_to_pipe(&entry.path().join("control"), &stop));
        }
        let begun = Instant::now();
        while Spool::open(self.spool()).is_err() && begun.elapsed() < DEADLINE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

async fn serve_ledger(bus: &SharedBus, notes: &Arc<Mutex<Notes>>) {
    let mut commands = bus.serve("muster.command.node.*").await.unwrap();
    let taken = notes.clone();
    tokio::spawn(async move {
        while let Some(request) = commands.next().await {
            let envelope: CommandEnvelope = request.message.decode().unwrap();
            let reply = {
                let mut notes = taken.lock().unwrap();
                if notes.silent {
                    continue;
                }
                let reply = match &envelope.command {
                    Command::NodeHello { .. } => {
                        let orders = std::mem::take(&mut notes.orders);
                        Reply::NodeOrders(Briefing { orders, epoch: notes.epoch, ..Briefing::default() })
                    }
                    _ => Reply::Done,
                };
                notes.commands.push(envelope);
                reply
            };
            request.reply(Message::encode(&Answer { sequence: Sequence(1), result: Ok(reply) }).unwrap());
        }
    });
    let mut heartbeats = bus.serve("muster.command.heartbeat.*").await.unwrap();
    let taken = notes.clone();
    tokio::spawn(async move {
        while let Some(request) = heartbeats.next().await {
            let heartbeat: Heartbeat = request.message.decode().unwrap();
            assert_eq!(heartbeat.node, NODE);
            let briefing = {
                let mut notes = taken.lock().unwrap();
                notes.heartbeats += 1;
                let orders = std::mem::take(&mut notes.orders);
                Briefing { orders, epoch: notes.epoch, ..Briefing::default() }
            };
            request.reply(Message::encode(&briefing).unwrap());
        }
    });
    let mut contents = bus.serve("muster.command.content.*").await.unwrap();
    let taken = notes.clone();
    tokio::spawn(async move {
        while let Some(request) = contents.next().await {
            let ContentRequest { node, hash, offset } = request.message.decode().unwrap();
            assert_eq!(node, NODE);
            let mut notes = taken.lock().unwrap();
            notes.asked.push((hash, offset));
            if notes.silent_about_contents {
                continue;
            }
            let answer = match notes.contents.get(&hash) {
                None => ContentAnswer::Refused(Refusal::new(RefusalCode::NotFound, "it is not there")),
                Some(bytes) => {
                    let part = bytes[offset as usize..].iter().take(PART_BYTES).copied().collect();
                    ContentAnswer::Part { total_bytes: bytes.len() as u64, part: ContentBytes(part) }
                }
            };
            request.reply(Message::encode(&answer).unwrap());
        }
    });
    let mut queries = bus.serve(subjects::HEAD).await.unwrap();
    tokio::spawn(async move {
        while let Some(request) = queries.next().await {
            let head = QueryAnswer::Head {
                last: Sequence(1),
                first: Sequence(1),
                cluster_id: [7; 16],
                last_hash: [0; 32],
                feature_level: muster_schemas::codec::FEATURE_LEVEL,
            };
            request.reply(Message::encode(&head).unwrap());
        }
    });
}

fn this_user() -> Owner {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).unwrap().unwrap();
    Owner { user: user.name, uid: user.uid.as_raw(), gid: user.gid.as_raw() }
}

pub fn code(code: u8) -> Option<ExitStatus> {
    Some(ExitStatus::Code(code))
}
