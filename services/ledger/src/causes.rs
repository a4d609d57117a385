//! Which record led to which, for whoever shows records: read from the log, whatever this process has seen of it.

use crate::{bundle::BundleError, log::LogError, storage::Storage};
use muster_schemas::{
    cause::{Causes, RecordsByJob},
    event::Record,
    ids::{JobId, Sequence},
};

/// So many records are looked at first to find where a command begins.
const LOOK_BACK: u64 = 4;

/// Says of records what led to them; best of each and then of the next one.
#[derive(Default)]
pub(crate) struct CausesInLog {
    causes: Causes,
    next: Option<Sequence>,
}

impl CausesInLog {
    /// What led to a record of the log.
    ///
    /// # Errors
    /// If the log or an archive cannot be read.
    pub(crate) fn of(&mut self, record: &Record, storage: &Storage) -> Result<Option<Sequence>, BundleError> {
        if self.next != Some(record.sequence) {
            self.go_to(record, storage)?;
        }
        self.next = None;
        let cause = self.causes.of(record, &InStorage(storage))?;
        self.next = Some(record.sequence.next());
        Ok(cause)
    }

    /// Takes in what comes before a record in its command.
    fn go_to(&mut self, record: &Record, storage: &Storage) -> Result<(), BundleError> {
        self.causes = Causes::default();
        let begin = begin_of_command(record, storage)?;
        if begin == record.sequence {
            return Ok(());
        }
        storage.read(begin, Sequence(record.sequence.0 - 1), |stored| {
            self.causes.of(&stored.record()?, &InStorage(storage)).map(drop)
        })
    }
}

/// What led to each of some records.
///
/// # Errors
/// If one of them is not there, or the log or an archive cannot be read.
pub(crate) fn of_all(sequences: &[Sequence], storage: &Storage) -> Result<Vec<Option<Sequence>>, BundleError> {
    let mut causes = CausesInLog::default();
    sequences.iter().map(|sequence| causes.of(&record(*sequence, storage)?, storage)).collect()
}

/// The first record of the command that a record is of: the records of a command follow on each other.
fn begin_of_command(record: &Record, storage: &Storage) -> Result<Sequence, BundleError> {
    let (mut begin, mut count) = (record.sequence.0, LOOK_BACK);
    while begin > 1 {
        let from = begin.saturating_sub(count).max(1);
        let mut first = begin;
        storage.read(Sequence(from), Sequence(begin - 1), |stored| {
            let is_same = stored.record()?.command == record.command;
            first = if is_same { first.min(stored.sequence.0) } else { begin };
            Ok(())
        })?;
        let is_found = first > from;
        begin = first;
        if is_found {
            break;
        }
        count *= 4;
    }
    Ok(Sequence(begin))
}

/// A record of the log, or of an archive if it has left the log.
fn record(sequence: Sequence, storage: &Storage) -> Result<Record, BundleError> {
    if let Some(record) = storage.log()?.record(sequence)? {
        return Ok(record);
    }
    let mut archived = None;
    storage.read(sequence, sequence, |stored| {
        archived = Some(stored.record()?);
        Ok(())
    })?;
    archived.ok_or_else(|| LogError::DamagedRecord { sequence, detail: "it is missing".into() }.into())
}

struct InStorage<'a>(&'a Storage);

impl RecordsByJob for InStorage<'_> {
    type Error = BundleError;

    fn last_before(&self, job: JobId, before: Sequence) -> Result<Option<Sequence>, BundleError> {
        for sequence in self.0.log()?.indexed_before(job, before) {
            let sequence = sequence?;
            // The index also has records that name only a run of the job.
            if record(sequence, self.0)?.event.job() == Some(job) {
                return Ok(Some(sequence));
            }
        }
        Ok(None)
    }
}
