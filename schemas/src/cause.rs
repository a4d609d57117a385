//! Which record led to which (HPC-E-01). It follows from the log, so that it is not stored: another reading of the
//! log comes to the same.
//!
//! - What a person's command did, and what a worker's did that is of no job, was caused by the first record of that
//!   command; that first record by none.
//! - What a worker's command (the planner's, a runner's, an executor's, a notifier's or the ledger's own) did to a job was
//!   caused by the first record of that command on the job; that first record by the last one on the job before the
//!   command. For a task of an array the records of the whole array count as well.
//!
//! A record is on a job if it names the job. Records that name only a run, which are those of its parts on single nodes,
//! count as of no job: what a run belongs to is not in the log for ever.

use crate::{
    event::{Actor, Record},
    ids::{CommandId, JobId, Sequence},
};
use std::collections::HashMap;

/// Jobs whose last record is remembered; of others it is looked up.
const REMEMBERED_JOBS: usize = 1 << 16;

/// The records of a log, found by their jobs.
pub trait RecordsByJob {
    /// Why they cannot be read.
    type Error;

    /// The last record before another that names exactly this job, array as a whole, or task.
    ///
    /// # Errors
    /// If it cannot be read.
    fn last_before(&self, job: JobId, before: Sequence) -> Result<Option<Sequence>, Self::Error>;
}

/// The records seen so far and nothing else: the records of jobs that came before are not looked up.
#[derive(Debug)]
pub struct Remembered;

/// The last record of the same job came before all that is remembered.
#[derive(Debug)]
pub struct NotRemembered;

impl RecordsByJob for Remembered {
    type Error = NotRemembered;

    fn last_before(&self, _: JobId, _: Sequence) -> Result<Option<Sequence>, NotRemembered> {
        Err(NotRemembered)
    }
}

/// Says of records, one after the other and from the first one of a command on, which record led to them.
#[derive(Debug, Default)]
pub struct Causes {
    command: Option<CommandId>,
    /// The first record of that command.
    first: Sequence,
    /// The first record of that command on each job.
    first_on: HashMap<JobId, Sequence>,
    /// The last record on each of some jobs, up to the last one before that command.
    last_on: HashMap<JobId, Option<Sequence>>,
}

impl Causes {
    /// The cause of the next record; `None` if it is where something began.
    ///
    /// # Errors
    /// If a record of the same job cannot be looked up. The record counts as seen even so.
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
