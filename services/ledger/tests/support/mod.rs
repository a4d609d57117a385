//! A ledger on an in-process bus, for tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use muster_bus::{LedgerClient, LocalBus, SharedBus};
use muster_ledger::{Config, limits::NoLimits, serve};
use muster_schemas::{
    cluster::{ClusterConfig, QueueSpec},
    command::{Answer, Command, CommandEnvelope, Query, QueryAnswer, Reply},
    event::{Actor, Owner, Record, TraceContext},
    ids::{CommandId, JobId, Sequence},
    job::{Component, JobSpec, Launch, Program},
    resources::NodeSpec,
};
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};
use tokio::{sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// A running ledger.
pub struct Ledger {
    pub bus: SharedBus,
    pub client: LedgerClient,
    shutdown: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

/// A small cluster.
pub fn config(data_dir: &Path) -> Config {
    let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
    let node = NodeSpec {
        name: "n1".into(),
        cores: 4,
        sockets: 1,
        memory_bytes: 8 << 30,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    };
    let cluster = ClusterConfig { queues: vec![queue], nodes: vec![node], ..ClusterConfig::default() };
    Config { data_dir: data_dir.to_owned(), cluster: Some(cluster.into()), ..Config::default() }
}

impl Ledger {
    /// Starts one on its own bus.
    pub async fn start(config: Config) -> Self {
        Self::start_on(LocalBus::new(), config).await
    }

    /// Starts one, which must succeed.
    pub async fn start_on(bus: SharedBus, config: Config) -> Self {
        match Self::try_start_on(bus, config).await {
            Ok(ledger) => ledger,
            Err(error) => panic!("the ledger does not start: {error:#}"),
        }
    }

    /// Starts one, or returns why it does not start.
    pub async fn try_start_on(bus: SharedBus, config: Config) -> anyhow::Result<Self> {
        let (ready, is_ready) = oneshot::channel();
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(serve(bus.clone(), config, Arc::new(NoLimits), ready, shutdown.clone()));
        if is_ready.await.is_err() {
            task.await??;
            anyhow::bail!("it ended before it was ready");
        }
        let client = LedgerClient::new(bus.clone()).with_patience(Duration::from_secs(20));
        Ok(Self { bus, client, shutdown, task })
    }

    /// Stops it cleanly.
    pub async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("the ledger does not panic").expect("a clean stop");
    }

    /// Waits until it ends by itself.
    pub async fn ended(self) -> anyhow::Result<()> {
        self.task.await.expect("the ledger does not panic")
    }

    /// Sends a command of a user.
    pub async fn send(&self, id: CommandId, command: Command) -> Answer {
        let envelope = CommandEnvelope { id, actor: root(), trace: TraceContext::default(), command };
        self.client.send(&envelope).await.expect("an answer")
    }

    /// Submits this many jobs in one command and returns their ids.
    pub async fn submit(&self, count: usize) -> Vec<JobId> {
        submitted(&self.send(CommandId::new_now(), submission(count)).await)
    }

    /// The last record.
    pub async fn head(&self) -> Sequence {
        match self.client.query(&Query::Head).await.expect("an answer") {
            QueryAnswer::Head { last, .. } => last,
            other => panic!("{other:?}"),
        }
    }

    /// All records from this one on.
    pub async fn records(&self, from: Sequence) -> Vec<Record> {
        let (mut records, mut next) = (Vec::new(), from);
        loop {
            let query = Query::Replay { from: next, max_bytes: 1 << 20 };
            let QueryAnswer::Records(page) = self.client.query(&query).await.expect("an answer") else {
                panic!("no records");
            };
            if page.records.is_empty() {
                return records;
            }
            next = page.last().next();
            records.extend(page.records);
        }
    }
}

/// An administrator.
pub fn root() -> Actor {
    Actor::User(Owner { user: "root".into(), uid: 0, gid: 0 })
}

/// A job.
pub fn job() -> JobSpec {
    let program = Program::Tasks { argv: vec!["true".into()] };
    let component = Component { launch: Launch { program, ..Launch::default() }, ..Component::default() };
    JobSpec { components: vec![component], working_directory: "/tmp".into(), ..JobSpec::default() }
}

/// Submits this many jobs.
pub fn submission(count: usize) -> Command {
    Command::Submit { jobs: vec![job(); count] }
}

/// The ids of the jobs that a submission made.
pub fn submitted(answer: &Answer) -> Vec<JobId> {
    match &answer.result {
        Ok(Reply::Submitted(jobs)) => jobs.clone(),
        other => panic!("not submitted: {other:?}"),
    }
}

/// A copy of a folder as it is on disk at this moment, as a machine finds it after everything was killed.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("folder");
    for entry in std::fs::read_dir(from).expect("folder") {
        let entry = entry.expect("entry");
        let target = to.join(entry.file_name());
        let kind = entry.file_type().expect("type");
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            std::fs::copy(entry.path(), &target).expect("copy");
        }
    }
}

/// The files of a folder whose names have this ending, in order.
pub fn files(folder: &Path, end: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").path());
    let mut files: Vec<_> = entries.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    files.sort();
    files
}
