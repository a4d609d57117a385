//! A ledger and a gateway in the process of the test, which plays planner and executor itself.

use muster_bus::{LedgerClient, LocalBus, SharedBus};
use muster_client::{Client, ClientError, Endpoint, Moment};
use muster_ledger::limits::NoLimits;
use muster_schemas::{
    CommandId, JobId, NodeId, PartId, RunId, Sequence, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::{Answer, Command, JobSelection, Reply, Start},
    event::{Actor, EndCause, NodeExit, TraceContext},
    job::{ArraySpec, Component, ExitStatus, JobSpec, Launch, Notification, Occasion, Program, Sink, Usage},
    plan::ProposedPlan,
    resources::{ComponentPlacement, IndexSet, NodeShare, NodeSpec, Placement},
    views::{ErrorCode, JobsRequest},
};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use tokio::{runtime::Runtime, sync::oneshot, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub const TOKEN: &str = "a-token-for-the-tests";

/// A ledger and a gateway.
pub struct System {
    pub runtime: Runtime,
    pub bus: SharedBus,
    pub ledger: Option<Service>,
    pub gateway: Option<Service>,
    pub folder: tempfile::TempDir,
    pub tcp: SocketAddr,
}

/// A gateway with settings of its own.
pub struct OtherGateway {
    pub service: Service,
    pub socket: PathBuf,
    pub tcp: SocketAddr,
}

pub struct Service {
    task: JoinHandle<anyhow::Result<()>>,
    shutdown: CancellationToken,
}

pub fn node(name: &str) -> NodeSpec {
    NodeSpec {
        name: name.into(),
        cores: 4,
        sockets: 1,
        memory_bytes: 8 << 30,
        gpus: vec![],
        properties: Default::default(),
    }
}

pub fn cluster() -> ClusterConfig {
    ClusterConfig {
        nodes: vec![node("node1"), node("node2")],
        queues: vec![QueueSpec { name: "default".into(), ..QueueSpec::default() }],
        ..ClusterConfig::default()
    }
}

pub fn job(name: &str) -> JobSpec {
    let launch = Launch {
        program: Program::Script { text: "#!/bin/sh\necho secret-script\n".into(), args: vec![] },
        ..Launch::default()
    };
    JobSpec {
        name: name.into(),
        components: vec![Component { launch, ..Component::default() }],
        working_directory: "/tmp".into(),
        environment: [("PASSWORD".to_owned(), "secret-value".to_owned())].into(),
        notifications: vec![Notification {
            on: vec![Occasion::Ended],
            sink: Sink::Exec("secret-command".into()),
            spares_cancelled: false,
        }],
        ..JobSpec::default()
    }
}

pub fn array(name: &str, indices: &str) -> JobSpec {
    JobSpec { array: Some(ArraySpec { indices: indices.parse().unwrap(), max_running: None }), ..job(name) }
}

pub fn ids(ids: &[JobId]) -> JobsRequest {
    JobsRequest { jobs: JobSelection::Ids(ids.to_vec()) }
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl System {
    pub fn start() -> Self {
        Self::start_on(|_| LocalBus::new())
    }

    /// A system on a bus of its own.
    pub fn start_on(connect: impl FnOnce(&Runtime) -> SharedBus) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let tokens = folder.path().join("tokens");
        std::fs::write(&tokens, format!("{TOKEN} nobody\n")).unwrap();
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
        let bus = connect(&runtime);
        let mut system = Self { runtime, bus, ledger: None, gateway: None, folder, tcp: free_port() };
        system.start_ledger();
        // Another test may take a port that was just found free.
        let gateway = (0..10).find_map(|_| {
            system.tcp = free_port();
            system.serve(system.gateway_config()).ok()
        });
        system.gateway = Some(gateway.expect("the gateway starts"));
        system.client().configure(CommandId::new_now(), &cluster().into(), false).unwrap();
        system
    }

    pub fn start_ledger(&mut self) {
        let config = muster_ledger::Config { data_dir: self.folder.path().to_path_buf(), ..Default::default() };
        let (bus, shutdown, (ready, is_ready)) = (self.bus.clone(), CancellationToken::new(), oneshot::channel());
        let task = self.runtime.spawn(muster_ledger::serve(bus, config, Arc::new(NoLimits), ready, shutdown.clone()));
        self.runtime.block_on(is_ready).expect("the ledger starts");
        self.ledger = Some(Service { task, shutdown });
    }

    pub fn start_gateway(&mut self) {
        self.gateway = Some(self.serve(self.gateway_config()).expect("the gateway starts"));
    }

    fn gateway_config(&self) -> muster_gateway::Config {
        muster_gateway::Config {
            socket: Some(self.socket()),
            listen: Some(self.tcp),
            tokens_file: Some(self.folder.path().join("tokens")),
            max_body_bytes: 1 << 20,
            ..muster_gateway::Config::default()
        }
    }

    /// Another gateway, which knows nothing of the first one's queries.
    pub fn other_gateway(&self) -> (Service, Client) {
        let socket = self.folder.path().join("other.sock");
        let config = muster_gateway::Config { socket: Some(socket.clone()), ..Default::default() };
        (self.serve(config).expect("the gateway starts"), Client::new(Endpoint::Unix(socket)))
    }

    /// Another gateway with other settings, which can be reached both ways.
    pub fn gateway_with(&self, change: impl Fn(&mut muster_gateway::Config)) -> OtherGateway {
        let socket = self.folder.path().join("changed.sock");
        // Another test may take a port that was just found free.
        let started = (0..10).find_map(|_| {
            let (socket, tcp) = (socket.clone(), free_port());
            let mut config = muster_gateway::Config {
                socket: Some(socket.clone()),
                listen: Some(tcp),
                tokens_file: Some(self.folder.path().join("tokens")),
                ..Default::default()
            };
            change(&mut config);
            self.serve(config).ok().map(|service| OtherGateway { service, socket, tcp })
        });
        started.expect("the gateway starts")
    }

    fn serve(&self, config: muster_gateway::Config) -> Result<Service, oneshot::error::RecvError> {
        let (bus, shutdown, (ready, is_ready)) = (self.bus.clone(), CancellationToken::new(), oneshot::channel());
        let task = self.runtime.spawn(muster_gateway::serve(bus, config, ready, shutdown.clone()));
        self.runtime.block_on(is_ready)?;
        Ok(Service { task, shutdown })
    }

    /// The reason why a gateway with this configuration does not start.
    pub fn refused_gateway(&self, config: muster_gateway::Config) -> String {
        let (bus, shutdown, (ready, _)) = (self.bus.clone(), CancellationToken::new(), oneshot::channel());
        let ended = self.runtime.block_on(async {
            // A gateway that is not refused by mistake still ends.
            let stop = shutdown.clone();
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_secs(20)).await;
                stop.cancel();
            });
            muster_gateway::serve(bus, config, ready, shutdown).await
        });
        format!("{:#}", ended.expect_err("it should be refused"))
    }

    /// The folder of the system, for files of a test.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn stop(&self, service: Option<Service>) {
        let Some(service) = service else { return };
        service.shutdown.cancel();
        self.runtime.block_on(service.task).unwrap().unwrap();
    }

    pub fn stop_ledger(&mut self) {
        let ledger = self.ledger.take();
        self.stop(ledger);
    }

    pub fn stop_gateway(&mut self) {
        let gateway = self.gateway.take();
        self.stop(gateway);
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("muster.sock")
    }

    pub fn client(&self) -> Client {
        Client::new(Endpoint::Unix(self.socket()))
    }

    pub fn nobody(&self, token: Option<&str>) -> Client {
        Client::new(Endpoint::Tcp { address: self.tcp.to_string(), token: token.map(str::to_owned), tls: None })
    }

    pub fn command(&self, actor: Actor, command: Command) -> Answer {
        let ledger = LedgerClient::new(self.bus.clone());
        let answer = self.runtime.block_on(ledger.command(actor, TraceContext::default(), command)).unwrap();
        assert!(answer.result.is_ok(), "{answer:?}");
        answer
    }

    pub fn hello(&self, name: &str) {
        self.command(
            Actor::Executor(name.into()),
            Command::NodeHello { boot_id: "boot".into(), parts: vec![], highest_run: None, as_of: None },
        );
    }

    /// Starts a job on one core of node1, as planner and executor do.
    pub fn run(&self, job: JobId, core: u32) -> RunId {
        let run = self.allocate(job, core);
        self.started(run);
        run
    }

    /// Allocates a core of node1 to a job, as the planner does.
    pub fn allocate(&self, job: JobId, core: u32) -> RunId {
        let share = NodeShare {
            node: NodeId(self.node1()),
            cores: IndexSet::from_range(core, core),
            gpus: IndexSet::new(),
            memory_bytes: 0,
            tasks: 1,
            exclusive: false,
        };
        let placement = Placement { components: vec![ComponentPlacement { alternative: 0, shares: vec![share] }] };
        let plan = ProposedPlan { starts: vec![Start { job, placement }], ..ProposedPlan::default() };
        let plan = Command::CommitPlan { plan: Box::new(plan) };
        let answer = self.command(Actor::Planner, plan);
        assert_eq!(answer.result, Ok(Reply::Planned(vec![])));
        self.client().job(job, Moment::Now).unwrap().job.run.expect("the job has a run")
    }

    /// The executor of node1 reports that a run has started there.
    pub fn started(&self, run: RunId) {
        self.command(Actor::Executor("node1".into()), Command::NodeStarted { part: PartId::new(run, 0) });
    }

    /// The number of node1, which is only in the log.
    pub fn node1(&self) -> u32 {
        let commit = self.client().records(Sequence(1), 1 << 20).unwrap();
        let added = commit.records.iter().find_map(|record| match &record.event {
            muster_schemas::event::Event::NodeAdded { node, spec } if spec.name == "node1" => Some(node.0),
            _ => None,
        });
        added.expect("node1 was added")
    }

    pub fn end(&self, run: RunId, code: u8) {
        let exit = NodeExit {
            status: Some(ExitStatus::Code(code)),
            cause: EndCause::Itself,
            usage: Usage { cpu_time_micros: 7, peak_memory_bytes: 9, ..Usage::default() },
            started: Some(Timestamp::now()),
            ended: Timestamp::now(),
        };
        self.command(Actor::Executor("node1".into()), Command::NodeEnded { part: PartId::new(run, 0), exit });
    }

    /// Sends bytes and reads the answer: status line, headers, body.
    pub fn raw(&self, request: &str) -> String {
        let mut socket = UnixStream::connect(self.socket()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The head and the body of the answer to a query with another header, such as `accept-encoding: gzip`.
    pub fn raw_bytes(&self, path: &str, header: &str) -> (String, Vec<u8>) {
        let mut socket = UnixStream::connect(self.socket()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{header}\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an answer has a head");
        let body = answer.split_off(head + 4);
        (String::from_utf8(answer).expect("a head is text"), body)
    }

    pub fn get(&self, path: &str) -> String {
        self.raw(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    }

    pub fn post(&self, path: &str, body: &str) -> String {
        let length = body.len();
        self.raw(&format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        ))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        for service in [self.gateway.take(), self.ledger.take()].into_iter().flatten() {
            service.shutdown.cancel();
            let _ = self.runtime.block_on(service.task);
        }
    }
}

pub fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> (ErrorCode, String) {
    match result {
        Err(ClientError::Refused(body)) => (body.code, body.message),
        other => panic!("not refused: {other:?}"),
    }
}
