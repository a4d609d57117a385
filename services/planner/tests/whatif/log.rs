//! Logs of imaginary systems: the actions of people and machines, and the lengths of runs.

use muster_planner::whatif::{History, replay};
use muster_schemas::{
    CommandId, JobId, NodeId, RunId, Sequence, Timestamp,
    cluster::QueueSpec,
    event::{Actor, Event, Owner, Record, TraceContext, uuid_bytes::UuidBytes},
    job::{ArraySpec, Component, ExitStatus, JobSpec, Launch, Outcome, Program, Usage},
    policy::Policy,
    resources::{Alternative, IndexSet, NodeSpec, Placement, Request},
};
use std::{collections::BTreeMap, sync::Arc};

/// The records of a log made by hand. Its runs only tell how long jobs take.
pub struct Script {
    records: Vec<Record>,
    runs: u64,
    jobs: u64,
}

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(1_000_000 + seconds)
}

pub fn user(name: &str) -> Arc<Actor> {
    Arc::new(Actor::User(Owner { user: name.into(), uid: 1000, gid: 1000 }))
}

impl Script {
    /// This many nodes with four cores that are up, a default queue, and a policy.
    pub fn new(nodes: u32, policy: &Policy) -> Self {
        let mut script = Self { records: Vec::new(), runs: 0, jobs: 0 };
        let ledger = Arc::new(Actor::Ledger);
        let public_key = [0; 32];
        script.add(0, &ledger, Event::ClusterInitialised { cluster_id: UuidBytes([7; 16]), public_key });
        let queue = QueueSpec { name: "default".into(), ..QueueSpec::default() };
        script.add(0, &ledger, Event::QueueSet { queue: Arc::new(queue) });
        for number in 0..nodes {
            let spec = NodeSpec {
                name: format!("node{number}"),
                cores: 4,
                sockets: 1,
                memory_bytes: 1 << 30,
                gpus: Vec::new(),
                properties: BTreeMap::new(),
            };
            let node = NodeId(number);
            script.add(0, &ledger, Event::NodeAdded { node, spec: Arc::new(spec) });
            script.add(0, &ledger, Event::NodeUp { node, boot_id: "first".into() });
        }
        script.add(0, &ledger, Event::PolicySet { policy: Arc::new(policy.clone()) });
        script
    }

    pub fn add(&mut self, seconds: i64, actor: &Arc<Actor>, event: Event) {
        let record = Record {
            sequence: Sequence(self.records.len() as u64 + 1),
            time: at(seconds),
            actor: actor.clone(),
            command: CommandId(Default::default()),
            trace: TraceContext::default(),
            event,
            epoch: 0,
        };
        self.records.push(record);
    }

    /// A job of this many one-core tasks.
    pub fn submit(&mut self, seconds: i64, name: &str, tasks: u32, walltime_seconds: Option<u64>) -> JobId {
        self.submit_spec(seconds, name, spec(tasks, walltime_seconds))
    }

    pub fn submit_spec(&mut self, seconds: i64, name: &str, spec: JobSpec) -> JobId {
        self.jobs += 1;
        let job = JobId::job(self.jobs);
        let actor = user(name);
        let Actor::User(owner) = &*actor else { unreachable!("it is a user") };
        let event = Event::JobSubmitted { job, owner: Arc::new(owner.clone()), spec: Arc::new(spec), intake: None };
        self.add(seconds, &actor, event);
        job
    }

    /// Sets how long the next run of a job takes, and how it ends.
    pub fn takes(&mut self, job: JobId, seconds: i64, outcome: Outcome) {
        self.uses(job, seconds, 0, outcome);
    }

    /// The same for one that uses some seconds of processor time.
    pub fn uses(&mut self, job: JobId, seconds: i64, cpu_seconds: u64, outcome: Outcome) {
        self.runs += 1;
        let run = RunId(self.runs);
        let ledger = Arc::new(Actor::Ledger);
        let submitted = self.records.iter().find(|record| record.event.job() == Some(job.whole()));
        let last = submitted.map_or(0, |record| record.time.unix_seconds() - at(0).unix_seconds());
        self.add(last, &ledger, Event::RunAllocated { job, run, placement: Arc::new(Placement::default()) });
        let usage = Usage { cpu_time_micros: cpu_seconds * 1_000_000, ..Usage::default() };
        let end = Event::RunEnded { job, run, last: None, outcome, usage };
        self.add(last + seconds, &ledger, end);
    }

    /// The records in order of time. Unfinished runs do not prevent submissions.
    pub fn records(&self) -> Vec<Record> {
        let mut records = self.records.clone();
        records.sort_by_key(|record| record.time);
        for (number, record) in (1..).zip(&mut records) {
            record.sequence = Sequence(number);
        }
        records
    }
}

pub fn spec(tasks: u32, walltime_seconds: Option<u64>) -> JobSpec {
    let request = Request { tasks: Some(tasks), ..Request::default() };
    let alternative = Alternative { requests: vec![request], walltime_seconds, ..Alternative::default() };
    let program = Program::Script { text: "#!/bin/sh\n".into(), args: Vec::new() };
    let component = Component {
        queue: Some("default".into()),
        launch: Launch { program, ..Launch::default() },
        alternatives: vec![alternative],
        ..Component::default()
    };
    JobSpec { components: vec![component], ..JobSpec::default() }
}

pub fn array(tasks: u32, indices: u32, max_running: Option<u32>, walltime_seconds: u64) -> JobSpec {
    let array = ArraySpec { indices: IndexSet::first_n(indices), max_running };
    JobSpec { array: Some(array), ..spec(tasks, Some(walltime_seconds)) }
}

pub fn failed() -> Outcome {
    Outcome::Failed(ExitStatus::Code(3))
}

pub fn history(records: &[Record]) -> History {
    let mut history = History::new(None, None);
    records.iter().for_each(|record| history.add(record));
    history
}

/// The log of a system that follows the policy through a history.
pub fn lived(history: &History, policy: Option<&Policy>) -> Vec<Record> {
    let mut records = Vec::new();
    let policy = policy.map(|policy| Arc::new(policy.clone()));
    replay(history, policy.as_ref(), &mut |record| records.push(record.clone()));
    records
}

/// When each job or task first had its resources, in seconds.
pub fn starts(records: &[Record]) -> BTreeMap<JobId, f64> {
    let mut starts = BTreeMap::new();
    for record in records {
        if let Event::RunAllocated { job, .. } = &record.event {
            starts.entry(*job).or_insert(record.time.micros_since(at(0)) as f64 / 1e6);
        }
    }
    starts
}

/// The finished jobs with their outcomes.
pub fn finished(records: &[Record]) -> BTreeMap<JobId, Outcome> {
    let outcome = |record: &Record| match &record.event {
        Event::JobFinished { job, outcome } => Some((*job, outcome.clone())),
        _ => None,
    };
    records.iter().filter_map(outcome).collect()
}
