//! The result of a simulation: rows, summary, and the courses that charts show.

use super::sleep::SimulatedEnergy;
use muster_swf::Dropped;
use serde::Serialize;
use std::io::{self, Write};

/// A run counts at least this long in a slowdown, so that very short jobs do not dominate.
const SLOWDOWN_BOUND_SECONDS: i64 = 10;

/// The result of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// Its label in the trace.
    pub job_id: i64,
    /// When it was submitted.
    pub submit_seconds: i64,
    /// When it started; `None` if the policy never let it.
    pub start_seconds: Option<i64>,
    /// How long it ran.
    pub runtime_seconds: i64,
    /// How many processors it held.
    pub procs: u32,
}

impl JobResult {
    /// How long it waited, if it started.
    pub fn wait_seconds(&self) -> Option<i64> {
        Some(self.start_seconds? - self.submit_seconds)
    }

    /// When it ended, if it started.
    pub fn end_seconds(&self) -> Option<i64> {
        Some(self.start_seconds? + self.runtime_seconds)
    }
}

/// How many times longer a job took than it ran, at least 1, with runs counted as at least ten seconds.
pub fn bounded_slowdown(wait_seconds: i64, runtime_seconds: i64) -> f64 {
    let took = (wait_seconds + runtime_seconds) as f64;
    (took / runtime_seconds.max(SLOWDOWN_BOUND_SECONDS) as f64).max(1.0)
}

/// The result of all jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// The policy's name.
    pub policy: String,
    /// Processors of the machine.
    pub machine_procs: u64,
    /// Every job, in queue order.
    pub jobs: Vec<JobResult>,
    /// The first job that was never started, if there is one.
    pub first_stuck: Option<Stuck>,
    /// What the nodes used, if they could sleep.
    pub energy: Option<SimulatedEnergy>,
}

/// A job that still waits when nothing more happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its label.
    pub job_id: i64,
    /// Why it waits, for people.
    pub reason: Option<String>,
}

/// The figures of a simulation; section 4 of the reference of `muster simulate` explains them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The policy's name.
    pub policy: String,
    /// Processors of the machine.
    pub procs: u64,
    /// Jobs accepted.
    pub jobs: u64,
    /// Lines of the trace that were dropped.
    pub dropped: Dropped,
    /// Jobs that the policy never let start; no figure counts them.
    pub never_started: u64,
    /// In seconds, as the other waits.
    pub mean_wait: f64,
    /// Element `n/2` of the waits in ascending order, counted from 0.
    pub median_wait: i64,
    /// Element `95n/100`.
    pub p95_wait: i64,
    /// The longest.
    pub max_wait: i64,
    /// Mean bounded slowdown.
    pub mean_bsld: f64,
    /// The greatest bounded slowdown.
    pub max_bsld: f64,
    /// From the first submission to the last end, in seconds.
    pub makespan: i64,
    /// The share of the machine that was in use in that time, 0 to 1.
    pub utilization: f64,
    /// What the nodes used in that time, if they could sleep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<SimulatedEnergy>,
}

impl Simulation {
    /// Writes the rows as comma-separated values, in queue order, under a header line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"job_id,submit,start,end,procs,wait,bounded_slowdown\n")?;
        for job in &self.jobs {
            let (Some(start), Some(end), Some(wait)) = (job.start_seconds, job.end_seconds(), job.wait_seconds())
            else {
                continue;
            };
            let slowdown = bounded_slowdown(wait, job.runtime_seconds);
            let JobResult { job_id, submit_seconds, procs, .. } = job;
            writeln!(out, "{job_id},{submit_seconds},{start},{end},{procs},{wait},{slowdown:.4}")?;
        }
        Ok(())
    }

    /// The figures. Without any job that started they are 0.
    pub fn summary(&self, dropped: Dropped) -> Summary {
        let mut waits: Vec<i64> = self.jobs.iter().filter_map(JobResult::wait_seconds).collect();
        waits.sort_unstable();
        let count = waits.len();
        let mean = |sum: f64| if count == 0 { 0.0 } else { sum / count as f64 };
        let element = |at: usize| waits.get(at).copied().unwrap_or(0);
        let slowdowns =
            self.jobs.iter().filter_map(|job| Some(bounded_slowdown(job.wait_seconds()?, job.runtime_seconds)));
        let makespan = self.span().map_or(0, |(first, last)| last - first);
        let wait_sum: i128 = waits.iter().map(|wait| i128::from(*wait)).sum();
        Summary {
            policy: self.policy.clone(),
            procs: self.machine_procs,
            jobs: self.jobs.len() as u64,
            dropped,
            never_started: (self.jobs.len() - count) as u64,
            mean_wait: mean(wait_sum as f64),
            median_wait: element(count / 2),
            p95_wait: element(count * 95 / 100),
            max_wait: waits.last().copied().unwrap_or(0),
            mean_bsld: mean(slowdowns.clone().sum()),
            max_bsld: slowdowns.fold(0.0, f64::max),
            makespan,
            utilization: self.utilization(makespan),
            energy: self.energy,
        }
    }

    /// The first submission and the last end, if any job ended.
    pub fn span(&self) -> Option<(i64, i64)> {
        let first = self.jobs.iter().map(|job| job.submit_seconds).min()?;
        let last = self.jobs.iter().filter_map(JobResult::end_seconds).max()?;
        Some((first, last))
    }

    fn utilization(&self, makespan: i64) -> f64 {
        let used: i128 = self
            .jobs
            .iter()
            .filter(|job| job.start_seconds.is_some())
            .map(|job| i128::from(job.procs) * i128::from(job.runtime_seconds))
            .sum();
        let available = i128::from(self.machine_procs) * i128::from(makespan);
        if available == 0 { 0.0 } else { used as f64 / available as f64 }
    }

    /// The number of processors in use from each time on, where that changes.
    pub fn procs_in_use(&self) -> Vec<(i64, i64)> {
        let changes = self.jobs.iter().filter_map(|job| {
            let procs = i64::from(job.procs);
            Some([(job.start_seconds?, procs), (job.end_seconds()?, -procs)])
        });
        course(changes.flatten().collect())
    }

    /// The number of jobs that wait from each time on, where that changes. Those that never started wait for ever.
    pub fn jobs_waiting(&self) -> Vec<(i64, i64)> {
        let submissions = self.jobs.iter().map(|job| (job.submit_seconds, 1));
        let starts = self.jobs.iter().filter_map(|job| Some((job.start_seconds?, -1)));
        course(submissions.chain(starts).collect())
    }
}

/// The running sums of changes.
pub(crate) fn course(mut changes: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    changes.sort_unstable();
    let mut course: Vec<(i64, i64)> = Vec::new();
    let mut sum = 0;
    for (time, change) in changes {
        sum += change;
        match course.last_mut() {
            Some((last, value)) if *last == time => *value = sum,
            _ => course.push((time, sum)),
        }
    }
    course
}
