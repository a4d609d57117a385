//! A cluster in memory: the rules of the domain, and the planner as in production.

use super::scene;
use anyhow::{Result, anyhow};
use muster_domain::decide_owned;
use muster_planner::projection::Projection;
use muster_schemas::{
    CommandId, JobId, Timestamp,
    cluster::{ClusterConfig, ClusterSettings, QueueSpec},
    command::Command,
    event::{Actor, Owner, Record, TraceContext},
    job::{Component, JobSpec},
    policy::Policy,
    resources::Alternative,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Users who submit.
const USERS: u32 = 200;

/// The cluster.
pub struct Site {
    pub projection: Projection,
    pub now: Timestamp,
}

impl Site {
    /// Nodes of 64 cores that are up, one queue, and a policy.
    pub fn new(nodes: u32, policy: &Policy) -> Result<Self> {
        let now = Timestamp::from_unix_seconds(1_800_000_000);
        let mut site = Self { projection: Projection::of(muster_domain::State::new()), now };
        let settings = ClusterSettings::default();
        let queue = QueueSpec { name: settings.default_queue.clone(), ..QueueSpec::default() };
        let nodes: Vec<_> = (0..nodes).map(scene::node).collect();
        let executors: Vec<_> = nodes.iter().map(|node| Actor::Executor(node.name.clone())).collect();
        let config = ClusterConfig {
            settings,
            queues: vec![queue],
            nodes,
            licences: BTreeMap::new(),
            ..ClusterConfig::default()
        };
        site.ask(administrator(), Command::Configure { change: Box::new(config.into()), keep_unnamed: true })?;
        site.ask(administrator(), Command::SetPolicy { policy: Box::new(policy.clone()) })?;
        for executor in executors {
            let hello =
                Command::NodeHello { boot_id: "first".to_owned(), parts: Vec::new(), highest_run: None, as_of: None };
            site.ask(executor, hello)?;
        }
        Ok(site)
    }

    /// Decides a command, applies the resulting records and returns them.
    pub fn ask(&mut self, actor: Actor, command: Command) -> Result<Vec<Record>> {
        let decision = decide_owned(self.projection.state(), &actor, command, self.now);
        let events = decision.map_err(|refusal| anyhow!("refused: {refusal}"))?.events;
        let (actor, command) = (Arc::new(actor), CommandId::new_now());
        let mut records = Vec::with_capacity(events.len());
        for event in events {
            let sequence = self.projection.state().sequence().next();
            let (time, trace) = (self.now, TraceContext::default());
            let record = Record { sequence, time, actor: actor.clone(), command, trace, event, epoch: 0 };
            self.projection.apply(&record)?;
            records.push(record);
        }
        Ok(records)
    }

    /// One second passes, and a user submits a job.
    pub fn submit(&mut self, job: JobSpec) -> Result<Vec<Record>> {
        self.now = self.now.plus_seconds(1);
        let number = self.projection.state().next_job_number() as u32 % USERS;
        self.ask(Actor::User(owner(number)), Command::Submit { jobs: vec![job] })
    }

    /// Submits jobs, which start if they can, until this many wait.
    pub fn fill(&mut self, waiting: usize, mut job: impl FnMut() -> JobSpec) -> Result<()> {
        while self.projection.waiting() < waiting {
            for _ in self.projection.waiting()..waiting {
                self.submit(job())?;
            }
            self.plan()?;
        }
        Ok(())
    }

    /// Plans until nothing more can start.
    fn plan(&mut self) -> Result<()> {
        loop {
            let planned = self.projection.plan(self.now, &BTreeSet::new());
            let is_cut_short = planned.is_cut_short;
            self.ask(Actor::Planner, Command::CommitPlan { plan: Box::new(planned.plan) })?;
            if !is_cut_short {
                return Ok(());
            }
        }
    }

    /// The jobs that wait.
    pub fn waiting(&self) -> Vec<JobId> {
        self.projection.state().waiting().map(|waiting| waiting.job.id).collect()
    }
}

/// A user by number.
pub fn owner(number: u32) -> Owner {
    Owner { user: format!("user{number}"), uid: 1_000 + number, gid: 1_000 + number % 10 }
}

/// A job with this request.
pub fn job(alternative: Alternative) -> JobSpec {
    JobSpec {
        components: vec![Component { alternatives: vec![alternative], ..Component::default() }],
        working_directory: "/".to_owned(),
        ..JobSpec::default()
    }
}

fn administrator() -> Actor {
    Actor::User(Owner { user: "root".to_owned(), uid: 0, gid: 0 })
}
