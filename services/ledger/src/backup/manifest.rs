//! What a backup holds, and the backups of a folder.

use anyhow::{Context as _, bail, ensure};
use muster_schemas::{ids::Sequence, time::Timestamp};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

/// The version of the format.
const FORMAT: u32 = 1;
/// The file's name.
pub(super) const MANIFEST: &str = "manifest.json";
/// The end of the name of a backup that is not complete.
pub(super) const DRAFT: &str = ".draft";
/// The largest manifest.
const MAX_BYTES: u64 = 256 << 20;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this format.
    pub muster_backup: u32,
    /// When the backup was begun.
    pub made: Timestamp,
    /// The muster that made it.
    pub version: String,
    /// What the ledger may have written: see [`muster_schemas::codec::FEATURE_LEVEL`].
    pub feature_level: u32,
    /// The cluster.
    pub cluster_id: uuid::Uuid,
    /// The key that the log is signed with: the public half, in hexadecimal digits.
    pub public_key: String,
    /// Whether the private half is in the backup.
    pub has_key: bool,
    /// The last record.
    pub sequence: Sequence,
    /// Its hash, in hexadecimal digits.
    pub hash: String,
    /// Its time.
    pub time: Timestamp,
    /// The first record that was verified when the backup was made; `None` if it was not verified.
    pub verified_from: Option<Sequence>,
    /// The files.
    pub files: Vec<Kept>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its path in the backup.
    pub path: String,
    /// Its size, in bytes.
    pub bytes: u64,
    /// Its BLAKE3 checksum, in hexadecimal digits.
    pub blake3: String,
}

/// A backup in a folder of backups.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub manifest: Manifest,
    pub(super) folder: PathBuf,
}

impl Manifest {
    pub(super) const fn format() -> u32 {
        FORMAT
    }

    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn load(path: &Path) -> anyhow::Result<Self> {
        let mut text = Vec::new();
        crate::open_regular(path)?.take(MAX_BYTES).read_to_end(&mut text)?;
        let manifest: Self = serde_json::from_slice(&text).context("it is not what muster writes")?;
        ensure!(
            manifest.muster_backup == FORMAT,
            "it has format {}, and this muster knows {FORMAT}: a newer one made the backup",
            manifest.muster_backup
        );
        for file in &manifest.files {
            let path = Path::new(&file.path);
            let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
            let is_ours = path.starts_with("ledger") || file.path == KEY;
            ensure!(is_inside && is_ours, "it names a file that no backup has: {}", file.path);
        }
        Ok(manifest)
    }
}

/// The private key's path in a backup.
pub(super) const KEY: &str = "ledger.key";

/// The backups in a folder.
#[derive(Clone, Debug, Default)]
pub struct Backups {
    /// Those that are complete, the oldest first.
    pub whole: Vec<Listed>,
    /// Names of those whose manifests cannot be read, each with the reason.
    pub damaged: Vec<(String, String)>,
}

impl Backups {
    /// The latest backup, or the one of a name.
    ///
    /// # Errors
    /// If there is none, its manifest cannot be read, or that of another cannot be, which may be the latest.
    pub(super) fn choose(self, dir: &Path, name: Option<&str>) -> anyhow::Result<Listed> {
        let Self { whole, damaged } = self;
        let Some(name) = name else {
            if let Some((damaged, why)) = damaged.last() {
                bail!(
                    "backup {damaged} is damaged, so it is not certain which one is the latest: name the one to restore with \
                     --backup. {why}. Nothing was changed"
                );
            }
            let latest = whole.into_iter().next_back();
            return latest.with_context(|| format!("there is no backup in {}", dir.display()));
        };
        if let Some((_, why)) = damaged.into_iter().find(|(damaged, _)| damaged == name) {
            bail!("backup {name} is damaged: {why}");
        }
        let named = whole.into_iter().find(|backup| backup.name == name);
        named.with_context(|| {
            format!("there is no backup `{name}` in {}: `muster backup list` names them", dir.display())
        })
    }
}

/// The backups in a folder.
///
/// # Errors
/// If the folder cannot be read.
pub fn list(dir: &Path) -> anyhow::Result<Backups> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let Backups { mut whole, mut damaged } = Backups::default();
    for entry in entries {
        let entry = entry.with_context(|| dir.display().to_string())?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let folder = entry.path();
        let path = folder.join(MANIFEST);
        let is_whole = !name.ends_with(DRAFT) && path.symlink_metadata().is_ok();
        if is_whole {
            match Manifest::load(&path) {
                Ok(manifest) => whole.push(Listed { name, manifest, folder }),
                Err(error) => damaged.push((name, format!("{}: {error:#}", path.display()))),
            }
        }
    }
    whole.sort_by(|one, other| (one.manifest.made, &one.name).cmp(&(other.manifest.made, &other.name)));
    damaged.sort_unstable();
    Ok(Backups { whole, damaged })
}

/// A folder of backups, for one process at a time.
pub(super) struct Locked(#[expect(dead_code, reason = "it is locked as long as it is open")] fs::File);

impl Locked {
    /// # Errors
    /// If another process makes, removes or restores a backup there, or the folder cannot be read.
    pub(super) fn lock(dir: &Path) -> anyhow::Result<Self> {
        let folder = fs::File::open(dir).with_context(|| dir.display().to_string())?;
        match folder.try_lock() {
            Ok(()) => Ok(Self(folder)),
            Err(fs::TryLockError::WouldBlock) => {
                bail!("another backup or restore is at work in {}: wait until it has ended", dir.display())
            }
            Err(fs::TryLockError::Error(error)) => Err(error).with_context(|| dir.display().to_string()),
        }
    }
}
