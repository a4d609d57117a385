//! A ledger that keeps its log in memory, on the in-process bus, and a planner beside it.

#![allow(dead_code, reason = "each test program uses its part of this")]

use muster_bus::{LocalBus, Message, Request, SharedBus};
use muster_domain::{State, decide, runs::Part};
use muster_planner_service::{Config, Reload};
use muster_schemas::{
    CommandId, JobId, PartId, Sequence, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::{Answer, Command, CommandEnvelope, Query, QueryAnswer, Refusal, Reply},
    event::{Actor, Commit, EndCause, Event, NodeExit, Owner, Record, TraceContext},
    job::{Component, ExitStatus, JobSpec, Launch, Program, Usage},
    plan::ProposedPlan,
    resources::{Alternative, NodeSpec, Request as Demand},
    subjects,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

pub const DEADLINE: Duration = Duration::from_secs(30);

pub struct Ledger {
    pub bus: SharedBus,
    pub state: State,
    records: Vec<Record>,
    commands: muster_bus::RequestStream,
    queries: muster_bus::RequestStream,
}

impl Ledger {
    /// A cluster of nodes `node1`, `node2`, ... with this many cores each.
    pub async fn start(nodes: u32, cores: u32) -> Self {
        let bus: SharedBus = LocalBus::new();
        bus.log_tail().await.expect("an empty stream");
        let mut ledger = Self {
            bus: bus.clone(),
            state: State::new(),
            records: Vec::new(),
            commands: bus.serve(subjects::COMMAND_PLANNER).await.expect("served"),
            queries: bus.serve(subjects::QUERY).await.expect("served"),
        };
        let node = |number: u32| NodeSpec {
            name: format!("node{number}"),
            cores,
            sockets: 1,
            memory_bytes: 1 << 30,
            gpus: Vec::new(),
            properties: Default::default(),
        };
        let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
        let config =
            ClusterConfig { nodes: (1..=nodes).map(node).collect(), queues: vec![queue], ..ClusterConfig::default() };
        ledger
            .command(&Actor::Ledger, Command::Configure { change: Box::new(config.into()), keep_unnamed: false })
            .await;
        for number in 1..=nodes {
            let hello =
                Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
            ledger.command(&Actor::Executor(format!("node{number}")), hello).await;
        }
        ledger
    }

    pub async fn command(&mut self, actor: &Actor, command: Command) -> Reply {
        self.try_command(actor, command).await.expect("accepted")
    }

    pub async fn try_command(&mut self, actor: &Actor, command: Command) -> Result<Reply, Refusal> {
        let decision = decide(&self.state, actor, &command, Timestamp::now())?;
        let first = self.records.len();
        for event in decision.events {
            self.append(actor, event);
        }
        if first < self.records.len() {
            let commit = Commit { records: self.records[first..].to_vec() };
            self.bus.publish_commit(Arc::new(commit)).await.expect("published");
        }
        Ok(decision.reply)
    }

    fn append(&mut self, actor: &Actor, event: Event) {
        let record = Record {
            sequence: self.state.sequence().next(),
            time: Timestamp::now().max(self.state.time()),
            actor: Arc::new(actor.clone()),
            command: CommandId::derived(&[&self.state.sequence().0.to_le_bytes()]),
            trace: TraceContext::default(),
            event,
            epoch: 0,
        };
        self.state.apply(&record).unwrap();
        self.records.push(record);
    }

    /// Submits a job of this many tasks with one core each.
    pub async fn submit(&mut self, tasks: u32, walltime_seconds: Option<u64>) -> JobId {
        let requests = vec![Demand { tasks: Some(tasks), ..Demand::default() }];
        let alternatives = vec![Alternative { requests, walltime_seconds, ..Alternative::default() }];
        let launch = Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() };
        let component = Component { launch, alternatives, ..Component::default() };
        let spec = JobSpec { components: vec![component], working_directory: "/".into(), ..JobSpec::default() };
        match self.command(&user(), Command::Submit { jobs: vec![spec] }).await {
            Reply::Submitted(jobs) => jobs[0],
            other => panic!("unexpected reply {other:?}"),
        }
    }

    /// The nodes of a job report that it is under way.
    pub async fn report_started(&mut self, job: JobId) {
        for (name, part) in self.parts(job) {
            self.command(&Actor::Executor(name), Command::NodeStarted { part }).await;
        }
    }

    /// Ends the run of a running job.
    pub async fn end(&mut self, job: JobId) {
        for (name, part) in self.parts(job) {
            self.command(&Actor::Executor(name), Command::NodeEnded { part, exit: exit() }).await;
        }
    }

    /// The parts of the run of a job, with the names of their nodes.
    fn parts(&self, job: JobId) -> Vec<(String, PartId)> {
        let run = self.state.job(job).and_then(|job| job.run()).expect("it runs");
        let run = self.state.run(run).expect("it runs");
        let named = |part: &Part| (self.state.node_name(part.node).into_owned(), self.state.part_id(run, part));
        run.parts.iter().map(named).collect()
    }

    /// Answers queries and other commands until the planner asks for a plan to be committed.
    pub async fn next_plan(&mut self) -> (Request, ProposedPlan) {
        loop {
            let request = self.next_command().await;
            let envelope: CommandEnvelope = request.message.decode().expect("a command");
            assert_eq!(envelope.actor, Actor::Planner);
            match envelope.command {
                Command::CommitPlan { plan } => return (request, *plan),
                other => self.do_other(request, other).await,
            }
        }
    }

    async fn do_other(&mut self, request: Request, command: Command) {
        let result = self.try_command(&Actor::Planner, command).await;
        let answer = Answer { sequence: self.state.sequence(), result };
        request.reply(Message::encode(&answer).expect("encoded"));
    }

    /// The same until there is an event.
    pub async fn serve_until_event(&mut self, is_it: impl Fn(&Event) -> bool) {
        while !self.records.iter().any(|record| is_it(&record.event)) {
            let request = self.next_command().await;
            let envelope: CommandEnvelope = request.message.decode().expect("a command");
            self.do_other(request, envelope.command).await;
        }
    }

    /// Does what the planner asks for, plans too, until something is so.
    pub async fn serve_until(&mut self, mut is_so: impl FnMut(&State) -> bool) {
        let serve = async {
            while !is_so(&self.state) {
                let next = tokio::time::timeout(Duration::from_millis(10), self.next_command()).await;
                let Ok(request) = next else { continue };
                let envelope: CommandEnvelope = request.message.decode().expect("a command");
                self.do_other(request, envelope.command).await;
            }
        };
        tokio::time::timeout(DEADLINE, serve).await.expect("in time");
    }

    async fn next_command(&mut self) -> Request {
        let next = async {
            loop {
                tokio::select! {
                    request = self.commands.next() => return request.expect("the bus is open"),
                    query = self.queries.next() => answer_query(&self.records, query.expect("the bus is open")),
                }
            }
        };
        tokio::time::timeout(DEADLINE, next).await.expect("a command in time")
    }

    /// Commits the next plan; returns it with its refused parts.
    pub async fn commit_next_plan(&mut self) -> (ProposedPlan, Vec<JobId>) {
        let (request, plan) = self.next_plan().await;
        let reply = self.command(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan.clone()) }).await;
        let Reply::Planned(refused) = &reply else { panic!("unexpected reply {reply:?}") };
        let refused = refused.iter().map(|start| start.job).collect();
        self.answer(request, reply);
        (plan, refused)
    }

    pub fn answer(&self, request: Request, reply: Reply) {
        let answer = Answer { sequence: self.state.sequence(), result: Ok(reply) };
        request.reply(Message::encode(&answer).expect("encoded"));
    }
}

/// The jobs that a plan starts.
pub fn started(plan: &ProposedPlan) -> Vec<JobId> {
    plan.starts.iter().map(|start| start.job).collect()
}

pub fn user() -> Actor {
    Actor::User(Owner { user: "ada".into(), uid: 1000, gid: 100 })
}

fn exit() -> NodeExit {
    NodeExit {
        status: Some(ExitStatus::Code(0)),
        cause: EndCause::Itself,
        usage: Usage::default(),
        started: Some(Timestamp::now()),
        ended: Timestamp::now(),
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
            feature_level: muster_schemas::codec::FEATURE_LEVEL,
        },
        Query::JobSpec { job: wanted } => {
            let spec = records.iter().find_map(|record| match &record.event {
                Event::JobSubmitted { job, spec, .. } if *job == wanted => Some(spec),
                _ => None,
            });
            QueryAnswer::JobSpec(Box::new(spec.map(|spec| (**spec).clone()).expect("a job")))
        }
        Query::Snapshot { .. } => QueryAnswer::Snapshot { sequence: Sequence(0), part: Vec::new(), total_bytes: 0 },
        other => panic!("unexpected query {other:?}"),
    };
    request.reply(Message::encode(&answer).expect("encoded"));
}

pub async fn start_planner(bus: &SharedBus, config: Config) -> DropGuard {
    start_planner_with(bus, config, Reload::default()).await
}

pub async fn start_planner_with(bus: &SharedBus, config: Config, reload: Reload) -> DropGuard {
    let shutdown = CancellationToken::new();
    let (ready, is_ready) = oneshot::channel();
    tokio::spawn(muster_planner_service::serve(bus.clone(), config, reload, ready, shutdown.clone()));
    tokio::time::timeout(DEADLINE, is_ready).await.expect("in time").expect("ready");
    shutdown.drop_guard()
}
