//! When to submit which job: the window of the trace, compressed.

use crate::api;
use muster_schemas::{
    job::{JobSpec, Program},
    resources::Request,
};
use muster_swf::TraceJob;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Added to the walltime of every job, which is in whole seconds while lives last milliseconds: no job of the trace was
/// killed at its limit, so none may be here.
const WALLTIME_SLACK_SECONDS: u64 = 60;

/// The jobs of a window, in the order of their moments.
pub struct Schedule {
    /// At least one, or there is nothing to replay.
    pub jobs: Vec<Replayed>,
}

/// A job of the trace, scaled.
pub struct Replayed {
    /// Its label in the trace.
    pub label: i64,
    /// Its moment, counted from the submission of the first job.
    pub at: Duration,
    /// How long its process lives: the run time divided by the speedup, rounded to milliseconds.
    pub life: Duration,
    /// Cores.
    pub procs: u32,
    /// The account that is charged: one for each user of the trace.
    pub account: String,
    walltime_seconds: u64,
    markers: PathBuf,
}

impl Schedule {
    /// Compresses a window. Each process appends its job's label to the file `markers` when it starts.
    pub fn new(window: &[TraceJob], speedup: f64, markers: &Path) -> Self {
        let first = window.first().map_or(0, |job| job.submit_seconds);
        let replayed = |job: &TraceJob| Replayed {
            label: job.id,
            at: Duration::from_secs_f64((job.submit_seconds - first) as f64 / speedup),
            life: Duration::from_millis((job.runtime_seconds as f64 * 1e3 / speedup).round() as u64),
            procs: u32::try_from(job.procs).unwrap_or(u32::MAX),
            account: format!("trace-user-{}", job.user),
            walltime_seconds: (job.estimate_seconds as f64 / speedup).ceil() as u64 + WALLTIME_SLACK_SECONDS,
            markers: markers.to_owned(),
        };
        Self { jobs: window.iter().map(replayed).collect() }
    }

    /// The time from the first submission to the last.
    pub fn span(&self) -> Duration {
        self.jobs.last().map_or(Duration::ZERO, |job| job.at)
    }

    /// The life of the longest job.
    pub fn longest_life(&self) -> Duration {
        self.jobs.iter().map(|job| job.life).max().unwrap_or_default()
    }

    /// What the trace implies: cores times life, summed over all jobs.
    pub fn core_seconds(&self) -> f64 {
        self.jobs.iter().map(Replayed::core_seconds).sum()
    }
}

impl Replayed {
    /// Cores times life.
    pub fn core_seconds(&self) -> f64 {
        self.life.as_secs_f64() * f64::from(self.procs)
    }

    /// The job as submitted: a script that leaves its mark and then sleeps, on the number of cores in the trace.
    pub fn spec(&self) -> JobSpec {
        let markers = self.markers.display();
        let text = format!("#!/bin/sh\necho {} >>'{markers}'\nexec sleep {:.3}\n", self.label, self.life.as_secs_f64());
        let program = Program::Script { text, args: Vec::new() };
        let request = Request { tasks: Some(self.procs), ..Request::default() };
        let mut job = api::job(&format!("trace-{}", self.label), program, request);
        // An emulated node has a `/tmp` of its own; of the machine's it shows the working directory.
        if let Some(folder) = self.markers.parent() {
            job.working_directory = folder.display().to_string();
        }
        for component in &mut job.components {
            component.account = Some(self.account.clone());
            for alternative in &mut component.alternatives {
                alternative.walltime_seconds = Some(self.walltime_seconds);
            }
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace_job(id: i64, submit_seconds: i64, runtime_seconds: i64, procs: u64) -> TraceJob {
        TraceJob {
            id,
            submit_seconds,
            runtime_seconds,
            estimate_seconds: runtime_seconds,
            procs,
            user: 3,
            group: -1,
            application: -1,
            queue: -1,
            partition: -1,
        }
    }

    #[test]
    fn moments_and_lives_are_divided_by_the_speedup() {
        let window = [trace_job(7, 1_000, 86_400, 8), trace_job(8, 1_500, 1, 1)];
        let schedule = Schedule::new(&window, 1_000.0, Path::new("/tmp/markers"));
        let moments: Vec<_> = schedule.jobs.iter().map(|job| (job.label, job.at, job.life)).collect();
        let ms = Duration::from_millis;
        assert_eq!(moments, [(7, ms(0), ms(86_400)), (8, ms(500), ms(1))]);
        assert!((schedule.core_seconds() - (86.4 * 8.0 + 0.001)).abs() < 1e-9);
        assert_eq!(schedule.longest_life(), ms(86_400));
        assert_eq!(schedule.span(), ms(500));
    }

    #[test]
    fn a_job_asks_for_the_processors_of_the_trace() {
        let schedule = Schedule::new(&[trace_job(7, 0, 2_500, 8)], 1_000.0, Path::new("/tmp/markers"));
        let job = schedule.jobs[0].spec();
        let component = &job.components[0];
        assert_eq!(component.alternatives[0].requests[0].tasks, Some(8));
        assert_eq!(component.alternatives[0].walltime_seconds, Some(63));
        assert_eq!(component.account.as_deref(), Some("trace-user-3"));
        let Program::Script { text, .. } = &component.launch.program else { panic!("not a script") };
        assert_eq!(text, "#!/bin/sh\necho 7 >>'/tmp/markers'\nexec sleep 2.500\n");
        assert_eq!(job.working_directory, "/tmp");
    }
}
