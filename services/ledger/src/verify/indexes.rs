//! Whether the indexes agree with the records. They lead to the history of a job and to the answer of a retry: anybody
//! who can write the folder could lie there without touching a record.
//!
//! Each record is looked up in the indexes as it passes, and at the end the entries are counted: if all required
//! entries exist, and no more, the two agree. So it need not keep them.

use crate::{
    log::{self, CommandKey, IndexEntry, Log, LogError, Mark, Remembered},
    retention,
};
use muster_schemas::{
    RunId,
    command::{Answer, RefusalCode, Reply},
    event::{Event, Record},
    ids::{JobId, Sequence, StepId},
    time::Timestamp,
};

/// The entries that the indexes must have, judging by the records that have passed.
pub(super) struct Indexes {
    /// Records up to this one are trusted, and so are their index entries.
    after: Sequence,
    /// Records that belong to a job.
    of_jobs: u64,
    /// Whether a marked description has passed. Programs from before the mark wrote none, later ones all.
    has_marks: bool,
    /// Remembered answers that name a created job or step: each has records.
    makers: u64,
    /// The command whose records are passing.
    group: Option<Group>,
}

/// The records of one command, which are consecutive.
struct Group {
    key: CommandKey,
    /// Whether its first record is known.
    is_whole: bool,
    time: Timestamp,
    last: Sequence,
    jobs: Vec<JobId>,
    step: Option<(RunId, StepId)>,
    /// Set if only its refusal is recorded.
    refused: Option<RefusalCode>,
}

impl Indexes {
    /// For the records after one.
    pub(super) fn new(after: Sequence) -> Self {
        Self { after, of_jobs: 0, has_marks: false, makers: 0, group: None }
    }

    /// Compares the index entries of the next record, in a log that ends at a time.
    ///
    /// # Errors
    /// [`LogError::Index`] if they differ; otherwise as reading them fails.
    pub(super) fn pass(&mut self, log: &Log, record: &Record, end: Timestamp) -> Result<(), LogError> {
        if let Some(job) = record.event.job() {
            self.of_jobs += 1;
            let mark = log.mark_of(job, record.sequence)?;
            if let Some(detail) = self.objection_to_mark(job, &record.event, mark) {
                return Err(altered(log, format!("of record {}: {detail}", record.sequence)));
            }
        }
        let key = CommandKey::new(&record.actor, record.command);
        if self.group.as_ref().is_none_or(|group| group.key != key) {
            self.close(log, end)?;
            // Nobody asked for the first record of a log, the first one after a restore, or a claim to lead.
            let is_asked = !matches!(
                record.event,
                Event::ClusterInitialised { .. } | Event::LogRestored { .. } | Event::LedgerLeads { .. }
            );
            let is_whole = self.after.0 == 0 || record.sequence != self.after.next();
            self.group = is_asked.then(|| Group::new(key, is_whole));
        }
        if let Some(group) = &mut self.group {
            group.add(record);
        }
        Ok(())
    }

    fn objection_to_mark(&mut self, job: JobId, event: &Event, mark: Option<Mark>) -> Option<String> {
        let describes = log::describes(event);
        match mark {
            None => Some(format!("the index by job does not have it for job {job}")),
            Some(Mark::Describes) if !describes => {
                Some(format!("the index by job says that it has all of job {job}, and it has not"))
            }
            Some(Mark::Concerns) if describes && self.has_marks => {
                Some(format!("the index by job does not say that it has all of job {job}"))
            }
            Some(mark) => {
                self.has_marks |= mark == Mark::Describes;
                None
            }
        }
    }

    /// Compares the remembered answer of the command whose records have passed. An old answer may be forgotten, and if
    /// its id was used again, the later answer is there.
    fn close(&mut self, log: &Log, end: Timestamp) -> Result<(), LogError> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let objection = match log.answer_with_time(&group.key)? {
            Some((time, remembered)) if time == group.time => {
                self.makers += u64::from(makes(&remembered.answer));
                group.objection(&remembered.answer)
            }
            Some((time, _)) if is_forgotten(group.time, time) => None,
            Some((time, _)) => Some(format!("the answer to its command is from {time}, and it is from {}", group.time)),
            None if is_forgotten(group.time, end.max(Timestamp::now())) => None,
            None => Some("the answer to its command is missing".into()),
        };
        match objection.filter(|_| group.is_whole) {
            Some(detail) => Err(altered(log, format!("of record {}: {detail}", group.last))),
            None => Ok(()),
        }
    }

    /// Compares the number of index entries with the number required up to a record, the last that has passed.
    ///
    /// # Errors
    /// [`LogError::Index`] if there are more; otherwise as reading them fails.
    pub(super) fn conclude(&mut self, log: &Log, last: Sequence, end: Timestamp) -> Result<(), LogError> {
        self.close(log, end)?;
        let mut found = Found::default();
        log.read_indexes(|entry| self.count(log, entry, last, &mut found))?;
        // Records may have been written meanwhile, but no entry precedes its record.
        let head = log.head()?.sequence;
        if found.greatest > head {
            return Err(altered(log, format!("an index names record {}, but the log ends at {head}", found.greatest)));
        }
        if found.of_jobs != self.of_jobs {
            let (found, there) = (found.of_jobs, self.of_jobs);
            return Err(altered(log, format!("the index by job has {found} records of jobs, and there are {there}")));
        }
        // Old answers may have been forgotten meanwhile.
        if found.makers > self.makers {
            let more = found.makers - self.makers;
            return Err(altered(log, format!("{more} answers name jobs or steps that no command created")));
        }
        Ok(())
    }

    fn count(&self, log: &Log, entry: IndexEntry, last: Sequence, found: &mut Found) -> Result<(), LogError> {
        let is_new = |sequence: Sequence| sequence > self.after && sequence <= last;
        match entry {
            IndexEntry::Job(sequence) => {
                found.of_jobs += u64::from(is_new(sequence));
                found.greatest = found.greatest.max(sequence);
            }
            IndexEntry::Answer(_, remembered) => {
                let Remembered { answer, .. } = *remembered;
                found.makers += u64::from(is_new(answer.sequence) && makes(&answer));
                found.greatest = found.greatest.max(answer.sequence);
            }
            IndexEntry::Checkpoint { of, at } => {
                found.greatest = found.greatest.max(at);
                let signs =
                    |record: Record| matches!(record.event, Event::Checkpoint { of: signed, .. } if signed == of);
                if is_new(at) && at >= log.first()? && !log.record(at)?.is_some_and(signs) {
                    return Err(altered(
                        log,
                        format!("the index of checkpoints says that record {at} signs record {of}"),
                    ));
                }
            }
            IndexEntry::Other => {}
        }
        Ok(())
    }
}

/// The content of the indexes.
#[derive(Default)]
struct Found {
    of_jobs: u64,
    makers: u64,
    /// The last record that an entry names.
    greatest: Sequence,
}

impl Group {
    fn new(key: CommandKey, is_whole: bool) -> Self {
        let (time, last) = (Timestamp::default(), Sequence(0));
        Self { key, is_whole, time, last, jobs: Vec::new(), step: None, refused: None }
    }

    fn add(&mut self, record: &Record) {
        let is_first = self.last == Sequence(0);
        (self.time, self.last) = (record.time, record.sequence);
        self.refused = None;
        match &record.event {
            Event::JobSubmitted { job, .. } => self.jobs.push(*job),
            Event::StepLaunched { run, step, .. } => self.step = Some((*run, *step)),
            Event::CommandRefused { code, .. } if is_first => self.refused = Some(*code),
            _ => {}
        }
    }

    /// The fault of the answer, as far as the records tell.
    fn objection(&self, answer: &Answer) -> Option<String> {
        if answer.sequence != self.last {
            return Some(format!("the answer to its command says that it led to record {}", answer.sequence));
        }
        let is_right = match (&answer.result, self.refused) {
            (Err(refusal), Some(code)) => refusal.code == code,
            (Err(_), None) => false,
            // A refusal that the user's program decided is noted like this, and the note itself succeeds.
            (Ok(reply), Some(code)) => *reply == Reply::Done && code == RefusalCode::Invalid,
            (Ok(Reply::Submitted(jobs)), None) => *jobs == self.jobs,
            (Ok(Reply::Step { run, step }), None) => self.step == Some((*run, *step)),
            (Ok(_), None) => self.jobs.is_empty(),
        };
        (!is_right).then(|| "the answer to its command is not what the records say".into())
    }
}

/// Whether an answer names things that only records create.
fn makes(answer: &Answer) -> bool {
    matches!(answer.result, Ok(Reply::Submitted(_) | Reply::Step { .. }))
}

/// Whether an answer of one time may be forgotten at another.
fn is_forgotten(time: Timestamp, now: Timestamp) -> bool {
    let least = i64::try_from(retention::Commands::LEAST_SECONDS).unwrap_or(i64::MAX);
    now >= time.plus_seconds(least)
}

fn altered(log: &Log, detail: String) -> LogError {
    LogError::Index { folder: log.folder().to_owned(), detail }
}
