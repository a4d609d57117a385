//! Whether what happened is what the trace implies.

use super::{history::History, schedule::Replayed};
use crate::{api, http::Connection};
use anyhow::{Context as _, Result, bail, ensure};
use muster_schemas::JobId;
use std::{collections::BTreeMap, path::Path, time::Duration};

/// Runs never start late or end early by the ledger's clock against the process's own by more than this: the kernel's
/// timers and clocks are that exact.
const CLOCK_ERROR: Duration = Duration::from_millis(5);

/// What is checked.
pub struct Findings<'a> {
    /// What was to happen.
    pub replayed: &'a [Replayed],
    /// The numbers of the jobs, in the same order.
    pub ids: &'a [JobId],
    /// What the events told.
    pub history: &'a History,
    /// The file that every process left its mark in.
    pub markers: &'a Path,
    /// By how much a run may be longer than the life of its process, on average.
    pub overhead_allowed: Duration,
}

/// Cores times time of the runs of an account.
#[derive(Clone, Copy, Default)]
struct Used {
    implied_core_seconds: f64,
    logged_core_micros: u128,
}

impl Findings<'_> {
    /// Checks everything; the first difference is an error.
    ///
    /// # Errors
    /// Says what differs.
    pub async fn check(&self, connection: &mut Connection) -> Result<()> {
        self.check_marks()?;
        let accounts = self.check_runs()?;
        self.check_usage(&accounts, connection).await
    }

    /// The processes themselves say how often they were started: no part of muster is believed here.
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

    /// Every job has one run, which lasted as long as its process lived and little longer.
    fn check_runs(&self) -> Result<BTreeMap<&str, Used>> {
        ensure!(
            self.ids.len() == self.replayed.len(),
            "{} of {} jobs were accepted",
            self.ids.len(),
            self.replayed.len()
        );
        let mut accounts: BTreeMap<&str, Used> = BTreeMap::new();
        let mut overhead_total = Duration::ZERO;
        let mut overhead_most = Duration::ZERO;
        for (job, id) in self.replayed.iter().zip(self.ids) {
            let elapsed = self.elapsed_of(*id)?;
            ensure!(
                elapsed + CLOCK_ERROR >= job.life,
                "job {id} ran for {elapsed:?}, its process lives {:?}",
                job.life
            );
            let overhead = elapsed.saturating_sub(job.life);
            overhead_total += overhead;
            overhead_most = overhead_most.max(overhead);
            let used = accounts.entry(&job.account).or_default();
            used.implied_core_seconds += job.core_seconds();
            used.logged_core_micros += elapsed.as_micros() * u128::from(job.procs);
        }
        let overhead = overhead_total / u32::try_from(self.ids.len().max(1))?;
        ensure!(
            overhead <= self.overhead_allowed,
            "runs last {overhead:?} longer than their processes on average; {:?} are allowed",
            self.overhead_allowed
        );
        println!(
            "runs: one for each job; longer than its process by {overhead:?} on average, {overhead_most:?} at most"
        );
        Ok(accounts)
    }

    fn elapsed_of(&self, id: JobId) -> Result<Duration> {
        let told = self.history.job(id).with_context(|| format!("no event told of job {id}"))?;
        ensure!(told.outcomes == ["completed"], "job {id} should complete once: {told:?}");
        match (told.submitted, told.allocated, told.started.as_slice(), told.ended.as_slice()) {
            (1, 1, [started], [ended]) => Ok(Duration::from_micros(ended.micros_since(*started).max(0).unsigned_abs())),
            _ => bail!("job {id} should be submitted, allocated, started and ended once: {told:?}"),
        }
    }

    /// Accounting says for every account what the log says, to the microsecond; and that is what the trace implies, but
    /// for the overhead of the runs.
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
