//! The planner as a service, over the in-process bus, with a ledger that keeps its log in memory.

use muster_bus::{LocalBus, Message, Request, SharedBus};
use muster_domain::{State, decide};
use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::{Answer, Command, CommandEnvelope, Query, QueryAnswer, RefusedStart, Reply},
    event::{Actor, Commit, Event, Owner, Record, TraceContext},
    job::{Component, JobSpec, Launch, Program},
    resources::NodeSpec,
    subjects,
};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

const DEADLINE: Duration = Duration::from_secs(30);

struct Ledger {
    bus: SharedBus,
    state: State,
    records: Vec<Record>,
    commands: muster_bus::RequestStream,
    queries: muster_bus::RequestStream,
}

impl Ledger {
    /// A cluster of one node with so many cores.
    async fn start(bus: &SharedBus, cores: u32) -> Self {
        bus.log_tail().await.expect("an empty stream");
        let mut ledger = Self {
            bus: bus.clone(),
            state: State::new(),
            records: Vec::new(),
            commands: bus.serve(subjects::COMMAND_PLANNER).await.expect("served"),
            queries: bus.serve(subjects::QUERY).await.expect("served"),
        };
        let node = NodeSpec {
            name: "node1".into(),
            cores,
            sockets: 1,
            memory_bytes: 1 << 30,
            gpus: Vec::new(),
            properties: Default::default(),
        };
        let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
        let config = ClusterConfig { nodes: vec![node], queues: vec![queue], ..ClusterConfig::default() };
        let configure = Command::Configure { config: Box::new(config), keep_unnamed: false };
        ledger.command(&Actor::Ledger, configure).await;
        let hello = Command::NodeHello { boot_id: "boot".into(), runs: Vec::new(), highest_run: None };
        ledger.command(&Actor::Executor("node1".into()), hello).await;
        ledger
    }

    async fn command(&mut self, actor: &Actor, command: Command) -> Reply {
        let decision = decide(&self.state, actor, &command, self.state.time()).expect("accepted");
        let first = self.records.len();
        for event in decision.events {
            self.append(actor, event);
        }
        if first < self.records.len() {
            let commit = Commit { records: self.records[first..].to_vec() };
            self.bus.publish_commit(Arc::new(commit)).await.expect("published");
        }
        decision.reply
    }

    fn append(&mut self, actor: &Actor, event: Event) {
        let record = Record {
            sequence: self.state.sequence().next(),
            time: Timestamp(self.state.time().0 + 1),
            actor: Arc::new(actor.clone()),
            command: CommandId::derived(&[&self.state.sequence().0.to_le_bytes()]),
            trace: TraceContext::default(),
            event,
        };
        self.state.apply(&record);
        self.records.push(record);
    }

    async fn submit(&mut self, jobs: usize) {
        let launch = Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() };
        let component = Component { launch, ..Component::default() };
        let spec = JobSpec { components: vec![component], working_directory: "/".into(), ..JobSpec::default() };
        let actor = Actor::User(Owner { user: "ada".into(), uid: 1000, gid: 100 });
        self.command(&actor, Command::Submit { jobs: vec![spec; jobs] }).await;
    }

    /// Answers queries until the planner asks for a plan to be committed.
    async fn next_plan(&mut self) -> Request {
        let next = async {
            loop {
                tokio::select! {
                    request = self.commands.next() => return request.expect("the bus is open"),
                    query = self.queries.next() => answer_query(&self.records, query.expect("the bus is open")),
                }
            }
        };
        tokio::time::timeout(DEADLINE, next).await.expect("a plan in time")
    }

    /// Commits the next plan; tells what it started.
    async fn commit_next_plan(&mut self) -> Vec<JobId> {
        let request = self.next_plan().await;
        let (jobs, command) = plan_of(&request);
        let reply = self.command(&Actor::Planner, command).await;
        assert_eq!(reply, Reply::Planned(Vec::new()));
        self.answer(request, reply);
        jobs
    }

    fn answer(&self, request: Request, reply: Reply) {
        let answer = Answer { sequence: self.state.sequence(), result: Ok(reply) };
        request.reply(Message::encode(&answer).expect("encoded"));
    }
}

fn plan_of(request: &Request) -> (Vec<JobId>, Command) {
    let envelope: CommandEnvelope = request.message.decode().expect("a command");
    assert_eq!(envelope.actor, Actor::Planner);
    match &envelope.command {
        Command::CommitPlan { starts, .. } => {
            (starts.iter().map(|start| start.job).collect(), envelope.command.clone())
        }
        other => panic!("unexpected command {other:?}"),
    }
}

fn answer_query(records: &[Record], request: Request) {
    let answer = match request.message.decode().expect("a query") {
        Query::Replay { from, .. } => {
            let records = records.iter().filter(|record| record.sequence >= from).cloned().collect();
            QueryAnswer::Records(Commit { records })
        }
        Query::Head => QueryAnswer::Head {
            last: Sequence(records.len() as u64),
            first: Sequence(1),
            cluster_id: [0; 16],
            last_hash: [0; 32],
        },
        Query::Snapshot { .. } => QueryAnswer::Snapshot { sequence: Sequence(0), part: Vec::new(), total_bytes: 0 },
        other => panic!("unexpected query {other:?}"),
    };
    request.reply(Message::encode(&answer).expect("encoded"));
}

async fn start_planner(bus: &SharedBus) -> DropGuard {
    let shutdown = CancellationToken::new();
    let (ready, is_ready) = oneshot::channel();
    let config = muster_planner_service::Config { max_starts: 3 };
    tokio::spawn(muster_planner_service::serve(bus.clone(), config, ready, shutdown.clone()));
    tokio::time::timeout(DEADLINE, is_ready).await.expect("in time").expect("ready");
    shutdown.drop_guard()
}

#[tokio::test]
async fn jobs_are_started_once_in_plans_of_bounded_size() {
    let bus: SharedBus = LocalBus::new();
    let mut ledger = Ledger::start(&bus, 8).await;
    let _planner = start_planner(&bus).await;
    ledger.submit(5).await;
    assert_eq!(ledger.commit_next_plan().await.len(), 3);
    assert_eq!(ledger.commit_next_plan().await.len(), 2);
    for _ in 0..3 {
        ledger.submit(1).await;
    }
    let mut started = BTreeSet::new();
    while started.len() < 3 {
        for job in ledger.commit_next_plan().await {
            assert!(started.insert(job), "job {job} is started twice");
        }
    }
}

#[tokio::test]
async fn a_planner_that_comes_late_starts_what_waits() {
    let bus: SharedBus = LocalBus::new();
    let mut ledger = Ledger::start(&bus, 2).await;
    ledger.submit(1).await;
    let _planner = start_planner(&bus).await;
    assert_eq!(ledger.commit_next_plan().await, [JobId::job(1)]);
}

#[tokio::test]
async fn a_refused_start_is_tried_again_when_something_has_changed() {
    let bus: SharedBus = LocalBus::new();
    let mut ledger = Ledger::start(&bus, 2).await;
    let _planner = start_planner(&bus).await;
    ledger.submit(1).await;
    let request = ledger.next_plan().await;
    let (jobs, _) = plan_of(&request);
    assert_eq!(jobs, [JobId::job(1)]);
    let refused = RefusedStart { job: JobId::job(1), reason: "the state has moved on".into() };
    ledger.answer(request, Reply::Planned(vec![refused]));
    ledger.submit(1).await;
    let mut started = BTreeSet::new();
    while started.len() < 2 {
        started.extend(ledger.commit_next_plan().await);
    }
}
