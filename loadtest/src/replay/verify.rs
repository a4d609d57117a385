//! Checks that the result is what the trace implies.

use super::{history::History, schedule::Replayed};
use crate::{api, http::Connection};
use anyhow::{Context as _, Result, bail, ensure};
use muster_schemas::{JobId, Timestamp};
use std::{collections::BTreeMap, path::Path, time::Duration};

/// A process sleeps by the kernel's monotonic clock, the ledger records the time of day: they may differ by this much.
const CLOCK_ERROR: Duration = Duration::from_millis(5);

/// The input of the check.
pub struct Findings<'a> {
    /// The planned jobs.
    pub replayed: &'a [Replayed],
    /// The numbers of the jobs, in the same order.
    pub ids: &'a [JobId],
    /// What the events say.
    pub history: &'a History,
    /// The file with the marks of all processes.
    pub markers: &'a Path,
    /// How much longer a run may be than the life of its process, on average.
    pub overhead_allowed: Duration,
}

/// How long a run lasted.
struct RunTimes {
    /// From getting its resources to returning them: the life of its process lies within.
    held: Duration,
    /// What accounting must count: from the record of its start on its last node to that of its end, or the time
    /// measured on the node where it ended last, if that is more. A process on another node may have started a little
    /// earlier.
    counted: Duration,
}

/// Cores times time for the runs of an account.
#[derive(Clone, Copy, Default)]
struct Used {
    implied_core_seconds: f64,
    logged_core_micros: u128,
}

impl Findings<'_> {
    /// Checks everything; the first difference is an error.
    ///
    /// # Errors
    /// The difference.
    pub async fn check(&self, connection: &mut Connection) -> Result<()> {
        self.check_marks()?;
        let accounts = self.check_runs()?;
        self.check_usage(&accounts, connection).await
    }

    /// The processes themselves say how often they were started: this check trusts no part of muster.
    fn check_marks(&self) -> Result<()> {
        let text = std::fs::read_to_string(self.markers).context("no process has left a mark")?;
        let mut marks: BTreeMap<i64, usize> = BTreeMap::new();
        for line in text.lines() {
            *marks.entry(line.parse().with_context(|| format!("`{line}` is no mark"))?).or_default() += 1;
        }
        for job in self.replayed {
            let count = marks.remove(&job.label).unwrap_or(0);
            ensure!(count == 1, "the process of trace job {} was started {count} times", job.label);
        }
        ensure!(marks.is_empty(), "processes of other jobs were started: {marks:?}");
        println!("processes: each of {} was started once", self.replayed.len());
        Ok(())
    }

    /// Every job has one run, which lasted as long as its process or little longer.
    fn check_runs(&self) -> Result<BTreeMap<&str, Used>> {
        ensure!(
            self.ids.len() == self.replayed.len(),
            "{} of {} jobs were accepted",
            self.ids.len(),
            self.replayed.len()
        );
        let mut accounts: BTreeMap<&str, Used> = BTreeMap::new();
        let mut overheads_ms = Vec::with_capacity(self.ids.len());
        for (job, id) in self.replayed.iter().zip(self.ids) {
            let run = self.run_of(*id)?;
            ensure!(
                run.held + CLOCK_ERROR >= job.life,
                "job {id} had its resources for {:?}, its process lives {:?}",
                run.held,
                job.life
            );
            overheads_ms.push((run.counted.as_secs_f64() - job.life.as_secs_f64()) * 1e3);
            let used = accounts.entry(&job.account).or_default();
            used.implied_core_seconds += job.core_seconds();
            used.logged_core_micros += run.counted.as_micros() * u128::from(job.procs);
        }
        let mean_ms = overheads_ms.iter().sum::<f64>() / overheads_ms.len() as f64;
        let (least_ms, most_ms) =
            overheads_ms.iter().fold((f64::MAX, f64::MIN), |(least, most), ms| (least.min(*ms), most.max(*ms)));
        ensure!(
            mean_ms.abs() <= self.overhead_allowed.as_secs_f64() * 1e3,
            "runs last {mean_ms:.1} ms longer than their processes on average; {:?} are allowed",
            self.overhead_allowed
        );
        println!(
            "runs: one for each job; longer than its process by {mean_ms:.1} ms on average ({least_ms:.1} to {most_ms:.1})"
        );
        Ok(accounts)
    }

    /// The times of the only run of a job.
    fn run_of(&self, id: JobId) -> Result<RunTimes> {
        let told = self.history.job(id).with_context(|| format!("no event told of job {id}"))?;
        ensure!(told.outcomes == ["completed"], "job {id} should complete once: {told:?}");
        let ([allocated], [started], [end], 1) =
            (told.allocated.as_slice(), told.started.as_slice(), told.ended.as_slice(), told.submitted)
        else {
            bail!("job {id} should be submitted, allocated, started and ended once: {told:?}");
        };
        let until_end = |from: Timestamp| Duration::from_micros(end.time.micros_since(from).max(0).unsigned_abs());
        let held = until_end(*allocated);
        Ok(RunTimes { held, counted: until_end(*started).max(end.measured).min(held) })
    }

    /// Accounting and log agree for every account, to the microsecond; and except for the overhead of the runs they
    /// match the trace.
    async fn check_usage(&self, accounts: &BTreeMap<&str, Used>, connection: &mut Connection) -> Result<()> {
        let counted = api::used_core_micros_by_account(connection).await?;
        let (mut implied, mut used) = (0.0, 0_u128);
        for (account, expected) in accounts {
            let found = counted.get(*account).copied().unwrap_or(0);
            ensure!(
                found == expected.logged_core_micros,
                "accounting has {found} core-microseconds for {account}, the log {}",
                expected.logged_core_micros
            );
            implied += expected.implied_core_seconds;
            used += found;
        }
        let used = used as f64 / 1e6;
        println!(
            "usage: {used:.3} core-seconds in {} accounts, each as the log says to the microsecond; the trace implies {implied:.3} ({:+.2} %: the overhead of the runs)",
            accounts.len(),
            (used / implied - 1.0) * 100.0
        );
        Ok(())
    }
}
