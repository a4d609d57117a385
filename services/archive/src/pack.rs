//! Making archives of what is in a folder.

use crate::ArchiveError;
use flate2::{Compression, write::GzEncoder};
use nix::{
    fcntl::{OFlag, open},
    sys::stat::Mode,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What tells whether a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    bytes: u64,
    inode: u64,
    /// The times of the content and of the status, in nanoseconds: no program can set the second.
    modified: i128,
    changed: i128,
}

/// All files below a folder, by their path in it. Links and everything else that is no file are left out.
///
/// # Errors
/// A folder cannot be read.
pub fn files_of(folder: &Path) -> io::Result<BTreeMap<PathBuf, Known>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let path = below.join(entry.file_name());
            let facts = match entry.metadata() {
                Ok(facts) => facts,
                // It has just gone.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if facts.is_dir() {
                folders.push(path);
            } else if facts.is_file() {
                files.insert(path, known(&facts));
            }
        }
    }
    Ok(files)
}

fn known(facts: &fs::Metadata) -> Known {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    Known {
        bytes: facts.size(),
        inode: facts.ino(),
        modified: nanos(facts.mtime(), facts.mtime_nsec()),
        changed: nanos(facts.ctime(), facts.ctime_nsec()),
    }
}

/// The files that are new or changed since (OAR-K-07). Hidden ones stay where they are.
pub fn changed(before: &BTreeMap<PathBuf, Known>, now: &BTreeMap<PathBuf, Known>) -> Vec<PathBuf> {
    let is_hidden = |path: &Path| path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
    let news = now.iter().filter(|(path, known)| before.get(*path) != Some(known) && !is_hidden(path));
    news.map(|(path, _)| path.clone()).collect()
}

/// Writes an archive, compressed by gzip, of files below a folder. Files that have become something else are left out.
///
/// # Errors
/// A file cannot be read, they have more than `most_bytes` together, or the archive cannot be written.
pub fn pack(folder: &Path, files: &[PathBuf], into: File, most_bytes: u64) -> Result<(), ArchiveError> {
    let mut tar = tar::Builder::new(GzEncoder::new(into, Compression::fast()));
    let mut total = 0_u64;
    for path in files {
        let about = |error| ArchiveError::about(&path.display().to_string(), error);
        // A name of another kind would not be unpacked either.
        if path.to_str().is_none_or(|name| name.contains('\\')) {
            continue;
        }
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match open(&folder.join(path), flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(nix::errno::Errno::ENOENT | nix::errno::Errno::ELOOP) => continue,
            Err(error) => return Err(about(error.into())),
        };
        let facts = file.metadata().map_err(about)?;
        if !facts.is_file() {
            continue;
        }
        total = total.saturating_add(facts.size());
        if total > most_bytes {
            return ArchiveError::refused(format!("the files have more than {most_bytes} bytes"));
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(facts.size());
        header.set_mode(facts.mode() & 0o777);
        header.set_mtime(u64::try_from(facts.mtime()).unwrap_or_default());
        header.set_entry_type(tar::EntryType::Regular);
        let content = file.take(facts.size()).chain(io::repeat(0)).take(facts.size());
        tar.append_data(&mut header, path, content).map_err(about)?;
    }
    tar.into_inner()?.finish()?.flush()?;
    Ok(())
}
