//! A cluster without a ledger: commands are decided and applied at once, and the plans of its projection are committed.

use muster_domain::{State, decide, invariants::assert_invariants, jobs::Job};
use muster_planner::{
    explain::explain,
    projection::{Planned, Projection},
};
use muster_schemas::{
    CommandId, JobId, Sequence, Timestamp,
    cluster::{ClusterConfig, QueueSpec},
    command::{Command, JobSelection, Refusal, Reply},
    event::{Actor, EndCause, JobChange, NodeExit, Owner, Record, TraceContext},
    job::{Component, ExitStatus, JobSpec, Launch, Program, Usage},
    policy::Policy,
    resources::{Alternative, NodeSpec, Request},
    views::WaitExplanation,
};
use std::{collections::BTreeSet, sync::Arc};

pub const GIB: u64 = 1 << 30;

#[derive(Clone)]
pub struct World {
    pub projection: Projection,
    pub now: Timestamp,
    pub records: Vec<Record>,
}

pub fn queue(name: &str) -> QueueSpec {
    QueueSpec { name: name.into(), ..QueueSpec::default() }
}

/// A node with this many cores, 2 GiB per core, and this many GPUs.
pub fn node(name: &str, cores: u32, gpus: usize) -> NodeSpec {
    NodeSpec {
        name: name.into(),
        cores,
        sockets: 1,
        memory_bytes: u64::from(cores) * 2 * GIB,
        gpus: vec!["a100".into(); gpus],
        properties: Default::default(),
    }
}

pub fn user(name: &str) -> Actor {
    let uid = name.bytes().fold(1000, |uid, byte| uid + u32::from(byte));
    Actor::User(Owner { user: name.into(), uid, gid: 100 })
}

/// A job of one component with one way to serve it.
pub fn job(request: Request, walltime_seconds: u64) -> JobSpec {
    let alternative =
        Alternative { requests: vec![request], walltime_seconds: Some(walltime_seconds), ..Alternative::default() };
    job_of(vec![alternative])
}

pub fn job_of(alternatives: Vec<Alternative>) -> JobSpec {
    let launch = Launch { program: Program::Tasks { argv: vec!["true".into()] }, ..Launch::default() };
    let component = Component { launch, alternatives, ..Component::default() };
    JobSpec { components: vec![component], working_directory: "/tmp".into(), ..JobSpec::default() }
}

/// This many tasks with one core each.
pub fn tasks(count: u32, walltime_seconds: u64) -> JobSpec {
    job(Request { tasks: Some(count), ..Request::default() }, walltime_seconds)
}

impl World {
    pub fn new(policy: &Policy, nodes: Vec<NodeSpec>, queues: Vec<QueueSpec>) -> Self {
        let mut world = Self {
            projection: Projection::of(State::new()),
            now: Timestamp::from_unix_seconds(1_000_000),
            records: Vec::new(),
        };
        let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        let change = Box::new(ClusterConfig { nodes, queues, ..ClusterConfig::default() }.into());
        world.must(&Actor::Ledger, Command::Configure { change, keep_unnamed: false });
        world.must(&Actor::Ledger, Command::SetPolicy { policy: Box::new(policy.clone()) });
        for name in names {
            let hello =
                Command::NodeHello { boot_id: "boot".into(), parts: Vec::new(), highest_run: None, as_of: None };
            world.must(&Actor::Executor(name), hello);
        }
        world
    }

    pub fn state(&self) -> &State {
        self.projection.state()
    }

    pub fn job(&self, id: JobId) -> &Job {
        self.state().job(id).expect("it is known")
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now = self.now.plus_seconds(seconds);
    }

    pub fn command(&mut self, actor: &Actor, command: Command) -> Result<Reply, Refusal> {
        let decision = decide(self.state(), actor, &command, self.now)?;
        let id = CommandId::derived(&[&(self.state().sequence().0 + 1).to_le_bytes()]);
        for event in decision.events {
            let record = Record {
                sequence: Sequence(self.state().sequence().0 + 1),
                time: self.now,
                actor: Arc::new(actor.clone()),
                command: id,
                trace: TraceContext::default(),
                event,
                epoch: 0,
            };
            self.projection.apply(&record).unwrap();
            self.records.push(record);
        }
        Ok(decision.reply)
    }

    pub fn must(&mut self, actor: &Actor, command: Command) -> Reply {
        self.command(actor, command).expect("it is allowed")
    }

    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        self.submit_as("ada", spec)
    }

    pub fn submit_as(&mut self, owner: &str, spec: JobSpec) -> JobId {
        match self.must(&user(owner), Command::Submit { jobs: vec![spec] }) {
            Reply::Submitted(jobs) => jobs[0],
            other => panic!("unexpected reply {other:?}"),
        }
    }

    pub fn plan(&self) -> Planned {
        self.projection.clone().plan(self.now, &BTreeSet::new())
    }

    /// Plans and commits once; returns the started jobs.
    pub fn step(&mut self) -> Vec<JobId> {
        let Planned { plan, .. } = self.projection.plan(self.now, &BTreeSet::new());
        let started = plan.starts.iter().map(|start| start.job).collect();
        assert_eq!(
            self.must(&Actor::Planner, Command::CommitPlan { plan: Box::new(plan) }),
            Reply::Planned(Vec::new())
        );
        assert_invariants(self.state());
        started
    }

    /// Plans and commits until nothing more starts.
    pub fn settle(&mut self) {
        while !self.step().is_empty() {}
    }

    /// Submits and plans.
    pub fn run(&mut self, spec: JobSpec) -> JobId {
        let job = self.submit(spec);
        self.settle();
        job
    }

    pub fn end(&mut self, job: JobId) {
        let run = self.job(job).run().expect("it runs");
        let run = self.state().run(run).expect("it runs");
        let parts: Vec<_> = run.parts.iter().map(|part| (part.node, self.state().part_id(run, part))).collect();
        for (node, part) in parts {
            let name = self.state().node_name(node).into_owned();
            let exit = NodeExit {
                status: Some(ExitStatus::Code(0)),
                cause: EndCause::Itself,
                usage: Usage::default(),
                started: Some(self.now),
                ended: self.now,
            };
            self.must(&Actor::Executor(name), Command::NodeEnded { part, exit });
        }
    }

    pub fn modify(&mut self, job: JobId, change: JobChange) -> Result<Reply, Refusal> {
        let owner = Actor::User((*self.job(job).owner).clone());
        self.command(&owner, Command::Modify { jobs: JobSelection::Ids(vec![job]), change })
    }

    /// The explanation of a waiting job.
    pub fn explain(&self, job: JobId) -> WaitExplanation {
        explain(self.projection.engine(), self.state(), self.job(job), self.now).expect("it waits")
    }

    /// Whether it, or a task of it, has started.
    pub fn has_started(&self, job: JobId) -> bool {
        let known = self.job(job);
        known.run().is_some() || known.array.as_ref().is_some_and(|array| array.running > 0)
    }
}
