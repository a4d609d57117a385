//! The messages of a command while nothing is wrong.

use crate::options::Command;
use jiff::tz::TimeZone;
use muster_schemas::{job::ExitStatus, time::Timestamp};

/// The line that `sbatch` prints for a submitted job, always with the leader's number (SL-C-08, SL-S-11, SL-S-19):
/// `None` with `--quiet`. It names the cluster if the job went to another one.
pub fn submitted(job: u64, cluster: Option<&str>, parsable: bool, quiet: bool) -> Option<String> {
    match (parsable, cluster) {
        (true, None) => Some(job.to_string()),
        (true, Some(cluster)) => Some(format!("{job};{cluster}")),
        (false, _) if quiet => None,
        (false, None) => Some(format!("Submitted batch job {job}")),
        (false, Some(cluster)) => Some(format!("Submitted batch job {job} on cluster {cluster}")),
    }
}

/// An event of an allocation that a command waits for and holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationEvent {
    /// It has a number but does not exist yet.
    Pending,
    /// It waits.
    Queued,
    /// It was granted after waiting.
    Allocated,
    /// It was granted.
    Granted,
    /// The command gives it up.
    Relinquished,
    /// Somebody else ended it.
    Revoked,
}

impl AllocationEvent {
    /// The messages of `salloc` before its command, in this order (SL-S-16, SL-C-21). Those about waiting appear for
    /// every heterogeneous job, but for a plain one only if it had to wait.
    pub fn before_command(heterogeneous: bool, waited: bool) -> &'static [Self] {
        match (heterogeneous, waited) {
            (true, _) | (_, true) => &[Self::Pending, Self::Queued, Self::Allocated, Self::Granted],
            (false, false) => &[Self::Granted],
        }
    }

    /// The line on standard error. `job` is always the leader's number. `srun` only prints that it waits (SL-C-22).
    pub fn line(self, command: Command, job: u64) -> Option<String> {
        let text = match self {
            Self::Queued => format!("job {job} queued and waiting for resources"),
            Self::Allocated => format!("job {job} has been allocated resources"),
            _ if command == Command::Srun => return None,
            Self::Pending => format!("Pending job allocation {job}"),
            Self::Granted => format!("Granted job allocation {job}"),
            Self::Relinquished => format!("Relinquishing job allocation {job}"),
            Self::Revoked => format!("Job allocation {job} has been revoked."),
        };
        Some(format!("{command}: {text}"))
    }
}

/// The output of `--test-only` on standard error (SL-C-10, SL-S-24). `start` is a point in time as every command prints
/// it; the partition is printed for plain jobs.
pub fn would_start(command: Command, job: u64, start: &str, cpus: u64, nodes: &str, partition: Option<&str>) -> String {
    match partition {
        Some(partition) => format!(
            "{command}: Job {job} to start at {start} using {cpus} processors on nodes {nodes} in partition {partition}"
        ),
        None => format!("{command}: Job {job} to start at {start} using {cpus} processors on {nodes}"),
    }
}

/// The exit status of `sbatch --wait` (SL-C-11): the script's, or 1 if a signal ended it or it never ran (`None`); for
/// an array the highest of its tasks.
pub fn wait_status(ends: &[Option<ExitStatus>]) -> u8 {
    let status = |end: &Option<ExitStatus>| match end {
        Some(ExitStatus::Code(code)) => *code,
        Some(ExitStatus::Signal(_)) | None => 1,
    };
    ends.iter().map(status).max().unwrap_or(0)
}

/// A message sent to a job (`scontrol notify`), as its standard error shows it.
pub fn told(message: &str) -> String {
    format!("slurmstepd: error: {message}")
}

/// Why a batch script was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// Somebody cancelled the job.
    Cancelled,
    /// It reached its time limit.
    TimeLimit,
    /// It was requeued.
    Requeue,
    /// It had to make room.
    Preemption,
    /// One of its nodes was lost.
    NodeFailure,
}

/// The line at the end of a batch script's output, or of a step's, with its end (SL-C-30). `what` is `JOB 7` or
/// `STEP 7.0`.
pub fn end_note(what: &str, node: &str, at: Timestamp, zone: &TimeZone, cause: EndCause) -> String {
    let time = at.to_jiff().to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let why = match cause {
        EndCause::Cancelled => "",
        EndCause::TimeLimit => " DUE TO TIME LIMIT",
        EndCause::Requeue => " DUE TO JOB REQUEUE",
        EndCause::Preemption => " DUE TO PREEMPTION",
        EndCause::NodeFailure => " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
    };
    format!("slurmstepd: error: *** {what} ON {node} CANCELLED AT {time}{why} ***\n")
}
