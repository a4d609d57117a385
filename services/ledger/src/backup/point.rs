//! One moment of a running log. The ledger makes it on request, in no time: hard links to its files, beside the log. It
//! stays for as long as whoever asked is connected, so nothing remains of a backup that is killed.
//!
//! The request comes on a socket in the ledger's folder, which only root and the ledger's user can enter.

use crate::{
    fence::Fence,
    hex,
    log::{Head, Log, LogError},
    signing::Signer,
    storage::{BACKUP_SOCKET, Layout, Storage},
    witness::{End, Witness},
};
use anyhow::{Context as _, bail};
use muster_schemas::{codec, ids::Sequence, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    io::{BufRead as _, Write as _},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The request, as a line.
const REQUEST: &str = "point";
/// The longest line in either direction.
const MAX_LINE_BYTES: u64 = 64 << 10;
/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_secs(1);
/// How long to wait for the request, or for the answer.
const LINE_WITHIN: Duration = Duration::from_secs(60);

/// A moment of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    /// The cluster that the log belongs to.
    pub(super) cluster_id: uuid::Uuid,
    /// The cluster's public key, in hexadecimal digits.
    pub(super) public_key: String,
    /// The last record.
    pub(super) sequence: Sequence,
    /// Its hash, in hexadecimal digits.
    pub(super) hash: String,
    /// Its time.
    pub(super) time: Timestamp,
    /// What the ledger may have written.
    pub(super) feature_level: u32,
    /// The witness of this end.
    pub(super) witness: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Point(Point),
    Refused(String),
}

/// Serves the socket of a running ledger until `shutdown`; `None` if it cannot be made, and then there are no backups.
pub(crate) fn listen(
    storage: &Arc<Storage>,
    signer: &Arc<Signer>,
    fence: &Fence,
    shutdown: &CancellationToken,
) -> Option<TaskTracker> {
    // Left by a ledger that was killed.
    if let Err(error) = forget(storage.layout()) {
        tracing::warn!(%error, "the remains of a backup cannot be removed");
    }
    let listener = match bind(storage.layout()) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "`muster backup` cannot reach this ledger: its socket cannot be made");
            return None;
        }
    };
    let desk = Desk {
        storage: Arc::clone(storage),
        signer: Arc::clone(signer),
        fence: fence.clone(),
        room: Arc::new(Semaphore::new(1)),
    };
    let tasks = TaskTracker::new();
    let (shutdown, all) = (shutdown.clone(), tasks.clone());
    let socket = storage.layout().backup_socket();
    tasks.spawn(async move {
        while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, _)) => drop(all.spawn(desk.clone().serve(stream, shutdown.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "a backup cannot reach this ledger");
                    shutdown.run_until_cancelled(tokio::time::sleep(PAUSE)).await;
                }
            }
        }
        // Nobody else listens on this folder as long as this ledger has the log.
        let _ = fs::remove_file(socket);
    });
    tasks.close();
    Some(tasks)
}

fn bind(layout: &Layout) -> io::Result<UnixListener> {
    // By its descriptor: the path of a socket can only be short.
    let folder = fs::File::open(layout.own())?;
    let path = through(&folder);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => UnixListener::bind(&path),
    }
}

fn through(folder: &fs::File) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(BACKUP_SOCKET)
}

/// Removes what is left of a moment.
fn forget(layout: &Layout) -> io::Result<()> {
    let folder = layout.backup_point();
    // RocksDB makes it under this name first.
    for folder in [folder.with_extension("tmp"), folder] {
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[derive(Clone)]
struct Desk {
    storage: Arc<Storage>,
    signer: Arc<Signer>,
    fence: Fence,
    /// For one moment at a time.
    room: Arc<Semaphore>,
}

impl Desk {
    async fn serve(self, stream: UnixStream, shutdown: CancellationToken) {
        if let Some(Err(error)) = shutdown.run_until_cancelled(self.converse(stream)).await {
            tracing::debug!(%error, "the connection of a backup has ended");
        }
    }

    async fn converse(&self, stream: UnixStream) -> io::Result<()> {
        let peer = stream.peer_cred()?.uid();
        let (reading, mut writing) = stream.into_split();
        let mut reading = tokio::io::BufReader::new(reading.take(MAX_LINE_BYTES));
        let mut line = String::new();
        tokio::time::timeout(LINE_WITHIN, reading.read_line(&mut line)).await??;
        if line.trim_end() != REQUEST || (peer != 0 && peer != crate::own_user()) {
            return Ok(());
        }
        let Ok(_room) = self.room.try_acquire() else {
            return say(&mut writing, &Answer::Refused("another backup of this ledger is being made".to_owned())).await;
        };
        let _remains = Remains(Arc::clone(&self.storage));
        let (storage, signer, fence) = (Arc::clone(&self.storage), Arc::clone(&self.signer), self.fence.clone());
        let made = tokio::task::spawn_blocking(move || make(&storage, &signer, &fence)).await;
        let answer = match made {
            Ok(Ok(point)) => Answer::Point(point),
            Ok(Err(error)) => Answer::Refused(format!("{error:#}")),
            Err(error) => Answer::Refused(error.to_string()),
        };
        say(&mut writing, &answer).await?;
        if matches!(answer, Answer::Point(_)) {
            // Nothing more is said: this ends with the connection.
            reading.read_line(&mut line).await?;
        }
        Ok(())
    }
}

/// Removes the moment when it is no longer wanted.
struct Remains(Arc<Storage>);

impl Drop for Remains {
    fn drop(&mut self) {
        if let Err(error) = forget(self.0.layout()) {
            tracing::warn!(%error, "what was made for a backup cannot be removed");
        }
    }
}

async fn say(writing: &mut tokio::net::unix::OwnedWriteHalf, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    writing.write_all(&line).await
}

fn make(storage: &Storage, signer: &Signer, fence: &Fence) -> anyhow::Result<Point> {
    if let Some(refusal) = fence.objection() {
        bail!("{}", refusal.message);
    }
    let layout = storage.layout();
    forget(layout).context("the remains of another backup cannot be removed")?;
    storage.log()?.checkpoint(&layout.backup_point())?;
    let log = Log::open_read_only(&layout.backup_point())?;
    let head @ Head { sequence, hash, time } = log.head()?;
    let identity = log.identity()?.ok_or_else(|| LogError::Missing(layout.log()))?;
    Ok(Point {
        cluster_id: uuid::Uuid::from_bytes(identity.cluster_id.0),
        public_key: hex(&identity.public_key),
        sequence,
        hash: hex(&hash),
        time,
        feature_level: codec::FEATURE_LEVEL,
        witness: Witness::sign(identity.cluster_id, head, End::Closed, signer).render(),
    })
}

/// A moment of a running ledger, for as long as this value lives.
pub(super) struct Held {
    pub(super) point: Point,
    connection: std::os::unix::net::UnixStream,
}

impl Held {
    /// Asks the ledger of a data folder for one.
    ///
    /// # Errors
    /// If none runs there, this user may not ask it, or it refuses.
    pub(super) fn ask(layout: &Layout) -> anyhow::Result<Self> {
        let own = layout.own();
        let folder = fs::File::open(&own).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow::anyhow!("there is no ledger in {}", own.display()),
            io::ErrorKind::PermissionDenied => anyhow::anyhow!(
                "{} is closed to this user: root and the user that runs the ledger can make a backup",
                own.display()
            ),
            _ => anyhow::anyhow!("{}: {error}", own.display()),
        })?;
        let nobody = || {
            format!(
                "no ledger runs on {}: start it. The files of a stopped ledger can simply be copied",
                layout.log().display()
            )
        };
        let connection = std::os::unix::net::UnixStream::connect(through(&folder)).with_context(nobody)?;
        connection.set_read_timeout(Some(LINE_WITHIN))?;
        (&connection).write_all(format!("{REQUEST}\n").as_bytes())?;
        let mut line = String::new();
        let limited = io::Read::take(&connection, MAX_LINE_BYTES);
        io::BufReader::new(limited).read_line(&mut line).context("the ledger does not answer")?;
        if line.is_empty() {
            bail!("the ledger does not let this user make a backup: be root, or the user that runs it");
        }
        match serde_json::from_str(&line).context("the ledger's answer cannot be understood")? {
            Answer::Point(point) => Ok(Self { point, connection }),
            Answer::Refused(why) => bail!("the ledger refuses: {why}"),
        }
    }

    /// Whether the ledger has stopped, which takes the files away.
    pub(super) fn is_gone(&self) -> bool {
        let mut byte = [0];
        let _ = self.connection.set_nonblocking(true);
        matches!(io::Read::read(&mut &self.connection, &mut byte), Ok(0))
    }
}

impl Drop for Held {
    /// Waits until the ledger has removed the moment: the next backup finds it free.
    fn drop(&mut self) {
        let _ = self.connection.set_nonblocking(false);
        let _ = self.connection.set_read_timeout(Some(LINE_WITHIN));
        if self.connection.shutdown(std::net::Shutdown::Write).is_ok() {
            let _ = io::Read::read(&mut &self.connection, &mut [0]);
        }
    }
}
