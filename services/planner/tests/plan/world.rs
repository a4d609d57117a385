//! A cluster without a ledger: commands are decided and applied at once, and plans are committed.

use muster_domain::{State, decide, invariants::assert_invariants};
use muster_planner::projection::{Planned, Projection};
use muster_schemas::{
    CommandId, JobId, NodeId, PartId, RunId, Sequence, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::{Command, JobSelection, Refusal, Reply},
    event::{Actor, EndCause, Event, JobChange, NodeExit, Owner, Record, TraceContext},
    job::{Component, ExitStatus, JobSpec, Launch, Program, Usage, WaitReason},
    policy::Policy,
    resources::{Alternative, ComponentPlacement, NodeSpec, PropertyValue, Request},
    views::Forecast,
};
use std::{collections::BTreeSet, sync::Arc};

pub struct World {
    projection: Projection,
}

impl World {
    /// A cluster of these nodes, all of them up, with a queue `default`.
    pub fn new(nodes: Vec<NodeSpec>) -> Self {
        let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
        Self::configured(ClusterConfig { nodes, queues: vec![queue], ..ClusterConfig::default() })
    }

    pub fn configured(config: ClusterConfig) -> Self {
        let mut world = Self { projection: Projection::of(State::new()) };
        let names: Vec<String> = config.nodes.iter().map(|node| node.name.clone()).collect();
        world.configure(config);
        for name in names {
            let hello =
                Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
            world.command(&Actor::Executor(name), hello).expect("the node is known");
        }
        world
    }

    pub fn configure(&mut self, config: ClusterConfig) {
        let configure = Command::Configure { change: Box::new(config.into()), keep_unnamed: false };
        self.command(&Actor::Ledger, configure).expect("a good configuration");
    }

    /// The cluster.
    pub fn state(&self) -> &State {
        self.projection.state()
    }

    /// The cluster with its planner.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// The planner's engine.
    pub fn engine(&self) -> &muster_planner::Engine {
        self.projection.engine()
    }

    /// Decides a command and applies its events.
    pub fn command(&mut self, actor: &Actor, command: Command) -> Result<Reply, Refusal> {
        let now = Timestamp(self.state().time().0 + 1_000_000);
        let decision = decide(self.state(), actor, &command, now)?;
        for event in decision.events {
            self.record(actor, now, event);
        }
        Ok(decision.reply)
    }

    fn record(&mut self, actor: &Actor, time: Timestamp, event: Event) {
        let sequence = Sequence(self.state().sequence().0 + 1);
        let record = Record {
            sequence,
            time,
            actor: Arc::new(actor.clone()),
            command: CommandId::derived(&[&sequence.0.to_le_bytes()]),
            trace: TraceContext::default(),
            event,
            epoch: 0,
        };
        self.projection.apply(&record).unwrap();
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        self.submit_as("ada", spec)
    }

    pub fn submit_as(&mut self, user: &str, spec: JobSpec) -> JobId {
        match self.try_submit(user, spec).expect("accepted") {
            Reply::Submitted(jobs) => jobs[0],
            other => panic!("unexpected reply {other:?}"),
        }
    }

    pub fn try_submit(&mut self, user: &str, spec: JobSpec) -> Result<Reply, Refusal> {
        self.command(&owner(user), Command::Submit { jobs: vec![spec] })
    }

    /// Plans. A new projection gives the same plan.
    /// Why a job is refused.
    pub fn refused(&mut self, spec: JobSpec) -> String {
        self.try_submit("ada", spec).expect_err("refused").message
    }

    pub fn plan(&mut self) -> Planned {
        self.plan_without(&BTreeSet::new())
    }

    pub fn plan_without(&mut self, left_out: &BTreeSet<JobId>) -> Planned {
        let now = self.state().time();
        let anew = Projection::of(self.state().clone()).plan(now, left_out);
        let made = self.projection.plan(now, left_out);
        assert_eq!(made.plan, anew.plan, "a projection that is made anew plans otherwise");
        made
    }

    /// Plans and commits until nothing more starts; no start is refused. Returns the started jobs.
    pub fn settle(&mut self) -> Vec<JobId> {
        let mut started = Vec::new();
        loop {
            let plan = self.plan().plan;
            let jobs: Vec<JobId> = plan.starts.iter().map(|start| start.job).collect();
            let reply = self.command(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) });
            assert_eq!(reply, Ok(Reply::Planned(Vec::new())), "of {jobs:?}");
            assert_invariants(self.state());
            started.extend(&jobs);
            if jobs.is_empty() {
                return started;
            }
        }
    }

    /// When a job of this owner would start if it were submitted.
    pub fn foresee(&self, owner: &Owner, spec: JobSpec) -> Result<Forecast, Refusal> {
        muster_planner::forecast::foresee(&self.projection, owner, spec, self.state().time())
    }

    /// Puts a policy in force.
    pub fn set_policy(&mut self, policy: Policy) {
        let set = Command::SetPolicy { policy: Box::new(policy) };
        self.command(&Actor::Ledger, set).expect("a policy that can be followed");
    }

    /// The parts of a run, each with its node.
    fn parts(&self, run: RunId) -> Vec<(NodeId, PartId)> {
        let run = self.state().run(run).expect("it runs");
        run.parts.iter().map(|part| (part.node, self.state().part_id(run, part))).collect()
    }

    /// Ends all parts of a run.
    pub fn end_run(&mut self, run: RunId) {
        for (node, part) in self.parts(run) {
            let name = self.state().node_name(node).into_owned();
            let exit = NodeExit {
                status: Some(ExitStatus::Code(0)),
                cause: EndCause::Itself,
                usage: Usage::default(),
                started: Some(self.state().time()),
                ended: self.state().time(),
            };
            self.command(&Actor::Executor(name), Command::NodeEnded { part, exit }).expect("heard");
        }
    }

    /// Ends a component of a running job, which all others survive, and gives its node back.
    pub fn end_component(&mut self, job: JobId, component: u32) {
        let run = self.state().job(job).and_then(|job| job.run()).expect("it runs");
        let own = self.placement(job)[component as usize].shares[0].node;
        let executor = |world: &Self, node| Actor::Executor(world.state().node_name(node).into_owned());
        for (node, part) in self.parts(run) {
            self.command(&executor(self, node), Command::NodeStarted { part }).expect("heard");
        }
        let jobs = JobSelection::Component { job, component };
        self.command(&owner("ada"), Command::Cancel { jobs }).expect("it runs");
        let now = self.state().time();
        let status = Some(ExitStatus::Signal(15));
        let exit =
            NodeExit { status, cause: EndCause::Killed, usage: Usage::default(), started: Some(now), ended: now };
        let part = self.state().part_id_at(self.state().run(run).expect("it runs"), own, component);
        self.command(&executor(self, own), Command::NodeEnded { part, exit }).expect("heard");
    }

    /// The nodes of a job report that it runs.
    pub fn report_start(&mut self, job: JobId) {
        let run = self.state().job(job).and_then(|job| job.run()).expect("it runs");
        for (node, part) in self.parts(run) {
            let executor = Actor::Executor(self.state().node_name(node).into_owned());
            self.command(&executor, Command::NodeStarted { part }).expect("heard");
        }
    }

    /// Time passes until something happens to a job.
    pub fn pass(&mut self, seconds: i64, job: JobId) {
        let now = self.state().time().plus_seconds(seconds);
        // Its name stays: jobs may share cores by it.
        let attributes = [("test.time".to_owned(), now.to_string())].into();
        let change = JobChange { attributes, ..JobChange::default() };
        self.record(&Actor::Ledger, now, Event::JobModified { job, change: Arc::new(change) });
    }

    /// Suspends a job whose processes run.
    pub fn suspend(&mut self, job: JobId) {
        let run = self.state().job(job).and_then(|job| job.run()).expect("it runs");
        for (node, part) in self.parts(run) {
            let executor = Actor::Executor(self.state().node_name(node).into_owned());
            self.command(&executor, Command::NodeStarted { part }).expect("heard");
        }
        self.command(&Actor::Ledger, Command::Suspend { jobs: JobSelection::Ids(vec![job]) }).expect("it runs");
    }

    /// Resumes a suspended job, now or when possible.
    pub fn resume(&mut self, job: JobId) {
        self.command(&Actor::Ledger, Command::Resume { jobs: JobSelection::Ids(vec![job]) }).expect("suspended");
    }

    /// Does what is due.
    pub fn tick(&mut self) {
        while self.state().next_timer().is_some_and(|due| due <= self.state().time()) {
            self.command(&Actor::Ledger, Command::Tick).expect("always");
        }
    }

    pub fn end(&mut self, job: JobId) {
        let run = self.state().job(job).and_then(|job| job.run()).expect("it runs");
        self.end_run(run);
    }

    pub fn reason(&self, job: JobId) -> Option<WaitReason> {
        self.state().wait_reason(self.state().job(job).expect("it is known"))
    }

    /// Where the components of a job run.
    pub fn placement(&self, job: JobId) -> Vec<ComponentPlacement> {
        let run = self.state().job(job).and_then(|job| job.run()).and_then(|run| self.state().run(run));
        run.expect("it runs").placement.components.clone()
    }

    /// For each share of the job's only component: node, cores and tasks.
    pub fn shares(&self, job: JobId) -> Vec<(String, String, u32)> {
        let [component] = &self.placement(job)[..] else { panic!("several components") };
        let name = |node| self.state().node_name(node).into_owned();
        component.shares.iter().map(|share| (name(share.node), share.cores.to_string(), share.tasks)).collect()
    }

    pub fn drain(&mut self, nodes: &[&str]) {
        let nodes = nodes.iter().map(|name| (*name).to_owned()).collect();
        self.command(&Actor::Ledger, Command::DrainNodes { nodes, reason: "test".into(), is_down: false })
            .expect("drained");
    }
}

pub fn owner(user: &str) -> Actor {
    let uid = user.bytes().fold(1000, |uid, byte| uid + u32::from(byte));
    Actor::User(Owner { user: user.into(), uid, gid: 100 })
}

pub const GIB: u64 = 1 << 30;

/// A node with this many cores and GiB.
pub fn node(name: &str, cores: u32, gibibytes: u64) -> NodeSpec {
    NodeSpec {
        name: name.into(),
        cores,
        sockets: 1,
        memory_bytes: gibibytes * GIB,
        gpus: Vec::new(),
        properties: Default::default(),
    }
}

pub fn with_property(mut node: NodeSpec, property: &str, value: &str) -> NodeSpec {
    node.properties.insert(property.into(), PropertyValue::Text(value.into()));
    node
}

pub fn nodes(count: u32, cores: u32) -> Vec<NodeSpec> {
    (1..=count).map(|number| node(&format!("n{number}"), cores, 8)).collect()
}

pub fn component(alternatives: Vec<Alternative>) -> Component {
    let launch = Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() };
    Component { launch, alternatives, ..Component::default() }
}

pub fn job_of(component: Component) -> JobSpec {
    JobSpec { components: vec![component], working_directory: "/tmp".into(), ..JobSpec::default() }
}

pub fn job(request: Request) -> JobSpec {
    job_of(component(vec![Alternative { requests: vec![request], ..Alternative::default() }]))
}

/// A job of this many tasks with one core each.
pub fn tasks(count: u32) -> JobSpec {
    job(Request { tasks: Some(count), ..Request::default() })
}
