//! The folders of jobs.
//!
//! ```text
//! jobs/PART/order    the order, in the encoding of orders
//! jobs/PART/files    the folder of the job
//! jobs/PART/before   what was in it before its command started; until it is there, the job is being prepared
//! jobs/PART/left     the archive of what it left
//! ```

use anyhow::Context as _;
use muster_archive::{Known, Limits, changed, files_of, pack, unpack};
use muster_schemas::{PartId, codec, node::LaunchOrder};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// The folders of jobs.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    folder: PathBuf,
    max_bytes: u64,
}

impl Work {
    pub(crate) fn open(folder: PathBuf, max_bytes: u64) -> anyhow::Result<Self> {
        make(&folder)?;
        Ok(Self { folder, max_bytes })
    }

    fn of(&self, part: PartId) -> PathBuf {
        self.folder.join(part.to_number().to_string())
    }

    /// The folder of a job.
    pub(crate) fn files(&self, part: PartId) -> PathBuf {
        self.of(part).join("files")
    }

    /// The orders of an earlier agent, and whether their folders are ready.
    pub(crate) fn found(&self) -> Vec<(LaunchOrder, bool)> {
        let read = fs::read_dir(&self.folder).into_iter().flatten();
        let parts = read.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).map(PartId::from_number);
        parts.filter_map(|part| Some((self.order(part)?, self.of(part).join("before").exists()))).collect()
    }

    /// The order of a part that is here.
    pub(crate) fn order(&self, part: PartId) -> Option<LaunchOrder> {
        codec::decode(&fs::read(self.of(part).join("order")).ok()?).ok()
    }

    /// Makes a fresh folder for a job, in place of any that is there, and keeps its order.
    pub(crate) fn begin(&self, order: &LaunchOrder) -> anyhow::Result<()> {
        let place = self.of(order.part);
        self.remove(order.part);
        make(&place)?;
        make(&place.join("files"))?;
        write(&place, "order", &codec::encode(order)?)
    }

    /// Unpacks the files that a job brings, and notes what is in its folder before its command starts.
    pub(crate) fn fill(&self, part: PartId, archive: Option<File>) -> anyhow::Result<()> {
        let files = self.files(part);
        if let Some(mut archive) = archive {
            unpack(&mut archive, &files, Limits::of_bytes(self.max_bytes))?;
        }
        let before: Vec<(PathBuf, Known)> = files_of(&files)?.into_iter().collect();
        write(&self.of(part), "before", &serde_json::to_vec(&before)?)
    }

    /// The archive of the files that are new or changed (OAR-K-07); `None` if there are none.
    pub(crate) fn pack(&self, part: PartId) -> anyhow::Result<Option<File>> {
        let (place, files) = (self.of(part), self.files(part));
        let Ok(before) = fs::read(place.join("before")) else { return Ok(None) };
        let before: Vec<(PathBuf, Known)> = serde_json::from_slice(&before)?;
        let before: BTreeMap<PathBuf, Known> = before.into_iter().collect();
        let changed = changed(&before, &files_of(&files)?);
        if changed.is_empty() {
            return Ok(None);
        }
        let path = place.join("left");
        pack(&files, &changed, File::create(&path)?, self.max_bytes)?;
        Ok(Some(File::open(path)?))
    }

    /// Removes everything of a job.
    pub(crate) fn remove(&self, part: PartId) {
        if let Err(error) = fs::remove_dir_all(self.of(part))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%part, %error, "the folder of a job cannot be removed");
        }
    }
}

fn make(folder: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("{} cannot be made", folder.display()))
}

/// Writes a file that is there as a whole or not at all.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, bytes)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name))?;
    Ok(())
}
