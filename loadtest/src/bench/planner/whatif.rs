//! How long it takes to replay a long log under another policy.

use super::{
    scene::node,
    site::{job, owner},
};
use crate::bench::{
    Bench,
    figure::{Figure, Target},
};
use anyhow::{Result, ensure};
use muster_planner::whatif::{History, Report, replay};
use muster_schemas::{
    CommandId, JobId, NodeId, RunId, Sequence, Timestamp,
    cluster::QueueSpec,
    codec,
    event::{Actor, Event, Record, TraceContext},
    job::{JobSpec, Outcome, Usage},
    policy::Policy,
    resources::{Alternative, Request},
};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use std::{sync::Arc, time::Instant};

/// Jobs in the log.
const JOBS: usize = 1_000_000;
/// Nodes of 64 cores.
const NODES: u32 = 64;
/// The machine's cores.
const CORES: u32 = NODES * 64;
/// The part of the machine that the jobs would use if none waited.
const LOAD: f64 = 0.9;
/// The range of run times, spread evenly over the orders of magnitude.
const RUNTIME_SECONDS: (f64, f64) = (20.0, 60_000.0);
/// The policy in force, and the one to compare it with.
const POLICIES: (&str, &str) = ("fcfs", "easy");
/// A quarter of the jobs have one core, the others a power of two up to 256.
const MEAN_CORES: f64 = 0.25 + 0.75 * 510.0 / 8.0;
const QUEUE: &str = "main";
const USERS: u32 = 200;
const SEED: u64 = 20_261_120;

/// `muster whatif` without the disk: from the encoded records of a log in memory to the report. It decodes them, makes
/// the history, replays it with the rules of the domain and the planner, and compares: all on one thread.
pub fn whatif(bench: &Bench) -> Result<Vec<Figure>> {
    let jobs = bench.count(JOBS);
    let log = recorded(jobs)?;
    let policy = super::policies::policy(POLICIES.1)?;
    let begin = Instant::now();
    let mut history = History::new(None, None);
    for bytes in &log {
        history.add(&codec::decode(bytes)?);
    }
    let replayed = replay(&history, Some(&policy), &mut |_| {});
    let report = Report::new(&history, &replayed, Some(&policy.name), 0.0);
    let elapsed = begin.elapsed();
    ensure!(report.jobs == jobs as u64, "{} of {jobs} jobs were compared", report.jobs);
    let (before, after) = (report.all.before.mean_wait, report.all.after.mean_wait);
    let measure = format!(
        "what-if over {jobs} jobs in {} records, `{}` -> `{}`, mean wait {before:.0} s -> {after:.0} s",
        log.len(),
        POLICIES.0,
        POLICIES.1,
    );
    Ok(vec![Figure { measure, value: elapsed.as_secs_f64(), unit: "s", target: Target::AtMost(120.0) }])
}

/// The encoded log of a fictitious system: made-up jobs, replayed under a policy.
fn recorded(jobs: usize) -> Result<Vec<Vec<u8>>> {
    let mut script = Script::new(&*super::policies::policy(POLICIES.0)?);
    for _ in 0..jobs {
        script.submit();
    }
    let mut log = Vec::with_capacity(jobs * 6);
    let mut failed = None;
    replay(&script.history, None, &mut |record| match codec::encode(record) {
        Ok(bytes) => log.push(bytes),
        Err(error) => failed = Some(error),
    });
    failed.map_or(Ok(log), |error| Err(error.into()))
}

/// What users do, and how long runs take, in the manner of Lublin and Feitelson: most sizes are powers of two, run
/// times span orders of magnitude, and fewer jobs arrive at night.
struct Script {
    history: History,
    now: Timestamp,
    records: u64,
    jobs: u64,
    random: SmallRng,
}

impl Script {
    /// A cluster of nodes that are up, one queue, and a policy.
    fn new(policy: &Policy) -> Self {
        let mut script = Self {
            history: History::new(None, None),
            now: Timestamp::from_unix_seconds(1_800_000_000),
            records: 0,
            jobs: 0,
            random: SmallRng::seed_from_u64(SEED),
        };
        let queue = QueueSpec { name: QUEUE.to_owned(), ..QueueSpec::default() };
        script.add(script.now, Actor::Ledger, Event::QueueSet { queue: Arc::new(queue) });
        for number in 0..NODES {
            let (node, spec) = (NodeId(number), Arc::new(node(number)));
            script.add(script.now, Actor::Ledger, Event::NodeAdded { node, spec });
            script.add(script.now, Actor::Ledger, Event::NodeUp { node, boot_id: "first".into() });
        }
        script.add(script.now, Actor::Ledger, Event::PolicySet { policy: Arc::new(policy.clone()) });
        script
    }

    /// Adds the next job. Its run only says how long it takes.
    fn submit(&mut self) {
        self.now = self.now.plus_seconds(self.gap_seconds());
        self.jobs += 1;
        let (job, run) = (JobId::job(self.jobs), RunId(self.jobs));
        let runtime_seconds = self.runtime_seconds();
        let end = self.now.plus_seconds(runtime_seconds as i64);
        let (spec, owner) = (Arc::new(self.spec(runtime_seconds)), owner(self.random.random_range(0..USERS)));
        let submitted = Event::JobSubmitted { job, owner: Arc::new(owner.clone()), spec, intake: None };
        self.add(self.now, Actor::User(owner), submitted);
        self.add(self.now, Actor::Ledger, Event::RunAllocated { job, run, placement: Arc::default() });
        let (outcome, usage) = (Outcome::Completed, Usage::default());
        self.add(end, Actor::Ledger, Event::RunEnded { job, run, last: None, outcome, usage });
    }

    fn add(&mut self, time: Timestamp, actor: Actor, event: Event) {
        self.records += 1;
        self.history.add(&Record {
            sequence: Sequence(self.records),
            time,
            actor: Arc::new(actor),
            command: CommandId(Default::default()),
            trace: TraceContext::default(),
            event,
            epoch: 0,
        });
    }

    /// The time until the next job: exponential, three times as long at night.
    fn gap_seconds(&mut self) -> i64 {
        let (low, high) = RUNTIME_SECONDS;
        let mean_runtime = (high - low) / (high / low).ln();
        let mean_gap = MEAN_CORES * mean_runtime / (f64::from(CORES) * LOAD);
        let is_day = self.now.unix_seconds().rem_euclid(86_400) < 43_200;
        let rate = if is_day { 1.5 } else { 0.5 };
        (-mean_gap / rate * (1.0 - self.random.random::<f64>()).ln()).round() as i64
    }

    fn runtime_seconds(&mut self) -> u64 {
        let (low, high) = RUNTIME_SECONDS;
        (low * (high / low).powf(self.random.random())).round() as u64
    }

    /// A job whose walltime is one to five times the run time, in whole quarters of an hour.
    fn spec(&mut self, runtime_seconds: u64) -> JobSpec {
        let cores = match self.random.random_range(0..4) {
            0 => 1,
            _ => 1 << self.random.random_range(1..=8),
        };
        let walltime_seconds = (runtime_seconds * self.random.random_range(1..=5)).next_multiple_of(900);
        let request = Request { tasks: Some(cores), ..Request::default() };
        let alternative =
            Alternative { requests: vec![request], walltime_seconds: Some(walltime_seconds), ..Alternative::default() };
        let mut spec = job(alternative);
        spec.components[0].queue = Some(QUEUE.to_owned());
        spec
    }
}
