//! The archives that a gateway keeps: what users send with their jobs, and what agents send back.
//!
//! ```text
//! in/UID/SUM        an archive of a user, whole
//! in/UID/SUM.part   one that is on its way
//! in/UID/name.NAME  the sum of an archive under a name that the user gave it
//! out/NODE/PART     what a job has left, on its way
//! ```

use crate::error::ApiError;
use bytes::Bytes;
use muster_archive::{Limits, check, is_gzip, sum_of};
use muster_schemas::{
    PartId,
    agent::{AgentOutput, KnownArchive, PIECE_BYTES, is_sum, to_hex},
    job::StageIn,
    views::ErrorCode,
};
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Archives, pieces and names in a folder: of a user, or of a node.
const MOST_FILES: usize = 1_000;
/// Archives of a user, or of a node: as many bytes as this many of the largest.
const ARCHIVES_PER_FOLDER: u64 = 8;
/// An archive that is unused for this long is removed, unless a job needs it.
const KEPT: Duration = Duration::from_secs(86_400);
/// The longest name that a user gives an archive.
const MAX_NAME: usize = 128;

/// The archives.
#[derive(Clone, Debug)]
pub(crate) struct Archives {
    folder: Option<PathBuf>,
    max_bytes: u64,
}

/// A piece of an archive.
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
}

impl Archives {
    pub(crate) fn new(folder: Option<PathBuf>, max_bytes: u64) -> Self {
        Self { folder, max_bytes }
    }

    /// Facts about an archive of a user, by its sum or by the name that it was given.
    pub(crate) async fn known(&self, uid: u32, name: String) -> Result<KnownArchive, ApiError> {
        self.blocking(move |all| all.known_now(uid, &name)).await
    }

    /// Adds a piece to an archive of a user. The last piece makes it whole if it is what its sum says and can be unpacked.
    pub(crate) async fn add(&self, uid: u32, piece: NewPiece) -> Result<KnownArchive, ApiError> {
        self.blocking(move |all| all.add_now(uid, &piece)).await
    }

    /// A piece of an archive of a user; `None` if it is not there.
    pub(crate) async fn piece(&self, uid: u32, sum: &str, offset: u64) -> Result<Option<Piece>, ApiError> {
        let sum = sum.to_owned();
        self.blocking(move |all| all.piece_now(uid, &sum, offset)).await
    }

    /// Adds a piece to what a job has left; returns how many bytes are there.
    pub(crate) async fn add_output(
        &self,
        node: &str,
        part: PartId,
        offset: u64,
        bytes: Bytes,
    ) -> Result<u64, ApiError> {
        let node = node.to_owned();
        self.blocking(move |all| {
            let path = all.output(&node, part)?;
            if let Some(folder) = path.parent() {
                all.require_room(folder, &path, offset.saturating_add(bytes.len() as u64))?;
            }
            all.write(&path, offset, &bytes)
        })
        .await
    }

    /// What a job has left, if all of it has arrived.
    pub(crate) async fn whole_output(&self, node: &str, part: PartId, said: &AgentOutput) -> Result<File, ApiError> {
        let (node, said) = (node.to_owned(), said.clone());
        self.blocking(move |all| {
            let path = all.output(&node, part)?;
            let mut file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(ApiError::new(ErrorCode::Conflict, "the archive has not arrived: send it first"));
                }
                Err(error) => return Err(failed(&error)),
            };
            if sum_of(&mut file).map_err(|error| failed(&error))? != (said.sum, said.bytes) {
                // It is of no use; the agent begins again.
                let _ = fs::remove_file(&path);
                return Err(ApiError::new(ErrorCode::Conflict, "the archive has arrived changed: send it again"));
            }
            Ok(file)
        })
        .await
    }

    /// What a job has left is where it belongs.
    pub(crate) async fn forget_output(&self, node: &str, part: PartId) {
        let node = node.to_owned();
        let removed = self.blocking(move |all| {
            // Most jobs leave nothing.
            let _ = fs::remove_file(all.output(&node, part)?);
            Ok(())
        });
        if let Err(error) = removed.await {
            tracing::debug!(error = error.0.message, "an archive was not removed");
        }
    }

    /// Removes archives that were not used for a day and that `is_needed` does not name, by user and sum (OAR-K-08), and what
    /// jobs left that nobody asked for. Returns what it would remove if it is not needed.
    pub(crate) fn unused(&self, now: SystemTime) -> Vec<(Option<u32>, PathBuf)> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let mut found = Vec::new();
        for (top, is_in) in [("in", true), ("out", false)] {
            for inner in entries(&folder.join(top)) {
                let uid = is_in.then(|| inner.file_name()?.to_str()?.parse().ok()).flatten();
                let is_old = |path: &PathBuf| {
                    let touched = fs::metadata(path).and_then(|facts| facts.modified());
                    touched.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > KEPT))
                };
                found.extend(entries(&inner).into_iter().filter(is_old).map(|path| (uid, path)));
            }
        }
        found
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let all = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&all)).await;
        done.unwrap_or_else(|_| Err(ApiError::unavailable("the gateway is stopping")))
    }

    fn root(&self) -> Result<&Path, ApiError> {
        let none = || ApiError::new(ErrorCode::Unavailable, "this gateway keeps no archives");
        self.folder.as_deref().ok_or_else(none)
    }

    fn of_user(&self, uid: u32) -> Result<PathBuf, ApiError> {
        make(self.root()?.join("in").join(uid.to_string()))
    }

    fn output(&self, node: &str, part: PartId) -> Result<PathBuf, ApiError> {
        // The name of a node can hold anything.
        let node = to_hex(node.as_bytes());
        let name = if node.len() > 200 { blake3::hash(node.as_bytes()).to_hex().to_string() } else { node };
        Ok(make(self.root()?.join("out").join(name))?.join(part.to_number().to_string()))
    }

    fn known_now(&self, uid: u32, name: &str) -> Result<KnownArchive, ApiError> {
        let folder = self.of_user(uid)?;
        let sum = match is_sum(name) {
            true => name.to_owned(),
            false => match fs::read_to_string(folder.join(named(name)?)) {
                Ok(sum) if is_sum(&sum) => sum,
                _ => return Ok(KnownArchive { archive: None, bytes: 0 }),
            },
        };
        let path = folder.join(&sum);
        if let Ok(mut file) = OpenOptions::new().read(true).write(true).open(&path) {
            let bytes = file.metadata().map_err(|error| failed(&error))?.len();
            let is_gzip = is_gzip(&mut file).map_err(|error| failed(&error))?;
            // It is used from now on.
            file.set_modified(SystemTime::now()).map_err(|error| failed(&error))?;
            return Ok(KnownArchive { archive: Some(StageIn { sum, bytes, is_gzip }), bytes });
        }
        let bytes = fs::metadata(part_of(&path)).map_or(0, |facts| facts.len());
        Ok(KnownArchive { archive: None, bytes })
    }

    fn add_now(&self, uid: u32, piece: &NewPiece) -> Result<KnownArchive, ApiError> {
        let NewPiece { sum, offset, total, name, bytes } = piece;
        if !is_sum(sum) {
            return Err(ApiError::malformed("the sum is the BLAKE3 hash of the archive, in 64 hexadecimal digits"));
        }
        if *total == 0 || *total > self.max_bytes {
            let message = format!("an archive has 1 to {} bytes", self.max_bytes);
            return Err(ApiError::new(ErrorCode::TooLarge, message));
        }
        let folder = self.of_user(uid)?;
        let path = folder.join(sum);
        if !path.exists() {
            let part = part_of(&path);
            self.require_room(&folder, &part, *total)?;
            let there = self.write(&part, *offset, bytes)?;
            if there < *total {
                return Ok(KnownArchive { archive: None, bytes: there });
            }
            self.finish(&part, &path, sum)?;
        }
        if let Some(name) = name {
            let file = folder.join(named(name)?);
            self.require_room(&folder, &file, sum.len() as u64)?;
            fs::write(file, sum).map_err(|error| failed(&error))?;
        }
        self.known_now(uid, sum)
    }

    /// The archive is whole.
    fn finish(&self, part: &Path, path: &Path, sum: &str) -> Result<(), ApiError> {
        let mut file = File::open(part).map_err(|error| failed(&error))?;
        let (found, _) = sum_of(&mut file).map_err(|error| failed(&error))?;
        let checked = match found == *sum {
            true => check(&mut file, Limits::of_bytes(self.max_bytes)).map_err(|error| error.to_string()),
            false => Err("the archive is not the one that the sum names".to_owned()),
        };
        if let Err(why) = checked {
            // A partial or wrong archive is of no use to anybody.
            let _ = fs::remove_file(part);
            return Err(ApiError::invalid(why));
        }
        fs::rename(part, path).map_err(|error| failed(&error))
    }

    /// Whether a folder has room for this part when it is whole.
    fn require_room(&self, folder: &Path, part: &Path, total: u64) -> Result<(), ApiError> {
        let all = entries(folder);
        let others = all.iter().filter(|path| path.as_path() != part);
        let used: u64 = others.filter_map(|path| fs::metadata(path).ok()).map(|facts| facts.len()).sum();
        let most = self.max_bytes.saturating_mul(ARCHIVES_PER_FOLDER);
        if used.saturating_add(total) > most {
            let message = format!("{used} bytes are kept here, and {most} are the most; unused ones go after a day");
            return Err(ApiError::new(ErrorCode::LimitReached, message));
        }
        if all.len() >= MOST_FILES && !part.exists() {
            let message = format!("{MOST_FILES} archives and names are kept at most; unused ones go after a day");
            return Err(ApiError::new(ErrorCode::LimitReached, message));
        }
        Ok(())
    }

    fn piece_now(&self, uid: u32, sum: &str, offset: u64) -> Result<Option<Piece>, ApiError> {
        if !is_sum(sum) || self.known_now(uid, sum)?.archive.is_none() {
            return Ok(None);
        }
        let path = self.of_user(uid)?.join(sum);
        let file = File::open(path).map_err(|error| failed(&error))?;
        let length = file.metadata().map_err(|error| failed(&error))?.len();
        let left = length.saturating_sub(offset).min(PIECE_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(PIECE_BYTES)];
        file.read_exact_at(&mut bytes, offset).map_err(|error| failed(&error))?;
        Ok(Some(Piece { bytes }))
    }

    /// Writes a piece where it belongs. Pieces may be repeated, and may not leave a gap. Returns how many bytes are there.
    fn write(&self, path: &Path, offset: u64, bytes: &[u8]) -> Result<u64, ApiError> {
        let file = OpenOptions::new().create(offset == 0).truncate(offset == 0).write(true).mode(0o600).open(path);
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("the piece begins at byte {offset}, and 0 are there");
                return Err(ApiError::new(ErrorCode::Conflict, message));
            }
            file => file.map_err(|error| failed(&error))?,
        };
        let there = file.metadata().map_err(|error| failed(&error))?.len();
        if offset > there {
            let message = format!("the piece begins at byte {offset}, and {there} are there");
            return Err(ApiError::new(ErrorCode::Conflict, message));
        }
        let end = offset.saturating_add(bytes.len() as u64);
        if end > self.max_bytes {
            let message = format!("an archive has at most {} bytes", self.max_bytes);
            return Err(ApiError::new(ErrorCode::TooLarge, message));
        }
        file.write_all_at(bytes, offset).map_err(|error| failed(&error))?;
        Ok(there.max(end))
    }
}

/// A piece of an archive of a user.
pub(crate) struct NewPiece {
    pub(crate) sum: String,
    pub(crate) offset: u64,
    /// The size of the whole archive.
    pub(crate) total: u64,
    /// A name that the archive can be found by, too.
    pub(crate) name: Option<String>,
    pub(crate) bytes: Bytes,
}

fn part_of(path: &Path) -> PathBuf {
    path.with_extension("part")
}

/// The file for a name that a user gives an archive.
fn named(name: &str) -> Result<String, ApiError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_plain) {
        return Err(ApiError::malformed(format!("a name has 1 to {MAX_NAME} letters, digits, `-`, `_` and `:`")));
    }
    Ok(format!("name.{name}"))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    read.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn make(folder: PathBuf) -> Result<PathBuf, ApiError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map(|()| folder).map_err(|error| failed(&error))
}

fn failed(error: &io::Error) -> ApiError {
    ApiError::new(ErrorCode::StorageFailed, format!("the archive cannot be kept: {error}"))
}
