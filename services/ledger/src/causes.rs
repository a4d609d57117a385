//! Which record led to which, for display: read from the log, whatever this process has seen of it.

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

/// Bytes of archived records that a window keeps: the cause of a record mostly lies shortly before it.
const WINDOW_BYTES: usize = 16 << 20;
/// One for the records that are asked about, and one for much earlier records of the same jobs.
const WINDOWS: usize = 2;

/// Finds the causes of records; fastest if asked in the order of the log.
#[derive(Default)]
pub(crate) struct CausesInLog {
    causes: Causes,
    next: Option<Sequence>,
    windows: RefCell<Vec<Window>>,
}

impl CausesInLog {
    /// The causes of a record of the log.
    ///
    /// # Errors
    /// If the log or an archive cannot be read.
    pub(crate) fn of(&mut self, record: &Record, storage: &Storage) -> Result<Option<Sequence>, BundleError> {
        let reading = Reading { storage, windows: &self.windows };
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

/// The causes of each of these records.
///
/// # Errors
/// If one of them is missing, or the log or an archive cannot be read.
pub(crate) fn of_all(sequences: &[Sequence], storage: &Storage) -> Result<Vec<Option<Sequence>>, BundleError> {
    let mut causes = CausesInLog::default();
    let of = |sequence: &Sequence| {
        let record = Reading { storage, windows: &causes.windows }.record(*sequence)?;
        causes.of(&record, storage)
    };
    sequences.iter().map(of).collect()
}

/// Some consecutive archived records: an archive can only be read from its start.
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

    /// Adds the next record of an archive; `false` if there is no room for it after the wanted record. Half of the room
    /// is for the records before that.
    fn take(&mut self, stored: &Stored<'_>, wanted: Sequence, most_bytes: usize) -> bool {
        let is_behind = stored.sequence > wanted;
        if is_behind && self.bytes + stored.value.len() > most_bytes {
            return false;
        }
        self.bytes += stored.value.len();
        self.records.push_back((stored.sequence, stored.value.into()));
        while !is_behind && self.bytes > most_bytes / 2 && self.records.len() > 1 {
            let oldest = self.records.pop_front();
            self.bytes -= oldest.map_or(0, |(_, value)| value.len());
        }
        true
    }

    /// A part of the archive with the wanted record in it.
    fn load(wanted: Sequence, storage: &Storage) -> Result<Self, BundleError> {
        let missing = || LogError::Archived { sequence: wanted, folder: storage.archives().folder().to_owned() };
        let archive = storage.archives().holding(wanted).ok_or_else(missing)?;
        let (mut window, mut is_full) = (Self::default(), false);
        let read = archive.read(|stored| {
            is_full = !window.take(stored, wanted, WINDOW_BYTES);
            if is_full { Err(LogError::Closed.into()) } else { Ok(()) }
        });
        match read {
            Err(_) if is_full => Ok(window),
            read => read.map(|_| window),
        }
    }
}

/// The log, and the archived records that were read last.
struct Reading<'a> {
    storage: &'a Storage,
    /// Most recently used first.
    windows: &'a RefCell<Vec<Window>>,
}

impl Reading<'_> {
    /// A record of the log, or of an archive if it has left the log.
    fn record(&self, sequence: Sequence) -> Result<Record, BundleError> {
        if let Some(record) = self.storage.log()?.record(sequence)? {
            return Ok(record);
        }
        let mut windows = self.windows.borrow_mut();
        let window = match windows.iter().position(|window| window.get(sequence).is_some()) {
            Some(at) => windows.remove(at),
            None => {
                windows.truncate(WINDOWS - 1);
                Window::load(sequence, self.storage)?
            }
        };
        windows.insert(0, window);
        let missing = || LogError::DamagedRecord { sequence, detail: "it is missing".into() };
        Ok(windows[0].get(sequence).ok_or_else(missing)?.record()?)
    }

    /// Visits the records from one up to another, excluding the latter.
    fn each(
        &self,
        from: Sequence,
        to: Sequence,
        mut visit: impl FnMut(&Record) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        (from.0..to.0).try_for_each(|sequence| visit(&self.record(Sequence(sequence))?))
    }

    /// The first record of the command that a record belongs to: the records of a command are consecutive.
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
            // The index also lists records that name only a run of the job.
            if self.record(sequence)?.event.job() == Some(job) {
                return Ok(Some(sequence));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If records are asked about one after the other, an archive is read once for many of them, however large it is.
    #[test]
    fn a_window_has_room_on_both_sides_of_what_is_wanted() {
        let (mut window, value) = (Window::default(), [7; 100]);
        let mut sequences = (1..=1000).map(Sequence);
        let mut is_taken =
            |sequence: &Sequence| window.take(&Stored { sequence: *sequence, value: &value }, Sequence(500), 1000);
        let full = sequences.find(|sequence| !is_taken(sequence));
        assert_eq!(full, Some(Sequence(506)));
        let kept: Vec<u64> = window.records.iter().map(|(sequence, _)| sequence.0).collect();
        assert_eq!(kept, (496..=505).collect::<Vec<_>>());
        assert_eq!(window.get(Sequence(500)).map(|stored| stored.value), Some(&value[..]));
        assert!(window.get(Sequence(495)).is_none() && window.get(Sequence(506)).is_none());
    }
}
