//! Files that decide what a trusted process runs.

use nix::unistd::Uid;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf, absolute},
};

/// The bits of a mode that let others than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The bit of a folder in which nobody removes what belongs to somebody else.
const STICKY: u32 = 0o1000;

/// The real path of a file or folder that nobody but root and the user of this process can change or exchange.
///
/// # Errors
/// What somebody else can change, for people.
pub fn guarded(file: &Path) -> Result<PathBuf, String> {
    let unseen = |path: &Path, error| format!("{} cannot be looked at: {error}", path.display());
    let named = absolute(file).map_err(|error| unseen(file, error))?;
    let real = named.canonicalize().map_err(|error| unseen(file, error))?;
    let trusted = [0, Uid::effective().as_raw()];
    for path in named.ancestors().chain(real.ancestors()) {
        // Who owns a link can exchange it; its mode says nothing.
        let known = fs::symlink_metadata(path).map_err(|error| unseen(path, error))?;
        if !trusted.contains(&known.uid()) {
            return Err(format!("{} belongs to user number {}, not to root", path.display(), known.uid()));
        }
        let is_sticky = known.is_dir() && known.mode() & STICKY != 0;
        if known.mode() & WRITABLE_BY_OTHERS != 0 && !is_sticky && !known.is_symlink() {
            return Err(format!("others than the owner of {} can write there", path.display()));
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// PBS-P-14: a file that others can change or exchange is none to follow.
    #[test]
    fn files_that_others_can_change_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let file = real.join("true");
        fs::write(&file, "").unwrap();
        set_mode(&file, 0o755);
        assert_eq!(guarded(&file), Ok(file.clone()));
        let link = real.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(guarded(&link), Ok(file.clone()));
        for (path, mode) in [(&file, 0o775), (&file, 0o757), (&real, 0o777)] {
            set_mode(path, mode);
            let refused = format!("others than the owner of {} can write there", path.display());
            assert_eq!(guarded(&file), Err(refused.clone()));
            assert_eq!(guarded(&link), Err(refused));
            set_mode(path, 0o755);
        }
        assert!(guarded(&real.join("none")).unwrap_err().contains("cannot be looked at"));
        if Uid::effective().is_root() {
            std::os::unix::fs::chown(&real, Some(1), None).unwrap();
            let refused = format!("{} belongs to user number 1, not to root", real.display());
            assert_eq!(guarded(&file), Err(refused));
        }
    }
}
