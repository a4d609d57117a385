//! Files that are written whole or not at all: half a file would be mistaken for a result.

use crate::exit::Failure;
use std::{
    fmt,
    io::Write,
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// A file that appears only once all of it is on disk. Creating it early reports early that it cannot be written.
pub struct WholeFile {
    target: PathBuf,
    /// A file beside the target; `None` if the target is a device or a pipe, which is never replaced.
    draft: Option<NamedTempFile>,
}

impl WholeFile {
    /// Prepares a file that is not visible under its name yet.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: &dyn fmt::Display| cannot_write(path, error);
        let metadata = std::fs::metadata(path);
        if metadata.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
            return Err(cannot(&"it is a folder"));
        }
        if metadata.is_ok_and(|found| !found.is_file()) {
            return Ok(Self { target: path.to_owned(), draft: None });
        }
        // The target of a symbolic link is replaced, not the link.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let draft = tempfile::Builder::new().prefix(".muster-").permissions(readable).tempfile_in(folder);
        Ok(Self { draft: Some(draft.map_err(|error| cannot(&error))?), target })
    }

    /// Writes the whole content and gives the file its name.
    pub fn write(self, content: &[u8]) -> Result<(), Failure> {
        let target = self.target.clone();
        self.fill(|out| out.write_all(content).map_err(|error| cannot_write(&target, &error)))
    }

    /// Gives the file its name once `write` has written all of it.
    pub fn fill<T>(self, write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>) -> Result<T, Failure> {
        let Self { target, draft } = self;
        let cannot = |error: std::io::Error| cannot_write(&target, &error);
        let Some(mut draft) = draft else {
            let mut device = std::fs::File::options().write(true).open(&target).map_err(cannot)?;
            return write(&mut device);
        };
        let done = write(&mut draft)?;
        draft.as_file().sync_all().map_err(cannot)?;
        draft.persist(&target).map_err(|error| cannot(error.error))?;
        Ok(done)
    }
}

fn cannot_write(path: &Path, reason: &dyn fmt::Display) -> Failure {
    Failure::failed(format!("cannot write {}: {reason}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn nothing_shows_until_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        fs::write(&path, "before").unwrap();
        let file = WholeFile::create(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        file.write(b"after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        drop(WholeFile::create(&folder.path().join("never.csv")).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out.csv"), folder.path().join("link"));
        fs::write(&path, "before").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        WholeFile::create(&link).unwrap().write(b"after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        WholeFile::create(Path::new("/dev/null")).unwrap().write(b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_before_anything_is_done() {
        let failure = WholeFile::create(Path::new("/nonexistent/out.csv")).err().unwrap();
        assert!(failure.message.starts_with("cannot write /nonexistent/out.csv: "), "{failure}");
        assert!(WholeFile::create(Path::new("/")).is_err());
    }
}
