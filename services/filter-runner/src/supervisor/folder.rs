//! The private folder of a call (HPC-F-63, HPC-F-64).

use super::Stop;
use crate::{
    call::{Captured, FileAfter, MAX_DOCUMENT_BYTES, MAX_RESULT_FILE_BYTES},
    protocol::{DOCUMENT, DOCUMENT_JSON, NewFile, Order, RESULT_FILE, SCRIPT},
};
use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown, fchown},
    path::{Path, PathBuf},
};

/// A folder that only the filter account can enter. Dropping it removes it with its contents.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The owner of its contents.
    owner: u32,
}

impl Folder {
    /// Makes the folder of a call and its files.
    pub fn make(order: &Order) -> Result<Self, Stop> {
        let folder = Self::make_at(order, &order.folder)?;
        for file in &order.files {
            folder.write(order, file).map_err(|error| folder.failed(&error))?;
        }
        Ok(folder)
    }

    /// Makes the working folder of a persistent program.
    pub fn make_home(order: &Order) -> Result<Self, Stop> {
        Self::make_at(order, &format!("{}-home", order.folder))
    }

    fn make_at(order: &Order, path: &str) -> Result<Self, Stop> {
        let owner =
            order.account.as_ref().map_or_else(|| nix::unistd::Uid::effective().as_raw(), |account| account.uid);
        let folder = Self { path: path.into(), owner };
        DirBuilder::new().mode(0o700).create(&folder.path).map_err(|error| folder.failed(&error))?;
        if let Some(account) = &order.account {
            let given = chown(&folder.path, Some(account.uid), Some(account.gid));
            given.map_err(|error| folder.failed(&error))?;
        }
        Ok(folder)
    }

    fn failed(&self, error: &io::Error) -> Stop {
        Stop::Failed(format!("the call's folder {} cannot be made: {error}", self.path.display()))
    }

    fn write(&self, order: &Order, file: &NewFile) -> io::Result<()> {
        let path = self.path.join(&file.name);
        let mut made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        made.write_all(&file.contents)?;
        match &order.account {
            Some(account) => fchown(&made, Some(account.uid), Some(account.gid)),
            None => Ok(()),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The state of the order's files after the call.
    pub fn files(&self, order: &Order) -> Vec<FileAfter> {
        order.files.iter().map(|file| self.file(file)).collect()
    }

    fn file(&self, file: &NewFile) -> FileAfter {
        let (mut opened, bytes) = match self.open(&file.name) {
            Ok(opened) => opened,
            Err(after) => return after,
        };
        if bytes > MAX_DOCUMENT_BYTES as u64 {
            return FileAfter::TooLarge(bytes);
        }
        // A persistent program still lives and may keep writing.
        let mut contents = Vec::with_capacity(bytes as usize + 1);
        match (&mut opened).take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut contents) {
            Err(error) => FileAfter::NotRegular(format!("it cannot be read: {error}")),
            Ok(count) if count > MAX_DOCUMENT_BYTES => FileAfter::TooLarge(count as u64),
            Ok(_) if contents == file.contents => FileAfter::Unchanged,
            Ok(_) => FileAfter::Changed(contents.into()),
        }
    }

    /// Opens a file that the filter left and returns its size. Links are not followed, and only the filter's own files
    /// are read, so that a filter cannot have files read that it may not read itself.
    fn open(&self, name: &str) -> Result<(File, u64), FileAfter> {
        let not_regular = |what: &str| Err(FileAfter::NotRegular(what.into()));
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(self.path.join(name));
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(FileAfter::Missing),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return not_regular("it is a symbolic link"),
            Err(error) => return not_regular(&format!("it cannot be read: {error}")),
        };
        match file.metadata() {
            Ok(metadata) if !metadata.is_file() => not_regular("it is not a regular file"),
            Ok(metadata) if metadata.uid() != self.owner => not_regular("it belongs to another user"),
            Ok(metadata) => Ok((file, metadata.len())),
            Err(error) => not_regular(&format!("it cannot be read: {error}")),
        }
    }

    /// The contents of the result file (HPC-F-66).
    pub fn result_lines(&self) -> Captured {
        let Ok((file, _)) = self.open(RESULT_FILE) else { return Captured::default() };
        let mut bytes = Vec::new();
        // An unreadable file counts as missing.
        let _ = file.take(MAX_RESULT_FILE_BYTES as u64 + 1).read_to_end(&mut bytes);
        let truncated = bytes.len() > MAX_RESULT_FILE_BYTES;
        bytes.truncate(MAX_RESULT_FILE_BYTES);
        Captured { bytes: bytes.into(), truncated }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Usually there are only the files that muster knows.
        for name in [DOCUMENT, SCRIPT, DOCUMENT_JSON, RESULT_FILE] {
            let _ = fs::remove_file(self.path.join(name));
        }
        if fs::remove_dir(&self.path).is_ok() || fs::remove_dir_all(&self.path).is_ok() {
            return;
        }
        // The filter closed a folder of its own; a supervisor that is not root must open it first.
        open_up(&self.path);
        if let Err(error) = fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            eprintln!("the folder {} of a filter call cannot be removed: {error}", self.path.display());
        }
    }
}

/// Gives the owner all rights to a folder and those in it. Links are not followed.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}
