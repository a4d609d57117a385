//! Unpacking archives.

use crate::{
    ArchiveError, REFUSED, UNPACK,
    entries::{Entry, Limits, each},
};
use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat, renameat},
    sys::stat::{Mode, mkdirat},
    unistd::{UnlinkatFlags, unlinkat},
};
use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::ExitCode,
};

/// Reads a whole archive, and refuses it if anything in it is not a file or folder inside, or if it is too large.
///
/// # Errors
/// Why it is refused.
pub fn check(archive: &mut File, limits: Limits) -> Result<(), ArchiveError> {
    each(archive, limits, |entry| {
        let read = io::copy(entry.content, &mut io::sink());
        let read = read.map_err(|error| ArchiveError::Refused(format!("it cannot be read: {error}")))?;
        // A file that is cut short says a larger size in its head than follows.
        if !entry.is_folder && read != entry.bytes {
            return ArchiveError::refused("it is cut short");
        }
        Ok(())
    })
}

/// Unpacks an archive in a folder, which exists. Existing files are replaced; folders that are links are not followed.
///
/// # Errors
/// The archive is refused as [`check`] does, and nothing was written; or a file cannot be written.
pub fn unpack(archive: &mut File, folder: &Path, limits: Limits) -> Result<(), ArchiveError> {
    check(archive, limits)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = open(folder, flags, Mode::empty());
    let root = root.map_err(|error| ArchiveError::about(&folder.display().to_string(), error.into()))?;
    each(archive, limits, |entry| {
        let name = entry.parts.join("/");
        write(&root, entry).map_err(|error| ArchiveError::about(&name, error))
    })
}

/// A file that a job left on a node of somebody else never becomes one that its owner's shell or other programs read by themselves.
fn require_visible(archive: &mut File, limits: Limits) -> Result<(), ArchiveError> {
    each(archive, limits, |entry| match entry.parts.iter().find(|part| part.starts_with('.')) {
        Some(hidden) => ArchiveError::refused(format!("`{hidden}` is hidden, and hidden files are not taken back")),
        None => Ok(()),
    })
}

fn write(root: &OwnedFd, entry: Entry<'_>) -> io::Result<()> {
    let Entry { parts, is_folder, is_executable, bytes, content } = entry;
    let Some((name, above)) = parts.split_last() else { return Ok(()) };
    let mut folder = root.try_clone()?;
    for part in above {
        folder = below(&folder, part)?;
    }
    if is_folder {
        return below(&folder, name).map(drop);
    }
    // Whatever has the name is replaced, and not written through: it may be a link.
    let temporary = format!(".muster-{}", std::process::id());
    let mode = Mode::from_bits_truncate(if is_executable { 0o777 } else { 0o666 });
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let made = match openat(folder.as_fd(), temporary.as_str(), flags, mode) {
        Err(Errno::EEXIST) => {
            unlinkat(folder.as_fd(), temporary.as_str(), UnlinkatFlags::NoRemoveDir)?;
            openat(folder.as_fd(), temporary.as_str(), flags, mode)
        }
        made => made,
    };
    let mut file = File::from(made?);
    let written = io::copy(&mut content.take(bytes), &mut file).and_then(|_| file.flush());
    let placed = written.and_then(|()| {
        renameat(folder.as_fd(), temporary.as_str(), folder.as_fd(), name.as_str()).map_err(io::Error::from)
    });
    if placed.is_err() {
        // A half file must not stay; the first error counts.
        let _ = unlinkat(folder.as_fd(), temporary.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    placed
}

/// A folder in a folder, which is made if it is not there.
fn below(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(folder.as_fd(), name, Mode::from_bits_truncate(0o777)) {
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match openat(folder.as_fd(), name, flags, Mode::empty()) {
        Ok(below) => Ok(below),
        Err(Errno::ELOOP | Errno::ENOTDIR) => {
            Err(io::Error::other(format!("`{name}` is there and is not a folder, or is a link")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Unpacks the archive at the standard input if the arguments ask for it. Gateways have this done by a process of the owner
/// of the files.
pub fn unpack_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != UNPACK {
        return None;
    }
    let folder = words.next().unwrap_or_default();
    let bytes = words.next().and_then(|word| word.to_str()?.parse().ok()).unwrap_or_default();
    let unpacked = io::stdin().as_fd().try_clone_to_owned().map_err(ArchiveError::from).and_then(|input| {
        let (mut archive, limits) = (File::from(input), Limits::of_bytes(bytes));
        require_visible(&mut archive, limits)?;
        unpack(&mut archive, Path::new(&folder), limits)
    });
    Some(match unpacked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever started it may have closed the other end.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(if matches!(error, ArchiveError::Refused(_)) { REFUSED } else { 1 })
        }
    })
}
