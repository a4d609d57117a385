//! The content of one group commit.

use super::{
    BY_JOB, CHECKPOINTS, COMMANDS, DESCRIBES, Head, Log, LogError, META, META_IDENTITY, NOTICES, RECORDS, Stored,
    body::BodyWriter,
    job_key,
    layout::{META_PLACE, describes},
    notice_key,
    place::Place,
};
use muster_schemas::{
    codec::{self, CodecError},
    command::{Answer, Command},
    event::{Actor, Event, Record},
    ids::{CommandId, JobId, Sequence},
    time::Timestamp,
};
use rocksdb::{WriteBatch, WriteOptions};

/// Recognises a retry of a command by its id and actor. Nobody can use another's id, or read the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandKey(pub(super) [u8; 32]);

impl CommandKey {
    /// The key of a command of an actor.
    pub fn new(actor: &Actor, id: CommandId) -> Self {
        let mut hasher = blake3::Hasher::new();
        match actor {
            Actor::User(owner) => hasher.update(b"user").update(&owner.uid.to_be_bytes()).update(owner.user.as_bytes()),
            Actor::Planner => hasher.update(b"planner"),
            Actor::Executor(node) => hasher.update(b"executor").update(node.as_bytes()),
            Actor::Notifier => hasher.update(b"notifier"),
            Actor::Ledger => hasher.update(b"ledger"),
            Actor::Runner(name) => hasher.update(b"runner").update(name.as_bytes()),
        };
        let mut key = [0; 32];
        key[..16].copy_from_slice(id.0.as_bytes());
        key[16..].copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(key)
    }
}

/// Bytes of a [`Fingerprint`].
const FINGERPRINT_BYTES: usize = 16;

/// A short hash of a user's command. A different command under the same id is no retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint([u8; FINGERPRINT_BYTES]);

impl Fingerprint {
    /// The fingerprint of a command. Services make their ids from the content, some of which may change between
    /// retries: their commands all have the same fingerprint.
    pub fn of(actor: &Actor, command: &Command) -> Self {
        let mut fingerprint = Self::default();
        if matches!(actor, Actor::User(_)) {
            fingerprint.0.copy_from_slice(&codec::digest(command)[..FINGERPRINT_BYTES]);
        }
        fingerprint
    }
}

/// The answer that a command was given.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// The fingerprint of the command.
    pub fingerprint: Fingerprint,
    /// The answer that retries of it get.
    pub answer: Answer,
}

impl Remembered {
    /// Decodes the stored form, without the time in front of it.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let cut_short = CodecError::CutShort { have: bytes.len(), want: FINGERPRINT_BYTES };
        let (fingerprint, payload) = bytes.split_first_chunk().ok_or(cut_short)?;
        Ok(Self { fingerprint: Fingerprint(*fingerprint), answer: codec::decode(payload)? })
    }
}

/// A group commit in preparation.
pub struct Batch<'log> {
    log: &'log Log,
    writes: WriteBatch,
    head: Head,
    value: Vec<u8>,
    added: Added,
    /// What other ledgers need of it, if there are others.
    body: Option<BodyWriter>,
}

/// A group commit that is complete, and not on disk. It holds nothing of the log, which can be reopened meanwhile.
pub(crate) struct Sealed {
    writes: WriteBatch,
    head: Head,
    added: Added,
}

impl Sealed {
    /// The last record, including those of this commit.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Notes the place in the stream that this commit has, and when the stream was created.
    pub(crate) fn stand_at(&mut self, log: &Log, place: Place) {
        self.writes.put_cf(log.family(META), META_PLACE, place.to_bytes());
    }
}

impl Log {
    /// Writes a commit and syncs it, all or nothing.
    ///
    /// # Errors
    /// As [`Batch::commit`].
    pub(crate) fn write(&self, sealed: Sealed) -> Result<Head, (LogError, Added)> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        let Sealed { writes, head, added } = sealed;
        self.db.write_opt(writes, &options).map(|()| head).map_err(|error| (self.storage("written", error), added))
    }
}

/// The additions of a batch, to take back if writing it fails half-way.
#[derive(Clone, Debug, Default)]
pub struct Added {
    pub(super) after: Sequence,
    pub(super) jobs: Vec<(JobId, Sequence)>,
    pub(super) commands: Vec<CommandKey>,
}

impl Added {
    /// Nothing was added after this record.
    pub fn nothing_after(after: Sequence) -> Self {
        Self { after, ..Self::default() }
    }
}

impl<'log> Batch<'log> {
    pub(super) fn new(log: &'log Log, head: Head) -> Self {
        let added = Added::nothing_after(head.sequence);
        Self { log, writes: WriteBatch::default(), head, value: Vec::with_capacity(512), added, body: None }
    }

    /// Keeps what other ledgers need of everything that is added from here on.
    pub(crate) fn for_others(mut self) -> Self {
        self.body = Some(BodyWriter::default());
        self
    }

    /// The last record, including those of this batch.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Adds the next record and returns its size in bytes. `job` is the job whose history it belongs to.
    ///
    /// # Errors
    /// [`LogError::Unencodable`] if it is too large; the batch is then unchanged.
    pub fn append(&mut self, record: &Record, job: Option<JobId>) -> Result<usize, LogError> {
        debug_assert_eq!(record.sequence, self.head.sequence.next());
        self.value.clear();
        self.value.extend_from_slice(&self.head.hash);
        codec::encode_into(record, &mut self.value).map_err(LogError::Unencodable)?;
        if let Some(body) = &mut self.body {
            body.record(&self.value[self.head.hash.len()..]);
        }
        Ok(self.put(record, job))
    }

    /// Adds the next record as another ledger has stored it, and returns it: the hash of the record before is not in
    /// `payload`.
    ///
    /// # Errors
    /// As [`Stored::record`]: the payload is damaged, or is not the next record.
    pub(crate) fn append_stored(&mut self, payload: &[u8]) -> Result<Record, LogError> {
        let sequence = self.head.sequence.next();
        self.value.clear();
        self.value.extend_from_slice(&self.head.hash);
        self.value.extend_from_slice(payload);
        let record = Stored { sequence, value: &self.value }.record()?;
        self.put(&record, record.event.job());
        Ok(record)
    }

    /// Adds a record whose value is made.
    fn put(&mut self, record: &Record, job: Option<JobId>) -> usize {
        self.writes.put_cf(self.log.family(RECORDS), record.sequence.0.to_be_bytes(), &self.value);
        if let Some(job) = job {
            let mark: &[u8] = if describes(&record.event) { DESCRIBES } else { &[] };
            self.writes.put_cf(self.log.family(BY_JOB), job_key(job, record.sequence), mark);
            self.added.jobs.push((job, record.sequence));
        }
        match record.event {
            Event::Checkpoint { of, .. } => {
                self.writes.put_cf(self.log.family(CHECKPOINTS), of.0.to_be_bytes(), record.sequence.0.to_be_bytes());
            }
            Event::ClusterInitialised { cluster_id, public_key } => {
                let identity = [&cluster_id.0[..], &public_key].concat();
                self.writes.put_cf(self.log.family(META), META_IDENTITY, identity);
            }
            _ => {}
        }
        let hash = *blake3::hash(&self.value).as_bytes();
        self.head = Head { sequence: record.sequence, hash, time: record.time };
        self.value.len()
    }

    /// Adds the answer that a retry of the command gets.
    ///
    /// # Errors
    /// [`LogError::Unencodable`] if it is too large; the batch is then unchanged.
    pub fn remember(
        &mut self,
        command: CommandKey,
        time: Timestamp,
        Remembered { fingerprint, answer }: &Remembered,
    ) -> Result<(), LogError> {
        self.value.clear();
        self.value.extend_from_slice(&time.0.to_be_bytes());
        self.value.extend_from_slice(&fingerprint.0);
        codec::encode_into(answer, &mut self.value).map_err(LogError::Unencodable)?;
        if let Some(body) = &mut self.body {
            body.answer(&command.0, &self.value);
        }
        self.writes.put_cf(self.log.family(COMMANDS), command.0, &self.value);
        self.added.commands.push(command);
        Ok(())
    }

    /// Adds an answer as another ledger has stored it.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if it is none.
    pub(crate) fn remember_stored(&mut self, command: [u8; 32], value: &[u8]) -> Result<(), LogError> {
        self.log.stored_answer(value)?;
        self.writes.put_cf(self.log.family(COMMANDS), command, value);
        self.added.commands.push(CommandKey(command));
        Ok(())
    }

    /// Adds a notification to deliver: the `number`th that follows from a record.
    pub fn add_notice(&mut self, of: Sequence, number: u32, payload: &[u8]) {
        self.writes.put_cf(self.log.family(NOTICES), notice_key(of, number), payload);
    }

    /// Removes a notification that is done.
    pub fn remove_notice(&mut self, of: Sequence, number: u32) {
        if let Some(body) = &mut self.body {
            body.done(of, number);
        }
        self.writes.delete_cf(self.log.family(NOTICES), notice_key(of, number));
    }

    /// Abandons the batch; nothing was written.
    pub fn abandon(self) -> Added {
        self.added
    }

    /// Writes everything and syncs it, all or nothing.
    ///
    /// # Errors
    /// [`LogError::Storage`] with the additions. Whether they are on disk is then unknown: reopen the log and call
    /// [`Log::take_back`] before using it again.
    pub fn commit(self) -> Result<Head, (LogError, Added)> {
        let log = self.log;
        log.write(self.seal().0)
    }

    /// The commit on its own, and what other ledgers need of it.
    pub(crate) fn seal(self) -> (Sealed, Vec<u8>) {
        let Self { writes, head, added, body, .. } = self;
        (Sealed { writes, head, added }, body.map(BodyWriter::finish).unwrap_or_default())
    }
}
