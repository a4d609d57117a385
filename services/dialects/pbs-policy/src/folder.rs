//! Reads the policy files of a folder: the only I/O of this crate.

use crate::{check::FILES, lines::MOST_BYTES, lines::Source};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Why the files of a folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder itself.
    #[error("{} is not a folder with policy files: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file in it.
    #[error("cannot read {}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A pipe, a folder or something else where a file should be.
    #[error("{} is not a regular file", file.display())]
    NoFile {
        /// Its path.
        file: PathBuf,
    },
}

/// Reads the policy files of a folder such as `sched_priv`. Files that are not there are left out, and of a file that
/// is too large one byte more than is allowed is read, which [`crate::check::check`] reports.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub fn read(folder: &Path) -> Result<Vec<Source>, FolderError> {
    read_files(folder, &FILES)
}

/// Reads files of a folder, in the same way.
///
/// # Errors
/// The folder or a file in it cannot be read.
pub fn read_files(folder: &Path, names: &[&str]) -> Result<Vec<Source>, FolderError> {
    let folder_error = |source| FolderError::Folder { folder: folder.to_owned(), source };
    fs::read_dir(folder).map_err(folder_error)?;
    names.iter().filter_map(|name| read_file(folder, name).transpose()).collect()
}

fn read_file(folder: &Path, name: &str) -> Result<Option<Source>, FolderError> {
    let path = folder.join(name);
    let failed = |source| FolderError::File { file: path.clone(), source };
    // A pipe would keep the reader waiting, so it is not opened.
    match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.is_file() => return Err(FolderError::NoFile { file: path }),
        Ok(_) => {}
    }
    let mut bytes = Vec::new();
    let limit = MOST_BYTES as u64 + 1;
    File::open(&path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(failed)?;
    Ok(Some(Source { name: name.to_owned(), bytes }))
}
