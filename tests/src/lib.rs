//! Shared by the whole-system tests and the load generators: the simulation with faults, and that of several ledgers.

pub mod replication;
pub mod simulation;

use std::{fs, io, os::unix::fs::PermissionsExt as _, path::Path};

/// Copies a folder with all files and folders in it. Only the owner can read the copies, as keys require.
///
/// # Errors
/// Something cannot be read or written.
pub fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&entry.path(), &copy)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &copy)?;
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(())
}

/// The path of the `muster` program built together with the calling test; the services' program is beside it.
///
/// # Panics
/// If it was not built.
pub fn muster_binary() -> std::path::PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let binary = test.ancestors().nth(2).expect("a test is two folders below the build's results").join("muster");
    for program in [&binary, &binary.with_file_name("muster-services")] {
        assert!(program.is_file(), "{} is missing: build the workspace first, as ops/test does", program.display());
    }
    binary
}
