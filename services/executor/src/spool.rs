//! The files that a node keeps on disk, so that its executor can die at any moment.
//!
//! ```text
//! SPOOL/lock                one executor at a time
//! SPOOL/cluster             the cluster that the runs belong to
//! SPOOL/epoch               the highest epoch of a ledger that the node has obeyed
//! SPOOL/launched.0, .1      the launch journal
//! SPOOL/executor            socket: shims report starts and ends
//! SPOOL/shims.log           the log of the shims
//! SPOOL/gpus               the GPUs of the node by number, as its runs know them
//! SPOOL/unfit              why the node is to be drained, until the ledger knows
//! SPOOL/bin/muster-rsh      link to the program that starts commands on other nodes of a job
//! SPOOL/runs/RUN[.STEP]/
//!     log                   what to start, who started it and when, how it ended; locked while its shim lives
//!     control               pipe: orders to the shim
//!     script nodes tmp      what the job's processes see
//!     container/            what its containers need, and their runtime
//!     output                output of the tasks of a step for its client
//!     output.released       how much of that has left the disk
//!     input input.end       input from its client, and its end
//!     input.taken           how far the tasks have read that
//!     fence                 what the tasks of a parallel program contribute to a fence
//!     fence-met             what all tasks have contributed to it
//!     fence-left            the places whose tasks have ended, where fences are led
//! SPOOL/free/UID.RUN/       folders for further runs of that user
//! ```
//!
//! A run folder is in one of these states, each of which a restarted executor can tell and continue from:
//!
//! | log | state |
//! |---|---|
//! | half an order, and the run not in the journal | not begun: rubbish |
//! | an order | ordered: a shim may claim it |
//! | claimed, locked | its shim lives |
//! | claimed, not locked | its shim died: clean up, report it as lost |
//! | ended | report it until the ledger has it on the log |
//!
//! Folders are reused rather than removed, by the same user only: after many removals a file system can take longer for
//! a new file (ext4 looks at each removed in the last minute), and nobody can have kept a hold on what will be another
//! user's script.

use crate::{
    cleaning::Cleaning, containment::Hierarchies, gpus::GpuDevice, identity::Identity, key::RunKey, protocol::frames,
    removal, runtimes::RuntimeChoice, site::SitePrograms,
};
use muster_schemas::{
    PartId, codec,
    event::NodeExit,
    node::LaunchOrder,
    steps::{StepTasks, TaskStatus},
    time::Timestamp,
};
use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
    sys::stat::Mode,
    unistd::{Gid, Uid, chown, mkfifo},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

/// The node file's name in a run folder.
pub const NODE_FILE: &str = "nodes";
/// The same in the form of the job's dialect.
pub const DIALECT_NODE_FILE: &str = "dialect-nodes";
/// The name of the file that describes the job's resources in a run folder.
pub const DIALECT_PROPERTY_FILE: &str = "dialect-properties";
/// The name of the same file for the site's programs.
pub const SITE_NODE_FILE: &str = "site-nodes";
/// The name of the file with the numbers of a run's processes, for the site's program that suspends them.
pub const PROCESS_FILE: &str = "site-processes";
/// The name of the file that says why a run that was suspended is to continue.
const UNWANTED_SUSPENSION: &str = "unwanted-suspension";
/// The name of the file with the signals that were sent to the processes of a run.
const SIGNALS: &str = "signals";
/// The name of the file that says how many of them the ledger knows.
const SIGNALS_TOLD: &str = "signals-told";
/// The longest such file, in bytes. Later signals are told nobody: the owner of a job can send any number.
const MAX_SIGNALS_BYTES: u64 = 1 << 16;
/// The longest such reason, in bytes.
const MAX_REASON_BYTES: u64 = 4096;
/// The name of the job's temporary folder in a run folder.
pub const TEMPORARY: &str = "tmp";
/// The name of the folder of its containers in a run folder.
pub const CONTAINER: &str = "container";
/// The script's name in a run folder.
pub const SCRIPT: &str = "script";
/// The name of the pipe to the shim in a run folder.
pub const CONTROL: &str = "control";
/// The name of the file with the output of tasks for a client.
pub const OUTPUT: &str = "output";
/// The name of the file with the input of a client for tasks.
pub const INPUT: &str = "input";
/// Its presence in a run folder means that the input is complete.
pub const INPUT_END: &str = "input.end";
/// The name of the file that says how far tasks have read their input.
pub const INPUT_TAKEN: &str = "input.taken";
/// The name of the file with messages to the job.
pub const NOTES: &str = "notes";
/// The name of the file that says how much of the output is no longer on the disk.
const RELEASED: &str = "output.released";
/// The name of the file with what the tasks of a parallel program contribute to a fence.
const FENCE: &str = "fence";
/// The name of the file with the answer to that.
const FENCE_MET: &str = "fence-met";
/// The name of the file with the places of the step whose tasks have ended, on the node that leads its fences.
const FENCE_LEFT: &str = "fence-left";
const OF_STEPS: [&str; 11] = [
    OUTPUT,
    RELEASED,
    INPUT,
    INPUT_END,
    INPUT_TAKEN,
    NOTES,
    FENCE,
    "fence.new",
    FENCE_MET,
    "fence-met.new",
    FENCE_LEFT,
];
/// The name of the executor's socket in the spool.
pub const EXECUTOR_SOCKET: &str = "executor";
const GPUS: &str = "gpus";
const EPOCH: &str = "epoch";
const LOG: &str = "log";
const RUNS: &str = "runs";
const BIN: &str = "bin";
/// The link in that folder by which launchers of parallel programs start processes on other nodes of a job.
const RSH_LINK: &str = "muster-rsh";
const FREE: &str = "free";
/// The prefix of folders that were being created or removed when an executor died.
const RUBBISH: &str = "rubbish";
/// The number of folders kept for reuse.
const MAX_FREE: usize = 4096;

/// The folder of one executor, locked for it.
#[derive(Debug)]
pub struct Spool {
    root: PathBuf,
    /// Names below `free`, by user.
    free: HashMap<u32, Vec<String>>,
    free_count: usize,
    _lock: Flock<File>,
}

/// Why a spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another executor is running.
    #[error("the spool {0} is in use by another executor")]
    InUse(PathBuf),
    /// Its runs belong to another cluster.
    #[error(
        "the spool {spool} holds runs of the cluster {found}, not of {expected}: finish or remove them, or name another spool"
    )]
    OtherCluster {
        /// The spool.
        spool: PathBuf,
        /// The cluster whose runs it holds.
        found: String,
        /// The cluster that this executor serves.
        expected: String,
    },
    /// The disk failed.
    #[error("the spool {path} cannot be used: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Spool {
    /// Creates the folder if there is none, and locks it.
    ///
    /// # Errors
    /// If another executor has it, or the disk refuses.
    pub fn open(root: &Path) -> Result<Self, SpoolError> {
        let failed = |source| SpoolError::Io { path: root.to_owned(), source };
        // Jobs of other users reach their script and files, and nothing else, through these folders.
        let passable = |path: &Path| DirBuilder::new().recursive(true).mode(0o711).create(path);
        passable(&root.join(RUNS)).map_err(failed)?;
        passable(&root.join(FREE)).map_err(failed)?;
        let root = root.canonicalize().map_err(failed)?;
        let failed = |source| SpoolError::Io { path: root.clone(), source };
        let file = private().create(true).truncate(false).write(true).open(root.join("lock")).map_err(failed)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                let mut spool = Self { root: root.clone(), free: HashMap::new(), free_count: 0, _lock: lock };
                spool.find_free().map_err(failed)?;
                Ok(spool)
            }
            Err((_, Errno::EWOULDBLOCK)) => Err(SpoolError::InUse(root)),
            Err((_, errno)) => Err(failed(errno.into())),
        }
    }

    /// Lets jobs call this program to start commands on their other nodes.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn link_rsh(&self, program: &Path) -> io::Result<()> {
        let bin = self.root.join(BIN);
        DirBuilder::new().recursive(true).mode(0o711).create(&bin)?;
        let (link, new) = (bin.join(RSH_LINK), bin.join("new"));
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::os::unix::fs::symlink(program, &new)?,
        }
        fs::rename(new, link)
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
        run_keys(&self.root)
    }

    /// The GPUs of the node as the executor before this one knew them, by number; none if that is not known.
    pub fn gpus(&self) -> Vec<GpuDevice> {
        let text = fs::read_to_string(self.root.join(GPUS)).unwrap_or_default();
        text.lines().map(str::parse).collect::<Result<_, _>>().unwrap_or_default()
    }

    /// Keeps these for the next executor.
    ///
    /// # Errors
    /// If the disk refuses; the earlier ones stay.
    pub fn set_gpus(&self, gpus: &[GpuDevice]) -> io::Result<()> {
        let text: String = gpus.iter().map(|gpu| format!("{gpu}\n")).collect();
        write_whole(&self.root.join(GPUS), text.as_bytes())
    }

    fn find_free(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(RUBBISH) {
                removal::remove(&entry.path())?;
            }
        }
        for entry in fs::read_dir(self.root.join(FREE))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some(uid) = name.split('.').next().and_then(|uid| uid.parse().ok()) {
                self.keep_free(uid, name);
            }
        }
        Ok(())
    }

    fn keep_free(&mut self, uid: u32, name: String) {
        self.free.entry(uid).or_default().push(name);
        self.free_count += 1;
    }

    fn take_free(&mut self, uid: u32) -> Option<String> {
        let name = self.free.get_mut(&uid)?.pop()?;
        self.free_count -= 1;
        Some(name)
    }

    /// Creates the folder of a run with its order.
    ///
    /// # Errors
    /// If the disk refuses; there is no folder then.
    pub fn create(&mut self, order: &SpooledOrder) -> io::Result<()> {
        let uid = order.identity.uid;
        let name = match self.take_free(uid) {
            Some(name) => name,
            None => {
                let name = format!("{uid}.{}", order.key());
                let unfinished = self.root.join(format!("{RUBBISH}.{}", order.key()));
                make_folder(&unfinished, &order.identity)?;
                fs::rename(unfinished, self.root.join(FREE).join(&name))?;
                name
            }
        };
        let folder = self.root.join(FREE).join(&name);
        let filled = overwrite(&folder.join(LOG), 0o600, &encode(&Entry::Ordered(Box::new(order.clone())))?);
        // An earlier executor may have left the run's folder in the spool; then it is not replaced.
        let placed = filled.and_then(|()| fs::rename(&folder, self.run(order.key()).path()));
        if placed.is_err() {
            self.keep_free(uid, name);
        }
        placed
    }

    /// Removes the folder of a run, for reuse by another.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn recycle(&mut self, key: RunKey) -> io::Result<()> {
        let folder = self.run(key);
        let uid = match folder.log()? {
            None => return Ok(()),
            Some(log) => log.order,
        };
        if uid.as_ref().is_some_and(|order| order.tasks.is_some()) {
            folder.remove_files_of_steps()?;
        }
        if uid.as_ref().is_none_or(|order| order.order.launch.container.is_some()) {
            folder.remove_container()?;
        }
        let uid = uid.map(|order| order.identity.uid);
        if let Some(uid) = uid.filter(|_| self.free_count < MAX_FREE) {
            let name = format!("{uid}.{key}");
            if fs::rename(folder.path(), self.root.join(FREE).join(&name)).is_ok() {
                self.keep_free(uid, name);
                return Ok(());
            }
        }
        // Renamed first, so that a removal cut short leaves nothing that looks like a run.
        let rubbish = self.root.join(format!("{RUBBISH}.{key}"));
        fs::rename(folder.path(), &rubbish)?;
        removal::remove(&rubbish)
    }

    /// Ties the spool to a cluster. A spool without runs can change to another cluster; its journal then starts again,
    /// because run numbers mean something else: returns `true` in that case.
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
        // The epochs of another cluster mean something else too.
        match fs::remove_file(self.root.join(EPOCH)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        write_whole(&path, format!("{cluster}\n").as_bytes()).map_err(failed)?;
        Ok(used_before)
    }
}

/// The highest epoch of a ledger that the node of a spool has obeyed; 0 before there was one.
///
/// # Errors
/// If the file cannot be read, or has no number.
pub fn epoch(spool: &Path) -> io::Result<u64> {
    match fs::read_to_string(spool.join(EPOCH)) {
        Ok(text) => text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it has no number")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Keeps the highest epoch that a node has obeyed, also through a loss of power.
///
/// # Errors
/// If the disk refuses; the earlier one stays.
pub fn set_epoch(spool: &Path, epoch: u64) -> io::Result<()> {
    let path = spool.join(EPOCH);
    write_whole(&path, format!("{epoch}\n").as_bytes())?;
    File::open(path)?.sync_all()?;
    File::open(spool)?.sync_all()
}

/// The keys of all run folders in a spool.
///
/// # Errors
/// If the folder cannot be read.
pub fn run_keys(spool: &Path) -> io::Result<Vec<RunKey>> {
    let names = fs::read_dir(spool.join(RUNS))?.map(|entry| Ok(entry?.file_name()));
    let names: Vec<_> = names.collect::<io::Result<_>>()?;
    Ok(names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect())
}

/// Everything that a shim needs to know. It asks nobody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpooledOrder {
    /// The boot that it was ordered in: after the next one nothing of it is left to find.
    pub boot_id: String,
    /// The order.
    pub order: LaunchOrder,
    /// The owner of the processes.
    pub identity: Identity,
    /// The host's means to keep them together.
    pub hierarchies: Hierarchies,
    /// The CPUs to bind the processes to; empty means no binding.
    pub cpus: Vec<u32>,
    /// The soft limit of open files that the processes start with.
    pub open_files: u64,
    /// Additions for a step.
    pub tasks: Option<StepTasks>,
    /// The program that serves the tasks of PMIx programs, with the argument [`crate::PMIX_SERVER`].
    pub pmix_program: Option<PathBuf>,
    /// The GPUs of this node; empty if their device files are not known.
    pub gpus: Vec<GpuDevice>,
    /// The runtime of its containers, if it asks for some.
    pub container_runtime: RuntimeChoice,
    /// The programs of the site around jobs, if there are any.
    pub site: Option<SitePrograms>,
    /// The work on the node once it is over.
    pub cleaning: Cleaning,
}

impl SpooledOrder {
    /// The value of [`crate::containment::MARKER`] in the environment of all processes of the run.
    pub fn marker(&self) -> String {
        self.hierarchies.marker(self.order.part)
    }

    /// The launch that it is about.
    pub fn key(&self) -> RunKey {
        RunKey::of(&self.order)
    }
}

/// The folder of one run or step.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// The entries of a run's log, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Entry {
    /// By the executor.
    Ordered(Box<SpooledOrder>),
    /// By the only process that may continue the run.
    Claimed { pid: u32 },
    /// Just before the first process of the job.
    Started(Timestamp),
    /// Nothing follows.
    Ended(End),
}

/// How a run or step ended on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The combined result.
    pub exit: NodeExit,
    /// How each task of a step ended; none for runs and for tasks of a list.
    pub statuses: Vec<TaskStatus>,
}

impl From<NodeExit> for End {
    fn from(exit: NodeExit) -> Self {
        Self { exit, statuses: Vec::new() }
    }
}

/// A signal that was sent to the processes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its number.
    pub signal: u8,
    /// Whether its time before the end of the walltime had come.
    pub was_due: bool,
    /// How many processes were there.
    pub processes: u32,
}

impl Sent {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (signal, was_due) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { signal, was_due, processes: words.next()?.parse().ok()? })
    }
}

/// The content of the log of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLog {
    /// The order; `None` if it is incomplete.
    pub order: Option<SpooledOrder>,
    /// Whether it was claimed, and may have been started.
    pub claimed: bool,
    /// When the first process of the job was started.
    pub started: Option<Timestamp>,
    /// How it ended.
    pub end: Option<End>,
}

impl RunLog {
    fn parse(bytes: &[u8]) -> Self {
        let mut log = Self::default();
        // An entry in the middle of a write, or a torn one, does not count.
        for entry in frames(bytes).map_while(|frame| codec::decode(frame).ok()) {
            match entry {
                Entry::Ordered(order) => log.order = Some(*order),
                Entry::Claimed { .. } => log.claimed = true,
                Entry::Started(at) => log.started = Some(at),
                Entry::Ended(end) => log.end = Some(end),
            }
        }
        log
    }
}

/// The right to continue a run and to record its end. There is never a second one.
#[derive(Debug)]
pub struct Claim {
    file: Flock<File>,
    /// The order to start.
    pub order: SpooledOrder,
}

impl Claim {
    /// Records that the first process of the job is about to start.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn started(&self, at: Timestamp) -> io::Result<()> {
        append(&self.file, &Entry::Started(at))
    }

    /// Records how the run ended.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn ended(&self, end: &End) -> io::Result<()> {
        append(&self.file, &Entry::Ended(end.clone()))
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

    /// The program by which launchers of parallel programs reach the other nodes of the job.
    pub fn rsh(&self) -> PathBuf {
        let spool = self.path.parent().and_then(Path::parent).unwrap_or(&self.path);
        spool.join(BIN).join(RSH_LINK)
    }

    /// Appends a line to the messages to the job; control characters in it become blanks.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn add_note(&self, text: &str) -> io::Result<()> {
        let line = text.replace(char::is_control, " ") + "\n";
        let mut notes = OpenOptions::new().append(true).create(true).mode(0o600).open(self.file(NOTES))?;
        notes.write_all(line.as_bytes())
    }

    /// Notes why a run that was suspended is to continue.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn note_unwanted_suspension(&self, key: RunKey, why: &str) -> io::Result<()> {
        overwrite(&self.file(UNWANTED_SUSPENSION), 0o600, format!("{key}\n{why}").as_bytes())
    }

    /// Why it is to continue, if it is. Another run that had the folder before does not count.
    pub fn unwanted_suspension(&self, key: RunKey) -> Option<String> {
        let mut text = String::new();
        File::open(self.file(UNWANTED_SUSPENSION)).ok()?.take(MAX_REASON_BYTES).read_to_string(&mut text).ok()?;
        let (of, why) = text.split_once('\n')?;
        (of == key.to_string()).then(|| why.to_owned())
    }

    /// The ledger knows.
    pub fn forget_unwanted_suspension(&self) {
        // If it stays, the ledger is told again, and finds the run continuing.
        let _ = fs::remove_file(self.file(UNWANTED_SUSPENSION));
    }

    /// Notes that a signal was sent to the processes of a run.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn note_signal(&self, key: RunKey, sent: Sent) -> io::Result<()> {
        let Sent { signal, was_due, processes } = sent;
        let mut signals = OpenOptions::new().append(true).create(true).mode(0o600).open(self.file(SIGNALS))?;
        if signals.metadata()?.len() < MAX_SIGNALS_BYTES {
            signals.write_all(format!("{key} {signal} {was_due} {processes}\n").as_bytes())?;
        }
        Ok(())
    }

    /// The signals that were sent to the processes of a run and that the ledger does not know yet, each with its number from 0.
    pub fn untold_signals(&self, key: RunKey) -> Vec<(usize, Sent)> {
        let Ok(text) = fs::read_to_string(self.file(SIGNALS)) else { return Vec::new() };
        let own = text.lines().filter_map(|line| line.strip_prefix(&key.to_string())?.strip_prefix(' '));
        let sent = own.filter_map(Sent::parse).enumerate();
        sent.skip(self.told_signals(key)).collect()
    }

    fn told_signals(&self, key: RunKey) -> usize {
        let text = fs::read_to_string(self.file(SIGNALS_TOLD)).unwrap_or_default();
        let count = text.strip_prefix(&key.to_string()).and_then(|count| count.trim().parse().ok());
        count.unwrap_or(0)
    }

    /// The ledger knows this many of them.
    pub fn note_told_signals(&self, key: RunKey, count: usize) {
        // If this is lost, the ledger is told again, under the same ids.
        let new = self.file(&format!("{SIGNALS_TOLD}.{count}"));
        let _ = overwrite(&new, 0o600, format!("{key} {count}").as_bytes())
            .and_then(|()| fs::rename(&new, self.file(SIGNALS_TOLD)));
    }

    /// The run is over, and the ledger knows all of them.
    pub fn forget_signals(&self) {
        let _ = fs::remove_file(self.file(SIGNALS)).and_then(|()| fs::remove_file(self.file(SIGNALS_TOLD)));
    }

    /// The folder of the launch that a step is inside.
    pub fn of_launch(&self, part: PartId) -> Self {
        let key = RunKey::whole(part).to_string();
        Self { path: self.path.parent().map_or_else(|| self.path.clone(), |runs| runs.join(key)) }
    }

    /// A path in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The content of its log; `None` if there is no folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn log(&self) -> io::Result<Option<RunLog>> {
        match fs::read(self.file(LOG)) {
            Ok(bytes) => Ok(Some(RunLog::parse(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(self.path.exists().then(RunLog::default)),
            Err(error) => Err(error),
        }
    }

    /// Takes the right to continue the run; `None` if it is already taken, or the run is gone.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn claim(&self, key: RunKey) -> io::Result<Option<Claim>> {
        let Some(mut file) = self.locked_for_claim()? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let log = RunLog::parse(&bytes);
        // The folder can have become another run's since it was opened.
        let Some(order) = log.order.filter(|order| order.key() == key && !log.claimed) else { return Ok(None) };
        append(&file, &Entry::Claimed { pid: std::process::id() })?;
        Ok(Some(Claim { file, order }))
    }

    /// Whether the process that claimed the run lives.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn is_held(&self) -> io::Result<bool> {
        Ok(self.path.exists() && self.locked()?.is_none())
    }

    /// Records the end of a run that nobody can continue: it is unclaimed for good, or abandoned.
    ///
    /// # Errors
    /// If the disk refuses, or the run is continued after all.
    pub fn close(&self, exit: &NodeExit) -> io::Result<()> {
        let held = || io::Error::new(io::ErrorKind::WouldBlock, "its shim lives");
        let mut file = self.locked()?.ok_or_else(held)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // Half an order would hide what follows it.
        let whole: usize = frames(&bytes).map(<[u8]>::len).sum();
        file.set_len(whole as u64)?;
        append(&file, &Entry::Claimed { pid: std::process::id() })?;
        append(&file, &Entry::Ended(exit.clone().into()))
    }

    /// The log with its lock; `None` if the run is claimed, or there is no log. A check whether a shim lives also holds
    /// the lock for a moment, which this waits for.
    fn locked_for_claim(&self) -> io::Result<Option<Flock<File>>> {
        loop {
            if let Some(file) = self.locked()? {
                return Ok(Some(file));
            }
            if self.log()?.is_none_or(|log| log.claimed) {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The log with its lock; `None` if somebody has it, or there is no log.
    fn locked(&self) -> io::Result<Option<Flock<File>>> {
        let file = match OpenOptions::new().read(true).append(true).open(self.file(LOG)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(lock)),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// Output before this is no longer on the disk.
    pub fn released(&self) -> u64 {
        let bytes = fs::read(self.file(RELEASED)).unwrap_or_default();
        bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
    }

    /// Records that output before an offset will no longer be on the disk.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn set_released(&self, offset: u64) -> io::Result<()> {
        overwrite(&self.file(RELEASED), 0o600, &offset.to_le_bytes())
    }

    /// The tasks are in the fence with this number, and contribute this.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn begin_fence(&self, number: u32, contribution: &[u8]) -> io::Result<()> {
        write_whole(&self.file(FENCE), &[&number.to_le_bytes(), contribution].concat())
    }

    /// The fence that the tasks are in, and what they contribute, if it has no answer yet.
    pub fn waiting_fence(&self) -> Option<(u32, Vec<u8>)> {
        if self.has_answered_fence() {
            return None;
        }
        let mut contribution = fs::read(self.file(FENCE)).ok()?;
        let number = contribution.first_chunk().map(|number| u32::from_le_bytes(*number))?;
        contribution.drain(..size_of::<u32>());
        Some((number, contribution))
    }

    /// Whether the fence that the tasks were in last has its answer.
    pub fn has_answered_fence(&self) -> bool {
        let number = number_at_start(&self.file(FENCE));
        number.is_some() && number == number_at_start(&self.file(FENCE_MET))
    }

    /// The last fence that is over, and its answer.
    pub fn last_fence(&self) -> Option<(u32, Result<Vec<u8>, String>)> {
        let number = number_at_start(&self.file(FENCE_MET))?;
        Some((number, self.fence_answer(number)?))
    }

    /// The tasks of a place of the step have ended.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn leave_fences(&self, place: u32) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(self.file(FENCE_LEFT))?;
        file.write_all(&place.to_le_bytes())
    }

    /// The places whose tasks have ended.
    pub fn left_fences(&self) -> Vec<u32> {
        let bytes = fs::read(self.file(FENCE_LEFT)).unwrap_or_default();
        bytes.as_chunks().0.iter().map(|place| u32::from_le_bytes(*place)).collect()
    }

    /// Keeps the answer to a fence: what all places have contributed, or why this cannot be.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn answer_fence(&self, number: u32, answer: Result<&[u8], &String>) -> io::Result<()> {
        let (is_broken, bytes) = answer.map_or_else(|why| (1, why.as_bytes()), |all| (0, all));
        write_whole(&self.file(FENCE_MET), &[&number.to_le_bytes()[..], &[is_broken], bytes].concat())
    }

    /// The answer to a fence, once there is one.
    pub fn fence_answer(&self, number: u32) -> Option<Result<Vec<u8>, String>> {
        let mut answer = fs::read(self.file(FENCE_MET)).ok()?;
        let (head, rest) = answer.split_first_chunk()?;
        let is_broken = *rest.first()? != 0;
        if u32::from_le_bytes(*head) != number {
            return None;
        }
        answer.drain(..=size_of::<u32>());
        Some(if is_broken { Err(String::from_utf8_lossy(&answer).into_owned()) } else { Ok(answer) })
    }

    /// Removes what its containers needed. None of their processes may be left.
    ///
    /// # Errors
    /// If the disk refuses, or something is mounted in it: files of a user would be removed.
    pub fn remove_container(&self) -> io::Result<()> {
        let container = self.file(CONTAINER);
        if !container.exists() {
            return Ok(());
        }
        if has_mounts(&container)? {
            return Err(io::Error::other(format!("something is mounted in {}", container.display())));
        }
        removal::remove(&container)
    }

    /// Removes what only steps have, so that the folder can serve another run.
    fn remove_files_of_steps(&self) -> io::Result<()> {
        OF_STEPS.iter().try_for_each(|name| match fs::remove_file(self.file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        })
    }

    /// Syncs the result to the disk: it may have to stay for long.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn sync_result(&self) -> io::Result<()> {
        File::open(self.file(LOG))?.sync_all()?;
        File::open(&self.path)?.sync_all()?;
        File::open(self.path.parent().unwrap_or(&self.path))?.sync_all()
    }
}

/// Whether something is mounted in a folder, or on it.
fn has_mounts(folder: &Path) -> io::Result<bool> {
    // As the list writes it.
    let folder = folder.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040");
    let mounts = fs::read("/proc/self/mountinfo")?;
    let mounts = String::from_utf8_lossy(&mounts);
    Ok(mounts.lines().filter_map(|line| line.split(' ').nth(4)).any(|place| Path::new(place).starts_with(&folder)))
}

/// The first number of a file.
fn number_at_start(path: &Path) -> Option<u32> {
    let mut number = [0; size_of::<u32>()];
    File::open(path).ok()?.read_exact(&mut number).ok()?;
    Some(u32::from_le_bytes(number))
}

/// A folder with what all runs of a user need: what does not change from run to run.
fn make_folder(path: &Path, identity: &Identity) -> io::Result<()> {
    DirBuilder::new().mode(0o711).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o711))?;
    mkfifo(&path.join(CONTROL), Mode::S_IRUSR | Mode::S_IWUSR)?;
    DirBuilder::new().mode(0o700).create(path.join(TEMPORARY))?;
    give(&path.join(TEMPORARY), identity)
}

/// Gives a file to the user, if this process may.
///
/// # Errors
/// If the disk refuses.
pub fn give(path: &Path, identity: &Identity) -> io::Result<()> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    Ok(chown(path, Some(Uid::from_raw(identity.uid)), Some(Gid::from_raw(identity.gid)))?)
}

/// Writes bytes and mode to the file. Its old content is not removed first, so that it keeps its place on the disk.
///
/// # Errors
/// If the disk refuses.
pub fn overwrite(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

/// Writes the entry, or leaves the log unchanged: half an entry would hide what follows it.
fn append(mut file: &File, entry: &Entry) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(&encode(entry)?).inspect_err(|_| drop(file.set_len(before)))
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

fn encode<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    codec::encode(value).map_err(io::Error::other)
}

/// The file has these bytes or the previous ones, never a part of them.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    private().create(true).truncate(true).write(true).open(&temporary)?.write_all(bytes)?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{order, spooled};
    use muster_schemas::{PartId, RunId, event::EndCause, job::Usage};

    const KEY: RunKey = RunKey::whole(PartId::new(RunId(7), 0));

    fn spool() -> (tempfile::TempDir, Spool) {
        let temporary = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(temporary.path()).unwrap();
        spool.create(&spooled(order(7))).unwrap();
        (temporary, spool)
    }

    fn exit() -> NodeExit {
        NodeExit {
            status: None,
            cause: EndCause::Lost("x".into()),
            usage: Usage::default(),
            started: None,
            ended: Timestamp(3),
        }
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
        let (_temporary, spool) = spool();
        assert_eq!(spool.keys().unwrap(), [KEY]);
        let run = spool.run(KEY);
        assert!(run.claim(RunKey::whole(PartId::new(RunId(8), 0))).unwrap().is_none(), "another run's order");
        assert!(!run.is_held().unwrap());
        let claim = run.claim(KEY).unwrap().unwrap();
        assert_eq!(claim.order, spooled(order(7)));
        assert!(run.claim(KEY).unwrap().is_none());
        assert!(run.is_held().unwrap());
        assert!(run.close(&exit()).is_err());
        claim.started(Timestamp(9)).unwrap();
        drop(claim);
        assert!(!run.is_held().unwrap());
        assert!(run.claim(KEY).unwrap().is_none());
        let log = run.log().unwrap().unwrap();
        assert_eq!((log.claimed, log.started, log.end), (true, Some(Timestamp(9)), None));
        run.close(&exit()).unwrap();
        run.sync_result().unwrap();
        assert_eq!(run.log().unwrap().unwrap().end, Some(exit().into()));
    }

    #[test]
    fn a_folder_is_used_again_for_the_same_user_only() {
        let (_temporary, mut spool) = spool();
        fs::write(spool.run(KEY).file(SCRIPT), "seven").unwrap();
        spool.recycle(KEY).unwrap();
        spool.recycle(KEY).unwrap();
        assert_eq!(spool.keys().unwrap(), []);
        assert!(spool.run(KEY).claim(KEY).unwrap().is_none(), "a run that is gone cannot be started");
        let mut other = spooled(order(8));
        other.identity.uid = 65_534;
        spool.create(&other).unwrap();
        assert!(!spool.run(other.key()).file(SCRIPT).exists());
        drop(spool.run(KEY));
        let root = spool.root().to_owned();
        drop(spool);
        let mut spool = Spool::open(&root).unwrap();
        spool.create(&spooled(order(9))).unwrap();
        let run = spool.run(RunKey::whole(PartId::new(RunId(9), 0)));
        assert!(run.file(SCRIPT).exists());
        assert_eq!(run.log().unwrap().unwrap(), RunLog { order: Some(spooled(order(9))), ..RunLog::default() });
    }

    #[test]
    fn what_is_mounted_is_not_removed() {
        assert!(has_mounts(Path::new("/proc")).unwrap());
        assert!(has_mounts(Path::new("/")).unwrap());
        let (_temporary, spool) = spool();
        let run = spool.run(KEY);
        run.remove_container().unwrap();
        fs::create_dir_all(run.file(CONTAINER).join("root/x")).unwrap();
        assert!(!has_mounts(&run.file(CONTAINER)).unwrap());
        run.remove_container().unwrap();
        assert!(!run.file(CONTAINER).exists());
    }

    /// SL-W-08: an executor that restarts finds the fence that the tasks are in, and answers it once.
    #[test]
    fn a_fence_waits_in_the_spool_until_it_has_an_answer() {
        let (_temporary, spool) = spool();
        let run = spool.run(KEY);
        assert_eq!(run.waiting_fence(), None);
        run.begin_fence(0, b"mine").unwrap();
        assert_eq!((run.waiting_fence(), run.fence_answer(0)), (Some((0, b"mine".to_vec())), None));
        run.answer_fence(0, Ok(b"all")).unwrap();
        assert_eq!((run.waiting_fence(), run.fence_answer(0)), (None, Some(Ok(b"all".to_vec()))));
        run.begin_fence(1, b"").unwrap();
        assert_eq!((run.waiting_fence(), run.fence_answer(1)), (Some((1, Vec::new())), None));
        run.answer_fence(1, Err(&"gone".to_owned())).unwrap();
        assert_eq!(run.fence_answer(1), Some(Err("gone".to_owned())));
        assert_eq!((run.has_answered_fence(), run.last_fence()), (true, Some((1, Err("gone".to_owned())))));
        run.leave_fences(3).unwrap();
        run.leave_fences(1).unwrap();
        assert_eq!(run.left_fences(), [3, 1]);
    }

    #[test]
    fn the_numbers_of_gpus_outlive_an_executor() {
        let (_temporary, spool) = spool();
        assert_eq!(spool.gpus(), []);
        let gpus = ["nvidia:/dev/nvidia1", "amd:/dev/dri/renderD128,/dev/dri/card0"].map(|gpu| gpu.parse().unwrap());
        spool.set_gpus(&gpus).unwrap();
        assert_eq!(spool.gpus(), gpus);
    }

    #[test]
    fn half_an_order_is_none_and_can_be_closed() {
        let (_temporary, spool) = spool();
        let run = spool.run(KEY);
        let bytes = fs::read(run.file(LOG)).unwrap();
        fs::write(run.file(LOG), &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(run.log().unwrap(), Some(RunLog::default()));
        assert!(run.claim(KEY).unwrap().is_none());
        run.close(&exit()).unwrap();
        assert_eq!(run.log().unwrap().unwrap().end, Some(exit().into()));
    }

    #[test]
    fn a_spool_with_runs_stays_with_its_cluster() {
        let (_temporary, mut spool) = spool();
        assert!(!spool.bind_to_cluster("a").unwrap());
        set_epoch(spool.root(), 7).unwrap();
        assert!(!spool.bind_to_cluster("a").unwrap());
        assert!(matches!(spool.bind_to_cluster("b"), Err(SpoolError::OtherCluster { .. })));
        assert_eq!(epoch(spool.root()).unwrap(), 7);
        spool.recycle(KEY).unwrap();
        assert!(spool.bind_to_cluster("b").unwrap());
        assert_eq!(epoch(spool.root()).unwrap(), 0);
    }
}
