//! A cluster in memory: a state, its log, a clock set by tests, and helpers.

use muster_domain::{Decision, State, decide, invariants::assert_invariants};
use muster_schemas::{
    CommandId, JobId, NodeId, PartId, RunId, Sequence, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::{Command, JobSelection, Refusal, RefusalCode, Reply, Start},
    event::{Actor, EndCause, Event, NodeExit, Owner, Record, TraceContext, uuid_bytes::UuidBytes},
    job::{
        ArraySpec, Component, Dependencies, Dependency, DependencyKind, ExitStatus, JobSpec, Launch, Outcome, Program,
        Usage,
    },
    node::Mark,
    plan::ProposedPlan,
    resources::{
        Alternative, ComponentPlacement, Count, IndexSet, Level, LevelCount, NodeShare, NodeSpec, Placement, Request,
    },
    steps::{StepGroup, StepProgram, StepSpec},
};
use std::sync::Arc;

pub const GIB: u64 = 1 << 30;

pub struct Cluster {
    pub state: State,
    pub log: Vec<Record>,
    pub now: Timestamp,
}

pub fn user(name: &str) -> Actor {
    let uid = 1000 + name.bytes().map(u32::from).sum::<u32>();
    Actor::User(Owner { user: name.into(), uid, gid: 100 })
}

pub fn root() -> Actor {
    Actor::User(Owner { user: "root".into(), uid: 0, gid: 0 })
}

pub fn executor(node: &str) -> Actor {
    Actor::Executor(node.into())
}

pub fn node(name: &str, cores: u32) -> NodeSpec {
    NodeSpec {
        name: name.into(),
        cores,
        sockets: 1,
        memory_bytes: 8 * GIB,
        gpus: Vec::new(),
        properties: Default::default(),
    }
}

pub fn queue(name: &str) -> QueueSpec {
    QueueSpec { name: name.into(), ..QueueSpec::default() }
}

/// Three nodes with four cores each, two queues, three licences, an operator `oper`.
pub fn config() -> ClusterConfig {
    ClusterConfig {
        settings: ClusterSettings { operators: vec!["oper".into()], ..ClusterSettings::default() },
        queues: vec![queue("default"), queue("other")],
        nodes: (1..=3).map(|number| node(&format!("node{number}"), 4)).collect(),
        licences: [("ansys".to_owned(), 3)].into(),
        ..ClusterConfig::default()
    }
}

pub fn script() -> Launch {
    Launch { program: Program::Script { text: "#!/bin/sh\ntrue\n".into(), args: Vec::new() }, ..Launch::default() }
}

pub fn tasks() -> Launch {
    Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() }
}

/// A step of `true` without places.
pub fn plain_step(job: JobId, tasks: Option<u32>, nodes: Option<u32>) -> Command {
    let program = StepProgram { argv: vec!["true".into()], ..StepProgram::default() };
    let group = StepGroup { programs: vec![program], tasks, nodes, ..StepGroup::default() };
    let spec = StepSpec { groups: vec![group], overlaps: true, ..StepSpec::default() };
    Command::LaunchStep { job, spec: Box::new(spec) }
}

/// A script on this many nodes with this many cores on each.
pub fn job(nodes: u32, cores: u32) -> JobSpec {
    let request = Request {
        path: vec![
            LevelCount { level: Level::Node, count: Count::exactly(nodes) },
            LevelCount { level: Level::Core, count: Count::exactly(cores) },
        ],
        ..Request::default()
    };
    let component = Component {
        launch: script(),
        alternatives: vec![Alternative { requests: vec![request], ..Alternative::default() }],
        ..Component::default()
    };
    JobSpec { components: vec![component], ..JobSpec::default() }
}

pub fn array(indices: IndexSet, max_running: Option<u32>) -> JobSpec {
    JobSpec { array: Some(ArraySpec { indices, max_running }), ..job(1, 1) }
}

pub fn after(kind: DependencyKind, on: JobId) -> JobSpec {
    depending(vec![vec![Dependency { kind, job: Some(on), delay_seconds: 0 }]])
}

pub fn depending(all_of: Vec<Vec<Dependency>>) -> JobSpec {
    let mut spec = job(1, 1);
    spec.components[0].dependencies = Dependencies { all_of };
    spec
}

pub fn ids(ids: &[JobId]) -> JobSelection {
    JobSelection::Ids(ids.to_vec())
}

pub fn exit(status: ExitStatus, cause: EndCause, at: Timestamp) -> NodeExit {
    let usage = Usage { cpu_time_micros: 10, peak_memory_bytes: 1000, ..Usage::default() };
    NodeExit { status: Some(status), cause, usage, started: Some(at), ended: at }
}

/// The command for a plan that only starts jobs.
pub fn commit(starts: Vec<Start>) -> Command {
    Command::CommitPlan { plan: Box::new(ProposedPlan { starts, ..ProposedPlan::default() }) }
}

impl Cluster {
    /// Initialised, not configured.
    pub fn bare() -> Self {
        let mut cluster = Self { state: State::new(), log: Vec::new(), now: Timestamp::from_unix_seconds(1_000_000) };
        let event = Event::ClusterInitialised { cluster_id: UuidBytes([7; 16]), public_key: [8; 32] };
        cluster.append(&Actor::Ledger, vec![event]);
        cluster
    }

    pub fn with(config: ClusterConfig) -> Self {
        let mut cluster = Self::bare();
        let nodes: Vec<String> = config.nodes.iter().map(|node| node.name.clone()).collect();
        cluster.ok(&Actor::Ledger, Command::Configure { change: Box::new(config.into()), keep_unnamed: false });
        for node in nodes {
            cluster.hello(&node, "boot1", &[]);
        }
        cluster
    }

    pub fn new() -> Self {
        Self::with(config())
    }

    /// Appends the events of one command to the log as they are.
    pub fn append(&mut self, actor: &Actor, events: Vec<Event>) {
        let command = CommandId::derived(&[&self.log.len().to_le_bytes()]);
        for event in events {
            let record = Record {
                sequence: Sequence(self.log.len() as u64 + 1),
                time: self.now,
                actor: Arc::new(actor.clone()),
                command,
                trace: TraceContext::default(),
                event,
                epoch: 0,
            };
            self.state.apply(&record).unwrap();
            self.log.push(record);
            assert_transitional(&self.state);
        }
    }

    /// Decides and applies. A refusal cannot have changed anything, since `decide` only borrows the state.
    pub fn run(&mut self, actor: &Actor, command: Command) -> Result<(Vec<Event>, Reply), Refusal> {
        let Decision { events, reply } = decide(&self.state, actor, &command, self.now)?;
        self.append(actor, events.clone());
        assert_invariants(&self.state);
        Ok((events, reply))
    }

    #[track_caller]
    pub fn ok(&mut self, actor: &Actor, command: Command) -> Vec<Event> {
        match self.run(actor, command.clone()) {
            Ok((events, _)) => events,
            Err(refusal) => panic!("{command:?} was refused: {refusal}"),
        }
    }

    /// The command is refused with this code, and the message contains the words.
    #[track_caller]
    pub fn refused(&mut self, actor: &Actor, command: Command, code: RefusalCode, words: &str) {
        match self.run(actor, command.clone()) {
            Ok((events, _)) => panic!("{command:?} was accepted: {events:?}"),
            Err(refusal) => {
                assert_eq!(refusal.code, code, "{refusal}");
                assert!(refusal.message.contains(words), "`{refusal}` does not say `{words}`");
            }
        }
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now = self.now.plus_seconds(seconds);
    }

    /// Runs the ledger's timer.
    pub fn tick(&mut self) -> Vec<Event> {
        self.ok(&Actor::Ledger, Command::Tick)
    }

    #[track_caller]
    pub fn submit(&mut self, name: &str, spec: JobSpec) -> JobId {
        match self.run(&user(name), Command::Submit { jobs: vec![spec] }) {
            Ok((_, Reply::Submitted(ids))) => ids[0],
            other => panic!("submission: {other:?}"),
        }
    }

    pub fn hello(&mut self, node: &str, boot_id: &str, runs: &[RunId]) -> Vec<Event> {
        let as_of = self.state.sequence();
        self.hello_as_of(node, boot_id, runs, Some(as_of))
    }

    /// A greeting whose list of runs is true for a record.
    pub fn hello_as_of(&mut self, node: &str, boot_id: &str, runs: &[RunId], as_of: Option<Sequence>) -> Vec<Event> {
        self.ok(
            &executor(node),
            Command::NodeHello {
                boot_id: boot_id.into(),
                parts: runs.iter().map(|run| self.part(*run, node)).collect(),
                highest_run: None,
                as_of: as_of.map(mark),
            },
        )
    }

    pub fn node_id(&self, name: &str) -> NodeId {
        self.state.node_by_name(name).expect("the test names a node that exists").id
    }

    /// The first free cores of the nodes.
    pub fn placement(&self, nodes: &[&str], cores: u32) -> Placement {
        let shares = nodes.iter().map(|name| {
            let node = self.state.node_by_name(name).expect("the test names a node that exists");
            NodeShare {
                node: node.id,
                cores: node.free_cores.smallest(u64::from(cores)),
                gpus: IndexSet::new(),
                memory_bytes: 0,
                tasks: 1,
                exclusive: false,
            }
        });
        Placement { components: vec![ComponentPlacement { alternative: 0, shares: shares.collect() }] }
    }

    pub fn start_command(&self, job: JobId, nodes: &[&str], cores: u32) -> Command {
        let start = Start { job, placement: self.placement(nodes, cores) };
        commit(vec![start])
    }

    /// Allocates resources to the job.
    #[track_caller]
    pub fn allocate(&mut self, job: JobId, nodes: &[&str], cores: u32) -> RunId {
        let run = self.state.next_run();
        let command = self.start_command(job, nodes, cores);
        match self.run(&Actor::Planner, command) {
            Ok((_, Reply::Planned(refused))) if refused.is_empty() => run,
            other => panic!("start of job {job}: {other:?}"),
        }
    }

    /// Allocates resources to the job and starts its processes.
    #[track_caller]
    pub fn start(&mut self, job: JobId, nodes: &[&str], cores: u32) -> RunId {
        let run = self.allocate(job, nodes, cores);
        for node in nodes {
            self.ok(&executor(node), Command::NodeStarted { part: PartId::new(run, 0) });
        }
        run
    }

    /// Why a start is refused.
    #[track_caller]
    pub fn refused_on(&mut self, job: JobId, nodes: &[&str], cores: u32) -> String {
        let placement = self.placement(nodes, cores);
        match self.run(&Actor::Planner, commit(vec![Start { job, placement }])) {
            Ok((_, Reply::Planned(refused))) => refused.into_iter().next().expect("it is refused").reason,
            other => panic!("plan: {other:?}"),
        }
    }

    /// A running job with a component on each of these nodes, with this many cores.
    #[track_caller]
    pub fn start_on_each(&mut self, nodes: &[&str], cores: u32) -> (JobId, RunId) {
        let (mut spec, mut placement) = (JobSpec::default(), Placement::default());
        for node in nodes {
            spec.components.extend(job(1, cores).components);
            placement.components.extend(self.placement(&[node], cores).components);
        }
        let (id, run) = (self.submit("ada", spec), self.state.next_run());
        let refused = self.run(&Actor::Planner, commit(vec![Start { job: id, placement }]));
        assert!(matches!(&refused, Ok((_, Reply::Planned(none))) if none.is_empty()), "{refused:?}");
        for node in nodes {
            self.ok(&executor(node), Command::NodeStarted { part: self.part(run, node) });
        }
        (id, run)
    }

    /// The part of a run on a node; if there is none, the one that a first component would have.
    pub fn part(&self, run: RunId, node: &str) -> PartId {
        let part =
            self.state.run(run).and_then(|known| Some(self.state.part_id(known, known.part(self.node_id(node))?)));
        part.unwrap_or(PartId::new(run, 0))
    }

    pub fn end(&mut self, run: RunId, node: &str, status: ExitStatus) -> Vec<Event> {
        let exit = exit(status, EndCause::Itself, self.now);
        self.ok(&executor(node), Command::NodeEnded { part: self.part(run, node), exit })
    }

    /// Runs a job on one core of node1 from start to end.
    #[track_caller]
    pub fn run_through(&mut self, job: JobId, code: u8) {
        let run = self.start(job, &["node1"], 1);
        self.end(run, "node1", ExitStatus::Code(code));
    }

    /// The outcome of a job, if it is over.
    pub fn outcome(&self, job: JobId) -> Option<Outcome> {
        self.state.job(job)?.finished().map(|finished| finished.outcome.clone())
    }

    /// The jobs that only wait for resources, in order.
    pub fn waiting(&self) -> Vec<JobId> {
        self.state.waiting().map(|waiting| waiting.job.id).collect()
    }

    pub fn is_waiting(&self, job: JobId) -> bool {
        self.waiting().contains(&job)
    }

    /// Replaying the log and reading the snapshot both give this state.
    pub fn assert_replays(&self) {
        let mut folded = State::new();
        for record in &self.log {
            folded.apply(record).unwrap();
        }
        assert_eq!(folded, self.state, "folding the log again gives another state");
        let bytes = self.state.to_snapshot_bytes().expect("the state of a test is small");
        let restored = State::from_snapshot_bytes(&bytes).expect("a fresh snapshot can be read");
        assert_eq!(restored, self.state, "the snapshot gives another state");
        assert_eq!(restored.digest(), self.state.digest());
        assert_eq!(restored.to_snapshot_bytes().expect("as before"), bytes);
    }
}

/// Between the records of one decision some counts do not add up yet; conditions that always hold are checked after
/// each.
fn assert_transitional(state: &State) {
    for node in state.nodes() {
        assert!(node.free_cores.len() <= u64::from(node.spec.cores));
    }
}

/// A moment that a node was told about.
pub fn mark(sequence: Sequence) -> Mark {
    Mark { session: Timestamp(0), sequence }
}

/// The outcome of a job that lost a node.
pub fn node_lost(why: &str) -> Outcome {
    Outcome::NodeLost(why.to_owned())
}
