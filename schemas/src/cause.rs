//! The cause of each record (HPC-E-01). Causes follow from the log and are not stored: every reading of the log gives
//! the same.
//!
//! - Records of a person's command, and records of a worker's command that are not on a job, are caused by the first
//!   record of that command. The first record has no cause.
//! - Records of a worker's command (the planner's, a runner's, an executor's, a notifier's or the ledger's own) on a
//!   job are caused by the first record of that command on the job. That first record is caused by the last record on
//!   the job before the command. For a task of an array, the records of the whole array count as well.
//!
//! A record is on a job if it names the job. Records that name only a run (those of its parts on single nodes) count as
//! being on no job, because the log does not keep forever which job a run belongs to.

use crate::{
    event::{Actor, Record},
    ids::{CommandId, JobId, Sequence},
};
use std::collections::HashMap;

/// Maximum number of jobs whose last record is remembered; for others it is looked up.
const REMEMBERED_JOBS: usize = 1 << 16;

/// The records of a log, found by their jobs.
pub trait RecordsByJob {
    /// Why a record cannot be looked up.
    type Error;

    /// The last record before another that names exactly this job, whole array, or task.
    ///
    /// # Errors
    /// If it cannot be read.
    fn last_before(&self, job: JobId, before: Sequence) -> Result<Option<Sequence>, Self::Error>;
}

/// Only the records seen so far: earlier records of jobs are not looked up.
#[derive(Debug)]
pub struct Remembered;

/// The last record of the same job is older than all remembered ones.
#[derive(Debug)]
pub struct NotRemembered;

impl RecordsByJob for Remembered {
    type Error = NotRemembered;

    fn last_before(&self, _: JobId, _: Sequence) -> Result<Option<Sequence>, NotRemembered> {
        Err(NotRemembered)
    }
}

/// Finds the causes of consecutive records, starting from the first record of a command.
#[derive(Debug, Default)]
pub struct Causes {
    command: Option<CommandId>,
    /// The first record of that command.
    first: Sequence,
    /// The first record of that command on each job.
    first_on: HashMap<JobId, Sequence>,
    /// The last known record on each remembered job; `None` if there is none.
    last_on: HashMap<JobId, Option<Sequence>>,
}

impl Causes {
    /// The cause of the next record; `None` if it has none.
    ///
    /// # Errors
    /// If a record of the same job cannot be looked up. The record still counts as seen.
    pub fn of<L: RecordsByJob>(&mut self, record: &Record, log: &L) -> Result<Option<Sequence>, L::Error> {
        if self.command != Some(record.command) {
            self.begin(record);
        }
        let job = record.event.job();
        let cause = match job.filter(|_| !matches!(*record.actor, Actor::User(_))) {
            Some(job) => self.on_job(job, log),
            None => Ok(Some(self.first).filter(|first| *first < record.sequence)),
        };
        if let Some(job) = job {
            self.first_on.entry(job).or_insert(record.sequence);
            self.last_on.insert(job, Some(record.sequence));
        }
        cause
    }

    fn begin(&mut self, record: &Record) {
        self.command = Some(record.command);
        self.first = record.sequence;
        self.first_on.clear();
        if self.last_on.len() >= REMEMBERED_JOBS {
            self.last_on.clear();
        }
    }

    fn on_job<L: RecordsByJob>(&mut self, job: JobId, log: &L) -> Result<Option<Sequence>, L::Error> {
        let own = [Some(job), Some(job.whole()).filter(|whole| *whole != job)];
        if let Some(first) = own.iter().flatten().filter_map(|job| self.first_on.get(job)).min() {
            return Ok(Some(*first));
        }
        let mut last = None;
        for job in own.into_iter().flatten() {
            last = last.max(self.last_before(job, log)?);
        }
        Ok(last)
    }

    /// The last record on exactly this job before the command.
    fn last_before<L: RecordsByJob>(&mut self, job: JobId, log: &L) -> Result<Option<Sequence>, L::Error> {
        if let Some(last) = self.last_on.get(&job) {
            return Ok(*last);
        }
        let last = log.last_before(job, self.first)?;
        self.last_on.insert(job, last);
        Ok(last)
    }
}
