//! The log in RocksDB: records, their indexes, and the answers that retries get.
//!
//! ```text
//! column family   key                                         value
//! records         sequence                                    hash of the record before (32 bytes), codec payload of the record
//! by_job          job number, array index + 1 or 0, sequence  nothing, or 1 if the record holds the whole job
//! commands        command id, hash of who asked (16 bytes each)   time of the answer, codec payload of the answer
//! checkpoints     sequence of the record signed               sequence of the checkpoint record
//! notices         sequence, number                            codec payload of a notification that is not done yet
//! meta            name                                        see the constants below
//! ```
//!
//! Numbers are big endian, so that their order is the order of the keys. The hash of a record is BLAKE3 over its
//! whole value; the first record follows 32 zero bytes.

mod batch;
mod blocks;
pub(crate) mod body;
mod database;
mod error;
mod indexes;
mod layout;
mod open;
mod place;
mod stored;

pub(crate) use batch::Sealed;
pub use batch::{Added, Batch, CommandKey, Fingerprint, Remembered};
pub use database::Log;
pub use error::LogError;
pub use indexes::{IndexEntry, Mark};
pub(crate) use layout::describes;
pub use layout::{FORMAT_VERSION, Hash, NO_HASH};
pub use place::Place;
pub use stored::{Head, Identity, Stored, check_link};

use crate::retention;
use layout::{
    BY_JOB, CHECKPOINTS, COMMANDS, DESCRIBES, FAMILIES, META, META_FORMAT, META_IDENTITY, META_PLACE, META_PUBLISHED,
    NOTICES, RECORDS, job_key, notice_key, number,
};
use muster_schemas::{
    event::{Commit, Record, uuid_bytes::UuidBytes},
    ids::{JobId, Sequence},
    time::Timestamp,
};
use open::{check_folder, check_room, database_options, explain_open, families, open_error};
use rocksdb::{
    ColumnFamily, DB, Direction, IteratorMode, Options, ReadOptions, WriteBatch, WriteOptions, checkpoint::Checkpoint,
};
use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

const MIB: usize = 1 << 20;
/// How long a ledger that ends may still have the log.
const FREE_WITHIN: Duration = Duration::from_secs(3);
const TRIED_EVERY: Duration = Duration::from_millis(50);

/// Opens the database; while another ledger has it, again and again for [`FREE_WITHIN`].
fn open_once_free(options: &Options, folder: &Path, retention: retention::Commands) -> Result<DB, LogError> {
    let deadline = Instant::now() + FREE_WITHIN;
    loop {
        let opened = DB::open_cf_descriptors(options, folder, families(Some(retention)));
        match opened.map_err(|error| explain_open(folder, error)) {
            Err(LogError::InUse(_)) if Instant::now() < deadline => std::thread::sleep(TRIED_EVERY),
            opened => return opened,
        }
    }
}

impl Log {
    fn of(db: DB, folder: &Path) -> Self {
        Self { db, folder: folder.to_owned(), first: AtomicU64::new(0), identity: OnceLock::new() }
    }

    /// Opens the log in a folder for writing, or makes an empty one. Answers are kept for at least `retention`. A ledger that
    /// is about to end may still have it: it is waited for a little.
    ///
    /// # Errors
    /// In use, damaged, written by a newer program, or not accessible; the error says which.
    pub fn open(folder: &Path, retention: retention::Commands) -> Result<Self, LogError> {
        let fresh = check_folder(folder)?;
        check_room(folder)?;
        if fresh {
            std::fs::create_dir_all(folder).map_err(|error| open_error(folder, error))?;
        }
        let mut options = database_options();
        options.create_if_missing(fresh);
        // This also completes a folder whose creation was interrupted.
        options.create_missing_column_families(true);
        let log = Self::of(open_once_free(&options, folder, retention)?, folder);
        if log.meta(META_FORMAT)?.is_none() && log.head()? == Head::EMPTY {
            log.put_meta(META_FORMAT, &FORMAT_VERSION.to_be_bytes())?;
        }
        log.check_format()?;
        Ok(log)
    }

    /// Opens the log in a folder for reading, as it is at this moment; a ledger may be writing it.
    ///
    /// # Errors
    /// As [`Log::open`], and [`LogError::Missing`].
    pub fn open_read_only(folder: &Path) -> Result<Self, LogError> {
        /// A running ledger may remove a file that was in the list of files a moment ago.
        const ATTEMPTS: u32 = 5;
        if check_folder(folder)? {
            return Err(LogError::Missing(folder.to_owned()));
        }
        check_room(folder)?;
        let mut options = database_options();
        // All at once: a file that a running ledger no longer needs stays readable as long as it is open.
        options.set_max_open_files(-1);
        let open = || DB::open_cf_descriptors_read_only(&options, folder, families(None), false);
        let mut opened = open();
        for _ in 1..ATTEMPTS {
            if opened.is_err() {
                opened = open();
            }
        }
        let db = opened.map_err(|error| explain_open(folder, error))?;
        let log = Self::of(db, folder);
        log.check_format()?;
        Ok(log)
    }

    /// Makes a copy of the log as it is at this moment: a folder, which must not exist, with hard links to its files where
    /// the file system allows that. The log can be written meanwhile.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn checkpoint(&self, folder: &Path) -> Result<(), LogError> {
        let made = Checkpoint::new(&self.db).and_then(|checkpoint| checkpoint.create_checkpoint(folder));
        made.map_err(|error| self.storage("copied", error))
    }

    /// The folder that it is in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A batch after the given head, which must be the log's.
    pub fn batch(&self, head: Head) -> Batch<'_> {
        Batch::new(self, head)
    }

    /// The last record.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn head(&self) -> Result<Head, LogError> {
        let mut entries = self.db.raw_iterator_cf(self.family(RECORDS));
        entries.seek_to_last();
        let Some((key, value)) = entries.item() else {
            entries.status().map_err(|error| self.storage("read", error))?;
            return Ok(Head::EMPTY);
        };
        let stored = Stored { sequence: self.sequence_of(key)?, value };
        Ok(Head { sequence: stored.sequence, hash: stored.hash(), time: stored.record()?.time })
    }

    /// The sequence in a record's key.
    fn sequence_of(&self, key: &[u8]) -> Result<Sequence, LogError> {
        let sequence = <[u8; 8]>::try_from(key).ok().map(u64::from_be_bytes).filter(|number| *number > 0);
        sequence.map(Sequence).ok_or_else(|| self.damaged("a record has a key that is not a sequence"))
    }

    /// The identity of the log; `None` if it has no first record yet.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn identity(&self) -> Result<Option<Identity>, LogError> {
        if let Some(identity) = self.identity.get() {
            return Ok(Some(*identity));
        }
        let Some(value) = self.meta(META_IDENTITY)? else { return Ok(None) };
        let identity = value.split_first_chunk::<16>().and_then(|(cluster_id, key)| {
            Some(Identity { cluster_id: UuidBytes(*cluster_id), public_key: key.try_into().ok()? })
        });
        let identity = identity.ok_or_else(|| self.damaged("the cluster's id and key have a wrong length"))?;
        Ok(Some(*self.identity.get_or_init(|| identity)))
    }

    /// The first record that is still here; in an empty log, the first that it will have.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn first(&self) -> Result<Sequence, LogError> {
        let known = self.first.load(Ordering::Relaxed);
        if known > 0 {
            return Ok(Sequence(known));
        }
        let found = self.entries(Sequence(0)).next()?.map_or(1, |stored| stored.sequence.0);
        // Records may have been removed since it was read.
        Ok(Sequence(found.max(self.first.fetch_max(found, Ordering::Relaxed))))
    }

    /// The hash of a record, [`NO_HASH`] for the one before the first.
    ///
    /// # Errors
    /// If it cannot be read, or is not there.
    pub fn hash_of(&self, sequence: Sequence) -> Result<Hash, LogError> {
        if sequence.0 == 0 {
            return Ok(NO_HASH);
        }
        if let Some(value) = self.value(sequence)? {
            return Ok(Stored { sequence, value: &value }.hash());
        }
        // The record itself may have been archived; the next one carries its hash.
        match self.value(sequence.next())? {
            Some(value) => Stored { sequence: sequence.next(), value: &value }.previous_hash(),
            None => Err(LogError::DamagedRecord { sequence, detail: "it is missing".into() }),
        }
    }

    /// One record, if it is there.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn record(&self, sequence: Sequence) -> Result<Option<Record>, LogError> {
        let value = self.value(sequence)?;
        value.map(|value| Stored { sequence, value: &value }.record()).transpose()
    }

    fn value(&self, sequence: Sequence) -> Result<Option<rocksdb::DBPinnableSlice<'_>>, LogError> {
        let found = self.db.get_pinned_cf(self.family(RECORDS), sequence.0.to_be_bytes());
        found.map_err(|error| self.storage("read", error))
    }

    /// The records from a sequence on, in order.
    pub fn entries(&self, from: Sequence) -> Entries<'_> {
        let mut options = ReadOptions::default();
        options.set_readahead_size(MIB);
        options.fill_cache(false);
        let mut inner = self.db.raw_iterator_cf_opt(self.family(RECORDS), options);
        inner.seek(from.0.to_be_bytes());
        Entries { log: self, inner, started: false }
    }

    /// Records from a sequence on: at least one if there is any, then as many as fit into `max_bytes`.
    ///
    /// # Errors
    /// If one of them cannot be read or is damaged.
    pub fn page(&self, from: Sequence, max_bytes: usize) -> Result<Commit, LogError> {
        let mut records: Vec<Record> = Vec::new();
        let mut bytes = 0;
        let mut entries = self.entries(from);
        while let Some(stored) = entries.next()? {
            bytes += stored.value.len();
            if bytes > max_bytes && !records.is_empty() {
                break;
            }
            records.push(stored.record()?);
        }
        Ok(Commit { records })
    }

    /// The last record at or before a point in time, 0 if there is none.
    ///
    /// # Errors
    /// If a record on the way cannot be read.
    pub fn sequence_at(&self, time: Timestamp) -> Result<Sequence, LogError> {
        let (mut before, mut behind) = (self.first()?.0 - 1, self.head()?.sequence.0 + 1);
        while behind - before > 1 {
            let middle = Sequence(before + (behind - before) / 2);
            let record = self.record(middle)?.ok_or(LogError::DamagedRecord {
                sequence: middle,
                detail: "it is missing, although there are records before and after it".into(),
            })?;
            if record.time <= time { before = middle.0 } else { behind = middle.0 }
        }
        Ok(Sequence(before))
    }

    /// The remembered answer to a command.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn answer(&self, command: &CommandKey) -> Result<Option<Remembered>, LogError> {
        Ok(self.answer_with_time(command)?.map(|(_, remembered)| remembered))
    }

    /// The remembered answer to a command, and when it was given.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn answer_with_time(&self, command: &CommandKey) -> Result<Option<(Timestamp, Remembered)>, LogError> {
        let found = self.db.get_pinned_cf(self.family(COMMANDS), command.0);
        let Some(value) = found.map_err(|error| self.storage("read", error))? else { return Ok(None) };
        self.stored_answer(&value).map(Some)
    }

    fn stored_answer(&self, value: &[u8]) -> Result<(Timestamp, Remembered), LogError> {
        let time = Timestamp(value.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes)));
        let remembered = Remembered::decode(value.get(8..).unwrap_or_default());
        let remembered = remembered.map_err(|error| self.damaged(format!("the answer to a command: {error}")))?;
        Ok((time, remembered))
    }

    /// The record that a job or array was submitted with.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn submission(&self, job: JobId) -> Result<Option<Record>, LogError> {
        match self.indexed(job.whole(), Sequence(0)).next() {
            Some(sequence) => self.record(sequence?),
            None => Ok(None),
        }
    }

    /// The greatest number of a job or array up to a number.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn job_number_up_to(&self, greatest: u64) -> Result<Option<u64>, LogError> {
        let mut last = [0xff; 24];
        last[..8].copy_from_slice(&greatest.to_be_bytes());
        let mut entries = self.db.iterator_cf(self.family(BY_JOB), IteratorMode::From(&last, Direction::Reverse));
        entries
            .next()
            .transpose()
            .map(|entry| entry.map(|(key, _)| number(&key)))
            .map_err(|error| self.storage("read", error))
    }

    /// Sequences of the records that hold a complete job or array, newest first; none if an older program wrote the
    /// job's records.
    pub fn descriptions(&self, job: JobId) -> impl Iterator<Item = Result<Sequence, LogError>> + '_ {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(job_key(job.whole(), Sequence(0)));
        let last = job_key(job.whole(), Sequence(u64::MAX));
        self.db
            .iterator_cf_opt(self.family(BY_JOB), options, IteratorMode::From(&last, Direction::Reverse))
            .filter(|entry| entry.as_ref().map_or(true, |(_, mark)| **mark == *DESCRIBES))
            .map(|entry| entry.map_err(|error| self.storage("read", error)).and_then(|(key, _)| self.sequence_in(&key)))
    }

    /// Records of a job from a sequence on, oldest first, as [`Log::page`]. For an array they include those of its
    /// tasks, for a task those of the whole array.
    ///
    /// # Errors
    /// If one of them cannot be read or is damaged.
    pub fn history(&self, job: JobId, from: Sequence, max_bytes: usize) -> Result<Commit, LogError> {
        // The minimum size of a record; more of them than fit need not be looked up.
        const SMALLEST_RECORD_BYTES: usize = 64;
        let wanted = max_bytes / SMALLEST_RECORD_BYTES + 1;
        let mut sequences = BTreeSet::new();
        let mut collect = |sequence: Sequence| {
            sequences.insert(sequence);
            if sequences.len() > wanted {
                sequences.pop_last();
            }
        };
        for sequence in self.indexed(job.whole(), from) {
            collect(sequence?);
        }
        if job.index.is_some() {
            for sequence in self.indexed(job, from) {
                collect(sequence?);
            }
        } else {
            for sequence in self.indexed_tasks(job) {
                let sequence = sequence?;
                if sequence >= from {
                    collect(sequence);
                }
            }
        }
        self.read_all(&sequences, max_bytes)
    }

    fn read_all(&self, sequences: &BTreeSet<Sequence>, max_bytes: usize) -> Result<Commit, LogError> {
        let mut records = Vec::new();
        let mut bytes = 0;
        for &sequence in sequences {
            // Archived records leave their index entries behind.
            let Some(value) = self.value(sequence)? else { continue };
            bytes += value.len();
            if bytes > max_bytes && !records.is_empty() {
                break;
            }
            records.push(Stored { sequence, value: &value }.record()?);
        }
        Ok(Commit { records })
    }

    /// Sequences of the records of exactly this job, array as a whole, or task.
    fn indexed(&self, job: JobId, from: Sequence) -> impl Iterator<Item = Result<Sequence, LogError>> + '_ {
        self.keys(BY_JOB, job_key(job, from).to_vec(), job_key(job, Sequence(u64::MAX)).to_vec())
            .map(|key| self.sequence_in(&key?))
    }

    /// Sequences of the records of exactly this job, array as a whole, or task, before another record, newest first.
    pub fn indexed_before(
        &self,
        job: JobId,
        before: Sequence,
    ) -> impl Iterator<Item = Result<Sequence, LogError>> + '_ {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(job_key(job, Sequence(0)));
        let last = job_key(job, Sequence(before.0.saturating_sub(1)));
        self.db
            .iterator_cf_opt(self.family(BY_JOB), options, IteratorMode::From(&last, Direction::Reverse))
            .map(|entry| entry.map_err(|error| self.storage("read", error)).and_then(|(key, _)| self.sequence_in(&key)))
    }

    /// Sequences of the records of all tasks of an array, in no order.
    fn indexed_tasks(&self, array: JobId) -> impl Iterator<Item = Result<Sequence, LogError>> + '_ {
        let first = job_key(JobId::task(array.number, 0), Sequence(0)).to_vec();
        let last = job_key(JobId::task(array.number, u32::MAX), Sequence(u64::MAX)).to_vec();
        self.keys(BY_JOB, first, last).map(|key| self.sequence_in(&key?))
    }

    /// The record that a key of the index by job names.
    fn sequence_in(&self, key: &[u8]) -> Result<Sequence, LogError> {
        let sequence = key.get(16..).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        let sequence = sequence.ok_or_else(|| self.damaged("the index by job has a key of a wrong length"))?;
        Ok(Sequence(u64::from_be_bytes(sequence)))
    }

    /// The keys of a family from `first` up to `last`, all of the same length.
    fn keys(
        &self,
        family: &str,
        first: Vec<u8>,
        last: Vec<u8>,
    ) -> impl Iterator<Item = Result<Box<[u8]>, LogError>> + '_ {
        let mut options = ReadOptions::default();
        let mut end = last;
        end.push(0);
        options.set_iterate_upper_bound(end);
        self.db
            .iterator_cf_opt(self.family(family), options, IteratorMode::From(&first, Direction::Forward))
            .map(|entry| entry.map(|(key, _)| key).map_err(|error| self.storage("read", error)))
    }

    /// Each record from a sequence on that a checkpoint signed, with its checkpoint.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn checkpoints(&self, from: Sequence) -> Result<Vec<(Sequence, Sequence)>, LogError> {
        self.db
            .iterator_cf(self.family(CHECKPOINTS), IteratorMode::From(&from.0.to_be_bytes(), Direction::Forward))
            .map(|entry| entry.map_err(|error| self.storage("read", error)))
            .map(|entry| entry.map(|(of, at)| (Sequence(number(&of)), Sequence(number(&at)))))
            .collect()
    }

    /// The last record that a checkpoint signed; 0 if there is none. Index entries for records that do not exist do not
    /// count.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn last_signed(&self) -> Result<Sequence, LogError> {
        let head = self.head()?.sequence.0.to_be_bytes();
        match self.db.iterator_cf(self.family(CHECKPOINTS), IteratorMode::From(&head, Direction::Reverse)).next() {
            Some(Ok((of, _))) => Ok(Sequence(number(&of))),
            Some(Err(error)) => Err(self.storage("read", error)),
            None => Ok(Sequence(0)),
        }
    }

    /// At most `count` payloads of pending notifications after the given one, oldest records first.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn notices(&self, behind: (Sequence, u32), count: usize) -> Result<Vec<Notice>, LogError> {
        let first = notice_key(behind.0, behind.1);
        self.db
            .iterator_cf(self.family(NOTICES), IteratorMode::From(&first, Direction::Forward))
            .map(|entry| entry.map_err(|error| self.storage("read", error)))
            .filter(|entry| entry.as_ref().map_or(true, |(key, _)| **key != first))
            .take(count)
            .map(|entry| {
                let (key, payload) = entry?;
                let tail = key.get(8..).and_then(|tail| tail.first_chunk()).copied().unwrap_or_default();
                Ok(Notice { of: Sequence(number(&key)), number: u32::from_be_bytes(tail), payload: payload.into_vec() })
            })
            .collect()
    }

    /// The place in the stream of rounds that the end of the log has; `None` if there never were several ledgers.
    ///
    /// # Errors
    /// If it cannot be read or is damaged.
    pub fn place(&self) -> Result<Option<Place>, LogError> {
        let Some(value) = self.meta(META_PLACE)? else { return Ok(None) };
        Place::of_bytes(&value).map(Some).ok_or_else(|| self.damaged("the place in the stream has a wrong length"))
    }

    /// Records from a sequence on as other ledgers take them, with the answers that retries of their commands get: at
    /// least one record if there is any, then as many as fit into `max_bytes`.
    ///
    /// # Errors
    /// If one of them cannot be read or is damaged.
    pub(crate) fn page_for_others(&self, from: Sequence, max_bytes: usize) -> Result<Vec<u8>, LogError> {
        let mut body = body::BodyWriter::default();
        let mut answered = BTreeSet::new();
        let mut entries = self.entries(from);
        while let Some(stored) = entries.next()? {
            if body.len() > 0 && body.len() + stored.value.len() > max_bytes {
                break;
            }
            let record = stored.record()?;
            body.record(stored.payload());
            let key = CommandKey::new(&record.actor, record.command);
            if answered.insert(key.0)
                && let Some(value) =
                    self.db.get_cf(self.family(COMMANDS), key.0).map_err(|error| self.storage("read", error))?
            {
                body.answer(&key.0, &value);
            }
        }
        Ok(body.finish())
    }

    /// The last record whose public event the bus is known to have.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn published(&self) -> Result<Sequence, LogError> {
        Ok(Sequence(self.meta(META_PUBLISHED)?.map_or(0, |value| number(&value))))
    }

    /// Notes up to which record the bus has the public events. This is not synced: after a crash of the machine some
    /// are published twice.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn set_published(&self, sequence: Sequence) -> Result<(), LogError> {
        self.put_meta(META_PUBLISHED, &sequence.0.to_be_bytes())
    }

    /// Removes everything that a failed batch may have left.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn take_back(&self, added: &Added) -> Result<(), LogError> {
        let mut batch = WriteBatch::default();
        let behind = added.after.next().0.to_be_bytes();
        for key in self.keys(RECORDS, behind.to_vec(), u64::MAX.to_be_bytes().to_vec()) {
            batch.delete_cf(self.family(RECORDS), key?);
        }
        let last_notice = notice_key(Sequence(u64::MAX), u32::MAX).to_vec();
        for key in self.keys(NOTICES, notice_key(added.after.next(), 0).to_vec(), last_notice) {
            batch.delete_cf(self.family(NOTICES), key?);
        }
        for (of, at) in self.checkpoints(Sequence(0))? {
            if at > added.after {
                batch.delete_cf(self.family(CHECKPOINTS), of.0.to_be_bytes());
            }
        }
        for &(job, sequence) in &added.jobs {
            batch.delete_cf(self.family(BY_JOB), job_key(job, sequence));
        }
        for command in &added.commands {
            batch.delete_cf(self.family(COMMANDS), command.0);
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.db.write_opt(batch, &options).map_err(|error| self.storage("written", error))
    }

    /// Removes the records up to one that an archive now holds.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn remove_archived(&self, last: Sequence) -> Result<(), LogError> {
        let (from, to) = (0_u64.to_be_bytes(), last.next().0.to_be_bytes());
        let records = self.family(RECORDS);
        self.db.delete_range_cf(records, from, to).map_err(|error| self.storage("written", error))?;
        self.first.fetch_max(last.next().0, Ordering::Relaxed);
        self.db.compact_range_cf(records, Some(from), Some(to));
        Ok(())
    }

    fn meta(&self, name: &[u8]) -> Result<Option<Vec<u8>>, LogError> {
        self.db.get_cf(self.family(META), name).map_err(|error| self.storage("read", error))
    }

    fn put_meta(&self, name: &[u8], value: &[u8]) -> Result<(), LogError> {
        self.db.put_cf(self.family(META), name, value).map_err(|error| self.storage("written", error))
    }

    fn check_format(&self) -> Result<(), LogError> {
        let value = self.meta(META_FORMAT)?;
        let found = value.as_deref().and_then(|value| value.first_chunk()).map(|bytes| u32::from_be_bytes(*bytes));
        match found {
            Some(FORMAT_VERSION) => Ok(()),
            Some(other) => Err(LogError::Newer { folder: self.folder.clone(), found: other.to_string() }),
            None => Err(self.damaged("its layout's version is missing")),
        }
    }

    fn family(&self, name: &str) -> &ColumnFamily {
        self.db.cf_handle(name).expect("every family was opened with the database")
    }

    fn storage(&self, action: &'static str, error: rocksdb::Error) -> LogError {
        match error.kind() {
            rocksdb::ErrorKind::Corruption => self.damaged(error.into_string()),
            _ => LogError::Storage { folder: self.folder.clone(), action, detail: error.into_string() },
        }
    }

    fn damaged(&self, detail: impl Into<String>) -> LogError {
        LogError::Damaged { folder: self.folder.clone(), detail: detail.into() }
    }
}

/// A pending notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The record that it is about.
    pub of: Sequence,
    /// Its number among those that follow from the record.
    pub number: u32,
    /// The stored bytes.
    pub payload: Vec<u8>,
}

/// Stored records in order; see [`Log::entries`].
pub struct Entries<'log> {
    log: &'log Log,
    inner: rocksdb::DBRawIterator<'log>,
    started: bool,
}

impl Entries<'_> {
    /// The next record, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the iterator")]
    pub fn next(&mut self) -> Result<Option<Stored<'_>>, LogError> {
        if self.started && self.inner.valid() {
            self.inner.next();
        }
        self.started = true;
        if !self.inner.valid() {
            self.inner.status().map_err(|error| self.log.storage("read", error))?;
            return Ok(None);
        }
        let Some((key, value)) = self.inner.item() else { return Ok(None) };
        Ok(Some(Stored { sequence: self.log.sequence_of(key)?, value }))
    }
}
