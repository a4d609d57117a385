//! Which record led to which, for whoever shows records: read from the log, whatever this process has seen of it.

use crate::{
    bundle::BundleError,
    log::{LogError, Stored},
    storage::Storage,
};
use muster_schemas::{
    cause::{Causes, RecordsByJob},
    event::Record,
    ids::{JobId, Sequence},
};
use std::{cell::RefCell, collections::VecDeque};

/// Bytes of archived records that are kept: what led to a record mostly lies shortly before it.
const WINDOW_BYTES: usize = 32 << 20;

/// Says of records what led to them; best of each and then of the next one.
#[derive(Default)]
pub(crate) struct CausesInLog {
    causes: Causes,
    next: Option<Sequence>,
    window: RefCell<Window>,
}

impl CausesInLog {
    /// What led to a record of the log.
    ///
    /// # Errors
    /// If the log or an archive cannot be read.
    pub(crate) fn of(&mut self, record: &Record, storage: &Storage) -> Result<Option<Sequence>, BundleError> {
        let reading = Reading { storage, window: &self.window };
        if self.next != Some(record.sequence) {
            self.causes = Causes::default();
            reading.each(reading.begin_of_command(record)?, record.sequence, |before| {
                self.causes.of(before, &reading).map(drop)
            })?;
        }
        self.next = None;
        let cause = self.causes.of(record, &reading)?;
        self.next = Some(record.sequence.next());
        Ok(cause)
    }
}

/// What led to each of some records.
///
/// # Errors
/// If one of them is not there, or the log or an archive cannot be read.
pub(crate) fn of_all(sequences: &[Sequence], storage: &Storage) -> Result<Vec<Option<Sequence>>, BundleError> {
    let mut causes = CausesInLog::default();
    let of = |sequence: &Sequence| {
        let record = Reading { storage, window: &causes.window }.record(*sequence)?;
        causes.of(&record, storage)
    };
    sequences.iter().map(of).collect()
}

/// Some archived records that follow on each other: an archive can only be read from its beginning on.
#[derive(Default)]
struct Window {
    records: VecDeque<(Sequence, Box<[u8]>)>,
    bytes: usize,
}

impl Window {
    fn get(&self, sequence: Sequence) -> Option<Stored<'_>> {
        let first = self.records.front()?.0;
        let (_, value) = self.records.get(usize::try_from(sequence.0.checked_sub(first.0)?).ok()?)?;
        Some(Stored { sequence, value })
    }

    /// Takes in the next record of an archive, and lets go of the oldest ones where there are too many.
    fn push(&mut self, stored: &Stored<'_>) {
        self.bytes += stored.value.len();
        self.records.push_back((stored.sequence, stored.value.into()));
        while self.bytes > WINDOW_BYTES && self.records.len() > 1 {
            let oldest = self.records.pop_front();
            self.bytes -= oldest.map_or(0, |(_, value)| value.len());
        }
    }

    /// Takes in an archive up to a record, and what follows on it as long as there is room.
    fn load(&mut self, sequence: Sequence, storage: &Storage) -> Result<(), BundleError> {
        *self = Self::default();
        let missing = || LogError::Archived { sequence, folder: storage.archives().folder().to_owned() };
        let archive = storage.archives().holding(sequence).ok_or_else(missing)?;
        let mut is_full = false;
        let read = archive.read(|stored| {
            is_full = stored.sequence > sequence && self.bytes + stored.value.len() > WINDOW_BYTES;
            if is_full {
                return Err(LogError::Closed.into());
            }
            self.push(stored);
            Ok(())
        });
        match read {
            Err(_) if is_full => Ok(()),
            read => read.map(drop),
        }
    }
}

/// The log, and the archived records that were read last.
struct Reading<'a> {
    storage: &'a Storage,
    window: &'a RefCell<Window>,
}

impl Reading<'_> {
    /// A record of the log, or of an archive if it has left the log.
    fn record(&self, sequence: Sequence) -> Result<Record, BundleError> {
        if let Some(record) = self.storage.log()?.record(sequence)? {
            return Ok(record);
        }
        let mut window = self.window.borrow_mut();
        if window.get(sequence).is_none() {
            window.load(sequence, self.storage)?;
        }
        let missing = || LogError::DamagedRecord { sequence, detail: "it is missing".into() };
        Ok(window.get(sequence).ok_or_else(missing)?.record()?)
    }

    /// Shows the records from one up to another, without that one.
    fn each(
        &self,
        from: Sequence,
        to: Sequence,
        mut visit: impl FnMut(&Record) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        (from.0..to.0).try_for_each(|sequence| visit(&self.record(Sequence(sequence))?))
    }

    /// The first record of the command that a record is of: the records of a command follow on each other.
    fn begin_of_command(&self, record: &Record) -> Result<Sequence, BundleError> {
        let mut begin = record.sequence;
        while begin.0 > 1 && self.record(Sequence(begin.0 - 1))?.command == record.command {
            begin = Sequence(begin.0 - 1);
        }
        Ok(begin)
    }
}

impl RecordsByJob for Reading<'_> {
    type Error = BundleError;

    fn last_before(&self, job: JobId, before: Sequence) -> Result<Option<Sequence>, BundleError> {
        for sequence in self.storage.log()?.indexed_before(job, before) {
            let sequence = sequence?;
            // The index also has records that name only a run of the job.
            if self.record(sequence)?.event.job() == Some(job) {
                return Ok(Some(sequence));
            }
        }
        Ok(None)
    }
}
