//! The content of the indexes, entry by entry, for comparison with the records.

use super::{BY_JOB, CHECKPOINTS, COMMANDS, DESCRIBES, FAMILIES, Log, LogError, RECORDS, Remembered, job_key, number};
use muster_schemas::{
    ids::{JobId, Sequence},
    time::Timestamp,
};
use rocksdb::{IteratorMode, ReadOptions};

/// An entry of the index by job for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is about the job.
    Concerns,
    /// It has all of the job.
    Describes,
}

/// One entry of an index.
#[derive(Debug)]
pub enum IndexEntry {
    /// A record is about a job.
    Job(Sequence),
    /// A command was given this answer at this time.
    Answer(Timestamp, Box<Remembered>),
    /// A record was signed by a checkpoint.
    Checkpoint {
        /// The record.
        of: Sequence,
        /// The checkpoint.
        at: Sequence,
    },
    /// A record without an index entry: it concerns work under way, or the log itself.
    Other,
}

impl Log {
    /// The entry of the index by job for a record and a job, if there is one.
    ///
    /// # Errors
    /// If it cannot be read, or has what is never written there.
    pub fn mark_of(&self, job: JobId, sequence: Sequence) -> Result<Option<Mark>, LogError> {
        let found = self.db.get_pinned_cf(self.family(BY_JOB), job_key(job, sequence));
        let Some(value) = found.map_err(|error| self.storage("read", error))? else { return Ok(None) };
        match &*value {
            [] => Ok(Some(Mark::Concerns)),
            mark if mark == DESCRIBES => Ok(Some(Mark::Describes)),
            _ => Err(self.damaged(format!("its index `{BY_JOB}` has an unknown mark for record {sequence}"))),
        }
    }

    /// Visits everything that is stored in addition to the records, so that damage is found before anybody comes across
    /// it.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if a part of it cannot be what was written, or as `visit` fails.
    pub fn read_indexes(&self, mut visit: impl FnMut(IndexEntry) -> Result<(), LogError>) -> Result<(), LogError> {
        for family in FAMILIES.into_iter().filter(|family| *family != RECORDS) {
            let mut options = ReadOptions::default();
            options.set_verify_checksums(true);
            options.fill_cache(false);
            for entry in self.db.iterator_cf_opt(self.family(family), options, IteratorMode::Start) {
                let damaged = |error: rocksdb::Error| match self.storage("read", error) {
                    LogError::Damaged { folder, detail } => {
                        LogError::Damaged { folder, detail: format!("its index `{family}`: {detail}") }
                    }
                    other => other,
                };
                let (key, value) = entry.map_err(damaged)?;
                visit(self.index_entry(family, &key, &value)?)?;
            }
        }
        Ok(())
    }

    fn index_entry(&self, family: &str, key: &[u8], value: &[u8]) -> Result<IndexEntry, LogError> {
        Ok(match family {
            BY_JOB => IndexEntry::Job(Sequence(key.get(16..).map_or(u64::MAX, number))),
            COMMANDS => {
                let (time, remembered) = self.stored_answer(value)?;
                IndexEntry::Answer(time, Box::new(remembered))
            }
            CHECKPOINTS => IndexEntry::Checkpoint { of: Sequence(number(key)), at: Sequence(number(value)) },
            _ => IndexEntry::Other,
        })
    }
}
