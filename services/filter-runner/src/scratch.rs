//! The folder for the private folders of calls.

use nix::{
    fcntl::{Flock, FlockArg},
    unistd::Uid,
};
use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// The prefix of runners' own folders.
const PREFIX: &str = "runner-";
/// Distinguishes the runners of one process.
static RUNNERS: AtomicU64 = AtomicU64::new(0);

/// A runner's own folder. It disappears with the runner; the next runner on this machine removes the folder of a killed
/// one.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    text: String,
    calls: AtomicU64,
    /// Shows other runners that this folder is in use, until this process ends in any way.
    _lock: Flock<File>,
}

impl Scratch {
    /// Makes a folder in `base` that the filter account can pass through but not list.
    pub fn make(base: &Path) -> io::Result<Self> {
        if !base.exists() {
            fs::create_dir_all(base)?;
            let_pass(base)?;
        }
        let base = base.canonicalize()?;
        refuse_unsafe(&base)?;
        sweep(&base);
        let path = base.join(format!("{PREFIX}{}-{}", std::process::id(), RUNNERS.fetch_add(1, Ordering::Relaxed)));
        let not_text = || io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8");
        let text = path.to_str().ok_or_else(not_text)?.to_owned();
        fs::create_dir(&path)?;
        let_pass(&path)?;
        let lock = Flock::lock(File::open(&path)?, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)?;
        Ok(Self { path, text, calls: AtomicU64::new(0), _lock: lock })
    }

    /// A new path of a folder for a call.
    pub fn next(&self) -> String {
        format!("{}/{}", self.text, self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Supervisors that are still ending a call keep its folder and remove it then; the sweep removes the rest.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Lets the filter account pass through but not list, whatever the umask.
fn let_pass(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, Permissions::from_mode(0o711))
}

/// Anyone who could replace a runner's folder could read other users' jobs in it (HPC-F-74). A sticky folder prevents
/// that.
fn refuse_unsafe(base: &Path) -> io::Result<()> {
    let metadata = fs::metadata(base)?;
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if ![0, Uid::effective().as_raw()].contains(&metadata.uid()) {
        return refused("it belongs to another user");
    }
    if metadata.mode() & 0o022 != 0 && metadata.mode() & libc::S_ISVTX == 0 {
        return refused("its group or all can write to it");
    }
    Ok(())
}

/// Removes the folders of runners that are gone.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if Flock::lock(folder, FlockArg::LockExclusiveNonblock).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
