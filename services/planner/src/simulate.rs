//! Replays the jobs of a trace under a policy, in simulated time, with the engine that plans in production.
//!
//! Time is in whole seconds and jumps from one event to the next. At each instant the runs that end then give back
//! their resources, the jobs submitted then enter the queue in queue order, and the policy runs. Events are
//! submissions, completions and, for policies that keep promises, promised starts.

mod machine;
mod result;
mod sleep;
mod usage;
mod workload;

pub use machine::Machine;
pub(crate) use result::course;
pub use result::{JobResult, Simulation, Stuck, Summary, bounded_slowdown};
pub use sleep::SimulatedEnergy;
pub use workload::{SimulatedJob, Workload};

use crate::{PolicyError, energy::SleepPolicy, engine::Engine, model::ActiveRun};
use muster_schemas::{
    JobId, NodeId,
    job::WaitReason,
    policy::{Backfill, BackfillMode, Policy},
    resources::{NodeSpec, Placement},
};
use sleep::Sleepers;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    sync::Arc,
};
use usage::UserUse;
use workload::time_of;

/// Times beyond this, in seconds from the beginning of the trace (3,168 years), are not simulated.
const LATEST_SECONDS: i64 = 100_000_000_000;

/// Why a simulation cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The policy cannot be followed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The pool is empty or too large.
    #[error("a machine has 1 to {} processors, not {procs}", Machine::MAX_POOL_PROCS)]
    PoolSize {
        /// How many were asked for.
        procs: u32,
    },
    /// A job is submitted, or would end, too late to be counted.
    #[error("job {job_id}: time {seconds} s is beyond the {LATEST_SECONDS} s that can be simulated")]
    TooLate {
        /// The job's label in the trace.
        job_id: i64,
        /// The time.
        seconds: i64,
    },
}

/// The progress of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Jobs that have been submitted.
    pub submitted: usize,
    /// Jobs that have ended.
    pub ended: usize,
}

/// Runs all jobs of the workload on the empty machine under the policy. `progress` is called after each instant.
///
/// The same input always gives the same result. The result names jobs that the policy never starts (its limits forbid
/// them, or their queue is stopped).
///
/// # Errors
/// If the policy cannot be followed, or the machine or a job's times are beyond what can be counted.
pub fn simulate(
    machine: &Machine,
    workload: &Workload,
    policy: &Arc<Policy>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimulateError> {
    simulate_with_sleep(machine, workload, policy, None, progress)
}

/// The same on nodes that sleep while they have no job. Only nodes of a [`Machine::Cluster`] sleep.
///
/// A job that starts on nodes that sleep waits until they are awake; they are its own meanwhile. Nodes that are kept awake,
/// and the time before planned starts in which a site lets no node fall asleep, are no part of this model.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_with_sleep(
    machine: &Machine,
    workload: &Workload,
    policy: &Arc<Policy>,
    sleep: Option<SleepPolicy>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Simulation, SimulateError> {
    let mut clock = Clock::new(machine, workload, policy, sleep)?;
    while let Some(now) = clock.next_instant() {
        clock.step(now)?;
        progress(clock.progress());
    }
    Ok(clock.into_simulation(machine, policy))
}

/// A running simulation.
struct Clock<'w> {
    jobs: &'w [SimulatedJob],
    engine: Engine,
    keeps_promises: bool,
    /// When each job started.
    starts: Vec<Option<i64>>,
    /// The ends of runs: time and place in the queue order.
    ends: BinaryHeap<Reverse<(i64, usize)>>,
    submitted: usize,
    ended: usize,
    wake: Option<i64>,
    sleepers: Option<Sleepers>,
    used: Option<UserUse>,
}

impl<'w> Clock<'w> {
    fn new(
        machine: &Machine,
        workload: &'w Workload,
        policy: &Arc<Policy>,
        sleep: Option<SleepPolicy>,
    ) -> Result<Self, SimulateError> {
        let jobs = workload.jobs();
        let too_late =
            |job: &&SimulatedJob| job.submit_seconds > LATEST_SECONDS || job.runtime_seconds > LATEST_SECONDS;
        if let Some(job) = jobs.iter().find(too_late) {
            let seconds = job.submit_seconds.max(job.runtime_seconds);
            return Err(SimulateError::TooLate { job_id: job.job_id, seconds });
        }
        let first = jobs.first().map_or(0, |job| job.submit_seconds);
        let sleepers = match (machine, sleep) {
            (Machine::Cluster(config), Some(sleep)) => Some(Sleepers::new(&config.nodes, sleep, first)),
            _ => None,
        };
        Ok(Self {
            jobs,
            engine: engine_of(machine, workload, policy)?,
            keeps_promises: keeps_promises(policy),
            starts: vec![None; jobs.len()],
            ends: BinaryHeap::new(),
            submitted: 0,
            ended: 0,
            wake: None,
            sleepers,
            used: UserUse::of(policy, first),
        })
    }

    fn next_instant(&self) -> Option<i64> {
        let submission = self.jobs.get(self.submitted).map(|job| job.submit_seconds);
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        [submission, end, self.wake].into_iter().flatten().min()
    }

    fn step(&mut self, now: i64) -> Result<(), SimulateError> {
        let ended_before = self.ended;
        while let Some(Reverse((end, at))) = self.ends.peek().copied()
            && end <= now
        {
            self.ends.pop();
            self.engine.end(id_of(at));
            if let Some(used) = &mut self.used {
                used.ended(at, &self.jobs[at], end);
            }
            if let Some(sleepers) = &mut self.sleepers {
                sleepers.end(id_of(at), end);
            }
            self.ended += 1;
        }
        if let Some(sleepers) = &mut self.sleepers {
            sleepers.fall_asleep(now, &mut self.engine);
        }
        self.engine.set_capacity_freed(self.ended > ended_before);
        while let Some(job) = self.jobs.get(self.submitted)
            && job.submit_seconds <= now
        {
            self.engine.enqueue(job.queued(id_of(self.submitted)));
            self.submitted += 1;
        }
        self.plan(now)
    }

    /// One pass; more only if the policy limits the starts of one.
    fn plan(&mut self, now: i64) -> Result<(), SimulateError> {
        if let Some(used) = &mut self.used {
            used.tell(now, self.jobs, &mut self.engine);
        }
        loop {
            let plan = self.engine.pass(time_of(now), &BTreeSet::new());
            let may_go_on = plan.is_cut_short && !plan.starts.is_empty();
            for start in plan.starts {
                self.start(now, start.job, Arc::new(start.placement))?;
            }
            if may_go_on {
                self.engine.set_capacity_freed(false);
                continue;
            }
            let wake = plan.next_wake.map(|wake| wake.unix_seconds()).filter(|wake| *wake > now);
            self.wake = wake.filter(|_| self.keeps_promises);
            return Ok(());
        }
    }

    fn start(&mut self, now: i64, id: JobId, placement: Arc<Placement>) -> Result<(), SimulateError> {
        let at = place_of(id);
        let job = &self.jobs[at];
        let sleepers = self.sleepers.as_mut();
        let begins = now + sleepers.map_or(0, |sleepers| sleepers.begin(id, &placement, now, &mut self.engine));
        let end = begins + job.runtime_seconds;
        if end > LATEST_SECONDS {
            return Err(SimulateError::TooLate { job_id: job.job_id, seconds: end });
        }
        self.engine.dequeue(id);
        self.engine.begin(ActiveRun {
            job: id,
            demand: job.demand.clone(),
            holder: job.holder.clone(),
            placement,
            expected_end: time_of(begins.saturating_add(job.estimate_seconds)),
            attributes: job.attributes.clone(),
        });
        self.starts[at] = Some(begins);
        if let Some(used) = &mut self.used {
            used.started(at, begins);
        }
        self.ends.push(Reverse((end, at)));
        Ok(())
    }

    fn progress(&self) -> Progress {
        Progress { submitted: self.submitted, ended: self.ended }
    }

    fn into_simulation(mut self, machine: &Machine, policy: &Policy) -> Simulation {
        let first_stuck = self.first_stuck();
        let results = self.jobs.iter().zip(&self.starts).map(|(job, start)| JobResult {
            job_id: job.job_id,
            submit_seconds: job.submit_seconds,
            start_seconds: *start,
            runtime_seconds: job.runtime_seconds,
            procs: job.procs,
        });
        let jobs = results.collect();
        let energy = self.sleepers.map(Sleepers::energy);
        Simulation { policy: policy.name.clone(), machine_procs: machine.procs(), jobs, first_stuck, energy }
    }

    /// The first job that still waits when nothing more happens, and why.
    fn first_stuck(&mut self) -> Option<Stuck> {
        let at = self.starts.iter().position(Option::is_none)?;
        self.engine.tells_reasons = true;
        let plan = self.engine.pass(time_of(LATEST_SECONDS), &BTreeSet::new());
        let reason = plan.reasons.into_iter().find(|waiting| waiting.job == id_of(at));
        Some(Stuck { job_id: self.jobs[at].job_id, reason: reason.map(|waiting| self.in_labels(&waiting.reason)) })
    }

    /// The reason, with the trace's label for another job that it names.
    fn in_labels(&self, reason: &WaitReason) -> String {
        let label = |id: &JobId| JobId::job(self.jobs[place_of(*id)].job_id.unsigned_abs());
        match reason {
            WaitReason::BehindJob(job) => WaitReason::BehindJob(label(job)).to_string(),
            WaitReason::WouldDelay(job) => WaitReason::WouldDelay(label(job)).to_string(),
            other => other.to_string(),
        }
    }
}

fn engine_of(machine: &Machine, workload: &Workload, policy: &Arc<Policy>) -> Result<Engine, SimulateError> {
    let mut engine = Engine::new(policy.clone())?.without_reasons();
    if let Some(first) = workload.jobs().first() {
        engine.set_epoch(time_of(first.submit_seconds));
    }
    match machine {
        Machine::Pool { procs } if !(1..=Machine::MAX_POOL_PROCS).contains(procs) => {
            return Err(SimulateError::PoolSize { procs: *procs });
        }
        Machine::Pool { procs } => {
            engine.set_pool(NodeId(0), Arc::new(pool(*procs)));
        }
        Machine::Cluster(config) => {
            engine.set_default_memory_per_core_bytes(config.settings.default_memory_per_core_bytes);
            let cores = config.nodes.iter().map(|node| u64::from(node.cores)).sum();
            engine.set_quotas(config.settings.quotas.as_deref(), cores);
            for (number, node) in (0..).zip(&config.nodes) {
                engine.set_node(NodeId(number), Arc::new(node.clone()), true);
            }
            for (name, total) in &config.licences {
                engine.set_licence(name, *total);
            }
        }
    }
    for queue in workload.queues() {
        engine.set_queue(queue);
    }
    Ok(engine)
}

/// One node with all processors; jobs of a trace ask for nothing else.
fn pool(procs: u32) -> NodeSpec {
    NodeSpec {
        name: "pool".into(),
        cores: procs,
        sockets: 1,
        memory_bytes: 0,
        gpus: Vec::new(),
        properties: BTreeMap::new(),
    }
}

/// Whether the policy keeps promises, whose starts are events.
fn keeps_promises(policy: &Policy) -> bool {
    let is_conservative = |backfill: &Backfill| backfill.mode == BackfillMode::Conservative;
    is_conservative(&policy.backfill)
        || policy.queues.values().filter_map(|queue| queue.backfill.as_ref()).any(is_conservative)
}

/// Ids follow the queue order, which therefore breaks ties.
fn id_of(at: usize) -> JobId {
    JobId::job(at as u64 + 1)
}

fn place_of(id: JobId) -> usize {
    id.number as usize - 1
}
