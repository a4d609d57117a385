//! Removing folders that users have filled, however deep: neither stack nor descriptors grow with them, no link is
//! followed, and nothing outside is touched.
//!
//! Whatever folder is not empty is moved up to the top, so that no more than two folders are open at any time.

use nix::{
    errno::Errno,
    fcntl::{OFlag, openat, renameat},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, unlinkat},
};
use std::{
    ffi::OsStr,
    fs, io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

/// The longest that a removal takes. A user who can still write to the folder could make it endless.
const LONGEST: Duration = Duration::from_secs(600);

/// Removes a folder and everything in it, or a file; a link itself and not what it leads to. That nothing is there is no
/// error.
///
/// # Errors
/// If the disk refuses; what was not removed yet stays.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(known) if !known.is_dir() => return fs::remove_file(path),
        Ok(_) => {}
    }
    empty(path)?;
    fs::remove_dir(path)
}

/// Removes everything in a folder, which stays.
///
/// # Errors
/// If the disk refuses, or this is no folder; what was not removed yet stays.
pub fn empty(path: &Path) -> io::Result<()> {
    let top = nix::fcntl::open(path, FOLDER, Mode::empty())?;
    let mut removal = Removal { top, moved: 0, deadline: Instant::now() + LONGEST };
    while removal.pass()? {}
    Ok(())
}

const FOLDER: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

struct Removal {
    top: OwnedFd,
    /// How many names for folders that were moved to the top have been tried.
    moved: u64,
    deadline: Instant,
}

impl Removal {
    /// Removes each entry of the top, whose folders leave theirs there. Returns whether there was any.
    fn pass(&mut self) -> io::Result<bool> {
        let mut had_any = false;
        for entry in list(&self.top)? {
            had_any = true;
            let name = entry?.file_name();
            if !remove_entry(&self.top, &name)? {
                self.flatten(&name)?;
            }
        }
        Ok(had_any)
    }

    /// Removes a folder of the top, and moves the folders in it to the top.
    fn flatten(&mut self, name: &OsStr) -> io::Result<()> {
        let folder = openat(&self.top, name, FOLDER, Mode::empty())?;
        for entry in list(&folder)? {
            if Instant::now() > self.deadline {
                return Err(io::Error::other("its removal takes too long"));
            }
            let name = entry?.file_name();
            if !remove_entry(&folder, &name)? {
                self.move_up(&folder, &name)?;
            }
        }
        // If it is not empty yet, the next pass finds it again.
        remove_entry(&self.top, name).map(drop)
    }

    fn move_up(&mut self, folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
        loop {
            self.moved += 1;
            match renameat(folder, name, &self.top, format!(".removed-{}", self.moved).as_str()) {
                // Something else has this name.
                Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) if Instant::now() <= self.deadline => {}
                Err(Errno::ENOENT) | Ok(()) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// The entries of an open folder, whatever its path is by now.
fn list(folder: &OwnedFd) -> io::Result<fs::ReadDir> {
    fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))
}

/// Removes an entry of a folder, and returns false if that is a folder with something in it.
fn remove_entry(folder: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    let remove = |how| match unlinkat(folder, name, how) {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::EISDIR | Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
        Err(errno) => Err(io::Error::from(errno)),
    };
    Ok(remove(UnlinkatFlags::NoRemoveDir)? || remove(UnlinkatFlags::RemoveDir)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::mkdirat;

    /// A chain of folders, the last of which has a file.
    fn deep(path: &Path, levels: usize) {
        fs::create_dir(path).unwrap();
        let mut folder = nix::fcntl::open(path, FOLDER, Mode::empty()).unwrap();
        for _ in 0..levels {
            mkdirat(&folder, "d", Mode::S_IRWXU).unwrap();
            folder = openat(&folder, "d", FOLDER, Mode::empty()).unwrap();
        }
        fs::write(format!("/proc/self/fd/{}/file", folder.as_raw_fd()), "x").unwrap();
    }

    #[test]
    fn a_tree_of_any_depth_goes_and_what_it_links_to_stays() {
        let here = tempfile::tempdir().unwrap();
        let (outside, tree) = (here.path().join("outside"), here.path().join("tree"));
        fs::create_dir_all(outside.join("x")).unwrap();
        deep(&tree, 20_000);
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::write(tree.join(".removed-1"), "a name in the way").unwrap();
        fs::create_dir_all(tree.join(".removed-2/full")).unwrap();
        for place in ["link", "a/link", "a/b/link"] {
            std::os::unix::fs::symlink(&outside, tree.join(place)).unwrap();
        }
        empty(&tree).unwrap();
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 0);
        std::os::unix::fs::symlink(&outside, here.path().join("link")).unwrap();
        remove(&here.path().join("link")).unwrap();
        assert!(!here.path().join("link").is_symlink());
        deep(&tree.join("again"), 10);
        remove(&tree).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists());
        assert!(outside.join("x").is_dir());
    }
}
