//! What a node keeps on disk, so that its executor can die at any moment.
//!
//! ```text
//! SPOOL/lock                one executor at a time
//! SPOOL/cluster             the cluster that the runs belong to
//! SPOOL/launched.0, .1      the launch journal
//! SPOOL/executor            socket: shims tell of starts and ends
//! SPOOL/shims.log           what shims have to say
//! SPOOL/runs/RUN[.STEP]/
//!     order                 what to start, and as whom
//!     shim                  made by the one shim that may start it, locked while that lives: pid, start
//!     control               socket: orders to the shim
//!     result                how it ended
//!     script nodes tmp      what the job's processes see
//! ```
//!
//! A run folder is in one of these states, each of which a restarted executor can tell and continue from:
//!
//! | files | state |
//! |---|---|
//! | no `order`, or half of one and no entry in the journal | not begun, or on its way out: rubbish |
//! | `order` | ordered: a shim may claim it |
//! | `order`, `shim` locked | its shim lives |
//! | `order`, `shim` not locked | its shim died: clean up, report it as lost |
//! | `result` | ended: report it until the ledger has it on the log |

use crate::{containment::Hierarchies, identity::Identity, key::RunKey};
use muster_schemas::{codec, event::NodeExit, node::LaunchOrder, time::Timestamp};
use nix::fcntl::{Flock, FlockArg, RenameFlags, renameat2};
use nix::{errno::Errno, fcntl::AT_FDCWD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// The node file's name in a run folder.
pub const NODE_FILE: &str = "nodes";
/// The name of the job's temporary folder in a run folder.
pub const TEMPORARY: &str = "tmp";
/// The script's name in a run folder.
pub const SCRIPT: &str = "script";
/// The control socket's name in a run folder.
pub const CONTROL: &str = "control";
/// The name of the executor's socket in the spool.
pub const EXECUTOR_SOCKET: &str = "executor";
const ORDER: &str = "order";
const SHIM: &str = "shim";
const RESULT: &str = "result";
const RUNS: &str = "runs";

/// The folder of one executor, locked for it.
#[derive(Debug)]
pub struct Spool {
    root: PathBuf,
    _lock: Flock<File>,
}

/// Why a spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another executor lives.
    #[error("the spool {0} is in use by another executor")]
    InUse(PathBuf),
    /// Its runs are not this cluster's.
    #[error(
        "the spool {spool} holds runs of the cluster {found}, not of {expected}: finish or remove them, or name another spool"
    )]
    OtherCluster {
        /// The spool.
        spool: PathBuf,
        /// Whose runs it holds.
        found: String,
        /// The cluster that this executor serves.
        expected: String,
    },
    /// The disk.
    #[error("the spool {path} cannot be used: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Spool {
    /// Makes the folder if there is none, and locks it.
    ///
    /// # Errors
    /// If another executor has it, or the disk refuses.
    pub fn open(root: &Path) -> Result<Self, SpoolError> {
        let failed = |source| SpoolError::Io { path: root.to_owned(), source };
        // Jobs of other users reach their script and files through these folders, and nothing else.
        let passable = |path: &Path| DirBuilder::new().recursive(true).mode(0o711).create(path);
        passable(&root.join(RUNS)).map_err(failed)?;
        let root = root.canonicalize().map_err(failed)?;
        let failed = |source| SpoolError::Io { path: root.clone(), source };
        let file = private().create(true).truncate(false).write(true).open(root.join("lock")).map_err(failed)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Self { root, _lock: lock }),
            Err((_, Errno::EWOULDBLOCK)) => Err(SpoolError::InUse(root)),
            Err((_, errno)) => Err(failed(errno.into())),
        }
    }

    /// Its absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a run or step, which need not exist.
    pub fn run(&self, key: RunKey) -> RunFolder {
        RunFolder::of(&self.root, key)
    }

    /// The keys of all run folders.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn keys(&self) -> io::Result<Vec<RunKey>> {
        let names = fs::read_dir(self.root.join(RUNS))?.map(|entry| Ok(entry?.file_name()));
        let names: Vec<_> = names.collect::<io::Result<_>>()?;
        Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
    }

    /// Ties the spool to a cluster. A spool without runs can change to another cluster; its journal then begins anew,
    /// because run numbers mean something else: `true` says so.
    ///
    /// # Errors
    /// [`SpoolError::OtherCluster`], or the disk.
    pub fn bind_to_cluster(&self, cluster: &str) -> Result<bool, SpoolError> {
        let path = self.root.join("cluster");
        let failed = |source| SpoolError::Io { path: path.clone(), source };
        let found = match fs::read_to_string(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        if found.trim() == cluster {
            return Ok(false);
        }
        let used_before = !found.trim().is_empty();
        if used_before && !self.keys().map_err(failed)?.is_empty() {
            let found = found.trim().to_owned();
            return Err(SpoolError::OtherCluster { spool: self.root.clone(), found, expected: cluster.to_owned() });
        }
        write_whole(&path, format!("{cluster}\n").as_bytes()).map_err(failed)?;
        Ok(used_before)
    }
}

/// All that a shim needs to know. It asks nobody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpooledOrder {
    /// The boot that it was ordered in: after the next one there is nothing of it left to find.
    pub boot_id: String,
    /// The order.
    pub order: LaunchOrder,
    /// Whom the processes belong to.
    pub identity: Identity,
    /// What the host offers to keep them together.
    pub hierarchies: Hierarchies,
    /// The CPUs to bind the processes to; empty means no binding.
    pub cpus: Vec<u32>,
    /// The soft limit of open files that the processes start with.
    pub open_files: u64,
}

impl SpooledOrder {
    /// The value of [`crate::environment::MARKER`] in the environment of all processes of the run.
    pub fn marker(&self) -> String {
        self.hierarchies.marker(self.order.run)
    }

    /// What it is about.
    pub fn key(&self) -> RunKey {
        RunKey { run: self.order.run, step: self.order.step }
    }
}

/// The folder of one run or step.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// What the shim of a run has told about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimRecord {
    /// Its process.
    pub pid: u32,
    /// When the first process of the job was started.
    pub started: Option<Timestamp>,
}

/// Whether a run has been claimed by a shim.
#[derive(Debug)]
pub enum ClaimState {
    /// By none: nothing was started.
    Unclaimed,
    /// By one that lives.
    Held(ShimRecord),
    /// By one that is dead.
    Abandoned(ShimRecord),
}

/// The right to start a run and to say how it ended. There is never a second one for a run.
#[derive(Debug)]
pub struct Claim {
    file: Flock<File>,
}

impl Claim {
    /// Tells about the shim.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn record(&self, record: ShimRecord) -> io::Result<()> {
        let bytes = encode(&record)?;
        self.file.write_all_at(&bytes, 0)?;
        self.file.set_len(bytes.len() as u64)
    }
}

impl RunFolder {
    /// The folder in a spool.
    pub fn of(spool: &Path, key: RunKey) -> Self {
        Self { path: spool.join(RUNS).join(key.to_string()) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes the folder with an order.
    ///
    /// # Errors
    /// If it exists, or the disk refuses.
    pub fn create(&self, order: &SpooledOrder) -> io::Result<()> {
        let bytes = encode(order)?;
        DirBuilder::new().mode(0o711).create(&self.path)?;
        private().create_new(true).write(true).open(self.file(ORDER))?.write_all(&bytes)
    }

    /// The order; `None` if there is no folder or no order in it.
    ///
    /// # Errors
    /// If it is damaged or cannot be read.
    pub fn order(&self) -> io::Result<Option<SpooledOrder>> {
        read(&self.file(ORDER))
    }

    /// Takes the right to start the run; `None` if somebody had it already.
    ///
    /// # Errors
    /// If the folder is gone or the disk refuses.
    pub fn claim(&self) -> io::Result<Option<Claim>> {
        // Locked under another name first: under its own name it is never seen unlocked while its owner lives.
        let pid = std::process::id();
        let temporary = self.file(&format!("{SHIM}.{pid}"));
        let file = private().create(true).truncate(false).read(true).write(true).open(&temporary)?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)?;
        let claim = Claim { file };
        claim.record(ShimRecord { pid, started: None })?;
        match renameat2(AT_FDCWD, &temporary, AT_FDCWD, &self.file(SHIM), RenameFlags::RENAME_NOREPLACE) {
            Ok(()) => Ok(Some(claim)),
            Err(Errno::EEXIST) => {
                fs::remove_file(&temporary)?;
                Ok(None)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Whether somebody has claimed the run, and lives.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn claim_state(&self) -> io::Result<ClaimState> {
        let path = self.file(SHIM);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ClaimState::Unclaimed),
            Err(error) => return Err(error),
        };
        // A record that is just being written, or was torn, only costs the start time.
        let record = read::<ShimRecord>(&path).ok().flatten().unwrap_or_default();
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(ClaimState::Abandoned(record)),
            Err((_, Errno::EWOULDBLOCK)) => Ok(ClaimState::Held(record)),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// How the run ended; `None` if it has not.
    ///
    /// # Errors
    /// If it is damaged or cannot be read.
    pub fn result(&self) -> io::Result<Option<NodeExit>> {
        read(&self.file(RESULT))
    }

    /// Says how the run ended. Only the owner of the claim may, or who found it abandoned.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn write_result(&self, exit: &NodeExit) -> io::Result<()> {
        write_whole(&self.file(RESULT), &encode(exit)?)
    }

    /// Brings the result to the disk: it may have to stay for long.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn sync_result(&self) -> io::Result<()> {
        File::open(self.file(RESULT))?.sync_all()?;
        File::open(&self.path)?.sync_all()
    }

    /// Removes the folder; the order first, so that what is left after a crash halfway is not taken for an order.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.file(ORDER)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn encode<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    codec::encode(value).map_err(io::Error::other)
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => codec::decode(&bytes).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file has these bytes or those it had before, never a part of them.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    private().create(true).truncate(true).write(true).open(&temporary)?.write_all(bytes)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{order, spooled};
    use muster_schemas::{RunId, event::EndCause, job::Usage};

    fn folder() -> (tempfile::TempDir, Spool, RunFolder) {
        let temporary = tempfile::tempdir().unwrap();
        let spool = Spool::open(temporary.path()).unwrap();
        let run = spool.run(RunKey::whole(RunId(7)));
        run.create(&spooled(order(7))).unwrap();
        (temporary, spool, run)
    }

    #[test]
    fn a_spool_has_one_executor() {
        let temporary = tempfile::tempdir().unwrap();
        let spool = Spool::open(temporary.path()).unwrap();
        assert!(matches!(Spool::open(temporary.path()), Err(SpoolError::InUse(_))));
        drop(spool);
        Spool::open(temporary.path()).unwrap();
    }

    #[test]
    fn a_run_is_claimed_once() {
        let (_temporary, spool, run) = folder();
        assert_eq!(spool.keys().unwrap(), [RunKey::whole(RunId(7))]);
        assert!(matches!(run.claim_state().unwrap(), ClaimState::Unclaimed));
        let claim = run.claim().unwrap().unwrap();
        assert!(run.claim().unwrap().is_none());
        let record = ShimRecord { pid: 5, started: Some(Timestamp(9)) };
        claim.record(record).unwrap();
        assert!(matches!(run.claim_state().unwrap(), ClaimState::Held(found) if found == record));
        drop(claim);
        assert!(matches!(run.claim_state().unwrap(), ClaimState::Abandoned(found) if found == record));
        assert!(run.claim().unwrap().is_none());
    }

    #[test]
    fn orders_and_results_go_round() {
        let (_temporary, _spool, run) = folder();
        assert_eq!(run.order().unwrap(), Some(spooled(order(7))));
        assert_eq!(run.result().unwrap(), None);
        let exit = NodeExit {
            status: None,
            cause: EndCause::Lost("x".into()),
            usage: Usage::default(),
            started: None,
            ended: Timestamp(3),
        };
        run.write_result(&exit).unwrap();
        run.sync_result().unwrap();
        assert_eq!(run.result().unwrap(), Some(exit));
        run.remove().unwrap();
        run.remove().unwrap();
        assert!(run.claim().is_err(), "a run that is gone cannot be started");
    }

    #[test]
    fn a_damaged_order_is_an_error_not_an_order() {
        let (_temporary, _spool, run) = folder();
        let bytes = fs::read(run.file(ORDER)).unwrap();
        fs::write(run.file(ORDER), &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(run.order().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_spool_with_runs_stays_with_its_cluster() {
        let (_temporary, spool, run) = folder();
        assert!(!spool.bind_to_cluster("a").unwrap());
        assert!(!spool.bind_to_cluster("a").unwrap());
        assert!(matches!(spool.bind_to_cluster("b"), Err(SpoolError::OtherCluster { .. })));
        run.remove().unwrap();
        assert!(spool.bind_to_cluster("b").unwrap());
    }
}
