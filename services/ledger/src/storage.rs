//! Everything that a ledger has on disk, and the states that can be computed from it.

use crate::{
    archive::Archives,
    bundle::BundleError,
    hex,
    log::{Hash, Head, Identity, Log, LogError, NO_HASH, Stored, check_link},
    retention,
    snapshots::{Snapshot, Snapshots},
};
use muster_domain::State;
use muster_schemas::ids::Sequence;
use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

/// Readers of the log finish what they read within this time, when it has to be opened anew.
const READERS_LEAVE_WITHIN: Duration = Duration::from_secs(10);

/// Where things are within the data folder.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
}

impl Layout {
    /// The layout of a data folder.
    pub fn new(data_dir: &Path) -> Self {
        Self { folder: data_dir.to_owned() }
    }

    /// All but the key.
    fn own(&self) -> PathBuf {
        self.folder.join("ledger")
    }

    /// The RocksDB database.
    pub fn log(&self) -> PathBuf {
        self.own().join("log")
    }

    /// Snapshots of the state.
    pub fn snapshots(&self) -> PathBuf {
        self.own().join("snapshots")
    }

    /// Archived ranges of the log.
    pub fn archive(&self) -> PathBuf {
        self.own().join("archive")
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

/// A record that was durable once, noted beside the log: a log that does not have it lost its end, or is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The record.
    pub sequence: Sequence,
    /// Its hash.
    pub hash: Hash,
}

impl Witness {
    fn load(path: &Path) -> io::Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let parsed = text.trim().split_once(' ').and_then(|(sequence, hash)| {
            let hash = crate::from_hex(hash)?.try_into().ok()?;
            Some(Self { sequence: Sequence(sequence.parse().ok()?), hash })
        });
        if parsed.is_none() {
            tracing::warn!(file = %path.display(), "ignoring a witness of the log's end that cannot be read");
        }
        Ok(parsed)
    }

    fn store(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("draft");
        fs::write(&draft, format!("{} {}\n", self.sequence, hex(&self.hash)))?;
        fs::File::open(&draft)?.sync_all()?;
        fs::rename(&draft, path)?;
        crate::sync_folder_of(path)
    }
}

/// A state, and the record that it is after.
pub struct StateAfter {
    /// The state.
    pub state: State,
    /// The hash of the record; [`NO_HASH`] before the first.
    pub hash: Hash,
}

/// All that a ledger has on disk.
pub struct Storage {
    layout: Layout,
    log: RwLock<Option<Arc<Log>>>,
    retention: Option<retention::Commands>,
    snapshots: Snapshots,
    archives: Archives,
}

impl Storage {
    /// Opens a data folder for writing; an empty one gets an empty log.
    ///
    /// # Errors
    /// As [`Log::open`]; [`LogError::Damaged`] if the log has lost its end.
    pub fn open(data_dir: &Path, retention: retention::Commands) -> Result<Self, LogError> {
        let layout = Layout::new(data_dir);
        make_private(&layout.own()).map_err(|error| LogError::Storage {
            folder: layout.own(),
            action: "opened",
            detail: error.to_string(),
        })?;
        let log = Log::open(&layout.log(), retention)?;
        Self::assemble(layout, log, Some(retention))
    }

    /// Opens a data folder for reading, beside a ledger that may be writing it.
    ///
    /// # Errors
    /// As [`Log::open_read_only`].
    pub fn open_read_only(data_dir: &Path) -> Result<Self, LogError> {
        let layout = Layout::new(data_dir);
        let log = Log::open_read_only(&layout.log())?;
        Self::assemble(layout, log, None)
    }

    fn assemble(layout: Layout, log: Log, retention: Option<retention::Commands>) -> Result<Self, LogError> {
        check_witness(&layout, &log)?;
        let snapshots = Snapshots::new(&layout.snapshots());
        let archives = Archives::new(&layout.archive());
        Ok(Self { layout, log: RwLock::new(Some(Arc::new(log))), retention, snapshots, archives })
    }

    /// Where things are.
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

    /// The log. Do not keep it longer than for one task: it cannot be opened anew while it is held.
    ///
    /// # Errors
    /// [`LogError::Closed`] while it is being opened anew.
    pub fn log(&self) -> Result<Arc<Log>, LogError> {
        self.log.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(LogError::Closed)
    }

    /// Opens the log anew after a failed write, when its readers have left.
    ///
    /// # Errors
    /// As [`Log::open`]. The log is closed then.
    pub fn reopen(&self) -> Result<Arc<Log>, LogError> {
        let Some(retention) = self.retention else { return self.log() };
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

    /// Notes that the log has this record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn bear_witness(&self, head: Head) -> io::Result<()> {
        Witness { sequence: head.sequence, hash: head.hash }.store(&self.layout.witness())
    }

    /// Whose log it is.
    ///
    /// # Errors
    /// If it cannot be read; [`LogError::Missing`] if it has no record yet.
    pub fn identity(&self) -> Result<Identity, LogError> {
        let log = self.log()?;
        log.identity()?.ok_or_else(|| LogError::Missing(log.folder().to_owned()))
    }

    /// The state after a record: the newest good snapshot at or before it, and the records behind that. The chain is
    /// checked on the way.
    ///
    /// # Errors
    /// If records that are needed cannot be read, are damaged, or were archived and taken away.
    pub fn state_after(&self, target: Sequence) -> Result<StateAfter, BundleError> {
        let StateAfter { mut state, mut hash } = self.nearest_snapshot(target)?;
        let from = state.sequence().next();
        self.read(from, target, |stored| {
            check_link(stored, &hash)?;
            state.apply(&stored.record()?);
            hash = stored.hash();
            Ok(())
        })?;
        Ok(StateAfter { state, hash })
    }

    /// The state of the newest usable snapshot at or before a record, or the state before the first.
    fn nearest_snapshot(&self, target: Sequence) -> Result<StateAfter, LogError> {
        let mut at_or_before = target;
        while let Some(snapshot) = self.snapshots.newest(at_or_before) {
            let sequence = snapshot.sequence;
            match self.restore(&snapshot) {
                Ok(state) => return Ok(StateAfter { state, hash: snapshot.record_hash }),
                Err(detail) => tracing::warn!(%sequence, detail, "skipping a snapshot that is not of this log"),
            }
            let Some(before) = sequence.0.checked_sub(1) else { break };
            at_or_before = Sequence(before);
        }
        Ok(StateAfter { state: State::default(), hash: NO_HASH })
    }

    fn restore(&self, snapshot: &Snapshot) -> Result<State, String> {
        match self.log().and_then(|log| log.hash_of(snapshot.sequence)) {
            Ok(hash) if hash != snapshot.record_hash => return Err("its record has another hash".into()),
            // An archived record: the snapshot stands for itself, and the records behind it must follow from its hash.
            Ok(_) | Err(LogError::DamagedRecord { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
        let state = State::from_snapshot_bytes(&snapshot.body).map_err(|error| error.to_string())?;
        if state.sequence() == snapshot.sequence { Ok(state) } else { Err("it is of another record".into()) }
    }

    /// Shows the records from one to another to `visit`, in order and without a gap, from archives where they have
    /// left the log.
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
            // Archives can overlap, if the ledger was killed while it made one.
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

/// Makes a folder that only its owner can look into: the log holds what people submitted, with environments and scripts.
/// Folders above it are made as usual, for a socket in them is for everybody.
fn make_private(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn check_witness(layout: &Layout, log: &Log) -> Result<(), LogError> {
    let path = layout.witness();
    let witness = Witness::load(&path).map_err(|error| LogError::Storage {
        folder: path,
        action: "opened",
        detail: error.to_string(),
    })?;
    let Some(witness) = witness else { return Ok(()) };
    let detail = match log.head()? {
        head if head.sequence < witness.sequence => {
            format!("it ends at record {}, but record {} was durable once", head.sequence, witness.sequence)
        }
        _ if log.hash_of(witness.sequence)? != witness.hash => {
            format!("record {} is not the one that was durable once", witness.sequence)
        }
        _ => return Ok(()),
    };
    Err(LogError::Damaged { folder: log.folder().to_owned(), detail })
}
