//! Books on disk, so that a start need not count the whole log again. They can be deleted at any time.

use crate::Books;
use anyhow::Context as _;
use muster_schemas::codec;
use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// The books in the file, if it holds any with windows of this length. Any other content is ignored: the log has
/// everything.
pub(crate) fn load(path: &Path, window_seconds: u64) -> Option<Books> {
    let bytes = std::fs::read(path).ok()?;
    match codec::decode::<Books>(&bytes) {
        Ok(books) if books.window_seconds() == window_seconds => Some(books),
        Ok(_) => {
            tracing::info!(path = %path.display(), "the window length has changed: counting the log again");
            None
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the snapshot cannot be read: counting the log again");
            None
        }
    }
}

/// A new file that only its owner can read: who used what is private.
fn private(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Writes the books to the file, all or nothing.
pub(crate) fn save(path: &Path, books: &Books) -> anyhow::Result<()> {
    let bytes = codec::encode(books)?;
    let written = path.with_extension("new");
    let mut file = private(&written).with_context(|| format!("cannot write {}", written.display()))?;
    file.write_all(&bytes)
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", written.display()))?;
    std::fs::rename(&written, path).with_context(|| format!("cannot replace {}", path.display()))
}
