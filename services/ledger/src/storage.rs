//! A ledger's files, and the states that can be computed from them.

use crate::{
    archive::Archives,
    bundle::BundleError,
    log::{Hash, Head, Identity, Log, LogError, NO_HASH, Stored, check_link},
    retention,
    signing::Signer,
    snapshots::{Snapshot, Snapshots},
    witness::{self, End, Witness},
};
use muster_domain::State;
use muster_schemas::{event::uuid_bytes::UuidBytes, ids::Sequence};
use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long readers of the log get to finish when it has to be reopened.
const READERS_LEAVE_WITHIN: Duration = Duration::from_secs(10);

/// The name of the socket for backups in the ledger's folder.
pub(crate) const BACKUP_SOCKET: &str = "backup.sock";

/// The paths in the data folder.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
}

impl Layout {
    /// The layout of a data folder.
    pub fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.to_owned() }
    }

    /// Everything but the key.
    pub fn own(&self) -> PathBuf {
        self.folder.join("ledger")
    }

    /// The RocksDB database.
    pub fn log(&self) -> PathBuf {
        self.own().join("log")
    }

    /// A log in creation, without a first record yet. Remains of an earlier start are worthless.
    pub fn log_draft(&self) -> PathBuf {
        self.own().join("log.new")
    }

    /// Creates the ledger's folder, and locks it to begin a log; `None` if another process is beginning one.
    ///
    /// # Errors
    /// If the folder cannot be created or locked.
    pub fn lock_to_begin(&self) -> Result<Option<fs::File>, LogError> {
        let failed =
            |error: io::Error| LogError::Storage { folder: self.own(), action: "opened", detail: error.to_string() };
        make_private(&self.own()).map_err(failed)?;
        let folder = fs::File::open(self.own()).map_err(failed)?;
        match folder.try_lock() {
            Ok(()) => Ok(Some(folder)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Snapshots of the state.
    pub fn snapshots(&self) -> PathBuf {
        self.own().join("snapshots")
    }

    /// Archived ranges of the log.
    pub fn archive(&self) -> PathBuf {
        self.own().join("archive")
    }

    /// The mark of a log that was restored and not started since: the ledger then records the restore.
    pub fn restored(&self) -> PathBuf {
        self.own().join("restored")
    }

    /// The state of the log at one moment, while it is copied to a backup.
    pub fn backup_point(&self) -> PathBuf {
        self.own().join("backup")
    }

    /// The socket on which a running ledger is asked for such a moment.
    pub fn backup_socket(&self) -> PathBuf {
        self.own().join(BACKUP_SOCKET)
    }

    /// A record that the log must have: see [`Witness`].
    pub fn witness(&self) -> PathBuf {
        self.own().join("witness")
    }

    /// The key that checkpoints are signed with.
    pub fn key(&self) -> PathBuf {
        self.folder.join("ledger.key")
    }
}

/// A state, and the last record in it.
pub struct StateAfter {
    /// The state.
    pub state: State,
    /// The hash of the record; [`NO_HASH`] before the first.
    pub hash: Hash,
}

/// All files of a ledger.
pub struct Storage {
    layout: Layout,
    log: RwLock<Option<Arc<Log>>>,
    /// The folder of the log as it was opened: device and inode.
    folder: Option<(u64, u64)>,
    /// The number of the newest write-ahead log that was seen: RocksDB only makes newer ones.
    newest_wal: AtomicU64,
    /// None if it was opened for reading.
    retention: Option<retention::Commands>,
    /// The witness, read before the log was opened for reading: a running ledger can rewrite it meanwhile.
    witness: Option<Witness>,
    snapshots: Snapshots,
    archives: Archives,
}

impl Storage {
    /// Opens a data folder for writing; an empty one gets an empty log.
    ///
    /// # Errors
    /// As [`Log::open`]; [`LogError::Witness`] if the log contradicts its witness.
    pub fn open(data_dir: &Path, retention: retention::Commands) -> Result<Self, LogError> {
        let storage = Self::open_as_is(data_dir, retention)?;
        storage.witness()?;
        Ok(storage)
    }

    /// The same without a check against the witness.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_as_is(data_dir: &Path, retention: retention::Commands) -> Result<Self, LogError> {
        let layout = Layout::new(data_dir);
        make_private(&layout.own()).map_err(|error| LogError::Storage {
            folder: layout.own(),
            action: "opened",
            detail: error.to_string(),
        })?;
        let log = Log::open(&layout.log(), retention)?;
        Ok(Self::assemble(layout, log, Some(retention), None))
    }

    /// Opens a data folder for reading, even while a ledger is writing it.
    ///
    /// # Errors
    /// As [`Log::open_read_only`]; [`LogError::Witness`] if the log contradicts its witness.
    pub fn open_read_only(data_dir: &Path) -> Result<Self, LogError> {
        let layout = Layout::new(data_dir);
        loop {
            // Read before the log, which then has at least the witnessed record.
            let found = Witness::load(&layout.witness());
            let log = Log::open_read_only(&layout.log())?;
            let is_closed = matches!(found, Ok(Some(Witness { end: End::Closed, .. })));
            match witness::check(found, &log) {
                Ok(witness) => return Ok(Self::assemble(layout, log, None, witness)),
                // A ledger has started meanwhile, and is writing.
                Err(_) if is_closed && !is_closed_at(&layout) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn assemble(layout: Layout, log: Log, retention: Option<retention::Commands>, witness: Option<Witness>) -> Self {
        let folder = fs::metadata(layout.log()).ok().map(|folder| (folder.dev(), folder.ino()));
        let snapshots = Snapshots::new(&layout.snapshots());
        let archives = Archives::new(&layout.archive());
        let (log, newest_wal) = (RwLock::new(Some(Arc::new(log))), AtomicU64::new(0));
        Self { layout, log, folder, newest_wal, retention, witness, snapshots, archives }
    }

    /// The witness of the log's end; `None` if the log has no record yet.
    ///
    /// # Errors
    /// [`LogError::Witness`] if the log contradicts its witness.
    pub fn witness(&self) -> Result<Option<Witness>, LogError> {
        match self.retention {
            None => Ok(self.witness),
            Some(_) => witness::check(Witness::load(&self.layout.witness()), &*self.log()?),
        }
    }

    /// Whether the log's files are still where they were when it was opened. Anything written to a removed folder is
    /// gone with the process.
    pub fn is_in_place(&self) -> bool {
        let is_gone = |path: &Path| fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let folder = self.layout.log();
        let is_another = fs::metadata(&folder).is_ok_and(|found| Some((found.dev(), found.ino())) != self.folder);
        !(is_another || is_gone(&folder.join("CURRENT")) || self.lacks_newest_wal(&folder))
    }

    /// Whether the newest write-ahead log was removed: what is acknowledged then would be gone after a crash.
    fn lacks_newest_wal(&self, folder: &Path) -> bool {
        let number = |name: &OsStr| name.to_str()?.strip_suffix(".log")?.parse::<u64>().ok();
        let Ok(entries) = fs::read_dir(folder) else { return false };
        let newest = entries.filter_map(|entry| number(&entry.ok()?.file_name())).max().unwrap_or(0);
        newest < self.newest_wal.fetch_max(newest, Ordering::Relaxed)
    }

    /// The paths.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The snapshots.
    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// The archives.
    pub fn archives(&self) -> &Archives {
        &self.archives
    }

    /// The log. Hold it only for one task: it cannot be reopened meanwhile.
    ///
    /// # Errors
    /// [`LogError::Closed`] while it is being reopened.
    pub fn log(&self) -> Result<Arc<Log>, LogError> {
        self.log.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(LogError::Closed)
    }

    /// Reopens the log after a failed write, once its readers have left.
    ///
    /// # Errors
    /// As [`Log::open`]. The log then stays closed.
    pub fn reopen(&self) -> Result<Arc<Log>, LogError> {
        let Some(retention) = self.retention else { return self.log() };
        if !self.is_in_place() {
            // Opening would create a new log.
            return Err(LogError::Missing(self.layout.log()));
        }
        let mut current = self.log.write().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + READERS_LEAVE_WITHIN;
        while current.as_ref().is_some_and(|log| Arc::strong_count(log) > 1) {
            if Instant::now() > deadline {
                return Err(LogError::Closed);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        *current = None;
        let log = Arc::new(Log::open(&self.layout.log(), retention)?);
        *current = Some(Arc::clone(&log));
        Ok(log)
    }

    /// Stores a signed statement that the log has this record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn bear_witness(&self, cluster_id: UuidBytes, head: Head, end: End, signer: &Signer) -> io::Result<()> {
        Witness::sign(cluster_id, head, end, signer).store(&self.layout.witness())
    }

    /// The identity of the log.
    ///
    /// # Errors
    /// If it cannot be read; [`LogError::Missing`] if it has no record yet.
    pub fn identity(&self) -> Result<Identity, LogError> {
        let log = self.log()?;
        log.identity()?.ok_or_else(|| LogError::Missing(log.folder().to_owned()))
    }

    /// The state after a record: from the newest good snapshot at or before it, and the records after that. The chain
    /// is checked on the way.
    ///
    /// # Errors
    /// If records that are needed cannot be read, are damaged, or were archived and removed.
    pub fn state_after(&self, target: Sequence) -> Result<StateAfter, BundleError> {
        let StateAfter { mut state, mut hash } = self.nearest_snapshot(target)?;
        let from = state.sequence().next();
        self.read(from, target, |stored| {
            check_link(stored, &hash)?;
            state.apply(&stored.record()?).map_err(LogError::Contradiction)?;
            hash = stored.hash();
            Ok(())
        })?;
        Ok(StateAfter { state, hash })
    }

    /// The state of the newest usable snapshot at or before a record, or the state before the first.
    fn nearest_snapshot(&self, target: Sequence) -> Result<StateAfter, LogError> {
        for sequence in self.snapshots.list().into_iter().rev().filter(|sequence| *sequence <= target) {
            if let Some(after) = self.restore(sequence)? {
                return Ok(after);
            }
        }
        Ok(StateAfter { state: State::default(), hash: NO_HASH })
    }

    /// The state of a snapshot; `None`, with a warning, if it does not belong to this log.
    fn restore(&self, sequence: Sequence) -> Result<Option<StateAfter>, LogError> {
        let identity = self.identity()?;
        let unusable = |detail: &dyn std::fmt::Display| {
            tracing::warn!(%sequence, %detail, "skipping a snapshot that is not one of this log");
            Ok(None)
        };
        let bad = |detail: &dyn std::fmt::Display| {
            self.snapshots.note(sequence, false);
            unusable(detail)
        };
        let Snapshot { record_hash, body, .. } = match self.snapshots.read(sequence, &identity) {
            Ok(snapshot) => snapshot,
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                return bad(&error);
            }
            Err(error) => return unusable(&error),
        };
        match self.log()?.hash_of(sequence) {
            Ok(hash) if hash != record_hash => return bad(&"its record has another hash"),
            // The record is archived: the snapshot stands alone, and later records must follow from its hash.
            Ok(_) | Err(LogError::DamagedRecord { .. }) => {}
            Err(error) => return Err(error),
        }
        match State::from_snapshot_bytes(&body) {
            Ok(state) if state.sequence() == sequence => {
                self.snapshots.note(sequence, true);
                Ok(Some(StateAfter { state, hash: record_hash }))
            }
            Ok(state) => bad(&format_args!("it is the state after record {}", state.sequence())),
            Err(error) => bad(&error),
        }
    }

    /// Part of the newest usable snapshot at or before a sequence: its sequence, at most `max_bytes` from an offset on,
    /// and its total size in bytes; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn snapshot_part(
        &self,
        at_or_before: Sequence,
        offset: u64,
        max_bytes: usize,
    ) -> Result<Option<(Sequence, Vec<u8>, u64)>, BundleError> {
        for sequence in self.snapshots.list().into_iter().rev().filter(|sequence| *sequence <= at_or_before) {
            if !self.snapshots.is_known_good(sequence) && self.restore(sequence)?.is_none() {
                continue;
            }
            match self.snapshots.part(sequence, &self.identity()?, offset, max_bytes) {
                Ok((part, total)) => return Ok(Some((sequence, part, total))),
                Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                    tracing::warn!(%sequence, %error, "a snapshot has been altered and is skipped");
                    self.snapshots.note(sequence, false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Passes the records from one to another to `visit`, in order and without gaps, from archives if they have left
    /// the log.
    ///
    /// # Errors
    /// If one of them is missing or cannot be read, or as `visit` fails.
    pub fn read(
        &self,
        from: Sequence,
        to: Sequence,
        mut visit: impl FnMut(&Stored<'_>) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        let mut expected = from;
        let mut in_order = |stored: &Stored<'_>| {
            // Archives can overlap if the ledger was killed while it made one.
            if stored.sequence < expected || stored.sequence > to {
                return Ok(());
            }
            if stored.sequence != expected {
                return Err(LogError::DamagedRecord { sequence: expected, detail: "it is missing".into() }.into());
            }
            expected = expected.next();
            visit(stored)
        };
        let log = self.log()?;
        let first = log.first()?;
        let mut next = from;
        while next < first && next <= to {
            let missing = || LogError::Archived { sequence: next, folder: self.archives.folder().to_owned() };
            let archive = self.archives.holding(next).ok_or_else(missing)?;
            archive.read(&mut in_order)?;
            next = archive.last.next();
        }
        let mut entries = log.entries(next);
        while let Some(stored) = entries.next()? {
            if stored.sequence > to {
                break;
            }
            in_order(&stored)?;
        }
        if expected.0 <= to.0 {
            return Err(LogError::DamagedRecord { sequence: expected, detail: "it is missing".into() }.into());
        }
        Ok(())
    }
}

/// Creates a folder that only its owner can look into: the log holds submissions, with environments and scripts.
/// Folders above it get the usual mode, for a socket in them is for everybody.
fn make_private(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Whether the witness of a folder says that no ledger is writing its log.
fn is_closed_at(layout: &Layout) -> bool {
    matches!(Witness::load(&layout.witness()), Ok(Some(Witness { end: End::Closed, .. })))
}
