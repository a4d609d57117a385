//! Copying files with their checksums.

use anyhow::{Context as _, bail};
use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

/// The bytes that are read at a time.
const PART_BYTES: usize = 1 << 20;

/// The size and checksum of what was read.
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) blake3: String,
}

/// Reads a file; the checksum and size of its contents.
pub(super) fn sum(path: &Path, mut read: impl FnMut(u64)) -> io::Result<Sum> {
    pass(path, &mut |part| {
        read(part.len() as u64);
        Ok(())
    })
}

/// Copies a file to a new one that only its owner can read, and syncs it.
pub(super) fn copy(from: &Path, to: &Path, mut read: impl FnMut(u64)) -> anyhow::Result<Sum> {
    let what = || format!("copying {} to {}", from.display(), to.display());
    let mut target =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).with_context(|| cannot_write(to))?;
    let copied = pass(from, &mut |part| {
        read(part.len() as u64);
        target.write_all(part)
    });
    let copied = copied.with_context(what)?;
    target.sync_all().with_context(what)?;
    Ok(copied)
}

/// Writes a new file that only its owner can read, and syncs it.
pub(super) fn write(to: &Path, contents: &[u8]) -> anyhow::Result<Sum> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let written = file.and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    written.with_context(|| cannot_write(to))?;
    Ok(Sum { bytes: contents.len() as u64, blake3: blake3::hash(contents).to_hex().to_string() })
}

/// Makes a folder that only its owner can look into.
pub(super) fn make_folder(path: &Path) -> anyhow::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path).with_context(|| cannot_write(path))
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> anyhow::Result<()> {
    fs::File::open(path).and_then(|folder| folder.sync_all()).with_context(|| cannot_write(path))
}

/// Removes a folder with everything in it, if it is there.
pub(super) fn remove_folder(path: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            bail!("{} cannot be removed: {error}", path.display())
        }
        _ => Ok(()),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("writing {}", path.display())
}

fn pass(path: &Path, visit: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Sum> {
    let mut file = crate::open_regular(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut part = vec![0; PART_BYTES];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut part)?;
        let Some(contents) = part.get(..read).filter(|contents| !contents.is_empty()) else { break };
        hasher.update(contents);
        visit(contents)?;
        bytes += read as u64;
    }
    Ok(Sum { bytes, blake3: hasher.finalize().to_hex().to_string() })
}
