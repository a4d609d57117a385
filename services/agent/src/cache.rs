//! The files that jobs bring, once for each checksum (OAR-K-08).

use crate::server::Server;
use anyhow::{Context as _, ensure};
use muster_archive::sum_of;
use muster_client::ClientError;
use muster_schemas::{PartId, agent::is_sum, job::StageIn};
use std::{
    fs::{self, File},
    path::PathBuf,
    time::{Duration, SystemTime},
};
use tokio::sync::Mutex;

/// The archives in a folder.
#[derive(Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
    keep: Duration,
    /// One at a time: jobs that start together mostly bring the same.
    turn: Mutex<()>,
}

impl Cache {
    /// The archives that are there. What an earlier agent had fetched in part is removed.
    pub(crate) fn open(folder: PathBuf, keep: Duration) -> anyhow::Result<Self> {
        fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let cache = Self { folder, keep, turn: Mutex::new(()) };
        for path in cache.entries() {
            if path.file_name().and_then(|name| name.to_str()).is_none_or(|name| !is_sum(name)) {
                let _ = fs::remove_file(path);
            }
        }
        Ok(cache)
    }

    /// An archive, from here or from the gateway. One that comes changed, or not as a whole, is discarded.
    pub(crate) async fn get(&self, server: &Server, part: PartId, wanted: &StageIn) -> anyhow::Result<File> {
        ensure!(is_sum(&wanted.sum), "the checksum of the files is malformed");
        let _turn = self.turn.lock().await;
        let path = self.folder.join(&wanted.sum);
        if let Ok(file) = File::options().read(true).write(true).open(&path) {
            file.set_modified(SystemTime::now())?;
            return Ok(file);
        }
        let fetching = tempfile::NamedTempFile::new_in(&self.folder)?;
        let (sum, bytes) = (wanted.sum.clone(), wanted.bytes);
        server.fetch(part, (sum, bytes), fetching.reopen()?).await?;
        let found = sum_of(&mut fetching.reopen()?)?;
        ensure!(found == (wanted.sum.clone(), wanted.bytes), "the files came changed");
        Ok(fetching.persist(path)?)
    }

    /// Removes what was unused for too long.
    pub(crate) fn tidy(&self, now: SystemTime) {
        for path in self.entries() {
            let used = fs::metadata(&path).and_then(|facts| facts.modified());
            if used.is_ok_and(|used| now.duration_since(used).is_ok_and(|age| age > self.keep)) {
                let _ = fs::remove_file(path);
            }
        }
    }

    fn entries(&self) -> Vec<PathBuf> {
        let read = fs::read_dir(&self.folder).into_iter().flatten();
        read.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }
}

/// Whether the same attempt may succeed later.
pub(crate) fn may_pass(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ClientError>().is_some_and(ClientError::may_pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAR-K-08: what is unused for 300 seconds goes, and what was fetched in part never counts.
    #[test]
    fn archives_are_kept_while_they_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let sum = "ab".repeat(32);
        fs::write(folder.path().join(&sum), "whole").unwrap();
        fs::write(folder.path().join(".tmpXYZ"), "in part").unwrap();
        let cache = Cache::open(folder.path().to_owned(), Duration::from_secs(300)).unwrap();
        assert_eq!(cache.entries(), [folder.path().join(&sum)]);
        let now = SystemTime::now();
        cache.tidy(now + Duration::from_secs(290));
        assert_eq!(cache.entries().len(), 1);
        cache.tidy(now + Duration::from_secs(310));
        assert_eq!(cache.entries().len(), 0);
    }
}
